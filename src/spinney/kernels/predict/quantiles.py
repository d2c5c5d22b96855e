"""Training rows that share a leaf with a new row, and the quantiles of their targets (Meinshausen 2006).

Words: the *members* of a leaf are the bag's rows in it, repeated as often as drawn; the *place* of a row is its
position when rows are sorted by target. Members of all trees lie end to end: those of node v of tree t are
ids[first[offset[t] + v]] up to ids[first[offset[t] + v + 1]] (`Members`).

A tree spreads a weight of 1 over the members of the new row's leaf; a training row's weight is its sum over trees.
One new row is done at a time: `collect` adds the weights up in an array over places and notes which were touched,
the touched places are sorted, and one walk along them meets every quantile. Trees and places are taken in a fixed
order, so sums do not depend on how new rows are shared out.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, kernel

from ..common.structs import Members, PlaceScratch

DIGIT_BITS = 8
N_DIGITS = 256
SLACK = 1e-10  # relative: a cumulative weight that equals a level in mathematics must reach it in floats as well


@door
def list_members(
    leaf: np.ndarray,  # (n_rows,) int32: leaf of each training row in one tree
    counts: np.ndarray,  # (n_rows,) int32: how often each row is in the bag
    first: np.ndarray,  # (n_nodes + 1,) int64, zeros; written: first member of each node
    ids: np.ndarray,  # (sum of counts,) int32, written: members by leaf, rows ascending
) -> None:
    """List the members of every leaf of a tree, by counting."""
    n_rows = len(leaf)
    n_nodes = len(first) - 1
    for i in range(n_rows):
        first[np.int64(leaf[i]) + 1] += np.int64(counts[i])
    for v in range(n_nodes):
        first[v + 1] += first[v]
    for back in range(n_rows):  # from the last row, filling each range from its end; the ends become beginnings
        i = n_rows - 1 - back
        v = np.int64(leaf[i]) + 1
        for _ in range(np.int64(counts[i])):
            first[v] -= 1
            ids[first[v]] = i
    # entry v + 1 now holds where node v begins: move down by one
    for v in range(n_nodes):
        first[v] = first[v + 1]
    first[n_nodes] = len(ids)


@kernel
def collect(
    leaf: np.ndarray,  # (n_trees, n_new) int32
    new: int,
    members: Members,
    weight: np.ndarray,  # (n_rows,) float64, or empty when every row weighs 1
    place: np.ndarray,  # (n_rows,) int32
    scratch: PlaceScratch,  # weights are added to `sums`; row 0 of `touched` is written
) -> tuple[int, int]:
    """Add up the weights of the training rows for one new row; return how many places and trees had a part in it."""
    offset = members.offset
    first = members.first
    ids = members.ids
    sums = scratch.sums
    touched = scratch.touched
    n_touched = np.int64(0)
    n_used = np.int64(0)
    is_weighted = len(weight) > 0
    for t in range(leaf.shape[0]):
        v = np.int64(offset[t]) + np.int64(leaf[t, new])
        begin = np.int64(first[v])
        end = np.int64(first[v + 1])
        total = np.float64(end - begin)
        if is_weighted:
            total = 0.0
            for k in range(begin, end):
                total += weight[np.int64(ids[k])]
        if total > 0.0:
            n_used += 1
            part = 1.0 / total
            for k in range(begin, end):
                i = np.int64(ids[k])
                share = part
                if is_weighted:
                    share = weight[i] / total
                if share > 0.0:
                    p = np.int64(place[i])
                    if sums[p] == 0.0:
                        touched[0, n_touched] = p
                        n_touched += 1
                    sums[p] += share
    return n_touched, n_used


@kernel
def sort_places(touched: np.ndarray, n_touched: int, n_places: int, buckets: np.ndarray) -> int:
    """Sort touched[0, :n_touched], digit by digit; return the row of `touched` that holds the result."""
    side = 0
    shift = 0
    while (n_places - 1) >> shift > 0:
        for b in range(N_DIGITS):
            buckets[b] = 0
        for k in range(n_touched):
            buckets[(np.int64(touched[side, k]) >> shift) & (N_DIGITS - 1)] += 1
        at = np.int64(0)
        for b in range(N_DIGITS):
            n = buckets[b]
            buckets[b] = at
            at += n
        for k in range(n_touched):
            p = np.int64(touched[side, k])
            b = (p >> shift) & (N_DIGITS - 1)
            touched[1 - side, buckets[b]] = p
            buckets[b] += 1
        side = 1 - side
        shift += DIGIT_BITS
    return side


@door
def quantiles(
    leaf: np.ndarray,  # (n_trees, n_new) int32
    members: Members,
    weight: np.ndarray,  # (n_rows,) or empty, float64
    place: np.ndarray,  # (n_rows,) int32
    ordered: np.ndarray,  # (n_rows,) float64: the targets in ascending order
    levels: np.ndarray,  # (n_levels,) float64 ascending, in 0 .. 1
    scratch: PlaceScratch,
    out: np.ndarray,  # (n_new, n_levels) float64, written; NaN where no tree has members in the row's leaf
) -> None:
    """Write the smallest target whose cumulative weight reaches each level."""
    sums = scratch.sums
    touched = scratch.touched
    n_levels = len(levels)
    for new in range(leaf.shape[1]):
        n_touched, _ = collect(leaf, new, members, weight, place, scratch)
        side = sort_places(touched, n_touched, len(place), scratch.buckets)
        total = 0.0
        for k in range(n_touched):
            total += sums[np.int64(touched[side, k])]
        reached = 0.0
        value = np.nan
        q = 0
        for k in range(n_touched):
            p = np.int64(touched[side, k])
            reached += sums[p]
            sums[p] = 0.0
            value = ordered[p]
            while q < n_levels and reached >= (levels[q] - SLACK) * total:
                out[new, q] = value
                q += 1
        while q < n_levels:  # only where nothing was touched: the last place reaches every level
            out[new, q] = value
            q += 1


@door
def weights(
    leaf: np.ndarray,  # as in `quantiles`
    members: Members,
    weight: np.ndarray,
    place: np.ndarray,  # (n_rows,) int32: 0, 1, 2, ...
    scratch: PlaceScratch,
    out: np.ndarray,  # (n_new, n_rows) float64 zeros, written
) -> None:
    """Write the weight of every training row at every new row; those of a new row add up to 1, without members to 0."""
    sums = scratch.sums
    touched = scratch.touched
    for new in range(leaf.shape[1]):
        n_touched, n_used = collect(leaf, new, members, weight, place, scratch)
        for k in range(n_touched):
            p = np.int64(touched[0, k])
            out[new, p] = sums[p] / np.float64(n_used)
            sums[p] = 0.0
