"""Loaded models in threads and processes: one file, the same answers everywhere."""

import asyncio
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest

import saved_models
import spinney

NAMES = ("forest", "boosting classes", "c45", "adaboost")


def ask(path):
    """What a process says that opens the file."""
    model, predictor = spinney.load_model(path), spinney.load_predictor(path)
    X, _ = saved_models.make_data(seed=1)
    one = [np.asarray(predictor(row)).tolist() for row in predictor.encode(X)[:9]]
    return model.predict(X).tolist(), model.predict_proba(X).tobytes(), one


@pytest.fixture(scope="module", params=NAMES)
def saved(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.spn"
    model, _ = saved_models.fit(request.param)
    model.save_model(path)
    return path


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_fault_113_processes_open_one_file(saved):
    here = ask(saved)
    for method in ["fork", "spawn"] if "0" in saved.parent.name else ["fork"]:  # a new process takes seconds
        with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context(method)) as pool:
            for there in pool.map(ask, [saved] * 2, timeout=120):
                assert there == here


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("is_asked", [False, True])
def test_fault_113_a_child_asks_what_its_parent_opened(saved, is_asked):
    """Whether or not the parent had derived anything yet: the same answers, and no waiting for a lock of its."""
    model, predictor = spinney.load_model(saved), spinney.load_predictor(saved)
    X, _ = saved_models.make_data(seed=1)
    values = predictor.encode(X)
    if is_asked:
        predictor(values[0])
        model.predict(X)
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # ends a child that hangs
        same = model.predict_proba(X).tobytes() == predictor(values).tobytes()
        same = same and np.asarray(predictor(values[3])).tobytes() == model.predict_proba(X[3:4])[0].tobytes()
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_fault_125_files_need_no_optional_library(tmp_path):
    saved = tmp_path / "model.spn"
    saved_models.fit("forest")[0].save_model(saved)
    code = f"""
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {{"pandas", "polars", "dask", "matplotlib", "onnx", "psutil", "safetensors"}}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
import spinney
model, predictor = spinney.load_model({str(saved)!r}), spinney.load_predictor({str(saved)!r})
row = [[0.5, 1.0, 2.0, 3.0]]
assert model.predict(row).tolist() == predictor.predict(row).tolist()
model.save_model({str(saved)!r} + ".again")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.compiled(reason="ten thousand rows of every method take minutes interpreted")
def test_a_predictor_needs_numpy_and_the_kernels_only(tmp_path):
    """Tables in threads included."""
    for name in NAMES:
        saved_models.fit(name)[0].save_model(tmp_path / name)
    code = f"""
import sys
from pathlib import Path

BLOCKED = {{"sklearn", "scipy", "joblib", "threadpoolctl", "narwhals", "pyarrow", "safetensors", "click", "rich"}}

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocker())
import numpy as np
import spinney
for path in Path({str(tmp_path)!r}).iterdir():
    ask = spinney.load_predictor(path)
    rows = np.resize([0.5, 1.0, 2.0, 3.0, -1.0], (10_000, 4))
    assert np.array_equal(ask(rows[7]), ask(rows)[7])
    said = [ask.predict(rows, n_jobs=n_jobs).tolist() for n_jobs in (None, 1, 2, -1)]
    assert all(one == said[0] for one in said)
    ask.apply(rows[:3]), ask.predict_trees(rows[:3])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_fault_110_eight_threads_ask_one_predictor(saved):
    predictor = spinney.load_predictor(saved)  # nothing is derived yet: all threads want it at once
    X, _ = saved_models.make_data(seed=1)
    values = predictor.encode(X)
    barrier = threading.Barrier(8)

    def work(_):
        barrier.wait()
        rows = [np.asarray(predictor(row)).tobytes() for row in values]
        return rows, predictor.predict(X).tolist(), predictor(values).tobytes()

    with ThreadPoolExecutor(8) as pool:
        first, *others = pool.map(work, range(8))
    assert all(other == first for other in others)


def test_fault_110_eight_threads_open_one_file(saved):
    X, _ = saved_models.make_data(seed=1)
    before = list(warnings.filters)
    barrier = threading.Barrier(8)

    def work(_):
        barrier.wait()
        return [spinney.load_model(saved).predict(X).tolist() for _ in range(5)]

    with ThreadPoolExecutor(8) as pool:
        first, *others = pool.map(work, range(8))
    assert all(other == first for other in others)
    assert warnings.filters == before


def test_fault_111_threads_ask_while_another_fits(saved):
    model = spinney.load_model(saved)
    X, y = saved_models.make_data(3, seed=1)
    before = model.predict_proba(X).tobytes()
    with ThreadPoolExecutor(2) as pool:
        fitting = pool.submit(lambda: spinney.RandomForestClassifier(n_estimators=20, random_state=0).fit(X, y))
        while not fitting.done():
            assert model.predict_proba(X).tobytes() == before


def test_fault_112_ask_from_a_loop(saved):
    predictor = spinney.load_predictor(saved)
    X, _ = saved_models.make_data(seed=1)

    async def main():
        loop = asyncio.get_running_loop()
        return await asyncio.gather(*(loop.run_in_executor(None, predictor.predict, X) for _ in range(4)))

    first, *others = asyncio.run(main())
    for other in others:
        np.testing.assert_array_equal(other, first)


def test_a_file_can_be_replaced_while_it_is_open(tmp_path):
    path = tmp_path / "model.spn"
    old, X = saved_models.fit("forest")
    old.save_model(path)
    loaded = spinney.load_model(path)
    new, _ = saved_models.fit("boosting")
    new.save_model(path)
    np.testing.assert_array_equal(loaded.predict_proba(X), old.predict_proba(X))
    np.testing.assert_array_equal(spinney.load_model(path).predict_proba(X), new.predict_proba(X))
