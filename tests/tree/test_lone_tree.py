"""A tree of its own lets go of memory that it need not have: the same tree as one that holds it."""

import numpy as np
import pytest

from spinney import CARTClassifier, CARTRegressor
from spinney.estimators import growers
from spinney.tree.grow import Growth
from spinney.tree.workspace import enlarge_nodes, make_nodes

N_ROWS = 3_000


def draw_table(missing):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N_ROWS, 5)).astype(np.float32)
    X[:, 1] = rng.integers(-3, 200, N_ROWS)  # counted, not sorted
    X[:, 2] = rng.choice(np.float32([-0.0, 0.1]), N_ROWS)
    X[rng.random(X.shape) < missing] = np.nan
    return X, np.nan_to_num(X[:, 0] * X[:, 3]) + 0.3 * rng.normal(size=N_ROWS), rng.integers(0, 4, N_ROWS).astype(float)


def same_trees(one, two):
    for name in ("test", "first_child", "threshold", "n_rows", "weight", "impurity", "distributions"):
        np.testing.assert_array_equal(getattr(one.tree_.arrays, name), getattr(two.tree_.arrays, name))


@pytest.mark.parametrize("missing", [0.0, 0.1])
@pytest.mark.parametrize(
    ("n_classes", "params"),
    [
        (2, {}),
        (5, {"max_bins": 30}),
        (2, {"max_leaf_nodes": 20, "max_bins": 50}),
        (0, {"max_bins": 30}),
        (0, {"max_depth": 5, "monotonic_cst": [1, 0, 0, 0, 0]}),
    ],
)
def test_edges_of_half_the_length_give_the_same_tree(monkeypatch, missing, n_classes, params):
    X, y, weight = draw_table(missing)
    kind = CARTClassifier if n_classes else CARTRegressor
    target = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes)) if n_classes else y
    calls, place = [], Growth.place_thresholds

    def count_calls(growth, edges):
        calls.append(edges.dtype)
        place(growth, edges)

    for weights in (None, weight):
        held = kind(**params).fit(X, target, weights)
        with monkeypatch.context() as patch:
            patch.setattr(growers, "LEAST_SHORT", 0)
            patch.setattr(Growth, "place_thresholds", count_calls)
            let_go = kind(**params).fit(X, target, weights)
        same_trees(let_go, held)
        same_trees(let_go, kind(**params).fit(X.astype(np.float64), target, weights))
    assert calls == [np.float32] * 2


@pytest.mark.parametrize("n_classes", [1, 2, 256, 257, 300])
def test_classes_in_few_bytes_give_the_same_tree(n_classes):
    X, y, weight = draw_table(0.0)
    ranks = np.argsort(np.argsort(y)) * n_classes // N_ROWS
    for weights in (None, weight):
        narrow = CARTClassifier(max_depth=4).fit(X, ranks, weights)
        same_trees(narrow, CARTClassifier(max_depth=4).fit(X, ranks, weights, trace=True))  # a trace reads y again


def test_nodes_without_bounds_have_no_room_for_them():
    nodes = enlarge_nodes(make_nodes(7, 1, has_bounds=False), 20, 3)
    assert [len(x) for x in nodes] == [20] * 6 + [1, 1, 3]
    assert [len(x) for x in enlarge_nodes(make_nodes(7, 1), 20, 3)] == [20] * 8 + [3]
