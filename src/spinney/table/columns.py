"""What the columns of any table are: numbers, categories, or dates.

`open_columns` takes whatever a user calls X (array, list, dict, frame of any library, Arrow stream, sparse matrix) and
gives its columns one by one, each as `Numbers`, `Categories` or `Dates`; `match_names` brings them into the order of
fit. Nothing is decided about models here: `schema` turns categories into levels, `dates` dates into numbers, `ingest`
reads whole tables.

Words: a *cell* is one Python object of an object array; *missing* is None, NaN, NA or null, all the same;
*wide* numbers are those of 2**53 and more, where float64 no longer holds every integer.

Frames go through narwhals, which is imported here only once a frame is seen.
"""

from __future__ import annotations

import datetime as dt
import decimal
import difflib
import numbers
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from spinney._warnings import warn
from spinney.table.sparse import SparseMatrix, is_sparse, open_matrix, open_sparse_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

FEW_CATEGORIES = 256  # that are listed whether they occur or not
WIDE = 2**53  # float64 holds every integer up to here, and no longer every one beyond

# Libraries whose tables may carry no protocol that can be seen from outside (a lazy frame has none).
_FRAME_LIBRARIES = frozenset(
    (*("cudf", "dask", "duckdb", "ibis", "modin", "narwhals"), *("pandas", "polars", "pyarrow", "pyspark", "sqlframe"))
)
_FRAME_PROTOCOLS = ("__narwhals_dataframe__", "__arrow_c_stream__", "__arrow_c_array__", "__dataframe__")

_DATE_FIX = "derive numbers from it (year, month, days since a date), or drop the column"
_NO_DATE = np.datetime64("NaT", "us")
_LAST_YEAR = 290_000  # 64 bits of microseconds reach 292,277 years from 1970 on, and NumPy wraps around beyond


class UnreadableCellError(TypeError, ValueError):
    """A cell that is neither number nor text: TypeError to scikit-learn, ValueError as every bad column."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """A numeric column, read only when needed.

    `values` is a 1-D array of a real dtype (NaN is missing), or a narwhals Series (null is missing too).
    `cells` keeps the objects that `values` was made of, None where missing, if some of them are wide.
    """

    values: Any
    cells: NDArray[np.object_] | None = None

    def read(self) -> NDArray[Any]:
        """The numbers as a 1-D array of a real dtype, missing as NaN; a view where the library gives one."""
        return self.values if isinstance(self.values, np.ndarray) else _read_numbers(self.values)

    def exact(self) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """The known numbers, no digit lost (objects where no dtype holds them), and where they stand."""
        if isinstance(self.values, np.ndarray):
            values = self.values
            known = values == values  # noqa: PLR0124, not NaN; integers have no isnan worth its time
            return (values if self.cells is None else self.cells)[known], known
        return _read_exact(self.values)

    def wide_values(self) -> NDArray[Any]:
        """The distinct numbers n with |n| >= 2**53, ascending and exact; empty when none is beyond 2**53."""
        if self.cells is not None:
            return np.array(sorted({c for c in self.cells if c is not None and abs(c) >= WIDE}), dtype=object)
        values = self.values
        if not isinstance(values, np.ndarray):
            return _read_wide(values)
        if not may_be_wide(values):
            return np.empty(0, dtype=values.dtype)
        found: NDArray[Any] = np.unique(values[(values >= WIDE) | (values <= -WIDE)])
        return found


@dataclass(frozen=True, slots=True)
class Categories:
    """A column of categories: `values[codes[i]]` is row i, code -1 is missing; every value occurs.

    `is_ordered`: the order of `values` was declared by the user and means something.
    """

    codes: NDArray[Any]
    values: list[Any]
    is_ordered: bool = False


@dataclass(frozen=True, slots=True)
class Dates:
    """A column of dates or times: datetime64 in microseconds, NaT where missing.

    `has_zone`: the times were in a time zone; they are in UTC then, and else as the clock on the wall showed them.
    """

    values: NDArray[np.datetime64]
    has_zone: bool


Column = Numbers | Categories | Dates


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns of one X. `matrix` is the 2-D array of a real dtype behind them, where there is one.

    `packed` holds their stored cells where X is sparse: a matrix or array of scipy, or a frame of sparse numbers alone.
    `is_records` says that X is a dict, or a list of them: it has names, and no order of columns. `order` is the
    position in X of each column, where `match_names` has moved some. `deferred` says how a fit reads columns on disk.
    """

    names: tuple[str, ...] | None
    n_rows: int
    n_columns: int
    is_frame: bool
    read: Callable[[int], Column]
    matrix: NDArray[Any] | None = None
    is_records: bool = False
    order: tuple[int, ...] | None = None
    packed: SparseMatrix | None = None
    deferred: Deferred | None = None


class Deferred(NamedTuple):
    """Columns on disk, of which a fit holds none: what each is, perhaps without its rows, and the table of a schema."""

    outline: Callable[[int], Column]  # as `Columns.read`; of integers those beyond 2**53, of dates the extremes
    table: Callable[[Any], Any]


def quote_name(names: Sequence[str] | None, j: int) -> str:
    """How a message calls column j: its quoted name, or its index."""
    return repr(names[j]) if names is not None else str(j)


def may_be_wide(values: NDArray[Any]) -> bool:
    """Whether an array holds an integer beyond 2**53; narrower dtypes are not even looked at."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or values.size == 0:
        return False
    return bool(values.max() > WIDE) or bool(values.min() < -WIDE)


def open_columns(X: Any) -> Columns:
    """The columns of an array, list of rows, array-like, eager frame of any library, Arrow data, sparse data, or dicts.

    A dict is one row by name, a list of dicts is rows. Columns that were opened before are given back.
    """
    # Plain arrays of numbers skip every check that cannot fail for them.
    if type(X) is np.ndarray and X.ndim == 2 and X.size and X.dtype.kind in "fiub":
        return _matrix_columns(X)
    if isinstance(X, Columns):
        return X
    if _looks_like_frame(X):
        frame = _open_frame(X)
        if frame is not None:
            return frame
    if isinstance(X, Mapping) and not is_sparse(X):  # one format of scipy's is a dict
        _check_row(X)
        return _open_records([X])
    if isinstance(X, list | tuple) and X and isinstance(X[0], Mapping):
        return _open_records(X)
    return _open_array(X)


def match_names(
    columns: Columns, fitted: Sequence[str] | None, kind: str, listed: str = "feature_names_in_"
) -> Columns:
    """The columns in the order of fit: found by name where both sides have names, else taken as they stand.

    kind: what a message calls the model; listed: its attribute that lists the names of fit.
    """
    names = columns.names
    if names is None:
        if fitted is not None:
            warn(f"X does not have valid feature names, but {kind} was fitted with feature names")
        return columns
    if fitted is None:
        if columns.is_records:
            raise ValueError(
                f"X has names and no order, but {kind} was fitted without names: give the values of a row as a list, "
                "in the order of the columns in fit."
            )
        warn(f"X has feature names, but {kind} was fitted without feature names")
        return columns
    fitted = tuple(fitted)
    if names == fitted:
        return columns
    place = {name: j for j, name in enumerate(names)}
    if len(names) != len(fitted) or any(name not in place for name in fitted):
        _refuse_names(names, fitted, listed)
    order = tuple(place[name] for name in fitted)
    packed = None if columns.packed is None else columns.packed.take_columns(order)
    return replace(
        columns, names=fitted, read=lambda j: columns.read(order[j]), order=order, packed=packed, deferred=None
    )


def _refuse_names(names: tuple[str, ...], fitted: tuple[str, ...], listed: str) -> NoReturn:
    """Say which columns there should and should not be, in scikit-learn's words, and what to do about it."""
    unseen, missing = sorted(set(names) - set(fitted)), sorted(set(fitted) - set(names))
    parts = ["The feature names should match those that were passed during fit."]
    if unseen:
        parts += ["Feature names unseen at fit time:", *some_lines(unseen)]
    if missing:
        parts += ["Feature names seen at fit time, yet now missing:", *some_lines(missing)]
    close = {name: difflib.get_close_matches(name, missing, n=1) for name in unseen[:5]}
    alike = [f"is {name!r} meant to be {found[0]!r}?" for name, found in close.items() if found]
    if alike:
        fix = f"Rename: {' '.join(alike)}"
    elif missing:
        fix = "Give every column of fit, None or NaN where a value is missing."
    else:
        fix = f"Leave those out: `{listed}` has the names of fit."
    raise ValueError("\n".join([*parts, f"{fix} Columns may stand in any order."]) + "\n")


def some_lines(names: list[str]) -> list[str]:
    """The first few of a list, one a line."""
    return [f"- {name}" for name in names[:5]] + ["- ..."] * (len(names) > 5)


# --- arrays -------------------------------------------------------------------------------------------------


def _matrix_columns(array: NDArray[Any]) -> Columns:
    n_rows, n_columns = array.shape
    return Columns(None, n_rows, n_columns, False, lambda j: Numbers(array[:, j]), array)


def _sparse_columns(X: Any) -> Columns:
    packed = open_matrix(X)
    n_rows, n_columns = packed.n_rows, packed.n_columns
    return Columns(None, n_rows, n_columns, False, lambda j: Numbers(packed.column(j)), packed=packed)


def _open_array(X: Any) -> Columns:
    if is_sparse(X):
        return _sparse_columns(X)
    if isinstance(X, np.ma.MaskedArray):
        text = "X is a masked array, whose mask would be lost. Fill it first: X.filled(np.nan)."
        raise ValueError(text)  # noqa: TRY004, as any bad content
    if isinstance(X, list | tuple):
        X = _rows_to_array(X)
    if not (type(X) is np.ndarray and X.ndim == 2 and X.size and X.dtype.kind in "fiubOUT"):
        # scikit-learn's own checks, for its own wording: 1-D, 3-D, empty, complex, np.matrix.
        from sklearn.utils.validation import check_array

        X = check_array(X, dtype=None, ensure_all_finite=False, input_name="X")
    array = np.asarray(X)
    kind = array.dtype.kind
    if kind in "fiub":
        return _matrix_columns(array)
    if kind in "mM":
        raise ValueError(f"X holds {array.dtype} in every column, from column 0 on: {_DATE_FIX}.")
    if kind not in "OUTS":
        raise ValueError(f"X has dtype {array.dtype}, which is neither numbers nor text. Convert it to numbers.")
    cells = array if kind == "O" else array.astype(object)
    n_rows, n_columns = cells.shape
    return Columns(None, n_rows, n_columns, False, lambda j: read_cells(cells[:, j].tolist(), str(j)))


def _rows_to_array(rows: Any) -> Any:
    """A list of rows as an array that lost nothing, as numbers beside text or wide integers would."""
    try:
        array = np.asarray(rows)
    except ValueError as error:
        if "inhomogeneous" not in str(error):
            raise
        lengths = [len(row) if hasattr(row, "__len__") and not isinstance(row, str) else 1 for row in rows]
        odd = next((i for i, n in enumerate(lengths) if n != lengths[0]), None)
        if odd is None:  # some cells are lists
            raise ValueError(f"Some cells of X are nested ({error}). Give each cell one value.") from error
        raise ValueError(
            f"The rows of X differ in length: row 0 has {lengths[0]} values, row {odd} has {lengths[odd]}. "
            "Give every row the same number of values, None where one is missing."
        ) from error
    is_lossy = array.dtype.kind in "US" or (
        array.dtype.kind == "f" and array.size > 0 and bool((np.abs(array) >= WIDE).any())
    )
    return np.array(rows, dtype=object) if is_lossy else array


# --- dicts --------------------------------------------------------------------------------------------------


def _check_row(record: Mapping[Any, Any]) -> None:
    """Refuse a dict of columns, which a dict of values must not be taken for."""
    for name, cell in record.items():
        if hasattr(cell, "__len__") and not isinstance(cell, str | bytes | bytearray):
            raise ValueError(
                f"X is a dict whose {name!r} holds a {type(cell).__name__}; a dict is one row, one value a name. "
                "Make a frame of columns, for example by pandas.DataFrame(X), or give rows as a list of dicts."
            )


def _open_records(records: Sequence[Any]) -> Columns:
    """Rows by name, all with the same names; those of the first row say in which order they are listed."""
    first = records[0]
    names = tuple(first)
    if not names:
        raise ValueError(f"Found array with 0 feature(s) (shape=({len(records)}, 0)) while a minimum of 1 is required.")
    odd = next((name for name in names if not isinstance(name, str)), None)
    if odd is not None:
        raise TypeError(f"The names of a row must be text, but {odd!r} is {type(odd).__name__}. Use str(name).")
    for i, record in enumerate(records):
        if not isinstance(record, Mapping):
            raise TypeError(f"Row 0 of X is a dict, row {i} is {type(record).__name__}. Make all rows dicts.")
        if record.keys() != first.keys():
            others = sorted(map(repr, record.keys() ^ first.keys()))
            raise ValueError(
                f"Rows 0 and {i} of X have different names: only one of them has {', '.join(others[:5])}. "
                "Give every row the same names, None where a value is missing."
            )

    def read(j: int) -> Column:
        return read_cells([record[names[j]] for record in records], quote_name(names, j))

    return Columns(names, len(records), len(names), True, read, is_records=True)


# --- cells --------------------------------------------------------------------------------------------------


_CELL_KINDS: tuple[tuple[str, tuple[type, ...]], ...] = (
    ("text", (str,)),
    ("date", (dt.date, np.datetime64)),
    ("time", (dt.time, dt.timedelta, np.timedelta64)),  # timedelta64 is a numbers.Real too
    ("number", (bool, np.bool_, numbers.Real, decimal.Decimal)),
    ("complex", (complex, np.complexfloating)),
    ("bytes", (bytes, bytearray)),
)


def is_missing_type(kind: type) -> bool:
    """Whether a type means missing: None, and what pandas calls NA and NaT, found without importing it."""
    return kind is type(None) or (kind.__name__ in {"NAType", "NaTType"} and kind.__module__.startswith("pandas"))


def _kind_of_cell(kind: type) -> str:
    if is_missing_type(kind):  # before dates: NaT is one of those too
        return "missing"
    return next((name for name, types in _CELL_KINDS if issubclass(kind, types)), "other")


def read_cells(cells: list[Any], name: str) -> Column:
    """A column of Python objects, as numbers, text or dates; never a mixture of them."""
    types = {kind: _kind_of_cell(kind) for kind in set(map(type, cells))}
    kinds = set(types.values())
    if "date" in kinds:
        return _read_date_cells(cells, types, name)
    bad = kinds - {"text", "missing", "number"}
    if bad:
        kind = min(bad)
        refuse_kind(name, kind, next(cell for cell in cells if types[type(cell)] == kind))
    if "text" in kinds:
        return _read_text_cells(cells, types, name)
    return _read_number_cells(cells, types, name)


def _read_text_cells(cells: list[Any], types: dict[type, str], name: str) -> Categories:
    codes_of: dict[Any, int] = {}
    for cell in dict.fromkeys(cells):  # distinct cells, in order of appearance
        kind = types[type(cell)]
        if kind == "text":
            codes_of[cell] = len(codes_of)
        elif kind == "number" and not np.isnan(float(cell)):  # NaN is how pandas marks a missing string
            text = next(c for c in cells if types[type(c)] == "text")
            raise ValueError(
                f"Column {name} mixes text and numbers, such as {_short(text)} and {cell!r}. "
                "Make it one kind: all text, or all numbers with None where one is missing."
            )
    codes = np.fromiter((codes_of.get(cell, -1) for cell in cells), dtype=np.int32, count=len(cells))
    return Categories(codes, list(codes_of))


def _read_date_cells(cells: list[Any], types: dict[type, str], name: str) -> Dates:
    other = next((cell for cell in cells if types[type(cell)] not in {"date", "missing"} and cell == cell), None)  # noqa: PLR0124, NaN is missing
    example = next(cell for cell in cells if types[type(cell)] == "date")
    if other is not None:
        raise ValueError(
            f"Column {name} holds dates or times beside other things, such as {_short(example)} and {_short(other)}. "
            "Make it one kind: all dates, with None where one is missing."
        )
    dates = [cell if types[type(cell)] == "date" else None for cell in cells]
    zones = {getattr(cell, "tzinfo", None) is not None for cell in dates if cell is not None}
    if len(zones) > 1:
        raise ValueError(f"Column {name} has times with and without a time zone: give all of them one, or none.")
    far = next((cell for cell in dates if cell is not None and abs(_year_of(cell)) > _LAST_YEAR), None)
    if far is not None:
        raise ValueError(f"Column {name} holds dates beyond those of microseconds: {_short(far)}")
    values = np.array([_NO_DATE if cell is None else to_moment(cell) for cell in dates], "datetime64[us]")
    return Dates(values, has_zone=True in zones)


def to_moment(moment: Any) -> np.datetime64:
    """A date or time as NumPy has it, in microseconds, with a zone in UTC."""
    if getattr(moment, "tzinfo", None) is None:
        return np.datetime64(moment, "us")
    ahead = moment.utcoffset() or dt.timedelta()
    # Subtracted by NumPy: the first hours of year 1 and the last of 9999 have no UTC among Python's own times.
    wall: Any = np.datetime64(moment.replace(tzinfo=None), "us")
    return np.datetime64(wall - np.timedelta64(ahead, "us"), "us")


def _year_of(moment: Any) -> int:
    """The year of a date or time; 0 where it is missing."""
    if not isinstance(moment, np.datetime64):
        return int(moment.year)
    return 0 if np.isnat(moment) else int(moment.astype("datetime64[Y]").astype(np.int64)) + 1970


def _read_number_cells(cells: list[Any], types: dict[type, str], name: str) -> Numbers:
    if all(kind is type(None) or types[kind] == "number" for kind in types):
        known = cells
    else:
        known = [None if types[type(cell)] == "missing" else cell for cell in cells]
    try:
        values = np.array(known, dtype=object).astype(np.float64)
    except OverflowError as error:
        raise ValueError(f"Column {name} holds a number too large for float64. Rescale the column.") from error
    if not bool((np.abs(values) >= WIDE).any()):
        return Numbers(values)
    return Numbers(values, np.array(known, dtype=object))


def refuse_kind(name: str, kind: str, example: Any) -> NoReturn:
    """Explain why a column of this kind (an example cell or dtype is shown) cannot be used, and what to do."""
    shown = _short(example)
    if kind in {"date", "time"}:
        raise ValueError(f"Column {name} holds dates or times ({shown}): {_DATE_FIX}.")
    if kind == "complex":
        raise ValueError(f"Complex data not supported: column {name} holds {shown}. Use its real and imaginary parts.")
    if kind == "bytes":
        raise ValueError(f"Column {name} holds bytes ({shown}): decode it to text, for example with .decode().")
    if kind == "nested":
        raise ValueError(f"Column {name} is nested ({shown}): give each of its parts a column of its own.")
    raise UnreadableCellError(
        f"Column {name} holds {shown}, but an argument must be a string or a number, "
        f"not {type(example).__name__!r}. Convert the column to numbers or text."
    )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


# --- frames -------------------------------------------------------------------------------------------------


def _looks_like_frame(X: Any) -> bool:
    kind = type(X)
    if kind is np.ndarray or kind is list:
        return False
    if any(hasattr(kind, protocol) for protocol in _FRAME_PROTOCOLS):
        return True
    return any(base.__module__.partition(".")[0] in _FRAME_LIBRARIES for base in kind.__mro__)


def _open_frame(X: Any) -> Columns | None:
    """The columns of a frame or of Arrow data; None when it is neither after all (a pandas Index, say)."""
    import narwhals.stable.v2 as nw

    native = nw.to_native(X, pass_through=True)
    given = _native_names(native)
    _check_names(given)
    is_named = all(isinstance(name, str) for name in given)
    if not is_named and hasattr(native, "set_axis"):
        # narwhals needs string names; others count as no names, as in scikit-learn.
        native = native.set_axis([str(j) for j in range(len(given))], axis=1)
    frame: Any = nw.from_native(native, allow_series=True, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(
            f"X is lazy, a {type(X).__name__} of {type(X).__module__.partition('.')[0]}: "
            "call .collect() on it first (.compute() for Dask, .arrow() for DuckDB)."
        )
    if isinstance(frame, nw.Series):
        raise ValueError(  # noqa: TRY004, as scikit-learn
            f"Expected 2D array, got 1D array instead: a {type(X).__name__} of shape ({len(frame)},). "
            "Reshape your data: to one column (.to_frame()) if it is a single feature, to one row otherwise."
        )
    if not isinstance(frame, nw.DataFrame):
        frame = _arrow_frame(native)
        if frame is None:
            return None
    n_rows, n_columns = frame.shape
    if n_columns == 0 or n_rows == 0:
        what = "feature" if n_columns == 0 else "sample"
        raise ValueError(f"Found array with 0 {what}(s) (shape={frame.shape}) while a minimum of 1 is required.")
    keys = frame.columns
    names = tuple(keys) if is_named else None
    return Columns(
        names,
        n_rows,
        n_columns,
        True,
        lambda j: _read_series(frame.get_column(keys[j]), quote_name(names, j)),
        packed=open_sparse_frame(native),
    )


def _native_names(native: Any) -> tuple[Any, ...]:
    """Column names of a frame in its own words, where they may be twice or not text; else nothing."""
    if hasattr(native, "column_names"):
        return tuple(native.column_names)  # pyarrow, whose `columns` are the data
    if hasattr(native, "iloc") and hasattr(native, "columns"):
        return tuple(native.columns)  # pandas and its kin
    return ()


def _check_names(names: Sequence[Any]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"Column names must be unique; these are not: {', '.join(map(repr, twice))}. Rename them.")
    types = sorted({type(name).__qualname__ for name in names})
    if len(types) > 1 and "str" in types:
        raise TypeError(
            "Feature names are only supported if all input features have string names, but your input has "
            f"{types} as feature name / column name types. Convert them all to strings, for example by "
            "X.columns = X.columns.astype(str)."
        )


def _arrow_frame(native: Any) -> Any:
    """A narwhals frame over anything that speaks Arrow (record batch, reader, foreign stream), else None."""
    if not (hasattr(native, "__arrow_c_stream__") or hasattr(native, "__arrow_c_array__")):
        return None
    import narwhals.stable.v2 as nw
    import pyarrow as pa

    try:
        table = pa.table(native)
    except (TypeError, ValueError, pa.ArrowInvalid):
        return None  # a single Arrow array: NumPy will call it 1-D
    _check_names(table.column_names)
    return nw.from_native(table, eager_only=True)


def _read_series(series: Any, name: str) -> Column:
    """One column of a frame, by its dtype; only dtypes that say nothing (object, unknown) are looked into."""
    import narwhals.stable.v2 as nw

    dtype = series.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        return Numbers(series)
    if dtype == nw.String:
        return _read_text(series, name)
    if dtype == nw.Categorical or dtype == nw.Enum:  # noqa: PLR1714, an Enum hashes by its categories
        return _read_categories(series)
    if dtype == nw.Date or dtype == nw.Datetime:  # noqa: PLR1714, a Datetime hashes by its unit
        return _read_dates(series, name)
    if dtype.is_temporal():
        refuse_kind(name, "time", dtype)
    if dtype.is_nested():
        refuse_kind(name, "nested", dtype)
    if dtype == nw.Binary:
        refuse_kind(name, "bytes", dtype)
    return _read_objects(np.asarray(series.to_numpy()), name)


def _read_objects(array: NDArray[Any], name: str) -> Column:
    """A column whose dtype says nothing to narwhals, as an array."""
    if array.dtype.kind in "fiub":
        return Numbers(array)
    if array.dtype.kind == "c":
        refuse_kind(name, "complex", array.dtype)
    if array.dtype.kind == "M":
        return Dates(array.astype("datetime64[us]"), has_zone=False)
    if array.dtype.kind == "m":
        refuse_kind(name, "time", array.dtype)
    return read_cells(array.astype(object).tolist(), name)


def _read_text(series: Any, name: str) -> Column:
    try:
        array = series.to_arrow()
    except (UnicodeError, ValueError, TypeError):
        # Arrow holds valid Unicode only; pandas also holds lone surrogates.
        return read_cells(series.to_list(), name)
    return _read_dictionary(array.dictionary_encode())


def _read_dates(series: Any, name: str) -> Dates:
    import pyarrow as pa
    import pyarrow.compute as pc

    array = series.to_arrow()
    zone, unit = None, "us"
    if pa.types.is_timestamp(array.type):
        zone, unit = array.type.tz, "ns" if array.type.unit == "ns" else "us"
    try:
        moments = pc.cast(array, pa.timestamp(unit, tz=zone))
    except pa.ArrowInvalid as error:
        raise ValueError(f"Column {name} holds dates beyond those of microseconds: {error}") from error
    missing = int(_NO_DATE.astype(np.int64))
    whole = moments.cast(pa.int64()).fill_null(missing).to_numpy(zero_copy_only=False)
    # A nanosecond is no feature. NumPy rounds down, as it does for cells; Arrow would round up before 1970.
    return Dates(whole.view(f"datetime64[{unit}]").astype("datetime64[us]"), has_zone=zone is not None)


def _read_categories(series: Any) -> Categories:
    native = series.to_native()
    held: Any = getattr(native, "array", None)  # of pandas; by its accessor, codes would become a Series of their own
    held = held if hasattr(held, "codes") else getattr(native, "cat", None)  # of its kin
    if hasattr(held, "codes"):
        used, codes = _used(np.asarray(held.codes), len(held.categories))
        return Categories(codes, _pick(held.categories, used), bool(held.ordered))
    return _read_dictionary(series.to_arrow())


def _pick(categories: Any, used: NDArray[np.int64]) -> list[Any]:
    """Some of the categories of an index: of few, all are listed, since an index of some costs more than that."""
    if len(categories) > FEW_CATEGORIES + 2 * len(used):
        return list(categories[used].tolist())
    values = categories.tolist()
    return [values[i] for i in used.tolist()]


def _read_dictionary(array: Any) -> Categories:
    import pyarrow as pa

    if isinstance(array, pa.ChunkedArray):
        array = array.unify_dictionaries().combine_chunks()  # each may have a dictionary of its own
        if isinstance(array, pa.ChunkedArray):  # combine_chunks keeps chunks where offsets would overflow
            array = pa.concat_arrays(array.chunks)
    indices, dictionary = array.indices, array.dictionary
    indices = indices.cast(pa.int64()).fill_null(-1) if indices.null_count else indices
    if dictionary.type == pa.string_view():  # which `take` does not know
        dictionary = dictionary.cast(pa.large_string())
    used, codes = _used(indices.to_numpy(zero_copy_only=False), len(dictionary))
    dictionary = dictionary if len(used) == len(dictionary) else dictionary.take(pa.array(used))
    return Categories(codes, dictionary.to_pylist(), bool(array.type.ordered))


def _used(codes: NDArray[Any], n_values: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Which values occur, and the codes counted among those alone (-1 stays -1)."""
    occurs = np.zeros(n_values + 1, dtype=np.bool_)
    occurs[codes] = True  # code -1 marks the spare last place
    used = np.flatnonzero(occurs[:-1])
    place = np.full(n_values + 1, -1, dtype=np.int32)
    place[used] = np.arange(len(used), dtype=np.int32)
    return used, codes.astype(np.int32) if len(used) == n_values else place[codes]


def _read_numbers(series: Any) -> NDArray[Any]:
    import narwhals.stable.v2 as nw

    dtype = series.dtype
    if dtype == nw.Boolean:
        series = series.cast(nw.Int8)  # a nullable boolean would come as objects
    elif dtype == nw.Decimal:
        import pyarrow as pa

        return np.asarray(series.to_arrow().cast(pa.float64()).to_numpy(zero_copy_only=False))
    elif dtype in {nw.Int128, nw.UInt128}:
        series = series.cast(nw.Float64)
    return np.asarray(series.to_numpy())


def _read_exact(series: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    import narwhals.stable.v2 as nw

    known = ~series.is_null().to_numpy().astype(np.bool_)
    series = series.drop_nulls()
    if series.dtype.is_float():
        values = _read_numbers(series)
        is_number = ~np.isnan(values)
        known[known] = is_number
        return values[is_number], known
    if series.dtype == nw.Boolean:
        return _read_numbers(series).astype(np.bool_), known
    if series.dtype in {nw.Int128, nw.UInt128} or series.dtype == nw.Decimal:
        return np.array(series.to_list(), dtype=object), known
    return _read_numbers(series), known


def _read_wide(series: Any) -> NDArray[Any]:
    import narwhals.stable.v2 as nw

    none = np.empty(0, dtype=np.int64)
    if not any(series.dtype == kind for kind in (nw.Int64, nw.UInt64, nw.Int128, nw.UInt128, nw.Decimal)):
        return none
    if series.null_count() == len(series):
        return none
    if series.max() <= WIDE and series.min() >= -WIDE:
        return none
    distinct = {value for value in series.drop_nulls().unique().to_list() if abs(value) >= WIDE}
    return np.array(sorted(distinct), dtype=object)
