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

from spinney._jit import door, inlined
from spinney._types import (
    BEST_FIRST,
    CONSTANT,
    CONTROL_ROWS,
    CONTROL_STOP,
    DONE,
    LIST_HI,
    LIST_LO,
    MONOTONE,
    MOST_BRANCHES,
    N_CODES,
    N_FREE,
    N_LEAVES,
    N_NODES,
    N_QUEUED,
    N_SURROGATES,
    N_WORDS,
    NEEDS_ROOM,
    NUMBER,
    S_ALL,
    STOPPED,
    SUBSET,
    SURROGATE,
    TARGET,
)

from ..common.node_layout import pack_test
from ..common.packed_levels import PACKED
from ..common.queue import pop, push
from ..common.rng import fold
from ..common.structs import (
    CodeTest,
    ExtraScratch,
    Frontier,
    Nodes,
    Parts,
    Rows,
    Scratch,
    Settings,
    Table,
)
from ..common.sums import sum_moments
from .bit_subtrees import grow_bits
from .branch_sums import is_noted, note_root, sum_branches
from .late_thresholds import place_thresholds
from .medians import branch_value
from .new_nodes import append_leaf
from .partition import partition
from .search import CHILD_KEYS, search
from .settled_levels import IS_PLAIN, settle_subset
from .small_subtrees import grow_small
from .sorted_lists import BACK, FRONT, make_lists, position_bits, split_lists
from .surrogates import use_surrogates

# --- Splitting a node -----------------------------------------------------------------------------------------------


@inlined
def place_by_surrogates(
    parts: Parts,
    rows: Rows,
    table: Table,
    settings: Settings,
    nodes: Nodes,
    frontier: Frontier,
    scratch: Scratch,
    extra: ExtraScratch | None,
) -> int:
    """Find the surrogates of a node and move its missing rows by them; return where branch 1 begins."""
    if extra is None:
        return parts.middle
    shift = position_bits(scratch.classes)
    return use_surrogates(parts, shift, rows, table, settings, nodes, frontier, scratch)


@inlined
def has_surrogates(settings: Settings, extra: ExtraScratch | None) -> bool:
    """Whether missing rows go by surrogates; known at compile time where no one asked for them."""
    if extra is None:
        return False
    return settings.missing == SURROGATE


@inlined
def bound_children(
    slot: int,
    middle: int,
    end: int,
    value_left: float,
    value_right: float,
    table: Table,
    nodes: Nodes,
    frontier: Frontier,
) -> None:
    """Say where the rows of each branch are, and what bounds its values."""
    children = frontier.children
    lo = nodes.begin[frontier.node[slot]]
    children.begin[0] = lo
    children.end[0] = middle
    children.begin[1] = middle
    children.end[1] = end
    children.begin[2] = end
    children.end[2] = lo + nodes.n_rows[frontier.node[slot]]
    for b in range(MOST_BRANCHES):
        children.lower[b] = frontier.lower[slot]
        children.upper[b] = frontier.upper[slot]
    sign = table.features[MONOTONE, frontier.feature[slot]]
    if sign != 0:
        between = (value_left + value_right) / 2.0
        if sign > 0:
            children.upper[0] = between
            children.lower[1] = between
        else:
            children.lower[0] = between
            children.upper[1] = between


@inlined
def expand(
    slot: int, rows: Rows, table: Table, settings: Settings, nodes: Nodes, frontier: Frontier, scratch: Scratch
) -> None:
    """Carry out the split of a slot: write the test, move the rows, say where each branch's rows are."""
    addends, subsets, totals = rows.addends, nodes.subsets, scratch.totals
    moves, sides = scratch.moves, scratch.sides
    node = frontier.node[slot]
    lo = nodes.begin[node]
    hi = lo + nodes.n_rows[node]
    feature = frontier.feature[slot]
    kind = frontier.kind[slot]
    cut = frontier.cut[slot]
    missing = frontier.missing[slot]
    test = CodeTest(feature, kind, cut, missing, table.features[N_CODES, feature])
    end = hi
    if missing == 2:
        end = partition(rows, lo, hi, test, 2, subsets, moves, sides)
    middle = partition(rows, lo, end, test, 1, subsets, moves, sides)
    w_left, w_right = sum_branches(slot, middle, end, rows, settings, nodes, frontier)
    value_left = 0.0
    value_right = 0.0
    if settings.has_monotone:
        sum_moments(addends, lo, middle, totals)
        value_left = np.float64(totals[S_ALL]) / np.float64(w_left)
        sum_moments(addends, middle, end, totals)
        value_right = np.float64(totals[S_ALL]) / np.float64(w_right)
        value_left = branch_value(value_left, lo, middle, rows, scratch.counts, scratch.medians)
        value_right = branch_value(value_right, middle, end, rows, scratch.counts, scratch.medians)
    heavier = np.int64(0 if w_left > w_right else 1)
    by_surrogates = has_surrogates(settings, scratch.extra)
    if by_surrogates or missing < 0:
        missing = heavier
    parts = Parts(node, feature, lo, middle, end, hi, w_left, w_right)
    if kind == SUBSET:
        others_first = missing == 0 or (missing == 2 and heavier == 0)
        n_levels = table.features[N_CODES, feature]
        last = settle_subset(parts, cut, n_levels, others_first, rows.codes, settings, nodes, scratch.levels)
        if last != IS_PLAIN:
            frontier.cut_value[slot] += PACKED
            frontier.state[N_WORDS] = last
    if by_surrogates:
        middle = place_by_surrogates(parts, rows, table, settings, nodes, frontier, scratch, scratch.extra)
        end = hi
    nodes.test[node] = pack_test(table.features[NUMBER, feature], missing, kind)
    nodes.first_child[node] = frontier.state[N_NODES]
    nodes.cut_value[node] = frontier.cut_value[slot]
    bound_children(slot, middle, end, value_left, value_right, table, nodes, frontier)


# --- New nodes ------------------------------------------------------------------------------------------------------


@inlined
def has_one_class(addends: np.ndarray, lo: int, hi: int, n_classes: int) -> bool:
    """Whether rows lo .. hi are of one class; two classes go as class times weight."""
    first = addends[TARGET, lo]
    for i in range(np.uint64(lo + 1), np.uint64(hi)):
        target = addends[TARGET, i]
        if target != first and (n_classes > 2 or target == 0 or first == 0):
            return False
    return True


@inlined
def has_one_value(truth: np.ndarray, rows: Rows, lo: int, hi: int) -> bool:
    """Whether the targets of rows lo .. hi are equal: sums of them are rounded."""
    ids, addends = rows.ids, rows.addends
    if len(addends) == 1 and addends[TARGET, lo] != addends[TARGET, hi - 1]:
        return False  # every weight is 1: equal targets add the same, which is at hand where they are far away
    first = truth[ids[lo]]
    for i in range(np.uint64(lo + 1), np.uint64(hi)):
        if truth[np.uint64(ids[i])] != first:
            return False
    return True


@inlined
def add_node(
    child: int,
    depth: int,
    key: np.uint64,
    rows: Rows,
    truth: np.ndarray,
    settings: Settings,
    nodes: Nodes,
    frontier: Frontier,
) -> int:
    """Append a node for a branch of the split at hand; return its slot, or -1: size, depth or purity make it a leaf."""
    state, children = frontier.state, frontier.children
    lo = children.begin[child]
    hi = children.end[child]
    lower = children.lower[child]
    upper = children.upper[child]
    node = append_leaf(lo, hi - lo, nodes, state)
    if settings.has_monotone:
        nodes.lower[node] = lower
        nodes.upper[node] = upper
    n = hi - lo
    if depth >= settings.max_depth or n < settings.min_samples_split or n < 2 * settings.min_samples_leaf:
        return np.int64(-1)
    weight, total = children.weight[child], children.total[child]
    if is_noted(settings):
        if min(total, weight - total) == 0:
            return np.int64(-1)
    elif settings.is_class:
        if has_one_class(rows.addends, lo, hi, settings.n_classes):
            return np.int64(-1)
    elif has_one_value(truth, rows, lo, hi):
        return np.int64(-1)
    state[N_FREE] -= 1
    slot = frontier.free[state[N_FREE]]
    frontier.node[slot] = node
    frontier.depth[slot] = depth
    frontier.key[slot] = np.int64(key)
    frontier.constant[slot] = state[CONSTANT]  # what does not vary in a node does not in its branches
    frontier.weight[slot] = weight
    frontier.total[slot] = total
    frontier.lower[slot] = lower
    frontier.upper[slot] = upper
    frontier.cut[slot] = -1  # not searched yet
    frontier.gain[slot] = np.inf  # searched before any other is expanded
    return slot


@inlined
def follow_lists(
    n_children: int, open_branches: int, rows: Rows, features: np.ndarray, frontier: Frontier, scratch: Scratch
) -> None:
    """Split the sorted lists as the rows were split, if they cover the node; open_branches: a bit for each branch."""
    ids, lists, state = rows.ids, rows.lists, frontier.state
    begin, end_of = frontier.children.begin, frontier.children.end
    if open_branches == 0 or begin[0] < state[LIST_LO] or end_of[n_children - 1] > state[LIST_HI]:
        return
    place, branch = lists.place, lists.branch
    for b in range(n_children):
        for i in range(np.uint64(begin[b]), np.uint64(end_of[b])):
            branch[np.uint64(place[np.uint64(ids[i])])] = b
    first = begin[0] - state[LIST_LO]
    end = end_of[n_children - 1] - state[LIST_LO]
    shift = position_bits(scratch.classes)
    if n_children == MOST_BRANCHES:
        kept = (FRONT if open_branches & 3 != 0 else 0) | (BACK if open_branches & 4 != 0 else 0)
        split_lists(lists, features, scratch.keys, shift, first, end, 2, kept)
        end = end_of[1] - state[LIST_LO]
    split_lists(lists, features, scratch.keys, shift, first, end, 1, open_branches & (FRONT | BACK))


@inlined
def free_slot(frontier: Frontier, slot: int) -> None:
    """Give a slot back."""
    frontier.free[frontier.state[N_FREE]] = slot
    frontier.state[N_FREE] += 1


@inlined
def is_full(settings: Settings, nodes: Nodes, state: np.ndarray, extra: ExtraScratch | None) -> bool:
    """Whether a split could exceed the room that Python has made."""
    n_words = 2 * (1 + settings.max_surrogates) * settings.most_words
    if state[N_NODES] + MOST_BRANCHES > len(nodes.test) or state[N_FREE] < MOST_BRANCHES:
        return True
    if state[N_WORDS] + n_words > len(nodes.subsets):
        return True
    if extra is None:
        return False
    return state[N_SURROGATES] + settings.max_surrogates > len(extra.kept.node)


@inlined
def grow_few(
    slot: int, rows: Rows, table: Table, settings: Settings, nodes: Nodes, frontier: Frontier, scratch: Scratch
) -> bool:
    """Finish the subtree of the node in a slot if one of the ways for few rows serves it."""
    if grow_bits(slot, rows, table, settings, nodes, frontier, scratch, scratch.bits):
        return True
    return grow_small(slot, rows, table, settings, nodes, frontier, scratch, scratch.subtrees)


# --- The driver -----------------------------------------------------------------------------------------------------


@door
def grow(rows: Rows, table: Table, settings: Settings, nodes: Nodes, frontier: Frontier, scratch: Scratch) -> int:
    """Grow until done (DONE), stopped (STOPPED) or out of space (NEEDS_ROOM: enlarge the arrays, call again)."""
    state, control, children, features = frontier.state, frontier.control, frontier.children, table.features
    is_best_first = settings.order == BEST_FIRST
    n_children = np.int64(0)  # branches of the split just carried out, still to be added
    depth = np.int64(0)
    parent_key = np.uint64(settings.seed)
    if state[N_NODES] == 0:
        state[N_LEAVES] = 1
        state[LIST_LO] = 0  # an empty range: no lists yet
        state[LIST_HI] = -1
        children.begin[0] = 0
        children.end[0] = len(rows.ids)
        children.lower[0] = -np.inf
        children.upper[0] = np.inf
        note_root(rows, settings, frontier)
        n_children = np.int64(1)
    while True:
        open_branches = np.int64(0)  # as bits, one per branch
        for b in range(n_children):
            key = fold(parent_key, CHILD_KEYS + np.uint64(b))
            slot = add_node(b, depth, key, rows, table.truth, settings, nodes, frontier)
            if slot >= 0:
                push(frontier, settings.order, slot)
                open_branches |= np.int64(1) << b
            else:
                control[CONTROL_ROWS] += children.end[b] - children.begin[b]
        if n_children > 0:
            follow_lists(n_children, open_branches, rows, features, frontier, scratch)
        n_children = np.int64(0)
        if control[CONTROL_STOP] != 0:
            return STOPPED
        if state[N_QUEUED] == 0:
            place_thresholds(state[N_NODES], table, settings, nodes, scratch.permutation)
            return DONE
        if is_full(settings, nodes, state, scratch.extra):
            return NEEDS_ROOM
        slot = pop(frontier, settings.order)
        if grow_few(slot, rows, table, settings, nodes, frontier, scratch):
            free_slot(frontier, slot)
            continue
        node = frontier.node[slot]
        if frontier.cut[slot] < 0:
            lo = nodes.begin[node]
            hi = lo + nodes.n_rows[node]
            is_covered = lo >= state[LIST_LO] and hi <= state[LIST_HI]
            if not is_covered and hi - lo <= settings.most_listed:
                shift = position_bits(scratch.classes)
                make_lists(rows, lo, hi, features, shift, scratch.keys, scratch.counts)
                state[LIST_LO] = lo
                state[LIST_HI] = hi
            is_found, score = search(slot, rows, table, settings, nodes, frontier, scratch)
            nodes.score[node] = score
            if control[CONTROL_STOP] != 0:
                return STOPPED
            if not is_found:
                free_slot(frontier, slot)
                control[CONTROL_ROWS] += hi - lo
                continue
            if frontier.kind[slot] == SUBSET:
                state[N_WORDS] += (features[N_CODES, frontier.feature[slot]] + 63) >> 6
            if is_best_first:
                push(frontier, settings.order, slot)
                continue
        if is_best_first and state[N_LEAVES] + frontier.n_branches[slot] - 1 > settings.max_leaves:
            place_thresholds(state[N_NODES], table, settings, nodes, scratch.permutation)
            return DONE
        expand(slot, rows, table, settings, nodes, frontier, scratch)
        n_children = frontier.n_branches[slot]
        depth = frontier.depth[slot] + 1
        parent_key = np.uint64(frontier.key[slot])
        state[CONSTANT] = frontier.constant[slot]
        state[N_LEAVES] += n_children - 1
        free_slot(frontier, slot)
