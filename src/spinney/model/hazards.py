"""Cumulative hazards and survival by the trees of a survival forest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spinney._cached import derive
from spinney.model.forest_votes import mean_answers
from spinney.tree.predict import find_leaves

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.model.fitted_forest import FittedForest
    from spinney.table.sparse import Values
    from spinney.tree.forest import Forest


def mean_hazards(forest: Forest, values: Values, n_jobs: int | None) -> NDArray[np.float64]:
    """Mean over the trees of the cumulative hazards of each row, (n_rows, n_times)."""
    return mean_answers(forest, values, n_jobs)


def mean_survival(forest: Forest, values: Values, n_jobs: int | None) -> NDArray[np.float64]:
    """Mean over the trees of the survival of each row, (n_rows, n_times).

    A leaf's is that of Kaplan and Meier: its hazard at a time is the share of those at risk whose event comes then.
    """

    def survive() -> Forest:
        assert forest.answers is not None
        left = np.clip(1.0 - np.diff(forest.answers, axis=1, prepend=0.0), 0.0, 1.0)
        return replace(forest, answers=np.multiply.accumulate(left, axis=1))

    return mean_answers(derive(forest, "survival of nodes", survive), values, n_jobs)


def out_of_bag_hazards(fitted: FittedForest, values: Values) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Sums of the cumulative hazards of training rows by trees whose bag lacks them, and how many these are.

    values: (n_rows, n_features) of the training rows; the first result is (n_rows, n_times).
    """
    forest = fitted.forest
    assert forest.answers is not None
    hazards = np.zeros((len(values), forest.answers.shape[1]))
    n_votes = np.zeros(len(values), np.int64)
    for t in range(len(forest)):
        rows = np.flatnonzero(fitted.draw.counts(t) == 0)
        tree = forest[t]
        assert tree.answers is not None
        hazards[rows] += tree.answers[find_leaves(tree, values[rows])]
        n_votes[rows] += 1
    return hazards, n_votes
