"""scikit-learn's contract: its own checks, and what its tools ask of an estimator."""

import copy
import inspect
import pickle
import re
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.ensemble import BaggingClassifier, StackingRegressor
from sklearn.exceptions import NotFittedError
from sklearn.inspection import partial_dependence, permutation_importance
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate, learning_curve
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import spinney
from contract import parametrize_with_contract, weighing_fails
from spinney import (
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    ID3Classifier,
    ID3Regressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from spinney._types import SUBSET
from spinney.estimators.forest_classifier import ForestClassifier

pytestmark = pytest.mark.filterwarnings("ignore:pruning='oob' has shaped each tree")

# What both trees are checked with, beside their defaults: each reaches other code on scikit-learn's tiny
# tables. Settings that count rows (min_samples_*) are not among them: a row of weight 2 is one row there.
SHARED_SETTINGS = [
    {},
    {"max_leaf_nodes": 4},
    {"missing": "branch", "max_depth": 3},
    {"ties": "random", "random_state": 0},
    {"max_features": 0.5, "random_state": 0},
    {"max_features": "sqrt", "max_leaf_nodes": 12, "random_state": 0},
    {"ccp_alpha": 0.01},
    {"ccp_alpha": 0.01, "ccp_risk": "error"},
    {"ccp_alpha": "cv", "random_state": 0},
    {"pruning": "reduced_error", "random_state": 0},
    {"pruning": "min_gain", "min_gain": 0.02},
    {"pruning": "merge"},
    {"max_bins": 2},
    {"max_bins": 16, "max_depth": 2},
    {"min_weight_fraction_leaf": 0.1},
    {"min_impurity_decrease": 0.02},
    {"categorical_features": None},
]
CLASSIFIER_SETTINGS = [
    *SHARED_SETTINGS,
    {"criterion": "entropy"},
    {"criterion": "misclassification"},
    {"criterion": "gain_ratio"},
    {"missing": "surrogate"},
    {"criterion": "entropy", "class_weight": "balanced", "max_leaf_nodes": 6},
]
REGRESSOR_SETTINGS = [
    *SHARED_SETTINGS,
    {"criterion": "sdr"},
    {"criterion": "sdr", "missing": "branch", "max_leaf_nodes": 6},
    {"criterion": "sdr", "missing": "surrogate", "max_surrogates": 2},
    {"min_target_std": 0.1},
]


def failures_of_held_rows(tree):
    """Rows are held out by their number: a row twice is not a row of weight 2."""
    if tree.ccp_alpha == "cv" or tree.pruning == "reduced_error":
        return weighing_fails("rows are held out")
    return {}


@parametrize_with_contract(
    [CARTClassifier(**settings) for settings in CLASSIFIER_SETTINGS]
    + [CARTRegressor(**settings) for settings in REGRESSOR_SETTINGS],
    expected_failed_checks=failures_of_held_rows,
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# What the textbook trees are checked with; those that count rows are not among them either.
PRUNED_SETTINGS = [
    {"ccp_alpha": 0.01, "ccp_risk": "error"},
    {"ccp_alpha": "cv", "random_state": 0},
    {"pruning": "reduced_error", "random_state": 0},
    {"pruning": "min_gain", "min_gain": 0.02},
    {"pruning": "merge"},
]
ID3_SETTINGS = [
    {},
    *PRUNED_SETTINGS,
    {"max_depth": 3},
    {"max_bins": 4},
    {"min_impurity_decrease": 0.02},
    {"min_weight_fraction_leaf": 0.1},
]
ID3_CLASSIFIER_SETTINGS = [
    *ID3_SETTINGS,
    {"criterion": "gini"},
    {"criterion": "gain_ratio", "class_weight": "balanced"},
    {"pruning": "pessimistic", "raising": True},
]
C45_SETTINGS = [
    {},
    {"raising": False, "confidence": 0.1},
    {"pruning": None, "collapse": False, "max_depth": 4},
    {"smoothing": "laplace", "class_weight": "balanced"},
    {"smoothing": 2.0, "max_bins": 8},
    *({"pruning": "cost_complexity", **settings} for settings in PRUNED_SETTINGS),
]


@parametrize_with_contract(
    [ID3Classifier(**settings) for settings in ID3_CLASSIFIER_SETTINGS]
    + [ID3Regressor(**settings) for settings in [*ID3_SETTINGS, {"criterion": "sdr"}]]
    + [C45Classifier(**settings) for settings in C45_SETTINGS],
    expected_failed_checks=failures_of_held_rows,
)
def test_scikit_learn_checks_of_textbook_trees(estimator, check):
    check(estimator)


# What the four forests are checked with.
FOREST_SETTINGS = [
    {},
    {"bootstrap": True, "max_samples": 0.7, "ties": "random"},
    {"bootstrap": False, "max_leaf_nodes": 6, "missing": "branch"},
    {"bootstrap": False, "replace": False, "max_samples": 0.8, "max_features": 0.5},
    {"bootstrap": "poisson", "n_jobs": 2},
    {"bootstrap": True, "honest": True},
    {"bootstrap": True, "pruning": "oob", "block_size": 3},
    {"ccp_alpha": 0.001, "max_bins": 16},
]
FOREST_CLASSIFIER_SETTINGS = [
    *FOREST_SETTINGS,
    {"bootstrap": True, "stratify": "class", "criterion": "entropy"},
    {"bootstrap": True, "stratify": "balanced"},
    {"voting": "hard", "class_weight": "balanced"},
    {"bootstrap": True, "class_weight": "balanced_subsample"},
]
FOREST_REGRESSOR_SETTINGS = [*FOREST_SETTINGS, {"criterion": "sdr"}, {"min_target_std": 0.1, "keep_members": True}]


def failures_of_bags(forest):
    """The checks that scikit-learn lists for its own forests: a bag of repeated rows is another bag."""
    if not forest.bootstrap and forest.replace:
        return {}
    expected = weighing_fails("bags depend on the number of rows")
    if isinstance(forest, ForestClassifier) and forest.max_samples == 0.7:
        expected["check_classifiers_one_label_sample_weights"] = "a fraction of the few weights left is warned of"
    return expected


@parametrize_with_contract(
    [
        kind(n_estimators=5, **settings)
        for kind in (RandomForestClassifier, ExtraTreesClassifier)
        for settings in FOREST_CLASSIFIER_SETTINGS
    ]
    + [
        kind(n_estimators=5, **settings)
        for kind in (RandomForestRegressor, ExtraTreesRegressor)
        for settings in FOREST_REGRESSOR_SETTINGS
    ],
    expected_failed_checks=failures_of_bags,
)
def test_scikit_learn_checks_of_forests(estimator, check):
    check(estimator)


# What bagging is checked with: trees that grow as a forest, then members of other kinds, enough of them for every row
# to be in a bag, and with all columns: a cell that no member sees is not refused.
BAGGING_SETTINGS = [
    {},
    {"max_features": 0.5, "bootstrap": "poisson", "block_size": 3, "n_jobs": 2},
    {"bootstrap": False, "bootstrap_features": True},
    {"bootstrap": False, "max_samples": 0.8},
]


def failures_of_drawn_rows(bag):
    """The checks that scikit-learn lists for its own bagging."""
    if not bag.bootstrap and bag.max_samples is None:
        return {}
    failures = weighing_fails("bags depend on the number of rows")
    if hasattr(bag, "decision_function"):  # of scikit-learn's bagging too, by the seed
        reason = "a mean of probabilities may rank rows otherwise than a mean of decision functions"
        failures = {**failures, "check_decision_proba_consistency": reason}
    return failures


@parametrize_with_contract(
    [
        kind(n_estimators=5, **settings)
        for kind in (spinney.BaggingClassifier, spinney.BaggingRegressor)
        for settings in BAGGING_SETTINGS
    ]
    + [
        spinney.BaggingClassifier(CARTClassifier(max_depth=3, class_weight="balanced"), 5, stratify="balanced"),
        spinney.BaggingClassifier(CARTClassifier(max_features="sqrt"), 5, stratify="class", voting="hard"),
        spinney.BaggingClassifier(LogisticRegression(), 5, stratify="class", random_state=0),
        spinney.BaggingClassifier([KNeighborsClassifier(3), CARTClassifier()], 4, n_jobs=2, random_state=0),
        spinney.BaggingClassifier([("svc", SVC()), ("tree", CARTClassifier())], 4, stratify="class", random_state=0),
        spinney.BaggingRegressor(LinearRegression(), 3, random_state=0),
        spinney.BaggingRegressor([KNeighborsRegressor(3), ("tree", CARTRegressor())], 6, n_jobs=2, random_state=0),
    ],
    expected_failed_checks=failures_of_drawn_rows,
)
def test_scikit_learn_checks_of_bagging(estimator, check):
    check(estimator)


# What stacking is checked with: scikit-learn's own members at first, then ours, out of bag, and X passed on.
@pytest.mark.filterwarnings("ignore:The least populated class in y has only")  # scikit-learn's, of its folds
@parametrize_with_contract(
    [
        spinney.StackingClassifier(
            [(f"est{k}", DecisionTreeClassifier(max_depth=3, random_state=k)) for k in (0, 1)], cv=3
        ),
        spinney.StackingRegressor(
            [(f"est{k}", DecisionTreeRegressor(max_depth=3, random_state=k)) for k in (0, 1)], cv=3
        ),
        spinney.StackingClassifier(
            [("tree", CARTClassifier(max_depth=3)), ("c45", C45Classifier())], cv=3, n_jobs=2, random_state=0
        ),
        spinney.StackingRegressor(
            [("tree", CARTRegressor(max_depth=3)), ("id3", ID3Regressor())], cv=3, passthrough=True
        ),
        spinney.StackingClassifier(
            [("bayes", GaussianNB()), ("tree", CARTClassifier())], GaussianNB(), cv=3, passthrough=True
        ),
    ],
)
def test_scikit_learn_checks_of_stacking(estimator, check):
    check(estimator)


def failures_of_bags(_):
    """As of bagging: what the second stage sees are predictions out of bag."""
    return weighing_fails("bags depend on the number of rows")


@pytest.mark.filterwarnings("ignore:.*out-of-bag")
@parametrize_with_contract(
    [
        spinney.StackingClassifier(
            [("forest", RandomForestClassifier(25, max_depth=3)), ("extra", ExtraTreesClassifier(25, bootstrap=True))],
            cv="oob",
            random_state=0,
        ),
        spinney.StackingRegressor([("forest", RandomForestRegressor(25))], cv="oob", random_state=0),
    ],
    expected_failed_checks=failures_of_bags,
)
def test_scikit_learn_checks_of_stacking_out_of_bag(estimator, check):
    check(estimator)


# --- data ---------------------------------------------------------------------------------------------------

KINDS = [CARTClassifier, CARTRegressor]
METHODS = {
    CARTClassifier: ["predict", "predict_proba", "predict_log_proba", "apply"],
    CARTRegressor: ["predict", "apply"],
}


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


def make_table(n_rows=150, seed=0):
    """Two numeric columns with holes, one whole-number column; a noisy target of three values."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n_rows, 3))
    X[:, 2] = generator.integers(0, 5, n_rows)
    y = np.digitize(X[:, 0] + X[:, 2] + generator.normal(scale=0.5, size=n_rows), [1.0, 3.0])
    X[generator.random(n_rows) < 0.1, 1] = np.nan
    return X, y


def make_frame(n_rows=150, seed=0):
    X, y = make_table(n_rows, seed)
    frame = pd.DataFrame(X, columns=["width", "height", "rank"])
    frame["colour"] = pd.Categorical(np.array(["red", "green", "blue", None])[(X[:, 2] + y).astype(int) % 4])
    return frame, y


def assert_same_tree(one, other):
    for name in (
        "test",
        "first_child",
        "threshold",
        "subsets",
        "n_rows",
        "weight",
        "impurity",
        "distributions",
    ):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.legend == other.legend


def assert_same_answers(one, other, X):
    for method in METHODS[type(one)]:
        np.testing.assert_array_equal(getattr(one, method)(X), getattr(other, method)(X), err_msg=method)


# --- parameters and copies ----------------------------------------------------------------------------------


def test_parameters_are_kept_as_given(kind):
    defaults = kind().get_params()
    assert defaults["max_bins"] == 65_535
    odd = dict.fromkeys(defaults, object())  # nothing is checked before fit
    model = kind(**odd)
    assert all(model.get_params()[name] is value for name, value in odd.items())
    assert model.set_params(**defaults).get_params() == defaults


def test_fit_leaves_the_parameters_alone(kind):
    X, y = make_table()
    constraint, categories = np.array([1, 0, 0]), [2]
    labels = y > 0 if kind is CARTClassifier else y
    model = kind(monotonic_cst=constraint, categorical_features=categories).fit(X, labels)
    assert model.monotonic_cst is constraint
    assert model.categorical_features is categories
    np.testing.assert_array_equal(constraint, [1, 0, 0])


def test_fault_070_clone_of_a_fitted_model_is_unfitted_with_equal_parameters(kind):
    X, y = make_table()
    model = kind(max_depth=3, ties="random", random_state=5).fit(X, y)
    copied = clone(model)
    assert copied.get_params() == model.get_params()
    assert not [name for name in vars(copied) if name.endswith("_")]
    with pytest.raises(NotFittedError):
        copied.predict(X)
    assert_same_tree(copied.fit(X, y).tree_.arrays, model.tree_.arrays)


@pytest.mark.parametrize(
    "duplicate",
    [
        copy.copy,
        copy.deepcopy,
        lambda model: pickle.loads(pickle.dumps(model)),
        lambda model: pickle.loads(pickle.dumps(model, protocol=2)),
    ],
    ids=["copy", "deepcopy", "pickle", "pickle of protocol 2"],
)
def test_copies_answer_alike(kind, duplicate):
    X, y = make_frame()
    model = kind(max_leaf_nodes=12, missing="branch").fit(X, y)
    other = duplicate(model)
    assert_same_tree(model.tree_.arrays, other.tree_.arrays)
    assert_same_answers(model, other, X)
    np.testing.assert_array_equal(model.feature_importances_, other.feature_importances_)
    assert other.tree_.to_text() == model.tree_.to_text()
    other.fit(X.iloc[:20], y[:20])
    assert model.tree_.n_rows[0] == len(X)  # the first one did not notice


@pytest.mark.parametrize("mmap_mode", ["r", "c"])
def test_a_model_loaded_as_memory_maps_answers_alike(kind, mmap_mode, tmp_path):
    X, y = make_frame()
    model = kind().fit(X, y)
    joblib.dump(model, tmp_path / "model.joblib")
    other = joblib.load(tmp_path / "model.joblib", mmap_mode=mmap_mode)
    assert_same_answers(model, other, X)
    assert other.tree_.to_text() == model.tree_.to_text()
    assert_same_tree(other.fit(X, y).tree_.arrays, model.tree_.arrays)


def test_unfitted_models_say_so(kind):
    X, _ = make_table(10)
    model = kind()
    for method in [*METHODS[kind], "decision_path", "get_depth", "get_n_leaves"]:
        with pytest.raises(NotFittedError, match=f"{kind.__name__} instance is not fitted yet"):
            getattr(model, method)(*([X] if method not in {"get_depth", "get_n_leaves"} else []))
    assert not hasattr(model, "feature_importances_")
    with pytest.raises(ValueError, match="Input y contains NaN"):
        model.fit(X, np.full(10, np.nan))
    with pytest.raises(NotFittedError):  # a failed fit has not fitted it
        model.predict(X)


def test_fault_069_refit_gives_the_same_model(kind):
    X, y = make_frame()
    for settings in ({}, {"max_features": 2, "ties": "random", "random_state": 3}):
        model = kind(**settings).fit(X, y)
        first = model.tree_.arrays
        other, target = make_table(seed=1)
        model.fit(other, target)  # in between, a table without names
        assert not hasattr(model, "feature_names_in_")
        assert_same_tree(model.fit(X, y).tree_.arrays, first)


# --- fitted attributes --------------------------------------------------------------------------------------


def test_fitted_attributes(kind):
    X, y = make_frame()
    model = kind().fit(X, y)
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == ["width", "height", "rank", "colour"]
    assert model.feature_names_in_.dtype == object
    assert model.n_outputs_ == 1
    assert model.max_features_ == 4
    assert model.feature_importances_.shape == (4,)
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert model.get_n_leaves() == model.tree_.n_leaves == len(np.unique(model.apply(X)))
    assert model.get_depth() == model.tree_.depth
    if kind is CARTClassifier:
        assert model.classes_.tolist() == [0, 1, 2]
        assert model.n_classes_ == 3
    public = {name for name in vars(model) if not name.startswith("_")} - set(model.get_params())
    assert all(name.endswith("_") for name in public)


@pytest.mark.parametrize(
    ("max_features", "expected"),
    [(None, 9), ("sqrt", 3), ("log2", 3), (4, 4), (100, 9), (0.5, 4), (0.01, 1), (1.0, 9), (np.int32(2), 2)],
)
def test_max_features(kind, max_features, expected):
    X = np.random.default_rng(0).normal(size=(40, 9))
    assert kind(max_features=max_features, random_state=0).fit(X, X[:, 0] > 0).max_features_ == expected


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_feature_names_of_frames(kind, library):
    X, y = make_table()
    frame = library({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    model = kind().fit(frame, y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(model.predict(frame), kind().fit(X, y).predict(X))
    with pytest.warns(UserWarning, match=f"X does not have valid feature names, but {kind.__name__} was fitted"):
        model.predict(X)
    with pytest.warns(UserWarning, match=f"X has feature names, but {kind.__name__} was fitted without") as seen:
        kind().fit(X, y).predict(frame)
    assert seen[0].filename == __file__  # the warning points at the caller's line


# --- reading a tree -----------------------------------------------------------------------------------------


def walk(tree, row):
    """The nodes that a row of values passes, by the rules of the tree's documentation alone."""
    path = [0]
    while not tree.is_leaf[path[-1]]:
        node = path[-1]
        value = row[tree.feature[node]]
        if np.isnan(value):
            branch = tree.missing_branch[node]
        elif tree.kind[node] == SUBSET:
            branch = 0 if tree.subset(node)[int(value)] else 1
        else:
            branch = 0 if value <= tree.threshold[node] else 1
        path.append(int(tree.first_child[node] + branch))
    return path


@pytest.mark.parametrize("missing", ["learned", "branch"])
def test_apply_and_decision_path_follow_the_tests(kind, missing):
    X, y = make_frame(seed=2)
    model = kind(missing=missing, min_samples_leaf=2).fit(X, y)
    other, _ = make_frame(seed=3)
    other["colour"] = other["colour"].cat.rename_categories({"red": "violet"})  # not seen in fit
    levels = ["blue", "green", "red"]
    values = other.assign(
        colour=[levels.index(c) if c in levels else np.nan for c in other["colour"].astype(object)]
    ).to_numpy(dtype=float)
    paths = [walk(model.tree_.arrays, row) for row in values]
    assert model.apply(other).tolist() == [path[-1] for path in paths]
    assert model.apply(other).dtype == np.int64
    indicator = model.decision_path(other)
    assert indicator.shape == (len(other), model.tree_.n_nodes)
    assert indicator.nnz == sum(map(len, paths))
    assert indicator.data.tolist() == [1] * indicator.nnz
    for i, path in enumerate(paths):
        assert indicator[[i]].indices.tolist() == path
    leaf_value = model.tree_.values()[[path[-1] for path in paths]]
    if kind is CARTClassifier:
        np.testing.assert_allclose(model.predict_proba(other), leaf_value, rtol=1e-12)
        np.testing.assert_array_equal(model.predict(other), model.classes_[leaf_value.argmax(axis=1)])
    else:
        np.testing.assert_array_equal(model.predict(other), leaf_value)


def test_decision_path_of_a_single_leaf(kind):
    model = kind().fit([[1.0], [1.0]], [0, 1])
    assert model.decision_path([[3.0], [4.0]]).toarray().tolist() == [[1], [1]]


def test_probabilities():
    X, y = make_table()
    model = CARTClassifier(min_samples_leaf=10).fit(X, np.array(["low", "mid", "top"])[y])
    shares = model.predict_proba(X)
    assert shares.shape == (len(X), 3)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X), model.classes_[shares.argmax(axis=1)])
    logarithms = model.predict_log_proba(X)
    assert np.isneginf(logarithms[shares == 0]).all()
    np.testing.assert_array_equal(logarithms[shares > 0], np.log(shares[shares > 0]))
    assert model.score(X, model.predict(X)) == 1.0


def test_display(kind):
    X, y = make_frame()
    model = kind(max_depth=2)
    assert repr(model) == f"{kind.__name__}(max_depth=2)"
    assert kind.__name__ in model._repr_html_()
    model.fit(X, y)
    assert "max_depth" in model._repr_html_()
    assert repr(model.tree_.arrays) == f"Tree(n_nodes={model.tree_.n_nodes}, n_leaves=4, depth=2)"


def test_set_output_is_for_transformers(kind):
    assert not hasattr(kind(), "set_output")
    X, y = make_frame()
    with sklearn.config_context(transform_output="pandas"):
        assert type(kind().fit(X, y).predict(X)) is np.ndarray


# --- randomness ---------------------------------------------------------------------------------------------


def test_fault_066_the_same_seed_gives_the_same_tree(kind):
    X, y = make_table(300)
    settings = {"max_features": 1, "ties": "random"}
    trees = [kind(**settings, random_state=seed).fit(X, y).tree_.arrays for seed in (0, 0, np.int64(0), 1)]
    assert_same_tree(trees[0], trees[1])
    assert_same_tree(trees[0], trees[2])
    assert not np.array_equal(trees[0].test, trees[3].test)
    # without anything to draw, the seed does not matter
    assert_same_tree(kind(random_state=0).fit(X, y).tree_.arrays, kind(random_state=1).fit(X, y).tree_.arrays)


def test_fault_067_a_random_state_object_is_drawn_from_once(kind):
    X, y = make_table()
    state = np.random.RandomState(7)
    first = kind(max_features=1, random_state=state).fit(X, y)
    reference = np.random.RandomState(7)
    reference.randint(np.iinfo(np.int32).max)
    np.testing.assert_array_equal(state.get_state()[1], reference.get_state()[1])
    assert state.get_state()[2] == reference.get_state()[2]
    second = kind(max_features=1, random_state=state).fit(X, y)  # goes on where the first one stopped
    assert not np.array_equal(first.tree_.test, second.tree_.test)
    assert_same_tree(
        kind(max_features=1, random_state=np.random.RandomState(7)).fit(X, y).tree_.arrays, first.tree_.arrays
    )
    before = state.get_state()[2]
    kind(random_state=state).fit(X, y)  # nothing to draw
    assert state.get_state()[2] == before


# --- scikit-learn's tools -----------------------------------------------------------------------------------


def test_search_pipeline_and_cross_validation(kind):
    X, y = make_frame()
    search = GridSearchCV(kind(), {"max_depth": [1, 3], "missing": ["learned", "branch"]}, cv=3).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.get_depth() <= 3
    assert np.isfinite(cross_val_score(kind(), X, y, cv=3, error_score="raise")).all()
    numbers = X[["width", "height", "rank"]]
    pipeline = make_pipeline(StandardScaler(), kind(max_depth=3)).fit(numbers, y)
    plain = kind(max_depth=3).fit(numbers, y)  # standardising keeps the order of values, so the tests are the same
    np.testing.assert_array_equal(pipeline[-1].tree_.n_rows, plain.tree_.n_rows)
    np.testing.assert_array_equal(pipeline.predict(numbers), plain.predict(numbers))


# --- hints --------------------------------------------------------------------------------------------------


def hint_of(kind, name):
    """What an estimator says of a parameter that it does not have."""
    with pytest.raises(TypeError, match=f"^{kind.__name__} has no parameter '{name}'") as caught:
        kind(**{name: 1})
    return str(caught.value).split("'. ", 1)[1]


def fit_hint_of(kind, name):
    """What `fit` says of an argument that it does not take."""
    with pytest.raises(TypeError, match=rf"^{kind.__name__}\.fit has no argument '{name}'") as caught:
        kind().fit([[0.0], [1.0]], [0, 1], **{name: 1})
    return str(caught.value).split("'. ", 1)[1]


BOOSTING = spinney.GradientBoostingClassifier


@pytest.mark.parametrize(
    ("kind", "name", "own"),
    [
        (spinney.GradientBoostingRegressor, "quantile_alpha", "alpha"),
        (BOOSTING, "cat_features", "categorical_features"),
        (BOOSTING, "min_split_loss", "gamma"),
        (BOOSTING, "n_iter", "n_estimators"),
        (BOOSTING, "silent", "verbose"),
        (BOOSTING, "eval_metric", "scoring"),
        (BOOSTING, "tree_method", "max_bins"),
        (BOOSTING, "grow_policy", "max_leaf_nodes"),
        (BOOSTING, "enable_categorical", "categorical_features"),
        (BOOSTING, "l2_leaf_reg", "reg_lambda"),
        (BOOSTING, "max_leaf_node", "max_leaf_nodes"),
        (RandomForestClassifier, "ntree", "n_estimators"),
        (RandomForestRegressor, "mtry", "max_features"),
        (ExtraTreesClassifier, "min_split_loss", "min_impurity_decrease"),
        (spinney.BaggingClassifier, "base_estimator", "estimator"),
        (spinney.AdaBoostRegressor, "early_stopping_rounds", "n_iter_no_change"),
        (CARTClassifier, "cat_features", "categorical_features"),
    ],
)
def test_f11_hints_name_what_was_meant(kind, name, own):
    assert hint_of(kind, name).startswith(f"Did you mean '{own}'?")


@pytest.mark.parametrize("name", ["max_delta_step", "booster", "zzz"])
def test_f11_where_there_is_no_counterpart_nothing_is_guessed(name):
    assert hint_of(BOOSTING, name).startswith("It has loss, learning_rate,")


def test_f11_arguments_of_fit_and_parameters_are_told_apart():
    ada = spinney.AdaBoostClassifier
    assert fit_hint_of(ada, "eval_set") == "Did you mean 'X_val'? One table for validation: X_val= and y_val=."
    assert hint_of(ada, "eval_set").startswith("It is an argument of fit: fit(..., X_val=...).")
    for kind in (BOOSTING, spinney.GradientBoostingRegressor):
        assert hint_of(kind, "eval_set") == "It is an argument of fit: fit(..., eval_set=...)."
    assert fit_hint_of(BOOSTING, "base_margin") == "Did you mean 'init_score'?"
    assert fit_hint_of(BOOSTING, "sample_weights") == "Did you mean 'sample_weight'?"
    assert fit_hint_of(BOOSTING, "early_stopping_rounds").startswith(
        "It is a parameter of the estimator: GradientBoostingClassifier(n_iter_no_change=...)."
    )
    assert fit_hint_of(BOOSTING, "scoring").startswith("It is a parameter of the estimator")
    assert hint_of(BOOSTING, "callbacks") == "It is an argument of fit: fit(..., callbacks=...)."
    assert fit_hint_of(CARTClassifier, "eval_set") == "It takes X, y, sample_weight, trace."
    assert fit_hint_of(RandomForestClassifier, "check_input").startswith("It takes X, y, sample_weight, groups")


def names_of_others():
    """Every name in the tables of docs/coming-from.md, with the kind of estimator and our names for it."""
    text = (Path(__file__).parents[2] / "docs" / "coming-from.md").read_text()
    for kind, title, own_cell in [
        (spinney.GradientBoostingRegressor, "### Parameters", 0),
        (BOOSTING, "### Parameters", 0),
        (RandomForestClassifier, "## Forests", 0),
        (RandomForestRegressor, "## Forests", 0),
        (CARTClassifier, "## Coming from rpart", 1),
        (C45Classifier, "## Coming from Weka", 1),
    ]:
        part = text.split(f"{title}\n")[1].split("\n#")[0]
        for line in part.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            ours = re.findall(r"\w+", cells[own_cell].split(" of ")[0]) if line.startswith("| ") else []
            for cell in [*cells[:own_cell], *cells[own_cell + 1 :]]:
                for name in re.findall(r"`(?:fit\(\.\.\., ?)?([A-Za-z_.]+)(?:=[^`]*)?\)?`", cell):
                    yield kind, name, ours


def test_f11_every_name_of_the_page_for_those_who_come_from_elsewhere_has_its_hint():
    wanted = {}
    for kind, name, ours in names_of_others():
        has = {*inspect.signature(kind).parameters, *inspect.signature(kind.fit).parameters}
        if name not in has | NOT_PARAMETERS:
            wanted.setdefault((kind, name), set()).update(has.intersection(ours))
    wanted = {key: ours for key, ours in wanted.items() if ours}
    assert len(wanted) > 100
    for (kind, name), ours in wanted.items():
        for hint in (hint_of(kind, name), fit_hint_of(kind, name)):
            assert not hint.startswith(("It has", "It takes")), (name, ours, hint)
            assert any(own in hint for own in ours), (name, ours, hint)


NOT_PARAMETERS = {"REPTree"}


@pytest.mark.parametrize(
    "model",
    [
        CARTClassifier(monotonic_cst=[1]),
        CARTClassifier(monotonic_cst=[-1], trace=True),
        RandomForestClassifier(n_estimators=2, monotonic_cst=[1]),
        ExtraTreesClassifier(n_estimators=2, monotonic_cst=[1]),
        spinney.BaggingClassifier(CARTClassifier(monotonic_cst=[1]), 2),
        spinney.AdaBoostClassifier(CARTClassifier(max_depth=2, monotonic_cst=[1]), n_estimators=2),
        spinney.GradientBoostingClassifier(n_estimators=2, monotonic_cst=[1], min_samples_leaf=1),
    ],
    ids=lambda model: type(model).__name__,
)
def test_f6_one_class_leaves_nothing_to_constrain(model):
    X = [[0.0], [1.0], [2.0]]
    model.fit(X, ["oak"] * 3)
    assert model.predict(X).tolist() == ["oak"] * 3
    assert model.predict_proba(X).tolist() == [[1.0]] * 3


def make_odd_iris():
    """Iris with one row of a class of its own: most folds train without it, one is scored with it."""
    X, y = load_iris(return_X_y=True)
    y[0] = 9
    return X, y, KFold(5, shuffle=True, random_state=0)


def test_f2_searches_and_curves_count_an_unseen_class_as_wrong():
    X, y, folds = make_odd_iris()
    search = GridSearchCV(CARTClassifier(), {"max_depth": [1, 3]}, cv=folds, error_score="raise").fit(X, y)
    assert search.best_params_ == {"max_depth": 3}  # as with scikit-learn's tree
    assert round(search.best_score_, 3) == 0.947
    _, _, held_out = learning_curve(CARTClassifier(), X, y, cv=folds, train_sizes=[0.5], error_score="raise")
    assert np.isfinite(held_out).all()
    assert np.isfinite(cross_val_score(CARTClassifier(), X, y, cv=folds, error_score="raise")).all()


@pytest.mark.parametrize(
    "model",
    [
        CARTClassifier(),
        ID3Classifier(),
        C45Classifier(),
        RandomForestClassifier(n_estimators=3, random_state=0),
        ExtraTreesClassifier(n_estimators=3, random_state=0),
        spinney.BaggingClassifier(n_estimators=3, random_state=0),
        spinney.AdaBoostClassifier(n_estimators=3),
        spinney.GradientBoostingClassifier(n_estimators=2, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_f2_score_counts_an_unseen_class_as_wrong(model):
    X, y, _ = make_odd_iris()
    model.fit(X[1:], y[1:])
    assert model.score(X, y) == accuracy_score(y, model.predict(X)) < 1.0
    assert model.score(X[:1], y[:1]) == 0.0
    weight = np.where(y == 9, 149.0, 1.0)
    assert model.score(X, y, weight) == accuracy_score(y, model.predict(X), sample_weight=weight)


def test_inspection(kind):
    X, y = make_frame()
    model = kind(max_depth=4).fit(X, y)
    importance = permutation_importance(model, X, y, n_repeats=2, random_state=0)
    assert importance.importances_mean.shape == (4,)
    assert importance.importances_mean.max() > 0.1
    dependence = partial_dependence(model, X.astype({"rank": float}), ["rank"], kind="average")
    assert np.isfinite(dependence["average"]).all()


def test_meta_estimators():
    X, y = make_table()
    calibrated = CalibratedClassifierCV(CARTClassifier(max_depth=3), cv=3).fit(X, y)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1.0)
    assert OneVsRestClassifier(CARTClassifier(max_depth=3)).fit(X, y).score(X, y) > 0.6
    assert BaggingClassifier(CARTClassifier(), 3, random_state=0).fit(X, y).score(X, y) > 0.8
    stack = StackingRegressor([("tree", CARTRegressor(max_depth=3))], LinearRegression(), cv=3).fit(X, y)
    assert stack.score(X, y) > 0.5


@pytest.mark.usefixtures("routing")
def test_metadata_routing(kind):
    X, y = make_table()
    weight = np.where(np.arange(len(y)) % 2, 0.0, 1.0)
    model = kind().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    result = cross_validate(
        model, X, y, cv=3, params={"sample_weight": weight}, return_estimator=True, error_score="raise"
    )
    n_rows = [estimator.tree_.n_rows[0] for estimator in result["estimator"]]
    assert max(n_rows) < 60  # of 100: rows of weight 0 are left out
    deaf = kind().set_fit_request(sample_weight=False).set_score_request(sample_weight=False)
    with pytest.raises(TypeError, match="sample_weight"):
        cross_validate(deaf, X, y, cv=3, params={"sample_weight": weight})


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def test_pruning_path_leaves_the_model_alone(kind):
    X, y = make_table()
    model = kind(max_depth=2).fit(X, y)
    tree = model.tree_.arrays
    path = model.cost_complexity_pruning_path(X[:, :2], y)
    assert model.tree_.arrays is tree
    assert model.n_features_in_ == 3
    assert model.predict(X).shape == (len(X),)
    assert path.ccp_alphas.shape == path.impurities.shape
    assert (np.diff(path.ccp_alphas) > 0).all()
    assert (np.diff(path.impurities) > 0).all()
    unfitted = kind()
    unfitted.cost_complexity_pruning_path(X, y)
    with pytest.raises(NotFittedError):
        unfitted.predict(X)
