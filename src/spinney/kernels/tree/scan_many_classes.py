"""Best cut for three classes or more by Gini with small whole weights: the search of forests, and of plain trees.

A row is 32 bits, `class << 16 | weight`, the class counted among those of the node (RANK). Where a node has many rows
for its codes, weights go to a histogram by code and class. Otherwise rows are put in the order of their codes and
walked: moving weight w of class c to the left, where it finds weight L, changes the sum of squares there by
w (2 L + w).
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined
from spinney._types import ALL, HELD, LEFT, PAIR_LANES, PAIR_ROWS, PRESENT, RANK, TARGET, W_ALL, WEIGHT

from ..common.sorting import sort_keys
from ..common.structs import Candidate, OpenNode, PackedScratch, Scratch
from ..common.ties import bar_above
from .candidates import cut_between, none_better

ROWS_PER_CODE = 4  # counting sort up to so many codes for each row
SUMS_FOR_ROW = 6  # a histogram of up to so many sums for each row
SHIFT = 16
S16 = np.uint64(16)
LOW_HALF = np.uint64(0xFFFF)


@inlined
def pack_classes(addends: np.ndarray, lo: int, hi: int, n_present: int, sums: np.ndarray, packed: np.ndarray) -> int:
    """Write class and weight of rows lo .. hi to packed[0 ..]; return the sum of squared class weights."""
    power = np.int64(0)
    for k in range(n_present):
        c = sums[PRESENT, k]
        held = sums[ALL, c]
        sums[RANK, c] = k
        sums[HELD, k] = held
        power += held * held
    first = np.uint64(lo)
    for k in range(np.uint64(hi - lo)):
        w = np.int64(1) if len(addends) == 1 else addends[WEIGHT, first + k]
        packed[k] = np.int32((sums[RANK, np.uint64(addends[TARGET, first + k])] << SHIFT) | w)
    return power


@inlined
def order_rows(
    n: int,
    lowest: int,
    highest: int,
    column: np.ndarray,
    keys: np.ndarray,
    counts: np.ndarray,
) -> int:
    """Put rows in the order of their codes: `code << 16 | row` in one row of `keys`; return which."""
    rows = np.uint64(n)
    n_codes = highest - lowest + 1
    least = np.uint64(lowest)
    if n_codes <= len(counts) and n_codes <= ROWS_PER_CODE * n:
        for b in range(n_codes):
            counts[b] = 0
        for k in range(rows):
            counts[np.uint64(column[k]) - least] += 1
        at = np.int64(0)
        for b in range(n_codes):
            here = np.int64(counts[b])
            counts[b] = at
            at += here
        for k in range(rows):
            code = np.uint64(column[k])
            place = np.uint64(counts[code - least])
            keys[1, place] = np.uint32((code << S16) | k)
            counts[code - least] = np.int32(place + np.uint64(1))
        return 1
    if n <= PAIR_ROWS:
        lanes = (rows + np.uint64(PAIR_LANES - 1)) & ~np.uint64(PAIR_LANES - 1)
        for k in range(lanes):  # distinct, and above all others behind the last row
            column[k] = np.int32(((column[k] if k < rows else 0x1FFFFF) << 6) | np.int64(k))
        for k in range(rows):
            key = column[k]
            rank = np.int32(0)
            for j in range(lanes):
                rank = np.int32(rank + np.int32(column[j] < key))
            keys[1, np.uint64(rank)] = np.uint32(((np.uint64(key) >> np.uint64(6)) << S16) | k)
        return 1
    for k in range(rows):
        keys[0, k] = np.uint32((np.uint64(column[k]) << S16) | k)
    return sort_keys(keys, n, SHIFT, lowest, highest, counts)


@inlined
def walk_rows(
    best: Candidate, side: int, node: OpenNode, weight: int, packed: PackedScratch, sums: np.ndarray
) -> Candidate:
    """Best cut of the rows in the order of bucket_keys[side]; weight: of the node."""
    keys, addends = packed.bucket_keys, packed.addends
    n_present = node.n_present
    top = best.score
    for k in range(n_present):
        sums[LEFT, k] = 0
    power_left = np.int64(0)
    power_right = np.int64(node.power)
    w_left = np.int64(0)
    bar = bar_above(top)
    cut = np.int64(-1)
    cut_next = np.int64(-1)
    key = np.uint64(keys[side, 0])
    for k in range(np.uint64(1), np.uint64(node.hi - node.lo)):
        addend = np.int64(addends[key & LOW_HALF])
        c = np.uint64(addend >> SHIFT)
        w = addend & 0xFFFF
        before = sums[LEFT, c]
        after = sums[HELD, c] - before
        sums[LEFT, c] = before + w
        power_left += w * (2 * before + w)
        power_right -= w * (2 * after - w)
        w_left += w
        code = key >> S16
        key = np.uint64(keys[side, k])
        if key >> S16 != code:
            wa = np.float64(w_left)
            wb = np.float64(weight - w_left)
            rise = np.float64(power_left) * wb + np.float64(power_right) * wa
            run = wa * wb
            if rise > bar * run:
                top = rise / run
                bar = bar_above(top)
                cut = np.int64(code)
                cut_next = np.int64(key >> S16)
    return cut_between(top, cut, cut_next, best.n_ties)


@inlined
def walk_histogram(
    best: Candidate, lowest: int, highest: int, node: OpenNode, weight: int, histogram: np.ndarray, scratch: Scratch
) -> Candidate:
    """Best cut by way of a histogram of codes and classes of the node, which is zero before and after.

    Classes without a gap between them: the processor takes several at a time.
    """
    column, addends, sums = scratch.packed.column, scratch.packed.addends, scratch.classes.sums
    wide = np.uint64(node.n_present)
    least = np.uint64(lowest)
    for k in range(np.uint64(node.hi - node.lo)):
        addend = np.uint64(addends[k])
        histogram[(np.uint64(column[k]) - least) * wide + (addend >> S16)] += np.int64(addend & LOW_HALF)
    for k in range(wide):
        sums[LEFT, k] = 0
    top = best.score
    bar = bar_above(top)
    cut = np.int64(-1)
    cut_next = np.int64(-1)
    w_left = np.int64(0)
    for code in range(least, np.uint64(highest) + np.uint64(1)):
        at = (code - least) * wide
        here = np.int64(0)
        power_left = np.int64(0)
        power_right = np.int64(0)
        for k in range(wide):
            w = histogram[at + k]
            left = sums[LEFT, k] + w
            right = sums[HELD, k] - left
            sums[LEFT, k] = left
            histogram[at + k] = 0
            here += w
            power_left += left * left
            power_right += right * right
        if here == 0:
            continue
        if cut >= 0 and cut_next < 0:
            cut_next = np.int64(code)
        w_left += here
        if w_left < weight:
            wa = np.float64(w_left)
            wb = np.float64(weight - w_left)
            rise = np.float64(power_left) * wb + np.float64(power_right) * wa
            run = wa * wb
            if rise > bar * run:
                top = rise / run
                bar = bar_above(top)
                cut = np.int64(code)
                cut_next = np.int64(-1)
    return cut_between(top, cut, cut_next, best.n_ties)


@inlined
def scan_many_classes(best: Candidate, lowest: int, highest: int, node: OpenNode, scratch: Scratch) -> Candidate:
    """Best cut of a numeric feature that no row of the node misses; `load_column` has copied its codes."""
    packed, counts = scratch.packed, scratch.counts
    weight = scratch.totals[W_ALL]
    n = node.hi - node.lo
    if lowest == highest:
        return none_better(best)
    n_codes = highest - lowest + 1
    n_sums = n_codes * node.n_present
    if n_sums <= SUMS_FOR_ROW * n and n_sums <= len(scratch.histogram):
        return walk_histogram(best, lowest, highest, node, weight, scratch.histogram, scratch)
    side = order_rows(n, lowest, highest, packed.column, packed.bucket_keys, counts)
    return walk_rows(best, side, node, weight, packed, scratch.classes.sums)
