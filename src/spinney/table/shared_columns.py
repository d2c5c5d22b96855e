"""Columns that are read once for several models, each of which takes some of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.table.columns import Categories, Column, Columns, Dates, Numbers

if TYPE_CHECKING:
    from numpy.typing import NDArray


class SharedColumns:
    """The columns of one X, each read: text is turned into codes here, and never again.

    Parameters
    ----------
    columns : Columns
        As `open_columns` gives them.

    Examples
    --------
    >>> from spinney.table.columns import open_columns
    >>> shared = SharedColumns(open_columns([["red", 1.5], ["blue", 2.5], ["red", 3.5]]))
    >>> shared.take(np.array([0, 2])).read(0)
    Categories(codes=array([0, 0]), values=['red'], is_ordered=False)
    """

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.parts = [columns.read(j) for j in range(columns.n_columns)]

    def take(self, rows: NDArray[np.int64] | None) -> Columns:
        """Some rows, as `open_columns` would give them of a table that has no others; None: all."""
        names, n_columns, is_frame = self.columns.names, self.columns.n_columns, self.columns.is_frame
        if rows is None:
            return Columns(names, self.columns.n_rows, n_columns, is_frame, lambda j: self.parts[j])
        return Columns(names, len(rows), n_columns, is_frame, lambda j: take_rows(self.parts[j], rows))


def take_columns(columns: Columns, rows: NDArray[np.int64] | None, chosen: NDArray[np.int64] | None) -> Columns:
    """Some rows and some columns, each read when it is needed; None: all."""
    places = range(columns.n_columns) if chosen is None else chosen.tolist()
    names = None if columns.names is None else tuple(columns.names[j] for j in places)
    n_rows = columns.n_rows if rows is None else len(rows)

    def read(j: int) -> Column:
        column = columns.read(places[j])
        return column if rows is None else take_rows(column, rows)

    return Columns(names, n_rows, len(places), columns.is_frame, read)


def join_columns(numbers: NDArray[np.float64], names: list[str], columns: Columns) -> Columns:
    """Columns of numbers, called so where the others have names, and the others after them."""
    n_first = numbers.shape[1]

    def read(j: int) -> Column:
        return Numbers(numbers[:, j]) if j < n_first else columns.read(j - n_first)

    joined = None if columns.names is None else (*names, *columns.names)
    return Columns(joined, len(numbers), n_first + columns.n_columns, columns.is_frame, read)


def take_rows(column: Column, rows: NDArray[np.int64]) -> Column:
    """Some rows of a column; of categories those values that occur in them."""
    if isinstance(column, Numbers):
        values: Any = column.values[rows]
        return Numbers(values, None if column.cells is None else column.cells[rows])
    if isinstance(column, Dates):
        return Dates(column.values[rows], column.has_zone)
    codes = column.codes[rows]
    used = np.unique(codes[codes >= 0])
    places = np.where(codes < 0, -1, np.searchsorted(used, codes))
    return Categories(places, [column.values[code] for code in used], column.is_ordered)
