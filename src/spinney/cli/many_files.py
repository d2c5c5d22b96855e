"""DATA that is more than a file: a folder or pattern of files, an address, a store; in batches, or whole."""

from __future__ import annotations

import glob
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from spinney._files import unfinished

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from spinney.table.prediction_batches import Batches


def is_many(data: str) -> bool:
    """Whether DATA is a folder, a pattern of files, or an address."""
    place = Path(data)
    return "://" in data or place.is_dir() or (not place.exists() and glob.has_magic(data))


def list_parts(data: str) -> dict[Path, str]:
    """The files of a folder, a pattern or an address, and what messages call them; those of an address are copied."""
    from spinney.scale.addresses import is_address
    from spinney.scale.spilling import spill_files
    from spinney.table.sources import list_files

    if not is_address(data):
        return {path: str(path) for path in list_files(data)}
    folder = Path(click.get_current_context().with_resource(tempfile.TemporaryDirectory(prefix="spinney-")))
    unfinished.add(folder)
    return spill_files(data, folder)


def open_many(data: str) -> Batches:
    """All rows in batches: cells of CSV as text, as `open_batches` has them of one file."""
    from spinney.scale.layout import is_store
    from spinney.scale.spilling import naming
    from spinney.table.ingest import check_file

    if is_store(Path(data)):
        return open_stored(data)
    names = list_parts(data)
    with naming(names):
        paths = list(names)
        batches = open_texts(paths) if check_file(paths[0]) == "csv" else open_binary(paths)

    def read() -> Iterator[pa.Table]:
        with naming(names):
            yield from batches.rows

    return batches._replace(rows=read())


def open_stored(data: str) -> Batches:
    """The features of a store, and its target."""
    from spinney.scale.store import Store
    from spinney.scale.stored_rows import name_columns, read_tables
    from spinney.table.prediction_batches import Batches

    store = Store(data)
    return Batches(name_columns(store), is_text=False, rows=read_tables(store), n_rows=store.n_rows)


def open_texts(paths: list[Path]) -> Batches:
    """CSV files of the same columns, every cell as text."""
    from spinney.table.prediction_batches import open_batches
    from spinney.table.sources import Part, check_same_names

    opened = [open_batches(path) for path in paths]
    names = opened[0].names
    parts = [Part(str(path), as_schema(one.names), lambda _: iter(())) for path, one in zip(paths, opened, strict=True)]
    for part, one in zip(parts, opened, strict=True):
        check_same_names(part, parts[0])
        if not one.is_text:
            raise ValueError(f"{part.name} is no CSV, and {parts[0].name} is: give files of one kind.")

    def read() -> Iterator[pa.Table]:
        for one in opened:
            for table in one.rows:
                yield table if one.names == names else table.select(names)

    return opened[0]._replace(rows=read())


def as_schema(names: list[str]) -> pa.Schema:
    """Columns of text."""
    import pyarrow as pa

    return pa.schema([(name, pa.string()) for name in names])


def open_binary(paths: list[Path]) -> Batches:
    """Parquet or Arrow files that agree about their columns; types are those that hold all of them."""
    import pyarrow as pa

    from spinney.table.prediction_batches import Batches
    from spinney.table.sources import open_source

    source = open_source(paths)
    names = source.names
    schema = pa.unify_schemas([part.schema for part in source.parts], promote_options="permissive")
    rows = (as_types(table, schema) for _, table in source.read(names))
    return Batches(names, is_text=False, rows=rows, n_rows=source.n_rows, schema=schema)


def as_types(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """A table with the types that all files go into."""
    import pyarrow as pa

    if table.schema.equals(schema):
        return table
    wanted = pa.schema([schema.field(name) for name in table.column_names])
    return table.cast(wanted)


def read_many(data: str) -> tuple[pa.Table, str | None, str]:
    """All rows as a table, its target where that is known, and what was read, in words.

    Kinds of columns in CSV are guessed from all rows.
    """
    import pyarrow as pa

    from spinney.scale.layout import is_store
    from spinney.scale.spilling import naming
    from spinney.scale.store import Store
    from spinney.scale.stored_rows import read_tables
    from spinney.table.sources import open_source

    if is_store(Path(data)):
        store = Store(data)
        return pa.concat_tables(read_tables(store)).unify_dictionaries(), store.target, "a store"
    names = list_parts(data)
    with naming(names):
        source = open_source(list(names))
        tables = [table for _, table in source.read(source.names)]
        if not tables:
            raise ValueError(f"{data} has no rows")
        whole = pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()
    return whole, None, f"{len(names)} files"
