"""Sums of addends over the rows of a node, which every search begins with."""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined
from spinney._types import ALL, N_ALL, PRESENT, Q_ALL, S_ALL, SPREAD, SQUARE, TARGET, W_ALL, WEIGHT


@inlined
def sum_weight(addends: np.ndarray, lo: int, hi: int) -> int:
    """Weight of rows lo .. hi."""
    if len(addends) == 1:
        return np.int64(hi - lo)
    total = np.int64(0)
    for i in range(np.uint64(lo), np.uint64(hi)):
        total += addends[WEIGHT, i]
    return total


@inlined
def sum_every_class(addends: np.ndarray, lo: int, hi: int, sums: np.ndarray, totals: np.ndarray) -> int:
    """As `sum_classes`, in a time that grows with the number of classes: for more rows than that."""
    n_classes = np.uint64(sums.shape[1])
    is_unit = len(addends) == 1
    for c in range(n_classes):
        sums[ALL, c] = 0
    for i in range(np.uint64(lo), np.uint64(hi)):
        sums[ALL, np.uint64(addends[TARGET, i])] += np.int64(1) if is_unit else addends[WEIGHT, i]
    n_present = np.uint64(0)
    weight = np.int64(0)
    for c in range(n_classes):
        held = sums[ALL, c]
        weight += held
        sums[PRESENT, n_present] = np.int64(c)  # never behind c
        n_present += np.uint64(held != 0)
    totals[N_ALL] = hi - lo
    totals[W_ALL] = weight
    return np.int64(n_present)


@inlined
def sum_classes(addends: np.ndarray, lo: int, hi: int, sums: np.ndarray, totals: np.ndarray) -> int:
    """Sum the weights of rows lo .. hi per class; list the classes present, ascending, and return their number."""
    first = np.uint64(lo)
    end = np.uint64(hi)
    is_unit = len(addends) == 1
    n_classes = sums.shape[1]
    if hi - lo > n_classes:  # no question whether a class is new, which is hard to predict
        return sum_every_class(addends, lo, hi, sums, totals)
    for i in range(first, end):
        sums[ALL, np.uint64(addends[TARGET, i])] = 0
    n_present = np.int64(0)
    weight = np.int64(0)
    for i in range(first, end):
        c = np.uint64(addends[TARGET, i])
        w = np.int64(1) if is_unit else addends[WEIGHT, i]
        held = sums[ALL, c]
        sums[ALL, c] = held + w
        weight += w
        if held == 0:
            at = n_present  # a fixed order, whatever the order of rows: scores are float sums over classes
            while at > 0 and sums[PRESENT, at - 1] > np.int64(c):
                sums[PRESENT, at] = sums[PRESENT, at - 1]
                at -= 1
            sums[PRESENT, at] = np.int64(c)
            n_present += 1
    totals[N_ALL] = hi - lo
    totals[W_ALL] = weight
    return n_present


@inlined
def sum_moments(addends: np.ndarray, lo: int, hi: int, totals: np.ndarray) -> None:
    """Sum the addends of rows lo .. hi."""
    total = np.int64(0)
    weight = np.int64(hi - lo)
    square = np.int64(0)
    first = np.uint64(lo)
    end = np.uint64(hi)
    for i in range(first, end):
        total += addends[TARGET, i]
    if len(addends) > 1:
        weight = np.int64(0)
        for i in range(first, end):
            weight += addends[WEIGHT, i]
        square = weight
    if len(addends) > 2:
        square = np.int64(0)
        for i in range(first, end):
            square += addends[SQUARE, i]
    totals[N_ALL] = hi - lo
    totals[W_ALL] = weight
    totals[S_ALL] = total
    totals[Q_ALL] = square
    totals[SPREAD] = 0
