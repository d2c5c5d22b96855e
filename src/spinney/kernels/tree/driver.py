"""Grow one tree: the serial driver over build, scan and partition.

Words: a *slot* holds an open node; `search` finds its best split; `expand` carries the split out. With surrogates it
finds them too, and moves the rows whose value is missing by what they say.

  depth first   pop a node, search it, expand it, push its open children
  best first    pop the node of largest gain, expand it, search its open children and push them

The driver keeps everything it knows in arrays, so that it can return at any node (room runs out, someone pressed
Ctrl-C) and go on later.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined, kernel
from spinney._types import (
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
    KEY,
    KIND,
    KIND_BITS,
    LARGE_SHIFT,
    LEAF,
    LIST_HI,
    LIST_LO,
    LOWER,
    MISSING_BRANCH,
    MONOTONE,
    MOST_BRANCHES,
    N_BRANCHES,
    N_CODES,
    N_FREE,
    N_LEAVES,
    N_NODES,
    N_QUEUED,
    N_ROWS,
    N_STAND_INS,
    N_WORDS,
    NEEDS_ROOM,
    NODE,
    QUEUE,
    S_ALL,
    SCORE,
    SLOT_CUT_VALUE,
    SLOT_LOWER,
    SLOT_UPPER,
    SMALL_SHIFT,
    STOPPED,
    SUBSET,
    SURROGATE,
    TEST,
    UPPER,
    W_ALL,
)

from ..common.queue import pop, push
from ..common.rng import fold
from ..common.structs import Queue, Settings
from ..common.sums import sum_moments
from .partition import partition
from .search import search
from .sorted_lists import make_lists, split_lists
from .surrogates import find_surrogates, place_missing

CHILDREN = np.uint64(2)  # parts of a node's key: one for each branch from here on; the search has others


@kernel
def send_absent_left(
    codes: np.ndarray,
    lo: int,
    hi: int,
    feature: int,
    n_levels: int,
    subsets: np.ndarray,
    first: int,
    seen: np.ndarray,
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
    for i in range(np.uint64(lo + 1), np.uint64(hi)):
        if truth[np.uint64(ids[i])] != first:
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
    moves: np.ndarray,
    edges: np.ndarray,
    shift: int,
    keys: np.ndarray,
    counts: np.ndarray,
    groups: np.ndarray,
    state: np.ndarray,
    control: np.ndarray,
    stand_ins: np.ndarray | None,
    stand_cuts: np.ndarray,
    tally: np.ndarray,
    found: np.ndarray,
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
    if missing == 2:
        end = partition(
            codes,
            words,
            labels,
            ids,
            lo,
            hi,
            feature,
            kind,
            cut,
            missing,
            subsets,
            2,
            moves,
        )
    middle = partition(
        codes,
        words,
        labels,
        ids,
        lo,
        end,
        feature,
        kind,
        cut,
        missing,
        subsets,
        1,
        moves,
    )
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
    by_known = False
    if stand_ins is not None:
        by_known = settings.missing == SURROGATE
    if by_known:
        missing = np.int64(-1)
    if missing < 0:
        missing = np.int64(heavier)
    if subset is not None:
        if settings.is_random == 0 and kind == SUBSET and (missing == 0 or (missing == 2 and heavier == 0)):
            send_absent_left(
                codes,
                middle,
                end,
                feature,
                features[N_CODES, feature],
                subsets,
                cut,
                subset,
            )
    if stand_ins is not None:
        if by_known:
            first = state[N_STAND_INS]
            state[N_STAND_INS], state[N_WORDS] = find_surrogates(
                codes, labels, lo, middle, end, hi, node, feature, w_left, w_right, features, edges, settings, shift,
                keys, counts, tally, groups, found, subsets, state[N_WORDS], stand_ins, stand_cuts, first, control,
            )  # fmt: skip
            if end < hi:
                middle = place_missing(
                    codes, words, labels, ids, middle, end, hi, features, subsets, stand_ins, first,
                    state[N_STAND_INS], heavier, moves,
                )  # fmt: skip
                end = hi
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
    pays: np.ndarray | None,
    column: np.ndarray,
    pair_sums: np.ndarray,
    pair_scores: np.ndarray,
    picked: np.ndarray,
    values: np.ndarray | None,
    moves: np.ndarray,
    ratios: np.ndarray | None,  # (RATIO_ROWS, n_features) float64 scratch
    improves: np.ndarray | None,  # (n_nodes,) float64, written: gain over the rows of known value
    stand_ins: np.ndarray | None,  # (STAND_ROWS, any) int64, written
    stand_cuts: np.ndarray,
    tally: np.ndarray,
    found: np.ndarray,
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
                push(Queue(slots[QUEUE], slots[NODE], slot_values[GAIN], state), settings.order, slot)
                open_branches |= np.int64(1) << b
            else:
                control[CONTROL_ROWS] += hi - lo
        if open_branches != 0 and bounds[0, 0] >= state[LIST_LO] and bounds[1, n_children - 1] <= state[LIST_HI]:
            for b in range(n_children):
                for i in range(np.uint64(bounds[0, b]), np.uint64(bounds[1, b])):
                    branch[np.uint64(place[np.uint64(ids[i])])] = b
            first = np.int64(bounds[0, 0]) - state[LIST_LO]
            end = np.int64(bounds[1, n_children - 1]) - state[LIST_LO]
            mask = (np.int64(1) << shift) - 1
            if n_children == MOST_BRANCHES:
                split_lists(
                    features,
                    lists,
                    keys,
                    mask,
                    first,
                    end,
                    branch,
                    2,
                    open_branches & 3 != 0,
                    open_branches & 4 != 0,
                )
                end = np.int64(bounds[1, 1]) - state[LIST_LO]
            split_lists(
                features,
                lists,
                keys,
                mask,
                first,
                end,
                branch,
                1,
                open_branches & 1 != 0,
                open_branches & 2 != 0,
            )
        n_children = np.int64(0)
        if control[CONTROL_STOP] != 0:
            return STOPPED
        if state[N_QUEUED] == 0:
            return DONE
        if (
            state[N_NODES] + MOST_BRANCHES > nodes.shape[1]
            or state[N_FREE] < MOST_BRANCHES
            or state[N_WORDS] + 2 * (1 + settings.max_surrogates) * settings.most_words > len(subsets)
        ):
            return NEEDS_ROOM
        if stand_ins is not None:
            if state[N_STAND_INS] + settings.max_surrogates > stand_ins.shape[1]:
                return NEEDS_ROOM
        slot = pop(Queue(slots[QUEUE], slots[NODE], slot_values[GAIN], state), settings.order)
        node = slots[NODE, slot]
        lo = nodes[BEGIN, node]
        hi = lo + nodes[N_ROWS, node]
        if slots[CUT, slot] < 0:
            is_covered = lo >= state[LIST_LO] and hi <= state[LIST_HI]
            if not is_covered and hi - lo <= settings.most_listed:
                make_lists(
                    codes,
                    labels,
                    ids,
                    lo,
                    hi,
                    features,
                    shift,
                    keys,
                    counts,
                    lists,
                    place,
                    list_labels,
                )
                state[LIST_LO] = lo
                state[LIST_HI] = hi
                is_covered = True
            list_lo = state[LIST_LO] if is_covered else np.int64(-1)
            is_found, score = search(
                codes, labels, lo, hi, features, edges, settings, permutation, places, keys, counts, cells, groups,
                totals, xlogx, sums, vectors, subset, scores, subsets, state[N_WORDS], lists, list_labels, list_lo,
                slots, slot_values, slot, control, pays, column, pair_sums, pair_scores, picked, values, ratios,
                improves,
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
                push(Queue(slots[QUEUE], slots[NODE], slot_values[GAIN], state), settings.order, slot)
                continue
        if is_best_first and state[N_LEAVES] + slots[N_BRANCHES, slot] - 1 > settings.max_leaves:
            return DONE
        expand(
            codes, words, labels, ids, features, settings, subset, subsets, totals, nodes, node_values, slots,
            slot_values, slot, state[N_NODES], bounds, moves, edges, shift, keys, counts, groups, state, control,
            stand_ins, stand_cuts, tally, found,
        )  # fmt: skip
        n_children = slots[N_BRANCHES, slot]
        depth = slots[DEPTH, slot] + 1
        parent_key = np.uint64(slots[KEY, slot])
        state[N_LEAVES] += n_children - 1
        slots[FREE, state[N_FREE]] = slot
        state[N_FREE] += 1
