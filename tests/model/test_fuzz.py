"""The fuzzer: what it damages, what it would notice, and a short run of it."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

import spinney
from spinney.model.container import BrokenFileError, unpack

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY))

from fuzz import corpus, mutations, trial, workers  # noqa: E402


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    corpus.write_corpus(folder)
    return corpus.read_corpus(folder)


def test_damage_is_done_and_done_again(files):
    """A trial is known by its number, and most damage leaves the hash right."""
    made = [workers.make_file(files, 0, n) for n in range(300)]
    assert made == [workers.make_file(files, 0, n) for n in range(300)]
    assert made != [workers.make_file(files, 1, n) for n in range(300)]
    n_right = 0
    for whole in made:
        try:
            unpack(whole)
        except BrokenFileError:
            continue
        n_right += 1
    assert n_right > 150
    assert sum(whole in files for whole in made) < 30


@pytest.mark.parametrize(
    "damage", [mutations.damage_payload, mutations.damage_arrays, mutations.damage_json, mutations.damage_layout]
)
def test_damage_on_purpose_is_sealed(damage, files):
    for n, whole in enumerate(files):
        changed = damage(whole, Random(n), files)
        header, payload = mutations.split(changed)
        assert mutations.seal(header, payload) == changed


def is_fault(monkeypatch, tmp_path, load):
    monkeypatch.setattr(spinney, "load_model", load)
    path = tmp_path / "file"
    path.write_bytes(bytes(100))
    return trial.attempt(path, "load_model").is_fault


def refuse(_):
    raise BrokenFileError


def fail(_):
    raise KeyError


def wait(_):
    begin = time.process_time()
    while time.process_time() - begin < trial.MOST_SECONDS:
        pass
    raise BrokenFileError


def fill(_):
    held = bytes(trial.FREE_BYTES + 1000)
    raise BrokenFileError(len(held))


class Unfit:
    n_features_in_ = 2

    def predict(self, _):
        raise IndexError


@pytest.mark.parametrize(
    ("load", "expected"), [(refuse, False), (fail, True), (wait, True), (fill, True), (lambda _: Unfit(), True)]
)
def test_a_trial_notices(load, expected, monkeypatch, tmp_path):
    assert is_fault(monkeypatch, tmp_path, load) == expected


def die(_, __, ___, current, ____):
    current[0], current[1] = 7, time.monotonic()
    os.kill(os.getpid(), signal.SIGKILL)


def sleep(_, __, ___, current, ____):
    current[0], current[1] = 8, time.monotonic()
    time.sleep(60)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
@pytest.mark.parametrize(("work", "expected"), [(die, (7, "crash: exit code -9")), (sleep, (8, "hang: 0.5 s"))])
def test_a_watched_process_is_noticed(work, expected, monkeypatch):
    monkeypatch.setattr(workers, "work", work)
    monkeypatch.setattr(workers, "HANG_SECONDS", 0.5)
    worker = workers.Worker(multiprocessing.get_context("fork"), "", 0, range(20), None)
    while not worker.is_over():
        time.sleep(0.05)
    assert worker.fault == expected


@pytest.mark.compiled(reason="takes minutes interpreted")
@pytest.mark.slow  # `test_hostile_files` and `test_file_faults` damage files on purpose
def test_a_thousand_files_do_no_harm(tmp_path):
    command = [sys.executable, "-m", "fuzz", "--n", "1000", "--workers", "1", "--failures", str(tmp_path)]
    done = subprocess.run(command, cwd=REPOSITORY, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1000 files" in done.stdout
    assert "0 faults" in done.stdout
