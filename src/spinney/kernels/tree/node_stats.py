"""Sum up a grown tree: weight, impurity and value of every node, and the bytes that prediction reads.

A forward walk over the nodes settles the leaves from their rows; a backward walk (children stand behind their parent)
settles the inner nodes from their children. Sums over rows are integers, so the order of rows inside a leaf does not
show; floats are combined in the order of the branches.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined, kernel
from spinney._types import MOST_BRANCHES, POISSON, SDR, TARGET, WEIGHT

from ..common.criteria import impurity_of_classes, impurity_of_two, pure_score
from ..common.leaf_means import join_deviances, join_values, mean_deviance, settle_value_leaf
from ..common.node_layout import missing_of, pack_leaf, pack_link
from ..common.structs import Nodes, NodeSide, NodeSums, RowRange, StatUnits, Targets, TreeArrays
from ..common.sums import sum_weight
from .medians import fill_medians
from .scan_outputs import fill_outputs


@inlined
def count_ones(addends: np.ndarray, lo: int, hi: int) -> int:
    """Weight of class 1 among rows lo .. hi: two classes go as class times weight."""
    total = np.int64(0)
    for i in range(np.uint64(lo), np.uint64(hi)):
        if addends[TARGET, i] != 0:
            total += np.int64(1) if len(addends) == 1 else addends[WEIGHT, i]
    return total


@inlined
def is_mixed(addends: np.ndarray, lo: int, hi: int) -> bool:
    """Whether rows lo .. hi have more than one class."""
    first = addends[TARGET, lo]
    for i in range(np.uint64(lo + 1), np.uint64(hi)):
        if addends[TARGET, i] != first:
            return True
    return False


@kernel
def sum_classes(addends: np.ndarray, lo: int, hi: int, class_sums: np.ndarray) -> None:
    """Write the weight of every class among rows lo .. hi."""
    for k in range(len(class_sums)):
        class_sums[k] = 0
    for i in range(np.uint64(lo), np.uint64(hi)):
        class_sums[addends[TARGET, i]] += np.int64(1) if len(addends) == 1 else addends[WEIGHT, i]


@inlined
def fill_value_leaf(
    node: int,
    leaf: RowRange,
    targets: Targets,
    nodes: Nodes,
    units: StatUnits,
    scale: float,
    means: np.ndarray | None,
    out: TreeArrays,
) -> float:
    """Write value, mean and impurity of a leaf of numbers; return the scale of sums, see `settle_value_leaf`."""
    if means is None:
        return scale
    centre = units.values.centre
    value, scale = settle_value_leaf(targets, leaf, node, units.values, scale, means, out.impurity)
    if units.criterion == POISSON:
        out.impurity[node] = mean_deviance(targets, leaf, units.values)
    if units.has_monotone:
        value = max(value, nodes.lower[node] * units.bound_unit + centre)
        value = min(value, nodes.upper[node] * units.bound_unit + centre)
    out.threshold[node] = value * units.value_unit * units.value_unit_2
    return scale


@inlined
def fill_class_leaf(
    node: int,
    leaf: RowRange,
    n_mixed: int,
    addends: np.ndarray,
    units: StatUnits,
    sums: NodeSums,
    class_sums: np.ndarray | None,
    out: TreeArrays,
) -> int:
    """Write the class of a leaf, or its class weights if it is mixed; return the number of mixed leaves so far."""
    if class_sums is None:
        return n_mixed
    lo, hi = leaf.lo, leaf.hi
    distributions, threshold = out.distributions, out.threshold
    if len(class_sums) <= 2:
        ones = count_ones(addends, lo, hi)
        sums.ones[node] = ones
        threshold[node] = 1.0 if ones > 0 else 0.0
        if ones > 0 and ones < leaf.weight:
            if n_mixed < len(distributions):
                distributions[n_mixed, 0] = np.float64(leaf.weight - ones) * units.weight_unit
                distributions[n_mixed, 1] = np.float64(ones) * units.weight_unit
            n_mixed += 1
            threshold[node] = -np.float64(n_mixed)
        return n_mixed
    out.impurity[node] = 0.0
    threshold[node] = np.float64(addends[TARGET, lo])
    if is_mixed(addends, lo, hi):
        if n_mixed < len(distributions):
            sum_classes(addends, lo, hi, class_sums)
            out.impurity[node] = impurity_of_classes(units.criterion, class_sums, leaf.weight)
            for k in range(len(class_sums)):
                distributions[n_mixed, k] = np.float64(class_sums[k]) * units.weight_unit
        n_mixed += 1
        threshold[node] = -np.float64(n_mixed)
    return n_mixed


@inlined
def join_classes(
    node: int,
    child: int,
    end: int,
    score: float,
    units: StatUnits,
    sums: NodeSums,
    class_sums: np.ndarray | None,
    impurity: np.ndarray,
) -> None:
    """Weight of class 1 of an inner node from its branches; for three classes or more its impurity, from its score."""
    if class_sums is None:
        return
    if len(class_sums) <= 2:
        ones = np.int64(0)
        for b in range(child, end):
            ones += sums.ones[b]
        sums.ones[node] = ones
    else:
        share = score / np.float64(sums.weight[node])
        impurity[node] = max(pure_score(units.criterion) - share * units.score_unit, 0.0)


@inlined
def judge_two_classes(
    node: int, criterion: int, sums: NodeSums, class_sums: np.ndarray | None, impurity: np.ndarray
) -> None:
    """Impurity of any node of a tree of two classes."""
    if class_sums is None:
        return
    if len(class_sums) <= 2:
        impurity[node] = impurity_of_two(criterion, np.float64(sums.ones[node]) / np.float64(sums.weight[node]))


@door
def fill_tree(
    targets: Targets,
    nodes: Nodes,
    units: StatUnits,
    sums: NodeSums,
    means: np.ndarray | None,  # (n_nodes,) float64 scratch; None: classes
    class_sums: np.ndarray | None,  # (n_classes,) int64 scratch; None: regression
    out: TreeArrays,
    side: NodeSide,
) -> int:
    """Fill the arrays of a tree; return its mixed leaves. Where they exceed the room, call again with more of it."""
    addends = targets.addends
    n_nodes = len(out.test)
    n_mixed = np.int64(0)
    scale = units.scale
    for node in range(n_nodes):
        out.test[node] = nodes.test[node]
        out.first_child[node] = nodes.first_child[node]
        out.n_rows[node] = nodes.n_rows[node]
        if nodes.first_child[node] != 0:
            out.threshold[node] = nodes.cut_value[node]
            continue
        lo = nodes.begin[node]
        hi = lo + nodes.n_rows[node]
        leaf = RowRange(lo, hi, sum_weight(addends, lo, hi))
        sums.weight[node] = leaf.weight
        scale = fill_value_leaf(node, leaf, targets, nodes, units, scale, means, out)
        n_mixed = fill_class_leaf(node, leaf, n_mixed, addends, units, sums, class_sums, out)
    for node in range(n_nodes - 1, -1, -1):
        child = nodes.first_child[node]
        out.cuts[node, 0] = out.threshold[node]
        if child == 0:
            out.links[node, 1] = pack_leaf(node, units.n_features)
        else:
            out.links[node, 1] = pack_link(child, nodes.test[node])
            has_three = missing_of(nodes.test[node]) == MOST_BRANCHES - 1
            end = child + (MOST_BRANCHES if has_three else MOST_BRANCHES - 1)
            total = np.int64(0)
            for b in range(child, end):
                total += sums.weight[b]
            sums.weight[node] = total
            if units.criterion == POISSON:
                join_deviances(node, child, end, sums.weight, means, out.impurity)
            else:
                join_values(node, child, end, sums.weight, means, out.impurity)
            join_classes(node, child, end, nodes.score[node], units, sums, class_sums, out.impurity)
        out.weight[node] = np.float64(sums.weight[node]) * units.weight_unit
        judge_two_classes(node, units.criterion, sums, class_sums, out.impurity)
    if units.criterion == SDR:
        for node in range(n_nodes):
            out.impurity[node] = np.sqrt(out.impurity[node])
    fill_medians(targets, nodes, units, sums.weight, out, side.medians)
    fill_outputs(targets, nodes, units, sums.weight, out, side.outputs)
    return n_mixed
