"""Trees as steps for values that are ranks against a walk down each of them: the same additions, so the same bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chance_forests import Chance
from spinney import RandomForestClassifier, RandomForestRegressor, _jit
from spinney._types import LANES
from spinney.tree import predict, ranked
from spinney.tree.bitvectors import rank_thresholds
from spinney.tree.broken import BrokenTreeError
from spinney.tree.forest import join_trees
from spinney.tree.ranked import RankedRows


@pytest.fixture(autouse=True)
def _compiled():
    _jit.load_compiled()


@pytest.mark.parametrize("has_missing", [False, True])
@pytest.mark.parametrize("k", ["compiled", "interpreted"])
@given(st.integers(0, 2**32 - 1), st.integers(8, 11), st.integers(0, 4), st.sampled_from([np.float32, np.float64]))
def test_sums_of_forests_by_chance_have_the_same_bits(k, has_missing, seed, n_trees, n_classes, dtype):
    chance = Chance(seed, n_classes, n_sides=2)
    trees = [chance.tree() for _ in range(n_trees)]
    values = chance.rows(70, dtype)
    if not has_missing:
        values[np.isnan(values)] = 0.1
    lo, hi = 3, 69
    votes = np.zeros((len(values), max(n_classes, 1)))
    for tree in trees:  # one is walked
        predict.add_votes(join_trees([tree]), values, lo, hi, votes)
    found = np.zeros_like(votes)
    kernels = _jit.load_compiled() if k == "compiled" else _jit.interpreted()
    forest = join_trees(trees)
    parts = forest.ranked(values[lo:hi], kernels)
    assert len(parts) == 1
    predict.vote_by_ranks(parts, forest, values, lo, hi, found, kernels)
    assert found.tobytes() == votes.tobytes()


def draw_table(n_rows, seed, dtype, share_missing):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 6)).astype(dtype)
    X[:, 1] = np.round(X[:, 1], 1)
    X[:, 2] = np.exp(9 * X[:, 2])  # segments by bits
    X[rng.random(X.shape) < share_missing] = np.nan
    return X, np.nan_to_num(X[:, 0]) ** 2 + np.nan_to_num(X[:, 1]) + rng.normal(size=n_rows)


@pytest.mark.parametrize("n_parts", [1, 2])
@pytest.mark.parametrize("share_missing", [0.0, 0.2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("forest", [RandomForestClassifier, RandomForestRegressor])
def test_a_grown_forest_votes_as_a_walk_does(forest, dtype, share_missing, n_parts, monkeypatch):
    """In parts too, where a feature has more thresholds than ranks; and where rows go by several blocks."""
    monkeypatch.setattr(ranked, "BLOCK_CELLS", 1 << 14)
    X, y = draw_table(1500, 5, dtype, share_missing)
    y = np.digitize(y, [0, 1]) if forest is RandomForestClassifier else y
    model = forest(n_estimators=24, random_state=0, n_jobs=1).fit(X, y)
    assert not model.forest_.can_be_bits
    if n_parts > 1:
        n_each = rank_thresholds(model.forest_, np.dtype(dtype)).n_each
        monkeypatch.setattr(ranked, "MOST_THRESHOLDS", n_each.max() - 1)
    ask = model.predict_proba if forest is RandomForestClassifier else model.predict
    new = draw_table(5003, 6, dtype, share_missing)[0]
    calls = []
    vote = predict.vote_by_ranks
    monkeypatch.setattr(predict, "vote_by_ranks", lambda *args: (calls.append(len(args[0])), vote(*args)))
    found = ask(new)
    if _jit.load_compiled() is not _jit.interpreted():  # nothing is asked that is not compiled
        assert set(calls) == {n_parts}
    monkeypatch.setattr(predict, "RANKED_ROWS", 1 << 60)
    np.testing.assert_array_equal(ask(new), found)


def test_what_steps_cannot_say_is_walked(monkeypatch):
    k, rows = _jit.load_compiled(), RankedRows(np.dtype(np.float64), is_known=False)
    plain = Chance(8, 0, n_sides=2).forest(9)
    assert ranked.lay_ranked(plain, rows, k)
    assert not ranked.lay_ranked(Chance(1, 0, n_sides=3).forest(9), rows, k)  # a branch of its own for missing values
    assert not ranked.lay_ranked(Chance(1, 0, n_sides=2, has_subsets=True).forest(9), rows, k)
    assert not ranked.lay_ranked(Chance(8, 0, n_sides=2).forest(7), rows, k)  # ranking costs more than it saves
    monkeypatch.setattr(ranked, "MOST_PLACES", 2 * LANES * plain.n_features - 1)
    assert not ranked.lay_ranked(plain, rows, k)
    monkeypatch.undo()
    monkeypatch.setattr(ranked, "MOST_THRESHOLDS", 1)
    assert not ranked.lay_ranked(plain, rows, k)


def test_few_rows_do_not_pay_for_the_layout():
    forest = Chance(8, 0, n_sides=2).forest(9)
    k = _jit.load_compiled()
    n_rows = -(-predict.RANKED_ROWS * forest.n_nodes // len(forest))
    assert not predict.pays_ranks(forest, n_rows - 1, k)
    assert predict.pays_ranks(forest, n_rows, k) or k is _jit.interpreted()


def test_rows_of_another_width_are_refused():
    forest = Chance(8, 0, n_sides=2).forest(9)
    k = _jit.load_compiled()
    parts = forest.ranked(np.zeros((100, 5)), k)
    with pytest.raises(BrokenTreeError, match="the trees have 5 features, the rows 4"):
        predict.vote_by_ranks(parts, forest, np.zeros((100, 4)), 0, 100, np.zeros((100, 1)), k)
