"""Many rows through trees of thresholds by the ranks of their values: five instructions a step.

Each value becomes its rank among the thresholds of its feature, once for all trees, as in `bits`. A node is then one
word of 64 bits, a *step* (`common/node_layout.py`): the rank of a value is added to it, and whether that is above the
threshold carries into the child. Load the step, cut out the place, load the rank, add, shift: nothing is compared. In
`lanes` it is some sixteen instructions and twice the memory, and 100 trees of 5,400 nodes take 2.5 times as long.

ABREAST rows stand side by side in the block, each rank of theirs next to that of the next row, so that one register
says where they are. A leaf leads to itself, since it asks for a place whose rank is always 0: nothing carries. Where
others have a threshold it holds what it says: 100 trees of 5,400 nodes took 245 ms when that was read from elsewhere,
and take 195.

Rows wait for each other at the deepest leaf of theirs. How deep that is cannot be predicted, so most trees are walked
for a number of steps that is known beforehand, whoever has arrived: a jump that goes another way each time costs more.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined
from spinney._types import ABREAST, HOLDS_CLASSES, HOLDS_PLACES

from ..common.node_layout import child_by_rank, held_by_step, lift_rank, place_of_step
from ..common.structs import AskedColumns, BinSegments, FloatTable, LeafShares, RankedTrees, RankScratch, ScoreSpan
from .bits import rank_values
from .lanes import add_leaf

NONE = np.uint64(0)
EVERYWHERE = ~NONE  # no places add up to this
RANK_BITS = np.uint64(16)  # below those of a threshold
EVERY = np.uint16(0xFFFF)  # above every threshold


@inlined
def step(node: np.uint64, steps: np.ndarray, block: np.ndarray, row: np.uint64) -> np.uint64:
    """The node that a row goes to; row: where its first rank stands in the block."""
    word = steps[node]
    return child_by_rank(word, block[row + place_of_step(word)])


@inlined
def descend(steps: np.ndarray, block: np.ndarray, row: np.uint64, n_blind: int, ends: np.ndarray) -> None:
    """Write the leaves of ABREAST rows side by side, counted from the root; steps: those of the tree.

    The first `n_blind` steps bring most rows to their leaves. Then it is asked after each step who has moved: children
    stand behind their parent, so that places add up to more where any has.
    """
    a = NONE
    b = NONE
    c = NONE
    d = NONE
    e = NONE
    f = NONE
    g = NONE
    h = NONE
    i = NONE
    j = NONE
    k = NONE
    m = NONE
    last = EVERYWHERE
    todo = n_blind
    for _ in range(len(steps)):
        for _ in range(todo):
            a = step(a, steps, block, row)
            b = step(b, steps, block, row + np.uint64(1))
            c = step(c, steps, block, row + np.uint64(2))
            d = step(d, steps, block, row + np.uint64(3))
            e = step(e, steps, block, row + np.uint64(4))
            f = step(f, steps, block, row + np.uint64(5))
            g = step(g, steps, block, row + np.uint64(6))
            h = step(h, steps, block, row + np.uint64(7))
            i = step(i, steps, block, row + np.uint64(8))
            j = step(j, steps, block, row + np.uint64(9))
            k = step(k, steps, block, row + np.uint64(10))
            m = step(m, steps, block, row + np.uint64(11))
        total = a + b + c + d + e + f + g + h + i + j + k + m
        if total == last:
            break
        last = total
        todo = 1
    ends[0] = a
    ends[1] = b
    ends[2] = c
    ends[3] = d
    ends[4] = e
    ends[5] = f
    ends[6] = g
    ends[7] = h
    ends[8] = i
    ends[9] = j
    ends[10] = k
    ends[11] = m


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
            for i in range(0, n, ABREAST):  # ranks behind the last row are old ones, and no one asks for theirs
                at = (part + i) * scratch.n_places
                for lane in range(ABREAST):
                    block[at + c * ABREAST + lane] = lift_rank(ranks[c, i + lane])
                for lane in range(ABREAST):
                    block[at + trees.up_place[c] + lane] = lift_rank(ranks[other, i + lane])


@inlined
def add_said(
    node: np.uint64,
    word: np.uint64,
    first_said: int,
    first_share: int,
    trees: RankedTrees,
    shares: np.ndarray,
    out: np.ndarray,
    i: int,
) -> None:
    """Add what a leaf says to out[i]: what its step holds, which was read anyway, or where that says it stands."""
    held = held_by_step(word, RANK_BITS)
    if trees.holds != HOLDS_CLASSES:
        at = np.uint64(first_said) + (held if trees.holds == HOLDS_PLACES else node)
        add_leaf(trees.said[at, NONE], first_share, shares, out, i)
        return
    n_classes = np.uint64(out.shape[1])
    if held < n_classes:
        out[i, held] += 1.0
        return
    row = np.uint64(first_share) + held - n_classes
    for c in range(out.shape[1]):
        out[i, c] += shares[row, c]


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
    shares = mixed.shares
    n_places = scratch.n_places
    n_at_once = len(block) // n_places
    for first in range(span.lo, span.hi, n_at_once):
        n_rows = min(n_at_once, span.hi - first)
        fill_block(table, first, n_rows, columns, segments, trees, scratch)
        for t in range(span.last_tree - span.first_tree):
            steps = trees.steps[trees.first_node[t] : trees.first_node[t + 1]]
            n_blind = trees.n_blind[t]
            first_said = trees.first_said[t]
            first_share = mixed.first[span.first_tree + t]
            for i in range(0, n_rows, ABREAST):
                descend(steps, block, np.uint64(i * n_places), n_blind, ends)
                for lane in range(min(ABREAST, n_rows - i)):
                    node = ends[lane]
                    add_said(node, steps[node], first_said, first_share, trees, shares, out, first + i + lane)
