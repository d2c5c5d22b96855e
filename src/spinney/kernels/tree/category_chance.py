"""What a unit of luck is worth at a node of a tree, by its criterion: see `common.category_chance`.

  squared error (and two-class Gini)   the variance of the target
  Gini                                 its value at the node, of which the best of K - 1 directions has a share: levels
                                       are ordered along the one in which they differ most. K: effective classes
  entropy                              1 / (2 log 2) bits, for a gain in nats is half a chi-squared number, times the
                                       surplus of the best direction; levels of a row or two gain all of the entropy
  SDR                                  half the standard deviation; levels of a row or two gain all of it
  any other, as misclassification      nothing: its gain is not a sum of squares, or nobody has said what it gains

All of them times the weight of a row, since sums of weighted targets vary with it. `tracing/category_chance.py` has the
same for traces.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import (
    ALL,
    ENTROPY,
    GINI,
    POISSON,
    PRESENT,
    Q_ALL,
    S_ALL,
    SDR,
    SPREAD,
    SQUARED_ERROR,
    TARGET,
    W_ALL,
    WEIGHT,
)

from ..common.category_chance import few_rows, no_chance
from ..common.criteria import deviation, score_classes, score_moments, times_log
from ..common.structs import Chance, OpenNode, Rows, Settings

EXACT = 1 << 52  # quotients of whole numbers below, as floats, are rounded by less than their last whole number tells
NATS = 0.7213475204444817  # half a nat, in bits: 1 / (2 log 2)


@kernel
def sum_squares(addends: np.ndarray, lo: int, hi: int, centre: int, is_whole: bool, unit: float) -> int:
    """Sum of weight * target**2 over rows lo .. hi, in units: whole numbers, so that their order does not matter."""
    total = np.int64(0)
    for i in range(np.uint64(lo), np.uint64(hi)):
        w = np.int64(1) if len(addends) == 1 else addends[WEIGHT, i]
        s = addends[TARGET, i]
        if is_whole:  # a row of weight 2 is two rows, to the last bit
            if abs(s) < EXACT and abs(centre) < EXACT:  # floats hold it: their division takes a third of the time
                t = np.floor(np.float64(s) / np.float64(w)) - np.float64(centre)
            else:
                t = np.float64(s // w - centre)
            total += w * np.int64(np.rint(t * t / unit))
        else:
            t = np.float64(s)
            total += np.int64(np.rint(t * t / np.float64(w) / unit))
    return total


@inlined
def variance_of(node: OpenNode, rows: Rows, settings: Settings, totals: np.ndarray) -> float:
    """Variance of the target, in squared units of the sums; of two classes p (1 - p)."""
    weight = np.float64(totals[W_ALL])
    mean = np.float64(totals[S_ALL] - node.centre * totals[W_ALL]) / weight
    if settings.is_class:
        return mean * (1.0 - mean)
    if totals[SPREAD] == 0:  # once a node, not once a category
        totals[SPREAD] = 1 + sum_squares(
            rows.addends, node.lo, node.hi, node.centre, settings.is_whole, settings.noise_unit
        )
    return max(np.float64(totals[SPREAD] - 1) * settings.noise_unit / weight - mean * mean, 0.0)


@inlined
def mix(least: float, most: float, few: float) -> float:
    """From what levels of many rows gain to what levels of few do."""
    return least + few * (max(most, least) - least)


@inlined
def chance_of_numbers(
    n_codes: int,  # levels of the category in the table
    n_bins: int,  # those of the node
    roots: float,  # sum of sqrt(weight) over them
    node: OpenNode,
    rows: Rows,
    settings: Settings,
    xlogx: np.ndarray,
    totals: np.ndarray,
) -> Chance:
    """What levels gain by chance, for numbers and two classes."""
    if settings.criterion == POISSON or settings.cat_penalty == 0.0 or n_codes <= settings.free_levels:
        return no_chance()
    weight = np.float64(totals[W_ALL])
    variance = variance_of(node, rows, settings, totals)
    information = max(weight / settings.row_weight / np.float64(n_bins) - 1.0, 0.0)
    few = few_rows(information * variance if settings.is_class else information)
    noise = 0.0
    if settings.criterion == SQUARED_ERROR:
        noise = variance
    elif settings.criterion == ENTROPY:
        entropy = times_log(totals[W_ALL], xlogx) - times_log(totals[S_ALL], xlogx)
        entropy = (entropy - times_log(totals[W_ALL] - totals[S_ALL], xlogx)) / weight
        noise = mix(NATS * bit_of(xlogx), entropy, few)
    elif settings.criterion == SDR:
        spread = deviation(totals[W_ALL], totals[S_ALL], totals[Q_ALL], settings.square_unit)
        noise = mix(0.5 * spread, spread, few)
    total = totals[S_ALL] - node.centre * totals[W_ALL]
    floor = score_moments(settings.criterion, totals[W_ALL], total, totals[Q_ALL], settings.square_unit, xlogx)
    return Chance(settings.cat_penalty * settings.row_weight * noise, roots, few, floor, settings.cat_margin)


@inlined
def bit_of(xlogx: np.ndarray) -> float:
    """A bit, in units of the scores by entropy."""
    return 0.5 * times_log(2, xlogx)


@inlined
def chance_of_classes(
    n_codes: int,
    n_bins: int,
    roots: float,
    node: OpenNode,
    settings: Settings,
    xlogx: np.ndarray,
    sums: np.ndarray,
    totals: np.ndarray,
) -> Chance:
    """What levels gain by chance, for three classes or more."""
    if settings.cat_penalty == 0.0 or n_codes <= settings.free_levels:
        return no_chance()
    weight = np.float64(totals[W_ALL])
    alike = 0.0  # chance that two rows have one class
    entropy = times_log(totals[W_ALL], xlogx) / weight if settings.criterion == ENTROPY else 0.0
    for k in range(node.n_present):
        held = sums[ALL, sums[PRESENT, k]]
        share = np.float64(held) / weight
        alike += share * share
        if settings.criterion == ENTROPY:
            entropy -= times_log(held, xlogx) / weight
    n_levels = np.float64(n_bins)
    n_classes = max(1.0 / alike, 2.0)  # of one size
    surplus = 1.0 + np.sqrt((n_classes - 2.0) / n_levels)  # of the first principal component, by Marchenko and Pastur
    surplus *= surplus
    few = few_rows(max(weight / settings.row_weight / n_levels - 1.0, 0.0) * 0.5 * (1.0 - alike))
    noise = 0.0
    if settings.criterion == GINI:
        noise = (1.0 - alike) * min(surplus / (n_classes - 1.0), 1.0)
    elif settings.criterion == ENTROPY:
        least = NATS * bit_of(xlogx)
        noise = mix(max(min(least * surplus, entropy), least), entropy, few)
    floor = score_classes(settings.criterion, sums, ALL, totals[W_ALL], node.n_present, xlogx)
    return Chance(settings.cat_penalty * settings.row_weight * noise, roots, few, floor, settings.cat_margin)
