"""Replay a finished tree: lead its rows through it again, and at each node look at every test it could have had.

The grower knows nothing of this. A node's rows come from the tree's own tests, the tables of codes and classes are
summed afresh, and what is found must agree with the tree: the rows of every node are compared with those it counted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._criteria import CRITERIA
from spinney._node_layout import unpack_test
from spinney._types import (
    CODE,
    HIGH,
    LEARNED,
    MULTIWAY,
    N_CODES,
    OFFSET,
    OWN_BRANCH,
    SUBSET,
    SURROGATE,
    THRESHOLD,
    WEIGHT,
)
from spinney.table.coding import Codes, row_stride
from spinney.table.fixed_point import class_target, fix_weights, scale, value_target, weight_unit
from spinney.tracing.candidates import NodeBins, NodeScan, SplitRules, Tests, put, sum_bins
from spinney.tracing.reasons import give_reasons, leaf_reasons, why_leaf
from spinney.tree.grow import grow_tree
from spinney.tree.grow_params import GrowParams
from spinney.tree.split_measures import LOG2_E, impurity, times_log

if TYPE_CHECKING:
    from spinney.kernels.common.structs import Entries
    from spinney.table.fixed_point import Weights
    from spinney.tree.split_measures import Sums
    from spinney.tree.structure import Tree
    from spinney.tree.textbook import Textbook, TextbookParams


class NotTheRowsError(ValueError):
    """The rows are not those that the tree was grown on."""


class TracedRows(NamedTuple):
    """The rows that a tree was grown on."""

    codes: Codes
    target: NDArray[np.float64]  # (n_rows,) class, or (target - centre) / 2**exponent
    weight: NDArray[np.float64]  # (n_rows,)
    n_classes: int
    centre: float = 0.0
    exponent: int = 0
    row_weight: float = 1.0  # of an independent row, see `table.fixed_point.weigh_row`


def class_rows(codes: Codes, classes: NDArray[np.int64], weights: Weights, n_classes: int) -> TracedRows:
    """Rows with a class."""
    held = spread_weights(weights, len(classes))
    return TracedRows(codes, classes.astype(np.float64), held, n_classes, row_weight=row_weight_of(weights))


def value_rows(codes: Codes, y: NDArray[np.float64], weights: Weights, *, has_origin: bool = False) -> TracedRows:
    """Rows with a number; targets are scaled, so that their squares neither overflow nor vanish.

    has_origin: they are counted from 0, for a criterion that asks for their ratios.
    """
    target = value_target(y, weights, has_square=False, has_origin=has_origin)
    exponent = target.exponent + target.spread_exponent
    centred = np.ldexp(target.truth - target.centre, -target.spread_exponent)
    centre = scale(target.centre, target.exponent)
    return TracedRows(codes, centred, spread_weights(weights, len(y)), 0, centre, exponent, row_weight_of(weights))


def spread_weights(weights: Weights, n_rows: int) -> NDArray[np.float64]:
    """Weight of each row, as the tree has them."""
    return np.broadcast_to(weights.values * weight_unit(weights), n_rows)


def row_weight_of(weights: Weights) -> float:
    """Weight of an independent row, as the tree has it."""
    return weights.row_weight * weight_unit(weights)


@dataclass(frozen=True)
class NodeRecord:
    """One node of the replay.

    Attributes
    ----------
    sums : float64 (n_sums,)
        Rows, then the weight of each class; or rows, weight, sum and sum of squares of the target less `centre`.
    centre : float
        Mean of the target at the node, in the units of `Rows`; 0 for classes.
    impurity : float
        By the tree's criterion, in the units of `Rows`.
    tests : list of Tests
        Those of each feature, in order; empty where none was looked for.
    chosen : (int, int) or None
        Feature, and position among its tests; None for a leaf.
    reason : str
        Why this test, or why none.
    reasons : list of list of str
        What speaks against each test; for the one chosen, why it won.
    """

    node: int
    depth: int
    sums: Sums
    centre: float
    impurity: float
    tests: list[Tests]
    chosen: tuple[int, int] | None
    reason: str
    reasons: list[list[str]]


class PendingNode(NamedTuple):
    """A node still to be visited, and its rows."""

    node: int
    depth: int
    ids: NDArray[np.int64]
    weight: NDArray[np.float64]
    bounds: tuple[float, float]
    used: frozenset[int]  # features that have a branch for each level above
    entries: Entries | None = None  # of a textbook tree: the same rows, or pieces of them


def textbook_rules(params: TextbookParams, weight: float, pruning: str = "") -> SplitRules:
    """The rules of a textbook tree; weight: of all rows."""
    return SplitRules(
        criterion=params.criterion,
        search="multiway",
        choice="decrease" if params.rule == "gain" else params.rule,
        missing=params.missing,
        max_depth=params.max_depth,
        min_samples_split=params.min_samples_split,
        min_samples_leaf=params.min_samples_leaf,
        min_weight_leaf=params.min_weight_fraction_leaf * weight,
        min_impurity_decrease=params.min_impurity_decrease,
        pruning=pruning,
    )


def replay(
    tree: Tree,
    rows: TracedRows,
    rules: SplitRules,
    kernels: Any,
    book: Textbook | None = None,
    *,
    max_depth: int | None = None,
    max_nodes: int | None = None,
) -> list[NodeRecord]:
    """Records of the nodes, each before those below it, branch by branch.

    Parameters
    ----------
    tree : Tree
    rows : Rows
        The rows that it was grown on, in any order.
    rules : Rules
        How it was grown.
    kernels : kernel modules
    book : Textbook, optional
        What a textbook tree was grown with: it leads pieces of rows down the tree and scans the nodes again.
    max_depth, max_nodes : int, optional
        Deepest node and most nodes that are looked at.
    """
    n_rows = len(rows.target)
    everywhere = (-math.inf, math.inf)
    entries = book.entries() if book else None
    stack = [PendingNode(0, 0, np.arange(n_rows), rows.weight, everywhere, frozenset(), entries)]
    records: list[NodeRecord] = []
    visit = Visit(tree, rows, rules, kernels, book)
    while stack and (max_nodes is None or len(records) < max_nodes):
        place = stack.pop()
        record, below = visit.look(place)
        records.append(record)
        if max_depth is None or place.depth < max_depth:
            stack.extend(reversed(below))
    return records


class Visit:
    """What is the same at every node of a replay."""

    def __init__(self, tree: Tree, rows: TracedRows, rules: SplitRules, kernels: Any, book: Textbook | None) -> None:
        self.tree = tree
        self.book = book
        self.rows = rows
        self.rules = rules
        self.kernels = kernels
        self.spreads = bool(tree.spreads_missing.any())
        self.root_weight = float(rows.weight.sum())

    def look(self, place: PendingNode) -> tuple[NodeRecord, list[PendingNode]]:
        """The record of a node and the places below it."""
        tree, rules, rows = self.tree, self.rules, self.rows
        node = place.node
        self.check(place)
        addends, centre = self.addends(place)
        sums = sum_addends(addends, rows.n_classes)
        bounds = (place.bounds[0] - centre, place.bounds[1] - centre)
        power = CRITERIA[rules.criterion].power
        exponent = power * rows.exponent
        scan = NodeScan(rules, rows.n_classes, sums, self.root_weight, bounds, exponent, rows.row_weight)
        is_pure = len(place.ids) < 2 or bool(np.ptp(rows.target[place.ids]) == 0.0)
        tests: list[Tests] = []
        chosen = average = None
        if not (is_pure and tree.is_leaf[node]):
            tests = [self.scan_feature(scan, place, addends, j) for j in range(tree.n_features)]
            average = self.settle(place, tests)
        if not tree.is_leaf[node]:
            feature = int(tree.feature[node])
            bins = self.list_bins(place, addends, feature)
            tests[feature], position = find_test(tree, node, tests[feature], bins, scan)
            chosen = (feature, position)
        before = float(impurity(sums, rules.criterion))
        if chosen is None:
            spread = scale(float(impurity(sums, "sdr")), rows.exponent) if rules.min_target_std > 0.0 else math.inf
            weight = float(place.weight.sum())
            reason = why_leaf(rules, tests, place.depth, len(place.ids), weight, spread, is_pure=is_pure)
            reasons = leaf_reasons(tests, reason)
        else:
            reason, reasons = give_reasons(rules, tests, chosen, self.name, average)
        record = NodeRecord(node, place.depth, sums, centre, before, tests, chosen, reason, reasons)
        return record, [] if chosen is None else self.descend(place, tests[chosen[0]])

    def name(self, feature: int) -> str:
        """What people call a feature."""
        legend = self.tree.legend
        return str(legend.features[feature]) if legend else f"x{feature}"

    def check(self, place: PendingNode) -> None:
        """Compare the rows with those that the tree counted."""
        node, n = place.node, len(place.ids)
        counted = int(self.tree.n_rows[node])
        weight, held = float(place.weight.sum()), float(self.tree.weight[node])
        if (n != counted and not self.spreads) or not math.isclose(weight, held, rel_tol=1e-6, abs_tol=1e-9):
            raise NotTheRowsError(
                f"these are not the rows that the tree was grown on: {n} rows of weight {weight:g} reach node {node}, "
                f"and it was grown on {counted} of weight {held:g}. Pass the X, y and sample_weight of fit."
            )

    def addends(self, place: PendingNode) -> tuple[Sums, float]:
        """What each row adds to sums beyond a count, and the centre taken off the targets."""
        target = self.rows.target[place.ids]
        if self.rows.n_classes:
            return np.stack([target, place.weight]), 0.0
        total = float(place.weight.sum())
        centre = float((target * place.weight).sum() / total) if total > 0.0 else 0.0
        off = target - centre
        addends = [place.weight, place.weight * off, place.weight * off * off]
        if self.rules.criterion == "poisson":
            addends += [place.weight * target, place.weight * times_log(target) / LOG2_E]
        return np.stack(addends), centre

    def list_bins(self, place: PendingNode, addends: Sums, feature: int) -> NodeBins:
        """The rows by code of a feature."""
        codes = self.rows.codes
        column = codes.rows[place.ids, feature].astype(np.int64)
        first, n_codes = int(codes.features[OFFSET, feature]), int(codes.features[N_CODES, feature])
        present, sums = sum_bins(column, addends, n_codes, self.rows.n_classes)
        missing = np.zeros(sums.shape[1])
        if len(present) and present[0] == 0:
            missing, present, sums = sums[0], present[1:], sums[1:]
        low, high = codes.edges[:, first : first + n_codes]
        return NodeBins(present, sums, missing, int(self.tree.n_levels[feature]), low, high)

    def scan_feature(self, scan: NodeScan, place: PendingNode, addends: Sums, feature: int) -> Tests:
        """The tests of a feature at a node."""
        if feature in place.used:
            return scan.no_test(feature, "used above")
        bins = self.list_bins(place, addends, feature)
        open_cuts = None
        if self.book is not None and place.entries is not None and self.rules.choice == "c45" and not bins.n_levels:
            cuts = self.book.cuts(place.entries, feature)
            open_cuts = cuts.last_below[cuts.is_valid]
        return scan.scan(feature, bins, lambda penalty: self.find_subset(place, feature, penalty), open_cuts)

    def settle(self, place: PendingNode, tests: list[Tests]) -> float | None:
        """Mark the best threshold of each feature as the grower's scan has it; return the average gain of C4.5."""
        if self.book is None or place.entries is None:
            return None
        figures, _ = self.book.scan(place.entries)
        for j, t in enumerate(tests):
            if t.kind == THRESHOLD and figures.is_valid[j]:
                at = np.flatnonzero(t.last == figures.last_below[j])
                tests[j] = replace(t, best=int(at[0])) if len(at) else t
        is_c45 = self.rules.choice == "c45"
        return float(figures.gain[figures.is_counted].mean()) if is_c45 and figures.is_counted.any() else None

    def find_subset(self, place: PendingNode, feature: int, cat_penalty: float) -> tuple[NDArray[np.bool_], int] | None:
        """The best subset of many levels for many classes, as the grower finds it: by growing one test."""
        codes, rules = self.rows.codes, self.rules
        first, n_codes = int(codes.features[OFFSET, feature]), int(codes.features[N_CODES, feature])
        ids, weight = place.ids, place.weight
        rows = np.zeros((len(ids), row_stride(1)), CODE)
        rows[:, 0] = codes.rows[ids, feature]
        features = codes.features[:, feature : feature + 1].copy()
        features[OFFSET] = 0
        column = Codes(
            rows, features, codes.edges[:, first : first + n_codes], codes.has_missing[feature : feature + 1]
        )
        weights = fix_weights(weight, len(ids))
        weights = weights._replace(row_weight=self.rows.row_weight / weight_unit(weights))
        target = class_target(self.rows.target[ids].astype(np.int64), self.rows.n_classes, weights)
        params = GrowParams(
            criterion=rules.criterion,
            missing={"branch": OWN_BRANCH, "surrogate": SURROGATE}.get(rules.missing, LEARNED),
            max_surrogates=0,
            max_depth=1,
            cat_penalty=cat_penalty,
            min_samples_leaf=rules.min_samples_leaf,
            min_weight_fraction_leaf=rules.min_weight_leaf / float(weight.sum()),
        )
        stump = grow_tree(column, target, weights, params, self.kernels)
        return None if stump.is_leaf[0] else (stump.subset(0), int(stump.missing_branch[0]))

    def descend(self, place: PendingNode, tests: Tests) -> list[PendingNode]:
        """The children of a node with their rows."""
        tree, node = self.tree, place.node
        used = place.used | {tests.feature} if tests.kind == MULTIWAY else place.used
        if self.book is not None:
            return self.send(place, used)
        branch = self.route(place)
        first, n_branches = int(tree.first_child[node]), int(tree.n_branches[node])
        bounds = self.bound(place, tests.feature, branch)
        below = []
        for b in range(n_branches):
            here = branch == b
            ids, weight = place.ids[here], place.weight[here]
            below.append(PendingNode(first + b, place.depth + 1, ids, weight, bounds[min(b, 2)], used))
        return below

    def send(self, place: PendingNode, used: frozenset[int]) -> list[PendingNode]:
        """The children of a node of a textbook tree, by the grower's own way with pieces of rows."""
        assert self.book is not None
        assert place.entries is not None
        unit = math.ldexp(weight_unit(self.book.weights), -self.book.shift)
        first = int(self.tree.first_child[place.node])
        below = []
        for b, entries in enumerate(self.book.send(place.entries, self.tree, place.node)):
            ids = entries.ids.astype(np.int64)
            weight = entries.addends[WEIGHT] * unit if len(entries.addends) > 1 else self.rows.weight[ids]
            below.append(PendingNode(first + b, place.depth + 1, ids, weight, place.bounds, used, entries))
        return below

    def route(self, place: PendingNode) -> NDArray[np.int64]:
        """Branch that each row takes at a node."""
        tree, node = self.tree, place.node
        branch = self.branch_of(place.ids, int(tree.test[node]), float(tree.threshold[node]))
        is_missing = branch < 0
        if is_missing.any() and tree.surrogates is not None:
            surrogates = tree.surrogates
            for s in range(int(surrogates.first[node]), int(surrogates.first[node + 1])):
                test = int(surrogates.test[s])
                answer = self.branch_of(place.ids[is_missing], test, float(surrogates.threshold[s]), is_surrogate=True)
                is_reversed = unpack_test(test).missing
                branch[is_missing] = np.where(answer >= 0, answer ^ is_reversed, -1)
                is_missing = branch < 0
        branch[is_missing] = tree.missing_branch[node]
        return branch

    def branch_of(
        self, ids: NDArray[np.int64], test: int, cut: float, *, is_surrogate: bool = False
    ) -> NDArray[np.int64]:
        """Branch of known values at a test; -1 for missing ones, and for levels that a surrogate does not know."""
        codes, tree = self.rows.codes, self.tree
        feature, _, kind = unpack_test(test)
        column = codes.rows[ids, feature].astype(np.int64)
        first, n_codes = int(codes.features[OFFSET, feature]), int(codes.features[N_CODES, feature])
        if kind == MULTIWAY:
            way = np.arange(n_codes)
        elif kind == SUBSET:
            way = np.where(tree.bitset(cut, n_codes), 0, 1)
            if is_surrogate:
                way[~tree.bitset(cut - (-n_codes // 64), n_codes)] = -1
        else:
            way = np.where(codes.edges[HIGH, first : first + n_codes] <= cut, 0, 1)
        return np.concatenate([[-1], way])[column]

    def bound(self, place: PendingNode, feature: int, branch: NDArray[np.int64]) -> list[tuple[float, float]]:
        """Bounds on the values of the branches, as `kernels.tree.driver.expand` sets them."""
        bounds = [place.bounds] * 3
        sign = 0 if self.rules.monotone is None else int(self.rules.monotone[feature])
        if sign != 0:
            target, weight = self.rows.target[place.ids], place.weight
            if self.tree.surrogates is not None:  # means of the rows that were known when the test was found
                branch = np.where(self.rows.codes.rows[place.ids, feature] > 0, branch, -1)
            values = [float((target * weight)[branch == b].sum() / weight[branch == b].sum()) for b in range(2)]
            between = (values[0] + values[1]) / 2.0
            lower, upper = place.bounds
            bounds[:2] = [(lower, between), (between, upper)][:: 1 if sign > 0 else -1]
        return bounds


def sum_addends(addends: Sums, n_classes: int) -> Sums:
    """Sums of all rows of a node."""
    if n_classes:
        return np.append(addends.shape[1], np.bincount(addends[0].astype(np.int64), addends[1], n_classes)).astype(
            float
        )
    return np.append(addends.shape[1], addends.sum(axis=1)).astype(float)


def find_test(tree: Tree, node: int, tests: Tests, bins: NodeBins, scan: NodeScan) -> tuple[Tests, int]:
    """Position of the tree's own test among those of its feature, put there where it is not.

    It can be absent: with a tie the grower may have sent missing rows the other way, and of many cuts one is kept.
    """
    kind = int(tree.kind[node])
    if kind == MULTIWAY:
        return tests, 0
    missing = int(tree.missing_branch[node])
    is_left = tree.subset(node)[bins.codes - 1] if kind == SUBSET else bins.high[bins.codes - 1] <= tree.threshold[node]
    branches, branch = scan.part_given(is_left, missing, bins)
    last = bins.codes[is_left][-1:] if is_left.any() else np.zeros(1, np.int64)
    cut = np.full(1, float(tree.threshold[node]) if kind == THRESHOLD else np.nan)
    if kind == SUBSET:
        roots = scan.roots_of(bins)[is_left].sum()[None]
        levels = np.zeros((1, bins.n_levels), np.bool_)
        levels[0, bins.codes[is_left] - 1] = True
        own = replace(scan.judge_subsets(tests.feature, branches, branch, bins, roots), levels=levels)
    else:
        own = scan.judge(
            tests.feature, kind, branches, cut, last, branch, unknown=scan.unknown_of(bins), penalty=tests.penalty
        )
    return put(tests, own)
