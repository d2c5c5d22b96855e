"""What the rows left out of the bags say of a forest."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import accuracy_score, get_scorer, r2_score
from sklearn.metrics._scorer import _BaseScorer, _PassthroughScorer

from spinney._types import ROW
from spinney._warnings import warn
from spinney.ensemble.forest import ForestGrowth, say
from spinney.tree.predict import find_coded_leaves

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from spinney.tree.forest import Forest


class OutOfBag:
    """Out-of-bag votes of a forest: kept by `fit` when `oob_score` asks for them.

    A row of weight 0 is as if it were not there: it has no votes and counts in no score.
    """

    oob_score: Any
    classes_: Any
    _oob_is_hard: bool  # how the kept votes were given

    def _start_oob(self, growth: ForestGrowth, y: NDArray[Any], old: Forest | None, kernels: Any) -> list[float]:
        """Make the growth report the error after each tree; a warm start goes on with the votes of the old trees."""
        curve: list[float] = []
        plan = growth.plan
        is_weighed = plan.is_weighed

        def note(votes: NDArray[np.float64], n_votes: NDArray[np.int64]) -> None:
            if is_weighed is not None:
                n_votes = n_votes * is_weighed
            curve.append(oob_error(votes, n_votes, y, is_class=plan.target.n_classes > 0, shift=plan.shift))

        self._find_scorer()
        growth.on_votes = note
        if old is not None and hasattr(self, "_oob_votes") and self._oob_is_hard == plan.is_hard:
            growth.votes[:], growth.n_votes[:] = self._oob_votes, self._oob_n_votes
            curve += self.oob_curve_.tolist()
        elif old is not None:  # grown without, or have voted otherwise: let them vote now
            for t in range(len(old)):
                rows = np.flatnonzero(plan.draw.counts(t) == 0).astype(ROW)
                tree = old[t]
                leaf = find_coded_leaves(tree, plan.codes, rows, kernels)
                growth.votes[rows] += say(tree, leaf, is_hard=plan.is_hard, shift=plan.shift)
                growth.n_votes[rows] += 1
                note(growth.votes, growth.n_votes)
        return curve

    def _keep_oob(self, growth: ForestGrowth, y: NDArray[Any], curve: list[float]) -> None:
        """Keep the votes and the scores they give."""
        if getattr(self, "pruning", None) == "oob":
            warn(
                "pruning='oob' has shaped each tree by the very rows that now score it: oob_score_ is too good. "
                "Compare forests on held-out rows instead."
            )
        is_weighed = growth.plan.is_weighed
        if is_weighed is not None:
            growth.votes[~is_weighed], growth.n_votes[~is_weighed] = 0.0, 0
        self._oob_votes, self._oob_n_votes, self._oob_is_hard = growth.votes, growth.n_votes, growth.plan.is_hard
        has_votes = growth.n_votes > 0
        n_silent = np.count_nonzero(~has_votes if is_weighed is None else is_weighed & ~has_votes)
        if n_silent:
            warn(
                f"{n_silent} of {len(y)} rows were in every bag: they have no out-of-bag prediction (NaN) and do not "
                "count in the score. More trees would leave fewer such rows."
            )
        self.oob_curve_ = np.array(curve)
        means = np.full(growth.votes.shape, np.nan)
        np.divide(growth.votes, growth.n_votes[:, None], out=means, where=has_votes[:, None])
        if growth.plan.target.n_classes:
            self.oob_decision_function_ = means
        else:
            self.oob_prediction_ = np.ldexp(means[:, 0], growth.plan.shift)
        self.oob_score_ = self._score_oob(y, has_votes)

    def _find_scorer(self) -> Callable[..., float] | None:
        """The score that `oob_score` asks for; None where it is nothing but True."""
        return None if isinstance(self.oob_score, bool | np.bool_) else find_score(self.oob_score, "oob_score")

    def _score_oob(self, y: NDArray[Any], has_votes: NDArray[np.bool_]) -> float:
        """The score of the out-of-bag predictions, by default accuracy or R2."""
        if not has_votes.any():
            return np.nan
        rows = np.flatnonzero(has_votes)
        is_class = hasattr(self, "classes_")
        view = KnownAnswers(self, self.oob_decision_function_ if is_class else self.oob_prediction_)
        truth = self.classes_[y[rows]] if is_class else y[rows]
        score = self._find_scorer()
        if score is not None:
            return score(view, rows[:, None], truth)
        predicted = view.predict(rows[:, None])
        if is_class:
            return float(accuracy_score(truth, predicted))
        if len(rows) < 2:
            return np.nan
        shift = -math.frexp(float(np.max(np.abs(truth))))[1]  # R2 knows no units, but squares have their limits
        return float(r2_score(np.ldexp(truth, shift), np.ldexp(predicted, shift)))


class KnownAnswers:
    """What a scorer takes for a fitted model: a forest or tree whose answers are known, asked for rows by number.

    Parameters
    ----------
    forest : fitted estimator
        Whose classes and tags count.
    answers : float64 (n_rows, n_classes) or (n_rows,)
        Class shares, or numbers.
    """

    def __init__(self, forest: Any, answers: NDArray[np.float64]) -> None:
        self.forest, self.answers = forest, answers
        if hasattr(forest, "classes_"):
            self.classes_ = forest.classes_

    def __sklearn_tags__(self) -> Any:
        return self.forest.__sklearn_tags__()

    def predict_proba(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Class shares."""
        return self.answers[rows[:, 0]]

    def predict(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Class of the largest share, the first among equals; or numbers."""
        said = self.answers[rows[:, 0]]
        return self.classes_[said.argmax(axis=1)] if hasattr(self, "classes_") else said


def find_score(scoring: Any, name: str) -> Callable[..., float]:
    """A function score(model, X, y) -> float from what a user gives as parameter `name`.

    That is the name of a scorer of scikit-learn, a scorer (model, X, y), or a metric (y_true, y_predicted).
    """
    if isinstance(scoring, str):
        try:
            scoring = get_scorer(scoring)
        except ValueError as error:
            raise ValueError(
                f"{name}={scoring!r} is not the name of a scorer; sklearn.metrics.get_scorer_names() lists "
                "them. A function metric(y_true, y_pred) will do as well."
            ) from error
    if not callable(scoring):
        raise TypeError(
            f"{name} must be the name of a scorer or a function, metric(y_true, y_pred) or scorer(model, X, y), "
            f"got {scoring!r}"
        )
    takes_model = is_scorer(scoring)

    def score(model: Any, X: Any, y: Any) -> float:
        found = scoring(model, X, y) if takes_model else scoring(y, model.predict(X))
        try:
            return float(found)
        except (TypeError, ValueError):
            raise TypeError(f"{name}={scoring!r} must return one number, but gave {type(found).__name__}") from None

    return score


def is_scorer(function: Any) -> bool:
    """Whether a function takes (model, X, y), not (y_true, y_pred): by its places without a default value."""
    if isinstance(function, _BaseScorer | _PassthroughScorer):
        return True
    try:
        known = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # written in C
        return False
    places = [place for place in known if place.kind in {place.POSITIONAL_ONLY, place.POSITIONAL_OR_KEYWORD}]
    is_needed = [place.default is place.empty for place in places]
    return sum(is_needed) >= 3 or (len(places) >= 3 and places[2].name in {"y", "y_true"})


def oob_error(
    votes: NDArray[np.float64], n_votes: NDArray[np.int64], y: NDArray[Any], *, is_class: bool, shift: int = 0
) -> float:
    """Share of wrong classes, or mean squared error, of the rows that have votes; these in units of 2**shift."""
    rows = np.flatnonzero(n_votes)
    if len(rows) == 0:
        return np.nan
    if is_class:
        return float(np.mean(votes[rows].argmax(axis=1) != y[rows]))
    with np.errstate(over="ignore"):  # the square of a target of 1e300
        return float(np.mean((np.ldexp(votes[rows, 0] / n_votes[rows], shift) - y[rows]) ** 2))
