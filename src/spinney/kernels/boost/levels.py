"""One level of a boosted tree whose rows come in parts, each of them somewhere else: on disk, on another machine.

    begin_split ─► for each part: split_rows ─► sums and counts of all parts added up
                     (node of each row, smaller children)        │
                   sum_nodes, if find_test asks for counts       ▼
                                              end_split ─► find_test, for each child that may be split

What is done to a part reads its rows and writes what is given for it, nothing else. Nodes have their numbers while the
tree grows. A packed sum of 0, which no row has, marks a row that the tree is not grown on: it finds its leaf all the
same.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined
from spinney._types import BIN_CODE, BIN_N, BIN_WEIGHT, IS_CATEGORICAL, N_CODES

from ..common.node_layout import pack_test
from ..common.structs import (
    BoostFrontier,
    BoostNodes,
    BoostScratch,
    BoostSettings,
    BoostTable,
    Bounds,
    ByteRows,
    LeastHessians,
    LevelTests,
    NodeCounts,
    Part,
    PassScratch,
    RowSums,
)
from .category_chance import asks_for_luck, square_of, worth_of_luck
from .driver import bound_children, make_children, may_split, open_child
from .rows import read_code
from .scan import UNKNOWN, hessian_of, score_of, value_of
from .search import (
    best_feature,
    keep_test,
    list_feature_bins,
    may_be_small,
    note_cut,
    scan_again,
    scan_features,
    scan_listed,
    scan_uncounted,
)
from .shards import mark_branches, open_spans, spread_bundles, subtract_histogram, sum_range

NO_TEST, FOUND, NEEDS_COUNTS = range(3)  # what a search ends with


# A test in one word: where its codes begin in `LevelTests.goes_to`, the first byte of its feature in a row, whether it
# takes two, and whether there is a test: if not, whatever the code, the first place is taken.
START_MASK = np.uint64((1 << 32) - 1)
PLACE_SHIFT = np.uint64(32)
PLACE_MASK = np.uint64((1 << 30) - 1)
IS_WIDE = np.uint64(1 << 62)
HAS_TEST_SHIFT = np.uint64(63)


# --- Rows of a part -----------------------------------------------------------------------------------------


@door
def split_rows(
    rows: ByteRows,
    node: np.ndarray,  # (n_rows,) uint8 or int32
    tests: LevelTests,
    table: BoostTable,
    scratch: PassScratch,
    moved: np.ndarray,  # (n_rows,) as `node`, written: the nodes after the level
    counts: np.ndarray,  # (n_nodes,) int64, added to: rows of the nodes after the level
    histogram: np.ndarray,  # (n_summed * histogram_size,) int64, added to
) -> None:
    """Send the rows of a part to the children of their nodes, and add one child of each to its histogram.

    Some thousand rows at a time, which are in the cache when those to be summed are copied, and copied when they are
    added: of 2**18 rows at once, sums took 1.3 times as long as of 2**16.
    """
    n_rows = np.int64(len(node))
    size = np.int64(len(scratch.chosen))
    for lo in range(0, n_rows, size):
        n_chosen = route_rows(rows, node, tests, lo, min(lo + size, n_rows), moved, counts, scratch.chosen)
        if n_chosen > 0:
            sum_chosen(rows, moved, tests.place_of, n_chosen, table, scratch, histogram)


@inlined
def route_rows(
    rows: ByteRows,
    node: np.ndarray,
    tests: LevelTests,
    lo: int,
    hi: int,
    moved: np.ndarray,
    counts: np.ndarray,
    chosen: np.ndarray,  # (hi - lo,) int32, written
) -> int:
    """Send rows lo .. hi to the children of their nodes; list those to be summed, return how many.

    Which nodes rows are in cannot be predicted, so nothing is jumped on, and a row is sent on by two words that are
    looked up: the test of its node, and where the code leads.
    """
    codes = rows.codes
    sums = rows.sums
    test = tests.test
    goes_to = tests.goes_to
    stride = np.uint64(tests.n_words * 8)
    n_chosen = np.uint64(0)
    for k in range(lo, hi):
        i = np.uint64(k)
        mine = test[np.uint64(node[i])]
        code = read_code(codes, i * stride + (mine >> PLACE_SHIFT & PLACE_MASK), (mine & IS_WIDE) != 0)
        to = goes_to[(mine & START_MASK) + code * (mine >> HAS_TEST_SHIFT)]
        child = to >> np.int32(1)
        is_in = np.uint64(sums[i] != 0)
        moved[i] = child
        counts[np.uint64(child)] += np.int64(is_in)
        chosen[n_chosen] = np.int32(k)
        n_chosen += is_in * np.uint64(to & np.int32(1))
    return np.int64(n_chosen)


@door
def sum_nodes(
    rows: ByteRows,  # sums of 0 are passed over
    node: np.ndarray,  # (n_rows,) uint8 or int32
    place_of: np.ndarray,  # (n_nodes,) int64: which histogram a node's rows are added to; -1: none
    table: BoostTable,
    scratch: PassScratch,
    histogram: np.ndarray,  # (n_histograms * histogram_size,) int64, added to
) -> None:
    """Add the packed sums of the rows of some nodes to their histograms."""
    chosen = scratch.chosen
    n_rows = np.int64(len(node))
    size = np.int64(len(chosen))
    for lo in range(0, n_rows, size):
        n_chosen = np.uint64(0)
        for k in range(lo, min(lo + size, n_rows)):
            i = np.uint64(k)
            chosen[n_chosen] = np.int32(k)
            n_chosen += np.uint64(rows.sums[i] != 0) * np.uint64(place_of[np.uint64(node[i])] >= 0)
        if n_chosen > 0:
            sum_chosen(rows, node, place_of, np.int64(n_chosen), table, scratch, histogram)


@inlined
def sum_chosen(
    rows: ByteRows,
    node: np.ndarray,
    place_of: np.ndarray,
    n_chosen: int,
    table: BoostTable,
    scratch: PassScratch,
    histogram: np.ndarray,
) -> None:
    """Add the packed sums of the rows that are listed to the histograms of their nodes.

    Rows are copied first, node by node: one histogram at a time stays in the cache.
    """
    chosen = scratch.chosen
    starts = scratch.starts
    buffer = scratch.buffer
    n_histograms = len(starts) - 2
    words_0 = rows.words
    sums_0 = rows.sums
    words = buffer.words
    sums = buffer.sums
    n_words = np.uint64(table.n_words)
    for k in range(n_histograms + 2):
        starts[k] = 0
    for j in range(n_chosen):
        starts[place_of[np.uint64(node[chosen[j]])] + 2] += 1
    for k in range(2, n_histograms + 2):
        starts[k] += starts[k - 1]
    for j in range(n_chosen):
        i = np.uint64(chosen[j])
        k = np.uint64(place_of[np.uint64(node[i])] + 1)
        to = np.uint64(starts[k])
        starts[k] += 1
        sums[to] = sums_0[i]
        for w in range(n_words):
            words[to * n_words + w] = words_0[i * n_words + w]
    for k in range(n_histograms):  # each start has moved to where the next one was
        sum_range(buffer, starts[k], starts[k + 1], table, histogram, k * table.histogram_size)


@door
def sum_rows(rows: ByteRows, n_rows: int, table: BoostTable, histogram: np.ndarray) -> None:
    """Add the packed sums of all rows of a part to a histogram."""
    sum_range(rows, np.int64(0), n_rows, table, histogram, np.int64(0))


@door
def sum_node_squares(
    sums: np.ndarray,  # (n_rows,) int64
    node: np.ndarray,  # (n_rows,) int32
    weights: np.ndarray,  # (n_rows,) or (1,) int64
    shift: int,
    squares: np.ndarray,  # (n_nodes,) int64, added to
) -> None:
    """Add the squared gradients of the rows of a part to those of their nodes."""
    is_unit = len(weights) == 1
    for i in range(len(sums)):
        squares[node[i]] += square_of(sums[i], np.int64(1) if is_unit else weights[i] >> shift)


@door
def spread(histogram: np.ndarray, total: int, table: BoostTable) -> None:
    """Write the sums, or counts, of features that share a byte from those of the byte; total: of all rows."""
    spread_bundles(histogram, np.int64(0), total, table)


# --- Nodes --------------------------------------------------------------------------------------------------


@door
def begin_root(
    n_rows: int,
    total: int,
    table: BoostTable,
    nodes: BoostNodes,
    frontier: BoostFrontier,
    settings: BoostSettings,
) -> bool:
    """Fill the first slot, which has the sums already, with the root; whether it may be split."""
    nodes.n_rows[0] = n_rows
    frontier.node[0] = 0
    frontier.number[0] = 0
    frontier.depth[0] = 0
    frontier.key[0] = 1
    frontier.packed[0] = total
    spread_bundles(frontier.histogram, np.int64(0), total, table)
    frontier.lower[0] = nodes.lower[0]
    frontier.upper[0] = nodes.upper[0]
    open_spans(np.int64(0), table, frontier)
    return may_split(np.int64(0), nodes, frontier, settings)


@door
def begin_split(
    slot: int,
    table: BoostTable,
    nodes: BoostNodes,
    frontier: BoostFrontier,
    settings: BoostSettings,
    goes_left: np.ndarray,  # (n_codes + 1,) uint8, written
) -> int:
    """Write the test of an open node, give it children, and write which codes go left.

    Returns the branch of less hessian, which likely has fewer rows: either may be summed, the other follows.
    """
    make_children(slot, nodes, frontier, settings)
    mark_branches(slot, table, frontier, goes_left)
    node = frontier.number[slot]
    nodes.test[node] = pack_test(frontier.feature[slot], frontier.missing[slot], frontier.kind[slot])
    nodes.first_child[node] = frontier.first_child[slot]
    nodes.last_code[node] = frontier.cut[slot]
    nodes.cut_value[node] = frontier.cut_value[slot]
    nodes.gain[node] = frontier.gain[slot]
    left = frontier.left_packed[slot]
    return np.int64(hessian_of(frontier.packed[slot] - left) < hessian_of(left))


@door
def end_split(
    slot: int,
    small: int,  # the branch whose rows were summed
    table: BoostTable,
    nodes: BoostNodes,
    frontier: BoostFrontier,
    settings: BoostSettings,
) -> None:
    """Open the children of a node, of which the rows are counted and those of one branch summed in its slot."""
    if settings.has_monotone:
        bound_children(slot, table, nodes, frontier, settings)
    is_any_open = False
    for b in range(2):
        is_any_open |= open_child(slot, b, table, nodes, frontier, settings)
    if is_any_open:
        part = frontier.right_slot[slot] if small == 1 else frontier.left_slot[slot]
        rest = frontier.left_slot[slot] if small == 1 else frontier.right_slot[slot]
        size = table.histogram_size
        left = frontier.left_packed[slot]
        spread_bundles(frontier.histogram, part * size, frontier.packed[slot] - left if small == 1 else left, table)
        subtract_histogram(slot, part * size, rest * size, table, frontier)


# --- The search by counts -----------------------------------------------------------------------------------


@inlined
def count_known_left(feature: int, cut: int, missing: int, counts: NodeCounts, table: BoostTable) -> int:
    """Rows of a node that a threshold sends to branch 0; missing: branch of missing values, -1 for none."""
    at = table.histogram_start[feature]
    n_left = counts.rows[at] if missing == 0 else np.int64(0)
    for code in range(1, cut + 1):
        n_left += counts.rows[at + code]
    return n_left


@inlined
def note_counts(feature: int, n: int, counts: NodeCounts, table: BoostTable, scratch: BoostScratch) -> int:
    """Write the rows and weights of the n listed bins of a feature, and of its codes; return the weight of the node."""
    bins = scratch.bins
    at = table.histogram_start[feature]
    is_weighted = len(counts.weights) > 1
    weight = np.int64(0)
    for code in range(table.features[N_CODES, feature] + 1):
        scratch.row_counts[code] = counts.rows[at + code]
        scratch.weight_counts[code] = counts.weights[at + code] if is_weighted else np.int64(0)
        weight += scratch.weight_counts[code]
    for k in range(n):
        bins[BIN_N, k] = scratch.row_counts[bins[BIN_CODE, k]]
        bins[BIN_WEIGHT, k] = scratch.weight_counts[bins[BIN_CODE, k]]
    return weight


@door
def find_test(
    slot: int,
    counts: NodeCounts,
    table: BoostTable,
    rows: ByteRows,  # none are looked at
    nodes: BoostNodes,
    frontier: BoostFrontier,
    scratch: BoostScratch,
    settings: BoostSettings,
) -> int:
    """Find the best test of an open node, as `search` does, by sums and counts alone.

    NEEDS_COUNTS: the best test may have too small a branch, and rows have not been counted; ask again when they are.
    Every feature keeps its sums.
    """
    total = frontier.packed[slot]
    n_rows = nodes.n_rows[frontier.number[slot]]
    bounds = Bounds(frontier.lower[slot], frontier.upper[slot])
    own = score_of(total, value_of(total, bounds.lower, bounds.upper, settings), settings)
    frontier.noise[slot] = 0.0
    if asks_for_luck(settings):
        frontier.noise[slot] = worth_of_luck(counts.squares, total, settings)
    every = Part(np.int64(0), np.int64(len(table.used)))
    scan_features(slot, every, table, rows, nodes, frontier, scratch, settings)
    best = scratch.best
    while True:
        f = best_feature(own, table, best, settings)
        if f < 0:
            return NO_TEST
        feature = table.used[f]
        is_category = table.features[IS_CATEGORICAL, feature] != 0
        if is_category and best.cut[f] == UNKNOWN:
            n, missing = list_feature_bins(slot, feature, table, rows, nodes, frontier, scratch, settings)
            scan_uncounted(slot, f, n, missing, table, frontier, scratch, settings)
            continue
        if best.cut[f] == UNKNOWN:
            least = LeastHessians(np.int64(settings.min_hessian), np.int64(settings.min_hessian))
            note_cut(f, scan_again(slot, feature, least, table, frontier, scratch, settings), scratch)
        needs_counts = not best.is_counted[f] and may_be_small(best.left[f], total, settings)
        if needs_counts and not counts.is_known:
            return NEEDS_COUNTS
        if needs_counts and not is_category and settings.min_weight_leaf == 0:
            n_left = count_known_left(feature, best.cut[f], best.missing[f], counts, table)
            needs_counts = min(n_left, n_rows - n_left) < settings.min_samples_leaf
        n = np.int64(0)
        missing = np.int64(0)
        if is_category or needs_counts:
            n, missing = list_feature_bins(slot, feature, table, rows, nodes, frontier, scratch, settings)
        if not needs_counts:
            keep_test(slot, f, n, own, table, frontier, scratch, settings)
            return FOUND
        weight = note_counts(feature, n, counts, table, scratch)
        whole = RowSums(total, n_rows, weight, frontier.noise[slot] if is_category else 0.0)
        unknown = RowSums(missing, scratch.row_counts[0], scratch.weight_counts[0], 0.0)
        found = scan_listed(feature, n, whole, unknown, bounds, table, scratch.bins, settings)
        note_cut(f, found, scratch)
        best.is_counted[f] = True
