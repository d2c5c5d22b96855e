"""Surrogates of a test: what other features say of the branch that a row takes (Breiman et al. 1984, section 5.3).

The rules are those of rpart, but for a slip there: rpart 4.1.19 refuses a category that fewer than two rows disagree
with, where it means one that sends fewer than two rows to a side. The rows of the node stand in order: those that the
node's own test sends to branch 0, those of branch 1, those whose value it does not know. Of every other feature the
threshold, in either direction, or the assignment of levels is found that sends the largest weight the same way; the
rows of which both values are known count. It is a surrogate if that is more than all rows of the heavier branch, so one
that is often missing itself is none.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import (
    BIN_CODE,
    BIN_N,
    CONTROL_STOP,
    IS_CATEGORICAL,
    MISSING_CODE,
    MONOTONE,
    N_CODES,
    N_SURROGATES,
    N_WORDS,
    SUBSET,
    THRESHOLD,
    WEIGHT,
)

from ..common.branch import branch_of_code, has_level
from ..common.node_layout import feature_of, kind_of, missing_of, pack_test
from ..common.sorting import make_keys
from ..common.structs import Frontier, KeptSurrogates, Nodes, Parts, Rows, Scratch, Settings, Table
from ..common.thresholds import place_threshold
from .partition import swap_rows

BIN_FIRST, BIN_SECOND = 2, 3  # of a bin here: weight that the test sends to branch 0 and to branch 1
LEAST_ROWS = 2  # on either side: a single odd row must not make a surrogate
FEW_CODES = 16
ONE = np.uint64(1)
NONE = np.uint64(0)


@kernel
def list_bins_by_side(
    parts: Parts,
    feature: int,
    n_codes: int,
    shift: int,
    rows: Rows,
    scratch: Scratch,
) -> int:
    """List the bins of a node: rows that its test knows and their weight on each side; return how many there are.

    A code that only rows unknown to the test have makes a bin of no weight: thresholds lie between values of the
    node. shift: bits of a position in a key.
    """
    codes, addends = rows.codes, rows.addends
    keys, bins, tally = scratch.keys, scratch.bins, scratch.extra.tally
    lo, middle, end, hi = parts.lo, parts.middle, parts.end, parts.hi
    is_unit = len(addends) == 1
    n_bins = np.int64(0)
    if n_codes <= hi - lo or n_codes <= FEW_CODES:
        for i in range(lo, hi):
            code = np.int64(codes[i, feature])
            tally[0, code] += 1
            if i < end:
                tally[1, code] += 1
                tally[2 if i < middle else 3, code] += np.int64(1) if is_unit else addends[WEIGHT, i]
        for code in range(n_codes + 1):
            if code > MISSING_CODE and tally[0, code] > 0:
                bins[BIN_CODE, n_bins] = code
                bins[BIN_N, n_bins] = tally[1, code]
                bins[BIN_FIRST, n_bins] = tally[2, code]
                bins[BIN_SECOND, n_bins] = tally[3, code]
                n_bins += 1
            for row in range(4):
                tally[row, code] = 0
        return n_bins
    row = make_keys(codes, lo, hi, feature, shift, keys, scratch.counts)
    mask = (np.int64(1) << shift) - 1
    last = np.int64(MISSING_CODE)
    for k in range(hi - lo):
        key = np.int64(keys[row, k])
        code = key >> shift
        if code == MISSING_CODE:
            continue
        if code != last:
            last = code
            bins[BIN_CODE, n_bins] = code
            bins[BIN_N, n_bins] = 0
            bins[BIN_FIRST, n_bins] = 0
            bins[BIN_SECOND, n_bins] = 0
            n_bins += 1
        i = lo + (key & mask)
        if i < end:
            bins[BIN_N, n_bins - 1] += 1
            bins[BIN_FIRST if i < middle else BIN_SECOND, n_bins - 1] += np.int64(1) if is_unit else addends[WEIGHT, i]
    return n_bins


@kernel
def agree_by_cut(bins: np.ndarray, n_bins: int) -> tuple[int, int, int]:
    """Threshold that agrees best: (weight that agrees, last bin below it or -1, 1 if below means branch 1)."""
    n = np.int64(0)
    first = np.int64(0)
    second = np.int64(0)
    for b in range(n_bins):
        n += bins[BIN_N, b]
        first += bins[BIN_FIRST, b]
        second += bins[BIN_SECOND, b]
    agree = max(first, second)
    cut = np.int64(-1)
    is_reversed = np.int64(0)
    n_below = np.int64(0)
    same = second  # weight that agrees if rows below the threshold go to branch 0
    for b in range(n_bins - 1):
        n_below += bins[BIN_N, b]
        same += bins[BIN_FIRST, b] - bins[BIN_SECOND, b]
        if min(n_below, n - n_below) < LEAST_ROWS:
            continue
        other = first + second - same
        if max(same, other) > agree:
            agree = max(same, other)
            cut = np.int64(b)
            is_reversed = np.int64(other > same)
    return agree, cut, is_reversed


@kernel
def lead_of(bins: np.ndarray, n_bins: int) -> int:
    """Weight of branch 0 less that of branch 1, of the rows of all bins."""
    lead = np.int64(0)
    for b in range(n_bins):
        lead += bins[BIN_FIRST, b] - bins[BIN_SECOND, b]
    return lead


@inlined
def goes_first(bins: np.ndarray, b: int, lead: int) -> bool:
    """Whether a level goes to branch 0: the branch most of its rows take; on a tie, the branch most of all take."""
    more = bins[BIN_FIRST, b] - bins[BIN_SECOND, b]
    return more > 0 or (more == 0 and lead > 0)


@kernel
def agree_by_level(bins: np.ndarray, n_bins: int) -> int:
    """Weight that agrees if each level goes where most of its rows go; 0 if that leaves a side with too few rows."""
    agree = np.int64(0)
    n_first = np.int64(0)
    n_second = np.int64(0)
    lead = lead_of(bins, n_bins)
    for b in range(n_bins):
        agree += max(bins[BIN_FIRST, b], bins[BIN_SECOND, b])
        if goes_first(bins, b, lead):
            n_first += bins[BIN_N, b]
        else:
            n_second += bins[BIN_N, b]
    return agree if min(n_first, n_second) >= LEAST_ROWS else np.int64(0)


@kernel
def keep_levels(bins: np.ndarray, n_bins: int, n_levels: int, subsets: np.ndarray, at: int) -> None:
    """Write two bitsets: the levels of branch 0, and those that any row known to the test has."""
    n_words = (n_levels + 63) >> 6
    for w in range(2 * n_words):
        subsets[at + w] = NONE
    lead = lead_of(bins, n_bins)
    for b in range(n_bins):
        if bins[BIN_N, b] == 0:
            continue
        level = bins[BIN_CODE, b] - 1
        bit = ONE << np.uint64(level & 63)
        subsets[at + n_words + (level >> 6)] |= bit
        if goes_first(bins, b, lead):
            subsets[at + (level >> 6)] |= bit


@inlined
def compare_features(parts: Parts, shift: int, rows: Rows, table: Table, frontier: Frontier, scratch: Scratch) -> None:
    """Find of every other feature how it agrees best with the node's test.

    A feature under a monotone constraint is no surrogate: rows must not change sides of another feature's test by its
    value.
    """
    features, control = table.features, frontier.control
    bins, extra = scratch.bins, scratch.extra
    for f in range(features.shape[1]):
        extra.agree[f] = 0
        if f == parts.feature or features[MONOTONE, f] != 0 or control[CONTROL_STOP] != 0:
            continue
        n_bins = list_bins_by_side(parts, f, features[N_CODES, f], shift, rows, scratch)
        if features[IS_CATEGORICAL, f] != 0:
            extra.agree[f] = agree_by_level(bins, n_bins)
            continue
        agree, cut, is_reversed = agree_by_cut(bins, n_bins)
        if cut >= 0:
            extra.agree[f] = agree
            extra.agree_cut[f] = bins[BIN_CODE, cut]
            extra.agree_next[f] = bins[BIN_CODE, cut + 1]
            extra.agree_reversed[f] = is_reversed


@inlined
def keep_surrogate(
    parts: Parts, feature: int, shift: int, rows: Rows, table: Table, nodes: Nodes, frontier: Frontier, scratch: Scratch
) -> None:
    """Append the surrogate that a feature makes."""
    features, state = table.features, frontier.state
    extra, kept = scratch.extra, scratch.extra.kept
    at = state[N_SURROGATES]
    state[N_SURROGATES] = at + 1
    kept.node[at] = parts.node
    kept.known[at] = parts.w_first + parts.w_second
    kept.most[at] = max(parts.w_first, parts.w_second)
    kept.agree[at] = extra.agree[feature]
    if features[IS_CATEGORICAL, feature] == 0:
        cut = extra.agree_cut[feature]
        kept.test[at] = pack_test(feature, extra.agree_reversed[feature], THRESHOLD)
        kept.cut[at] = cut
        kept.cut_value[at] = place_threshold(features, table.edges, feature, cut, extra.agree_next[feature], False)
        return
    first_word = state[N_WORDS]
    n_levels = features[N_CODES, feature]
    n_bins = list_bins_by_side(parts, feature, n_levels, shift, rows, scratch)
    keep_levels(scratch.bins, n_bins, n_levels, nodes.subsets, first_word)
    kept.test[at] = pack_test(feature, 0, SUBSET)
    kept.cut[at] = first_word
    kept.cut_value[at] = np.float64(first_word)
    state[N_WORDS] = first_word + 2 * ((n_levels + 63) >> 6)


@inlined
def branch_by_surrogates(
    row: int, codes: np.ndarray, features: np.ndarray, subsets: np.ndarray, kept: KeptSurrogates, first: int, last: int
) -> int:
    """Branch of a row by the first of the surrogates first .. last that knows it; -1: none does."""
    for s in range(first, last):
        test = kept.test[s]
        feature = feature_of(test)
        code = np.int64(codes[row, feature])
        if code == MISSING_CODE:
            continue
        kind = kind_of(test)
        cut = kept.cut[s]
        if kind == SUBSET:
            n_words = (features[N_CODES, feature] + 63) >> 6
            if not has_level(subsets, cut + n_words, code - 1):
                continue
        return np.int64(branch_of_code(code, kind, cut, 0, subsets)) ^ missing_of(test)
    return np.int64(-1)


@inlined
def place_missing(parts: Parts, first: int, last: int, rows: Rows, table: Table, nodes: Nodes, scratch: Scratch) -> int:
    """Move each row whose value is missing to its branch by the surrogates first .. last; return where branch 1 begins.

    A row that none of them knows goes to the heavier branch.
    """
    codes, moves = rows.codes, scratch.moves
    kept = scratch.extra.kept
    heavier = np.int64(0 if parts.w_first > parts.w_second else 1)
    n_behind = np.uint64(0)
    n_front = np.uint64(0)
    last_place = np.uint64(parts.hi - parts.middle) - ONE
    for i in range(parts.middle, parts.hi):
        side = np.int64(1)
        if i >= parts.end:
            side = branch_by_surrogates(i, codes, table.features, nodes.subsets, kept, first, last)
            if side < 0:
                side = heavier
        if side != 0:
            moves[last_place - n_behind] = i
            n_behind += ONE
        else:
            moves[n_front] = i
            n_front += ONE
    middle = np.uint64(parts.middle) + n_front
    swap_rows(rows, middle, n_behind, n_front, moves)
    return np.int64(middle)


@inlined
def use_surrogates(
    parts: Parts,
    shift: int,
    rows: Rows,
    table: Table,
    settings: Settings,
    nodes: Nodes,
    frontier: Frontier,
    scratch: Scratch,
) -> int:
    """Find the surrogates of a node, best first, ties by feature; move the rows whose value is missing by them.

    Returns where branch 1 begins.
    """
    agree = scratch.extra.agree
    first = frontier.state[N_SURROGATES]
    compare_features(parts, shift, rows, table, frontier, scratch)
    for _ in range(settings.max_surrogates):
        best = np.int64(-1)
        most = max(parts.w_first, parts.w_second)
        for f in range(len(agree)):
            if agree[f] > most:
                most = agree[f]
                best = np.int64(f)
        if best < 0:
            break
        keep_surrogate(parts, best, shift, rows, table, nodes, frontier, scratch)
        agree[best] = 0
    if parts.end == parts.hi:
        return parts.middle
    return place_missing(parts, first, frontier.state[N_SURROGATES], rows, table, nodes, scratch)
