"""One row by name, straight to values: what a service has at hand when it asks a model.

A table of one row takes milliseconds to be made, read and checked. A dict of plain cells (Python's and NumPy's
numbers, text, None) needs no table: names are keys, levels are looked up. What is not plain, and every mistake, is left
to the way of tables (`open_columns`, `match_names`, `encode`), which gives the same values, and the errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.table.columns import WIDE, is_missing_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from spinney.table.schema import Schema

NUMBERS: frozenset[type] = frozenset((float, int, bool, np.float64))  # which compare and hash alike
TEXT: frozenset[type] = frozenset((str,))
NAN = float("nan")


class RecordReader:
    """Dicts as rows of values, by the columns of a schema."""

    def __init__(self, schema: Schema) -> None:
        """Look-ups of each column: its name, the kinds of cells that are plain there, its levels if it has any."""
        self.columns: list[tuple[str, frozenset[type], dict[Any, float] | None]] = []
        if schema.dates is not None:  # dates are not plain: every row goes the way of tables
            return
        for name, levels in zip(schema.names or (), schema.levels, strict=bool(schema.names)):
            if levels is None:
                self.columns.append((name, NUMBERS, None))
                continue
            kinds = TEXT | NUMBERS if not levels else TEXT if isinstance(levels[0], str) else NUMBERS
            self.columns.append((name, kinds, {level: float(i) for i, level in enumerate(levels)}))

    def read(self, record: Mapping[str, Any]) -> NDArray[np.float64] | None:
        """The values of a row, (n_features,); None where a table has to be made of it."""
        if not self.columns or len(record) != len(self.columns):  # no columns: fit had no names, or dates
            return None
        values = []
        for name, kinds, index in self.columns:
            if name not in record:
                return None
            cell = record[name]
            kind = type(cell)
            if kind not in kinds:
                if isinstance(cell, np.datetime64 | np.timedelta64):  # in nanoseconds, `item` would make a number of it
                    return None
                if isinstance(cell, np.generic):
                    cell = cell.item()
                    kind = type(cell)
                if is_missing_type(kind) or (kind is float and cell != cell):  # noqa: PLR0124  (NaN)
                    values.append(NAN)
                    continue
                if kind not in kinds:
                    return None
            if kind is int and not -WIDE <= cell <= WIDE:  # float64 may not hold it
                return None
            values.append(cell if index is None else index.get(cell, NAN))
        return np.array(values, np.float64)
