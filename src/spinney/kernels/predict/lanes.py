"""Many rows through trees of thresholds and subsets, eight at a time: the usual way to predict.

A row takes one path. Nodes are read as two words, `cuts` and `links` of `PackedTrees`: what is asked, and where that
leads. Rows come in blocks: a block is copied next to the processor, then goes down one tree after the other.

    find          the leaf of each row in each tree
    find_coded    the same for rows of a training table in codes, in one tree
    vote          what the leaves say, added up over the trees

A leaf leads to itself: it asks for a feature behind the last, which the block keeps below every number, so that a row
stays where it is and no step asks whether it has arrived.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined
from spinney._types import LANES, LOW, MISSING_CODE, OFFSET, THRESHOLD

from ..common.branch import branch_of_known, branch_of_value
from ..common.node_layout import child_of_link, feature_of_link, kind_of_link, missing_of_link
from ..common.structs import Descent, LaneScratch, LeafShares, PackedTrees

NONE = np.uint64(0)
ONE = np.uint64(1)


# --- Down one tree ------------------------------------------------------------------------------------------------


@inlined
def step(node: np.uint64, row: np.uint64, way: Descent) -> np.uint64:
    """The node that a row of the block goes to from `node`; a leaf leads to itself."""
    link = way.links[node, ONE]
    child = way.root + child_of_link(link)
    cut = way.cuts[node, NONE]
    value = np.float64(way.block[row, feature_of_link(link)])
    if way.is_easy:  # the answer is added, not jumped on: which way a row goes cannot be predicted
        return child + np.uint64(branch_of_known(value, cut))
    if len(way.subsets) == 0:  # nor is whether a value is missing
        return child + np.uint64(branch_of_known(value, cut)) + np.uint64(value != value) * missing_of_link(link)
    kind = np.int64(kind_of_link(link))
    if kind != THRESHOLD:
        cut += np.float64(way.first_word)
    return child + np.uint64(branch_of_value(value, kind, cut, np.int64(missing_of_link(link)), way.subsets))


@inlined
def begin(trees: PackedTrees, tree: int, block: np.ndarray, is_easy: bool) -> Descent:
    """What rows of the block need on their way down a tree."""
    return Descent(
        np.uint64(trees.first_node[tree]),
        np.uint64(trees.first_word[tree]),
        is_easy,
        block,
        trees.cuts,
        trees.links,
        trees.subsets,
    )


@inlined
def descend(row: int, last: int, way: Descent, ends: np.ndarray) -> None:
    """Write the leaves of LANES rows of a block from `row` on to `ends`; rows beyond `last` are done as that one.

    They go down together: while one waits for its node to come from memory, the others have theirs. Children stand
    behind their parent, so a row has arrived after as many steps as there are nodes; one that has not, in arrays that
    no one checked, stays where it is.
    """
    root = way.root
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
    for _ in range(len(way.links)):
        next_a = step(a, row_a, way)
        next_b = step(b, row_b, way)
        next_c = step(c, row_c, way)
        next_d = step(d, row_d, way)
        next_e = step(e, row_e, way)
        next_f = step(f, row_f, way)
        next_g = step(g, row_g, way)
        next_h = step(h, row_h, way)
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


# --- Blocks of rows -----------------------------------------------------------------------------------------------


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
    trees: PackedTrees,
    scratch: LaneScratch,
    leaf: np.ndarray,  # (n_rows, n_trees) int32, written: leaves counted from the root of each tree
) -> None:
    """Write the leaf of each row in each tree."""
    block = scratch.block
    ends = scratch.ends
    n_rows = len(values)
    for first in range(0, n_rows, len(block)):
        n = min(len(block), n_rows - first)
        is_easy = fill_values(values, first, n, block) == 0 and len(trees.subsets) == 0
        for t in range(len(trees.first_node)):
            way = begin(trees, t, block, is_easy)
            for i in range(0, n, LANES):
                descend(i, n - 1, way, ends)
                for lane in range(min(LANES, n - i)):
                    leaf[first + i + lane, t] = np.int64(ends[lane] - way.root)


@door
def find_coded(
    codes: np.ndarray,  # (n_rows, stride) uint16
    rows: np.ndarray,  # (n,) int32: the rows of the table to route
    features: np.ndarray,
    edges: np.ndarray,
    trees: PackedTrees,  # one of them
    scratch: LaneScratch,  # of float64
    leaf: np.ndarray,  # (n,) int32, written
) -> None:
    """Write the leaf of rows of a table in codes, in the first tree."""
    block = scratch.block
    ends = scratch.ends
    for first in range(0, len(rows), len(block)):
        n = min(len(block), len(rows) - first)
        is_easy = fill_codes(codes, rows, first, n, features, edges, block) == 0 and len(trees.subsets) == 0
        way = begin(trees, 0, block, is_easy)
        for i in range(0, n, LANES):
            descend(i, n - 1, way, ends)
            for lane in range(min(LANES, n - i)):
                leaf[first + i + lane] = ends[lane]


# --- Votes --------------------------------------------------------------------------------------------------------


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
    trees: PackedTrees,
    mixed: LeafShares,
    scratch: LaneScratch,
    out: np.ndarray,  # (n_rows, n_classes) or (n_rows, 1) float64, added to
) -> None:
    """Add up what the trees say of rows lo .. hi, in the order of the trees."""
    block = scratch.block
    ends = scratch.ends
    cuts = trees.cuts
    shares = mixed.shares
    for first in range(lo, hi, len(block)):
        n = min(len(block), hi - first)
        is_easy = fill_values(values, first, n, block) == 0 and len(trees.subsets) == 0
        for t in range(len(trees.first_node)):
            way = begin(trees, t, block, is_easy)
            at = mixed.first[t]
            for i in range(0, n, LANES):
                descend(i, n - 1, way, ends)
                for lane in range(min(LANES, n - i)):
                    add_leaf(cuts[ends[lane], NONE], at, shares, out, first + i + lane)
