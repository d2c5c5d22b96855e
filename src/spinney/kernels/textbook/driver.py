"""Grow one textbook tree: a branch for each level, and rows that may be in several nodes with a piece of their weight.

Words: an *entry* is a row in a node, or a piece of one; the *arena* holds the entries of all open nodes; a *bag* is a
branch of the node at hand.

  pop a node, scan all its features, choose a test, put its entries into bags, push the bags that are to be split

The open nodes lie in the arena as they lie on the stack, the next one last, so the entries of its bags take the place
of its own, and grow over what lies behind: that is done with. Where nothing is spread, entries only change places, and
every leaf keeps its rows.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined, kernel
from spinney._types import (
    ALL,
    BAG_BEGIN,
    BAG_N,
    BEGIN,
    BRANCHES_OF,
    BY_C45,
    CLASS_OF,
    CONTROL_ROWS,
    CONTROL_STOP,
    CUT_VALUE,
    DONE,
    EVERY_BRANCH,
    FEATURE_SHIFT,
    FIRST_ABOVE,
    FIRST_CHILD,
    GAIN_FIGURE,
    IS_CATEGORICAL,
    KIND_BITS,
    LAST_BELOW,
    LEAF,
    MISSING_CODE,
    MULTIWAY,
    N_CODES,
    N_ENTRIES,
    N_MIXED,
    N_NODES,
    N_QUEUED,
    N_ROWS,
    NEEDS_ROOM,
    PRESENT,
    Q_ALL,
    S_ALL,
    SCORE,
    SDR,
    STACK_DEPTH,
    STACK_NODE,
    STOPPED,
    TEST,
    THRESHOLD,
    W_ALL,
    WEIGHT_OF,
)

from ..common.criteria import score_moments
from ..common.means import settle_value_leaf
from ..common.structs import RowRange, Targets, TextbookSettings, ValueUnits
from ..common.sums import sum_classes, sum_moments
from ..common.thresholds import place_threshold
from . import scan_classes, scan_values
from .branches import count_entries, move_entries
from .figures import SMALL, choose

scan_class_feature = scan_classes.scan_feature
scan_value_feature = scan_values.scan_feature
class_impurity = scan_classes.class_impurity


@kernel
def scan_node(
    columns: np.ndarray,
    ids: np.ndarray,
    labels: np.ndarray,
    times: np.ndarray,
    truth: np.ndarray,
    lo: int,
    hi: int,
    features: np.ndarray,
    edges: np.ndarray,
    settings: TextbookSettings,
    xlogx: np.ndarray,
    column: np.ndarray,
    keys: np.ndarray,
    counts: np.ndarray,
    cells: np.ndarray,
    groups: np.ndarray | None,
    sums: np.ndarray | None,
    totals: np.ndarray,
    figures: np.ndarray,
    control: np.ndarray,
) -> float:
    """Write the figures of every feature over entries lo .. hi; return by how much gains differ that count as equal."""
    slack = scan_classes.TIE
    if sums is not None:
        n_present = sum_classes(labels, lo, hi, sums, totals)
        for feature in range(columns.shape[0]):
            if control[CONTROL_STOP] != 0:
                break
            scan_class_feature(
                columns, ids, labels, times, lo, hi, feature, features, edges, settings, xlogx, column, keys, counts,
                cells, sums, totals, n_present, figures, None,
            )  # fmt: skip
    if groups is not None:
        sum_moments(labels, lo, hi, totals)
        centre, score, slack = start_moments(ids, truth, lo, hi, totals, settings, xlogx)
        for feature in range(columns.shape[0]):
            if control[CONTROL_STOP] != 0:
                break
            scan_value_feature(
                columns, ids, labels, lo, hi, feature, features, settings, xlogx, column, keys, counts, cells, groups,
                totals, centre, score, slack, figures, None,
            )  # fmt: skip
    return slack


@kernel
def start_moments(
    ids: np.ndarray,
    truth: np.ndarray,
    lo: int,
    hi: int,
    totals: np.ndarray,
    settings: TextbookSettings,
    xlogx: np.ndarray,
) -> tuple[int, float, float]:
    """What targets of a node are taken from, its score, and the slack of its gains: a share of the targets' range."""
    low = truth[ids[lo]]
    high = low
    for i in range(np.uint64(lo + 1), np.uint64(hi)):
        y = truth[np.uint64(ids[i])]
        low = min(low, y)
        high = max(high, y)
    width = (high - low) * settings.truth_unit
    slack = (width if settings.criterion == SDR else width * width) * scan_classes.TIE
    centre = np.int64(0)
    if settings.is_centred != 0:
        centre = np.int64(np.rint(np.float64(totals[S_ALL]) / np.float64(totals[W_ALL])))
    total = totals[S_ALL] - centre * totals[W_ALL]
    score = score_moments(settings.criterion, totals[W_ALL], total, totals[Q_ALL], settings.square_unit, xlogx)
    return centre, score, slack


@inlined
def is_open(
    ids: np.ndarray,
    truth: np.ndarray,
    lo: int,
    hi: int,
    depth: int,
    n_present: int,
    weight: int,
    heaviest: int,
    settings: TextbookSettings,
) -> bool:
    """Whether a node may be split: not too small, not too deep, not pure."""
    n = hi - lo
    if depth >= settings.max_depth or n < settings.min_samples_split:
        return False
    if settings.rule == BY_C45:
        unit = settings.weight_unit
        if 2.0 * settings.min_weight - np.float64(weight) * unit > SMALL:
            return False
        return np.float64(weight - heaviest) * unit >= SMALL
    if n < 2 * settings.min_samples_leaf:
        return False
    if settings.n_classes > 0:
        return n_present > 1
    first = truth[ids[lo]]
    for i in range(np.uint64(lo + 1), np.uint64(hi)):
        if truth[np.uint64(ids[i])] != first:
            return True
    return False


@kernel
def write_distribution(sums: np.ndarray, weight: int, distributions: np.ndarray, state: np.ndarray) -> int:
    """Append the class weights sums[ALL], which add up to `weight`; return how a leaf refers to them."""
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
def add_node(
    ids: np.ndarray,
    labels: np.ndarray,
    truth: np.ndarray,
    lo: int,
    hi: int,
    depth: int,
    node: int,
    settings: TextbookSettings,
    xlogx: np.ndarray,
    sums: np.ndarray | None,
    totals: np.ndarray,
    nodes: np.ndarray,
    node_values: np.ndarray,
    distributions: np.ndarray,
    state: np.ndarray,
) -> bool:
    """Write a node for entries lo .. hi, at least one; return whether it may be split."""
    nodes[TEST, node] = LEAF
    nodes[FIRST_CHILD, node] = 0
    nodes[BEGIN, node] = lo
    nodes[N_ROWS, node] = hi - lo
    nodes[BRANCHES_OF, node] = 0
    nodes[CLASS_OF, node] = 0
    node_values[CUT_VALUE, node] = 0.0
    node_values[SCORE, node] = 0.0
    n_present = np.int64(0)
    heaviest = np.int64(0)
    if sums is not None:
        n_present = sum_classes(labels, lo, hi, sums, totals)
        for k in range(n_present):
            heaviest = max(heaviest, sums[ALL, sums[PRESENT, k]])
        if n_present > 1:
            node_values[SCORE, node] = class_impurity(sums, ALL, totals[W_ALL], n_present, settings, xlogx)
    else:
        sum_moments(labels, lo, hi, totals)
    nodes[WEIGHT_OF, node] = totals[W_ALL]
    if is_open(ids, truth, lo, hi, depth, n_present, totals[W_ALL], heaviest, settings):
        return True
    if sums is not None:
        if n_present == 1:
            nodes[CLASS_OF, node] = sums[PRESENT, 0]
        else:
            nodes[CLASS_OF, node] = write_distribution(sums, totals[W_ALL], distributions, state)
    return False


@door
def grow(
    columns: np.ndarray,  # (n_features, n_rows) uint16: the codes
    ids: np.ndarray,  # (n_entries,) int32: the arena, rows of the entries
    labels: np.ndarray,  # (1 .. 3, n_entries) int64: the arena, labels of the entries; weights where rows are spread
    times: np.ndarray,  # (n_rows,) int64 whole weights, or (1,): every row is one
    truth: np.ndarray,  # (n_rows,) float64: classes or targets
    features: np.ndarray,
    edges: np.ndarray,
    settings: TextbookSettings,
    xlogx: np.ndarray,  # fixed-point k log2 k, or (1,)
    column: np.ndarray,  # (n_entries, 1) uint16 scratch
    keys: np.ndarray,  # (2, n_rows) uint64 scratch
    counts: np.ndarray,
    cells: np.ndarray,  # zeros
    groups: np.ndarray | None,  # None: classes
    sums: np.ndarray | None,  # (TEXTBOOK_CLASS_ROWS, n_classes) int64 scratch; None: numbers
    totals: np.ndarray,
    figures: np.ndarray,  # (FIGURE_ROWS, n_features) float64 scratch
    branch: np.ndarray,  # (n_entries,) int32 scratch
    bags: np.ndarray,  # (BAG_ROWS, most branches) int64 scratch
    spare_ids: np.ndarray,  # as `ids`
    spare_labels: np.ndarray,  # as `labels`
    nodes: np.ndarray,  # (TEXTBOOK_NODE_ROWS, ...) int64, written
    node_values: np.ndarray,  # (NODE_VALUE_ROWS, ...) float64, written
    distributions: np.ndarray,  # (..., n_classes) int64, written
    stack: np.ndarray,  # (2, ...) int64
    state: np.ndarray,
    control: np.ndarray,
) -> int:
    """Grow until done (DONE), stopped (STOPPED) or out of space (NEEDS_ROOM: enlarge the arrays, call again).

    `state[N_ENTRIES]` says how many entries the arena must have.
    """
    first = np.int64(0)
    n_branches = np.int64(0)  # of the node just split, still to be added
    depth = np.int64(0)
    if state[N_NODES] == 0:
        n_branches = np.int64(1)
        state[N_NODES] = 1
        bags[BAG_BEGIN, 0] = 0
        bags[BAG_N, 0] = columns.shape[1]
    while True:
        for back in range(n_branches):
            b = n_branches - 1 - back
            if bags[BAG_N, b] == 0:
                continue
            begin = bags[BAG_BEGIN, b]
            end = begin + bags[BAG_N, b]
            is_next = add_node(
                ids, labels, truth, begin, end, depth, first + b, settings, xlogx, sums, totals, nodes,
                node_values, distributions, state,
            )  # fmt: skip
            if is_next:
                stack[STACK_NODE, state[N_QUEUED]] = first + b
                stack[STACK_DEPTH, state[N_QUEUED]] = depth
                state[N_QUEUED] += 1
            else:
                control[CONTROL_ROWS] += end - begin
        n_branches = np.int64(0)
        if control[CONTROL_STOP] != 0:
            return STOPPED
        if state[N_QUEUED] == 0:
            return DONE
        top = state[N_QUEUED] - 1
        node = stack[STACK_NODE, top]
        depth = stack[STACK_DEPTH, top]
        lo = nodes[BEGIN, node]
        hi = lo + nodes[N_ROWS, node]
        slack = scan_node(
            columns, ids, labels, times, truth, lo, hi, features, edges, settings, xlogx, column, keys, counts, cells,
            groups, sums, totals, figures, control,
        )  # fmt: skip
        if control[CONTROL_STOP] != 0:
            return STOPPED
        feature = choose(figures, slack, settings)
        weight = np.float64(nodes[WEIGHT_OF, node])
        if feature >= 0:
            if figures[GAIN_FIGURE, feature] * weight < settings.min_gain:
                feature = np.int64(-1)
        if feature < 0:
            if sums is not None:
                if state[N_MIXED] == len(distributions):
                    return NEEDS_ROOM
                nodes[CLASS_OF, node] = write_distribution(sums, nodes[WEIGHT_OF, node], distributions, state)
            state[N_QUEUED] = top
            control[CONTROL_ROWS] += hi - lo
            continue
        # --- the bags
        n_missing = np.int64(0)
        for i in range(np.uint64(lo), np.uint64(hi)):
            code = np.int64(columns[np.uint64(feature), np.uint64(ids[i])])
            branch[i] = code
            n_missing += np.int64(code == MISSING_CODE)
        kind = np.int64(THRESHOLD)
        cut = np.int64(figures[LAST_BELOW, feature])
        following = np.int64(figures[FIRST_ABOVE, feature])
        n_branches = np.int64(2)
        missing = np.int64(-1)
        if features[IS_CATEGORICAL, feature] != 0:
            kind = np.int64(MULTIWAY)
            n_branches = features[N_CODES, feature]
            if settings.spreads_missing == 0 and n_missing > 0:
                missing = n_branches
                n_branches += 1
        elif settings.spreads_missing == 0 and n_missing > 0:
            missing = np.int64(1) if following < 0 else np.int64(2)
            n_branches = missing + 1
        for i in range(np.uint64(lo), np.uint64(hi)):
            code = np.int64(branch[i])
            at = code - 1 if kind == MULTIWAY else np.int64(code > cut)
            branch[i] = missing if code == MISSING_CODE else at
        n_entries, heaviest, known = count_entries(branch, ids, labels, times, lo, hi, n_branches, bags)
        if (
            lo + n_entries > len(ids)
            or state[N_NODES] + n_branches > nodes.shape[1]
            or top + n_branches > stack.shape[1]
            or (settings.n_classes > 0 and state[N_MIXED] + n_branches > len(distributions))
        ):
            state[N_ENTRIES] = lo + n_entries
            return NEEDS_ROOM
        move_entries(
            branch, ids, labels, times, lo, hi, lo, n_branches, n_entries, heaviest, known, bags, spare_ids,
            spare_labels,
        )  # fmt: skip
        # --- the node
        first = state[N_NODES]
        state[N_NODES] = first + n_branches
        state[N_QUEUED] = top
        bits = np.int64(EVERY_BRANCH)
        if settings.spreads_missing == 0:
            bits = heaviest if missing < 0 else missing
        if kind == MULTIWAY:
            node_values[CUT_VALUE, node] = heaviest if missing < 0 else missing
            if settings.spreads_missing == 0:
                bits = np.int64(0)
        else:
            node_values[CUT_VALUE, node] = place_threshold(
                features, edges, feature, cut, following, settings.rule == BY_C45
            )
        nodes[TEST, node] = (feature << FEATURE_SHIFT) | (bits << KIND_BITS) | kind
        nodes[FIRST_CHILD, node] = first
        nodes[BRANCHES_OF, node] = n_branches
        # --- its children
        for b in range(n_branches):
            if bags[BAG_N, b] > 0:
                continue
            child = first + b
            nodes[TEST, child] = LEAF
            nodes[FIRST_CHILD, child] = 0
            nodes[BEGIN, child] = lo
            nodes[N_ROWS, child] = 0
            nodes[BRANCHES_OF, child] = 0
            nodes[WEIGHT_OF, child] = 0
            node_values[CUT_VALUE, child] = 0.0
            node_values[SCORE, child] = 0.0
            if sums is not None:  # they still hold the node's
                nodes[CLASS_OF, child] = write_distribution(sums, nodes[WEIGHT_OF, node], distributions, state)
        depth += 1


@door
def scan(
    columns: np.ndarray,
    ids: np.ndarray,  # (n_entries,) int32: the rows of one node
    labels: np.ndarray,  # (1 .. 3, n_entries)
    times: np.ndarray,
    truth: np.ndarray,
    features: np.ndarray,
    edges: np.ndarray,
    settings: TextbookSettings,
    xlogx: np.ndarray,
    column: np.ndarray,
    keys: np.ndarray,
    counts: np.ndarray,
    cells: np.ndarray,
    groups: np.ndarray | None,
    sums: np.ndarray | None,
    totals: np.ndarray,
    figures: np.ndarray,  # (FIGURE_ROWS, n_features) float64, written
    control: np.ndarray,
) -> int:
    """Write the figures of every feature of one node, as the grower sees them; return the feature it takes, or -1."""
    slack = scan_node(
        columns, ids, labels, times, truth, 0, len(ids), features, edges, settings, xlogx, column, keys, counts, cells,
        groups, sums, totals, figures, control,
    )  # fmt: skip
    return choose(figures, slack, settings)


@door
def list_cuts(
    columns: np.ndarray,
    ids: np.ndarray,
    labels: np.ndarray,
    times: np.ndarray,
    truth: np.ndarray,
    feature: int,
    features: np.ndarray,
    edges: np.ndarray,
    settings: TextbookSettings,
    xlogx: np.ndarray,
    column: np.ndarray,
    keys: np.ndarray,
    counts: np.ndarray,
    cells: np.ndarray,
    groups: np.ndarray | None,
    sums: np.ndarray | None,
    totals: np.ndarray,
    figures: np.ndarray,  # (FIGURE_ROWS, n_features) float64, written in column `feature`
    cuts: np.ndarray,  # (CUT_ROWS, room) float64, written as far as there is room; `figures[N_TRIED]` says how many
) -> None:
    """Write the figures of one feature of a node, and those of each of its cuts."""
    if sums is not None:
        n_present = sum_classes(labels, 0, len(ids), sums, totals)
        scan_class_feature(
            columns, ids, labels, times, 0, len(ids), feature, features, edges, settings, xlogx, column, keys, counts,
            cells, sums, totals, n_present, figures, cuts,
        )  # fmt: skip
    if groups is not None:
        sum_moments(labels, 0, len(ids), totals)
        centre, score, slack = start_moments(ids, truth, 0, len(ids), totals, settings, xlogx)
        scan_value_feature(
            columns, ids, labels, 0, len(ids), feature, features, settings, xlogx, column, keys, counts, cells, groups,
            totals, centre, score, slack, figures, cuts,
        )  # fmt: skip


@door
def settle_values(
    labels: np.ndarray,
    ids: np.ndarray,
    truth: np.ndarray,
    nodes: np.ndarray,
    n_nodes: int,
    criterion: int,
    is_whole: int,
    centre: float,
    stretch: float,
    share: float,
    rough_scale: float,
    value_unit: float,  # turns targets into the user's units in two steps, for its square may leave a float's range
    value_unit_2: float,
    means: np.ndarray,  # (n_nodes,) float64 scratch
    value: np.ndarray,  # (n_nodes,) float64, written for leaves with rows
    impurity: np.ndarray,  # (n_nodes,) float64, written
) -> None:
    """Values of the leaves and impurities of all nodes of a tree of numbers, as `kernels.tree.node_stats` has them."""
    scale = 0.0
    for back in range(n_nodes):
        node = n_nodes - 1 - back
        lo = nodes[BEGIN, node]
        weight = nodes[WEIGHT_OF, node]
        means[node] = 0.0
        impurity[node] = 0.0
        if nodes[N_ROWS, node] == 0:
            continue
        child = nodes[FIRST_CHILD, node]
        if child == 0:
            leaf = RowRange(lo, lo + nodes[N_ROWS, node], weight)
            units = ValueUnits(is_whole != 0, centre, stretch, share, rough_scale)
            targets = Targets(labels, ids, truth)
            mean, scale = settle_value_leaf(targets, leaf, node, units, scale, means, impurity)
            value[node] = mean * value_unit * value_unit_2
            continue
        mean = 0.0
        for b in range(child, child + nodes[BRANCHES_OF, node]):
            mean += np.float64(nodes[WEIGHT_OF, b]) * means[b]
        mean /= np.float64(weight)
        square = 0.0
        for b in range(child, child + nodes[BRANCHES_OF, node]):
            off = means[b] - mean
            square += np.float64(nodes[WEIGHT_OF, b]) * (impurity[b] + off * off)
        means[node] = mean
        impurity[node] = square / np.float64(weight)
    if criterion == SDR:
        for node in range(n_nodes):
            impurity[node] = np.sqrt(impurity[node])
