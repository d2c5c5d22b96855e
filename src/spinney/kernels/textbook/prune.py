"""Pessimistic pruning with subtree raising, as C4.5 release 8 in Weka's J48 has it.

From the bottom up, each test is compared with two others: a leaf, and the subtree of its heaviest branch, to which all
its rows then go (*raising*). Errors are estimated: those on the training rows, and what an upper confidence limit adds.

Entries of a node are put into its branches in place: the node still has the same entries, in another order. Only where
a test spreads rows, the branches are copied behind `top`, the end of what is in use.

  SETTLE   send the entries down and write what the nodes hold
  ENTER    put the entries into branches; the children come first
  DECIDE   the children are pruned: keep the test, make a leaf, or raise the heaviest branch and SETTLE again
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined, kernel
from spinney._types import (
    CONTROL_STOP,
    DONE,
    EVERY_BRANCH,
    MULTIWAY,
    N_ENTRIES,
    N_QUEUED,
    N_RAISED,
    NEEDS_ROOM,
    STOPPED,
    TARGET,
    WEIGHT,
)

from ..common.branch import branch_of_value
from ..common.elementary import power
from ..common.node_layout import feature_of, kind_of, missing_of
from ..common.structs import (
    Entries,
    Frame,
    PruneFrames,
    PruneNodes,
    PruneScratch,
    PruneSettings,
    PruneStack,
    PruneTable,
)
from ..common.ties import C45_MARGIN, C45_SMALL
from .branches import count_entries, move_entries

SETTLE, ENTER, DECIDE = range(3)


# --- Estimated errors ----------------------------------------------------------------------------------------------


@kernel
def added_errors(n: float, e: float, confidence: float, z: float) -> float:
    """What an upper confidence limit adds to e errors among n rows; z: normal quantile of 1 - confidence.

    Quinlan's approximation in C4.5 release 8: exact for no error, between 0 and 1 error linear, then the normal one
    with a continuity correction.
    """
    if confidence > 0.5:
        return 0.0
    if e < 1.0:
        base = n * (1.0 - power(confidence, 1.0 / n))
        if e == 0.0:
            return base
        return base + e * (normal_errors(n, 1.0, z) - base)
    return normal_errors(n, e, z)


@kernel
def normal_errors(n: float, e: float, z: float) -> float:
    """The same by the normal approximation, for one error or more."""
    if e + 0.5 >= n:
        return max(n - e, 0.0)
    f = (e + 0.5) / n
    root = np.sqrt(f / n - f * f / n + z * z / (4.0 * n * n))
    limit = (f + z * z / (2.0 * n) + z * root) / (1.0 + z * z / n)
    return limit * n - e


@inlined
def estimate(n: float, e: float, confidence: float, z: float) -> float:
    """Estimated errors of a leaf with n rows and e errors."""
    if abs(n) < C45_SMALL:
        return 0.0
    return e + added_errors(n, e, confidence, z)


@door
def estimate_all(weight: np.ndarray, errors: np.ndarray, confidence: float, z: float, out: np.ndarray) -> None:
    """Estimated errors of nodes as leaves; all (n_nodes,) float64."""
    for node in range(len(weight)):
        out[node] = estimate(weight[node], errors[node], confidence, z)


@inlined
def estimate_leaf(weight: int, error: int, settings: PruneSettings) -> float:
    """The same for weights in units of the sums."""
    unit = settings.weight_unit
    return estimate(np.float64(weight) * unit, np.float64(error) * unit, settings.confidence, settings.z)


# --- Entries on their way ------------------------------------------------------------------------------------------


@inlined
def push_frame(at: int, frame: Frame, phase: int, frames: PruneFrames) -> None:
    """Write a frame at a position of the stack."""
    frames.node[at] = frame.node
    frames.lo[at] = frame.lo
    frames.hi[at] = frame.hi
    frames.top[at] = frame.top
    frames.phase[at] = phase


@inlined
def read_frame(at: int, frames: PruneFrames) -> Frame:
    """The frame at a position of the stack."""
    return Frame(frames.node[at], frames.lo[at], frames.hi[at], frames.top[at])


@kernel
def choose_branches(
    lo: int, hi: int, test: int, cut: float, table: PruneTable, ids: np.ndarray, of_entry: np.ndarray
) -> None:
    """Write the branch of entries lo .. hi; -1: every one."""
    values = table.values
    kind = kind_of(test)
    missing = missing_of(test)
    if missing == EVERY_BRANCH:
        missing = np.int64(-1)
    elif kind == MULTIWAY:
        missing = np.int64(cut)
    column = np.uint64(feature_of(test))
    first = np.uint64(lo)
    end = np.uint64(hi)
    if kind == MULTIWAY:
        for i in range(first, end):
            value = values[column, np.uint64(ids[i])]
            of_entry[i] = np.int64(value) if value == value else missing
        return
    for i in range(first, end):
        of_entry[i] = branch_of_value(values[column, np.uint64(ids[i])], kind, cut, missing, table.subsets)


@kernel
def part_node(frame: Frame, table: PruneTable, arena: Entries, nodes: PruneNodes, scratch: PruneScratch) -> int:
    """Put the entries of a node into its branches; return the end of what is then in use.

    If that is beyond the arena, nothing was moved: there is no room.
    """
    branches = scratch.branches
    node = frame.node
    lo = frame.lo
    hi = frame.hi
    choose_branches(lo, hi, nodes.test[node], nodes.cut_value[node], table, arena.ids, branches.of_entry)
    parting = count_entries(lo, hi, nodes.n_branches[node], arena, table.times, branches)
    to = lo
    top = frame.top
    if parting.n_entries != hi - lo:
        to = top
        top += parting.n_entries
        if top > len(arena.ids):
            return top
    move_entries(lo, hi, to, parting, arena, scratch.spare, table.times, branches)
    return top


@inlined
def child_frame(b: int, first: int, top: int, scratch: PruneScratch) -> Frame:
    """The frame of branch b of the node that was parted last."""
    lo = scratch.branches.begin[b]
    return Frame(first + b, lo, lo + scratch.branches.n[b], top)


@kernel
def sum_errors(addends: np.ndarray, lo: int, hi: int, sums: np.ndarray) -> tuple[int, int]:
    """Weight of entries lo .. hi, and that of all but their heaviest class; sums: (n_classes,) int64 scratch."""
    total = np.int64(0)
    most = np.int64(0)
    is_unit = len(addends) == 1
    first = np.uint64(lo)
    end = np.uint64(hi)
    if hi - lo < len(sums):
        for i in range(first, end):
            sums[np.uint64(addends[TARGET, i])] = 0
    else:
        for c in range(len(sums)):
            sums[c] = 0
    for i in range(first, end):
        w = np.int64(1) if is_unit else addends[WEIGHT, i]
        c = np.uint64(addends[TARGET, i])
        held = sums[c] + w
        sums[c] = held
        total += w
        most = max(most, held)
    return total, total - most


@inlined
def settle_node(frame: Frame, weight: int, error: int, addends: np.ndarray, nodes: PruneNodes) -> None:
    """Write what a node holds."""
    node = frame.node
    nodes.n_rows[node] = frame.hi - frame.lo
    nodes.weight[node] = weight
    nodes.error[node] = error
    if len(nodes.class_weights) > 0:
        for i in range(frame.lo, frame.hi):
            nodes.class_weights[node, addends[TARGET, i]] += np.int64(1) if len(addends) == 1 else addends[WEIGHT, i]


@kernel
def send_down(
    root: Frame,
    enough: float,
    table: PruneTable,
    arena: Entries,
    settings: PruneSettings,
    nodes: PruneNodes,
    scratch: PruneScratch,
    state: np.ndarray,
) -> float:
    """Send entries through the subtree of a node; return its estimated errors, or -1: no room.

    enough: errors that need no more to be added, as errors are not negative: then some of them are returned. Infinite:
    what the nodes hold is written, too.
    """
    addends = arena.addends
    path = scratch.path
    is_kept = enough == np.inf
    push_frame(0, root, SETTLE, path)
    n_open = np.int64(1)
    errors = 0.0
    while n_open > 0:
        n_open -= 1
        frame = read_frame(n_open, path)
        node = frame.node
        first = nodes.first_child[node]
        if is_kept or first == 0:
            weight, error = sum_errors(addends, frame.lo, frame.hi, scratch.class_sums)
            if is_kept:
                settle_node(frame, weight, error, addends, nodes)
            if first == 0:
                here = estimate_leaf(weight, error, settings)
                errors += here
                if is_kept:
                    nodes.estimate[node] = here
                elif errors >= enough:
                    return errors
                continue
        elif frame.lo == frame.hi:
            continue
        top = part_node(frame, table, arena, nodes, scratch)
        if top > len(arena.ids):
            state[N_ENTRIES] = top
            return -1.0
        n_branches = nodes.n_branches[node]
        for back in range(n_branches):
            push_frame(n_open, child_frame(n_branches - 1 - back, first, top, scratch), SETTLE, path)
            n_open += 1
    return errors


# --- The tests of a tree, from the bottom up -----------------------------------------------------------------------


@inlined
def heaviest_branch(node: int, nodes: PruneNodes, unit: float) -> int:
    """The child with the largest weight, the last among equals."""
    first = nodes.first_child[node]
    heaviest = first
    most = 0.0
    for child in range(first, first + nodes.n_branches[node]):
        weight = np.float64(nodes.weight[child]) * unit
        if most - weight < C45_SMALL:
            most = weight
            heaviest = np.int64(child)
    return heaviest


@inlined
def expected_errors(node: int, nodes: PruneNodes) -> float:
    """Estimated errors of the subtrees of a node's branches."""
    errors = 0.0
    for child in range(nodes.first_child[node], nodes.first_child[node] + nodes.n_branches[node]):
        errors += nodes.estimate[child]
    return errors


@inlined
def raise_branch(node: int, child: int, nodes: PruneNodes) -> None:
    """Put the test of a child in the place of the node's."""
    nodes.test[node] = nodes.test[child]
    nodes.first_child[node] = nodes.first_child[child]
    nodes.n_branches[node] = nodes.n_branches[child]
    nodes.cut_value[node] = nodes.cut_value[child]


@kernel
def enter(
    frame: Frame, table: PruneTable, arena: Entries, nodes: PruneNodes, stack: PruneStack, scratch: PruneScratch
) -> bool:
    """Put the entries of a node into its branches and push those that have a test; False: no room."""
    state = stack.state
    top = part_node(frame, table, arena, nodes, scratch)
    if top > len(arena.ids):
        state[N_ENTRIES] = top
        return False
    first = nodes.first_child[frame.node]
    n_branches = nodes.n_branches[frame.node]
    for back in range(n_branches):
        b = n_branches - 1 - back
        if nodes.first_child[first + b] != 0:
            push_frame(state[N_QUEUED], child_frame(b, first, top, scratch), ENTER, stack.frames)
            state[N_QUEUED] += 1
    return True


@door
def prune(
    table: PruneTable,
    arena: Entries,  # of classes; the rows first
    settings: PruneSettings,
    nodes: PruneNodes,
    stack: PruneStack,
    scratch: PruneScratch,
    control: np.ndarray,
) -> int:
    """Prune until done (DONE), stopped (STOPPED) or out of space (NEEDS_ROOM: enlarge the arena, call again).

    `state[N_RAISED]` counts raised branches, `state[N_ENTRIES]` says how many entries the arena must have.
    """
    frames = stack.frames
    state = stack.state
    if state[N_QUEUED] == 0:
        n_rows = np.int64(table.values.shape[1])
        push_frame(0, Frame(np.int64(0), np.int64(0), n_rows, n_rows), SETTLE, frames)
        state[N_QUEUED] = 1
    while state[N_QUEUED] > 0:
        if control[CONTROL_STOP] != 0:
            return STOPPED
        at = state[N_QUEUED] - 1
        frame = read_frame(at, frames)
        node = frame.node
        phase = frames.phase[at]
        if nodes.first_child[node] == 0 and phase != SETTLE:
            state[N_QUEUED] = at
            continue
        if phase == ENTER:
            if not enter(frame, table, arena, nodes, stack, scratch):
                return NEEDS_ROOM
            frames.phase[at] = DECIDE
            continue
        child = node
        kept = 0.0
        leaf = 0.0
        enough = np.inf
        if phase == DECIDE:
            child = heaviest_branch(node, nodes, settings.weight_unit)
            kept = expected_errors(node, nodes)
            leaf = estimate_leaf(nodes.weight[node], nodes.error[node], settings)
            enough = max(kept, leaf) + 2.0 * C45_MARGIN
        sent = Frame(child, frame.lo, frame.hi, frame.top)
        raised = send_down(sent, enough, table, arena, settings, nodes, scratch, state)
        if raised < 0.0:
            return NEEDS_ROOM
        if phase == SETTLE:
            if not settings.is_pruned:
                break
            frames.phase[at] = ENTER
            continue
        nodes.estimate[node] = kept
        if leaf - (kept + C45_MARGIN) < C45_SMALL and leaf - (raised + C45_MARGIN) < C45_SMALL:
            nodes.first_child[node] = 0
            nodes.n_branches[node] = 0
            nodes.estimate[node] = leaf
        elif raised - (kept + C45_MARGIN) < C45_SMALL:
            raise_branch(node, child, nodes)
            state[N_RAISED] += 1
            frames.phase[at] = SETTLE
            continue
        state[N_QUEUED] = at
    return DONE
