"""CART: binary trees for classes and numbers (Breiman, Friedman, Olshen and Stone 1984)."""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from spinney._criteria import CLASS_CRITERIA, CRITERIA, GAIN_RATIO, VALUE_CRITERIA, own_name, with_aliases
from spinney._jit import kernels
from spinney._types import MAX_CODES
from spinney.estimators.base_tree import (
    GROWING_CONSTRAINTS,
    LEAF_CONSTRAINTS,
    TreeClassifier,
    TreeEstimator,
    TreeRegressor,
)
from spinney.estimators.cart_by_levels import plan_cart
from spinney.estimators.checks import NO_MONOTONE, check_monotone, is_member_seed
from spinney.estimators.growers import MISSING, CartGrower, RowLimits, TreeTraining
from spinney.estimators.kept import Kept
from spinney.estimators.parameters import parameter
from spinney.estimators.pruning import CLASS_CONSTRAINTS, VALUE_CONSTRAINTS
from spinney.estimators.stand_ins import average_forest, stand_for
from spinney.estimators.training import TrainingData, check_range, refuse_asked
from spinney.table.schema import Schema, encode, refuse_infinite
from spinney.table.sparse import fill_in
from spinney.tree.grow_params import GrowParams
from spinney.tree.linear import LeafRows, LinearParams, fit_leaves
from spinney.tree.predict import find_leaves
from spinney.tree.structure import Tree
from spinney.tree.surrogates import surrogate_importances

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from spinney.scale.plan import TopGrowing


PRODUCT_SECONDS = 4e-7  # of two numbers, interpreted


SHARED_CONSTRAINTS: dict[str, list[Any]] = {
    **GROWING_CONSTRAINTS,
    **LEAF_CONSTRAINTS,
    "max_leaf_nodes": [Interval(Integral, 2, None, closed="left"), None],
    "max_features": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="right"),
        StrOptions({"sqrt", "log2", "third"}),
        None,
    ],
    "ccp_alpha": [Interval(Real, 0.0, None, closed="left")],  # of forests; single trees take more
    "missing": [StrOptions({"learned", "branch"})],
    "ties": [StrOptions({"first", "random"})],
    "monotonic_cst": ["array-like", dict, None],
}


# of single trees; a forest cannot hold surrogates
MISSING_CONSTRAINTS: dict[str, list[Any]] = {
    "splitter": [StrOptions({"best", "random"})],
    "missing": [StrOptions(set(MISSING))],
    "max_surrogates": [Interval(Integral, 0, None, closed="left")],
}
PENALTY_CONSTRAINTS: dict[str, list[Any]] = {
    "cat_penalty": [Interval(Real, 0.0, None, closed="left"), StrOptions({"auto"})]
}
OUTPUT_CRITERIA = ("gini", "entropy")  # of several outputs of classes
FREE_LEVELS = 4  # by "auto": a lecture's categories, of which at most seven subsets are tried


def count_features(wanted: Any, n_features: int) -> int:
    """How many features a node draws."""
    if wanted is None:
        return n_features
    if wanted == "sqrt":
        return max(1, math.isqrt(n_features))
    if wanted == "log2":
        return max(1, n_features.bit_length() - 1)
    if wanted == "third":
        return max(1, n_features // 3)
    if isinstance(wanted, int | np.integer):
        return min(int(wanted), n_features)
    return max(1, int(float(wanted) * n_features))


def find_count_fault(max_features: int, _: Any) -> str | None:
    """A node draws features."""
    return None if max_features >= 1 else "a node draws at least one feature"


CART_KEEPS: dict[str, Kept] = {"max_features_": Kept(int, is_needed=False, check=find_count_fault)}


# --- how CART grows ---


def tree_limits(model: Any) -> RowLimits:
    """Limits by the parameters of a CART estimator, a forest or a boosted model."""
    return RowLimits(model.max_depth, model.max_leaf_nodes, model.min_samples_split, model.min_samples_leaf)


def cart_params(cart: Any, n_rows: int, n_features: int, seed: int = 0) -> GrowParams:
    """The parameters of a CART estimator for so many rows and features."""
    return replace(unlimited_params(cart, n_features, seed), **tree_limits(cart).for_rows(n_rows))


def unlimited_params(cart: Any, n_features: int, seed: int) -> GrowParams:
    """Parameters that do not depend on rows, as Python's own numbers: a kernel is compiled per type.

    A member of an ensemble that is fitted again, by the seed it has, grows as it did there.
    """
    is_random, is_member = has_random_tests(cart), is_member_seed(cart.random_state)
    params = GrowParams(
        criterion=own_name(cart.criterion),
        missing=MISSING[cart.missing],
        max_surrogates=min(int(cart.max_surrogates), n_features),
        min_weight_fraction_leaf=float(cart.min_weight_fraction_leaf),
        min_impurity_decrease=float(cart.min_impurity_decrease),
        min_target_std=float(parameter(cart, "min_target_std", 0.0)),
        max_features=None if cart.max_features is None else count_features(cart.max_features, n_features),
        has_random_ties=cart.ties == "random" and not (is_random or is_member),
        has_random_feature_order=cart.ties == "random" and (is_random or is_member),
        has_random_tests=is_random,
        **level_guard(cart),
        seed=seed,
    )
    return replace(params, cat_margin=0.0) if is_member else params


def has_random_tests(cart: Any) -> bool:
    """Whether a CART estimator draws one test of each feature; it then refuses what needs every test."""
    if cart.splitter == "best":
        return False
    name = type(cart).__name__
    if cart.criterion == GAIN_RATIO:
        raise ValueError(f"{name}: splitter='random' and criterion='gain_ratio' exclude each other: use one")
    if cart.missing == "surrogate":
        raise ValueError(f"{name}: splitter='random' and missing='surrogate' exclude each other: use one")
    return True


def level_guard(model: Any) -> dict[str, Any]:
    """The parameters of a tree that say which categories pay for chance, and how much; random tests pay nothing."""
    is_random = parameter(model, "splitter", "best") == "random"
    penalty = 0.0 if is_random else parameter(model, "cat_penalty", 0.0)
    if penalty == "auto":
        return {"cat_penalty": 1.0, "free_levels": FREE_LEVELS}
    return {"cat_penalty": float(penalty), "free_levels": 0}


def cart_grower(cart: Any, schema: Schema, seed: int) -> CartGrower:
    """How a CART estimator, which knows its classes, grows trees of these columns."""
    return CartGrower(
        unlimited_params(cart, schema.n_features, seed),
        tree_limits(cart),
        cart._labels,  # noqa: SLF001
        int(cart.max_bins),
        check_monotone(cart.monotonic_cst, cart, schema),
    )


def make_tree_estimator(cart: Any, tree: Tree, schema: Schema, classes: Any, max_features: int) -> Any:
    """A tree of an ensemble as an estimator of its own: `cart`, which is not fitted yet, with this tree.

    schema: of the columns that the tree has seen; classes: (n_classes,), a list of such, or None for numbers;
    max_features: how many features each node has drawn.
    """
    values: dict[str, Any] = {
        "tree_": tree,
        "_schema": schema,
        "n_features_in_": schema.n_columns,
        "n_outputs_": tree.n_outputs,
        "max_features_": max_features,
    }
    if schema.column_names is not None:
        values["feature_names_in_"] = np.array(schema.column_names, dtype=object)
    if classes is not None:
        is_several = isinstance(classes, list)
        values |= {
            "classes_": classes,
            "n_classes_": [len(each) for each in classes] if is_several else len(classes),
        }
    cart._set_fitted(values)  # noqa: SLF001
    return cart


def grows_in_forests(estimator: Any, kind: Any) -> bool:
    """Whether an estimator is a CART tree of this kind whose fit is `grow_tree` and `ccp_alpha` alone.

    Bagging and AdaBoost grow such trees on codes that are made once.
    """
    if type(estimator) is not kind:
        return False
    is_cut_alike = estimator.pruning in {None, "cost_complexity"} and estimator.ccp_alpha != "cv"
    has_plain_nodes = estimator.missing != "surrogate" and parameter(estimator, "leaf_model", None) is None
    return is_cut_alike and estimator.ccp_risk == "impurity" and has_plain_nodes


def is_fast(templates: list[Any], kind: Any) -> bool:
    """Whether the members of an ensemble are CART trees of one kind, which grow as a forest does."""
    return len(templates) == 1 and grows_in_forests(templates[0].estimator, kind)


def read_surrogate_importances(cart: Any) -> NDArray[np.float64]:
    """Improvement by the tests and surrogates of each feature, scaled to sum 1, shape (n_features,).

    rpart's importance: what a test improves over the rows of known value counts for its feature, and for the
    feature of each surrogate the same times `adjusted`. Needs `missing="surrogate"`.
    """
    tree = cart._find_fitted().tree  # noqa: SLF001
    if tree.surrogates is None:
        raise AttributeError('surrogate_importances_ are there after a fit with missing="surrogate"')
    return surrogate_importances(tree)


@stand_for("DecisionTreeClassifier")
class CARTClassifier(TreeClassifier, TreeEstimator):
    """Classification tree with binary tests: thresholds on numbers, subsets of the levels of categories.

    Takes arrays, lists and frames; text, category and dictionary columns of a frame are categories; missing
    values need no preparation, and infinite ones are the largest and smallest numbers. The same tree comes
    out for any order of the rows, and a row of weight 2 counts as two rows, exactly.

    Parameters
    ----------
    criterion : {"gini", "entropy", "gain_ratio", "misclassification"}, default="gini"
        Impurity that a test must lower. "gain_ratio" divides the gain in entropy by the entropy of the branches
        (split information): each feature proposes its test of largest gain, and of those with at least the
        average gain the largest ratio wins, as in C4.5; a ratio alone would cut off a few rows at a time.
        Growing by misclassification is offered for teaching: it often sees no gain. "log_loss" is another name
        of "entropy".
    splitter : {"best", "random"}, default="best"
        Try every test of a feature, or one that is drawn, as extra-trees do: a threshold between the least and the
        largest value of the node's rows, a set of levels.
    max_depth : int, optional
        Most tests on a path.
    min_samples_split : int or float, default=2
        Fewest rows of a node that is split; a float is a fraction of all rows.
    min_samples_leaf : int or float, default=1
        Fewest rows of a leaf; a float is a fraction of all rows.
    min_weight_fraction_leaf : float, default=0.0
        Least share of the total weight in a leaf.
    min_impurity_decrease : float, default=0.0
        Least weighted impurity decrease of a test. With 0, tests without gain are made where rows still
        differ.
    max_leaf_nodes : int, optional
        Grow best first, up to this many leaves.
    max_features : int, float, {"sqrt", "log2", "third"}, optional
        Features drawn per node; all by default.
    pruning : {"cost_complexity", "reduced_error", "pessimistic", "min_gain", "merge"}, optional
        How the grown tree is pruned: by a cost of each leaf (`ccp_alpha`); by the errors on rows that were held out
        (`validation_fraction`); by bounds on the errors of its leaves, as C4.5 does (`confidence`, `raising`); by
        taking back splits of little gain (`min_gain`); by merging leaves that predict the same. `prune` does the
        same to a fitted tree.
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
    class_weight : dict, list of dicts or "balanced", optional
        Weight of each class; of several outputs one for each, which are multiplied.
    missing : {"learned", "branch", "surrogate"}, default="learned"
        Missing values take the branch where they help most, or a branch of their own. Where a node saw none,
        they take the heavier branch; so do levels of a category that were not seen in fit. "surrogate" does as
        rpart: a test is judged by the rows whose value is known, and rows whose value is missing go by other
        features that part the known rows most alike, the first of them that is known, else to the heavier
        branch. `tree_.surrogates` holds them. A surrogate must send at least two rows to either side; as with
        `min_samples_leaf`, a row of weight 2 is one row there.
    max_surrogates : int, default=5
        Most surrogates of a node; 0: missing values take the heavier branch.
    ties : {"first", "random"}, default="first"
        Among tests of equal gain take the first feature and lowest threshold, or draw one.
    max_bins : int, default=65535
        Most distinct values of a numeric column that are kept apart; beyond, they are binned by quantiles.
    monotonic_cst : array-like of {-1, 0, 1} or dict, optional
        Direction in which each numeric feature may move the probability of the second class; two classes
        only.
    cat_penalty : float or "auto", default="auto"
        How much of the gain that the levels of a category have by chance is taken off that of a subset of them: the
        more levels, and the fewer rows each, the more. "auto": all of it (1) where the column has more than four
        levels, nothing where it has fewer; a number counts for every category. 0: exact subsets, as in Breiman et
        al. (1984), which a column of many levels that says nothing can mislead. Not by misclassification, whose gains
        are not corrected.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Which columns are categories: by dtype, or as mask, indices or names. A category has at most 65,535
        levels.
    date_features : {"auto"}, optional
        Columns of dates and times in a frame: with "auto" each is read as its year, month, weekday, days since the
        first and hour, named such as `sold.month`; None: they are refused.
    random_state : int, RandomState or None
        Seed for `max_features`, `ties="random"` and the rows that pruning holds out; a RandomState is drawn from once
        per fit that needs it.
    trace : bool, default=False
        Whether `fit` keeps a trace of the tree; see `spinney.trace`.

    Attributes
    ----------
    tree_ : SklearnView
        The grown tree by scikit-learn's names (`children_left`, `threshold`, `value`, ...); `tree_.to_text()`
        draws it, `tree_.arrays` has our own arrays.
    trace_ : Trace, with `trace=True`
        Every test that each node could have asked, and why the one asked won; print it.
    classes_ : array (n_classes,), or a list of such for several outputs, of which `n_classes_` is a list too
        The classes in y, ascending; also those whose rows all have weight 0.
    n_classes_, n_features_in_, n_outputs_, max_features_ : int
    feature_names_in_ : array of str, if X had names
    feature_importances_ : array (n_features,)
    surrogate_importances_ : array (n_features,), with `missing="surrogate"`
    pruning_ : PruningReport or None
        What pruning has done: leaves, depth and error before and after.
    cv_results_ : dict of arrays, if `ccp_alpha="cv"`
        `alpha`, `n_leaves`, `error` and `standard_error` of each subtree of the sequence; `ccp_alpha_` was chosen.

    Examples
    --------
    >>> from spinney import CARTClassifier
    >>> X = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> tree = CARTClassifier().fit(X, ["no", "yes", "yes", "no"])
    >>> tree.predict(X).tolist()
    ['no', 'yes', 'yes', 'no']
    >>> print(tree.tree_.to_text(max_depth=1))
    [no] (4 rows: no 2, yes 2)
    ├─ x0 <= 0.5: [no] (2 rows: no 1, yes 1) ...
    └─ x0 > 0.5: [no] (2 rows: no 1, yes 1) ...
    """

    _keeps: ClassVar[dict[str, Kept]] = CART_KEEPS
    _grows_from_disk: ClassVar[bool] = True
    _takes_outputs: ClassVar[bool] = True
    surrogate_importances_ = property(read_surrogate_importances)
    max_features_: int

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "criterion": [StrOptions({*with_aliases(CLASS_CRITERIA), GAIN_RATIO})],
        "class_weight": [dict, list, StrOptions({"balanced"}), None],
        "trace": ["boolean"],
        **SHARED_CONSTRAINTS,
        **MISSING_CONSTRAINTS,
        **PENALTY_CONSTRAINTS,
        **CLASS_CONSTRAINTS,
    }

    def __init__(
        self,
        *,
        criterion: str = "gini",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        max_leaf_nodes: int | None = None,
        max_features: float | str | None = None,
        pruning: str | None = None,
        ccp_alpha: float | str = 0.0,
        ccp_risk: str = "impurity",
        validation_fraction: float = 0.2,
        confidence: float = 0.25,
        raising: bool = False,
        min_gain: float = 0.0,
        class_weight: dict[Any, float] | str | None = None,
        missing: str = "learned",
        max_surrogates: int = 5,
        ties: str = "first",
        max_bins: int = MAX_CODES,
        monotonic_cst: ArrayLike | dict[str, int] | None = None,
        categorical_features: ArrayLike | str | None = "from_dtype",
        date_features: str | None = "auto",
        cat_penalty: float | str = "auto",
        random_state: int | np.random.RandomState | None = None,
        trace: bool = False,
    ) -> None:
        self.criterion = criterion
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.min_impurity_decrease = min_impurity_decrease
        self.max_leaf_nodes = max_leaf_nodes
        self.max_features = max_features
        self.pruning = pruning
        self.ccp_alpha = ccp_alpha
        self.ccp_risk = ccp_risk
        self.validation_fraction = validation_fraction
        self.confidence = confidence
        self.raising = raising
        self.min_gain = min_gain
        self.class_weight = class_weight
        self.missing = missing
        self.max_surrogates = max_surrogates
        self.ties = ties
        self.max_bins = max_bins
        self.monotonic_cst = monotonic_cst
        self.categorical_features = categorical_features
        self.date_features = date_features
        self.cat_penalty = cat_penalty
        self.random_state = random_state
        self.trace = trace

    def _make_grower(self, schema: Schema, seed: int) -> CartGrower:
        return cart_grower(self, schema, seed)

    def _level_growing(self) -> TopGrowing:
        """How the tree is grown from disk, where memory cannot hold the rows."""
        return plan_cart(self, count_features)

    def _set_counts(self, n_features: int) -> None:
        super()._set_counts(n_features)
        self.max_features_ = count_features(self.max_features, n_features)

    def _check_training(self, data: TrainingData) -> None:
        """Several outputs of classes are not there for everything."""
        if data.y.ndim == 2:
            refuse_asked(self._asks_one_output(), data.y.shape[1])

    def _asks_one_output(self) -> dict[str, bool]:
        return {
            f"criterion={self.criterion!r}": own_name(self.criterion) not in OUTPUT_CRITERIA,
            f"pruning={self.pruning!r}": self.pruning in ("reduced_error", "merge", "pessimistic"),
            "ccp_alpha='cv'": self.ccp_alpha == "cv",
            NO_MONOTONE: self.monotonic_cst is not None,
        }


@stand_for("DecisionTreeRegressor")
class CARTRegressor(TreeRegressor, TreeEstimator):
    """Regression tree with binary tests: thresholds on numbers, subsets of the levels of categories.

    Takes arrays, lists and frames; text, category and dictionary columns of a frame are categories; missing
    values need no preparation, and infinite ones are the largest and smallest numbers. The same tree comes
    out for any order of the rows, and a row of weight 2 counts as two rows, exactly.

    Parameters
    ----------
    criterion : {"squared_error", "sdr", "poisson", "absolute_error"}, default="squared_error"
        Impurity that a test must lower: the variance, the standard deviation (standard deviation reduction), half
        the Poisson deviance from the mean, for counts and rates: y must not be negative, nor 0 in every row, and no
        test makes a branch whose targets are all 0; or the mean absolute deviation from the median, which outliers
        move little: nodes then predict the weighted median of their rows, and levels of a category are tried in the
        order of their medians. "friedman_mse" is another name of "squared_error".
    splitter : {"best", "random"}, default="best"
        Try every test of a feature, or one that is drawn, as extra-trees do: a threshold between the least and the
        largest value of the node's rows, a set of levels.
    min_target_std : float, default=0.0
        Nodes whose targets have a smaller standard deviation are not split.
    max_depth : int, optional
        Most tests on a path.
    min_samples_split : int or float, default=2
        Fewest rows of a node that is split; a float is a fraction of all rows.
    min_samples_leaf : int or float, default=1
        Fewest rows of a leaf; a float is a fraction of all rows.
    min_weight_fraction_leaf : float, default=0.0
        Least share of the total weight in a leaf.
    min_impurity_decrease : float, default=0.0
        Least weighted impurity decrease of a test. With 0, tests without gain are made where rows still
        differ.
    max_leaf_nodes : int, optional
        Grow best first, up to this many leaves.
    max_features : int, float, {"sqrt", "log2", "third"}, optional
        Features drawn per node; all by default.
    pruning : {"cost_complexity", "reduced_error", "min_gain", "merge"}, optional
        How the grown tree is pruned; by default it is not: by a cost of each leaf (`ccp_alpha`); by the squared errors
        on rows that were held out (`validation_fraction`); by taking back splits of little gain (`min_gain`); by
        merging leaves that predict the same. `prune` does the same to a fitted tree.
    ccp_alpha : float or "cv", default=0.0
        Cost of a leaf in minimal cost-complexity pruning; more than 0 asks for it without `pruning`. "cv": the
        largest whose error in a tenfold cross-validation is within one standard error of the least.
    ccp_risk : {"impurity", "error"}, default="impurity"
        What a leaf costs besides: its impurity or its squared errors, which differ for "sdr" only; of "poisson" and
        "absolute_error" both are the deviance, or the absolute deviation.
    validation_fraction : int or float, default=0.2
        Rows, or share of them, that "reduced_error" holds out.
    min_gain : float, default=0.0
        Least weighted impurity decrease of a test that "min_gain" leaves at the end of a branch.
    missing : {"learned", "branch", "surrogate"}, default="learned"
        Missing values take the branch where they help most, or a branch of their own. Where a node saw none,
        they take the heavier branch; so do levels of a category that were not seen in fit. "surrogate" does as
        rpart: a test is judged by the rows whose value is known, and rows whose value is missing go by other
        features that part the known rows most alike, the first of them that is known, else to the heavier
        branch. `tree_.surrogates` holds them.
    max_surrogates : int, default=5
        Most surrogates of a node; 0: missing values take the heavier branch.
    ties : {"first", "random"}, default="first"
        Among tests of equal gain take the first feature and lowest threshold, or draw one.
    max_bins : int, default=65535
        Most distinct values of a numeric column that are kept apart; beyond, they are binned by quantiles.
    monotonic_cst : array-like of {-1, 0, 1} or dict, optional
        Direction in which each numeric feature may move the predicted value; not with linear leaves.
    cat_penalty : float or "auto", default="auto"
        How much of the gain that the levels of a category have by chance is taken off that of a subset of them: the
        more levels, and the fewer rows each, the more. "auto": all of it (1) where the column has more than four
        levels, nothing where it has fewer; a number counts for every category. 0: exact subsets, as in Breiman et
        al. (1984), which a column of many levels that says nothing can mislead. Not by misclassification, whose gains
        are not corrected.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Which columns are categories: by dtype, or as mask, indices or names. A category has at most 65,535
        levels.
    date_features : {"auto"}, optional
        Columns of dates and times in a frame: with "auto" each is read as its year, month, weekday, days since the
        first and hour, named such as `sold.month`; None: they are refused.
    leaf_model : "linear", optional
        What a leaf says: by default the mean of its rows; "linear": a ridge regression on them (a model tree).
        The tests are those of a tree of means, pruned as one; the models are fitted last. They say what
        scikit-learn's `Ridge(alpha=leaf_alpha)` says, fitted on the rows and weights of the leaf with missing
        values replaced by their mean: far from the leaf's rows they extrapolate, and are not clipped. Values
        must not be infinite, not even in rows of weight 0. `prune` of the fitted tree judges by means, too, also on
        given rows; a node that is made a leaf then answers by its mean.
    leaf_features : {"path", "all"}, default="path"
        Features of a leaf's model: the numeric ones that are tested on its path, or all numeric ones.
        Categories are never among them.
    leaf_alpha : float, default=1.0
        Penalty on the sum of squared coefficients; 0: least squares, of the least norm where there are many.
    random_state : int, RandomState or None
        Seed for `max_features`, `ties="random"` and the rows that pruning holds out; a RandomState is drawn from once
        per fit that needs it.
    trace : bool, default=False
        Whether `fit` keeps a trace of the tree; see `spinney.trace`.

    Attributes
    ----------
    tree_ : SklearnView
        The grown tree by scikit-learn's names (`children_left`, `threshold`, `value`, ...); `tree_.to_text()`
        draws it, `tree_.arrays` has our own arrays. `tree_.linear` holds the models of linear leaves.
    trace_ : Trace, with `trace=True`
        Every test that each node could have asked, and why the one asked won; print it.
    n_features_in_, n_outputs_, max_features_ : int
    feature_names_in_ : array of str, if X had names
    feature_importances_ : array (n_features,)
    surrogate_importances_ : array (n_features,), with `missing="surrogate"`
    pruning_ : PruningReport or None
        What pruning has done: leaves, depth and error before and after.
    cv_results_ : dict of arrays, if `ccp_alpha="cv"`
        `alpha`, `n_leaves`, `error` and `standard_error` of each subtree of the sequence; `ccp_alpha_` was chosen.

    Examples
    --------
    >>> from spinney import CARTRegressor
    >>> X = [[1], [2], [3], [4]]
    >>> tree = CARTRegressor(max_depth=1).fit(X, [10, 10, 20, 22])
    >>> tree.predict([[1.5], [9]]).tolist()
    [10.0, 21.0]
    >>> tree = CARTRegressor(max_depth=1, leaf_model="linear", leaf_alpha=0).fit(X, [10, 10, 20, 22])
    >>> tree.predict([[1.5], [9]]).round(6).tolist()
    [10.0, 32.0]
    """

    _keeps: ClassVar[dict[str, Kept]] = CART_KEEPS
    _grows_from_disk: ClassVar[bool] = True
    surrogate_importances_ = property(read_surrogate_importances)
    max_features_: int

    _takes_outputs: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "criterion": [StrOptions(with_aliases(VALUE_CRITERIA))],
        "min_target_std": [Interval(Real, 0.0, None, closed="left")],
        "trace": ["boolean"],
        "leaf_model": [StrOptions({"linear"}), None],
        "leaf_features": [StrOptions({"path", "all"})],
        "leaf_alpha": [Interval(Real, 0.0, None, closed="left")],
        **SHARED_CONSTRAINTS,
        **MISSING_CONSTRAINTS,
        **PENALTY_CONSTRAINTS,
        **VALUE_CONSTRAINTS,
    }

    def __init__(
        self,
        *,
        criterion: str = "squared_error",
        splitter: str = "best",
        max_depth: int | None = None,
        min_samples_split: float = 2,
        min_samples_leaf: float = 1,
        min_weight_fraction_leaf: float = 0.0,
        min_impurity_decrease: float = 0.0,
        min_target_std: float = 0.0,
        max_leaf_nodes: int | None = None,
        max_features: float | str | None = None,
        pruning: str | None = None,
        ccp_alpha: float | str = 0.0,
        ccp_risk: str = "impurity",
        validation_fraction: float = 0.2,
        min_gain: float = 0.0,
        missing: str = "learned",
        max_surrogates: int = 5,
        ties: str = "first",
        max_bins: int = MAX_CODES,
        monotonic_cst: ArrayLike | dict[str, int] | None = None,
        leaf_model: str | None = None,
        leaf_features: str = "path",
        leaf_alpha: float = 1.0,
        categorical_features: ArrayLike | str | None = "from_dtype",
        date_features: str | None = "auto",
        cat_penalty: float | str = "auto",
        random_state: int | np.random.RandomState | None = None,
        trace: bool = False,
    ) -> None:
        self.criterion = criterion
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.min_impurity_decrease = min_impurity_decrease
        self.min_target_std = min_target_std
        self.max_leaf_nodes = max_leaf_nodes
        self.max_features = max_features
        self.pruning = pruning
        self.ccp_alpha = ccp_alpha
        self.ccp_risk = ccp_risk
        self.validation_fraction = validation_fraction
        self.min_gain = min_gain
        self.missing = missing
        self.max_surrogates = max_surrogates
        self.ties = ties
        self.max_bins = max_bins
        self.monotonic_cst = monotonic_cst
        self.leaf_model = leaf_model
        self.leaf_features = leaf_features
        self.leaf_alpha = leaf_alpha
        self.categorical_features = categorical_features
        self.date_features = date_features
        self.cat_penalty = cat_penalty
        self.random_state = random_state
        self.trace = trace

    def _make_grower(self, schema: Schema, seed: int) -> CartGrower:
        return cart_grower(self, schema, seed)

    def _level_growing(self) -> TopGrowing:
        """How the tree is grown from disk, where memory cannot hold the rows."""
        return plan_cart(self, count_features)

    def _set_counts(self, n_features: int) -> None:
        super()._set_counts(n_features)
        self.max_features_ = count_features(self.max_features, n_features)

    def _check_training(self, data: TrainingData) -> None:
        """Linear models of leaves take finite values, and no constraints; some criteria not any target."""
        if data.y.ndim == 2:
            refuse_asked(self._asks_one_output(), data.y.shape[1])
        check_range(own_name(self.criterion), data.y, data.weight)
        if self.leaf_model is None:
            return
        if CRITERIA[own_name(self.criterion)].is_median:
            raise ValueError(
                f"criterion={self.criterion!r} with leaf_model='linear': such models begin at the mean of a leaf, "
                "which here is its median; leave out one of them"
            )
        if self.monotonic_cst is not None:
            raise ValueError("monotonic_cst with leaf_model='linear': a slope may break it; leave out one of them")
        refuse_infinite(encode(data.columns, data.table.schema), data.table.schema)

    def _asks_one_output(self) -> dict[str, bool]:
        return {
            f"criterion={self.criterion!r}": own_name(self.criterion) != "squared_error",
            f"pruning={self.pruning!r}": self.pruning in ("reduced_error", "merge"),
            "ccp_alpha='cv'": self.ccp_alpha == "cv",
            NO_MONOTONE: self.monotonic_cst is not None,
            "leaf_model='linear'": self.leaf_model is not None,
            f"min_target_std={self.min_target_std}": self.min_target_std != 0.0,
        }

    def _compute_partial_dependence_recursion(self, grid: Any, target_features: Any) -> NDArray[np.float64]:
        """What `sklearn.inspection.partial_dependence(method="recursion")` asks for, (n_outputs, n_points)."""
        fitted = self._find_fitted()
        if fitted.tree.linear is not None:
            raise ValueError("method='recursion' has one value for each leaf, and these are linear: use method='brute'")
        return average_forest(fitted, [fitted.tree], grid, target_features)

    def _without_pruning(self) -> Self:
        return super()._without_pruning().set_params(leaf_model=None)

    def _complete(self, tree: Tree, training: TreeTraining) -> Tree:
        """The tree with linear models in its leaves, where they are wanted."""
        if self.leaf_model is None:
            return tree
        given, numbers, weight, _ = training.rows.weighted()
        values = fill_in(given)
        n_terms = tree.depth if self.leaf_features == "path" else tree.n_features
        chosen = kernels(len(values) * (n_terms + 1) ** 2 * PRODUCT_SECONDS)
        params = LinearParams(self.leaf_features, float(self.leaf_alpha))
        return fit_leaves(tree, find_leaves(tree, values), LeafRows(values, numbers, weight), params, chosen)
