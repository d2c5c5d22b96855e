"""If-then rules: they part the rows as the tree does, and say what its leaves say."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fast
import fast_textbook
import hand_trees
import strategies
from spinney import C45Classifier, CARTClassifier, CARTRegressor, datasets
from spinney.tree.predict import find_leaves
from spinney.tree.structure import Legend


def check_rules(tree, rows):
    """Every row satisfies one rule alone, that of its leaf; the counts are the tree's."""
    values = np.array(rows, np.float64).reshape(len(rows), tree.n_features)
    rules = tree.to_rules()
    assert sorted(rule.leaf for rule in rules) == np.flatnonzero(tree.is_leaf).tolist()
    holds = np.array([rule.holds(values) for rule in rules])
    assert (holds.sum(axis=0) == 1).all()
    leaf = find_leaves(tree, values)
    assert [rules[int(r)].leaf for r in holds.argmax(axis=0)] == leaf.tolist()
    for rule in rules:
        features = [condition.feature for condition in rule.merged]
        assert len(features) == len(set(features))
    return rules, holds


@given(strategies.growing(), st.sampled_from(["learned", "branch"]), st.data())
def test_grown_trees(case, missing, data):
    table, parameters = case
    tree = fast.grow_table(table, **{**parameters, "missing": missing})
    rules, _ = check_rules(tree, table.rows)
    assert sum(rule.n_rows for rule in rules) == tree.n_rows[0]
    assert sum(rule.share for rule in rules) == pytest.approx(1.0)
    check_rules(tree, data.draw(strategies.query_rows(table)))


@given(strategies.tables(), st.integers(0, 1000))
def test_trees_of_every_kind_of_test(table, seed):
    grower = hand_trees.ChanceGrower(table, seed)
    tree = grower.grow()
    rows = [row for row in table.rows if not (grower.spreads and np.isnan(row).any())]
    rules, holds = check_rules(tree, rows)
    if grower.spreads or table.weights is not None:
        return
    for rule, held in zip(rules, holds, strict=True):
        y = np.array(table.y)[held]
        assert len(y) == rule.n_rows
        if rule.n_rows and table.n_classes:
            assert np.mean(y == rule.prediction) == pytest.approx(rule.accuracy)
        elif rule.n_rows:
            assert rule.prediction == pytest.approx(np.mean(y), abs=1e-9)


@given(strategies.tables(), st.sampled_from(["gain", "c45"]))
def test_textbook_trees(table, rule):
    if table.n_classes is None:
        rule, criterion = "gain", "squared_error"
    else:
        criterion = "entropy"
    tree = fast_textbook.grow(table, criterion=criterion, rule=rule)
    rows = [row for row in table.rows if rule == "gain" or not np.isnan(row).any()]
    rules, holds = check_rules(tree, rows)
    if rule == "gain" and table.weights is None:
        assert holds.sum(axis=1).tolist() == [rule.n_rows for rule in rules]
    for row in rows[:5]:
        assert tree.explain(row).leaves == ((int(find_leaves(tree, np.array([row], np.float64))[0]), 1.0),)


def test_parts_of_rows_have_a_weight():
    X = np.array([[0.0], [0.0], [1.0], [1.0], [np.nan], [np.nan]])
    rules = C45Classifier(pruning=None).fit(X, ["a", "a", "b", "b", "a", "b"]).tree_.to_rules()
    assert str(rules[0]) == "if x0 <= 0 then a (4 rows, weight 3, 50 %, accuracy 83.3 %)"


def test_conditions_on_one_feature_are_merged():
    table = datasets.load("california_housing")
    X, y = table.drop_columns(["MedHouseVal"]), table["MedHouseVal"].to_numpy()
    model = CARTRegressor(max_depth=3).fit(X, y)
    rules = model.tree_.to_rules()
    assert str(rules).splitlines()[2] == (
        "if 3.0743 < MedInc <= 5.03515 and AveOccup <= 2.373304784 then 2.790423 (1954 rows, 9.5 %, sd 1.136071)"
    )
    leaf = model.apply(X)
    for rule in rules:
        assert rule.prediction == pytest.approx(y[leaf == rule.leaf].mean())
        assert rule.deviation == pytest.approx(y[leaf == rule.leaf].std())
    assert len(rules[1:3]) == 2
    assert str(rules[1:3]) == "\n".join(map(str, [rules[1], rules[2]]))
    assert repr(rules).startswith("<8 rules>\n")


@pytest.mark.parametrize("criterion", ["squared_error", "sdr"])
def test_deviation_of_both_criteria(criterion):
    X, y = np.arange(8.0)[:, None], np.array([1.0, 2, 4, 8, 16, 32, 64, 128])
    rules = CARTRegressor(criterion=criterion, max_depth=1).fit(X, y).tree_.to_rules()
    assert [rule.deviation for rule in rules] == pytest.approx([y[:6].std(), 32.0])


def test_levels_are_intersected():
    table = datasets.load("play_tennis")
    model = CARTClassifier(cat_penalty=0.0).fit(table.drop_columns(["play"]), table["play"].to_pylist())
    rules = model.tree_.to_rules()
    lines = str(rules).splitlines()
    assert lines[0] == "if outlook = sunny and humidity = high then no (3 rows, 21.4 %, accuracy 100 %)"
    assert lines[5].startswith("if outlook in {rainy, sunny} and humidity = normal and wind = weak then yes (3 rows")
    assert rules[-1].conditions == ("outlook = overcast",)
    assert rules[-1].prediction == "yes"


def test_one_leaf_always_answers():
    rules = CARTClassifier(max_depth=1).fit([[1], [1], [1]], ["a", "a", "b"]).tree_.to_rules()
    assert str(rules) == "always a (3 rows, 100 %, accuracy 66.7 %)"


def test_missing_values_in_rules():
    X = [[1.0], [2.0], [3.0], [4.0], [np.nan], [np.nan]]
    tree = CARTClassifier(missing="branch").fit(X, list("aabbcc")).tree_.arrays
    assert [rule.conditions for rule in tree.to_rules()] == [("x0 <= 2.5",), ("x0 > 2.5",), ("x0 is missing",)]
    tree = CARTClassifier().fit(X, list("aabbbb")).tree_.arrays
    assert [rule.conditions for rule in tree.to_rules()] == [("x0 <= 2.5",), ("x0 > 2.5 or missing",)]
    tree = CARTClassifier().fit(X, list("abcdee")).tree_.arrays
    conditions = {rule.prediction: rule.conditions for rule in tree.to_rules()}
    assert conditions["b"] == ("1.5 < x0 <= 2.5",)


def test_empty_leaves_and_shared_rows():
    rules = hand_trees.weather_tree().to_rules()
    lines = str(rules).splitlines()
    assert lines[0] == "if outlook = foggy then yes (0 rows)"
    assert lines[2] == "if outlook = rainy and wind = strong then no (2 rows, 14.3 %, accuracy 100 %)"
    assert lines[-1] == "(missing values go down every branch, by its share of the rows)"
    assert rules[0].accuracy is None


def test_surrogates_are_noted():
    assert str(hand_trees.surrogate_tree().to_rules()).splitlines() == [
        "if g2 <= 13.2 then 1.5 (6 rows, 60 %)",
        "if g2 > 13.2 then 5.5 (4 rows, 40 %)",
        "(a missing value goes by the surrogates of its test)",
    ]


def test_neighbouring_numbers_are_kept_apart():
    x = [1.0, np.nextafter(1.0, 2.0), np.nextafter(1.0, 2.0) + 2**-50, 5.0]
    tree = CARTRegressor().fit(np.array(x)[:, None], [1.0, 9.0, 1.0, 9.0]).tree_.arrays
    bounds = [condition for rule in tree.to_rules() for condition in rule.conditions if condition.count("<") == 2]
    for text in bounds:
        low, high = text.split(" < x0 <= ")
        assert float(low) < float(high)
    assert bounds


def test_a_legend_without_a_criterion_has_no_deviation():
    tree = CARTRegressor().fit([[1.0], [2.0]], [1.0, 2.0]).tree_.arrays
    assert tree.legend.criterion == "squared_error"
    bare = tree.with_legend(replace(tree.legend, criterion=None))
    assert [rule.deviation for rule in bare.to_rules()] == [None, None]
    assert Legend(("x",), (None,), None, (False,)).criterion is None
