"""`spinney datasets`, `spinney warmup` and `spinney doctor`."""

import json

import pytest

import spinney
from command_line import fails, run, works
from spinney import _jit


def test_datasets_are_listed_with_source_and_licence():
    text = works("datasets")
    facts = json.loads(works("datasets", "--json"))
    assert [one["name"] for one in facts] == spinney.datasets.names()
    names = [line for line in text.splitlines() if not line.startswith(" ")]
    assert names == spinney.datasets.names()
    flat = " ".join(text.split())
    for name in spinney.datasets.names():
        about = spinney.datasets.source(name)
        assert f"of {about.target}" in flat
        assert " ".join(about.origin.split()) in flat
        assert " ".join(about.licence.split()) in flat


def test_one_dataset():
    text = works("datasets", "buys_computer")
    assert "identifier" in text
    assert "student" in text
    fails(run("datasets", "nothing"), "'nothing'", "play_tennis")


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "t.arrow"])
def test_a_dataset_is_written_whole(name, tmp_path):
    path = tmp_path / name
    for dataset in ("play_tennis", "california_housing"):
        works("datasets", dataset, "--out", path, "--force")
        table, written = spinney.datasets.load(dataset), spinney.read_table(path)
        assert written.column_names == table.column_names
        assert written.to_pydict() == table.to_pydict()
    fails(run("datasets", "play_tennis", "--out", path), "--force")
    fails(run("datasets", "--out", path), "NAME")
    fails(run("datasets", "play_tennis", "--out", tmp_path / "t.xlsx"), ".parquet")


def test_warmup_says_where_kernels_are_kept(monkeypatch):
    calls = []
    monkeypatch.setattr(spinney, "warmup", lambda: calls.append(1), raising=False)
    assert "kernels are compiled" in works("warmup")
    assert calls == [1]


def test_doctor(monkeypatch):
    facts = json.loads(works("doctor", "--json"))
    assert facts["versions"]["spinney"] == spinney.__version__
    assert facts["cache_is_writable"] is True
    assert facts["cores_to_use"] >= 1
    text = works("doctor")
    assert facts["versions"]["numba"] in text
    assert all(name in text for name in facts["missing"])
    assert facts["numba_changes"] == []
    assert "names of Numba" not in text
    monkeypatch.setattr("spinney._jit.numba_names.find_moved", lambda: ["Numba 9: f is gone"])
    assert "since names of Numba have changed:\n  Numba 9: f is gone" in works("doctor")
    monkeypatch.setattr(_jit, "cache_directory", lambda: None)
    assert "SPINNEY_CACHE_DIR" in works("doctor")
    assert json.loads(works("doctor", "--json"))["cache"] is None
