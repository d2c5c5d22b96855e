"""`spinney tree`, `spinney trace` and `spinney prune`."""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from sklearn.base import clone

import spinney
from command_line import TENNIS, fails, run, works
from spinney.cli.tree_json import describe_tree


@pytest.fixture
def tennis(tmp_path):
    path = tmp_path / "tennis table.csv"
    path.write_text(TENNIS)
    return path


# --- tree ---------------------------------------------------------------------------------------------------------


def test_tree_of_a_csv(tennis):
    text = works("tree", tennis, "--target", "play")
    assert "outlook" in text
    assert text.splitlines()[-1] == "classification of 'play': 6 rows, 2 features, 3 leaves"


def test_tree_options_reach_the_estimator(tennis):
    text = works("tree", tennis, "--target", "play", "--max-depth", 1, "--criterion", "entropy")
    assert text.splitlines()[-1].endswith("2 leaves")
    text = works(
        "tree", tennis, "--target", "play", "--method", "c45", "--set", "pruning=none", "--set", "min_samples_leaf=1"
    )
    assert "outlook = overcast" in text


@pytest.mark.parametrize(
    ("values", "options", "kind"),
    [
        ("1.5 2.5 3.0", (), "regression"),
        ("1.0 2.0 1.0 2.0", (), "classification"),
        ("1 2 1 2", (), "classification"),
        ("100000 200000 300000", (), "regression"),  # prices: hardly two are equal
        (" ".join(map(str, range(21))), (), "regression"),
        ("1 2 1 2", ("--task", "regression"), "regression"),
    ],
)
def test_task_is_guessed_from_the_target(values, options, kind, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "".join(f"{i},{value}\n" for i, value in enumerate(values.split())))
    assert works("tree", path, "--target", "y", *options).splitlines()[-1].startswith(kind)


def test_errors_are_one_line(tennis, tmp_path):
    fails(run("tree", tennis, "--target", "nothing"), "'nothing'", "'outlook', 'humidity', 'play'")
    fails(run("tree", tmp_path / "absent.csv", "--target", "y"), "absent.csv")
    fails(run("tree", tmp_path, "--target", "y"))
    fails(run("tree", tennis), "--target")
    fails(run("tree", tennis, "--target", "play", "--max-depth", 0), "--max-depth")
    fails(run("tree", tennis, "--target", "play", "--criterion", "magic"), "magic")
    fails(run("tree", tennis, "--target", "play", "--tree", 1), "--tree")
    (tmp_path / "t.csv").write_text("x,y\n1,a\n2,\n")
    fails(run("tree", tmp_path / "t.csv", "--target", "y"), "'y'", "1 missing")
    (tmp_path / "t.xlsx").write_text("x")
    fails(run("tree", tmp_path / "t.xlsx", "--target", "y"), ".xlsx")


def test_every_form_of_a_tree(tmp_path):
    table = spinney.datasets.load("play_tennis")
    tree = spinney.CARTClassifier().fit(table.drop_columns(["play"]), table["play"].to_pylist()).tree_.arrays
    forms = {"text": tree.to_text(), "rules": str(tree.to_rules()), "svg": tree.to_svg(), "dot": tree.to_dot(),
             "mermaid": tree.to_mermaid()}  # fmt: skip
    for form, expected in forms.items():
        shown = works("tree", "play_tennis", f"--{form}")
        assert shown.startswith(expected.rstrip()), form
        out = tmp_path / f"tree.{form}"
        works("tree", "play_tennis", f"--{form}", "--out", out)
        assert out.read_text() == expected.rstrip() + "\n"
    ET.fromstring((tmp_path / "tree.svg").read_text())
    works("tree", "play_tennis", "--out", tmp_path / "by_suffix.svg")
    assert (tmp_path / "by_suffix.svg").read_text() == (tmp_path / "tree.svg").read_text()
    fails(run("tree", "play_tennis", "--out", tmp_path / "tree.svg"), "--force")
    assert "#1 " in works("tree", "play_tennis", "--numbers", "--show-depth", 1)


def test_trees_of_a_model(tmp_path):
    path = tmp_path / "m.spn"
    works("train", "weather_numeric", "--set", "n_estimators=3", "--set", "oob_score=false", "--out", path)
    forest = spinney.load_model(path).forest_
    for number in range(3):
        assert works("tree", path, "--tree", number).startswith(forest[number].to_text())
    assert "in tree 0 of 3" in works("tree", path)
    fails(run("tree", path, "--tree", 3), "0 to 2")
    fails(run("tree", path, "--max-depth", 3), "grown already")
    fails(run("tree", path, "--target", "play"), "grown already")


def walk(nodes, row):
    """What a tree in JSON answers for a row, by its words alone."""
    node = nodes[0]
    while node["test"] is not None:
        test = node["test"]
        value = row[test["feature"]]
        if value is None:
            node = nodes[test["missing"]]
        elif "threshold" in test:
            node = nodes[test["children"][int(value > test["threshold"])]]
        else:
            node = nodes[test["children"][next(k for k, levels in enumerate(test["levels"]) if value in levels)]]
    return node["prediction"]


@pytest.mark.parametrize(
    ("name", "estimator"),
    [
        ("weather_numeric", spinney.CARTClassifier()),
        ("play_tennis", spinney.CARTClassifier()),
        ("play_tennis", spinney.ID3Classifier()),
        ("contact_lenses", spinney.C45Classifier(pruning=None)),
        ("boosting_numbers", spinney.CARTRegressor()),
        ("adult", spinney.CARTClassifier(max_depth=6)),
    ],
)
def test_a_tree_in_json_answers_as_the_tree_does(name, estimator):
    target = spinney.datasets.source(name).target
    table = spinney.datasets.load(name).slice(0, 300)
    X, y = table.drop_columns([target]), table[target].to_numpy()
    model = clone(estimator).fit(X, y)
    told = describe_tree(model.tree_.arrays)
    assert (told["leaves"], told["depth"]) == (model.tree_.n_leaves, model.tree_.depth)
    assert [walk(told["nodes"], row) for row in X.to_pylist()] == model.predict(X).tolist()


def test_tree_in_json(tennis, tmp_path):
    told = json.loads(works("tree", tennis, "--target", "play", "--json"))
    assert told["classes"] == ["no", "yes"]
    root, *rest = told["nodes"]
    assert (root["parent"], root["rows"], root["shares"]) == (None, 6, pytest.approx([1 / 3, 2 / 3]))
    assert root["test"]["children"] == [node["node"] for node in rest if node["parent"] == 0]
    assert len(json.loads(works("tree", tennis, "--target", "play", "--json", "--show-depth", 1))["nodes"]) == 3
    fails(run("tree", tennis, "--target", "play", "--json", "--svg"), "--json")
    fails(run("tree", tennis, "--target", "play", "--json", "--out", tmp_path / "t.txt"), "--json")


FORMS = ([], ["--rules"], ["--svg"], ["--dot", "--show-depth", 3], ["--mermaid", "--show-depth", 3], ["--json"])


@pytest.fixture(scope="module")
def extremes(tmp_path_factory):
    """A tree of one leaf, one of 1000 tests in a row, a forest of 1000 trees; none was given names of columns."""
    folder = tmp_path_factory.mktemp("extremes")
    row = np.arange(1010.0)
    spinney.CARTClassifier().fit([[1.0], [1.0]], [7, 7]).save_model(folder / "leaf.spn")
    spinney.CARTRegressor().fit(row[:, None], np.exp(row * 0.6)).save_model(folder / "deep.spn")
    many = spinney.RandomForestClassifier(n_estimators=1000, random_state=0).fit(row[:10, None], row[:10] > 4)
    many.save_model(folder / "many.spn")
    return folder


@pytest.mark.parametrize("name", ["leaf", "deep", "many"])
def test_trees_of_any_size_without_names_are_shown_faults_157_158(name, extremes):
    path = extremes / f"{name}.spn"
    for form in FORMS:
        text = works("tree", path, *form)
        assert "x0" in text or name == "leaf"
    ET.fromstring(works("tree", path, "--svg"))
    facts = json.loads(works("inspect", path, "--json"))
    assert [feature["name"] for feature in facts["features"]] == ["x0"]
    assert facts["trees"] == (1000 if name == "many" else 1)
    nodes = json.loads(works("tree", path, "--json"))["nodes"]
    if name == "leaf":
        assert [(node["prediction"], node["rows"]) for node in nodes] == [(7, 2)]
        assert works("tree", path).endswith("1 leaf\n")
    elif name == "deep":
        assert max(node["depth"] for node in nodes) > 900
    else:
        works("tree", path, "--tree", 999)


@pytest.mark.compiled(reason="takes minutes interpreted")
def test_a_tree_of_100_000_nodes_is_shown_fault_157(tmp_path):
    rng = np.random.default_rng(0)
    model = spinney.CARTRegressor().fit(rng.normal(size=(51_000, 2)), rng.normal(size=51_000))
    model.save_model(tmp_path / "m.spn")
    assert model.tree_.n_nodes > 100_000
    assert "more nodes" in works("tree", tmp_path / "m.spn").splitlines()[-2]
    assert len(works("tree", tmp_path / "m.spn", "--svg")) < 200_000  # the heaviest nodes, the rest counted
    assert json.loads(works("inspect", tmp_path / "m.spn", "--json"))["leaves"] == 51_000


# --- trace --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["id3", "c45", "cart"])
def test_the_trace_of_the_weather_is_that_of_the_library(method):
    table = spinney.datasets.load("play_tennis")
    X, y = table.drop_columns(["play"]), table["play"].to_pylist()
    kind = {"id3": spinney.ID3Classifier, "c45": spinney.C45Classifier, "cart": spinney.CARTClassifier}[method]
    model = kind().fit(X, y)
    expected = spinney.trace(model, X, y)
    assert works("trace", "--method", method).startswith(expected.to_text())
    assert works("trace", "--method", method, "--node", 0) == expected.to_text(node=0) + "\n"


def test_the_gains_of_the_lecture():
    rows = json.loads(works("trace", "--json"))
    gains = {row["feature"]: round(row["gain"], 3) for row in rows if row["node"] == 0}
    assert gains == {"outlook": 0.247, "temperature": 0.029, "humidity": 0.152, "wind": 0.048}


def test_a_trace_of_another_table(tennis):
    text = works("trace", tennis, "--target", "play", "--max-depth", 0)
    assert text.count("Node ") == 1
    fails(run("trace", tennis), "--target")
    fails(run("trace", "play_tennis", "--node", 99), "99")


# --- prune --------------------------------------------------------------------------------------------------------


@pytest.fixture
def grown(tmp_path):
    path = tmp_path / "grown.spn"
    works("train", "weather_numeric", "--method", "cart", "--out", path)
    return path


@pytest.mark.parametrize(
    ("options", "call"),
    [
        (["cost_complexity", "--ccp-alpha", "0.1"], ("cost_complexity", {"ccp_alpha": 0.1})),
        (
            ["pessimistic", "--no-raising", "--confidence", "0.1"],
            ("pessimistic", {"raising": False, "confidence": 0.1}),
        ),
        (["min_gain", "--min-gain", "0.2"], ("min_gain", {"min_gain": 0.2})),
        (["merge"], ("merge", {})),
    ],
)
def test_prunings_are_those_of_the_library(options, call, grown, tmp_path):
    out = tmp_path / "pruned.spn"
    text = works("prune", grown, "--method", *options, "--out", out)
    expected = spinney.load_model(grown).prune(call[0], **call[1])
    assert text == f"{expected.pruning_}\n"
    assert spinney.load_model(out).tree_.to_text() == expected.tree_.to_text()


def test_a_pruning_in_json(grown, tmp_path):
    out = tmp_path / "pruned.spn"
    told = json.loads(
        works("prune", grown, "--method", "cost_complexity", "--ccp-alpha", "0.2", "--out", out, "--json")
    )
    before, after = (spinney.load_model(path).tree_.arrays for path in (grown, out))
    assert told["model"] == str(out)
    assert (told["method"], told["options"]["ccp_alpha"]) == ("cost_complexity", 0.2)
    assert told["n_leaves"] == {"before": before.n_leaves, "after": after.n_leaves}
    assert told["depth"] == {"before": before.depth, "after": after.depth}
    assert 0.0 == told["error"]["before"] < told["error"]["after"] < 1.0


def test_pruning_by_rows(grown, tmp_path):
    table = spinney.datasets.load("weather_numeric")
    X, y = table.drop_columns(["play"]), table["play"].to_pylist()
    spinney_rows = tmp_path / "rows.csv"
    works("datasets", "weather_numeric", "--out", spinney_rows)
    for options in (["reduced_error"], ["cost_complexity", "--ccp-alpha", "cv"], ["pessimistic", "--raising"]):
        out = tmp_path / f"{options[0]}.spn"
        works("prune", grown, spinney_rows, "--method", *options, "--out", out)
        more = {"ccp_alpha": "cv"} if "cv" in options else {"raising": True} if "--raising" in options else {}
        expected = spinney.load_model(grown).prune(options[0], X, y, **more)
        assert spinney.load_model(out).tree_.to_text() == expected.tree_.to_text()


def test_refusals_of_prune(grown, tmp_path):
    out = tmp_path / "out.spn"

    def prune(*more, model=grown):
        return run("prune", model, "--out", out, *more)

    fails(prune("--method", "reduced_error"), "needs DATA, rows that did not grow the tree")
    fails(prune("--method", "merge", "--min-gain", "1"), "min_gain")
    fails(prune("--method", "cost_complexity", "--ccp-alpha", "many"), "--ccp-alpha")
    fails(prune("--method", "magic"), "magic")
    missing = prune()
    assert missing.exit_code == 2
    assert "--method" in missing.stderr
    forest = tmp_path / "forest.spn"
    works("train", "weather_numeric", "--set", "n_estimators=2", "--set", "oob_score=false", "--out", forest)
    fails(prune("--method", "merge", model=forest), "single trees")
    fails(run("prune", grown, "--method", "merge", "--out", grown), "--force")
    assert not out.exists()
