"""One random test per feature, as extremely randomised trees ask (Geurts, Ernst and Wehenkel 2006).

Numbers: a threshold uniform between the lowest and the highest value of the node. Categories: the levels of the node
are parted at random into two parts, neither empty, and each level that the node does not have is sent either way at
random. A test is then judged like any other, so missing values, constraints and criteria are those of the other trees.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import (
    ALL,
    GROUP_N,
    GROUP_SQUARE,
    GROUP_SUM,
    GROUP_WEIGHT,
    HIGH,
    IS_BINNED,
    IS_CATEGORICAL,
    LEFT,
    LOW,
    MISSING,
    MONOTONE,
    N_CODES,
    N_MISSING,
    OFFSET,
    PAIR_ROWS,
    PRESENT,
    Q_ALL,
    Q_MISSING,
    RIGHT,
    S_ALL,
    S_MISSING,
    TARGET,
    W_ALL,
    W_MISSING,
    WEIGHT,
)

from ..common.branch import has_level
from ..common.rng import below, fold
from ..common.structs import Settings
from ..common.thresholds import last_below
from ..common.ties import bar_above
from .scan_classes import power_kind, power_step, try_cut
from .scan_moments import scan_moments

UNIT = 1.0 / 9007199254740992.0
S11 = np.uint64(11)
NONE, ONE = np.uint64(0), np.uint64(1)


@inlined
def find_range(codes: np.ndarray, lo: int, hi: int, feature: int, column: np.ndarray) -> tuple[int, int, int]:
    """Copy the codes of a feature to `column`; return the lowest and highest known code and how many are missing."""
    lowest = np.int64(1 << 16)
    highest = np.int64(0)
    n_missing = np.int64(0)
    first = np.uint64(lo)
    at = np.uint64(feature)
    for k in range(np.uint64(hi - lo)):
        code = np.int64(codes[first + k, at])
        column[k] = np.int32(code)
        lowest = min(lowest, (code - 1) & 0xFFFF)  # missing counts as highest
        highest = max(highest, code)
        n_missing += np.int64(code == 0)
    return lowest + 1, highest, n_missing


@kernel
def draw_threshold(
    features: np.ndarray,
    edges: np.ndarray,
    feature: int,
    lowest: int,
    highest: int,
    key: np.uint64,
) -> tuple[int, float]:
    """A threshold uniform over the values of codes lowest .. highest: the last code below it, and the threshold.

    Where values are binned, the lowest value of a bin stands for it.
    """
    at = features[OFFSET, feature] - 1
    low = edges[LOW, at + lowest]
    high = edges[LOW, at + highest]
    threshold = low + (high - low) * (np.float64(fold(key, np.uint64(feature)) >> S11) * UNIT)
    if not (threshold >= low and threshold < high):  # infinite values, or a rounding at the upper end
        cut = lowest + below(key, feature, highest - lowest)
        return cut, edges[LOW, at + cut]
    first = last_below(edges, at, lowest, highest - 1, threshold)
    return first, threshold


@inlined
def load_values(
    codes: np.ndarray,
    edges: np.ndarray,
    lo: int,
    hi: int,
    feature: int,
    at: int,
    column: np.ndarray,
    values: np.ndarray,
) -> tuple[float, float, int]:
    """Copy codes to `column` and the values behind them to `values`; return the lowest, the highest, the missing rows.

    For few rows: their values, all asked for at once, come from memory sooner than a search among all values would end.
    """
    low = np.inf
    high = -np.inf
    n_missing = np.int64(0)
    first = np.uint64(lo)
    j = np.uint64(feature)
    before = np.uint64(at)
    last = np.uint64(edges.shape[1] - 1)  # a feature without a known value has no codes
    for k in range(np.uint64(hi - lo)):
        code = np.uint64(codes[first + k, j])
        n_missing += np.int64(code == NONE)
        value = edges[LOW, min(before + max(code, ONE) - ONE, last)]
        column[k] = np.int32(code)
        values[k] = value
        low = value if value < low else low
        high = value if value > high else high
    return low, high, n_missing


@inlined
def mark_left(
    n: int,
    low: float,
    high: float,
    key: np.uint64,
    feature: int,
    column: np.ndarray,
    values: np.ndarray,
) -> tuple[int, float]:
    """Draw a threshold uniform over low .. high; return the last code of the node below it, and the threshold.

    The code is 0 where the draw fails, by infinite values or by a rounding at the upper end.
    """
    threshold = low + (high - low) * (np.float64(fold(key, np.uint64(feature)) >> S11) * UNIT)
    if not (threshold >= low and threshold < high):
        return np.int64(0), threshold
    cut = np.int32(0)
    for k in range(np.uint64(n)):
        code = column[k] if values[k] <= threshold else np.int32(0)
        cut = code if code > cut else cut
    return np.int64(cut), threshold


@inlined
def judge_plain(
    labels: np.ndarray,
    lo: int,
    n: int,
    cut: int,
    column: np.ndarray,
    weight: int,
    total: int,
    centre: int,
    best: float,
) -> tuple[float, int]:
    """Judge a test by squared error where nothing is missing and nothing constrains it: 0 as second if it is chosen."""
    first = np.uint64(lo)
    limit = np.int32(cut)
    none = np.int64(0)
    left = none
    w_left = none
    if len(labels) == 1:
        for k in range(np.uint64(n)):
            left += labels[TARGET, first + k] if column[k] <= limit else none
            w_left += np.int64(column[k] <= limit)
    else:
        for k in range(np.uint64(n)):
            left += labels[TARGET, first + k] if column[k] <= limit else none
            w_left += labels[WEIGHT, first + k] if column[k] <= limit else none
    wa = np.float64(w_left)
    wb = np.float64(weight - w_left)
    a = np.float64(left - centre * w_left)
    b = np.float64(total - left - centre * (weight - w_left))
    score = (a * a * wb + b * b * wa) / (wa * wb)
    if score > bar_above(best):
        return score, 0
    return best, -1


@inlined
def sum_left(
    labels: np.ndarray,
    lo: int,
    n: int,
    column: np.ndarray,
    cut: int,
    groups: np.ndarray,
) -> None:
    """Sum the labels of known rows with codes up to `cut` into group 0."""
    first = np.uint64(lo)
    limit = np.int32(cut)
    none = np.int64(0)
    count = none
    total = none
    weight = none
    square = none
    last = len(labels) - 1
    for k in range(np.uint64(n)):
        is_left = (column[k] <= limit) & (column[k] > 0)
        count += np.int64(is_left)
        total += labels[TARGET, first + k] if is_left else none
    if last == 0:
        weight = count
    else:
        for k in range(np.uint64(n)):
            is_left = (column[k] <= limit) & (column[k] > 0)
            weight += labels[WEIGHT, first + k] if is_left else none
    if last == 2:
        for k in range(np.uint64(n)):
            is_left = (column[k] <= limit) & (column[k] > 0)
            square += labels[last, first + k] if is_left else none
    elif last == 1:
        square = weight
    groups[GROUP_N, 0] = count
    groups[GROUP_SUM, 0] = total
    groups[GROUP_WEIGHT, 0] = weight
    groups[GROUP_SQUARE, 0] = square


@inlined
def sum_missing(
    labels: np.ndarray,
    lo: int,
    n: int,
    column: np.ndarray,
    n_missing: int,
    totals: np.ndarray,
) -> None:
    """Sum the labels of rows with code 0."""
    totals[N_MISSING] = n_missing
    totals[S_MISSING] = 0
    totals[W_MISSING] = 0
    totals[Q_MISSING] = 0
    if n_missing == 0:
        return
    last = len(labels) - 1
    for k in range(n):
        if column[k] == 0:
            totals[S_MISSING] += labels[TARGET, lo + k]
            totals[W_MISSING] += np.int64(1) if last == 0 else labels[WEIGHT, lo + k]
            totals[Q_MISSING] += labels[last, lo + k] if last > 0 else np.int64(0)


@inlined
def judge_moments(
    labels: np.ndarray,
    lo: int,
    hi: int,
    cut: int,
    n_groups: int,
    n_missing: int,
    column: np.ndarray,
    groups: np.ndarray,
    totals: np.ndarray,
    settings: Settings,
    xlogx: np.ndarray,
    centre: int,
    best: float,
    sign: int,
    lower: float,
    upper: float,
    tie_key: np.uint64,
    n_ties: int,
) -> tuple[float, int, int, int]:
    """Judge the test that sends known codes up to `cut` left; returns as `scan_moments`."""
    sum_left(labels, lo, hi - lo, column, cut, groups)
    sum_missing(labels, lo, hi - lo, column, n_missing, totals)
    if n_groups == 2:
        groups[GROUP_N, 1] = hi - lo - n_missing - groups[GROUP_N, 0]
        groups[GROUP_SUM, 1] = totals[S_ALL] - totals[S_MISSING] - groups[GROUP_SUM, 0]
        groups[GROUP_WEIGHT, 1] = totals[W_ALL] - totals[W_MISSING] - groups[GROUP_WEIGHT, 0]
        groups[GROUP_SQUARE, 1] = totals[Q_ALL] - totals[Q_MISSING] - groups[GROUP_SQUARE, 0]
    return scan_moments(
        groups,
        n_groups,
        totals,
        settings,
        xlogx,
        centre,
        best,
        sign,
        lower,
        upper,
        tie_key,
        n_ties,
    )


@kernel
def judge_classes(
    labels: np.ndarray,
    lo: int,
    hi: int,
    cut: int,
    n_groups: int,
    n_missing: int,
    column: np.ndarray,
    sums: np.ndarray,
    totals: np.ndarray,
    n_present: int,
    settings: Settings,
    xlogx: np.ndarray,
    best: float,
    tie_key: np.uint64,
    n_ties: int,
) -> tuple[float, int, int, int]:
    """The same for three classes or more."""
    for k in range(n_present):
        c = sums[PRESENT, k]
        sums[LEFT, c] = 0
        sums[MISSING, c] = 0
    n_left = np.int64(0)
    w_left = np.int64(0)
    totals[N_MISSING] = n_missing
    totals[W_MISSING] = 0
    is_unit = len(labels) == 1
    for k in range(hi - lo):
        c = labels[TARGET, lo + k]
        w = np.int64(1) if is_unit else labels[WEIGHT, lo + k]
        is_left = np.int64((column[k] <= cut) & (column[k] > 0))
        sums[LEFT, c] += w * is_left
        n_left += is_left
        w_left += w * is_left
    if n_missing > 0:
        for k in range(hi - lo):
            if column[k] == 0:
                w = np.int64(1) if is_unit else labels[WEIGHT, lo + k]
                sums[MISSING, labels[TARGET, lo + k]] += w
                totals[W_MISSING] += w
    chosen = np.int64(-1)
    chosen_missing = np.int64(0)
    kind = power_kind(settings, xlogx)
    for g in range(n_groups if n_missing > 0 else n_groups - 1):
        is_last = g == n_groups - 1  # known against missing
        if is_last:
            n_left = hi - lo - n_missing
            w_left = totals[W_ALL] - totals[W_MISSING]
        power_left = np.int64(0)
        power_right = np.int64(0)
        for k in range(n_present):
            c = sums[PRESENT, k]
            if is_last:
                sums[LEFT, c] = sums[ALL, c] - sums[MISSING, c]
            sums[RIGHT, c] = sums[ALL, c] - sums[LEFT, c]
            power_left += power_step(kind, 0, sums[LEFT, c], xlogx)
            power_right += power_step(kind, 0, sums[RIGHT, c], xlogx)
        best, branch, n_ties = try_cut(
            sums, totals, n_left, w_left, power_left, power_right, n_present, settings, xlogx, best, tie_key, n_ties,
            is_last,
        )  # fmt: skip
        if branch >= 0:
            chosen = np.int64(g)
            chosen_missing = branch
    return best, chosen, chosen_missing, n_ties


@kernel
def draw_subset(
    n: int,
    n_levels: int,
    key: np.uint64,
    feature: int,
    column: np.ndarray,
    subset: np.ndarray,
) -> int:
    """Part the levels at random and mark the rows: 1 for the left part, 2 for the right; return the number of parts.

    One part means that all known rows, of which there is one at least, have the same level. The bits of the left part
    go to the first half of `subset`; the second half is scratch.
    """
    n_words = (n_levels + 63) >> 6
    half = len(subset) >> 1
    for w in range(n_words):
        subset[half + w] = NONE
    for k in range(n):
        level = np.int64(column[k]) - 1
        if level >= 0:
            subset[half + (level >> 6)] |= ONE << np.uint64(level & 63)
    n_seen = np.int64(0)
    for w in range(n_words):
        word = subset[half + w]
        while word != NONE:
            word &= word - ONE
            n_seen += 1
    draw_key = fold(key, np.uint64(feature))
    attempt = np.uint64(0)
    has_left = False
    has_right = False
    while not (has_left and (has_right or n_seen < 2)):
        has_left = False
        has_right = False
        for w in range(n_words):
            subset[w] = fold(draw_key, attempt)
            attempt += ONE
            has_left |= subset[w] & subset[half + w] != NONE
            has_right |= ~subset[w] & subset[half + w] != NONE
    for k in range(n):
        level = np.int64(column[k]) - 1
        if level >= 0:
            column[k] = np.int32(1 if has_level(subset, 0, level) else 2)
    if n_levels & 63 != 0:  # no bits beyond the last level
        subset[n_words - 1] &= (ONE << np.uint64(n_levels & 63)) - ONE
    return min(n_seen, 2)


@inlined
def random_split(
    codes: np.ndarray,
    labels: np.ndarray,
    lo: int,
    hi: int,
    feature: int,
    features: np.ndarray,
    edges: np.ndarray,
    settings: Settings,
    column: np.ndarray,
    values: np.ndarray,  # (PAIR_ROWS,) float64 scratch
    groups: np.ndarray,
    sums: np.ndarray | None,
    subset: np.ndarray | None,
    totals: np.ndarray,
    n_present: int,
    xlogx: np.ndarray,
    centre: int,
    best: float,
    lower: float,
    upper: float,
    test_key: np.uint64,
    tie_key: np.uint64,
    n_ties: int,
) -> tuple[float, int, int, int, float]:
    """Draw a test of a feature over rows lo .. hi and judge it.

    Returns the better of `best` and its score, the last code of the left branch (-1: not better), the branch of missing
    rows (-1: the feature does not vary here), the number of ties and the threshold. A subset is left in `subset`.
    """
    n_codes = features[N_CODES, feature]
    is_subset = features[IS_CATEGORICAL, feature] != 0
    last_left = np.int64(0)
    n_missing = np.int64(1)
    n_groups = np.int64(2)
    highest = np.int64(0)
    threshold = np.inf
    if hi - lo <= PAIR_ROWS and not is_subset and n_codes > 0:
        low, high, n_missing = load_values(codes, edges, lo, hi, feature, features[OFFSET, feature], column, values)
        if n_missing == 0:
            if low == high:
                return best, -1, -1, n_ties, threshold
            last_left, threshold = mark_left(hi - lo, low, high, test_key, feature, column, values)
    if last_left == 0:
        lowest, highest, n_missing = find_range(codes, lo, hi, feature, column)
        if highest == 0 or (lowest == highest and n_missing == 0):
            return best, -1, -1, n_ties, threshold
        n_groups = np.int64(2 if lowest < highest else 1)
        last_left = highest
        threshold = np.inf
        if subset is not None:
            if is_subset:
                n_groups = draw_subset(hi - lo, n_codes, test_key, feature, column, subset)
                last_left = np.int64(1)
        if not is_subset and n_groups == 2:
            last_left, threshold = draw_threshold(features, edges, feature, lowest, highest, test_key)
    cut = np.int64(-1)
    missing = np.int64(0)
    if sums is None:
        if settings.is_plain != 0 and n_missing == 0:
            totals[N_MISSING] = 0
            best, cut = judge_plain(labels, lo, hi - lo, last_left, column, totals[W_ALL], totals[S_ALL], centre, best)
        else:
            best, cut, missing, n_ties = judge_moments(
                labels, lo, hi, last_left, n_groups, n_missing, column, groups, totals, settings, xlogx, centre, best,
                features[MONOTONE, feature], lower, upper, tie_key, n_ties,
            )  # fmt: skip
    else:
        best, cut, missing, n_ties = judge_classes(
            labels, lo, hi, last_left, n_groups, n_missing, column, sums, totals, n_present, settings, xlogx, best,
            tie_key, n_ties,
        )  # fmt: skip
    if cut < 0:
        return best, -1, 0, n_ties, threshold
    if cut == n_groups - 1:  # known against missing
        if subset is not None:
            if is_subset:
                for w in range((n_codes + 63) >> 6):
                    subset[w] = ~NONE
                if n_codes & 63 != 0:
                    subset[n_codes >> 6] = (ONE << np.uint64(n_codes & 63)) - ONE
        return best, highest, missing, n_ties, np.inf
    if features[IS_BINNED, feature] != 0:  # no bin is torn apart, not even one that the node has no row of
        at = features[OFFSET, feature] - 1
        last = last_below(edges, at, last_left, n_codes, threshold)
        threshold = max(threshold, edges[HIGH, at + last])
    return best, last_left, missing, n_ties, threshold
