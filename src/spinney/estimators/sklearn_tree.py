"""A fitted tree of ours as scikit-learn's own estimator, for tools that ask for its class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.estimators.parameters import parameter
from spinney.tree.predict import smooth_shares

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.estimators.base_tree import TreeEstimator
    from spinney.tree.sklearn_view import SklearnView

CRITERIA = {"gini", "entropy", "squared_error", "poisson", "absolute_error"}  # that scikit-learn knows by the same name
FIELDS = {  # of scikit-learn's nodes, by our names for them, which are those of its attributes
    "left_child": "children_left",
    "right_child": "children_right",
    "feature": "feature",
    "threshold": "threshold",
    "impurity": "impurity",
    "n_node_samples": "n_node_samples",
    "weighted_n_node_samples": "weighted_n_node_samples",
    "missing_go_to_left": "missing_go_to_left",
}


def make_sklearn_tree(model: TreeEstimator) -> Any:
    """A `DecisionTreeClassifier` or `DecisionTreeRegressor` with the tree of a fitted estimator."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    fitted = model._find_fitted()  # noqa: SLF001
    if fitted.tree.linear is not None:
        raise ValueError("the leaves of this tree hold linear models, which scikit-learn's trees cannot hold")
    kind = DecisionTreeRegressor if fitted.classes is None else DecisionTreeClassifier
    criterion = model._criterion  # noqa: SLF001
    peer = kind(**({"criterion": criterion} if criterion in CRITERIA else {}))
    smoothing = parameter(model, "smoothing", None)
    view = fitted.view
    values = view.value if smoothing is None else smooth_shares(fitted.tree, smoothing).reshape(view.value.shape)
    peer.tree_ = make_nodes(view, values)
    peer.n_features_in_, peer.n_outputs_, peer.max_features_ = view.n_features, view.n_outputs, view.n_features
    if hasattr(model, "feature_names_in_"):
        peer.feature_names_in_ = model.feature_names_in_
    if fitted.classes is not None:
        is_several = isinstance(fitted.classes, list)
        peer.classes_ = fitted.classes
        peer.n_classes_ = [len(each) for each in fitted.classes] if is_several else len(fitted.classes)
    return peer


def make_nodes(view: SklearnView, values: NDArray[np.float64]) -> Any:
    """The tree as scikit-learn's compiled class; values: (node_count, 1, max_n_classes)."""
    from sklearn.tree._tree import NODE_DTYPE, Tree

    nodes = np.zeros(view.node_count, NODE_DTYPE)
    for field, name in FIELDS.items():
        nodes[field] = getattr(view, name)
    tree = Tree(view.n_features, view.n_classes.astype(np.intp), view.n_outputs)
    state = {"max_depth": view.max_depth, "node_count": view.node_count, "nodes": nodes, "values": values.copy()}
    tree.__setstate__(state)
    return tree
