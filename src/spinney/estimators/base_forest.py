"""Random forests (Breiman 2001) and extremely randomised trees (Geurts, Ernst and Wehenkel 2006)."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from spinney._cost import COMPILED_SHARE, SHORT_SECONDS, growing_seconds
from spinney._criteria import CLASS_CRITERIA, CRITERIA, VALUE_CRITERIA
from spinney._elementary import log
from spinney._jit import kernels
from spinney._threads import count_workers
from spinney._types import LEARNED, OWN_BRANCH
from spinney._warnings import warn
from spinney.ensemble.forest import ForestGrowth, Plan
from spinney.ensemble.sampling import Draw, draw_size
from spinney.estimators.base import Classifier, Estimator, Regressor
from spinney.estimators.cart import SHARED_CONSTRAINTS, CARTClassifier, CARTRegressor, count_features
from spinney.estimators.checks import (
    all_or_nothing,
    check_classes,
    check_codes,
    check_monotone,
    check_numbers,
    check_weights,
    draw_seed,
    fingerprint,
    mark_weights,
    open_x,
    row_count,
    weigh_classes,
)
from spinney.estimators.importances import Importances
from spinney.estimators.kept import Kept
from spinney.estimators.out_of_bag import OutOfBag
from spinney.estimators.training import make_legend
from spinney.estimators.tree_votes import Votes, measure_strength
from spinney.estimators.uncertainty import UncertainClasses, UncertainNumbers
from spinney.model.predictors import VotePredictor
from spinney.table.coding import code_table
from spinney.table.fixed_point import class_target, fix_weights, value_target, with_room
from spinney.table.ingest import Table, read_columns
from spinney.table.schema import encode
from spinney.tree.forest import Forest, join_forests
from spinney.tree.grow import GrowParams

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.model.ensemble_theory import Strength
    from spinney.table.fixed_point import Target, Weights

MOST_BITS = 1000  # of a target: a sum over 2**23 trees is still a float64

FOREST_CONSTRAINTS: dict[str, list[Any]] = {
    **SHARED_CONSTRAINTS,
    "n_estimators": [Interval(Integral, 1, None, closed="left")],
    "bootstrap": ["boolean", StrOptions({"poisson"})],
    "replace": ["boolean"],
    "max_samples": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="right"),
        None,
    ],
    "block_size": [Interval(Integral, 1, None, closed="left"), None],
    "oob_score": ["boolean", str, callable],
    "honest": ["boolean"],
    "honest_fraction": [Interval(Real, 0.0, 1.0, closed="neither")],
    "pruning": [StrOptions({"oob"}), None],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
    "warm_start": ["boolean"],
}


CLASSIFIER_CONSTRAINTS: dict[str, list[Any]] = {
    **FOREST_CONSTRAINTS,
    "criterion": [StrOptions({*CLASS_CRITERIA})],
    "class_weight": [dict, StrOptions({"balanced", "balanced_subsample"}), None],
    "voting": [StrOptions({"soft", "hard"})],
    "stratify": [StrOptions({"class", "balanced"}), None],
}

REGRESSOR_CONSTRAINTS: dict[str, list[Any]] = {
    **FOREST_CONSTRAINTS,
    "criterion": [StrOptions({*VALUE_CRITERIA})],
    "min_target_std": [Interval(Real, 0.0, None, closed="left")],
    "keep_members": ["boolean"],
}


# What a fit may leave behind beyond what every fit sets anew.
OOB_RESULTS = (
    *("oob_score_", "oob_curve_", "oob_decision_function_", "oob_prediction_"),
    *("_oob_votes", "_oob_n_votes", "_oob_is_hard"),
)
OOB_KEPT = {
    "_oob_votes": Kept(np.ndarray, is_needed=False),
    "_oob_n_votes": Kept(np.ndarray, is_needed=False),
    "_oob_is_hard": Kept(bool, is_needed=False),
    "oob_curve_": Kept(np.ndarray, is_needed=False),
    "oob_score_": Kept(float, is_needed=False),
    "oob_decision_function_": Kept(np.ndarray, is_needed=False),
    "oob_prediction_": Kept(np.ndarray, is_needed=False),
}
MEMBERS = ("_members",)
TRUTH = ("_y", "_weight")


def forget(estimator: Any, names: tuple[str, ...]) -> None:
    """Drop attributes of an earlier fit."""
    for name in names:
        vars(estimator).pop(name, None)


def positive_chance(weight: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
    """Equal chances for the rows that have a weight; None where all have."""
    if weight is None or np.all(weight > 0.0):
        return None
    return (weight > 0.0).astype(np.float64)


def hush_target(y: NDArray[np.float64], weight: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Targets with those of rows of weight 0 replaced by the largest of the others.

    Such rows are in no bag, but the scale of the fixed-point target is taken from all rows: one far off would cost the
    others their digits, and would not fit itself.
    """
    if weight is None or np.all(weight > 0.0):
        return y
    return np.where(weight > 0.0, y, y[weight > 0.0].max())


class _Forest(OutOfBag, Votes, Importances, Estimator):
    """What all forests share: bags, growing, adding up."""

    _keeps: ClassVar[dict[str, Kept]] = {
        "forest_": Kept(Forest),
        "max_features_": Kept(int),
        "_draw": Kept(Draw),
        "_seed": Kept(int),
        "_fingerprint": Kept(str),
        "_weight_mark": Kept(str),
        "_honest_fraction": Kept(float | None),
        "_shift": Kept(int, is_needed=False),
        "_y": Kept(np.ndarray, is_needed=False),
        "_weight": Kept(np.ndarray | None, is_needed=False),
        "_members": Kept(list, is_needed=False),
        **OOB_KEPT,
    }
    _has_random_tests: ClassVar[bool] = False
    _seed: int
    _draw: Draw
    _fingerprint: str
    _weight_mark: str  # of the weights that trees have seen
    _honest_fraction: float | None  # of the trees there are
    _shift: int = 0  # sums over trees are in units of 2**_shift, so that they stay within float64

    # --- growing ---

    def _fit_forest(
        self,
        table: Table,
        y: NDArray[Any],
        weight: NDArray[np.float64] | None,
        groups: NDArray[np.int32] | None,
        strata: NDArray[np.int32] | None,
        classes: tuple[Any, ...] | None,
    ) -> Self:
        """Grow the trees that are wanted beyond those there are (warm start), and keep them."""
        schema = table.schema
        mark = fingerprint(table, y, classes)
        old = self._kept_forest(mark)
        if old is None:
            forget(self, ("forest_", *OOB_RESULTS, *MEMBERS, *TRUTH))
        seed = self._seed if old is not None else draw_seed(self.random_state)
        draw, held = self._make_draw(table.n_rows, weight, groups, strata, seed)
        honest_fraction = float(self.honest_fraction) if self.honest else None
        if old is not None:
            self._check_draw(draw, held, honest_fraction)
        keeps_members = bool(getattr(self, "keep_members", False))
        n_new = self.n_estimators - (0 if old is None else len(old))
        seconds = growing_seconds(table.n_rows, schema.n_features, n_new)
        chosen = kernels(seconds)
        weights = fix_weights(held, table.n_rows)
        target = self._make_target(y if classes is not None else hush_target(y, held), weights)
        codes = code_table(table, weights.values, int(self.max_bins), chosen)
        weights, target = with_room(weights, target)
        is_weighed = None if weight is None or np.all(weight > 0.0) else weight > 0.0
        n_rows = table.n_rows if is_weighed is None else int(np.count_nonzero(is_weighed))
        self.max_features_ = count_features(self.max_features, schema.n_features)
        legend = make_legend(schema, classes, codes.has_missing, self.criterion)
        plan = Plan(
            codes=codes,
            weights=weights,
            target=target,
            draw=draw,
            params=self._grow_params(n_rows, schema.n_features),
            seed=seed,
            monotone=self._monotone(schema),
            is_weighed=is_weighed,
            balances_bags=getattr(self, "class_weight", None) == "balanced_subsample" and draw.kind != "whole",
            honest_fraction=honest_fraction,
            prunes_oob=self.pruning == "oob",
            ccp_alpha=float(self.ccp_alpha),
            has_oob=bool(self.oob_score),
            is_hard=getattr(self, "voting", "soft") == "hard",
            shift=self._shift,
            keeps_members=keeps_members,
        )
        growth = ForestGrowth(plan, legend)
        curve = self._start_oob(growth, y, old, chosen) if plan.has_oob else []
        n_workers = count_workers(self.n_jobs, n_new, seconds * COMPILED_SHARE)
        if n_new > 0:
            forest = growth.run(
                0 if old is None else len(old),
                n_new,
                chosen,
                n_workers,
                is_short=seconds * COMPILED_SHARE < SHORT_SECONDS,
                verbose=bool(self.verbose),
            )
            old = forest if old is None else join_forests(old, forest)
        assert old is not None
        self.forest_ = old
        self._schema, self._draw, self._seed = schema, draw, seed
        self._fingerprint, self._weight_mark, self._honest_fraction = mark, mark_weights(held), honest_fraction
        self.n_outputs_ = 1
        if keeps_members:
            self._members = [*getattr(self, "_members", ()), *growth.members]
        if plan.has_oob:
            self._keep_oob(growth, y, curve)
        forget(self, (*(() if plan.has_oob else OOB_RESULTS), *(() if keeps_members else MEMBERS), *TRUTH))
        if plan.has_oob or keeps_members:  # for intervals and quantiles
            self._y, self._weight = y.copy(), held
        return self

    def _kept_forest(self, mark: str) -> Forest | None:
        """The trees to add to, if this is a warm start on the same data; mark: its fingerprint."""
        old: Forest | None = getattr(self, "forest_", None) if self.warm_start else None
        if old is None:
            return None
        if self.n_estimators < len(old):
            message = (
                f"n_estimators={self.n_estimators} must be larger or equal to len(estimators_)={len(old)} "
                "when warm_start==True"
            )
            raise ValueError(message)
        if mark != self._fingerprint:
            message = (
                "warm_start adds trees to a forest, so fit needs the X and y of the first fit again; "
                "these differ. Set warm_start=False to begin anew."
            )
            raise ValueError(message)
        if self.n_estimators == len(old):
            warn("Warm-start fitting without increasing n_estimators does not fit new trees.")
        if getattr(self, "keep_members", False) and len(getattr(self, "_members", ())) != len(old):
            raise ValueError(
                f"keep_members=True, but the {len(old)} trees of the last fit were grown without: "
                "set warm_start=False to grow all of them anew"
            )
        return old

    def _check_draw(self, draw: Draw, held: NDArray[np.float64] | None, honest_fraction: float | None) -> None:
        """Refuse a warm start with other bags: those of the trees there are could not be had again."""
        if mark_weights(held) != self._weight_mark:
            raise ValueError(
                "warm_start adds trees to a forest, so they must see the same weights; sample_weight or class_weight "
                "has changed. Set warm_start=False to begin anew."
            )
        if honest_fraction != self._honest_fraction:
            raise ValueError(
                "warm_start adds trees to a forest, so all must part their bags alike; honest or honest_fraction has "
                f"changed, from {self._honest_fraction} to {honest_fraction} (None: not honest). Set warm_start=False "
                "to begin anew."
            )
        for name in ("kind", "groups", "strata", "is_balanced", "probability", "n_drawn"):
            if not np.array_equal(getattr(self._draw, name), getattr(draw, name)):
                raise ValueError(
                    "warm_start adds trees to a forest, so their bags must be drawn as before; sample_weight, groups, "
                    f"strata or a parameter of the draw has changed ({name}). Set warm_start=False to begin anew."
                )

    def _make_draw(
        self,
        n_rows: int,
        weight: NDArray[np.float64] | None,
        groups: NDArray[np.int32] | None,
        strata: NDArray[np.int32] | None,
        seed: int,
    ) -> tuple[Draw, NDArray[np.float64] | None]:
        """How bags are drawn, and the weights that are left for the trees to see.

        A plain bootstrap draws rows by their weight, and its trees see counts (scikit-learn 1.9). Draws without
        replacement, from strata and of groups would blunt or lose the weights: there the trees see them. Rows of
        weight 0 are never drawn, and weigh nothing in what is made of all rows, such as bins.
        """
        if not self.bootstrap and self.replace:
            self._refuse_without_bags(groups, strata)
            return Draw("whole", n_rows, n_rows, seed, positive_chance(weight)).with_tables(), weight
        kind = "poisson" if self.bootstrap == "poisson" else "bootstrap" if self.replace else "paste"
        is_balanced = getattr(self, "stratify", None) == "balanced"
        self._refuse_clashes(groups, is_balanced=is_balanced)
        if self.block_size is not None:
            groups = (np.arange(n_rows) // min(int(self.block_size), n_rows)).astype(np.int32)
        by_weight = self.replace and groups is None and strata is None
        chance = weight if by_weight else positive_chance(weight)
        ids = np.arange(n_rows) if groups is None else groups
        n_units = n_rows if by_weight else len(np.unique(ids if chance is None else ids[chance > 0.0]))
        n_drawn = draw_size(self.max_samples, n_units, weight if by_weight else None)
        if kind == "paste" and n_drawn >= n_units and not is_balanced:
            self._refuse_full_bags()
        draw = Draw(kind, n_rows, n_drawn, seed, chance, strata, is_balanced, groups).with_tables()
        return draw, positive_chance(weight) if by_weight else weight

    def _refuse_clashes(self, groups: Any, *, is_balanced: bool) -> None:
        """Refuse parameters of the draw that exclude each other."""
        if self.bootstrap == "poisson" and not self.replace:
            raise ValueError("bootstrap='poisson' draws rows more than once, replace=False forbids it: use one")
        if self.block_size is not None and groups is not None:
            raise ValueError("block_size draws blocks of rows in the order of the table, groups= draws groups: use one")
        if self.block_size is not None and getattr(self, "stratify", None) is not None:
            raise ValueError(
                "block_size draws blocks, whose rows may be of several classes, stratify by class: use one"
            )
        if is_balanced and self.max_samples is not None:
            raise ValueError(
                "stratify='balanced' draws as many rows of each class as the smallest has, max_samples another number: "
                "use one"
            )

    def _refuse_full_bags(self) -> None:
        """Refuse what needs rows outside the bags where there are none."""
        for name, is_wanted in (("oob_score", bool(self.oob_score)), ("pruning='oob'", self.pruning == "oob")):
            if is_wanted:
                raise ValueError(
                    f"{name} needs rows outside the bags, but replace=False with max_samples={self.max_samples} puts "
                    "all rows in every bag: give a smaller max_samples"
                )

    def _refuse_without_bags(self, groups: Any, strata: Any) -> None:
        """Refuse what makes no sense where every tree sees all rows."""
        wanted = {
            "oob_score": bool(self.oob_score),
            "pruning='oob'": self.pruning == "oob",
            "max_samples": self.max_samples is not None,
            "stratify": getattr(self, "stratify", None) is not None,
            "block_size": self.block_size is not None,
            "groups": groups is not None,
            "strata": strata is not None,
        }
        for name, is_wanted in wanted.items():
            if is_wanted:
                message = (
                    f"{name} needs bags, but with bootstrap=False every tree sees all rows: set bootstrap=True, "
                    "or replace=False to draw without replacement"
                )
                if name == "oob_score":
                    message = (
                        "Out of bag estimation only available if bootstrap=True, or replace=False with max_samples"
                    )
                raise ValueError(message)

    def _grow_params(self, n_rows: int, n_features: int) -> GrowParams:
        """The parameters of a tree, as Python's own numbers."""
        return GrowParams(
            criterion=self.criterion,
            missing=LEARNED if self.missing == "learned" else OWN_BRANCH,
            max_depth=None if self.max_depth is None else min(int(self.max_depth), n_rows),
            max_leaf_nodes=None if self.max_leaf_nodes is None else min(int(self.max_leaf_nodes), n_rows + 2),
            min_samples_split=row_count(self.min_samples_split, n_rows, 2),
            min_samples_leaf=row_count(self.min_samples_leaf, n_rows, 1),
            min_weight_fraction_leaf=float(self.min_weight_fraction_leaf),
            min_impurity_decrease=float(self.min_impurity_decrease),
            min_target_std=float(getattr(self, "min_target_std", 0.0)),
            max_features=None if self.max_features_ == n_features else self.max_features_,
            shuffles=self.ties == "random",
            has_random_tests=self._has_random_tests,
        )

    def _monotone(self, schema: Any) -> NDArray[np.int8] | None:
        monotone = check_monotone(self.monotonic_cst, self, schema)
        if monotone is not None and monotone.any() and self.honest:
            raise ValueError(
                "honest=True takes the leaf values from rows that did not choose the tests, so that monotonic_cst "
                "could not hold: use one"
            )
        return monotone

    def _make_target(self, y: NDArray[Any], weights: Weights) -> Target:
        raise NotImplementedError

    # --- reading ---

    def _values(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self, "forest_")
        return encode(open_x(self, X, is_fit=False), self._schema)

    def _training_values(self, X: Any, y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """The training data again, as values and checked target; refused if it is not what fit has seen."""
        check_is_fitted(self, "forest_")
        if X is None or y is None:
            message = "this needs the training data again, since no model keeps it: pass the X and y of fit"
            raise ValueError(message)
        columns = open_x(self, X, is_fit=False)
        target = self._check_target(y, columns.n_rows)
        table = read_columns(columns, self.categorical_features)
        classes = tuple(self.classes_.tolist()) if self.forest_.n_classes else None
        if table.n_rows != self._draw.n_rows or fingerprint(table, target, classes) != self._fingerprint:
            message = "X and y are not the training data: pass the very rows of fit, in the same order"
            raise ValueError(message)
        return encode(columns, self._schema), target

    def _check_target(self, y: Any, n_rows: int) -> NDArray[Any]:
        raise NotImplementedError

    def _make_predictor(self) -> VotePredictor:
        classes = self.classes_ if self.forest_.n_classes else None
        return VotePredictor(
            self._schema, classes, self.forest_, getattr(self, "voting", "soft") == "hard", getattr(self, "_shift", 0)
        )

    def _voting_forest(self) -> Forest:
        """The trees as they vote: classes alone with hard voting, values in units of 2**_shift."""
        return self._make_predictor().voting

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
        check_is_fitted(self, "forest_")
        return self.forest_.importances()

    @property
    def estimators_(self) -> list[Any]:
        """The trees as fitted CART estimators, made anew at each access."""
        check_is_fitted(self, "forest_")
        return [self._make_estimator(t) for t in range(len(self.forest_))]

    @property
    def estimators_samples_(self) -> list[NDArray[np.int64]]:
        """The rows of each bag, ascending, repeated as often as drawn; recomputed, not stored."""
        check_is_fitted(self, "forest_")
        return [self._draw.rows(t) for t in range(len(self.forest_))]

    def __len__(self) -> int:
        check_is_fitted(self, "forest_")
        return len(self.forest_)

    def __getitem__(self, tree: int) -> Any:
        check_is_fitted(self, "forest_")
        return self._make_estimator(range(len(self.forest_))[tree])

    def _make_estimator(self, t: int) -> Any:
        """Tree t as an estimator of its own."""
        cls = CARTClassifier if self.forest_.n_classes else CARTRegressor
        names = cls().get_params()
        params = {name: getattr(self, name) for name in names if hasattr(self, name)}
        if params.get("class_weight") == "balanced_subsample":
            params["class_weight"] = "balanced"
        tree = cls(**{**params, "random_state": None, "ccp_alpha": 0.0})
        fitted = {"_schema": self._schema, "tree_": self.forest_[t]}
        for name in ("n_features_in_", "feature_names_in_", "n_outputs_", "max_features_", "classes_", "n_classes_"):
            if hasattr(self, name):
                fitted[name] = getattr(self, name)
        tree._set_fitted(fitted)
        return tree


class ForestClassifier(Classifier, UncertainClasses, _Forest):
    """Forests that vote."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, strata: Any = None) -> Self:
        """Grow the forest.

        Parameters
        ----------
        X : array-like or frame of shape (n_rows, n_features)
            Numbers; categories in a frame or as `categorical_features` says; missing values as NaN, None, NA or null.
        y : array-like (n_rows,)
            Classes of any type.
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
            columns = open_x(self, X, is_fit=True)
            self.classes_, codes = check_classes(self, y, columns.n_rows)
            self.n_classes_ = len(self.classes_)
            weight = check_weights(sample_weight, columns.n_rows)
            per_bag = self.class_weight == "balanced_subsample" and (bool(self.bootstrap) or not self.replace)
            preset = "balanced" if self.class_weight == "balanced_subsample" else self.class_weight
            weight = weigh_classes(None if per_bag else preset, self.classes_, codes, weight)
            table = read_columns(columns, self.categorical_features)
            group_codes = check_codes(groups, "groups", table.n_rows)
            stratum_codes = check_codes(strata, "strata", table.n_rows)
            if self.stratify is not None:
                if stratum_codes is not None:
                    message = "stratify draws by class, strata= by the given labels: use one"
                    raise ValueError(message)
                stratum_codes = codes.astype(np.int32)
            classes = tuple(self.classes_.tolist())
            return self._fit_forest(table, codes, weight, group_codes, stratum_codes, classes)

    def _make_target(self, y: NDArray[Any], weights: Weights) -> Target:
        return class_target(y, self.n_classes_, weights)

    def _check_target(self, y: Any, n_rows: int) -> NDArray[Any]:
        classes, codes = check_classes(self, y, n_rows)
        if not np.array_equal(classes, self.classes_):
            message = f"y has the classes {classes.tolist()[:10]}, fit had {self.classes_.tolist()[:10]}"
            raise ValueError(message)
        return codes

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict class probabilities, shape (n_rows, n_classes).

        The mean over the trees of the class shares of the row's leaf (soft voting), or the share of the trees that vote
        for the class (hard voting).
        """
        return self._mean_votes(self._values(X))

    def _mean_votes(self, values: NDArray[Any]) -> NDArray[np.float64]:
        """Probabilities of encoded rows."""
        return self._make_predictor().answer(values, self.n_jobs)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each row: the most probable, the first among equals."""
        shares = self._mean_votes(self._values(X))
        return self.classes_[shares.argmax(axis=1)]

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithm of `predict_proba`; -inf for probability 0."""
        shares = self._mean_votes(self._values(X))
        return log(shares)

    def strength(self, X: Any, y: Any) -> Strength:
        """Strength of the trees and correlation between them (Breiman 2001), by their out-of-bag votes.

        Parameters
        ----------
        X, y
            The training data again: no model keeps it.

        Returns
        -------
        Strength
            See `spinney.strength_and_correlation`.
        """
        values, codes = self._training_values(X, y)
        return measure_strength(self.forest_, self._draw, values, codes)


class ForestRegressor(Regressor, UncertainNumbers, _Forest):
    """Forests that average."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, strata: Any = None) -> Self:
        """Grow the forest; y holds numbers, the rest is as in the classifier."""
        with all_or_nothing(self):
            self._validate_params()
            columns = open_x(self, X, is_fit=True)
            numbers = check_numbers(self, y, columns.n_rows)
            weight = check_weights(sample_weight, columns.n_rows)
            table = read_columns(columns, self.categorical_features)
            group_codes = check_codes(groups, "groups", table.n_rows)
            stratum_codes = check_codes(strata, "strata", table.n_rows)
            # by the targets alone: a warm start goes on with sums of fewer trees
            self._shift = max(math.frexp(float(np.max(np.abs(numbers))))[1] - MOST_BITS, 0)
            return self._fit_forest(table, numbers, weight, group_codes, stratum_codes, None)

    def _make_target(self, y: NDArray[Any], weights: Weights) -> Target:
        return value_target(y, weights, has_square=CRITERIA[self.criterion].needs_squares or self.min_target_std > 0.0)

    def _check_target(self, y: Any, n_rows: int) -> NDArray[Any]:
        return check_numbers(self, y, n_rows)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict the target of each row: the mean over the trees of the mean of its leaf."""
        values = self._values(X)
        return self._make_predictor().answer(values, self.n_jobs)
