"""Bags by gradients: who is in them, and that sums are right on average."""

import numpy as np
import pytest

from plain_boosting import plain
from spinney import GradientBoostingClassifier, GradientBoostingRegressor
from spinney.ensemble.gradient_sampling import GradientSampling


@pytest.mark.parametrize(("n_rows", "n_drawn"), [(100, 30), (50, 49), (7, 1), (1000, 3)])
def test_a_bag_has_the_greatest_and_some_others(n_rows, n_drawn):
    size = np.random.default_rng(0).random(n_rows)
    sampling = GradientSampling(n_rows, n_drawn, 7)
    bag = sampling.draw(size, 3)
    assert len(bag) == n_drawn
    assert bag.tolist() == sorted(set(bag.tolist()))
    greatest = np.argsort(-size)[: sampling.n_top]
    assert set(greatest.tolist()) <= set(bag.tolist())
    assert set(bag.tolist()) - set(greatest.tolist()) == set(sampling.others.tolist())
    assert sampling.n_top + sampling.factor * len(sampling.others) == pytest.approx(n_rows)


def test_of_equal_rows_the_first_are_taken():
    sampling = GradientSampling(9, 6, 0)
    assert set(sampling.draw(np.ones(9), 0)[:4].tolist()) == {0, 1, 2, 3}


def test_sums_of_bags_are_right_on_average():
    size = np.random.default_rng(1).exponential(size=400)
    sampling = GradientSampling(400, 120, 5)
    sums = []
    for number in range(400):
        weight = np.zeros(400)
        weight[sampling.draw(size, number)] = 1.0
        weight[sampling.others] = sampling.factor
        sums.append(weight @ size)
    assert np.mean(sums) == pytest.approx(size.sum(), abs=3.0 * np.std(sums) / 20.0)


def make_table(n_rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 5))
    return X, X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n_rows)


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_few_rows_by_gradients_learn_as_well_as_all(n_classes):
    X, y = make_table()
    new, truth = make_table(seed=1)
    cls = GradientBoostingRegressor
    if n_classes:
        cls = GradientBoostingClassifier
        cuts = np.quantile(y, np.arange(1, n_classes) / n_classes)
        y, truth = np.digitize(y, cuts), np.digitize(truth, cuts)
    scores = [
        cls(**plain(n_estimators=60, random_state=0, **settings)).fit(X, y).score(new, truth)
        for settings in ({}, {"subsample": 0.3, "sampling": "gradient"})
    ]
    assert scores[1] > scores[0] - 0.03


@pytest.mark.parametrize("loss", ["squared_error", "poisson"])
def test_threads_change_no_bit(loss):
    X, y = make_table(9000)
    models = [
        GradientBoostingRegressor(loss=loss, n_estimators=5, sampling="gradient", random_state=0, n_jobs=n)
        for n in (1, 2, 3)
    ]
    expected, *others = [model.fit(X, np.abs(y)).predict(X) for model in models]
    for predicted in others:
        np.testing.assert_array_equal(predicted, expected)


@pytest.mark.parametrize("settings", [{"loss": "quantile"}, {"loss": "absolute_error"}, {"newton": False}])
def test_leaves_that_are_no_newton_steps_are_refused(settings):
    X, y = make_table(50)
    with pytest.raises(ValueError, match="sampling='gradient' multiplies derivatives"):
        GradientBoostingRegressor(sampling="gradient", **settings).fit(X, y)


def test_the_first_rounds_see_all_rows():
    """As in LightGBM: 1 / learning_rate of them, rounded down."""
    assert [GradientSampling(9, 3, 0, rate).n_whole for rate in (0.1, 0.3, 0.03, 1.0, 2.0)] == [10, 3, 33, 1, 0]
    X, y = make_table(400)
    shared = {"learning_rate": 0.3, "max_leaf_nodes": 8, "random_state": 0}
    for n_rounds, is_same in ((3, True), (4, False)):
        whole = GradientBoostingRegressor(**plain(n_estimators=n_rounds, **shared)).fit(X, y)
        drawn = {"subsample": 0.3, "sampling": "gradient", "leaf_rows": "bag"}
        goss = GradientBoostingRegressor(**plain(n_estimators=n_rounds, **shared, **drawn)).fit(X, y)
        assert np.array_equal(whole.predict(X), goss.predict(X)) is is_same
    warm = GradientBoostingRegressor(**plain(n_estimators=2, warm_start=True, **shared, **drawn)).fit(X, y)
    np.testing.assert_array_equal(warm.set_params(n_estimators=4).fit(X, y).predict(X), goss.predict(X))


def test_the_first_rounds_are_lightgbms():
    lightgbm = pytest.importorskip("lightgbm")
    X, y = make_table(600)
    peer = lightgbm.LGBMRegressor(
        data_sample_strategy="goss", n_estimators=4, learning_rate=0.3, num_leaves=8, reg_lambda=0.0, verbose=-1,
        min_child_samples=20, min_child_weight=1e-3, max_bin=1023, min_data_in_bin=1, random_state=0, n_jobs=1,
    ).fit(X, y)  # fmt: skip
    shared = {"max_leaf_nodes": 8, "min_samples_leaf": 20, "reg_lambda": 0.0, "max_bins": None, "random_state": 0}
    model = GradientBoostingRegressor(
        **plain(n_estimators=4, learning_rate=0.3, subsample=0.3, sampling="gradient", **shared)
    ).fit(X, y)
    for n_rounds, is_near in ((3, True), (4, False)):  # then each draws its own rows
        off = np.abs(model.predict(X, n_rounds=n_rounds) - peer.predict(X, num_iteration=n_rounds)).max()
        assert bool(off < 1e-5) is is_near


def test_rounds_on_all_rows_may_be_more_than_anyone_counts():
    assert GradientSampling(9, 6, 0, 1e-320).takes_all(10**9)
