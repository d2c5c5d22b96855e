"""One random test per feature, as extremely randomised trees ask (Geurts, Ernst and Wehenkel 2006).

Numbers: a threshold uniform between the lowest and the highest value of the node. Categories: the levels of the node
are parted at random into two parts, neither empty, and each level that the node does not have is sent either way at
random. A test is then judged like any other, so missing values, constraints and criteria are those of the other trees.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import (
    ALL,
    BIN_N,
    BIN_SQUARE,
    BIN_SUM,
    BIN_WEIGHT,
    HELD,
    IS_CATEGORICAL,
    LEFT,
    LOW,
    MISSING,
    MONOTONE,
    N_CODES,
    N_MISSING,
    NUMBER,
    OFFSET,
    PAIR_ROWS,
    PRESENT,
    Q_ALL,
    Q_MISSING,
    RIGHT,
    S_ALL,
    S_MISSING,
    TARGET,
    W_ALL,
    W_MISSING,
    WEIGHT,
)

from ..common.branch import has_level
from ..common.category_chance import no_chance
from ..common.rng import below, fold, fraction
from ..common.structs import (
    BinWalk,
    Candidate,
    ClassScratch,
    CodeSums,
    CutAtHand,
    DrawnTest,
    LevelScratch,
    MedianScratch,
    OpenNode,
    OutputScratch,
    RowBits,
    Rows,
    Scratch,
    Settings,
    Table,
)
from ..common.thresholds import last_below
from .candidates import none_better
from .feature_order import source_of
from .flags import is_flag, load_flag
from .scan_classes import SQUARES, power_kind, power_step, try_cut
from .scan_medians import judge_by_medians
from .scan_moments import scan_moments
from .scan_outputs import judge_outputs
from .small_tests import count_steps, draw_value, judge_left_classes, judge_left_sums, last_left, load_few

NONE, ONE, TWO, THREE, FOUR = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
LAST_BIT = np.uint64(63)


@inlined
def find_range(codes: np.ndarray, lo: int, hi: int, feature: int, column: np.ndarray) -> tuple[int, int, int]:
    """Copy the codes of a feature to `column`; return the lowest and highest known code and how many are missing."""
    lowest = np.int32(1 << 16)
    highest = np.int32(0)
    n_missing = np.int32(0)
    first = np.uint64(lo)
    at = np.uint64(feature)
    n = np.uint64(hi - lo)
    for k in range(n):
        column[k] = np.int32(codes[first + k, at])
    for k in range(n):  # apart: of codes side by side the processor takes several at a time
        code = column[k]
        lowest = min(lowest, np.int32((code - 1) & 0xFFFF))  # missing counts as highest
        highest = max(highest, code)
        n_missing = np.int32(n_missing + np.int32(code == 0))
    return np.int64(lowest) + 1, np.int64(highest), np.int64(n_missing)


@inlined
def load_many(feature: int, lo: int, hi: int, rows: Rows, column: np.ndarray) -> tuple[int, int, int]:
    """The same of any feature: `find_range` where it has codes; of a flag, both of which the node has."""
    if is_flag(feature, rows):
        load_flag(feature, lo, np.uint64(hi - lo), hi, rows, column)
        return np.int64(1), np.int64(2), np.int64(0)
    source, first, j = source_of(feature, lo, hi, rows)
    return find_range(source, first, first + hi - lo, j, column)


@kernel
def draw_threshold(
    features: np.ndarray,
    edges: np.ndarray,
    feature: int,
    lowest: int,
    highest: int,
    key: np.uint64,
) -> tuple[int, float]:
    """A threshold uniform over the values of codes lowest .. highest: the last code below it, and the threshold.

    Where values are binned, the lowest value of a bin stands for it.
    """
    at = features[OFFSET, feature] - 1
    low = edges[LOW, at + lowest]
    high = edges[LOW, at + highest]
    number = features[NUMBER, feature]
    threshold = low + (high - low) * fraction(fold(key, np.uint64(number)))
    if not (threshold >= low and threshold < high):  # infinite values, or a rounding at the upper end
        cut = lowest + below(key, number, highest - lowest)
        return cut, edges[LOW, at + cut]
    first = last_below(edges, at, lowest, highest - 1, threshold)
    return first, threshold


@inlined
def judge_plain(
    best: Candidate, cut: int, node: OpenNode, addends: np.ndarray, column: np.ndarray, totals: np.ndarray
) -> Candidate:
    """Judge a test by squared error where nothing is missing or constrains it: the cut is 0 if it is chosen."""
    n = node.hi - node.lo
    first = np.uint64(node.lo)
    limit = np.int32(cut)
    none = np.int64(0)
    left = none
    w_left = none
    if len(addends) == 1:
        for k in range(np.uint64(n)):
            left += addends[TARGET, first + k] if column[k] <= limit else none
            w_left += np.int64(column[k] <= limit)
    else:
        for k in range(np.uint64(n)):
            left += addends[TARGET, first + k] if column[k] <= limit else none
            w_left += addends[WEIGHT, first + k] if column[k] <= limit else none
    return judge_left_sums(best, left, w_left, node, totals)


@inlined
def sum_left(addends: np.ndarray, lo: int, n: int, column: np.ndarray, cut: int, bins: np.ndarray) -> None:
    """Sum the addends of known rows with codes up to `cut` into bin 0."""
    first = np.uint64(lo)
    limit = np.int32(cut)
    none = np.int64(0)
    count = none
    total = none
    weight = none
    square = none
    last = len(addends) - 1
    for k in range(np.uint64(n)):
        is_left = (column[k] <= limit) & (column[k] > 0)
        count += np.int64(is_left)
        total += addends[TARGET, first + k] if is_left else none
    if last == 0:
        weight = count
    else:
        for k in range(np.uint64(n)):
            is_left = (column[k] <= limit) & (column[k] > 0)
            weight += addends[WEIGHT, first + k] if is_left else none
    if last == 2:
        for k in range(np.uint64(n)):
            is_left = (column[k] <= limit) & (column[k] > 0)
            square += addends[last, first + k] if is_left else none
    elif last == 1:
        square = weight
    bins[BIN_N, 0] = count
    bins[BIN_SUM, 0] = total
    bins[BIN_WEIGHT, 0] = weight
    bins[BIN_SQUARE, 0] = square


@inlined
def sum_missing(addends: np.ndarray, lo: int, n: int, column: np.ndarray, n_missing: int, totals: np.ndarray) -> None:
    """Sum the addends of rows with code 0."""
    totals[N_MISSING] = n_missing
    totals[S_MISSING] = 0
    totals[W_MISSING] = 0
    totals[Q_MISSING] = 0
    if n_missing == 0:
        return
    last = len(addends) - 1
    first = np.uint64(lo)
    total = np.int64(0)
    for k in range(np.uint64(n)):  # without a jump at each row, several rows at a time
        total += addends[TARGET, first + k] & -np.int64(column[k] == 0)
    totals[S_MISSING] = total
    totals[W_MISSING] = n_missing
    if last == 0:
        return
    weight = np.int64(0)
    square = np.int64(0)
    for k in range(np.uint64(n)):
        is_missing = -np.int64(column[k] == 0)  # all bits, or none
        weight += addends[WEIGHT, first + k] & is_missing
        square += addends[last, first + k] & is_missing
    totals[W_MISSING] = weight
    totals[Q_MISSING] = square


@inlined
def sum_drawn(drawn: DrawnTest, node: OpenNode, rows: Rows, scratch: Scratch) -> None:
    """Sum up the parts of the test that sends known codes up to `drawn.cut` left: bins 0 and 1, and missing rows."""
    addends, column = rows.addends, scratch.random.column
    bins, totals = scratch.bins, scratch.totals
    n = node.hi - node.lo
    sum_left(addends, node.lo, n, column, drawn.cut, bins)
    sum_missing(addends, node.lo, n, column, drawn.n_missing, totals)
    sum_right(drawn, n, bins, totals)


@inlined
def sum_right(drawn: DrawnTest, n: int, bins: np.ndarray, totals: np.ndarray) -> None:
    """Sum up bin 1, if there is one: what is left of n rows beside bin 0 and the missing ones."""
    if drawn.n_bins == 2:
        bins[BIN_N, 1] = n - drawn.n_missing - bins[BIN_N, 0]
        bins[BIN_SUM, 1] = totals[S_ALL] - totals[S_MISSING] - bins[BIN_SUM, 0]
        bins[BIN_WEIGHT, 1] = totals[W_ALL] - totals[W_MISSING] - bins[BIN_WEIGHT, 0]
        bins[BIN_SQUARE, 1] = totals[Q_ALL] - totals[Q_MISSING] - bins[BIN_SQUARE, 0]


@inlined
def judge_moments(
    best: Candidate,
    drawn: DrawnTest,
    node: OpenNode,
    rows: Rows,
    settings: Settings,
    xlogx: np.ndarray,
    scratch: Scratch,
) -> Candidate:
    """Judge the test that sends known codes up to `drawn.cut` left; as `scan_moments`."""
    if settings.is_plain and drawn.n_missing == 0:
        scratch.totals[N_MISSING] = 0
        return judge_plain(best, drawn.cut, node, rows.addends, scratch.random.column, scratch.totals)
    sum_drawn(drawn, node, rows, scratch)
    walk = BinWalk(drawn.n_bins, drawn.sign, no_chance())
    return scan_moments(best, walk, node, settings, xlogx, scratch.bins, scratch.totals, scratch.rates)


@inlined
def judge_sums(
    best: Candidate,
    drawn: DrawnTest,
    node: OpenNode,
    rows: Rows,
    settings: Settings,
    xlogx: np.ndarray,
    scratch: Scratch,
    outputs: OutputScratch | None,
) -> Candidate:
    """The same of one output or several."""
    if outputs is None:
        return judge_moments(best, drawn, node, rows, settings, xlogx, scratch)
    sum_drawn(drawn, node, rows, scratch)
    return judge_outputs(best, drawn, node, rows, settings, scratch, outputs)


@inlined
def judge_values(
    best: Candidate,
    drawn: DrawnTest,
    node: OpenNode,
    rows: Rows,
    settings: Settings,
    xlogx: np.ndarray,
    scratch: Scratch,
    medians: MedianScratch | None,
) -> Candidate:
    """The same by any criterion of numbers, and for two classes."""
    if medians is None:
        return judge_sums(best, drawn, node, rows, settings, xlogx, scratch, scratch.outputs)
    sum_drawn(drawn, node, rows, scratch)
    return judge_by_medians(best, drawn, node, settings, scratch, medians)


@inlined
def judge_squares(
    best: Candidate, cut: int, node: OpenNode, addends: np.ndarray, column: np.ndarray, sums: np.ndarray, weight: int
) -> Candidate:
    """Judge a test by Gini of whole weights where nothing is missing or constrains it: the cut is 0 if it is chosen."""
    first = np.uint64(node.lo)
    limit = np.int32(cut)
    none = np.int64(0)
    for k in range(node.n_present):
        c = sums[PRESENT, k]
        sums[LEFT, c] = 0
        sums[RIGHT, c] = 0
        sums[MISSING, c] = 0
        sums[HELD, c] = 0
    n = np.uint64(node.hi - node.lo)
    n_fours = n & ~THREE
    is_unit = len(addends) == 1
    # four sums in turns: where many rows are of one class, each addition waits for the one before
    for k in range(NONE, n_fours, FOUR):
        i = first + k
        v = np.int64(1) if is_unit else addends[WEIGHT, i]
        w = np.int64(1) if is_unit else addends[WEIGHT, i + ONE]
        x = np.int64(1) if is_unit else addends[WEIGHT, i + TWO]
        y = np.int64(1) if is_unit else addends[WEIGHT, i + THREE]
        sums[LEFT, np.uint64(addends[TARGET, i])] += v if column[k] <= limit else none
        sums[RIGHT, np.uint64(addends[TARGET, i + ONE])] += w if column[k + ONE] <= limit else none
        sums[MISSING, np.uint64(addends[TARGET, i + TWO])] += x if column[k + TWO] <= limit else none
        sums[HELD, np.uint64(addends[TARGET, i + THREE])] += y if column[k + THREE] <= limit else none
    for k in range(n_fours, n):
        w = np.int64(1) if is_unit else addends[WEIGHT, first + k]
        sums[LEFT, np.uint64(addends[TARGET, first + k])] += w if column[k] <= limit else none
    for k in range(node.n_present):
        c = sums[PRESENT, k]
        sums[LEFT, c] += sums[RIGHT, c] + sums[MISSING, c] + sums[HELD, c]
    return judge_left_classes(best, node, sums, weight)


@inlined
def is_quick(settings: Settings, xlogx: np.ndarray, classes: ClassScratch | None) -> bool:
    """Whether a test of which nothing is missing is judged by what its left branch sums up to, and nothing else."""
    if classes is None:
        return settings.is_plain
    is_free = max(settings.min_samples_leaf, settings.min_weight_leaf) <= 1 and not settings.has_random_ties
    return is_free and power_kind(settings, xlogx) == SQUARES


@inlined
def judge_classes(
    best: Candidate,
    drawn: DrawnTest,
    node: OpenNode,
    rows: Rows,
    settings: Settings,
    xlogx: np.ndarray,
    scratch: Scratch,
) -> Candidate:
    """The same for three classes or more."""
    addends, column = rows.addends, scratch.random.column
    sums, totals = scratch.classes.sums, scratch.totals
    lo, hi, n_present, n_missing = node.lo, node.hi, node.n_present, drawn.n_missing
    if n_missing == 0 and is_quick(settings, xlogx, scratch.classes):
        totals[N_MISSING] = 0
        return judge_squares(best, drawn.cut, node, addends, column, sums, totals[W_ALL])
    for k in range(n_present):
        c = sums[PRESENT, k]
        sums[LEFT, c] = 0
        sums[MISSING, c] = 0
    n_left = np.int64(0)
    w_left = np.int64(0)
    totals[N_MISSING] = n_missing
    totals[W_MISSING] = 0
    is_unit = len(addends) == 1
    for k in range(hi - lo):
        c = addends[TARGET, lo + k]
        w = np.int64(1) if is_unit else addends[WEIGHT, lo + k]
        is_left = np.int64((column[k] <= drawn.cut) & (column[k] > 0))
        sums[LEFT, c] += w * is_left
        n_left += is_left
        w_left += w * is_left
    if n_missing > 0:
        for k in range(hi - lo):
            if column[k] == 0:
                w = np.int64(1) if is_unit else addends[WEIGHT, lo + k]
                sums[MISSING, addends[TARGET, lo + k]] += w
                totals[W_MISSING] += w
    return judge_class_sums(best, drawn, CodeSums(n_left, w_left), node, settings, xlogx, scratch)


@inlined
def judge_class_sums(
    best: Candidate,
    drawn: DrawnTest,
    known: CodeSums,
    node: OpenNode,
    settings: Settings,
    xlogx: np.ndarray,
    scratch: Scratch,
) -> Candidate:
    """The same by the sums of known rows on the left, in sums[LEFT], and of missing ones."""
    sums, totals = scratch.classes.sums, scratch.totals
    lo, hi, n_present, n_missing = node.lo, node.hi, node.n_present, drawn.n_missing
    n_left, w_left = known.n_rows, known.weight
    kind = power_kind(settings, xlogx)
    found = none_better(best)
    for b in range(drawn.n_bins if n_missing > 0 else drawn.n_bins - 1):
        is_last = b == drawn.n_bins - 1  # known against missing
        if is_last:
            n_left = hi - lo - n_missing
            w_left = totals[W_ALL] - totals[W_MISSING]
        power_left = np.int64(0)
        power_right = np.int64(0)
        for k in range(n_present):
            c = sums[PRESENT, k]
            if is_last:
                sums[LEFT, c] = sums[ALL, c] - sums[MISSING, c]
            sums[RIGHT, c] = sums[ALL, c] - sums[LEFT, c]
            power_left += power_step(kind, 0, sums[LEFT, c], xlogx)
            power_right += power_step(kind, 0, sums[RIGHT, c], xlogx)
        cut = CutAtHand(np.int64(b), np.int64(-1), is_last, n_left, w_left, power_left, power_right, 0.0)
        found = try_cut(found, cut, node, settings, xlogx, sums, totals, no_chance())
    return found


@inlined
def judge_test(
    best: Candidate,
    drawn: DrawnTest,
    node: OpenNode,
    rows: Rows,
    settings: Settings,
    xlogx: np.ndarray,
    scratch: Scratch,
    classes: ClassScratch | None,
) -> Candidate:
    """Judge a test that was drawn; the cut is the last bin of the left branch."""
    if classes is None:
        return judge_values(best, drawn, node, rows, settings, xlogx, scratch, scratch.medians)
    return judge_classes(best, drawn, node, rows, settings, xlogx, scratch)


@inlined
def draw_few(
    n: int, n_words: int, draw_key: np.uint64, has_two: bool, column: np.ndarray, subset: np.ndarray
) -> np.uint64:
    """Draw the words that the levels of n rows, fewer than words, need; return the number of the first word's draw."""
    first = NONE
    while True:
        has_left = False
        has_right = False
        for k in range(n):
            level = np.int64(column[k]) - 1
            if level >= 0:
                w = np.uint64(level) >> np.uint64(6)
                subset[w] = fold(draw_key, first + w)
                is_left = has_level(subset, 0, level)
                has_left |= is_left
                has_right |= not is_left
        if has_left and (has_right or not has_two):
            return first
        first += np.uint64(n_words)


@inlined
def draw_many(
    n: int, n_words: int, draw_key: np.uint64, has_two: bool, column: np.ndarray, subset: np.ndarray
) -> np.uint64:
    """The same of more rows: the levels they have are collected first, in the second half of `subset`."""
    half = len(subset) >> 1
    for w in range(n_words):
        subset[half + w] = NONE
    if n_words == 1:
        seen = NONE
        for k in range(np.uint64(n)):
            level = np.uint64(column[k] - 1)
            seen |= (ONE << (level & LAST_BIT)) if column[k] > 0 else NONE
        subset[half] = seen
    else:
        for k in range(n):
            level = np.int64(column[k]) - 1
            if level >= 0:
                subset[half + (level >> 6)] |= ONE << np.uint64(level & 63)
    first = NONE
    while True:
        has_left = False
        has_right = False
        for w in range(n_words):
            subset[w] = fold(draw_key, first + np.uint64(w))
            has_left |= subset[w] & subset[half + w] != NONE
            has_right |= ~subset[w] & subset[half + w] != NONE
        if has_left and (has_right or not has_two):
            return first
        first += np.uint64(n_words)


@kernel
def draw_subset(
    n: int, n_levels: int, draw_key: np.uint64, has_two: bool, column: np.ndarray, subset: np.ndarray
) -> None:
    """Part the levels at random and mark the rows: 1 for the left part, 2 for the right.

    has_two: the known rows, of which there is one at least, have two levels or more. The bits of the left part go to
    the first half of `subset`, of few rows those of the words that they need alone: `complete_subset` does the rest.
    """
    n_words = (n_levels + 63) >> 6
    if n < n_words:
        first = draw_few(n, n_words, draw_key, has_two, column, subset)
    else:
        first = draw_many(n, n_words, draw_key, has_two, column, subset)
    if n_words == 1:
        word = subset[0]
        for k in range(np.uint64(n)):
            level = np.uint64(column[k] - 1)
            mark = np.int32(2) - np.int32((word >> (level & LAST_BIT)) & ONE)
            column[k] = np.int32(mark if column[k] > 0 else 0)
    else:
        for k in range(n):
            level = np.int64(column[k]) - 1
            if level >= 0:
                column[k] = np.int32(1 if has_level(subset, 0, level) else 2)
    subset[len(subset) >> 1] = first


@inlined
def draw_levels(
    n: int, n_levels: int, draw_key: np.uint64, has_two: bool, column: np.ndarray, levels: LevelScratch | None
) -> None:
    """Part the levels of a category as `draw_subset` does."""
    if levels is None:
        return
    draw_subset(n, n_levels, draw_key, has_two, column, levels.bitset)


@inlined
def complete_subset(n_levels: int, draw_key: np.uint64, levels: LevelScratch | None) -> None:
    """Draw the words of a subset that was chosen, and no bits beyond the last level."""
    if levels is None:
        return
    subset = levels.bitset
    n_words = (n_levels + 63) >> 6
    first = subset[len(subset) >> 1]
    for w in range(n_words):
        subset[w] = fold(draw_key, first + np.uint64(w))
    if n_levels & 63 != 0:
        subset[n_words - 1] &= (ONE << np.uint64(n_levels & 63)) - ONE


@inlined
def send_all_left(n_levels: int, levels: LevelScratch | None) -> None:
    """Put every level into the bitset."""
    if levels is None:
        return
    for w in range((n_levels + 63) >> 6):
        levels.bitset[w] = ~NONE
    if n_levels & 63 != 0:
        levels.bitset[n_levels >> 6] = (ONE << np.uint64(n_levels & 63)) - ONE


@inlined
def draw_test(
    feature: int, node: OpenNode, rows: Rows, table: Table, scratch: Scratch, bits: RowBits | None
) -> DrawnTest:
    """Draw a test of a feature; the codes of the node's rows, or the marks of their levels, go to `column`."""
    features, edges = table.features, table.edges
    column = scratch.random.column
    lo, hi, key = node.lo, node.hi, node.test_key
    n_codes = features[N_CODES, feature]
    sign = features[MONOTONE, feature]
    is_subset = features[IS_CATEGORICAL, feature] != 0
    cut = np.int64(0)
    threshold = np.inf
    if bits is None:  # else small nodes seldom come here
        if hi - lo <= PAIR_ROWS and not is_subset and n_codes > 0:
            n_steps = count_steps(hi - lo, scratch.classes)
            low, high, is_missing = load_few(feature, lo, hi, n_steps, rows, table, scratch.random)
            if not is_missing:
                if low == high:
                    return DrawnTest(np.int64(0), cut, threshold, np.int64(0), np.int64(0), sign)
                is_drawn, threshold = draw_value(low, high, key, features[NUMBER, feature])
                if is_drawn:
                    cut = last_left(n_steps, threshold, column, scratch.random.values)
                    return DrawnTest(np.int64(2), cut, threshold, np.int64(0), np.int64(0), sign)
    lowest, highest, n_missing = load_many(feature, lo, hi, rows, column)
    if highest == 0 or (lowest == highest and n_missing == 0):
        return DrawnTest(np.int64(0), cut, threshold, highest, n_missing, sign)
    n_bins = np.int64(2 if lowest < highest else 1)
    cut = highest
    threshold = np.inf
    if is_subset:
        draw_key = fold(key, np.uint64(features[NUMBER, feature]))
        draw_levels(hi - lo, n_codes, draw_key, n_bins == 2, column, scratch.levels)
        cut = np.int64(1)
    elif n_bins == 2:
        cut, threshold = draw_threshold(features, edges, feature, lowest, highest, key)
    return DrawnTest(n_bins, cut, threshold, highest, n_missing, sign)
