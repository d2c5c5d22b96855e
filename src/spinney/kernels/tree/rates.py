"""Scores by Poisson's deviance, of targets that are counts or rates, for the searches of the moments family.

Minus half the deviance of a branch is the sum of its targets times the logarithm of its mean, up to terms that no split
changes. It is taken from the mean of the node, the *unit*: with d = (mean - unit) / unit the score is

  weight * unit * ((1 + d) log(1 + d) - d)

which loses no digits where means are close to each other. Targets are counted from 0, and `centre` of an open node is
the whole part of the unit: of whole weights the unit is whole, so that what branches differ from it by is exact.

Each function takes `RateScratch | None` and for None does what other criteria need, which is known at compile time.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import S_ALL, W_ALL

from ..common.criteria import score_moments
from ..common.elementary import relative_entropy
from ..common.structs import RateScratch, Settings
from ..common.ties import NO_SCORE

REFUSED = 2.0 * NO_SCORE  # score of a branch that no test may make: sums with others stay below every other score
ROUNDING = 2.0**-50  # of scores by fractional weights, as a share of the sum of the node
ROUND_UP = 1.0 + 2.0**-40  # keeps a bound above what it bounds


@inlined
def open_unit(centre: int, settings: Settings, totals: np.ndarray, rates: RateScratch | None) -> tuple[int, float]:
    """Centre and unit of a node of these sums; of other criteria the centre as it is, and the unit of squares."""
    if rates is None:
        return centre, settings.square_unit
    total, weight = totals[S_ALL], totals[W_ALL]
    unit = 1.0
    if settings.is_whole:
        unit = np.float64(max(total // weight, np.int64(1)))
    elif total > 0:
        unit = np.float64(total) / np.float64(weight)
    rates.unit[0] = unit
    return np.int64(unit), unit


@inlined
def unit_of(settings: Settings, rates: RateScratch | None) -> float:
    """The unit of the node at hand."""
    if rates is None:
        return settings.square_unit
    return rates.unit[0]


@inlined
def with_unit(blur: float, weight: int, settings: Settings, rates: RateScratch | None) -> float:
    """A rounding of scores, and that of the unit of a node of this weight, which does not shrink with them.

    Scans ask for it where they judge: asked for before, it made those of other criteria twice as slow.
    """
    if rates is None:
        return blur
    return blur if settings.is_whole else blur + np.float64(weight) * rates.unit[0] * ROUNDING


@inlined
def score_sums(
    criterion: int, weight: int, total: int, square: int, unit: float, xlogx: np.ndarray, rates: RateScratch | None
) -> float:
    """Score of rows with these sums, `centre` taken off each target."""
    if rates is None:
        return score_moments(criterion, weight, total, square, unit, xlogx)
    return score_rates(weight, total, unit)


@kernel
def score_rates(weight: int, total: int, unit: float) -> float:
    """Minus half the deviance; `total` lacks the whole part of the unit for each unit of weight.

    Rows whose sum is 0 have none: a branch of them would predict that nothing can happen, and scikit-learn makes no
    such branch either.
    """
    whole = np.floor(unit)
    if total + np.int64(whole) * weight <= 0:
        return REFUSED
    w = np.float64(weight)
    base = unit * w
    return base * relative_entropy((np.float64(total) - (unit - whole) * w) / base)


@inlined
def most_score(weight: int, total: int, unit: float) -> float:
    """What a score does not exceed: (1 + d) log(1 + d) - d is at most d * d / 2, and (1 - d) times that below 0."""
    w = np.float64(weight)
    base = unit * w
    off = np.float64(total) - (unit - np.floor(unit)) * w
    d = off / base
    return 0.5 * off * d * (1.0 - min(d, 0.0))


@inlined
def falls_short(
    floor: float, w_left: int, left: int, w_right: int, right: int, unit: float, rates: RateScratch | None
) -> bool:
    """Whether two branches cannot reach the score `floor`, as can be said without a logarithm: so it is with most."""
    if rates is None:
        return False
    most = most_score(w_left, left, unit) + most_score(w_right, right, unit)
    return most * ROUND_UP < floor
