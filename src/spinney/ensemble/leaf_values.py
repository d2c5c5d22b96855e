"""The values of the leaves of a boosted tree, where they are not steps by sums of derivatives; units of such sums."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from spinney._types import SUM_BITS
from spinney.ensemble.best_constant import row_weights, weighted_mean, weighted_quantile
from spinney.kernels.common.structs import PackedUnits
from spinney.tree.packed_units import power_below

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.ensemble.losses import Loss

    Floats = NDArray[np.float64]


def leaf_units(sum_g: float, sum_h: float) -> PackedUnits:
    """Units of the sums of true derivatives by leaf, given the sums of all their sizes."""
    limit = math.ldexp(1.0, SUM_BITS - 1)
    return PackedUnits(power_below(limit, sum_g), power_below(limit, sum_h))


def estimate_leaves(
    loss: Loss, k: int, n_nodes: int, leaf: NDArray[np.int32], residual: Floats, weight: Floats | None
) -> Floats:
    """Values of leaves that minimise the loss of their rows exactly: a quantile, or Friedman's step of huber.

    leaf, residual, weight: of each row that counts; k: the raw score.
    """
    order = np.argsort(leaf, kind="stable")
    ends = np.searchsorted(leaf[order], np.arange(n_nodes + 1))
    values = np.zeros(n_nodes)
    for node in range(n_nodes):
        mine = order[ends[node] : ends[node + 1]]
        if len(mine) == 0:
            continue
        r = residual[mine]
        weights = row_weights(None if weight is None else weight[mine], len(mine))
        values[node] = middle = weighted_quantile(r, weights, loss.quantile_levels[k])
        if loss.leaf == "huber":
            values[node] += weighted_mean(np.clip(r - middle, -loss.parameter, loss.parameter), weights)
    return values
