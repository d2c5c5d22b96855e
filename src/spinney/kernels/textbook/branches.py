"""Put the entries of a node into its branches: rows, and pieces of rows whose value is missing.

The pieces of a row add up to it exactly: the heaviest branch gets what rounding leaves. A row of whole weight w is w
rows of weight 1, whose pieces are those of one, times w.

  before    lo ........................ hi          branch 0, 1, 0, every, 2, ...
  after     lo .. branch 2 | branch 1 | branch 0    each in the order of its entries; longer where rows are in pieces
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined, kernel
from spinney._types import TARGET, WEIGHT

from ..common.structs import Branches, Entries, Parting


@inlined
def piece_of(weight: int, share: int, known: int) -> int:
    """Piece of a unit of weight that a branch with this share gets, rounded down."""
    return np.int64(np.floor(np.float64(weight) * (np.float64(share) / np.float64(known))))


@kernel
def count_entries(
    lo: int, hi: int, n_branches: int, entries: Entries, times: np.ndarray, branches: Branches
) -> Parting:
    """Count the entries that entries lo .. hi are in each branch, which `branches.of_entry` says.

    Branches begin at 0, the last one first. A row that takes every branch is shared out as the known entries are;
    evenly where there are none.
    """
    of_entry = branches.of_entry
    weights = branches.weight
    counts = branches.n
    shares = branches.share
    addends = entries.addends
    for b in range(n_branches):
        weights[b] = 0
        counts[b] = 0
    n_spread = np.int64(0)
    known = np.int64(0)
    is_unit = len(addends) == 1
    for i in range(np.uint64(lo), np.uint64(hi)):
        b = np.int64(of_entry[i])
        if b < 0:
            n_spread += 1
            continue
        at = np.uint64(b)
        w = np.int64(1) if is_unit else addends[WEIGHT, i]
        weights[at] += w
        counts[at] += 1
        known += w
    heaviest = np.int64(0)
    for b in range(n_branches):
        shares[b] = weights[b] if known > 0 else np.int64(1)
        if shares[b] > shares[heaviest]:
            heaviest = np.int64(b)
    if known == 0:
        known = np.int64(n_branches)
    if n_spread > 0:
        for i in range(lo, hi):
            if np.int64(of_entry[i]) >= 0:
                continue
            weight = addends[WEIGHT, i]
            if len(times) > 1:
                weight //= times[entries.ids[i]]
            for b in range(n_branches):
                if b == heaviest or piece_of(weight, shares[b], known) > 0:
                    counts[b] += 1
    n_entries = np.int64(0)
    for back in range(n_branches):
        b = n_branches - 1 - back
        branches.begin[b] = n_entries
        n_entries += counts[b]
    return Parting(n_branches, n_entries, heaviest, known)


@inlined
def part_in_two(lo: int, hi: int, heaviest: int, of_entry: np.ndarray, entries: Entries, spare: Entries) -> None:
    """Move the entries lo .. hi of branch 1 to the front, those of branch 0 behind, each in their order.

    No entry is in pieces: one that may take every branch takes the heaviest whole. Every entry is written to both
    places, then one of them moves on: which way it goes cannot be predicted.
    """
    ids = entries.ids
    addends = entries.addends
    spare_ids = spare.ids
    spare_addends = spare.addends
    n_addends = np.uint64(len(addends))
    front = np.uint64(lo)
    n_back = np.uint64(0)
    for i in range(np.uint64(lo), np.uint64(hi)):
        row = ids[i]
        ids[front] = row
        spare_ids[n_back] = row
        for k in range(n_addends):
            addend = addends[k, i]
            addends[k, front] = addend
            spare_addends[k, n_back] = addend
        is_front = np.uint64(heaviest if of_entry[i] < 0 else of_entry[i])
        front += is_front
        n_back += np.uint64(1) - is_front
    for k in range(n_back):
        ids[front + k] = spare_ids[k]
    for row in range(n_addends):
        for k in range(n_back):
            addends[row, front + k] = spare_addends[row, k]


@inlined
def write_piece(i: int, b: int, weight: int, entries: Entries, spare: Entries, begin: np.ndarray) -> None:
    """Append a piece of entry i to a branch."""
    at = begin[b]
    begin[b] = at + 1
    spare.ids[at] = entries.ids[i]
    spare.addends[TARGET, at] = entries.addends[TARGET, i]
    spare.addends[WEIGHT, at] = weight


@kernel
def move_entries(
    lo: int,
    hi: int,
    to: int,
    parting: Parting,
    entries: Entries,
    spare: Entries,
    times: np.ndarray,
    branches: Branches,
) -> None:
    """Put the entries lo .. hi into their branches, from `to` on, each branch in the order of its entries."""
    ids = entries.ids
    addends = entries.addends
    spare_ids = spare.ids
    spare_addends = spare.addends
    of_entry = branches.of_entry
    begin = branches.begin
    shares = branches.share
    n_addends = len(addends)
    n_branches = parting.n_branches
    n_entries = parting.n_entries
    heaviest = parting.heaviest
    if n_branches == 2 and to == lo and n_entries == hi - lo:
        part_in_two(lo, hi, heaviest, of_entry, entries, spare)
        begin[0] = lo + branches.n[1]
        begin[1] = lo
        return
    for i in range(np.uint64(lo), np.uint64(hi)):
        if of_entry[i] >= 0:
            b = np.uint64(of_entry[i])
            at = begin[b]
            begin[b] = at + 1
            here = np.uint64(at)
            spare_ids[here] = ids[i]
            for row in range(np.uint64(n_addends)):
                spare_addends[row, here] = addends[row, i]
            continue
        times_here = np.int64(1) if len(times) == 1 else times[ids[i]]
        weight = addends[WEIGHT, i] // times_here
        rest = weight
        for b in range(n_branches):
            if b == heaviest:
                continue
            piece = piece_of(weight, shares[b], parting.known)
            rest -= piece
            if piece > 0:
                write_piece(i, b, piece * times_here, entries, spare, begin)
        write_piece(i, heaviest, rest * times_here, entries, spare, begin)
    first = np.uint64(to)
    for k in range(np.uint64(n_entries)):
        ids[first + k] = spare_ids[k]
    for row in range(n_addends):
        for k in range(np.uint64(n_entries)):
            addends[row, first + k] = spare_addends[row, k]
    for b in range(n_branches):
        begin[b] += to - branches.n[b]


# --- One node, for people ------------------------------------------------------------------------------------------


@door
def count_branches(n_branches: int, entries: Entries, times: np.ndarray, branches: Branches) -> Parting:
    """Count the entries of each branch of one node, for `fill_branches`."""
    return count_entries(0, len(branches.of_entry), n_branches, entries, times, branches)


@door
def fill_branches(
    parting: Parting,
    entries: Entries,  # room for those of all branches, which take the place of the node's
    spare: Entries,  # the same room
    times: np.ndarray,
    branches: Branches,
) -> None:
    """Put the entries of one node into its branches: `branches.n` of them from `branches.begin` on."""
    move_entries(0, len(branches.of_entry), 0, parting, entries, spare, times, branches)
