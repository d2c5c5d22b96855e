"""Bagging (Breiman 1996), pasting (Breiman 1999) and random subspaces (Ho 1998) of trees or any other estimators."""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_is_fitted

from spinney._cost import COMPILED_SHARE, SHORT_SECONDS, growing_seconds
from spinney._criteria import CRITERIA
from spinney._elementary import log
from spinney._jit import kernels
from spinney._threads import count_workers
from spinney.ensemble.forest import Plan
from spinney.ensemble.sampling import Draw
from spinney.ensemble.subspaces import SubspaceGrowth, Subspaces, narrow_tree
from spinney.estimators.base import Classifier, Estimator, Regressor
from spinney.estimators.base_estimators import (
    Bags,
    MemberFits,
    MemberPlan,
    Rows,
    Template,
    check_members,
    hear_all,
    hold_rows,
    list_templates,
    mark_rows,
    open_sparse,
)
from spinney.estimators.base_forest import (
    MOST_BITS,
    OOB_KEPT,
    OOB_RESULTS,
    forget,
    hush_target,
    positive_chance,
)
from spinney.estimators.cart import CARTClassifier, CARTRegressor, cart_params, count_features, is_fast
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
    weigh_classes,
)
from spinney.estimators.kept import Kept
from spinney.estimators.out_of_bag import OutOfBag
from spinney.estimators.random_forest import RandomForestClassifier
from spinney.estimators.training import make_legend
from spinney.model.predictors import VotePredictor
from spinney.table.coding import code_table
from spinney.table.fixed_point import class_target, fix_weights, value_target, with_room
from spinney.table.ingest import read_columns
from spinney.table.schema import Schema, encode
from spinney.tree.forest import Forest, join_forests

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.table.columns import Columns
    from spinney.table.fixed_point import Target, Weights

BAGGING_CONSTRAINTS: dict[str, list[Any]] = {
    "estimator": [HasMethods(["fit", "predict"]), list, None],
    "n_estimators": [Interval(Integral, 1, None, closed="left")],
    "max_samples": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="right"),
        None,
    ],
    "max_features": [Interval(Integral, 1, None, closed="left"), Interval(RealNotInt, 0.0, 1.0, closed="right")],
    "bootstrap": ["boolean", StrOptions({"poisson"})],
    "bootstrap_features": ["boolean"],
    "block_size": [Interval(Integral, 1, None, closed="left"), None],
    "oob_score": ["boolean", str, callable],
    "warm_start": ["boolean"],
    "n_jobs": [Integral, None],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}


class _Bagging(OutOfBag, Estimator):
    """What both kinds of bagging share: bags of rows and columns, fitting, adding up.

    A bag of our own trees is a forest, and takes its ways: codes are made once, and prediction runs through all trees
    at once. Other members are fitted one by one.
    """

    _keeps: ClassVar[dict[str, Kept]] = {
        "_schema": Kept(Schema, is_needed=False),
        "forest_": Kept(Forest, is_needed=False),
        "_members": Kept(list, is_needed=False, check=check_members),
        "estimator_": Kept(BaseEstimator | list),
        "_base": Kept(BaseEstimator, is_needed=False),
        "_bags": Kept(Bags),
        "_is_soft": Kept(bool),
        "_fingerprint": Kept(str),
        "_shift": Kept(int, is_needed=False),
        **OOB_KEPT,
    }
    _default: ClassVar[type]
    _bags: Bags
    _fingerprint: str
    _is_soft: bool  # whether members give shares of classes
    _shift: int = 0  # sums over members are in units of 2**_shift, so that they stay within float64
    _members: list[Any]  # members that are not trees of a forest
    forest_: Forest  # those that are

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        given = (
            self.estimator
            if isinstance(self.estimator, list)
            else [self._default() if self.estimator is None else self.estimator]
        )
        members = [item[1] if isinstance(item, tuple) and len(item) == 2 else item for item in given]
        if members and all(hasattr(member, "__sklearn_tags__") for member in members):
            inputs = [get_tags(member).input_tags for member in members]
            for name in ("allow_nan", "sparse", "categorical", "string"):
                setattr(tags.input_tags, name, all(getattr(tag, name) for tag in inputs))
        return tags

    # --- bags ---

    def _make_draw(
        self,
        n_rows: int,
        weight: NDArray[np.float64] | None,
        groups: NDArray[np.int32] | None,
        strata: NDArray[np.int32] | None,
        seed: int,
    ) -> tuple[Draw, NDArray[np.float64] | None]:
        """How bags of rows are drawn, and the weights that are left for the members to see: as a forest does it."""
        forest = RandomForestClassifier(
            bootstrap=self.bootstrap or True,
            replace=bool(self.bootstrap),
            max_samples=self.max_samples,
            block_size=self.block_size,
            stratify=getattr(self, "stratify", None),
        )
        draw, held = forest._make_draw(n_rows, weight, groups, strata, seed)  # noqa: SLF001
        if self.bootstrap or draw.units.n_drawn.sum() < len(draw.units.order):
            return draw, held
        self._refuse_without_bags(draw)
        return Draw("whole", n_rows, n_rows, seed, positive_chance(weight)).with_tables(), weight

    def _refuse_without_bags(self, draw: Draw) -> None:
        """Refuse what makes no sense where every member sees all rows."""
        wanted = {
            "Out of bag estimation": bool(self.oob_score),
            "block_size or groups": draw.groups is not None,
            "stratify or strata": draw.strata is not None and not draw.is_balanced,  # classes may be of one size
        }
        for name, is_wanted in wanted.items():
            if is_wanted:
                raise ValueError(
                    f"{name} only available if bootstrap=True or max_samples is below the number of rows: "
                    "as it is, every member sees all rows"
                )

    def _make_spaces(self, seed: int) -> Subspaces:
        """How bags of columns are drawn."""
        n_features = int(self.n_features_in_)
        if isinstance(self.max_features, Integral):
            n_drawn = int(self.max_features)
            if n_drawn > n_features:
                raise ValueError(f"max_features={n_drawn} must be <= n_features={n_features}; give 1.0 for all of them")
        else:
            n_drawn = max(1, int(float(self.max_features) * n_features))
        return Subspaces(n_features, n_drawn, seed, bool(self.bootstrap_features))

    # --- fitting ---

    def _open(self, X: Any) -> Columns | Rows:
        """X for fit, its names and width recorded: its columns, or a sparse matrix where members may take one."""
        self._templates = list_templates(self, self._default())
        if issparse(X) and not is_fast(self._templates, self._default):
            return open_sparse(self, X, is_fit=True)
        return open_x(self, X, is_fit=True)

    def _fit_members(
        self,
        X: Any,
        opened: Columns | Rows,
        y: NDArray[Any],
        sample_weight: Any,
        groups: NDArray[np.int32] | None,
        strata: NDArray[np.int32] | None,
    ) -> Self:
        """Fit the members that are wanted beyond those there are (warm start)."""
        templates = self.__dict__.pop("_templates")
        weight = check_weights(sample_weight, opened.n_rows)
        is_warm = bool(self.warm_start) and hasattr(self, "_bags")
        if not is_warm:
            forget(self, OOB_RESULTS)
        seed = self._bags.seed if is_warm else draw_seed(self.random_state)
        draw, held = self._make_draw(opened.n_rows, weight, groups, strata, seed)
        bags = Bags(draw, self._make_spaces(seed), seed)
        self.estimator_ = [t.estimator for t in templates] if isinstance(self.estimator, list) else templates[0][1]
        classes = getattr(self, "classes_", None)
        labels = None if classes is None else tuple(classes.tolist())
        has_shares = classes is not None and all(hasattr(t.estimator, "predict_proba") for t in templates)
        is_soft = has_shares and not self._is_hard
        if is_fast(templates, self._default):
            table = read_columns(opened, templates[0].estimator.categorical_features)
            mark = fingerprint(table, y, labels) + mark_weights(held)
            n_old = self._count_kept(mark, bags, is_soft=is_soft) if is_warm else 0
            growth, curve = self._grow_trees(templates[0].estimator, table, y, held, bags, n_old)
        else:
            rows = opened if isinstance(opened, Rows) else hold_rows(X, opened)
            if bags.spaces.has_repeats and not isinstance(opened, Rows) and opened.is_frame:
                raise ValueError(
                    "bootstrap_features=True draws columns more than once, but a frame holds each column once: "
                    "pass an array, or set bootstrap_features=False"
                )
            mark = mark_rows(self, rows, y) + mark_weights(held)
            n_old = self._count_kept(mark, bags, is_soft=is_soft) if is_warm else 0
            growth, curve = self._fit_rest(templates, rows, y, held, bags, n_old, is_soft=is_soft)
        self._bags, self._fingerprint, self._is_soft = bags, mark, is_soft
        if self.oob_score:
            self._keep_oob(growth, y, curve)
        else:
            forget(self, OOB_RESULTS)
        return self

    def _count_kept(self, mark: str, bags: Bags, *, is_soft: bool) -> int:
        """How many members a warm start keeps, if it is one of the same data, bags and kind of members."""
        n_old = len(self)
        if self.n_estimators < n_old:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger or equal to len(estimators_)={n_old} "
                "when warm_start==True"
            )
        if mark != self._fingerprint:
            raise ValueError(
                "warm_start adds members to an ensemble, so fit needs the X and y of the first fit again, the same "
                "weights and the same kind of estimator; these differ. Set warm_start=False to begin anew."
            )
        old = self._bags
        is_same_draw = np.array_equal(bags.draw.counts(0), old.draw.counts(0))
        if not is_same_draw or not np.array_equal(bags.spaces.columns(0), old.spaces.columns(0)):
            raise ValueError(
                "warm_start adds members whose bags are drawn as those before; keep max_samples, max_features, "
                "weights, groups and all else that draws, or set warm_start=False to begin anew."
            )
        if self.oob_score and not self._has_trees:  # trees can vote again, on codes
            if not hasattr(self, "_oob_votes"):
                raise ValueError(
                    "oob_score with warm_start must be set from the first fit on where members are no CART trees: "
                    "set warm_start=False to begin anew"
                )
            if is_soft != self._is_soft:
                raise ValueError(
                    "out-of-bag rows have class shares from some members and would have votes from others: keep voting "
                    "and whether members have predict_proba, or set warm_start=False to begin anew"
                )
        return n_old

    def _grow_trees(
        self,
        base: Any,
        table: Any,
        y: NDArray[Any],
        weight: NDArray[np.float64] | None,
        bags: Bags,
        n_old: int,
    ) -> tuple[Any, list[float]]:
        """Grow CART trees on codes that are made once; returns them as they grew, with the out-of-bag curve."""
        base = clone(base).set_params(random_state=0)  # trees draw by keys of their own
        base._validate_params()  # noqa: SLF001
        schema: Schema = table.schema
        classes = getattr(self, "classes_", None)
        is_balanced = getattr(base, "class_weight", None) == "balanced"
        if classes is not None and not is_balanced:
            weight = weigh_classes(base.class_weight, classes, y, weight)
        n_new = self.n_estimators - n_old
        n_drawn = bags.spaces.n_drawn
        seconds = growing_seconds(table.n_rows, n_drawn, n_new)
        chosen = kernels(seconds)
        weights = fix_weights(weight, table.n_rows)
        target = self._make_target(base, y if classes is not None else hush_target(y, weight), weights)
        codes = code_table(table, weights.values, int(base.max_bins), chosen)
        weights, target = with_room(weights, target)
        labels = None if classes is None else tuple(classes.tolist())
        plan = Plan(
            codes=codes,
            weights=weights,
            target=target,
            draw=bags.draw,
            params=replace(cart_params(base, table.n_rows, n_drawn), shuffles=self.estimator is None),
            seed=bags.seed,
            monotone=check_monotone(base.monotonic_cst, self, schema),
            is_weighed=None if weight is None or np.all(weight > 0.0) else weight > 0.0,
            balances_bags=is_balanced,
            ccp_alpha=float(base.ccp_alpha),
            has_oob=bool(self.oob_score),
            is_hard=self._is_hard,
            shift=self._shift,
        )
        legend = make_legend(schema, labels, codes.has_missing, base.criterion)
        growth = SubspaceGrowth(plan, legend, bags.spaces)
        curve = self._start_oob(growth, y, self.forest_ if n_old else None, chosen) if plan.has_oob else []
        if n_new > 0:
            n_workers = count_workers(self.n_jobs, n_new, seconds * COMPILED_SHARE)
            is_short, verbose = seconds * COMPILED_SHARE < SHORT_SECONDS, bool(self.verbose)
            new = growth.run(n_old, n_new, chosen, n_workers, is_short=is_short, verbose=verbose)
            self.forest_ = join_forests(self.forest_, new) if n_old else new
        forget(self, ("_members",))
        base.max_features_ = count_features(base.max_features, n_drawn)
        self._schema, self._base = schema, base.set_params(random_state=None)
        return growth, curve

    def _fit_rest(
        self,
        templates: list[Template],
        rows: Any,
        y: NDArray[Any],
        weight: NDArray[np.float64] | None,
        bags: Bags,
        n_old: int,
        *,
        is_soft: bool,
    ) -> tuple[Any, list[float]]:
        """Fit members of any kind, one by one; returns them as they were fitted, with the out-of-bag curve."""
        classes = getattr(self, "classes_", None)
        plan = MemberPlan(
            templates,
            rows,
            y if classes is None else classes[y],
            classes,
            weight,
            bags,
            is_hard=not is_soft,
            has_oob=bool(self.oob_score),
            shift=self._shift,
        )
        fits: Any = MemberFits(plan)
        old: Any = self._members if n_old else None
        curve = self._start_oob(fits, y, old, None) if plan.has_oob else []
        n_new = self.n_estimators - n_old
        # nobody knows how long a member takes, or whether it lets others run: threads only where they are asked for
        n_workers = count_workers(self.n_jobs, max(n_new, 1), 0.0)
        new = fits.run(n_old, n_new, n_workers, verbose=bool(self.verbose))
        self._members = [*(old or ()), *new]
        forget(self, ("forest_", "_schema", "_base"))
        return fits, curve

    @property
    def _is_hard(self) -> bool:
        return getattr(self, "voting", "soft") == "hard"

    def _make_target(self, base: Any, y: NDArray[Any], weights: Weights) -> Target:
        raise NotImplementedError

    # --- reading ---

    def _hear(self, X: Any) -> NDArray[np.float64]:
        """Mean of what the members say, shape (n_rows, n_classes or 1)."""
        if self._has_trees:
            values = encode(open_x(self, X, is_fit=False), self._schema)
            answer = self._make_predictor().answer(values, self.n_jobs)
            return answer if self.forest_.n_classes else answer[:, None]
        rows = open_sparse(self, X, is_fit=False) if issparse(X) else hold_rows(X, open_x(self, X, is_fit=False))
        n_workers = count_workers(self.n_jobs, len(self), 0.0)
        classes = getattr(self, "classes_", None)
        total = hear_all(self._members, rows, self._bags, classes, n_workers, is_soft=self._is_soft, shift=self._shift)
        return np.ldexp(total / len(self), self._shift)

    def _make_predictor(self) -> VotePredictor:
        classes = self.classes_ if self.forest_.n_classes else None
        return VotePredictor(self._schema, classes, self.forest_, self._is_hard, self._shift)

    def _has_predictor(self) -> bool:
        return hasattr(self, "forest_")

    def _find_fault(self) -> str | None:
        has_members = hasattr(self, "forest_") or hasattr(self, "_members")
        return None if has_members else f"a fitted {type(self).__name__} has trees or other members"

    @property
    def _has_trees(self) -> bool:
        """Whether the members are trees of one forest."""
        check_is_fitted(self, "_bags")
        return hasattr(self, "forest_")

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Impurity decrease by feature, the mean over the trees, scaled to sum 1, shape (n_features,)."""
        if not self._has_trees:
            raise AttributeError("feature_importances_ is there for bags of CART trees only")
        return self.forest_.importances()

    @property
    def estimators_(self) -> list[Any]:
        """The fitted members; trees are made anew at each access."""
        if self._has_trees:
            return [self._make_tree(t) for t in range(len(self.forest_))]
        return list(self._members)

    @property
    def estimators_samples_(self) -> list[NDArray[np.int64]]:
        """The rows of each bag, ascending, repeated as often as drawn; recomputed, not stored."""
        check_is_fitted(self, "_bags")
        return [self._bags.draw.rows(t) for t in range(len(self))]

    @property
    def estimators_features_(self) -> list[NDArray[np.int64]]:
        """The columns of each member, ascending; recomputed, not stored."""
        check_is_fitted(self, "_bags")
        return [self._bags.spaces.columns(t) for t in range(len(self))]

    def __len__(self) -> int:
        return len(self.forest_) if self._has_trees else len(self._members)

    def __getitem__(self, member: int) -> Any:
        t = range(len(self))[member]
        return self._make_tree(t) if self._has_trees else self._members[t]

    def _make_tree(self, t: int) -> Any:
        """Tree t as an estimator of its own, for the columns it has seen."""
        columns = self._bags.spaces.columns(t)
        tree = clone(self._base)
        grown, schema = self.forest_[t], self._schema
        if not self._bags.spaces.is_whole:
            grown = narrow_tree(grown, columns)
            schema = Schema(
                None if schema.names is None else tuple(schema.names[j] for j in columns),
                tuple(schema.levels[j] for j in columns),
            )
        fitted = {"tree_": grown, "_schema": schema, "n_features_in_": len(columns), "n_outputs_": 1}
        if hasattr(self, "feature_names_in_"):
            fitted["feature_names_in_"] = self.feature_names_in_[columns]
        if hasattr(self, "classes_"):
            fitted |= {"classes_": self.classes_, "n_classes_": self.n_classes_}
        tree._set_fitted({**fitted, "max_features_": self._base.max_features_})  # noqa: SLF001
        return tree


class BaggingClassifier(Classifier, _Bagging):
    """Bagging for classes: members on bags of rows or columns, or both, that vote (Breiman 1996).

    Members are CART trees, any other classifiers, or several kinds of them in turn. Bags of trees grow as fast as a
    forest. A bag is a pure function of the seed and of the member's number: the same ensemble comes out for any number
    of threads. Members whose `fit` takes weights get all rows, with weight 0 outside their bag, as in scikit-learn;
    others the rows of their bag.

    Permutation importance, tables of votes and the like need trees and are those of the forests:
    `RandomForestClassifier(max_features=None)` grows the trees of `estimator=None`, with all of them.

    Parameters
    ----------
    estimator : estimator, list or None, default=None
        What the members are; None means CART trees that give tests of equal gain to any of the tied features, not to
        the first (letter recognition: 7.1 % errors instead of 7.8 %). From a list, of estimators or of pairs (name,
        estimator), members take turns, round and round. Those with a `random_state` get seeds of their own. Class
        weights are the members' own: `CARTClassifier(class_weight="balanced")` weighs the classes of each bag.
    n_estimators : int, default=10
        Number of members.
    max_samples : int or float, optional
        Rows (groups, with `groups`) drawn for a bag: a number, or a fraction up to 1.0; as many as there are by
        default. With sample weights a fraction is one of their sum, as in scikit-learn.
    max_features : int or float, default=1.0
        Columns drawn for each member: a number, or a fraction. Fewer than all are random subspaces.
    bootstrap : bool or "poisson", default=True
        Draw rows with replacement. False draws without (pasting); every member then sees all rows unless `max_samples`
        is smaller. "poisson" draws the count of each row by itself.
    bootstrap_features : bool, default=False
        Draw columns with replacement.
    stratify : {"class", "balanced"}, optional
        Draw from every class in proportion to its rows, or as many from each class as the smallest has.
    block_size : int, optional
        Draw blocks of this many rows, one after the other in the table, instead of rows: for time series.
    voting : {"soft", "hard"}, default="soft"
        Average the class probabilities of the members, or count one vote each. Votes are counted as well if a member
        has no `predict_proba`.
    oob_score : bool, str or callable, default=False
        Keep what members say of rows outside their bag and score it: by accuracy (True), a scorer of scikit-learn by
        name, or metric(y_true, y_pred).
    warm_start : bool, default=False
        Keep the members of the last fit, which must have been on the same data and weights, and fit what is missing
        of `n_estimators`: the same ensemble as one fitted at once.
    n_jobs : int, optional
        Most threads; -1 means one per processor. By default trees use as many as the work pays for, other members one;
        those that hold the interpreter's lock gain nothing by more. Results never depend on it.
    random_state : int, RandomState or None
        Seed; a RandomState is drawn from once.
    verbose : int, default=0
        Show progress.

    Attributes
    ----------
    estimators_ : list of estimators
        The members; those of a subspace take the columns `estimators_features_` alone.
    estimators_samples_ : list of int64 arrays
        The bag of each member as row ids, recomputed when asked for.
    estimators_features_ : list of int64 arrays
        The columns of each member, recomputed when asked for.
    estimator_ : estimator or list
        What the members are copies of.
    forest_ : Forest, if the members are CART trees of one kind
        The trees as arrays; `forest_[t].to_text()` draws one.
    feature_importances_ : array (n_features,), if the members are CART trees of one kind
        Mean impurity decrease, scaled to sum 1.
    classes_ : array (n_classes,)
        The classes in y, ascending.
    n_classes_, n_features_in_ : int
    feature_names_in_ : array of str, if X had names
    oob_score_ : float, with `oob_score`
    oob_decision_function_ : array (n_rows, n_classes), with `oob_score`
        Mean vote of the members that have not seen the row; NaN where every member has.
    oob_curve_ : array (n_estimators,), with `oob_score`
        Share of wrong out-of-bag predictions after 1, 2, ... members.

    Examples
    --------
    >>> from spinney import BaggingClassifier, datasets
    >>> table = datasets.load("play_tennis")
    >>> X, y = table.drop_columns(["play"]), table["play"].to_pylist()
    >>> bag = BaggingClassifier(n_estimators=50, max_features=0.5, random_state=0).fit(X, y)
    >>> bag.predict(X.slice(0, 3)).tolist()
    ['no', 'no', 'yes']
    >>> len(bag), len(bag.estimators_features_[0])
    (50, 2)

    Members of different kinds:

    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> X, y = np.arange(40.0)[:, None], np.arange(40) > 20
    >>> mixed = BaggingClassifier([LogisticRegression(), KNeighborsClassifier()], 6, random_state=0).fit(X, y)
    >>> [type(member).__name__ for member in mixed.estimators_[:3]]
    ['LogisticRegression', 'KNeighborsClassifier', 'LogisticRegression']
    """

    _default: ClassVar[type] = CARTClassifier
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BAGGING_CONSTRAINTS,
        "stratify": [StrOptions({"class", "balanced"}), None],
        "voting": [StrOptions({"soft", "hard"})],
    }

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        max_samples: float | None = None,
        max_features: float = 1.0,
        bootstrap: bool | str = True,
        bootstrap_features: bool = False,
        stratify: str | None = None,
        block_size: int | None = None,
        voting: str = "soft",
        oob_score: bool | str | Any = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, strata: Any = None) -> Self:
        """Fit the members.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)
            What the members take; frames reach them as frames.
        y : array-like (n_rows,)
            Classes of any type.
        sample_weight : array-like (n_rows,), optional
            A bootstrap draws rows in proportion to their weight; without bags, and where rows are drawn without
            replacement, by group or by stratum, the members weigh them. Rows of weight 0 are left out.
        groups : array-like (n_rows,), optional
            Rows of one group are drawn together, so that an out-of-bag row has no relative in the bag.
        strata : array-like (n_rows,), optional
            Bags draw from every stratum in proportion to its size.
        """
        with all_or_nothing(self):
            self._validate_params()
            opened = self._open(X)
            n_rows = opened.n_rows
            self.classes_, codes = check_classes(self, y, n_rows)
            self.n_classes_ = len(self.classes_)
            stratum_codes = check_codes(strata, "strata", n_rows)
            if self.stratify is not None:
                if stratum_codes is not None:
                    raise ValueError("stratify draws by class, strata= by the given labels: use one")
                stratum_codes = codes.astype(np.int32)
            group_codes = check_codes(groups, "groups", n_rows)
            return self._fit_members(X, opened, codes, sample_weight, group_codes, stratum_codes)

    def _make_target(self, base: Any, y: NDArray[Any], weights: Weights) -> Target:  # noqa: ARG002
        return class_target(y, self.n_classes_, weights)

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict class probabilities, shape (n_rows, n_classes): the mean of those of the members, or of their votes.

        A class that a member's bag did not hold has probability 0 for that member.
        """
        return self._hear(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each row: the most probable, the first among equals."""
        shares = self._hear(X)
        return self.classes_[shares.argmax(axis=1)]

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithm of `predict_proba`; -inf for probability 0."""
        return log(self._hear(X))


class BaggingRegressor(Regressor, _Bagging):
    """Bagging for numbers: the mean of members on bags of rows or columns, or both (Breiman 1996).

    Intervals, quantiles and permutation importance are those of the forests: `RandomForestRegressor(max_features=None)`
    grows the trees of `estimator=None`, with all of them.

    Parameters
    ----------
    estimator : estimator, list or None, default=None
        What the members are; None means CART trees. A list as in `BaggingClassifier`.
    oob_score : bool, str or callable, default=False
        As in `BaggingClassifier`; True scores by R2.
    n_estimators, max_samples, max_features, bootstrap, bootstrap_features, block_size
        As in `BaggingClassifier`.
    warm_start, n_jobs, random_state, verbose
        As in `BaggingClassifier`.

    Attributes
    ----------
    estimators_, estimators_samples_, estimators_features_, estimator_, forest_, feature_importances_
        As in `BaggingClassifier`.
    n_features_in_, feature_names_in_, oob_score_
        As in `BaggingClassifier`.
    oob_prediction_ : array (n_rows,), with `oob_score`
        Mean over the members that have not seen the row; NaN where every member has.
    oob_curve_ : array (n_estimators,), with `oob_score`
        Mean squared error of the out-of-bag predictions after 1, 2, ... members.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import BaggingRegressor
    >>> X = np.linspace(0.0, 1.0, 200)[:, None]
    >>> bag = BaggingRegressor(n_estimators=50, random_state=0).fit(X, X[:, 0] ** 2)
    >>> bag.predict([[0.5]]).round(1).tolist()
    [0.2]
    """

    _default: ClassVar[type] = CARTRegressor
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = BAGGING_CONSTRAINTS

    def __init__(
        self,
        estimator: Any = None,
        n_estimators: int = 10,
        *,
        max_samples: float | None = None,
        max_features: float = 1.0,
        bootstrap: bool | str = True,
        bootstrap_features: bool = False,
        block_size: int | None = None,
        oob_score: bool | str | Any = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self._store(locals())

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, strata: Any = None) -> Self:
        """Fit the members; y holds numbers, the rest is as in the classifier."""
        with all_or_nothing(self):
            self._validate_params()
            opened = self._open(X)
            numbers = check_numbers(self, y, opened.n_rows)
            group_codes = check_codes(groups, "groups", opened.n_rows)
            stratum_codes = check_codes(strata, "strata", opened.n_rows)
            self._shift = max(math.frexp(float(np.max(np.abs(numbers))))[1] - MOST_BITS, 0)  # as in a forest
            return self._fit_members(X, opened, numbers, sample_weight, group_codes, stratum_codes)

    def _make_target(self, base: Any, y: NDArray[Any], weights: Weights) -> Target:
        return value_target(y, weights, has_square=CRITERIA[base.criterion].needs_squares or base.min_target_std > 0.0)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict the target of each row: the mean of what the members predict."""
        return self._hear(X)[:, 0]
