"""Measures of a split, as textbooks define them, from the sums of its branches.

Sums of rows are vectors: (rows, weight of each class) for classes, (rows, weight, sum, sum of squares) for numbers, the
last two of the target less its mean over all rows; Poisson's deviance has two more, of y and of y log y. A table of
tests is (n_tests, n_branches, n_sums); a branch without rows is a vector of zeros. The scores behind the impurities are
those of `kernels.common.criteria`, for many tests.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spinney._criteria import VALUE_CRITERIA
from spinney._elementary import log2

ROUNDING = 2.0**-44  # of a difference of impurities, as a share of the larger: less is no difference

LOG2_E = 1.4426950408889634  # bits in a nat

Sums = NDArray[np.float64]


@dataclass(frozen=True)
class Worth:
    """Measures of tests, each of shape (n_tests,); what a kind of target does not have is NaN.

    Attributes
    ----------
    before, after : impurity of the rows and mean impurity of the branches, by the tree's criterion.
    decrease : before - after, times the share of rows whose value is known where only those are split.
    gain : decrease of entropy in bits (classes); of the criterion (numbers).
    split_info : entropy of the branches' shares, in bits.
    gini_decrease, chi_square : classes only.
    variance_decrease, deviation_decrease : numbers only.
    """

    before: NDArray[np.float64]
    after: NDArray[np.float64]
    decrease: NDArray[np.float64]
    gain: NDArray[np.float64]
    split_info: NDArray[np.float64]
    gini_decrease: NDArray[np.float64]
    chi_square: NDArray[np.float64]
    variance_decrease: NDArray[np.float64]
    deviation_decrease: NDArray[np.float64]

    @property
    def gain_ratio(self) -> NDArray[np.float64]:
        """Gain over split information; NaN where one branch has every row."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.split_info > 0.0, self.gain / self.split_info, np.nan)


def times_log(weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """The terms `k log2 k` of an entropy, 0 at 0."""
    return weight * log2(np.where(weight > 0.0, weight, 1.0))


def share_of(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """`part / whole`, of the shape of `part`; 0 where `whole` is 0."""
    return np.divide(part, whole, out=np.zeros(part.shape), where=whole > 0.0)


def weigh_sums(sums: Sums, n_classes: int) -> NDArray[np.float64]:
    """Weight behind vectors of sums."""
    return sums[..., 1:].sum(axis=-1) if n_classes else sums[..., 1]


def class_impurity(criterion: str, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Impurity of nodes with these shares of the classes, shape (n_nodes, n_classes).

    The form for arrays of `kernels.common.criteria.impurity_of_classes`, by which a grown tree has its impurities; this
    one is for nodes that are made later, by pruning or from other rows. `impurity` is the same from sums, for tests
    that are only looked at: it divides last, so that whole weights lose no digits.
    """
    if criterion == "gini":
        return 1.0 - (shares * shares).sum(axis=1)
    if criterion == "misclassification":
        return 1.0 - shares.max(axis=1, initial=0.0)
    return -times_log(shares).sum(axis=1)


def join_impurity(criterion: str, parts: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    """Impurity over all classes from what `class_impurity` gives for blocks of them."""
    if criterion == "misclassification":
        return np.minimum.reduce(parts)
    base = 1.0 if criterion == "gini" else 0.0
    return np.add.reduce(parts) - base * (len(parts) - 1)


def impurity(sums: Sums, criterion: str) -> NDArray[np.float64]:
    """Impurity of sets of rows, shape sums.shape[:-1]; 0 for no rows."""
    if criterion == "poisson":
        return deviance(sums)
    if criterion in VALUE_CRITERIA:
        weight, total, square = sums[..., 1], sums[..., 2], sums[..., 3]
        mean, power = share_of(total, weight), share_of(square, weight)
        variance = power - mean * mean
        variance = np.where(variance <= ROUNDING * power, 0.0, variance)  # of equal targets
        return np.sqrt(variance) if criterion == "sdr" else variance
    counts = sums[..., 1:]
    weight = counts.sum(axis=-1)
    if criterion == "gini":
        return share_of(weight - share_of((counts * counts).sum(axis=-1), weight), weight)
    if criterion == "misclassification":
        return share_of(weight - counts.max(axis=-1, initial=0.0), weight)
    return np.maximum(share_of(times_log(weight) - times_log(counts).sum(axis=-1), weight), 0.0)


def deviance(sums: Sums) -> NDArray[np.float64]:
    """Half the Poisson deviance of sets of rows from their means, shape sums.shape[:-1]; 0 for no rows."""
    weight, total, power = sums[..., 1], sums[..., 4], sums[..., 5]
    mean = share_of(total, weight)
    whole, apart = share_of(power, weight), times_log(mean) / LOG2_E
    difference = whole - apart
    is_rounding = difference <= ROUNDING * np.maximum(np.abs(whole), mean)  # of equal targets
    return np.where(is_rounding, 0.0, difference)


def mean_impurity(branches: Sums, criterion: str, n_classes: int) -> NDArray[np.float64]:
    """Impurity of the branches of each test, weighted by their weights, shape (n_tests,)."""
    weight = weigh_sums(branches, n_classes)
    return share_of((weight * impurity(branches, criterion)).sum(axis=1), weight.sum(axis=1))


def difference(before: NDArray[np.float64], after: NDArray[np.float64]) -> NDArray[np.float64]:
    """`before - after`, exactly 0 where only a rounding is left of it."""
    drop = before - after
    return np.where(np.abs(drop) <= ROUNDING * np.abs(before), 0.0, drop)


def variance_drop(branches: Sums) -> NDArray[np.float64]:
    """Decrease of the variance by the means of the branches: no digits are lost to a large variance."""
    weight, total = branches[..., 1], branches[..., 2]
    all_weight, all_total = weight.sum(axis=1), total.sum(axis=1)
    centre = share_of(all_total, all_weight)[:, None]
    off = share_of(total, weight) - centre
    scale = share_of(branches[..., 3].sum(axis=1), all_weight)
    return difference(scale + share_of((weight * off * off).sum(axis=1), all_weight), scale)


def chi_square(branches: Sums) -> NDArray[np.float64]:
    """Pearson's statistic of the table of branches and classes, shape (n_tests,)."""
    counts = branches[..., 1:]
    weight = counts.sum(axis=2, keepdims=True)
    classes = counts.sum(axis=1, keepdims=True)
    expected = share_of(weight * classes, weight.sum(axis=1, keepdims=True))
    off = counts - expected
    return share_of(off * off, expected).sum(axis=(1, 2))


def measure(
    branches: Sums,
    criterion: str,
    n_classes: int,
    unknown: float = 0.0,
    penalty: float | NDArray[np.float64] = 0.0,
) -> Worth:
    """Measure tests.

    Parameters
    ----------
    branches : float64 (n_tests, n_branches, n_sums)
        Sums of the branches; where `unknown` > 0, those of the rows whose value is known.
    criterion : str
        Of the tree: what `before`, `after` and `decrease` speak of.
    n_classes : int
        0 for numbers.
    unknown : float
        Weight of the rows that no branch has: gains are lowered by their share, and they count as one more branch in
        the split information, as in C4.5.
    penalty : float or float64 (n_tests,)
        What is taken off the gain: by C4.5 for having chosen a cut among many, by CART for what levels gain by chance.
    """
    weight = weigh_sums(branches, n_classes)
    known = weight.sum(axis=1)
    total = known + unknown
    share = share_of(known, total)
    all_rows = branches.sum(axis=1)

    def drop(of: str) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        before, after = impurity(all_rows, of), mean_impurity(branches, of, n_classes)
        return before, after, difference(before, after) * share

    before, after, decrease = drop(criterion)
    parts = times_log(weight).sum(axis=1) + times_log(total - known)
    split_info = np.maximum(share_of(difference(times_log(total), parts), total), 0.0)
    nothing = np.full(len(branches), np.nan)
    if n_classes:
        gain = (decrease if criterion == "entropy" else drop("entropy")[2]) - penalty
        gini = decrease if criterion == "gini" else drop("gini")[2]
        return Worth(before, after, decrease, gain, split_info, gini, chi_square(branches), nothing, nothing)
    variance = variance_drop(branches) * share
    if criterion == "squared_error":
        decrease = variance
    deviation = decrease if criterion == "sdr" else drop("sdr")[2]
    return Worth(before, after, decrease, decrease - penalty, split_info, nothing, nothing, variance, deviation)
