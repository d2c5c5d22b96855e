"""What is left of a tree when some nodes become leaves; the tiers of a tree, and sums over its branches.

Every pruning chooses nodes; here they become leaves. What belongs to the tests that are left (bitsets, surrogates)
moves along, and so do the linear models of the leaves that are left; a node that becomes a leaf predicts by its own
rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._types import LEAF, SUBSET
from spinney.tree.subset_words import PACKED, is_packed, subset_sizes
from spinney.tree.surrogates import Surrogates

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from spinney.tree.structure import Tree

BLOCK_CELLS = 1 << 22  # nodes x classes that are summed at once: 32 MB


class Tier(NamedTuple):
    """The inner nodes of one depth."""

    nodes: NDArray[np.int64]
    branches: list[tuple[Any, NDArray[np.int64]]]  # per branch: which of `nodes` have it (an index), and its node


def find_tiers(tree: Tree) -> list[Tier]:
    """The inner nodes of every depth, from the root down."""
    tiers = []
    for level in tree.nodes_by_depth[:-1]:
        nodes = level[~tree.is_leaf[level]]
        first, n_branches = tree.first_child[nodes].astype(np.int64), tree.n_branches[nodes]
        branches: list[tuple[Any, NDArray[np.int64]]] = [(slice(None), first), (slice(None), first + 1)]
        has = np.arange(len(nodes))
        for branch in range(2, int(n_branches.max())):
            has = has[n_branches[has] > branch]  # of many levels, each keeps fewer nodes
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


def heaviest_classes(
    tree: Tree, tiers: list[Tier]
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64] | None]:
    """First of the heaviest classes of each node, its weight, and the class weights if they are held all at once."""
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
    return top, heaviest, whole


# --- cutting -----------------------------------------------------------------------------------------------------


class Remainder(NamedTuple):
    """What is left of a tree."""

    old: NDArray[np.int64]  # (n_left,) index of each node that is left in the whole tree
    is_leaf: NDArray[np.bool_]  # (n_left,)
    place: NDArray[np.int64]  # (n_nodes,) which node that is left holds the rows of a node of the whole tree


def find_remainder(tree: Tree, tiers: list[Tier], is_cut: NDArray[np.bool_]) -> Remainder:
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
    return Remainder(old, becomes_leaf[old], new_index[owner])


def keep_tests(tree: Tree, rest: Remainder, values: NDArray[np.float64], **fields: Any) -> Tree:
    """The tests that are left, with these values (or classes) of the leaves, and other fields of the new tree."""
    threshold = tree.threshold[rest.old]
    threshold[rest.is_leaf] = values
    surrogates = None if tree.surrogates is None else keep_surrogates(tree.surrogates, rest)
    subsets = pack_subsets(tree, rest, threshold, surrogates)
    left = replace(
        tree,
        test=np.where(rest.is_leaf, LEAF, tree.test[rest.old]).astype(np.uint32),
        first_child=np.where(rest.is_leaf, 0, rest.place[tree.first_child[rest.old]]).astype(np.int32),
        threshold=threshold,
        subsets=subsets,
        surrogates=surrogates,
        **fields,
    )
    if left.answers is not None:
        left = replace(left, answers=left.answers[rest.old])
    return left if left.linear is None else replace(left, linear=left.linear.take(rest.old))


def keep_surrogates(surrogates: Surrogates, rest: Remainder) -> Surrogates:
    """The surrogates of the tests that are left; their bitsets still lie where they were."""
    begin, end = (surrogates.first[rest.old + step].astype(np.int64) for step in (0, 1))
    first, entries = keep_ranges(begin, np.where(rest.is_leaf, 0, end - begin))
    return Surrogates(
        first.astype(np.int32),
        surrogates.test[entries],
        surrogates.threshold[entries],
        surrogates.agree[entries],
        surrogates.adjusted[entries],
        np.where(rest.is_leaf, 0.0, surrogates.improve[rest.old]),
    )


def keep_ranges(begin: NDArray[np.int64], size: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ranges of a side array laid end to end: where each now begins (and the last ends), and the entries that stay."""
    end = np.cumsum(size)
    entries = np.arange(int(end[-1])) + np.repeat(begin - (end - size), size)
    return np.concatenate([[0], end]), entries


def cut_nodes(tree: Tree, nodes: list[int] | NDArray[np.int64]) -> Tree:
    """A new tree in which these nodes are leaves and what was below them is removed."""
    if len(nodes) == 0:
        return tree
    is_cut = np.zeros(tree.n_nodes, np.bool_)
    is_cut[nodes] = True
    return cut_mask(tree, find_tiers(tree), is_cut)


def cut_mask(
    tree: Tree,
    tiers: list[Tier],
    is_cut: NDArray[np.bool_],
    class_weights: NDArray[np.float64] | None = None,
    values: NDArray[np.float64] | None = None,
) -> Tree:
    """As `cut_nodes` with a mask of nodes; what nodes predict as leaves may be passed where it is known already.

    class_weights : (n_nodes, n_classes)
    values : (n_nodes,), of a regression
    """
    rest = find_remainder(tree, tiers, is_cut)
    leaves = rest.old[rest.is_leaf]
    distributions = tree.distributions
    if tree.n_classes:
        leaves = np.where(tree.is_empty[leaves], tree.parent[leaves], leaves)  # an empty leaf predicts as its parent
    if not tree.n_classes:
        held = tree.values() if values is None else values
        leaf_values = held[leaves] if tree.n_outputs == 1 else held[leaves, 0]
    elif class_weights is not None:
        leaf_values, distributions = pack_classes(class_weights[leaves])
    else:
        leaf_values, distributions = pack_classes(leaf_weights(tree, tiers, leaves))
    return keep_tests(
        tree,
        rest,
        leaf_values,
        n_rows=tree.n_rows[rest.old],
        weight=tree.weight[rest.old],
        impurity=tree.impurity[rest.old],
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
    tree: Tree, rest: Remainder, threshold: NDArray[np.float64], surrogates: Surrogates | None = None
) -> NDArray[np.uint64]:
    """The bitsets of the subset tests that remain, end to end, then those of their surrogates.

    The new places are written into `threshold`, those of the nodes that are left, and into the surrogates'.
    """
    tests = np.flatnonzero((tree.kind[rest.old] == SUBSET) & ~rest.is_leaf)
    features, places = tree.feature[rest.old[tests]], threshold[tests]
    spare = np.zeros(0, np.int64)
    if surrogates is not None:
        spare = np.flatnonzero(surrogates.kind == SUBSET)
        features = np.concatenate([features, surrogates.feature[spare]])
        places = np.concatenate([places, surrogates.threshold[spare]])
    if len(places) == 0:
        return np.zeros(0, np.uint64)
    n_words = subset_sizes(tree.subsets, places, tree.n_levels[features])
    n_words[len(tests) :] *= 2  # a surrogate has two bitsets: levels of branch 0, levels that it knows
    begin, words = keep_ranges(places.astype(np.int64), n_words)
    threshold[tests] = begin[: len(tests)] + PACKED * is_packed(threshold[tests])
    if surrogates is not None:
        surrogates.threshold[spare] = begin[len(tests) : -1]
    return tree.subsets[words]
