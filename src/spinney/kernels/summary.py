"""What a grown tree knows of its nodes: weights, leaf values, impurities.

Leaves are summed from their rows in fixed point relative to the leaf itself; inner nodes from their children, which have
higher indices, by a walk from the last node to the first.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import kernel
from spinney._types import ALL, BEGIN, FIRST_CHILD, N_ROWS, PRESENT, SCORE, TEST, W_ALL, WEIGHT

from .criteria import score_classes
from .grow import sum_classes
from .route import count_branches

UNIT = 2.0**61


@kernel
def mean_power(
    labels: np.ndarray,
    ids: np.ndarray,
    truth: np.ndarray,
    lo: int,
    hi: int,
    weight: int,
    is_whole: int,
    base: float,
    width: float,
    power: int,
) -> float:
    """Weighted mean of ((truth - base) / width) ** power over rows lo .. hi; the ratio is at most 1 in magnitude.

    Whole weights multiply the quantised value, so that a row of weight 2 is exactly two rows.
    """
    unit = UNIT
    if is_whole != 0:
        bits = np.int64(0)
        while (np.int64(1) << bits) < weight:
            bits += 1
        unit = UNIT / np.float64(np.int64(1) << bits)
    total = np.int64(0)
    for i in range(lo, hi):
        x = (truth[ids[i]] - base) / width
        if power == 2:
            x *= x
        w = np.int64(1) if len(labels) == 1 else labels[WEIGHT, i]
        if is_whole != 0:
            total += w * np.int64(np.rint(x * unit))
        else:
            total += np.int64(np.rint(np.float64(w) / np.float64(weight) * x * unit))
    mean = np.float64(total) / unit
    if is_whole != 0:
        mean /= np.float64(weight)
    return mean


@kernel
def summarise_regression(
    labels: np.ndarray,
    ids: np.ndarray,
    truth: np.ndarray,
    is_whole: int,
    nodes: np.ndarray,
    n_nodes: int,
    weight: np.ndarray,  # (n_nodes,) int64, written
    value: np.ndarray,  # (n_nodes,) float64, written: mean target
    variance: np.ndarray,  # (n_nodes,) float64, written
) -> None:
    """Fill weight, mean and variance of every node."""
    for back in range(n_nodes):
        node = n_nodes - 1 - back
        n_branches = count_branches(nodes[TEST, node])
        if n_branches == 0:
            lo = nodes[BEGIN, node]
            hi = lo + nodes[N_ROWS, node]
            total = np.int64(0)
            lowest = truth[ids[lo]]
            highest = lowest
            for i in range(lo, hi):
                total += 1 if len(labels) == 1 else labels[WEIGHT, i]
                lowest = min(lowest, truth[ids[i]])
                highest = max(highest, truth[ids[i]])
            weight[node] = total
            value[node] = lowest
            variance[node] = 0.0
            if highest > lowest:
                width = highest - lowest
                mean = lowest + width * mean_power(labels, ids, truth, lo, hi, total, is_whole, lowest, width, 1)
                spread = mean_power(labels, ids, truth, lo, hi, total, is_whole, mean, width, 2)
                value[node] = mean
                variance[node] = width * width * spread
            continue
        first = nodes[FIRST_CHILD, node]
        total = np.int64(0)
        for child in range(first, first + n_branches):
            total += weight[child]
        shift = 0.0
        for child in range(first, first + n_branches):
            shift += np.float64(weight[child]) / np.float64(total) * (value[child] - value[first])
        mean = value[first] + shift
        spread = 0.0
        for child in range(first, first + n_branches):
            d = value[child] - mean
            spread += np.float64(weight[child]) / np.float64(total) * (variance[child] + d * d)
        weight[node] = total
        value[node] = mean
        variance[node] = spread


@kernel
def summarise_classes(
    labels: np.ndarray,  # labels[TARGET] holds classes
    sums: np.ndarray,
    totals: np.ndarray,
    criterion: int,
    xlogx: np.ndarray,
    nodes: np.ndarray,
    node_values: np.ndarray,
    n_nodes: int,
    weight: np.ndarray,  # (n_nodes,) int64, written
    second: np.ndarray,  # (n_nodes,) int64, written: weight of class 1
    leaf: np.ndarray,  # (n_nodes,) float64, written for leaves: class of a pure leaf, or -1 - row of `distributions`
    distributions: np.ndarray,  # (n_mixed, n_classes) int64, written; (0, n_classes) to count only
) -> int:
    """Fill weights, leaf scores and class weights; return the number of leaves that hold more than one class."""
    n_mixed = np.int64(0)
    for back in range(n_nodes):
        node = n_nodes - 1 - back
        n_branches = count_branches(nodes[TEST, node])
        if n_branches > 0:
            first = nodes[FIRST_CHILD, node]
            weight[node] = 0
            second[node] = 0
            for child in range(first, first + n_branches):
                weight[node] += weight[child]
                second[node] += second[child]
            continue
        lo = nodes[BEGIN, node]
        n_present = sum_classes(labels, lo, lo + nodes[N_ROWS, node], sums, totals)
        weight[node] = totals[W_ALL]
        second[node] = 0
        for k in range(n_present):
            if sums[PRESENT, k] == 1:
                second[node] = sums[ALL, 1]
        node_values[SCORE, node] = score_classes(criterion, sums, ALL, totals[W_ALL], n_present, xlogx)
        leaf[node] = np.float64(sums[PRESENT, 0])
        if n_present > 1:
            leaf[node] = np.float64(-1 - n_mixed)
            if n_mixed < len(distributions):
                for k in range(n_present):
                    c = sums[PRESENT, k]
                    distributions[n_mixed, c] = sums[ALL, c]
            n_mixed += 1
    return n_mixed
