"""`spinney predict` and `spinney evaluate`."""

import csv
import gzip
import io
import json
import sys
import tempfile
import types

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from sklearn import metrics

import spinney
from command_line import fails, run, works
from spinney.cli.predictions import count_rows
from spinney.table import prediction_batches

HOUSES = spinney.datasets.load("california_housing").slice(0, 300)
WEATHER = spinney.datasets.load("weather_numeric")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A tree for classes, a forest for numbers, and one without names."""
    folder = tmp_path_factory.mktemp("models")
    spinney.CARTClassifier(max_depth=2).fit(WEATHER.drop_columns(["play"]), WEATHER["play"].to_pylist()).save_model(
        folder / "weather.spn"
    )
    forest = spinney.RandomForestRegressor(n_estimators=30, oob_score=True, random_state=0)
    forest.fit(HOUSES.drop_columns(["MedHouseVal"]), HOUSES["MedHouseVal"].to_numpy()).save_model(folder / "houses.spn")
    spinney.CARTClassifier().fit([[1.0, 2.0], [3.0, 4.0]], [7, 8]).save_model(folder / "plain.spn")
    return folder


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def write_csv(table, path):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table.column_names)
        writer.writerows(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return path


# --- predict ------------------------------------------------------------------------------------------------------


def test_predictions_are_those_of_the_model_in_order(models, tmp_path):
    expected = spinney.load_model(models / "houses.spn").predict(HOUSES.drop_columns(["MedHouseVal"])).tolist()
    parquet.write_table(HOUSES, tmp_path / "t.parquet")
    feather.write_feather(HOUSES, tmp_path / "t.arrow")
    with pa.OSFile(str(tmp_path / "s.arrow"), "wb") as file, pa.ipc.new_stream(file, HOUSES.schema) as writer:
        writer.write_table(HOUSES)
    write_csv(HOUSES, tmp_path / "t.csv")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    for name in ("t.csv", "t.csv.gz", "t.parquet", "t.arrow", "s.arrow"):
        rows = rows_of(works("predict", models / "houses.spn", tmp_path / name))
        assert [float(row["prediction"]) for row in rows] == expected, name


def test_batches_make_one_table(models, tmp_path, monkeypatch):
    whole = works("predict", models / "weather.spn", "weather_numeric", "--probabilities")
    monkeypatch.setattr(prediction_batches, "BATCH_ROWS", 4)
    monkeypatch.setattr(prediction_batches.open_batches, "__defaults__", (4,))
    monkeypatch.setattr(prediction_batches, "BLOCK_BYTES", 70)  # two rows
    path = write_csv(WEATHER, tmp_path / "t.csv")
    parquet.write_table(WEATHER, tmp_path / "t.parquet")
    assert len(list(prediction_batches.open_batches(path).rows)) > 3
    assert len(list(prediction_batches.open_batches(tmp_path / "t.parquet").rows)) == 4
    for name in ("t.csv", "t.parquet"):
        assert works("predict", models / "weather.spn", tmp_path / name, "--probabilities") == whole
        for out in ("o.csv", "o.csv.gz", "o.parquet", "o.arrow"):
            works("predict", models / "weather.spn", tmp_path / name, "--out", tmp_path / out, "--force")
            read = spinney.read_table(tmp_path / out)
            assert read["prediction"].to_pylist() == [row["prediction"] for row in rows_of(whole)]


def test_kept_columns_are_as_they_were_written(models, tmp_path):
    text = 'id,windy,humidity,outlook,note,temperature\n007,FALSE, 85 ,sunny,"a, ""b""",85\n008,TRUE,NA,rainy,,70.50\n'
    (tmp_path / "t.csv").write_text(text)
    rows = rows_of(works("predict", models / "weather.spn", tmp_path / "t.csv", "--keep"))
    given = rows_of(text)
    assert [{name: row[name] for name in given[0]} for row in rows] == given
    assert list(rows[0])[-1] == "prediction"
    # columns in another order, with others between: the same answers as of the table that is read whole
    table = spinney.read_table(tmp_path / "t.csv")
    model = spinney.load_model(models / "weather.spn")
    expected = model.predict(table.select(model.feature_names_in_.tolist())).tolist()
    assert [row["prediction"] for row in rows] == expected


def test_probabilities_and_intervals(models, tmp_path):
    rows = rows_of(works("predict", models / "weather.spn", "weather_numeric", "--probabilities"))
    shares = spinney.load_model(models / "weather.spn").predict_proba(WEATHER.drop_columns(["play"]))
    assert list(rows[0]) == ["prediction", "probability_no", "probability_yes"]
    np.testing.assert_array_equal([[float(r["probability_no"]), float(r["probability_yes"])] for r in rows], shares)
    path = write_csv(HOUSES, tmp_path / "t.csv")
    rows = rows_of(works("predict", models / "houses.spn", path, "--interval", 0.8, "--name", "value"))
    X = HOUSES.drop_columns(["MedHouseVal"])
    ends = spinney.load_model(models / "houses.spn").predict_interval(X, 0.8)
    np.testing.assert_array_equal([[float(row["value_low"]), float(row["value_high"])] for row in rows], ends)


def test_a_model_without_names_takes_columns_by_position(models, tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
    assert works("predict", models / "plain.spn", tmp_path / "t.csv") == "prediction\n7\n8\n"
    (tmp_path / "t.csv").write_text("a,b,c\n1,2,7\n3,4,8\n")
    fails(run("predict", models / "plain.spn", tmp_path / "t.csv"), "2 features without names", "3 columns")
    assert "accuracy" in works("evaluate", models / "plain.spn", tmp_path / "t.csv", "--target", "c")
    fails(run("evaluate", models / "plain.spn", tmp_path / "t.csv"), "--target", "no names")


def test_refusals_of_predict(models, tmp_path):
    weather, houses = models / "weather.spn", models / "houses.spn"
    path = tmp_path / "t.csv"
    out = tmp_path / "o.csv"

    def predict(content, *more, model=weather):
        path.write_text(content)
        return run("predict", model, path, "--out", out, *more)

    head = "outlook,temperature,humidity,windy\n"
    fails(predict("outlok,temperature,humidity,windy\nsunny,1,2,TRUE\n"), "'outlook'", "Is 'outlok' meant?")
    fails(predict(head + "sunny,1,2,TRUE\nsunny,warm,2,TRUE\n"), "temperature", "'warm'", "row 2")
    fails(predict(head), "no rows")
    fails(predict(head + "sunny,1,2\n"), "Row #2")
    fails(predict("outlook,outlook,temperature,humidity,windy\na,b,1,2,TRUE\n"), "more than one column 'outlook'")
    good = head + "sunny,1,2,TRUE\n"
    fails(predict(good, "--interval", "0.9"), "--interval", "forests")
    fails(predict(good, "--interval", "1.5"), "--interval")
    fails(run("predict", houses, "california_housing", "--probabilities"), "--probabilities")
    fails(predict("outlook,temperature,humidity,windy,prediction\na,1,2,TRUE,x\n", "--keep"), "'prediction'", "--name")
    assert not out.exists()
    fails(run("predict", weather, path, "--out", tmp_path / "o.xlsx"), ".parquet")
    out.write_text("old")
    fails(predict(good), "exists", "--force")
    assert out.read_text() == "old"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["o.csv", "t.csv"]


def test_a_later_fault_leaves_the_old_file(models, tmp_path, monkeypatch):
    monkeypatch.setattr(prediction_batches, "BLOCK_BYTES", 70)
    path, out = tmp_path / "t.csv", tmp_path / "o.csv"
    path.write_text("outlook,temperature,humidity,windy\n" + "sunny,1,2,TRUE\n" * 50 + "sunny,1,?,maybe\n")
    out.write_text("old")
    fails(run("predict", models / "weather.spn", path, "--out", out, "--force"), "windy", "'maybe'", "row 51")
    assert out.read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_forest_without_out_of_bag_rows_has_no_intervals(tmp_path):
    path = tmp_path / "m.spn"
    works("train", "california_housing", "--set", "n_estimators=1", "--set", "max_depth=1", "--set", "oob_score=false",
          "--out", path)  # fmt: skip
    fails(run("predict", path, "california_housing", "--interval", 0.9), "oob_score")


# --- evaluate -----------------------------------------------------------------------------------------------------


def test_scores_of_classes_are_those_of_scikit_learn(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.array(["a", "b", "c"])[(X[:, 0] + rng.normal(size=300) > 0).astype(int) + (X[:, 1] > 1)]
    model = spinney.CARTClassifier(max_depth=3).fit(pa.table(list(X[:200].T), names=["u", "v", "w"]), y[:200])
    model.save_model(tmp_path / "m.spn")
    test = pa.table({**{name: X[200:, j] for j, name in enumerate("uvw")}, "kind": y[200:]})
    facts = json.loads(works("evaluate", tmp_path / "m.spn", write_csv(test, tmp_path / "t.csv"), "--json"))
    said, shares = model.predict(test.drop_columns(["kind"])), model.predict_proba(test.drop_columns(["kind"]))
    expected = {
        "accuracy": metrics.accuracy_score(y[200:], said),
        "balanced_accuracy": metrics.balanced_accuracy_score(y[200:], said),
        "log_loss": metrics.log_loss(y[200:], shares),
        "ROC_AUC": metrics.roc_auc_score(y[200:], shares, multi_class="ovr"),
    }
    assert facts["scores"] == pytest.approx(expected)
    assert facts["confusion"] == metrics.confusion_matrix(y[200:], said).tolist()
    precision, recall, f1, rows = metrics.precision_recall_fscore_support(y[200:], said)
    for k, one in enumerate(facts["classes"]):
        assert (one["class"], one["rows"]) == ("abc"[k], rows[k])
        assert [one["precision"], one["recall"], one["f1"]] == pytest.approx([precision[k], recall[k], f1[k]])
    assert facts["target"] == "kind"
    text = works("evaluate", tmp_path / "m.spn", tmp_path / "t.csv")
    assert f"{expected['accuracy']:.4g}" in text
    assert "balanced accuracy" in text


def test_scores_of_numbers_are_those_of_scikit_learn(models, tmp_path):
    parquet.write_table(HOUSES, tmp_path / "t.parquet")
    facts = json.loads(works("evaluate", models / "houses.spn", tmp_path / "t.parquet", "--json"))
    y = HOUSES["MedHouseVal"].to_numpy()
    said = spinney.load_model(models / "houses.spn").predict(HOUSES.drop_columns(["MedHouseVal"]))
    assert facts["R2"] == pytest.approx(metrics.r2_score(y, said))
    assert facts["MAE"] == pytest.approx(metrics.mean_absolute_error(y, said))
    assert facts["RMSE"] == pytest.approx(metrics.root_mean_squared_error(y, said))
    assert facts["median_absolute_error"] == pytest.approx(metrics.median_absolute_error(y, said))
    assert facts["rows"] == 300


def test_one_class_alone_has_no_auc(models, tmp_path):
    rows = "outlook,temperature,humidity,windy,play\n" + "sunny,85,85,FALSE,no\n" * 2
    (tmp_path / "t.csv").write_text(rows)
    facts = json.loads(works("evaluate", models / "weather.spn", tmp_path / "t.csv", "--json"))
    assert facts["scores"]["ROC_AUC"] is None
    assert facts["classes"][1]["recall"] is None
    assert "ROC" not in works("evaluate", models / "weather.spn", tmp_path / "t.csv")


@pytest.mark.parametrize("labels", [(0, 1), (True, False), (-3, 8)])
def test_labels_that_are_no_text(labels, tmp_path):
    X = pa.table({"x": [1.0, 2.0, 3.0, 4.0]})
    spinney.CARTClassifier().fit(X, [labels[0], labels[0], labels[1], labels[1]]).save_model(tmp_path / "m.spn")
    content = "x,y\n" + "".join(f"{i},{label}\n" for i, label in enumerate([labels[0]] * 2 + [labels[1]] * 2, 1))
    (tmp_path / "t.csv").write_text(content)
    facts = json.loads(works("evaluate", tmp_path / "m.spn", tmp_path / "t.csv", "--json"))
    assert facts["scores"]["accuracy"] == 1.0


def test_labels_may_be_numbers_here_and_text_there(tmp_path):
    """The embedded digits are text, and numbers once they went through CSV."""
    works("datasets", "led_digits", "--out", tmp_path / "t.csv")
    works("datasets", "led_digits", "--out", tmp_path / "t.parquet")
    options = ["--target", "digit", "--method", "cart", "--task", "classification"]
    for first, second in (("t.csv", "t.parquet"), ("t.parquet", "t.csv")):
        works("train", tmp_path / first, *options, "--out", tmp_path / "m.spn", "--force")
        facts = json.loads(works("evaluate", tmp_path / "m.spn", tmp_path / second, "--json"))
        assert facts["scores"]["accuracy"] == 1.0


def test_refusals_of_evaluate(models, tmp_path):
    path = tmp_path / "t.csv"
    head = "outlook,temperature,humidity,windy"

    def evaluate(content, *more):
        path.write_text(content)
        return run("evaluate", models / "weather.spn", path, *more)

    fails(evaluate(f"{head}\nsunny,1,2,TRUE\n"), "--target", "no column beside the features")
    fails(evaluate(f"{head},a,b\nsunny,1,2,TRUE,yes,no\n"), "--target", "'a', 'b'")
    fails(evaluate(f"{head},play\nsunny,1,2,TRUE,yes\n", "--target", "ply"), "Did you mean 'play'?")
    fails(evaluate(f"{head},play\nsunny,1,2,TRUE,yes\n", "--target", "windy"), "is a feature")
    fails(evaluate(f"{head},play\nsunny,1,2,TRUE,maybe\n"), "'maybe'", "'no', 'yes'")
    fails(evaluate(f"{head},play\nsunny,1,2,TRUE,\n"), "missing")
    fails(evaluate(f"{head},play\n"), "no rows")
    fails(evaluate("outlook,play\nsunny,yes\n"), "lacks", "'temperature'")


# --- kinds of columns ---------------------------------------------------------------------------------------------


def test_columns_that_are_kept_may_be_of_any_kind(models, tmp_path):
    table = WEATHER.drop_columns(["play"])
    table = table.append_column("parts", pa.array([[1, 2]] * 14)).append_column("day", pa.array([None] * 13 + ["x"]))
    parquet.write_table(table, tmp_path / "t.parquet", row_group_size=5)  # other dictionaries in each
    for out in ("o.parquet", "o.arrow"):
        works("predict", models / "weather.spn", tmp_path / "t.parquet", "--keep", "--out", tmp_path / out)
        written = spinney.read_table(tmp_path / out)
        assert written.drop_columns(["prediction"]).to_pydict() == table.to_pydict()
    fails(run("predict", models / "weather.spn", tmp_path / "t.parquet", "--keep"), "'parts'", "CSV")


@pytest.mark.parametrize("kind", [pa.float16(), pa.decimal128(21, 2), pa.uint8(), pa.large_string(), pa.string_view()])
def test_targets_of_every_kind(kind, tmp_path):
    labels = ["u", "v", "u", "v"] if "str" in str(kind) else [1, 2, 1, 2]
    y = pa.array(np.array(labels, np.float16), kind) if kind == pa.float16() else pa.array(labels).cast(kind)
    table = pa.table({"x": [1.0, 2.0, 1.0, 2.0], "y": y})
    parquet.write_table(table, tmp_path / "t.parquet")
    works("train", tmp_path / "t.parquet", "--target", "y", "--method", "cart", "--task", "classification",
          "--out", tmp_path / "m.spn")  # fmt: skip
    assert (
        json.loads(works("evaluate", tmp_path / "m.spn", tmp_path / "t.parquet", "--json"))["scores"]["accuracy"] == 1.0
    )


def test_a_nested_target_is_refused(tmp_path):
    parquet.write_table(pa.table({"x": [1.0, 2.0], "y": [[1], [2]]}), tmp_path / "t.parquet")
    fails(run("train", tmp_path / "t.parquet", "--target", "y", "--out", tmp_path / "m.spn"), "'y'", "nested")


def test_rows_are_counted_on_a_terminal_only(monkeypatch):
    class Terminal(io.StringIO):
        is_terminal = True

        def isatty(self):
            return self.is_terminal

    cases = [(True, None, "1,234 rows"), (True, 2468, "1,234 of 2,468 rows"), (False, None, ""), (False, 2468, "")]
    for is_terminal, n_rows, words in cases:
        for is_shown in (True, False):
            screen = Terminal()
            screen.is_terminal = is_terminal
            monkeypatch.setattr(sys, "stderr", screen)
            monkeypatch.setenv("TERM", "xterm")
            with count_rows(n_rows, is_shown=is_shown) as count:
                count(1200)
                count(34)
            if words and is_shown:
                assert words in screen.getvalue()
            else:
                assert screen.getvalue() == ""


# --- stdin --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "t.arrow", "s.arrow"])
def test_rows_of_every_kind_by_stdin(name, models, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    path = tmp_path / name
    if name.startswith("t.csv"):
        text = write_csv(HOUSES, tmp_path / "plain.csv").read_bytes()
        path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    elif name == "t.parquet":
        parquet.write_table(HOUSES, path)
    elif name == "t.arrow":
        feather.write_feather(HOUSES, path)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, HOUSES.schema) as writer:
            writer.write_table(HOUSES)
    expected = works("predict", models / "houses.spn", path)
    result = run("predict", models / "houses.spn", "-", stdin=path.read_bytes())
    assert (result.exit_code, result.stdout) == (0, expected)
    scores = run("evaluate", models / "houses.spn", "-", "--target", "MedHouseVal", stdin=path.read_bytes())
    assert scores.stdout == works("evaluate", models / "houses.spn", path, "--target", "MedHouseVal")
    assert list((tmp_path / "temporary").iterdir()) == []


def test_faults_of_stdin(models):
    model = models / "weather.spn"
    fails(run("predict", model, "-", stdin=b""), "stdin is empty")
    fails(run("predict", model, "-", stdin=b"a,b\n1,2\n"), "lacks columns")
    fails(run("train", "-", "--target", "y", "--out", models / "none.spn", stdin=b"x,y\n1,2\n3\n"), "stdin", "3")
    fails(run("train", "-", "--target", "z", "--out", models / "none.spn", stdin=b"x,y\n1,2\n3,4\n"), "in stdin")
    late = b"outlook,temperature,humidity,windy\n" + b"sunny,85,85,FALSE\n" * 3 + b"sunny,hot,85,FALSE\n"
    fails(run("predict", model, "-", stdin=late), "temperature", "row 4")
    wrong = b"outlook,temperature,humidity,windy\nsunny,85,85,\xff\n"
    fails(run("predict", model, "-", stdin=wrong), "stdin: line 2 is not valid UTF-8")
    assert not (models / "none.spn").exists()


def test_stdin_that_is_a_terminal_is_not_waited_for(models, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr("spinney.cli.stdin.sys", types.SimpleNamespace(stdin=Terminal()))
    fails(run("predict", models / "weather.spn", "-"), "pipe one")


def test_several_quantiles_are_several_columns(tmp_path):
    X, y = HOUSES.drop_columns(["MedHouseVal"]), HOUSES["MedHouseVal"].to_numpy()
    model = spinney.GradientBoostingRegressor(loss="quantile", alpha=[0.1, 0.9], n_estimators=3, random_state=0).fit(
        X, y
    )
    model.save_model(tmp_path / "band.spn")
    path = write_csv(HOUSES, tmp_path / "houses.csv")
    rows = rows_of(works("predict", tmp_path / "band.spn", path))
    found = [[float(row["prediction_1"]), float(row["prediction_2"])] for row in rows]
    np.testing.assert_array_equal(found, model.predict(X))
    fails(run("evaluate", tmp_path / "band.spn", path), "several quantiles")


def test_classes_of_several_outputs_are_several_columns(tmp_path):
    """Columns of y of different types too; `inspect` names the classes of each."""
    X = WEATHER.drop_columns(["play", "windy"])
    y = np.array([[row["play"], int(row["windy"])] for row in WEATHER.to_pylist()], dtype=object)
    for model in (spinney.CARTClassifier(max_depth=2), spinney.RandomForestClassifier(3, random_state=0)):
        model.fit(X, y).save_model(tmp_path / "two.spn")
        path = write_csv(WEATHER, tmp_path / "weather.csv")
        rows = rows_of(works("predict", tmp_path / "two.spn", path, "--probabilities"))
        assert [[row["prediction_1"], int(row["prediction_2"])] for row in rows] == model.predict(X).tolist()
        for k, (shares, classes) in enumerate(zip(model.predict_proba(X), [["no", "yes"], [0, 1]], strict=True)):
            found = [[float(row[f"probability_{k + 1}_{one}"]) for one in classes] for row in rows]
            np.testing.assert_array_equal(found, shares)
        fails(run("evaluate", tmp_path / "two.spn", path, "--target", "play"), "2 answers for a row")
        assert "of 2 outputs, 2: no, yes; 2: 0, 1" in works("inspect", tmp_path / "two.spn")
        assert json.loads(works("inspect", tmp_path / "two.spn", "--json"))["classes"] == [["no", "yes"], [0, 1]]


def test_answers_that_no_column_of_numbers_judges_are_not_scored(tmp_path):
    X, y = HOUSES.drop_columns(["MedHouseVal"]), HOUSES["MedHouseVal"].to_numpy()
    path = write_csv(HOUSES, tmp_path / "houses.csv")
    spinney.CARTRegressor(max_depth=2).fit(X, np.column_stack([y, y])).save_model(tmp_path / "outputs.spn")
    fails(run("evaluate", tmp_path / "outputs.spn", path, "--target", "MedHouseVal"), "2 answers for a row")
    spinney.GradientBoostingRanker(n_estimators=2).fit(X, y > 2.0).save_model(tmp_path / "ranks.spn")
    fails(run("evaluate", tmp_path / "ranks.spn", path, "--target", "MedHouseVal"), "none of ranking: use load_model")
    assert "ranking" in works("inspect", tmp_path / "ranks.spn")
    spinney.GradientBoostingSurvival(n_estimators=2).fit(X, y).save_model(tmp_path / "times.spn")
    fails(run("evaluate", tmp_path / "times.spn", path, "--target", "MedHouseVal"), "none of survival")
    assert "survival" in works("inspect", tmp_path / "times.spn")


def test_unknown_levels_are_counted(tmp_path):
    model, data = tmp_path / "m.spn", tmp_path / "new.csv"
    (tmp_path / "t.csv").write_text("town,y\n" + "a,1\na,2\nb,5\nb,6\n" * 5)
    works("train", tmp_path / "t.csv", "--target", "y", "--task", "regression", "--method", "cart", "--out", model)
    data.write_text("town,y\na,1\nq,2\nr,3\nq,4\n,5\n")
    expected = (
        "Warning: column 'town': 3 of 5 rows have levels that the model does not know, taken for missing: 'q', 'r'\n"
    )
    result = run("predict", model, data)
    assert result.exit_code == 0
    assert result.stderr == expected
    result = run("evaluate", model, data, "--json")
    assert result.stderr == expected
    assert json.loads(result.stdout)["unknown_levels"] == {"town": 3}
    data.write_text("town,y\na,1\nb,2\n")
    assert run("predict", model, data).stderr == ""
