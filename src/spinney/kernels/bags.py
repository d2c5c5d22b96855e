"""Put the entries of a node into bags, one per branch: rows, and pieces of rows whose value is missing.

The pieces of a row add up to it exactly: the heaviest bag gets what rounding leaves. A row of whole weight w is w rows
of weight 1, whose pieces are those of one, times w.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined, kernel
from spinney._types import BAG_BEGIN, BAG_N, BAG_WEIGHT, MISSING_CODE, MULTIWAY, WEIGHT


@inlined
def piece_of(share: int, bag: int, bags: np.ndarray, known: int) -> int:
    """Piece of a unit of weight that a bag gets, rounded down."""
    return np.int64(np.floor(np.float64(share) * (np.float64(bags[BAG_WEIGHT, bag]) / np.float64(known))))


@kernel
def count_entries(
    column: np.ndarray,
    ids: np.ndarray,
    labels: np.ndarray,
    times: np.ndarray,
    lo: int,
    hi: int,
    kind: int,
    cut: int,
    missing: int,
    n_branches: int,
    bags: np.ndarray,
) -> tuple[int, int, int]:
    """Count the entries of every bag. missing: the bag of missing values, -1: they are spread over all.

    Bags begin at 0, the last one first. Returns the number of entries in all bags, the heaviest bag by known entries
    (the first among equals) and the weight of known entries.
    """
    for b in range(n_branches):
        bags[BAG_WEIGHT, b] = 0
        bags[BAG_N, b] = 0
    n_spread = np.int64(0)
    known = np.int64(0)
    is_unit = len(labels) == 1
    for i in range(np.uint64(lo), np.uint64(hi)):
        b = bag_of(np.int64(column[i, np.uint64(0)]), kind, cut, missing)
        if b < 0:
            n_spread += 1
            continue
        w = np.int64(1) if is_unit else labels[WEIGHT, i]
        bags[BAG_WEIGHT, b] += w
        bags[BAG_N, b] += 1
        known += w
    heaviest = np.int64(0)
    for b in range(n_branches):
        if bags[BAG_WEIGHT, b] > bags[BAG_WEIGHT, heaviest]:
            heaviest = np.int64(b)
    if n_spread > 0:
        for i in range(lo, hi):
            if np.int64(column[i, 0]) != MISSING_CODE:
                continue
            share = labels[WEIGHT, i]
            if len(times) > 1:
                share //= times[ids[i]]
            for b in range(n_branches):
                if b == heaviest or piece_of(share, b, bags, known) > 0:
                    bags[BAG_N, b] += 1
    n_entries = np.int64(0)
    for back in range(n_branches):
        b = n_branches - 1 - back
        bags[BAG_BEGIN, b] = n_entries
        n_entries += bags[BAG_N, b]
    return n_entries, heaviest, known


@inlined
def bag_of(code: int, kind: int, cut: int, missing: int) -> int:
    """The bag of a code."""
    if code == MISSING_CODE:
        return missing
    if kind == MULTIWAY:
        return code - 1
    return np.int64(code > cut)


@kernel
def move_entries(
    column: np.ndarray,
    ids: np.ndarray,
    labels: np.ndarray,
    times: np.ndarray,
    lo: int,
    hi: int,
    kind: int,
    cut: int,
    missing: int,
    n_branches: int,
    n_entries: int,
    heaviest: int,
    known: int,
    bags: np.ndarray,
    spare_ids: np.ndarray,
    spare_labels: np.ndarray,
) -> None:
    """Put the entries lo .. hi into their bags, from lo on, each bag in the order of its entries."""
    n_labels = len(labels)
    for i in range(np.uint64(lo), np.uint64(hi)):
        b = bag_of(np.int64(column[i, np.uint64(0)]), kind, cut, missing)
        if b >= 0:
            at = bags[BAG_BEGIN, b]
            bags[BAG_BEGIN, b] = at + 1
            spare_ids[at] = ids[i]
            for row in range(n_labels):
                spare_labels[row, at] = labels[row, i]
            continue
        times_here = np.int64(1) if len(times) == 1 else times[ids[i]]
        share = labels[WEIGHT, i] // times_here
        rest = share
        for b in range(n_branches):
            if b == heaviest:
                continue
            piece = piece_of(share, b, bags, known)
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
    for k in range(np.uint64(n_entries)):
        ids[np.uint64(lo) + k] = spare_ids[k]
    for row in range(n_labels):
        for k in range(np.uint64(n_entries)):
            labels[row, np.uint64(lo) + k] = spare_labels[row, k]
    for b in range(n_branches):
        bags[BAG_BEGIN, b] += lo - bags[BAG_N, b]


@door
def count_bags(
    column: np.ndarray,  # (n_entries, 1) uint16: the codes of the tested feature
    ids: np.ndarray,
    labels: np.ndarray,
    times: np.ndarray,
    kind: int,
    cut: int,  # last code of branch 0
    missing: int,  # branch of missing values; -1: every branch
    n_branches: int,
    bags: np.ndarray,  # written
) -> tuple[int, int, int]:
    """Count the entries of each branch of one node; returns as `count_entries`, what `fill_bags` asks for."""
    return count_entries(column, ids, labels, times, 0, len(column), kind, cut, missing, n_branches, bags)


@door
def fill_bags(
    column: np.ndarray,
    ids: np.ndarray,  # (n_entries of all branches,) int32: the entries of the node, replaced by those of the branches
    labels: np.ndarray,
    times: np.ndarray,
    n: int,  # entries of the node
    kind: int,
    cut: int,
    missing: int,
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
        column, ids, labels, times, 0, n, kind, cut, missing, n_branches, n_entries, heaviest, known, bags, spare_ids,
        spare_labels,
    )  # fmt: skip
