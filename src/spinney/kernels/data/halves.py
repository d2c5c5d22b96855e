"""Deal the draws of a range of units to its two halves: a binomial count, or a hypergeometric one without replacement.

A count is found by inversion of one uniform number: the chances of all counts, laid end to end from the likeliest one
outwards, fill 0 .. 1. The first chance is that of Loader (2000): what is left of Stirling's formula, and how far the
count is from its mean, so that no digits cancel; the others follow by products. Some standard deviations are gone
through, 200 steps for 131,072 draws.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel

from ..common.elementary import exponential, log, log1p
from ..common.rng import fraction

TWO_PI = 6.283185307179586
FEW = 16.0  # from here on five terms of Stirling's series have all digits
CLOSE = 0.1  # a count and its mean: above, the plain formula has all digits
N_TERMS = 9  # of the series below it: 0.1 ** 18 is nothing beside 1
NOTHING = 2.0**-80  # chances below it are past the end of the 53 bits of a uniform number


@kernel
def stirling_rest(x: float) -> float:
    """The log of x! less Stirling's x log x - x + log(2 pi x) / 2, for a whole x from 1 on."""
    rest = 0.0
    while x < FEW:
        rest += (x + 0.5) * log1p(1.0 / x) - 1.0
        x += 1.0
    y = 1.0 / (x * x)
    series = 1.0 / 12.0 - y * (1.0 / 360.0 - y * (1.0 / 1260.0 - y * (1.0 / 1680.0 - y * (1.0 / 1188.0))))
    return rest + series / x


@kernel
def divergence(x: float, mean: float) -> float:
    """X log(x / mean) + mean - x, with all digits where the two are close as well; both are positive."""
    v = (x - mean) / (x + mean)
    if v > CLOSE or v < -CLOSE:
        return x * log(x / mean) + (mean - x)
    total = (x - mean) * v
    term = 2.0 * x * v
    for j in range(N_TERMS):
        term *= v * v
        total += term / (2.0 * np.float64(j) + 3.0)
    return total


@inlined
def log_share(part: float, rest: float) -> float:
    """Log of part / (part + rest), both positive."""
    total = part + rest
    return log1p(-rest / total) if rest < part else log(part / total)


@kernel
def binomial_chance(k: float, n: float, left: float, right: float) -> float:
    """The chance of k hits in n trials, each with a chance of left / (left + right); all are whole numbers."""
    if k == 0.0:
        return exponential(n * log_share(right, left))
    if k == n:
        return exponential(n * log_share(left, right))
    total = left + right
    rest = stirling_rest(n) - stirling_rest(k) - stirling_rest(n - k)
    off = divergence(k, n * (left / total)) + divergence(n - k, n * (right / total))
    return np.sqrt(n / (TWO_PI * k * (n - k))) * exponential(rest - off)


@inlined
def chance_ratio(k: float, n_drawn: float, left: float, right: float, is_replaced: bool) -> float:
    """The chance that the left half has k + 1 draws, over the chance that it has k."""
    if is_replaced:
        return (n_drawn - k) * left / ((k + 1.0) * right)
    return (n_drawn - k) * (left - k) / ((k + 1.0) * (right - n_drawn + k + 1.0))


@kernel
def start_count(n_drawn: float, left: float, right: float, is_replaced: bool) -> tuple[float, float]:
    """The likeliest number of draws of the left half, but for rounding, and its chance."""
    if is_replaced:
        k = np.floor((n_drawn + 1.0) * (left / (left + right)))
        k = k if k < n_drawn else n_drawn
        return k, binomial_chance(k, n_drawn, left, right)
    total = left + right
    k = np.floor((n_drawn + 1.0) * ((left + 1.0) / (total + 2.0)))
    most = left if left < n_drawn else n_drawn
    least = n_drawn - right if n_drawn > right else 0.0
    k = k if k < most else most
    k = k if k > least else least
    others = total - n_drawn
    among_left = binomial_chance(k, left, n_drawn, others)
    among_right = binomial_chance(n_drawn - k, right, n_drawn, others)
    return k, among_left * among_right / binomial_chance(n_drawn, total, n_drawn, others)


@kernel
def deal_left(word: np.uint64, n_drawn: int, left: int, right: int, is_replaced: bool) -> int:
    """How many of `n_drawn` draws fall into the left half, by a word of random bits.

    left, right: weight of the halves, not negative; without replacement their numbers of units, of which `n_drawn` are
    drawn.
    """
    if left == 0 or n_drawn == 0:
        return np.int64(0)
    if right == 0:
        return np.int64(n_drawn)
    m, a, b = np.float64(n_drawn), np.float64(left), np.float64(right)
    if not is_replaced and m == a + b:
        return np.int64(left)
    start, chance = start_count(m, a, b, is_replaced)
    most = a if not is_replaced and a < m else m
    least = m - b if not is_replaced and m > b else 0.0
    at = fraction(word) - chance
    up, down = chance, chance
    above, below = start, start
    while at >= 0.0 and up + down > NOTHING:
        up = up * chance_ratio(above, m, a, b, is_replaced) if above < most else 0.0
        above += 1.0
        at -= up
        if at < 0.0:
            return np.int64(above)
        below -= 1.0
        down = down / chance_ratio(below, m, a, b, is_replaced) if below >= least else 0.0
        at -= down
        if at < 0.0:
            return np.int64(below)
    return np.int64(start)  # drawn at once; or the very end of 0 .. 1, which the rounded chances leave open
