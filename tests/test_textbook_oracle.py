"""Textbook trees and every pruning against the naive ones, on small tables that look for trouble."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import fast
import fast_textbook
import naive_pruning
import naive_textbook
import strategies
from spinney import C45Classifier, ID3Classifier, ID3Regressor, _jit
from spinney.tree import pessimistic, prune
from spinney.tree.predict import find_leaves, predict_classes, predict_shares, predict_values
from spinney.tree.reduced_error import prune_on_rows

CLOSE = 1e-9


@st.composite
def grown(draw, *, rules=("gain", "gain_ratio", "c45"), is_regression=None):
    """A table, the naive form of it, a naive tree, and its criterion."""
    rule = draw(st.sampled_from(rules))
    if is_regression is None:
        is_regression = rule != "c45" and draw(st.booleans())
    table = draw(strategies.textbook_tables(is_regression=is_regression))
    criteria = ["entropy"] if rule == "c45" else ["squared_error", "sdr"] if is_regression else ["entropy", "gini"]
    params = {"criterion": draw(st.sampled_from(criteria)), "rule": rule}
    if draw(st.booleans()):
        params["max_depth"] = draw(st.integers(0, 3))
    if draw(st.booleans()):
        params["min_samples_leaf"] = draw(st.integers(1, 3))
    data, root = fast_textbook.grow_naive(table, **params)
    return table, data, root, params["criterion"]


def answers(tree, rows):
    values = np.array(rows, np.float64)
    return predict_shares(tree, values) if tree.n_classes else predict_values(tree, values)


def naive_answers(root, rows, n_classes):
    if n_classes is None:
        return [float(naive_textbook.mean(root, row)) for row in rows]
    return [[float(share) for share in naive_textbook.class_shares(root, row)] for row in rows]


# ---------------------------------------------------------------------------------------------------------- growing


@st.composite
def growing(draw, *, rules=("gain", "gain_ratio", "c45"), has_weights=True):
    """A table and the parameters of a textbook tree for it; limits that are compared with gains are odd decimals."""
    rule = draw(st.sampled_from(rules))
    is_regression = rule != "c45" and draw(st.booleans())
    table = draw(strategies.textbook_tables(is_regression=is_regression, has_weights=has_weights))
    criteria = ["entropy"] if rule == "c45" else ["squared_error", "sdr"] if is_regression else ["entropy", "gini"]
    params = {"criterion": draw(st.sampled_from(criteria)), "rule": rule}
    choices = {
        "max_depth": st.integers(0, 3),
        "min_samples_split": st.integers(2, 8),
        "min_samples_leaf": st.integers(1, 4),
        "min_impurity_decrease": st.sampled_from([0.00137, 0.0531, 0.217]),
    }
    if rule == "c45":
        del choices["min_impurity_decrease"]
    for name in draw(st.lists(st.sampled_from(sorted(choices)), max_size=2, unique=True)):
        params[name] = draw(choices[name])
    return table, params


def assert_grows_as_naive(table, params):
    _, root = fast_textbook.grow_naive(table, **params)
    assume(naive_textbook.is_certain(root))
    tree = fast_textbook.grow(table, **params)
    tree.check()
    fast_textbook.assert_same_tree(tree, root, params["criterion"])


@settings(max_examples=150)
@given(growing(rules=["c45"]))
def test_c45_grows_what_the_oracle_grows(case):
    assert_grows_as_naive(*case)


@settings(max_examples=150)
@given(growing(rules=["gain"]))
def test_id3_grows_what_the_oracle_grows(case):
    assert_grows_as_naive(*case)


@given(growing(rules=["gain_ratio"]))
def test_gain_ratio_grows_what_the_oracle_grows(case):
    assert_grows_as_naive(*case)


@given(strategies.tables(), st.booleans())
def test_id3_of_odd_numbers(table, is_second):
    """Neighbouring floats, infinities, weights that decimals cannot hold."""
    criteria = ["squared_error", "sdr"] if table.n_classes is None else ["gini", "entropy"]
    assert_grows_as_naive(table, {"criterion": criteria[is_second]})


@given(growing())
def test_interpreted_kernels_grow_the_same_bits(case):
    table, params = case
    compiled = fast_textbook.grow(table, **params)
    interpreted = fast_textbook.grow(table, kernels=_jit.interpreted(), **params)
    assert fast.arrays_of(interpreted) == fast.arrays_of(compiled)


@given(st.data())
def test_the_order_of_rows_does_not_matter(data):
    table, params = data.draw(growing())
    order = data.draw(st.permutations(range(table.n_rows)))
    shuffled = fast_textbook.grow(fast_textbook.take(table, order), **params)
    assert fast.arrays_of(shuffled) == fast.arrays_of(fast_textbook.grow(table, **params))


ROW_LIMITS = ("min_samples_split", "min_samples_leaf")


@given(st.data())
def test_a_repeated_row_is_a_row_of_greater_weight(data):
    """Where a limit counts rows, it is left out; C4.5's least weight counts weights."""
    table, params = data.draw(growing(has_weights=False))
    limits = ROW_LIMITS[:1] if params["rule"] == "c45" else ROW_LIMITS
    params = {name: value for name, value in params.items() if name not in limits}
    counts = data.draw(st.lists(st.integers(1, 3), min_size=table.n_rows, max_size=table.n_rows))
    repeated = [i for i, count in enumerate(counts) for _ in range(count)]
    by_rows = fast.arrays_of(fast_textbook.grow(fast_textbook.take(table, repeated), **params))
    by_weight = fast.arrays_of(fast_textbook.grow(replace(table, weights=list(map(float, counts))), **params))
    for arrays in (by_rows, by_weight):
        del arrays["n_rows"]
    assert by_weight == by_rows


@given(growing())
def test_a_row_of_weight_zero_is_no_row(case):
    table, params = case
    assume(table.weights is not None and 0.0 in table.weights)
    kept = fast_textbook.take(table, [i for i, weight in enumerate(table.weights) if weight > 0])
    assert fast.arrays_of(fast_textbook.grow(kept, **params)) == fast.arrays_of(fast_textbook.grow(table, **params))


# ------------------------------------------------------------------------------------------------------- predicting


@given(st.data())
def test_rows_go_where_the_oracle_sends_them(data):
    """A branch for each level, branches of missing values, rows that take every branch, empty leaves."""
    table, _, root, criterion = data.draw(grown())
    tree = fast_textbook.build(root, table, criterion)
    tree.check()
    fast_textbook.assert_same_tree(tree, root, criterion)
    rows = [*table.rows, *data.draw(strategies.query_rows(table))]
    expected = naive_answers(root, rows, table.n_classes)
    np.testing.assert_allclose(answers(tree, rows), expected, rtol=CLOSE, atol=CLOSE)


# ---------------------------------------------------------------------------------------------------------- pruning


def risk_of(root, table, criterion, risk):
    if risk == "impurity":
        return naive_pruning.impurity_risk(root, criterion)
    return naive_pruning.error_risk(root, table.n_classes)


def name_of(risk, criterion):
    """A tree of standard deviations knows its squared error by another name."""
    return "squared" if risk == "error" and criterion == "sdr" else risk


@given(grown(), st.sampled_from(["impurity", "error"]))
def test_the_sequence_of_best_subtrees(case, risk):
    table, _, root, criterion = case
    of_node = risk_of(root, table, criterion, risk)
    is_exact = isinstance(of_node(root), Fraction)
    slack = 0 if is_exact else 1e-12 * of_node(root)
    expected = naive_pruning.sequence(root, of_node, slack)
    assume(is_exact or are_apart(expected, of_node(root)))
    tree = fast_textbook.build(root, table, criterion)
    kind = name_of(risk, criterion)
    steps = prune.cut_sequence(tree, kind)
    assert [step.n_leaves for step in steps] == [step.n_leaves for step in expected]
    scale = float(of_node(root)) or 1.0
    for name in ("alpha", "risk"):
        found = [prune.from_units(tree, getattr(step, name), kind) for step in steps]
        truth = [float(getattr(step, name)) for step in expected]
        np.testing.assert_allclose(found, truth, rtol=CLOSE, atol=1e-12 * scale)
    for before, after in zip(expected, [*expected[1:], None], strict=True):
        alpha = float(before.alpha) * 2 + 1.0 if after is None else float(before.alpha + after.alpha) / 2
        found = prune.prune_to_alpha(tree, alpha, kind)
        found.check()
        fast_textbook.assert_same_tree(found, naive_pruning.prune_to_alpha(root, alpha, of_node), criterion)


def are_apart(steps, scale):
    """Whether no two alphas of float risks are so close that rounding decides if they are one."""
    alphas = [float(step.alpha) for step in steps]
    return all(b - a > 1e-9 * float(scale) for a, b in pairwise(alphas))


@given(st.data())
def test_reduced_error(data):
    table, _, root, criterion = data.draw(grown())
    rows = data.draw(strategies.query_rows(table))
    given_y = data.draw(st.lists(st.sampled_from(table.y), min_size=len(rows), max_size=len(rows)))
    weights = data.draw(st.sampled_from([None, [1.0, 2.0] * 5, [0.25, 1.5] * 5]))
    assume(all(is_clear(root, row) for row in rows))
    given_table, cases = naive_textbook.read_table(
        list(zip(*rows, strict=True)), given_y, weights, table.n_classes, table.is_categorical, table.n_levels
    )
    expected = naive_pruning.prune_on_rows(root, given_table, cases)
    tree = fast_textbook.build(root, table, criterion)
    values = np.array(rows)
    leaf = find_leaves(tree, values)
    found = prune_on_rows(tree, leaf, np.array(given_y), None if weights is None else np.array(weights))
    found.check()
    fast_textbook.assert_same_tree(found, expected, criterion)
    # a cut can change which leaf takes most of a row that takes every branch
    is_whole = all(len(list(naive_textbook.reach(root, row))) == 1 for row in rows)
    weights = np.ones(len(rows)) if weights is None else np.array(weights)
    before, after = (error(of, values, np.array(given_y), weights) for of in (tree, found))
    assert after <= before + 1e-9 or not is_whole


def is_clear(root, row):
    """Whether one leaf takes more of a row than any other."""
    shares = sorted((share for _, share in naive_textbook.reach(root, row)), reverse=True)
    return len(shares) == 1 or shares[0] > shares[1]


def error(tree, values, y, weights):
    """Of the leaf that takes most of each row."""
    leaf = find_leaves(tree, values)
    if tree.n_classes:
        return float(weights[tree.leaf_class[leaf] != y].sum())
    return float((weights * (tree.threshold[leaf] - y) ** 2).sum())


@given(grown(), st.sampled_from([1e-9, 0.1137, 0.3719, 0.9217]))
def test_splits_of_little_gain(case, bound):
    table, _, root, criterion = case
    tree = fast_textbook.build(root, table, criterion)
    found = prune.prune_by_gain(tree, bound)
    found.check()
    fast_textbook.assert_same_tree(found, naive_pruning.prune_by_gain(root, bound, criterion), criterion)


@given(st.data())
def test_leaves_that_agree(data):
    table, _, root, criterion = data.draw(grown())
    tree = fast_textbook.build(root, table, criterion)
    found = prune.merge_leaves(tree)
    found.check()
    fast_textbook.assert_same_tree(found, naive_pruning.merge_leaves(root, table.n_classes), criterion)
    rows = np.array([*table.rows, *data.draw(strategies.query_rows(table))])
    known = rows[~np.isnan(rows).any(axis=1)]  # a row that takes every branch hears other shares, and may change
    if table.n_classes:
        np.testing.assert_array_equal(predict_classes(found, known), predict_classes(tree, known))
    else:
        np.testing.assert_allclose(predict_values(found, rows), predict_values(tree, rows), rtol=CLOSE, atol=CLOSE)


def test_an_empty_branch_agrees_with_the_others():
    table = strategies.SmallTable([[1.0, 1.0, 2.0, 2.0]], [0, 0, 0, 1], None, 2, [True], [3])
    tree = fast_textbook.grow(table, criterion="entropy")
    assert tree.is_empty.tolist() == [False, True, False, False]
    assert prune.merge_leaves(tree).n_nodes == 1


@given(st.data())
def test_snipping_is_cutting_by_hand(data):
    table, _, root, criterion = data.draw(grown())
    tree = fast_textbook.build(root, table, criterion)
    node = data.draw(st.integers(0, tree.n_nodes - 1))
    cut = naive_pruning.snip(root, fast_textbook.place_of(root)[node])
    found = prune.snip(tree, node)
    found.check()
    fast_textbook.assert_same_tree(found, cut, criterion)
    rows = [*table.rows, *data.draw(strategies.query_rows(table))]
    expected = naive_answers(cut, rows, table.n_classes)
    np.testing.assert_allclose(answers(found, rows), expected, rtol=CLOSE, atol=CLOSE)


def test_a_cut_elsewhere_leaves_an_empty_branch_its_answer():
    """Level 1 occurs nowhere; below levels 0 and 2 a number divides the classes."""
    columns = [[0, 0, 0, 2, 2, 2.0], [1, 1, 9, 1, 9, 9.0]]
    table = strategies.SmallTable(columns, [1, 1, 2, 0, 3, 3], None, 4, [True, False], [3, 0])
    tree = fast_textbook.grow(table, criterion="entropy")
    assert tree.n_branches[:4].tolist() == [3, 2, 0, 2]
    for cut in (prune.snip(tree, 1), prune.prune_to_alpha(tree, 1e-3), prune.prune_by_gain(tree, 0.5)):
        empty = int(np.flatnonzero(cut.is_empty)[0]) if cut.n_nodes > 1 else 0
        np.testing.assert_allclose(fast_textbook.said(cut, empty), np.array([1, 2, 1, 2]) / 6)


@given(grown(), st.sampled_from(["impurity", "error"]), st.sampled_from([0.01371, 0.1113, 0.5]))
def test_pruning_never_raises_its_own_risk(case, risk, alpha):
    """Risk and alpha for each leaf, before and after; the tree only shrinks."""
    table, _, root, criterion = case
    kind = name_of(risk, criterion)
    tree = fast_textbook.build(root, table, criterion)
    found = prune.prune_to_alpha(tree, alpha, kind)

    def cost(of):
        at_leaves = prune.node_risk(of, kind)[of.is_leaf].sum()
        return prune.from_units(of, float(at_leaves), kind) + alpha * of.n_leaves

    assert cost(found) <= cost(tree) + 1e-12
    assert found.n_leaves <= tree.n_leaves


# ------------------------------------------------------------------------------------------------- pessimistic pruning


@given(
    st.integers(1, 400).map(lambda k: k / 4),
    st.floats(0, 1),
    st.sampled_from([0.05, 0.1, 0.25, 0.4, 0.5, 0.6]),
)
def test_error_bounds(n, share, confidence):
    expected = naive_pruning.added_errors(n, share * n, confidence)
    assert pessimistic.added_errors(n, share * n, confidence) == pytest.approx(expected, rel=1e-9, abs=1e-9)


CONFIDENCES = st.sampled_from([0.05, 0.25, 0.25, 0.5])


@given(st.data())
def test_collapsing(data):
    table, _, root, criterion = data.draw(grown(is_regression=False))
    expected = naive_pruning.collapse(root)
    assume(naive_textbook.is_certain(expected))
    found = pessimistic.collapse(fast_textbook.build(root, table, criterion))
    found.check()
    fast_textbook.assert_same_tree(found, expected, criterion)


@given(st.data(), CONFIDENCES)
def test_pruning_by_estimated_errors(data, confidence):
    table, _, root, criterion = data.draw(grown(is_regression=False))
    expected = naive_pruning.prune_pessimistic(root, confidence)
    assume(expected.margin > CLOSE)
    found = pessimistic.prune_pessimistic(fast_textbook.build(root, table, criterion), confidence)
    found.check()
    fast_textbook.assert_same_tree(found, expected, criterion)


@settings(max_examples=150)
@given(st.data(), CONFIDENCES)
def test_pruning_with_raising(data, confidence):
    table, naive_table, root, criterion = data.draw(grown(rules=["c45"], is_regression=False))
    expected = naive_pruning.prune_pessimistic(root, confidence, table=naive_table, is_raising=True)
    assume(expected.margin > CLOSE)
    rows = {
        "values": np.array(table.rows),
        "truth": np.array(table.y),
        "weight": None if table.weights is None else np.array(table.weights),
    }
    found = pessimistic.prune_pessimistic(fast_textbook.build(root, table, criterion), confidence, raising=True, **rows)
    found.check()
    fast_textbook.assert_same_tree(found, expected, criterion)
    queries = [*table.rows, *data.draw(strategies.query_rows(table))]
    expected = naive_answers(expected, queries, table.n_classes)
    np.testing.assert_allclose(answers(found, queries), expected, rtol=CLOSE, atol=CLOSE)


def noisy_table(seed):
    """Larger than hypothesis draws them: most of these trees are pruned, and many branches raised."""
    rng = np.random.default_rng(seed)
    n_rows, n_classes = int(rng.integers(20, 60)), int(rng.integers(2, 4))
    n_levels = [int(n) for n in rng.choice([0, 0, 2, 3, 4], 4)]
    columns = [rng.integers(0, n or 12, n_rows) / (1 if n else 4) for n in n_levels]
    y = (columns[0] + 2 * columns[1] + rng.integers(0, 3, n_rows)).astype(int) % n_classes
    y[:n_classes] = range(n_classes)
    for column in columns[: int(rng.integers(0, 5))]:
        column[rng.random(n_rows) < 0.15] = np.nan
    weights = [None, rng.integers(1, 4, n_rows) * 1.0, rng.integers(1, 9, n_rows) / 4][seed % 3]
    return strategies.SmallTable(
        [column.tolist() for column in columns],
        y.tolist(),
        None if weights is None else weights.tolist(),
        n_classes,
        [n > 0 for n in n_levels],
        n_levels,
    )


@pytest.mark.parametrize("seed", range(30))
def test_c45_of_a_noisy_table(seed):
    """Grown, collapsed, pruned with raising, as the oracle does all of it."""
    table = noisy_table(seed)
    data, root = fast_textbook.grow_naive(table, rule="c45", min_samples_leaf=2)
    collapsed = naive_pruning.collapse(root)
    expected = naive_pruning.prune_pessimistic(collapsed, table=data, is_raising=True)
    assert naive_textbook.is_certain(collapsed)
    assert expected.margin > CLOSE
    grown_tree = pessimistic.collapse(fast_textbook.grow(table, criterion="entropy", rule="c45", min_samples_leaf=2))
    fast_textbook.assert_same_tree(grown_tree, collapsed, "entropy")
    pruned = pessimistic.prune_pessimistic(
        grown_tree,
        values=np.array(table.rows),
        truth=np.array(table.y),
        weight=None if table.weights is None else np.array(table.weights),
        raising=True,
    )
    pruned.check()
    fast_textbook.assert_same_tree(pruned, expected, "entropy")


def test_of_two_equal_branches_the_last_is_raised():
    """Weka 3.6.14 prunes this table to age <= 4; the first branch is a leaf, and would stay one."""
    shape = [0, 0, 0, 1, 0, 1, 0, 1, 1, 1]
    size = [1, 6, 5, 9, 2, 7, 2, 2, 6, 6]
    age = [1, 4, 2, 5, 3, 4, 3, 1, 5, 1]
    y = [0, 0, 0, 1, 0, 0, 0, 0, 1, 1]
    columns = [list(map(float, column)) for column in (shape, size, age)]
    table = strategies.SmallTable(columns, y, None, 2, [True, False, False], [2, 0, 0])
    tree = fast_textbook.grow(table, criterion="entropy", rule="c45", min_samples_leaf=2)
    assert tree.weight[1:3].tolist() == [5, 5]
    rows = {"values": np.array(table.rows), "truth": np.array(y)}
    pruned = pessimistic.prune_pessimistic(pessimistic.collapse(tree), raising=True, **rows)
    assert (int(pruned.feature[0]), float(pruned.threshold[0])) == (2, 4.0)
    assert pruned.class_weights().tolist() == [[7, 3], [7, 1], [0, 2]]


def test_some_noisy_tables_are_raised():
    """What the test above would not show if they were not."""
    n_raised = 0
    for seed in range(30):
        data, root = fast_textbook.grow_naive(noisy_table(seed), rule="c45", min_samples_leaf=2)
        collapsed = naive_pruning.collapse(root)
        pruned = [naive_pruning.prune_pessimistic(collapsed, table=data, is_raising=is_it) for is_it in (False, True)]
        n_raised += repr(pruned[0]) != repr(pruned[1])
    assert n_raised >= 5


# ------------------------------------------------------------------------------------------------------- estimators


def settle_levels(table):
    """The table with the levels that occur, numbered without gaps: what an estimator finds in the columns."""
    columns = [
        strategies.compact(column) if is_it else column
        for column, is_it in zip(table.columns, table.is_categorical, strict=True)
    ]
    n_levels = [
        len({v for v in column if not math.isnan(v)}) if is_it else 0
        for column, is_it in zip(columns, table.is_categorical, strict=True)
    ]
    return replace(table, columns=columns, n_levels=n_levels)


def estimator_for(table, params, **more):
    """The estimator with the parameters of the naive grower."""
    params = {name: value for name, value in params.items() if name != "rule"} | more
    categories = [j for j, is_it in enumerate(table.is_categorical) if is_it]
    if "raising" in params:
        kind = C45Classifier
        del params["criterion"]
    else:
        kind = ID3Regressor if table.n_classes is None else ID3Classifier
    return kind(categorical_features=categories or None, **params)


def fit(estimator, table):
    return estimator.fit(np.array(table.rows), table.y, sample_weight=table.weights)


def said_by(estimator, rows):
    rows = np.array(rows, np.float64)
    return estimator.predict_proba(rows) if hasattr(estimator, "predict_proba") else estimator.predict(rows)


def draw_case(data, rule):
    table, params = data.draw(growing(rules=[rule]))
    table = settle_levels(table)
    assume(params.get("max_depth") != 0)
    assume(all(n > 0 for n, is_it in zip(table.n_levels, table.is_categorical, strict=True) if is_it))
    assume(np.isfinite(np.array(table.y, np.float64)).all())
    return table, params, [*table.rows, *data.draw(strategies.query_rows(table))]


@given(st.data())
def test_id3_predicts_what_the_oracle_predicts(data):
    table, params, rows = draw_case(data, "gain")
    _, root = fast_textbook.grow_naive(table, **params)
    assume(naive_textbook.is_certain(root))
    estimator = fit(estimator_for(table, params), table)
    fast_textbook.assert_same_tree(estimator.tree_.arrays, root, params["criterion"])
    expected = naive_answers(root, rows, table.n_classes)
    np.testing.assert_allclose(said_by(estimator, rows), expected, rtol=CLOSE, atol=CLOSE)


@given(st.data(), st.sampled_from([None, "plain", "raising"]), CONFIDENCES)
def test_c45_predicts_what_the_oracle_predicts(data, pruning, confidence):
    table, params, rows = draw_case(data, "c45")
    params.pop("min_samples_split", None)
    params.setdefault("min_samples_leaf", 2)
    naive_table, root = fast_textbook.grow_naive(table, **params)
    root = naive_pruning.collapse(root)
    assume(naive_textbook.is_certain(root))
    if pruning:
        root = naive_pruning.prune_pessimistic(root, confidence, table=naive_table, is_raising=pruning == "raising")
        assume(root.margin > CLOSE)
    how = {"pruning": "pessimistic" if pruning else None, "raising": pruning == "raising", "confidence": confidence}
    estimator = fit(estimator_for(table, params, **how), table)
    fast_textbook.assert_same_tree(estimator.tree_.arrays, root, "entropy")
    expected = naive_answers(root, rows, table.n_classes)
    np.testing.assert_allclose(said_by(estimator, rows), expected, rtol=CLOSE, atol=CLOSE)


@given(st.data())
def test_prunings_of_an_estimator(data):
    """`prune` and `snip` give new estimators whose trees are those of the oracle."""
    table, params, rows = draw_case(data, "gain")
    criterion = params["criterion"]
    _, root = fast_textbook.grow_naive(table, **params)
    assume(naive_textbook.is_certain(root))
    estimator = fit(estimator_for(table, params), table)
    risk = risk_of(root, table, criterion, "error")
    for pruned, expected in (
        (estimator.prune("merge"), naive_pruning.merge_leaves(root, table.n_classes)),
        (estimator.prune("min_gain", min_gain=0.0371), naive_pruning.prune_by_gain(root, 0.0371, criterion)),
        (
            estimator.prune("cost_complexity", ccp_alpha=0.0371, ccp_risk="error"),
            naive_pruning.prune_to_alpha(root, 0.0371, risk),
        ),
        (estimator.snip(0), naive_pruning.snip(root, root)),
    ):
        fast_textbook.assert_same_tree(pruned.tree_.arrays, expected, criterion)
        answered = naive_answers(expected, rows, table.n_classes)
        np.testing.assert_allclose(said_by(pruned, rows), answered, rtol=CLOSE, atol=CLOSE)
    fast_textbook.assert_same_tree(estimator.tree_.arrays, root, criterion)
