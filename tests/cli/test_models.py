"""`spinney train` and `spinney inspect`."""

import json
import re

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import spinney
from command_line import TENNIS, fails, run, works
from spinney.cli.methods import METHODS, find_method, read_settings


@pytest.fixture
def tennis(tmp_path):
    path = tmp_path / "tennis.csv"
    path.write_text(TENNIS)
    return path


@pytest.fixture
def model(tmp_path):
    return tmp_path / "model.spn"


def test_the_model_is_that_of_the_library(tmp_path, model):
    table = spinney.datasets.load("weather_numeric")
    parquet.write_table(table, tmp_path / "t.parquet")
    works(
        "train", tmp_path / "t.parquet", "--target", "play", "--method", "cart", "--set", "max_depth=2", "--out", model
    )
    X, y = table.drop_columns(["play"]), table["play"].to_pylist()
    expected = spinney.CARTClassifier(max_depth=2, random_state=0).fit(X, y)
    loaded = spinney.load_model(model)
    assert loaded.get_params() == expected.get_params()
    np.testing.assert_array_equal(loaded.predict_proba(X), expected.predict_proba(X))


def test_the_same_command_writes_the_same_bytes(tmp_path):
    contents = []
    for name in ("a.spn", "b.spn"):
        works("train", "weather_numeric", "--set", "n_estimators=5", "--out", tmp_path / name)
        contents.append((tmp_path / name).read_bytes())
    assert contents[0] == contents[1]


def test_the_summary_names_the_rows_of_its_score(model):
    forest = works("train", "weather_numeric", "--set", "n_estimators=30", "--out", model)
    assert "accuracy, out-of-bag rows" in forest
    assert "RandomForestClassifier" in forest
    tree = works("train", "weather_numeric", "--method", "cart", "--out", model, "--force")
    assert "accuracy, training rows" in tree
    facts = json.loads(works("train", "california_housing", "--method", "cart", "--set", "max_depth=1", "--json",
                             "--out", model, "--force"))  # fmt: skip
    assert facts["score"]["measure"] == "R2"
    assert facts["score"]["rows"] == "training"
    assert (facts["rows"], facts["features"], facts["leaves"], facts["trees"]) == (20_640, 8, 2, 1)
    assert facts["bytes"] == model.stat().st_size


@pytest.mark.parametrize("name", [*METHODS, "random-forest", "C4.5", "RandomForestClassifier", "gbm"])
def test_every_method_by_its_names(name, model):
    few = () if name.lower() in {"cart", "id3", "c45", "c4.5"} else ("--set", "n_estimators=2")
    result = run("train", "weather_numeric", "--method", name, *few, "--set", "min_samples_leaf=1", "--out", model)
    if name in {"bagging", "adaboost"}:  # they have none
        fails(result, "no parameter 'min_samples_leaf'")
        result = run("train", "weather_numeric", "--method", name, *few, "--out", model)
    assert result.exit_code == 0, result.stderr
    assert type(spinney.load_model(model)) is find_method(name, is_regression=False, is_told=False)
    # whatever it is, it can be looked at, predicts, and shows a tree
    assert works("inspect", model)
    assert len(works("predict", model, "weather_numeric").splitlines()) == 15
    assert "rows" in works("tree", model)


def test_members_by_name(model):
    works("train", "weather_numeric", "--method", "bagging", "--set", "estimator=c45", "--set", "n_estimators=3",
          "--out", model)  # fmt: skip
    assert type(spinney.load_model(model).estimators_[0]).__name__ == "C45Classifier"
    assert len(works("predict", model, "weather_numeric").splitlines()) == 15  # no predictor of one forest
    assert json.loads(works("inspect", model, "--json"))["trees"] == 3


def test_values_of_settings():
    given = ("a=1", "b=0.5", "c=true", "d=None", "e=gini", "f=[1, 2]", "g='1'", 'h={"x": 1}', "i-j=a=b")
    assert read_settings(given) == {
        "a": 1, "b": 0.5, "c": True, "d": None, "e": "gini", "f": [1, 2], "g": "1", "h": {"x": 1}, "i_j": "a=b",
    }  # fmt: skip


def test_refusals_name_the_fault(tennis, model, tmp_path):
    def train(*more, target="play"):
        return run("train", tennis, "--target", target, "--out", model, *more)

    fails(train(target="plya"), "'plya'", "Did you mean 'play'?")
    fails(train(target="nothing"), "'outlook', 'humidity', 'play'")
    fails(run("train", tennis, "--out", model), "--target", "'humidity'")
    fails(train("--method", "forst"), "'forst'", "Did you mean 'forest'?")
    fails(train("--set", "max_dept=3"), "max_dept", "Did you mean 'max_depth'?")
    fails(train("--set", "n_estimators=0"), "n_estimators")
    fails(train("--set", "n_estimators=1.5"), "n_estimators")
    fails(train("--set", "max_depth"), "name=value")
    fails(train("--set", "max_depth=1", "--set", "max_depth=2"), "twice")
    fails(train("--drop", "play"), "target")
    fails(train("--drop", "outlook", "--drop", "humidity"), "no column beside the target")
    fails(train("--task", "regression"))  # text is no number
    fails(train("--method", "RandomForestRegressor", "--task", "classification"), "not for")
    fails(run("train", "california_housing", "--method", "c45", "--out", model), "predicts classes only")
    fails(run("train", tmp_path / "absent.csv", "--target", "y", "--out", model), "absent.csv")
    fails(run("train", tmp_path, "--target", "y", "--out", model), str(tmp_path))
    fails(run("train", "nothing_embedded", "--target", "y", "--out", model), "nothing_embedded")
    assert not model.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["tennis.csv"]


def test_an_old_file_stays_without_force_fault_152(tennis, model):
    model.write_text("old")
    fails(run("train", tennis, "--target", "play", "--out", model), "exists", "--force")
    assert model.read_text() == "old"
    works("train", tennis, "--target", "play", "--method", "cart", "--out", model, "--force")
    assert spinney.load_model(model).get_n_leaves() == 3
    fails(run("train", tennis, "--target", "play", "--out", ""), "--out")
    fails(run("train", tennis, "--target", "play", "--out", model.parent, "--force"), "directory")
    fails(run("train", tennis, "--target", "play", "--out", model.parent / "no" / "m.spn"), "no directory")


def test_a_device_is_not_replaced(tennis):
    fails(run("train", tennis, "--target", "play", "--method", "cart", "--out", "/dev/null", "--force"), "device")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["Empty"]),
        (b"x,y\n", []),  # no rows
        (b"x,y\n1,a\n2\n", ["Row #3"]),
        (b"x,y\n1,a\n2,b,c\n", ["Row #3"]),
        (b"x,x,y\n1,2,a\n3,4,b\n", ["'x'"]),
        (b"x,y,y\n1,2,a\n3,4,b\n", ["more than one column 'y'"]),
        (b"x,y\n1,\n2,b\n", ["'y'", "1 missing"]),
        ("x,y\n1,é\n2,b\n".encode("latin1"), ["line 2", "UTF-8"]),
        (bytes(range(256)), []),
        (b"PAR1 no parquet", []),
        (b"x,y\n10:30:00,a\n11:30:00,b\n", ["x"]),
    ],
)
def test_bad_tables_are_refused_in_one_line_faults_149_150(content, words, tmp_path, model):
    (tmp_path / "t.csv").write_bytes(content)
    fails(run("train", tmp_path / "t.csv", "--target", "y", "--method", "cart", "--out", model), *words)
    assert not model.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfx,y\r\n1,a\r\n2,b\r\n",  # byte order mark, CRLF
        b'x,y\n"1",a\n"2","b\nc"\n',  # a quoted newline
        b"x;y\n1;a\n2;b\n",
        b"x,y\n" + b"a" * 10**6 + b",a\n2,b\n",
        b"x,y\n1,a\n",  # one row
        b"x,y\n1,a\n2,a\n",  # one class
        b"x,y\n,a\n,b\n",  # nothing known
        b"x,y\ninf,a\n-inf,b\n1e300,a\n",
    ],
)
def test_odd_tables_are_read_fault_149(content, tmp_path, model):
    (tmp_path / "t.csv").write_bytes(content)
    works("train", tmp_path / "t.csv", "--target", "y", "--method", "cart", "--out", model)
    predicted = works("predict", model, tmp_path / "t.csv")
    assert predicted.startswith("prediction\n")
    assert works("evaluate", model, tmp_path / "t.csv")


@pytest.mark.parametrize(
    "name", ["</script><script>", '"><img onerror>', "=cmd()", "x" * 5000, "עברית", "", "a\x1b[31mb", "two\nlines"]
)
def test_odd_names_are_shown_as_text_fault_156(name, tmp_path, model):
    table = pa.table({name: [1.0, 2.0, 3.0, 4.0], "y": ["a", "a", "b", "b"]})
    parquet.write_table(table, tmp_path / "t.parquet")
    works("train", tmp_path / "t.parquet", "--target", "y", "--method", "cart", "--out", model)
    shown = works("inspect", model) + works("tree", model)
    assert "\x1b" not in shown
    assert works("predict", model, tmp_path / "t.parquet").splitlines()[1:] == ["a", "a", "b", "b"]
    fails(run("train", tmp_path / "t.parquet", "--target", "z", "--method", "cart", "--out", model, "--force"))
    assert len(run("train", tmp_path / "t.parquet", "--target", "z", "--out", model, "--force").stderr) < 500


# --- inspect ------------------------------------------------------------------------------------------------------


def test_what_a_model_is(model):
    works("train", "weather_numeric", "--method", "cart", "--set", "criterion=entropy", "--out", model)
    text = works("inspect", model)
    for word in ("CARTClassifier", "criterion='entropy'", "outlook", "3 levels", "number", "no, yes", "format"):
        assert word in text
    facts = json.loads(works("inspect", model, "--json"))
    estimator = spinney.load_model(model)
    assert facts["parameters"] == json.loads(json.dumps(estimator.get_params(deep=False)))
    assert facts["classes"] == ["no", "yes"]
    assert [feature["name"] for feature in facts["features"]] == estimator.feature_names_in_.tolist()
    assert [feature["importance"] for feature in facts["features"]] == estimator.feature_importances_.tolist()
    assert facts["leaves"] == estimator.get_n_leaves()
    assert facts["saved_by"] == f"spinney {spinney.__version__}"


def test_many_features_are_cut_off(tmp_path, model):
    table = pa.table({**{f"x{j}": [float(j), 2.0, 3.0] for j in range(30)}, "y": ["a", "b", "b"]})
    parquet.write_table(table, tmp_path / "t.parquet")
    works("train", tmp_path / "t.parquet", "--target", "y", "--method", "cart", "--out", model)
    assert "... 10 more: --all lists them" in works("inspect", model)
    assert "x29" in works("inspect", model, "--all")


def test_what_is_no_model_is_refused(tmp_path):
    (tmp_path / "m.spn").write_bytes(b"\x80\x04 a pickle")
    for command in (["inspect"], ["predict"], ["evaluate"], ["tree"]):
        more = ["play_tennis"] if command[0] in {"predict", "evaluate"} else []
        fails(run(*command, tmp_path / "m.spn", *more), "m.spn")
        fails(run(*command, tmp_path / "absent.spn", *more), "absent.spn")
        fails(run(*command, tmp_path, *more))


def test_train_points_at_numbers_read_as_text(tmp_path):
    data = tmp_path / "german.csv"
    data.write_text("\n".join(["a;b;y", *(f"{i % 20},5;{i % 3};{'pq'[i % 2]}" for i in range(80)), ""]))
    result = run("train", data, "--target", "y", "--method", "cart", "--out", tmp_path / "m.spn")
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        "Warning: column 'a': its text looks like numbers with a decimal comma ('0,5'): write them with a point"
    ]
    fails(run("train", data, "--target", "a", "--out", tmp_path / "n.spn"), "column 'a' is the target", "decimal comma")


def test_names_of_rows_are_left_out_unless_kept(tmp_path, model):
    rng = np.random.default_rng(2)
    x = rng.normal(size=300)
    names = [f"person {i}" for i in rng.integers(0, 9000, 300)]
    table = pa.table({"x": x, "person": names, "z,z": x**2, "y": x + 0.1 * rng.normal(size=300)})
    parquet.write_table(table, tmp_path / "t.parquet")
    train = ("train", tmp_path / "t.parquet", "--target", "y", "--method", "cart", "--json", "--out", model, "--force")
    result = run(*train)
    assert result.stderr.startswith("left out: 'person' (29")
    assert result.stderr.endswith("name the rows); --keep COLUMN brings a column back\n")
    assert json.loads(result.stdout)["features"] == 2
    assert spinney.load_model(model).feature_names_in_.tolist() == ["x", "z,z"]
    assert json.loads(run(*train, "--keep", "person").stdout)["features"] == 3
    assert json.loads(run(*train, "--drop", "x,person").stdout)["features"] == 1
    assert json.loads(run(*train, "--drop", "z,z").stdout)["features"] == 1  # a name with a comma
    fails(run(*train, "--drop", "x,q"), "no column 'q'")
    fails(run(*train, "--drop", ","), "--drop is empty")


# --- Models that are worse than none ------------------------------------------------------------------------------


def write_noise(folder, *, is_regression):
    """A table whose columns say nothing of its target."""
    rng = np.random.default_rng(7)
    y = rng.normal(size=300) if is_regression else rng.permutation(["no"] * 220 + ["yes"] * 80)
    place = folder / "noise.parquet"
    parquet.write_table(pa.table({"a": rng.normal(size=300), "b": rng.normal(size=300), "y": y}), place)
    return place


@pytest.mark.parametrize(
    ("method", "is_regression", "words"),
    [
        ("forest", True, "worse than predicting the mean: R2 of out-of-bag rows -0."),
        ("cart", True, "worse than predicting the mean: R2 of cross-fitted rows -"),
        ("cart", False, "worse than predicting the commonest class: accuracy of cross-fitted rows 0."),
    ],
)
def test_a_model_below_the_baseline_is_saved_with_a_warning(method, is_regression, words, tmp_path, model):
    place = write_noise(tmp_path, is_regression=is_regression)
    result = run("train", place, "--target", "y", "--method", method, "--out", model)
    assert result.exit_code == 0
    assert f"Warning: the model is {words}" in result.stderr
    assert f"against {0.0 if is_regression else 220 / 300:.3f}" in result.stderr
    assert model.exists()


def test_the_loss_of_rows_outside_the_bags_of_boosting_is_no_score(model):
    for data, measure in (("german_credit", "accuracy"), ("california_housing", "R2")):
        method = ["--method", "boosting", "--set", "n_estimators=5", "--set", "subsample=0.5"]
        result = run("train", data, *method, "--json", "--out", model, "--force")
        assert "worse than predicting" not in result.stderr
        score = json.loads(result.stdout)["score"]
        assert (score["measure"], score["rows"]) == (measure, "training")
        table = spinney.datasets.load(data)
        target = "class" if data == "german_credit" else "MedHouseVal"
        fitted = spinney.load_model(model)
        X = table.select(list(fitted.feature_names_in_))
        assert score["value"] == pytest.approx(fitted.score(X, table[target].to_numpy()))


def test_a_model_above_the_baseline_is_saved_without_a_word(tmp_path, model):
    rng = np.random.default_rng(7)
    x = rng.normal(size=300)
    parquet.write_table(pa.table({"x": x, "y": x + 0.1 * rng.normal(size=300)}), tmp_path / "t.parquet")
    result = run("train", tmp_path / "t.parquet", "--target", "y", "--method", "cart", "--json", "--out", model)
    assert result.stderr == ""
    held_out = json.loads(result.stdout)["held_out"]
    assert held_out["rows"] == "cross-fitted"
    assert 0.9 < held_out["value"] < 1.0


def test_a_model_tells_what_it_was_trained_on(tmp_path, model):
    import hashlib

    data = tmp_path / "tennis.csv"
    data.write_text(TENNIS)
    works("train", data, "--target", "play", "--method", "cart", "--out", model)
    said = works("inspect", model)
    assert re.search(r"^target +play$", said, re.MULTILINE)
    assert re.search(r"^training rows +6$", said, re.MULTILINE)
    assert hashlib.sha256(TENNIS.encode()).hexdigest() in "".join(said.split())
    facts = json.loads(works("inspect", model, "--json"))
    assert (facts["target"], facts["training_rows"], facts["format"]) == ("play", 6, "1.1")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", facts["file_of"])
    spinney.load_model(model).save_model(tmp_path / "plain.spn")  # which knows nothing of a table
    plain = json.loads(works("inspect", tmp_path / "plain.spn", "--json"))
    assert (plain["target"], plain["format"]) == (None, "1.0")
