"""Reading: X as a table for fit, and files.

A `Table` reads columns when they are needed, a block of features at a time: a fit never holds a float64 copy of X.
"""

from __future__ import annotations

import contextlib
import difflib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import numpy as np

from spinney.table.columns import (
    Categories,
    Columns,
    Dates,
    Numbers,
    may_be_wide,
    open_columns,
    quote_name,
    refuse_kind,
)
from spinney.table.dates import AUTO, DateColumn, check_date_features, learn_dates
from spinney.table.schema import (
    NO_LEVEL,
    Level,
    Schema,
    check_distinct,
    learn_levels,
    number_categories,
    numbers_behind,
)
from spinney.table.sparse import SparseMatrix, SparseRows, Values

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

_BLOCK_ROWS = 512  # rows transposed together: 32,561 x 105 take 3.2 ms, 1,024 rows at once 7.0 ms

_MOST_STORED = 0.25  # of the cells of a sparse table, for columns to be coded by these alone
_CELLS_AT_ONCE = 1 << 20  # of the columns that are turned into rows together

_IN_ARRAY = (
    ". If it is a category, name the column in categorical_features, or pass a frame (pandas, polars, ...), "
    "whose text columns are categories; if it is a number, convert the column first."
)
_NOT_LISTED = ", but is not in categorical_features. Add it there, or leave categorical_features='from_dtype'."

# What an empty or unknown number is written as; in a column of text these are text, but for the empty cell.
NO_NUMBER = ["", "?", "NA", "N/A", "n/a", "NaN", "nan", "-nan", "null", "NULL", "None", "#N/A", "<NA>"]
WORKBOOKS = (".xlsx", ".xls", ".xlsm", ".ods", ".numbers")
ARROW_SUFFIXES = (".arrow", ".feather", ".ipc")
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")


class CodeShelf(Protocol):
    """Codes of a table that earlier fits have made; see `coding.Codes` and `binning.Bins`."""

    def find(self, kind: str, max_codes: int, weight: NDArray[np.int64], keep: NDArray[np.bool_] | None) -> Any:
        """Codes that were made by the same numbers, or None."""

    def put(
        self, kind: str, max_codes: int, weight: NDArray[np.int64], keep: NDArray[np.bool_] | None, codes: Any
    ) -> None:
        """Keep codes, if that can be."""


def take_from_shelf(
    shelf: CodeShelf | None,
    kind: str,
    max_codes: int,
    weight: NDArray[np.int64],
    keep: NDArray[np.bool_] | None,
    make: Callable[[], Any],
) -> Any:
    """The codes of a kind that a shelf has; where it has none they are made, and put there."""
    if shelf is None:
        return make()
    found = shelf.find(kind, max_codes, weight, keep)
    if found is None:
        found = make()
        shelf.put(kind, max_codes, weight, keep, found)
    return found


class Table:
    """What fit reads: `block` gives columns as values, read at that moment, so X is never copied whole.

    `columns[j]` is `Numbers`, or uint16 level indices where the schema has levels. `matrix`, where X is an
    array of numbers or sparse, holds the numeric columns; `columns` is empty when it holds every one.
    """

    least_columns: int | None = None  # to be read together, where it is not the reader's choice
    shelf: CodeShelf | None = None  # where codes are kept for the next fit
    most_workers: int | None = None  # threads that there is memory for, each with rows of its own

    def __init__(
        self,
        schema: Schema,
        n_rows: int,
        columns: Sequence[Numbers | NDArray[np.uint16] | None],
        matrix: NDArray[Any] | SparseMatrix | None = None,
    ) -> None:
        self.schema = schema
        self.n_rows = n_rows
        self._columns = columns
        self._matrix = matrix

    @property
    def is_short(self) -> bool:
        """Whether float32 holds every value: X is an array of that type."""
        return isinstance(self._matrix, np.ndarray) and self._matrix.dtype == np.float32

    @property
    def floats(self) -> NDArray[Any] | None:
        """X itself, (n_rows, n_features), where it is an array that kernels are compiled for; not to be written."""
        matrix = self._matrix
        if (
            type(matrix) is not np.ndarray
            or matrix.dtype not in (np.float64, np.float32)
            or any(self.schema.is_categorical)
        ):
            return None
        return matrix if matrix.flags.carray and matrix.dtype.isnative else None

    def indices(self, j: int) -> NDArray[np.uint16]:
        """Level indices of a category, (n_rows,), NO_LEVEL where missing; not to be written."""
        column = self._columns[j]
        if isinstance(column, np.ndarray):
            return column
        values = self.block(j, j + 1)[0]
        values[np.isnan(values)] = NO_LEVEL
        return values.astype(np.uint16)

    def block(self, start: int, stop: int, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Features [start, stop) as a C-contiguous float64 array (stop - start, n_rows), never a view of X.

        A category is the index of its level, missing is NaN. Written into `out` where given, float64, or float32 for a
        short table: fresh memory takes twice as long to be paged in as to be written.
        """
        if out is None:
            out = np.empty((stop - start, self.n_rows), dtype=np.float64)
        with np.errstate(over="ignore"):  # a long double beyond float64 is infinite, which is in the right order
            if isinstance(self._matrix, SparseMatrix):
                self._matrix.write_columns(start, stop, out)
            elif self._matrix is not None:
                for row in range(0, self.n_rows, _BLOCK_ROWS):
                    end = row + _BLOCK_ROWS
                    out[:, row:end] = self._matrix[row:end, start:stop].T
            for j, column in enumerate(self._columns[start:stop], start):
                if isinstance(column, np.ndarray):
                    _write_levels(column, len(self.schema.levels[j] or ()), out[j - start])
                elif self._matrix is None and column is not None:
                    out[j - start] = column.read()
        return out

    @property
    def stored(self) -> SparseMatrix | None:
        """The cells of a sparse X that stores few of them; else None."""
        matrix = self._matrix
        if not isinstance(matrix, SparseMatrix) or len(matrix.data) > _MOST_STORED * matrix.n_rows * matrix.n_columns:
            return None
        return matrix

    def take(self, rows: NDArray[np.bool_] | None) -> Table:
        """The same table with some of its rows; None: all. Of a sparse X."""
        if rows is None:
            return self
        assert isinstance(self._matrix, SparseMatrix)
        columns = [column[rows] if isinstance(column, np.ndarray) else column for column in self._columns]
        matrix = SparseMatrix(self._matrix.by_row[np.flatnonzero(rows)])
        return Table(self.schema, matrix.n_rows, columns, matrix)

    def value_blocks(self, rows: NDArray[np.bool_] | None = None) -> Iterator[Values]:
        """The same as `values`, in parts that follow each other: as large as the table has them at once."""
        yield self.values(rows)

    def values(self, rows: NDArray[np.bool_] | None = None) -> Values:
        """Rows as values, (n_rows, n_features); None: all."""
        n_features = self.schema.n_features
        if isinstance(self._matrix, SparseMatrix):
            chosen = np.flatnonzero(self.schema.is_categorical).tolist()
            stored = SparseRows(self._matrix, {j: self.block(j, j + 1)[0] for j in chosen})
            return stored if rows is None else stored[rows]
        values = np.empty((self.n_rows if rows is None else int(np.count_nonzero(rows)), n_features))
        n_at_once = max(_CELLS_AT_ONCE // self.n_rows, 1)
        for first in range(0, n_features, n_at_once):
            block = self.block(first, min(first + n_at_once, n_features))
            values[:, first : first + len(block)] = (block if rows is None else block[:, rows]).T
        return values


def _write_levels(codes: NDArray[np.uint16], n_levels: int, out: NDArray[Any]) -> None:
    table = np.arange(n_levels + 1, dtype=np.float64)
    table[-1] = np.nan
    np.take(table, codes, out=out, mode="clip")  # NO_LEVEL is clipped to the last place


def read_columns(X: Any, categorical_features: Any = "from_dtype", date_features: Any = AUTO) -> Table:
    """X as a table to fit on.

    Parameters
    ----------
    X : array-like or frame of shape (n_rows, n_features)
        NumPy array, list of rows, sparse matrix or array of scipy, or eager frame of pandas, polars, pyarrow or another
        library that narwhals or the Arrow C stream knows.
    categorical_features : "from_dtype", None, or array-like of bool, int or str
        Which columns are categories. "from_dtype": category, Enum, dictionary and text columns of a frame.
        A mask of length n_features, indices or names replace that rule; None: no column is one.
    date_features : "auto" or None
        What becomes of columns of dates and times in a frame. "auto": several features each, see `dates`; None: they
        are refused.

    Returns
    -------
    Table

    Examples
    --------
    >>> table = read_columns([["red", 1.5], ["blue", None]], categorical_features=[0])
    >>> table.schema.levels
    (('blue', 'red'), None)
    >>> table.block(0, 2).tolist()
    [[1.0, 0.0], [1.5, nan]]
    """
    columns = X if isinstance(X, Columns) else open_columns(X)
    takes_dates = check_date_features(date_features)
    declared = declared_categories(categorical_features, columns)
    if columns.packed is not None:
        return _read_sparse(columns, columns.packed, declared)
    if columns.matrix is not None and (declared is None or not declared.any()):
        if may_be_wide(columns.matrix):
            for j in range(columns.n_columns):
                check_distinct(Numbers(columns.matrix[:, j]), str(j))
        schema = Schema(None, (None,) * columns.n_columns)
        return Table(schema, columns.n_rows, [], columns.matrix)
    deferred = columns.deferred
    vocabularies: list[tuple[Level, ...] | None] = []
    parts: list[Numbers | NDArray[np.uint16]] = []
    dates: list[DateColumn | None] = []
    for j in range(columns.n_columns):
        is_declared = None if declared is None else bool(declared[j])
        column = columns.read(j) if deferred is None or is_declared else deferred.outline(j)
        if isinstance(column, Dates):
            if columns.names is None or not takes_dates or is_declared:
                _refuse_dates(column, quote_name(columns.names, j))
            date, numbers = learn_dates(column, columns.names[j])
            vocabularies += [None] * len(numbers)
            dates.append(date)
            parts += map(Numbers, numbers) if deferred is None else ()
            continue
        levels, part = _read_part(column, columns, j, is_declared)
        vocabularies.append(levels)
        dates.append(None)
        parts += [part] if deferred is None else ()
    names = columns.names
    if names is not None and any(dates):
        names = _name_features(names, dates)
    schema = Schema(names, tuple(vocabularies), tuple(dates) if any(dates) else None)
    if deferred is not None:
        table: Table = deferred.table(schema)
        return table
    return Table(schema, columns.n_rows, parts, columns.matrix)


def _read_sparse(columns: Columns, packed: SparseMatrix, declared: NDArray[np.bool_] | None) -> Table:
    """A sparse X as a table: the columns that are called categories as level indices, the others as they are stored."""
    chosen = np.flatnonzero(declared) if declared is not None else np.empty(0, np.intp)
    levels: list[tuple[Level, ...] | None] = [None] * columns.n_columns
    parts: list[Numbers | NDArray[np.uint16] | None] = [None] * (columns.n_columns if len(chosen) else 0)
    for j in chosen.tolist():
        column = columns.read(j)
        assert isinstance(column, Numbers)
        levels[j], parts[j] = _read_part(column, columns, j, is_declared=True)
    if may_be_wide(packed.data):
        for j in range(columns.n_columns):
            if levels[j] is None:
                check_distinct(Numbers(packed.stored_of(j)), quote_name(columns.names, j))
    return Table(Schema(columns.names, tuple(levels)), columns.n_rows, parts, packed)


def _refuse_dates(column: Dates, name: str) -> NoReturn:
    """Refuse a column of dates where they are not taken."""
    known = column.values[~np.isnat(column.values)]
    refuse_kind(name, "date", str(known[0]) if len(known) else "all missing")


def _name_features(names: tuple[str, ...], dates: list[DateColumn | None]) -> tuple[str, ...]:
    """Names of the features of columns, of which some are dates."""
    found = [
        name for one, date in zip(names, dates, strict=True) for name in ((one,) if date is None else date.features)
    ]
    twice = next((name for i, name in enumerate(found) if name in found[:i]), None)
    if twice is not None:
        raise ValueError(
            f"X has a column {twice!r}, which is what a part of the dates in another column is called: rename it."
        )
    return tuple(found)


def _read_part(
    column: Numbers | Categories, columns: Columns, j: int, is_declared: bool | None
) -> tuple[tuple[Level, ...] | None, Numbers | NDArray[np.uint16]]:
    """Levels (None if numeric) and content of column j; `is_declared` is None where the dtype decides."""
    name = quote_name(columns.names, j)
    if isinstance(column, Numbers) and is_declared:
        column = number_categories(column, name)
    if isinstance(column, Numbers):
        check_distinct(column, name)
        return None, column
    if is_declared or (is_declared is None and columns.is_frame):
        return learn_levels(column, name)
    return None, Numbers(numbers_behind(column, name, _IN_ARRAY if is_declared is None else _NOT_LISTED))


def declared_categories(categorical_features: Any, columns: Columns) -> NDArray[np.bool_] | None:
    """Shape (n_columns,): the columns that the user calls categories; None where the dtype decides."""
    mask = np.zeros(columns.n_columns, dtype=np.bool_)
    if categorical_features is None:
        return mask
    if isinstance(categorical_features, str):
        if categorical_features == "from_dtype":
            return None
        raise ValueError(
            f"categorical_features={categorical_features!r}: give 'from_dtype', None, or a list of "
            "bools, indices or names."
        )
    if np.ndim(categorical_features) != 1:
        raise ValueError("categorical_features must be one-dimensional: a list of bools, of indices or of names.")
    given = list(categorical_features)
    if given and all(isinstance(item, bool | np.bool_) for item in given):
        if len(given) != columns.n_columns:
            raise ValueError(
                "categorical_features set as a boolean mask must have shape (n_features,): it has "
                f"{len(given)} entries for {columns.n_columns} columns of X."
            )
        return np.array(given, dtype=np.bool_)
    places = [_place_of(item, columns, categorical_features) for item in given]
    if len(set(places)) < len(places):
        twice = next(item for i, item in enumerate(given) if places[i] in places[:i])
        raise ValueError(f"categorical_features has {twice!r} twice.")
    if len({isinstance(item, str) for item in given}) > 1:
        raise ValueError("categorical_features must be all indices or all names, not a mixture.")
    mask[places] = True
    return mask


def name_kinds(given: Any) -> str:
    """What a list holds, by the names of NumPy's or Python's types."""
    array = np.asarray(given)
    return array.dtype.name if array.dtype != object else ", ".join(sorted({type(item).__name__ for item in array}))


def _place_of(item: Any, columns: Columns, given: Any) -> int:
    """The column that an index or a name in `categorical_features`, which is `given`, means."""
    names = columns.names
    if isinstance(item, str):
        if names is None:
            raise ValueError(
                "categorical_features should be passed as an array of integers or as a boolean mask when the model is "
                f"fitted on data without feature names. It has {item!r}, but X has no column names."
            )
        if item not in names:
            close = difflib.get_close_matches(item, names, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise ValueError(
                f"categorical_features has an item value {item!r} which is not a valid feature name of the training "
                f"data.{hint}"
            )
        return names.index(item)
    if isinstance(item, bool | np.bool_) or not isinstance(item, int | np.integer):
        raise ValueError(  # noqa: TRY004, a bad value of a parameter
            f"categorical_features must be an array-like of bool, int or str, got: {name_kinds(given)}. It has "
            f"{item!r}: give all bools, all indices or all names."
        )
    if not 0 <= item < columns.n_columns:
        raise ValueError(
            f"categorical_features set as integer indices must be in [0, n_features - 1]: it has index {item}, and the "
            f"columns of X are 0 to {columns.n_columns - 1}."
        )
    return int(item)


# --- files --------------------------------------------------------------------------------------------------


def read_table(path: str | os.PathLike[str]) -> pa.Table:
    r"""A file as a pyarrow Table: CSV (also gzipped), Parquet, or Arrow IPC (`.arrow`, `.feather`, `.ipc`).

    CSV is UTF-8 with a header line, its fields separated by commas, or by semicolons or tabs if the header
    has no comma. Text columns become dictionary columns. In a numeric column an empty cell, `?`, `NA`, `nan`
    and the like are missing; in a text column only the empty cell is.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "weather.csv"
    ...     _ = path.write_text("outlook,humidity\nsunny,85\nrainy,\n")
    ...     table = read_table(path)
    >>> table.to_pydict()
    {'outlook': ['sunny', 'rainy'], 'humidity': [85, None]}
    """
    path = Path(path)
    kind = check_file(path)
    with reading(path):
        if kind == "parquet":
            table = _read_parquet(path)
        elif kind in ARROW_SUFFIXES:
            table = _read_ipc(path)
        else:
            table = _read_csv(path)
        return drop_index(table)


def check_file(path: Path) -> str:
    """The kind of a file that can be opened: "csv", "parquet" or one of ARROW_SUFFIXES."""
    name = path.name.lower()
    if name.endswith(WORKBOOKS):
        raise ValueError(
            f"{path} is a workbook, which is not read: save its sheet as CSV, in UTF-8, and use that file."
        )
    if not name.endswith((".csv", ".csv.gz", ".parquet", *ARROW_SUFFIXES)):
        raise ValueError(
            f"{path}: unknown kind of file. Known are .csv, .csv.gz, .parquet, {', '.join(ARROW_SUFFIXES)}."
        )
    with path.open("rb") as file:  # Python's own error for a missing file, a directory or a forbidden one
        start = file.read(4)
    if start.startswith((b"\xff\xfe", b"\xfe\xff")) and name.endswith(".csv"):
        raise ValueError(f"{path} is in UTF-16, which is not read: save it as CSV in UTF-8.")
    if start.startswith(b"PK\x03\x04") and name.endswith(".csv"):
        raise ValueError(f"{path} is a workbook or an archive, and no CSV: save its sheet as CSV, in UTF-8.")
    if name.endswith((".csv", ".csv.gz")):
        return "csv"
    return "parquet" if name.endswith(".parquet") else path.suffix.lower()


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Make the errors of Arrow those of the file."""
    import pyarrow as pa

    try:
        yield
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: the header is not valid UTF-8. Save the file in UTF-8.") from error
    except (pa.ArrowException, OSError, EOFError) as error:
        if "UTF8" in str(error):
            refuse_encoding(path, error)
        raise ValueError(f"{path} cannot be read: {error}") from error


def refuse_twins(source: str, names: list[str]) -> None:
    """Raise where two columns have one name, by which nobody can tell them apart."""
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise ValueError(f"{source} has more than one column {twice!r}: rename all but one.")


def refuse_encoding(path: Path, cause: Exception | None = None) -> NoReturn:
    """Raise with the line where a CSV file is not UTF-8."""
    import pyarrow as pa

    with pa.input_stream(str(path)) as stream:
        content = stream.read()
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path}: line {line} is not valid UTF-8. Save the file in UTF-8.") from cause
    raise ValueError(f"{path} is not valid UTF-8. Save the file in UTF-8.") from cause


def drop_index(table: pa.Table) -> pa.Table:
    """A table without what pandas adds for a nameless index, which is no feature."""
    return table.drop_columns([name for name in table.column_names if _PANDAS_INDEX.fullmatch(name)])


def _read_parquet(path: Path) -> pa.Table:
    from pyarrow import parquet

    return parquet.ParquetFile(path).read()


def _read_ipc(path: Path) -> pa.Table:
    import pyarrow as pa

    with pa.OSFile(str(path), "rb") as file:
        try:
            reader = pa.ipc.open_file(file)
        except pa.ArrowInvalid:
            file.seek(0)
            reader = pa.ipc.open_stream(file)
        table = reader.read_all()
    table.validate(full=True)  # offsets of a damaged file would otherwise be followed
    return table


def _read_csv(path: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    try:
        table = csv.read_csv(str(path), **csv_options(path, 1 << 20, use_threads=True))
    except pa.ArrowInvalid:
        # Kinds are guessed from the first block, and a later one may disagree. One block holds every row, and
        # a serial reader knows the number of the row it complains about.
        with pa.input_stream(str(path)) as stream:
            text = stream.read()
        size = min(len(text) + 1, 2**31 - 1)
        table = csv.read_csv(pa.BufferReader(text), **csv_options(path, size, use_threads=False))
    for j, field in enumerate(table.schema):
        column = table.column(j)
        if pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type):
            refuse_encoding(path)
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            text_or_null = pc.if_else(pc.equal(column, ""), pa.scalar(None, field.type), column)
            table = table.set_column(j, field.name, text_or_null.dictionary_encode())
    return table


def csv_options(path: Path, block_size: int, *, use_threads: bool) -> dict[str, Any]:
    """How Arrow is to read a CSV file."""
    from pyarrow import csv

    return {
        "read_options": csv.ReadOptions(block_size=block_size, use_threads=use_threads),
        "parse_options": csv.ParseOptions(delimiter=find_delimiter(path), newlines_in_values=True),
        "convert_options": csv.ConvertOptions(null_values=NO_NUMBER, strings_can_be_null=False),
    }


def find_delimiter(path: Path) -> str:
    """What separates the fields of a CSV file, by its header."""
    import pyarrow as pa

    with pa.input_stream(str(path)) as stream:
        header: bytes = stream.read(1 << 16).partition(b"\n")[0]
    if b"," in header:
        return ","
    return next((mark for mark in ";\t" if mark.encode() in header), ",")
