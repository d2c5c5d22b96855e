"""Codes: the small integers in value order that trees grow on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._types import CODE, FEATURE_ROWS, IS_CATEGORICAL, MAX_CODES, N_CODES, OFFSET, ROW

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from spinney.table.ingest import Table

COLUMNS_AT_ONCE = 4  # 32 bytes of each row are read and 8 written per pass; more would only take more memory
CACHE_LINE = 64
N_PASSES, N_DIGITS = 6, 2048  # of the radix sort in `kernels.coding`


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
    n_features = len(table.schema.is_categorical)
    rows = np.zeros((n_rows, row_stride(n_features)), CODE)
    keys = np.empty((2, n_rows), np.uint64)
    ids = np.empty((2, n_rows), ROW)
    counts = np.empty((N_PASSES, N_DIGITS), np.int32)
    distinct, mass = np.empty(n_rows, np.uint64), np.empty(n_rows, np.int64)
    room = min(n_rows, max_codes)
    low_bits, high_bits = np.empty(room, np.uint64), np.empty(room, np.uint64)
    columns = np.empty((COLUMNS_AT_ONCE, n_rows), CODE)
    n_codes = np.zeros(n_features, np.int64)
    has_missing = np.zeros(n_features, np.bool_)
    lows: list[NDArray[np.float64]] = []
    highs: list[NDArray[np.float64]] = []
    for first in range(0, n_features, COLUMNS_AT_ONCE):
        last = min(first + COLUMNS_AT_ONCE, n_features)
        block = table.block(first, last)
        if keep is not None:
            block = block[:, keep]
        block += 0.0  # -0.0 becomes 0.0
        for j in range(first, last):
            column = block[j - first]
            has_missing[j] = np.isnan(column).any()
            levels = table.schema.levels[j]
            if levels is not None:
                columns[j - first] = np.where(np.isnan(column), -1.0, column).astype(np.int64) + 1
                n_codes[j] = len(levels)
                lows.append(np.arange(len(levels), dtype=np.float64))
                highs.append(lows[-1])
                continue
            n_codes[j] = kernels.coding.code_column(
                column, column.view(np.uint64), weight, max_codes, keys, ids, counts, distinct, mass,
                columns[j - first], low_bits, high_bits,
            )  # fmt: skip
            lows.append(low_bits[: n_codes[j]].view(np.float64).copy())
            highs.append(high_bits[: n_codes[j]].view(np.float64).copy())
        kernels.coding.interleave(columns[: last - first], first, rows)
    features = np.zeros((FEATURE_ROWS, n_features), np.int64)
    features[N_CODES] = n_codes
    features[IS_CATEGORICAL] = table.schema.is_categorical
    features[OFFSET, 1:] = np.cumsum(n_codes)[:-1]
    edges = np.stack([np.concatenate(lows), np.concatenate(highs)])
    return Codes(rows, features, edges, has_missing)


assert MAX_CODES == np.iinfo(CODE).max
