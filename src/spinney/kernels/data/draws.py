"""Draw the bags of an ensemble: how often each row is in the bag of a tree.

Words: a *unit* is what is drawn, a row or a whole group; `order` lists the units that can be drawn, those of one
stratum side by side, stratum s at `begin[s]` .. `begin[s + 1]`; `counts` says how often a unit was drawn.
A bag is a pure function of (seed, tree): draws are keyed by their number, or by the unit where a unit's count must not
depend on the others.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined

from ..common.rng import S11, STEP, below, fold, fraction
from ..common.structs import DrawGuide, DrawStrata, PoissonRates

# Purposes of a draw, so that no two share their numbers: the letters of "bag", "part" and "last".
BAG = np.uint64(0x626167)
PART = np.uint64(0x70617274)
LAST = np.uint64(0x6C617374)
ONE = np.uint64(1)


@inlined
def bag_key(seed: np.uint64, tree: np.uint64) -> np.uint64:
    """The key of all draws for the bag of a tree."""
    return fold(fold(seed, BAG), tree)


@door
def draw_evenly(seed: np.uint64, tree: np.uint64, n_drawn: int, counts: np.ndarray) -> None:
    """Draw with replacement, all units alike; counts (n_units,) int32 begins as zeros."""
    key = bag_key(seed, tree)
    n_units = np.int64(len(counts))
    for k in range(n_drawn):
        counts[np.uint64(below(key, k, n_units))] += 1


@inlined
def find_unit(at: int, guide: DrawGuide) -> int:
    """The place in `order` whose share of the weight holds `at`: the last one with line[place] <= at."""
    bucket = np.int64(at) >> guide.shift
    low = np.int64(guide.start[bucket])
    high = np.int64(guide.start[bucket + 1])
    while low < high:
        middle = (low + high + 1) >> 1
        if guide.line[middle] <= at:
            low = middle
        else:
            high = middle - 1
    return low


@door
def draw_weighted(seed: np.uint64, tree: np.uint64, strata: DrawStrata, guide: DrawGuide, counts: np.ndarray) -> None:
    """Draw with replacement in proportion to integer weights, so many from each stratum; counts begin as zeros.

    The guide narrows the search to the units of one bucket: one or two in the mean where there is one stratum, and
    halved at each step where they are more.
    """
    order = strata.order
    key = bag_key(seed, tree)
    for s in range(len(strata.n_drawn)):
        stratum_key = fold(key, np.uint64(s))
        first = guide.line[strata.begin[s]]
        weight = guide.line[strata.begin[s + 1]] - first
        for k in range(strata.n_drawn[s]):
            place = find_unit(first + below(stratum_key, k, weight), guide)
            counts[np.int64(order[place])] += 1


@door
def choose_evenly(seed: np.uint64, tree: np.uint64, strata: DrawStrata, counts: np.ndarray) -> None:
    """Draw without replacement, the units of a stratum alike; counts begin as zeros.

    Selection sampling (Knuth, volume 2, algorithm 3.4.2 S): a unit is taken with the share of what is still wanted in
    what is left.
    """
    order = strata.order
    begin = strata.begin
    key = bag_key(seed, tree)
    for s in range(len(strata.n_drawn)):
        stratum_key = fold(key, np.uint64(s))
        n_left = np.int64(begin[s + 1] - begin[s])
        n_wanted = np.int64(strata.n_drawn[s])
        for place in range(begin[s], begin[s + 1]):
            # added, not jumped on: nobody can predict it
            is_taken = np.int64(below(stratum_key, n_left, n_left) < n_wanted)
            counts[np.int64(order[place])] = is_taken
            n_wanted -= is_taken
            n_left -= 1


@door
def fill_fractions(seed: np.uint64, tree: np.uint64, order: np.ndarray, fractions: np.ndarray) -> None:
    """Write one uniform draw in (0, 1] for each unit of `order`, keyed by the unit."""
    key = bag_key(seed, tree)
    for place in range(len(order)):
        word = fold(key, np.uint64(order[place])) >> S11
        fractions[place] = np.float64(word + ONE) * STEP


@door
def draw_poisson(
    seed: np.uint64,
    tree: np.uint64,
    order: np.ndarray,
    rates: PoissonRates,
    first: int,  # the unit whose count is counts[0]
    counts: np.ndarray,
) -> int:
    """Draw the count of each unit of `order` from a Poisson distribution, by the unit alone; return the sum of all.

    A large mean is drawn as a sum of pieces with small ones, each by inversion of one uniform draw: the chance of 0
    stays far from the end of float64.
    """
    n_pieces = rates.n_pieces
    key = bag_key(seed, tree)
    n_units = np.int64(len(order))
    is_alike = len(n_pieces) == 1
    n_drawn = np.int64(0)
    for place in range(n_units):
        unit = np.int64(order[place])
        unit_key = fold(key, np.uint64(unit))
        kind = np.int64(0) if is_alike else np.int64(place)
        mean = rates.mean[kind]
        count = np.int64(0)
        for piece in range(n_pieces[kind]):
            # the first piece takes the key itself: most units have but one
            word = unit_key if piece == 0 else fold(unit_key, np.uint64(piece))
            at = fraction(word)
            chance = rates.none[kind]
            k = np.int64(0)
            while at >= chance > 0.0:
                at -= chance
                k += 1
                chance *= mean / np.float64(k)
            count += k
        counts[unit - first] = count
        n_drawn += count
    return n_drawn


@inlined
def draw_last(seed: np.uint64, tree: np.uint64, n_units: int) -> int:
    """Draw the one unit of a bag that would be empty, as its place in `order`."""
    return below(fold(bag_key(seed, tree), LAST), 0, n_units)


@door
def part_bag(
    seed: np.uint64,
    tree: np.uint64,
    share: int,  # of the first part, in units of 2**-62
    groups: np.ndarray,  # (n_rows,) int32; empty: each row is a unit of its own
    counts: np.ndarray,  # (n_rows,) int32
    parts: np.ndarray,  # (2, n_rows) int32, written: the counts of the rows of either part
) -> None:
    """Give the rows of a bag to one of two parts, all rows of a group to the same.

    Units are ranked by a key of their own. Where all would fall into one part, the first or the last unit of the bag
    goes to the other; a bag of one unit goes to the first part.
    """
    key = fold(fold(seed, PART), tree)
    is_grouped = len(groups) > 0
    lowest = np.int64(1) << 62
    highest = np.int64(-1)
    for row in range(len(counts)):
        if counts[row] > 0:
            unit = np.int64(groups[row]) if is_grouped else np.int64(row)
            rank = np.int64(fold(key, np.uint64(unit)) >> np.uint64(2))
            if rank < lowest:
                lowest = rank
            if rank > highest:
                highest = rank
    limit = np.int64(share)
    if limit > highest:
        limit = highest
    if limit <= lowest:
        limit = lowest + 1
    for row in range(len(counts)):
        unit = np.int64(groups[row]) if is_grouped else np.int64(row)
        is_second = np.int64(fold(key, np.uint64(unit)) >> np.uint64(2)) >= limit
        count = counts[row]
        parts[0, row] = 0 if is_second else count
        parts[1, row] = count if is_second else 0
