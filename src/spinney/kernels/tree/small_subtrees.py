"""Finish the subtree of a node of few rows in one go: nine of ten splits of extra-trees that are grown to the end.

Words: a *place* is that of a row among the rows of the subtree's first node, 0 .. 63, which stays where it is; an
*order* lists places so that those of a node are neighbours; a *side* of a test has a bit for each row of the node, by
its position in that list, set if the row goes left.

    load_matrix     values behind codes, once for all nodes below: (places, features), the number of a level for a category
    pick_rows       places and addends of the node at hand, the last repeated up to a multiple of PAIR_LANES, with nothing
                    to add: a loop over a node of up to eight rows then always takes eight steps
    find_extrema    lowest and highest value of all features at once, four side by side, which takes less time than those
                    of the few that are drawn, one after the other
    search_few      the tests, drawn by the same keys and judged by the same sums as in `search`
    part_rows       the order, by the swaps of `partition`; codes stay where they are, for nobody will read them

Where a value is missing, or a draw needs codes, the test is that of `drawn_tests`, on a row of codes made for it. Trees
are those of the driver to the bit, and nodes are numbered as it numbers them.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import (
    ALL,
    CONTROL_ROWS,
    IS_CATEGORICAL,
    LEAF,
    LOW,
    MISSING_CODE,
    N_CODES,
    N_LEAVES,
    N_MISSING,
    N_NODES,
    N_WORDS,
    OFFSET,
    PAIR_LANES,
    PAIR_ROWS,
    PRESENT,
    S_ALL,
    SUBSET,
    TARGET,
    THRESHOLD,
    W_ALL,
    WEIGHT,
)

from ..common.branch import branch_of_code
from ..common.criteria import best_possible
from ..common.node_layout import pack_test
from ..common.rng import fold
from ..common.structs import (
    Candidate,
    ClassScratch,
    Frontier,
    LevelScratch,
    Nodes,
    OpenNode,
    Rows,
    Scratch,
    Settings,
    SmallTest,
    SubtreeScratch,
    Table,
)
from ..common.ties import NO_SCORE, bar_above, certain
from .drawn_tests import settle_drawn, try_random_test
from .feature_order import draw_feature, restore_order
from .search import CHILD_KEYS, DRAWS, TESTS, sum_node
from .small_tests import draw_value

NONE, ONE, LAST_BIT = np.uint64(0), np.uint64(1), np.uint64(63)
TWO, THREE, FOUR = np.uint64(2), np.uint64(3), np.uint64(4)
LANES = np.uint64(PAIR_LANES)
NAN = np.nan
OPEN_NODE, OPEN_DEPTH, OPEN_KEY = range(3)  # rows of a stack of open nodes


# --- The rows of a subtree, and of a node in it -----------------------------------------------------------------------


@inlined
def load_matrix(lo: int, n: np.uint64, rows: Rows, table: Table, few: SubtreeScratch) -> None:
    """Copy the values of n rows from `lo` on, and note which features lack some; a level is its number, from 1 on."""
    codes, features, edges, values, has_gap = rows.codes, table.features, table.edges, few.values, few.has_gap
    first = np.uint64(lo)
    last = np.uint64(edges.shape[1] - 1)  # a feature without a known value has no codes
    for j in range(np.uint64(features.shape[1])):
        least = ONE
        if features[IS_CATEGORICAL, j] != 0:
            for r in range(n):
                code = np.uint64(codes[first + r, j])
                least = min(least, code)
                values[r, j] = np.float64(code) if code > NONE else NAN
        else:
            at = np.uint64(features[OFFSET, j])
            for r in range(n):
                code = np.uint64(codes[first + r, j])
                least = min(least, code)
                value = edges[LOW, min(at + max(code, ONE) - ONE, last)]
                values[r, j] = value if code > NONE else NAN
        has_gap[j] = np.int64(ONE - least)
    for r in range(n):
        few.order[r] = r


@inlined
def count_steps_of(n: np.uint64) -> np.uint64:
    """Rows of a node, and of repetitions of its last: a multiple of PAIR_LANES."""
    return (n + LANES - ONE) & ~(LANES - ONE)


@inlined
def pick_rows(lo: int, begin: np.uint64, n: np.uint64, addends: np.ndarray, few: SubtreeScratch) -> None:
    """Gather places and addends of n rows of the subtree from position `begin` of its order on."""
    order, places, picked = few.order, few.places, few.addends
    first = np.uint64(lo)
    for k in range(count_steps_of(n)):
        r = order[begin + min(k, n - ONE)]
        is_row = -np.int64(k < n)  # all bits, or none
        places[k] = r
        picked[TARGET, k] = addends[TARGET, first + r] & is_row
        if len(addends) > 1:
            picked[WEIGHT, k] = addends[WEIGHT, first + r] & is_row


@inlined
def find_extrema(n: np.uint64, few: SubtreeScratch) -> None:
    """Find the lowest and the highest known value of every feature among the rows that were picked."""
    values, places, low, high = few.values, few.places, few.low, few.high
    for j in range(NONE, np.uint64(len(low)), FOUR):
        a, b, c, d = np.inf, np.inf, np.inf, np.inf
        e, f, g, h = -np.inf, -np.inf, -np.inf, -np.inf
        for k in range(n):
            r = places[k]
            p, q, s, t = values[r, j], values[r, j + ONE], values[r, j + TWO], values[r, j + THREE]
            a, b, c, d = p if p < a else a, q if q < b else b, s if s < c else c, t if t < d else d
            e, f, g, h = p if p > e else e, q if q > f else f, s if s > g else g, t if t > h else h
        low[j], low[j + ONE], low[j + TWO], low[j + THREE] = a, b, c, d
        high[j], high[j + ONE], high[j + TWO], high[j + THREE] = e, f, g, h


# --- One test ---------------------------------------------------------------------------------------------------------


@inlined
def lacks_value(feature: np.uint64, n: np.uint64, few: SubtreeScratch) -> bool:
    """Whether a row that was picked has no value of a feature."""
    if few.has_gap[feature] == 0:
        return False
    for k in range(n):
        value = few.values[few.places[k], feature]
        if value != value:
            return True
    return False


@inlined
def side_of_threshold(feature: np.uint64, threshold: float, n: np.uint64, few: SubtreeScratch) -> np.uint64:
    """The rows whose value is not above a threshold."""
    values, places = few.values, few.places
    side = NONE
    for k in range(n):
        side |= np.uint64(values[places[k], feature] <= threshold) << k
    return side


@inlined
def side_of_levels(
    feature: np.uint64, n_words: np.uint64, draw_key: np.uint64, n: np.uint64, few: SubtreeScratch
) -> tuple[np.uint64, np.uint64]:
    """Part the levels of the node at random as `draw_subset` does: the rows that go left, and the first word's draw."""
    values, places = few.values, few.places
    every = ~NONE >> (np.uint64(PAIR_ROWS) - n)
    first = NONE
    while True:
        side = NONE
        word = fold(draw_key, first)
        for k in range(n):
            level = np.uint64(values[places[k], feature]) - ONE
            if n_words > ONE:
                word = fold(draw_key, first + (level >> np.uint64(6)))
            side |= ((word >> (level & LAST_BIT)) & ONE) << k
        if side != NONE and side != every:
            return side, first
        first += n_words


@inlined
def count_bits(word: np.uint64) -> int:
    """How many bits are set; the compiler knows this sum and takes an instruction for it."""
    word -= (word >> ONE) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> TWO) & np.uint64(0x3333333333333333))
    word = (word + (word >> FOUR)) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@inlined
def weigh_side(side: np.uint64, n: np.uint64, addends: np.ndarray) -> int:
    """Weight of the rows on the left."""
    if len(addends) == 1:
        return count_bits(side)
    weight = np.int64(0)
    for k in range(n):
        weight += addends[WEIGHT, k] & -np.int64((side >> k) & ONE)
    return weight


@inlined
def sum_side(side: np.uint64, n: np.uint64, addends: np.ndarray) -> int:
    """Sum of the targets on the left."""
    total = np.int64(0)
    for k in range(n):
        total += addends[TARGET, k] & -np.int64((side >> k) & ONE)
    return total


@inlined
def score_side_classes(side: np.uint64, node: OpenNode, weight: int, few: SubtreeScratch, sums: np.ndarray) -> float:
    """Score of a test by Gini of whole weights, for three classes or more."""
    addends, members = few.addends, few.members
    w_left = np.int64(0)
    power_left = np.int64(0)
    power_right = np.int64(0)
    for k in range(node.n_present):
        c = np.uint64(sums[PRESENT, k])
        left = weigh_side(side & members[c], np.uint64(node.hi), addends)
        right = sums[ALL, c] - left
        w_left += left
        power_left += left * left
        power_right += right * right
    wa = np.float64(w_left)
    wb = np.float64(weight - w_left)
    return (np.float64(power_left) * wb + np.float64(power_right) * wa) / (wa * wb)


@inlined
def score_left_sums(left: int, w_left: int, node: OpenNode, weight: int, total: int) -> float:
    """Score of a test by squared error, from the sums of its left branch."""
    wa = np.float64(w_left)
    wb = np.float64(weight - w_left)
    a = np.float64(left - node.centre * w_left)
    b = np.float64(total - left - node.centre * (weight - w_left))
    return (a * a * wb + b * b * wa) / (wa * wb)


@inlined
def list_members(n: np.uint64, n_present: int, few: SubtreeScratch, classes: ClassScratch | None) -> None:
    """List the rows of each class as bits, for three classes or more."""
    if classes is None:
        return
    members, addends, sums = few.members, few.addends, classes.sums
    for k in range(n_present):
        members[sums[PRESENT, k]] = NONE
    for k in range(n):
        members[np.uint64(addends[TARGET, k])] |= ONE << k


@inlined
def score_side(
    side: np.uint64, node: OpenNode, few: SubtreeScratch, totals: np.ndarray, classes: ClassScratch | None
) -> float:
    """Score of a test by the rows that it sends left."""
    if classes is not None:
        return score_side_classes(side, node, totals[W_ALL], few, classes.sums)
    n = np.uint64(node.hi)
    left = sum_side(side, n, few.addends)
    return score_left_sums(left, weigh_side(side, n, few.addends), node, totals[W_ALL], totals[S_ALL])


@inlined
def score_four_classes(
    first: np.uint64, node: OpenNode, few: SubtreeScratch, totals: np.ndarray, sums: np.ndarray
) -> None:
    """Score four thresholds, for three classes or more."""
    values, places, tried, thresholds, scores = few.values, few.places, few.tried, few.thresholds, few.scores
    f, g, h, i = tried[first], tried[first + ONE], tried[first + TWO], tried[first + THREE]
    p, q = thresholds[first], thresholds[first + ONE]
    r, s = thresholds[first + TWO], thresholds[first + THREE]
    a, b, c, d = NONE, NONE, NONE, NONE
    for k in range(np.uint64(node.hi)):
        at = places[k]
        a |= np.uint64(values[at, f] <= p) << k
        b |= np.uint64(values[at, g] <= q) << k
        c |= np.uint64(values[at, h] <= r) << k
        d |= np.uint64(values[at, i] <= s) << k
    weight = totals[W_ALL]
    scores[first] = score_side_classes(a, node, weight, few, sums)
    scores[first + ONE] = score_side_classes(b, node, weight, few, sums)
    scores[first + TWO] = score_side_classes(c, node, weight, few, sums)
    scores[first + THREE] = score_side_classes(d, node, weight, few, sums)


@inlined
def score_four_sums(first: np.uint64, node: OpenNode, few: SubtreeScratch, totals: np.ndarray) -> None:
    """Score four thresholds, for numbers and two classes: loads of one do not wait for the sums of another."""
    values, places, tried, thresholds, scores = few.values, few.places, few.tried, few.thresholds, few.scores
    addends = few.addends
    f, g, h, i = tried[first], tried[first + ONE], tried[first + TWO], tried[first + THREE]
    p, q = thresholds[first], thresholds[first + ONE]
    r, s = thresholds[first + TWO], thresholds[first + THREE]
    none = np.int64(0)
    a, b, c, d = none, none, none, none
    w, x, y, z = none, none, none, none
    is_unit = len(addends) == 1
    for k in range(np.uint64(node.hi)):
        at = places[k]
        target = addends[TARGET, k]
        weight = np.int64(1) if is_unit else addends[WEIGHT, k]
        is_a = -np.int64(values[at, f] <= p)
        is_b = -np.int64(values[at, g] <= q)
        is_c = -np.int64(values[at, h] <= r)
        is_d = -np.int64(values[at, i] <= s)
        a, b, c, d = a + (target & is_a), b + (target & is_b), c + (target & is_c), d + (target & is_d)
        w, x, y, z = w + (weight & is_a), x + (weight & is_b), y + (weight & is_c), z + (weight & is_d)
    weight, total = totals[W_ALL], totals[S_ALL]
    a_score = score_left_sums(a, w, node, weight, total)
    b_score = score_left_sums(b, x, node, weight, total)
    c_score = score_left_sums(c, y, node, weight, total)
    d_score = score_left_sums(d, z, node, weight, total)
    scores[first], scores[first + ONE] = a_score, b_score
    scores[first + TWO], scores[first + THREE] = c_score, d_score


@inlined
def score_four(
    first: np.uint64, node: OpenNode, few: SubtreeScratch, totals: np.ndarray, classes: ClassScratch | None
) -> None:
    """Score the thresholds of four features that are tried, from number `first` on."""
    if classes is not None:
        score_four_classes(first, node, few, totals, classes.sums)
    else:
        score_four_sums(first, node, few, totals)


@kernel
def try_by_codes(
    best: Candidate,
    feature: int,
    lo: int,
    node: OpenNode,
    rows: Rows,
    table: Table,
    settings: Settings,
    scratch: Scratch,
) -> Candidate:
    """Try a test as larger nodes do, on the codes of the rows that were picked; lo: of the subtree."""
    few = scratch.subtrees
    for k in range(node.hi):
        few.codes[k, feature] = rows.codes[lo + np.int64(few.places[k]), feature]
    picked = Rows(few.codes, rows.words, few.addends, rows.ids, rows.lists, rows.ahead, rows.ahead_of)
    return try_random_test(best, feature, node, picked, table, settings, scratch)


@inlined
def side_of_codes(
    feature: int, kind: int, found: Candidate, n: np.uint64, few: SubtreeScratch, levels: LevelScratch | None
) -> np.uint64:
    """The rows that a test of `try_by_codes` sends left."""
    side = NONE
    for k in range(n):
        code = np.int64(few.codes[k, feature])
        branch = found.missing
        if levels is None or kind == THRESHOLD:
            if code != MISSING_CODE:
                branch = np.int64(code > found.cut)
        else:
            branch = branch_of_code(code, kind, 0, found.missing, levels.bitset)
        side |= np.uint64(branch == 0) << k
    return side


# --- One node ---------------------------------------------------------------------------------------------------------


@inlined
def keep_levels(n_levels: int, few: SubtreeScratch, levels: LevelScratch | None) -> None:
    """Keep the bitset of a test: the next draw will write over it."""
    if levels is None:
        return
    for w in range((n_levels + 63) >> 6):
        few.kept[w] = levels.bitset[w]


@inlined
def list_tried(
    most: int, draw_key: np.uint64, n: np.uint64, features: np.ndarray, settings: Settings, scratch: Scratch
) -> np.uint64:
    """List the first `most` features that vary, in the order of the search, in `tried`; return how many."""
    few, permutation, places = scratch.subtrees, scratch.permutation, scratch.places
    low, high, tried = few.low, few.high, few.tried
    n_tried = NONE
    n_drawn = np.int64(0)
    for k in range(np.int64(features.shape[1])):
        if n_tried >= np.uint64(most):
            break
        feature = np.uint64(k)
        if settings.is_shuffled:
            feature = np.uint64(draw_feature(permutation, places, k, draw_key))
            n_drawn += 1
        tried[n_tried] = feature
        varies = low[feature] < high[feature]
        if few.has_gap[feature] != 0:
            varies |= low[feature] == high[feature] and lacks_value(feature, n, few)
        n_tried += np.uint64(varies)
    restore_order(permutation, places, n_drawn)
    return n_tried


@inlined
def draw_tests(n_tried: np.uint64, node: OpenNode, features: np.ndarray, few: SubtreeScratch) -> bool:
    """Draw a threshold for each feature that is tried, NaN where there is none; return whether that is so of one."""
    n = np.uint64(node.hi)
    has_others = False
    for i in range((n_tried + THREE) & ~THREE):
        feature = few.tried[i] if i < n_tried else few.tried[0]
        is_drawn, threshold = draw_value(few.low[feature], few.high[feature], node.test_key, np.int64(feature))
        is_number = features[IS_CATEGORICAL, feature] == 0
        is_drawn &= is_number & (i < n_tried)
        if few.has_gap[feature] != 0:
            is_drawn &= not lacks_value(feature, n, few)
        few.tried[i] = feature
        few.thresholds[i] = threshold if is_drawn else NAN
        has_others |= (not is_drawn) & (i < n_tried)
    return has_others


@inlined
def choose_among(n_tried: np.uint64, bound: float, few: SubtreeScratch) -> tuple[SmallTest, float]:
    """The best of the thresholds that were scored, and its score."""
    best = NO_SCORE
    at = NONE
    for i in range(n_tried):
        score = few.scores[i]
        is_better = (score > bar_above(best)) & (not best >= bound)  # a bound that is not known is NaN
        best = score if is_better else best
        at = i if is_better else at
    feature = np.int64(few.tried[at]) if n_tried > NONE else np.int64(-1)
    return SmallTest(feature, False, NONE, np.int64(-1), few.thresholds[at], NONE), best


@inlined
def choose_of_all(
    lo: int,
    n_tried: np.uint64,
    bound: float,
    node: OpenNode,
    rows: Rows,
    table: Table,
    settings: Settings,
    scratch: Scratch,
) -> tuple[SmallTest, float]:
    """The same where some features that are tried are categories or lack values."""
    few, totals, features = scratch.subtrees, scratch.totals, table.features
    n = np.uint64(node.hi)
    chosen = SmallTest(np.int64(-1), False, NONE, np.int64(-1), np.inf, NONE)
    best = NO_SCORE
    for i in range(n_tried):
        if best >= bound:
            break
        feature = few.tried[i]
        threshold = few.thresholds[i]
        score = few.scores[i]
        if threshold != threshold and (
            few.has_gap[feature] != 0 and lacks_value(feature, n, few) or features[IS_CATEGORICAL, feature] == 0
        ):
            given = Candidate(best, np.int64(-1), np.int64(-1), np.int64(0), np.int64(0), np.inf)
            found = try_by_codes(given, np.int64(feature), lo, node, rows, table, settings, scratch)
            best = found.score
            if found.cut >= 0:
                kind = SUBSET if features[IS_CATEGORICAL, feature] != 0 else THRESHOLD
                side = side_of_codes(np.int64(feature), kind, found, n, few, scratch.levels)
                if kind == SUBSET:
                    keep_levels(features[N_CODES, feature], few, scratch.levels)
                missing = found.missing if totals[N_MISSING] > 0 else np.int64(-1)
                chosen = SmallTest(np.int64(feature), True, side, missing, found.threshold, NONE)
            continue
        side, first = NONE, NONE
        if threshold != threshold:
            n_words = np.uint64((features[N_CODES, feature] + 63) >> 6)
            side, first = side_of_levels(feature, n_words, fold(node.test_key, feature), n, few)
            score = score_side(side, node, few, totals, scratch.classes)
            threshold = np.inf
        if score > bar_above(best):
            best = score
            chosen = SmallTest(np.int64(feature), False, side, np.int64(-1), threshold, first)
    return chosen, best


@inlined
def search_few(
    lo: int,
    draw_key: np.uint64,
    bound: float,
    node: OpenNode,
    rows: Rows,
    table: Table,
    settings: Settings,
    scratch: Scratch,
) -> tuple[SmallTest, float]:
    """The best test of the rows that were picked, and its score; its feature is -1 where no feature varies."""
    few, totals, features = scratch.subtrees, scratch.totals, table.features
    n = np.uint64(node.hi)
    most = settings.n_try
    if n == TWO and not settings.has_random_ties:
        most = np.int64(1)  # none is better than one that tells two rows apart
    n_tried = list_tried(most, draw_key, n, features, settings, scratch)
    has_others = draw_tests(n_tried, node, features, few)
    for first in range(NONE, n_tried, FOUR):
        score_four(first, node, few, totals, scratch.classes)
    if has_others:
        chosen, best = choose_of_all(lo, n_tried, bound, node, rows, table, settings, scratch)
    else:
        chosen, best = choose_among(n_tried, bound, few)
    if chosen.side == NONE and chosen.feature >= 0:
        side = side_of_threshold(np.uint64(chosen.feature), chosen.threshold, n, few)
        chosen = SmallTest(chosen.feature, False, side, chosen.missing, chosen.threshold, chosen.first)
    return chosen, best


@inlined
def open_few(
    n: np.uint64, key: np.uint64, rows: Rows, table: Table, settings: Settings, scratch: Scratch
) -> tuple[OpenNode, float, float]:
    """Sum up the rows that were picked: the node, its score, and a score that no test can exceed."""
    few, totals = scratch.subtrees, scratch.totals
    hi = np.int64(n)
    none = np.int64(0)
    picked = Rows(few.codes, rows.words, few.addends, rows.ids, rows.lists, rows.ahead, rows.ahead_of)
    score, n_present, centre = sum_node(none, hi, picked, table, settings, scratch, scratch.classes, scratch.rates)
    list_members(n, n_present, few, scratch.classes)
    bound = np.inf
    if not settings.has_random_ties:
        bound = certain(
            best_possible(
                settings.criterion, settings.is_class, few.addends, none, hi, totals[W_ALL], totals[S_ALL], centre
            )
        )
    test_key = fold(key, TESTS)
    node = OpenNode(none, hi, np.int64(-1), n_present, centre, none, False, -np.inf, np.inf, test_key, NONE)
    return node, score, bound


@inlined
def finish_words(first: np.uint64, levels: LevelScratch | None) -> None:
    """Say which draw the words of a subset begin with, for `settle_drawn`."""
    if levels is None:
        return
    levels.bitset[len(levels.bitset) >> 1] = first


@inlined
def write_words(
    first_word: int, n_levels: int, is_kept: bool, few: SubtreeScratch, subsets: np.ndarray, levels: LevelScratch | None
) -> None:
    """Write the bitset of the chosen test to the tree's, from `first_word` on."""
    if levels is None:
        return
    for w in range((n_levels + 63) >> 6):
        subsets[first_word + w] = few.kept[w] if is_kept else levels.bitset[w]


@inlined
def write_choice(
    number: int,
    chosen: SmallTest,
    node: OpenNode,
    table: Table,
    nodes: Nodes,
    frontier: Frontier,
    scratch: Scratch,
) -> None:
    """Write the test of a node, and the words of its subset."""
    features, state, few, feature = table.features, frontier.state, scratch.subtrees, chosen.feature
    n = np.uint64(node.hi)
    missing = chosen.missing
    if missing < 0:  # of the table to come: to the heavier branch
        w_left = weigh_side(chosen.side, n, few.addends)
        missing = np.int64(scratch.totals[W_ALL] - w_left >= w_left)
    threshold = chosen.threshold
    if not chosen.is_by_codes:
        finish_words(chosen.first, scratch.levels)
        settled = settle_drawn(0.0, feature, np.int64(1), threshold, np.int64(0), node, table, scratch)
        threshold = settled.threshold
    kind = THRESHOLD
    if features[IS_CATEGORICAL, feature] != 0:
        kind = SUBSET
        n_levels = features[N_CODES, feature]
        threshold = np.float64(state[N_WORDS])
        write_words(state[N_WORDS], n_levels, chosen.is_by_codes, few, nodes.subsets, scratch.levels)
        state[N_WORDS] += (n_levels + 63) >> 6
    nodes.test[number] = pack_test(feature, missing, kind)
    nodes.first_child[number] = state[N_NODES]
    nodes.cut_value[number] = threshold


# --- The subtree ------------------------------------------------------------------------------------------------------


@inlined
def part_rows(begin: np.uint64, n: np.uint64, side: np.uint64, order: np.ndarray, moves: np.ndarray) -> np.uint64:
    """Bring the rows on the left before the others, by the swaps of `partition`; return how many they are."""
    n_behind = NONE
    n_front = NONE
    for k in range(n):
        is_front = (side >> k) & ONE
        moves[0, n_behind] = np.int32(k)
        moves[1, n_front] = np.int32(k)
        n_behind += ONE - is_front
        n_front += is_front
    for k in range(n_behind):
        i = np.uint64(moves[0, k])
        if i >= n_front:
            break
        j = np.uint64(moves[1, n_front - ONE - k])
        row = order[begin + i]
        order[begin + i] = order[begin + j]
        order[begin + j] = row
    return n_front


@inlined
def is_pure(
    first: np.uint64,
    begin: np.uint64,
    end: np.uint64,
    rows: Rows,
    truth: np.ndarray,
    settings: Settings,
    order: np.ndarray,
) -> bool:
    """Whether the rows at begin .. end of the order are of one class or one value; first: row of the subtree."""
    addends, ids = rows.addends, rows.ids
    target = addends[TARGET, first + order[begin]]
    if settings.is_class:
        for k in range(begin + ONE, end):
            other = addends[TARGET, first + order[k]]
            if other != target and (settings.n_classes > 2 or other == 0 or target == 0):
                return False
        return True
    if len(addends) == 1:  # every weight is 1: equal targets add the same, which is at hand where they are far away
        for k in range(begin + ONE, end):
            if addends[TARGET, first + order[k]] != target:
                return False
    value = truth[np.uint64(ids[first + order[begin]])]
    for k in range(begin + ONE, end):
        if truth[np.uint64(ids[first + order[k]])] != value:
            return False
    return True


@inlined
def place_rows(lo: int, n: np.uint64, rows: Rows, few: SubtreeScratch, moves: np.ndarray) -> None:
    """Bring addends and ids into the order of the leaves."""
    addends, ids, order, held = rows.addends, rows.ids, few.order, few.addends
    first = np.uint64(lo)
    for at in range(len(addends)):
        for k in range(n):
            held[at, k] = addends[at, first + order[k]]
        for k in range(n):
            addends[at, first + k] = held[at, k]
    for k in range(n):
        moves[0, k] = ids[first + order[k]]
    for k in range(n):
        ids[first + k] = moves[0, k]


@kernel
def finish_subtree(
    slot: int, rows: Rows, table: Table, settings: Settings, nodes: Nodes, frontier: Frontier, scratch: Scratch
) -> None:
    """Grow all that is below the node in a slot, of up to PAIR_ROWS rows; the tree has room for it."""
    few, state, moves = scratch.subtrees, frontier.state, scratch.moves
    number = frontier.node[slot]
    lo = nodes.begin[number]
    n_rows = np.uint64(nodes.n_rows[number])
    load_matrix(lo, n_rows, rows, table, few)
    stack = few.stack
    stack[OPEN_NODE, 0] = number
    stack[OPEN_DEPTH, 0] = frontier.depth[slot]
    stack[OPEN_KEY, 0] = frontier.key[slot]
    n_open = np.int64(1)
    while n_open > 0:
        n_open -= 1
        number = stack[OPEN_NODE, n_open]
        depth = stack[OPEN_DEPTH, n_open] + 1
        key = np.uint64(stack[OPEN_KEY, n_open])
        begin = np.uint64(nodes.begin[number] - lo)
        n = np.uint64(nodes.n_rows[number])
        pick_rows(lo, begin, n, rows.addends, few)
        find_extrema(n, few)
        node, score, bound = open_few(n, key, rows, table, settings, scratch)
        nodes.score[number] = score
        chosen, best = search_few(lo, fold(key, DRAWS), bound, node, rows, table, settings, scratch)
        if chosen.feature < 0 or best - score < settings.min_gain:
            continue
        write_choice(number, chosen, node, table, nodes, frontier, scratch)
        middle = begin + part_rows(begin, n, chosen.side, few.order, moves)
        state[N_LEAVES] += 1
        for b in range(2):
            child = state[N_NODES]
            state[N_NODES] = child + 1
            first = begin if b == 0 else middle
            end = middle if b == 0 else begin + n
            size = np.int64(end - first)
            nodes.test[child] = LEAF
            nodes.first_child[child] = 0
            nodes.begin[child] = lo + np.int64(first)
            nodes.n_rows[child] = size
            nodes.cut_value[child] = 0.0
            if depth >= settings.max_depth or size < max(settings.min_samples_split, 2):
                continue
            if is_pure(np.uint64(lo), first, end, rows, table.truth, settings, few.order):
                continue
            stack[OPEN_NODE, n_open] = child
            stack[OPEN_DEPTH, n_open] = depth
            stack[OPEN_KEY, n_open] = np.int64(fold(key, CHILD_KEYS + np.uint64(b)))
            n_open += 1
    place_rows(lo, n_rows, rows, few, moves)
    frontier.control[CONTROL_ROWS] += np.int64(n_rows)


@inlined
def grow_small(
    slot: int,
    rows: Rows,
    table: Table,
    settings: Settings,
    nodes: Nodes,
    frontier: Frontier,
    scratch: Scratch,
    subtrees: SubtreeScratch | None,
) -> bool:
    """Finish the subtree of the node in a slot, if it is of few rows and the tree has room for the most it can take."""
    if subtrees is None:
        return False
    n = nodes.n_rows[frontier.node[slot]]
    state = frontier.state
    if n > PAIR_ROWS or state[N_NODES] + 2 * n > len(nodes.test):
        return False
    if state[N_WORDS] + n * settings.most_words > len(nodes.subsets):
        return False
    finish_subtree(slot, rows, table, settings, nodes, frontier, scratch)
    return True
