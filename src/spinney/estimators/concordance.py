"""Harrell's concordance of times and risks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK = 1024  # rows that are compared with each other one by one; those before by a search


def measure_concordance(
    time: NDArray[np.float64], risk: NDArray[np.float64], weight: NDArray[np.float64] | None
) -> float:
    """Share of pairs whose order of times is known of which the earlier has the higher risk; equal risks count half.

    The order is known where the earlier time is that of an event, or both are one time and one of them is censored.

    Parameters
    ----------
    time : float64 (n_rows,)
        Below 0: censored.
    risk : float64 (n_rows,)
    weight : float64 (n_rows,), optional
        A pair weighs the product.
    """
    size, is_event = np.abs(time), time > 0.0
    given = np.ones(len(time)) if weight is None else weight
    order = np.lexsort((is_event, -size))  # latest first, of one time the censored before the events
    size, is_event, risk, given = size[order], is_event[order], risk[order], given[order]
    right = known = 0.0
    for lo in range(0, len(size), BLOCK):
        block = slice(lo, lo + BLOCK)
        later = np.argsort(risk[:lo], kind="stable")
        below = np.append(0.0, np.cumsum(given[:lo][later]))
        sorted_risk = risk[:lo][later]
        left, end = (np.searchsorted(sorted_risk, risk[block], side=side) for side in ("left", "right"))
        mass = given[block] * is_event[block]
        is_same = size[:lo] == size[lo]  # events of the same time as some of this block are no pairs
        right += float(np.sum(mass * 0.5 * (below[left] + below[end])))
        known += float(np.sum(mass * below[-1]))
        tied = np.flatnonzero(is_same & is_event[:lo])
        if len(tied):
            inside = mass[:, None] * given[tied] * (size[block, None] == size[tied])
            known -= float(np.sum(inside))
            right -= float(np.sum(inside * compare(risk[block, None], risk[tied])))
        n = len(size[block])
        is_pair = np.tri(n, k=-1, dtype=bool) & ~((size[block, None] == size[block]) & is_event[block])
        inside = mass[:, None] * given[block] * is_pair
        known += float(np.sum(inside))
        right += float(np.sum(inside * compare(risk[block, None], risk[block])))
    if known == 0.0:
        raise ValueError("score needs two rows of which it is known whose event came first: none are comparable")
    return right / known


def compare(risk: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 where the risk is higher than the other, 0.5 where they are equal."""
    return (risk > other) + 0.5 * (risk == other)
