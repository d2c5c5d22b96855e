"""Predictions of single trees of a forest: for one row as a table, for many as numbers that tell why forests work."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney.model.ensemble_theory import (
    ErrorParts,
    Strength,
    VarianceParts,
    decompose_error,
    decompose_variance,
    strength_and_correlation,
)
from spinney.model.forest_votes import for_row_blocks, tree_predictions, tree_shares, tree_values
from spinney.tree.predict import find_all_leaves

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from spinney.model.fitted_forest import FittedForest
    from spinney.table.sparse import Values
    from spinney.tree.forest import Forest

ROWS_AT_ONCE = 4096  # whose leaves in all trees are held together


@dataclass(frozen=True, eq=False, repr=False)
class VoteTable:
    """What each tree of a forest predicts for one row; `print` shows the sum, `to_frame` every tree.

    Attributes
    ----------
    leaf : int64 (n_trees,)
        Leaf of the row in each tree.
    prediction : (n_trees,)
        Class of that leaf, or its value.
    share : float64 (n_trees, n_classes), or None for numbers
        Class shares of that leaf; 0 and 1 with hard voting.
    classes : (n_classes,), or None for numbers
    """

    leaf: NDArray[np.int64]
    prediction: NDArray[Any]
    share: NDArray[np.float64] | None = None
    classes: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.leaf)

    @property
    def votes(self) -> NDArray[np.int64]:
        """Trees that vote for each class, shape (n_classes,)."""
        if self.classes is None:
            raise AttributeError("a forest of numbers has no votes: `prediction` holds the number of each tree")
        return np.count_nonzero(self.prediction[:, None] == self.classes, axis=0).astype(np.int64)

    @property
    def mean(self) -> Any:
        """The answer of the forest: class shares, shape (n_classes,), or a number."""
        if self.share is not None:
            return self.share.mean(axis=0)
        scaled, shift = self._scaled()
        return math.ldexp(float(scaled.mean()), shift)

    @property
    def sd(self) -> Any:
        """Standard deviation over the trees of what `mean` is the mean of (n - 1); NaN for one tree."""
        answers, shift = self._scaled() if self.share is None else (self.share, 0)
        if len(self) < 2:
            return np.full(answers.shape[1:], np.nan)[()]
        with np.errstate(over="ignore"):  # of numbers near the end of float64
            return np.ldexp(answers.std(axis=0, ddof=1), shift)[()]

    def _scaled(self) -> tuple[NDArray[np.float64], int]:
        """Numbers within [-1, 1] and the power of two they stand in units of: sums and squares have their limits."""
        shift = math.frexp(float(np.max(np.abs(self.prediction))))[1]
        return np.ldexp(self.prediction, -shift), shift

    def __repr__(self) -> str:
        return str(self)  # arrays of all trees say nothing at a prompt

    def __str__(self) -> str:
        if self.classes is None:
            numbers = {
                "mean": self.mean,
                "sd": self.sd,
                "lowest": self.prediction.min(),
                "highest": self.prediction.max(),
            }
            return "\n".join([f"{len(self)} trees", *(f"  {name:<8}{value:>12.6g}" for name, value in numbers.items())])
        names = [str(label) for label in self.classes.tolist()]
        width = max(map(len, [*names, "class"]))
        lines = [f"{len(self)} trees", f"  {'class':<{width}}  votes  share"]
        for name, n_votes, share in zip(names, self.votes.tolist(), self.mean, strict=True):
            lines.append(f"  {name:<{width}}  {n_votes:>5}  {share:.3f}")
        return "\n".join(lines)

    def to_frame(self) -> Any:
        """One line a tree: tree, leaf, and its class with the share of it in the leaf, or its value.

        A pandas frame where pandas is installed, else a `pyarrow.Table`.
        """
        columns: dict[str, Any] = {"tree": np.arange(len(self)), "leaf": self.leaf}
        if self.share is None:
            columns["value"] = self.prediction
        else:
            columns["class"] = self.prediction
            columns["share"] = self.share.max(axis=1)
        try:
            import pandas as pd  # type: ignore[import-untyped]
        except ImportError:
            import pyarrow as pa

            return pa.table({name: column.tolist() for name, column in columns.items()})
        return pd.DataFrame(columns)


def vote_table(fitted: FittedForest, values: Values, *, is_hard: bool) -> VoteTable:
    """What each tree predicts for one row; values: (1, n_features)."""
    forest, classes = fitted.forest, fitted.classes
    leaf = find_all_leaves(forest, values)
    if classes is None:
        return VoteTable(leaf[0].astype(np.int64), tree_values(forest, leaf)[0])
    share = tree_shares(forest, leaf)[0]
    codes = share.argmax(axis=1)
    if is_hard:
        share = np.eye(share.shape[1])[codes]
    return VoteTable(leaf[0].astype(np.int64), classes[codes], share, classes)


def predict_trees(fitted: FittedForest, values: Values, *, is_hard: bool, n_jobs: int | None) -> NDArray[np.float64]:
    """Predict with every tree by itself: (n_trees, n_rows), or shares (n_trees, n_rows, n_classes)."""
    forest = fitted.voting_forest(is_hard=is_hard)
    width = forest.n_classes
    if forest.n_outputs > 1 and forest.answers is not None:
        width = forest.answers.shape[1]
    found = np.empty((len(forest), len(values), width)[: 3 if width else 2])
    shift = fitted.shift if forest.n_outputs == 1 else 0  # several outputs are not in these units

    def work(rows: slice) -> None:
        found[:, rows] = np.ldexp(tree_predictions(forest, values[rows]), shift)

    for_row_blocks(forest, work, len(values), n_jobs)
    return found


def decision_path(forest: Forest, values: Values) -> tuple[csr_matrix, NDArray[np.int64]]:
    """Mark the nodes that each row passes, all trees side by side, and where the nodes of each tree begin."""
    from scipy.sparse import csr_matrix

    leaf = find_all_leaves(forest, values)
    depths = np.stack([tree.depths[leaf[:, t]] for t, tree in enumerate(forest)], axis=1)
    ends = np.concatenate([[0], np.cumsum(depths.ravel() + 1)])
    nodes = np.empty(ends[-1], np.int64)
    last_places = ends[1:].reshape(leaf.shape) - 1
    for t, tree in enumerate(forest):
        last, at = leaf[:, t].astype(np.int64), last_places[:, t]  # of the rows still under way to the root
        while len(last):
            nodes[at] = forest.first_node[t] + last
            is_below = last > 0
            last, at = tree.parent[last[is_below]], at[is_below] - 1
    row_ends = ends[:: len(forest)]
    shape = len(leaf), forest.n_nodes
    return csr_matrix((np.ones(len(nodes), np.int64), nodes, row_ends), shape=shape), forest.first_node.copy()


def decompose(
    fitted: FittedForest, values: Values, y: Any, column: int | None, *, is_hard: bool
) -> VarianceParts | ErrorParts:
    """Variance over the trees in parts, or with y the squared error; column: the class that is meant, if any."""
    forest = fitted.forest.hardened if is_hard else fitted.forest
    predictions = np.empty((len(forest), len(values)))
    for first in range(0, len(values), ROWS_AT_ONCE):
        rows = slice(first, first + ROWS_AT_ONCE)
        found = tree_predictions(forest, values[rows])
        predictions[:, rows] = found if column is None else found[:, :, column]
    if y is None:
        return decompose_variance(predictions)
    if column is None or fitted.classes is None:
        return decompose_error(predictions, np.asarray(y))
    return decompose_error(predictions, np.asarray(y) == fitted.classes[column])


def find_class(classes: NDArray[Any] | None, label: Any) -> int | None:
    """Position of the class that is meant, by default the second of two; None for numbers."""
    if classes is None:
        if label is not None:
            raise ValueError(f"label={label!r} names a class, but this forest predicts numbers: leave it out")
        return None
    known = classes.tolist()
    if label is None:
        if len(known) != 2:
            raise ValueError(f"label must say which of the {len(known)} classes is meant: {known[:10]}")
        return 1
    if label not in known:
        raise ValueError(f"label={label!r} is not among the classes {known[:10]}")
    return known.index(label)


def measure_strength(fitted: FittedForest, values: Values, codes: NDArray[np.int64]) -> Strength:
    """Strength and correlation by the out-of-bag votes on the training rows: their values and class codes."""
    trees, draw = fitted.forest, fitted.draw
    votes = np.empty((len(trees), len(values)), np.int32)
    for first in range(0, len(values), ROWS_AT_ONCE):
        leaf = find_all_leaves(trees, values[first : first + ROWS_AT_ONCE])
        votes[:, first : first + len(leaf)] = tree_shares(trees, leaf).argmax(axis=2).T
    is_oob = np.stack([draw.counts(t) == 0 for t in range(len(trees))])
    if draw.probability is not None:
        is_oob &= draw.probability > 0.0
    if not is_oob.any():
        raise ValueError("strength is measured on out-of-bag rows, but every row is in every bag: set bootstrap=True")
    return strength_and_correlation(votes, codes, is_oob)
