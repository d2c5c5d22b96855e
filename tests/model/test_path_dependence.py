"""Partial dependence by recursion: that of scikit-learn on the same trees, and a plain walk."""

import numpy as np
import pandas as pd
import pytest
import sklearn.ensemble
import sklearn.tree
from sklearn.inspection import PartialDependenceDisplay, partial_dependence

import spinney
from spinney import (
    AdaBoostRegressor,
    CARTClassifier,
    CARTRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestRegressor,
)
from spinney._types import SUBSET

ROUNDS = {"n_estimators": 6, "learning_rate": 0.3, "random_state": 0, "subsample": 1.0, "max_features": None}


def make_table(n_rows=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) ** 2 + 0.1 * rng.normal(size=n_rows)
    return X, y


GRID = np.array([[-1.0, 0.2], [0.0, -0.7], [0.5, np.nan], [2.0, 1.0]])


def walk(tree, node, point, features):
    """The plain recursion: a dict from features to values decides; other nodes take both ways by weight."""
    if tree.is_leaf[node]:
        return tree.threshold[node] if tree.answers is None else tree.answers[node]
    children = [tree.first_child[node] + b for b in range(tree.n_branches[node])]
    if tree.feature[node] in features:
        value = point[features.index(tree.feature[node])]
        if np.isnan(value):
            branch = max(int(tree.missing_branch[node]), 0)
        elif tree.kind[node] == SUBSET:
            branch = 0 if tree.subset(node)[int(value)] else 1
        else:
            branch = int(value > tree.threshold[node])
        return walk(tree, children[branch], point, features)
    parts = [tree.weight[child] / tree.weight[node] * walk(tree, child, point, features) for child in children]
    return sum(parts)


@pytest.mark.parametrize("features", [[0], [1, 2]])
def test_trees_and_forests_are_scikit_learns(features):
    X, y = make_table()
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    grid = GRID[:, : len(features)]
    for y_ in (y, np.c_[y, -2.0 * y]):
        tree = CARTRegressor(max_depth=5).fit(X, y_, weight)
        found = tree._compute_partial_dependence_recursion(grid, features)
        if y_.ndim == 1:
            theirs = tree.to_sklearn()._compute_partial_dependence_recursion(grid.astype(np.float32), features)
            np.testing.assert_allclose(found[0], theirs, rtol=1e-12)
        plain = [np.atleast_1d(walk(tree.tree_.arrays, 0, point, features)) for point in grid]
        np.testing.assert_allclose(found.T, plain, rtol=1e-12)
    forest = RandomForestRegressor(8, max_depth=4, random_state=0).fit(X, y, weight)
    each = [member._compute_partial_dependence_recursion(grid, features) for member in forest]
    np.testing.assert_allclose(forest._compute_partial_dependence_recursion(grid, features), np.mean(each, axis=0))


def test_rounds_add_up_without_their_constant():
    X, y = make_table()
    model = GradientBoostingRegressor(**ROUNDS).fit(X, y)
    found = partial_dependence(model, np.nan_to_num(X), [0], grid_resolution=20)["average"]
    points = partial_dependence(model, np.nan_to_num(X), [0], grid_resolution=20)["grid_values"][0]
    trees = [tree.tree_.arrays for tree in model.estimators_[:, 0]]
    plain = [sum(walk(tree, 0, [point], [0]) for tree in trees) for point in points]
    np.testing.assert_allclose(found[0], plain, rtol=1e-10)
    brute = partial_dependence(model, np.nan_to_num(X), [0], grid_resolution=20, method="brute")["average"][0]
    assert np.corrcoef(found[0], brute)[0, 1] > 0.98
    assert abs(np.mean(brute) - np.mean(found[0]) - y.mean()) < 0.5


@pytest.mark.parametrize("strategy", ["one_tree_per_class", "one_tree"])
def test_classes_have_a_curve_each(strategy):
    X, y = make_table()
    classes = np.digitize(y, [0.0, 1.0])
    model = GradientBoostingClassifier(multi_strategy=strategy, **ROUNDS).fit(X, classes)
    found = model._compute_partial_dependence_recursion(GRID[:, :1], [0])
    assert found.shape == (3, len(GRID))
    trees = [tree.tree_.arrays for tree in model.estimators_.ravel()]
    plain = np.array([[walk(tree, 0, point, [0]) for tree in trees] for point in GRID[:, :1]])
    shape = (len(GRID), 6, 3) if strategy == "one_tree_per_class" else plain.shape
    np.testing.assert_allclose(found, plain.reshape(shape).sum(axis=1).T, rtol=1e-10)


def test_categories_go_by_their_levels():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=200), "b": pd.Categorical(rng.choice(list("xyz"), 200))})
    y = X["a"] + 3.0 * (X["b"] == "y")
    model = RandomForestRegressor(5, max_features=None, random_state=0).fit(X, y)
    grid = np.array([["x"], ["y"], ["new"]], object)
    found = model._compute_partial_dependence_recursion(grid, [1])[0]
    levels = model._schema.levels[1]
    plain = [
        np.mean([walk(t.tree_.arrays, 0, [levels.index(v) if v in levels else np.nan], [1]) for t in model])
        for v in grid[:, 0]
    ]
    np.testing.assert_allclose(found, plain, rtol=1e-12)
    assert found[1] - found[0] > 2.0


def test_what_recursion_cannot_do_names_brute_force():
    X, y = make_table()
    X = np.nan_to_num(X)
    linear = CARTRegressor(leaf_model="linear", max_depth=2).fit(X, y)
    with pytest.raises(ValueError, match="use method='brute'"):
        partial_dependence(linear, X, [0])
    assert partial_dependence(linear, X, [0], method="brute")["average"].shape[0] == 1
    begun = GradientBoostingRegressor(init=CARTRegressor(max_depth=1), **ROUNDS).fit(X, y)
    with pytest.warns(UserWarning, match="non-constant init predictor"):
        partial_dependence(begun, X, [0], method="recursion")
    counted = GradientBoostingRegressor(loss="poisson", **ROUNDS).fit(X, np.exp(y))
    with pytest.raises(ValueError, match="are logarithms of predictions: use method='brute'"):
        partial_dependence(counted, X, [0])
    dated = pd.DataFrame({"a": X[:, 0], "day": pd.date_range("2020-01-01", periods=len(y))})
    model = RandomForestRegressor(2, random_state=0).fit(dated, y)
    with pytest.raises(ValueError, match="X has dates: use method='brute'"):
        model._compute_partial_dependence_recursion([[0.0]], [0])


def test_classes_pass_for_scikit_learns():
    pairs = {
        CARTClassifier: sklearn.tree.DecisionTreeClassifier,
        CARTRegressor: sklearn.tree.DecisionTreeRegressor,
        RandomForestRegressor: sklearn.ensemble.RandomForestRegressor,
        GradientBoostingClassifier: sklearn.ensemble.GradientBoostingClassifier,
        GradientBoostingRegressor: sklearn.ensemble.GradientBoostingRegressor,
    }
    for ours, theirs in pairs.items():
        assert isinstance(ours(), theirs)
        assert theirs not in ours.__mro__  # nothing is inherited
    assert not isinstance(CARTClassifier(), sklearn.tree.DecisionTreeRegressor)
    assert not isinstance(spinney.ID3Classifier(), sklearn.tree.DecisionTreeClassifier)
    assert not isinstance(AdaBoostRegressor(), sklearn.ensemble.RandomForestRegressor)


def test_tools_that_ask_for_the_class_take_ours():
    pytest.importorskip("matplotlib").use("Agg")
    X, y = make_table()
    X = np.nan_to_num(X)
    tree = CARTClassifier(max_depth=2).fit(X, y > 0.5)
    made = tree.to_sklearn()
    assert sklearn.tree.export_text(tree) == sklearn.tree.export_text(made)
    assert len(sklearn.tree.plot_tree(tree)) == len(sklearn.tree.plot_tree(made))
    model = GradientBoostingRegressor(**ROUNDS).fit(X, y)
    display = PartialDependenceDisplay.from_estimator(model, X, [0, (0, 1)], grid_resolution=5)
    assert len(display.pd_results) == 2
