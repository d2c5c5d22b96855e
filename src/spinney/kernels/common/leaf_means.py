"""Exact means and impurities of numbers over a range of rows, in fixed point."""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import SUM_BITS, WEIGHT

from .elementary import relative_entropy
from .structs import RowRange, Targets, ValueUnits

LOW_LIMB = 2.0**30  # units of the second limb in one of the first: sums of both stay below 2**62
MEAN, SQUARE, DEVIANCE, DISTANCE = 1, 2, 3, 4  # what `fixed_mean` is the mean of
MARGIN = 1.0 + 2.0**-20  # as `table.fixed_point.MARGIN`: absorbs roundings of the sum that a scale is taken from


@kernel
def fixed_mean(
    targets: Targets, leaf: RowRange, is_whole: bool, low: float, width: float, centre: float, kind: int
) -> float:
    """Weighted mean of t = (target - low) / width - centre over a leaf, of t * t, or of |t|; terms are in [0, 1].

    A DEVIANCE is the mean of `relative_entropy` of (target - low) / width, as a share of `centre`, its largest value.

    Terms are summed in two limbs, so that small ones beside a large one keep their digits. Whole weights multiply
    quantised terms: a row of weight 2 is exactly two rows.
    """
    scale = fixed_scale(leaf.weight)
    total, total_low = fixed_sums(targets, leaf, is_whole, low, width, centre, kind, scale)
    return mean_of_sums(total, total_low, leaf.weight, scale)


@kernel
def fixed_scale(weight: int) -> float:
    """Units in 1 of sums of terms in [0, 1] over rows of this weight: they stay below 2**SUM_BITS."""
    bits = np.int64(SUM_BITS - 1)
    rest = np.int64(weight)
    while rest > 1:
        rest >>= 1
        bits -= 1
    return np.float64(np.int64(1) << bits)


@kernel
def mean_of_sums(total: int, total_low: int, weight: int, scale: float) -> float:
    """The mean of terms by their sums in two limbs."""
    return (np.float64(total) + np.float64(total_low) / LOW_LIMB) / (np.float64(weight) * scale)


@kernel
def fixed_sums(
    targets: Targets,
    leaf: RowRange,
    is_whole: bool,
    low: float,
    width: float,
    centre: float,
    kind: int,
    scale: float,
) -> tuple[int, int]:
    """Sums of the terms of `fixed_mean` over some rows, in two limbs: whole numbers, which add up over parts."""
    addends, ids, truth = targets.addends, targets.ids, targets.truth
    total = np.int64(0)
    total_low = np.int64(0)
    for i in range(np.uint64(leaf.lo), np.uint64(leaf.hi)):
        term = (truth[np.uint64(ids[i])] - low) / width
        if kind == DEVIANCE:
            term = max(relative_entropy(term), 0.0) / centre
        else:
            term = term - centre
            if kind == SQUARE:
                term = term * term
            elif kind == DISTANCE:
                term = np.abs(term)
        times = np.int64(1)
        if len(addends) > 1:
            if is_whole:
                times = addends[WEIGHT, i]
            else:
                term = term * np.float64(addends[WEIGHT, i])
        term = term * scale
        whole = np.floor(term)
        total += np.int64(whole) * times
        total_low += np.int64(np.rint((term - whole) * LOW_LIMB)) * times
    return total, total_low


@kernel
def sum_targets(targets: Targets, lo: int, hi: int, units: ValueUnits, scale: float, is_absolute: bool) -> int:
    """Sum of weight * (target - centre) * stretch over rows lo .. hi in units of 1 / scale, or of its magnitudes."""
    addends, ids, truth = targets.addends, targets.ids, targets.truth
    centre, stretch, share = units.centre, units.stretch, units.share
    total = np.int64(0)
    for i in range(np.uint64(lo), np.uint64(hi)):
        y = (truth[np.uint64(ids[i])] - centre) * stretch
        if is_absolute:
            y = np.abs(y)
        if len(addends) == 1:
            total += np.int64(np.rint(y * scale))
        elif units.is_whole:
            total += np.int64(np.rint(y * scale)) * addends[WEIGHT, i]
        else:
            total += np.int64(np.rint(y * (np.float64(addends[WEIGHT, i]) * share) * scale))
    return total


@kernel
def finest_scale(magnitude: float) -> float:
    """Power of two that leaves a sum of magnitudes below 2**SUM_BITS; see `table.fixed_point.sum_bits`."""
    rest = magnitude * MARGIN
    scale = np.float64(np.int64(1) << np.int64(SUM_BITS - 1))
    while rest >= 1.0:
        rest /= 2.0
        scale /= 2.0
    while 0.0 < rest < 0.5:
        rest *= 2.0
        scale *= 2.0
    return scale


@inlined
def settle_value_leaf(
    targets: Targets,
    leaf: RowRange,
    node: int,
    units: ValueUnits,
    scale: float,  # of sums; 0: not known yet
    means: np.ndarray,
    impurity: np.ndarray,
) -> tuple[float, float]:
    """Write mean and variance of a leaf, centred and times `stretch`; return its mean as it is, and the scale of sums.

    The mean is taken from the integer that `refit_leaves` takes, so the same rows give the same value. Its scale costs
    a sum over all rows, which a tree of pure leaves does without.
    """
    ids, truth = targets.ids, targets.truth
    centre, stretch = units.centre, units.stretch
    low = truth[np.uint64(ids[leaf.lo])]
    high = low
    for i in range(np.uint64(leaf.lo + 1), np.uint64(leaf.hi)):
        y = truth[np.uint64(ids[i])]
        low = min(low, y)
        high = max(high, y)
    value = low
    means[node] = (low - centre) * stretch
    impurity[node] = 0.0
    if low != high:
        width = high - low
        mean = fixed_mean(targets, leaf, units.is_whole, low, width, 0.0, MEAN)
        variance = fixed_mean(targets, leaf, units.is_whole, low, width, mean, SQUARE)
        if scale == 0.0:
            size = sum_targets(targets, 0, len(ids), units, units.rough_scale, True)
            scale = finest_scale(np.float64(size) / units.rough_scale)
        total = sum_targets(targets, leaf.lo, leaf.hi, units, scale, False)
        value = np.float64(total) / np.float64(leaf.weight) / (scale * units.share) / stretch + centre
        value = min(max(value, low), high)
        width *= stretch
        means[node] += mean * width
        impurity[node] = variance * width * width
    return value, scale


@kernel
def mean_deviance(targets: Targets, leaf: RowRange, units: ValueUnits) -> float:
    """Half the Poisson deviance of a leaf from its mean, times `stretch`, where no target is below 0.

    It is the mean of m r((y - m) / m) with r the `relative_entropy`: terms of one sign, so that it loses no digits.
    """
    ids, truth = targets.ids, targets.truth
    low = truth[np.uint64(ids[leaf.lo])]
    high = low
    for i in range(np.uint64(leaf.lo + 1), np.uint64(leaf.hi)):
        y = truth[np.uint64(ids[i])]
        low = min(low, y)
        high = max(high, y)
    if low == high:
        return 0.0
    width = high - low
    mean = low + width * fixed_mean(targets, leaf, units.is_whole, low, width, 0.0, MEAN)
    most = max(relative_entropy((low - mean) / mean), relative_entropy((high - mean) / mean))
    if not most > 0.0:  # equal but for a rounding
        return 0.0
    share = fixed_mean(targets, leaf, units.is_whole, mean, mean, most, DEVIANCE)
    return share * most * mean * units.stretch


@inlined
def join_deviances(
    node: int, child: int, end: int, weight: np.ndarray, means: np.ndarray | None, impurity: np.ndarray
) -> None:
    """Mean and half Poisson deviance of an inner node from those of its branches, child .. end."""
    if means is None:
        return
    total = np.float64(weight[node])
    mean = 0.0
    for b in range(child, end):
        mean += np.float64(weight[b]) * means[b]
    mean /= total
    deviance = 0.0
    for b in range(child, end):
        apart = mean * relative_entropy((means[b] - mean) / mean) if mean > 0.0 else 0.0
        deviance += np.float64(weight[b]) * (impurity[b] + apart)
    means[node] = mean
    impurity[node] = deviance / total


@inlined
def join_values(
    node: int, child: int, end: int, weight: np.ndarray, means: np.ndarray | None, impurity: np.ndarray
) -> None:
    """Mean and variance of an inner node from those of its branches, child .. end."""
    if means is None:
        return
    total = np.float64(weight[node])
    mean = 0.0
    for b in range(child, end):
        mean += np.float64(weight[b]) * means[b]
    mean /= total
    square = 0.0
    for b in range(child, end):
        off = means[b] - mean
        square += np.float64(weight[b]) * (impurity[b] + off * off)
    means[node] = mean
    impurity[node] = square / total
