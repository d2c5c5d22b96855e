"""How far to prune: minimal cost-complexity with the alpha of a cross-validation (Breiman et al. 1984, section 3.4).

The whole tree has a sequence of best subtrees, one for each range of alpha. Trees grown without the rows of a fold are
pruned by an alpha inside each range, the geometric mean of its ends, and judged on these rows. The smallest subtree
whose error is within one standard error of the least is taken.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from spinney.tree.predict import spread_rows
from spinney.tree.prune import CutStep, cut_sequence, from_units, risk_exponent
from spinney.tree.subtree import find_tiers, heaviest_classes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from spinney.tree.structure import Tree

N_FOLDS = 10


class Training(NamedTuple):
    """Training rows, and how they grow a tree."""

    grow: Callable[[NDArray[np.float64] | None], Tree]  # of these weights; rows of weight 0 are not there
    read: Callable[[], NDArray[Any]]  # values (n_rows, n_features)
    truth: NDArray[Any]  # (n_rows,) class codes int64, or targets float64
    weight: NDArray[np.float64] | None  # (n_rows,)
    seed: int = 0  # of what is drawn among them
    times: NDArray[np.int64] | None = None  # (n_rows,) how many rows each counts as, where its weight does not say it

    def without(self, is_out: NDArray[np.bool_]) -> NDArray[np.float64]:
        """The weights with some rows left out."""
        weight = np.ones(len(self.truth)) if self.weight is None else self.weight
        return np.where(is_out, 0.0, weight)


class Fold(NamedTuple):
    """Rows that grow a tree, and rows that judge it, as masks (n_rows,)."""

    is_in: NDArray[np.bool_]
    is_out: NDArray[np.bool_]


class PathErrors(NamedTuple):
    """Errors of the sequence of best subtrees, from the whole tree to its root."""

    alpha: NDArray[np.float64]  # from which a subtree is the best
    n_leaves: NDArray[np.int64]
    error: NDArray[np.float64]  # of the folds: share of the weight that is missed, or mean squared error
    standard_error: NDArray[np.float64]
    chosen: int

    def table(self) -> dict[str, NDArray[Any]]:
        """Columns as users read them."""
        return {name: getattr(self, name) for name in ("alpha", "n_leaves", "error", "standard_error")}


def deal_folds(
    is_used: NDArray[np.bool_], strata: NDArray[np.int64] | None, n_folds: int, seed: int
) -> NDArray[np.int64]:
    """The fold of each row, shape (n_rows,), -1 for rows that are not used; classes are dealt out evenly."""
    order = check_random_state(seed).permutation(np.flatnonzero(is_used))
    if strata is not None:
        order = order[np.argsort(strata[order], kind="stable")]
    fold = np.full(len(is_used), -1)
    fold[order] = np.arange(len(order)) % n_folds
    return fold


def check_folds(cv: Iterable[Any], n_rows: int) -> list[Fold]:
    """Folds as users give them, pairs of row numbers: those that grow a tree, and those held out."""
    folds = []
    for pair in cv:
        masks = np.zeros((2, n_rows), np.bool_)
        for mask, rows in zip(masks, pair, strict=True):
            mask[np.asarray(rows, np.int64)] = True
        folds.append(Fold(*masks))
        if (masks[0] & masks[1]).any() or not masks.any(axis=1).all():
            raise ValueError("cv: each fold needs rows that grow a tree and others, held out, that judge it")
    if len(folds) < 2 or np.sum([fold.is_out for fold in folds], axis=0).max() > 1:
        raise ValueError("cv: give two folds or more, in which a row is held out once at most")
    return folds


def cross_validate(
    tree: Tree, training: Training, risk: str, folds: list[Fold] | None = None
) -> tuple[list[CutStep], PathErrors]:
    """The steps of a tree, and how they do on rows that did not grow them; see `PathErrors`.

    Without `folds` there are ten, dealt out by class.
    """
    steps = cut_sequence(tree, risk)
    alpha = np.array([from_units(tree, step.alpha, risk) for step in steps])
    n_leaves = np.array([step.n_leaves for step in steps])
    is_used = np.ones(len(training.truth), np.bool_) if training.weight is None else training.weight > 0.0
    n_folds = min(N_FOLDS, int(np.count_nonzero(is_used)))
    if n_folds < 2 or len(steps) == 1:  # nothing to choose from
        nothing = np.full(len(steps), np.nan)
        return steps, PathErrors(alpha, n_leaves, nothing, nothing, 0)
    within = np.array([step.alpha for step in steps])  # in units of the whole tree: users' may leave float64
    within = np.append(np.sqrt(within[:-1]) * np.sqrt(within[1:]), np.inf)
    if folds is None:
        dealt = deal_folds(is_used, training.truth if tree.n_classes else None, n_folds, training.seed)
        folds = [Fold(dealt != k, dealt == k) for k in range(n_folds)]
    is_judge = is_used & np.any([fold.is_out for fold in folds], axis=0)
    values = training.read()
    # squares of squares must stay in the range of float64
    unit = 0 if tree.n_classes else math.frexp(float(np.abs(training.truth[is_used]).max()))[1]
    weight = np.ones(len(is_used)) if training.weight is None else training.weight / training.weight.max()
    sums = np.zeros((3, len(steps)))
    for is_in, is_held in folds:
        is_out = is_held & is_used
        grown = training.grow(training.without(~is_in))
        losses = node_losses(grown, values[is_out], training.truth[is_out], weight[is_out], unit)
        shift = risk_exponent(tree, risk) - risk_exponent(grown, risk)
        sums += path_losses(grown, losses, np.ldexp(within, shift), risk)
    weight = weight[is_judge]
    error = sums[0] / weight.sum()
    spread = sums[2] - 2.0 * error * sums[1] + error**2 * (weight**2).sum()
    standard_error = np.sqrt(np.maximum(spread, 0.0)) / weight.sum()
    best = len(error) - 1 - int(np.argmin(error[::-1]))
    chosen = int(np.flatnonzero(error <= error[best] + standard_error[best])[-1])
    with np.errstate(over="ignore"):
        error, standard_error = np.ldexp([error, standard_error], 2 * unit)
    return steps, PathErrors(alpha, n_leaves, error, standard_error, chosen)


def node_losses(
    tree: Tree, values: NDArray[Any], truth: NDArray[Any], weight: NDArray[np.float64], unit: int
) -> NDArray[np.float64]:
    """Sums over the rows that reach each node, as a leaf, of weight * loss, weight² * loss and (weight * loss)².

    The result is of shape (3, n_nodes). Losses of numbers are squared errors in units of 4**unit.
    """
    row, node, share = spread_rows(tree, values)
    truth, weight = truth[row], weight[row] * share
    said = heaviest_classes(tree, find_tiers(tree))[0] if tree.n_classes else np.ldexp(tree.values(), -unit)
    truth = truth if tree.n_classes else np.ldexp(truth, -unit)
    sums = np.zeros((3, tree.n_nodes))
    while len(node):
        loss = (said[node] != truth) * 1.0 if tree.n_classes else (said[node] - truth) ** 2
        np.add.at(sums[0], node, weight * loss)
        np.add.at(sums[1], node, weight * weight * loss)
        np.add.at(sums[2], node, (weight * loss) ** 2)
        is_below = node > 0
        node, truth, weight = tree.parent[node[is_below]], truth[is_below], weight[is_below]
    return sums


def path_losses(tree: Tree, losses: NDArray[np.float64], alphas: NDArray[np.float64], risk: str) -> NDArray[np.float64]:
    """Sums of losses of the tree pruned by each alpha, from those of its nodes, shape (3, n_alphas).

    Alphas ascend, in the units of the tree's risk. A node is a leaf from the alpha that cuts it (a leaf: from
    the first) to the alpha that cuts a node above it.
    """
    cut_at = np.where(tree.is_leaf, -np.inf, np.inf)
    for step in cut_sequence(tree, risk):
        cut_at[step.nodes] = step.alpha
    gone_at = np.full(tree.n_nodes, np.inf)
    for tier in find_tiers(tree):
        end = np.minimum(gone_at[tier.nodes], cut_at[tier.nodes])
        for has, child in tier.branches:
            gone_at[child] = end[has]
    begin, end = np.searchsorted(alphas, cut_at), np.searchsorted(alphas, gone_at)
    end[0] = len(alphas)  # nothing is above the root
    is_leaf = begin < end
    change = np.zeros((3, len(alphas) + 1))
    for k in range(3):
        np.add.at(change[k], begin[is_leaf], losses[k, is_leaf])
        np.subtract.at(change[k], end[is_leaf], losses[k, is_leaf])
    return np.maximum(np.cumsum(change, axis=1)[:, :-1], 0.0)
