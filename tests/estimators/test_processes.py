"""Threads, processes, signals and ways to start Python; the numbers are those of `tests/FAULTS.md`.

What only a fresh process can show runs in one, started as a user would start it.
"""

import asyncio
import os
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from interrupted import LIMIT, interrupt
from spinney import C45Classifier, CARTClassifier, CARTRegressor

pytestmark = pytest.mark.compiled(reason="processes, each of which fits")


# Grows a spread of trees and prints one digest of all their arrays and answers.
DIGEST = """
import hashlib
import sys
import numpy as np
from spinney import CARTClassifier, CARTRegressor

def grow():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(120, 4)).round(1)
    X[:, 3] = generator.integers(0, 12, 120)
    X[generator.random(X.shape) < 0.1] = np.nan
    two, many = generator.integers(0, 2, 120), generator.integers(0, 5, 120)
    number = np.nan_to_num(X[:, 0]) + generator.normal(size=120)
    weight = generator.random(120)
    for settings in (
        {},
        {"categorical_features": [3], "missing": "branch"},
        {"max_leaf_nodes": 9, "categorical_features": [3]},
        {"max_features": 2, "ties": "random", "random_state": 1, "max_bins": 7},
        {"ccp_alpha": 0.01, "min_samples_leaf": 4},
    ):
        for y in (two, many):
            for criterion in ("gini", "entropy", "misclassification"):
                yield CARTClassifier(criterion=criterion, **settings).fit(X, y, weight), X
            yield CARTClassifier(**settings).fit(X, y), X
        for criterion in ("squared_error", "sdr"):
            yield CARTRegressor(criterion=criterion, **settings).fit(X, number, weight), X
        yield CARTRegressor(**settings).fit(X, number), X

def digest():
    result = hashlib.sha256()
    for model, X in grow():
        tree = model.tree_.arrays
        nodes = tree.test, tree.first_child, tree.threshold, tree.subsets, tree.n_rows, tree.weight
        answers = model.predict(X), model.predict(X.astype(np.float32))
        for array in (*nodes, tree.impurity, tree.distributions, *answers):
            result.update(repr((array.shape, array.dtype.str)).encode() + array.tobytes())
    return result.hexdigest()
"""

COMPILED = """
from spinney import _jit
_jit.load_compiled()
print(digest())
"""


def environment(**changes):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    return kept | changes


def run(code, *options, **changes):
    """What a process prints; it must end well and quietly."""
    process = subprocess.run(
        [sys.executable, *options, "-c", textwrap.dedent(code)],
        env=environment(**changes),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    said = [line for line in process.stderr.splitlines() if not line.startswith("spinney: compiling kernels")]
    assert not said
    return process.stdout.strip()


@pytest.fixture(scope="module")
def digest():
    """The digest of the compiled kernels, from a plain process."""
    return run(DIGEST + COMPILED)


# --- ways to start Python -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_fault_121_disabled_compiler_gives_the_same_trees(digest):
    interpreted = run(DIGEST + "print(digest(), 'numba' in sys.modules)", NUMBA_DISABLE_JIT="1")
    assert interpreted == f"{digest} False"


@pytest.mark.slow  # two fresh processes; `tests/jit` starts one with a single thread
def test_fault_122_one_thread_and_one_cpu(digest):
    pin = """
import os
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
"""
    names = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    assert run(pin + DIGEST + COMPILED, **dict.fromkeys(names, "1")) == digest


@pytest.mark.slow
def test_fault_126_optimised_python_with_warnings_as_errors(digest):
    assert run(DIGEST + COMPILED, "-OO", "-W", "error", "-X", "dev") == digest


def test_fault_125_without_the_optional_libraries():
    out = run(
        """
        import sys

        BLOCKED = {"pandas", "polars", "dask", "matplotlib", "onnx", "psutil", "hypothesis"}

        class Blocker:
            def find_spec(self, name, path=None, target=None):
                if name.partition(".")[0] in BLOCKED:
                    raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        sys.meta_path.insert(0, Blocker())
        import numpy as np
        import pyarrow as pa
        import spinney

        X, y = [[0, 1.5], [1, None], [2, 0.5], [3, 2.5]], [0, 1, 0, 1]
        for table in (X, np.array(X, dtype=float), pa.table({"a": [0, 1, 2, 3], "b": ["u", "v", None, "v"]})):
            for kind in (spinney.CARTClassifier, spinney.CARTRegressor):
                model = kind().fit(table, y)
                assert model.predict(table).tolist() == y
                assert model.tree_.to_text()
        spinney.show_versions()
        assert not BLOCKED & {name.partition(".")[0] for name in sys.modules}
        print("done")
        """
    )
    assert out.endswith("done")


# --- interrupts ---------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="signals to one process only")
@pytest.mark.parametrize("stage", ["growing", "coding", "textbook"])
@pytest.mark.sampled(3)
def test_fault_120_interrupt(stage, tmp_path):
    # One row a class: each of 60,000 tests splits off one row, for minutes. Coding: many sorts, one by one.
    code = """
    import sys, warnings
    import numpy as np
    from spinney import C45Classifier, CARTClassifier, CARTRegressor, _jit

    warnings.simplefilter("ignore")
    _jit.load_compiled()
    small = np.arange(40.0).reshape(20, 2), np.arange(20) % 3
    CARTClassifier().fit(*small).predict(small[0])
    CARTRegressor().fit(*small).predict(small[0])
    if sys.argv[1] == "growing":
        model, X, y = CARTClassifier(), np.arange(60_000.0)[:, None], np.arange(60_000)
    elif sys.argv[1] == "textbook":
        model, X = C45Classifier(min_samples_leaf=1, pruning=None), np.arange(60_000.0)[:, None]
        y = np.random.default_rng(0).permutation(60_000)
    else:
        model = CARTRegressor()
        X = np.broadcast_to(np.random.default_rng(0).normal(size=(200_000, 1)), (200_000, 5_000))
        y = X[:, 0]
    model.fit(*small)
    before, answers = model.tree_.arrays, model.predict(small[0])
    print("begin", flush=True)
    try:
        model.fit(X, y)
        print("finished", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    import threading, time
    deadline = time.monotonic() + 5.0  # a thread looks at the flag between nodes, of which the first is large
    while threading.active_count() > 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    print(threading.active_count())
    model.fit(*small)
    print(np.array_equal(model.tree_.test, before.test), np.array_equal(model.predict(small[0]), answers))
    """
    found = interrupt(code, tmp_path, stage, environment=environment())
    assert found.lines == ("begin", "interrupted"), found.errors
    assert found.waited < 20  # in truth a fraction of a second; machines stall
    assert found.rest == ["1", "True", "True"], found.errors


# --- threads ------------------------------------------------------------------------------------------------


PRUNINGS = [(True, "pessimistic"), (False, "pessimistic"), (False, None), (False, "merge")]


def make_table(n_rows, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n_rows, 5))
    X[generator.random(X.shape) < 0.05] = np.nan
    return X, np.digitize(np.nan_to_num(X[:, 0] + X[:, 1] * X[:, 2]), [-0.5, 0.5])


def test_fault_110_eight_threads_predict_with_one_model():
    X, y = make_table(1000)
    for model in (CARTClassifier().fit(X, y), CARTRegressor().fit(X, y)):
        expected = model.predict(X)
        barrier = threading.Barrier(8)

        def work(model=model, barrier=barrier):
            barrier.wait()
            return [model.predict(X) for _ in range(5)], model.apply(X), model.feature_importances_

        with ThreadPoolExecutor(8) as pool:
            results = [future.result() for future in [pool.submit(work) for _ in range(8)]]
        for answers, _, _ in results:
            assert all(np.array_equal(answer, expected) for answer in answers)


def test_fault_110_eight_threads_fit_and_predict_c45_at_once():
    X, y = make_table(1000)
    X = np.column_stack([X, np.arange(1000) % 7])
    settings = [{"categorical_features": [5], "raising": raising, "pruning": how} for raising, how in PRUNINGS]
    expected = [C45Classifier(**setting).fit(X, y) for setting in settings]
    shares = [model.predict_proba(X) for model in expected]
    barrier = threading.Barrier(8)

    def work(number):
        barrier.wait()
        model = C45Classifier(**settings[number % 4]).fit(X, y)
        return model.tree_.arrays.threshold, model.predict_proba(X), expected[number % 4].predict_proba(X)

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(8)))
    for number, (threshold, own, shared) in enumerate(results):
        assert np.array_equal(threshold, expected[number % 4].tree_.arrays.threshold)
        assert np.array_equal(own, shares[number % 4])
        assert np.array_equal(shared, shares[number % 4])


def test_fault_111_predict_while_another_thread_fits():
    X, y = make_table(4500)
    model = CARTClassifier().fit(X, y)
    expected, other = model.predict(X), CARTRegressor().fit(X, y).tree_.arrays
    with ThreadPoolExecutor(2) as pool:
        fits = [pool.submit(lambda: CARTRegressor().fit(X, y).tree_.arrays) for _ in range(2)]
        while not all(fit.done() for fit in fits):
            assert np.array_equal(model.predict(X), expected)
    for fit in fits:
        assert np.array_equal(fit.result().threshold, other.threshold)


def test_fault_112_fit_off_the_main_thread():
    X, y = make_table(4500)
    expected = CARTClassifier().fit(X, y).tree_.arrays.threshold
    trees = []

    def work():
        trees.append(CARTClassifier().fit(X, y).tree_.arrays)

    for is_daemon in (False, True):
        thread = threading.Thread(target=work, daemon=is_daemon)
        thread.start()
        thread.join()

    async def in_executor():
        loop = asyncio.get_running_loop()
        await asyncio.gather(loop.run_in_executor(None, work), asyncio.to_thread(work))

    asyncio.run(in_executor())
    assert len(trees) == 4
    assert all(np.array_equal(tree.threshold, expected) for tree in trees)


# --- processes ----------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fault_113_fork_after_fit():
    out = run(
        """
        import os, signal, sys
        import numpy as np
        from spinney import CARTClassifier, _jit

        _jit.load_compiled()
        generator = np.random.default_rng(0)
        X = generator.normal(size=(20_000, 5))
        y = (X[:, 0] * X[:, 1] > 0).astype(int)
        model = CARTClassifier().fit(X, y)  # large enough for a thread of its own
        expected, tree = model.predict(X), model.tree_.arrays
        child = os.fork()
        if child == 0:
            signal.alarm(10)  # ends a child that hangs
            same = np.array_equal(model.predict(X), expected)
            again = CARTClassifier().fit(X, y).tree_.arrays
            os._exit(0 if same and np.array_equal(again.threshold, tree.threshold) else 1)
        status = os.waitpid(child, 0)[1]
        same = np.array_equal(CARTClassifier().fit(X, y).tree_.arrays.threshold, tree.threshold)
        print(status, same)
        """
    )
    assert out == "0 True"


@pytest.mark.slow
def test_fault_114_spawn_forkserver_and_loky(tmp_path):
    script = tmp_path / "work.py"
    script.write_text(
        textwrap.dedent(
            """
            import multiprocessing
            import sys
            import threading

            import numpy as np
            from sklearn.model_selection import GridSearchCV

            from spinney import CARTClassifier

            def make():
                X = np.random.default_rng(0).normal(size=(3000, 5))
                return X, (X[:, 0] * X[:, 1] > 0).astype(int)

            def work(_):
                model = CARTClassifier().fit(*make())
                return model.tree_.arrays.threshold.tobytes(), threading.active_count()

            if __name__ == "__main__":
                expected = work(0)[0]
                for way in ("spawn", "forkserver"):
                    if way not in multiprocessing.get_all_start_methods():
                        continue
                    with multiprocessing.get_context(way).Pool(1) as pool:
                        for answer, n_threads in pool.map(work, range(2)):
                            assert answer == expected
                            assert n_threads == 1, n_threads
                X, y = make()
                searches = [
                    GridSearchCV(CARTClassifier(), {"max_depth": [2, 5]}, cv=2, n_jobs=n_jobs).fit(X, y)
                    for n_jobs in (1, 2)
                ]
                scores = [search.cv_results_["mean_test_score"].tolist() for search in searches]
                assert scores[0] == scores[1], scores
                print("done")
            """
        )
    )
    process = subprocess.run(
        [sys.executable, str(script)],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.strip() == "done"
