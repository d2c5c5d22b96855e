"""Best cut of a sparse feature where addends are packed, see `cells`: by its cells, and one row for all others.

    codes   3 3 7 3 3 1 3 3        the node's rows; 3 is the usual code
    cells       7     1            stand for themselves
    rest                3          stands for the six others: their sums are those of the node less those of the cells

The searches of other features then take three rows in the place of eight. Sums are whole numbers, so that they find the
same cut. Of three classes or more the rest is a row for each class that it has, or several where 16 bits do not hold
its weight.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined
from spinney._types import (
    ALL,
    BIN_N,
    BIN_SQUARE,
    BIN_SUM,
    BIN_WEIGHT,
    HELD,
    LEFT,
    MISSING,
    N_ALL,
    N_MISSING,
    PAIR_ROWS,
    PRESENT,
    Q_ALL,
    Q_MISSING,
    S_ALL,
    S_MISSING,
    TARGET,
    W_ALL,
    W_MISSING,
    WEIGHT,
)

from ..common.category_chance import no_chance
from ..common.structs import (
    BinWalk,
    Candidate,
    Cells,
    ClassScratch,
    CodeSums,
    DrawnCells,
    DrawnTest,
    OpenNode,
    PackedScratch,
    Rows,
    Scratch,
    Settings,
)
from .candidates import none_better
from .cells import fill_column, list_cells, range_of_cells
from .random_tests import judge_class_sums, sum_right
from .scan_many_classes import SHIFT, order_rows, scan_many_classes, walk_rows
from .scan_moments import scan_moments
from .scan_two_classes import scan_buckets, scan_two_classes
from .small_tests import judge_left_classes, judge_left_sums

LOW_HALF = 0xFFFF
WEIGHT_SHIFT = 15  # pieces of 16 bits are no more than weight >> 15, and one for each class


@inlined
def join_two(usual: int, n_cells: int, n: int, wide: np.ndarray, scratch: Scratch, cells: Cells) -> int:
    """List cells and rest as rows of two classes, `column` and cells.wide; return their number. wide: of n rows."""
    at, found, column = cells.at, cells.found, scratch.packed.column
    rest = (scratch.totals[W_ALL] << 32) | scratch.totals[S_ALL]
    for c in range(np.uint64(n_cells)):
        here = wide[np.uint64(at[c])]
        cells.wide[c] = here
        column[c] = found[c]
        rest -= here
    if n_cells == n:
        return n_cells
    cells.wide[n_cells] = rest
    column[n_cells] = np.int32(usual)
    return n_cells + 1


@inlined
def scan_sparse_of_two(
    best: Candidate, feature: int, n_cells: int, node: OpenNode, scratch: Scratch, packed: PackedScratch, cells: Cells
) -> Candidate:
    """The cut for two classes; the cells have been listed."""
    totals, n = scratch.totals, node.hi - node.lo
    lowest, highest = range_of_cells(feature, n_cells, n, cells)
    if lowest == highest:
        return none_better(best)
    if n <= PAIR_ROWS or 2 * n_cells > n:
        fill_column(feature, n_cells, n, cells, packed.column)
        return scan_two_classes(best, lowest, highest, node, totals, packed, scratch.counts, scratch.histogram)
    m = join_two(np.int64(cells.usual[feature - cells.first]), n_cells, n, packed.wide, scratch, cells)
    joined = PackedScratch(
        packed.addends, cells.wide, packed.column, packed.pair_sums, packed.pair_scores, packed.bucket_keys
    )
    return scan_buckets(best, m, lowest, highest, totals, joined, scratch.counts, scratch.histogram)


@inlined
def join_many(usual: int, n_cells: int, n_present: int, scratch: Scratch, sums: np.ndarray, cells: Cells) -> int:
    """The same of three classes or more, `column` and cells.addends."""
    at, found, column, addends = cells.at, cells.found, scratch.packed.column, scratch.packed.addends
    for k in range(n_present):
        sums[LEFT, k] = sums[HELD, k]
    for c in range(np.uint64(n_cells)):
        here = np.int64(addends[np.uint64(at[c])])
        cells.addends[c] = np.int32(here)
        column[c] = found[c]
        sums[LEFT, np.uint64(here >> SHIFT)] -= here & LOW_HALF
    m = n_cells
    for k in range(n_present):
        rest = sums[LEFT, k]
        while rest > 0:
            piece = min(rest, LOW_HALF)
            cells.addends[m] = np.int32((k << SHIFT) | piece)
            column[m] = np.int32(usual)
            rest -= piece
            m += 1
    return m


@inlined
def scan_sparse_of_many(
    best: Candidate, feature: int, n_cells: int, node: OpenNode, scratch: Scratch, packed: PackedScratch, cells: Cells
) -> Candidate:
    """The cut for three classes or more."""
    n, weight = node.hi - node.lo, scratch.totals[W_ALL]
    lowest, highest = range_of_cells(feature, n_cells, n, cells)
    if lowest == highest:
        return none_better(best)
    if n <= PAIR_ROWS or 2 * (n_cells + node.n_present + (weight >> WEIGHT_SHIFT)) > n:
        fill_column(feature, n_cells, n, cells, packed.column)
        return scan_many_classes(best, lowest, highest, node, scratch)
    usual = np.int64(cells.usual[feature - cells.first])
    m = join_many(usual, n_cells, node.n_present, scratch, scratch.classes.sums, cells)
    joined = PackedScratch(
        cells.addends, packed.wide, packed.column, packed.pair_sums, packed.pair_scores, packed.bucket_keys
    )
    few = OpenNode(
        node.lo, node.lo + m, node.list_lo, node.n_present, node.centre, node.power, node.is_packed,
        node.lower, node.upper, node.test_key, node.tie_key,
    )  # fmt: skip
    side = order_rows(m, lowest, highest, packed.column, packed.bucket_keys, scratch.counts)
    return walk_rows(best, side, few, weight, joined, scratch.classes.sums)


@inlined
def scan_sparse(
    best: Candidate,
    feature: int,
    node: OpenNode,
    rows: Rows,
    scratch: Scratch,
    packed: PackedScratch,
    classes: ClassScratch | None,
    cells: Cells | None,
) -> Candidate:
    """Best cut of a sparse feature over the rows of a node, for any number of classes."""
    if cells is None:
        return none_better(best)
    scratch.totals[N_MISSING] = 0
    n_cells = list_cells(feature, node.lo, node.hi, rows.ids, cells)
    if n_cells == 0:
        return none_better(best)
    if classes is None:
        return scan_sparse_of_two(best, feature, n_cells, node, scratch, packed, cells)
    return scan_sparse_of_many(best, feature, n_cells, node, scratch, packed, cells)


# --- Random tests ---------------------------------------------------------------------------------------------------


@inlined
def judge_cells_of_many(
    best: Candidate, drawn: DrawnCells, node: OpenNode, rows: Rows, scratch: Scratch, sums: np.ndarray
) -> Candidate:
    """Judge a random test of three classes or more by Gini; the cut is 0 if it is chosen."""
    addends, at, found, is_usual_left = rows.addends, drawn.at, drawn.found, drawn.is_usual_left
    is_unit = len(addends) == 1
    for k in range(node.n_present):
        c = sums[PRESENT, k]
        sums[LEFT, c] = sums[ALL, c] if is_usual_left else np.int64(0)
    for k in range(np.uint64(drawn.n_cells)):
        is_left = np.int64(found[k]) <= drawn.cut
        if is_left != is_usual_left:
            i = np.uint64(node.lo + np.int64(at[k]))
            w = np.int64(1) if is_unit else addends[WEIGHT, i]
            sums[LEFT, np.uint64(addends[TARGET, i])] += w if is_left else -w
    return judge_left_classes(best, node, sums, scratch.totals[W_ALL])


@inlined
def judge_cells(
    best: Candidate, drawn: DrawnCells, node: OpenNode, rows: Rows, scratch: Scratch, classes: ClassScratch | None
) -> Candidate:
    """The same for any target, where nothing but the sums of the left branch is asked for."""
    if classes is not None:
        return judge_cells_of_many(best, drawn, node, rows, scratch, classes.sums)
    addends, at, found, is_usual_left = rows.addends, drawn.at, drawn.found, drawn.is_usual_left
    totals = scratch.totals
    is_unit = len(addends) == 1
    left = totals[S_ALL] if is_usual_left else np.int64(0)
    w_left = totals[W_ALL] if is_usual_left else np.int64(0)
    for k in range(np.uint64(drawn.n_cells)):
        is_left = np.int64(found[k]) <= drawn.cut
        if is_left != is_usual_left:
            i = np.uint64(node.lo + np.int64(at[k]))
            w = np.int64(1) if is_unit else addends[WEIGHT, i]
            left += addends[TARGET, i] if is_left else -addends[TARGET, i]
            w_left += w if is_left else -w
    return judge_left_sums(best, left, w_left, node, totals)


@inlined
def judge_moments_of_cells(
    best: Candidate,
    drawn: DrawnCells,
    node: OpenNode,
    rows: Rows,
    settings: Settings,
    xlogx: np.ndarray,
    scratch: Scratch,
) -> Candidate:
    """Judge a random test of numbers or two classes by all that a branch sums up to, as `judge_moments`."""
    addends, at, found, is_usual_left = rows.addends, drawn.at, drawn.found, drawn.is_usual_left
    bins, totals = scratch.bins, scratch.totals
    last = len(addends) - 1
    is_all = -np.int64(is_usual_left)  # all bits, or none
    count = totals[N_ALL] & is_all
    total = totals[S_ALL] & is_all
    weight = totals[W_ALL] & is_all
    square = totals[Q_ALL] & is_all
    for k in range(np.uint64(drawn.n_cells)):
        is_left = np.int64(found[k]) <= drawn.cut
        if is_left != is_usual_left:
            i = np.uint64(node.lo + np.int64(at[k]))
            sign = np.int64(1) if is_left else np.int64(-1)
            count += sign
            total += sign * addends[TARGET, i]
            weight += sign * (np.int64(1) if last == 0 else addends[WEIGHT, i])
            square += np.int64(0) if last == 0 else sign * addends[last, i]
    bins[BIN_N, 0] = count
    bins[BIN_SUM, 0] = total
    bins[BIN_WEIGHT, 0] = weight
    bins[BIN_SQUARE, 0] = square
    totals[S_MISSING] = 0
    totals[W_MISSING] = 0
    totals[Q_MISSING] = 0
    two = DrawnTest(np.int64(2), drawn.cut, np.inf, drawn.cut, np.int64(0), drawn.sign)
    sum_right(two, node.hi - node.lo, bins, totals)
    walk = BinWalk(np.int64(2), drawn.sign, no_chance())
    return scan_moments(best, walk, node, settings, xlogx, bins, totals, scratch.rates)


@inlined
def judge_classes_of_cells(
    best: Candidate,
    drawn: DrawnCells,
    node: OpenNode,
    rows: Rows,
    settings: Settings,
    xlogx: np.ndarray,
    scratch: Scratch,
) -> Candidate:
    """The same of three classes or more, as `judge_classes`."""
    addends, at, found, is_usual_left = rows.addends, drawn.at, drawn.found, drawn.is_usual_left
    sums, totals = scratch.classes.sums, scratch.totals
    is_unit = len(addends) == 1
    is_all = -np.int64(is_usual_left)
    for p in range(node.n_present):
        c = sums[PRESENT, p]
        sums[LEFT, c] = sums[ALL, c] & is_all
        sums[MISSING, c] = 0
    count = totals[N_ALL] & is_all
    weight = totals[W_ALL] & is_all
    for k in range(np.uint64(drawn.n_cells)):
        is_left = np.int64(found[k]) <= drawn.cut
        if is_left != is_usual_left:
            i = np.uint64(node.lo + np.int64(at[k]))
            sign = np.int64(1) if is_left else np.int64(-1)
            w = sign * (np.int64(1) if is_unit else addends[WEIGHT, i])
            sums[LEFT, np.uint64(addends[TARGET, i])] += w
            count += sign
            weight += w
    totals[W_MISSING] = 0
    two = DrawnTest(np.int64(2), drawn.cut, np.inf, drawn.cut, np.int64(0), np.int64(0))
    return judge_class_sums(best, two, CodeSums(count, weight), node, settings, xlogx, scratch)


@inlined
def judge_all_of_cells(
    best: Candidate,
    drawn: DrawnCells,
    node: OpenNode,
    rows: Rows,
    settings: Settings,
    xlogx: np.ndarray,
    scratch: Scratch,
    classes: ClassScratch | None,
) -> Candidate:
    """The same of any target; the cut is 0 if it is chosen."""
    if classes is not None:
        return judge_classes_of_cells(best, drawn, node, rows, settings, xlogx, scratch)
    return judge_moments_of_cells(best, drawn, node, rows, settings, xlogx, scratch)
