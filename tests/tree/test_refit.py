"""Trees with leaf values of given rows: the means of those rows only, and no leaf without one."""

import math
from dataclasses import fields
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fast
import naive
import strategies
from spinney._types import SUBSET
from spinney.tree import subtree
from spinney.tree.refit import refit_leaves


def leaf_of(tree, row):
    """The leaf a row ends in, step by step."""
    node = 0
    while not tree.is_leaf[node]:
        value = row[tree.feature[node]]
        if math.isnan(value):
            branch = int(tree.missing_branch[node])
        elif tree.kind[node] == SUBSET:
            branch = 0 if tree.subset(node)[int(value)] else 1
        else:
            branch = int(value > tree.threshold[node])
        node = int(tree.first_child[node]) + branch
    return node


@st.composite
def second_parts(draw):
    """A tree, and rows of the same features that did not grow it: leaves, truth and weights; then the criterion."""
    table, parameters = draw(st.one_of(strategies.growing(), strategies.counting()))
    n_rows = draw(st.integers(1, 25))
    rows = draw(strategies.query_rows(table, n_rows))
    if table.n_classes is None:
        truth = np.array(draw(strategies.regression_targets(n_rows)), float)
    else:
        truth = np.array(draw(st.lists(st.integers(0, table.n_classes - 1), min_size=n_rows, max_size=n_rows)))
    weight = draw(strategies.weight_columns(n_rows))
    if parameters["criterion"] == "poisson":
        truth = np.abs(truth)
    tree = fast.grow_table(table, **parameters)
    leaf = np.array([leaf_of(tree, row) for row in rows])
    return tree, leaf, truth, None if weight is None else np.array(weight), parameters["criterion"]


def summarise(rows, n_classes, criterion):
    """Value and impurity of (truth, weight) pairs, in exact arithmetic but for roots and logarithms."""
    total = sum(weight for _, weight in rows)
    if n_classes:
        shares = [sum((w for y, w in rows if y == c), Fraction(0)) / total for c in range(n_classes)]
        impurity = {
            "gini": 1 - sum(share * share for share in shares),
            "misclassification": 1 - max(shares),
            "entropy": -math.fsum(share * math.log2(share) for share in shares if share),
        }[criterion]
        return [float(share) for share in shares], float(impurity)
    mean = sum(w * Fraction(y) for y, w in rows) / total
    variance = sum(w * (Fraction(y) - mean) ** 2 for y, w in rows) / total
    if criterion in ("poisson", "absolute_error"):
        column = [[0.0] * len(rows)]
        problem = naive.read_problem(column, [y for y, _ in rows], [float(w) for _, w in rows], criterion=criterion)
        sums = naive.add_up(problem, list(range(len(rows))))
        return float(naive.mean(problem, sums)), float(naive.impurity(problem, sums))
    return float(mean), math.sqrt(variance) if criterion == "sdr" else float(variance)


def naive_refit(tree, leaf, truth, weight, criterion, node=0, depth=0):
    """The tree of `node` with the statistics of the given rows, as naive nodes; None where no row is."""
    first = int(tree.first_child[node])
    below = [
        naive_refit(tree, leaf, truth, weight, criterion, first + b, depth + 1)
        for b in range(int(tree.n_branches[node]))
    ]
    reached = {node}
    for k in range(node, tree.n_nodes):  # children come behind their parents
        if k in reached:
            reached |= {int(tree.first_child[k]) + b for b in range(int(tree.n_branches[k]))}
    weight = np.ones(len(leaf)) if weight is None else weight
    rows = [
        (y.item(), Fraction(w)) for k, y, w in zip(leaf, truth, weight.tolist(), strict=True) if k in reached and w > 0
    ]
    if not rows:
        return None
    value, impurity = summarise(rows, tree.n_classes, criterion)
    new = naive.Node(len(rows), float(sum(w for _, w in rows)), impurity, value, depth)
    if below and None not in below:
        new.children = below
        new.feature, new.missing_branch = int(tree.feature[node]), int(tree.missing_branch[node])
        if tree.kind[node] == SUBSET:
            new.subset = frozenset(np.flatnonzero(tree.subset(node)).tolist())
        else:
            new.threshold = float(tree.threshold[node])
    return new


@given(second_parts())
def test_every_number_comes_from_the_given_rows_only(case):
    tree, leaf, truth, weight, criterion = case
    refit = refit_leaves(tree, leaf, truth, weight, criterion=criterion)
    refit.check()
    expected = naive_refit(tree, leaf, truth, weight, criterion)
    fast.assert_same_tree(fast.as_nodes(refit), expected)
    if expected.impurity > 0:  # two leaves of one class each cost nothing to tell apart
        assert refit.impurity[0] > 0


@given(second_parts(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(case, random):
    tree, leaf, truth, weight, criterion = case
    order = list(range(len(leaf)))
    random.shuffle(order)
    one = refit_leaves(tree, leaf, truth, weight, criterion=criterion)
    two = refit_leaves(tree, leaf[order], truth[order], None if weight is None else weight[order], criterion=criterion)
    assert fast.arrays_of(one) == fast.arrays_of(two)


@given(second_parts(), st.data())
def test_a_repeated_row_is_a_whole_weight(case, data):
    tree, leaf, truth, _, criterion = case
    counts = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(leaf), max_size=len(leaf))))
    counts[0] += counts.sum() == 0
    by_weight = fast.arrays_of(refit_leaves(tree, leaf, truth, counts.astype(float), criterion=criterion))
    by_rows = fast.arrays_of(refit_leaves(tree, np.repeat(leaf, counts), np.repeat(truth, counts), criterion=criterion))
    del by_weight["n_rows"], by_rows["n_rows"]
    assert by_weight == by_rows


@given(strategies.growing())
def test_the_rows_that_grew_a_tree_give_it_back(case):
    """Values and weights to the last bit: they are the same integers."""
    table, parameters = case
    parameters.pop("monotonic", None)  # bounds move values away from the means
    tree = fast.grow_table(table, **parameters)
    leaf = np.array([leaf_of(tree, row) for row in table.rows])
    weight = None if table.weights is None else np.array(table.weights)
    refit = refit_leaves(tree, leaf, np.array(table.y), weight, criterion=parameters["criterion"])
    for field in fields(tree):
        if field.name not in {"threshold", "subsets", "impurity", "legend"}:
            np.testing.assert_array_equal(getattr(refit, field.name), getattr(tree, field.name), err_msg=field.name)
    is_subset = tree.kind == SUBSET
    np.testing.assert_array_equal(refit.threshold[~is_subset], tree.threshold[~is_subset])
    for node in np.flatnonzero(is_subset):  # bitsets may stand in another order
        np.testing.assert_array_equal(refit.subset(node), tree.subset(node))
    np.testing.assert_allclose(refit.impurity, tree.impurity, rtol=1e-9, atol=1e-9 * float(tree.impurity[0]))


# ------------------------------------------------------------------------------------------------ by hand


STAIRS = {"columns": [[0.0, 1.0, 2.0, 3.0]], "y": [0.0, 0.0, 20.0, 30.0]}


def stairs(**options):
    """Node 0 parts 0, 1 (leaf 1) from 2, 3 (node 2), which parts 2 (leaf 3) from 3 (leaf 4)."""
    tree = fast.grow(**(STAIRS | options), criterion=options.pop("criterion", "squared_error"))
    assert tree.n_leaves == 3
    return tree


def leaves_of(tree, values):
    return np.array([leaf_of(tree, [value]) for value in values])


def test_a_test_with_an_empty_branch_is_dropped():
    tree = stairs()
    given_values = [2.0, 2.0, 3.0]
    refit = refit_leaves(tree, leaves_of(tree, given_values), np.array([1.0, 2.0, 6.0]), criterion="squared_error")
    assert (refit.n_nodes, refit.threshold[0], refit.n_rows[0]) == (1, 3.0, 3)
    given_values = [0.0, 3.0, 1.0]
    refit = refit_leaves(tree, leaves_of(tree, given_values), np.array([1.0, 2.0, 6.0]), criterion="squared_error")
    assert refit.n_nodes == 3
    assert refit.threshold[1:].tolist() == [3.5, 2.0]
    np.testing.assert_allclose(fast.impurity(refit), [14 / 3, 6.25, 0.0])


def test_one_row_leaves_the_root():
    tree = stairs()
    refit = refit_leaves(tree, leaves_of(tree, [3.0]), np.array([0.1]), np.array([0.3]), criterion="sdr")
    refit.check()
    assert (refit.n_nodes, refit.threshold[0], refit.weight[0], refit.impurity[0]) == (1, 0.1, 0.3, 0.0)


def test_units_stay_those_of_the_tree():
    """Trees of a forest share one exponent, though each sees other rows."""
    tree = stairs()
    for scale in (1e-6, 1.0, 1e9):
        y = np.array([1.0, 2.0, 4.0]) * scale
        refit = refit_leaves(tree, leaves_of(tree, [0.0, 2.0, 3.0]), y, criterion="squared_error")
        assert refit.impurity_exponent == tree.impurity_exponent
        assert fast.impurity(refit)[0] == pytest.approx(np.var(y), rel=1e-12)


@pytest.mark.parametrize("scale", [1e300, 1e-300])
@pytest.mark.parametrize("criterion", ["squared_error", "sdr"])
def test_targets_of_another_world(scale, criterion):
    tree = stairs()
    y = np.array([1.0, 3.0, 2.0, 4.0]) * scale
    refit = refit_leaves(tree, leaves_of(tree, [0.0, 1.0, 2.0, 3.0]), y, criterion=criterion)
    refit.check()
    np.testing.assert_allclose(refit.threshold[refit.is_leaf] / scale, [2.0, 2.0, 4.0], rtol=1e-12)


@pytest.mark.parametrize("scale", [1e300, 1e-300, 5e-324])
def test_weights_of_another_world(scale):
    tree = fast.grow([[0.0, 1.0, 2.0]], [0, 1, 2], criterion="gini", n_classes=3)
    values = [0.0, 0.0, 1.0, 2.0]
    refit = refit_leaves(tree, leaves_of(tree, values), np.array([0, 1, 1, 2]), np.full(4, scale), criterion="gini")
    refit.check()
    np.testing.assert_allclose(refit.values()[refit.is_leaf][0], [0.5, 0.5, 0.0])


def test_equal_targets_give_their_own_value():
    tree = stairs()
    y = np.full(6, 5.00001)
    refit = refit_leaves(tree, leaves_of(tree, [0, 1, 2, 2, 3, 3]), y, np.full(6, 0.1), criterion="squared_error")
    assert refit.threshold[refit.is_leaf].tolist() == [5.00001] * 3
    assert refit.impurity.tolist() == [0.0] * 5


@pytest.mark.parametrize("criterion", ["gini", "entropy", "misclassification"])
def test_many_classes_are_summed_in_blocks(criterion, monkeypatch):
    rng = np.random.default_rng(0)
    columns, y = rng.normal(size=(2, 300)), rng.integers(0, 7, 300)
    tree = fast.grow(columns, y, criterion=criterion, n_classes=7, max_depth=4)
    leaf = np.array([leaf_of(tree, row) for row in rng.normal(size=(300, 2))])
    truth, weight = rng.integers(0, 7, 300), rng.random(300)
    at_once = refit_leaves(tree, leaf, truth, weight, criterion=criterion)
    monkeypatch.setattr(subtree, "BLOCK_CELLS", 3 * at_once.n_nodes)
    in_blocks = refit_leaves(tree, leaf, truth, weight, criterion=criterion)
    np.testing.assert_allclose(in_blocks.impurity, at_once.impurity, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(in_blocks.distributions, at_once.distributions)


def test_names_stay():
    tree = stairs()
    named = tree.with_legend(object())
    assert refit_leaves(named, np.array([1]), np.array([1.0]), criterion="sdr").legend is named.legend


# ------------------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"leaf": [], "truth": []}, "at least one row"),
        ({"weight": [0.0, 0.0]}, "at least one row"),
        ({"leaf": [1, 2]}, "row 1: leaf is an inner node"),
        ({"leaf": [1, 5]}, "row 1: leaf is not one of the 5 nodes"),
        ({"leaf": [-1, 1]}, "row 0: leaf is not one of the 5 nodes"),
        ({"truth": [1.0]}, r"truth has shape \(1,\), expected one entry per row"),
        ({"weight": [1.0, 1.0, 1.0]}, r"weight has shape \(3,\)"),
        ({"weight": [1.0, -1.0]}, "row 1: weight is negative"),
        ({"weight": [math.nan, 1.0]}, "row 0: weight is negative or missing"),
        ({"criterion": "gini"}, "criterion='gini': choose one of squared_error, sdr"),
    ],
)
def test_faults_are_named(change, message):
    arguments = {"leaf": [1, 3], "truth": [1.0, 2.0], "weight": None, "criterion": "squared_error"} | change
    arrays = {name: np.array(x) if isinstance(x, list) else x for name, x in arguments.items()}
    arrays["leaf"] = arrays["leaf"].astype(np.int32)
    with pytest.raises(ValueError, match=message):
        refit_leaves(stairs(), **arrays)


def test_classes_must_exist():
    tree = fast.grow([[0.0, 1.0]], [0, 1], criterion="gini", n_classes=2)
    with pytest.raises(ValueError, match="row 1: truth is not one of the 2 class codes"):
        refit_leaves(tree, np.array([1, 2]), np.array([0, 2]), criterion="gini")
