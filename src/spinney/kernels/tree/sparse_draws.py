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
from ..common.structs import Cells, Settings, SparseDraws
from .feature_order import draw_feature

NONE, ONE, TWO, SIX = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(6)
LAST_BIT, S32 = np.uint64(63), np.uint64(32)
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
    marks, others, asked, drawn = cells.marks, cells.draws.others, cells.draws.asked, cells.draws.drawn
    n_features = np.int64(features.shape[1])
    n_asked = np.int64(cells.first)
    for w in range(np.uint64(len(marks))):
        n_asked += count_bits(marks[w])
    if n_asked * n_asked > n_features * n_try:
        return False
    for w in range(np.uint64(len(asked))):
        asked[w] = others[w]
    for w in range(np.uint64(len(marks))):
        word = marks[w]
        while word != NONE:
            rest = word & (word - ONE)
            feature = np.uint64(cells.first) + (w << SIX) + bit_place(word ^ rest)
            place = np.uint64(features[NUMBER, feature])
            asked[place >> SIX] |= ONE << (place & LAST_BIT)
            word = rest
    drawn[NEXT] = 0
    drawn[LISTED] = 0
    drawn[MOVED] = 0
    return True


@inlined
def draw_ahead(key: np.uint64, first: np.uint64, n_features: np.uint64, ahead: np.ndarray) -> None:
    """The places that 64 draws from `first` on swap with, without a look at what is there: several at a time."""
    for pair in range(np.uint64(32)):
        k = first + TWO * pair
        word = fold(key, k >> ONE)
        ahead[TWO * pair] = k + (((word & LOW_HALF) * (n_features - k)) >> S32)
        ahead[TWO * pair + ONE] = k + ONE + (((word >> S32) * (n_features - k - ONE)) >> S32)


@kernel
def list_draws(key: np.uint64, permutation: np.ndarray, draws: SparseDraws) -> None:
    """List some more of the marked features, in the order in which they are drawn."""
    asked, ahead, drawn, listed, moved = draws.asked, draws.ahead, draws.drawn, draws.listed, draws.moved
    n_features = np.uint64(len(permutation))
    k = np.uint64(drawn[NEXT])
    n = np.uint64(drawn[LISTED])
    n_moved = np.uint64(drawn[MOVED])
    end = n + np.uint64(AT_ONCE)
    while k < n_features and n < end:
        if k & LAST_BIT == NONE:
            draw_ahead(key, k, n_features, ahead)
        at = ahead[k & LAST_BIT]
        is_at = (asked[at >> SIX] >> (at & LAST_BIT)) & ONE
        is_here = (asked[k >> SIX] >> (k & LAST_BIT)) & ONE
        if is_at | is_here != NONE:
            if is_at != NONE:
                listed[n] = permutation[at]
                n += ONE
                asked[at >> SIX] ^= ONE << (at & LAST_BIT)
            if is_here != NONE and at != k:
                moved[0, n_moved] = np.int64(at)
                moved[1, n_moved] = permutation[at]
                n_moved += ONE
                permutation[at] = permutation[k]
                asked[at >> SIX] |= ONE << (at & LAST_BIT)
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
    drawn = cells.draws.drawn
    if k == drawn[LISTED]:
        list_draws(key, permutation, cells.draws)
        if k == drawn[LISTED]:
            return np.int64(-1)
    return np.int64(cells.draws.listed[k])


@inlined
def forget_draws(is_listed: bool, permutation: np.ndarray, cells: Cells | None) -> None:
    """Undo the draws of a node."""
    if cells is None:
        return
    if is_listed:
        moved = cells.draws.moved
        n = cells.draws.drawn[MOVED]
        for m in range(n):
            permutation[moved[0, n - 1 - m]] = moved[1, n - 1 - m]
