"""Members whose votes have weights: sums of votes for classes, weighted medians for numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from spinney._cached import derive
from spinney.ensemble.links import softmax, two_columns
from spinney.model.forest_votes import run_blocks, sum_votes
from spinney.tree.predict import find_all_leaves

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from spinney.table.sparse import Values
    from spinney.tree.forest import Forest

FIRST_MEMBERS = 16  # that there is room for; it is doubled as needed
BLOCK_CELLS = 1 << 20  # rows x members whose answers are held together: 8 MB an array


# --- classes ----------------------------------------------------------------------------------------------------


class ClassVotes:
    """Votes so far: the weight of those for each class, or with two classes those for the second minus the others.

    Parameters
    ----------
    n_rows, n_classes : int
    """

    def __init__(self, n_rows: int, n_classes: int) -> None:
        self.votes = np.zeros((n_rows, 1 if n_classes <= 2 else n_classes))
        self.rows = np.arange(n_rows)
        self.total = 0.0  # of the magnitudes of the weights

    def add(self, predicted: NDArray[np.int64], weight: float) -> None:
        """Add the predictions of one member, as class codes."""
        if self.votes.shape[1] == 1:
            self.votes[:, 0] += np.where(predicted > 0, weight, -weight)
        else:
            self.votes[self.rows, predicted] += weight
        self.total += abs(weight)


def find_leaf_blocks(forest: Forest, values: Values, lo: int, hi: int) -> Iterator[tuple[slice, NDArray[np.int64]]]:
    """Blocks of rows lo .. hi, and the nodes they end in, (n_rows, n_trees), counted from the first of the forest."""
    n_at_once = max(BLOCK_CELLS // len(forest), 1)
    for first in range(lo, hi, n_at_once):
        rows = slice(first, min(first + n_at_once, hi))
        yield rows, forest.first_node[:-1] + find_all_leaves(forest, values[rows])


def leaf_classes(forest: Forest) -> NDArray[np.int64]:
    """Heaviest class of each leaf of a forest, the first among equals, shape (n_nodes,); -1 for other nodes.

    Kept with the forest.
    """
    return derive(forest, "leaf classes", lambda: find_leaf_classes(forest))


def find_leaf_classes(forest: Forest) -> NDArray[np.int64]:
    """What `leaf_classes` keeps."""
    leaves = np.flatnonzero(forest.is_leaf)
    code = np.ascontiguousarray(forest.hot[leaves, 0]).view(np.float64).astype(np.int64)
    tree = np.searchsorted(forest.first_node, leaves, side="right") - 1
    is_mixed = code < 0
    if is_mixed.any():
        row = forest.first_mixed[tree[is_mixed]] - 1 - code[is_mixed]
        code[is_mixed] = forest.distributions[row].argmax(axis=1)
    classes = np.full(forest.n_nodes, -1)
    classes[leaves] = code
    return classes


def weigh_forest(forest: Forest, weights: NDArray[np.float64]) -> Forest:
    """Trees of two classes that predict their weight: negative for the first class; kept with the forest."""

    def weigh() -> Forest:
        leaves = np.flatnonzero(forest.is_leaf)
        weight = weights[np.searchsorted(forest.first_node, leaves, side="right") - 1]
        hot = forest.hot.copy()
        hot[:, 0].view(np.float64)[leaves] = np.where(leaf_classes(forest)[leaves] > 0, weight, -weight)
        return replace(forest, hot=hot, n_classes=0, distributions=np.zeros((0, 0)))

    return derive(forest, f"weighed by {weights.tobytes().hex()}", weigh)


def sum_forest(forest: Forest, weights: NDArray[np.float64], values: Values, n_jobs: int | None = None) -> ClassVotes:
    """Votes of all trees on rows of values, added up in the order of the trees."""
    votes = ClassVotes(len(values), forest.n_classes)
    if forest.n_classes > 2:
        classes = leaf_classes(forest)

        def add(lo: int, hi: int) -> None:
            for rows, leaf in find_leaf_blocks(forest, values, lo, hi):
                block = ClassVotes(len(leaf), forest.n_classes)
                for predicted, weight in zip(classes[leaf].T, weights.tolist(), strict=True):
                    block.add(predicted, weight)
                votes.votes[rows] = block.votes

        run_blocks(add, len(values), len(forest), n_jobs)
    else:
        votes.votes = sum_votes(weigh_forest(forest, weights), values, n_jobs)
    votes.total = sum_weights(weights)
    return votes


def sum_weights(weights: NDArray[np.float64]) -> float:
    """Sum of the magnitudes of the weights, in their order: the very additions of `ClassVotes.add`."""
    total = 0.0
    for weight in np.abs(weights).tolist():
        total += weight
    return total


def choose_by_votes(votes: ClassVotes) -> NDArray[np.intp]:
    """Code of the class with most votes, the first among equals."""
    if votes.votes.shape[1] == 1:
        return (votes.votes[:, 0] > 0.0).astype(np.intp)
    return votes.votes.argmax(axis=1)


def decide(votes: ClassVotes, n_classes: int) -> NDArray[np.float64]:
    """The decision function; 0 where the votes have no weight."""
    total = votes.total if votes.total > 0.0 else 1.0
    if n_classes == 1:
        return np.zeros((len(votes.votes), 1))
    if n_classes == 2:
        return 2.0 * (votes.votes[:, 0] / total)
    others = votes.total - votes.votes
    return (votes.votes - others / (n_classes - 1)) / total


def spread(decision: NDArray[np.float64], n_classes: int) -> NDArray[np.float64]:
    """Probabilities from the decision function (equation 15 of Zhu, Zou, Rosset and Hastie 2009)."""
    if n_classes == 1:
        return np.ones_like(decision)
    if n_classes == 2:
        return two_columns(decision)
    return softmax((decision / (n_classes - 1)).T)


# --- numbers ----------------------------------------------------------------------------------------------------


class MedianVotes:
    """Weighted median of the members' predictions so far, row by row (Drucker 1997).

    It is the smallest prediction such that the members who predict it or less have half of all the weight.

    Parameters
    ----------
    n_rows : int
    """

    def __init__(self, n_rows: int) -> None:
        self.predicted = np.empty((FIRST_MEMBERS, n_rows))  # ascending down each column, as far as there are members
        self.weight = np.empty((FIRST_MEMBERS, n_rows))
        self.n_members = 0

    def add(self, predicted: NDArray[np.float64], weight: float) -> None:
        """Add the predictions of one member; members of equal ones stand in their order."""
        n = self.n_members
        if n == len(self.predicted):
            self.predicted, self.weight = (np.concatenate([stack, stack]) for stack in (self.predicted, self.weight))
        place = np.count_nonzero(self.predicted[:n] <= predicted, axis=0)
        behind = np.arange(n)[:, None] >= place
        for stack, new in ((self.predicted, predicted), (self.weight, weight)):
            moved = stack[:n][behind]
            stack[1 : n + 1][behind] = moved
            stack[place, np.arange(len(place))] = new
        self.n_members = n + 1

    def medians(self) -> NDArray[np.float64]:
        """The median of each row, shape (n_rows,)."""
        n = self.n_members
        below = np.cumsum(self.weight[:n], axis=0)
        place = np.argmax(below >= 0.5 * below[-1], axis=0)
        return self.predicted[place, np.arange(len(place))]


def find_medians(predicted: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weighted median of each row of predictions (n_rows, n_members)."""
    order = np.argsort(predicted, axis=1, kind="stable")
    below = np.cumsum(weights[order], axis=1)
    place = np.argmax(below >= 0.5 * below[:, -1:], axis=1)
    rows = np.arange(len(predicted))
    return predicted[rows, order[rows, place]]


def forest_medians(
    forest: Forest, weights: NDArray[np.float64], values: Values, n_jobs: int | None = None
) -> NDArray[np.float64]:
    """Weighted median of the trees' predictions for rows of values."""
    medians = np.empty(len(values))

    def find(lo: int, hi: int) -> None:
        for rows, leaf in find_leaf_blocks(forest, values, lo, hi):
            predicted = np.ascontiguousarray(forest.hot[leaf, 0]).view(np.float64)
            medians[rows] = find_medians(predicted, weights)

    run_blocks(find, len(values), len(forest), n_jobs)
    return medians
