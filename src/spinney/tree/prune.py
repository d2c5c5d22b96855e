"""Pruning: minimal cost-complexity (Breiman et al. 1984, chapter 3) and reduced error on given rows (Quinlan 1987).

The risk of a node is its share of the weight times its impurity. The weakest link is the inner node t that loses
least by becoming a leaf: alpha(t) = (risk(t) - risk of the leaves below t) / (leaves below t - 1). Cutting weakest
links one after the other gives the nested sequence of best subtrees.

Reduced error asks rows that did not grow the tree. From the bottom up, a node becomes a leaf where its own answer is
no worse on the rows that reach it than what is left of its subtree.
"""

from __future__ import annotations

import heapq
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._types import LEAF, SUBSET, SUM
from spinney.tree.structure import WORD_BITS
from spinney.tree.target import Weights, fix_weights, scale, sum_bits, weigh, weighted_sum

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from spinney.tree.structure import Tree

TIE = 1e-12  # links whose alphas differ by less than this share of the root's risk are cut at once
ROUNDING = 2.0**-50  # of a node's value, as a share of the largest: means of means, at most a few roundings
BLOCK_CELLS = 1 << 22  # nodes x classes that are summed at once: 32 MB


class CutStep(NamedTuple):
    """One step of the sequence: every link with this alpha is cut. Alpha and risk are in units of `node_risk`."""

    alpha: float
    nodes: list[int]  # become leaves
    risk: float  # of the subtree that remains
    n_leaves: int


def cut_sequence(tree: Tree) -> list[CutStep]:
    """The steps from the whole tree (alpha 0, nothing cut) to its root."""
    risk = node_risk(tree)
    below = tree.sum_up(risk)
    n_below = tree.sum_up(tree.is_leaf.astype(np.float64))
    parent = tree.parent
    is_leaf = tree.is_leaf.copy()
    version = np.zeros(tree.n_nodes, np.int64)
    slack = TIE * max(float(risk[0]), np.finfo(float).tiny)

    def alpha_of(node: int) -> float:
        return max(float(risk[node] - below[node]), 0.0) / (n_below[node] - 1.0)

    heap = [(alpha_of(node), node, 0) for node in np.flatnonzero(~is_leaf).tolist()]
    heapq.heapify(heap)
    steps = [CutStep(0.0, [], float(below[0]), int(n_below[0]))]
    while not is_leaf[0]:
        nodes: list[int] = []
        alpha = None
        while heap and (alpha is None or heap[0][0] <= alpha + slack):
            weakest, node, made = heapq.heappop(heap)
            if is_leaf[node] or made != version[node]:
                continue
            alpha = weakest if alpha is None else max(alpha, weakest)
            gained, lost = risk[node] - below[node], n_below[node] - 1.0
            is_leaf[node] = True
            nodes.append(node)
            up = node
            while up >= 0:
                below[up] += gained
                n_below[up] -= lost
                version[up] += 1
                if not is_leaf[up]:
                    heapq.heappush(heap, (alpha_of(up), up, int(version[up])))
                up = int(parent[up])
            drop_below(tree, node, is_leaf)
        assert alpha is not None  # the root is open, so some link is
        steps.append(CutStep(max(alpha, steps[-1].alpha), nodes, float(below[0]), int(n_below[0])))
    return merge_free(steps, slack)


def merge_free(steps: list[CutStep], slack: float) -> list[CutStep]:
    """Count cuts that cost nothing as part of the first step: the smallest tree of the least risk."""
    while len(steps) > 1 and steps[1].alpha <= slack:
        steps[:2] = [CutStep(0.0, steps[0].nodes + steps[1].nodes, steps[1].risk, steps[1].n_leaves)]
    return steps


def drop_below(tree: Tree, node: int, is_leaf: NDArray[np.bool_]) -> None:
    """Mark what hangs below a cut node, so that it is not cut again."""
    first = int(tree.first_child[node])
    stack = list(range(first, first + int(tree.n_branches[node])))
    while stack:
        child = stack.pop()
        if not is_leaf[child]:
            is_leaf[child] = True
            first = int(tree.first_child[child])
            stack.extend(range(first, first + int(tree.n_branches[child])))


def node_risk(tree: Tree) -> NDArray[np.float64]:
    """Share of the weight times impurity, of every node, in units of 2 ** tree.impurity_exponent."""
    return tree.weight / tree.weight[0] * tree.impurity


def to_units(tree: Tree, risk: float) -> float:
    """A risk or alpha as users write it, in units of `node_risk`."""
    return scale(risk, -tree.impurity_exponent)


def from_units(tree: Tree, risk: float) -> float:
    """A risk or alpha in units of `node_risk`, as users read it."""
    return scale(risk, tree.impurity_exponent)


def prune_to_alpha(tree: Tree, alpha: float) -> Tree:
    """The smallest subtree that is best when each leaf costs `alpha`."""
    if alpha <= 0.0:
        return tree
    limit = to_units(tree, alpha)
    nodes = [node for step in cut_sequence(tree) if step.alpha <= limit for node in step.nodes]
    return cut_nodes(tree, nodes)


# --- what cutting and summing share ------------------------------------------------------------------------------


class Tier(NamedTuple):
    """The inner nodes of one depth."""

    nodes: NDArray[np.int64]
    branches: list[tuple[Any, NDArray[np.int64]]]  # per branch: which of `nodes` have it (an index), and its node


def find_tiers(tree: Tree) -> list[Tier]:
    """The inner nodes of every depth, from the root down."""
    tiers = []
    most = int(tree.n_branches.max())
    for level in tree.levels[:-1]:
        nodes = level[~tree.is_leaf[level]]
        first = tree.first_child[nodes].astype(np.int64)
        branches: list[tuple[Any, NDArray[np.int64]]] = [(slice(None), first), (slice(None), first + 1)]
        for branch in range(2, most):
            has = np.flatnonzero(tree.n_branches[nodes] > branch)
            branches.append((has, first[has] + branch))
        tiers.append(Tier(nodes, branches))
    return tiers


def add_branches(tiers: list[Tier], x: NDArray[Any]) -> NDArray[Any]:
    """Write into x, shape (n_nodes, ...), the sum over the branches of every inner node; leaves keep what they hold."""
    for tier in reversed(tiers):
        total = x.take(tier.branches[0][1], axis=0)
        for has, child in tier.branches[1:]:
            total[has] += x.take(child, axis=0)
        x[tier.nodes] = total
    return x


def class_blocks(tree: Tree) -> Iterator[tuple[int, int]]:
    """Ranges of classes whose sums at every node are small enough to be held at once."""
    width = max(1, BLOCK_CELLS // tree.n_nodes)
    for first in range(0, tree.n_classes, width):
        yield first, min(first + width, tree.n_classes)


def block_weights(tree: Tree, tiers: list[Tier], first: int, stop: int) -> NDArray[np.float64]:
    """Columns first .. stop of `tree.class_weights()`."""
    weights = np.zeros((tree.n_nodes, stop - first))
    leaves = np.flatnonzero(tree.is_leaf & ~tree.is_empty)
    codes = tree.threshold[leaves].astype(np.int64)
    pure, mixed = (codes >= first) & (codes < stop), codes < 0
    weights[leaves[pure], codes[pure] - first] = tree.weight[leaves[pure]]
    weights[leaves[mixed]] = tree.distributions[-1 - codes[mixed], first:stop]
    return add_branches(tiers, weights)


# --- cutting -----------------------------------------------------------------------------------------------------


class Cut(NamedTuple):
    """What is left of a tree."""

    old: NDArray[np.int64]  # (n_left,) index of each node that is left in the whole tree
    is_leaf: NDArray[np.bool_]  # (n_left,)
    place: NDArray[np.int64]  # (n_nodes,) which node that is left holds the rows of a node of the whole tree


def plan_cut(tree: Tree, tiers: list[Tier], is_cut: NDArray[np.bool_]) -> Cut:
    """What is left when the nodes of a mask become leaves."""
    owner = np.arange(tree.n_nodes)
    becomes_leaf = tree.is_leaf | is_cut
    is_gone = np.zeros(tree.n_nodes, np.bool_)
    for tier in tiers:
        is_closed = is_gone[tier.nodes] | becomes_leaf[tier.nodes]
        if not is_closed.any():
            continue
        holder = owner[tier.nodes]
        for has, child in tier.branches:
            is_gone[child] = is_closed[has]
            owner[child] = np.where(is_closed[has], holder[has], child)
    old = np.flatnonzero(~is_gone)
    new_index = np.cumsum(~is_gone) - 1
    return Cut(old, becomes_leaf[old], new_index[owner])


def keep_tests(tree: Tree, cut: Cut, values: NDArray[np.float64], **fields: Any) -> Tree:
    """The tests that are left, with these values (or classes) of the leaves, and other fields of the new tree."""
    threshold = tree.threshold[cut.old]
    threshold[cut.is_leaf] = values
    subsets, threshold = pack_subsets(tree, cut, threshold)
    return replace(
        tree,
        test=np.where(cut.is_leaf, LEAF, tree.test[cut.old]).astype(np.uint32),
        first_child=np.where(cut.is_leaf, 0, cut.place[tree.first_child[cut.old]]).astype(np.int32),
        threshold=threshold,
        subsets=subsets,
        **fields,
    )


def cut_nodes(tree: Tree, nodes: list[int] | NDArray[np.int64]) -> Tree:
    """A new tree in which these nodes are leaves and what hung below them is gone."""
    if len(nodes) == 0:
        return tree
    is_cut = np.zeros(tree.n_nodes, np.bool_)
    is_cut[nodes] = True
    return cut_mask(tree, find_tiers(tree), is_cut)


def cut_mask(
    tree: Tree, tiers: list[Tier], is_cut: NDArray[np.bool_], class_weights: NDArray[np.float64] | None = None
) -> Tree:
    """As `cut_nodes` with a mask of nodes; `class_weights` (n_nodes, n_classes) where they are known already."""
    cut = plan_cut(tree, tiers, is_cut)
    leaves = cut.old[cut.is_leaf]
    distributions = tree.distributions
    if tree.n_classes:
        leaves = np.where(tree.is_empty[leaves], tree.parent[leaves], leaves)  # an empty leaf answers as its parent
    if not tree.n_classes:
        values = tree.values()[leaves]
    elif class_weights is not None:
        values, distributions = pack_classes(class_weights[leaves])
    else:
        values, distributions = pack_classes(leaf_weights(tree, tiers, leaves))
    return keep_tests(
        tree,
        cut,
        values,
        n_rows=tree.n_rows[cut.old],
        weight=tree.weight[cut.old],
        impurity=tree.impurity[cut.old],
        distributions=distributions,
    )


def leaf_weights(tree: Tree, tiers: list[Tier], leaves: NDArray[np.int64]) -> NDArray[np.float64]:
    """Weight per class of these nodes, shape (len(leaves), n_classes).

    The sums are those that `tree.class_weights` makes, to the last bit: the heaviest class of a node stays what it was.
    """
    weights = np.empty((len(leaves), tree.n_classes))
    for first, stop in class_blocks(tree):
        weights[:, first:stop] = block_weights(tree, tiers, first, stop)[leaves]
    return weights


def pack_classes(distributions: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The class of each pure leaf, or -1 - the row of each mixed one in the rows that are kept, and those rows."""
    is_present = distributions > 0.0
    is_mixed = np.count_nonzero(is_present, axis=1) > 1
    leaf = np.where(is_mixed, -np.cumsum(is_mixed), is_present.argmax(axis=1))
    return leaf.astype(np.float64), distributions[is_mixed]


def pack_subsets(
    tree: Tree, cut: Cut, threshold: NDArray[np.float64]
) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    """Keep the bitsets of the subset tests that remain, end to end; return them and the tests' new arguments."""
    tests = np.flatnonzero((tree.kind[cut.old] == SUBSET) & ~cut.is_leaf)
    if len(tests) == 0:
        return np.zeros(0, np.uint64), threshold
    n_words = -(-tree.n_levels[tree.feature[cut.old[tests]]].astype(np.int64) // WORD_BITS)
    begin = np.cumsum(n_words) - n_words
    words = np.arange(n_words.sum()) + np.repeat(threshold[tests].astype(np.int64) - begin, n_words)
    threshold[tests] = begin
    return tree.subsets[words], threshold


# --- reduced error -----------------------------------------------------------------------------------------------


class GivenRows(NamedTuple):
    """Rows that need not be those that grew the tree, each of a positive weight."""

    leaf: NDArray[np.int64]  # (n_rows,)
    truth: NDArray[Any]  # (n_rows,) class codes int64, or targets float64
    weights: Weights


def take_rows(
    tree: Tree, leaf: NDArray[Any], truth: NDArray[Any], weight: NDArray[np.float64] | None = None
) -> GivenRows:
    """Rows as the functions of given rows take them; those without weight are left out."""
    leaf = np.asarray(leaf).astype(np.int64)
    truth = np.asarray(truth).astype(np.int64 if tree.n_classes else np.float64)
    for name, x in (("truth", truth), ("weight", weight)):
        if x is not None and x.shape != leaf.shape:
            raise ValueError(f"{name} has shape {x.shape}, expected one entry per row: {leaf.shape}")
    require_rows((leaf >= 0) & (leaf < tree.n_nodes), f"leaf is not one of the {tree.n_nodes} nodes of the tree")
    require_rows(tree.is_leaf[leaf], "leaf is an inner node of the tree; route the rows through this very tree")
    if tree.n_classes:
        require_rows((truth >= 0) & (truth < tree.n_classes), f"truth is not one of the {tree.n_classes} class codes")
    if weight is not None and not bool(np.all(weight > 0.0)):
        require_rows(weight >= 0.0, "weight is negative or missing")
        keep = weight > 0.0
        leaf, truth, weight = leaf[keep], truth[keep], weight[keep]
    return GivenRows(leaf, truth, fix_weights(weight, len(leaf)))


def require_rows(holds: NDArray[np.bool_], fault: str) -> None:
    """Raise for the first row where `holds` is false."""
    if not holds.all():
        raise ValueError(f"row {int(np.argmin(holds))}: {fault}")


def prune_on_rows(
    tree: Tree,
    leaf: NDArray[Any],
    truth: NDArray[Any],
    weight: NDArray[np.float64] | None = None,
    *,
    unseen: str = "cut",
) -> Tree:
    """Prune by the error on given rows: out-of-bag rows, or a validation set (reduced-error pruning, Quinlan 1987).

    From the bottom up, a node becomes a leaf where its own prediction, the heaviest class or the mean of the rows that
    grew it, makes no larger error on the given rows than what is left of its subtree: the weight of the rows whose
    class is missed, or the sum of squared errors. Equal errors cut.

    Parameters
    ----------
    tree : Tree
    leaf : int (n_rows,)
        Leaf of the tree that each given row ends in.
    truth : (n_rows,)
        Class codes, or targets.
    weight : float64 (n_rows,), optional
        Weights of the given rows; a row without weight is not there.
    unseen : {"cut", "keep"}
        A node that no given row reaches makes no error either way: cut it as any tie, or keep what is below it unless
        a node above is cut. Without any row the tree becomes its root, or stays.

    Returns
    -------
    Tree
        The same object where nothing is cut.
    """
    if unseen not in {"cut", "keep"}:
        raise ValueError(f"unseen={unseen!r}: choose 'cut' or 'keep'")
    rows = take_rows(tree, leaf, truth, weight)
    tiers = find_tiers(tree)
    reach = add_rows(tree, tiers, rows.leaf, rows.weights.values)
    class_weights = None
    if tree.n_classes:
        top, class_weights = heaviest_classes(tree, tiers)
        links = class_links(tree, tiers, rows, reach, top)
    else:
        links = value_links(tree, tiers, rows, reach)
    worth = np.zeros(tree.n_nodes, SUM if tree.n_classes else np.float64)  # error that the subtree below saves
    is_cut = np.zeros(tree.n_nodes, np.bool_)
    for tier, (saved, slack) in zip(reversed(tiers), reversed(links), strict=True):
        for has, child in tier.branches:
            saved[has] += worth[child]
            if not tree.n_classes:
                slack[has] += TIE * worth[child]
        cut = saved <= slack
        if unseen == "keep":
            cut &= reach[tier.nodes] > 0
        worth[tier.nodes] = np.where(cut, 0, saved)
        is_cut[tier.nodes] = cut
    return cut_mask(tree, tiers, is_cut, class_weights) if is_cut.any() else tree


def add_rows(tree: Tree, tiers: list[Tier], leaf: NDArray[np.int64], x: NDArray[np.int64] | int) -> NDArray[np.int64]:
    """Sum over the rows that reach each node, shape (n_nodes,), of x: one integer per row, or one for all."""
    total = np.zeros(tree.n_nodes, SUM)
    np.add.at(total, leaf, x)
    return add_branches(tiers, total)


def heaviest_classes(tree: Tree, tiers: list[Tier]) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """First of the heaviest classes of each node, and the class weights they come from if held all at once."""
    top = np.zeros(tree.n_nodes, np.int64)
    heaviest = np.zeros(tree.n_nodes)
    whole = None
    for first, stop in class_blocks(tree):
        weights = block_weights(tree, tiers, first, stop)
        best = weights.argmax(axis=1)
        largest = weights[np.arange(tree.n_nodes), best]
        is_heavier = largest > heaviest
        top[is_heavier], heaviest[is_heavier] = best[is_heavier] + first, largest[is_heavier]
        whole = weights if stop - first == tree.n_classes else None
    top[tree.is_empty] = tree.leaf_class[tree.is_empty]
    return top, whole


class Links(NamedTuple):
    """What each test of a tier saves if its branches are leaves, and how much of that may be rounding."""

    saved: NDArray[Any]  # error of the node as a leaf, less the errors of its branches as leaves
    slack: NDArray[Any]


def class_links(
    tree: Tree, tiers: list[Tier], rows: GivenRows, reach: NDArray[np.int64], top: NDArray[np.int64]
) -> list[Links]:
    """Links of every tier in the weight of missed rows, fixed point: nothing is rounded."""
    error = reach.copy()
    for first, stop in class_blocks(tree):
        right = add_classes(tree, tiers, rows, first, stop)
        nodes = np.flatnonzero((top >= first) & (top < stop))
        error[nodes] -= right[nodes, top[nodes] - first]
    links = []
    for tier in tiers:
        saved = error[tier.nodes]
        for has, child in tier.branches:
            saved[has] -= error[child]
        links.append(Links(saved, np.zeros_like(saved)))
    return links


def add_classes(tree: Tree, tiers: list[Tier], rows: GivenRows, first: int, stop: int) -> NDArray[np.int64]:
    """Fixed-point weight of the given rows of classes first .. stop at every node, shape (n_nodes, stop - first)."""
    weights = np.zeros((tree.n_nodes, stop - first), SUM)
    cell = rows.leaf * (stop - first) + (rows.truth - first)
    value: Any = rows.weights.values
    if stop - first < tree.n_classes:
        is_in = (rows.truth >= first) & (rows.truth < stop)
        cell = cell[is_in]
        value = value if rows.weights.is_unit else value[is_in]
    np.add.at(weights.reshape(-1), cell, value)
    return add_branches(tiers, weights)


def value_links(tree: Tree, tiers: list[Tier], rows: GivenRows, reach: NDArray[np.int64]) -> list[Links]:
    """Links of every tier in squared errors.

    Rows of weight W and target sum S lose by the value v: v (v W - 2 S), and a term that no value changes. So a branch
    of value b saves (v - b) ((v + b) W - 2 S) against its parent's v: no squares of targets, and equal values save 0.
    """
    value, centred, blur = centre_values(tree.values(), rows.truth)
    bits = sum_bits(weighted_sum(np.abs(centred), rows.weights))
    total = add_rows(tree, tiers, rows.leaf, weigh(centred, bits, rows.weights))
    target = np.ldexp(total.astype(np.float64), -bits)
    weight = np.ldexp(reach.astype(np.float64), -rows.weights.bits)
    links = []
    for tier in tiers:
        saved, slack = np.zeros(len(tier.nodes)), np.zeros(len(tier.nodes))
        for has, child in tier.branches:
            own = value[tier.nodes[has]]
            slope = (own + value[child]) * weight[child] - 2.0 * target[child]
            part = (own - value[child]) * slope
            saved[has] += part
            slack[has] += TIE * np.abs(part) + blur * np.abs(slope)
        links.append(Links(saved, slack))
    return links


def centre_values(
    values: NDArray[np.float64], truth: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Values and targets less the root's value, scaled into [-1, 1], and the rounding of a value in these units."""
    exponent = math.frexp(max(float(np.abs(x).max(initial=0.0)) for x in (values, truth)))[1]
    values, truth = np.ldexp(values, -exponent), np.ldexp(truth, -exponent)
    values, truth = values - values[0], truth - values[0]
    spread = math.frexp(max(float(np.abs(x).max(initial=0.0)) for x in (values, truth)))[1]
    return np.ldexp(values, -spread), np.ldexp(truth, -spread), math.ldexp(ROUNDING, -spread)
