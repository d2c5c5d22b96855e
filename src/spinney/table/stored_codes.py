"""Codes of sparse columns: sorted are the stored cells alone, and all others get the code of 0 at once.

They are the codes of the column in full, since these follow from its distinct values and how much weight each has.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._types import CODE, MISSING_CODE
from spinney.table.sparse import as_floats

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from spinney.table.ingest import Table

CELLS_TOGETHER = 1 << 20  # of columns that are coded at once, some 60 MB
MOST_PAIRS = 1 << 25  # of columns and values that are marked, not sorted
MOST_COUNTS = 1 << 16  # between the lowest and the highest of whole numbers that are marked, not sorted


class StoredCodes(NamedTuple):
    """A column in codes."""

    low: NDArray[np.float64]  # (n_codes,) lowest value behind each code, from 1 on
    high: NDArray[np.float64]  # the highest; the same array where each code is one value
    rows: Any  # whose cells are stored
    codes: NDArray[np.uint16]  # theirs
    zero: int  # that of all other rows
    has_missing: bool

    def write(self, out: NDArray[Any]) -> None:
        """Write the codes of all rows, (n_rows,)."""
        out[:] = self.zero
        out[self.rows] = self.codes


class CodedCells(NamedTuple):
    """Columns in codes, one after the other."""

    begin: NDArray[np.int64]  # (n_columns + 1,): where the stored cells of each begin, in the next two
    rows: NDArray[Any]
    codes: NDArray[np.uint16]
    zero: NDArray[np.int64]  # (n_columns,): the code of all other rows; 0 where every cell is stored
    has_missing: NDArray[np.bool_]  # (n_columns,)
    n_codes: NDArray[np.int64]  # (n_columns,)
    low: NDArray[np.float64]  # (n_codes of all columns,): lowest value behind each code
    high: NDArray[np.float64]  # the highest; the same array where each code is one value

    def feature(self) -> NDArray[np.int64]:
        """The column of each stored cell."""
        return np.repeat(np.arange(len(self.zero)), np.diff(self.begin))

    def columns(self) -> Iterator[StoredCodes]:
        """Each column."""
        ends = np.cumsum(self.n_codes)
        for j, (end, n) in enumerate(zip(ends.tolist(), self.n_codes.tolist(), strict=True)):
            yield self._column(j, slice(end - n, end))

    def column(self, j: int) -> StoredCodes:
        """One of them."""
        first = int(self.n_codes[:j].sum())
        return self._column(j, slice(first, first + int(self.n_codes[j])))

    def _column(self, j: int, values: slice) -> StoredCodes:
        cells = slice(self.begin[j], self.begin[j + 1])
        low = self.low[values]
        high = low if self.low is self.high else self.high[values]
        zero, has_missing = int(self.zero[j]), bool(self.has_missing[j])
        return StoredCodes(low, high, self.rows[cells], self.codes[cells], zero, has_missing)

    def leave_out(self, is_out: NDArray[np.bool_]) -> CodedCells:
        """The same, but some columns have neither cells nor codes."""
        if not is_out.any():
            return self
        n_cells = np.where(is_out, 0, np.diff(self.begin))
        keep, keep_code = ~np.repeat(is_out, np.diff(self.begin)), ~np.repeat(is_out, self.n_codes)
        low = self.low[keep_code]
        return CodedCells(
            np.append(0, np.cumsum(n_cells)),
            self.rows[keep],
            self.codes[keep],
            np.where(is_out, 0, self.zero),
            self.has_missing & ~is_out,
            np.where(is_out, 0, self.n_codes),
            low,
            low if self.low is self.high else self.high[keep_code],
        )


def code_stored_columns(table: Table, weight: NDArray[np.int64], max_codes: int, kernels: Any) -> Iterator[StoredCodes]:
    """Codes of every column of a sparse table, one after the other; a category keeps its levels."""
    return code_cells(table, weight, max_codes, kernels).columns()


def code_cells(
    table: Table, weight: NDArray[np.int64], max_codes: int, kernels: Any, is_out: NDArray[np.bool_] | None = None
) -> CodedCells:
    """Codes of the columns of a sparse table; of those that are left out (n_columns,) there are none.

    weight: fixed-point, (n_rows,), or (1,) where every weight is 1.
    """
    assert table.stored is not None
    matrix, levels = table.stored.by_column, table.schema.levels
    is_numeric = np.array([one is None for one in levels])
    is_open = is_numeric if is_out is None else is_numeric & ~is_out
    chosen = np.flatnonzero(is_open)
    parts = list(code_numbers(matrix if is_open.all() else matrix[:, chosen], weight, max_codes, kernels))
    if is_open.all():
        return join_cells(parts)
    names = [chosen]
    for j in np.flatnonzero(~is_numeric).tolist():
        names.append(np.array([j]))
        parts.append(code_levels(table, j))
    return spread_cells(join_cells(parts), np.concatenate(names), len(levels))


def code_levels(table: Table, j: int) -> CodedCells:
    """Codes of a category: a level's is its index + 1."""
    levels = table.schema.levels[j]
    assert levels is not None
    (values,) = table.block(j, j + 1)
    is_missing = np.isnan(values)
    index = np.arange(float(len(levels)))
    return CodedCells(
        np.array([0, len(values)]),
        np.arange(len(values)),
        (np.where(is_missing, -1.0, values) + 1.0).astype(CODE),
        np.zeros(1, np.int64),
        np.array([is_missing.any()]),
        np.array([len(index)]),
        index,
        index,
    )


def join_cells(parts: list[CodedCells]) -> CodedCells:
    """Columns of several, one after the other."""
    if len(parts) == 1:
        return parts[0]
    low = np.concatenate([one.low for one in parts])
    is_whole = all(one.low is one.high for one in parts)
    return CodedCells(
        begin=np.append(0, np.cumsum(np.concatenate([np.diff(one.begin) for one in parts]))),
        rows=np.concatenate([one.rows for one in parts]),
        codes=np.concatenate([one.codes for one in parts]),
        zero=np.concatenate([one.zero for one in parts]),
        has_missing=np.concatenate([one.has_missing for one in parts]),
        n_codes=np.concatenate([one.n_codes for one in parts]),
        low=low,
        high=low if is_whole else np.concatenate([one.high for one in parts]),
    )


def spread_cells(cells: CodedCells, names: NDArray[np.int64], n_columns: int) -> CodedCells:
    """The same columns by their numbers among n_columns, of which the others have neither cells nor codes."""
    n_cells, n_codes, zero = np.zeros((3, n_columns), np.int64)
    has_missing = np.zeros(n_columns, np.bool_)
    n_cells[names], n_codes[names] = np.diff(cells.begin), cells.n_codes
    zero[names], has_missing[names] = cells.zero, cells.has_missing
    cells = cells._replace(begin=np.append(0, np.cumsum(n_cells)), zero=zero, has_missing=has_missing, n_codes=n_codes)
    if (np.diff(names) > 0).all():
        return cells
    by_cell, by_code = order_of(names, n_cells), order_of(names, n_codes)
    low, high = cells.low[by_code], cells.high[by_code]
    return cells._replace(rows=cells.rows[by_cell], codes=cells.codes[by_cell], low=low, high=high)


def order_of(names: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The order that brings entries of columns, which stand in the order of `names`, into that of their numbers."""
    return np.argsort(np.repeat(names, counts[names]), kind="stable")


def code_numbers(matrix: Any, weight: NDArray[np.int64], max_codes: int, kernels: Any) -> Iterator[CodedCells]:
    """Codes of a matrix of numbers, "csc"; columns are coded together as far as some MB last."""
    n_rows, n_columns = matrix.shape
    ends = np.arange(CELLS_TOGETHER, matrix.indptr[-1] + CELLS_TOGETHER, CELLS_TOGETHER)
    edges = np.unique(np.concatenate([[0], np.searchsorted(matrix.indptr, ends, side="right") - 1, [n_columns]]))
    if n_columns == 0:
        edges = np.zeros(2, np.int64)
    for first, last in itertools.pairwise(edges.tolist()):
        begin = matrix.indptr[first : last + 1].astype(np.int64)
        mine = slice(begin[0], begin[-1])
        begin -= begin[0]
        found = code_together(matrix.data[mine], begin, n_rows)
        yield merge_crowded(found, begin, matrix.indices[mine], weight, n_rows, max_codes, kernels)


def merge_crowded(
    found: CodedTogether,
    begin: NDArray[np.int64],
    rows: NDArray[Any],
    weight: NDArray[np.int64],
    n_rows: int,
    max_codes: int,
    kernels: Any,
) -> CodedCells:
    """The columns, those of more values than codes merged into bins of about equal weight, by `merge_values`."""
    n_values = np.diff(found.begin)
    is_crowded = n_values > max_codes
    codes, zero, n_codes, low, high = found.codes, found.zero, n_values, found.values, found.values
    if is_crowded.any():
        n_codes, zero, codes = n_values.copy(), found.zero.copy(), found.codes.copy()
        edges = []
        for j in np.flatnonzero(is_crowded).tolist():
            mine = slice(begin[j], begin[j + 1])
            values = found.values[found.begin[j] : found.begin[j + 1]]
            mass = weigh_codes(codes[mine], int(zero[j]), len(values), rows[mine], weight, n_rows)
            *merged, code_of = merge_values(values, mass, max_codes, kernels)
            codes[mine], zero[j], n_codes[j] = code_of[codes[mine]], code_of[zero[j]], len(merged[0])
            edges.append(merged)
        both = np.empty((2, int(n_codes.sum())))
        is_merged = np.repeat(is_crowded, n_codes)
        both[:, ~is_merged] = found.values[~np.repeat(is_crowded, n_values)]
        both[:, is_merged] = np.concatenate(edges, axis=1)
        low, high = both
    return CodedCells(begin, rows, codes.astype(CODE), zero, found.has_missing, n_codes, low, high)


def weigh_codes(
    codes: NDArray[np.int64], zero: int, n_codes: int, rows: NDArray[Any], weight: NDArray[np.int64], n_rows: int
) -> NDArray[np.int64]:
    """The weight of the rows of each code (n_codes,) of a column, by the codes of its stored cells and their rows."""
    mass = np.zeros(n_codes + 1, np.int64)
    if len(weight) == 1:
        mass += np.bincount(codes, minlength=n_codes + 1)
        mass[zero] += n_rows - len(codes)
    else:
        np.add.at(mass, codes, weight[rows])
        mass[zero] += weight.sum() - weight[rows].sum()
    return mass[1:]


def merge_values(
    values: NDArray[np.float64], mass: NDArray[np.int64], max_codes: int, kernels: Any
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
    """Lowest and highest value of each bin, and the bin of each code, by the rule of `kernels.data.binning.fill_bins`.

    Bins are numbered from 1; the missing code stays 0.
    """
    bins = np.empty(len(values), np.int64)
    kernels.data.binning.fill_bins(mass, max_codes, bins)
    firsts = np.flatnonzero(np.diff(bins, prepend=-1))
    return values[firsts], values[np.append(firsts[1:], len(bins)) - 1], np.append(MISSING_CODE, bins + 1)


class CodedTogether(NamedTuple):
    """Neighbouring columns, each of whose values has a code of its own."""

    values: NDArray[np.float64]  # of the columns one after the other, ascending in each
    begin: NDArray[np.int64]  # (n_columns + 1,): where those of each begin
    codes: NDArray[np.int64]  # of all stored cells
    zero: NDArray[np.int64]  # (n_columns,): the code of 0; 0 where every cell is stored
    has_missing: NDArray[np.bool_]  # (n_columns,)


def code_together(cells: NDArray[Any], indptr: NDArray[Any], n_rows: int) -> CodedTogether:
    """Code neighbouring columns at once: column by column 20,000 of 20 cells each took 1.5 seconds."""
    cells = as_floats(cells)
    n_columns, n_cells = len(indptr) - 1, np.diff(indptr)
    column = np.repeat(np.arange(n_columns), n_cells)
    known = np.flatnonzero(~np.isnan(cells))
    column_of = column[known]
    values, place = rank_values(np.append(cells[known], 0.0))
    has_zeros = np.flatnonzero(n_cells < n_rows)
    column_of = np.concatenate([column_of, has_zeros])
    place = np.concatenate([place[:-1], np.full(len(has_zeros), place[-1])])
    is_there = np.zeros((n_columns, len(values)), np.bool_) if n_columns * len(values) <= MOST_PAIRS else None
    keys = column_of * len(values) + place
    if is_there is None:
        found, rank = np.unique(keys, return_inverse=True)
    else:
        is_there.reshape(-1)[keys] = True
        found = np.flatnonzero(is_there)
        rank = np.searchsorted(found, keys)
    begin = np.searchsorted(found, np.arange(n_columns + 1) * len(values))
    code_of = rank - begin[column_of] + 1
    codes = np.full(len(cells), MISSING_CODE, np.int64)
    codes[known] = code_of[: len(known)]
    zero = np.zeros(n_columns, np.int64)
    zero[has_zeros] = code_of[len(known) :]
    has_missing = np.ones(len(cells), np.bool_)
    has_missing[known] = False
    return CodedTogether(
        values[found % len(values)], begin, codes, zero, np.bincount(column[has_missing], minlength=n_columns) > 0
    )


def rank_values(cells: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The distinct values, ascending, and the place of each cell among them; counts need no sorting."""
    low, high = float(cells.min()), float(cells.max())
    if high - low < MOST_COUNTS and low == np.floor(low):
        counts = (cells - low).astype(np.int64)
        if np.array_equal(counts + low, cells):
            is_there = np.bincount(counts) > 0
            return (np.flatnonzero(is_there) + low).astype(np.float64), (np.cumsum(is_there) - 1)[counts]
    values: NDArray[np.float64]
    place: NDArray[np.int64]
    values, place = np.unique(cells, return_inverse=True)
    return values, place
