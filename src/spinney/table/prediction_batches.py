"""Files in batches of rows, read as a fitted model reads them: the schema says what is a number and what is a category.

A table that is read whole has its kinds guessed from all rows; here they are known. Cells of CSV stay the text that
they are until `convert` reads them, so that what is no feature can be passed on as it was written.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spinney.table.columns import Categories
from spinney.table.dates import check_zone, parse_dates
from spinney.table.ingest import ARROW_SUFFIXES, NO_NUMBER, check_file, csv_options, drop_index, reading

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    import pyarrow as pa

    from spinney.table.dates import DateColumn
    from spinney.table.schema import Level, Schema

BATCH_ROWS = 65_536
BLOCK_BYTES = 8 << 20  # of CSV: no row may be longer
PAGE_BYTES = 1 << 17  # of a column of Parquet that are read at once
BOOLEANS = ("0", "false", "False", "FALSE", "1", "true", "True", "TRUE")  # as Arrow reads them: half is false
MOST_LETTERS = 60
BELOW = " below the header"


class Batches(NamedTuple):
    """Batches of a file, in the order of its rows."""

    names: list[str]
    is_text: bool  # whether every column is text: CSV
    rows: Iterator[pa.Table]
    n_rows: int | None = None  # of all batches, where the file says it
    schema: pa.Schema | None = None  # of all batches; None of text


def open_batches(path: str | os.PathLike[str], n_rows: int = BATCH_ROWS) -> Batches:
    r"""A CSV, Parquet or Arrow file in batches of about `n_rows` rows.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "t.csv"
    ...     _ = path.write_text("id,x\n007,1.5\n")
    ...     batches = open_batches(path)
    ...     [table.to_pydict() for table in batches.rows]
    [{'id': ['007'], 'x': ['1.5']}]
    """
    path = Path(path)
    kind = check_file(path)
    with reading(path):
        if kind == "parquet":
            return open_parquet(path, n_rows)
        if kind in ARROW_SUFFIXES:
            return open_ipc(path, n_rows)
        return open_csv(path)


def open_parquet(path: Path, n_rows: int, columns: list[str] | None = None) -> Batches:
    """Row groups, in parts of at most `n_rows` rows; columns: those to be read, None for all."""
    import pyarrow as pa
    from pyarrow import parquet

    # pages one by one: a row group may be as large as the file
    file = parquet.ParquetFile(path, buffer_size=PAGE_BYTES, pre_buffer=False)
    schema = drop_index(file.schema_arrow.empty_table()).schema

    def read() -> Iterator[pa.Table]:
        with reading(path), file:
            for batch in file.iter_batches(n_rows, columns=columns):
                yield drop_index(pa.Table.from_batches([batch]))

    return Batches(schema.names, is_text=False, rows=read(), n_rows=file.metadata.num_rows, schema=schema)


def open_ipc(path: Path, n_rows: int) -> Batches:
    """Record batches in parts of at most `n_rows` rows; of the file and of the stream format."""
    import pyarrow as pa

    source = pa.OSFile(str(path), "rb")
    try:
        file = pa.ipc.open_file(source)
        found: Any = (file.get_batch(i) for i in range(file.num_record_batches))
        schema = file.schema
    except pa.ArrowInvalid:
        source.seek(0)
        found = pa.ipc.open_stream(source)
        schema = found.schema
    schema = drop_index(schema.empty_table()).schema

    def read() -> Iterator[pa.Table]:
        with reading(path), source:
            for batch in found:
                batch.validate(full=True)  # offsets of a damaged file would otherwise be followed
                for start in range(0, batch.num_rows, n_rows):
                    yield drop_index(pa.Table.from_batches([batch.slice(start, n_rows)]))

    return Batches(schema.names, is_text=False, rows=read(), schema=schema)


def open_csv(path: Path) -> Batches:
    """Blocks of lines, every cell as text."""
    import pyarrow as pa
    from pyarrow import csv

    options = csv_options(path, BLOCK_BYTES, use_threads=False)
    with csv.open_csv(str(path), **options) as reader:
        names = reader.schema.names
    convert = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False)

    def read() -> Iterator[pa.Table]:
        with reading(path), csv.open_csv(str(path), **{**options, "convert_options": convert}) as reader:
            for batch in reader:
                if batch.num_rows:
                    yield pa.Table.from_batches([batch])

    return Batches(names, is_text=True, rows=read())


# --- Text as values -----------------------------------------------------------------------------------------------


def convert(table: pa.Table, schema: Schema, first_row: int = 0) -> pa.Table:
    """Columns of text, in the order of a schema, as the numbers and categories that it expects.

    first_row: rows of the file before these, for messages.
    """
    import pyarrow as pa

    columns = []
    for column, (k, dates) in zip(table.columns, schema.inputs(), strict=True):
        if dates is not None:
            columns.append(as_dates(column, dates, first_row))
        elif is_text(schema.levels[k]):
            columns.append(as_category(column))
        else:
            columns.append(as_numbers(column, schema.name_of(k), first_row))

    return pa.table(columns, names=table.column_names)


def is_text(levels: tuple[Level, ...] | None) -> bool:
    """Whether these are levels of text."""
    return levels is not None and (not levels or isinstance(levels[0], str))


def as_category(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Text, an empty cell being missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column).dictionary_encode()


def as_dates(column: pa.ChunkedArray, dates: DateColumn, first_row: int = 0) -> pa.ChunkedArray:
    """Text as dates and times, as ISO 8601 has them: `NA` and the like are missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.utf8_trim_whitespace(column)
    text = pc.if_else(pc.is_in(text, pa.array(NO_NUMBER)), pa.scalar(None, text.type), text)
    encoded = text.combine_chunks().dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    read = parse_dates(Categories(codes, encoded.dictionary.to_pylist()), dates.name, first_row + 1, BELOW)
    check_zone(read, dates, first_row + 1, BELOW)
    return pa.chunked_array([pa.array(read.values, pa.timestamp("us", tz="UTC" if read.has_zone else None))])


def as_numbers(column: pa.ChunkedArray, name: str, first_row: int = 0) -> pa.ChunkedArray:
    """Text as float64, read as a numeric column of a whole file is: `NA` and the like are missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pc.utf8_trim_whitespace(column)
    text = pc.if_else(pc.is_in(text, pa.array(NO_NUMBER)), pa.scalar(None, text.type), text)
    try:
        return pc.cast(text, pa.float64())
    except pa.ArrowInvalid:
        place = pc.index_in(text, pa.array(BOOLEANS))
        if place.null_count == text.null_count:
            return pc.cast(pc.greater_equal(place, len(BOOLEANS) // 2), pa.float64())
    row, cell = first_unreadable(text)
    if cell in BOOLEANS:  # a column of booleans, with something else further down
        row = pc.index(pc.and_(pc.is_null(place), pc.is_valid(text)), value=True).as_py()
        cell = text[row].as_py()
    where = f"in row {first_row + row + 1}{BELOW}"
    raise ValueError(f"column {name} should be a number, but is {cell[:MOST_LETTERS]!r} {where}")


def first_unreadable(text: pa.ChunkedArray) -> tuple[int, str]:
    """The first cell that is no number, and where it stands."""
    import pyarrow as pa
    import pyarrow.compute as pc

    low, high = 0, len(text)  # it lies in [low, high): halves are tried, since Arrow does not tell
    while high - low > 1:
        middle = (low + high) // 2
        try:
            pc.cast(text.slice(low, middle - low), pa.float64())
        except pa.ArrowInvalid:
            high = middle
        else:
            low = middle
    return low, text[low].as_py()
