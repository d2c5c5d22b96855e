"""What the workers of a cluster do of a fit by levels before trees grow: pure functions of the rows of a part.

partitions ──lay_tables──► RowTables
RowTables ──look_part──► kinds of columns, classes
RowTables ──read_labels──► target and weights, for the client
RowTables ──sort_columns──► sorted runs ──cut_columns──► cuts of some features
RowTables ──code_part──► codes ──place_rows──► PlacedRows, on which trees grow
"""

from __future__ import annotations

import hashlib
import pickle
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._jit import kernels as choose_kernels
from spinney._jit.choice import compiled
from spinney._warnings import collecting
from spinney.ensemble.boosting_levels import Y
from spinney.ensemble.part_bags import TRUTH
from spinney.estimators.checks import check_numbers, check_y
from spinney.estimators.fingerprints import HASHED_ROWS
from spinney.scale.block_bundles import sample_rows, share_bytes
from spinney.scale.block_coding import BlockCoder
from spinney.scale.cluster.level_parts import PlacedRows
from spinney.scale.cluster.row_ranges import Joining, Range, take_range
from spinney.scale.cluster.tree_parts import PlacedTrees
from spinney.scale.column_cuts import cut_sorted
from spinney.scale.layout import BLOCK_ROWS
from spinney.scale.sorted_runs import Piece, SortedRuns, add_up, sort_values
from spinney.scale.stored_table import StoredTable
from spinney.table.binning import Cuts
from spinney.table.columns import Categories, Dates, Numbers, open_columns
from spinney.table.dates import pick_extremes
from spinney.table.fixed_point import fix_block

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from spinney.estimators.rows_on_disk import RowMeaning
    from spinney.table.binning import Bins
    from spinney.table.columns import Column, Columns
    from spinney.table.fixed_point import Weights
    from spinney.table.schema import Schema

    Floats = NDArray[np.float64]

MERGED_BYTES = 64 << 20  # of a column, while its runs are merged
LARGE_ROWS = 1 << 14  # for which compiled kernels are worth waiting for


class RowTables(NamedTuple):
    """The rows of a part as the user has them."""

    first: int
    n_rows: int
    X: Any
    y: Any
    weight: Any  # None: 1 each


class RowRule(NamedTuple):
    """How target and weights of a part are read."""

    name: str  # of the estimator
    classes: NDArray[Any] | None
    meaning: RowMeaning | None = None  # None: as they were given
    weights: Weights | None = None

    def labels(self, tables: RowTables) -> tuple[Floats, Floats | None]:
        """Codes of classes or numbers, and weights, of all rows."""
        y = check_y(self.name, tables.y, tables.n_rows, tables.first)
        if self.classes is None:
            target = check_numbers(self.name, y, tables.n_rows)
        else:
            target = np.searchsorted(self.classes, y).astype(np.float64)
        if tables.weight is None:
            return target, None
        try:
            weight = np.array(tables.weight, np.float64).reshape(-1)
        except (TypeError, ValueError) as error:
            raise ValueError(f"sample_weight must hold numbers: {error}") from error
        return target, weight

    def rows(self, tables: RowTables) -> tuple[Floats, Floats | None, NDArray[np.bool_] | None]:
        """Target and weights of the rows to learn from, and which these are; None: all."""
        assert self.meaning is not None
        return self.meaning.read(*self.labels(tables))

    def mass(self, weight: Any) -> NDArray[np.int64]:
        """Weights in fixed point."""
        assert self.weights is not None
        return fix_block(weight, self.weights)


class TreeRule(NamedTuple):
    """How target and weights of a part are read by trees on bags, which keep every row."""

    labels_rule: RowRule
    weights: Weights  # without values
    exponent: int | None  # of numbers, whose targets are in units of 2**exponent; None: classes
    truth: Floats | None = None  # where weights are not 1: both come from the client, which has weighed classes
    weight: NDArray[np.int64] | None = None

    def rows(self, tables: RowTables) -> tuple[Floats, NDArray[np.int64] | None, None]:
        """Target and weights of the rows."""
        if self.truth is not None:
            return self.truth, self.weight, None
        y, _ = self.labels_rule.labels(tables)
        return y if self.exponent is None else np.ldexp(y, -self.exponent), None, None

    def mass(self, weight: Any) -> NDArray[np.int64]:
        """Weights in fixed point, which they are in."""
        found: NDArray[np.int64] = weight
        return found


def lay_tables(
    first: int, n_rows: int, joinings: list[Joining | None], ranges: list[list[Range]], parts: list[list[Any]]
) -> RowTables:
    """The rows of a part; parts: partitions of X, y and weights, or what stands for them where it is in memory."""
    tables: list[Any] = []
    for joining, of, given in zip(joinings, ranges, parts, strict=True):
        if joining is None:
            tables.append(given[0] if given else None)
            continue
        pieces = [take_range(part, one.first, one.last) for one, part in zip(of, given, strict=True)]
        tables.append(joining.join(pieces))
    return RowTables(first, n_rows, *tables)


# --- What columns and classes there are -----------------------------------------------------------------------


class Outline(NamedTuple):
    """What a part tells of a column."""

    column: Column  # see `table.columns.Deferred`
    is_known: bool  # whether any of its values is


class PartLook(NamedTuple):
    """What a part tells of the table."""

    columns: list[Outline]
    labels: NDArray[Any] | None  # distinct ones


def look_part(given: list[Any]) -> PartLook:
    """Look at a part; given: it, which columns are declared categories, and whether there are classes."""
    tables, declared, has_classes, name = given
    columns = open_columns(tables.X)
    outlines = [outline_column(columns.read(j), is_declared) for j, is_declared in enumerate(declared)]
    labels = None
    if has_classes:
        y = check_y(name, tables.y, tables.n_rows, tables.first)
        try:
            labels = np.unique(y)
        except TypeError:  # classes of different types, which the client refuses
            labels = np.array(list(dict.fromkeys(y.tolist())), dtype=object)
    return PartLook(outlines, labels)


def outline_column(column: Column, is_declared: bool) -> Outline:
    """What a model learns from a column, without its rows."""
    if isinstance(column, Categories):
        return Outline(Categories(np.empty(0, np.int32), column.values, column.is_ordered), bool(column.values))
    if isinstance(column, Dates):
        found = pick_extremes(column.values)
        return Outline(Dates(found, column.has_zone), len(found) > 0)
    values = column.read()
    is_known = not (values.dtype.kind == "f" and np.isnan(values[:1]).all() and np.isnan(values).all())
    return Outline(Numbers(np.unique(column.exact()[0]) if is_declared else column.wide_values()), is_known)


def read_labels(given: list[Any]) -> tuple[int, Floats, Floats | None]:
    """Target and weights of a part as they were given, for the client; given: the part, and the rule."""
    tables, rule = given
    return tables.first, *rule.labels(tables)


# --- Hashes of rows -------------------------------------------------------------------------------------------


def hash_part(given: list[Any]) -> list[bytes]:
    """Hashes of the blocks of rows of a part, as `fingerprints` has them.

    given: the part, the schema, the rule, and the type that the target is hashed in.
    """
    tables, schema, rule, dtype = given
    digests = [hashlib.sha256() for _ in range(0, tables.n_rows, HASHED_ROWS)]
    for values in (*read_columns_of(tables, schema), rule.labels(tables)[0].astype(dtype)):
        for k, digest in enumerate(digests):
            digest.update(values[k * HASHED_ROWS : (k + 1) * HASHED_ROWS].data)
    return [digest.digest() for digest in digests]


def send_values(given: list[Any]) -> tuple[int, list[Floats]]:
    """The values of a part of a small table, for the client to hash."""
    tables, schema = given
    return tables.first, list(read_columns_of(tables, schema))


def read_columns_of(tables: RowTables, schema: Schema) -> Iterator[Floats]:
    """The features of a part, one bit pattern for all that is missing."""
    table, columns = open_part(tables, schema)
    for j, features in enumerate(table.list_inputs()):
        for part in table.read_input(columns, j, features.start):
            values = part.astype(np.float64)
            values[np.isnan(values)] = np.nan
            yield values


def open_part(tables: RowTables, schema: Schema) -> tuple[StoredTable, Columns]:
    """A part as a table on disk is read."""
    columns = open_columns(tables.X)
    return StoredTable(schema, columns, None, lambda: iter([columns]), tables.n_rows), columns


# --- Cuts -----------------------------------------------------------------------------------------------------


class SortedColumn(NamedTuple):
    """The known values of a feature in a part, in their order; None of a category."""

    piece: Piece | None
    total: int  # mass
    has_missing: bool


def sort_columns(
    tables: RowTables, schema: Schema, rule: RowRule | TreeRule, group: list[tuple[int, range]]
) -> list[SortedColumn]:
    """Sort some features of a part; group: columns, and the features of each."""
    _, weight, kept = rule.rows(tables)
    assert rule.weights is not None
    mass = None if weight is None or rule.weights.is_unit else rule.mass(weight)
    found = []
    with collecting():
        table, columns = open_part(tables, schema)
        for j, features in group:
            for values in table.read_input(columns, j, features.start):
                known = ~np.isnan(values)
                has_missing = not bool(known.all() if kept is None else known[kept].all())
                if schema.levels[features.start] is not None:
                    found.append(SortedColumn(None, 0, has_missing))
                    continue
                own, chosen = mass, values.copy() if kept is None else values[kept]  # sorted in its place
                if has_missing:
                    known = known if kept is None else known[kept]
                    chosen, own = chosen[known], None if mass is None else mass[known]
                total = len(chosen) if own is None else int(own.sum())
                found.append(SortedColumn(sort_values(chosen, own), total, has_missing))
    return found


def cut_columns(found: list[list[SortedColumn]], n_levels: list[int | None], most: int) -> list[Cuts]:
    """The cuts of some features from their runs in all parts; n_levels: of a category, which has no runs."""
    cuts = []
    for k, levels in enumerate(n_levels):
        of = [part[k] for part in found]
        has_missing = any(one.has_missing for one in of)
        if levels is not None:
            index = np.arange(float(levels))
            cuts.append(Cuts(index, index, has_missing))
            continue
        pieces = [one.piece for one in of if one.piece is not None and len(one.piece.values)]
        has_mass = any(piece.mass is not None for piece in pieces)
        runs = SortedRuns(MERGED_BYTES, no_path, has_mass=has_mass)
        for piece in pieces:
            runs.hold(Piece(*add_up(piece)) if has_mass and piece.mass is None else piece)
        runs.total = sum(one.total for one in of)
        cuts.append(Cuts(*cut_sorted(runs, most, choose_kernels(runs.total * 1e-6)), has_missing))
    return cuts


def cut_in_task(given: list[Any]) -> list[Cuts]:
    """The same with all in a list."""
    return cut_columns(*given)


def no_path() -> Any:
    """Nothing is written to disk: `SortedRuns.sort` alone would, and has nothing to sort."""
    raise AssertionError("runs of a cluster are held")


# --- Codes ----------------------------------------------------------------------------------------------------


class Coding(NamedTuple):
    """How values become codes."""

    schema: Schema
    rule: RowRule | TreeRule
    cuts: list[Cuts]
    outline: Bins


class CodedPart(NamedTuple):
    """The rows of a part to learn from."""

    codes: NDArray[np.uint8]
    y: Floats
    weight: Any  # float64, or int64 of trees on bags; None: 1 each

    def take(self, first: int, last: int) -> CodedPart:
        """Rows that follow each other."""
        return CodedPart(*(None if array is None else array[first:last] for array in self))  # type: ignore[arg-type]

    def __sizeof__(self) -> int:
        """Bytes."""
        return self.codes.nbytes + self.y.nbytes * (1 if self.weight is None else 2)


def code_part(tables: RowTables, coding: Coding) -> CodedPart:
    """Code the rows of a part."""
    schema, rule, cuts, outline = coding
    y, weight, kept = rule.rows(tables)
    assert rule.weights is not None
    codes = np.zeros((len(y), outline.rows.shape[1]), np.uint8)
    kernels = compiled() if tables.n_rows >= LARGE_ROWS else choose_kernels(tables.n_rows * 1e-5)
    done = 0
    with collecting():
        coder = None
        for lo in range(0, tables.n_rows, BLOCK_ROWS):
            hi = min(lo + BLOCK_ROWS, tables.n_rows)
            block = RowTables(tables.first + lo, hi - lo, take_range(tables.X, lo, hi), None, None)
            table, columns = open_part(block, schema)
            if coder is None:
                coder = BlockCoder(table, cuts, outline, kernels, 1 << 40)
            coder.table = table
            some = coder.code(columns, None if kept is None else kept[lo:hi])
            codes[done : done + len(some)] = some
            done += len(some)
    return CodedPart(codes, y, None if rule.weights.is_unit else weight)


def sample_part(given: list[Any]) -> tuple[int, NDArray[np.uint8]]:
    """Rows of a sample; given: the part, its first row among those to learn from, and every how many-th is taken."""
    coded, first, step = given
    return first, sample_rows(coded.codes, first, step).copy()


def meet_part(given: list[Any]) -> NDArray[np.bool_]:
    """Features that meet in a part; given: it, what is known of them, and how they are bundled."""
    coded, search, bundles = given
    met = np.zeros_like(search.known)
    for lo in range(0, len(coded.codes), BLOCK_ROWS):
        met |= search.meet(coded.codes[lo : lo + BLOCK_ROWS], bundles)
    return met


class Sharing(NamedTuple):
    """Features that share a byte."""

    bins: Bins  # where each has its own
    bundles: list[list[int]]


class PlacedOutline(NamedTuple):
    """What codes stand for in the end, and how they come to be so."""

    outline: Bins
    sharing: Sharing | None
    n_scores: int


def place_rows(number: int, first: int, how: PlacedOutline, ranges: list[Range], coded: list[CodedPart]) -> PlacedRows:
    """A part of rows to learn from, cut into blocks; ranges: of the coded parts, those rows that it has."""
    return PlacedRows(number, first, cut_blocks(how, ranges, coded, Y), how.outline, how.n_scores)


def code_bag_part(tables: RowTables, coding: Coding, rule: TreeRule) -> CodedPart:
    """The same for trees on bags, whose cuts are many: all parts share them, and each has a rule of its own."""
    return code_part(tables, coding._replace(rule=rule))


def place_trees(
    number: int, first: int, coding: Coding, ranges: list[Range], coded: list[CodedPart], known: list[Any]
) -> PlacedTrees:
    """A part of rows for trees on bags; known: see `tree_parts.list_known`."""
    blocks = cut_blocks(PlacedOutline(coding.outline, None, 1), ranges, coded, TRUTH)
    placed = PlacedTrees(number, first, blocks, coding.outline)
    placed.known = known
    return placed


def take_known(content: bytes) -> Any:
    """What all tasks on bags share, at a worker: one value, of which each worker has one."""
    return pickle.loads(content)  # noqa: S301  (of the client of this cluster, as every task is)


def cut_blocks(
    how: PlacedOutline, ranges: list[Range], coded: list[CodedPart], name: str
) -> list[dict[str, NDArray[Any]]]:
    """Some rows of coded parts in blocks; name: of the target."""
    n_rows = sum(one.last - one.first for one in ranges)
    blocks = []
    for lo in range(0, n_rows, BLOCK_ROWS):
        pieces: list[CodedPart] = []
        at = 0
        for one, part in zip(ranges, coded, strict=True):
            begin = max(lo - at, 0) + one.first
            end = min(min(lo + BLOCK_ROWS, n_rows) - at + one.first, one.last)
            if begin < end:
                pieces.append(part.take(begin, end))
            at += one.last - one.first
        codes = np.concatenate([piece.codes for piece in pieces])
        if how.sharing is not None:
            codes = share_bytes(codes, how.sharing.bins, how.outline, how.sharing.bundles)
        block = {"codes": codes, name: np.concatenate([piece.y for piece in pieces])}
        weights = [piece.weight for piece in pieces if piece.weight is not None]
        if weights:
            block["weight"] = np.concatenate(weights)
        blocks.append(block)
    return blocks
