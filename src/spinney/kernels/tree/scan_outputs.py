"""Search the features of a node for several outputs: numbers, by the sum of their squared errors, or classes.

A branch is a weight and a sum for each column, in one unit. An output of numbers is one column; one of classes has a
column for each class, the weight of the rows of that class: the sum of their squared errors is the Gini impurity, and
their entropy is a score of its own. The addends of a row are its first column, its weight, and its other columns. Rows
are walked in the order of a feature, as `scan_medians` does, and cuts are judged by the same `judge_cuts`: its errors
are minus the scores of branches.

Levels of a category are tried in the order of the means of each column in turn: the best prefix of any of these orders
is taken, which need not be the best subset.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import (
    BIN_CODE,
    BIN_N,
    BIN_WEIGHT,
    IS_LISTED,
    MAX_CODES,
    MONOTONE,
    N_CODES,
    N_MISSING,
    SMALL_SHIFT,
    TARGET,
    W_ALL,
    W_MISSING,
)

from ..common.bins import list_bins_by_histogram, list_bins_by_keys, order_bins
from ..common.category_chance import no_chance
from ..common.criteria import times_log
from ..common.leaf_means import MEAN, SQUARE, fixed_mean
from ..common.sorting import make_keys
from ..common.structs import (
    BinWalk,
    Candidate,
    DrawnTest,
    LevelScratch,
    NodeOutputs,
    Nodes,
    OpenNode,
    OutputScratch,
    RowRange,
    Rows,
    Scratch,
    Settings,
    SortedKeys,
    StatUnits,
    Table,
    Targets,
    TimeScratch,
    TreeArrays,
)
from ..common.ties import slack_of
from .candidates import none_better
from .scan_logrank import open_times, pass_times, score_levels_by_times
from .scan_medians import FEW_CODES, LEFT, LEFT_MISSING, POSITION, RIGHT, RIGHT_MISSING, judge_cuts, order_by_bins
from .subsets import write_levels

OF_ALL, OF_LEFT, OF_MISSING, CENTRE = 0, 1, 2, 3  # rows of the sums
ROUNDING = 2.0**-47  # of scores by fractional weights, whose sums have no centre


@inlined
def addend_of(column: int) -> int:
    """Row of the addends that holds a column: the weight stands behind the first."""
    return TARGET if column == 0 else column + 1


@inlined
def score_column(total: int, n_entropies: int, xlogx: np.ndarray) -> float:
    """What a column adds to the score of a branch, before its weight is accounted for."""
    if n_entropies > 0:
        return times_log(total, xlogx)
    return np.float64(total) * np.float64(total)


@inlined
def score_branch(score: float, weight: int, n_entropies: int, xlogx: np.ndarray) -> float:
    """The score of a branch of this weight, of what its columns add."""
    if n_entropies > 0:
        return score - np.float64(n_entropies) * times_log(weight, xlogx)
    return score / np.float64(weight)


# --- The node ---------------------------------------------------------------------------------------------------------


@inlined
def open_outputs(
    score: float, node: OpenNode, rows: Rows, is_whole: bool, totals: np.ndarray, outputs: OutputScratch | None
) -> float:
    """Score of a node of several outputs, whose sums are added up; of one output the score as it is."""
    if outputs is None:
        return score
    return open_columns(node, rows, is_whole, totals, outputs, outputs.times)


@inlined
def open_columns(
    node: OpenNode, rows: Rows, is_whole: bool, totals: np.ndarray, outputs: OutputScratch, times: TimeScratch | None
) -> float:
    """The same of numbers and classes, or of times until an event."""
    if times is None:
        return sum_outputs(node, rows.addends, is_whole, totals, outputs)
    return open_times(node, rows, outputs, times)


@kernel
def sum_outputs(
    node: OpenNode, addends: np.ndarray, is_whole: bool, totals: np.ndarray, outputs: OutputScratch
) -> float:
    """Add up the columns of a node, each less its mean where weights are whole; return the score of the node."""
    sums, n_entropies, xlogx = outputs.sums, outputs.n_entropies, outputs.xlogx
    weight = totals[W_ALL]
    score = 0.0
    for o in range(sums.shape[1]):
        total = np.int64(0)
        for i in range(np.uint64(node.lo), np.uint64(node.hi)):
            total += addends[addend_of(o), i]
        centre = total // weight if is_whole and n_entropies == 0 else np.int64(0)
        sums[CENTRE, o] = centre
        sums[OF_ALL, o] = total - centre * weight
        if n_entropies > 0:
            score += score_column(sums[OF_ALL, o], n_entropies, xlogx)
        else:
            score += np.float64(sums[OF_ALL, o]) * np.float64(sums[OF_ALL, o]) / np.float64(weight)
    outputs.blur[0] = 0.0 if is_whole else score * ROUNDING
    if n_entropies > 0:
        outputs.blur[0] = slack_of(score)  # differences of sums of logarithms
        score = score_branch(score, weight, n_entropies, xlogx)
    outputs.whole[0] = -score
    return score


@kernel
def write_errors(b: int, weight: int, totals: np.ndarray, outputs: OutputScratch) -> None:
    """Minus the scores of the branches of the cut behind bin b; weight: of the known rows on its left."""
    sums, errors, n_entropies, xlogx = outputs.sums, outputs.errors, outputs.n_entropies, outputs.xlogx
    n_sides = 4 if totals[N_MISSING] > 0 else 2
    missing = totals[W_MISSING] if totals[N_MISSING] > 0 else np.int64(0)
    for side in range(n_sides):
        held = weight if side in (LEFT, LEFT_MISSING) else totals[W_ALL] - weight - missing
        if side in (LEFT_MISSING, RIGHT_MISSING):
            held += missing
        score = 0.0
        for o in range(sums.shape[1]):
            total = sums[OF_LEFT, o]
            if side in (RIGHT, RIGHT_MISSING):
                total = sums[OF_ALL, o] - total - sums[OF_MISSING, o]
            if side in (LEFT_MISSING, RIGHT_MISSING):
                total += sums[OF_MISSING, o]
            score += score_column(total, n_entropies, xlogx)
        errors[side, b] = -score_branch(score, held, n_entropies, xlogx) if held > 0 else 0.0


@kernel
def add_row(row: int, i: int, weight: int, addends: np.ndarray, sums: np.ndarray) -> None:
    """Add row i of the addends to a row of the sums, each column less its centre."""
    for o in range(sums.shape[1]):
        sums[row, o] += addends[addend_of(o), i] - sums[CENTRE, o] * weight


@kernel
def pass_bins(
    n_bins: int, base: int, addends: np.ndarray, bins: np.ndarray, totals: np.ndarray, outputs: OutputScratch
) -> None:
    """Write the errors of every cut; addends: those that `order` counts in, from `base` on."""
    order, sums = outputs.order, outputs.sums
    for o in range(sums.shape[1]):
        sums[OF_LEFT, o] = 0
        sums[OF_MISSING, o] = 0
    for k in range(totals[N_MISSING]):
        i = base + np.int64(order[k])
        add_row(OF_MISSING, i, addends[1, i], addends, sums)
    at = totals[N_MISSING]
    weight = np.int64(0)
    for b in range(n_bins):
        for k in range(at, at + bins[BIN_N, b]):
            i = base + np.int64(order[k])
            add_row(OF_LEFT, i, addends[1, i], addends, sums)
        at += bins[BIN_N, b]
        weight += bins[BIN_WEIGHT, b]
        write_errors(b, weight, totals, outputs)


@inlined
def pass_columns(
    n_bins: int,
    base: int,
    addends: np.ndarray,
    ids: np.ndarray,
    bins: np.ndarray,
    totals: np.ndarray,
    outputs: OutputScratch,
    times: TimeScratch | None,
) -> None:
    """Write the errors of every cut; ids: rows of the table, of times, which have no sorted lists."""
    if times is None:
        pass_bins(n_bins, base, addends, bins, totals, outputs)
    else:
        pass_times(n_bins, base, addends, ids, bins, totals, outputs, times)


# --- Features ---------------------------------------------------------------------------------------------------------


@inlined
def scan_number_of_outputs(
    best: Candidate,
    feature: int,
    node: OpenNode,
    rows: Rows,
    table: Table,
    settings: Settings,
    scratch: Scratch,
    outputs: OutputScratch,
) -> Candidate:
    """Best cut of a number."""
    features, bins, totals = table.features, scratch.bins, scratch.totals
    lo, hi, order = node.lo, node.hi, outputs.order
    n_codes = features[N_CODES, feature]
    is_listed = node.list_lo >= 0 and features[IS_LISTED, feature] != 0
    if not is_listed and (n_codes <= hi - lo or n_codes <= FEW_CODES):
        n_bins = list_bins_by_histogram(rows, lo, hi, feature, n_codes, scratch.histogram, bins, totals)
        order_by_bins(lo, hi, feature, n_bins, rows.codes, scratch.histogram, bins, outputs)
        pass_columns(n_bins, lo, rows.addends, rows.ids, bins, totals, outputs, outputs.times)
    else:
        ordered = SortedKeys(
            rows.lists.keys, feature, lo - node.list_lo, hi - node.list_lo, rows.lists.addends, np.int64(0)
        )
        if not is_listed:
            side = make_keys(rows.codes, lo, hi, feature, SMALL_SHIFT, scratch.keys, scratch.counts)
            ordered = SortedKeys(scratch.keys, np.int64(side), np.int64(0), hi - lo, rows.addends, lo)
        n_bins = list_bins_by_keys(ordered, SMALL_SHIFT, bins, totals)
        for k in range(ordered.first, ordered.end):
            order[k - ordered.first] = np.int64(ordered.keys[ordered.row, k]) & POSITION
        pass_columns(n_bins, ordered.base, ordered.addends, rows.ids, bins, totals, outputs, outputs.times)
    if n_bins == 0 or (n_bins == 1 and totals[N_MISSING] == 0):
        return none_better(best)
    walk = BinWalk(n_bins, features[MONOTONE, feature], no_chance())
    found = judge_cuts(best, walk, node, settings, bins, totals, outputs)
    if found.cut < 0:
        return found
    following = np.int64(-1)
    if found.cut < n_bins - 1:
        following = bins[BIN_CODE, found.cut + 1]
    return Candidate(found.score, bins[BIN_CODE, found.cut], following, found.missing, found.n_ties, np.inf)


@kernel
def score_levels_by(
    column: int, lo: int, hi: int, feature: int, n_bins: int, rows: Rows, scratch: Scratch, scores: np.ndarray
) -> None:
    """Write the mean of a column over each level; the histogram is zero before and after."""
    codes, addends, histogram, bins = rows.codes, rows.addends, scratch.histogram, scratch.bins
    row = addend_of(column)
    for i in range(lo, hi):
        histogram[np.int64(codes[i, feature])] += addends[row, i]
    histogram[0] = 0
    for b in range(n_bins):
        scores[b] = np.float64(histogram[bins[BIN_CODE, b]]) / np.float64(bins[BIN_WEIGHT, b])
        histogram[bins[BIN_CODE, b]] = 0


@inlined
def rank_levels(
    column: int,
    node: OpenNode,
    feature: int,
    n_bins: int,
    rows: Rows,
    scratch: Scratch,
    scores: np.ndarray,
    times: TimeScratch | None,
) -> None:
    """Write what the levels of a category are put in order by."""
    if times is None:
        score_levels_by(column, node.lo, node.hi, feature, n_bins, rows, scratch, scores)
    else:
        score_levels_by_times(node.lo, node.hi, feature, n_bins, rows, scratch, scores, times)


@inlined
def scan_levels_of_outputs(
    best: Candidate,
    feature: int,
    node: OpenNode,
    rows: Rows,
    table: Table,
    settings: Settings,
    scratch: Scratch,
    levels: LevelScratch | None,
) -> Candidate:
    """Best prefix of the levels of a category in the order of any column, left in the bitset of `scratch.levels`."""
    if levels is None:  # a table without categories
        return none_better(best)
    bins, totals, outputs, histogram = scratch.bins, scratch.totals, scratch.outputs, scratch.histogram
    n_codes = table.features[N_CODES, feature]
    n_bins = list_bins_by_histogram(rows, node.lo, node.hi, feature, n_codes, histogram, bins, totals)
    if n_bins == 0 or (n_bins == 1 and totals[N_MISSING] == 0):
        return none_better(best)
    found = none_better(best)
    for o in range(outputs.sums.shape[1]):
        rank_levels(o, node, feature, n_bins, rows, scratch, levels.scores, outputs.times)
        order_bins(bins, levels.scores, n_bins, settings.value_slack)
        order_by_bins(node.lo, node.hi, feature, n_bins, rows.codes, histogram, bins, outputs)
        pass_columns(n_bins, node.lo, rows.addends, rows.ids, bins, totals, outputs, outputs.times)
        walk = BinWalk(n_bins, np.int64(0), no_chance())
        better = judge_cuts(found, walk, node, settings, bins, totals, outputs)
        if better.cut >= 0:
            write_levels(levels.bitset, bins, better.cut + 1, -1, (n_codes + 63) >> 6)
            found = better
        else:
            found = Candidate(found.score, found.cut, np.int64(-1), found.missing, better.n_ties, np.inf)
    return found


@inlined
def judge_outputs(
    best: Candidate,
    drawn: DrawnTest,
    node: OpenNode,
    rows: Rows,
    settings: Settings,
    scratch: Scratch,
    outputs: OutputScratch,
) -> Candidate:
    """Judge a test that was drawn; its rows are counted in the bins."""
    totals, bins, column, sums = scratch.totals, scratch.bins, scratch.random.column, outputs.sums
    addends, lo = rows.addends, node.lo
    for o in range(sums.shape[1]):
        sums[OF_MISSING, o] = 0
    for k in range(node.hi - lo):
        if column[k] == 0:
            add_row(OF_MISSING, lo + k, addends[1, lo + k], addends, sums)
    weight = np.int64(0)
    for b in range(drawn.n_bins):
        cut = drawn.cut if b < drawn.n_bins - 1 else np.int64(MAX_CODES)
        for o in range(sums.shape[1]):
            sums[OF_LEFT, o] = 0
        for k in range(node.hi - lo):
            if column[k] > 0 and column[k] <= cut:
                add_row(OF_LEFT, lo + k, addends[1, lo + k], addends, sums)
        weight += bins[BIN_WEIGHT, b]
        write_errors(b, weight, totals, outputs)
    walk = BinWalk(drawn.n_bins, drawn.sign, no_chance())
    return judge_cuts(best, walk, node, settings, bins, totals, outputs)


# --- The finished tree ------------------------------------------------------------------------------------------------


@inlined
def fill_outputs(
    targets: Targets, nodes: Nodes, units: StatUnits, weight: np.ndarray, out: TreeArrays, outputs: NodeOutputs | None
) -> None:
    """Means of every node, and the mean over the outputs of their variances."""
    if outputs is None:
        return
    ids, addends = targets.ids, targets.addends
    n_outputs = len(outputs.truth)
    for node in range(len(out.test)):
        leaf = RowRange(nodes.begin[node], nodes.begin[node] + nodes.n_rows[node], weight[node])
        total = 0.0
        for o in range(n_outputs):
            truth = outputs.truth[o]
            low = truth[np.uint64(ids[leaf.lo])]
            high = low
            for i in range(np.uint64(leaf.lo), np.uint64(leaf.hi)):
                y = truth[np.uint64(ids[i])]
                low = min(low, y)
                high = max(high, y)
            value = low
            if low != high:
                width = high - low
                one = Targets(addends, ids, truth)
                mean = fixed_mean(one, leaf, units.values.is_whole, low, width, 0.0, MEAN)
                variance = fixed_mean(one, leaf, units.values.is_whole, low, width, mean, SQUARE)
                value = low + mean * width
                width *= units.values.stretch
                total += variance * width * width
            outputs.answers[node, o] = value * units.value_unit * units.value_unit_2
        out.impurity[node] = total / np.float64(n_outputs)
        if nodes.first_child[node] == 0:
            out.threshold[node] = outputs.answers[node, 0]
            out.cuts[node, 0] = out.threshold[node]
