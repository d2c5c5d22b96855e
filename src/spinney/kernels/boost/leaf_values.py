"""What happens to rows around the growth of a boosted tree: packed sums before it, leaves and their values after it.

Each function takes rows or a shard, so that threads can share the work; sums are whole numbers, the same for any share.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined
from spinney._types import (
    CUT_VALUE,
    FEATURE_SHIFT,
    FIRST_CHILD,
    FIRST_WORD,
    KIND_BITS,
    LAST_CODE,
    LOWER,
    MISSING_BITS,
    N_ROWS,
    SCORE,
    TEST,
    THRESHOLD,
    UPPER,
)

from ..common.branch import branch_of_code
from .rows import read_code

UNIT = 1.0 / 9007199254740992.0
S11 = np.uint64(11)
CHILD_SHIFT = np.uint64(32)
KIND_MASK = (1 << KIND_BITS) - 1
MISSING_MASK = (1 << MISSING_BITS) - 1
TARGET, OWNER, GROWN_CHILD, NUMBER = range(4)  # rows of links
LEAST_WEIGHT = 1e-300  # a leaf whose hessians underflow still weighs something


@door
def close_tree(nodes: np.ndarray, node_values: np.ndarray, n_nodes: int, is_post: bool, links: np.ndarray) -> int:
    """Remove from below tests that lower no loss, if asked to, and number the nodes anew; return how many are left.

    links (4, n_nodes) int64: row TARGET is written with the node that the rows of a grown leaf belong to in the end,
    -1 for inner nodes as grown; the others are scratch.
    """
    for node in range(n_nodes):
        links[TARGET, node] = node if nodes[FIRST_CHILD, node] == 0 else -1
        links[GROWN_CHILD, node] = nodes[FIRST_CHILD, node]
        links[OWNER, node] = node
    if not is_post:
        return n_nodes
    for node in range(n_nodes - 1, -1, -1):  # children come after their parent
        child = nodes[FIRST_CHILD, node]
        if child > 0 and node_values[SCORE, node] < 0.0:
            if nodes[FIRST_CHILD, child] == 0 and nodes[FIRST_CHILD, child + 1] == 0:
                nodes[FIRST_CHILD, node] = 0
                nodes[TEST, node] = 0
                node_values[SCORE, node] = 0.0
    n_left = np.int64(0)
    for node in range(n_nodes):
        owner = links[OWNER, node]
        child = links[GROWN_CHILD, node]
        if child > 0 and nodes[FIRST_CHILD, owner] == 0:
            links[OWNER, child] = owner
            links[OWNER, child + 1] = owner
        if owner != node:
            continue
        links[NUMBER, node] = n_left
        n_left += 1
    for node in range(n_nodes):
        if links[GROWN_CHILD, node] == 0:
            links[TARGET, node] = links[NUMBER, links[OWNER, node]]
        if links[OWNER, node] != node:
            continue
        at = links[NUMBER, node]
        child = nodes[FIRST_CHILD, node]
        for row in range(nodes.shape[0]):
            nodes[row, at] = nodes[row, node]
        for row in range(node_values.shape[0]):
            node_values[row, at] = node_values[row, node]
        if child > 0:
            nodes[FIRST_CHILD, at] = links[NUMBER, child]
    return n_left


@door
def mark_leaves(
    shard: int,
    n_shards: int,
    ids: np.ndarray,  # of the buffer
    ranges: np.ndarray,
    links: np.ndarray,
    n_grown: int,
    leaf: np.ndarray,  # (n_rows of the table,) int32, written
) -> None:
    """Write the leaf of each row of a shard."""
    for node in range(n_grown):
        target = links[TARGET, node]
        if target >= 0:
            for k in range(ranges[shard, node], ranges[n_shards + shard, node]):
                leaf[ids[k]] = target


@door
def route_rest(
    codes_0: np.ndarray,
    n_words: int,
    places: np.ndarray,
    nodes: np.ndarray,
    subsets: np.ndarray,  # uint64; one word where there are none
    is_in: np.ndarray,  # (n_rows,) uint8: rows that the tree was grown on
    lo: int,
    hi: int,
    leaf: np.ndarray,
) -> None:
    """Write the leaf of rows lo .. hi that the tree was not grown on."""
    for i in range(lo, hi):
        if is_in[i] != 0:
            continue
        node = np.int64(0)
        while nodes[FIRST_CHILD, node] > 0:
            test = nodes[TEST, node]
            feature = test >> FEATURE_SHIFT
            at = np.uint64(i * n_words * 8 + places[0, feature])
            code = np.int64(read_code(codes_0, at, places[1, feature] != 0))
            kind = test & KIND_MASK
            cut = nodes[LAST_CODE, node] if kind == THRESHOLD else nodes[FIRST_WORD, node]
            missing = (test >> KIND_BITS) & MISSING_MASK
            node = nodes[FIRST_CHILD, node] + branch_of_code(code, kind, cut, missing, subsets)
        leaf[i] = node


@door
def sum_leaves(
    leaf: np.ndarray,
    g: np.ndarray,
    h: np.ndarray,
    weight: np.ndarray,
    is_whole: bool,
    is_in: np.ndarray,  # (n_rows,) uint8, or (1,): all rows
    g_scale: float,
    h_scale: float,
    lo: int,
    hi: int,
    shard: int,
    leaf_sums: np.ndarray,  # (n_shards, 2, n_nodes) int64, added to
) -> None:
    """Sum the true gradients and hessians of rows lo .. hi by leaf, to 62 bits."""
    is_unit = len(weight) == 1
    is_all = len(is_in) == 1
    for i in range(lo, hi):
        if not is_all:
            if is_in[i] == 0:
                continue
        w = weight[0] if is_unit else weight[i]
        node = np.int64(leaf[i])
        if is_whole:
            leaf_sums[shard, 0, node] += np.int64(np.rint(g[i] * g_scale)) * np.int64(w)
            leaf_sums[shard, 1, node] += np.int64(np.rint(h[i] * h_scale)) * np.int64(w)
        else:
            leaf_sums[shard, 0, node] += np.int64(np.rint(g[i] * w * g_scale))
            leaf_sums[shard, 1, node] += np.int64(np.rint(h[i] * w * h_scale))


@inlined
def bound_anew(
    nodes: np.ndarray, node_values: np.ndarray, n_nodes: int, directions: np.ndarray, values: np.ndarray
) -> None:
    """Bound nodes by their own values, of inner nodes the means of their leaves.

    Bounds of the search are in other units where leaves are estimated in another way.
    """
    node_values[LOWER, 0] = -np.inf
    node_values[UPPER, 0] = np.inf
    for node in range(n_nodes):
        child = nodes[FIRST_CHILD, node]
        if child == 0:
            continue
        lower = node_values[LOWER, node]
        upper = node_values[UPPER, node]
        for b in range(child, child + 2):
            node_values[LOWER, b] = lower
            node_values[UPPER, b] = upper
        direction = directions[nodes[TEST, node] >> FEATURE_SHIFT]
        if direction == 0:
            continue
        left = min(max(values[child], lower), upper)
        right = min(max(values[child + 1], lower), upper)
        middle = left + (right - left) / 2.0
        if direction > 0:
            node_values[UPPER, child] = middle
            node_values[LOWER, child + 1] = middle
        else:
            node_values[LOWER, child] = middle
            node_values[UPPER, child + 1] = middle


@door
def settle(
    nodes: np.ndarray,
    node_values: np.ndarray,
    n_nodes: int,
    n_features: int,
    leaf_sums: np.ndarray,  # (n_shards, 2, n_nodes) int64
    g_unit: float,
    h_unit: float,
    reg_lambda: float,
    reg_alpha: float,
    learning_rate: float,
    given: np.ndarray | None,  # (n_nodes,) float64: values of leaves found elsewhere
    directions: np.ndarray | None,  # (n_features,) int64 where values are not those of the search: monotone constraints
    first: int,  # where the tree begins in what follows
    cuts: np.ndarray,  # (any, 2) float64 and ...
    words: np.ndarray,  # ... the same memory as uint64: hot fields, see `Tree.hot`
    n_rows: np.ndarray,  # (any,) uint32
    weight: np.ndarray,  # (any,) float64
    gain: np.ndarray,  # (any,) float64: gain of the tests below each node, per weight
    values: np.ndarray,  # (n_nodes,) float64, written: the shrunken values of leaves
) -> bool:
    """Write the values of the leaves and the arrays of the tree; whether all values are finite."""
    stay = (np.uint64(n_features) << np.uint64(FEATURE_SHIFT)) | np.uint64(THRESHOLD)
    for node in range(n_nodes - 1, -1, -1):
        at = first + node
        child = nodes[FIRST_CHILD, node]
        n_rows[at] = nodes[N_ROWS, node]
        if child > 0:
            cuts[at, 0] = node_values[CUT_VALUE, node]
            words[at, 1] = (np.uint64(child) << CHILD_SHIFT) | np.uint64(nodes[TEST, node])
            weight[at] = weight[first + child] + weight[first + child + 1]
            gain[at] = max(node_values[SCORE, node], 0.0) + gain[first + child] + gain[first + child + 1]
            share = weight[first + child] / weight[at]
            values[node] = values[child] * share + values[child + 1] * (1.0 - share)
            continue
        sum_g = np.int64(0)
        sum_h = np.int64(0)
        for shard in range(len(leaf_sums)):
            sum_g += leaf_sums[shard, 0, node]
            sum_h += leaf_sums[shard, 1, node]
        g = np.float64(sum_g) * g_unit
        h = np.float64(sum_h) * h_unit
        if given is not None:
            values[node] = given[node]
        elif g > reg_alpha:
            values[node] = -(g - reg_alpha) / (h + reg_lambda)
        elif g < -reg_alpha:
            values[node] = -(g + reg_alpha) / (h + reg_lambda)
        else:
            values[node] = 0.0
        words[at, 1] = (np.uint64(node) << CHILD_SHIFT) | stay
        weight[at] = max(h, LEAST_WEIGHT)
        gain[at] = 0.0
    if directions is not None:
        bound_anew(nodes, node_values, n_nodes, directions, values)
    is_finite = True
    for node in range(n_nodes):
        gain[first + node] /= weight[first + node]
        if nodes[FIRST_CHILD, node] == 0:
            value = min(max(values[node], node_values[LOWER, node]), node_values[UPPER, node]) * learning_rate
            if not np.isfinite(value):
                is_finite = False
                value = 0.0
            values[node] = value
            cuts[first + node, 0] = value
    return is_finite


@door
def add_values(leaf: np.ndarray, values: np.ndarray, lo: int, hi: int, raw: np.ndarray, row: int) -> None:
    """Add the value of each row's leaf to raw[row], rows lo .. hi."""
    for i in range(lo, hi):
        raw[row, i] += values[leaf[i]]
