"""The training data of every estimator: checked, read, weighed and coded in one place.

X, y, sample_weight ──read_training──► TrainingData: columns, table, y (codes of classes, or numbers), weights
──code_rows──► CodedRows: codes, fixed-point weights, kernels
──code_for_bags──► BagRows: the same for trees on bags of the rows, with the target and names
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._cost import COMPILED_SHARE, SHORT_SECONDS, growing_seconds
from spinney._criteria import CRITERIA
from spinney._jit import kernels
from spinney._threads import count_workers
from spinney.estimators.checks import check_weights, count_copies, open_x, weigh_classes
from spinney.table.coding import code_table
from spinney.table.fixed_point import class_target, fix_weights, value_target, with_room
from spinney.table.ingest import read_columns
from spinney.tree.structure import Legend

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.table.coding import Codes
    from spinney.table.columns import Columns
    from spinney.table.fixed_point import Target, Weights
    from spinney.table.ingest import Table
    from spinney.table.schema import Schema


class TrainingData(NamedTuple):
    """What a fit was given, checked and read."""

    columns: Columns
    table: Table
    y: NDArray[Any]  # (n_rows,) codes of classes int64, or numbers float64
    weight: NDArray[np.float64] | None  # (n_rows,) of rows times those of classes; None: 1 each
    times: NDArray[np.int64] | None = None  # (n_rows,) how many rows each counts as, where its weight does not say it


def read_training(estimator: Any, X: Any, y: Any, sample_weight: Any, class_weight: Any = None) -> TrainingData:
    """Check and read what `fit` was given.

    Sets `n_features_in_`, `feature_names_in_` and, of a classifier, `classes_` and `n_classes_`.
    """
    columns = open_x(estimator, X, is_fit=True)
    target = estimator._read_target(y, columns.n_rows)  # noqa: SLF001
    weight = check_weights(sample_weight, columns.n_rows)
    times = None
    if estimator._labels is not None:  # noqa: SLF001
        times = count_copies(class_weight, weight)
        weight = weigh_classes(class_weight, estimator.classes_, target, weight)
    return TrainingData(columns, read_columns(columns, estimator.categorical_features), target, weight, times)


class CodedRows(NamedTuple):
    """The rows of a table that have a weight."""

    codes: Codes
    weights: Weights
    keep: NDArray[np.bool_] | None  # (table.n_rows,) which rows they are; None: all
    n_rows: int
    kernels: Any
    times: NDArray[np.int64] | None = None  # (n_rows,) how many rows each counts as, where its weight does not say it


def code_rows(
    table: Table,
    weight: NDArray[np.float64] | None,
    max_bins: int,
    visit_seconds: float,
    times: NDArray[np.int64] | None = None,
) -> CodedRows:
    """Leave out the rows of weight 0, code the others; `visit_seconds`: interpreted, per row, feature and level.

    times : as of `fix_weights`, for all rows of the table.
    """
    keep = None if weight is None or bool(np.all(weight > 0.0)) else weight > 0.0
    if keep is not None and weight is not None:
        weight = weight[keep]
        times = None if times is None else times[keep]
    n_rows = table.n_rows if keep is None else int(np.count_nonzero(keep))
    chosen = kernels(growing_seconds(n_rows, table.schema.n_features, visit_seconds=visit_seconds))
    weights = fix_weights(weight, n_rows, times)
    return CodedRows(code_table(table, weights.values, max_bins, chosen, keep), weights, keep, n_rows, chosen, times)


class BagRows(NamedTuple):
    """All rows of a table, for trees that each grow on a bag of them."""

    codes: Codes
    weights: Weights  # with room for counts
    target: Target
    legend: Legend
    kernels: Any
    seconds: float  # that all trees take, compiled

    @property
    def is_short(self) -> bool:
        """Whether the trees are grown before anyone could interrupt it."""
        return self.seconds < SHORT_SECONDS

    def count_workers(self, n_jobs: int | None, n_trees: int) -> int:
        """Threads for so many trees."""
        return count_workers(n_jobs, n_trees, self.seconds)


def code_for_bags(
    data: TrainingData, labels: tuple[Any, ...] | None, tree: Any, n_features: int, n_trees: int
) -> BagRows:
    """Code all rows once for many trees; tree: has `criterion`, `max_bins`, and for numbers `min_target_std`.

    labels: the classes, or None for numbers; n_features: that a tree sees.
    """
    table, weight = data.table, data.weight
    seconds = growing_seconds(table.n_rows, n_features, n_trees)
    chosen = kernels(seconds)
    weights = fix_weights(weight, table.n_rows)
    if labels is None:
        has_square = CRITERIA[tree.criterion].needs_squares or tree.min_target_std > 0.0
        target = value_target(mask_unweighted(data.y, weight), weights, has_square=has_square)
    else:
        target = class_target(data.y, len(labels), weights)
    codes = code_table(table, weights.values, int(tree.max_bins), chosen)
    weights, target = with_room(weights, target)
    legend = make_legend(table.schema, labels, codes.has_missing, tree.criterion)
    return BagRows(codes, weights, target, legend, chosen, seconds * COMPILED_SHARE)


def mask_unweighted(y: NDArray[np.float64], weight: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Targets with those of rows of weight 0 replaced by the largest of the others.

    Such rows are in no bag, but the scale of the fixed-point target is taken from all rows: one far off would cost the
    others their digits, and would not fit itself.
    """
    if weight is None or np.all(weight > 0.0):
        return y
    return np.where(weight > 0.0, y, y[weight > 0.0].max())


def make_legend(
    schema: Schema, classes: tuple[Any, ...] | None, has_missing: NDArray[np.bool_], criterion: str | None = None
) -> Legend:
    """Names for the trees of a table; columns without one are x0, x1, and so on."""
    names = schema.names or tuple(f"x{j}" for j in range(schema.n_features))
    return Legend(names, schema.levels, classes, tuple(has_missing.tolist()), criterion)
