"""Find the best test of a node among all features.

`found` holds what is known about each feature. Rows are counted for a winner only, and only where its sums do not
already say that there are enough: a count in every cell would cost half the speed.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import (
    BEGIN,
    BUNCH_CODE,
    BUNCH_N,
    BUNCH_WEIGHT,
    CUT,
    FEATURE,
    FIRST_CELL,
    FOUND_COUNTED,
    FOUND_CUT,
    FOUND_LEFT,
    FOUND_MISSING,
    FOUND_NEXT,
    GAIN,
    IS_CATEGORICAL,
    IS_WIDE,
    KEY,
    KIND,
    MISSING_BRANCH,
    MONOTONE,
    N_CODES,
    N_ROWS,
    OFFSET,
    PLACE,
    SLOT_CUT_VALUE,
    SLOT_LEFT_SUM,
    SLOT_LOWER,
    SLOT_SUM,
    SLOT_UPPER,
    SUBSET,
    THRESHOLD,
)

from ..common.rng import below, fold
from ..common.structs import BoostSettings
from ..common.thresholds import last_below, place_threshold
from .rows import add_wide, count_below, count_rows
from .scan import (
    NO_GAIN,
    bunch_cells,
    bunch_met,
    hessian_of,
    order_bunches,
    scan_bunches,
    scan_cells,
    score_levels,
    score_of,
    value_of,
)
from .threads import runs_of

GAIN_SLACK = 2.0**-40  # of the score of a node: less is rounding
FEW_LEVELS = 64  # of a category at a node: any subset of so many may be a branch
SPARSE = 8  # fewer rows than codes / SPARSE: the codes that were met are sorted instead of looking at every cell
ONE, NONE = np.uint64(1), np.uint64(0)


@kernel
def bunch_feature(
    node: int,
    feature: int,
    first: int,  # cells of the node
    codes_0: np.ndarray,
    sums_0: np.ndarray,
    codes: np.ndarray,
    sums: np.ndarray,
    ranges: np.ndarray,
    nodes: np.ndarray,
    n_words: int,
    features: np.ndarray,
    places: np.ndarray,
    cells: np.ndarray,
    wide_cells: np.ndarray,
    bunches: np.ndarray,
    scores: np.ndarray,
    spare: np.ndarray,
    buckets: np.ndarray,
    settings: BoostSettings,
) -> tuple[int, int]:
    """List the bunches of a feature in the order they are cut in; return how many, and the sum of missing values."""
    n_codes = features[N_CODES, feature]
    if places[FIRST_CELL, feature] >= 0:
        at = first + places[FIRST_CELL, feature]
        missing = cells[at]
        n = bunch_cells(cells, at, n_codes, bunches)
    else:
        n_met = np.int64(0)
        n_rows = np.int64(0)
        for shard in range(settings.n_shards):
            lo, hi, size, jump = runs_of(shard, node, len(sums_0), ranges, nodes, settings.n_shards)
            for begin in range(lo, hi, jump):
                end = min(begin + size, hi)
                n_rows += end - begin
                if nodes[BEGIN, node] == 0:
                    n_met = add_wide(
                        codes_0, sums_0, begin, end, n_words * 8, places[PLACE, feature], wide_cells, bunches, n_met
                    )
                else:
                    n_met = add_wide(
                        codes, sums, begin, end, n_words * 8, places[PLACE, feature], wide_cells, bunches, n_met
                    )
        missing = wide_cells[0]
        if n_rows * SPARSE < n_codes:
            n = bunch_met(wide_cells, n_met, bunches, scores)
            order_bunches(bunches, scores, n, spare, buckets)
        else:
            n = bunch_cells(wide_cells, np.int64(0), n_codes, bunches)
            for k in range(n_codes + 1):
                wide_cells[k] = 0
    if features[IS_CATEGORICAL, feature] != 0:
        score_levels(bunches, n, scores, settings)
        order_bunches(bunches, scores, n, spare, buckets)
    return n, missing


@kernel
def count_feature(
    node: int,
    feature: int,
    codes_0: np.ndarray,
    ids_0: np.ndarray,
    codes: np.ndarray,
    ids: np.ndarray,
    weights: np.ndarray,
    ranges: np.ndarray,
    nodes: np.ndarray,
    n_words: int,
    features: np.ndarray,
    places: np.ndarray,
    counts: np.ndarray,
    n_shards: int,
) -> None:
    """Count the rows of a node by the code of a feature; `counts` is cleared first."""
    for code in range(features[N_CODES, feature] + 1):
        counts[0, code] = 0
        counts[1, code] = 0
    is_wide = places[IS_WIDE, feature] != 0
    for shard in range(n_shards):
        lo, hi, size, jump = runs_of(shard, node, len(ids_0), ranges, nodes, n_shards)
        for begin in range(lo, hi, jump):
            end = min(begin + size, hi)
            if nodes[BEGIN, node] == 0:
                count_rows(codes_0, ids_0, weights, begin, end, n_words * 8, places[PLACE, feature], is_wide, counts)
            else:
                count_rows(codes, ids, weights, begin, end, n_words * 8, places[PLACE, feature], is_wide, counts)


@kernel
def count_left(
    node: int,
    feature: int,
    cut: int,
    branch: int,  # of missing values; -1: there are none
    codes_0: np.ndarray,
    codes: np.ndarray,
    ids_0: np.ndarray,
    ranges: np.ndarray,
    nodes: np.ndarray,
    n_words: int,
    places: np.ndarray,
    n_shards: int,
) -> int:
    """Rows of a node that a threshold sends to branch 0."""
    is_wide = places[IS_WIDE, feature] != 0
    n_left = np.int64(0)
    for shard in range(n_shards):
        lo, hi, size, jump = runs_of(shard, node, len(ids_0), ranges, nodes, n_shards)
        for begin in range(lo, hi, jump):
            end = min(begin + size, hi)
            if nodes[BEGIN, node] == 0:
                n_below, n_missing = count_below(codes_0, begin, end, n_words * 8, places[PLACE, feature], is_wide, cut)
            else:
                n_below, n_missing = count_below(codes, begin, end, n_words * 8, places[PLACE, feature], is_wide, cut)
            n_left += n_below if branch == 0 else n_below - n_missing
    return n_left


@inlined
def is_allowed(feature: int, slot: int, members: np.ndarray, alive: np.ndarray) -> bool:
    """Whether some set of features that may interact holds the feature and all those used above the node."""
    for w in range(alive.shape[1]):
        if alive[slot, w] & members[feature, w] != NONE:
            return True
    return False


@kernel
def search(
    node: int,
    slot: int,
    codes_0: np.ndarray,
    sums_0: np.ndarray,
    ids_0: np.ndarray,
    codes: np.ndarray,
    sums: np.ndarray,
    ids: np.ndarray,
    weights: np.ndarray,
    ranges: np.ndarray,
    nodes: np.ndarray,
    slots: np.ndarray,
    slot_values: np.ndarray,
    slot_subsets: np.ndarray,
    n_words: int,
    n_slot_cells: int,
    features: np.ndarray,
    edges: np.ndarray,
    places: np.ndarray,
    used: np.ndarray,
    members: np.ndarray,
    alive: np.ndarray,
    cells: np.ndarray,
    wide_cells: np.ndarray,
    counts: np.ndarray,
    bunches: np.ndarray,
    scores: np.ndarray,
    spare: np.ndarray,
    buckets: np.ndarray,
    prefix: np.ndarray,
    lefts: np.ndarray,
    present: np.ndarray,
    found: np.ndarray,
    found_gain: np.ndarray,
    settings: BoostSettings,
) -> bool:
    """Find the best test of a node and note it in its slot; whether there is one with enough gain."""
    first = slot * n_slot_cells
    total = slots[SLOT_SUM, slot]
    lower = slot_values[SLOT_LOWER, slot]
    upper = slot_values[SLOT_UPPER, slot]
    own = score_of(total, value_of(total, lower, upper, settings), settings)
    key = fold(np.uint64(settings.seed), np.uint64(slots[KEY, slot]))
    n_left = np.int64(len(used))
    n_open = np.int64(settings.n_try)
    for f in range(len(used)):
        feature = used[f]
        found_gain[f] = NO_GAIN
        found[FOUND_COUNTED, f] = 0
        is_drawn = n_open >= n_left or below(key, f, n_left) < n_open
        n_left -= 1
        if not is_drawn:
            continue
        n_open -= 1
        if members is not None:
            if not is_allowed(feature, slot, members, alive):
                continue
        is_category = features[IS_CATEGORICAL, feature] != 0
        if settings.is_plain != 0 and places[IS_WIDE, feature] == 0 and not is_category:
            gain, cut, following, branch, left = scan_cells(
                cells, first + places[FIRST_CELL, feature], features[N_CODES, feature], total, settings, prefix,
                lefts, present,
            )  # fmt: skip
            gain *= 0.5
        else:
            n, missing = bunch_feature(
                node, feature, first, codes_0, sums_0, codes, sums, ranges, nodes, n_words, features, places, cells,
                wide_cells, bunches, scores, spare, buckets, settings,
            )  # fmt: skip
            most = settings.max_cat_threshold if is_category and n > FEW_LEVELS else n
            gain, cut, branch, left = scan_bunches(
                bunches, n, total, missing, 0, 0, 0, 0, False, features[MONOTONE, feature], most, lower, upper,
                settings,
            )  # fmt: skip
            following = np.int64(-1)
            if cut >= 0 and not is_category:
                following = bunches[BUNCH_CODE, cut + 1] if cut + 1 < n else np.int64(-1)
                cut = bunches[BUNCH_CODE, cut]
        found_gain[f] = gain
        found[FOUND_CUT, f] = cut
        found[FOUND_NEXT, f] = following
        found[FOUND_MISSING, f] = branch
        found[FOUND_LEFT, f] = left
    n_all = nodes[N_ROWS, node]
    is_limited = settings.min_samples_leaf > 1 or settings.min_weight_leaf > 0
    while True:
        best = np.int64(-1)
        for f in range(len(used)):
            if found_gain[f] > (NO_GAIN if best < 0 else found_gain[best]):
                best = np.int64(f)
        if best < 0:
            return False
        feature = used[best]
        gain = found_gain[best] - own
        if gain <= GAIN_SLACK * abs(own) or (settings.is_post == 0 and gain <= settings.gamma):
            return False
        is_category = features[IS_CATEGORICAL, feature] != 0
        left = found[FOUND_LEFT, best]
        smaller = min(hessian_of(left), hessian_of(total - left))
        is_sure = settings.min_weight_leaf == 0 and smaller >= settings.min_samples_leaf * settings.most_hessian
        needs_counts = is_limited and found[FOUND_COUNTED, best] == 0 and not is_sure
        if needs_counts and not is_category and settings.min_weight_leaf == 0:
            # most winners are large enough: to see that, their branches alone are counted
            n_left = count_left(
                node, feature, found[FOUND_CUT, best], found[FOUND_MISSING, best], codes_0, codes, ids_0, ranges,
                nodes, n_words, places, settings.n_shards,
            )  # fmt: skip
            needs_counts = min(n_left, n_all - n_left) < settings.min_samples_leaf
        if is_category or needs_counts:
            n, missing = bunch_feature(
                node, feature, first, codes_0, sums_0, codes, sums, ranges, nodes, n_words, features, places, cells,
                wide_cells, bunches, scores, spare, buckets, settings,
            )  # fmt: skip
        if needs_counts:
            count_feature(
                node, feature, codes_0, ids_0, codes, ids, weights, ranges, nodes, n_words, features, places, counts,
                settings.n_shards,
            )  # fmt: skip
            w_all = counts[1, 0]
            for k in range(n):
                code = bunches[BUNCH_CODE, k]
                bunches[BUNCH_N, k] = counts[0, code]
                bunches[BUNCH_WEIGHT, k] = counts[1, code]
                w_all += counts[1, code]
            most = settings.max_cat_threshold if is_category and n > FEW_LEVELS else n
            gain, cut, branch, left = scan_bunches(
                bunches, n, total, missing, counts[0, 0], counts[1, 0], n_all, w_all, True, features[MONOTONE, feature],
                most, lower, upper, settings,
            )  # fmt: skip
            found[FOUND_COUNTED, best] = 1
            found[FOUND_NEXT, best] = -1
            if cut >= 0 and not is_category:
                found[FOUND_NEXT, best] = bunches[BUNCH_CODE, cut + 1] if cut + 1 < n else np.int64(-1)
                cut = bunches[BUNCH_CODE, cut]
            found_gain[best] = gain
            found[FOUND_CUT, best] = cut
            found[FOUND_MISSING, best] = branch
            found[FOUND_LEFT, best] = left
            continue
        break
    branch = found[FOUND_MISSING, best]
    if branch < 0:
        branch = np.int64(hessian_of(total - left) > hessian_of(left))
    cut = found[FOUND_CUT, best]
    slots[FEATURE, slot] = feature
    slots[MISSING_BRANCH, slot] = branch
    slots[SLOT_LEFT_SUM, slot] = left
    slots[CUT, slot] = cut
    slots[KIND, slot] = THRESHOLD
    slot_values[GAIN, slot] = gain - settings.gamma
    if not is_category:
        following = found[FOUND_NEXT, best]
        threshold = place_threshold(features, edges, feature, cut, following, False)
        slot_values[SLOT_CUT_VALUE, slot] = threshold
        # codes between that the node does not have go where their values go: rows outside the bag may have them
        last = following - 1 if following > 0 else features[N_CODES, feature]
        slots[CUT, slot] = last_below(edges, features[OFFSET, feature] - 1, cut, last, threshold)
    elif slot_subsets is not None:
        slots[KIND, slot] = SUBSET
        keep_subset(bunches, n, cut, branch, features[N_CODES, feature], slot_subsets, slot)
    return True


@inlined
def keep_subset(
    bunches: np.ndarray, n: int, cut: int, missing: int, n_codes: int, slot_subsets: np.ndarray, slot: int
) -> None:
    """Write the levels of branch 0: bunches up to `cut`; levels that are absent go with missing values."""
    full = np.uint64(0xFFFFFFFFFFFFFFFF) if missing == 0 else NONE
    for w in range((n_codes + 63) >> 6):
        slot_subsets[slot, w] = full
    for k in range(n):
        level = bunches[BUNCH_CODE, k] - 1
        bit = ONE << np.uint64(level & 63)
        if k <= cut:
            slot_subsets[slot, level >> 6] |= bit
        else:
            slot_subsets[slot, level >> 6] &= ~bit
    spare = n_codes & 63
    if spare != 0:  # bits behind the last level stay 0
        slot_subsets[slot, n_codes >> 6] &= (ONE << np.uint64(spare)) - ONE
