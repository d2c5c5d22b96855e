"""What a unit of luck is worth at a node of a boosted tree: see `common.category_chance`.

A hessian takes the place of a weight, and the variance of the gradients of a unit of hessian that of the target's. The
gain of boosting is half of what other trees call their gain, so the worth is half of that variance.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel

from ..common.structs import BoostNodes, BoostSettings, BoostTable, ByteRows
from .rows import number_of
from .scan import gradient_of, hessian_of
from .shards import runs_of


@inlined
def square_of(packed: int, weight: int) -> int:
    """The squared gradient of a row, divided by its weight, in coarse units: a row of weight 2 counts as two rows."""
    g = gradient_of(packed)
    return g * g if weight <= 1 else g * g // weight


@kernel
def sum_squares(rows: ByteRows, lo: int, hi: int, weights: np.ndarray, shift: int) -> int:
    """Sum of squared gradients of some rows, each divided by its weight: a row of weight 2 counts as two rows."""
    sums = rows.sums
    ids = rows.ids
    total = np.int64(0)
    if len(weights) == 1:
        for k in range(np.uint64(lo), np.uint64(hi)):
            total += square_of(sums[k], np.int64(1))
        return total
    for k in range(np.uint64(lo), np.uint64(hi)):
        total += square_of(sums[k], weights[number_of(k, ids)] >> shift)
    return total


@inlined
def worth_of_luck(squares: int, packed: int, settings: BoostSettings) -> float:
    """What a unit of luck is worth, times `cat_penalty`, among rows with this sum of squares and packed sum."""
    h = np.float64(hessian_of(packed)) * settings.hessian_unit
    return 0.5 * settings.cat_penalty * np.float64(squares) * settings.square_unit / h


@inlined
def asks_for_luck(settings: BoostSettings) -> bool:
    """Whether it matters what a unit of luck is worth."""
    return settings.cat_penalty != 0.0 and settings.most_words != 0


@inlined
def squares_of_shard(
    shard: int, node: int, table: BoostTable, rows: ByteRows, nodes: BoostNodes, settings: BoostSettings
) -> int:
    """Sum of the squared gradients of the rows of a shard in a node."""
    squares = np.int64(0)
    runs = runs_of(shard, node, rows, nodes)
    for begin in range(runs.lo, runs.hi, runs.jump):
        squares += sum_squares(rows, begin, min(begin + runs.size, runs.hi), table.weights, settings.weight_shift)
    return squares


@inlined
def noise_of(
    node: int, packed: int, table: BoostTable, rows: ByteRows, nodes: BoostNodes, settings: BoostSettings
) -> float:
    """What a unit of luck is worth at a node, times `cat_penalty`; 0 in tables without categories.

    node: its number while the tree grows; packed: sum of its rows.
    """
    if not asks_for_luck(settings):
        return 0.0
    squares = np.int64(0)
    for shard in range(len(nodes.begin)):
        squares += squares_of_shard(shard, node, table, rows, nodes, settings)
    return worth_of_luck(squares, packed, settings)
