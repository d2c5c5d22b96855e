"""Minimal cost-complexity pruning (Breiman et al. 1984, chapter 3).

The risk of a node is its share of the weight times its impurity. The weakest link is the inner node t that loses
least by becoming a leaf: alpha(t) = (risk(t) - risk of the leaves below t) / (leaves below t - 1). Cutting weakest
links one after the other gives the nested sequence of best subtrees.
"""

from __future__ import annotations

import heapq
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spinney._types import LEAF, SUBSET
from spinney.tree.structure import WORD_BITS
from spinney.tree.target import scale

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.tree.structure import Tree

TIE = 1e-12  # links whose alphas differ by less than this share of the root's risk are cut at once


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


def cut_nodes(tree: Tree, nodes: list[int]) -> Tree:
    """A new tree in which these nodes are leaves and what hung below them is gone."""
    if not nodes:
        return tree
    becomes_leaf = tree.is_leaf.copy()
    becomes_leaf[nodes] = True
    kept = np.zeros(tree.n_nodes, np.bool_)
    kept[0] = True
    for level in tree.levels[1:]:
        parent = tree.parent[level]
        kept[level] = kept[parent] & ~becomes_leaf[parent]
    old = np.flatnonzero(kept)
    new_index = np.cumsum(kept) - 1
    is_leaf = becomes_leaf[old]
    threshold = tree.threshold[old].copy()
    distributions = tree.distributions
    if tree.n_classes:
        distributions, threshold[is_leaf] = cut_classes(tree, old[is_leaf], becomes_leaf)
    else:
        threshold[is_leaf] = tree.values()[old[is_leaf]]
    subsets, threshold = pack_subsets(tree, old, is_leaf, threshold)
    return replace(
        tree,
        test=np.where(is_leaf, LEAF, tree.test[old]).astype(np.uint32),
        first_child=np.where(is_leaf, 0, new_index[tree.first_child[old]]).astype(np.int32),
        threshold=threshold,
        subsets=subsets,
        n_rows=tree.n_rows[old],
        weight=tree.weight[old],
        impurity=tree.impurity[old],
        distributions=distributions,
    )


def cut_classes(
    tree: Tree, leaves: NDArray[np.int64], becomes_leaf: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Class weights of the mixed leaves of a cut tree, and each leaf's class or row among them."""
    owner = np.arange(tree.n_nodes)  # the leaf of the cut tree that a node ends in
    is_below = np.zeros(tree.n_nodes, np.bool_)
    for level in tree.levels[1:]:
        parent = tree.parent[level]
        is_below[level] = is_below[parent] | becomes_leaf[parent]
        owner[level] = np.where(is_below[level], owner[parent], level)
    old_leaves = np.flatnonzero(tree.is_leaf)
    codes = tree.threshold[old_leaves].astype(np.int64)
    new = np.searchsorted(leaves, owner[old_leaves])
    low = np.full(len(leaves), tree.n_classes, np.int64)
    high = np.full(len(leaves), -1, np.int64)
    np.minimum.at(low, new[codes >= 0], codes[codes >= 0])
    np.maximum.at(high, new[codes >= 0], codes[codes >= 0])
    is_mixed = low != high
    is_mixed[new[codes < 0]] = True
    row = np.cumsum(is_mixed) - 1
    distributions = np.zeros((int(is_mixed.sum()), tree.n_classes))
    pure = (codes >= 0) & is_mixed[new]
    np.add.at(distributions, (row[new[pure]], codes[pure]), tree.weight[old_leaves[pure]])
    np.add.at(distributions, row[new[codes < 0]], tree.distributions[-1 - codes[codes < 0]])
    return distributions, np.where(is_mixed, -1.0 - row, low)


def pack_subsets(
    tree: Tree, old: NDArray[np.int64], is_leaf: NDArray[np.bool_], threshold: NDArray[np.float64]
) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    """Keep the bitsets of the subset tests that remain, end to end; return them and the tests' new arguments."""
    parts = [np.zeros(0, np.uint64)]
    at = 0
    for k in np.flatnonzero((tree.kind[old] == SUBSET) & ~is_leaf):
        n_words = -(-int(tree.n_levels[tree.feature[old[k]]]) // WORD_BITS)
        first = int(threshold[k])
        parts.append(tree.subsets[first : first + n_words])
        threshold[k] = at
        at += n_words
    return np.concatenate(parts), threshold
