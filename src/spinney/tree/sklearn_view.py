"""A tree by the names that code written for scikit-learn reads, with scikit-learn's meaning."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._types import MULTIWAY, SUBSET
from spinney.reading.several_outputs import part_shares
from spinney.table.sparse import SparseMatrix, SparseRows, is_sparse
from spinney.tree.predict import find_leaves, mark_paths, predict_answers
from spinney.tree.structure import Tree

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix

    from spinney.table.sparse import Values

NO_CHILD = -1  # scikit-learn's TREE_LEAF
NO_TEST = -2  # scikit-learn's TREE_UNDEFINED: feature and threshold of a leaf
WAY_OUT = (
    "scikit-learn's arrays have no form for it. Read the tree by tree_.to_text(), tree_.to_rules() or tree_.arrays, "
    "which has our own arrays, or write it by spinney.export"
)


class SklearnView:
    """A fitted tree under scikit-learn's names.

    What scikit-learn's `tree_` has is here with its meaning, as arrays that cannot be written to: a leaf has -1 as
    children, -2 as feature and threshold, and its answer in `value`. Nodes are numbered as `apply` numbers them: the
    children of a node stand next to each other, where scikit-learn goes down the left side first. Whatever else a tree
    has is passed on: `to_text()`, `to_rules()`, `to_svg()`, `explain(values)`, `surrogates`, `n_nodes`, ...

    Attributes
    ----------
    arrays : Tree
        Our own arrays, where a leaf has its value in the place of a threshold.
    node_count, capacity, n_leaves, max_depth, n_features, n_outputs, max_n_classes : int
    n_classes : int64 array (n_outputs,)
        1 for a regression.
    children_left, children_right : int64 array (node_count,)
        -1 for leaves. Rows whose value is at most the threshold, or whose level is in the subset, go left.
    feature : int64 array (node_count,)
        -2 for leaves.
    threshold : float64 array (node_count,)
        -2 for leaves.
    missing_go_to_left : uint8 array (node_count,)
        1 where a missing value goes left.
    impurity, weighted_n_node_samples : float64 array (node_count,)
    n_node_samples : int64 array (node_count,)
        Training rows, each counted once, whatever it weighs.
    value : float64 array (node_count, n_outputs, max_n_classes)
        Mean target, or share of each class.

    Examples
    --------
    >>> from spinney import CARTClassifier
    >>> view = CARTClassifier().fit([[1], [2], [3], [4]], ["no", "no", "yes", "yes"]).tree_
    >>> view.children_left.tolist(), view.feature.tolist(), view.threshold.tolist()
    ([1, -1, -1], [0, -2, -2], [2.5, -2.0, -2.0])
    >>> view.value[:, 0].tolist()
    [[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]]
    """

    def __init__(self, arrays: Tree) -> None:
        self.arrays = arrays

    def __repr__(self) -> str:
        return f"SklearnView(node_count={self.node_count}, n_leaves={self.n_leaves}, max_depth={self.max_depth})"

    def __getattr__(self, name: str) -> Any:
        """What the tree has beside scikit-learn's names."""
        if name == "arrays" or (name.startswith("__") and name.endswith("__")):
            raise AttributeError(name)  # of a view that is being made
        return getattr(self.arrays, name)

    def __getstate__(self) -> dict[str, Any]:
        """The tree alone: what follows from it is made anew, as arrays that cannot be written to."""
        return {"arrays": self.arrays}

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self.arrays)})

    def _repr_svg_(self) -> str:
        return self.arrays.to_svg()

    # --- shape ---

    @property
    def node_count(self) -> int:
        """Number of nodes, leaves included."""
        return self.arrays.n_nodes

    @property
    def capacity(self) -> int:
        """Number of nodes that there is room for: the nodes there are."""
        return self.arrays.n_nodes

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return self.arrays.n_leaves

    @property
    def max_depth(self) -> int:
        """Tests on the longest path; 0 for a single leaf."""
        return self.arrays.depth

    @property
    def n_features(self) -> int:
        """Number of features the tree was grown on."""
        return self.arrays.n_features

    @property
    def n_outputs(self) -> int:
        """Number of targets."""
        return self.arrays.n_outputs

    @property
    def max_n_classes(self) -> int:
        """Number of classes, of several outputs the largest; 1 for a regression."""
        return int(self.n_classes.max())

    @cached_property
    def n_classes(self) -> NDArray[np.int64]:
        """Number of classes of each output; 1 for a regression."""
        if self.arrays.widths is not None:
            return read_only(self.arrays.widths.copy())
        return read_only(np.full(self.n_outputs, max(self.arrays.n_classes, 1), np.int64))

    @cached_property
    def children_left(self) -> NDArray[np.int64]:
        """Left child of each node; -1 for leaves."""
        self._refuse(self.arrays.n_branches > 2, "has more than two branches")
        return read_only(np.where(self.arrays.is_leaf, NO_CHILD, self.arrays.first_child).astype(np.int64))

    @cached_property
    def children_right(self) -> NDArray[np.int64]:
        """Right child of each node; -1 for leaves."""
        return read_only(np.where(self.arrays.is_leaf, NO_CHILD, self.children_left + 1))

    # --- tests ---

    @cached_property
    def feature(self) -> NDArray[np.int64]:
        """Feature of each test; -2 for leaves."""
        return read_only(np.where(self.arrays.is_leaf, NO_TEST, self.arrays.feature))

    @cached_property
    def threshold(self) -> NDArray[np.float64]:
        """Threshold of each test; -2 for leaves."""
        self._refuse(self.arrays.kind == MULTIWAY, "has a branch for each level of a category")
        self._refuse(self.arrays.kind == SUBSET, "asks for a subset of the levels of a category")
        return read_only(np.where(self.arrays.is_leaf, float(NO_TEST), self.arrays.threshold))

    @cached_property
    def missing_go_to_left(self) -> NDArray[np.uint8]:
        """1 where a missing value goes left, 0 where it goes right, and for leaves."""
        self._refuse(self.arrays.n_branches > 2, "has more than two branches")
        self._refuse(self.arrays.spreads_missing, "sends a missing value down every branch")
        if self.arrays.surrogates is not None:
            is_asked = np.diff(self.arrays.surrogates.first) > 0
            self._refuse(is_asked, "sends a missing value where its surrogates say")
        return read_only((self.arrays.missing_branch == 0).astype(np.uint8))

    # --- what nodes hold ---

    @cached_property
    def n_node_samples(self) -> NDArray[np.int64]:
        """Training rows of each node."""
        return read_only(self.arrays.n_rows.astype(np.int64))

    @cached_property
    def weighted_n_node_samples(self) -> NDArray[np.float64]:
        """Weight of the training rows of each node."""
        return read_only(self.arrays.weight.view())

    @cached_property
    def impurity(self) -> NDArray[np.float64]:
        """Impurity of each node, by the criterion of the fit."""
        return read_only(np.ldexp(self.arrays.impurity, self.arrays.impurity_exponent))

    @cached_property
    def value(self) -> NDArray[np.float64]:
        """Mean target of each node, or the shares of its classes; 0 behind those of an output that has fewer."""
        shape = self.node_count, self.n_outputs, self.max_n_classes
        if self.arrays.widths is None:
            return read_only(self.arrays.values().reshape(shape))
        value = np.zeros(shape)
        for o, shares in enumerate(part_shares(self.arrays.values(), self.arrays.widths)):
            value[:, o, : shares.shape[1]] = shares
        return read_only(value)

    # --- rows ---

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Find the leaf of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_rows, n_features)
            Rows as the tree sees them: a category as the index of its level, NaN where a value is missing. Models take
            rows as they are: `model.apply(X)`.
        """
        return find_leaves(self.arrays, read_rows(X)).astype(np.int64)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The value of each row's leaf, shape (n_rows, max_n_classes), of several outputs that of `value`.

        X: as in `apply`.
        """
        answers = predict_answers(self.arrays, read_rows(X), self.value.reshape(self.node_count, -1))
        return answers if self.n_outputs == 1 else answers.reshape(-1, self.n_outputs, self.max_n_classes)

    def decision_path(self, X: Any) -> csr_matrix:
        """Mark the nodes that each row passes, shape (n_rows, node_count); X: as in `apply`."""
        return mark_paths(self.arrays, self.apply(X))

    def compute_feature_importances(self, normalize: bool = True) -> NDArray[np.float64]:
        """Impurity decrease by the tests of each feature, shape (n_features,).

        Parameters
        ----------
        normalize : bool, default=True
            Whether to scale it to sum 1.
        """
        if normalize:
            return self.arrays.importances()
        return np.ldexp(self.arrays.decreases(), self.arrays.impurity_exponent)

    def _refuse(self, is_other: NDArray[np.bool_], what: str) -> None:
        """Raise for the first node that scikit-learn's trees do not have."""
        if is_other.any():
            raise ValueError(f"node {int(np.argmax(is_other))} of this tree {what}: {WAY_OUT}")


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """The array, which nobody can write to from now on."""
    array.flags.writeable = False
    return array


def read_rows(X: Any) -> Values:
    """Rows of numbers as prediction reads them."""
    if is_sparse(X):
        return SparseRows(SparseMatrix(X.tocsr()), {})
    rows = np.asarray(X)
    if rows.ndim != 2:
        raise ValueError(f"X has {rows.ndim} axes: give rows of numbers, shape (n_rows, n_features)")
    return np.ascontiguousarray(rows, np.float32 if rows.dtype == np.float32 else np.float64)
