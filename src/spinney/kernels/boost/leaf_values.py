"""What follows the growth of a boosted tree: pruning, the leaf of each row, the values of the leaves.

    close_tree ─► mark_leaves (rows of the tree), route_rest (the others) ─► sum_leaves ─► settle ─► add_values

Each function takes rows or a shard, so that threads can share the work; sums are whole numbers, the same for any share.
Where rows are too few for that, or one thread has them all, `finish_tree` does all of it in one call.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined
from spinney._types import HISTOGRAM_STRIDE, NOT_LISTED, THRESHOLD, TOO_MANY

from ..common.bits import lowest_bit
from ..common.branch import branch_of_code
from ..common.node_layout import feature_of, kind_of, missing_of, pack_leaf, pack_link
from ..common.structs import (
    BoostNodes,
    BoostTable,
    ByteRows,
    Gradients,
    LeafLinks,
    LeafSettings,
    LeafSums,
    PackedUnits,
    RoutedRows,
    TreeEnd,
    TreeEndSettings,
    WrittenTree,
)
from .rows import decode, read_code
from .shards import column_of

ONE, EVERY = np.uint64(1), np.uint64(0xFFFF_FFFF_FFFF_FFFF)
MANY_ROWS = 1024  # one in five outside the bag: from here on words take less than steps, 6 microseconds a tree
LEAST_WEIGHT = 1e-300  # a leaf whose hessians underflow still weighs something


# --- Pruning ------------------------------------------------------------------------------------------------


@inlined
def copy_node(nodes: BoostNodes, node: int, to: int) -> None:
    """Move a node to another place: all that a finished tree needs of it."""
    nodes.test[to] = nodes.test[node]
    nodes.first_child[to] = nodes.first_child[node]
    nodes.side[to] = nodes.side[node]
    nodes.n_rows[to] = nodes.n_rows[node]
    nodes.last_code[to] = nodes.last_code[node]
    nodes.first_word[to] = nodes.first_word[node]
    nodes.cut_value[to] = nodes.cut_value[node]
    nodes.gain[to] = nodes.gain[node]
    nodes.lower[to] = nodes.lower[node]
    nodes.upper[to] = nodes.upper[node]


@inlined
def prune_nodes(nodes: BoostNodes, n_nodes: int, is_post: bool, links: LeafLinks) -> int:
    """`close_tree`."""
    first_child = nodes.first_child
    for node in range(n_nodes):
        links.target[node] = node if first_child[node] == 0 else -1
        links.grown_child[node] = first_child[node]
        links.owner[node] = node
    if not is_post:
        return n_nodes
    for node in range(n_nodes - 1, -1, -1):  # children come after their parent
        child = first_child[node]
        if child > 0 and nodes.gain[node] < 0.0:
            if first_child[child] == 0 and first_child[child + 1] == 0:
                first_child[node] = 0
                nodes.test[node] = 0
                nodes.gain[node] = 0.0
    n_left = np.int64(0)
    for node in range(n_nodes):
        owner = links.owner[node]
        child = links.grown_child[node]
        if child > 0 and first_child[owner] == 0:
            links.owner[child] = owner
            links.owner[child + 1] = owner
        if owner != node:
            continue
        links.number[node] = n_left
        n_left += 1
    for node in range(n_nodes):
        if links.grown_child[node] == 0:
            links.target[node] = links.number[links.owner[node]]
        if links.owner[node] != node:
            continue
        at = links.number[node]
        child = first_child[node]
        copy_node(nodes, node, at)
        if child > 0:
            first_child[at] = links.number[child]
    return n_left


@door
def close_tree(nodes: BoostNodes, n_nodes: int, is_post: bool, links: LeafLinks) -> int:
    """Remove from below tests that lower no loss, if asked to, and number the nodes anew; return how many are left.

    `links.target` is written; the other links are scratch.
    """
    return prune_nodes(nodes, n_nodes, is_post, links)


# --- The leaf of each row -----------------------------------------------------------------------------------


@door
def mark_leaves(
    shard: int,
    n_grown: int,
    target: np.ndarray,  # of `LeafLinks`
    buffer: ByteRows,
    nodes: BoostNodes,
    leaf: np.ndarray,  # (n_rows of the table,) int32, written
) -> None:
    """Write the leaf of each row of a shard."""
    ids = buffer.ids
    for node in range(n_grown):
        number = target[node]
        if number >= 0:
            for k in range(nodes.begin[shard, node], nodes.end[shard, node]):
                leaf[ids[k]] = number


@inlined
def next_node(row: int, node: int, table: BoostTable, source: ByteRows, nodes: BoostNodes) -> int:
    """The child of a node that a row of the table goes to."""
    test = nodes.test[node]
    kind = kind_of(test)
    column = column_of(feature_of(test), table)
    at = np.uint64(row * table.n_words * 8 + column.place)
    code = decode(np.int64(read_code(source.codes, at, column.is_wide)), column)
    cut = nodes.last_code[node] if kind == THRESHOLD else nodes.first_word[node]
    return nodes.first_child[node] + branch_of_code(code, kind, cut, missing_of(test), nodes.subsets)


@inlined
def leaf_of(row: int, table: BoostTable, source: ByteRows, nodes: BoostNodes) -> int:
    """The leaf of a row of the table."""
    node = np.int64(0)
    while nodes.first_child[node] > 0:
        node = next_node(row, node, table, source, nodes)
    return node


@inlined
def list_words(table: BoostTable, nodes: BoostNodes, routed: RoutedRows) -> None:
    """Write the leaves that are left by each code, where leaves are few and no test asks a wide feature.

    A test takes the leaves below one child off the word of each code that goes to the other.
    """
    first_child = nodes.first_child
    below = routed.below
    n_nodes = np.int64(1)  # children follow their parent, and nodes that are not reached follow all others
    routed.n_places[0] = TOO_MANY
    node = np.int64(0)
    while node < n_nodes:
        if first_child[node] > 0:
            n_nodes = max(n_nodes, first_child[node] + 2)
        node += 1
    if n_nodes > len(below) or n_nodes == 1:
        return
    bit = np.uint64(0)
    for k in range(n_nodes):
        node = n_nodes - 1 - k
        child = first_child[node]
        if child > 0:
            below[node] = below[child] | below[child + 1]
        else:
            below[node] = ONE << bit
            routed.leaf[bit] = node
            bit += ONE
    n = np.int64(0)
    for node in range(n_nodes):
        child = first_child[node]
        if child == 0:
            continue
        test = nodes.test[node]
        kind = kind_of(test)
        column = column_of(feature_of(test), table)
        at = np.int64(0)
        while at < n and routed.places[at] != column.place:
            at += 1
        if column.is_wide or at == len(routed.places):
            return
        is_new = at == n
        routed.places[at] = column.place
        n += np.int64(is_new)
        cut = nodes.last_code[node] if kind == THRESHOLD else nodes.first_word[node]
        missing = missing_of(test)
        n_codes = column.n_codes if column.base < 0 else np.int64(HISTOGRAM_STRIDE - 1)
        for code in range(n_codes + 1):
            word = np.uint64(at * HISTOGRAM_STRIDE + code)
            branch = branch_of_code(decode(code, column), kind, cut, missing, nodes.subsets)
            routed.words[word] = (EVERY if is_new else routed.words[word]) & ~below[child + 1 - branch]
    routed.n_places[0] = n


@inlined
def route_by_words(n: int, stride: np.uint64, codes: np.ndarray, leaf: np.ndarray, routed: RoutedRows) -> None:
    """Write the leaf of n rows that wait: the one that the words of all codes of a row have left.

    Byte by byte: the first loop over the rows waits for their codes, of many rows at once.
    """
    waiting = routed.waiting
    left = routed.left
    words = routed.words
    for i in range(np.uint64(n)):
        left[i] = EVERY
    for k in range(routed.n_places[0]):
        place = np.uint64(routed.places[k])
        first = np.uint64(k * HISTOGRAM_STRIDE)
        for i in range(np.uint64(n)):
            left[i] &= words[first + np.uint64(codes[np.uint64(waiting[i]) * stride + place])]
    for i in range(np.uint64(n)):
        leaf[np.uint64(waiting[i])] = routed.leaf[lowest_bit(left[i])]


@door
def route_rest(
    lo: int,
    hi: int,
    table: BoostTable,
    source: ByteRows,
    nodes: BoostNodes,
    is_in: np.ndarray,  # (n_rows,) uint8: rows that the tree was grown on
    leaf: np.ndarray,
    routed: RoutedRows,  # scratch of the thread
) -> None:
    """Write the leaf of rows lo .. hi that the tree was not grown on.

    Of a tree of few leaves, that is what the codes of a row leave of them. Else all rows that wait take a step before
    any takes the next: a processor does several at once, since none waits for another.
    """
    waiting = routed.waiting
    if routed.n_places[0] == NOT_LISTED and hi - lo >= MANY_ROWS:
        list_words(table, nodes, routed)
    stride = np.uint64(table.n_words * 8)
    for first in range(lo, hi, len(waiting)):
        n = np.int64(0)
        for i in range(first, min(first + len(waiting), hi)):
            waiting[n] = i
            n += np.int64(is_in[i] == 0)  # added, not jumped on: nobody can predict it
        if routed.n_places[0] > 0:
            route_by_words(n, stride, source.codes, leaf, routed)
            continue
        for k in range(n):
            leaf[waiting[k]] = 0
        while n > 0 and nodes.first_child[0] > 0:
            n_left = np.int64(0)
            for k in range(n):
                row = np.int64(waiting[k])
                node = next_node(row, np.int64(leaf[row]), table, source, nodes)
                leaf[row] = node
                waiting[n_left] = row
                n_left += np.int64(nodes.first_child[node] > 0)
            n = n_left


# --- The values of leaves -----------------------------------------------------------------------------------


@inlined
def whole_sums(i: int, gradients: Gradients, scale: PackedUnits) -> tuple[int, int]:
    """The true derivatives of a row, times its weight, in whole units."""
    w = gradients.weight[0] if len(gradients.weight) == 1 else gradients.weight[i]
    g = gradients.g[i]
    h = gradients.h[i]
    if gradients.is_whole:
        times = np.int64(w)
        return np.int64(np.rint(g * scale.gradient)) * times, np.int64(np.rint(h * scale.hessian)) * times
    return np.int64(np.rint(g * w * scale.gradient)), np.int64(np.rint(h * w * scale.hessian))


@door
def sum_leaves(
    shard: int,
    lo: int,
    hi: int,
    gradients: Gradients,
    scale: PackedUnits,
    leaf: np.ndarray,
    is_in: np.ndarray,  # (n_rows,) uint8, or (1,): all rows
    sums: LeafSums,  # added to
) -> None:
    """Sum the true gradients and hessians of rows lo .. hi by leaf, to 62 bits."""
    is_all = len(is_in) == 1
    for i in range(lo, hi):
        if not is_all:
            if is_in[i] == 0:
                continue
        node = np.int64(leaf[i])
        g, h = whole_sums(i, gradients, scale)
        sums.gradient[shard, node] += g
        sums.hessian[shard, node] += h


@inlined
def value_of_leaf(node: int, sums: LeafSums, settings: LeafSettings) -> tuple[float, float]:
    """The best value of a leaf, and its sum of hessians."""
    sum_g = np.int64(0)
    sum_h = np.int64(0)
    for shard in range(len(sums.gradient)):
        sum_g += sums.gradient[shard, node]
        sum_h += sums.hessian[shard, node]
    g = np.float64(sum_g) * settings.gradient_unit
    h = np.float64(sum_h) * settings.hessian_unit
    if g > settings.reg_alpha:
        return -(g - settings.reg_alpha) / (h + settings.reg_lambda), h
    if g < -settings.reg_alpha:
        return -(g + settings.reg_alpha) / (h + settings.reg_lambda), h
    return 0.0, h


@inlined
def bound_anew(nodes: BoostNodes, n_nodes: int, directions: np.ndarray, values: np.ndarray) -> None:
    """Bound nodes by their own values, of inner nodes the means of their leaves.

    Bounds of the search are in other units where leaves are estimated in another way.
    """
    nodes.lower[0] = -np.inf
    nodes.upper[0] = np.inf
    for node in range(n_nodes):
        child = nodes.first_child[node]
        if child == 0:
            continue
        lower = nodes.lower[node]
        upper = nodes.upper[node]
        for b in range(child, child + 2):
            nodes.lower[b] = lower
            nodes.upper[b] = upper
        direction = directions[feature_of(nodes.test[node])]
        if direction == 0:
            continue
        left = min(max(values[child], lower), upper)
        right = min(max(values[child + 1], lower), upper)
        middle = left + (right - left) / 2.0
        if direction > 0:
            nodes.upper[child] = middle
            nodes.lower[child + 1] = middle
        else:
            nodes.lower[child] = middle
            nodes.upper[child + 1] = middle


@inlined
def write_nodes(
    nodes: BoostNodes,
    n_nodes: int,
    sums: LeafSums,
    settings: LeafSettings,
    given: np.ndarray | None,
    directions: np.ndarray | None,
    tree: WrittenTree,
    values: np.ndarray,
) -> bool:
    """`settle`."""
    weight = tree.weight
    gain = tree.gain
    for node in range(n_nodes - 1, -1, -1):
        child = nodes.first_child[node]
        if child > 0:
            tree.n_rows[node] = tree.n_rows[child] + tree.n_rows[child + 1]
            tree.cuts[node, 0] = nodes.cut_value[node]
            tree.words[node, 1] = pack_link(child, nodes.test[node])
            weight[node] = weight[child] + weight[child + 1]
            gain[node] = max(nodes.gain[node], 0.0) + gain[child] + gain[child + 1]
            share = weight[child] / weight[node]
            values[node] = values[child] * share + values[child + 1] * (1.0 - share)
            continue
        tree.n_rows[node] = nodes.n_rows[node]
        value, h = value_of_leaf(node, sums, settings)
        if given is not None:
            value = given[node]
        values[node] = value
        tree.words[node, 1] = pack_leaf(node, settings.n_features)
        weight[node] = max(h, LEAST_WEIGHT)
        gain[node] = 0.0
    if directions is not None:
        bound_anew(nodes, n_nodes, directions, values)
    is_finite = True
    for node in range(n_nodes):
        gain[node] /= weight[node]
        if nodes.first_child[node] == 0:
            value = min(max(values[node], nodes.lower[node]), nodes.upper[node]) * settings.learning_rate
            if not np.isfinite(value):
                is_finite = False
                value = 0.0
            values[node] = value
            tree.cuts[node, 0] = value
    return is_finite


@door
def settle(
    nodes: BoostNodes,
    n_nodes: int,
    sums: LeafSums,
    settings: LeafSettings,
    given: np.ndarray | None,  # (n_nodes,) float64: values of leaves found elsewhere
    directions: np.ndarray | None,  # (n_features,) int64 where values are not those of the search: monotone constraints
    tree: WrittenTree,  # written
    values: np.ndarray,  # (n_nodes,) float64, written: the shrunken values of leaves
) -> bool:
    """Write the values of the leaves and the arrays of the tree; whether all values are finite."""
    return write_nodes(nodes, n_nodes, sums, settings, given, directions, tree, values)


@door
def add_values(leaf: np.ndarray, values: np.ndarray, lo: int, hi: int, raw: np.ndarray, row: int) -> None:
    """Add the value of each row's leaf to raw[row], rows lo .. hi."""
    for i in range(lo, hi):
        raw[row, i] += values[leaf[i]]


# --- All of it ----------------------------------------------------------------------------------------------


@inlined
def sum_own_rows(
    n_grown: int, buffer: ByteRows, nodes: BoostNodes, gradients: Gradients, end: TreeEnd, scale: PackedUnits
) -> None:
    """Sum the true derivatives of the rows that the tree was grown on by leaf, node by node."""
    ids = buffer.ids
    for node in range(n_grown):
        leaf = end.links.target[node]
        if leaf < 0:
            continue
        sum_g = np.int64(0)
        sum_h = np.int64(0)
        for shard in range(len(nodes.begin)):
            for k in range(np.uint64(nodes.begin[shard, node]), np.uint64(nodes.end[shard, node])):
                g, h = whole_sums(np.uint64(ids[k]), gradients, scale)
                sum_g += g
                sum_h += h
        end.sums.gradient[0, leaf] += sum_g
        end.sums.hessian[0, leaf] += sum_h


@inlined
def count_own_rows(
    n_grown: int, n_nodes: int, buffer: ByteRows, nodes: BoostNodes, gradients: Gradients, end: TreeEnd
) -> None:
    """Count the rows of each leaf as often as they weigh."""
    ids = buffer.ids
    weight = gradients.weight
    for node in range(n_nodes):
        nodes.n_rows[node] = 0
    if n_grown == 1:  # rows have not been moved
        for i in range(np.uint64(len(weight))):
            nodes.n_rows[0] += np.int64(weight[i])
        return
    for node in range(n_grown):
        leaf = end.links.target[node]
        if leaf >= 0:
            for shard in range(len(nodes.begin)):
                for k in range(np.uint64(nodes.begin[shard, node]), np.uint64(nodes.end[shard, node])):
                    nodes.n_rows[leaf] += np.int64(weight[np.uint64(ids[k])])


@inlined
def add_own_values(n_grown: int, row: int, buffer: ByteRows, nodes: BoostNodes, end: TreeEnd) -> None:
    """Add the values of the leaves to the scores of these rows."""
    ids = buffer.ids
    raw = end.raw
    for node in range(n_grown):
        leaf = end.links.target[node]
        if leaf < 0:
            continue
        value = end.values[leaf]
        for shard in range(len(nodes.begin)):
            for k in range(np.uint64(nodes.begin[shard, node]), np.uint64(nodes.end[shard, node])):
                raw[row, np.uint64(ids[k])] += value


@door
def finish_tree(
    table: BoostTable,
    source: ByteRows,
    buffer: ByteRows,
    nodes: BoostNodes,
    gradients: Gradients,
    end: TreeEnd,  # written
    settings: TreeEndSettings,
    tree: WrittenTree,  # written
) -> int:
    """Do all of the above for a tree of Newton's leaves; return its number of nodes, negative: a value is not finite.

    Rows are taken as they stand in the buffer, leaf by leaf: no leaf of a row is written down. While derivatives and
    scores stay in the second-level cache, that takes half the time.
    """
    n_rows = end.raw.shape[1]
    n_grown = settings.n_grown
    is_all = len(end.is_in) == 1
    n_nodes = prune_nodes(nodes, n_grown, settings.is_post, end.links)
    for node in range(n_nodes):
        end.sums.gradient[0, node] = 0
        end.sums.hessian[0, node] = 0
    if n_grown == 1:  # rows have not been moved
        for i in range(n_rows):
            if is_all or end.is_in[i] != 0:
                g, h = whole_sums(np.uint64(i), gradients, settings.scale)
                end.sums.gradient[0, 0] += g
                end.sums.hessian[0, 0] += h
    else:
        sum_own_rows(n_grown, buffer, nodes, gradients, end, settings.scale)
    if settings.weights_are_counts:
        count_own_rows(n_grown, n_nodes, buffer, nodes, gradients, end)
    is_finite = write_nodes(nodes, n_nodes, end.sums, settings.leaves, None, None, tree, end.values)
    if n_grown == 1:
        for i in range(n_rows):
            end.raw[settings.row, i] += end.values[0]
    else:
        add_own_values(n_grown, settings.row, buffer, nodes, end)
        if not is_all:
            for i in range(n_rows):
                if end.is_in[i] == 0:
                    end.raw[settings.row, i] += end.values[leaf_of(np.int64(i), table, source, nodes)]
    return n_nodes if is_finite else -n_nodes
