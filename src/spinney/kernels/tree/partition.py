"""Move the rows of a node so that each branch is a range of its own.

Rows are swapped in place, codes and sums together: no second buffer, and every node below reads its rows in sequence.
The order inside a branch is arbitrary; nothing depends on it, because sums are integers.

    rows of the node     1 0 0 1 1 0 1        their branches
    moves                1 2 5 6 4 3 0        rows that belong in front, and from the end rows that belong behind
    after the swaps      0 0 0 1 1 1 1        the first of the latter has changed places with the last of the former

The codes of the node, far apart in memory, are first copied side by side. Of few rows those of either branch are then
listed, adding the answer to a counter instead of jumping on it: which way a row goes cannot be predicted. Of many the
answers become bits, many at a time, and only the rows that are on the wrong side are listed, 0 and 5 above after 3.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined
from spinney._types import PAIR_ROWS, THRESHOLD

from ..common.bits import count_bits
from ..common.branch import branch_of_code
from ..common.structs import CodeTest, Rows
from .cells import column_of, note_place
from .flags import is_flag, place_of_bit, word_of

NONE, ONE, TWO, THREE, FOUR = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
SIX, LAST_BIT, BITS = np.uint64(6), np.uint64(63), np.uint64(64)
MOST_CODES = 63  # of a category whose branches are bits of one word


@inlined
def swap_rows(rows: Rows, middle: np.uint64, n_behind: np.uint64, n_front: np.uint64, moves: np.ndarray) -> None:
    """Swap the rows that `moves` begins with and those that it ends with, up to `middle`.

    The former, n_front of them, belong in front and ascend; the latter, n_behind, belong behind and descend.
    """
    words, addends, ids = rows.words, rows.addends, rows.ids
    n_words = np.uint64(words.shape[1])
    n_fours = n_words & ~THREE
    n_addends = len(addends)
    last = n_front + n_behind - ONE
    for k in range(n_behind):
        i = np.uint64(moves[last - k])
        if i >= middle:
            break
        j = np.uint64(moves[n_front - ONE - k])
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


@inlined
def rank_rows(
    rows: Rows,
    lo: int,
    hi: int,
    test: CodeTest,
    last: int,
    subsets: np.ndarray,
    ranks: np.ndarray,  # (at least at + hi - lo,) int32, written
    at: np.uint64,
) -> np.int32:
    """Rank the rows of lo .. hi, from place `at` on; return the highest rank of those whose branch is below `last`."""
    codes, at_code = column_of(test.feature, lo, hi, rows, rows.cells)
    kind, cut, missing = test.kind, test.cut, test.missing
    column = np.uint64(at_code)
    first = np.uint64(lo)
    n = np.uint64(hi - lo)
    if is_flag(test.feature, rows):
        word, bit = word_of(test.feature, rows), place_of_bit(test.feature, rows)
        for k in range(n):
            ranks[at + k] = np.int32((rows.words[first + k, word] >> bit) & ONE)
        return np.int32(0)
    if kind == THRESHOLD and last == 1:
        absent = np.int32(missing >= 1)  # then code 0 ranks highest
        for k in range(n):
            ranks[at + k] = np.int32((np.int32(codes[first + k, column]) - absent) & 0xFFFF)
        return np.int32(np.int32(cut) - absent)
    away = np.uint64(missing >= 1)
    first_word = np.uint64(cut)
    if last == 1 and test.n_codes <= MOST_CODES:
        behind = (~subsets[first_word] << ONE) | away  # a bit for each code
        for k in range(n):
            ranks[at + k] = np.int32((behind >> np.uint64(codes[first + k, column])) & ONE)
        return np.int32(0)
    if last == 1:
        for k in range(n):
            code = np.uint64(codes[first + k, column])
            is_known = np.uint64(code != NONE)
            level = code - is_known
            is_out = ONE - ((subsets[first_word + (level >> SIX)] >> (level & LAST_BIT)) & ONE)
            ranks[at + k] = np.int32((is_known & is_out) | ((ONE - is_known) & away))
        return np.int32(0)
    for k in range(n):
        code = np.int64(codes[first + k, column])
        ranks[at + k] = np.int32(branch_of_code(code, kind, cut, missing, subsets) >= last)
    return np.int32(0)


@inlined
def list_rows(lo: int, n: np.uint64, at: np.uint64, limit: np.int32, moves: np.ndarray) -> tuple[np.uint64, np.uint64]:
    """List the n rows from `lo` on by their ranks, from place `at` on; return how many belong behind, and in front."""
    first = np.uint64(lo)
    last = n - ONE
    n_behind = NONE
    n_front = NONE
    for k in range(n):
        is_behind = np.uint64(moves[at + k] > limit)
        moves[last - n_behind] = first + k
        moves[n_front] = first + k
        n_behind += is_behind
        n_front += ONE - is_behind
    return n_behind, n_front


@inlined
def mark_behind(n: np.uint64, limit: np.int32, moves: np.ndarray, sides: np.ndarray) -> np.uint64:
    """Set the bits of the rows that belong behind, of n, whose ranks `moves` begins with; return how many do."""
    n_behind = NONE
    for begin in range(NONE, n, BITS):
        word = NONE
        for k in range(BITS):  # of a length that is known: several at a time; what is beyond the last row is cut off
            word |= np.uint64(moves[begin + k] > limit) << k
        word &= ~NONE >> (BITS - min(n - begin, BITS))
        sides[begin >> SIX] = word
        n_behind += np.uint64(count_bits(word))
    return n_behind


@inlined
def list_misplaced(
    lo: int, begin: np.uint64, end: np.uint64, n_behind: np.uint64, moves: np.ndarray, sides: np.ndarray
) -> np.uint64:
    """List the rows begin .. end, counted from `lo`, that belong elsewhere; return how many do.

    n_behind: 0 for rows behind that belong in front, listed from the first place on; else how many rows in front belong
    behind, listed from place 2 n_behind - 1 down.
    """
    n = NONE
    if begin == end:
        return n
    opposite = ~NONE if n_behind == NONE else NONE
    last = end - ONE
    for w in range(begin >> SIX, (last >> SIX) + ONE):
        word = sides[w] ^ opposite
        if w == begin >> SIX:
            word &= ~NONE << (begin & LAST_BIT)
        if w == last >> SIX:
            word &= ~NONE >> (LAST_BIT - (last & LAST_BIT))
        first = np.uint64(lo) + (w << SIX)
        while word != NONE:
            to = n if n_behind == NONE else TWO * n_behind - ONE - n
            moves[to] = first + np.uint64(count_bits(~word & (word - ONE)))  # the zeros below the lowest bit
            n += ONE
            word &= word - ONE
    return n


@inlined
def partition(
    rows: Rows,
    lo: int,
    hi: int,
    test: CodeTest,
    last: int,
    subsets: np.ndarray,
    moves: np.ndarray,  # (hi - lo up to a multiple of 64, and 64 more) int32 scratch
    sides: np.ndarray,  # (a word for 64 rows of them,) uint64 scratch
) -> int:
    """Move the rows of lo .. hi whose branch is `last` or higher behind the others; return where they begin."""
    n = np.uint64(hi - lo)
    if n <= np.uint64(PAIR_ROWS):
        at = np.uint64(len(moves)) - BITS
        limit = rank_rows(rows, lo, hi, test, last, subsets, moves, at)
        n_behind, n_front = list_rows(lo, n, at, limit, moves)
        middle = np.uint64(lo) + n_front
        swap_rows(rows, middle, n_behind, n_front, moves)
        return np.int64(middle)
    limit = rank_rows(rows, lo, hi, test, last, subsets, moves, NONE)
    in_front = n - mark_behind(n, limit, moves, sides)
    middle = np.uint64(lo) + in_front
    n_wrong = list_misplaced(lo, in_front, n, NONE, moves, sides)
    if n_wrong > NONE:
        list_misplaced(lo, NONE, in_front, n_wrong, moves, sides)
        swap_rows(rows, middle, n_wrong, n_wrong, moves)
    return np.int64(middle)
