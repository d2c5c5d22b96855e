"""Medians of the targets of a node, and the sum of absolute deviations from them: what the absolute error asks for.

Targets are held by *place*: the rows of a node in the order of their targets, counted from 1, so that 0 and n + 1 are
the ends of a linked list. The weighted median is the first place up to which half the weight lies, or the middle of it
and the next where that is exactly half (scikit-learn has the same rule; the sum of deviations is the same for both).

With W and S the weight and sum of all, w and s those up to the median, of level m, the sum of absolute deviations is

  S - 2 s + m (2 w - W)

Of whole weights every term is whole: sums are exact, and equal gains tie.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import S_ALL, TARGET, W_ALL, WEIGHT

from ..common.leaf_means import DISTANCE, fixed_mean
from ..common.sorting import INSERTION_ROWS, bucket_sort, insert_sort
from ..common.structs import (
    MedianScratch,
    NodeMedians,
    Nodes,
    OpenNode,
    RowRange,
    Rows,
    Scratch,
    StatUnits,
    Targets,
    TreeArrays,
)

POSITION_BITS = 32  # of a key: rank << 32 | position
POSITION = np.int64((1 << POSITION_BITS) - 1)
FEW_KEYS = 1024  # fewer are sorted by bytes, more by eleven bits at once
ROUNDING = 2.0**-50  # of sums by fractional weights, as a share of the sum of magnitudes


@kernel
def order_targets(lo: int, hi: int, ids: np.ndarray, ranks: np.ndarray, keys: np.ndarray, counts: np.ndarray) -> int:
    """Write keys of rows lo .. hi in the order of their targets to a row of `keys`; return which."""
    n = hi - lo
    lowest = np.int64(ranks[np.uint64(ids[lo])])
    highest = lowest
    for k in range(n):
        rank = np.int64(ranks[np.uint64(ids[lo + k])])
        keys[0, k] = (rank << POSITION_BITS) | k
        lowest = min(lowest, rank)
        highest = max(highest, rank)
    if n <= INSERTION_ROWS:
        insert_sort(keys, 0, n)
        return 0
    n_bits = np.int64(8 if n < FEW_KEYS else 11)
    base = np.uint64(lowest << POSITION_BITS)
    for k in range(n):
        keys[0, k] -= base
    side = np.int64(0)
    done = np.int64(0)
    while (highest - lowest) >> done != 0:
        bucket_sort(keys, side, n, POSITION_BITS + done, np.int64(1) << n_bits, np.int64(0), n, counts)
        side = 1 - side
        done += n_bits
    return side


@inlined
def spread_of(
    weight: int, total: int, below: int, sum_below: int, at: int, is_whole: bool, medians: MedianScratch
) -> float:
    """Sum of absolute deviations of rows of this weight and total, of which those up to place `at` have the others."""
    over = 2 * below - weight
    rest = total - 2 * sum_below
    if over == 0:
        return np.float64(rest)
    if is_whole:
        return np.float64(rest + medians.level[at] * over)
    held = np.float64(medians.value[at]) / np.float64(medians.weight[at])
    return max(np.float64(rest) + held * np.float64(over), 0.0)


@inlined
def middle_of(weight: int, below: int, at: int, after: int, medians: MedianScratch) -> float:
    """The median, where `below` of this weight lies up to place `at`, and `after` is the next."""
    held = np.float64(medians.value[at]) / np.float64(medians.weight[at])
    if 2 * below > weight:
        return held
    return 0.5 * (held + np.float64(medians.value[after]) / np.float64(medians.weight[after]))


@kernel
def lay_out(
    node: OpenNode, rows: Rows, is_whole: bool, totals: np.ndarray, medians: MedianScratch, counts: np.ndarray
) -> float:
    """Order the targets of a node for the scans of its features; return minus their sum of absolute deviations."""
    addends, ids, lo = rows.addends, rows.ids, node.lo
    keys, place, row = medians.keys, medians.place, medians.row
    value, weight, level = medians.value, medians.weight, medians.level
    n = node.hi - lo
    side = order_targets(lo, node.hi, ids, medians.ranks, keys, counts)
    for k in range(n):
        at = np.int64(keys[side, k]) & POSITION
        row[k] = at
        place[at] = k + 1
        value[k + 1] = addends[TARGET, lo + at]
        weight[k + 1] = np.int64(1) if len(addends) == 1 else addends[WEIGHT, lo + at]
        level[k + 1] = value[k + 1]
        if is_whole and weight[k + 1] != 1:
            level[k + 1] = value[k + 1] // weight[k + 1]
    if node.list_lo >= 0:
        for k in range(n):
            medians.listed[np.uint64(rows.lists.place[np.uint64(ids[lo + k])])] = place[k]
    below = np.int64(0)
    sum_below = np.int64(0)
    at = np.int64(0)
    while 2 * below < totals[W_ALL]:
        at += 1
        below += weight[at]
        sum_below += value[at]
    medians.start[0] = at
    medians.start[1] = below
    medians.start[2] = sum_below
    magnitude = 0.0
    if not is_whole:
        for k in range(n):
            magnitude += np.abs(np.float64(value[k + 1]))
    medians.blur[0] = magnitude * ROUNDING
    medians.whole[0] = spread_of(totals[W_ALL], totals[S_ALL], below, sum_below, at, is_whole, medians)
    return -medians.whole[0]


@inlined
def open_medians(
    score: float, node: OpenNode, rows: Rows, is_whole: bool, scratch: Scratch, medians: MedianScratch | None
) -> float:
    """Score of a node by the absolute error, whose targets are laid out; by another criterion the score as it is."""
    if medians is None:
        return score
    return lay_out(node, rows, is_whole, scratch.totals, medians, scratch.counts)


@kernel
def find_median(
    lo: int, hi: int, ids: np.ndarray, addends: np.ndarray, ranks: np.ndarray, keys: np.ndarray, counts: np.ndarray
) -> tuple[int, int]:
    """Rows lo .. hi between which their weighted median lies: the same row twice unless exactly half lies up to it."""
    side = order_targets(lo, hi, ids, ranks, keys, counts)
    is_unit = len(addends) == 1
    weight = np.int64(0)
    for i in range(lo, hi):
        weight += np.int64(1) if is_unit else addends[WEIGHT, i]
    below = np.int64(0)
    k = np.int64(0)
    at = np.int64(lo)
    while 2 * below < weight:
        at = lo + (np.int64(keys[side, k]) & POSITION)
        below += np.int64(1) if is_unit else addends[WEIGHT, at]
        k += 1
    if 2 * below > weight:
        return at, at
    return at, lo + (np.int64(keys[side, k]) & POSITION)


@inlined
def branch_value(mean: float, lo: int, hi: int, rows: Rows, counts: np.ndarray, medians: MedianScratch | None) -> float:
    """Value of a branch of rows lo .. hi for monotone constraints: its mean, or its median, in units of the sums."""
    if medians is None:
        return mean
    addends = rows.addends
    a, b = find_median(lo, hi, rows.ids, addends, medians.ranks, medians.keys, counts)
    low = np.float64(addends[TARGET, a])
    high = np.float64(addends[TARGET, b])
    if len(addends) > 1:
        low /= np.float64(addends[WEIGHT, a])
        high /= np.float64(addends[WEIGHT, b])
    return 0.5 * (low + high)


@inlined
def fill_medians(
    targets: Targets, nodes: Nodes, units: StatUnits, weight: np.ndarray, out: TreeArrays, medians: NodeMedians | None
) -> None:
    """Median and mean absolute deviation of every node, in the place of means; leaves are kept within their bounds."""
    if medians is None:
        return
    ids, truth = targets.ids, targets.truth
    centre, stretch = units.values.centre, units.values.stretch
    for node in range(len(out.test)):
        lo = nodes.begin[node]
        hi = lo + nodes.n_rows[node]
        a, b = find_median(lo, hi, ids, targets.addends, medians.ranks, medians.keys, medians.counts)
        value = 0.5 * (truth[np.uint64(ids[a])] + truth[np.uint64(ids[b])])
        low = value
        high = value
        for i in range(np.uint64(lo), np.uint64(hi)):
            y = truth[np.uint64(ids[i])]
            low = min(low, y)
            high = max(high, y)
        out.impurity[node] = 0.0
        if low != high:
            width = high - low
            rows = RowRange(lo, hi, weight[node])
            share = fixed_mean(targets, rows, units.values.is_whole, low, width, (value - low) / width, DISTANCE)
            out.impurity[node] = share * (width * stretch)
        if units.has_monotone:
            value = max(value, nodes.lower[node] * units.bound_unit + centre)
            value = min(value, nodes.upper[node] * units.bound_unit + centre)
        value = value * units.value_unit * units.value_unit_2
        medians.answers[node] = value
        if nodes.first_child[node] == 0:
            out.threshold[node] = value
            out.cuts[node, 0] = value
