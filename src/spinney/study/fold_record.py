"""What is kept of the fits of a study while they are at hand: answers for held-out rows, and scores on the way.

Models themselves are not: forests of full-grown trees would fill the memory. Of repeated folds, the first repeat is
kept: in it every row is held out once.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney.study.evidence import Growth
from spinney.study.resampling import standard_error
from spinney.study.result import say
from spinney.study.staged import answer_on_the_way

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from spinney.study.metrics import Metric


MAX_ROWS = 2000  # of a fold that are asked for on the way


class Fit(NamedTuple):
    """A fitted model, and how it did on rows held out."""

    model: Any
    seconds: float  # of the fit
    X: pa.Table  # the rows
    rows: NDArray[np.int64]  # (n_rows,) their numbers in the whole table
    said: NDArray[Any]  # answers as the metric takes them
    score: float


class Answers(NamedTuple):
    """What a method said of rows that it had not seen."""

    rows: NDArray[np.int64]  # (n_rows,) of the table
    said: NDArray[Any]  # (n_rows,) numbers or classes
    shares: NDArray[np.float64] | None  # (n_rows, n_classes) probabilities of all classes of the table


class Stages(NamedTuple):
    """The score of one fit at numbers of trees, and the seconds that all of them took."""

    scores: dict[int, float]
    seconds: float


class Witness:
    """Answers and stages by method, one for each fold that was seen; `troubles` says why a method has none."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Answers]] = {}
        self.stages: dict[str, list[Stages]] = {}
        self.troubles: dict[str, str] = {}

    def see(self, key: str, fit: Fit, y: NDArray[Any], metric: Metric) -> None:
        """Keep what a fit says of its held-out rows; y is the target of all rows. What goes wrong ends nothing."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit has said them
            try:
                self.keep(key, answer(fit, y, metric))
                scores = score_on_the_way(fit, y, metric)
            except Exception as error:  # noqa: BLE001  the study does not depend on it
                self.troubles[key] = say(error)
                return
        if scores:
            self.stages.setdefault(key, []).append(Stages(scores, fit.seconds))

    def keep(self, key: str, answers: Answers) -> None:
        """Remember the answers of a method for one more fold."""
        self.answers.setdefault(key, []).append(answers)

    def pool(self, key: str) -> Answers:
        """The answers of a method for the rows of all folds together."""
        folds = self.answers.get(key)
        if not folds:
            raise ValueError(self.troubles.get(key, "no fold was finished"))
        shares = [fold.shares for fold in folds if fold.shares is not None]
        return Answers(
            np.concatenate([fold.rows for fold in folds]),
            np.concatenate([fold.said for fold in folds]),
            np.concatenate(shares) if shares else None,
        )

    def grow(self, key: str, name: str, ratio: float) -> Growth | None:
        """Score and seconds of an ensemble against its number of trees; None of others, and with fewer than two folds.

        `ratio` is held-out rows over training rows, for the standard errors. The seconds of a fit are dealt out among
        its trees evenly.
        """
        folds = self.stages.get(key, [])
        if len(folds) < 2:
            return None
        trees = sorted(set.intersection(*(set(fold.scores) for fold in folds)))
        scores = np.array([[fold.scores[n] for n in trees] for fold in folds])
        spent = np.array([[fold.seconds * n / max(fold.scores) for n in trees] for fold in folds])
        return Growth(
            key=key,
            name=name,
            trees=tuple(trees),
            scores=tuple(scores.mean(axis=0).tolist()),
            errors=tuple(standard_error(column, ratio) or 0.0 for column in scores.T),
            seconds=tuple(spent.mean(axis=0).tolist()),
        )


def answer(fit: Fit, y: NDArray[Any], metric: Metric) -> Answers:
    """What a model says of its rows in both ways, only one of which the metric has asked for."""
    if metric.task == "regression":
        return Answers(fit.rows, fit.said, None)
    if metric.needs_shares:
        return Answers(fit.rows, fit.model.predict(fit.X), fit.said)
    return Answers(fit.rows, fit.said, align(fit.model.predict_proba(fit.X), fit.model.classes_, np.unique(y)))


def score_on_the_way(fit: Fit, y: NDArray[Any], metric: Metric) -> dict[int, float]:
    """The score of an ensemble at numbers of trees; none of other models.

    Of many rows, a part that is spread evenly over the target shows how far the ensemble is from its end, where all
    rows tell the score.
    """
    truth = y[fit.rows]
    order = np.argsort(truth, kind="stable")
    part = np.sort(order[np.linspace(0, len(order) - 1, min(len(order), MAX_ROWS)).astype(np.int64)])
    classes = np.unique(y) if metric.task == "classification" else np.empty(0)
    scores = {}
    for n_trees, said in answer_on_the_way(fit.model, fit.X.take(part), needs_shares=metric.needs_shares):
        whole = align(said, fit.model.classes_, classes) if metric.needs_shares else said
        scores[n_trees] = metric.score(truth[part], whole, classes)
    return {n_trees: fit.score + score - scores[max(scores)] for n_trees, score in scores.items()}


def align(shares: NDArray[Any], seen: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.float64]:
    """Class probabilities with a column for each class, those too that the training rows did not hold."""
    whole = np.zeros((len(shares), len(classes)))
    whole[:, np.searchsorted(classes, seen)] = shares
    return whole
