"""`spinney train --dask` and `--workers`."""

import sys

import dask
import pytest
from distributed import LocalCluster

from command_line import fails, run, works
from disk_tables import make_table, write_parts
from time_limits import limited

pytestmark = pytest.mark.compiled(reason="what is shown is about clusters, not kernels")


@pytest.fixture(autouse=True)
def time_limit():
    with limited(180):
        yield


@pytest.fixture(scope="module")
def address():
    """The scheduler of two workers in this process."""
    with LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=":0"
    ) as cluster:
        yield cluster.scheduler_address


@pytest.fixture
def pattern(tmp_path):
    return write_parts(make_table(600).drop_columns(["w", "g"]), tmp_path, [200, 201])


def test_a_cluster_gives_the_file_of_a_fit_here(pattern, tmp_path, address, monkeypatch):
    monkeypatch.setattr("spinney.scale.cluster.file_rows.PIECE_ROWS", 100)
    train = ["train", pattern, "--target", "y", "--method", "forest", "--set", "n_estimators=20"]
    works(*train, "--out", str(tmp_path / "here.spn"))
    for way in ("one", "trees"):
        with dask.config.set({"spinney.plan": way}):
            told = works(*train, "--dask", address, "--out", str(tmp_path / f"{way}.spn"))
        assert "out-of-bag rows" in told
        assert (tmp_path / f"{way}.spn").read_bytes() == (tmp_path / "here.spn").read_bytes()


@pytest.mark.parametrize("kind", ["csv", "arrow"])
def test_files_of_other_kinds_are_read_whole(kind, tmp_path, address):
    data = write_parts(make_table(300, target="numbers").drop_columns(["w", "g"]), tmp_path, [], kind)
    train = ["train", data, "--target", "y", "--drop", "day", "--method", "boosting", "--set", "n_estimators=3"]
    works(*train, "--out", str(tmp_path / "here.spn"))
    works(*train, "--dask", address, "--out", str(tmp_path / "there.spn"))
    assert (tmp_path / "here.spn").read_bytes() == (tmp_path / "there.spn").read_bytes()


def test_mistakes_are_told_in_a_line(pattern, tmp_path, address, monkeypatch):
    out = ["--out", str(tmp_path / "m.spn")]
    fails(run("train", pattern, "--dask", address, *out), "--target is missing")
    fails(run("train", pattern, "--target", "z", "--dask", address, *out), "'z' is not a column", "number")
    fails(run("train", pattern, "--target", "y", "--dask", address, "--workers", "2", *out), "give one of them")
    fails(run("train", pattern, "--target", "y", "--dask", address, "--memory", "1GB", *out), "leave it out")
    texts = write_parts(make_table(60).drop_columns(["w", "g"]), tmp_path, [30], "csv")
    fails(run("train", texts, "--target", "y", "--dask", address, *out), "2 files", "is CSV", "convert them to Parquet")
    monkeypatch.setattr("spinney.cli.clusters.CONNECT_SECONDS", 0.5)
    fails(run("train", pattern, "--target", "y", "--dask", "tcp://127.0.0.1:1", *out), "there is no scheduler")
    monkeypatch.setitem(sys.modules, "distributed", None)
    fails(run("train", pattern, "--target", "y", "--dask", address, *out), "pip install 'spinney[dask]'")


@pytest.mark.slow
def test_workers_are_processes_for_the_length_of_the_fit(pattern, tmp_path):
    train = ["train", pattern, "--target", "y", "--method", "forest", "--set", "n_estimators=20"]
    works(*train, "--out", str(tmp_path / "here.spn"))
    works(*train, "--workers", "2", "--out", str(tmp_path / "there.spn"))
    assert (tmp_path / "here.spn").read_bytes() == (tmp_path / "there.spn").read_bytes()
