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
    ENTROPY,
    GINI,
    IS_CATEGORICAL,
    LARGE_SHIFT,
    LEFT,
    LEFT_POWER,
    MISSING,
    MISSING_CODE,
    N_ALL,
    N_CODES,
    N_MISSING,
    PRESENT,
    RIGHT,
    RIGHT_POWER,
    SUMS_PER_ROW,
    TARGET,
    W_ALL,
    W_MISSING,
    WEIGHT,
)

from ..common.criteria import pure_score, score_classes
from ..common.sorting import make_keys
from ..common.structs import (
    ClassSpan,
    Cut,
    Cuts,
    CutSearch,
    CutTally,
    Entries,
    ScanScratch,
    TextbookSettings,
    TextbookTable,
)
from ..common.ties import C45_SMALL, TEXTBOOK_TIE, is_better
from .figures import (
    best_figure,
    clear_figures,
    close_figures,
    count_full,
    entropy_power,
    gather,
    is_apart,
    keep_cut,
    keep_levels,
    least_weight,
    note_cut,
    split_entropy,
)

LARGE_MASK = (1 << LARGE_SHIFT) - 1


@inlined
def gini_score(
    sums: np.ndarray, side: int, weight: int, n_present: int, settings: TextbookSettings, xlogx: np.ndarray
) -> float:
    """Weight less weighted Gini impurity of class weights sums[side], in the user's units (C4.5's alone can be odd)."""
    if weight == 0:
        return 0.0
    return score_classes(GINI, sums, side, weight, n_present, xlogx) * settings.weight_unit


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
    return gini_score(sums, side, weight, n_present, settings, xlogx)


@kernel
def class_impurity(
    sums: np.ndarray, side: int, weight: int, n_present: int, settings: TextbookSettings, xlogx: np.ndarray
) -> float:
    """Entropy in bits, or Gini impurity, of class weights sums[side].

    Not the form of `common.criteria`, which takes logarithms of shares: this one comes from the sums of f that gains of
    tests are taken from, so a gain does not exceed it by a rounding of another kind.
    """
    score = class_score(sums, side, weight, n_present, settings, xlogx)
    x = np.float64(weight) * settings.weight_unit
    return max((pure_score(settings.criterion) * x - score) / x, 0.0)


@inlined
def gain_of(difference: float, w_all: float, w_known: float, settings: TextbookSettings) -> float:
    """Gain of a test whose branches score higher than the node by `difference`."""
    if settings.rule == BY_C45:
        known = (w_known / w_all) * difference
        return 0.0 if abs(known) < C45_SMALL else known / w_known
    gain = difference / w_all
    return 0.0 if abs(gain) < TEXTBOOK_TIE else gain


@inlined
def fill_histogram(
    feature: int,
    span: ClassSpan,
    columns: np.ndarray,
    entries: Entries,
    settings: TextbookSettings,
    histogram: np.ndarray,
) -> int:
    """Add the entries of a node to histogram[code * (n_classes + 1) + class]; return how many are missing.

    The last number of a code counts its entries, where somebody asks: not with weights of 1, not for C4.5.
    """
    ids = entries.ids
    addends = entries.addends
    lo = np.uint64(span.lo)
    hi = np.uint64(span.hi)
    wide = np.uint64(settings.n_classes + 1)
    last = np.uint64(settings.n_classes)
    at = np.uint64(feature)
    n_missing = np.int64(0)
    if len(addends) == 1:
        for i in range(lo, hi):
            code = columns[at, np.uint64(ids[i])]
            histogram[np.uint64(code) * wide + np.uint64(addends[TARGET, i])] += 1
            n_missing += np.int64(code == MISSING_CODE)
    elif settings.rule == BY_C45:
        for i in range(lo, hi):
            code = columns[at, np.uint64(ids[i])]
            histogram[np.uint64(code) * wide + np.uint64(addends[TARGET, i])] += addends[WEIGHT, i]
            n_missing += np.int64(code == MISSING_CODE)
    else:
        for i in range(lo, hi):
            code = columns[at, np.uint64(ids[i])]
            first = np.uint64(code) * wide
            histogram[first + np.uint64(addends[TARGET, i])] += addends[WEIGHT, i]
            histogram[first + last] += 1
            n_missing += np.int64(code == MISSING_CODE)
    return n_missing


@inlined
def find_two(histogram: np.ndarray, sums: np.ndarray, n_codes: int, n_present: int, n_classes: int) -> tuple[int, int]:
    """The two lowest known codes in the histogram: equal where there is but one, 0 where there is none."""
    lowest = np.int64(0)
    for code in range(1, n_codes + 1):
        for k in range(n_present):
            if histogram[code * (n_classes + 1) + sums[PRESENT, k]] == 0:
                continue
            if lowest > 0:
                return lowest, np.int64(code)
            lowest = np.int64(code)
            break
    return lowest, lowest


@inlined
def empty_bin(code: int, n_classes: int, histogram: np.ndarray) -> None:
    """Make the sums of a code zero."""
    for at in range(code * (n_classes + 1), (code + 1) * (n_classes + 1)):
        histogram[at] = 0


@inlined
def take_missing(n_classes: int, n_present: int, histogram: np.ndarray, sums: np.ndarray, totals: np.ndarray) -> None:
    """Move the sums of missing entries from the histogram to sums[MISSING] and `totals`."""
    totals[W_MISSING] = 0
    for k in range(n_present):
        c = sums[PRESENT, k]
        sums[MISSING, c] = histogram[c]
        totals[W_MISSING] += histogram[c]
    empty_bin(MISSING_CODE, n_classes, histogram)


# --- A branch for each level ---------------------------------------------------------------------------------------


@kernel
def scan_levels(
    feature: int,
    is_unit: bool,
    span: ClassSpan,
    table: TextbookTable,
    settings: TextbookSettings,
    scratch: ScanScratch,
) -> None:
    """Figures of a branch for each level, from the histogram, which is emptied."""
    xlogx = table.xlogx
    histogram = scratch.histogram
    sums = scratch.sums
    totals = scratch.totals
    n_present = span.n_present
    n_classes = settings.n_classes
    unit = settings.weight_unit
    width = n_classes + 1
    is_entropy = settings.criterion == ENTROPY
    w_missing = totals[W_MISSING]
    w_known = totals[W_ALL] - w_missing
    score_power = np.int64(0)
    score = 0.0
    split_power = entropy_power(w_missing, settings, xlogx)
    n_full = np.int64(0)
    n_heavy = np.int64(0)
    fewest = totals[N_ALL]
    lightest = totals[W_ALL]
    for code in range(1, table.features[N_CODES, feature] + 1):
        at = code * width
        weight = np.int64(0)
        power = np.int64(0)
        square = 0.0
        for k in range(n_present):
            c = sums[PRESENT, k]
            held = histogram[at + c]
            if held == 0:
                continue
            histogram[at + c] = 0
            weight += held
            if is_entropy:
                power += entropy_power(held, settings, xlogx)
            else:
                x = np.float64(held) * unit
                square += x * x
        if weight == 0:
            continue
        fewest = min(fewest, weight if is_unit else histogram[at + n_classes])
        lightest = min(lightest, weight)
        histogram[at + n_classes] = 0
        own = entropy_power(weight, settings, xlogx)
        split_power += own
        score_power += power - own
        if not is_entropy:
            score += square / (np.float64(weight) * unit)
        n_full += 1
        if settings.min_weight - np.float64(weight) * unit < C45_SMALL:
            n_heavy += 1
    if is_entropy:
        score = np.float64(score_power) / settings.log_scale
    if settings.spreads_missing:
        for k in range(n_present):
            c = sums[PRESENT, k]
            sums[LEFT, c] = sums[ALL, c] - sums[MISSING, c]
        score -= class_score(sums, LEFT, w_known, n_present, settings, xlogx)
    else:
        if totals[N_MISSING] > 0:  # missing values have a branch of their own
            score += class_score(sums, MISSING, w_missing, n_present, settings, xlogx)
            n_full += 1
            fewest = min(fewest, totals[N_MISSING])
            lightest = min(lightest, w_missing)
        score -= class_score(sums, ALL, totals[W_ALL], n_present, settings, xlogx)
    gain = gain_of(score, np.float64(totals[W_ALL]) * unit, np.float64(w_known) * unit, settings)
    info = split_entropy(entropy_power(totals[W_ALL], settings, xlogx), split_power, totals[W_ALL], settings)
    if settings.rule == BY_C45:
        is_valid = n_heavy >= 2
    else:
        is_valid = n_full >= 2 and fewest >= settings.min_samples_leaf and lightest >= settings.min_weight_leaf
    keep_levels(gain, info, n_full, w_missing, is_valid, feature, scratch.figures)


# --- Cuts ----------------------------------------------------------------------------------------------------------


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
def is_admissible(cut: Cut, w_right: int, least: float, settings: TextbookSettings, totals: np.ndarray) -> bool:
    """Whether both sides of a cut, and the missing entries where they have a branch, have rows and weight enough."""
    if settings.rule == BY_C45:
        unit = settings.weight_unit
        return least - np.float64(cut.w_left) * unit < C45_SMALL and least - np.float64(w_right) * unit < C45_SMALL
    n_missing = totals[N_MISSING]
    fewest = cut.n_left
    lightest = min(cut.w_left, w_right)
    if cut.code >= 0:
        fewest = min(fewest, totals[N_ALL] - n_missing - cut.n_left)
    if n_missing > 0:
        fewest = min(fewest, n_missing)
        lightest = min(lightest, totals[W_MISSING])
    return fewest >= settings.min_samples_leaf and lightest >= settings.min_weight_leaf


@inlined
def try_cut(
    cut: Cut,
    tally: CutTally,
    search: CutSearch,
    table: TextbookTable,
    settings: TextbookSettings,
    scratch: ScanScratch,
    cuts: Cuts | None,
) -> CutTally:
    """Compare a cut to the best of its feature; return the tally with it.

    Inlined: it has outgrown what LLVM inlines by itself, and a call for each cut made C4.5 on adult grow for 280 ms
    instead of 93.
    """
    xlogx = table.xlogx
    totals = scratch.totals
    unit = settings.weight_unit
    feature = search.feature
    is_end = cut.code < 0
    w_all = totals[W_ALL]
    w_known = w_all - totals[W_MISSING]
    w_right = totals[W_MISSING] if is_end else w_known - cut.w_left
    if settings.rule == BY_C45:
        if not is_apart(table.features, table.edges, feature, cut.last, cut.code):
            return tally
    is_valid = is_admissible(cut, w_right, search.least, settings, totals)
    if cuts is None:
        if not is_valid:
            return CutTally(tally.n_tried + 1, tally.n_valid, tally.best)
    power_split = entropy_power(cut.w_left, settings, xlogx)
    if not is_end:
        power_split += entropy_power(w_right, settings, xlogx)
    if settings.criterion == ENTROPY:
        score = np.float64(cut.power - power_split) / settings.log_scale
    else:
        score = gini_score(scratch.sums, LEFT, cut.w_left, search.n_present, settings, xlogx)
        if not is_end:
            score += gini_score(scratch.sums, RIGHT, w_right, search.n_present, settings, xlogx)
    gain = gain_of(score - search.base, np.float64(w_all) * unit, np.float64(w_known) * unit, settings)
    powers = power_split + search.apart
    best = tally.best
    info = 0.0
    if settings.rule == BY_RATIO:
        info = split_entropy(entropy_power(w_all, settings, xlogx), powers, w_all, settings)
        is_new = is_better(gain, info, best, TEXTBOOK_TIE, BY_RATIO)
    else:
        is_new = is_better(gain, 0.0, best, TEXTBOOK_TIE, settings.rule)
    if is_new and is_valid:
        info = split_entropy(entropy_power(w_all, settings, xlogx), powers, w_all, settings)
        keep_cut(cut.last, cut.code, gain, info, feature, scratch.figures)
        best = best_figure(scratch.figures, feature, settings.rule)
    if cuts is not None:
        info = split_entropy(entropy_power(w_all, settings, xlogx), powers, w_all, settings)
        note_cut(tally.n_tried, cut.last, cut.code, gain, info, is_valid, cuts)
    return CutTally(tally.n_tried + 1, tally.n_valid + np.int64(is_valid), best)


@inlined
def sum_missing(lo: int, side: int, n_missing: int, n_present: int, addends: np.ndarray, scratch: ScanScratch) -> None:
    """Sum the missing entries, whose keys come first, to sums[MISSING] and `totals`."""
    sums = scratch.sums
    for k in range(n_present):
        sums[MISSING, sums[PRESENT, k]] = 0
    total = np.int64(0)
    for k in range(n_missing):
        i = lo + (np.int64(scratch.keys[side, k]) & LARGE_MASK)
        w = np.int64(1) if len(addends) == 1 else addends[WEIGHT, i]
        sums[MISSING, addends[TARGET, i]] += w
        total += w
    scratch.totals[W_MISSING] = total


@inlined
def count_known(feature: int, lo: int, hi: int, n_missing: int, table: TextbookTable, ids: np.ndarray) -> int:
    """Rows of entries lo .. hi whose value is known; a row of weight 2 is two rows."""
    if len(table.times) == 1:
        return hi - lo - n_missing
    n_known = np.int64(0)
    for i in range(lo, hi):
        if np.int64(table.columns[feature, ids[i]]) != MISSING_CODE:
            n_known += table.times[ids[i]]
    return n_known


@inlined
def start_cuts(
    feature: int,
    n_present: int,
    least: float,
    settings: TextbookSettings,
    xlogx: np.ndarray,
    sums: np.ndarray,
    totals: np.ndarray,
) -> tuple[CutSearch, int]:
    """Put every known entry right of the first cut; return what the cuts share, and f over the classes on the right."""
    w_missing = totals[W_MISSING]
    power_right = np.int64(0)
    for k in range(n_present):
        c = sums[PRESENT, k]
        known = sums[ALL, c] - sums[MISSING, c]
        sums[LEFT, c] = 0
        sums[RIGHT, c] = known
        if settings.criterion == ENTROPY:
            power = entropy_power(known, settings, xlogx)
            sums[LEFT_POWER, c] = 0
            sums[RIGHT_POWER, c] = power
            power_right += power
    if settings.spreads_missing:
        base = class_score(sums, RIGHT, totals[W_ALL] - w_missing, n_present, settings, xlogx)
    else:
        base = class_score(sums, ALL, totals[W_ALL], n_present, settings, xlogx)
        base -= class_score(sums, MISSING, w_missing, n_present, settings, xlogx)
    return CutSearch(feature, n_present, base, entropy_power(w_missing, settings, xlogx), least), power_right


@kernel
def scan_cuts(
    feature: int,
    side: int,
    span: ClassSpan,
    table: TextbookTable,
    entries: Entries,
    settings: TextbookSettings,
    scratch: ScanScratch,
    cuts: Cuts | None,
) -> None:
    """Figures of the best cut of a number; side: the row of `keys` that has the entries in order, -1: `histogram`."""
    xlogx = table.xlogx
    addends = entries.addends
    keys = scratch.keys
    histogram = scratch.histogram
    sums = scratch.sums
    totals = scratch.totals
    figures = scratch.figures
    lo = span.lo
    n_present = span.n_present
    n_classes = settings.n_classes
    n_codes = table.features[N_CODES, feature]
    n_missing = totals[N_MISSING]
    width = n_classes + 1
    has_histogram = side < 0
    is_unit = len(addends) == 1
    is_entropy = settings.criterion == ENTROPY
    least = 0.0
    is_hopeless = False
    if settings.rule == BY_C45:
        least = least_weight(np.float64(totals[W_ALL] - totals[W_MISSING]) * settings.weight_unit, settings)
        n_known = count_known(feature, lo, span.hi, n_missing, table, entries.ids)
        is_hopeless = 2.0 * least - np.float64(n_known) > C45_SMALL
    figures.missing_weight[feature] = totals[W_MISSING]
    power_left = np.int64(0)
    search, power_right = start_cuts(feature, n_present, least, settings, xlogx, sums, totals)
    tally = CutTally(np.int64(0), np.int64(0), best_figure(figures, feature, settings.rule))
    n_left = np.int64(0)
    w_left = np.int64(0)
    last = np.int64(-1)
    code = np.int64(1)
    n_done = np.int64(0) if has_histogram else n_missing  # classes of the code at hand, or keys
    while True:
        # the next class of a code, from either way: one place to try a cut is one copy of all that to compile
        is_end = True
        c = np.int64(0)
        w = np.int64(0)
        n_here = np.int64(0)
        if has_histogram:
            while code <= n_codes:
                if n_done == n_present:
                    n_done = np.int64(0)
                    code += 1
                    continue
                c = sums[PRESENT, n_done]
                at = code * width
                n_done += 1
                w = histogram[at + c]
                if w == 0:
                    continue
                histogram[at + c] = 0
                n_here = w
                if not is_unit:  # counted with its first class
                    n_here = histogram[at + n_classes]
                    histogram[at + n_classes] = 0
                is_end = False
                break
        elif n_done < span.hi - lo:
            key = np.int64(keys[side, n_done])
            n_done += 1
            code = key >> LARGE_SHIFT
            i = lo + (key & LARGE_MASK)
            c = addends[TARGET, i]
            w = np.int64(1) if is_unit else addends[WEIGHT, i]
            n_here = np.int64(1)
            is_end = False
        if is_end:
            code = np.int64(-1)
        if code != last:
            has_cut = last >= 0 and not is_hopeless
            if is_end and (n_missing == 0 or settings.spreads_missing):
                has_cut = False
            if has_cut:
                cut = Cut(last, code, n_left, w_left, power_left + power_right)
                tally = try_cut(cut, tally, search, table, settings, scratch, cuts)
            last = code
        if is_end:
            break
        rise_left, rise_right = move_left(sums, c, w, is_entropy, settings, xlogx)
        power_left += rise_left
        power_right += rise_right
        w_left += w
        n_left += n_here
    figures.n_tried[feature] = tally.n_tried
    figures.n_cuts[feature] = tally.n_valid
    count_full(n_missing, feature, settings, figures)


# --- Either --------------------------------------------------------------------------------------------------------


@kernel
def scan_feature(
    feature: int,
    span: ClassSpan,
    table: TextbookTable,
    entries: Entries,
    settings: TextbookSettings,
    scratch: ScanScratch,
    cuts: Cuts | None,
) -> None:
    """Write the figures of the best test of a feature over the entries of a node."""
    histogram = scratch.histogram
    sums = scratch.sums
    totals = scratch.totals
    n_present = span.n_present
    n_classes = settings.n_classes
    n_codes = table.features[N_CODES, feature]
    is_category = table.features[IS_CATEGORICAL, feature] != 0
    has_histogram = is_category or (n_codes + 1) * (n_classes + 1) <= SUMS_PER_ROW * (span.hi - span.lo)
    clear_figures(scratch.figures, feature, settings)
    if has_histogram:
        n_missing = fill_histogram(feature, span, table.columns, entries, settings, histogram)
        lowest, highest = find_two(histogram, sums, n_codes, n_present, n_classes)
    else:
        lowest, highest, n_missing = gather(table.columns, entries.ids, span.lo, span.hi, feature, scratch.column)
    if highest == 0 or (lowest == highest and (n_missing == 0 or settings.spreads_missing)):
        if has_histogram:
            empty_bin(MISSING_CODE, n_classes, histogram)
            empty_bin(highest, n_classes, histogram)
        return  # constant, or nothing known
    totals[N_MISSING] = n_missing
    side = np.int64(-1)
    if has_histogram:
        take_missing(n_classes, n_present, histogram, sums, totals)
    else:
        side = make_keys(scratch.column, span.lo, span.hi, 0, LARGE_SHIFT, scratch.keys, scratch.counts)
        sum_missing(span.lo, side, n_missing, n_present, entries.addends, scratch)
    if is_category:
        scan_levels(feature, len(entries.addends) == 1, span, table, settings, scratch)
    else:
        scan_cuts(feature, side, span, table, entries, settings, scratch, cuts)
    close_figures(table.features, feature, totals[W_ALL], settings, scratch.figures)
