"""What each column means to a model, a number or a level of a stored vocabulary; and X in those terms.

A *level* is one value of a category: text, boolean or number, of its own type. Its index in the vocabulary is
what the values hold. A vocabulary holds the levels that occurred in fit and no others, in declared order if
the dtype says that order has a meaning (pandas `ordered=True`, polars Enum, Arrow `ordered`), else ascending:
the order in which levels happen to stand in a file or in a library's cache must not reach the model.
"""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._types import MAX_CODES
from spinney._warnings import warn
from spinney.table.columns import (
    WIDE,
    Categories,
    Column,
    Columns,
    Dates,
    Numbers,
    is_missing_type,
    may_be_wide,
    open_columns,
    quote_name,
    refuse_kind,
)
from spinney.table.dates import DateColumn, read_dates
from spinney.table.sparse import SparseMatrix, SparseRows, Values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

Level = str | bool | int | float

NO_LEVEL = MAX_CODES  # in uint16 level codes: missing. Level indices end at MAX_CODES - 1.
_WAS_NUMERIC = ", but was numeric when the model was fitted. Convert it to numbers, NaN where one is missing."
_BLOCK_ROWS = 4096  # rows written together: 1M x 28 columns become row-major in 48 ms, column by column in 157 ms


@dataclass(frozen=True, slots=True)
class Schema:
    """The features a model was fitted on; plain data.

    `names` is None where the input had no names. `levels[j]` is None for a numeric feature, else its
    vocabulary in stored order, empty when the column was missing throughout.

    A feature is a column of X, but for dates, each of which is several. `dates`, where there are some, has one place
    for each column of X: what is known of its dates, or None where the column is a feature.
    """

    names: tuple[str, ...] | None
    levels: tuple[tuple[Level, ...] | None, ...]
    dates: tuple[DateColumn | None, ...] | None = None

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return len(self.levels)

    @property
    def n_columns(self) -> int:
        """How many columns X has."""
        return len(self.levels if self.dates is None else self.dates)

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """Names of the columns of X, where it has some."""
        if self.dates is None or self.names is None:
            return self.names
        return tuple(self.names[k] if dates is None else dates.name for k, dates in self.inputs())

    def inputs(self) -> Iterator[tuple[int, DateColumn | None]]:
        """The first feature of each column of X, and what is known of its dates if it has them."""
        if self.dates is None:
            yield from ((j, None) for j in range(len(self.levels)))
            return
        k = 0
        for dates in self.dates:
            yield k, dates
            k += 1 if dates is None else len(dates.parts)

    @property
    def is_categorical(self) -> NDArray[np.bool_]:
        """Shape (n_features,): which features have levels."""
        return np.array([levels is not None for levels in self.levels], dtype=np.bool_)

    def name_of(self, j: int) -> str:
        """Feature j as messages call it: its quoted name, or its index."""
        return quote_name(self.names, j)


def encode(X: Any, schema: Schema) -> Values:
    """X as values: C-contiguous (n_rows, n_features), a category as the index of its level, missing as NaN.

    A level that the schema does not hold is missing. Columns are taken by position; dates become several. The result
    is float64, or float32 where X is a C-contiguous float32 array and every column numeric; a native C-contiguous
    array of either dtype comes back as it is, neither copied nor looked at. Of a sparse X the result is `SparseRows`.
    """
    columns = X if isinstance(X, Columns) else open_columns(X)
    if columns.n_columns != schema.n_columns:
        raise ValueError(
            f"X has {columns.n_columns} features, but the model is expecting {schema.n_columns} features as input."
        )
    if columns.matrix is not None and schema.dates is None and all(levels is None for levels in schema.levels):
        return _encode_matrix(columns.matrix, schema)
    if columns.packed is not None and schema.dates is None:
        return _encode_sparse(columns, columns.packed, schema)
    parts: list[NDArray[Any]] = []
    for j, (k, dates) in enumerate(schema.inputs()):
        column = columns.read(j)
        parts += [encode_column(column, schema, k)] if dates is None else read_dates(column, dates)
    return _rows_of(parts, columns)


def _encode_matrix(matrix: NDArray[Any], schema: Schema) -> NDArray[Any]:
    dtype, flags = matrix.dtype, matrix.flags
    is_plain = dtype.isnative and flags.c_contiguous and flags.aligned  # what kernels are compiled for
    if is_plain and dtype.kind == "f" and dtype.itemsize in {4, 8}:
        return matrix.view(np.ndarray)  # a memmap without its class, which compiled code would not know
    if may_be_wide(matrix):
        for j in range(schema.n_features):
            _warn_inexact(Numbers(matrix[:, j]), schema.name_of(j))
    return np.require(_to_float64(matrix), requirements=["C", "A"]).view(np.ndarray)


def _encode_sparse(columns: Columns, packed: SparseMatrix, schema: Schema) -> SparseRows:
    chosen = np.flatnonzero(schema.is_categorical).tolist()
    levels = {j: _to_float64(encode_column(columns.read(j), schema, j)) for j in chosen}
    if may_be_wide(packed.data):
        for j in range(schema.n_features):
            if j not in levels:
                _warn_inexact(Numbers(packed.stored_of(j)), schema.name_of(j))
    return SparseRows(packed, levels)


def _to_float64(values: NDArray[Any]) -> NDArray[np.float64]:
    with np.errstate(over="ignore"):  # a long double beyond float64 is infinite, which is in the right order
        return values.astype(np.float64, copy=False)  # native byte order included


def encode_column(column: Column, schema: Schema, j: int) -> NDArray[Any]:
    """Values of one column, shape (n_rows,), any real dtype."""
    levels, name = schema.levels[j], schema.name_of(j)
    if isinstance(column, Dates):
        held = "numbers" if levels is None else "categories"
        text = f"Column {name} holds dates or times, but had {held} when the model was fitted. Give what it had then."
        raise ValueError(text)  # noqa: TRY004, as any bad content
    if isinstance(column, Categories):
        if levels is None:
            return numbers_behind(column, name, _WAS_NUMERIC)
        return _match_categories(column, levels, name)
    if levels is None:
        _warn_inexact(column, name)
        return column.read()
    values, known = column.exact()
    matched = np.full(len(known), np.nan)
    matched[known] = _match_numbers(values, levels, name)
    return matched


def _rows_of(parts: list[NDArray[Any]], columns: Columns) -> NDArray[np.float64]:
    rows = np.empty((columns.n_rows, len(parts)), dtype=np.float64)
    with np.errstate(over="ignore"):
        for start in range(0, columns.n_rows, _BLOCK_ROWS):
            block = rows[start : start + _BLOCK_ROWS]
            for j, part in enumerate(parts):
                block[:, j] = part[start : start + _BLOCK_ROWS]
    return rows


# --- numbers ------------------------------------------------------------------------------------------------


def check_distinct(column: Numbers, name: str) -> None:
    """Refuse, in fit, a column in which two different numbers would become one float64."""
    wide = column.wide_values()
    values = wide.astype(np.float64)
    merged = np.flatnonzero(values[1:] == values[:-1])
    if len(merged):
        i = int(merged[0])
        raise ValueError(
            f"Column {name} holds {wide[i]} and {wide[i + 1]}, which are one number in float64: beyond "
            "2**53 not every integer is there. Subtract a constant, drop the column if it is an identifier, "
            "or name it in categorical_features if it is a category."
        )


def _warn_inexact(column: Numbers, name: str) -> None:
    wide = column.wide_values().astype(object)
    inexact = np.flatnonzero(wide != wide.astype(np.float64).astype(object))
    if len(inexact):
        value = wide[inexact[0]]
        warn(f"Column {name} holds {value}, which float64 rounds to {int(float(value))}; it is beyond 2**53.")


def numbers_behind(column: Categories, name: str, complaint: str) -> NDArray[np.float64]:
    """Categories that are to be read as the numbers they stand for; text among them raises `complaint`."""
    values = [plain_level(value, name) for value in column.values]
    text = next((value for value in values if isinstance(value, str)), None)
    if text is not None:
        raise ValueError(f"Column {name} holds text, such as {text[:60]!r}{complaint}")
    table = np.array([np.nan if value is None else float(value) for value in values] + [np.nan])
    return np.take(table, column.codes)


def refuse_infinite(values: Values, schema: Schema) -> None:
    """Refuse infinite numbers where they would be terms of a linear model, also in rows of weight 0."""
    for j in np.flatnonzero(~schema.is_categorical).tolist():
        bad = np.isinf(values[:, j])
        if bad.any():
            row = int(np.argmax(bad))
            raise ValueError(
                f"Column {schema.name_of(j)} of X holds {values[row, j]} in row {row}, and a linear leaf cannot take "
                "infinite values. Replace it by a finite number, or by NaN where it is missing; or use leaf_model=None."
            )


# --- levels -------------------------------------------------------------------------------------------------


def plain_level(value: Any, name: str) -> Level | None:
    """The value of a category as plain text, boolean or number; None if missing; other kinds are refused."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return None if math.isnan(value) else float(value)
    if is_missing_type(type(value)):
        return None
    if isinstance(value, bytes):
        refuse_kind(name, "bytes", value)
    is_date = isinstance(value, dt.date | np.datetime64)
    fix = "Make it a column of dates." if is_date else "Make its categories text, for example with .astype(str)."
    raise ValueError(f"Column {name} has categories of type {type(value).__name__}, such as {str(value)[:60]!r}. {fix}")


def learn_levels(column: Categories, name: str) -> tuple[tuple[Level, ...], NDArray[np.uint16]]:
    """The vocabulary of a column, and its rows as level indices (NO_LEVEL where missing)."""
    values = [plain_level(value, name) for value in column.values]
    known = [value for value in values if value is not None]
    # True == 1 in Python: kinds must not meet in one vocabulary, or levels would merge.
    by_kind = {_kind_of_level(value): value for value in known}
    if len(by_kind) > 1:
        examples = " and ".join(f"{value!r}"[:60] for value in by_kind.values())
        raise ValueError(
            f"Column {name} mixes kinds of categories ({' and '.join(by_kind)}), such as {examples}. "
            "Make them all text, for example with .astype(str)."
        )
    distinct: list[Any] = list(dict.fromkeys(known))
    if len(distinct) > MAX_CODES:
        raise ValueError(
            f"Column {name} has {len(distinct):,} categories, and at most {MAX_CODES:,} are supported. "
            "Group the rare ones, or drop the column if it is an identifier."
        )
    levels = tuple(distinct if column.is_ordered else sorted(distinct))
    index = {level: i for i, level in enumerate(levels)}
    table = np.array([NO_LEVEL if value is None else index[value] for value in values] + [NO_LEVEL], dtype=np.uint16)
    return levels, table[column.codes]


def _kind_of_level(value: Level) -> str:
    return "text" if isinstance(value, str) else "booleans" if isinstance(value, bool) else "numbers"


def number_categories(column: Numbers, name: str) -> Categories:
    """A numeric column that the user declared categorical: each distinct whole number is a category."""
    values, known = column.exact()
    is_boolean = values.dtype.kind == "b"
    if not is_boolean:
        with np.errstate(invalid="ignore"):  # inf % 1
            bad = np.flatnonzero(~((values >= 0) & (values % 1 == 0)).astype(np.bool_))
        if len(bad):
            raise ValueError(
                f"Column {name} is declared categorical but holds {values[bad[0]]}: numbers of "
                "a category must be whole and not negative. Leave it numeric, or make it a category dtype."
            )
    distinct, inverse = np.unique(values, return_inverse=True)
    codes = np.full(len(known), -1, dtype=np.int64)
    codes[known] = inverse
    return Categories(codes, distinct.tolist() if is_boolean else [int(value) for value in distinct.tolist()])


def _match_categories(column: Categories, levels: tuple[Level, ...], name: str) -> NDArray[np.float64]:
    """Level indices of a column by the value of its categories, whatever their order or codes."""
    index = {level: i for i, level in enumerate(levels)}
    values = [plain_level(value, name) for value in column.values]
    for value in values:
        if value is not None:
            _check_kind(value, levels, name)
    table = np.array([np.nan if value is None else index.get(value, np.nan) for value in values] + [np.nan])
    return np.take(table, column.codes)


def _match_numbers(values: NDArray[Any], levels: tuple[Level, ...], name: str) -> NDArray[np.float64]:
    """Level indices of known numbers, NaN where none equals."""
    if not len(values):
        return np.empty(0)
    _check_kind(values[:1].tolist()[0], levels, name)
    if not levels:
        return np.full(len(values), np.nan)
    if values.dtype.kind == "b":
        values = values.astype(np.int8)
    is_wide = any(not isinstance(level, str) and abs(level) >= WIDE for level in levels)
    if is_wide or values.dtype.kind == "O" or may_be_wide(values):
        return _match_exactly(values, levels)
    wanted = np.array([float(level) for level in levels])
    order = np.argsort(wanted)
    wanted, values = wanted[order], _to_float64(values)
    place = np.minimum(np.searchsorted(wanted, values), len(levels) - 1)
    matched = order.astype(np.float64)[place]
    matched[wanted[place] != values] = np.nan
    return matched


def _match_exactly(values: NDArray[Any], levels: tuple[Level, ...]) -> NDArray[np.float64]:
    """As `_match_numbers`, by Python's exact comparison of ints and floats."""
    index: dict[Any, int] = {level: i for i, level in enumerate(levels)}
    distinct, inverse = np.unique(values, return_inverse=True)
    return np.array([index.get(value, np.nan) for value in distinct.tolist()], dtype=np.float64)[inverse]


def _check_kind(value: Level, levels: tuple[Level, ...], name: str) -> None:
    """Text equals no number: a column that turned into the other is a mistake, not a set of new levels."""
    if levels and isinstance(value, str) is not isinstance(levels[0], str):
        raise ValueError(
            f"Column {name} had categories such as {levels[0]!r} when the model was fitted, now {value!r}. "
            f"Convert it to {'text' if isinstance(levels[0], str) else 'numbers'}, as it was then."
        )
