"""Search a node: sum it up, try its features, write the best test to its slot.

    search ─ open_node        sums of the node, bounds and keys; addends are packed where forests ask for it
           ─ split_pair       two rows: the first feature that tells them apart
           ─ try_feature      for each feature in the order of the search
               ├ try_random_test     (drawn_tests)     extra-trees
               ├ scan_category       (subsets)         categories
               ├ scan_…_by_medians   (scan_medians)    both, by the absolute error
               ├ scan_…_of_outputs   (scan_outputs)    both, of several outputs
               └ scan_number         numbers
                   ├ scan_two_classes, scan_many_classes   packed addends: forests
                   ├ scan_keys, scan_moments               numbers, two classes
                   └ scan_classes                          three classes or more
           ─ gain_ratio       each feature proposes a test; one of them is searched again

Twelve structs of scratch select a variant when they are None, so that a first fit compiles only what it needs:
`classes`, `levels`, `packed`, `random`, `subtrees` and `bits` (of few rows), `fours` (random tests four at a time),
`extra` (the gain ratio and surrogates), `rates` (Poisson's deviance), `medians` (the absolute error), `outputs`
(several) and `given` (sums of rows that are elsewhere).
Each is an argument of the function that asks.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined
from spinney._types import (
    ALL,
    BIN_CODE,
    CONTROL_STOP,
    IS_CATEGORICAL,
    IS_LISTED,
    LIST_HI,
    LIST_LO,
    MAX_CODES,
    MISSING_CODE,
    MONOTONE,
    N_CODES,
    N_MISSING,
    N_WORDS,
    Q_ALL,
    S_ALL,
    SMALL_SHIFT,
    SUBSET,
    SURROGATE,
    THRESHOLD,
    W_ALL,
)

from ..common.bins import list_bins_by_keys
from ..common.category_chance import no_chance
from ..common.criteria import best_possible, blur_of, deviation, score_classes
from ..common.rng import fold
from ..common.sorting import make_keys
from ..common.structs import (
    BinWalk,
    Candidate,
    ClassScratch,
    CodedRows,
    CodeTest,
    ExtraScratch,
    Frontier,
    GivenSums,
    MedianScratch,
    Nodes,
    OpenNode,
    OutputScratch,
    PackedScratch,
    RandomScratch,
    RateScratch,
    Rows,
    Scratch,
    Settings,
    SortedKeys,
    Table,
)
from ..common.thresholds import place_threshold
from ..common.ties import NO_SCORE, certain, slack_of
from .branch_sums import is_noted, take_noted
from .candidates import none_better
from .cells import forget_cells, is_sparse, mark_cells
from .drawn_tests import try_random_test
from .feature_order import (
    constant_bit,
    draw_feature,
    fetch_codes,
    find_constant,
    forget_codes,
    is_fetched,
    restore_order,
    source_of,
)
from .flags import code_at, find_varying, is_even, is_flag, list_flag_bins, scan_packed_flag
from .four_tests import draw_fours, forget_fours, take_four
from .gain_ratio import pick_ratio, propose, split_information
from .given_sums import has_given, is_lacking, list_node_bins, total_classes, total_moments
from .late_thresholds import pack_codes
from .medians import open_medians
from .rates import open_unit, score_sums
from .scan_cell_sums import scan_cells_of_classes, scan_cells_of_numbers
from .scan_cells import scan_sparse
from .scan_classes import scan_classes
from .scan_many_classes import pack_classes, scan_many_classes
from .scan_medians import scan_levels_by_medians, scan_number_by_medians
from .scan_moments import blur_known, scan_keys, scan_moments
from .scan_outputs import open_outputs, scan_levels_of_outputs, scan_number_of_outputs
from .scan_two_classes import load_column, pack_addends, scan_two_classes
from .small_tests import pad_addends
from .sparse_draws import forget_draws, next_feature, open_draws
from .subsets import keep_subset, scan_category

ONE = np.uint64(1)
FEW_CODES = 16  # a histogram is worth its while whatever the node's size
# parts of a node's key; CHILD_KEYS: one for each branch from here on
DRAWS, TIES, CHILD_KEYS, TESTS, RATIO_TIES = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(8), np.uint64(9)


# --- One feature ----------------------------------------------------------------------------------------------------


@inlined
def scan_numeric(
    best: Candidate,
    feature: int,
    node: OpenNode,
    rows: Rows,
    table: Table,
    settings: Settings,
    scratch: Scratch,
    packed: PackedScratch | None,
) -> Candidate:
    """Best cut of a numeric feature over the rows of a node, for numbers and two classes."""
    features, xlogx = table.features, table.xlogx
    bins, totals = scratch.bins, scratch.totals
    lo, hi, centre = node.lo, node.hi, node.centre
    n_codes = features[N_CODES, feature]
    if packed is not None:
        if node.is_packed:
            if is_sparse(feature, rows.cells):
                return scan_sparse(best, feature, node, rows, scratch, packed, scratch.classes, rows.cells)
            if is_flag(feature, rows):
                return scan_packed_flag(best, feature, node, rows, scratch, scratch.classes)
            codes, first, at = source_of(feature, lo, hi, rows)
            lowest, highest = load_column(codes, first, first + hi - lo, at, packed.column)
            if lowest == highest or lowest != MISSING_CODE:
                totals[N_MISSING] = 0
                return scan_two_classes(best, lowest, highest, node, totals, packed, scratch.counts, scratch.histogram)
    if is_sparse(feature, rows.cells):
        return scan_cells_of_numbers(best, feature, node, rows, table, settings, scratch, rows.cells)
    is_listed = node.list_lo >= 0 and features[IS_LISTED, feature] != 0
    if is_flag(feature, rows):
        n_bins = list_flag_bins(feature, node, rows, bins, totals)
    elif has_given(scratch.given) or (not is_listed and (n_codes <= hi - lo or n_codes <= FEW_CODES)):
        coded = CodedRows(rows.codes, rows.addends)
        n_bins = list_node_bins(feature, n_codes, node, coded, scratch, scratch.given)
    else:
        ordered = SortedKeys(
            rows.lists.keys, feature, lo - node.list_lo, hi - node.list_lo, rows.lists.addends, np.int64(0)
        )
        if not is_listed:
            side = make_keys(rows.codes, lo, hi, feature, SMALL_SHIFT, scratch.keys, scratch.counts)
            ordered = SortedKeys(scratch.keys, np.int64(side), np.int64(0), hi - lo, rows.addends, lo)
        lowest = np.int64(ordered.keys[ordered.row, ordered.first]) >> SMALL_SHIFT
        if lowest == np.int64(ordered.keys[ordered.row, ordered.end - 1]) >> SMALL_SHIFT:
            return none_better(best)
        if settings.is_plain and lowest > 0:
            totals[N_MISSING] = 0
            total = totals[S_ALL] - centre * totals[W_ALL]
            return scan_keys(best, ordered, total, totals[W_ALL], centre, settings.min_samples_leaf)
        n_bins = list_bins_by_keys(ordered, SMALL_SHIFT, bins, totals)
    if n_bins == 0 or (n_bins == 1 and totals[N_MISSING] == 0):
        return none_better(best)
    walk = BinWalk(n_bins, features[MONOTONE, feature], no_chance())
    found = scan_moments(best, walk, node, settings, xlogx, bins, totals, scratch.rates)
    if found.cut < 0:
        return found
    following = np.int64(-1)
    if found.cut < n_bins - 1:
        following = bins[BIN_CODE, found.cut + 1]
    return Candidate(found.score, bins[BIN_CODE, found.cut], following, found.missing, found.n_ties, np.inf)


@inlined
def scan_numeric_classes(
    best: Candidate,
    feature: int,
    node: OpenNode,
    rows: Rows,
    table: Table,
    settings: Settings,
    scratch: Scratch,
    packed: PackedScratch | None,
) -> Candidate:
    """The same for three classes or more."""
    if packed is not None:
        if node.is_packed:
            if is_sparse(feature, rows.cells):
                return scan_sparse(best, feature, node, rows, scratch, packed, scratch.classes, rows.cells)
            if is_flag(feature, rows):
                return scan_packed_flag(best, feature, node, rows, scratch, scratch.classes)
            codes, first, at = source_of(feature, node.lo, node.hi, rows)
            lowest, highest = load_column(codes, first, first + node.hi - node.lo, at, packed.column)
            if lowest == highest or lowest != MISSING_CODE:
                scratch.totals[N_MISSING] = 0
                return scan_many_classes(best, lowest, highest, node, scratch)
    if is_sparse(feature, rows.cells):
        return scan_cells_of_classes(best, feature, node, rows, table, settings, scratch, rows.cells)
    return scan_classes(best, feature, node, rows, table, settings, scratch)


@inlined
def scan_number(
    best: Candidate,
    feature: int,
    node: OpenNode,
    rows: Rows,
    table: Table,
    settings: Settings,
    scratch: Scratch,
    classes: ClassScratch | None,
) -> Candidate:
    """Best cut of a numeric feature, for any target."""
    if classes is None:
        return scan_numeric(best, feature, node, rows, table, settings, scratch, scratch.packed)
    return scan_numeric_classes(best, feature, node, rows, table, settings, scratch, scratch.packed)


@inlined
def scan_by_sums(
    best: Candidate,
    feature: int,
    node: OpenNode,
    rows: Rows,
    table: Table,
    settings: Settings,
    scratch: Scratch,
    outputs: OutputScratch | None,
) -> Candidate:
    """The same where a branch is made of sums: of one output or class by class, or of several outputs."""
    is_category = table.features[IS_CATEGORICAL, feature] != 0
    if outputs is not None:
        if is_category:
            return scan_levels_of_outputs(best, feature, node, rows, table, settings, scratch, scratch.levels)
        return scan_number_of_outputs(best, feature, node, rows, table, settings, scratch, outputs)
    if is_category:
        return scan_category(best, feature, node, rows, table, settings, scratch, scratch.levels)
    return scan_number(best, feature, node, rows, table, settings, scratch, scratch.classes)


@inlined
def scan_feature(
    best: Candidate,
    feature: int,
    node: OpenNode,
    rows: Rows,
    table: Table,
    settings: Settings,
    scratch: Scratch,
    medians: MedianScratch | None,
) -> Candidate:
    """The same as `try_feature` where every cut is tried."""
    is_category = table.features[IS_CATEGORICAL, feature] != 0
    if medians is not None:
        if is_category:
            return scan_levels_by_medians(best, feature, node, rows, table, settings, scratch, scratch.levels)
        return scan_number_by_medians(best, feature, node, rows, table, settings, scratch, medians)
    return scan_by_sums(best, feature, node, rows, table, settings, scratch, scratch.outputs)


@inlined
def try_feature(
    best: Candidate,
    feature: int,
    node: OpenNode,
    rows: Rows,
    table: Table,
    settings: Settings,
    scratch: Scratch,
    random: RandomScratch | None,
) -> Candidate:
    """The better of `best` and the best test of a feature; of a category the subset is left in `scratch.levels`."""
    if random is not None:
        is_known, found = take_four(best, feature, node, table, scratch, scratch.fours)
        if is_known:
            return found
        return try_random_test(best, feature, node, rows, table, settings, scratch)
    return scan_feature(best, feature, node, rows, table, settings, scratch, scratch.medians)


# --- One node -------------------------------------------------------------------------------------------------------


@inlined
def sum_node(
    lo: int,
    hi: int,
    rows: Rows,
    table: Table,
    settings: Settings,
    scratch: Scratch,
    classes: ClassScratch | None,
    rates: RateScratch | None,
) -> tuple[float, int, int]:
    """Sum up rows lo .. hi in `totals`; return their score, the number of classes (0: moments) and the centre."""
    totals, xlogx = scratch.totals, table.xlogx
    if classes is not None:
        n_present = total_classes(rows.addends, lo, hi, classes.sums, totals, scratch.given)
        score = score_classes(settings.criterion, classes.sums, ALL, totals[W_ALL], n_present, xlogx)
        return score, n_present, np.int64(0)
    total_moments(rows.addends, lo, hi, totals, scratch.given)
    centre = np.int64(0)
    if settings.is_centred:
        centre = totals[S_ALL] // totals[W_ALL]
    centre, unit = open_unit(centre, settings, totals, rates)
    total = totals[S_ALL] - centre * totals[W_ALL]
    score = score_sums(settings.criterion, totals[W_ALL], total, totals[Q_ALL], unit, xlogx, rates)
    return score, np.int64(0), centre


@inlined
def is_too_even(totals: np.ndarray, settings: Settings, classes: ClassScratch | None) -> bool:
    """Whether the targets of the node deviate less than `min_spread` asks."""
    if classes is not None:
        return False
    if settings.min_spread <= 0.0:
        return False
    return deviation(totals[W_ALL], totals[S_ALL], totals[Q_ALL], settings.square_unit) < settings.min_spread


@inlined
def pack_node(
    lo: int, hi: int, n_present: int, addends: np.ndarray, classes: ClassScratch | None, packed: PackedScratch | None
) -> tuple[bool, int]:
    """Pack the addends of a node that is not too large for it; return whether, and the sum of squared class weights."""
    power = np.int64(0)
    if packed is None:
        return False, power
    if hi - lo > MAX_CODES:
        return False, power
    if classes is None:
        pack_addends(addends, lo, hi, packed)
    else:
        power = pack_classes(addends, lo, hi, n_present, classes.sums, packed.addends)
    return True, power


@inlined
def blur_of_known(
    score: float,
    node: OpenNode,
    settings: Settings,
    totals: np.ndarray,
    xlogx: np.ndarray,
    classes: ClassScratch | None,
    rates: RateScratch | None,
    medians: MedianScratch | None,
) -> float:
    """Rounding of the score of a test that was judged by its known rows; score: of the node."""
    if medians is not None:
        return medians.blur[0] + slack_of(score)
    if classes is None:
        return blur_known(settings, totals, node.centre, xlogx, rates)
    return blur_of(settings.criterion, totals[W_ALL], score, xlogx)


@inlined
def write_test(
    slot: int, feature: int, kind: int, cut: int, missing: int, n_branches: int, cut_value: float, frontier: Frontier
) -> None:
    """Write a test to a slot."""
    frontier.feature[slot] = feature
    frontier.kind[slot] = kind
    frontier.cut[slot] = cut
    frontier.missing[slot] = missing
    frontier.n_branches[slot] = n_branches
    frontier.cut_value[slot] = cut_value


@inlined
def split_pair(
    slot: int,
    lo: int,
    key: np.uint64,
    rows: Rows,
    features: np.ndarray,
    is_shuffled: bool,
    frontier: Frontier,
    scratch: Scratch,
) -> int:
    """Split two rows by the first numeric feature that tells them apart, in the order of the search: none is better.

    Half the nodes of a tree that is grown to the end have two or three rows. Returns the feature, or -1.
    """
    permutation, places = scratch.permutation, scratch.places
    n_drawn = np.int64(0)
    found = np.int64(-1)
    for k in range(features.shape[1]):
        feature = np.int64(permutation[k])
        if is_shuffled:
            feature = draw_feature(permutation, places, k, key)
            n_drawn += 1
        if is_even(feature, rows):
            continue
        a = code_at(lo, feature, rows)
        b = code_at(lo + 1, feature, rows)
        if a == b:
            continue
        if min(a, b) == MISSING_CODE or features[IS_CATEGORICAL, feature] != 0:
            break
        write_test(slot, feature, THRESHOLD, min(a, b), -1, 2, np.float64(max(a, b)), frontier)
        found = feature
        break
    restore_order(permutation, places, n_drawn)
    return found


@inlined
def is_by_ratio(settings: Settings, extra: ExtraScratch | None) -> bool:
    """Whether tests are chosen by their gain ratio; known at compile time where no one asked for it."""
    if extra is None:
        return False
    return settings.is_ratio


@inlined
def is_by_known(settings: Settings, extra: ExtraScratch | None) -> bool:
    """Whether tests are judged by the rows whose value is known; known at compile time where no one asked for it."""
    if extra is None:
        return False
    return settings.missing == SURROGATE


@inlined
def note_improvement(extra: ExtraScratch | None, node: int, gain: float) -> None:
    """Keep the gain of a node's test over the rows of known value."""
    if extra is None:
        return
    extra.improve[node] = gain


@inlined
def open_node(
    slot: int, lo: int, hi: int, n_present: int, centre: int, rows: Rows, frontier: Frontier, scratch: Scratch
) -> OpenNode:
    """What the searches of features need to know of rows lo .. hi; their addends are packed."""
    state = frontier.state
    key = np.uint64(frontier.key[slot])
    is_packed, power = pack_node(lo, hi, n_present, rows.addends, scratch.classes, scratch.packed)
    pad_addends(rows.addends, lo, hi, scratch.random, scratch.classes, scratch.bits)
    is_covered = lo >= state[LIST_LO] and hi <= state[LIST_HI]
    list_lo = state[LIST_LO] if is_covered else np.int64(-1)
    lower, upper = frontier.lower[slot], frontier.upper[slot]
    return OpenNode(
        lo, hi, list_lo, n_present, centre, power, is_packed, lower, upper, fold(key, TESTS), fold(key, TIES)
    )


@inlined
def settle_test(
    slot: int, gain: float, first_word: int, table: Table, settings: Settings, frontier: Frontier, scratch: Scratch
) -> None:
    """Complete the test in a slot: its gain, and the codes about its threshold or the first word of its subset.

    Where the rows are elsewhere no tree grows here, and the threshold is placed at once.
    """
    # fewer digits than a score has: equal gains stay equal whichever way they were summed, and go to the older node
    frontier.gain[slot] = np.float64(np.float32(gain))
    note_improvement(scratch.extra, frontier.node[slot], gain)
    if frontier.kind[slot] == SUBSET:
        frontier.cut_value[slot] = first_word
    elif not settings.is_random:
        feature, cut, following = frontier.feature[slot], frontier.cut[slot], np.int64(frontier.cut_value[slot])
        frontier.cut_value[slot] = place_now(feature, cut, following, table, scratch.given)


@inlined
def place_now(feature: int, cut: int, following: int, table: Table, given: GivenSums | None) -> float:
    """A threshold, or the codes about it until all nodes are made."""
    if given is None:
        return pack_codes(cut, following)
    return place_threshold(table.features, table.edges, feature, cut, following, False)


@inlined
def search(
    slot: int, rows: Rows, table: Table, settings: Settings, nodes: Nodes, frontier: Frontier, scratch: Scratch
) -> tuple[bool, float]:
    """Find the best split of the node in a slot and write it there; return whether there is one, and the node's score.

    The bitset of a subset goes to nodes.subsets[state[N_WORDS] ...].
    """
    addends, features, xlogx, totals = rows.addends, table.features, table.xlogx, scratch.totals
    permutation, places = scratch.permutation, scratch.places
    state, control = frontier.state, frontier.control
    lo = nodes.begin[frontier.node[slot]]
    hi = lo + nodes.n_rows[frontier.node[slot]]
    if is_noted(settings) and not has_given(scratch.given):
        node_score, n_present, centre = take_noted(slot, hi - lo, rows, table, settings, frontier, scratch)
    else:
        node_score, n_present, centre = sum_node(lo, hi, rows, table, settings, scratch, scratch.classes, scratch.rates)
    if is_too_even(totals, settings, scratch.classes) or totals[W_ALL] < 2 * settings.min_weight_leaf:
        return False, node_score
    key = np.uint64(frontier.key[slot])
    draw_key = fold(key, DRAWS)
    bound = best_possible(settings.criterion, settings.is_class, addends, lo, hi, totals[W_ALL], totals[S_ALL], centre)
    bound = certain(bound)
    if settings.has_random_ties:
        bound = np.inf
    best = NO_SCORE
    best_feature = np.int64(-1)
    find_varying(lo, hi, rows)
    mark_cells(lo, hi, rows.ids, rows.cells)
    if hi - lo == 2 and settings.is_plain and not settings.is_random:
        best_feature = split_pair(slot, lo, draw_key, rows, features, settings.is_shuffled, frontier, scratch)
        if best_feature >= 0:
            best = bound
    node = open_node(slot, lo, hi, n_present, centre, rows, frontier, scratch)
    node_score = open_medians(node_score, node, rows, settings.is_whole, scratch, scratch.medians)
    node_score = open_outputs(node_score, node, rows, settings.is_whole, totals, scratch.outputs)
    is_ratio = is_by_ratio(settings, scratch.extra)
    by_known = is_by_known(settings, scratch.extra)
    first_word = state[N_WORDS]
    n_features = np.int64(features.shape[1])
    n_tried = np.int64(0)
    n_drawn = np.int64(0)
    n_ties = np.int64(0)
    blur = 0.0
    constant = np.uint64(frontier.constant[slot])
    if best_feature < 0:
        constant |= find_constant(lo, hi, rows, settings, scratch.random, scratch.given)
    has_fetched = is_fetched(lo, hi, rows, settings) and not has_given(scratch.given)
    if has_fetched:
        fetch_codes(lo, hi, constant, settings.n_try, draw_key, rows, permutation, places)
    is_listed = open_draws(hi - lo, features, settings, rows.cells)
    draw_fours(constant, draw_key, node, rows, table, settings, scratch, scratch.fours)
    # by ratio each feature proposes its test of largest gain; a last step searches that of largest ratio again
    for k in range(n_features + 1 if is_ratio else n_features):
        if control[CONTROL_STOP] != 0:
            break
        if is_ratio:
            best = NO_SCORE
            n_ties = np.int64(0)
            if k < n_features and n_tried >= settings.n_try and best_feature >= 0:
                continue
        elif best >= bound or (n_tried >= settings.n_try and best_feature >= 0):
            break
        feature = np.int64(k)
        if k < n_features:
            n_drawn += 1
            n_tried += 1
            feature = np.int64(permutation[k])
            if settings.is_shuffled:
                feature = next_feature(is_listed, k, permutation, places, draw_key, rows.cells)
                if feature < 0:
                    break
            if constant & constant_bit(feature) != 0 or is_even(feature, rows):
                n_tried -= np.int64(settings.is_random)  # random tests count the features that vary alone
                continue
            if is_lacking(feature, scratch.given):
                break
        else:
            feature = np.int64(
                pick_ratio(scratch.extra, n_drawn, node_score, settings.has_random_ties, fold(key, RATIO_TIES))
            )
            if feature < 0:
                break
            if settings.is_shuffled:
                feature = np.int64(permutation[feature])
        so_far = best
        if by_known:
            best += blur  # a score that was computed in another way must not win by its rounding
        given = Candidate(best, np.int64(-1), np.int64(-1), np.int64(0), n_ties, np.inf)
        found = try_feature(given, feature, node, rows, table, settings, scratch, scratch.random)
        best = found.score
        n_ties = found.n_ties
        if found.missing < 0:
            n_tried -= 1  # only features that vary count
            constant |= constant_bit(feature)
            continue
        kind = SUBSET if features[IS_CATEGORICAL, feature] != 0 else THRESHOLD
        cut = found.cut
        if kind == SUBSET and cut >= 0:
            keep_subset(scratch.levels, nodes.subsets, first_word, features[N_CODES, feature])
            cut = first_word
        if is_ratio and k < n_features:
            information = 0.0
            if cut >= 0:
                test = CodeTest(feature, kind, cut, found.missing, features[N_CODES, feature])
                information = split_information(test, settings.missing, node, rows, nodes.subsets, xlogx, scratch.extra)
            propose(scratch.extra, k, best - node_score, information)
        if by_known:
            if cut < 0:
                best = so_far
            elif not settings.has_random_ties:
                blur = blur_of_known(
                    node_score, node, settings, totals, xlogx, scratch.classes, scratch.rates, scratch.medians
                )
        if cut >= 0:
            best_feature = feature
            has_missing = totals[N_MISSING] > 0
            n_branches = 3 if has_missing and found.missing == 2 else 2
            missing = np.int64(2) if by_known else found.missing  # behind the others until their surrogates are known
            cut_value = found.threshold if settings.is_random else np.float64(found.following)
            write_test(slot, feature, kind, cut, missing if has_missing else -1, n_branches, cut_value, frontier)
    if has_fetched:
        forget_codes(rows)
    forget_fours(hi - lo, scratch.fours)
    forget_cells(rows.cells)
    forget_draws(is_listed, permutation, rows.cells)
    if by_known and abs(best - node_score) <= blur:
        best = node_score
    frontier.constant[slot] = np.int64(constant)
    restore_order(permutation, places, n_drawn if settings.is_shuffled and not is_listed else np.int64(0))
    if best_feature < 0 or best - node_score < settings.min_gain:
        return False, node_score
    settle_test(slot, best - node_score, first_word, table, settings, frontier, scratch)
    return True, node_score
