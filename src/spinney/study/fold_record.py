"""What is kept of each fit of a study: its predictions for held-out rows, and its score by number of trees.

Models are not kept, since forests of full-grown trees would fill the memory. Where folds are repeated, the first repeat
is kept: every row is held out once in it.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney.study.evidence import LearningCurve
from spinney.study.resampling import standard_error
from spinney.study.result import describe_error
from spinney.study.staged import staged_predictions

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from spinney.study.metrics import Metric


MAX_ROWS = 2000  # of a fold for which staged predictions are made


class Fit(NamedTuple):
    """A fitted model, and how it did on rows held out."""

    model: Any
    seconds: float  # of the fit
    X: pa.Table  # the rows
    rows: NDArray[np.int64]  # (n_rows,) their numbers in the whole table
    predicted: NDArray[Any]  # as the metric takes them: numbers, classes or class probabilities
    score: float


class HeldOutPredictions(NamedTuple):
    """The predictions of a method for rows that it was not fitted on."""

    rows: NDArray[np.int64]  # (n_rows,) of the table
    predicted: NDArray[Any]  # (n_rows,) numbers or classes
    probabilities: NDArray[np.float64] | None  # (n_rows, n_classes) probabilities of all classes of the table


class Stages(NamedTuple):
    """The score of one fit at numbers of trees, and the seconds that all of them took."""

    scores: dict[int, float]
    seconds: float


class FoldRecord:
    """Held-out predictions and staged scores by method, one for each fold; `failures` has why a method has none."""

    def __init__(self) -> None:
        self.predictions: dict[str, list[HeldOutPredictions]] = {}
        self.stages: dict[str, list[Stages]] = {}
        self.failures: dict[str, str] = {}

    def add_fit(self, key: str, fit: Fit, y: NDArray[Any], metric: Metric) -> None:
        """Add the predictions and scores of a fit; `y` is the target of all rows. An error is kept, not raised."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit has given them already
            try:
                self.add(key, predict_both(fit, y, metric))
                scores = staged_scores(fit, y, metric)
            except Exception as error:  # noqa: BLE001  the study does not depend on it
                self.failures[key] = describe_error(error)
                return
        if scores:
            self.stages.setdefault(key, []).append(Stages(scores, fit.seconds))

    def add(self, key: str, predictions: HeldOutPredictions) -> None:
        """Add the predictions of a method for one more fold."""
        self.predictions.setdefault(key, []).append(predictions)

    def pool(self, key: str) -> HeldOutPredictions:
        """The predictions of a method for the held-out rows of all folds together."""
        folds = self.predictions.get(key)
        if not folds:
            raise ValueError(self.failures.get(key, "no fold was finished"))
        probabilities = [fold.probabilities for fold in folds if fold.probabilities is not None]
        return HeldOutPredictions(
            np.concatenate([fold.rows for fold in folds]),
            np.concatenate([fold.predicted for fold in folds]),
            np.concatenate(probabilities) if probabilities else None,
        )

    def learning_curve(self, key: str, name: str, ratio: float) -> LearningCurve | None:
        """Score and seconds by number of trees; None for a method without trees to count, or with fewer than two folds.

        `ratio` is held-out rows over training rows, for the standard errors. The seconds of a fit are shared evenly
        among its trees.
        """
        folds = self.stages.get(key, [])
        if len(folds) < 2:
            return None
        trees = sorted(set.intersection(*(set(fold.scores) for fold in folds)))
        scores = np.array([[fold.scores[n] for n in trees] for fold in folds])
        spent = np.array([[fold.seconds * n / max(fold.scores) for n in trees] for fold in folds])
        return LearningCurve(
            key=key,
            name=name,
            trees=tuple(trees),
            scores=tuple(scores.mean(axis=0).tolist()),
            errors=tuple(standard_error(column, ratio) or 0.0 for column in scores.T),
            seconds=tuple(spent.mean(axis=0).tolist()),
        )


def predict_both(fit: Fit, y: NDArray[Any], metric: Metric) -> HeldOutPredictions:
    """Classes and their probabilities; the metric needed only one of the two, and the other is predicted here."""
    if metric.task == "regression":
        return HeldOutPredictions(fit.rows, fit.predicted, None)
    if metric.needs_probabilities:
        return HeldOutPredictions(fit.rows, fit.model.predict(fit.X), fit.predicted)
    return HeldOutPredictions(
        fit.rows, fit.predicted, align(fit.model.predict_proba(fit.X), fit.model.classes_, np.unique(y))
    )


def staged_scores(fit: Fit, y: NDArray[Any], metric: Metric) -> dict[int, float]:
    """The score of an ensemble at numbers of trees; none of other models.

    Of many rows only a part is predicted in stages, spread evenly over the target. It gives the difference to the whole
    ensemble, whose score on all rows is known.
    """
    truth = y[fit.rows]
    order = np.argsort(truth, kind="stable")
    part = np.sort(order[np.linspace(0, len(order) - 1, min(len(order), MAX_ROWS)).astype(np.int64)])
    classes = np.unique(y) if metric.task == "classification" else np.empty(0)
    scores = {}
    for n_trees, predicted in staged_predictions(
        fit.model, fit.X.take(part), needs_probabilities=metric.needs_probabilities
    ):
        whole = align(predicted, fit.model.classes_, classes) if metric.needs_probabilities else predicted
        scores[n_trees] = metric.score(truth[part], whole, classes)
    return {n_trees: fit.score + score - scores[max(scores)] for n_trees, score in scores.items()}


def align(probabilities: NDArray[Any], seen: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.float64]:
    """Class probabilities with a column for each class, those too that the training rows did not hold."""
    whole = np.zeros((len(probabilities), len(classes)))
    whole[:, np.searchsorted(classes, seen)] = probabilities
    return whole
