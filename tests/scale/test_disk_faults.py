"""Disks that are full or read-only while a model grows from them: one line that says so, or the same bytes, never less.

The disks are real: small file systems in memory, mounted where the tests run as root.
"""

import contextlib
import os
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

import pytest

import spinney
from disk_tables import make_table, model_bytes, split
from spinney.scale import plan
from spinney.scale.scan import Scan

pytestmark = pytest.mark.compiled(reason="tables of several blocks, which have 4,096 rows at least")
N_ROWS = 9000
MODELS = {
    "boosting": spinney.GradientBoostingClassifier(n_estimators=2, random_state=0),
    "forest": spinney.RandomForestClassifier(n_estimators=2, random_state=0),
}
SIZES = [64, 250, 500, 750, 1000, 1250, 1500, 1750, 2000, 2500, 3000, 4000, 8000]  # kB: the last is enough


@contextlib.contextmanager
def mounted(place, options):
    """A file system of its own in a folder, if that can be had."""
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "spinney", str(place)], check=False, capture_output=True
    )
    if made.returncode != 0:
        pytest.skip("file systems cannot be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.fixture
def _from_disk(monkeypatch):
    """Take no table for one that memory holds, and hold as few rows as may be."""
    monkeypatch.setattr(plan, "fits", lambda plan: plan.by_levels)
    monkeypatch.setattr(plan, "LEAST_GATHERED", 1 << 10)
    monkeypatch.setattr(plan, "SPARE_BYTES", 1 << 40)


@pytest.fixture(scope="module")
def table():
    return make_table(N_ROWS)


def scan_rows(table):
    return Scan(table, "y", drop=["w", "g"], memory=10**9, block_rows=4096)


def clone(model):
    return type(model)(**model.get_params(deep=False))


def fit_in_memory(model, table, folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "fits", lambda _: True)
        return model_bytes(clone(model).fit(*split(table)), folder)


@pytest.mark.usefixtures("_from_disk")
@pytest.mark.parametrize("name", MODELS)
def test_a_disk_that_is_full_at_any_moment_is_told_in_one_line(name, table, tmp_path, monkeypatch):
    expected = fit_in_memory(MODELS[name], table, tmp_path)
    n_told = 0
    for size in SIZES:
        with mounted(tmp_path / f"disk-{size}", f"size={size}k") as disk:
            monkeypatch.setattr(tempfile, "tempdir", str(disk))
            model, scanned = clone(MODELS[name]), scan_rows(table)
            try:
                model.fit(scanned)
            except OSError as error:
                text = str(error)
                assert f"no space left to write {disk}" in text
                assert "\n" not in text
                assert "free some, or" in text
                n_told += 1
            else:
                assert model_bytes(model, tmp_path) == expected
            del scanned
            assert list(disk.iterdir()) == []
    assert 3 < n_told < len(SIZES)


@pytest.mark.usefixtures("_from_disk")
@pytest.mark.parametrize("name", MODELS)
def test_a_store_on_a_read_only_disk_is_grown_from(name, table, tmp_path, monkeypatch):
    expected = fit_in_memory(MODELS[name], table, tmp_path)
    (elsewhere := tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(elsewhere))
    with mounted(tmp_path / "disk", "size=16m") as disk:
        scan_rows(table).store(disk / "t.codes")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        if os.access(disk, os.W_OK):
            pytest.skip("it can be written to all the same")
        store = spinney.scan(disk / "t.codes", memory=10**9)
        assert model_bytes(clone(MODELS[name]).fit(store), tmp_path) == expected
        assert sorted(path.name for path in disk.iterdir()) == ["t.codes"]
    assert list(elsewhere.iterdir()) == []


@pytest.mark.usefixtures("_from_disk")
def test_fits_of_one_store_at_once_give_what_each_gives_alone(table, tmp_path):
    store = scan_rows(table).store(tmp_path / "t.codes")
    expected = {name: fit_in_memory(model, table, tmp_path) for name, model in MODELS.items()}

    def fit(k):
        name = list(MODELS)[k % 2]
        (folder := tmp_path / f"{k}").mkdir()
        return name, model_bytes(clone(MODELS[name]).fit(store), folder)

    with ThreadPoolExecutor(4) as pool:
        for name, found in pool.map(fit, range(6)):
            assert found == expected[name]
    left = [path.name for path in tmp_path.rglob(".spinney-*")]
    assert left == []
