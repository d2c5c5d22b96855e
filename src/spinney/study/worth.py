"""What the columns are worth to one method: how much its score on held-out rows falls when a column is shuffled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.study.evidence import Worth
from spinney.study.fold_record import align
from spinney.study.metrics import METRICS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.study.tables import StudyData

N_SHUFFLES = 5
MAX_ROWS = 1000  # held out, that are predicted again and again
MAX_COLUMNS = 60


def permute_columns(
    estimator: Any,
    data: StudyData,
    split: tuple[NDArray[np.int64], NDArray[np.int64]],
    metric: str,
    *,
    seed: int = 0,
) -> tuple[Worth, ...]:
    """The worth of each column to an estimator, fitted on one side of a split and scored on the other; best first."""
    from sklearn.base import clone

    measure = METRICS[metric]
    sign = 1.0 if measure.is_greater_better else -1.0
    train, test = split
    rng = np.random.default_rng(seed)
    rows = np.sort(rng.permutation(test)[:MAX_ROWS])
    model = clone(estimator).fit(data.X.take(train), data.y[train])
    X, y = data.X.take(rows), data.y[rows]
    classes = np.empty(0) if data.is_regression else np.unique(data.y)

    def score(table: Any) -> float:
        if measure.needs_probabilities:
            return sign * measure.score(y, align(model.predict_proba(table), model.classes_, classes), classes)
        return sign * measure.score(y, model.predict(table), classes)

    whole = score(X)
    found = []
    for place, name in enumerate(X.column_names[:MAX_COLUMNS]):
        falls = []
        for _ in range(N_SHUFFLES):
            shuffled = X.column(place).take(rng.permutation(len(rows)))
            falls.append(whole - score(X.set_column(place, X.schema.field(place), shuffled)))
        found.append(Worth(name, float(np.mean(falls)), float(np.std(falls, ddof=1) / np.sqrt(N_SHUFFLES))))
    return tuple(sorted(found, key=lambda one: -one.fall))
