"""Harrell's concordance of times and risks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spinney.estimators.checks import scale_down

if TYPE_CHECKING:
    from numpy.typing import NDArray


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
    given = np.ones(len(time)) if weight is None else scale_down(weight)  # so that products stay finite
    order = np.lexsort((is_event, -size))  # latest first, of one time the censored before the events
    size, is_event, given = size[order], is_event[order], given[order]
    _, rank = np.unique(risk[order], return_inverse=True)
    events = np.flatnonzero(is_event)
    _, first, of_time = np.unique(size[events], return_index=True, return_inverse=True)
    n_later = events[first][of_time]  # rows whose time is known to be later stand before the first event of the time
    total = np.append(0.0, np.cumsum(given))
    known = float(np.sum(given[events] * total[n_later]))
    if known == 0.0:
        raise ValueError("score needs two rows of which it is known whose event came first: none are comparable")
    lower = sum_lower(rank.astype(np.int64), given, events, n_later)
    return min(float(np.sum(given[events] * lower)) / known, 1.0)


def has_known_order(time: NDArray[np.float64]) -> bool:
    """Whether there are two rows of which it is known whose event came first; time: below 0 where it is censored."""
    events, censored = time[time > 0.0], -time[time < 0.0]
    if len(events) == 0:
        return False
    first = events.min()
    return bool(events.max() > first or np.any(censored >= first))


def sum_lower(
    rank: NDArray[np.int64], weight: NDArray[np.float64], rows: NDArray[np.intp], n_first: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Weights of those of the first rows that rank lower than a row, and half of those that rank equally.

    The first rows are parts of 1, 2, 4, ... rows, one for each bit of their number, and each part is sorted once.

    Parameters
    ----------
    rank : int64 (n_rows,)
        0, 1, ...
    weight : float64 (n_rows,)
    rows : intp (n_asked,)
    n_first : intp (n_asked,)
        How many of the first rows each of them is compared with.

    Returns
    -------
    lower : float64 (n_asked,)
    """
    lower, n_ranks = np.zeros(len(rows)), int(rank.max()) + 1
    for level in range(int(n_first.max(initial=0)).bit_length()):
        asked = np.flatnonzero((n_first >> level) & 1)
        key = (np.arange(len(rank)) >> level) * n_ranks + rank
        order = np.argsort(key, kind="stable")
        below, key = np.append(0.0, np.cumsum(weight[order])), key[order]
        part = (n_first[asked] >> level) - 1
        wanted = part * n_ranks + rank[rows[asked]]
        left, right = (np.searchsorted(key, wanted, side=side) for side in ("left", "right"))
        lower[asked] += 0.5 * (below[left] + below[right]) - below[part << level]
    return lower
