"""Random forests for classes and numbers (Breiman 2001)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from spinney._types import MAX_CODES
from spinney.estimators.base_forest import BaseForest
from spinney.estimators.cart import PENALTY_CONSTRAINTS
from spinney.estimators.forest_classifier import CLASSIFIER_CONSTRAINTS, ForestClassifier
from spinney.estimators.forest_regressor import REGRESSOR_CONSTRAINTS, ForestRegressor
from spinney.estimators.stand_ins import stand_for

if TYPE_CHECKING:
    import os

    import numpy as np
    from numpy.typing import ArrayLike


class RandomForestClassifier(ForestClassifier, BaseForest):
    """Random forest for classes: trees on bags of rows, with features drawn for every node (Breiman 2001).

    Takes what single trees take: arrays, frames, sparse matrices, text and category columns, missing values, weights.
    The same forest comes out for any number of threads. Rows left out of a tree's bag test it: see `oob_score`.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    criterion : {"gini", "entropy", "misclassification"}, default="gini"
        Impurity that a test must lower; "log_loss" is another name of "entropy".
    max_depth : int, optional
        Most tests on a path; full depth by default.
    min_samples_split : int or float, default=2
        Fewest rows of a node that is split, a row of the bag counting once; a float is a fraction of all rows.
    min_samples_leaf : int or float, default=1
        Fewest rows of a leaf; a float is a fraction of all rows.
    min_weight_fraction_leaf : float, default=0.0
        Least share of the weight of the bag in a leaf.
    min_impurity_decrease : float, default=0.0
        Least weighted impurity decrease of a test.
    max_leaf_nodes : int, optional
        Grow best first, up to this many leaves.
    max_features : int, float, {"sqrt", "log2", "third"} or None, default="sqrt"
        Features drawn per node; a float is a share of them, None means all.
    bootstrap : bool or "poisson", default=True
        Draw a bag of rows for each tree. "poisson" draws the count of each row by itself, for tables that are read
        in parts; False gives every tree all rows.
    replace : bool, default=True
        Draw with replacement. False draws without (pasting), also where `bootstrap` is False.
    max_samples : int or float, optional
        Rows (groups, with `groups`) drawn for a bag: a number, or a fraction; as many as there are by default.
        More than there are can be drawn with replacement. With sample weights a fraction is one of their sum, as in
        scikit-learn.
    stratify : {"class", "balanced"}, optional
        Draw from every class in proportion to its rows, or as many from each class as the smallest has.
    block_size : int, optional
        Draw blocks of this many rows, one after the other in the table, instead of rows: for time series.
    oob_score : bool, str or callable, default=False
        Keep what trees predict for rows outside their bag and score it: by accuracy (True), a scorer of scikit-learn or
        its name, or metric(y_true, y_pred). Rows of weight 0, and rows in every bag, do not count.
    honest : bool, default=False
        Choose the tests by one part of the bag and take the leaf values from the other; no leaf is without them.
        Not with `monotonic_cst`, which such values need not obey.
    honest_fraction : float, default=0.5
        Share of the bag that chooses the tests.
    pruning : "oob", optional
        Prune each tree on the rows outside its bag (reduced error). Out-of-bag scores are then too good: the rows that
        test a tree have shaped it.
    ccp_alpha : float, default=0.0
        Cost of a leaf in minimal cost-complexity pruning of each tree.
    voting : {"soft", "hard"}, default="soft"
        Average the class shares of the leaves, or count one vote a tree.
    class_weight : dict, list of dicts, "balanced" or "balanced_subsample", optional
        Weight of each class, times `sample_weight`; "balanced_subsample" balances every bag by itself, the others
        make a bootstrap draw more rows of a class. Of several outputs one for each, which are multiplied.
    missing : {"learned", "branch"}, default="learned"
        Missing values take the branch where they help most, or a branch of their own.
    ties : {"random", "first"}, default="random"
        Among tests of equal gain take that of a feature drawn at random or of the first one; its lowest threshold.
    max_bins : int, default=65535
        Most distinct values of a numeric column that are kept apart; beyond, they are binned by quantiles.
    monotonic_cst : array-like of {-1, 0, 1} or dict, optional
        Direction in which each numeric feature may move the probability of the second class; two classes only.
    cat_penalty : float or "auto", default="auto"
        How much of the gain that the levels of a category have by chance is taken off that of a subset of them: the
        more levels, and the fewer rows each, the more. "auto": all of it (1) where the column has more than four
        levels, nothing where it has fewer; a number counts for every category. 0: exact subsets, as in Breiman et
        al. (1984), which a column of many levels that says nothing can mislead. Not by misclassification, whose gains
        are not corrected.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Which columns are categories: by dtype, or as mask, indices or names.
    date_features : {"auto"}, optional
        Columns of dates and times in a frame: with "auto" each is read as its year, month, weekday, days since the
        first and hour, named such as `sold.month`; None: they are refused.
    n_jobs : int, optional
        Most threads; -1 means one per processor. By default as many as the work pays for. Results never depend on it.
    random_state : int, RandomState or None
        Seed; a RandomState is drawn from once.
    verbose : int, default=0
        Show progress.
    warm_start : bool, default=False
        Keep the trees of the last fit, and grow what is missing of `n_estimators`: on the same data the same forest as
        one grown at once. Other rows of the same columns, levels and classes may be given: then nothing that needs the
        bags of all trees can be asked for (`oob_score`, `keep_members`, importances by rows).
    checkpoint : path, optional
        A folder that the trees grown so far are kept in while a fit runs. A fit of the same data with the same
        parameters goes on from there and gives the same model. It is removed when the fit is done, and no model has it.

    Attributes
    ----------
    forest_ : Forest
        The trees as arrays; `forest_[t].to_text()` draws one.
    estimators_ : list of CARTClassifier
        The trees as estimators, made when asked for.
    estimators_samples_ : list of int32 arrays
        The bag of each tree as row ids, recomputed when asked for.
    classes_ : array (n_classes,), or a list of such for several outputs, of which `n_classes_` is a list too
        The classes in y, ascending; also those whose rows all have weight 0.
    n_classes_, n_features_in_, n_outputs_, max_features_ : int
    feature_names_in_ : array of str, if X had names
    feature_importances_ : array (n_features,)
        Mean impurity decrease, scaled to sum 1.
    oob_score_ : float, with `oob_score`
    oob_decision_function_ : array (n_rows, n_classes), with `oob_score`
        Class shares by the trees that have not seen the row; NaN where every tree has.
    oob_curve_ : array (n_estimators,), with `oob_score`
        Share of wrong out-of-bag predictions after 1, 2, ... trees.

    Examples
    --------
    >>> from spinney import RandomForestClassifier, datasets
    >>> table = datasets.load("play_tennis")
    >>> X, y = table.drop_columns(["play"]), table["play"].to_pylist()
    >>> forest = RandomForestClassifier(n_estimators=50, oob_score=True, random_state=0).fit(X, y)
    >>> forest.predict(X.slice(0, 3)).tolist()
    ['no', 'no', 'yes']
    >>> len(forest.estimators_), forest.oob_decision_function_.shape
    (50, (14, 2))
    """

    _has_random_tests: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**CLASSIFIER_CONSTRAINTS, **PENALTY_CONSTRAINTS}

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
        bootstrap: bool | str = True,
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
        cat_penalty: float | str = "auto",
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
        self.cat_penalty = cat_penalty
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.checkpoint = checkpoint


@stand_for("RandomForestRegressor")
class RandomForestRegressor(ForestRegressor, BaseForest):
    """Random forest for numbers: the mean of trees on bags of rows (Breiman 2001).

    Parameters
    ----------
    criterion : {"squared_error", "sdr", "poisson", "absolute_error"}, default="squared_error"
        Squared error, standard deviation reduction, half the Poisson deviance, for counts and rates (y >= 0), or the
        absolute error, by which leaves hold the median of their rows; "friedman_mse" is another name of
        "squared_error".
    min_target_std : float, default=0.0
        A node whose target has a smaller standard deviation becomes a leaf.
    max_features : int, float, {"sqrt", "log2", "third"} or None, default=1.0
        Features drawn per node; all by default.
    oob_score : bool, str or callable, default=False
        As in `RandomForestClassifier`; True scores by R2.
    monotonic_cst : array-like of {-1, 0, 1} or dict, optional
        Direction in which each numeric feature may move the prediction.
    keep_members : bool, default=False
        Keep which rows make the value of each leaf, 4 bytes a row and tree, for `predict_quantiles`.
    n_estimators, max_depth, min_samples_split, min_samples_leaf, min_weight_fraction_leaf, min_impurity_decrease
        As in `RandomForestClassifier`.
    max_leaf_nodes, bootstrap, replace, max_samples, block_size, honest, honest_fraction, pruning, ccp_alpha, missing
        As in `RandomForestClassifier`.
    ties, max_bins, categorical_features, date_features, cat_penalty, n_jobs, random_state, verbose, warm_start
        As in `RandomForestClassifier`.
    checkpoint
        As in `RandomForestClassifier`.

    Attributes
    ----------
    forest_, estimators_, estimators_samples_, feature_importances_, feature_names_in_, oob_score_
        As in `RandomForestClassifier`.
    n_features_in_, n_outputs_, max_features_ : int
    oob_prediction_ : array (n_rows,), with `oob_score`
        Mean over the trees that have not seen the row; NaN where every tree has.
    oob_curve_ : array (n_estimators,), with `oob_score`
        Mean squared error of the out-of-bag predictions after 1, 2, ... trees.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import RandomForestRegressor
    >>> X = np.linspace(0.0, 1.0, 200)[:, None]
    >>> forest = RandomForestRegressor(n_estimators=50, random_state=0).fit(X, X[:, 0] ** 2)
    >>> forest.predict([[0.5]]).round(1).tolist()
    [0.2]
    """

    _has_random_tests: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {**REGRESSOR_CONSTRAINTS, **PENALTY_CONSTRAINTS}

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
        bootstrap: bool | str = True,
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
        cat_penalty: float | str = "auto",
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
        self.cat_penalty = cat_penalty
        self.keep_members = keep_members
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.checkpoint = checkpoint
