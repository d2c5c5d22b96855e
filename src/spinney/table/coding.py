"""Codes: the small integers in value order that trees grow on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._types import CODE, FEATURE_ROWS, IS_BINNED, IS_CATEGORICAL, MISSING_CODE, N_CODES, OFFSET
from spinney.table.column_workers import open_workers, run_all
from spinney.table.ingest import take_from_shelf
from spinney.table.stored_codes import StoredCodes, code_stored_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from spinney.table.ingest import Table

    Edges = tuple[NDArray[np.float64], NDArray[np.float64]]  # lowest and highest value behind each code

SHELVED = "codes"  # what a shelf calls them
CELLS_AT_ONCE = 1 << 18  # of the block that is coded together: 2 MB, and some ten times as much while it is sorted
FEW_CELLS = 32  # codes for each stored cell, from which cells are written one by one: a line of the cache each
TOLD_BY = 64  # values of a column that tell most that have more than two
WHOLE_RANGE = 1024  # of whole numbers that are counted
FEW_ROWS = 2048  # columns up to this length are sorted by one call for the whole block
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


def midpoints(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """Thresholds between pairs of neighbouring values, by the rule of `kernels.common.thresholds`, for arrays.

    The middle of the two, or the lower one where no float lies between them, or where one is infinite.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        middle = low + (high - low) / 2.0
    return np.where((middle >= low) & (middle < high), middle, low)


def row_stride(n_features: int) -> int:
    """Codes per row: half a cache line and less is padded to a power of two, more to whole words alone.

    What is read and moved is memory: 41 features padded to two lines took forests 1.5 to 1.8 times as long (kddcup99).
    Of 20 and 28 features padded to a line trees took 0.97 to 1.02 times as long, and 1.6 and 1.1 times the memory.
    """
    n_bytes = n_features * np.dtype(CODE).itemsize
    if n_bytes > CACHE_LINE // 2:
        return -(-n_bytes // 8) * 4
    padded = 8
    while padded < n_bytes:
        padded *= 2
    return padded // 2


def sort_rows(block: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Order of each row of a block (n_columns, n_rows) by value, NaN last, and the values in that order.

    Sorting integers alone is three times as fast as sorting with an index, so the position goes into the low bits of
    an integer that orders as the float does. Where that cut off bits that matter, the plain way decides.
    """
    if block.shape[1] <= FEW_ROWS:
        order = np.argsort(block, axis=1, kind="stable")
        return order, np.take_along_axis(block, order, axis=1)
    n_bits = (block.shape[1] - 1).bit_length()
    bits = block.view(np.int64)
    keys = bits >> 63
    keys &= np.int64(0x7FFF_FFFF_FFFF_FFFF)
    keys ^= bits  # negative floats order backwards
    keys >>= n_bits
    keys <<= n_bits
    keys |= np.arange(block.shape[1])
    keys.sort(axis=1)
    keys &= (1 << n_bits) - 1
    values = np.empty_like(block)
    for row, order, ordered in zip(block, keys, values, strict=True):
        row.take(order, out=ordered, mode="clip")  # mode: with `out`, "raise" would copy
        if np.any(ordered[1:] < ordered[:-1]):
            order[:] = np.argsort(row, kind="stable")
            row.take(order, out=ordered, mode="clip")
    return keys, values


def code_two(column: NDArray[np.float64], codes: NDArray[np.uint16]) -> NDArray[np.float64] | None:
    """Code a column of two values by comparing it with both, not sorting; None if it is not one.

    32,561 rows take 21 microseconds, by counting 300: a one-hot table has little else.
    """
    first, head = column[0], column[:TOLD_BY]
    others = head[head != first]
    if np.any(others != others[:1]):
        return None
    is_other = column != first
    second = column[is_other.argmax()]
    is_second = column == second
    if second == first or np.count_nonzero(is_other) != np.count_nonzero(is_second):  # NaN, a third value, or one alone
        return None
    np.add(is_second if first < second else ~is_second, 1, out=codes, dtype=CODE)
    return np.array([min(first, second), max(first, second)])


def code_whole(column: NDArray[np.float64], codes: NDArray[np.uint16], kernels: Any) -> NDArray[np.float64] | None:
    """Code a column of whole numbers in a narrow range by counting, not sorting; None if it is not one."""
    if np.any(np.floor(column[:FEW_ROWS]) != column[:FEW_ROWS]):
        return None
    low, high = column.min(), column.max()
    with np.errstate(invalid="ignore"):  # infinities
        is_narrow = high - low < WHOLE_RANGE  # false for NaN
    if not is_narrow:
        return None
    n_places = int(high - low) + 1
    is_present, of_place = np.zeros(n_places, np.bool_), np.empty(n_places, CODE)
    is_whole = kernels.data.whole_numbers.code_by_counting(column, float(low), is_present, of_place, codes)
    return np.flatnonzero(is_present) + low if is_whole else None


def code_unsorted(column: NDArray[np.float64], codes: NDArray[np.uint16], kernels: Any) -> NDArray[np.float64] | None:
    """Code a column that need not be sorted for it; None if it must be."""
    values = code_two(column, codes)
    return code_whole(column, codes, kernels) if values is None else values


def code_block(
    block: NDArray[np.float64], weight: NDArray[np.int64], max_codes: int, kernels: Any, codes: NDArray[np.uint16]
) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Write the codes of numeric columns (n_columns, n_rows); return for each its lowest and highest value per code."""
    if block.shape[1] > FEW_ROWS:
        whole = [code_unsorted(column, out, kernels) for column, out in zip(block, codes, strict=True)]
        rest = [j for j, values in enumerate(whole) if values is None or len(values) > max_codes]
        if len(rest) < len(block):
            edges = [(values, values) if values is not None else (block[j, :0],) * 2 for j, values in enumerate(whole)]
            for j in rest:
                edges[j] = code_block_sorted(block[j : j + 1], weight, max_codes, kernels, codes[j : j + 1])[0]
            return edges
    return code_block_sorted(block, weight, max_codes, kernels, codes)


def code_block_sorted(
    block: NDArray[np.float64], weight: NDArray[np.int64], max_codes: int, kernels: Any, codes: NDArray[np.uint16]
) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """The same for any values."""
    order, values = sort_rows(block)
    is_new = np.empty(values.shape, np.bool_)
    is_new[:, 0] = True
    np.not_equal(values[:, 1:], values[:, :-1], out=is_new[:, 1:])
    n_known = values.shape[1] - np.count_nonzero(np.isnan(values), axis=1)
    edges = []
    for j, end in enumerate(n_known.tolist()):
        is_new[j, end:] = False
        starts = np.flatnonzero(is_new[j])
        n_values = len(starts)
        code: NDArray[np.uint16]
        if n_values <= max_codes:
            low = high = values[j].take(starts)
            code = np.cumsum(is_new[j], dtype=np.int32).astype(CODE)
        else:  # as few arrays at once as can be: each is as long as the column, which they had taken seven times
            if len(weight) == 1:
                mass = np.empty_like(starts)
                np.subtract(starts[1:], starts[:-1], out=mass[:-1])
                mass[-1] = end - starts[-1]
            else:
                mass = np.add.reduceat(weight[order[j, :end]], starts)
            bins = np.empty(n_values, np.int64)
            kernels.data.binning.fill_bins(mass, max_codes, bins)
            del mass
            firsts = np.flatnonzero(bins[1:] != bins[:-1]) + 1
            low = values[j].take(starts.take(np.append(0, firsts)))
            high = values[j].take(starts.take(np.append(firsts, n_values) - 1))
            del starts
            bins += 1
            of_value = bins.astype(CODE)
            del bins
            rank = np.cumsum(is_new[j], dtype=np.int32)
            rank -= 1
            code = of_value.take(rank)
        code[end:] = MISSING_CODE
        codes[j, order[j]] = code
        edges.append((low, high))
    return edges


def code_table(
    table: Table,
    weight: NDArray[np.int64],
    max_codes: int,
    kernels: Any,
    keep: NDArray[np.bool_] | None = None,
    n_workers: int = 1,
) -> Codes:
    """Code every column of a table, unless its shelf has the codes; see `make_codes`."""
    codes: Codes = take_from_shelf(
        table.shelf,
        SHELVED,
        max_codes,
        weight,
        keep,
        lambda: make_codes(table, weight, max_codes, kernels, keep, n_workers),
    )
    return codes


def make_codes(
    table: Table,
    weight: NDArray[np.int64],
    max_codes: int,
    kernels: Any,
    keep: NDArray[np.bool_] | None = None,
    n_workers: int = 1,
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
    n_workers : int
        Threads, each of which holds some columns in floats; the codes are the same for any number.
    """
    if table.stored is not None:
        return code_sparse_table(table.take(keep), weight, max_codes, kernels)
    n_rows = table.n_rows if keep is None else int(np.count_nonzero(keep))
    n_features, levels = table.schema.n_features, table.schema.levels
    rows = np.zeros((n_rows, row_stride(n_features)), CODE)
    at_once = min(max(CELLS_AT_ONCE // n_rows, 1), -(-n_features // n_workers))
    edges: list[Edges] = [(np.zeros(0), np.zeros(0))] * n_features
    has_missing = np.zeros(n_features, np.bool_)

    def code(first: int) -> None:  # a thread reads columns of its own: by the caller, 28 of 100,000 rows took 5 ms
        here = slice(first, min(first + at_once, n_features))
        values = table.block(here.start, here.stop)
        codes = np.empty((len(values), n_rows), CODE)
        values = values if keep is None else values[:, keep]
        edges[here] = code_columns(values, levels[here], weight, max_codes, kernels, codes)
        has_missing[here] = ~codes.all(axis=1)
        rows[:, here] = codes.T

    with open_workers(n_workers) as share:
        run_all(share, code, range(0, n_features, at_once))
    return Codes(rows, *describe_codes(edges, table.schema.is_categorical), has_missing)


def code_columns(
    block: NDArray[np.float64],
    levels: Sequence[Any],
    weight: NDArray[np.int64],
    max_codes: int,
    kernels: Any,
    codes: NDArray[np.uint16],
) -> list[Edges]:
    """Code columns (n_columns, n_rows), which are spoilt, to `codes`; levels: of categories, None for numbers."""
    block += 0.0  # -0.0 becomes 0.0
    is_missing = np.isnan(block)
    if is_missing.any():
        block[is_missing] = np.nan  # a NaN with a sign would sort first
    numeric = np.flatnonzero([one is None for one in levels])
    if len(numeric) == len(codes):
        return code_block(block, weight, max_codes, kernels, codes)
    edges: list[Edges] = [(np.arange(float(len(one or ()))),) * 2 for one in levels]
    some = np.empty((len(numeric), codes.shape[1]), CODE)
    for j, low_and_high in zip(numeric, code_block(block[numeric], weight, max_codes, kernels, some), strict=True):
        edges[j] = low_and_high
    codes[numeric] = some
    for j in np.setdiff1d(np.arange(len(codes)), numeric):
        block[j] += 1.0
        block[j, is_missing[j]] = MISSING_CODE
        codes[j] = block[j]
    return edges


def code_sparse_table(table: Table, weight: NDArray[np.int64], max_codes: int, kernels: Any) -> Codes:
    """The same of a sparse table, by its stored cells."""
    n_features = table.schema.n_features
    rows = np.empty((table.n_rows, row_stride(n_features)), CODE)
    edges, has_missing = [], np.zeros(n_features, np.bool_)

    def tell() -> Iterator[StoredCodes]:
        for j, column in enumerate(code_stored_columns(table, weight, max_codes, kernels)):
            edges.append((column.low, column.high))
            has_missing[j] = column.has_missing
            yield column

    assert table.stored is not None
    if len(table.stored.by_column.data) * FEW_CELLS < rows.size:
        write_cells(list(tell()), rows)
    else:
        write_stored(tell(), n_features, rows)
    return Codes(rows, *describe_codes(edges, table.schema.is_categorical), has_missing)


def write_cells(columns: list[StoredCodes], rows: NDArray[np.uint16]) -> None:
    """Write one row for all, then the stored cells: few, each in a line of the cache of its own."""
    template = np.zeros(rows.shape[1], CODE)
    template[: len(columns)] = [column.zero for column in columns]
    rows[:] = template
    for j, column in enumerate(columns):
        rows[column.rows, j] = column.codes


def write_stored(columns: Iterator[StoredCodes], n_columns: int, rows: NDArray[np.uint16]) -> None:
    """The same of columns with more of them, several side by side."""
    at_once = min(max(CELLS_AT_ONCE // len(rows), 1), n_columns)
    some = np.empty((at_once, len(rows)), CODE)
    rows[:, n_columns:] = 0
    for j, column in enumerate(columns):
        column.write(some[j % at_once])
        if (j + 1) % at_once == 0 or j + 1 == n_columns:
            first = j - j % at_once
            rows[:, first : j + 1] = some[: j + 1 - first].T


def describe_codes(
    edges: list[tuple[NDArray[np.float64], NDArray[np.float64]]], is_categorical: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """What codes stand for: `features` and `edges` of `Codes`. The list is emptied."""
    features = np.zeros((FEATURE_ROWS, len(edges)), np.int64)
    features[N_CODES] = [len(low) for low, _ in edges]
    features[IS_CATEGORICAL] = is_categorical
    features[IS_BINNED] = [low is not high and not np.array_equal(low, high) for low, high in edges]
    features[OFFSET, 1:] = np.cumsum(features[N_CODES])[:-1]
    whole = np.empty((2, int(features[N_CODES].sum())))
    while edges:  # from the last on, each freed once it is copied: the edges of 28 columns of floats are 29 MB
        low, high = edges.pop()
        first = features[OFFSET, len(edges)]
        whole[:, first : first + len(low)] = low, high
    return features, whole
