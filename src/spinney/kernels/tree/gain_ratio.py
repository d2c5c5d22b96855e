"""Gain ratio (Quinlan 1993, chapter 2): the gain of a test over what the test says about itself.

A ratio alone prefers tests that cut off a few rows, because their split information is small. So, as in C4.5, a
feature proposes its test of largest gain, and only features whose gain is at least the average are compared by ratio.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined
from spinney._types import MISSING_CODE, SURROGATE, WEIGHT

from ..common.branch import branch_of_code
from ..common.criteria import times_log
from ..common.rng import below
from ..common.structs import CodeTest, ExtraScratch, OpenNode, Rows

BLUR = 2.0**-40  # of the score of a node: less than this is rounding


@inlined
def split_information(
    test: CodeTest,
    policy: int,  # with SURROGATE missing rows count as a branch of their own, as in C4.5
    node: OpenNode,
    rows: Rows,
    subsets: np.ndarray,
    xlogx: np.ndarray,
    extra: ExtraScratch | None,
) -> float:
    """Entropy of the branch that a row of the node takes, times the weight of the rows, in units of the scores."""
    if extra is None:
        return 0.0
    codes, addends = rows.codes, rows.addends
    w_first = np.int64(0)
    w_second = np.int64(0)
    w_third = np.int64(0)
    for i in range(node.lo, node.hi):
        code = np.int64(codes[i, test.feature])
        w = np.int64(1) if len(addends) == 1 else addends[WEIGHT, i]
        branch = np.int64(branch_of_code(code, test.kind, test.cut, test.missing, subsets))
        if code == MISSING_CODE and policy == SURROGATE:
            branch = np.int64(2)
        w_first += w if branch == 0 else np.int64(0)
        w_second += w if branch == 1 else np.int64(0)
        w_third += w if branch == 2 else np.int64(0)
    parts = times_log(w_first, xlogx) + times_log(w_second, xlogx) + times_log(w_third, xlogx)
    return times_log(w_first + w_second + w_third, xlogx) - parts


@inlined
def propose(extra: ExtraScratch | None, k: int, gain: float, information: float) -> None:
    """Note the test of largest gain of the k-th feature; information 0: it has none."""
    if extra is None:
        return
    extra.ratio_gain[k] = gain
    extra.ratio_information[k] = information


@inlined
def pick_ratio(extra: ExtraScratch | None, n: int, node_score: float, has_random_ties: bool, key: np.uint64) -> int:
    """Place of the largest gain ratio among those of the first n tests whose gain is at least the average; -1: none.

    A feature without a test has no split information. Gains below the rounding of a score count as 0. Ties are those
    of `common.ties`, but here each ratio has a slack of its own, and a tie that wins brings its ratio along.
    """
    if extra is None:
        return -1
    gains, informations = extra.ratio_gain, extra.ratio_information
    blur = abs(node_score) * BLUR
    total = 0.0
    n_tests = np.int64(0)
    for k in range(n):
        if informations[k] > 0.0:
            gains[k] = gains[k] if gains[k] > blur else 0.0
            total += gains[k]
            n_tests += 1
    best = -1.0
    slack = 0.0
    found = np.int64(-1)
    n_ties = np.int64(0)
    for k in range(n):
        gain = gains[k]
        information = informations[k]
        if information <= 0.0 or gain < total / np.float64(n_tests) - blur:
            continue
        ratio = gain / information
        own_slack = blur / information
        is_better = found < 0 or ratio > best + slack + own_slack
        if is_better:
            n_ties = np.int64(0)
        elif has_random_ties and ratio >= best - slack - own_slack:
            n_ties += 1
            is_better = below(key, n_ties, n_ties + 1) == 0
        if is_better:
            best = ratio
            slack = own_slack
            found = np.int64(k)
    return found
