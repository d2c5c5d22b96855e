"""The trace of a fitted tree: its rows are led through it once more."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from spinney._criteria import CRITERIA
from spinney._jit import kernels
from spinney.estimators.base_tree import SingleTree
from spinney.estimators.checks import (
    check_classes,
    check_known,
    check_monotone,
    check_numbers,
    check_weights,
    count_copies,
    open_x,
    row_count,
    weigh_classes,
)
from spinney.table.coding import code_table
from spinney.table.fixed_point import class_target, fix_weights, value_target
from spinney.table.ingest import read_columns
from spinney.tracing.candidates import Rules
from spinney.tracing.replay import NotTheRowsError, class_rows, textbook_rules, value_rows
from spinney.tracing.trace import make_trace
from spinney.tree.textbook import Textbook

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.table.coding import Codes
    from spinney.table.fixed_point import Weights
    from spinney.table.ingest import Table
    from spinney.tracing.trace import Trace
    from spinney.tree.textbook import TextbookParams

MAX_NODES = 1000
VISIT_SECONDS = 2e-6  # one row of one feature at one level: only the search of large subsets is by kernels


def trace(
    est: Any, X: Any, y: Any, sample_weight: Any = None, *, max_depth: int | None = None, max_nodes: int = MAX_NODES
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
    if not isinstance(est, SingleTree):
        raise TypeError(
            f"a trace shows the reasons of one tree, and {type(est).__name__} is not one; "
            "fit a CART, ID3 or C4.5 tree on the same rows"
        )
    check_is_fitted(est, "tree_")
    columns = open_x(est, X, is_fit=False)
    weight = check_weights(sample_weight, columns.n_rows)
    truth = read_target(est, y, columns.n_rows)
    times = None
    if est.tree_.n_classes:
        class_weight = getattr(est, "class_weight", None)
        times = count_copies(class_weight, weight)
        weight = weigh_classes(class_weight, est.classes_, truth, weight)
    try:
        return trace_rows(est, columns, truth, weight, times, max_depth, max_nodes)
    except NotTheRowsError as error:
        if getattr(est, "pruning", None) != "reduced_error":
            raise
        hint = "fit drew rows to judge the pruning, which did not grow the tree: fit with trace=True keeps a trace."
        raise NotTheRowsError(f"{error} Or: {hint}") from None


def trace_rows(
    est: Any,
    X: Any,
    truth: NDArray[Any],
    weight: NDArray[np.float64] | None,
    times: NDArray[np.int64] | None = None,
    max_depth: int | None = None,
    max_nodes: int = MAX_NODES,
) -> Trace:
    """The trace, of rows that are checked: classes are positions in `classes_`, class weights are in the weights."""
    tree = est.tree_
    table = read_columns(X, est.categorical_features)
    check_levels(est, table)
    keep = None if weight is None or bool(np.all(weight > 0.0)) else weight > 0.0
    if keep is not None and weight is not None:
        weight, truth = weight[keep], truth[keep]
        times = None if times is None else times[keep]
    n_rows = len(truth)
    chosen = kernels(n_rows * table.schema.n_features * max(math.log2(n_rows), 1.0) * VISIT_SECONDS)
    is_textbook = hasattr(est, "_textbook_params")
    times = times if is_textbook else None
    weights = fix_weights(weight, n_rows, times)
    codes = code_table(table, weights.values, int(est.max_bins), chosen, keep)
    rows = class_rows(codes, truth, weights, tree.n_classes) if tree.n_classes else value_rows(codes, truth, weights)
    book, total = None, float(rows.weight.sum())
    if is_textbook:
        params = est._textbook_params(n_rows)  # noqa: SLF001
        book = open_book(codes, truth, weights, times, tree.n_classes, params, chosen)
        rules = textbook_rules(params, total, pruning_of(est))
    else:
        rules = rules_of(est, table, total, n_rows)
    return make_trace(tree, rows, rules, chosen, book, max_depth=max_depth, max_nodes=max_nodes)


def open_book(
    codes: Codes,
    y: NDArray[Any],
    weights: Weights,
    times: NDArray[np.int64] | None,
    n_classes: int,
    params: TextbookParams,
    chosen: Any,
) -> Textbook:
    """What a textbook tree was grown with, to scan its nodes again."""
    if n_classes:
        return Textbook(codes, class_target(y, n_classes, weights), weights, params, chosen, times)
    has_square = CRITERIA[params.criterion].needs_squares
    return Textbook(codes, value_target(y, weights, has_square=has_square), weights, params, chosen)


def keep_trace(
    est: Any,
    X: Any,
    truth: NDArray[Any],
    weight: NDArray[np.float64] | None,
    times: NDArray[np.int64] | None,
    *,
    is_wanted: bool,
) -> None:
    """Set `trace_` of an estimator that has just been fitted; without the wish, none of an earlier fit stays.

    truth, weight, times: as `trace_rows` takes them, weight 0 for rows that did not grow the tree.
    """
    if is_wanted:
        est.trace_ = trace_rows(est, X, truth, weight, times)
    elif hasattr(est, "trace_"):
        del est.trace_


def read_target(est: Any, y: Any, n_rows: int) -> NDArray[Any]:
    """Positions of the classes, or numbers."""
    if not est.tree_.n_classes:
        return check_numbers(est, y, n_rows)
    check_known(y, est.classes_)
    classes, codes = check_classes(est, y, n_rows)
    return np.searchsorted(est.classes_, classes)[codes].astype(np.int64)


def check_levels(est: SingleTree, table: Table) -> None:
    """Refuse columns whose kind or levels are not those of fit."""
    for j, (now, then) in enumerate(zip(table.schema.levels, est._schema.levels, strict=True)):  # noqa: SLF001
        if now != then:
            raise NotTheRowsError(
                f"column {est._schema.name_of(j)} has other levels than in fit; "  # noqa: SLF001
                "pass the X that the tree was fitted on"
            )


def rules_of(est: Any, table: Table, weight: float, n_rows: int) -> Rules:
    """By which rules CART grew its tree."""
    n_try = est.max_features_ if est.max_features is not None else 0
    is_ratio = est.criterion == "gain_ratio"
    return Rules(
        criterion="entropy" if is_ratio else est.criterion,
        choice="guarded_ratio" if is_ratio else "decrease",
        missing=est.missing,
        max_depth=est.max_depth,
        max_leaf_nodes=est.max_leaf_nodes,
        min_samples_split=row_count(est.min_samples_split, n_rows, 2),
        min_samples_leaf=row_count(est.min_samples_leaf, n_rows, 1),
        min_weight_leaf=float(est.min_weight_fraction_leaf) * weight,
        min_impurity_decrease=float(est.min_impurity_decrease),
        min_target_std=float(getattr(est, "min_target_std", 0.0)),
        n_try=int(n_try),
        has_random_ties=est.ties == "random",
        monotone=check_monotone(est.monotonic_cst, est, table.schema),
        pruning=pruning_of(est),
    )


def pruning_of(est: Any) -> str:
    """What may have cut the grown tree, in words."""
    report = getattr(est, "pruning_", None)
    if report is None:
        return "collapsing" if getattr(est, "collapse", False) else ""
    if report.method == "cost_complexity":
        return f"cost-complexity pruning, ccp_alpha={report.options['ccp_alpha']:.6g}"
    return f"pruning: {report.title}"
