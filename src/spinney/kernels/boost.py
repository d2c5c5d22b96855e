"""Grow one boosted tree: the serial driver, which asks for hands where a node is worth sharing out among threads.

  pick the open node of most gain ─► its children ─► move rows, sum the smaller child (here, or by many hands)
     ▲                                                        │
     └── open the children ◄── best test of each ◄── the other child by subtraction

An open node has a *slot*: its test, its sums, and its cells, those of all narrow features.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined
from spinney._types import (
    BEGIN,
    CHILDREN,
    CONTROL_STOP,
    CURRENT,
    CURRENT_SLOT,
    CUT,
    CUT_VALUE,
    DEPTH,
    DONE,
    FEATURE,
    FEATURE_SHIFT,
    FIRST_CHILD,
    FIRST_WORD,
    FREE,
    GAIN,
    HAS_HANDS,
    HAS_MOVES,
    IS_WIDE,
    KIND,
    KIND_BITS,
    LAST_CODE,
    LOWER,
    MISSING_BRANCH,
    MONOTONE,
    N_CODES,
    N_FREE,
    N_LEAVES,
    N_NODES,
    N_QUEUED,
    N_ROWS,
    N_WORDS,
    NEEDS_HANDS,
    NEEDS_ROOM,
    NODE,
    PHASE,
    PICK,
    PLACE,
    ROOT,
    ROOT_SUM,
    SCORE,
    SLOT_CUT_VALUE,
    SLOT_LEFT_SUM,
    SLOT_LOWER,
    SLOT_SUM,
    SLOT_UPPER,
    SMALL_CHILD,
    STOPPED,
    SUBSET,
    TEST,
    THRESHOLD,
    UPPER,
    BoostSettings,
)

from .newton import hessian_of, value_of
from .node_search import search
from .queue import pop, push
from .shards import add_cells, clear_cells, guess_smaller, move_shard, sum_shard

ONE = np.uint64(1)


@inlined
def say_branches(
    slot: int, slots: np.ndarray, slot_subsets: np.ndarray, features: np.ndarray, goes_left: np.ndarray
) -> None:
    """Write for each code of the tested feature whether it goes left."""
    n_codes = features[N_CODES, slots[FEATURE, slot]]
    goes_left[0] = np.uint8(slots[MISSING_BRANCH, slot] == 0)
    if slots[KIND, slot] == THRESHOLD:
        for code in range(1, n_codes + 1):
            goes_left[code] = np.uint8(code <= slots[CUT, slot])
    elif slot_subsets is not None:
        for code in range(1, n_codes + 1):
            level = code - 1
            goes_left[code] = np.uint8((slot_subsets[slot, level >> 6] >> np.uint64(level & 63)) & ONE)


@inlined
def split_node(
    node: int,
    slot: int,
    nodes: np.ndarray,
    node_values: np.ndarray,
    slots: np.ndarray,
    slot_values: np.ndarray,
    slot_subsets: np.ndarray,
    subsets: np.ndarray,
    features: np.ndarray,
    state: np.ndarray,
) -> None:
    """Write the test of a node, and make its children."""
    feature = slots[FEATURE, slot]
    child = state[N_NODES]
    state[N_NODES] = child + 2
    state[N_LEAVES] += 1
    nodes[TEST, node] = (feature << FEATURE_SHIFT) | (slots[MISSING_BRANCH, slot] << KIND_BITS) | slots[KIND, slot]
    nodes[FIRST_CHILD, node] = child
    nodes[LAST_CODE, node] = slots[CUT, slot]
    nodes[FIRST_WORD, node] = state[N_WORDS]
    node_values[CUT_VALUE, node] = slot_values[SLOT_CUT_VALUE, slot]
    node_values[SCORE, node] = slot_values[GAIN, slot]
    if slot_subsets is not None:
        if slots[KIND, slot] == SUBSET:
            node_values[CUT_VALUE, node] = np.float64(state[N_WORDS])
            for w in range((features[N_CODES, feature] + 63) >> 6):
                subsets[state[N_WORDS]] = slot_subsets[slot, w]
                state[N_WORDS] += 1
    for b in range(child, child + 2):
        nodes[TEST, b] = 0
        nodes[FIRST_CHILD, b] = 0
        nodes[BEGIN, b] = 2 if nodes[BEGIN, node] == 1 else 1
        node_values[SCORE, b] = 0.0
        node_values[LOWER, b] = slot_values[SLOT_LOWER, slot]
        node_values[UPPER, b] = slot_values[SLOT_UPPER, slot]


@inlined
def bound_children(
    child: int,
    slot: int,
    node_values: np.ndarray,
    slots: np.ndarray,
    slot_values: np.ndarray,
    direction: int,
    settings: BoostSettings,
) -> None:
    """Part the range of values at the mean of the children's: whatever is grown below keeps their order."""
    lower = slot_values[SLOT_LOWER, slot]
    upper = slot_values[SLOT_UPPER, slot]
    left = slots[SLOT_LEFT_SUM, slot]
    middle = value_of(left, lower, upper, settings)
    middle += (value_of(slots[SLOT_SUM, slot] - left, lower, upper, settings) - middle) / 2.0
    if direction > 0:
        node_values[UPPER, child] = middle
        node_values[LOWER, child + 1] = middle
    elif direction < 0:
        node_values[LOWER, child] = middle
        node_values[UPPER, child + 1] = middle


@inlined
def may_split(node: int, depth: int, packed: int, nodes: np.ndarray, settings: BoostSettings) -> bool:
    """Whether the limits allow to split a node at all."""
    return (
        depth < settings.max_depth
        and nodes[N_ROWS, node] >= settings.min_samples_split
        and nodes[N_ROWS, node] >= 2 * settings.min_samples_leaf
        and hessian_of(packed) >= 2 * settings.min_hessian
    )


@door
def grow(
    codes_0: np.ndarray,  # (n_rows * stride,) uint8: the table
    words_0: np.ndarray,  # the same memory as uint64
    sums_0: np.ndarray,  # (n_rows,) int64: packed gradients and hessians
    ids_0: np.ndarray,  # (n_rows,) int32
    codes: np.ndarray,  # the same for the two halves of the buffer
    words: np.ndarray,
    sums: np.ndarray,
    ids: np.ndarray,
    weights: np.ndarray,  # (n_rows of the table,) or (1,) int64: row weights in units
    starts: np.ndarray,  # (n_shards + 1,) int64: where the rows of each shard stand in half 1
    ranges: np.ndarray,  # (2 * n_shards, n_nodes) int64: begin and end of the rows of each shard in each node
    n_words: int,  # of a row
    n_narrow: int,
    features: np.ndarray,
    edges: np.ndarray,
    places: np.ndarray,  # (3, n_features) int64: see `_types`
    used: np.ndarray,  # (n,) int64: features of this tree
    used_places: np.ndarray,  # (n,) int64: the narrow ones among them, by place
    spans: np.ndarray,  # (3, n) int64: the features whose cells are kept, see `_types`
    n_slot_cells: int,
    members: np.ndarray,  # (n_features, n_words of sets) uint64, or None
    alive: np.ndarray,  # (n_slots, n_words of sets) uint64, or None
    nodes: np.ndarray,
    node_values: np.ndarray,
    slots: np.ndarray,
    slot_values: np.ndarray,
    slot_subsets: np.ndarray,  # (n_slots, most_words) uint64, or None
    subsets: np.ndarray,  # uint64, or None
    cells: np.ndarray,  # (n_slots * n_slot_cells,) int64
    extra: np.ndarray,  # the same for the shards but the first
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
    goes_left: np.ndarray,
    state: np.ndarray,
    control: np.ndarray,
    settings: BoostSettings,
) -> int:
    """Grow until the tree is done, room is needed, or a node is worth many hands; then call again.

    Before the first call node 0 has its rows, its sum and slot 0; `state[PHASE]` is ROOT.
    """
    size = n_slot_cells
    n_shards = settings.n_shards
    while True:
        if control[CONTROL_STOP] != 0:
            return STOPPED
        by_hands = state[HAS_HANDS] != 0
        state[HAS_HANDS] = 0
        if state[PHASE] == ROOT:
            if not by_hands:
                slot = slots[FREE, state[N_FREE] - 1]
                if n_shards > 1 and nodes[N_ROWS, 0] >= settings.share_rows:
                    state[CURRENT] = 0
                    return NEEDS_HANDS
                clear_cells(cells, slot * size, spans)
                for shard in range(n_shards):
                    sum_shard(
                        shard, 0, codes_0, words_0, sums_0, codes, words, sums, ranges, nodes, n_words, n_narrow,
                        used_places, spans, cells, slot * size, n_shards,
                    )  # fmt: skip
            state[N_FREE] -= 1
            slot = slots[FREE, state[N_FREE]]
            if by_hands:
                for shard in range(1, n_shards):
                    add_cells(cells, slot * size, extra, (shard - 1) * size, 1, spans)
            slots[NODE, slot] = 0
            slots[DEPTH, slot] = 0
            slots[SLOT_SUM, slot] = state[ROOT_SUM]
            slot_values[SLOT_LOWER, slot] = node_values[LOWER, 0]
            slot_values[SLOT_UPPER, slot] = node_values[UPPER, 0]
            state[PHASE] = PICK
            is_open = may_split(0, 0, state[ROOT_SUM], nodes, settings)
            if is_open:
                is_open = search(
                    0, slot, codes_0, sums_0, ids_0, codes, sums, ids, weights, ranges, nodes, slots,
                    slot_values, slot_subsets, n_words, n_slot_cells, features, edges, places, used, members, alive,
                    cells, wide_cells, counts, bunches, scores, spare,
                    buckets, prefix, lefts, present, found, found_gain, settings,
                )  # fmt: skip
            if is_open:
                push(slots, slot_values, settings.order, state, slot)
            continue
        if state[PHASE] == PICK:
            if state[N_QUEUED] == 0 or state[N_LEAVES] >= settings.max_leaves:
                return DONE
            if state[N_NODES] + 2 > nodes.shape[1] or state[N_FREE] < 1:
                return NEEDS_ROOM
            if subsets is not None:
                if state[N_WORDS] + settings.most_words > len(subsets):
                    return NEEDS_ROOM
            slot = pop(slots, slot_values, settings.order, state)
            node = slots[NODE, slot]
            split_node(node, slot, nodes, node_values, slots, slot_values, slot_subsets, subsets, features, state)
            say_branches(slot, slots, slot_subsets, features, goes_left)
            state[CURRENT] = node
            state[CURRENT_SLOT] = slot
            state[PHASE] = CHILDREN
            is_last = state[N_LEAVES] >= settings.max_leaves or slots[DEPTH, slot] + 1 >= settings.max_depth
            state[HAS_MOVES] = 0 if is_last else 1
            state[SMALL_CHILD] = -1
            if n_shards > 1 and nodes[N_ROWS, node] >= settings.share_rows:
                if not is_last:
                    feature = slots[FEATURE, slot]
                    state[SMALL_CHILD] = nodes[FIRST_CHILD, node] + guess_smaller(
                        node, codes_0, codes, len(ids_0), ranges, nodes, n_words, places[PLACE, feature],
                        places[IS_WIDE, feature] != 0, goes_left, n_shards,
                    )  # fmt: skip
                return NEEDS_HANDS
        node = state[CURRENT]
        slot = state[CURRENT_SLOT]
        child = nodes[FIRST_CHILD, node]
        feature = slots[FEATURE, slot]
        if not by_hands:
            for shard in range(n_shards):
                move_shard(
                    shard, node, codes_0, words_0, sums_0, ids_0, codes, words, sums, ids, starts, ranges, nodes,
                    places[PLACE, feature], places[IS_WIDE, feature] != 0, n_words, goes_left, state[HAS_MOVES] != 0,
                    n_shards,
                )  # fmt: skip
        for b in range(child, child + 2):
            nodes[N_ROWS, b] = 0
            for shard in range(n_shards):
                nodes[N_ROWS, b] += ranges[n_shards + shard, b] - ranges[shard, b]
        state[PHASE] = PICK
        left = slots[SLOT_LEFT_SUM, slot]
        depth = slots[DEPTH, slot] + 1
        right = slots[SLOT_SUM, slot] - left
        is_left_open = state[HAS_MOVES] != 0 and may_split(child, depth, left, nodes, settings)
        is_right_open = state[HAS_MOVES] != 0 and may_split(child + 1, depth, right, nodes, settings)
        if settings.has_monotone != 0:
            bound_children(child, slot, node_values, slots, slot_values, features[MONOTONE, feature], settings)
        if not is_left_open and not is_right_open:
            slots[FREE, state[N_FREE]] = slot
            state[N_FREE] += 1
            continue
        other = slots[FREE, state[N_FREE] - 1]
        small = state[SMALL_CHILD]
        if by_hands:
            for shard in range(1, n_shards):
                add_cells(cells, other * size, extra, (shard - 1) * size, 1, spans)
        else:
            small = child + np.int64(nodes[N_ROWS, child] > nodes[N_ROWS, child + 1])
            clear_cells(cells, other * size, spans)
            for shard in range(n_shards):
                sum_shard(
                    shard, small, codes_0, words_0, sums_0, codes, words, sums, ranges, nodes, n_words, n_narrow,
                    used_places, spans, cells, other * size, n_shards,
                )  # fmt: skip
        add_cells(cells, slot * size, cells, other * size, -1, spans)
        state[N_FREE] -= 1
        if members is not None:
            for w in range(alive.shape[1]):
                alive[slot, w] &= members[feature, w]
                alive[other, w] = alive[slot, w]
        for b in range(child, child + 2):
            at = other if b == small else slot
            slots[NODE, at] = b
            slots[DEPTH, at] = depth
            slots[SLOT_SUM, at] = left if b == child else right
            slot_values[SLOT_LOWER, at] = node_values[LOWER, b]
            slot_values[SLOT_UPPER, at] = node_values[UPPER, b]
        for b in range(child, child + 2):
            at = other if b == small else slot
            is_open = is_left_open if b == child else is_right_open
            if is_open:
                is_open = search(
                    b, at, codes_0, sums_0, ids_0, codes, sums, ids, weights, ranges, nodes, slots,
                    slot_values, slot_subsets, n_words, n_slot_cells, features, edges, places, used, members, alive,
                    cells, wide_cells, counts, bunches, scores, spare,
                    buckets, prefix, lefts, present, found, found_gain, settings,
                )  # fmt: skip
            if is_open:
                push(slots, slot_values, settings.order, state, at)
            else:
                slots[FREE, state[N_FREE]] = at
                state[N_FREE] += 1
