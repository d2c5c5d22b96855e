"""Boosting of times until an event: recovers risks, orders pairs, says what is wrong with its input."""

import re

import numpy as np
import pandas as pd
import pytest

import spinney
from spinney import GradientBoostingSurvival, load_model
from spinney.estimators.concordance import measure_concordance

FEW = {"n_estimators": 12, "random_state": 0}


def make_times(n_rows=400, seed=0):
    """Weibull times whose risk follows the first feature, censored at random."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    time, end = rng.weibull(1.5, n_rows) * np.exp(-X[:, 0]), rng.exponential(1.5, n_rows)
    return X, np.where(time <= end, time, -end)


def naive_concordance(time, risk, weight):
    right = known = 0.0
    for i in range(len(time)):
        for j in range(len(time)):
            is_earlier = abs(time[i]) < abs(time[j]) or (abs(time[i]) == abs(time[j]) and time[j] < 0)
            if i != j and time[i] > 0 and is_earlier:
                known += weight[i] * weight[j]
                right += weight[i] * weight[j] * (1.0 if risk[i] > risk[j] else 0.5 * (risk[i] == risk[j]))
    return right / known


@pytest.mark.parametrize("n_values", [3, 12, 1000])
@pytest.mark.parametrize("n_rows", [12, 60, 64, 129])
def test_concordance_counts_pairs(n_values, n_rows):
    rng = np.random.default_rng([n_values, n_rows])
    time = rng.integers(1, n_values + 1, n_rows) * rng.choice([-1.0, 1.0], n_rows)
    risk, weight = rng.integers(0, n_values, n_rows).astype(float), rng.integers(0, 3, n_rows).astype(float)
    assert measure_concordance(time, risk, weight) == pytest.approx(naive_concordance(time, risk, weight))


def test_concordance_of_huge_weights_is_finite():
    rng = np.random.default_rng(0)
    time, risk, weight = rng.choice([-1.0, 1.0], 50) * rng.integers(1, 9, 50), rng.normal(size=50), rng.uniform(size=50)
    assert measure_concordance(time, risk, weight * 2.0**1000) == measure_concordance(time, risk, weight)


def test_events_of_one_time_are_no_pairs_whatever_they_weigh():
    weight = np.random.default_rng(0).uniform(size=3000)
    with pytest.raises(ValueError, match="none are comparable"):
        measure_concordance(np.ones(3000), np.arange(3000.0), weight)


@pytest.mark.parametrize(
    "settings", [{}, {"loss": "aft"}, {"loss": "aft", "distribution": "extreme"}], ids=["cox", "normal", "extreme"]
)
def test_rows_that_were_not_seen_are_ordered_by_risk(settings):
    X, y = make_times(1500)
    new, times = make_times(500, seed=1)
    model = GradientBoostingSurvival(random_state=0, **settings).fit(X, y)
    best = measure_concordance(times, new[:, 0], None)
    assert best - 0.03 < model.score(new, times) <= best + 0.01


def test_survival_falls_with_time_and_follows_the_truth():
    X, y = make_times(6000)
    new, _ = make_times(300, seed=1)
    times = np.array([0.1, 0.3, 1.0])
    truth = np.exp(-((times[None, :] * np.exp(new[:, :1])) ** 1.5))
    for settings, most in (({}, 0.04), ({"loss": "aft", "distribution": "extreme", "sigma": 2 / 3}, 0.04)):
        survival = GradientBoostingSurvival(random_state=0, **settings).fit(X, y).predict_survival(new, times)
        assert survival.shape == (300, 3)
        assert bool((np.diff(survival, axis=1) <= 0.0).all())
        assert np.abs(survival - truth).mean() < most


@pytest.mark.parametrize("settings", [{}, {"loss": "aft"}], ids=["cox", "aft"])
def test_files_threads_and_structured_targets_change_no_bit(settings, tmp_path):
    X, y = make_times(9000)
    one = GradientBoostingSurvival(**FEW, **settings, n_jobs=1).fit(X, y)
    two = GradientBoostingSurvival(**FEW, **settings, n_jobs=2).fit(X, y)
    fields = np.array(list(zip(y > 0, np.abs(y), strict=True)), dtype=[("seen", bool), ("time", float)])
    three = GradientBoostingSurvival(**FEW, **settings).fit(X, fields)
    one.save_model(tmp_path / "m.spn")
    loaded = load_model(tmp_path / "m.spn")
    expected = one.predict_survival(X[:50], [0.5, 1.0])
    for model in (two, three, loaded):
        np.testing.assert_array_equal(model.predict_survival(X[:50], [0.5, 1.0]), expected)
    assert one.score(X[:200], fields[:200]) == one.score(X[:200], y[:200])


def test_a_row_of_weight_two_is_two_rows():
    X, y = make_times(200)
    times = 1 + np.arange(200) % 2
    settings = {"n_estimators": 10, "subsample": 1.0, "max_features": None, "min_samples_leaf": 1, "max_leaf_nodes": 4}
    weighted = GradientBoostingSurvival(**settings).fit(X, y, times.astype(float))
    doubled = GradientBoostingSurvival(**settings).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(
        weighted.predict_survival(X, [0.3, 1.0]), doubled.predict_survival(X, [0.3, 1.0]), rtol=1e-9
    )


def test_a_scan_gives_the_same_model(tmp_path):
    X, y = make_times()
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=y)
    frame.to_parquet(tmp_path / "times.parquet")
    scanned = GradientBoostingSurvival(**FEW).fit(spinney.scan(tmp_path / "times.parquet", target="y"))
    plain = GradientBoostingSurvival(**FEW).fit(frame[list("abc")], y)
    times = [0.2, 1.0]
    np.testing.assert_array_equal(
        scanned.predict_survival(frame[list("abc")], times), plain.predict_survival(frame[list("abc")], times)
    )


@pytest.mark.parametrize("settings", [{}, {"loss": "aft"}], ids=["cox", "aft"])
def test_learning_curves_and_early_stopping(settings):
    X, y = make_times()
    new, times = make_times(200, seed=1)
    model = GradientBoostingSurvival(
        n_estimators=200, n_iter_no_change=5, random_state=0, learning_rate=0.3, **settings
    )
    model.fit(X, y, X_val=new, y_val=times)
    assert model.n_estimators_ < 200
    assert model.best_iteration_ == int(np.argmin(model.evals_result_["valid"]["loss"])) + 1
    assert model.train_score_[-1] < model.train_score_[0]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.array([1.0, 0.0, 2.0]), "y is 0 in row 1: loss='cox' requires finite times above 0"),
        (
            np.array([(True, 1.0), (False, -1.0), (True, 2.0)], dtype=[("e", bool), ("t", float)]),
            "the time -1 in row 1",
        ),
        (np.array([(1.0, 1.0)] * 3, dtype=[("e", float), ("t", float)]), "a structured target has two, a bool"),
        (np.array([1.0, np.nan, 2.0]), "NaN"),
        ([(True, 1.0), (False, 2.0), (True, 2.0)], "y has several columns: give times, below 0 where the event was"),
        (pd.DataFrame({"seen": [True] * 3, "time": [1.0, 2.0, 3.0]}), "numpy.where(seen, time, -time)"),
    ],
)
def test_faults_name_what_is_wrong(y, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        GradientBoostingSurvival(**FEW).fit(np.arange(3.0)[:, None], y)


def test_faults_of_rows_to_evaluate_on_say_so():
    X, y = make_times(50)
    bad = np.where(np.arange(50) == 7, 0.0, y)
    with pytest.raises(ValueError, match="X_val, y_val: y is 0 in row 7: loss='cox' requires finite times above 0"):
        GradientBoostingSurvival(**FEW).fit(X, y, X_val=X, y_val=bad)


@pytest.mark.parametrize("times", [[0.0], [[1.0]], [np.inf], 1.0, ["late"], None, [[1.0], [1.0, 2.0]]])
def test_times_are_checked(times):
    X, y = make_times(50)
    with pytest.raises(ValueError, match="must be a list of finite numbers above 0"):
        GradientBoostingSurvival(**FEW).fit(X, y).predict_survival(X, times)


def test_a_table_without_events_orders_nobody():
    X, y = make_times(50)
    with pytest.warns(UserWarning, match="y has no event: every time is below 0"):
        model = GradientBoostingSurvival(**FEW).fit(X, -np.abs(y))
    assert np.unique(model.predict(X)).tolist() == [0.0]
    assert np.unique(model.predict_survival(X, [1.0])).tolist() == [1.0]
    with pytest.raises(ValueError, match="none are comparable"):
        model.score(X, -np.abs(y))
    with pytest.raises(ValueError, match="y has no event: every time is below 0, censored, and loss='aft' needs one"):
        GradientBoostingSurvival(loss="aft", **FEW).fit(X, -np.abs(y))


@pytest.mark.parametrize("loss", ["cox", "aft"])
def test_rows_to_evaluate_on_may_all_be_censored(loss):
    X, y = make_times(50)
    model = GradientBoostingSurvival(loss=loss, **FEW).fit(X, y, X_val=X, y_val=-np.abs(y))
    assert np.isfinite(model.evals_result_["valid"]["loss"]).all()


def test_score_follows_the_loss_of_the_fit():
    X, y = make_times()
    model = GradientBoostingSurvival(**FEW).fit(X, y)
    before = model.score(X, y)
    assert model.set_params(loss="aft").score(X, y) == before > 0.5


def test_rows_to_evaluate_on_of_no_weight_are_as_if_left_out():
    X, y = make_times()
    weight = (np.abs(y) < np.median(np.abs(y))).astype(float)  # the last to be left have none
    curves = [
        GradientBoostingSurvival(**FEW).fit(X, y, X_val=given, y_val=times, sample_weight_val=weights).evals_result_
        for given, times, weights in ((X, y, weight), (X[weight > 0.0], y[weight > 0.0], None))
    ]
    np.testing.assert_allclose(curves[0]["valid"]["loss"], curves[1]["valid"]["loss"], rtol=1e-12)


def test_huge_weights_change_no_curve_and_no_baseline():
    X, y = make_times()
    half = np.full(len(y), 0.5)
    plain, model = (
        GradientBoostingSurvival(reg_lambda=0.0, min_child_weight=0.0, **FEW).fit(
            X, y, weight, X_val=X, y_val=y, sample_weight_val=weight
        )
        for weight in (half, np.ldexp(half, 1024))
    )
    assert model.evals_result_["valid"] == plain.evals_result_["valid"]
    np.testing.assert_array_equal(model.predict_survival(X, [0.5, 1.0]), plain.predict_survival(X, [0.5, 1.0]))


@pytest.mark.parametrize("distribution", ["logistic", "extreme"])
def test_a_sigma_far_below_the_spread_of_times_is_refused(distribution):
    X, y = make_times()
    model = GradientBoostingSurvival(loss="aft", distribution=distribution, sigma=1e-3, **FEW)
    with pytest.raises(ValueError, match=r"sigma=0.001 is too small .* Give at least sigma=0.1\d, or distribution="):
        model.fit(X, y)
    assert model.set_params(sigma=0.3).fit(X, y).score(X, y) > 0.8
    assert model.set_params(sigma=1e-3, distribution="normal").fit(X, y).score(X, y) > 0.8
