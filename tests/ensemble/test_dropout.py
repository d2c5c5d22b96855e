"""DART: against a plain loop over rounds, and against what it changes in a model."""

import numpy as np
import pytest

from plain_boosting import plain
from spinney import CARTRegressor, GradientBoostingClassifier, GradientBoostingRegressor
from spinney.ensemble.dropout import MOST_DROPPED, Dropout


def make_table(n_rows=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4)).round(2)
    return X, X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n_rows)


def test_rounds_are_dropped_as_often_as_asked():
    dropout = Dropout(0.2, 0.25, 3)
    counts = [len(dropout.choose(number)) for number in range(100, 140)]
    assert 0.05 < np.mean([n == 0 for n in counts]) < 0.45
    kept = [n for n in counts if n]
    assert 15 < np.mean(kept) < 35
    assert max(len(Dropout(0.9, 0.0, 1).choose(200)) for _ in range(3)) == MOST_DROPPED


def naive_dart(X, y, n_rounds, rate, skip, learning_rate, depth):
    """Squared error, round by round, every sum made anew from the trees."""
    start, trees, weights = y.mean(), [], []
    dropout = Dropout(rate, skip, 0)
    for number in range(n_rounds):
        dropped = dropout.choose(number)
        raw = start + sum(
            (w * t.predict(X) for i, (t, w) in enumerate(zip(trees, weights, strict=True)) if i not in dropped),
            np.zeros(len(y)),
        )
        trees.append(CARTRegressor(max_depth=depth, min_samples_leaf=5).fit(X, y - raw))
        k = len(dropped)
        for i in dropped:
            weights[i] *= k / (k + 1)
        weights.append(learning_rate / (k + 1))
    return start + sum(w * t.predict(X) for t, w in zip(trees, weights, strict=True))


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_a_model_is_that_of_a_plain_loop(rate, monkeypatch):
    monkeypatch.setattr("spinney.ensemble.boosting.draw_key", lambda *_: 0)
    X, y = make_table()
    settings = plain(n_estimators=25, learning_rate=0.3, max_leaf_nodes=None, max_depth=3, min_samples_leaf=5)
    model = GradientBoostingRegressor(
        **{**settings, "reg_lambda": 0.0, "drop_rate": rate, "skip_drop": 0.3, "max_bins": None, "random_state": 0}
    ).fit(X, y)
    np.testing.assert_allclose(model.predict(X), naive_dart(X, y, 25, rate, 0.3, 0.3, 3), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_curves_of_other_rows_follow_what_is_made_smaller(n_classes):
    X, y = make_table()
    labels = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    model = GradientBoostingClassifier(n_estimators=30, drop_rate=0.3, skip_drop=0.0, random_state=0)
    model.fit(X[:300], labels[:300], X_val=X[300:], y_val=labels[300:])
    chance = model.predict_proba(X[300:])[np.arange(100), labels[300:]]
    assert model.evals_result_["valid"]["loss"][-1] == pytest.approx(-np.log(chance).mean(), rel=1e-9)
    chance = model.predict_proba(X[:300])[np.arange(300), labels[:300]]
    assert model.train_score_[-1] == pytest.approx(-np.log(chance).mean(), rel=1e-9)


def test_later_rounds_weigh_as_much_as_the_first():
    X, y = make_table(2000)
    spreads = []
    for rate in (0.0, 0.2):
        model = GradientBoostingRegressor(**plain(n_estimators=60, drop_rate=rate, skip_drop=0.0, random_state=0))
        sizes = [np.std(each[0].predict(X)) for each in model.fit(X, y).estimators_]
        spreads.append(np.mean(sizes[-10:]) / np.mean(sizes[:10]))
    assert spreads[1] > 3.0 * spreads[0]


def test_threads_change_no_bit():
    X, y = make_table(9000)
    expected, *others = [
        GradientBoostingRegressor(n_estimators=15, drop_rate=0.3, random_state=0, n_jobs=n).fit(X, y).predict(X)
        for n in (1, 2)
    ]
    for predicted in others:
        np.testing.assert_array_equal(predicted, expected)


@pytest.mark.parametrize("settings", [{"n_iter_no_change": 3}, {"warm_start": True}, {"checkpoint": "run"}])
def test_what_needs_rounds_as_they_were_is_refused(settings):
    X, y = make_table(50)
    with pytest.raises(ValueError, match="drop_rate changes trees of rounds before"):
        GradientBoostingRegressor(n_estimators=5, drop_rate=0.1, **settings).fit(X, y)
