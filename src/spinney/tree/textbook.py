"""Grow textbook trees: ID3 and C4.5, a branch for each level of a category, missing values apart or in pieces.

`grow_textbook` grows; `Textbook` is what it grows with, and scans single nodes again, for traces:

    book = Textbook(codes, target, weights, params, kernels)
    tree = book.grow()
    entries = book.entries()                           # of the root: rows, and what they add to the sums
    figures, feature = book.scan(entries)              # `Figures` of the best test of each feature
    cuts = book.cuts(entries, 3)                       # every threshold of feature 3: `Cuts`
    branches = book.send(entries, tree, node=0)        # the entries of each child
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._criteria import CRITERIA
from spinney._elementary import log2_one
from spinney._jit import compiled
from spinney._types import (
    BIN_ROWS,
    BY_C45,
    BY_GAIN,
    BY_RATIO,
    CODE,
    CONTROL_SIZE,
    IS_CATEGORICAL,
    LOW,
    MISSING_CODE,
    MOST_BUCKETS,
    N_CODES,
    N_ENTRIES,
    N_MIXED,
    N_NODES,
    NEEDS_ROOM,
    OFFSET,
    ROW,
    SUM,
    SUMS_PER_ROW,
    TEXTBOOK_CLASS_ROWS,
    TEXTBOOK_STATE_SIZE,
    THRESHOLD,
    TOTALS_SIZE,
)
from spinney.kernels.common.structs import (
    Branches,
    Cuts,
    Entries,
    Figures,
    ScanScratch,
    TextbookNodes,
    TextbookScratch,
    TextbookSettings,
    TextbookStack,
    TextbookStats,
    TextbookTable,
    TextbookUnits,
)
from spinney.table.coding import Codes
from spinney.table.fixed_point import Target, Weights, scale, sum_bits, weight_unit
from spinney.tree.grow import FIRST_NODES, INTERPRETED_SECONDS
from spinney.tree.grow_params import GAIN_SLACK, entropy_table
from spinney.tree.interruptible import Driven
from spinney.tree.structure import Tree
from spinney.tree.workspace import MAX_SUMS, enlarge

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


# --- what the driver works with ---


def make_textbook_nodes(n: int, n_classes: int) -> TextbookNodes:
    """A tree without nodes, and room for n."""
    ints = np.zeros((7, n), np.int64)
    floats = np.zeros((2, n))
    return TextbookNodes._make([*ints, *floats, np.zeros((n if n_classes else 1, n_classes), SUM)])


def make_figures(n_features: int) -> Figures:
    """Figures of nothing yet."""
    floats, flags, ints = (np.zeros((k, n_features), kind) for k, kind in ((4, float), (2, bool), (5, np.int64)))
    return Figures(*floats, *flags, *ints)


def make_cuts(n: int) -> Cuts:
    """Room for n thresholds."""
    return Cuts._make([*np.zeros((3, n)), np.zeros(n, np.bool_), *np.zeros((2, n), np.int64)])


def make_branches(n_entries: int, n_branches: int) -> Branches:
    """Scratch for the branches of nodes with as many entries."""
    return Branches(np.empty(n_entries, np.int32), *np.zeros((4, n_branches), SUM))


def spare_of(entries: Entries) -> Entries:
    """Scratch as large as an arena."""
    return Entries(np.empty_like(entries.ids), np.empty_like(entries.addends))


def widen(entries: Entries, n: int) -> Entries:
    """The same entries with room for n."""
    return Entries(enlarge(entries.ids, n), enlarge(entries.addends, n))


def count_times(weights: Weights, times: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """How many rows each row counts as, (n_rows,), or (1,) where each is one; `times` where weights do not say it."""
    if weights.is_whole:
        return weights.values
    return np.ones(1, SUM) if times is None else times


def make_textbook_settings(
    params: TextbookParams, codes: Codes, target: Target, weights: Weights, shift: int, log_bits: int, n_all: int
) -> TextbookSettings:
    """Settle the parameters in the units of the sums; n_all: rows that the rows of the table count as."""
    features = codes.features
    is_category = features[IS_CATEGORICAL] != 0
    many_levels = MANY_LEVELS * n_all - 1e-6
    is_many = is_category & (features[N_CODES] >= many_levels)
    exponent = target.exponent + target.spread_exponent - target.bits + weights.bits
    gain_exponent = CRITERIA[params.criterion].power * exponent
    min_gain = -math.inf
    if params.min_impurity_decrease > 0.0:
        total = math.ldexp(weights.total, shift)
        min_gain = scale((params.min_impurity_decrease - GAIN_SLACK) * total, -gain_exponent)
    return TextbookSettings(
        criterion=CRITERIA[params.criterion].code,
        rule=RULES[params.rule],
        n_classes=target.n_classes,
        spreads_missing=params.missing == "every",
        max_depth=2**31 - 1 if params.max_depth is None else min(params.max_depth, 2**31 - 1),
        min_samples_split=params.min_samples_split,
        min_samples_leaf=params.min_samples_leaf,
        min_weight_leaf=math.ceil(params.min_weight_fraction_leaf * weights.total) << shift,
        is_centred=params.criterion == "squared_error" and weights.is_whole,
        shift=shift,
        is_all_many=bool(is_many.all()),
        weight_unit=search_unit(params, weights, shift),
        log_scale=math.ldexp(1.0, log_bits),
        square_unit=math.ldexp(1.0, 2 * target.bits - weights.bits - target.square_bits),
        min_weight=float(params.min_samples_leaf),
        many_levels=many_levels,
        min_gain=min_gain,
        truth_unit=math.ldexp(1.0, target.bits - target.spread_exponent - weights.bits),
    )


def search_unit(params: TextbookParams, weights: Weights, shift: int) -> float:
    """What a unit of weight counts in the search: C4.5 takes weights as the user gave them; others take shares."""
    return math.ldexp(weight_unit(weights) if params.rule == "c45" else math.ldexp(1.0, -weights.bits), -shift)


def logarithms(weights: Weights, unit: float) -> tuple[NDArray[np.int64], int]:
    """Table of fixed-point `k log2 k` for whole weights, (1,) where it would be large, and the bits of fixed point."""
    table, bits = entropy_table("entropy", weights)
    if len(table) > 1:
        return table, bits
    total = weights.total * unit
    most = max(abs(total * log2_one(total)), 1.0 if total > 0.25 else 0.0)
    return table, LOG_BITS - math.frexp(most + total)[1]


class Textbook(Driven):
    """A textbook tree under way: the driver's arrays, enlarged as it needs room.

    Parameters
    ----------
    codes, target, weights
        The table; nothing of it is changed.
    params : TextbookParams
    kernels : kernel modules
        Compiled or interpreted.
    times : int64 (n_rows,), optional
        How many rows each row counts as, where that is not its weight; see `fix_weights`.
    """

    def __init__(
        self,
        codes: Codes,
        target: Target,
        weights: Weights,
        params: TextbookParams,
        kernels: Any,
        times: NDArray[np.int64] | None = None,
    ) -> None:
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
        spreads = params.missing == "every" and bool(codes.has_missing.any())
        self.shift = 0
        if weights.is_whole and spreads:
            self.shift = min(MOST_SHIFT, 61 - int(weights.total).bit_length())
        unit = search_unit(params, weights, self.shift)
        xlogx, log_bits = logarithms(weights, math.ldexp(unit, self.shift))
        times = count_times(weights, times)
        n_all = n_rows if weights.is_unit or len(times) == 1 else int(times.sum())
        self.settings = make_textbook_settings(params, codes, target, weights, self.shift, log_bits, n_all)
        self.table = TextbookTable(
            columns=np.ascontiguousarray(codes.rows[:, : codes.n_features].T),
            times=times,
            truth=target.truth,
            features=codes.features,
            edges=codes.edges,
            xlogx=xlogx,
        )
        self.ids = np.arange(n_rows, dtype=ROW)
        self.root = Entries(self.ids, self.make_addends(spreads=spreads))
        self.control = np.zeros(CONTROL_SIZE, np.int64)
        self.allocate_scratch(n_rows)

    def make_addends(self, *, spreads: bool) -> NDArray[np.int64]:
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
        """Allocate what kernels only write to pass it on: `histogram` is zero between uses, the rest is arbitrary."""
        n_codes = self.features[N_CODES]
        is_category = self.features[IS_CATEGORICAL] != 0
        n_classes = self.target.n_classes
        most = int(n_codes.max(initial=1))
        n_sums = (most + 1) * 4
        if n_classes:
            sizes = (n_codes + 1) * (n_classes + 1)
            numeric = sizes[~is_category & (sizes <= SUMS_PER_ROW * n_rows)]
            n_sums = int(max(numeric.max(initial=1), sizes[is_category].max(initial=1)))
        if n_sums > MAX_SUMS:
            raise ValueError(
                f"a categorical feature and {n_classes} classes need a table of {n_sums} sums, more than {MAX_SUMS}; "
                "merge rare levels or rare classes"
            )
        self.most_branches = max(int(n_codes[is_category].max(initial=0)) + 1, 3)
        scan = ScanScratch(
            column=np.empty((n_rows, 1), CODE),
            keys=np.empty((2, n_rows), np.uint64),
            counts=np.empty(MOST_BUCKETS, np.int32),
            histogram=np.zeros(n_sums, SUM),
            totals=np.zeros(TOTALS_SIZE, SUM),
            bins=None if n_classes else np.empty((BIN_ROWS, max(most, 2)), SUM),
            sums=np.zeros((TEXTBOOK_CLASS_ROWS, n_classes), SUM) if n_classes else None,
            figures=make_figures(len(n_codes)),
        )
        self.scratch = TextbookScratch(scan, make_branches(n_rows, self.most_branches))

    # --- growing ---

    def grow(self) -> Tree:
        """Grow the tree."""
        n_nodes = FIRST_NODES + self.most_branches
        self.arena = Entries(self.root.ids.copy(), self.root.addends.copy())
        self.spare = spare_of(self.arena)
        self.nodes = make_textbook_nodes(n_nodes, self.target.n_classes)
        node, depth = np.zeros((2, n_nodes), np.int64)
        self.stack = TextbookStack(node, depth, np.zeros(TEXTBOOK_STATE_SIZE, np.int64))
        self.control[:] = 0
        self.run()
        return self.finish()

    def make_room(self) -> None:
        """Double whatever is full."""
        state, nodes, most = self.stack.state, self.nodes, self.most_branches
        n_entries = int(state[N_ENTRIES])
        if n_entries > len(self.arena.ids):
            n = n_entries + n_entries // 2
            self.arena = widen(self.arena, n)
            self.spare = spare_of(self.arena)
            scan = self.scratch.scan._replace(column=np.empty((n, 1), CODE))
            self.scratch = TextbookScratch(scan, make_branches(n, most))
        if int(state[N_NODES]) + most > len(nodes.test):
            n = 2 * len(nodes.test) + most
            nodes = TextbookNodes._make([*(enlarge(x, n) for x in nodes[:-1]), nodes.distributions])
            self.stack = TextbookStack(enlarge(self.stack.node, n), enlarge(self.stack.depth, n), state)
        distributions = nodes.distributions
        if self.target.n_classes and int(state[N_MIXED]) + most > len(distributions):
            wide = np.zeros((2 * len(distributions) + most, self.target.n_classes), SUM)
            wide[: len(distributions)] = distributions
            nodes = nodes._replace(distributions=wide)
        self.nodes = nodes

    def drive(self) -> int:
        """Run the driver to its end; interpreted kernels hand over to compiled ones if they take too long."""
        deadline = time.monotonic() + INTERPRETED_SECONDS
        while True:
            status = int(
                self.kernels.textbook.driver.grow(
                    self.table,
                    self.arena,
                    self.spare,
                    self.settings,
                    self.nodes,
                    self.stack,
                    self.scratch,
                    self.control,
                )
            )
            if status != NEEDS_ROOM:
                return status
            if time.monotonic() > deadline:
                self.kernels = compiled()
            self.make_room()

    def finish(self) -> Tree:
        """Keep what a tree needs."""
        n_nodes, n_classes = int(self.stack.state[N_NODES]), self.target.n_classes
        nodes = TextbookNodes._make([*(x[:n_nodes] for x in self.nodes[:-1]), self.nodes.distributions])
        unit = math.ldexp(weight_unit(self.weights), -self.shift)
        threshold = nodes.cut_value.copy()
        is_leaf = nodes.first_child == 0
        impurity = nodes.impurity.copy()
        impurity_exponent = 0
        if n_classes:
            threshold[is_leaf] = nodes.class_of[is_leaf]
        else:
            impurity_exponent = self.settle_values(threshold, impurity)
        tree = Tree(
            test=nodes.test.astype(np.uint32),
            first_child=nodes.first_child.astype(np.int32),
            threshold=threshold,
            subsets=np.zeros(0, np.uint64),
            n_rows=nodes.n_rows.astype(np.uint32),
            weight=nodes.weight.astype(np.float64) * unit,
            impurity=impurity,
            impurity_exponent=impurity_exponent,
            distributions=nodes.distributions[: int(self.stack.state[N_MIXED])].astype(np.float64) * unit,
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
        units = TextbookUnits(
            is_whole=weights.is_whole,
            centre=float(target.centre),
            stretch=math.ldexp(1.0, -target.spread_exponent),
            share=math.ldexp(1.0, -weights.bits),
            rough_scale=math.ldexp(1.0, sum_bits(math.ldexp(weights.total, -weights.bits))),
            criterion=CRITERIA[self.params.criterion].code,
            value_unit=math.ldexp(1.0, half),
            value_unit_2=math.ldexp(1.0, target.exponent - half),
        )
        out = TextbookStats(np.empty(len(threshold)), threshold, impurity)
        self.kernels.textbook.driver.settle_values(len(threshold), self.arena, target.truth, self.nodes, units, out)
        exponent = target.exponent + target.spread_exponent
        return CRITERIA[self.params.criterion].power * exponent

    # --- seeing why ---

    @property
    def gain_unit(self) -> float:
        """What a unit of gain in the kernels is worth to the user; infinite or 0 where a float cannot hold it."""
        if self.target.n_classes:
            return 1.0
        exponent = self.target.exponent + self.target.spread_exponent - self.target.bits + self.weights.bits
        return scale(1.0, CRITERIA[self.params.criterion].power * exponent)

    def entries(self) -> Entries:
        """The entries of the root: every row."""
        return self.root

    def scan(self, entries: Entries) -> tuple[Figures, int]:
        """Figures of the best test of every feature over the entries of a node, and the feature the grower takes.

        Returns
        -------
        figures : Figures
            Gains, ratios and weights are in the user's units.
        feature : int
            -1: none; least decrease, depth and size are not looked at here.
        """
        scratch = self.scratch.scan._replace(figures=make_figures(self.codes.n_features))
        feature = self.kernels.textbook.driver.scan(self.table, entries, self.settings, scratch, self.control)
        figures = scratch.figures
        unit = self.gain_unit
        weight = math.ldexp(weight_unit(self.weights), -self.shift)
        figures = figures._replace(
            gain=figures.gain * unit, ratio=figures.ratio * unit, missing_weight=figures.missing_weight * weight
        )
        return figures, int(feature)

    def cuts(self, entries: Entries, feature: int) -> Cuts:
        """All thresholds of a number over the entries of a node, in order; gains and ratios are in the user's units."""
        scratch = self.scratch.scan._replace(figures=make_figures(self.codes.n_features))
        cuts = make_cuts(int(self.features[N_CODES, feature]) + 1)
        self.kernels.textbook.driver.list_cuts(feature, self.table, entries, self.settings, scratch, cuts)
        cuts = Cuts._make(x[: int(scratch.figures.n_tried[feature])] for x in cuts)
        return cuts._replace(gain=cuts.gain * self.gain_unit, ratio=cuts.ratio * self.gain_unit)

    def send(self, entries: Entries, tree: Tree, node: int) -> list[Entries]:
        """The entries of each branch of a node of a tree that was grown on this table."""
        feature, n_branches = int(tree.feature[node]), int(tree.n_branches[node])
        code = self.table.columns[feature, entries.ids].astype(np.int32)
        branch = code - 1
        if tree.kind[node] == THRESHOLD:
            at, n_codes = int(self.features[OFFSET, feature]), int(self.features[N_CODES, feature])
            cut = np.searchsorted(self.codes.edges[LOW, at : at + n_codes], tree.threshold[node], side="right")
            branch = (code > cut).astype(np.int32)
        branch[code == MISSING_CODE] = tree.missing_branch[node]
        branches = self.scratch.branches._replace(of_entry=branch)
        kernels, times = self.kernels.textbook.branches, self.table.times
        parting = kernels.count_branches(n_branches, entries, times, branches)
        entries = widen(entries, int(parting.n_entries))
        kernels.fill_branches(parting, entries, spare_of(entries), times, branches)
        parts = [slice(int(b), int(b + n)) for b, n in zip(branches.begin, branches.n, strict=True)][:n_branches]
        return [Entries(entries.ids[part].copy(), entries.addends[:, part].copy()) for part in parts]


def grow_textbook(
    codes: Codes,
    target: Target,
    weights: Weights,
    params: TextbookParams,
    kernels: Any,
    times: NDArray[np.int64] | None = None,
) -> Tree:
    """Grow one textbook tree.

    Ties go to the first feature and the lowest threshold. With rules "gain" and "gain_ratio" a node is split as long
    as its rows differ, in target and in a feature, also without gain. Where a node has no missing values, those to come
    take the heaviest branch, the first among equals.

    Parameters
    ----------
    codes, target, weights
        The table: see `table.coding` and `table.fixed_point`. Nothing of it is changed.
    params : TextbookParams
    kernels : kernel modules
        Compiled or interpreted.
    """
    return Textbook(codes, target, weights, params, kernels, times).grow()
