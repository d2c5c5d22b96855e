"""What every estimator of one tree shares: reading the tree, and predicting by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from spinney._elementary import log
from spinney.estimators.base import Classifier, Estimator, Regressor
from spinney.estimators.checks import open_x
from spinney.estimators.kept import Kept
from spinney.estimators.one_row import open_row, unseen_levels
from spinney.model.predictors import TreePredictor
from spinney.reading.explaining import explain
from spinney.table.schema import encode, refuse_infinite
from spinney.tree.predict import smooth_shares
from spinney.tree.pruning_report import PruningReport
from spinney.tree.structure import Tree

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix

    from spinney.reading.explaining import Explanation
    from spinney.table.schema import Schema


class SingleTree(Estimator):
    """An estimator whose model is `tree_`; `_schema` says what its columns are."""

    _keeps: ClassVar[dict[str, Kept]] = {
        "tree_": Kept(Tree),
        "max_features_": Kept(int, is_needed=False),
        "pruning_": Kept(PruningReport | None, is_needed=False),
        "ccp_alpha_": Kept(float, is_needed=False),
        "cv_results_": Kept(dict, is_needed=False),
    }

    tree_: Tree
    _schema: Schema
    smoothing: float | str | None = None  # of probabilities; C4.5 makes it a parameter

    def _values(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self, "tree_")
        return encode(open_x(self, X, is_fit=False), self._schema)

    def _make_predictor(self) -> TreePredictor:
        check_is_fitted(self, "tree_")
        classes = getattr(self, "classes_", None)
        return TreePredictor(self._schema, classes, self.tree_, self.smoothing)

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Find the leaf of each row.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        leaf : int64 array (n_rows,)
            Index of the leaf among the nodes of `tree_`.
        """
        values = self._values(X)
        return self._make_predictor().find(values)

    def decision_path(self, X: Any) -> csr_matrix:
        """Mark the nodes that each row passes.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)

        Returns
        -------
        indicator : sparse matrix (n_rows, n_nodes)
            1 where the row passes the node.
        """
        from scipy.sparse import csr_matrix

        node = self.apply(X)
        tree = self.tree_
        ends = np.concatenate([[0], np.cumsum(tree.depths[node] + 1)])
        indices = np.empty(ends[-1], np.int64)
        last, at = node, ends[1:] - 1  # of the rows still under way to the root
        while len(last):
            indices[at] = last
            is_below = last > 0
            last, at = tree.parent[last[is_below]], at[is_below] - 1
        return csr_matrix((np.ones(len(indices), np.int64), indices, ends), shape=(len(node), tree.n_nodes))

    def explain(self, row: Any) -> Explanation:
        """Tell the path of one row in words: each test, the row's value, the branch and why, and the leaf.

        Parameters
        ----------
        row : dict, sequence, one-row frame or array
            The values by name or in the order of the columns, None where one is missing.

        Returns
        -------
        explanation : Explanation
            Prints in words; `steps` has the tests, `leaves` where the row ends, `prediction` and `shares` the answer.
        """
        check_is_fitted(self, "tree_")
        columns = open_row(self, row)
        values = encode(columns, self._schema)
        if self.tree_.linear is not None:
            refuse_infinite(values, self._schema)
        smoothed = None if self.smoothing is None else smooth_shares(self.tree_, self.smoothing)
        return explain(self.tree_, values[0], unseen_levels(columns, self._schema, values[0]), smoothed)

    def get_depth(self) -> int:
        """Tests on the longest path of the tree."""
        check_is_fitted(self, "tree_")
        return self.tree_.depth

    def get_n_leaves(self) -> int:
        """Number of leaves of the tree."""
        check_is_fitted(self, "tree_")
        return self.tree_.n_leaves

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Impurity decrease by feature, scaled to sum 1, shape (n_features,)."""
        check_is_fitted(self, "tree_")
        return self.tree_.importances()


class ClassTree(Classifier, SingleTree):
    """A single tree that predicts classes."""

    classes_: NDArray[Any]

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each row: the most frequent in its leaf, the first among equals."""
        values = self._values(X)
        return self.classes_[self._make_predictor().choose(values)]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict class probabilities: the class shares of the leaf, shape (n_rows, n_classes)."""
        return self._make_predictor().answer(self._values(X))

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithm of `predict_proba`; -inf for probability 0."""
        return log(self.predict_proba(X))


class ValueTree(Regressor, SingleTree):
    """A single tree that predicts numbers."""

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict the target of each row: the mean of its leaf, or what the leaf's linear model says."""
        return self._make_predictor().answer(self._values(X))
