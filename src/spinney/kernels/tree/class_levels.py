"""Best subset of a category's levels for three classes or more by Gini, on packed addends: the search of forests.

The same subset as `subsets.subset_classes` finds, which serves where a value is missing or addends are not packed:

  listing      levels and classes of the node alone, side by side; of few rows the levels come from bits of their codes
  bound        no subset scores more than all levels apart: where that is less than the best so far, nothing is tried
  few levels   every subset, by products of levels: its sums of squares are those of a smaller one and a few products
  more         the best prefix in the order of the first principal component (`components`)
  luck         is asked for where a cut would win without it
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined
from spinney._types import (
    BIN_CODE,
    BIN_WEIGHT,
    EXHAUSTIVE_LEVELS,
    HELD,
    LEFT,
    MISSING_CODE,
    N_CODES,
    N_MISSING,
    W_ALL,
)

from ..common.bits import bit_place
from ..common.category_chance import TWO_LEVELS, least_luck, least_worth, less_luck, luck_room, sum_roots
from ..common.structs import (
    Candidate,
    Chance,
    LevelScratch,
    OpenNode,
    Rows,
    Scratch,
    Settings,
    SubsetScratch,
    Table,
)
from ..common.ties import NO_SCORE, bar_above, floor_below
from .candidates import none_better
from .category_chance import chance_of_classes
from .components import score_levels
from .feature_order import source_of
from .level_bits import mark_codes
from .level_means import order_levels

NONE, ONE, SIX, LAST_BIT, S16 = np.uint64(0), np.uint64(1), np.uint64(6), np.uint64(63), np.uint64(16)
LOW_HALF = np.uint64(0xFFFF)
ROOM = 1.0 + 2.0**-30  # for the rounding of a sum over levels
SHARE_SLACK = 1e-12  # coordinates are sums of products of shares, at most 1


# --- The levels of a node -------------------------------------------------------------------------------------------


@inlined
def list_few(feature: int, n_codes: int, node: OpenNode, rows: Rows, scratch: Scratch, levels: LevelScratch) -> int:
    """List the levels of rows that are fewer than codes; return how many, or -1 where a value is missing."""
    codes, addends = rows.codes, scratch.packed.addends
    histogram, bins, place = scratch.histogram, scratch.bins, levels.place
    column = np.uint64(feature)
    first = np.uint64(node.lo)
    wide = np.uint64(node.n_present)
    n_words = mark_codes(feature, n_codes, node.lo, node.hi, rows.codes, levels.bitset)
    if levels.bitset[0] & ONE != NONE:
        return np.int64(-1)
    n_bins = NONE
    for w in range(n_words):
        word = levels.bitset[w]
        while word != NONE:
            rest = word & (word - ONE)
            code = (w << SIX) + bit_place(word ^ rest)
            word = rest
            place[code] = np.int32(n_bins)
            bins[BIN_CODE, n_bins] = np.int64(code)
            bins[BIN_WEIGHT, n_bins] = 0
            n_bins += ONE
    for k in range(np.uint64(node.hi - node.lo)):
        b = np.uint64(place[np.uint64(codes[first + k, column])])
        addend = np.uint64(addends[k])
        w = np.int64(addend & LOW_HALF)
        histogram[b * wide + (addend >> S16)] += w
        bins[BIN_WEIGHT, b] += w
    return np.int64(n_bins)


@inlined
def list_many(feature: int, n_codes: int, node: OpenNode, rows: Rows, scratch: Scratch) -> int:
    """The same of many rows: sums of levels are moved to the head of the histogram, where they leave no gaps."""
    addends, histogram, bins = scratch.packed.addends, scratch.histogram, scratch.bins
    codes, begin, at = source_of(feature, node.lo, node.hi, rows)
    column = np.uint64(at)
    first = np.uint64(begin)
    wide = np.uint64(node.n_present)
    for k in range(np.uint64(node.hi - node.lo)):
        addend = np.uint64(addends[k])
        histogram[np.uint64(codes[first + k, column]) * wide + (addend >> S16)] += np.int64(addend & LOW_HALF)
    n_bins = NONE
    is_known = True
    for code in range(np.uint64(n_codes + 1)):
        weight = np.int64(0)
        for k in range(wide):
            weight += histogram[code * wide + k]
        if weight == 0:
            continue
        if code == np.uint64(MISSING_CODE):
            is_known = False
        for k in range(wide):
            held = histogram[code * wide + k]
            histogram[code * wide + k] = 0
            if is_known:
                histogram[n_bins * wide + k] = held
        bins[BIN_CODE, n_bins] = np.int64(code)
        bins[BIN_WEIGHT, n_bins] = weight
        n_bins += np.uint64(is_known)
    return np.int64(n_bins) if is_known else np.int64(-1)


@inlined
def score_apart(n_bins: int, n_present: int, histogram: np.ndarray, bins: np.ndarray) -> float:
    """What the levels score as branches of their own."""
    wide = np.uint64(n_present)
    apart = 0.0
    for b in range(np.uint64(n_bins)):
        power = np.int64(0)
        for k in range(wide):
            held = histogram[b * wide + k]
            power += held * held
        apart += np.float64(power) / np.float64(bins[BIN_WEIGHT, b])
    return apart


# --- The search -----------------------------------------------------------------------------------------------------


@inlined
def score_prefixes(
    n_bins: int,
    node: OpenNode,
    weight: int,
    histogram: np.ndarray,
    bins: np.ndarray,
    sums: np.ndarray,
    levels: LevelScratch,
) -> float:
    """Write what each prefix of the levels in their order scores to levels.scores; return the best of these."""
    wide = np.uint64(node.n_present)
    for k in range(wide):
        sums[LEFT, k] = 0
    top = NO_SCORE
    w_left = np.int64(0)
    for at in range(np.uint64(n_bins - 1)):
        b = np.uint64(levels.order[at])
        w_left += bins[BIN_WEIGHT, b]
        power_left = np.int64(0)
        power_right = np.int64(0)
        for k in range(wide):
            left = sums[LEFT, k] + histogram[b * wide + k]
            right = sums[HELD, k] - left
            sums[LEFT, k] = left
            power_left += left * left
            power_right += right * right
        wa = np.float64(w_left)
        wb = np.float64(weight - w_left)
        levels.scores[at] = (np.float64(power_left) * wb + np.float64(power_right) * wa) / (wa * wb)
        top = max(top, levels.scores[at])
    return top


@inlined
def multiply_levels(n_bins: int, n_present: int, histogram: np.ndarray, sums: np.ndarray, products: np.ndarray) -> None:
    """Write the products of the class weights of two levels, and, behind them, of a level and the node."""
    wide = np.uint64(n_present)
    for a in range(np.uint64(n_bins)):
        for b in range(a + ONE):
            product = np.int64(0)
            for k in range(wide):
                product += histogram[a * wide + k] * histogram[b * wide + k]
            products[a, b] = product
        product = np.int64(0)
        for k in range(wide):
            product += histogram[a * wide + k] * sums[HELD, k]
        products[a, np.uint64(EXHAUSTIVE_LEVELS)] = product


@inlined
def score_subsets(n_bins: int, power: int, weight: int, bins: np.ndarray, subsets: SubsetScratch) -> float:
    """Write what every subset scores to subsets.scores; return the best of these; power, weight: of the node.

    Subset m holds level 0, and level b + 1 where bit b of m is set. What it holds is that of the subset without its
    highest level and what this adds: its own, and its products with the others.
    """
    products, squares, cross = subsets.products, subsets.squares, subsets.cross
    with_node, weights, scores = subsets.with_node, subsets.weights, subsets.scores
    whole = np.uint64(EXHAUSTIVE_LEVELS)
    squares[0] = products[0, 0]
    with_node[0] = products[0, whole]
    weights[0] = bins[BIN_WEIGHT, 0]
    for b in range(ONE, np.uint64(n_bins)):
        size = ONE << (b - ONE)
        cross[0] = products[b, 0]
        for c in range(ONE, b):
            half = ONE << (c - ONE)
            for m in range(half):
                cross[half + m] = cross[m] + products[b, c]
        for m in range(size):
            squares[size + m] = squares[m] + 2 * cross[m] + products[b, b]
            with_node[size + m] = with_node[m] + products[b, whole]
            weights[size + m] = weights[m] + bins[BIN_WEIGHT, b]
    n_subsets = (ONE << np.uint64(n_bins - 1)) - ONE  # the last is the whole
    for m in range(n_subsets):
        wa = np.float64(weights[m])
        wb = np.float64(weight - weights[m])
        power_right = power - 2 * with_node[m] + squares[m]
        scores[m] = (np.float64(squares[m]) * wb + np.float64(power_right) * wa) / (wa * wb)
    top = NO_SCORE
    for m in range(n_subsets):
        top = scores[m] if scores[m] > top else top
    return top


@inlined
def bound_subsets(n_bins: int, weight: int, chance: Chance, bins: np.ndarray, subsets: SubsetScratch) -> float:
    """Write what the score of each subset less its luck is at most to subsets.most; return the largest of these.

    Luck takes three roots and five divisions, `least_luck` none, and of the subsets that score more than the best so
    far nearly all fall short by it.
    """
    roots, weights, most = subsets.roots, subsets.weights, subsets.most
    roots[0] = np.sqrt(np.float64(bins[BIN_WEIGHT, 0]))
    for b in range(ONE, np.uint64(n_bins)):
        size = ONE << (b - ONE)
        root = np.sqrt(np.float64(bins[BIN_WEIGHT, b]))
        for m in range(size):
            roots[size + m] = roots[m] + root
    least = least_luck(chance, weight)
    room = TWO_LEVELS * chance.noise
    n_subsets = (ONE << np.uint64(n_bins - 1)) - ONE
    for m in range(n_subsets):
        spread = roots[m] * (chance.roots - roots[m])
        run = np.float64(weights[m]) * np.float64(weight - weights[m])
        most[m] = subsets.scores[m] + room - spread * (least.first + spread * least.second) / run
    top = NO_SCORE
    for m in range(n_subsets):
        top = most[m] if most[m] > top else top
    return top


@inlined
def choose_prefix(
    best: Candidate, n_bins: int, weight: int, chance: Chance, bins: np.ndarray, levels: LevelScratch
) -> Candidate:
    """Best prefix by the scores of `score_prefixes`, less their luck; it is left in levels.bitset."""
    top = best.score
    least = least_luck(chance, weight)
    room = luck_room(chance, top)
    cut = np.int64(-1)
    w_left = np.int64(0)
    roots = 0.0
    for k in range(np.uint64(n_bins - 1)):
        w = bins[BIN_WEIGHT, np.uint64(levels.order[k])]
        w_left += w
        roots += np.sqrt(np.float64(w))
        score = levels.scores[k]
        if chance.noise > 0.0 and score >= floor_below(top):
            spread = roots * (chance.roots - roots)
            run = np.float64(w_left) * np.float64(weight - w_left)
            if (score + room) * run < spread * (least.first + spread * least.second):
                continue
            score = less_luck(score, chance, roots, w_left, weight - w_left)
        if score > bar_above(top):
            top = score
            room = luck_room(chance, top)
            cut = np.int64(k)
    for k in range(np.uint64(cut + 1)):
        level = np.uint64(bins[BIN_CODE, np.uint64(levels.order[k])] - 1)
        levels.bitset[level >> SIX] |= ONE << (level & LAST_BIT)
    return Candidate(top, cut, np.int64(-1), np.int64(1), best.n_ties, np.inf)


@inlined
def choose_subset(
    best: Candidate,
    n_bins: int,
    weight: int,
    chance: Chance,
    bins: np.ndarray,
    levels: LevelScratch,
    subsets: SubsetScratch,
) -> Candidate:
    """The same of all subsets, by the scores of `score_subsets`."""
    top = best.score
    cut = np.int64(-1)
    n_subsets = (ONE << np.uint64(n_bins - 1)) - ONE
    if chance.noise > 0.0 and bound_subsets(n_bins, weight, chance, bins, subsets) < least_worth(chance, top):
        n_subsets = NONE
    for m in range(n_subsets):
        score = subsets.scores[m]
        if score < floor_below(top):
            continue
        if chance.noise > 0.0:
            if subsets.most[m] < least_worth(chance, top):
                continue
            w_left = subsets.weights[m]
            score = less_luck(score, chance, subsets.roots[m], w_left, weight - w_left)
        if score > bar_above(top):
            top = score
            cut = np.int64(m)
    for b in range(n_bins if cut >= 0 else 0):
        if ((2 * cut + 1) >> b) & 1 != 0:
            level = np.uint64(bins[BIN_CODE, b] - 1)
            levels.bitset[level >> SIX] |= ONE << (level & LAST_BIT)
    return Candidate(top, cut, np.int64(-1), np.int64(1), best.n_ties, np.inf)


@inlined
def try_levels(
    best: Candidate,
    n_bins: int,
    n_codes: int,
    node: OpenNode,
    table: Table,
    settings: Settings,
    scratch: Scratch,
    levels: LevelScratch,
) -> Candidate:
    """Best subset of the levels that are listed; it is left in the bitset of `levels`."""
    histogram, bins, totals, classes = scratch.histogram, scratch.bins, scratch.totals, scratch.classes
    weight, n_present = totals[W_ALL], node.n_present
    is_exhaustive = n_bins <= EXHAUSTIVE_LEVELS
    top = 0.0
    if is_exhaustive:
        multiply_levels(n_bins, n_present, histogram, classes.sums, classes.subsets.products)
        top = score_subsets(n_bins, node.power, weight, bins, classes.subsets)
    else:
        for at in range(np.uint64(n_bins * n_present)):
            classes.shares[at] = np.float64(histogram[at])
        score_levels(n_bins, n_present, bins, classes, levels.scores)
        order_levels(n_bins, SHARE_SLACK, levels, scratch.counts)
        top = score_prefixes(n_bins, node, weight, histogram, bins, classes.sums, levels)
    if top < floor_below(best.score):
        return none_better(best)
    all_roots = sum_roots(bins, n_bins, BIN_WEIGHT)
    chance = chance_of_classes(n_codes, n_bins, all_roots, node, settings, table.xlogx, classes.sums, totals)
    for w in range(np.uint64((n_codes + 63) >> 6)):
        levels.bitset[w] = NONE
    if is_exhaustive:
        return choose_subset(best, n_bins, weight, chance, bins, levels, classes.subsets)
    return choose_prefix(best, n_bins, weight, chance, bins, levels)


@inlined
def scan_class_levels(
    best: Candidate, feature: int, node: OpenNode, rows: Rows, table: Table, settings: Settings, scratch: Scratch
) -> tuple[bool, Candidate]:
    """Best subset by Gini; False where a value is missing, so that the long way must be gone."""
    histogram, levels = scratch.histogram, scratch.levels
    n_codes = table.features[N_CODES, feature]
    n_bins = np.int64(0)
    if n_codes <= node.hi - node.lo:
        n_bins = list_many(feature, n_codes, node, rows, scratch)
    else:
        n_bins = list_few(feature, n_codes, node, rows, scratch, levels)
    if n_bins < 0:
        return False, best
    scratch.totals[N_MISSING] = 0
    found = none_better(best)
    if n_bins > 1 and score_apart(n_bins, node.n_present, histogram, scratch.bins) * ROOM >= floor_below(best.score):
        found = try_levels(best, n_bins, n_codes, node, table, settings, scratch, levels)
    for at in range(np.uint64(n_bins * node.n_present)):
        histogram[at] = 0
    return True, found
