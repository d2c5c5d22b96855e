"""The order in which random tests draw features, where few of a sparse table's vary: draws without the others.

    places      0 1 2 3 4 5 6 7      features stand in places; draw k swaps place k with one from k on
    may vary    . . x . . . x .      a bit for each place: the order of the two is all that is asked for

A node of ten texts has two hundred words of twenty thousand, and some ten thousand draws pass until as many tests as it
tries are of these. A draw that meets neither in its two places changes nothing: bits, which stay in the first cache,
tell so. The features that are drawn are those of `feature_order.draw_feature`, in its order.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import NUMBER

from ..common.bits import bit_place, count_bits
from ..common.rng import fold
from ..common.structs import Cells, Settings
from .feature_order import draw_feature

NONE, ONE, SIX, LAST_BIT, S32 = np.uint64(0), np.uint64(1), np.uint64(6), np.uint64(63), np.uint64(32)
LOW_HALF = np.uint64(0xFFFFFFFF)
NEXT, LISTED, MOVED = 0, 1, 2  # draws made, features listed, places whose feature was overwritten
AT_ONCE = 16  # features that are listed together


@inlined
def open_draws(n_rows: int, features: np.ndarray, settings: Settings, cells: Cells | None) -> bool:
    """Whether a node of so many rows draws its features here: it tries few of those that vary, which are marked."""
    if cells is None:
        return False
    if not (settings.is_random and settings.is_shuffled) or n_rows > cells.most_marked:
        return False
    return mark_places(settings.n_try, features, cells)


@kernel
def mark_places(n_try: int, features: np.ndarray, cells: Cells) -> bool:
    """Mark the places of features that may vary, unless these are too many for draws to be saved."""
    marks, asked = cells.marks, cells.asked
    n_features = np.int64(features.shape[1])
    n_asked = cells.first
    for w in range(np.uint64(len(marks))):
        n_asked += count_bits(marks[w])
    if n_asked * n_asked > n_features * n_try:
        return False
    for w in range(np.uint64(len(asked))):
        asked[w] = cells.others[w]
    for w in range(np.uint64(len(marks))):
        word = marks[w]
        while word != NONE:
            rest = word & (word - ONE)
            feature = np.uint64(cells.first) + (w << SIX) + bit_place(word ^ rest)
            place = np.uint64(features[NUMBER, feature])
            asked[place >> SIX] |= ONE << (place & LAST_BIT)
            word = rest
    cells.drawn[NEXT] = 0
    cells.drawn[LISTED] = 0
    cells.drawn[MOVED] = 0
    return True


@kernel
def list_draws(key: np.uint64, permutation: np.ndarray, cells: Cells) -> None:
    """List some more of the marked features, in the order in which they are drawn."""
    asked, drawn, listed, moved = cells.asked, cells.drawn, cells.listed, cells.moved
    n_features = np.uint64(len(permutation))
    k = np.uint64(drawn[NEXT])
    n = np.uint64(drawn[LISTED])
    n_moved = np.uint64(drawn[MOVED])
    end = n + np.uint64(AT_ONCE)
    word = fold(key, k >> ONE)
    while k < n_features and n < end:
        if k & ONE == NONE:
            word = fold(key, k >> ONE)
        half = (word >> S32) if k & ONE != NONE else (word & LOW_HALF)
        at = k + ((half * (n_features - k)) >> S32)
        bit = ONE << (at & LAST_BIT)
        is_at = asked[at >> SIX] & bit != NONE
        is_here = (asked[k >> SIX] >> (k & LAST_BIT)) & ONE != NONE
        if is_at:
            listed[n] = permutation[at]
            n += ONE
            asked[at >> SIX] ^= bit
        if is_here and at != k:
            moved[0, n_moved] = np.int64(at)
            moved[1, n_moved] = permutation[at]
            n_moved += ONE
            permutation[at] = permutation[k]
            asked[at >> SIX] |= bit
        k += ONE
    drawn[NEXT] = k
    drawn[LISTED] = n
    drawn[MOVED] = n_moved


@inlined
def next_feature(
    is_listed: bool, k: int, permutation: np.ndarray, places: np.ndarray, key: np.uint64, cells: Cells | None
) -> int:
    """Number k of the features that a node draws; is_listed: of those that may vary alone, -1: there are no more."""
    if cells is None:
        return draw_feature(permutation, places, k, key)
    if not is_listed:
        return draw_feature(permutation, places, k, key)
    if k == cells.drawn[LISTED]:
        list_draws(key, permutation, cells)
        if k == cells.drawn[LISTED]:
            return np.int64(-1)
    return np.int64(cells.listed[k])


@inlined
def forget_draws(is_listed: bool, permutation: np.ndarray, cells: Cells | None) -> None:
    """Undo the draws of a node."""
    if cells is None:
        return
    if is_listed:
        n = cells.drawn[MOVED]
        for m in range(n):
            permutation[cells.moved[0, n - 1 - m]] = cells.moved[1, n - 1 - m]
