"""Dependence on one column: scikit-learn's partial dependence, predictions one by one, and ALE by its definition."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.inspection import partial_dependence

import spinney

RNG = np.random.default_rng(5)
X = np.column_stack([RNG.normal(size=150), RNG.normal(size=150), RNG.integers(0, 4, 150)])
Y = X[:, 0] ** 2 + X[:, 0] * X[:, 1] + (X[:, 2] == 2)


def test_the_average_is_that_of_scikit_learn():
    model = spinney.GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, Y)
    grid = [-1.0, -0.2, 0.3, 2.0]
    found = spinney.dependence(model, X, 0, grid=grid)
    truth = partial_dependence(model, X, [0], custom_values={0: grid}, method="brute", kind="both")
    np.testing.assert_allclose(found.values[:, 0], truth["average"][0], rtol=1e-12)
    single = spinney.dependence(model, X, 0, grid=grid, kind="individual")
    np.testing.assert_allclose(single.values[..., 0], truth["individual"][0], rtol=1e-12)
    assert found.outputs == (None,)
    assert not found.is_whole


def test_between_thresholds_the_curve_is_constant_and_whole():
    model = spinney.RandomForestClassifier(n_estimators=4, max_depth=4, random_state=0).fit(X, Y > 0.5)
    found = spinney.dependence(model, X, "x1")
    assert found.is_whole
    assert len(found.edges) == len(found.grid) - 1
    for value in (*RNG.normal(size=20), *found.edges, *np.nextafter(found.edges, np.inf)):
        changed = X.copy()
        changed[:, 1] = value
        at = np.searchsorted(found.edges, value, side="left")
        np.testing.assert_allclose(found.values[at], model.predict_proba(changed).mean(axis=0), atol=1e-12)
    assert found.outputs == (False, True)


def test_levels_are_the_grid_of_a_category():
    model = spinney.CARTRegressor(categorical_features=[2], max_depth=4).fit(X, Y)
    found = spinney.dependence(model, X, 2)
    assert found.grid == (0.0, 1.0, 2.0, 3.0)
    for level, value in zip(found.grid, found.values[:, 0], strict=True):
        changed = X.copy()
        changed[:, 2] = level
        assert value == pytest.approx(model.predict(changed).mean())
    assert spinney.dependence(model, X, 2, grid=[2.0]).values[0, 0] == pytest.approx(found.values[2, 0], rel=1e-13)
    with pytest.raises(ValueError, match=r"9.0 is no level"):
        spinney.dependence(model, X, 2, grid=[9.0])
    with pytest.raises(ValueError, match="have no order"):
        spinney.dependence(model, X, 2, kind="local")


def test_local_effects_are_those_of_the_definition():
    model = spinney.GradientBoostingRegressor(n_estimators=20, random_state=0).fit(X, Y)
    found = spinney.dependence(model, X, 0, kind="local")
    ends = np.array(found.grid)
    total, sums = 0.0, [0.0]
    weighed = 0.0
    for low, high in pairwise(ends):
        inside = (X[:, 0] > low) & (X[:, 0] <= high) | ((low == ends[0]) & (X[:, 0] == low))
        assert inside.any()
        below, above = X[inside].copy(), X[inside].copy()
        below[:, 0], above[:, 0] = low, high
        step = (model.predict(above) - model.predict(below)).mean()
        weighed += inside.sum() * (total + step / 2.0)
        total += step
        sums.append(total)
    np.testing.assert_allclose(found.values[:, 0], np.array(sums) - weighed / len(X), atol=1e-12)


def test_raw_scores_go_through_the_link_to_answers():
    model = spinney.GradientBoostingClassifier(n_estimators=10, random_state=0).fit(X, Y > 0.5)
    raw = spinney.dependence(model, X[:7], 0, kind="individual", output="raw", grid=[0.5])
    answer = spinney.dependence(model, X[:7], 0, kind="individual", grid=[0.5])
    np.testing.assert_allclose(1.0 / (1.0 + np.exp(-raw.values[:, 0, 0])), answer.values[:, 0, 1], rtol=1e-12)
    assert raw.outputs == (True,)


def test_what_is_asked_wrongly_is_told():
    model = spinney.CARTRegressor().fit(X, Y)
    with pytest.raises(ValueError, match="kind='mean'"):
        spinney.dependence(model, X, 0, kind="mean")
    with pytest.raises(ValueError, match="output='log'"):
        spinney.dependence(model, X, 0, output="log")
    with pytest.raises(ValueError, match="'y' is not a column"):
        spinney.dependence(model, X, "y")
