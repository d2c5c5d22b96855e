"""`warmup` compiles all that fits and predictions can ask for."""

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from spinney import _jit
from spinney._warmup import compiling_beside

# What compiles is seen only in a process that has compiled nothing else before.
SPREAD = """
import io, itertools, pickle
import joblib, numpy as np, pandas as pd
import spinney
from spinney import C45Classifier, CARTClassifier, CARTRegressor, ID3Classifier, ID3Regressor, _jit
from spinney import ExtraTreesClassifier, ExtraTreesRegressor, GradientBoostingClassifier, GradientBoostingRegressor
from spinney import RandomForestClassifier, RandomForestRegressor

spinney.warmup()
kernels = _jit.load_compiled()
doors = {
    f"{folder}.{name}.{function}": dispatcher
    for folder, package in vars(kernels).items() if not folder.startswith("_")
    for name, module in vars(package).items() if not name.startswith("_")
    for function, dispatcher in vars(module).items()
    if isinstance(getattr(dispatcher, "_cache", None), _jit.store.Store)
}
assert {"tree.driver.grow", "predict.lanes.find", "data.binning.fill_bins"} <= set(doors), doors
left = (  # rows on disk or on workers, and columns of 2**18 rows
    "boost.levels.", "tree.levels.", "boost.pack_gradients.pack_part", "data.sorted_pieces.",
    "data.binning.start_chain", "data.binning.find_last_values", "data.binning.fill_sorted",
)
before = {name: list(door.signatures) for name, door in doors.items()}
cold = [name for name, signatures in before.items() if not signatures and not name.startswith(left)]
assert not cold, cold

generator = np.random.default_rng(0)
X = generator.integers(0, 9, size=(200, 4)).astype(float)
holes = np.where(generator.random(X.shape) < 0.1, np.nan, X)
frozen = X.copy()
frozen.flags.writeable = False
shifted = np.frombuffer(b"x" + X.tobytes(), dtype=np.uint8)[1:].view(float).reshape(X.shape)
frame = pd.DataFrame({"a": holes[:, 0], "b": pd.Categorical(np.array(list("uvw"))[X[:, 1].astype(int) % 3])})
tables = [
    X, holes, frozen, shifted, X.astype(np.float32), X.astype(np.float16), X.astype(np.int32), X > 3,
    np.asfortranarray(X), X[:, ::2], X.tolist(), holes.astype(object), X[:, :1], X[:1], frame, frame[["a"]],
    generator.normal(size=(6000, 4)), generator.normal(size=(6000, 4)).astype(np.float32), np.tile(X, (1, 100)),
]
shared = [
    {}, {"missing": "branch"}, {"missing": "surrogate"}, {"missing": "surrogate", "max_surrogates": np.uint8(1)},
    {"max_leaf_nodes": 5},
    {"max_leaf_nodes": np.int32(5)}, {"max_depth": np.uint8(3)},
    {"max_features": "sqrt", "random_state": 0}, {"ties": "random", "random_state": 0}, {"ccp_alpha": 0.01},
    {"max_bins": 2}, {"max_bins": np.int16(3), "min_samples_leaf": np.int8(2)},
    {"min_weight_fraction_leaf": np.float32(0.1), "min_impurity_decrease": np.float32(0.01)},
    {"min_samples_split": 0.1, "min_samples_leaf": 0.05},
]
criteria = ["gini", "entropy", "misclassification", "gain_ratio"]
for table in tables:
    n = len(table)
    numbers = generator.normal(size=n)
    weights = [None, np.ones(n), generator.integers(1, 4, n), generator.random(n) + 0.1]
    settings = shared if table is X or table is frame else shared[:1]
    for params, weight in itertools.product(settings, weights):
        for classes in (1, 2, 3, 12):
            for criterion in criteria if params is shared[0] or "missing" in params else criteria[:1]:
                labels = np.arange(n) % classes
                model = CARTClassifier(criterion=criterion, **params).fit(table, labels, weight)
                model.predict(table), model.predict_proba(table)
        for criterion in ("squared_error", "sdr"):
            model = CARTRegressor(criterion=criterion, **params).fit(table, numbers, weight)
            model.predict(table)
    for forest in (ExtraTreesRegressor, RandomForestRegressor):
        forest(n_estimators=2, random_state=0).fit(table, numbers).predict(table)
    for forest, classes in itertools.product((ExtraTreesClassifier, RandomForestClassifier), (2, 3, 12)):
        forest(n_estimators=2, random_state=0).fit(table, np.arange(n) % classes).predict(table)
for categorical in ([0], [0, 1, 2, 3]):
    CARTClassifier(categorical_features=categorical).fit(X, X[:, 0] > 3).decision_path(X)
    CARTRegressor(categorical_features=categorical, min_target_std=0.1).fit(holes, X[:, 0]).apply(holes)
CARTRegressor(monotonic_cst=[1, 0, -1, 0]).fit(X, X[:, 0]).predict(X)
weights = None, 1 + np.arange(200) % 2, X[:, 1] + 0.5
for table, weight in itertools.product((X, holes, X.astype(np.float32), frame), weights):
    model = CARTRegressor(max_depth=2, leaf_model="linear", leaf_features="all").fit(table, X[:, 0] * X[:, 1], weight)
    pickle.loads(pickle.dumps(model)).predict(table)
    for classes in (1, 2, 3):
        for criterion in ("entropy", "gini", "gain_ratio"):
            ID3Classifier(criterion=criterion).fit(table, np.arange(200) % classes, weight).predict(table)
        model = C45Classifier(trace=True, max_depth=3).fit(table, np.arange(200) % classes, weight)
        model.predict(table), model.predict_proba(table), model.apply(table)
        C45Classifier(pruning=None).fit(table, np.arange(200) % classes, weight).prune(
            "pessimistic", table, np.arange(200) % classes, weight, raising=True
        )
    for criterion in ("squared_error", "sdr"):
        ID3Regressor(criterion=criterion, trace=True, max_depth=3).fit(table, X[:, 0], weight).predict(table)
CARTClassifier(monotonic_cst=[1, 0, -1, 0], class_weight="balanced").fit(X, X[:, 0] > 4).predict(X)
model = CARTClassifier().fit(frame, np.arange(200) % 3)
pickle.loads(pickle.dumps(model)).predict(frame)
joblib.dump(model, "model.joblib")
joblib.load("model.joblib", mmap_mode="r").predict(frame)
boosted = {"effort": 0.05}, {"n_estimators": 3}, {"n_estimators": 3, "subsample": 1.0, "max_features": None}
for table, categorical in itertools.product((X, np.tile(X, (45, 6))), (None, [0])):
    n = len(table)
    weights = None, generator.integers(1, 4, n), generator.random(n) + 0.1
    for params, weight, n_jobs in itertools.product(boosted, weights, (1, 2)):
        shared = {"random_state": 0, "n_jobs": n_jobs, "categorical_features": categorical, **params}
        for classes in (2, 3):
            model = GradientBoostingClassifier(**shared).fit(table, np.arange(n) % classes, weight)
            model.predict_proba(table)
        GradientBoostingRegressor(**shared).fit(table, table[:, 1], weight).predict(table)

after = {name: list(door.signatures) for name, door in doors.items()}
more = {name: after[name][len(before[name]):] for name in doors if after[name] != before[name]}
print({name: len(signatures) for name, signatures in more.items()})
"""


@pytest.mark.slow
def test_nothing_is_compiled_after_warmup(tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    paths = [str(Path(path).resolve()) for path in environment.get("PYTHONPATH", "").split(os.pathsep) if path]
    process = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(SPREAD)],
        env=environment | {"PYTHONPATH": os.pathsep.join(paths)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.strip() == "{}"


@pytest.fixture
def beside(tmp_path, monkeypatch):
    """A store without kernels, and a task for another process: it leaves a file, then takes its time."""
    tmp_path.joinpath("slow_task.py").write_text(
        "import pathlib, time\n"
        "def quick():\n    pathlib.Path(__file__).with_name('came').touch()\n"
        "def slow():\n    quick()\n    time.sleep(60)\n    pathlib.Path(__file__).with_name('ended').touch()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(_jit.choice, "IS_JIT_DISABLED", False)
    monkeypatch.setattr(_jit, "cache_directory", lambda: tmp_path)
    monkeypatch.setattr("joblib.cpu_count", lambda: 2)
    return tmp_path


def test_another_process_compiles(beside):
    with compiling_beside("slow_task:quick", "grow.grow") as wait:
        wait()
        assert beside.joinpath("came").exists()


def test_what_was_not_waited_for_is_ended(beside):
    with compiling_beside("slow_task:slow", "grow.grow"):
        while not beside.joinpath("came").exists():
            time.sleep(0.01)
    assert not beside.joinpath("ended").exists()


def test_a_task_that_fails_is_nobodys_trouble(beside):
    with compiling_beside("no_such_module:task", "grow.grow") as wait:
        wait()
    assert not beside.joinpath("came").exists()


@pytest.mark.parametrize("why", ["stored", "one core", "no store", "interpreted"])
def test_where_another_process_is_of_no_use_there_is_none(beside, monkeypatch, why):
    if why == "stored":
        beside.joinpath("grow.grow-1234.kernel").touch()
    elif why == "one core":
        monkeypatch.setattr("joblib.cpu_count", lambda: 1)
    elif why == "no store":
        monkeypatch.setattr(_jit, "cache_directory", lambda: None)
    else:
        monkeypatch.setattr(_jit.choice, "IS_JIT_DISABLED", True)
    with compiling_beside("slow_task:quick", "grow.grow") as wait:
        wait()
    assert not beside.joinpath("came").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes")
def test_f15_it_ends_with_the_process_that_started_it(beside):
    os.mkfifo(beside / "pipe")
    beside.joinpath("slow_task.py").write_text(
        "import pathlib, time\n"
        "def slow():\n    pipe = pathlib.Path(__file__).with_name('pipe').open('w')\n    time.sleep(600)\n"
    )
    code = """
    import os, signal, sys
    from spinney import _warmup
    _warmup._can_compile_beside = lambda _: True
    with _warmup.compiling_beside("slow_task:slow", "grow.grow"):
        sys.stdin.read()
        os.kill(os.getpid(), signal.SIGKILL)
    """
    places = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    arguments = [sys.executable, "-c", textwrap.dedent(code)]
    with (
        subprocess.Popen(arguments, env=os.environ | places, stdin=subprocess.PIPE) as process,
        beside.joinpath("pipe").open() as pipe,  # the other process has opened it, too
    ):
        process.stdin.close()
        assert process.wait(60) == -9
        assert pipe.read() == ""  # that process has ended: only then is this the end
