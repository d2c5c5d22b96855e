"""Predict with one tree: the leaf of each row, and what the leaf says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._jit import kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.tree.structure import Tree

STEP_SECONDS = 2e-6  # of one test, interpreted


def find_leaves(tree: Tree, values: NDArray[Any]) -> NDArray[np.int32]:
    """Index of the leaf that each row of values (n_rows, n_features), float32 or float64, ends in."""
    leaf = np.zeros(len(values), np.int32)
    fixed = values.view()
    fixed.flags.writeable = False  # a kernel is compiled per type, and read-only arrays are a type of their own
    k = kernels(len(values) * max(tree.depth, 1) * STEP_SECONDS)
    k.route.apply(fixed, tree.test, tree.first_child, tree.threshold, tree.subsets, 0, len(values), leaf)
    return leaf


def predict_values(tree: Tree, values: NDArray[Any]) -> NDArray[np.float64]:
    """Mean target of each row's leaf, shape (n_rows,)."""
    return tree.threshold[find_leaves(tree, values)]


def predict_shares(tree: Tree, values: NDArray[Any]) -> NDArray[np.float64]:
    """Class shares of each row's leaf, shape (n_rows, n_classes)."""
    rows, shares = tree.leaf_shares
    return shares[rows[find_leaves(tree, values)]]


def predict_classes(tree: Tree, values: NDArray[Any]) -> NDArray[np.int64]:
    """Most frequent class of each row's leaf, the first among equals, shape (n_rows,)."""
    rows, shares = tree.leaf_shares
    return shares.argmax(axis=1)[rows[find_leaves(tree, values)]]
