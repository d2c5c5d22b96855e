"""Estimators of one tree: fitting and pruning it, reading it, and predicting by it."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import Bunch
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from spinney._criteria import own_name
from spinney._elementary import log
from spinney._types import MAX_CODES
from spinney.estimators.bags_on_cluster import ClusterBags
from spinney.estimators.bags_on_disk import DiskBags
from spinney.estimators.base import Classifier, Estimator, Regressor
from spinney.estimators.cart_by_levels import grow_cart_by_levels
from spinney.estimators.checks import (
    all_or_nothing,
    check_known,
    check_numbers,
    check_weights,
    check_y,
    count_copies,
    draw_seed,
    open_x,
    weigh_classes,
)
from spinney.estimators.class_outputs import choose_classes, has_class_outputs, part_answers
from spinney.estimators.cross_validated_pruning import check_folds
from spinney.estimators.growers import EncodedRows, TraceLimits, TreeGrower, TreeTraining, refuse_trace
from spinney.estimators.kept import Kept, Part, set_parts
from spinney.estimators.one_row import open_row, unseen_levels
from spinney.estimators.parameters import parameter
from spinney.estimators.pruning import (
    OPTIONS,
    Pruned,
    check_method,
    check_needs,
    check_options,
    choose_method,
    draws_rows,
    find_judges,
    hold_out,
    make_report,
    prune_tree,
    risk_of,
)
from spinney.estimators.scanned import give_rows, is_scanned, open_store
from spinney.estimators.training import TrainingData, read_training
from spinney.model.container import BrokenFileError
from spinney.model.fitted_tree import (
    CrossValidation,
    FittedTree,
    Pruning,
    explain_row,
    find_tree_fault,
    make_predictor,
)
from spinney.table.schema import Schema, encode
from spinney.tree.predict import mark_paths
from spinney.tree.prune import cut_sequence, from_units, snip
from spinney.tree.pruning_report import PruningReport
from spinney.tree.structure import Tree

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix

    from spinney.estimators.cluster_rows import ClusterRows
    from spinney.model.predictors import TreePredictor
    from spinney.reading.explaining import Explanation
    from spinney.table.sparse import Values

GROWING_CONSTRAINTS: dict[str, list[Any]] = {  # of every tree that is grown on codes
    "max_depth": [Interval(Integral, 1, None, closed="left"), None],
    "max_bins": [Interval(Integral, 2, MAX_CODES, closed="both")],
    "categorical_features": ["array-like", StrOptions({"from_dtype"}), None],
    "date_features": [StrOptions({"auto"}), None],
    "random_state": ["random_state", Interval(Integral, 0, 2**63 - 1, closed="both")],  # of members: see `draw_seed`
}

LEAF_CONSTRAINTS: dict[str, list[Any]] = {  # of those whose nodes are limited by rows
    "min_samples_split": [
        Interval(Integral, 2, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="right"),
    ],
    "min_samples_leaf": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="neither"),
    ],
    "min_weight_fraction_leaf": [Interval(Real, 0.0, 0.5, closed="both")],
    "min_impurity_decrease": [Interval(Real, 0.0, None, closed="left")],
}


class TreeEstimator(Estimator[FittedTree]):
    """An estimator whose model is one tree; a subclass says how it is grown."""

    _keeps: ClassVar[dict[str, Kept]] = {
        "tree_": Kept(Tree),
        "pruning_": Kept(PruningReport | None, is_needed=False, stored=(PruningReport,)),
        "ccp_alpha_": Kept(float, is_needed=False),
        "cv_results_": Kept(dict, is_needed=False),
    }
    tree_ = Part("tree", shown="view")
    pruning_ = Part("pruning.report")
    cv_results_ = Part("pruning.cross_validation.results")
    ccp_alpha_ = Part("pruning.cross_validation.alpha")
    _schema = Part("schema")

    classes_: Any  # of trees for classes
    n_outputs_: int

    _counts_copies: ClassVar[bool] = False  # whether rules count rows, so that a row of weight k is to be k rows

    _grows_from_disk: ClassVar[bool] = False  # whether a scan will do for X

    # parameters that every tree has
    max_depth: int | None
    max_bins: int
    pruning: str | None
    ccp_alpha: float | str
    ccp_risk: str
    validation_fraction: float
    categorical_features: Any
    date_features: str | None
    random_state: Any
    trace: bool

    @property
    def _criterion(self) -> str:
        """The impurity that tests are to lower, by our name for it."""
        return own_name(self.criterion)

    @property
    def _class_weight(self) -> dict[Any, float] | str | None:
        """Weights of classes; None of a regressor."""
        weight: dict[Any, float] | str | None = parameter(self, "class_weight", None)
        return weight

    # --- the fitted tree ---

    def _set_fitted(self, values: dict[str, Any]) -> None:
        """Set fitted attributes by the names that files have."""
        set_parts(self, values, make_fitted_tree)

    def _find_fault(self) -> str | None:
        """What is wrong with the fitted tree, just read."""
        return find_tree_fault(self._find_fitted())

    def _make_predictor(self) -> TreePredictor:
        """What predicts."""
        return make_predictor(self._find_fitted(), parameter(self, "smoothing", None))

    def _values(self, X: Any) -> Values:
        """X as trees see it, (n_rows, n_features)."""
        schema = self._find_fitted().schema
        return encode(open_x(self, X, is_fit=False), schema)

    # --- fitting ---

    def _refuse_scan(self) -> None:
        """Textbook trees, surrogates and linear leaves look at the rows again once the tree is grown."""
        name = type(self).__name__
        if not self._grows_from_disk:
            other = f"CART{'Regressor' if isinstance(self, Regressor) else 'Classifier'}"
            raise ValueError(f"{name} takes rows in memory, and X is a scan: use {other}, or read a sample of the rows")
        for parameter_name, value, other in (("missing", "surrogate", "'learned'"), ("leaf_model", "linear", "None")):
            if parameter(self, parameter_name, None) == value:
                raise ValueError(
                    f"{parameter_name}={value!r} of {name} needs the rows in memory, and X is a scan: set "
                    f"{parameter_name}={other}, or read a sample of the rows"
                )

    def _make_grower(self, schema: Schema, seed: int) -> TreeGrower:
        """How the parameters want trees of these columns to be grown; `classes_` are known."""
        raise NotImplementedError

    def _set_counts(self, n_features: int) -> None:  # noqa: ARG002
        """Set what a fit counts beside the tree."""
        self.n_outputs_ = self._count_outputs()

    def _count_outputs(self) -> int:
        return self._find_fitted().tree.n_outputs

    def _check_training(self, data: TrainingData) -> None:
        """Refuse training rows, or parameters, that the leaves could not be fitted with."""

    def _complete(self, tree: Tree, training: TreeTraining) -> Tree:  # noqa: ARG002
        """What a subclass adds to the pruned tree."""
        return tree

    def _open_training(self, X: Any, y: Any, sample_weight: Any) -> TreeTraining:
        """Check and read what `fit` was given, and choose how it grows a tree."""
        self._validate_params()
        data = read_training(self, X, y, sample_weight, self._class_weight)
        data = data if self._counts_copies else data._replace(times=None)
        seed = self._draw_seed()
        self._check_training(data)
        return TreeTraining(data, self._make_grower(data.table.schema, seed), seed)

    def _draw_seed(self) -> int:
        """What a fit draws by; 0 where it draws nothing."""
        is_random = parameter(self, "ties", "first") == "random" or parameter(self, "max_features", None) is not None
        is_random = is_random or parameter(self, "splitter", "best") == "random"
        return draw_seed(self.random_state) if is_random or draws_rows(self.pruning, self.ccp_alpha) else 0

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, trace: bool | None = None) -> Self:
        """Grow the tree, and prune it where the parameters say so.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features), or scan
            Numbers; categories in a frame or as `categorical_features` says; missing values as NaN, None, NA
            or null. What a sparse matrix does not store is 0.
        y : array-like (n_rows,), or (n_rows, n_outputs) of CART
            Classes of any type; numbers for a regression. A scan brings its own and its weights.
        sample_weight : array-like (n_rows,), optional
            Weights; rows of weight 0 are left out.
        trace : bool, optional
            Whether to keep a trace of the tree as `trace_`; by default as the parameter says.
        """
        with all_or_nothing(self):
            if is_scanned(X):
                self._validate_params()
                store, plan = open_store(self, X, y, sample_weight)
                if plan.by_levels and not trace:
                    return self._fit_by_levels(DiskBags(self, self, store, plan))
                X, y, sample_weight, _ = give_rows(store, plan)
            training = self._open_training(X, y, sample_weight)
            is_traced = self.trace if trace is None else trace
            if is_traced:
                refuse_trace(self._criterion, 1 if training.data.y.ndim == 1 else training.data.y.shape[1])
            elif choose_method(self.pruning, self.ccp_alpha) is None:
                training = training.narrow()
            pruned, training = self._grow_and_prune(training)
            tree, schema = self._complete(pruned.tree, training), training.data.table.schema
            classes = None if self._labels is None else self.classes_
            self._keep(FittedTree(tree, schema, classes, pruned.pruning))
            self._set_counts(schema.n_features)
            if is_traced:
                self.trace_ = training.grower.trace(tree, training.data, self._find_fitted().report, TraceLimits())
            return self

    def _grow_and_prune(self, training: TreeTraining) -> tuple[Pruned, TreeTraining]:
        """The tree as the parameters want it pruned, and the rows that have grown it."""
        method, rows = choose_method(self.pruning, self.ccp_alpha), None
        if method == "reduced_error":
            training, rows = hold_out(training, self.validation_fraction, has_classes=self._labels is not None)
        return self._prune_grown(training.grow(), method, training, rows), training

    def _prune_grown(
        self, tree: Tree, method: str | None, training: TreeTraining | None, rows: EncodedRows | None = None
    ) -> Pruned:
        """A grown tree as the parameters want it pruned."""
        if method is None:
            return Pruned(tree, Pruning(None))
        parameters = self.get_params(deep=False)
        options = {name: parameters[name] for name in OPTIONS[method]}
        return prune_tree(tree, method, options, self._criterion, training, rows)

    def _fit_spread(self, rows: ClusterRows, others: dict[str, Any]) -> None:
        """Fit to rows at the workers of a cluster; others: nothing, where a tree grows so."""
        del others
        self._validate_params()
        with contextlib.closing(ClusterBags(self, self, rows)) as fit:
            self._fit_by_levels(fit)

    def _fit_by_levels(self, fit: DiskBags) -> Self:
        """Grow and prune the tree of rows on disk, or at workers, without holding them."""
        tree, schema = grow_cart_by_levels(self, fit, self._draw_seed())
        pruned = self._prune_grown(tree, choose_method(self.pruning, self.ccp_alpha), None)
        classes = None if self._labels is None else self.classes_
        self._keep(FittedTree(pruned.tree, schema, classes, pruned.pruning))
        self._set_counts(schema.n_features)
        return self

    def _keep(self, fitted: FittedTree) -> None:
        """Hold another fitted tree; the trace of an earlier one goes."""
        self._fitted = fitted
        self.__dict__.pop("trace_", None)

    # --- pruning ---

    def prune(
        self,
        method: str | None = None,
        X: Any = None,
        y: Any = None,
        sample_weight: Any = None,
        *,
        cv: Any = None,
        **options: Any,
    ) -> Self:
        """Prune the fitted tree.

        Parameters
        ----------
        method : {"cost_complexity", "reduced_error", "pessimistic", "min_gain", "merge"}, optional
            As the parameter `pruning`, which is the default. "pessimistic" is for classes only.
        X, y, sample_weight : optional
            Rows to judge by: for "reduced_error" rows that did not grow the tree; the training rows for a
            cross-validated `ccp_alpha` and for `raising`. The others need none; given rows then only count the errors
            of the report.
        cv : iterable of pairs of arrays, optional
            Folds of a cross-validated `ccp_alpha`: numbers of the rows that grow a tree, and of those that judge it, as
            `GroupKFold.split` gives them. By default ten folds, dealt out by class.
        **options
            `ccp_alpha` and `ccp_risk`, `confidence` and `raising`, or `min_gain`; by default what the parameters say.

        Returns
        -------
        pruned : estimator
            A new one of the same class and parameters, whose tree is pruned. `pruned.pruning_` says how, with leaves,
            depth and error before and after. This one stays as it is.
        """
        fitted = self._find_fitted()
        rules = self._parameter_constraints
        method = check_method(self.pruning if method is None else method, rules["pruning"], type(self).__name__)
        options = check_options(method, options, self.get_params(deep=False), rules)
        check_needs(method, options, X, y)
        rows = None if X is None or y is None else self._encode_rows(X, y, sample_weight)
        training, folds = None, None
        if cv is not None:
            if rows is None or options.get("ccp_alpha") != "cv":
                raise ValueError("prune: cv are the folds of ccp_alpha='cv', and nothing else has folds")
            folds = check_folds(cv, len(rows.y))
        if options.get("ccp_alpha") == "cv":
            again = clone(self).set_params(pruning=method, ccp_alpha="cv")
            training = again._open_training(X, y, sample_weight)  # noqa: SLF001
        return self._with(prune_tree(fitted.tree, method, options, self._criterion, training, rows, folds))

    def snip(self, node: int | list[int]) -> Self:
        """Make nodes of the tree leaves, by hand.

        Parameters
        ----------
        node : int or list of int
            Index among the nodes of `tree_`, which `tree_.to_text(numbers=True)` shows; what hangs below goes.

        Returns
        -------
        snipped : estimator
            A new one of the same class and parameters; this one stays as it is.
        """
        whole, options = self._find_fitted().tree, {"node": node}
        tree = snip(whole, node)
        judges, judged_on = find_judges(whole, options, None, None)
        report = make_report("snip", options, (whole, tree), self._criterion, judges, judged_on)
        return self._with(Pruned(tree, Pruning(report)))

    def cost_complexity_pruning_path(self, X: Any, y: Any, sample_weight: Any = None) -> Bunch:
        """Grow a tree and list the steps of minimal cost-complexity pruning.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        path : Bunch
            `ccp_alphas`, ascending, and `impurities`, the summed risk of the leaves after each step, which is in errors
            if `ccp_risk="error"`; alpha / `impurities[-1]` is then rpart's cp. Links of equal alpha are cut in one
            step. `n_leaves` counts what is left.
        """
        plain = self._without_pruning()
        tree, risk = plain._open_training(X, y, sample_weight).grow(), risk_of(self.ccp_risk, self._criterion)  # noqa: SLF001
        steps = cut_sequence(tree, risk)
        return Bunch(
            ccp_alphas=np.array([from_units(tree, step.alpha, risk) for step in steps]),
            impurities=np.array([from_units(tree, step.risk, risk) for step in steps]),
            n_leaves=np.array([step.n_leaves for step in steps]),
        )

    def _without_pruning(self) -> Self:
        """An unfitted copy that grows the same tests and does nothing to them."""
        return clone(self).set_params(ccp_alpha=0.0, pruning=None)

    def _with(self, pruned: Pruned) -> Self:
        """A fitted copy with another tree."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._keep(replace(self._find_fitted(), tree=pruned.tree, pruning=pruned.pruning))
        return other

    def _encode_rows(self, X: Any, y: Any, sample_weight: Any) -> EncodedRows:
        """Rows as users give them; classes are weighed as in fit."""
        values, classes = self._values(X), self._find_fitted().classes
        weight = check_weights(sample_weight, len(values))
        if classes is None:
            return EncodedRows(values, check_numbers(self, y, len(values)), weight)
        labels = check_y(self, y, len(values))
        check_known(labels, classes)
        codes = np.searchsorted(classes, labels).astype(np.int64)
        times = count_copies(self._class_weight, weight) if self._counts_copies else None
        return EncodedRows(values, codes, weigh_classes(self._class_weight, classes, codes, weight), times)

    # --- reading ---

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Find the leaf of each row.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)

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
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        indicator : sparse matrix (n_rows, n_nodes)
            1 where the row passes the node.
        """
        return mark_paths(self._find_fitted().tree, self.apply(X))

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
        fitted = self._find_fitted()
        columns, schema = open_row(self, row), fitted.schema
        values = encode(columns, schema)[0]
        return explain_row(fitted, values, unseen_levels(columns, schema, values), parameter(self, "smoothing", None))

    def to_sklearn(self) -> Any:
        """The same tree as scikit-learn's own estimator, for tools that ask for its class.

        `plot_tree`, `export_text`, `shap.TreeExplainer`, dtreeviz and skl2onnx take it. It predicts as this one does
        wherever the values of X are numbers that float32 holds: scikit-learn rounds others to these.

        Returns
        -------
        peer : DecisionTreeClassifier or DecisionTreeRegressor
            Fitted. Category subsets, a branch for each level, a branch of missing values, surrogates and linear
            models in leaves have no such form: a ValueError.

        Examples
        --------
        >>> from sklearn.tree import export_text
        >>> from spinney import CARTClassifier
        >>> model = CARTClassifier().fit([[1], [2], [3], [4]], ["no", "no", "yes", "yes"])
        >>> print(export_text(model.to_sklearn()))
        |--- feature_0 <= 2.50
        |   |--- class: no
        |--- feature_0 >  2.50
        |   |--- class: yes
        <BLANKLINE>
        """
        from spinney.estimators.sklearn_tree import make_sklearn_tree

        return make_sklearn_tree(self)

    def get_depth(self) -> int:
        """Tests on the longest path of the tree."""
        return self._find_fitted().tree.depth

    def get_n_leaves(self) -> int:
        """Number of leaves of the tree."""
        return self._find_fitted().tree.n_leaves

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Impurity decrease by feature, scaled to sum 1, shape (n_features,)."""
        return self._find_fitted().tree.importances()


def make_fitted_tree(values: dict[str, Any]) -> FittedTree:
    """A fitted tree from its attributes, by the names that files have."""
    chosen = values.keys() & {"pruning_", "ccp_alpha_", "cv_results_"}
    if len(chosen) not in {0, 3} and chosen != {"pruning_"}:
        raise BrokenFileError("ccp_alpha_ and cv_results_ come together, and with pruning_")
    path = CrossValidation(values["cv_results_"], values["ccp_alpha_"]) if "ccp_alpha_" in values else None
    pruning = Pruning(values["pruning_"], path) if "pruning_" in values else None
    return FittedTree(values["tree_"], values["_schema"], values.get("classes_"), pruning)


class TreeClassifier(Classifier):
    """Predictions of one tree for classes, beside `TreeEstimator`."""

    def predict(self: Any, X: Any) -> NDArray[Any]:
        """Predict the class of each row: the most frequent in its leaf, the first among equals.

        Of several outputs the shape is (n_rows, n_outputs).
        """
        values = self._values(X)
        predictor = self._make_predictor()
        if has_class_outputs(self):
            return choose_classes(predictor.answer(values), self.classes_)
        return self.classes_[predictor.choose(values)]

    def predict_proba(self: Any, X: Any) -> Any:
        """Predict class probabilities: the class shares of the leaf, shape (n_rows, n_classes).

        Of several outputs a list with such an array for each.
        """
        values = self._values(X)
        shares = self._make_predictor().answer(values)
        return part_answers(shares, self.classes_) if has_class_outputs(self) else shares

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithm of `predict_proba`; -inf for probability 0."""
        shares = self.predict_proba(X)
        return [log(each) for each in shares] if isinstance(shares, list) else log(shares)


class TreeRegressor(Regressor):
    """Predictions of one tree for numbers, beside `TreeEstimator`."""

    def predict(self: Any, X: Any) -> NDArray[np.float64]:
        """Predict the target of each row: the mean of its leaf, or what the leaf's linear model says.

        By the absolute error it is the median of the leaf. Of several outputs the shape is (n_rows, n_outputs).
        """
        values = self._values(X)
        return self._make_predictor().answer(values)
