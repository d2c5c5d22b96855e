"""Grow trees of one test on rows that were sorted once, for other weights each time; see `kernels.tree.stump`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._criteria import GAIN_RATIO
from spinney._types import (
    BIN_ROWS,
    CLASS_ROWS,
    CONTROL_STOP,
    DONE,
    IS_CATEGORICAL,
    MISSING_CODE,
    MOMENTS,
    N_CODES,
    N_NODES,
    ROW,
    STOPPED,
    SUM,
    SURROGATE,
    TARGET,
    TOTALS_SIZE,
    W_ALL,
    WEIGHT,
)
from spinney.kernels.common.structs import Order, RootSplit, Scratch, StumpClassScratch, StumpScratch, Targets
from spinney.tree.grow import Growth
from spinney.tree.grow_params import GrowParams
from spinney.tree.workspace import make_frontier, make_nodes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.table.coding import Codes
    from spinney.table.fixed_point import Target, Weights

MOST_CELLS = 1 << 28  # of an order: 1 GB
CELLS_AT_ONCE = 1 << 24  # that a kernel looks at before it can be stopped: some 50 ms
MOST_NODES = 4


def sort_codes(codes: Codes) -> Order:
    """Sort the rows of a table by each feature; rows of one code stay in their order. Pairs are left to each tree."""
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
    return Order(order, n_missing, np.empty((0, 2), SUM))


def is_stump(params: GrowParams, codes: Codes, monotone: NDArray[np.int8] | None) -> bool:
    """Whether trees by these parameters have one test that `StumpGrowth` finds: no draws, no categories."""
    return bool(
        params.max_depth == 1
        and params.max_leaf_nodes is None
        and params.max_features is None
        and params.criterion not in (GAIN_RATIO, "sdr", "poisson", "absolute_error")
        and params.missing != SURROGATE
        and params.min_target_std == 0.0
        and not (params.has_random_ties or params.has_random_tests or params.has_random_feature_order)
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
        Not all 1: addends are (target, weight).
    params : GrowParams
        See `is_stump`.
    kernels : kernel modules
    """

    def __init__(
        self, codes: Codes, order: Order, target: Target, weights: Weights, params: GrowParams, kernels: Any
    ) -> None:
        self.order = order
        super().__init__(codes, target, weights, params, kernels)

    def allocate(self, codes: Codes, room: int) -> None:
        """Allocate far less than a tree of any depth needs."""
        del room
        self.codes = codes.rows
        self.scratch = Scratch._make([None] * len(Scratch._fields))  # `search` has its own
        self.nodes = make_nodes(MOST_NODES, 0)
        self.frontier = make_frontier(0)
        pairs = np.empty((len(codes.rows), 2), SUM)
        pairs[:, TARGET] = self.addends[TARGET]
        pairs[:, WEIGHT] = self.addends[WEIGHT]
        self.order = self.order._replace(pairs=pairs)

    def drive(self) -> int:
        """Search the rows and split them."""
        k, settings, table = self.kernels.tree.stump, self.settings, self.table
        totals = np.zeros(TOTALS_SIZE, SUM)
        is_moments = self.target.family == MOMENTS
        sums = None if is_moments else np.zeros((CLASS_ROWS, settings.n_classes), SUM)
        score, lowest, bound, n_present = k.open_root(self.addends, settings, table.xlogx, totals, sums)
        truth, n_features = table.truth, self.features.shape[1]
        has_room = (
            len(truth) >= settings.min_samples_split
            and len(truth) >= 2 * settings.min_samples_leaf
            and totals[W_ALL] >= 2 * settings.min_weight_leaf
            and not bool(np.all(truth == truth[0]))
        )
        search: Any
        scratch: StumpScratch | StumpClassScratch
        if sums is None:
            n_bins = int(self.features[N_CODES].max(initial=1))
            search, scratch = k.search_moments, StumpScratch(np.empty((BIN_ROWS, n_bins), SUM), totals)
        else:
            search, scratch = k.search_classes, StumpClassScratch(sums, totals, n_present)
        split = RootSplit(lowest, -1, -1, -1)
        n_at_once = max(CELLS_AT_ONCE // len(truth), 1)
        for first in range(0, n_features if has_room else 0, n_at_once):
            if self.control[CONTROL_STOP]:
                return STOPPED
            last = min(first + n_at_once, n_features)
            split = search(split, bound, first, last, self.order, settings, table, scratch)
        if split.feature >= 0 and split.score - score < settings.min_gain:
            split = split._replace(feature=-1)
        targets = Targets(self.addends, self.ids, truth)
        self.state[N_NODES] = k.split_root(split, score, self.codes, self.order, table, targets, self.nodes)
        return DONE
