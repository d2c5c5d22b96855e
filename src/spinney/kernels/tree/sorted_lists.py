"""Sorted lists: each numeric feature's rows in the order of its codes, kept in order while a subtree grows.

A key is `code << shift | position`, so a sorted list of keys is the order of the rows and their codes in one. Lists
are made once for a node of moderate size and split stably with it, so that nodes below need no sorting. Positions
count from the first row of the node that the lists were made for; rows move on as the node is partitioned, so labels
are copied for the lists, and `place` finds a row's position by its id.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import IS_LISTED

from ..common.sorting import make_keys

ONE = np.uint64(1)  # unsigned indices spare the check for counting from the end


@kernel
def make_lists(
    codes: np.ndarray,
    labels: np.ndarray,
    ids: np.ndarray,
    lo: int,
    hi: int,
    features: np.ndarray,
    shift: int,
    keys: np.ndarray,  # (2, ...) scratch
    counts: np.ndarray,
    lists: np.ndarray,  # (n_features, ...) written
    place: np.ndarray,  # (n_rows,) int32, written for the rows of the node
    list_labels: np.ndarray,  # written
) -> None:
    """Make the lists of rows lo .. hi."""
    for i in range(lo, hi):
        place[ids[i]] = i - lo
        for row in range(len(labels)):
            list_labels[row, i - lo] = labels[row, i]
    for feature in range(features.shape[1]):
        if features[IS_LISTED, feature] != 0:
            side = make_keys(codes, lo, hi, feature, shift, keys, counts)
            for k in range(hi - lo):
                lists[feature, k] = keys[side, k]


@inlined
def split_lists(
    features: np.ndarray,
    lists: np.ndarray,
    keys: np.ndarray,  # (2, ...) scratch
    mask: int,
    first: int,
    end: int,
    branch: np.ndarray,  # (positions,) uint8: the branch of each row
    last: int,
    keeps_front: bool,
    keeps_back: bool,
) -> None:
    """Split positions first .. end of every list, keeping the order: branches below `last` first.

    A part that no open node will read (`keeps_front`, `keeps_back`) is left as rubbish.
    """
    for feature in range(features.shape[1]):
        if features[IS_LISTED, feature] == 0:
            continue
        # every key is written, then the place moves on or not: no branch to mispredict
        if not keeps_front:
            at = np.uint64(end)
            for k in range(np.uint64(end - first)):
                key = lists[feature, np.uint64(end - 1) - np.uint64(k)]
                lists[feature, at - ONE] = key
                at -= np.uint64(branch[np.uint64(key) & np.uint64(mask)] >= last)
            continue
        at = np.uint64(first)
        n_behind = np.uint64(0)
        for k in range(np.uint64(first), np.uint64(end)):
            key = lists[feature, k]
            is_behind = np.uint64(branch[np.uint64(key) & np.uint64(mask)] >= last)
            lists[feature, at] = key
            keys[0, n_behind] = key
            at += ONE - is_behind
            n_behind += is_behind
        if keeps_back:
            for k in range(n_behind):
                lists[feature, at + np.uint64(k)] = keys[0, k]
