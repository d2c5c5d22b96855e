"""How long does a model file take to open, beyond its hash, and to save? How much memory does each process add?

- opening: `load_predictor` of a regression forest of 100 MB, minus SHA-256 of a buffer of the same size
- saving, and joblib's time for scikit-learn's forest of the same shape, which opens without any check
- processes: memory of their own that four processes take that hold the same file
"""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import numpy as np

import spinney
from benchmarks.runner import Answer, Scale, alternate, in_seconds, report, run_fresh

MOST_SECONDS = 0.05
MOST_SHARE = 0.2
PROCESS = """
import sys, time
import numpy as np
import spinney
def own():
    with open("/proc/self/smaps_rollup") as file:
        lines = dict(line.split(":") for line in file.read().splitlines()[1:])
    return int(lines["Private_Dirty"].split()[0])  # clean pages of a file are those of every process
from spinney import _jit
_jit.load_compiled()
spinney.load_predictor(sys.argv[2]).predict(np.zeros((1, 10)))  # kernels, and whatever else is there once
before = own()
predictor = spinney.load_predictor(sys.argv[1])
rows = np.random.default_rng(0).normal(size=(100, 10))
predictor.predict(rows)
print(own() - before)
predictor(rows[0])
print(own() - before)
"""


def run(scale: Scale) -> list[Answer]:
    from sklearn.ensemble import RandomForestRegressor

    answers: list[Answer] = []
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 10))
    y = X[:, 0] * X[:, 1] + rng.normal(size=len(X))
    n_trees = 8 if scale.repeats < 3 else 125
    ours = spinney.RandomForestRegressor(n_estimators=n_trees, random_state=0).fit(X, y)
    theirs = RandomForestRegressor(n_estimators=n_trees, random_state=0).fit(X, y)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.spn"
        ours.save_model(path)
        ask_opening(answers, path, theirs, Path(folder), scale.repeats)
        small = Path(folder) / "small.spn"
        spinney.RandomForestRegressor(n_estimators=2, random_state=0).fit(X[:100], y[:100]).save_model(small)
        ask_processes(answers, path, small)
    return answers


def ask_opening(answers: list[Answer], path: Path, theirs: object, folder: Path, repeats: int) -> None:
    import joblib

    payload = path.read_bytes()
    megabytes = f"{len(payload) / 1e6:.0f} MB"
    joblib.dump(theirs, folder / "theirs.joblib")
    model = spinney.load_model(path)
    opened, hashed, loaded, saved, dumped = alternate(
        [
            lambda _: spinney.load_predictor(path).n_features,
            lambda _: hashlib.sha256(payload).hexdigest(),
            lambda _: joblib.load(folder / "theirs.joblib").n_features_in_,
            lambda turn: model.save_model(folder / f"again{turn}.spn"),
            lambda turn: joblib.dump(theirs, folder / f"theirs{turn}.joblib"),
        ],
        2 * repeats + 1,
    )
    beyond = opened.best.wall - hashed.best.wall
    report(
        answers,
        Answer(
            "files", f"open {megabytes}, beyond its hash", f"{opened.best}; SHA-256 {in_seconds(hashed.best.wall)}",
            f"joblib, unchecked: {loaded.best}", beyond, " s", MOST_SECONDS, is_least=False,
        ),
    )  # fmt: skip
    report(
        answers,
        Answer(
            "files", f"save {megabytes}", str(saved.best), f"joblib {dumped.best}", dumped.best.wall / saved.best.wall,
            " x its speed", note="hashed, and on the disk when it returns",
        ),
    )  # fmt: skip


def ask_processes(answers: list[Answer], path: Path, small: Path) -> None:
    added = [run_fresh("-c", PROCESS, str(path), str(small)).stdout.split() for _ in range(4)]
    size = path.stat().st_size
    of_tables, of_rows = (max(int(kilobytes) * 1024 for kilobytes in column) for column in zip(*added, strict=True))
    case = f"memory of its own, a process that holds {size / 1e6:.0f} MB"
    report(
        answers,
        Answer(
            "files", case, f"{of_tables / 1e6:.0f} MB", "", of_tables / size, " x the file", MOST_SHARE, is_least=False,
        ),
    )  # fmt: skip
    report(
        answers,
        Answer(
            "files", f"{case} and asks one row", f"{of_rows / 1e6:.0f} MB", "", of_rows / size, " x the file",
            note="the trees packed for single rows",
        ),
    )  # fmt: skip
