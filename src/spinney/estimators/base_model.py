"""The model that boosting begins with, `init=estimator`: what it predicts are the first raw scores of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.utils.validation import has_fit_parameter

from spinney._elementary import log
from spinney.estimators.kept import is_fitted, kept_by

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST_SHARE = float(np.finfo(np.float32).eps)  # of a class, as in scikit-learn: a logarithm must be finite


def check_base(owner: Any, estimator: Any) -> None:
    """Refuse an estimator that does not predict what boosting learns."""
    if isinstance(estimator, type):
        raise TypeError(f"init is the class {estimator.__name__}: give an instance, {estimator.__name__}()")
    wanted, is_wrong = ("classifier", is_regressor) if is_classifier(owner) else ("regressor", is_classifier)
    if hasattr(estimator, "__sklearn_tags__") and is_wrong(estimator):
        raise ValueError(f"init={estimator!r} is no {wanted}: give one")
    if is_classifier(owner) and not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"init={estimator!r} has no predict_proba, which boosting of classes begins with: The initial estimator "
            "must be one that has, such as LogisticRegression()"
        )


def fit_base(estimator: Any, X: Any, y: NDArray[Any], weight: NDArray[np.float64] | None) -> Any:
    """A fitted copy; weight: None for 1 each."""
    base = clone(estimator)
    if weight is None:
        base.fit(X, y)
        return base
    if not has_fit_parameter(base, "sample_weight") and not hasattr(base, "steps"):
        raise ValueError(
            f"The initial estimator {type(base).__name__} does not support sample weights: leave out sample_weight and "
            "class_weight, or give another init"
        )
    try:
        base.fit(X, y, sample_weight=weight)
    except (TypeError, ValueError) as error:
        if hasattr(base, "steps") and "sample_weight" in str(error):
            raise ValueError(
                f"The initial estimator {type(base).__name__} does not support sample weights: leave out sample_weight "
                "and class_weight, or let its last step ask for them by set_fit_request"
            ) from error
        error.add_note(f"raised by init={estimator!r}, which was given sample_weight")
        raise
    return base


def begin_scores(base: Any, X: Any, classes: NDArray[Any] | None, link: str, n_raw: int) -> NDArray[np.float64]:
    """What a fitted model says of rows, as raw scores, (n_raw, n_rows)."""
    if classes is None:
        numbers = np.asarray(base.predict(X), np.float64).reshape(-1)
        if link == "log":
            if not np.all(numbers > 0.0):
                raise ValueError("init predicts numbers that are not positive, of which this loss takes logarithms")
            numbers = log(numbers)
        return np.ascontiguousarray(np.broadcast_to(numbers, (n_raw, len(numbers))))
    given = np.asarray(base.predict_proba(X), np.float64)
    shares = np.zeros((len(given), len(classes)))
    shares[:, np.searchsorted(classes, getattr(base, "classes_", classes))] = given
    logs = log(np.clip(shares, LEAST_SHARE, 1.0 - LEAST_SHARE))
    if link == "softmax":
        return np.ascontiguousarray((logs - logs.mean(axis=1, keepdims=True)).T)
    odds = logs[:, -1] - logs[:, 0]
    return (odds * (0.5 if link == "half_logistic" else 1.0))[None]


def find_base_fault(base: Any, model: Any) -> str | None:
    """What is wrong with the model to begin with, of a file; None: nothing."""
    if not kept_by(type(base)):
        return None  # an estimator of another library, in a pickle
    if not (is_fitted(base) and hasattr(base, "predict")):
        return "the model to begin with is not fitted"
    labels, known = model._labels, base._labels  # noqa: SLF001
    if (labels is None) != (known is None) or base.n_features_in_ != model.n_features_in_:
        return "the model to begin with predicts something else than the model"
    if labels is None:
        return None
    return None if set(known) <= set(labels) else "the model to begin with has other classes than the model"
