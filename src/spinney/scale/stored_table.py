"""The columns of a store as the table of a fit: read from disk one at a time, none of them held."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.table.dates import read_dates
from spinney.table.ingest import Table
from spinney.table.schema import encode_column

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.table.columns import Columns
    from spinney.table.ingest import CodeShelf
    from spinney.table.schema import Schema


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
    most_workers : int, optional
        Threads that there is memory for; None: any number.
    """

    least_columns = 1

    def __init__(
        self, schema: Schema, columns: Columns, shelf: CodeShelf | None, most_workers: int | None = None
    ) -> None:
        super().__init__(schema, columns.n_rows, [])
        self.shelf, self.most_workers = shelf, most_workers
        self._opened = columns
        self._homes: list[tuple[int, int]] = []  # of each feature: its column, and its place among the parts of a date
        for j, (_, dates) in enumerate(schema.inputs()):
            self._homes += [(j, part) for part in range(1 if dates is None else len(dates.parts))]

    def block(self, start: int, stop: int, out: NDArray[np.float64] | None = None) -> NDArray[np.float64]:
        """Features [start, stop) as a C-contiguous float64 array (stop - start, n_rows), never a view."""
        if out is None:
            out = np.empty((stop - start, self.n_rows), dtype=np.float64)
        with np.errstate(over="ignore"):
            for k in range(start, stop):
                out[k - start] = self._read(k)
        return out

    def _read(self, k: int) -> NDArray[Any]:
        j, part = self._homes[k]
        column = self._opened.read(j)
        dates = None if self.schema.dates is None else self.schema.dates[j]
        return encode_column(column, self.schema, k) if dates is None else read_dates(column, dates)[part]
