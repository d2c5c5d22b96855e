"""Rows of files that workers read themselves, as a collection: row groups of Parquet, other files as a whole.

"clicks/*.parquet", "s3://clicks/" ──list_pieces──► pieces ──FileRows──► what `fit` takes as it takes collections
spinney.scan(...) ──spread_scan──► FileRows of X, y, weights and groups

A worker that is lost has its pieces read again by another: what tells that a file is still the same goes along with
each piece, and one that has changed is refused.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney.scale.addresses import is_address, list_addressed, open_address
from spinney.scale.cluster.piece_types import cast_columns, find_casts
from spinney.scale.layout import FEATURE, GROUPS, TARGET, WEIGHT
from spinney.table.ingest import check_file, drop_index, read_table
from spinney.table.prediction_batches import BATCH_ROWS, open_ipc
from spinney.table.sources import list_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from spinney.scale.cluster.piece_types import Casts
    from spinney.scale.scan import Scan

CHANGES = ("ETag", "etag", "mtime", "LastModified", "last_modified", "updated", "created")  # as file systems call it
PIECE_ROWS = 1 << 18  # of a file of Parquet that are read at once, at least: a row group may be small


class Piece(NamedTuple):
    """A part of a file."""

    path: str
    row_groups: tuple[int, ...] | None  # None: the whole file
    stamp: tuple[str, ...]  # what tells that the file is still the same
    casts: Casts = ()  # columns that have other types in other files


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
    return cut_files(paths)


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


def stamp_file(path: str) -> tuple[str, ...]:
    """What tells that a file is still the same, wherever it is looked at: its size, and when it has changed."""
    if not is_address(path):
        about = Path(path).stat()
        return str(about.st_size), str(about.st_mtime_ns // 1000)  # some file systems know no nanoseconds
    files, inside = open_address(path)
    told = files.info(inside)
    changed = next((told[name] for name in CHANGES if told.get(name) is not None), None)
    return str(told.get("size")), str(changed)


def cut_files(paths: list[str]) -> list[Piece]:
    """The pieces of all files of a table, in the order of the rows; refuses files whose columns do not go together."""
    found = [cut_file(path) for path in paths]
    if any(schema is None for schema, _ in found):  # of CSV, which is alone
        return [piece for _, pieces in found for piece in pieces]
    casts = find_casts(paths, [schema for schema, _ in found if schema is not None])
    return [piece._replace(casts=of) for (_, pieces), of in zip(found, casts, strict=True) for piece in pieces]


def cut_file(path: str) -> tuple[pa.Schema | None, list[Piece]]:
    """The schema of a file, and its pieces; None of CSV, whose types all rows tell."""
    kind, stamp = find_kind(path), stamp_file(path)
    if kind == "csv":
        return None, [Piece(path, None, stamp)]
    if kind != "parquet":
        return open_ipc(Path(path), BATCH_ROWS).schema, [Piece(path, None, stamp)]
    from pyarrow import parquet

    with opening(path) as file:
        about = parquet.read_metadata(file)
    schema = about.schema.to_arrow_schema()
    pieces: list[Piece] = []
    groups: list[int] = []
    n_rows = 0
    for k in range(about.num_row_groups):
        groups.append(k)
        n_rows += about.row_group(k).num_rows
        if n_rows >= PIECE_ROWS or k == about.num_row_groups - 1:
            pieces.append(Piece(path, tuple(groups), stamp))
            groups, n_rows = [], 0
    return drop_index(schema.empty_table()).schema, pieces


def read_names(piece: Piece) -> list[str]:
    """The columns of a piece."""
    if piece.row_groups is None:
        return list(read_table(piece.path).column_names)
    from pyarrow import parquet

    with opening(piece.path) as file:
        return list(drop_index(parquet.read_schema(file).empty_table()).column_names)


def read_piece(piece: Piece, columns: list[str]) -> pa.Table:
    """Some columns of a piece; refused where its file is not as it was when the fit began, before and after."""
    if not is_address(piece.path) and not Path(piece.path).exists():
        raise FileNotFoundError(
            f"{piece.path} is not there for a worker, which reads it itself: put the files where all workers see them, "
            "or give an address such as s3://"
        )
    refuse_changed(piece)
    if piece.row_groups is None:
        table = read_table(piece.path).select(columns)
    else:
        from pyarrow import parquet

        with opening(piece.path) as opened, parquet.ParquetFile(opened) as file:
            table = file.read_row_groups(list(piece.row_groups), columns=columns).select(columns)
    refuse_changed(piece)
    return cast_columns(piece.path, table, piece.casts)


def refuse_changed(piece: Piece) -> None:
    """Refuse a file that is another one than the client has seen: rows that are read again would be other rows."""
    if stamp_file(piece.path) != piece.stamp:
        raise ValueError(
            f"{piece.path} has changed since the fit began, or is another file for a worker than for the client: leave "
            "files as they are while a fit reads them, and have all see the same ones"
        )


def spread_scan(scan: Scan) -> dict[str, FileRows] | None:
    """X, y, weights and groups of a scan, as workers read them; None: what it stands for has to be read here."""
    given = scan._given if isinstance(scan._given, list | tuple) else [scan._given]  # noqa: SLF001
    if scan.memory is not None or scan.target is None or not all(isinstance(one, str | os.PathLike) for one in given):
        return None
    scan.refuse_changed()
    paths = [path for one in given for path in list_paths(one)]
    kinds = {find_kind(path) for path in paths}
    if kinds != {"parquet"} and (kinds == {"csv"} or any(map(is_address, paths)) or len(kinds) > 1):
        return None
    pieces = cut_files(paths)
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
