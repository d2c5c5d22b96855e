"""Rows that are alike are boosted as one: the same codes and the same target have the same scores in all rounds.

    rows of X ─► numbers of those that differ ─► one row each, which weighs as many as it stands for ─► the same trees

Sums over rows are whole numbers, and a row of weight 2 is two rows, so the trees are the same to the bit. Where a limit
counts rows, weights are counted. What is left are sums of floats: the loss of a round is added up over all rows, in
their order; sizes of derivatives are asked for their power of two alone, and added up like that where it is in doubt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.ensemble.losses import LogLoss, Softmax
from spinney.table.bundles import sample_step
from spinney.table.row_numbers import AlikeRows, number_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.ensemble.boosted_rows import BoostedRows
    from spinney.ensemble.losses import Loss
    from spinney.table.binning import Bins
    from spinney.tree.boost import BoostParams

    Floats = NDArray[np.float64]

FEWEST_ROWS = 1 << 12  # below, trees cost more than rows
MOST_ROWS = 1 << 21  # above, what is drawn for a row rounds its derivatives, and rows differ
MOST_SHARE = 0.7  # of the rows that may differ: a row that stands for others costs a little more


def may_be_joined(loss: Loss, params: BoostParams) -> bool:
    """Whether rows of equal codes and targets do the same to all trees: none is drawn, or counted otherwise."""
    is_whole = params.subsample >= 1.0 and params.drop_rate == 0.0 and params.candidates != "hessian" and params.newton
    # nodes of so many rows are those that have two branches of enough
    return isinstance(loss, LogLoss | Softmax) and is_whole and params.min_samples_split <= 2 * params.min_samples_leaf


def find_alike(bins: Bins, y: Floats, kernels: Any) -> AlikeRows | None:
    """Rows of equal codes and targets, whole numbers; None where most differ, which a sample mostly tells."""
    n_rows = len(y)
    if not FEWEST_ROWS <= n_rows <= MOST_ROWS:
        return None
    step = sample_step(n_rows)
    some = np.hstack([bins.rows[::step], y[::step, np.newaxis].view(np.uint8)])
    n_some = len(np.unique(np.ascontiguousarray(some).view(f"V{some.shape[1]}")))
    if n_some > MOST_SHARE * len(some):
        return None
    found = number_rows(bins.rows.view(np.uint64), y, int(MOST_SHARE * n_rows), kernels)
    if found is None or len(found.first) < 2:  # a weight of one row would be taken for that of all rows
        return None
    return found._replace(first=found.first.copy(), times=found.times.copy())


def join_alike(rows: BoostedRows, loss: Loss, params: BoostParams, kernels: Any) -> BoostedRows:
    """One row for all that are alike, where that changes no tree and makes rows fewer; else the rows as they are."""
    if rows.weight is not None or rows.raw.shape[1] != 1 or not may_be_joined(loss, params):
        return rows
    alike = find_alike(rows.bins, rows.y, kernels)
    if alike is None:
        return rows
    bins = rows.bins._replace(rows=rows.bins.rows[alike.first])
    return rows._replace(bins=bins, y=rows.y[alike.first], weight=alike.times.astype(np.float64), alike=alike)
