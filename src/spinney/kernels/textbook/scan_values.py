"""The best test of one feature of a node, for numbers: a branch for each level, or a cut.

Missing is a value of its own. The score of a branch is minus its weighted variance or standard deviation, up to what a
test cannot change; see `kernels.common.criteria`. Entries are whole rows.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import (
    BY_RATIO,
    GAIN_FIGURE,
    GROUP_CODE,
    GROUP_N,
    GROUP_SQUARE,
    GROUP_SUM,
    GROUP_WEIGHT,
    IS_CATEGORICAL,
    IS_VALID,
    LARGE_SHIFT,
    MISSING_WEIGHT,
    N_ALL,
    N_CODES,
    N_CUTS,
    N_MISSING,
    N_TRIED,
    Q_ALL,
    Q_MISSING,
    RATIO,
    S_ALL,
    S_MISSING,
    W_ALL,
    W_MISSING,
)

from ..common.criteria import score_moments
from ..common.groups import group_cells, group_keys
from ..common.sorting import make_keys
from ..common.structs import CodedRows, SortedKeys, TextbookSettings
from .figures import (
    clear_figures,
    close_figures,
    count_full,
    entropy_power,
    gather,
    is_better,
    keep_cut,
    keep_levels,
    note_cut,
    split_entropy,
)

FEW_CODES = 16  # cells are worth their while whatever the node's size


@inlined
def branch_score(
    weight: int, total: int, square: int, centre: int, settings: TextbookSettings, xlogx: np.ndarray
) -> float:
    """Score of a branch with these sums; 0 without rows."""
    if weight == 0:
        return 0.0
    return score_moments(settings.criterion, weight, total - centre * weight, square, settings.square_unit, xlogx)


@kernel
def scan_levels(
    groups: np.ndarray,
    n_groups: int,
    totals: np.ndarray,
    centre: int,
    node_score: float,
    slack: float,
    feature: int,
    settings: TextbookSettings,
    xlogx: np.ndarray,
    figures: np.ndarray,
    is_unit: bool,
) -> None:
    """Figures of a branch for each level."""
    score = branch_score(totals[W_MISSING], totals[S_MISSING], totals[Q_MISSING], centre, settings, xlogx)
    power = entropy_power(totals[W_MISSING], settings, xlogx)
    n_full = n_groups
    fewest = totals[N_ALL]
    lightest = totals[W_ALL]
    if totals[N_MISSING] > 0:
        n_full += 1
        fewest = totals[N_MISSING]
        lightest = totals[W_MISSING]
    for g in range(n_groups):
        weight = groups[GROUP_N, g] if is_unit else groups[GROUP_WEIGHT, g]
        square = np.int64(0) if is_unit else groups[GROUP_SQUARE, g]
        score += branch_score(weight, groups[GROUP_SUM, g], square, centre, settings, xlogx)
        power += entropy_power(weight, settings, xlogx)
        fewest = min(fewest, groups[GROUP_N, g])
        lightest = min(lightest, weight)
    gain = (score - node_score) / np.float64(totals[W_ALL])
    if abs(gain) < slack:
        gain = 0.0
    info = split_entropy(entropy_power(totals[W_ALL], settings, xlogx), power, totals[W_ALL], settings)
    keep_levels(gain, info, n_full, totals[W_MISSING], feature, figures)
    is_valid = n_full >= 2 and fewest >= settings.min_samples_leaf and lightest >= settings.min_weight_leaf
    figures[IS_VALID, feature] = 1.0 if is_valid else 0.0


@kernel
def scan_cuts(
    groups: np.ndarray,
    n_groups: int,
    totals: np.ndarray,
    centre: int,
    node_score: float,
    slack: float,
    feature: int,
    settings: TextbookSettings,
    xlogx: np.ndarray,
    figures: np.ndarray,
    is_unit: bool,
    cuts: np.ndarray | None,
) -> None:
    """Figures of the best cut; after the last group comes the cut of known against missing rows."""
    n_missing = totals[N_MISSING]
    w_known = totals[W_ALL] - totals[W_MISSING]
    s_known = totals[S_ALL] - totals[S_MISSING]
    q_known = totals[Q_ALL] - totals[Q_MISSING]
    apart = branch_score(totals[W_MISSING], totals[S_MISSING], totals[Q_MISSING], centre, settings, xlogx)
    power_all = entropy_power(totals[W_ALL], settings, xlogx)
    power_missing = entropy_power(totals[W_MISSING], settings, xlogx)
    is_ratio = settings.rule == BY_RATIO
    n_left = np.int64(0)
    w_left = np.int64(0)
    s_left = np.int64(0)
    q_left = np.int64(0)
    figures[MISSING_WEIGHT, feature] = totals[W_MISSING]
    for g in range(n_groups):
        n_left += groups[GROUP_N, g]
        w_left += groups[GROUP_N, g] if is_unit else groups[GROUP_WEIGHT, g]
        s_left += groups[GROUP_SUM, g]
        q_left += np.int64(0) if is_unit else groups[GROUP_SQUARE, g]
        is_end = g == n_groups - 1
        if is_end and n_missing == 0:
            break
        n_right = n_missing if is_end else totals[N_ALL] - n_missing - n_left
        fewest = min(n_left, n_right)
        lightest = w_left if is_end else min(w_left, w_known - w_left)
        if n_missing > 0:
            fewest = min(fewest, n_missing)
            lightest = min(lightest, totals[W_MISSING])
        is_valid = fewest >= settings.min_samples_leaf and lightest >= settings.min_weight_leaf
        at = np.int64(figures[N_TRIED, feature])
        figures[N_TRIED, feature] += 1.0
        if cuts is None:
            if not is_valid:
                continue
        score = apart + branch_score(w_left, s_left, q_left, centre, settings, xlogx)
        score += branch_score(w_known - w_left, s_known - s_left, q_known - q_left, centre, settings, xlogx)
        gain = (score - node_score) / np.float64(totals[W_ALL])
        if abs(gain) < slack:
            gain = 0.0
        last = groups[GROUP_CODE, g]
        code = np.int64(-1) if is_end else groups[GROUP_CODE, g + 1]
        best = figures[RATIO if is_ratio else GAIN_FIGURE, feature]
        info = 0.0
        is_noted = False
        if cuts is not None:
            is_noted = True
        is_new = not is_ratio and is_valid and (is_better(gain, 0.0, best, slack, settings.rule) or best < 0.0)
        if is_ratio or is_new or is_noted:
            powers = power_missing + entropy_power(w_left, settings, xlogx)
            powers += entropy_power(w_known - w_left, settings, xlogx)
            info = split_entropy(power_all, powers, totals[W_ALL], settings)
        if is_ratio:
            is_new = is_valid and (is_better(gain, info, best, slack, BY_RATIO) or best < 0.0)
        if is_valid:
            figures[N_CUTS, feature] += 1.0
        if is_new:
            keep_cut(last, code, gain, info, feature, figures)
        if cuts is not None:
            note_cut(cuts, at, last, code, gain, info, is_valid)
    count_full(n_missing, feature, settings, figures)


@kernel
def scan_feature(
    columns: np.ndarray,
    ids: np.ndarray,
    labels: np.ndarray,
    lo: int,
    hi: int,
    feature: int,
    features: np.ndarray,
    settings: TextbookSettings,
    xlogx: np.ndarray,
    column: np.ndarray,
    keys: np.ndarray,
    counts: np.ndarray,
    cells: np.ndarray,
    groups: np.ndarray,
    totals: np.ndarray,
    centre: int,
    node_score: float,
    slack: float,
    figures: np.ndarray,
    cuts: np.ndarray | None,
) -> None:
    """Write the figures of the best test of a feature over entries lo .. hi; `totals` hold the sums of the node."""
    clear_figures(figures, feature, settings)
    lowest, highest, n_missing = gather(columns, ids, lo, hi, feature, column)
    if highest == 0 or (lowest == highest and n_missing == 0):
        return
    n_codes = features[N_CODES, feature]
    is_unit = len(labels) == 1
    if n_codes <= hi - lo or n_codes <= FEW_CODES:
        n_groups = group_cells(CodedRows(column, labels), lo, hi, 0, n_codes, cells, groups, totals)
    else:
        side = make_keys(column, lo, hi, 0, LARGE_SHIFT, keys, counts)
        totals[W_MISSING] = 0
        totals[S_MISSING] = 0
        totals[Q_MISSING] = 0
        n_groups = group_keys(SortedKeys(keys, side, 0, hi - lo, labels, lo), LARGE_SHIFT, groups, totals)
    if features[IS_CATEGORICAL, feature] != 0:
        scan_levels(groups, n_groups, totals, centre, node_score, slack, feature, settings, xlogx, figures, is_unit)
    else:
        scan_cuts(groups, n_groups, totals, centre, node_score, slack, feature, settings, xlogx, figures, is_unit, cuts)
    close_figures(features, feature, totals[W_ALL], settings, figures)
