"""Models of scikit-learn: trees, forests, extra-trees, gradient boosting and histogram-based gradient boosting.

Trees and what is made of them round a value to float32 and send what is not above the threshold to the left; histogram
boosting compares float64. Sums are made in the order of scikit-learn, of the same numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.model.imports.float32_cuts import cut_rounded
from spinney.model.imports.foreign_file import (
    NotImportedError,
    count_levels,
    make_schema,
    name_columns,
    understanding,
)
from spinney.model.imports.tree_table import TreeNodes, join_nodes
from spinney.model.predictors import RoundPredictor, TreePredictor, VotePredictor

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from spinney.model.base_predictor import Predictor
    from spinney.table.schema import Schema

CRITERIA = {name: name for name in ("gini", "entropy", "squared_error", "poisson")} | {"log_loss": "entropy"}
LOG_LOSSES = {"poisson", "gamma"}  # of histogram boosting, with the link log
FIXED = {  # strategies of a first estimator that say one thing of all rows
    "DummyClassifier": {"prior", "most_frequent"},
    "DummyRegressor": {"mean", "median", "quantile", "constant"},
}
SHARE_SLACK = 1e-6  # shares add up to 1; before scikit-learn 1.3 there were counts
SET_BITS = 256  # of a set of categories of histogram boosting


def from_sklearn(model: Any) -> Predictor:
    """Read a fitted tree model of scikit-learn: the result predicts, is drawn, saved and exported as any other.

    Predictions are those of scikit-learn, but for the last places of exponentials.

    Parameters
    ----------
    model : estimator
        Fitted: DecisionTree, ExtraTree, RandomForest, ExtraTrees, GradientBoosting or HistGradientBoosting, Classifier
        or Regressor.

    Returns
    -------
    Predictor
        A TreePredictor of one tree, a VotePredictor of a forest, a RoundPredictor of boosting.

    Raises
    ------
    ValueError
        The model has what is not read, which is named: several outputs, a first estimator (`init`) that learns.

    Examples
    --------
    >>> import spinney
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> model = DecisionTreeClassifier().fit([[1], [2], [3], [4]], ["no", "no", "yes", "yes"])
    >>> predictor = spinney.from_sklearn(model)
    >>> predictor.predict([[3.3], [0.5]])
    array(['yes', 'no'], dtype='<U3')
    >>> print(predictor.tree.to_text())
    [no] (4 rows: no 2, yes 2)
    ├─ x0 <= 2.50000012: no (2 rows)
    └─ x0 > 2.50000012 or missing: yes (2 rows)
    """
    from sklearn import ensemble, tree
    from sklearn.base import is_classifier
    from sklearn.utils.validation import check_is_fitted

    readers = (
        ((ensemble.HistGradientBoostingClassifier, ensemble.HistGradientBoostingRegressor), read_histogram_boosting),
        ((ensemble.GradientBoostingClassifier, ensemble.GradientBoostingRegressor), read_boosting),
        (
            (ensemble.RandomForestClassifier, ensemble.RandomForestRegressor,
             ensemble.ExtraTreesClassifier, ensemble.ExtraTreesRegressor),
            read_forest,
        ),
        ((tree.DecisionTreeClassifier, tree.DecisionTreeRegressor), read_single),
    )  # fmt: skip
    name = type(model).__name__
    for kinds, read in readers:
        if isinstance(model, kinds):
            check_is_fitted(model)
            if getattr(model, "n_outputs_", 1) > 1:
                raise NotImportedError(f"{name}: {model.n_outputs_} outputs are not read: fit a model for each")
            with understanding(name, "scikit-learn"):
                predictor = read(model, model.classes_ if is_classifier(model) else None)
                predictor.check()
                return predictor
    if isinstance(model, type):
        raise TypeError(f"{name} {model.__name__} is a class: give a fitted model")
    known = ", ".join(sorted({kind.__name__ for kinds, _ in readers for kind in kinds}))
    raise TypeError(f"{name} is not read; {known} are")


def find_schema(model: Any, levels: list[list[Any] | None] | None = None) -> Schema:
    """The columns of a model."""
    names = getattr(model, "feature_names_in_", None)
    return make_schema(
        None if names is None else [str(name) for name in names], levels or [None] * int(model.n_features_in_)
    )


def read_single(model: Any, classes: NDArray[Any] | None) -> TreePredictor:
    """One tree."""
    forest = read_forest_of([model], model, classes)
    return TreePredictor(forest.schema, classes, forest.forest.tree(0))


def read_forest(model: Any, classes: NDArray[Any] | None) -> VotePredictor:
    """A forest: the mean of what its trees say."""
    return read_forest_of(model.estimators_, model, classes)


def read_forest_of(members: Iterable[Any], model: Any, classes: NDArray[Any] | None) -> VotePredictor:
    """The trees of a model, which vote."""
    schema = find_schema(model)
    labels = None if classes is None else tuple(classes.tolist())
    legend = name_columns(schema, labels, CRITERIA.get(model.criterion))
    n_classes = 0 if classes is None else len(classes)
    nodes = (read_sklearn_tree(member.tree_, n_classes) for member in members)
    forest = join_nodes(nodes, count_levels(schema), legend, n_classes)
    return VotePredictor(schema, classes, forest)


def read_boosting(model: Any, classes: NDArray[Any] | None) -> RoundPredictor:
    """Gradient boosting of trees of numbers, from what the first estimator says of all rows."""
    first = model.init_
    if not isinstance(first, str) and getattr(first, "strategy", None) not in FIXED.get(type(first).__name__, set()):
        raise NotImportedError(f"init={first!r:.60}, a first estimator that learns, is not read")
    start = np.ravel(model._raw_predict_init(np.zeros((1, int(model.n_features_in_)), np.float32)))  # noqa: SLF001
    schema = find_schema(model)
    members = model.estimators_.reshape(-1)  # round by round
    nodes = (read_sklearn_tree(member.tree_, 0, float(model.learning_rate)) for member in members)
    forest = join_nodes(nodes, count_levels(schema), name_columns(schema, None, None))
    link = "identity" if classes is None else "softmax" if len(start) > 1 else "logistic"
    link = "half_logistic" if model.loss == "exponential" else link
    return RoundPredictor(schema, classes, forest, start.astype(np.float64), link, len(model.estimators_))


def read_sklearn_tree(tree: Any, n_classes: int, factor: float | None = None) -> TreeNodes:
    """The nodes of a tree; factor: what its leaves are multiplied by."""
    nodes = tree.__getstate__()["nodes"]
    values = tree.value[:, 0, :]
    left, right = nodes["left_child"].astype(np.int64), nodes["right_child"].astype(np.int64)
    is_leaf = left < 0
    value = values[:, 0] if factor is None else factor * values[:, 0]
    names = nodes.dtype.names
    is_left = nodes["missing_go_to_left"].astype(bool) if "missing_go_to_left" in names else np.zeros(len(left), bool)
    shares = None
    if n_classes:
        total = values.sum(axis=1, keepdims=True)
        shares = values if bool(np.all(np.abs(total - 1.0) < SHARE_SLACK)) else values / total
    return TreeNodes(
        left,
        right,
        nodes["feature"].astype(np.int64),
        np.where(is_leaf, value, cut_rounded(nodes["threshold"])),
        is_left,
        nodes["weighted_n_node_samples"].astype(np.float64),
        nodes["n_node_samples"].astype(np.float64),
        nodes["impurity"].astype(np.float64),
        is_impurity=True,
        shares=shares,
    )


# --- histogram-based gradient boosting ----------------------------------------------------------------------------


def read_histogram_boosting(model: Any, classes: NDArray[Any] | None) -> RoundPredictor:
    """Histogram-based gradient boosting; its trees see categories first, as codes."""
    n_features = int(model.n_features_in_)
    levels: list[list[Any] | None] = [None] * n_features
    column = np.arange(n_features)
    mask = getattr(model, "is_categorical_", None)
    if mask is not None and np.any(mask):
        if getattr(model, "_preprocessor", None) is None:
            raise NotImportedError("categorical_features of scikit-learn before 1.4 are not read: fit it anew")
        categorical = np.flatnonzero(mask)
        column = np.concatenate([categorical, np.flatnonzero(~mask)])
        encoder = model._preprocessor.named_transformers_["encoder"]  # noqa: SLF001
        for j, found in zip(categorical.tolist(), encoder.categories_, strict=True):
            levels[j] = [plain(level) for level in found.tolist() if level is not None and level == level]  # noqa: PLR0124
    schema = find_schema(model, levels)
    n_levels = count_levels(schema)
    rounds = model._predictors  # noqa: SLF001
    nodes = (read_histogram_tree(tree, column, n_levels) for trees in rounds for tree in trees)
    forest = join_nodes(nodes, n_levels, name_columns(schema))
    start = np.ravel(model._baseline_prediction).astype(np.float64)  # noqa: SLF001
    link = "softmax" if len(start) > 1 else "logistic" if classes is not None else "identity"
    link = "log" if model.loss in LOG_LOSSES else link
    return RoundPredictor(schema, classes, forest, start, link, len(rounds))


def plain(level: Any) -> Any:
    """A category as a level: whole numbers as such."""
    return int(level) if isinstance(level, float) and level.is_integer() else level


def read_histogram_tree(tree: Any, column: NDArray[np.int64], n_levels: NDArray[np.int32]) -> TreeNodes:
    """The nodes of a tree of histogram boosting."""
    nodes = tree.nodes
    is_leaf = nodes["is_leaf"].astype(bool)
    is_subset = nodes["is_categorical"].astype(bool) & ~is_leaf
    feature = column[np.where(is_leaf, 0, nodes["feature_idx"].astype(np.int64))]
    cut = np.where(is_leaf, nodes["value"], nodes["num_threshold"]).astype(np.float64)
    subsets: list[NDArray[np.bool_]] = []
    for at in np.flatnonzero(is_subset).tolist():
        words = np.asarray(tree.raw_left_cat_bitsets[int(nodes["bitset_idx"][at])]).astype("<u4")
        goes_left = np.unpackbits(words.view(np.uint8), bitorder="little").astype(bool)
        cut[at] = len(subsets)
        n = int(n_levels[feature[at]])
        subsets.append(np.concatenate([goes_left, np.zeros(max(n - SET_BITS, 0), bool)])[:n])
    count = nodes["count"].astype(np.float64)
    gain = np.where(is_leaf, 0.0, nodes["gain"]).astype(np.float64)
    left, right = (np.where(is_leaf, -1, nodes[name].astype(np.int64)) for name in ("left", "right"))
    is_left = nodes["missing_go_to_left"].astype(bool)
    return TreeNodes(left, right, feature, cut, is_left, count, count, gain, subsets, is_subset)
