"""Standard errors and a t-test for scores of resampled folds.

Folds share training rows, so their scores are not independent, and the plain t-test finds differences where there are
none. Nadeau and Bengio (2003, Machine Learning 52, equation 8) widen the variance of the mean of k differences from
`s²/k` to `s² (1/k + n_test/n_train)`. Error bars have the same factor.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def standard_error(values: Sequence[float] | NDArray[np.float64], ratio: float, step: float = 0.0) -> float | None:
    """Corrected standard error of the mean of scores or differences; `ratio` is held-out rows over training rows.

    Shares of few rows are multiples of a `step`, and may be equal by that alone: their spread is never taken for less
    than that of rounding to it.
    """
    if len(values) < 2:
        return None
    return max(float(np.std(values, ddof=1)), step / math.sqrt(12.0)) * math.sqrt(1.0 / len(values) + ratio)


def corrected_t_test(
    differences: Sequence[float] | NDArray[np.float64], ratio: float, step: float = 0.0
) -> float | None:
    """The two-sided p-value that the mean difference is 0, by the corrected resampled t-test.

    None with fewer than two differences; without a step, with differences that are all equal 1 if they are 0, else 0.

    Examples
    --------
    >>> round(corrected_t_test([0.02, 0.01, 0.03, 0.02, 0.02], ratio=0.25), 4)
    0.0135
    """
    from scipy.special import stdtr

    error = standard_error(differences, ratio, step)
    if error is None:
        return None
    mean = float(np.mean(differences))
    if error == 0.0:
        return 1.0 if mean == 0.0 else 0.0
    return float(2.0 * stdtr(len(differences) - 1, -abs(mean / error)))
