"""Huber's loss on rows that come in parts: delta, and Friedman's step of each leaf, as `ensemble.boosting` finds them.

    |y - raw| ─► DigitTask, digit by digit ─► delta of the round
    residuals of a leaf ─► their median (`SelectTask`) ─► ClipTask: the mean of what is left, cut off at delta

Means are in the fixed point of `best_constant.mean_of_blocks`, leaf by leaf: one pass for the greatest, one for the
sum of sizes, which tells the units, and one for the sum. Weights must be whole, as for quantiles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._types import SUM
from spinney.ensemble.selection import find_quantiles
from spinney.table.fixed_point import scale, sum_bits
from spinney.tree.levels import WEIGHT

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from spinney.ensemble.losses import Huber
    from spinney.ensemble.selection import Prefixes
    from spinney.tree.levels import Kept, Part

    Floats = NDArray[np.float64]
    Add = Callable[[Any], Any]  # the sum of what a task gives for all parts

Y, RAW = "y", "raw"  # arrays of a part
MEDIAN = 0.5


# --- Delta ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Residuals:
    """What rows are off by, or the target itself."""

    centre: float | None  # y less this number; None: less the scores
    is_size: bool  # whether the sign is left out
    has_weights: bool

    def find(self, part: Part) -> Floats:
        """Find those of the rows of a part."""
        off: Floats = part.arrays[Y] - (part.arrays[RAW][0] if self.centre is None else self.centre)
        return np.abs(off) if self.is_size else off


@dataclass(frozen=True)
class DigitTask:
    """Count residuals by their next digits: `ensemble.selection`."""

    residuals: Residuals
    prefixes: Prefixes

    def __call__(self, part: Part) -> tuple[Kept, Floats]:
        """Do so."""
        weight = part.arrays[WEIGHT].astype(SUM) if self.residuals.has_weights else None
        everyone = np.zeros(part.n_rows, np.int64)
        return {}, self.prefixes.count_rows(self.residuals.find(part), everyone, weight)

    def join(self, a: Floats, b: Floats) -> Floats:
        """See `tree.levels.Task.join`."""
        return a + b


@dataclass(frozen=True)
class LeastTask:
    """Find the least residual above 0."""

    residuals: Residuals

    def __call__(self, part: Part) -> tuple[Kept, float]:
        """Do so."""
        size = self.residuals.find(part)
        return {}, float(np.min(size, where=size > 0.0, initial=math.inf))

    def join(self, a: float, b: float) -> float:
        """See `tree.levels.Task.join`."""
        return min(a, b)


def set_delta(loss: Huber, add: Add, *, has_weights: bool) -> bool:
    """Do what `Huber.begin_round` does; whether delta is another now."""
    if not loss.follows_rounds and not math.isnan(loss.parameter):
        return False

    def quantile(residuals: Residuals, level: float) -> float:
        return float(find_quantiles(lambda prefixes: add(DigitTask(residuals, prefixes)), 1, level)[0])

    centre = None
    if not loss.follows_rounds:
        centre = quantile(Residuals(0.0, is_size=False, has_weights=has_weights), MEDIAN)
    sizes = Residuals(centre, is_size=True, has_weights=has_weights)
    before, loss.parameter = loss.parameter, quantile(sizes, loss.alpha)
    if loss.parameter == 0.0:
        least = add(LeastTask(sizes))
        loss.parameter = least if math.isfinite(least) else 1.0
    return loss.parameter != before


# --- Leaves ---------------------------------------------------------------------------------------------------


class LeafUnits(NamedTuple):
    """What residuals of a leaf are counted in: their exponent, and bits, each (n_leaves,)."""

    exponent: NDArray[np.int64]
    bits: NDArray[np.int64]


@dataclass(frozen=True)
class ClipTask:
    """Sum residuals by leaf, less the leaf's median and cut off at delta; without units, find the greatest of each."""

    group: Callable[[Part], NDArray[np.int64]]  # the leaf of each row, -1 for none
    middle: Floats  # (n_leaves,)
    delta: float
    units: LeafUnits | None
    is_size: bool
    has_weights: bool

    def __call__(self, part: Part) -> tuple[Kept, tuple[NDArray[Any], NDArray[np.int64]]]:
        """Do so; beside the sums the weight of each leaf."""
        group = self.group(part)
        is_in = group >= 0
        leaf = group[is_in]
        weight = part.arrays[WEIGHT][is_in].astype(SUM) if self.has_weights else np.ones(len(leaf), SUM)
        off = part.arrays[Y][is_in] - part.arrays[RAW][0][is_in]
        x = np.clip(off - self.middle[leaf], -self.delta, self.delta)
        if self.is_size:
            x = np.abs(x)
        totals = np.zeros(len(self.middle), SUM)
        np.add.at(totals, leaf, weight)
        if self.units is None:
            found = np.zeros(len(self.middle))
            np.maximum.at(found, leaf, x)
            return {}, (found, totals)
        scaled = np.ldexp(x, -self.units.exponent[leaf])
        sums = np.zeros(len(self.middle), SUM)
        np.add.at(sums, leaf, np.rint(np.ldexp(scaled, self.units.bits[leaf])).astype(SUM) * weight)
        return {}, (sums, totals)

    def join(self, a: Any, b: Any) -> Any:
        """See `tree.levels.Task.join`."""
        return np.maximum(a[0], b[0]) if self.units is None else a[0] + b[0], a[1] + b[1]


def clipped_means(
    group: Callable[[Part], NDArray[np.int64]], middle: Floats, delta: float, add: Add, *, has_weights: bool
) -> Floats:
    """The mean of each leaf's residuals less its median, cut off at delta: `weighted_mean`, to the bit."""

    def find(units: LeafUnits | None, *, is_size: bool) -> Any:
        return add(ClipTask(group, middle, delta, units, is_size, has_weights))

    greatest, totals = find(None, is_size=True)
    n_leaves = len(middle)
    exponent = np.array([math.frexp(one)[1] if math.isfinite(one) else 0 for one in greatest], np.int64)
    bits = np.array([sum_bits(max(float(total), 1.0)) for total in totals], np.int64)
    sizes, _ = find(LeafUnits(exponent, bits), is_size=True)
    bits = np.array([sum_bits(math.ldexp(float(max(sizes[i], 1)), -int(bits[i]))) for i in range(n_leaves)], np.int64)
    sums, _ = find(LeafUnits(exponent, bits), is_size=False)
    means = np.zeros(n_leaves)
    for i in range(n_leaves):
        if totals[i] > 0 and greatest[i] != 0.0:
            mean = scale(int(sums[i]) / int(totals[i]), int(exponent[i] - bits[i]))
            means[i] = mean if math.isfinite(greatest[i]) else math.inf
    return means
