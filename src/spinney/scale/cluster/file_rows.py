"""Rows of files that workers read themselves, as a collection: row groups of Parquet, other files as a whole.

"clicks/*.parquet", "s3://clicks/" ──list_pieces──► pieces ──FileRows──► what `fit` takes as it takes collections
spinney.scan(...) ──spread_scan──► FileRows of X, y, weights and groups
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney.scale.addresses import is_address, list_addressed, open_address
from spinney.scale.layout import FEATURE, GROUPS, TARGET, WEIGHT
from spinney.table.ingest import check_file, read_table
from spinney.table.sources import list_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from spinney.scale.scan import Scan

PIECE_ROWS = 1 << 18  # of a file of Parquet that are read at once, at least: a row group may be small


class Piece(NamedTuple):
    """A part of a file."""

    path: str
    row_groups: tuple[int, ...] | None  # None: the whole file


class FileRows:
    """Some columns of files; what `fit` takes as it takes a Dask collection.

    Parameters
    ----------
    pieces : list of Piece
        In the order of the rows.
    columns : list of str
    is_target : bool
        One column, that is wanted as an array.
    """

    _meta = None  # they are rows, as of a frame

    def __init__(self, pieces: list[Piece], columns: list[str], *, is_target: bool = False) -> None:
        self.pieces, self.columns, self.is_target = pieces, columns, is_target

    def __dask_graph__(self) -> None:
        """Nothing: pieces are computed one by one."""

    def __dask_postcompute__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """How pieces become a table, or an array."""
        return join_pieces, (self.is_target,)

    def to_delayed(self) -> list[Any]:
        """What workers are to read."""
        from dask import delayed

        read = delayed(read_piece, pure=True)
        return [read(piece, self.columns) for piece in self.pieces]


def list_pieces(data: str | os.PathLike[str]) -> list[Piece]:
    """The pieces of a file, a folder, a pattern or an address; nothing but the ends of Parquet files is read."""
    paths = list_paths(data)
    texts = [path for path in paths if find_kind(path) == "csv"]
    if texts and len(paths) > 1:
        raise ValueError(
            f"{data} has {len(paths)} files, and {Path(texts[0]).name} is CSV, whose columns are known from all rows "
            "only: convert them to Parquet, or fit without a cluster"
        )
    return [piece for path in paths for piece in cut_file(path)]


def list_paths(data: str | os.PathLike[str]) -> list[str]:
    """The files of a path, a folder, a pattern or an address, in the order of their rows."""
    if not is_address(data):
        return [str(path) for path in list_files(data)]
    address = os.fspath(data)
    files, path = open_address(address)
    return [str(files.unstrip_protocol(one)) for one in list_addressed(files, path, address)]


def find_kind(path: str) -> str:
    """The kind of a file, see `check_file`."""
    if not is_address(path):
        return check_file(Path(path))
    suffix = Path(path.lower().removesuffix(".gz")).suffix
    return suffix[1:] if suffix in {".csv", ".parquet"} else suffix


@contextlib.contextmanager
def opening(path: str) -> Iterator[Any]:
    """What Parquet is read from: a path, or an open file of an address."""
    if not is_address(path):
        yield path
        return
    files, inside = open_address(path)
    with files.open(inside, "rb") as file:
        yield file


def cut_file(path: str) -> list[Piece]:
    """The pieces of a file."""
    if find_kind(path) != "parquet":
        return [Piece(path, None)]
    from pyarrow import parquet

    with opening(path) as file:
        about = parquet.read_metadata(file)
    pieces: list[Piece] = []
    groups: list[int] = []
    n_rows = 0
    for k in range(about.num_row_groups):
        groups.append(k)
        n_rows += about.row_group(k).num_rows
        if n_rows >= PIECE_ROWS:
            pieces.append(Piece(path, tuple(groups)))
            groups, n_rows = [], 0
    return [*pieces, Piece(path, tuple(groups))] if groups else pieces


def read_names(piece: Piece) -> list[str]:
    """The columns of a piece."""
    if piece.row_groups is None:
        return list(read_table(piece.path).column_names)
    from pyarrow import parquet

    with opening(piece.path) as file:
        return list(parquet.read_schema(file).names)


def read_piece(piece: Piece, columns: list[str]) -> pa.Table:
    """Some columns of a piece."""
    if not is_address(piece.path) and not Path(piece.path).exists():
        raise FileNotFoundError(
            f"{piece.path} is not there for a worker, which reads it itself: put the files where all workers see them, "
            "or give an address such as s3://"
        )
    if piece.row_groups is None:
        return read_table(piece.path).select(columns)
    from pyarrow import parquet

    with opening(piece.path) as opened, parquet.ParquetFile(opened) as file:
        return file.read_row_groups(list(piece.row_groups), columns=columns).select(columns)


def spread_scan(scan: Scan) -> dict[str, FileRows] | None:
    """X, y, weights and groups of a scan, as workers read them; None: what it stands for has to be read here."""
    given = scan._given if isinstance(scan._given, list | tuple) else [scan._given]  # noqa: SLF001
    if scan.memory is not None or scan.target is None or not all(isinstance(one, str | os.PathLike) for one in given):
        return None
    paths = [path for one in given for path in list_paths(one)]
    kinds = {find_kind(path) for path in paths}
    if kinds != {"parquet"} and (kinds == {"csv"} or any(map(is_address, paths)) or len(kinds) > 1):
        return None
    pieces = [piece for path in paths for piece in cut_file(path)]
    if not pieces:
        return None
    roles = scan.assign_roles(read_names(pieces[0]))
    columns = {role: [name for name, of in roles.items() if of == role] for role in dict.fromkeys(roles.values())}
    places = {FEATURE: "X", TARGET: "y", WEIGHT: "sample_weight", GROUPS: "groups"}
    return {places[role]: FileRows(pieces, names, is_target=role != FEATURE) for role, names in columns.items()}


def join_pieces(tables: list[pa.Table], is_target: bool) -> Any:
    """The table, or the array of its one column."""
    import pyarrow as pa

    table = pa.concat_tables(tables).unify_dictionaries()
    if not is_target:
        return table
    column = table.column(0)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return np.asarray(column.to_numpy(zero_copy_only=False))
