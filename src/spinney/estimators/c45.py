"""C4.5, release 8 (Quinlan 1993, 1996), by the rules of Weka's J48."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from spinney._types import MAX_CODES
from spinney.estimators.base_tree import GROWING_CONSTRAINTS, TreeClassifier, TreeEstimator
from spinney.estimators.growers import RowLimits, TextbookGrower
from spinney.estimators.pruning import CLASS_CONSTRAINTS
from spinney.tree.textbook import TextbookParams

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from spinney.table.schema import Schema


class C45Classifier(TreeClassifier, TreeEstimator):
    """Classification tree by C4.5: gain ratio, fractional cases for missing values, pessimistic pruning.

    A test is the one of the largest gain ratio among those of at least average gain. A category has a branch for each
    level; a number a threshold, which is a value of the table and pays for its choice among many. A row whose value is
    missing takes every branch, with a weight in proportion, in fit and in predict. The grown tree is collapsed where a
    subtree is no better than a leaf on the training rows, then pruned by bounds on its errors. Trees are those of
    Weka's J48. Text, category and dictionary columns of a frame are categories; in an array every column is a number
    unless `categorical_features` says otherwise.

    Parameters
    ----------
    min_samples_leaf : int, default=2
        Least weight of at least two branches of a test (J48's -M). Here and in pruning a weight counts as so many
        rows; scale weights so that they sum to the number of rows.
    max_depth : int, optional
        Most tests on a path.
    pruning : {"pessimistic", "cost_complexity", "reduced_error", "min_gain", "merge"} or None, default="pessimistic"
        How the grown tree is pruned; None: not at all (J48's -U). By bounds on the errors of its leaves (`confidence`,
        `raising`); by a cost of each leaf (`ccp_alpha`); by the errors on rows that were held out
        (`validation_fraction`); by taking back splits of little gain (`min_gain`); by merging leaves that predict the
        same. `prune` does the same to a fitted tree.
    confidence : float, default=0.25
        Of the bounds of "pessimistic", up to 0.5; less prunes more (J48's -C).
    raising : bool, default=True
        Whether "pessimistic" may also put a node's heaviest branch in its place (subtree raising; J48's -S is False).
    collapse : bool, default=True
        Whether subtrees that are no better on the training rows become leaves, before any pruning.
    ccp_alpha : float or "cv", default=0.0
        Cost of a leaf of "cost_complexity". "cv": the largest whose error in a tenfold cross-validation is within one
        standard error of the least.
    ccp_risk : {"impurity", "error"}, default="impurity"
        What a leaf costs besides: its impurity, as in scikit-learn, or its errors, as in rpart.
    validation_fraction : int or float, default=0.2
        Rows, or share of them, that "reduced_error" holds out, of each class in proportion.
    min_gain : float, default=0.0
        Least weighted impurity decrease of a test that "min_gain" leaves at the end of a branch.
    smoothing : "laplace" or float, optional
        Of the probabilities: with w of W in a leaf of class c among k, "laplace" says (w + 1) / (W + k) (J48's -A), a
        number m says (w + m * share of c in the training rows) / (W + m); by default w / W.
    class_weight : dict or "balanced", optional
        Weight of each class. With "balanced" a row of weight k, a whole number, is k copies of the row, to the bit. A
        dict multiplies weights in float64: then products are rounded, and where some are not whole C4.5's rules that
        count rows (a threshold needs enough rows whose value is known; a category of many levels) take each row for
        one, whatever it weighs.
    max_bins : int, default=65535
        Most distinct values of a numeric column that are kept apart; beyond, they are binned by quantiles.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Which columns are categories: by dtype, or as mask, indices or names.
    date_features : {"auto"}, optional
        Columns of dates and times in a frame: with "auto" each is read as its year, month, weekday, days since the
        first and hour, named such as `sold.month`; None: they are refused.
    random_state : int, RandomState or None
        Seed for the rows that pruning holds out.
    trace : bool, default=False
        Whether `fit` keeps a trace of the tree; see `spinney.trace`.

    Attributes
    ----------
    tree_ : SklearnView
        The grown tree by scikit-learn's names (`children_left`, `threshold`, `value`, ...); `tree_.to_text()`
        draws it, `tree_.arrays` has our own arrays.
    trace_ : Trace, with `trace=True`
        Every test that each node could have asked, and why the one asked won; print it.
    classes_ : array (n_classes,)
        The classes in y, ascending; also those whose rows all have weight 0.
    n_classes_, n_features_in_, n_outputs_ : int
    feature_names_in_ : array of str, if X had names
    feature_importances_ : array (n_features,)
    pruning_ : PruningReport or None
        What pruning has done: leaves, depth and error before and after.
    cv_results_ : dict of arrays, if `ccp_alpha="cv"`
        `alpha`, `n_leaves`, `error` and `standard_error` of each subtree of the sequence; `ccp_alpha_` was chosen.

    Notes
    -----
    A level that fit has not seen is a missing value. A column of two numbers, or of booleans, is asked by a threshold
    between them, which is the same test as a branch for each.

    Examples
    --------
    >>> import spinney
    >>> table = spinney.datasets.load("contact_lenses")
    >>> X, y = table.drop_columns(["contact-lenses"]), table["contact-lenses"]
    >>> tree = spinney.C45Classifier().fit(X, y)
    >>> print(tree.tree_.to_text(max_depth=2))
    [none] (24 rows: none 15, soft 5, hard 4)
    ├─ tear-prod-rate = normal: [soft] (12 rows: soft 5, hard 4, none 3)
    │  ├─ astigmatism = no: soft (6 rows: soft 5, none 1)
    │  └─ astigmatism = yes: [hard] (6 rows: hard 4, none 2) ...
    └─ tear-prod-rate = reduced: none (12 rows)
    >>> print(tree.pruning_)
    pessimistic (confidence=0.25, raising=True)
                             before      after
    leaves                        4          4
    depth                         3          3
    error, training rows  0.0833333  0.0833333
    """

    _counts_copies: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "min_samples_leaf": [Interval(Integral, 1, None, closed="left")],
        "collapse": ["boolean"],
        "smoothing": [StrOptions({"laplace"}), Interval(Real, 0.0, None, closed="left"), None],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "trace": ["boolean"],
        **GROWING_CONSTRAINTS,
        **CLASS_CONSTRAINTS,
    }

    def __init__(
        self,
        *,
        min_samples_leaf: int = 2,
        max_depth: int | None = None,
        pruning: str | None = "pessimistic",
        confidence: float = 0.25,
        raising: bool = True,
        collapse: bool = True,
        ccp_alpha: float | str = 0.0,
        ccp_risk: str = "impurity",
        validation_fraction: float = 0.2,
        min_gain: float = 0.0,
        smoothing: float | str | None = None,
        class_weight: dict[Any, float] | str | None = None,
        max_bins: int = MAX_CODES,
        categorical_features: ArrayLike | str | None = "from_dtype",
        date_features: str | None = "auto",
        random_state: int | np.random.RandomState | None = None,
        trace: bool = False,
    ) -> None:
        self.min_samples_leaf = min_samples_leaf
        self.max_depth = max_depth
        self.pruning = pruning
        self.confidence = confidence
        self.raising = raising
        self.collapse = collapse
        self.ccp_alpha = ccp_alpha
        self.ccp_risk = ccp_risk
        self.validation_fraction = validation_fraction
        self.min_gain = min_gain
        self.smoothing = smoothing
        self.class_weight = class_weight
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.date_features = date_features
        self.random_state = random_state
        self.trace = trace

    @property
    def _criterion(self) -> str:
        """The impurity of the gains; tests are chosen by their ratio."""
        return "entropy"

    def _make_grower(self, schema: Schema, seed: int) -> TextbookGrower:  # noqa: ARG002
        params = TextbookParams(
            criterion="entropy",
            rule="c45",
            missing="every",
            min_samples_leaf=min(int(self.min_samples_leaf), 2**31 - 1),
        )
        return TextbookGrower(params, RowLimits(self.max_depth), self._labels, int(self.max_bins), self.collapse)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, trace: bool | None = None) -> Self:
        """Grow and prune the tree.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)
            Numbers; categories in a frame or as `categorical_features` says; missing values as NaN, None, NA
            or null.
        y : array-like (n_rows,)
            Classes of any type.
        sample_weight : array-like (n_rows,), optional
            Weights; rows of weight 0 are left out. A weight counts as so many rows: weights that sum to 1 are one row,
            and give a single leaf.
        trace : bool, optional
            Whether to keep a trace of the tree as `trace_`; by default as the parameter says.
        """
        return super().fit(X, y, sample_weight, trace=trace)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict class probabilities, shape (n_rows, n_classes).

        The class shares of the leaf, smoothed as `smoothing` says; where a value is missing, those of every branch, in
        proportion to the training rows that took it.
        """
        return super().predict_proba(X)
