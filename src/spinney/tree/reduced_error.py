"""Reduced error (Quinlan 1987): prune a tree by rows that did not grow it.

From the bottom up, a node becomes a leaf where its own prediction is no worse on the rows that reach it than what is
left of its subtree.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._types import SUM
from spinney.table.fixed_point import Weights, fix_weights, sum_bits, weigh, weighted_sum
from spinney.tree.subtree import Tier, add_branches, class_blocks, cut_mask, find_tiers, heaviest_classes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.tree.structure import Tree

TIE = 1e-12  # a saving below this share of the errors it is made of is rounding
ROUNDING = 2.0**-50  # of a node's value, as a share of the largest: means of means, at most a few roundings


class PruningRows(NamedTuple):
    """Rows that need not be those that grew the tree, each of a positive weight."""

    leaf: NDArray[np.int64]  # (n_rows,)
    truth: NDArray[Any]  # (n_rows,) class codes int64, or targets float64
    weights: Weights


def take_rows(
    tree: Tree, leaf: NDArray[Any], truth: NDArray[Any], weight: NDArray[np.float64] | None = None
) -> PruningRows:
    """Rows as the functions of given rows take them; those without weight are left out."""
    leaf = np.asarray(leaf).astype(np.int64)
    truth = np.asarray(truth).astype(np.int64 if tree.n_classes else np.float64)
    for name, x in (("truth", truth), ("weight", weight)):
        if x is not None and x.shape != leaf.shape:
            raise ValueError(f"{name} has shape {x.shape}, expected one entry per row: {leaf.shape}")
    require_rows((leaf >= 0) & (leaf < tree.n_nodes), f"leaf is not one of the {tree.n_nodes} nodes of the tree")
    require_rows(tree.is_leaf[leaf], "leaf is an inner node of the tree; route the rows through this very tree")
    if tree.n_classes:
        require_rows((truth >= 0) & (truth < tree.n_classes), f"truth is not one of the {tree.n_classes} class codes")
    if weight is not None and not bool(np.all(weight > 0.0)):
        require_rows(weight >= 0.0, "weight is negative or missing")
        keep = weight > 0.0
        leaf, truth, weight = leaf[keep], truth[keep], weight[keep]
    return PruningRows(leaf, truth, fix_weights(weight, len(leaf)))


def require_rows(holds: NDArray[np.bool_], fault: str) -> None:
    """Raise for the first row where `holds` is false."""
    if not holds.all():
        raise ValueError(f"row {int(np.argmin(holds))}: {fault}")


def prune_on_rows(
    tree: Tree,
    leaf: NDArray[Any],
    truth: NDArray[Any],
    weight: NDArray[np.float64] | None = None,
    *,
    unseen: str = "cut",
) -> Tree:
    """Prune by the error on given rows: out-of-bag rows, or a validation set (reduced-error pruning, Quinlan 1987).

    From the bottom up, a node becomes a leaf where its own prediction, the heaviest class or the mean of the rows that
    grew it, makes no larger error on the given rows than what is left of its subtree: the weight of the rows whose
    class is missed, or the sum of squared errors. Equal errors cut.

    Parameters
    ----------
    tree : Tree
    leaf : int (n_rows,)
        Leaf of the tree that each given row ends in.
    truth : (n_rows,)
        Class codes, or targets.
    weight : float64 (n_rows,), optional
        Weights of the given rows; a row without weight is not there.
    unseen : {"cut", "keep"}
        A node that no given row reaches makes no error either way: cut it as any tie, or keep what is below it unless
        a node above is cut. Without any row the tree becomes its root, or stays.

    Returns
    -------
    Tree
        The same object where nothing is cut.
    """
    if unseen not in {"cut", "keep"}:
        raise ValueError(f"unseen={unseen!r}: choose 'cut' or 'keep'")
    rows = take_rows(tree, leaf, truth, weight)
    tiers = find_tiers(tree)
    reach = add_rows(tree, tiers, rows.leaf, rows.weights.values)
    class_weights = None
    if tree.n_classes:
        top, _, class_weights = heaviest_classes(tree, tiers)
        savings = class_savings(tree, tiers, rows, reach, top)
    else:
        savings = value_savings(tree, tiers, rows, reach)
    worth = np.zeros(tree.n_nodes, SUM if tree.n_classes else np.float64)  # error that the subtree below saves
    is_cut = np.zeros(tree.n_nodes, np.bool_)
    for tier, (saved, slack) in zip(reversed(tiers), reversed(savings), strict=True):
        for has, child in tier.branches:
            saved[has] += worth[child]
            if not tree.n_classes:
                slack[has] += TIE * worth[child]
        cut = saved <= slack
        if unseen == "keep":
            cut &= reach[tier.nodes] > 0
        worth[tier.nodes] = np.where(cut, 0, saved)
        is_cut[tier.nodes] = cut
    return cut_mask(tree, tiers, is_cut, class_weights) if is_cut.any() else tree


def add_rows(tree: Tree, tiers: list[Tier], leaf: NDArray[np.int64], x: NDArray[np.int64] | int) -> NDArray[np.int64]:
    """Sum over the rows that reach each node, shape (n_nodes,), of x: one integer per row, or one for all."""
    total = np.zeros(tree.n_nodes, SUM)
    np.add.at(total, leaf, x)
    return add_branches(tiers, total)


class TierSavings(NamedTuple):
    """What each test of a tier saves if its branches are leaves, and how much of that may be rounding."""

    saved: NDArray[Any]  # error of the node as a leaf, less the errors of its branches as leaves
    slack: NDArray[Any]


def class_savings(
    tree: Tree, tiers: list[Tier], rows: PruningRows, reach: NDArray[np.int64], top: NDArray[np.int64]
) -> list[TierSavings]:
    """What the tests of every tier save in the weight of missed rows, fixed point: nothing is rounded."""
    error = reach.copy()
    for first, stop in class_blocks(tree):
        right = add_classes(tree, tiers, rows, first, stop)
        nodes = np.flatnonzero((top >= first) & (top < stop))
        error[nodes] -= right[nodes, top[nodes] - first]
    savings = []
    for tier in tiers:
        saved = error[tier.nodes]
        for has, child in tier.branches:
            saved[has] -= error[child]
        savings.append(TierSavings(saved, np.zeros_like(saved)))
    return savings


def add_classes(tree: Tree, tiers: list[Tier], rows: PruningRows, first: int, stop: int) -> NDArray[np.int64]:
    """Fixed-point weight of the given rows of classes first .. stop at every node, shape (n_nodes, stop - first)."""
    weights = np.zeros((tree.n_nodes, stop - first), SUM)
    cell = rows.leaf * (stop - first) + (rows.truth - first)
    value: Any = rows.weights.values
    if stop - first < tree.n_classes:
        is_in = (rows.truth >= first) & (rows.truth < stop)
        cell = cell[is_in]
        value = value if rows.weights.is_unit else value[is_in]
    np.add.at(weights.reshape(-1), cell, value)
    return add_branches(tiers, weights)


def value_savings(tree: Tree, tiers: list[Tier], rows: PruningRows, reach: NDArray[np.int64]) -> list[TierSavings]:
    """What the tests of every tier save in squared errors.

    Rows of weight W and target sum S lose by the value v: v (v W - 2 S), and a term that no value changes. So a branch
    of value b saves (v - b) ((v + b) W - 2 S) against its parent's v: no squares of targets, and equal values save 0.
    """
    value, centred, blur = centre_values(tree.values(), rows.truth)
    bits = sum_bits(weighted_sum(np.abs(centred), rows.weights))
    total = add_rows(tree, tiers, rows.leaf, weigh(centred, bits, rows.weights))
    target = np.ldexp(total.astype(np.float64), -bits)
    weight = np.ldexp(reach.astype(np.float64), -rows.weights.bits)
    savings = []
    for tier in tiers:
        saved, slack = np.zeros(len(tier.nodes)), np.zeros(len(tier.nodes))
        for has, child in tier.branches:
            own = value[tier.nodes[has]]
            slope = (own + value[child]) * weight[child] - 2.0 * target[child]
            part = (own - value[child]) * slope
            saved[has] += part
            slack[has] += TIE * np.abs(part) + blur * np.abs(slope)
        savings.append(TierSavings(saved, slack))
    return savings


def centre_values(
    values: NDArray[np.float64], truth: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """Values and targets less the root's value, scaled into [-1, 1], and the rounding of a value in these units."""
    exponent = math.frexp(max(float(np.abs(x).max(initial=0.0)) for x in (values, truth)))[1]
    values, truth = np.ldexp(values, -exponent), np.ldexp(truth, -exponent)
    values, truth = values - values[0], truth - values[0]
    spread = math.frexp(max(float(np.abs(x).max(initial=0.0)) for x in (values, truth)))[1]
    return np.ldexp(values, -spread), np.ldexp(truth, -spread), math.ldexp(ROUNDING, -spread)
