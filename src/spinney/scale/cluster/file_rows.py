"""Rows of files that workers read themselves, as a collection: row groups of Parquet, other files as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney.table.ingest import check_file, read_table
from spinney.table.sources import list_files

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from pathlib import Path

    import pyarrow as pa

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
    """The pieces of a file, a folder or a pattern; nothing but the ends of Parquet files is read."""
    paths = list_files(data)
    texts = [path for path in paths if check_file(path) == "csv"]
    if texts and len(paths) > 1:
        raise ValueError(
            f"{data} has {len(paths)} files, and {texts[0].name} is CSV, whose columns are known from all rows only: "
            "convert them to Parquet, or fit without a cluster"
        )
    return [piece for path in paths for piece in cut_file(path)]


def cut_file(path: Path) -> list[Piece]:
    """The pieces of a file."""
    if check_file(path) != "parquet":
        return [Piece(str(path), None)]
    from pyarrow import parquet

    about = parquet.read_metadata(path)
    pieces: list[Piece] = []
    groups: list[int] = []
    n_rows = 0
    for k in range(about.num_row_groups):
        groups.append(k)
        n_rows += about.row_group(k).num_rows
        if n_rows >= PIECE_ROWS:
            pieces.append(Piece(str(path), tuple(groups)))
            groups, n_rows = [], 0
    return [*pieces, Piece(str(path), tuple(groups))] if groups else pieces


def read_names(piece: Piece) -> list[str]:
    """The columns of a piece."""
    if piece.row_groups is None:
        return list(read_table(piece.path).column_names)
    from pyarrow import parquet

    return list(parquet.read_schema(piece.path).names)


def read_piece(piece: Piece, columns: list[str]) -> pa.Table:
    """Some columns of a piece."""
    if piece.row_groups is None:
        return read_table(piece.path).select(columns)
    from pyarrow import parquet

    with parquet.ParquetFile(piece.path) as file:
        return file.read_row_groups(list(piece.row_groups), columns=columns).select(columns)


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
