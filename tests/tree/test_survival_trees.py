"""Trees of times until an event against the naive ones, and what must not change them."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fast
import naive_survival
from spinney import _jit
from spinney._types import SUBSET
from spinney.table.coding import code_table
from spinney.table.fixed_point import fix_weights, time_target
from spinney.tree.grow import grow_tree
from spinney.tree.grow_params import GrowParams
from spinney.tree.times import choose_times

CLOSE = 1e-9


@st.composite
def survival_tables(draw):
    """Columns, signed times, whole weights and which columns are categories."""
    n_rows = draw(st.integers(2, 24))
    columns, is_categorical = [], []
    for _ in range(draw(st.integers(1, 3))):
        is_category = draw(st.booleans())
        cells = st.integers(0, draw(st.sampled_from([1, 3, 8]))).map(float)
        cells = st.one_of(cells, st.just(math.nan)) if draw(st.booleans()) else cells
        columns.append(draw(st.lists(cells, min_size=n_rows, max_size=n_rows)))
        is_categorical.append(is_category)
    times = st.sampled_from([0.5, 1.0, 1.5, 2.0, 3.0, 4.5, 7.0]).flatmap(lambda t: st.sampled_from([t, t, -t]))
    y = draw(st.lists(times, min_size=n_rows, max_size=n_rows))
    weights = draw(st.one_of(st.none(), st.lists(st.integers(0, 3), min_size=n_rows, max_size=n_rows)))
    held = [1] * n_rows if weights is None else weights
    assume(any(t > 0 and weight > 0 for t, weight in zip(y, held, strict=True)))
    return columns, y, weights, is_categorical


def grow(columns, y, weights, is_categorical, most_times=64, kernels=None, **parameters):
    """Grow a tree of a table as the estimator would; the tree, and the times that are told apart."""
    kernels = kernels or fast.compiled()
    present = [sorted({v for v in column if not math.isnan(v)}) for column in columns]
    levels = [
        tuple(range(int(max(v, default=0)) + 1)) if c else None for v, c in zip(present, is_categorical, strict=True)
    ]
    table = fast.ColumnTable(columns, levels)
    y = np.asarray(y, np.float64)
    keep = None if weights is None else np.asarray(weights) > 0
    held = None if keep is None else np.asarray(weights, np.float64)[keep]
    y = y if keep is None else y[keep]
    grid = choose_times(y, most_times)
    fixed = fix_weights(held, len(y))
    codes = code_table(table, fixed.values, 65_535, kernels, keep)
    params = GrowParams("squared_error", **parameters)
    return grow_tree(codes, time_target(y, grid, fixed), fixed, params, kernels), grid


def assert_same(tree, node, at=0):
    """Equal tests and rows; hazards to nine digits."""
    assert tree.n_rows[at] == len(node.rows)
    np.testing.assert_allclose(tree.answers[at], [float(h) for h in node.hazard], rtol=CLOSE, atol=CLOSE)
    assert bool(tree.is_leaf[at]) == (not node.children)
    if not node.children:
        return
    assert tree.feature[at] == node.feature
    if tree.kind[at] == SUBSET:
        assert node.subset is not None
        present = frozenset(np.flatnonzero(tree.subset(at)).tolist())
        assert node.subset <= present
    else:
        assert tree.threshold[at] == node.threshold
    for branch, child in enumerate(node.children):
        assert_same(tree, child, int(tree.first_child[at]) + branch)


@settings(max_examples=150)
@given(survival_tables(), st.integers(1, 3), st.sampled_from([None, 2]))
def test_grows_what_the_naive_one_grows(case, min_samples_leaf, max_depth):
    columns, y, weights, is_categorical = case
    limits = {"min_samples_leaf": min_samples_leaf, "max_depth": max_depth}
    tree, grid = grow(columns, y, weights, is_categorical, **limits)
    tree.check()
    whole = [1] * len(y) if weights is None else weights
    expected = naive_survival.grow(columns, y, whole, grid.tolist(), is_categorical=is_categorical, **limits)
    assume(all(node.margin > CLOSE for node in naive_survival.walk(expected)))
    assert_same(tree, expected)


@settings(max_examples=50)
@given(survival_tables(), st.integers(0, 2**32), st.integers(2, 5))
def test_interpreted_in_any_order_and_copies_of_rows(case, seed, most_times):
    columns, y, weights, is_categorical = case
    weights = [1] * len(y) if weights is None else weights
    order = np.random.default_rng(seed).permutation(len(y))
    moved = [[column[i] for i in order] for column in columns], [y[i] for i in order], [weights[i] for i in order]
    copies = np.repeat(np.arange(len(y)), weights)
    copied = [[column[i] for i in copies] for column in columns], [y[i] for i in copies], None
    tree, _ = grow(columns, y, weights, is_categorical, most_times)
    others = [
        grow(columns, y, weights, is_categorical, most_times, _jit.interpreted()),
        grow(*moved, is_categorical, most_times),
        grow(*copied, is_categorical, most_times),
    ]
    for k, (other, _) in enumerate(others):
        for name in ("test", "threshold", "first_child", "answers", "weight", *(() if k == 2 else ("n_rows",))):
            np.testing.assert_array_equal(getattr(tree, name), getattr(other, name))


def test_times_that_are_told_apart():
    y = np.array([3.0, 1.0, -9.0, 2.0, 2.0, 5.0, 4.0])
    assert choose_times(y, 64).tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert choose_times(y, 2).tolist() == [3.0, 5.0]
    assert choose_times(y, 1).tolist() == [5.0]


def test_fractions_of_weights_weigh_as_their_multiples_where_no_events_tie():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(3, 60)), rng.exponential(size=60) * np.where(rng.random(60) < 0.7, 1.0, -1.0)
    one, _ = grow(X.tolist(), y, [0.5] * 60, [False] * 3, min_samples_leaf=5)
    two, _ = grow(X.tolist(), y, None, [False] * 3, min_samples_leaf=5)
    np.testing.assert_array_equal(one.test, two.test)
    np.testing.assert_allclose(one.answers, two.answers, rtol=1e-6)


@pytest.mark.parametrize("name", ["max_leaf_nodes", "max_features"])
def test_limits_of_other_trees_hold(name):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(4, 200)), rng.exponential(size=200)
    tree, _ = grow(X.tolist(), y, None, [False] * 4, **{name: 3}, min_samples_leaf=5)
    assert tree.n_leaves == 3 if name == "max_leaf_nodes" else tree.n_leaves > 10
    assert tree.n_rows[tree.is_leaf].min() >= 5
