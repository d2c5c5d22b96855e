"""What all forests share: random forests (Breiman 2001) and extremely randomised trees (Geurts et al. 2006).

fit:   X, y ──read_training──► make_draw ──► code_for_bags ──► Plan ──► ForestGrowth ──► FittedForest
after: methods are functions of the `FittedForest`, in `model`
"""

from __future__ import annotations

import contextlib
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from spinney._types import ROW
from spinney.ensemble.forest import member_key
from spinney.ensemble.sampling import Draw
from spinney.estimators.bags_on_cluster import ClusterBags
from spinney.estimators.bags_on_disk import DiskBags
from spinney.estimators.base import Estimator, find_outputs_fault
from spinney.estimators.cart import SHARED_CONSTRAINTS, make_tree_estimator
from spinney.estimators.checkpoints import CHECKPOINT_CONSTRAINTS
from spinney.estimators.checks import (
    all_or_nothing,
    check_codes,
    check_known,
    check_weights,
    draw_seed,
    open_x,
)
from spinney.estimators.fingerprints import fingerprint
from spinney.estimators.forest_by_levels import fit_forest_by_levels, plan_tops
from spinney.estimators.forest_training import (
    BAG_CONSTRAINTS,
    PreparedForest,
    finish_forest,
    fit_forest,
    prepare_forest,
    row_class_weight,
)
from spinney.estimators.kept import Kept, Part, find_hash_fault, set_parts
from spinney.estimators.one_row import open_row
from spinney.estimators.out_of_bag import OOB_KEPT, restore_out_of_bag
from spinney.estimators.parameters import parameter
from spinney.estimators.scanned import give_rows, is_scanned, open_store
from spinney.estimators.scoring import KnownPredictions, find_score
from spinney.estimators.training import read_training
from spinney.model import forest_uncertainty, importance, tree_votes
from spinney.model.container import BrokenFileError
from spinney.model.earlier_members import EarlierMembers, refuse_earlier
from spinney.model.fitted_forest import FittedForest, KeptTarget, LeafRows, TrainingRows
from spinney.model.importance import CORRELATED, ImportanceParams, RunParams
from spinney.reading.several_outputs import refuse_outputs
from spinney.scale.plan import GrowingBytes
from spinney.table.ingest import read_columns
from spinney.table.schema import encode
from spinney.tree.forest import Forest
from spinney.tree.predict import leaf_shares

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix

    from spinney.estimators.cluster_rows import ClusterRows
    from spinney.estimators.training import TrainingData
    from spinney.model.ensemble_theory import ErrorParts, VarianceParts
    from spinney.model.importance_table import ImportanceTable
    from spinney.model.predictors import VotePredictor
    from spinney.model.tree_votes import VoteTable
    from spinney.model.uncertainty import Correction
    from spinney.table.sparse import Values

FOREST_CONSTRAINTS: dict[str, list[Any]] = {
    **SHARED_CONSTRAINTS,
    "n_estimators": [Interval(Integral, 1, None, closed="left")],
    **BAG_CONSTRAINTS,
    "replace": ["boolean"],
    "oob_score": ["boolean", str, callable],
    "honest": ["boolean"],
    "honest_fraction": [Interval(Real, 0.0, 1.0, closed="neither")],
    "pruning": [StrOptions({"oob"}), None],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
    "warm_start": ["boolean"],
    **CHECKPOINT_CONSTRAINTS,
}


class BaseForest(Estimator[FittedForest]):
    """What all forests share: bags, growing, adding up, and what single trees and out-of-bag rows tell."""

    _growing_bytes: ClassVar[GrowingBytes] = GrowingBytes(has_bins=False, copies=1, state=100, is_shared_out=True)
    _keeps: ClassVar[dict[str, Kept]] = {
        "n_outputs_": Kept(int, check=find_outputs_fault),
        "forest_": Kept(Forest),
        "max_features_": Kept(int),
        "_draw": Kept(Draw, stored=(Draw,)),
        "_seed": Kept(int),
        "_fingerprint": Kept(str, check=find_hash_fault),
        "_weight_mark": Kept(str, check=find_hash_fault),
        "_honest_fraction": Kept(float | None),
        "_y": Kept(np.ndarray, is_needed=False),
        "_weight": Kept(np.ndarray | None, is_needed=False),
        "_members": Kept(list, is_needed=False),
        "_n_before": Kept(int, is_needed=False),
        **OOB_KEPT,
    }
    forest_ = Part("forest")
    max_features_ = Part("max_features")
    oob_curve_ = Part("out_of_bag.curve")
    oob_score_ = Part("out_of_bag.score")
    _schema = Part("schema")
    _draw = Part("draw")
    _seed = Part("seed")
    _fingerprint = Part("fingerprint")
    _weight_mark = Part("weight_mark")
    _honest_fraction = Part("honest_fraction")
    _y = Part("target.y")
    _weight = Part("target.weight")
    _members = Part("leaf_rows.by_tree")
    _n_before = Part("earlier.n_members")
    _oob_votes = Part("out_of_bag.votes")
    _oob_n_votes = Part("out_of_bag.n_votes")
    _oob_is_hard = Part("out_of_bag.is_hard")

    _has_random_tests: ClassVar[bool] = False
    _tree_class: ClassVar[Any]  # what a tree is as an estimator of its own
    _oob_predictions: ClassVar[str]  # the name of the attribute that holds them

    # --- fitting ---

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None, strata: Any = None) -> Self:
        """Grow the forest.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features), or scan
            Numbers; categories in a frame or as `categorical_features` says; missing values as NaN, None, NA or null.
        y : array-like (n_rows,) or (n_rows, n_outputs)
            Classes of any type, or numbers for a regressor. A scan brings its own and its weights.
        sample_weight : array-like (n_rows,), optional
            A bootstrap draws rows in proportion to their weight, as in scikit-learn 1.9; without bags, and where rows
            are drawn without replacement, by group or by stratum, the trees weigh the rows. Rows of weight 0 are
            left out.
        groups : array-like (n_rows,), optional
            Rows of one group are drawn together, so that an out-of-bag row has no relative in the bag.
        strata : array-like (n_rows,), optional
            Bags draw from every stratum in proportion to its size.
        """
        with all_or_nothing(self):
            self._validate_params()
            if is_scanned(X):
                store, plan = open_store(self, X, y, sample_weight, groups)
                if plan.by_levels:
                    self._fitted = fit_forest_by_levels(self, DiskBags(self, self, store, plan), strata)
                    self.n_outputs_ = 1
                    return self
                X, y, sample_weight, groups = give_rows(store, plan)
            data, group_codes, stratum_codes = self._read_bags(X, y, sample_weight, groups, strata)
            old = self._find_old(warm_start=self.warm_start)
            self._fitted = fit_forest(self, data, group_codes, stratum_codes, old)
            self.n_outputs_ = 1 if data.y.ndim == 1 else data.y.shape[1]
            return self

    def _fit_spread(self, rows: ClusterRows, others: dict[str, Any]) -> None:
        """Fit to rows at the workers of a cluster; others: arguments of `fit` beside X, y and weights."""
        self._validate_params()
        with contextlib.closing(ClusterBags(self, self, rows, others.get("groups"))) as fit:
            self._fitted = fit_forest_by_levels(self, fit, others.get("strata"))
        self.n_outputs_ = 1

    def _read_bags(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, strata: Any
    ) -> tuple[TrainingData, NDArray[np.int32] | None, NDArray[np.int32] | None]:
        """What fit was given, and codes of groups and strata of the rows, which bags are drawn by."""
        data = read_training(self, X, y, sample_weight, row_class_weight(self))
        group_codes = check_codes(groups, "groups", data.table.n_rows)
        stratum_codes = check_codes(strata, "strata", data.table.n_rows)
        if parameter(self, "stratify", None) is not None:
            if stratum_codes is not None:
                raise ValueError("stratify draws by class, strata= by the given labels: use one")
            stratum_codes = data.y.astype(np.int32)
        return data, group_codes, stratum_codes

    @staticmethod
    def _has_growth() -> bool:
        """Whether the trees can be grown elsewhere, each by itself."""
        return True

    def _prepare_growth(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None, strata: Any = None, seed: int
    ) -> PreparedForest:
        """Do all of a fit but growing, with bags by a seed."""
        self._validate_params()
        data, group_codes, stratum_codes = self._read_bags(X, y, sample_weight, groups, strata)
        mark = fingerprint(data.table, data.y, self._labels)
        return prepare_forest(self, data, group_codes, stratum_codes, None, mark, seed)[0]

    def _finish_growth(self, prepared: PreparedForest, forest: Forest) -> None:
        """Set the model of trees that were grown elsewhere."""
        self._fitted = finish_forest(self, prepared, forest, None)
        self.n_outputs_ = forest.n_outputs

    def _count_outputs(self) -> int:
        return self._find_fitted().forest.n_outputs

    def _refuse_scan(self) -> None:
        """Leaves that keep their rows are as many numbers as there are rows and trees."""
        if parameter(self, "keep_members", False):
            raise ValueError(
                "keep_members=True keeps every row of every tree, and X is a scan: set keep_members=False, or use "
                "GradientBoostingRegressor(loss='quantile') for quantiles"
            )

    _level_growing = plan_tops

    # --- the fitted forest ---

    @property
    def _is_hard(self) -> bool:
        """Whether each tree votes for one class."""
        return bool(parameter(self, "voting", "soft") == "hard")

    def _set_fitted(self, values: dict[str, Any]) -> None:
        """Set fitted attributes by the names that files have."""
        set_parts(self, values, self._restore)

    def _restore(self, values: dict[str, Any]) -> FittedForest:
        """The fitted forest from the attributes of a file."""
        if ("_y" in values) != ("_weight" in values):
            raise BrokenFileError("the target of the training rows is kept with their weights")
        return FittedForest(
            forest=values["forest_"],
            schema=values["_schema"],
            classes=values.get("classes_"),
            draw=values["_draw"],
            seed=values["_seed"],
            max_features=values["max_features_"],
            honest_fraction=values["_honest_fraction"],
            fingerprint=values["_fingerprint"],
            weight_mark=values["_weight_mark"],
            shift=values.get("_shift", 0),
            target=KeptTarget(values["_y"], values["_weight"]) if "_y" in values else None,
            leaf_rows=LeafRows(values["_members"]) if "_members" in values else None,
            out_of_bag=restore_out_of_bag(values, self._oob_predictions),
            earlier=EarlierMembers(values["_n_before"]) if "_n_before" in values else None,
        )

    def _find_fault(self) -> str | None:
        """What is wrong with a fitted forest that was just read."""
        return self._find_fitted().find_fault()

    def _make_predictor(self) -> VotePredictor:
        return self._find_fitted().make_predictor(is_hard=self._is_hard)

    def _values(self, X: Any) -> Values:
        """New rows as values, (n_rows, n_features)."""
        schema = self._find_fitted().schema
        return encode(open_x(self, X, is_fit=False), schema)

    def _check_target(self, y: Any, n_rows: int) -> NDArray[Any]:
        """Targets given after the fit, as `fit` has seen them: codes of classes, or numbers."""
        raise NotImplementedError

    def _training_values(self, X: Any, y: Any) -> tuple[Values, NDArray[Any]]:
        """The training data again, as values and checked target; refused if it is not what fit has seen."""
        fitted = self._find_fitted()
        refuse_earlier(fitted.earlier, "this needs")
        if X is None or y is None:
            raise ValueError("this needs the training data again, since no model keeps it: pass the X and y of fit")
        columns = open_x(self, X, is_fit=False)
        target = self._check_target(y, columns.n_rows)
        table = read_columns(columns, self.categorical_features, self.date_features)
        mark = fitted.fingerprint
        if table.n_rows != fitted.draw.n_rows or fingerprint(table, target, self._labels, like=mark) != mark:
            raise ValueError("X and y are not the training data: pass the very rows of fit, in the same order")
        return encode(columns, fitted.schema), target

    def _read_train(self, train: Any) -> TrainingRows | None:
        """The argument `train`: the training data again, or None."""
        if train is None:
            return None
        if not isinstance(train, tuple | list) or len(train) not in {2, 3}:
            raise ValueError(
                f"train must be (X, y) or (X, y, sample_weight), the training data again; got {type(train)}"
            )
        values, target = self._training_values(train[0], train[1])
        return TrainingRows(values, target, check_weights(train[2], len(values)) if len(train) == 3 else None)

    # --- what the trees tell ---

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Find the leaf of each row in each tree.

        Returns
        -------
        leaf : int64 array (n_rows, n_trees)
            Index of the leaf among the nodes of its tree, `estimators_[t].tree_`.
        """
        values = self._values(X)
        return self._make_predictor().find(values)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Impurity decrease by feature, the mean over the trees, scaled to sum 1, shape (n_features,)."""
        return self._find_fitted().forest.importances()

    @property
    def estimators_(self) -> list[Any]:
        """The trees as fitted CART estimators, made anew at each access.

        Each has the seed that it was grown by as `random_state`: fitted on its bag, it grows the same tree.
        """
        return [self._make_estimator(t) for t in range(len(self))]

    @property
    def estimators_samples_(self) -> list[NDArray[np.int32]]:
        """The rows of each bag, ascending, repeated as often as drawn; recomputed, not stored."""
        fitted = self._find_fitted()
        refuse_earlier(fitted.earlier, "estimators_samples_ are", AttributeError)
        return [fitted.draw.rows(t).astype(ROW) for t in range(len(fitted.forest))]

    def __len__(self) -> int:
        return len(self._find_fitted().forest)

    def __getitem__(self, tree: int) -> Any:
        return self._make_estimator(range(len(self))[tree])

    def _make_estimator(self, t: int) -> Any:
        """Tree t as an estimator of its own."""
        fitted = self._find_fitted()
        known = self._tree_class().get_params()
        params = {name: value for name, value in self.get_params(deep=False).items() if name in known}
        if params.get("class_weight") == "balanced_subsample":
            params["class_weight"] = "balanced"
        if self._has_random_tests:
            params["splitter"] = "random"
        cart = self._tree_class(**{**params, "random_state": member_key(fitted.seed, t), "ccp_alpha": 0.0})
        return make_tree_estimator(cart, fitted.forest[t], fitted.schema, fitted.classes, fitted.max_features)

    def predict_trees(self, X: Any) -> NDArray[np.float64]:
        """Predict with every tree by itself; the mean over the trees is what the forest predicts.

        The result takes 8 bytes for each tree and row, and for each class: predict part of the rows at a time if that
        is much.

        Returns
        -------
        float64 array (n_trees, n_rows), or (n_trees, n_rows, n_classes)
            Values of a regressor; class shares of a classifier, with hard voting 0 or 1. Of several outputs these stand
            side by side on the last axis.

        Examples
        --------
        >>> import numpy as np
        >>> from spinney import RandomForestRegressor
        >>> X = np.linspace(0.0, 1.0, 200)[:, None]
        >>> forest = RandomForestRegressor(n_estimators=50, random_state=0).fit(X, X[:, 0] ** 2)
        >>> by_tree = forest.predict_trees([[0.5], [0.9]])
        >>> by_tree.shape, np.allclose(by_tree.mean(axis=0), forest.predict([[0.5], [0.9]]))
        ((50, 2), True)
        """
        values = self._values(X)
        return tree_votes.predict_trees(self._find_fitted(), values, is_hard=self._is_hard, n_jobs=self.n_jobs)

    def vote_table(self, x: Any) -> VoteTable:
        """What each tree says of one row.

        Parameters
        ----------
        x : dict, sequence, one-row frame or array
            The values by name or in the order of the columns, None where one is missing.

        Returns
        -------
        VoteTable
            `print` shows the votes and shares of the classes, or mean and spread; `to_frame()` one line a tree.
        """
        refuse_outputs(self._find_fitted().forest, "vote_table")
        fitted = self._find_fitted()
        values = encode(open_row(self, x), fitted.schema)
        return tree_votes.vote_table(fitted, values, is_hard=self._is_hard)

    def decision_path(self, X: Any) -> tuple[csr_matrix, NDArray[np.int64]]:
        """Mark the nodes that each row passes, in all trees side by side.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)

        Returns
        -------
        indicator : sparse matrix (n_rows, n_nodes of all trees)
            1 where the row passes the node.
        first_node : int64 (n_trees + 1,)
            The columns of tree t are first_node[t] .. first_node[t + 1].
        """
        return tree_votes.decision_path(self._find_fitted().forest, self._values(X))

    def decompose(self, X: Any, y: Any = None, *, label: Any = None) -> VarianceParts | ErrorParts:
        """Why averaging helps: split the variance, or with y the squared error, of the forest over its trees.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)
            New rows; on training rows trees agree more than they should.
        y : array-like (n_rows,), optional
            The target of these rows: classes that fit has seen, or numbers.
        label : class, optional
            Whose probability is meant; by default the second of two classes. Not for numbers.

        Returns
        -------
        VarianceParts, or ErrorParts with y
            See `spinney.decompose_variance` and `spinney.decompose_error`. With y, `rho` is the correlation of errors.
        """
        refuse_outputs(self._find_fitted().forest, "decompose")
        fitted = self._find_fitted()
        column = tree_votes.find_class(fitted.classes, label)
        if y is not None and fitted.classes is not None:
            check_known(y, fitted.classes)
        return tree_votes.decompose(fitted, self._values(X), y, column, is_hard=self._is_hard)

    def predict_variance(
        self, X: Any, kind: str = "trees", *, correction: Correction = "counts"
    ) -> NDArray[np.float64]:
        """Variance of the prediction of each row.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)
        kind : {"trees", "jackknife", "infinitesimal"}
            - "trees": mean squared deviation of the trees from the forest. How much they disagree; more trees do not
              make it smaller.
            - "jackknife": by how much the forest would differ had it been grown on another sample of rows, by the
              jackknife after bootstrap (Efron 1992; Wager, Hastie and Efron 2014).
            - "infinitesimal": the same, by the infinitesimal jackknife (Efron 2014). Needs fewer trees.

            The last two need bags, and many trees: some multiple of the number of training rows. Where rows were
            drawn in groups or blocks, these are what is left out.
        correction : {"counts", "bootstrap", "none"}
            What the last two subtract for the noise of a finite number of trees: its value for these bags, its value
            for bootstraps as large as the table, or nothing. A variance that falls below 0 is given as 0, with a
            warning.

        Returns
        -------
        float64 array (n_rows,), or (n_rows, n_classes)
            In squared units of the target; of a classifier the variance of each class probability.

        Examples
        --------
        >>> import numpy as np
        >>> from spinney import RandomForestRegressor
        >>> X = np.linspace(0.0, 1.0, 40)[:, None]
        >>> forest = RandomForestRegressor(n_estimators=400, random_state=0).fit(X, X[:, 0])
        >>> forest.predict_variance([[0.5]], kind="infinitesimal").shape
        (1,)
        """
        refuse_outputs(self._find_fitted().forest, "predict_variance")
        values = self._values(X)
        return forest_uncertainty.predict_variance(
            self._find_fitted(), values, kind, correction, is_hard=self._is_hard, n_jobs=self.n_jobs
        )

    # --- importances ---

    def importance(
        self,
        kind: str = "impurity",
        X: Any = None,
        y: Any = None,
        *,
        groups: dict[Any, Any] | None = None,
        n_repeats: int = 1,
        random_state: Any = None,
        scoring: Any = None,
        threshold: float = CORRELATED,
    ) -> ImportanceTable:
        """Say how much each feature, or group of features, matters to the forest.

        Parameters
        ----------
        kind : {"impurity", "impurity_oob", "permutation", "conditional"}
            - "impurity": decrease of impurity on the training rows, scaled to sum 1, as `feature_importances_`. Fast,
              but it favours features with many values, and gives noise a share. With X and y, `check_importance`
              warns of such features.
            - "impurity_oob": decrease of impurity that rows out of the bag confirm (Zhou and Hooker 2021); 0 in
              expectation for a feature that says nothing of y. In units of Gini impurity or squared target. With
              `pruning="oob"` those rows have chosen the tree, and it is not free of bias.
            - "permutation": how much larger a tree's error on its out-of-bag rows is when the feature is permuted
              among them, in the mean over the trees (Breiman 2001): share of wrong classes, or squared error.
            - "conditional": the same, permuted only among rows that are alike in the features correlated with this
              one, by the tree's own tests of them (Strobl et al. 2008): what the feature says beyond those. Rows are
              alike by the tree's largest tests, so many that five rows go with each other in the mean; what is left
              of the correlation within such cells is still counted. A tree that does not test a correlated feature,
              as where one is an exact copy of the other, cannot hold it.
        X, y : array-like, optional
            The training data again, which no model keeps; needed for all kinds but "impurity", for which both or none
            are given.
        groups : dict, optional
            Name of a group -> its features, by name or position. Features of a group are permuted together, and the
            table has one row a group. Groups may overlap.
        n_repeats : int
            Permutations for each tree, of which the mean is taken.
        random_state : int, RandomState or None
            Seed of the permutations; None: that of the forest. The number of threads changes nothing.
        scoring : str or callable, optional
            For the two permutations, in place of the error: the name of a scorer of scikit-learn, a scorer, or a
            function `score(y, predicted)`, larger being better. The importance is the fall of a tree's score. Slower.
        threshold : float
            For "conditional": features correlated by more than this are held.

        Returns
        -------
        ImportanceTable
            `feature`, `importance`, `std_error` (over the trees); prints, plots and becomes a frame.

        Examples
        --------
        >>> import numpy as np
        >>> from spinney import RandomForestRegressor
        >>> X = np.column_stack([np.arange(60) % 4, np.arange(60) % 7])
        >>> forest = RandomForestRegressor(n_estimators=20, random_state=0).fit(X, X[:, 0])
        >>> forest.importance("permutation", X, X[:, 0]).sorted().feature
        ('x0', 'x1')
        """
        if kind != "impurity" or X is not None:
            refuse_outputs(self._find_fitted().forest, "importance by rows")
        fitted = self._find_fitted()
        params = ImportanceParams(kind, groups, n_repeats, threshold)
        params.check()
        score = check_scoring(kind, scoring)
        table = importance.impurity_importance(fitted, groups)
        if kind == "impurity":
            if (X is None) != (y is None):
                raise ValueError(
                    "impurity importance is checked against the training data if both X and y are given: pass the "
                    "other as well, or neither"
                )
            if X is not None and fitted.draw.kind != "whole":
                self._warn_of_noise(X, y, random_state)
            return table
        importance.refuse_without_oob(fitted, kind)
        rows = TrainingRows(*self._training_values(X, y))
        seed = fitted.seed if random_state is None else draw_seed(random_state)
        score = None if score is None else self._score_of_trees(score, rows.y)
        return importance.out_of_bag_importance(fitted, params, rows, seed, score, self._run_params)

    def check_importance(self, X: Any, y: Any, *, random_state: Any = None) -> tuple[str, ...]:
        """Warn of features that impurity ranks high and out-of-bag rows do not.

        A feature is named if it is in the upper half by impurity while its permutation importance is not above two
        standard errors: the trees split on it, but nothing is lost without it. Either it is noise, which the impurity
        of deep trees rewards the more the more values it has, or others carry the same information.

        Parameters
        ----------
        X, y : array-like
            The training data again.
        random_state : int, RandomState or None
            Seed of the permutations; None: that of the forest.

        Returns
        -------
        tuple of str
            The names of these features, the highest by impurity first.
        """
        refuse_outputs(self._find_fitted().forest, "check_importance")
        importance.refuse_without_oob(self._find_fitted(), "permutation")
        return self._warn_of_noise(X, y, random_state)

    def _warn_of_noise(self, X: Any, y: Any, random_state: Any) -> tuple[str, ...]:
        """Warn of features that impurity ranks high and out-of-bag rows do not; their names."""
        fitted = self._find_fitted()
        rows = TrainingRows(*self._training_values(X, y))
        seed = fitted.seed if random_state is None else draw_seed(random_state)
        return importance.warn_of_noise(fitted, rows, seed, self._run_params)

    @property
    def _run_params(self) -> RunParams:
        return RunParams(self.n_jobs, bool(self.verbose))

    def _score_of_trees(self, score: Callable[..., float], truth: NDArray[Any]) -> Callable[..., float]:
        """The score of training rows in leaves of a tree; truth: codes of classes, or numbers, of all rows."""
        fitted = self._find_fitted()
        y = truth if fitted.classes is None else fitted.classes[truth]

        def score_leaves(tree: int, rows: NDArray[np.int32], leaf: NDArray[np.int32]) -> float:
            grown = fitted.forest[tree]
            predictions = grown.threshold[leaf] if fitted.classes is None else leaf_shares(grown, leaf)
            return score(KnownPredictions(self, predictions), np.arange(len(rows))[:, None], y[rows])

        return score_leaves


def check_scoring(kind: str, scoring: Any) -> Callable[..., float] | None:
    """The score that permutations take in place of the error; refused before the work where it is none."""
    if scoring is None:
        return None
    if kind not in {"permutation", "conditional"}:
        raise ValueError(f"scoring is for permutations; {kind} importance has no score. Leave it out.")
    return find_score(scoring, "scoring")
