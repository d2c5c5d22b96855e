"""What scans say of sources: of files that change between fits, and never by the name of a temporary file."""

import os
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import spinney
from disk_tables import make_table, model_bytes, split, write_parts

MODEL = spinney.GradientBoostingClassifier(n_estimators=2, random_state=0)
TABLE = make_table(300).drop_columns(["w", "g"])


def touch(path):
    """Give a file another time of change."""
    now = path.stat()
    os.utime(path, ns=(now.st_atime_ns, now.st_mtime_ns + 1_000_000_000))


def test_a_file_that_has_changed_between_two_fits_is_named(tmp_path):
    pattern = write_parts(TABLE, tmp_path, [100, 200])
    scanned = spinney.scan(pattern, "y")
    first = model_bytes(MODEL.fit(scanned), tmp_path)
    assert model_bytes(MODEL.fit(scanned), tmp_path) == first
    touch(tmp_path / "part-8.parquet")
    with pytest.raises(
        ValueError, match=r"part-8\.parquet has changed since this scan has read the table: call spinney"
    ):
        MODEL.fit(scanned)
    with pytest.raises(ValueError, match=r"part-8\.parquet has changed"):
        scanned.store(tmp_path / "t.codes")
    assert not (tmp_path / "t.codes").exists()
    assert model_bytes(MODEL.fit(spinney.scan(pattern, "y")), tmp_path) == first


def test_files_that_come_and_go_between_two_fits_are_named(tmp_path):
    pattern = write_parts(TABLE, tmp_path, [100, 200])
    scanned = spinney.scan(pattern, "y")
    MODEL.fit(scanned)
    (tmp_path / "part-8.parquet").rename(tmp_path / "other")
    with pytest.raises(ValueError, match=r"part-8\.parquet is gone since"):
        MODEL.fit(scanned)
    (tmp_path / "other").rename(tmp_path / "part-8.parquet")
    MODEL.fit(scanned)
    (tmp_path / "part-10.parquet").write_bytes((tmp_path / "part-8.parquet").read_bytes())
    with pytest.raises(ValueError, match=r"part-10\.parquet has come since"):
        MODEL.fit(scanned)


@pytest.mark.parametrize("form", ["path", "list"])
def test_one_file_that_is_gone_is_named(form, tmp_path):
    path = write_parts(TABLE, tmp_path, []).replace("*", "part-7")
    scanned = spinney.scan([path] if form == "list" else path, "y")
    MODEL.fit(scanned)
    Path(path).unlink()
    with pytest.raises(ValueError, match=r"part-7\.parquet is gone since"):
        MODEL.fit(scanned)


def batches_of(*tables):
    yield from tables


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (
            pa.table({"x": ["a"], "y": [1.0]}),
            r"^batch 1 of the generator: column 'x' holds text .* in batch 0 of the gen",
        ),
        (
            pa.table({"z": [1.0], "y": [1.0]}),
            r"^batch 1 of the generator has no column 'x', which batch 0 of the gener",
        ),
        (pa.table({"x": [2**60 + 1], "y": [1.0]}), r"^batch 1 of the generator: column 'x' holds 1152921504606846977"),
    ],
)
def test_batches_that_disagree_are_named(second, message):
    with pytest.raises(ValueError, match=message) as caught:
        spinney.scan(batches_of(pa.table({"x": [0.5], "y": [1.0]}), second), "y").read()
    assert ".spinney" not in str(caught.value)


def test_a_lazy_frame_that_cannot_be_run_is_told_in_a_line():
    lazy = pl.LazyFrame({"x": [1.0], "y": [2.0]})
    with pytest.raises(ValueError, match=r"^the LazyFrame cannot be run: unable to find column .nope.") as caught:
        spinney.scan(lazy.with_columns(z=pl.col("nope")), "y").read()
    assert "\n" not in str(caught.value)


def test_a_lazy_frame_gives_the_model_of_its_rows(tmp_path):
    lazy = pl.from_arrow(TABLE).lazy().filter(pl.col("number") > 0.0)
    X, y = split(TABLE.filter(pa.compute.greater(TABLE["number"], 0.0)), ())
    assert model_bytes(MODEL.fit(spinney.scan(lazy, "y")), tmp_path) == model_bytes(MODEL.fit(X, y), tmp_path)


def test_a_relation_of_duckdb_gives_the_model_of_its_rows(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register("rows", TABLE)
    X, y = split(TABLE, ())
    expected = MODEL.fit(X, y)
    scanned = spinney.scan(connection.sql("select * from rows"), "y")
    assert model_bytes(MODEL.fit(scanned), tmp_path) == model_bytes(expected, tmp_path)
    found = np.concatenate([*expected.predict_batches(connection.sql("select * from rows"))])
    assert found.tolist() == expected.predict(X).tolist()


def test_a_reader_of_delta_gives_the_model_of_its_rows(tmp_path):
    deltalake = pytest.importorskip("deltalake")
    for mode, part in (("error", TABLE.slice(0, 20)), ("append", TABLE.slice(20))):
        deltalake.write_deltalake(str(tmp_path / "t"), part, mode=mode)
    rows = deltalake.DeltaTable(str(tmp_path / "t"))
    X, y = split(rows.to_pyarrow_table(), ())
    scanned = spinney.scan(deltalake.QueryBuilder().register("t", rows).execute("select * from t"), "y")
    assert model_bytes(MODEL.fit(scanned), tmp_path) == model_bytes(MODEL.fit(X, y), tmp_path)
    with pytest.raises(ValueError, match="is a Delta table, whose log tells which files count: give a reader"):
        spinney.scan(tmp_path / "t", "y").read()


@pytest.mark.parametrize(
    ("name", "message"),
    [("_delta_log/0.json", "is a Delta table, whose log"), ("metadata/v1.metadata.json", "is an Iceberg table, whose")],
)
def test_folders_whose_files_may_be_out_of_date_are_refused(name, message, tmp_path):
    parquet.write_table(TABLE, tmp_path / "part-0.parquet")
    (tmp_path / name).parent.mkdir()
    (tmp_path / name).write_text("{}")
    with pytest.raises(ValueError, match=message):
        spinney.scan(tmp_path, "y").read()


def test_a_header_without_rows_is_told(tmp_path):
    (tmp_path / "one.csv").write_text("a,b,y\n")
    with pytest.raises(ValueError, match=r"one\.csv has no rows below its header$"):
        spinney.scan(tmp_path / "one.csv", "y").read()
    (tmp_path / "two.csv").write_text("a,b,y\n")
    with pytest.raises(ValueError, match=r"one\.csv has no rows below its header, nor have the 1 files after it$"):
        spinney.scan(tmp_path, "y").read()
    (tmp_path / "two.csv").write_text("a,b,y\n1,2,3\n")
    assert spinney.scan(tmp_path, "y").read().n_rows == 1


def test_no_files_are_no_source():
    with pytest.raises(ValueError, match=r"source=\[\] names no files: give at least one path"):
        spinney.scan([], "y")


def test_rows_to_evaluate_on_name_their_target_themselves():
    scanned = spinney.scan(TABLE, "y")
    with pytest.raises(
        ValueError, match="rows to evaluate on are a scan, which names its columns itself: leave out their y"
    ):
        MODEL.fit(scanned, X_val=scanned, y_val=TABLE["y"].to_numpy())
    with pytest.raises(ValueError, match="leave out their weights"):
        MODEL.fit(scanned, X_val=scanned, sample_weight_val=np.ones(300))
    with pytest.raises(ValueError, match="leave out their y"):
        spinney.AdaBoostClassifier(n_estimators=2).fit(scanned, X_val=scanned, y_val=TABLE["y"].to_numpy())
