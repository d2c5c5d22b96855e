"""Thresholds of libraries that round a value to float32 before they compare it, as thresholds of the value itself.

XGBoost, CatBoost and scikit-learn's trees compare the nearest float32 of a value. Rounding never changes the order of
two values, so those whose float32 is not above a threshold are those up to some float64: the last one that rounds to
the largest float32 below the threshold. That is the middle between this float32 and the next one above, or, where the
middle rounds up (to the even one of the two), the float64 right below it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.tree.bitvectors import round_down

Floats = NDArray[np.float64]


def cut_rounded(threshold: NDArray[Any]) -> Floats:
    """The float64 up to which values round to a float32 that is not above each threshold; NaN stays NaN."""
    low = round_down(np.asarray(threshold, np.float64))
    with np.errstate(over="ignore", invalid="ignore"):
        high = np.nextafter(low, np.float32(np.inf))
        is_end = np.isinf(high)
        beyond = np.where(is_end, np.float64(2.0**128), high.astype(np.float64))  # as if float32 went on
        is_start = np.isneginf(low)
        below = np.where(is_start, -np.float64(2.0**128), low.astype(np.float64))
        middle = np.where(is_start & is_end, np.nan, 0.5 * (below + beyond))
        rounded = middle.astype(np.float32)
        cut = np.where(rounded > low, np.nextafter(middle, -np.inf), middle)
    cut = np.where(np.isposinf(low), np.inf, cut)
    return np.where(np.isnan(threshold), np.nan, cut)


def cut_rounded_below(threshold: NDArray[Any]) -> Floats:
    """The float64 up to which values round to a float32 that is below each threshold, a float32."""
    with np.errstate(over="ignore"):
        below = np.nextafter(np.asarray(threshold, np.float32), np.float32(-np.inf))
    return cut_rounded(below)
