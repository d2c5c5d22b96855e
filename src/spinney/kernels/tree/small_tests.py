"""Random tests in nodes of up to PAIR_ROWS rows, which are nine of ten: few jumps that cannot be predicted.

What a row is tested by goes to `values`: the value behind its code, or 0 and 1 for the two parts of a category's
levels, so that one judge serves both. The code to cut at is looked for only if the test is chosen. Of numbers and two
classes rows are taken PAIR_LANES at a time, the last row repeated behind the end with an addend of nothing: a loop over
a node of up to eight rows then always takes eight steps. Of more classes, whose sums go one by one, that lost.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined
from spinney._types import (
    ALL,
    LEFT,
    LOW,
    N_MISSING,
    OFFSET,
    PAIR_LANES,
    PAIR_ROWS,
    PRESENT,
    S_ALL,
    TARGET,
    W_ALL,
    WEIGHT,
)

from ..common.rng import fold, fraction
from ..common.structs import Candidate, ClassScratch, LevelScratch, OpenNode, RandomScratch, RowBits, Rows, Table
from ..common.ties import bar_above
from .candidates import cut_between, none_better
from .cells import column_of
from .flags import is_flag, load_flag

NONE, ONE = np.uint64(0), np.uint64(1)
LANE_BITS = np.uint64(PAIR_LANES - 1)


@inlined
def count_lanes(n: int) -> np.uint64:
    """The rows of a node and those behind it that are looked at: a multiple of PAIR_LANES."""
    return (np.uint64(n) + LANE_BITS) & ~LANE_BITS


@inlined
def count_steps(n: int, classes: ClassScratch | None) -> np.uint64:
    """How many rows of a small node are looked at: lanes, or of three classes or more its rows alone."""
    if classes is None:
        return count_lanes(n)
    return np.uint64(n)


@inlined
def pad_addends(
    addends: np.ndarray,
    lo: int,
    hi: int,
    random: RandomScratch | None,
    classes: ClassScratch | None,
    bits: RowBits | None,
) -> None:
    """Copy what the rows of a small node add, of numbers and two classes; rows behind the last add nothing."""
    if random is None or classes is not None or bits is not None:
        return
    if hi - lo > PAIR_ROWS:
        return
    padded = random.padded
    first = np.uint64(lo)
    last = np.uint64(hi - 1)
    n = np.uint64(hi - lo)
    is_unit = len(addends) == 1
    for k in range(count_lanes(hi - lo)):
        i = min(first + k, last)
        is_row = -np.int64(k < n)  # all bits, or none
        w = np.int64(1) if is_unit else addends[WEIGHT, i]
        padded[TARGET, k] = addends[TARGET, i] & is_row
        padded[WEIGHT, k] = w & is_row


@inlined
def load_values(
    codes: np.ndarray,
    edges: np.ndarray,
    lo: int,
    hi: int,
    n_steps: np.uint64,
    feature: int,
    at: int,
    random: RandomScratch,
) -> tuple[float, float, bool]:
    """Copy codes to `column`, values behind them to `values`; return the lowest, the highest, whether one is missing.

    For few rows: their values, all asked for at once, come from memory sooner than a search among all values would end.
    """
    column, values = random.column, random.values
    low = np.inf
    high = -np.inf
    least = np.int64(1)
    first = np.uint64(lo)
    end = np.uint64(hi - 1)
    j = np.uint64(feature)
    before = np.uint64(at)
    last = np.uint64(edges.shape[1] - 1)  # a feature without a known value has no codes
    for k in range(n_steps):
        code = np.uint64(codes[min(first + k, end), j])
        least = min(least, np.int64(code))
        value = edges[LOW, min(before + max(code, ONE) - ONE, last)]
        column[k] = np.int32(code)
        values[k] = value
        low = value if value < low else low
        high = value if value > high else high
    return low, high, least == 0


@inlined
def load_few(
    feature: int, lo: int, hi: int, n_steps: np.uint64, rows: Rows, table: Table, random: RandomScratch
) -> tuple[float, float, bool]:
    """The same of any feature; a flag has both of its values in the node."""
    at = table.features[OFFSET, feature]
    if not is_flag(feature, rows):
        codes, column = column_of(feature, lo, hi, rows, rows.cells)
        return load_values(codes, table.edges, lo, hi, n_steps, column, at, random)
    low, high = table.edges[LOW, at], table.edges[LOW, at + 1]
    load_flag(feature, lo, n_steps, hi, rows, random.column)
    for k in range(n_steps):
        random.values[k] = high if random.column[k] > 1 else low
    return low, high, False


@inlined
def draw_value(low: float, high: float, key: np.uint64, number: int) -> tuple[bool, float]:
    """A threshold uniform over low .. high; False where infinite values or a rounding at the upper end spoil it."""
    threshold = low + (high - low) * fraction(fold(key, np.uint64(number)))
    return threshold >= low and threshold < high, threshold


@inlined
def last_left(n_steps: np.uint64, threshold: float, column: np.ndarray, values: np.ndarray) -> int:
    """The highest code of the node whose value does not exceed the threshold."""
    cut = np.int32(0)
    for k in range(n_steps):
        code = column[k] if values[k] <= threshold else np.int32(0)
        cut = code if code > cut else cut
    return np.int64(cut)


@inlined
def collect_levels(
    codes: np.ndarray, lo: int, hi: int, n_steps: np.uint64, feature: int, column: np.ndarray
) -> np.uint64:
    """Copy codes of up to MOST_LEVELS to `column`; return a bit for each that rows lo .. hi have."""
    seen = NONE
    first = np.uint64(lo)
    end = np.uint64(hi - 1)
    j = np.uint64(feature)
    for k in range(n_steps):
        code = np.uint64(codes[min(first + k, end), j])
        column[k] = np.int32(code)
        seen |= ONE << code
    return seen


@inlined
def part_levels(
    n_steps: np.uint64,
    seen: np.uint64,
    draw_key: np.uint64,
    column: np.ndarray,
    values: np.ndarray,
    levels: LevelScratch | None,
) -> None:
    """Part the levels of one word, of which the node has two or more, as `random_tests.draw_subset` does."""
    if levels is None:
        return
    known = seen >> ONE
    first = NONE
    word = fold(draw_key, first)
    while word & known == NONE or ~word & known == NONE:
        first += ONE
        word = fold(draw_key, first)
    for k in range(n_steps):
        values[k] = np.float64(ONE - ((word >> (np.uint64(column[k]) - ONE)) & ONE))
    levels.bitset[len(levels.bitset) >> 1] = first


@inlined
def sum_left_classes(
    threshold: float, node: OpenNode, addends: np.ndarray, sums: np.ndarray, values: np.ndarray
) -> None:
    """Sum the weights of each class to the left of a threshold, in sums[LEFT]."""
    first = np.uint64(node.lo)
    is_unit = len(addends) == 1
    for k in range(node.n_present):
        sums[LEFT, sums[PRESENT, k]] = 0
    for k in range(np.uint64(node.hi - node.lo)):
        w = np.int64(1) if is_unit else addends[WEIGHT, first + k]
        sums[LEFT, np.uint64(addends[TARGET, first + k])] += w & -np.int64(values[k] <= threshold)


@inlined
def score_squares(w_left: int, power_left: int, power_right: int, weight: int) -> float:
    """Score of a test by Gini of whole weights, from the sums of squared class weights of its branches."""
    wa = np.float64(w_left)
    wb = np.float64(weight - w_left)
    return (np.float64(power_left) * wb + np.float64(power_right) * wa) / (wa * wb)


@inlined
def score_left_sums(left: int, w_left: int, centre: int, weight: int, total: int) -> float:
    """Score of a test by squared error, from the sums of its left branch and of the node."""
    wa = np.float64(w_left)
    wb = np.float64(weight - w_left)
    a = np.float64(left - centre * w_left)
    b = np.float64(total - left - centre * (weight - w_left))
    return (a * a * wb + b * b * wa) / (wa * wb)


@inlined
def judge_left_classes(best: Candidate, node: OpenNode, sums: np.ndarray, weight: int) -> Candidate:
    """Judge a test by Gini of whole weights, those of its left branch in sums[LEFT]: the cut is 0 if it is chosen."""
    none = np.int64(0)
    w_left = none
    power_left = none
    power_right = none
    for k in range(node.n_present):
        c = np.uint64(sums[PRESENT, k])
        left = sums[LEFT, c]
        right = sums[ALL, c] - left
        w_left += left
        power_left += left * left
        power_right += right * right
    score = score_squares(w_left, power_left, power_right, weight)
    if score > bar_above(best.score):
        return cut_between(score, none, np.int64(-1), best.n_ties)
    return none_better(best)


@inlined
def judge_left_sums(best: Candidate, left: int, w_left: int, node: OpenNode, totals: np.ndarray) -> Candidate:
    """Judge a test by squared error, by the sums of its left branch: the cut is 0 if it is chosen."""
    score = score_left_sums(left, w_left, node.centre, totals[W_ALL], totals[S_ALL])
    if score > bar_above(best.score):
        return cut_between(score, np.int64(0), np.int64(-1), best.n_ties)
    return none_better(best)


@inlined
def judge_small(
    best: Candidate,
    threshold: float,
    node: OpenNode,
    addends: np.ndarray,
    totals: np.ndarray,
    random: RandomScratch,
    classes: ClassScratch | None,
) -> Candidate:
    """Judge the test that sends `values` up to a threshold left, where nothing is missing or constrains it."""
    totals[N_MISSING] = 0
    if classes is not None:
        sum_left_classes(threshold, node, addends, classes.sums, random.values)
        return judge_left_classes(best, node, classes.sums, totals[W_ALL])
    padded, values = random.padded, random.values
    left = np.int64(0)
    w_left = np.int64(0)
    for k in range(count_lanes(node.hi - node.lo)):
        is_left = -np.int64(values[k] <= threshold)
        left += padded[TARGET, k] & is_left
        w_left += padded[WEIGHT, k] & is_left
    return judge_left_sums(best, left, w_left, node, totals)
