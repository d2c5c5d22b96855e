"""Find the best test of a node for several outputs at once: the leaves below hold a number for each.

  score of a branch with sums G, H of each output     the sum over the outputs of what `scan` has for one
  gain of a test                                      scores of the branches - score of the node - gamma

A *cell* is the rows of a node with one code of one feature: a packed sum for each output, the number of rows, their
weight where a limit asks for it, and zeros up to a multiple of four words, which are added at once. The cells of a
feature stand end to end, that of missing values first. A row of the table is a cell too; it stays where it is, and is
found by its number: only codes and numbers move with the partition.

Rows are counted in every cell, which costs one word beside as many as there are outputs, so that nothing is looked up
twice. Cells are cut in the order of their codes; those of a category in the order of G / (H + cat_smooth) of each
output in turn, of which the best prefix of any is taken. Cuts are judged some at a time, output by output, so that the
compiler makes vectors of the loop.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import BIN_CODE, IS_CATEGORICAL, N_CODES, OFFSET, SUBSET, THRESHOLD

from ..common.category_chance import few_rows, luck_of, no_chance
from ..common.rng import below, fold
from ..common.structs import (
    BestCuts,
    BoostCut,
    BoostFrontier,
    BoostNodes,
    BoostSettings,
    BoostTable,
    ByteRows,
    Chance,
    Column,
    VectorScratch,
    VectorSums,
)
from ..common.thresholds import last_below, place_threshold
from .category_chance import square_of
from .rows import EIGHT, FOUR, ONE, number_of, read_code
from .scan import NO_GAIN, gradient_of, hessian_of, plain_gain, sort_bins
from .search import FEW_LEVELS, best_feature, is_allowed, keep_subset
from .shards import column_of, runs_of

ROWS_TOGETHER = 512  # of which every feature is summed before the next ones: they stay in the second cache


# --- Sums -----------------------------------------------------------------------------------------------------


@inlined
def part_of(part: int, table: BoostTable, sums: VectorSums) -> tuple[int, int]:
    """The features of a part: places in `table.used`."""
    n_used = np.int64(len(table.used))
    return n_used * part // sums.n_parts, n_used * (part + 1) // sums.n_parts


@inlined
def add_words(
    rows: ByteRows,
    lo: int,
    hi: int,
    column: Column,
    addends: np.ndarray,
    width: np.uint64,
    histogram: np.ndarray,
    first: int,
) -> None:
    """`add_cells` for cells of some width, a constant where this is inlined."""
    codes = rows.codes
    ids = rows.ids
    stride = np.uint64(column.n_words) * EIGHT
    place = np.uint64(column.place)
    start = np.uint64(first)
    is_wide = column.is_wide
    for k in range(np.uint64(lo), np.uint64(hi)):
        to = start + read_code(codes, k * stride + place, is_wide) * width
        source = number_of(k, ids) * width
        for o in range(width):
            histogram[to + o] += addends[source + o]


@kernel
def add_cells(
    rows: ByteRows, lo: int, hi: int, column: Column, sums: VectorSums, histogram: np.ndarray, first: int
) -> None:
    """Add rows lo .. hi to the cells of a feature, which begin at `first`.

    Cells of few words are constants where the loop is compiled: two to seven outputs take a third less.
    """
    if sums.width == 4:
        add_words(rows, lo, hi, column, sums.rows, FOUR, histogram, first)
    elif sums.width == 8:
        add_words(rows, lo, hi, column, sums.rows, EIGHT, histogram, first)
    else:
        add_words(rows, lo, hi, column, sums.rows, np.uint64(sums.width), histogram, first)


@inlined
def sum_cells(
    node: int,
    part: int,  # of the features
    table: BoostTable,
    rows: ByteRows,
    nodes: BoostNodes,
    sums: VectorSums,
    histogram: np.ndarray,
    to: int,  # where the cells of the node begin, which are written
) -> None:
    """Sum the rows of a node in the cells of some features."""
    first, last = part_of(part, table, sums)
    for f in range(first, last):
        feature = table.used[f]
        start = np.uint64(to + table.histogram_start[feature] * sums.width)
        for k in range(start, start + np.uint64((table.features[N_CODES, feature] + 1) * sums.width)):
            histogram[k] = 0
    runs = runs_of(np.int64(0), node, rows, nodes)
    for begin in range(runs.lo, runs.hi, ROWS_TOGETHER):
        end = min(begin + ROWS_TOGETHER, runs.hi)
        for f in range(first, last):
            feature = table.used[f]
            at = to + table.histogram_start[feature] * sums.width
            add_cells(rows, begin, end, column_of(feature, table), sums, histogram, at)


@inlined
def subtract_cells(
    part: int, table: BoostTable, sums: VectorSums, histogram: np.ndarray, whole: int, less: int, to: int
) -> None:
    """Write the cells of some features at `to`: those at `whole` less those at `less`."""
    first, last = part_of(part, table, sums)
    minuend, subtrahend, result = np.uint64(whole), np.uint64(less), np.uint64(to)
    for f in range(first, last):
        feature = table.used[f]
        start = np.uint64(table.histogram_start[feature] * sums.width)
        for k in range(start, start + np.uint64((table.features[N_CODES, feature] + 1) * sums.width)):
            histogram[result + k] = histogram[minuend + k] - histogram[subtrahend + k]


@kernel
def sum_all_rows(node: int, rows: ByteRows, nodes: BoostNodes, sums: VectorSums, slot: int) -> None:
    """Write the cell of all rows of a node to its slot."""
    total = sums.total
    width = np.uint64(sums.width)
    at = np.uint64(slot) * width
    for o in range(width):
        total[at + o] = 0
    runs = runs_of(np.int64(0), node, rows, nodes)
    for k in range(runs.lo, runs.hi):
        source = number_of(np.uint64(k), rows.ids) * width
        for o in range(width):
            total[at + o] += sums.rows[source + o]


@kernel
def noise_of_outputs(
    node: int,
    slot: int,
    table: BoostTable,
    rows: ByteRows,
    nodes: BoostNodes,
    scratch: VectorScratch,
    settings: BoostSettings,
) -> float:
    """What a unit of luck is worth at a node, summed over the outputs; 0 in tables without categories.

    See `category_chance`: levels are held to gain by chance in every output as if they were ordered by it.
    """
    if settings.cat_penalty == 0.0 or settings.most_words == 0:
        return 0.0
    sums = scratch.sums
    squares = scratch.scan.squares
    n_outputs = len(sums.gradient_unit)
    for o in range(n_outputs):
        squares[o] = 0
    is_unit = len(table.weights) == 1
    runs = runs_of(np.int64(0), node, rows, nodes)
    for k in range(runs.lo, runs.hi):
        row = np.int64(number_of(np.uint64(k), rows.ids))
        weight = np.int64(1) if is_unit else table.weights[row] >> settings.weight_shift
        for o in range(n_outputs):
            squares[o] += square_of(sums.rows[row * sums.width + o], weight)
    noise = 0.0
    for o in range(n_outputs):
        h = np.float64(hessian_of(sums.total[slot * sums.width + o])) * sums.hessian_unit[o]
        noise += 0.5 * settings.cat_penalty * np.float64(squares[o]) * sums.square_unit[o] / h
    return noise


# --- Scores ---------------------------------------------------------------------------------------------------


@inlined
def score_of_sums(g: float, h: float, settings: BoostSettings) -> float:
    """What a leaf with these sums of one output lowers the loss by with its best value."""
    held = h + settings.reg_lambda
    value = 0.0
    if g > settings.reg_alpha:
        value = -(g - settings.reg_alpha) / held
    elif g < -settings.reg_alpha:
        value = -(g + settings.reg_alpha) / held
    return -(g * value + 0.5 * held * value * value + settings.reg_alpha * abs(value))


@kernel
def score_of_node(slot: int, sums: VectorSums, settings: BoostSettings) -> float:
    """The same of an open node, summed over the outputs."""
    score = 0.0
    for o in range(len(sums.gradient_unit)):
        packed = sums.total[slot * sums.width + o]
        g = np.float64(gradient_of(packed)) * sums.gradient_unit[o]
        h = np.float64(hessian_of(packed)) * sums.hessian_unit[o]
        score += score_of_sums(g, h, settings)
    return score


@inlined
def hessian_of_cell(cells: np.ndarray, at: int, sums: VectorSums) -> float:
    """Sum of the hessians of all outputs in the cell that begins at a place."""
    held = 0.0
    for o in range(len(sums.hessian_unit)):
        held += np.float64(hessian_of(cells[at + o])) * sums.hessian_unit[o]
    return held


# --- Cuts of one feature --------------------------------------------------------------------------------------


@kernel
def list_cells(histogram: np.ndarray, at: int, n_codes: int, sums: VectorSums, bins: np.ndarray) -> int:
    """List the codes of a feature that rows have, ascending; return how many. at: where its cells begin."""
    width = np.uint64(sums.width)
    counts = np.uint64(at + len(sums.gradient_unit))
    n = np.uint64(0)
    for code in range(ONE, np.uint64(n_codes) + ONE):
        bins[BIN_CODE, n] = code
        n += np.uint64(histogram[counts + code * width] != 0)
    return np.int64(n)


@kernel
def order_cells(
    o: int, n: int, histogram: np.ndarray, at: int, scratch: VectorScratch, settings: BoostSettings
) -> None:
    """Put n listed levels of a category in the order of output o."""
    plain = scratch.plain
    sums = scratch.sums
    for k in range(n):
        packed = histogram[at + plain.bins[BIN_CODE, k] * sums.width + o]
        h = np.float64(hessian_of(packed)) * sums.hessian_unit[o]
        g = np.float64(gradient_of(packed)) * sums.gradient_unit[o]
        plain.scores[k] = g / (h + settings.cat_smooth)
    sort_bins(plain.bins, plain.scores, n, plain.spare, plain.buckets)


@kernel
def chance_of_cells(
    n: int, noise: float, histogram: np.ndarray, at: int, slot: int, bins: np.ndarray, sums: VectorSums
) -> Chance:
    """What the listed levels of a category gain by chance; the hessians of all outputs are what a weight is."""
    if noise == 0.0:
        return no_chance()
    roots = 0.0
    for k in range(n):
        roots += np.sqrt(hessian_of_cell(histogram, at + bins[BIN_CODE, k] * sums.width, sums))
    information = (
        hessian_of_cell(sums.total, slot * sums.width, sums) / np.float64(len(sums.hessian_unit)) / np.float64(n)
    )
    return Chance(noise, roots, few_rows(information), 0.0, 0.0)


@kernel
def add_tile(begin: int, n: int, histogram: np.ndarray, first: int, scratch: VectorScratch, has_roots: bool) -> None:
    """Move n listed cells from `begin` on to branch 0, one by one, and note its sums after each."""
    sums = scratch.sums
    scan = scratch.scan
    left = scan.left
    bins = scratch.plain.bins
    n_outputs = len(sums.gradient_unit)
    for k in range(n):
        at = np.uint64(first + bins[BIN_CODE, begin + k] * sums.width)
        for o in range(np.uint64(sums.width)):
            left[o] += histogram[at + o]
        for o in range(n_outputs):
            scan.gradient[o, k] = np.float64(gradient_of(left[o])) * sums.gradient_unit[o]
            scan.hessian[o, k] = np.float64(hessian_of(left[o])) * sums.hessian_unit[o]
        scan.n_rows[k] = left[n_outputs]
        scan.weight[k] = left[n_outputs + 1] if sums.has_weight else np.int64(0)
        if has_roots:
            scan.root[0] += np.sqrt(hessian_of_cell(histogram, np.int64(at), sums))
            scan.roots[k] = scan.root[0]


@kernel
def judge_tile(
    n: int, side: int, slot: int, histogram: np.ndarray, at: int, scratch: VectorScratch, settings: BoostSettings
) -> None:
    """Write twice the scores of the branches of n cuts, and the hessians on their left; side 1: with missing values."""
    sums = scratch.sums
    scan = scratch.scan
    gain = scan.gain
    held = scan.held
    gradient = scan.gradient
    hessian = scan.hessian
    end = np.uint64(n)
    reg_lambda = settings.reg_lambda
    for k in range(end):
        gain[k] = 0.0
        held[k] = 0.0
    for o in range(len(sums.gradient_unit)):
        total = sums.total[slot * sums.width + o]
        missing = histogram[at + o] * side
        g_all = np.float64(gradient_of(total)) * sums.gradient_unit[o]
        h_all = np.float64(hessian_of(total)) * sums.hessian_unit[o]
        g_more = np.float64(gradient_of(missing)) * sums.gradient_unit[o]
        h_more = np.float64(hessian_of(missing)) * sums.hessian_unit[o]
        if settings.is_plain:
            for k in range(end):
                h = hessian[o, k] + h_more
                gain[k] += plain_gain(gradient[o, k] + g_more, h, g_all, h_all, reg_lambda)
                held[k] += h
        else:
            for k in range(end):
                g = gradient[o, k] + g_more
                h = hessian[o, k] + h_more
                score = score_of_sums(g, h, settings) + score_of_sums(g_all - g, h_all - h, settings)
                gain[k] += 2.0 * score
                held[k] += h


@kernel
def scan_cells(
    n: int,  # cells that are listed, in the order they are cut in
    most: int,  # of them in the smaller branch
    chance: Chance,
    slot: int,
    histogram: np.ndarray,
    at: int,  # where the cells of the feature begin
    scratch: VectorScratch,
    settings: BoostSettings,
) -> BoostCut:
    """Best cut of listed cells: `cut` is the last of branch 0 in their order, `following` the next one."""
    sums = scratch.sums
    scan = scratch.scan
    n_outputs = len(sums.gradient_unit)
    tile = len(scan.gain)
    for o in range(sums.width):
        scan.left[o] = 0
    scan.root[0] = 0.0
    of_node = slot * sums.width + n_outputs
    n_all = sums.total[of_node]
    n_missing = histogram[at + n_outputs]
    w_all = sums.total[of_node + 1] if sums.has_weight else np.int64(0)
    w_missing = histogram[at + n_outputs + 1] if sums.has_weight else np.int64(0)
    held_all = hessian_of_cell(sums.total, slot * sums.width, sums)
    best = scan.best
    cut = scan.cut
    for side in range(2):
        best[side] = NO_GAIN
        cut[side] = -1
    for begin in range(0, n, tile):
        size = min(tile, n - begin)
        add_tile(begin, size, histogram, at, scratch, chance.noise > 0.0)
        for side in range(2 if n_missing > 0 else 1):
            judge_tile(size, side, slot, histogram, at, scratch, settings)
            for k in range(size):
                n_left = scan.n_rows[k] + n_missing * side
                w_left = scan.weight[k] + w_missing * side
                held = scan.held[k]
                if n_left < settings.min_samples_leaf or n_all - n_left < settings.min_samples_leaf:
                    continue
                if w_left < settings.min_weight_leaf or w_all - w_left < settings.min_weight_leaf:
                    continue
                if held < sums.least_hessian or held_all - held < sums.least_hessian:
                    continue
                if min(begin + k + 1, n - begin - k - 1) > most:
                    continue
                gain = 0.5 * scan.gain[k]
                if chance.noise > 0.0:
                    gain -= luck_of(chance, scan.roots[k], held, held_all - held)
                if gain > best[side]:
                    best[side] = gain
                    cut[side] = begin + k
    side = np.int64(best[1] > best[0])
    last = cut[side]
    following = last + 1 if 0 <= last < n - 1 else np.int64(-1)
    branch = np.int64(1) - side if n_missing > 0 else np.int64(-1)
    return BoostCut(best[side], last, following, branch, np.int64(0))


@inlined
def scan_numbers(
    n_codes: int, slot: int, histogram: np.ndarray, at: int, scratch: VectorScratch, settings: BoostSettings
) -> BoostCut:
    """Best cut of a number, in codes."""
    bins = scratch.plain.bins
    n = list_cells(histogram, at, n_codes, scratch.sums, bins)
    found = scan_cells(n, n, no_chance(), slot, histogram, at, scratch, settings)
    if found.cut < 0:
        return found
    following = bins[BIN_CODE, found.following] if found.following >= 0 else np.int64(-1)
    return BoostCut(found.gain, bins[BIN_CODE, found.cut], following, found.missing, np.int64(0))


@inlined
def scan_levels(
    n_codes: int,
    noise: float,
    slot: int,
    histogram: np.ndarray,
    at: int,
    scratch: VectorScratch,
    settings: BoostSettings,
) -> BoostCut:
    """Best cut of a category, in levels in the order of an output, whose number takes the place of the sums."""
    bins = scratch.plain.bins
    n = list_cells(histogram, at, n_codes, scratch.sums, bins)
    most = settings.max_cat_threshold if n > FEW_LEVELS else n
    chance = chance_of_cells(n, noise, histogram, at, slot, bins, scratch.sums)
    best = BoostCut(NO_GAIN, np.int64(-1), np.int64(-1), np.int64(-1), np.int64(0))
    for o in range(1 if n <= 2 else len(scratch.sums.gradient_unit)):  # two levels are parted alike in any order
        order_cells(o, n, histogram, at, scratch, settings)
        found = scan_cells(n, most, chance, slot, histogram, at, scratch, settings)
        if found.gain > best.gain:
            best = BoostCut(found.gain, found.cut, np.int64(-1), found.missing, np.int64(o))
    return best


# --- The best test of a node ----------------------------------------------------------------------------------


@inlined
def scan_outputs(
    slot: int,
    part: int,  # of the features
    cells: int,  # where those of the node begin
    table: BoostTable,
    frontier: BoostFrontier,
    best: BestCuts,
    scratch: VectorScratch,
    settings: BoostSettings,
) -> None:
    """Find the best cut of each feature of a part that is drawn for an open node."""
    first, last = part_of(part, table, scratch.sums)
    used = table.used
    width = scratch.sums.width
    key = fold(np.uint64(settings.seed), np.uint64(frontier.key[slot]))
    n_left = np.int64(len(used))
    n_open = np.int64(settings.n_try)
    for f in range(len(used)):
        feature = used[f]
        is_drawn = n_open >= n_left or below(key, f, n_left) < n_open
        n_left -= 1
        n_open -= np.int64(is_drawn)
        if f < first or f >= last:
            continue
        best.gain[f] = NO_GAIN
        if not is_drawn or not is_allowed(feature, slot, table, frontier):
            continue
        n_codes = table.features[N_CODES, feature]
        at = cells + table.histogram_start[feature] * width
        if table.features[IS_CATEGORICAL, feature] != 0:
            found = scan_levels(n_codes, frontier.noise[slot], slot, frontier.histogram, at, scratch, settings)
        else:
            found = scan_numbers(n_codes, slot, frontier.histogram, at, scratch, settings)
        best.gain[f] = found.gain
        best.cut[f] = found.cut
        best.following[f] = found.following
        best.missing[f] = found.missing
        best.left[f] = found.left


@inlined
def add_to_left(code: int, slot: int, histogram: np.ndarray, at: int, sums: VectorSums) -> None:
    """Add the cell of a code to that of branch 0; at: where the cells of the feature begin."""
    width = sums.width
    for o in range(width):
        sums.left[slot * width + o] += histogram[at + code * width + o]


@inlined
def choose_outputs(
    slot: int,
    cells: int,  # where those of the node begin
    table: BoostTable,
    frontier: BoostFrontier,
    best: BestCuts,
    scratch: VectorScratch,
    settings: BoostSettings,
) -> bool:
    """Note the best test of an open node in its slot, with the sums of branch 0; whether one has enough gain."""
    sums = scratch.sums
    width = sums.width
    histogram = frontier.histogram
    own = score_of_node(slot, sums, settings)
    f = best_feature(own, table, best, settings)
    if f < 0:
        return False
    features = table.features
    feature = table.used[f]
    n_codes = features[N_CODES, feature]
    is_category = features[IS_CATEGORICAL, feature] != 0
    at = cells + table.histogram_start[feature] * width
    cut = best.cut[f]
    n = np.int64(0)
    for o in range(width):
        sums.left[slot * width + o] = 0
    if best.missing[f] == 0:
        add_to_left(np.int64(0), slot, histogram, at, sums)
    if is_category:
        n = list_cells(histogram, at, n_codes, sums, scratch.plain.bins)
        order_cells(best.left[f], n, histogram, at, scratch, settings)
        for k in range(cut + 1):
            add_to_left(scratch.plain.bins[BIN_CODE, k], slot, histogram, at, sums)
    else:
        for code in range(1, cut + 1):
            add_to_left(np.int64(code), slot, histogram, at, sums)
    missing = best.missing[f]
    if missing < 0:
        held = hessian_of_cell(sums.left, slot * width, sums)
        missing = np.int64(hessian_of_cell(sums.total, slot * width, sums) - held > held)
    frontier.feature[slot] = feature
    frontier.missing[slot] = missing
    frontier.cut[slot] = cut
    frontier.gain[slot] = best.gain[f] - own - settings.gamma
    if is_category:
        frontier.kind[slot] = SUBSET
        keep_subset(slot, n, n_codes, scratch.plain.bins, frontier)
        return True
    following = best.following[f]
    threshold = place_threshold(features, table.edges, feature, cut, following, False)
    last = following - 1 if following > 0 else n_codes
    frontier.kind[slot] = THRESHOLD
    frontier.cut_value[slot] = threshold
    frontier.cut[slot] = last_below(table.edges, features[OFFSET, feature] - 1, cut, last, threshold)
    return True
