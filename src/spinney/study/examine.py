"""Evidence for a report: how well the best method of a study predicts, what it uses, and a tree to read."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney.study.clock import Clock
from spinney.study.compare import compare
from spinney.study.dependence import trace_columns
from spinney.study.evidence import Evidence, LearningCurve
from spinney.study.fold_record import FoldRecord, align
from spinney.study.folds import recall_folds
from spinney.study.held_out import (
    calibration_bins,
    count_confusion,
    measure_coverage,
    measure_residuals,
    separation_curves,
)
from spinney.study.importance import list_importances
from spinney.study.methods import Method, known_methods
from spinney.study.profile import correlate, list_gaps, profile_columns
from spinney.study.reasons import explain_answers
from spinney.study.reproduce import write_recipe
from spinney.study.result import describe_error
from spinney.study.tree_view import view_tree
from spinney.study.worth import permute_columns

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from spinney.study.evidence import Coverage
    from spinney.study.folds import Folds
    from spinney.study.result import MethodResult, Study
    from spinney.study.tables import StudyData

N_COLUMNS = 6  # whose dependence is drawn
LEVELS = (0.5, 0.7, 0.8, 0.9, 0.95)  # of intervals and sets
COVERED_ROWS = 300  # held-out rows that intervals are made for: more would take long
SHARE, LEAST_SECONDS = 0.5, 60.0  # of the study's time that may be spent (about 0.2 are), and seconds for compilers
BUDGET, TOO_LONG, INTERRUPT = "the budget was spent", "it would have taken too long", "it was interrupted"
ONE_FOLD, NO_ENSEMBLE = "no ensemble has finished two folds", "no ensemble took part"


def examine(
    study: Study,
    data: StudyData,
    record: FoldRecord | None = None,
    *,
    clock: Clock | None = None,
    on_step: Callable[[str, int, int], object] | None = None,
) -> Evidence:
    """Look closer at the best method of a study.

    Parameters
    ----------
    study : Study
        In which a method has finished a fold.
    data : StudyData
        What it was made of.
    record : FoldRecord, optional
        That `compare` has filled. Without one the best method is fitted again in each fold, and there are no learning
        curves of the others.
    clock : Clock, optional
        Parts that it has no time for, or that would take much longer than the study, are left out; see `left_out`.
    on_step : callable, optional
        Called with (part, parts done, parts in all) before each part, for progress.

    Returns
    -------
    Evidence
        About the study's best method; where that is the baseline, about the best of the others. Ctrl-C leaves the
        parts that are done.

    Examples
    --------
    >>> from spinney import datasets
    >>> from spinney.study import FoldRecord, compare, examine, prepare
    >>> data = prepare(datasets.load("contact_lenses"), "contact-lenses")
    >>> record = FoldRecord()
    >>> study = compare(data, methods=["c45"], n_splits=2, n_repeats=1, record=record)
    >>> evidence = examine(study, data, record)
    >>> evidence.name, sum(map(sum, evidence.confusion.counts))
    ('C4.5', 24)
    """
    result = choose_subject(study)
    methods = known_methods(data.summary.task)
    folds = recall_folds(data, study)
    parts = EvidenceParts(clock or Clock(), SHARE * study.seconds + LEAST_SECONDS, on_step)
    if record is None:
        record = parts.make(
            "learning_curves", "fits of the best method", lambda: _record_again(study, data, result, folds, parts.limit)
        )
        record = record or FoldRecord()
    ratio = study.test_rows / study.train_rows
    curves = (record.learning_curve(one.key, one.name, ratio) for one in study.methods)
    subject = Subject(
        key=result.key,
        name=result.name,
        recipe=write_recipe(study, data, folds),
        model=_tuned_estimator(methods[result.key], result, study.seed),
        forest=_tuned_estimator(methods["forest"], _find(study, "forest"), study.seed),
        tree=methods["cart"].make(study.seed),
        curves=tuple(curve for curve in curves if curve is not None),
        has_ensembles=any(methods[one.key].is_ensemble for one in study.methods),
        splits=folds.splits[: folds.n_splits],
        seed=study.seed,
        n_repeats=len(folds.splits) // folds.n_splits,
        metric=study.metric,
    )
    return gather(subject, data, record, parts)


class Subject(NamedTuple):
    """What is examined: a method, and the unfitted estimators that the parts are made with."""

    key: str
    name: str
    recipe: str
    model: Any
    forest: Any
    tree: Any
    curves: tuple[LearningCurve, ...]
    has_ensembles: bool  # among the methods that took part
    splits: list[tuple[NDArray[np.int64], NDArray[np.int64]]]
    seed: int
    n_repeats: int = 1  # of the folds; the splits are of the first
    metric: str = "r2"  # by which the columns are judged


def choose_subject(study: Study) -> MethodResult:
    """The best method; where nothing beat the baseline, the best of the others."""
    if not has_subject(study):
        raise ValueError("no method finished a fold: there is nothing to examine")
    return next(one for one in study.ranked if is_sound(one))


def has_subject(study: Study) -> bool:
    """Whether there is a method to examine."""
    return any(map(is_sound, study.methods))


def is_sound(result: MethodResult) -> bool:
    """Whether a result is of a method, not the baseline, that finished a fold and did not fail in another."""
    return bool(result.scores) and result.error is None and not result.is_baseline


def _find(study: Study, key: str) -> MethodResult | None:
    return next((one for one in study.methods if one.key == key), None)


def _tuned_estimator(method: Method, result: MethodResult | None, seed: int) -> Any:
    """The estimator of a method; tuned, with what most folds chose."""
    estimator = method.make(seed)
    if result is None or not result.chosen:
        return estimator
    votes = Counter(repr(sorted(one.items())) for one in result.chosen)
    (most, _), *_ = votes.most_common(1)
    return estimator.set_params(**next(one for one in result.chosen if repr(sorted(one.items())) == most))


def _record_again(study: Study, data: StudyData, result: MethodResult, folds: Folds, clock: Clock) -> FoldRecord:
    """The predictions of one method in the folds of the first repeat."""
    record = FoldRecord()
    again = compare(
        data,
        methods=[result.key],
        metric=study.metric,
        n_splits=folds.n_splits,
        n_repeats=1,
        is_tuned=study.is_tuned,
        seed=study.seed,
        clock=clock,
        record=record,
    )
    if again.stopped == "interrupt":
        raise KeyboardInterrupt
    return record


# --- The parts ------------------------------------------------------------------------------------------------


@dataclass
class EvidenceParts:
    """Parts of the evidence, made one after the other: what was found, and why others are missing."""

    clock: Clock
    seconds: float  # that all may take
    on_step: Callable[[str, int, int], object] | None
    left_out: dict[str, str] = field(default_factory=dict)
    is_stopped: bool = False
    n_done: int = 0
    n_all: int = 1

    def __post_init__(self) -> None:
        self.limit = Clock(min(self.seconds, self.clock.left))

    def make(self, names: str, what: str, work: Callable[[], Any], *, is_cheap: bool = False) -> Any:
        """What `work` gives, or None, and then why for each of the names, which are fields of `Evidence`.

        Cheap work is done at any time, also when the study has spent the budget.
        """
        why = INTERRUPT
        if not self.is_stopped:
            try:
                if self.on_step is not None:
                    self.on_step(what, self.n_done, self.n_all)
                if is_cheap or self.limit.left > 0.0:
                    with (Clock() if is_cheap else self.limit).alarm(), warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # they are in the study's notes
                        return work()
                why = self._why_late()
            except KeyboardInterrupt as stop:
                if type(stop) is not KeyboardInterrupt:  # SIGTERM
                    raise
                self.is_stopped = is_cheap or self.limit.left > 0.0
                why = INTERRUPT if self.is_stopped else self._why_late()
            except Exception as error:  # noqa: BLE001  the report gives it in place of the part
                why = describe_error(error)
            finally:
                self.n_done += 1
        self.left_out |= dict.fromkeys(names.split(), why)
        return None

    def _why_late(self) -> str:
        return BUDGET if self.clock.left <= 0.0 else TOO_LONG


def gather(subject: Subject, data: StudyData, record: FoldRecord, parts: EvidenceParts) -> Evidence:
    """Make the parts, those first that are cheap and tell most."""
    found: dict[str, Any] = {}
    parts.n_all = 8
    found["profiles"] = parts.make("profiles", "the columns", lambda: profile_columns(data), is_cheap=True) or ()
    found["gaps"] = parts.make("profiles", "the columns", lambda: list_gaps(data.X), is_cheap=True) or ()
    found["correlations"] = parts.make("profiles", "the columns", lambda: correlate(data.X), is_cheap=True) or ()
    names = "residuals" if data.is_regression else "separations calibrations confusion"
    found |= (
        parts.make(names, "held-out predictions", lambda: evaluate_held_out(data, record, subject), is_cheap=True) or {}
    )
    found["learning_curves"] = subject.curves
    if not subject.curves:
        parts.left_out.setdefault("learning_curves", ONE_FOLD if subject.has_ensembles else NO_ENSEMBLE)
    found["tree"] = parts.make(
        "tree",
        "a tree",
        lambda: view_tree(
            subject.tree,
            data.X,
            data.y,
            name="CART",
            target=data.summary.target,
            cv=None if data.groups is None and data.times is None else subject.splits,
        ),
    )
    fitted = FittedModels(data)
    found["importances"] = parts.make("importances", "importances", lambda: fitted.importances(subject.forest)) or ()
    found["worths"] = (
        parts.make(
            "worths",
            "worth of the columns",
            lambda: permute_columns(subject.model, data, subject.splits[0], subject.metric, seed=subject.seed),
        )
        or ()
    )
    columns = [one.feature for one in found["worths"] if one.fall > 0.0]
    columns = columns or [one.feature for one in found["importances"] if one.permutation > 0.0]
    columns = [one for one in columns if one in data.X.column_names]  # no part of a date
    columns = columns or list(data.X.column_names)
    found["dependences"] = (
        parts.make(
            "dependences",
            "dependence",
            lambda: trace_columns(fitted.model(subject.model), data, columns[:N_COLUMNS], seed=subject.seed),
        )
        or ()
    )
    label = next((one.label for one in found["dependences"]), None)
    found["reasons"] = parts.make(
        "reasons",
        "reasons",
        lambda: explain_answers(fitted.model(subject.model), data, label=label, seed=subject.seed),
    )
    found["coverages"] = parts.make("coverages", "coverage", lambda: (measure_forest_coverage(subject, data),)) or ()
    return Evidence(
        key=subject.key,
        name=subject.name,
        recipe=subject.recipe,
        **found,
        left_out=tuple(parts.left_out.items()),
        remarks=tuple(remark(subject, data, len(record.predictions.get(subject.key, ()))).items()),
        seconds=parts.limit.seconds,
        stopped="interrupt" if parts.is_stopped else "budget" if BUDGET in parts.left_out.values() else None,
    )


class FittedModels:
    """Models of all rows, each fitted once."""

    def __init__(self, data: StudyData) -> None:
        self.data = data
        self.known: dict[str, Any] = {}

    def model(self, estimator: Any) -> Any:
        """An estimator, fitted."""
        from sklearn.base import clone

        name = repr(estimator)
        if name not in self.known:
            self.known[name] = clone(estimator).fit(self.data.X, self.data.y)
        return self.known[name]

    def importances(self, forest: Any) -> Any:
        """Importances of the columns; rows of one group are in a bag together or not at all."""
        from sklearn.base import clone

        X, y, groups = self.data.X, self.data.y, self.data.groups
        return list_importances(self.model(forest) if groups is None else clone(forest).fit(X, y, groups=groups), X, y)


def remark(subject: Subject, data: StudyData, n_folds: int) -> dict[str, str]:
    """What to know beside the parts, by field; `n_folds`: how many folds the held-out predictions are of."""
    held_out = "residuals" if data.is_regression else "confusion"
    remarks = {held_out: "Each row is held out once."}
    if subject.n_repeats > 1:
        first = f"the first of the {subject.n_repeats} times that the rows were split into folds"
        remarks[held_out] = f"Each row is held out once: these predictions are of {first}."
        remarks["learning_curves"] = f"The curves are of {first}, the table is of all."
    if data.groups is not None:
        remarks["importances"] = "Bags are of whole groups: an out-of-bag row has no relative in the bag."
    if data.times is not None:
        remarks[held_out] = "The earliest rows are never held out."
        remarks["importances"] = (
            "Out-of-bag rows are of the same times as those in the bag; for later rows a column may be worth less."
        )
    if data.groups is not None or data.times is not None:
        remarks["tree"] = "Errors of the path are cross-validated by the folds of the study."
    if n_folds < len(subject.splits):
        remarks[held_out] = f"They are of {n_folds} of {len(subject.splits)} folds."
    return remarks


def evaluate_held_out(data: StudyData, record: FoldRecord, subject: Subject) -> dict[str, Any]:
    """Parts that are made of the predictions for held-out rows."""
    rows, predicted, probabilities = record.pool(subject.key)
    y = data.y[rows]
    if probabilities is None:
        return {"residuals": measure_residuals(y, predicted, seed=subject.seed)}
    classes = np.unique(data.y)
    return {
        "separations": separation_curves(y, probabilities, classes),
        "calibrations": calibration_bins(y, probabilities, classes),
        "confusion": count_confusion(y, predicted, classes),
    }


def measure_forest_coverage(subject: Subject, data: StudyData) -> Coverage:
    """How often the forest's intervals or sets hold the truth of held-out rows, as many folds as are needed."""
    from sklearn.base import clone

    classes = None if data.is_regression else np.unique(data.y)
    truths: list[NDArray[Any]] = []
    predicted: dict[float, list[NDArray[Any]]] = {level: [] for level in LEVELS}
    rng = np.random.default_rng(subject.seed)
    for train, test in subject.splits:
        room = COVERED_ROWS - sum(map(len, truths))
        if room <= 0:
            break
        rows = rng.permutation(test)[:room]
        related = {} if data.groups is None else {"groups": data.groups[train]}
        model = clone(subject.forest).set_params(oob_score=True).fit(data.X.take(train), data.y[train], **related)
        X = data.X.take(rows)
        for level in LEVELS:
            predicted[level].append(_predict_regions(model, X, level, classes))
        truths.append(data.y[rows])
    whole = {level: np.concatenate(blocks) for level, blocks in predicted.items()}
    return measure_coverage("random forest", np.concatenate(truths), whole, classes)


def _predict_regions(model: Any, X: Any, level: float, classes: NDArray[Any] | None) -> NDArray[Any]:
    """Intervals, or sets of all the classes of the table."""
    if classes is None:
        return np.asarray(model.predict_interval(X, level))
    return align(model.predict_set(X, level), model.classes_, classes) > 0.0
