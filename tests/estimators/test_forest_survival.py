"""Random survival forests: recover risks, curves that fall, out-of-bag scores, files, threads, what is refused."""

import pickle

import numpy as np
import pandas as pd
import pytest

import spinney
from spinney import GradientBoostingSurvival, RandomForestSurvival, load_model
from spinney.estimators.concordance import measure_concordance

FEW = {"n_estimators": 12, "random_state": 0}


def make_times(n_rows=400, seed=0):
    """Weibull times whose risk follows the first feature, censored at random."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    time, end = rng.weibull(1.5, n_rows) * np.exp(-X[:, 0]), rng.exponential(1.5, n_rows)
    return X, np.where(time <= end, time, -end)


def test_new_rows_are_ordered_by_risk_as_well_as_by_boosting():
    X, y = make_times(800)
    X_new, y_new = make_times(800, seed=1)
    model = RandomForestSurvival(100, min_samples_leaf=15, oob_score=True, random_state=0).fit(X, y)
    boosted = GradientBoostingSurvival(random_state=0).fit(X, y)
    assert model.score(X_new, y_new) > boosted.score(X_new, y_new) - 0.02
    assert model.oob_score_ == pytest.approx(model.score(X_new, y_new), abs=0.03)
    assert model.score(X_new, y_new) == measure_concordance(y_new, model.predict(X_new), None)


def test_curves_are_those_of_the_distribution():
    X, y = make_times(4000)
    model = RandomForestSurvival(60, min_samples_leaf=60, max_features=None, random_state=0).fit(X, y)
    new, times = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]), np.array([0.2, 0.5, 1.0])
    truth = np.exp(-((times[None, :] * np.exp(new[:, :1])) ** 1.5))
    survival = model.predict_survival(new, times)
    np.testing.assert_allclose(survival, truth, atol=0.1)
    np.testing.assert_allclose(model.predict_cumulative_hazard(new, times), -np.log(truth), rtol=0.5, atol=0.15)
    fine = np.linspace(1e-3, 5.0, 50)
    assert np.all(np.diff(model.predict_survival(new, fine), axis=1) <= 0.0)
    assert np.all(np.diff(model.predict_cumulative_hazard(new, fine), axis=1) >= 0.0)
    assert model.predict_survival(new, [1e-9]).tolist() == [[1.0]] * 3


def test_the_mean_of_one_leaf_is_that_of_nelson_aalen_and_kaplan_meier():
    y = np.array([1.0, -2.0, 2.0, 3.0, 3.0, -4.0])
    model = RandomForestSurvival(1, bootstrap=False, max_depth=1, min_samples_leaf=4).fit(np.zeros((6, 1)), y)
    assert model.times_.tolist() == [1.0, 2.0, 3.0]
    hazard = np.cumsum([1 / 6, 1 / 5, 2 / 3])
    np.testing.assert_allclose(model.predict_cumulative_hazard([[0.0]], [1.0, 2.5, 9.0])[0], hazard)
    survival = np.cumprod([5 / 6, 4 / 5, 1 / 3])
    np.testing.assert_allclose(model.predict_survival([[0.0]], [1.0, 2.5, 9.0])[0], survival)
    np.testing.assert_allclose(model.predict([[0.0]]), hazard.sum())


def test_out_of_bag_predictions_are_by_the_trees_that_lack_the_row():
    X, y = make_times(80)
    model = RandomForestSurvival(40, oob_score=True, random_state=0).fit(X, y)
    leaf, counts = model.apply(X), [model._find_fitted().draw.counts(t) for t in range(40)]
    for i in (0, 33, 79):
        trees = [t for t in range(40) if counts[t][i] == 0]
        mortality = [model.forest_[t].answers[leaf[i, t]].sum() for t in trees]
        assert model.oob_prediction_[i] == pytest.approx(np.mean(mortality))


@pytest.mark.parametrize("max_times", [5, 64])
def test_threads_files_pickles_fields_and_warm_starts(max_times, tmp_path):
    X, y = make_times()
    X[::7, 0] = np.nan
    frame = pd.DataFrame(X, columns=list("abc")).assign(d=pd.Categorical(np.where(y > 0.7, "x", "z")))
    fields = np.array([*zip(y > 0, np.abs(y), strict=True)], dtype=[("seen", bool), ("time", float)])
    one = RandomForestSurvival(**FEW, max_times=max_times, n_jobs=1).fit(frame, y)
    assert len(one.times_) <= max_times
    one.save_model(tmp_path / "times.spn")
    warm = RandomForestSurvival(5, random_state=0, max_times=max_times, warm_start=True).fit(frame, y)
    others = [
        RandomForestSurvival(**FEW, max_times=max_times, n_jobs=2).fit(frame, fields),
        load_model(tmp_path / "times.spn"),
        pickle.loads(pickle.dumps(one)),
        warm.set_params(n_estimators=12).fit(frame, y),
    ]
    for other in others:
        np.testing.assert_array_equal(other.predict(frame), one.predict(frame))
        np.testing.assert_array_equal(
            other.predict_survival(frame, [0.5, 1.0]), one.predict_survival(frame, [0.5, 1.0])
        )
        np.testing.assert_array_equal(other.times_, one.times_)
    assert len(one) == 12
    with pytest.raises(ValueError, match="a predictor gives numbers or classes, and this model curves"):
        one.predictor()
    for explain in (lambda: one.shap_values(frame), lambda: spinney.export(one, "python")):
        with pytest.raises(ValueError, match=r"RandomForestSurvival cannot be ex.*and this model curves: use predict$"):
            explain()


def test_a_row_of_weight_two_is_two_rows():
    X, y = make_times(120)
    times = np.arange(120) % 3
    settings = {"n_estimators": 2, "bootstrap": False, "max_features": None, "min_samples_leaf": 1, "ties": "first"}
    weighted = RandomForestSurvival(**settings, min_samples_split=2).fit(X, y, times.astype(float))
    doubled = RandomForestSurvival(**settings, min_samples_split=2).fit(
        np.repeat(X, times, axis=0), np.repeat(y, times)
    )
    np.testing.assert_array_equal(weighted.predict(X), doubled.predict(X))
    drawn = RandomForestSurvival(50, random_state=0).fit(X, y, times.astype(float))
    assert drawn.score(X[times > 0], y[times > 0]) > 0.75


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([0.0, 1.0, 2.0], "y is 0 in row 0: times are above 0, or below where they are censored"),
        ([1.0, np.nan, 2.0], "Input y contains NaN"),
        ([-1.0, -2.0, -3.0], "y has no event: every time is below 0, censored, and there is nothing to learn"),
        ([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]], "y has several columns: give times"),
    ],
)
def test_targets_are_checked(y, words):
    with pytest.raises(ValueError, match=words):
        RandomForestSurvival(**FEW).fit(np.arange(3.0)[:, None], np.array(y))


def test_times_to_predict_at_are_checked():
    X, y = make_times(60)
    model = RandomForestSurvival(**FEW).fit(X, y)
    for method in (model.predict_survival, model.predict_cumulative_hazard):
        with pytest.raises(ValueError, match="must be a list of finite numbers above 0"):
            method(X, [0.0])
    with pytest.raises(ValueError, match="X has 2 features, but RandomForestSurvival is expecting 3"):
        model.predict(X[:, :2])


def test_damaged_times_are_refused():
    X, y = make_times(60)
    model = RandomForestSurvival(**FEW).fit(X, y)
    for broken in (model.times_[::-1].copy(), model.times_[:-1], -model.times_):
        state = pickle.loads(pickle.dumps(model))
        state.times_ = broken
        with pytest.raises(ValueError, match="times_"):
            pickle.loads(pickle.dumps(state))


def test_warm_starts_keep_the_times_that_are_told_apart():
    """Trees of other times have other columns of hazards, and `times_` are those of all trees."""
    X, y = make_times(60)
    model = RandomForestSurvival(5, random_state=0, warm_start=True).fit(X, y)
    expected, times = model.predict_survival(X, [0.5]), model.times_
    for params in ({"n_estimators": 8, "max_times": 4}, {"n_estimators": 5, "max_times": 4}):
        with pytest.raises(ValueError, match=r"whose times_ stay \d+ times of events, and max_times=4"):
            model.set_params(**params).fit(X, y)
    model.set_params(n_estimators=8, max_times=64)
    with pytest.raises(ValueError, match="oob_score=True needs the bags of all trees, but the first 5 were grown on"):
        model.set_params(oob_score=True).fit(X, 2.0 * y)
    np.testing.assert_array_equal(model.times_, times)
    np.testing.assert_array_equal(model.predict_survival(X, [0.5]), expected)
    model.set_params(oob_score=False).fit(X, 2.0 * y)  # later times: those after the last one had not come by then
    np.testing.assert_array_equal(model.times_, times)
    assert len(model) == 8
    assert model.predict_survival(X, [0.5]).mean() > expected.mean()


def test_out_of_bag_scores_need_bags_and_rows_to_compare():
    X, y = make_times(60)
    with pytest.raises(ValueError, match="Out of bag estimation only available if bootstrap=True or 'poisson'"):
        RandomForestSurvival(**FEW, bootstrap=False, oob_score=True).fit(X, y)
    for times in ([3.0, -1.0, -2.0], [2.0, 2.0, 2.0]):  # no order is known: censored before the event; all at once
        with pytest.warns(UserWarning, match="oob_score_ is NaN: of no two out-of-bag rows"):
            model = RandomForestSurvival(40, oob_score=True, random_state=0).fit(X[:3], np.array(times))
        assert np.isnan(model.oob_score_)
    for times in ([2.0, -2.0, -1.0], [2.0, 3.0, -1.0]):
        assert 0.0 <= RandomForestSurvival(40, oob_score=True, random_state=0).fit(X[:3], times).oob_score_ <= 1.0
