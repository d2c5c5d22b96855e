"""Judge cuts of times until an event, some of them censored, by the log-rank test between the branches.

A branch is, for every time of an event among the node's rows, the weight of its rows that are still at risk, and of
those whose event comes then. The statistic of a cut is Z**2 / V: at each time the events on the left less those
expected, the share of the left among those at risk times all events, add up to Z; the variances of these to V (Mantel
1966). Weights are counts: a row of weight 2 is two rows. Of weights that are no whole numbers the variance is without
the factor (n - d) / (n - 1) for d events among n rows at risk, which is 1 where no two events come at a time.

Rows are counted where they leave, once; the sums over times follow for each cut: rows plus cuts x times steps.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import BIN_CODE, BIN_N, BIN_WEIGHT, N_MISSING

from ..common.structs import OpenNode, OutputScratch, Rows, Scratch, TimeScratch
from .scan_medians import LEFT, LEFT_MISSING, RIGHT, RIGHT_MISSING

LEAVING, EVENTS = 0, 1  # rows of the counts of a branch
WEIGHT_ROW, EVENT_ROW = 1, 2  # of the addends: weight of a row, and the same where its event was seen, else 0
ROUNDING = 2.0**-40  # of a statistic: sums of differences that cancel


@kernel
def open_times(node: OpenNode, rows: Rows, outputs: OutputScratch, times: TimeScratch) -> float:
    """Count the events and the rows at risk of a node; return its score, which is 0."""
    ids, addends, code = rows.ids, rows.addends, times.code
    events, leaving, place = times.events, times.leaving, times.place
    n_codes = len(place)
    for c in range(n_codes):
        events[c] = 0
        leaving[c] = 0
    for i in range(node.lo, node.hi):
        c = np.int64(code[np.uint64(ids[i])])
        leaving[c] += addends[WEIGHT_ROW, i]
        events[c] += addends[EVENT_ROW, i]
    n_times = np.int64(0)
    for c in range(n_codes):
        if events[c] > 0:
            times.died[n_times] = events[c]
            n_times += 1
        place[c] = n_times
    at_risk = np.int64(0)
    k = n_times
    for step in range(n_codes):
        c = n_codes - 1 - step
        at_risk += leaving[c]
        if events[c] > 0:
            k -= 1
            times.risk[k] = at_risk
    times.hazard[0] = 0.0
    for k in range(n_times):
        times.hazard[k + 1] = times.hazard[k] + np.float64(times.died[k]) / np.float64(times.risk[k])
    times.n_times[0] = n_times
    outputs.whole[0] = 0.0
    outputs.blur[0] = ROUNDING
    return 0.0


@inlined
def count_row(i: int, rows_ids: np.ndarray, addends: np.ndarray, counts: np.ndarray, times: TimeScratch) -> None:
    """Count row i where it leaves, and its event where it is seen: at the last time that it is at risk."""
    k = times.place[np.int64(times.code[np.uint64(rows_ids[i])])]
    counts[LEAVING, k] += addends[WEIGHT_ROW, i]
    if addends[EVENT_ROW, i] > 0:
        counts[EVENTS, k - 1] += addends[EVENT_ROW, i]


@kernel
def minus_statistic(has_missing: bool, times: TimeScratch) -> float:
    """Minus the log-rank statistic of the rows on the left, with those of missing values if asked for, and the others.

    Infinite where one of the two has no part in any event.
    """
    left, missing, died, risk = times.left, times.missing, times.died, times.risk
    z = 0.0
    v = 0.0
    held = np.int64(0)
    n_times = times.n_times[0]
    for step in range(n_times):
        k = n_times - 1 - step
        held += left[LEAVING, k + 1]
        seen = left[EVENTS, k]
        if has_missing:
            held += missing[LEAVING, k + 1]
            seen += missing[EVENTS, k]
        share = np.float64(held) / np.float64(risk[k])
        expected = share * np.float64(died[k])
        z += np.float64(seen) - expected
        spread = expected * (1.0 - share)
        if times.unit > 0:
            others = risk[k] - times.unit
            spread = spread * np.float64(risk[k] - died[k]) / np.float64(others) if others > 0 else 0.0
        v += spread
    return -(z * z) / v if v > 0.0 else np.inf


@kernel
def pass_times(
    n_bins: int,
    base: int,
    addends: np.ndarray,
    ids: np.ndarray,
    bins: np.ndarray,
    totals: np.ndarray,
    outputs: OutputScratch,
    times: TimeScratch,
) -> None:
    """Write minus the statistic of every cut, as the error of its left branch; that of the right one is 0."""
    order, errors, left, missing = outputs.order, outputs.errors, times.left, times.missing
    for k in range(times.n_times[0] + 1):
        for row in range(2):
            left[row, k] = 0
            missing[row, k] = 0
    for k in range(totals[N_MISSING]):
        count_row(base + np.int64(order[k]), ids, addends, missing, times)
    at = totals[N_MISSING]
    for b in range(n_bins):
        for k in range(at, at + bins[BIN_N, b]):
            count_row(base + np.int64(order[k]), ids, addends, left, times)
        at += bins[BIN_N, b]
        errors[LEFT, b] = minus_statistic(False, times)
        errors[RIGHT, b] = 0.0
        if totals[N_MISSING] > 0:
            errors[LEFT_MISSING, b] = minus_statistic(True, times)
            errors[RIGHT_MISSING, b] = 0.0


@kernel
def score_levels_by_times(
    lo: int, hi: int, feature: int, n_bins: int, rows: Rows, scratch: Scratch, scores: np.ndarray, times: TimeScratch
) -> None:
    """Write the mean martingale residual of each level: events less the cumulative hazards of the node's rows.

    Their sum over a level is the Z of the level against the others. The histogram is zero before and after.
    """
    codes, addends, histogram, bins = rows.codes, rows.addends, scratch.histogram, scratch.bins
    for i in range(lo, hi):
        k = times.place[np.int64(times.code[np.uint64(rows.ids[i])])]
        residual = np.float64(addends[EVENT_ROW, i]) - np.float64(addends[WEIGHT_ROW, i]) * times.hazard[k]
        histogram[np.int64(codes[i, feature])] += np.int64(np.floor(residual * times.scale + 0.5))
    histogram[0] = 0
    for b in range(n_bins):
        scores[b] = np.float64(histogram[bins[BIN_CODE, b]]) / np.float64(bins[BIN_WEIGHT, b])
        histogram[bins[BIN_CODE, b]] = 0
