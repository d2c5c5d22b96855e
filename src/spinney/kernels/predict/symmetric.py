"""Rows through symmetric trees, which ask the same at all nodes of a depth: the answers are the number of the leaf.

Such a tree of depth d asks d questions in all. Each is one compare for as many rows as a register holds, on ranks of
values among the thresholds as in `bits`, and its answer is a bit of the leaf's number, from left to right. What is left
is to look up what leaves say. That is what costs: so it is done for several trees at once, whose sum stays in a
register, in the order of the trees. A tree of depth 6 takes 0.35 ns a row, as bits of its 64 leaves 3.5 ns.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined
from spinney._types import SYMMETRIC_ROWS, SYMMETRIC_TESTS, SYMMETRIC_TREES

from ..common.structs import AskedColumns, BinSegments, FloatTable, ScoreSpan, SymmetricScratch, SymmetricTrees
from .bits import rank_values

# where the leaves' numbers of each of eight trees begin: known to the compiler, which keeps its registers for the rest
SECOND = np.uint64(SYMMETRIC_ROWS)
THIRD = np.uint64(2 * SYMMETRIC_ROWS)
FOURTH = np.uint64(3 * SYMMETRIC_ROWS)
FIFTH = np.uint64(4 * SYMMETRIC_ROWS)
SIXTH = np.uint64(5 * SYMMETRIC_ROWS)
SEVENTH = np.uint64(6 * SYMMETRIC_ROWS)
EIGHTH = np.uint64(7 * SYMMETRIC_ROWS)


@inlined
def number_leaves(tree: int, trees: SymmetricTrees, other: int, scratch: SymmetricScratch, place: np.ndarray) -> None:
    """Write the number of the leaf of each row of a block in a tree; place: as many as there are rows.

    other: where the ranks begin whose missing values are above all; 0 where none is missing.
    """
    ranks = scratch.ranks
    zero = scratch.constants[0]
    column = trees.column
    missing = trees.missing
    first = trees.first_test[tree]
    for test in range(first, trees.first_test[tree + 1], SYMMETRIC_TESTS):
        a = column[test] + other * missing[test]
        b = column[test + 1] + other * missing[test + 1]
        c = column[test + 2] + other * missing[test + 2]
        rank_a = trees.rank[test]
        rank_b = trees.rank[test + 1]
        rank_c = trees.rank[test + 2]
        worth_a = trees.worth[test]
        worth_b = trees.worth[test + 1]
        worth_c = trees.worth[test + 2]
        if test == first:
            for i in range(len(place)):
                place[i] = zero
        for i in range(len(place)):
            place[i] |= (
                (worth_a if ranks[a, i] > rank_a else zero)
                | (worth_b if ranks[b, i] > rank_b else zero)
                | (worth_c if ranks[c, i] > rank_c else zero)
            )


@inlined
def add_eight(tree: int, step: int, trees: SymmetricTrees, place: np.ndarray, out: np.ndarray) -> None:
    """Add what eight trees say, `step` apart from `tree` on, in their order; out: of the rows of a block."""
    values = trees.leaf_values
    leaf_a = trees.first_leaf[tree]
    leaf_b = trees.first_leaf[tree + step]
    leaf_c = trees.first_leaf[tree + 2 * step]
    leaf_d = trees.first_leaf[tree + 3 * step]
    leaf_e = trees.first_leaf[tree + 4 * step]
    leaf_f = trees.first_leaf[tree + 5 * step]
    leaf_g = trees.first_leaf[tree + 6 * step]
    leaf_h = trees.first_leaf[tree + 7 * step]
    for row in range(len(out)):
        i = np.uint64(row)
        total = out[i]
        total += values[leaf_a + np.uint64(place[i])]
        total += values[leaf_b + np.uint64(place[SECOND + i])]
        total += values[leaf_c + np.uint64(place[THIRD + i])]
        total += values[leaf_d + np.uint64(place[FOURTH + i])]
        total += values[leaf_e + np.uint64(place[FIFTH + i])]
        total += values[leaf_f + np.uint64(place[SIXTH + i])]
        total += values[leaf_g + np.uint64(place[SEVENTH + i])]
        total += values[leaf_h + np.uint64(place[EIGHTH + i])]
        out[i] = total


@inlined
def add_one(tree: int, trees: SymmetricTrees, place: np.ndarray, out: np.ndarray) -> None:
    """Add what one tree says; out: of the rows of a block."""
    values = trees.leaf_values
    leaf = trees.first_leaf[tree]
    for row in range(len(out)):
        i = np.uint64(row)
        out[i] += values[leaf + np.uint64(place[i])]


@door
def score_symmetric(
    table: FloatTable,  # (n_rows, n_features)
    span: ScoreSpan,  # of whole rounds, of n_raw trees each
    columns: AskedColumns,  # of numbers alone
    segments: BinSegments,  # over the thresholds of these columns: `low` is the least value above each
    trees: SymmetricTrees,
    scratch: SymmetricScratch,
    out: np.ndarray,  # (n_raw, n_rows) float64, added to
) -> None:
    """Add up what some trees say of some rows; each sum in the order of its trees."""
    place = scratch.place
    step = span.n_raw
    for first in range(span.lo, span.hi, SYMMETRIC_ROWS):
        n_rows = min(SYMMETRIC_ROWS, span.hi - first)
        n_missing = rank_values(table, first, n_rows, columns, segments, scratch.constants[1], scratch.ranks)
        other = len(columns.feature) if n_missing > 0 else 0
        tree = span.first_tree
        while tree + SYMMETRIC_TREES * step <= span.last_tree:
            for k in range(step):
                for g in range(SYMMETRIC_TREES if k == 0 or not trees.is_shared else 0):
                    at = g * SYMMETRIC_ROWS
                    number_leaves(tree + k + g * step, trees, other, scratch, place[at : at + n_rows])
                add_eight(tree + k, step, trees, place, out[k, first : first + n_rows])
            tree += SYMMETRIC_TREES * step
        for last in range(tree, span.last_tree):
            number_leaves(last, trees, other, scratch, place[:n_rows])
            add_one(last, trees, place, out[(last - span.first_tree) % step, first : first + n_rows])
