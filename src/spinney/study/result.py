"""What a study found, as plain data: it goes to JSON and comes back the same, and a report is made of it alone."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import Any, Self

from spinney.study.housing_setup import N_FOLDS
from spinney.study.json_io import read_json, write_json
from spinney.study.metrics import METRICS
from spinney.study.resampling import standard_error

ASKED = "you asked for it"  # why a column is left out


def describe_error(error: Exception) -> str:
    """What went wrong, in one line."""
    return " ".join(str(error).split()) or type(error).__name__


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the inputs.

    `kind` is "number", "category", "date" or "other". Of a number there are `lowest`, `median` and `highest`; of a
    category `top`, its commonest levels with their counts; of dates `span`, the first and the last. `suspicion` says
    why a column may leak the target or carry nothing. `alone` is what it predicts by itself of rows not seen, from 0
    (the baseline) to 1 (no error); `leak` says how it gives the target away.
    """

    name: str
    kind: str
    n_missing: int
    n_distinct: int
    lowest: float | None = None
    median: float | None = None
    highest: float | None = None
    top: tuple[tuple[str, int], ...] = ()
    suspicion: str | None = None
    alone: float | None = None
    leak: str | None = None
    span: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class TableSummary:
    """A table before any work: `task` is "classification" or "regression", `classes` are (class, rows) of the former.

    `dropped` has the columns that no method sees, each with the reason. `n_copies` are rows that equal an earlier one,
    where these are many and not bound to; `redundant` tells of columns that others determine, `rare` has classes
    of too few rows for the folds, which were left out, with their rows.
    """

    name: str
    n_rows: int
    target: str
    task: str
    classes: tuple[tuple[str, int], ...]
    columns: tuple[Column, ...]
    dropped: dict[str, str]
    n_copies: int = 0
    redundant: tuple[str, ...] = ()
    rare: tuple[tuple[str, int], ...] = ()

    @property
    def used(self) -> tuple[Column, ...]:
        """The columns that methods see."""
        return tuple(column for column in self.columns if column.name not in self.dropped)

    @property
    def asked(self) -> tuple[str, ...]:
        """The columns that were left out on request."""
        return tuple(name for name, why in self.dropped.items() if why == ASKED)

    @property
    def leaks(self) -> tuple[str, ...]:
        """Columns that give the target away, each in a sentence with the way out."""
        return tuple(
            f"column {one.name!r} gives the answer away: {one.leak}. If it is not known in time, leave it out: "
            f"--drop {one.name}"
            for one in self.used
            if one.leak is not None
        )

    @property
    def rare_warning(self) -> str | None:
        """A warning where rows of rare classes were left out, else None."""
        if not self.rare:
            return None
        names = ", ".join(f"{name!r} ({n})" for name, n in self.rare)
        return f"rows of classes that have fewer rows than there are folds were left out, no method knows them: {names}"

    @property
    def copies_warning(self) -> str | None:
        """A warning where many rows are copies of others, else None."""
        if not self.n_copies:
            return None
        share = self.n_copies / self.n_rows
        return (
            f"{self.n_copies:,} rows ({share:.1%}) equal an earlier one in every column: "
            "if they are copies, they flatter the scores; remove them"
        )


@dataclass(frozen=True, slots=True)
class MethodResult:
    """One method over the folds it finished.

    `folds` are the numbers of these folds, and the other tuples are in their order: the score on the held-out rows,
    seconds of the fit alone, seconds to predict the held-out rows. `model_bytes` (pickled) and `n_leaves` (of all
    trees together) are means over the folds. `parameters` are those that differ from the estimator's defaults;
    `chosen`, with tuning, those that each fold's search chose. `error` is why a fold failed, `left_out` why folds are
    missing, `n_rows` how many rows the method was fitted on where the budget did not allow all.
    """

    key: str
    name: str
    estimator: str
    parameters: dict[str, Any]
    folds: tuple[int, ...] = ()
    scores: tuple[float, ...] = ()
    fit_seconds: tuple[float, ...] = ()
    predict_seconds: tuple[float, ...] = ()
    model_bytes: float | None = None
    n_leaves: float | None = None
    chosen: tuple[dict[str, Any], ...] = ()
    error: str | None = None
    left_out: str | None = None
    n_rows: int | None = None

    @property
    def is_baseline(self) -> bool:
        """Whether this is no method but what one must beat."""
        return self.key == "baseline"

    @property
    def mean(self) -> float | None:
        """The mean score, None where no fold was finished."""
        return fmean(self.scores) if self.scores else None


@dataclass(frozen=True, slots=True)
class Difference:
    """A method against the best, over the folds that both finished.

    `mean` is how much worse it scored (never negative but for the few folds of an unfinished method), `standard_error`
    and `p_value` are of Nadeau and Bengio's corrected resampled t-test, `p_adjusted` is after Holm's correction for the
    number of comparisons. None where fewer than two folds are shared.
    """

    key: str
    mean: float
    standard_error: float | None
    p_value: float | None
    p_adjusted: float | None
    n_folds: int


@dataclass(frozen=True, slots=True)
class Study:
    """A comparison of methods on one table.

    `best` is the key of the best method, None where none finished a fold. `train_rows` and `test_rows` are mean numbers
    of rows per fold. `smallest` is the smallest difference that matters, None where nothing beats the baseline.
    `is_partial` says that folds are missing, `stopped` why: "budget" or "interrupt".
    """

    summary: TableSummary
    metric: str
    is_greater_better: bool
    folds: str
    n_folds: int
    train_rows: float
    test_rows: float
    methods: tuple[MethodResult, ...]
    best: str | None
    differences: tuple[Difference, ...]
    recommendation: str
    notes: tuple[str, ...]
    seed: int
    is_tuned: bool
    n_cores: int
    versions: dict[str, str]
    seconds: float
    is_partial: bool = False
    stopped: str | None = None
    smallest: float | None = None

    def method(self, key: str) -> MethodResult:
        """The result of one method."""
        return next(result for result in self.methods if result.key == key)

    @property
    def metric_title(self) -> str:
        """The metric as people call it."""
        return METRICS[self.metric].title

    @property
    def ranked(self) -> tuple[MethodResult, ...]:
        """The methods by their scores, best first; then those of fewer folds or rows than the best, or none."""
        sign = -1.0 if self.is_greater_better else 1.0

        def place(result: MethodResult) -> tuple[bool, bool, float, bool]:
            return result.mean is None, self.is_short(result), sign * (result.mean or 0.0), result.key != self.best

        return tuple(sorted(self.methods, key=place))

    def is_short(self, result: MethodResult) -> bool:
        """Whether the score of a method is no match for that of the best: it failed, or saw fewer folds or rows."""
        best = next((one for one in self.methods if one.key == self.best), None)
        if best is None or result.error is not None:
            return result.error is not None
        return (best.n_rows is None and result.n_rows is not None) or not set(best.folds) <= set(result.folds)

    def label(self, result: MethodResult) -> str:
        """The name of a method, and how many folds or rows it has seen where these are fewer than those of the best."""
        if result.mean is None or not (self.is_short(result) or result.n_rows):
            return result.name
        rows = "" if result.n_rows is None else f" on {result.n_rows:,} rows"
        folds = f"{len(result.folds)} of {self.n_folds} folds{rows}" if not result.error else "failed"
        return f"{result.name} ({folds})"

    def standard_error(self, result: MethodResult) -> float | None:
        """Standard error of a method's mean score, corrected for folds that share training rows.

        None with fewer than two folds.
        """
        return standard_error(result.scores, self.test_rows / self.train_rows)

    def to_json(self) -> str:
        """As JSON text, indented; `from_json` reads it back."""
        return write_json("study", self)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The study that `to_json` wrote."""
        return read_json("study", text, cls, "a study of a table")


@dataclass(frozen=True, slots=True)
class Curve:
    """A method at growing numbers of trees: `scores[i]` and `seconds[i]` are of the i-th finished fold, by point."""

    name: str
    scores: tuple[tuple[float, ...], ...]
    seconds: tuple[tuple[float, ...], ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """R² and fit time of ensembles against their number of trees; `is_partial`: not every fold was finished."""

    table: str
    folds: str
    n_folds: int
    trees: tuple[int, ...]
    curves: tuple[Curve, ...]
    n_cores: int
    versions: dict[str, str]
    seconds: float
    is_partial: bool = False
    stopped: str | None = None

    def standard_error(self, values: tuple[float, ...]) -> float | None:
        """Standard error of the mean of one number for each finished fold, corrected as that of a study."""
        return standard_error(values, 1.0 / (N_FOLDS - 1))

    def to_json(self) -> str:
        """As JSON text, indented; `from_json` reads it back."""
        return write_json("figure", self)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The figure that `to_json` wrote."""
        return read_json("figure", text, cls, "a figure")
