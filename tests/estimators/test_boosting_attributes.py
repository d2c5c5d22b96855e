"""Attributes that code written for scikit-learn's boosting reads, and models to begin with."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import make_classification, make_friedman1
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import GradientBoostingClassifier as PeerClassifier
from sklearn.ensemble import GradientBoostingRegressor as PeerRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import spinney
from spinney import CARTClassifier, CARTRegressor, GradientBoostingClassifier, GradientBoostingRegressor
from spinney.ensemble.boosting import BAG
from spinney.ensemble.sampling import Draw, draw_key
from spinney.tree.boost import bag_size

KINDS = {2: GradientBoostingClassifier, 3: GradientBoostingClassifier, 0: GradientBoostingRegressor}
FRIEDMAN = {"newton": False, "max_bins": None, "max_leaf_nodes": None, "max_depth": 3, "min_child_weight": 0.0}
WHOLE = {"n_estimators": 12, "learning_rate": 0.1, "min_samples_leaf": 1, "subsample": 1.0, "max_features": None}


def table(n_classes, n_rows=240):
    """Numbers that float32 holds, and classes or numbers to predict."""
    if n_classes == 0:
        X, y = make_friedman1(n_rows, noise=0.5, random_state=0)
    else:
        X, y = make_classification(n_rows, 6, n_informative=4, n_classes=n_classes, random_state=0)
    return X.astype(np.float32).astype(np.float64), y


def raw_of(model, X):
    """Raw scores, (n_rows, n_raw)."""
    scores = model.predict(X) if isinstance(model, GradientBoostingRegressor) else model.decision_function(X)
    return scores.reshape(len(X), -1)


# --- trees ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", KINDS)
def test_trees_add_up_to_the_raw_scores(n_classes):
    X, y = table(n_classes)
    model = KINDS[n_classes](n_estimators=7, random_state=0).fit(X, y)
    trees = model.estimators_
    assert trees.shape == (7, model.n_trees_per_iteration_)
    total = model.init_ + np.array([[tree.predict(X) for tree in of_round] for of_round in trees]).sum(axis=0).T
    np.testing.assert_allclose(total, raw_of(model, X), rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(
        np.array([tree.apply(X) for tree in trees.flat]).T, model.apply(X).reshape(len(X), -1)
    )
    assert trees[0, 0].tree_.node_count == model.forest_[0].n_nodes


def test_trees_of_huge_targets_are_in_their_units():
    X, y = table(0)
    model = GradientBoostingRegressor(n_estimators=3, random_state=0).fit(X, y * 1e300)
    total = model.init_[0] + sum(tree.predict(X) for tree in model.estimators_[:, 0])
    np.testing.assert_allclose(total / 1e300, model.predict(X) / 1e300, rtol=1e-9)


# --- scores of rounds ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", KINDS)
def test_out_of_bag_scores_are_losses_of_the_rows_that_a_round_left_out(n_classes):
    X, y = table(n_classes)
    settings = {"n_estimators": 8, "subsample": 0.5, "random_state": 0}
    model = KINDS[n_classes](**settings).fit(X, y)
    assert model.oob_improvement_.shape == model.oob_scores_.shape == (8,)
    assert model.oob_score_ == model.oob_scores_[-1]
    assert (model.oob_improvement_[:4] > 0.0).all()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.oob_scores_, model.oob_scores_)


def test_out_of_bag_scores_are_exact():
    X, y = table(0)
    model = GradientBoostingRegressor(n_estimators=6, subsample=0.5, random_state=0).fit(X, y)
    draw = Draw("paste", len(y), bag_size(0.5, len(y)), draw_key(model._seed, BAG))
    stages = [np.full(len(y), model.init_[0]), *model.staged_predict(X)]
    for t in range(6):
        is_out = draw.counts(t) == 0
        before, after = (np.mean((y - stage)[is_out] ** 2) / 2 for stage in stages[t : t + 2])
        assert model.oob_scores_[t] == pytest.approx(after)
        assert model.oob_improvement_[t] == pytest.approx(before - after)
        assert model.estimators_[t, 0].tree_.n_node_samples[0] == np.sum(~is_out)


@pytest.mark.parametrize("settings", [{"subsample": 1.0}, {"subsample": "auto", "n_estimators": 5}])
def test_without_rows_left_out_on_demand_there_are_no_such_scores(settings):
    model = GradientBoostingRegressor(**{"n_estimators": 5, "random_state": 0, **settings}).fit(*table(0))
    for name in ("oob_improvement_", "oob_scores_", "oob_score_"):
        assert not hasattr(model, name)


def test_out_of_bag_scores_go_on_in_a_warm_start_and_in_files(tmp_path):
    X, y = table(0)
    settings = {"subsample": 0.5, "random_state": 0, "warm_start": True}
    model = GradientBoostingRegressor(n_estimators=4, **settings).fit(X, y).set_params(n_estimators=9).fit(X, y)
    whole = GradientBoostingRegressor(n_estimators=9, **settings).fit(X, y)
    np.testing.assert_array_equal(model.oob_scores_, whole.oob_scores_)
    model.save_model(tmp_path / "model.spn")
    np.testing.assert_array_equal(spinney.load_model(tmp_path / "model.spn").oob_improvement_, whole.oob_improvement_)
    late = GradientBoostingRegressor(**{**settings, "subsample": 1.0, "n_estimators": 4}).fit(X, y)
    late.set_params(subsample=0.5, n_estimators=6).fit(X, y)
    assert np.isnan(late.oob_scores_).tolist() == [True] * 4 + [False] * 2


def test_the_training_loss_can_stop_the_rounds():
    X, y = table(0)
    settings = {**WHOLE, "n_estimators": 500, "n_iter_no_change": 5, "validation_fraction": None, "tol": 0.01}
    model = GradientBoostingRegressor(**settings).fit(X, y)
    curve = model.train_score_
    assert 10 < model.n_estimators_ < 500
    assert len(curve) == model.n_estimators_
    best = model.best_iteration_
    assert curve[best:].min() >= curve[best - 1] - 0.01
    assert model.n_estimators_ == best + 5


def test_a_score_of_the_training_rows_can_stop_the_rounds():
    X, y = table(2)
    settings = {**WHOLE, "n_estimators": 500, "n_iter_no_change": 5, "validation_fraction": None}
    model = GradientBoostingClassifier(**settings, scoring="accuracy").fit(X, y)
    expected = [np.mean(stage == y) for stage in list(model.staged_predict(X))[: model.n_estimators_]]
    np.testing.assert_allclose(model.evals_result_["scored"]["accuracy"], expected)
    np.testing.assert_allclose(model.validation_score_, expected)
    assert model.n_estimators_ == model.best_iteration_ + 5
    begun = GradientBoostingClassifier(**settings, scoring="accuracy", init=LogisticRegression()).fit(X, y)
    assert begun.validation_score_[begun.best_iteration_ - 1] == pytest.approx(begun.score(X, y))


def test_categories_are_told():
    X = np.column_stack([np.arange(40) % 4, np.arange(40.0)])
    model = GradientBoostingRegressor(n_estimators=2, categorical_features=[0]).fit(X, X[:, 1])
    assert model.is_categorical_.tolist() == [True, False]
    assert GradientBoostingRegressor(n_estimators=2).fit(X, X[:, 1]).is_categorical_ is None


# --- a model to begin with -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", KINDS)
def test_a_model_to_begin_with_is_as_in_scikit_learn(n_classes):
    X, y = table(n_classes)
    first = DummyRegressor(strategy="median") if n_classes == 0 else DummyClassifier(strategy="prior")
    peer_kind = PeerRegressor if n_classes == 0 else PeerClassifier
    model = KINDS[n_classes](init=first, **WHOLE, **FRIEDMAN).fit(X, y)
    peer = peer_kind(init=first, n_estimators=12, max_depth=3, random_state=0).fit(X, y)
    answers = [each.predict(X) if n_classes == 0 else each.predict_proba(X) for each in (model, peer)]
    np.testing.assert_allclose(*answers, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("n_classes", KINDS)
def test_a_model_to_begin_with_is_its_scores_brought_along(n_classes):
    X, y = table(n_classes)
    first = LinearRegression() if n_classes == 0 else LogisticRegression()
    model = KINDS[n_classes](init=first, **WHOLE).fit(X, y)
    fitted = model.init_estimator_
    assert not hasattr(first, "coef_")
    if n_classes == 0:
        scores = fitted.predict(X)
    else:
        logs = np.log(fitted.predict_proba(X))
        scores = logs[:, 1] - logs[:, 0] if n_classes == 2 else logs - logs.mean(axis=1, keepdims=True)
    apart = KINDS[n_classes](init="zero", **WHOLE).fit(X, y, init_score=scores)
    raw = apart.predict(X, init_score=scores) if n_classes == 0 else apart.decision_function(X, init_score=scores)
    np.testing.assert_allclose(raw_of(model, X), raw.reshape(len(X), -1), rtol=1e-6, atol=1e-6)
    last = list(model.staged_predict(X))[-1]
    np.testing.assert_array_equal(last, model.predict(X))


def test_a_model_to_begin_with_meets_weights_validation_and_warm_starts():
    X, y = table(0)
    weight = np.arange(1.0, len(y) + 1)
    model = GradientBoostingRegressor(init=LinearRegression(), **WHOLE).fit(X, y, weight)
    np.testing.assert_allclose(model.init_estimator_.coef_, LinearRegression().fit(X, y, weight).coef_)
    settings = {**WHOLE, "n_iter_no_change": 3, "random_state": 0}
    held = GradientBoostingRegressor(init=LinearRegression(), **settings).fit(X, y)
    assert held.validation_score_[0] < 5.0  # of squares of about 25 without it
    assert not np.allclose(held.init_estimator_.coef_, LinearRegression().fit(X, y).coef_)  # held-out rows are unseen
    given = GradientBoostingRegressor(init=LinearRegression(), **settings).fit(
        X[:200], y[:200], X_val=X[200:], y_val=y[200:]
    )
    np.testing.assert_allclose(
        given.validation_score_[-1],
        np.mean((y[200:] - given.predict(X[200:], n_rounds=given.n_estimators_)) ** 2) / 2,
    )
    two = GradientBoostingRegressor(init=LinearRegression(), **{**WHOLE, "n_estimators": 5}, warm_start=True).fit(X, y)
    two.set_params(n_estimators=12).fit(X, y)
    one = GradientBoostingRegressor(init=LinearRegression(), **WHOLE).fit(X, y)
    np.testing.assert_array_equal(two.predict(X), one.predict(X))


def test_files_hold_a_model_to_begin_with_that_is_ours(tmp_path):
    X, y = table(3)
    model = GradientBoostingClassifier(init=CARTClassifier(max_depth=2), **WHOLE).fit(X, y)
    model.save_model(tmp_path / "model.spn")
    again = spinney.load_model(tmp_path / "model.spn")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    for ask in (model.predictor, lambda: again.shap_values(X)):
        with pytest.raises(ValueError, match="begins with another model, init=CARTClassifier: use predict"):
            ask()
    other = GradientBoostingClassifier(init=LogisticRegression(), **WHOLE).fit(X, y)
    with pytest.raises(ValueError, match="save_model cannot store"):
        other.save_model(tmp_path / "other.spn")
    copy = pickle.loads(pickle.dumps(other))
    np.testing.assert_array_equal(copy.predict_proba(X), other.predict_proba(X))


@pytest.mark.parametrize(
    ("init", "error", "words"),
    [
        (LogisticRegression, TypeError, r"give an instance, LogisticRegression\(\)"),
        (CARTRegressor(), ValueError, "no classifier"),
        (Perceptron(), ValueError, "no predict_proba"),
        (make_pipeline(StandardScaler(), LogisticRegression()), ValueError, "sample_weight"),
    ],
)
def test_models_that_cannot_begin_are_refused(init, error, words):
    X, y = table(2)
    with pytest.raises(error, match=words):
        GradientBoostingClassifier(init=init, **WHOLE).fit(X, y, np.arange(1.0, len(y) + 1))


def test_models_have_a_length_places_and_turns_and_are_true():
    X, y = table(3)
    assert GradientBoostingClassifier(**WHOLE)  # as before a fit, so that `model or default` is the model
    assert spinney.RandomForestClassifier()
    model = GradientBoostingClassifier(**WHOLE).fit(X, y)
    trees = model.estimators_
    assert len(model) == len(trees) == len(list(model))
    for place in (0, -1, (1, 2), slice(2, 4), (slice(None), 1), [0, 3]):
        found, expected = (np.ravel(np.array(each, object)) for each in (model[place], trees[place]))
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one.predict(X), other.predict(X))
    assert isinstance(model[1, 2], CARTRegressor)
    with pytest.raises(IndexError):
        model[len(model)]


def test_seeds_are_those_that_files_hold():
    X, y = table(2)
    with pytest.raises(ValueError, match="The 'random_state' parameter of GradientBoostingClassifier must be"):
        GradientBoostingClassifier(**{**WHOLE, "random_state": 2**40}).fit(X, y)
