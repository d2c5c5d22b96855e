"""How single trees are grown: `CartGrower` for binary trees, `TextbookGrower` for a branch for each level.

A grower is a value: parameters as numbers, without rows. `grow` makes a tree of the training rows that have a weight,
so that pruning can grow trees on some of the rows, and `trace` tells why such a tree asks what it asks.
`TreeTraining` is a grower together with the rows of one fit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from spinney._cost import TEXTBOOK_VISIT_SECONDS, TRACE_VISIT_SECONDS, VISIT_SECONDS
from spinney._criteria import CRITERIA, GAIN_RATIO
from spinney._types import LEARNED, OWN_BRANCH, ROW, SURROGATE
from spinney.estimators.checks import row_count
from spinney.estimators.training import CodedRows, TrainingData, code_rows, make_legend, pack_cells, target_form
from spinney.table.fixed_point import class_target, count_labels, label_target, output_target, value_target
from spinney.table.schema import encode
from spinney.tracing.candidates import SplitRules
from spinney.tracing.replay import class_rows, textbook_rules, value_rows
from spinney.tracing.trace import make_trace
from spinney.tree.grow import Bag, Growth
from spinney.tree.grow_params import GrowParams
from spinney.tree.pessimistic import collapse
from spinney.tree.structure import Tree
from spinney.tree.textbook import Textbook, TextbookParams, grow_textbook

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.table.fixed_point import Target
    from spinney.table.sparse import Values
    from spinney.tracing.trace import Trace
    from spinney.tree.pruning_report import PruningReport

MAX_TRACED = 1000  # nodes of a trace
# cells of a float32 table whose codes have edges of that type: a fit of less holds less than 60 MB
LEAST_SHORT = 1 << 22

MISSING = {"learned": LEARNED, "branch": OWN_BRANCH, "surrogate": SURROGATE}
MISSING_NAMES = {code: name for name, code in MISSING.items()}


class TraceLimits(NamedTuple):
    """How much of a tree a trace looks at."""

    max_depth: int | None = None
    max_nodes: int = MAX_TRACED


class RowLimits(NamedTuple):
    """Limits of a tree as users give them: floats are fractions of rows that are not counted yet; None: no limit."""

    max_depth: int | None = None
    max_leaf_nodes: int | None = None
    min_samples_split: float | None = None
    min_samples_leaf: float | None = None

    def for_rows(self, n_rows: int) -> dict[str, Any]:
        """The limits that are given, for so many rows, as Python's own numbers: a kernel is compiled per type."""
        limits: dict[str, Any] = {}
        if self.max_depth is not None:
            limits["max_depth"] = min(int(self.max_depth), n_rows)
        if self.max_leaf_nodes is not None:
            limits["max_leaf_nodes"] = min(int(self.max_leaf_nodes), n_rows + 2)
        if self.min_samples_split is not None:
            limits["min_samples_split"] = row_count(self.min_samples_split, n_rows, 2)
        if self.min_samples_leaf is not None:
            limits["min_samples_leaf"] = row_count(self.min_samples_leaf, n_rows, 1)
        return limits


class TreeGrower(Protocol):
    """How a method grows a tree."""

    def grow(self, data: TrainingData, weight: NDArray[np.float64] | None) -> Tree:
        """A tree of the rows that have a weight, (n_rows,), not pruned; None: every row has weight 1."""

    def trace(self, tree: Tree, data: TrainingData, report: PruningReport | None, limits: TraceLimits) -> Trace:
        """The tests that each node of a tree could have asked, by the rows that grew it; `report`: of its pruning."""


@dataclass(frozen=True, eq=False)
class CartGrower:
    """Grows binary trees.

    Attributes
    ----------
    params : GrowParams
        Without what `limits` says.
    limits : RowLimits
    classes : tuple or None
        None for numbers.
    max_bins : int
    monotone : int8 (n_features,), optional
    """

    params: GrowParams
    limits: RowLimits
    classes: tuple[Any, ...] | None
    max_bins: int
    monotone: NDArray[np.int8] | None = None

    def grow(self, data: TrainingData, weight: NDArray[np.float64] | None) -> Tree:
        """A tree of the rows that have a weight, not pruned."""
        table, is_searched = data.table, not self.params.has_random_tests
        bag = None
        if table.stored is not None and self.params.reads_packed and data.y.ndim == 1:
            has_cells = self.params.reads_cells(table.schema.n_features)
            rows, packing = pack_cells(table, weight, self.max_bins, has_cells=has_cells)
            bag = Bag(np.arange(rows.n_rows, dtype=ROW), packing=packing)
        else:
            is_short = is_searched and self.params.missing != SURROGATE and table.is_short
            is_short &= table.n_rows * table.schema.n_features >= LEAST_SHORT
            rows = code_rows(table, weight, self.max_bins, VISIT_SECONDS, is_short=is_short)
        params = replace(self.params, **self.limits.for_rows(rows.n_rows))
        target = fix_target(take_rows(data.y, rows.keep), rows, self.classes, params, has_truth=not is_searched)
        legend = make_legend(data.table.schema, self.classes, rows.codes.has_missing, params.criterion)
        growth = Growth(rows.codes, target, rows.weights, params, rows.kernels, self.monotone, bag)
        del rows, target, bag  # the tree lets its codes go when it is grown
        return growth.grow_alone().with_legend(legend)

    def trace(self, tree: Tree, data: TrainingData, report: PruningReport | None, limits: TraceLimits) -> Trace:
        """The tests that each node could have asked."""
        if self.params.has_random_tests:
            raise ValueError("splitter='random' draws one test of each feature: there are no others to trace")
        rows = code_rows(data.table, data.weight, self.max_bins, TRACE_VISIT_SECONDS)
        traced = traced_rows(tree, rows, take_rows(data.y, rows.keep))
        params = replace(self.params, **self.limits.for_rows(rows.n_rows))
        is_ratio = params.criterion == GAIN_RATIO
        rules = SplitRules(
            criterion="entropy" if is_ratio else params.criterion,
            choice="guarded_ratio" if is_ratio else "decrease",
            missing=MISSING_NAMES[params.missing],
            max_depth=params.max_depth,
            max_leaf_nodes=params.max_leaf_nodes,
            min_samples_split=params.min_samples_split,
            min_samples_leaf=params.min_samples_leaf,
            min_weight_leaf=params.min_weight_fraction_leaf * float(traced.weight.sum()),
            min_impurity_decrease=params.min_impurity_decrease,
            min_target_std=params.min_target_std,
            n_try=params.max_features or 0,
            has_random_ties=params.has_random_ties,
            monotone=self.monotone,
            cat_penalty=params.cat_penalty,
            free_levels=params.free_levels,
            pruning=describe_pruning(report),
        )
        return make_trace(
            tree, traced, rules, rows.kernels, None, max_depth=limits.max_depth, max_nodes=limits.max_nodes
        )


@dataclass(frozen=True, eq=False)
class TextbookGrower:
    """Grows trees with a branch for each level.

    Attributes
    ----------
    params : TextbookParams
        Without what `limits` says.
    limits : RowLimits
    classes : tuple or None
        None for numbers.
    max_bins : int
    collapses : bool
        Whether subtrees that are no better than a leaf on the training rows become one.
    """

    params: TextbookParams
    limits: RowLimits
    classes: tuple[Any, ...] | None
    max_bins: int
    collapses: bool = False

    def grow(self, data: TrainingData, weight: NDArray[np.float64] | None) -> Tree:
        """A tree of the rows that have a weight, not pruned."""
        rows = code_rows(data.table, weight, self.max_bins, TEXTBOOK_VISIT_SECONDS, data.times)
        params, target = self._open(data, rows)
        tree = grow_textbook(rows.codes, target, rows.weights, params, rows.kernels, rows.times)
        legend = make_legend(data.table.schema, self.classes, rows.codes.has_missing, params.criterion)
        tree = tree.with_legend(legend)
        return collapse(tree) if self.collapses else tree

    def _open(self, data: TrainingData, rows: CodedRows) -> tuple[TextbookParams, Target]:
        """The parameters for so many rows, and the target of these rows."""
        params = replace(self.params, **self.limits.for_rows(rows.n_rows))
        return params, fix_target(take_rows(data.y, rows.keep), rows, self.classes, params)

    def trace(self, tree: Tree, data: TrainingData, report: PruningReport | None, limits: TraceLimits) -> Trace:
        """The tests that each node could have asked."""
        rows = code_rows(data.table, data.weight, self.max_bins, TRACE_VISIT_SECONDS, data.times)
        traced = traced_rows(tree, rows, take_rows(data.y, rows.keep))
        params, target = self._open(data, rows)
        pruning = describe_pruning(report, has_collapsed=self.collapses)
        rules = textbook_rules(params, float(traced.weight.sum()), pruning)
        book = Textbook(rows.codes, target, rows.weights, params, rows.kernels, rows.times)
        return make_trace(
            tree, traced, rules, rows.kernels, book, max_depth=limits.max_depth, max_nodes=limits.max_nodes
        )


class EncodedRows(NamedTuple):
    """Rows as trees see them, with their targets."""

    values: Values  # (n_rows, n_features)
    y: NDArray[Any]  # (n_rows,) codes of classes int64, or numbers float64
    weight: NDArray[np.float64] | None  # (n_rows,); None: 1 each
    times: NDArray[np.int64] | None = None  # (n_rows,) how many rows each counts as, where its weight does not say it

    def weighted(self) -> EncodedRows:
        """The rows of positive weight."""
        if self.weight is None or bool(np.all(self.weight > 0.0)):
            return self
        keep = self.weight > 0.0
        times = None if self.times is None else self.times[keep]
        return EncodedRows(self.values[keep], self.y[keep], self.weight[keep], times)


@dataclass(frozen=True, eq=False)
class TreeTraining:
    """The training rows of a tree, and how they grow it; seed: of what is drawn among them."""

    data: TrainingData
    grower: TreeGrower
    seed: int = 0

    def grow(self) -> Tree:
        """The tree of all rows, not pruned."""
        return self.grower.grow(self.data, self.data.weight)

    def narrow(self) -> TreeTraining:
        """The same with codes of classes in as few bytes as they need, to grow a tree of them and nothing else."""
        y = self.data.y
        if y.ndim > 1 or y.dtype.kind != "i":
            return self
        return replace(self, data=self.data._replace(y=y.astype(np.min_scalar_type(int(y.max())))))

    def grow_without(self, is_out: NDArray[np.bool_]) -> Tree:
        """The tree of the other rows."""
        return self.grower.grow(self.data, self.without(is_out).data.weight)

    def without(self, is_out: NDArray[np.bool_]) -> TreeTraining:
        """The same with weight 0 for some rows, (n_rows,)."""
        weight = np.ones(len(self.data.y)) if self.data.weight is None else self.data.weight
        return replace(self, data=self.data._replace(weight=np.where(is_out, 0.0, weight)))

    @property
    def is_used(self) -> NDArray[np.bool_]:
        """Which rows have a weight, (n_rows,)."""
        return np.ones(len(self.data.y), np.bool_) if self.data.weight is None else self.data.weight > 0.0

    def encode_rows(self) -> EncodedRows:
        """All rows, as trees see them."""
        values = encode(self.data.columns, self.data.table.schema)
        return EncodedRows(values, self.data.y, self.data.weight, self.data.times)

    @cached_property
    def rows(self) -> EncodedRows:
        """All rows, as trees see them, once and for all: for what comes after the tree is grown."""
        return self.encode_rows()


def take_rows(y: NDArray[Any], keep: NDArray[np.bool_] | None) -> NDArray[Any]:
    """The targets of the rows that are kept; None: of all."""
    return y if keep is None else y[keep]


def fix_target(
    y: NDArray[Any],
    rows: CodedRows,
    classes: tuple[Any, ...] | None,
    params: GrowParams | TextbookParams,
    *,
    has_truth: bool = True,
) -> Target:
    """The target of coded rows in fixed point, as the criterion wants it.

    has_truth: whether codes of classes are wanted beside their sums, which are all that searches look at.
    """
    if classes is not None and y.ndim == 2:
        return label_target(y, count_labels(classes), rows.weights)
    if classes is not None:
        return class_target(y, len(classes), rows.weights, has_truth=has_truth)
    if y.ndim == 2:
        return output_target(y, rows.weights)
    least_std = params.min_target_std if isinstance(params, GrowParams) else 0.0
    return value_target(y, rows.weights, **target_form(params.criterion, least_std))


def refuse_trace(criterion: str, n_outputs: int) -> None:
    """Raise where there is no trace of trees by this criterion, or of so many outputs."""
    if n_outputs > 1:
        raise ValueError(f"there is no trace of a tree of {n_outputs} outputs: trace one tree for each column of y")
    if criterion in CRITERIA and CRITERIA[criterion].is_median:
        raise ValueError(
            f"there is no trace of a tree by criterion={criterion!r}: the tables of a trace are made of sums, and a "
            "median is none; leave trace=False, or trace a tree by 'squared_error' on the same rows"
        )


def traced_rows(tree: Tree, rows: CodedRows, y: NDArray[Any]) -> Any:
    """Coded rows as a trace takes them."""
    if tree.n_classes:
        return class_rows(rows.codes, y, rows.weights, tree.n_classes)
    criterion = tree.legend.criterion if tree.legend else None
    return value_rows(rows.codes, y, rows.weights, has_origin=criterion in CRITERIA and CRITERIA[criterion].has_origin)


def describe_pruning(report: PruningReport | None, *, has_collapsed: bool = False) -> str:
    """What may have cut the grown tree, in words; "" for nothing."""
    if report is None:
        return "collapsing" if has_collapsed else ""
    if report.method == "cost_complexity":
        return f"cost-complexity pruning, ccp_alpha={report.options['ccp_alpha']:.6g}"
    return f"pruning: {report.title}"
