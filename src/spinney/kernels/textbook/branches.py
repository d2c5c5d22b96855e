"""Put the entries of a node into bags, one per branch: rows, and pieces of rows whose value is missing.

The pieces of a row add up to it exactly: the heaviest bag gets what rounding leaves. A row of whole weight w is w rows
of weight 1, whose pieces are those of one, times w.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined, kernel
from spinney._types import BAG_BEGIN, BAG_N, BAG_SHARE, BAG_WEIGHT, WEIGHT


@inlined
def piece_of(weight: int, bag: int, bags: np.ndarray, known: int) -> int:
    """Piece of a unit of weight that a bag gets, rounded down."""
    return np.int64(np.floor(np.float64(weight) * (np.float64(bags[BAG_SHARE, bag]) / np.float64(known))))


@kernel
def count_entries(
    branch: np.ndarray,  # (n_entries,) int32: the branch of each entry; -1: every one
    ids: np.ndarray,
    labels: np.ndarray,
    times: np.ndarray,
    lo: int,
    hi: int,
    n_branches: int,
    bags: np.ndarray,  # (BAG_ROWS, at least n_branches) int64, written
) -> tuple[int, int, int]:
    """Count the entries lo .. hi of every bag.

    Bags begin at 0, the last one first. A row that takes every branch is shared out as the known entries are; evenly
    where there are none. Returns the number of entries in all bags, the heaviest bag by known entries (the first among
    equals), and the sum of the bags' shares.
    """
    for b in range(n_branches):
        bags[BAG_WEIGHT, b] = 0
        bags[BAG_N, b] = 0
    n_spread = np.int64(0)
    known = np.int64(0)
    is_unit = len(labels) == 1
    for i in range(np.uint64(lo), np.uint64(hi)):
        b = np.int64(branch[i])
        if b < 0:
            n_spread += 1
            continue
        bag = np.uint64(b)
        w = np.int64(1) if is_unit else labels[WEIGHT, i]
        bags[BAG_WEIGHT, bag] += w
        bags[BAG_N, bag] += 1
        known += w
    heaviest = np.int64(0)
    for b in range(n_branches):
        bags[BAG_SHARE, b] = bags[BAG_WEIGHT, b] if known > 0 else np.int64(1)
        if bags[BAG_SHARE, b] > bags[BAG_SHARE, heaviest]:
            heaviest = np.int64(b)
    if known == 0:
        known = np.int64(n_branches)
    if n_spread > 0:
        for i in range(lo, hi):
            if np.int64(branch[i]) >= 0:
                continue
            weight = labels[WEIGHT, i]
            if len(times) > 1:
                weight //= times[ids[i]]
            for b in range(n_branches):
                if b == heaviest or piece_of(weight, b, bags, known) > 0:
                    bags[BAG_N, b] += 1
    n_entries = np.int64(0)
    for back in range(n_branches):
        b = n_branches - 1 - back
        bags[BAG_BEGIN, b] = n_entries
        n_entries += bags[BAG_N, b]
    return n_entries, heaviest, known


@inlined
def part_entries(
    branch: np.ndarray,
    ids: np.ndarray,
    labels: np.ndarray,
    lo: int,
    hi: int,
    heaviest: int,
    spare_ids: np.ndarray,
    spare_labels: np.ndarray,
) -> None:
    """Move the entries lo .. hi of branch 1 to the front, those of branch 0 behind, each in their order.

    No entry is in pieces: one that may take every branch takes the heaviest whole. Every entry is written to both
    places, then one of them moves on: which way it goes cannot be predicted.
    """
    n_labels = np.uint64(len(labels))
    front = np.uint64(lo)
    n_back = np.uint64(0)
    for i in range(np.uint64(lo), np.uint64(hi)):
        row = ids[i]
        ids[front] = row
        spare_ids[n_back] = row
        for k in range(n_labels):
            label = labels[k, i]
            labels[k, front] = label
            spare_labels[k, n_back] = label
        is_front = np.uint64(heaviest if branch[i] < 0 else branch[i])
        front += is_front
        n_back += np.uint64(1) - is_front
    for k in range(n_back):
        ids[front + k] = spare_ids[k]
    for row in range(n_labels):
        for k in range(n_back):
            labels[row, front + k] = spare_labels[row, k]


@kernel
def move_entries(
    branch: np.ndarray,
    ids: np.ndarray,
    labels: np.ndarray,
    times: np.ndarray,
    lo: int,
    hi: int,
    to: int,
    n_branches: int,
    n_entries: int,
    heaviest: int,
    known: int,
    bags: np.ndarray,
    spare_ids: np.ndarray,
    spare_labels: np.ndarray,
) -> None:
    """Put the entries lo .. hi into their bags, from `to` on, each bag in the order of its entries."""
    n_labels = len(labels)
    if n_branches == 2 and to == lo and n_entries == hi - lo:
        part_entries(branch, ids, labels, lo, hi, heaviest, spare_ids, spare_labels)
        bags[BAG_BEGIN, 0] = lo + bags[BAG_N, 1]
        bags[BAG_BEGIN, 1] = lo
        return
    for i in range(np.uint64(lo), np.uint64(hi)):
        if branch[i] >= 0:
            bag = np.uint64(branch[i])
            at = bags[BAG_BEGIN, bag]
            bags[BAG_BEGIN, bag] = at + 1
            here = np.uint64(at)
            spare_ids[here] = ids[i]
            for row in range(np.uint64(n_labels)):
                spare_labels[row, here] = labels[row, i]
            continue
        times_here = np.int64(1) if len(times) == 1 else times[ids[i]]
        weight = labels[WEIGHT, i] // times_here
        rest = weight
        for b in range(n_branches):
            if b == heaviest:
                continue
            piece = piece_of(weight, b, bags, known)
            rest -= piece
            if piece > 0:
                at = bags[BAG_BEGIN, b]
                bags[BAG_BEGIN, b] = at + 1
                spare_ids[at] = ids[i]
                spare_labels[0, at] = labels[0, i]
                spare_labels[WEIGHT, at] = piece * times_here
        at = bags[BAG_BEGIN, heaviest]
        bags[BAG_BEGIN, heaviest] = at + 1
        spare_ids[at] = ids[i]
        spare_labels[0, at] = labels[0, i]
        spare_labels[WEIGHT, at] = rest * times_here
    first = np.uint64(to)
    for k in range(np.uint64(n_entries)):
        ids[first + k] = spare_ids[k]
    for row in range(n_labels):
        for k in range(np.uint64(n_entries)):
            labels[row, first + k] = spare_labels[row, k]
    for b in range(n_branches):
        bags[BAG_BEGIN, b] += to - bags[BAG_N, b]


@door
def count_bags(
    branch: np.ndarray,
    ids: np.ndarray,
    labels: np.ndarray,
    times: np.ndarray,
    n_branches: int,
    bags: np.ndarray,
) -> tuple[int, int, int]:
    """Count the entries of each branch of one node; returns as `count_entries`, what `fill_bags` asks for."""
    return count_entries(branch, ids, labels, times, 0, len(branch), n_branches, bags)


@door
def fill_bags(
    branch: np.ndarray,
    ids: np.ndarray,  # (n_entries of all branches,) int32: the entries of the node, replaced by those of the branches
    labels: np.ndarray,
    times: np.ndarray,
    n_branches: int,
    n_entries: int,
    heaviest: int,
    known: int,
    bags: np.ndarray,
    spare_ids: np.ndarray,
    spare_labels: np.ndarray,
) -> None:
    """Put the entries of one node into their bags, which then begin at bags[BAG_BEGIN] and have bags[BAG_N]."""
    move_entries(
        branch, ids, labels, times, 0, len(branch), 0, n_branches, n_entries, heaviest, known, bags, spare_ids,
        spare_labels,
    )  # fmt: skip
