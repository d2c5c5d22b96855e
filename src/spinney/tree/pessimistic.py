"""Pessimistic pruning: C4.5 release 8 (Quinlan 1993, chapter 4), as Weka's J48 has it.

A leaf with n rows and e errors is expected to make `e + added_errors(n, e)` of them: the upper limit of a confidence
interval instead of the rate that the training rows show. From the bottom up, a test is replaced by a leaf, or by its
heaviest branch (raising), where that promises no more errors than the test, up to 0.1 errors.
"""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._criteria import CLASS_CRITERIA
from spinney._jit import interpreted, kernels
from spinney._types import CONTROL_SIZE, LEAF, N_ENTRIES, N_RAISED, NEEDS_ROOM, ROW, SUM, TEXTBOOK_STATE_SIZE
from spinney.kernels.common.structs import (
    Entries,
    PruneFrames,
    PruneNodes,
    PruneScratch,
    PruneSettings,
    PruneStack,
    PruneTable,
)
from spinney.table.fixed_point import fix_weights, weight_unit
from spinney.tree.interruptible import Driven
from spinney.tree.reduced_error import require_rows
from spinney.tree.split_measures import class_impurity
from spinney.tree.subtree import cut_mask, cut_nodes, find_tiers, heaviest_classes, pack_classes
from spinney.tree.textbook import MOST_SHIFT, count_times, make_branches, spare_of, widen

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.tree.structure import Tree

COLLAPSE_SLACK = 1e-3  # errors that a subtree must save on the training rows
STEP_SECONDS = 2e-5  # a row at a test, interpreted; most are sent down several times
# C4.5 release 8, stats.c: quantiles of the normal distribution, interpolated linearly
TABLE_CONFIDENCES = (0.0, 0.001, 0.005, 0.01, 0.05, 0.10, 0.20, 0.40, 1.00)
TABLE_QUANTILES = (4.0, 3.09, 2.58, 2.33, 1.65, 1.28, 0.84, 0.25, 0.00)


def normal_quantile(confidence: float) -> float:
    """Quantile of 1 - confidence of the normal distribution; 0 where there is no limit."""
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence={confidence!r} must lie between 0 and 1")
    return -NormalDist().inv_cdf(confidence)  # 1 - confidence would be 1 for a small one


def added_errors(n: float, e: float, confidence: float = 0.25) -> float:
    """Errors to be added to e errors among n rows, so that the sum is an upper confidence limit.

    C4.5's approximation (`Stats.addErrs` in J48): exact for e = 0, where it is n (1 - confidence^(1/n)); linear up to
    e = 1; the normal one with continuity correction from there on. A confidence above 0.5 adds nothing.

    Parameters
    ----------
    n : float
        Weight of the rows, positive.
    e : float
        Weight of those that are not of the leaf's class, at most n.
    confidence : float, default=0.25
        Probability that the true errors exceed the limit; less prunes more.

    Examples
    --------
    >>> round(added_errors(6, 0) / 6, 3)
    0.206
    """
    check_errors(n, e)
    z = normal_quantile(confidence)
    return float(interpreted().textbook.prune.added_errors(float(n), float(e), float(confidence), z))


def quinlan_limit(n: float, e: float, confidence: float = 0.25) -> float:
    """Upper confidence limit of the error rate as Quinlan printed it: U(e, n) of his book (1993, section 4.2).

    It is (e + `added_errors`) / n, but for the normal quantile: C4.5 reads it from a table of eight and interpolates,
    so that 0.6925 stands for 0.6745 at a confidence of 0.25. J48 computes it, and so does `prune_pessimistic`.

    Examples
    --------
    >>> [round(quinlan_limit(n, e), 3) for n, e in ((6, 0), (9, 0), (1, 0), (16, 1))]
    [0.206, 0.143, 0.75, 0.157]
    """
    check_errors(n, e)
    normal_quantile(confidence)
    z = float(np.interp(confidence, TABLE_CONFIDENCES, TABLE_QUANTILES))
    return (e + float(interpreted().textbook.prune.added_errors(float(n), float(e), float(confidence), z))) / n


def check_errors(n: float, e: float) -> None:
    """Raise unless e of n rows can be wrong."""
    if not (n > 0.0 and 0.0 <= e <= n):
        raise ValueError(f"{e} errors among {n} rows: rows must be positive, errors at most as many")


def check_classes(tree: Tree) -> None:
    """Raise unless the nodes of a tree can make errors."""
    if not tree.n_classes:
        raise ValueError("pessimistic pruning counts errors: it needs a tree of classes")


def node_errors(tree: Tree, heaviest: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weight of the training rows of every node that are not of its heaviest class, whose weight is given."""
    return np.maximum(tree.weight - heaviest, 0.0)


def collapse(tree: Tree) -> Tree:
    """Make a leaf of every node whose subtree does not save 0.001 errors on the training rows.

    C4.5 does so after growing, whether it prunes or not.

    Returns
    -------
    Tree
        The same object where nothing is cut.
    """
    check_classes(tree)
    tiers = find_tiers(tree)
    _, heaviest, class_weights = heaviest_classes(tree, tiers)
    errors = node_errors(tree, heaviest)
    below = tree.sum_up(errors)
    is_cut = ~tree.is_leaf & (below >= errors - COLLAPSE_SLACK)
    return cut_mask(tree, tiers, is_cut, class_weights) if is_cut.any() else tree


def prune_pessimistic(
    tree: Tree,
    confidence: float = 0.25,
    *,
    values: NDArray[Any] | None = None,
    truth: NDArray[Any] | None = None,
    weight: NDArray[np.float64] | None = None,
    times: NDArray[np.int64] | None = None,
    raising: bool = False,
) -> Tree:
    """Prune a tree of classes by estimated errors.

    Parameters
    ----------
    tree : Tree
        Of classes; any kind of test. Raising does not know surrogates.
    confidence : float, default=0.25
        See `added_errors`.
    values : (n_rows, n_features), float32 or float64
        The rows that grew the tree, encoded as for prediction; needed for raising.
    truth : int (n_rows,)
        Their class codes; needed for raising.
    weight : float64 (n_rows,), optional
        Their weights.
    times : int64 (n_rows,), optional
        How many copies of a row each stands for, where that is not its weight.
    raising : bool, default=False
        Whether a test may be replaced by its heaviest branch. The tests of that branch stay, all rows of the test are
        sent through them, and what the nodes hold is summed anew.

    Returns
    -------
    Tree
        The same object where nothing is cut.
    """
    z = normal_quantile(confidence)
    check_classes(tree)
    if raising:
        if values is None or truth is None:
            raise ValueError("raising=True sends the training rows down other branches: give values and truth")
        if tree.surrogates is not None:
            raise ValueError("raising=True needs a tree without surrogates; prune without raising")
        return Raising(tree, float(confidence), z, values, truth, weight, times).prune()
    tiers = find_tiers(tree)
    errors = node_errors(tree, heaviest_classes(tree, tiers)[1])
    estimates = np.empty(tree.n_nodes)
    chosen = kernels(tree.n_nodes * STEP_SECONDS)
    chosen.textbook.prune.estimate_all(np.array(tree.weight), errors, float(confidence), z, estimates)
    ties = chosen.common.ties
    is_cut = np.zeros(tree.n_nodes, np.bool_)
    for tier in reversed(tiers):
        below = np.zeros(len(tier.nodes))
        for has, child in tier.branches:
            below[has] += estimates[child]
        cut = estimates[tier.nodes] - (below + ties.C45_MARGIN) < ties.C45_SMALL
        is_cut[tier.nodes] = cut
        estimates[tier.nodes] = np.where(cut, estimates[tier.nodes], below)
    return cut_mask(tree, tiers, is_cut) if is_cut.any() else tree


class Raising(Driven):
    """Pruning with raising under way: the rows in an arena, enlarged as the driver needs room."""

    def __init__(
        self,
        tree: Tree,
        confidence: float,
        z: float,
        values: NDArray[Any],
        truth: NDArray[Any],
        weight: NDArray[np.float64] | None,
        times: NDArray[np.int64] | None = None,
    ) -> None:
        truth = np.asarray(truth)
        for name, x in (("values", values), ("truth", truth), ("weight", weight), ("times", times)):
            if x is not None and len(x) != len(truth):
                raise ValueError(f"{name} has {len(x)} rows, truth {len(truth)}")
        if values.ndim != 2 or values.shape[1] != tree.n_features:
            raise ValueError(f"values has shape {values.shape}, expected (n_rows, {tree.n_features})")
        require_rows((truth >= 0) & (truth < tree.n_classes), f"truth is not one of the {tree.n_classes} class codes")
        if weight is not None and not bool(np.all(weight > 0.0)):
            require_rows(weight >= 0.0, "weight is negative or missing")
            keep = weight > 0.0
            values, truth, weight = values[keep], truth[keep], weight[keep]
            times = None if times is None else times[keep]
        self.tree = tree
        self.weights = fix_weights(weight, len(truth), times)
        self.control = np.zeros(CONTROL_SIZE, np.int64)
        self.features = np.zeros((1, tree.n_features), np.int64)
        self.kernels = kernels(len(truth) * tree.depth * (tree.depth + 1) / 2 * STEP_SECONDS)
        spreads = bool(tree.spreads_missing.any())
        self.shift = 0
        if self.weights.is_whole and spreads:
            self.shift = min(MOST_SHIFT, 61 - int(self.weights.total).bit_length())
        unit = math.ldexp(weight_unit(self.weights), -self.shift)
        self.settings = PruneSettings(is_pruned=True, confidence=confidence, z=z, weight_unit=unit)
        self.table = PruneTable(
            values=np.ascontiguousarray(values.T, np.float64),
            times=count_times(self.weights, times),
            subsets=np.array(tree.subsets),
        )
        self.truth = truth.astype(SUM)
        self.has_weights = spreads or not self.weights.is_unit
        self.class_sums = np.zeros(tree.n_classes, SUM)
        self.path, frames = make_frames(tree.n_nodes + 1), make_frames(tree.n_nodes + 1)
        self.stack = PruneStack(frames, np.zeros(TEXTBOOK_STATE_SIZE, np.int64))
        self.lay_out()

    def lay_out(self) -> None:
        """Put every row into the arena, whole."""
        n_rows = len(self.truth)
        self.ids = np.arange(n_rows, dtype=ROW)
        addends = self.truth.reshape(1, n_rows).copy()
        if self.has_weights:
            addends = np.stack([self.truth, np.broadcast_to(self.weights.values << self.shift, n_rows)])
        self.arena = Entries(self.ids, addends)
        self.make_scratch()

    def make_scratch(self) -> None:
        """Scratch of the arena's size."""
        branches = make_branches(len(self.arena.ids), int(self.tree.n_branches.max(initial=2)))
        self.scratch = PruneScratch(spare_of(self.arena), branches, self.class_sums, self.path)

    def make_room(self) -> None:
        """Enlarge the arena."""
        n_entries = int(self.stack.state[N_ENTRIES])
        self.arena = widen(self.arena, n_entries + n_entries // 2)
        self.make_scratch()

    def prune(self) -> Tree:
        """Prune; where nothing is raised, what is left holds what it held."""
        tree = self.tree
        self.nodes = make_pruned_nodes(
            tree.test, tree.first_child, tree.n_branches, tree.threshold, np.zeros((0, 1), SUM)
        )
        self.run()
        if self.stack.state[N_RAISED] == 0:
            cut = np.flatnonzero(~tree.is_leaf & (self.nodes.first_child == 0))
            return cut_nodes(tree, cut)
        return self.settle()

    def drive(self) -> int:
        """Run the driver to its end."""
        return self.call(self.nodes, self.settings)

    def call(self, nodes: PruneNodes, settings: PruneSettings) -> int:
        """Call the driver, with more room if it needs it."""
        while True:
            status = int(
                self.kernels.textbook.prune.prune(
                    self.table, self.arena, settings, nodes, self.stack, self.scratch, self.control
                )
            )
            if status != NEEDS_ROOM:
                return status
            nodes.class_weights[:] = 0
            self.make_room()

    def settle(self) -> Tree:
        """The tree that is left, its nodes numbered as the grower does, with what the rows make of it."""
        old = number_nodes(self.nodes)
        new = np.zeros(self.tree.n_nodes, np.int64)
        new[old] = np.arange(len(old))
        first_child = self.nodes.first_child[old]
        is_leaf = first_child == 0
        first_child = np.where(is_leaf, 0, new[first_child])
        counts = np.zeros((len(old), self.tree.n_classes), SUM)
        nodes = make_pruned_nodes(
            self.nodes.test[old], first_child, self.nodes.n_branches[old], self.nodes.cut_value[old], counts
        )
        self.lay_out()
        self.stack.state[:] = 0
        self.call(nodes, self.settings._replace(is_pruned=False))
        weights = counts * self.settings.weight_unit
        parent = np.zeros(len(old), np.int64)
        for node in np.flatnonzero(~is_leaf):
            first = first_child[node]
            parent[first : first + nodes.n_branches[node]] = node
        is_empty = nodes.n_rows == 0
        answers = np.where(is_empty[:, None], weights[parent], weights)[is_leaf]
        threshold = nodes.cut_value.copy()
        threshold[is_leaf], distributions = pack_classes(answers)
        total = weights.sum(axis=1)
        shares = weights / np.where(is_empty, 1.0, total)[:, None]
        return replace(
            self.tree,
            test=np.where(is_leaf, LEAF, nodes.test).astype(np.uint32),
            first_child=first_child.astype(np.int32),
            threshold=threshold,
            n_rows=nodes.n_rows.astype(np.uint32),
            weight=total,
            impurity=np.maximum(class_impurity(self.guess_criterion(shares[:1]), shares), 0.0),
            distributions=distributions,
        )

    def guess_criterion(self, shares: NDArray[np.float64]) -> str:
        """The criterion by which the root has its impurity.

        The arrays of a tree do not say which it was; a legend may (`Legend.criterion`), but a tree can be without one.
        """
        off = [abs(float(class_impurity(name, shares)[0]) - float(self.tree.impurity[0])) for name in CLASS_CRITERIA]
        return CLASS_CRITERIA[int(np.argmin(off))]


def make_pruned_nodes(
    test: NDArray[Any],
    first_child: NDArray[Any],
    n_branches: NDArray[Any],
    threshold: NDArray[np.float64],
    class_weights: NDArray[np.int64],
) -> PruneNodes:
    """The nodes of a tree for the driver, which changes them."""
    ints = np.zeros((6, len(test)), np.int64)
    ints[:3] = test, first_child, n_branches
    floats = np.zeros((2, len(test)))
    floats[0] = threshold
    return PruneNodes._make([*ints, *floats, class_weights])


def make_frames(n: int) -> PruneFrames:
    """Room for n frames."""
    return PruneFrames(*np.zeros((5, n), np.int64))


def number_nodes(nodes: PruneNodes) -> NDArray[np.int64]:
    """The nodes that the root reaches, children of a node next to each other, first branches first."""
    old, stack = [0], [0]
    while stack:
        node = stack.pop()
        first, n = int(nodes.first_child[node]), int(nodes.n_branches[node])
        if first:
            old.extend(range(first, first + n))
            stack.extend(range(first + n - 1, first - 1, -1))
    return np.array(old)
