"""Exponentials and logarithms of arrays, as `kernels.common.elementary` makes them: the same bits on every CPU.

Few values are done one by one, in Python's numbers, and many by compiled kernels if there are any; the rest by the
interpreted kernels, whole blocks at a time. All give the same bits.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney._jit import interpreted, kernels

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

Floats = NDArray[np.float64]

_twin = interpreted().common.elementary
LEAST, GREATEST = _twin.LEAST, _twin.GREATEST
"""Exponents beyond them give what they give: exp stays finite, and above 0."""

_LOG2_E, _ROUNDER = _twin.LOG2_E, _twin.ROUNDER
_mantissa = _twin.exp_mantissa.__wrapped__  # of Python's numbers, which warn of nothing

FEW = 8  # one by one: 0.7 us each, against 15 us for an array
BLOCK = 2048  # the 30 arrays of a block stay in the second cache: 27 ns a log2, against 58 ns with twice as many
MANY = 16384  # compiled kernels are asked for: 1 to 2 ns each, but reading them takes some milliseconds
INTERPRETED_SECONDS = 3e-8  # of a value


def exp_one(x: float) -> float:
    """Exp of a number, of LEAST below it and of GREATEST above it."""
    if x != x:  # noqa: PLR0124
        return x
    x = min(max(x, LEAST), GREATEST)
    k = (x * _LOG2_E + _ROUNDER) - _ROUNDER
    return math.ldexp(_mantissa(x, k), int(k))


def exp(x: ArrayLike) -> Floats:
    """Exp of each x, of LEAST below it and of GREATEST above it, within 1.1 units in the last place."""
    values = np.array(x, np.float64, order="C")
    if values.size <= FEW:
        return np.array([exp_one(value) for value in values.ravel().tolist()]).reshape(values.shape)
    unknown = np.isnan(values)
    np.clip(values, LEAST, GREATEST, out=values)
    _replace("exp_all", _twin.exp_between, values)
    values[unknown] = np.nan
    return values


def expm1(x: Floats) -> Floats:
    """exp(x) - 1 for x in -1 .. 0, within 1.2 units in the last place."""
    return _by_blocks(_twin.exp_less_one, np.array(x, np.float64, order="C"))


def log(x: ArrayLike) -> Floats:
    """Log of each x, within 0.53 units in the last place, of subnormal x within 1.1."""
    return _logarithms("log_all", _twin.log, x)


def log2(x: ArrayLike) -> Floats:
    """Log of each x to the base 2, within 0.55 units in the last place, of subnormal x within 0.8.

    Powers of two are exact.
    """
    return _logarithms("log2_all", _twin.log2, x)


def relative_entropy(d: Floats) -> Floats:
    """(1 + d) log(1 + d) - d of each d from -1 on, as the kernels have it; small ones keep their digits."""
    ratio = 1.0 + d
    is_near = (ratio >= _twin.NEAR_LEAST) & (ratio <= _twin.NEAR_MOST)
    near = _twin.entropy_near_one(np.where(is_near, d, 0.0))
    return np.where(is_near, near, ratio * log(np.where(ratio > 0.0, ratio, 1.0)) - d)


def log_one(x: float) -> float:
    """Log of a positive and finite number."""
    return float(log(x))


def log1p_one(x: float) -> float:
    """Log of 1 + x, a positive and normal number."""
    return float(_twin.log1p(np.float64(x)))


def log2_one(x: float) -> float:
    """Log of a positive and finite number to the base 2."""
    return float(log2(x))


def _logarithms(door: str, function: Callable[[Any], Any], x: ArrayLike) -> Floats:
    """As NumPy: -infinity of 0, infinity of that, NaN of the rest that has no logarithm."""
    values = np.array(x, np.float64, order="C")
    odd = ~((values >= _twin.SMALLEST) & (values < np.inf))
    if not odd.any():
        return _replace(door, function, values)
    strange = values[odd]
    is_small = (strange > 0.0) & (strange < 1.0)
    values[odd] = np.where(is_small, strange * _twin.LIFTED, 1.0)
    _replace(door, function, values)
    without = np.where(strange == 0.0, -np.inf, np.where(strange == np.inf, np.inf, np.nan))
    values[odd] = np.where(is_small, values[odd] - function(np.float64(_twin.LIFTED)), without)
    return values


def _replace(door: str, function: Callable[[Any], Any], values: Floats) -> Floats:
    if values.size >= MANY:
        k = kernels(values.size * INTERPRETED_SECONDS)
        if k is not interpreted():
            getattr(k.common.elementary, door)(values.reshape(-1))
            return values
    return _by_blocks(function, values)


def _by_blocks(function: Callable[[Any], Any], values: Floats) -> Floats:
    flat = values.reshape(-1)
    for first in range(0, len(flat), BLOCK):
        flat[first : first + BLOCK] = function(flat[first : first + BLOCK])
    return values
