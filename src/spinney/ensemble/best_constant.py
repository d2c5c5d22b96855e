"""The constant of least loss: weighted means, quantiles and shares, and Newton's steps to where a mean slope is 0.

Sums are in fixed point: the order of rows does not enter, and a row of weight 2 is two rows.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._elementary import log_one
from spinney.table.fixed_point import Weights, fix_weights, scale, sum_bits, weigh

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

MAX_STEPS = 50  # of Newton
MAX_HALVINGS = 30
MIN_SHARE = 2.0**-52  # of a class, where its logarithm is taken
CLOSE = 1e-10  # a mean slope is 0 when it is so much smaller than the slopes of the rows

Floats = NDArray[np.float64]


def row_weights(weight: Floats | None, n_rows: int) -> Weights:
    """Weights in fixed point; None, or one for several rows, means 1 each."""
    return fix_weights(weight if weight is not None and len(weight) == n_rows else None, n_rows)


def weighted_mean(x: Floats, weights: Weights) -> float:
    """Mean of finite x, the same for any order of rows; infinite where some x is not finite."""
    return mean_of_blocks(lambda: [(x, weights)], weights)


def mean_of_blocks(blocks: Callable[[], Iterable[tuple[Floats, Weights]]], weights: Weights) -> float:
    """The same of rows that come in blocks, as often as asked for: x, and the weights with the values of its rows.

    weights: of all rows, perhaps without values.
    """
    greatest = max(float(np.max(np.abs(x))) for x, _ in blocks())
    if greatest == 0.0 or not math.isfinite(greatest):
        return greatest if greatest == 0.0 else math.inf
    exponent = math.frexp(greatest)[1]

    def scaled(x: Floats) -> Floats:
        return x * math.ldexp(1.0, -exponent) if abs(exponent) < 1000 else np.ldexp(x, -exponent)

    bits = sum_bits(math.ldexp(weights.total, -weights.bits))
    size = sum(int(weigh(np.abs(scaled(x)), bits, own).sum()) for x, own in blocks())
    bits = sum_bits(math.ldexp(float(size), -bits))  # by the sum, not by n: an outlier costs the rest no digits
    total = sum(int(weigh(scaled(x), bits, own).sum()) for x, own in blocks())
    return scale(total / weights.total, exponent + weights.bits - bits)


def weighted_quantile(x: Floats, weights: Weights, level: float) -> float:
    """The least x that at least `level` of the weight does not exceed; the middle to the next where it is exactly that.

    So half the weight gives the usual median, and a row of weight 2 is two rows. 0 < level < 1, read as a decimal
    fraction: 0.9 of 10 rows is 9 of them.
    """
    share = Fraction(repr(level)) * weights.total
    at = math.ceil(share)  # units of weight
    if weights.is_unit:
        last = min(at + 1, len(x)) - 1
        ordered = np.partition(x, [at - 1, last])
        low, high = ordered[at - 1], ordered[last]
    else:
        order = np.argsort(x, kind="stable")
        reached = np.cumsum(weights.values[order])
        place = int(np.searchsorted(reached, at))
        low = x[order[place]]
        high = x[order[min(place + (int(reached[place]) == at), len(x) - 1)]]
    return float(low / 2 + high / 2) if at == share else float(low)


class Derivatives(NamedTuple):
    """First and second derivative of the weighted mean loss with respect to a constant that is added to all scores."""

    slope: float
    size: float  # mean |slope| of the rows
    curvature: float


def log_class_shares(y: Floats, weight: Floats | None, n_classes: int) -> list[float]:
    """Logarithms of the classes' shares of the weight; a class without rows has a share of MIN_SHARE."""
    weights = row_weights(weight, len(y))
    return log_shares_of_blocks([(y, weights)], weights, n_classes)


def log_shares_of_blocks(blocks: Iterable[tuple[Floats, Weights]], weights: Weights, n_classes: int) -> list[float]:
    """The same of rows that come in blocks; see `mean_of_blocks`."""
    totals = [0] * n_classes
    for y, own in blocks:
        for k in range(n_classes):
            totals[k] += int(np.sum((y == k) * own.values))
    return [log_one(max(total / weights.total, MIN_SHARE)) for total in totals]


def mean_derivatives(g: Floats, h: Floats, weights: Weights) -> Derivatives:
    """Means of g, |g| and h, each (n_rows,)."""
    return Derivatives(weighted_mean(g, weights), weighted_mean(np.abs(g), weights), weighted_mean(h, weights))


def mean_loss(sums: Floats) -> float:
    """The mean loss by the sums of all blocks, in any order; infinite where that is no finite number."""
    losses, weights = sums.T.tolist()
    mean = math.fsum(losses) / math.fsum(weights) if bool(np.isfinite(sums).all()) else math.inf
    return mean if math.isfinite(mean) else math.inf


def find_constant(derive: Callable[[Floats], Iterable[Derivatives]], first: Floats) -> Floats | None:
    """Constants of which all mean slopes are 0, by Newton's steps from `first`, halved while they do not help.

    derive: constants (n,) -> derivatives of the mean loss by each; None where no end is found.
    """
    constant = first
    slope, size, curvature = np.transpose([*derive(constant)])
    for _ in range(MAX_STEPS):
        if not bool(np.all(np.isfinite(slope) & np.isfinite(curvature) & (curvature > 0.0))):
            return None
        if bool(np.all(np.abs(slope) <= CLOSE * size)):
            return constant
        step = slope / curvature
        for _ in range(MAX_HALVINGS):
            found = np.transpose([*derive(constant - step)])
            if np.sum(np.abs(found[0])) < np.sum(np.abs(slope)):
                break
            step /= 2
        else:
            return None
        constant = constant - step
        slope, size, curvature = found
    return None
