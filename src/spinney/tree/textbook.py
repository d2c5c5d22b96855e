"""Grow textbook trees: ID3 and C4.5, a branch for each level of a category, missing values apart or in pieces.

`grow_textbook` grows; `Textbook` is what it grows with, and scans single nodes again for those who want to see why:

    book = Textbook(codes, target, weights, params, kernels)
    tree = book.grow()
    entries = book.entries()                           # of the root: rows, and what they add to the sums
    figures, feature = book.scan(entries)              # one column per feature, rows as in `_types`: GAIN_FIGURE, ...
    cuts = book.cuts(entries, 3)                       # every cut of feature 3: CUT_LAST, CUT_GAIN, ...
    branches = book.send(entries, tree, node=0)        # the entries of each child
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._elementary import log2_one
from spinney._jit import compiled
from spinney._types import (
    BAG_BEGIN,
    BAG_N,
    BAG_ROWS,
    BY_C45,
    BY_GAIN,
    BY_RATIO,
    CELLS_PER_ROW,
    CLASS_OF,
    CONTROL_SIZE,
    CUT_GAIN,
    CUT_RATIO,
    CUT_ROWS,
    CUT_VALUE,
    FIGURE_ROWS,
    FIRST_CHILD,
    GAIN_FIGURE,
    GROUP_ROWS,
    IS_CATEGORICAL,
    LOW,
    MISSING_CODE,
    MISSING_WEIGHT,
    MOST_BUCKETS,
    N_CODES,
    N_ENTRIES,
    N_MIXED,
    N_NODES,
    N_ROWS,
    N_TRIED,
    NEEDS_ROOM,
    NODE_VALUE_ROWS,
    OFFSET,
    RATIO,
    ROW,
    SCORE,
    SUM,
    TEST,
    TEXTBOOK_CLASS_ROWS,
    TEXTBOOK_NODE_ROWS,
    TEXTBOOK_STATE_SIZE,
    THRESHOLD,
    TOTALS_SIZE,
    WEIGHT_OF,
)
from spinney.kernels.common.structs import TextbookSettings
from spinney.table.coding import Codes
from spinney.tree.drive import Driven
from spinney.tree.grow import CRITERIA, FIRST_NODES, GAIN_SLACK, INTERPRETED_SECONDS, MAX_CELLS, enlarge, entropy_table
from spinney.tree.structure import Tree
from spinney.tree.target import Target, Weights, scale, sum_bits, weight_unit

RULES = {"gain": BY_GAIN, "gain_ratio": BY_RATIO, "c45": BY_C45}
MOST_SHIFT = 48  # bits of a piece of a row: 3e-15 of it; a float64 holds it
LOG_BITS = 60  # of the largest w log2 w
MANY_LEVELS = 0.3  # C4.5: a category with as many levels per row is left out of the average gain


@dataclass(frozen=True)
class TextbookParams:
    """How to grow a textbook tree.

    Attributes
    ----------
    criterion : str
        Classes: "entropy", "gini"; numbers: "squared_error", "sdr".
    rule : {"gain", "gain_ratio", "c45"}
        Largest gain (ID3); largest gain ratio; or as C4.5 release 8: largest gain ratio among the tests of at least
        average gain, with its least weights, its penalty of numbers and its thresholds at values of the table.
    missing : {"branch", "every"}
        A missing value is a value of its own, with a branch of its own where a node has one; or a row with a missing
        value takes every branch, with pieces of its weight (classes only).
    min_samples_leaf : int
        Fewest rows of a branch that has any; rule "c45": least weight of at least two branches (J48's M).
    min_samples_split, max_depth, min_impurity_decrease
        As in CART.
    min_weight_fraction_leaf : float
        Least share of the total weight in a branch that has rows; not for rule "c45".
    """

    criterion: str
    rule: str = "gain"
    missing: str = "branch"
    max_depth: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_impurity_decrease: float = 0.0
    min_weight_fraction_leaf: float = 0.0


class Entries(NamedTuple):
    """The rows of a node, or pieces of them."""

    ids: NDArray[np.int32]  # (n_entries,) rows
    labels: NDArray[np.int64]  # (1 .. 3, n_entries): class or weighted target; weight (without: 1 each); square


def make_settings(
    params: TextbookParams, codes: Codes, target: Target, weights: Weights, shift: int, log_bits: int
) -> TextbookSettings:
    """Settle the parameters in the units of the sums."""
    features = codes.features
    is_category = features[IS_CATEGORICAL] != 0
    n_all = weights.total if weights.is_whole else len(codes.rows)
    many_levels = MANY_LEVELS * n_all - 1e-6
    is_many = is_category & (features[N_CODES] >= many_levels)
    exponent = target.exponent + target.spread_exponent - target.bits + weights.bits
    gain_exponent = 0 if target.n_classes else (1 if params.criterion == "sdr" else 2) * exponent
    min_gain = -math.inf
    if params.min_impurity_decrease > 0.0:
        total = math.ldexp(weights.total, shift)
        min_gain = scale((params.min_impurity_decrease - GAIN_SLACK) * total, -gain_exponent)
    return TextbookSettings(
        criterion=CRITERIA[params.criterion],
        rule=RULES[params.rule],
        n_classes=target.n_classes,
        spreads_missing=int(params.missing == "every"),
        max_depth=2**31 - 1 if params.max_depth is None else min(params.max_depth, 2**31 - 1),
        min_samples_split=params.min_samples_split,
        min_samples_leaf=params.min_samples_leaf,
        min_weight_leaf=math.ceil(params.min_weight_fraction_leaf * weights.total) << shift,
        is_centred=int(params.criterion == "squared_error" and weights.is_whole),
        shift=shift,
        is_all_many=int(is_many.all()),
        weight_unit=search_unit(params, weights, shift),
        log_scale=math.ldexp(1.0, log_bits),
        square_unit=math.ldexp(1.0, 2 * target.bits - weights.bits - target.square_bits),
        min_weight=float(params.min_samples_leaf),
        many_levels=many_levels,
        min_gain=min_gain,
        truth_unit=math.ldexp(1.0, target.bits - target.spread_exponent - weights.bits),
    )


def search_unit(params: TextbookParams, weights: Weights, shift: int) -> float:
    """What a unit of weight counts in the search: C4.5 asks for weights as the user gave them; others take shares."""
    return math.ldexp(weight_unit(weights) if params.rule == "c45" else math.ldexp(1.0, -weights.bits), -shift)


def logarithms(weights: Weights, unit: float) -> tuple[NDArray[np.int64], int]:
    """Table of fixed-point k log2 k for whole weights, (1,) where it would be large, and the bits of fixed point."""
    table, bits = entropy_table("entropy", weights)
    if len(table) > 1:
        return table, bits
    total = weights.total * unit
    most = max(abs(total * log2_one(total)), 1.0 if total > 0.25 else 0.0)
    return table, LOG_BITS - math.frexp(most + total)[1]


class Textbook(Driven):
    """A textbook tree under way: the driver's arrays, enlarged as it asks for room.

    Parameters
    ----------
    codes, target, weights
        The table; nothing of it is changed.
    params : TextbookParams
    kernels : kernel modules
        Compiled or interpreted.
    """

    def __init__(self, codes: Codes, target: Target, weights: Weights, params: TextbookParams, kernels: Any) -> None:
        if params.missing == "every" and not target.n_classes:
            raise ValueError("missing='every' is for classes: rows of a regression tree take one branch")
        if params.rule == "c45" and (params.criterion != "entropy" or params.missing != "every"):
            raise ValueError("rule='c45' needs criterion='entropy' and missing='every'")
        self.kernels = kernels
        self.params = params
        self.target = target
        self.weights = weights
        self.codes = codes
        self.features = codes.features
        n_rows = len(codes.rows)
        self.columns = np.ascontiguousarray(codes.rows[:, : codes.n_features].T)
        spreads = params.missing == "every" and bool(codes.has_missing.any())
        self.shift = 0
        if weights.is_whole and spreads:
            self.shift = min(MOST_SHIFT, 61 - int(weights.total).bit_length())
        unit = search_unit(params, weights, self.shift)
        self.xlogx, log_bits = logarithms(weights, math.ldexp(unit, self.shift))
        self.settings = make_settings(params, codes, target, weights, self.shift, log_bits)
        self.times = weights.values if weights.is_whole else np.ones(1, SUM)
        self.root = Entries(np.arange(n_rows, dtype=ROW), self.make_labels(spreads=spreads))
        self.control = np.zeros(CONTROL_SIZE, np.int64)
        self.allocate_scratch(n_rows)

    def make_labels(self, *, spreads: bool) -> NDArray[np.int64]:
        """What each row adds to the sums."""
        target, weights = self.target, self.weights
        n_rows = len(target.truth)
        values = target.truth.astype(SUM) if target.n_classes else target.values
        weight = np.broadcast_to(weights.values << self.shift, n_rows)
        if len(target.squares) > 1:
            return np.stack([values, weight, target.squares])
        if weights.is_unit and not spreads:
            return values.reshape(1, n_rows).copy()
        return np.stack([values, weight])

    def allocate_scratch(self, n_rows: int) -> None:
        """Allocate what the kernels only write to pass it on: `cells` are zero between uses, the rest is arbitrary."""
        n_codes = self.features[N_CODES]
        is_category = self.features[IS_CATEGORICAL] != 0
        n_classes = self.target.n_classes
        most = int(n_codes.max(initial=1))
        self.groups = None if n_classes else np.empty((GROUP_ROWS, max(most, 2)), SUM)
        self.sums = np.zeros((TEXTBOOK_CLASS_ROWS, n_classes), SUM) if n_classes else None
        n_cells = (most + 1) * 4
        if n_classes:
            sizes = (n_codes + 1) * (n_classes + 1)
            numeric = sizes[~is_category & (sizes <= CELLS_PER_ROW * n_rows)]
            n_cells = int(max(numeric.max(initial=1), sizes[is_category].max(initial=1)))
        if n_cells > MAX_CELLS:
            raise ValueError(
                f"a categorical feature and {n_classes} classes need a table of {n_cells} sums, more than {MAX_CELLS}; "
                "merge rare levels or rare classes"
            )
        self.cells = np.zeros(n_cells, SUM)
        self.totals = np.zeros(TOTALS_SIZE, SUM)
        self.keys = np.empty((2, n_rows), np.uint64)
        self.counts = np.empty(MOST_BUCKETS, np.int32)
        self.column, self.branch = np.empty((n_rows, 1), np.uint16), np.empty(n_rows, np.int32)
        self.figures = np.zeros((FIGURE_ROWS, len(n_codes)))
        self.bags = np.zeros((BAG_ROWS, max(int(n_codes[is_category].max(initial=0)) + 1, 3)), SUM)

    # --- growing ---

    def grow(self) -> Tree:
        """Grow the tree."""
        n_nodes = FIRST_NODES + self.bags.shape[1]
        self.ids, self.labels = self.root.ids.copy(), self.root.labels.copy()
        self.spare = Entries(np.empty_like(self.ids), np.empty_like(self.labels))
        self.nodes = np.zeros((TEXTBOOK_NODE_ROWS, n_nodes), np.int64)
        self.node_values = np.zeros((NODE_VALUE_ROWS, n_nodes))
        self.stack = np.zeros((2, n_nodes), np.int64)
        self.distributions = np.zeros((n_nodes if self.target.n_classes else 1, self.target.n_classes), SUM)
        self.state = np.zeros(TEXTBOOK_STATE_SIZE, np.int64)
        self.control[:] = 0
        self.run()
        return self.finish()

    def make_room(self) -> None:
        """Double whatever is full."""
        n_entries, most = int(self.state[N_ENTRIES]), self.bags.shape[1]
        if n_entries > len(self.ids):
            n = n_entries + n_entries // 2
            self.ids, self.labels = enlarge(self.ids, n), enlarge(self.labels, n)
            self.spare = Entries(np.empty(n, ROW), np.empty((len(self.labels), n), SUM))
            self.column, self.branch = np.empty((n, 1), np.uint16), np.empty(n, np.int32)
        if int(self.state[N_NODES]) + most > self.nodes.shape[1]:
            n = 2 * self.nodes.shape[1] + most
            self.nodes, self.node_values = enlarge(self.nodes, n), enlarge(self.node_values, n)
            self.stack = enlarge(self.stack, n)
        if self.target.n_classes and int(self.state[N_MIXED]) + most > len(self.distributions):
            new = np.zeros((2 * len(self.distributions) + most, self.target.n_classes), SUM)
            new[: len(self.distributions)] = self.distributions
            self.distributions = new

    def drive(self) -> int:
        """Run the driver to its end; interpreted kernels hand over to compiled ones if they take too long."""
        deadline = time.monotonic() + INTERPRETED_SECONDS
        while True:
            status = int(
                self.kernels.textbook.driver.grow(
                    self.columns, self.ids, self.labels, self.times, self.target.truth, self.features,
                    self.codes.edges, self.settings, self.xlogx, self.column, self.keys, self.counts, self.cells,
                    self.groups, self.sums, self.totals, self.figures, self.branch, self.bags, *self.spare, self.nodes,
                    self.node_values, self.distributions, self.stack, self.state, self.control,
                )
            )  # fmt: skip
            if status != NEEDS_ROOM:
                return status
            if time.monotonic() > deadline:
                self.kernels = compiled()
            self.make_room()

    def finish(self) -> Tree:
        """Keep what a tree needs."""
        n_nodes, n_classes = int(self.state[N_NODES]), self.target.n_classes
        nodes = self.nodes[:, :n_nodes]
        unit = math.ldexp(weight_unit(self.weights), -self.shift)
        threshold = self.node_values[CUT_VALUE, :n_nodes].copy()
        is_leaf = nodes[FIRST_CHILD] == 0
        impurity = self.node_values[SCORE, :n_nodes].copy()
        impurity_exponent = 0
        if n_classes:
            threshold[is_leaf] = nodes[CLASS_OF, is_leaf]
        else:
            impurity_exponent = self.settle_values(threshold, impurity)
        tree = Tree(
            test=nodes[TEST].astype(np.uint32),
            first_child=nodes[FIRST_CHILD].astype(np.int32),
            threshold=threshold,
            subsets=np.zeros(0, np.uint64),
            n_rows=nodes[N_ROWS].astype(np.uint32),
            weight=nodes[WEIGHT_OF] * unit,
            impurity=impurity,
            impurity_exponent=impurity_exponent,
            distributions=self.distributions[: int(self.state[N_MIXED])].astype(np.float64) * unit,
            n_classes=n_classes,
            n_levels=np.where(self.features[IS_CATEGORICAL] != 0, self.features[N_CODES], 0).astype(np.int32),
        )
        if not n_classes and tree.is_empty.any():
            threshold[tree.is_empty] = tree.values()[tree.parent[tree.is_empty]]
        return tree

    def settle_values(self, threshold: NDArray[np.float64], impurity: NDArray[np.float64]) -> int:
        """Write values of leaves and impurities of all nodes; return the power of two that impurities are given in."""
        target, weights = self.target, self.weights
        half = target.exponent // 2
        means = np.empty(len(threshold))
        self.kernels.textbook.driver.settle_values(
            self.labels, self.ids, target.truth, self.nodes, len(threshold), CRITERIA[self.params.criterion],
            int(weights.is_whole), float(target.centre), math.ldexp(1.0, -target.spread_exponent),
            math.ldexp(1.0, -weights.bits), math.ldexp(1.0, sum_bits(math.ldexp(weights.total, -weights.bits))),
            math.ldexp(1.0, half), math.ldexp(1.0, target.exponent - half), means, threshold, impurity,
        )  # fmt: skip
        exponent = target.exponent + target.spread_exponent
        return exponent if self.params.criterion == "sdr" else 2 * exponent

    # --- seeing why ---

    @property
    def gain_unit(self) -> float:
        """What a unit of gain in the kernels is worth to the user; infinite or 0 where a float cannot hold it."""
        if self.target.n_classes:
            return 1.0
        exponent = self.target.exponent + self.target.spread_exponent - self.target.bits + self.weights.bits
        return scale(1.0, exponent if self.params.criterion == "sdr" else 2 * exponent)

    def entries(self) -> Entries:
        """The entries of the root: every row."""
        return self.root

    def scan(self, entries: Entries) -> tuple[NDArray[np.float64], int]:
        """Figures of the best test of every feature over the entries of a node, and the feature the grower takes.

        Returns
        -------
        figures : float64 (FIGURE_ROWS, n_features)
            Rows as named in `_types`: GAIN_FIGURE (C4.5: less the penalty of numbers), SPLIT_INFO, RATIO, IS_VALID (may
            be chosen), IS_COUNTED (enters C4.5's average), LAST_BELOW, FIRST_ABOVE (codes around the
            cut), N_CUTS, N_TRIED, N_FULL, MISSING_WEIGHT. Gains are in the user's units.
        feature : int
            -1: none; least decrease, depth and size are not looked at here.
        """
        figures = np.zeros_like(self.figures)
        feature = self.kernels.textbook.driver.scan(
            self.columns, entries.ids, entries.labels, self.times, self.target.truth, self.features, self.codes.edges,
            self.settings, self.xlogx, self.column, self.keys, self.counts, self.cells, self.groups, self.sums,
            self.totals, figures, self.control,
        )  # fmt: skip
        figures[[GAIN_FIGURE, RATIO]] *= self.gain_unit
        figures[MISSING_WEIGHT] *= math.ldexp(weight_unit(self.weights), -self.shift)
        return figures, int(feature)

    def cuts(self, entries: Entries, feature: int) -> NDArray[np.float64]:
        """Every cut of a number over the entries of a node, shape (CUT_ROWS, n_cuts), in order.

        Rows as named in `_types`: CUT_LAST and CUT_FIRST (codes around it; the second is -1 where it sets known rows
        against missing ones), CUT_GAIN (without C4.5's penalty), CUT_SPLIT_INFO, CUT_RATIO, CUT_IS_VALID.
        """
        figures = np.zeros_like(self.figures)
        cuts = np.zeros((CUT_ROWS, int(self.features[N_CODES, feature]) + 1))
        self.kernels.textbook.driver.list_cuts(
            self.columns, entries.ids, entries.labels, self.times, self.target.truth, feature, self.features,
            self.codes.edges, self.settings, self.xlogx, self.column, self.keys, self.counts, self.cells, self.groups,
            self.sums, self.totals, figures, cuts,
        )  # fmt: skip
        cuts[[CUT_GAIN, CUT_RATIO]] *= self.gain_unit
        return cuts[:, : int(figures[N_TRIED, feature])]

    def send(self, entries: Entries, tree: Tree, node: int) -> list[Entries]:
        """The entries of each branch of a node of a tree that was grown on this table."""
        feature, n_branches = int(tree.feature[node]), int(tree.n_branches[node])
        code = self.columns[feature, entries.ids].astype(np.int32)
        branch = code - 1
        if tree.kind[node] == THRESHOLD:
            at, n_codes = int(self.features[OFFSET, feature]), int(self.features[N_CODES, feature])
            cut = np.searchsorted(self.codes.edges[LOW, at : at + n_codes], tree.threshold[node], side="right")
            branch = (code > cut).astype(np.int32)
        branch[code == MISSING_CODE] = tree.missing_branch[node]
        n_entries, heaviest, known = self.kernels.textbook.branches.count_bags(
            branch, entries.ids, entries.labels, self.times, n_branches, self.bags
        )
        ids, labels = enlarge(entries.ids, n_entries), enlarge(entries.labels, n_entries)
        self.kernels.textbook.branches.fill_bags(
            branch, ids, labels, self.times, n_branches, n_entries, heaviest, known, self.bags, np.empty_like(ids),
            np.empty_like(labels),
        )  # fmt: skip
        bags = [slice(int(b), int(b + n)) for b, n in zip(*self.bags[[BAG_BEGIN, BAG_N], :n_branches], strict=True)]
        return [Entries(ids[bag].copy(), labels[:, bag].copy()) for bag in bags]


def grow_textbook(codes: Codes, target: Target, weights: Weights, params: TextbookParams, kernels: Any) -> Tree:
    """Grow one textbook tree.

    Ties go to the first feature and the lowest threshold. With rules "gain" and "gain_ratio" a node is split as long
    as its rows differ, in target and in a feature, also without gain. Where a node has no missing values, those to come
    take the heaviest branch, the first among equals.

    Parameters
    ----------
    codes, target, weights
        The table: see `table.coding` and `tree.target`. Nothing of it is changed.
    params : TextbookParams
    kernels : kernel modules
        Compiled or interpreted.
    """
    return Textbook(codes, target, weights, params, kernels).grow()
