"""Collect a node's rows into groups, one per present code of a feature, in code order.

Two ways to the same integers: *cells*, one per code, where the codes are few for the rows; sorted *keys* otherwise.
Both leave the sums of each group in `groups`, and those of the missing rows in `totals`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney._jit import kernel
from spinney._types import (
    GROUP_CODE,
    GROUP_N,
    GROUP_SQUARE,
    GROUP_SUM,
    GROUP_WEIGHT,
    MISSING_CODE,
    N_MISSING,
    Q_MISSING,
    S_MISSING,
    TARGET,
    W_MISSING,
    WEIGHT,
)

from .structs import SortedKeys


@kernel
def group_cells(
    rows: Any,  # any tuple with codes and labels
    lo: int,
    hi: int,
    feature: int,
    n_codes: int,
    cells: np.ndarray,
    groups: np.ndarray,
    totals: np.ndarray,
) -> int:
    """Group rows lo .. hi by way of one cell per code; return the number of groups. Cells are zero before and after."""
    codes, labels = rows.codes, rows.labels
    n_labels = len(labels)
    width = 2 if n_labels == 1 else 4
    if n_labels == 1:  # every weight is 1
        for i in range(lo, hi):
            at = np.int64(codes[i, feature]) << 1
            cells[at] += 1
            cells[at + 1] += labels[TARGET, i]
    else:
        for i in range(lo, hi):
            at = np.int64(codes[i, feature]) << 2
            cells[at] += 1
            cells[at + 1] += labels[TARGET, i]
            cells[at + 2] += labels[WEIGHT, i]
            cells[at + 3] += labels[n_labels - 1, i]
    n_groups = np.int64(0)
    for code in range(1, n_codes + 1):
        at = code * width
        n = cells[at]
        if n == 0:
            continue
        groups[GROUP_CODE, n_groups] = code
        groups[GROUP_N, n_groups] = n
        groups[GROUP_SUM, n_groups] = cells[at + 1]
        if width == 4:
            groups[GROUP_WEIGHT, n_groups] = cells[at + 2]
            groups[GROUP_SQUARE, n_groups] = cells[at + 3]
        for k in range(width):
            cells[at + k] = 0
        n_groups += 1
    totals[N_MISSING] = cells[0]
    totals[S_MISSING] = cells[1]
    totals[W_MISSING] = cells[0 if width == 2 else 2]
    totals[Q_MISSING] = cells[width - 1]
    for k in range(width):
        cells[k] = 0
    return n_groups


@kernel
def group_keys(ordered: SortedKeys, shift: int, groups: np.ndarray, totals: np.ndarray) -> int:
    """Group the rows of a node in the order of a feature's codes; return the number of groups.

    shift: bits of a position in a key.
    """
    keys, row, labels, base = ordered.keys, ordered.row, ordered.labels, ordered.base
    n_labels = len(labels)
    mask = (np.int64(1) << shift) - 1
    n_groups = np.int64(0)
    last = np.int64(-1)
    n = np.int64(0)
    total = np.int64(0)
    weight = np.int64(0)
    square = np.int64(0)
    totals[N_MISSING] = 0
    for k in range(ordered.first, ordered.end):
        key = np.int64(keys[row, k])
        code = key >> shift
        i = base + (key & mask)
        if code != last:
            last = code
            n_groups += 1 if code != MISSING_CODE else 0
            n = 0
            total = 0
            weight = 0
            square = 0
        n += 1
        total += labels[TARGET, i]
        if n_labels > 1:
            weight += labels[WEIGHT, i]
            square += labels[n_labels - 1, i]
        else:
            weight += 1
        if code == MISSING_CODE:
            totals[N_MISSING] = n
            totals[S_MISSING] = total
            totals[W_MISSING] = weight
            totals[Q_MISSING] = square
        else:
            groups[GROUP_CODE, n_groups - 1] = code
            groups[GROUP_N, n_groups - 1] = n
            groups[GROUP_SUM, n_groups - 1] = total
            groups[GROUP_WEIGHT, n_groups - 1] = weight
            groups[GROUP_SQUARE, n_groups - 1] = square
    return n_groups


@kernel
def swap_groups(groups: np.ndarray, scores: np.ndarray, i: int, k: int) -> None:
    """Exchange groups i and k."""
    for row in range(len(groups)):
        held = groups[row, i]
        groups[row, i] = groups[row, k]
        groups[row, k] = held
    score = scores[i]
    scores[i] = scores[k]
    scores[k] = score


@kernel
def sift(groups: np.ndarray, scores: np.ndarray, root: int, end: int) -> None:
    """Restore the heap (last group first) below `root` in groups root .. end."""
    while True:
        largest = root
        for child in range(2 * root + 1, min(2 * root + 3, end)):
            a = scores[largest]
            b = scores[child]
            if a < b or (a == b and groups[GROUP_CODE, largest] < groups[GROUP_CODE, child]):
                largest = np.int64(child)
        if largest == root:
            return
        swap_groups(groups, scores, root, largest)
        root = largest


@kernel
def order_groups(groups: np.ndarray, scores: np.ndarray, n_groups: int, slack: float) -> None:
    """Sort the groups by score, then by code; scores that differ by at most `slack` count as equal.

    Heapsort, in place and without a worst case; again if equal scores had been told apart by a rounding.
    """
    for _ in range(2):
        for k in range(2 * n_groups):
            if k < n_groups:
                sift(groups, scores, n_groups - 1 - k, n_groups)
            else:
                end = 2 * n_groups - 1 - k
                swap_groups(groups, scores, 0, end)
                sift(groups, scores, 0, end)
        n_equal = np.int64(0)
        for g in range(1, n_groups):
            if scores[g] != scores[g - 1] and scores[g] - scores[g - 1] <= slack:
                scores[g] = scores[g - 1]
                n_equal += 1
        if n_equal == 0:
            return
