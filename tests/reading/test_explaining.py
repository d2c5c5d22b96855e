"""The path of one row in words: it is the path that prediction takes."""

from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fast
import hand_trees
import strategies
from spinney import CARTClassifier, CARTRegressor, datasets
from spinney.tree.predict import find_leaves, predict_classes, predict_shares, predict_values


def play_tennis():
    table = datasets.load("play_tennis")
    return table.drop_columns(["play"]), table["play"].to_pylist()


def test_an_explanation_shows_itself_in_words():
    story = CARTClassifier(cat_penalty=0.0).fit(*play_tennis()).explain(["sunny", "hot", "high", "weak"])
    assert repr(story) == str(story)
    assert repr(story).splitlines()[-1] == "=> no (no 100 %)"


def check_path(tree, explanation, leaf):
    """From the root to the leaf, each step a child of the one before."""
    nodes = [leaf]
    while nodes[-1]:
        nodes.append(int(tree.parent[nodes[-1]]))
    assert explanation.nodes == nodes[::-1]
    assert explanation.leaves == ((leaf, 1.0),)


@given(strategies.growing(), st.sampled_from(["learned", "branch"]), st.data())
def test_the_path_of_grown_trees(case, missing, data):
    table, parameters = case
    tree = fast.grow_table(table, **{**parameters, "missing": missing})
    rows = np.array(data.draw(strategies.query_rows(table)), np.float64).reshape(-1, table.n_features)
    for row, leaf in zip(rows, find_leaves(tree, rows).tolist(), strict=True):
        explanation = tree.explain(row)
        check_path(tree, explanation, leaf)
        assert str(explanation).count("\n") == len(explanation.steps) + 1


@given(strategies.tables(), st.integers(0, 1000), st.data())
def test_the_path_through_every_kind_of_test(table, seed, data):
    grower = hand_trees.ChanceGrower(table, seed)
    tree = grower.grow()
    rows = np.array(data.draw(strategies.query_rows(table)), np.float64).reshape(-1, table.n_features)
    leaves = find_leaves(tree, rows).tolist()
    for i, row in enumerate(rows):
        explanation = tree.explain(row)
        assert sum(share for _, share in explanation.leaves) == pytest.approx(1.0)
        assert leaves[i] == max(explanation.leaves, key=lambda end: end[1])[0]
        if len(explanation.leaves) == 1:
            check_path(tree, explanation, leaves[i])
        if table.n_classes:
            shares = predict_shares(tree, rows[i : i + 1])[0]
            assert list(explanation.shares.values()) == pytest.approx(shares.tolist())
            assert explanation.prediction == predict_classes(tree, rows[i : i + 1])[0] or len(explanation.leaves) > 1
        else:
            assert explanation.prediction == pytest.approx(predict_values(tree, rows[i : i + 1])[0])


def test_the_words():
    model = CARTClassifier(cat_penalty=0.0).fit(*play_tennis())
    row = {"outlook": "rainy", "temperature": "hot", "humidity": "high", "wind": "weak"}
    assert str(model.explain(row)).splitlines() == [
        "[yes] (14 rows: yes 9, no 5)",
        "outlook is rainy, one of {rainy, sunny}: [no] (10 rows: no 5, yes 5)",
        "humidity is high: [no] (5 rows: no 4, yes 1)",
        "outlook is rainy: [no] (2 rows: no 1, yes 1)",
        "wind is weak: yes (1 row)",
        "=> yes (yes 100 %)",
    ]
    step = model.explain(row).steps[1]
    assert (step.feature, step.value, step.share) == ("humidity", "high", 1.0)


def test_numbers_missing_values_and_unseen_levels():
    X = pd.DataFrame({"size": [1.0, 2.0, 3.0, np.nan], "kind": pd.Categorical(["a", "a", "b", "b"])})
    model = CARTRegressor(max_depth=1).fit(X, [1.0, 1.0, 5.0, 5.0])
    lines = str(model.explain([2.0, "a"])).splitlines()
    assert lines[1:] == ["size is 2, at most 2.5: 1 (2 rows)", "=> 1"]
    assert "size is missing; such rows go with size > 2.5: 5" in str(model.explain([None, "a"]))
    model = CARTRegressor(max_depth=1).fit(X[["kind"]], [1.0, 1.0, 5.0, 5.0])
    explanation = model.explain(["zebra"])
    assert "kind is zebra, which fit has not seen; such rows go with kind = " in str(explanation)
    assert explanation.steps[0].value == "zebra"
    model = CARTRegressor(max_depth=1, missing="branch").fit(X[["size"]], [1.0, 1.0, 5.0, 9.0])
    assert "size is missing, which has a branch of its own: 9 (1 row)" in str(model.explain([np.nan]))
    kinds = pd.DataFrame({"kind": pd.Categorical(["a", "b", None])})
    model = CARTRegressor(max_depth=1, missing="branch").fit(kinds, [1.0, 5.0, 9.0])
    text = "kind is zebra, which fit has not seen; it goes the way of missing values, a branch of their own: 9 (1 row)"
    assert text in str(model.explain(["zebra"]))


def test_rows_that_take_every_branch():
    tree = hand_trees.weather_tree()
    explanation = tree.explain([np.nan, 70.0, 0.0])
    assert str(explanation).splitlines() == [
        "[yes] (14 rows: yes 9, no 5)",
        "  outlook is missing; 32.1 % of it goes with outlook = overcast: yes (5 rows, weight 4.5)",
        "  outlook is missing; 32.1 % of it goes with outlook = rainy: [yes] (5 rows, weight 4.5: yes 2.5, no 2)",
        "    wind is strong: no (2 rows)",
        "  outlook is missing; 35.7 % of it goes with outlook = sunny: [no] (5 rows: no 3, yes 2)",
        "    humidity is 70, at most 77.5: yes (2 rows)",
        "=> yes (yes 67.9 %, no 32.1 %)",
    ]
    assert [leaf for leaf, _ in explanation.leaves] == [2, 5, 7]
    assert explanation.shares == pytest.approx({"no": 4.5 / 14, "yes": 9.5 / 14})


def test_surrogates_in_words():
    tree = hand_trees.surrogate_tree()
    lost = np.nan
    assert "g2 is missing; in its stead grade is 2, at most 2.5: 5.5" in str(tree.explain([lost, 2, 0, 1]))
    assert "g2 is missing; in its stead ploidy is b, one of {a, b}: 1.5" in str(tree.explain([lost, lost, 1, 1]))
    assert "g2 is missing; in its stead age is 9, above 7: 5.5" in str(tree.explain([lost, lost, lost, 9]))
    text = "g2 is missing, nor is a value of its surrogates known; such rows go with g2 <= 13.2: 1.5"
    assert text in str(tree.explain([lost] * 4))
    rows = np.array([[lost, 2, 0, 1], [lost, lost, 1, 1], [lost, lost, lost, 9], [lost] * 4])
    assert find_leaves(tree, rows).tolist() == [tree.explain(row).leaves[0][0] for row in rows]


def test_linear_leaves_compute():
    explanation = hand_trees.linear_tree().explain([0.0, 2.0, np.nan, 0.0, 1.0])
    assert explanation.prediction == 1.0 - 2.5 + 90.0 + 5.0
    assert str(explanation).splitlines()[-1] == "=> 1 + 0.5 x0 - 1.25 x1 + 3 x2 + 4 x3 + 5 x4 = 93.5"


def test_neighbouring_numbers_are_kept_apart():
    above = float(np.nextafter(0.1, 1.0))
    model = CARTRegressor().fit([[0.1], [np.nextafter(above, 1.0)]], [1.0, 2.0])
    (step,) = model.explain([above]).steps
    assert step.words in {f"x0 is {above!r}, at most {above!r}", "x0 is 0.1, at most 0.1"}
    (step,) = model.explain([0.1]).steps
    assert step.words == f"x0 is 0.1, at most {above!r}"


def test_every_way_to_write_a_row():
    X, y = play_tennis()
    model = CARTClassifier().fit(X, y)
    frame = X.to_pandas()
    expected = str(model.explain(frame.iloc[[3]]))
    cells = frame.iloc[3].tolist()
    polars = pl.from_arrow(X)
    for row in (X.slice(3, 1), frame.iloc[3], polars[3], polars.row(3), polars.row(3, named=True), cells, tuple(cells)):
        assert str(model.explain(row)) == expected
    with pytest.warns(UserWarning, match="valid feature names"):
        assert str(model.explain([cells])) == expected
    plain = CARTRegressor().fit([[1, 2], [3, 4]], [0, 1])
    for row in (
        [3, 4],
        (3, 4),
        np.array([3, 4]),
        np.array([[3.0, 4.0]]),
        np.float32([3, 4]),
        [[3, 4]],
        pd.Series([3, 4]),
    ):
        assert plain.explain(row).prediction == 1.0


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"outlok": "rainy"}, "is 'outlok' meant to be 'outlook'?"),
        ({"outlook": "rainy"}, "missing:\n- humidity\n- temperature\n- wind\nGive every column of fit, None or NaN"),
        (["rainy", "hot"], "row has 2 values; the model was fitted on 4 features"),
        (play_tennis()[0], "row has 14 rows: give one"),
    ],
)
def test_faulty_rows_are_refused(row, message):
    model = CARTClassifier(cat_penalty=0.0).fit(*play_tennis())
    with pytest.raises(ValueError, match=message.replace("?", r"\?").replace(".", r"\.")):
        model.explain(row)


def test_faulty_values_are_refused():
    with pytest.raises(ValueError, match="fitted without names: give the values of a row as a list"):
        CARTRegressor().fit([[1], [2]], [1, 2]).explain({"a": 1})
    with pytest.raises(ValueError, match=r"values has shape \(2,\): give one value for each of the 3 features"):
        hand_trees.weather_tree().explain([1.0, 2.0])
    for value in (4.0, -1.0, 0.5, np.inf):
        with pytest.raises(ValueError, match=r"values\[0\] is .*: outlook is a category of 4 levels"):
            hand_trees.weather_tree().explain([value, 2.0, 1.0])


def test_html_is_well_formed_and_escaped():
    model = CARTClassifier(categorical_features=[0], cat_penalty=0.0)
    model.fit([["<b>", 1], ["&amp;", 2]], ["<i>no</i>", "yes"])
    html = model.explain(["<b>", 1])._repr_html_()
    root = ET.fromstring(f"<div>{html}</div>")
    text = "".join(root.itertext())
    assert '"<b>"' in text
    assert "<i>no</i>" in text
    assert {node.tag for node in root.iter()} <= {"div", "table", "tr", "td", "p", "b"}
