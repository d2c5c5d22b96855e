"""Forests of two more peers, each in a process of its own, which reports the time of its fit alone.

- YDF (Yggdrasil Decision Forests): `import ydf` of this Python, or of the one that YDF_PYTHON names
- ranger: the R package, where `Rscript` is on the path

Both grow on one thread with our settings: full depth, square root of the features for classes, all of them for
numbers. They get the categories, a missing level being one of its own; ranger by default orders the levels by name
and cuts between them, as if they were numbers.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import csv

from benchmarks.runner import Timing

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.tables import Split

YDF = """
import json, resource, sys, time
import numpy as np
import ydf
folder, n_trees, is_regression, seed = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "1", int(sys.argv[4])
train, test = (dict(np.load(f"{folder}/{part}.npz")) for part in ("train", "test"))
truth = test.pop("target")
learner = ydf.RandomForestLearner(
    label="target",
    task=ydf.Task.REGRESSION if is_regression else ydf.Task.CLASSIFICATION,
    num_trees=n_trees,
    max_depth=-1,
    min_examples=1,
    num_candidate_attributes=-1 if is_regression else 0,
    winner_take_all=False,
    compute_oob_performances=False,
    num_threads=1,
    random_seed=seed,
)
cpu = lambda: sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
ydf.verbose(0)
wall, spent = time.perf_counter(), cpu()
model = learner.train(train)
wall, spent = time.perf_counter() - wall, cpu() - spent
found = model.predict(test)
if is_regression:
    score = 1 - np.mean((found - truth) ** 2) / np.var(truth)
else:
    classes = np.array(model.label_classes())
    code = found.argmax(axis=1) if found.ndim == 2 else (found > 0.5).astype(int)
    score = np.mean(classes[code] == truth)
print(json.dumps([wall, spent, float(score)]))
"""
RANGER = """
arguments <- commandArgs(trailingOnly = TRUE)
n_trees <- as.integer(arguments[2]); is_regression <- arguments[3] == "1"; seed <- as.integer(arguments[4])
library(ranger)
train <- read.csv(file.path(arguments[1], "train.csv"), stringsAsFactors = TRUE, na.strings = character())
test <- read.csv(file.path(arguments[1], "test.csv"), stringsAsFactors = FALSE, na.strings = character())
for (name in names(train)) if (is.factor(train[[name]])) {
  test[[name]] <- factor(test[[name]], levels = levels(train[[name]]))
  if (name != "target") test[[name]][is.na(test[[name]])] <- levels(train[[name]])[1]
}
if (!is_regression) train$target <- factor(train$target)
mtry <- if (is_regression) ncol(train) - 1 else NULL
time <- system.time(model <- ranger(dependent.variable.name = "target", data = train, num.trees = n_trees,
  mtry = mtry, min.node.size = 1, num.threads = 1, oob.error = FALSE, seed = seed + 1))
found <- predict(model, test, num.threads = 1)$predictions
score <- if (is_regression) 1 - mean((found - test$target)^2) / mean((test$target - mean(test$target))^2) else
  mean(as.character(found) == as.character(test$target), na.rm = TRUE)
cat(sprintf("[%.6f, %.6f, %.6f]", time[["elapsed"]], time[["user.self"]] + time[["sys.self"]], score))
"""


class Peer(NamedTuple):
    """A library that is run by another program."""

    name: str
    command: list[str]  # what runs its script

    def fit(self, folder: Path, n_trees: int, is_regression: bool, seed: int) -> tuple[Timing, float]:
        """Time of a fit on the table in a folder, and its accuracy or R2 on the rows held out."""
        arguments = [str(folder), str(n_trees), str(int(is_regression)), str(seed)]
        done = subprocess.run([*self.command, *arguments], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{self.name} failed:\n{done.stderr}")
        wall, cpu, score = json.loads(done.stdout.splitlines()[-1])
        return Timing(wall, cpu), score


def find_peers() -> list[Peer]:
    """Those that are installed; a line for each of the others."""
    peers = []
    python = find_ydf()
    if python is not None:
        peers.append(Peer("YDF", [python, "-c", YDF]))
    rscript = shutil.which("Rscript")
    if rscript and is_present([rscript, "-e", "library(ranger)"]):
        peers.append(Peer("ranger", [rscript, "-e", RANGER]))
    else:
        print("ranger: left out, no Rscript with the package ranger (Debian: r-cran-ranger)")
    return peers


def find_ydf() -> str | None:
    """A Python that has YDF; None, with a line, where there is none."""
    python = os.environ.get("YDF_PYTHON", sys.executable)
    if is_present([python, "-c", "import ydf"]):
        return python
    print("YDF: left out, not installed (set YDF_PYTHON to a Python that has it)")
    return None


def is_present(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def write_split(split: Split, folder: Path) -> None:
    """Both parts of a split as CSV and as NumPy arrays, for the peers to read."""
    for part, X, y in (("train", split.X, split.y), ("test", split.X_test, split.y_test)):
        columns: dict[str, Any]
        if isinstance(X, pa.Table):
            columns = {f"x{j}": plain_column(column) for j, column in enumerate(X.columns)}
        else:
            columns = {f"x{j}": np.ascontiguousarray(X[:, j]) for j in range(X.shape[1])}
        columns["target"] = y if y.dtype.kind in "fU" else y.astype(str)
        np.savez(folder / f"{part}.npz", **columns)
        if columns["target"].dtype.kind == "U":  # R would take classes that look like numbers for numbers
            columns["target"] = np.char.add("c", columns["target"])
        csv.write_csv(pa.table(columns), folder / f"{part}.csv")


def plain_column(column: pa.ChunkedArray) -> Any:
    """A column as a NumPy array of numbers or strings."""
    if pa.types.is_dictionary(column.type):
        return np.asarray(column.cast("string").fill_null("missing").to_pylist())
    return column.to_numpy()
