"""The figure of the blog post "Ensemble Methods": California housing, R² and fit time against the number of trees.

Its four methods at its settings and on its folds, each grown once per fold to the most trees. Boosting is read on
the way. Forests are grown in blocks of the fewest trees: 500 trees are one forest of 500, two of 250, ten of 50, and a
point is the mean over the forests of its size. (One forest of 50 extra-trees is luck: over seeds R² moves by 0.005.)
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney.study.clock import Clock
from spinney.study.fold_record import HeldOutPredictions
from spinney.study.housing_evidence import rehearse_figure
from spinney.study.housing_setup import N_FOLDS, TABLE, TREES, ensembles, load_folds
from spinney.study.result import Curve, Figure
from spinney.study.staged import is_boosting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from spinney.study.fold_record import FoldRecord

WARMUP_TREES = 2


def draw_figure(
    trees: Sequence[int] = TREES,
    *,
    n_folds: int = N_FOLDS,
    clock: Clock | None = None,
    on_step: Callable[[str, int, int], object] | None = None,
    record: FoldRecord | None = None,
) -> Figure:
    """Measure the figure.

    Parameters
    ----------
    trees : sequence of int
        The points: multiples of the first, ascending.
    n_folds : int
        How many of the five folds to run.
    clock : Clock, optional
        With a budget: ensembles that would not be done in time are left out.
    on_step : callable, optional
        Called with (method, steps done, steps in all) before each ensemble is grown.
    record : FoldRecord, optional
        Is filled with the predictions of the largest ensembles, by name.

    Returns
    -------
    Figure
        Seconds are of growing alone, with kernels loaded before.
    """
    from spinney import _jit
    from spinney._threads import n_cores
    from spinney._versions import find_versions
    from spinney._warmup import compiling_beside

    clock = clock or Clock()
    models = ensembles()
    scores: dict[str, list[tuple[float, ...]]] = {name: [] for name in models}
    seconds: dict[str, list[tuple[float, ...]]] = {name: [] for name in models}
    # Boosting first: it needs one core, and the other may compile the kernels of forests meanwhile.
    forests = [name for name, model in models.items() if not is_boosting(model)]
    names = [name for name in models if name not in forests]
    steps = [(fold, name) for part in (names, forests) for fold in range(n_folds) for name in part]
    stopped = None
    try:
        task = compile_forests if record is None else compile_report
        with compiling_beside(f"{__name__}:{task.__name__}", "tree.driver.grow") as wait:
            _jit.load_compiled()
            X, y, splits = load_folds()
            for n_done, (fold, name) in enumerate(steps):
                if on_step is not None:
                    on_step(name, n_done, len(steps))
                if clock.left < max((one[-1] for one in seconds[name]), default=0.0):
                    stopped = "budget"
                    continue
                train, test = splits[fold]
                parts = (X[train], y[train]), (X[test], y[test])
                with clock.alarm():
                    if name in forests:
                        wait()
                    if fold == 0:  # load the kernels; on all rows, since their number decides which are used
                        _measure(models[name], (WARMUP_TREES,), *parts)
                    found, spent, predicted = _measure(models[name], trees, *parts)
                scores[name].append(tuple(found))
                seconds[name].append(tuple(spent))
                if record is not None:
                    record.add(name, HeldOutPredictions(test, predicted, None))
    except KeyboardInterrupt as stop:
        if type(stop) is not KeyboardInterrupt:  # SIGTERM
            raise
        stopped = "interrupt" if clock.left > 0 else "budget"
    return Figure(
        table=TABLE,
        folds=f"{N_FOLDS} shuffled folds",
        n_folds=n_folds,
        trees=tuple(trees),
        curves=tuple(Curve(name, tuple(scores[name]), tuple(seconds[name])) for name in models),
        n_cores=n_cores(),
        versions={name: found for name, found in find_versions().items() if found},
        seconds=clock.seconds,
        is_partial=stopped is not None,
        stopped=stopped,
    )


def compile_forests() -> None:
    """Compile what forests need, or read it from the store."""
    from spinney import _jit

    _jit.load_compiled()
    X, y, splits = load_folds()
    train, test = splits[0]
    for model in ensembles().values():
        if not is_boosting(model):
            _measure(model, (WARMUP_TREES,), (X[train], y[train]), (X[test], y[test]))


def compile_report() -> None:
    """Compile what forests need, and then what a report adds."""
    compile_forests()
    rehearse_figure()


class Measured(NamedTuple):
    """R² on held-out rows and seconds to grow, at each number of trees; the predictions of the most trees."""

    scores: list[float]
    seconds: list[float]
    predicted: NDArray[np.float64]


def _measure(
    model: Any, trees: Sequence[int], training: tuple[NDArray[Any], NDArray[Any]], held_out: tuple[Any, NDArray[Any]]
) -> Measured:
    """Grow one ensemble to the most trees."""
    measure = _boost if is_boosting(model) else _grow_blocks
    return measure(model, trees, training, held_out)


def _grow_blocks(
    model: Any, trees: Sequence[int], training: tuple[NDArray[Any], NDArray[Any]], held_out: tuple[Any, NDArray[Any]]
) -> Measured:
    """Forests of equal blocks of trees, each of a seed of its own; any of them together are a forest too."""
    from sklearn.base import clone
    from sklearn.metrics import r2_score

    size, X, y = trees[0], *held_out
    predictions, spent = [], []
    for seed in range(trees[-1] // size):
        block = clone(model).set_params(n_estimators=size, random_state=seed)
        start = time.perf_counter()
        block.fit(*training)
        spent.append(time.perf_counter() - start)
        predictions.append(block.predict(X))
    scores, seconds = [], []
    for n_blocks in (n_trees // size for n_trees in trees):
        forests = [slice(first, first + n_blocks) for first in range(0, len(predictions) - n_blocks + 1, n_blocks)]
        scores.append(float(np.mean([r2_score(y, np.mean(predictions[one], axis=0)) for one in forests])))
        seconds.append(float(np.mean([np.sum(spent[one]) for one in forests])))
    return Measured(scores, seconds, np.mean(predictions, axis=0))


def _boost(
    model: Any, trees: Sequence[int], training: tuple[NDArray[Any], NDArray[Any]], held_out: tuple[Any, NDArray[Any]]
) -> Measured:
    """One fit, read at every number of trees on its way."""
    from sklearn.base import clone
    from sklearn.metrics import r2_score

    seconds: list[float] = []

    def note(iteration: int, _results: Any) -> None:
        if iteration in trees:
            seconds.append(time.perf_counter() - start)

    model = clone(model).set_params(n_estimators=trees[-1])
    X, y = held_out
    start = time.perf_counter()
    model.fit(*training, callbacks=[note])
    predictions = [predicted for n_trees, predicted in enumerate(model.staged_predict(X), 1) if n_trees in trees]
    return Measured([float(r2_score(y, predicted)) for predicted in predictions], seconds, predictions[-1])
