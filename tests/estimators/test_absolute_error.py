"""criterion="absolute_error": scikit-learn's trees, and what every method promises, by medians."""

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error
from sklearn.tree import DecisionTreeRegressor

import spinney
from spinney import (
    AdaBoostRegressor,
    BaggingRegressor,
    CARTRegressor,
    ExtraTreesRegressor,
    RandomForestRegressor,
)

MAKERS = {
    "CART": lambda **more: CARTRegressor(criterion="absolute_error", max_depth=5, **more),
    "forest": lambda **more: RandomForestRegressor(5, criterion="absolute_error", random_state=0, **more),
    "extra": lambda **more: ExtraTreesRegressor(5, criterion="absolute_error", random_state=0, **more),
    "bagging": lambda **more: BaggingRegressor(CARTRegressor(criterion="absolute_error"), 5, random_state=0, **more),
}


def make_table(seed, n_rows=300):
    """Four features, and targets with some outliers."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, 4))
    y = np.exp(2.0 * X[:, 0] - X[:, 1]) + 0.3 * rng.standard_normal(n_rows)
    y[:: n_rows // 10] *= 20.0
    return X, y


def leaf_error(tree):
    """Absolute error of all training rows from the values of their leaves, by the nodes' own figures."""
    is_leaf = tree.children_left < 0
    return float((tree.impurity * tree.weighted_n_node_samples)[is_leaf].sum())


def lower_and_upper(y, weight):
    """The weighted medians: every number between these has the least sum of absolute deviations."""
    order = np.argsort(y)
    below = np.cumsum(weight[order])
    return y[order][2 * below >= below[-1]][0], y[order][2 * below > below[-1]][0]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("settings", [{}, {"min_samples_leaf": 7}, {"min_impurity_decrease": 0.01}], ids=str)
def test_trees_are_those_of_scikit_learn(seed, settings):
    X, y = make_table(seed)
    weight = np.random.default_rng(seed).random(len(y)) + 0.1  # so that no two cuts tie
    peer = DecisionTreeRegressor(criterion="absolute_error", max_depth=6, random_state=0, **settings)
    peer.fit(X, y, weight)
    model = CARTRegressor(criterion="absolute_error", max_depth=6, **settings).fit(X, y, weight)
    tree = model.tree_

    assert tree.node_count == peer.tree_.node_count
    np.testing.assert_allclose(np.sort(tree.impurity), np.sort(peer.tree_.impurity), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(np.sort(tree.value.ravel()), np.sort(peer.tree_.value.ravel()), rtol=1e-12)
    np.testing.assert_allclose(model.predict(X), peer.predict(X), rtol=1e-12)
    assert tree.node_count > 9


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("has_weights", [False, True])
def test_one_test_is_as_good_as_that_of_scikit_learn_where_many_tie(seed, has_weights):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 9, (80, 3)).astype(float), rng.integers(0, 6, 80).astype(float)
    X[rng.random((80, 3)) < 0.1] = np.nan
    weight = rng.integers(1, 4, 80).astype(float) if has_weights else None
    peer = DecisionTreeRegressor(criterion="absolute_error", max_depth=1, random_state=0).fit(X, y, weight)
    ours = CARTRegressor(criterion="absolute_error", max_depth=1).fit(X, y, weight)
    assert leaf_error(ours.tree_) == pytest.approx(leaf_error(peer.tree_), rel=1e-12)
    assert ours.tree_.impurity[0] == pytest.approx(peer.tree_.impurity[0], rel=1e-12)


@pytest.mark.parametrize("has_weights", [False, True])
def test_nodes_hold_a_median_and_the_mean_deviation_from_it(has_weights):
    X, y = make_table(1)
    weight = np.random.default_rng(0).integers(1, 5, len(y)).astype(float) if has_weights else np.ones(len(y))
    model = CARTRegressor(criterion="absolute_error", max_depth=3).fit(X, y, weight)
    path = model.decision_path(X).toarray().astype(bool)
    for node in range(model.tree_.node_count):
        rows, value = path[:, node], model.tree_.value[node, 0, 0]
        low, high = lower_and_upper(y[rows], weight[rows])
        assert value == 0.5 * (low + high)
        error = np.average(np.abs(y[rows] - value), weights=weight[rows])
        assert model.tree_.impurity[node] == pytest.approx(error, rel=1e-12)


def test_outliers_do_not_move_it():
    X = np.arange(40.0)[:, None]
    y = np.where(X[:, 0] < 20, 1.0, 3.0)
    y[[3, 9]] = 1e6
    model = CARTRegressor(criterion="absolute_error", max_depth=1).fit(X, y)
    assert model.tree_.threshold[0] == 19.5
    np.testing.assert_array_equal(model.predict([[0.0], [39.0]]), [1.0, 3.0])


@pytest.mark.parametrize("scale", [1e-250, 1e-12, 1.0, 3e7, 1e250])
def test_the_unit_of_the_target_changes_its_units_only(scale):
    X, y = make_table(2)
    plain = CARTRegressor(criterion="absolute_error", max_depth=4).fit(X, y)
    scaled = CARTRegressor(criterion="absolute_error", max_depth=4).fit(X, y * scale)
    assert scaled.tree_.node_count == plain.tree_.node_count
    np.testing.assert_allclose(scaled.tree_.impurity, plain.tree_.impurity * scale, rtol=1e-9)
    assert mean_absolute_error(y, scaled.predict(X) / scale) == pytest.approx(mean_absolute_error(y, plain.predict(X)))


@pytest.mark.parametrize("name", MAKERS)
def test_same_answers_for_any_threads(name):
    X, y = make_table(3)
    more = {} if name == "CART" else {"n_jobs": 2}
    np.testing.assert_array_equal(MAKERS[name]().fit(X, y).predict(X), MAKERS[name](**more).fit(X, y).predict(X))


@pytest.mark.parametrize("missing", ["learned", "branch"])
@pytest.mark.parametrize("splitter", ["best", "random"])
def test_weights_are_copies_and_the_order_of_rows_does_not_matter(missing, splitter):
    X, y = make_table(4)
    X[::7, 0] = np.nan
    X[:, 3] = np.floor(9 * X[:, 3])
    weight = np.arange(len(y)) % 4
    copies = np.repeat(np.arange(len(y)), weight)
    order = np.random.default_rng(0).permutation(len(y))

    def make():
        return CARTRegressor(
            criterion="absolute_error", missing=missing, splitter=splitter, categorical_features=[3], random_state=0
        )

    one, two = make().fit(X, y, weight), make().fit(X[copies], y[copies])
    three = make().fit(X[order], y[order], weight[order])
    for other in (two, three):
        for name in ("test", "threshold", "impurity", "answers", "weight", "subsets"):
            ours, theirs = (getattr(model.tree_.arrays, name) for model in (one, other))
            np.testing.assert_array_equal(ours, theirs)


def test_a_node_of_more_rows_than_a_key_has_positions():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 50, (70_000, 1)).astype(float), rng.standard_normal(70_000)
    y += X[:, 0] > 30
    model = CARTRegressor(criterion="absolute_error", max_depth=1).fit(X, y)
    assert model.tree_.threshold[0] == 30.5
    for side, value in zip((X[:, 0] <= 30, X[:, 0] > 30), model.predict([[0.0], [49.0]]), strict=True):
        assert value == np.median(y[side])


def test_medians_keep_to_monotone_constraints():
    X, y = make_table(5)
    model = CARTRegressor(criterion="absolute_error", monotonic_cst=[1, -1, 0, 0], min_samples_leaf=3).fit(X, y)
    moved = X.copy()
    moved[:, 0] += 0.1
    assert (model.predict(moved) >= model.predict(X)).all()
    moved[:, 1] -= 0.1
    assert (model.predict(moved) >= model.predict(X)).all()
    assert model.get_n_leaves() > 9


def test_out_of_bag_results_importances_and_honest_trees():
    X, y = make_table(6)
    y = np.minimum(y, 10.0)
    forest = RandomForestRegressor(30, criterion="absolute_error", oob_score=True, random_state=0).fit(X, y)
    assert mean_absolute_error(y, forest.oob_prediction_) < mean_absolute_error(y, np.full(len(y), np.median(y)))
    assert np.argmax(forest.feature_importances_) == 0
    assert forest.feature_importances_.sum() == pytest.approx(1.0)
    honest = RandomForestRegressor(1, criterion="absolute_error", honest=True, random_state=0).fit(X, y)
    tree = honest.forest_[0]
    assert 0.5 * np.median(y) < tree.values()[0] < 0.95 * np.mean(y)  # a median, not the mean of its leaves
    assert np.isfinite(honest.predict(X)).all()


def test_boosted_trees_and_stumps():
    X, y = make_table(7)
    for max_depth in (1, 3):
        tree = CARTRegressor(criterion="absolute_error", max_depth=max_depth)
        model = AdaBoostRegressor(tree, n_estimators=5, random_state=0).fit(X, y)
        assert mean_absolute_error(y, model.predict(X)) < np.mean(np.abs(y - np.median(y)))


@pytest.mark.parametrize("name", MAKERS)
def test_files_and_pickles_keep_the_medians(name, tmp_path):
    X, y = make_table(8)
    model = MAKERS[name]().fit(X, y)
    model.save_model(tmp_path / "m.spinney")
    again = spinney.load_model(tmp_path / "m.spinney")
    assert b'"version":"1.3"' in (tmp_path / "m.spinney").read_bytes()
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    ours, theirs = ((one.tree_.arrays if name == "CART" else one.forest_[0]) for one in (model, again))
    np.testing.assert_array_equal(ours.values(), theirs.values())
    assert not np.allclose(ours.values()[0], (ours.weight * ours.threshold)[ours.is_leaf].sum() / ours.weight[0])


def test_text_names_medians_and_a_trace_is_refused():
    X, y = make_table(9)
    model = CARTRegressor(criterion="absolute_error", max_depth=2).fit(X, y)
    assert f"[{np.median(y):.7g}]" in model.tree_.arrays.to_text()
    with pytest.raises(ValueError, match="there is no trace of a tree by criterion='absolute_error'"):
        spinney.trace(model, X, y)
    with pytest.raises(ValueError, match="there is no trace of a tree by criterion='absolute_error'"):
        CARTRegressor(criterion="absolute_error").fit(X, y, trace=True)
    with pytest.raises(ValueError, match="leaf_model='linear': such models begin at the mean of a leaf"):
        CARTRegressor(criterion="absolute_error", leaf_model="linear").fit(X, y)


def test_pruning_by_the_absolute_error():
    X, y = make_table(10)
    weight = np.random.default_rng(0).random(len(y)) + 0.1
    peer = DecisionTreeRegressor(criterion="absolute_error", max_depth=5, ccp_alpha=0.01, random_state=0)
    peer.fit(X, y, weight)
    ours = CARTRegressor(criterion="absolute_error", max_depth=5, ccp_alpha=0.01).fit(X, y, weight)
    assert 3 < ours.tree_.node_count < 63
    assert ours.tree_.node_count == peer.tree_.node_count
    np.testing.assert_allclose(ours.predict(X), peer.predict(X), rtol=1e-12)
    np.testing.assert_array_equal(ours.tree_.arrays.values()[0], ours.tree_.value[0, 0, 0])
