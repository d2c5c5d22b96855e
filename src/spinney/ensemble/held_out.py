"""Held-out rows: which rows no tree learns from, and how well they are predicted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from spinney._warnings import warn
from spinney.ensemble.sampling import Draw
from spinney.table.fixed_point import fix_weights, scale, weighted_sum

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from spinney.table.fixed_point import Weights

KEY = 0x484F4C44  # the part of a seed's key that held-out rows are drawn from


def draw_held_out(
    fraction: float,
    n_rows: int,
    is_used: NDArray[np.bool_] | None,
    codes: NDArray[np.int32] | None,
    seed: int,
    *,
    warns: bool = True,
    remedy: str = "give X_val and y_val",
    unit: str = "sample(s)",
) -> NDArray[np.bool_]:
    """Which rows are held out, (n_rows,), drawn from those that are used, and from each class in proportion.

    Parameters
    ----------
    fraction : float or int
        Share of the used rows, rounded up, or their number.
    n_rows : int
    is_used : bool (n_rows,), optional
        Rows that may be drawn; None: all.
    codes : int32 (n_rows,), optional
        Class of each row; None: numbers. Every class keeps a row to learn from.
    seed : int
    warns : bool
        Warn of classes whose only row stays for learning.
    remedy : str
        What else can be done: the end of each message.
    unit : str
        What rows are called in messages.
    """
    chance = np.ones(n_rows) if is_used is None else is_used.astype(np.float64)
    n_used = int(chance.sum())
    n_held = int(fraction) if isinstance(fraction, int | np.integer) else math.ceil(fraction * n_used)
    if n_held >= n_used:
        raise ValueError(
            f"validation_fraction={fraction} holds out {n_held} of {n_used} {unit}, so that none is left to "
            f"learn from: lower it, or {remedy}"
        )
    if codes is not None:
        n_of_class = np.bincount(codes, chance)
        is_lone = n_of_class[codes] == 1.0
        chance[is_lone] = 0.0
        n_lone = int(np.count_nonzero(n_of_class == 1.0))
        if n_lone and warns:
            warn(
                f"Of {n_lone} of the {len(n_of_class)} classes there is a single row, which is needed to learn from: "
                f"early stopping knows nothing of them. To change that, {remedy}."
            )
        if n_held > chance.sum():
            raise ValueError(
                f"validation_fraction={fraction} holds out {n_held} rows, but only {int(chance.sum())} are of classes "
                f"with more than one row: lower it, or {remedy}"
            )
    is_held = Draw("paste", n_rows, n_held, seed, chance, codes).counts(0) > 0
    if codes is not None:  # a class of few rows may have given all
        n_left = np.bincount(codes, chance * ~is_held)
        for code in np.flatnonzero((n_left == 0.0) & (np.bincount(codes, is_held) > 0.0)):
            is_held[np.flatnonzero(is_held & (codes == code))[0]] = False
    return is_held


def weigh_rows(weight: NDArray[np.float64] | None, n_rows: int) -> tuple[NDArray[np.intp], Weights]:
    """Rows of positive weight, and their weights."""
    if weight is None:
        return np.arange(n_rows), fix_weights(None, n_rows)
    used = np.flatnonzero(weight > 0.0)
    return used, fix_weights(weight[used], len(used))


def measure_accuracy(y: NDArray[np.int64], weight: NDArray[np.float64] | None) -> Callable[[NDArray[np.int64]], float]:
    """A function of predicted class codes: the weighted share that is right, whatever the order of the rows."""
    used, weights = weigh_rows(weight, len(y))
    truth, total = y[used], math.ldexp(weights.total, -weights.bits)
    return lambda predicted: weighted_sum((predicted[used] == truth).astype(np.float64), weights) / total


def measure_distance(
    y: NDArray[np.float64], weight: NDArray[np.float64] | None
) -> Callable[[NDArray[np.float64]], float]:
    """A function of predicted numbers: minus their root mean squared error, whatever the order of the rows."""
    used, weights = weigh_rows(weight, len(y))
    shift = math.frexp(float(np.max(np.abs(y[used]))))[1]  # differences near the end of float64 have no room
    truth, total = np.ldexp(y[used], -shift), math.ldexp(weights.total, -weights.bits)

    def measure(predicted: NDArray[np.float64]) -> float:
        off = np.abs(np.ldexp(predicted[used], -shift) - truth)
        exponent = math.frexp(float(np.max(off)))[1]
        off = np.ldexp(off, -exponent)
        return -scale(math.sqrt(weighted_sum(off * off, weights) / total), exponent + shift)

    return measure
