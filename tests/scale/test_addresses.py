"""Tables behind addresses: by fsspec where it is installed, and told what to install where it is not."""

import sys
from pathlib import Path

import numpy as np
import pytest

import spinney
from command_line import works
from disk_tables import make_table, model_bytes, split, write_parts
from spinney.scale.scan import Scan

pytestmark = pytest.mark.compiled(reason="tables of several blocks, which have 4,096 rows at least")
MODEL = {"n_estimators": 3, "random_state": 0}


@pytest.fixture
def memory():
    """The files of fsspec that are in memory, none at first and none at the end."""
    fsspec = pytest.importorskip("fsspec")
    files = fsspec.filesystem("memory")
    files.store.clear()
    yield files
    files.store.clear()


def put_parts(files, tmp_path, kind="parquet"):
    """Twelve files, whose names sort as numbers, and some that are none of the table; the table."""
    table = make_table(4800).drop_columns(["w", "g"])
    write_parts(table, tmp_path, list(range(400, 4800, 400)), kind)
    for path in tmp_path.glob(f"*.{kind}"):
        files.pipe(f"/clicks/{path.name}", path.read_bytes())
    files.pipe("/clicks/_SUCCESS", b"")
    files.pipe("/clicks/_old/part-1.parquet", b"no table")
    return table


@pytest.mark.parametrize("address", ["memory://clicks/*.parquet", "memory://clicks/", ["memory://clicks/*.parquet"]])
def test_a_model_of_an_address_is_that_of_the_table(address, memory, tmp_path, capsys):
    table = put_parts(memory, tmp_path)
    X, y = split(table, others=())
    expected = model_bytes(spinney.GradientBoostingClassifier(**MODEL).fit(X, y), tmp_path)
    scan = spinney.scan(address, "y")
    assert scan.plan(spinney.CARTClassifier()).n_rows is None  # known once it is read
    assert model_bytes(spinney.GradientBoostingClassifier(**MODEL).fit(scan), tmp_path) == expected
    assert "is an address: its files go to" in capsys.readouterr().err
    codes = spinney.scan(address, "y").store(tmp_path / "t.codes")
    assert sorted(path.name for path in (tmp_path / "t.codes").iterdir() if path.is_dir()) == []
    assert model_bytes(spinney.GradientBoostingClassifier(**MODEL).fit(codes), tmp_path) == expected


def test_predictions_of_an_address_come_in_batches(memory, tmp_path):
    table = put_parts(memory, tmp_path)
    X, y = split(table, others=())
    model = spinney.CARTClassifier(max_depth=4).fit(X, y)
    batches = list(model.predict_batches("memory://clicks/*.parquet"))
    assert len(batches) == 12
    np.testing.assert_array_equal(np.concatenate(batches), model.predict(X))


def test_the_command_takes_addresses(memory, tmp_path):
    put_parts(memory, tmp_path)
    method = ["--target", "y", "--method", "cart", "--out"]
    works("train", "memory://clicks/*.parquet", *method, str(tmp_path / "there.spn"))
    works("train", str(tmp_path / "*.parquet"), *method, str(tmp_path / "here.spn"))
    assert (tmp_path / "there.spn").read_bytes() == (tmp_path / "here.spn").read_bytes()


@pytest.mark.usefixtures("memory")
def test_what_is_not_there_is_told():
    with pytest.raises(FileNotFoundError, match=r"there is no file at memory://none/\*.parquet"):
        spinney.CARTClassifier().fit(spinney.scan("memory://none/*.parquet", "y"))
    with pytest.raises(ValueError, match=r"nowhere://a\.parquet cannot be read by fsspec"):
        spinney.CARTClassifier().fit(spinney.scan("nowhere://a.parquet", "y"))


def test_without_fsspec_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(ImportError, match=r"pip install 'spinney\[remote\]'"):
        spinney.CARTClassifier().fit(spinney.scan("s3://clicks/*.parquet", "y"))
    model = spinney.CARTClassifier().fit([[1.0], [2.0]], ["a", "b"])
    with pytest.raises(ImportError, match="fsspec, which reads addresses, is not installed"):
        next(model.predict_batches("s3://clicks/*.parquet"))


def test_a_path_beside_an_address_stays_where_it_is(memory, tmp_path):
    table = put_parts(memory, tmp_path)
    first = Path(tmp_path / "part-7.parquet")
    assert Scan([first, "memory://clicks/part-8.parquet"], "y").read().n_rows == 800
    assert first.exists()
    assert table.num_rows == 4800
