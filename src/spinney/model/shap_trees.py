"""Trees in the form that the library `shap` documents for models it does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._node_layout import kind_of, missing_of
from spinney._types import THRESHOLD
from spinney.model.any_model import find_predictor
from spinney.model.explained_trees import Explained, explained

if TYPE_CHECKING:
    from numpy.typing import NDArray


def to_shap_trees(model: Any) -> dict[str, Any]:
    """A model as `shap.TreeExplainer` takes it: `shap.TreeExplainer(spinney.to_shap_trees(model))`.

    Parameters
    ----------
    model : estimator, Predictor or path
        Trees of thresholds with two branches, and one output, or one for each class that every tree speaks of.
        Categories, a branch of their own for missing values, surrogates, C4.5's fractions, linear leaves, and rounds
        of a tree for each class are not known there: `spinney.shap_values` explains them all.

    Returns
    -------
    dict
        Trees whose values add up to what `shap_values` adds up to.

    Examples
    --------
    >>> import spinney
    >>> model = spinney.CARTRegressor().fit([[1.0], [2.0]], [10.0, 20.0])
    >>> form = spinney.to_shap_trees(model)
    >>> form["trees"][0]["thresholds"].tolist(), form["trees"][0]["values"][:, 0].tolist()
    ([1.5, 0.0, 0.0], [15.0, 10.0, 20.0])
    """
    parts = explained(find_predictor(model, "explain"))
    refuse_unknown(parts)
    first = parts.model.trees.first_node
    return {
        "trees": [take_tree(parts, slice(int(first[t]), int(first[t + 1])), t) for t in range(parts.n_trees)],
        "base_offset": float(parts.start[0]) if len(parts.start) == 1 else 0.0,
        "tree_output": "raw_value",
        "objective": "squared_error",
        "input_dtype": np.float64,
        "internal_dtype": np.float64,
    }


def refuse_unknown(parts: Explained) -> None:
    """Raise where trees have what `shap` does not know, naming it."""
    trees, leaves = parts.model.trees, parts.model.leaves
    is_inner = trees.n_branches > 0
    unknown = {
        "categories": bool(np.any(is_inner & (kind_of(trees.test) != THRESHOLD))),
        "branches for missing values": bool(np.any(is_inner & (missing_of(trees.test) > 1))),
        "surrogates": len(parts.model.surrogates.first) > 1,
        "linear leaves": len(leaves.terms.first) > 1,
        "trees of one class among several": bool(np.any(leaves.output > 0)),
        "start of several outputs": len(parts.start) > 1 and bool(np.any(parts.start)),
        "weights of a compact forest": not parts.has_weights,
    }
    for what, is_there in unknown.items():
        if is_there:
            raise ValueError(f"shap.TreeExplainer cannot be told of {what}: use spinney.shap_values")


def take_tree(parts: Explained, nodes: slice, t: int) -> dict[str, NDArray[Any]]:
    """One tree; inner nodes say the mean of their leaves."""
    trees, leaves = parts.model.trees, parts.model.leaves
    is_leaf = trees.n_branches[nodes] == 0
    child = np.where(is_leaf, -1, trees.first_child[nodes] - nodes.start)
    values = leaves.values[leaves.row_of[nodes]] * leaves.scale[t]
    for node in np.flatnonzero(~is_leaf)[::-1].tolist():  # children stand behind their parents
        below = slice(child[node], child[node] + 2)
        values[node] = (trees.ratio[nodes][below, None] * values[below]).sum(axis=0)
    if parts.is_mirrored:
        values = np.concatenate([1.0 / parts.n_trees - values, values], axis=1)
    return {
        "children_left": child.astype(np.int32),
        "children_right": np.where(is_leaf, -1, child + 1).astype(np.int32),
        "children_default": np.where(is_leaf, -1, child + missing_of(trees.test[nodes])).astype(np.int32),
        "features": np.where(is_leaf, -1, trees.feature[nodes]).astype(np.int32),
        "thresholds": np.where(is_leaf, 0.0, trees.cut[nodes]),
        "values": values,
        "node_sample_weight": trees.weight[nodes].astype(np.float64),
    }
