"""Folders, patterns and stores as DATA of every command: the same answers as of one file."""

import json

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import spinney
from command_line import fails, run, works
from disk_tables import make_table, write_parts

TABLE = make_table(600).drop_columns(["w", "g"])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A model, one file, three files of each kind, and a store, all of the same rows."""
    folder = tmp_path_factory.mktemp("many")
    for kind in ("parquet", "csv", "arrow"):
        (folder / kind).mkdir()
        write_parts(TABLE, folder / kind, [200, 201], kind)
    parquet.write_table(TABLE, folder / "one.parquet")
    csv.write_csv(TABLE, folder / "one.csv")
    spinney.scan(TABLE, "y").store(folder / "t.codes")
    train = ["train", str(folder / "one.parquet"), "--target", "y", "--method", "forest", "--set", "n_estimators=20"]
    works(*train, "--out", str(folder / "m.spn"))
    return folder


def one_of(source, place):
    """The one file that a source is compared with: numbers of 32 bits are others in CSV."""
    return str(place / ("one.csv" if source.startswith("csv") else "one.parquet"))


SOURCES = ["parquet/*.parquet", "parquet", "csv/*.csv", "arrow/*.arrow", "t.codes"]


@pytest.mark.parametrize("source", SOURCES)
def test_predictions_are_those_of_one_file(source, place, tmp_path):
    model = str(place / "m.spn")
    works("predict", model, one_of(source, place), "--probabilities", "--out", str(tmp_path / "one.csv"))
    works("predict", model, str(place / source), "--probabilities", "--out", str(tmp_path / "all.csv"))
    assert (tmp_path / "all.csv").read_bytes() == (tmp_path / "one.csv").read_bytes()


@pytest.mark.parametrize("source", SOURCES)
def test_kept_columns_are_those_of_the_rows(source, place, tmp_path):
    works("predict", str(place / "m.spn"), str(place / source), "--keep", "--out", str(tmp_path / "all.parquet"))
    found = parquet.read_table(tmp_path / "all.parquet")
    assert found.column_names == [*TABLE.column_names, "prediction"]
    assert np.array_equal(np.array(found["y"].to_pylist()), np.array(TABLE["y"].to_pylist()))
    assert np.array_equal(np.array(found["number"].to_pylist(), float), TABLE["number"].to_numpy())


@pytest.mark.parametrize("source", SOURCES)
def test_scores_are_those_of_one_file(source, place):
    one = json.loads(works("evaluate", str(place / "m.spn"), one_of(source, place), "--json"))
    assert json.loads(works("evaluate", str(place / "m.spn"), str(place / source), "--json")) == one
    assert one["rows"] == 600


@pytest.mark.parametrize("source", SOURCES)
def test_explanations_are_those_of_one_file(source, place):
    one = json.loads(works("explain", str(place / "m.spn"), one_of(source, place), "--json"))
    found = json.loads(works("explain", str(place / "m.spn"), str(place / source), "--json"))
    assert found == one
    row = ["--row", "450", "--json"]
    one = json.loads(works("explain", str(place / "m.spn"), one_of(source, place), *row))
    assert json.loads(works("explain", str(place / "m.spn"), str(place / source), *row)) == one


@pytest.mark.parametrize("source", ["parquet/*.parquet", "csv", "t.codes"])
def test_studies_are_those_of_one_file(source, place):
    options = ["--methods", "cart", "--folds", "2x1", "--json", "--no-report"]
    one = json.loads(works("study", one_of(source, place), "--target", "y", *options))
    target = [] if source == "t.codes" else ["--target", "y"]
    found = json.loads(works("study", str(place / source), *target, *options))
    for column in (*one["summary"]["columns"], *found["summary"]["columns"]):
        column.pop("span")  # a store has days as moments
    assert found["summary"]["columns"] == one["summary"]["columns"]
    assert [method["scores"] for method in found["methods"]] == [method["scores"] for method in one["methods"]]


def test_types_that_differ_between_files_go_into_one(place, tmp_path):
    parts = tmp_path / "parts"
    parts.mkdir()
    shorter = TABLE.slice(0, 100).set_column(1, "whole", TABLE["whole"].slice(0, 100).cast(pa.int32()))
    parquet.write_table(shorter, parts / "1.parquet")
    parquet.write_table(TABLE.slice(100), parts / "2.parquet")
    works("predict", str(place / "m.spn"), str(parts), "--keep", "--out", str(tmp_path / "all.parquet"))
    assert parquet.read_table(tmp_path / "all.parquet")["whole"].to_pylist() == TABLE["whole"].to_pylist()


def test_mistakes_are_told_in_a_line(place, tmp_path):
    model, parts = str(place / "m.spn"), tmp_path / "parts"
    parts.mkdir()
    fails(run("predict", model, str(tmp_path / "no*.parquet")), "no file matches")
    fails(run("predict", model, str(parts)), "has no file that ends in")
    csv.write_csv(TABLE.slice(0, 50), parts / "1.csv")
    csv.write_csv(TABLE.slice(50, 50).drop_columns(["flag"]), parts / "2.csv")
    fails(run("predict", model, str(parts)), "2.csv has no column 'flag', which")
    fails(run("evaluate", model, str(parts)), "2.csv has no column 'flag', which")
    (parts / "2.csv").unlink()
    parquet.write_table(TABLE, parts / "2.parquet")
    fails(run("predict", model, str(parts)), "2.parquet is no CSV, and")
    (parts / "2.parquet").unlink()
    (parts / "1.csv").write_text(",".join(TABLE.column_names) + "\n")
    fails(run("predict", model, str(parts)), "has no rows")
    fails(run("study", str(parts), "--target", "y"), "has no rows")
    (place / "t.codes" / "values.bin").rename(place / "t.codes" / "other")
    try:
        fails(run("predict", model, str(place / "t.codes")), "is missing: the store is not whole")
    finally:
        (place / "t.codes" / "other").rename(place / "t.codes" / "values.bin")


def test_stdin_that_is_scanned_goes_by_its_name(tmp_path):
    text = b"x,y\n" + b"".join(b"%d,%d\n" % (i, i % 2) for i in range(50))
    out, kept = ["--out", str(tmp_path / "m.spn")], ["--out", str(tmp_path / "t.codes")]
    works("train", "-", "--target", "y", "--method", "cart", "--memory", "1GB", *out, stdin=text)
    works("store", "-", "--target", "y", *kept, stdin=text)
    assert spinney.scan(tmp_path / "t.codes").n_rows == 50
    for command in (
        ["train", "-", "--memory", "1GB", "--out", str(tmp_path / "other.spn")],
        ["store", "-", "--out", "x"],
    ):
        fails(run(*command, "--target", "y", stdin=b"x,y\n"), "stdin has no rows below its header")
