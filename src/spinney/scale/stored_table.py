"""The columns of a store as the table of a fit: read from disk one at a time, none of them held."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from spinney.table.columns import Numbers
from spinney.table.dates import read_dates
from spinney.table.ingest import Table
from spinney.table.schema import encode, encode_column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from spinney.table.columns import Columns
    from spinney.table.ingest import CodeShelf
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
        column = self.values.read(self.column)
        dates = None if self.schema.dates is None else self.schema.dates[self.column]
        return (
            encode_column(column, self.schema, self.feature) if dates is None else read_dates(column, dates)[self.part]
        )


class StoredTable(Table):
    """What fit reads of a store.

    Parameters
    ----------
    schema : Schema
        What the columns mean to the model.
    columns : Columns
        Those of the store, read when asked for.
    shelf : CodeShelf, optional
        Where codes are kept.
    batches : callable
        The same columns, in blocks of rows.
    most_workers : int, optional
        Threads that there is memory for; None: any number.
    """

    least_columns = 1

    def __init__(
        self,
        schema: Schema,
        columns: Columns,
        shelf: CodeShelf | None,
        batches: Callable[[], Iterator[Columns]],
        most_workers: int | None = None,
    ) -> None:
        features = [
            StoredFeature(columns, None, schema, j, first + part, part)
            for j, (first, dates) in enumerate(schema.inputs())
            for part in range(1 if dates is None else len(dates.parts))
        ]
        super().__init__(schema, columns.n_rows, features)
        self.shelf, self.most_workers = shelf, most_workers
        self.batches = batches

    def value_blocks(self, rows: NDArray[np.bool_] | None = None) -> Iterator[Values]:
        """Rows as values, block by block."""
        first = 0
        for columns in self.batches():
            values = encode(columns, self.schema)
            yield values if rows is None else values[rows[first : first + len(values)]]
            first += len(values)
