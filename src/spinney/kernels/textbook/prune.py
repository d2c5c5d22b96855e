"""Pessimistic pruning with subtree raising, as C4.5 release 8 in Weka's J48 has it.

From the bottom up, each test is compared with two others: a leaf, and the subtree of its heaviest branch, to which all
its rows then go (*raising*). Errors are estimated: those on the training rows, and what an upper confidence limit adds.

Entries of a node (see `kernels.textbook.driver`) are put into bags in place: the node still has the same entries, in
another order. Only where a test spreads rows, the bags are copied behind `top`, the end of what is in use.

  SETTLE   send the entries down and write what the nodes hold
  ENTER    put the entries into bags; the children come first
  DECIDE   the children are pruned: keep the test, make a leaf, or raise the heaviest branch and SETTLE again
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined, kernel
from spinney._types import (
    BAG_BEGIN,
    BAG_N,
    CONTROL_STOP,
    DONE,
    EVERY_BRANCH,
    FEATURE_SHIFT,
    KIND_BITS,
    MISSING_BITS,
    MULTIWAY,
    N_ENTRIES,
    N_MIXED,
    N_QUEUED,
    NEEDS_ROOM,
    STOPPED,
    TARGET,
    WEIGHT,
)

from ..common.branch import branch_of_value
from ..common.elementary import power
from .branches import count_entries, move_entries

SMALL = 1e-6
MARGIN = 0.1  # errors by which a smaller tree may be worse
N_RAISED = N_MIXED  # position in `state`
KIND_MASK = (1 << KIND_BITS) - 1
MISSING_MASK = (1 << MISSING_BITS) - 1
SETTLE, ENTER, DECIDE = range(3)
# frames (int64): nodes under way; path: nodes that entries still have to go to
FRAME_NODE, FRAME_LO, FRAME_HI, FRAME_TOP, FRAME_PHASE = range(5)
FRAME_ROWS = 5
# links (int64) of the nodes, which change
LINK_TEST, LINK_CHILD, LINK_BRANCHES, LINK_WEIGHT, LINK_ERROR, LINK_N = range(6)
LINK_ROWS = 6


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
    if abs(n) < SMALL:
        return 0.0
    return e + added_errors(n, e, confidence, z)


@door
def estimate_all(weight: np.ndarray, errors: np.ndarray, confidence: float, z: float, out: np.ndarray) -> None:
    """Estimated errors of nodes as leaves; all (n_nodes,) float64."""
    for node in range(len(weight)):
        out[node] = estimate(weight[node], errors[node], confidence, z)


@kernel
def choose_branches(
    values: np.ndarray,
    ids: np.ndarray,
    lo: int,
    hi: int,
    test: int,
    cut: float,
    subsets: np.ndarray,
    branch: np.ndarray,
) -> None:
    """Write the branch of entries lo .. hi; -1: every one."""
    kind = test & KIND_MASK
    missing = (test >> KIND_BITS) & MISSING_MASK
    feature = test >> FEATURE_SHIFT
    if missing == EVERY_BRANCH:
        missing = np.int64(-1)
    elif kind == MULTIWAY:
        missing = np.int64(cut)
    column = np.uint64(feature)
    first = np.uint64(lo)
    end = np.uint64(hi)
    if kind == MULTIWAY:
        for i in range(first, end):
            value = values[column, np.uint64(ids[i])]
            branch[i] = np.int64(value) if value == value else missing
        return
    for i in range(first, end):
        branch[i] = branch_of_value(values[column, np.uint64(ids[i])], kind, cut, missing, subsets)


@kernel
def sum_errors(labels: np.ndarray, lo: int, hi: int, sums: np.ndarray) -> tuple[int, int]:
    """Weight of entries lo .. hi, and that of all but their heaviest class; sums: (n_classes,) int64 scratch."""
    total = np.int64(0)
    most = np.int64(0)
    is_unit = len(labels) == 1
    first = np.uint64(lo)
    end = np.uint64(hi)
    if hi - lo < len(sums):
        for i in range(first, end):
            sums[np.uint64(labels[TARGET, i])] = 0
    else:
        for c in range(len(sums)):
            sums[c] = 0
    for i in range(first, end):
        w = np.int64(1) if is_unit else labels[WEIGHT, i]
        c = np.uint64(labels[TARGET, i])
        held = sums[c] + w
        sums[c] = held
        total += w
        most = max(most, held)
    return total, total - most


@kernel
def send_down(
    root: int,
    lo: int,
    hi: int,
    top: int,
    is_kept: bool,  # write what the nodes then hold
    enough: float,  # estimated errors that need no more to be added: the caller knows what they mean
    values: np.ndarray,
    ids: np.ndarray,
    labels: np.ndarray,
    times: np.ndarray,
    links: np.ndarray,
    cuts: np.ndarray,
    subsets: np.ndarray,
    estimates: np.ndarray,
    counts: np.ndarray,  # (n_nodes, n_classes) int64, written where it has rows and is_kept
    confidence: float,
    z: float,
    unit: float,
    branch: np.ndarray,
    bags: np.ndarray,
    spare_ids: np.ndarray,
    spare_labels: np.ndarray,
    sums: np.ndarray,
    path: np.ndarray,
    state: np.ndarray,
) -> float:
    """Send entries lo .. hi through the subtree of a node; return its estimated errors, or -1: no room.

    Or some of its errors that are `enough`: errors are not negative, so all of them would be, too.
    """
    path[FRAME_NODE, 0] = root
    path[FRAME_LO, 0] = lo
    path[FRAME_HI, 0] = hi
    path[FRAME_TOP, 0] = top
    n_open = np.int64(1)
    errors = 0.0
    while n_open > 0:
        n_open -= 1
        node = path[FRAME_NODE, n_open]
        lo = path[FRAME_LO, n_open]
        hi = path[FRAME_HI, n_open]
        top = path[FRAME_TOP, n_open]
        first = links[LINK_CHILD, node]
        if is_kept or first == 0:
            weight, error = sum_errors(labels, lo, hi, sums)
            if is_kept:
                links[LINK_N, node] = hi - lo
                links[LINK_WEIGHT, node] = weight
                links[LINK_ERROR, node] = error
                if len(counts) > 0:
                    for i in range(lo, hi):
                        counts[node, labels[TARGET, i]] += np.int64(1) if len(labels) == 1 else labels[WEIGHT, i]
            if first == 0:
                here = estimate(np.float64(weight) * unit, np.float64(error) * unit, confidence, z)
                errors += here
                if is_kept:
                    estimates[node] = here
                elif errors >= enough:
                    return errors
                continue
        elif lo == hi:
            continue
        n_branches = links[LINK_BRANCHES, node]
        choose_branches(values, ids, lo, hi, links[LINK_TEST, node], cuts[node], subsets, branch)
        n_entries, heaviest, known = count_entries(branch, ids, labels, times, lo, hi, n_branches, bags)
        to = lo
        if n_entries != hi - lo:
            to = top
            top += n_entries
            if top > len(ids):
                state[N_ENTRIES] = top
                return -1.0
        move_entries(
            branch, ids, labels, times, lo, hi, to, n_branches, n_entries, heaviest, known, bags, spare_ids,
            spare_labels,
        )  # fmt: skip
        for back in range(n_branches):
            b = n_branches - 1 - back
            path[FRAME_NODE, n_open] = first + b
            path[FRAME_LO, n_open] = bags[BAG_BEGIN, b]
            path[FRAME_HI, n_open] = bags[BAG_BEGIN, b] + bags[BAG_N, b]
            path[FRAME_TOP, n_open] = top
            n_open += 1
    return errors


@inlined
def heaviest_branch(links: np.ndarray, node: int, unit: float) -> int:
    """The child with the largest weight, the last among equals."""
    first = links[LINK_CHILD, node]
    heaviest = first
    most = 0.0
    for child in range(first, first + links[LINK_BRANCHES, node]):
        weight = np.float64(links[LINK_WEIGHT, child]) * unit
        if most - weight < SMALL:
            most = weight
            heaviest = np.int64(child)
    return heaviest


@door
def prune(
    values: np.ndarray,  # (n_features, n_rows) float64: the rows of a node lie close together in a column
    ids: np.ndarray,  # (n_entries,) int32: the arena; the rows first
    labels: np.ndarray,  # (1 or 2, n_entries) int64: class; weight (without: 1 each)
    times: np.ndarray,  # (n_rows,) int64 whole weights, or (1,): every row is one
    links: np.ndarray,  # (LINK_ROWS, n_nodes) int64, changed; LINK_CHILD 0: a leaf
    cuts: np.ndarray,  # (n_nodes,) float64: `Tree.threshold`, changed
    subsets: np.ndarray,
    estimates: np.ndarray,  # (n_nodes,) float64 scratch
    counts: np.ndarray,  # (n_nodes or 0, n_classes) int64 zeros; added to: the weights per class of all nodes
    is_pruned: int,  # 0: only settle what the nodes hold
    confidence: float,
    z: float,
    unit: float,
    branch: np.ndarray,  # (n_entries,) int32 scratch
    bags: np.ndarray,
    spare_ids: np.ndarray,
    spare_labels: np.ndarray,
    sums: np.ndarray,
    path: np.ndarray,  # (FRAME_ROWS, n_nodes + 1) int64 scratch
    frames: np.ndarray,  # the same; what is under way
    state: np.ndarray,
    control: np.ndarray,
) -> int:
    """Prune until done (DONE), stopped (STOPPED) or out of space (NEEDS_ROOM: enlarge the arena, call again).

    Nodes that no path from the root reaches are gone. `state[N_RAISED]` counts raised branches.
    """
    if state[N_QUEUED] == 0:
        frames[FRAME_NODE, 0] = 0
        frames[FRAME_LO, 0] = 0
        frames[FRAME_HI, 0] = values.shape[1]
        frames[FRAME_TOP, 0] = values.shape[1]
        frames[FRAME_PHASE, 0] = SETTLE
        state[N_QUEUED] = 1
    while state[N_QUEUED] > 0:
        if control[CONTROL_STOP] != 0:
            return STOPPED
        at = state[N_QUEUED] - 1
        node = frames[FRAME_NODE, at]
        lo = frames[FRAME_LO, at]
        hi = frames[FRAME_HI, at]
        top = frames[FRAME_TOP, at]
        phase = frames[FRAME_PHASE, at]
        first = links[LINK_CHILD, node]
        if first == 0 and phase != SETTLE:
            state[N_QUEUED] = at
            continue
        n_branches = links[LINK_BRANCHES, node]
        if phase == ENTER:
            choose_branches(values, ids, lo, hi, links[LINK_TEST, node], cuts[node], subsets, branch)
            n_entries, heaviest, known = count_entries(branch, ids, labels, times, lo, hi, n_branches, bags)
            to = lo
            if n_entries != hi - lo:
                to = top
                top += n_entries
                if top > len(ids):
                    state[N_ENTRIES] = top
                    return NEEDS_ROOM
            move_entries(
                branch, ids, labels, times, lo, hi, to, n_branches, n_entries, heaviest, known, bags, spare_ids,
                spare_labels,
            )  # fmt: skip
            frames[FRAME_PHASE, at] = DECIDE
            for back in range(n_branches):
                b = n_branches - 1 - back
                if links[LINK_CHILD, first + b] == 0:
                    continue
                n_frames = state[N_QUEUED]
                frames[FRAME_NODE, n_frames] = first + b
                frames[FRAME_LO, n_frames] = bags[BAG_BEGIN, b]
                frames[FRAME_HI, n_frames] = bags[BAG_BEGIN, b] + bags[BAG_N, b]
                frames[FRAME_TOP, n_frames] = top
                frames[FRAME_PHASE, n_frames] = ENTER
                state[N_QUEUED] = n_frames + 1
            continue
        child = node
        kept = 0.0
        leaf = 0.0
        if phase == DECIDE:
            child = heaviest_branch(links, node, unit)
            for b in range(first, first + n_branches):
                kept += estimates[b]
            leaf = estimate(
                np.float64(links[LINK_WEIGHT, node]) * unit, np.float64(links[LINK_ERROR, node]) * unit, confidence, z
            )
        raised = send_down(
            child, lo, hi, top, phase == SETTLE, max(kept, leaf) + 2.0 * MARGIN, values, ids, labels, times, links,
            cuts, subsets, estimates, counts, confidence, z, unit, branch, bags, spare_ids, spare_labels, sums, path,
            state,
        )  # fmt: skip
        if raised < 0.0:
            return NEEDS_ROOM
        if phase == SETTLE:
            if is_pruned == 0:
                break
            frames[FRAME_PHASE, at] = ENTER
            continue
        estimates[node] = kept
        if leaf - (kept + MARGIN) < SMALL and leaf - (raised + MARGIN) < SMALL:
            links[LINK_CHILD, node] = 0
            links[LINK_BRANCHES, node] = 0
            estimates[node] = leaf
        elif raised - (kept + MARGIN) < SMALL:
            links[LINK_TEST, node] = links[LINK_TEST, child]
            links[LINK_CHILD, node] = links[LINK_CHILD, child]
            links[LINK_BRANCHES, node] = links[LINK_BRANCHES, child]
            cuts[node] = cuts[child]
            state[N_RAISED] += 1
            frames[FRAME_PHASE, at] = SETTLE
            continue
        state[N_QUEUED] = at
    return DONE
