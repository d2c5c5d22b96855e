"""What the rows left out of the bags say of a forest."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import accuracy_score, get_scorer, r2_score
from sklearn.metrics._scorer import _BaseScorer

from spinney._types import ROW
from spinney.ensemble.forest import ForestGrowth, say
from spinney.model.predict import find_coded_leaves

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.tree.forest import Forest


class OutOfBag:
    """Out-of-bag votes of a forest: kept by `fit` when `oob_score` asks for them.

    A row of weight 0 is as if it were not there: it has no votes and counts in no score.
    """

    oob_score: Any
    classes_: Any

    def _start_oob(self, growth: ForestGrowth, y: NDArray[Any], old: Forest | None, kernels: Any) -> list[float]:
        """Make the growth report the error after each tree; a warm start goes on with the votes of the old trees."""
        curve: list[float] = []
        is_weighed = growth.plan.is_weighed

        def note(votes: NDArray[np.float64], n_votes: NDArray[np.int64]) -> None:
            if is_weighed is not None:
                n_votes = n_votes * is_weighed
            curve.append(oob_error(votes, n_votes, y, is_class=growth.plan.target.n_classes > 0))

        self._find_scorer()
        growth.on_votes = note
        if old is not None and hasattr(self, "_oob_votes"):
            growth.votes[:], growth.n_votes[:] = self._oob_votes, self._oob_n_votes
            curve += self.oob_curve_.tolist()
        elif old is not None:  # grown without: let them vote now
            for t in range(len(old)):
                rows = np.flatnonzero(growth.plan.draw.counts(t) == 0).astype(ROW)
                tree = old[t]
                said = say(tree, find_coded_leaves(tree, growth.plan.codes, rows, kernels), is_hard=growth.plan.is_hard)
                growth.votes[rows] += said
                growth.n_votes[rows] += 1
                note(growth.votes, growth.n_votes)
        return curve

    def _keep_oob(self, growth: ForestGrowth, y: NDArray[Any], curve: list[float]) -> None:
        """Keep the votes and the scores they give."""
        is_weighed = growth.plan.is_weighed
        if is_weighed is not None:
            growth.votes[~is_weighed], growth.n_votes[~is_weighed] = 0.0, 0
        self._oob_votes, self._oob_n_votes = growth.votes, growth.n_votes
        has_votes = growth.n_votes > 0
        n_silent = np.count_nonzero(~has_votes if is_weighed is None else is_weighed & ~has_votes)
        if n_silent:
            warnings.warn(
                f"{n_silent} of {len(y)} rows were in every bag: they have no out-of-bag prediction (NaN) and do not "
                "count in the score. More trees would leave fewer such rows.",
                UserWarning,
                stacklevel=4,
            )
        self.oob_curve_ = np.array(curve)
        means = np.full(growth.votes.shape, np.nan)
        np.divide(growth.votes, growth.n_votes[:, None], out=means, where=has_votes[:, None])
        if growth.plan.target.n_classes:
            self.oob_decision_function_ = means
        else:
            self.oob_prediction_ = means[:, 0]
        self.oob_score_ = self._score_oob(y, has_votes)

    def _find_scorer(self) -> Any:
        """The scorer that `oob_score` names or is; None where it is a metric, or nothing but True."""
        if isinstance(self.oob_score, _BaseScorer):
            return self.oob_score
        if not isinstance(self.oob_score, str):
            return None
        try:
            return get_scorer(self.oob_score)
        except ValueError as error:
            raise ValueError(
                f"oob_score={self.oob_score!r} is not the name of a scorer; sklearn.metrics.get_scorer_names() lists "
                "them. A function metric(y_true, y_pred) will do as well."
            ) from error

    def _score_oob(self, y: NDArray[Any], has_votes: NDArray[np.bool_]) -> float:
        """The score of the out-of-bag predictions, by default accuracy or R2."""
        if not has_votes.any():
            return np.nan
        rows = np.flatnonzero(has_votes)
        shown = OutOfBagView(self)
        truth = self.classes_[y[rows]] if shown.is_class else y[rows]
        scorer = self._find_scorer()
        if scorer is not None:
            return float(scorer(shown, rows[:, None], truth))
        predicted = shown.predict(rows[:, None])
        if callable(self.oob_score):
            return float(self.oob_score(truth, predicted))
        if shown.is_class:
            return float(accuracy_score(truth, predicted))
        if len(rows) < 2:
            return np.nan
        shift = -math.frexp(float(np.max(np.abs(truth))))[1]  # R2 knows no units, but squares have their limits
        return float(r2_score(np.ldexp(truth, shift), np.ldexp(predicted, shift)))


class OutOfBagView:
    """A fitted forest that predicts training rows, given by number, from the trees that have not seen them."""

    def __init__(self, forest: Any) -> None:
        self.forest = forest
        self.is_class = hasattr(forest, "classes_")
        if self.is_class:
            self.classes_ = forest.classes_

    def __sklearn_tags__(self) -> Any:
        return self.forest.__sklearn_tags__()

    def predict_proba(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Class shares of the votes."""
        shares: NDArray[np.float64] = self.forest.oob_decision_function_[rows[:, 0]]
        return shares

    def predict(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Class of most votes, or mean."""
        if self.is_class:
            return self.classes_[self.predict_proba(rows).argmax(axis=1)]
        return self.forest.oob_prediction_[rows[:, 0]]


def oob_error(votes: NDArray[np.float64], n_votes: NDArray[np.int64], y: NDArray[Any], *, is_class: bool) -> float:
    """Share of wrong classes, or mean squared error, of the rows that have votes."""
    rows = np.flatnonzero(n_votes)
    if len(rows) == 0:
        return np.nan
    if is_class:
        return float(np.mean(votes[rows].argmax(axis=1) != y[rows]))
    with np.errstate(over="ignore"):  # the square of a target of 1e300
        return float(np.mean((votes[rows, 0] / n_votes[rows] - y[rows]) ** 2))
