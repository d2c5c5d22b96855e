"""Exports answer as the model does, to the bit, in every language of float64."""

import json

import numpy as np
import pandas as pd
import pytest

import spinney
from export_cases import (
    LARGE,
    NAMES,
    ask_c,
    ask_node,
    ask_python,
    ask_sqlite,
    fitted,
    names_of,
    needs_gcc,
    needs_node,
    plain_cells,
    table_of,
    truth_of,
)
from spinney.model.export.evaluator import Evaluator


def write(model, to, **options):
    return spinney.export(model, to, check=False, **options).content


def same(found, model, rows):
    """The same bits, but for the sign of zero, and the same classes."""
    answers, classes = found
    expected, predicted = truth_of(model, rows)
    np.testing.assert_array_equal(answers.reshape(expected.shape), expected)
    if predicted is not None:
        assert classes == predicted


# --- every model --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_python_gives_the_bits_of_the_model(name):
    model, rows = fitted(name)
    exported = spinney.export(model, "python", X=table_of(model, rows))
    assert (exported.difference, exported.n_other_classes, exported.n_rows) == (0.0, 0, 200 + len(rows))
    same(ask_python(exported.content, rows), model, rows)
    records = [dict(zip(names_of(model), row, strict=True)) for row in rows[:20]]
    same(ask_python(exported.content, records), model, rows[:20])


@pytest.mark.parametrize("name", NAMES)
def test_json_holds_all_that_answers_need(name):
    model, rows = fitted(name)
    evaluator = Evaluator(json.loads(write(model, "json")))
    predicted = None if evaluator.classes is None else [evaluator.predict(row) for row in rows]
    same((np.array([evaluator.answer(row) for row in rows]), predicted), model, rows)


@pytest.mark.parametrize("name", NAMES)
def test_sqlite_gives_the_bits_of_the_model(name):
    model, rows = fitted(name)
    exported = spinney.export(model, "sql")
    assert exported.difference == 0.0
    same(ask_sqlite(exported.content, names_of(model), plain_cells(rows)), model, rows)


@needs_node
def test_javascript_gives_the_bits_of_the_model():
    contents = {name: write(fitted(name)[0], "js") for name in NAMES}
    found = ask_node(contents, {name: plain_cells(fitted(name)[1]) for name in NAMES})
    for name in NAMES:
        same(found[name], *fitted(name))


def ask_all_in_c(names, folder, **flags):
    models = {name.replace(" ", "_"): fitted(name) for name in names}
    sources = {name: write(model, "c", name=name) for name, (model, _) in models.items()}
    values = {name: model.predictor().encode(table_of(model, rows)) for name, (model, rows) in models.items()}
    n_answers = {name: truth_of(model, rows[:1])[0].shape[1] for name, (model, rows) in models.items()}
    found = ask_c(sources, values, n_answers, folder, **flags)
    for name, (model, rows) in models.items():
        answers, codes = found[name]
        labels = getattr(model, "classes_", None)
        same((answers, None if labels is None else labels[codes].tolist()), model, rows)


@needs_gcc
def test_c_gives_the_bits_of_the_model_and_nothing_to_warnings_and_sanitizers(tmp_path):
    ask_all_in_c(NAMES, tmp_path)


@needs_gcc
@pytest.mark.slow
@pytest.mark.parametrize("flags", [["-O3", "-march=native", "-std=gnu17"], ["-Os"]])
def test_c_gives_the_same_bits_where_a_compiler_may_fuse(flags, tmp_path):
    ask_all_in_c(NAMES, tmp_path, flags=flags)


@pytest.mark.parametrize("to", ["c", "javascript"])
def test_what_runs_exports_here_agrees(to):
    for name in ("forest named", "cart surrogates", "boosting quantiles", "adaboost classes"):
        exported = spinney.export(fitted(name)[0], to)
        assert exported.difference in {0.0, None}
        assert exported.n_other_classes == 0


def test_duckdb_gives_the_bits_of_the_model():
    pytest.importorskip("duckdb", reason="DuckDB is not installed")
    for name in (
        "cart surrogates",
        "cart linear",
        "c45 named",
        "forest named",
        "boosting classes",
        "boosting quantiles",
    ):
        assert spinney.export(fitted(name)[0], "sql", dialect="duckdb").difference == 0.0


@pytest.mark.slow
def test_duckdb_gives_the_bits_of_every_model():
    pytest.importorskip("duckdb", reason="DuckDB is not installed")
    for name in NAMES:
        assert spinney.export(fitted(name)[0], "sql", dialect="duckdb").difference == 0.0


def test_rules_are_those_of_the_trees():
    tree, forest = fitted("cart named")[0], fitted("forest named")[0]
    assert write(tree, "rules") == f"{tree.tree_.to_rules()}\n"
    text = write(forest, "rules")
    assert text.startswith(f"tree 0\n{forest.forest_[0].to_rules()}\n\ntree 1\n")
    assert spinney.export(tree, "rules").note == "it is to be read"


# --- shapes that models seldom have -------------------------------------------------------------------------------


def same_everywhere(model, rows, targets=("python", "sql", "javascript", "c")):
    for to in targets:
        exported = spinney.export(model, to, X=np.array(rows))
        assert exported.difference in {0.0, None}, to
        assert exported.n_other_classes == 0


def test_models_of_one_node():
    X, y = [[1.0], [2.0]], [3.0, 3.0]
    for model in (
        spinney.CARTRegressor().fit(X, y),
        spinney.CARTClassifier().fit(X, ["a", "a"]),
        spinney.RandomForestRegressor(n_estimators=2).fit(X, y),
        spinney.GradientBoostingRegressor(n_estimators=2).fit(X, y),
        spinney.AdaBoostClassifier(n_estimators=2).fit(X, ["a", "a"]),
    ):
        same_everywhere(model, X)


def chain(depth):
    """A tree whose nodes are a chain, and rows at all its thresholds."""
    x = np.arange(depth + 1.0)
    return spinney.CARTRegressor(max_depth=depth).fit(x[:, None], 4.0**x), x[:, None]


def test_deep_trees_go_through_stages_of_sql():
    model, X = chain(120)
    assert model.tree_.depth == 119
    same_everywhere(model, np.concatenate([X, X + 0.5]), ("python", "sql", "c"))


@pytest.mark.compiled(reason="takes a minute interpreted")
def test_hundreds_of_trees():
    model, rows = fitted(LARGE)
    same(ask_python(write(model, "python"), rows), model, rows)
    same(ask_sqlite(write(model, "sql"), names_of(model), plain_cells(rows)), model, rows)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    model = spinney.GradientBoostingRegressor(n_estimators=300, max_leaf_nodes=3, random_state=0).fit(X, X.sum(axis=1))
    same_everywhere(model, X, ("python", "sql"))


def test_many_classes():
    X = np.arange(60.0).repeat(2)[:, None]
    y = X[:, 0].astype(int)
    same_everywhere(spinney.RandomForestClassifier(n_estimators=4, random_state=0).fit(X, y), X, ("python", "sql"))
    boosted = spinney.GradientBoostingClassifier(n_estimators=2, random_state=0).fit(X, y)
    same_everywhere(boosted, X, ("python", "sql"))


@pytest.mark.slow
def test_thousands_of_trees_and_hundreds_of_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 4))
    model = spinney.GradientBoostingRegressor(n_estimators=2000, max_leaf_nodes=8, random_state=0)
    same_everywhere(model.fit(X, X.sum(axis=1)), X)
    y = np.arange(900) % 300
    forest = spinney.RandomForestClassifier(n_estimators=10, random_state=0).fit(rng.normal(size=(900, 4)), y)
    same_everywhere(forest, X)


def test_python_takes_every_sign_of_a_missing_value():
    table = pd.DataFrame({"x": [1.0, 2.0, np.nan, 4.0] * 9, "kind": ["a", "b", None, "b"] * 9})
    model = spinney.CARTClassifier(min_samples_leaf=1).fit(table, [0, 1, 2, 3] * 9)
    module = {}
    exec(write(model, "python"), module)
    expected = module["predict"]({"x": None, "kind": None})
    assert expected == 2
    for missing in (pd.NA, np.nan, pd.NaT, float("nan"), np.float32("nan")):
        assert module["predict"]({"x": missing, "kind": missing}) == expected
        assert module["answer"]([missing, missing]) == module["answer"]([None, None])
    with pytest.raises(TypeError, match="'x' holds numbers"):
        module["predict"]({"x": {}, "kind": "a"})


def test_sums_beyond_float64_are_scaled():
    X = np.arange(8.0)[:, None]
    model = spinney.RandomForestRegressor(n_estimators=5, random_state=0).fit(X, np.linspace(-1.0, 1.0, 8) * 1.7e308)
    assert model.predictor().shift > 0
    same_everywhere(model, X)
