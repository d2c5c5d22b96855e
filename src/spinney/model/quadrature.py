"""The points and weights of Gauss and Legendre's rule, in additions, products and quotients alone."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

N_STEPS = 8  # of Newton's, from guesses that are right to 1 % of the way to the next point: four suffice
PI = 3.141592653589793


class Rule(NamedTuple):
    """A rule on 0 .. 1, arrays (n,): the integral is the sum of the weights times the values at the points."""

    point: NDArray[np.float64]
    rest: NDArray[np.float64]  # 1 - point, as exact near 1 as `point` is near 0
    weight: NDArray[np.float64]


@lru_cache(maxsize=64)
def legendre_rule(n: int) -> Rule:
    """The rule of n points, exact for polynomials up to degree 2 n - 1.

    Newton's method on Legendre's polynomial P(1 - u), whose recurrence goes by differences: points near u = 0 keep all
    their digits, and the others follow by symmetry.

    Examples
    --------
    >>> rule = legendre_rule(3)
    >>> round(float((rule.weight * rule.point * rule.point).sum()), 12)
    0.333333333333
    """
    half = (n + 1) // 2
    angle = PI / 2.0 * (np.arange(1, half + 1) - 0.25) / (n + 0.5)
    square = angle * angle
    sine = angle * (1.0 - square / 6.0 * (1.0 - square / 20.0 * (1.0 - square / 42.0)))
    u = 2.0 * sine * sine
    for _ in range(N_STEPS):
        value, slope = legendre(n, u)
        u = u + value / slope
    slope = legendre(n, u)[1]
    low, high, weight = u / 2.0, (2.0 - u) / 2.0, 1.0 / (u * (2.0 - u) * slope * slope)
    if n % 2:
        low[-1] = high[-1] = 0.5
    odd = n % 2
    point = np.concatenate([low, high[::-1][odd:]])
    return Rule(point, point[::-1].copy(), np.concatenate([weight, weight[::-1][odd:]]))


def legendre(n: int, u: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Legendre's polynomial of degree n at 1 - u, and its slope there."""
    before, value, step = np.ones_like(u), 1.0 - u, -u
    for k in range(1, n):
        step = (k * step - (2 * k + 1) * u * value) / (k + 1)
        before, value = value, value + step
    return value, n * (before - (1.0 - u) * value) / (u * (2.0 - u))
