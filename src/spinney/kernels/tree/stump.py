"""Search all rows of a table for one split, in an order that was made once.

Boosting with stumps searches the same rows hundreds of times, with other weights each time, so that nothing is sorted
anew here: `order[j]` lists the rows by their code of feature j, missing ones first. The last row of each code stands
there as its complement (~row): one stream of integers tells both rows and codes. `pairs` holds what a row adds to the
sums, (target or class, weight), side by side: one access to memory for both.

Scores, ties and the order of features are those of `kernels.tree.search`, so that a stump found here is the one that
the driver of trees grows. Where nothing is missing, a cut is scored in full only if a cheaper expression, with room for
its roundings, says that it may be the best so far: two divisions for one in a thousand.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined, kernel
from spinney._types import (
    ALL,
    BEGIN,
    CUT_VALUE,
    FEATURE_SHIFT,
    FIRST_CHILD,
    GINI,
    GROUP_CODE,
    GROUP_N,
    GROUP_SQUARE,
    GROUP_SUM,
    GROUP_WEIGHT,
    KIND_BITS,
    LEFT,
    LOWER,
    MISSING,
    N_MISSING,
    N_ROWS,
    PRESENT,
    Q_ALL,
    Q_MISSING,
    RIGHT,
    S_ALL,
    S_MISSING,
    SCORE,
    SQUARED_ERROR,
    TARGET,
    TEST,
    THRESHOLD,
    UPPER,
    W_ALL,
    W_MISSING,
    WEIGHT,
)

from ..common.criteria import best_possible, score_classes, score_moments
from ..common.structs import Settings
from ..common.sums import sum_classes, sum_moments
from ..common.thresholds import place_threshold
from ..common.ties import NO_SCORE, bar_above, certain
from .scan_classes import power_kind, power_step, start_right, try_cut
from .scan_moments import scan_moments

ROOM = 2.0**-44  # of a score: many times the roundings between the cheap expression and the full one
DRIFT = 2.0**-48  # of a sum of squares, for each row that was added to it or taken off
NO_KEY = np.uint64(0)  # of ties: they go to the first


@door
def open_root(
    labels: np.ndarray,  # (2, n_rows) int64
    settings: Settings,
    totals: np.ndarray,  # written
    sums: np.ndarray | None,  # written; None: moments
    xlogx: np.ndarray,
) -> tuple[float, float, float, int]:
    """Sum up all rows; return their score, one below and one above that of any split, and the number of classes."""
    n_rows = labels.shape[1]
    n_present = np.int64(0)
    if sums is None:
        sum_moments(labels, 0, n_rows, totals)
        score = score_moments(
            settings.criterion, totals[W_ALL], totals[S_ALL], totals[Q_ALL], settings.square_unit, xlogx
        )
    else:
        n_present = sum_classes(labels, 0, n_rows, sums, totals)
        score = score_classes(settings.criterion, sums, ALL, totals[W_ALL], n_present, xlogx)
    bound = best_possible(settings.criterion, settings.is_class, labels, 0, n_rows, totals[W_ALL], totals[S_ALL], 0)
    return score, NO_SCORE, certain(bound), n_present


# --- two classes, and numbers -----------------------------------------------------------------------------------


@inlined
def scan_order(
    order: np.ndarray,
    pairs: np.ndarray,
    feature: int,
    total: int,
    weight: int,
    least: int,
    least_weight: int,
    best: float,
) -> tuple[float, int]:
    """Best cut of a feature without missing values by squared error; the place in the order that it comes after, or -1.

    The score of a cut is a^2 / v + b^2 / w for branches of sums a, b and weights v, w: (a^2 w + b^2 v) / (v w).
    """
    n_rows = order.shape[1]
    at = np.int64(-1)
    left = np.int64(0)
    w_left = np.int64(0)
    bar = bar_above(best)
    bar -= abs(bar) * ROOM
    for k in range(np.uint64(n_rows - least)):
        entry = np.int64(order[feature, k])
        row = np.uint64(entry ^ (entry >> 63))
        left += pairs[row, TARGET]
        w_left += pairs[row, WEIGHT]
        if entry < 0:
            wa = np.float64(w_left)
            wb = np.float64(weight - w_left)
            a = np.float64(left)
            b = np.float64(total - left)
            if a * a * wb + b * b * wa > bar * (wa * wb):
                if np.int64(k) + 1 < least or min(w_left, weight - w_left) < least_weight:
                    continue
                score = a * a / wa
                score += b * b / wb
                if score > bar_above(best):
                    best = score
                    bar = bar_above(best)
                    bar -= abs(bar) * ROOM
                    at = np.int64(k)
    return best, at


@kernel
def group_order(
    order: np.ndarray, pairs: np.ndarray, feature: int, n_missing: int, groups: np.ndarray, totals: np.ndarray
) -> int:
    """Sum up the rows of each code, and those that are missing; return the number of groups. Codes are counted."""
    n_groups = np.int64(0)
    n = np.int64(0)
    total = np.int64(0)
    weight = np.int64(0)
    totals[N_MISSING] = n_missing
    totals[S_MISSING] = 0
    totals[W_MISSING] = 0
    for k in range(order.shape[1]):
        entry = np.int64(order[feature, k])
        row = entry ^ (entry >> 63)
        n += 1
        total += pairs[row, TARGET]
        weight += pairs[row, WEIGHT]
        if entry >= 0:
            continue
        if k < n_missing:
            totals[S_MISSING] = total
            totals[W_MISSING] = weight
        else:
            groups[GROUP_CODE, n_groups] = n_groups
            groups[GROUP_N, n_groups] = n
            groups[GROUP_SUM, n_groups] = total
            groups[GROUP_WEIGHT, n_groups] = weight
            groups[GROUP_SQUARE, n_groups] = weight
            n_groups += 1
        n = 0
        total = 0
        weight = 0
    totals[Q_MISSING] = totals[W_MISSING]
    return n_groups


@door
def search_moments(
    order: np.ndarray,  # (n_features, n_rows) int32
    n_missing: np.ndarray,  # (n_features,) int64: rows at the head of each order whose value is missing
    pairs: np.ndarray,  # (n_rows, 2) int64
    first: int,
    last: int,
    settings: Settings,
    groups: np.ndarray,
    totals: np.ndarray,  # of all rows; of the missing ones written
    xlogx: np.ndarray,
    best: float,
    bound: float,  # a score that no split can beat
) -> tuple[float, int, int, int]:
    """Try features first .. last.

    Returns the better of `best` and the best score, the feature (-1: none is better), the place in its order after
    which the rows take the second branch, and the branch of missing rows (-1: there are none).
    """
    best_feature = np.int64(-1)
    best_at = np.int64(-1)
    best_missing = np.int64(-1)
    for feature in range(first, last):
        if best >= bound:
            break
        if settings.criterion == SQUARED_ERROR and n_missing[feature] == 0:
            best, at = scan_order(
                order, pairs, feature, totals[S_ALL], totals[W_ALL], settings.min_samples_leaf,
                settings.min_weight_leaf, best,
            )  # fmt: skip
            if at >= 0:
                best_feature = np.int64(feature)
                best_at = at
                best_missing = np.int64(-1)
            continue
        n_groups = group_order(order, pairs, feature, n_missing[feature], groups, totals)
        if n_groups == 0 or (n_groups == 1 and n_missing[feature] == 0):
            continue
        best, group, missing, _ = scan_moments(
            groups, n_groups, totals, settings, xlogx, 0, best, 0, -np.inf, np.inf, NO_KEY, 0
        )
        if group >= 0:
            best_feature = np.int64(feature)
            best_missing = missing if n_missing[feature] > 0 else np.int64(-1)
            best_at = n_missing[feature] - 1
            for g in range(group + 1):
                best_at += groups[GROUP_N, g]
    return best, best_feature, best_at, best_missing


# --- three classes or more --------------------------------------------------------------------------------------


@inlined
def scan_class_order(
    order: np.ndarray,
    pairs: np.ndarray,
    feature: int,
    sums: np.ndarray,
    n_present: int,
    weight: int,
    settings: Settings,
    xlogx: np.ndarray,
    best: float,
) -> tuple[float, int]:
    """Best cut of a feature without missing values by Gini; the place in the order that it comes after, or -1.

    The sums of squares of both branches follow the rows as floats: they drift, so they only tell which cuts are worth
    the sums over all classes.
    """
    n_rows = order.shape[1]
    least = settings.min_samples_leaf
    at = np.int64(-1)
    w_left = np.int64(0)
    square_left = 0.0
    square_right = 0.0
    for k in range(n_present):
        c = sums[PRESENT, k]
        sums[LEFT, c] = 0
        sums[RIGHT, c] = sums[ALL, c]
        square_right += np.float64(sums[ALL, c]) * np.float64(sums[ALL, c])
    whole = np.float64(weight)
    drift = np.float64(n_rows) * DRIFT * whole * whole * whole
    bar = bar_above(best)
    bar -= abs(bar) * ROOM
    for k in range(np.uint64(n_rows - least)):
        entry = np.int64(order[feature, k])
        row = np.uint64(entry ^ (entry >> 63))
        c = np.uint64(pairs[row, TARGET])
        w = pairs[row, WEIGHT]
        left = sums[LEFT, c]
        right = sums[RIGHT, c]
        moved = np.float64(w)
        square_left += moved * (2.0 * np.float64(left) + moved)
        square_right -= moved * (2.0 * np.float64(right) - moved)
        sums[LEFT, c] = left + w
        sums[RIGHT, c] = right - w
        w_left += w
        if entry < 0:
            wa = np.float64(w_left)
            wb = np.float64(weight - w_left)
            if square_left * wb + square_right * wa + drift > bar * (wa * wb):
                w_right = weight - w_left
                if np.int64(k) + 1 < least or min(w_left, w_right) < settings.min_weight_leaf:
                    continue
                score = score_classes(settings.criterion, sums, LEFT, w_left, n_present, xlogx)
                score += score_classes(settings.criterion, sums, RIGHT, w_right, n_present, xlogx)
                if score > bar_above(best):
                    best = score
                    bar = bar_above(best)
                    bar -= abs(bar) * ROOM
                    at = np.int64(k)
    return best, at


@inlined
def try_class_order(
    order: np.ndarray,
    n_missing: int,
    pairs: np.ndarray,
    feature: int,
    sums: np.ndarray,
    totals: np.ndarray,
    n_present: int,
    settings: Settings,
    xlogx: np.ndarray,
    best: float,
) -> tuple[float, int, int]:
    """The same by any criterion, with missing values; also returns the branch of the missing rows."""
    n_rows = order.shape[1]
    kind = power_kind(settings, xlogx)
    at = np.int64(-1)
    at_missing = np.int64(-1)
    totals[N_MISSING] = n_missing
    totals[W_MISSING] = 0
    for k in range(n_present):
        sums[MISSING, sums[PRESENT, k]] = 0
    for k in range(n_missing):
        entry = np.int64(order[feature, k])
        row = entry ^ (entry >> 63)
        sums[MISSING, pairs[row, TARGET]] += pairs[row, WEIGHT]
        totals[W_MISSING] += pairs[row, WEIGHT]
    w_left = np.int64(0)
    power_left = np.int64(0)
    power_right = start_right(sums, n_present, kind, xlogx)
    for k in range(n_missing, n_rows if n_missing > 0 else n_rows - 1):
        entry = np.int64(order[feature, k])
        row = entry ^ (entry >> 63)
        c = pairs[row, TARGET]
        w = pairs[row, WEIGHT]
        power_left += power_step(kind, sums[LEFT, c], w, xlogx)
        sums[LEFT, c] += w
        sums[RIGHT, c] -= w
        power_right -= power_step(kind, sums[RIGHT, c], w, xlogx)
        w_left += w
        if entry < 0:
            best, branch, _ = try_cut(
                sums, totals, k + 1 - n_missing, w_left, power_left, power_right, n_present, settings, xlogx, best,
                NO_KEY, 0, k == n_rows - 1,
            )  # fmt: skip
            if branch >= 0:
                at = np.int64(k)
                at_missing = branch if n_missing > 0 else np.int64(-1)
    return best, at, at_missing


@door
def search_classes(
    order: np.ndarray,  # as in `search_moments`
    n_missing: np.ndarray,
    pairs: np.ndarray,
    first: int,
    last: int,
    settings: Settings,
    sums: np.ndarray,
    totals: np.ndarray,
    n_present: int,
    xlogx: np.ndarray,
    best: float,
    bound: float,
) -> tuple[float, int, int, int]:
    """Try features first .. last; returns as `search_moments`."""
    best_feature = np.int64(-1)
    best_at = np.int64(-1)
    best_missing = np.int64(-1)
    for feature in range(first, last):
        if best >= bound:
            break
        missing = np.int64(-1)
        if settings.criterion == GINI and n_missing[feature] == 0:
            best, at = scan_class_order(order, pairs, feature, sums, n_present, totals[W_ALL], settings, xlogx, best)
        else:
            best, at, missing = try_class_order(
                order, n_missing[feature], pairs, feature, sums, totals, n_present, settings, xlogx, best
            )
        if at >= 0:
            best_feature = np.int64(feature)
            best_at = at
            best_missing = missing
    return best, best_feature, best_at, best_missing


# --- the tree ---------------------------------------------------------------------------------------------------


@inlined
def move_rows(
    order: np.ndarray,
    feature: int,
    first: int,
    end: int,
    pairs: np.ndarray,
    to: int,
    ids: np.ndarray,
    labels: np.ndarray,
) -> int:
    """Write the rows first .. end of an order to ids and labels from `to` on; return where they end."""
    for k in range(first, end):
        entry = np.int64(order[feature, k])
        row = entry ^ (entry >> 63)
        ids[to] = row
        labels[TARGET, to] = pairs[row, TARGET]
        labels[WEIGHT, to] = pairs[row, WEIGHT]
        to += 1
    return to


@inlined
def add_leaf(nodes: np.ndarray, node_values: np.ndarray, node: int, begin: int, end: int) -> None:
    """Write a leaf with rows begin .. end."""
    nodes[TEST, node] = 0
    nodes[FIRST_CHILD, node] = 0
    nodes[BEGIN, node] = begin
    nodes[N_ROWS, node] = end - begin
    node_values[CUT_VALUE, node] = 0.0
    node_values[SCORE, node] = 0.0
    node_values[LOWER, node] = -np.inf
    node_values[UPPER, node] = np.inf


@door
def split_root(
    codes: np.ndarray,  # (n_rows, stride) uint16
    features: np.ndarray,
    edges: np.ndarray,
    order: np.ndarray,
    n_missing: np.ndarray,
    pairs: np.ndarray,
    feature: int,  # here and below: as `search_moments` returns them
    at: int,
    missing: int,
    score: float,  # of the root
    ids: np.ndarray,  # (n_rows,) int32, written: the rows of each branch side by side
    labels: np.ndarray,  # (2, n_rows) int64, written
    nodes: np.ndarray,  # here and below: written
    node_values: np.ndarray,
) -> int:
    """Write a tree of one test; return its number of nodes. Feature -1: a single leaf, ids and labels stay."""
    n_rows = order.shape[1]
    add_leaf(nodes, node_values, 0, 0, n_rows)
    node_values[SCORE, 0] = score
    if feature < 0:
        return 1
    n_hidden = n_missing[feature]
    begin = np.int64(0)
    if missing == 0:
        begin = move_rows(order, feature, 0, n_hidden, pairs, begin, ids, labels)
    middle = move_rows(order, feature, n_hidden, at + 1, pairs, begin, ids, labels)
    end = middle
    if missing == 1:
        end = move_rows(order, feature, 0, n_hidden, pairs, end, ids, labels)
    end = move_rows(order, feature, at + 1, n_rows, pairs, end, ids, labels)
    n_nodes = np.int64(3)
    if missing == 2:
        add_leaf(nodes, node_values, 3, end, n_rows)
        move_rows(order, feature, 0, n_hidden, pairs, end, ids, labels)
        n_nodes = np.int64(4)
    add_leaf(nodes, node_values, 1, 0, middle)
    add_leaf(nodes, node_values, 2, middle, end)
    if missing < 0:  # the heavier branch, for rows to come
        w_left = np.int64(0)
        w_right = np.int64(0)
        for i in range(middle):
            w_left += labels[WEIGHT, i]
        for i in range(middle, end):
            w_right += labels[WEIGHT, i]
        missing = np.int64(0 if w_left > w_right else 1)
    entry = np.int64(order[feature, at])
    cut = np.int64(codes[entry ^ (entry >> 63), feature])
    following = np.int64(-1)
    if at < n_rows - 1:
        entry = np.int64(order[feature, at + 1])
        following = np.int64(codes[entry ^ (entry >> 63), feature])
    nodes[TEST, 0] = (np.int64(feature) << FEATURE_SHIFT) | (np.int64(missing) << KIND_BITS) | THRESHOLD
    nodes[FIRST_CHILD, 0] = 1
    node_values[CUT_VALUE, 0] = place_threshold(features, edges, feature, cut, following, False)
    return n_nodes
