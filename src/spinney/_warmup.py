"""Compile ahead of the first fit."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from spinney.tree.forest import Forest

COMPILE_ALL_SECONDS = 600.0  # until another process that compiles is no longer waited for
END_SECONDS = 0.5  # until it has ended, when asked to
# What that process does first: its stdin is a pipe that nobody writes to, and ends when this process does, however.
END_WITH_PARENT = (
    "import os, sys, threading; threading.Thread(target=lambda: os._exit(len(sys.stdin.read())), daemon=True).start()"
)


def warmup() -> None:
    """Compile the kernels now and keep them on disk, so that later fits and predictions do not wait for the compiler.

    Useful when an image is built, or once before many worker processes start. Takes two to four minutes the first time
    on a machine, where a second process helps if there is a core for it, and a few seconds after that. Fits from disk
    or on a cluster, boosting of 262,144 rows and more, and forests of a hundred columns that are almost always one
    value compile what they need besides when first asked for.

    Examples
    --------
    >>> import spinney
    >>> spinney.warmup()
    """
    from spinney import _jit

    _jit.load_compiled()  # else a table this small would be interpreted
    with compiling_beside(f"{__name__}:{_compile_others.__name__}", "boost.driver.grow") as wait:
        X, y = _draw()
        _grow_trees(X, y)
        _grow_bags(X, y)
        _code_and_rank()
        wait()
        _compile_others()  # which that process has stored, if there was one


def _draw() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """A table of ten rows and two columns, and three classes."""
    import numpy as np

    return np.arange(20.0).reshape(10, 2) % 7, np.arange(10) % 3


def _compile_others() -> None:
    """Compile what takes about as long as trees and bags, and shares little with them."""
    from spinney import _jit

    _jit.load_compiled()
    X, y = _draw()
    _grow_others(X, y)
    _grow_textbook(X, y)
    _boost(X, y)


def _grow_trees(X: NDArray[np.float64], y: NDArray[np.int64]) -> None:
    """Compile what trees ask for, by themselves and in forests of classes."""
    import numpy as np

    from spinney._elementary import MANY, exp, log, log2
    from spinney.estimators.cart import CARTClassifier, CARTRegressor
    from spinney.estimators.extra_trees import ExtraTreesClassifier, ExtraTreesRegressor
    from spinney.estimators.random_forest import RandomForestClassifier

    holes = np.where(X > 5.0, np.nan, X)
    spread = np.arange(200.0).reshape(-1, 1)  # more codes than a table of classes by codes holds
    # A kernel is compiled per combination of argument types. Those of growing differ by the family of the
    # target, by whether there are categories and by the kind of search, those of routing by the type of the values.
    for categorical in (None, [0]):
        for classifier, regressor in ((CARTClassifier, CARTRegressor), (ExtraTreesClassifier, ExtraTreesRegressor)):
            classifier(categorical_features=categorical).fit(X, y).predict(X)
            regressor(categorical_features=categorical).fit(X, y).predict(X)
        ExtraTreesClassifier(categorical_features=categorical).fit(X, y % 2)
        CARTClassifier(categorical_features=categorical).fit(np.tile(spread, (1, 2)), spread[:, 0] % 3)  # sorted lists
        for model in (CARTClassifier, CARTRegressor):  # surrogates, and the gain ratio
            more = model(missing="surrogate", categorical_features=categorical).fit(X, y)
            for values in (holes, holes.astype(np.float32)):
                more.predict(values)
        for n_classes in (2, 3):  # the searches of forests, which draw few of many features
            forest = RandomForestClassifier(n_estimators=1, max_features=1, categorical_features=categorical)
            forest.fit(np.tile(X, 3), y % n_classes)
    CARTRegressor(max_bins=2).fit(X, y).predict(X.astype(np.float32))
    linear = CARTRegressor(max_depth=1, leaf_model="linear").fit(X, y)
    for values in (X, X.astype(np.float32)):
        linear.predict(values)
    for function in (exp, log, log2):
        function(np.ones(MANY))


def _grow_bags(X: NDArray[np.float64], y: NDArray[np.int64]) -> None:
    """Compile what forests of numbers ask for: bags, out-of-bag votes, importances, quantiles and explanations."""
    import warnings

    import numpy as np

    from spinney.ensemble.sampling import Draw
    from spinney.estimators.random_forest import RandomForestClassifier, RandomForestRegressor
    from spinney.model.uncertainty import forest_weights, gather_members

    # Bags have one kernel for each way to draw them; the rest of a forest is the same for all.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # two trees leave rows without out-of-bag votes
        RandomForestClassifier(n_estimators=2, random_state=0, honest=True).fit(X, y)
        RandomForestRegressor(n_estimators=2, random_state=0, bootstrap="poisson").fit(X, y)
        Draw("paste", 10, 5, 0).counts(0)
        Draw("paste", 10, 5, 0, np.arange(1.0, 11.0)).counts(0)
        for kind in ("bootstrap", "paste"):  # by blocks, as from large tables
            Draw(kind, 10, 5, 0, block_bits=1).counts(0)
        Draw("bootstrap", 10, 5, 0, np.arange(1.0, 11.0), block_bits=1).counts(0)
        RandomForestRegressor(n_estimators=2, random_state=0).fit(X, y, 1.0 + y)
        numbers = RandomForestRegressor(n_estimators=9, random_state=0, oob_score=True, keep_members=True).fit(X, y)
        numbers.forest_.check()
        numbers.predict(X)
        numbers.predict(X.astype(np.float32))
        numbers.predict_quantiles(X)
        numbers.importance("permutation", X, y)
        numbers.importance("conditional", X, y, threshold=0.0)
        leaves = np.zeros((1, 3), np.int32)
        for values in (X, X.astype(np.float32)):
            numbers.shap_values(values, interactions=True)
            numbers.shap_values(values, background=values)
        forest_weights(leaves, gather_members(leaves, np.ones((1, 3), np.int32), [1]), 3)


def _code_and_rank() -> None:
    """Compile what takes a table of some size: coding by counting, thresholds by short edges, bags, rows by ranks."""
    import numpy as np

    from spinney import _jit
    from spinney.estimators.random_forest import RandomForestClassifier, RandomForestRegressor
    from spinney.table.coding import FEW_ROWS, code_table
    from spinney.table.ingest import read_columns

    k, one = _jit.load_compiled(), np.zeros((2, 1), np.int64)
    for dtype in (np.float64, np.float32, np.int64):  # read row by row, and the last one column by column
        code_table(read_columns(np.ones((FEW_ROWS + 1, 2), dtype)), np.ones(1, np.int64), 3, k)
    k.tree.late_thresholds.place_feature(0, 0, one, one + 0.0, one[0], one[0] + 0.0)
    long = np.arange(FEW_ROWS + 1.0).reshape(-1, 1) % 300
    RandomForestClassifier(n_estimators=1, random_state=0).fit(long, long[:, 0] % 3)
    steps = np.random.default_rng(0).random((600, 2))  # trees of more than 256 leaves, which ranks are worth for
    forest = RandomForestRegressor(n_estimators=8, random_state=0).fit(steps, steps[:, 0])
    for values in (np.tile(steps, (4, 1)), np.tile(steps, (4, 1)).astype(np.float32)):
        forest.predict(values)


def _grow_others(X: NDArray[np.float64], y: NDArray[np.int64]) -> None:
    """Compile the variants of growing for medians, several outputs (of classes too) and times until an event."""
    import numpy as np

    from spinney.estimators.cart import CARTRegressor
    from spinney.estimators.forest_survival import RandomForestSurvival

    times = 1.0 + y
    for categorical in (None, [0]):
        CARTRegressor(criterion="absolute_error", categorical_features=categorical).fit(X, y)
        CARTRegressor(categorical_features=categorical).fit(X, np.stack([y, -y], axis=1))
        RandomForestSurvival(1, categorical_features=categorical, min_samples_leaf=1).fit(X, times)


def _grow_textbook(X: NDArray[np.float64], y: NDArray[np.int64]) -> None:
    """Compile what ID3 and C4.5 add: growing and tracing by the family of the target, raising, and rows in pieces."""
    import numpy as np

    from spinney.estimators.c45 import C45Classifier
    from spinney.estimators.id3 import ID3Classifier, ID3Regressor

    holes = np.tile(X, (4, 1))
    holes[::5, 1] = np.nan
    labels = np.tile(y, 4)
    for kind in (ID3Classifier, ID3Regressor, C45Classifier):
        tree = kind(categorical_features=[0], trace=True).fit(holes, labels)
        tree.predict(holes)
        tree.predict(holes.astype(np.float32))
    pieces = C45Classifier(pruning=None).fit(holes, labels)  # numbers alone: float32 stays what it is
    for values in (holes, holes.astype(np.float32)):
        pieces.predict(values)
        for raising in (False, True):
            pieces.prune("pessimistic", values, labels, raising=raising)


def _boost(X: NDArray[np.float64], y: NDArray[np.int64]) -> None:
    """Compile what boosting adds, and the way of one row."""
    import numpy as np

    from spinney import _jit
    from spinney._types import N_CELLS
    from spinney.estimators.adaboost import AdaBoostClassifier
    from spinney.estimators.gradient_boosting import GradientBoostingClassifier, GradientBoostingRegressor
    from spinney.estimators.ranker import GradientBoostingRanker
    from spinney.model.packed_forest import pack_links, sum_values
    from spinney.model.packed_steps import pack_steps
    from spinney.tree.predict import FEWEST_TREES

    whole: dict[str, Any] = {"subsample": 1.0, "max_features": None}  # nothing is drawn
    one: dict[str, Any] = {"n_estimators": 1, "min_samples_leaf": 1, **whole}
    tall = np.resize(X, (8192, 64))  # enough for two threads
    for categorical in (None, [0]):  # the driver differs by these two
        for groups in (None, [[0, 1]]):
            for drawn in ({}, whole):  # some rows and columns, as by default, or all
                threaded = GradientBoostingRegressor(
                    n_estimators=2,
                    n_jobs=2,
                    categorical_features=categorical,
                    interaction_cst=groups,
                    random_state=0,
                    **drawn,
                )
                threaded.fit(tall, tall[:, 0])
                threaded.fit(tall, tall[:, :2])  # one tree for two outputs
    few = {"n_estimators": FEWEST_TREES, "min_samples_leaf": 1, **whole}
    numeric = GradientBoostingRegressor(**few).fit(tall, tall[:, 0])
    sums = sum_values(numeric.forest_, 1, 1, np.zeros(1))
    links, steps = pack_links(sums), pack_steps(sums)
    assert steps is not None
    k = _jit.load_compiled().predict
    for values in (tall[:64], tall[:64].astype(np.float32)):  # rows and trees enough for bits
        numeric.predict(values)
        k.one_row.add_up(links, values[0], np.zeros(1))
        k.ranked_row.add_ranked(steps, values[0], np.zeros(int(steps[N_CELLS])))
        _score(numeric.forest_, values)
    GradientBoostingRegressor(**few).fit(tall, tall[:, :2]).predict(tall[:64])
    for values in (X, X / 3.0):  # bins: of float32 where that loses nothing; by weights where values share a bin
        GradientBoostingRegressor(**one, max_bins=2, loss="absolute_error").fit(values, y, 1.0 + y)
    GradientBoostingRegressor(**one, max_bins=2, candidates="hessian").fit(X, y)
    GradientBoostingRegressor(**one, loss=(lambda y, raw: raw - y, lambda y, raw: 1.0 + 0.0 * y * raw)).fit(X, y)
    GradientBoostingRanker(**one).fit(X, y)
    GradientBoostingClassifier(**one).fit(tall, tall[:, 0] > 2.0)  # many rows, few of which differ
    for n_classes in (2, 3):
        labels = y % n_classes
        boosted = GradientBoostingClassifier(**{**one, "subsample": 0.5}, random_state=0)
        boosted.fit(X, labels, X_val=X, y_val=labels).predict(X.astype(np.float32))
        reweighted = AdaBoostClassifier(n_estimators=1).fit(X, labels)
        reweighted.predict(X)
    reweighted.forest_.check()


def _score(forest: Forest, values: NDArray[Any]) -> None:
    """Compile what imported models ask for: linear leaves in rounds, and symmetric trees of few thresholds and many."""
    from dataclasses import replace

    import numpy as np

    from spinney import _jit
    from spinney.tree.forest import join_trees
    from spinney.tree.linear import LinearLeaves
    from spinney.tree.predict import score_at_once
    from spinney.tree.subtree import cut_nodes
    from spinney.tree.symmetric import BYTE_THRESHOLDS

    nothing = np.zeros(0)
    first = np.zeros(forest.n_nodes + 1, np.int64)
    linear = replace(forest, linear=LinearLeaves(first, nothing.astype(np.int32), nothing, nothing))
    stump = cut_nodes(forest[0], [1, 2])  # the children of the root
    many = [replace(stump, threshold=np.where(stump.is_leaf, 0.0, i)) for i in range(BYTE_THRESHOLDS + 1)]
    for trees in (linear, join_trees([stump]), join_trees(many)):
        k = _jit.load_compiled()
        score_at_once(trees, range(len(trees)), values, 0, len(values), np.zeros((1, len(values))), k, n_raw=1)


@contextlib.contextmanager
def compiling_beside(task: str, kernel: str) -> Iterator[Callable[[], object]]:
    """Let another process compile kernels into the store while this one does something else.

    Numba compiles one function at a time in a process, so that a second core helps only another process. There is none
    where the kernel is stored already, there is one core, or no store: then kernels are compiled as they are called.

    Parameters
    ----------
    task : str
        What that process calls, as "module:function".
    kernel : str
        One that the task compiles, as "module.function".

    Yields
    ------
    callable
        Waits until that process has ended, well or not, for ten minutes at most: whatever it has not stored is
        compiled here.
    """
    process = _start(task) if _can_compile_beside(kernel) else None
    try:
        yield (lambda: None) if process is None else (lambda: _wait_for(process, COMPILE_ALL_SECONDS))
    finally:
        if process is not None:
            process.terminate()
            _wait_for(process, END_SECONDS)
            process.kill()
            _wait_for(process, END_SECONDS)
            assert process.stdin is not None
            process.stdin.close()


def _wait_for(process: subprocess.Popen[bytes], seconds: float) -> None:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)


def _can_compile_beside(kernel: str) -> bool:
    from joblib import cpu_count

    from spinney import _jit

    directory = _jit.cache_directory()
    is_missing = directory is not None and not any(directory.glob(f"{kernel}-*.kernel"))
    return is_missing and not _jit.choice.IS_JIT_DISABLED and cpu_count() > 1 and bool(sys.executable)


def _start(task: str) -> subprocess.Popen[bytes] | None:
    module, _, function = task.partition(":")
    code = f"{END_WITH_PARENT}\nfrom {module} import {function}; {function}()"
    places = {**os.environ, "PYTHONPATH": os.pathsep.join(place for place in sys.path if place)}
    quiet: Any = dict.fromkeys(("stdout", "stderr"), subprocess.DEVNULL)
    try:
        return subprocess.Popen([sys.executable, "-c", code], env=places, stdin=subprocess.PIPE, **quiet)  # noqa: S603
    except OSError:
        return None
