"""The criteria by their names: what Python knows of each; their formulas stand in `kernels.common.criteria`."""

from __future__ import annotations

from typing import NamedTuple

from spinney._types import ABSOLUTE_ERROR, ENTROPY, GINI, MISCLASSIFICATION, POISSON, SDR, SQUARED_ERROR


class Criterion(NamedTuple):
    """What is known of a criterion beside its formula."""

    code: int  # of the kernels
    power: int  # its impurity is in units of the target to this power; 0: of classes
    needs_squares: bool  # sums of squared targets are kept
    impurity: str  # what people call the impurity of a node
    decrease: str  # what people call the worth of a test
    has_origin: bool = False  # targets are counted from 0, not from their mean: its formula asks for their ratio
    is_median: bool = False  # nodes predict the median of their targets, not the mean


CRITERIA = {
    "gini": Criterion(GINI, 0, False, "Gini", "Gini decrease"),
    "entropy": Criterion(ENTROPY, 0, False, "entropy", "gain"),
    "gain_ratio": Criterion(ENTROPY, 0, False, "entropy", "gain ratio"),  # of nodes; see `kernels.tree.gain_ratio`
    "misclassification": Criterion(MISCLASSIFICATION, 0, False, "error", "decrease of the error"),
    "squared_error": Criterion(SQUARED_ERROR, 2, False, "variance", "decrease of the variance"),
    "sdr": Criterion(SDR, 1, True, "standard deviation", "standard deviation reduction"),
    "poisson": Criterion(POISSON, 1, False, "half Poisson deviance", "decrease of the deviance", has_origin=True),
    "absolute_error": Criterion(
        ABSOLUTE_ERROR, 1, False, "absolute deviation", "decrease of the deviation", is_median=True
    ),
}
ALIASES = {"log_loss": "entropy", "friedman_mse": "squared_error"}
"""What scikit-learn calls criteria besides: the tests that they choose are the same."""
GAIN_RATIO = "gain_ratio"
CLASS_CRITERIA = tuple(name for name, criterion in CRITERIA.items() if criterion.power == 0 and name != GAIN_RATIO)
"""Criteria of classes, without the one that chooses among tests by another figure than the impurity."""
VALUE_CRITERIA = tuple(name for name, criterion in CRITERIA.items() if criterion.power > 0)
"""Criteria of numbers, in units of the target or of its square."""
SPREAD_CRITERIA = ("squared_error", "sdr")
"""Those whose impurity tells how far the targets of a node spread: their variance, or its root."""


def own_name(criterion: str) -> str:
    """What we call a criterion that may have another name."""
    return ALIASES.get(criterion, criterion)


def with_aliases(names: tuple[str, ...]) -> set[str]:
    """Names of criteria, and their other names."""
    return {*names, *(alias for alias, name in ALIASES.items() if name in names)}
