"""Extremely randomised trees (Geurts, Ernst and Wehenkel 2006)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from spinney._types import MAX_CODES
from spinney.estimators.base_forest import BaseForest
from spinney.estimators.forest_classifier import CLASSIFIER_CONSTRAINTS, ForestClassifier
from spinney.estimators.forest_regressor import REGRESSOR_CONSTRAINTS, ForestRegressor

if TYPE_CHECKING:
    import os

    import numpy as np
    from numpy.typing import ArrayLike


class ExtraTreesClassifier(ForestClassifier, BaseForest):
    """Extremely randomised trees for classes: one random test per drawn feature (Geurts, Ernst and Wehenkel 2006).

    A node draws `max_features` features that are not constant in it, and one test for each: a threshold anywhere
    between the lowest and the highest value, or for a category a random part of its levels. The best of these tests
    is taken. `max_features=1` gives totally randomised trees.

    Parameters
    ----------
    bootstrap : bool or "poisson", default=False
        Draw a bag of rows for each tree; by default every tree sees all rows.
    min_samples_split : int or float, default=2
        The n_min of the paper.
    max_features : int, float, {"sqrt", "log2", "third"} or None, default="sqrt"
        The K of the paper: tests drawn per node.
    ties : {"random", "first"}, default="random"
        Among tests of equal gain take one at random, or that of the first feature.
    n_estimators, criterion, max_depth, min_samples_leaf, min_weight_fraction_leaf, min_impurity_decrease
        As in `RandomForestClassifier`.
    max_leaf_nodes, replace, max_samples, stratify, block_size, oob_score, honest, honest_fraction, pruning, ccp_alpha
        As in `RandomForestClassifier`; out-of-bag rows need `bootstrap=True`, or `replace=False` with `max_samples`.
    voting, class_weight, missing, max_bins, monotonic_cst, categorical_features, n_jobs, random_state, verbose
        As in `RandomForestClassifier`.
    date_features, warm_start, checkpoint
        As in `RandomForestClassifier`.

    Attributes
    ----------
    forest_, estimators_, estimators_samples_, classes_, n_classes_, feature_importances_, oob_score_
        As in `RandomForestClassifier`.
    oob_decision_function_, oob_curve_, n_features_in_, n_outputs_, max_features_, feature_names_in_
        As in `RandomForestClassifier`.

    Examples
    --------
    >>> from spinney import ExtraTreesClassifier
    >>> X = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> forest = ExtraTreesClassifier(n_estimators=20, random_state=0).fit(X, ["no", "yes", "yes", "no"])
    >>> forest.predict(X).tolist()
    ['no', 'yes', 'yes', 'no']
    """

    _has_random_tests: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CLASSIFIER_CONSTRAINTS

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "gini",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        max_leaf_nodes: int | None = None,
        max_features: float | str | None = "sqrt",
        bootstrap: bool | str = False,
        replace: bool = True,
        max_samples: float | None = None,
        stratify: str | None = None,
        block_size: int | None = None,
        oob_score: bool | str | Any = False,
        honest: bool = False,
        honest_fraction: float = 0.5,
        pruning: str | None = None,
        ccp_alpha: float = 0.0,
        voting: str = "soft",
        class_weight: dict[Any, float] | str | None = None,
        missing: str = "learned",
        ties: str = "random",
        max_bins: int = MAX_CODES,
        monotonic_cst: ArrayLike | dict[str, int] | None = None,
        categorical_features: ArrayLike | str | None = "from_dtype",
        date_features: str | None = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.min_impurity_decrease = min_impurity_decrease
        self.max_leaf_nodes = max_leaf_nodes
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.replace = replace
        self.max_samples = max_samples
        self.stratify = stratify
        self.block_size = block_size
        self.oob_score = oob_score
        self.honest = honest
        self.honest_fraction = honest_fraction
        self.pruning = pruning
        self.ccp_alpha = ccp_alpha
        self.voting = voting
        self.class_weight = class_weight
        self.missing = missing
        self.ties = ties
        self.max_bins = max_bins
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.date_features = date_features
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.checkpoint = checkpoint


class ExtraTreesRegressor(ForestRegressor, BaseForest):
    """Extremely randomised trees for numbers: one random test per drawn feature (Geurts, Ernst and Wehenkel 2006).

    See `ExtraTreesClassifier` for the tests.

    Parameters
    ----------
    bootstrap, min_samples_split, ties
        As in `ExtraTreesClassifier`.
    max_features : int, float, {"sqrt", "log2", "third"} or None, default=1.0
        The K of the paper: tests drawn per node; one for every feature by default.
    criterion, min_target_std, oob_score, monotonic_cst, keep_members
        As in `RandomForestRegressor`.
    n_estimators, max_depth, min_samples_leaf, min_weight_fraction_leaf, min_impurity_decrease, max_leaf_nodes, replace
        As in `RandomForestClassifier`.
    max_samples, block_size, honest, honest_fraction, pruning, ccp_alpha, missing, max_bins, categorical_features
        As in `RandomForestClassifier`.
    date_features, n_jobs, random_state, verbose, warm_start, checkpoint
        As in `RandomForestClassifier`.

    Attributes
    ----------
    forest_, estimators_, estimators_samples_, feature_importances_, oob_score_, oob_prediction_, oob_curve_
        As in `RandomForestRegressor`.
    n_features_in_, n_outputs_, max_features_, feature_names_in_
        As in `RandomForestRegressor`.

    Examples
    --------
    >>> from spinney import ExtraTreesRegressor
    >>> X = [[0.0], [1.0], [2.0], [3.0]]
    >>> forest = ExtraTreesRegressor(n_estimators=20, random_state=0).fit(X, [0.0, 1.0, 4.0, 9.0])
    >>> forest.predict(X).tolist()
    [0.0, 1.0, 4.0, 9.0]
    """

    _has_random_tests: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = REGRESSOR_CONSTRAINTS

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        criterion: str = "squared_error",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        min_target_std: float = 0.0,
        max_leaf_nodes: int | None = None,
        max_features: float | str | None = 1.0,
        bootstrap: bool | str = False,
        replace: bool = True,
        max_samples: float | None = None,
        block_size: int | None = None,
        oob_score: bool | str | Any = False,
        honest: bool = False,
        honest_fraction: float = 0.5,
        pruning: str | None = None,
        ccp_alpha: float = 0.0,
        missing: str = "learned",
        ties: str = "random",
        max_bins: int = MAX_CODES,
        monotonic_cst: ArrayLike | dict[str, int] | None = None,
        categorical_features: ArrayLike | str | None = "from_dtype",
        date_features: str | None = "auto",
        keep_members: bool = False,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.min_impurity_decrease = min_impurity_decrease
        self.min_target_std = min_target_std
        self.max_leaf_nodes = max_leaf_nodes
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.replace = replace
        self.max_samples = max_samples
        self.block_size = block_size
        self.oob_score = oob_score
        self.honest = honest
        self.honest_fraction = honest_fraction
        self.pruning = pruning
        self.ccp_alpha = ccp_alpha
        self.missing = missing
        self.ties = ties
        self.max_bins = max_bins
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.date_features = date_features
        self.keep_members = keep_members
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.checkpoint = checkpoint
