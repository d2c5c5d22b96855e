"""`spinney store`, and `spinney train` of folders, patterns and stores."""

import json

import pytest

import spinney
from command_line import fails, run, works
from disk_tables import make_table, write_parts
from spinney.estimators.adaboost_by_levels import DiskRounds
from spinney.estimators.checkpoints import Checkpoint
from spinney.scale import plan


@pytest.fixture
def pattern(tmp_path):
    return write_parts(make_table(600).drop_columns(["w", "g"]), tmp_path, [200, 201])


def test_a_pattern_a_store_and_one_file_give_one_model(pattern, tmp_path):
    whole = tmp_path / "whole"
    whole.mkdir()
    one = write_parts(make_table(600).drop_columns(["w", "g"]), whole, []).replace("*", "part-7")
    method = ["--method", "forest", "--set", "n_estimators=20"]
    works("train", one, "--target", "y", *method, "--out", str(tmp_path / "one.spn"))
    works("train", pattern, "--target", "y", *method, "--out", str(tmp_path / "all.spn"))
    works("train", one, "--target", "y", *method, "--memory", "1GB", "--out", str(tmp_path / "limited.spn"))
    told = json.loads(works("store", pattern, "--target", "y", "--out", str(tmp_path / "t.codes"), "--json"))
    assert (told["rows"], told["features"], told["target"]) == (600, 7, "y")
    works("train", str(tmp_path / "t.codes"), *method, "--out", str(tmp_path / "kept.spn"))
    assert "out-of-bag rows" in works("train", str(tmp_path / "t.codes"), *method, "--out", str(tmp_path / "again.spn"))
    boosting = ["--method", "boosting", "--set", "n_estimators=3", "--out", str(tmp_path / "boost.spn")]
    assert "out-of-bag rows" not in works("train", str(tmp_path / "t.codes"), *boosting)  # they have a loss alone
    models = [spinney.load_model(tmp_path / f"{name}.spn") for name in ("one", "all", "limited", "kept")]
    X = make_table(600).drop_columns(["w", "g", "y"])
    assert len({model.predict_proba(X).tobytes() for model in models}) == 1
    assert (tmp_path / "all.spn").read_bytes() == (tmp_path / "kept.spn").read_bytes()
    assert (tmp_path / "all.spn").read_bytes() == (tmp_path / "limited.spn").read_bytes()


@pytest.mark.compiled(reason="trees of several blocks, by compiled kernels")
def test_adaboost_is_trained_from_disk_where_memory_is_short(tmp_path, monkeypatch):
    pattern = write_parts(make_table(9000).drop_columns(["w", "g"]), tmp_path, [4000])
    method = ["--target", "y", "--method", "adaboost", "--set", "n_estimators=3"]
    works("train", pattern, *method, "--out", str(tmp_path / "memory.spn"))
    seen, run_rounds = [], DiskRounds.run
    monkeypatch.setattr(plan, "fits", lambda found: found.by_levels)
    monkeypatch.setattr(DiskRounds, "run", lambda self, sets: seen.append(self) or run_rounds(self, sets))
    works("train", pattern, *method, "--memory", "1GB", "--out", str(tmp_path / "disk.spn"))
    assert len(seen) == 1
    assert (tmp_path / "disk.spn").read_bytes() == (tmp_path / "memory.spn").read_bytes()


def test_mistakes_are_told_in_a_line(pattern, tmp_path):
    out = ["--out", str(tmp_path / "m.spn")]
    fails(run("train", pattern, *out), "--target is missing")
    fails(run("train", pattern, "--target", "z", *out), "target='z' is not a column")
    fails(run("train", pattern, "--target", "y", "--memory", "1MB", *out), "needs 1")
    fails(run("train", pattern, "--target", "y", "--memory", "much", *out), "memory='much'")
    fails(run("train", str(tmp_path / "no*.parquet"), "--target", "y", *out), "no file matches")
    store = str(tmp_path / "t.codes")
    fails(run("store", pattern, "--out", store), "--target is missing")
    works("store", pattern, "--target", "y", "--out", store)
    fails(run("store", pattern, "--target", "y", "--out", store), "is there already")
    fails(run("train", store, "--target", "y", *out), "leave out --target")


@pytest.mark.parametrize("limit", [[], ["--memory", "1GB"]], ids=["in memory", "in blocks"])
def test_training_goes_on_from_its_checkpoint(limit, tmp_path, monkeypatch):
    data = write_parts(make_table(600).drop_columns(["w", "g"]), tmp_path, []).replace("*", "part-7")
    folder, out = tmp_path / "run", str(tmp_path / "m.spn")
    train = ["train", data, "--target", "y", "--method", "forest", "--set", "n_estimators=20", *limit]
    works(*train, "--out", str(tmp_path / "at-once.spn"))
    left = iter(range(5))

    def note(_):
        if next(left, None) is None:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "note", note)
        assert run(*train, "--checkpoint", str(folder), "--out", out).exit_code != 0
    assert [path.name for path in folder.iterdir()] == ["checkpoint.spn"]
    fails(run(*train, "--set", "max_depth=3", "--resume", str(folder), "--out", out), "max_depth=3, and was None")
    works(*train, "--resume", str(folder), "--out", out)
    assert (tmp_path / "m.spn").read_bytes() == (tmp_path / "at-once.spn").read_bytes()
    assert not folder.exists()


def test_mistakes_about_checkpoints_are_told_in_a_line(pattern, tmp_path):
    train = ["train", pattern, "--target", "y", "--out", str(tmp_path / "m.spn")]
    fails(run(*train, "--resume", str(tmp_path)), "holds no checkpoint: begin with --checkpoint")
    fails(run(*train, "--method", "cart", "--checkpoint", str(tmp_path)), "CARTClassifier keeps none: leave it out")
    fails(run(*train, "--resume", str(tmp_path), "--checkpoint", "other"), "leave out --checkpoint")
