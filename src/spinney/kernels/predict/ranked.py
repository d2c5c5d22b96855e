"""Many rows through trees of thresholds by the ranks of their values: five instructions a step.

Each value becomes its rank among the thresholds of its feature, once for all trees, as in `bits`. A node is then one
word of 64 bits, a *step* (`common/node_layout.py`): the rank of a value is added to it, and whether that is above the
threshold carries into the child. Load the step, cut out the place, load the rank, add, shift: nothing is compared. In
`lanes` it is some sixteen instructions and twice the memory, and 100 trees of 5,400 nodes take 2.5 times as long.

LANES rows stand side by side in the block, each rank of theirs next to that of the next row, so that one register says
where they are. A leaf's step has room for every rank: it leads to itself.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined
from spinney._types import LANES

from ..common.node_layout import child_by_rank, lift_rank, place_of_step
from ..common.structs import AskedColumns, BinSegments, FloatTable, LeafShares, RankedTrees, RankScratch, ScoreSpan
from .bits import rank_values
from .lanes import add_leaf

NONE = np.uint64(0)
EVERY = np.uint16(0xFFFF)  # above every threshold
BLIND_STEPS = 3  # before it is asked who has arrived: 100 trees took 378 ms, with 1 413, with 5 378


@inlined
def step(node: np.uint64, steps: np.ndarray, block: np.ndarray, row: np.uint64) -> np.uint64:
    """The node that a row goes to; row: where its first rank stands in the block."""
    word = steps[node]
    return child_by_rank(word, block[row + place_of_step(word)])


@inlined
def descend(steps: np.ndarray, block: np.ndarray, row: np.uint64, ends: np.ndarray) -> None:
    """Write the leaves of LANES rows side by side, counted from the root; steps: those of the tree."""
    a = NONE
    b = NONE
    c = NONE
    d = NONE
    e = NONE
    f = NONE
    g = NONE
    h = NONE
    for _ in range(0, len(steps), BLIND_STEPS + 1):
        for _ in range(BLIND_STEPS):
            a = step(a, steps, block, row)
            b = step(b, steps, block, row + np.uint64(1))
            c = step(c, steps, block, row + np.uint64(2))
            d = step(d, steps, block, row + np.uint64(3))
            e = step(e, steps, block, row + np.uint64(4))
            f = step(f, steps, block, row + np.uint64(5))
            g = step(g, steps, block, row + np.uint64(6))
            h = step(h, steps, block, row + np.uint64(7))
        old_a, old_b, old_c, old_d, old_e, old_f, old_g, old_h = a, b, c, d, e, f, g, h
        a = step(a, steps, block, row)
        b = step(b, steps, block, row + np.uint64(1))
        c = step(c, steps, block, row + np.uint64(2))
        d = step(d, steps, block, row + np.uint64(3))
        e = step(e, steps, block, row + np.uint64(4))
        f = step(f, steps, block, row + np.uint64(5))
        g = step(g, steps, block, row + np.uint64(6))
        h = step(h, steps, block, row + np.uint64(7))
        moved = (
            (a ^ old_a)
            | (b ^ old_b)
            | (c ^ old_c)
            | (d ^ old_d)
            | (e ^ old_e)
            | (f ^ old_f)
            | (g ^ old_g)
            | (h ^ old_h)
        )
        if moved == NONE:
            break
    ends[0] = a
    ends[1] = b
    ends[2] = c
    ends[3] = d
    ends[4] = e
    ends[5] = f
    ends[6] = g
    ends[7] = h


@inlined
def fill_block(
    table: FloatTable,
    first: int,
    n_rows: int,
    columns: AskedColumns,
    segments: BinSegments,
    trees: RankedTrees,
    scratch: RankScratch,
) -> None:
    """Write the lifted ranks of rows to the block."""
    ranks = scratch.ranks
    block = scratch.block
    n_columns = len(columns.feature)
    for part in range(0, n_rows, ranks.shape[1]):
        n = min(ranks.shape[1], n_rows - part)
        n_missing = rank_values(table, first + part, n, columns, segments, EVERY, ranks)
        for c in range(n_columns):
            other = n_columns + c if n_missing > 0 and columns.goes_up[c] else c
            for i in range(0, n, LANES):  # ranks behind the last row are old ones, and no one asks for theirs
                at = (part + i) * scratch.n_places
                for lane in range(LANES):
                    block[at + c * LANES + lane] = lift_rank(ranks[c, i + lane])
                for lane in range(LANES):
                    block[at + trees.up_place[c] + lane] = lift_rank(ranks[other, i + lane])


@door
def vote_ranked(
    table: FloatTable,  # (n_rows, n_features)
    span: ScoreSpan,  # `n_raw` is not read
    columns: AskedColumns,  # of numbers alone
    segments: BinSegments,  # over their thresholds, as in `bits`
    trees: RankedTrees,
    mixed: LeafShares,  # of all trees of the forest, of which these are the ones from span.first_tree on
    scratch: RankScratch,
    out: np.ndarray,  # (n_rows, n_classes) or (n_rows, 1) float64, added to
) -> None:
    """Add up what trees say of rows, in the order of the trees."""
    block = scratch.block
    ends = scratch.ends
    cuts = trees.cuts
    shares = mixed.shares
    n_places = scratch.n_places
    n_at_once = len(block) // n_places
    for first in range(span.lo, span.hi, n_at_once):
        n_rows = min(n_at_once, span.hi - first)
        fill_block(table, first, n_rows, columns, segments, trees, scratch)
        for t in range(span.first_tree, span.last_tree):
            root = trees.first_node[t - span.first_tree]
            steps = trees.steps[root : trees.first_node[t - span.first_tree + 1]]
            for i in range(0, n_rows, LANES):
                descend(steps, block, np.uint64(i * n_places), ends)
                for lane in range(min(LANES, n_rows - i)):
                    leaf = np.uint64(root) + ends[lane]
                    add_leaf(cuts[leaf, NONE], mixed.first[t], shares, out, first + i + lane)
