"""From a source to the columns of a store: blocks of rows as they come, each column in one type on disk.

What a column is, numbers, categories or dates, is decided by the code that decides it for tables in memory
(`table.columns`), block by block; here the blocks are put together.
"""

from __future__ import annotations

import platform
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney import __version__
from spinney._types import MAX_CODES
from spinney.scale.block_files import BlockWriter
from spinney.scale.layout import (
    BOOLEAN_TYPE,
    CATEGORIES,
    CODE_TYPE,
    DATE_TYPE,
    DATES,
    FEATURE,
    GROUPS,
    MOST_ROWS,
    NUMBERS,
    TARGET,
    VALUES,
    WEIGHT,
    Layout,
    StoredColumn,
    write_layout,
)
from spinney.scale.reading_line import ReadingLine
from spinney.table.columns import Categories, Dates, Numbers, open_columns
from spinney.table.schema import plain_level
from spinney.table.sources import family_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pyarrow as pa
    from numpy.typing import NDArray

    from spinney.table.columns import Column
    from spinney.table.sources import Part, Source

NO_INTEGER = {"<i8": np.iinfo(np.int64).min, "<u8": np.iinfo(np.uint64).max}  # what marks a missing one


def write_columns(source: Source, roles: Mapping[str, str], folder: Path, block_rows: int) -> Layout:
    """Read a source from end to end, and write its columns to a folder.

    Parameters
    ----------
    source : Source
    roles : mapping of str to str
        The role of each column that is written; others are left out.
    folder : Path
        Where `values.bin` and `schema.json` are to be.
    block_rows : int
    """
    refuse_bare(source)
    columns = [make_column(name, role, source.types[name]) for name, role in roles.items()]
    writer = TableWriter(columns, BlockWriter(folder / VALUES), block_rows)
    with ReadingLine(source.n_rows) as line:
        for part, table in source.read(list(roles)):
            writer.add(part, table)
            line.show(writer.n_rows + writer.n_held)
    layout = writer.finish()
    write_layout(folder, layout)
    release_buffers()
    return layout


def refuse_bare(source: Source) -> None:
    """Refuse files of headers alone: all that can be said of their columns is that they hold nothing."""
    if any(source.types.values()) or any(part.stamp is None for part in source.parts):
        return
    if next(source.read(source.names), None) is None:
        others = f" nor have the {len(source.parts) - 1} files after it" if len(source.parts) > 1 else ""
        raise ValueError(f"{source.parts[0].name} has no rows below its header,{others}".rstrip(","))


def release_buffers() -> None:
    """Give back the memory that Arrow has read by: it would keep some hundred megabytes."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()


class TableWriter:
    """Columns on their way to disk: rows gather until a block is full."""

    def __init__(self, columns: list[ColumnToWrite], file: BlockWriter, block_rows: int) -> None:
        self.columns, self.file, self.block_rows = columns, file, block_rows
        self.block = [np.empty(block_rows, column.dtype) for column in columns]
        self.n_held = 0  # rows in the block
        self.n_rows = 0  # rows in blocks before it

    def add(self, part: Part, table: pa.Table) -> None:
        """Take some rows."""
        opened = open_columns(table)
        row = self.n_rows + self.n_held
        found = [column.convert(opened.read(j), table.column(j), part, row) for j, column in enumerate(self.columns)]
        at = 0
        while at < table.num_rows:
            n = min(self.block_rows - self.n_held, table.num_rows - at)
            for block, values in zip(self.block, found, strict=True):
                block[self.n_held : self.n_held + n] = values[at : at + n]
            at += n
            self.n_held += n
            if self.n_held == self.block_rows:
                self.flush()

    def flush(self) -> None:
        """Write the block."""
        for block in self.block:
            self.file.write(block[: self.n_held])
        self.n_rows += self.n_held
        self.n_held = 0
        if self.n_rows > MOST_ROWS:
            raise ValueError(f"the table has more than {MOST_ROWS:,} rows, which is the most there can be")

    def finish(self) -> Layout:
        """Write what is left; what the columns are."""
        if self.n_held:
            self.flush()
        digest = self.file.close()
        if not self.n_rows:
            raise ValueError("the table has no rows")
        versions = {"spinney": __version__, "numpy": np.__version__, "python": platform.python_version()}
        described = tuple(column.describe() for column in self.columns)
        return Layout(self.n_rows, self.block_rows, described, digest, versions)


# --- One column -----------------------------------------------------------------------------------------------------


def make_column(name: str, role: str, types: tuple[Any, ...]) -> ColumnToWrite:
    """A column to be written, by the types that it has in the source."""
    family = family_of(types[0]) if types else ""
    if family == "text" or family.startswith("categories"):
        is_ordered = all(getattr(kind, "ordered", False) for kind in types)
        if role == FEATURE or (role != WEIGHT and family == "text"):
            return CategoriesToWrite(StoredColumn(name, role, CATEGORIES, CODE_TYPE, is_ordered=is_ordered))
    if family in {"dates", "times in a time zone"} and role == FEATURE:
        return DatesToWrite(StoredColumn(name, role, DATES, DATE_TYPE, has_zone=family != "dates"))
    if role == FEATURE:
        return NumbersToWrite(StoredColumn(name, role, NUMBERS, feature_type(types)))
    if role == WEIGHT:
        return NumbersToWrite(StoredColumn(name, role, NUMBERS, "<f8"))
    return LabelsToWrite(StoredColumn(name, role, NUMBERS, label_type(name, role, types)))


def feature_type(types: tuple[Any, ...]) -> str:
    """What numbers of these Arrow types are kept as: float32 where that holds them all; wide integers as they are."""
    import pyarrow as pa

    if types == (pa.bool_(),):
        return BOOLEAN_TYPE
    short = (pa.int8(), pa.int16(), pa.uint8(), pa.uint16(), pa.float16(), pa.float32())
    if all(kind in short for kind in types):
        return "<f4"
    if all(kind in (*short, pa.int32(), pa.uint32()) for kind in types):
        return "<f8"
    if all(kind == pa.uint64() for kind in types):
        return "<u8"
    return "<i8" if all(pa.types.is_integer(kind) and kind != pa.uint64() for kind in types) else "<f8"


def label_type(name: str, role: str, types: tuple[Any, ...]) -> str:
    """The NumPy type of a target or of groups that are numbers."""
    import pyarrow as pa

    plain = [kind.value_type if pa.types.is_dictionary(kind) else kind for kind in types]
    if not plain or family_of(plain[0]) not in {"numbers", "booleans"}:
        held = family_of(plain[0]) if plain else "nothing"
        raise ValueError(f"{role} {name!r} holds {held}: give a column of classes, text or numbers")
    floats = pa.types.is_decimal, pa.types.is_float16
    found = [np.dtype(np.float64) if any(is_so(kind) for is_so in floats) else kind.to_pandas_dtype() for kind in plain]
    return np.result_type(*found).newbyteorder("<").str


class ColumnToWrite:
    """A column on its way to disk."""

    def __init__(self, column: StoredColumn) -> None:
        self.column = column
        self.dtype = np.dtype(column.dtype)

    @property
    def name(self) -> str:
        """How messages call it."""
        return repr(self.column.name)

    def convert(self, column: Column, given: pa.ChunkedArray, part: Part, row: int) -> NDArray[Any]:
        """What is kept of some rows.

        Parameters
        ----------
        column : Column
            As tables in memory are read.
        given : pyarrow.ChunkedArray
            The same as Arrow has it.
        part : Part
            Where they are from.
        row : int
            Rows before them, in the whole table.
        """
        raise NotImplementedError

    def describe(self) -> StoredColumn:
        """What the column is, once all rows are written."""
        return self.column


class NumbersToWrite(ColumnToWrite):
    """Numbers that trees split, or weights."""

    def convert(self, column: Column, given: pa.ChunkedArray, part: Part, row: int) -> NDArray[Any]:
        """The numbers, missing as the type has it."""
        import pyarrow as pa

        if not isinstance(column, Numbers):
            raise ValueError(f"{part.name}: column {self.name} holds no numbers ({given.type}), from row {row} on.")  # noqa: TRY004
        dtype = self.column.dtype
        if dtype == BOOLEAN_TYPE:
            values, known = column.exact()
            out = np.full(len(known), -1, self.dtype)
            out[known] = values
            return out
        if dtype not in NO_INTEGER:
            if pa.types.is_integer(given.type) and given.type.bit_width == 64 and len(column.wide_values()):
                raise ValueError(
                    f"{part.name}: column {self.name} holds {column.wide_values()[0]}, beyond 2**53, and fractions in "
                    "other files: no number holds both. Make it one kind in all files."
                )
            with np.errstate(over="ignore"):
                return column.read().astype(self.dtype)
        values, known = column.exact()
        if np.any(values == NO_INTEGER[dtype]):
            raise ValueError(f"{part.name}: column {self.name} holds {NO_INTEGER[dtype]}, which no store can hold.")
        out = np.full(len(known), NO_INTEGER[dtype], self.dtype)
        out[known] = values
        return out


class LabelsToWrite(ColumnToWrite):
    """Numbers that are a target or groups: none is missing."""

    def convert(self, column: Column, given: pa.ChunkedArray, part: Part, row: int) -> NDArray[Any]:  # noqa: ARG002
        """The numbers as NumPy has them."""
        import pyarrow as pa

        refuse_missing(given, self.column, row)
        if pa.types.is_dictionary(given.type):
            given = given.cast(given.type.value_type)
        if pa.types.is_decimal(given.type):
            given = given.cast(pa.float64())
        return np.asarray(given.to_numpy()).astype(self.dtype)


class CategoriesToWrite(ColumnToWrite):
    """Codes of values in the order in which they come; of ordered ones in that of their dictionaries."""

    def __init__(self, column: StoredColumn) -> None:
        super().__init__(column)
        self.codes: dict[Any, int] = {}
        self.used: set[int] = set()

    def convert(self, column: Column, given: pa.ChunkedArray, part: Part, row: int) -> NDArray[Any]:
        """A code for each row."""
        if self.column.role != FEATURE:
            refuse_missing(given, self.column, row)
        if isinstance(column, Numbers) and given.null_count == len(given):  # empty in this file
            return np.full(len(given), -1, self.dtype)
        if not isinstance(column, Categories):
            raise ValueError(f"{part.name}: column {self.name} holds no categories ({given.type}), from row {row} on.")  # noqa: TRY004
        if self.column.is_ordered:
            for chunk in given.chunks:
                for value in chunk.dictionary.to_pylist():
                    self.codes.setdefault(plain_level(value, self.name), len(self.codes))
        found = [plain_level(value, self.name) for value in column.values]
        table = [-1 if value is None else self.codes.setdefault(value, len(self.codes)) for value in found]
        self.used.update(table)
        if self.column.role == FEATURE and len(self.used) > MAX_CODES + 1:
            raise ValueError(
                f"Column {self.name} has more than {MAX_CODES:,} categories, and at most {MAX_CODES:,} are supported. "
                "Group the rare ones, or drop the column if it is an identifier."
            )
        return np.array([*table, -1], self.dtype)[column.codes]

    def describe(self) -> StoredColumn:
        """The column with its values."""
        unused = tuple(code for code in range(len(self.codes)) if code not in self.used)
        return replace(self.column, values=tuple(self.codes), unused=unused)


class DatesToWrite(ColumnToWrite):
    """Microseconds since 1970."""

    def convert(self, column: Column, given: pa.ChunkedArray, part: Part, row: int) -> NDArray[Any]:
        """The dates as integers."""
        if isinstance(column, Numbers) and given.null_count == len(given):  # empty in this file
            return np.full(len(given), np.iinfo(np.int64).min, self.dtype)
        if not isinstance(column, Dates):
            raise ValueError(f"{part.name}: column {self.name} holds no dates ({given.type}), from row {row} on.")  # noqa: TRY004
        return column.values.astype("datetime64[us]").astype(np.int64)


def refuse_missing(given: pa.ChunkedArray, column: StoredColumn, row: int) -> None:
    """Refuse a target or a group that is missing."""
    if not given.null_count:
        return
    import pyarrow.compute as pc

    first = row + int(pc.index(pc.is_null(given), value=True).as_py())
    if column.role == GROUPS:
        raise ValueError(f"groups {column.name!r} must not be missing; row {first} is")
    assert column.role == TARGET
    raise ValueError(f"Input y contains NaN. The first is in row {first}; leave out such rows.")
