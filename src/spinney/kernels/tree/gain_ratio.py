"""Gain ratio (Quinlan 1993, chapter 2): the gain of a test over what the test says about itself.

A ratio alone prefers tests that cut off a few rows, because their split information is small. So, as in C4.5, a
feature proposes its test of largest gain, and only features whose gain is at least the average are compared by ratio.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import kernel
from spinney._types import MISSING_CODE, RATIO_GAIN, RATIO_INFORMATION, SURROGATE, WEIGHT

from ..common.branch import branch_of_code
from ..common.criteria import times_log
from ..common.rng import below

BLUR = 2.0**-40  # of the score of a node: less than this is rounding


@kernel
def split_information(
    codes: np.ndarray,
    labels: np.ndarray,
    lo: int,
    hi: int,
    feature: int,
    kind: int,
    cut: int,  # last code of branch 0, or the first word of the subset
    missing: int,  # branch of missing rows
    policy: int,  # with SURROGATE missing rows count as a branch of their own, as in C4.5
    subsets: np.ndarray,
    xlogx: np.ndarray,
) -> float:
    """Entropy of the branch that a row of lo .. hi takes, times the weight of the rows, in units of the scores."""
    w_first = np.int64(0)
    w_second = np.int64(0)
    w_third = np.int64(0)
    for i in range(lo, hi):
        code = np.int64(codes[i, feature])
        w = np.int64(1) if len(labels) == 1 else labels[WEIGHT, i]
        branch = branch_of_code(code, kind, cut, missing, subsets)
        if code == MISSING_CODE and policy == SURROGATE:
            branch = np.int64(2)
        w_first += w if branch == 0 else np.int64(0)
        w_second += w if branch == 1 else np.int64(0)
        w_third += w if branch == 2 else np.int64(0)
    parts = times_log(w_first, xlogx) + times_log(w_second, xlogx) + times_log(w_third, xlogx)
    return times_log(w_first + w_second + w_third, xlogx) - parts


@kernel
def pick_ratio(ratios: np.ndarray, n: int, node_score: float, has_random_ties: int, key: np.uint64) -> int:
    """Place of the largest gain ratio among those of the first n tests whose gain is at least the average; -1: none.

    A feature without a test has no split information. Gains below the rounding of a score count as 0.
    """
    blur = abs(node_score) * BLUR
    total = 0.0
    n_tests = np.int64(0)
    for k in range(n):
        gain = ratios[RATIO_GAIN, k]
        if ratios[RATIO_INFORMATION, k] > 0.0:
            ratios[RATIO_GAIN, k] = gain if gain > blur else 0.0
            total += ratios[RATIO_GAIN, k]
            n_tests += 1
    best = -1.0
    slack = 0.0
    found = np.int64(-1)
    n_ties = np.int64(0)
    for k in range(n):
        gain = ratios[RATIO_GAIN, k]
        information = ratios[RATIO_INFORMATION, k]
        if information <= 0.0 or gain < total / np.float64(n_tests) - blur:
            continue
        ratio = gain / information
        own_slack = blur / information
        is_better = found < 0 or ratio > best + slack + own_slack
        if is_better:
            n_ties = np.int64(0)
        elif has_random_ties != 0 and ratio >= best - slack - own_slack:
            n_ties += 1
            is_better = below(key, n_ties, n_ties + 1) == 0
        if is_better:
            best = ratio
            slack = own_slack
            found = np.int64(k)
    return found
