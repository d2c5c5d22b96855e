"""Where a threshold lies between two codes: one rule for every method."""

from __future__ import annotations

import numpy as np

from spinney._jit import kernel
from spinney._types import HIGH, IS_BINNED, LOW, OFFSET


@kernel
def place_cut(features: np.ndarray, edges: np.ndarray, feature: int, cut: int, following: int) -> float:
    """Threshold between the highest value of code `cut` and the lowest of code `following` (-1: above all values)."""
    if following < 0:
        return np.inf
    at = features[OFFSET, feature] - 1
    low = edges[HIGH, at + cut]
    high = edges[LOW, at + following]
    middle = low + (high - low) / 2.0
    if not (middle >= low and middle < high):  # neighbours one ulp apart, and infinities
        return low
    if features[IS_BINNED, feature] == 0:
        return middle
    # the codes between may be bins of rows that the node does not have: none of them is torn apart
    return max(middle, edges[HIGH, at + last_below(edges, at, cut, following - 1, middle)])


@kernel
def last_below(edges: np.ndarray, at: int, first: int, last: int, value: float) -> int:
    """The last code of first .. last whose lowest value, at edges[LOW, at + code], is not above `value`."""
    while first < last:
        middle = (first + last + 1) >> 1
        if edges[LOW, at + middle] <= value:
            first = middle
        else:
            last = middle - 1
    return first
