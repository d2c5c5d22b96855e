"""Sorted lists: each numeric feature's rows in the order of its codes, kept in order while a subtree grows.

A key is `code << bits | position`, so a sorted list of keys is the order of the rows and their codes in one. Lists
are made once for a node of moderate size and split stably with it, so that nodes below need no sorting. Positions
count from the first row of the node that the lists were made for; rows move on as the node is partitioned, so addends
are copied for the lists, and `lists.place` finds a row's position by its id.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined
from spinney._types import IS_LISTED, LARGE_SHIFT, SMALL_SHIFT

from ..common.sorting import make_keys
from ..common.structs import ClassScratch, Lists, Rows

ONE = np.uint64(1)  # unsigned indices spare the check for counting from the end
FRONT, BACK = 1, 2  # parts of a list that open nodes will read


@inlined
def position_bits(classes: ClassScratch | None) -> int:
    """Bits of a position in a key."""
    if classes is None:
        return SMALL_SHIFT
    return LARGE_SHIFT


@inlined
def make_lists(
    rows: Rows,
    lo: int,
    hi: int,
    features: np.ndarray,
    shift: int,
    keys: np.ndarray,  # (2, ...) scratch
    counts: np.ndarray,
) -> None:
    """Make the lists of rows lo .. hi; shift: bits of a position in a key."""
    codes, addends, ids = rows.codes, rows.addends, rows.ids
    lists, place, list_addends = rows.lists.keys, rows.lists.place, rows.lists.addends
    for i in range(lo, hi):
        place[ids[i]] = i - lo
        for row in range(len(addends)):
            list_addends[row, i - lo] = addends[row, i]
    for feature in range(features.shape[1]):
        if features[IS_LISTED, feature] != 0:
            side = make_keys(codes, lo, hi, feature, shift, keys, counts)
            for k in range(hi - lo):
                lists[feature, k] = keys[side, k]


@inlined
def split_lists(
    lists: Lists,
    features: np.ndarray,
    keys: np.ndarray,  # (2, ...) scratch
    shift: int,
    first: int,
    end: int,
    last: int,
    kept: int,
) -> None:
    """Split positions first .. end of every list, keeping the order: branches below `last` first.

    kept: FRONT, BACK or both; a part that no open node will read is left as rubbish.
    """
    listed, branch = lists.keys, lists.branch
    mask = (np.int64(1) << shift) - 1
    for feature in range(features.shape[1]):
        if features[IS_LISTED, feature] == 0:
            continue
        # every key is written, then the place moves on or not: no branch to mispredict
        if kept & FRONT == 0:
            at = np.uint64(end)
            for k in range(np.uint64(end - first)):
                key = listed[feature, np.uint64(end - 1) - np.uint64(k)]
                listed[feature, at - ONE] = key
                at -= np.uint64(branch[np.uint64(key) & np.uint64(mask)] >= last)
            continue
        at = np.uint64(first)
        n_behind = np.uint64(0)
        for k in range(np.uint64(first), np.uint64(end)):
            key = listed[feature, k]
            is_behind = np.uint64(branch[np.uint64(key) & np.uint64(mask)] >= last)
            listed[feature, at] = key
            keys[0, n_behind] = key
            at += ONE - is_behind
            n_behind += is_behind
        if kept & BACK != 0:
            for k in range(n_behind):
                listed[feature, at + np.uint64(k)] = keys[0, k]
