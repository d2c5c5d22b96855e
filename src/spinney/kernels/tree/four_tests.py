"""Random tests of a large node, judged four at a time: three classes or more, rows that all weigh 1.

A sum of classes adds to memory once for every row. Here a row adds a word of four 16-bit counts, one for each of four
tests, 1 in those that send it left. The tests are drawn and judged before the search asks for them, in the order in
which it will; of a feature that lacks a value nothing is known then, and the search goes its own way.

    draw_fours      draw the tests that a node will try, and judge them
    take_four       what is known of a feature's test
    forget_fours    once the node is searched
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import ALL, IS_CATEGORICAL, MAX_CODES, N_MISSING, PAIR_ROWS, PRESENT, TARGET, W_ALL

from ..common.structs import (
    Candidate,
    FourTests,
    LevelScratch,
    OpenNode,
    Rows,
    Scratch,
    Settings,
    Table,
)
from ..common.ties import bar_above
from .candidates import none_better
from .drawn_tests import settle_drawn
from .feature_order import constant_bit, draw_feature, restore_order
from .flags import is_even, is_flag
from .random_tests import draw_test
from .small_tests import score_squares

NONE, ONE, FOUR = np.uint64(0), np.uint64(1), np.uint64(4)
COUNT_BITS, COUNT = np.uint64(16), np.uint64(0xFFFF)
UNKNOWN, EVEN = -1, -2  # in the place of a test's number: nothing is known; the feature does not vary


@inlined
def mark_left(at: np.uint64, n: np.uint64, cut: int, column: np.ndarray, words: np.ndarray) -> None:
    """Write 1 to count number `at` of four for each of n rows whose code is not above the cut, the first to all."""
    limit = np.int32(cut)
    if at == NONE:
        for k in range(n):
            words[k] = np.uint64(column[k] <= limit)
        return
    shift = at * COUNT_BITS
    for k in range(n):
        words[k] |= np.uint64(column[k] <= limit) << shift


@kernel
def judge_four(
    first: int, n_tests: int, node: OpenNode, addends: np.ndarray, sums: np.ndarray, weight: int, fours: FourTests
) -> None:
    """Score tests first .. first + n_tests by Gini, from the words of their rows."""
    words, counts = fours.words, fours.counts
    begin = np.uint64(node.lo)
    for k in range(node.n_present):
        counts[sums[PRESENT, k]] = NONE
    for k in range(np.uint64(node.hi - node.lo)):
        counts[np.uint64(addends[TARGET, begin + k])] += words[k]
    for at in range(n_tests):
        shift = np.uint64(at) * COUNT_BITS
        w_left = np.int64(0)
        power_left = np.int64(0)
        power_right = np.int64(0)
        for k in range(node.n_present):
            c = np.uint64(sums[PRESENT, k])
            left = np.int64((counts[c] >> shift) & COUNT)
            right = sums[ALL, c] - left
            w_left += left
            power_left += left * left
            power_right += right * right
        fours.scores[first + at] = score_squares(w_left, power_left, power_right, weight)


@inlined
def draw_number(levels: LevelScratch | None) -> np.uint64:
    """Number of the draw that has parted the levels of a category, see `draw_subset`."""
    if levels is None:
        return NONE
    return levels.bitset[len(levels.bitset) >> 1]


@inlined
def set_draw_number(draw: np.uint64, levels: LevelScratch | None) -> None:
    """Put it back, for `complete_subset`."""
    if levels is None:
        return
    levels.bitset[len(levels.bitset) >> 1] = draw


@inlined
def draw_fours(
    constant: np.uint64,
    draw_key: np.uint64,
    node: OpenNode,
    rows: Rows,
    table: Table,
    settings: Settings,
    scratch: Scratch,
    fours: FourTests | None,
) -> None:
    """Draw and judge the tests that a node of up to MAX_CODES rows will try, as far as none of their values lacks."""
    if fours is None:
        return
    n = node.hi - node.lo
    if n <= PAIR_ROWS or n > MAX_CODES:
        return
    permutation, places, sums, totals = scratch.permutation, scratch.places, scratch.classes.sums, scratch.totals
    n_features = np.int64(table.features.shape[1])
    n_tried = np.int64(0)
    n_drawn = np.int64(0)
    n_tests = np.int64(0)
    n_judged = np.int64(0)
    for k in range(n_features):
        if n_tried >= settings.n_try:
            break
        feature = np.int64(permutation[k])
        if settings.is_shuffled:
            feature = draw_feature(permutation, places, k, draw_key)
            n_drawn += 1
        if constant & constant_bit(feature) != NONE or is_even(feature, rows):
            continue
        if is_flag(feature, rows):
            n_tried += 1
            continue
        drawn = draw_test(feature, node, rows, table, scratch, scratch.bits)
        if drawn.n_bins == 0:
            fours.number[feature] = EVEN
            continue
        n_tried += 1
        if drawn.n_missing > 0:
            continue
        mark_left(np.uint64(n_tests - n_judged), np.uint64(n), drawn.cut, scratch.random.column, fours.words)
        fours.number[feature] = n_tests
        fours.cuts[n_tests] = drawn.cut
        fours.thresholds[n_tests] = drawn.threshold
        fours.draws[n_tests] = draw_number(scratch.levels)
        n_tests += 1
        if n_tests - n_judged == 4:
            judge_four(n_judged, np.int64(4), node, rows.addends, sums, totals[W_ALL], fours)
            n_judged = n_tests
    if n_tests > n_judged:
        judge_four(n_judged, n_tests - n_judged, node, rows.addends, sums, totals[W_ALL], fours)
    restore_order(permutation, places, n_drawn)


@inlined
def forget_fours(n_rows: int, fours: FourTests | None) -> None:
    """Forget the tests of a node of so many rows."""
    if fours is None:
        return
    if n_rows <= PAIR_ROWS or n_rows > MAX_CODES:
        return
    for feature in range(len(fours.number)):
        fours.number[feature] = UNKNOWN


@inlined
def take_four(
    best: Candidate, feature: int, node: OpenNode, table: Table, scratch: Scratch, fours: FourTests | None
) -> tuple[bool, Candidate]:
    """The better of `best` and a test that was judged before; False where it was not."""
    if fours is None:
        return False, best
    at = fours.number[feature]
    if at == UNKNOWN:
        return False, best
    if at == EVEN:
        return True, Candidate(best.score, np.int64(-1), np.int64(-1), np.int64(-1), best.n_ties, np.inf)
    scratch.totals[N_MISSING] = 0
    score = fours.scores[at]
    if not score > bar_above(best.score):
        return True, none_better(best)
    if table.features[IS_CATEGORICAL, feature] != 0:
        set_draw_number(fours.draws[at], scratch.levels)
    return True, settle_drawn(score, feature, fours.cuts[at], fours.thresholds[at], best.n_ties, node, table, scratch)
