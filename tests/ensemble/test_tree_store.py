"""The trees of a boosted model under way: what is kept, what is loaded, and what changes neither."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from spinney import GradientBoostingClassifier, GradientBoostingRegressor
from spinney.ensemble.tree_store import TreeStore


def draw(n_outputs: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 4))
    y = X[:, :n_outputs] + rng.normal(size=(300, n_outputs))
    return X, y if n_outputs > 1 else y[:, 0]


def check_alike(left: Any, right: Any) -> None:
    """Every array and number of two forests, but what their levels are called."""
    for field in fields(left):
        mine, other = getattr(left, field.name), getattr(right, field.name)
        if isinstance(mine, np.ndarray):
            assert mine.dtype == other.dtype, field.name
            np.testing.assert_array_equal(mine, other, field.name)
    assert len(left) == len(right)


@pytest.mark.parametrize("n_outputs", [1, 2], ids=["one output", "two outputs"])
def test_loaded_forest_comes_back(n_outputs: int) -> None:
    forest = GradientBoostingRegressor(n_estimators=7, max_leaf_nodes=9).fit(*draw(n_outputs)).forest_
    store = TreeStore(forest.n_levels, None)
    store.load(forest)
    check_alike(store.forest(0, 7), forest)
    check_alike(store.forest(0, 3), forest.head(3))


def test_values_of_kept_trees_change_nothing_that_was_loaded() -> None:
    """Dropout makes trees smaller where they stand; a checkpoint that was resumed must stay as it is on disk."""
    X, y = draw()
    forest = GradientBoostingClassifier(n_estimators=3, max_leaf_nodes=5).fit(X, y > 0).forest_
    hot = forest.hot.copy()
    store = TreeStore(forest.n_levels, None)
    store.load(forest)
    store.trees[1].values[:] *= 0.5
    np.testing.assert_array_equal(forest.hot, hot)
    first, last = forest.first_node[1:3]
    np.testing.assert_array_equal(
        store.forest(0, 3).hot.view(float)[first:last, 0], 0.5 * hot.view(float)[first:last, 0]
    )
