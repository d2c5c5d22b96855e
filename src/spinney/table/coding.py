"""Codes: the small integers in value order that trees grow on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._types import CODE, FEATURE_ROWS, IS_CATEGORICAL, MISSING_CODE, N_CODES, OFFSET

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from spinney.table.ingest import Table

COLUMNS_AT_ONCE = 4  # 32 bytes of each row are read and 8 written per pass; more would only take more memory
CACHE_LINE = 64


class Codes(NamedTuple):
    """A table in codes: what growing reads, and what the codes stand for."""

    rows: NDArray[np.uint16]  # (n_rows, stride); 0 = missing, known codes from 1 in value order
    features: NDArray[np.int64]  # (FEATURE_ROWS, n_features), see `_types`; no monotone constraints
    edges: NDArray[np.float64]  # (2, n_codes of all features): lowest and highest value behind each code
    has_missing: NDArray[np.bool_]  # (n_features,)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.features.shape[1]


def row_stride(n_features: int) -> int:
    """Codes per row, padded so that a row never straddles more cache lines than it must."""
    n_bytes = n_features * np.dtype(CODE).itemsize
    if n_bytes >= CACHE_LINE:
        return -(-n_bytes // CACHE_LINE) * CACHE_LINE // 2
    padded = 8
    while padded < n_bytes:
        padded *= 2
    return padded // 2


def sort_column(column: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Order of the rows by value, and the values in that order; no NaN.

    Sorting integers alone is three times as fast as sorting with an index, so the row number goes into the low bits of an
    integer that orders as the float does. Where that cut off bits that matter, the plain way decides.
    """
    bits = column.view(np.int64)
    n_bits = max(len(column) - 1, 1).bit_length()
    keys = bits ^ ((bits >> 63) & np.int64(0x7FFF_FFFF_FFFF_FFFF))  # negative floats order backwards
    keys >>= n_bits
    keys <<= n_bits
    keys |= np.arange(len(column))
    keys.sort()
    keys &= (1 << n_bits) - 1
    values = column[keys]
    if np.any(values[1:] < values[:-1]):
        keys = np.argsort(column, kind="stable")
        values = column[keys]
    return keys, values


def code_column(
    column: NDArray[np.float64], weight: NDArray[np.int64], max_codes: int, kernels: Any, codes: NDArray[np.uint16]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Write a column's codes; return the lowest and the highest value behind each code."""
    known = column == column  # noqa: PLR0124  (not NaN)
    rows = None if known.all() else np.flatnonzero(known)
    codes[:] = MISSING_CODE
    if rows is not None:
        column = column[rows]
    if len(column) == 0:
        return np.zeros(0), np.zeros(0)
    order, values = sort_column(column)
    is_new = np.empty(len(values), np.bool_)
    is_new[0] = True
    np.not_equal(values[1:], values[:-1], out=is_new[1:])
    code = np.cumsum(is_new, dtype=np.int64)
    starts = np.flatnonzero(is_new)
    low = high = values[starts]
    if rows is not None:
        order = rows[order]
    if len(low) > max_codes:
        mass = np.diff(starts, append=len(values)) if len(weight) == 1 else np.add.reduceat(weight[order], starts)
        bins = np.empty(len(mass), np.int64)
        kernels.coding.fill_bins(mass, max_codes, bins)
        is_first = np.diff(bins, prepend=-1) > 0
        low, high = low[is_first], high[np.append(is_first[1:], True)]
        code = bins[code - 1] + 1
    codes[order] = code
    return low, high


def code_table(
    table: Table,
    weight: NDArray[np.int64],
    max_codes: int,
    kernels: Any,
    keep: NDArray[np.bool_] | None = None,
) -> Codes:
    """Code every column of a table.

    Parameters
    ----------
    table : Table
        The columns, read in blocks; nothing of the table's size in floats is ever held.
    weight : int64 array (n_rows,) or (1,)
        Fixed-point weights for the quantiles; one entry means that every weight is 1.
    max_codes : int
        Most codes of a numeric column; a column with more distinct values is binned to about equal weights.
    kernels : kernel modules
        Compiled or interpreted.
    keep : bool array (table.n_rows,), optional
        Rows to code; the others are left out.
    """
    n_rows = table.n_rows if keep is None else int(np.count_nonzero(keep))
    n_features = table.schema.n_features
    rows = np.zeros((n_rows, row_stride(n_features)), CODE)
    columns = np.empty((COLUMNS_AT_ONCE, n_rows), CODE)
    edges: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
    has_missing = np.zeros(n_features, np.bool_)
    for first in range(0, n_features, COLUMNS_AT_ONCE):
        last = min(first + COLUMNS_AT_ONCE, n_features)
        block = table.block(first, last)
        if keep is not None:
            block = block[:, keep]
        block += 0.0  # -0.0 becomes 0.0
        for j in range(first, last):
            column, codes = block[j - first], columns[j - first]
            levels = table.schema.levels[j]
            if levels is None:
                edges.append(code_column(column, weight, max_codes, kernels, codes))
            else:
                codes[:] = np.where(np.isnan(column), -1.0, column).astype(np.int64) + 1
                edges.append((np.arange(float(len(levels))),) * 2)
            has_missing[j] = not codes.all()
        rows[:, first:last] = columns[: last - first].T
    features = np.zeros((FEATURE_ROWS, n_features), np.int64)
    features[N_CODES] = [len(low) for low, _ in edges]
    features[IS_CATEGORICAL] = table.schema.is_categorical
    features[OFFSET, 1:] = np.cumsum(features[N_CODES])[:-1]
    ends = np.stack([np.concatenate(side) for side in zip(*edges, strict=True)])
    return Codes(rows, features, ends, has_missing)
