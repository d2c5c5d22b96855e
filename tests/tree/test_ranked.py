"""Trees as steps for values that are ranks against a walk down each of them: the same additions, so the same bits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chance_forests import Chance
from spinney import (
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    _jit,
)
from spinney._types import ABREAST, HOLDS_NODES
from spinney.model import boosted_scores
from spinney.tree import predict, ranked
from spinney.tree.bitvectors import rank_thresholds
from spinney.tree.broken import BrokenTreeError
from spinney.tree.forest import join_trees
from spinney.tree.ranked import MOST_HELD, RankedRows


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
    monkeypatch.setattr(ranked, "MOST_PLACES", 4 * ABREAST)  # two columns and their copies, none for leaves
    assert not ranked.lay_ranked(plain, rows, k)
    monkeypatch.undo()
    monkeypatch.setattr(ranked, "MOST_THRESHOLDS", 1)
    assert not ranked.lay_ranked(plain, rows, k)


def walk_each(trees, values, n_classes):
    """The votes of trees that are walked one by one."""
    votes = np.zeros((len(values), max(n_classes, 1)))
    for tree in trees:
        predict.add_votes(join_trees([tree]), values, 0, len(values), votes)
    return votes


@pytest.mark.parametrize("most_held", [-1, 4, MOST_HELD])
@pytest.mark.parametrize("n_classes", [0, 1, 2, 5])
def test_leaves_that_steps_have_no_room_for_say_the_same(n_classes, most_held, monkeypatch):
    monkeypatch.setattr(ranked, "MOST_HELD", most_held)
    k = _jit.load_compiled()
    holds = set()
    for seed in range(20):
        chance = Chance(seed, n_classes, n_sides=2)
        trees = [chance.tree() for _ in range(9)]
        values = chance.rows(31, np.float64)
        forest, found = join_trees(trees), np.zeros((len(values), max(n_classes, 1)))
        parts = ranked.lay_ranked(forest, RankedRows(values.dtype, is_known=False), k)
        holds |= {part.trees.holds for part in parts}
        predict.vote_by_ranks(parts, forest, values, 0, len(values), found, k)
        assert found.tobytes() == walk_each(trees, values, n_classes).tobytes()
    assert (HOLDS_NODES in holds) == (most_held < MOST_HELD)


@pytest.mark.parametrize(("enough", "most"), [(0.0, 64), (0.5, 64), (1.0, 64), (1.0, 3), (1.0, 1 << 20)])
def test_it_does_not_matter_when_it_is_asked_who_has_arrived(enough, most, monkeypatch):
    """Nor how deep a tree is: one that is a chain of nodes is asked after each of its last steps."""
    monkeypatch.setattr(ranked, "ENOUGH", enough)
    monkeypatch.setattr(ranked, "MOST_BLIND", most)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.exp(np.arange(400) / 10)[np.argsort(np.argsort(X[:, 0]))]  # the highest value alone, then the next
    forest = RandomForestRegressor(n_estimators=9, random_state=0, max_features=1, n_jobs=1).fit(X, y).forest_
    k, new = _jit.load_compiled(), np.ascontiguousarray(rng.normal(size=(101, 3)))
    parts = ranked.lay_ranked(forest, RankedRows(new.dtype, is_known=True), k)
    found = np.zeros((len(new), 1))
    predict.vote_by_ranks(parts, forest, new, 0, len(new), found, k)
    assert found.tobytes() == walk_each([forest.take(t) for t in range(9)], new, 0).tobytes()


@pytest.mark.parametrize("is_compact", [False, True])
def test_enough_rows_have_arrived_after_the_steps_that_are_not_asked(is_compact):
    X, y = draw_table(700, 3, np.float64, 0.0)
    forest = RandomForestRegressor(n_estimators=10, random_state=0, min_samples_leaf=3, n_jobs=1).fit(X, y).forest_
    found = ranked.count_steps(ranked.TreeSpan(forest.compact() if is_compact else forest, 2, 9))
    for t, n_steps in zip(range(2, 9), found, strict=True):
        tree = forest.tree(t)
        depth, n_rows = tree.depths[tree.is_leaf], tree.n_rows[tree.is_leaf]
        n_rows = np.ones(len(depth)) if is_compact else n_rows
        assert n_rows[depth > n_steps].sum() <= (1 - ranked.ENOUGH) * n_rows.sum() < n_rows[depth >= n_steps].sum()


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


@pytest.mark.parametrize("objective", ["number", "class"])
def test_boosted_trees_of_many_leaves_add_the_same(objective, monkeypatch):
    """Only those of one score go by ranks, and all of them: the first rounds alone are walked."""
    X, y = draw_table(3000, 4, np.float32, 0.1)
    settings = {"n_estimators": 9, "max_leaf_nodes": 400, "min_samples_leaf": 2, "random_state": 0, "n_jobs": 1}
    if objective == "class":
        model = GradientBoostingClassifier(**settings).fit(X, np.digitize(y, [0, 1]))
    else:
        model = GradientBoostingRegressor(**settings).fit(X, y)
    assert not model.forest_.can_be_bits
    new = draw_table(5003, 6, np.float32, 0.1)[0]
    calls = []
    monkeypatch.setattr(
        boosted_scores, "vote_by_ranks", lambda *args: (calls.append(args), predict.vote_by_ranks(*args))
    )
    found = model.predict(new)
    if _jit.load_compiled() is not _jit.interpreted():
        assert len(calls) == (objective == "number")
    staged = list(model.staged_predict(new))[-1]
    monkeypatch.setattr(predict, "RANKED_ROWS", 1 << 60)
    np.testing.assert_array_equal(model.predict(new), found)
    np.testing.assert_array_equal(staged, found)


@pytest.mark.parametrize(("n_leaves", "by_steps"), [(100, False), (200, True)])
@pytest.mark.parametrize("forest", [GradientBoostingRegressor, RandomForestClassifier])
def test_trees_go_the_faster_way_and_both_add_the_same(forest, n_leaves, by_steps, monkeypatch):
    X, y = draw_table(3000, 4, np.float64, 0.1)
    y = np.digitize(y, [0, 1]) if forest is RandomForestClassifier else y
    is_boosted = forest is GradientBoostingRegressor
    shape = {"max_leaf_nodes": n_leaves} if is_boosted else {"min_samples_leaf": 7 if by_steps else 12}
    model = forest(n_estimators=20, random_state=0, n_jobs=1, **shape).fit(X, y)
    ask = model.predict_proba if forest is RandomForestClassifier else model.predict
    new = draw_table(3000, 6, np.float64, 0.1)[0]
    k = _jit.load_compiled()
    assert model.forest_.can_be_bits
    assert bool(predict.find_steps(model.forest_, new, len(new), k)) == (by_steps and k is not _jit.interpreted())
    found = ask(new)
    monkeypatch.setattr(predict, "STEP_LEAVES", 0 if not by_steps else 256)
    np.testing.assert_array_equal(ask(new), found)
