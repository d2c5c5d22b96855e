"""The order in which a node tries its features, which of them do not vary, and codes side by side for a large node.

A large node reads a code of every row for each feature that it tries, a line of the cache each: what its rows hold of
the features that it will try first is copied in one pass, to rows of a few codes that are read in sequence.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import AHEAD_BYTES, CODES_OF_WORD, PAIR_ROWS

from ..common.rng import fold
from ..common.structs import GivenSums, RandomScratch, Rows, Settings
from .cells import column_of, is_sparse

NONE, ONE, TWO, THREE, FOUR = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
S16, S32, S48, LAST_CODE = np.uint64(16), np.uint64(32), np.uint64(48), np.uint64(0xFFFF)
BLOCK_ROWS = 64  # of a pass: each feature reads them from the first cache


@inlined
def draw_feature(permutation: np.ndarray, places: np.ndarray, k: int, key: np.uint64) -> int:
    """Swap entry k of the permutation with one drawn from k on, and note where it was; return the new entry."""
    word = fold(key, np.uint64(k >> 1))  # 32 bits for each of two draws
    half = (word >> np.uint64(32)) if k & 1 else (word & np.uint64(0xFFFFFFFF))
    at = k + np.int64((half * np.uint64(len(permutation) - k)) >> np.uint64(32))
    feature = np.int64(permutation[at])
    permutation[at] = permutation[k]
    permutation[k] = feature
    places[k] = at
    return feature


@inlined
def restore_order(permutation: np.ndarray, places: np.ndarray, n_drawn: int) -> None:
    """Undo the draws: the next node's depend on nothing but its key."""
    for k in range(n_drawn):
        last = n_drawn - 1 - k
        at = places[last]
        feature = permutation[at]
        permutation[at] = permutation[last]
        permutation[last] = feature


@inlined
def constant_bit(feature: int) -> np.uint64:
    """The bit of a feature among those that do not vary; 0 beyond the first 64."""
    return ONE << np.uint64(feature) if feature < 64 else np.uint64(0)


@inlined
def list_zeros(word: np.uint64) -> np.uint64:
    """Which of the four codes of a word are 0, as bits."""
    low = np.uint64(word & LAST_CODE == NONE) | (np.uint64((word >> S16) & LAST_CODE == NONE) << ONE)
    return low | (np.uint64((word >> S32) & LAST_CODE == NONE) << TWO) | (np.uint64(word >> S48 == NONE) << THREE)


@inlined
def find_constant(
    lo: int, hi: int, rows: Rows, settings: Settings, random: RandomScratch | None, given: GivenSums | None
) -> np.uint64:
    """Bits of the features of which rows lo .. hi have one code each, where rows and features are few; else none.

    Half of the features that nodes of up to 64 rows try do not vary there. Reading whole rows, sixteen codes at a time,
    takes less than finding that out of one feature. Random tests, and sums of rows that are elsewhere, do without.
    """
    if random is not None or given is not None:
        return NONE
    words = rows.words
    n_coded = len(rows.ahead_of)
    if hi - lo > PAIR_ROWS or n_coded > 64 or settings.is_ratio:
        return NONE
    n_words = min(np.uint64((n_coded + CODES_OF_WORD - 1) // CODES_OF_WORD + 3) & ~THREE, np.uint64(words.shape[1]))
    n_fours = n_words & ~THREE
    first = np.uint64(lo)
    constant = NONE
    for at in range(NONE, n_fours, FOUR):
        a, b, c, d = words[first, at], words[first, at + ONE], words[first, at + TWO], words[first, at + THREE]
        p, q, r, s = NONE, NONE, NONE, NONE  # bits in which rows differ from the first
        for i in range(first + ONE, np.uint64(hi)):
            p |= words[i, at] ^ a
            q |= words[i, at + ONE] ^ b
            r |= words[i, at + TWO] ^ c
            s |= words[i, at + THREE] ^ d
        zeros = list_zeros(p) | (list_zeros(q) << FOUR) | (list_zeros(r) << np.uint64(8))
        constant |= (zeros | (list_zeros(s) << np.uint64(12))) << (FOUR * at)
    for at in range(n_fours, n_words):
        differ = NONE
        for i in range(first + ONE, np.uint64(hi)):
            differ |= words[i, at] ^ words[first, at]
        constant |= list_zeros(differ) << (FOUR * at)
    if n_coded < 64:
        constant &= (ONE << np.uint64(n_coded)) - ONE
    return constant


@inlined
def is_fetched(lo: int, hi: int, rows: Rows, settings: Settings) -> bool:
    """Whether the codes of a node's features are copied before they are tried."""
    n_bytes = 2 * (hi - lo) * rows.codes.shape[1]
    return settings.is_shuffled and n_bytes > AHEAD_BYTES and hi - lo <= len(rows.ahead)


@inlined
def fetch_codes(
    lo: int,
    hi: int,
    constant: np.uint64,
    n_try: int,
    draw_key: np.uint64,
    rows: Rows,
    permutation: np.ndarray,
    places: np.ndarray,
) -> None:
    """Copy the codes of the features that rows lo .. hi will be searched by first, as far as there is room."""
    codes, ahead, ahead_of = rows.codes, rows.ahead, rows.ahead_of
    most = min(np.int64(ahead.shape[1]), n_try)
    n = np.int64(0)
    n_drawn = np.int64(0)
    n_flags = np.int64(0)  # which are read from their words, as sparse features are from their cells
    while n < most and n + n_flags < n_try and n_drawn < len(permutation):
        feature = draw_feature(permutation, places, n_drawn, draw_key)
        n_drawn += 1
        if feature >= len(ahead_of):
            n_flags += 1
        elif constant & constant_bit(feature) == 0:
            ahead_of[feature] = n
            n += 1
    first = np.uint64(lo)
    end = np.uint64(hi)
    while first < end:
        last = min(first + np.uint64(BLOCK_ROWS), end)
        for k in range(n_drawn):  # drawn features stand at the head of the permutation
            feature = np.uint64(permutation[k])
            if feature < np.uint64(len(ahead_of)) and ahead_of[feature] >= 0:
                at = np.uint64(ahead_of[feature])
                for i in range(first, last):
                    ahead[i - np.uint64(lo), at] = codes[i, feature]
        first = last
    restore_order(permutation, places, n_drawn)


@kernel
def forget_codes(rows: Rows) -> None:
    """Forget the codes that were copied, once a node is searched."""
    for feature in range(len(rows.ahead_of)):
        rows.ahead_of[feature] = -1


@inlined
def source_of(feature: int, lo: int, hi: int, rows: Rows) -> tuple[np.ndarray, int, int]:
    """Where the codes of a feature are for rows lo .. hi: an array, its first row for them, and its column."""
    if is_sparse(feature, rows.cells):
        codes, column = column_of(feature, lo, hi, rows, rows.cells)
        return codes, np.int64(lo), column
    if rows.ahead_of[feature] >= 0:
        return rows.ahead, np.int64(0), np.int64(rows.ahead_of[feature])
    return rows.codes, np.int64(lo), np.int64(feature)
