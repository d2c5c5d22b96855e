"""Grow one boosted tree: the serial driver, which asks for threads where a node is worth sharing out among them.

  pick the open node of most gain ─► its children ─► move rows, sum the smaller child (here, or by many threads)
     ▲                                                        │
     └── open the children ◄── best test of each ◄── the other child by subtraction

An open node has a *slot*: its test, its sums, and its histogram. Threads make the children of several open nodes ready
at once (`batch`): the next node, and others that will likely be split. Which ones will is a guess: nodes are split in
the order of their gains all the same, and what was made ready in vain is dropped.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined
from spinney._types import (
    BEST_FIRST,
    CHILDREN,
    CONTROL_STOP,
    CURRENT_SLOT,
    DONE,
    HAS_GUESSED,
    MONOTONE,
    MOST_AHEAD,
    N_BATCH,
    N_CODES,
    N_FREE,
    N_LEAVES,
    N_NODES,
    N_PARTS,
    N_QUEUED,
    N_SPLITS,
    N_UNREADY,
    N_WORDS,
    NEEDS_ROOM,
    NEEDS_THREADS,
    PHASE,
    PICK,
    ROOT,
    ROOT_SUM,
    STOPPED,
    SUBSET,
    SUMMED,
)

from ..common.node_layout import pack_test
from ..common.queue import drop_last, pop, push
from ..common.rng import fold
from ..common.structs import BoostFrontier, BoostNodes, BoostScratch, BoostSettings, BoostTable, ByteRows
from .batch import have_served, take_cuts
from .scan import hessian_of, value_of
from .search import choose_test, scan_node
from .shards import (
    clear_histogram,
    clear_spans,
    guess_smaller,
    inherit_spans,
    mark_branches,
    move_shard,
    open_spans,
    spread_bundles,
    subtract_histogram,
    sum_shard,
)

GO_ON = -1
ONE = np.uint64(1)
LIKELY = 0.7  # of the gain of the next node: who has as much will likely be split, whatever the last tree needed
# What a row costs a batch, where one in four is summed: 2.5 ns to be moved, 13.4 ns to be summed in 28 features.
MOVED, SUMMED_TOO, MEAN_ROW = 3, 16, 7


# --- Children -----------------------------------------------------------------------------------------------


@inlined
def make_children(slot: int, nodes: BoostNodes, frontier: BoostFrontier, settings: BoostSettings) -> None:
    """Give an open node two children: their numbers for now, and slots."""
    state = frontier.state
    child = state[N_NODES]
    state[N_NODES] = child + 2
    state[N_FREE] -= 2
    frontier.first_child[slot] = child
    frontier.left_slot[slot] = frontier.free[state[N_FREE] + 1]
    frontier.right_slot[slot] = frontier.free[state[N_FREE]]
    frontier.is_last[slot] = is_last(slot, frontier, settings)
    for b in range(child, child + 2):
        nodes.test[b] = 0
        nodes.first_child[b] = 0
        nodes.side[b] = 1
        nodes.gain[b] = 0.0
        nodes.lower[b] = frontier.lower[slot]
        nodes.upper[b] = frontier.upper[slot]


@inlined
def is_last(slot: int, frontier: BoostFrontier, settings: BoostSettings) -> bool:
    """Whether the children of an open node will be leaves whatever is found: no leaf or no level is left for them."""
    return frontier.state[N_LEAVES] + 1 >= settings.max_leaves or frontier.depth[slot] + 1 >= settings.max_depth


@inlined
def bound_children(
    slot: int, table: BoostTable, nodes: BoostNodes, frontier: BoostFrontier, settings: BoostSettings
) -> None:
    """Part the range of values at the mean of the children's: whatever is grown below keeps their order."""
    direction = table.features[MONOTONE, frontier.feature[slot]]
    child = frontier.first_child[slot]
    lower = frontier.lower[slot]
    upper = frontier.upper[slot]
    left = frontier.left_packed[slot]
    middle = value_of(left, lower, upper, settings)
    middle += (value_of(frontier.packed[slot] - left, lower, upper, settings) - middle) / 2.0
    if direction > 0:
        nodes.upper[child] = middle
        nodes.lower[child + 1] = middle
    elif direction < 0:
        nodes.lower[child] = middle
        nodes.upper[child + 1] = middle


@inlined
def may_split(slot: int, nodes: BoostNodes, frontier: BoostFrontier, settings: BoostSettings) -> bool:
    """Whether the limits allow to split the node of a slot at all."""
    n_rows = nodes.n_rows[frontier.number[slot]]
    return (
        frontier.depth[slot] < settings.max_depth
        and (n_rows >= settings.min_samples_split or settings.weights_are_counts)
        and (n_rows >= 2 * settings.min_samples_leaf or settings.weights_are_counts)
        and hessian_of(frontier.packed[slot]) >= 2 * settings.min_hessian
    )


@inlined
def open_child(
    slot: int, b: int, table: BoostTable, nodes: BoostNodes, frontier: BoostFrontier, settings: BoostSettings
) -> bool:
    """Fill the slot of child b with what is known before its search; whether it may be split."""
    at = frontier.left_slot[slot] if b == 0 else frontier.right_slot[slot]
    left = frontier.left_packed[slot]
    number = frontier.first_child[slot] + b
    frontier.number[at] = number
    frontier.depth[at] = frontier.depth[slot] + 1
    frontier.packed[at] = left if b == 0 else frontier.packed[slot] - left
    frontier.key[at] = np.int64(fold(np.uint64(frontier.key[slot]), np.uint64(b)) >> ONE)
    frontier.lower[at] = nodes.lower[number]
    frontier.upper[at] = nodes.upper[number]
    for w in range(table.interactions.shape[1]):
        frontier.allowed_sets[at, w] = frontier.allowed_sets[slot, w] & table.interactions[frontier.feature[slot], w]
    inherit_spans(slot, at, table, frontier)
    frontier.is_ready[at] = False
    frontier.is_open[at] = not frontier.is_last[slot] and may_split(at, nodes, frontier, settings)
    return frontier.is_open[at]


@inlined
def count_children(slot: int, nodes: BoostNodes, frontier: BoostFrontier) -> None:
    """Count the rows that were moved to the children of a node."""
    child = frontier.first_child[slot]
    for b in range(child, child + 2):
        nodes.n_rows[b] = 0
        for shard in range(len(nodes.begin)):
            nodes.n_rows[b] += nodes.end[shard, b] - nodes.begin[shard, b]


@inlined
def fill_children(
    slot: int, table: BoostTable, nodes: BoostNodes, frontier: BoostFrontier, settings: BoostSettings
) -> bool:
    """Fill the slots of the children of a node; whether one may be split."""
    if settings.has_monotone:
        bound_children(slot, table, nodes, frontier, settings)
    is_any_open = False
    for b in range(2):
        is_any_open |= open_child(slot, b, table, nodes, frontier, settings)
    return is_any_open


@inlined
def prepare_children(
    slot: int,
    table: BoostTable,
    source: ByteRows,
    buffer: ByteRows,
    nodes: BoostNodes,
    frontier: BoostFrontier,
    scratch: BoostScratch,
    settings: BoostSettings,
) -> None:
    """Make the children of an open node ready to be searched: move its rows, sum the smaller child, subtract."""
    n_shards = settings.n_shards
    histogram = frontier.histogram
    child = frontier.first_child[slot]
    mark_branches(slot, table, frontier, scratch.goes_left)
    for shard in range(n_shards):
        move_shard(shard, slot, table, source, buffer, nodes, frontier, scratch.goes_left)
    count_children(slot, nodes, frontier)
    if not fill_children(slot, table, nodes, frontier, settings):
        return
    small = np.int64(nodes.n_rows[child] > nodes.n_rows[child + 1])
    part = (frontier.right_slot[slot] if small == 1 else frontier.left_slot[slot]) * table.histogram_size
    rest = (frontier.left_slot[slot] if small == 1 else frontier.right_slot[slot]) * table.histogram_size
    clear_spans(histogram, part, slot, table, frontier)
    for shard in range(n_shards):
        sum_shard(shard, child + small, table, source, buffer, nodes, histogram, part)
    left = frontier.left_packed[slot]
    spread_bundles(histogram, part, frontier.packed[slot] - left if small == 1 else left, table)
    if frontier.is_open[frontier.left_slot[slot] if small == 1 else frontier.right_slot[slot]]:
        subtract_histogram(slot, part, rest, table, frontier)


# --- The tree -----------------------------------------------------------------------------------------------


@inlined
def make_ready(slot: int, frontier: BoostFrontier) -> None:
    """Take an open node off the list of those that a batch may take."""
    frontier.is_ready[slot] = True
    n = frontier.state[N_UNREADY]
    for k in range(n):
        if frontier.unready[k] == slot:
            frontier.unready[k] = frontier.unready[n - 1]
            frontier.state[N_UNREADY] = n - 1
            return


@inlined
def choose_batch(slot: int, room: int, frontier: BoostFrontier, settings: BoostSettings) -> int:
    """List the next open node and others that will likely be split; return how many.

    Among these are children of nodes that are ready and wait for their turn. No more are ready than may be split.
    """
    state = frontier.state
    n_ahead = (state[N_NODES] - 1) // 2 - state[N_SPLITS]
    most = min(settings.max_leaves - state[N_LEAVES], np.int64(MOST_AHEAD)) - n_ahead
    most = min(most, room, np.int64(len(frontier.batch.slot)))
    likely_gain = min(settings.likely_gain, LIKELY * frontier.gain[slot])
    best = slot
    n = np.int64(0)
    while True:
        make_ready(best, frontier)
        frontier.batch.slot[n] = best
        n += 1
        if n >= most or state[N_UNREADY] == 0:
            return n
        best = frontier.unready[state[N_UNREADY] - 1]
        if settings.order == BEST_FIRST:
            for k in range(state[N_UNREADY]):
                if frontier.gain[frontier.unready[k]] > frontier.gain[best]:
                    best = frontier.unready[k]
        if frontier.gain[best] < likely_gain:
            return n


@inlined
def lay_out(
    k: int,
    table: BoostTable,
    source: ByteRows,
    buffer: ByteRows,
    nodes: BoostNodes,
    frontier: BoostFrontier,
    scratch: BoostScratch,
    settings: BoostSettings,
) -> None:
    """Give the k-th node of a batch children, and write down what threads have to know to make these ready."""
    batch = frontier.batch
    slot = batch.slot[k]
    n_rows = nodes.n_rows[frontier.number[slot]]
    make_children(slot, nodes, frontier, settings)
    child = frontier.first_child[slot]
    nodes.n_rows[child] = n_rows  # until they are counted, children have as many as they can have
    nodes.n_rows[child + 1] = n_rows
    batch.small[k] = -1
    n_small = np.int64(0)
    if fill_children(slot, table, nodes, frontier, settings):
        mark_branches(slot, table, frontier, scratch.goes_left)
        batch.small[k], n_small = guess_smaller(slot, table, source, buffer, nodes, frontier, scratch.goes_left)
    length = (MOVED * n_rows + SUMMED_TOO * n_small) // MEAN_ROW
    batch.begin[k + 1] = batch.begin[k] + max(length, np.int64(1))  # a node without length would be no thread's


@inlined
def count_parts(frontier: BoostFrontier, settings: BoostSettings) -> int:
    """Threads that a batch is worth waking; from there on each would have less to do than waking it costs."""
    n = frontier.batch.begin[frontier.state[N_BATCH]] // settings.piece_rows
    return min(max(n, np.int64(1)), np.int64(settings.n_threads))


@inlined
def close_small(slot: int, nodes: BoostNodes, frontier: BoostFrontier, settings: BoostSettings) -> None:
    """Close the children of a node of a batch that turn out to have too few rows to be split."""
    count_children(slot, nodes, frontier)
    for b in range(2):
        at = frontier.left_slot[slot] if b == 0 else frontier.right_slot[slot]
        frontier.is_open[at] = frontier.is_open[at] and may_split(at, nodes, frontier, settings)


@inlined
def split_node(
    slot: int, table: BoostTable, nodes: BoostNodes, frontier: BoostFrontier, settings: BoostSettings
) -> None:
    """Write the test of a node whose children are ready, and open these."""
    state = frontier.state
    node = frontier.number[slot]
    feature = frontier.feature[slot]
    kind = frontier.kind[slot]
    nodes.split_order[state[N_SPLITS]] = node
    state[N_SPLITS] += 1
    state[N_LEAVES] += 1
    nodes.test[node] = pack_test(feature, frontier.missing[slot], kind)
    nodes.first_child[node] = frontier.first_child[slot]
    nodes.last_code[node] = frontier.cut[slot]
    nodes.first_word[node] = state[N_WORDS]
    nodes.cut_value[node] = frontier.cut_value[slot]
    nodes.gain[node] = frontier.gain[slot]
    if kind == SUBSET:
        nodes.cut_value[node] = np.float64(state[N_WORDS])
        for w in range((table.features[N_CODES, feature] + 63) >> 6):
            nodes.subsets[state[N_WORDS]] = frontier.subsets[slot, w]
            state[N_WORDS] += 1
    frontier.free[state[N_FREE]] = slot
    state[N_FREE] += 1
    for b in range(2):
        at = frontier.left_slot[slot] if b == 0 else frontier.right_slot[slot]
        frontier.node[at] = 2 * state[N_SPLITS] - 1 + b
        if frontier.is_open[at]:
            push(frontier, settings.order, at)
        else:
            frontier.free[state[N_FREE]] = at
            state[N_FREE] += 1
    # Of more open nodes than splits are left the last will not be split: half as many histograms. Not among threads,
    # whose nodes may have children already.
    if settings.order == BEST_FIRST and settings.n_shards == 1:
        while state[N_QUEUED] > settings.max_leaves - state[N_LEAVES]:
            frontier.free[state[N_FREE]] = drop_last(frontier)
            state[N_FREE] += 1


@inlined
def open_root(table: BoostTable, nodes: BoostNodes, frontier: BoostFrontier, settings: BoostSettings) -> None:
    """Fill the slot of the root, which is a batch of its own."""
    state = frontier.state
    slot = state[CURRENT_SLOT]
    frontier.node[slot] = 0
    frontier.number[slot] = 0
    frontier.depth[slot] = 0
    frontier.key[slot] = 1
    frontier.packed[slot] = state[ROOT_SUM]
    frontier.lower[slot] = nodes.lower[0]
    frontier.upper[slot] = nodes.upper[0]
    open_spans(slot, table, frontier)
    frontier.is_ready[slot] = False
    frontier.is_open[slot] = may_split(slot, nodes, frontier, settings)
    batch = frontier.batch
    state[N_BATCH] = 1
    batch.slot[0] = slot
    batch.small[0] = 0
    batch.begin[1] = nodes.n_rows[0]


@inlined
def sum_root(
    table: BoostTable,
    source: ByteRows,
    buffer: ByteRows,
    nodes: BoostNodes,
    frontier: BoostFrontier,
    settings: BoostSettings,
) -> None:
    """Sum all rows."""
    slot = frontier.state[CURRENT_SLOT]
    first = slot * table.histogram_size
    clear_histogram(frontier.histogram, first, table)
    for shard in range(settings.n_shards):
        sum_shard(shard, np.int64(0), table, source, buffer, nodes, frontier.histogram, first)
    spread_bundles(frontier.histogram, first, frontier.packed[slot], table)


@inlined
def pick_node(
    table: BoostTable,
    source: ByteRows,
    buffer: ByteRows,
    nodes: BoostNodes,
    frontier: BoostFrontier,
    scratch: BoostScratch,
    settings: BoostSettings,
) -> int:
    """Split nodes in their order up to one that is not ready, and give that one children.

    Returns GO_ON where its children are to be made ready here, else why the driver must go back.
    """
    state = frontier.state
    while True:
        if state[N_QUEUED] == 0 or state[N_LEAVES] >= settings.max_leaves:
            return DONE
        if state[N_WORDS] + settings.most_words > len(nodes.subsets):
            return NEEDS_ROOM
        slot = frontier.queue[0] if settings.order == BEST_FIRST else frontier.queue[state[N_QUEUED] - 1]
        if frontier.is_ready[slot]:
            slot = pop(frontier, settings.order)
            split_node(slot, table, nodes, frontier, settings)
            continue
        room = min(state[N_FREE] // 2, (len(nodes.test) - state[N_NODES]) // 2)
        if room < 1:
            return NEEDS_ROOM
        state[CURRENT_SLOT] = slot
        n_rows = nodes.n_rows[frontier.number[slot]]
        is_large = n_rows >= settings.share_rows
        is_some = n_rows >= settings.batch_rows and not is_last(slot, frontier, settings)
        if settings.n_shards > 1 and (is_large or is_some):
            n_batch = choose_batch(slot, room, frontier, settings)
            if n_batch > 1 or is_large:
                for k in range(n_batch):
                    lay_out(k, table, source, buffer, nodes, frontier, scratch, settings)
                state[N_BATCH] = n_batch
                state[N_PARTS] = count_parts(frontier, settings)
                state[PHASE] = CHILDREN
                if n_batch > 1:
                    state[HAS_GUESSED] = 1
                return NEEDS_THREADS
        make_children(slot, nodes, frontier, settings)
        return GO_ON


@door
def grow(
    table: BoostTable,
    source: ByteRows,
    buffer: ByteRows,
    nodes: BoostNodes,
    frontier: BoostFrontier,
    scratch: BoostScratch,
    settings: BoostSettings,
    control: np.ndarray,
) -> int:
    """Grow until the tree is done, room is needed, or there is work for many threads and none waits; then call again.

    Before the first call node 0 has its rows, the current slot is its own, and `state[PHASE]` is ROOT. What takes most
    of the structs is inlined, and called in one place: a call would pass on some 700 words.
    """
    state = frontier.state
    batch = frontier.batch
    while control[CONTROL_STOP] == 0:
        if state[PHASE] == PICK:
            why = pick_node(table, source, buffer, nodes, frontier, scratch, settings)
            if why != GO_ON and not (why == NEEDS_THREADS and have_served(batch.locks)):
                return why
        elif state[PHASE] == ROOT:
            open_root(table, nodes, frontier, settings)
            if settings.n_shards > 1 and nodes.n_rows[0] >= settings.share_rows:
                state[PHASE] = SUMMED
                state[N_PARTS] = count_parts(frontier, settings)
                if not have_served(batch.locks):
                    return NEEDS_THREADS
        is_root = state[PHASE] == ROOT or state[PHASE] == SUMMED
        is_scanned = state[PHASE] == CHILDREN or state[PHASE] == SUMMED
        for k in range(state[N_BATCH] if is_scanned else 1):
            slot = batch.slot[k] if is_scanned else state[CURRENT_SLOT]
            if is_root:
                if not is_scanned:
                    sum_root(table, source, buffer, nodes, frontier, settings)
            elif is_scanned:
                close_small(slot, nodes, frontier, settings)
            else:
                prepare_children(slot, table, source, buffer, nodes, frontier, scratch, settings)
                make_ready(slot, frontier)
            for b in range(1 if is_root else 2):
                at = slot
                if not is_root:
                    at = frontier.left_slot[slot] if b == 0 else frontier.right_slot[slot]
                if frontier.is_open[at]:
                    if is_scanned:
                        take_cuts(2 * k + b, len(table.used), batch.cuts, scratch.best)
                    else:
                        scan_node(at, table, source, buffer, nodes, frontier, scratch, settings)
                    frontier.is_open[at] = choose_test(at, table, source, buffer, nodes, frontier, scratch, settings)
                if frontier.is_open[at] and settings.n_shards > 1:
                    frontier.unready[state[N_UNREADY]] = at
                    state[N_UNREADY] += 1
        if is_root and frontier.is_open[state[CURRENT_SLOT]]:
            push(frontier, settings.order, state[CURRENT_SLOT])
        state[PHASE] = PICK
    return STOPPED
