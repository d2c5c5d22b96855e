"""Search the features of a node by the absolute error: cuts of a number, subsets of levels, and random tests.

Rows are taken off a linked list of the node's targets in the order of a feature, from its end for the branches on the
left, from its front for those on the right. The median of what remains is a step or so away from the one before, so
that a pass costs a few steps a row whatever the number of rows; a heap or a tree would cost their logarithm. Where rows
near the median weigh far less than others, a step passes many of them.

    search.scan_feature ─┬ a number     bins of its codes, rows in their order
                    ├ a category   levels by their medians; prefixes of that order are tried. Unlike those by means they
                    │              need not hold the best subset
                    └ a random test (`random_tests`)  ──► judge_drawn
    pass_rows          the sums of absolute deviations left of every cut, or right of it
    judge_cuts         the best cut, given these
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import (
    BIN_CODE,
    BIN_N,
    BIN_WEIGHT,
    IS_LISTED,
    LEARNED,
    MAX_CODES,
    MONOTONE,
    N_ALL,
    N_CODES,
    N_MISSING,
    S_ALL,
    SMALL_SHIFT,
    SURROGATE,
    W_ALL,
    W_MISSING,
)

from ..common.bins import list_bins_by_histogram, list_bins_by_keys, order_bins
from ..common.category_chance import no_chance
from ..common.sorting import make_keys
from ..common.structs import (
    BinWalk,
    Candidate,
    DrawnTest,
    LevelScratch,
    MedianScratch,
    OpenNode,
    Rows,
    Scratch,
    Settings,
    SortedKeys,
    Table,
)
from ..common.ties import judge
from .candidates import none_better
from .medians import middle_of, spread_of
from .scan_moments import is_allowed
from .subsets import write_levels

FEW_CODES = 16  # a histogram is worth its while whatever the node's size
LEFT, RIGHT, LEFT_MISSING, RIGHT_MISSING = 0, 1, 2, 3  # branches of known rows alone, and with the missing ones
POSITION = np.int64((1 << SMALL_SHIFT) - 1)


# --- Deviations of the branches ---------------------------------------------------------------------------------------


@kernel
def pass_rows(
    side: int, n_bins: int, settings: Settings, bins: np.ndarray, totals: np.ndarray, medians: MedianScratch
) -> None:
    """Write the sum of absolute deviations of one branch of every cut, and its median where constraints ask for it.

    side: which branch; a cut lies behind each bin. `order` has the places of the rows, missing ones first.
    """
    order, before, after = medians.order, medians.before, medians.after
    value, weight = medians.value, medians.weight
    is_left = side in (LEFT, LEFT_MISSING)
    n = totals[N_ALL]
    n_missing = totals[N_MISSING]
    for k in range(n + 2):
        before[k] = k - 1
        after[k] = k + 1
    at = medians.start[0]
    below = medians.start[1]
    sum_below = medians.start[2]
    held = totals[W_ALL]
    total = totals[S_ALL]
    begin = n_missing
    end = n
    for step in range(n_bins + 1):
        first = np.int64(0)
        last = np.int64(0)
        b = n_bins - step if is_left else step - 1
        if step == 0:  # rows that this branch never has
            last = n_missing if side in (LEFT, RIGHT) else np.int64(0)
        elif is_left:
            first = end - bins[BIN_N, b] if step < n_bins else end
            last = end
            end = first
            medians.errors[side, b] = spread_of(held, total, below, sum_below, at, settings.is_whole, medians)
            if settings.has_monotone:
                medians.middles[side, b] = middle_of(held, below, at, np.int64(after[at]), medians)
        else:
            first = begin
            last = begin + bins[BIN_N, b]
            begin = last
        for k in range(first, last):
            x = np.int64(order[k])
            w = weight[x]
            v = value[x]
            p = np.int64(before[x])
            q = np.int64(after[x])
            after[p] = q
            before[q] = p
            held -= w
            total -= v
            if x <= at:
                below -= w
                sum_below -= v
                if x == at:
                    at = p
            while 2 * below < held:
                at = np.int64(after[at])
                below += weight[at]
                sum_below += value[at]
            while at > 0 and 2 * (below - weight[at]) >= held:
                below -= weight[at]
                sum_below -= value[at]
                at = np.int64(before[at])
        if step > 0 and not is_left:
            medians.errors[side, b] = 0.0
            if held > 0:
                medians.errors[side, b] = spread_of(held, total, below, sum_below, at, settings.is_whole, medians)
                if settings.has_monotone:
                    medians.middles[side, b] = middle_of(held, below, at, np.int64(after[at]), medians)


@kernel
def pass_all(n_bins: int, settings: Settings, bins: np.ndarray, totals: np.ndarray, medians: MedianScratch) -> None:
    """Write what `judge_cuts` reads."""
    pass_rows(LEFT, n_bins, settings, bins, totals, medians)
    if totals[N_MISSING] == 0 or settings.missing != LEARNED:
        pass_rows(RIGHT, n_bins, settings, bins, totals, medians)
    if totals[N_MISSING] > 0 and settings.missing != SURROGATE:
        pass_rows(RIGHT_MISSING, n_bins, settings, bins, totals, medians)
        if settings.missing == LEARNED:
            pass_rows(RIGHT, n_bins, settings, bins, totals, medians)
            pass_rows(LEFT_MISSING, n_bins, settings, bins, totals, medians)


# --- The best cut -----------------------------------------------------------------------------------------------------


@kernel
def judge_cuts(
    best: Candidate,
    walk: BinWalk,
    node: OpenNode,
    settings: Settings,
    bins: np.ndarray,
    totals: np.ndarray,
    held: Any,  # MedianScratch or OutputScratch
) -> Candidate:
    """Best cut of the bins, as `scan_moments` has it; its code is the last bin of the left branch.

    Missing rows are tried on the right, then on the left (`LEARNED`), or make a third branch (`OWN_BRANCH`); behind the
    last bin lies the cut that sets all known rows against them. With `SURROGATE` the known rows alone are cut.
    """
    errors, middles = held.errors, held.middles
    n_bins, n_missing, w_missing = walk.n_bins, totals[N_MISSING], totals[W_MISSING]
    has_missing = n_missing > 0
    is_apart = has_missing and settings.missing != LEARNED
    has_three = is_apart and settings.missing != SURROGATE
    n, weight = totals[N_ALL], totals[W_ALL]
    blur = held.blur[0]
    apart = 0.0
    has_room = True
    if is_apart:
        n -= n_missing
        weight -= w_missing
        apart = errors[LEFT, n_bins - 1] - held.whole[0]
    if has_three:
        apart = -errors[RIGHT_MISSING, n_bins - 1]
        has_room = n_missing >= settings.min_samples_leaf and w_missing >= settings.min_weight_leaf
    top = best.score
    n_ties = best.n_ties
    cut = np.int64(-1)
    cut_missing = np.int64(0)
    n_known = np.int64(0)
    w_known = np.int64(0)
    for b in range(n_bins if has_missing and settings.missing != SURROGATE else n_bins - 1):
        n_known += bins[BIN_N, b]
        w_known += bins[BIN_N if settings.is_unit else BIN_WEIGHT, b]
        is_last = b == n_bins - 1  # known against missing
        if is_last and has_three:
            n = totals[N_ALL]
            weight = totals[W_ALL]
            apart = 0.0
            has_room = True
        for side in range(2 if has_missing and not is_apart and not is_last else 1):
            n_left = n_known + side * n_missing
            w_left = w_known + side * w_missing
            is_open = min(n_left, n - n_left) >= settings.min_samples_leaf
            if not (has_room and is_open and min(w_left, weight - w_left) >= settings.min_weight_leaf):
                continue
            left = LEFT_MISSING if side == 1 else LEFT
            right = RIGHT_MISSING if has_missing and side == 0 and (is_last or not is_apart) else RIGHT
            if settings.has_monotone:
                if not is_allowed(
                    middles[left, b], middles[right, b], walk.sign, node.lower, node.upper, settings.value_slack
                ):
                    continue
            found = apart - (errors[left, b] + errors[right, b])
            is_better, top, n_ties = judge(found, top, blur, settings.has_random_ties, node.tie_key, n_ties)
            if is_better:
                cut = np.int64(b)
                cut_missing = np.int64(2) if has_three and not is_last else np.int64(1 - side)
    return Candidate(top, cut, np.int64(-1), cut_missing, n_ties, np.inf)


# --- Features ---------------------------------------------------------------------------------------------------------


@kernel
def order_by_bins(
    lo: int,
    hi: int,
    feature: int,
    n_bins: int,
    codes: np.ndarray,
    histogram: np.ndarray,
    bins: np.ndarray,
    held: Any,  # MedianScratch or OutputScratch
) -> None:
    """Write the places of rows lo .. hi in the order of the bins, missing rows first; the histogram stays zero."""
    order, place = held.order, held.place
    begin = np.int64(hi - lo)
    for step in range(n_bins):
        b = n_bins - 1 - step
        begin -= bins[BIN_N, b]
        histogram[bins[BIN_CODE, b]] = begin
    for k in range(hi - lo):
        code = np.int64(codes[lo + k, feature])
        order[histogram[code]] = place[k]
        histogram[code] += 1
    histogram[0] = 0
    for b in range(n_bins):
        histogram[bins[BIN_CODE, b]] = 0


@inlined
def order_by_keys(ordered: SortedKeys, places: np.ndarray, medians: MedianScratch) -> None:
    """The same by sorted keys; places: by the position in a key."""
    keys, row, order = ordered.keys, ordered.row, medians.order
    for k in range(ordered.first, ordered.end):
        order[k - ordered.first] = places[np.int64(keys[row, k]) & POSITION]


@inlined
def list_number(
    feature: int, node: OpenNode, rows: Rows, table: Table, scratch: Scratch, medians: MedianScratch
) -> int:
    """List the bins of a number and the rows in their order; return how many bins there are, 0: it does not vary."""
    features, bins, totals = table.features, scratch.bins, scratch.totals
    lo, hi = node.lo, node.hi
    n_codes = features[N_CODES, feature]
    is_listed = node.list_lo >= 0 and features[IS_LISTED, feature] != 0
    if not is_listed and (n_codes <= hi - lo or n_codes <= FEW_CODES):
        n_bins = list_bins_by_histogram(rows, lo, hi, feature, n_codes, scratch.histogram, bins, totals)
        order_by_bins(lo, hi, feature, n_bins, rows.codes, scratch.histogram, bins, medians)
    elif is_listed:
        ordered = SortedKeys(
            rows.lists.keys, feature, lo - node.list_lo, hi - node.list_lo, rows.lists.addends, np.int64(0)
        )
        n_bins = list_bins_by_keys(ordered, SMALL_SHIFT, bins, totals)
        order_by_keys(ordered, medians.listed, medians)
    else:
        side = make_keys(rows.codes, lo, hi, feature, SMALL_SHIFT, scratch.keys, scratch.counts)
        ordered = SortedKeys(scratch.keys, np.int64(side), np.int64(0), hi - lo, rows.addends, lo)
        n_bins = list_bins_by_keys(ordered, SMALL_SHIFT, bins, totals)
        order_by_keys(ordered, medians.place, medians)
    return n_bins


@inlined
def list_levels(
    feature: int, node: OpenNode, rows: Rows, table: Table, settings: Settings, scratch: Scratch, medians: MedianScratch
) -> int:
    """List the levels of a category in the order of their medians, and the rows in theirs; return their number."""
    codes, bins, totals, histogram = rows.codes, scratch.bins, scratch.totals, scratch.histogram
    lo, hi, scores = node.lo, node.hi, scratch.levels.scores
    n_codes = table.features[N_CODES, feature]
    n_bins = list_bins_by_histogram(rows, lo, hi, feature, n_codes, histogram, bins, totals)
    for b in range(n_bins):
        at = 2 * bins[BIN_CODE, b]
        histogram[at] = bins[BIN_N if settings.is_unit else BIN_WEIGHT, b]
        histogram[at + 1] = b
    for k in range(hi - lo):
        code = np.int64(codes[lo + np.int64(medians.row[k]), feature])
        left = histogram[2 * code]  # twice the weight up to the median; 0: exactly half lay before; -1: done
        if code == 0 or left < 0:
            continue
        level = np.float64(medians.value[k + 1]) / np.float64(medians.weight[k + 1])
        b = histogram[2 * code + 1]
        if left == 0:
            scores[b] = 0.5 * (scores[b] + level)
            histogram[2 * code] = -1
            continue
        left -= 2 * medians.weight[k + 1]
        scores[b] = level
        histogram[2 * code] = max(left, np.int64(-1))
    for b in range(n_bins):
        histogram[2 * bins[BIN_CODE, b]] = 0
        histogram[2 * bins[BIN_CODE, b] + 1] = 0
    order_bins(bins, scores, n_bins, settings.value_slack)
    order_by_bins(lo, hi, feature, n_bins, codes, histogram, bins, medians)
    return n_bins


@inlined
def scan_levels_by_medians(
    best: Candidate,
    feature: int,
    node: OpenNode,
    rows: Rows,
    table: Table,
    settings: Settings,
    scratch: Scratch,
    levels: LevelScratch | None,
) -> Candidate:
    """Best prefix of the levels of a category in the order of their medians, left in the bitset of `scratch.levels`."""
    if levels is None:  # a table without categories
        return none_better(best)
    bins, totals, medians = scratch.bins, scratch.totals, scratch.medians
    n_bins = list_levels(feature, node, rows, table, settings, scratch, medians)
    if n_bins == 0 or (n_bins == 1 and totals[N_MISSING] == 0):
        return none_better(best)
    pass_all(n_bins, settings, bins, totals, medians)
    found = judge_cuts(best, BinWalk(n_bins, np.int64(0), no_chance()), node, settings, bins, totals, medians)
    if found.cut >= 0:
        n_words = (table.features[N_CODES, feature] + 63) >> 6
        write_levels(levels.bitset, bins, found.cut + 1, -1, n_words)
    return found


@inlined
def scan_number_by_medians(
    best: Candidate,
    feature: int,
    node: OpenNode,
    rows: Rows,
    table: Table,
    settings: Settings,
    scratch: Scratch,
    medians: MedianScratch,
) -> Candidate:
    """Best cut of a number."""
    bins, totals = scratch.bins, scratch.totals
    n_bins = list_number(feature, node, rows, table, scratch, medians)
    if n_bins == 0 or (n_bins == 1 and totals[N_MISSING] == 0):
        return none_better(best)
    pass_all(n_bins, settings, bins, totals, medians)
    walk = BinWalk(n_bins, table.features[MONOTONE, feature], no_chance())
    found = judge_cuts(best, walk, node, settings, bins, totals, medians)
    if found.cut < 0:
        return found
    following = np.int64(-1)
    if found.cut < n_bins - 1:
        following = bins[BIN_CODE, found.cut + 1]
    return Candidate(found.score, bins[BIN_CODE, found.cut], following, found.missing, found.n_ties, np.inf)


# --- Random tests -----------------------------------------------------------------------------------------------------


@kernel
def pass_marks(
    side: int, b: int, cut: int, settings: Settings, column: np.ndarray, totals: np.ndarray, medians: MedianScratch
) -> None:
    """As `pass_rows` for one cut, of rows whose codes are in `column`: those up to `cut` are on the left."""
    row, value, weight = medians.row, medians.value, medians.weight
    is_left = side in (LEFT, LEFT_MISSING)
    has_missing = side in (LEFT_MISSING, RIGHT_MISSING)
    n = totals[N_ALL]
    held = np.int64(0)
    total = np.int64(0)
    for k in range(n):
        code = np.int64(column[np.int64(row[k])])
        is_in = has_missing if code == 0 else (code <= cut) == is_left
        held += weight[k + 1] if is_in else np.int64(0)
        total += value[k + 1] if is_in else np.int64(0)
    below = np.int64(0)
    sum_below = np.int64(0)
    at = np.int64(0)
    following = np.int64(0)
    for k in range(n):
        code = np.int64(column[np.int64(row[k])])
        is_in = has_missing if code == 0 else (code <= cut) == is_left
        if not is_in:
            continue
        if 2 * below >= held:
            following = np.int64(k + 1)
            break
        at = np.int64(k + 1)
        below += weight[at]
        sum_below += value[at]
    medians.errors[side, b] = 0.0
    if held > 0:
        medians.errors[side, b] = spread_of(held, total, below, sum_below, at, settings.is_whole, medians)
        if settings.has_monotone:
            medians.middles[side, b] = middle_of(held, below, at, following, medians)


@inlined
def judge_by_medians(
    best: Candidate, drawn: DrawnTest, node: OpenNode, settings: Settings, scratch: Scratch, medians: MedianScratch
) -> Candidate:
    """Judge a test that was drawn, as `judge_cuts` does; its sums are in the bins."""
    totals, column = scratch.totals, scratch.random.column
    for b in range(drawn.n_bins):
        cut = drawn.cut if b < drawn.n_bins - 1 else np.int64(MAX_CODES)
        for side in range(2 if drawn.n_missing == 0 else 4):
            pass_marks(side, b, cut, settings, column, totals, medians)
    walk = BinWalk(drawn.n_bins, drawn.sign, no_chance())
    return judge_cuts(best, walk, node, settings, scratch.bins, totals, medians)
