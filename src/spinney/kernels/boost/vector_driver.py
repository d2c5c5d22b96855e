"""Grow one boosted tree for several outputs, whose leaves hold a number for each.

The loop is that of `driver`, with cells (`vector_search`) in place of packed sums: nodes are picked and split by the
same functions, in the same order. Threads share out the features of a large node, not its rows: each sums, subtracts
and searches some of them.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined
from spinney._types import (
    CHILDREN,
    CONTROL_STOP,
    CURRENT_SLOT,
    NEEDS_THREADS,
    PHASE,
    PICK,
    ROOT,
    SMALL_CHILD,
    STOPPED,
    SUMMED,
)

from ..common.queue import push
from ..common.rng import fold
from ..common.structs import BoostFrontier, BoostNodes, BoostSettings, BoostTable, ByteRows, VectorScratch
from .driver import GO_ON, pick_node
from .shards import mark_branches, move_shard, rows_of
from .vector_search import (
    choose_outputs,
    hessian_of_cell,
    noise_of_outputs,
    scan_outputs,
    subtract_cells,
    sum_all_rows,
    sum_cells,
)

ONE = np.uint64(1)


@inlined
def cells_of(slot: int, b: int, table: BoostTable, scratch: VectorScratch) -> int:
    """Where the cells of an open node begin: its own, or, where none are kept, those of branch b of any node."""
    return (slot if scratch.sums.keeps_cells else np.int64(b)) * table.histogram_size


@inlined
def open_node(
    at: int,
    table: BoostTable,
    rows: ByteRows,
    nodes: BoostNodes,
    frontier: BoostFrontier,
    scratch: VectorScratch,
    settings: BoostSettings,
) -> bool:
    """Fill the slot of a node whose sums are known with what its search needs; whether limits allow to split it."""
    sums = scratch.sums
    number = frontier.number[at]
    n_rows = nodes.n_rows[number]
    frontier.lower[at] = -np.inf
    frontier.upper[at] = np.inf
    frontier.is_ready[at] = False
    frontier.is_open[at] = (
        frontier.depth[at] < settings.max_depth
        and n_rows >= settings.min_samples_split
        and n_rows >= 2 * settings.min_samples_leaf
        and hessian_of_cell(sums.total, at * sums.width, sums) >= 2.0 * sums.least_hessian
    )
    frontier.noise[at] = 0.0
    if frontier.is_open[at]:
        frontier.noise[at] = noise_of_outputs(number, at, table, rows, nodes, scratch, settings)
    return frontier.is_open[at]


@inlined
def open_children(
    slot: int,
    table: BoostTable,
    source: ByteRows,
    buffer: ByteRows,
    nodes: BoostNodes,
    frontier: BoostFrontier,
    scratch: VectorScratch,
    settings: BoostSettings,
) -> bool:
    """Move the rows of a node to its children, and fill their slots; whether one of them may be split."""
    sums = scratch.sums
    width = sums.width
    child = frontier.first_child[slot]
    mark_branches(slot, table, frontier, scratch.plain.goes_left)
    move_shard(np.int64(0), slot, table, source, buffer, nodes, frontier, scratch.plain.goes_left)
    is_any_open = False
    for b in range(2):
        at = frontier.left_slot[slot] if b == 0 else frontier.right_slot[slot]
        nodes.n_rows[child + b] = nodes.end[0, child + b] - nodes.begin[0, child + b]
        frontier.number[at] = child + b
        frontier.depth[at] = frontier.depth[slot] + 1
        frontier.key[at] = np.int64(fold(np.uint64(frontier.key[slot]), np.uint64(b)) >> ONE)
        for w in range(table.interactions.shape[1]):
            frontier.allowed_sets[at, w] = (
                frontier.allowed_sets[slot, w] & table.interactions[frontier.feature[slot], w]
            )
        for o in range(width):
            left = sums.left[slot * width + o]
            sums.total[at * width + o] = left if b == 0 else sums.total[slot * width + o] - left
        frontier.is_ready[at] = False
        frontier.is_open[at] = False
        if not frontier.is_last[slot]:
            is_any_open |= open_node(at, table, buffer, nodes, frontier, scratch, settings)
    frontier.state[SMALL_CHILD] = child + np.int64(nodes.n_rows[child] > nodes.n_rows[child + 1])
    return is_any_open


@inlined
def open_vector_root(
    table: BoostTable,
    source: ByteRows,
    buffer: ByteRows,
    nodes: BoostNodes,
    frontier: BoostFrontier,
    scratch: VectorScratch,
    settings: BoostSettings,
) -> bool:
    """Sum the rows of the root and fill its slot; whether it may be split."""
    slot = frontier.state[CURRENT_SLOT]
    rows = rows_of(np.int64(0), source, buffer, nodes)
    frontier.node[slot] = 0
    frontier.number[slot] = 0
    frontier.depth[slot] = 0
    frontier.key[slot] = 1
    frontier.state[SMALL_CHILD] = -1
    sum_all_rows(np.int64(0), rows, nodes, scratch.sums, slot)
    return open_node(slot, table, rows, nodes, frontier, scratch, settings)


@inlined
def search_part(
    part: int,
    table: BoostTable,
    source: ByteRows,
    buffer: ByteRows,
    nodes: BoostNodes,
    frontier: BoostFrontier,
    scratch: VectorScratch,
    settings: BoostSettings,
) -> None:
    """Sum and search a part of the features in the root, or in the children of the current node that are open."""
    sums = scratch.sums
    slot = frontier.state[CURRENT_SLOT]
    small = frontier.state[SMALL_CHILD]
    is_root = small < 0
    if not is_root and sums.keeps_cells:  # the smaller child is summed first, the other follows
        b = small - frontier.first_child[slot]
        one = frontier.left_slot[slot] if b == 0 else frontier.right_slot[slot]
        other = frontier.right_slot[slot] if b == 0 else frontier.left_slot[slot]
        size = table.histogram_size
        sum_cells(small, part, table, buffer, nodes, sums, frontier.histogram, one * size)
        subtract_cells(part, table, sums, frontier.histogram, slot * size, one * size, other * size)
    for b in range(1 if is_root else 2):
        at = slot
        if not is_root:
            at = frontier.left_slot[slot] if b == 0 else frontier.right_slot[slot]
        if not frontier.is_open[at]:
            continue
        cells = cells_of(at, b, table, scratch)
        if is_root or not sums.keeps_cells:
            number = frontier.number[at]
            rows = rows_of(number, source, buffer, nodes)
            sum_cells(number, part, table, rows, nodes, sums, frontier.histogram, cells)
        best = scratch.first if b == 0 else scratch.second
        scan_outputs(at, part, cells, table, frontier, best, scratch, settings)


@door
def search_features(
    part: int,
    table: BoostTable,
    source: ByteRows,
    buffer: ByteRows,
    nodes: BoostNodes,
    frontier: BoostFrontier,
    scratch: VectorScratch,
    settings: BoostSettings,
) -> None:
    """Do the part of a thread where `grow_vectors` has asked for threads."""
    search_part(part, table, source, buffer, nodes, frontier, scratch, settings)


@door
def grow_vectors(
    table: BoostTable,
    source: ByteRows,
    buffer: ByteRows,
    nodes: BoostNodes,
    frontier: BoostFrontier,
    scratch: VectorScratch,
    settings: BoostSettings,
    control: np.ndarray,
) -> int:
    """Grow until the tree is done, room is needed, or there is work for many threads; then call again.

    Before the first call node 0 has its rows, the current slot is its own, and `state[PHASE]` is ROOT.
    """
    state = frontier.state
    while control[CONTROL_STOP] == 0:
        if state[PHASE] == PICK:
            why = pick_node(table, source, buffer, nodes, frontier, scratch.plain, settings)
            if why != GO_ON:
                return why
            state[PHASE] = CHILDREN
        slot = state[CURRENT_SLOT]
        if state[PHASE] != SUMMED:
            is_root = state[PHASE] == ROOT
            if is_root:
                is_any_open = open_vector_root(table, source, buffer, nodes, frontier, scratch, settings)
            else:
                is_any_open = open_children(slot, table, source, buffer, nodes, frontier, scratch, settings)
            if is_any_open:
                node = np.int64(0) if is_root else state[SMALL_CHILD]
                if scratch.sums.n_parts > 1 and nodes.n_rows[node] >= settings.share_rows:
                    state[PHASE] = SUMMED
                    return NEEDS_THREADS
                for part in range(scratch.sums.n_parts):
                    search_part(part, table, source, buffer, nodes, frontier, scratch, settings)
        is_root = state[SMALL_CHILD] < 0
        for b in range(1 if is_root else 2):
            at = slot
            if not is_root:
                at = frontier.left_slot[slot] if b == 0 else frontier.right_slot[slot]
            if frontier.is_open[at]:
                best = scratch.first if b == 0 else scratch.second
                cells = cells_of(at, b, table, scratch)
                frontier.is_open[at] = choose_outputs(at, cells, table, frontier, best, scratch, settings)
        state[PHASE] = PICK
        if not is_root:
            frontier.is_ready[slot] = True
        elif frontier.is_open[slot]:
            push(frontier, settings.order, slot)
    return STOPPED
