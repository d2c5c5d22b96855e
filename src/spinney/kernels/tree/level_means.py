"""Best subset of a category's levels by squared error, where nothing is missing or constrains it.

The same subset as `subsets.subset_moments` finds, which orders and walks every level of every node; forests of numbers
with categories of thousands of levels spent most of their time there. What is saved:

  listing    the levels of a node come from its rows: from sorted rows, from bits of the codes they have, or, where
             codes are few for the rows, from a histogram; in the order of codes each time
  bound      no subset scores more than all levels apart: where that is less than the best so far, nothing is ordered
  order      means fall into buckets, about one for each level; runs of a few are finished by insertion
  luck       is asked for cuts that would win without it, and what it rests on is summed up when the first is met
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined
from spinney._types import (
    BIN_CODE,
    BIN_SUM,
    BIN_WEIGHT,
    LEARNED,
    MISSING_CODE,
    MOST_BUCKETS,
    N_CODES,
    N_MISSING,
    S_ALL,
    SMALL_SHIFT,
    TARGET,
    W_ALL,
    WEIGHT,
)

from ..common.bits import bit_place
from ..common.category_chance import least_luck, less_luck, luck_room
from ..common.sorting import INSERTION_ROWS, make_keys
from ..common.structs import Candidate, LevelScratch, OpenNode, Rows, Scratch, Settings, Table
from ..common.ties import bar_above, below_all, floor_below
from .candidates import none_better
from .category_chance import chance_of_numbers
from .level_bits import mark_codes

BITS = np.uint64(SMALL_SHIFT)
NONE, ONE, SIX, LAST_BIT = np.uint64(0), np.uint64(1), np.uint64(6), np.uint64(63)
CODES_PER_ROW = 2  # a histogram of up to so many codes for each row
FEW_LEVELS = 16  # ranks are counted, four comparisons at a time by the processor
MOST_STEPS = 16  # of an insertion for each level; beyond, Shell's sort takes over
SPAN = 3.0  # mean deviations to either side of the mean that buckets cover; what lies outside falls into the last
ROOM = 1.0 + 2.0**-30  # for the rounding of a sum over levels


# --- The levels of a node -------------------------------------------------------------------------------------------


@inlined
def list_sorted(feature: int, node: OpenNode, rows: Rows, scratch: Scratch) -> int:
    """List the levels of few rows; return how many, or -1 where a value is missing."""
    addends, bins, keys = rows.addends, scratch.bins, scratch.keys
    is_unit = len(addends) == 1
    n = node.hi - node.lo
    side = make_keys(rows.codes, node.lo, node.hi, feature, SMALL_SHIFT, keys, scratch.counts)
    if np.int64(keys[side, 0]) >> SMALL_SHIFT == MISSING_CODE:
        return np.int64(-1)
    mask = (ONE << BITS) - ONE
    first = np.uint64(node.lo)
    last = NONE
    n_bins = np.int64(0)
    total = np.int64(0)
    weight = np.int64(0)
    for k in range(np.uint64(n)):
        key = np.uint64(keys[side, k])
        code = key >> BITS
        i = first + (key & mask)
        if code != last:
            last = code
            n_bins += 1
            total = np.int64(0)
            weight = np.int64(0)
        total += addends[TARGET, i]
        weight += np.int64(1) if is_unit else addends[WEIGHT, i]
        bins[BIN_CODE, n_bins - 1] = np.int64(code)
        bins[BIN_SUM, n_bins - 1] = total
        bins[BIN_WEIGHT, n_bins - 1] = weight
    return n_bins


@inlined
def list_seen(feature: int, n_codes: int, node: OpenNode, rows: Rows, bins: np.ndarray, levels: LevelScratch) -> int:
    """List the levels of rows that are fewer than codes; return how many, or -1 where a value is missing."""
    codes, addends = rows.codes, rows.addends
    seen, place = levels.bitset, levels.place
    is_unit = len(addends) == 1
    column = np.uint64(feature)
    first = np.uint64(node.lo)
    end = np.uint64(node.hi)
    n_words = mark_codes(feature, n_codes, node.lo, node.hi, codes, seen)
    if seen[0] & ONE != NONE:
        return np.int64(-1)
    n_bins = NONE
    for w in range(n_words):
        word = seen[w]
        while word != NONE:
            rest = word & (word - ONE)
            code = (w << SIX) + bit_place(word ^ rest)
            word = rest
            place[code] = np.int32(n_bins)
            bins[BIN_CODE, n_bins] = np.int64(code)
            bins[BIN_SUM, n_bins] = 0
            bins[BIN_WEIGHT, n_bins] = 0
            n_bins += ONE
    for i in range(first, end):
        b = np.uint64(place[np.uint64(codes[i, column])])
        bins[BIN_SUM, b] += addends[TARGET, i]
        bins[BIN_WEIGHT, b] += np.int64(1) if is_unit else addends[WEIGHT, i]
    return np.int64(n_bins)


@inlined
def list_summed(feature: int, n_codes: int, node: OpenNode, rows: Rows, histogram: np.ndarray, bins: np.ndarray) -> int:
    """The same of many rows, by a histogram that is zero before and after."""
    codes, addends = rows.codes, rows.addends
    is_unit = len(addends) == 1
    column = np.uint64(feature)
    for i in range(np.uint64(node.lo), np.uint64(node.hi)):
        at = np.uint64(codes[i, column]) << ONE
        histogram[at] += addends[TARGET, i]
        histogram[at + ONE] += np.int64(1) if is_unit else addends[WEIGHT, i]
    is_known = histogram[1] == 0
    n_bins = NONE
    for code in range(np.uint64(n_codes + 1)):
        at = code << ONE
        total = histogram[at]
        weight = histogram[at + ONE]
        histogram[at] = 0
        histogram[at + ONE] = 0
        if weight != 0:
            bins[BIN_CODE, n_bins] = np.int64(code)
            bins[BIN_SUM, n_bins] = total
            bins[BIN_WEIGHT, n_bins] = weight
            n_bins += np.uint64(is_known)
    return np.int64(n_bins) if is_known else np.int64(-1)


@inlined
def list_present(feature: int, n_codes: int, node: OpenNode, rows: Rows, scratch: Scratch, levels: LevelScratch) -> int:
    """List the levels of a node in `bins`, in the order of codes; return how many, or -1 where a value is missing."""
    n = node.hi - node.lo
    if n_codes <= CODES_PER_ROW * n:
        return list_summed(feature, n_codes, node, rows, scratch.histogram, scratch.bins)
    if n <= INSERTION_ROWS:
        return list_sorted(feature, node, rows, scratch)
    return list_seen(feature, n_codes, node, rows, scratch.bins, levels)


# --- Their order ----------------------------------------------------------------------------------------------------


@inlined
def rank_few(n: int, levels: LevelScratch) -> None:
    """Put levels in the order of their scores, then of their places, by counting what comes before each."""
    scores, ranked, order = levels.scores, levels.ranked, levels.order
    n_levels = np.uint64(n)
    for b in range(n_levels):
        score = scores[b]
        rank = np.int64(0)
        for other in range(n_levels):
            rank += np.int64((scores[other] < score) | ((scores[other] == score) & (other < b)))
        order[np.uint64(rank)] = np.int32(b)
        ranked[np.uint64(rank)] = score


@inlined
def fill_buckets(n: int, levels: LevelScratch, counts: np.ndarray) -> None:
    """Put levels in the order of buckets of scores, in one of which they keep that of their places.

    Buckets are of one width, so that most may fall into a few: then insertion gives up.
    """
    scores, ranked, order = levels.scores, levels.ranked, levels.order
    n_levels = np.uint64(n)
    mean = 0.0
    for b in range(n_levels):
        mean += scores[b]
    mean /= np.float64(n)
    deviation = 0.0
    for b in range(n_levels):
        deviation += abs(scores[b] - mean)
    deviation /= np.float64(n)
    n_buckets = np.int64(32)
    while n_buckets < n and n_buckets < MOST_BUCKETS:
        n_buckets *= 2
    least = mean - SPAN * deviation
    scale = np.float64(n_buckets) / (2.0 * SPAN * deviation) if deviation > 0.0 else 0.0
    most = np.float64(n_buckets - 1)
    for b in range(np.uint64(n_buckets)):
        counts[b] = np.int32(0)
    for b in range(n_levels):
        bucket = np.int32(min(max((scores[b] - least) * scale, 0.0), most))
        order[b] = bucket  # for a moment
        counts[np.uint64(bucket)] += np.int32(1)
    at = np.int32(0)
    for b in range(np.uint64(n_buckets)):
        here = counts[b]
        counts[b] = at
        at = np.int32(at + here)
    place = levels.place
    for b in range(n_levels):
        bucket = np.uint64(order[b])
        at = counts[bucket]
        counts[bucket] = np.int32(at + 1)
        place[np.uint64(at)] = np.int32(b)
        ranked[np.uint64(at)] = scores[b]
    for b in range(n_levels):
        order[b] = place[b]


@inlined
def insert_by_score(n: int, ranked: np.ndarray, order: np.ndarray) -> bool:
    """Sort by score, then by place, by insertion: whether it was done in few steps, so that all is in order."""
    n_steps = np.int64(0)
    for k in range(1, n):
        score = ranked[k]
        if ranked[k - 1] < score:
            continue
        level = order[k]
        at = np.int64(k)
        while at > 0 and (ranked[at - 1] > score or (ranked[at - 1] == score and order[at - 1] > level)):
            ranked[at] = ranked[at - 1]
            order[at] = order[at - 1]
            at -= 1
        ranked[at] = score
        order[at] = level
        n_steps += k - at
        if n_steps > MOST_STEPS * n:
            return False
    return True


@inlined
def shell_sort(n: int, ranked: np.ndarray, order: np.ndarray) -> None:
    """Sort by score, then by place, whatever the order was."""
    gap = np.int64(n)
    while gap > 1:
        gap = max(gap * 4 // 9, np.int64(1))
        for k in range(gap, n):
            score = ranked[k]
            level = order[k]
            at = np.int64(k)
            while at >= gap and (ranked[at - gap] > score or (ranked[at - gap] == score and order[at - gap] > level)):
                ranked[at] = ranked[at - gap]
                order[at] = order[at - gap]
                at -= gap
            ranked[at] = score
            order[at] = level


@inlined
def order_levels(n: int, slack: float, levels: LevelScratch, counts: np.ndarray) -> None:
    """Write the places of levels to `order`, by score, then by code; scores within `slack` count as equal.

    As `common.bins.order_bins`, for levels that stand in the order of codes and stay there.
    """
    ranked, order = levels.ranked, levels.order
    if n <= FEW_LEVELS:
        rank_few(n, levels)
    else:
        fill_buckets(n, levels, counts)
    for _ in range(2):
        if not insert_by_score(n, ranked, order):
            shell_sort(n, ranked, order)
        n_equal = np.int64(0)
        for b in range(np.uint64(1), np.uint64(n)):
            if ranked[b] != ranked[b - ONE] and ranked[b] - ranked[b - ONE] <= slack:
                ranked[b] = ranked[b - ONE]
                n_equal += 1
        if n_equal == 0:
            return


# --- The search -----------------------------------------------------------------------------------------------------


@inlined
def is_free(settings: Settings) -> bool:
    """Whether subsets are judged by squared error, and nothing but chance is held against them."""
    return (
        settings.is_plain
        and settings.missing == LEARNED
        and settings.min_samples_leaf == 1
        and settings.min_weight_leaf <= 1
    )


@inlined
def score_levels_apart(n_bins: int, centre: int, bins: np.ndarray, scores: np.ndarray) -> float:
    """Write the means of levels to `scores`; return what they score as branches of their own."""
    apart = 0.0
    for b in range(np.uint64(n_bins)):
        weight = np.float64(bins[BIN_WEIGHT, b])
        total = np.float64(bins[BIN_SUM, b] - centre * bins[BIN_WEIGHT, b])
        scores[b] = np.float64(bins[BIN_SUM, b]) / weight
        apart += total * total / weight
    return apart


@inlined
def walk_levels(
    best: Candidate,
    n_bins: int,
    n_codes: int,
    node: OpenNode,
    rows: Rows,
    table: Table,
    settings: Settings,
    scratch: Scratch,
) -> Candidate:
    """Best cut of the levels in their order; its subset is left in the bitset of `scratch.levels`."""
    bins, totals, order, roots_of = scratch.bins, scratch.totals, scratch.levels.order, scratch.levels.ranked
    centre = node.centre
    weight = totals[W_ALL]
    total = totals[S_ALL] - centre * weight
    all_roots = 0.0
    for k in range(np.uint64(n_bins)):
        roots_of[k] = np.sqrt(np.float64(bins[BIN_WEIGHT, np.uint64(order[k])]))
    for k in range(np.uint64(n_bins)):
        all_roots += roots_of[k]
    chance = chance_of_numbers(n_codes, n_bins, all_roots, node, rows, settings, table.xlogx, totals)
    least = least_luck(chance, weight)
    top = best.score
    low = below_all(top)
    room = luck_room(chance, top)
    cut = np.int64(-1)
    w_left = np.int64(0)
    left = np.int64(0)
    roots = 0.0
    for k in range(np.uint64(n_bins - 1)):
        b = np.uint64(order[k])
        w = bins[BIN_WEIGHT, b]
        w_left += w
        left += bins[BIN_SUM, b] - centre * w
        roots += roots_of[k]
        wa = np.float64(w_left)
        wb = np.float64(weight - w_left)
        a = np.float64(left)
        c = np.float64(total - left)
        rise = a * a * wb + c * c * wa
        run = wa * wb
        spread = roots * (all_roots - roots)
        if rise < low * run or rise + room * run < spread * (least.first + spread * least.second):
            continue
        score = a * a / wa + c * c / wb
        if score < floor_below(top):
            continue
        score = less_luck(score, chance, roots, w_left, weight - w_left)
        if score > bar_above(top):
            top = score
            low = below_all(top)
            room = luck_room(chance, top)
            cut = np.int64(k)
    if cut < 0:
        return none_better(best)
    subset = scratch.levels.bitset
    for w in range(np.uint64((n_codes + 63) >> 6)):
        subset[w] = NONE
    for k in range(np.uint64(cut + 1)):
        level = np.uint64(bins[BIN_CODE, np.uint64(order[k])] - 1)
        subset[level >> SIX] |= ONE << (level & LAST_BIT)
    return Candidate(top, cut, np.int64(-1), np.int64(1), best.n_ties, np.inf)


@inlined
def scan_level_means(
    best: Candidate, feature: int, node: OpenNode, rows: Rows, table: Table, settings: Settings, scratch: Scratch
) -> tuple[bool, Candidate]:
    """Best subset by mean target; False where a value is missing, so that the long way must be gone."""
    bins, totals, levels = scratch.bins, scratch.totals, scratch.levels
    n_codes = table.features[N_CODES, feature]
    n_bins = list_present(feature, n_codes, node, rows, scratch, levels)
    if n_bins < 0:
        return False, best
    totals[N_MISSING] = 0
    if n_bins < 2:
        return True, none_better(best)
    if score_levels_apart(n_bins, node.centre, bins, levels.scores) * ROOM < floor_below(best.score):
        return True, none_better(best)
    order_levels(n_bins, settings.value_slack, levels, scratch.counts)
    return True, walk_levels(best, n_bins, n_codes, node, rows, table, settings, scratch)
