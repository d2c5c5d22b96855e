"""Find the best subset of the levels of a category, sent to branch 0.

  two classes, regression   order the levels by their mean target; the best subset is a prefix (Fisher 1958; Breiman
                            et al. 1984, theorem 4.5)
  more classes, few levels  try every subset
  more classes              order the levels by the first principal component of their class shares (Coppersmith, Hong
                            and Hosking 1999) and take the best prefix

What levels in such an order gain by chance is taken off (`common.category_chance`), unless exact subsets are asked for.
The bins are the levels present at the node, one each, with the level plus one in bins[BIN_CODE].
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import (
    BIN_CODE,
    BIN_N,
    BIN_SUM,
    BIN_WEIGHT,
    EXHAUSTIVE_LEVELS,
    LEARNED,
    LEFT,
    N_CODES,
    N_MISSING,
    PRESENT,
    RIGHT,
    SMALL_SHIFT,
    SURROGATE,
    W_ALL,
)

from ..common.bins import list_bins_by_keys, order_bins
from ..common.category_chance import sum_roots
from ..common.sorting import make_keys
from ..common.structs import (
    BinWalk,
    Candidate,
    ClassScratch,
    CutAtHand,
    LevelScratch,
    OpenNode,
    PackedScratch,
    Rows,
    Scratch,
    Settings,
    SortedKeys,
    Table,
)
from ..common.ties import below_all
from .candidates import none_better
from .category_chance import chance_of_classes, chance_of_numbers
from .class_levels import SHARE_SLACK, scan_class_levels
from .components import score_levels
from .given_sums import has_given, list_node_bins
from .level_means import is_free, scan_level_means
from .scan_classes import SQUARES, fill_class_sums, power_kind, power_step, start_right, try_cut
from .scan_moments import scan_moments
from .scan_two_classes import scan_levels

LEVELS_PER_ROW = 16  # a category of more levels for each row of a node is listed by sorting
ONE = np.uint64(1)
NONE = np.uint64(0)


@kernel
def write_levels(bitset: np.ndarray, bins: np.ndarray, n_bins: int, mask: int, n_words: int) -> None:
    """Write a bitset of the levels of the bins whose bit is set in mask (-1: all bins)."""
    for k in range(n_words):
        bitset[k] = NONE
    for b in range(n_bins):
        if mask < 0 or (mask >> b) & 1:
            level = bins[BIN_CODE, b] - 1
            bitset[level >> 6] |= ONE << np.uint64(level & 63)


@inlined
def subset_moments(
    best: Candidate, feature: int, node: OpenNode, rows: Rows, table: Table, settings: Settings, scratch: Scratch
) -> Candidate:
    """Best subset by mean target; its cut is the last bin of branch 0."""
    bins, totals = scratch.bins, scratch.totals
    scores = scratch.levels.scores
    n_codes = table.features[N_CODES, feature]
    if not has_given(scratch.given) and n_codes > LEVELS_PER_ROW * (node.hi - node.lo):
        # sorting few rows takes less than looking at every level
        side = make_keys(rows.codes, node.lo, node.hi, feature, SMALL_SHIFT, scratch.keys, scratch.counts)
        ordered = SortedKeys(scratch.keys, np.int64(side), np.int64(0), node.hi - node.lo, rows.addends, node.lo)
        n_bins = list_bins_by_keys(ordered, SMALL_SHIFT, bins, totals)
    else:
        n_bins = list_node_bins(feature, n_codes, node, rows, scratch, scratch.given)
    if n_bins == 0 or (n_bins == 1 and totals[N_MISSING] == 0):
        return none_better(best)
    for b in range(n_bins):
        weight = bins[BIN_N, b] if settings.is_unit else bins[BIN_WEIGHT, b]
        scores[b] = np.float64(bins[BIN_SUM, b]) / np.float64(weight)
    order_bins(bins, scores, n_bins, settings.value_slack)
    roots = sum_roots(bins, n_bins, BIN_N if settings.is_unit else BIN_WEIGHT)
    chance = chance_of_numbers(n_codes, n_bins, roots, node, rows, settings, table.xlogx, totals)
    walk = BinWalk(n_bins, np.int64(0), chance)
    found = scan_moments(best, walk, node, settings, table.xlogx, bins, totals, scratch.rates)
    if found.cut >= 0:
        write_levels(scratch.levels.bitset, bins, found.cut + 1, -1, (n_codes + 63) >> 6)
    return found


@inlined
def list_level_bins(
    node: OpenNode, n_codes: int, settings: Settings, histogram: np.ndarray, bins: np.ndarray, sums: np.ndarray
) -> int:
    """List the levels that rows of the node have in `bins`; return how many."""
    width = settings.n_classes + 1
    n_bins = np.int64(0)
    for code in range(1, n_codes + 1):
        weight = np.int64(0)
        for k in range(node.n_present):
            weight += histogram[code * width + sums[PRESENT, k]]
        if weight > 0:
            bins[BIN_CODE, n_bins] = code
            bins[BIN_N, n_bins] = weight if settings.is_unit else histogram[code * width + width - 1]
            bins[BIN_WEIGHT, n_bins] = weight
            n_bins += 1
    return n_bins


@inlined
def copy_class_weights(
    n_bins: int,
    n_present: int,
    width: int,
    histogram: np.ndarray,
    bins: np.ndarray,
    sums: np.ndarray,
    shares: np.ndarray,
) -> None:
    """Copy the weights of the classes of the node, level by level, without gaps."""
    for b in range(n_bins):
        for k in range(n_present):
            shares[b * n_present + k] = np.float64(histogram[bins[BIN_CODE, b] * width + sums[PRESENT, k]])


@inlined
def subset_classes(
    best: Candidate, feature: int, node: OpenNode, rows: Rows, table: Table, settings: Settings, scratch: Scratch
) -> Candidate:
    """The same as `scan_class_levels` by any criterion, whatever is missing; its cut is the candidate's number."""
    histogram, bins, totals = scratch.histogram, scratch.bins, scratch.totals
    sums, scores, xlogx = scratch.classes.sums, scratch.levels.scores, table.xlogx
    n_present = node.n_present
    n_codes = table.features[N_CODES, feature]
    width = settings.n_classes + 1
    fill_class_sums(feature, n_codes, settings.n_classes, node, rows, scratch, scratch.given)
    n_bins = list_level_bins(node, n_codes, settings, histogram, bins, sums)
    kind = power_kind(settings, xlogx)
    is_exhaustive = n_bins <= EXHAUSTIVE_LEVELS
    if not is_exhaustive:
        copy_class_weights(n_bins, n_present, width, histogram, bins, sums, scratch.classes.shares)
        score_levels(n_bins, n_present, bins, scratch.classes, scores)
        order_bins(bins, scores, n_bins, SHARE_SLACK)
    # exhaustive: candidate m sends bin 0 and those others whose bit is set in m; ordered: bins 0 .. m
    n_candidates = np.int64(0)
    if n_bins > 0:
        n_candidates = np.int64(1) << (n_bins - 1) if is_exhaustive else n_bins
    found = none_better(best)
    power_left = np.int64(0)
    power_right = np.int64(0)
    n_left = np.int64(0)
    w_left = np.int64(0)
    roots = 0.0
    all_roots = sum_roots(bins, n_bins, BIN_WEIGHT)
    chance = chance_of_classes(n_codes, n_bins, all_roots, node, settings, xlogx, sums, totals)
    is_plain = kind == SQUARES and totals[N_MISSING] == 0 and not settings.has_random_ties
    has_last = totals[N_MISSING] > 0 and settings.missing != SURROGATE  # known rows against missing ones
    for m in range(n_candidates if has_last else n_candidates - 1):
        first = np.int64(m)
        if is_exhaustive or m == 0:
            first = np.int64(0)
            power_left = np.int64(0)
            power_right = start_right(sums, n_present, kind, xlogx)
            n_left = np.int64(0)
            w_left = np.int64(0)
            roots = 0.0
        for b in range(first, n_bins if is_exhaustive else m + 1):
            if is_exhaustive and ((2 * m + 1) >> b) & 1 == 0:
                continue
            at = bins[BIN_CODE, b] * width
            for k in range(n_present):
                c = sums[PRESENT, k]
                w = histogram[at + c]
                power_left += power_step(kind, sums[LEFT, c], w, xlogx)
                sums[LEFT, c] += w
                sums[RIGHT, c] -= w
                power_right -= power_step(kind, sums[RIGHT, c], w, xlogx)
            n_left += bins[BIN_N, b]
            w_left += bins[BIN_WEIGHT, b]
            if chance.noise > 0.0:
                roots += np.sqrt(np.float64(bins[BIN_WEIGHT, b]))
        if is_plain:
            wa = np.float64(w_left)
            wb = np.float64(totals[W_ALL] - w_left)
            if np.float64(power_left) * wb + np.float64(power_right) * wa < below_all(found.score) * (wa * wb):
                continue  # as most do: a call passes many words
        is_last = m == n_candidates - 1
        cut = CutAtHand(np.int64(m), np.int64(-1), is_last, n_left, w_left, power_left, power_right, roots)
        found = try_cut(found, cut, node, settings, xlogx, sums, totals, chance)
    if found.cut >= 0:
        n_kept = n_bins if is_exhaustive else found.cut + 1
        mask = 2 * found.cut + 1 if is_exhaustive else np.int64(-1)
        write_levels(scratch.levels.bitset, bins, n_kept, mask, (n_codes + 63) >> 6)
    for b in range(n_bins):
        at = bins[BIN_CODE, b] * width
        for k in range(width):
            histogram[at + k] = 0
    return found


# --- Which of them serves -------------------------------------------------------------------------------------------


@inlined
def subset_numbers(
    best: Candidate,
    feature: int,
    node: OpenNode,
    rows: Rows,
    table: Table,
    settings: Settings,
    scratch: Scratch,
    packed: PackedScratch | None,
) -> Candidate:
    """Best subset for numbers and two classes."""
    if packed is not None:
        if node.is_packed and settings.missing == LEARNED:
            return scan_levels(best, feature, node, rows, table, settings, scratch)
    if is_free(settings) and not has_given(scratch.given):
        is_settled, found = scan_level_means(best, feature, node, rows, table, settings, scratch)
        if is_settled:
            return found
    return subset_moments(best, feature, node, rows, table, settings, scratch)


@inlined
def subset_any_classes(
    best: Candidate,
    feature: int,
    node: OpenNode,
    rows: Rows,
    table: Table,
    settings: Settings,
    scratch: Scratch,
    packed: PackedScratch | None,
) -> Candidate:
    """Best subset for three classes or more."""
    if packed is not None:
        if node.is_packed:
            is_settled, found = scan_class_levels(best, feature, node, rows, table, settings, scratch)
            if is_settled:
                return found
    return subset_classes(best, feature, node, rows, table, settings, scratch)


@inlined
def subset_of(
    best: Candidate,
    feature: int,
    node: OpenNode,
    rows: Rows,
    table: Table,
    settings: Settings,
    scratch: Scratch,
    classes: ClassScratch | None,
) -> Candidate:
    """Best subset for any target."""
    if classes is None:
        return subset_numbers(best, feature, node, rows, table, settings, scratch, scratch.packed)
    return subset_any_classes(best, feature, node, rows, table, settings, scratch, scratch.packed)


@inlined
def scan_category(
    best: Candidate,
    feature: int,
    node: OpenNode,
    rows: Rows,
    table: Table,
    settings: Settings,
    scratch: Scratch,
    levels: LevelScratch | None,
) -> Candidate:
    """Best subset of the levels of a category, left in the bitset of `scratch.levels`."""
    if levels is None:  # a table without categories
        return none_better(best)
    return subset_of(best, feature, node, rows, table, settings, scratch, scratch.classes)


@inlined
def keep_subset(levels: LevelScratch | None, subsets: np.ndarray, first_word: int, n_levels: int) -> None:
    """Copy the bitset that was found to the tree's, from `first_word` on."""
    if levels is None:
        return
    for w in range((n_levels + 63) >> 6):
        subsets[first_word + w] = levels.bitset[w]
