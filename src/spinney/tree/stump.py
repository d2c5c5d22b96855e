"""Grow trees of one test on rows that were sorted once, for other weights each time; see `kernels.tree.stump`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._types import (
    CLASS_ROWS,
    CONTROL_STOP,
    DONE,
    GROUP_ROWS,
    IS_CATEGORICAL,
    MISSING_CODE,
    MOMENTS,
    N_CODES,
    N_NODES,
    NODE_ROWS,
    NODE_VALUE_ROWS,
    ROW,
    STOPPED,
    SUM,
    SURROGATE,
    TARGET,
    TOTALS_SIZE,
    W_ALL,
    WEIGHT,
)
from spinney.tree.grow import GrowParams, Growth

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.table.coding import Codes
    from spinney.tree.target import Target, Weights

MOST_CELLS = 1 << 28  # of an order: 1 GB
CELLS_AT_ONCE = 1 << 24  # that a kernel looks at before it can be stopped: some 50 ms
MOST_NODES = 4


class Order(NamedTuple):
    """The rows of a table by the codes of each feature."""

    rows: NDArray[np.int32]  # (n_features, n_rows); the last row of each code as its complement, missing rows first
    n_missing: NDArray[np.int64]  # (n_features,)


def sort_codes(codes: Codes) -> Order:
    """Sort the rows of a table by each feature; rows of one code stay in their order."""
    n_rows, n_features = len(codes.rows), codes.n_features
    order = np.empty((n_features, n_rows), ROW)
    n_missing = np.empty(n_features, np.int64)
    is_last = np.ones(n_rows, np.bool_)
    for j in range(n_features):
        column = np.ascontiguousarray(codes.rows[:, j])
        rows = np.argsort(column, kind="stable")
        ordered = column[rows]
        np.not_equal(ordered[1:], ordered[:-1], out=is_last[:-1])
        order[j] = np.where(is_last, ~rows, rows)
        n_missing[j] = np.count_nonzero(column == MISSING_CODE)
    return Order(order, n_missing)


def is_stump(params: GrowParams, codes: Codes, monotone: NDArray[np.int8] | None) -> bool:
    """Whether trees by these parameters have one test that `StumpGrowth` finds: no draws, no categories."""
    return bool(
        params.max_depth == 1
        and params.max_leaf_nodes is None
        and params.max_features is None
        and params.criterion not in {"sdr", "gain_ratio"}
        and params.missing != SURROGATE
        and params.min_target_std == 0.0
        and not (params.has_random_ties or params.has_random_tests or params.shuffles)
        and (monotone is None or not monotone.any())
        and not codes.features[IS_CATEGORICAL].any()
        and codes.n_features * len(codes.rows) <= MOST_CELLS
    )


class StumpGrowth(Growth):
    """A tree of one test under way; the codes stay as they are.

    Parameters
    ----------
    codes : Codes
    order : Order
        Of the same rows.
    target : Target
    weights : Weights
        Not all 1: labels are (target, weight).
    params : GrowParams
        See `is_stump`.
    kernels : kernel modules
    """

    def __init__(
        self, codes: Codes, order: Order, target: Target, weights: Weights, params: GrowParams, kernels: Any
    ) -> None:
        super().__init__(codes, target, weights, params, kernels)
        self.order = order

    def allocate_scratch(self, n_rows: int) -> None:
        """Allocate far less than a tree of any depth needs."""
        is_moments = self.target.family == MOMENTS
        self.nodes = np.zeros((NODE_ROWS, MOST_NODES), np.int64)
        self.node_values = np.zeros((NODE_VALUE_ROWS, MOST_NODES))
        self.pairs = np.empty((n_rows, 2), SUM)
        self.pairs[:, TARGET] = self.labels[TARGET]
        self.pairs[:, WEIGHT] = self.labels[WEIGHT]
        n_groups = int(self.features[N_CODES].max(initial=1)) if is_moments else 1
        self.groups = np.empty((GROUP_ROWS, n_groups), SUM)
        self.totals = np.zeros(TOTALS_SIZE, SUM)
        self.sums = None if is_moments else np.zeros((CLASS_ROWS, self.settings.n_classes), SUM)

    def drive(self) -> int:
        """Search the rows and split them."""
        k, settings = self.kernels.tree.stump, self.settings
        truth = self.target.truth
        score, best, bound, n_present = k.open_root(self.labels, settings, self.totals, self.sums, self.xlogx)
        feature, at, missing = -1, -1, -1
        n_rows, node_score = len(truth), score
        has_room = (
            n_rows >= settings.min_samples_split
            and n_rows >= 2 * settings.min_samples_leaf
            and self.totals[W_ALL] >= 2 * settings.min_weight_leaf
            and not bool(np.all(truth == truth[0]))
        )
        n_at_once = max(CELLS_AT_ONCE // n_rows, 1)
        for first in range(0, self.features.shape[1] if has_room else 0, n_at_once):
            if self.control[CONTROL_STOP]:
                return STOPPED
            last = min(first + n_at_once, self.features.shape[1])
            args = self.order.rows, self.order.n_missing, self.pairs, first, last, settings
            if self.sums is None:
                found = k.search_moments(*args, self.groups, self.totals, self.xlogx, best, bound)
            else:
                found = k.search_classes(*args, self.sums, self.totals, n_present, self.xlogx, best, bound)
            best = found[0]
            if found[1] >= 0:
                feature, at, missing = found[1:]
        if feature >= 0 and best - node_score < settings.min_gain:
            feature = -1
        self.state[N_NODES] = k.split_root(
            self.codes.rows, self.features, self.codes.edges, self.order.rows, self.order.n_missing, self.pairs,
            feature, at, missing, node_score, self.ids, self.labels, self.nodes, self.node_values,
        )  # fmt: skip
        return DONE
