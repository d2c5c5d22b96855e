"""What every node predicts, where that is not one number by its leaves: medians, several outputs, shares of these."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._types import SUM
from spinney.reading.several_outputs import part_shares
from spinney.tree.broken import BrokenTreeError, check_types, require
from spinney.tree.split_measures import class_impurity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.tree.structure import Tree

SHARE_TOLERANCE = 1e-9  # of a sum of shares


def count_outputs(holder: Any) -> int:
    """Numbers, or classes, that a node of a tree or forest predicts."""
    if holder.widths is not None:
        return len(holder.widths)
    return 1 if holder.answers is None else int(holder.answers.shape[1])


def fill_labels(
    tree: Tree, addends: NDArray[np.int64], begin: NDArray[np.int64], widths: NDArray[np.int64], criterion: str
) -> Tree:
    """A grown tree with the shares of the classes of several outputs, and the means of their impurities.

    addends: in the order of the leaves, the weight behind the first column; begin: (n_nodes,), the first row of each.
    """
    end = begin + tree.n_rows
    weight = sum_ranges(addends[1], begin, end)
    columns = np.delete(addends, 1, axis=0)
    answers = np.stack([sum_ranges(column, begin, end) / weight for column in columns], axis=1)
    each = [class_impurity(criterion, shares) for shares in part_shares(answers, widths)]
    impurity = np.maximum(np.mean(each, axis=0), 0.0)
    threshold = np.where(tree.is_leaf, answers[:, 0], tree.threshold)
    return replace(tree, threshold=threshold, impurity=impurity, answers=answers, widths=widths)


def fill_hazards(
    tree: Tree, addends: NDArray[np.int64], code: NDArray[np.int64], n_times: int, begin: NDArray[np.int64]
) -> Tree:
    """A grown tree with the cumulative hazard of every node after each time (Nelson and Aalen), (n_nodes, n_times).

    addends: in the order of the leaves; code: of the same rows, times of events up to theirs; begin: as `fill_labels`.
    """
    leaves = np.flatnonzero(tree.is_leaf)
    leaves = leaves[np.argsort(begin[leaves], kind="stable")]
    node = np.repeat(leaves, tree.n_rows[leaves])
    leaving, events = np.zeros((2, tree.n_nodes, n_times + 1), SUM)
    np.add.at(leaving, (node, code), addends[1])
    np.add.at(events, (node, code), addends[2])
    for level in reversed(tree.nodes_by_depth[1:]):
        for counts in (leaving, events):
            np.add.at(counts, tree.parent[level], counts[level])
    at_risk = np.cumsum(leaving[:, ::-1], axis=1)[:, ::-1][:, 1:]
    rate = np.divide(events[:, 1:], at_risk, out=np.zeros(at_risk.shape), where=at_risk > 0)
    hazard = np.cumsum(rate, axis=1)
    threshold = np.where(tree.is_leaf, hazard[:, 0], tree.threshold)
    return replace(tree, threshold=threshold, impurity=np.zeros(tree.n_nodes), answers=hazard)


def sum_ranges(x: NDArray[np.int64], begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sum of `x[begin:end]` for each pair."""
    total = np.zeros(len(x) + 1, SUM)
    np.cumsum(x, out=total[1:])
    return total[end] - total[begin]


# --- checks ---


def check_answers(holder: Any, leaf_values: NDArray[np.float64] | None = None) -> None:
    """What nodes predict is finite numbers, and the first of a leaf its value; shares of classes add up to 1.

    leaf_values: (n_nodes,), NaN for inner nodes; None: not known.
    """
    if holder.answers is None:
        if holder.widths is not None:
            raise BrokenTreeError("several outputs of classes have shares of these")
        return
    check_types(holder, {"answers": (2, np.float64)})
    if len(holder.answers) != holder.n_nodes or not holder.answers.shape[1] or holder.n_classes:
        raise BrokenTreeError(
            f"answers has shape {holder.answers.shape} for {holder.n_nodes} nodes, which hold numbers"
        )
    require(np.isfinite(holder.answers).all(axis=1), "answer is not finite")
    if holder.widths is not None:
        check_shares(holder.answers, holder.widths)
    if leaf_values is not None:
        is_same = np.isnan(leaf_values) | (holder.answers[:, 0] == leaf_values)
        require(is_same, "the answer of a leaf is not its value")


def check_shares(answers: NDArray[np.float64], widths: Any) -> None:
    """Answers are shares of the classes of several outputs, of which each has at least one."""
    is_fine = isinstance(widths, np.ndarray) and widths.dtype == np.int64 and widths.ndim == 1 and len(widths) > 1
    if not is_fine or np.any(widths < 1) or widths.sum() != answers.shape[1]:
        raise BrokenTreeError(f"{answers.shape[1]} shares of classes do not fit the outputs")
    require(np.asarray(answers.min(axis=1) >= 0.0), "share of a class is negative")
    for shares in part_shares(answers, widths):
        require(np.asarray(np.abs(shares.sum(axis=1) - 1.0) <= SHARE_TOLERANCE), "shares do not add up to 1")
