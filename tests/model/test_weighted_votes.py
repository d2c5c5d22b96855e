"""Weighted votes and medians against loops over the members."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney import CARTClassifier, CARTRegressor
from spinney.model import weighted_votes
from spinney.model.weighted_votes import ClassVotes, MedianVotes, find_medians, forest_medians, leaf_classes, sum_forest
from spinney.tree.forest import join_trees


def plain_median(said, weights):
    """The smallest number such that those who say it or less have half of the weight (Drucker 1997)."""
    half = sum(weights) / 2
    return min(s for s in said if sum(w for t, w in zip(said, weights, strict=True) if t <= s) >= half)


@given(
    st.lists(
        st.tuples(st.integers(-3, 3).map(float), st.sampled_from([0.0, 0.25, 0.5, 1.0, 2.0])), min_size=1, max_size=20
    )
)
def test_medians(members):
    said, weights = map(list, zip(*members, strict=True))
    votes = MedianVotes(2)
    for t, (value, weight) in enumerate(members, 1):
        votes.add(np.array([value, -value]), weight)
        expected = [plain_median(said[:t], weights[:t]), plain_median([-s for s in said[:t]], weights[:t])]
        assert votes.medians().tolist() == expected
        stacked = np.array([said[:t], [-s for s in said[:t]]])
        assert find_medians(stacked, np.array(weights[:t])).tolist() == expected


def grow(kind, X, y, n_trees=23, **settings):
    generator = np.random.default_rng(1)
    return [kind(max_depth=3, **settings).fit(X, y, generator.random(len(y)) ** 3) for _ in range(n_trees)]


@pytest.fixture
def table():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(300, 4))
    X[generator.random(X.shape) < 0.1] = np.nan
    return X, np.nan_to_num(X[:, 0]) + generator.normal(scale=0.5, size=300)


@pytest.mark.parametrize("n_classes", [1, 2, 3, 7])
@pytest.mark.parametrize("block_cells", [1 << 20, 50])
def test_a_forest_votes_as_its_trees_do(table, n_classes, block_cells, monkeypatch):
    monkeypatch.setattr(weighted_votes, "BLOCK_CELLS", block_cells)
    X, target = table
    y = np.digitize(target, np.quantile(target, np.arange(1, n_classes) / n_classes))
    trees = grow(CARTClassifier, X, y)
    forest = join_trees(tree.tree_.arrays for tree in trees)
    weights = np.random.default_rng(2).normal(size=len(trees)) if n_classes == 2 else np.linspace(0.1, 2.0, len(trees))
    expected = ClassVotes(len(X), n_classes)
    for tree, weight in zip(trees, weights.tolist(), strict=True):
        expected.add(tree.predict(X), weight)
    found = sum_forest(forest, weights, X)
    np.testing.assert_array_equal(found.votes, expected.votes)  # the same sums in the same order
    assert found.total == expected.total
    for t, tree in enumerate(trees):
        nodes = slice(forest.first_node[t], forest.first_node[t + 1])
        leaves = tree.tree_.is_leaf
        np.testing.assert_array_equal(leaf_classes(forest)[nodes][leaves], tree.tree_.leaf_class[leaves])


def test_votes_of_three_classes_are_counted_and_of_two_are_signed():
    votes = ClassVotes(2, 3)
    votes.add(np.array([0, 2]), 0.5)
    votes.add(np.array([0, 1]), 2.0)
    assert votes.votes.tolist() == [[2.5, 0.0, 0.0], [0.0, 2.0, 0.5]]
    assert votes.total == 2.5
    votes = ClassVotes(2, 2)
    votes.add(np.array([0, 1]), -0.5)
    votes.add(np.array([0, 1]), 2.0)
    assert votes.votes.tolist() == [[-1.5], [1.5]]
    assert votes.total == 2.5


@pytest.mark.parametrize("block_cells", [1 << 20, 50])
def test_the_median_of_a_forest(table, block_cells, monkeypatch):
    monkeypatch.setattr(weighted_votes, "BLOCK_CELLS", block_cells)
    X, y = table
    trees = grow(CARTRegressor, X, y)
    weights = np.linspace(0.1, 2.0, len(trees))
    said = np.stack([tree.predict(X) for tree in trees], axis=1)
    found = forest_medians(join_trees(tree.tree_.arrays for tree in trees), weights, X)
    assert found.tolist() == [plain_median(row, weights.tolist()) for row in said.tolist()]
