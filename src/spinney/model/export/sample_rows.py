"""Rows that an export is checked by: on thresholds and beside them, infinite, missing, with levels never seen."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney._types import THRESHOLD

if TYPE_CHECKING:
    from spinney.model.export.tree_sum import Column, TreeSum

N_ROWS = 200
MOST_CUTS = 1000  # of a column that rows are drawn from
MISSING_SHARE = 0.15
UNSEEN_TEXT, UNSEEN_NUMBER = "a level that was never seen", -12345.5


def draw_values(form: TreeSum, n_rows: int = N_ROWS, seed: int = 0) -> NDArray[np.float64]:
    """Values of rows, (n_rows, n_columns): a category as the index of its level, missing as NaN.

    The first third has no missing values; the last row has nothing else.
    """
    rng = np.random.default_rng(seed)
    values = np.empty((n_rows, len(form.columns)))
    for j, column in enumerate(form.columns):
        values[:, j] = rng.choice(list_candidates(form, j, column), n_rows)
    is_missing = rng.random(values.shape) < MISSING_SHARE
    is_missing[: n_rows // 3] = False
    is_missing[-1] = True
    values[is_missing] = np.nan
    return values


def list_candidates(form: TreeSum, j: int, column: Column) -> NDArray[np.float64]:
    """Values of a column that tests tell apart."""
    if column.levels is not None:
        return np.arange(len(column.levels), dtype=np.float64) if column.levels else np.full(1, np.nan)
    is_mine = (form.nodes.kind == THRESHOLD) & (form.nodes.column == j)
    cuts = np.unique(form.nodes.cut[is_mine])
    more = [test.cut for tests in form.surrogates.values() for test in tests if test.column == j]
    more += [term.fill for terms in form.terms.values() for term in terms if term.column == j]
    cuts = np.unique(np.concatenate([cuts[np.isfinite(cuts)], more]))
    if len(cuts) > MOST_CUTS:
        cuts = cuts[np.linspace(0, len(cuts) - 1, MOST_CUTS).astype(np.int64)]
    between = 0.5 * cuts[1:] + 0.5 * cuts[:-1]
    ends = [0.0, -0.0, 1.0] if form.terms else [0.0, -0.0, math.inf, -math.inf]
    return np.concatenate([cuts, np.nextafter(cuts, -math.inf), np.nextafter(cuts, math.inf), between, ends])


def show_cells(form: TreeSum, values: NDArray[np.float64]) -> list[list[Any]]:
    """Rows of values as users have them: levels by themselves; of missing ones every second is a level never seen."""
    cells: list[list[Any]] = [[None] * len(form.columns) for _ in range(len(values))]
    for j, column in enumerate(form.columns):
        unseen = find_unseen(column)
        for i, value in enumerate(values[:, j].tolist()):
            if math.isnan(value):
                cells[i][j] = unseen if (i + j) % 2 else None
            else:
                cells[i][j] = value if column.levels is None else column.levels[int(value)]
    return cells


def find_unseen(column: Column) -> Any:
    """A level that a column does not have; None for numbers."""
    if column.levels is None:
        return None
    if column.levels and not isinstance(column.levels[0], str):
        return UNSEEN_NUMBER
    return UNSEEN_TEXT if UNSEEN_TEXT not in column.levels else None
