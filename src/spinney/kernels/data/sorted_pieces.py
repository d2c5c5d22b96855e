"""Bins of a column that threads have sorted in pieces, without putting the pieces together.

Words as in `binning`; the *rank* of a value is its place among all of the column. A rank is a place in each piece: as
many values stand before these places as the rank says, and none of them is above one behind. Bins never part equal
values, so that the rank where one begins or ends is told by a value: the first of each piece that is not below it.

    piece 0   1 1 2 │ 4 7      rank 5: the places of 3, or of 4, which are the same
    piece 1   0 2 │ 5 5 NaN
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined, kernel

END, AT, NEXT = range(3)  # rows of `places`: behind the known values, where the bin begins, for use


@inlined
def find_end(values: np.ndarray, begin: int, end: int) -> int:
    """The first NaN of a piece, or its end."""
    lo = np.int64(begin)
    hi = np.int64(end)
    while lo < hi:
        middle = (lo + hi) >> 1
        if values[middle] == values[middle]:
            lo = middle + 1
        else:
            hi = middle
    return lo


@kernel
def place_value(
    values: np.ndarray, value: float, is_behind: bool, begin: np.ndarray, places: np.ndarray, row: int
) -> int:
    """Write the places of a value to a row of `places`, or those behind all that equal it; return their rank."""
    rank = np.int64(0)
    for p in range(len(begin) - 1):
        lo = np.int64(begin[p])
        hi = np.int64(places[END, p])
        while lo < hi:
            middle = (lo + hi) >> 1
            if values[middle] < value or (is_behind and values[middle] == value):
                lo = middle + 1
            else:
                hi = middle
        places[row, p] = lo
        rank += lo - begin[p]
    return rank


@inlined
def lowest_behind(values: np.ndarray, places: np.ndarray, row: int) -> float:
    """The lowest value at the places of a row or behind them."""
    p = np.int64(0)
    while places[row, p] == places[END, p]:
        p += 1
    lowest = values[places[row, p]]
    for q in range(p + 1, places.shape[1]):
        if places[row, q] < places[END, q]:
            value = values[places[row, q]]
            lowest = value if value < lowest else lowest
    return lowest


@inlined
def highest_before(values: np.ndarray, begin: np.ndarray, places: np.ndarray, row: int) -> float:
    """The highest value before the places of a row."""
    p = np.int64(0)
    while places[row, p] == begin[p]:
        p += 1
    highest = values[places[row, p] - 1]
    for q in range(p + 1, places.shape[1]):
        if places[row, q] > begin[q]:
            value = values[places[row, q] - 1]
            highest = value if value > highest else highest
    return highest


@kernel
def value_behind(values: np.ndarray, n_between: int, places: np.ndarray) -> float:
    """The value that so many others stand before, from the places AT on.

    Of every piece the last of its next few values is looked at. Where that is least, these few belong to the wanted
    ones: of no other piece more than one less is below them.
    """
    n_pieces = np.int64(places.shape[1])
    for p in range(n_pieces):
        places[NEXT, p] = places[AT, p]
    n_left = np.int64(n_between)
    while n_left > 0:
        few = max(n_left // n_pieces, np.int64(1))
        best = np.int64(-1)
        n_best = np.int64(0)
        lowest = values[0]
        for p in range(n_pieces):
            n = min(few, places[END, p] - places[NEXT, p])
            if n > 0:
                value = values[places[NEXT, p] + n - 1]
                if best < 0 or value < lowest:
                    best = np.int64(p)
                    n_best = n
                    lowest = value
        places[NEXT, best] += n_best
        n_left -= n_best
    return lowest_behind(values, places, NEXT)


@door
def cut_pieces(
    values: np.ndarray,  # (n_rows,) float32 or float64: sorted from begin[p] to begin[p + 1], NaN last there
    begin: np.ndarray,  # (n_pieces + 1,) int64
    max_bins: int,
    places: np.ndarray,  # (3, n_pieces) int64 scratch
    tail: np.ndarray,  # (max_bins,) int64 scratch: ranks where the last runs start, the last run first
    tail_values: np.ndarray,  # (max_bins,) of the type of the values, scratch: what they hold
    low: np.ndarray,  # the same, written
    high: np.ndarray,
) -> tuple[int, int]:
    """Write the lowest and highest value of each bin as `binning.cut` does; return the number of bins and of values."""
    known = np.int64(0)
    for p in range(len(begin) - 1):
        places[END, p] = find_end(values, begin[p], begin[p + 1])
        places[AT, p] = places[END, p]
        known += places[END, p] - begin[p]
    at = known
    n_runs = np.int64(0)
    while at > 0 and n_runs < max_bins:
        tail_values[n_runs] = highest_before(values, begin, places, AT)
        at = place_value(values, tail_values[n_runs], False, begin, places, AT)
        tail[n_runs] = at
        n_runs += 1
    n = np.int64(0)
    if at == 0:
        while n < n_runs:
            low[n] = tail_values[n_runs - 1 - n]
            high[n] = low[n]
            n += 1
        return n, known
    for p in range(len(begin) - 1):
        places[AT, p] = begin[p]
    first = np.int64(0)
    while first < known:
        n_left = max_bins - n
        low[n] = lowest_behind(values, places, AT)
        end = known
        value = low[n]
        if n_left > 1:
            share = (known - first) // n_left
            value = value_behind(values, share, places)
            start = place_value(values, value, False, begin, places, NEXT)
            end = place_value(values, value, True, begin, places, AT)
            if start > first and start - first + (end - start + 1) // 2 > share:
                end = place_value(values, value, False, begin, places, AT)
            if end > tail[n_left - 2]:  # a value for each bin after this one
                end = place_value(values, tail_values[n_left - 2], False, begin, places, AT)
        else:
            for p in range(len(begin) - 1):
                places[AT, p] = places[END, p]
        high[n] = highest_before(values, begin, places, AT)
        first = end
        n += 1
    return n, known
