"""Scan one feature for the best cut, for three classes or more.

A bin holds a weight per class, so bins are not listed: the scan walks the histogram (a sum per code and class) or the
sorted keys and moves weights from the right branch to the left. Whole weights keep the sums of squares (Gini) or of
f(k) (entropy) of both branches up to date as integers, called *powers* here; otherwise a score is computed afresh at
each cut, so that it depends on the rows to the left and not on their order.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import (
    ALL,
    ENTROPY,
    GINI,
    IS_LISTED,
    LARGE_SHIFT,
    LEARNED,
    LEFT,
    MISSING,
    MISSING_CODE,
    N_ALL,
    N_CODES,
    N_MISSING,
    PRESENT,
    RIGHT,
    SUMS_PER_ROW,
    SURROGATE,
    TARGET,
    W_ALL,
    W_MISSING,
    WEIGHT,
)

from ..common.category_chance import less_luck, no_chance
from ..common.criteria import blur_of, score_classes
from ..common.sorting import make_keys
from ..common.structs import (
    Candidate,
    Chance,
    CutAtHand,
    GivenSums,
    OpenNode,
    Rows,
    Scratch,
    Settings,
    SortedKeys,
    Table,
)
from ..common.ties import bar_above, floor_below, judge
from .candidates import cut_between, none_better
from .feature_order import source_of
from .flags import fill_flag_histogram, is_flag
from .given_sums import has_given

LARGE_MASK = 0xFFFFFFFF

# how a score is kept up to date
AFRESH = 0
SQUARES = 1
LOGS = 2


@inlined
def power_kind(settings: Settings, xlogx: np.ndarray) -> int:
    """Which powers this criterion keeps."""
    if settings.is_whole and settings.criterion == GINI:
        return SQUARES
    if settings.is_whole and settings.criterion == ENTROPY and len(xlogx) > 1:
        return LOGS
    return AFRESH


@inlined
def power_step(kind: int, before: int, weight: int, xlogx: np.ndarray) -> int:
    """Change of a branch's power when the weight of a class there goes from `before` to `before + weight`."""
    if kind == SQUARES:
        return weight * (2 * before + weight)
    if kind == LOGS:
        return xlogx[before + weight] - xlogx[before]
    return np.int64(0)


@kernel
def start_right(sums: np.ndarray, n_present: int, kind: int, xlogx: np.ndarray) -> int:
    """Put every row of the node into the right branch; return its power."""
    power = np.int64(0)
    for k in range(n_present):
        c = sums[PRESENT, k]
        sums[LEFT, c] = 0
        sums[RIGHT, c] = sums[ALL, c]
        power += power_step(kind, 0, sums[ALL, c], xlogx)
    return power


@inlined
def score_sides(
    cut: CutAtHand, w_right: int, kind: int, n_present: int, criterion: int, sums: np.ndarray, xlogx: np.ndarray
) -> float:
    """Score of the two branches; w_right: weight of the right one."""
    w_left, power_left, power_right = cut.w_left, cut.power_left, cut.power_right
    if kind == SQUARES:
        wa = np.float64(w_left)
        wb = np.float64(w_right)
        return (np.float64(power_left) * wb + np.float64(power_right) * wa) / (wa * wb)
    if kind == LOGS:
        return np.float64(power_left + power_right - xlogx[w_left] - xlogx[w_right])
    left = score_classes(criterion, sums, LEFT, w_left, n_present, xlogx)
    return left + score_classes(criterion, sums, RIGHT, w_right, n_present, xlogx)


@kernel
def score_unknown(
    criterion: int, sums: np.ndarray, weight: int, w_missing: int, n_present: int, xlogx: np.ndarray
) -> float:
    """What the score of the node, all of whose rows weigh `weight`, exceeds that of its known rows by."""
    score = score_classes(criterion, sums, ALL, weight, n_present, xlogx)
    for k in range(n_present):
        c = sums[PRESENT, k]
        sums[ALL, c] -= sums[MISSING, c]
    score -= score_classes(criterion, sums, ALL, weight - w_missing, n_present, xlogx)
    for k in range(n_present):
        c = sums[PRESENT, k]
        sums[ALL, c] += sums[MISSING, c]
    return score


@kernel
def try_cut(
    best: Candidate,
    cut: CutAtHand,
    node: OpenNode,
    settings: Settings,
    xlogx: np.ndarray,
    sums: np.ndarray,
    totals: np.ndarray,
    chance: Chance,
) -> Candidate:
    """The better of `best` and the cut at hand, with missing rows on each side that is allowed.

    Missing rows stand in the right branch of `sums` on entry and on exit.
    """
    n_present = node.n_present
    top, n_ties = best.score, best.n_ties
    n_left, w_left, power_left, power_right = cut.n_left, cut.w_left, cut.power_left, cut.power_right
    kind = power_kind(settings, xlogx)
    n = totals[N_ALL]
    weight = totals[W_ALL]
    n_missing = totals[N_MISSING]
    is_shared = n_missing > 0 and not cut.is_last
    is_apart = is_shared and settings.missing != LEARNED
    has_three = is_apart and settings.missing != SURROGATE
    branch = np.int64(-1)
    apart = 0.0
    blur = 0.0
    if has_three and (n_missing < settings.min_samples_leaf or totals[W_MISSING] < settings.min_weight_leaf):
        return best
    if is_apart:
        if has_three:
            apart = score_classes(settings.criterion, sums, MISSING, totals[W_MISSING], n_present, xlogx)
        else:
            apart = score_unknown(settings.criterion, sums, weight, totals[W_MISSING], n_present, xlogx)
            blur = blur_of(settings.criterion, weight, apart, xlogx)
        n -= n_missing
        weight -= totals[W_MISSING]
        for k in range(n_present):
            c = sums[PRESENT, k]
            sums[RIGHT, c] -= sums[MISSING, c]
            power_right -= power_step(kind, sums[RIGHT, c], sums[MISSING, c], xlogx)
    for side in range(2 if is_shared and not is_apart else 1):
        if side == 1:
            n_left += n_missing
            w_left += totals[W_MISSING]
            for k in range(n_present):
                c = sums[PRESENT, k]
                w = sums[MISSING, c]
                power_left += power_step(kind, sums[LEFT, c], w, xlogx)
                sums[LEFT, c] += w
                sums[RIGHT, c] -= w
                power_right -= power_step(kind, sums[RIGHT, c], w, xlogx)
        w_right = weight - w_left
        is_open = min(n_left, n - n_left) >= settings.min_samples_leaf
        if not (is_open and min(w_left, w_right) >= settings.min_weight_leaf):
            continue
        tried = CutAtHand(cut.code, cut.following, cut.is_last, n_left, w_left, power_left, power_right, cut.roots)
        score = apart + score_sides(tried, w_right, kind, n_present, settings.criterion, sums, xlogx)
        if chance.noise > 0.0 and score >= floor_below(top) - blur:  # else it cannot win, whatever its luck
            score = less_luck(score, chance, cut.roots, w_left, w_right)
        is_better, top, n_ties = judge(score, top, blur, settings.has_random_ties, node.tie_key, n_ties)
        if is_better:
            branch = np.int64(2) if has_three else np.int64(1 - side)
    if is_shared:
        for k in range(n_present):
            c = sums[PRESENT, k]
            sums[RIGHT, c] += sums[MISSING, c]
            if not is_apart:
                sums[LEFT, c] -= sums[MISSING, c]
    if branch < 0:
        return Candidate(top, best.cut, best.following, best.missing, n_ties, np.inf)
    return Candidate(top, cut.code, cut.following, branch, n_ties, np.inf)


@inlined
def fill_histogram(
    node: OpenNode,
    feature: int,
    n_classes: int,
    rows: Rows,
    histogram: np.ndarray,
    sums: np.ndarray,
    totals: np.ndarray,
) -> None:
    """Add the rows of a node to histogram[code * (n_classes + 1) + class], the last number of a code counting its rows.

    Missing rows end in sums[MISSING] and `totals`; their sums are emptied. With weights of 1 the counts stay
    0: a code's classes add up to its rows.
    """
    addends = rows.addends
    if is_flag(feature, rows):
        fill_flag_histogram(node, feature, n_classes, rows, histogram)
        take_missing_sums(node, n_classes, len(addends) == 1, histogram, sums, totals)
        return
    codes, begin, column = source_of(feature, node.lo, node.hi, rows)
    lo = np.uint64(node.lo)
    first = np.uint64(begin)
    j = np.uint64(column)
    wide = np.uint64(n_classes + 1)
    if len(addends) == 1:
        for k in range(np.uint64(node.hi - node.lo)):
            histogram[np.uint64(codes[first + k, j]) * wide + np.uint64(addends[TARGET, lo + k])] += 1
    else:
        for k in range(np.uint64(node.hi - node.lo)):
            at = np.uint64(codes[first + k, j]) * wide
            histogram[at + np.uint64(addends[TARGET, lo + k])] += addends[WEIGHT, lo + k]
            histogram[at + np.uint64(n_classes)] += 1
    take_missing_sums(node, n_classes, len(addends) == 1, histogram, sums, totals)


@inlined
def take_missing_sums(
    node: OpenNode, n_classes: int, is_unit: bool, histogram: np.ndarray, sums: np.ndarray, totals: np.ndarray
) -> None:
    """Move the sums of missing rows from a histogram to sums[MISSING] and `totals`."""
    totals[W_MISSING] = 0
    for k in range(node.n_present):
        c = sums[PRESENT, k]
        sums[MISSING, c] = histogram[c]
        totals[W_MISSING] += histogram[c]
        histogram[c] = 0
    totals[N_MISSING] = totals[W_MISSING] if is_unit else histogram[n_classes]
    histogram[n_classes] = 0


@inlined
def fill_class_sums(
    feature: int,
    n_codes: int,
    n_classes: int,
    node: OpenNode,
    rows: Rows,
    scratch: Scratch,
    given: GivenSums | None,
) -> None:
    """Fill the histogram of a node, of three classes or more; missing rows go where `fill_histogram` puts them."""
    histogram, sums, totals = scratch.histogram, scratch.classes.sums, scratch.totals
    if given is None:
        fill_histogram(node, feature, n_classes, rows, histogram, sums, totals)
        return
    first = given.first[feature]
    width = n_classes + 1
    for k in range((n_codes + 1) * width):
        histogram[k] = given.sums[first + k]
    take_missing_sums(node, n_classes, len(rows.addends) == 1, histogram, sums, totals)


@inlined
def scan_counts(
    best: Candidate,
    n: int,
    n_codes: int,
    n_present: int,
    n_classes: int,
    least: int,
    histogram: np.ndarray,
    sums: np.ndarray,
) -> Candidate:
    """Best cut over the histogram by Gini when nothing is missing and ties go to the first.

    The common case. n: weight of the node; least: that of a branch, at least. The histogram is emptied.
    """
    top = best.score
    for k in range(n_present):
        sums[LEFT, sums[PRESENT, k]] = 0
    n_left = np.int64(0)
    cut = np.int64(-1)
    cut_next = np.int64(-1)
    for code in range(1, n_codes + 1):
        at = code * (n_classes + 1)
        n_before = n_left
        square_left = np.int64(0)
        square_right = np.int64(0)
        for k in range(n_present):
            c = sums[PRESENT, k]
            here = histogram[at + c]
            left = sums[LEFT, c] + here
            right = sums[ALL, c] - left
            sums[LEFT, c] = left
            histogram[at + c] = 0
            n_left += here
            square_left += left * left
            square_right += right * right
        if n_left == n_before:
            continue
        if cut >= 0 and cut_next < 0:
            cut_next = np.int64(code)
        if min(n_left, n - n_left) >= least:
            wa = np.float64(n_left)
            wb = np.float64(n - n_left)
            rise = np.float64(square_left) * wb + np.float64(square_right) * wa
            run = wa * wb
            if rise > bar_above(top) * run:
                top = rise / run
                cut = np.int64(code)
                cut_next = np.int64(-1)
    return cut_between(top, cut, cut_next, best.n_ties)


@inlined
def scan_histogram(
    best: Candidate,
    n_codes: int,
    node: OpenNode,
    settings: Settings,
    xlogx: np.ndarray,
    histogram: np.ndarray,
    sums: np.ndarray,
    totals: np.ndarray,
) -> Candidate:
    """Best cut over the histogram, which is emptied."""
    n_present = node.n_present
    kind = power_kind(settings, xlogx)
    if kind == SQUARES and settings.is_unit and totals[N_MISSING] == 0 and not settings.has_random_ties:
        return scan_counts(
            best, totals[N_ALL], n_codes, n_present, settings.n_classes, settings.min_samples_leaf, histogram, sums
        )
    width = settings.n_classes + 1
    power_left = np.int64(0)
    power_right = start_right(sums, n_present, kind, xlogx)
    n_left = np.int64(0)
    w_left = np.int64(0)
    found = none_better(best)
    last = np.int64(-1)  # last present code, whose cut is tried once the next present code is known
    for code in range(1, n_codes + 2):
        is_end = code == n_codes + 1
        at = code * width
        w_here = np.int64(0)
        if not is_end:
            for k in range(n_present):
                w_here += histogram[at + sums[PRESENT, k]]
            if w_here == 0:
                continue
        if last >= 0 and (not is_end or (totals[N_MISSING] > 0 and settings.missing != SURROGATE)):
            following = np.int64(-1) if is_end else np.int64(code)
            cut = CutAtHand(last, following, is_end, n_left, w_left, power_left, power_right, 0.0)
            found = try_cut(found, cut, node, settings, xlogx, sums, totals, no_chance())
        if is_end:
            break
        for k in range(n_present):
            c = sums[PRESENT, k]
            w = histogram[at + c]
            power_left += power_step(kind, sums[LEFT, c], w, xlogx)
            sums[LEFT, c] += w
            sums[RIGHT, c] -= w
            power_right -= power_step(kind, sums[RIGHT, c], w, xlogx)
            histogram[at + c] = 0
        w_left += w_here
        n_left += w_here if settings.is_unit else histogram[at + width - 1]
        histogram[at + width - 1] = 0
        last = np.int64(code)
    return found


@inlined
def take_missing(ordered: SortedKeys, n_present: int, sums: np.ndarray, totals: np.ndarray) -> int:
    """Sum up the rows at the head of the keys whose code is missing; return where the others begin."""
    keys, row, addends = ordered.keys, ordered.row, ordered.addends
    is_unit = len(addends) == 1
    first = ordered.first
    totals[N_MISSING] = 0
    totals[W_MISSING] = 0
    if np.int64(keys[row, first]) >> LARGE_SHIFT != MISSING_CODE:
        return first
    for k in range(n_present):
        sums[MISSING, sums[PRESENT, k]] = 0
    while np.int64(keys[row, first]) >> LARGE_SHIFT == MISSING_CODE:
        i = ordered.base + (np.int64(keys[row, first]) & LARGE_MASK)
        w = np.int64(1) if is_unit else addends[WEIGHT, i]
        totals[N_MISSING] += 1
        totals[W_MISSING] += w
        sums[MISSING, addends[TARGET, i]] += w
        first += 1
    return first


@inlined
def scan_ordered(
    best: Candidate,
    ordered: SortedKeys,
    node: OpenNode,
    settings: Settings,
    xlogx: np.ndarray,
    sums: np.ndarray,
    totals: np.ndarray,
) -> Candidate:
    """Best cut of the rows of a node in the order of their codes, which are not all the same."""
    keys, row, addends, base = ordered.keys, ordered.row, ordered.addends, ordered.base
    n_present = node.n_present
    is_unit = len(addends) == 1
    first = take_missing(ordered, n_present, sums, totals)
    has_missing = totals[N_MISSING] > 0
    n_known = ordered.end - first
    kind = power_kind(settings, xlogx)
    power_left = np.int64(0)
    power_right = start_right(sums, n_present, kind, xlogx)
    w_left = np.int64(0)
    found = none_better(best)
    is_simple = not has_missing and not settings.has_random_ties
    top = best.score
    cut = np.int64(-1)
    cut_next = np.int64(-1)
    bar = bar_above(top)
    n = totals[N_ALL]
    weight = totals[W_ALL]
    for k in range(n_known if has_missing and settings.missing != SURROGATE else n_known - 1):
        sort_key = np.int64(keys[row, first + k])
        code = sort_key >> LARGE_SHIFT
        i = base + (sort_key & LARGE_MASK)
        c = addends[TARGET, i]
        w = np.int64(1) if is_unit else addends[WEIGHT, i]
        power_left += power_step(kind, sums[LEFT, c], w, xlogx)
        sums[LEFT, c] += w
        sums[RIGHT, c] -= w
        power_right -= power_step(kind, sums[RIGHT, c], w, xlogx)
        w_left += w
        n_left = np.int64(k + 1)
        is_end = n_left == n_known
        following = np.int64(-1) if is_end else np.int64(keys[row, first + k + 1]) >> LARGE_SHIFT
        if following == code:
            continue
        at_hand = CutAtHand(code, following, is_end, n_left, w_left, power_left, power_right, 0.0)
        if not is_simple:
            found = try_cut(found, at_hand, node, settings, xlogx, sums, totals, no_chance())
            continue
        if min(n_left, n - n_left) < settings.min_samples_leaf:
            continue
        if min(w_left, weight - w_left) < settings.min_weight_leaf:
            continue
        score = score_sides(at_hand, weight - w_left, kind, n_present, settings.criterion, sums, xlogx)
        if score > bar:
            top = score
            bar = bar_above(top)
            cut = code
            cut_next = following
    if is_simple:
        return cut_between(top, cut, cut_next, best.n_ties)
    return found


@inlined
def scan_classes(
    best: Candidate, feature: int, node: OpenNode, rows: Rows, table: Table, settings: Settings, scratch: Scratch
) -> Candidate:
    """Best cut of a numeric feature over the rows of a node."""
    features, xlogx = table.features, table.xlogx
    histogram, sums, totals = scratch.histogram, scratch.classes.sums, scratch.totals
    lo, hi = node.lo, node.hi
    n_codes = features[N_CODES, feature]
    is_held = (n_codes + 1) * (settings.n_classes + 1) <= len(histogram)
    if has_given(scratch.given) or (is_held and n_codes * node.n_present <= SUMS_PER_ROW * (hi - lo)):
        fill_class_sums(feature, n_codes, settings.n_classes, node, rows, scratch, scratch.given)
        return scan_histogram(best, n_codes, node, settings, xlogx, histogram, sums, totals)
    ordered = SortedKeys(
        rows.lists.keys, feature, lo - node.list_lo, hi - node.list_lo, rows.lists.addends, np.int64(0)
    )
    if node.list_lo < 0 or features[IS_LISTED, feature] == 0:
        side = make_keys(rows.codes, lo, hi, feature, LARGE_SHIFT, scratch.keys, scratch.counts)
        ordered = SortedKeys(scratch.keys, side, np.int64(0), hi - lo, rows.addends, lo)
    lowest = np.int64(ordered.keys[ordered.row, ordered.first]) >> LARGE_SHIFT
    if lowest == np.int64(ordered.keys[ordered.row, ordered.end - 1]) >> LARGE_SHIFT:
        return none_better(best)
    return scan_ordered(best, ordered, node, settings, xlogx, sums, totals)
