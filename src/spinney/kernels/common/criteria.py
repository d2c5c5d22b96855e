"""How good sums are: a score per branch, to be maximised over the branches of a split.

The score of a set of rows is minus its weighted impurity, up to a term that a split cannot change:

  squared error (and two-class Gini)   sum^2 / weight
  Gini                                 (sum of squared class weights) / weight
  entropy                              sum over classes of f(class weight), minus f(weight); f(k) = k log2 k
  misclassification                    largest class weight
  SDR                                  - weight * standard deviation
  Poisson                              sum * log(mean), in a form of its own: `kernels.tree.rates`

so gain = (scores of the branches) - (score of the node), in units that `tree.grow` scales to impurity.
Entropy of whole weights reads f from a fixed-point table: no logarithm in a scan, and integer sums.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import ENTROPY, GINI, MISCLASSIFICATION, POISSON, PRESENT, SQUARED_ERROR, TARGET, WEIGHT

from .elementary import log2, weight_log2
from .ties import slack_of

ROUNDING = 2.0**-50  # of a square: what conversions, products and their difference may be off
FEW_ROWS = 8


# --- Scores: what a scan maximises ------------------------------------------------------------------------------------


@kernel
def times_log(weight: int, xlogx: np.ndarray) -> float:
    """f(k) = k log2 k, in units of the table where there is one."""
    if len(xlogx) > 1:
        return np.float64(xlogx[weight])
    if weight <= 0:
        return 0.0
    k = np.float64(weight)
    return k * weight_log2(k)


@kernel
def score_moments(
    criterion: int,
    weight: int,
    total: int,
    square: int,
    square_unit: float,
    xlogx: np.ndarray,
) -> float:
    """Score of rows with these sums; two classes count class 1 in `total`."""
    w = np.float64(weight)
    s = np.float64(total)
    if criterion == SQUARED_ERROR:
        return s * s / w
    if criterion == ENTROPY:
        return times_log(total, xlogx) + times_log(weight - total, xlogx) - times_log(weight, xlogx)
    if criterion == MISCLASSIFICATION:
        return max(s, w - s)
    return -w * deviation(weight, total, square, square_unit)  # SDR


@kernel
def deviation(weight: int, total: int, square: int, square_unit: float) -> float:
    """Weighted standard deviation of the target, in target units of the fixed-point sums; 0 where it is all rounding.

    The root would make 1e-8 of a rounding of 1e-16: a branch of equal targets would not tie with another one.
    """
    w = np.float64(weight)
    s = np.float64(total)
    spread = w * (np.float64(square) * square_unit) - s * s
    return np.sqrt(spread) / w if spread > s * s * ROUNDING else 0.0


@kernel
def score_classes(
    criterion: int,
    sums: np.ndarray,
    side: int,
    weight: int,
    n_present: int,
    xlogx: np.ndarray,
) -> float:
    """Score of rows with class weights sums[side]; sums[PRESENT] lists the classes that can be non-zero."""
    score = 0.0
    if criterion == MISCLASSIFICATION:
        for k in range(n_present):
            score = max(score, np.float64(sums[side, sums[PRESENT, k]]))
        return score
    if criterion == ENTROPY:
        for k in range(n_present):
            score += times_log(sums[side, sums[PRESENT, k]], xlogx)
        return score - times_log(weight, xlogx)
    for k in range(n_present):
        s = np.float64(sums[side, sums[PRESENT, k]])
        score += s * s
    return score / np.float64(weight)


@inlined
def pure_score(criterion: int) -> float:
    """Score of a unit of weight of one class, or of one value: the impurity is what a score lacks of it."""
    return 1.0 if criterion in (GINI, MISCLASSIFICATION) else 0.0


# --- Impurities: what a node of a tree holds; `tree.split_measures` has the forms for arrays --------------------------


@inlined
def impurity_of_two(criterion: int, share: float) -> float:
    """Impurity of two classes, of which class 1 has this share of the weight."""
    other = 1.0 - share
    if criterion == ENTROPY:
        impurity = 0.0
        if share > 0.0:
            impurity -= share * log2(share)
        if other > 0.0:
            impurity -= other * log2(other)
        return impurity
    if criterion == MISCLASSIFICATION:
        return min(share, other)
    return 2.0 * share * other


@kernel
def impurity_of_classes(criterion: int, class_sums: np.ndarray, weight: int) -> float:
    """Impurity of rows with these weights of the classes, `weight` together."""
    total = 0.0
    for k in range(len(class_sums)):
        share = np.float64(class_sums[k]) / np.float64(weight)
        if criterion == ENTROPY:
            if share > 0.0:
                total -= share * log2(share)
        elif criterion == MISCLASSIFICATION:
            total = max(total, share)
        else:
            total += share * share
    return max(total if criterion == ENTROPY else 1.0 - total, 0.0)


# --- What a search may rely on ----------------------------------------------------------------------------------


@kernel
def blur_of(criterion: int, weight: int, score: float, xlogx: np.ndarray) -> float:
    """Rounding error of `total - score`, where `score` is that of rows of this weight.

    It can exceed the rounding of the difference itself many times.
    """
    if criterion == ENTROPY:
        return slack_of(abs(score) + times_log(weight, xlogx))
    return slack_of(score)


@kernel
def best_possible(
    criterion: int,
    is_class: bool,
    addends: np.ndarray,
    lo: int,
    hi: int,
    weight: int,
    total: int,
    centre: int,
) -> float:
    """Score of a split of rows lo .. hi into pure branches; infinite where it would take too long to say.

    A split that reaches it cannot be beaten, so the search can stop: nodes near the leaves often have one.
    """
    if criterion == POISSON:
        return np.inf
    if criterion != SQUARED_ERROR:
        return pure_score(criterion) * np.float64(weight)
    if is_class:
        return np.float64(total)
    if len(addends) > 2 or hi - lo > FEW_ROWS:
        return np.inf
    score = 0.0
    for i in range(lo, hi):
        w = np.int64(1) if len(addends) == 1 else addends[WEIGHT, i]
        target = np.float64(addends[TARGET, i] - centre * w)
        square = target * target
        score += square if w == 1 else square / np.float64(w)
    return score
