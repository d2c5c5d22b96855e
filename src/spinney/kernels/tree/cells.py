"""Cells of columns that are almost always one value, see `table.cells`: those of a node, and a column filled with them.

A sparse feature has no place in a row. What a node holds of it is found from its entries, by where their rows stand
now (`Cells.place`), or in a node of few rows by looking the feature up in what each row has: both take time by the
cells and not by the rows. Where a search must see every row, the usual code and the cells are written to a column.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel

from ..common.bits import bit_place
from ..common.structs import Cells, ColumnCells, RowCells, Rows

NONE, ONE, SIX, LAST_BIT = np.uint64(0), np.uint64(1), np.uint64(6), np.uint64(63)


@inlined
def is_sparse(feature: int, cells: Cells | None) -> bool:
    """Whether the codes of a feature are cells; known at compile time where none are."""
    if cells is None:
        return False
    return feature >= cells.first


# --- The cells of a node --------------------------------------------------------------------------------------------


@inlined
def find_cell(which: int, row: int, row_begin: np.ndarray, feature: np.ndarray) -> int:
    """Where a row of the table has its cell of sparse feature number `which`; -1: it has the usual code."""
    low = row_begin[row]
    end = row_begin[row + 1]
    high = end
    while low < high:
        middle = (low + high) >> 1
        if np.int64(feature[middle]) < which:
            low = middle + 1
        else:
            high = middle
    if low < end and np.int64(feature[low]) == which:
        return low
    return np.int64(-1)


@inlined
def take_gathered(which: int, cells: Cells) -> int:
    """List the cells of sparse feature number `which` in the node under search, where they are put together."""
    at, found, node_at, node_code = cells.at, cells.found, cells.node_at, cells.node_code
    n = np.uint64(cells.n_of[which])
    first = np.uint64(cells.first_of[which])
    for c in range(n):
        at[c] = node_at[first + c]
        found[c] = node_code[first + c]
    return np.int64(n)


@kernel
def ask_rows(which: int, lo: int, hi: int, ids: np.ndarray, cells: RowCells) -> int:
    """List the cells of sparse feature number `which` in rows lo .. hi by asking each of them."""
    at, found = cells.at, cells.found
    n = np.int64(0)
    for i in range(lo, hi):
        e = find_cell(which, np.int64(ids[i]), cells.row_begin, cells.feature)
        if e >= 0:
            at[n] = i - lo
            found[n] = cells.row_code[e]
            n += 1
    return n


@kernel
def pass_column(begin: int, end: int, lo: int, hi: int, cells: ColumnCells) -> int:
    """List the cells of rows lo .. hi among cells begin .. end of a column."""
    place, row, code, at, found = cells.place, cells.row, cells.code, cells.at, cells.found
    size = hi - lo
    n = np.int64(0)
    for e in range(np.uint64(begin), np.uint64(end)):
        k = np.int64(place[np.uint64(row[e])]) - lo
        at[np.uint64(n)] = k
        found[np.uint64(n)] = np.int32(code[e])
        n += np.int64((k >= 0) & (k < size))
    return n


@inlined
def list_cells(feature: int, lo: int, hi: int, ids: np.ndarray, cells: Cells) -> int:
    """List the cells of a feature in rows lo .. hi, `at` counted from lo and `found`; return how many there are."""
    which = feature - cells.first
    if cells.is_gathered[0] != 0:
        return take_gathered(which, cells)
    begin, end = cells.begin[which], cells.begin[which + 1]
    if (hi - lo) * cells.row_cost < end - begin:
        by_row = RowCells(cells.row_begin, cells.feature, cells.row_code, cells.at, cells.found)
        return ask_rows(which, lo, hi, ids, by_row)
    return pass_column(begin, end, lo, hi, ColumnCells(cells.place, cells.row, cells.code, cells.at, cells.found))


@inlined
def range_of_cells(feature: int, n_cells: int, n: int, cells: Cells) -> tuple[int, int]:
    """The lowest and the highest code of n rows whose cells have been listed."""
    found = cells.found
    usual = np.int32(cells.usual[feature - cells.first])
    if n_cells == n:
        usual = found[0]
    lowest = usual
    highest = usual
    for c in range(np.uint64(n_cells)):
        lowest = min(lowest, found[c])
        highest = max(highest, found[c])
    return np.int64(lowest), np.int64(highest)


@inlined
def fill_column(feature: int, n_cells: int, n: int, cells: Cells, column: np.ndarray) -> None:
    """Write the codes of n rows whose cells have been listed to column[0 ..]."""
    at, found = cells.at, cells.found
    usual = np.int32(cells.usual[feature - cells.first])
    for k in range(np.uint64(n)):
        column[k] = usual
    for c in range(np.uint64(n_cells)):
        column[np.uint64(at[c])] = found[c]


# --- Whole columns, single codes ------------------------------------------------------------------------------------


@kernel
def fill_whole(feature: int, lo: int, hi: int, ids: np.ndarray, cells: Cells) -> None:
    """Write the codes of rows lo .. hi to these rows of `whole`."""
    whole, at, found = cells.whole, cells.at, cells.found
    n_cells = list_cells(feature, lo, hi, ids, cells)
    usual = cells.usual[feature - cells.first]
    for i in range(np.uint64(lo), np.uint64(hi)):
        whole[i, 0] = usual
    for c in range(n_cells):
        whole[lo + np.int64(at[c]), 0] = np.uint16(found[c])


@inlined
def column_of(feature: int, lo: int, hi: int, rows: Rows, cells: Cells | None) -> tuple[np.ndarray, int]:
    """Where the codes of a feature that is no flag are for rows lo .. hi: an array, and its column."""
    if cells is None:
        return rows.codes, np.int64(feature)
    if feature < cells.first:
        return rows.codes, np.int64(feature)
    fill_whole(feature, lo, hi, rows.ids, cells)
    return cells.whole, np.int64(0)


@inlined
def code_of_cell(i: int, feature: int, ids: np.ndarray, cells: Cells | None) -> int:
    """The code of one row."""
    if cells is None:
        return np.int64(0)
    which = feature - cells.first
    e = find_cell(which, np.int64(ids[i]), cells.row_begin, cells.feature)
    return np.int64(cells.row_code[e]) if e >= 0 else np.int64(cells.usual[which])


# --- Which features may vary ----------------------------------------------------------------------------------------


@inlined
def mark_cells(lo: int, hi: int, ids: np.ndarray, cells: Cells | None) -> None:
    """Mark the features of which rows lo .. hi have cells, or all where these are many rows: others do not vary.

    Of fewer rows the cells are put together by features, until `forget_cells`.
    """
    if cells is None:
        return
    mark_node(lo, hi, ids, cells)


@kernel
def mark_node(lo: int, hi: int, ids: np.ndarray, cells: Cells) -> None:
    """Mark the features of a node, and put its cells together."""
    marks, feature, row_begin = cells.marks, cells.feature, cells.row_begin
    is_large = hi - lo > cells.most_marked
    for w in range(np.uint64(len(marks))):
        marks[w] = ~NONE if is_large else NONE
    if is_large:
        return
    n_of = cells.n_of
    n_cells = np.int64(0)
    if hi - lo <= cells.most_gathered:
        for i in range(np.uint64(lo), np.uint64(hi)):
            row = np.uint64(ids[i])
            n_cells += row_begin[row + ONE] - row_begin[row]
    is_gathered = hi - lo <= cells.most_gathered and n_cells <= len(cells.node_at)
    cells.is_gathered[0] = np.int64(is_gathered)
    for i in range(np.uint64(lo), np.uint64(hi)):
        row = np.uint64(ids[i])
        for e in range(np.uint64(row_begin[row]), np.uint64(row_begin[row + ONE])):
            which = np.uint64(feature[e])
            marks[which >> SIX] |= ONE << (which & LAST_BIT)
            if is_gathered:
                n_of[which] += np.int32(1)
    if is_gathered:
        gather_cells(lo, hi, ids, cells)


@inlined
def gather_cells(lo: int, hi: int, ids: np.ndarray, cells: Cells) -> None:
    """Put the cells of a node together by their features, which are marked and counted.

    One pass over what its rows have, where each feature would look through its column, or ask each row.
    """
    feature, row_begin, row_code = cells.feature, cells.row_begin, cells.row_code
    n_of, first_of, node_at, node_code = cells.n_of, cells.first_of, cells.node_at, cells.node_code
    first = np.int32(0)
    for w in range(np.uint64(len(cells.marks))):
        word = cells.marks[w]
        while word != NONE:
            rest = word & (word - ONE)
            which = (w << SIX) + bit_place(word ^ rest)
            first_of[which] = first
            first = np.int32(first + n_of[which])
            n_of[which] = 0
            word = rest
    for i in range(np.uint64(lo), np.uint64(hi)):
        row = np.uint64(ids[i])
        for e in range(np.uint64(row_begin[row]), np.uint64(row_begin[row + ONE])):
            which = np.uint64(feature[e])
            k = np.uint64(first_of[which] + n_of[which])
            n_of[which] += np.int32(1)
            node_at[k] = np.int32(np.int64(i) - lo)
            node_code[k] = np.int32(row_code[e])


@inlined
def forget_cells(cells: Cells | None) -> None:
    """Forget the cells that were put together, once a node is searched: its rows may move."""
    if cells is None:
        return
    if cells.is_gathered[0] == 0:
        return
    cells.is_gathered[0] = 0
    for w in range(np.uint64(len(cells.marks))):
        word = cells.marks[w]
        while word != NONE:
            rest = word & (word - ONE)
            cells.n_of[(w << SIX) + bit_place(word ^ rest)] = 0
            word = rest


@inlined
def is_unmarked(feature: int, cells: Cells | None) -> bool:
    """Whether a sparse feature has no cell in the node at hand, as far as that is known."""
    if cells is None:
        return False
    which = np.uint64(feature - cells.first)
    return (cells.marks[which >> SIX] >> (which & LAST_BIT)) & ONE == NONE


# --- Rows that move -------------------------------------------------------------------------------------------------


@inlined
def note_place(i: np.uint64, ids: np.ndarray, cells: Cells | None) -> None:
    """Note that a row of the table stands at i now."""
    if cells is None:
        return
    cells.place[np.uint64(ids[i])] = i
