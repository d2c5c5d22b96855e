"""What the columns of CSV files hold, by all of their rows, without keeping any.

Arrow guesses the kind of a column from the first block of a file, and `ingest.read_table` reads a file whole where a
later block disagrees. Here a block that disagrees moves its column on to the next kind that Arrow would try, and the
rows are read again from the start: what stands at the end is the first kind that every cell of every file can be read
as, which is the kind that a read of all rows together would find.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from spinney.table.ingest import csv_options, reading, refuse_encoding, refuse_twins

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

COLUMN = re.compile(r"In CSV column #(\d+)")


def list_kinds() -> list[pa.DataType]:
    """What Arrow tries for a column of CSV, one after the other; text takes all."""
    import pyarrow as pa

    moments = [pa.timestamp(unit, zone) for unit in ("s", "ns") for zone in (None, "UTC")]
    return [pa.null(), pa.int64(), pa.bool_(), pa.date32(), pa.time32("s"), *moments, pa.float64(), pa.string()]


def vote_kinds(paths: Sequence[Path], block_bytes: int) -> dict[str, pa.DataType]:
    """The type of each column of some CSV files, as names of the first one have them."""
    kinds = list_kinds()
    types: dict[str, Any] = {}
    while True:
        disputed = find_disputed(paths, types, block_bytes)
        if disputed is None:
            return types
        types[disputed] = kinds[kinds.index(types[disputed]) + 1]


def find_disputed(paths: Sequence[Path], types: dict[str, Any], block_bytes: int) -> str | None:
    """The first column with a cell that is not of its type; None if there is none. Types that are not known are added.

    A column that no other file has is left to whoever compares the files.
    """
    import pyarrow as pa

    for path in paths:
        with reading(path):
            reader = open_typed(path, types, block_bytes)
            refuse_twins(str(path), reader.schema.names)
            for field in reader.schema:
                if pa.types.is_binary(field.type):
                    refuse_encoding(path)
                types.setdefault(field.name, field.type)
            try:
                for _ in reader:
                    pass
            except pa.ArrowInvalid as error:
                found = COLUMN.search(str(error))
                name = None if found is None else reader.schema.names[int(found[1])]
                if name is None or types[name] == pa.string():
                    raise
                return name
    return None


def open_typed(path: Path, types: dict[str, Any], block_bytes: int) -> Any:
    """A reader of the blocks of a CSV file, whose columns have these types; of the others the first block decides."""
    import pyarrow as pa
    from pyarrow import csv

    options = csv_options(path, block_bytes, use_threads=False)
    options["convert_options"].column_types = dict(types)
    try:
        return csv.open_csv(str(path), **options)
    except pa.ArrowInvalid as error:
        found = COLUMN.search(str(error))
        if found is None:
            raise
        return FailedReader(path, options, error)


class FailedReader:
    """A file whose first block is not of the types that it should have: its columns, and the error once it is read."""

    def __init__(self, path: Path, options: dict[str, Any], error: Exception) -> None:
        from pyarrow import csv

        options["convert_options"].column_types = {}
        self.schema = csv.open_csv(str(path), **options).schema
        self.error = error

    def __iter__(self) -> Iterator[Any]:
        raise self.error


def read_typed(path: Path, types: dict[str, Any], block_bytes: int) -> Iterator[pa.Table]:
    """Blocks of rows of a CSV file, text as categories in which an empty cell is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    with reading(path):
        for batch in open_typed(path, types, block_bytes):
            table = pa.Table.from_batches([batch])
            for j, field in enumerate(table.schema):
                if field.type == pa.string():
                    text = table.column(j)
                    known = pc.if_else(pc.equal(text, ""), pa.scalar(None, field.type), text)
                    table = table.set_column(j, field.name, known.dictionary_encode())
            yield table
