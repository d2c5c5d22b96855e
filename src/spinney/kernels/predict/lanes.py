"""Which branch a row takes: one rule on codes for growing, its twin on values for everything after.

A test packs `feature << 4 | missing branch << 2 | kind`. Its argument is a float64: the threshold of THRESHOLD
(x <= threshold takes branch 0), the first word of the bitset of SUBSET (a set bit takes branch 0).
A missing value takes the missing branch; a level that the table did not have is missing to `table.schema` already.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined
from spinney._types import FEATURE_SHIFT, KIND_BITS, LANES, LOW, MISSING_BITS, MISSING_CODE, OFFSET, THRESHOLD

from ..common.branch import branch_of_value

ONE = np.uint64(1)
# the parts of a link, as unsigned words: mixing signed and unsigned 64-bit integers would make floats
KIND_WORD = np.uint64((1 << KIND_BITS) - 1)
MISSING_WORD = np.uint64(KIND_BITS)
MISSING_BITS_WORD = np.uint64((1 << MISSING_BITS) - 1)
FEATURE_WORD = np.uint64(FEATURE_SHIFT)
TEST_WORD = np.uint64(0xFFFFFFFF)
CHILD_WORD = np.uint64(32)
NONE = np.uint64(0)


@inlined
def step(
    node: np.uint64,
    row: np.uint64,
    base: np.uint64,
    first_word: np.uint64,
    is_easy: bool,  # no value of the block is missing, no test is a subset
    block: np.ndarray,
    cuts: np.ndarray,
    links: np.ndarray,
    subsets: np.ndarray,
) -> np.uint64:
    """The node that a row of the block goes to from `node`; a leaf leads to itself."""
    link = links[node, ONE]
    child = base + (link >> CHILD_WORD)
    cut = cuts[node, NONE]
    value = np.float64(block[row, (link & TEST_WORD) >> FEATURE_WORD])
    if is_easy:  # the answer is added, not jumped on: which way a row goes cannot be predicted
        return child + np.uint64(value > cut)
    missing = np.int64((link >> MISSING_WORD) & MISSING_BITS_WORD)
    kind = np.int64(link & KIND_WORD)
    if kind != THRESHOLD:
        cut += np.float64(first_word)
    return child + np.uint64(branch_of_value(value, kind, cut, missing, subsets))


@inlined
def descend(
    row: int,
    last: int,  # last row of the block: rows beyond it are done as this one
    base: int,  # root of the tree
    first_word: int,  # of the tree's subsets
    is_easy: bool,
    block: np.ndarray,
    cuts: np.ndarray,
    links: np.ndarray,
    subsets: np.ndarray,
    ends: np.ndarray,  # (LANES,) uint64, written
) -> None:
    """Find the leaves of LANES rows of a block from `row` on.

    They go down together: while one waits for its node to come from memory, the others have theirs. Children stand
    behind their parent, so a row has arrived after as many steps as there are nodes; one that has not, in arrays that
    no one checked, stays where it is.
    """
    root = np.uint64(base)
    word = np.uint64(first_word)
    row_a = np.uint64(row)
    row_b = np.uint64(min(row + 1, last))
    row_c = np.uint64(min(row + 2, last))
    row_d = np.uint64(min(row + 3, last))
    row_e = np.uint64(min(row + 4, last))
    row_f = np.uint64(min(row + 5, last))
    row_g = np.uint64(min(row + 6, last))
    row_h = np.uint64(min(row + 7, last))
    a = root
    b = root
    c = root
    d = root
    e = root
    f = root
    g = root
    h = root
    for _ in range(len(links)):
        next_a = step(a, row_a, root, word, is_easy, block, cuts, links, subsets)
        next_b = step(b, row_b, root, word, is_easy, block, cuts, links, subsets)
        next_c = step(c, row_c, root, word, is_easy, block, cuts, links, subsets)
        next_d = step(d, row_d, root, word, is_easy, block, cuts, links, subsets)
        next_e = step(e, row_e, root, word, is_easy, block, cuts, links, subsets)
        next_f = step(f, row_f, root, word, is_easy, block, cuts, links, subsets)
        next_g = step(g, row_g, root, word, is_easy, block, cuts, links, subsets)
        next_h = step(h, row_h, root, word, is_easy, block, cuts, links, subsets)
        moved = (
            (a ^ next_a)
            | (b ^ next_b)
            | (c ^ next_c)
            | (d ^ next_d)
            | (e ^ next_e)
            | (f ^ next_f)
            | (g ^ next_g)
            | (h ^ next_h)
        )
        if moved == NONE:
            break
        a = next_a
        b = next_b
        c = next_c
        d = next_d
        e = next_e
        f = next_f
        g = next_g
        h = next_h
    ends[0] = a
    ends[1] = b
    ends[2] = c
    ends[3] = d
    ends[4] = e
    ends[5] = f
    ends[6] = g
    ends[7] = h


@inlined
def fill_values(values: np.ndarray, first: int, n_rows: int, block: np.ndarray) -> int:
    """Copy rows of a table to the block; return how many values are missing.

    The column behind the last holds what a leaf asks for: below every number, so that a row stays where it is.
    """
    n_features = values.shape[1]
    n_missing = np.int64(0)
    for i in range(n_rows):
        for j in range(n_features):
            value = values[first + i, j]
            n_missing += np.int64(value != value)
            block[i, j] = value
        block[i, n_features] = -np.inf
    return n_missing


@inlined
def fill_codes(
    codes: np.ndarray,
    rows: np.ndarray,
    first: int,
    n_rows: int,
    features: np.ndarray,
    edges: np.ndarray,
    block: np.ndarray,
) -> int:
    """The same from codes: a value behind a code takes every branch that the code takes."""
    n_features = features.shape[1]
    n_missing = np.int64(0)
    for i in range(n_rows):
        row = np.int64(rows[first + i])
        for j in range(n_features):
            code = np.int64(codes[row, j])
            n_missing += np.int64(code == MISSING_CODE)
            block[i, j] = np.nan if code == MISSING_CODE else edges[LOW, features[OFFSET, j] + code - 1]
        block[i, n_features] = -np.inf
    return n_missing


@door
def find(
    values: np.ndarray,  # (n_rows, n_features) float32 or float64
    cuts: np.ndarray,  # (n_nodes, 2) float64: the argument of the test, and `links`
    links: np.ndarray,  # the same memory as uint64: first child << 32 | test in column 1; see `Tree.hot`
    first_node: np.ndarray,  # (n_trees,) int64
    subsets: np.ndarray,
    first_word: np.ndarray,  # (n_trees,) int64
    block: np.ndarray,  # (any, n_features + 1) scratch, of the type of the values
    ends: np.ndarray,  # (LANES,) uint64 scratch
    leaf: np.ndarray,  # (n_rows, n_trees) int32, written: leaves counted from the root of each tree
) -> None:
    """Write the leaf of each row in each tree."""
    n_rows = len(values)
    for first in range(0, n_rows, len(block)):
        n = min(len(block), n_rows - first)
        is_easy = fill_values(values, first, n, block) == 0 and len(subsets) == 0
        for t in range(len(first_node)):
            base = first_node[t]
            for i in range(0, n, LANES):
                descend(i, n - 1, base, first_word[t], is_easy, block, cuts, links, subsets, ends)
                for lane in range(min(LANES, n - i)):
                    leaf[first + i + lane, t] = np.int64(ends[lane]) - base


@door
def find_coded(
    codes: np.ndarray,
    rows: np.ndarray,  # (n,) int32: the rows of the table to route
    features: np.ndarray,
    edges: np.ndarray,
    cuts: np.ndarray,
    links: np.ndarray,
    subsets: np.ndarray,
    block: np.ndarray,  # (any, n_features + 1) float64 scratch
    ends: np.ndarray,
    leaf: np.ndarray,  # (n,) int32, written
) -> None:
    """Write the leaf of rows of a table in codes, in one tree."""
    for first in range(0, len(rows), len(block)):
        n = min(len(block), len(rows) - first)
        is_easy = fill_codes(codes, rows, first, n, features, edges, block) == 0 and len(subsets) == 0
        for i in range(0, n, LANES):
            descend(i, n - 1, 0, 0, is_easy, block, cuts, links, subsets, ends)
            for lane in range(min(LANES, n - i)):
                leaf[first + i + lane] = ends[lane]


@inlined
def add_leaf(cut: float, first_share: int, shares: np.ndarray, out: np.ndarray, i: int) -> None:
    """Add what a leaf says to out[i]: a value, a class, or a row of shares."""
    if out.shape[1] == 1:
        out[i, 0] += cut
        return
    code = np.int64(cut)
    if code >= 0:
        out[i, code] += 1.0
        return
    for c in range(out.shape[1]):
        out[i, c] += shares[first_share - 1 - code, c]


@door
def vote(
    values: np.ndarray,  # as in `find`
    lo: int,
    hi: int,
    cuts: np.ndarray,
    links: np.ndarray,
    first_node: np.ndarray,
    subsets: np.ndarray,
    first_word: np.ndarray,
    shares: np.ndarray,  # (n_mixed, n_classes) float64: class shares of mixed leaves, one row of zeros where none are
    first_share: np.ndarray,  # (n_trees,) int64
    block: np.ndarray,
    ends: np.ndarray,
    out: np.ndarray,  # (n_rows, n_classes) or (n_rows, 1) float64, added to
) -> None:
    """Add up what the trees say of rows lo .. hi, in the order of the trees."""
    for first in range(lo, hi, len(block)):
        n = min(len(block), hi - first)
        is_easy = fill_values(values, first, n, block) == 0 and len(subsets) == 0
        for t in range(len(first_node)):
            at = first_share[t]
            for i in range(0, n, LANES):
                descend(i, n - 1, first_node[t], first_word[t], is_easy, block, cuts, links, subsets, ends)
                for lane in range(min(LANES, n - i)):
                    add_leaf(cuts[ends[lane], NONE], at, shares, out, first + i + lane)
