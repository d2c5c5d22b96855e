"""Staged predictions: what an ensemble would predict had it stopped at fewer trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

POINTS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 40, 50, 70, 100, 150, 200, 300, 400, 500, 700, 1000)
CELLS = 2**22  # predictions of single trees that are held at once


def list_points(n_trees: int) -> tuple[int, ...]:
    """Numbers of trees at which an ensemble is read: denser where it is small, and at its end."""
    return (*(n for n in POINTS if n < n_trees), n_trees)


def staged_predictions(model: Any, X: Any, *, needs_probabilities: bool) -> Iterator[tuple[int, NDArray[Any]]]:
    """Pairs of a number of trees and the predictions of a fitted ensemble of ours with so many; none for other models.

    Predictions are numbers, classes, or with `needs_probabilities` class probabilities in the order of `classes_`.
    Boosting is read in its stages; a forest is the mean of its trees.
    """
    from sklearn.base import is_classifier

    if is_boosting(model):
        stages = model.staged_predict_proba(X) if needs_probabilities else model.staged_predict(X)
        n, predicted = 0, np.empty(0)
        for n, predicted in enumerate(stages, 1):
            if n in POINTS:
                yield n, predicted
        if n not in POINTS:
            yield n, predicted
    elif is_forest(model):
        points = list_points(len(model))
        means = average_trees(model, X, points)
        is_class = is_classifier(model) and not needs_probabilities
        for n, mean in zip(points, means, strict=True):
            yield n, model.classes_[mean.argmax(axis=1)] if is_class else mean


def is_boosting(model: Any) -> bool:
    """Whether a model is of ours and can be read on the way to its last tree."""
    from spinney.estimators.base_adaboost import BaseAdaBoost
    from spinney.estimators.base_boosting import BaseGradientBoosting

    return isinstance(model, BaseAdaBoost | BaseGradientBoosting)


def is_forest(model: Any) -> bool:
    """Whether a fitted model is of ours and the mean of its trees."""
    from spinney.estimators.base_bagging import Bagging
    from spinney.estimators.base_forest import BaseForest

    return isinstance(model, BaseForest | Bagging) and model._has_predictor()  # noqa: SLF001


def average_trees(model: Any, X: Any, points: tuple[int, ...]) -> NDArray[np.float64]:
    """Means over the first trees, shape (n_points, n_rows), or (n_points, n_rows, n_classes)."""
    predictor = model.predictor()
    n_classes = 0 if predictor.classes is None else len(predictor.classes)
    n_rows = len(X)
    size = max(CELLS // (len(model) * max(n_classes, 1)), 1)
    means = np.empty((len(points), n_rows, n_classes)[: 3 if n_classes else 2])
    for start in range(0, n_rows, size):
        predicted = predictor.predict_trees(X[start : start + size])
        total, done = np.zeros(predicted.shape[1:]), 0
        for place, n in enumerate(points):
            total = total + predicted[done:n].sum(axis=0)
            means[place, start : start + size] = total / n
            done = n
    return means
