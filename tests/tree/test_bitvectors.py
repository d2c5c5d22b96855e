"""Trees as tests and bits against a walk down each of them: the same additions, so the same bits."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chance_forests import Chance
from plain_boosting import plain
from spinney import GradientBoostingClassifier, GradientBoostingRegressor, RandomForestClassifier, _jit
from spinney.model import boosted_scores
from spinney.tree import bitvectors, predict
from spinney.tree.bitvectors import round_down
from spinney.tree.broken import BrokenTreeError
from spinney.tree.forest import join_trees
from spinney.tree.linear import LinearLeaves


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
        patch.setattr(predict, "FEWEST_ROWS", 1 << 60)
        return raw_of(model, X)


def raw_of(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


@pytest.fixture(autouse=True)
def _compiled():
    _jit.load_compiled()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_leaves", [2, 3, 16, 17, 31, 64, 65, 256])
def test_bits_say_what_a_walk_says(n_leaves, dtype, monkeypatch):
    X, y = draw_table(3000, n_leaves, dtype)
    model = GradientBoostingRegressor(
        **plain(n_estimators=20, max_leaf_nodes=n_leaves, min_samples_leaf=1, n_jobs=1, max_bins=None)
    ).fit(X, y)
    assert model.forest_.can_be_bits
    assert model.forest_.most_leaves == n_leaves
    new = draw_table(1000, 99, dtype)[0]
    calls = []
    score = boosted_scores.score_at_once
    noting = lambda *args, **options: (calls.append(1), score(*args, **options))  # noqa: E731
    monkeypatch.setattr(boosted_scores, "score_at_once", noting)
    np.testing.assert_array_equal(raw_of(model, new), walk(model, new, monkeypatch))
    assert calls or _jit.load_compiled() is _jit.interpreted()  # nothing is asked that is not compiled


def test_many_classes_and_rounds(monkeypatch):
    X, y = draw_table(2000, 0, np.float32)
    model = GradientBoostingClassifier(**plain(n_estimators=7, n_jobs=1)).fit(X, np.digitize(y, [0, 1, 2]))
    expected = walk(model, X, monkeypatch)
    np.testing.assert_array_equal(raw_of(model, X), expected)
    np.testing.assert_array_equal(raw_of(model, X[:70]), expected[:70])
    stages = list(model.staged_decision_function(X))
    np.testing.assert_array_equal(stages[-1], expected)


def test_what_bits_cannot_say_is_walked():
    X, y = draw_table(3000, 1, np.float64)
    few = plain(n_estimators=3, n_jobs=1)
    wide = GradientBoostingRegressor(**few | {"max_leaf_nodes": 257, "min_samples_leaf": 1}).fit(X, y)
    assert not wide.forest_.can_be_bits
    assert not Chance(1, 0, n_sides=3).forest(9).can_be_bits  # some test has a branch of its own for missing values


@pytest.mark.parametrize(("n_leaves", "n_levels"), [(512, 5), (512, 70), (513, 5)])
def test_trees_with_subsets_may_have_more_leaves(n_leaves, n_levels, monkeypatch):
    X, y = draw_table(6000, 1, np.float64)
    X[:, 1] = np.arange(len(X)) % n_levels
    shape = plain(n_estimators=8, max_leaf_nodes=n_leaves, min_samples_leaf=1, n_jobs=1, max_bins=None)
    model = GradientBoostingRegressor(**shape, categorical_features=[1]).fit(X, y + (X[:, 1] % 3 == 0))
    assert len(model.forest_.subsets) > 0
    assert model.forest_.most_leaves == n_leaves
    assert model.forest_.can_be_bits == (n_leaves == 512)
    np.testing.assert_array_equal(raw_of(model, X[:500]), walk(model, X[:500], monkeypatch))


def test_more_masks_of_levels_than_there_is_room_for_are_walked(monkeypatch):
    forest = Chance(1, 0, has_subsets=True, n_sides=2).forest(9)
    assert len(forest.subsets) > 0
    assert forest.can_be_bits
    monkeypatch.setattr(bitvectors, "MOST_MASKS", 100)
    assert not bitvectors.can_be_bits(forest)


@pytest.mark.parametrize("n_levels", [2, 14, 15, 16, 17, 64, 70])
def test_categories_are_looked_up_as_a_walk_asks_for_them(n_levels, monkeypatch):
    """Up to 15 levels as bits, more by masks."""
    X, y = draw_table(3000, 1, np.float64)
    X[:, 1] = np.arange(len(X)) % n_levels
    X[::7, 1] = np.nan
    model = GradientBoostingRegressor(**plain(n_estimators=20, n_jobs=1), categorical_features=[1])
    model.fit(X, y + (X[:, 1] % 3 == 0))
    assert len(model.forest_.subsets) > 0
    assert model.forest_.can_be_bits
    new = X[:500].copy()
    new[::3, 1] = 1000.0  # a level that is none
    np.testing.assert_array_equal(raw_of(model, new), walk(model, new, monkeypatch))


def test_a_tree_of_one_leaf():
    X = np.zeros((100, 1))
    model = GradientBoostingRegressor(**plain(n_estimators=5, n_jobs=1)).fit(X, np.arange(100.0))
    np.testing.assert_array_equal(model.predict(X), np.full(100, 49.5))


@pytest.mark.parametrize("k", ["compiled", "interpreted"])
@pytest.mark.parametrize("has_subsets", [False, True])
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(0, 4), st.sampled_from([np.float32, np.float64]))
def test_sums_of_forests_by_chance_have_the_same_bits(k, has_subsets, seed, n_trees, n_classes, dtype):
    chance = Chance(seed, n_classes, n_sides=2, has_subsets=has_subsets)
    trees = [chance.tree() for _ in range(n_trees)]
    forest = join_trees(trees)
    assert forest.can_be_bits
    values = chance.rows(70, dtype)
    lo, hi = 3, 69
    votes = np.zeros((len(values), max(n_classes, 1)))
    for tree in trees:  # one is walked
        predict.add_votes(join_trees([tree]), values, lo, hi, votes)
    found = np.zeros_like(votes)
    is_single = votes.shape[1] == 1
    sums = found.reshape(1, -1) if is_single else found
    kernels = _jit.load_compiled() if k == "compiled" else _jit.interpreted()
    predict.score_at_once(forest, range(n_trees), values, lo, hi, sums, kernels, n_raw=int(is_single))
    assert found.tobytes() == votes.tobytes()


def test_a_forest_of_small_trees_is_asked_and_votes_as_a_walk_does(monkeypatch):
    X, y = draw_table(3000, 5, np.float64)
    model = RandomForestClassifier(n_estimators=20, max_leaf_nodes=50, random_state=0).fit(X, np.digitize(y, [0, 1]))
    assert model.forest_.can_be_bits
    found = model.predict_proba(X)
    monkeypatch.setattr(predict, "FEWEST_ROWS", 1 << 60)
    np.testing.assert_array_equal(model.predict_proba(X), found)


def test_more_thresholds_than_ranks_are_walked(monkeypatch):
    forest = Chance(8, 0, n_sides=2).forest(9)
    assert forest.can_be_bits
    monkeypatch.setattr(bitvectors, "MOST_THRESHOLDS", 3)
    assert not bitvectors.can_be_bits(forest)


def test_rows_of_another_width_are_refused():
    forest = Chance(8, 0, n_sides=2).forest(9)
    with pytest.raises(BrokenTreeError, match="the trees have 5 features, the rows 4"):
        predict.add_votes(forest, np.zeros((100, 4)), 0, 100, np.zeros((100, 1)))


@given(st.floats(allow_nan=False), st.floats(allow_nan=False, width=32))
def test_a_rounded_threshold_parts_float32_values_as_the_exact_one(threshold, value):
    rounded = round_down(np.array([threshold]))
    assert (np.float32(value) <= rounded[0]) == (value <= threshold)


def with_linear_leaves(forest, seed):
    """The forest with models in some leaves, of its two columns of numbers."""
    rng = np.random.default_rng(seed)
    n_terms = np.where(forest.is_leaf, rng.integers(0, 4, forest.n_nodes), 0)
    n = int(n_terms.sum())
    feature = rng.integers(0, 2, n).astype(np.int32)
    first = np.concatenate([[0], np.cumsum(n_terms)])
    return replace(forest, linear=LinearLeaves(first, feature, rng.normal(size=n), rng.normal(size=n)))


@pytest.mark.parametrize("share_missing", [0.0, 0.2])
@pytest.mark.parametrize("k", ["compiled", "interpreted"])
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.sampled_from([np.float32, np.float64]))
def test_linear_leaves_have_the_same_bits(k, share_missing, seed, n_trees, dtype):
    chance = Chance(seed, 0, n_sides=2)
    forest = with_linear_leaves(chance.forest(n_trees), seed)  # infinity is among its thresholds
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(70, forest.n_features)).astype(dtype)
    values[rng.random(values.shape) < share_missing] = np.nan
    expected, found = np.zeros((2, 1, 70))
    boosted_scores.add_linear_rounds(forest, range(n_trees), values, 3, 69, expected)
    kernels = _jit.load_compiled() if k == "compiled" else _jit.interpreted()
    predict.score_at_once(forest, range(n_trees), values, 3, 69, found, kernels, n_raw=1)
    assert found.tobytes() == expected.tobytes()


def test_tests_that_ask_only_for_missing_values_are_left_out_where_none_is_missing():
    chance = Chance(3, 0, n_sides=2)
    forest = chance.forest(9)
    assert forest.asks_missing
    known = np.zeros((40, forest.n_features))
    holes = np.full_like(known, np.nan)
    short, full = (forest.bits(values, _jit.load_compiled()) for values in (known, holes))
    assert len(short.trees.rank) < len(full.trees.rank)
    assert np.diff(full.trees.first_leaf).tolist() == forest.n_leaves.tolist()
