"""The best test of one feature of a node, for classes: a branch for each level, or a cut.

Entropy is kept as sums of f(w) = w log2 w, *powers*, in fixed point: the sum of f over the class weights, minus f of
the weight, is minus the weighted entropy in bits. Gini is computed afresh at each cut, from sums that are integers.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import (
    ALL,
    BY_C45,
    BY_RATIO,
    CELLS_PER_ROW,
    ENTROPY,
    GAIN_FIGURE,
    IS_CATEGORICAL,
    IS_VALID,
    LARGE_SHIFT,
    LEFT,
    LEFT_POWER,
    MISSING,
    MISSING_CODE,
    MISSING_WEIGHT,
    N_ALL,
    N_CODES,
    N_CUTS,
    N_MISSING,
    N_TRIED,
    PRESENT,
    RATIO,
    RIGHT,
    RIGHT_POWER,
    TARGET,
    W_ALL,
    W_MISSING,
    WEIGHT,
)

from ..common.sorting import make_keys
from ..common.structs import TextbookSettings
from .figures import (
    SMALL,
    clear_figures,
    close_figures,
    count_full,
    entropy_power,
    gather,
    is_apart,
    is_better,
    keep_cut,
    keep_levels,
    least_weight,
    note_cut,
    split_entropy,
)

LARGE_MASK = (1 << LARGE_SHIFT) - 1
TIE = 2.0**-42  # bits or Gini: four digits beyond what sums of logarithms are exact to


@inlined
def gini_score(sums: np.ndarray, side: int, weight: int, n_present: int, unit: float) -> float:
    """Weight less weighted Gini impurity of class weights sums[side], in the user's units."""
    if weight == 0:
        return 0.0
    score = 0.0
    for k in range(n_present):
        x = np.float64(sums[side, sums[PRESENT, k]]) * unit
        score += x * x
    return score / (np.float64(weight) * unit)


@kernel
def class_power(sums: np.ndarray, side: int, n_present: int, settings: TextbookSettings, xlogx: np.ndarray) -> int:
    """Sum of f over the class weights sums[side]."""
    power = np.int64(0)
    for k in range(n_present):
        power += entropy_power(sums[side, sums[PRESENT, k]], settings, xlogx)
    return power


@kernel
def class_score(
    sums: np.ndarray, side: int, weight: int, n_present: int, settings: TextbookSettings, xlogx: np.ndarray
) -> float:
    """Minus the weighted entropy, or weight less weighted Gini, of class weights sums[side], in the user's units."""
    if settings.criterion == ENTROPY:
        power = class_power(sums, side, n_present, settings, xlogx)
        return np.float64(power - entropy_power(weight, settings, xlogx)) / settings.log_scale
    return gini_score(sums, side, weight, n_present, settings.weight_unit)


@kernel
def class_impurity(
    sums: np.ndarray, side: int, weight: int, n_present: int, settings: TextbookSettings, xlogx: np.ndarray
) -> float:
    """Entropy in bits, or Gini impurity, of class weights sums[side]."""
    score = class_score(sums, side, weight, n_present, settings, xlogx)
    x = np.float64(weight) * settings.weight_unit
    return max((-score if settings.criterion == ENTROPY else x - score) / x, 0.0)


@inlined
def gain_of(difference: float, w_all: float, w_known: float, settings: TextbookSettings) -> float:
    """Gain of a test whose branches score higher than the node by `difference`."""
    if settings.rule == BY_C45:
        known = (w_known / w_all) * difference
        return 0.0 if abs(known) < SMALL else known / w_known
    gain = difference / w_all
    return 0.0 if abs(gain) < TIE else gain


@inlined
def fill_cells(
    columns: np.ndarray,
    ids: np.ndarray,
    labels: np.ndarray,
    lo: int,
    hi: int,
    feature: int,
    settings: TextbookSettings,
    cells: np.ndarray,
) -> int:
    """Add entries lo .. hi to cells[code * (n_classes + 1) + class]; return how many are missing.

    The last cell of a code counts its entries, where somebody asks: not with weights of 1, not for C4.5.
    """
    wide = np.uint64(settings.n_classes + 1)
    last = np.uint64(settings.n_classes)
    at = np.uint64(feature)
    n_missing = np.int64(0)
    if len(labels) == 1:
        for i in range(np.uint64(lo), np.uint64(hi)):
            code = columns[at, np.uint64(ids[i])]
            cells[np.uint64(code) * wide + np.uint64(labels[TARGET, i])] += 1
            n_missing += np.int64(code == MISSING_CODE)
    elif settings.rule == BY_C45:
        for i in range(np.uint64(lo), np.uint64(hi)):
            code = columns[at, np.uint64(ids[i])]
            cells[np.uint64(code) * wide + np.uint64(labels[TARGET, i])] += labels[WEIGHT, i]
            n_missing += np.int64(code == MISSING_CODE)
    else:
        for i in range(np.uint64(lo), np.uint64(hi)):
            code = columns[at, np.uint64(ids[i])]
            first = np.uint64(code) * wide
            cells[first + np.uint64(labels[TARGET, i])] += labels[WEIGHT, i]
            cells[first + last] += 1
            n_missing += np.int64(code == MISSING_CODE)
    return n_missing


@inlined
def find_two(cells: np.ndarray, sums: np.ndarray, n_codes: int, n_present: int, n_classes: int) -> tuple[int, int]:
    """The two lowest known codes that the cells hold: equal where there is but one, 0 where there is none."""
    lowest = np.int64(0)
    for code in range(1, n_codes + 1):
        for k in range(n_present):
            if cells[code * (n_classes + 1) + sums[PRESENT, k]] == 0:
                continue
            if lowest > 0:
                return lowest, np.int64(code)
            lowest = np.int64(code)
            break
    return lowest, lowest


@inlined
def empty_cells(code: int, n_classes: int, cells: np.ndarray) -> None:
    """Make the cells of a code zero."""
    for at in range(code * (n_classes + 1), (code + 1) * (n_classes + 1)):
        cells[at] = 0


@inlined
def take_missing(
    n_missing: int, n_classes: int, n_present: int, cells: np.ndarray, sums: np.ndarray, totals: np.ndarray
) -> None:
    """Move the sums of missing entries from their cells to sums[MISSING] and `totals`."""
    totals[W_MISSING] = 0
    for k in range(n_present):
        c = sums[PRESENT, k]
        sums[MISSING, c] = cells[c]
        totals[W_MISSING] += cells[c]
    totals[N_MISSING] = n_missing
    empty_cells(MISSING_CODE, n_classes, cells)


@kernel
def scan_levels(
    cells: np.ndarray,
    sums: np.ndarray,
    totals: np.ndarray,
    n_codes: int,
    n_present: int,
    feature: int,
    settings: TextbookSettings,
    xlogx: np.ndarray,
    figures: np.ndarray,
    is_unit: bool,
) -> None:
    """Figures of a branch for each level, from the cells of `fill_cells`, which are emptied."""
    unit = settings.weight_unit
    width = settings.n_classes + 1
    is_entropy = settings.criterion == ENTROPY
    w_missing = totals[W_MISSING]
    w_known = totals[W_ALL] - w_missing
    is_own = settings.spreads_missing == 0 and totals[N_MISSING] > 0  # a branch of missing values
    score_power = np.int64(0)
    score = 0.0
    split_power = entropy_power(w_missing, settings, xlogx)
    n_full = np.int64(0)
    n_heavy = np.int64(0)
    fewest = totals[N_ALL]
    lightest = totals[W_ALL]
    for code in range(1, n_codes + 1):
        at = code * width
        weight = np.int64(0)
        power = np.int64(0)
        square = 0.0
        for k in range(n_present):
            c = sums[PRESENT, k]
            held = cells[at + c]
            if held == 0:
                continue
            cells[at + c] = 0
            weight += held
            if is_entropy:
                power += entropy_power(held, settings, xlogx)
            else:
                x = np.float64(held) * unit
                square += x * x
        if weight == 0:
            continue
        fewest = min(fewest, weight if is_unit else cells[at + settings.n_classes])
        lightest = min(lightest, weight)
        cells[at + settings.n_classes] = 0
        own = entropy_power(weight, settings, xlogx)
        split_power += own
        score_power += power - own
        if not is_entropy:
            score += square / (np.float64(weight) * unit)
        n_full += 1
        if settings.min_weight - np.float64(weight) * unit < SMALL:
            n_heavy += 1
    if is_entropy:
        score = np.float64(score_power) / settings.log_scale
    for k in range(n_present):
        c = sums[PRESENT, k]
        sums[LEFT, c] = sums[ALL, c] - sums[MISSING, c]
    if is_own:
        score += class_score(sums, MISSING, w_missing, n_present, settings, xlogx)
        n_full += 1
        fewest = min(fewest, totals[N_MISSING])
        lightest = min(lightest, w_missing)
    if settings.spreads_missing != 0:
        score -= class_score(sums, LEFT, w_known, n_present, settings, xlogx)
    else:
        score -= class_score(sums, ALL, totals[W_ALL], n_present, settings, xlogx)
    gain = gain_of(score, np.float64(totals[W_ALL]) * unit, np.float64(w_known) * unit, settings)
    info = split_entropy(entropy_power(totals[W_ALL], settings, xlogx), split_power, totals[W_ALL], settings)
    keep_levels(gain, info, n_full, w_missing, feature, figures)
    if settings.rule == BY_C45:
        is_valid = n_heavy >= 2
    else:
        is_valid = n_full >= 2 and fewest >= settings.min_samples_leaf and lightest >= settings.min_weight_leaf
    figures[IS_VALID, feature] = 1.0 if is_valid else 0.0


@inlined
def move_left(
    sums: np.ndarray, c: int, weight: int, is_entropy: bool, settings: TextbookSettings, xlogx: np.ndarray
) -> tuple[int, int]:
    """Move a weight of class c from the right branch to the left; return how the powers of both change."""
    left = sums[LEFT, c] + weight
    right = sums[RIGHT, c] - weight
    sums[LEFT, c] = left
    sums[RIGHT, c] = right
    if not is_entropy:
        return np.int64(0), np.int64(0)
    power_left = entropy_power(left, settings, xlogx)
    power_right = entropy_power(right, settings, xlogx)
    rise_left = power_left - sums[LEFT_POWER, c]
    rise_right = power_right - sums[RIGHT_POWER, c]
    sums[LEFT_POWER, c] = power_left
    sums[RIGHT_POWER, c] = power_right
    return rise_left, rise_right


@inlined
def try_cut(
    sums: np.ndarray,
    totals: np.ndarray,
    n_left: int,
    w_left: int,
    power: int,  # of both branches, over their classes
    base: float,  # what the branches must exceed, in the user's units
    apart: int,  # f of missing entries
    last: int,
    code: int,
    n_present: int,
    feature: int,
    features: np.ndarray,
    edges: np.ndarray,
    settings: TextbookSettings,
    xlogx: np.ndarray,
    least: float,
    n_tried: int,
    n_valid: int,
    best: float,  # gain (BY_RATIO: ratio) of the best so far
    figures: np.ndarray,
    cuts: np.ndarray | None,
) -> tuple[int, int, float]:
    """Compare the cut between two codes (the second -1: known against missing) to the best of the feature.

    Returns the last three scalars as they are then. Inlined: it has outgrown what LLVM inlines by itself, and a call
    for each cut made C4.5 on adult grow for 280 ms instead of 93.
    """
    unit = settings.weight_unit
    is_end = code < 0
    w_known = totals[W_ALL] - totals[W_MISSING]
    w_right = totals[W_MISSING] if is_end else w_known - w_left
    is_valid = True
    if settings.rule == BY_C45:
        if not is_apart(features, edges, feature, last, code):
            return n_tried, n_valid, best
        is_valid = least - np.float64(w_left) * unit < SMALL and least - np.float64(w_right) * unit < SMALL
    else:
        n_right = totals[N_ALL] - totals[N_MISSING] - n_left
        is_valid = n_left >= settings.min_samples_leaf and (is_end or n_right >= settings.min_samples_leaf)
        if totals[N_MISSING] > 0 and totals[N_MISSING] < settings.min_samples_leaf:
            is_valid = False
        lightest = min(w_left, w_right)
        if totals[N_MISSING] > 0:
            lightest = min(lightest, totals[W_MISSING])
        if lightest < settings.min_weight_leaf:
            is_valid = False
    n_tried += 1
    if cuts is None:
        if not is_valid:
            return n_tried, n_valid, best
    power_split = entropy_power(w_left, settings, xlogx)
    if not is_end:
        power_split += entropy_power(w_right, settings, xlogx)
    if settings.criterion == ENTROPY:
        score = np.float64(power - power_split) / settings.log_scale
    else:
        score = gini_score(sums, LEFT, w_left, n_present, unit)
        if not is_end:
            score += gini_score(sums, RIGHT, w_right, n_present, unit)
    gain = gain_of(score - base, np.float64(totals[W_ALL]) * unit, np.float64(w_known) * unit, settings)
    info = 0.0
    is_new = True
    if settings.rule == BY_RATIO:
        info = split_entropy(
            entropy_power(totals[W_ALL], settings, xlogx), power_split + apart, totals[W_ALL], settings
        )
        is_new = is_better(gain, info, best, TIE, BY_RATIO)
    else:
        is_new = is_better(gain, 0.0, best, TIE, settings.rule)
    is_new = is_new and is_valid
    if is_valid:
        n_valid += 1
    if is_new:
        info = split_entropy(
            entropy_power(totals[W_ALL], settings, xlogx), power_split + apart, totals[W_ALL], settings
        )
        keep_cut(last, code, gain, info, feature, figures)
        best = figures[RATIO if settings.rule == BY_RATIO else GAIN_FIGURE, feature]
    if cuts is not None:
        info = split_entropy(
            entropy_power(totals[W_ALL], settings, xlogx), power_split + apart, totals[W_ALL], settings
        )
        note_cut(cuts, n_tried - 1, last, code, gain, info, is_valid)
    return n_tried, n_valid, best


@kernel
def scan_cuts(
    columns: np.ndarray,
    ids: np.ndarray,
    labels: np.ndarray,
    times: np.ndarray,
    lo: int,
    hi: int,
    n_missing: int,
    has_cells: bool,
    feature: int,
    features: np.ndarray,
    edges: np.ndarray,
    settings: TextbookSettings,
    xlogx: np.ndarray,
    column: np.ndarray,
    keys: np.ndarray,
    counts: np.ndarray,
    cells: np.ndarray,
    sums: np.ndarray,
    totals: np.ndarray,
    n_present: int,
    figures: np.ndarray,
    cuts: np.ndarray | None,
) -> None:
    """Figures of the best cut of a number over entries lo .. hi, which `fill_cells` has counted or `column` holds."""
    unit = settings.weight_unit
    n_codes = features[N_CODES, feature]
    width = settings.n_classes + 1
    is_unit = len(labels) == 1
    is_entropy = settings.criterion == ENTROPY
    side = np.int64(0)
    if not has_cells:
        side = make_keys(column, lo, hi, 0, LARGE_SHIFT, keys, counts)
        for k in range(n_present):
            sums[MISSING, sums[PRESENT, k]] = 0
        totals[N_MISSING] = n_missing
        totals[W_MISSING] = 0
        for k in range(n_missing):
            i = lo + (np.int64(keys[side, k]) & LARGE_MASK)
            w = np.int64(1) if is_unit else labels[WEIGHT, i]
            sums[MISSING, labels[TARGET, i]] += w
            totals[W_MISSING] += w
    figures[MISSING_WEIGHT, feature] = totals[W_MISSING]
    w_known = totals[W_ALL] - totals[W_MISSING]
    least = 0.0
    is_hopeless = False
    if settings.rule == BY_C45:
        least = least_weight(np.float64(w_known) * unit, settings)
        n_known = totals[N_ALL] - n_missing
        if len(times) > 1:  # a row of weight 2 is two rows
            n_known = np.int64(0)
            for i in range(lo, hi):
                if np.int64(columns[feature, ids[i]]) != MISSING_CODE:
                    n_known += times[ids[i]]
        is_hopeless = 2.0 * least - np.float64(n_known) > SMALL
    power_left = np.int64(0)
    power_right = np.int64(0)
    for k in range(n_present):
        c = sums[PRESENT, k]
        known = sums[ALL, c] - sums[MISSING, c]
        sums[LEFT, c] = 0
        sums[RIGHT, c] = known
        if is_entropy:
            power = entropy_power(known, settings, xlogx)
            sums[LEFT_POWER, c] = 0
            sums[RIGHT_POWER, c] = power
            power_right += power
    apart = entropy_power(totals[W_MISSING], settings, xlogx)
    if settings.spreads_missing != 0:
        base = class_score(sums, RIGHT, w_known, n_present, settings, xlogx)
    else:
        base = class_score(sums, ALL, totals[W_ALL], n_present, settings, xlogx)
        base -= class_score(sums, MISSING, totals[W_MISSING], n_present, settings, xlogx)
    best = figures[RATIO if settings.rule == BY_RATIO else GAIN_FIGURE, feature]
    n_tried = np.int64(0)
    n_valid = np.int64(0)
    n_left = np.int64(0)
    w_left = np.int64(0)
    last = np.int64(-1)
    code = np.int64(1)
    n_done = np.int64(0)  # classes of the code at hand, or keys
    if not has_cells:
        n_done = np.int64(n_missing)
    while True:
        # the next class of a code, from either way: one place to try a cut is one copy of all that to compile
        is_end = True
        c = np.int64(0)
        w = np.int64(0)
        n_here = np.int64(0)
        if has_cells:
            while code <= n_codes:
                if n_done == n_present:
                    n_done = np.int64(0)
                    code += 1
                    continue
                c = sums[PRESENT, n_done]
                at = code * width
                n_done += 1
                w = cells[at + c]
                if w == 0:
                    continue
                cells[at + c] = 0
                n_here = w
                if not is_unit:  # counted with its first class
                    n_here = cells[at + settings.n_classes]
                    cells[at + settings.n_classes] = 0
                is_end = False
                break
        elif n_done < hi - lo:
            key = np.int64(keys[side, n_done])
            n_done += 1
            code = key >> LARGE_SHIFT
            i = lo + (key & LARGE_MASK)
            c = labels[TARGET, i]
            w = np.int64(1) if is_unit else labels[WEIGHT, i]
            n_here = np.int64(1)
            is_end = False
        if is_end:
            code = np.int64(-1)
        if code != last:
            has_cut = last >= 0 and not is_hopeless
            if is_end and (n_missing == 0 or settings.spreads_missing != 0):
                has_cut = False
            if has_cut:
                n_tried, n_valid, best = try_cut(
                    sums, totals, n_left, w_left, power_left + power_right, base, apart, last, code, n_present,
                    feature, features, edges, settings, xlogx, least, n_tried, n_valid, best, figures, cuts,
                )  # fmt: skip
            last = code
        if is_end:
            break
        rise_left, rise_right = move_left(sums, c, w, is_entropy, settings, xlogx)
        power_left += rise_left
        power_right += rise_right
        w_left += w
        n_left += n_here
    figures[N_TRIED, feature] = n_tried
    figures[N_CUTS, feature] = n_valid
    count_full(n_missing, feature, settings, figures)


@kernel
def scan_feature(
    columns: np.ndarray,
    ids: np.ndarray,
    labels: np.ndarray,
    times: np.ndarray,
    lo: int,
    hi: int,
    feature: int,
    features: np.ndarray,
    edges: np.ndarray,
    settings: TextbookSettings,
    xlogx: np.ndarray,
    column: np.ndarray,
    keys: np.ndarray,
    counts: np.ndarray,
    cells: np.ndarray,
    sums: np.ndarray,
    totals: np.ndarray,
    n_present: int,
    figures: np.ndarray,
    cuts: np.ndarray | None,
) -> None:
    """Write the figures of the best test of a feature over entries lo .. hi; `sums` and `totals` hold the node's."""
    clear_figures(figures, feature, settings)
    is_category = features[IS_CATEGORICAL, feature] != 0
    n_codes = features[N_CODES, feature]
    has_cells = is_category or (n_codes + 1) * (settings.n_classes + 1) <= CELLS_PER_ROW * (hi - lo)
    if has_cells:
        n_missing = fill_cells(columns, ids, labels, lo, hi, feature, settings, cells)
        lowest, highest = find_two(cells, sums, n_codes, n_present, settings.n_classes)
    else:
        lowest, highest, n_missing = gather(columns, ids, lo, hi, feature, column)
    if highest == 0 or (lowest == highest and (n_missing == 0 or settings.spreads_missing != 0)):
        if has_cells:
            empty_cells(MISSING_CODE, settings.n_classes, cells)
            empty_cells(highest, settings.n_classes, cells)
        return  # constant, or nothing known
    if has_cells:
        take_missing(n_missing, settings.n_classes, n_present, cells, sums, totals)
    if is_category:
        scan_levels(
            cells, sums, totals, n_codes, n_present, feature, settings, xlogx, figures, len(labels) == 1
        )  # fmt: skip
    else:
        scan_cuts(
            columns, ids, labels, times, lo, hi, n_missing, has_cells, feature, features, edges, settings, xlogx,
            column, keys, counts, cells, sums, totals, n_present, figures, cuts,
        )  # fmt: skip
    close_figures(features, feature, totals[W_ALL], settings, figures)
