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

from spinney.table.row_sums import sum_rows
from spinney.tree.predict import spread_rows
from spinney.tree.prune import CutStep, cut_sequence, from_units, risk_exponent
from spinney.tree.subtree import find_tiers, heaviest_classes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from spinney.estimators.growers import TreeTraining
    from spinney.table.sparse import Values
    from spinney.tree.structure import Tree

N_FOLDS = 10


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
        columns = self._asdict()
        del columns["chosen"]
        return columns


def deal_folds(
    is_used: NDArray[np.bool_], strata: NDArray[np.int64] | None, n_folds: int, seed: int
) -> NDArray[np.int64]:
    """The fold of each row, shape (n_rows,), -1 for rows that are not used; classes are dealt out evenly."""
    order = check_random_state(seed % 2**32).permutation(np.flatnonzero(is_used))
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
    tree: Tree, training: TreeTraining, risk: str, folds: list[Fold] | None = None
) -> tuple[list[CutStep], PathErrors]:
    """The steps of a tree, and how they do on rows that did not grow them; see `PathErrors`.

    Without `folds` there are ten, dealt out by class.
    """
    steps = cut_sequence(tree, risk)
    alpha = np.array([from_units(tree, step.alpha, risk) for step in steps])
    n_leaves = np.array([step.n_leaves for step in steps])
    is_used = training.is_used
    n_folds = min(N_FOLDS, int(np.count_nonzero(is_used)))
    if n_folds < 2 or len(steps) == 1:  # nothing to choose from
        nothing = np.full(len(steps), np.nan)
        return steps, PathErrors(alpha, n_leaves, nothing, nothing, 0)
    within = np.array([step.alpha for step in steps])  # in units of the whole tree: users' may leave float64
    within = np.append(np.sqrt(within[:-1]) * np.sqrt(within[1:]), np.inf)
    if folds is None:
        dealt = deal_folds(is_used, training.data.y if tree.n_classes else None, n_folds, training.seed)
        folds = [Fold(dealt != k, dealt == k) for k in range(n_folds)]
    error, standard_error = fold_errors(tree, training, risk, within, folds)
    best = len(error) - 1 - int(np.argmin(error[::-1]))
    chosen = int(np.flatnonzero(error <= error[best] + standard_error[best])[-1])
    with np.errstate(over="ignore"):
        error, standard_error = np.ldexp([error, standard_error], 2 * loss_unit(tree, training))
    return steps, PathErrors(alpha, n_leaves, error, standard_error, chosen)


def loss_unit(tree: Tree, training: TreeTraining) -> int:
    """Power of two that targets are divided by, so that squares of squares stay in the range of float64."""
    return 0 if tree.n_classes else math.frexp(float(np.abs(training.data.y[training.is_used]).max()))[1]


def fold_errors(
    tree: Tree, training: TreeTraining, risk: str, alphas: NDArray[np.float64], folds: list[Fold]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Error and its standard error at each alpha, shape (n_alphas,), of trees grown without the rows of a fold.

    Alphas are in the units of the tree's risk, squared errors of numbers in units of `4 ** loss_unit`.
    """
    is_used, rows, unit = training.is_used, training.rows, loss_unit(tree, training)
    weight = np.ones(len(is_used)) if rows.weight is None else rows.weight / rows.weight.max()
    sums = np.zeros((3, len(alphas)))
    for is_in, is_held in folds:
        is_out = is_held & is_used
        grown = training.grow_without(~is_in)
        losses = node_losses(grown, rows.values[is_out], rows.y[is_out], weight[is_out], unit)
        shift = risk_exponent(tree, risk) - risk_exponent(grown, risk)
        sums += path_losses(grown, losses, np.ldexp(alphas, shift), risk)
    counted = np.flatnonzero(is_used & np.any([fold.is_out for fold in folds], axis=0))
    weight = weight[counted]
    total = sum_rows(weight, counted)
    error = sums[0] / total
    spread = sums[2] - 2.0 * error * sums[1] + error**2 * sum_rows(weight**2, counted)
    return error, np.sqrt(np.maximum(spread, 0.0)) / total


def node_losses(
    tree: Tree, values: Values, y: NDArray[Any], weight: NDArray[np.float64], unit: int
) -> NDArray[np.float64]:
    """Sums over the rows that reach each node, as a leaf, of weight * loss, weight² * loss and (weight * loss)².

    The result is of shape (3, n_nodes). Losses of numbers are squared errors in units of 4**unit.
    """
    row, node, share = spread_rows(tree, values)
    y, weight = y[row], weight[row] * share
    predicted = heaviest_classes(tree, find_tiers(tree))[0] if tree.n_classes else np.ldexp(tree.values(), -unit)
    y = y if tree.n_classes else np.ldexp(y, -unit)
    sums = np.zeros((3, tree.n_nodes))
    while len(node):
        loss = (predicted[node] != y) * 1.0 if tree.n_classes else (predicted[node] - y) ** 2
        np.add.at(sums[0], node, weight * loss)
        np.add.at(sums[1], node, weight * weight * loss)
        np.add.at(sums[2], node, (weight * loss) ** 2)
        is_below = node > 0
        node, y, weight = tree.parent[node[is_below]], y[is_below], weight[is_below]
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
