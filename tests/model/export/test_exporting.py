"""`spinney.export`: what it takes, what it reports, what it refuses."""

import datetime as dt
import importlib.util
import json
import math
import sqlite3
import struct
import subprocess
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import spinney
from export_cases import ask_node, ask_python, ask_sqlite, fitted, needs_node
from spinney.model.export import exporting
from spinney.model.export.c_source import list_c
from spinney.model.export.scored import CannotRunError, Scored
from spinney.model.export.sql_dialects import DIALECTS, sqlite_number
from spinney.model.export.tree_sum import to_tree_sum

TREE = spinney.CARTRegressor().fit([[1.0], [2.0], [3.0]], [10.0, 20.0, 30.0])


def test_files_and_suffixes(tmp_path):
    model = tmp_path / "model.spn"
    TREE.save_model(model)
    for suffix, to in {".py": "python", ".js": "javascript", ".c": "c", ".sql": "sql", ".json": "json"}.items():
        path = tmp_path / f"model{suffix}"
        exported = spinney.export(model, path=path)
        assert (exported.to, exported.path) == (to, str(path))
        assert path.read_bytes().decode() == exported.content
        assert exported.content == spinney.export(TREE.predictor(), to).content
    with pytest.raises(ValueError, match=r"'model.xyz': the suffix does not say what to export to: give `to`"):
        spinney.export(model, path="model.xyz")
    with pytest.raises(TypeError, match="say what to export to: one of json, python"):
        spinney.export(model)


def test_the_report_says_how_near_it_comes():
    exported = spinney.export(TREE, "python", X=[[1.5], [math.inf]])
    assert exported.n_rows == 202
    assert repr(exported) == f"<python, {len(exported.content):,} letters: the same as the model on 202 rows>"
    unchecked = spinney.export(TREE, "python", check=False)
    assert (unchecked.n_rows, unchecked.difference) == (0, None)
    assert unchecked.verdict == "not run here: check=False"


def test_an_export_that_differs_is_not_handed_over(monkeypatch, tmp_path):
    def run(_content, form, cells):
        return Scored(np.full((len(cells), form.n_answers), 10.5), None)

    monkeypatch.setitem(exporting.TARGETS, "json", exporting.TARGETS["json"]._replace(run=run))
    with pytest.raises(RuntimeError, match=r"differs from the model by 19\.5, more than rounding explains"):
        spinney.export(TREE, "json", tmp_path / "model.json")
    assert not list(tmp_path.iterdir())
    monkeypatch.setitem(exporting.TARGETS, "json", exporting.TARGETS["json"]._replace(run=run, tolerance=1.0))
    exported = spinney.export(TREE, "json")
    assert exported.difference == 19.5
    assert exported.verdict == "on 200 rows the largest difference is 19.5"


def test_classes_that_differ_are_counted(monkeypatch):
    def run(_content, form, cells):
        return Scored(np.full((len(cells), form.n_answers), 0.5), ["no"] * len(cells))

    model = spinney.CARTClassifier(max_depth=1).fit([[1.0], [2.0]], ["no", "yes"])
    monkeypatch.setitem(exporting.TARGETS, "json", exporting.TARGETS["json"]._replace(run=run, tolerance=1.0))
    exported = spinney.export(model, "json")
    assert 0 < exported.n_other_classes < 200
    assert exported.verdict.endswith(f"is 0.5, and {exported.n_other_classes} have another class")


def test_what_cannot_be_run_is_told(monkeypatch):
    def run(_content, _form, _cells):
        raise CannotRunError("there is no engine")

    monkeypatch.setitem(exporting.TARGETS, "json", exporting.TARGETS["json"]._replace(run=run))
    exported = spinney.export(TREE, "json")
    assert exported.difference is None
    assert exported.verdict == "not run here: there is no engine"
    monkeypatch.setattr("shutil.which", lambda _: None)
    assert spinney.export(TREE, "c").note == "there is no C compiler"
    assert spinney.export(TREE, "js").note == "node is not installed"
    assert "no PostgreSQL" in spinney.export(TREE, "sql", dialect="postgresql").note


# --- refusals -----------------------------------------------------------------------------------------------------


def test_refusals():
    with pytest.raises(ValueError, match="to='cobol': give one of json, python"):
        spinney.export(TREE, "cobol")
    with pytest.raises(TypeError, match="there is no option 'dialect': 'python' takes none"):
        spinney.export(TREE, "python", dialect="duckdb")
    with pytest.raises(TypeError, match="there is no option 'tables': 'sql' takes dialect, table, key"):
        spinney.export(TREE, "sql", tables="t")
    with pytest.raises(ValueError, match="dialect='oracle': give one of sqlite, duckdb, postgresql"):
        spinney.export(TREE, "sql", dialect="oracle")
    for to in ("c", "javascript"):
        with pytest.raises(ValueError, match="name='1x': it must be a name"):
            spinney.export(TREE, to, name="1x")
    with pytest.raises(TypeError, match="list is no model of Spinney"):
        spinney.export([], "c")
    with pytest.raises(NotFittedError):
        spinney.export(spinney.CARTRegressor(), "c")


def test_models_of_several_kinds_are_refused():
    X, y = [[1.0], [2.0], [3.0], [4.0]] * 5, [0, 0, 1, 1] * 5
    model = spinney.BaggingClassifier(spinney.C45Classifier(), n_estimators=2).fit(X, y)
    with pytest.raises(ValueError, match=r"BaggingClassifier cannot be exported as a whole: .*; export each member"):
        spinney.export(model, "sql")
    assert spinney.export(model.estimators_[0], "sql").difference == 0.0


def test_a_weighted_median_of_many_members_is_no_sql(monkeypatch):
    monkeypatch.setattr("spinney.model.export.sql.MOST_MEMBERS", 2)
    with pytest.raises(ValueError, match=r"weighted median.*\(at most 2\): export it to c, python, javascript or json"):
        spinney.export(fitted("adaboost numbers")[0], "sql")


def test_a_weighted_median_of_equal_members_in_sql():
    X = np.arange(40.0)[:, None]
    model = spinney.AdaBoostRegressor(spinney.CARTRegressor(max_depth=1), n_estimators=50).fit(X, X[:, 0] // 10)
    assert spinney.export(model, "sql", X=X).difference == 0.0


def test_a_stage_of_too_many_columns_is_refused(monkeypatch):
    model = fitted("cart classes")[0]
    assert spinney.export(model, "sql").difference == 0.0
    monkeypatch.setitem(DIALECTS, "sqlite", replace(DIALECTS["sqlite"], most_columns=3))
    with pytest.raises(ValueError, match=r"needs \d columns in a stage, and sqlite has at most 3: export it to duckdb"):
        spinney.export(model, "sql")


def test_a_long_query_is_not_run(monkeypatch):
    monkeypatch.setattr("spinney.model.export.sql.MOST_NODES", 10)
    assert "takes an engine long to read" in spinney.export(fitted("cart classes")[0], "sql").note


def test_classes_that_no_export_can_name():
    model = spinney.CARTClassifier().fit([[1.0], [2.0]], np.array([2**60 + 1, 5]))
    with pytest.raises(
        ValueError, match="the class 1152921504606846977 is beyond 2\\*\\*53, and no number in JavaScript"
    ):
        spinney.export(model, "javascript")
    X = pa.table({"code": pa.array([2**60 + 1, 7] * 4).dictionary_encode()})
    with pytest.raises(ValueError, match="the level of column 'code' 1152921504606846977 is beyond"):
        spinney.export(spinney.CARTRegressor().fit(X, [1.0, 2.0] * 4), "javascript")
    assert ask_python(spinney.export(model, "python").content, [[1.0]])[1] == [2**60 + 1]


def test_rows_that_exports_refuse():
    module = {}
    exec(spinney.export(TREE, "python").content, module)
    with pytest.raises(ValueError, match="a row has 1 cells, not 2"):
        module["predict"]([1.0, 2.0])
    with pytest.raises(ValueError, match="the row has no column 'x0'"):
        module["predict"]({"x1": 1.0})
    with pytest.raises(TypeError, match="column 'x0' holds numbers, not '1'"):
        module["predict"](["1"])
    linear = {}
    exec(spinney.export(fitted("cart linear")[0], "python").content, linear)
    with pytest.raises(ValueError, match="a linear leaf cannot take infinite values"):
        [linear["predict"]([math.inf] * 4), linear["predict"]([-math.inf] * 4)]


# --- levels that are numbers --------------------------------------------------------------------------------------


def test_levels_of_numbers_and_booleans():
    codes = pa.array([3, 3, 7, 2**60 + 1] * 4).dictionary_encode()
    X = pa.table({"flag": pa.array([True, False] * 8).dictionary_encode(), "code": codes})
    model = spinney.CARTRegressor().fit(X, np.array([1.0, 2.0, 3.0, 4.0] * 4))
    rows = [[True, 3], [False, 3], [1, 3.0], [True, 7], [False, 2**60 + 1], [2, 8], [None, math.nan]]
    expected = [1.0, 2.0, 1.0, 3.0, 4.0]
    answers, _ = ask_python(spinney.export(model, "python").content, rows)
    assert answers[:5, 0].tolist() == expected
    missing = model.predictor()(np.full(2, np.nan))
    assert answers[5:, 0].tolist() == [missing, missing]
    found, _ = ask_sqlite(spinney.export(model, "sql").content, ["flag", "code"], rows[:-1])
    assert found[:, 0].tolist() == answers[:-1, 0].tolist()


@needs_node
def test_levels_of_numbers_and_booleans_in_javascript():
    X = pa.table({"code": pa.array([3, 7, 2**60, 11] * 4).dictionary_encode()})
    model = spinney.CARTRegressor().fit(X, np.array([1.0, 2.0, 3.0, 4.0] * 4))
    found = ask_node({"m": spinney.export(model, "js").content}, {"m": [[3], [2**60], [11]]})
    assert found["m"][0][:, 0].tolist() == [1.0, 3.0, 4.0]
    flags = spinney.CARTRegressor().fit(
        pa.table({"flag": pa.array([True, False] * 8).dictionary_encode()}), [1.0, 2.0] * 8
    )
    found = ask_node({"m": spinney.export(flags, "js").content}, {"m": [[True], [False], [1], [0.0]]})
    assert found["m"][0][:, 0].tolist() == [1.0, 2.0, 1.0, 2.0]


# --- literals -----------------------------------------------------------------------------------------------------


@given(st.floats(allow_nan=False))
def test_sqlite_reads_its_literals_exactly(x):
    with sqlite3.connect(":memory:") as connection:
        (found,) = connection.execute(f"SELECT {sqlite_number(x)}").fetchone()
    assert found == x


def test_literals_that_sqlite_would_misread_are_quotients():
    bits = [4503599627370497, 4607182418800017409, 9218868437227405311, 1, 4611686018427387903]
    for x in (struct.unpack("d", struct.pack("Q", word))[0] for word in bits):
        assert "/" in sqlite_number(x) or "*" in sqlite_number(x)
    assert [sqlite_number(x) for x in (0.5, -3.0, 1e15, 0.001)] == ["0.5", "-3.0", "1000000000000000.0", "0.001"]


def test_literals_of_other_engines():
    duck, post = DIALECTS["duckdb"], DIALECTS["postgresql"]
    assert [duck.number(x) for x in (0.5, -2.0, math.inf, 1e300)] == [
        "0.5e0", "(-2.0e0)", "CAST('Infinity' AS DOUBLE)", "1e+300"
    ]  # fmt: skip
    assert [post.number(x) for x in (0.5, -math.inf)] == ["'0.5'::float8", "'-Infinity'::float8"]
    assert duck.text("a\0'b") == "('a' || chr(0) || '''b')"
    assert (post.text("a\0"), post.text("a\\'"), post.text("\ud800")) == (None, "E'a\\\\'''", None)


def test_arrays_of_c_are_never_empty():
    assert list_c("static const int NAME_x", []) == "static const int NAME_x[] = {\n    0\n};\n"


# --- the form -----------------------------------------------------------------------------------------------------


def test_the_form_of_a_tree_of_the_lecture():
    table = spinney.datasets.load("play_tennis")
    X, y = table.drop_columns(["play"]), table["play"].to_numpy(zero_copy_only=False)
    form = to_tree_sum(spinney.ID3Classifier().fit(X, y).predictor())
    assert form.classes == ("no", "yes")
    assert [form.columns[j].name for j in form.used] == ["outlook", "humidity", "wind"]
    assert form.nodes.kind[0] == 3
    assert form.n_branches(0) == 3
    assert sorted(form.leaves) == [[(0, 1.0)], [(0, 1.0)], [(1, 1.0)], [(1, 1.0)], [(1, 1.0)]]
    assert form.depths.max() == 2


def test_json_is_as_documented():
    tables = json.loads(spinney.export(TREE, "json").content)
    assert list(tables) == [
        "format", "version", "library", "columns", "classes", "start", "roots", "nodes", "subsets", "leaves",
        "surrogates", "terms", "steps", "choice",
    ]  # fmt: skip
    assert tables["nodes"] == {
        "kind": [1, 0, 1, 0, 0],
        "column": [0, -1, 0, -1, -1],
        "cut": [1.5, 0.0, 2.5, 0.0, 0.0],
        "subset": [0] * 5,
        "first": [1, 0, 3, 1, 2],
        "missing": tables["nodes"]["missing"],
    }
    assert tables["leaves"] == [[[0, 10.0]], [[0, 20.0]], [[0, 30.0]]]


def test_exports_say_how_the_parts_of_dates_are_made():
    name = "so*/ld"  # which must end no comment
    days = np.datetime64("2024-03-04") + np.arange(0, 600, 25)
    X = pa.table({"x": np.arange(24.0), name: days})
    model = spinney.CARTRegressor(max_depth=3).fit(X, np.arange(24) % 7)
    columns = [f"{name}.{part}" for part in ("year", "month", "weekday", "days")]
    tables = json.loads(spinney.export(model, "json").content)
    assert tables["dates"] == [{"name": name, "columns": columns, "first_day": "2024-03-04", "in_utc": False}]
    for to in ("sql", "c", "pmml"):
        exported = spinney.export(model, to, X=X)
        note = next(line for line in exported.content.splitlines() if "first_day" in line)
        start = note.index("[{")
        assert json.JSONDecoder().raw_decode(note[start:])[0] == tables["dates"]
        assert "*/" not in note[start : note.index("}]")]
    assert "dates" not in json.loads(spinney.export(TREE, "json").content)
    if importlib.util.find_spec("onnx"):
        import onnx

        note = onnx.load_from_string(spinney.export(model, "onnx", check=False).content).doc_string
        assert json.loads(note[note.index("[{") :]) == tables["dates"]
    module = {}
    exec(spinney.export(model, "python").content, module)
    with pytest.raises(ValueError, match="the row has no column"):
        module["predict"]({"x": 1.0, name: "2024-05-31"})


def test_levels_of_another_kind_are_errors():
    table = pa.table({"zip": ["10", "20", "30", "20"] * 5})
    model = spinney.CARTClassifier().fit(table, np.array([0, 1, 0, 1] * 5))
    with pytest.raises(ValueError, match="Convert it to text"):
        model.predict(pa.table({"zip": [20]}))
    with pytest.raises(TypeError, match="column 'zip' has levels such as '10', of another kind than 20"):
        ask_python(spinney.export(model, "python").content, [[20]])
    numbered = pd.DataFrame({"zip": pd.Categorical([10, 20, 30, 20] * 5)})
    model = spinney.CARTClassifier().fit(numbered, np.array([0, 1, 0, 1] * 5))
    with pytest.raises(TypeError, match="column 'zip' has levels such as 10, of another kind than '20'"):
        ask_python(spinney.export(model, "python").content, [["20"]])


@needs_node
def test_levels_of_another_kind_are_errors_in_javascript():
    model = spinney.CARTClassifier().fit(pa.table({"zip": ["10", "20"] * 5}), np.array([0, 1] * 5))
    asked = spinney.export(model, "js").content + "\nmodule.exports.predict([20]);\n"
    done = subprocess.run(["node", "-"], input=asked, capture_output=True, text=True, check=False)
    assert 'TypeError: column "zip" has levels such as "10", of another kind than 20' in done.stderr


def test_sqlite_reads_numbers_that_are_text():
    model = spinney.CARTRegressor().fit(pa.table({"a": [1.0, 2.0, 3.0]}), [10.0, 20.0, 30.0])
    cells = [("1",), (" 2 ",), ("3e0",), ("",), ("2 or so",), ("0x1",), (2,), (None,)]
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE data (a TEXT)")  # as an imported CSV is
        database.executemany("INSERT INTO data VALUES (?)", cells)
        found = [row[0] for row in database.execute(spinney.export(model, "sql").content)]
    missing = model.predict(pa.table({"a": [None]}, schema=pa.schema([("a", pa.float64())])))[0]
    assert found == [10.0, 20.0, 30.0, missing, missing, missing, 20.0, missing]


def test_sqlite_reads_levels_as_other_engines_do():
    y = np.array([0, 1, 0, 1] * 5)
    text = spinney.CARTClassifier().fit(pa.table({"zip": ["10", "20", "30", "20"] * 5}), y)
    numbers = spinney.CARTClassifier().fit(pd.DataFrame({"zip": pd.Categorical([10, 20, 30, 20] * 5)}), y)
    for model in (text, numbers):
        for kind in ("INTEGER", "TEXT"):
            with sqlite3.connect(":memory:") as database:
                database.execute(f"CREATE TABLE data (zip {kind})")
                database.executemany("INSERT INTO data VALUES (?)", [(10,), (20,), (30,)])
                found = [row[0] for row in database.execute(spinney.export(model, "sql").content)]
            assert found == [0, 1, 0]


def test_options_of_a_wrong_type_are_named():
    for to in ("c", "javascript"):
        with pytest.raises(ValueError, match="name=5: it must be a name"):
            spinney.export(TREE, to, name=5)
    with pytest.raises(TypeError, match="table=5: give a name, or a list of names"):
        spinney.export(TREE, "sql", table=5)
    with pytest.raises(ValueError, match=r"table=\[\]: give the name of a table"):
        spinney.export(TREE, "sql", table=[])
    with pytest.raises(TypeError, match=r"key=\[1\]: give a name, or a list of names"):
        spinney.export(TREE, "sql", key=[1])
    with pytest.raises(ValueError, match=r"dialect=\['sqlite'\]: give one of"):
        spinney.export(TREE, "sql", dialect=["sqlite"])
    with pytest.raises(ValueError, match=r"to=\['c'\]: give one of"):
        spinney.export(TREE, ["c"])
    with pytest.raises(TypeError, match="give True or False; rows to compare are X"):
        spinney.export(TREE, "python", check=np.zeros((2, 2)))
    with pytest.raises(TypeError, match="CARTRegressor is a class: give a fitted model"):
        spinney.export(spinney.CARTRegressor, "python")


def test_keys_beside_answers():
    with pytest.raises(ValueError, match="key 'Prediction' is the name of an answer: rename"):
        spinney.export(TREE, "sql", key="Prediction")
    assert '"Prediction"' in spinney.export(TREE, "sql", key="Prediction", dialect="postgresql").content
    assert spinney.export(TREE, "sql", key=["id", "ID"]).difference == 0.0


def test_rows_of_x_are_numbered_as_in_x():
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = spinney.CARTRegressor(leaf_model="linear", max_depth=1).fit(X, X[:, 0] + 2.0 * X[:, 1])
    for to in ("python", "sql"):
        with pytest.raises(ValueError, match="inf in row 1,"):
            spinney.export(model, to, X=[[0.0, 0.0], [np.inf, np.inf]])


def test_a_difference_is_refused_beside_infinite_answers():
    answers = np.array([[1.0], [np.inf]])
    with pytest.raises(RuntimeError, match="differs from the model"):
        exporting.refuse_difference(1e-3, "c", answers, exporting.EXACT)


def test_dates_go_in_as_parts():
    first = dt.date(2021, 3, 5)
    days = [first + dt.timedelta(days=37 * k % 400) for k in range(40)]
    table = pa.table({"z": pa.array(np.arange(40.0) % 3.0), "sold": pa.array(days)})
    y = [float((day - first).days > 200) for day in days]
    model = spinney.CARTRegressor().fit(table, y)
    tables = json.loads(spinney.export(model, "json", X=table).content)
    assert [column["name"] for column in tables["columns"]] == ["z", *tables["dates"][0]["columns"]]
    since = dt.date.fromisoformat(tables["dates"][0]["first_day"])
    parts = [[0.0, day.year, day.month, day.weekday(), (day - since).days] for day in days]
    assert ask_python(spinney.export(model, "python").content, parts)[0].ravel().tolist() == y


def test_what_is_no_number_is_refused_by_the_column():
    content = spinney.export(TREE, "python").content
    for cell in ("1", b"1", [1.0], dt.date(2024, 1, 1)):
        with pytest.raises(TypeError, match="column 'x0' holds numbers, not"):
            ask_python(content, [[cell]])
    assert ask_python(content, [[np.float32(1.0)], [True], [Fraction(5, 2)]])[0].ravel().tolist() == [10.0, 10.0, 20.0]


@needs_node
def test_what_is_no_number_is_refused_by_javascript():
    asked = """
const told = ["1", new Date(5), {}, []].map((cell) => {
  try { return module.exports.predict([cell]); } catch (error) { return error.message; }
});
console.log(JSON.stringify([...told, module.exports.predict([true]), module.exports.predict([2n])]));
"""
    content = spinney.export(TREE, "js").content + asked
    done = subprocess.run(["node", "-"], input=content, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [*['column "x0" holds numbers'] * 4, 10, 20]


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_a_table_in_a_schema_is_made_and_queried(dialect):
    if dialect == "duckdb":
        pytest.importorskip("duckdb", reason="DuckDB is not installed")
    for place in (["lecture", "days"], ["main", "days"], ["s'c\"h;", "t;--"]):
        assert spinney.export(TREE, "sql", dialect=dialect, table=place).difference == 0.0
    assert "not made here" in spinney.export(TREE, "sql", dialect=dialect, table=["a", "b", "c"]).note
