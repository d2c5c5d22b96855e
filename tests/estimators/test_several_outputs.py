"""y of several columns: scikit-learn's trees, shapes and scores, files, and what is refused by name."""

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.ensemble import ExtraTreesRegressor as SklearnExtraTrees
from sklearn.ensemble import RandomForestRegressor as SklearnForest
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_regressor_multioutput

import spinney
from spinney import (
    CARTRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestRegressor,
)

MAKERS = {
    "CART": lambda **more: CARTRegressor(max_depth=5, **more),
    "forest": lambda **more: RandomForestRegressor(8, random_state=0, **more),
    "extra": lambda **more: ExtraTreesRegressor(8, random_state=0, **more),
}


def make_table(seed, n_rows=300):
    """Four features, and three targets of different scales."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, 4))
    noise = rng.standard_normal((n_rows, 3))
    Y = np.stack([X[:, 0], 3.0 * X[:, 1], 0.2 * X[:, 0] * X[:, 2]], axis=1) + 0.1 * noise
    return X, Y


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", ["none", "whole", "fractions"])
@pytest.mark.parametrize("settings", [{"min_samples_leaf": 5}, {"max_leaf_nodes": 9}, {"ccp_alpha": 0.005}], ids=str)
def test_trees_are_those_of_scikit_learn(seed, kind, settings):
    X, Y = make_table(seed)
    rng = np.random.default_rng(seed)
    weight = {"none": None, "whole": rng.integers(1, 5, len(Y)).astype(float), "fractions": rng.random(len(Y)) + 0.1}
    peer = DecisionTreeRegressor(random_state=0, **settings).fit(X, Y, weight[kind])
    model = CARTRegressor(**settings).fit(X, Y, weight[kind])

    assert model.n_outputs_ == peer.n_outputs_ == 3
    assert model.tree_.node_count == peer.tree_.node_count
    assert model.tree_.value.shape == peer.tree_.value.shape
    np.testing.assert_allclose(model.predict(X), peer.predict(X), rtol=1e-9)
    np.testing.assert_allclose(np.sort(model.tree_.impurity), np.sort(peer.tree_.impurity), rtol=1e-9, atol=1e-12)
    if "max_leaf_nodes" in settings:  # in nodes of few rows, two features may part them alike
        np.testing.assert_allclose(model.feature_importances_, peer.feature_importances_, rtol=1e-7)
    assert model.score(X, Y) == pytest.approx(peer.score(X, Y))
    np.testing.assert_allclose(model.to_sklearn().predict(X), peer.predict(X), rtol=1e-9)


@pytest.mark.parametrize(
    ("ours", "theirs"), [(RandomForestRegressor, SklearnForest), (ExtraTreesRegressor, SklearnExtraTrees)]
)
def test_forests_score_as_those_of_scikit_learn(ours, theirs):
    X, Y = make_table(0, 400)
    X_new, Y_new = make_table(1, 400)
    found = [ours(30, bootstrap=True, oob_score=True, random_state=seed).fit(X, Y) for seed in range(4)]
    expected = [theirs(30, bootstrap=True, oob_score=True, random_state=seed).fit(X, Y) for seed in range(4)]
    for score in (lambda model: model.score(X_new, Y_new), lambda model: model.oob_score_):
        a, b = (np.array([score(model) for model in models]) for models in (found, expected))
        assert abs(a.mean() - b.mean()) < 2.0 * np.sqrt(a.var(ddof=1) / 4 + b.var(ddof=1) / 4) + 0.002
    model = found[0]
    assert model.oob_prediction_.shape == Y.shape
    assert model.predict_trees(X_new[:7]).shape == (30, 7, 3)
    np.testing.assert_allclose(model.predict_trees(X_new[:7]).mean(axis=0), model.predict(X_new[:7]), rtol=1e-12)
    np.testing.assert_allclose(model.estimators_[3].predict(X_new[:7]), model.predict_trees(X_new[:7])[3])


def test_out_of_bag_predictions_are_means_of_the_trees_that_lack_the_row():
    X, Y = make_table(2, 120)
    model = RandomForestRegressor(30, oob_score=True, random_state=0).fit(X, Y)
    by_tree, bags = model.predict_trees(X), model.estimators_samples_
    for i in (0, 17, 80):
        outside = [t for t in range(30) if i not in bags[t]]
        np.testing.assert_allclose(model.oob_prediction_[i], by_tree[outside, i].mean(axis=0), rtol=1e-12)
    assert model.oob_curve_[-1] == pytest.approx(np.mean((model.oob_prediction_ - Y) ** 2))


@pytest.mark.parametrize("name", MAKERS)
def test_one_column_twice_is_one_column(name):
    X, Y = make_table(3)
    one, two = MAKERS[name]().fit(X, Y[:, 0]), MAKERS[name]().fit(X, Y[:, [0, 0]])
    np.testing.assert_allclose(two.predict(X), np.stack([one.predict(X)] * 2, axis=1), rtol=1e-12)


@pytest.mark.parametrize("name", MAKERS)
def test_files_pickles_threads_frames_and_missing_values(name, tmp_path):
    X, Y = make_table(4)
    X[::7, 0] = np.nan
    model = MAKERS[name](missing="branch").fit(X, Y.tolist())
    expected = model.predict(X)
    assert expected.shape == Y.shape
    model.save_model(tmp_path / "m.spinney")
    again = spinney.load_model(tmp_path / "m.spinney")
    predictor = spinney.load_predictor(tmp_path / "m.spinney")
    more = {} if name == "CART" else {"n_jobs": 2}
    others = [again.predict(X), pickle.loads(pickle.dumps(model)).predict(X), predictor.predict(X), predictor(X)]
    others.append(MAKERS[name](missing="branch", **more).fit(X, Y).predict(X))
    for other in others:
        np.testing.assert_array_equal(other, expected)
    np.testing.assert_array_equal(predictor(X[3]), expected[3])


def test_categories_weights_and_copies():
    X, Y = make_table(5)
    X[:, 3] = np.floor(7 * X[:, 3])
    Y[:, 2] += np.isin(X[:, 3], [1, 4])
    weight = np.arange(len(Y)) % 3
    copies = np.repeat(np.arange(len(Y)), weight)
    one = CARTRegressor(categorical_features=[3]).fit(X, Y, weight).tree_.arrays
    two = CARTRegressor(categorical_features=[3]).fit(X[copies], Y[copies]).tree_.arrays
    for name in ("test", "threshold", "answers", "impurity", "subsets", "weight"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert 3 in one.feature


def test_text_shows_every_output():
    X, Y = make_table(6)
    text = CARTRegressor(max_depth=1).fit(X, Y).tree_.to_text()
    assert text.startswith(f"[{Y[:, 0].mean():.6g}, {Y[:, 1].mean():.6g}, {Y[:, 2].mean():.6g}]")
    assert text.splitlines()[0].count(",") == 2


REFUSED = {
    "to_svg": lambda tree, _: tree.tree_.to_svg(),
    "to_rules": lambda tree, _: tree.tree_.to_rules(),
    "explain": lambda tree, _: tree.explain([0.1, 0.2, 0.3, 0.4]),
    "merge": lambda tree, _: tree.prune("merge"),
    "export": lambda tree, _: spinney.export(tree, to="json"),
    "shap": lambda _, forest: forest.shap_values([[0.1, 0.2, 0.3, 0.4]]),
    "predict_quantiles": lambda _, forest: forest.predict_quantiles([[0.1, 0.2, 0.3, 0.4]]),
    "predict_interval": lambda _, forest: forest.predict_interval([[0.1, 0.2, 0.3, 0.4]]),
    "predict_variance": lambda _, forest: forest.predict_variance([[0.1, 0.2, 0.3, 0.4]]),
    "decompose": lambda _, forest: forest.decompose([[0.1, 0.2, 0.3, 0.4]]),
    "vote_table": lambda _, forest: forest.vote_table([0.1, 0.2, 0.3, 0.4]),
    "importance": lambda _, forest: forest.importance("permutation", *make_table(7)),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_takes_one_output_says_so(what):
    X, Y = make_table(7)
    tree = CARTRegressor(max_depth=2).fit(X, Y)
    forest = RandomForestRegressor(3, random_state=0).fit(X, Y)
    with pytest.raises(
        ValueError, match=r"not there for several outputs, and this model has 3 numbers in a leaf. Fit one model for"
    ):
        REFUSED[what](tree, forest)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (CARTRegressor(criterion="absolute_error"), "criterion='absolute_error' takes one output"),
        (CARTRegressor(monotonic_cst=[1, 0, 0, 0]), "monotonic_cst takes one output, and y has 3 columns"),
        (CARTRegressor(leaf_model="linear"), "leaf_model='linear' takes one output"),
        (CARTRegressor(ccp_alpha="cv"), "ccp_alpha='cv' takes one output"),
        (CARTRegressor(pruning="reduced_error"), "pruning='reduced_error' takes one output"),
        (CARTRegressor(min_target_std=0.1), "min_target_std=0.1 takes one output"),
        (CARTRegressor(trace=True), "there is no trace of a tree of 3 outputs"),
        (RandomForestRegressor(honest=True), "honest=True takes one output"),
        (RandomForestRegressor(keep_members=True), "keep_members=True takes one output"),
        (RandomForestRegressor(criterion="poisson"), "criterion='poisson' takes one output"),
        (GradientBoostingRegressor(loss="huber"), "loss='huber' takes one output"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value,
)
def test_parameters_and_methods_that_take_one_output_say_so(model, words):
    X, Y = make_table(8)
    with pytest.raises(ValueError, match=words):
        model.fit(X, Y)
    assert not get_tags(model).target_tags.multi_output or model.trace


def test_targets_of_several_outputs_are_checked():
    X, Y = make_table(9)
    broken = Y.copy()
    broken[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN. The first is in row 3; leave out such rows. \(In column 1 of y.\)"):
        CARTRegressor().fit(X, broken)
    with pytest.raises(ValueError, match="X has 300 rows, y has 299"):
        CARTRegressor().fit(X, Y[:-1])
    with pytest.raises(ValueError, match="y must have as many outputs in every row"):
        CARTRegressor().fit(X[:3], [[1.0, 2.0], [1.0, 2.0], [1.0]])
    with pytest.raises(TypeError, match=r"Give its outputs in full, y.toarray\(\)"):
        CARTRegressor().fit(X, csr_array(Y))


@pytest.mark.parametrize("name", MAKERS)
def test_tags_say_that_there_may_be_several_outputs(name):
    assert get_tags(MAKERS[name]()).target_tags.multi_output
    check_regressor_multioutput(type(MAKERS[name]()).__name__, MAKERS[name]())
