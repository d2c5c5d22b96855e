"""Move the rows of a node so that each branch is a range of its own.

Rows are swapped in place, codes and sums together: no second buffer, and every node below reads its rows in sequence.
The order inside a branch is arbitrary; nothing depends on it, because sums are integers.

    rows of the node     1 0 0 1 1 0 1        their branches
    moves[0]             0 3 4 6              rows that belong behind
    moves[1]             1 2 5                rows that belong in front
    after the swaps      0 0 0 1 1 1 1        the first of moves[0] has changed places with the last of moves[1]

One pass lists the rows of either side, adding the answer to a counter instead of jumping on it: which way a row goes
cannot be predicted.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined
from spinney._types import THRESHOLD

from ..common.branch import branch_of_code
from ..common.structs import CodeTest, Rows
from .cells import column_of, note_place
from .flags import is_flag, place_of_bit, word_of

NONE, ONE, TWO, THREE, FOUR = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
SIX, LAST_BIT = np.uint64(6), np.uint64(63)


@inlined
def swap_rows(rows: Rows, lo: int, n_front: np.uint64, n_behind: np.uint64, moves: np.ndarray) -> int:
    """Bring the rows listed in moves[1] before those in moves[0], both ascending; return where the latter begin."""
    words, addends, ids = rows.words, rows.addends, rows.ids
    middle = np.uint64(lo) + n_front
    n_words = np.uint64(words.shape[1])
    n_fours = n_words & ~THREE
    n_addends = len(addends)
    for k in range(n_behind):
        i = np.uint64(moves[0, k])
        if i >= middle:
            break
        j = np.uint64(moves[1, n_front - ONE - k])
        for at in range(np.uint64(0), n_fours, FOUR):  # all loaded, then all stored: four words are moved as one
            a, b, c, d = words[i, at], words[i, at + ONE], words[i, at + TWO], words[i, at + THREE]
            e, f, g, h = words[j, at], words[j, at + ONE], words[j, at + TWO], words[j, at + THREE]
            words[i, at], words[i, at + ONE], words[i, at + TWO], words[i, at + THREE] = e, f, g, h
            words[j, at], words[j, at + ONE], words[j, at + TWO], words[j, at + THREE] = a, b, c, d
        for at in range(n_fours, n_words):
            word = words[i, at]
            words[i, at] = words[j, at]
            words[j, at] = word
        for at in range(n_addends):
            addend = addends[at, i]
            addends[at, i] = addends[at, j]
            addends[at, j] = addend
        row = ids[i]
        ids[i] = ids[j]
        ids[j] = row
        note_place(i, ids, rows.cells)
        note_place(j, ids, rows.cells)
    return np.int64(middle)


@inlined
def partition(
    rows: Rows,
    lo: int,
    hi: int,
    test: CodeTest,
    last: int,
    subsets: np.ndarray,
    moves: np.ndarray,  # (2, at least hi - lo) int32 scratch
) -> int:
    """Move the rows of lo .. hi whose branch is `last` or higher behind the others; return where they begin."""
    kind, cut, missing = test.kind, test.cut, test.missing
    n_behind = np.uint64(0)
    n_front = np.uint64(0)
    codes, at_code = column_of(test.feature, lo, hi, rows, rows.cells)
    column = np.uint64(at_code)
    if is_flag(test.feature, rows):
        at, bit = word_of(test.feature, rows), place_of_bit(test.feature, rows)
        for i in range(np.uint64(lo), np.uint64(hi)):
            is_behind = (rows.words[i, at] >> bit) & ONE
            moves[0, n_behind] = i
            moves[1, n_front] = i
            n_behind += is_behind
            n_front += ONE - is_behind
    elif kind == THRESHOLD and last == 1:
        absent = np.uint64(missing >= 1)
        for i in range(np.uint64(lo), np.uint64(hi)):
            code = np.int64(codes[i, column])
            is_behind = np.uint64(code > cut) | (np.uint64(code == 0) & absent)
            moves[0, n_behind] = i
            moves[1, n_front] = i
            n_behind += is_behind
            n_front += ONE - is_behind
    elif last == 1:
        absent = np.uint64(missing >= 1)
        first_word = np.uint64(cut)
        for i in range(np.uint64(lo), np.uint64(hi)):
            code = np.uint64(codes[i, column])
            is_known = np.uint64(code != NONE)
            level = code - is_known
            is_out = ONE - ((subsets[first_word + (level >> SIX)] >> (level & LAST_BIT)) & ONE)
            is_behind = (is_known & is_out) | ((ONE - is_known) & absent)
            moves[0, n_behind] = i
            moves[1, n_front] = i
            n_behind += is_behind
            n_front += ONE - is_behind
    else:
        for i in range(np.uint64(lo), np.uint64(hi)):
            is_behind = np.uint64(branch_of_code(np.int64(codes[i, column]), kind, cut, missing, subsets) >= last)
            moves[0, n_behind] = i
            moves[1, n_front] = i
            n_behind += is_behind
            n_front += ONE - is_behind
    return swap_rows(rows, lo, n_front, n_behind, moves)
