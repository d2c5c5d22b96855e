"""Sources that know no files of this machine: written to a folder first, in files that can be read again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from spinney.scale.addresses import fetch, is_address
from spinney.table.sources import list_files

if TYPE_CHECKING:
    from pathlib import Path


def is_lazy(given: Any) -> bool:
    """Whether something is a lazy frame of polars, found without importing it."""
    kind = type(given)
    return kind.__name__ == "LazyFrame" and kind.__module__.partition(".")[0] == "polars"


def is_read_once(given: Any) -> bool:
    """Whether the rows of something are written to disk before they are read: iterators, streams, lazy frames."""
    if is_lazy(given) or isinstance(given, Iterator):
        return True
    is_table = hasattr(given, "__arrow_c_stream__") or isinstance(given, str | os.PathLike | list | tuple | dict)
    return isinstance(given, Iterable) and not is_table


def spill_lazy(frame: Any, folder: Path) -> list[Path]:
    """Run a lazy frame of polars into a file, its rows in their order."""
    path = folder / "rows.parquet"
    frame.sink_parquet(path, maintain_order=True)
    return [path]


def spill_files(given: Any, folder: Path) -> list[Path]:
    """Copy the files of addresses, of a list in its order; paths among them stay where they are."""
    paths: list[Path] = []
    for i, one in enumerate(given if isinstance(given, list | tuple) else [given]):
        if not is_address(one):
            paths += list_files(one)
            continue
        inside = folder / str(i)
        inside.mkdir()
        paths += fetch(one, inside)
    return paths


def spill_batches(batches: Iterable[Any], folder: Path) -> list[Path]:
    """Write frames or batches of Arrow to files, one for each stretch of equal schemas."""
    import pyarrow as pa

    paths: list[Path] = []
    writer: Any = None
    schema: Any = None
    try:
        for i, batch in enumerate(batches):
            table = to_arrow(batch, i)
            if writer is None or table.schema != schema:
                if writer is not None:
                    writer.close()
                schema = table.schema
                paths.append(folder / f"rows-{len(paths)}.arrow")
                writer = pa.ipc.new_stream(str(paths[-1]), schema)  # in which dictionaries may change
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()
    if not paths:
        raise ValueError("the iterator has given no batches: there are no rows to scan")
    return paths


def to_arrow(batch: Any, i: int) -> Any:
    """One batch as a table of Arrow."""
    import pyarrow as pa

    if not (hasattr(batch, "__arrow_c_stream__") or hasattr(batch, "__arrow_c_array__")):
        raise TypeError(
            f"batch {i} is a {type(batch).__name__}: give frames (pandas, polars, ...) or batches of Arrow, with the "
            "target among their columns."
        )
    return pa.table(batch)
