"""When a candidate beats the best so far: one rule for the searches of trees, one for those of the textbooks.

Two candidates whose scores differ by less than a share TIE of the score are a tie: four roundings of a float64 and some
room. Mathematically equal gains then go to the first feature and the lowest threshold, as promised
(docs/decisions/0004), or, where ties are broken at random, to each of those that tie with equal chance. Boosting has
no slack between candidates, only one against no gain at all: its sums are rounded, but the same ones everywhere.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined
from spinney._types import BY_C45, BY_RATIO

from .rng import below

TIE = 2.0**-47
NO_SCORE = -1e300  # below every score, and finite, so that the tie slack is too

# Textbook trees compare gains per unit of weight. Theirs are differences of sums of logarithms, not scores near each
# other, so their slack is absolute: bits or Gini, and of numbers a share of the range of the node's targets.
TEXTBOOK_TIE = 2.0**-42  # 2e-13: four digits beyond what such sums are exact to
# C4.5 has slacks of its own, as J48 has them; trees that are compared with its trees need the same
C45_SMALL = 1e-6  # weights, gains, ratios and errors that differ by less are equal
C45_NEAR = 1e-5  # values that differ by less are equal: no cut between them
C45_AVERAGE_SLACK = 1e-3  # by which a gain may miss the average
C45_MARGIN = 0.1  # errors by which a smaller tree may be worse


@inlined
def slack_of(score: float) -> float:
    """By which a score may be off."""
    return abs(score) * TIE


@inlined
def bar_above(best: float) -> float:
    """What a score must exceed to beat `best`."""
    return best + slack_of(best)


@inlined
def floor_below(best: float) -> float:
    """What a score must reach to tie with `best`."""
    return best - slack_of(best)


@inlined
def below_all(score: float) -> float:
    """A score that neither ties with `score` nor comes near it by rounding."""
    return score - abs(score) * (2.0 * TIE)


@inlined
def certain(bound: float) -> float:
    """What a score must reach to be sure that none is better, where none can exceed `bound`."""
    return bound - abs(bound) * (TIE / 2.0)


@inlined
def judge(
    score: float, best: float, blur: float, has_random_ties: bool, key: np.uint64, n_ties: int
) -> tuple[bool, float, int]:
    """Whether a candidate takes the place of the best: (it does, the best score then, ties met so far).

    blur: rounding of the scores beyond TIE. The k-th candidate to tie wins with chance 1 / (k + 1), and keeps the score
    of the first, so that slacks do not add up.
    """
    slack = slack_of(best) + blur
    if score > best + slack:
        return True, score, np.int64(0)
    if has_random_ties and score >= best - slack:
        n_ties += 1
        return below(key, n_ties, n_ties + 1) == 0, best, n_ties
    return False, best, n_ties


@inlined
def is_better(gain: float, split_info: float, best: float, slack: float, rule: int) -> bool:
    """Textbook trees: whether a test beats the best so far, whose gain (BY_RATIO: ratio) is `best`."""
    if rule == BY_C45:
        return gain - best > C45_SMALL
    if rule == BY_RATIO:
        return gain > best * split_info + slack
    return gain > best + slack
