"""Scores of predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def score_numbers(y: NDArray[np.float64], predicted: NDArray[np.float64]) -> dict[str, Any]:
    """R2, mean absolute error, root of the mean squared error, median absolute error and mean error of numbers."""
    import numpy as np

    y = y.astype(np.float64)
    error = predicted - y
    spread = float(((y - y.mean()) ** 2).sum())
    return {
        "R2": 1.0 - float((error**2).sum()) / spread if spread > 0.0 else None,
        "MAE": float(np.abs(error).mean()),
        "RMSE": float(np.sqrt((error**2).mean())),
        "median_absolute_error": float(np.median(np.abs(error))),
        "mean_error": float(error.mean()),
    }


def score_classes(
    y: NDArray[np.int64], predicted: NDArray[np.int64], probabilities: NDArray[np.float64], labels: list[Any]
) -> dict[str, Any]:
    """Scores of codes of classes: in all, of each class, and the confusions, a row for each true class."""
    import numpy as np

    n = len(labels)
    confusion = np.bincount(y * n + predicted, minlength=n * n).reshape(n, n)
    hits, true, taken = confusion.diagonal(), confusion.sum(axis=1), confusion.sum(axis=0)
    with np.errstate(invalid="ignore"):
        recall, precision = hits / true, hits / taken
        f1 = 2.0 * hits / (true + taken)
    chance = probabilities[np.arange(len(y)), y]
    scores = {
        "accuracy": float(hits.sum() / len(y)),
        "balanced_accuracy": float(np.nanmean(recall)),
        "log_loss": float(np.abs(np.log(np.clip(chance, np.finfo(np.float64).eps, 1.0))).mean()),
        "ROC_AUC": measure_auc(y, probabilities),
    }
    columns = zip(labels, true.tolist(), precision.tolist(), recall.tolist(), f1.tolist(), strict=True)
    names = ("class", "rows", "precision", "recall", "f1")
    return {
        "scores": scores,
        "classes": [dict(zip(names, column, strict=True)) for column in columns],
        "confusion": confusion.tolist(),
    }


def measure_auc(y: NDArray[np.int64], probabilities: NDArray[np.float64]) -> float | None:
    """Area under the ROC curve; of more than two classes the mean of each against the rest; None if one is absent."""
    import numpy as np
    from sklearn.metrics import roc_auc_score

    n_classes = probabilities.shape[1]
    if len(np.unique(y)) < max(n_classes, 2):
        return None
    if n_classes == 2:
        return float(roc_auc_score(y, probabilities[:, 1]))
    return float(np.mean([roc_auc_score(y == k, probabilities[:, k]) for k in range(n_classes)]))
