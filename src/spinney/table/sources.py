"""Sources of rows that are never held whole: files, streams of Arrow, iterators of frames, as blocks in a fixed order.

    given ──open_source──► Source: parts (a file, a stream), the types of each column over all of them
    part.read(names) ──► tables of some thousand rows, as often as the source allows

Files of a folder or pattern go by their names, with numbers in them as numbers; rows as the files have them. What the
files disagree about is an error that names the file and the column, unless a table of all rows would hold both: whole
numbers and fractions, other dictionaries, a column that is empty in some files.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from spinney.table.csv_kinds import read_typed, vote_kinds
from spinney.table.ingest import ARROW_SUFFIXES, check_file, drop_index, reading, refuse_twins
from spinney.table.prediction_batches import BATCH_ROWS, BLOCK_BYTES, open_ipc, open_parquet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa

SUFFIXES = (".parquet", ".csv", ".csv.gz", *ARROW_SUFFIXES)
CELLS_AT_ONCE = 1 << 21
LEAST_ROWS = 1024
DIGITS = re.compile(r"(\d+)")


class Stamp(NamedTuple):
    """What tells that a file is still the same."""

    n_bytes: int
    changed: int  # nanoseconds
    number: int  # of the file on its disk


@dataclass(frozen=True)
class Part:
    """Rows of one schema: a file, or a stream."""

    name: str
    schema: pa.Schema
    read: Callable[[list[str]], Iterator[pa.Table]]  # of the columns that are wanted, in blocks of rows
    stamp: Stamp | None = None  # of a file
    n_rows: int | None = None  # where it says so


@dataclass(frozen=True)
class Source:
    """Parts one after the other, which agree about their columns."""

    parts: tuple[Part, ...]
    types: dict[str, tuple[Any, ...]]  # of each column in the order of the first part: its types, without repeats
    is_one_shot: bool = False  # whether it can be read once only

    @property
    def n_rows(self) -> int | None:
        """Rows of all parts, where they say so."""
        counts = [part.n_rows for part in self.parts if part.n_rows is not None]
        return sum(counts) if len(counts) == len(self.parts) else None

    @property
    def n_bytes(self) -> int | None:
        """Bytes of all files; None of streams."""
        sizes = [part.stamp.n_bytes for part in self.parts if part.stamp is not None]
        return sum(sizes) if len(sizes) == len(self.parts) else None

    @property
    def names(self) -> list[str]:
        """Columns, in the order of the first part."""
        return list(self.types)

    def read(self, names: list[str]) -> Iterator[tuple[Part, pa.Table]]:
        """Blocks of rows, none of them empty; a file that has changed since it was opened is refused."""
        for part in self.parts:
            for table in read_unchanged(part, names):
                if table.num_rows:
                    yield part, table.select(names)


def open_source(given: Any, block_bytes: int = BLOCK_BYTES) -> Source:
    """Whatever stands for a table, as a source.

    Parameters
    ----------
    given : path, list of paths, Arrow data, frame, or iterator of frames
        A path may be a file, a folder or a pattern.
    block_bytes : int
        Of CSV that are read at once.
    """
    if isinstance(given, str | os.PathLike):
        return open_files(list_files(given), block_bytes)
    if isinstance(given, list | tuple) and given and all(isinstance(one, str | os.PathLike) for one in given):
        return open_files([path for one in given for path in list_files(one)], block_bytes)
    if hasattr(given, "__arrow_c_stream__"):
        return open_stream(given)
    raise TypeError(
        f"a {type(given).__name__} is nothing that can be scanned: give the path of a file, a folder or a pattern, "
        "a frame, a stream of Arrow, or an iterator of frames."
    )


# --- Files ----------------------------------------------------------------------------------------------------------


def list_files(given: str | os.PathLike[str]) -> list[Path]:
    """The files of a path, a folder or a pattern, by their names; numbers in names count as numbers."""
    text = os.fspath(given)
    if "://" in text:
        raise ValueError(f"{text} is an address: give it to spinney.scan, or copy the files to a disk first.")
    path = Path(text)
    if path.is_dir():
        refuse_table_formats(path)
        found = [one for one in path.rglob("*") if one.is_file() and not is_hidden(one.relative_to(path))]
        found = [one for one in found if one.name.lower().endswith(SUFFIXES)]
        lack = f"{text} has no file that ends in {', '.join(SUFFIXES)}"
    elif not path.exists() and glob.has_magic(text):
        found = [Path(one) for one in glob.glob(text, recursive=True) if Path(one).is_file()]  # noqa: PTH207
        lack = f"no file matches {text!r}"
    else:
        return [path]
    if not found:
        raise FileNotFoundError(f"{lack}.")
    return sorted(found, key=natural_order)


def refuse_table_formats(folder: Path) -> None:
    """Refuse the folder of a Delta or an Iceberg table: some of its files may be of rows that are deleted since."""
    if (folder / "_delta_log").is_dir():
        reader = "QueryBuilder().register('t', DeltaTable(...)).execute('select * from t') of deltalake"
        raise ValueError(f"{folder} is a Delta table, whose log tells which files count: give a reader, {reader}.")
    if any((folder / "metadata").glob("*.metadata.json")):
        reader = "table.scan().to_arrow_batch_reader() of pyiceberg"
        raise ValueError(f"{folder} is an Iceberg table, whose metadata tell which files count: give {reader}.")


def is_hidden(path: Path) -> bool:
    """Whether a file or one of its folders is of a kind that writers of tables leave beside them: `_SUCCESS`."""
    return any(part.startswith((".", "_")) for part in path.parts)


def natural_order(path: Path) -> tuple[Any, ...]:
    """A key that sorts part-2 before part-10; the letters decide between names that are else the same."""
    parts = DIGITS.split(path.as_posix())
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in parts), path.as_posix()


def open_files(paths: Sequence[Path], block_bytes: int) -> Source:
    """Files of one kind, one after the other."""
    kinds = [check_file(path) for path in paths]
    families = ["arrow" if kind in ARROW_SUFFIXES else kind for kind in kinds]
    odd = next((i for i, family in enumerate(families) if family != families[0]), None)
    if odd is not None:
        raise ValueError(f"{paths[odd]} is {families[odd]}, and {paths[0]} is {families[0]}: give files of one kind.")
    stamps = [stamp_of(path) for path in paths]
    if families[0] == "csv":
        types = vote_kinds(paths, block_bytes)
        parts = [make_csv(path, stamp, types, block_bytes) for path, stamp in zip(paths, stamps, strict=True)]
    else:
        parts = [make_binary(path, stamp, families[0]) for path, stamp in zip(paths, stamps, strict=True)]
    return Source(tuple(parts), merge_types(parts))


def make_csv(path: Path, stamp: Stamp, types: dict[str, Any], block_bytes: int) -> Part:
    """A CSV file of known types."""
    import pyarrow as pa
    from pyarrow import csv

    from spinney.table.ingest import csv_options

    with reading(path), csv.open_csv(str(path), **csv_options(path, block_bytes, use_threads=False)) as reader:
        names = reader.schema.names
    own = {name: types[name] for name in names}
    schema = pa.schema(list(own.items()))

    def read(_: list[str]) -> Iterator[pa.Table]:
        return read_typed(path, own, block_bytes)

    return Part(str(path), schema, read, stamp)


def make_binary(path: Path, stamp: Stamp, family: str) -> Part:
    """A Parquet or an Arrow file."""
    with reading(path):
        opened = open_parquet(path, BATCH_ROWS) if family == "parquet" else open_ipc(path, BATCH_ROWS)

    def read(names: list[str]) -> Iterator[pa.Table]:
        with reading(path):
            if family == "parquet":
                return open_parquet(path, rows_of_block(len(names)), names).rows
            return open_ipc(path, rows_of_block(len(names))).rows

    return Part(str(path), opened.schema, read, stamp, opened.n_rows)


def rows_of_block(n_columns: int) -> int:
    """Rows of a block that is read: fewer of wide tables."""
    return max(min(CELLS_AT_ONCE // n_columns, BATCH_ROWS), LEAST_ROWS)


def stamp_of(path: Path) -> Stamp:
    """What tells that a file is still the same."""
    about = path.stat()
    return Stamp(about.st_size, about.st_mtime_ns, about.st_ino)


def read_unchanged(part: Part, names: list[str]) -> Iterator[pa.Table]:
    """The tables of a part; refused if its file is no longer what it was, before the first and after the last."""
    check_stamp(part)
    yield from part.read(names)
    check_stamp(part)


def check_stamp(part: Part) -> None:
    """Refuse a file that is gone or has changed since it was opened."""
    if part.stamp is None:
        return
    try:
        now = stamp_of(Path(part.name))
    except FileNotFoundError:
        raise ValueError(f"{part.name} is gone: it was there when the scan began. Put it back, or scan anew.") from None
    if now != part.stamp:
        raise ValueError(f"{part.name} has changed since the scan began: leave it as it is, and scan anew.")


# --- Streams --------------------------------------------------------------------------------------------------------


def open_stream(given: Any) -> Source:
    """A frame or a stream of Arrow."""
    import pyarrow as pa

    name = f"the {type(given).__name__}"
    is_one_shot = isinstance(given, pa.RecordBatchReader | Iterator)
    opened = [open_reader(given)]
    schema = drop_index(opened[0].schema.empty_table()).schema

    def read(names: list[str]) -> Iterator[pa.Table]:
        if not opened and is_one_shot:
            raise ValueError(f"{name} can be read once, and has been: scan it anew.")
        reader, n_rows = opened.pop() if opened else open_reader(given), rows_of_block(len(names))
        for batch in reader:
            batch.validate(full=True)  # another library has made it
            for start in range(0, batch.num_rows, n_rows):
                yield drop_index(pa.Table.from_batches([batch.slice(start, n_rows)])).select(names)

    parts = [Part(name, schema, read, n_rows=getattr(given, "num_rows", None))]
    return Source(tuple(parts), merge_types(parts), is_one_shot=is_one_shot)


def open_reader(given: Any) -> Any:
    """The batches of something that speaks Arrow."""
    import pyarrow as pa

    return given if isinstance(given, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(given)


# --- What the parts agree about -------------------------------------------------------------------------------------


def merge_types(parts: Sequence[Part]) -> dict[str, tuple[Any, ...]]:
    """The types of each column over all parts, without those of columns that are empty in a part."""
    first = parts[0]
    names = first.schema.names
    refuse_twins(first.name, names)
    types: dict[str, tuple[Any, ...]] = dict.fromkeys(names, ())
    homes: dict[str, str] = {}
    for part in parts:
        check_same_names(part, first)
        for field in part.schema:
            family = family_of(field.type)
            if not family:
                continue
            known = types[field.name]
            if known and family_of(known[0]) != family:
                raise ValueError(
                    f"{part.name}: column {field.name!r} holds {family} ({field.type}), but {family_of(known[0])} "
                    f"({known[0]}) in {homes[field.name]}. Make it one kind in all files."
                )
            homes.setdefault(field.name, part.name)
            if field.type not in known:
                types[field.name] = (*known, field.type)
    return types


def check_same_names(part: Part, first: Part) -> None:
    """Refuse a part with other columns than the first has."""
    lacks = next((name for name in first.schema.names if name not in part.schema.names), None)
    if lacks is not None:
        raise ValueError(f"{part.name} has no column {lacks!r}, which {first.name} has. Make their columns the same.")
    if len(part.schema.names) > len(first.schema.names):
        extra = next((name for name in part.schema.names if name not in first.schema.names), part.schema.names[-1])
        raise ValueError(f"{part.name} has a column {extra!r} more than {first.name}. Make their columns the same.")


def family_of(kind: Any) -> str:
    """What a column of an Arrow type holds, in words; nothing if it is empty. Types of one family go together."""
    import pyarrow as pa

    types = pa.types
    if types.is_null(kind):
        return ""
    if types.is_dictionary(kind):
        return family_of(kind.value_type) if is_text_type(kind.value_type) else f"categories of {kind.value_type}"
    if is_text_type(kind):
        return "text"
    is_zoned = types.is_timestamp(kind) and kind.tz is not None
    families = {
        "booleans": types.is_boolean(kind),
        "numbers": types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind),
        "times in a time zone": is_zoned,
        "dates": types.is_date(kind) or types.is_timestamp(kind),
    }
    return next((family for family, is_so in families.items() if is_so), str(kind))


def is_text_type(kind: Any) -> bool:
    """Whether an Arrow type is text, of whatever size."""
    import pyarrow as pa

    types = pa.types
    return types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
