"""Collect a node's rows into groups, one per present code of a feature, in code order.

Two ways to the same integers: *cells*, one per code, where the codes are few for the rows; *sorted* keys otherwise.
Both leave the sums of each group in `groups`, and those of the missing rows in `totals`.
"""

from __future__ import annotations

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
    SQUARE,
    TARGET,
    W_MISSING,
    WEIGHT,
)

from .sorted import sort_keys

SMALL_SHIFT = 16
SMALL_MASK = 0xFFFF
FEW_CODES = 16  # cells are worth their while whatever the node's size


@kernel
def group_cells(
    codes: np.ndarray,
    labels: np.ndarray,
    lo: int,
    hi: int,
    feature: int,
    n_codes: int,
    cells: np.ndarray,
    groups: np.ndarray,
    totals: np.ndarray,
) -> int:
    """Group rows lo .. hi by way of one cell per code; return the number of groups. Cells are zero before and after."""
    n_rows = len(labels)
    if n_rows == 1:  # every weight is 1
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
            cells[at + 3] += labels[n_rows - 1, i]
    width = 2 if n_rows == 1 else 4
    totals[N_MISSING] = cells[0]
    totals[S_MISSING] = cells[1]
    totals[W_MISSING] = cells[0] if n_rows == 1 else cells[2]
    totals[Q_MISSING] = 0 if n_rows == 1 else cells[3]
    for k in range(width):
        cells[k] = 0
    n_groups = np.int64(0)
    for code in range(1, n_codes + 1):
        at = code * width
        n = cells[at]
        if n == 0:
            continue
        groups[GROUP_CODE, n_groups] = code
        groups[GROUP_N, n_groups] = n
        groups[GROUP_SUM, n_groups] = cells[at + 1]
        cells[at] = 0
        cells[at + 1] = 0
        if n_rows > 1:
            groups[GROUP_WEIGHT, n_groups] = cells[at + 2]
            groups[GROUP_SQUARE, n_groups] = cells[at + 3]
            cells[at + 2] = 0
            cells[at + 3] = 0
        n_groups += 1
    return n_groups


@kernel
def group_sorted(
    codes: np.ndarray,
    labels: np.ndarray,
    lo: int,
    hi: int,
    feature: int,
    keys: np.ndarray,
    counts: np.ndarray,
    groups: np.ndarray,
    totals: np.ndarray,
) -> int:
    """Group rows lo .. hi (at most 65,536) by sorting them; return the number of groups."""
    n_label_rows = len(labels)
    lowest = np.int64(SMALL_MASK)
    highest = np.int64(0)
    n_known = np.int64(0)
    for i in range(lo, hi):
        code = np.int64(codes[i, feature])
        keys[0, n_known] = np.uint32((code << SMALL_SHIFT) | (i - lo))
        n_known += 1 if code != MISSING_CODE else 0
        lowest = min(lowest, code)
        highest = max(highest, code)
    totals[N_MISSING] = hi - lo - n_known
    totals[W_MISSING] = hi - lo - n_known
    if n_known == 0:
        return 0
    if lowest == highest:
        return 1  # constant and never missing here: nothing to scan, so the sums do not matter
    if n_known < hi - lo:
        lowest = np.int64(1)
        add_missing(codes, labels, lo, hi, feature, totals)
    side = sort_keys(keys, n_known, SMALL_SHIFT, lowest, highest, counts)
    n_groups = np.int64(-1)
    last = np.int64(-1)
    n = np.int64(0)
    total = np.int64(0)
    weight = np.int64(0)
    square = np.int64(0)
    for k in range(n_known):
        key = np.int64(keys[side, k])
        code = key >> SMALL_SHIFT
        i = lo + (key & SMALL_MASK)
        if code != last:
            n_groups += 1
            groups[GROUP_CODE, n_groups] = code
            last = code
            n = 0
            total = 0
            weight = 0
            square = 0
        n += 1
        total += labels[TARGET, i]
        groups[GROUP_N, n_groups] = n
        groups[GROUP_SUM, n_groups] = total
        if n_label_rows > 1:
            weight += labels[WEIGHT, i]
            square += labels[n_label_rows - 1, i]
            groups[GROUP_WEIGHT, n_groups] = weight
            groups[GROUP_SQUARE, n_groups] = square
    return n_groups + 1


@kernel
def add_missing(
    codes: np.ndarray, labels: np.ndarray, lo: int, hi: int, feature: int, totals: np.ndarray
) -> None:
    """Sum the rows of lo .. hi that miss a value of the feature."""
    n_rows = len(labels)
    totals[S_MISSING] = 0
    totals[Q_MISSING] = 0
    if n_rows > 1:
        totals[W_MISSING] = 0
    for i in range(lo, hi):
        if codes[i, feature] == MISSING_CODE:
            totals[S_MISSING] += labels[TARGET, i]
            if n_rows > 1:
                totals[W_MISSING] += labels[WEIGHT, i]
                totals[Q_MISSING] += labels[n_rows - 1, i]


@kernel
def group(
    codes: np.ndarray,
    labels: np.ndarray,
    lo: int,
    hi: int,
    feature: int,
    n_codes: int,
    keys: np.ndarray,
    counts: np.ndarray,
    cells: np.ndarray,
    groups: np.ndarray,
    totals: np.ndarray,
) -> int:
    """Group rows lo .. hi by the codes of `feature`; return the number of groups."""
    if n_codes <= hi - lo or n_codes <= FEW_CODES:
        return group_cells(codes, labels, lo, hi, feature, n_codes, cells, groups, totals)
    return group_sorted(codes, labels, lo, hi, feature, keys, counts, groups, totals)
