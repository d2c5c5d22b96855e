"""Pessimistic pruning: Quinlan's limits, collapsing, and raising on trees small enough to do by hand."""

import math

import numpy as np
import pytest

import fast
import j48
from spinney import _jit
from spinney.table.fixed_point import class_target, fix_weights
from spinney.tree.pessimistic import added_errors, collapse, prune_pessimistic, quinlan_limit
from spinney.tree.predict import predict_classes
from spinney.tree.textbook import TextbookParams, grow_textbook

# Quinlan, C4.5 (1993), section 4.2, congressional voting: U25%(E, N)
BOOK = {(0, 6): 0.206, (0, 9): 0.143, (0, 1): 0.750, (1, 16): 0.157}


def c45(columns, y, levels, weight=None, **params):
    """A C4.5 tree before collapsing; levels: per column, None for numbers."""
    table = fast.ColumnTable(columns, levels)
    weights = fix_weights(weight, len(y))
    kernels = _jit.load_compiled()
    codes = code(table, weights, kernels)
    target = class_target(np.array(y), max(y) + 1, weights)
    params = {"rule": "c45", "missing": "every", "min_samples_leaf": 2, **params}
    return grow_textbook(codes, target, weights, TextbookParams("entropy", **params), kernels)


def code(table, weights, kernels):
    from spinney.table.coding import code_table

    return code_table(table, weights.values, 65_535, kernels)


@pytest.mark.parametrize(("e", "n"), BOOK)
def test_quinlans_limit_is_that_of_his_book(e, n):
    assert round(quinlan_limit(n, e), 3) == BOOK[e, n]


@pytest.mark.parametrize("n", [6, 9, 1])
def test_without_errors_the_limit_pruned_by_is_that_of_the_book(n):
    assert round(added_errors(n, 0) / n, 3) == BOOK[0, n]
    assert added_errors(n, 0) == n * quinlan_limit(n, 0)


def test_with_errors_the_limit_pruned_by_is_j48s():
    # Weka computes the normal quantile that C4.5 interpolates from a table: 0.6745, not 0.6925
    limit = (1 + added_errors(16, 1)) / 16
    assert limit == pytest.approx(0.15473, abs=1e-5)
    assert abs(limit - BOOK[1, 16]) < 0.0025


def test_the_votes_of_the_book_are_pruned():
    # a subtree with leaves (6, 0), (9, 0), (1, 0) against a leaf (16, 1): 3.273 predicted errors against 2.512
    assert sum(n * round(quinlan_limit(n, 0), 3) for n in (6, 9, 1)) == pytest.approx(3.273, abs=1e-9)
    assert 16 * round(quinlan_limit(16, 1), 3) == pytest.approx(2.512, abs=1e-9)
    assert 1 + added_errors(16, 1) < sum(added_errors(n, 0) for n in (6, 9, 1))


def test_added_errors_between_none_and_one_lie_on_a_line():
    none, one = added_errors(10, 0), added_errors(10, 1)
    assert added_errors(10, 0.25) == pytest.approx(none + 0.25 * (one - none), rel=1e-14)


def test_added_errors_of_a_leaf_that_is_nearly_all_wrong():
    assert added_errors(10, 9.75) == 0.25
    assert added_errors(10, 10) == 0.0


@pytest.mark.parametrize("e", [0, 0.5, 1, 3])
def test_less_confidence_adds_more_errors_and_above_a_half_none(e):
    added = [added_errors(20, e, confidence) for confidence in (0.01, 0.1, 0.25, 0.5)]
    assert added == sorted(added, reverse=True)
    assert added_errors(20, e, 0.75) == 0.0


@pytest.mark.parametrize("confidence", [0.0, 1.0, -1.0, math.nan])
def test_a_confidence_that_is_none_is_named(confidence):
    with pytest.raises(ValueError, match="confidence"):
        added_errors(5, 1, confidence)


@pytest.mark.parametrize(("n", "e"), [(0, 0), (5, 6), (5, -1), (math.nan, 0)])
def test_errors_that_cannot_be_are_named(n, e):
    with pytest.raises(ValueError, match="errors among"):
        added_errors(n, e)
    with pytest.raises(ValueError, match="errors among"):
        quinlan_limit(n, e)


def test_collapse_cuts_what_saves_no_errors_and_nothing_else():
    # x0 parts the classes; x1 only lowers the entropy: both of its branches are mostly class 0
    x0 = [0] * 12 + [1] * 12
    x1 = [0] * 6 + [1] * 6 + [0] * 12
    y = [0] * 6 + [0, 0, 0, 0, 1, 1] + [1] * 12
    tree = c45([x0, x1], y, [None, (0, 1)])
    assert tree.n_leaves > 2
    cut = collapse(tree)
    cut.check()
    assert cut.n_leaves == 2
    assert collapse(cut) is cut


def test_pruning_without_raising_agrees_with_estimates_by_hand(shared_data):
    rows = j48.read(*j48.load(shared_data, "vehicle"))
    whole = j48.grow_c45(rows)[0]
    pruned = prune_pessimistic(whole, 0.25)
    pruned.check()
    weights = whole.class_weights()
    estimate = {}
    for node in reversed(range(whole.n_nodes)):
        n = weights[node].sum()
        e = n - weights[node].max()
        leaf = e + added_errors(n, e) if n else 0.0
        first, n_branches = whole.first_child[node], whole.n_branches[node]
        below = sum(estimate[child] for child in range(first, first + n_branches)) if n_branches else leaf
        estimate[node] = leaf if leaf <= below + 0.1 else below
    total = 0.0
    for node in np.flatnonzero(pruned.is_leaf):
        n = pruned.class_weights()[node]
        total += n.sum() - n.max() + added_errors(n.sum(), n.sum() - n.max())
    assert total == pytest.approx(estimate[0], rel=1e-9)
    assert pruned.n_nodes < whole.n_nodes


def test_a_binary_tree_of_cart_is_pruned_and_raised():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 4))
    X[rng.random(X.shape) < 0.1] = np.nan
    colour = rng.integers(0, 5, 300)
    y = ((X[:, 0] > 0) ^ (rng.random(300) < 0.25)).astype(int) + (colour == 2)
    columns = [*X.T, colour]
    tree = fast.grow(
        columns, y, criterion="gini", n_classes=3, is_categorical=[False] * 4 + [True], n_levels=[0] * 4 + [5]
    )
    values = np.column_stack(columns)
    plain = prune_pessimistic(tree)
    raised = prune_pessimistic(tree, values=values, truth=y, raising=True)
    for pruned in (plain, raised):
        pruned.check()
        assert pruned.n_leaves < tree.n_leaves
    assert raised.n_leaves <= plain.n_leaves
    # what the nodes hold is what the rows make of them
    leaf = predict_classes(raised, values)
    error = np.mean(leaf != y)
    held = raised.class_weights()
    wrong = held[raised.is_leaf].sum() - held[raised.is_leaf].max(axis=1).sum()
    assert wrong / len(y) == pytest.approx(error)


def raised_by_hand():
    """A test on x0 whose heavy branch asks x1 better than x0 does: J48 puts the test on x1 in its place."""
    x0 = [0] * 4 + [1] * 40
    x1 = [0, 1, 0, 1] + [0] * 20 + [1] * 20
    y = [0, 1, 1, 1] + [0] * 20 + [1] * 20
    return x0, x1, y


def test_raising_keeps_the_tests_of_the_branch_and_moves_the_rows():
    from spinney._node_layout import pack_test
    from spinney._types import EVERY_BRANCH, THRESHOLD
    from spinney.tree.structure import Tree

    x0, x1, y = raised_by_hand()
    words = [pack_test(feature, EVERY_BRANCH, THRESHOLD) for feature in range(2)]
    held = np.array([[21, 23], [1, 3], [20, 20], [20, 0], [0, 20]], np.float64)
    share = held / held.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.nansum(share * np.log2(share), axis=1)
    tree = Tree(
        test=np.array([words[0], 0, words[1], 0, 0], np.uint32),
        first_child=np.array([1, 0, 3, 0, 0], np.int32),
        threshold=np.array([0.0, -1.0, 0.0, 0.0, 1.0]),
        subsets=np.zeros(0, np.uint64),
        n_rows=held.sum(axis=1).astype(np.uint32),
        weight=held.sum(axis=1),
        impurity=entropy,
        impurity_exponent=0,
        distributions=held[1:2].copy(),
        n_classes=2,
        n_levels=np.zeros(2, np.int32),
    )
    tree.check()
    values = np.column_stack([x0, x1]).astype(float)
    pruned = prune_pessimistic(tree, values=values, truth=np.array(y), raising=True)
    pruned.check()
    assert pruned.feature.tolist() == [1, -1, -1]
    assert pruned.class_weights().tolist() == [[21, 23], [21, 1], [0, 22]]
    assert prune_pessimistic(tree).n_leaves == 3  # without raising nothing is better


def test_raising_shares_out_missing_values_anew():
    x0, x1, y = raised_by_hand()
    x1 = [*x1[:-1], math.nan]
    tree = c45([x0, x1], y, [(0, 1), None], min_samples_leaf=1)
    values = np.column_stack([x0, x1]).astype(float)
    pruned = prune_pessimistic(collapse(tree), values=values, truth=np.array(y), raising=True)
    pruned.check()
    assert pruned.weight[0] == 44.0
    assert pruned.weight[pruned.is_leaf].sum() == pytest.approx(44.0)


def test_rows_of_weight_two_are_two_rows_when_raised(shared_data):
    X, y = j48.load(shared_data, "soybean")
    rows = j48.read(X, y)
    half = rows.truth % 2 == 0
    times = np.where(half, 2.0, 1.0)
    order = np.repeat(np.arange(len(y)), times.astype(int))
    kernels = _jit.load_compiled()
    params = TextbookParams("entropy", rule="c45", missing="every", min_samples_leaf=2)
    trees = []
    for keep, weight in ((np.arange(len(y)), times), (order, None)):
        weights = fix_weights(weight, len(keep))
        codes = rows.codes._replace(rows=np.ascontiguousarray(rows.codes.rows[keep]))
        target = class_target(rows.truth[keep], len(rows.classes), weights)
        tree = collapse(grow_textbook(codes, target, weights, params, kernels))
        trees.append(
            prune_pessimistic(tree, values=rows.values[keep], truth=rows.truth[keep], weight=weight, raising=True)
        )
    a, b = trees
    for name in ("test", "first_child", "threshold", "weight", "impurity", "distributions"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)


def test_raising_needs_the_rows():
    tree = c45([[0, 0, 1, 1]], [0, 0, 1, 1], [(0, 1)])
    with pytest.raises(ValueError, match="give values and truth"):
        prune_pessimistic(tree, raising=True)
    with pytest.raises(ValueError, match="expected"):
        prune_pessimistic(tree, values=np.zeros((4, 2)), truth=np.zeros(4, int), raising=True)
    with pytest.raises(ValueError, match="row 3: truth"):
        prune_pessimistic(tree, values=np.zeros((4, 1)), truth=np.array([0, 0, 1, 2]), raising=True)
    with pytest.raises(ValueError, match="3 rows"):
        prune_pessimistic(tree, values=np.zeros((3, 1)), truth=np.zeros(4, int), raising=True)


def test_numbers_have_no_errors_to_count():
    tree = fast.grow([[0.0, 1.0, 2.0]], [0.0, 1.0, 3.0], criterion="squared_error")
    for prune in (collapse, prune_pessimistic):
        with pytest.raises(ValueError, match="classes"):
            prune(tree)


def test_interpreted_kernels_prune_alike(shared_data, monkeypatch):
    rows = j48.read(*j48.load(shared_data, "glass"))
    whole, pruned = j48.grow_c45(rows)
    monkeypatch.setattr("spinney.tree.pessimistic.kernels", lambda _: _jit.interpreted())
    again = prune_pessimistic(whole, values=rows.values, truth=rows.truth, raising=True)
    np.testing.assert_array_equal(again.test, pruned.test)
    np.testing.assert_array_equal(again.weight, pruned.weight)


@pytest.mark.parametrize("confidence", [5e-324, 1e-300, 1e-17])
def test_the_smallest_confidence_has_a_limit(confidence):
    """1 - confidence is 1 in float64, whose quantile is infinite."""
    assert 0.0 < added_errors(100.0, 5.0, confidence) <= 95.0
