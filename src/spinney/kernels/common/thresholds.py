"""Where a threshold lies between two neighbouring codes of a node: one rule for every method.

The midpoint between the highest value behind one code and the lowest behind the next, or the lower of the two where no
float lies between them. Where values are binned no bin is torn apart: the codes between may be bins of rows that
the node does not have. C4.5 moves the threshold down to the largest value of the whole table that is not above it.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import kernel
from spinney._types import HIGH, IS_BINNED, LOW, OFFSET

from .ties import C45_SMALL


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


@kernel
def place_threshold(
    features: np.ndarray, edges: np.ndarray, feature: int, cut: int, following: int, is_value: bool
) -> float:
    """Threshold between the highest value of code `cut` and the lowest of code `following` (-1: above all values).

    is_value: moved down to a value of the table, as C4.5 does.
    """
    if following < 0:
        return np.inf
    at = features[OFFSET, feature] - 1
    low = edges[HIGH, at + cut]
    high = edges[LOW, at + following]
    middle = low + (high - low) / 2.0
    if not (middle >= low and middle < high):  # neighbours one ulp apart, and infinities
        return low
    if is_value:
        return edges[HIGH, at + last_below(edges, at, cut, following - 1, middle + C45_SMALL)]
    if features[IS_BINNED, feature] == 0:
        return middle
    return max(middle, edges[HIGH, at + last_below(edges, at, cut, following - 1, middle)])
