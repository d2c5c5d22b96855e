"""Losses of times until an event, some of them censored: the event has not been seen up to then.

The target of a row is one number: its time where the event was seen, less than 0 where it was not.

    Cox   the partial likelihood: who of those still there was next (Cox 1972; ties as Breslow 1974)
    AFT   accelerated failure time: log(time) = raw + sigma * noise (Barnwal, Cho and Hocking 2022)

Sums over rows go in the order of their times, one after the other: no number of threads changes them.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._elementary import exp, log, log_one
from spinney._warnings import warn
from spinney.ensemble.best_constant import Derivatives, Floats, find_constant, mean_derivatives, row_weights
from spinney.ensemble.losses import MIN_H, JointLoss, is_between

MOST_TIMES = 10_000  # of a baseline hazard
NORMAL_TAIL = 3.0  # from here on the upper tail of the normal distribution comes from a continued fraction
TERMS = 60  # of it, and of the series below
LEAST_SIGMA = 0.125  # of the spread of log(time): at 0.08 of it predictions reached 1e9 times the times, at 0.23 none
ROOT_TWO_PI = 2.5066282746310002


class SurvivalLoss(JointLoss):
    """What both share: the target."""

    def check(self, y: Floats) -> None:
        """Raise ValueError for a time that is 0 or no finite number."""
        self._refuse(y, ~np.isfinite(y) | (y == 0.0), "finite times above 0", "Leave the row out")


# --- Cox ----------------------------------------------------------------------------------------------------


class RiskSets(NamedTuple):
    """Rows in the order of their times, and what Cox's sums need of each."""

    order: NDArray[np.intp]  # (n_rows,)
    first: NDArray[np.intp]  # (n_rows,) in that order: the first row of the same time
    last: NDArray[np.intp]  # the same, the last one
    event: Floats  # (n_rows,) in that order: weight of a row whose event was seen, else 0


class Cox(SurvivalLoss):
    """Minus the logarithm of the partial likelihood; raw is the logarithm of a relative risk.

    Attributes
    ----------
    times, hazards : float64 (n_times,)
        The baseline: cumulative hazard of a row whose raw score is 0, after each time of an event; set after the fit.
    """

    name = "cox"
    times: Floats = np.zeros(0)
    hazards: Floats = np.zeros(0)

    def check(self, y: Floats) -> None:
        """Warn where nothing can be learnt."""
        super().check(y)
        if not bool(np.any(y > 0.0)):
            warn(
                "y has no event: every time is below 0, censored. All rows have one risk, and survive for certain: "
                "check the signs of y, or which rows its field of bools marks."
            )

    def begin_round(self, y: Floats, weight: Floats | None, raw: Floats) -> None:
        """Find the derivatives of all rows."""
        sets = self._find_sets(y, weight)
        risk, per_risk = self._sum_risks(sets, weight, raw[0])
        first = np.cumsum(sets.event * per_risk)[sets.last]
        second = np.cumsum(sets.event * per_risk * per_risk)[sets.last]
        g, h = np.empty((1, len(y))), np.empty((1, len(y)))
        expected = risk * first
        g[0, sets.order] = expected - (y[sets.order] > 0.0)
        h[0, sets.order] = np.maximum(expected - risk * risk * second, MIN_H)
        self._of_round = g, h

    def value(self, y: Floats, weight: Floats | None, raw: Floats) -> float:
        """Minus the mean logarithm of the partial likelihood."""
        sets = self._find_sets(y, weight)
        shift = float(raw[0].max())
        _, per_risk = self._sum_risks(sets, weight, raw[0])
        counts = sets.event > 0.0  # among those that do not may be the only rows of their times, without any weight
        terms = sets.event[counts] * (raw[0][sets.order][counts] - shift + log(per_risk[counts]))
        total = float(len(y)) if weight is None else math.fsum(weight)
        return -math.fsum(terms) / total

    def _find_sets(self, y: Floats, weight: Floats | None) -> RiskSets:
        """Rows in the order of their times, events with the weights of their rows."""
        sets: RiskSets = self._once(y, None, lambda: sort_times(y))
        return sets if weight is None else sets._replace(event=sets.event * weight[sets.order])

    def _sum_risks(self, sets: RiskSets, weight: Floats | None, raw: Floats) -> tuple[Floats, Floats]:
        """Relative risk of each row, and 1 over the sum of all risks at its time, (n_rows,) each, in order of times.

        Where all that are left weigh nothing, as rows to evaluate on may, it is 0.
        """
        risk = exp(raw - raw.max())[sets.order]
        weighted = risk if weight is None else risk * weight[sets.order]
        total = np.cumsum(weighted[::-1])[::-1][sets.first]
        return risk, np.divide(1.0, total, out=np.zeros(len(total)), where=total > 0.0)

    def with_baseline(self, y: Floats, weight: Floats | None, raw: Floats) -> Cox:
        """The same loss with the baseline hazard of a fit (Breslow 1974), thinned to at most 10,000 times."""
        sets = self._find_sets(y, weight)
        _, per_risk = self._sum_risks(sets, weight, raw[0])
        hazard = np.cumsum(sets.event * per_risk)
        places = np.unique(sets.last[sets.event > 0.0])
        if len(places) > MOST_TIMES:
            places = places[np.unique(np.linspace(0, len(places) - 1, MOST_TIMES).astype(np.intp))]
        loss = Cox()
        loss.times = np.abs(y[sets.order])[places]
        loss.hazards = hazard[places] * float(exp([-raw[0].max()])[0])
        return loss

    def survive(self, raw: Floats, times: Floats) -> Floats:
        """Probability of no event up to each time, (n_rows, n_times)."""
        at = np.searchsorted(self.times, times, side="right")
        hazard = np.append(0.0, self.hazards)[at]
        return exp(-hazard[None, :] * exp(raw)[:, None])

    def is_sound(self) -> bool:
        """See `Loss.is_sound`."""
        found: dict[str, Any] = vars(self)
        both = [found.get(name, np.zeros(0)) for name in ("times", "hazards")]
        return (
            set(found) <= {"times", "hazards"}
            and all(isinstance(each, np.ndarray) and each.ndim == 1 and each.dtype == np.float64 for each in both)
            and len(both[0]) == len(both[1])
            and all(bool(np.isfinite(each).all() and (np.diff(each) >= 0.0).all()) for each in both)
        )


def sort_times(y: Floats) -> RiskSets:
    """Rows in the order of their times, of weight 1 each."""
    times = np.abs(y)
    order = np.argsort(times, kind="stable")
    ascending = times[order]
    first = np.searchsorted(ascending, ascending, side="left")
    last = np.searchsorted(ascending, ascending, side="right") - 1
    return RiskSets(order, first, last, (y[order] > 0.0).astype(np.float64))


# --- Accelerated failure time -------------------------------------------------------------------------------


class Noise:
    """How the logarithm of a time is spread around its raw score; z is their distance in units of sigma."""

    def density(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        """Minus the logarithm of the density at z, and its first and second derivatives by z."""
        raise NotImplementedError

    def survival(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        """Minus the logarithm of the probability of more than z, and its first and second derivatives by z."""
        raise NotImplementedError


class LogisticNoise(Noise):
    """Times are log-logistic."""

    def survival(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        """See `Noise`."""
        e = exp(-np.abs(z))
        share = np.where(z >= 0.0, 1.0, e) / (1.0 + e)
        return np.maximum(z, 0.0) + log(1.0 + e), share, e / ((1.0 + e) * (1.0 + e))

    def density(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        """See `Noise`."""
        value, first, second = self.survival(z)
        return 2.0 * value - z, 2.0 * first - 1.0, 2.0 * second


class ExtremeNoise(Noise):
    """Times are Weibull's."""

    def survival(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        """See `Noise`."""
        e = exp(z)
        return e, e, e

    def density(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        """See `Noise`."""
        e = exp(z)
        return e - z, e - 1.0, e


class NormalNoise(Noise):
    """Times are log-normal."""

    def survival(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        """See `Noise`."""
        tail = upper_tail(z)
        density = exp(-0.5 * z * z) / ROOT_TWO_PI
        is_far = z > NORMAL_TAIL
        mills = np.where(is_far, tail, tail / np.where(is_far, 1.0, density))
        value = np.where(is_far, 0.5 * z * z + log_one(ROOT_TWO_PI) - log(mills), -log(tail))
        hazard = np.where(is_far, 1.0 / mills, density / tail)
        return value, hazard, np.maximum(hazard * (hazard - z), 0.0)

    def density(self, z: Floats) -> tuple[Floats, Floats, Floats]:
        """See `Noise`."""
        return 0.5 * z * z + log_one(ROOT_TWO_PI), z, np.ones_like(z)


def upper_tail(z: Floats) -> Floats:
    """Probability of more than z by the normal distribution up to NORMAL_TAIL, above it over the density (Mills)."""
    near = np.minimum(z, NORMAL_TAIL)
    near = np.maximum(near, -40.0)
    inside = np.clip(near, -NORMAL_TAIL, NORMAL_TAIL)
    square = inside * inside
    term, total = inside.copy(), inside.copy()
    for k in range(1, TERMS):
        term = term * square / (2.0 * k + 1.0)
        total = total + term
    half = exp(-0.5 * square) / ROOT_TWO_PI * total
    far = np.maximum(np.abs(z), NORMAL_TAIL)
    fraction = far.copy()
    for k in range(TERMS, 0, -1):
        fraction = far + k / fraction
    below = 1.0 - exp(-0.5 * far * far) / ROOT_TWO_PI / fraction
    return np.where(z > NORMAL_TAIL, 1.0 / fraction, np.where(z < -NORMAL_TAIL, below, 0.5 - half))


NOISES: dict[str, Noise] = {"normal": NormalNoise(), "logistic": LogisticNoise(), "extreme": ExtremeNoise()}


class AFT(SurvivalLoss):
    """Minus the logarithm of the likelihood of log(time) = raw + sigma * noise; answers with exp(raw), a time.

    Parameters
    ----------
    distribution : {"normal", "logistic", "extreme"}
        Of the noise: times are log-normal, log-logistic or Weibull's.
    sigma : float
    """

    name = "aft"

    def __init__(self, distribution: str, sigma: float) -> None:
        self.distribution, self.sigma = distribution, sigma

    def check(self, y: Floats) -> None:
        """Raise ValueError where no event says how long times are: the longer, the likelier."""
        super().check(y)
        if not bool(np.any(y > 0.0)):
            raise ValueError(
                "y has no event: every time is below 0, censored, and loss='aft' needs one that was seen; check the "
                "signs of y, or which rows its field of bools marks."
            )

    def start(self, y: Floats, weight: Floats | None) -> Floats:
        """The constant of least loss; ValueError where sigma is so small that steps from it would diverge."""
        self._refuse_small_sigma(log(y[y > 0.0]))
        weights = row_weights(weight, len(y))

        def derive(constant: Floats) -> list[Derivatives]:
            _, g, h = self._derive(y, np.full(len(y), constant[0]))
            return [mean_derivatives(g, h, weights)]

        middle = float(np.median(log(np.abs(y))))
        found = find_constant(derive, np.array([middle]))
        return np.array([middle]) if found is None else found

    def _refuse_small_sigma(self, log_times: Floats) -> None:
        """Raise where times lie so many sigmas apart that noise of heavy or light tails has no step to take there.

        The normal one has the same second derivative everywhere.
        """
        spread = float(np.std(log_times))
        if self.distribution != "normal" and self.sigma < LEAST_SIGMA * spread:
            raise ValueError(
                f"sigma={self.sigma:g} is too small for loss='aft' with distribution={self.distribution!r}: the "
                f"logarithms of the times differ by {spread:.3g} (standard deviation), and steps towards rows that lie "
                f"many sigmas off diverge. Give at least sigma={LEAST_SIGMA * spread:.2g}, or distribution='normal'."
            )

    def begin_round(self, y: Floats, weight: Floats | None, raw: Floats) -> None:
        """Find the derivatives of all rows."""
        del weight
        _, g, h = self._derive(y, raw[0])
        self._of_round = g[None, :], h[None, :]

    def value(self, y: Floats, weight: Floats | None, raw: Floats) -> float:
        """The mean loss."""
        losses, _, _ = self._derive(y, raw[0])
        if weight is None:
            return math.fsum(losses) / len(y)
        return math.fsum(losses * weight) / math.fsum(weight)

    def _derive(self, y: Floats, raw: Floats) -> tuple[Floats, Floats, Floats]:
        """Loss of each row, and its derivatives by raw."""
        z = (log(np.abs(y)) - raw) / self.sigma
        noise, is_seen = NOISES[self.distribution], y > 0.0
        found = np.empty((3, len(y)))
        found[:, is_seen] = noise.density(z[is_seen])
        found[:, ~is_seen] = noise.survival(z[~is_seen])
        found[0, is_seen] += log_one(self.sigma)
        return found[0], -found[1] / self.sigma, np.maximum(found[2] / (self.sigma * self.sigma), MIN_H)

    def survive(self, raw: Floats, times: Floats) -> Floats:
        """Probability of no event up to each time, (n_rows, n_times)."""
        z = (log(times)[None, :] - raw[:, None]) / self.sigma
        return exp(-NOISES[self.distribution].survival(z.ravel())[0]).reshape(z.shape)

    @property
    def link(self) -> str:
        """Raw scores are logarithms of times."""
        return "log"

    def is_sound(self) -> bool:
        """See `Loss.is_sound`."""
        found: dict[str, Any] = vars(self)
        return (
            set(found) == {"distribution", "sigma"}
            and found["distribution"] in NOISES
            and is_between(found["sigma"], 0.0, math.inf)
        )
