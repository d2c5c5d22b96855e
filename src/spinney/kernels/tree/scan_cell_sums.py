"""Best cut of a sparse feature where addends are not packed, see `cells`: by its cells, and all other rows as one bin.

    codes   3 3 7 3 3 1 3 3        the node's rows; 3 is the usual code
    bins    1       3       7      those of 1 and 7 are summed; what is left of the node's sums is that of 3

Sums are whole numbers, so that the cut is that of a search by the rows: of numbers, entropy and fractional weights, of
branches of many rows at least, and in nodes too large to be packed.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import (
    ALL,
    BIN_CODE,
    BIN_N,
    BIN_SQUARE,
    BIN_SUM,
    BIN_WEIGHT,
    HELD,
    LARGE_SHIFT,
    LEFT,
    MAX_CODES,
    MONOTONE,
    N_ALL,
    N_CODES,
    N_MISSING,
    PRESENT,
    Q_ALL,
    Q_MISSING,
    RIGHT,
    S_ALL,
    S_MISSING,
    SMALL_SHIFT,
    TARGET,
    W_ALL,
    W_MISSING,
    WEIGHT,
)

from ..common.bins import list_bins_by_histogram
from ..common.category_chance import no_chance
from ..common.sorting import sort_keys
from ..common.structs import (
    BinWalk,
    Candidate,
    Cells,
    CodedRows,
    CutAtHand,
    OpenNode,
    Rows,
    Scratch,
    Settings,
    SortedKeys,
    Table,
)
from ..common.ties import bar_above, judge
from .candidates import cut_between, none_better
from .cells import fill_whole, list_cells
from .scan_classes import power_kind, power_step, score_sides, start_right
from .scan_moments import scan_moments


@kernel
def order_cells(n_cells: int, shift: int, keys: np.ndarray, counts: np.ndarray, found: np.ndarray) -> int:
    """Order cells that have been listed by their codes: `code << shift | number` in one row of `keys`; return which."""
    lowest = found[0]
    highest = found[0]
    for c in range(np.uint64(n_cells)):
        code = found[c]
        keys[0, c] = (np.int64(code) << shift) | np.int64(c)
        lowest = min(lowest, code)
        highest = max(highest, code)
    return sort_keys(keys, n_cells, shift, np.int64(lowest), np.int64(highest), counts)


# --- Numbers and two classes ----------------------------------------------------------------------------------------


@kernel
def list_cell_bins(ordered: SortedKeys, usual: int, at: np.ndarray, bins: np.ndarray, totals: np.ndarray) -> int:
    """List the bins of a node by its cells, as `common.bins` does by its rows; return how many there are.

    ordered: the cells that have been listed, `base` the first row of the node; usual: the code of other rows.
    """
    keys, side, addends, base = ordered.keys, ordered.row, ordered.addends, ordered.base
    last = len(addends) - 1
    mask = (np.int64(1) << SMALL_SHIFT) - 1
    n_rest = totals[N_ALL] - ordered.end
    s_rest, w_rest, q_rest = totals[S_ALL], totals[W_ALL], totals[Q_ALL]
    place = np.int64(-1)  # of the bin of all other rows
    n_bins = np.int64(0)
    before = np.int64(-1)
    for k in range(np.uint64(ordered.end)):
        key = np.int64(keys[side, k])
        code = key >> SMALL_SHIFT
        i = np.uint64(base + np.int64(at[np.uint64(key & mask)]))
        if code != before:
            before = code
            if code > usual and place < 0 and n_rest > 0:
                place = n_bins
                n_bins += 1
            bins[BIN_CODE, n_bins] = code
            bins[BIN_N, n_bins] = 0
            bins[BIN_SUM, n_bins] = 0
            bins[BIN_WEIGHT, n_bins] = 0
            bins[BIN_SQUARE, n_bins] = 0
            n_bins += 1
        b = n_bins - 1
        s = addends[TARGET, i]
        bins[BIN_N, b] += 1
        bins[BIN_SUM, b] += s
        s_rest -= s
        if last > 0:
            w = addends[WEIGHT, i]
            q = addends[last, i]
            bins[BIN_WEIGHT, b] += w
            bins[BIN_SQUARE, b] += q
            w_rest -= w
            q_rest -= q
    if place < 0 and n_rest > 0:
        place = n_bins
        n_bins += 1
    if n_rest > 0:
        bins[BIN_CODE, place] = usual
        bins[BIN_N, place] = n_rest
        bins[BIN_SUM, place] = s_rest
        bins[BIN_WEIGHT, place] = w_rest
        bins[BIN_SQUARE, place] = q_rest
    totals[N_MISSING] = 0
    totals[S_MISSING] = 0
    totals[W_MISSING] = 0
    totals[Q_MISSING] = 0
    return n_bins


@kernel
def scan_plain_bins(
    best: Candidate, n_bins: int, centre: int, least: int, held: int, bins: np.ndarray, totals: np.ndarray
) -> Candidate:
    """Best cut of bins by squared error when nothing constrains it but `least` rows of a branch: `scan_keys` of bins.

    centre: what is taken off each target; held: the row of `bins` that has their weights.
    """
    n, weight = totals[N_ALL], totals[W_ALL]
    total = totals[S_ALL] - centre * weight
    score = best.score
    bar = bar_above(score)
    n_left = np.int64(0)
    w_left = np.int64(0)
    left = np.int64(0)
    cut = np.int64(-1)
    for b in range(np.uint64(n_bins - 1)):
        w = bins[held, b]
        n_left += bins[BIN_N, b]
        w_left += w
        left += bins[BIN_SUM, b] - centre * w
        if min(n_left, n - n_left) >= least:
            wa = np.float64(w_left)
            wb = np.float64(weight - w_left)
            a = np.float64(left)
            z = np.float64(total - left)
            rise = a * a * wb + z * z * wa
            run = wa * wb
            if rise > bar * run:  # score > bar, without the division
                score = rise / run
                bar = bar_above(score)
                cut = np.int64(b)
    if cut < 0:
        return none_better(best)
    return cut_between(score, bins[BIN_CODE, cut], bins[BIN_CODE, cut + 1], best.n_ties)


@inlined
def scan_cells_of_numbers(
    best: Candidate,
    feature: int,
    node: OpenNode,
    rows: Rows,
    table: Table,
    settings: Settings,
    scratch: Scratch,
    cells: Cells | None,
) -> Candidate:
    """Best cut of a sparse feature over the rows of a node, for numbers and two classes."""
    if cells is None:
        return none_better(best)
    bins, totals, lo, hi = scratch.bins, scratch.totals, node.lo, node.hi
    n_cells = list_cells(feature, lo, hi, rows.ids, cells)
    if n_cells == 0:
        return none_better(best)
    if n_cells <= MAX_CODES:
        side = order_cells(n_cells, SMALL_SHIFT, scratch.keys, scratch.counts, cells.found)
        ordered = SortedKeys(scratch.keys, np.int64(side), np.int64(0), n_cells, rows.addends, lo)
        n_bins = list_cell_bins(ordered, np.int64(cells.usual[feature - cells.first]), cells.at, bins, totals)
    else:  # more than there are codes, and than a key can number
        fill_whole(feature, lo, hi, rows.ids, cells)
        coded = CodedRows(cells.whole, rows.addends)
        n_codes = table.features[N_CODES, feature]
        n_bins = list_bins_by_histogram(coded, lo, hi, np.int64(0), n_codes, scratch.histogram, bins, totals)
    if n_bins == 1:
        return none_better(best)
    if settings.is_plain:
        held = BIN_N if settings.is_unit else BIN_WEIGHT
        return scan_plain_bins(best, n_bins, node.centre, settings.min_samples_leaf, held, bins, totals)
    walk = BinWalk(n_bins, table.features[MONOTONE, feature], no_chance())
    found = scan_moments(best, walk, node, settings, table.xlogx, bins, totals, scratch.rates)
    if found.cut < 0:
        return found
    following = bins[BIN_CODE, found.cut + 1]
    return Candidate(found.score, bins[BIN_CODE, found.cut], following, found.missing, found.n_ties, np.inf)


# --- Three classes or more ------------------------------------------------------------------------------------------


@inlined
def sum_rest(ordered: SortedKeys, node: OpenNode, at: np.ndarray, sums: np.ndarray) -> None:
    """Class weights of the rows of a node that have no cell, in sums[HELD]."""
    addends = ordered.addends
    is_unit = len(addends) == 1
    for p in range(node.n_present):
        c = sums[PRESENT, p]
        sums[HELD, c] = sums[ALL, c]
    for k in range(np.uint64(ordered.end)):
        i = np.uint64(ordered.base + np.int64(at[k]))
        sums[HELD, np.uint64(addends[TARGET, i])] -= np.int64(1) if is_unit else addends[WEIGHT, i]


@inlined
def walk_cells(
    best: Candidate,
    ordered: SortedKeys,
    usual: int,
    node: OpenNode,
    settings: Settings,
    xlogx: np.ndarray,
    scratch: Scratch,
    at: np.ndarray,
) -> Candidate:
    """Best cut of a node by its cells, that have been ordered; usual: the code of all other rows."""
    keys, side, addends, n_cells = ordered.keys, ordered.row, ordered.addends, ordered.end
    sums, totals = scratch.classes.sums, scratch.totals
    is_unit = len(addends) == 1
    mask = (np.int64(1) << LARGE_SHIFT) - 1
    n, weight, n_present = totals[N_ALL], totals[W_ALL], node.n_present
    sum_rest(ordered, node, at, sums)
    kind = power_kind(settings, xlogx)
    power_right = start_right(sums, n_present, kind, xlogx)
    power_left = np.int64(0)
    n_left = np.int64(0)
    w_left = np.int64(0)
    top, n_ties = best.score, best.n_ties
    cut = np.int64(-1)
    following = np.int64(-1)
    is_due = n_cells < n  # whether the usual code is still to come
    last = np.int64(-1)
    k = np.int64(0)
    while k < n_cells or is_due:
        code = np.int64(keys[side, k]) >> LARGE_SHIFT if k < n_cells else usual
        is_rest = is_due and (k == n_cells or usual < code)
        if is_rest:
            code = np.int64(usual)
        is_open = min(n_left, n - n_left) >= settings.min_samples_leaf
        if last >= 0 and is_open and min(w_left, weight - w_left) >= settings.min_weight_leaf:
            tried = CutAtHand(last, code, False, n_left, w_left, power_left, power_right, 0.0)
            score = score_sides(tried, weight - w_left, kind, n_present, settings.criterion, sums, xlogx)
            is_better, top, n_ties = judge(score, top, 0.0, settings.has_random_ties, node.tie_key, n_ties)
            if is_better:
                cut = last
                following = code
        last = code
        if is_rest:
            is_due = False
            n_left += n - n_cells
            for p in range(n_present):
                c = sums[PRESENT, p]
                w = sums[HELD, c]
                power_left += power_step(kind, sums[LEFT, c], w, xlogx)
                sums[LEFT, c] += w
                sums[RIGHT, c] -= w
                power_right -= power_step(kind, sums[RIGHT, c], w, xlogx)
                w_left += w
            continue
        while k < n_cells and np.int64(keys[side, k]) >> LARGE_SHIFT == code:
            i = np.uint64(ordered.base + np.int64(at[np.int64(keys[side, k]) & mask]))
            c = addends[TARGET, i]
            w = np.int64(1) if is_unit else addends[WEIGHT, i]
            power_left += power_step(kind, sums[LEFT, c], w, xlogx)
            sums[LEFT, c] += w
            sums[RIGHT, c] -= w
            power_right -= power_step(kind, sums[RIGHT, c], w, xlogx)
            w_left += w
            n_left += 1
            k += 1
    return cut_between(top, cut, following, n_ties)


@inlined
def scan_cells_of_classes(
    best: Candidate,
    feature: int,
    node: OpenNode,
    rows: Rows,
    table: Table,
    settings: Settings,
    scratch: Scratch,
    cells: Cells | None,
) -> Candidate:
    """The same of three classes or more."""
    if cells is None:
        return none_better(best)
    totals = scratch.totals
    totals[N_MISSING] = 0
    totals[W_MISSING] = 0
    n_cells = list_cells(feature, node.lo, node.hi, rows.ids, cells)
    if n_cells == 0:
        return none_better(best)
    side = order_cells(n_cells, LARGE_SHIFT, scratch.keys, scratch.counts, cells.found)
    ordered = SortedKeys(scratch.keys, np.int64(side), np.int64(0), n_cells, rows.addends, node.lo)
    lowest = np.int64(ordered.keys[side, 0]) >> LARGE_SHIFT
    if n_cells == node.hi - node.lo and lowest == np.int64(ordered.keys[side, n_cells - 1]) >> LARGE_SHIFT:
        return none_better(best)
    usual = np.int64(cells.usual[feature - cells.first])
    return walk_cells(best, ordered, usual, node, settings, table.xlogx, scratch, cells.at)
