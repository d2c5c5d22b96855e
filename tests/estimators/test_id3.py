"""The estimators ID3Classifier and ID3Regressor. Their growing is compared in `test_textbook_oracle`."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from spinney import ID3Classifier, ID3Regressor, datasets
from spinney._types import MULTIWAY, THRESHOLD


def tennis():
    table = datasets.load("play_tennis")
    return table.drop_columns(["play"]), table["play"]


def test_play_tennis_by_hand():
    """Outlook first (gain 0.247), then humidity and wind: the tree of every lecture."""
    X, y = tennis()
    model = ID3Classifier().fit(X, y)
    names = [model.feature_names_in_[j] for j in model.tree_.arrays.feature if j >= 0]
    assert sorted(names) == ["humidity", "outlook", "wind"]
    assert names[0] == "outlook"
    assert (model.get_n_leaves(), model.get_depth()) == (5, 2)
    assert model.score(X, y) == 1.0
    assert set(model.tree_.kind[~model.tree_.is_leaf]) == {MULTIWAY}
    gain = model.tree_.arrays.impurity[0] - np.average(
        model.tree_.arrays.impurity[1:4], weights=model.tree_.weight[1:4]
    )
    assert gain == pytest.approx(0.24674981977443912)


@pytest.mark.parametrize("criterion", ["entropy", "gini", "gain_ratio"])
def test_criteria_choose_as_their_formulas(criterion):
    """Two features: one of many levels with more gain, one of two levels with a larger ratio."""
    rng = np.random.default_rng(0)
    y = np.tile([0, 1], 12)
    many = np.arange(24) // 2 * 2 + np.where(rng.random(24) < 0.9, y, 1 - y)
    two = np.where(np.arange(24) < 18, y, 0)
    X = np.stack([many % 24, two], axis=1).astype(str)

    def impurity(labels):
        p = np.bincount(labels, minlength=2) / len(labels)
        if criterion == "gini":
            return 1 - (p**2).sum()
        return -sum(x * np.log2(x) for x in p if x > 0)

    figures = []
    for column in X.T:
        parts = [y[column == level] for level in np.unique(column)]
        shares = np.array([len(part) / len(y) for part in parts])
        gain = impurity(y) - sum(share * impurity(part) for share, part in zip(shares, parts, strict=True))
        figures.append(gain / -(shares * np.log2(shares)).sum() if criterion == "gain_ratio" else gain)
    model = ID3Classifier(criterion=criterion, categorical_features=[0, 1], max_depth=1).fit(X, y)
    assert model.tree_.arrays.feature[0] == int(np.argmax(figures))
    assert figures[0] != pytest.approx(figures[1])
    assert int(np.argmax(figures)) == (1 if criterion == "gain_ratio" else 0)


def test_numbers_may_return_and_categories_not():
    X = pd.DataFrame({"x": np.arange(8.0), "c": list("aabbaabb")})
    y = [0, 1, 0, 1, 1, 0, 1, 0]
    tree = ID3Classifier().fit(X, y).tree_.arrays
    for node in np.flatnonzero(tree.is_leaf):
        path, at = [], int(node)
        while at > 0:
            at = int(tree.parent[at])
            path.append(int(tree.feature[at]))
        assert path.count(1) <= 1
    assert np.count_nonzero(tree.kind == THRESHOLD) > 1
    cuts = tree.threshold[tree.kind == THRESHOLD]
    assert np.all(cuts % 1 == 0.5)  # midpoints of neighbours


def test_xor_is_grown_through_a_test_without_gain():
    X, y = pd.DataFrame({"a": list("uuvv"), "b": list("uvuv")}), [0, 1, 1, 0]
    assert ID3Classifier().fit(X, y).predict(X).tolist() == y
    assert ID3Regressor().fit(X, y).predict(X).tolist() == y
    assert ID3Classifier(min_impurity_decrease=0.01).fit(X, y).get_n_leaves() == 1


def test_means_and_standard_deviations():
    """Standard deviation reduction of a small table, by hand."""
    X = pd.DataFrame({"a": list("uuvvww"), "b": list("uvuvuv")})
    y = np.array([1.0, 2, 10, 11, 20, 22])
    model = ID3Regressor(criterion="sdr", max_depth=1).fit(X, y)
    assert model.predict(X).tolist() == [1.5, 1.5, 10.5, 10.5, 21, 21]
    tree = model.tree_.arrays
    found = np.ldexp(tree.impurity, tree.impurity_exponent)
    np.testing.assert_allclose(found, [y.std(), 0.5, 0.5, 1.0], rtol=1e-12)
    by_variance = ID3Regressor(max_depth=1).fit(X, y).tree_.arrays
    np.testing.assert_allclose(np.ldexp(by_variance.impurity, by_variance.impurity_exponent)[0], y.var(), rtol=1e-12)


@pytest.mark.parametrize("kind", [ID3Classifier, ID3Regressor])
def test_limits_hold(kind):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=200), "c": rng.integers(0, 5, 200).astype(str)})
    y = rng.integers(0, 2, 200)
    assert kind(max_depth=2).fit(X, y).get_depth() == 2
    for name, limit in {"min_samples_leaf": 9, "min_samples_split": 30}.items():
        tree = kind(**{name: limit}).fit(X, y).tree_.arrays
        where = tree.is_leaf & ~tree.is_empty if name == "min_samples_leaf" else ~tree.is_leaf
        assert tree.n_rows[where].min() >= limit
        fraction = kind(**{name: limit / 200}).fit(X, y).tree_.arrays
        assert np.array_equal(fraction.test, tree.test)
    weight = rng.random(200)
    tree = kind(min_weight_fraction_leaf=0.05).fit(X, y, weight).tree_.arrays
    assert tree.n_leaves > 2
    assert tree.weight[tree.is_leaf & ~tree.is_empty].min() >= 0.05 * weight.sum()


@pytest.mark.parametrize("kind", [ID3Classifier, ID3Regressor])
def test_prunings_of_trees_with_many_branches(kind):
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"x": rng.normal(size=300), "c": rng.choice(list("abcd"), 300), "d": rng.choice(list("uvw"), 300)})
    y = ((X["x"] > 0) ^ (X["c"] == "a") ^ (rng.random(300) < 0.2)).astype(int)
    whole = kind().fit(X[:200], y[:200])
    held = X[200:], y[200:]
    leaves = {"whole": whole.get_n_leaves()}
    for method, options in {
        "cost_complexity": {"ccp_alpha": 0.01},
        "min_gain": {"min_gain": 0.03},
        "merge": {},
    }.items():
        pruned = whole.prune(method, **options)
        pruned.tree_.check()
        leaves[method] = pruned.get_n_leaves()
    reduced = whole.prune("reduced_error", *held)
    reduced.tree_.check()
    before, after = reduced.pruning_.error
    assert after < before
    assert leaves["cost_complexity"] < leaves["whole"]
    assert leaves["min_gain"] < leaves["whole"]
    chosen = kind(ccp_alpha="cv", random_state=0).fit(X, y)
    assert 1 < chosen.get_n_leaves() < leaves["whole"]
    if kind is ID3Classifier:
        assert whole.prune("pessimistic").get_n_leaves() < leaves["whole"]
        raised = whole.prune("pessimistic", X[:200], y[:200], raising=True)
        raised.tree_.check()


def test_answers_to_the_tools_of_scikit_learn():
    X, y = tennis()
    frame = X.to_pandas()
    search = GridSearchCV(ID3Classifier(), {"criterion": ["entropy", "gini"]}, cv=2).fit(frame, y.to_numpy())
    assert search.best_score_ > 0.4
    model = ID3Classifier(trace=True).fit(X, y)
    assert "outlook" in str(model.trace_)
    again = pickle.loads(pickle.dumps(model))
    assert again.predict(X).tolist() == model.predict(X).tolist()
    assert clone(model).get_params() == model.get_params()
    assert model.decision_path(X).shape == (14, model.tree_.n_nodes)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
