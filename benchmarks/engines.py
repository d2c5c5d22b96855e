"""What predicts, behind one face: our models, those of peers, and engines that take over a peer's model.

An engine is a function of rows (n_rows, n_features) and a number of threads. LightGBM's model also goes through
onnxruntime, treelite (GTIL) and lleaves, scikit-learn's forest through onnxruntime and treelite. Whatever is not
installed is left out with a line. lleaves wants an older compiler than ours: it runs in a process of its own, by the
Python that LLEAVES_PYTHON names, and reports its time itself. YDF gets its own dataset, made beforehand.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.boosters import LEARNING_RATE, MIN_ROWS, N_BINS
from benchmarks.runner import Timing

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

BUNCH_ROWS = 100
LLEAVES_SECONDS = 120
LLEAVES = """
import sys, time
import numpy as np
import lleaves
path, rows, n_threads, repeats = sys.argv[1], np.load(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
model = lleaves.Model(model_file=path)
model.compile(cache=path + ".compiled")
best = [1e9, 1e9]
for _ in range(repeats + 1):
    wall, cpu = time.perf_counter(), time.process_time()
    model.predict(rows, n_jobs=n_threads)
    best = [min(best[0], time.perf_counter() - wall), min(best[1], time.process_time() - cpu)]
print(best)
"""


class Shape(NamedTuple):
    """Trees to predict with."""

    name: str
    n_trees: int
    n_leaves: int | None  # None: a forest of full depth
    is_regression: bool


class Engine(NamedTuple):
    """Something that predicts rows on some threads."""

    name: str
    predict: Callable[[NDArray[Any], int], Any]
    takes: tuple[str, ...] = ("float32", "float64")  # types of values
    measure: Callable[[NDArray[Any], int, int], Timing] | None = None  # of one that times itself: the best of turns


def has(*modules: str) -> bool:
    """Whether peers are installed; a line where they are not."""
    for module in modules:
        try:
            import_module(module)
        except (ImportError, AttributeError):
            print(f"{module}: left out, not installed")
            return False
    return True


# --- Ours -------------------------------------------------------------------------------------------------------


def fit_ours(shape: Shape, X: NDArray[Any], y: NDArray[Any]) -> Any:
    import spinney

    if shape.n_leaves:
        return spinney.GradientBoostingRegressor(
            n_estimators=shape.n_trees,
            max_leaf_nodes=shape.n_leaves,
            learning_rate=LEARNING_RATE,
            max_bins=N_BINS,
            min_samples_leaf=MIN_ROWS,
            subsample=1.0,
            max_features=None,
        ).fit(X, y)
    kind = spinney.RandomForestRegressor if shape.is_regression else spinney.RandomForestClassifier
    return kind(n_estimators=shape.n_trees, random_state=0).fit(X, y)


def our_engine(model: Any) -> Engine:
    """The public prediction of an estimator, checks included; probabilities of classes."""

    def predict(rows: NDArray[Any], n_threads: int) -> Any:
        model.n_jobs = n_threads
        return model.predict_proba(rows) if hasattr(model, "predict_proba") else model.predict(rows)

    return Engine("ours", predict)


# --- Peers ------------------------------------------------------------------------------------------------------


def boosted_peers(shape: Shape, X: NDArray[Any], y: NDArray[Any], folder: Path) -> list[Engine]:
    engines = []
    if has("lightgbm"):
        import lightgbm

        settings = {
            "objective": "regression", "num_leaves": shape.n_leaves, "learning_rate": LEARNING_RATE,
            "max_bin": N_BINS, "min_data_in_leaf": MIN_ROWS, "num_threads": 1, "verbose": -1,
        }  # fmt: skip
        booster = lightgbm.train(settings, lightgbm.Dataset(X, y), shape.n_trees)
        engines.append(Engine("LightGBM", lambda rows, n: booster.predict(rows, num_threads=n)))
        engines += engines_of_lightgbm(booster, X.shape[1], folder)
    if has("xgboost"):
        import xgboost
        from threadpoolctl import threadpool_limits

        settings = {
            "tree_method": "hist", "grow_policy": "lossguide", "max_leaves": shape.n_leaves, "max_depth": 0,
            "eta": LEARNING_RATE, "max_bin": N_BINS, "nthread": 1,
        }  # fmt: skip
        model = xgboost.train(settings, xgboost.DMatrix(X, y), shape.n_trees)

        def predict_xgboost(rows: NDArray[Any], n_threads: int) -> Any:
            model.set_param({"nthread": n_threads})
            with threadpool_limits(n_threads):  # it takes no more than OMP_NUM_THREADS by itself
                return model.inplace_predict(rows)

        engines.append(Engine("XGBoost", predict_xgboost))
    engines.append(hist_engine(shape, X, y))
    if has("ydf"):
        import ydf

        learner = ydf.GradientBoostedTreesLearner(
            label="y", task=ydf.Task.REGRESSION, num_trees=shape.n_trees, growing_strategy="BEST_FIRST_GLOBAL",
            max_num_nodes=shape.n_leaves, max_depth=-1, shrinkage=LEARNING_RATE, early_stopping="NONE",
            validation_ratio=0.0, min_examples=MIN_ROWS, num_threads=1,
        )  # fmt: skip
        engines.append(ydf_engine(learner, X, y))
    return engines


def hist_engine(shape: Shape, X: NDArray[Any], y: NDArray[Any]) -> Engine:
    from sklearn.ensemble import HistGradientBoostingRegressor
    from threadpoolctl import threadpool_limits

    model = HistGradientBoostingRegressor(
        max_iter=shape.n_trees, max_leaf_nodes=shape.n_leaves, learning_rate=LEARNING_RATE, early_stopping=False
    ).fit(X, y)

    def predict(rows: NDArray[Any], n_threads: int) -> Any:
        with threadpool_limits(n_threads):
            return model.predict(rows)

    return Engine("scikit-learn", predict)


def forest_peers(shape: Shape, X: NDArray[Any], y: NDArray[Any]) -> list[Engine]:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    kind = RandomForestRegressor if shape.is_regression else RandomForestClassifier
    model = kind(n_estimators=shape.n_trees, random_state=0, max_features=1.0 if shape.is_regression else "sqrt")
    model.fit(X, y)

    def predict(rows: NDArray[Any], n_threads: int) -> Any:
        model.n_jobs = n_threads
        return model.predict(rows) if shape.is_regression else model.predict_proba(rows)

    engines = [Engine("scikit-learn", predict)]
    if has("skl2onnx", "onnxruntime"):
        from skl2onnx import to_onnx

        options = None if shape.is_regression else {id(model): {"zipmap": False}}
        file = to_onnx(model, X[:1].astype(np.float32), options=options)
        engines.append(onnx_engine(file.SerializeToString(), file.graph.input[0].name))
    if has("treelite"):
        import treelite

        engines.append(gtil_engine(treelite.sklearn.import_model(model)))
    if has("ydf"):
        import ydf

        task = ydf.Task.REGRESSION if shape.is_regression else ydf.Task.CLASSIFICATION
        learner = ydf.RandomForestLearner(
            label="y", task=task, num_trees=shape.n_trees, max_depth=-1, min_examples=1, winner_take_all=False,
            num_candidate_attributes=-1 if shape.is_regression else 0, compute_oob_performances=False, num_threads=1,
        )  # fmt: skip
        engines.append(ydf_engine(learner, X, y))
    return engines


# --- Engines that take over a model -----------------------------------------------------------------------------


def engines_of_lightgbm(booster: Any, n_features: int, folder: Path) -> list[Engine]:
    engines = []
    if has("onnxmltools", "onnxruntime"):
        from onnxmltools import convert_lightgbm
        from onnxmltools.convert.common.data_types import FloatTensorType

        file = convert_lightgbm(booster, initial_types=[("x", FloatTensorType([None, n_features]))], zipmap=False)
        engines.append(onnx_engine(file.SerializeToString(), "x"))
    if has("treelite"):
        import treelite

        engines.append(gtil_engine(treelite.frontend.from_lightgbm(booster)))
    path = folder / f"lightgbm{booster.num_trees()}.txt"
    booster.save_model(path)
    lleaves = lleaves_engine(path, n_features)
    return [*engines, lleaves] if lleaves else engines


def onnx_engine(file: bytes, name: str) -> Engine:
    import onnxruntime

    sessions = {}
    for n_threads in (1, 2):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = n_threads
        sessions[n_threads] = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    return Engine("onnxruntime", lambda rows, n: sessions[n].run(None, {name: rows}), takes=("float32",))


def gtil_engine(model: Any) -> Engine:
    import treelite
    from threadpoolctl import threadpool_limits

    def predict(rows: NDArray[Any], n_threads: int) -> Any:
        with threadpool_limits(n_threads):
            return treelite.gtil.predict(model, rows, nthread=n_threads)

    return Engine("treelite GTIL", predict)


def ydf_engine(learner: Any, X: NDArray[Any], y: NDArray[Any]) -> Engine:
    import ydf

    ydf.verbose(0)
    names = [f"x{j}" for j in range(X.shape[1])]

    def columns(rows: NDArray[Any], target: NDArray[Any]) -> dict[str, NDArray[Any]]:
        return {**{name: np.ascontiguousarray(rows[:, j]) for j, name in enumerate(names)}, "y": target}

    model = learner.train(columns(X, y))
    made: dict[tuple[int, int], Any] = {}

    def predict(rows: NDArray[Any], n_threads: int) -> Any:
        key = id(rows), len(rows)
        if key not in made:
            made.clear()
            made[key] = ydf.create_vertical_dataset(
                columns(rows, y[np.arange(len(rows)) % len(y)]), data_spec=model.data_spec()
            )
        return model.predict(made[key], num_threads=n_threads)

    return Engine("YDF", predict, takes=("float32",))


def lleaves_engine(path: Path, n_features: int) -> Engine | None:
    python = os.environ.get("LLEAVES_PYTHON")
    if python is None:
        print("lleaves: left out (set LLEAVES_PYTHON to a Python that has it)")
        return None

    def turns(rows: NDArray[Any], n_threads: int, repeats: int) -> Timing:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "rows.npy"
            np.save(file, rows.astype(np.float64))
            command = [python, "-c", LLEAVES, str(path), str(file), str(n_threads), str(repeats)]
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LLEAVES_SECONDS)
        return Timing(*json.loads(done.stdout.splitlines()[-1]))

    try:
        turns(np.zeros((1, n_features)), 1, 1)  # compiles the model and keeps that beside its file
    except subprocess.TimeoutExpired:
        print(f"lleaves: left out, it compiles for more than {LLEAVES_SECONDS} s")
        return None
    return Engine("lleaves", lambda *_: None, measure=turns)


def time_rows(call: Callable[[NDArray[Any]], Any], rows: NDArray[Any], repeats: int) -> float:
    """Seconds of one call, over one row after another: the best of some passes, bunch by bunch of 100 rows.

    Between two turns of a row all others pass, so what it meets is as far from the processor as in a real stream.
    """
    bunches = [list(rows[first : first + BUNCH_ROWS]) for first in range(0, len(rows), BUNCH_ROWS)]
    best = [np.inf] * len(bunches)
    for _ in range(repeats):
        for number, bunch in enumerate(bunches):
            wall = time.perf_counter()
            for row in bunch:
                call(row)
            best[number] = min(best[number], time.perf_counter() - wall)
    return sum(best) / len(rows)
