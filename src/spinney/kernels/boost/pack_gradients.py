"""Gradients and hessians as packed sums, one integer a row, before a boosted tree grows."""

from __future__ import annotations

import numpy as np

from spinney._jit import door
from spinney._types import SUM_SHIFT

from ..common.rng import fold

S11 = np.uint64(11)
UNIT = 1.0 / 9007199254740992.0


@door
def pack(
    g: np.ndarray,  # (n_rows,) float64
    h: np.ndarray,
    weight: np.ndarray,  # (n_rows,) or (1,) float64
    is_whole: bool,  # weights multiply what is rounded: a row of weight 2 is two rows
    g_scale: float,
    h_scale: float,
    is_random: bool,  # round up with the chance of the fraction, by a hash of the row
    key: np.uint64,
    lo: int,
    hi: int,
    sums: np.ndarray,  # (n_rows,) int64, written
) -> tuple[int, int]:
    """Write the packed sums of rows lo .. hi; return their sum, and the largest hessian.

    A row's hessian is 1 unit at least, so that no present code has sum 0.
    """
    is_unit = len(weight) == 1
    total = np.int64(0)
    largest = np.int64(0)
    for i in range(lo, hi):
        w = weight[0] if is_unit else weight[i]
        gradient = g[i] * g_scale
        hessian = h[i] * h_scale
        if not is_whole:
            gradient *= w
            hessian *= w
            w = 1.0
        if is_random:
            word = fold(key, np.uint64(i))
            gradient = np.floor(gradient + np.float64(word >> S11) * UNIT)
            hessian = np.floor(hessian + np.float64(fold(word, np.uint64(1)) >> S11) * UNIT)
        else:
            gradient = np.rint(gradient)
            hessian = np.rint(hessian)
        times = np.int64(w)
        units = np.int64(max(hessian, 1.0)) * times
        packed = ((np.int64(gradient) * times) << SUM_SHIFT) + units
        sums[i] = packed
        total += packed
        largest = max(largest, units)
    return total, largest


@door
def gather_rows(
    rows: np.ndarray,  # (n,) int32: rows of the table, in their order in the buffer
    words_0: np.ndarray,
    sums_0: np.ndarray,
    n_words: int,
    lo: int,
    hi: int,
    words: np.ndarray,
    sums: np.ndarray,
    ids: np.ndarray,
) -> int:
    """Copy rows of the table to the buffer; return the sum of their packed sums."""
    total = np.int64(0)
    for k in range(lo, hi):
        row = np.int64(rows[k])
        ids[k] = row
        sums[k] = sums_0[row]
        total += sums_0[row]
        for w in range(n_words):
            words[k * n_words + w] = words_0[row * n_words + w]
    return total
