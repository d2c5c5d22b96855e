"""Our classes where scikit-learn asks for its own: in `isinstance`, and in partial dependence by recursion.

`sklearn.tree.export_text`, `plot_tree`, `partial_dependence(method="recursion")`, dtreeviz and others ask for a class
before they read `tree_` and `estimators_`, which ours have by the same names and with the same meaning. scikit-learn's
classes are abstract ones of Python's `abc`, and ours are registered as their virtual subclasses: nothing is inherited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import sklearn.ensemble
import sklearn.tree

from spinney._warnings import warn
from spinney.model.path_dependence import average_paths

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.table.schema import Schema


def stand_for(theirs: str) -> Any:
    """A decorator of a class: it passes for scikit-learn's class of this name."""

    def register(cls: Any) -> Any:
        module = sklearn.tree if theirs.startswith(("DecisionTree", "ExtraTreeC", "ExtraTreeR")) else sklearn.ensemble
        getattr(module, theirs).register(cls)
        return cls

    return register


def read_points(schema: Schema, grid: Any, features: Any) -> NDArray[np.float64]:
    """Points of a grid, (n_points, n_features), as trees know them: levels by their index, others as missing."""
    if schema.dates is not None:
        raise ValueError("method='recursion' asks for columns as trees see them, and X has dates: use method='brute'")
    given = np.asarray(grid)
    points = np.full(given.shape, np.nan)
    for k, j in enumerate(np.asarray(features).tolist()):
        levels = schema.levels[j]
        if levels is None:
            points[:, k] = given[:, k].astype(np.float64)
        else:
            place = {level: i for i, level in enumerate(levels)}
            points[:, k] = [place.get(value, np.nan) for value in given[:, k].tolist()]
    return points


def average_forest(fitted: Any, trees: Any, grid: Any, features: Any) -> NDArray[np.float64]:
    """Partial dependence of a mean over trees on points of a grid, (n_outputs, n_points)."""
    points = read_points(fitted.schema, grid, features)
    return np.ascontiguousarray(average_paths(trees, points, np.asarray(features, np.intp)).mean(axis=0).T)


def average_rounds(model: Any, fitted: Any, grid: Any, features: Any) -> NDArray[np.float64]:
    """Partial dependence of raw scores, less what rounds began with, (n_scores, n_points).

    Numbers by a link are refused: the mean of a link is not the link of a mean, and raw scores are no predictions.
    """
    if fitted.loss.link == "log":
        raise ValueError(
            f"method='recursion' averages raw scores, which for loss={model.loss!r} are logarithms of predictions: use "
            "method='brute'"
        )
    if model.init is not None and model.init != "zero":
        warn(
            "Using recursion method with a non-constant init predictor will lead to incorrect partial dependence "
            f"values. Got init={model.init!r}: use method='brute'"
        )
    points = read_points(fitted.schema, grid, features)
    n_trees = fitted.best_round * fitted.trees_per_round
    trees = (fitted.forest[t] for t in range(n_trees))
    found = average_paths(trees, points, np.asarray(features, np.intp))
    shape = (fitted.best_round, fitted.trees_per_round, *found.shape[1:])
    by_score = found.reshape(shape).sum(axis=0)  # (trees of a round, points, outputs)
    scores = by_score[..., 0] if by_score.shape[2] == 1 else by_score[0].T
    return np.ldexp(np.ascontiguousarray(scores), fitted.exponent)
