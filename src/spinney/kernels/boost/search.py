"""Find the best test of a node among all features.

    scan_features   the best cut of each feature, by its sums alone                ─► scratch.best
                    (scan_node: of all; threads may take some each, see `batch`)
    choose_feature  the best of these; if its branches may be too small, their rows are counted, its cuts scanned
                    once more (scan_again: a plain number by hessians from which on there are enough rows), and the
                    choice is made again
    keep_test       the test of the winner, with its threshold or its levels       ─► the slot of the node

Of a category `scan_features` notes what its levels score apart (best_apart), which no cut exceeds. Its cuts are looked
for when none of the others is known to be better: of 60 categories that is a few.

Rows are counted for a winner only, and only where its sums do not already say that there are enough: a count beside
every sum would cost half the speed.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined
from spinney._types import (
    BIN_CODE,
    BIN_N,
    BIN_WEIGHT,
    IS_CATEGORICAL,
    MONOTONE,
    N_CODES,
    OFFSET,
    SUBSET,
    THRESHOLD,
)

from ..common.rng import below, fold
from ..common.structs import (
    BestCuts,
    BoostCut,
    BoostFrontier,
    BoostNodes,
    BoostScratch,
    BoostSettings,
    BoostTable,
    Bounds,
    ByteRows,
    Column,
    LeastHessians,
    Part,
    Range,
    RowSums,
)
from ..common.thresholds import last_below, place_threshold
from .category_chance import noise_of
from .rows import add_wide, count_codes, count_enough, count_rows, encode
from .scan import (
    NO_GAIN,
    UNKNOWN,
    hessian_of,
    list_bins,
    list_met_bins,
    list_pair,
    scan_bins,
    scan_histogram,
    scan_two_codes,
    score_apart,
    score_code,
    score_levels,
    score_of,
    sort_bins,
    value_of,
)
from .shards import column_of, lend_all, rows_of, runs_of

GAIN_SLACK = 2.0**-40  # of the score of a node: less is rounding
APART_SLACK = 1.0 + 2.0**-30  # of what levels score apart: far more than gains are rounded by
FEW_LEVELS = 64  # of a category at a node: any subset of so many may be a branch
SPARSE = 8  # fewer rows than codes / SPARSE: the codes that were met are sorted instead of looking at every code
NONE, ONE, TWO, THREE, FOUR = (np.uint64(k) for k in range(5))


# --- Bins and counts of one feature -------------------------------------------------------------------------


@inlined
def first_of_pair(feature: int, at: int, total: int, table: BoostTable, frontier: BoostFrontier) -> int:
    """The sum of code 1 of a feature of two that shares a byte; at: the sum of the one that the byte tells."""
    other = frontier.histogram[at]
    return other if table.usual[feature] == 2 else total - other


@inlined
def list_feature_bins(
    slot: int,
    feature: int,
    table: BoostTable,
    rows: ByteRows,
    nodes: BoostNodes,
    frontier: BoostFrontier,
    scratch: BoostScratch,
    settings: BoostSettings,
) -> tuple[int, int]:
    """List the bins of a feature in the order they are cut in; return how many, and the sum of missing values."""
    bins = scratch.bins
    scores = scratch.scores
    n_codes = table.features[N_CODES, feature]
    at = slot * table.histogram_size + table.histogram_start[feature]
    if table.is_paired[feature]:
        missing = np.int64(0)
        n = list_pair(first_of_pair(feature, at, frontier.packed[slot], table, frontier), frontier.packed[slot], bins)
    elif table.histogram_start[feature] >= 0:
        missing = frontier.histogram[at]
        span = Range(frontier.spans[slot, feature, 0], frontier.spans[slot, feature, 1])
        n = list_bins(frontier.histogram, at, span, bins)
    else:
        histogram = scratch.wide_histogram
        node = frontier.number[slot]
        column = column_of(feature, table)
        n_met = np.int64(0)
        n_rows = np.int64(0)
        for shard in range(len(nodes.begin)):
            runs = runs_of(shard, node, rows, nodes)
            for begin in range(runs.lo, runs.hi, runs.jump):
                end = min(begin + runs.size, runs.hi)
                n_rows += end - begin
                n_met = add_wide(rows, begin, end, column, histogram, bins, n_met)
        missing = histogram[0]
        if n_rows * SPARSE < n_codes:
            n = list_met_bins(histogram, n_met, bins, scores)
            sort_bins(bins, scores, n, scratch.spare, scratch.buckets)
        else:
            n = list_bins(histogram, np.int64(0), Range(np.int64(1), n_codes), bins)
            for k in range(n_codes + 1):
                histogram[k] = 0
    if table.features[IS_CATEGORICAL, feature] != 0:
        score_levels(bins, n, scores, settings)
        sort_bins(bins, scores, n, scratch.spare, scratch.buckets)
    return n, missing


@inlined
def count_bin_rows(
    node: int,
    column: Column,
    n: int,
    table: BoostTable,
    rows: ByteRows,
    nodes: BoostNodes,
    scratch: BoostScratch,
    settings: BoostSettings,
) -> tuple[int, int]:
    """Count the rows and weights of the n listed bins of a feature; return rows and weight of the node.

    Weights that no limit asks for stay 0. Rows that stand for others count as often as they weigh.
    """
    bins = scratch.bins
    row_counts = scratch.row_counts
    weight_counts = scratch.weight_counts
    for code in range(column.n_codes + 1):
        row_counts[code] = 0
        weight_counts[code] = 0
    for shard in range(len(nodes.begin)):
        runs = runs_of(shard, node, rows, nodes)
        for begin in range(runs.lo, runs.hi, runs.jump):
            end = min(begin + runs.size, runs.hi)
            if settings.weights_are_counts:
                count_rows(rows, begin, end, column, table.weights, weight_counts, row_counts)
            elif settings.min_weight_leaf > 0:
                count_rows(rows, begin, end, column, table.weights, row_counts, weight_counts)
            else:
                count_codes(rows, begin, end, column, row_counts)
    n_rows = row_counts[0]
    weight = weight_counts[0]
    for k in range(n):
        code = bins[BIN_CODE, k]
        bins[BIN_N, k] = row_counts[code]
        bins[BIN_WEIGHT, k] = weight_counts[code]
        n_rows += row_counts[code]
        weight += weight_counts[code]
    return n_rows, weight


@inlined
def has_enough(
    node: int,
    column: Column,
    cut: int,
    missing: int,  # branch of missing values; -1: there are none
    least: int,
    rows: ByteRows,
    nodes: BoostNodes,
) -> bool:
    """Whether both branches of a threshold have so many rows of a node; mostly a few rows tell."""
    first = np.int64(missing != 0)
    last = cut
    is_rest = column.base >= 0 and column.usual <= cut  # the usual code is any that the byte does not tell
    if is_rest:
        first = encode(cut + 1, column)
        last = encode(column.n_codes, column)
    elif column.base >= 0:
        first = column.base
        last = encode(cut, column)
    n_between = np.int64(0)
    n_others = np.int64(0)
    for shard in range(len(nodes.begin)):
        runs = runs_of(shard, node, rows, nodes)
        for begin in range(runs.lo, runs.hi, runs.jump):
            end = min(begin + runs.size, runs.hi)
            n_between, n_others = count_enough(rows, begin, end, column, Range(first, last), n_between, n_others, least)
            if min(n_between, n_others) >= least:
                return True
    return False


# --- The best cut of each feature ---------------------------------------------------------------------------


@inlined
def best_apart(
    slot: int, feature: int, table: BoostTable, frontier: BoostFrontier, settings: BoostSettings
) -> BoostCut:
    """A gain that no cut of a category exceeds, with a cut of UNKNOWN: what its levels score, each by itself.

    Of m parts, missing values being one, let each have lambda / m. A branch of some of them has no more than lambda of
    that, so that (sum of G)**2 / (sum of H + lambda) <= sum of G**2 / (H + lambda / m) (Cauchy and Schwarz). Luck, L1
    penalty and bounds make a cut worth less, never more.
    """
    n_codes = table.features[N_CODES, feature]
    at = slot * table.histogram_size + table.histogram_start[feature]
    part = settings.reg_lambda / np.float64(n_codes + 1)
    if table.is_paired[feature]:
        left = first_of_pair(feature, at, frontier.packed[slot], table, frontier)
        score = score_code(left, part, settings) + score_code(frontier.packed[slot] - left, part, settings)
    else:
        span = Range(frontier.spans[slot, feature, 0], frontier.spans[slot, feature, 1])
        score = score_apart(frontier.histogram, at, span, part, settings)
    return BoostCut(APART_SLACK * 0.5 * score, np.int64(UNKNOWN), np.int64(-1), np.int64(0), np.int64(0))


@inlined
def has_plain_histogram(feature: int, table: BoostTable, settings: BoostSettings) -> bool:
    """Whether the cuts of a feature are found by `scan_histogram`, or at once for two codes."""
    return settings.is_plain and not table.is_wide[feature] and table.features[IS_CATEGORICAL, feature] == 0


@inlined
def has_two_codes(feature: int, at: int, table: BoostTable, frontier: BoostFrontier) -> bool:
    """Whether a feature has one cut at most in a node whose histogram has its sums from `at` on."""
    return table.is_paired[feature] or (table.features[N_CODES, feature] == 2 and frontier.histogram[at] == 0)


@inlined
def scan_again(
    slot: int,
    feature: int,
    least: LeastHessians,
    table: BoostTable,
    frontier: BoostFrontier,
    scratch: BoostScratch,
    settings: BoostSettings,
) -> BoostCut:
    """The best cut of a plain number once more, its place included, and with other limits."""
    at = slot * table.histogram_size + table.histogram_start[feature]
    span = Range(frontier.spans[slot, feature, 0], frontier.spans[slot, feature, 1])
    found, _ = scan_histogram(
        frontier.histogram, at, span, frontier.packed[slot], least, NO_GAIN, scratch.histogram_scan, settings
    )
    return found


@inlined
def least_by_rows(
    slot: int,
    feature: int,
    table: BoostTable,
    frontier: BoostFrontier,
    scratch: BoostScratch,
    settings: BoostSettings,
) -> LeastHessians:
    """The hessians of branches from which on both have enough rows, for a number without missing values in the node.

    Its rows have been counted.
    """
    start = np.uint64(slot * table.histogram_size + table.histogram_start[feature])
    first = np.uint64(frontier.spans[slot, feature, 0])
    last = np.uint64(frontier.spans[slot, feature, 1])
    n = np.int64(0)
    left = np.int64(0)
    code = first
    while n < settings.min_samples_leaf and code <= last:
        n += scratch.row_counts[code]
        left += hessian_of(frontier.histogram[start + code])
        code += ONE
    n = np.int64(0)
    right = np.int64(0)
    code = last
    while n < settings.min_samples_leaf and code >= first:
        n += scratch.row_counts[code]
        right += hessian_of(frontier.histogram[start + code])
        code -= ONE
    least = np.int64(settings.min_hessian)
    return LeastHessians(max(left, least), max(right, least))


@inlined
def is_allowed(feature: int, slot: int, table: BoostTable, frontier: BoostFrontier) -> bool:
    """Whether some set of features that may interact holds the feature and all those used above the node."""
    n_words = table.interactions.shape[1]
    for w in range(n_words):
        if frontier.allowed_sets[slot, w] & table.interactions[feature, w] != NONE:
            return True
    return n_words == 0


@inlined
def scan_listed(
    feature: int,
    n: int,  # bins
    whole: RowSums,
    missing: RowSums,
    bounds: Bounds,
    table: BoostTable,
    bins: np.ndarray,
    settings: BoostSettings,
) -> BoostCut:
    """Best cut of the bins of a feature; of a number in codes, of a category in bins."""
    is_category = table.features[IS_CATEGORICAL, feature] != 0
    most = settings.max_cat_threshold if is_category and n > FEW_LEVELS else n
    found = scan_bins(bins, n, whole, missing, bounds, table.features[MONOTONE, feature], most, settings)
    if is_category or found.cut < 0:
        return BoostCut(found.gain, found.cut, np.int64(-1), found.missing, found.left)
    following = bins[BIN_CODE, found.following] if found.following >= 0 else np.int64(-1)
    return BoostCut(found.gain, bins[BIN_CODE, found.cut], following, found.missing, found.left)


@inlined
def is_rare(feature: int, at: int, total: int, table: BoostTable, frontier: BoostFrontier, limit: int) -> bool:
    """Whether rows of a node have one code of a feature that shares its byte but for too few for a branch.

    at: where its sums begin. Most words of a text are rare in a small node: one look at each is enough.
    """
    k = np.uint64(feature)
    if table.base[k] < 0:
        return False
    first = np.uint64(at)
    if table.is_paired[k]:
        others = frontier.histogram[first]
    else:
        others = total - frontier.histogram[first + np.uint64(table.usual[k])]
    return hessian_of(others) < limit


@inlined
def note_cut(f: int, found: BoostCut, scratch: BoostScratch) -> None:
    """Keep what was found about the f-th feature of the tree."""
    best = scratch.best
    best.gain[f] = found.gain
    best.cut[f] = found.cut
    best.following[f] = found.following
    best.missing[f] = found.missing
    best.left[f] = found.left


@inlined
def scan_features(
    slot: int,
    part: Part,  # places in `table.used` of features to be scanned
    table: BoostTable,
    rows: ByteRows,
    nodes: BoostNodes,
    frontier: BoostFrontier,
    scratch: BoostScratch,
    settings: BoostSettings,
) -> None:
    """Find the best cut of each feature of a part that is drawn for the node, without counting rows.

    Of a category in bytes what no cut of it exceeds, see `best_apart`.
    """
    features = table.features
    used = table.used
    total = frontier.packed[slot]
    key = fold(np.uint64(settings.seed), np.uint64(frontier.key[slot]))
    least = LeastHessians(np.int64(settings.min_hessian), np.int64(settings.min_hessian))
    floor = NO_GAIN  # the best gain so far: of a number that does not reach it the cut is not looked for
    n_left = np.int64(len(used))
    n_open = np.int64(settings.n_try)
    for f in range(part.end):
        feature = used[f]
        scratch.best.gain[f] = NO_GAIN
        scratch.best.is_counted[f] = False
        is_drawn = n_open >= n_left or below(key, f, n_left) < n_open
        n_left -= 1
        if not is_drawn:
            continue
        n_open -= 1
        if f < part.begin or table.place[feature] < 0 or not is_allowed(feature, slot, table, frontier):
            continue
        at = slot * table.histogram_size + table.histogram_start[feature]
        if is_rare(feature, at, total, table, frontier, settings.min_hessian):
            continue
        if has_plain_histogram(feature, table, settings):
            if has_two_codes(feature, at, table, frontier):
                left = frontier.histogram[at + 1]
                if table.is_paired[feature]:
                    left = first_of_pair(feature, at, total, table, frontier)
                found = scan_two_codes(left, total - left, total, settings)
            else:
                span = Range(frontier.spans[slot, feature, 0], frontier.spans[slot, feature, 1])
                found, span = scan_histogram(
                    frontier.histogram, at, span, total, least, floor, scratch.histogram_scan, settings
                )
                frontier.spans[slot, feature, 0] = span.first
                frontier.spans[slot, feature, 1] = span.last
            floor = max(floor, found.gain)
            note_cut(f, found, scratch)
        elif features[IS_CATEGORICAL, feature] != 0 and table.histogram_start[feature] >= 0:
            note_cut(f, best_apart(slot, feature, table, frontier, settings), scratch)
        else:
            n, missing = list_feature_bins(slot, feature, table, rows, nodes, frontier, scratch, settings)
            scan_uncounted(slot, f, n, missing, table, frontier, scratch, settings)


@inlined
def scan_uncounted(
    slot: int,
    f: int,
    n: int,  # bins, which are listed
    missing: int,  # sum of missing values
    table: BoostTable,
    frontier: BoostFrontier,
    scratch: BoostScratch,
    settings: BoostSettings,
) -> None:
    """Note the best cut of the listed bins of the f-th feature of the tree by its sums alone."""
    feature = table.used[f]
    noise = frontier.noise[slot] if table.features[IS_CATEGORICAL, feature] != 0 else 0.0
    whole = RowSums(frontier.packed[slot], np.int64(0), np.int64(0), noise)
    unknown = RowSums(missing, np.int64(0), np.int64(0), 0.0)
    bounds = Bounds(frontier.lower[slot], frontier.upper[slot])
    note_cut(f, scan_listed(feature, n, whole, unknown, bounds, table, scratch.bins, settings), scratch)


# --- The best feature ---------------------------------------------------------------------------------------


@inlined
def larger(a: float, b: float) -> float:
    """The larger of two, b where a is not a number."""
    return a if a > b else b


@inlined
def best_feature(own: float, table: BoostTable, best: BestCuts, settings: BoostSettings) -> int:
    """The place in `table.used` of the feature of most gain; -1: none has enough. own: score of the node as a leaf."""
    f = np.int64(-1)
    gain = best.gain
    n = np.uint64(len(table.used))
    top, b, c, d = NO_GAIN, NO_GAIN, NO_GAIN, NO_GAIN  # one by one, each would wait for the one before
    for k in range(NONE, n & ~THREE, FOUR):
        top = larger(gain[k], top)
        b = larger(gain[k + ONE], b)
        c = larger(gain[k + TWO], c)
        d = larger(gain[k + THREE], d)
    for k in range(n & ~THREE, n):
        top = larger(gain[k], top)
    top = larger(larger(top, b), larger(c, d))
    if top > NO_GAIN:
        at = NONE
        while gain[at] != top:
            at += ONE
        f = np.int64(at)
    if f >= 0:
        gain = top - own
        if gain <= GAIN_SLACK * abs(own) or (not settings.is_post and gain <= settings.gamma):
            return np.int64(-1)
    return f


@inlined
def may_be_small(left: int, total: int, settings: BoostSettings) -> bool:
    """Whether a branch of a cut may have too few rows, or weigh too little, as far as the sums tell."""
    if settings.min_samples_leaf <= 1 and settings.min_weight_leaf == 0:
        return False
    smaller = min(hessian_of(left), hessian_of(total - left))
    return settings.min_weight_leaf > 0 or smaller < settings.min_samples_leaf * settings.most_hessian


@inlined
def is_likely_small(left: int, total: int, n_rows: int, settings: BoostSettings) -> bool:
    """Whether a branch of a cut has too few rows if all rows of the node have the same hessian."""
    smaller = min(hessian_of(left), hessian_of(total - left))
    return smaller * n_rows < settings.min_samples_leaf * hessian_of(total)


@inlined
def has_many_codes(
    f: int, slot: int, table: BoostTable, frontier: BoostFrontier, best: BestCuts, settings: BoostSettings
) -> bool:
    """Whether the f-th feature has a plain histogram, none of its values is missing, and there may be several cuts."""
    feature = table.used[f]
    at = slot * table.histogram_size + table.histogram_start[feature]
    is_whole = has_plain_histogram(feature, table, settings) and best.missing[f] < 0
    return is_whole and not has_two_codes(feature, at, table, frontier)


@inlined
def score_as_leaf(slot: int, frontier: BoostFrontier, settings: BoostSettings) -> float:
    """Score of the node of a slot as a leaf."""
    total = frontier.packed[slot]
    return score_of(total, value_of(total, frontier.lower[slot], frontier.upper[slot], settings), settings)


@inlined
def choose_feature(
    slot: int,
    table: BoostTable,
    source: ByteRows,
    rows: ByteRows,
    nodes: BoostNodes,
    frontier: BoostFrontier,
    scratch: BoostScratch,
    settings: BoostSettings,
) -> tuple[int, int]:
    """The place of the best feature with enough gain and rows in `table.used`, -1: none; of a category its bins."""
    used = table.used
    best = scratch.best
    node = frontier.number[slot]
    total = frontier.packed[slot]
    n_rows = nodes.n_rows[node]
    bounds = Bounds(frontier.lower[slot], frontier.upper[slot])
    own = score_as_leaf(slot, frontier, settings)
    n = np.int64(0)
    missing = np.int64(0)
    listed = np.int64(-1)  # place of the feature whose bins stand in the scratch
    while True:
        f = best_feature(own, table, best, settings)
        if f < 0:
            return f, np.int64(0)
        feature = used[f]
        is_category = table.features[IS_CATEGORICAL, feature] != 0
        if is_category and listed != f:
            n, missing = list_feature_bins(slot, feature, table, rows, nodes, frontier, scratch, settings)
            listed = f
        if is_category and best.cut[f] == UNKNOWN:
            scan_uncounted(slot, f, n, missing, table, frontier, scratch, settings)
            continue
        if best.cut[f] == UNKNOWN:
            least = LeastHessians(np.int64(settings.min_hessian), np.int64(settings.min_hessian))
            note_cut(f, scan_again(slot, feature, least, table, frontier, scratch, settings), scratch)
        left = best.left[f]
        needs_counts = not best.is_counted[f] and may_be_small(left, total, settings)
        counts_alone = needs_counts and not is_category and settings.min_weight_leaf == 0
        has_codes = counts_alone and has_many_codes(f, slot, table, frontier, best, settings)
        is_small = False
        column = lend_all(feature, node, table, source, rows, nodes) if needs_counts else column_of(feature, table)
        if counts_alone and not (has_codes and is_likely_small(left, total, n_rows, settings)):
            # most winners are large enough: to see that, their branches alone are counted
            least_rows = settings.min_samples_leaf
            needs_counts = not has_enough(node, column, best.cut[f], best.missing[f], least_rows, rows, nodes)
            is_small = needs_counts and not settings.weights_are_counts  # rows that stand for others may be enough
        if has_codes and needs_counts:
            count_bin_rows(node, column, np.int64(0), table, rows, nodes, scratch, settings)
            least = least_by_rows(slot, feature, table, frontier, scratch, settings)
            if hessian_of(left) < least.left or hessian_of(total - left) < least.right:
                note_cut(f, scan_again(slot, feature, least, table, frontier, scratch, settings), scratch)
            best.is_counted[f] = True
            continue
        if not needs_counts:
            return f, n
        if listed != f:
            n, missing = list_feature_bins(slot, feature, table, rows, nodes, frontier, scratch, settings)
            listed = f
        if is_small and n <= 2 and missing == 0:  # there was one cut: a third of the counts on adult in one-hot columns
            best.gain[f] = NO_GAIN
            continue
        n_counted, weight = count_bin_rows(node, column, n, table, rows, nodes, scratch, settings)
        whole = RowSums(total, n_counted, weight, frontier.noise[slot] if is_category else 0.0)
        unknown = RowSums(missing, scratch.row_counts[0], scratch.weight_counts[0], 0.0)
        found = scan_listed(feature, n, whole, unknown, bounds, table, scratch.bins, settings)
        note_cut(f, found, scratch)
        best.is_counted[f] = True


@inlined
def keep_subset(slot: int, n: int, n_codes: int, bins: np.ndarray, frontier: BoostFrontier) -> None:
    """Write the levels of branch 0: bins up to the cut; levels that are absent go with missing values."""
    subsets = frontier.subsets
    cut = frontier.cut[slot]
    full = np.uint64(0xFFFFFFFFFFFFFFFF) if frontier.missing[slot] == 0 else NONE
    for w in range((n_codes + 63) >> 6):
        subsets[slot, w] = full
    for k in range(n):
        level = bins[BIN_CODE, k] - 1
        bit = ONE << np.uint64(level & 63)
        if k <= cut:
            subsets[slot, level >> 6] |= bit
        else:
            subsets[slot, level >> 6] &= ~bit
    spare = n_codes & 63
    if spare != 0:  # bits behind the last level stay 0
        subsets[slot, n_codes >> 6] &= (ONE << np.uint64(spare)) - ONE


@inlined
def keep_test(
    slot: int,
    f: int,
    n: int,  # bins of a category
    own: float,
    table: BoostTable,
    frontier: BoostFrontier,
    scratch: BoostScratch,
    settings: BoostSettings,
) -> None:
    """Note the best cut of the f-th feature of the tree in the slot of the node."""
    best = scratch.best
    features = table.features
    feature = table.used[f]
    left = best.left[f]
    missing = best.missing[f]
    if missing < 0:
        missing = np.int64(hessian_of(frontier.packed[slot] - left) > hessian_of(left))
    cut = best.cut[f]
    frontier.feature[slot] = feature
    frontier.missing[slot] = missing
    frontier.left_packed[slot] = left
    frontier.cut[slot] = cut
    frontier.gain[slot] = best.gain[f] - own - settings.gamma
    if features[IS_CATEGORICAL, feature] != 0:
        frontier.kind[slot] = SUBSET
        keep_subset(slot, n, features[N_CODES, feature], scratch.bins, frontier)
        return
    following = best.following[f]
    threshold = place_threshold(features, table.edges, feature, cut, following, False)
    # codes between that the node does not have go where their values go: rows outside the bag may have them
    last = following - 1 if following > 0 else features[N_CODES, feature]
    frontier.kind[slot] = THRESHOLD
    frontier.cut_value[slot] = threshold
    frontier.cut[slot] = last_below(table.edges, features[OFFSET, feature] - 1, cut, last, threshold)


@inlined
def scan_node(
    slot: int,
    table: BoostTable,
    source: ByteRows,
    buffer: ByteRows,
    nodes: BoostNodes,
    frontier: BoostFrontier,
    scratch: BoostScratch,
    settings: BoostSettings,
) -> None:
    """Find the best cut of each feature in an open node."""
    node = frontier.number[slot]
    rows = rows_of(node, source, buffer, nodes)
    frontier.noise[slot] = noise_of(node, frontier.packed[slot], table, rows, nodes, settings)
    every = Part(np.int64(0), np.int64(len(table.used)))
    scan_features(slot, every, table, rows, nodes, frontier, scratch, settings)


@inlined
def choose_test(
    slot: int,
    table: BoostTable,
    source: ByteRows,
    buffer: ByteRows,
    nodes: BoostNodes,
    frontier: BoostFrontier,
    scratch: BoostScratch,
    settings: BoostSettings,
) -> bool:
    """Note the best test of an open node, by the cuts in `scratch.best`, in its slot; whether one has enough gain."""
    rows = rows_of(frontier.number[slot], source, buffer, nodes)
    own = score_as_leaf(slot, frontier, settings)
    f, n = choose_feature(slot, table, source, rows, nodes, frontier, scratch, settings)
    if f < 0:
        return False
    keep_test(slot, f, n, own, table, frontier, scratch, settings)
    return True
