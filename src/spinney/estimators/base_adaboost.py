"""AdaBoost's estimators: members that learn from one table under weights that change from round to round."""

from __future__ import annotations

import math
from contextlib import nullcontext
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn import config_context, get_config
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags
from sklearn.utils._param_validation import HasMethods, Interval, RealNotInt
from sklearn.utils.validation import has_fit_parameter

from spinney.ensemble import held_out
from spinney.ensemble.adaboost import AdaBoost, EarlyStopping, RowWeights, ValueTarget
from spinney.ensemble.adaboost_trees import TreeFitter, leaf_predictions
from spinney.ensemble.forest import member_key
from spinney.ensemble.sampling import Draw, draw_key, positive_rows
from spinney.estimators.adaboost_by_levels import DiskRounds, plan_adaboost
from spinney.estimators.adaboost_checkpoint import KeptMembers
from spinney.estimators.adaboost_plan import TreePlan
from spinney.estimators.base import Estimator
from spinney.estimators.cart import cart_params, count_features, grows_in_forests, make_tree_estimator
from spinney.estimators.checkpoints import CHECKPOINT_CONSTRAINTS, open_checkpoint, refuse_members
from spinney.estimators.checks import check_monotone, check_weights, draw_seed, open_x
from spinney.estimators.evaluation_sets import GivenSet, Validation, check_stopping
from spinney.estimators.fingerprints import fingerprint, mark_weights
from spinney.estimators.kept import Kept, Part, kept_by, set_parts, take_fitted
from spinney.estimators.other_members import (
    Rows,
    Template,
    check_members,
    check_template,
    hold_rows,
    make_member,
)
from spinney.estimators.parameters import parameter
from spinney.estimators.scanned import give_rows, is_scanned, open_store, unpack_evaluated
from spinney.estimators.training import (
    OpenedData,
    check_range,
    code_rows,
    make_legend,
    open_training,
    target_form,
)
from spinney.model.fitted_adaboost import FittedAdaBoost, VotingEstimators, VotingTrees, find_adaboost_fault
from spinney.model.fitted_boosting import Scores
from spinney.scale.plan import GrowingBytes
from spinney.table.fixed_point import fix_weights, weight_unit
from spinney.table.schema import Schema, encode
from spinney.tree.forest import Forest, join_trees
from spinney.tree.predict import find_leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from spinney.ensemble.adaboost import Round
    from spinney.estimators.checkpoints import Checkpoint
    from spinney.model.predictors import WeightedPredictor
    from spinney.scale.plan import TopGrowing
    from spinney.table.fixed_point import Weights
    from spinney.table.sparse import Values

    Predict = Callable[[Any], NDArray[Any]]  # of a member: class codes, or numbers, for certain rows

RESAMPLE = 0x52455341  # the part of the seed's key that bags of members without weights are drawn from

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
    **CHECKPOINT_CONSTRAINTS,
}


class AdaBoostData(NamedTuple):
    """What a fit was given, checked, and which rows it learns from."""

    given: OpenedData
    is_held: NDArray[np.bool_] | None  # (n_rows,) rows that are held out; None: none
    seed: int
    checkpoint: Checkpoint | None = None

    @property
    def keep(self) -> NDArray[np.bool_] | None:
        """Rows to learn from; None: all."""
        is_used = positive_rows(self.given.weight)
        if self.is_held is None:
            return is_used
        return ~self.is_held if is_used is None else is_used & ~self.is_held

    def learning_rows(self) -> tuple[NDArray[Any], Weights]:
        """Target and weights of the rows to learn from."""
        keep, y, weight = self.keep, self.given.y, self.given.weight
        if keep is not None:
            y, weight = y[keep], None if weight is None else weight[keep]
        return y, fix_weights(weight, len(y))


class BaseAdaBoost(Estimator[FittedAdaBoost]):
    """What AdaBoost for classes and for numbers share: the rounds, their members and weights.

    CART trees grow on codes that are made once, and vote as one forest; other members are fitted one by one.
    """

    _growing_bytes: ClassVar[GrowingBytes] = GrowingBytes(has_bins=False, copies=1, state=130, is_shared_out=True)
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
    _takes_columns: ClassVar[bool] = False
    _default: ClassVar[Any]  # what members are where no estimator is given

    _schema = Part("trees.schema")
    forest_ = Part("trees.forest")
    _base = Part("trees.base")
    _members = Part("others.members")
    estimator_ = Part("template")
    estimator_weights_ = Part("weights")
    estimator_errors_ = Part("errors")
    _unit = Part("unit")
    n_iter_ = Part("n_rounds")
    best_iteration_ = Part("n_members")
    validation_scores_ = Part("validation.values")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        member = self._default if self.estimator is None else self.estimator
        if hasattr(member, "__sklearn_tags__"):
            inputs = get_tags(member).input_tags
            for name in ("allow_nan", "sparse", "categorical", "string"):
                setattr(tags.input_tags, name, getattr(inputs, name))
        return tags

    # --- what differs between classes and numbers ---

    def _count_classes(self, y: NDArray[Any]) -> int:
        """Classes of the rows to learn from, at least 2; 2 for numbers."""
        raise NotImplementedError

    def _find_losses(self, predicted: Any, y: NDArray[Any]) -> NDArray[np.float64]:
        """Loss of each row, within [0, 1]."""
        raise NotImplementedError

    def _to_truth(self, y: NDArray[Any]) -> NDArray[Any]:
        """The target as members take it."""
        raise NotImplementedError

    def _read_evaluated_target(self, y: Any, n_rows: int) -> NDArray[Any]:
        """The target of rows to evaluate on: class codes, or numbers."""
        raise NotImplementedError

    def _read_predictions(self, predicted: Any) -> NDArray[Any]:
        """What a member predicts, as class codes or numbers; refused where it is neither."""
        raise NotImplementedError

    def _make_early_stopping(
        self, predict: Predict, y: NDArray[Any], weight: NDArray[np.float64] | None, patience: float
    ) -> EarlyStopping:
        """What scores each round on rows that no member learns from, and tells when to stop."""
        raise NotImplementedError

    # --- fitting ---

    def _fit(self, X: Any, y: Any, sample_weight: Any, validation: Validation) -> Self:
        """Go through the rounds and keep what they give."""
        self._validate_params()
        given = validation.list_sets()
        check_stopping(self, given)
        template = check_template(self, "estimator", clone(self._default) if self.estimator is None else self.estimator)
        has_trees = grows_in_forests(template.estimator, type(self._default))
        given = [self._open_set(rows) for rows in given]
        if is_scanned(X):
            store, how = open_store(self, X, y, sample_weight, has_sets=bool(given))
            if how.by_levels:
                self._fitted = DiskRounds(self, template, store, how).run(given)
                return self
            X, y, sample_weight, _ = give_rows(store, how)
        data = self._read_data(X, y, sample_weight, template.estimator if has_trees else None, has_sets=bool(given))
        target, base = data.learning_rows()
        plan = self._plan_trees(template.estimator, data, target) if has_trees else None
        stopping = self._read_evaluation(data, given, plan)
        boost = AdaBoost(
            EstimatorFitter(template, data, self._to_truth(target), self._read_predictions)
            if plan is None
            else plan.fit,
            lambda predicted: self._find_losses(predicted, target),
            RowWeights(base, len(target)),
            n_classes=self._count_classes(target),
            inverts=self._labels is not None and len(self._labels) == 2,
            learning_rate=float(self.learning_rate),
        )
        self._fitted = self._run_rounds(template, plan, boost, stopping, data.checkpoint)
        return self

    def _run_rounds(
        self,
        template: Template,
        plan: TreePlan | None,
        boost: AdaBoost,
        stopping: EarlyStopping | None,
        checkpoint: Checkpoint | None,
    ) -> FittedAdaBoost:
        """Go through the rounds, from where a checkpoint has left off; the model."""
        kept = None
        if plan is not None and checkpoint is not None:
            kept = KeptMembers(checkpoint, boost, plan.fit, stopping)
            kept.resume(plan.schema, int(self.n_estimators))
        with nullcontext() if kept is None else kept.checkpoint.saving(kept.take):
            rounds = boost.run(
                int(self.n_estimators),
                is_enough=stopping,
                is_short=not self.verbose if plan is None else plan.effort.is_short,
                verbose=bool(self.verbose),
            )
        fitted = self._make_fitted(template, plan, rounds, stopping)
        if checkpoint is not None:
            checkpoint.remove()
        return fitted

    def _open_set(self, given: GivenSet) -> GivenSet:
        """The same rows, a scan among them taken apart."""
        X, y, weight, _ = unpack_evaluated(given.X, given.y, given.weight, type(self).__name__)
        return given._replace(X=X, y=y, weight=weight)

    def _level_growing(self) -> TopGrowing:
        """How trees are grown from disk, where memory cannot hold the rows."""
        return plan_adaboost(self)

    def _refuse_scan(self) -> None:
        """Members of other kinds take rows."""
        if self.estimator is not None and not grows_in_forests(self.estimator, type(self._default)):
            raise ValueError(
                f"{type(self).__name__} of this {type(self.estimator).__name__} takes rows in memory, and X is a scan: "
                "use CART trees as members, without surrogates, linear leaves, or prunings but a number ccp_alpha, or "
                "read a sample of the rows"
            )

    def _read_data(self, X: Any, y: Any, sample_weight: Any, tree: Any, *, has_sets: bool) -> AdaBoostData:
        """Check what `fit` was given; tree: what members are, where they are trees of one forest.

        Class weights of a tree are weights to begin with. Rows are held out if early stopping needs some, and there
        are no sets to evaluate on.
        """
        if tree is not None:
            tree._validate_params()  # noqa: SLF001
        class_weight = None if tree is None else parameter(tree, "class_weight", None)
        given = open_training(self, X, y, sample_weight, class_weight)
        data = AdaBoostData(given, None, draw_seed(self.random_state))
        if tree is None:
            refuse_members(self, self.estimator)
        else:
            checkpoint = open_checkpoint(self, data.seed, None, lambda: self._mark_data(given, tree))
            data = data if checkpoint is None else data._replace(seed=checkpoint.seed, checkpoint=checkpoint)
        if self.n_iter_no_change is None or has_sets:
            return data
        codes = None if self._labels is None else given.y.astype(np.int32)
        key = draw_key(data.seed, held_out.KEY)
        is_held = held_out.draw_held_out(self.validation_fraction, given.n_rows, data.keep, codes, key)
        return data._replace(is_held=is_held)

    def _mark_data(self, given: OpenedData, tree: Any) -> dict[str, str]:
        """Hashes of what a fit was given; tree: what members are."""
        mark = fingerprint(given.read(tree).table, given.y, self._labels)
        return {"X or y": mark, "sample_weight": mark_weights(given.weight)}

    def _plan_trees(self, given: Any, data: AdaBoostData, y: NDArray[Any]) -> TreePlan:
        """Trees on codes of the table, made once; y: of the rows to learn from."""
        tree = clone(given).set_params(random_state=0)  # trees draw by keys of their own
        table = data.given.read(tree).table
        schema = table.schema
        monotone = check_monotone(tree.monotonic_cst, self, schema)
        # most trees are stumps, of one level
        n_trees, max_bins = int(self.n_estimators), int(tree.max_bins)
        rows = code_rows(table, data.given.weight, max_bins, keep=data.keep, n_trees=n_trees, n_levels=1)
        params = cart_params(tree, len(y), schema.n_features)
        tree.max_features_ = count_features(tree.max_features, schema.n_features)  # files hold it
        target: Any = y
        if self._labels is None:
            check_range(params.criterion, y)
            target = ValueTarget(y, rows.weights, **target_form(params.criterion, params.min_target_std))
        n_classes = 0 if self._labels is None else len(self._labels)
        fit = TreeFitter(
            rows.codes, target, n_classes, params, data.seed, rows.kernels, monotone, float(tree.ccp_alpha)
        )
        legend = make_legend(schema, self._labels, rows.codes.has_missing, params.criterion)
        return TreePlan(fit, schema, legend, tree.set_params(random_state=data.seed), rows.effort)

    def _read_evaluation(
        self, data: AdaBoostData, given: list[GivenSet], plan: TreePlan | None
    ) -> EarlyStopping | None:
        """What watches over the rows that no member learns from; None if there are none."""
        schema = None if plan is None else plan.schema
        if data.is_held is None:
            return self._watch_given(given, schema)
        held = np.flatnonzero(data.is_held)
        _, predict = self._open_evaluated(data.given.rows().take(held, None), schema)
        weight = data.given.weight
        return self._watch(predict, data.given.y[held], None if weight is None else weight[held])

    def _watch_given(self, given: list[GivenSet], schema: Schema | None) -> EarlyStopping | None:
        """The same over rows that `fit` was given."""
        if not given:
            return None
        try:
            n_rows, predict = self._open_evaluated(given[0].X, schema)
            y = self._read_evaluated_target(given[0].y, n_rows)
            weight = check_weights(given[0].weight, n_rows)
        except ValueError as error:
            raise ValueError(f"X_val, y_val, sample_weight_val: {error}") from error
        return self._watch(predict, y, weight)

    def _watch(self, predict: Predict, y: NDArray[Any], weight: NDArray[np.float64] | None) -> EarlyStopping:
        """The same over rows that members can predict."""
        patience = math.inf if self.n_iter_no_change is None else int(self.n_iter_no_change)
        return self._make_early_stopping(predict, y, weight, patience)

    def _open_evaluated(self, X: Any, schema: Schema | None) -> tuple[int, Predict]:
        """Number of rows of X, and a function of a member that predicts them; schema: of members that are trees."""
        if schema is not None:
            values = encode(open_x(self, X, is_fit=False), schema)
            return len(values), lambda tree: leaf_predictions(tree)[find_leaves(tree, values)]
        rows = hold_rows(X, open_x(self, X, is_fit=False))
        return rows.n_rows, lambda member: self._read_predictions(member.predict(rows.data))

    def _make_fitted(
        self, template: Template, plan: TreePlan | None, rounds: list[Round], stopping: EarlyStopping | None
    ) -> FittedAdaBoost:
        """The model of the rounds, up to the best one where they were to stop early."""
        n_rounds = len(rounds)
        if stopping is not None and self.n_iter_no_change is not None:
            rounds = rounds[: stopping.best_round]
        trees = others = None
        if plan is None:
            others = VotingEstimators([done.member for done in rounds])
        else:
            trees = VotingTrees(plan.schema, join_trees((done.member for done in rounds), plan.legend), plan.base)
        unit = 0.5 if parameter(self, "convention", "full") == "half" else 1.0
        return FittedAdaBoost(
            classes=None if self._labels is None else self.classes_,
            trees=trees,
            others=others,
            template=template.estimator,
            weights=unit * np.array([done.alpha for done in rounds]),
            errors=np.array([done.error for done in rounds]),
            unit=unit,
            n_rounds=n_rounds,
            validation=None if stopping is None else Scores(np.array(stopping.scores)),
        )

    # --- files ---

    def _has_predictor(self) -> bool:
        return self._find_fitted().trees is not None

    def _set_fitted(self, values: dict[str, Any]) -> None:
        set_parts(self, values, make_fitted_adaboost)

    def _find_fault(self) -> str | None:
        fitted = self._find_fitted()
        fault = find_adaboost_fault(fitted)
        if fault is not None:
            return fault
        if fitted.trees is not None:
            base = fitted.trees.base
            n_drawn = take_fitted(base).get("max_features_") if type(base) is type(self._default) else None
            if n_drawn is None or not 1 <= n_drawn <= fitted.trees.schema.n_features:
                return f"the trees of a {type(self).__name__} cannot be {base!r:.60}"
            return None
        is_fine = all(self._can_be_member(member) for member in fitted.members)
        return None if is_fine else f"a member is none of a {type(self).__name__} of {self.n_features_in_} columns"

    def _can_be_member(self, member: Any) -> bool:
        """Whether this predicts what the model predicts; of estimators of others, nothing but that it predicts."""
        if not kept_by(type(member)):
            return hasattr(member, "predict")
        has_columns = take_fitted(member).get("n_features_in_") == self.n_features_in_
        return has_columns and (member._labels is None) == (self._labels is None)  # noqa: SLF001

    # --- predictions ---

    def _find_head(self, n_rounds: Any) -> FittedAdaBoost:
        """The model of the first members; None: of all."""
        fitted = self._find_fitted()
        if n_rounds is None:
            return fitted
        is_count = isinstance(n_rounds, Integral) and not isinstance(n_rounds, bool)
        if not is_count or not 1 <= n_rounds <= fitted.n_members:
            raise ValueError(
                f"n_rounds={n_rounds!r} must be a whole number from 1 to {fitted.n_members}, the members there are, or "
                "None for all"
            )
        return fitted.head(int(n_rounds))

    def _make_predictor(self) -> WeightedPredictor:
        return self._find_fitted().predictor()

    def _values(self, X: Any, fitted: FittedAdaBoost) -> Values:
        """X as trees take it."""
        assert fitted.trees is not None
        return encode(open_x(self, X, is_fit=False), fitted.trees.schema)

    def _predict_members(self, X: Any, fitted: FittedAdaBoost) -> tuple[int, Iterator[NDArray[Any]]]:
        """Number of rows, and what each member predicts for them, in turn."""
        n_rows, predict = self._open_evaluated(X, None if fitted.trees is None else fitted.trees.schema)
        return n_rows, map(predict, fitted.members)

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
        fitted = self._find_fitted()
        n_rows, predictions = self._predict_members(X, fitted)
        target = self._read_evaluated_target(y, n_rows)
        used, base = held_out.weigh_rows(check_weights(sample_weight, n_rows), n_rows)
        rows = RowWeights(base, len(used))
        for predicted, alpha in zip(predictions, fitted.alphas.tolist(), strict=True):
            rows.raise_by(alpha, self._find_losses(predicted[used], target[used]))
            shares = np.zeros(n_rows)
            shares[used] = rows.shares()
            yield shares

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Importances of the members, weighted as their votes, scaled to sum 1, shape (n_features,)."""
        fitted = self._find_fitted()
        if fitted.trees is not None:
            return fitted.predictor().feature_importances
        weights = np.abs(fitted.weights)
        if not weights.any():
            weights = np.ones(len(weights))
        total: Any = 0.0  # of each feature: dates are several
        for member, weight in zip(fitted.members, weights.tolist(), strict=True):
            if not hasattr(member, "feature_importances_"):
                raise AttributeError(
                    f"feature_importances_ are those of the members, and {type(member).__name__} has none"
                )
            total += weight * member.feature_importances_
        scale = total.sum()
        return total / (scale if scale > 0.0 else 1.0)

    @property
    def estimators_(self) -> list[Any]:
        """The fitted members; trees are made anew at each access."""
        return [self[t] for t in range(len(self))]

    def __len__(self) -> int:
        return self._find_fitted().n_members

    def __getitem__(self, member: int) -> Any:
        fitted = self._find_fitted()
        t = range(fitted.n_members)[member]
        if fitted.trees is None:
            return fitted.members[t]
        schema, forest, base = fitted.trees
        max_features = count_features(base.max_features, schema.n_features)
        cart = clone(base)
        if base.random_state is not None:  # of the ensemble; files of before have none
            cart.set_params(random_state=member_key(base.random_state, t))
        return make_tree_estimator(cart, forest[t], schema, fitted.classes, max_features)


def make_fitted_adaboost(values: dict[str, Any]) -> FittedAdaBoost:
    """A model from its fitted attributes, by the names that files have."""
    trees: list[Any] = [values.get(name) for name in ("_schema", "forest_", "_base")]
    members, scores = values.get("_members"), values.get("validation_scores_")
    return FittedAdaBoost(
        classes=values.get("classes_"),
        trees=None if any(part is None for part in trees) else VotingTrees(*trees),
        others=None if members is None else VotingEstimators(members),
        template=values["estimator_"],
        weights=values["estimator_weights_"],
        errors=values["estimator_errors_"],
        unit=values["_unit"],
        n_rounds=values["n_iter_"],
        validation=None if scores is None else Scores(scores),
    )


# --- members of any kind ----------------------------------------------------------------------------------------


class EstimatorFitter:
    """Fits the members of `AdaBoost` that are no trees of ours; to be called as its `fit_member`.

    Parameters
    ----------
    template : Template
        What they are copied from.
    data : AdaBoostData
    truth : (n_rows to learn from,)
        Classes or numbers.
    read : callable
        From what a member predicts to class codes or numbers.
    """

    def __init__(
        self, template: Template, data: AdaBoostData, truth: NDArray[Any], read: Callable[[Any], NDArray[Any]]
    ) -> None:
        keep = data.keep
        self.template = template
        self.rows = Rows(data.given.rows().take(None if keep is None else np.flatnonzero(keep), None), len(truth))
        self.truth = truth
        self.read = read
        self.seed = data.seed
        self.config = get_config()  # of this thread; others have their own

    def __call__(self, number: int, rows: RowWeights, _: Any) -> tuple[Any, NDArray[Any]]:
        """Fit member `number`; also return what it predicts for each row."""
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
