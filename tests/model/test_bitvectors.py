"""Trees as tests and bits against a walk down each of them: the same additions, so the same bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney import GradientBoostingClassifier, GradientBoostingRegressor, _jit
from spinney.model import boosted
from spinney.tree.bitvectors import round_down


def draw_table(n_rows, seed, dtype, share_missing=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 5)).astype(dtype)
    X[:, 1] = np.round(X[:, 1], 1)
    X[rng.random(X.shape) < share_missing] = np.nan
    X[rng.random(X.shape) < 0.01] = np.inf
    X[rng.random(X.shape) < 0.01] = -np.inf
    score = np.nan_to_num(X[:, 0], posinf=2, neginf=-2) ** 2 + np.isnan(X[:, 2]) + rng.normal(size=n_rows)
    return X, score


def walk(model, X, monkeypatch):
    """Raw scores by the walk."""
    with monkeypatch.context() as patch:
        patch.setattr(boosted, "FEWEST_ROWS", 1 << 60)
        return raw_of(model, X)


def raw_of(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


@pytest.fixture(autouse=True)
def _compiled():
    _jit.load_compiled()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_leaves", [2, 3, 31, 32, 33, 63, 64])
def test_bits_say_what_a_walk_says(n_leaves, dtype, monkeypatch):
    X, y = draw_table(3000, n_leaves, dtype)
    model = GradientBoostingRegressor(
        n_estimators=20, max_leaf_nodes=n_leaves, min_samples_leaf=1, n_jobs=1, max_bins=None
    ).fit(X, y)
    assert model.forest_.can_be_bits
    assert model.forest_.most_leaves == n_leaves
    new = draw_table(1000, 99, dtype)[0]
    calls = []
    score = boosted.add_bits
    monkeypatch.setattr(boosted, "add_bits", lambda *arguments: (calls.append(1), score(*arguments)))
    np.testing.assert_array_equal(raw_of(model, new), walk(model, new, monkeypatch))
    assert calls


def test_many_classes_and_rounds(monkeypatch):
    X, y = draw_table(2000, 0, np.float32)
    model = GradientBoostingClassifier(n_estimators=7, n_jobs=1).fit(X, np.digitize(y, [0, 1, 2]))
    expected = walk(model, X, monkeypatch)
    np.testing.assert_array_equal(raw_of(model, X), expected)
    np.testing.assert_array_equal(raw_of(model, X[:70]), expected[:70])
    stages = list(model.staged_decision_function(X))
    np.testing.assert_array_equal(stages[-1], expected)


def test_what_bits_cannot_say_is_walked():
    X, y = draw_table(3000, 1, np.float64)
    wide = GradientBoostingRegressor(n_estimators=3, max_leaf_nodes=65, min_samples_leaf=1, n_jobs=1).fit(X, y)
    assert not wide.forest_.can_be_bits
    X[:, 1] = np.arange(len(X)) % 5
    levels = GradientBoostingRegressor(n_estimators=3, categorical_features=[1], n_jobs=1).fit(X, y)
    assert len(levels.forest_.subsets) == 0 or not levels.forest_.can_be_bits


def test_a_tree_of_one_leaf():
    X = np.zeros((100, 1))
    model = GradientBoostingRegressor(n_estimators=2, n_jobs=1).fit(X, np.arange(100.0))
    np.testing.assert_array_equal(model.predict(X), np.full(100, 49.5))


@given(st.floats(allow_nan=False), st.floats(allow_nan=False, width=32))
def test_a_rounded_threshold_parts_float32_values_as_the_exact_one(threshold, value):
    rounded = round_down(np.array([threshold]))
    assert (np.float32(value) <= rounded[0]) == (value <= threshold)
