"""What boosted classifiers and regressors share: reading the data, the rounds, and predictions by them."""

from __future__ import annotations

import math
import time
from copy import copy
from dataclasses import replace
from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing

from spinney._cost import growing_seconds
from spinney._types import IS_BINNED, MAX_CODES
from spinney._warnings import warn
from spinney.ensemble import held_out
from spinney.ensemble.alike_rows import join_alike
from spinney.ensemble.boosted_rows import BoostedRows
from spinney.ensemble.boosting import Boosting, Constraints, count_side_by_side
from spinney.ensemble.boosting_defaults import AUTO, RULES, TableSize, choose_params
from spinney.ensemble.initial_score import find_start
from spinney.ensemble.loss_names import STORED
from spinney.ensemble.losses import Loss, SquaredErrors
from spinney.ensemble.oob_stopping import OutOfBagCurve, OutOfBagStop
from spinney.ensemble.rounds import TRAIN, EvaluationSet, Monitor, StoppingRule, grow_rounds, is_brief
from spinney.ensemble.sampling import draw_key
from spinney.ensemble.vector_boosting import VectorBoosting
from spinney.estimators.base import Estimator
from spinney.estimators.base_model import begin_scores, check_base, find_base_fault, fit_base
from spinney.estimators.boosting_by_levels import BoostingRequest, fit_by_levels, plan_levels
from spinney.estimators.boosting_checkpoint import KeptRounds, hash_rows, open_rounds
from spinney.estimators.boosting_data import BoostingData, find_exponent, moderate, pythonic, take_given_rows
from spinney.estimators.boosting_on_cluster import fit_on_cluster
from spinney.estimators.boosting_parts import (
    add_rounds_of,
    check_callbacks,
    check_rounds,
    compare_outputs,
    join_curves,
    make_fitted_boosting,
    refuse_clashes,
    refuse_vectors,
    rename_features,
)
from spinney.estimators.cart import CARTRegressor, count_features, make_tree_estimator
from spinney.estimators.checks import check_monotone, check_weights, draw_seed, open_x
from spinney.estimators.evaluation_sets import GivenSet, Validation, read_offset
from spinney.estimators.fingerprints import mark_weights
from spinney.estimators.growers import RowLimits
from spinney.estimators.interactions import check_interactions
from spinney.estimators.kept import Kept, Part, set_parts
from spinney.estimators.other_members import hold_rows
from spinney.estimators.round_scores import make_score, name_score
from spinney.estimators.scanned import GivenRows, give_rows, is_scanned, open_store, unpack_evaluated
from spinney.estimators.scoring import find_score
from spinney.estimators.stand_ins import average_rounds
from spinney.estimators.training import Effort, bin_rows, estimate_effort, make_legend, read_training, refuse_asked
from spinney.model.boosted_scores import begin_raw, trees_per_round
from spinney.model.fitted_boosting import (
    BaseModel,
    FittedBoosting,
    Scores,
    feature_importances,
    find_boosting_fault,
    in_units,
    take_estimator_tree,
)
from spinney.scale.plan import GrowingBytes
from spinney.table.fixed_point import scale
from spinney.table.row_cells import count_sums
from spinney.table.schema import Schema, encode
from spinney.table.sparse import Values, is_sparse
from spinney.tree.boost import UNLIMITED, BoostParams, limit_workers
from spinney.tree.forest import Forest, join_forests

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from spinney.estimators.cluster_rows import ClusterRows
    from spinney.model.predictors import RoundPredictor

SHARED_ROWS = 4096  # of a piece of a round that goes to a thread of its own


class BaseGradientBoosting(Estimator[FittedBoosting]):
    """Trees grown one round after the other, each on what those before have left."""

    _growing_bytes: ClassVar[GrowingBytes] = GrowingBytes(has_bins=True, copies=3, state=90)
    _keeps: ClassVar[dict[str, Kept]] = {
        "forest_": Kept(Forest),
        "max_features_": Kept(int),
        "chosen_params_": Kept(dict | None, is_needed=False),
        "_loss": Kept(Loss, stored=STORED),
        "_seed": Kept(int),
        "_start": Kept(np.ndarray),
        "_exponent": Kept(int, is_needed=False),
        "_marks": Kept(dict),
        "init_": Kept(np.ndarray),
        "n_trees_per_iteration_": Kept(int),
        "n_estimators_": Kept(int),
        "n_iter_": Kept(int),
        "best_iteration_": Kept(int),
        "evals_result_": Kept(dict),
        "train_score_": Kept(np.ndarray, is_needed=False),
        "validation_score_": Kept(np.ndarray, is_needed=False),
        "init_estimator_": Kept(BaseEstimator, is_needed=False, check=find_base_fault),
        "oob_improvement_": Kept(np.ndarray, is_needed=False),
        "oob_scores_": Kept(np.ndarray, is_needed=False),
    }
    _asks_one_output: Callable[[], dict[str, bool]]  # of regressors, which have it
    _schema = Part("schema")
    forest_ = Part("forest")
    max_features_ = Part("max_features")
    chosen_params_ = Part("chosen")
    _loss = Part("loss")
    _seed = Part("seed")
    _start = Part("start")
    _exponent = Part("exponent")
    _marks = Part("hashes")
    init_ = Part("init")
    n_trees_per_iteration_ = Part("trees_per_round")
    n_estimators_ = Part("n_rounds", source="forest_")
    n_iter_ = Part("n_rounds", source="forest_")
    best_iteration_ = Part("best_round")
    evals_result_ = Part("curves")
    train_score_ = Part("train.values")
    validation_score_ = Part("validation.values")
    init_estimator_ = Part("base.model")
    oob_improvement_ = Part("out_of_bag.improvement")
    oob_scores_ = Part("out_of_bag.scores")

    # --- what differs between classes and numbers ---

    def _weigh_classes(
        self, y: NDArray[np.float64], weight: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
        """Weights of rows times those of classes, and what each class was multiplied by."""
        raise NotImplementedError

    def _read_evaluated_target(self, y: Any, n_rows: int) -> NDArray[np.float64]:
        """The target of rows to evaluate on, as the loss takes it."""
        raise NotImplementedError

    def _make_loss(self) -> Loss:
        raise NotImplementedError

    def _to_truth(self, y: NDArray[np.float64]) -> NDArray[Any]:
        """The target as scorers take it."""
        raise NotImplementedError

    def _shares_trees(self, loss: Loss) -> bool:
        """Whether a round has one tree for all raw scores, whose leaves hold a number for each."""
        return loss.link == "outputs"

    def _count_outputs(self) -> int:
        """Numbers, or classes, that a row is predicted."""
        loss = self._find_fitted().loss
        return loss.n_raw if loss.link == "outputs" else 1

    # --- fitting ---

    def _fit(self, X: Any, y: Any, sample_weight: Any, validation: Validation, init_score: Any, callbacks: Any) -> Self:
        """Read everything, grow the rounds, keep the model."""
        request = self._check_request(validation, init_score, callbacks)
        given, rule, callbacks = request.given, request.rule, request.callbacks
        rows = GivenRows(X, y, sample_weight)
        if is_scanned(X):
            store, plan = open_store(self, X, y, sample_weight, has_sets=bool(given))
            if plan.by_levels:
                self._fitted = fit_by_levels(self, store, plan, request)
                self.n_outputs_ = 1
                return self
            rows = give_rows(store, plan)
        data = self._read_data(rows.X, rows.y, rows.weight, init_score)
        hashes, find_hashes = hash_rows(self, data)
        old = self._find_old_rounds(hashes, data.table.schema)
        data.seed = draw_seed(self.random_state) if old is None else old.seed
        open_rounds(self, data, hashes, old)
        data.exponent = find_exponent(data.y, data.loss) if old is None else old.exponent
        data.y, data.offset = in_units(data.y, data.exponent), in_units(data.offset, data.exponent)
        sets = [self._read_set(rows, data) for rows in given] or self._hold_out(data)
        base = None if self.init is None or isinstance(self.init, str) else self._begin(data, given, sets, old)
        fitted = self._grow(data, hashes, old, sets, rule, callbacks)
        self._fitted = replace(fitted, hashes=find_hashes(), base=None if base is None else BaseModel(base))
        self.n_outputs_ = self._count_outputs()
        if data.checkpoint is not None:
            data.checkpoint.remove()
        return self

    def _check_request(self, validation: Validation, init_score: Any, callbacks: Any) -> BoostingRequest:
        """Check parameters, and what `fit` was asked for beside the table."""
        deadline = math.inf if self.max_time is None else time.monotonic() + float(self.max_time)
        self._validate_params()
        refuse_clashes(self)
        given = validation.list_sets()
        callbacks = check_callbacks(callbacks)
        if self.scoring != "loss":
            find_score(self.scoring, "scoring")  # a misspelt name is told before anything is read
        given = [self._open_set(rows) for rows in given]
        rule = StoppingRule(
            None if self.n_iter_no_change is None else int(self.n_iter_no_change), float(self.tol), deadline
        )
        return BoostingRequest(given, init_score, callbacks, rule)

    def _fit_spread(self, rows: ClusterRows, others: dict[str, Any]) -> None:
        """Fit to rows at the workers of a cluster; others: arguments of `fit` beside X, y and weights."""
        others = dict(others)
        init_score, callbacks = others.pop("init_score", None), others.pop("callbacks", None)
        request = self._check_request(Validation(**others), init_score, callbacks)
        self._refuse_scan()
        self._fitted = fit_on_cluster(self, rows, request)
        self.n_outputs_ = 1

    def _refuse_scan(self) -> None:
        """A model to begin with is fitted to the rows of X themselves."""
        if self.init is not None and not isinstance(self.init, str):
            raise ValueError(
                f"init={type(self.init).__name__} of {type(self).__name__} needs the rows in memory, and X is a scan: "
                "set init=None, or give what the model says of the rows as init_score"
            )

    _level_growing = plan_levels

    def _read_data(self, X: Any, y: Any, sample_weight: Any, init_score: Any) -> BoostingData:
        """Check and read what `fit` was given."""
        training = read_training(self, X, y, sample_weight)
        n_rows, target = training.columns.n_rows, training.y.astype(np.float64)
        weight, factors = self._weigh_classes(target, training.weight)
        if target.ndim == 1:
            loss = self._make_loss()
        else:
            refuse_asked(self._asks_one_output(), target.shape[1])
            loss = SquaredErrors(target.shape[1])
        if self._shares_trees(loss):
            refuse_vectors(self)
        offset = read_offset(init_score, "init_score", n_rows, loss.n_raw)
        X = hold_rows(X, training.columns).data if is_sparse(X) else X  # of which rows can be taken
        data = BoostingData(X, training.table, target, weight, offset, loss, factors)
        if weight is not None and not np.all(weight > 0.0):
            data.is_used = weight > 0.0
        loss.check(target if data.is_used is None else target[data.is_used][np.cumsum(data.is_used).clip(1) - 1])
        return data

    def _grow(
        self,
        data: BoostingData,
        hashes: dict[str, str],
        old: FittedBoosting | None,
        sets: list[EvaluationSet],
        rule: StoppingRule,
        callbacks: Sequence[Any],
    ) -> FittedBoosting:
        """Grow the rounds that are wanted beyond those there are (warm start)."""
        loss = data.loss
        y, weight, offset = data.part(data.keep)
        weight, power = moderate(weight)
        n_old = 0 if old is None else old.n_rounds
        size = self._measure_table(len(y), data)
        chosen = self._choose_params(size)
        n_new = chosen["n_estimators"] - n_old
        effort = self._estimate_effort(size, n_new, chosen["max_leaf_nodes"])
        start = np.zeros(loss.n_raw)
        if self.init is None:  # on a warm start too: huber's delta comes with it
            start = find_start(loss, y, weight, offset, effort.kernels)
        start = start if old is None else old.start
        start_alike = old is None and offset is None and data.checkpoint is None
        raw = start.reshape(-1, 1) if start_alike else begin_raw(start, len(y), offset)
        for rows in sets:
            rows.raw = begin_raw(start, len(rows.y), rows.offset)
        metric = name_score(self.scoring) if sets and self.scoring != "loss" else "loss"
        monitor = Monitor(loss, y, weight, sets, metric, rule, callbacks, int(self.verbose))
        forest = None
        if old is not None:
            forest = rename_features(old.forest, data.table.schema)
            monitor.replay(n_old, add_rounds_of(old.forest), data.table.values(data.keep), raw)
        chosen["max_features"] = count_features(chosen["max_features"], size.n_features)
        curve: OutOfBagCurve | None = None
        if n_new > 0:
            params = self._boost_params(len(y), data, chosen, power)
            engine = self._make_engine(data, y, weight, raw, params, effort, n_old)
            engine.out_of_bag = self._watch_out_of_bag(params, size)
            grown = self._run(engine, monitor, n_new, data, is_short=effort.is_short or is_brief(engine, n_new))
            forest = grown if forest is None else join_forests(forest, grown)
            curve = engine.out_of_bag
        assert forest is not None
        return replace(
            self._keep(data, hashes, forest, start, chosen, monitor),
            out_of_bag=join_curves(old, curve, len(forest) // trees_per_round(forest, loss.n_raw)),
        )

    def _keep(
        self,
        data: BoostingData,
        hashes: dict[str, str],
        forest: Forest,
        start: NDArray[np.float64],
        chosen: dict[str, Any],
        monitor: Monitor,
    ) -> FittedBoosting:
        """The model of all rounds, and how they went."""
        curves, sets = monitor.curves, monitor.evaluation_sets
        judged = curves[sets[-1].name] if sets else {}
        return FittedBoosting(
            schema=data.table.schema,
            classes=None if self._labels is None else self.classes_,
            forest=forest,
            loss=copy(data.loss),  # without what a fit leaves behind in it
            start=start,
            exponent=data.exponent,
            best_round=monitor.best_round,
            seed=data.seed,
            max_features=chosen["max_features"],
            chosen={name: value if value is None else pythonic(value) for name, value in chosen.items()},
            class_factors=data.class_factors,
            hashes=hashes,
            curves=curves,
            train=Scores(np.array(curves[TRAIN]["loss"])) if TRAIN in curves else None,
            validation=Scores(np.array(judged[monitor.metric])) if monitor.metric in judged else None,
        )

    def _make_engine(
        self,
        data: BoostingData,
        y: NDArray[np.float64],
        weight: NDArray[np.float64] | None,
        raw: NDArray[np.float64],
        params: BoostParams,
        effort: Effort,
        first_round: int,
    ) -> Boosting:
        """Bin the table and set up what grows on it; y, weight, raw: of the rows to learn from, or of all alike."""
        schema = data.table.schema
        has_vectors = self._shares_trees(data.loss)
        n_trees = 1 if has_vectors else count_side_by_side(data.loss, params)
        n_most = effort.count_workers(self.n_jobs, max(len(y) // SHARED_ROWS, n_trees))
        n_workers = limit_workers(n_most, self.n_jobs, len(y), schema.n_features, n_trees)
        constraints = Constraints(
            check_monotone(self.monotonic_cst, self, schema), check_interactions(self.interaction_cst, schema)
        )
        anew = self.candidates == "hessian"  # bins are drawn from all values, for each tree
        max_bins = None if self.max_bins is None or anew else int(self.max_bins)
        least = None if anew or has_vectors else params.min_samples_leaf
        bins = bin_rows(data.table, weight, max_bins, effort, keep=data.keep, n_workers=n_workers, least=least)
        if self.max_bins is None and bins.features[IS_BINNED].any():
            column = schema.name_of(int(np.argmax(bins.features[IS_BINNED])))
            warn(f"max_bins=None: column {column} has more than {MAX_CODES} distinct values; quantiles bin them")
        rows = BoostedRows(bins, y, weight, raw)  # which trees of all classes count as they stand
        rows = rows if has_vectors else join_alike(rows, data.loss, params, effort.kernels)
        return (VectorBoosting if has_vectors else Boosting)(
            rows,
            data.loss,
            params,
            effort.kernels,
            limit_workers(n_workers, self.n_jobs, len(rows.y), math.ceil(count_sums(bins)), n_trees),
            constraints=constraints,
            legend=make_legend(schema, None, bins.has_missing),  # leaves hold scores: a boosted tree is one of numbers
            first_round=first_round,
        )

    def _estimate_effort(self, size: TableSize, n_rounds: int, max_leaf_nodes: int | None) -> Effort:
        """Kernels and threads for rounds of trees in which every row and feature is visited once a level."""
        n_rows, n_features, n_raw = size.n_rows, size.n_features, size.n_raw
        n_leaves = n_rows if max_leaf_nodes is None else min(int(max_leaf_nodes), n_rows)
        n_levels = min(math.log2(max(n_leaves, 2)), self.max_depth or math.inf)
        # Ctrl-C is heard between rounds; passing each to another thread cost a sixth of a fit of 1,000 rows
        return estimate_effort(growing_seconds(n_rows, n_features, n_raw, n_levels=n_levels), n_rounds)

    def _run(self, engine: Boosting, monitor: Monitor, n_rounds: int, data: BoostingData, *, is_short: bool) -> Forest:
        """Grow rounds, or those that a checkpoint lacks; errors of arithmetic are explained in terms of parameters."""
        try:
            if data.checkpoint is None:
                grow_rounds(engine, monitor, n_rounds, is_short=is_short)
            else:
                KeptRounds(data.checkpoint, engine, monitor).grow(data, n_rounds, is_short=is_short)
        except FloatingPointError as error:
            raise ValueError(
                f"learning has left the finite numbers in round {monitor.n_rounds + 1}: lower learning_rate="
                f"{engine.params.learning_rate}, raise reg_lambda or min_child_weight, or scale the target"
            ) from error
        finally:
            engine.close()
        engine.drop_rows()
        return engine.forest()

    def _measure_table(self, n_rows: int, data: BoostingData) -> TableSize:
        """What the rules for "auto" look at; n_rows: rows to learn from."""
        return TableSize(
            n_rows,
            data.table.schema.n_features,
            data.loss.n_classes,
            data.loss.n_raw,
            has_value=data.loss.judges_bags and self.sampling == "uniform" and not self.drop_rate,
            effort=float(self.effort),
            is_counted=self.n_estimators != AUTO,
            is_deep=self.max_depth is not None,
            fills_leaves=self._fills_leaves(data.loss),
            is_squared=self.loss == "squared_error",
            has_numbers=not data.table.schema.is_categorical.all(),
        )

    def _fills_leaves(self, loss: Loss) -> bool:
        """Whether "auto" has all rows give leaves their values: rows drawn by rule, leaves that are Newton's steps."""
        is_drawn = self.subsample == AUTO and self.sampling == "uniform"
        return is_drawn and loss.leaf == "newton" and not self._shares_trees(loss)

    def _choose_params(self, size: TableSize) -> dict[str, Any]:
        """Parameters that have a rule, as given or by it."""
        given = {name: getattr(self, name) for name in RULES}
        if self.reg_lambda is None:
            given["reg_lambda"] = AUTO if self.newton else 0.0
        return choose_params(given, size)

    def _watch_out_of_bag(self, params: BoostParams, size: TableSize) -> OutOfBagCurve | None:
        """What notes the loss of out-of-bag rows: where they alone tell when to stop, or `subsample` was asked for."""
        has_rows = size.has_value and params.subsample < 1.0
        if has_rows and not size.is_counted and self.n_iter_no_change is None:
            return OutOfBagCurve(stop=OutOfBagStop(is_squared=size.is_squared))
        return OutOfBagCurve() if has_rows and self.subsample != AUTO else None

    def _boost_params(self, n_rows: int, data: BoostingData, chosen: dict[str, Any], power: int) -> BoostParams:
        """The parameters as Python's own numbers; weights are in units of 2**power, targets of 2**exponent."""
        limits = RowLimits(self.max_depth, chosen["max_leaf_nodes"], self.min_samples_split, chosen["min_samples_leaf"])
        max_features = chosen["max_features"]
        n_features = data.table.schema.n_features
        return BoostParams(
            min_weight_fraction_leaf=float(self.min_weight_fraction_leaf),
            min_child_weight=scale(float(self.min_child_weight), -power),
            reg_lambda=scale(float(chosen["reg_lambda"]), -power),
            lambda_falls=self.reg_lambda is None and data.loss.n_classes > 0,
            reg_alpha=scale(float(self.reg_alpha), -power - data.exponent),
            gamma=scale(float(self.gamma), -power - 2 * data.exponent),
            pruning=self.pruning,
            learning_rate=float(chosen["learning_rate"]),
            subsample=float(chosen["subsample"]),
            sampling=self.sampling,
            leaf_rows=chosen["leaf_rows"],
            drop_rate=float(self.drop_rate),
            skip_drop=float(self.skip_drop),
            max_features=None if max_features == n_features else max_features,
            max_tree_features=count_features(self.max_features_per_tree, n_features),
            newton=bool(self.newton),
            cat_smooth=scale(float(self.cat_smooth), -power),
            max_cat_threshold=UNLIMITED if self.max_cat_threshold is None else int(self.max_cat_threshold),
            cat_penalty=float(self.cat_penalty),
            candidates=self.candidates,
            max_bins=int(self.max_bins or MAX_CODES),
            seed=data.seed,
            **({"max_leaf_nodes": None} | limits.for_rows(n_rows)),
        )

    # --- warm start ---

    def _hash_data(self, data: BoostingData) -> dict[str, str]:
        """Hashes of what a model was grown on, for its file; a warm start asks for that of the loss."""
        hashes = {"y": mark_weights(data.y), "sample_weight or class_weight": mark_weights(data.weight)}
        if data.offset is not None:
            hashes["init_score"] = mark_weights(data.offset)
        hashes["loss"] = repr(self.loss if isinstance(self.loss, str) else "two functions")
        if data.loss.link == "quantiles":
            hashes["loss"] += f" of {data.loss.quantile_levels}"
        if self._shares_trees(data.loss):
            hashes["loss"] += f" of {data.loss.n_raw} scores by one tree"
        return hashes

    def _find_old_rounds(self, hashes: dict[str, str], schema: Schema) -> FittedBoosting | None:
        """The model to add rounds to, if this is a warm start: on the same rows, or on others of the same columns."""
        old = self._find_old(warm_start=self.warm_start)
        return old if old is None else check_rounds(self.n_estimators, old, hashes, schema, self._labels)

    # --- the model to begin with ---

    def _begin(
        self, data: BoostingData, given: list[GivenSet], sets: list[EvaluationSet], old: FittedBoosting | None
    ) -> Any:
        """Fit `init` to the rows that trees learn from, and add what it says to the scores of all rows."""
        check_base(self, self.init)
        base = None if old is None or old.base is None else old.base.model
        if base is None:
            X = take_given_rows(data.X, data.keep)
            y, weight, _ = data.part(data.keep)
            base = fit_base(self.init, X, self._to_truth(np.ldexp(y, data.exponent)), weight)
        data.offset = self._add_base(base, data.X, data, data.offset)
        tables = [rows.X for rows in given]
        if sets and not given:
            judges = data.keep if data.is_held is None else data.is_held
            tables = [data.X if judges is None else _safe_indexing(data.X, np.flatnonzero(judges))]
        for rows, X in zip(sets, tables, strict=True):
            rows.offset = self._add_base(base, X, data, rows.offset)
        return base

    def _add_base(self, base: Any, X: Any, data: BoostingData, offset: Any) -> NDArray[np.float64]:
        """Scores that rows bring along, or None, and those of the model to begin with, (n_raw, n_rows)."""
        classes = None if self._labels is None else self.classes_
        scores: NDArray[np.float64] = in_units(
            begin_scores(base, X, classes, data.loss.link, data.loss.n_raw), data.exponent
        )
        return scores if offset is None else scores + offset

    # --- rows to evaluate on ---

    def _open_set(self, given: GivenSet) -> GivenSet:
        """The same rows, a scan among them taken apart."""
        X, y, weight, _ = unpack_evaluated(given.X, given.y, given.weight, type(self).__name__)
        return given._replace(X=X, y=y, weight=weight)

    def _read_set(self, given: GivenSet, data: BoostingData) -> EvaluationSet:
        """Rows to evaluate on that were given."""
        if (data.offset is None) != (given.offset is None):
            raise ValueError("init_score and init_score_val belong together: give both (zeros will do) or none")
        try:
            columns = open_x(self, given.X, is_fit=False)
            y = self._read_evaluated_target(given.y, columns.n_rows)
            compare_outputs(y, data.y)
            data.loss.check(np.append(y, 1.0))  # which no loss refuses: all counts of these rows may be 0
        except ValueError as error:
            raise ValueError(f"{given.place}: {error}") from error
        weight = check_weights(given.weight, columns.n_rows)
        if data.class_factors is not None:
            weight = data.class_factors[y.astype(np.int64)] * (1.0 if weight is None else weight)
            if not np.any(weight > 0.0):
                raise ValueError(
                    f"{given.place}: sample_weight_val is zero in all rows of y_val after class_weight: one must be "
                    "positive"
                )
        offset = read_offset(given.offset, given.offset_place, columns.n_rows, data.loss.n_raw)
        rows = EvaluationSet(
            given.name,
            encode(columns, data.table.schema),
            in_units(y, data.exponent),
            moderate(weight)[0],
            in_units(offset, data.exponent),
        )
        return self._with_score(rows, given.X, self._to_truth(y), data)

    def _hold_out(self, data: BoostingData) -> list[EvaluationSet]:
        """Draw rows to evaluate on from the training rows, if early stopping needs them.

        Without a fraction the training rows judge: their loss is known anyway, a score needs them as a set.
        """
        if self.n_iter_no_change is None or (self.validation_fraction is None and self.scoring == "loss"):
            return []
        if self.validation_fraction is None:
            y, weight, offset = data.part(data.keep)
            rows = EvaluationSet("scored", data.table.values(data.keep), y, weight, offset)
            X = take_given_rows(data.X, data.keep)
            return [self._with_score(rows, X, self._to_truth(np.ldexp(y, data.exponent)), data)]
        data.is_held = self._draw_held_out(data)
        y, weight, offset = data.part(data.is_held)
        evaluated = EvaluationSet("valid", data.table.values(data.is_held), y, weight, offset)
        if self.scoring == "loss":
            return [evaluated]
        X = take_given_rows(data.X, data.is_held)
        return [self._with_score(evaluated, X, self._to_truth(np.ldexp(y, data.exponent)), data)]

    def _draw_held_out(self, data: BoostingData) -> NDArray[np.bool_]:
        """Which rows are held out, (n_rows,)."""
        codes = None if self._labels is None else data.y.astype(np.int32)
        return held_out.draw_held_out(
            self.validation_fraction, len(data.y), data.is_used, codes, draw_key(data.seed, held_out.KEY)
        )

    def _with_score(self, rows: EvaluationSet, X: Any, truth: NDArray[Any], data: BoostingData) -> EvaluationSet:
        """The rows with the score that is wanted beside the loss; X: as the user has it."""
        if self.scoring != "loss":
            rows.score = make_score(self, X, truth, rows.weight, data.loss.link, data.exponent)
        return rows

    # --- files ---

    def _set_fitted(self, values: dict[str, Any]) -> None:
        set_parts(self, values, make_fitted_boosting)

    def _find_fault(self) -> str | None:
        return find_boosting_fault(self._find_fitted())

    # --- predictions ---

    def _values(self, X: Any) -> Values:
        schema = self._find_fitted().schema
        return encode(open_x(self, X, is_fit=False), schema)

    def _has_predictor(self) -> bool:
        """Whether trees are all there is: with `init=estimator` they are added to another model."""
        return self._find_fitted().base is None

    def _why_no_predictor(self) -> str:
        """That there is a model below the trees."""
        return f"this {type(self).__name__} begins with another model, init={type(self.init_estimator_).__name__}"

    def _make_predictor(self) -> RoundPredictor:
        return self._predictor_of(None)

    def _predictor_of(self, n_rounds: Any) -> RoundPredictor:
        """What predicts by the first rounds; None: by those up to the best one."""
        fitted = self._find_fitted()
        if n_rounds is None:
            return fitted.predictor()
        is_count = isinstance(n_rounds, Integral) and not isinstance(n_rounds, bool)
        if not is_count or not 1 <= n_rounds <= fitted.n_rounds:
            raise ValueError(
                f"n_rounds={n_rounds!r} must be a whole number from 1 to {fitted.n_rounds}, the rounds grown, or "
                "None for those up to the best one"
            )
        return fitted.predictor(int(n_rounds))

    def _offset(self, X: Any, n_rows: int, init_score: Any) -> NDArray[np.float64] | None:
        """Raw scores that rows bring along, and those of the model to begin with, in our units."""
        fitted = self._find_fitted()
        given = read_offset(init_score, "init_score", n_rows, fitted.n_raw)
        offset: NDArray[np.float64] | None = fitted.to_units(given)
        if fitted.base is None:
            return offset
        scores = fitted.to_units(begin_scores(fitted.base.model, X, fitted.classes, fitted.loss.link, fitted.n_raw))
        return scores if offset is None else scores + offset

    def _raw_scores(self, X: Any, init_score: Any, n_rounds: Any) -> tuple[RoundPredictor, NDArray[np.float64]]:
        """What predicts by the first rounds, and raw scores by them, (n_raw, n_rows)."""
        values, predictor = self._values(X), self._predictor_of(n_rounds)
        return predictor, predictor.sum_rounds(values, self._offset(X, len(values), init_score), self.n_jobs)

    def _staged_raw(self, X: Any, init_score: Any) -> Iterator[NDArray[np.float64]]:
        """Raw scores after each round, (n_raw, n_rows): the same array each time."""
        values, n_rounds = self._values(X), self._find_fitted().n_rounds
        return self._make_predictor().stages(values, n_rounds, self._offset(X, len(values), init_score))

    def apply(self, X: Any, *, n_rounds: int | None = None) -> NDArray[np.int64]:
        """Find the leaf of each row in each tree that `predict` uses.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)
        n_rounds : int, optional
            Use the first rounds only, as in `predict`.

        Returns
        -------
        leaf : int64 array (n_rows, best_iteration_) or (n_rows, best_iteration_, n_trees_per_iteration_)
            Index of the leaf among the nodes of its tree, `estimators_[i, k].tree_`. The last axis, of the classes or
            quantiles, is there for classifiers and for several quantiles, as in scikit-learn.
        """
        values = self._values(X)
        leaf = self._predictor_of(n_rounds).find(values)
        n_each = self._find_fitted().trees_per_round
        if n_each == 1 and self._labels is None:
            return leaf
        return leaf.reshape(len(leaf), leaf.shape[1] // n_each, n_each)

    def _compute_partial_dependence_recursion(self, grid: Any, target_features: Any) -> NDArray[np.float64]:
        """What `sklearn.inspection.partial_dependence(method="recursion")` asks for, (n_scores, n_points).

        Of raw scores, without the constant that rounds begin with, as in scikit-learn.
        """
        return average_rounds(self, self._find_fitted(), grid, target_features)

    @property
    def oob_score_(self) -> float:
        """Mean loss of the out-of-bag rows of the last round; where `oob_scores_` are."""
        return float(self.oob_scores_[-1])

    @property
    def is_categorical_(self) -> NDArray[np.bool_] | None:
        """Which features are categories, (n_features,); None where none is."""
        is_category = self._find_fitted().schema.is_categorical
        return is_category if is_category.any() else None

    @property
    def estimators_(self) -> NDArray[Any]:
        """The trees as fitted regressors, array (`n_estimators_`, `n_trees_per_iteration_`), made anew at each access.

        The leaves hold what a round adds to raw scores, the learning rate included: `init_` and the predictions of
        the trees of a column add up to `decision_function`. The impurity of a node is the gain of all tests below it.
        """
        return cast("NDArray[Any]", self[:])

    def __len__(self) -> int:
        return self._find_fitted().n_rounds

    def __getitem__(self, place: Any) -> Any:
        fitted = self._find_fitted()
        shape = (fitted.n_rounds, fitted.trees_per_round)
        wanted = np.arange(math.prod(shape)).reshape(shape)[place]
        trees = np.empty(wanted.shape, object)
        for k, t in enumerate(wanted.flat):
            cart = CARTRegressor(max_depth=self.max_depth, max_features=fitted.max_features)
            tree = take_estimator_tree(fitted, int(t))
            trees.flat[k] = make_tree_estimator(cart, tree, fitted.schema, None, fitted.max_features)
        return trees[()]  # one tree, where one is meant

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return iter(self.estimators_)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Gain of the tests on each feature in the trees that `predict` uses, scaled to sum 1, (n_features,)."""
        return feature_importances(self._find_fitted())
