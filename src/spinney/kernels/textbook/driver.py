"""Grow one textbook tree: a branch for each level, and rows that may be in several nodes with a piece of their weight.

  pop a node, scan all its features, choose a test, put its entries into branches, push the branches to be split

The open nodes lie in the arena as they lie on the stack, the next one last, so the entries of its branches take the
place of its own, and grow over what lies behind: that is done with. Where nothing is spread, entries only change
places, and every leaf keeps its rows.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined, kernel
from spinney._types import (
    ALL,
    BY_C45,
    CONTROL_ROWS,
    CONTROL_STOP,
    DONE,
    EVERY_BRANCH,
    IS_CATEGORICAL,
    LEAF,
    MISSING_CODE,
    MULTIWAY,
    N_CODES,
    N_ENTRIES,
    N_MIXED,
    N_NODES,
    N_QUEUED,
    NEEDS_ROOM,
    PRESENT,
    SDR,
    STOPPED,
    THRESHOLD,
    W_ALL,
)

from ..common.leaf_means import join_values, settle_value_leaf
from ..common.node_layout import pack_test
from ..common.structs import (
    ClassSpan,
    Cuts,
    Entries,
    Figures,
    NodeWeights,
    RowRange,
    ScanScratch,
    Split,
    Targets,
    TextbookNodes,
    TextbookScratch,
    TextbookSettings,
    TextbookStack,
    TextbookStats,
    TextbookTable,
    TextbookUnits,
)
from ..common.sums import sum_classes, sum_moments
from ..common.thresholds import place_threshold
from ..common.ties import C45_SMALL, TEXTBOOK_TIE
from . import scan_classes, scan_values
from .branches import count_entries, move_entries
from .figures import choose

scan_class_feature = scan_classes.scan_feature
scan_value_feature = scan_values.scan_feature
start_values = scan_values.start_node
class_impurity = scan_classes.class_impurity


# --- The features of a node ----------------------------------------------------------------------------------------


# A family's kernels type for its own scratch alone. Numba drops what stands behind `is None` only where the argument is
# None, so each family asks for itself.


@kernel
def scan_class_node(
    lo: int,
    hi: int,
    table: TextbookTable,
    entries: Entries,
    settings: TextbookSettings,
    scratch: ScanScratch,
    control: np.ndarray,
    sums: np.ndarray | None,
) -> None:
    """Write the figures of every feature over entries lo .. hi of classes; nothing for numbers (None)."""
    if sums is None:
        return
    span = ClassSpan(lo, hi, sum_classes(entries.addends, lo, hi, sums, scratch.totals))
    for feature in range(table.columns.shape[0]):
        if control[CONTROL_STOP] != 0:
            break
        scan_class_feature(feature, span, table, entries, settings, scratch, None)


@kernel
def scan_value_node(
    lo: int,
    hi: int,
    table: TextbookTable,
    entries: Entries,
    settings: TextbookSettings,
    scratch: ScanScratch,
    control: np.ndarray,
    bins: np.ndarray | None,
) -> float:
    """The same for numbers, nothing for classes (None); return by how much gains differ that count as equal."""
    if bins is None:
        return TEXTBOOK_TIE
    sum_moments(entries.addends, lo, hi, scratch.totals)
    span = start_values(lo, hi, table.truth, entries.ids, settings, table.xlogx, scratch.totals)
    for feature in range(table.columns.shape[0]):
        if control[CONTROL_STOP] != 0:
            break
        scan_value_feature(feature, span, table, entries, settings, scratch, None)
    return span.slack


@inlined
def scan_node(
    lo: int,
    hi: int,
    table: TextbookTable,
    entries: Entries,
    settings: TextbookSettings,
    scratch: ScanScratch,
    control: np.ndarray,
) -> float:
    """Write the figures of every feature over entries lo .. hi; return by how much gains differ that count as equal."""
    scan_class_node(lo, hi, table, entries, settings, scratch, control, scratch.sums)
    return scan_value_node(lo, hi, table, entries, settings, scratch, control, scratch.bins)


@kernel
def list_class_cuts(
    feature: int,
    table: TextbookTable,
    entries: Entries,
    settings: TextbookSettings,
    scratch: ScanScratch,
    cuts: Cuts,
    sums: np.ndarray | None,
) -> None:
    """Write the figures and the cuts of one feature of a node of classes that has all entries."""
    if sums is None:
        return
    n = np.int64(len(entries.ids))
    span = ClassSpan(np.int64(0), n, sum_classes(entries.addends, 0, n, sums, scratch.totals))
    scan_class_feature(feature, span, table, entries, settings, scratch, cuts)


@kernel
def list_value_cuts(
    feature: int,
    table: TextbookTable,
    entries: Entries,
    settings: TextbookSettings,
    scratch: ScanScratch,
    cuts: Cuts,
    bins: np.ndarray | None,
) -> None:
    """The same for numbers."""
    if bins is None:
        return
    n = np.int64(len(entries.ids))
    sum_moments(entries.addends, 0, n, scratch.totals)
    span = start_values(0, n, table.truth, entries.ids, settings, table.xlogx, scratch.totals)
    scan_value_feature(feature, span, table, entries, settings, scratch, cuts)


# --- Nodes ---------------------------------------------------------------------------------------------------------


@inlined
def is_open(
    lo: int, hi: int, depth: int, held: NodeWeights, ids: np.ndarray, truth: np.ndarray, settings: TextbookSettings
) -> bool:
    """Whether a node may be split: not too small, not too deep, not pure."""
    n = hi - lo
    if depth >= settings.max_depth or n < settings.min_samples_split:
        return False
    if settings.rule == BY_C45:
        unit = settings.weight_unit
        if 2.0 * settings.min_weight - np.float64(held.weight) * unit > C45_SMALL:
            return False
        return np.float64(held.weight - held.heaviest) * unit >= C45_SMALL
    if n < 2 * settings.min_samples_leaf:
        return False
    if settings.n_classes > 0:
        return held.n_present > 1
    first = truth[ids[lo]]
    for i in range(np.uint64(lo + 1), np.uint64(hi)):
        if truth[np.uint64(ids[i])] != first:
            return True
    return False


@kernel
def write_distribution(weight: int, distributions: np.ndarray, state: np.ndarray, sums: np.ndarray | None) -> int:
    """Append the class weights sums[ALL], which add up to `weight`; return how a leaf refers to them."""
    if sums is None:
        return np.int64(0)
    row = state[N_MIXED]
    state[N_MIXED] = row + 1
    for k in range(distributions.shape[1]):
        distributions[row, k] = 0
    k = np.int64(0)
    while weight > 0:
        c = sums[PRESENT, k]
        distributions[row, c] = sums[ALL, c]
        weight -= sums[ALL, c]
        k += 1
    return -1 - row


@kernel
def weigh_node(lo: int, hi: int, addends: np.ndarray, totals: np.ndarray, sums: np.ndarray | None) -> NodeWeights:
    """Sum entries lo .. hi to `totals`, and to `sums` per class."""
    n_present = np.int64(0)
    heaviest = np.int64(0)
    if sums is None:
        sum_moments(addends, lo, hi, totals)
    else:
        n_present = sum_classes(addends, lo, hi, sums, totals)
        for k in range(n_present):
            heaviest = max(heaviest, sums[ALL, sums[PRESENT, k]])
    return NodeWeights(totals[W_ALL], heaviest, n_present)


@kernel
def impurity_of(held: NodeWeights, settings: TextbookSettings, xlogx: np.ndarray, sums: np.ndarray | None) -> float:
    """Impurity of a node of classes; that of numbers is settled when the tree is grown."""
    if sums is None:
        return 0.0
    if held.n_present <= 1:
        return 0.0
    return class_impurity(sums, ALL, held.weight, held.n_present, settings, xlogx)


@inlined
def clear_node(node: int, nodes: TextbookNodes) -> None:
    """Make a leaf of a node."""
    nodes.test[node] = LEAF
    nodes.first_child[node] = 0
    nodes.n_branches[node] = 0
    nodes.weight[node] = 0
    nodes.class_of[node] = 0
    nodes.cut_value[node] = 0.0
    nodes.impurity[node] = 0.0


@kernel
def add_node(
    node: int,
    depth: int,
    table: TextbookTable,
    arena: Entries,
    settings: TextbookSettings,
    nodes: TextbookNodes,
    stack: TextbookStack,
    scratch: ScanScratch,
) -> bool:
    """Write a node, whose entries are known and at least one, and push it if it may be split; return whether."""
    state = stack.state
    lo = nodes.begin[node]
    hi = lo + nodes.n_rows[node]
    clear_node(node, nodes)
    held = weigh_node(lo, hi, arena.addends, scratch.totals, scratch.sums)
    nodes.weight[node] = held.weight
    nodes.impurity[node] = impurity_of(held, settings, table.xlogx, scratch.sums)
    if is_open(lo, hi, depth, held, arena.ids, table.truth, settings):
        stack.node[state[N_QUEUED]] = node
        stack.depth[state[N_QUEUED]] = depth
        state[N_QUEUED] += 1
        return True
    nodes.class_of[node] = leaf_class(held, nodes.distributions, state, scratch.sums)
    return False


@kernel
def leaf_class(held: NodeWeights, distributions: np.ndarray, state: np.ndarray, sums: np.ndarray | None) -> int:
    """The class of a pure leaf, or how it refers to its distribution."""
    if sums is None:
        return np.int64(0)
    if held.n_present == 1:
        return sums[PRESENT, 0]
    return write_distribution(held.weight, distributions, state, sums)


# --- Tests ---------------------------------------------------------------------------------------------------------


@kernel
def take_test(
    feature: int,
    lo: int,
    hi: int,
    table: TextbookTable,
    ids: np.ndarray,
    settings: TextbookSettings,
    figures: Figures,
    of_entry: np.ndarray,
) -> Split:
    """The best test of a feature; writes the branch of entries lo .. hi to `of_entry`."""
    columns = table.columns
    n_missing = np.int64(0)
    for i in range(np.uint64(lo), np.uint64(hi)):
        code = np.int64(columns[np.uint64(feature), np.uint64(ids[i])])
        of_entry[i] = code
        n_missing += np.int64(code == MISSING_CODE)
    has_own = n_missing > 0 and not settings.spreads_missing  # missing values have a branch of their own
    cut = figures.last_below[feature]
    following = figures.first_above[feature]
    missing = np.int64(-1)
    if table.features[IS_CATEGORICAL, feature] != 0:
        kind = np.int64(MULTIWAY)
        n_branches = table.features[N_CODES, feature]
        if has_own:
            missing = n_branches
            n_branches += 1
    else:
        kind = np.int64(THRESHOLD)
        n_branches = np.int64(2)
        if has_own:
            missing = np.int64(1) if following < 0 else np.int64(2)
            n_branches = missing + 1
    for i in range(np.uint64(lo), np.uint64(hi)):
        code = np.int64(of_entry[i])
        at = code - 1 if kind == MULTIWAY else np.int64(code > cut)
        of_entry[i] = missing if code == MISSING_CODE else at
    return Split(feature, kind, cut, following, missing, n_branches)


@kernel
def write_test(
    node: int, split: Split, heaviest: int, table: TextbookTable, settings: TextbookSettings, nodes: TextbookNodes
) -> None:
    """Write the test of a node. Without missing values here, those to come take the heaviest branch."""
    missing = heaviest if split.missing < 0 else split.missing
    bits = np.int64(EVERY_BRANCH) if settings.spreads_missing else missing
    if split.kind == MULTIWAY:
        nodes.cut_value[node] = missing
        if not settings.spreads_missing:
            bits = np.int64(0)
    else:
        nodes.cut_value[node] = place_threshold(
            table.features, table.edges, split.feature, split.cut, split.following, settings.rule == BY_C45
        )
    nodes.test[node] = pack_test(split.feature, bits, split.kind)


@inlined
def has_room(
    n_entries: int,
    top: int,
    n_branches: int,
    arena: Entries,
    settings: TextbookSettings,
    nodes: TextbookNodes,
    stack: TextbookStack,
) -> bool:
    """Whether the entries of a node's branches and the branches themselves have room."""
    return not (
        n_entries > len(arena.ids)
        or stack.state[N_NODES] + n_branches > len(nodes.test)
        or top + n_branches > len(stack.node)
        or (settings.n_classes > 0 and stack.state[N_MIXED] + n_branches > len(nodes.distributions))
    )


# --- Doors ---------------------------------------------------------------------------------------------------------


@door
def grow(
    table: TextbookTable,
    arena: Entries,
    spare: Entries,  # as large as the arena
    settings: TextbookSettings,
    nodes: TextbookNodes,
    stack: TextbookStack,
    scratch: TextbookScratch,
    control: np.ndarray,
) -> int:
    """Grow until done (DONE), stopped (STOPPED) or out of space (NEEDS_ROOM: enlarge the arrays, call again).

    `state[N_ENTRIES]` says how many entries the arena must have.
    """
    scan_scratch = scratch.scan
    branches = scratch.branches
    figures = scan_scratch.figures
    state = stack.state
    times = table.times
    first = np.int64(0)
    n_branches = np.int64(0)  # of the node just split, still to be added
    depth = np.int64(0)
    if state[N_NODES] == 0:
        n_branches = np.int64(1)
        state[N_NODES] = 1
        nodes.begin[0] = 0
        nodes.n_rows[0] = table.columns.shape[1]
    while True:
        for back in range(n_branches):
            child = first + n_branches - 1 - back
            if nodes.n_rows[child] == 0:
                continue
            if not add_node(child, depth, table, arena, settings, nodes, stack, scan_scratch):
                control[CONTROL_ROWS] += nodes.n_rows[child]
        n_branches = np.int64(0)
        if control[CONTROL_STOP] != 0:
            return STOPPED
        if state[N_QUEUED] == 0:
            return DONE
        top = state[N_QUEUED] - 1
        node = stack.node[top]
        depth = stack.depth[top]
        lo = nodes.begin[node]
        hi = lo + nodes.n_rows[node]
        weight = nodes.weight[node]
        # --- its test
        slack = scan_node(lo, hi, table, arena, settings, scan_scratch, control)
        if control[CONTROL_STOP] != 0:
            return STOPPED
        feature = choose(figures, slack, settings)
        if feature < 0 or figures.gain[feature] * np.float64(weight) < settings.min_gain:
            if settings.n_classes > 0 and state[N_MIXED] == len(nodes.distributions):
                return NEEDS_ROOM
            nodes.class_of[node] = write_distribution(weight, nodes.distributions, state, scan_scratch.sums)
            state[N_QUEUED] = top
            control[CONTROL_ROWS] += hi - lo
            continue
        # --- its branches
        split = take_test(feature, lo, hi, table, arena.ids, settings, figures, branches.of_entry)
        parting = count_entries(lo, hi, split.n_branches, arena, times, branches)
        if not has_room(lo + parting.n_entries, top, split.n_branches, arena, settings, nodes, stack):
            state[N_ENTRIES] = lo + parting.n_entries
            return NEEDS_ROOM
        move_entries(lo, hi, lo, parting, arena, spare, times, branches)
        n_branches = split.n_branches
        first = state[N_NODES]
        state[N_NODES] = first + n_branches
        state[N_QUEUED] = top
        write_test(node, split, parting.heaviest, table, settings, nodes)
        nodes.first_child[node] = first
        nodes.n_branches[node] = n_branches
        for b in range(n_branches):
            child = first + b
            nodes.begin[child] = branches.begin[b]
            nodes.n_rows[child] = branches.n[b]
            if branches.n[b] == 0:  # an empty branch answers as the node, whose sums are still there
                clear_node(child, nodes)
                nodes.class_of[child] = write_distribution(weight, nodes.distributions, state, scan_scratch.sums)
        depth += 1


@door
def scan(
    table: TextbookTable, entries: Entries, settings: TextbookSettings, scratch: ScanScratch, control: np.ndarray
) -> int:
    """Write the figures of every feature of a node that has all entries; return the feature a grower takes, or -1."""
    slack = scan_node(0, len(entries.ids), table, entries, settings, scratch, control)
    return choose(scratch.figures, slack, settings)


@door
def list_cuts(
    feature: int,
    table: TextbookTable,
    entries: Entries,
    settings: TextbookSettings,
    scratch: ScanScratch,
    cuts: Cuts,  # written as far as there is room; `figures.n_tried` says how many there are
) -> None:
    """Write the figures of one feature of a node that has all entries, and those of each of its cuts."""
    list_class_cuts(feature, table, entries, settings, scratch, cuts, scratch.sums)
    list_value_cuts(feature, table, entries, settings, scratch, cuts, scratch.bins)


@door
def settle_values(
    n_nodes: int, arena: Entries, truth: np.ndarray, nodes: TextbookNodes, units: TextbookUnits, out: TextbookStats
) -> None:
    """Values of the leaves and impurities of all nodes of a tree of numbers, as `kernels.tree.node_stats` has them."""
    means = out.mean
    impurity = out.impurity
    weights = nodes.weight
    targets = Targets(arena.addends, arena.ids, truth)
    scale = 0.0
    for back in range(n_nodes):
        node = n_nodes - 1 - back
        lo = nodes.begin[node]
        hi = lo + nodes.n_rows[node]
        weight = weights[node]
        means[node] = 0.0
        impurity[node] = 0.0
        if lo == hi:
            continue
        child = nodes.first_child[node]
        if child == 0:
            leaf = RowRange(lo, hi, weight)
            mean, scale = settle_value_leaf(targets, leaf, node, units, scale, means, impurity)
            out.value[node] = mean * units.value_unit * units.value_unit_2
            continue
        end = child + nodes.n_branches[node]
        join_values(node, child, end, weights, means, impurity)
    if units.criterion == SDR:
        for node in range(n_nodes):
            impurity[node] = np.sqrt(impurity[node])
