"""Grow one tree: the serial driver over build, scan and partition.

Words: a *slot* holds an open node; `search` finds its best split; `expand` carries the split out.

  depth first   pop a node, search it, expand it, push its open children
  best first    pop the node of largest gain, expand it, search its open children and push them

The driver keeps everything it knows in arrays, so that it can return at any node (room runs out, someone pressed
Ctrl-C) and go on later. Two arguments select a variant when they are None: `sums`, class weights for three classes or
more, and `subset`, a bitset for tables with categories.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined, kernel
from spinney._types import (
    ALL,
    BEGIN,
    BEST_FIRST,
    CONTROL_ROWS,
    CONTROL_STOP,
    CUT,
    CUT_VALUE,
    DEPTH,
    DONE,
    FEATURE,
    FEATURE_SHIFT,
    FIRST_CHILD,
    FREE,
    GAIN,
    GROUP_CODE,
    HIGH,
    IS_CATEGORICAL,
    IS_LISTED,
    KEY,
    KIND,
    KIND_BITS,
    LARGE_SHIFT,
    LEAF,
    LIST_HI,
    LIST_LO,
    LOW,
    LOWER,
    MAX_CODES,
    MISSING_BRANCH,
    MISSING_CODE,
    MONOTONE,
    MOST_BRANCHES,
    N_ALL,
    N_BRANCHES,
    N_CODES,
    N_FREE,
    N_LEAVES,
    N_MISSING,
    N_NODES,
    N_QUEUED,
    N_ROWS,
    N_WORDS,
    NEEDS_ROOM,
    NODE,
    OFFSET,
    PRESENT,
    Q_ALL,
    S_ALL,
    SCORE,
    SLOT_CUT_VALUE,
    SLOT_LOWER,
    SLOT_UPPER,
    SMALL_SHIFT,
    STOPPED,
    SUBSET,
    TARGET,
    TEST,
    THRESHOLD,
    UPPER,
    W_ALL,
    WEIGHT,
    Settings,
)

from .classes import scan_classes
from .counted import pack_classes, scan_counted
from .criteria import NO_SCORE, TIE, best_possible, deviation, score_classes, score_moments
from .histogram import group_cells, group_keys
from .lists import make_keys, make_lists, split_lists
from .moments import scan_keys, scan_moments
from .packed import pack_labels, scan_packed
from .partition import partition
from .queue import pop, push
from .random_test import draw_subset, draw_threshold, find_range, judge_classes, judge_moments
from .rng import below, fold
from .subset import subset_classes, subset_moments

FEW_CODES = 16  # cells are worth their while whatever the node's size
DRAWS, TIES, CHILDREN, TESTS = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(8)  # parts of a node's key


@kernel
def sum_classes(labels: np.ndarray, lo: int, hi: int, sums: np.ndarray, totals: np.ndarray) -> int:
    """Sum the weights of rows lo .. hi per class; list the classes present, ascending, and return their number."""
    for i in range(lo, hi):
        sums[ALL, labels[TARGET, i]] = 0
    n_present = np.int64(0)
    weight = np.int64(0)
    for i in range(lo, hi):
        c = labels[TARGET, i]
        w = np.int64(1) if len(labels) == 1 else labels[WEIGHT, i]
        if sums[ALL, c] == 0:
            at = n_present  # a fixed order, whatever the order of rows: scores are float sums over classes
            while at > 0 and sums[PRESENT, at - 1] > c:
                sums[PRESENT, at] = sums[PRESENT, at - 1]
                at -= 1
            sums[PRESENT, at] = c
            n_present += 1
        sums[ALL, c] += w
        weight += w
    totals[N_ALL] = hi - lo
    totals[W_ALL] = weight
    return n_present


@inlined
def sum_moments(labels: np.ndarray, lo: int, hi: int, totals: np.ndarray) -> None:
    """Sum the labels of rows lo .. hi."""
    total = np.int64(0)
    weight = np.int64(0)
    square = np.int64(0)
    last = len(labels) - 1
    for i in range(lo, hi):
        total += labels[TARGET, i]
    if last == 0:
        weight = np.int64(hi - lo)
    else:
        for i in range(lo, hi):
            weight += labels[WEIGHT, i]
            square += labels[last, i]
    totals[N_ALL] = hi - lo
    totals[W_ALL] = weight
    totals[S_ALL] = total
    totals[Q_ALL] = square


@kernel
def place_cut(features: np.ndarray, edges: np.ndarray, feature: int, cut: int, following: int) -> float:
    """Threshold between the highest value of code `cut` and the lowest of code `following` (-1: above all values)."""
    if following < 0:
        return np.inf
    at = features[OFFSET, feature] - 1
    low = edges[HIGH, at + cut]
    high = edges[LOW, at + following]
    middle = low + (high - low) / 2.0
    if middle >= low and middle < high:  # false for neighbours one ulp apart and for infinities
        return middle
    return low


@kernel
def draw_feature(permutation: np.ndarray, k: int, key: np.uint64) -> int:
    """Swap entry k of the permutation with one drawn from k on; return the new entry. Doing it twice undoes it."""
    at = k + below(key, k, len(permutation) - k)
    feature = np.int64(permutation[at])
    permutation[at] = permutation[k]
    permutation[k] = feature
    return feature


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
    pays: np.ndarray,
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
    if settings.is_packed != 0 and hi - lo <= MAX_CODES:
        best, cut, following = scan_packed(
            codes,
            lo,
            hi,
            feature,
            column,
            pays,
            pair_sums,
            pair_scores,
            picked,
            counts,
            cells,
            totals[W_ALL],
            totals[S_ALL],
            best,
        )
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
        groups, n_groups, totals, settings, xlogx, centre, best, features[MONOTONE, feature], lower, upper, key, n_ties
    )
    if at < 0:
        return best, -1, -1, 0, n_ties
    following = np.int64(-1)
    if at < n_groups - 1:
        following = groups[GROUP_CODE, at + 1]
    return best, groups[GROUP_CODE, at], following, missing, n_ties


@inlined
def part_pair(
    codes: np.ndarray, lo: int, features: np.ndarray, slots: np.ndarray, slot_values: np.ndarray, slot: int
) -> int:
    """Split two rows by the first numeric feature that tells them apart: none can be better. Return it, or -1.

    Half the nodes of a tree that is grown to the end have two or three rows.
    """
    for feature in range(features.shape[1]):
        a = np.int64(codes[lo, feature])
        b = np.int64(codes[lo + 1, feature])
        if a == b:
            continue
        if min(a, b) == MISSING_CODE or features[IS_CATEGORICAL, feature] != 0:
            return -1
        slots[FEATURE, slot] = feature
        slots[MISSING_BRANCH, slot] = -1
        slots[N_BRANCHES, slot] = 2
        slots[KIND, slot] = THRESHOLD
        slots[CUT, slot] = min(a, b)
        slot_values[SLOT_CUT_VALUE, slot] = max(a, b)
        return np.int64(feature)
    return -1


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
    pays: np.ndarray,
    column: np.ndarray,
    pair_sums: np.ndarray,
    pair_scores: np.ndarray,
    picked: np.ndarray,
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
        node_score = score_moments(settings.criterion, totals[W_ALL], total, totals[Q_ALL], settings.square_unit, xlogx)
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
    bound = best_possible(settings.criterion, settings.is_class, labels, lo, hi, totals[W_ALL], totals[S_ALL], centre)
    bound -= abs(bound) * (TIE / 2.0)
    if settings.has_random_ties != 0:
        bound = np.inf
    n_features = features.shape[1]
    n_tried = np.int64(0)
    n_drawn = np.int64(0)
    n_ties = np.int64(0)
    best = NO_SCORE
    best_feature = np.int64(-1)
    if hi - lo == 2 and settings.is_plain != 0 and settings.n_try == n_features:
        best_feature = part_pair(codes, lo, features, slots, slot_values, slot)
        if best_feature >= 0:
            best = bound
    is_packed = settings.is_packed != 0 and hi - lo <= MAX_CODES
    power = np.int64(0)
    if is_packed:
        if sums is None:
            pack_labels(labels, lo, hi, pays)
        else:
            pack_classes(labels, lo, hi, pays)
            for k in range(n_present):
                power += sums[ALL, sums[PRESENT, k]] * sums[ALL, sums[PRESENT, k]]
    for k in range(n_features):
        if control[CONTROL_STOP] != 0 or best >= bound or (n_tried >= settings.n_try and best_feature >= 0):
            break
        n_drawn += 1
        n_tried += 1
        feature = np.int64(k)
        if settings.n_try < n_features:
            feature = draw_feature(permutation, k, draw_key)
        n_codes = features[N_CODES, feature]
        is_subset = features[IS_CATEGORICAL, feature] != 0
        cut = np.int64(-1)
        following = np.int64(-1)
        missing = np.int64(0)
        threshold = np.inf
        if settings.is_random != 0:
            lowest, highest, n_missing = find_range(codes, lo, hi, feature, column)
            if highest == 0 or (lowest == highest and n_missing == 0):
                n_tried -= 1  # only features that vary count
                continue
            n_groups = np.int64(2 if lowest < highest else 1)
            last_left = highest
            if subset is not None:
                if is_subset:
                    n_groups = draw_subset(hi - lo, n_codes, test_key, feature, column, subset)
                    last_left = np.int64(1)
            if not is_subset and n_groups == 2:
                last_left, threshold = draw_threshold(features, edges, feature, lowest, highest, test_key)
            if sums is None:
                best, cut, missing, n_ties = judge_moments(
                    labels, lo, hi, last_left, n_groups, n_missing, column, groups, totals, settings, xlogx, centre,
                    best, features[MONOTONE, feature], lower, upper, tie_key, n_ties,
                )  # fmt: skip
            else:
                best, cut, missing, n_ties = judge_classes(
                    labels, lo, hi, last_left, n_groups, n_missing, column, sums, totals, n_present, settings, xlogx,
                    best, tie_key, n_ties,
                )  # fmt: skip
            if cut >= 0:
                is_against_missing = cut == n_groups - 1
                cut = highest if is_against_missing else last_left
                threshold = np.inf if is_against_missing else threshold
                if subset is not None:
                    if is_subset:
                        for w in range((n_codes + 63) >> 6):
                            subsets[n_words + w] = ~np.uint64(0) if is_against_missing else subset[w]
        elif subset is not None:
            if is_subset:
                if sums is None:
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
        if not is_subset and settings.is_random == 0:
            if sums is None:
                best, cut, following, missing, n_ties = scan_numeric(
                    codes, labels, lo, hi, feature, features, settings, lists, list_labels, list_lo, keys, counts,
                    cells, groups, totals, xlogx, centre, best, lower, upper, tie_key, n_ties, pays, column, pair_sums, pair_scores, picked,
                )  # fmt: skip
            else:
                cut = np.int64(-2)
                if is_packed:
                    best, cut, following = scan_counted(
                        codes, lo, hi, feature, settings.n_classes, column, pays, picked, counts, cells, sums,
                        n_present, totals[W_ALL], power, best,
                    )  # fmt: skip
                    totals[N_MISSING] = 0
                if cut == -2:
                    best, cut, following, missing, n_ties = scan_classes(
                        codes, labels, lo, hi, feature, features, settings, lists, list_labels, list_lo, keys, counts,
                        cells, sums, totals, n_present, xlogx, best, tie_key, n_ties,
                    )  # fmt: skip
        if cut >= 0:
            best_feature = feature
            has_missing = totals[N_MISSING] > 0
            slots[FEATURE, slot] = feature
            slots[MISSING_BRANCH, slot] = missing if has_missing else -1
            slots[N_BRANCHES, slot] = 3 if has_missing and missing == 2 else 2
            slots[KIND, slot] = SUBSET if is_subset else THRESHOLD
            slots[CUT, slot] = n_words if is_subset else cut
            slot_values[SLOT_CUT_VALUE, slot] = threshold if settings.is_random != 0 else np.float64(following)
    if settings.n_try < n_features:  # back to the order of the columns: a draw depends on nothing but its key
        for k in range(n_drawn):
            draw_feature(permutation, n_drawn - 1 - k, draw_key)
    if best_feature < 0 or best - node_score < settings.min_gain:
        return False, node_score
    # fewer digits than a score has: equal gains stay equal whichever way they were summed, and go to the older node
    slot_values[GAIN, slot] = np.float64(np.float32(best - node_score))
    if slots[KIND, slot] == SUBSET:
        slot_values[SLOT_CUT_VALUE, slot] = n_words
    elif settings.is_random == 0:
        following = np.int64(slot_values[SLOT_CUT_VALUE, slot])
        slot_values[SLOT_CUT_VALUE, slot] = place_cut(features, edges, best_feature, slots[CUT, slot], following)
    return True, node_score


@kernel
def send_absent_left(
    codes: np.ndarray, lo: int, hi: int, feature: int, n_levels: int, subsets: np.ndarray, first: int, seen: np.ndarray
) -> None:
    """Add to a subset every level that no row of branch 1 (rows lo .. hi) has; seen: scratch for a bitset."""
    for w in range((n_levels + 63) >> 6):
        seen[w] = np.uint64(0)
    for i in range(lo, hi):
        level = np.int64(codes[i, feature]) - 1
        if level >= 0:
            seen[level >> 6] |= np.uint64(1) << np.uint64(level & 63)
    for level in range(n_levels):
        bit = np.uint64(1) << np.uint64(level & 63)
        if seen[level >> 6] & bit == np.uint64(0):
            subsets[first + (level >> 6)] |= bit


@inlined
def add_node(
    ids: np.ndarray,
    truth: np.ndarray,
    settings: Settings,
    nodes: np.ndarray,
    node_values: np.ndarray,
    slots: np.ndarray,
    slot_values: np.ndarray,
    state: np.ndarray,
    lo: int,
    hi: int,
    depth: int,
    lower: float,
    upper: float,
    key: np.uint64,
) -> int:
    """Append a node for rows lo .. hi; return its slot, or -1 if size, depth or purity make it a leaf."""
    node = state[N_NODES]
    state[N_NODES] = node + 1
    nodes[TEST, node] = LEAF
    nodes[FIRST_CHILD, node] = 0
    nodes[BEGIN, node] = lo
    nodes[N_ROWS, node] = hi - lo
    node_values[CUT_VALUE, node] = 0.0
    node_values[LOWER, node] = lower
    node_values[UPPER, node] = upper
    n = hi - lo
    if depth >= settings.max_depth or n < settings.min_samples_split or n < 2 * settings.min_samples_leaf:
        return -1
    is_pure = True
    first = truth[ids[lo]]
    for i in range(lo + 1, hi):
        if truth[ids[i]] != first:
            is_pure = False
            break
    if is_pure:
        return -1
    state[N_FREE] -= 1
    slot = slots[FREE, state[N_FREE]]
    slots[NODE, slot] = node
    slots[DEPTH, slot] = depth
    slots[KEY, slot] = np.int64(key)
    slot_values[SLOT_LOWER, slot] = lower
    slot_values[SLOT_UPPER, slot] = upper
    return slot


@inlined
def expand(
    codes: np.ndarray,
    words: np.ndarray,
    labels: np.ndarray,
    ids: np.ndarray,
    features: np.ndarray,
    settings: Settings,
    subset: np.ndarray | None,
    subsets: np.ndarray,
    totals: np.ndarray,
    nodes: np.ndarray,
    node_values: np.ndarray,
    slots: np.ndarray,
    slot_values: np.ndarray,
    slot: int,
    first_child: int,
    bounds: np.ndarray,  # (4, MOST_BRANCHES) float64, written: first row, end, lower and upper of each branch
) -> None:
    """Carry out the split of a slot: write the test, move the rows, say where each branch's rows are."""
    node = slots[NODE, slot]
    lo = nodes[BEGIN, node]
    hi = lo + nodes[N_ROWS, node]
    feature = slots[FEATURE, slot]
    kind = slots[KIND, slot]
    cut = slots[CUT, slot]
    missing = slots[MISSING_BRANCH, slot]
    end = hi
    if slots[N_BRANCHES, slot] == MOST_BRANCHES:
        end = partition(codes, words, labels, ids, lo, hi, feature, kind, cut, missing, subsets, 2)
    middle = partition(codes, words, labels, ids, lo, end, feature, kind, cut, missing, subsets, 1)
    w_left = middle - lo
    w_right = end - middle
    value_left = 0.0
    value_right = 0.0
    if len(labels) > 1 or settings.has_monotone != 0:
        sum_moments(labels, lo, middle, totals)
        w_left = totals[W_ALL]
        value_left = np.float64(totals[S_ALL]) / np.float64(w_left)
        sum_moments(labels, middle, end, totals)
        w_right = totals[W_ALL]
        value_right = np.float64(totals[S_ALL]) / np.float64(w_right)
    heavier = 0 if w_left > w_right else 1
    if missing < 0:
        missing = np.int64(heavier)
    if subset is not None:
        if settings.is_random == 0 and kind == SUBSET and (missing == 0 or (missing == 2 and heavier == 0)):
            send_absent_left(codes, middle, end, feature, features[N_CODES, feature], subsets, cut, subset)
    nodes[TEST, node] = (feature << FEATURE_SHIFT) | (missing << KIND_BITS) | kind
    nodes[FIRST_CHILD, node] = first_child
    node_values[CUT_VALUE, node] = slot_values[SLOT_CUT_VALUE, slot]
    for b in range(MOST_BRANCHES):
        bounds[2, b] = slot_values[SLOT_LOWER, slot]
        bounds[3, b] = slot_values[SLOT_UPPER, slot]
    bounds[0, 0] = lo
    bounds[1, 0] = middle
    bounds[0, 1] = middle
    bounds[1, 1] = end
    bounds[0, 2] = end
    bounds[1, 2] = hi
    sign = features[MONOTONE, feature]
    if sign != 0:
        between = (value_left + value_right) / 2.0
        bounds[3 if sign > 0 else 2, 0] = between
        bounds[2 if sign > 0 else 3, 1] = between


@door
def grow(
    codes: np.ndarray,  # (n_rows, stride) uint16, moved
    words: np.ndarray,  # the same memory as uint64
    labels: np.ndarray,  # (1 .. 3, n_rows) int64, moved
    ids: np.ndarray,  # (n_rows,) int32, moved
    truth: np.ndarray,  # (n_rows,) float64, the targets in their first order
    features: np.ndarray,
    edges: np.ndarray,
    settings: Settings,
    permutation: np.ndarray,
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
    place: np.ndarray,
    lists: np.ndarray,
    list_labels: np.ndarray,
    branch: np.ndarray,
    nodes: np.ndarray,
    node_values: np.ndarray,
    slots: np.ndarray,
    slot_values: np.ndarray,
    bounds: np.ndarray,
    state: np.ndarray,
    control: np.ndarray,
    pays: np.ndarray,
    column: np.ndarray,
    pair_sums: np.ndarray,
    pair_scores: np.ndarray,
    picked: np.ndarray,
) -> int:
    """Grow until done (DONE), stopped (STOPPED) or out of space (NEEDS_ROOM: enlarge the arrays, call again)."""
    is_best_first = settings.order == BEST_FIRST
    shift = SMALL_SHIFT if sums is None else LARGE_SHIFT
    n_children = np.int64(0)  # branches of the split just carried out, still to be added
    depth = np.int64(0)
    parent_key = np.uint64(settings.seed)
    if state[N_NODES] == 0:
        state[N_LEAVES] = 1
        state[LIST_LO] = 0  # an empty range: no lists yet
        state[LIST_HI] = -1
        bounds[0, 0] = 0
        bounds[1, 0] = len(ids)
        bounds[2, 0] = -np.inf
        bounds[3, 0] = np.inf
        n_children = np.int64(1)
    while True:
        open_branches = np.int64(0)  # as bits, one per branch
        for b in range(n_children):
            lo = np.int64(bounds[0, b])
            hi = np.int64(bounds[1, b])
            key = fold(parent_key, CHILDREN + np.uint64(b))
            slot = add_node(
                ids, truth, settings, nodes, node_values, slots, slot_values, state, lo, hi, depth,
                bounds[2, b], bounds[3, b], key,
            )  # fmt: skip
            if slot >= 0:
                slots[CUT, slot] = -1  # not searched yet
                slot_values[GAIN, slot] = np.inf  # searched before any other is expanded
                push(slots, slot_values, settings.order, state, slot)
                open_branches |= np.int64(1) << b
            else:
                control[CONTROL_ROWS] += hi - lo
        if open_branches != 0 and bounds[0, 0] >= state[LIST_LO] and bounds[1, n_children - 1] <= state[LIST_HI]:
            for b in range(n_children):
                for i in range(np.int64(bounds[0, b]), np.int64(bounds[1, b])):
                    branch[place[ids[i]]] = b
            first = np.int64(bounds[0, 0]) - state[LIST_LO]
            end = np.int64(bounds[1, n_children - 1]) - state[LIST_LO]
            mask = (np.int64(1) << shift) - 1
            if n_children == MOST_BRANCHES:
                split_lists(
                    features, lists, keys, mask, first, end, branch, 2, open_branches & 3 != 0, open_branches & 4 != 0
                )
                end = np.int64(bounds[1, 1]) - state[LIST_LO]
            split_lists(
                features, lists, keys, mask, first, end, branch, 1, open_branches & 1 != 0, open_branches & 2 != 0
            )
        n_children = np.int64(0)
        if control[CONTROL_STOP] != 0:
            return STOPPED
        if state[N_QUEUED] == 0:
            return DONE
        if (
            state[N_NODES] + MOST_BRANCHES > nodes.shape[1]
            or state[N_FREE] < MOST_BRANCHES
            or state[N_WORDS] + 2 * settings.most_words > len(subsets)
        ):
            return NEEDS_ROOM
        slot = pop(slots, slot_values, settings.order, state)
        node = slots[NODE, slot]
        lo = nodes[BEGIN, node]
        hi = lo + nodes[N_ROWS, node]
        if slots[CUT, slot] < 0:
            is_covered = lo >= state[LIST_LO] and hi <= state[LIST_HI]
            if not is_covered and hi - lo <= settings.most_listed:
                make_lists(codes, labels, ids, lo, hi, features, shift, keys, counts, lists, place, list_labels)
                state[LIST_LO] = lo
                state[LIST_HI] = hi
                is_covered = True
            list_lo = state[LIST_LO] if is_covered else np.int64(-1)
            is_found, score = search(
                codes, labels, lo, hi, features, edges, settings, permutation, keys, counts, cells, groups, totals,
                xlogx, sums, vectors, subset, scores, subsets, state[N_WORDS], lists, list_labels, list_lo, slots,
                slot_values, slot, control, pays, column, pair_sums, pair_scores, picked,
            )  # fmt: skip
            node_values[SCORE, node] = score
            if control[CONTROL_STOP] != 0:
                return STOPPED
            if not is_found:
                slots[FREE, state[N_FREE]] = slot
                state[N_FREE] += 1
                control[CONTROL_ROWS] += hi - lo
                continue
            if slots[KIND, slot] == SUBSET:
                state[N_WORDS] += (features[N_CODES, slots[FEATURE, slot]] + 63) >> 6
            if is_best_first:
                push(slots, slot_values, settings.order, state, slot)
                continue
        if is_best_first and state[N_LEAVES] + slots[N_BRANCHES, slot] - 1 > settings.max_leaves:
            return DONE
        expand(
            codes, words, labels, ids, features, settings, subset, subsets, totals, nodes, node_values, slots,
            slot_values, slot, state[N_NODES], bounds,
        )  # fmt: skip
        n_children = slots[N_BRANCHES, slot]
        depth = slots[DEPTH, slot] + 1
        parent_key = np.uint64(slots[KEY, slot])
        state[N_LEAVES] += n_children - 1
        slots[FREE, state[N_FREE]] = slot
        state[N_FREE] += 1
