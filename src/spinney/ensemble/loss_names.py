"""Losses by name: how each is made from the parameters of an estimator, and which of them model files may hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from spinney.ensemble.custom_loss import Custom, Function
from spinney.ensemble.losses import (
    AbsoluteError,
    Exponential,
    Gamma,
    Huber,
    LogLoss,
    Loss,
    Poisson,
    Quantile,
    Quantiles,
    Softmax,
    SquaredError,
    SquaredErrors,
    Tweedie,
    is_level,
)
from spinney.ensemble.ranking_loss import LambdaRank
from spinney.ensemble.survival_losses import AFT, Cox

if TYPE_CHECKING:
    from collections.abc import Callable


class LossOptions(NamedTuple):
    """What losses are made with; each takes what it knows."""

    alpha: float | ArrayLike
    power: float
    n_classes: int
    newton: bool


NUMBERS: dict[str, Callable[[LossOptions], Loss]] = {
    "squared_error": lambda _: SquaredError(),
    "absolute_error": lambda _: AbsoluteError(),
    "huber": lambda options: Huber(check_level("huber", options.alpha), follows_rounds=not options.newton),
    "quantile": lambda options: make_quantiles(options.alpha),
    "poisson": lambda _: Poisson(),
    "gamma": lambda _: Gamma(),
    "tweedie": lambda options: Tweedie(check_power(options.power)),
}
"""Losses of numbers by name, and how each is made."""

CLASSES: dict[str, Callable[[LossOptions], Loss]] = {
    "log_loss": lambda options: make_log_loss(options.n_classes, newton=options.newton),
    "exponential": lambda options: make_exponential(options.n_classes),
}
"""Losses of classes."""

STORED: tuple[type[Loss], ...] = (
    SquaredError, AbsoluteError, Quantile, Quantiles, Huber, Poisson, Gamma, Tweedie, LogLoss, Exponential, Softmax,
    LambdaRank, Cox, AFT, SquaredErrors,
)  # fmt: skip
"""Classes of losses that model files hold, under their own names, with the numbers that are their attributes."""


def make_loss(
    loss: str | tuple[Function, Function],
    *,
    alpha: float | ArrayLike = 0.9,
    power: float = 1.5,
    n_classes: int = 0,
    newton: bool = True,
) -> Loss:
    """Make a loss from its name, or from two functions of (y, raw): gradient and Hessian.

    alpha: level of quantile, or several, and of huber's delta; power: of tweedie; n_classes: 0 for numbers; newton:
    second order, where huber's delta is fixed and h of three classes or more has the factor of `Softmax`, not that of
    Friedman.
    """
    if not isinstance(loss, str):
        return _make_custom(loss, n_classes)
    makers = CLASSES if n_classes else NUMBERS
    if loss not in makers:
        what = f"{n_classes} classes" if n_classes else "numbers"
        raise ValueError(f"loss={loss!r} is not for {what}: one of {', '.join(map(repr, makers))}, or two functions.")
    return makers[loss](LossOptions(alpha, power, n_classes, newton))


def make_quantiles(alpha: Any) -> Loss:
    """The loss of one level, or of several, which must ascend."""
    if np.ndim(alpha) == 0:
        return Quantile(check_level("quantile", alpha))
    levels = [check_level("quantile", level) for level in np.ravel(alpha).tolist()]
    if np.ndim(alpha) != 1 or not levels or levels != sorted(set(levels)):
        raise ValueError(f"alpha={alpha!r}: the levels of several quantiles are a list, ascending, each there once.")
    return Quantiles(levels)


def make_log_loss(n_classes: int, *, newton: bool) -> Loss:
    """Log loss of two classes by one score, of more by a score for each."""
    if n_classes <= 2:
        return LogLoss()
    return Softmax(n_classes) if newton else Softmax(n_classes, n_classes / (n_classes - 1))


def make_exponential(n_classes: int) -> Loss:
    """Exponential loss, of two classes alone."""
    if n_classes > 2:
        raise ValueError(
            f"loss='exponential' is only suitable for a binary classification problem: y has {n_classes} classes, and "
            "loss='log_loss' takes any number."
        )
    return Exponential()


def check_level(loss: str, alpha: Any) -> float:
    """A level between 0 and 1."""
    if np.ndim(alpha) != 0:
        raise ValueError(f"alpha={alpha!r}: loss={loss!r} has one level; several are for loss='quantile'.")
    if not is_level(float(alpha)):
        raise ValueError(f"alpha={alpha!r}: loss={loss!r} needs a level between 0 and 1.")
    return float(alpha)


def check_power(power: float) -> float:
    """A power between 1 and 2."""
    if not 1.0 < power < 2.0:
        raise ValueError(
            f"power={power!r}: loss='tweedie' needs a power between 1 and 2; 1 is loss='poisson', 2 is loss='gamma'."
        )
    return float(power)


def _make_custom(loss: Any, n_classes: int) -> Loss:
    if not isinstance(loss, tuple | list) or len(loss) != 2 or not all(map(callable, loss)):
        raise ValueError(f"loss={loss!r}: give a name, or two functions of (y, raw): its gradient and its Hessian.")
    return Custom(loss[0], loss[1], n_classes)
