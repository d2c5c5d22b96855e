"""Ensembles whose members learn from one table under weights that change from round to round."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from scipy.sparse import issparse
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from spinney._cost import COMPILED_SHARE, SHORT_SECONDS, VISIT_SECONDS
from spinney._criteria import CRITERIA
from spinney._jit import kernels
from spinney.ensemble.adaboost import AdaBoost, RowWeights, ValueTarget
from spinney.ensemble.adaboost_trees import TreeMembers
from spinney.ensemble.sampling import Draw, draw_key
from spinney.estimators.base import Estimator
from spinney.estimators.base_estimators import (
    Rows,
    Template,
    check_members,
    check_template,
    hold_rows,
    make_member,
    open_sparse,
)
from spinney.estimators.base_forest import forget
from spinney.estimators.cart import cart_params, count_features, grows_in_forests
from spinney.estimators.checks import check_monotone, check_weights, draw_seed, open_x, weigh_classes
from spinney.estimators.early_stopping import draw_held
from spinney.estimators.kept import Kept
from spinney.estimators.training import make_legend
from spinney.model.predictors import WeightedPredictor
from spinney.table.coding import code_table
from spinney.table.fixed_point import fix_weights, scale, weight_unit, weighted_sum
from spinney.table.ingest import read_columns
from spinney.table.schema import Schema, encode
from spinney.tree.forest import Forest, join_trees
from spinney.tree.predict import find_leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from spinney.ensemble.adaboost import Round
    from spinney.table.columns import Columns
    from spinney.table.fixed_point import Weights
    from spinney.tree.structure import Tree

HOLDOUT, RESAMPLE = 0x484F4C44, 0x52455341  # parts of the seed's key: held-out rows, bags of members without weights

ADABOOST_CONSTRAINTS: dict[str, list[Any]] = {
    "estimator": [HasMethods(["fit", "predict"]), None],
    "n_estimators": [Interval(Integral, 1, None, closed="left")],
    "learning_rate": [Interval(Real, 0.0, None, closed="neither")],
    "n_iter_no_change": [Interval(Integral, 1, None, closed="left"), None],
    "validation_fraction": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="neither"),
        None,
    ],
    "tol": [Interval(Real, 0.0, None, closed="left")],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
}


class Reweighted(Estimator):
    """What AdaBoost for classes and for numbers share: the rounds, their members and weights.

    CART trees grow on codes that are made once, and vote as one forest; other members are fitted one by one.
    """

    _keeps: ClassVar[dict[str, Kept]] = {
        "_schema": Kept(Schema, is_needed=False),
        "forest_": Kept(Forest, is_needed=False),
        "_members": Kept(list, is_needed=False, check=check_members),
        "estimator_": Kept(BaseEstimator),
        "_base": Kept(BaseEstimator, is_needed=False),
        "estimator_weights_": Kept(np.ndarray),
        "estimator_errors_": Kept(np.ndarray),
        "_unit": Kept(float),
        "n_iter_": Kept(int),
        "best_iteration_": Kept(int),
        "validation_scores_": Kept(np.ndarray, is_needed=False),
    }
    _default: ClassVar[Any]
    _members: list[Any]  # members that are not trees of a forest
    forest_: Forest  # those that are
    estimator_weights_: NDArray[np.float64]
    _unit: float  # of these weights

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        member = self._default if self.estimator is None else self.estimator
        if hasattr(member, "__sklearn_tags__"):
            inputs = get_tags(member).input_tags
            for name in ("allow_nan", "sparse", "categorical", "string"):
                setattr(tags.input_tags, name, getattr(inputs, name))
        return tags

    # --- fitting ---

    def _open(self, X: Any) -> Columns | Rows:
        """X for fit, its names and width recorded."""
        given = clone(self._default) if self.estimator is None else self.estimator
        self._template = check_template(self, "estimator", given)
        if self._is_fast(given):
            given._validate_params()  # noqa: SLF001
        elif issparse(X):
            return open_sparse(self, X, is_fit=True)
        return open_x(self, X, is_fit=True)

    def _is_fast(self, estimator: Any) -> bool:
        """Whether members are our trees, grown as in a forest."""
        return grows_in_forests(estimator, type(self._default))

    def _boost(
        self, X: Any, opened: Columns | Rows, y: NDArray[Any], sample_weight: Any, validation: dict[str, Any]
    ) -> Self:
        """Go through the rounds and keep what they give; y: class codes, or numbers."""
        template: Template = self.__dict__.pop("_template")
        check_validation(validation, self)
        weight = check_weights(sample_weight, opened.n_rows)
        is_fast = self._is_fast(template.estimator)
        if is_fast and hasattr(self, "classes_"):
            weight = weigh_classes(template.estimator.class_weight, self.classes_, y, weight)
        seed = draw_seed(self.random_state)
        is_used = None if weight is None or np.all(weight > 0.0) else weight > 0.0
        is_held = None
        if self.n_iter_no_change is not None and validation["X_val"] is None:
            codes = y.astype(np.int32) if hasattr(self, "classes_") else None
            is_held = draw_held(self.validation_fraction, opened.n_rows, is_used, codes, draw_key(seed, HOLDOUT))
        keep = is_used if is_held is None else ~is_held if is_used is None else is_used & ~is_held
        y_kept = y if keep is None else y[keep]
        base = fix_weights(weight if weight is None or keep is None else weight[keep], len(y_kept))
        seconds = 0.0
        if is_fast:
            seconds = len(y_kept) * self.n_features_in_ * VISIT_SECONDS * self.n_estimators
            members: Any = self._plant(template.estimator, opened, keep, y_kept, base, seed, seconds)
        else:
            members = OtherMembers(template, hold_all(X, opened), keep, self._truth(y_kept), self._read_said, seed)
        guard = self._post_guard(X, opened, y, weight, is_held, validation, is_fast=is_fast)
        boost = AdaBoost(
            members,
            lambda said: self._losses(said, y_kept),
            RowWeights(base, len(y_kept)),
            n_classes=self._count_classes(y_kept),
            inverts=getattr(self, "n_classes_", 0) == 2,
            learning_rate=float(self.learning_rate),
        )
        rounds = boost.run(
            int(self.n_estimators),
            is_enough=guard,
            is_short=seconds * COMPILED_SHARE < SHORT_SECONDS if is_fast else not self.verbose,
            verbose=bool(self.verbose),
        )
        self._keep_rounds(rounds, guard, is_fast=is_fast)
        self.estimator_ = template.estimator
        return self

    def _plant(
        self,
        given: Any,
        opened: Any,
        keep: NDArray[np.bool_] | None,
        y: NDArray[Any],
        base: Weights,
        seed: int,
        seconds: float,
    ) -> TreeMembers:
        """Trees on codes of the table, made once."""
        tree = clone(given).set_params(random_state=0)  # trees draw by keys of their own
        table = read_columns(opened, tree.categorical_features)
        schema = table.schema
        monotone = check_monotone(tree.monotonic_cst, self, schema)
        n_classes = len(self.classes_) if hasattr(self, "classes_") else 0
        chosen = kernels(seconds)
        codes = code_table(table, base.values, int(tree.max_bins), chosen, keep)
        params = cart_params(tree, len(y), schema.n_features)
        target: Any = y
        if n_classes == 0:
            target = ValueTarget(
                y, base, has_square=CRITERIA[params.criterion].needs_squares or params.min_target_std > 0.0
            )
        labels = tuple(self.classes_.tolist()) if n_classes else None
        tree.max_features_ = count_features(tree.max_features, schema.n_features)
        self._schema, self._base = schema, tree.set_params(random_state=None)
        self._legend = make_legend(schema, labels, codes.has_missing, tree.criterion)
        return TreeMembers(codes, target, n_classes, params, seed, chosen, monotone, float(tree.ccp_alpha))

    def _post_guard(
        self,
        X: Any,
        opened: Columns | Rows,
        y: NDArray[Any],
        weight: NDArray[np.float64] | None,
        is_held: NDArray[np.bool_] | None,
        validation: dict[str, Any],
        *,
        is_fast: bool,
    ) -> Guard | None:
        """Who watches over rows that no member learns from; None if there are none."""
        if is_held is not None:
            held = np.flatnonzero(is_held)
            _, hear = self._hearer(hold_all(X, opened).take(held, None), is_fast=is_fast)
            y_val, weight_val = y[held], None if weight is None else weight[held]
        elif validation["X_val"] is not None:
            try:
                n_rows, hear = self._hearer(validation["X_val"], is_fast=is_fast)
                y_val = self._read_y(validation["y_val"], n_rows)
                weight_val = check_weights(validation["sample_weight_val"], n_rows)
            except ValueError as error:
                raise ValueError(f"X_val, y_val, sample_weight_val: {error}") from error
        else:
            return None
        patience = math.inf if self.n_iter_no_change is None else int(self.n_iter_no_change)
        return self._make_guard(hear, y_val, weight_val, patience)

    def _hearer(self, X: Any, *, is_fast: bool) -> tuple[int, Callable[[Any], NDArray[Any]]]:
        """Number of rows of X, and what tells what a member, or a tree, says of them."""
        if is_fast:
            values = self._values(X)
            return len(values), lambda tree: self._answers(tree)[find_leaves(tree, values)]
        rows = self._rows(X)
        return rows.n_rows, lambda member: self._read_said(member.predict(rows.data))

    def _keep_rounds(self, rounds: list[Round], guard: Guard | None, *, is_fast: bool) -> None:
        """Store members, weights and errors, up to the best round where the rounds were to stop early."""
        self.n_iter_ = len(rounds)
        forget(self, ("validation_scores_", "forest_", "_members"))
        if guard is not None:
            self.validation_scores_ = np.array(guard.scores)
        if guard is not None and self.n_iter_no_change is not None:
            rounds = rounds[: guard.best_round]
        self.best_iteration_ = len(rounds)
        if is_fast:
            self.forest_ = join_trees((done.member for done in rounds), self.__dict__.pop("_legend"))
        else:
            self._members = [done.member for done in rounds]
            forget(self, ("_schema", "_base"))
        self._unit = 0.5 if getattr(self, "convention", "full") == "half" else 1.0
        self.estimator_weights_ = self._unit * np.array([done.alpha for done in rounds])
        self.estimator_errors_ = np.array([done.error for done in rounds])

    def _count_classes(self, y: NDArray[Any]) -> int:
        raise NotImplementedError

    def _losses(self, said: Any, y: NDArray[Any]) -> NDArray[np.float64]:
        raise NotImplementedError

    def _truth(self, y: NDArray[Any]) -> NDArray[Any]:
        raise NotImplementedError

    def _read_y(self, y: Any, n_rows: int) -> NDArray[Any]:
        raise NotImplementedError

    def _read_said(self, said: Any) -> NDArray[Any]:
        raise NotImplementedError

    def _make_guard(self, hear: Any, y: NDArray[Any], weight: NDArray[np.float64] | None, patience: float) -> Guard:
        raise NotImplementedError

    # --- reading ---

    def _has_predictor(self) -> bool:
        return hasattr(self, "forest_")

    def _find_fault(self) -> str | None:
        has_members = hasattr(self, "forest_") or hasattr(self, "_members")
        return None if has_members else f"a fitted {type(self).__name__} has trees or other members"

    @property
    def _has_trees(self) -> bool:
        """Whether the members are trees of one forest."""
        check_is_fitted(self, "estimator_weights_")
        return hasattr(self, "forest_")

    def _rows(self, X: Any) -> Rows:
        """X as members take it."""
        return open_sparse(self, X, is_fit=False) if issparse(X) else hold_rows(X, open_x(self, X, is_fit=False))

    def _values(self, X: Any) -> NDArray[Any]:
        """X as trees take it."""
        return encode(open_x(self, X, is_fit=False), self._schema)

    def _make_predictor(self) -> WeightedPredictor:
        return WeightedPredictor(self._schema, getattr(self, "classes_", None), self.forest_, self.estimator_weights_)

    def _answers(self, tree: Tree) -> NDArray[Any]:
        """What each leaf of a tree says: a class code, or a number."""
        return tree.leaf_class if tree.n_classes else tree.threshold

    def _staged_said(self, X: Any) -> tuple[int, Iterator[NDArray[Any]]]:
        """Number of rows, and what each member says of them, in turn."""
        members: Any = self.forest_ if self._has_trees else self._members
        n_rows, hear = self._hearer(X, is_fast=self._has_trees)
        return n_rows, map(hear, members)

    @property
    def _alphas(self) -> NDArray[np.float64]:
        """Weights of the members without the factor of a convention."""
        return self.estimator_weights_ / self._unit

    def staged_weights(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[NDArray[np.float64]]:
        """Weights of the training rows after each round: those that the next member learns from.

        Parameters
        ----------
        X, y, sample_weight
            The training data again, without the rows that were held out: no model keeps it.

        Yields
        ------
        weight : float64 array (n_rows,)
            With sum 1.
        """
        n_rows, heard = self._staged_said(X)
        target = self._read_y(y, n_rows)
        used, base = weigh_rows(check_weights(sample_weight, n_rows), n_rows)
        rows = RowWeights(base, len(used))
        for said, alpha in zip(heard, self._alphas.tolist(), strict=True):
            rows.raise_by(alpha, self._losses(said[used], target[used]))
            shares = np.zeros(n_rows)
            shares[used] = rows.shares()
            yield shares

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Importances of the members, weighted as their votes, scaled to sum 1, shape (n_features,)."""
        members: Any = self.forest_ if self._has_trees else self._members
        weights = np.abs(self.estimator_weights_)
        if not weights.any():
            weights = np.ones(len(weights))
        total = np.zeros(self.n_features_in_)
        for member, weight in zip(members, weights.tolist(), strict=True):
            if self._has_trees:
                total += weight * member.importances()
            elif hasattr(member, "feature_importances_"):
                total += weight * member.feature_importances_
            else:
                raise AttributeError(
                    f"feature_importances_ are those of the members, and {type(member).__name__} has none"
                )
        scale = total.sum()
        return total / (scale if scale > 0.0 else 1.0)

    @property
    def estimators_(self) -> list[Any]:
        """The fitted members; trees are made anew at each access."""
        if self._has_trees:
            return [self._make_tree(t) for t in range(len(self.forest_))]
        return list(self._members)

    def __len__(self) -> int:
        return len(self.forest_) if self._has_trees else len(self._members)

    def __getitem__(self, member: int) -> Any:
        t = range(len(self))[member]
        return self._make_tree(t) if self._has_trees else self._members[t]

    def _make_tree(self, t: int) -> Any:
        """Tree t as an estimator of its own."""
        tree = clone(self._base)
        fitted = {"tree_": self.forest_[t], "_schema": self._schema, "n_outputs_": 1}
        for name in ("n_features_in_", "feature_names_in_", "classes_", "n_classes_"):
            if hasattr(self, name):
                fitted[name] = getattr(self, name)
        tree._set_fitted({**fitted, "max_features_": self._base.max_features_})  # noqa: SLF001
        return tree


def hold_all(X: Any, opened: Columns | Rows) -> Rows:
    """X as members take it, after it was opened."""
    return opened if isinstance(opened, Rows) else hold_rows(X, opened)


# --- members of any kind ----------------------------------------------------------------------------------------


class OtherMembers:
    """Fits the members of `AdaBoost` that are no trees of ours; to be called as its `fit_member`.

    Parameters
    ----------
    template : Template
        What they are copied from.
    rows : Rows
        X as members take it.
    keep : bool (n_rows of X,), optional
        Rows to learn from.
    truth : (n_rows kept,)
        Classes or numbers.
    read : callable
        From what a member predicts to class codes or numbers.
    seed : int
    """

    def __init__(
        self,
        template: Template,
        rows: Rows,
        keep: NDArray[np.bool_] | None,
        truth: NDArray[Any],
        read: Callable[[Any], NDArray[Any]],
        seed: int,
    ) -> None:
        self.template = template
        self.rows = Rows(rows.take(None if keep is None else np.flatnonzero(keep), None), len(truth))
        self.truth = truth
        self.read = read
        self.seed = seed
        self.config = get_config()  # of this thread; others have their own

    def __call__(self, number: int, rows: RowWeights, _: Any) -> tuple[Any, NDArray[Any]]:
        """Fit member `number`; also return what it says of each row."""
        member = make_member(self.template, self.seed, number)
        try:
            with config_context(**self.config):
                if has_fit_parameter(member, "sample_weight"):
                    weight = rows.weights.values * weight_unit(rows.weights)
                    member.fit(self.rows.data, self.truth, sample_weight=weight)
                else:
                    seed = draw_key(self.seed, RESAMPLE)
                    bag = Draw("bootstrap", self.rows.n_rows, self.rows.n_rows, seed, rows.shares()).rows(number)
                    member.fit(self.rows.take(bag, None), self.truth[bag])
                return member, self.read(member.predict(self.rows.data))
        except Exception as error:
            error.add_note(f"raised by member {number}: {self.template.estimator!r}")
            raise


# --- validation -------------------------------------------------------------------------------------------------


def check_validation(validation: dict[str, Any], owner: Any) -> None:
    """Refuse half a validation set, and early stopping without one."""
    has_rows = validation["X_val"] is not None
    if has_rows != (validation["y_val"] is not None):
        raise ValueError("X_val and y_val belong together: give both or none")
    if validation["sample_weight_val"] is not None and not has_rows:
        raise ValueError("sample_weight_val belongs to X_val and y_val, which are not given")
    if owner.n_iter_no_change is not None and not has_rows and owner.validation_fraction is None:
        raise ValueError(
            f"n_iter_no_change={owner.n_iter_no_change} stops early by rows held out, but there are none: give "
            "X_val and y_val to fit, or a validation_fraction"
        )


class Guard:
    """Scores each round on rows that no member learns from, and says when it is enough.

    Parameters
    ----------
    hear : callable
        What a member says of the rows.
    add : callable
        ``add(said, alpha)`` adds it to the votes.
    measure : callable
        Score of the votes so far, higher is better.
    patience : float
        Rounds without a rise of the score after which it is enough.
    tol : float
        What is no rise.
    """

    def __init__(
        self,
        hear: Callable[[Any], NDArray[Any]],
        add: Callable[[NDArray[Any], float], None],
        measure: Callable[[], float],
        patience: float,
        tol: float,
    ) -> None:
        self.hear, self.add, self.measure = hear, add, measure
        self.patience, self.tol = patience, tol
        self.scores: list[float] = []
        self.best_round = 0
        self.best_score = -math.inf

    def __call__(self, done: Round) -> bool:
        """Whether this round is the last one wanted."""
        self.add(self.hear(done.member), done.alpha)
        score = self.measure()
        self.scores.append(score)
        if self.best_round == 0 or score > self.best_score + self.tol:
            self.best_round, self.best_score = len(self.scores), score
        return len(self.scores) - self.best_round >= self.patience


def weigh_rows(weight: NDArray[np.float64] | None, n_rows: int) -> tuple[NDArray[np.intp], Weights]:
    """Rows of positive weight, and their weights."""
    if weight is None:
        return np.arange(n_rows), fix_weights(None, n_rows)
    used = np.flatnonzero(weight > 0.0)
    return used, fix_weights(weight[used], len(used))


def measure_accuracy(y: NDArray[np.int64], weight: NDArray[np.float64] | None) -> Callable[[NDArray[Any]], float]:
    """The weighted share of class codes that are right; sums do not depend on the order of the rows."""
    used, weights = weigh_rows(weight, len(y))
    truth, total = y[used], math.ldexp(weights.total, -weights.bits)
    return lambda said: weighted_sum((said[used] == truth).astype(np.float64), weights) / total


def measure_distance(y: NDArray[np.float64], weight: NDArray[np.float64] | None) -> Callable[[NDArray[Any]], float]:
    """Minus the root mean squared error of numbers; sums do not depend on the order of the rows."""
    used, weights = weigh_rows(weight, len(y))
    shift = math.frexp(float(np.max(np.abs(y[used]))))[1]  # differences near the end of float64 have no room
    truth, total = np.ldexp(y[used], -shift), math.ldexp(weights.total, -weights.bits)

    def measure(said: NDArray[np.float64]) -> float:
        off = np.abs(np.ldexp(said[used], -shift) - truth)
        exponent = math.frexp(float(np.max(off)))[1]
        off = np.ldexp(off, -exponent)
        return -scale(math.sqrt(weighted_sum(off * off, weights) / total), exponent + shift)

    return measure
