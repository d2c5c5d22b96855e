"""Pruning by the statistics of the nodes alone: every function takes a tree and returns a new one.

Minimal cost-complexity (Breiman et al. 1984, chapter 3): the weakest link is the inner node t that loses least by
becoming a leaf, `alpha(t) = (risk(t) - risk of the leaves below t) / (leaves below t - 1)`. Cutting weakest links one
after the other gives the nested sequence of best subtrees. The risk of a node is its share of the weight times its
impurity (as scikit-learn has it), or times its error (as rpart has it: `cp = alpha / risk of the root`).

The others: splits of little gain, leaves that agree, and nodes chosen by hand. Pruning on given rows is in
`reduced_error`, the pessimistic one of C4.5 in `pessimistic`.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spinney.reading.several_outputs import part_shares, refuse_outputs
from spinney.table.fixed_point import scale
from spinney.tree.subtree import Tier, cut_mask, cut_nodes, find_tiers, heaviest_classes

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from spinney.tree.structure import Tree

TIE = 1e-12  # links whose alphas differ by less than this share of the root's risk are cut at once
RISKS = ("impurity", "error", "squared")


# --- minimal cost-complexity -------------------------------------------------------------------------------------


class CutStep(NamedTuple):
    """One step of the sequence: every link with this alpha is cut. Alpha and risk are in units of `node_risk`."""

    alpha: float
    nodes: list[int]  # become leaves
    risk: float  # of the subtree that remains
    n_leaves: int


class WeakestLink(NamedTuple):
    """An inner node that becomes a leaf before any node above it; the weakest sorts last."""

    minus_alpha: float
    node: int
    risk: float  # that it adds
    n_leaves: int  # that it takes away


def cut_sequence(tree: Tree, risk: str = "impurity") -> list[CutStep]:
    """The steps from the whole tree (alpha 0, nothing cut) to its root.

    Parameters
    ----------
    tree : Tree
    risk : {"impurity", "error", "squared"}
        As in `node_risk`.
    """
    of_node = node_risk(tree, risk)
    slack = TIE * max(float(of_node[0]), np.finfo(float).tiny)
    left, n_leaves = float(of_node[tree.is_leaf].sum()), tree.n_leaves
    steps = [CutStep(0.0, [], left, n_leaves)]
    alpha, nodes = 0.0, []
    links = sorted(find_links(tree, of_node), reverse=True)
    for at, link in enumerate(links):
        alpha = max(alpha, -link.minus_alpha)
        nodes.append(link.node)
        left += link.risk
        n_leaves -= link.n_leaves
        if at + 1 == len(links) or -links[at + 1].minus_alpha > alpha + slack:
            steps.append(CutStep(alpha, nodes, left, n_leaves))
            nodes = []
    return merge_free(steps, slack)


def find_links(tree: Tree, risk: NDArray[np.float64]) -> list[WeakestLink]:
    """The links that are cut, of all inner nodes.

    From the bottom up. A node is first held against its branches as leaves, all links below being cut; where one of
    them is stronger than the node itself, the node falls before it: that link is never cut, and what it would have cut
    still stands when the node falls. So a link is met twice, however deep the tree.
    """
    risks = risk.tolist()
    first, n_branches = tree.first_child.tolist(), tree.n_branches.tolist()
    below: dict[int, list[WeakestLink]] = {}  # of every node on the way: its links, the strongest first
    for node in reversed(np.flatnonzero(~tree.is_leaf).tolist()):
        left, n_leaves = 0.0, n_branches[node]
        links: list[WeakestLink] = []
        for child in range(first[node], first[node] + n_leaves):
            left += risks[child]
            if child in below:
                links = join(links, below.pop(child))
        alpha = max(risks[node] - left, 0.0) / (n_leaves - 1)
        while links and -links[0].minus_alpha > alpha:
            link = heapq.heappop(links)
            left -= link.risk
            n_leaves += link.n_leaves
            alpha = max(risks[node] - left, 0.0) / (n_leaves - 1)
        heapq.heappush(links, WeakestLink(-alpha, node, risks[node] - left, n_leaves - 1))
        below[node] = links
    return below.get(0, [])


def join(a: list[WeakestLink], b: list[WeakestLink]) -> list[WeakestLink]:
    """One heap of two; the larger one takes the links of the other."""
    whole, other = (a, b) if len(a) > len(b) else (b, a)
    for link in other:
        heapq.heappush(whole, link)
    return whole


def merge_free(steps: list[CutStep], slack: float) -> list[CutStep]:
    """Count cuts that cost nothing as part of the first step: the smallest tree of the least risk."""
    while len(steps) > 1 and steps[1].alpha <= slack:
        steps[:2] = [CutStep(0.0, steps[0].nodes + steps[1].nodes, steps[1].risk, steps[1].n_leaves)]
    return steps


def node_risk(tree: Tree, risk: str = "impurity") -> NDArray[np.float64]:
    """Share of the weight times impurity or error, of every node, in units of 2 ** `risk_exponent`.

    Parameters
    ----------
    tree : Tree
    risk : {"impurity", "error", "squared"}
        The impurity; or the error as a leaf, which is the share of its weight that is not of the heaviest class (of
        several outputs the mean of these), or the variance. "squared" is "error" for a tree whose impurity is the
        standard deviation.
    """
    if risk not in RISKS:
        raise ValueError(f"risk={risk!r}: choose one of {', '.join(map(repr, RISKS))}")
    share = tree.weight / tree.weight[0]
    if risk == "impurity":
        return share * tree.impurity
    if tree.n_classes:
        heaviest = heaviest_classes(tree, find_tiers(tree))[1]
        return np.maximum(tree.weight - heaviest, 0.0) / tree.weight[0]
    if tree.widths is not None:
        missed = [1.0 - shares.max(axis=1) for shares in part_shares(tree.values(), tree.widths)]
        return np.asarray(share * np.maximum(np.mean(missed, axis=0), 0.0))
    return share * (tree.impurity**2 if risk == "squared" else tree.impurity)


def risk_exponent(tree: Tree, risk: str = "impurity") -> int:
    """Power of two of the unit that `node_risk` counts in."""
    if risk == "squared":
        return 2 * tree.impurity_exponent
    return 0 if tree.n_classes and risk == "error" else tree.impurity_exponent


def to_units(tree: Tree, alpha: float, risk: str = "impurity") -> float:
    """A risk or alpha as users write it, in units of `node_risk`."""
    return scale(alpha, -risk_exponent(tree, risk))


def from_units(tree: Tree, alpha: float, risk: str = "impurity") -> float:
    """A risk or alpha in units of `node_risk`, as users read it."""
    return scale(alpha, risk_exponent(tree, risk))


def prune_to_alpha(tree: Tree, alpha: float, risk: str = "impurity") -> Tree:
    """The smallest subtree that is best when each leaf costs `alpha`; risk as in `node_risk`."""
    if alpha <= 0.0:
        return tree
    limit = to_units(tree, alpha, risk)
    nodes = [node for step in cut_sequence(tree, risk) if step.alpha <= limit for node in step.nodes]
    return cut_nodes(tree, nodes)


# --- splits of little gain, leaves that agree, nodes chosen by hand ----------------------------------------------


def prune_by_gain(tree: Tree, bound: float) -> Tree:
    """Take back splits that gain less than a bound, from the bottom up.

    A test whose branches are all leaves is dropped if its gain is below the bound; then its parent is looked at. A test
    of little gain with a better one below it stays: this is what growing with the same bound would have missed.

    Parameters
    ----------
    tree : Tree
    bound : float
        On the impurity of the node less that of its branches, each weighted by its share of all rows: the gain that
        `min_impurity_decrease` bounds.

    Returns
    -------
    Tree
        The same object where nothing is cut.
    """
    limit = to_units(tree, bound) * (1.0 - TIE)
    risk = node_risk(tree)

    def is_weak(tier: Tier) -> NDArray[np.bool_]:
        gain = risk[tier.nodes]
        for has, child in tier.branches:
            gain[has] -= risk[child]
        gain[gain <= TIE * risk[0]] = 0.0  # but for roundings
        return gain < limit

    tiers = find_tiers(tree)
    is_cut = cut_upwards(tree, tiers, is_weak)
    return cut_mask(tree, tiers, is_cut) if is_cut.any() else tree


def merge_leaves(tree: Tree) -> Tree:
    """Merge leaves that agree: a test all of whose branches predict the same is dropped, from the bottom up.

    The same is the class that is predicted, or exactly the same value. Shares of classes change, predictions do not,
    but for a row that takes several branches: its class is decided by their shares. Leaves with linear models agree
    with none.

    Returns
    -------
    Tree
        The same object where nothing is cut.
    """
    refuse_outputs(tree, "merging leaves that agree")
    tiers = find_tiers(tree)
    weights, is_empty = None, tree.is_empty
    if tree.n_classes:
        top, _, weights = heaviest_classes(tree, tiers)
        prediction = top.astype(np.float64)
    else:
        prediction = np.where(tree.is_leaf, tree.threshold, 0.0)
        if tree.linear is not None:
            prediction[np.diff(tree.linear.first) > 0] = np.nan  # equal to nothing

    def is_agreed(tier: Tier) -> NDArray[np.bool_]:
        first = np.full(len(tier.nodes), np.nan)  # of the first branch that has rows: an empty one follows its parent
        agreed = np.ones(len(tier.nodes), np.bool_)
        has_rows = np.zeros(len(tier.nodes), np.bool_)
        for has, child in tier.branches:
            first[has] = np.where(has_rows[has] | is_empty[child], first[has], prediction[child])
            has_rows[has] |= ~is_empty[child]
            agreed[has] &= (prediction[child] == first[has]) | is_empty[child]
        prediction[tier.nodes] = np.where(agreed, first, prediction[tier.nodes])
        return agreed

    is_cut = cut_upwards(tree, tiers, is_agreed)
    if not is_cut.any():
        return tree
    return cut_mask(tree, tiers, is_cut, weights, None if tree.n_classes else prediction)


def cut_upwards(tree: Tree, tiers: list[Tier], is_wanted: Callable[[Tier], NDArray[np.bool_]]) -> NDArray[np.bool_]:
    """Which nodes become leaves: those marked by `is_wanted(tier)` whose branches are all leaves by then."""
    is_closed = tree.is_leaf.copy()
    for tier in reversed(tiers):
        closed = is_wanted(tier)
        for has, child in tier.branches:
            closed[has] &= is_closed[child]
        is_closed[tier.nodes] = closed
    return is_closed & ~tree.is_leaf


def snip(tree: Tree, node: int | list[int]) -> Tree:
    """Make nodes chosen by hand leaves, and remove what is below them.

    Parameters
    ----------
    tree : Tree
    node : int or list of int
        Indices among the nodes of the tree, as `apply` and `to_text(numbers=True)` count them; a leaf stays one.
    """
    nodes = np.atleast_1d(np.asarray(node))
    if nodes.ndim != 1 or nodes.dtype.kind not in "iu":
        raise TypeError(f"node must be an index of a node, or a list of them, got {node!r}")
    is_beyond = (nodes < 0) | (nodes >= tree.n_nodes)
    if is_beyond.any():
        raise ValueError(f"node {int(nodes[is_beyond][0])}: the tree has the nodes 0 to {tree.n_nodes - 1}")
    return cut_nodes(tree, nodes[~tree.is_leaf[nodes]])
