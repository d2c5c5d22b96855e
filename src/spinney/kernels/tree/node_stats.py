"""Sum up a grown tree: weight, impurity and value of every node, and the bytes that prediction reads.

A forward walk over the nodes settles the leaves from their rows; a backward walk (children stand behind their parent)
settles the inner nodes from their children. Sums over rows are integers, so the order of rows inside a leaf does not
show; floats are combined in the order of the branches.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined, kernel
from spinney._types import (
    BEGIN,
    CUT_VALUE,
    ENTROPY,
    FEATURE_SHIFT,
    FIRST_CHILD,
    KIND_BITS,
    LOWER,
    MISCLASSIFICATION,
    MISSING_BITS,
    MOST_BRANCHES,
    N_ROWS,
    SCORE,
    SDR,
    TARGET,
    TEST,
    THRESHOLD,
    UPPER,
    WEIGHT,
)

from ..common.elementary import log2
from ..common.means import settle_value_leaf

LOW_LIMB = 2.0**30  # units of the second limb in one of the first: sums of both stay below 2**62
CHILD_SHIFT = np.uint64(32)
MARGIN = 1.0 + 2.0**-20  # as `tree.target.MARGIN`: absorbs roundings of the sum that a scale is taken from


@inlined
def two_impurity(criterion: int, share: float) -> float:
    """Impurity of a node with this share of class 1."""
    other = 1.0 - share
    if criterion == ENTROPY:
        impurity = 0.0
        if share > 0.0:
            impurity -= share * log2(share)
        if other > 0.0:
            impurity -= other * log2(other)
        return impurity
    if criterion == MISCLASSIFICATION:
        return min(share, other)
    return 2.0 * share * other


@kernel
def many_impurity(criterion: int, class_sums: np.ndarray, weight: int) -> float:
    """Impurity of a leaf with these class weights."""
    total = 0.0
    for k in range(len(class_sums)):
        share = np.float64(class_sums[k]) / np.float64(weight)
        if criterion == ENTROPY:
            if share > 0.0:
                total -= share * log2(share)
        elif criterion == MISCLASSIFICATION:
            total = max(total, share)
        else:
            total += share * share
    return max(total if criterion == ENTROPY else 1.0 - total, 0.0)


@inlined
def sum_weight(labels: np.ndarray, lo: int, hi: int) -> int:
    """Weight of rows lo .. hi."""
    if len(labels) == 1:
        return np.int64(hi - lo)
    total = np.int64(0)
    for i in range(np.uint64(lo), np.uint64(hi)):
        total += labels[WEIGHT, i]
    return total


@inlined
def count_ones(labels: np.ndarray, lo: int, hi: int) -> int:
    """Weight of class 1 among rows lo .. hi: two classes go as class times weight."""
    total = np.int64(0)
    for i in range(np.uint64(lo), np.uint64(hi)):
        if labels[TARGET, i] != 0:
            total += np.int64(1) if len(labels) == 1 else labels[WEIGHT, i]
    return total


@inlined
def is_mixed(labels: np.ndarray, lo: int, hi: int) -> bool:
    """Whether rows lo .. hi have more than one class."""
    first = labels[TARGET, lo]
    for i in range(np.uint64(lo + 1), np.uint64(hi)):
        if labels[TARGET, i] != first:
            return True
    return False


@kernel
def sum_classes(labels: np.ndarray, lo: int, hi: int, class_sums: np.ndarray) -> None:
    """Write the weight of every class among rows lo .. hi."""
    for k in range(len(class_sums)):
        class_sums[k] = 0
    for i in range(np.uint64(lo), np.uint64(hi)):
        class_sums[labels[TARGET, i]] += np.int64(1) if len(labels) == 1 else labels[WEIGHT, i]


@door
def finish(
    labels: np.ndarray,
    ids: np.ndarray,
    truth: np.ndarray,
    nodes: np.ndarray,
    node_values: np.ndarray,
    n_nodes: int,
    n_features: int,
    criterion: int,
    is_whole: int,
    has_monotone: int,
    weight_unit: float,  # worth of a unit of weight
    score_unit: float,  # worth of a unit of a node's score, times its weight; three classes or more
    centre: float,  # of the targets; here and below: regression only
    stretch: float,  # impurities are those of (target - centre) * stretch
    share: float,  # turns fixed-point weights into at most 1 each, or into whole ones
    rough_scale: float,  # of a sum of weights
    bound_unit: float,  # worth of a unit of a monotone bound
    value_unit: float,  # turns targets into the user's units in two steps, for its square may leave a float's range
    value_unit_2: float,
    means: np.ndarray | None,  # (n_nodes,) float64 scratch; None: classes
    class_sums: np.ndarray | None,  # (n_classes,) int64 scratch; None: regression
    sums: np.ndarray,  # (2, n_nodes) int64 scratch: weight, and weight of class 1 of two
    distributions: np.ndarray,  # (room, n_classes) float64, written
    test: np.ndarray,  # here and below: as in `Tree`, written
    first_child: np.ndarray,
    n_rows: np.ndarray,
    threshold: np.ndarray,
    weight: np.ndarray,
    impurity: np.ndarray,
    links: np.ndarray,  # `Tree.hot`
    cuts: np.ndarray,  # the same memory as float64
) -> int:
    """Fill the arrays of a tree; return its mixed leaves. Where they exceed the room, call again with more of it."""
    n_mixed = np.int64(0)
    scale = 0.0
    for node in range(n_nodes):
        test[node] = nodes[TEST, node]
        first_child[node] = nodes[FIRST_CHILD, node]
        n_rows[node] = nodes[N_ROWS, node]
        if nodes[FIRST_CHILD, node] != 0:
            threshold[node] = node_values[CUT_VALUE, node]
            continue
        lo = nodes[BEGIN, node]
        hi = lo + nodes[N_ROWS, node]
        total = sum_weight(labels, lo, hi)
        sums[0, node] = total
        if means is not None:
            value, scale = settle_value_leaf(
                labels, ids, truth, node, lo, hi, total, is_whole, centre, stretch, share, rough_scale, scale, means,
                impurity,
            )  # fmt: skip
            if has_monotone != 0:
                value = max(value, node_values[LOWER, node] * bound_unit + centre)
                value = min(value, node_values[UPPER, node] * bound_unit + centre)
            threshold[node] = value * value_unit * value_unit_2
        if class_sums is not None:
            if len(class_sums) <= 2:
                ones = count_ones(labels, lo, hi)
                sums[1, node] = ones
                threshold[node] = 1.0 if ones > 0 else 0.0
                if ones > 0 and ones < total:
                    if n_mixed < len(distributions):
                        distributions[n_mixed, 0] = np.float64(total - ones) * weight_unit
                        distributions[n_mixed, 1] = np.float64(ones) * weight_unit
                    n_mixed += 1
                    threshold[node] = -np.float64(n_mixed)
                continue
            impurity[node] = 0.0
            threshold[node] = np.float64(labels[TARGET, lo])
            if is_mixed(labels, lo, hi):
                if n_mixed < len(distributions):
                    sum_classes(labels, lo, hi, class_sums)
                    impurity[node] = many_impurity(criterion, class_sums, total)
                    for k in range(len(class_sums)):
                        distributions[n_mixed, k] = np.float64(class_sums[k]) * weight_unit
                n_mixed += 1
                threshold[node] = -np.float64(n_mixed)
    stay = (np.uint64(n_features) << np.uint64(FEATURE_SHIFT)) | np.uint64(THRESHOLD)
    for node in range(n_nodes - 1, -1, -1):
        child = nodes[FIRST_CHILD, node]
        cuts[node, 0] = threshold[node]
        if child == 0:
            links[node, 1] = (np.uint64(node) << CHILD_SHIFT) | stay
        else:
            links[node, 1] = (np.uint64(child) << CHILD_SHIFT) | np.uint64(nodes[TEST, node])
            missing = (nodes[TEST, node] >> KIND_BITS) & ((1 << MISSING_BITS) - 1)
            end = child + (MOST_BRANCHES if missing == MOST_BRANCHES - 1 else MOST_BRANCHES - 1)
            total = np.int64(0)
            for b in range(child, end):
                total += sums[0, b]
            sums[0, node] = total
            if means is not None:
                mean = 0.0
                for b in range(child, end):
                    mean += np.float64(sums[0, b]) * means[b]
                mean /= np.float64(total)
                square = 0.0
                for b in range(child, end):
                    off = means[b] - mean
                    square += np.float64(sums[0, b]) * (impurity[b] + off * off)
                means[node] = mean
                impurity[node] = square / np.float64(total)
            if class_sums is not None:
                if len(class_sums) <= 2:
                    ones = np.int64(0)
                    for b in range(child, end):
                        ones += sums[1, b]
                    sums[1, node] = ones
                else:
                    base = 0.0 if criterion == ENTROPY else 1.0
                    score = node_values[SCORE, node] / np.float64(total)
                    impurity[node] = max(base - score * score_unit, 0.0)
        weight[node] = np.float64(sums[0, node]) * weight_unit
        if class_sums is not None and len(class_sums) <= 2:
            impurity[node] = two_impurity(criterion, np.float64(sums[1, node]) / np.float64(sums[0, node]))
    if criterion == SDR:
        for node in range(n_nodes):
            impurity[node] = np.sqrt(impurity[node])
    return n_mixed
