"""Finish the subtree of a node of few rows in one go, the rows of a branch or a class being bits of one word.

For extra-trees of classes whose rows all weigh 1. A *place* is that of a row among the rows of the subtree, 0 .. 63,
and its bit in every word: those of a node, of a class, of a test's left branch, those whose value is missing. What a
branch has of a class is then a count of bits, and whether a branch is pure a comparison. Numbers, categories of up to
MOST_LEVELS levels, flags and missing values are tested as `drawn_tests` does.

    list_places     the places of a node, the last repeated up to a multiple of four: a bit that is set twice is set
    open_bits       the classes of the rows, once for all nodes below
    search_bits     the features of a node, one after the other, until enough of them vary or none can do better
    try_bits        the test of a feature: its values or levels are looked at once, its left branch becomes a word
    judge_bits      its score; with missing rows on either side, and on a side of their own
    part_places     the order of the rows, as `partition` would leave it: some models keep it

Trees are those of the driver to the bit, and nodes are numbered as it numbers them.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined
from spinney._types import (
    CONTROL_ROWS,
    IS_BINNED,
    IS_CATEGORICAL,
    LOW,
    N_CODES,
    N_LEAVES,
    N_NODES,
    N_WORDS,
    NUMBER,
    OFFSET,
    PAIR_ROWS,
    SUBSET,
    TARGET,
    THRESHOLD,
)

from ..common.bits import count_bits
from ..common.node_layout import pack_test
from ..common.rng import fold
from ..common.structs import (
    BitNode,
    BitTest,
    ClassScratch,
    Frontier,
    Nodes,
    RowBits,
    Rows,
    Scratch,
    Settings,
    Table,
)
from ..common.ties import NO_SCORE, bar_above, certain
from .drawn_tests import spare_bins
from .feature_order import constant_bit, draw_feature, restore_order
from .flags import is_flag, place_of_bit, word_of
from .new_nodes import append_leaf
from .random_tests import draw_threshold
from .search import CHILD_KEYS, DRAWS, TESTS
from .small_subtrees import OPEN_DEPTH, OPEN_KEY, OPEN_NODE
from .small_tests import draw_value, score_left_sums, score_squares

NONE, ONE, THREE, FOUR, LAST_BIT = np.uint64(0), np.uint64(1), np.uint64(3), np.uint64(4), np.uint64(63)
OPEN_ROWS, OPEN_CONSTANT = 3, 4  # rows of a stack of open nodes, behind those of small subtrees
EVERY_LEVEL = ~NONE  # in the place of the number of a draw: all levels go left, for known stands against missing


# --- The rows of a subtree, and of a node in it ---------------------------------------------------------------------


@inlined
def open_bits(lo: int, n: np.uint64, addends: np.ndarray, bits: RowBits) -> None:
    """List the n rows of a subtree from `lo` on, and the rows of each class."""
    order, targets, members = bits.order, bits.targets, bits.members
    first = np.uint64(lo)
    for k in range(n):
        c = np.uint64(addends[TARGET, first + k])
        order[k] = k
        targets[k] = c
        members[c] = NONE
    for k in range(n):
        members[targets[k]] |= ONE << k


@inlined
def list_places(begin: np.uint64, n: np.uint64, bits: RowBits) -> np.uint64:
    """List the places of n rows from position `begin` of the order on, and the last again; return how many.

    They are a multiple of four, so that the ends of most loops can be predicted: half the nodes have up to four rows.
    """
    n_places = (n + THREE) & ~THREE
    last = n - ONE
    for k in range(n_places):
        bits.places[k] = bits.order[begin + min(k, last)]
    return n_places


@inlined
def lowest_place(word: np.uint64) -> np.uint64:
    """Place of the lowest bit that is set; one is."""
    return np.uint64(count_bits((word - ONE) & ~word))


@inlined
def list_class_rows(rows: np.uint64, bits: RowBits, classes: ClassScratch | None) -> tuple[int, int]:
    """List the rows of each class that a node has, of three or more; return how many, and the sum of their squares.

    Of two classes: 1, and how many rows are of class 1.
    """
    if classes is None:
        return np.int64(1), count_bits(rows & bits.members[1])
    n_present = np.int64(0)
    power = np.int64(0)
    left = rows
    while left != NONE:
        word = bits.members[bits.targets[lowest_place(left)]] & rows
        bits.present[n_present] = word
        n_present += 1
        n = count_bits(word)
        power += n * n
        left &= ~word
    return n_present, power


@inlined
def score_rows(n: np.uint64, total: int, classes: ClassScratch | None) -> tuple[float, float]:
    """Score of a node, see `list_class_rows`, and a score that no test can exceed."""
    s = np.float64(total)
    if classes is None:
        return s * s / np.float64(n), certain(s)
    return s / np.float64(n), certain(np.float64(n))


# --- The score of a test --------------------------------------------------------------------------------------------


@inlined
def score_branches(left: np.uint64, node: BitNode, bits: RowBits) -> float:
    """Score of a test that sends these rows left, for three classes or more."""
    power_left = np.int64(0)
    power_right = np.int64(0)
    for k in range(np.uint64(node.n_present)):
        word = bits.present[k]
        a = count_bits(word & left)
        b = count_bits(word & ~left)
        power_left += a * a
        power_right += b * b
    return score_squares(count_bits(left), power_left, power_right, np.int64(node.n))


@inlined
def score_known(left: np.uint64, node: BitNode, bits: RowBits, classes: ClassScratch | None) -> float:
    """Score of a test where nothing is missing."""
    if classes is not None:
        return score_branches(left, node, bits)
    ones = count_bits(left & bits.members[1])
    return score_left_sums(ones, count_bits(left), np.int64(0), np.int64(node.n), node.total)


@inlined
def score_missing(left: np.uint64, node: BitNode, bits: RowBits, classes: ClassScratch | None) -> float:
    """The same where something is; two classes are rounded as `scan_moments` rounds them."""
    if classes is not None:
        return score_branches(left, node, bits)
    w_left = count_bits(left)
    ones = count_bits(left & bits.members[1])
    a = np.float64(ones)
    b = np.float64(node.total - ones)
    return a * a / np.float64(w_left) + b * b / np.float64(np.int64(node.n) - w_left)


@inlined
def judge_bits(
    best: BitTest,
    drawn: BitTest,
    missing: np.uint64,
    node: BitNode,
    bits: RowBits,
    classes: ClassScratch | None,
) -> BitTest:
    """The better of `best` and a test; no row goes left by it if all known values are equal. missing: rows."""
    if missing == NONE:
        score = score_known(drawn.left, node, bits, classes)
        if score > bar_above(best.score):
            return BitTest(drawn.feature, drawn.left, np.int64(-1), drawn.threshold, drawn.draw, score)
        return best
    found = best
    if drawn.left != NONE:
        score = score_missing(drawn.left, node, bits, classes)
        if score > bar_above(found.score):
            found = BitTest(drawn.feature, drawn.left, np.int64(1), drawn.threshold, drawn.draw, score)
        left = drawn.left | missing
        score = score_missing(left, node, bits, classes)
        if score > bar_above(found.score):
            found = BitTest(drawn.feature, left, np.int64(0), drawn.threshold, drawn.draw, score)
    known = node.rows & ~missing
    score = score_missing(known, node, bits, classes)
    if score > bar_above(found.score):
        found = BitTest(drawn.feature, known, np.int64(1), np.inf, EVERY_LEVEL, score)
    return found


# --- The test of a feature ------------------------------------------------------------------------------------------


@inlined
def draw_cut(
    feature: np.uint64, low: float, high: float, node: BitNode, rows: Rows, table: Table, bits: RowBits
) -> float:
    """A threshold of a number; by codes where values are infinite, or leave no room between them."""
    is_drawn, threshold = draw_value(low, high, node.test_key, table.features[NUMBER, feature])
    if is_drawn:
        return threshold
    lowest = np.int64(1 << 16)
    highest = np.int64(0)
    for k in range(node.n):
        code = np.int64(rows.codes[np.uint64(node.lo) + bits.places[k], feature])
        lowest = min(lowest, code) if code > 0 else lowest
        highest = max(highest, code)
    _, threshold = draw_threshold(table.features, table.edges, np.int64(feature), lowest, highest, node.test_key)
    return threshold


@inlined
def mark_missing(feature: np.uint64, node: BitNode, codes: np.ndarray, bits: RowBits) -> np.uint64:
    """The rows of a node that lack a value, as a word."""
    first = np.uint64(node.lo)
    missing = NONE
    for k in range(node.n):
        place = bits.places[k]
        missing |= np.uint64(codes[first + place, feature] == 0) << place
    return missing


@inlined
def load_known(feature: np.uint64, node: BitNode, rows: Rows, table: Table, bits: RowBits) -> tuple[float, float, bool]:
    """Copy the values of a number; return the lowest, the highest, and whether one is missing (NaN)."""
    codes, edges, places, values = rows.codes, table.edges, bits.places, bits.values
    first = np.uint64(node.lo)
    before = np.uint64(table.features[OFFSET, feature])
    low = np.inf
    high = -np.inf
    least = ONE
    for four in range(NONE, node.n_places, FOUR):
        for k in range(four, four + FOUR):
            code = np.uint64(codes[first + places[k], feature])
            least = min(least, code)
            value = edges[LOW, before + max(code, ONE) - ONE]
            values[k] = value
            low = value if value < low else low
            high = value if value > high else high
    if least != NONE:
        return low, high, False
    low = np.inf
    high = -np.inf
    for k in range(node.n_places):
        value = values[k] if codes[first + places[k], feature] != 0 else np.nan
        values[k] = value
        low = value if value < low else low
        high = value if value > high else high
    return low, high, True


@inlined
def try_number(
    best: BitTest,
    feature: np.uint64,
    node: BitNode,
    rows: Rows,
    table: Table,
    bits: RowBits,
    classes: ClassScratch | None,
) -> tuple[bool, BitTest]:
    """Draw and judge a test of a number; False if it does not vary."""
    if table.features[N_CODES, feature] == 0:
        return False, best
    low, high, is_missing = load_known(feature, node, rows, table, bits)
    if not low < high and not (is_missing and low == high):
        return False, best
    missing = NONE
    left = NONE
    threshold = np.inf
    if low < high:
        threshold = draw_cut(feature, low, high, node, rows, table, bits)
        for four in range(NONE, node.n_places, FOUR):
            for k in range(four, four + FOUR):
                left |= np.uint64(bits.values[k] <= threshold) << bits.places[k]
    if is_missing:
        missing = mark_missing(feature, node, rows.codes, bits)
    drawn = BitTest(np.int64(feature), left, np.int64(-1), threshold, NONE, 0.0)
    return True, judge_bits(best, drawn, missing, node, bits, classes)


@inlined
def try_category(
    best: BitTest,
    feature: np.uint64,
    node: BitNode,
    rows: Rows,
    features: np.ndarray,
    bits: RowBits,
    classes: ClassScratch | None,
) -> tuple[bool, BitTest]:
    """Part the levels of a category at random, and judge it; False if it does not vary."""
    codes, places = rows.codes, bits.places
    first = np.uint64(node.lo)
    seen = NONE
    for four in range(NONE, node.n_places, FOUR):
        for k in range(four, four + FOUR):
            code = np.uint64(codes[first + places[k], feature])
            bits.codes[k] = code
            seen |= ONE << code
    if seen & (seen - ONE) == NONE:
        return False, best
    missing = NONE
    left = NONE
    draw = NONE
    if seen & ONE != NONE:
        missing = mark_missing(feature, node, codes, bits)
    known = seen >> ONE
    if known & (known - ONE) != NONE:
        draw_key = fold(node.test_key, np.uint64(features[NUMBER, feature]))
        word = fold(draw_key, draw)
        while word & known == NONE or ~word & known == NONE:
            draw += ONE
            word = fold(draw_key, draw)
        for four in range(NONE, node.n_places, FOUR):
            for k in range(four, four + FOUR):
                left |= ((word >> ((bits.codes[k] - ONE) & LAST_BIT)) & ONE) << places[k]
        left &= ~missing
    drawn = BitTest(np.int64(feature), left, np.int64(-1), np.inf, draw, 0.0)
    return True, judge_bits(best, drawn, missing, node, bits, classes)


@inlined
def try_flag(
    best: BitTest,
    feature: np.uint64,
    node: BitNode,
    rows: Rows,
    table: Table,
    bits: RowBits,
    classes: ClassScratch | None,
) -> tuple[bool, BitTest]:
    """Judge the one test of a flag; False if it does not vary."""
    words, places = rows.words, bits.places
    at, bit = word_of(np.int64(feature), rows), place_of_bit(np.int64(feature), rows)
    first = np.uint64(node.lo)
    is_set = NONE
    for k in range(node.n):
        place = places[k]
        is_set |= ((words[first + place, at] >> bit) & ONE) << place
    if is_set in (NONE, node.rows):
        return False, best
    left = node.rows & ~is_set
    score = score_known(left, node, bits, classes)
    if not score > bar_above(best.score):
        return True, best
    offset = table.features[OFFSET, feature]
    low, high = table.edges[LOW, offset], table.edges[LOW, offset + 1]
    is_drawn, threshold = draw_value(low, high, node.test_key, table.features[NUMBER, feature])
    if not is_drawn:
        one = np.int64(1)
        _, threshold = draw_threshold(table.features, table.edges, np.int64(feature), one, one + one, node.test_key)
    return True, BitTest(np.int64(feature), left, np.int64(-1), threshold, NONE, score)


@inlined
def try_bits(
    best: BitTest,
    feature: np.uint64,
    node: BitNode,
    rows: Rows,
    table: Table,
    bits: RowBits,
    classes: ClassScratch | None,
) -> tuple[bool, BitTest]:
    """Draw and judge a test of a feature; False if it does not vary in the node."""
    if is_flag(np.int64(feature), rows):
        return try_flag(best, feature, node, rows, table, bits, classes)
    if table.features[IS_CATEGORICAL, feature] != 0:
        return try_category(best, feature, node, rows, table.features, bits, classes)
    return try_number(best, feature, node, rows, table, bits, classes)


@inlined
def search_bits(
    constant: np.uint64,
    draw_key: np.uint64,
    node: BitNode,
    rows: Rows,
    table: Table,
    settings: Settings,
    scratch: Scratch,
    bits: RowBits,
) -> tuple[BitTest, np.uint64]:
    """The best test of a node, its feature -1 where none varies; and the features that are known not to vary."""
    permutation, places = scratch.permutation, scratch.places
    n_features = np.int64(table.features.shape[1])
    best = BitTest(np.int64(-1), NONE, np.int64(-1), np.inf, NONE, NO_SCORE)
    n_tried = np.int64(0)
    n_drawn = np.int64(0)
    for k in range(n_features):
        if best.score >= node.bound or n_tried >= settings.n_try:
            break
        feature = np.int64(permutation[k])
        if settings.is_shuffled:
            feature = draw_feature(permutation, places, k, draw_key)
            n_drawn += 1
        bit = constant_bit(feature)
        if constant & bit != NONE:
            continue
        is_varying, best = try_bits(best, np.uint64(feature), node, rows, table, bits, scratch.classes)
        n_tried += np.int64(is_varying)
        constant |= NONE if is_varying else bit
    restore_order(permutation, places, n_drawn)
    return best, constant


# --- The subtree ----------------------------------------------------------------------------------------------------


@inlined
def write_bits(number: int, chosen: BitTest, node: BitNode, table: Table, nodes: Nodes, frontier: Frontier) -> None:
    """Write the test of a node; what will be missing goes to its heavier branch, unless something is here."""
    features, state = table.features, frontier.state
    feature = chosen.feature
    missing = chosen.missing
    if missing < 0:
        missing = np.int64(2 * count_bits(chosen.left) <= np.int64(node.n))
    kind = THRESHOLD
    cut_value = chosen.threshold
    if features[IS_CATEGORICAL, feature] != 0:
        kind = SUBSET
        word = ~NONE
        if chosen.draw != EVERY_LEVEL:
            word = fold(fold(node.test_key, np.uint64(features[NUMBER, feature])), chosen.draw)
        nodes.subsets[state[N_WORDS]] = word & ((ONE << np.uint64(features[N_CODES, feature])) - ONE)
        cut_value = np.float64(state[N_WORDS])
        state[N_WORDS] += 1
    elif features[IS_BINNED, feature] != 0 and chosen.draw != EVERY_LEVEL:
        cut_value = spare_bins(feature, np.int64(1), cut_value, table)
    nodes.test[number] = pack_test(features[NUMBER, feature], missing, kind)
    nodes.first_child[number] = state[N_NODES]
    nodes.cut_value[number] = cut_value


@inlined
def part_places(begin: np.uint64, n: np.uint64, left: np.uint64, order: np.ndarray, moves: np.ndarray) -> np.uint64:
    """Bring the rows of the left branch before the others, by the swaps of `partition`; return how many they are."""
    n_behind = NONE
    n_front = NONE
    last = n - ONE
    for k in range(n):
        is_front = (left >> order[begin + k]) & ONE
        moves[last - n_behind] = np.int32(k)
        moves[n_front] = np.int32(k)
        n_behind += ONE - is_front
        n_front += is_front
    for k in range(n_behind):
        i = np.uint64(moves[last - k])
        if i >= n_front:
            break
        j = np.uint64(moves[n_front - ONE - k])
        place = order[begin + i]
        order[begin + i] = order[begin + j]
        order[begin + j] = place
    return n_front


@inlined
def settle_rows(lo: int, n: np.uint64, rows: Rows, bits: RowBits, moves: np.ndarray) -> None:
    """Bring addends and ids into the order of the leaves."""
    addends, ids, order = rows.addends, rows.ids, bits.order
    first = np.uint64(lo)
    for k in range(n):
        addends[TARGET, first + k] = np.int64(bits.targets[order[k]])
        moves[k] = ids[first + order[k]]
    for k in range(n):
        ids[first + k] = moves[k]


@inlined
def finish_bits(
    slot: int,
    rows: Rows,
    table: Table,
    settings: Settings,
    nodes: Nodes,
    frontier: Frontier,
    scratch: Scratch,
    bits: RowBits,
) -> None:
    """Grow all that is below the node in a slot, of up to PAIR_ROWS rows; the tree has room for it."""
    state, moves, stack, order = frontier.state, scratch.moves, bits.stack, bits.order
    number = frontier.node[slot]
    lo = nodes.begin[number]
    n_rows = np.uint64(nodes.n_rows[number])
    open_bits(lo, n_rows, rows.addends, bits)
    stack[OPEN_NODE, 0] = number
    stack[OPEN_DEPTH, 0] = frontier.depth[slot]
    stack[OPEN_KEY, 0] = frontier.key[slot]
    stack[OPEN_ROWS, 0] = np.int64(~NONE >> (np.uint64(PAIR_ROWS) - n_rows))
    stack[OPEN_CONSTANT, 0] = frontier.constant[slot]
    n_open = np.int64(1)
    while n_open > 0:
        n_open -= 1
        number = stack[OPEN_NODE, n_open]
        depth = stack[OPEN_DEPTH, n_open] + 1
        key = np.uint64(stack[OPEN_KEY, n_open])
        here = np.uint64(stack[OPEN_ROWS, n_open])
        begin = np.uint64(nodes.begin[number] - lo)
        n = np.uint64(nodes.n_rows[number])
        n_present, total = list_class_rows(here, bits, scratch.classes)
        score, bound = score_rows(n, total, scratch.classes)
        nodes.score[number] = score
        n_places = list_places(begin, n, bits)
        node = BitNode(lo, n, n_places, here, n_present, total, bound, fold(key, TESTS))
        chosen, constant = search_bits(
            np.uint64(stack[OPEN_CONSTANT, n_open]), fold(key, DRAWS), node, rows, table, settings, scratch, bits
        )
        if chosen.feature < 0 or chosen.score - score < settings.min_gain:
            continue
        write_bits(number, chosen, node, table, nodes, frontier)
        middle = begin + part_places(begin, n, chosen.left, order, moves)
        state[N_LEAVES] += 1
        for b in range(2):
            first = begin if b == 0 else middle
            end = middle if b == 0 else begin + n
            part = chosen.left if b == 0 else here & ~chosen.left
            size = np.int64(end - first)
            child = append_leaf(lo + np.int64(first), size, nodes, state)
            if depth >= settings.max_depth or size < max(settings.min_samples_split, 2):
                continue
            if part & ~bits.members[bits.targets[order[first]]] == NONE:
                continue
            stack[OPEN_NODE, n_open] = child
            stack[OPEN_DEPTH, n_open] = depth
            stack[OPEN_KEY, n_open] = np.int64(fold(key, CHILD_KEYS + np.uint64(b)))
            stack[OPEN_ROWS, n_open] = np.int64(part)
            stack[OPEN_CONSTANT, n_open] = np.int64(constant)
            n_open += 1
    settle_rows(lo, n_rows, rows, bits, moves)
    frontier.control[CONTROL_ROWS] += np.int64(n_rows)


@inlined
def grow_bits(
    slot: int,
    rows: Rows,
    table: Table,
    settings: Settings,
    nodes: Nodes,
    frontier: Frontier,
    scratch: Scratch,
    bits: RowBits | None,
) -> bool:
    """Finish the subtree of the node in a slot if its rows are few, and the tree has room for it."""
    if bits is None:
        return False
    n = nodes.n_rows[frontier.node[slot]]
    state = frontier.state
    if n > PAIR_ROWS or state[N_NODES] + 2 * n > len(nodes.test):
        return False
    if state[N_WORDS] + n * settings.most_words > len(nodes.subsets):
        return False
    finish_bits(slot, rows, table, settings, nodes, frontier, scratch, bits)
    return True
