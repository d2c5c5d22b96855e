"""Rows through trees of few leaves without walking: every test of a tree is asked of many rows at once.

A tree has a bit for each leaf, from left to right. A row that a test sends to branch 1 cannot reach the leaves of
branch 0: the test's mask clears their bits. When all tests have been asked, the lowest bit that is left is the row's
leaf (Lucchese et al. 2015, QuickScorer). Asked test by test of a block of rows that stands feature by feature, this is
one compare and one `and` for as many rows as a register holds, and no jump.

How many that are depends on the width of what is compared and cleared. Values become their rank among the thresholds
of their feature, once for all trees, and the bits of a tree are cut into planes of 16 leaves, of which most tests touch
one (Ye et al. 2018, RapidScorer): both are then 16 bits wide whatever the values and the trees are. 1000 trees of
63 leaves took 0.5 s for 100,000 rows, words of 64 bits and float64 values 1.1 s.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined
from spinney._types import (
    ASK_COLUMN,
    ASK_MASK,
    ASK_PLANE,
    ASK_RANK,
    ASK_SIDE,
    FEATURE_SHIFT,
    KIND_BITS,
    MISSING_BITS,
    PLANE_LEAVES,
)

from ..data.binning import BASE, NONE, SCALE, SHIFT, STEPS, TOP, cell_of, cell_of_bits, climb
from .lanes import add_leaf

ONE = np.uint64(1)
TWO = np.uint64(2)
TEST_MASK = np.uint64(0xFFFFFFFF)
MISSING_MASK = np.uint64((1 << MISSING_BITS) - 1)
EVERY_BIT = np.uint64((1 << PLANE_LEAVES) - 1)


# --- Laying out ---------------------------------------------------------------------------------------------------


@door
def count_leaves(
    links: np.ndarray,  # (n_nodes, 2) uint64: see `Tree.hot`
    first_node: np.ndarray,  # (n_trees + 1,) int64
    n_features: int,
    n_below: np.ndarray,  # (n_nodes,) int64, written: leaves below each node
    first_below: np.ndarray,  # (n_nodes,) int64, written: the first of them
) -> int:
    """Number the leaves of each tree from left to right; return how many planes the tests touch in all."""
    n_asked = np.int64(0)
    for t in range(len(first_node) - 1):
        base = first_node[t]
        for back in range(first_node[t + 1] - base):
            node = first_node[t + 1] - 1 - back
            if np.int64((links[node, 1] & TEST_MASK) >> np.uint64(FEATURE_SHIFT)) == n_features:
                n_below[node] = 1
            else:
                child = base + np.int64(links[node, 1] >> np.uint64(32))
                n_below[node] = n_below[child] + n_below[child + 1]
        first_below[base] = 0
        for node in range(base, first_node[t + 1]):
            if np.int64((links[node, 1] & TEST_MASK) >> np.uint64(FEATURE_SHIFT)) < n_features:
                child = base + np.int64(links[node, 1] >> np.uint64(32))
                first_below[child] = first_below[node]
                first_below[child + 1] = first_below[node] + n_below[child]
                last = first_below[node] + n_below[child] - 1
                n_asked += last // PLANE_LEAVES - first_below[node] // PLANE_LEAVES + 1
    return n_asked


@door
def lay_bits(
    cuts: np.ndarray,  # (n_nodes, 2) float64 and
    links: np.ndarray,  # uint64: see `Tree.hot`
    first_node: np.ndarray,
    n_features: int,
    n_below: np.ndarray,
    first_below: np.ndarray,
    columns: np.ndarray,  # (n_features,) int64: place of each feature among those that are asked for
    ranks: np.ndarray,  # (n_nodes,) uint16: of the thresholds among those of their feature
    first_leaf: np.ndarray,  # (n_trees + 1,) int64: place of each tree's leaves
    first_test: np.ndarray,  # (n_trees + 1,) int64, written
    tests: np.ndarray,  # (n_asked, 5) uint16, written: one line for each plane that a test touches
    leaf_values: np.ndarray,  # (n_leaves,) float64, written
) -> None:
    """Write the tests of each tree with the leaves they rule out."""
    at = np.int64(0)
    for t in range(len(first_node) - 1):
        base = first_node[t]
        first_test[t] = at
        for node in range(base, first_node[t + 1]):
            test = links[node, 1] & TEST_MASK
            feature = np.int64(test >> np.uint64(FEATURE_SHIFT))
            begin = first_below[node]
            if feature == n_features:
                leaf_values[first_leaf[t] + begin] = cuts[node, 0]
                continue
            end = begin + n_below[base + np.int64(links[node, 1] >> np.uint64(32))]
            for plane in range(begin // PLANE_LEAVES, (end - 1) // PLANE_LEAVES + 1):
                first = max(begin - plane * PLANE_LEAVES, 0)
                last = min(end - plane * PLANE_LEAVES, PLANE_LEAVES)
                tests[at, ASK_COLUMN] = columns[feature]
                tests[at, ASK_SIDE] = (test >> np.uint64(KIND_BITS)) & MISSING_MASK
                tests[at, ASK_RANK] = ranks[node]
                tests[at, ASK_MASK] = EVERY_BIT ^ ((ONE << np.uint64(last)) - (ONE << np.uint64(first)))
                tests[at, ASK_PLANE] = plane
                at += 1
    first_test[len(first_node) - 1] = at


# --- Scoring ------------------------------------------------------------------------------------------------------


@inlined
def rank_values(
    values: np.ndarray,
    bits: np.ndarray,
    lowest: int,
    first: int,
    n_rows: int,
    features: np.ndarray,
    low: np.ndarray,
    cells: np.ndarray,
    ranges: np.ndarray,
    grid: np.ndarray,
    every: int,
    ranks: np.ndarray,
) -> int:
    """Write how many thresholds of its feature a value is above; return how many values are missing.

    A missing value is above none of them, in a second copy above all.
    """
    last_cell = np.int64(cells.shape[1] - 1)
    n_columns = len(features)
    n_missing = np.int64(0)
    for c in range(n_columns):
        column = np.uint64(c)
        j = features[c]
        base = ranges[BASE, c]
        scale = ranges[SCALE, c]
        top = ranges[TOP, c]
        base_bits = grid[BASE, c]
        shift = grid[SHIFT, c]
        n_steps = np.uint64(grid[STEPS, c])
        if shift > 0:
            for i in range(n_rows):
                value = values[first + i, j]
                cell = cell_of_bits(np.int64(bits[first + i, j]), lowest, base_bits, shift, last_cell)
                n = climb(value, low, column, np.uint64(cells[column, cell]), n_steps)
                ranks[c, i] = NONE if value != value else n
                n_missing += np.int64(value != value)
        elif n_steps <= TWO:  # the usual case: no loop within
            for i in range(n_rows):
                value = values[first + i, j]
                n = np.uint64(cells[column, cell_of(value, base, scale, top)])
                n += np.uint64(value >= low[column, n + ONE]) << ONE
                ranks[c, i] = n + np.uint64(value >= low[column, n])
                n_missing += np.int64(value != value)
        else:
            for i in range(n_rows):
                value = values[first + i, j]
                cell = cell_of(value, base, scale, top)
                ranks[c, i] = climb(value, low, column, np.uint64(cells[column, cell]), n_steps)
                n_missing += np.int64(value != value)
    if n_missing > 0:
        for c in range(n_columns):
            for i in range(n_rows):
                value = values[first + i, features[c]]
                ranks[n_columns + c, i] = every if value != value else ranks[c, i]
    return n_missing


@inlined
def find_lowest(n_planes: int, constants: np.ndarray, live: np.ndarray, word: np.ndarray, place: np.ndarray) -> None:
    """Write the place of the lowest bit of each row, over all planes.

    One array is written in each loop, and nothing is read under a condition: so the compiler takes many rows at a time.
    """
    zero = constants[0]
    one = constants[2]
    width = live.shape[1]
    for i in range(width):
        word[i] = live[0, i]
        place[i] = zero
    step = constants[3]
    for p in range(1, n_planes):
        for i in range(width):
            place[i] += step if word[i] == zero else zero
        for i in range(width):
            found = word[i]
            more = live[p, i]
            word[i] = more if found == zero else found
    for i in range(width):
        word[i] &= ~word[i] + one
    for k in range(4, len(constants), 2):  # the bits of the place of a bit, each by where it is set
        worth = constants[k]
        where = constants[k + 1]
        for i in range(width):
            place[i] |= worth if word[i] & where != zero else zero


@door
def score(
    values: np.ndarray,  # (n_rows, n_features) float32 or float64
    bits: np.ndarray,  # the same memory as signed integers of that size
    lowest: int,  # of those integers
    lo: int,
    hi: int,
    features: np.ndarray,  # (n_columns,) int64: those that are asked for
    low: np.ndarray,  # (n_columns, any) of the type of the values: the least value above each threshold, see `binning`
    cells: np.ndarray,  # these three are laid by `binning.lay_cells`
    ranges: np.ndarray,
    grid: np.ndarray,
    first_tree: int,
    last_tree: int,
    n_raw: int,  # sums to which trees add values by turns; 0: each adds shares of classes
    first_test: np.ndarray,  # (n_trees + 1,) int64
    tests: np.ndarray,  # (n_asked, 5) uint16
    first_leaf: np.ndarray,  # (n_trees + 1,) int64
    leaf_values: np.ndarray,  # (n_leaves,) float64
    shares: np.ndarray,  # as in `route.vote`
    first_share: np.ndarray,
    constants: np.ndarray,  # uint16: 0; all bits; 1; leaves of a plane; then each bit of a place, and where it is set
    ranks: np.ndarray,  # (2 * n_columns, rows of a block) uint16 scratch
    live: np.ndarray,  # (planes + 2, rows of a block) uint16 scratch
    out: np.ndarray,  # (n_raw, n_rows) or (n_rows, n_classes) float64, added to
) -> None:
    """Add up what trees first_tree .. last_tree say of rows lo .. hi, in their order."""
    width = ranks.shape[1]
    word = live[live.shape[0] - 1]
    place = live[live.shape[0] - 2]
    every = constants[1]
    for first in range(lo, hi, width):
        n_rows = min(width, hi - first)
        n_missing = rank_values(values, bits, lowest, first, n_rows, features, low, cells, ranges, grid, every, ranks)
        other = len(features) if n_missing > 0 else 0
        for t in range(first_tree, last_tree):
            n_planes = (first_leaf[t + 1] - first_leaf[t] + PLANE_LEAVES - 1) // PLANE_LEAVES
            for p in range(n_planes):
                for i in range(width):
                    live[p, i] = every
            for test in range(first_test[t], first_test[t + 1]):
                c = np.int64(tests[test, ASK_COLUMN]) + other * np.int64(tests[test, ASK_SIDE])
                p = np.int64(tests[test, ASK_PLANE])
                rank = tests[test, ASK_RANK]
                mask = tests[test, ASK_MASK]
                for i in range(width):
                    live[p, i] &= mask if ranks[c, i] > rank else every
            find_lowest(n_planes, constants, live, word, place)
            at = first_leaf[t]
            if n_raw > 0:
                k = t % n_raw
                for i in range(n_rows):
                    out[k, first + i] += leaf_values[at + np.int64(place[i])]
            else:
                for i in range(n_rows):
                    add_leaf(leaf_values[at + np.int64(place[i])], first_share[t], shares, out, first + i)
