"""Find features that may share a byte: no two of them are unusual in one row.

    row      0  1  2  3        bits of a row: the bundles that have a feature which is unusual in it
    bundles  01 00 11 10       a feature of rows 0 and 1 meets 01 | 00: it may go to the second bundle

A feature goes to the bundle of the one before it if it can, since one-hot blocks stand side by side, else to the first
one that it can go to.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined

from ..common.bits import lowest_bit

NONE, ONE = np.uint64(0), np.uint64(1)
ALL = ~NONE
WORD = 64  # bundles of a word
MOST_CODES = 255  # that features of a byte have beside their usual ones


@inlined
def meet(rows: np.ndarray, begin: int, end: int, bundles: np.ndarray) -> np.uint64:
    """Bits of the bundles that are met in some rows; bundles: a word for each row of the table."""
    met = NONE
    for k in range(np.uint64(begin), np.uint64(end)):
        met |= bundles[np.uint64(rows[k])]
        if met == ALL:
            break
    return met


@inlined
def first_free(met: np.uint64, first: int, room: int, n_taken: np.ndarray, n_bundles: int) -> int:
    """The first bundle of a word, whose bundles begin with `first`, that is not met and has room; -1: none."""
    free = ~met
    while free != NONE:
        bundle = first + np.int64(lowest_bit(free))
        if bundle >= n_bundles:
            break
        if n_taken[bundle] <= room:
            return bundle
        free &= free - ONE
    return np.int64(-1)


@door
def find_bundles(
    begin: np.ndarray,  # (n + 1,) int64: where the rows of each feature begin
    rows: np.ndarray,  # (any,) int32: in which it is unusual
    n_others: np.ndarray,  # (n,) int64: its codes but the usual one
    met: np.ndarray,  # (n_words, n_rows) uint64 scratch, 0 at first
    n_taken: np.ndarray,  # (64 * n_words,) int64 scratch, 0 at first: codes of each bundle
    bundle_of: np.ndarray,  # (n,) int64, written
    first: int,  # feature from which on they are given bundles
    n_bundles: int,  # that there are
) -> tuple[int, int]:
    """Give each feature a bundle; return the first that there were too few words for, else n, and how many bundles."""
    n = np.int64(n_bundles)
    home = bundle_of[first - 1] if first > 0 else np.int64(0)
    for k in range(first, len(n_others)):
        room = MOST_CODES - n_others[k]
        found = np.int64(-1)
        if home < n and n_taken[home] <= room:
            word = meet(rows, begin[k], begin[k + 1], met[home // WORD])
            if (word >> np.uint64(home % WORD)) & ONE == NONE:
                found = home
        for w in range(len(met)):
            if found >= 0 or w * WORD >= n:
                break
            word = meet(rows, begin[k], begin[k + 1], met[w])
            found = first_free(word, np.int64(w * WORD), room, n_taken, n)
        if found < 0:
            if n == len(n_taken):
                return np.int64(k), n
            found = n
            n += 1
        bit = ONE << np.uint64(found % WORD)
        of_rows = met[found // WORD]
        for at in range(np.uint64(begin[k]), np.uint64(begin[k + 1])):
            of_rows[np.uint64(rows[at])] |= bit
        n_taken[found] += n_others[k]
        bundle_of[k] = found
        home = found
    return np.int64(len(n_others)), n
