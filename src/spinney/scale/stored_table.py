"""The columns of a store as the table of a fit: read from disk one at a time, none of them held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.table.columns import Numbers
from spinney.table.dates import read_dates
from spinney.table.ingest import Table
from spinney.table.schema import encode, encode_column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from spinney.scale.code_shelf import DiskShelf
    from spinney.table.columns import Columns
    from spinney.table.schema import Schema
    from spinney.table.sparse import Values


@dataclass(frozen=True, slots=True)
class StoredFeature(Numbers):
    """A feature on disk, as values: numbers, indices of levels, or a part of a date.

    Attributes
    ----------
    values : Columns
        Those of the store.
    schema : Schema
    column, feature : int
        Its column in the store, and its place among the features.
    part : int
        Its place among the parts of a date; 0 for others.
    """

    schema: Schema | None = None
    column: int = 0
    feature: int = 0
    part: int = 0

    def read(self) -> NDArray[Any]:
        """The values of all rows, (n_rows,)."""
        assert self.schema is not None
        return read_features(self.values, self.schema, self.column, self.feature)[self.part]


def read_features(columns: Columns, schema: Schema, j: int, first: int) -> list[NDArray[Any]]:
    """The features of column j, of which `first` is the first, as values of any real dtype: several of a date."""
    dates = None if schema.dates is None else schema.dates[j]
    column = columns.read(j)
    return [encode_column(column, schema, first)] if dates is None else read_dates(column, dates)


class StoredTable(Table):
    """What fit reads of a store.

    Parameters
    ----------
    schema : Schema
        What the columns mean to the model.
    columns : Columns
        Those of the store, read when asked for.
    shelf : DiskShelf, optional
        Where codes are kept.
    batches : callable
        The same columns, in blocks of rows.
    block_rows : int
        Rows of a block; the last may have fewer.
    most_workers : int, optional
        Threads that there is memory for; None: any number.
    """

    least_columns = 1

    def __init__(
        self,
        schema: Schema,
        columns: Columns,
        shelf: DiskShelf | None,
        batches: Callable[[], Iterator[Columns]],
        block_rows: int,
        most_workers: int | None = None,
    ) -> None:
        features = [
            StoredFeature(columns, None, schema, j, first + part, part)
            for j, (first, dates) in enumerate(schema.inputs())
            for part in range(1 if dates is None else len(dates.parts))
        ]
        super().__init__(schema, columns.n_rows, features)
        self.shelf: DiskShelf | None = shelf
        self.most_workers = most_workers
        self.columns, self.batches, self.block_rows = columns, batches, block_rows

    def list_inputs(self) -> list[range]:
        """The features of each column: several of a date."""
        ends = [*[first for first, _ in self.schema.inputs()][1:], self.schema.n_features]
        return [range(first, end) for (first, _), end in zip(self.schema.inputs(), ends, strict=True)]

    def read_input(self, columns: Columns, j: int, first: int) -> list[NDArray[Any]]:
        """The features of column j of a block of rows, `first` being the first: float32 or float64, no view."""
        found = read_features(columns, self.schema, j, first)
        with np.errstate(over="ignore"):
            return [values if values.dtype == np.float32 else values.astype(np.float64) for values in found]

    def value_blocks(self, rows: NDArray[np.bool_] | None = None) -> Iterator[Values]:
        """Rows as values, block by block."""
        first = 0
        for columns in self.batches():
            values = encode(columns, self.schema)
            yield values if rows is None else values[rows[first : first + len(values)]]
            first += len(values)
