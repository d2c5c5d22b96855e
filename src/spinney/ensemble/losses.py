"""Losses of boosting: what a raw score costs a row, the constant to start from, the way from a score to an answer.

Words: *raw* is a score before the link, float64 (n_raw, n_rows), with n_raw = 1 but for three classes or more, for
several quantiles and several outputs; *g*, *h* are the derivatives of a row's loss by it, without the row's weight
(`kernels.boost.gradients`); *y* is float64 (n_rows,), a class being its code. Weights are None for 1 each, or float64
(n_rows,).

    check(y) ──► start(y, weight) ──► each round: begin_round ──► fill, for each raw score and chunk of rows ──► value
                                                                                         answers: respond(raw)

A loss is in the units of scikit-learn's: half the squared error, and terms without the score are left out. A start is
found in fixed point: the order of rows does not enter, and a row of weight 2 is two rows. Derivatives and losses are
summed over fixed blocks of rows.
"""

from __future__ import annotations

import math
import sys
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from spinney._elementary import LEAST, log_one
from spinney._jit import Kernels, interpreted, kernels
from spinney.ensemble.best_constant import (
    Derivatives,
    Floats,
    find_constant,
    log_class_shares,
    mean_derivatives,
    mean_loss,
    row_weights,
    weighted_mean,
    weighted_quantile,
)
from spinney.ensemble.links import respond
from spinney.kernels.common.structs import Gradients
from spinney.table.fixed_point import Weights

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_codes = interpreted().boost.gradients  # the constants of the kernels, without Numba

MIN_H = _codes.MIN_H
LOSS_SECONDS = 5e-6  # a row and raw score, interpreted
MOST_KNOWN = 4  # targets of a fit: of the training rows twice, and of rows to evaluate on
MOST_DIGITS = 100  # of derivatives: their squares, summed, are far from the end of float64


# --- The losses ---------------------------------------------------------------------------------------------


class RoundRows(NamedTuple):
    """The rows of a round: what their derivatives are found from, and where they are written."""

    y: Floats  # (n_rows,)
    raw: Floats  # (n_raw, n_rows)
    gradients: Gradients  # written, by one raw score
    sums: Floats  # (n_blocks, 4), written: see `kernels.boost.gradients`
    probabilities: Floats | None  # (n_raw, n_rows), kept from class to class of a round; None: one raw score
    is_known: bool = False  # whether these, or the derivatives of log loss, are those of the scores already
    losses: Floats | None = None  # (n_rows,), written by `sum_rows` of the losses of classes where given


def runs_of(rows: RoundRows, lo: int, hi: int) -> list[tuple[int, int]]:
    """Rows lo .. hi as one run; block by block where the loss of each row is kept, which scratch has of a block."""
    size = max(hi - lo, 1) if rows.losses is None else _codes.BLOCK
    return [(first, min(first + size, hi)) for first in range(lo, hi, size)]


class Loss:
    """What all losses share; one raw score a row, of which `kernels.boost.gradients.fill` knows the derivatives."""

    name: str
    code: int = -1  # of `kernels.boost.gradients`; -1: not one of `fill`
    parameter: float = 0.0  # of `kernels.boost.gradients`
    n_raw: int = 1
    n_classes: int = 0  # 0: numbers
    leaf: str = "newton"  # "newton": -G / (H + lambda); "quantile": of y - raw at a level; "huber": Friedman's step
    has_constant_hessian: bool = False  # h is 1 in every row
    is_scale_free: bool = False  # y times 2 gives predictions times 2
    is_positive: bool = False  # for targets that are not negative
    is_by_row: bool = True  # whether the value is a mean over rows, each by itself
    judges_bags: bool = True  # whether the value of rows outside a bag tells when to stop
    leaves_derivatives: bool = False  # whether the value of a round leaves the derivatives of the next behind
    draws_once: bool = False  # whether the trees of a round draw the same features, as if each were of its own model

    def check(self, y: Floats) -> None:
        """Raise ValueError for a target that the loss is not defined for."""
        if self.n_classes:
            is_bad = ~((y >= 0) & (y < self.n_classes) & (y == np.floor(y)))
            self._refuse(y, is_bad, f"a class, 0 .. {self.n_classes - 1}", "Code the classes first")
        else:
            self._refuse(y, ~np.isfinite(y), "finite numbers", "Leave the row out")

    def _refuse(self, y: Floats, is_bad: NDArray[np.bool_], need: str, fix: str) -> None:
        if bool(is_bad.any()):
            row = int(np.argmax(is_bad))
            raise ValueError(f"y is {y[row]:g} in row {row}: loss={self.name!r} requires {need}. {fix}.")

    def start(self, y: Floats, weight: Floats | None) -> Floats:
        """The constants of least loss, (n_raw,)."""
        raise NotImplementedError

    def begin_round(self, y: Floats, weight: Floats | None, raw: Floats) -> None:
        """Do what must be done once, before the derivatives of a round."""

    def fill(self, chosen: Kernels, rows: RoundRows, k: int, lo: int, hi: int) -> None:
        """Write the derivatives of rows lo .. hi by raw score k, and their sums by block.

        lo is a multiple of `kernels.boost.gradients.BLOCK`, hi another or n_rows.
        """
        y, raw, gradients, sums = rows[:4]
        chosen.boost.gradients.fill(self.code, self.parameter, y, raw[k], lo, hi, gradients, sums)

    def sum_rows(self, chosen: Kernels, rows: RoundRows, losses: Floats, lo: int, hi: int) -> None:
        """Write the sums by block of rows lo .. hi, as `fill` takes them, to `losses`, (n_blocks, 2): see `sum_blocks`.

        Probabilities are written by the way, where there are any.
        """
        if lo == hi:
            return
        weight = rows.gradients.weight
        mine = slice(lo // _codes.BLOCK, -(-hi // _codes.BLOCK))
        part = weight[lo:hi] if len(weight) > 1 else weight
        self._sum_losses(chosen, rows.y[lo:hi], part, rows.raw[:, lo:hi], losses[mine])

    def value(self, y: Floats, weight: Floats | None, raw: Floats) -> float:
        """The weighted mean loss; infinite where that is no finite number."""
        return mean_loss(self.sum_blocks(y, weight, raw))

    def sum_blocks(self, y: Floats, weight: Floats | None, raw: Floats) -> Floats:
        """Sums by block of rows of `weight * loss` and of the weight, (n_blocks, 2)."""
        sums = np.empty((-(-len(y) // _codes.BLOCK), 2))
        self._sum_losses(kernels(raw.size * LOSS_SECONDS), y, np.ones(1) if weight is None else weight, raw, sums)
        return sums

    def _sum_losses(self, chosen: Kernels, y: Floats, weight: Floats, raw: Floats, sums: Floats) -> None:
        """Write the sums by block of `weight * loss` and of the weight, (n_blocks, 2)."""
        losses = np.empty(_codes.BLOCK)
        chosen.boost.gradients.sum_losses(self.code, self.parameter, y, weight, raw[0], losses, sums)

    def respond(self, raw: Floats) -> Floats:
        """Predictions (n_rows,), or probabilities (n_rows, n_classes), from raw scores (n_raw, n_rows)."""
        return respond(self.link, raw)

    @property
    def quantile_levels(self) -> tuple[float, ...]:
        """Level of the quantile of y - raw that a leaf begins with, for each raw score."""
        return (0.5,)

    @property
    def link(self) -> str:
        """How raw scores become answers; see `ensemble.links`."""
        if self.n_classes == 0:
            return "identity"
        return "logistic" if self.n_raw == 1 else "softmax"

    def store(self) -> dict[str, Any]:
        """What files hold of a loss: the numbers that are its attributes."""
        return dict(vars(self))

    @classmethod
    def restore(cls, numbers: dict[str, Any]) -> Self:
        """A loss of the numbers that are its attributes; ValueError where they are not those of one."""
        loss = cls.__new__(cls)
        vars(loss).update(numbers)
        if not loss.is_sound():
            raise ValueError(f"a loss {cls.__name__} cannot have {numbers!r:.120}")
        return loss

    def is_sound(self) -> bool:
        """Whether the attributes, read from a file, are numbers that this loss may have."""
        return not vars(self)


class SquaredError(Loss):
    """`(raw - y)**2 / 2`; answers with the mean."""

    name = "squared_error"
    code = _codes.SQUARED
    has_constant_hessian = True
    is_scale_free = True

    def start(self, y: Floats, weight: Floats | None) -> Floats:
        """The mean."""
        return np.array([weighted_mean(y, row_weights(weight, len(y)))])


class SquaredErrors(Loss):
    """The mean over several outputs, columns of y, of `(raw - y)**2 / 2`; answers with their means.

    y is float64 (n_rows, n_raw), a row of the raw scores being for a column.
    """

    name = "squared_error"
    code = _codes.SQUARED
    has_constant_hessian = True
    is_scale_free = True

    def __init__(self, n_outputs: int) -> None:
        self.n_raw = n_outputs

    def check(self, y: Floats) -> None:
        """Raise ValueError for a target that is not finite."""
        super().check(y.reshape(-1))

    def start(self, y: Floats, weight: Floats | None) -> Floats:
        """The means."""
        weights = row_weights(weight, len(y))
        return np.array([weighted_mean(np.ascontiguousarray(column), weights) for column in y.T])

    def fill(self, chosen: Kernels, rows: RoundRows, k: int, lo: int, hi: int) -> None:
        """See `Loss.fill`; raw score k is that of column k."""
        y, raw, gradients, sums = rows[:4]
        np.subtract(raw[k, lo:hi], y[lo:hi, k], out=gradients.g[lo:hi])
        gradients.h[lo:hi] = 1.0
        chosen.boost.gradients.sum_columns(lo, hi, gradients, sums)

    def _sum_losses(self, chosen: Kernels, y: Floats, weight: Floats, raw: Floats, sums: Floats) -> None:
        losses, part = np.empty(_codes.BLOCK), np.empty_like(sums)
        sums[:] = 0.0
        for k in range(self.n_raw):
            column = np.ascontiguousarray(y[:, k])
            chosen.boost.gradients.sum_losses(self.code, self.parameter, column, weight, raw[k], losses, part)
            sums += part  # of losses and of weights: their ratio is the mean over the outputs

    @property
    def link(self) -> str:
        """A number for each output."""
        return "outputs"

    def is_sound(self) -> bool:
        """See `Loss.is_sound`."""
        return set(vars(self)) == {"n_raw"} and type(self.n_raw) is int and self.n_raw > 1


class Quantile(Loss):
    """`level * (y - raw)` below y, `(1 - level) * (raw - y)` above it; answers with a quantile."""

    name = "quantile"
    code = _codes.QUANTILE
    leaf = "quantile"
    has_constant_hessian = True
    is_scale_free = True

    def __init__(self, level: float) -> None:
        self.level = self.parameter = level

    @property
    def quantile_levels(self) -> tuple[float, ...]:
        """The level of the quantile that the one raw score predicts."""
        return (self.level,)

    def start(self, y: Floats, weight: Floats | None) -> Floats:
        """The quantile."""
        return np.array([weighted_quantile(y, row_weights(weight, len(y)), self.level)])

    def is_sound(self) -> bool:
        """See `Loss.is_sound`."""
        return set(vars(self)) == {"level", "parameter"} and is_level(self.level) and self.parameter == self.level


class AbsoluteError(Quantile):
    """|raw - y|; answers with the median."""

    name = "absolute_error"
    code = _codes.ABSOLUTE

    def __init__(self) -> None:
        super().__init__(0.5)


class Quantiles(Loss):
    """The mean of the losses of several quantiles, each with a raw score, and a tree a round, of its own.

    Nothing passes from one to another: score k is that of `Quantile(quantile_levels[k])`, to the bit.
    """

    name = "quantile"
    code = _codes.QUANTILE
    leaf = "quantile"
    has_constant_hessian = True
    is_scale_free = True
    draws_once = True
    _levels: tuple[float, ...]

    def __init__(self, levels: Sequence[float]) -> None:
        self._levels = tuple(levels)
        self.n_raw = len(levels)

    @property
    def quantile_levels(self) -> tuple[float, ...]:
        """The level of the quantile that each raw score predicts, ascending, (n_raw,)."""
        return self._levels

    def start(self, y: Floats, weight: Floats | None) -> Floats:
        """The quantiles."""
        weights = row_weights(weight, len(y))
        return np.array([weighted_quantile(y, weights, level) for level in self.quantile_levels])

    def fill(self, chosen: Kernels, rows: RoundRows, k: int, lo: int, hi: int) -> None:
        """See `Loss.fill`; raw score k has the level k of the quantiles as its parameter."""
        y, raw, gradients, sums = rows[:4]
        chosen.boost.gradients.fill(self.code, self.quantile_levels[k], y, raw[k], lo, hi, gradients, sums)

    def _sum_losses(self, chosen: Kernels, y: Floats, weight: Floats, raw: Floats, sums: Floats) -> None:
        losses, part = np.empty(_codes.BLOCK), np.empty_like(sums)
        sums[:] = 0.0
        for k, level in enumerate(self.quantile_levels):
            chosen.boost.gradients.sum_losses(self.code, level, y, weight, raw[k], losses, part)
            sums += part  # of losses and of weights: their ratio is the mean over the levels

    @property
    def link(self) -> str:
        """A prediction for each level, ascending."""
        return "quantiles"

    def is_sound(self) -> bool:
        """See `Loss.is_sound`."""
        levels = vars(self).get("_levels")
        return (
            set(vars(self)) == {"_levels", "n_raw"}
            and isinstance(levels, tuple)
            and len(levels) == self.n_raw > 0
            and all(map(is_level, levels))
            and list(levels) == sorted(set(levels))
        )


class Huber(Loss):
    """`(raw - y)**2 / 2` up to delta, its tangents beyond: outliers pull no harder than an error of delta.

    Delta is the alpha-quantile of `|y - median|`, or, if it is to follow the rounds (Friedman 2001, algorithm 4), of
    `|y - raw|` at the beginning of each.
    """

    name = "huber"
    code = _codes.HUBER
    leaf = "huber"
    has_constant_hessian = True
    is_scale_free = True
    parameter = math.nan  # delta: not known yet

    def __init__(self, alpha: float, *, follows_rounds: bool) -> None:
        self.alpha = alpha
        self.follows_rounds = follows_rounds

    def start(self, y: Floats, weight: Floats | None) -> Floats:
        """The constant of least loss for delta from the median, which is set here."""
        weights = row_weights(weight, len(y))
        median = weighted_quantile(y, weights, 0.5)
        delta = self.parameter = self._delta(y - median, weights)

        def derive(constant: Floats) -> list[Derivatives]:
            excess = constant - y
            g, is_inside = np.clip(excess, -delta, delta), np.abs(excess) <= delta
            h = is_inside.astype(np.float64) if bool(is_inside.any()) else np.ones(len(y))
            return [mean_derivatives(g, h, weights)]

        found = find_constant(derive, np.array([median]))
        return np.array([median]) if found is None else found

    def _delta(self, residual: Floats, weights: Weights) -> float:
        size = np.abs(residual)
        delta = weighted_quantile(size, weights, self.alpha)
        if delta > 0.0:
            return delta
        positive = size[size > 0.0]  # where most residuals are 0, delta must not be: nothing would be learnt any more
        return float(positive.min()) if len(positive) else 1.0

    def begin_round(self, y: Floats, weight: Floats | None, raw: Floats) -> None:
        """Set delta, once or in each round; a fixed one is told by the target alone, so that fits can be continued."""
        if self.follows_rounds:
            self.parameter = self._delta(y - raw[0], row_weights(weight, len(y)))
        elif math.isnan(self.parameter):
            weights = row_weights(weight, len(y))
            self.parameter = self._delta(y - weighted_quantile(y, weights, 0.5), weights)

    def value(self, y: Floats, weight: Floats | None, raw: Floats) -> float:
        """See `Loss.value`; delta is that of the round under way."""
        if math.isnan(self.parameter):
            raise RuntimeError("loss='huber': `start` or `begin_round` sets delta, and neither was called.")
        return super().value(y, weight, raw)

    def is_sound(self) -> bool:
        """See `Loss.is_sound`."""
        found: dict[str, Any] = vars(self)
        return (
            {"alpha", "follows_rounds"} <= set(found) <= {"alpha", "follows_rounds", "parameter"}
            and is_level(found["alpha"])
            and isinstance(found["follows_rounds"], bool)
            and is_between(found.get("parameter", 1.0), 0.0, math.inf)
        )


class LogLink(Loss):
    """A loss of positive means, `exp(raw)`: the deviance of a distribution whose variance is a power of its mean."""

    is_positive = True

    @property
    def variance_power(self) -> float:
        """The power of the mean that the variance is proportional to: 1 for Poisson, 2 for gamma."""
        raise NotImplementedError

    def start(self, y: Floats, weight: Floats | None) -> Floats:
        """The logarithm of the mean."""
        mean = weighted_mean(y, row_weights(weight, len(y)))
        return np.array([log_one(mean) if mean > 0.0 else LEAST])

    def check(self, y: Floats) -> None:
        """Raise ValueError where y is negative, or 0 in every row."""
        super().check(y)
        self._refuse(y, y < 0.0, "non-negative y and sum(y) > 0", "loss='squared_error' takes any number")
        if not bool(np.any(y > 0.0)):
            raise ValueError(
                f"y is 0 in every row: loss={self.name!r} requires non-negative y and sum(y) > 0. Check the target."
            )
        largest = float(Decimal(10) ** Decimal(min(MOST_DIGITS / self.growth, sys.float_info.max_10_exp)))
        self._refuse(y, y > largest, f"y up to {largest:.3g}", "Divide y by a power of 10, and multiply the answers")

    @property
    def growth(self) -> float:
        """The power p for which derivatives of the loss are of the order of `y**p`, where y is large."""
        return 1.0

    @property
    def link(self) -> str:
        """Raw scores are logarithms of means."""
        return "log"


class Poisson(LogLink):
    """`exp(raw) - y * raw`, of counts."""

    name = "poisson"
    code = _codes.POISSON
    variance_power = 1.0


class Gamma(LogLink):
    """`raw + y * exp(-raw)`, of positive and skewed numbers."""

    name = "gamma"
    code = _codes.GAMMA
    variance_power = 2.0

    def check(self, y: Floats) -> None:
        """Raise ValueError where y is not positive."""
        Loss.check(self, y)
        self._refuse(y, y < 0.0, "strictly positive y", "loss='squared_error' takes any number")
        self._refuse(y, y == 0.0, "strictly positive y", "loss='tweedie' and loss='poisson' take 0")


class Tweedie(LogLink):
    """A loss of numbers of which many are zero and the rest skewed.

    It is `exp((2 - power) * raw) / (2 - power) + y * exp((1 - power) * raw) / (power - 1)`.
    """

    name = "tweedie"
    code = _codes.TWEEDIE

    def __init__(self, power: float) -> None:
        self.parameter = power

    @property
    def variance_power(self) -> float:
        """The parameter `power`, between 1 and 2."""
        return self.parameter

    @property
    def growth(self) -> float:
        """2 - power, which is between 0 and 1: larger targets than for Poisson are taken."""
        return 2.0 - self.parameter

    def is_sound(self) -> bool:
        """See `Loss.is_sound`."""
        return set(vars(self)) == {"parameter"} and is_between(self.parameter, 1.0, 2.0)


class TwoClasses(Loss):
    """A loss of two classes, 0 and 1, with one raw score for class 1."""

    n_classes = 2

    def log_odds(self, y: Floats, weight: Floats | None) -> float:
        """Logarithm of the weight of class 1 over that of class 0."""
        log_shares = log_class_shares(y, weight, 2)
        return log_shares[1] - log_shares[0]


class LogLoss(TwoClasses):
    """`-log(p)` for the probability `p` of the row's class, `1 / (1 + exp(-raw))` for class 1."""

    name, code = "log_loss", _codes.LOGISTIC
    leaves_derivatives = True

    def start(self, y: Floats, weight: Floats | None) -> Floats:
        """The log-odds of class 1."""
        return np.array([self.log_odds(y, weight)])

    def fill(self, chosen: Kernels, rows: RoundRows, k: int, lo: int, hi: int) -> None:
        """See `Loss.fill`; the loss of the round before may have written them already."""
        if k == 0 and not rows.is_known:
            self.sum_rows(chosen, rows, np.empty((-(-len(rows.y) // _codes.BLOCK), 2)), lo, hi)

    def sum_rows(self, chosen: Kernels, rows: RoundRows, losses: Floats, lo: int, hi: int) -> None:
        """See `Loss.sum_rows`: derivatives are written by the way, of the same exponentials."""
        y, (raw,), gradients, sums = rows[:4]
        scratch = np.empty(_codes.BLOCK)
        for first, last in runs_of(rows, lo, hi):
            chosen.boost.gradients.fill_log_loss(y, raw, first, last, gradients, sums, scratch, losses)
            if rows.losses is not None:
                rows.losses[first:last] = scratch[: last - first]


class Exponential(TwoClasses):
    """`exp(raw)` for class 0, `exp(-raw)` for class 1: AdaBoost's loss, of which raw is half the log-odds."""

    name, code = "exponential", _codes.EXPONENTIAL

    def start(self, y: Floats, weight: Floats | None) -> Floats:
        """Half the log-odds of class 1."""
        return np.array([0.5 * self.log_odds(y, weight)])

    @property
    def link(self) -> str:
        """Raw scores are halves of log-odds."""
        return "half_logistic"


class Softmax(Loss):
    """`-log(p)` for the probability `p` of the row's class, `exp(raw)` of the class over the sum of all.

    Each class has its tree in a round, which takes the scores of the others as given though they move as well: with
    the diagonal of the second derivatives, `p * (1 - p)`, for h all of them together would go too far. Twice that is
    never too little (the rest of a row of that matrix adds up to `p * (1 - p)` again) and makes two classes step as log
    loss of one score does. Against the factors 1 and `n / (n - 1)` it had the least log loss on vehicle, satimage,
    glass, soybean and letter, and the greatest on vowel (100 rounds of 31 leaves). Friedman's line search (2001,
    algorithm 6) has `n / (n - 1)`.
    """

    name = "log_loss"

    def __init__(self, n_classes: int, factor: float = 2.0) -> None:
        self.n_classes = self.n_raw = n_classes
        self.parameter = factor

    def start(self, y: Floats, weight: Floats | None) -> Floats:
        """The logarithms of the classes' shares, around 0."""
        log_shares = log_class_shares(y, weight, self.n_classes)
        return np.array(log_shares) - math.fsum(log_shares) / self.n_classes

    def fill(self, chosen: Kernels, rows: RoundRows, k: int, lo: int, hi: int) -> None:
        """See `Loss.fill`; class 0 comes first in a round, and writes the probabilities of the rows for all."""
        y, _, gradients, sums, p = rows[:5]
        if k == 0 and not rows.is_known:
            self.sum_rows(chosen, rows, np.empty((-(-len(y) // _codes.BLOCK), 2)), lo, hi)
        chosen.boost.gradients.fill_class(p, k, self.parameter, y, lo, hi, gradients, sums)

    def sum_rows(self, chosen: Kernels, rows: RoundRows, losses: Floats, lo: int, hi: int) -> None:
        """See `Loss.sum_rows`: the exponentials of a round's loss are those of the next round's probabilities."""
        scratch, weight = np.empty((3, _codes.BLOCK)), rows.gradients.weight
        for first, last in runs_of(rows, lo, hi):
            chosen.boost.gradients.fill_softmax(
                rows.raw, first, last, rows.probabilities, scratch, rows.y, weight, losses
            )
            if rows.losses is not None:
                rows.losses[first:last] = scratch[2, : last - first]

    def _sum_losses(self, chosen: Kernels, y: Floats, weight: Floats, raw: Floats, sums: Floats) -> None:
        scratch = np.empty(_codes.BLOCK), np.empty(_codes.BLOCK)
        chosen.boost.gradients.sum_class_losses(y, weight, raw, *scratch, sums)

    def is_sound(self) -> bool:
        """See `Loss.is_sound`."""
        return (
            set(vars(self)) == {"n_classes", "n_raw", "parameter"}
            and {type(self.n_classes), type(self.n_raw)} == {int}
            and self.n_classes == self.n_raw > 2
            and is_between(self.parameter, 0.0, math.inf)
        )


class JointLoss(Loss):
    """A loss whose derivatives are found for all rows at once, in `begin_round`, which writes `_of_round`.

    Such losses compare rows with each other, or are functions of the user. They begin with a score of 0 where nothing
    better is known.
    """

    is_by_row = False
    _of_round: tuple[Floats, Floats] | None = None  # g and h, (n_raw, n_rows) each
    _known: tuple[tuple[Floats, Any, Any], ...] = ()  # see `_once`
    _of_fit = "_of_round", "_known"  # attributes that a fit leaves behind, and a model does not keep

    def start(self, y: Floats, weight: Floats | None) -> Floats:
        """0: rows are told apart by differences of scores, which a constant does not change."""
        del y, weight
        return np.zeros(self.n_raw)

    def fill(self, chosen: Kernels, rows: RoundRows, k: int, lo: int, hi: int) -> None:
        """See `Loss.fill`; the derivatives are those of `begin_round`."""
        assert self._of_round is not None
        rows.gradients.g[lo:hi] = self._of_round[0][k, lo:hi]
        rows.gradients.h[lo:hi] = self._of_round[1][k, lo:hi]
        chosen.boost.gradients.sum_columns(lo, hi, rows.gradients, rows.sums)

    def __getstate__(self) -> dict[str, Any]:
        """What is kept with a model: not the derivatives of the last round."""
        return {name: value for name, value in self.__dict__.items() if name not in self._of_fit}

    def _once(self, y: Floats, key: Any, make: Callable[[], Any]) -> Any:
        """What a target tells whatever the scores are, made once for each of the last few targets."""
        found = next((value for target, given, value in self._known if target is y and given == key), None)
        if found is None:
            found = make()
            self._known = (*self._known[1 - MOST_KNOWN :], (y, key, found))
        return found

    def store(self) -> dict[str, Any]:
        """See `Loss.store`."""
        return self.__getstate__()


# --- Small questions ----------------------------------------------------------------------------------------


def is_between(number: Any, low: float, high: float) -> bool:
    """Whether this is a float above `low` and below `high`."""
    return isinstance(number, float) and low < number < high


def is_level(alpha: Any) -> bool:
    """Whether this is the level of a quantile."""
    return is_between(alpha, 0.0, 1.0)
