"""A selector of features by their out-of-bag importance."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import check_is_fitted

from spinney._warnings import warn
from spinney.estimators.checks import all_or_nothing, open_x
from spinney.estimators.other_members import hold_rows
from spinney.estimators.parameters import strict
from spinney.model.importance import STD_ERRORS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.model.importance_table import ImportanceTable


@strict
class OOBSelector(SelectorMixin, MetaEstimatorMixin, BaseEstimator):
    """Select features by their permutation importance on out-of-bag rows.

    No rows are held out and no model is fitted twice. Importances can be negative; a feature that does nothing is
    about 0.

    Parameters
    ----------
    estimator : RandomForestClassifier, RandomForestRegressor or another forest with bags
        Cloned and fitted.
    threshold : float, str or None
        Least importance: a number; "mean", "median" or a multiple such as "1.25*mean"; None: more than two standard
        errors (over the trees) above 0, a mild rule, since by chance some noise passes it.
    max_features : int or None
        Keep no more than the most important of those.

    Attributes
    ----------
    estimator_ : the fitted forest
    importance_ : ImportanceTable
    threshold_ : float or (n_features,) array
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import OOBSelector, RandomForestRegressor
    >>> X = np.column_stack([np.arange(90) % 4, np.arange(90) % 7, np.arange(90) % 9])
    >>> selector = OOBSelector(RandomForestRegressor(n_estimators=20, random_state=0), max_features=1)
    >>> selector.fit(X, 2.0 * X[:, 0] - X[:, 2]).get_support()
    array([False, False,  True])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "estimator": [HasMethods(["fit", "importance"])],
        "threshold": [Interval(Real, None, None, closed="both"), str, None],
        "max_features": [Interval(Integral, 0, None, closed="left"), None],
    }

    def __init__(
        self, estimator: Any, *, threshold: float | str | None = None, max_features: int | None = None
    ) -> None:
        self.estimator = estimator
        self.threshold = threshold
        self.max_features = max_features

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.categorical = inner.input_tags.categorical
        tags.target_tags.required = True
        return tags

    def fit(self, X: Any, y: Any, **fit_params: Any) -> Self:
        """Fit a clone of the forest and take its importances.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)
        y : array-like (n_rows,)
        **fit_params
            For the `fit` of the forest: `sample_weight`, `groups`, `strata`.
        """
        with all_or_nothing(self):
            self._validate_params()
            open_x(self, X, is_fit=True)
            self.estimator_ = clone(self.estimator).fit(X, y, **fit_params)
            self.importance_ = self.estimator_.importance("permutation", X, y)
            self.threshold_ = find_threshold(self.threshold, self.importance_)
            return self

    def _get_support_mask(self) -> NDArray[np.bool_]:
        check_is_fitted(self, "importance_")
        importance = self.importance_.importance
        is_kept = importance > self.threshold_ if self.threshold is None else importance >= self.threshold_
        if self.max_features is not None:
            order = np.argsort(-importance, kind="stable")
            is_kept[order[int(self.max_features) :]] = False
        firsts = [k for k, _ in self.estimator_._schema.inputs()]  # noqa: SLF001
        return np.logical_or.reduceat(is_kept, firsts)  # dates stay where one of their parts does

    def transform(self, X: Any) -> Any:
        """Keep the selected columns: of a frame as a frame of the same kind; of anything else as an array."""
        check_is_fitted(self, "importance_")
        columns = open_x(self, X, is_fit=False)
        kept = self.get_support(indices=True)
        if len(kept) == 0:
            warn("No features were selected: either the data is too noisy or the selection test too strict.")
        return hold_rows(X, columns).take(None, kept)


def find_threshold(threshold: float | str | None, table: ImportanceTable) -> Any:
    """The least importance as a number, or one number a feature."""
    if threshold is None:
        return STD_ERRORS * np.nan_to_num(table.std_error)
    if not isinstance(threshold, str):
        return float(threshold)
    scale, _, reference = threshold.rpartition("*")
    means = {"mean": float(np.mean(table.importance)), "median": float(np.median(table.importance))}
    try:
        return (float(scale) if scale else 1.0) * means[reference.strip()]
    except (KeyError, ValueError):
        message = f"threshold must be a number, 'mean', 'median' or a multiple such as '1.25*mean', got {threshold!r}"
        raise ValueError(message) from None
