"""Scan the bins of one feature for the best cut, for targets summed as (weight, sum).

The scan walks the bins in order and moves their sums from the right branch to the left. Missing rows are tried in
the right branch, then in the left (`LEARNED`), or make a third branch (`OWN_BRANCH`); after the last bin comes the
cut that sets all known rows against the missing ones. With `SURROGATE` the known rows alone are cut; what the score of
the node exceeds theirs by is added, so that features with other missing rows compare by their gains.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import (
    BIN_N,
    BIN_SQUARE,
    BIN_SUM,
    BIN_WEIGHT,
    LEARNED,
    N_ALL,
    N_MISSING,
    Q_ALL,
    Q_MISSING,
    S_ALL,
    S_MISSING,
    SMALL_SHIFT,
    SURROGATE,
    TARGET,
    W_ALL,
    W_MISSING,
    WEIGHT,
)

from ..common.category_chance import less_luck
from ..common.criteria import blur_of
from ..common.structs import BinWalk, Candidate, OpenNode, RateScratch, Settings, SortedKeys
from ..common.ties import bar_above, floor_below, judge
from .candidates import cut_between
from .rates import falls_short, score_sums, unit_of, with_unit

BITS = np.uint64(SMALL_SHIFT)  # of a position in a key
ONE = np.uint64(1)  # unsigned indices spare the check for counting from the end


@inlined
def scan_keys(best: Candidate, ordered: SortedKeys, total: int, weight: int, centre: int, least: int) -> Candidate:
    """Best cut of sorted keys by squared error when nothing is missing and nothing constrains it but `least` rows.

    The common case, without bins. total, weight: sums of the node, `centre` taken off each target.
    """
    keys, row, addends = ordered.keys, ordered.row, ordered.addends
    first, end = ordered.first, ordered.end
    mask = (ONE << BITS) - ONE
    begin = np.uint64(ordered.base)
    score = best.score
    is_unit = len(addends) == 1
    left = np.int64(0)
    w_left = np.int64(0)
    cut = np.int64(-1)
    cut_next = np.int64(-1)
    bar = bar_above(score)
    key = np.uint64(keys[row, first])
    for k in range(np.uint64(first) + ONE, np.uint64(end - least) + ONE):
        at = begin + (key & mask)
        w = np.int64(1) if is_unit else addends[WEIGHT, at]
        w_left += w
        left += addends[TARGET, at] - centre * w
        code = key >> BITS
        key = np.uint64(keys[row, k])
        if key >> BITS != code and k >= np.uint64(first + least):
            wa = np.float64(w_left)
            wb = np.float64(weight - w_left)
            a = np.float64(left)
            b = np.float64(total - left)
            rise = a * a * wb + b * b * wa
            run = wa * wb
            if rise > bar * run:  # score > bar, without the division
                score = rise / run
                bar = bar_above(score)
                cut = np.int64(code)
                cut_next = np.int64(key >> BITS)
    return cut_between(score, cut, cut_next, best.n_ties)


@kernel
def blur_known(
    settings: Settings, totals: np.ndarray, centre: int, xlogx: np.ndarray, rates: RateScratch | None
) -> float:
    """Rounding of a score that was told by the known rows of a feature; 0 where none is missing."""
    if totals[N_MISSING] == 0:
        return 0.0
    weight = totals[W_ALL] - totals[W_MISSING]
    total = totals[S_ALL] - totals[S_MISSING] - centre * weight
    square = totals[Q_ALL] - totals[Q_MISSING]
    known = score_sums(settings.criterion, weight, total, square, unit_of(settings, rates), xlogx, rates)
    return blur_of(settings.criterion, weight, known, xlogx)


@inlined
def is_allowed(left: float, right: float, sign: int, lower: float, upper: float, slack: float) -> bool:
    """Whether branches of these values keep to a monotone constraint, sign, and to the bounds by those above."""
    if min(left, right) < lower - slack or max(left, right) > upper + slack:
        return False
    return sign * (right - left) >= -slack


@kernel
def scan_moments(
    best: Candidate,
    walk: BinWalk,
    node: OpenNode,
    settings: Settings,
    xlogx: np.ndarray,
    bins: np.ndarray,
    totals: np.ndarray,
    rates: RateScratch | None,
) -> Candidate:
    """Best cut of the bins; its code is the last bin of the left branch."""
    n_bins = walk.n_bins
    criterion = settings.criterion
    unit = unit_of(settings, rates)
    centre = node.centre
    top = best.score
    n_ties = best.n_ties
    n = totals[N_ALL]
    weight = totals[W_ALL]
    total = totals[S_ALL] - centre * weight
    square = totals[Q_ALL]
    n_missing = totals[N_MISSING]
    s_missing = totals[S_MISSING] - centre * totals[W_MISSING] if n_missing > 0 else np.int64(0)
    has_missing = n_missing > 0
    is_apart = has_missing and settings.missing != LEARNED
    has_three = is_apart and settings.missing != SURROGATE
    apart = 0.0
    blur = 0.0
    if is_apart:
        if not has_three:
            apart = score_sums(criterion, weight, total, square, unit, xlogx, rates)
        n -= n_missing
        weight -= totals[W_MISSING]
        total -= s_missing
        square -= totals[Q_MISSING]
    if has_three:
        apart = score_sums(criterion, totals[W_MISSING], s_missing, totals[Q_MISSING], unit, xlogx, rates)
        has_room = n_missing >= settings.min_samples_leaf and totals[W_MISSING] >= settings.min_weight_leaf
    else:
        has_room = True
        if is_apart:
            known = score_sums(criterion, weight, total, square, unit, xlogx, rates)
            blur = blur_of(criterion, weight, known, xlogx)
            apart -= known
    n_known = np.int64(0)
    w_known = np.int64(0)
    s_known = np.int64(0)
    q_known = np.int64(0)
    roots = 0.0
    cut = np.int64(-1)
    cut_missing = np.int64(0)
    for b in range(n_bins if has_missing and settings.missing != SURROGATE else n_bins - 1):
        n_known += bins[BIN_N, b]
        if settings.is_unit:
            w_known = n_known
            s_known += bins[BIN_SUM, b] - centre * bins[BIN_N, b]
        else:
            w_known += bins[BIN_WEIGHT, b]
            q_known += bins[BIN_SQUARE, b]
            s_known += bins[BIN_SUM, b] - centre * bins[BIN_WEIGHT, b]
        if walk.chance.noise > 0.0:
            roots += np.sqrt(np.float64(bins[BIN_N if settings.is_unit else BIN_WEIGHT, b]))
        is_last = b == n_bins - 1  # known against missing
        if is_last and has_three:
            n = totals[N_ALL]
            weight = totals[W_ALL]
            total += s_missing
            square = totals[Q_ALL]
            apart = 0.0
            has_room = True
        n_sides = 2 if has_missing and not is_apart and not is_last else 1
        for side in range(n_sides):
            n_left = n_known
            w_left = w_known
            left = s_known
            q_left = q_known
            if side == 1:
                n_left += n_missing
                w_left += totals[W_MISSING]
                left += s_missing
                q_left += totals[Q_MISSING]
            w_right = weight - w_left
            is_open = min(n_left, n - n_left) >= settings.min_samples_leaf
            if not (has_room and is_open and min(w_left, w_right) >= settings.min_weight_leaf):
                continue
            if settings.has_monotone:
                value_left = np.float64(left) / np.float64(w_left)
                value_right = np.float64(total - left) / np.float64(w_right)
                value_left += np.float64(centre)
                value_right += np.float64(centre)
                if not is_allowed(value_left, value_right, walk.sign, node.lower, node.upper, settings.value_slack):
                    continue
            in_all = with_unit(blur, totals[W_ALL], settings, rates)
            if falls_short(floor_below(top) - apart - in_all, w_left, left, w_right, total - left, unit, rates):
                continue
            score = apart + score_sums(criterion, w_left, left, q_left, unit, xlogx, rates)
            score += score_sums(criterion, w_right, total - left, square - q_left, unit, xlogx, rates)
            if score < floor_below(top) - in_all:  # as most; luck, which takes eight roots and divisions, is not added
                continue
            score = less_luck(score, walk.chance, roots, w_left, w_right)
            is_better, top, n_ties = judge(score, top, in_all, settings.has_random_ties, node.tie_key, n_ties)
            if is_better:
                cut = np.int64(b)
                cut_missing = np.int64(2) if has_three and not is_last else np.int64(1 - side)
    return Candidate(top, cut, np.int64(-1), cut_missing, n_ties, np.inf)
