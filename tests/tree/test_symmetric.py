"""Symmetric trees against a walk down each of them: the same additions, so the same bits."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chance_forests import NUMBERS, Chance
from hand_trees import packed
from plain_boosting import plain
from spinney import GradientBoostingRegressor, _jit
from spinney._types import SYMMETRIC_ROWS, THRESHOLD
from spinney.tree import predict, symmetric
from spinney.tree.forest import join_trees
from spinney.tree.structure import Tree


class SymmetricChance(Chance):
    """Trees by chance that ask the same at all nodes of a depth; each has its nodes in an order of its own."""

    def tree(self):
        depth = self.random.randint(0, self.max_depth)
        asked = [
            (self.random.choice((0, 1)), self.random.randrange(2), self.random.choice([*NUMBERS, self.value(0)]))
            for _ in range(depth)
        ]
        nodes = [None]
        queue = [(0, 0)]
        while queue:
            at, level = queue.pop(self.random.randrange(len(queue)))
            if level == depth:
                nodes[at] = (0, 0, self.leaf([]))
                continue
            feature, missing, cut = asked[level]
            nodes[at] = (packed(feature, missing, THRESHOLD), len(nodes), cut)
            queue += [(len(nodes), level + 1), (len(nodes) + 1, level + 1)]
            nodes += [None, None]
        test, child, threshold = zip(*nodes, strict=True)
        nothing = np.zeros(len(nodes))
        return replace(
            super().tree(),
            test=np.array(test, np.uint32),
            first_child=np.array(child, np.int32),
            threshold=np.array(threshold, np.float64),
            n_rows=nothing.astype(np.uint32),
            weight=nothing,
            impurity=nothing,
        )


@pytest.fixture(autouse=True)
def _compiled():
    _jit.load_compiled()


def walk(forest, values, lo, hi, n_raw):
    """Sums of the trees, each of them walked."""
    sums = np.zeros((n_raw, len(values)))
    for t, tree in enumerate(forest):
        predict.add_votes(join_trees([tree]), values, lo, hi, sums[t % n_raw].reshape(-1, 1))
    return sums


@pytest.mark.parametrize("k", ["compiled", "interpreted"])
@given(
    st.integers(0, 2**32 - 1),
    st.integers(1, 20),
    st.integers(1, 3),
    st.sampled_from([3, 10]),
    st.sampled_from([np.float32, np.float64]),
)
def test_sums_have_the_bits_of_a_walk(k, seed, n_rounds, n_raw, max_depth, dtype):
    chance = SymmetricChance(seed, 0, max_depth=max_depth)
    forest = join_trees(chance.tree() for _ in range(n_rounds * n_raw))
    assert forest.symmetric_nodes is not None
    values = chance.rows(70, dtype)
    found = np.zeros((n_raw, 70))
    kernels = _jit.load_compiled() if k == "compiled" else _jit.interpreted()
    predict.score_at_once(forest, range(len(forest)), values, 3, 69, found, kernels, n_raw=n_raw)
    assert found.tobytes() == walk(forest, values, 3, 69, n_raw).tobytes()


@pytest.mark.parametrize("k", ["compiled", "interpreted"])
@given(st.integers(0, 2**32 - 1), st.integers(1, 20), st.integers(2, 5), st.booleans())
def test_trees_of_a_round_that_ask_the_same_are_asked_once(k, seed, n_rounds, n_raw, is_one_other):
    chance = SymmetricChance(seed, 0, max_depth=4)
    trees = []
    for _ in range(n_rounds):
        tree = chance.tree()
        said = [np.array([chance.leaf([]) for _ in range(tree.n_nodes)]) for _ in range(n_raw)]
        trees += [replace(tree, threshold=np.where(tree.is_leaf, values, tree.threshold)) for values in said]
    if is_one_other:
        trees[-1] = chance.tree()
    forest = join_trees(trees)
    kernels = _jit.load_compiled() if k == "compiled" else _jit.interpreted()
    laid = forest.symmetric(forest.symmetric_nodes, np.dtype(float), kernels, n_raw=n_raw)
    same = (
        [
            np.array_equal(getattr(trees[-1], part)[~trees[-1].is_leaf], getattr(trees[-2], part)[~trees[-2].is_leaf])
            for part in ("test", "threshold")
        ]
        if trees[-1].n_nodes == trees[-2].n_nodes
        else [False]
    )
    if not is_one_other:
        assert laid.trees.is_shared
    elif not all(same):
        assert not laid.trees.is_shared
    values = chance.rows(70, np.float64)
    found = np.zeros((n_raw, 70))
    predict.score_at_once(forest, range(len(forest)), values, 0, 70, found, kernels, n_raw=n_raw)
    assert found.tobytes() == walk(forest, values, 0, 70, n_raw).tobytes()


@pytest.mark.parametrize("share_missing", [0.0, 0.1])
def test_more_rows_than_a_block_and_trees_from_the_middle(share_missing):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2 * SYMMETRIC_ROWS + 77, 3))
    X[rng.random(X.shape) < share_missing] = np.nan
    y = np.sin(5 * np.nan_to_num(X[:, 0])) + rng.normal(size=len(X))
    model = GradientBoostingRegressor(**plain(n_estimators=600, max_depth=1, n_jobs=1, max_bins=None)).fit(X, y)
    forest = model.forest_
    assert forest.symmetric_nodes is not None
    sums = np.zeros((1, len(X)))
    predict.score_at_once(forest, range(3, 600), X, 0, len(X), sums, _jit.load_compiled(), n_raw=1)
    expected = np.zeros((1, len(X)))
    for t in range(3, 600):
        predict.add_votes(join_trees([forest[t]]), X, 0, len(X), expected.reshape(-1, 1))
    np.testing.assert_array_equal(sums, expected)


def test_few_thresholds_take_a_byte_and_254_of_them_do():
    tree = SymmetricChance(5, 0, max_depth=1)
    while (stump := tree.tree()).n_nodes != 3:
        pass
    for n, dtype in ((254, np.uint8), (255, np.uint16)):
        cuts = [replace(stump, threshold=np.where(stump.is_leaf, stump.threshold, i)) for i in range(n)]
        forest = join_trees(cuts)
        laid = forest.symmetric(forest.symmetric_nodes, np.dtype(float), _jit.load_compiled(), n_raw=1)
        assert laid.trees.rank.dtype == dtype
        values = np.full((64, forest.n_features), np.nan)
        values[:60] = np.linspace(-1.0, n, 60)[:, None]
        found = np.zeros((1, 64))
        predict.score_at_once(forest, range(n), values, 0, 64, found, _jit.load_compiled(), n_raw=1)
        np.testing.assert_array_equal(found, walk(forest, values, 0, 64, 1))


@pytest.mark.parametrize("part", ["test", "threshold"])
def test_one_other_question_makes_a_tree_unsymmetric(part):
    chance = SymmetricChance(7, 0, max_depth=4)
    while (tree := chance.tree()).depth < 2:
        pass
    assert join_trees([tree]).symmetric_nodes is not None
    changed = getattr(tree, part).copy()
    last = np.flatnonzero(~tree.is_leaf)[-1]
    changed[last] = packed(2, 0, THRESHOLD) if part == "test" else changed[last] / 3.0 - 7.0
    assert join_trees([tree, replace(tree, **{part: changed})]).symmetric_nodes is None


def test_what_is_not_read_as_symmetric(monkeypatch):
    assert Chance(1, 3, max_depth=0).forest(2).symmetric_nodes is None  # classes
    assert Chance(1, 0).forest(9).symmetric_nodes is None
    deep = SymmetricChance(11, 0, max_depth=4)
    forest = join_trees(deep.tree() for _ in range(9))
    monkeypatch.setattr(symmetric, "MOST_DEPTH", 2)
    assert symmetric.read_symmetric(forest) is None


def test_a_model_of_stumps_predicts_as_it_did_by_walking(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    model = GradientBoostingRegressor(**plain(n_estimators=30, max_depth=1, n_jobs=1)).fit(X, X[:, 0] ** 2)
    assert isinstance(model.forest_[0], Tree)
    found = model.predict(X)
    monkeypatch.setattr(predict, "FEWEST_ROWS", 1 << 60)
    np.testing.assert_array_equal(model.predict(X), found)
