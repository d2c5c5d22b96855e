"""The training data of every estimator: checked, read, weighed and coded in one place.

X, y, sample_weight ──open_training──► OpenedData: X as columns, y (codes of classes, or numbers), weights
──read──► TrainingData: the same with the table that trees are grown on
──code_rows──► CodedRows: codes, fixed-point weights, kernels
──code_for_bags──► BagRows: the same for trees on bags of the rows, with the target and names
──bin_rows──► Bins: codes in bytes, for rounds of boosting
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import numpy as np

from spinney._cost import BAR_SECONDS, CODING_SECONDS, COMPILED_SHARE, SHORT_SECONDS, VISIT_SECONDS, growing_seconds
from spinney._criteria import CRITERIA, own_name
from spinney._jit import kernels
from spinney._threads import count_workers
from spinney._types import MAX_CODES
from spinney.ensemble.sampling import positive_rows
from spinney.estimators.checks import check_weights, count_copies, open_x, weigh_classes
from spinney.estimators.class_outputs import weigh_outputs
from spinney.estimators.other_members import Rows, hold_rows
from spinney.table.binning import bin_table
from spinney.table.bundles import bundle_features
from spinney.table.coding import code_table
from spinney.table.fixed_point import (
    class_target,
    count_labels,
    fix_weights,
    label_target,
    output_target,
    value_target,
    with_room,
)
from spinney.table.ingest import read_columns
from spinney.table.sparse_codes import SparseCodes, pack_stored
from spinney.table.stored_bundles import bundle_stored
from spinney.tree.structure import Legend

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from spinney.table.binning import Bins
    from spinney.table.coding import Codes
    from spinney.table.columns import Columns
    from spinney.table.fixed_point import Target, Weights
    from spinney.table.flags import Packing
    from spinney.table.ingest import Table
    from spinney.table.schema import Schema


class Effort(NamedTuple):
    """How the work of a fit is done, which never changes what comes out."""

    kernels: Any
    seconds: float  # that all of it takes, compiled
    round_seconds: float | None = None  # the same of one round, where work is shared and interrupted round by round
    most_workers: int | None = None  # threads that there is memory for; None: any number

    @property
    def is_short(self) -> bool:
        """Whether it is over, or a round is and all rounds need no progress bar, before anyone could interrupt it."""
        if self.round_seconds is None:
            return self.seconds < SHORT_SECONDS
        return self.round_seconds < SHORT_SECONDS and self.seconds < BAR_SECONDS

    def count_workers(self, n_jobs: int | None, n_tasks: int) -> int:
        """Threads for so many tasks, of all the work or of a round."""
        n = count_workers(n_jobs, n_tasks, self.seconds if self.round_seconds is None else self.round_seconds)
        return n if self.most_workers is None else min(n, self.most_workers)


def estimate_effort(seconds: float, n_rounds: int | None = None) -> Effort:
    """How to do work that takes so many seconds interpreted; n_rounds: where the seconds are those of one round."""
    if n_rounds is None:
        return Effort(kernels(seconds), seconds * COMPILED_SHARE)
    return Effort(kernels(seconds * n_rounds), seconds * n_rounds * COMPILED_SHARE, seconds * COMPILED_SHARE)


class OpenedData(NamedTuple):
    """What a fit was given, checked."""

    X: Any  # as given
    opened: Columns
    y: NDArray[Any]  # (n_rows,) or (n_rows, n_outputs): codes of classes int64, or numbers float64
    weight: NDArray[np.float64] | None  # (n_rows,) of rows times those of classes; None: 1 each
    times: NDArray[np.int64] | None = None  # (n_rows,) how many rows each counts as, where its weight does not say it

    @property
    def n_rows(self) -> int:
        """Rows of X."""
        return self.opened.n_rows

    @property
    def is_frame(self) -> bool:
        """Whether X is a frame, whose columns have names."""
        return self.opened.is_frame

    def rows(self) -> Rows:
        """X as members of any kind take it."""
        return hold_rows(self.X, self.opened)

    def read(self, tree: Any) -> TrainingData:
        """The same with the table that trees are grown on, as the parameters of one say."""
        table = read_columns(self.opened, tree.categorical_features, tree.date_features)
        return TrainingData(self.opened, table, self.y, self.weight, self.times)


def open_training(estimator: Any, X: Any, y: Any, sample_weight: Any, class_weight: Any = None) -> OpenedData:
    """Check what `fit` was given; class_weight: multiplies the weights of rows, of a classifier.

    Sets `n_features_in_`, `feature_names_in_` and, of a classifier, `classes_` and `n_classes_`.
    """
    opened = open_x(estimator, X, is_fit=True)
    target = estimator._read_target(y, opened.n_rows)  # noqa: SLF001
    weight = check_weights(sample_weight, opened.n_rows)
    times = None
    if estimator._labels is not None:  # noqa: SLF001
        times = count_copies(class_weight, weight)
        weigh = weigh_outputs if target.ndim == 2 else weigh_classes
        weight = weigh(class_weight, estimator.classes_, target, weight)
    return OpenedData(X, opened, target, weight, times)


class TrainingData(NamedTuple):
    """What a fit was given, checked and read."""

    columns: Columns
    table: Table
    y: NDArray[Any]  # (n_rows,) or (n_rows, n_outputs): codes of classes int64, or numbers float64
    weight: NDArray[np.float64] | None  # (n_rows,) of rows times those of classes; None: 1 each
    times: NDArray[np.int64] | None = None  # (n_rows,) how many rows each counts as, where its weight does not say it


def read_training(estimator: Any, X: Any, y: Any, sample_weight: Any, class_weight: Any = None) -> TrainingData:
    """Check and read what `fit` was given, as `open_training`, to grow trees on."""
    return open_training(estimator, X, y, sample_weight, class_weight).read(estimator)


class CodedRows(NamedTuple):
    """The rows of a table that trees learn from: those that have a weight, or fewer."""

    codes: Codes
    weights: Weights
    keep: NDArray[np.bool_] | None  # (table.n_rows,) which rows they are; None: all
    n_rows: int
    effort: Effort
    times: NDArray[np.int64] | None = None  # (n_rows,) how many rows each counts as, where its weight does not say it

    @property
    def kernels(self) -> Any:
        """Compiled or interpreted, as the effort wants it."""
        return self.effort.kernels


def code_rows(
    table: Table,
    weight: NDArray[np.float64] | None,
    max_bins: int,
    visit_seconds: float = VISIT_SECONDS,
    times: NDArray[np.int64] | None = None,
    *,
    keep: NDArray[np.bool_] | None = None,
    n_trees: int = 1,
    n_levels: float | None = None,
    is_short: bool = False,
) -> CodedRows:
    """Code the rows to learn from.

    Parameters
    ----------
    table : Table
    weight : float64 (table.n_rows,), optional
        None: 1 each.
    max_bins : int
    visit_seconds : float
        Interpreted, per row, feature and level.
    times : int64 (table.n_rows,), optional
        As of `fix_weights`.
    keep : bool (table.n_rows,), optional
        The rows to learn from, all of positive weight; None: all that have one.
    n_trees, n_levels
        As of `growing_seconds`.
    is_short : bool
        As of `make_codes`.
    """
    keep = positive_rows(weight) if keep is None else keep
    if keep is not None:
        weight = None if weight is None else weight[keep]
        times = None if times is None else times[keep]
    n_rows = table.n_rows if keep is None else int(np.count_nonzero(keep))
    effort = estimate_effort(growing_seconds(n_rows, table.schema.n_features, n_trees, visit_seconds, n_levels))
    weights = fix_weights(weight, n_rows, times)
    codes = code_table(table, weights.values, max_bins, effort.kernels, keep, is_short=is_short)
    return CodedRows(codes, weights, keep, n_rows, effort, times)


def pack_cells(
    table: Table, weight: NDArray[np.float64] | None, max_bins: int, *, has_cells: bool
) -> tuple[CodedRows, Packing]:
    """`code_rows` of a sparse table for a tree that reads rows as they are packed, and how they are."""
    keep = positive_rows(weight)
    weight = weight if weight is None or keep is None else weight[keep]
    table = table.take(keep)
    effort = estimate_effort(growing_seconds(table.n_rows, table.schema.n_features))
    weights = fix_weights(weight, table.n_rows)
    codes = SparseCodes(table, weights.values, max_bins, effort.kernels)
    rows, packing = pack_stored(codes, has_cells=has_cells)
    return CodedRows(codes.with_rows(rows), weights, keep, table.n_rows, effort), packing


def bin_rows(
    table: Table,
    weight: NDArray[np.float64] | None,
    max_bins: int | None,
    effort: Effort,
    *,
    keep: NDArray[np.bool_] | None = None,
    n_workers: int = 1,
    least: int | None = None,
) -> Bins:
    """Bin the rows to learn from, for rounds of boosting.

    Parameters
    ----------
    table : Table
    weight : float64 array, optional
        Of the rows to learn from, all positive; None: 1 each.
    max_bins : int, optional
        None: as many as there are codes.
    effort : Effort
    keep : bool (table.n_rows,), optional
        The rows to learn from; None: all.
    n_workers : int
        Threads; the bins are the same for any number.
    least : int, optional
        Features may share a byte, and those that cannot part so many rows for each branch are left out. None: neither,
        as where bins are made anew for each tree.
    """
    n_rows = table.n_rows if keep is None else int(np.count_nonzero(keep))
    values = fix_weights(weight, n_rows).values
    if least is not None and table.stored is not None and table.shelf is None:  # a shelf keeps bins without bundles
        most = MAX_CODES if max_bins is None else max_bins
        return bundle_stored(table.take(keep), values, most, effort.kernels, least)
    bins = bin_table(table, values, max_bins, effort.kernels, keep, n_workers)
    return bins if least is None else bundle_features(bins, least)


class BagRows(NamedTuple):
    """All rows of a table, for trees that each grow on a bag of them."""

    codes: Codes | SparseCodes
    weights: Weights  # with room for counts
    target: Target
    legend: Legend
    effort: Effort


def code_for_bags(
    data: TrainingData,
    labels: tuple[Any, ...] | None,
    tree: Any,
    n_features: int,
    n_trees: int,
    n_jobs: int | None = 1,
) -> BagRows:
    """Code all rows once for many trees; tree: has `criterion`, `max_bins`, and for numbers `min_target_std`.

    Where it has a `make_target`, that makes the target of y and weights.

    labels: the classes, or None for numbers; n_features: that a tree sees; n_jobs: threads, where they pay.
    """
    table, weight = data.table, data.weight
    effort = estimate_effort(growing_seconds(table.n_rows, n_features, n_trees))
    effort = effort._replace(most_workers=table.most_workers)
    weights = fix_weights(weight, table.n_rows)
    make_own: Callable[[NDArray[Any], Weights], Target] | None = getattr(tree, "make_target", None)
    if make_own is not None:
        target = make_own(data.y, weights)
    elif labels is None:
        criterion = own_name(tree.criterion)
        y = mask_unweighted(data.y, weight)
        check_range(criterion, data.y, weight)
        form = target_form(criterion, tree.min_target_std)
        target = output_target(y, weights) if y.ndim == 2 else value_target(y, weights, **form)
    elif data.y.ndim == 2:
        target = label_target(data.y, count_labels(labels), weights)
    else:
        target = class_target(data.y, len(labels), weights)
    n_workers = count_workers(n_jobs, table.schema.n_features, table.n_rows * table.schema.n_features * CODING_SECONDS)
    n_workers = n_workers if table.most_workers is None else min(n_workers, table.most_workers)
    codes: Codes | SparseCodes
    if table.stored is not None and table.shelf is None:
        codes = SparseCodes(table, weights.values, int(tree.max_bins), effort.kernels)
    else:
        codes = code_table(table, weights.values, int(tree.max_bins), effort.kernels, n_workers=n_workers)
    weights, target = with_room(weights, target)
    named = None if make_own is not None else own_name(tree.criterion)
    legend = make_legend(table.schema, labels, codes.has_missing, named)
    return BagRows(codes, weights, target, legend, effort)


class TargetForm(TypedDict):
    """How `value_target` makes the sums that a criterion asks for."""

    has_square: bool
    has_origin: bool


def target_form(criterion: str, min_target_std: float = 0.0) -> TargetForm:
    """What trees of numbers need of their targets besides sums."""
    known = CRITERIA[criterion]
    return {"has_square": known.needs_squares or min_target_std > 0.0, "has_origin": known.has_origin}


def check_range(criterion: str, y: NDArray[np.float64], weight: NDArray[np.float64] | None = None) -> None:
    """Refuse targets that a criterion has no impurity for."""
    if criterion != "poisson":
        return
    if np.any(y < 0.0):
        row = int(np.argmax(y < 0.0))
        raise ValueError(
            "Some value(s) of y are negative which is not allowed for Poisson regression: "
            f"y is {y[row]:g} in row {row}; criterion='squared_error' takes any number"
        )
    if not np.any(y[weight > 0.0] > 0.0 if weight is not None else y > 0.0):
        raise ValueError(
            "Sum of y is not strictly positive which is necessary for Poisson regression: y is 0 in every row; check "
            "the target"
        )


def refuse_asked(asked: dict[str, bool], n_outputs: int) -> None:
    """Raise where something that takes one output is asked for with several; asked: whether it is, by its name."""
    for what, is_asked in asked.items():
        if is_asked:
            raise ValueError(
                f"{what} takes one output, and y has {n_outputs} columns: leave it out, or fit one model for each "
                "column"
            )


def mask_unweighted(y: NDArray[np.float64], weight: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Targets with those of rows of weight 0 replaced by the largest of the others.

    Such rows are in no bag, but the scale of the fixed-point target is taken from all rows: one far off would cost the
    others their digits, and would not fit itself.
    """
    if weight is None or np.all(weight > 0.0):
        return y
    is_used = weight > 0.0
    return np.where(is_used if y.ndim == 1 else is_used[:, None], y, y[is_used].max(axis=0))


def make_legend(
    schema: Schema, classes: tuple[Any, ...] | None, has_missing: NDArray[np.bool_], criterion: str | None = None
) -> Legend:
    """Names for the trees of a table; columns without one are x0, x1, and so on."""
    names = schema.names or tuple(f"x{j}" for j in range(schema.n_features))
    return Legend(names, schema.levels, classes, tuple(has_missing.tolist()), criterion)
