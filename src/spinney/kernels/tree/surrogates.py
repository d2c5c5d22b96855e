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
    AGREE,
    AGREE_CUT,
    AGREE_NEXT,
    AGREE_REVERSED,
    CONTROL_STOP,
    FEATURE_SHIFT,
    GROUP_CODE,
    GROUP_N,
    IS_CATEGORICAL,
    KIND_BITS,
    MISSING_CODE,
    MONOTONE,
    N_CODES,
    STAND_AGREE,
    STAND_CUT,
    STAND_KNOWN,
    STAND_MOST,
    STAND_NODE,
    STAND_TEST,
    SUBSET,
    THRESHOLD,
    WEIGHT,
)

from ..common.branch import branch_of_code, has_level
from ..common.sorting import make_keys
from ..common.structs import Settings
from ..common.thresholds import place_threshold
from .partition import swap_rows

KIND_MASK = (1 << KIND_BITS) - 1
GROUP_FIRST, GROUP_SECOND = 2, 3  # of a group here: weight that the test sends to branch 0 and to branch 1
LEAST_ROWS = 2  # on either side: a single odd row must not make a surrogate
FEW_CODES = 16
ONE = np.uint64(1)
NONE = np.uint64(0)


@kernel
def group_sides(
    codes: np.ndarray,
    labels: np.ndarray,
    lo: int,
    middle: int,
    end: int,
    hi: int,
    feature: int,
    n_codes: int,
    shift: int,
    keys: np.ndarray,
    counts: np.ndarray,
    tally: np.ndarray,  # (4, codes + 1) int64 scratch, zero before and after
    groups: np.ndarray,
) -> int:
    """Group rows lo .. hi by code: rows that the test knows and their weight on each side; return how many groups.

    A code that only rows unknown to the test have makes a group of no weight: thresholds lie between values of the
    node.
    """
    is_unit = len(labels) == 1
    n_groups = np.int64(0)
    if n_codes <= hi - lo or n_codes <= FEW_CODES:
        for i in range(lo, hi):
            code = np.int64(codes[i, feature])
            tally[0, code] += 1
            if i < end:
                tally[1, code] += 1
                tally[2 if i < middle else 3, code] += np.int64(1) if is_unit else labels[WEIGHT, i]
        for code in range(n_codes + 1):
            if code > MISSING_CODE and tally[0, code] > 0:
                groups[GROUP_CODE, n_groups] = code
                groups[GROUP_N, n_groups] = tally[1, code]
                groups[GROUP_FIRST, n_groups] = tally[2, code]
                groups[GROUP_SECOND, n_groups] = tally[3, code]
                n_groups += 1
            for row in range(4):
                tally[row, code] = 0
        return n_groups
    row = make_keys(codes, lo, hi, feature, shift, keys, counts)
    mask = (np.int64(1) << shift) - 1
    last = np.int64(MISSING_CODE)
    for k in range(hi - lo):
        key = np.int64(keys[row, k])
        code = key >> shift
        if code == MISSING_CODE:
            continue
        if code != last:
            last = code
            groups[GROUP_CODE, n_groups] = code
            groups[GROUP_N, n_groups] = 0
            groups[GROUP_FIRST, n_groups] = 0
            groups[GROUP_SECOND, n_groups] = 0
            n_groups += 1
        i = lo + (key & mask)
        if i < end:
            groups[GROUP_N, n_groups - 1] += 1
            groups[GROUP_FIRST if i < middle else GROUP_SECOND, n_groups - 1] += (
                np.int64(1) if is_unit else labels[WEIGHT, i]
            )
    return n_groups


@kernel
def agree_by_cut(groups: np.ndarray, n_groups: int) -> tuple[int, int, int]:
    """Threshold that agrees best: weight that agrees, last group below it (-1: none), whether below means branch 1."""
    n = np.int64(0)
    first = np.int64(0)
    second = np.int64(0)
    for g in range(n_groups):
        n += groups[GROUP_N, g]
        first += groups[GROUP_FIRST, g]
        second += groups[GROUP_SECOND, g]
    agree = max(first, second)
    cut = np.int64(-1)
    is_reversed = np.int64(0)
    n_below = np.int64(0)
    same = second  # weight that agrees if rows below the threshold go to branch 0
    for g in range(n_groups - 1):
        n_below += groups[GROUP_N, g]
        same += groups[GROUP_FIRST, g] - groups[GROUP_SECOND, g]
        if min(n_below, n - n_below) < LEAST_ROWS:
            continue
        other = first + second - same
        if max(same, other) > agree:
            agree = max(same, other)
            cut = np.int64(g)
            is_reversed = np.int64(other > same)
    return agree, cut, is_reversed


@kernel
def lead_of(groups: np.ndarray, n_groups: int) -> int:
    """Weight of branch 0 less that of branch 1, of the rows of all groups."""
    lead = np.int64(0)
    for g in range(n_groups):
        lead += groups[GROUP_FIRST, g] - groups[GROUP_SECOND, g]
    return lead


@inlined
def goes_first(groups: np.ndarray, g: int, lead: int) -> bool:
    """Whether a level goes to branch 0: where most of its rows go, if they go both ways alike where most of all go."""
    more = groups[GROUP_FIRST, g] - groups[GROUP_SECOND, g]
    return more > 0 or (more == 0 and lead > 0)


@kernel
def agree_by_level(groups: np.ndarray, n_groups: int) -> int:
    """Weight that agrees if each level goes where most of its rows go; 0 if that leaves a side with too few rows."""
    agree = np.int64(0)
    n_first = np.int64(0)
    n_second = np.int64(0)
    lead = lead_of(groups, n_groups)
    for g in range(n_groups):
        agree += max(groups[GROUP_FIRST, g], groups[GROUP_SECOND, g])
        if goes_first(groups, g, lead):
            n_first += groups[GROUP_N, g]
        else:
            n_second += groups[GROUP_N, g]
    return agree if min(n_first, n_second) >= LEAST_ROWS else np.int64(0)


@kernel
def keep_levels(groups: np.ndarray, n_groups: int, n_levels: int, subsets: np.ndarray, at: int) -> None:
    """Write two bitsets: the levels of branch 0, and those that any row known to the test has."""
    n_words = (n_levels + 63) >> 6
    for w in range(2 * n_words):
        subsets[at + w] = NONE
    lead = lead_of(groups, n_groups)
    for g in range(n_groups):
        if groups[GROUP_N, g] == 0:
            continue
        level = groups[GROUP_CODE, g] - 1
        bit = ONE << np.uint64(level & 63)
        subsets[at + n_words + (level >> 6)] |= bit
        if goes_first(groups, g, lead):
            subsets[at + (level >> 6)] |= bit


@kernel
def find_surrogates(
    codes: np.ndarray,
    labels: np.ndarray,
    lo: int,
    middle: int,
    end: int,
    hi: int,
    node: int,
    feature: int,  # of the node's own test
    w_first: int,  # weight of its branches, of the rows that it knows
    w_second: int,
    features: np.ndarray,
    edges: np.ndarray,
    settings: Settings,
    shift: int,
    keys: np.ndarray,
    counts: np.ndarray,
    tally: np.ndarray,
    groups: np.ndarray,
    found: np.ndarray,  # (AGREE_ROWS, n_features) int64 scratch
    subsets: np.ndarray,
    n_words: int,
    stand_ins: np.ndarray,  # (STAND_ROWS, any) int64, written from n_stand_ins on
    stand_cuts: np.ndarray,  # (any,) float64: threshold, or first word of the bitsets
    n_stand_ins: int,
    control: np.ndarray,
) -> tuple[int, int]:
    """Find the surrogates of a node, best first, ties by feature; return how many stand-ins and words there are then.

    A feature under a monotone constraint is none: rows must not change sides of another feature's test by its value.
    """
    most = max(w_first, w_second)
    for f in range(features.shape[1]):
        found[AGREE, f] = 0
        if f == feature or features[MONOTONE, f] != 0 or control[CONTROL_STOP] != 0:
            continue
        n_groups = group_sides(
            codes, labels, lo, middle, end, hi, f, features[N_CODES, f], shift, keys, counts, tally, groups
        )
        if features[IS_CATEGORICAL, f] != 0:
            found[AGREE, f] = agree_by_level(groups, n_groups)
            continue
        agree, cut, is_reversed = agree_by_cut(groups, n_groups)
        if cut >= 0:
            found[AGREE, f] = agree
            found[AGREE_CUT, f] = groups[GROUP_CODE, cut]
            found[AGREE_NEXT, f] = groups[GROUP_CODE, cut + 1]
            found[AGREE_REVERSED, f] = is_reversed
    for _ in range(settings.max_surrogates):
        best = np.int64(-1)
        agree = most
        for f in range(features.shape[1]):
            if found[AGREE, f] > agree:
                agree = found[AGREE, f]
                best = np.int64(f)
        if best < 0:
            break
        found[AGREE, best] = 0
        stand_ins[STAND_NODE, n_stand_ins] = node
        stand_ins[STAND_AGREE, n_stand_ins] = agree
        stand_ins[STAND_KNOWN, n_stand_ins] = w_first + w_second
        stand_ins[STAND_MOST, n_stand_ins] = most
        if features[IS_CATEGORICAL, best] != 0:
            n_levels = features[N_CODES, best]
            n_groups = group_sides(
                codes, labels, lo, middle, end, hi, best, n_levels, shift, keys, counts, tally, groups
            )
            keep_levels(groups, n_groups, n_levels, subsets, n_words)
            stand_ins[STAND_TEST, n_stand_ins] = (best << FEATURE_SHIFT) | SUBSET
            stand_ins[STAND_CUT, n_stand_ins] = n_words
            stand_cuts[n_stand_ins] = np.float64(n_words)
            n_words += 2 * ((n_levels + 63) >> 6)
        else:
            is_reversed = found[AGREE_REVERSED, best]
            stand_ins[STAND_TEST, n_stand_ins] = (best << FEATURE_SHIFT) | (is_reversed << KIND_BITS) | THRESHOLD
            stand_ins[STAND_CUT, n_stand_ins] = found[AGREE_CUT, best]
            stand_cuts[n_stand_ins] = place_threshold(
                features, edges, best, found[AGREE_CUT, best], found[AGREE_NEXT, best], False
            )
        n_stand_ins += 1
    return n_stand_ins, n_words


@inlined
def side_of(
    codes: np.ndarray,
    row: int,
    features: np.ndarray,
    subsets: np.ndarray,
    stand_ins: np.ndarray,
    first: int,
    last: int,
    heavier: int,
) -> int:
    """Branch of a row by the first of the stand-ins first .. last that knows it, else the heavier branch."""
    for s in range(first, last):
        test = stand_ins[STAND_TEST, s]
        feature = test >> FEATURE_SHIFT
        code = np.int64(codes[row, feature])
        if code == MISSING_CODE:
            continue
        kind = test & KIND_MASK
        cut = stand_ins[STAND_CUT, s]
        if kind == SUBSET:
            n_words = (features[N_CODES, feature] + 63) >> 6
            if not has_level(subsets, cut + n_words, code - 1):
                continue
        return branch_of_code(code, kind, cut, 0, subsets) ^ ((test >> KIND_BITS) & 1)
    return heavier


@inlined
def place_missing(
    codes: np.ndarray,
    words: np.ndarray,
    labels: np.ndarray,
    ids: np.ndarray,
    middle: int,
    end: int,
    hi: int,
    features: np.ndarray,
    subsets: np.ndarray,
    stand_ins: np.ndarray,
    first: int,
    last: int,
    heavier: int,
    moves: np.ndarray,
) -> int:
    """Move the rows end .. hi of branch 0 before those of branch 1, from `middle` on; return where these begin then."""
    n_behind = np.uint64(0)
    n_front = np.uint64(0)
    for i in range(middle, hi):
        side = np.int64(1)
        if i >= end:
            side = side_of(codes, i, features, subsets, stand_ins, first, last, heavier)
        if side != 0:
            moves[0, n_behind] = i
            n_behind += ONE
        else:
            moves[1, n_front] = i
            n_front += ONE
    return swap_rows(words, labels, ids, middle, n_front, n_behind, moves)
