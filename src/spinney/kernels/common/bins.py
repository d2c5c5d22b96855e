"""List the bins of a node, one per present code of a feature, in code order.

Two ways to the same integers: a *histogram*, the sums of every code, where codes are few for the rows; else sorted
*keys*. Both leave the sums of each bin in `bins`, and those of the missing rows in `totals`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import (
    BIN_CODE,
    BIN_N,
    BIN_SQUARE,
    BIN_SUM,
    BIN_WEIGHT,
    MISSING_CODE,
    N_MISSING,
    Q_MISSING,
    S_MISSING,
    TARGET,
    W_MISSING,
    WEIGHT,
)

from .structs import SortedKeys


@kernel
def list_bins_by_histogram(
    rows: Any,  # any tuple with codes and addends
    lo: int,
    hi: int,
    feature: int,
    n_codes: int,
    histogram: np.ndarray,
    bins: np.ndarray,
    totals: np.ndarray,
) -> int:
    """List the bins of rows lo .. hi; return how many there are. The histogram is zero before and after."""
    codes, addends = rows.codes, rows.addends
    n_addends = len(addends)
    width = 2 if n_addends == 1 else 4
    if n_addends == 1:  # every weight is 1
        for i in range(lo, hi):
            at = np.int64(codes[i, feature]) << 1
            histogram[at] += 1
            histogram[at + 1] += addends[TARGET, i]
    else:
        for i in range(lo, hi):
            at = np.int64(codes[i, feature]) << 2
            histogram[at] += 1
            histogram[at + 1] += addends[TARGET, i]
            histogram[at + 2] += addends[WEIGHT, i]
            histogram[at + 3] += addends[n_addends - 1, i]
    return list_bins(n_codes, width, histogram, bins, totals)


@kernel
def list_bins(n_codes: int, width: int, histogram: np.ndarray, bins: np.ndarray, totals: np.ndarray) -> int:
    """List the bins of a histogram of `width` sums a code, which is emptied; return how many there are."""
    n_bins = np.int64(0)
    for code in range(1, n_codes + 1):
        at = code * width
        n = histogram[at]
        if n == 0:
            continue
        bins[BIN_CODE, n_bins] = code
        bins[BIN_N, n_bins] = n
        bins[BIN_SUM, n_bins] = histogram[at + 1]
        if width == 4:
            bins[BIN_WEIGHT, n_bins] = histogram[at + 2]
            bins[BIN_SQUARE, n_bins] = histogram[at + 3]
        for k in range(width):
            histogram[at + k] = 0
        n_bins += 1
    totals[N_MISSING] = histogram[0]
    totals[S_MISSING] = histogram[1]
    totals[W_MISSING] = histogram[0 if width == 2 else 2]
    totals[Q_MISSING] = histogram[width - 1]
    for k in range(width):
        histogram[k] = 0
    return n_bins


@kernel
def list_bins_by_keys(ordered: SortedKeys, shift: int, bins: np.ndarray, totals: np.ndarray) -> int:
    """List the bins of a node whose rows are in the order of a feature's codes; return how many there are.

    shift: bits of a position in a key.
    """
    keys, row, addends, base = ordered.keys, ordered.row, ordered.addends, ordered.base
    n_addends = len(addends)
    mask = (np.int64(1) << shift) - 1
    n_bins = np.int64(0)
    last = np.int64(-1)
    n = np.int64(0)
    total = np.int64(0)
    weight = np.int64(0)
    square = np.int64(0)
    totals[N_MISSING] = 0
    for k in range(ordered.first, ordered.end):
        key = np.int64(keys[row, k])
        code = key >> shift
        i = base + (key & mask)
        if code != last:
            last = code
            n_bins += 1 if code != MISSING_CODE else 0
            n = 0
            total = 0
            weight = 0
            square = 0
        n += 1
        total += addends[TARGET, i]
        if n_addends > 1:
            weight += addends[WEIGHT, i]
            square += addends[n_addends - 1, i]
        else:
            weight += 1
        if code == MISSING_CODE:
            totals[N_MISSING] = n
            totals[S_MISSING] = total
            totals[W_MISSING] = weight
            totals[Q_MISSING] = square
        else:
            bins[BIN_CODE, n_bins - 1] = code
            bins[BIN_N, n_bins - 1] = n
            bins[BIN_SUM, n_bins - 1] = total
            bins[BIN_WEIGHT, n_bins - 1] = weight
            bins[BIN_SQUARE, n_bins - 1] = square
    return n_bins


@inlined
def comes_after(score: float, code: int, other_score: float, other_code: int) -> bool:
    """Whether a bin comes after another: by score, then by code."""
    return score > other_score or (score == other_score and code > other_code)


@kernel
def order_bins(bins: np.ndarray, scores: np.ndarray, n_bins: int, slack: float) -> None:
    """Sort the bins by score, then by code; scores that differ by at most `slack` count as equal.

    Shell's sort, in place; again if equal scores had been told apart by a rounding. A bin moves as a whole.
    """
    has_square = len(bins) > BIN_SQUARE
    for _ in range(2):
        gap = n_bins
        while gap > 1:
            gap = max(gap * 4 // 9, np.int64(1))
            for k in range(gap, n_bins):
                score = scores[k]
                code = bins[BIN_CODE, k]
                at = np.int64(k)
                if not comes_after(scores[at - gap], bins[BIN_CODE, at - gap], score, code):
                    continue
                n = bins[BIN_N, k]
                total = bins[BIN_SUM, k]
                weight = bins[BIN_WEIGHT, k]
                square = bins[BIN_SQUARE, k] if has_square else np.int64(0)
                while at >= gap and comes_after(scores[at - gap], bins[BIN_CODE, at - gap], score, code):
                    scores[at] = scores[at - gap]
                    for row in range(len(bins)):
                        bins[row, at] = bins[row, at - gap]
                    at -= gap
                scores[at] = score
                bins[BIN_CODE, at] = code
                bins[BIN_N, at] = n
                bins[BIN_SUM, at] = total
                bins[BIN_WEIGHT, at] = weight
                if has_square:
                    bins[BIN_SQUARE, at] = square
        n_equal = np.int64(0)
        for b in range(1, n_bins):
            if scores[b] != scores[b - 1] and scores[b] - scores[b - 1] <= slack:
                scores[b] = scores[b - 1]
                n_equal += 1
        if n_equal == 0:
            return
