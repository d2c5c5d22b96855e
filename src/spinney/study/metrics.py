"""Scores of a method on held-out rows, by name; each is scikit-learn's.

The default for numbers is R²: it has no unit, and 0 is the mean of the target. The default for classes is accuracy:
everyone reads it the same way, it needs no probabilities (full-grown trees have none worth the name), and the baseline
shows beside it what imbalance alone gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


class Metric(NamedTuple):
    """A score: `score(y, predicted, classes)` of the predictions for held-out rows.

    `predicted` are numbers or classes, or with `needs_probabilities` the class probabilities (n_rows, n_classes) in
    the order of `classes`. `scorer` is scikit-learn's name for it, whose sign is turned where less is better.
    """

    name: str
    title: str
    task: str
    is_greater_better: bool
    needs_probabilities: bool
    score: Callable[[NDArray[Any], NDArray[Any], NDArray[Any]], float]
    scorer: str


def _accuracy(y: NDArray[Any], predicted: NDArray[Any], _: NDArray[Any]) -> float:
    return float(np.mean(y == predicted))


def _balanced(y: NDArray[Any], predicted: NDArray[Any], _: NDArray[Any]) -> float:
    return float(np.mean([np.mean(predicted[y == name] == name) for name in np.unique(y)]))


def _log_loss(y: NDArray[Any], probabilities: NDArray[Any], classes: NDArray[Any]) -> float:
    from sklearn.metrics import log_loss

    return float(log_loss(y, probabilities, labels=classes))


def _roc_auc(y: NDArray[Any], probabilities: NDArray[Any], classes: NDArray[Any]) -> float:
    from sklearn.metrics import roc_auc_score

    if len(np.unique(y)) < len(classes):
        raise ValueError("a fold does not hold every class: roc_auc is not defined there, choose another metric")
    if len(classes) == 2:
        return float(roc_auc_score(y == classes[1], probabilities[:, 1]))
    return float(roc_auc_score(y, probabilities, multi_class="ovr", labels=classes))


def _r2(y: NDArray[Any], predicted: NDArray[Any], _: NDArray[Any]) -> float:
    """As scikit-learn's `r2_score`, whose checks take longer than a score of the few rows of a fold."""
    if len(y) < 2:
        return float("nan")
    exponent = _exponent(y)
    y, predicted = np.ldexp(y, -exponent), np.ldexp(predicted, -exponent)
    error, spread = float(np.square(y - predicted).sum()), float(np.square(y - y.mean()).sum())
    return 1.0 - error / spread if spread > 0.0 else float(error == 0.0)


def _exponent(y: NDArray[Any]) -> int:
    """The power of two that brings numbers near 1, where their squares neither overflow nor vanish."""
    return int(np.frexp(np.abs(y).max())[1])


def _mae(y: NDArray[Any], predicted: NDArray[Any], _: NDArray[Any]) -> float:
    return float(np.mean(np.abs(y - predicted)))


def _rmse(y: NDArray[Any], predicted: NDArray[Any], _: NDArray[Any]) -> float:
    exponent = _exponent(y)
    return float(np.ldexp(np.sqrt(np.mean(np.ldexp(y - predicted, -exponent) ** 2)), exponent))


_ALL = (
    Metric("accuracy", "accuracy", "classification", True, False, _accuracy, "accuracy"),
    Metric("balanced_accuracy", "balanced accuracy", "classification", True, False, _balanced, "balanced_accuracy"),
    Metric("log_loss", "log loss", "classification", False, True, _log_loss, "neg_log_loss"),
    Metric("roc_auc", "ROC AUC", "classification", True, True, _roc_auc, "roc_auc_ovr"),
    Metric("r2", "R²", "regression", True, False, _r2, "r2"),
    Metric("mae", "mean absolute error", "regression", False, False, _mae, "neg_mean_absolute_error"),
    Metric("rmse", "root mean squared error", "regression", False, False, _rmse, "neg_root_mean_squared_error"),
)
METRICS = {metric.name: metric for metric in _ALL}
DEFAULTS = {"classification": "accuracy", "regression": "r2"}
COUNTED = frozenset({"accuracy", "balanced_accuracy"})  # shares of rows: of few rows they take few values


def choose_metric(name: str | None, task: str) -> Metric:
    """The metric of this name for the task; without a name the default."""
    if name is None:
        return METRICS[DEFAULTS[task]]
    fitting = [known for known, metric in METRICS.items() if metric.task == task]
    if name not in fitting:
        raise ValueError(f"metric {name!r} is not one for {task}: choose one of {', '.join(fitting)}")
    return METRICS[name]
