"""Surrogates: the grower against the naive one, prediction through them, and what a broken one is told."""

import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fast
import hand_trees
import naive
import strategies
from spinney import _jit
from spinney._types import SUBSET, THRESHOLD
from spinney.estimators.bagging import BaggingClassifier
from spinney.estimators.cart import CARTClassifier, CARTRegressor
from spinney.estimators.trace import trace
from spinney.tree.broken import BrokenTreeError
from spinney.tree.predict import find_leaves
from spinney.tree.subtree import cut_nodes
from spinney.tree.surrogates import Surrogates, surrogate_importances

# Small tables go to the interpreted kernels: each family of targets has a compiled driver of its own for surrogates.
TWIN = _jit.interpreted()


def grow_both(table, parameters):
    """The tree of the grower and that of the oracle, where the latter is certain."""
    assume(parameters.get("criterion") != "sdr")
    expected = naive.grow(table.columns, table.y, table.weights, **table.data, **parameters)
    assume(naive.is_certain(expected))
    return fast.grow_table(table, kernels=TWIN, **parameters), expected


# ----------------------------------------------------------------------------------------- against the oracle


@settings(max_examples=200)
@given(strategies.judged_by_known_rows())
def test_grows_what_the_oracle_grows(case):
    tree, expected = grow_both(*case)
    tree.check()
    fast.assert_same_tree(fast.as_nodes(tree), expected, has_bounds="monotonic" in case[1])


@settings(max_examples=100)
@given(strategies.judged_by_known_rows())
def test_improves_by_what_the_oracle_gains_over_known_rows(case):
    tree, expected = grow_both(*case)
    improve = np.ldexp(tree.surrogates.improve, tree.impurity_exponent)
    in_order = [improve[k] for k in walk_order(tree)]
    scale = max(expected.impurity, 1e-300)
    np.testing.assert_allclose(in_order, [node.gain for node in naive.walk(expected)], rtol=1e-9, atol=1e-9 * scale)


def walk_order(tree, node=0):
    yield node
    for branch in range(int(tree.n_branches[node])):
        yield from walk_order(tree, int(tree.first_child[node]) + branch)


@settings(max_examples=100)
@given(st.data())
def test_rows_go_where_the_oracle_sends_them(data):
    table, parameters = data.draw(strategies.judged_by_known_rows())
    tree, expected = grow_both(table, parameters)
    assume("monotonic" not in parameters)
    rows = np.array([*table.rows, *data.draw(strategies.query_rows(table))]).reshape(-1, table.n_features)
    values = tree.values()[find_leaves(tree, rows)]
    scale = max(map(abs, table.y)) if table.n_classes is None else 1.0
    told = [naive.predict(expected, row) for row in rows.tolist()]
    np.testing.assert_allclose(values, told, rtol=1e-9, atol=1e-9 * scale)


@settings(max_examples=100)
@given(strategies.judged_by_known_rows(), st.randoms(use_true_random=False))
def test_training_rows_end_where_they_were_counted_in_any_order(case, random):
    table, parameters = case
    assume(table.weights is None)
    tree = fast.grow_table(table, kernels=TWIN, **parameters)
    leaf = find_leaves(tree, np.array(table.columns).T.copy())
    counts = np.bincount(leaf, minlength=tree.n_nodes)
    np.testing.assert_array_equal(counts[tree.is_leaf], tree.n_rows[tree.is_leaf])
    order = list(range(table.n_rows))
    random.shuffle(order)
    columns = [[column[i] for i in order] for column in table.columns]
    shuffled = replace(table, columns=columns, y=[table.y[i] for i in order])
    again = fast.grow_table(shuffled, kernels=TWIN, **parameters)
    assert fast.arrays_of(again) == fast.arrays_of(tree)


@given(strategies.judged_by_known_rows(has_missing=False))
def test_a_table_without_missing_values_grows_the_usual_tree(case):
    table, parameters = case
    tree = fast.grow_table(table, kernels=TWIN, **parameters)
    usual = fast.grow_table(table, kernels=TWIN, **{**parameters, "missing": "learned"})
    found, expected = fast.arrays_of(tree), fast.arrays_of(usual)
    for name in ("surrogates", "subsets", "threshold"):  # bitsets lie elsewhere
        del found[name], expected[name]
    assert found == expected


def surrogate_table(n_rows, n_classes):
    """Features that tell much of each other, a fifth of their values missing."""
    rng = np.random.default_rng(7)
    hidden = rng.normal(size=n_rows)
    columns = [hidden + 0.3 * rng.normal(size=n_rows) for _ in range(3)]
    columns.append(np.digitize(hidden + 0.3 * rng.normal(size=n_rows), np.linspace(-2, 2, 11)).astype(float))
    y = hidden + 0.2 * rng.normal(size=n_rows)
    if n_classes is not None:
        y = np.digitize(y, np.quantile(y, np.arange(1, n_classes) / n_classes))
    for column in columns:
        column[rng.random(n_rows) < 0.2] = math.nan
    columns = [column.tolist() for column in columns]
    return strategies.SmallTable(columns, y.tolist(), None, n_classes, [False] * 3 + [True], [0] * 3 + [12])


@pytest.mark.slow
@pytest.mark.parametrize(("n_classes", "criterion"), [(None, "squared_error"), (2, "gini"), (4, "entropy")])
def test_compiled_kernels_grow_the_same_bits(n_classes, criterion):
    table = surrogate_table(400, n_classes)
    compiled = fast.grow_table(table, criterion=criterion, missing="surrogate")
    compiled.check()
    assert len(compiled.surrogates) > 0
    interpreted = fast.grow_table(table, criterion=criterion, missing="surrogate", kernels=TWIN)
    assert fast.arrays_of(interpreted) == fast.arrays_of(compiled)


# --------------------------------------------------------------------------------------------------- the rules


def test_a_surrogate_needs_two_rows_on_either_side_and_must_beat_the_heavier_branch():
    """x0 parts four rows from four; x1 tells one row of each side apart, x2 two, x3 agrees reversed in seven rows."""
    x0 = [0, 0, 0, 0, 1, 1, 1, 1]
    x1 = [0, 1, 1, 1, 1, 1, 1, 1]
    x2 = [0, 0, 1, 1, 1, 1, 1, 1]
    x3 = [1, 1, 1, 1, 0, 0, 0, 1]
    y = x0
    tree = fast.grow([x0, x1, x2, x3], y, n_classes=2, criterion="gini", missing="surrogate", kernels=TWIN)
    found = fast.surrogates_of(tree, 0)
    assert [(s.feature, s.threshold, s.is_reversed) for s in found] == [(3, 0.5, True), (2, 0.5, False)]
    assert [s.agree for s in found] == [7 / 8, 6 / 8]
    assert [s.adjusted for s in found] == [3 / 4, 2 / 4]


def test_rows_ask_surrogates_in_turn_and_take_the_heavier_branch_at_last():
    x0 = [0, 0, 0, 0, 0, 1, 1, 1]
    x1 = [0, 0, 0, 0, 0, 1, 1, 1]
    x2 = [1, 1, 1, 1, 0, 0, 0, 0]
    X, y = np.array([x0, x1, x2], float).T, x0
    model = CARTClassifier(missing="surrogate").fit(X, y)
    nan = math.nan
    rows = [[nan, 1, 1], [nan, nan, 0], [nan, nan, 1], [nan, nan, nan]]
    assert model.predict(rows).tolist() == [1, 1, 0, 0]
    assert CARTClassifier(missing="surrogate", max_surrogates=1).fit(X, y).predict(rows).tolist() == [1, 0, 0, 0]
    assert CARTClassifier(missing="surrogate", max_surrogates=0).fit(X, y).predict(rows).tolist() == [0, 0, 0, 0]


def test_a_surrogate_says_nothing_of_levels_that_no_known_row_has():
    """Level 2 occurs only where x0 is missing: those rows ask the next surrogate."""
    nan = math.nan
    x0 = [0, 0, 0, 1, 1, 1, 1, nan, nan]
    x1 = [0, 0, 0, 1, 1, 1, 1, 2, 2]
    x2 = [0, 0, 1, 1, 1, 1, 1, 0, 1]
    y = [0, 0, 0, 1, 1, 1, 1, 0, 1]
    tree = fast.grow(
        [x0, x1, x2], y, n_classes=2, is_categorical=[False, True, False], n_levels=[0, 3, 0], criterion="gini",
        missing="surrogate", max_depth=1, kernels=TWIN,
    )  # fmt: skip
    assert tree.feature[0] == 0
    first, second = fast.surrogates_of(tree, 0)
    assert (first.feature, first.subset, first.known) == (1, {0}, {0, 1})
    assert second.feature == 2
    assert tree.n_rows.tolist() == [9, 4, 5]
    assert find_leaves(tree, np.array([[nan, 2.0, 0.0], [nan, 2.0, 1.0], [nan, 0.0, 1.0]])).tolist() == [1, 2, 1]


def test_a_constrained_feature_does_not_stand_in():
    x0 = [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    tree = fast.grow(
        [x0, x0, x0], [0, 0, 0, 1, 1, 1], criterion="squared_error", missing="surrogate", monotonic=[0, 1, 0],
        kernels=TWIN,
    )  # fmt: skip
    assert tree.surrogates.feature.tolist() == [2]


# ------------------------------------------------------------------------------------------- trees that have them


def broken(tree, **fields):
    return replace(tree, surrogates=replace(tree.surrogates, **fields))


def test_a_broken_surrogate_is_told():
    tree = fast.grow_table(surrogate_table(60, 2), criterion="gini", missing="surrogate", max_depth=3, kernels=TWIN)
    tree.check()
    held = tree.surrogates
    subset = int(np.argmax(held.kind == SUBSET))
    leaf = int(np.argmax(tree.is_leaf))

    def changed(x, at, value):
        x = x.copy()
        x[at] = value
        return x

    faults = [
        (broken(tree, first=held.first[:-1]), "not those of"),
        (broken(tree, first=changed(held.first, 1, -1)), "ascend"),
        (broken(tree, first=changed(held.first, -1, len(held) + 1)), "ascend"),
        (broken(tree, agree=held.agree[:-1]), "agree"),
        (broken(tree, threshold=changed(held.threshold, 0, np.nan)), "threshold"),
        (broken(tree, improve=changed(held.improve, 0, np.inf)), "improve"),
        (broken(tree, test=changed(held.test, 0, 99 << 4 | THRESHOLD)), "beyond the 4"),
        (broken(tree, test=changed(held.test, subset, 0 << 4 | SUBSET)), "kind|stands in"),
        (broken(tree, test=changed(held.test, 0, int(tree.feature[0]) << 4 | THRESHOLD)), "stands in|kind"),
        (broken(tree, test=changed(held.test, 0, int(held.test[0]) | 8)), "direction"),
        (broken(tree, threshold=changed(held.threshold, subset, len(tree.subsets) - 1)), "beyond the array"),
        (broken(tree, threshold=changed(held.threshold, subset, 0.5)), "beyond the array"),
        (broken(tree, first=np.where(np.arange(tree.n_nodes + 1) <= leaf, 0, len(held)).astype(np.int32)), "leaf"),
    ]
    for wrong, fault in faults:
        with pytest.raises(BrokenTreeError, match=fault):
            wrong.check()


def test_surrogates_survive_pickling_and_cutting():
    table = surrogate_table(80, 3)
    tree = fast.grow_table(table, criterion="gini", missing="surrogate", kernels=TWIN)
    again = pickle.loads(pickle.dumps(tree))
    assert fast.arrays_of(again) == fast.arrays_of(tree)
    rows = np.array(table.columns).T.copy()
    left = cut_nodes(tree, [1])
    left.check()
    kept = find_leaves(left, rows)
    is_cut = kept == 1
    assert is_cut.any()
    np.testing.assert_array_equal(left.n_rows[kept[~is_cut]], tree.n_rows[find_leaves(tree, rows)[~is_cut]])
    assert left.surrogates.improve[1] == 0.0


def test_importances_count_surrogates_by_their_agreement():
    """One test of x0 and one surrogate that agrees in 7 of 8 rows, 4 of them anyway."""
    x0, x1 = [0, 0, 0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0, 1]
    tree = fast.grow([x0, x1], x0, n_classes=2, criterion="gini", missing="surrogate", kernels=TWIN)
    np.testing.assert_allclose(surrogate_importances(tree), [4 / 7, 3 / 7])
    X = np.array([x0, x1], float).T
    model = CARTClassifier(missing="surrogate").fit(X, x0)
    np.testing.assert_allclose(model.surrogate_importances_, [4 / 7, 3 / 7])
    np.testing.assert_allclose(model.feature_importances_, [1, 0])
    with pytest.raises(AttributeError, match="surrogate"):
        CARTClassifier().fit(X, x0).surrogate_importances_  # noqa: B018


def test_ensembles_take_trees_with_surrogates_one_by_one():
    X = np.array([[0.0, 0.0], [0.0, math.nan], [1.0, 1.0], [1.0, 1.0], [math.nan, 0.0], [math.nan, 1.0]])
    y = [0, 0, 1, 1, 0, 1]
    bags = BaggingClassifier(CARTClassifier(missing="surrogate"), n_estimators=3, random_state=0).fit(X, y)
    assert not hasattr(bags, "forest_")
    assert all(member.tree_.surrogates is not None for member in bags.estimators_)
    assert bags.predict(X).shape == (6,)


def test_a_trace_shows_the_gain_over_known_rows():
    table = surrogate_table(80, 2)
    X = np.array(table.columns[:3]).T
    model = CARTClassifier(missing="surrogate", max_depth=3).fit(X, table.y)
    frame = trace(model, X, table.y).to_frame()
    tree = model.tree_.arrays
    chosen = frame[frame.chosen]
    assert chosen.node.tolist() == [node for node in walk_order(tree) if not tree.is_leaf[node]]
    decrease = chosen.impurity_decrease * chosen.weight / tree.weight[0]
    np.testing.assert_allclose(decrease, tree.surrogates.improve[chosen.node])
    for node in chosen.node:
        rivals = frame[(frame.node == node) & frame.admissible]
        assert rivals.impurity_decrease.max() <= float(chosen[chosen.node == node].impurity_decrease.iloc[0]) + 1e-12


def test_a_trace_follows_surrogates_of_categories():
    table = surrogate_table(120, 3)
    X = np.array(table.columns).T
    model = CARTClassifier(missing="surrogate", categorical_features=[3]).fit(X, table.y)
    assert SUBSET in model.tree_.surrogates.kind
    assert len(trace(model, X, table.y).records) == model.tree_.n_nodes


def test_regression_predicts_through_surrogates():
    X = np.array([[0.0, 5], [0, 5], [0, 6], [1, 7], [1, 8], [1, 8]])
    model = CARTRegressor(missing="surrogate").fit(X, [1.0, 1, 1, 4, 4, 4])
    assert model.predict([[math.nan, 6.0], [math.nan, 7.5], [math.nan, math.nan]]).tolist() == [1.0, 4.0, 4.0]


def test_surrogates_print_as_a_table():
    surrogates = hand_trees.surrogate_tree().surrogates
    assert str(surrogates).splitlines() == [
        "3 surrogates of 1 node",
        "node  first branch            agree  adjusted",
        "   0  x1 > 2.5               0.9000    0.8000",
        "   0  x2 in a set of levels  0.8000    0.6000",
        "   0  x3 <= 7                0.7000    0.4000",
    ]
    many = Surrogates(
        first=np.array([0, 21, 42], np.int32),
        test=np.full(42, hand_trees.packed(1, 0, THRESHOLD), np.uint32),
        threshold=np.zeros(42),
        agree=np.ones(42),
        adjusted=np.ones(42),
        improve=np.zeros(2),
    )
    assert str(many).splitlines()[0] == "42 surrogates of 2 nodes"
    assert str(many).splitlines()[-1] == "... 22 more"
