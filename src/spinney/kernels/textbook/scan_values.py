"""The best test of one feature of a node, for numbers: a branch for each level, or a cut.

Missing is a value of its own. The score of a branch is minus its weighted variance or standard deviation, up to what a
test cannot change; see `kernels.common.criteria`. Entries are whole rows.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import (
    BIN_CODE,
    BIN_N,
    BIN_SQUARE,
    BIN_SUM,
    BIN_WEIGHT,
    BY_RATIO,
    IS_CATEGORICAL,
    LARGE_SHIFT,
    N_ALL,
    N_CODES,
    N_MISSING,
    Q_ALL,
    Q_MISSING,
    S_ALL,
    S_MISSING,
    SDR,
    W_ALL,
    W_MISSING,
)

from ..common.bins import list_bins_by_histogram, list_bins_by_keys
from ..common.criteria import score_moments
from ..common.sorting import make_keys
from ..common.structs import (
    CodedRows,
    Cuts,
    Entries,
    ScanScratch,
    SortedKeys,
    TextbookSettings,
    TextbookTable,
    ValueSpan,
)
from ..common.ties import TEXTBOOK_TIE, is_better
from .figures import (
    best_figure,
    clear_figures,
    close_figures,
    count_full,
    entropy_power,
    gather,
    keep_cut,
    keep_levels,
    note_cut,
    split_entropy,
)

FEW_CODES = 16  # a histogram is worth its while whatever the node's size


@inlined
def branch_score(
    weight: int, total: int, square: int, centre: int, settings: TextbookSettings, xlogx: np.ndarray
) -> float:
    """Score of a branch with these sums; 0 without rows."""
    if weight == 0:
        return 0.0
    return score_moments(settings.criterion, weight, total - centre * weight, square, settings.square_unit, xlogx)


@inlined
def gain_of(score: float, span: ValueSpan, weight: int) -> float:
    """Gain per unit of the node's weight of a test whose branches have this score."""
    gain = (score - span.score) / np.float64(weight)
    return 0.0 if abs(gain) < span.slack else gain


@kernel
def start_node(
    lo: int,
    hi: int,
    truth: np.ndarray,
    ids: np.ndarray,
    settings: TextbookSettings,
    xlogx: np.ndarray,
    totals: np.ndarray,
) -> ValueSpan:
    """What all tests of a node have in common, whose sums `totals` hold; its slack is a share of its targets' range."""
    low = truth[ids[lo]]
    high = low
    for i in range(np.uint64(lo + 1), np.uint64(hi)):
        y = truth[np.uint64(ids[i])]
        low = min(low, y)
        high = max(high, y)
    width = (high - low) * settings.truth_unit
    slack = (width if settings.criterion == SDR else width * width) * TEXTBOOK_TIE
    centre = np.int64(0)
    if settings.is_centred:
        centre = np.int64(np.rint(np.float64(totals[S_ALL]) / np.float64(totals[W_ALL])))
    total = totals[S_ALL] - centre * totals[W_ALL]
    score = score_moments(settings.criterion, totals[W_ALL], total, totals[Q_ALL], settings.square_unit, xlogx)
    return ValueSpan(lo, hi, centre, score, slack)


@kernel
def scan_levels(
    feature: int,
    n_bins: int,
    is_unit: bool,
    span: ValueSpan,
    xlogx: np.ndarray,
    settings: TextbookSettings,
    scratch: ScanScratch,
) -> None:
    """Figures of a branch for each level."""
    bins = scratch.bins
    totals = scratch.totals
    centre = span.centre
    w_missing = totals[W_MISSING]
    score = branch_score(w_missing, totals[S_MISSING], totals[Q_MISSING], centre, settings, xlogx)
    power = entropy_power(w_missing, settings, xlogx)
    n_full = n_bins
    fewest = totals[N_ALL]
    lightest = totals[W_ALL]
    if totals[N_MISSING] > 0:
        n_full += 1
        fewest = totals[N_MISSING]
        lightest = w_missing
    for b in range(n_bins):
        weight = bins[BIN_N, b] if is_unit else bins[BIN_WEIGHT, b]
        square = np.int64(0) if is_unit else bins[BIN_SQUARE, b]
        score += branch_score(weight, bins[BIN_SUM, b], square, centre, settings, xlogx)
        power += entropy_power(weight, settings, xlogx)
        fewest = min(fewest, bins[BIN_N, b])
        lightest = min(lightest, weight)
    gain = gain_of(score, span, totals[W_ALL])
    info = split_entropy(entropy_power(totals[W_ALL], settings, xlogx), power, totals[W_ALL], settings)
    is_valid = n_full >= 2 and fewest >= settings.min_samples_leaf and lightest >= settings.min_weight_leaf
    keep_levels(gain, info, n_full, w_missing, is_valid, feature, scratch.figures)


@kernel
def scan_cuts(
    feature: int,
    n_bins: int,
    is_unit: bool,
    span: ValueSpan,
    xlogx: np.ndarray,
    settings: TextbookSettings,
    scratch: ScanScratch,
    cuts: Cuts | None,
) -> None:
    """Figures of the best cut; after the last bin comes the cut of known against missing rows."""
    bins = scratch.bins
    totals = scratch.totals
    figures = scratch.figures
    centre = span.centre
    n_missing = totals[N_MISSING]
    w_missing = totals[W_MISSING]
    w_known = totals[W_ALL] - w_missing
    s_known = totals[S_ALL] - totals[S_MISSING]
    q_known = totals[Q_ALL] - totals[Q_MISSING]
    apart = branch_score(w_missing, totals[S_MISSING], totals[Q_MISSING], centre, settings, xlogx)
    power_all = entropy_power(totals[W_ALL], settings, xlogx)
    power_missing = entropy_power(w_missing, settings, xlogx)
    is_ratio = settings.rule == BY_RATIO
    best = best_figure(figures, feature, settings.rule)
    n_tried = np.int64(0)
    n_valid = np.int64(0)
    n_left = np.int64(0)
    w_left = np.int64(0)
    s_left = np.int64(0)
    q_left = np.int64(0)
    for b in range(n_bins):
        n_left += bins[BIN_N, b]
        w_left += bins[BIN_N, b] if is_unit else bins[BIN_WEIGHT, b]
        s_left += bins[BIN_SUM, b]
        q_left += np.int64(0) if is_unit else bins[BIN_SQUARE, b]
        is_end = b == n_bins - 1
        if is_end and n_missing == 0:
            break
        n_right = n_missing if is_end else totals[N_ALL] - n_missing - n_left
        fewest = min(n_left, n_right)
        lightest = w_left if is_end else min(w_left, w_known - w_left)
        if n_missing > 0:
            fewest = min(fewest, n_missing)
            lightest = min(lightest, w_missing)
        is_valid = fewest >= settings.min_samples_leaf and lightest >= settings.min_weight_leaf
        n_tried += 1
        if cuts is None:
            if not is_valid:
                continue
        score = apart + branch_score(w_left, s_left, q_left, centre, settings, xlogx)
        score += branch_score(w_known - w_left, s_known - s_left, q_known - q_left, centre, settings, xlogx)
        gain = gain_of(score, span, totals[W_ALL])
        last = bins[BIN_CODE, b]
        code = np.int64(-1) if is_end else bins[BIN_CODE, b + 1]
        info = 0.0
        is_noted = False
        if cuts is not None:
            is_noted = True
        is_new = not is_ratio and is_valid and (is_better(gain, 0.0, best, span.slack, settings.rule) or best < 0.0)
        if is_ratio or is_new or is_noted:
            powers = power_missing + entropy_power(w_left, settings, xlogx)
            powers += entropy_power(w_known - w_left, settings, xlogx)
            info = split_entropy(power_all, powers, totals[W_ALL], settings)
        if is_ratio:
            is_new = is_valid and (is_better(gain, info, best, span.slack, BY_RATIO) or best < 0.0)
        n_valid += np.int64(is_valid)
        if is_new:
            keep_cut(last, code, gain, info, feature, figures)
            best = best_figure(figures, feature, settings.rule)
        if cuts is not None:
            note_cut(n_tried - 1, last, code, gain, info, is_valid, cuts)
    figures.missing_weight[feature] = w_missing
    figures.n_tried[feature] = n_tried
    figures.n_cuts[feature] = n_valid
    count_full(n_missing, feature, settings, figures)


@kernel
def scan_feature(
    feature: int,
    span: ValueSpan,
    table: TextbookTable,
    entries: Entries,
    settings: TextbookSettings,
    scratch: ScanScratch,
    cuts: Cuts | None,
) -> None:
    """Write the figures of the best test of a feature over the entries of a node."""
    column = scratch.column
    addends = entries.addends
    totals = scratch.totals
    xlogx = table.xlogx
    lo = span.lo
    hi = span.hi
    clear_figures(scratch.figures, feature, settings)
    codes = gather(table.columns, entries.ids, lo, hi, feature, column)
    if codes.highest == 0 or (codes.lowest == codes.highest and codes.n_missing == 0):
        return
    n_codes = table.features[N_CODES, feature]
    is_unit = len(addends) == 1
    if n_codes <= hi - lo or n_codes <= FEW_CODES:
        coded = CodedRows(column, addends)
        n_bins = list_bins_by_histogram(coded, lo, hi, 0, n_codes, scratch.histogram, scratch.bins, totals)
    else:
        side = make_keys(column, lo, hi, 0, LARGE_SHIFT, scratch.keys, scratch.counts)
        totals[W_MISSING] = 0
        totals[S_MISSING] = 0
        totals[Q_MISSING] = 0
        ordered = SortedKeys(scratch.keys, side, 0, hi - lo, addends, lo)
        n_bins = list_bins_by_keys(ordered, LARGE_SHIFT, scratch.bins, totals)
    if table.features[IS_CATEGORICAL, feature] != 0:
        scan_levels(feature, n_bins, is_unit, span, xlogx, settings, scratch)
    else:
        scan_cuts(feature, n_bins, is_unit, span, xlogx, settings, scratch, cuts)
    close_figures(table.features, feature, totals[W_ALL], settings, scratch.figures)
