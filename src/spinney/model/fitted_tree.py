"""What one tree has learnt, as a value: the tree, its columns and classes, and how it was pruned."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney.model.predictors import TreePredictor
from spinney.reading.explaining import Explanation, explain
from spinney.table.schema import Schema, refuse_infinite
from spinney.tree.predict import smooth_shares
from spinney.tree.pruning_report import PruningReport
from spinney.tree.sklearn_view import SklearnView
from spinney.tree.structure import Legend, Tree

PATH_COLUMNS = {"alpha": "f", "n_leaves": "i", "error": "f", "standard_error": "f"}  # of `CrossValidation.results`


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """How the cost of a leaf was chosen.

    Attributes
    ----------
    results : dict of arrays (n_subtrees,)
        `alpha`, `n_leaves`, `error` and `standard_error` of the best subtrees, from the whole tree to its root.
    alpha : float
        The one that was chosen.
    """

    results: dict[str, Any]
    alpha: float


@dataclass(frozen=True, eq=False)
class Pruning:
    """How a tree was pruned; report: None if it was not."""

    report: PruningReport | None
    cross_validation: CrossValidation | None = None


@dataclass(frozen=True, eq=False)
class FittedTree:
    """One tree and what it was grown on.

    Attributes
    ----------
    tree : Tree
    schema : Schema
        Names and levels of its columns.
    classes : array (n_classes,), list of such, or None
        Ascending, of several outputs those of each; None for numbers.
    pruning : Pruning or None
        None where it is not known: of a tree that was taken out of an ensemble.
    """

    tree: Tree
    schema: Schema
    classes: Any
    pruning: Pruning | None = None

    @cached_property
    def view(self) -> SklearnView:
        """The tree by scikit-learn's names."""
        return SklearnView(self.tree)

    @property
    def report(self) -> PruningReport | None:
        """What pruning has done, if it has."""
        return None if self.pruning is None else self.pruning.report


def make_predictor(fitted: FittedTree, smoothing: float | str | None) -> TreePredictor:
    """What predicts; smoothing: of class probabilities."""
    return TreePredictor(fitted.schema, classes_of_one(fitted.classes), fitted.tree, smoothing)


def classes_of_one(classes: Any) -> Any:
    """The classes that a predictor knows: those of one output; shares of several are numbers to it."""
    return None if isinstance(classes, list) else classes


def label_classes(classes: Any) -> tuple[Any, ...] | None:
    """Classes as a legend names them; None for numbers."""
    if isinstance(classes, list):
        return tuple(tuple(each.tolist()) for each in classes)
    return None if classes is None else tuple(classes.tolist())


def explain_row(
    fitted: FittedTree, values: NDArray[Any], unseen: dict[int, Any], smoothing: float | str | None
) -> Explanation:
    """The path of one encoded row (n_features,) in words; unseen: levels by feature that fit did not meet."""
    if fitted.tree.linear is not None:
        refuse_infinite(values[None], fitted.schema)
    smoothed = None if smoothing is None else smooth_shares(fitted.tree, smoothing)
    return explain(fitted.tree, values, unseen, smoothed)


# --- checks ---


def find_tree_fault(fitted: FittedTree) -> str | None:
    """What is wrong with a fitted tree that was read, whose parts are of their types; None: nothing."""
    return find_legend_fault(fitted) or (None if fitted.pruning is None else find_pruning_fault(fitted.pruning))


def find_legend_fault(fitted: FittedTree) -> str | None:
    """The names in a tree are those of its columns and classes, which texts and rules show."""
    legend: Legend | None = fitted.tree.legend
    if legend is None:
        return None if not isinstance(fitted.classes, list) else "a tree of several outputs of classes names them"
    schema = fitted.schema
    if schema.names is not None and legend.features != schema.names:
        return "the tree names other columns than the schema"
    if legend.levels != schema.levels:
        return "the tree names other levels than the schema"
    if isinstance(fitted.classes, list) != (fitted.tree.widths is not None):
        return "the tree has other outputs than classes_"
    return None if legend.classes == label_classes(fitted.classes) else "the tree names other classes than classes_"


def find_pruning_fault(pruning: Pruning) -> str | None:
    """A cross-validation comes with a report, has columns of one length, and chose one of its alphas."""
    path = pruning.cross_validation
    if path is None:
        return None
    if pruning.report is None:
        return "cv_results_ and ccp_alpha_ come with pruning_"
    if path.results.keys() != PATH_COLUMNS.keys():
        return f"cv_results_ has the columns {', '.join(PATH_COLUMNS)}"
    lengths = set()
    for name, kind in PATH_COLUMNS.items():
        column = path.results[name]
        if not (isinstance(column, np.ndarray) and column.ndim == 1 and column.dtype.kind == kind and len(column)):
            return f"{name} of cv_results_ must be a row of numbers"
        lengths.add(len(column))
    if len(lengths) > 1:
        return "the columns of cv_results_ differ in length"
    return None if path.alpha in path.results["alpha"] else "ccp_alpha_ is none of the alphas of cv_results_"
