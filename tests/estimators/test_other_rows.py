"""Warm starts on other rows: what is added is what a fit on those rows alone would grow under the same numbers."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn.ensemble
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression

import spinney
from spinney import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomForestSurvival,
    load_model,
)
from spinney.model.container import BrokenFileError

FORESTS = (RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier, ExtraTreesRegressor)
BAGS = (BaggingClassifier, BaggingRegressor)


def make_rows(seed, n_rows=80):
    """Three columns, of which one is a category and one has missing values; classes."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "a": rng.normal(size=n_rows),
            "b": pd.Categorical(rng.choice(list("xyz"), n_rows), categories=list("xyz")),
            "c": np.where(rng.random(n_rows) < 0.1 * seed, np.nan, rng.normal(size=n_rows)),
        }
    )
    return X, ((X["a"] + (X["b"] == "x")) > 0.3).to_numpy().astype(int)


FIRST, SECOND = make_rows(0), make_rows(2, 70)  # the first has no missing values
NEW = make_rows(3)[0]


def arrays_of(members):
    """The arrays of trees that prediction and people read."""
    return [
        [getattr(member.tree_.arrays, name) for name in ("test", "threshold", "first_child", "n_rows", "impurity")]
        for member in members
    ]


def assert_same_members(found, expected):
    assert len(found) == len(expected)
    for one, other in zip(arrays_of(found), arrays_of(expected), strict=True):
        for part, known in zip(one, other, strict=True):
            np.testing.assert_array_equal(part, known)


@pytest.mark.parametrize("kind", [*FORESTS, *BAGS])
@pytest.mark.parametrize("settings", [{}, {"max_samples": 0.5}])
def test_trees_of_other_rows_are_added_as_a_fit_on_them_would_grow_them(kind, settings):
    if kind in FORESTS:
        settings = settings | ({"bootstrap": True} if settings else {})
    settings = {"random_state": 0, **settings}
    model = kind(n_estimators=4, warm_start=True, **settings).fit(*FIRST)
    model.set_params(n_estimators=7).fit(*SECOND)
    model.set_params(n_estimators=9).fit(*SECOND)  # the same rows again: their trees go on
    first, second = (kind(n_estimators=9, **settings).fit(*rows) for rows in (FIRST, SECOND))
    assert_same_members(model.estimators_[:4], first.estimators_[:4])
    assert_same_members(model.estimators_[4:], second.estimators_[4:])
    assert model._fitted.earlier.n_members == 4
    method = "predict_proba" if hasattr(model, "classes_") else "predict"
    means = np.mean([getattr(member, method)(NEW) for member in model.estimators_], axis=0)
    np.testing.assert_allclose(getattr(model, method)(NEW), means, rtol=1e-12)
    assert model.forest_.legend.has_missing == (False, False, True)  # of the second rows alone


@pytest.mark.parametrize("kind", [RandomForestClassifier, ExtraTreesRegressor, BaggingClassifier, BaggingRegressor])
def test_files_and_pickles_know_of_earlier_trees(kind, tmp_path):
    model = kind(n_estimators=3, warm_start=True, random_state=0).fit(*FIRST).set_params(n_estimators=5).fit(*SECOND)
    path = tmp_path / "model.spn"
    model.save_model(path)
    assert b'"version":"1.3"' in path.read_bytes()
    expected = kind(n_estimators=6, random_state=0).fit(*SECOND).estimators_[3:]
    for again in (load_model(path), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict(NEW), model.predict(NEW))
        assert not hasattr(again, "estimators_samples_")
        assert again.set_params(n_estimators=6).fit(*SECOND)._fitted.earlier.n_members == 3
        assert_same_members(again.estimators_[3:], expected)
    cold = model.set_params(warm_start=False).fit(*SECOND)
    assert cold._fitted.earlier is None
    assert len(cold.estimators_samples_) == 5


@pytest.mark.parametrize("number", [0, 5, -1])
def test_a_number_of_earlier_trees_that_cannot_be_is_refused(number):
    model = RandomForestRegressor(3, warm_start=True, random_state=0).fit(*FIRST).set_params(n_estimators=5)
    model.fit(*SECOND)
    sound = pickle.dumps(model)
    model._n_before = number
    with pytest.raises((BrokenFileError, ValueError), match="members of earlier fits must be from 1 to 4"):
        pickle.loads(pickle.dumps(model))
    assert pickle.loads(sound)._fitted.earlier.n_members == 3


def test_what_needs_the_bags_of_all_trees_is_refused():
    X, y = SECOND
    model = RandomForestRegressor(3, warm_start=True, random_state=0).fit(*FIRST).set_params(n_estimators=5).fit(X, y)
    for ask in (
        lambda: model.importance("permutation", X, y),
        lambda: model.check_importance(X, y),
        lambda: model.predict_interval(NEW),
        lambda: model.predict_quantiles(NEW, 0.5),
        lambda: model.predict_interval(NEW, train=(X, y)),
        lambda: model.predict_quantiles(NEW, train=(X, y)),
        lambda: model.predict_variance(NEW, "jackknife"),
    ):
        with pytest.raises(ValueError, match="the bags of all trees, but the first 3 were grown on other rows"):
            ask()
    assert model.predict_variance(NEW).shape == (len(NEW),)
    assert model.importance().importance.sum() == pytest.approx(1.0)
    for name in ("oob_score", "keep_members"):
        asked = spinney.RandomForestRegressor(3, warm_start=True, random_state=0, keep_members=name == "keep_members")
        asked.fit(*FIRST).set_params(n_estimators=5, **{name: True})
        with pytest.raises(ValueError, match=f"{name} needs the bags of all members, but 3 of them come from"):
            asked.fit(X, y)
    with pytest.raises(ValueError, match=r"oob_score needs .*\(X or y differed\)"):  # also later, on the same rows
        model.set_params(n_estimators=6, oob_score=True).fit(X, y)


@pytest.mark.parametrize("kind", [RandomForestClassifier, BaggingClassifier])
def test_no_more_trees_learn_nothing_of_other_rows(kind):
    model = kind(n_estimators=4, warm_start=True, random_state=0).fit(*FIRST)
    before = model.predict_proba(NEW)
    with pytest.warns(UserWarning, match="does not fit new trees"):
        model.fit(*SECOND)
    np.testing.assert_array_equal(model.predict_proba(NEW), before)
    assert model._fitted.earlier is None
    assert len(model.estimators_samples_[0]) == len(FIRST[1])
    model.set_params(n_estimators=5).fit(*FIRST)  # still the rows of its bags
    assert model._fitted.earlier is None


def test_class_weights_of_each_fit_are_warned_of():
    model = RandomForestClassifier(2, class_weight="balanced", warm_start=True, random_state=0).fit(*FIRST)
    with pytest.warns(UserWarning, match="class_weight='balanced' is found from the rows of each fit"):
        model.set_params(n_estimators=3).fit(*SECOND)


def test_members_of_any_kind_are_added_from_other_rows():
    X, y = (np.nan_to_num(SECOND[0][["a", "c"]].to_numpy()), SECOND[1])
    first = FIRST[0][["a", "c"]].to_numpy(), FIRST[1]
    for kind, base in ((BaggingClassifier, LogisticRegression()), (BaggingRegressor, LinearRegression())):
        model = kind(base, 3, warm_start=True, random_state=0).fit(*first).set_params(n_estimators=5).fit(X, y)
        alone = kind(base, 5, random_state=0).fit(X, y)
        for one, other in zip(model.estimators_[3:], alone.estimators_[3:], strict=True):
            np.testing.assert_array_equal(one.coef_, other.coef_)
        assert model._fitted.earlier.n_members == 3


def test_survival_forests_go_on_with_other_rows_at_their_own_times():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    y = rng.exponential(np.exp(-X[:, 0])) * np.where(rng.random(120) < 0.3, -1.0, 1.0)
    model = RandomForestSurvival(3, warm_start=True, random_state=0).fit(X[:60], y[:60])
    times = model.times_
    model.set_params(n_estimators=6).fit(X[60:], y[60:])
    np.testing.assert_array_equal(model.times_, times)
    assert model._fitted.earlier.n_members == 3
    late = y[60:] > times[-1]
    censored = RandomForestSurvival(6, random_state=0, max_times=10_000)
    parted = np.where(late, -y[60:], y[60:])  # an event after the last time had not come by then
    at = np.searchsorted(times, parted.clip(0.0))
    shifted = np.where(parted > 0.0, times[np.minimum(at, len(times) - 1)], parted)
    alone = censored.fit(X[60:], shifted)
    for t in range(3, 6):
        one, other = model.forest_[t], alone.forest_[t]
        np.testing.assert_array_equal(one.test, other.test)
        np.testing.assert_array_equal(one.threshold[~one.is_leaf], other.threshold[~other.is_leaf])


def test_a_forest_that_sees_a_second_half_errs_less_as_scikit_learns_does():
    """Continual training: trees on the second half of the rows help about as much as in scikit-learn."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 5))
    y = X[:, 0] * X[:, 1] + X[:, 2] + 0.3 * rng.normal(size=1200)
    halves, held = (slice(0, 300), slice(300, 600)), slice(600, None)
    errors = {}
    for library in (spinney, sklearn.ensemble):
        model = library.RandomForestRegressor(n_estimators=40, warm_start=True, random_state=0)
        error = []
        for k, rows in enumerate(halves):
            model.set_params(n_estimators=40 * (k + 1)).fit(X[rows], y[rows])
            error.append(np.mean((model.predict(X[held]) - y[held]) ** 2))
        errors[library] = error
    ours, theirs = errors[spinney], errors[sklearn.ensemble]
    assert ours[1] < ours[0]
    np.testing.assert_allclose(ours, theirs, rtol=0.08)


def test_boosting_goes_on_with_other_rows_as_scikit_learns_does():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X[:, 0] + X[:, 1] ** 2
    settings = {"learning_rate": 0.3, "max_depth": 2, "min_samples_leaf": 10, "random_state": 0}
    exact = {"newton": False, "max_bins": None, "subsample": 1.0, "max_features": None, "max_leaf_nodes": None}
    exact |= {"min_child_weight": 0.0, "reg_lambda": 0.0, "init": "zero"}
    ours = GradientBoostingRegressor(n_estimators=3, warm_start=True, **settings, **exact)
    theirs = sklearn.ensemble.GradientBoostingRegressor(n_estimators=3, warm_start=True, init="zero", **settings)
    for model in (ours, theirs):
        model.fit(X[:200], y[:200]).set_params(n_estimators=6).fit(X[200:], y[200:])
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-9)


@pytest.mark.parametrize("kind", [*FORESTS, *BAGS])
def test_members_grow_again_by_their_seeds(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 5))
    y = (X[:, 0] + X[:, 1] > 0.0).astype(int) if "Classifier" in kind.__name__ else X[:, 0] + X[:, 1] ** 2
    options = {"max_features": 0.6, "bootstrap": True}
    if kind in BAGS:
        options = {"estimator": spinney.CARTClassifier() if y.dtype == int else spinney.CARTRegressor()}
    model = kind(n_estimators=3, random_state=0, **options)
    model.fit(X, y)
    assert len({member.random_state for member in model}) == 3
    for member, rows in zip(model.estimators_, model.estimators_samples_, strict=True):
        again = clone(member).fit(X[rows], y[rows])
        np.testing.assert_array_equal(again.tree_.arrays.threshold, member.tree_.arrays.threshold)
        np.testing.assert_array_equal(again.tree_.arrays.test, member.tree_.arrays.test)
    with pytest.raises(ValueError, match="random_state"):
        clone(member).set_params(random_state=2**63).fit(X, y)


@pytest.mark.filterwarnings("ignore:Warm-start fitting")
@pytest.mark.parametrize("kind", [RandomForestRegressor, ExtraTreesRegressor])
@pytest.mark.parametrize(("first", "second"), [(1, 2), (2, 1), (2, 3)])
@pytest.mark.parametrize("n_trees", [3, 5])
def test_other_outputs_are_refused(kind, first, second, n_trees):
    (X, y), (X2, y2) = FIRST, SECOND
    outputs, others = np.stack([y] * first, axis=1).squeeze(), np.stack([y2] * second, axis=1).squeeze()
    model = kind(3, warm_start=True, random_state=0).fit(X, outputs).set_params(n_estimators=n_trees)
    before = model.predict(NEW)
    with pytest.raises(ValueError, match=f"y has {second} columns, and had {first}"):
        model.fit(X2, others)
    np.testing.assert_array_equal(model.predict(NEW), before)


def test_trees_of_times_are_not_scored_on_rows_that_they_have_not_seen():
    times = [np.exp(np.random.default_rng(seed).normal(size=80)) for seed in (0, 1)]
    model = RandomForestSurvival(20, warm_start=True, oob_score=True, random_state=0).fit(FIRST[0], times[0])
    before = model.oob_score_
    with (
        pytest.warns(UserWarning, match="does not fit new trees"),
        pytest.raises(ValueError, match="oob_score=True needs the rows that the trees were grown on"),
    ):
        model.fit(FIRST[0], times[1])
    assert model.oob_score_ == before


@pytest.mark.filterwarnings("ignore:Warm-start fitting")
@pytest.mark.parametrize("n_more", [0, 2])
@pytest.mark.parametrize("kind", [RandomForestRegressor, GradientBoostingRegressor, RandomForestSurvival])
def test_columns_may_get_names_or_lose_them(kind, n_more, tmp_path):
    frame = FIRST[0][["a", "c"]]
    y = 1.0 + FIRST[1]
    for first, second in ((frame.to_numpy(), frame), (frame, frame.to_numpy())):
        model = kind(n_estimators=3, warm_start=True, random_state=0).fit(first, y)
        model.set_params(n_estimators=3 + n_more).fit(second, y)
        model.save_model(tmp_path / "model.spn")
        is_old = n_more == 0 and kind is not GradientBoostingRegressor  # a table that nothing is learnt from names none
        new = first if is_old else second
        assert hasattr(model, "feature_names_in_") == isinstance(new, pd.DataFrame)
        for again in (load_model(tmp_path / "model.spn"), pickle.loads(pickle.dumps(model))):
            np.testing.assert_array_equal(again.predict(new), model.predict(new))
            assert again.forest_.legend == model.forest_.legend
