"""`spinney explain`."""

import csv
import json

import numpy as np
import pytest

import spinney
from command_line import TENNIS, fails, run, works


@pytest.fixture
def files(tmp_path):
    data = tmp_path / "tennis.csv"
    data.write_text(TENNIS)
    path = tmp_path / "tennis.spn"
    works("train", data, "--target", "play", "--method", "cart", "--out", path)
    return path, data


def truth(files):
    path, data = files
    table = spinney.read_table(data)
    return spinney.shap_values(path, table.drop_columns(["play"]))


def test_columns_are_listed_by_their_size(files):
    lines = works("explain", *files).splitlines()
    found = truth(files)
    order = np.argsort(-found.sizes())
    assert [line.split()[0] for line in lines[1:3]] == [found.names[j] for j in order]
    assert lines[1].split()[1] == f"{found.sizes().max():.4g}"
    assert lines[-1].startswith("6 rows; sums differ")
    told = json.loads(works("explain", *files, "--json"))
    assert told["mean_size"] == pytest.approx(dict(zip(found.names, found.sizes(), strict=True)))
    assert told["base"] == pytest.approx(found.base.tolist())


def test_one_row_is_told_with_what_would_change_it(files):
    text = works("explain", *files, "--row", 0)
    assert text.startswith("answer: no\n")
    assert "to change it: " in text
    told = json.loads(works("explain", *files, "--row", 0, "--wanted", "yes", "--vary", "outlook", "--json"))
    assert told["answer"] == "no"
    change = told["counterfactual"]
    assert change["answer"] == "yes"
    assert change["is_exact"]
    assert [one["column"] for one in change["changes"]] == ["outlook"]
    added = sum(one["added"] for one in told["contributions"])
    assert told["base"] + added == pytest.approx(told["score"])


def test_values_are_written_to_a_file(files, tmp_path):
    out = tmp_path / "values.csv"
    found = truth(files)
    works("explain", *files, "--of", "yes", "--out", out)
    with out.open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["outlook"]) for row in rows] == found.of("yes").values[:, found.names.index("outlook")].tolist()
    fails(run("explain", *files, "--out", out), "exists; --force replaces it")
    works("explain", *files, "--out", out, "--force")
    with out.open() as file:
        both = list(csv.DictReader(file))
    assert [row["output"] for row in both[:2]] == ["no", "yes"]
    assert len(both) == 12


def test_what_cannot_be_is_told_in_a_line(files, tmp_path):
    fails(run("explain", *files, "--row", 6), "the file has rows 0 to 5")
    fails(run("explain", *files, "--row", 0, "--wanted", "maybe"), "the classes are no, yes")
    fails(run("explain", *files, "--wanted", "yes"), "give --row N")
    fails(run("explain", *files, "--row", 0, "--out", tmp_path / "x.csv"), "leave --row out")
    fails(run("explain", *files, "--of", "maybe"), "the outputs are no, yes")
    fails(run("explain", *files, "--row", 0, "--vary", "wind"), "'wind' is not a column")


def test_json_has_the_unit_the_path_and_the_votes(files, tmp_path):
    path, data = files
    told = json.loads(works("explain", *files, "--row", 0, "--json"))
    assert told["unit"] is None
    steps = spinney.explain(path, spinney.read_table(data).drop_columns(["play"]).slice(0, 1)).path.steps
    assert [step["words"] for step in told["path"]] == [str(step) for step in steps]
    boosted = tmp_path / "boosted.spn"
    works("train", data, "--target", "play", "--method", "boosting", "--set", "n_estimators=3", "--out", boosted)
    told = json.loads(works("explain", boosted, data, "--row", 0, "--json"))
    assert (told["unit"], told["path"], told["votes"]) == ("log-odds", None, None)
    fails(run("explain", boosted, data, "--of", "no"), "the outputs are yes alone", "opposite sign")


def test_a_class_is_not_asked_of_numbers(tmp_path):
    data, path = tmp_path / "numbers.csv", tmp_path / "numbers.spn"
    data.write_text("a,b\n1,2\n2,4\n3,5\n4,9\n")
    works("train", data, "--target", "b", "--method", "adaboost", "--set", "n_estimators=3", "--out", path)
    told = json.loads(works("explain", path, data, "--row", 0, "--json"))
    assert told["contributions"] == []
    assert 1 <= told["votes"]["n_trees"] <= 3
    works("train", data, "--target", "b", "--method", "cart", "--out", path, "--force")
    fails(run("explain", path, data, "--of", "b"), "predicts numbers")
