"""Search a node: sum it up, try its features, write the best split to its slot.

Six arguments select a variant when they are None, so that a first fit compiles only what it needs: `sums`, class
weights for three classes or more; `subset`, a bitset for tables with categories; `pays`, packed labels for the searches
of forests; `values`, for random tests; `ratios` and `improves`, for the gain ratio and for surrogates, which share one
variant, as they are asked for less often.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined
from spinney._types import (
    ALL,
    CONTROL_STOP,
    CUT,
    FEATURE,
    GAIN,
    GROUP_CODE,
    IS_CATEGORICAL,
    IS_LISTED,
    KEY,
    KIND,
    LEARNED,
    MAX_CODES,
    MISSING_BRANCH,
    MISSING_CODE,
    MONOTONE,
    N_BRANCHES,
    N_CODES,
    N_MISSING,
    NODE,
    PRESENT,
    Q_ALL,
    RATIO_GAIN,
    RATIO_INFORMATION,
    S_ALL,
    SLOT_CUT_VALUE,
    SLOT_LOWER,
    SLOT_UPPER,
    SMALL_SHIFT,
    SUBSET,
    SURROGATE,
    THRESHOLD,
    W_ALL,
)

from ..common.criteria import best_possible, blur_of, deviation, score_classes, score_moments
from ..common.groups import group_cells, group_keys
from ..common.rng import fold
from ..common.sorting import make_keys
from ..common.structs import Settings
from ..common.sums import sum_classes, sum_moments
from ..common.thresholds import place_threshold
from ..common.ties import NO_SCORE, certain
from .gain_ratio import pick_ratio, split_information
from .random_tests import random_split
from .scan_classes import scan_classes
from .scan_many_classes import pack_classes, scan_counted
from .scan_moments import blur_known, scan_keys, scan_moments
from .scan_two_classes import pack_labels, scan_levels, scan_packed
from .subsets import subset_classes, subset_moments

FEW_CODES = 16  # cells are worth their while whatever the node's size
DRAWS, TIES, TESTS, RATIO_TIES = np.uint64(0), np.uint64(1), np.uint64(8), np.uint64(9)  # parts of a node's key


@inlined
def draw_feature(permutation: np.ndarray, places: np.ndarray, k: int, key: np.uint64) -> int:
    """Swap entry k of the permutation with one drawn from k on, and note where it was; return the new entry."""
    word = fold(key, np.uint64(k >> 1))  # 32 bits for each of two draws
    half = (word >> np.uint64(32)) if k & 1 else (word & np.uint64(0xFFFFFFFF))
    at = k + np.int64((half * np.uint64(len(permutation) - k)) >> np.uint64(32))
    feature = np.int64(permutation[at])
    permutation[at] = permutation[k]
    permutation[k] = feature
    places[k] = at
    return feature


@inlined
def restore_order(permutation: np.ndarray, places: np.ndarray, n_drawn: int) -> None:
    """Undo the draws: the next node's depend on nothing but its key."""
    for k in range(n_drawn):
        last = n_drawn - 1 - k
        at = places[last]
        feature = permutation[at]
        permutation[at] = permutation[last]
        permutation[last] = feature


@inlined
def scan_numeric(
    codes: np.ndarray,
    labels: np.ndarray,
    lo: int,
    hi: int,
    feature: int,
    features: np.ndarray,
    settings: Settings,
    lists: np.ndarray,
    list_labels: np.ndarray,
    list_lo: int,
    keys: np.ndarray,
    counts: np.ndarray,
    cells: np.ndarray,
    groups: np.ndarray,
    totals: np.ndarray,
    xlogx: np.ndarray,
    centre: int,
    best: float,
    lower: float,
    upper: float,
    key: np.uint64,
    n_ties: int,
    pays: np.ndarray | None,
    column: np.ndarray,
    pair_sums: np.ndarray,
    pair_scores: np.ndarray,
    picked: np.ndarray,
) -> tuple[float, int, int, int, int]:
    """Best cut of a numeric feature over rows lo .. hi, for the moments family.

    Returns the better of `best` and the best score, the last code of the left branch (-1: not better), the next present
    code (-1: the cut is known against missing), the branch of missing rows, and the number of ties met so far.
    """
    n_codes = features[N_CODES, feature]
    if pays is not None:
        if hi - lo <= MAX_CODES:
            best, cut, following = scan_packed(
                codes, lo, hi, feature, column, pays, pair_sums, pair_scores, picked, counts, cells, totals[W_ALL],
                totals[S_ALL], best,
            )  # fmt: skip
            if cut != -2:
                totals[N_MISSING] = 0
                return best, cut, following, 0, n_ties
    is_listed = list_lo >= 0 and features[IS_LISTED, feature] != 0
    if not is_listed and (n_codes <= hi - lo or n_codes <= FEW_CODES):
        n_groups = group_cells(codes, labels, lo, hi, feature, n_codes, cells, groups, totals)
    else:
        ordered = lists
        row = feature
        first = lo - list_lo
        source = list_labels
        base = np.int64(0)
        if not is_listed:
            ordered = keys
            row = make_keys(codes, lo, hi, feature, SMALL_SHIFT, keys, counts)
            first = np.int64(0)
            source = labels
            base = lo
        end = first + hi - lo
        lowest = np.int64(ordered[row, first]) >> SMALL_SHIFT
        if lowest == np.int64(ordered[row, end - 1]) >> SMALL_SHIFT:
            return best, -1, -1, 0, n_ties
        if settings.is_plain != 0 and lowest > 0:
            totals[N_MISSING] = 0
            best, cut, following = scan_keys(
                ordered,
                row,
                first,
                end,
                SMALL_SHIFT,
                source,
                base,
                totals[S_ALL] - centre * totals[W_ALL],
                totals[W_ALL],
                centre,
                settings.min_samples_leaf,
                best,
            )
            return best, cut, following, 0, n_ties
        n_groups = group_keys(ordered, row, first, end, SMALL_SHIFT, source, base, groups, totals)
    if n_groups == 0 or (n_groups == 1 and totals[N_MISSING] == 0):
        return best, -1, -1, 0, n_ties
    best, at, missing, n_ties = scan_moments(
        groups,
        n_groups,
        totals,
        settings,
        xlogx,
        centre,
        best,
        features[MONOTONE, feature],
        lower,
        upper,
        key,
        n_ties,
    )
    if at < 0:
        return best, -1, -1, 0, n_ties
    following = np.int64(-1)
    if at < n_groups - 1:
        following = groups[GROUP_CODE, at + 1]
    return best, groups[GROUP_CODE, at], following, missing, n_ties


@inlined
def part_pair(
    codes: np.ndarray,
    lo: int,
    features: np.ndarray,
    is_shuffled: int,
    permutation: np.ndarray,
    places: np.ndarray,
    key: np.uint64,
    slots: np.ndarray,
    slot_values: np.ndarray,
    slot: int,
) -> int:
    """Split two rows by the first numeric feature that tells them apart, in the order of the search: none is better.

    Half the nodes of a tree that is grown to the end have two or three rows. Returns the feature, or -1.
    """
    n_drawn = np.int64(0)
    found = np.int64(-1)
    for k in range(features.shape[1]):
        feature = np.int64(k)
        if is_shuffled != 0:
            feature = draw_feature(permutation, places, k, key)
            n_drawn += 1
        a = np.int64(codes[lo, feature])
        b = np.int64(codes[lo + 1, feature])
        if a == b:
            continue
        if min(a, b) == MISSING_CODE or features[IS_CATEGORICAL, feature] != 0:
            break
        slots[FEATURE, slot] = feature
        slots[MISSING_BRANCH, slot] = -1
        slots[N_BRANCHES, slot] = 2
        slots[KIND, slot] = THRESHOLD
        slots[CUT, slot] = min(a, b)
        slot_values[SLOT_CUT_VALUE, slot] = max(a, b)
        found = feature
        break
    restore_order(permutation, places, n_drawn)
    return found


@inlined
def search(
    codes: np.ndarray,
    labels: np.ndarray,
    lo: int,
    hi: int,
    features: np.ndarray,
    edges: np.ndarray,
    settings: Settings,
    permutation: np.ndarray,
    places: np.ndarray,
    keys: np.ndarray,
    counts: np.ndarray,
    cells: np.ndarray,
    groups: np.ndarray,
    totals: np.ndarray,
    xlogx: np.ndarray,
    sums: np.ndarray | None,
    vectors: np.ndarray | None,
    subset: np.ndarray | None,
    scores: np.ndarray | None,
    subsets: np.ndarray,
    n_words: int,
    lists: np.ndarray,
    list_labels: np.ndarray,
    list_lo: int,  # first row of the lists that cover the node; -1: none do
    slots: np.ndarray,
    slot_values: np.ndarray,
    slot: int,
    control: np.ndarray,
    pays: np.ndarray | None,
    column: np.ndarray,
    pair_sums: np.ndarray,
    pair_scores: np.ndarray,
    picked: np.ndarray,
    values: np.ndarray | None,
    ratios: np.ndarray | None,
    improves: np.ndarray | None,
) -> tuple[bool, float]:
    """Find the best split of rows lo .. hi and write it to the slot; return whether there is one, and the node's score.

    The bitset of a subset goes to subsets[n_words ...].
    """
    n_present = np.int64(0)
    centre = np.int64(0)
    if sums is None:
        sum_moments(labels, lo, hi, totals)
        if settings.is_centred != 0:
            centre = totals[S_ALL] // totals[W_ALL]
        total = totals[S_ALL] - centre * totals[W_ALL]
        node_score = score_moments(
            settings.criterion,
            totals[W_ALL],
            total,
            totals[Q_ALL],
            settings.square_unit,
            xlogx,
        )
        spread = np.inf
        if settings.min_spread > 0.0:
            spread = deviation(totals[W_ALL], totals[S_ALL], totals[Q_ALL], settings.square_unit)
        if spread < settings.min_spread:
            return False, node_score
    else:
        n_present = sum_classes(labels, lo, hi, sums, totals)
        node_score = score_classes(settings.criterion, sums, ALL, totals[W_ALL], n_present, xlogx)
    if totals[W_ALL] < 2 * settings.min_weight_leaf:
        return False, node_score
    lower = slot_values[SLOT_LOWER, slot]
    upper = slot_values[SLOT_UPPER, slot]
    draw_key = fold(np.uint64(slots[KEY, slot]), DRAWS)
    tie_key = fold(np.uint64(slots[KEY, slot]), TIES)
    test_key = fold(np.uint64(slots[KEY, slot]), TESTS)
    bound = best_possible(
        settings.criterion,
        settings.is_class,
        labels,
        lo,
        hi,
        totals[W_ALL],
        totals[S_ALL],
        centre,
    )
    bound = certain(bound)
    if settings.has_random_ties != 0:
        bound = np.inf
    n_features = features.shape[1]
    n_tried = np.int64(0)
    n_drawn = np.int64(0)
    n_ties = np.int64(0)
    best = NO_SCORE
    best_feature = np.int64(-1)
    if hi - lo == 2 and settings.is_plain != 0 and settings.is_random == 0:
        best_feature = part_pair(
            codes, lo, features, settings.is_shuffled, permutation, places, draw_key, slots, slot_values, slot
        )
        if best_feature >= 0:
            best = bound
    is_packed = False
    power = np.int64(0)
    if pays is not None:
        is_packed = hi - lo <= MAX_CODES
        if is_packed:
            if sums is None:
                pack_labels(labels, lo, hi, pays)
            else:
                pack_classes(labels, lo, hi, pays)
                for k in range(n_present):
                    power += sums[ALL, sums[PRESENT, k]] * sums[ALL, sums[PRESENT, k]]
    blur = 0.0
    n_steps = np.int64(n_features)
    is_ratio = False
    by_known = False
    if ratios is not None:
        is_ratio = settings.is_ratio != 0
        by_known = settings.missing == SURROGATE
        n_steps += settings.is_ratio
    for k in range(n_steps):
        if control[CONTROL_STOP] != 0:
            break
        feature = np.int64(k)
        if is_ratio:  # each feature proposes its test of largest gain; a last step searches that of largest ratio again
            best = NO_SCORE
            n_ties = np.int64(0)
            if k < n_features and n_tried >= settings.n_try and best_feature >= 0:
                continue
        elif best >= bound or (n_tried >= settings.n_try and best_feature >= 0):
            break
        if k < n_features:
            n_drawn += 1
            n_tried += 1
            if settings.is_shuffled != 0:
                feature = draw_feature(permutation, places, k, draw_key)
        if ratios is not None:
            if k == n_features:
                ratio_key = fold(np.uint64(slots[KEY, slot]), RATIO_TIES)
                feature = pick_ratio(ratios, n_drawn, node_score, settings.has_random_ties, ratio_key)
                if feature < 0:
                    break
                if settings.is_shuffled != 0:
                    feature = np.int64(permutation[feature])
        n_codes = features[N_CODES, feature]
        is_subset = features[IS_CATEGORICAL, feature] != 0
        cut = np.int64(-1)
        following = np.int64(-1)
        missing = np.int64(0)
        threshold = np.inf
        so_far = best
        if by_known:
            best += blur  # a score that was computed in another way must not win by its rounding
        if values is not None:
            best, cut, missing, n_ties, threshold = random_split(
                codes, labels, lo, hi, feature, features, edges, settings, column, values, groups, sums, subset,
                totals, n_present, xlogx, centre, best, lower, upper, test_key, tie_key, n_ties,
            )  # fmt: skip
            if missing < 0:
                n_tried -= 1  # only features that vary count
                continue
            if subset is not None:
                if is_subset and cut >= 0:
                    for w in range((n_codes + 63) >> 6):
                        subsets[n_words + w] = subset[w]
        else:
            if subset is not None:
                if is_subset:
                    if sums is None:
                        has_answer = False
                        if pays is not None:
                            if is_packed and settings.missing == LEARNED:
                                best, cut, missing = scan_levels(
                                    codes, lo, hi, feature, n_codes, pays, cells, groups, totals, subset, best
                                )
                                has_answer = True
                        if not has_answer:
                            best, cut, missing, n_ties = subset_moments(
                                codes, labels, lo, hi, feature, n_codes, cells, groups, scores, totals, subset,
                                settings, xlogx, centre, best, lower, upper, tie_key, n_ties,
                            )  # fmt: skip
                    else:
                        best, cut, missing, n_ties = subset_classes(
                            codes, labels, lo, hi, feature, n_codes, cells, groups, scores, sums, vectors, totals,
                            n_present, subset, settings, xlogx, best, tie_key, n_ties,
                        )  # fmt: skip
                    if cut >= 0:
                        for w in range((n_codes + 63) >> 6):
                            subsets[n_words + w] = subset[w]
            if not is_subset:
                if sums is None:
                    best, cut, following, missing, n_ties = scan_numeric(
                        codes, labels, lo, hi, feature, features, settings, lists, list_labels, list_lo, keys, counts,
                        cells, groups, totals, xlogx, centre, best, lower, upper, tie_key, n_ties, pays, column,
                        pair_sums, pair_scores, picked,
                    )  # fmt: skip
                else:
                    cut = np.int64(-2)
                    if pays is not None:
                        if is_packed:
                            best, cut, following = scan_counted(
                                codes, lo, hi, feature, settings.n_classes, column, pays, picked, counts, cells, sums,
                                n_present, totals[W_ALL], power, best,
                            )  # fmt: skip
                            totals[N_MISSING] = 0
                    if cut == -2:
                        best, cut, following, missing, n_ties = scan_classes(
                            codes, labels, lo, hi, feature, features, settings, lists, list_labels, list_lo, keys,
                            counts, cells, sums, totals, n_present, xlogx, best, tie_key, n_ties,
                        )  # fmt: skip
        if ratios is not None:
            if is_ratio and k < n_features:
                ratios[RATIO_INFORMATION, k] = 0.0
                if cut >= 0:
                    kind = SUBSET if is_subset else THRESHOLD
                    ratios[RATIO_GAIN, k] = best - node_score
                    ratios[RATIO_INFORMATION, k] = split_information(
                        codes, labels, lo, hi, feature, kind, n_words if is_subset else cut, missing, settings.missing,
                        subsets, xlogx,
                    )  # fmt: skip
        if by_known:
            if cut < 0:
                best = so_far
            elif settings.has_random_ties == 0:
                if sums is None:
                    blur = blur_known(settings, totals, centre, xlogx)
                else:
                    blur = blur_of(settings.criterion, totals[W_ALL], node_score, xlogx)
        if cut >= 0:
            best_feature = feature
            has_missing = totals[N_MISSING] > 0
            slots[FEATURE, slot] = feature
            slots[N_BRANCHES, slot] = 3 if has_missing and missing == 2 else 2
            if by_known:
                missing = np.int64(2)  # behind the others until their surrogates are known
            slots[MISSING_BRANCH, slot] = missing if has_missing else -1
            slots[KIND, slot] = SUBSET if is_subset else THRESHOLD
            slots[CUT, slot] = n_words if is_subset else cut
            slot_values[SLOT_CUT_VALUE, slot] = threshold if settings.is_random != 0 else np.float64(following)
    if by_known and abs(best - node_score) <= blur:
        best = node_score
    restore_order(permutation, places, n_drawn if settings.is_shuffled != 0 else np.int64(0))
    if best_feature < 0 or best - node_score < settings.min_gain:
        return False, node_score
    # fewer digits than a score has: equal gains stay equal whichever way they were summed, and go to the older node
    slot_values[GAIN, slot] = np.float64(np.float32(best - node_score))
    if improves is not None:
        improves[slots[NODE, slot]] = best - node_score
    if slots[KIND, slot] == SUBSET:
        slot_values[SLOT_CUT_VALUE, slot] = n_words
    elif settings.is_random == 0:
        following = np.int64(slot_values[SLOT_CUT_VALUE, slot])
        slot_values[SLOT_CUT_VALUE, slot] = place_threshold(
            features, edges, best_feature, slots[CUT, slot], following, False
        )
    return True, node_score
