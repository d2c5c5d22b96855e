"""Grow one boosted tree: the serial driver, which asks for hands where a node is worth sharing out among threads.

  pick the open node of most gain ─► its children ─► move rows, sum the smaller child (here, or by many hands)
     ▲                                                        │
     └── open the children ◄── best test of each ◄── the other child by subtraction

An open node has a *slot*: its test, its sums, and the cells of its features. Work for many hands is of two kinds: a
large node, whose rows are shared out (`shards`), and a batch of small ones, whose children are made ready side by side,
each by one thread. Which nodes will be split is a guess then: nodes are split in the order of their gains all the same,
and what was made ready in vain is dropped.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined, kernel
from spinney._types import (
    BEGIN,
    BEST_FIRST,
    CHILDREN,
    CONTROL_STOP,
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
    HAS_GUESSED,
    HAS_HANDS,
    HAS_MOVES,
    IS_OPEN,
    IS_READY,
    IS_WIDE,
    KEY,
    KIND,
    KIND_BITS,
    LAST_CODE,
    LOWER,
    MISSING_BRANCH,
    MONOTONE,
    N_BATCH,
    N_CODES,
    N_FREE,
    N_LEAVES,
    N_NODES,
    N_QUEUED,
    N_ROWS,
    N_SPLITS,
    N_WORDS,
    NEEDS_HANDS,
    NEEDS_MANY,
    NEEDS_ROOM,
    NODE,
    PHASE,
    PICK,
    PLACE,
    QUEUE,
    ROOT,
    ROOT_SUM,
    SCORE,
    SLOT_CHILD,
    SLOT_CUT_VALUE,
    SLOT_FIRST,
    SLOT_LEFT_SUM,
    SLOT_LOWER,
    SLOT_NODE,
    SLOT_SECOND,
    SLOT_SUM,
    SLOT_UPPER,
    SMALL_CHILD,
    SMALL_SLOT,
    STOPPED,
    SUBSET,
    TEST,
    THRESHOLD,
    UPPER,
)

from ..common.queue import is_ahead, pop, push
from ..common.rng import fold
from ..common.structs import BoostSettings, Queue
from .scan import hessian_of, value_of
from .search import search
from .threads import add_cells, clear_cells, guess_smaller, move_shard, subtract_cells, sum_shard

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
def make_children(
    slot: int,
    nodes: np.ndarray,
    node_values: np.ndarray,
    slots: np.ndarray,
    slot_values: np.ndarray,
    state: np.ndarray,
) -> None:
    """Give an open node two children: their numbers for now, and slots."""
    child = state[N_NODES]
    state[N_NODES] = child + 2
    state[N_FREE] -= 2
    slots[SLOT_CHILD, slot] = child
    slots[SLOT_FIRST, slot] = slots[FREE, state[N_FREE] + 1]
    slots[SLOT_SECOND, slot] = slots[FREE, state[N_FREE]]
    side = 2 if nodes[BEGIN, slots[SLOT_NODE, slot]] == 1 else 1
    for b in range(child, child + 2):
        nodes[TEST, b] = 0
        nodes[FIRST_CHILD, b] = 0
        nodes[BEGIN, b] = side
        node_values[SCORE, b] = 0.0
        node_values[LOWER, b] = slot_values[SLOT_LOWER, slot]
        node_values[UPPER, b] = slot_values[SLOT_UPPER, slot]


@inlined
def split_node(
    slot: int,
    nodes: np.ndarray,
    node_values: np.ndarray,
    slots: np.ndarray,
    slot_values: np.ndarray,
    slot_subsets: np.ndarray,
    subsets: np.ndarray,
    features: np.ndarray,
    order: np.ndarray,
    kind_of_order: int,
    state: np.ndarray,
) -> None:
    """Write the test of a node whose children are ready, and open these."""
    node = slots[SLOT_NODE, slot]
    feature = slots[FEATURE, slot]
    order[state[N_SPLITS]] = node
    state[N_SPLITS] += 1
    state[N_LEAVES] += 1
    nodes[TEST, node] = (feature << FEATURE_SHIFT) | (slots[MISSING_BRANCH, slot] << KIND_BITS) | slots[KIND, slot]
    nodes[FIRST_CHILD, node] = slots[SLOT_CHILD, slot]
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
    slots[FREE, state[N_FREE]] = slot
    state[N_FREE] += 1
    for row in range(SLOT_FIRST, SLOT_SECOND + 1):
        at = slots[row, slot]
        slots[NODE, at] = 2 * state[N_SPLITS] - 1 + row - SLOT_FIRST
        if slots[IS_OPEN, at] != 0:
            push(Queue(slots[QUEUE], slots[NODE], slot_values[GAIN], state), kind_of_order, at)
        else:
            slots[FREE, state[N_FREE]] = at
            state[N_FREE] += 1


@inlined
def choose_batch(
    slots: np.ndarray,
    slot_values: np.ndarray,
    order: int,
    likely_gain: float,
    most: int,
    batch: np.ndarray,
    state: np.ndarray,
) -> int:
    """List open nodes that are not ready, the next one and others that will likely be split; return how many."""
    n = np.int64(0)
    while n < most:
        best = np.int64(-1)
        for k in range(state[N_QUEUED] - 1, -1, -1):
            slot = slots[QUEUE, k]
            if slots[IS_READY, slot] == 0:
                if best < 0:
                    best = slot
                    if order != BEST_FIRST:
                        break
                elif is_ahead(Queue(slots[QUEUE], slots[NODE], slot_values[GAIN], state), slot, best):
                    best = slot
        if best < 0 or (n > 0 and slot_values[GAIN, best] < likely_gain):
            break
        slots[IS_READY, best] = 1
        batch[n] = best
        n += 1
    return n


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


@kernel
def make_ready(
    slot: int,
    small: int,  # the child that hands have summed, -1 where nothing is done yet
    has_moves: bool,  # else the children will never be split
    codes_0: np.ndarray,
    words_0: np.ndarray,
    sums_0: np.ndarray,
    ids_0: np.ndarray,
    codes: np.ndarray,
    words: np.ndarray,
    sums: np.ndarray,
    ids: np.ndarray,
    weights: np.ndarray,
    starts: np.ndarray,
    ranges: np.ndarray,
    n_words: int,
    n_narrow: int,
    features: np.ndarray,
    edges: np.ndarray,
    places: np.ndarray,
    used: np.ndarray,
    used_places: np.ndarray,
    spans: np.ndarray,
    n_slot_cells: int,
    members: np.ndarray,
    alive: np.ndarray,
    nodes: np.ndarray,
    node_values: np.ndarray,
    slots: np.ndarray,
    slot_values: np.ndarray,
    slot_subsets: np.ndarray,
    cells: np.ndarray,
    extra: np.ndarray,
    goes_left: np.ndarray,
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
) -> None:
    """Make the children of an open node ready: move its rows, sum the smaller child, find the best tests of both."""
    n_shards = settings.n_shards
    node = slots[SLOT_NODE, slot]
    child = slots[SLOT_CHILD, slot]
    feature = slots[FEATURE, slot]
    by_hands = small >= 0
    if not by_hands:
        say_branches(slot, slots, slot_subsets, features, goes_left)
        for shard in range(n_shards):
            move_shard(
                shard, node, child, codes_0, words_0, sums_0, ids_0, codes, words, sums, ids, starts, ranges, nodes,
                places[PLACE, feature], places[IS_WIDE, feature] != 0, n_words, goes_left, has_moves, n_shards,
            )  # fmt: skip
    for b in range(child, child + 2):
        nodes[N_ROWS, b] = 0
        for shard in range(n_shards):
            nodes[N_ROWS, b] += ranges[n_shards + shard, b] - ranges[shard, b]
    if settings.has_monotone != 0:
        bound_children(child, slot, node_values, slots, slot_values, features[MONOTONE, feature], settings)
    depth = slots[DEPTH, slot] + 1
    is_any = False
    for b in range(2):
        at = slots[SLOT_FIRST + b, slot]
        packed = slots[SLOT_LEFT_SUM, slot] if b == 0 else slots[SLOT_SUM, slot] - slots[SLOT_LEFT_SUM, slot]
        slots[SLOT_NODE, at] = child + b
        slots[DEPTH, at] = depth
        slots[SLOT_SUM, at] = packed
        slots[KEY, at] = np.int64(fold(np.uint64(slots[KEY, slot]), np.uint64(b)) >> ONE)
        slots[IS_READY, at] = 0
        slots[IS_OPEN, at] = np.int64(has_moves and may_split(child + b, depth, packed, nodes, settings))
        slot_values[SLOT_LOWER, at] = node_values[LOWER, child + b]
        slot_values[SLOT_UPPER, at] = node_values[UPPER, child + b]
        is_any = is_any or slots[IS_OPEN, at] != 0
        if members is not None:
            for w in range(alive.shape[1]):
                alive[at, w] = alive[slot, w] & members[feature, w]
    if not is_any:
        return
    if not by_hands:
        small = child + np.int64(nodes[N_ROWS, child] > nodes[N_ROWS, child + 1])
    part = slots[SLOT_FIRST + small - child, slot] * n_slot_cells
    rest = slots[SLOT_SECOND - (small - child), slot] * n_slot_cells
    if by_hands:
        for shard in range(1, n_shards):
            add_cells(cells, part, extra, (shard - 1) * n_slot_cells, spans)
    else:
        clear_cells(cells, part, spans)
        for shard in range(n_shards):
            sum_shard(
                shard, small, codes_0, words_0, sums_0, codes, words, sums, ranges, nodes, n_words, n_narrow,
                used_places, spans, cells, part, n_shards,
            )  # fmt: skip
    subtract_cells(cells, slot * n_slot_cells, part, rest, spans)
    for b in range(2):
        at = slots[SLOT_FIRST + b, slot]
        if slots[IS_OPEN, at] != 0:
            is_open = search(
                child + b, at,
                codes_0, sums_0, ids_0, codes, sums, ids, weights, ranges, nodes, slots, slot_values, slot_subsets,
                n_words, n_slot_cells, features, edges, places, used, members, alive, cells, wide_cells, counts,
                bunches, scores, spare, buckets, prefix, lefts, present, found, found_gain, settings,
            )  # fmt: skip
            slots[IS_OPEN, at] = np.int64(is_open)


@door
def make_some_ready(
    thread: int,
    n_threads: int,
    batch: np.ndarray,  # slots
    n_batch: int,
    codes_0: np.ndarray,
    words_0: np.ndarray,
    sums_0: np.ndarray,
    ids_0: np.ndarray,
    codes: np.ndarray,
    words: np.ndarray,
    sums: np.ndarray,
    ids: np.ndarray,
    weights: np.ndarray,
    starts: np.ndarray,
    ranges: np.ndarray,
    n_words: int,
    n_narrow: int,
    features: np.ndarray,
    edges: np.ndarray,
    places: np.ndarray,
    used: np.ndarray,
    used_places: np.ndarray,
    spans: np.ndarray,
    n_slot_cells: int,
    members: np.ndarray,
    alive: np.ndarray,
    nodes: np.ndarray,
    node_values: np.ndarray,
    slots: np.ndarray,
    slot_values: np.ndarray,
    slot_subsets: np.ndarray,
    cells: np.ndarray,
    extra: np.ndarray,
    goes_left: np.ndarray,
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
) -> None:
    """Make ready the open nodes of a batch that are this thread's."""
    for k in range(thread, n_batch, n_threads):
        slot = batch[k]
        has_moves = slots[DEPTH, slot] + 1 < settings.max_depth
        make_ready(
            slot, -1, has_moves,
            codes_0, words_0, sums_0, ids_0, codes, words, sums, ids, weights, starts, ranges, n_words, n_narrow,
            features, edges, places, used, used_places, spans, n_slot_cells, members, alive, nodes, node_values,
            slots, slot_values, slot_subsets, cells, extra, goes_left, wide_cells, counts, bunches, scores, spare,
            buckets, prefix, lefts, present, found, found_gain, settings,
        )  # fmt: skip


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
    cells: np.ndarray,  # (n_slots * n_slot_cells,) int64
    extra: np.ndarray,  # the same for the shards but the first
    goes_left: np.ndarray,  # (n_codes + 1,) uint8 and the rest: scratch of a thread
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
    subsets: np.ndarray,  # uint64, or None
    order: np.ndarray,  # (n_nodes,) int64, written: the nodes in the order in which they were split
    batch: np.ndarray,  # (MOST_BATCH,) int64: slots of nodes to be made ready side by side
    state: np.ndarray,
    control: np.ndarray,
    settings: BoostSettings,
) -> int:
    """Grow until the tree is done, room is needed, or there is work for many hands; then call again.

    Before the first call node 0 has its rows and its sum; `state[PHASE]` is ROOT.
    """
    n_shards = settings.n_shards
    while True:
        if control[CONTROL_STOP] != 0:
            return STOPPED
        by_hands = state[HAS_HANDS] != 0
        state[HAS_HANDS] = 0
        if state[PHASE] == ROOT:
            slot = slots[FREE, state[N_FREE] - 1]
            state[SMALL_SLOT] = slot
            if not by_hands:
                if n_shards > 1 and nodes[N_ROWS, 0] >= settings.share_rows:
                    return NEEDS_HANDS
                clear_cells(cells, slot * n_slot_cells, spans)
                for shard in range(n_shards):
                    sum_shard(
                        shard, 0, codes_0, words_0, sums_0, codes, words, sums, ranges, nodes, n_words, n_narrow,
                        used_places, spans, cells, slot * n_slot_cells, n_shards,
                    )  # fmt: skip
            else:
                for shard in range(1, n_shards):
                    add_cells(cells, slot * n_slot_cells, extra, (shard - 1) * n_slot_cells, spans)
            state[N_FREE] -= 1
            slots[NODE, slot] = 0
            slots[SLOT_NODE, slot] = 0
            slots[DEPTH, slot] = 0
            slots[KEY, slot] = 1
            slots[IS_READY, slot] = 0
            slots[SLOT_SUM, slot] = state[ROOT_SUM]
            slot_values[SLOT_LOWER, slot] = node_values[LOWER, 0]
            slot_values[SLOT_UPPER, slot] = node_values[UPPER, 0]
            state[PHASE] = PICK
            is_open = may_split(0, 0, state[ROOT_SUM], nodes, settings)
            if is_open:
                is_open = search(
                    0, slot,
                    codes_0, sums_0, ids_0, codes, sums, ids, weights, ranges, nodes, slots, slot_values,
                    slot_subsets, n_words, n_slot_cells, features, edges, places, used, members, alive, cells,
                    wide_cells, counts, bunches, scores, spare, buckets, prefix, lefts, present, found, found_gain,
                    settings,
                )  # fmt: skip
            if is_open:
                push(Queue(slots[QUEUE], slots[NODE], slot_values[GAIN], state), settings.order, slot)
        if state[PHASE] == CHILDREN:
            slot = state[CURRENT_SLOT]
            has_moves = state[HAS_MOVES] != 0
            small = state[SMALL_CHILD] if has_moves else slots[SLOT_CHILD, slot]
            make_ready(
                slot, small, has_moves,
                codes_0, words_0, sums_0, ids_0, codes, words, sums, ids, weights, starts, ranges, n_words, n_narrow,
                features, edges, places, used, used_places, spans, n_slot_cells, members, alive, nodes, node_values,
                slots, slot_values, slot_subsets, cells, extra, goes_left, wide_cells, counts, bunches, scores, spare,
                buckets, prefix, lefts, present, found, found_gain, settings,
            )  # fmt: skip
            slots[IS_READY, slot] = 1
            state[PHASE] = PICK
        if state[N_QUEUED] == 0 or state[N_LEAVES] >= settings.max_leaves:
            return DONE
        if subsets is not None:
            if state[N_WORDS] + settings.most_words > len(subsets):
                return NEEDS_ROOM
        slot = slots[QUEUE, 0] if settings.order == BEST_FIRST else slots[QUEUE, state[N_QUEUED] - 1]
        if slots[IS_READY, slot] == 0:
            room = min(state[N_FREE] // 2, (nodes.shape[1] - state[N_NODES]) // 2)
            if room < 1:
                return NEEDS_ROOM
            n_rows = nodes[N_ROWS, slots[SLOT_NODE, slot]]
            is_last = state[N_LEAVES] + 1 >= settings.max_leaves or slots[DEPTH, slot] + 1 >= settings.max_depth
            if n_shards > 1 and n_rows >= settings.share_rows:
                make_children(slot, nodes, node_values, slots, slot_values, state)
                say_branches(slot, slots, slot_subsets, features, goes_left)
                state[PHASE] = CHILDREN
                state[CURRENT_SLOT] = slot
                state[HAS_MOVES] = 0 if is_last else 1
                state[SMALL_CHILD] = -1
                if not is_last:
                    feature = slots[FEATURE, slot]
                    smaller = guess_smaller(
                        slots[SLOT_NODE, slot], codes_0, codes, len(ids_0), ranges, nodes, n_words,
                        places[PLACE, feature], places[IS_WIDE, feature] != 0, goes_left, n_shards,
                    )  # fmt: skip
                    state[SMALL_CHILD] = slots[SLOT_CHILD, slot] + smaller
                    state[SMALL_SLOT] = slots[SLOT_FIRST + smaller, slot]
                return NEEDS_HANDS
            n_batch = np.int64(1)
            if n_shards > 1 and not is_last and n_rows >= settings.batch_rows:
                most = min(room, np.int64(len(batch)), settings.max_leaves - state[N_LEAVES])
                n_batch = choose_batch(slots, slot_values, settings.order, settings.likely_gain, most, batch, state)
                for k in range(n_batch):
                    make_children(batch[k], nodes, node_values, slots, slot_values, state)
                if n_batch > 1:
                    state[N_BATCH] = n_batch
                    state[HAS_GUESSED] = 1
                    return NEEDS_MANY
            else:
                make_children(slot, nodes, node_values, slots, slot_values, state)
            has_moves = not is_last
            make_ready(
                slot, -1, has_moves,
                codes_0, words_0, sums_0, ids_0, codes, words, sums, ids, weights, starts, ranges, n_words, n_narrow,
                features, edges, places, used, used_places, spans, n_slot_cells, members, alive, nodes, node_values,
                slots, slot_values, slot_subsets, cells, extra, goes_left, wide_cells, counts, bunches, scores, spare,
                buckets, prefix, lefts, present, found, found_gain, settings,
            )  # fmt: skip
            slots[IS_READY, slot] = 1
        slot = pop(Queue(slots[QUEUE], slots[NODE], slot_values[GAIN], state), settings.order)
        split_node(
            slot, nodes, node_values, slots, slot_values, slot_subsets, subsets, features, order, settings.order, state
        )
