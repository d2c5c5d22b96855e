"""Bagging: members and bags against loops by hand, the two ways of fitting against each other, published errors."""

import inspect
import pickle
import threading

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import make_classification, make_friedman1, make_friedman2, make_friedman3
from sklearn.ensemble import RandomForestClassifier as SkForest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression, RidgeClassifier
from sklearn.metrics import log_loss, mean_absolute_error
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from spinney import (
    BaggingClassifier,
    BaggingRegressor,
    CARTClassifier,
    CARTRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from spinney.ensemble.subspaces import Subspaces, member_seed, narrow_tree, widen_tree

KINDS = [BaggingClassifier, BaggingRegressor]
TREES = {BaggingClassifier: CARTClassifier, BaggingRegressor: CARTRegressor}
NODE_FIELDS = ("test", "first_child", "threshold", "subsets", "n_rows", "weight", "impurity", "distributions")


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


def make_table(n_rows=120, n_features=6, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n_rows, n_features))
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + generator.normal(scale=0.3, size=n_rows), [-0.5, 0.7])
    return X, y


def make_frame(n_rows=150, seed=0):
    """Numbers with holes and two categories, one of them with holes."""
    X, y = make_table(n_rows, 3, seed)
    generator = np.random.default_rng(seed + 100)
    X[generator.random(n_rows) < 0.1, 1] = np.nan
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["colour"] = pd.Categorical(
        np.array(["red", "green", "blue", None])[(y + generator.integers(0, 3, n_rows)) % 4]
    )
    frame["size"] = pd.Categorical(np.array(["s", "m", "l"])[generator.integers(0, 3, n_rows)])
    return frame, y


def assert_same_tree(one, other):
    for name in NODE_FIELDS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.legend == other.legend


def assert_same_trees(ones, others):
    ones, others = list(ones), list(others)
    assert len(ones) == len(others)
    for one, other in zip(ones, others, strict=True):
        assert_same_tree(one, other)


def general(tree):
    """The same trees by the other way: in a list of two, they are members like any others."""
    return [tree, clone(tree)]


def numbers_of(model, X):
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)


# --- the two ways, and the forest ---------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"bootstrap": "poisson"}, {"max_samples": 0.6}], ids=str)
def test_a_bag_of_trees_is_a_forest_that_draws_no_features(kind, settings):
    X, y = make_frame()
    forest = {BaggingClassifier: RandomForestClassifier, BaggingRegressor: RandomForestRegressor}[kind]
    one = kind(n_estimators=12, oob_score=True, random_state=5, **settings).fit(X, y)
    other = forest(n_estimators=12, oob_score=True, random_state=5, max_features=None, **settings).fit(X, y)
    assert_same_trees(one.forest_, other.forest_)
    assert one.oob_score_ == other.oob_score_
    np.testing.assert_array_equal(one.oob_curve_, other.oob_curve_)
    np.testing.assert_array_equal(numbers_of(one, X), numbers_of(other, X))
    np.testing.assert_array_equal(one.feature_importances_, other.feature_importances_)
    for a, b in zip(one.estimators_samples_, other.estimators_samples_, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("settings", "labels"),
    [
        ({}, None),
        ({"max_samples": 0.6}, "groups"),
        ({"bootstrap": "poisson"}, "groups"),
        ({}, "strata"),
        ({"block_size": 7}, None),
        ({"bootstrap": False, "max_samples": 0.6}, None),
        ({"bootstrap": False, "max_samples": 0.6}, "groups"),
        ({"bootstrap": False}, None),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:.* rows were in every bag")
def test_weights_are_those_of_a_forest(kind, settings, labels):
    X, y = make_frame()
    generator = np.random.default_rng(0)
    given = {} if labels is None else {labels: generator.integers(0, 30, len(y))}
    weight = generator.random(len(y)) * (np.arange(len(y)) % 5 > 0)
    if labels == "groups":  # some groups have no weight at all
        weight[given["groups"] < 6] = 0.0
    forest = {BaggingClassifier: RandomForestClassifier, BaggingRegressor: RandomForestRegressor}[kind]
    is_pasted = not settings.get("bootstrap", True) and "max_samples" in settings
    others = {**settings, "replace": False, "bootstrap": True} if is_pasted else settings
    has_oob = settings.get("bootstrap", True) or is_pasted
    shared = {"n_estimators": 6, "oob_score": bool(has_oob), "random_state": 5}
    one = kind(**settings, **shared).fit(X, y, weight, **given)
    other = forest(**others, **shared, max_features=None).fit(X, y, weight, **given)
    assert_same_trees(one.forest_, other.forest_)
    for a, b in zip(one.estimators_samples_, other.estimators_samples_, strict=True):
        np.testing.assert_array_equal(a, b)
    if has_oob:
        assert one.oob_score_ == other.oob_score_


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"max_features": 0.5},
        {"max_features": 2, "bootstrap": False},
        {"max_features": 4, "bootstrap_features": True},
        {"bootstrap": False, "max_samples": 0.5},
        {"bootstrap": "poisson", "max_features": 3},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:.* rows were in every bag")
def test_both_ways_grow_the_same_trees(kind, settings):
    X, y = make_frame()
    is_repeated = settings.get("bootstrap_features", False)
    if is_repeated:  # a frame holds a column once
        X = X[["a", "b", "c"]].to_numpy()
        settings = {**settings, "max_features": 3}
    has_bags = settings.get("bootstrap", True) or "max_samples" in settings
    settings = {**settings, "n_estimators": 8, "random_state": 1, "oob_score": bool(has_bags)}
    tree = TREES[kind](max_depth=6, min_samples_split=5, missing="branch")
    fast, slow = kind(tree, **settings).fit(X, y), kind(general(tree), **settings).fit(X, y)
    assert hasattr(fast, "forest_")
    assert not hasattr(slow, "forest_")
    for one, other in zip(fast.estimators_, slow.estimators_, strict=True):
        np.testing.assert_array_equal(one.tree_.test, other.tree_.test)
        # the fixed point of a target is that of the table here, that of the bag there
        np.testing.assert_allclose(one.tree_.arrays.threshold, other.tree_.arrays.threshold, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(one.tree_.n_rows, other.tree_.n_rows)
        assert one.n_features_in_ == other.n_features_in_
        if not is_repeated:
            assert one.feature_names_in_.tolist() == other.feature_names_in_.tolist()
            assert one.tree_.legend == other.tree_.legend
    np.testing.assert_allclose(numbers_of(fast, X), numbers_of(slow, X), rtol=1e-12)
    if has_bags:
        assert fast.oob_score_ == pytest.approx(slow.oob_score_, rel=1e-12)
        np.testing.assert_allclose(fast.oob_curve_, slow.oob_curve_, rtol=1e-12)


@pytest.mark.parametrize("class_weight", ["balanced", {0: 5.0, 1: 1.0, 2: 0.5}], ids=str)
@pytest.mark.parametrize("bootstrap", [True, False])
def test_class_weights_are_the_members_own(class_weight, bootstrap):
    X, y = make_table()
    tree = CARTClassifier(max_depth=3, class_weight=class_weight)
    settings = {"n_estimators": 6, "random_state": 0, "bootstrap": bootstrap, "max_features": 0.7}
    fast, slow = (BaggingClassifier(base, **settings).fit(X, y) for base in (tree, general(tree)))
    np.testing.assert_allclose(fast.predict_proba(X), slow.predict_proba(X), rtol=1e-9)
    plain = BaggingClassifier(CARTClassifier(max_depth=3), **settings).fit(X, y)
    assert not np.allclose(plain.predict_proba(X), fast.predict_proba(X))


def test_sample_weights_without_bags_are_weights(kind):
    X, y = make_table()
    weight = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    settings = {"n_estimators": 4, "bootstrap": False, "max_features": 3, "random_state": 0}
    tree = TREES[kind](max_depth=4)
    models = [kind(base, **settings).fit(X, y, weight) for base in (tree, general(tree))]
    for features, *members in zip(models[0].estimators_features_, *(m.estimators_ for m in models), strict=True):
        expected = clone(tree).fit(X[:, features], y, weight).tree_.arrays
        for member in members:
            np.testing.assert_array_equal(member.tree_.arrays.threshold, expected.threshold)
            np.testing.assert_array_equal(member.tree_.n_rows, expected.n_rows)


def test_subspace_trees_obey_monotone_constraints():
    X, _ = make_table(200)
    y = X[:, 0] + np.sin(5 * X[:, 0]) + 0.1 * X[:, 1]
    tree = CARTRegressor(monotonic_cst=[1, 0, 0, 0, 0, 0], max_depth=5)
    grid = np.zeros((50, 6))
    grid[:, 0] = np.linspace(-2, 2, 50)
    steps = {}
    for base in (tree, CARTRegressor(max_depth=5)):
        model = BaggingRegressor(base, 20, max_features=0.5, random_state=0).fit(X, y)
        steps[base.monotonic_cst is not None] = np.diff(model.predict(grid))
    assert steps[True].min() >= 0.0
    assert steps[True].max() > 0.1
    assert steps[False].min() < -0.01


def test_features_drawn_per_node_are_drawn_from_the_columns_of_the_member(kind):
    X, y = make_table()
    model = kind(TREES[kind](max_features=0.5), 5, max_features=4, random_state=0).fit(X, y)
    assert model[0].max_features_ == 2
    for features, tree in zip(model.estimators_features_, model.forest_, strict=True):
        assert set(tree.feature[~tree.is_leaf]) <= set(features.tolist())
        tree.check()
    assert not np.array_equal(model[0].tree_.test, model[1].tree_.test)


# --- out of bag ---------------------------------------------------------------------------------------------


def hand_votes(model, X):
    """Out-of-bag means by a loop over members, bags and columns."""
    classes = getattr(model, "classes_", None)
    total = np.zeros((len(X), 1 if classes is None else len(classes)))
    n_votes = np.zeros(len(X))
    for member, bag, features in zip(
        model.estimators_, model.estimators_samples_, model.estimators_features_, strict=True
    ):
        out = np.setdiff1d(np.arange(len(X)), bag)
        Z = X[out][:, features]
        n_votes[out] += 1
        if classes is None:
            total[out, 0] += member.predict(Z)
        elif model.voting == "hard" or not all(hasattr(m, "predict_proba") for m in model.estimators_):
            total[out, np.searchsorted(classes, member.predict(Z))] += 1.0
        else:
            total[out[:, None], np.searchsorted(classes, member.classes_)] += member.predict_proba(Z)
    with np.errstate(invalid="ignore"):
        return total / n_votes[:, None]


@pytest.mark.parametrize(
    "model",
    [
        BaggingClassifier(n_estimators=15, max_features=0.5),
        BaggingClassifier(n_estimators=15, voting="hard", bootstrap="poisson"),
        BaggingClassifier(CARTClassifier(max_depth=2), 15, bootstrap=False, max_samples=0.6),
        BaggingClassifier([KNeighborsClassifier(3), GaussianNB()], 14, max_features=3),
        BaggingClassifier([GaussianNB(), RidgeClassifier()], 14),
        BaggingClassifier(GaussianNB(), 14, voting="hard", bootstrap_features=True),
        BaggingRegressor(n_estimators=15, max_features=4, bootstrap_features=True),
        BaggingRegressor([LinearRegression(), KNeighborsRegressor(2)], 14, max_features=0.7),
    ],
    ids=lambda model: str(model).replace("\n", ""),
)
@pytest.mark.filterwarnings("ignore:.* rows were in every bag")
def test_out_of_bag_votes_equal_a_loop_by_hand(model):
    X, y = make_table(100)
    model = clone(model).set_params(oob_score=True, random_state=2).fit(X, y)
    expected = hand_votes(model, X)
    if isinstance(model, BaggingClassifier):
        np.testing.assert_allclose(model.oob_decision_function_, expected, rtol=1e-12)
        has_votes = ~np.isnan(expected[:, 0])
        wrong = (model.classes_[expected.argmax(axis=1)] != y)[has_votes]
        assert model.oob_score_ == pytest.approx(1 - wrong.mean())
        assert model.oob_curve_[-1] == pytest.approx(wrong.mean())
    else:
        np.testing.assert_allclose(model.oob_prediction_, expected[:, 0], rtol=1e-12)
        assert model.oob_curve_[-1] == pytest.approx(np.nanmean((expected[:, 0] - y) ** 2))
    assert model.oob_curve_.shape == (len(model),)


@pytest.mark.parametrize("base", [None, KNeighborsClassifier(3)], ids=["trees", "members"])
def test_out_of_bag_scores_by_name_and_by_function(base):
    X, y = make_table()
    settings = {"estimator": base, "n_estimators": 30, "random_state": 0}
    model = BaggingClassifier(oob_score="neg_log_loss", **settings).fit(X, y)
    assert model.oob_score_ == pytest.approx(-log_loss(y, model.oob_decision_function_))
    model = BaggingClassifier(oob_score=lambda a, b: np.mean(a == b) * 10, **settings).fit(X, y)
    assert model.oob_score_ == pytest.approx(10 * np.mean(model.oob_decision_function_.argmax(axis=1) == y))
    regressor = None if base is None else KNeighborsRegressor(3)
    model = BaggingRegressor(regressor, 30, oob_score=mean_absolute_error, random_state=0).fit(X, y)
    assert model.oob_score_ == pytest.approx(np.abs(model.oob_prediction_ - y).mean())


@pytest.mark.parametrize("base", [None, "members"])
def test_rows_in_every_bag_are_nan_and_told(kind, base):
    X, y = make_table()
    base = None if base is None else general(TREES[kind]())
    with pytest.warns(UserWarning, match="rows were in every bag"):
        model = kind(base, 2, oob_score=True, random_state=0).fit(X, y)
    shown = model.oob_decision_function_[:, 0] if kind is BaggingClassifier else model.oob_prediction_
    in_all = np.intersect1d(*model.estimators_samples_)
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(shown)), in_all)
    assert np.isfinite(model.oob_score_)
    model.set_params(oob_score=False).fit(X, y)  # what an earlier fit has found is gone
    assert not [name for name in vars(model) if "oob" in name and name != "oob_score"]


# --- members ------------------------------------------------------------------------------------------------


def test_members_equal_estimators_fitted_by_hand():
    X, y = make_table()
    model = BaggingClassifier(KNeighborsClassifier(5), 6, max_features=0.5, random_state=0).fit(X, y)
    total = 0.0
    for bag, features in zip(model.estimators_samples_, model.estimators_features_, strict=True):
        total += KNeighborsClassifier(5).fit(X[bag][:, features], y[bag]).predict_proba(X[:, features])
    np.testing.assert_allclose(model.predict_proba(X), total / 6, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), total.argmax(axis=1))
    np.testing.assert_array_equal(model.predict_log_proba(X)[total > 0], np.log(model.predict_proba(X)[total > 0]))


def test_counts_are_weights_where_members_take_them():
    X, y = make_table()
    model = BaggingRegressor(LinearRegression(), 5, random_state=0).fit(X, y)
    by_hand = [LinearRegression().fit(X[bag], y[bag]).predict(X) for bag in model.estimators_samples_]
    np.testing.assert_allclose(model.predict(X), np.mean(by_hand, axis=0), rtol=1e-9)


class Spy(ClassifierMixin, BaseEstimator):
    """Remembers what it was fitted and asked with."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        self.seen_ = X, y, sample_weight
        self.classes_ = np.unique(y)
        self.config_ = sklearn.get_config()["assume_finite"]
        self.thread_ = threading.get_ident()
        return self

    def predict(self, X):
        self.asked_ = X
        return np.full(len(X), self.classes_[0])


class UnweighedSpy(Spy):
    """Takes no weights, and returns nothing from `fit`."""

    def fit(self, X, y):
        super().fit(X, y)


def test_members_that_take_weights_get_all_rows_and_others_their_bag():
    X, y = make_table()
    model = BaggingClassifier([Spy(), UnweighedSpy()], 4, random_state=0).fit(X, y)
    for t, (member, bag) in enumerate(zip(model.estimators_, model.estimators_samples_, strict=True)):
        seen_x, seen_y, weight = member.seen_
        rows = np.arange(len(X)) if t % 2 == 0 else bag
        np.testing.assert_array_equal(seen_x, X[rows])
        np.testing.assert_array_equal(seen_y, y[rows])
        np.testing.assert_array_equal(weight, np.bincount(bag, minlength=len(X)) if t % 2 == 0 else None)


def test_f3_a_bag_that_lacks_a_class_ends_no_fit():
    X, y = np.random.default_rng(0).normal(size=(300, 4)), np.zeros(300, int)
    y[:3] = 1
    n_lacking = 0
    for seed in range(5):
        model = BaggingClassifier(LogisticRegression(), 20, random_state=seed).fit(X, y)
        n_lacking += sum(bag.min() > 2 for bag in model.estimators_samples_)
        assert all(member.classes_.tolist() == [0, 1] for member in model.estimators_)
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert n_lacking > 0


def test_f3_members_without_weights_see_the_classes_of_their_bag():
    X, y = make_table(60)
    y = (np.arange(60) == 0).astype(int)
    model = BaggingClassifier(KNeighborsClassifier(1), 20, random_state=0).fit(X, y)
    for member, bag in zip(model.estimators_, model.estimators_samples_, strict=True):
        assert member.classes_.tolist() == np.unique(y[bag]).tolist()


@pytest.mark.parametrize("base", [Spy(), UnweighedSpy()], ids=["weights", "none"])
def test_f4_the_member_is_kept_not_what_its_fit_returns(base):
    class Silent(type(base)):
        def fit(self, *given, **weights):
            super().fit(*given, **weights)

    Silent.fit.__signature__ = inspect.signature(type(base).fit)
    X, y = make_table()
    model = BaggingClassifier(Silent(), 3, random_state=0).fit(X, y)
    assert all(type(member) is Silent for member in model.estimators_)
    assert model.predict(X).tolist() == [0] * len(X)


@pytest.mark.parametrize("labels", ["groups", "strata", None])
def test_members_see_the_weights_that_bags_are_not_drawn_by(labels):
    X, y = make_table()
    weight = np.random.default_rng(0).integers(0, 4, len(y)).astype(float)
    given = {} if labels is None else {labels: np.arange(len(y)) // 6}
    settings = {"bootstrap": False, "max_samples": 0.5} if labels is None else {}
    model = BaggingClassifier(Spy(), 3, random_state=0, **settings).fit(X, y, weight, **given)
    for member, bag in zip(model.estimators_, model.estimators_samples_, strict=True):
        np.testing.assert_array_equal(member.seen_[0], X)  # all of them, as in scikit-learn: some have weight 0
        np.testing.assert_array_equal(member.seen_[2], np.bincount(bag, minlength=len(X)) * weight)
    near = BaggingClassifier(KNeighborsClassifier(), 3, random_state=0, **settings)
    with pytest.raises(ValueError, match="takes no sample_weight, and only bags of rows with replacement"):
        near.fit(X, y, weight, **given)
    near.fit(X, y, weight > 0, **given)  # some rows or none: that can be had without weights
    assert all((weight[bag] > 0).all() for bag in near.estimators_samples_)


def test_members_get_seeds_of_their_own():
    X, y = make_table()
    model = BaggingClassifier([Spy(), make_pipeline(StandardScaler(), Spy(7))], 8, random_state=0).fit(X, y)
    seeds = [m.random_state if isinstance(m, Spy) else m[-1].random_state for m in model.estimators_]
    assert seeds == [member_seed(model._bags.seed, t) for t in range(8)]
    assert len(set(seeds)) == 8
    assert all(0 <= seed < 2**31 for seed in seeds)
    assert model.estimator[1][-1].random_state == 7  # what was given is left alone
    other = BaggingClassifier(Spy(), 8, random_state=1).fit(X, y)
    assert not {m.random_state for m in other.estimators_} & set(seeds)


def test_members_of_a_list_take_turns():
    X, y = make_table()
    kinds = [LogisticRegression(), ("near", KNeighborsClassifier(3)), CARTClassifier(max_depth=2)]
    model = BaggingClassifier(kinds, 7, random_state=0).fit(X, y)
    turns = [LogisticRegression, KNeighborsClassifier, CARTClassifier]
    assert [type(m) for m in model.estimators_] == [turns[t % 3] for t in range(7)]
    assert model.estimator_[1] is kinds[1][1]
    assert model.score(X, y) > 0.7
    copied = clone(model)
    assert copied.estimator[1][0] == "near"
    assert copied.estimator[0] is not kinds[0]
    np.testing.assert_array_equal(copied.fit(X, y).predict_proba(X), model.predict_proba(X))


def test_votes_are_counted_where_a_member_has_no_probabilities():
    X, y = make_table()
    model = BaggingClassifier([SVC(), GaussianNB()], 6, random_state=0).fit(X, y)
    votes = np.stack([member.predict(X) for member in model.estimators_])
    shares = (votes[:, :, None] == model.classes_).mean(axis=0)
    np.testing.assert_allclose(model.predict_proba(X), shares, rtol=1e-12)
    hard = BaggingClassifier(GaussianNB(), 6, voting="hard", random_state=0).fit(X, y)
    assert set(np.unique(hard.predict_proba(X) * 6).round(9)) <= set(range(7))


@pytest.mark.parametrize("base", [None, DecisionTreeClassifier(), RidgeClassifier(), KNeighborsClassifier(1)])
@pytest.mark.parametrize("labels", [np.array(["ash", "elm", "oak"]), np.array([-5, 0, 9])], ids=["text", "numbers"])
def test_a_bag_may_miss_a_class(base, labels):
    X, y = make_table(60)
    y[:] = y > 0
    X[0], y[0] = 9.0, 2  # the only row of its class
    model = BaggingClassifier(base, 20, random_state=0).fit(X, labels[y])
    holds = np.array([0 in bag for bag in model.estimators_samples_])
    assert 0 < holds.sum() < 20
    assert model.predict_proba(X[:1])[0] == pytest.approx(
        np.mean(
            [
                [np.mean(member.predict(X[:1]) == label) for label in labels]  # all are sure of themselves
                for member in model.estimators_
            ],
            axis=0,
        )
    )
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.predict_proba(X[:1])[0, 2] == pytest.approx(holds.mean())
    assert set(model.predict(X)) <= set(labels)


@pytest.mark.parametrize("base", [SkForest(2), RandomForestClassifier(n_estimators=2)], ids=["theirs", "ours"])
def test_ensembles_of_ensembles(base):
    X, y = make_table()
    model = BaggingClassifier(base, 3, n_jobs=2, random_state=0).fit(X, y)  # an unfitted ensemble has no length
    assert model.score(X, y) > 0.8
    one = BaggingClassifier(base, 3, random_state=0).fit(X, y)
    np.testing.assert_array_equal(one.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("base", [None, KNeighborsClassifier(1)])
@pytest.mark.parametrize("voting", ["soft", "hard"])
def test_a_single_class(base, voting):
    X, _ = make_table(20)
    model = BaggingClassifier(base, 30, voting=voting, oob_score=True, random_state=0).fit(X, ["oak"] * 20)
    assert model.predict_proba(X).tolist() == [[1.0]] * 20
    assert model.predict(X).tolist() == ["oak"] * 20
    assert model.oob_score_ == 1.0


# --- kinds of X ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("base", [Spy(), UnweighedSpy()], ids=["weights", "none"])
def test_frames_reach_the_members_as_frames(library, base):
    X, y = make_table(80)
    frame = library({f"f{j}": X[:, j] for j in range(6)})
    model = BaggingClassifier(base, 3, max_features=0.5, random_state=0).fit(frame, y)
    model.predict(frame)
    for member, bag, features in zip(
        model.estimators_, model.estimators_samples_, model.estimators_features_, strict=True
    ):
        seen = member.seen_[0]
        assert type(seen) is type(frame) is type(member.asked_)
        names = seen.column_names if library is pa.table else list(seen.columns)
        assert names == [f"f{j}" for j in features]
        expected = (X if type(base) is Spy else X[bag])[:, features]
        np.testing.assert_array_equal(np.column_stack([np.asarray(seen[name]) for name in names]), expected)
    assert model.feature_names_in_.tolist() == [f"f{j}" for j in range(6)]
    with pytest.warns(UserWarning, match="BaggingClassifier was fitted with feature names") as told:
        model.predict(X)
    assert told[0].filename == __file__


def test_pipelines_by_column_name():
    X, y = make_frame()
    X = X.drop(columns=["b"])
    encoder = make_column_transformer((OneHotEncoder(), ["colour", "size"]), remainder="passthrough")
    model = BaggingClassifier(make_pipeline(encoder, LogisticRegression()), 5, oob_score=True, random_state=0)
    with pytest.warns(UserWarning, match="every bag"):
        model.fit(X, y)
    assert model.oob_score_ > 0.5


def test_frames_whose_names_are_no_text():
    X, y = make_table(80)
    frame = pd.DataFrame(X, columns=list(range(10, 16)))
    model = BaggingClassifier(Spy(), 3, max_features=2, random_state=0).fit(frame, y)
    assert list(model[0].seen_[0].columns) == [10 + j for j in model.estimators_features_[0]]
    assert not hasattr(model, "feature_names_in_")


def test_sparse_rows_and_columns():
    X, y = make_table()
    X[np.abs(X) < 0.7] = 0.0
    settings = {"n_estimators": 5, "max_features": 0.7, "random_state": 0}
    dense = BaggingClassifier(LogisticRegression(tol=1e-10), **settings).fit(X, y)
    sparse = BaggingClassifier(LogisticRegression(tol=1e-10), **settings).fit(csr_matrix(X), y)
    assert all(m.n_features_in_ == 4 for m in sparse.estimators_)
    np.testing.assert_allclose(sparse.predict_proba(csr_matrix(X)), dense.predict_proba(X), rtol=1e-4)
    with pytest.raises(ValueError, match="X has 3 features, but BaggingClassifier is expecting 6"):
        sparse.predict(csr_matrix(X[:, :3]))
    for base in (None, CARTClassifier()):
        trees = BaggingClassifier(base, **settings).fit(csr_matrix(X), y)
        full = BaggingClassifier(base, **settings).fit(X, y)
        np.testing.assert_array_equal(trees.predict_proba(csr_matrix(X)), full.predict_proba(X))


def test_lists_of_text_reach_the_members():
    X = [["red", "s"], ["blue", "m"], ["red", "m"], ["blue", "s"]] * 10
    y = ["a", "b", "a", "b"] * 10
    model = BaggingClassifier(make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression()), 3)
    assert model.set_params(random_state=0).fit(X, y).predict(X[:2]).tolist() == ["a", "b"]


# --- bags ---------------------------------------------------------------------------------------------------


def test_pasting_draws_without_replacement(kind):
    X, y = make_table()
    model = kind(n_estimators=5, bootstrap=False, max_samples=0.25, random_state=0).fit(X, y)
    for bag in model.estimators_samples_:
        assert len(bag) == len(set(bag.tolist())) == 30
    whole = kind(TREES[kind](), n_estimators=3, bootstrap=False, random_state=0).fit(X, y)
    assert all(bag.tolist() == list(range(len(X))) for bag in whole.estimators_samples_)
    assert_same_trees(whole.forest_, [TREES[kind]().fit(X, y).tree_.arrays] * 3)


@pytest.mark.parametrize("bootstrap", [True, False])
def test_targets_far_off_do_not_matter_without_weight(bootstrap):
    X, _ = make_table()
    y, weight = X[:, 0] + 0.1 * X[:, 1], 0.1 * (np.arange(len(X)) % 3)
    model, liar = (
        BaggingRegressor(bootstrap=bootstrap, random_state=0).fit(X, target, weight)
        for target in (y, np.where(weight > 0, y, 1e300))
    )
    assert_same_trees(model.forest_, liar.forest_)


@pytest.mark.parametrize("base", [None, "members"])
@pytest.mark.parametrize("settings", [{}, {"max_features": 2}, {"bootstrap": False, "max_samples": 0.5}], ids=str)
@pytest.mark.filterwarnings("ignore:.* rows were in every bag")
def test_targets_near_the_end_of_float64(base, settings):
    """A power of two changes nothing but the exponents."""
    X, _ = make_table()
    y = np.sign(X[:, 0]) + 0.4 * np.sign(X[:, 1])
    base = None if base is None else general(CARTRegressor())
    settings = {**settings, "n_estimators": 20, "oob_score": True, "random_state": 0}
    small, large = (BaggingRegressor(base, **settings).fit(X, np.ldexp(y, bits)) for bits in (0, 1023))
    assert np.abs(large.predict(X)).max() > 1e308
    np.testing.assert_array_equal(large.predict(X), np.ldexp(small.predict(X), 1023))
    np.testing.assert_array_equal(large.oob_prediction_, np.ldexp(small.oob_prediction_, 1023))
    assert large.oob_score_ == pytest.approx(small.oob_score_)


def test_groups_without_weight_do_not_count(kind):
    X, y = make_table()
    groups = np.arange(len(y)) // 4
    for settings, n_drawn in (({}, 10), ({"max_samples": 0.5}, 5), ({"bootstrap": False, "max_samples": 0.5}, 5)):
        model = kind(n_estimators=3, random_state=0, **settings).fit(X, y, groups < 10, groups=groups)
        assert [len(bag) for bag in model.estimators_samples_] == [4 * n_drawn] * 3
        assert max(bag.max() for bag in model.estimators_samples_) < 40


def test_groups_strata_and_blocks(kind):
    X, y = make_table()
    groups = np.random.default_rng(0).integers(0, 30, len(y))
    model = kind(n_estimators=5, random_state=0).fit(X, y, groups=groups)
    for bag in model.estimators_samples_:
        out = np.setdiff1d(np.arange(len(y)), bag)
        assert not set(groups[bag]) & set(groups[out])
    model = kind(n_estimators=5, block_size=10, random_state=0).fit(X, y)
    for bag in model.estimators_samples_:
        counts = np.bincount(bag, minlength=len(y)).reshape(-1, 10)
        assert (counts == counts[:, :1]).all()
    strata = np.array(["x", "y", "z"])[np.arange(len(y)) % 3]
    model = kind(n_estimators=5, random_state=0).fit(X, y, strata=strata)
    for bag in model.estimators_samples_:
        assert np.unique(strata[bag], return_counts=True)[1].tolist() == [40, 40, 40]


def test_bags_stratified_by_class():
    X, y = make_table()
    model = BaggingClassifier(GaussianNB(), 5, stratify="class", random_state=0).fit(X, y)
    for bag in model.estimators_samples_:
        np.testing.assert_array_equal(np.bincount(y[bag]), np.bincount(y))
    model = BaggingClassifier(n_estimators=5, stratify="balanced", random_state=0).fit(X, y)
    for bag in model.estimators_samples_:
        assert np.bincount(y[bag]).tolist() == [np.bincount(y).min()] * 3


def test_rows_of_weight_zero_are_in_no_bag(kind):
    X, y = make_table()
    weight = (np.arange(len(y)) % 3 == 0).astype(float)
    for settings in ({}, {"bootstrap": "poisson"}, {"bootstrap": False, "max_samples": 0.5}):
        model = kind(n_estimators=4, random_state=0, **settings).fit(X, y, weight)
        assert all((bag % 3 == 0).all() for bag in model.estimators_samples_)
    assert len(model.estimators_samples_[0]) == 20  # half of the rows that can be drawn
    model = kind(general(TREES[kind]()), 4, bootstrap=False, random_state=0).fit(X, y, weight)
    assert all(member.tree_.n_rows[0] == 40 for member in model.estimators_)


@pytest.mark.parametrize("base", [None, "members"])
def test_rows_of_weight_zero_have_no_out_of_bag_votes(kind, base):
    X, y = make_table()
    weight = (np.arange(len(y)) % 3 == 0).astype(float)
    base = None if base is None else general(TREES[kind]())
    model = kind(base, 40, max_samples=40, oob_score=True, random_state=0).fit(X, y, weight)
    shown = model.oob_decision_function_[:, 0] if kind is BaggingClassifier else model.oob_prediction_
    np.testing.assert_array_equal(np.isnan(shown), weight == 0.0)
    few = kind(base, 40, oob_score=True, random_state=0).fit(X[::3], y[::3])
    assert abs(model.oob_score_ - few.oob_score_) < 0.15  # other bags of the same rows


def test_fractions_are_of_the_sum_of_the_weights(kind):
    X, y = make_table()
    model = kind(n_estimators=2, max_samples=0.5, random_state=0).fit(X, y, np.full(len(y), 2.0))
    assert [len(bag) for bag in model.estimators_samples_] == [120, 120]


# --- columns ------------------------------------------------------------------------------------------------


def test_columns_are_drawn_evenly_and_apart_from_rows():
    spaces = Subspaces(10, 3, seed=4)
    drawn = np.array([spaces.columns(t) for t in range(4000)])
    assert (np.diff(drawn, axis=1) > 0).all()
    often = np.bincount(drawn.ravel(), minlength=10)
    assert np.abs(often - 1200).max() < 4 * np.sqrt(4000 * 0.3 * 0.7)
    assert len({tuple(columns) for columns in drawn.tolist()}) == 120  # every subspace comes
    repeated = np.array([Subspaces(10, 10, 4, has_repeats=True).columns(t) for t in range(500)])
    assert np.mean([len(set(columns)) for columns in repeated.tolist()]) == pytest.approx(10 * (1 - 0.9**10), abs=0.15)
    np.testing.assert_array_equal(spaces.columns(3), Subspaces(10, 3, seed=4).columns(3))
    assert any(not np.array_equal(spaces.columns(t), Subspaces(10, 3, seed=5).columns(t)) for t in range(5))


@pytest.mark.parametrize(("max_features", "expected"), [(1, 1), (4, 4), (0.5, 3), (0.01, 1), (1.0, 6)])
def test_max_features(kind, max_features, expected):
    X, y = make_table()
    model = kind(n_estimators=3, max_features=max_features, random_state=0).fit(X, y)
    assert [len(features) for features in model.estimators_features_] == [expected] * 3
    assert [member.n_features_in_ for member in model.estimators_] == [expected] * 3


def test_trees_of_subspaces_are_told_the_columns_of_the_table_and_back():
    X, y = make_frame()
    columns = np.array([1, 3, 4])
    tree = CARTClassifier().fit(X.iloc[:, columns], y).tree_.arrays
    n_levels = np.array([0, 0, 0, 3, 3], np.int32)
    wide = widen_tree(tree, columns, n_levels)
    inner = ~tree.is_leaf
    np.testing.assert_array_equal(wide.feature[inner], columns[tree.feature[inner]])
    np.testing.assert_array_equal(wide.missing_branch, tree.missing_branch)
    wide.check()
    assert_same_tree(narrow_tree(wide, columns).with_legend(tree.legend), tree)


# --- the same bits ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [None, "members"])
@pytest.mark.compiled(reason="takes minutes interpreted")
def test_results_do_not_depend_on_threads(kind, base):
    X, y = make_table(400)
    base = None if base is None else [TREES[kind](max_depth=3), TREES[kind](max_features=2)]
    settings = {"n_estimators": 30, "max_features": 4, "oob_score": True, "random_state": 0}
    models = [kind(base, n_jobs=n_jobs, **settings).fit(X, y) for n_jobs in (1, 2, 8)]
    for other in models[1:]:
        assert_same_trees([m.tree_.arrays for m in other.estimators_], [m.tree_.arrays for m in models[0].estimators_])
        np.testing.assert_array_equal(other.oob_curve_, models[0].oob_curve_)
        assert numbers_of(other, X).tobytes() == numbers_of(models[0], X).tobytes()


def test_threads_have_the_configuration_of_the_caller():
    X, y = make_table()
    for n_jobs in (1, 3):
        with sklearn.config_context(assume_finite=True):
            model = BaggingClassifier(Spy(), 6, n_jobs=n_jobs, random_state=0).fit(X, y)
        assert all(member.config_ for member in model.estimators_)
        assert (threading.get_ident() in {member.thread_ for member in model.estimators_}) == (n_jobs == 1)


@pytest.mark.parametrize("base", [None, "members"])
def test_a_pickled_model_answers_alike(kind, base):
    X, y = make_frame()
    base = None if base is None else general(TREES[kind]())
    model = kind(base, 5, max_features=0.6, random_state=0).fit(X, y)
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(numbers_of(other, X), numbers_of(model, X))
    for a, b in zip(other.estimators_samples_, model.estimators_samples_, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_random_state_is_drawn_from_once(kind):
    X, y = make_table()
    state, reference = np.random.RandomState(3), np.random.RandomState(3)
    kind(TREES[kind](random_state=state, max_features=2), 3, random_state=state).fit(X, y)
    reference.randint(np.iinfo(np.int32).max)
    assert state.get_state()[2] == reference.get_state()[2]


# --- warm start ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [None, "members"])
def test_a_warm_start_gives_the_ensemble_fitted_at_once(kind, base):
    X, y = make_table()
    base = None if base is None else [TREES[kind](max_depth=3), TREES[kind](max_features=2)]
    settings = {"max_features": 4, "oob_score": True, "random_state": 0}
    once = kind(base, 24, **settings).fit(X, y)
    grown = kind(base, 15, warm_start=True, **settings).fit(X, y)
    grown.set_params(n_estimators=24).fit(X, y)
    with pytest.warns(UserWarning, match="does not fit new trees"):
        grown.fit(X, y)  # nothing more to do
    assert len(grown) == 24
    assert_same_trees([m.tree_.arrays for m in grown.estimators_], [m.tree_.arrays for m in once.estimators_])
    np.testing.assert_array_equal(grown.oob_curve_, once.oob_curve_)
    assert grown.oob_score_ == once.oob_score_
    np.testing.assert_array_equal(numbers_of(grown, X), numbers_of(once, X))


@pytest.mark.parametrize("base", [None, "members"])
def test_what_a_warm_start_refuses(kind, base):
    X, y = make_table()
    base = None if base is None else general(TREES[kind]())
    model = kind(base, 6, warm_start=True, random_state=0).fit(X, y)
    before = numbers_of(model, X)

    def refused(message, X=X, y=y, **changes):
        before_changes = model.get_params(deep=False)
        model.set_params(**changes)
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)
        model.set_params(**before_changes)

    refused("n_estimators=3 must be larger or equal to", n_estimators=3)
    with_oob = {"n_estimators": 8, "oob_score": True}
    refused(r"6 of them come from an earlier fit on other rows \(X, y or sample_weight differed", y=y[::-1], **with_oob)
    refused(r"a parameter of the draw \(n_drawn\) differed", max_samples=0.5, **with_oob)
    refused(r"X, y or sample_weight differed", X=X * 7 + 3, **with_oob)
    refused("columns are drawn as those before", n_estimators=8, max_features=0.5)
    refused(f"X has {X.shape[1] - 1} columns, and had {X.shape[1]}", X=X[:, 1:], n_estimators=8)
    refused("names of the columns differ", X=pd.DataFrame(X).add_prefix("f"), n_estimators=8)
    if base is not None:
        refused("must be set from the first fit", n_estimators=8, oob_score=True)
    other = general(TREES[kind]()) if base is None else None
    refused("estimator is of another kind", n_estimators=8, estimator=other)
    np.testing.assert_array_equal(numbers_of(model, X), before)  # none of that has touched it
    model.set_params(warm_start=False, estimator=other, n_estimators=2).fit(X, y)  # from one way to the other
    assert len(model) == 2
    assert hasattr(model, "forest_") == (other is None)


@pytest.mark.filterwarnings("ignore:.* rows were in every bag")
def test_trees_vote_out_of_bag_when_asked_later(kind):
    X, y = make_frame()
    settings = {"max_features": 3, "random_state": 0}
    once = kind(n_estimators=24, oob_score=True, **settings).fit(X, y)
    grown = kind(n_estimators=15, warm_start=True, **settings).fit(X, y)
    grown.set_params(n_estimators=24, oob_score=True).fit(X, y)
    np.testing.assert_array_equal(grown.oob_curve_, once.oob_curve_)
    assert grown.oob_score_ == once.oob_score_


@pytest.mark.filterwarnings("ignore:.* rows were in every bag")
def test_a_warm_start_with_another_voting():
    X, y = make_table()
    settings = {"n_estimators": 15, "warm_start": True, "oob_score": True, "random_state": 0}
    changes = {"voting": "hard", "n_estimators": 24}
    tree = CARTClassifier(max_depth=3)
    grown = BaggingClassifier(tree, max_features=4, **settings).fit(X, y).set_params(**changes).fit(X, y)
    once = BaggingClassifier(tree, max_features=4, **{**settings, **changes}).fit(X, y)
    np.testing.assert_array_equal(grown.oob_decision_function_, once.oob_decision_function_)
    np.testing.assert_array_equal(grown.predict_proba(X), once.predict_proba(X))
    for other in ({"voting": "hard"}, {"estimator": RidgeClassifier()}):
        model = BaggingClassifier(GaussianNB(), **settings).fit(X, y).set_params(n_estimators=24, **other)
        with pytest.raises(ValueError, match="class shares from some members and would have votes from others"):
            model.fit(X, y)


def change_array(X):
    X = X.copy()
    X[-1, -1] += 1.0
    return X


def change_sparse(X):
    X = X.copy()
    X.indices[:2] = X.indices[1::-1]
    return X


LETTERS = np.array(list("abcdef") * 20, object).reshape(60, 2)
NUMBERS = make_table(60, 4)[0]


@pytest.mark.parametrize(
    ("X", "other"),
    [
        (NUMBERS, change_array(NUMBERS)),
        (NUMBERS, NUMBERS[:, ::-1]),
        (NUMBERS.tolist(), change_array(NUMBERS).tolist()),
        (csr_matrix(NUMBERS), change_sparse(csr_matrix(NUMBERS))),
        (csr_matrix(NUMBERS), csr_matrix(change_array(NUMBERS))),
        (LETTERS, np.where(LETTERS == "a", "z", LETTERS)),
        (pd.DataFrame(LETTERS), pd.DataFrame(np.where(LETTERS == "a", "z", LETTERS))),
        (pd.DataFrame(LETTERS, dtype="category"), pd.DataFrame(LETTERS[::-1], dtype="category")),
        (pl.DataFrame(NUMBERS), pl.DataFrame(change_array(NUMBERS))),
        (pl.DataFrame(NUMBERS), pl.DataFrame(NUMBERS, schema=["p", "q", "r", "s"])),
        (pa.table({"a": NUMBERS[:, 0], "b": LETTERS[:, 0]}), pa.table({"a": NUMBERS[:, 0], "b": LETTERS[::-1, 0]})),
    ],
)
def test_a_warm_start_knows_the_data_again(X, other):
    y = np.arange(60) % 3
    model = BaggingClassifier(Spy(), 2, warm_start=True, random_state=0).fit(X, y).set_params(n_estimators=3)
    kept = pickle.dumps(model)
    if list(getattr(X, "columns", ())) != list(getattr(other, "columns", ())) and not isinstance(X, pa.Table):
        with pytest.raises(ValueError, match="names of the columns differ"):
            pickle.loads(kept).fit(other, y)
    else:
        assert pickle.loads(kept).fit(other, y)._fitted.earlier.n_members == 2
    model = pickle.loads(kept)
    with pytest.raises(ValueError, match=r"its classes are \('a', 'b', 'c'\), and were \(0, 1, 2\)"):
        model.fit(X, np.array(["a", "b", "c"])[y])
    again = X.copy() if hasattr(X, "copy") else pickle.loads(pickle.dumps(X))
    assert len(model.fit(again, y)) == 3
    assert model._fitted.earlier is None


@pytest.mark.filterwarnings("ignore:.* rows were in every bag")
def test_a_warm_start_needs_the_weights_that_members_see(kind):
    X, y = make_table()
    for base in (None, general(TREES[kind]())):
        model = kind(base, 2, bootstrap=False, max_samples=0.5, warm_start=True, oob_score=True, random_state=0)
        model.fit(X, y, np.arange(len(y)) + 1.0).set_params(n_estimators=3)
        with pytest.raises(ValueError, match="X, y or sample_weight differed"):
            model.fit(X, y, np.arange(len(y)) + 2.0)
        assert len(model.fit(X, y, np.arange(len(y)) + 1.0)) == 3


# --- the estimator ------------------------------------------------------------------------------------------


def test_members_by_index(kind):
    X, y = make_table()
    model = kind(n_estimators=4, max_features=0.5, random_state=0).fit(X, y)
    assert len(model) == 4
    assert_same_tree(model[-1].tree_.arrays, model.estimators_[3].tree_.arrays)
    assert isinstance(model[0], TREES[kind])
    with pytest.raises(IndexError):
        _ = model[4]
    by_hand = [
        numbers_of(m, X[:, features]) for m, features in zip(model.estimators_, model.estimators_features_, strict=True)
    ]
    np.testing.assert_allclose(numbers_of(model, X), np.mean(by_hand, axis=0), rtol=1e-12)
    assert model[0].random_state > 2**32  # the seed that it was grown by


def test_unfitted_models_say_so(kind):
    X, y = make_table()
    model = kind()
    with pytest.raises(NotFittedError):
        model.predict(X)
    for name in ("estimators_", "estimators_samples_", "estimators_features_", "feature_importances_", "forest_"):
        assert not hasattr(model, name)
    model = kind(general(TREES[kind]()), random_state=0).fit(X, y)
    assert not hasattr(model, "feature_importances_")  # these members make no forest


def test_a_refused_refit_keeps_the_old_model(kind):
    X, y = make_table()
    model = kind(n_estimators=3, random_state=0).fit(X, y)
    before = numbers_of(model, X)
    with pytest.raises(ValueError, match="max_features=50 must be <= n_features=6"):
        model.set_params(max_features=50).fit(X, y)
    np.testing.assert_array_equal(numbers_of(model, X), before)


def test_parameters_of_the_members_can_be_searched():
    X, y = make_table()
    model = BaggingClassifier(CARTClassifier(), 3, random_state=0)
    search = GridSearchCV(model, {"estimator__max_depth": [1, 3], "max_features": [0.5, 1.0]}, cv=3).fit(X, y)
    depth = [max(tree.depth for tree in model.set_params(**p).fit(X, y).forest_) for p in search.cv_results_["params"]]
    assert depth == [1, 1, 3, 3]


def test_groups_are_routed():
    X, y = make_table()
    groups = np.arange(len(y)) // 4
    with sklearn.config_context(enable_metadata_routing=True):
        model = BaggingClassifier(n_estimators=3, random_state=0).set_fit_request(groups=True)
        found = cross_validate(model, X, y, cv=GroupKFold(3), params={"groups": groups}, return_estimator=True)
    for fitted, rows in zip(found["estimator"], GroupKFold(3).split(X, y, groups), strict=True):
        own = groups[rows[0]]
        for bag in fitted.estimators_samples_:
            assert not set(own[bag]) & set(np.delete(own, np.unique(bag)))


class Broken(RegressorMixin, BaseEstimator):
    def fit(self, *_):
        raise ValueError("no luck")

    def predict(self, X):
        return np.zeros(len(X))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_errors_name_the_member(n_jobs):
    X, y = make_table()
    with pytest.raises(ValueError, match="no luck") as caught:
        BaggingRegressor([LinearRegression(), ("odd", Broken())], 5, n_jobs=n_jobs).fit(X, y)
    assert caught.value.__notes__ == ["raised by member 1 of 'odd': Broken()"]


def test_a_bag_of_one_class_is_told():
    X, y = make_table(40)
    y = (np.arange(40) == 0).astype(int)
    model = make_pipeline(LogisticRegression())  # whose fit takes no weights
    with pytest.raises(ValueError, match="class") as caught:
        BaggingClassifier(model, 20, random_state=0).fit(X, y)
    assert "its bag holds class 0 only; stratify='class' draws from every class" in caught.value.__notes__
    BaggingClassifier(model, 20, stratify="class", random_state=0).fit(X, y)


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"estimator": []}, ValueError, "estimator is an empty list: give at least one"),
        (
            {"estimator": [CARTClassifier(), 3]},
            TypeError,
            r"estimator\[1\] of BaggingClassifier is 3, which has no fit",
        ),
        ({"estimator": LogisticRegression}, TypeError, "is the class LogisticRegression: give an instance"),
        ({"estimator": LinearRegression()}, ValueError, r"LinearRegression\(\), which is no classifier"),
        ({"estimator": [("a", CARTRegressor())]}, ValueError, r"estimator\[0\] of .* which is no classifier"),
        ({"estimator": CARTClassifier(max_depth=0)}, ValueError, "'max_depth' parameter of CARTClassifier"),
        ({"estimator": 3}, ValueError, "'estimator' parameter of BaggingClassifier must be"),
        ({"n_estimators": 0}, ValueError, "'n_estimators' parameter"),
        ({"max_features": 7}, ValueError, "max_features=7 must be <= n_features=6; give 1.0 for all"),
        ({"max_features": True}, ValueError, "'max_features' parameter of BaggingClassifier must be a number"),
        ({"max_samples": -1.5}, ValueError, r"'max_samples' parameter .* a float in the range \(0.0, inf\)"),
        ({"bootstrap": "paste"}, ValueError, "'bootstrap' parameter"),
        ({"bootstrap": False, "oob_score": True}, ValueError, "Out of bag estimation only available if bootstrap=True"),
        (
            {"bootstrap": False, "stratify": "class"},
            ValueError,
            "stratify or strata only available if bootstrap=True or max_samp",
        ),
        ({"bootstrap": False, "block_size": 4}, ValueError, "block_size or groups only available if bootstrap=True"),
        ({"stratify": "balanced", "max_samples": 0.1}, ValueError, "stratify='balanced' draws .*max_samples another"),
        ({"stratify": "class", "block_size": 7}, ValueError, "block_size draws blocks, .* stratify by class: use one"),
        ({"oob_score": "nonsense"}, ValueError, "nonsense"),
    ],
    ids=str,
)
def test_errors_of_parameters(settings, error, message):
    X, y = make_table()
    with pytest.raises(error, match=message):
        BaggingClassifier(**{"random_state": 0, "n_estimators": 20, **settings}).fit(X, y)


def test_errors_of_arguments():
    X, y = make_table()
    with pytest.raises(ValueError, match=r"block_size draws blocks of rows .* groups= draws groups: use one"):
        BaggingClassifier(block_size=3).fit(X, y, groups=y)
    with pytest.raises(ValueError, match="stratify draws by class, strata= by the given labels: use one"):
        BaggingClassifier(stratify="class").fit(X, y, strata=y)
    with pytest.raises(ValueError, match="stratify or strata only available if bootstrap=True"):
        BaggingRegressor(bootstrap=False).fit(X, y, strata=y)
    with pytest.raises(
        ValueError, match=r"KNeighborsRegressor\.fit takes no sample_weight.*set bootstrap=True, without"
    ):
        BaggingRegressor(KNeighborsRegressor(), bootstrap=False).fit(X, y, np.arange(len(y)))
    with pytest.raises(ValueError, match="bootstrap_features=True draws columns more than once, but a frame"):
        BaggingRegressor(LinearRegression(), bootstrap_features=True).fit(pd.DataFrame(X).add_prefix("f"), y)
    with pytest.raises(ValueError, match=r"LogisticRegression.*which is no regressor"):
        BaggingRegressor(LogisticRegression()).fit(X, y)
    with pytest.raises(TypeError, match=r"no parameter 'max_feature'\. Did you mean 'max_features'"):
        BaggingRegressor(max_feature=0.5)
    with pytest.raises(ValueError, match="multiclass"):
        BaggingClassifier(CARTClassifier(monotonic_cst=[1] + [0] * 5)).fit(X, y)


# --- published errors ---------------------------------------------------------------------------------------


def noisy(make):
    """Friedman's second and third problem: the signal has three times the deviation of the noise."""

    def draw(n_rows, random_state):
        X, y = make(n_rows, random_state=random_state)
        return X, y + np.random.default_rng(random_state).normal(0.0, y.std() / 3.0, n_rows)

    return draw


@pytest.mark.parametrize(
    ("make", "published", "slack"),
    [
        (lambda n, random_state: make_friedman1(n, noise=1.0, random_state=random_state), 6.2, 0.6),
        (noisy(make_friedman2), 21_700.0, 1500.0),
        (noisy(make_friedman3), 0.0249, 0.002),
    ],
    ids=["Friedman 1", "Friedman 2", "Friedman 3"],
)
@pytest.mark.compiled(reason="takes minutes interpreted")
def test_breiman_1996_regression(make, published, slack):
    """25 members, 200 rows to fit, 1000 to test; the published means are of 100 repetitions."""
    bagged, single = [], []
    for seed in range(10):
        X, y = make(200, random_state=seed)
        Z, z = make(1000, random_state=1000 + seed)
        bagged.append(np.mean((BaggingRegressor(n_estimators=25, random_state=seed).fit(X, y).predict(Z) - z) ** 2))
        single.append(np.mean((CARTRegressor().fit(X, y).predict(Z) - z) ** 2))
    assert np.mean(bagged) == pytest.approx(published, abs=slack)
    assert np.mean(bagged) < 0.7 * np.mean(single)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "published", "slack"),
    [("glass.csv", 23.6, 4.0), ("pima_diabetes.csv", 23.9, 2.0), ("ionosphere.parquet", 7.9, 2.0)],
)
def test_breiman_1996_classification(shared_data, name, published, slack):
    """50 members that vote, a tenth of the rows to test, in percent; Breiman's trees were pruned, ours are not."""
    path = shared_data / name
    table = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    X, y = table.iloc[:, :-1], table.iloc[:, -1].to_numpy()
    errors = []
    for seed in range(100):
        order = np.random.default_rng(seed).permutation(len(y))
        test, train = np.split(order, [len(y) // 10])
        model = BaggingClassifier(n_estimators=50, voting="hard", random_state=seed).fit(X.iloc[train], y[train])
        errors.append(100 * (1 - np.mean(model.predict(X.iloc[test]) == y[test])))
    assert np.mean(errors) == pytest.approx(published, abs=slack)


# --- decision functions, large bags ------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_decision_functions_are_the_mean_of_the_members(n_classes):
    X, y = make_classification(120, 5, n_informative=3, n_classes=n_classes, random_state=0)
    bag = BaggingClassifier(LogisticRegression(), 7, max_features=3, random_state=0).fit(X, y)
    found = bag.decision_function(X)
    members = zip(bag.estimators_, bag.estimators_features_, strict=True)
    expected = np.mean([member.decision_function(X[:, columns]) for member, columns in members], axis=0)
    assert found.shape == ((120,) if n_classes == 2 else (120, 3))
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_array_equal(found, bag.set_params(n_jobs=2).decision_function(X))


def test_decision_functions_are_there_where_members_have_one():
    assert hasattr(BaggingClassifier(LogisticRegression()), "decision_function")
    assert not hasattr(BaggingClassifier(), "decision_function")
    assert not hasattr(BaggingClassifier([LogisticRegression(), CARTClassifier()]), "decision_function")
    assert not hasattr(BaggingClassifier("wrong"), "decision_function")


def test_a_decision_function_needs_every_class():
    class Blind(LogisticRegression):
        """Takes no weights, so that its bag may lack a class."""

        def fit(self, X, y):
            return super().fit(X, y)

    X, y = np.arange(20.0)[:, None], np.repeat([0, 1, 2], [9, 10, 1])
    bag = BaggingClassifier(Blind(), 10, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="members that know every class"):
        bag.decision_function(X)


@pytest.mark.parametrize("member", [None, LogisticRegression()])
def test_bags_may_be_larger_than_the_table(member):
    X, y = make_classification(60, 4, random_state=0)
    for size, n_drawn in ((2.5, 150), (100, 100)):
        bag = BaggingClassifier(member, 3, max_samples=size, random_state=0).fit(X, y)
        assert [len(rows) for rows in bag.estimators_samples_] == [n_drawn] * 3
    for wrong in (2.5, 100):
        with pytest.raises(ValueError, match=f"max_samples={wrong}"):
            BaggingClassifier(member, max_samples=wrong, bootstrap=False).fit(X, y)


# --- metadata routing ------------------------------------------------------------------------------------------------


class Asking(LogisticRegression):
    """Keeps what it was given."""

    def fit(self, X, y, sample_weight=None, colour=None, note=None):
        self.given_ = {"colour": colour, "note": note, "n_rows": len(y)}
        return super().fit(X, y, sample_weight)

    def predict_proba(self, X, note=None):
        self.asked_ = note
        return super().predict_proba(X)


class AskingWithoutWeights(Asking):
    """Gets the rows of its bag, repeated."""

    def fit(self, X, y, colour=None, note=None):
        return super().fit(X, y, None, colour, note)


@pytest.mark.parametrize("kind", [Asking, AskingWithoutWeights])
def test_members_get_what_they_have_asked_for(kind):
    X, y = make_classification(60, 4, random_state=0)
    member = kind()
    with sklearn.config_context(enable_metadata_routing=True):
        member.set_fit_request(colour=True, note=True).set_predict_proba_request(note=True)
        bag = BaggingClassifier(member, 3, random_state=0).fit(X, y, colour=np.arange(60), note="n")
        bag.predict(X, note="asked")
        for fitted, rows in zip(bag.estimators_, bag.estimators_samples_, strict=True):
            expected = np.arange(60) if kind is Asking else np.sort(rows)
            np.testing.assert_array_equal(fitted.given_["colour"], expected)
            assert fitted.given_["note"] == "n"
            assert fitted.asked_ == "asked"
        with pytest.raises(TypeError, match="got unexpected argument"):
            bag.fit(X, y, other=1)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="note"):
            BaggingClassifier(kind(), 3).fit(X, y, note="n")
        scored = cross_validate(BaggingClassifier(kind(), 2), X, y, cv=2)
        assert len(scored["test_score"]) == 2
    plain = BaggingClassifier(kind(), 3, random_state=0)
    with pytest.raises(TypeError, match=r"BaggingClassifier.fit has no argument 'note'.*enable_metadata_routing"):
        plain.fit(X, y, note="n")
    with pytest.raises(TypeError, match="predict has no argument 'note'"):
        plain.fit(X, y).predict(X, note="n")


def test_weights_of_bagging_can_be_routed_to_it():
    X, y = make_classification(60, 4, random_state=0)
    with sklearn.config_context(enable_metadata_routing=True):
        bag = BaggingClassifier(n_estimators=2, random_state=0).set_fit_request(sample_weight=True)
        bag.set_score_request(sample_weight=False)
        found = cross_validate(bag, X, y, cv=2, params={"sample_weight": np.arange(1.0, 61.0)}, return_estimator=True)
    weighed = found["estimator"][0].estimators_samples_[0]
    plain = cross_validate(clone(bag), X, y, cv=2, return_estimator=True)["estimator"][0].estimators_samples_[0]
    assert not np.array_equal(weighed, plain)
