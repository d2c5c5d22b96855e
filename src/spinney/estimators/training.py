"""The training rows of a single tree as codes, and the names of what grows on them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._jit import kernels
from spinney.table.coding import code_table
from spinney.table.fixed_point import fix_weights
from spinney.tree.structure import Legend

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.table.coding import Codes
    from spinney.table.fixed_point import Weights
    from spinney.table.ingest import Table
    from spinney.table.schema import Schema


class CodedRows(NamedTuple):
    """The rows of a table that have a weight."""

    codes: Codes
    weights: Weights
    keep: NDArray[np.bool_] | None  # (table.n_rows,) which rows they are; None: all
    n_rows: int
    kernels: Any
    times: NDArray[np.int64] | None = None  # (n_rows,) how many rows each counts as, where its weight does not say it


def code_rows(
    table: Table,
    weight: NDArray[np.float64] | None,
    max_bins: int,
    visit_seconds: float,
    times: NDArray[np.int64] | None = None,
) -> CodedRows:
    """Leave out the rows of weight 0, code the others; `visit_seconds`: interpreted, per row, feature and level.

    times : as of `fix_weights`, for all rows of the table.
    """
    keep = None if weight is None or bool(np.all(weight > 0.0)) else weight > 0.0
    if keep is not None and weight is not None:
        weight = weight[keep]
        times = None if times is None else times[keep]
    n_rows = table.n_rows if keep is None else int(np.count_nonzero(keep))
    chosen = kernels(n_rows * table.schema.n_features * max(math.log2(n_rows), 1.0) * visit_seconds)
    weights = fix_weights(weight, n_rows, times)
    return CodedRows(code_table(table, weights.values, max_bins, chosen, keep), weights, keep, n_rows, chosen, times)


def make_legend(
    schema: Schema, classes: tuple[Any, ...] | None, has_missing: NDArray[np.bool_], criterion: str | None = None
) -> Legend:
    """Names for the trees of a table; columns without one are x0, x1, and so on."""
    names = schema.names or tuple(f"x{j}" for j in range(schema.n_features))
    return Legend(names, schema.levels, classes, tuple(has_missing.tolist()), criterion)
