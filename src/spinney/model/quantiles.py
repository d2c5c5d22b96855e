"""Quantiles of the target of new rows by the training rows that share their leaves (Meinshausen 2006)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney.ensemble.forest import leaf_row_offsets
from spinney.ensemble.sampling import split_bag
from spinney.model.earlier_members import refuse_earlier
from spinney.model.forest_votes import for_row_blocks
from spinney.model.uncertainty import PerTree, forest_quantiles, gather_members
from spinney.tree.predict import find_all_leaves

if TYPE_CHECKING:
    from spinney.kernels.common.structs import Members
    from spinney.model.fitted_forest import FittedForest, TrainingRows
    from spinney.table.sparse import Values
    from spinney.tree.structure import Tree

LEAF_ROW_SECONDS = 1e-8  # a row of a leaf
SAME_WEIGHT = 1e-6  # relative: weights are rounded to fixed point when a tree is grown


def predict_quantiles(
    fitted: FittedForest,
    values: Values,
    levels: NDArray[np.float64],
    training: TrainingRows | None,
    *,
    n_jobs: int | None,
) -> NDArray[np.float64]:
    """Quantiles of the target of each row, (n_rows, n_levels), or (n_rows,) for a single level.

    training: the training rows again; None: `fit` has kept the rows of each leaf.
    """
    leaves, y, weight = find_training_leaves(fitted, training, n_jobs)
    rows_of_leaves, weight = list_rows(fitted, leaves, weight)
    forest = fitted.forest
    found = np.empty((len(values), levels.size))

    def work(rows: slice) -> None:
        found[rows] = forest_quantiles(find_all_leaves(forest, values[rows]).T, rows_of_leaves, y, levels, weight)

    seconds_per_row = len(rows_of_leaves.ids) / np.count_nonzero(forest.is_leaf) * LEAF_ROW_SECONDS
    for_row_blocks(forest, work, len(values), n_jobs, seconds_per_row)
    return found if levels.ndim else found[:, 0]


def find_training_leaves(
    fitted: FittedForest, training: TrainingRows | None, n_jobs: int | None
) -> tuple[PerTree, NDArray[np.float64], NDArray[np.float64] | None]:
    """Leaf of each training row in each tree, targets, and weights as far as they are known."""
    refuse_earlier(fitted.earlier, "predict_quantiles needs")
    forest, n_rows = fitted.forest, fitted.draw.n_rows
    if training is not None:
        values = training.values
        leaf = np.empty((len(forest), n_rows), np.int32)

        def work(rows: slice) -> None:
            leaf[:, rows] = find_all_leaves(forest, values[rows]).T

        for_row_blocks(forest, work, n_rows, n_jobs)
        return leaf, training.y, training.weight
    if fitted.leaf_rows is None or fitted.target is None:
        raise ValueError(
            "predict_quantiles needs the training rows of every leaf: fit with keep_members=True, or pass train=(X, y)"
        )
    by_tree = fitted.leaf_rows.by_tree

    def leaves_of(tree: int) -> NDArray[np.int32]:
        return leaves_of_rows(forest[tree], by_tree[tree], n_rows)

    return leaves_of, fitted.target.y, fitted.target.weight


def leaves_of_rows(tree: Tree, leaf_rows: NDArray[np.int32], n_rows: int) -> NDArray[np.int32]:
    """Leaf of each training row (n_rows,), 0 for those outside the bag; leaf_rows: in the order of the leaves."""
    leaves = np.flatnonzero(tree.is_leaf)
    leaves = leaves[np.argsort(leaf_row_offsets(tree)[leaves])]
    leaf = np.zeros(n_rows, np.int32)
    leaf[leaf_rows] = np.repeat(leaves, tree.n_rows[leaves])
    return leaf


def list_rows(
    fitted: FittedForest, leaves: PerTree, weight: NDArray[np.float64] | None
) -> tuple[Members, NDArray[np.float64] | None]:
    """Training rows of all leaves, and the weights of rows that the trees have seen, if any.

    What the roots hold tells whether weights are those of the fit.
    """
    forest, draw = fitted.forest, fitted.draw
    roots = forest.first_node[:-1]
    drawn, weighted = np.zeros(len(forest)), np.zeros(len(forest))

    def count(tree: int) -> NDArray[np.int32]:
        counts = draw.counts(tree)
        if fitted.honest_fraction is not None:
            part = split_bag(counts, tree, fitted.seed, fitted.honest_fraction, draw.groups)[1]
            counts = part if part.any() else counts  # a bag of one row cannot be parted
        drawn[tree] = counts.sum()
        weighted[tree] = np.nan if weight is None else counts @ weight
        return counts

    rows_of_leaves = gather_members(leaves, count, np.diff(forest.first_node))
    held = forest.weight[roots]
    if np.allclose(held, drawn, rtol=SAME_WEIGHT, atol=0.0):
        return rows_of_leaves, None  # none, or spent on drawing the bags
    if weight is None:
        raise ValueError("the trees were grown with sample weights: pass train=(X, y, sample_weight)")
    if not np.allclose(held, weighted, rtol=SAME_WEIGHT, atol=0.0):
        raise ValueError("sample_weight in train=(X, y, sample_weight) is not what fit has seen: pass the very same")
    return rows_of_leaves, weight


def check_quantiles(quantiles: Any) -> NDArray[np.float64]:
    """Levels of quantiles, one or a list."""
    try:
        levels = np.asarray(quantiles, np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"quantiles must be numbers between 0 and 1, got {quantiles!r}") from None
    if levels.ndim > 1 or levels.size == 0 or not bool(np.all((levels >= 0.0) & (levels <= 1.0))):
        raise ValueError(f"quantiles must be a number or a list of numbers between 0 and 1, got {quantiles!r}")
    return levels
