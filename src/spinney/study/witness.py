"""What is kept of the fits of a study while they are at hand: answers for held-out rows, and scores on the way.

Models themselves are not: forests of full-grown trees would fill the memory. Of repeated folds, the first repeat is
kept: in it every row is held out once.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney.study.evidence import Growth
from spinney.study.growths import answer_on_the_way
from spinney.study.verdict import standard_error

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.study.metrics import Metric


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

    def see(
        self,
        key: str,
        model: Any,
        held_out: tuple[Any, NDArray[np.int64]],
        y: NDArray[Any],
        metric: Metric,
        seconds: float,
    ) -> None:
        """Ask a model that was fitted in `seconds` for held-out rows: their table and numbers, and all of the target.

        What goes wrong is noted and ends nothing.
        """
        X, rows = held_out
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the fit that counts has said them
            try:
                self._ask(key, model, X, rows, y, metric, seconds)
            except Exception as error:  # noqa: BLE001  the study does not depend on it
                self.troubles[key] = " ".join(str(error).split()) or type(error).__name__

    def _ask(
        self,
        key: str,
        model: Any,
        X: Any,
        rows: NDArray[np.int64],
        y: NDArray[Any],
        metric: Metric,
        seconds: float,
    ) -> None:
        is_class = metric.task == "classification"
        classes = np.unique(y) if is_class else np.empty(0)
        shares = align(model.predict_proba(X), model.classes_, classes) if is_class else None
        self.answers.setdefault(key, []).append(Answers(rows, model.predict(X), shares))
        scores = {}
        for n_trees, said in answer_on_the_way(model, X, needs_shares=metric.needs_shares):
            whole = align(said, model.classes_, classes) if metric.needs_shares else said
            scores[n_trees] = metric.score(y[rows], whole, classes)
        if scores:
            self.stages.setdefault(key, []).append(Stages(scores, seconds))

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


def align(shares: NDArray[Any], seen: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.float64]:
    """Class probabilities with a column for each class, those too that the training rows did not hold."""
    whole = np.zeros((len(shares), len(classes)))
    whole[:, np.searchsorted(classes, seen)] = shares
    return whole
