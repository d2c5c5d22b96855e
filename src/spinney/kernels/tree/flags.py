"""Features of two values that are bits of a row, see `table.flags`: which of them vary in a node, and their one cut.

Features are numbered as they stand in a row: those with codes first, each a column of `Rows.codes`, then the bits.
Code 1 is a bit that is not set, code 2 one that is; nothing is missing. One pass over the words tells which flags vary,
so that the others, in small nodes of one-hot tables most, are not looked at.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined
from spinney._types import (
    BIN_CODE,
    BIN_N,
    BIN_SQUARE,
    BIN_SUM,
    BIN_WEIGHT,
    CODES_OF_WORD,
    HELD,
    LEFT,
    N_ALL,
    N_MISSING,
    PAIR_ROWS,
    PRESENT,
    Q_ALL,
    Q_MISSING,
    S_ALL,
    S_MISSING,
    TARGET,
    W_ALL,
    W_MISSING,
    WEIGHT,
)

from ..common.structs import Candidate, ClassScratch, OpenNode, Rows, Scratch
from ..common.ties import bar_above
from .candidates import cut_between, none_better
from .cells import code_of_cell, is_sparse, is_unmarked

NONE, ONE, SIX, LAST_BIT = np.uint64(0), np.uint64(1), np.uint64(6), np.uint64(63)
S16, S32 = np.uint64(16), np.uint64(32)
LOW_HALF = np.uint64(0xFFFF)


@inlined
def is_flag(feature: int, rows: Rows) -> bool:
    """Whether a feature is a bit of the row."""
    return feature >= len(rows.ahead_of) and not is_sparse(feature, rows.cells)


@inlined
def word_of(feature: int, rows: Rows) -> np.uint64:
    """The word of a row that has the bit of a flag."""
    n_coded = len(rows.ahead_of)
    return np.uint64((n_coded + CODES_OF_WORD - 1) // CODES_OF_WORD) + (np.uint64(feature - n_coded) >> SIX)


@inlined
def place_of_bit(feature: int, rows: Rows) -> np.uint64:
    """The place of that bit in its word."""
    return np.uint64(feature - len(rows.ahead_of)) & LAST_BIT


@inlined
def find_varying(lo: int, hi: int, rows: Rows) -> None:
    """Tell which flags vary in rows lo .. hi."""
    words, varying = rows.words, rows.varying
    first = word_of(len(rows.ahead_of), rows)
    for w in range(np.uint64(len(varying))):
        at = first + w
        one = words[np.uint64(lo), at]
        differs = NONE
        for i in range(np.uint64(lo + 1), np.uint64(hi)):
            differs |= words[i, at] ^ one
        varying[w] = differs


@inlined
def is_even(feature: int, rows: Rows) -> bool:
    """Whether a feature is known not to vary in the node at hand: a flag, or a feature that has no cell there."""
    if is_sparse(feature, rows.cells):
        return is_unmarked(feature, rows.cells)
    if not is_flag(feature, rows):
        return False
    word = rows.varying[np.uint64(feature - len(rows.ahead_of)) >> SIX]
    return (word >> place_of_bit(feature, rows)) & ONE == NONE


@inlined
def code_at(i: int, feature: int, rows: Rows) -> int:
    """The code of one row."""
    if is_sparse(feature, rows.cells):
        return code_of_cell(i, feature, rows.ids, rows.cells)
    if is_flag(feature, rows):
        word = rows.words[np.uint64(i), word_of(feature, rows)]
        return np.int64(ONE + ((word >> place_of_bit(feature, rows)) & ONE))
    return np.int64(rows.codes[i, feature])


@inlined
def load_flag(feature: int, lo: int, n_steps: np.uint64, hi: int, rows: Rows, column: np.ndarray) -> None:
    """Copy the codes of rows from lo on to `column`, n_steps of them; the last row is hi - 1, and is repeated."""
    words = rows.words
    at, bit = word_of(feature, rows), place_of_bit(feature, rows)
    first = np.uint64(lo)
    end = np.uint64(hi - 1)
    for k in range(n_steps):
        column[k] = np.int32(ONE + ((words[min(first + k, end), at] >> bit) & ONE))


# --- The one cut of a flag that varies ------------------------------------------------------------------------------


@inlined
def scan_flag_of_two(best: Candidate, feature: int, node: OpenNode, rows: Rows, scratch: Scratch) -> Candidate:
    """The cut for two classes with packed addends, see `scan_two_classes`."""
    words, wide, totals = rows.words, scratch.packed.wide, scratch.totals
    at, bit = word_of(feature, rows), place_of_bit(feature, rows)
    first = np.uint64(node.lo)
    right = NONE  # weight << 32 | weight of class 1
    for k in range(np.uint64(node.hi - node.lo)):
        right += np.uint64(wide[k]) * ((words[first + k, at] >> bit) & ONE)
    w_right = np.int64(right >> S32)
    ones_right = np.int64(right & np.uint64(0xFFFFFFFF))
    totals[N_MISSING] = 0
    wa = np.float64(totals[W_ALL] - w_right)
    wb = np.float64(w_right)
    a = np.float64(totals[S_ALL] - ones_right)
    b = np.float64(ones_right)
    return choose_cut(best, a * a * wb + b * b * wa, wa * wb, node)


@inlined
def choose_cut(best: Candidate, rise: float, run: float, node: OpenNode) -> Candidate:
    """The cut between the two codes if its score, rise / run, is better; compared as searches of other features do."""
    bar = bar_above(best.score)
    if node.hi - node.lo <= PAIR_ROWS and node.n_present == 0:
        is_better = rise / run > bar
    else:
        is_better = rise > bar * run
    if is_better:
        return cut_between(rise / run, np.int64(1), np.int64(2), best.n_ties)
    return none_better(best)


@inlined
def scan_flag_of_many(best: Candidate, feature: int, node: OpenNode, rows: Rows, scratch: Scratch) -> Candidate:
    """The same for three classes or more, see `scan_many_classes`."""
    words, addends, sums = rows.words, scratch.packed.addends, scratch.classes.sums
    weight = scratch.totals[W_ALL]
    at, bit = word_of(feature, rows), place_of_bit(feature, rows)
    first = np.uint64(node.lo)
    for k in range(node.n_present):
        sums[LEFT, k] = 0
    for k in range(np.uint64(node.hi - node.lo)):
        addend = np.uint64(addends[k])
        is_left = ONE - ((words[first + k, at] >> bit) & ONE)
        sums[LEFT, addend >> S16] += np.int64((addend & LOW_HALF) * is_left)
    w_left = np.int64(0)
    power_left = np.int64(0)
    power_right = np.int64(0)
    for k in range(np.uint64(node.n_present)):
        left = sums[LEFT, k]
        right = sums[HELD, k] - left
        w_left += left
        power_left += left * left
        power_right += right * right
    scratch.totals[N_MISSING] = 0
    wa = np.float64(w_left)
    wb = np.float64(weight - w_left)
    return choose_cut(best, np.float64(power_left) * wb + np.float64(power_right) * wa, wa * wb, node)


@inlined
def scan_packed_flag(
    best: Candidate, feature: int, node: OpenNode, rows: Rows, scratch: Scratch, classes: ClassScratch | None
) -> Candidate:
    """The same for any number of classes."""
    if classes is None:
        return scan_flag_of_two(best, feature, node, rows, scratch)
    return scan_flag_of_many(best, feature, node, rows, scratch)


@inlined
def list_flag_bins(feature: int, node: OpenNode, rows: Rows, bins: np.ndarray, totals: np.ndarray) -> int:
    """List both codes of a flag as bins, as `common.bins` does; return their number."""
    words, addends = rows.words, rows.addends
    at, bit = word_of(feature, rows), place_of_bit(feature, rows)
    last = len(addends) - 1
    n = np.int64(0)
    total = np.int64(0)
    weight = np.int64(0)
    square = np.int64(0)
    for i in range(np.uint64(node.lo), np.uint64(node.hi)):
        is_set = np.int64((words[i, at] >> bit) & ONE)
        n += is_set
        total += addends[TARGET, i] & -is_set
        if last > 0:
            weight += addends[WEIGHT, i] & -is_set
            square += addends[last, i] & -is_set
    bins[BIN_CODE, 0] = 1
    bins[BIN_N, 0] = totals[N_ALL] - n
    bins[BIN_SUM, 0] = totals[S_ALL] - total
    bins[BIN_WEIGHT, 0] = totals[W_ALL] - weight
    bins[BIN_SQUARE, 0] = totals[Q_ALL] - square
    bins[BIN_CODE, 1] = 2
    bins[BIN_N, 1] = n
    bins[BIN_SUM, 1] = total
    bins[BIN_WEIGHT, 1] = weight
    bins[BIN_SQUARE, 1] = square
    totals[N_MISSING] = 0
    totals[S_MISSING] = 0
    totals[W_MISSING] = 0
    totals[Q_MISSING] = 0
    return np.int64(2)


@inlined
def sum_unset(feature: int, node: OpenNode, rows: Rows) -> tuple[int, int]:
    """Sum of the targets, and of the weights, of the rows of a node that do not have a flag."""
    words, addends = rows.words, rows.addends
    at, bit = word_of(feature, rows), place_of_bit(feature, rows)
    is_unit = len(addends) == 1
    total = np.int64(0)
    weight = np.int64(0)
    for i in range(np.uint64(node.lo), np.uint64(node.hi)):
        is_left = np.int64((words[i, at] >> bit) & ONE) - 1  # all bits, or none
        total += addends[TARGET, i] & is_left
        weight += (np.int64(1) if is_unit else addends[WEIGHT, i]) & is_left
    return total, weight


@inlined
def sum_classes_unset(feature: int, node: OpenNode, rows: Rows, sums: np.ndarray) -> None:
    """Sum the weights of each class of those rows, in sums[LEFT]."""
    words, addends = rows.words, rows.addends
    at, bit = word_of(feature, rows), place_of_bit(feature, rows)
    is_unit = len(addends) == 1
    for k in range(node.n_present):
        sums[LEFT, sums[PRESENT, k]] = 0
    for i in range(np.uint64(node.lo), np.uint64(node.hi)):
        is_left = np.int64((words[i, at] >> bit) & ONE) - 1
        sums[LEFT, np.uint64(addends[TARGET, i])] += (np.int64(1) if is_unit else addends[WEIGHT, i]) & is_left


@inlined
def fill_flag_histogram(node: OpenNode, feature: int, n_classes: int, rows: Rows, histogram: np.ndarray) -> None:
    """Add the rows of a node to a histogram by code and class, as `scan_classes.fill_histogram` does."""
    words, addends = rows.words, rows.addends
    at, bit = word_of(feature, rows), place_of_bit(feature, rows)
    wide = np.uint64(n_classes + 1)
    is_unit = len(addends) == 1
    for i in range(np.uint64(node.lo), np.uint64(node.hi)):
        here = (ONE + ((words[i, at] >> bit) & ONE)) * wide
        histogram[here + np.uint64(addends[TARGET, i])] += np.int64(1) if is_unit else addends[WEIGHT, i]
        if not is_unit:
            histogram[here + np.uint64(n_classes)] += 1
