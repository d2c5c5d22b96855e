"""Columns are found by name, in any order, wherever a model is asked: the answer is that of the order of fit."""

import re
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVC

import spinney
from spinney import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    CARTClassifier,
    GradientBoostingClassifier,
    RandomForestClassifier,
    load_predictor,
)
from spinney.estimators.other_members import hold_rows
from spinney.table.columns import match_names, open_columns

N_ROWS = 60
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
MODELS = {
    "tree": CARTClassifier(min_samples_leaf=5),
    "forest": RandomForestClassifier(n_estimators=5, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=5, min_samples_leaf=2, random_state=0),
    "adaboost": AdaBoostClassifier(n_estimators=5),
    "bag of trees": BaggingClassifier(n_estimators=5, random_state=0),
}


def make_columns(*, has_text=True):
    """Columns of different kinds, and a target that needs each of them."""
    rng = np.random.default_rng(3)
    columns = {
        "a": rng.normal(size=N_ROWS),
        "b": rng.integers(0, 5, N_ROWS),
        "c": rng.choice(["red", "green", "blue"], N_ROWS).tolist(),
        "d": rng.normal(size=N_ROWS) * 100.0,
    }
    y = (columns["a"] + columns["b"] - 2 + 2.0 * (np.array(columns["c"]) == "red") + columns["d"] / 100 > 0).astype(int)
    if not has_text:
        del columns["c"]
    return columns, y


def turn(columns):
    """The same columns, the other way round."""
    return dict(reversed(columns.items()))


@pytest.mark.parametrize("frame_of", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("name", MODELS)
def test_a_frame_in_another_order_gives_the_same_answers(name, frame_of, tmp_path):
    columns, y = make_columns()
    model = MODELS[name].fit(frame_of(columns), y)
    expected = model.predict_proba(frame_of(columns))
    assert len(np.unique(expected, axis=0)) > 2
    moved = frame_of(turn(columns))
    np.testing.assert_array_equal(model.predict_proba(moved), expected)
    np.testing.assert_array_equal(model.predictor().predict_proba(moved), expected)
    model.save_model(tmp_path / "model")
    np.testing.assert_array_equal(load_predictor(tmp_path / "model").predict_proba(moved), expected)
    assert model.score(moved, y) == model.score(frame_of(columns), y)


@pytest.mark.parametrize("frame_of", FRAMES.values(), ids=FRAMES)
def test_members_of_other_libraries_get_the_order_of_fit(frame_of):
    columns, y = make_columns(has_text=False)
    for model in (BaggingClassifier(SVC(), n_estimators=3, random_state=0), AdaBoostClassifier(SVC(), n_estimators=3)):
        model.fit(frame_of(columns), y)
        expected = model.predict(frame_of(columns))
        np.testing.assert_array_equal(model.predict(frame_of(turn(columns))), expected)
        records = [dict(zip(turn(columns), row, strict=True)) for row in zip(*turn(columns).values(), strict=True)]
        np.testing.assert_array_equal(model.predict(records), expected)
        assert model.predict(records[0]) == expected[:1]


@pytest.mark.parametrize("kind", [BaggingRegressor, AdaBoostRegressor])
def test_members_of_other_libraries_take_rows_by_name(kind):
    columns, y = make_columns(has_text=False)
    frame = pd.DataFrame(columns)
    model = kind(LinearRegression(), n_estimators=3, random_state=0).fit(frame, y * 1.0)
    expected = model.predict(frame)
    records = frame[list(turn(columns))].to_dict("records")
    np.testing.assert_array_equal(model.predict(records), expected)
    np.testing.assert_allclose(model.predict(records[7]), expected[7:8], rtol=1e-12)
    with pytest.raises(ValueError, match="yet now missing:\n- b"):
        model.predict({"a": 1.0, "d": 2.0})


def test_members_that_know_names_take_text_by_name():
    columns, y = make_columns()
    steps = make_pipeline(
        make_column_transformer((OneHotEncoder(), ["c"]), remainder="passthrough"), LinearRegression()
    )
    frame = pd.DataFrame(columns)
    model = BaggingRegressor(steps, n_estimators=2, random_state=0).fit(frame, y * 1.0)
    records = frame[list(turn(columns))].to_dict("records")
    np.testing.assert_allclose(model.predict(records), model.predict(frame), rtol=1e-12)
    np.testing.assert_allclose(model.predict(records[3]), model.predict(frame[3:4]), rtol=1e-12)


@pytest.mark.parametrize("has_text", [False, True])
def test_without_pandas_rows_by_name_are_an_array(monkeypatch, has_text):
    monkeypatch.setitem(sys.modules, "pandas", None)
    records = [{"b": None, "a": 2}, {"b": "tall" if has_text else 0.5, "a": 3}]
    rows = hold_rows(records, match_names(open_columns(records), ("a", "b"), "Model")).data
    if has_text:
        assert rows.tolist() == [[2, None], [3, "tall"]]
    else:
        np.testing.assert_array_equal(rows, np.array([[2.0, np.nan], [3.0, 0.5]]))
    assert rows.dtype == (object if has_text else np.float64)


def test_what_needs_the_training_rows_knows_them_in_another_order():
    columns, y = make_columns()
    frame = pd.DataFrame(columns)
    moved = frame[["d", "c", "b", "a"]]
    forest = RandomForestClassifier(n_estimators=20, random_state=0).fit(frame, y)
    for method in ("permutation", "impurity_oob"):
        one, other = (forest.importance(method, X, y).importance for X in (frame, moved))
        np.testing.assert_array_equal(one, other)
    tree = CARTClassifier(max_depth=2).fit(frame, y)
    assert str(spinney.trace(tree, moved, y)) == str(spinney.trace(tree, frame, y))


@pytest.mark.parametrize("scoring", ["loss", "accuracy"])
def test_validation_rows_may_have_another_order(scoring):
    columns, y = make_columns()
    frame = pd.DataFrame(columns)
    model = GradientBoostingClassifier(n_estimators=5, scoring=scoring, random_state=0)
    curves = [model.fit(frame, y, X_val=X, y_val=y).validation_score_ for X in (frame, frame[["c", "a", "d", "b"]])]
    np.testing.assert_array_equal(*curves)


@pytest.mark.parametrize("frame_of", FRAMES.values(), ids=FRAMES)
def test_selected_columns_come_in_the_order_of_fit(frame_of):
    columns, y = make_columns(has_text=False)
    selector = spinney.OOBSelector(
        RandomForestClassifier(n_estimators=20, random_state=0), max_features=2, threshold=0.0
    )
    selector.fit(frame_of(columns), y)
    expected = pd.DataFrame(np.asarray(selector.transform(frame_of(columns))))
    moved = selector.transform(frame_of(turn(columns)))
    assert type(moved) is type(frame_of(columns))
    assert [*open_columns(moved).names] == selector.get_feature_names_out().tolist()
    pd.testing.assert_frame_equal(pd.DataFrame(np.asarray(moved)), expected)


def test_matched_columns_say_where_they_stood():
    columns = open_columns(pd.DataFrame({"a": [1], "b": [2], "c": [3]}))
    assert match_names(columns, ("a", "b", "c"), "Model") is columns
    moved = match_names(columns, np.array(["c", "a", "b"], object), "Model")
    assert (moved.names, moved.order) == (("c", "a", "b"), (2, 0, 1))
    assert [moved.read(j).read().tolist() for j in range(3)] == [[3], [1], [2]]


@pytest.mark.parametrize(
    ("names", "fix"),
    [
        (("a", "b", "c"), "unseen at fit time:\n- c\nLeave those out: `feature_names_in_` has the names of fit."),
        (("a",), "yet now missing:\n- b\nGive every column of fit, None or NaN where a value is missing."),
        (
            ("a", "x"),
            "unseen at fit time:\n- x\nFeature names seen at fit time, yet now missing:\n- b\nGive every column",
        ),
        (("a", "B"), "Give every column"),
    ],
)
def test_other_names_are_refused_with_the_fix(names, fix):
    frame = pd.DataFrame({name: [1] for name in names})
    with pytest.raises(ValueError, match=re.escape(fix)):
        match_names(open_columns(frame), ("a", "b"), "Model")


def test_a_name_that_is_nearly_one_of_fit_is_told():
    frame = pd.DataFrame({"humidity ": [1], "wind": [2]})
    with pytest.raises(ValueError, match="Rename: is 'humidity ' meant to be 'humidity'\\?"):
        match_names(open_columns(frame), ("wind", "humidity"), "Model")
