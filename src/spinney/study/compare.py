"""Methods over folds: the fit alone is timed, with kernels loaded before; a budget or Ctrl-C leaves what is finished.

Folds are the outer loop. Whatever stops a study, the methods have then seen the same folds but for the last one, or, of
those that are too slow for the budget, the first.
"""

from __future__ import annotations

import contextlib
import pickle
import time
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._threads import n_cores
from spinney.study.advice import BUDGET, note_problems, recommend
from spinney.study.clock import Clock
from spinney.study.fold_record import Fit, FoldRecord, align
from spinney.study.folds import Folds, make_folds
from spinney.study.methods import Method, choose_methods, known_methods
from spinney.study.metrics import COUNTED, Metric, choose_metric
from spinney.study.result import MethodResult, Study, describe_error
from spinney.study.significance import find_best, find_differences, find_smallest, keep_folds
from spinney.study.turns import (
    FEWEST_ROWS,
    MANY_ROWS,
    SAMPLES,
    STRONG,
    Training,
    count_affordable,
    count_rest,
    estimate_seconds,
    place_of,
    share_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from spinney.study.tables import StudyData

WARMUP_ROWS = 1000
LONG = 0.5  # seconds of a first fit that may be the compiler's
INNER_FOLDS = 3  # of the search inside the training rows of a fold


class Fold(NamedTuple):
    """A fold: its number, the rows to fit and those to predict."""

    number: int
    training: Training
    held_out: Training


class FoldResult(NamedTuple):
    """What one fit gave."""

    number: int
    score: float
    fit_seconds: float
    predict_seconds: float
    n_bytes: int
    n_leaves: int | None
    chosen: dict[str, Any]


@dataclass
class Run:
    """A method under way."""

    method: Method
    estimator: Any
    folds: list[FoldResult] = field(default_factory=list)
    error: str | None = None
    left_out: str | None = None
    n_rows: int | None = None  # that it was fitted on, where the budget did not allow all
    warnings: list[str] = field(default_factory=list)  # of its fits

    @property
    def is_over(self) -> bool:
        """Whether no further fold is to be tried."""
        return self.error is not None or self.left_out is not None

    @property
    def is_needed(self) -> bool:
        """Whether a study must not go without: the baseline, boosting and the forest."""
        return self.method.is_baseline or self.method.key in STRONG

    @property
    def seconds(self) -> float:
        """What a fold takes, by the longest so far."""
        return max((fold.fit_seconds + fold.predict_seconds for fold in self.folds), default=0.0)


def compare(
    data: StudyData,
    *,
    methods: Sequence[str] | None = None,
    metric: str | None = None,
    n_splits: int = 5,
    n_repeats: int | None = None,
    is_tuned: bool = False,
    seed: int = 0,
    clock: Clock | None = None,
    on_fold: Callable[[str, int, int], object] | None = None,
    record: FoldRecord | None = None,
) -> Study:
    """Compare methods on a table.

    Parameters
    ----------
    data : StudyData
        Of `spinney.study.tables.prepare`.
    methods : sequence of str, optional
        Keys of `spinney.study.methods.known_methods`; the baseline always takes part.
    metric : str, optional
        A name of `spinney.study.metrics.METRICS` that fits the task.
    n_splits, n_repeats, seed
        See `make_folds`; the seed is also that of the methods.
    is_tuned : bool
        Search a few settings of each method in every fold, by folds inside its training rows alone.
    clock : Clock, optional
        With a budget: no fit is begun that would not end in time, and one that goes on too long is stopped. A method
        that is too slow for one fold is fitted on fewer rows. Time of the compiler does not count.
    on_fold : callable, optional
        Called with (method, folds done, folds in all) before each fit, for progress.
    record : FoldRecord, optional
        Is filled with what `examine` needs of the fits.

    Returns
    -------
    Study

    Examples
    --------
    >>> from spinney import datasets
    >>> from spinney.study import compare, prepare
    >>> data = prepare(datasets.load("contact_lenses"), "contact-lenses")
    >>> study = compare(data, methods=["id3", "c45"], n_splits=2, n_repeats=1)
    >>> [method.name for method in study.methods]
    ['commonest class', 'ID3', 'C4.5']
    """
    from spinney import _jit
    from spinney._versions import find_versions

    clock = clock or Clock()
    score = choose_metric(metric, data.summary.task)
    chosen = choose_methods(data.summary.task, None if methods is None else list(methods))
    folds = make_folds(data, n_splits, n_repeats, seed)
    runs = [Run(method, _estimator(method, data, score, seed, is_tuned=is_tuned)) for method in chosen]
    stopped = None
    try:
        _jit.load_compiled()
        _run(runs, data, folds, score, clock, on_fold or (lambda *_: None), record)
    except KeyboardInterrupt as stop:
        if type(stop) is not KeyboardInterrupt:  # SIGTERM: whoever sent it does not wait for a table
            raise
        stopped = "interrupt"
    results = tuple(_gather(run, len(folds.splits), is_tuned=is_tuned) for run in runs)
    if stopped is None and any(result.left_out for result in results):
        stopped = "budget"
    ratio = folds.n_test / folds.n_train
    step = 1.0 / folds.n_test if score.name in COUNTED else 0.0
    best = find_best(results, ratio, is_greater_better=score.is_greater_better, step=step)
    results = keep_folds(results, best)
    differences = find_differences(results, best, ratio, is_greater_better=score.is_greater_better, step=step)
    texts = dict.fromkeys(text for run in runs for text in run.warnings)
    warned = tuple(f"{text} ({', '.join(run.method.name for run in runs if text in run.warnings)})" for text in texts)
    return Study(
        summary=data.summary,
        metric=score.name,
        is_greater_better=score.is_greater_better,
        folds=folds.description,
        n_folds=len(folds.splits),
        train_rows=folds.n_train,
        test_rows=folds.n_test,
        methods=results,
        best=best,
        differences=differences,
        smallest=find_smallest(results, best, is_greater_better=score.is_greater_better),
        recommendation=recommend(
            results,
            best,
            differences,
            score,
            ratio,
            one_tree={m.key for m in chosen if m.is_one_tree},
            leaks=[one.name for one in data.summary.used if one.leak is not None],
        ),
        notes=(*note_problems(data.summary, score, results, len(folds.splits)), *warned),
        seed=seed,
        is_tuned=is_tuned,
        n_cores=n_cores(),
        versions={name: found for name, found in find_versions().items() if found},
        seconds=clock.seconds,
        is_partial=any(len(result.folds) < len(folds.splits) for result in results),
        stopped=stopped,
    )


def refit(study: Study, data: StudyData) -> Any:
    """The study's best method, fitted to every row; tuned by a search of its own where the study was."""
    if study.best is None:
        raise ValueError("no method finished a fold: there is no model to save")
    method = known_methods(data.summary.task)[study.best]
    if method.is_baseline:
        raise ValueError(f"nothing beat the baseline ({method.name}): there is no model to save")
    metric = choose_metric(study.metric, data.summary.task)
    estimator = _estimator(method, data, metric, study.seed, is_tuned=study.is_tuned)
    rows = np.arange(data.n_rows) if data.times is None else np.argsort(data.times, kind="stable")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are in the study's notes
        _fit(estimator, data, data.X.take(rows), rows)
    return getattr(estimator, "best_estimator_", estimator)


# --- One method, one fold -------------------------------------------------------------------------------------


def _run(
    runs: list[Run],
    data: StudyData,
    folds: Folds,
    metric: Metric,
    clock: Clock,
    on_fold: Callable[[str, int, int], object],
    record: FoldRecord | None,
) -> None:
    n_all, n_done = len(runs) * len(folds.splits), 0
    in_turn = runs if clock.budget is None else sorted(runs, key=lambda run: place_of(run.method.key))
    for number, (train, test) in enumerate(folds.splits):
        fold = Fold(number, Training(data.X.take(train), train), Training(data.X.take(test), test))
        for run in in_turn:
            n_done += 1
            if run.is_over:
                continue
            on_fold(run.method.name, n_done - 1, n_all)
            if clock.left < run.seconds and not (number == 0 and run.is_needed):
                run.left_out = BUDGET
                continue
            found = _take_turn(run, data, metric, fold, clock)
            if found is not None and record is not None and number < folds.n_splits:
                record.add_fit(run.method.key, found, data.y, metric)


def _take_turn(run: Run, data: StudyData, metric: Metric, fold: Fold, clock: Clock) -> Fit | None:
    """One fold of a method; None where it failed or had no time, which the run then says."""
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            if fold.number == 0 and clock.left <= 0:
                done, fit = _fit_fewest(run, data, metric, fold)
            elif fold.number == 0:
                _warm_up(run, data, fold, clock)
                done, fit = _fit_first(run, data, metric, fold, clock)
            else:
                with clock.alarm():
                    done, fit = _fit_and_score(run, data, metric, fold)
    except KeyboardInterrupt:
        if clock.left > 0:
            raise
        run.left_out = BUDGET
    except TimeoutError:
        run.left_out = BUDGET
    except Exception as error:  # noqa: BLE001  one method's failure is a line of the table, not the end of it
        run.error = describe_error(error)
    else:
        run.folds.append(done)
        run.warnings += [str(one.message) for one in caught if issubclass(one.category, UserWarning)]
        return fit
    return None


def _fit_first(run: Run, data: StudyData, metric: Metric, fold: Fold, clock: Clock) -> tuple[FoldResult, Fit]:
    """The first fold of a method: under a budget on fewer rows, if all of them would take more than its share."""
    if clock.budget is None or run.method.is_baseline:
        with clock.alarm():
            return _fit_and_score(run, data, metric, fold)
    n_rows = len(fold.training.rows)
    limit = clock.part(clock.left / share_of(run.method.key))
    try:
        with limit.alarm():
            seconds = 0.0
            if n_rows > MANY_ROWS:
                seconds = _count_fits(run) * estimate_seconds(lambda part: _fit_copy(run, data, part), fold.training)
            if seconds <= limit.left:
                return _fit_and_score(run, data, metric, fold)
            n_fewer = count_affordable(n_rows, seconds, max(limit.left, 0.0)) if seconds > 0.0 else count_rest(n_rows)
    except KeyboardInterrupt:
        if limit.left > 0:
            raise
        n_fewer = count_rest(n_rows)
    if n_fewer < FEWEST_ROWS or clock.left <= 0:
        return _fit_fewest(run, data, metric, fold)
    again = clock.part(clock.left / share_of(run.method.key))
    try:
        with again.alarm():
            found = _fit_and_score(run, data, metric, fold._replace(training=fold.training.sample(n_fewer)))
    except KeyboardInterrupt:
        if again.left > 0:
            raise
        return _fit_fewest(run, data, metric, fold)
    run.n_rows, run.left_out = n_fewer, BUDGET
    return found


def _fit_fewest(run: Run, data: StudyData, metric: Metric, fold: Fold) -> tuple[FoldResult, Fit]:
    """The first fold of a method that a study must not go without: few rows take next to no time beyond its end."""
    if not run.is_needed:
        raise TimeoutError
    training = fold.training if run.method.is_baseline else fold.training.sample(FEWEST_ROWS)
    found = _fit_and_score(run, data, metric, fold._replace(training=training))
    run.left_out = BUDGET
    if len(training.rows) < len(fold.training.rows):
        run.n_rows = len(training.rows)
    return found


def _fit_and_score(
    run: Run,
    data: StudyData,
    metric: Metric,
    fold: Fold,
) -> tuple[FoldResult, Fit]:
    """Fit and score."""
    from sklearn.base import clone

    number, X, rows = fold.number, fold.held_out.X, fold.held_out.rows
    model = clone(run.estimator)
    start = time.perf_counter()
    _fit(model, data, fold.training.X, fold.training.rows)
    fit_seconds = time.perf_counter() - start
    predict = model.predict_proba if metric.needs_probabilities else model.predict
    if number == 0:  # the number and size of trees choose the kernel that predicts: the warm-up's may have been another
        predict(X)
    start = time.perf_counter()
    predicted = predict(X)
    predict_seconds = time.perf_counter() - start
    classes = np.unique(data.y) if not data.is_regression else np.empty(0)
    if metric.needs_probabilities:
        predicted = align(predicted, model.classes_, classes)
    score = metric.score(data.y[rows], predicted, classes)
    if not np.isfinite(score):
        raise ValueError(f"{metric.title} of fold {number + 1} is {score}")
    best = getattr(model, "best_estimator_", model)
    n_bytes, n_leaves = len(pickle.dumps(best, protocol=5)), _count_leaves(best)
    chosen = dict(getattr(model, "best_params_", {}))
    seconds = getattr(model, "refit_time_", fit_seconds)  # a search is more than the fit of its best
    done = FoldResult(number, score, fit_seconds, predict_seconds, n_bytes, n_leaves, chosen)
    return done, Fit(best, seconds, X, rows, predicted, score)


def _fit(model: Any, data: StudyData, X: Any, rows: NDArray[np.int64]) -> None:
    from sklearn.model_selection import GridSearchCV

    from spinney.estimators.base_stacking import Stacking

    if data.groups is not None and isinstance(model, GridSearchCV | Stacking):  # whose folds are of whole groups too
        model.fit(X, data.y[rows], groups=data.groups[rows])
    else:
        model.fit(X, data.y[rows])


def _fit_copy(run: Run, data: StudyData, training: Training) -> None:
    """Fit the method, without a search of its settings."""
    from sklearn.base import clone

    clone(_plain_estimator(run)).fit(training.X, data.y[training.rows])


def _plain_estimator(run: Run) -> Any:
    from sklearn.model_selection import GridSearchCV

    return run.estimator.estimator if isinstance(run.estimator, GridSearchCV) else run.estimator


def _count_fits(run: Run) -> float:
    """How many fits of all rows a fold is worth: a search has more, of parts of them."""
    from sklearn.model_selection import GridSearchCV, ParameterGrid

    if not isinstance(run.estimator, GridSearchCV):
        return 1.0
    return 1.0 + len(ParameterGrid(run.method.grid)) * (INNER_FOLDS - 1.0)


def _warm_up(run: Run, data: StudyData, fold: Fold, clock: Clock) -> None:
    """Fit once before the clock runs, so that no time is of the compiler or of loading code; nor is any of a budget.

    What a first fit takes beyond a second one was compiling.
    """
    from sklearn.base import clone

    training, held_out = fold.training, fold.held_out
    if clock.budget is not None:
        training, held_out = training.sample(MANY_ROWS), held_out.sample(MANY_ROWS)
    if not run.method.warmup:
        training = training.sample(WARMUP_ROWS if clock.budget is None else SAMPLES[-1])

    def fit() -> float:
        start = time.perf_counter()
        with contextlib.suppress(Exception):  # the fit that is timed will raise it again
            model = clone(_plain_estimator(run)).set_params(**run.method.warmup)
            model.fit(training.X, data.y[training.rows]).predict(held_out.X)
        return time.perf_counter() - start

    seconds = fit()
    if clock.budget is None or seconds < LONG:
        return
    again = Clock(seconds / 2.0)  # a second fit that takes longer has nothing to tell
    try:
        with again.alarm():
            clock.spare(seconds - fit())
    except KeyboardInterrupt:
        if again.left > 0:
            raise


def _estimator(method: Method, data: StudyData, metric: Metric, seed: int, *, is_tuned: bool) -> Any:
    """The estimator of a method, inside a search of its grid if it is to be tuned."""
    from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold, TimeSeriesSplit

    estimator = method.make(seed)
    if not is_tuned or not method.grid:
        return estimator
    if data.times is not None:
        cut: Any = TimeSeriesSplit(INNER_FOLDS)
    elif data.groups is not None:
        cut = GroupKFold(INNER_FOLDS)
    else:
        cut = (KFold if data.is_regression else StratifiedKFold)(INNER_FOLDS, shuffle=True, random_state=seed)
    return GridSearchCV(estimator, method.grid, scoring=metric.scorer, cv=cut, error_score="raise")


def _count_leaves(model: Any) -> int | None:
    from spinney.estimators.base_tree import TreeEstimator

    if isinstance(model, TreeEstimator):
        return int(model.get_n_leaves())
    forest = getattr(model, "forest_", None)
    return None if forest is None else int(np.count_nonzero(forest.is_leaf))


def _gather(run: Run, n_folds: int, *, is_tuned: bool) -> MethodResult:
    """A method's folds as a result."""
    method, done = run.method, run.folds
    leaves = [fold.n_leaves for fold in done if fold.n_leaves is not None]
    left_out = run.left_out
    if left_out is None and run.error is None and len(done) < n_folds:
        left_out = "it was interrupted"
    return MethodResult(
        key=method.key,
        name=method.name + (" (tuned)" if is_tuned and method.grid else ""),
        n_rows=run.n_rows,
        estimator=method.estimator,
        parameters=method.parameters,
        folds=tuple(fold.number for fold in done),
        scores=tuple(fold.score for fold in done),
        fit_seconds=tuple(fold.fit_seconds for fold in done),
        predict_seconds=tuple(fold.predict_seconds for fold in done),
        model_bytes=float(np.mean([fold.n_bytes for fold in done])) if done else None,
        n_leaves=float(np.mean(leaves)) if leaves else None,
        chosen=tuple(fold.chosen for fold in done) if is_tuned and method.grid else (),
        error=run.error,
        left_out=left_out,
    )
