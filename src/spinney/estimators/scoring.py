"""Scores of predictions that are known already, by accuracy, R2, or any scorer or metric of scikit-learn's kind."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import accuracy_score, get_scorer, r2_score
from sklearn.metrics._scorer import _BaseScorer, _PassthroughScorer

from spinney.estimators.class_outputs import has_class_outputs, name_classes

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


class KnownPredictions:
    """What a scorer takes for a fitted model: predictions that are known already; X is a column of row numbers.

    Parameters
    ----------
    estimator : fitted estimator
        Whose classes and tags count.
    predictions : float64 (n_rows, n_classes) or (n_rows,)
        Class shares, or numbers. Several outputs of classes: (n_rows, most classes, n_outputs).
    """

    def __init__(self, estimator: Any, predictions: NDArray[np.float64]) -> None:
        self.estimator, self.predictions = estimator, predictions
        self.is_classifier = estimator._labels is not None  # noqa: SLF001
        if self.is_classifier:
            self.classes_ = estimator.classes_

    def __sklearn_tags__(self) -> Any:
        return self.estimator.__sklearn_tags__()

    def predict_proba(self, rows: NDArray[np.int64]) -> Any:
        """Class shares of rows (n, 1), given by number; of several outputs a list."""
        found = self.predictions[rows[:, 0]]
        if has_class_outputs(self):
            return [found[:, : len(each), o] for o, each in enumerate(self.classes_)]
        return found

    def predict(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Class of the largest share, the first among equals; or numbers."""
        found = self.predictions[rows[:, 0]]
        return name_codes(found.argmax(axis=1), self.classes_) if self.is_classifier else found


def name_codes(codes: NDArray[np.int64], classes: Any) -> NDArray[Any]:
    """The classes of codes; of several outputs (n_rows, n_outputs)."""
    found: NDArray[Any] = name_classes(codes, classes) if isinstance(classes, list) else classes[codes]
    return found


def find_oob_scorer(oob_score: Any) -> Callable[..., float] | None:
    """The score that the parameter `oob_score` asks for; None where it is nothing but True."""
    return None if isinstance(oob_score, bool | np.bool_) else find_score(oob_score, "oob_score")


def score_rows(
    estimator: Any,
    predictions: NDArray[np.float64],
    y: NDArray[Any],
    rows: NDArray[np.int64],
    score: Callable[..., float] | None,
) -> float:
    """The score of the predictions of some rows, by default accuracy or R2; NaN without rows.

    predictions: (n_rows, n_classes) or (n_rows,); y: codes of classes, or numbers, (n_rows,).
    """
    if len(rows) == 0:
        return np.nan
    known = KnownPredictions(estimator, predictions)
    truth = name_codes(y[rows], estimator.classes_) if known.is_classifier else y[rows]
    if score is not None:
        return score(known, rows[:, None], truth)
    predicted = known.predict(rows[:, None])
    if known.is_classifier:
        return float(accuracy_score(truth, predicted))
    if len(rows) < 2:
        return np.nan
    shift = -math.frexp(float(np.max(np.abs(truth))))[1]  # R2 knows no units, but squares have their limits
    return float(r2_score(np.ldexp(truth, shift), np.ldexp(predicted, shift)))


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
