"""Predict with one tree: the leaf of each row, and what the leaf says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._jit import kernels
from spinney._types import LANES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.tree.structure import Tree

STEP_SECONDS = 2e-6  # of one test, interpreted


def find_leaves(tree: Tree, values: NDArray[Any]) -> NDArray[np.int32]:
    """Index of the leaf that each row of values (n_rows, n_features), float32 or float64, ends in."""
    leaf = np.empty(len(values), np.int32)
    k = kernels(len(values) * max(tree.depth, 1) * STEP_SECONDS)
    hot = tree.hot
    block = np.empty((LANES, values.shape[1]))
    k.route.apply(fixed(values), hot.view(np.float64), hot, fixed(tree.subsets), block, leaf)
    return leaf


def fixed(x: NDArray[Any]) -> NDArray[Any]:
    """A plain read-only view: a kernel is compiled per type, and an array of a user may be read-only."""
    view = x.view(np.ndarray)
    view.flags.writeable = False
    return view


def predict_values(tree: Tree, values: NDArray[Any]) -> NDArray[np.float64]:
    """Mean target of each row's leaf, shape (n_rows,)."""
    return tree.threshold[find_leaves(tree, values)]


def predict_shares(tree: Tree, values: NDArray[Any]) -> NDArray[np.float64]:
    """Class shares of each row's leaf, shape (n_rows, n_classes)."""
    code = tree.threshold[find_leaves(tree, values)].astype(np.int64)
    shares = np.zeros((len(code), tree.n_classes))
    pure = np.flatnonzero(code >= 0)
    shares[pure, code[pure]] = 1.0
    if len(pure) < len(code):
        mixed = np.flatnonzero(code < 0)
        weights = tree.distributions[-1 - code[mixed]]
        shares[mixed] = weights / weights.sum(axis=1, keepdims=True)
    return shares


def predict_classes(tree: Tree, values: NDArray[Any]) -> NDArray[np.int64]:
    """Heaviest class of each row's leaf, the first among equals, shape (n_rows,)."""
    return tree.leaf_class[find_leaves(tree, values)]
