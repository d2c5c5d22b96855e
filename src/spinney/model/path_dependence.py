"""Partial dependence from trees alone (Friedman 2001, 8.2): scikit-learn's `method="recursion"`.

A point of the grid goes down every tree. Where a node asks for a column of the grid, it takes the branch of its value;
elsewhere it takes all of them, in the shares that the training rows had. No row is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spinney.tree.predict import find_branches
from spinney.tree.subtree import find_tiers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from spinney.tree.structure import Tree

POINTS_AT_ONCE = 256  # of a grid: 2 kB a node


def average_paths(
    trees: Iterable[Tree], points: NDArray[np.float64], features: NDArray[np.intp]
) -> NDArray[np.float64]:
    """What each tree answers to points of a grid in the mean over the other columns, (n_trees, n_points, n_outputs).

    points: (n_points, len(features)), values as trees know them; features: the columns that they are of, by number.
    """
    found = []
    for tree in trees:
        answers = tree.answers if tree.answers is not None else tree.threshold[:, None]
        blocks = [
            share_points(tree, points[first : first + POINTS_AT_ONCE], features).T @ answers[tree.is_leaf]
            for first in range(0, len(points), POINTS_AT_ONCE)
        ]
        found.append(np.concatenate(blocks))
    return np.stack(found)


def share_points(tree: Tree, points: NDArray[np.float64], features: NDArray[np.intp]) -> NDArray[np.float64]:
    """The share of each point that ends in each leaf, (n_leaves, n_points)."""
    share = np.zeros((tree.n_nodes, len(points)))
    share[0] = 1.0
    for tier in find_tiers(tree):
        asked = tree.feature[tier.nodes]
        branch = np.full((len(tier.nodes), len(points)), -1)  # all of them
        for k, feature in enumerate(features.tolist()):
            at = np.flatnonzero(asked == feature)
            nodes = np.repeat(tier.nodes[at], len(points))
            branch[at] = find_branches(tree, nodes, np.tile(points[:, k], len(at))).reshape(len(at), len(points))
        weight = tree.weight[tier.nodes]
        for number, (has, child) in enumerate(tier.branches):
            part = (tree.weight[child] / weight[has])[:, None]
            share[child] = share[tier.nodes[has]] * np.where(branch[has] < 0, part, branch[has] == number)
    return share[tree.is_leaf]
