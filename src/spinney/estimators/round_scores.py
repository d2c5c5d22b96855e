"""Scores of rows while a model is boosted: scikit-learn's scorers and metrics, applied to raw scores."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import accuracy_score, get_scorer, r2_score
from sklearn.metrics._scorer import _BaseScorer

from spinney._elementary import log
from spinney.ensemble.links import respond
from spinney.estimators.scoring import find_score, is_scorer

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


class RoundPredictions:
    """What a scorer takes for a fitted model: it knows its predictions for the evaluated X, and for no other.

    Parameters
    ----------
    model : estimator
        Whose classes and tags count.
    X : Any
        As the user has it.
    answers : float64 (n_rows,) or (n_rows, n_classes)
        Numbers, or class probabilities.
    raw : float64 (n_raw, n_rows)
    """

    def __init__(self, model: Any, X: Any, answers: NDArray[np.float64], raw: NDArray[np.float64]) -> None:
        self.model, self.X, self.answers, self.raw = model, X, answers, raw
        self.is_class = model._labels is not None  # noqa: SLF001
        if self.is_class:
            self.classes_ = model.classes_

    def __sklearn_tags__(self) -> Any:
        return self.model.__sklearn_tags__()

    def _check(self, X: Any) -> None:
        if X is not self.X:
            raise ValueError("scoring: while a model is boosted, a scorer can have predictions for its own X only")

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class probabilities."""
        self._check(X)
        return self.answers

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Raw scores."""
        self._check(X)
        return self.raw[0] if len(self.raw) == 1 else self.raw.T

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class, the first among equals; or numbers."""
        self._check(X)
        if not self.is_class:
            return self.answers
        classes: NDArray[Any] = self.classes_[self.answers[:, : len(self.classes_)].argmax(axis=1)]
        return classes

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithms of class probabilities."""
        return log(self.predict_proba(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy or R²."""
        metric = accuracy_score if self.is_class else r2_score
        return float(metric(y, self.predict(X), sample_weight=sample_weight))

    def __getattr__(self, name: str) -> Any:
        """Whatever else the model has; copies and pickles ask for dunders before there is a model."""
        if name.startswith("__") or "model" not in vars(self):
            raise AttributeError(name)
        return getattr(self.model, name)


def name_score(scoring: Any) -> str:
    """What learning curves call a score."""
    if isinstance(scoring, str):
        return scoring
    function = scoring._score_func if isinstance(scoring, _BaseScorer) else scoring  # noqa: SLF001
    name = getattr(function, "__name__", "score")
    return "score" if name in {"loss", "<lambda>"} else str(name)


def weigh_score(scoring: Any, weight: NDArray[np.float64] | None) -> Any:
    """The scoring with the weights of the evaluated rows, where it takes weights."""
    if weight is None:
        return scoring
    if isinstance(scoring, str):
        try:
            scoring = get_scorer(scoring)
        except ValueError:  # `find_score` says so in better words
            return scoring
    try:
        known = inspect.signature(scoring._score_func if isinstance(scoring, _BaseScorer) else scoring)  # noqa: SLF001
    except (TypeError, ValueError):  # written in C, or no function at all
        return scoring
    if "sample_weight" not in known.parameters:
        return scoring
    if is_scorer(scoring):
        return lambda model, X, y: scoring(model, X, y, sample_weight=weight)
    return lambda y_true, y_pred: scoring(y_true, y_pred, sample_weight=weight)


def check_quantile_score(scoring: Any, n_quantiles: int) -> None:
    """Refuse scikit-learn's scorers and metrics beside several quantiles: they compare one prediction with each row."""
    function = scoring._score_func if isinstance(scoring, _BaseScorer) else scoring  # noqa: SLF001
    is_known = isinstance(scoring, str) or str(getattr(function, "__module__", "")).startswith("sklearn.")
    if n_quantiles > 1 and is_known:
        raise ValueError(
            f"scoring={name_score(scoring)!r} takes one prediction for each row, but alpha names {n_quantiles} "
            "quantiles: leave scoring='loss', which is their mean pinball loss, or give a function of y_true and of "
            f"y_pred of shape (n_rows, {n_quantiles})"
        )


def make_score(
    model: Any, X: Any, truth: NDArray[Any], weight: NDArray[np.float64] | None, link: str, exponent: int
) -> Callable[[NDArray[np.float64]], float]:
    """The score that `model.scoring` names, as a function of the raw scores of rows of X, (n_raw, n_rows).

    truth: classes or numbers of the rows, as scorers take them; link, exponent: see `ensemble.links.respond`.
    """
    if link == "quantiles":
        check_quantile_score(model.scoring, np.size(model.alpha))
    score = find_score(weigh_score(model.scoring, weight), "scoring")

    def measure(raw: NDArray[np.float64]) -> float:
        return score(RoundPredictions(model, X, respond(link, raw, exponent), raw), X, truth)

    return measure
