"""criterion="poisson": scikit-learn's trees, and what every method promises, by another impurity."""

import numpy as np
import pytest
from sklearn.metrics import mean_poisson_deviance
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
    "CART": lambda **more: CARTRegressor(criterion="poisson", max_depth=5, **more),
    "forest": lambda **more: RandomForestRegressor(5, criterion="poisson", random_state=0, **more),
    "extra": lambda **more: ExtraTreesRegressor(5, criterion="poisson", random_state=0, **more),
    "bagging": lambda **more: BaggingRegressor(CARTRegressor(criterion="poisson"), 5, random_state=0, **more),
}


def make_table(seed, n_rows=300, *, is_count=False):
    """Rates of four features; unless they are counts, targets have no ties."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, 4))
    y = rng.poisson(np.exp(2.0 * X[:, 0] - X[:, 1])).astype(float)
    return X, y if is_count else y + rng.random(n_rows)


def rules_of(tree, node=0):
    """Rows, feature and threshold of every node, from the left to the right."""
    rules = [(int(tree.n_node_samples[node]), int(tree.feature[node]), float(tree.threshold[node]))]
    if tree.children_left[node] < 0:
        return rules
    return rules_of(tree, tree.children_left[node]) + rules + rules_of(tree, tree.children_right[node])


def half_deviance(y, weight=None):
    mean = np.average(y, weights=weight)
    return mean_poisson_deviance(y, np.full(len(y), mean), sample_weight=weight) / 2.0


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("kind", ["none", "whole", "fractions"])
@pytest.mark.parametrize("settings", [{}, {"min_samples_leaf": 7}, {"min_impurity_decrease": 0.01}], ids=str)
def test_trees_are_those_of_scikit_learn(seed, kind, settings):
    X, y = make_table(seed)
    rng = np.random.default_rng(seed)
    weight = {"none": None, "whole": rng.integers(1, 5, len(y)).astype(float), "fractions": rng.random(len(y)) + 0.1}
    peer = DecisionTreeRegressor(criterion="poisson", max_depth=6, random_state=0, **settings)
    peer.fit(X, y, weight[kind])
    model = CARTRegressor(criterion="poisson", max_depth=6, **settings).fit(X, y, weight[kind])
    tree = model.tree_

    assert tree.node_count == peer.tree_.node_count
    np.testing.assert_allclose(np.sort(tree.impurity), np.sort(peer.tree_.impurity), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.predict(X), peer.predict(X), rtol=1e-9)
    if "min_samples_leaf" in settings:  # with fewer rows, several features part them alike
        assert [rule[:2] for rule in rules_of(tree)] == [rule[:2] for rule in rules_of(peer.tree_)]
        cuts, theirs = ([rule[2] for rule in rules_of(one)] for one in (tree, peer.tree_))
        np.testing.assert_allclose(cuts, theirs, rtol=1e-6)
    assert tree.node_count > 9


def test_no_leaf_predicts_that_nothing_happens():
    X, y = make_table(0, is_count=True)
    assert np.mean(y == 0.0) > 0.2
    for make in MAKERS.values():
        assert make().fit(X, y).predict(X).min() > 0.0
    tree = CARTRegressor(criterion="poisson").fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 0.0, 4.0, 6.0])
    assert tree.tree_.node_count == 3  # 0 | 0 4 6 and 0 0 | 4 6 are refused
    assert tree.tree_.threshold[0] == 2.5
    plain = CARTRegressor().fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 0.0, 4.0, 6.0])
    assert plain.tree_.threshold[0] == 1.5


def test_the_impurity_of_a_node_is_half_the_deviance_of_its_rows():
    X, y = make_table(1)
    model = CARTRegressor(criterion="poisson", max_depth=3).fit(X, y)
    path = model.decision_path(X).toarray().astype(bool)
    for node, impurity in enumerate(model.tree_.impurity):
        assert impurity == pytest.approx(half_deviance(y[path[:, node]]), rel=1e-10)


@pytest.mark.parametrize("scale", [1e-250, 1e-12, 1.0, 3e7, 1e250])
def test_the_unit_of_the_target_changes_its_units_only(scale):
    X, y = make_table(2)
    plain = CARTRegressor(criterion="poisson", max_depth=4).fit(X, y)
    scaled = CARTRegressor(criterion="poisson", max_depth=4).fit(X, y * scale)
    np.testing.assert_array_equal(scaled.tree_.threshold, plain.tree_.threshold)
    np.testing.assert_allclose(scaled.tree_.impurity, plain.tree_.impurity * scale, rtol=1e-9)
    np.testing.assert_allclose(scaled.predict(X), plain.predict(X) * scale, rtol=1e-12)


@pytest.mark.parametrize("name", MAKERS)
def test_same_answers_for_any_threads(name):
    X, y = make_table(3, is_count=True)
    more = {} if name == "CART" else {"n_jobs": 2}
    np.testing.assert_array_equal(MAKERS[name]().fit(X, y).predict(X), MAKERS[name](**more).fit(X, y).predict(X))


@pytest.mark.parametrize("missing", ["learned", "branch"])
def test_weights_are_copies_and_the_order_of_rows_does_not_matter(missing):
    X, y = make_table(4, is_count=True)
    X[::7, 0] = np.nan
    weight = np.arange(len(y)) % 4
    copies = np.repeat(np.arange(len(y)), weight)
    order = np.random.default_rng(0).permutation(len(y))
    make = lambda: CARTRegressor(criterion="poisson", missing=missing)  # noqa: E731
    one, two = make().fit(X, y, weight), make().fit(X[copies], y[copies])
    three = make().fit(X[order], y[order], weight[order])
    for other in (two, three):
        for name in ("feature", "threshold", "impurity", "value", "weighted_n_node_samples"):
            np.testing.assert_array_equal(getattr(one.tree_, name), getattr(other.tree_, name))


def test_missing_values_take_the_side_where_they_lower_the_deviance():
    X = np.array([0.0, 1.0, 2.0, 3.0, np.nan, np.nan])[:, None]
    for rates, side in (([1.0, 1.0, 9.0, 9.0, 8.0, 8.0], 9.0), ([1.0, 1.0, 9.0, 9.0, 2.0, 2.0], 1.0)):
        model = CARTRegressor(criterion="poisson", max_depth=1).fit(X, rates)
        assert model.predict([[np.nan]]) == model.predict([[0.0 if side == 1.0 else 3.0]])


def test_out_of_bag_results_importances_and_honest_trees():
    X, y = make_table(5, is_count=True)
    forest = RandomForestRegressor(30, criterion="poisson", oob_score=True, random_state=0).fit(X, y)
    assert forest.oob_score_ > 0.1
    assert np.argmax(forest.feature_importances_) == 0
    assert forest.feature_importances_.sum() == pytest.approx(1.0)
    honest = RandomForestRegressor(10, criterion="poisson", honest=True, random_state=0).fit(X, y)
    assert np.isfinite(honest.predict(X)).all()


def test_boosted_trees_and_stumps():
    X, y = make_table(6)
    for max_depth in (1, 3):
        model = AdaBoostRegressor(
            CARTRegressor(criterion="poisson", max_depth=max_depth), n_estimators=5, random_state=0
        )
        assert model.fit(X, y).score(X, y) > 0.0


def test_text_trace_and_files_name_the_criterion(tmp_path):
    X, y = make_table(7, is_count=True)
    model = CARTRegressor(criterion="poisson", max_depth=2).fit(X, y, trace=True)
    frame = model.trace_.to_frame()
    root = frame[(frame["node"] == 0) & frame["chosen"]].iloc[0]
    assert root["impurity_before"] == pytest.approx(half_deviance(y), rel=1e-9)
    left = X[:, int(model.tree_.feature[0])] <= model.tree_.threshold[0]
    after = left.mean() * half_deviance(y[left]) + (~left).mean() * half_deviance(y[~left])
    assert root["impurity_after"] == pytest.approx(after, rel=1e-9)
    assert "a branch whose targets are all 0" in set(
        CARTRegressor(criterion="poisson", max_depth=1)
        .fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 0.0, 4.0, 6.0], trace=True)
        .trace_.to_frame()["reason"]
    )
    assert "half Poisson deviance" in model.trace_.to_text()
    model.save_model(tmp_path / "m.spinney")
    again = spinney.load_model(tmp_path / "m.spinney")
    assert again.criterion == "poisson"
    assert b'"version":"1.3"' in (tmp_path / "m.spinney").read_bytes()
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_pruning_by_the_deviance():
    X, y = make_table(8)
    peer = DecisionTreeRegressor(criterion="poisson", max_depth=5, ccp_alpha=0.02, random_state=0).fit(X, y)
    ours = CARTRegressor(criterion="poisson", max_depth=5, ccp_alpha=0.02).fit(X, y)
    assert ours.tree_.node_count == peer.tree_.node_count
    np.testing.assert_allclose(ours.predict(X), peer.predict(X), rtol=1e-9)
    before, after = ours.pruning_.error
    assert after == pytest.approx(np.mean((y - ours.predict(X)) ** 2))
    assert before < after


@pytest.mark.parametrize("name", MAKERS)
def test_targets_that_have_no_deviance_are_refused(name):
    X = np.arange(4.0)[:, None]
    with pytest.raises(
        ValueError, match=r"negative which is not allowed for Poisson.*y is -2 in row 1; criterion='squared_e"
    ):
        MAKERS[name]().fit(X, [1.0, -2.0, 3.0, 4.0])
    with pytest.raises(ValueError, match=r"Sum of y is not strictly positive.*: y is 0 in every row"):
        MAKERS[name]().fit(X, np.zeros(4))
    with pytest.raises(ValueError, match="y is 0 in every row"):
        MAKERS[name]().fit(X, [0.0, 0.0, 0.0, 5.0], sample_weight=[1.0, 1.0, 1.0, 0.0])
