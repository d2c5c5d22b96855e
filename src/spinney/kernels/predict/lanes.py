"""Many rows through trees of thresholds and subsets, eight at a time: the usual way to predict.

A row takes one path. Nodes are read as two words, `cuts` and `links` of `PackedTrees`: what is asked, and where that
leads. Rows come in blocks: a block is copied next to the processor, then goes down one tree after the other.

    find          the leaf of each row in each tree
    find_coded    the same for rows of a training table in codes, in one tree
    vote          what the leaves say, added up over the trees
    find_laid     `find` of rows that stand in the block already, as those of a sparse table do
    vote_laid     `vote` of the same

A leaf leads to itself: it asks for a feature behind the last, which the block keeps below every number, so that a row
stays where it is and no step asks whether it has arrived.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined
from spinney._types import LANES, LOW, MISSING_CODE, OFFSET, SUBSET

from ..common.branch import branch_of_known
from ..common.node_layout import child_of_link, feature_of_link, kind_of_link, missing_of_link
from ..common.packed_levels import packed_word
from ..common.structs import Descent, LaneScratch, LeafShares, PackedTrees

NONE = np.uint64(0)
ONE = np.uint64(1)
SUBSET_WORD = np.uint64(SUBSET)
WORD_SHIFT = np.uint64(6)  # of a level: to the word that has its bit
LAST_BIT = np.uint64(63)
EVERY = ~NONE
# What nodes may ask: thresholds of known values; thresholds and masks of levels; thresholds and words of levels.
KNOWN, MASKS, ANY = range(3)


# --- Down one tree ------------------------------------------------------------------------------------------------


@inlined
def find_levels(cut: float, level: np.uint64, is_subset: bool, way: Descent) -> np.uint64:
    """The word of a node's subset that has the bit of a level; of a threshold any word."""
    place = cut if is_subset else 0.0
    doubled = np.uint64(np.int64(place + place))  # odd of a packed subset: `is_packed`, but quicker
    first = (doubled >> ONE) + way.first_word
    if doubled & ONE != NONE:
        return packed_word(way.subsets, first, level)
    return way.subsets[first + (level >> WORD_SHIFT) if is_subset else NONE]


@inlined
def step(node: np.uint64, row: np.uint64, way: Descent, asks: int) -> np.uint64:
    """The node that a row goes to from `node`; a leaf leads to itself. row: where it begins in the block.

    Answers are added and chosen, not jumped on: neither which way a row goes can be predicted, nor what its node asks.
    """
    at = node + node
    link = way.links[at + ONE]
    child = way.root + child_of_link(link)
    cut = way.cuts[at]
    value = np.float64(way.block[row + feature_of_link(link)])
    branch = np.uint64(branch_of_known(value, cut))
    if asks == KNOWN:
        return child + branch
    if asks == MASKS or len(way.subsets) > 0:
        is_subset = kind_of_link(link) == SUBSET_WORD
        level = np.uint64(np.int64(value if value == value else 0.0))
        levels = way.links[at] if asks == MASKS else find_levels(cut, level, is_subset, way)
        is_out = (levels >> (level & LAST_BIT)) ^ ONE
        branch = (is_out if is_subset else branch) & ONE & (NONE if value != value else EVERY)
    return child + branch + np.uint64(value != value) * missing_of_link(link)


@inlined
def begin(trees: PackedTrees, tree: int, block: np.ndarray) -> Descent:
    """What rows of the block need on their way down a tree.

    Arrays have one axis: with two, each index is a product, and 100 trees took 0.17 s that take 0.14 s.
    """
    return Descent(
        np.uint64(trees.first_node[tree]),
        np.uint64(trees.first_word[tree]),
        block.reshape(-1),
        trees.cuts.reshape(-1),
        trees.links.reshape(-1),
        trees.subsets,
    )


@inlined
def descend_by(asks: int, row: int, last: int, width: int, way: Descent, ends: np.ndarray) -> None:
    """Write the leaves of LANES rows of a block from `row` on to `ends`; rows beyond `last` are done as that one.

    They go down together: while one waits for its node to come from memory, the others have theirs. Children stand
    behind their parent, so a row has arrived after as many steps as there are nodes; one that has not, in arrays that
    no one checked, stays where it is.
    """
    root = way.root
    row_a = np.uint64(row * width)
    row_b = np.uint64(min(row + 1, last) * width)
    row_c = np.uint64(min(row + 2, last) * width)
    row_d = np.uint64(min(row + 3, last) * width)
    row_e = np.uint64(min(row + 4, last) * width)
    row_f = np.uint64(min(row + 5, last) * width)
    row_g = np.uint64(min(row + 6, last) * width)
    row_h = np.uint64(min(row + 7, last) * width)
    a = root
    b = root
    c = root
    d = root
    e = root
    f = root
    g = root
    h = root
    for _ in range(len(way.links) // 2):
        next_a = step(a, row_a, way, asks)
        next_b = step(b, row_b, way, asks)
        next_c = step(c, row_c, way, asks)
        next_d = step(d, row_d, way, asks)
        next_e = step(e, row_e, way, asks)
        next_f = step(f, row_f, way, asks)
        next_g = step(g, row_g, way, asks)
        next_h = step(h, row_h, way, asks)
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
def descend(asks: int, row: int, last: int, width: int, way: Descent, ends: np.ndarray) -> None:
    """The same, by a loop of its own for each thing that nodes may ask."""
    if asks == KNOWN:
        descend_by(KNOWN, row, last, width, way, ends)
    elif asks == MASKS:
        descend_by(MASKS, row, last, width, way, ends)
    else:
        descend_by(ANY, row, last, width, way, ends)


@inlined
def find_asked(trees: PackedTrees, n_missing: int) -> int:
    """What the nodes may ask of the rows of a block: KNOWN, MASKS or ANY."""
    if trees.has_masks:
        return MASKS
    return KNOWN if n_missing == 0 and len(trees.subsets) == 0 else ANY


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


@inlined
def find_in_block(n_missing: int, trees: PackedTrees, scratch: LaneScratch, leaf: np.ndarray) -> None:
    """Write the leaf of the first rows of the block in each tree."""
    block = scratch.block
    ends = scratch.ends
    asks = find_asked(trees, n_missing)
    n_rows = len(leaf)
    for t in range(len(trees.first_node)):
        way = begin(trees, t, block)
        for i in range(0, n_rows, LANES):
            descend(asks, i, n_rows - 1, block.shape[1], way, ends)
            for lane in range(min(LANES, n_rows - i)):
                leaf[i + lane, t] = np.int64(ends[lane] - way.root)


@door
def find(
    values: np.ndarray,  # (n_rows, n_features) float32 or float64
    trees: PackedTrees,
    scratch: LaneScratch,
    leaf: np.ndarray,  # (n_rows, n_trees) int32, written: leaves counted from the root of each tree
) -> None:
    """Write the leaf of each row in each tree."""
    block = scratch.block
    n_rows = len(values)
    for first in range(0, n_rows, len(block)):
        n = min(len(block), n_rows - first)
        find_in_block(fill_values(values, first, n, block), trees, scratch, leaf[first : first + n])


@door
def find_laid(n_missing: int, trees: PackedTrees, scratch: LaneScratch, leaf: np.ndarray) -> None:
    """Write the leaf of the first rows of the block in each tree; leaf: (n_rows, n_trees) int32, as in `find`.

    n_missing: 0 where none of their values is missing.
    """
    find_in_block(n_missing, trees, scratch, leaf)


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
        asks = find_asked(trees, fill_codes(codes, rows, first, n, features, edges, block))
        way = begin(trees, 0, block)
        for i in range(0, n, LANES):
            descend(asks, i, n - 1, block.shape[1], way, ends)
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


@inlined
def vote_in_block(n_missing: int, trees: PackedTrees, mixed: LeafShares, scratch: LaneScratch, out: np.ndarray) -> None:
    """Add up what the trees say of the first rows of the block."""
    block = scratch.block
    ends = scratch.ends
    cuts = trees.cuts
    shares = mixed.shares
    asks = find_asked(trees, n_missing)
    n_rows = len(out)
    for t in range(len(trees.first_node)):
        way = begin(trees, t, block)
        at = mixed.first[t]
        for i in range(0, n_rows, LANES):
            descend(asks, i, n_rows - 1, block.shape[1], way, ends)
            for lane in range(min(LANES, n_rows - i)):
                add_leaf(cuts[ends[lane], NONE], at, shares, out, i + lane)


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
    for first in range(lo, hi, len(block)):
        n = min(len(block), hi - first)
        vote_in_block(fill_values(values, first, n, block), trees, mixed, scratch, out[first : first + n])


@door
def vote_laid(
    n_missing: int,  # 0 where no value is missing
    trees: PackedTrees,
    mixed: LeafShares,
    scratch: LaneScratch,
    out: np.ndarray,  # as in `vote`, but of the first rows of the block
) -> None:
    """Add up what the trees say of the first rows of the block, in the order of the trees."""
    vote_in_block(n_missing, trees, mixed, scratch, out)
