"""CARTRegressor with linear leaves: as scikit-learn's Ridge in each leaf, under its contract, and its faults."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.utils._param_validation import InvalidParameterError

from contract import parametrize_with_contract
from spinney import AdaBoostRegressor, BaggingRegressor, CARTRegressor

SETTINGS = [
    {},
    {"leaf_features": "all", "max_depth": 3},
    {"leaf_features": "all", "leaf_alpha": 0, "max_depth": 1},
    {"max_leaf_nodes": 4, "leaf_alpha": 0.01},
    {"missing": "branch", "max_depth": 3},
    {"ccp_alpha": 0.01},
    {"criterion": "sdr", "max_depth": 2, "max_bins": 16},
]


@parametrize_with_contract([CARTRegressor(leaf_model="linear", **settings) for settings in SETTINGS])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def make_table(n_rows=300, seed=0, n_features=4, *, has_missing=False):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, n_features)) * [1.0, 100.0, 0.01, 5.0][:n_features] + 3.0
    y = 2.0 * X[:, 0] + np.abs(X[:, 1]) / 10.0 + random.normal(size=n_rows)
    if has_missing:
        X[random.random(X.shape) < 0.1] = np.nan
    return X, y


def linear(**parameters):
    return CARTRegressor(leaf_model="linear", **parameters)


def path_of(tree, node):
    features = set()
    while tree.parent[node] >= 0:
        node = tree.parent[node]
        features.add(int(tree.feature[node]))
    return sorted(features)


@pytest.mark.parametrize("alpha", [1.0, 0.0, 1e-3, 50.0])
@pytest.mark.parametrize("features", ["path", "all"])
@pytest.mark.parametrize("has_missing", [False, True])
@pytest.mark.parametrize("weights", ["none", "whole", "any"])
def test_a_leaf_says_what_ridge_says(alpha, features, has_missing, weights):
    X, y = make_table(has_missing=has_missing)
    random = np.random.default_rng(5)
    w = {"none": np.ones(300), "whole": random.integers(0, 4, 300), "any": random.random(300)}[weights].astype(float)
    model = linear(max_depth=3, min_samples_leaf=15, leaf_features=features, leaf_alpha=alpha)
    model.fit(X, y, None if weights == "none" else w)
    rows, _ = make_table(seed=1, has_missing=has_missing)
    answers, leaf_of_rows, leaf = model.predict(rows), model.apply(rows), model.apply(X)
    for node in np.unique(leaf_of_rows):
        used = path_of(model.tree_.arrays, node) if features == "path" else [0, 1, 2, 3]
        own = (leaf == node) & (w > 0)
        x = X[own][:, used]
        means = [np.average(c[~np.isnan(c)], weights=w[own][~np.isnan(c)]) for c in x.T]
        ridge = Ridge(alpha=alpha).fit(np.where(np.isnan(x), means, x), y[own], w[own])
        asked = rows[leaf_of_rows == node][:, used]
        expected = ridge.predict(np.where(np.isnan(asked), means, asked))
        assert np.allclose(answers[leaf_of_rows == node], expected, rtol=1e-9, atol=1e-9)
        terms = model.tree_.linear.terms(node)
        assert model.tree_.linear.feature[terms].tolist() == used
        assert np.allclose(model.tree_.linear.coefficient[terms], ridge.coef_, rtol=1e-9)
        origin = model.tree_.linear.intercept(node, model.tree_.arrays.threshold[node])
        assert origin == pytest.approx(ridge.intercept_, rel=1e-9)


def test_the_tree_is_that_of_means():
    X, y = make_table()
    plain, modelled = CARTRegressor(max_depth=4).fit(X, y), linear(max_depth=4).fit(X, y)
    for name in ("test", "first_child", "threshold", "n_rows", "weight", "impurity"):
        assert np.array_equal(getattr(plain.tree_.arrays, name), getattr(modelled.tree_.arrays, name))
    assert plain.tree_.linear is None
    assert np.array_equal(plain.apply(X), modelled.apply(X))
    assert modelled.score(X, y) > plain.score(X, y)


def test_the_order_of_rows_and_repeated_rows_change_no_bit():
    X, y = make_table(has_missing=True)
    random = np.random.default_rng(3)
    times = random.integers(0, 4, len(y))
    order = random.permutation(np.repeat(np.arange(len(y)), times))
    one = linear(max_depth=4, leaf_features="all").fit(X, y, times)
    other = linear(max_depth=4, leaf_features="all").fit(X[order], y[order])
    for name in ("first", "feature", "coefficient", "fill"):
        assert np.array_equal(getattr(one.tree_.linear, name), getattr(other.tree_.linear, name))
    assert np.array_equal(one.predict(X), other.predict(X))


def test_pruning_comes_first():
    X, y = make_table()
    alphas = CARTRegressor(min_samples_leaf=15).cost_complexity_pruning_path(X, y).ccp_alphas
    assert np.array_equal(linear(min_samples_leaf=15).cost_complexity_pruning_path(X, y).ccp_alphas, alphas)
    model = linear(min_samples_leaf=15, ccp_alpha=alphas[-4]).fit(X, y)
    plain = CARTRegressor(min_samples_leaf=15, ccp_alpha=alphas[-4]).fit(X, y)
    leaf = model.apply(X)
    assert np.array_equal(leaf, plain.apply(X))
    assert model.get_n_leaves() == plain.get_n_leaves() < CARTRegressor(min_samples_leaf=15).fit(X, y).get_n_leaves()
    assert all(model.tree_.linear.terms(node).start < model.tree_.linear.terms(node).stop for node in set(leaf))


def test_a_fitted_tree_that_is_cut_answers_by_means_there():
    X, y = make_table()
    model = linear(min_samples_leaf=15).fit(X, y)
    node = int(model.tree_.first_child[0])
    snipped = model.snip(node)
    is_there = snipped.apply(X) == node
    assert np.allclose(snipped.predict(X[is_there]), y[is_there].mean())
    assert np.array_equal(snipped.predict(X[~is_there]), model.predict(X[~is_there]))
    alpha = model.cost_complexity_pruning_path(X, y).ccp_alphas[-4]
    pruned, early = model.prune("cost_complexity", ccp_alpha=alpha), clone(model).set_params(ccp_alpha=alpha).fit(X, y)
    assert np.array_equal(pruned.apply(X), early.apply(X))
    assert pruned.tree_.linear.n_terms < early.tree_.linear.n_terms


def test_rows_that_judge_a_tree_are_not_in_its_models():
    X, y = make_table()
    model = linear(min_samples_leaf=15, pruning="reduced_error", random_state=0).fit(X, y)
    assert model.tree_.n_rows[0] < len(y)
    leaf = model.apply(X)
    node = int(leaf[0])
    used = path_of(model.tree_.arrays, node)
    whole = Ridge().fit(X[leaf == node][:, used], y[leaf == node])
    assert not np.allclose(model.tree_.linear.coefficient[model.tree_.linear.terms(node)], whole.coef_, rtol=1e-6)


def test_a_single_leaf_has_no_path_and_answers_by_the_mean():
    X, y = make_table(20)
    assert np.allclose(linear(min_samples_leaf=20).fit(X, y).predict(X), y.mean())
    whole = linear(min_samples_leaf=20, leaf_features="all").fit(X, y)
    assert np.allclose(whole.predict(X), Ridge().fit(X, y).predict(X))


def test_leaves_of_one_row_or_one_value_are_constant():
    X = np.arange(6.0)[:, None]
    model = linear().fit(X, [0, 1, 2, 3, 4, 5])
    assert model.tree_.linear.n_terms == 0
    assert model.predict(X).tolist() == [0, 1, 2, 3, 4, 5]
    model = linear(max_depth=1).fit(X, [1, 1, 1, 5, 5, 5])
    assert model.predict([[-100.0], [100.0]]).tolist() == [1.0, 5.0]


def test_more_features_than_rows_in_a_leaf():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(12, 40)), random.normal(size=12)
    model = linear(max_depth=1, leaf_features="all").fit(X, y)
    leaf = model.apply(X)
    for node in np.unique(leaf):
        ridge = Ridge().fit(X[leaf == node], y[leaf == node])
        assert np.allclose(model.predict(X)[leaf == node], ridge.predict(X[leaf == node]), rtol=1e-9)


def test_categories_are_tested_but_are_no_terms():
    random = np.random.default_rng(0)
    frame = pd.DataFrame({"kind": random.choice(list("abc"), 200), "size": random.normal(size=200), "flat": 7.0})
    y = frame["size"] * frame["kind"].map({"a": 1.0, "b": -3.0, "c": 10.0}) + frame["kind"].map(ord)
    model = linear(max_depth=2, leaf_features="all", leaf_alpha=0.0).fit(frame, y)
    assert set(model.tree_.arrays.feature[~model.tree_.is_leaf]) >= {0}
    assert set(model.tree_.linear.feature) == {1}
    alone = linear(max_depth=2, leaf_features="all", leaf_alpha=0.0).fit(frame[["kind"]], y)
    assert alone.tree_.linear.n_terms == 0
    unseen = pd.DataFrame({"kind": ["z", None], "size": [0.0, np.nan], "flat": [7.0, 1e9]})
    assert np.isfinite(model.predict(unseen)).all()


def test_float32_is_read_as_it_is():
    X, y = make_table()
    X = X.astype(np.float32)
    narrow, wide = linear(max_depth=3).fit(X, y), linear(max_depth=3).fit(X.astype(np.float64), y)
    assert np.array_equal(narrow.predict(X), wide.predict(X.astype(np.float64)))
    assert np.array_equal(narrow.predict(X), narrow.predict(X.astype(np.float64)))
    assert np.array_equal(narrow.predict(np.asfortranarray(X)), narrow.predict(X))


def test_pickles_and_clones():
    X, y = make_table()
    model = linear(max_depth=3, leaf_alpha=2.5).fit(X, y)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    assert clone(model).get_params() == model.get_params()


def test_members_of_bags_and_boosting_keep_their_linear_leaves():
    X, y = make_table(80)
    for kind in (BaggingRegressor, AdaBoostRegressor):
        ensemble = kind(linear(max_depth=2), n_estimators=3, random_state=0).fit(X, y)
        assert all(member.tree_.linear is not None for member in ensemble.estimators_)
    bag = BaggingRegressor(linear(max_depth=2), n_estimators=3, random_state=0).fit(X, y)
    assert np.allclose(bag.predict(X), np.mean([member.predict(X) for member in bag.estimators_], axis=0))


# --- faults -------------------------------------------------------------------------------------------------


def refuses(error, *words):
    return pytest.raises(error, match="(?s)" + ".*".join(map(re.escape, words)))


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinite_values_are_refused_in_fit_and_predict(value):
    X, y = make_table()
    model = linear(max_depth=3).fit(X, y)
    broken = X.copy()
    broken[17, 2] = value
    with refuses(ValueError, f"Column 2 of X holds {value} in row 0", "finite number"):
        model.explain(broken[17])
    for call in (lambda: linear().fit(broken, y), lambda: model.predict(broken)):
        with refuses(ValueError, f"Column 2 of X holds {value} in row 17", "finite number", "leaf_model=None"):
            call()
    frame = pd.DataFrame(broken, columns=list("abcd"))
    with refuses(ValueError, "Column 'c' of X", "row 17"):
        linear().fit(frame, y)
    assert CARTRegressor().fit(broken, y).predict(broken).shape == y.shape


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_f16_what_fit_takes_predict_takes(value):
    X, y = make_table()
    weight = np.ones(len(y))
    X[17, 2], weight[17] = value, 0.0
    for call in (lambda: linear().fit(X, y, weight), lambda: linear().fit(X[:17], y[:17]).predict(X)):
        with refuses(ValueError, f"Column 2 of X holds {value} in row 17", "finite number"):
            call()
    X[17, 2], weight[18] = np.nan, 0.0
    assert linear().fit(X, y, weight).predict(X).shape == y.shape


def test_a_refused_fit_keeps_the_old_model():
    X, y = make_table()
    model = linear(max_depth=2).fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="infinite"):
        model.fit(np.where(X > 3.0, np.inf, X), y)
    assert np.array_equal(model.predict(X), before)


@pytest.mark.parametrize(
    "parameters",
    [
        {"leaf_model": "ridge"},
        {"leaf_model": True},
        {"leaf_features": None},
        {"leaf_features": "used"},
        {"leaf_alpha": -1.0},
        {"leaf_alpha": np.nan},
        {"leaf_alpha": np.inf},
        {"leaf_alpha": "1"},
        {"leaf_alpha": True},
    ],
)
def test_bad_parameters(parameters):
    X, y = make_table(20)
    with pytest.raises(InvalidParameterError, match=next(iter(parameters))):
        linear().set_params(**parameters).fit(X, y)


def test_monotone_constraints_are_refused():
    X, y = make_table(20)
    with refuses(ValueError, "monotonic_cst", "leaf_model='linear'"):
        linear(monotonic_cst=[1, 0, 0, 0]).fit(X, y)


def test_a_column_without_values_is_no_term():
    X, y = make_table()
    X[:, 1] = np.nan
    model = linear(max_depth=2, leaf_features="all").fit(X, y)
    assert 1 not in set(model.tree_.linear.feature)
    X[:, 1] = 5.0  # unknown to the models
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_targets_and_weights_of_any_size(size):
    X, y = make_table()
    model = linear(max_depth=2).fit(X, y * size / 100.0)
    assert np.isfinite(model.predict(X)).all()
    assert np.allclose(model.predict(X) / size * 100.0, linear(max_depth=2).fit(X, y).predict(X))
    light = linear(max_depth=2, leaf_alpha=0.0).fit(X, y, np.full(len(y), size))
    assert np.allclose(light.predict(X), linear(max_depth=2, leaf_alpha=0.0).fit(X, y).predict(X))
