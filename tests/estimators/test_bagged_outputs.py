"""Bags of several outputs: their members are CART trees on the same bags, and what is out of bag is their mean."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn.ensemble
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeClassifier

import spinney
from spinney import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    ID3Classifier,
    RandomForestClassifier,
    RandomForestRegressor,
    StackingClassifier,
    StackingRegressor,
    load_model,
)


def make_table(n_rows=160, seed=0):
    """Four columns, two outputs of numbers, two of marks."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    noise = rng.normal(size=(n_rows, 2))
    return X, np.c_[X[:, 0] + X[:, 1], 2.0 * X[:, 2]] + 0.3 * noise, np.c_[X[:, 0] > 0, X[:, 1] + noise[:, 0] > 0.3]


X, NUMBERS, MARKS = make_table()
NEW = make_table(50, 1)[0]


def test_bags_of_all_columns_are_forests():
    """A bag of CART trees draws and grows as a forest that sees every feature in every node."""
    for bag, forest, y in (
        (BaggingRegressor, RandomForestRegressor, NUMBERS),
        (BaggingClassifier, RandomForestClassifier, MARKS.astype(int)),
    ):
        ours = bag(n_estimators=30, oob_score=True, random_state=0).fit(X, y)
        same = forest(n_estimators=30, max_features=None, oob_score=True, random_state=0).fit(X, y)
        np.testing.assert_array_equal(ours.predict(NEW), same.predict(NEW))
        assert ours.predict(NEW).shape == (50, 2)
        assert ours.oob_score_ == same.oob_score_
        np.testing.assert_array_equal(ours.oob_curve_, same.oob_curve_)
        if bag is BaggingClassifier:
            assert [p.shape for p in ours.predict_proba(NEW)] == [(50, 2), (50, 2)]
            np.testing.assert_array_equal(ours.predict_proba(NEW), same.predict_proba(NEW))
            np.testing.assert_array_equal(ours.predict_log_proba(NEW), same.predict_log_proba(NEW))
            np.testing.assert_array_equal(ours.oob_decision_function_, same.oob_decision_function_)
            assert ours.score(X, y) > 0.9
        else:
            np.testing.assert_array_equal(ours.oob_prediction_, same.oob_prediction_)


@pytest.mark.parametrize("settings", [{"max_features": 0.5}, {"max_samples": 0.4, "bootstrap": False}])
def test_members_are_trees_on_their_bags_and_columns(settings):
    cart = CARTRegressor(min_samples_leaf=5)
    model = BaggingRegressor(cart, 25, oob_score=True, random_state=0, **settings).fit(X, NUMBERS)
    total, n_votes = np.zeros((len(X), 2)), np.zeros(len(X))
    for member, rows, columns in zip(
        model.estimators_, model.estimators_samples_, model.estimators_features_, strict=True
    ):
        counts = np.bincount(rows, minlength=len(X)).astype(float)
        alone = CARTRegressor(min_samples_leaf=5).fit(X[:, columns], NUMBERS, counts)
        np.testing.assert_allclose(member.predict(NEW[:, columns]), alone.predict(NEW[:, columns]), rtol=1e-9)
        out = counts == 0
        total[out] += member.predict(X[out][:, columns])
        n_votes += out
    np.testing.assert_allclose(
        model.oob_prediction_[n_votes > 0], (total / np.maximum(n_votes, 1)[:, None])[n_votes > 0]
    )
    means = np.mean([m.predict(NEW[:, c]) for m, c in zip(model, model.estimators_features_, strict=True)], axis=0)
    np.testing.assert_allclose(model.predict(NEW), means, rtol=1e-12)


def test_files_pickles_and_warm_starts(tmp_path):
    for kind, y in ((BaggingRegressor, NUMBERS), (BaggingClassifier, np.where(MARKS, "yes", "no"))):
        whole = kind(n_estimators=6, max_features=0.5, random_state=0).fit(X, y)
        model = kind(n_estimators=4, max_features=0.5, warm_start=True, random_state=0).fit(X, y)
        model.save_model(tmp_path / "model.spn")
        for again in (load_model(tmp_path / "model.spn"), pickle.loads(pickle.dumps(model))):
            assert again.n_outputs_ == 2
            np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
            again.set_params(n_estimators=6).fit(X, y)
            np.testing.assert_array_equal(again.predict(NEW), whole.predict(NEW))
        with pytest.raises(ValueError, match=r"y has 1 columns, and had 2|y differs: its classes are"):
            model.set_params(n_estimators=5).fit(X, y[:, 0])
        assert "2 outputs" in str(whole.forest_[0].to_text()) or whole.forest_[0].n_outputs == 2


def test_class_weights_of_each_output_are_those_of_the_trees():
    y = np.where(MARKS, "yes", "no")
    weights = [{"yes": 3.0, "no": 1.0}, {"yes": 1.0, "no": 2.0}]
    rows = np.where(MARKS[:, 0], 3.0, 1.0) * np.where(MARKS[:, 1], 1.0, 2.0)
    settings = {"n_estimators": 5, "bootstrap": False, "max_features": 0.5, "random_state": 0}
    given = BaggingClassifier(CARTClassifier(class_weight=weights), **settings).fit(X, y)
    weighed = BaggingClassifier(CARTClassifier(), **settings).fit(X, y, rows)
    for one, other in zip(given.predict_proba(NEW), weighed.predict_proba(NEW), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_members_of_other_libraries_predict_several_numbers():
    model = BaggingRegressor(LinearRegression(), 25, oob_score=True, random_state=0).fit(X, NUMBERS)
    theirs = sklearn.ensemble.BaggingRegressor(LinearRegression(), 25, random_state=0).fit(X, NUMBERS)
    assert model.predict(NEW).shape == theirs.predict(NEW).shape
    np.testing.assert_allclose(model.predict(NEW), theirs.predict(NEW), atol=0.1)
    total, n_votes = np.zeros((len(X), 2)), np.zeros(len(X))
    for member, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        out = np.bincount(rows, minlength=len(X)) == 0
        total[out] += member.predict(X[out])
        n_votes += out
    np.testing.assert_allclose(model.oob_prediction_[n_votes > 0], (total / n_votes[:, None])[n_votes > 0])
    assert pickle.loads(pickle.dumps(model)).predict(NEW).shape == (50, 2)


def test_several_outputs_tell_scikit_learn_so():
    for model, takes in (
        (BaggingRegressor(), True),
        (BaggingClassifier(), True),
        (BaggingRegressor(LinearRegression()), True),
        (BaggingRegressor(SVR()), False),
        (BaggingClassifier(KNeighborsClassifier()), False),
        (BaggingClassifier(stratify="class"), False),
        (AdaBoostRegressor(), False),
    ):
        assert model.__sklearn_tags__().target_tags.multi_output is takes


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (BaggingRegressor(SVR()), "estimator other than CART trees takes one output, and y has 2 columns"),
        (BaggingClassifier(DecisionTreeClassifier()), "estimator other than CART trees takes one output"),
        (BaggingClassifier(stratify="balanced"), "stratify='balanced' takes one output"),
        (BaggingClassifier(voting="hard"), "voting='hard' takes one output"),
        (BaggingRegressor(CARTRegressor(criterion="poisson")), "criterion='poisson' takes one output"),
        (BaggingClassifier(CARTClassifier(class_weight={0: 2.0})), "class_weight should be a list of dicts"),
    ],
)
def test_what_takes_one_output_says_so(model, words):
    with pytest.raises(ValueError, match=words):
        model.fit(X, MARKS.astype(int))


def test_out_of_bag_accuracy_needs_marks():
    y = np.random.default_rng(0).integers(0, 3, (len(X), 2))
    with pytest.raises(ValueError, match="cannot be used to compute OOB estimates"):
        BaggingClassifier(oob_score=True).fit(X, y)
    assert BaggingClassifier(n_estimators=3, random_state=0).fit(X, y).predict(NEW).shape == (50, 2)


@pytest.mark.parametrize("shape", ["array", "list", "frame"])
@pytest.mark.parametrize(
    "model",
    [
        AdaBoostClassifier(),
        AdaBoostRegressor(),
        ID3Classifier(),
        C45Classifier(),
        StackingClassifier([("tree", CARTClassifier())]),
        StackingRegressor([("tree", CARTRegressor())]),
        spinney.GradientBoostingClassifier(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_methods_of_one_output_name_the_way_out(model, shape):
    y = MARKS.astype(int)
    y = {"array": y, "list": y.tolist(), "frame": pd.DataFrame(y)}[shape]
    name = type(model).__name__
    wrapper = "MultiOutputRegressor" if name.endswith("Regressor") else "MultiOutputClassifier"
    with pytest.raises(ValueError, match=rf"y should be a 1d array.*{name} takes one output.*{wrapper}\({name}\(\)\)"):
        model.fit(X, y)
