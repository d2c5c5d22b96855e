"""One row as people write it: a dictionary, a sequence, a frame or array of one row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.estimators.checks import open_x
from spinney.table.columns import Categories, Columns, Numbers, open_columns
from spinney.table.schema import plain_level

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.table.schema import Schema


def open_row(estimator: Any, row: Any) -> Columns:
    """The columns of one row, in the order of fit: values by name are found by name, others are in that order."""
    schema: Schema = estimator._schema  # noqa: SLF001, the estimator's own reading of its columns
    if getattr(row, "ndim", None) == 1 and hasattr(row, "to_dict") and hasattr(row, "index"):
        row = dict(row.items()) if schema.names is not None else list(row)  # a row of a pandas frame
    if is_flat(row):
        return open_cells(list(row), schema)
    columns = open_x(estimator, row, is_fit=False)
    if columns.n_rows != 1:
        raise ValueError(f"row has {columns.n_rows} rows: give one, for example X[i : i + 1] or X.iloc[[i]].")
    return columns


def is_flat(row: Any) -> bool:
    """Whether these are the values of one row rather than rows."""
    if isinstance(row, np.ndarray):
        return row.ndim == 1
    return isinstance(row, list | tuple) and not any(isinstance(x, list | tuple | np.ndarray | Mapping) for x in row)


def open_cells(cells: list[Any], schema: Schema) -> Columns:
    """Values of one row as columns."""
    if len(cells) != schema.n_columns:
        raise ValueError(f"row has {len(cells)} values; the model was fitted on {schema.n_columns} features.")
    table = np.empty((1, len(cells)), object)
    table[0, :] = cells
    return open_columns(table)


def unseen_levels(columns: Columns, schema: Schema, values: NDArray[Any]) -> dict[int, Any]:
    """Features of a row whose level fit has not seen, and that level: they count as missing."""
    found = {}
    for j, (k, _) in enumerate(schema.inputs()):
        if schema.levels[k] is None or not np.isnan(values[k]):
            continue
        column = columns.read(j)
        level = None
        if isinstance(column, Categories):
            code = int(column.codes[0])
            level = plain_level(column.values[code], schema.name_of(k)) if 0 <= code < len(column.values) else None
        elif isinstance(column, Numbers):
            known = column.exact()[0]
            level = known[0].item() if len(known) else None
        if level is not None:
            found[k] = level
    return found
