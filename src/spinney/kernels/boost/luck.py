"""What the levels of a category gain by chance, and what a subset of them is worth beyond that.

Levels are put in the order of their means before they are cut, so that the best cut of levels that say nothing gains
too: the more levels, the more. If a gradient has variance `s**2` for each unit of hessian and levels have hessians
`h_l`, the sum of the gradients of the lowest levels is by chance

    s * R * f(r),        R = sum of sqrt(h_l) over all levels,  r = its share in the lowest ones,

where f is the density of the normal distribution at its r-quantile. The two branches then gain by chance

    s**2 / 2 * R**2 * f(r)**2 * (1 / H_left + 1 / H_right):

in the middle of m levels of one size 2 / pi * m times `s**2 / 2`, at their end about 2 log(m) times. A subset is worth
its gain less `cat_penalty` times what exceeds the chance of two levels, which can be cut in one way only, as a number
of two values can.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel

from ..common.structs import BoostNodes, BoostSettings, BoostTable, ByteRows
from .scan import hessian_of
from .threads import runs_of


@kernel
def sum_squares(rows: ByteRows, lo: int, hi: int, weights: np.ndarray, shift: int) -> int:
    """Sum of squared gradients of some rows, each divided by its weight: a row of weight 2 counts as two rows."""
    sums = rows.sums
    ids = rows.ids
    is_unit = len(weights) == 1
    total = np.int64(0)
    for i in range(lo, hi):
        g = sums[i] >> 32
        if is_unit:
            total += g * g
        else:
            total += g * g // max(weights[ids[i]] >> shift, np.int64(1))
    return total


@inlined
def noise_of(
    node: int, packed: int, table: BoostTable, rows: ByteRows, nodes: BoostNodes, settings: BoostSettings
) -> float:
    """What a unit of `luck` gains at a node, by the variance of its gradients, times `cat_penalty`."""
    if settings.cat_penalty == 0.0 or settings.most_words == 0:
        return 0.0
    squares = np.int64(0)
    for shard in range(len(nodes.begin)):
        runs = runs_of(shard, node, rows, nodes)
        for begin in range(runs.lo, runs.hi, runs.jump):
            squares += sum_squares(rows, begin, min(begin + runs.size, runs.hi), table.weights, settings.weight_shift)
    h = np.float64(hessian_of(packed)) * settings.hessian_unit
    return 0.5 * settings.cat_penalty * np.float64(squares) * settings.square_unit / h
