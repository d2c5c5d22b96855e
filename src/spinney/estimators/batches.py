"""Predictions of rows that are read in batches, from whatever can be scanned."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.scale.addresses import fetch, is_address
from spinney.scale.layout import is_store
from spinney.scale.scan import Scan
from spinney.scale.spilling import is_lazy, is_read_once
from spinney.scale.store import Store
from spinney.table.ingest import check_file, drop_index, read_table
from spinney.table.prediction_batches import BATCH_ROWS, convert, open_batches
from spinney.table.sources import list_files, open_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

    from spinney.table.schema import Schema


def predict_batches(estimator: Any, source: Any, method: str) -> Iterator[NDArray[Any]]:
    """What a method of a fitted estimator says of batches of rows."""
    ask = getattr(estimator, method, None)
    if ask is None or not method.startswith(("predict", "decision")):
        raise ValueError(f"method={method!r} is none that {type(estimator).__name__} predicts by: give 'predict'")
    names = getattr(estimator, "feature_names_in_", None)
    wanted = None if names is None else names.tolist()
    schema: Schema | None = getattr(estimator, "_schema", None)
    for batch in read_batches(source, wanted, schema):
        yield ask(batch)


def read_batches(source: Any, names: list[str] | None, schema: Schema | None) -> Iterator[Any]:
    """Batches of rows as a model takes them: the columns that it knows, where it knows names."""
    if isinstance(source, str | os.PathLike) and is_store(Path(source)):
        source = Store(source)
    if is_lazy(source):
        source = Scan(source)
    if isinstance(source, Scan):  # what can be read once may have been, by a fit
        source = source.read() if is_read_once(source._given) else source._given  # noqa: SLF001
    if isinstance(source, Store):
        yield from source.batches(names)
        return
    if is_read_once(source) and not hasattr(source, "__arrow_c_stream__"):
        for frame in source:
            yield from read_batches(frame, names, schema)
        return
    is_files = isinstance(source, str | os.PathLike)
    is_files = is_files or (isinstance(source, list | tuple) and all(isinstance(s, str | os.PathLike) for s in source))
    if is_files:
        for one in [source] if isinstance(source, str | os.PathLike) else source:
            yield from (
                read_addressed(one, names, schema)
                if isinstance(one, str) and is_address(one)
                else read_files(one, names, schema)
            )
        return
    opened = open_source(source)
    for _, table in opened.read(opened.names):
        yield choose(table, names)


def read_files(given: str | os.PathLike[str], names: list[str] | None, schema: Schema | None) -> Iterator[Any]:
    """Batches of the files of a path, a folder or a pattern."""
    for path in list_files(given):
        yield from read_file(path, names, schema)


def read_addressed(address: str, names: list[str] | None, schema: Schema | None) -> Iterator[Any]:
    """Batches of the files of an address, of which one at a time is on disk."""
    with tempfile.TemporaryDirectory(prefix="spinney-") as folder:
        for path in fetch(address, Path(folder)):
            yield from read_file(path, names, schema)
            path.unlink()


def read_file(path: Path, names: list[str] | None, schema: Schema | None) -> Iterator[Any]:
    """Batches of a file; cells of CSV are read as the schema says."""
    if schema is None and check_file(path) == "csv":
        yield choose(drop_index(read_table(path)), names)
        return
    batches, n_read = open_batches(path, BATCH_ROWS), 0
    for table in batches.rows:
        if not table.num_rows:
            continue
        known = choose(table, names)
        if batches.is_text and schema is not None and (names is None or len(names) == len(known.column_names)):
            table_of_text = table if names is None else known
            known = convert(table_of_text, schema, n_read)
        n_read += table.num_rows
        yield known if names is not None else as_matrix(known)


def choose(table: pa.Table, names: list[str] | None) -> pa.Table:
    """The columns that a model knows, of those there are; it says which are missing."""
    return table if names is None else table.select([name for name in names if name in table.column_names])


def as_matrix(table: Any) -> Any:
    """Rows without names, for a model that was fitted without."""
    return np.column_stack([column.to_numpy() for column in table.columns])
