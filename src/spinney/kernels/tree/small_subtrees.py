"""Finish the subtree of a node of few rows in one go: most splits of extra-trees that are grown to the end.

For numbers without a missing value. Words: a *place* is that of a row among the rows of the subtree, 0 .. 63, which
stay where they are; an *order* lists places so that those of a node are neighbours; a *lane* is a column of values.

    open_subtree    where nodes try most features, the values behind all codes, once for all nodes below
    pick_rows       places and addends of the node at hand
    find_extrema    lowest and highest value of all lanes, four side by side: less time than one after the other
    split_two       two rows: the first feature that tells them apart
    list_tried      the features that vary, as many as are tried; else their values are loaded here, to lanes of theirs
    draw_tests      a threshold for each, by the keys of `search`
    score_four      four tests at a time: no jump depends on a score, and the sums of one do not wait for another's
    part_rows       the order, by the swaps of `partition`; codes are not moved, for nobody will read them again

Trees are those of the driver to the bit, and nodes are numbered as it numbers them.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined
from spinney._types import (
    ALL,
    CONTROL_ROWS,
    IS_BINNED,
    LOW,
    MISSING_CODE,
    N_LEAVES,
    N_NODES,
    NUMBER,
    OFFSET,
    PAIR_ROWS,
    PRESENT,
    S_ALL,
    TARGET,
    THRESHOLD,
    W_ALL,
    WEIGHT,
)

from ..common.bits import count_bits
from ..common.criteria import best_possible
from ..common.node_layout import pack_test
from ..common.rng import fold
from ..common.structs import (
    ClassScratch,
    Frontier,
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
from .drawn_tests import spare_bins
from .feature_order import draw_feature, restore_order
from .new_nodes import append_leaf
from .random_tests import draw_threshold
from .search import CHILD_KEYS, DRAWS, TESTS, sum_node
from .small_tests import draw_value, score_left_sums, score_squares

NONE, ONE, TWO, THREE, FOUR = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
OPEN_NODE, OPEN_DEPTH, OPEN_KEY = range(3)  # rows of a stack of open nodes


# --- The rows of a subtree, and of a node in it -----------------------------------------------------------------------


@inlined
def lacks_values(lo: int, hi: int, n_features: int, codes: np.ndarray) -> bool:
    """Whether a value of rows lo .. hi is missing."""
    for i in range(np.uint64(lo), np.uint64(hi)):
        n_missing = np.int64(0)
        for j in range(np.uint64(n_features)):
            n_missing += np.int64(codes[i, j] == MISSING_CODE)
        if n_missing > 0:
            return True
    return False


@inlined
def load_lane(
    feature: np.uint64, lane: np.uint64, lo: int, n: np.uint64, rows: Rows, table: Table, few: SubtreeScratch
) -> None:
    """Copy the values that n rows of the subtree, see few.places, have of a feature; note the lowest and highest."""
    codes, edges, values, places = rows.codes, table.edges, few.values, few.places
    first = np.uint64(lo)
    before = np.uint64(table.features[OFFSET, feature]) - ONE
    low = np.inf
    high = -np.inf
    for k in range(n):
        value = edges[LOW, before + np.uint64(codes[first + places[k], feature])]
        values[k, lane] = value
        low = value if value < low else low
        high = value if value > high else high
    few.low[lane] = low
    few.high[lane] = high


@inlined
def keeps_lanes(settings: Settings, n_features: int) -> bool:
    """Whether values are loaded once for all nodes of a subtree: where most features are tried in each."""
    return 2 * settings.n_try > n_features


@inlined
def open_subtree(lo: int, n: np.uint64, rows: Rows, table: Table, settings: Settings, few: SubtreeScratch) -> None:
    """List the n rows of a subtree from `lo` on, and load their values where all nodes share them."""
    for k in range(n):
        few.order[k] = k
        few.places[k] = k
    n_features = table.features.shape[1]
    if keeps_lanes(settings, n_features):
        for j in range(np.uint64(n_features)):
            load_lane(j, j, lo, n, rows, table, few)


@inlined
def pick_rows(lo: int, begin: np.uint64, n: np.uint64, keeps: bool, addends: np.ndarray, few: SubtreeScratch) -> None:
    """Gather places and addends of n rows of the subtree from position `begin` of its order on."""
    order, places, at, picked = few.order, few.places, few.at, few.addends
    first = np.uint64(lo)
    for k in range(n):
        r = order[begin + k]
        places[k] = r
        at[k] = r if keeps else k
        picked[TARGET, k] = addends[TARGET, first + r]
        if len(addends) > 1:
            picked[WEIGHT, k] = addends[WEIGHT, first + r]


@inlined
def find_extrema(n: np.uint64, few: SubtreeScratch) -> None:
    """Find the lowest and the highest value of every feature among the rows that were picked."""
    values, at, low, high = few.values, few.at, few.low, few.high
    for j in range(NONE, np.uint64(len(low)), FOUR):
        a, b, c, d = np.inf, np.inf, np.inf, np.inf
        e, f, g, h = -np.inf, -np.inf, -np.inf, -np.inf
        for k in range(n):
            r = at[k]
            p, q, s, t = values[r, j], values[r, j + ONE], values[r, j + TWO], values[r, j + THREE]
            a, b, c, d = p if p < a else a, q if q < b else b, s if s < c else c, t if t < d else d
            e, f, g, h = p if p > e else e, q if q > f else f, s if s > g else g, t if t > h else h
        low[j], low[j + ONE], low[j + TWO], low[j + THREE] = a, b, c, d
        high[j], high[j + ONE], high[j + TWO], high[j + THREE] = e, f, g, h


# --- The tests of a node ----------------------------------------------------------------------------------------------


@inlined
def list_tried(
    lo: int, draw_key: np.uint64, n: np.uint64, rows: Rows, table: Table, settings: Settings, scratch: Scratch
) -> np.uint64:
    """List the first features that vary, as many as are tried, in the order of the search; return how many."""
    few, permutation, places = scratch.subtrees, scratch.permutation, scratch.places
    low, high = few.low, few.high
    n_features = np.int64(table.features.shape[1])
    keeps = keeps_lanes(settings, n_features)
    n_tried = NONE
    n_drawn = np.int64(0)
    for k in range(n_features):
        if n_tried >= np.uint64(settings.n_try):
            break
        feature = np.uint64(permutation[k])
        if settings.is_shuffled:
            feature = np.uint64(draw_feature(permutation, places, k, draw_key))
            n_drawn += 1
        lane = feature
        if not keeps:
            lane = n_tried
            load_lane(feature, lane, lo, n, rows, table, few)
        few.tried[n_tried] = feature
        few.lanes[n_tried] = lane
        n_tried += np.uint64(low[lane] < high[lane])  # only features that vary count
    restore_order(permutation, places, n_drawn)
    return n_tried


@inlined
def draw_between(feature: np.uint64, lo: int, node: OpenNode, rows: Rows, table: Table, few: SubtreeScratch) -> float:
    """A threshold by codes: where values are infinite, or neighbours that leave no room between them."""
    lowest = np.int64(rows.codes[np.uint64(lo) + few.places[0], feature])
    highest = lowest
    for k in range(np.uint64(node.hi)):
        code = np.int64(rows.codes[np.uint64(lo) + few.places[k], feature])
        lowest = min(lowest, code)
        highest = max(highest, code)
    _, threshold = draw_threshold(table.features, table.edges, np.int64(feature), lowest, highest, node.test_key)
    return threshold


@inlined
def draw_tests(lo: int, n_tried: np.uint64, node: OpenNode, rows: Rows, table: Table, few: SubtreeScratch) -> None:
    """Draw a threshold for each feature that is tried, up to a multiple of four, the last of them repeated."""
    for i in range(n_tried):
        feature, lane = few.tried[i], few.lanes[i]
        is_drawn, threshold = draw_value(few.low[lane], few.high[lane], node.test_key, table.features[NUMBER, feature])
        few.thresholds[i] = threshold if is_drawn else draw_between(feature, lo, node, rows, table, few)
    for i in range(n_tried, (n_tried + THREE) & ~THREE):
        few.lanes[i] = few.lanes[n_tried - ONE]
        few.thresholds[i] = few.thresholds[n_tried - ONE]


@inlined
def side_of_threshold(lane: np.uint64, threshold: float, n: np.uint64, few: SubtreeScratch) -> np.uint64:
    """The rows whose value is not above a threshold."""
    values, at = few.values, few.at
    side = NONE
    for k in range(n):
        side |= np.uint64(values[at[k], lane] <= threshold) << k
    return side


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
    return score_squares(w_left, power_left, power_right, weight)


@inlined
def score_four_classes(
    first: np.uint64, node: OpenNode, few: SubtreeScratch, totals: np.ndarray, sums: np.ndarray
) -> None:
    """Score four thresholds, for three classes or more."""
    values, rows_at, lanes, thresholds, scores = few.values, few.at, few.lanes, few.thresholds, few.scores
    f, g, h, i = lanes[first], lanes[first + ONE], lanes[first + TWO], lanes[first + THREE]
    p, q = thresholds[first], thresholds[first + ONE]
    r, s = thresholds[first + TWO], thresholds[first + THREE]
    a, b, c, d = NONE, NONE, NONE, NONE
    for k in range(np.uint64(node.hi)):
        at = rows_at[k]
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
    values, rows_at, lanes, thresholds, scores = few.values, few.at, few.lanes, few.thresholds, few.scores
    addends = few.addends
    f, g, h, i = lanes[first], lanes[first + ONE], lanes[first + TWO], lanes[first + THREE]
    p, q = thresholds[first], thresholds[first + ONE]
    r, s = thresholds[first + TWO], thresholds[first + THREE]
    none = np.int64(0)
    a, b, c, d = none, none, none, none
    w, x, y, z = none, none, none, none
    is_unit = len(addends) == 1
    for k in range(np.uint64(node.hi)):
        at = rows_at[k]
        target = addends[TARGET, k]
        weight = np.int64(1) if is_unit else addends[WEIGHT, k]
        is_a = -np.int64(values[at, f] <= p)
        is_b = -np.int64(values[at, g] <= q)
        is_c = -np.int64(values[at, h] <= r)
        is_d = -np.int64(values[at, i] <= s)
        a, b, c, d = a + (target & is_a), b + (target & is_b), c + (target & is_c), d + (target & is_d)
        w, x, y, z = w + (weight & is_a), x + (weight & is_b), y + (weight & is_c), z + (weight & is_d)
    weight, total = totals[W_ALL], totals[S_ALL]
    a_score = score_left_sums(a, w, node.centre, weight, total)
    b_score = score_left_sums(b, x, node.centre, weight, total)
    c_score = score_left_sums(c, y, node.centre, weight, total)
    d_score = score_left_sums(d, z, node.centre, weight, total)
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


@inlined
def choose_test(n_tried: np.uint64, bound: float, n: np.uint64, few: SubtreeScratch) -> SmallTest:
    """The first of the best tests; bound: a score that no test can exceed."""
    best = NO_SCORE
    if n_tried == NONE:
        return SmallTest(np.int64(-1), NONE, np.inf, best)
    at = NONE
    bar = bar_above(best)
    for i in range(n_tried):  # the bar of each score is known before it is asked for: what waits is a comparison alone
        score = few.scores[i]
        own = np.inf if score >= bound else bar_above(score)  # a bound that is not known is NaN
        is_better = score > bar
        bar = own if is_better else bar
        best = score if is_better else best
        at = i if is_better else at
    threshold = few.thresholds[at]
    return SmallTest(np.int64(few.tried[at]), side_of_threshold(few.lanes[at], threshold, n, few), threshold, best)


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
) -> SmallTest:
    """The best test of the rows that were picked; its feature is -1 where none varies."""
    few = scratch.subtrees
    n = np.uint64(node.hi)
    n_tried = list_tried(lo, draw_key, n, rows, table, settings, scratch)
    draw_tests(lo, n_tried, node, rows, table, few)
    for first in range(NONE, n_tried, FOUR):
        score_four(first, node, few, scratch.totals, scratch.classes)
    return choose_test(n_tried, bound, n, few)


@inlined
def kept_value(at: int, feature: np.uint64, few: SubtreeScratch) -> float:
    """The value of a feature that was loaded for the whole subtree; at: see `SubtreeScratch`."""
    return few.values[at, feature]


@inlined
def value_of(place: np.uint64, feature: np.uint64, lo: int, rows: Rows, table: Table) -> float:
    """The value that the row at a place of the subtree has of a feature."""
    code = np.uint64(rows.codes[np.uint64(lo) + place, feature])
    return table.edges[LOW, np.uint64(table.features[OFFSET, feature]) - ONE + code]


@inlined
def score_pair(
    side: np.uint64, node: OpenNode, few: SubtreeScratch, totals: np.ndarray, classes: ClassScratch | None
) -> float:
    """Score of a test that tells two rows apart."""
    if classes is not None:
        return score_side_classes(side, node, totals[W_ALL], few, classes.sums)
    at = side >> ONE  # the one on the left
    w_left = np.int64(1) if len(few.addends) == 1 else few.addends[WEIGHT, at]
    return score_left_sums(few.addends[TARGET, at], w_left, node.centre, totals[W_ALL], totals[S_ALL])


@inlined
def split_two(
    lo: int, draw_key: np.uint64, node: OpenNode, rows: Rows, table: Table, settings: Settings, scratch: Scratch
) -> SmallTest:
    """The first feature that tells two rows apart, in the order of the search: none is better."""
    few, permutation, places = scratch.subtrees, scratch.permutation, scratch.places
    n_features = np.int64(table.features.shape[1])
    keeps = keeps_lanes(settings, n_features)
    n_drawn = np.int64(0)
    feature = NONE
    a, b = 0.0, 0.0
    for k in range(n_features):
        feature = np.uint64(permutation[k])
        if settings.is_shuffled:
            feature = np.uint64(draw_feature(permutation, places, k, draw_key))
            n_drawn += 1
        if keeps:
            a, b = kept_value(few.at[0], feature, few), kept_value(few.at[1], feature, few)
        else:
            a = value_of(few.places[0], feature, lo, rows, table)
            b = value_of(few.places[1], feature, lo, rows, table)
        if a != b:
            break
    restore_order(permutation, places, n_drawn)
    if a == b:
        return SmallTest(np.int64(-1), NONE, np.inf, NO_SCORE)
    is_drawn, threshold = draw_value(min(a, b), max(a, b), node.test_key, table.features[NUMBER, feature])
    if not is_drawn:
        threshold = draw_between(feature, lo, node, rows, table, few)
    side = np.uint64(a <= threshold) | (np.uint64(b <= threshold) << ONE)
    return SmallTest(np.int64(feature), side, threshold, score_pair(side, node, few, scratch.totals, scratch.classes))


# --- The subtree ------------------------------------------------------------------------------------------------------


@inlined
def open_few(
    n: np.uint64, key: np.uint64, rows: Rows, table: Table, settings: Settings, scratch: Scratch
) -> tuple[OpenNode, float, float]:
    """Sum up the rows that were picked: the node, its score, and a score that no test can exceed."""
    few, totals = scratch.subtrees, scratch.totals
    hi = np.int64(n)
    none = np.int64(0)
    picked = Rows(
        rows.codes, rows.words, few.addends, rows.ids, rows.lists, rows.ahead, rows.ahead_of, rows.varying, rows.cells
    )
    score, n_present, centre = sum_node(none, hi, picked, table, settings, scratch, scratch.classes, scratch.rates)
    list_members(n, n_present, few, scratch.classes)
    weight, total = totals[W_ALL], totals[S_ALL]
    bound = np.inf
    if n > TWO:  # two rows are told apart, or not
        bound = best_possible(settings.criterion, settings.is_class, few.addends, none, hi, weight, total, centre)
    test_key = fold(key, TESTS)
    node = OpenNode(none, hi, np.int64(-1), n_present, centre, none, False, -np.inf, np.inf, test_key, NONE)
    return node, score, certain(bound)


@inlined
def write_choice(
    number: int, chosen: SmallTest, n: np.uint64, table: Table, nodes: Nodes, frontier: Frontier, scratch: Scratch
) -> None:
    """Write the test of a node of n rows; what will be missing goes to its heavier branch."""
    feature = chosen.feature
    w_left = weigh_side(chosen.side, n, scratch.subtrees.addends)
    heavier = np.int64(scratch.totals[W_ALL] - w_left >= w_left)
    threshold = chosen.threshold
    if table.features[IS_BINNED, feature] != 0:
        threshold = spare_bins(feature, np.int64(1), threshold, table)
    nodes.test[number] = pack_test(table.features[NUMBER, feature], heavier, THRESHOLD)
    nodes.first_child[number] = frontier.state[N_NODES]
    nodes.cut_value[number] = threshold


@inlined
def part_rows(begin: np.uint64, n: np.uint64, side: np.uint64, order: np.ndarray, moves: np.ndarray) -> np.uint64:
    """Bring the rows on the left before the others, by the swaps of `partition`; return how many they are."""
    n_behind = NONE
    n_front = NONE
    last = n - ONE
    for k in range(n):
        is_front = (side >> k) & ONE
        moves[last - n_behind] = np.int32(k)
        moves[n_front] = np.int32(k)
        n_behind += ONE - is_front
        n_front += is_front
    for k in range(n_behind):
        i = np.uint64(moves[last - k])
        if i >= n_front:
            break
        j = np.uint64(moves[n_front - ONE - k])
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
        moves[k] = ids[first + order[k]]
    for k in range(n):
        ids[first + k] = moves[k]


@inlined
def finish_subtree(
    slot: int, rows: Rows, table: Table, settings: Settings, nodes: Nodes, frontier: Frontier, scratch: Scratch
) -> None:
    """Grow all that is below the node in a slot, of up to PAIR_ROWS rows; the tree has room for it."""
    few, state, moves = scratch.subtrees, frontier.state, scratch.moves
    number = frontier.node[slot]
    lo = nodes.begin[number]
    n_rows = np.uint64(nodes.n_rows[number])
    keeps = keeps_lanes(settings, table.features.shape[1])
    open_subtree(lo, n_rows, rows, table, settings, few)
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
        pick_rows(lo, begin, n, keeps, rows.addends, few)
        if keeps and n > TWO:
            find_extrema(n, few)
        node, score, bound = open_few(n, key, rows, table, settings, scratch)
        nodes.score[number] = score
        if n > TWO:
            chosen = search_few(lo, fold(key, DRAWS), bound, node, rows, table, settings, scratch)
        else:
            chosen = split_two(lo, fold(key, DRAWS), node, rows, table, settings, scratch)
        if chosen.feature < 0 or chosen.score - score < settings.min_gain:
            continue
        write_choice(number, chosen, n, table, nodes, frontier, scratch)
        middle = begin + part_rows(begin, n, chosen.side, few.order, moves)
        state[N_LEAVES] += 1
        for b in range(2):
            first = begin if b == 0 else middle
            end = middle if b == 0 else begin + n
            size = np.int64(end - first)
            child = append_leaf(lo + np.int64(first), size, nodes, state)
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
    """Finish the subtree of the node in a slot if its rows are few and lack nothing, and the tree has room for it."""
    if subtrees is None:
        return False
    n = nodes.n_rows[frontier.node[slot]]
    state = frontier.state
    if n > PAIR_ROWS or state[N_NODES] + 2 * n > len(nodes.test):
        return False
    lo = nodes.begin[frontier.node[slot]]
    if lacks_values(lo, lo + n, table.features.shape[1], rows.codes):
        return False
    finish_subtree(slot, rows, table, settings, nodes, frontier, scratch)
    return True
