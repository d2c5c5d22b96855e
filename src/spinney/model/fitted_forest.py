"""What a forest has learnt, as a value: all that prediction, importance, uncertainty and out-of-bag results need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._criteria import CRITERIA
from spinney.model.fitted_tree import classes_of_one, label_classes
from spinney.model.predictors import VotePredictor

if TYPE_CHECKING:
    from spinney.ensemble.sampling import Draw
    from spinney.model.earlier_members import EarlierMembers
    from spinney.model.out_of_bag import OutOfBag
    from spinney.table.schema import Schema
    from spinney.table.sparse import Values
    from spinney.tree.forest import Forest

MOST_SEED = 2**63  # kernels take 64 bits


class TrainingRows(NamedTuple):
    """The training data, given again after the fit; no model keeps X."""

    values: Values  # (n_rows, n_features)
    y: NDArray[Any]  # (n_rows,) codes of classes, or numbers
    weight: NDArray[np.float64] | None = None  # (n_rows,); None: not given


@dataclass(frozen=True, eq=False)
class KeptTarget:
    """What a fit keeps of the training data, for intervals and quantiles.

    Attributes
    ----------
    y : (n_rows,)
        Codes of classes, or numbers.
    weight : float64 (n_rows,), optional
        Of the rows, as the trees have seen it.
    """

    y: NDArray[Any]
    weight: NDArray[np.float64] | None

    def find_fault(self, n_rows: int, n_classes: int | NDArray[np.int64], n_outputs: int = 1) -> str | None:
        """What is wrong with a target that was read from a file; None: nothing. n_classes: of each output."""
        shape = (n_rows,) if n_outputs == 1 else (n_rows, n_outputs)
        is_class = bool(np.all(np.asarray(n_classes) > 0))
        if self.y.shape != shape or self.y.dtype != (np.int64 if is_class else np.float64):
            return f"the kept target must have {n_rows} classes or numbers, not {self.y.dtype} {self.y.shape}"
        if is_class and np.any((self.y < 0) | (self.y >= n_classes)):
            return f"the kept target must hold codes 0 .. {int(np.max(n_classes)) - 1}"
        if not is_class and not np.isfinite(self.y).all():
            return "the kept target must be finite"
        weight = self.weight
        if weight is None:
            return None
        is_fine = weight.shape == (n_rows,) and weight.dtype == np.float64
        if not (is_fine and np.isfinite(weight).all() and np.all(weight >= 0.0)):
            return f"the kept weights must be {n_rows} finite numbers from 0 up"
        return None


@dataclass(frozen=True, eq=False)
class LeafRows:
    """Which rows of the bag make the value of each leaf.

    Attributes
    ----------
    by_tree : list of int32 arrays
        For each tree its rows in the order of its leaves; see `ensemble.forest.leaf_row_offsets`.
    """

    by_tree: list[Any]  # of int32 arrays, once they have been checked

    def find_fault(self, forest: Forest, n_rows: int) -> str | None:
        """What is wrong with rows that were read from a file; None: nothing."""
        if len(self.by_tree) != len(forest):
            return f"{len(self.by_tree)} lists of leaf rows for {len(forest)} trees"
        total = np.concatenate([[0], np.cumsum(np.where(forest.is_leaf, forest.n_rows, 0).astype(np.int64))])
        sizes = np.diff(total[forest.first_node])
        for size, rows in zip(sizes.tolist(), self.by_tree, strict=True):
            if not isinstance(rows, np.ndarray) or rows.dtype != np.int32 or rows.shape != (size,):
                return f"the leaf rows of a tree must be {size} row numbers"
            if size and not 0 <= int(rows.min()) <= int(rows.max()) < n_rows:
                return f"leaf rows must be row numbers 0 .. {n_rows - 1}"
        return None


@dataclass(frozen=True, eq=False)
class FittedForest:
    """A fitted forest.

    Attributes
    ----------
    forest : Forest
        The trees.
    schema : Schema
        Names and levels of the columns.
    classes : array (n_classes,), list of such for several outputs, or None for numbers
    draw : Draw
        How the bags were drawn: the bag of a tree is had again from its number.
    seed : int
    max_features : int
        Features drawn per node.
    honest_fraction : float, optional
        Share of a bag that chose the tests; None: the trees are not honest.
    fingerprint, weight_mark : str
        Hashes of the training data, and of the weights that the trees have seen.
    shift : int
        Sums over trees of numbers are in units of `2**shift`, so that they stay within float64.
    target : KeptTarget, optional
        With `out_of_bag` or `leaf_rows`.
    leaf_rows : LeafRows, optional
    out_of_bag : OutOfBag, optional
    earlier : EarlierMembers, optional
        Trees of fits on other rows; `draw`, fingerprint and marks are those of the last fit.
    """

    forest: Forest
    schema: Schema
    classes: Any
    draw: Draw
    seed: int
    max_features: int
    honest_fraction: float | None
    fingerprint: str
    weight_mark: str
    shift: int = 0
    target: KeptTarget | None = None
    leaf_rows: LeafRows | None = None
    out_of_bag: OutOfBag | None = None
    earlier: EarlierMembers | None = None

    def make_predictor(self, *, is_hard: bool) -> VotePredictor:
        """What predicts; is_hard: each tree votes for one class, instead of giving shares."""
        return VotePredictor(self.schema, classes_of_one(self.classes), self.forest, is_hard, self.shift)

    def voting_forest(self, *, is_hard: bool) -> Forest:
        """The trees as they vote: classes alone with hard voting, values in units of `2**shift`."""
        return self.make_predictor(is_hard=is_hard).voting

    def find_fault(self) -> str | None:
        """What is wrong with a forest that was read from a file, before any method reads it; None: nothing."""
        n_rows, n_features = self.draw.n_rows, self.schema.n_features
        fault = find_forest_fault(self.forest, self.schema, self.classes)
        if fault is not None:
            return fault
        if not 1 <= self.max_features <= n_features:
            return f"max_features_={self.max_features} must lie between 1 and {n_features}"
        if not 0 <= self.seed < MOST_SEED or self.draw.seed != self.seed:
            return "the seed must be that of the draw, and not negative"
        if self.honest_fraction is not None and not 0.0 < self.honest_fraction < 1.0:
            return f"_honest_fraction={self.honest_fraction} must lie between 0 and 1"
        return self.find_fault_in_kept(n_rows)

    def find_fault_in_kept(self, n_rows: int) -> str | None:
        """The same, of what is kept of the training rows."""
        n_classes = 0 if classes_of_one(self.classes) is None else len(self.classes)
        widths = self.forest.widths
        if (self.target is None) != (self.leaf_rows is None and self.out_of_bag is None):
            return "the target is kept with out-of-bag results and leaf rows, and with nothing else"
        if self.earlier is not None and self.target is not None:
            return "trees of other rows have no out-of-bag results and no leaf rows"
        fault = None if self.earlier is None else self.earlier.find_fault(len(self.forest))
        if fault is None and self.target is not None:
            fault = self.target.find_fault(n_rows, n_classes if widths is None else widths, self.forest.n_outputs)
        if fault is None and self.leaf_rows is not None:
            fault = self.leaf_rows.find_fault(self.forest, n_rows)
        if fault is None and self.out_of_bag is not None:
            n_columns = self.forest.n_outputs if widths is None else int(widths.sum())
            fault = self.out_of_bag.find_fault(n_rows, len(self.forest), n_classes, self.shift, n_columns, widths)
        return fault


def find_forest_fault(forest: Forest, schema: Schema, classes: Any) -> str | None:
    """What is wrong with the trees of an estimator that was read from a file; None: nothing."""
    legend = forest.legend
    if forest.is_compact or legend is None:
        return "the forest of an estimator has counts, impurities and names"
    is_same = legend.features == schema.names or (schema.names is None and len(legend.features) == schema.n_features)
    if not is_same or legend.levels != schema.levels or forest.n_features != schema.n_features:
        return "the trees have other columns or levels than the schema"
    if isinstance(classes, list) != (forest.widths is not None):
        return "the trees have other outputs than classes_"
    if legend.classes != label_classes(classes):
        return "the trees name other classes than classes_"
    if legend.criterion is not None and legend.criterion not in CRITERIA:
        return f"there is no criterion {legend.criterion!r}"
    return None
