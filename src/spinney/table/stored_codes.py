"""Codes of sparse columns: sorted are the stored cells alone, and all others get the code of 0 at once.

They are the codes of the column in full, since these follow from its distinct values and how much weight each has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._types import CODE, MISSING_CODE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from spinney.table.ingest import Table


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

    def write_every(self, step: int, out: NDArray[Any]) -> None:
        """Write the codes of rows 0, step, 2 step and so on."""
        if isinstance(self.rows, slice):
            out[:] = self.codes[::step]
            return
        is_taken = self.rows % step == 0
        out[:] = self.zero
        out[self.rows[is_taken] // step] = self.codes[is_taken]


def code_stored(
    rows: NDArray[Any], cells: NDArray[Any], weight: NDArray[np.int64], n_rows: int, max_codes: int, kernels: Any
) -> StoredCodes:
    """Codes of one column of numbers.

    rows, cells: those that are stored. weight: fixed-point, (n_rows,), or (1,) where every weight is 1. max_codes: a
    column of more values has them merged into bins of about equal weight, by `kernels.data.binning.fill_bins`.
    """
    with np.errstate(over="ignore"):  # a long double beyond float64 is infinite, which is in the right order
        cells = cells.astype(np.float64) + 0.0  # -0.0 becomes 0.0
    known = ~np.isnan(cells)
    values, place = np.unique(cells[known], return_inverse=True)
    zero = int(np.searchsorted(values, 0.0))
    has_zeros = len(cells) < n_rows
    if has_zeros and not (zero < len(values) and values[zero] == 0.0):
        values = np.insert(values, zero, 0.0)
        place += place >= zero
    low = high = values
    code_of = np.arange(1, len(values) + 1)
    if len(values) > max_codes:
        mass = np.zeros(len(values), np.int64)
        if len(weight) == 1:
            mass += np.bincount(place, minlength=len(values))
            n_left = n_rows - len(cells)
        else:
            np.add.at(mass, place, weight[rows[known]])
            n_left = int(weight.sum() - weight[rows].sum())
        if has_zeros:
            mass[zero] += n_left
        bins = np.empty(len(values), np.int64)
        kernels.data.binning.fill_bins(mass, max_codes, bins)
        firsts = np.flatnonzero(np.diff(bins, prepend=-1))
        low, high = values[firsts], values[np.append(firsts[1:], len(bins)) - 1]
        code_of = bins + 1
    codes = np.full(len(cells), MISSING_CODE, CODE)
    codes[known] = code_of[place]
    return StoredCodes(low, high, rows, codes, int(code_of[zero]) if has_zeros else 0, not known.all())


def code_stored_columns(table: Table, weight: NDArray[np.int64], max_codes: int, kernels: Any) -> Iterator[StoredCodes]:
    """Codes of every column of a sparse table, one after the other; a category keeps its levels."""
    matrix = table.stored
    assert matrix is not None
    by_column = matrix.by_column
    for j, levels in enumerate(table.schema.levels):
        if levels is None:
            cells = slice(by_column.indptr[j], by_column.indptr[j + 1])
            rows = by_column.indices[cells]
            yield code_stored(rows, by_column.data[cells], weight, table.n_rows, max_codes, kernels)
            continue
        index = np.arange(float(len(levels)))
        (values,) = table.block(j, j + 1)
        is_missing = np.isnan(values)
        codes = (np.where(is_missing, -1.0, values) + 1.0).astype(CODE)
        yield StoredCodes(index, index, slice(None), codes, 0, bool(is_missing.any()))
