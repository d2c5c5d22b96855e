"""What the levels of a category gain by chance, and what a subset of them is worth beyond that.

Levels are put in the order of their means before they are cut, so that the best cut of levels that say nothing gains
too: the more levels, the more. Let a unit of weight have a target of variance `s**2`, let levels have weights `w_l`,
and let some of the lowest of them go left, `L` and `R` being the weights of the branches. By chance alone the sum of
their targets is then off its mean by

    s * A * f(r),        A = sum of sqrt(w_l) over all levels,  r = share of the left ones in that sum,

where f(r) is the density of the normal distribution at its r-quantile, if levels have rows enough for their means to be
normal. Whatever the distribution, f(r) is at most sqrt(r (1 - r)), and levels of a row or two come close to it: each is
all of one class or all of the other. Between the two f goes by the information of a level (rows times variance of a
class, or rows): `few` = 1 / (1 + information) is the part of the bound. So both branches gain by chance

    s**2 * A**2 * f(r)**2 * (1 / L + 1 / R),

in the middle of m levels of one size 2 / pi * m times `s**2`, at their end about 2 log(m) times. `luck` is what exceeds
the 4 / pi of two levels of many rows, which can be cut in one way only, as a number of two values can; of few rows
they still pay the difference to the bound. A subset is worth its gain
less `cat_penalty` times `s**2` times `luck`. Units of weight cancel, but in `few`.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined

from .structs import Chance, LeastLuck
from .ties import NO_SCORE, below_all

TWO_LEVELS = 4.0 / np.pi  # of two levels of one size
ROUND_DOWN = 1.0 - 2.0**-30
DENSITY = 1.342  # DENSITY * x**(7 / 8), x = r (1 - r), is f: exact at r = 1/2, 7 % low at 0.1, 11 % at 0.01
LEAST_DENSITY = DENSITY * 2.0**0.25  # f is at least LEAST_DENSITY * x


@inlined
def no_chance() -> Chance:
    """Of a number, or of a category whose subsets are not to be corrected."""
    return Chance(0.0, 0.0, 0.0, 0.0, 0.0)


@inlined
def few_rows(information: float) -> float:
    """How much of f is its bound, by the information of all levels divided by their number."""
    return 1.0 / (1.0 + information)


@inlined
def sum_roots(bins: np.ndarray, n_bins: int, row: int) -> float:
    """Sum of sqrt(weight) over levels; row: of their weights in `bins`."""
    roots = 0.0
    for b in range(n_bins):
        roots += np.sqrt(np.float64(bins[row, b]))
    return roots


@inlined
def luck_of(chance: Chance, roots: float, left: int, right: int) -> float:
    """What a cut gains by chance, in units of the score; roots: sum of sqrt(weight) over the levels that go left."""
    if chance.noise == 0.0:
        return 0.0
    r = roots / chance.roots
    if not 0.0 < r < 1.0:  # known rows against missing ones: nothing was chosen
        return 0.0
    x = r * (1.0 - r)
    bound = np.sqrt(x)
    f = (1.0 - chance.few) * DENSITY * x / np.sqrt(np.sqrt(bound)) + chance.few * bound
    sway = chance.roots * f
    gain = sway * sway * (1.0 / np.float64(left) + 1.0 / np.float64(right))
    return chance.noise * max(gain - TWO_LEVELS, 0.0)


@inlined
def least_luck(chance: Chance, weight: int) -> LeastLuck:
    """What luck is at least, without a root or a division: for cuts that cannot win, as most cannot.

    x = r (1 - r) is at most 1/4, so that sqrt(x) >= 2 x and x**(7 / 8) >= 4**(1 / 8) x. With x = `spread` / A**2,
    where spread = (roots on the left) (roots on the right), luck is at least

        spread * (first + spread * second) / (L R) - TWO_LEVELS * noise.
    """
    dense = (1.0 - chance.few) * LEAST_DENSITY
    scale = chance.noise * np.float64(weight) * ROUND_DOWN
    return LeastLuck(
        scale * chance.few * chance.few,
        scale * dense * (4.0 * chance.few + dense) / (chance.roots * chance.roots) if chance.roots > 0.0 else 0.0,
    )


@inlined
def least_worth(chance: Chance, top: float) -> float:
    """The score less luck that a cut must come near to win: `top`, or that of the node."""
    return max(below_all(top), below_all(chance.floor))


@inlined
def luck_room(chance: Chance, top: float) -> float:
    """What `least_luck` leaves out, less `least_worth`."""
    return TWO_LEVELS * chance.noise - least_worth(chance, top)


@inlined
def less_luck(score: float, chance: Chance, roots: float, left: int, right: int) -> float:
    """Score of a cut less what it gains by chance; NO_SCORE where luck is enough to tell its gain.

    Luck is what levels gain on average; what they gain varies by sqrt(luck) and a little more, and a tree has many
    nodes: one that stands alone asks for a margin, those of a forest make up for each other. A cut that gains nothing
    may still be made, as of any feature, if no luck was taken off.
    """
    luck = luck_of(chance, roots, left, right)
    if luck > 0.0 and score - luck - chance.margin * np.sqrt(luck * chance.noise) <= chance.floor:
        return NO_SCORE
    return score - luck
