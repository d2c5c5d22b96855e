"""What ID3 and C4.5 share: opening the training rows, and growing on their codes."""

from __future__ import annotations

import functools
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from spinney._criteria import CRITERIA
from spinney._types import MAX_CODES
from spinney.estimators.checks import (
    check_classes,
    check_numbers,
    check_weights,
    count_copies,
    draw_seed,
    open_x,
    weigh_classes,
)
from spinney.estimators.cross_validated_pruning import Training
from spinney.estimators.pruning import PrunableTree
from spinney.estimators.training import code_rows, make_legend
from spinney.table.fixed_point import class_target, value_target
from spinney.table.ingest import Table, read_columns
from spinney.table.schema import encode
from spinney.tree.structure import Tree
from spinney.tree.textbook import TextbookParams, grow_textbook

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.table.columns import Columns

VISIT_SECONDS = 2e-5  # one row of one feature at one level, interpreted

TEXTBOOK_CONSTRAINTS: dict[str, list[Any]] = {
    "max_depth": [Interval(Integral, 1, None, closed="left"), None],
    "max_bins": [Interval(Integral, 2, MAX_CODES, closed="both")],
    "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
    "random_state": ["random_state"],
    "trace": ["boolean"],
}

ID3_CONSTRAINTS: dict[str, list[Any]] = {
    **TEXTBOOK_CONSTRAINTS,
    "min_samples_split": [
        Interval(Integral, 2, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="right"),
    ],
    "min_samples_leaf": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="neither"),
    ],
    "min_weight_fraction_leaf": [Interval(Real, 0.0, 0.5, closed="both")],
    "min_impurity_decrease": [Interval(Real, 0.0, None, closed="left")],
}


class TextbookTree(PrunableTree):
    """A single tree with a branch for each level; a subclass says by which rules it grows."""

    max_bins: int
    max_depth: int | None
    categorical_features: Any
    n_outputs_: int

    def _textbook_params(self, n_rows: int) -> TextbookParams:
        """The rules, as Python's own numbers."""
        raise NotImplementedError

    def _open_classes(self, X: Any, y: Any, sample_weight: Any, class_weight: Any) -> Training:
        """The training rows of a tree for classes; sets what they are."""
        self._validate_params()
        columns = open_x(self, X, is_fit=True)
        classes, codes = check_classes(self, y, columns.n_rows)
        weight = check_weights(sample_weight, columns.n_rows)
        times = count_copies(class_weight, weight)
        weight = weigh_classes(class_weight, classes, codes, weight)
        self.classes_, self.n_classes_ = classes, len(classes)
        return self._train(columns, codes, weight, times)

    def _open_numbers(self, X: Any, y: Any, sample_weight: Any) -> Training:
        """The training rows of a tree for numbers."""
        self._validate_params()
        columns = open_x(self, X, is_fit=True)
        numbers = check_numbers(self, y, columns.n_rows)
        return self._train(columns, numbers, check_weights(sample_weight, columns.n_rows))

    def _train(
        self,
        columns: Columns,
        truth: NDArray[Any],
        weight: NDArray[np.float64] | None,
        times: NDArray[np.int64] | None = None,
    ) -> Training:
        columns = replace(columns, read=functools.cache(columns.read))  # for pruning, too
        table = read_columns(columns, self.categorical_features)
        self._schema = schema = table.schema
        self.n_outputs_ = 1
        seed = draw_seed(self.random_state) if self._is_drawn() else 0
        read = functools.cache(lambda: encode(columns, schema))  # pruning sends the rows down, its report asks for them
        return Training(lambda some: self._grow(table, truth, some, times), read, truth, weight, seed, times)

    def _grow(
        self,
        table: Table,
        truth: NDArray[Any],
        weight: NDArray[np.float64] | None,
        times: NDArray[np.int64] | None,
    ) -> Tree:
        """Grow a tree on the rows that have a weight, not yet pruned."""
        rows = code_rows(table, weight, int(self.max_bins), VISIT_SECONDS, times)
        truth = truth if rows.keep is None else truth[rows.keep]
        params = self._textbook_params(rows.n_rows)
        classes = tuple(self.classes_.tolist()) if hasattr(self, "classes_") else None
        if classes is not None:
            target = class_target(truth, len(classes), rows.weights)
        else:
            target = value_target(truth, rows.weights, has_square=CRITERIA[params.criterion].needs_squares)
        tree = grow_textbook(rows.codes, target, rows.weights, params, rows.kernels, rows.times)
        return tree.with_legend(make_legend(table.schema, classes, rows.codes.has_missing, params.criterion))
