"""The trace of a fitted tree: its rows are led through it once more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.estimators.base_tree import TreeEstimator
from spinney.estimators.checks import (
    check_classes,
    check_known,
    check_numbers,
    check_weights,
    count_copies,
    open_x,
    weigh_classes,
)
from spinney.estimators.growers import MAX_TRACED, TraceLimits, refuse_trace
from spinney.estimators.training import TrainingData
from spinney.table.ingest import read_columns
from spinney.tracing.replay import NotTheRowsError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.table.schema import Schema
    from spinney.tracing.trace import Trace


def trace(
    est: Any, X: Any, y: Any, sample_weight: Any = None, *, max_depth: int | None = None, max_nodes: int = MAX_TRACED
) -> Trace:
    """Every test that each node of a tree could have asked, with its figures, and why the one asked won.

    Computed after the fit, by leading the rows through the finished tree: at each node the best test of every feature,
    and all cuts of a number where there are at most 64.

    Parameters
    ----------
    est : CARTClassifier, CARTRegressor, ID3Classifier, ID3Regressor or C45Classifier
        Fitted on X and y.
    X, y, sample_weight
        What it was fitted on, in any order of the rows.
    max_depth : int, optional
        Deepest node that is looked at.
    max_nodes : int, default=1000
        Most nodes that are looked at, from the root, branch by branch; the trace says how many were left out.

    Returns
    -------
    Trace
        Print it, `show` it, or take its `to_frame()`.

    Examples
    --------
    >>> import spinney
    >>> table = spinney.datasets.load("play_tennis")
    >>> X, y = table.drop_columns(["play"]), table["play"]
    >>> tree = spinney.CARTClassifier(criterion="entropy", max_depth=1).fit(X, y)
    >>> frame = spinney.trace(tree, X, y).to_frame()
    >>> frame.loc[frame.chosen, ["test", "gain"]].round(4).values.tolist()
    [['outlook in {rainy, sunny}', 0.226]]
    """
    if not isinstance(est, TreeEstimator):
        raise TypeError(
            f"a trace shows the reasons of one tree, and {type(est).__name__} is not one; "
            "fit a CART, ID3 or C4.5 tree on the same rows"
        )
    fitted = est._find_fitted()  # noqa: SLF001
    refuse_trace(est._criterion, fitted.tree.n_outputs)  # noqa: SLF001
    data = read_again(est, X, y, sample_weight)
    grower = est._make_grower(data.table.schema, seed=0)  # noqa: SLF001
    try:
        return grower.trace(fitted.tree, data, fitted.report, TraceLimits(max_depth, max_nodes))
    except NotTheRowsError as error:
        if est.pruning != "reduced_error":
            raise
        hint = "fit drew rows to judge the pruning, which did not grow the tree: fit with trace=True keeps a trace."
        raise NotTheRowsError(f"{error} Or: {hint}") from None


def read_again(est: TreeEstimator, X: Any, y: Any, sample_weight: Any) -> TrainingData:
    """The training data of a fitted tree, checked against what it knows of them."""
    columns = open_x(est, X, is_fit=False)
    weight = check_weights(sample_weight, columns.n_rows)
    target = read_target(est, y, columns.n_rows)
    times = None
    if est._labels is not None:  # noqa: SLF001
        class_weight = est._class_weight  # noqa: SLF001
        times = count_copies(class_weight, weight) if est._counts_copies else None  # noqa: SLF001
        weight = weigh_classes(class_weight, est.classes_, target, weight)
    table = read_columns(columns, est.categorical_features, est.date_features)
    check_levels(table.schema, est._find_fitted().schema)  # noqa: SLF001
    return TrainingData(columns, table, target, weight, times)


def read_target(est: TreeEstimator, y: Any, n_rows: int) -> NDArray[Any]:
    """Positions of the classes, or numbers."""
    if est._labels is None:  # noqa: SLF001
        return check_numbers(est, y, n_rows)
    check_known(y, est.classes_)
    classes, codes = check_classes(est, y, n_rows)
    return np.searchsorted(est.classes_, classes)[codes].astype(np.int64)


def check_levels(now: Schema, then: Schema) -> None:
    """Refuse columns whose kind or levels are not those of fit."""
    if now.dates != then.dates:
        raise NotTheRowsError("X has other dates than in fit; pass the X that the tree was fitted on")
    for j, (levels, known) in enumerate(zip(now.levels, then.levels, strict=True)):
        if levels != known:
            raise NotTheRowsError(
                f"column {then.name_of(j)} has other levels than in fit; pass the X that the tree was fitted on"
            )
