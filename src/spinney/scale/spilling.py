"""Sources that know no files of this machine: written to a folder first, in files that can be read again.

Each of them goes by a name that its owner knows: messages never name the files.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from spinney.scale.addresses import fetch, is_address
from spinney.table.sources import list_files

if TYPE_CHECKING:
    from collections.abc import Mapping
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


@contextlib.contextmanager
def naming(names: Mapping[Path, str]) -> Iterator[None]:
    """Let errors name what the user knows, not the files that stand for it."""
    try:
        yield
    except (ValueError, OSError) as error:
        text = str(error)
        for path in sorted(names, key=lambda path: -len(str(path))):
            text = text.replace(str(path), names[path])
        if text == str(error):
            raise
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, text) from error
        raise type(error)(text) from error


def spill_lazy(frame: Any, folder: Path) -> dict[Path, str]:
    """Run a lazy frame of polars into a file, its rows in their order."""
    path = folder / "rows.parquet"
    try:
        frame.sink_parquet(path, maintain_order=True)
    except OSError:
        raise
    except Exception as error:  # of any kind that polars has: what it says first is all there is to say
        raise ValueError(f"the LazyFrame cannot be run: {str(error).strip().splitlines()[0]}") from error
    return {path: "the LazyFrame"}


def spill_files(given: Any, folder: Path) -> dict[Path, str]:
    """Copy the files of addresses, of a list in its order; paths among them stay where they are."""
    paths: dict[Path, str] = {}
    for i, one in enumerate(given if isinstance(given, list | tuple) else [given]):
        if not is_address(one):
            paths |= {path: str(path) for path in list_files(one)}
            continue
        inside = folder / str(i)
        inside.mkdir()
        paths |= {path: f"{path.name} of {one}" for path in fetch(one, inside)}
    return paths


def spill_batches(batches: Iterable[Any], folder: Path) -> dict[Path, str]:
    """Write frames or batches of Arrow to files, one for each stretch of equal schemas."""
    import pyarrow as pa

    paths: dict[Path, str] = {}
    writer: Any = None
    schema: Any = None
    try:
        for i, batch in enumerate(batches):
            table = to_arrow(batch, i)
            if writer is None or table.schema != schema:
                if writer is not None:
                    writer.close()
                schema = table.schema
                path = folder / f"rows-{len(paths)}.arrow"
                paths[path] = f"batch {i} of the {type(batches).__name__}"
                writer = pa.ipc.new_stream(str(path), schema)  # in which dictionaries may change
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
