"""Bins: the bytes in value order that boosting grows on.

    a block of columns ──► sorted ──► cuts (lowest and highest value of each bin) ──► bytes, row by row

Numeric columns are cut into bins of about equal weight; a category keeps its levels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._jit import kernels as choose_kernels
from spinney._types import CODE, FEATURE_ROWS, IS_BINNED, IS_CATEGORICAL, MAX_CODES, N_CODES, OFFSET
from spinney.kernels.common.structs import BinSegments, ByteTable, FloatTable
from spinney.table.coding import CACHE_LINE, midpoints, sort_rows
from spinney.table.column_workers import open_workers, run_all
from spinney.table.fixed_point import fix_weights
from spinney.table.ingest import take_from_shelf
from spinney.table.stored_codes import code_cells

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import ArrayLike, NDArray

    from spinney.table.column_workers import Share
    from spinney.table.ingest import Table
    from spinney.table.stored_codes import CodedCells


SHELVED = "bins"  # what a shelf calls them
MOST_NARROW = 255  # codes that fit a byte beside the missing one
CELLS_AT_ONCE = 1 << 21  # of the table that are read together: 16 MB, and half as much again in float32
SORTED_AT_ONCE = 1 << 16  # values that one call sorts, in whole columns
COLUMNS_AT_ONCE = 4  # at least: a row-major table is read from end to end for each block
ROWS_AT_ONCE = 1 << 16  # that one call writes
JOINED_AT_ONCE = 1 << 14  # rows whose codes a thread puts together: in all, half a megabyte of 32 columns
LONG_COLUMN = 1 << 16  # rows of a column whose pieces are worth a thread each
VERY_LONG_COLUMN = 1 << 18  # rows of one that one thread, too, sorts in pieces: 100,000 rows gain nothing
N_PIECES = 8  # 500,000 rows: 10.6 ms to sort them and 0.9 to cut; 14.5 for one, 9.6 and 2.3 for 16
FEW = 16  # values that tell most columns of more than two
SEGMENTS_PER_CODE = 16  # then hardly a segment of a normal column has two bins; 8 leave some
MOST_SEGMENTS = 1 << 17  # 256 kB stay in the second-level cache


class Bins(NamedTuple):
    """A table in bytes: what boosting reads, and what the codes stand for."""

    rows: NDArray[np.uint8]  # (n_rows, stride); narrow features a byte each, then wide ones as little-endian uint16
    place: NDArray[np.int64]  # (n_features,) byte offset of each feature in a row; -1: it was left out, with its codes
    is_wide: NDArray[np.bool_]  # (n_features,) more than 255 codes
    features: NDArray[np.int64]  # (FEATURE_ROWS, n_features), see `_types`; no monotone constraints
    edges: NDArray[np.float64]  # (2, n_codes of all features): lowest and highest value behind each code
    has_missing: NDArray[np.bool_]  # (n_features,)
    base: NDArray[np.int64]  # (n_features,) of a feature that shares its byte, see `table.bundles`; -1: it does not
    usual: NDArray[np.int64]  # (n_features,) the code of such a feature that its byte does not tell

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return self.features.shape[1]

    def codes(self, j: int) -> NDArray[Any]:
        """Codes of feature j, (n_rows,) uint8 or uint16; a view, unless it shares its byte."""
        place = int(self.place[j])
        if self.is_wide[j]:
            return self.rows.view("<u2")[:, place // 2]
        if self.base[j] >= 0:
            return unbundle(self.rows[:, place], int(self.base[j]), int(self.usual[j]), int(self.features[N_CODES, j]))
        return self.rows[:, place]


def unbundle(codes: NDArray[np.uint8], base: int, usual: int, n_codes: int) -> NDArray[np.uint8]:
    """Codes of a feature from those of a byte that it shares: `kernels.boost.rows.decode` for a column."""
    other = codes.astype(np.int64) - base + 1
    is_own = (other >= 1) & (other < n_codes)
    return np.where(is_own, other + (other >= usual), usual).astype(np.uint8)


class Cuts(NamedTuple):
    """The bins of a column: lowest and highest value behind each code."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    has_missing: bool


# --- A table in bins --------------------------------------------------------------------------------------------


def bin_table(
    table: Table,
    weight: NDArray[np.int64],
    max_bins: int | None,
    kernels: Any,
    keep: NDArray[np.bool_] | None = None,
    n_workers: int = 1,
) -> Bins:
    """Bin every column of a table, unless its shelf has the bins; see `make_bins`."""
    most = MAX_CODES if max_bins is None else max_bins

    def make() -> Bins:
        return make_bins(table, weight, most, kernels, keep, n_workers)

    bins: Bins = take_from_shelf(table.shelf, SHELVED, most, weight, keep, make)
    return bins


def make_bins(
    table: Table,
    weight: NDArray[np.int64],
    most: int,
    kernels: Any,
    keep: NDArray[np.bool_] | None = None,
    n_workers: int = 1,
) -> Bins:
    """Bin every column of a table.

    Parameters
    ----------
    table : Table
        The columns, read in blocks; nothing of the table's size in floats is ever held.
    weight : int64 array (n_rows,) or (1,)
        Fixed-point weights for the quantiles; one entry means that every weight is 1.
    most : int
        Bins of a numeric column, 2 to 65,535: one with more distinct values is cut into bins of about equal weight, by
        the rule of `kernels.data.binning.fill_bins`. A category keeps every level.
    kernels : kernel modules
        Compiled or interpreted.
    keep : bool array (table.n_rows,), optional
        Rows to bin; the others are left out.
    n_workers : int
        Threads; the bins are the same for any number.
    """
    if table.stored is not None:
        return bin_sparse_table(table.take(keep), weight, most, kernels)
    n_rows = table.n_rows if keep is None else int(np.count_nonzero(keep))
    levels = table.schema.levels
    if n_workers > 1 and most <= MOST_NARROW and table.least_columns is None:
        place, is_wide, stride = lay_out([len(one or ()) for one in levels])
        if not is_wide.any():
            return bin_side_by_side(table, weight, most, kernels, keep, n_workers)
    at_once = max(CELLS_AT_ONCE // n_rows, table.least_columns or COLUMNS_AT_ONCE)
    spans = [slice(first, min(first + at_once, len(levels))) for first in range(0, len(levels), at_once)]
    # Which features are wide decides where each stands in a row; unless bins are few, only their values tell.
    is_known = most <= MOST_NARROW
    place, is_wide, stride = lay_out([len(one or ()) for one in levels])
    rows = np.zeros((n_rows if is_known else 0, stride), np.uint8)
    cuts: list[Cuts] = []
    with open_workers(n_workers) as share:
        for span, values in read_blocks(table, spans, keep, kernels, share):
            cuts += cut_block(values, levels[span], weight, most, kernels, share)
            if is_known:
                write_codes(values, cuts[span], place[span], is_wide[span], rows, kernels, share)
        if not is_known:
            place, is_wide, stride = lay_out([len(cut.low) for cut in cuts])
            rows = np.zeros((n_rows, stride), np.uint8)
            again = [(spans[0], values)] if len(spans) == 1 else read_blocks(table, spans, keep, kernels, share)
            for span, block in again:
                write_codes(block, cuts[span], place[span], is_wide[span], rows, kernels, share)
    return Bins(rows, place, is_wide, *describe(cuts, table.schema.is_categorical), *no_bundles(len(cuts)))


def bin_side_by_side(
    table: Table,
    weight: NDArray[np.int64],
    most: int,
    kernels: Any,
    keep: NDArray[np.bool_] | None,
    n_workers: int,
) -> Bins:
    """`make_bins` for narrow columns: each thread reads, cuts and codes columns of its own.

    They write codes to memory of their own, which threads put together by rows: bytes of one cache line that several
    threads write would go to and fro between them. Long columns that are too few for a turn of all threads, the last
    ones, are sorted in pieces: 28 columns by 8 threads are three turns and a half, not four.
    """
    n_rows = table.n_rows if keep is None else int(np.count_nonzero(keep))
    levels = table.schema.levels
    at_once = max(min(2 * CELLS_AT_ONCE // (n_workers * n_rows), -(-len(levels) // n_workers)), 1)
    n_whole = len(levels)
    if at_once == 1 and n_rows >= LONG_COLUMN and len(weight) == 1:
        n_whole -= len(levels) % n_workers
        n_whole = len(levels) if any(one is not None for one in levels[n_whole:]) else n_whole
    spans = [slice(first, min(first + at_once, n_whole)) for first in range(0, n_whole, at_once)]
    place, is_wide, stride = lay_out([0] * len(levels))
    rows = np.zeros((n_rows, stride), np.uint8)

    def make(span: slice) -> tuple[list[Cuts], NDArray[np.uint8]]:
        values = read_block(table, span, keep, kernels)
        cuts = cut_block(values, levels[span], weight, most, kernels, map)
        codes = np.empty((n_rows, len(cuts)), np.uint8)
        write_codes(values, cuts, place[: len(cuts)], is_wide[span], codes, kernels, map)
        return cuts, codes

    def take(task: int) -> Any:
        if task < len(spans):
            return make(spans[task])
        column = n_whole + task - len(spans)
        return read_block(table, slice(column, column + 1), keep, kernels)

    def join(lo: int) -> None:
        mine = slice(lo, lo + JOINED_AT_ONCE)
        for span, (_, codes) in zip(spans, made, strict=True):
            rows[mine, span] = codes[mine]
        for column, one in enumerate(shared, n_whole):
            values, segments = one.values, one.segments
            coded = ByteTable(rows, place[column : column + 1], is_wide[column : column + 1])
            kernels.data.binning.code(float_table(values), lo, min(lo + JOINED_AT_ONCE, n_rows), segments, coded)

    with open_workers(n_workers) as share:
        taken = list(share(take, range(len(spans) + len(levels) - n_whole)))
        made = taken[: len(spans)]
        shared = cut_in_pieces(taken[len(spans) :], most, kernels, share, n_workers)
        run_all(share, join, range(0, n_rows, JOINED_AT_ONCE))
    cuts = [cut for some, _ in made for cut in some] + [one.cuts for one in shared]
    return Bins(rows, place, is_wide, *describe(cuts, table.schema.is_categorical), *no_bundles(len(cuts)))


class CutColumn(NamedTuple):
    """A column whose bins are known, ready to be coded."""

    values: NDArray[Any]  # (1, n_rows)
    cuts: Cuts
    segments: BinSegments


def cut_in_pieces(
    columns: Sequence[NDArray[Any]], max_bins: int, kernels: Any, share: Share, n_workers: int
) -> list[CutColumn]:
    """Cut long numeric columns, each (1, n_rows), of rows of weight 1; threads sort the pieces of all of them."""
    if not columns:
        return []
    n_rows = columns[0].shape[1]
    begin = list_pieces(n_rows)
    ordered = [np.empty(n_rows, values.dtype) for values in columns]

    n_sorted = len(columns) * N_PIECES
    n_tasks = min(n_sorted, n_workers)  # to hand out 224 pieces took the caller longer than 32 threads to sort them

    def sort(task: int) -> None:
        for column, piece in (divmod(k, N_PIECES) for k in range(task, n_sorted, n_tasks)):
            mine = slice(begin[piece], begin[piece + 1])
            ordered[column][mine] = columns[column][0, mine]
            ordered[column][mine].sort()

    def cut(column: int) -> CutColumn:
        values, cuts = columns[column], cut_sorted_pieces(ordered[column], begin, max_bins, kernels)
        return CutColumn(values, cuts, lay_cuts([cuts], values.dtype, n_rows, kernels))

    run_all(share, sort, range(n_tasks))
    return list(share(cut, range(len(columns))))


def cut_long_column(column: NDArray[Any], max_bins: int, kernels: Any) -> Cuts:
    """Cuts of a column (n_rows,) of rows of weight 1; pieces of it are sorted in three quarters of the time."""
    two = cut_two_values(column)
    if two is not None:
        return two
    begin, ordered = list_pieces(len(column)), column.copy()
    for piece in range(N_PIECES):
        ordered[begin[piece] : begin[piece + 1]].sort()
    return cut_sorted_pieces(ordered, begin, max_bins, kernels)


def list_pieces(n_rows: int) -> NDArray[np.int64]:
    """Where the pieces of a column begin, and where the last one ends."""
    return np.linspace(0, n_rows, N_PIECES + 1).astype(np.int64)


def cut_sorted_pieces(ordered: NDArray[Any], begin: NDArray[np.int64], max_bins: int, kernels: Any) -> Cuts:
    """Cuts of a column (n_rows,) that is sorted from each place of `begin` to the next."""
    most = min(max_bins, len(ordered))
    tail_values, low, high = np.empty((3, most), ordered.dtype)
    places, tail = np.empty((3, N_PIECES), np.int64), np.empty(most, np.int64)
    n_bins, n_known = kernels.data.sorted_pieces.cut_pieces(ordered, begin, most, places, tail, tail_values, low, high)
    return make_cuts(low[:n_bins], high[:n_bins], has_missing=n_known < len(ordered))


def bin_sparse_table(table: Table, weight: NDArray[np.int64], max_bins: int, kernels: Any) -> Bins:
    """The same of a sparse table, by its stored cells."""
    cells = code_cells(table, weight, max_bins, kernels)
    return write_stored(cells, outline_stored(cells, table.schema.is_categorical), table.n_rows)


def outline_stored(cells: CodedCells, is_categorical: NDArray[np.bool_]) -> Bins:
    """Bins of sparse columns without rows."""
    n_codes = cells.n_codes
    place, is_wide, stride = lay_out(n_codes)
    features = np.zeros((FEATURE_ROWS, len(n_codes)), np.int64)
    features[N_CODES] = n_codes
    features[IS_CATEGORICAL] = is_categorical
    features[OFFSET, 1:] = np.cumsum(n_codes)[:-1]
    if cells.low is not cells.high:
        features[IS_BINNED, np.repeat(np.arange(len(n_codes)), n_codes)[cells.low != cells.high]] = 1
    rows, edges = np.zeros((0, stride), np.uint8), np.stack([cells.low, cells.high])
    return Bins(rows, place, is_wide, features, edges, cells.has_missing, *no_bundles(len(n_codes)))


def write_stored(cells: CodedCells, outline: Bins, n_rows: int) -> Bins:
    """Bins of sparse columns as they are laid out: all rows as what is not stored has them, then each cell."""
    has_byte = ~outline.is_wide & (outline.place >= 0)
    is_shared = outline.base >= 0
    first = np.zeros(outline.rows.shape[1], np.uint8)
    first[outline.place[has_byte & ~is_shared]] = cells.zero[has_byte & ~is_shared]
    rows = np.empty((n_rows, len(first)), np.uint8)
    rows[:] = first
    for j in np.flatnonzero(is_shared & (cells.zero != outline.usual)).tolist():  # rows without a cell are unusual
        is_stored = np.zeros(n_rows, np.bool_)
        is_stored[cells.rows[cells.begin[j] : cells.begin[j + 1]]] = True
        rows[~is_stored, outline.place[j]] = byte_codes(outline, j, cells.zero[j])
    feature = cells.feature()
    for lo in range(0, len(feature), CELLS_AT_ONCE):
        some = slice(lo, lo + CELLS_AT_ONCE)
        of, code, row = feature[some], cells.codes[some], cells.rows[some]
        is_told = has_byte[of] & (~is_shared[of] | (code != outline.usual[of]))
        of, code = of[is_told], code[is_told]
        rows[row[is_told], outline.place[of]] = byte_codes(outline, of, code)
    for j in np.flatnonzero(outline.is_wide & (outline.place >= 0)).tolist():
        cells.column(j).write(rows.view("<u2")[:, outline.place[j] // 2])
    return outline._replace(rows=rows)


def byte_codes(outline: Bins, j: Any, code: Any) -> Any:
    """What bytes tell of the codes of narrow features; of those that share one, not for the usual code."""
    base = outline.base[j]
    return np.where(base < 0, code, base + code - 1 - (code > outline.usual[j])).astype(np.uint8)


def lay_out(n_codes: Sequence[int] | NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_], int]:
    """Byte offset of each feature in a row, whether it takes two bytes, and bytes per row.

    Rows are padded so that none straddles more cache lines than it must.
    """
    is_wide = np.array(n_codes) > MOST_NARROW
    place, stride = lay_out_bytes(np.cumsum(~is_wide) - 1, is_wide, int(np.count_nonzero(~is_wide)))
    return place, is_wide, stride


def lay_out_bytes(place: NDArray[np.int64], is_wide: NDArray[np.bool_], n_narrow: int) -> tuple[NDArray[np.int64], int]:
    """The same with the places of narrow features given, in so many bytes: wide ones follow them."""
    first_wide = n_narrow + n_narrow % 2
    place = np.where(is_wide, first_wide + 2 * (np.cumsum(is_wide) - 1), place)
    n_bytes = int(np.max(place + 1 + is_wide))
    if n_bytes >= CACHE_LINE:
        return place, -(-n_bytes // CACHE_LINE) * CACHE_LINE
    return place, max(8, 1 << (n_bytes - 1).bit_length())


def describe(
    cuts: Sequence[Cuts], is_categorical: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
    """What codes stand for: `features`, `edges` and `has_missing` of `Bins`."""
    features = np.zeros((FEATURE_ROWS, len(cuts)), np.int64)
    features[N_CODES] = [len(cut.low) for cut in cuts]
    features[IS_CATEGORICAL] = is_categorical
    features[IS_BINNED] = [is_binned(cut) for cut in cuts]
    features[OFFSET, 1:] = np.cumsum(features[N_CODES])[:-1]
    edges = np.stack([np.concatenate([cut.low for cut in cuts]), np.concatenate([cut.high for cut in cuts])])
    return features, edges, np.array([cut.has_missing for cut in cuts], np.bool_)


def no_bundles(n_features: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """`base` and `usual` of `Bins` where every feature has bytes of its own."""
    return np.full(n_features, -1), np.zeros(n_features, np.int64)


def is_binned(cut: Cuts) -> bool:
    """Whether a code of the column stands for several values."""
    return cut.low is not cut.high and not np.array_equal(cut.low, cut.high)


# --- A block of columns -----------------------------------------------------------------------------------------


def read_blocks(
    table: Table, spans: Sequence[slice], keep: NDArray[np.bool_] | None, kernels: Any, share: Share
) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Blocks of columns, one after the other; threads read the next while the last is worked on."""

    def read(span: slice) -> NDArray[Any]:
        return read_block(table, span, keep, kernels)

    following = iter(share(read, spans[:1]))
    for k, span in enumerate(spans):
        values = next(following)
        following = iter(share(read, spans[k + 1 : k + 2]))
        yield span, values


def read_block(table: Table, span: slice, keep: NDArray[np.bool_] | None, kernels: Any) -> NDArray[Any]:
    """Columns of a table, (n_columns, n_rows) in float32 or float64."""
    short = np.empty((span.stop - span.start, table.n_rows), np.float32) if table.is_short else None
    block = table.block(span.start, span.stop, short)
    block = block if keep is None else np.compress(keep, block, axis=1)
    return narrow(block, kernels) if short is None else block


def narrow(block: NDArray[np.float64], kernels: Any) -> NDArray[Any]:
    """The block in float32 if that loses nothing: it sorts in 0.6 of the time."""
    narrowed = np.empty(block.shape, np.float32)
    return narrowed if kernels.data.binning.narrow(block, narrowed) else block


def cut_block(
    values: NDArray[Any], levels: Sequence[Any], weight: NDArray[np.int64], max_bins: int, kernels: Any, share: Share
) -> list[Cuts]:
    """Cuts of columns (n_columns, n_rows); of a category, its levels."""
    numeric = [j for j, one in enumerate(levels) if one is None]
    at_once = max(SORTED_AT_ONCE // values.shape[1], 1)
    groups = [numeric[k : k + at_once] for k in range(0, len(numeric), at_once)]

    def cut(group: list[int]) -> list[Cuts]:
        if len(weight) == 1 and values.shape[1] >= VERY_LONG_COLUMN:
            return [cut_long_column(values[j], max_bins, kernels) for j in group]
        return cut_columns(values, group, weight, max_bins, kernels)

    found = share(cut, groups)
    cuts = iter([cut for group in found for cut in group])
    return [next(cuts) if one is None else list_levels(values[j], len(one)) for j, one in enumerate(levels)]


def list_levels(column: NDArray[Any], n_levels: int) -> Cuts:
    """Cuts of a category: a level's code is its index + 1."""
    index = np.arange(float(n_levels))
    return Cuts(index, index, bool(np.isnan(column).any()))


def cut_columns(
    values: NDArray[Any], columns: list[int], weight: NDArray[np.int64], max_bins: int, kernels: Any
) -> list[Cuts]:
    """Cuts of some columns, all numeric, of a block (any, n_rows)."""
    two = {j: cut for j in columns if (cut := cut_two_values(values[j])) is not None}
    if two:
        others = [j for j in columns if j not in two]
        rest = iter(cut_columns(values, others, weight, max_bins, kernels) if others else [])
        return [two[j] if j in two else next(rest) for j in columns]
    ordered = values[columns]
    ordered.sort(axis=1)
    n_rows = values.shape[1]
    most = min(max_bins, n_rows)
    low, high = np.empty((2, len(columns), most), values.dtype)
    n_bins, n_known = np.empty((2, len(columns)), np.int64)
    kernels.data.binning.cut(ordered, most, np.empty(most, np.int64), low, high, n_bins, n_known)
    cuts = []
    for j, n in enumerate(n_bins.tolist()):
        cut = make_cuts(low[j, :n], high[j, :n], has_missing=n_known[j] < n_rows)
        if len(weight) > 1 and is_binned(cut):  # where every value has a code, weights do not matter
            cut = cut_weighted(values[columns[j]], ordered[j], weight, max_bins, kernels)
        cuts.append(cut)
    return cuts


def make_cuts(low: NDArray[Any], high: NDArray[Any], *, has_missing: bool | np.bool_) -> Cuts:
    """The bins of a column by what kernels found, of the type of the column; -0.0 becomes 0.0."""
    return Cuts((low + 0.0).astype(np.float64), (high + 0.0).astype(np.float64), bool(has_missing))


def cut_two_values(column: NDArray[Any]) -> Cuts | None:
    """Cuts of a column (n_rows,) of two numbers at most and no missing one, as of a one-hot block; else None.

    That is seen in a fifth of the time that sorting takes.
    """
    if len(set(column[:FEW].tolist())) > 2:
        return None
    low, high = column.min(), column.max()
    if not ((column == low) | (column == high)).all():  # a NaN is neither
        return None
    both = np.array([low] if low == high else [low, high], np.float64) + 0.0  # -0.0 becomes 0.0
    return Cuts(both, both, has_missing=False)


def cut_weighted(
    column: NDArray[Any], ordered: NDArray[Any], weight: NDArray[np.int64], max_bins: int, kernels: Any
) -> Cuts:
    """Cuts of a column of more values than bins, given also in order, whose rows (n_rows,) have weights."""
    order, mask = order_rows(column, kernels)
    starts, mass = np.empty(len(column) + 1, np.int64), np.empty(len(column), np.int64)
    n_values = kernels.data.binning.weigh_runs(ordered, order, mask, weight, starts, mass)
    bins = np.empty(n_values, np.int64)
    kernels.data.binning.fill_bins(mass[:n_values], max_bins, bins)
    begins = starts[np.flatnonzero(np.diff(bins, prepend=-1))]
    n_known = starts[n_values]
    ends = np.append(begins[1:], n_known)
    low, high = (ordered[at].astype(np.float64) + 0.0 for at in (begins, ends - 1))
    return Cuts(low, high, bool(n_known < len(column)))


def order_rows(column: NDArray[Any], kernels: Any) -> tuple[NDArray[np.int64], int]:
    """The rows of a column (n_rows,) by value, NaN last, and the bits of the result that hold them."""
    if column.dtype == np.float32:  # value and row fit one integer
        keys = np.empty(len(column), np.int64)
        kernels.data.binning.pack_rows(column, column.view(np.int32), keys)
        keys.sort()
        return keys, 2**32 - 1
    block = column[np.newaxis] + 0.0  # -0.0 becomes 0.0
    block[np.isnan(block)] = np.nan  # one with a sign would sort first
    return sort_rows(block)[0][0], -1


def write_codes(
    values: NDArray[Any],
    cuts: Sequence[Cuts],
    place: NDArray[np.int64],
    is_wide: NDArray[np.bool_],
    rows: NDArray[np.uint8],
    kernels: Any,
    share: Share,
) -> None:
    """Write the codes of columns (n_columns, n_rows) to the bytes at `place` of each row."""
    segments = lay_cuts(cuts, values.dtype, values.shape[1], kernels)
    code_values(values, segments, ByteTable(rows, place, is_wide), kernels, share)


def lay_cuts(cuts: Sequence[Cuts], dtype: np.dtype[Any], n_rows: int, kernels: Any) -> BinSegments:
    """The cuts of columns as values of a type, float32 or float64, are coded by; n_rows: that are coded at once."""
    n_bins = np.array([len(cut.low) for cut in cuts])
    most = int(n_bins.max())
    low = np.full((len(cuts), most + (1 << most.bit_length())), np.nan, dtype)
    for j, cut in enumerate(cuts):
        low[j, : len(cut.low)] = cut.low
    return lay_segments(low, n_bins, max(min(SEGMENTS_PER_CODE * most, n_rows, MOST_SEGMENTS), 4), kernels)


def code_values(values: NDArray[Any], segments: BinSegments, coded: ByteTable, kernels: Any, share: Share) -> None:
    """Write the codes of columns (n_columns, n_rows) whose cuts are laid."""
    n_rows, table = values.shape[1], float_table(values)

    def write(lo: int) -> None:
        kernels.data.binning.code(table, lo, min(lo + ROWS_AT_ONCE, n_rows), segments, coded)

    run_all(share, write, range(0, n_rows, ROWS_AT_ONCE))


def float_table(values: NDArray[Any]) -> FloatTable:
    """Columns (n_columns, n_rows) as kernels code them."""
    whole = np.dtype(f"i{values.itemsize}")
    return FloatTable(values, values.view(whole), int(np.iinfo(whole).min))


def lay_segments(low: NDArray[Any], n_bins: NDArray[np.int64], n_segments: int, kernels: Any) -> BinSegments:
    """Lay segments over the bins of columns, float32 or float64 (n_columns, any); see `kernels.data.binning`."""
    n_columns = len(low)
    whole = np.dtype(f"i{low.itemsize}")
    segments = BinSegments(
        low,
        np.empty((n_columns, n_segments), np.uint16),
        *np.empty((3, n_columns), low.dtype),
        *np.empty((3, n_columns), np.int64),
    )
    kernels.data.binning.lay_segments(segments, low.view(whole), int(np.iinfo(whole).min), n_bins)
    return segments


# --- Bins merged anew -------------------------------------------------------------------------------------------


def code_mass(bins: Bins, mass: NDArray[np.int64], kernels: Any, n_workers: int = 1) -> NDArray[np.int64]:
    """Mass behind each known code (n_codes of all features,), given that of each row (n_rows,)."""
    sums = np.zeros(bins.edges.shape[1], np.int64)
    ends = np.linspace(0, bins.n_features, min(n_workers, bins.n_features) + 1).astype(np.int64).tolist()
    coded = ByteTable(bins.rows, bins.place, bins.is_wide)

    def add(worker: int) -> None:
        first, last = ends[worker : worker + 2]
        kernels.data.binning.sum_mass(coded, bins.features, mass, first, last, sums)

    with open_workers(n_workers) as share:
        run_all(share, add, range(len(ends) - 1))
    return sums


def rebin(bins: Bins, mass: NDArray[np.int64], max_bins: int, kernels: Any, n_workers: int = 1) -> Bins:
    """Merge the codes of numeric features into bins of about equal mass.

    Parameters
    ----------
    bins : Bins
        Fine ones, as of ``bin_table(..., max_bins=None)``.
    mass : int64 array (n_codes of all features,)
        Of each code, such as the sum of the hessians of its rows; see `code_mass`.
    max_bins : int
        Most bins of a numeric feature, 2 to 65,535. A feature with no more codes, and a category, stays as it is.
    kernels : kernel modules
        Compiled or interpreted.
    n_workers : int
        Threads; the bins are the same for any number.
    """
    is_categorical = bins.features[IS_CATEGORICAL].astype(np.bool_)
    lookup = np.zeros(bins.edges.shape[1] + bins.n_features, CODE)

    def merge(j: int) -> Cuts:
        first = int(bins.features[OFFSET, j])
        codes = slice(first, first + int(bins.features[N_CODES, j]))
        low, high = bins.edges[:, codes]
        new = np.arange(len(low))
        if len(low) > max_bins and not is_categorical[j]:
            kernels.data.binning.fill_bins(mass[codes], max_bins, new)
        lookup[codes.start + j + 1 : codes.stop + j + 1] = new + 1
        begins = np.flatnonzero(np.diff(new, prepend=-1))
        return Cuts(low[begins], high[np.append(begins[1:], len(new))[: len(begins)] - 1], bool(bins.has_missing[j]))

    with open_workers(n_workers) as share:
        cuts = list(share(merge, range(bins.n_features)))
        place, is_wide, stride = lay_out([len(cut.low) for cut in cuts])
        rows = np.zeros((len(bins.rows), stride), np.uint8)
        old, new = ByteTable(bins.rows, bins.place, bins.is_wide), ByteTable(rows, place, is_wide)

        def write(lo: int) -> None:
            hi = min(lo + ROWS_AT_ONCE, len(rows))
            kernels.data.binning.recode(old, lookup, bins.features, lo, hi, new)

        run_all(share, write, range(0, len(rows), ROWS_AT_ONCE))
    return Bins(rows, place, is_wide, *describe(cuts, is_categorical), *no_bundles(len(cuts)))


# --- One column, for anyone -------------------------------------------------------------------------------------


def equal_density_bins(x: ArrayLike, n_bins: int = 255, sample_weight: ArrayLike | None = None) -> NDArray[np.float64]:
    """Thresholds that cut a column into bins of about equal weight.

    A bin takes values, in ascending order, until it holds its share of the weight that was left when it opened: a
    heavy value gets a bin of its own and the rest share the remaining bins evenly. Equal values are never parted.
    Gradient boosting bins its columns this way.

    Parameters
    ----------
    x : array-like of shape (n_rows,)
        Numbers. NaN and None are missing and take no part; infinities are ordinary lowest and highest values.
    n_bins : int, default=255
        Most bins, 2 to 65,535. If x has no more distinct values than this, each has a bin of its own.
    sample_weight : array-like of shape (n_rows,), optional
        Weights, not negative; a row of weight 0 takes no part. None: every row weighs 1.

    Returns
    -------
    float64 array of shape (number of bins - 1,)
        Ascending. Bin k holds the values above threshold k - 1 and up to threshold k, itself included:
        ``numpy.searchsorted(thresholds, x)`` numbers the bins of values from 0. Thresholds are midpoints between the
        highest value of a bin and the lowest of the next. Empty if fewer than two values are known.

    Examples
    --------
    >>> from spinney import equal_density_bins
    >>> equal_density_bins([1, 2, 3, 4, 10, 20, 30, 40], n_bins=4).tolist()
    [2.5, 7.0, 25.0]
    >>> equal_density_bins([0, 0, 0, 0, 0, 0, 1, 2, 3, 4], n_bins=3).tolist()
    [0.5, 2.5]
    >>> equal_density_bins([1, 2, 3, 4], n_bins=2, sample_weight=[3, 1, 1, 1]).tolist()
    [1.5]
    """
    values, weight = check_column(x, n_bins, sample_weight)
    n_known = np.count_nonzero(~np.isnan(values))
    if n_known < 2:
        return np.empty(0)
    chosen = choose_kernels(len(values) * 1e-6 if len(weight) > 1 else n_bins * 1e-4)
    (cut,) = cut_columns(values[np.newaxis], [0], weight, n_bins, chosen)
    return midpoints(cut.high[:-1], cut.low[1:])


def check_column(
    x: ArrayLike, n_bins: Any, sample_weight: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The rows of x that have a weight, and the weights in fixed point; one entry where all are equal."""
    is_whole = isinstance(n_bins, int | np.integer) and not isinstance(n_bins, bool)
    if not is_whole or not 2 <= n_bins <= MAX_CODES:
        raise ValueError(f"n_bins={n_bins!r}: give a whole number from 2 to {MAX_CODES:,}.")
    values = one_column(x, "x")
    if sample_weight is None:
        return values, fix_weights(None, len(values)).values
    weight = one_column(sample_weight, "sample_weight")
    if len(weight) != len(values):
        raise ValueError(f"sample_weight has {len(weight)} entries for the {len(values)} of x: give one for each.")
    is_bad = ~((weight >= 0.0) & (weight < np.inf))
    if is_bad.any():
        row = int(np.argmax(is_bad))
        raise ValueError(f"sample_weight[{row}] is {weight[row]}: weights must be finite and not negative.")
    keep = weight > 0.0
    if not keep.any():
        raise ValueError("sample_weight is zero for every row: give at least one row a positive weight.")
    return values[keep], fix_weights(weight[keep], int(np.count_nonzero(keep))).values


def one_column(given: ArrayLike, name: str) -> NDArray[np.float64]:
    """A one-dimensional argument as float64, NaN where missing."""
    array = np.asarray(given)
    if array.dtype.kind not in "fiubO":
        raise ValueError(f"{name} has dtype {array.dtype}: give real numbers.")
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}: give one column, of shape (n_rows,).")
    if len(array) == 0:
        raise ValueError(f"{name} is empty: give at least one row.")
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} holds something that is not a number: {error}.") from error
