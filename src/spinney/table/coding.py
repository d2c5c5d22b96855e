"""Codes: the small integers in value order that trees grow on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._types import CODE, FEATURE_ROWS, IS_BINNED, IS_CATEGORICAL, MAX_CODES, MISSING_CODE, N_CODES, OFFSET
from spinney.table.column_workers import open_workers, run_all
from spinney.table.ingest import take_from_shelf
from spinney.table.stored_codes import code_stored_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.table.ingest import Table
    from spinney.table.stored_codes import StoredCodes

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
    edges: NDArray[np.float64]  # (2, n_codes of all features): lowest and highest value behind each code; or float32
    has_missing: NDArray[np.bool_]  # (n_features,)

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.features.shape[1]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.rows)

    def with_rows(self, rows: NDArray[np.uint16]) -> Codes:
        """The codes of some rows, that stand as a forest has them."""
        return self._replace(rows=rows)


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


def code_block(
    block: NDArray[np.float64], weight: NDArray[np.int64], max_codes: int, kernels: Any, codes: NDArray[np.uint16]
) -> list[Edges]:
    """Write the codes of numeric columns (n_columns, n_rows); return for each its lowest and highest value per code."""
    if block.shape[1] > FEW_ROWS:
        two = [code_two(column, out) for column, out in zip(block, codes, strict=True)]
        rest = [j for j, values in enumerate(two) if values is None or len(values) > max_codes]
        if len(rest) < len(block):
            edges = [(values, values) if values is not None else (block[j, :0],) * 2 for j, values in enumerate(two)]
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
                mass = block[j].view(np.int64)[:n_values]  # the values have been copied in their order
                np.subtract(starts[1:], starts[:-1], out=mass[:-1])
                mass[-1] = end - starts[-1]
            else:
                mass = np.add.reduceat(weight[order[j, :end]], starts)
            bins = mass  # a bin is numbered when the weight in its place has been read
            kernels.data.binning.fill_bins(mass, max_codes, bins)
            firsts = np.flatnonzero(bins[1:] != bins[:-1]) + 1
            low = values[j].take(starts.take(np.append(0, firsts)))
            high = values[j].take(starts.take(np.append(firsts, n_values) - 1))
            del starts
            bins += 1
            of_value = bins.astype(CODE)
            del mass, bins
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
    *,
    is_short: bool = False,
) -> Codes:
    """Code every column of a table, unless its shelf has the codes; see `make_codes`."""
    codes: Codes = take_from_shelf(
        table.shelf,
        SHELVED,
        max_codes,
        weight,
        keep,
        lambda: make_codes(table, weight, max_codes, kernels, keep, n_workers, is_short=is_short),
    )
    return codes


def make_codes(
    table: Table,
    weight: NDArray[np.int64],
    max_codes: int,
    kernels: Any,
    keep: NDArray[np.bool_] | None = None,
    n_workers: int = 1,
    *,
    is_short: bool = False,
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
    is_short : bool
        Whether edges are float32, which must hold every value.
    """
    if table.stored is not None:
        return code_sparse_table(table.take(keep), weight, max_codes, kernels)
    coder = ColumnCoder(table, weight, max_codes, kernels, keep)
    coder.edge_type = np.float32 if is_short else np.float64
    n_features = table.schema.n_features
    at_once = min(max(CELLS_AT_ONCE // coder.n_rows, 1), -(-n_features // n_workers))

    def code(first: int) -> None:  # a thread reads columns of its own: by the caller, 28 of 100,000 rows took 5 ms
        coder.code(list(range(first, min(first + at_once, n_features))))

    with open_workers(n_workers) as share:
        run_all(share, code, range(0, n_features, at_once))
    described = describe_codes(coder.edges, table.schema.is_categorical, coder.edge_type)
    return Codes(coder.rows, *described, coder.has_missing)


class ColumnCoder:
    """Codes the columns of a table, each in the quickest way that serves it; parameters as of `make_codes`."""

    edge_type: type[np.floating[Any]] = np.float64

    def __init__(
        self, table: Table, weight: NDArray[np.int64], max_codes: int, kernels: Any, keep: NDArray[np.bool_] | None
    ) -> None:
        self.table, self.weight, self.max_codes, self.kernels, self.keep = table, weight, max_codes, kernels, keep
        self.n_rows = table.n_rows if keep is None else int(np.count_nonzero(keep))
        self.levels, n_features = table.schema.levels, table.schema.n_features
        self.rows = np.zeros((self.n_rows, row_stride(n_features)), CODE)
        self.edges: list[Edges] = [(np.zeros(0), np.zeros(0))] * n_features
        self.has_missing = np.zeros(n_features, np.bool_)

    def code(self, features: list[int]) -> None:
        """Code some neighbouring columns."""
        for j in features:
            if self.levels[j] is not None:
                self.code_levels(j)
        numbers = np.array([j for j in features if self.levels[j] is None], np.int64)
        if self.n_rows <= FEW_ROWS:
            self.sort(numbers)
            return
        if not len(numbers):
            return
        spans, k = np.empty((3, len(numbers)), np.int64), self.kernels.data.whole_numbers
        matrix = self.table.floats if self.keep is None else None
        block = None
        if matrix is None:
            block = self.read(numbers)
            k.read_columns(block, numbers, spans, self.rows)
        else:
            k.read_rows(matrix, features[0], spans, self.rows)
        is_left = self.count(spans, numbers)
        if block is not None and not is_left.all():
            block = block[is_left]
        self.sort(numbers[is_left], block)

    def read(self, features: NDArray[np.int64]) -> NDArray[np.float64]:
        """Columns as values, (n_columns, n_rows), of this coder alone."""
        first, last = features[[0, -1]].tolist()
        if last - first < len(features):
            block = self.table.block(first, last + 1)
        else:
            block = np.concatenate([self.table.block(j, j + 1) for j in features.tolist()])
        return block if self.keep is None else block[:, self.keep]

    def code_levels(self, j: int) -> None:
        """Code a category: a level has its index and 1, a missing one 0."""
        indices = self.table.indices(j)
        np.add(indices if self.keep is None else indices[self.keep], 1, out=self.rows[:, j])  # NO_LEVEL becomes 0
        self.edges[j] = (np.arange(float(len(self.levels[j] or ()))),) * 2
        self.has_missing[j] = not self.rows[:, j].all()

    def count(self, spans: NDArray[np.int64], features: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Code the columns of whole numbers in a narrow range by counting, not sorting; return which are others.

        spans: of all, as `kernels.data.whole_numbers` finds them while it writes the numbers to `rows`.
        """
        low, high, n_odd = spans
        n_places = high - low + 1
        is_other = (n_odd > 0) | (n_places > min(max(WHOLE_RANGE, self.n_rows), MAX_CODES))
        counted = np.flatnonzero(~is_other)
        if not len(counted):
            return is_other
        starts = np.append(0, np.cumsum(n_places[counted]))
        codes = np.zeros(starts[-1], CODE)
        whole_numbers = self.kernels.data.whole_numbers
        whole_numbers.rank_numbers(low[counted], starts, codes, features[counted], self.rows)
        for i, first, end in zip(counted.tolist(), starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            known: NDArray[np.float64] = np.flatnonzero(codes[first:end]) + np.float64(low[i])
            is_other[i] = len(known) > self.max_codes
            self.edges[features[i]] = known, known
        return is_other

    def narrow(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> Edges:
        """Edges in half the memory; where every value has a code of its own both are one array."""
        short: NDArray[Any] = low.astype(self.edge_type)
        return short, short if low is high else high.astype(self.edge_type)

    def sort(self, features: NDArray[np.int64], block: NDArray[np.float64] | None = None) -> None:
        """Code columns of any values, `block` if they are read already, by sorting them."""
        if not len(features):
            return
        block = self.read(features) if block is None else block
        codes = np.empty((len(features), self.n_rows), CODE)
        block += 0.0  # -0.0 becomes 0.0
        is_missing = np.isnan(block)
        if is_missing.any():
            block[is_missing] = np.nan  # a NaN with a sign would sort first
        edges = code_block(block, self.weight, self.max_codes, self.kernels, codes)
        for j, low_and_high, column in zip(features.tolist(), edges, codes, strict=True):
            self.edges[j] = low_and_high if self.edge_type is np.float64 else self.narrow(*low_and_high)
            self.has_missing[j] = not column.all()
            self.rows[:, j] = column


def code_sparse_table(table: Table, weight: NDArray[np.int64], max_codes: int, kernels: Any) -> Codes:
    """The same of a sparse table, by its stored cells."""
    columns = list(code_stored_columns(table, weight, max_codes, kernels))
    return Codes(write_stored_rows(columns, table.n_rows), *describe_stored(columns, table.schema.is_categorical))


def describe_stored(
    columns: list[StoredCodes], is_categorical: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
    """What codes of sparse columns stand for: `features`, `edges` and `has_missing` of `Codes`."""
    edges = [(column.low, column.high) for column in columns]
    return *describe_codes(edges, is_categorical), np.array([column.has_missing for column in columns])


def write_stored_rows(columns: list[StoredCodes], n_rows: int) -> NDArray[np.uint16]:
    """The codes of all cells of a sparse table, (n_rows, stride)."""
    rows = np.empty((n_rows, row_stride(len(columns))), CODE)
    if sum(len(column.codes) for column in columns) * FEW_CELLS < rows.size:
        write_cells(columns, rows)
    else:
        write_by_columns(columns, rows)
    return rows


def write_cells(columns: list[StoredCodes], rows: NDArray[np.uint16]) -> None:
    """Write one row for all, then the stored cells: few, each in a line of the cache of its own."""
    template = np.zeros(rows.shape[1], CODE)
    template[: len(columns)] = [column.zero for column in columns]
    rows[:] = template
    for j, column in enumerate(columns):
        rows[column.rows, j] = column.codes


def write_by_columns(columns: list[StoredCodes], rows: NDArray[np.uint16]) -> None:
    """The same of columns with more of them, several side by side."""
    n_columns = len(columns)
    at_once = min(max(CELLS_AT_ONCE // len(rows), 1), n_columns)
    some = np.empty((at_once, len(rows)), CODE)
    rows[:, n_columns:] = 0
    for first in range(0, n_columns, at_once):
        here = columns[first : first + at_once]
        for column, out in zip(here, some, strict=False):
            column.write(out)
        rows[:, first : first + len(here)] = some[: len(here)].T


def describe_codes(
    edges: list[Edges], is_categorical: NDArray[np.bool_], edge_type: type[np.floating[Any]] = np.float64
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """What codes stand for: `features` and `edges` of `Codes`. The list is emptied."""
    features = np.zeros((FEATURE_ROWS, len(edges)), np.int64)
    features[N_CODES] = [len(low) for low, _ in edges]
    features[IS_CATEGORICAL] = is_categorical
    features[IS_BINNED] = [low is not high and not np.array_equal(low, high) for low, high in edges]
    features[OFFSET, 1:] = np.cumsum(features[N_CODES])[:-1]
    whole = np.empty((2, int(features[N_CODES].sum())), edge_type)
    while edges:  # from the last on, each freed once it is copied: the edges of 28 columns of floats are 29 MB
        low, high = edges.pop()
        first = features[OFFSET, len(edges)]
        whole[:, first : first + len(low)] = low, high
    return features, whole
