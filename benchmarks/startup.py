"""How long until something is seen? Fresh processes, packages byte-compiled first.

- import: `import spinney` beside a Python that imports nothing
- first tree: import, fit and print a tree of 150 rows (iris, arrays); the peer prints by `export_text`
- lecture: fit and print the 14 rows of play_tennis, a frame, with no kernel on disk
- compiler: the first fit of 100,000 rows ever on a machine, and the first in a later process, each minus a
  fit that waits for nothing
"""

from __future__ import annotations

import compileall
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import spinney
from benchmarks.runner import Answer, Scale, alternate, in_seconds, report, run_fresh
from benchmarks.tables import draw_numeric

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_RATIO = 1.3
MOST_COMPILING = 6.0
N_TURNS = 3  # as many turns of processes as repeats of a fit, times this: they are short and noisy

OURS = """
import sys
import numpy as np
from spinney import CARTClassifier
with np.load(sys.argv[1]) as table:
    model = CARTClassifier().fit(table["X"], table["y"])
print(model.tree_.to_text())
"""
PEER = """
import sys
import numpy as np
from sklearn.tree import DecisionTreeClassifier, export_text
with np.load(sys.argv[1]) as table:
    model = DecisionTreeClassifier(random_state=0).fit(table["X"], table["y"])
print(export_text(model))
"""
FOREIGN = """
import sys
before = set(sys.modules)
import spinney
tops = {name.split(".")[0] for name in set(sys.modules) - before} - {"spinney"}
print(*sorted(tops - set(sys.stdlib_module_names)))
"""
LECTURE = """
import sys
from spinney import CARTClassifier, datasets
table = datasets.load("play_tennis")
model = CARTClassifier().fit(table.drop_columns(["play"]), table["play"].to_pylist())
print(model.tree_.to_text())
print("numba" in sys.modules)
"""
FIRST_FIT = """
import json, sys, time
import numpy as np
from spinney import CARTClassifier
with np.load(sys.argv[1]) as table:
    X, y = table["X"], table["y"]
seconds = []
for _ in range(3):
    start = time.perf_counter()
    CARTClassifier().fit(X, y)
    seconds.append(time.perf_counter() - start)
print(json.dumps(seconds))
"""


def script(code: str, *arguments: str, cache: Path | None = None) -> Callable[[int], str]:
    """A turn that runs code in a fresh process and returns what it printed."""
    environment = {} if cache is None else {"SPINNEY_CACHE_DIR": str(cache)}
    return lambda _turn: run_fresh("-c", code, *arguments, environment=environment).stdout


def ask_import(answers: list[Answer], turns: int) -> None:
    foreign = script(FOREIGN)(0).split()
    ours, bare = alternate([script("import spinney"), script("pass")], turns)
    report(
        answers,
        Answer(
            "startup",
            "import spinney",
            f"{ours.best}; Python alone {bare.best}",
            "",
            float(len(foreign)),
            " foreign packages",
            0.0,
            is_least=False,
            note=f"loads {', '.join(foreign)}" if foreign else "loads the standard library only",
        ),
    )


def ask_first_tree(answers: list[Answer], turns: int, folder: Path) -> None:
    from sklearn.datasets import load_iris

    X, y = load_iris(return_X_y=True)
    iris = folder / "iris.npz"
    np.savez(iris, X=X, y=y)
    sides = [script(OURS, str(iris)), script(PEER, str(iris))]
    for side in sides:  # writes the bytecode
        side(0)
    ours, peer = alternate(sides, turns)
    report(
        answers,
        Answer(
            "startup",
            "import, fit and print 150 x 4",
            str(ours.best),
            str(peer.best),
            ours.best.wall / peer.best.wall,
            " x its time",
            MOST_RATIO,
            is_least=False,
        ),
    )


def ask_lecture(answers: list[Answer], turns: int, folder: Path) -> None:
    (runs,) = alternate([script(LECTURE, cache=folder / "lecture")], turns)
    n_waits = sum(printed.split()[-1] == "True" for printed in runs.results)
    report(
        answers,
        Answer(
            "startup",
            "play_tennis, a frame of 14 rows, no kernel on disk",
            str(runs.best),
            "",
            float(n_waits),
            " processes that loaded the compiler",
            0.0,
            is_least=False,
            note=f"of {turns}; import, fit and print",
        ),
    )


def ask_compiler(answers: list[Answer], scale: Scale, folder: Path) -> None:
    n_rows = scale.rows(100_000)
    X, y = draw_numeric(n_rows)
    table = folder / "numeric.npz"
    np.savez(table, X=X, y=y)
    cases = (("no kernel on disk", MOST_COMPILING), ("kernels on disk", None))
    for case, limit in cases:  # the first fills the cache of the second
        first, *later = json.loads(script(FIRST_FIT, str(table), cache=folder / "first")(0))
        report(
            answers,
            Answer(
                "startup",
                f"first fit of {n_rows:,} x {X.shape[1]}, {case}",
                f"{in_seconds(first)}, later {in_seconds(min(later))}",
                "",
                first - min(later),
                " s waited",
                limit,
                is_least=False,
                note="one process: first fit minus the better of two later ones; loading Numba is in it",
            ),
        )


def run(scale: Scale) -> list[Answer]:
    answers: list[Answer] = []
    turns = scale.repeats * N_TURNS if scale.repeats > 1 else 1
    compileall.compile_dir(str(Path(spinney.__file__).parent), quiet=2)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ask_import(answers, turns)
        ask_first_tree(answers, turns, folder)
        ask_lecture(answers, turns, folder)
        ask_compiler(answers, scale, folder)
    return answers
