"""ID3: a branch for each level of a category (Quinlan 1986), thresholds at midpoints on numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from spinney._criteria import GAIN_RATIO
from spinney._types import MAX_CODES
from spinney.estimators.base_tree import (
    GROWING_CONSTRAINTS,
    LEAF_CONSTRAINTS,
    TreeClassifier,
    TreeEstimator,
    TreeRegressor,
)
from spinney.estimators.growers import RowLimits, TextbookGrower
from spinney.estimators.pruning import CLASS_CONSTRAINTS, VALUE_CONSTRAINTS
from spinney.tree.textbook import TextbookParams

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from spinney.table.schema import Schema

ID3_CONSTRAINTS: dict[str, list[Any]] = {**GROWING_CONSTRAINTS, **LEAF_CONSTRAINTS, "trace": ["boolean"]}


def id3_grower(id3: Any) -> TextbookGrower:
    """How an ID3 estimator, which knows its classes, grows trees."""
    is_ratio = id3.criterion == GAIN_RATIO
    params = TextbookParams(
        criterion="entropy" if is_ratio else id3.criterion,
        rule="gain_ratio" if is_ratio else "gain",
        missing="branch",
        min_impurity_decrease=float(id3.min_impurity_decrease),
        min_weight_fraction_leaf=float(id3.min_weight_fraction_leaf),
    )
    limits = RowLimits(id3.max_depth, None, id3.min_samples_split, id3.min_samples_leaf)
    return TextbookGrower(params, limits, id3._labels, int(id3.max_bins))  # noqa: SLF001


class ID3Classifier(TreeClassifier, TreeEstimator):
    """Classification tree with a branch for each level of a category, as in textbooks.

    A category that was asked leaves the branch; a number is asked by a threshold, midway between neighbouring values
    of the node, and may be asked again. A branch that no row takes is a leaf with the majority of its parent. Tests
    without gain are made where rows still differ. Text, category and dictionary columns of a frame are categories;
    in an array every column is a number unless `categorical_features` says otherwise.

    Parameters
    ----------
    criterion : {"entropy", "gini", "gain_ratio"}, default="entropy"
        What a test is chosen by: the information gain, the decrease of the Gini index, or the gain divided by the
        entropy of the branches.
    max_depth : int, optional
        Most tests on a path.
    min_samples_split : int or float, default=2
        Fewest rows of a node that is split; a float is a fraction of all rows.
    min_samples_leaf : int or float, default=1
        Fewest rows of a branch that has any; a float is a fraction of all rows.
    min_weight_fraction_leaf : float, default=0.0
        Least share of the total weight in a branch that has any.
    min_impurity_decrease : float, default=0.0
        Least weighted impurity decrease of a test.
    pruning : {"cost_complexity", "reduced_error", "pessimistic", "min_gain", "merge"}, optional
        How the grown tree is pruned; by default it is not: by a cost of each leaf (`ccp_alpha`); by the errors on rows
        that were held out (`validation_fraction`); by bounds on the errors of its leaves, as C4.5 does (`confidence`,
        `raising`); by taking back splits of little gain (`min_gain`); by merging leaves that predict the same. `prune`
        does the same to a fitted tree.
    ccp_alpha : float or "cv", default=0.0
        Cost of a leaf in minimal cost-complexity pruning; more than 0 asks for it without `pruning`. "cv": the
        largest whose error in a tenfold cross-validation is within one standard error of the least.
    ccp_risk : {"impurity", "error"}, default="impurity"
        What a leaf costs besides: its impurity, as in scikit-learn, or its errors, as in rpart.
    validation_fraction : int or float, default=0.2
        Rows, or share of them, that "reduced_error" holds out, of each class in proportion.
    confidence : float, default=0.25
        Of the bounds of "pessimistic", up to 0.5; less prunes more.
    raising : bool, default=False
        Whether "pessimistic" may also put a node's heaviest branch in its place.
    min_gain : float, default=0.0
        Least weighted impurity decrease of a test that "min_gain" leaves at the end of a branch.
    class_weight : dict or "balanced", optional
        Weight of each class.
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
    A missing value is a value of its own: where a node's rows have one, it has one more branch for them. Where they
    have none, missing values and levels that fit has not seen take the heaviest branch.

    Examples
    --------
    >>> import spinney
    >>> table = spinney.datasets.load("play_tennis")
    >>> X, y = table.drop_columns(["play"]), table["play"]
    >>> tree = spinney.ID3Classifier().fit(X, y)
    >>> print(tree.tree_.to_text(max_depth=1))
    [yes] (14 rows: yes 9, no 5)
    ├─ outlook = overcast: yes (4 rows)
    ├─ outlook = rainy: [yes] (5 rows: yes 3, no 2) ...
    └─ outlook = sunny: [no] (5 rows: no 3, yes 2) ...
    """

    _counts_copies: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "criterion": [StrOptions({"entropy", "gini", "gain_ratio"})],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        **ID3_CONSTRAINTS,
        **CLASS_CONSTRAINTS,
    }

    def __init__(
        self,
        *,
        criterion: str = "entropy",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        pruning: str | None = None,
        ccp_alpha: float | str = 0.0,
        ccp_risk: str = "impurity",
        validation_fraction: float = 0.2,
        confidence: float = 0.25,
        raising: bool = False,
        min_gain: float = 0.0,
        class_weight: dict[Any, float] | str | None = None,
        max_bins: int = MAX_CODES,
        categorical_features: ArrayLike | str | None = "from_dtype",
        date_features: str | None = "auto",
        random_state: int | np.random.RandomState | None = None,
        trace: bool = False,
    ) -> None:
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.min_impurity_decrease = min_impurity_decrease
        self.pruning = pruning
        self.ccp_alpha = ccp_alpha
        self.ccp_risk = ccp_risk
        self.validation_fraction = validation_fraction
        self.confidence = confidence
        self.raising = raising
        self.min_gain = min_gain
        self.class_weight = class_weight
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.date_features = date_features
        self.random_state = random_state
        self.trace = trace

    def _make_grower(self, schema: Schema, seed: int) -> TextbookGrower:  # noqa: ARG002
        return id3_grower(self)


class ID3Regressor(TreeRegressor, TreeEstimator):
    """Regression tree with a branch for each level of a category, as in textbooks.

    A category that was asked leaves the branch; a number is asked by a threshold, midway between neighbouring values
    of the node, and may be asked again. A branch that no row takes is a leaf with the mean of its parent. Text,
    category and dictionary columns of a frame are categories; in an array every column is a number unless
    `categorical_features` says otherwise. Missing values have a branch of their own, as in `ID3Classifier`.

    Parameters
    ----------
    criterion : {"squared_error", "sdr"}, default="squared_error"
        What a test must lower: the variance, or the standard deviation (standard deviation reduction).
    max_depth : int, optional
        Most tests on a path.
    min_samples_split : int or float, default=2
        Fewest rows of a node that is split; a float is a fraction of all rows.
    min_samples_leaf : int or float, default=1
        Fewest rows of a branch that has any; a float is a fraction of all rows.
    min_weight_fraction_leaf : float, default=0.0
        Least share of the total weight in a branch that has any.
    min_impurity_decrease : float, default=0.0
        Least weighted impurity decrease of a test.
    pruning : {"cost_complexity", "reduced_error", "min_gain", "merge"}, optional
        How the grown tree is pruned; by default it is not: by a cost of each leaf (`ccp_alpha`); by the squared errors
        on rows that were held out (`validation_fraction`); by taking back splits of little gain (`min_gain`); by
        merging leaves that predict the same. `prune` does the same to a fitted tree.
    ccp_alpha : float or "cv", default=0.0
        Cost of a leaf in minimal cost-complexity pruning; more than 0 asks for it without `pruning`. "cv": the
        largest whose error in a tenfold cross-validation is within one standard error of the least.
    ccp_risk : {"impurity", "error"}, default="impurity"
        What a leaf costs besides: its impurity or its squared errors, which differ for "sdr" only.
    validation_fraction : int or float, default=0.2
        Rows, or share of them, that "reduced_error" holds out.
    min_gain : float, default=0.0
        Least weighted impurity decrease of a test that "min_gain" leaves at the end of a branch.
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
    n_features_in_, n_outputs_ : int
    feature_names_in_ : array of str, if X had names
    feature_importances_ : array (n_features,)
    pruning_ : PruningReport or None
        What pruning has done: leaves, depth and error before and after.
    cv_results_ : dict of arrays, if `ccp_alpha="cv"`
        `alpha`, `n_leaves`, `error` and `standard_error` of each subtree of the sequence; `ccp_alpha_` was chosen.

    Examples
    --------
    >>> from spinney import ID3Regressor
    >>> X = [["red", 1], ["red", 2], ["blue", 1], ["green", 5]]
    >>> tree = ID3Regressor(categorical_features=[0], max_depth=1).fit(X, [10, 14, 20, 30])
    >>> tree.predict([["red", 0], ["blue", 0], ["green", 0]]).tolist()
    [12.0, 20.0, 30.0]
    """

    _counts_copies: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "criterion": [StrOptions({"squared_error", "sdr"})],  # those that `kernels.textbook` knows
        **ID3_CONSTRAINTS,
        **VALUE_CONSTRAINTS,
    }

    def __init__(
        self,
        *,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        pruning: str | None = None,
        ccp_alpha: float | str = 0.0,
        ccp_risk: str = "impurity",
        validation_fraction: float = 0.2,
        min_gain: float = 0.0,
        max_bins: int = MAX_CODES,
        categorical_features: ArrayLike | str | None = "from_dtype",
        date_features: str | None = "auto",
        random_state: int | np.random.RandomState | None = None,
        trace: bool = False,
    ) -> None:
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.min_impurity_decrease = min_impurity_decrease
        self.pruning = pruning
        self.ccp_alpha = ccp_alpha
        self.ccp_risk = ccp_risk
        self.validation_fraction = validation_fraction
        self.min_gain = min_gain
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.date_features = date_features
        self.random_state = random_state
        self.trace = trace

    def _make_grower(self, schema: Schema, seed: int) -> TextbookGrower:  # noqa: ARG002
        return id3_grower(self)
