"""What boosted classifiers and regressors share: reading the data, the rounds, and what they say."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from itertools import combinations
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions
from sklearn.utils.validation import check_array, check_is_fitted

from spinney._cost import BAR_SECONDS, COMPILED_SHARE, SHORT_SECONDS, VISIT_SECONDS
from spinney._jit import kernels
from spinney._threads import count_workers
from spinney._types import IS_BINNED, MAX_CODES
from spinney._warnings import warn
from spinney.ensemble.boosting import Boosting
from spinney.ensemble.initial_score import find_start
from spinney.ensemble.links import respond
from spinney.ensemble.losses import Loss
from spinney.ensemble.sampling import draw_key
from spinney.estimators.base import Estimator
from spinney.estimators.base_forest import forget
from spinney.estimators.cart import SHARED_CONSTRAINTS, count_features
from spinney.estimators.checks import (
    MODERATE,
    check_monotone,
    check_weights,
    draw_seed,
    fingerprint,
    mark_weights,
    open_x,
    row_count,
    scale_down,
)
from spinney.estimators.early_stopping import Holdout, Monitor, Watch, draw_held, grow_rounds
from spinney.estimators.kept import Kept
from spinney.estimators.training import make_legend
from spinney.model.boosted_scores import begin_raw, sum_gains
from spinney.model.predictors import RoundPredictor
from spinney.table.binning import bin_table
from spinney.table.fixed_point import fix_weights, scale
from spinney.table.ingest import Table, read_columns
from spinney.table.schema import encode
from spinney.tree.boost import BoostParams
from spinney.tree.forest import Forest, join_forests

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from spinney._jit import Kernels
    from spinney.table.schema import Schema

HOLDOUT = 0x484F4C44  # the part of the seed's key that the held-out rows are drawn from
CELLS_AT_ONCE = 1 << 20  # of the values that are read together
SHARED_ROWS = 4096  # of a piece of a round that goes to a thread of its own

BOOST_CONSTRAINTS: dict[str, list[Any]] = {
    **{
        name: SHARED_CONSTRAINTS[name]
        for name in (
            *("max_depth", "min_samples_split", "min_samples_leaf", "min_weight_fraction_leaf", "max_leaf_nodes"),
            *("max_features", "monotonic_cst", "categorical_features", "random_state"),
        )
    },
    "learning_rate": [Interval(Real, 0.0, None, closed="neither")],
    "n_estimators": [Interval(Integral, 1, None, closed="left")],
    "min_child_weight": [Interval(Real, 0.0, None, closed="left")],
    "reg_lambda": [Interval(Real, 0.0, None, closed="left"), None],
    "reg_alpha": [Interval(Real, 0.0, None, closed="left")],
    "gamma": [Interval(Real, 0.0, None, closed="left")],
    "pruning": [StrOptions({"pre", "post"})],
    "subsample": [Interval(Real, 0.0, 1.0, closed="right")],
    "max_features_per_tree": SHARED_CONSTRAINTS["max_features"],
    "newton": ["boolean"],
    "init": [StrOptions({"zero"}), None],
    "max_bins": [*SHARED_CONSTRAINTS["max_bins"], None],
    "candidates": [StrOptions({"weight", "hessian"})],
    "cat_smooth": [Interval(Real, 0.0, None, closed="left")],
    "max_cat_threshold": [Interval(Integral, 1, None, closed="left")],
    "interaction_cst": [list, tuple, StrOptions({"pairwise", "no_interactions"}), None],
    "n_iter_no_change": [Interval(Integral, 1, None, closed="left"), None],
    "validation_fraction": [
        Interval(Integral, 1, None, closed="left"),
        Interval(RealNotInt, 0.0, 1.0, closed="neither"),
        None,
    ],
    "scoring": [str, callable],
    "tol": [Interval(Real, 0.0, None, closed="left")],
    "max_time": [Interval(Real, 0.0, None, closed="neither"), None],
    "warm_start": ["boolean"],
    "n_jobs": [Integral, None],
    "verbose": ["verbose"],
}


@dataclass
class Data:
    """What a fit reads: all rows of X and what goes with them.

    Attributes
    ----------
    X : Any
        As given.
    table : Table
    y : float64 (n_rows,)
        Class codes, or numbers in units of 2**exponent.
    weight : float64 (n_rows,), or None for 1 each
    offset : float64 (n_raw, n_rows), optional
        From `init_score`.
    is_used, is_held : bool (n_rows,), optional
        Rows of positive weight; rows that only validate. None: all, none.
    """

    X: Any
    table: Table
    y: NDArray[np.float64]
    weight: NDArray[np.float64] | None
    offset: NDArray[np.float64] | None
    is_used: NDArray[np.bool_] | None = None
    is_held: NDArray[np.bool_] | None = None

    @property
    def keep(self) -> NDArray[np.bool_] | None:
        """Rows that trees learn from; None: all."""
        if self.is_held is None:
            return self.is_used
        return ~self.is_held if self.is_used is None else self.is_used & ~self.is_held

    def part(self, rows: NDArray[np.bool_] | None) -> tuple[NDArray[np.float64], Any, Any]:
        """Target, weight and offset of some rows."""
        if rows is None:
            return self.y, self.weight, self.offset
        weight = None if self.weight is None else self.weight[rows]
        offset = None if self.offset is None else np.ascontiguousarray(self.offset[:, rows])
        return self.y[rows], weight, offset


class Boosted(Estimator):
    """Trees grown one round after the other, each on what those before have left."""

    _keeps: ClassVar[dict[str, Kept]] = {
        "forest_": Kept(Forest),
        "max_features_": Kept(int),
        "_loss": Kept(Loss),
        "_seed": Kept(int),
        "_start": Kept(np.ndarray),
        "_exponent": Kept(int, is_needed=False),
        "_marks": Kept(dict),
        "_class_factors": Kept(np.ndarray | None, is_needed=False),
        "init_": Kept(np.ndarray),
        "n_trees_per_iteration_": Kept(int),
        "n_estimators_": Kept(int),
        "n_iter_": Kept(int),
        "best_iteration_": Kept(int),
        "evals_result_": Kept(dict),
        "train_score_": Kept(np.ndarray, is_needed=False),
        "validation_score_": Kept(np.ndarray, is_needed=False),
    }
    _loss: Loss
    _seed: int
    _start: NDArray[np.float64]  # (n_raw,) raw scores before the first round
    _exponent: int = 0  # raw scores are in units of 2**_exponent, where targets are near the ends of float64
    _marks: dict[str, str]

    # --- what differs between classes and numbers ---

    def _read_y(self, y: Any, n_rows: int) -> NDArray[np.float64]:
        """The target of the training rows, as the loss takes it."""
        raise NotImplementedError

    def _read_other_y(self, y: Any, n_rows: int) -> NDArray[np.float64]:
        """The target of rows that validate."""
        raise NotImplementedError

    def _weigh(self, weight: NDArray[np.float64] | None, y: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Weights of the training rows; of classes too."""
        raise NotImplementedError

    def _weigh_other(self, weight: NDArray[np.float64] | None, y: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """Weights of rows that validate."""
        raise NotImplementedError

    def _make_loss(self) -> Loss:
        raise NotImplementedError

    def _truth(self, y: NDArray[np.float64]) -> NDArray[Any]:
        """The target as scorers take it."""
        raise NotImplementedError

    def _find_exponent(self, y: NDArray[np.float64]) -> int:
        """Exponent of the power of two that targets are divided by."""
        raise NotImplementedError

    # --- fitting ---

    def _fit(
        self, X: Any, y: Any, sample_weight: Any, validation: dict[str, Any], init_score: Any, callbacks: Any
    ) -> Self:
        """Read everything, grow the rounds, keep the model."""
        deadline = math.inf if self.max_time is None else time.monotonic() + float(self.max_time)
        self._validate_params()
        self._check_validation(validation)
        watch = self._read_watch(callbacks, deadline)
        columns = open_x(self, X, is_fit=True)
        target = self._read_y(y, columns.n_rows)
        weight = self._weigh(check_weights(sample_weight, columns.n_rows), target)
        loss = self._make_loss()
        self._refuse_clashes()
        table = read_columns(columns, self.categorical_features)
        data = Data(X, table, target, weight, read_offset(init_score, "init_score", columns.n_rows, loss.n_raw))
        if weight is not None and not np.all(weight > 0.0):
            data.is_used = weight > 0.0
        loss.check(target if data.is_used is None else np.where(data.is_used, target, target[data.is_used][0]))
        marks = self._mark(data)
        old = self._kept_forest(marks)
        if old is None:
            forget(self, ("forest_",))
            self._seed = draw_seed(self.random_state)
            self._exponent = self._find_exponent(target)
        self._schema = table.schema
        data.y, data.offset = self._to_units(data.y), self._to_units(data.offset)
        holdout = self._read_validation(validation, loss, data) or self._hold_out(data)
        self._grow(data, loss, old, watch, holdout)
        self._loss, self._marks = loss, marks
        return self

    def _grow(self, data: Data, loss: Loss, old: Forest | None, watch: Watch, holdout: Holdout | None) -> None:
        """Grow the rounds that are wanted beyond those there are (warm start), and keep them."""
        schema, keep = data.table.schema, data.keep
        y, weight, offset = data.part(keep)
        weight, power = moderate(weight)
        n_rows, n_features = len(y), schema.n_features
        n_old = 0 if old is None else len(old) // loss.n_raw
        n_new = self.n_estimators - n_old
        seconds = self._round_seconds(n_rows, n_features) * loss.n_raw
        chosen = kernels(seconds * n_new)
        n_workers = count_workers(self.n_jobs, n_rows // SHARED_ROWS, seconds * COMPILED_SHARE)
        start = np.zeros(loss.n_raw)
        if self.init is None:  # on a warm start too: huber's delta comes with it
            start = find_start(loss, y, weight, offset, chosen)
        if old is None:
            self._start = start
        raw = begin_raw(self._start, n_rows, offset)
        if holdout is not None:
            holdout.raw = begin_raw(self._start, len(holdout.y), holdout.offset)
        monitor = Monitor(self, loss, lambda raw: respond(loss.link, raw, self._exponent), y, weight, holdout, watch)
        self.max_features_ = count_features(self.max_features, n_features)
        if old is not None:
            monitor.replay(old, read_values(data.table, keep), raw)
        if n_new > 0:
            engine = self._make_engine(data, y, weight, power, loss, raw, chosen, n_workers, n_old)
            # Ctrl-C is heard between rounds; passing each to another thread cost a sixth of a fit of 1,000 rows
            is_short = seconds * COMPILED_SHARE < SHORT_SECONDS and seconds * n_new * COMPILED_SHARE < BAR_SECONDS
            grown = self._run(engine, monitor, n_new, is_short=is_short)
            old = grown if old is None else join_forests(old, grown)
        assert old is not None
        self.forest_ = old
        self._keep_curves(monitor)

    def _make_engine(
        self,
        data: Data,
        y: NDArray[np.float64],
        weight: NDArray[np.float64] | None,
        power: int,
        loss: Loss,
        raw: NDArray[np.float64],
        chosen: Kernels,
        n_workers: int,
        first_round: int,
    ) -> Boosting:
        """Bin the table and set up what grows on it."""
        schema, n_rows = data.table.schema, len(y)
        monotone = check_monotone(self.monotonic_cst, self, schema)
        interactions = check_interactions(self.interaction_cst, self, schema)
        quantiles = fix_weights(weight, n_rows).values
        is_exact = self.max_bins is None or self.candidates == "hessian"  # which are drawn from all values
        bins = bin_table(data.table, quantiles, None if is_exact else int(self.max_bins), chosen, data.keep, n_workers)
        if self.max_bins is None and bins.features[IS_BINNED].any():
            column = schema.name_of(int(np.argmax(bins.features[IS_BINNED])))
            warn(f"max_bins=None: column {column} has more than {MAX_CODES} distinct values; quantiles bin them")
        # leaves hold scores, not classes: a boosted tree is one of numbers
        legend = make_legend(schema, None, bins.has_missing)
        return Boosting(
            bins,
            y,
            weight,
            loss,
            self._boost_params(n_rows, schema.n_features, power),
            raw,
            chosen,
            n_workers,
            monotone=monotone,
            interactions=interactions,
            legend=legend,
            first_round=first_round,
            max_bins=int(self.max_bins or MAX_CODES),
        )

    def _round_seconds(self, n_rows: int, n_features: int) -> float:
        """About what a tree takes, interpreted: every row and feature once a level."""
        n_leaves = n_rows if self.max_leaf_nodes is None else min(int(self.max_leaf_nodes), n_rows)
        n_levels = min(math.log2(max(n_leaves, 2)), self.max_depth or math.inf)
        return n_rows * n_features * n_levels * VISIT_SECONDS

    def _run(self, engine: Boosting, monitor: Monitor, n_rounds: int, *, is_short: bool) -> Forest:
        """Grow rounds; what an engine says of numbers is said in terms of parameters."""
        try:
            return grow_rounds(engine, monitor, n_rounds, is_short=is_short)
        except FloatingPointError as error:
            raise ValueError(
                f"learning has left the finite numbers in round {monitor.n_rounds + 1}: lower "
                f"learning_rate={self.learning_rate}, raise reg_lambda or min_child_weight, or scale the target"
            ) from error
        finally:
            engine.close()

    def _keep_curves(self, monitor: Monitor) -> None:
        """The attributes of a fitted model."""
        self.n_outputs_ = 1
        self.init_ = np.ldexp(self._start, self._exponent)
        self.n_trees_per_iteration_ = len(self._start)
        self.n_estimators_ = self.n_iter_ = monitor.n_rounds
        self.best_iteration_ = monitor.best_round
        self.evals_result_ = monitor.curves
        forget(self, ("train_score_", "validation_score_"))
        if "train" in monitor.curves:
            self.train_score_ = np.array(monitor.curves["train"]["loss"])
        if monitor.metric in monitor.curves.get("valid", {}):
            self.validation_score_ = np.array(monitor.curves["valid"][monitor.metric])

    def _boost_params(self, n_rows: int, n_features: int, power: int) -> BoostParams:
        """The parameters as Python's own numbers; weights are in units of 2**power, targets of 2**_exponent."""
        reg_lambda = float(self.newton) if self.reg_lambda is None else float(self.reg_lambda)
        return BoostParams(
            max_leaf_nodes=None if self.max_leaf_nodes is None else min(int(self.max_leaf_nodes), n_rows + 2),
            max_depth=None if self.max_depth is None else min(int(self.max_depth), n_rows),
            min_samples_leaf=row_count(self.min_samples_leaf, n_rows, 1),
            min_samples_split=row_count(self.min_samples_split, n_rows, 2),
            min_weight_fraction_leaf=float(self.min_weight_fraction_leaf),
            min_child_weight=scale(float(self.min_child_weight), -power),
            reg_lambda=scale(reg_lambda, -power),
            reg_alpha=scale(float(self.reg_alpha), -power - self._exponent),
            gamma=scale(float(self.gamma), -power - 2 * self._exponent),
            pruning=self.pruning,
            learning_rate=float(self.learning_rate),
            subsample=float(self.subsample),
            max_features=None if self.max_features_ == n_features else self.max_features_,
            max_tree_features=count_features(self.max_features_per_tree, n_features),
            newton=bool(self.newton),
            cat_smooth=scale(float(self.cat_smooth), -power),
            max_cat_threshold=int(self.max_cat_threshold),
            candidates=self.candidates,
            seed=self._seed,
        )

    def _refuse_clashes(self) -> None:
        """Refuse parameters that exclude each other."""
        if self.candidates == "hessian" and not self.newton:
            raise ValueError(
                "candidates='hessian' places cuts by second derivatives, which newton=False does without: use one"
            )
        if self.candidates == "hessian" and self.max_bins is None:
            raise ValueError("candidates='hessian' chooses cuts among values, max_bins=None tries every one: use one")

    def _to_units(self, x: Any) -> Any:
        """Numbers of the user in units of 2**_exponent."""
        return np.ldexp(x, -self._exponent) if self._exponent and x is not None else x

    # --- warm start ---

    def _mark(self, data: Data) -> dict[str, str]:
        """Hashes of the data, to know them again; of X only where a warm start may ask."""
        classes = tuple(self.classes_.tolist()) if hasattr(self, "classes_") else None
        marks = {"y": mark_weights(data.y), "sample_weight or class_weight": mark_weights(data.weight)}
        if data.offset is not None:
            marks["init_score"] = mark_weights(data.offset)
        marks["loss"] = repr(self.loss if isinstance(self.loss, str) else "two functions")
        if self.warm_start:
            marks["X"] = fingerprint(data.table, data.y, classes)
        return marks

    def _kept_forest(self, marks: dict[str, str]) -> Forest | None:
        """The rounds to add to, if this is a warm start on the same data."""
        old: Forest | None = getattr(self, "forest_", None) if self.warm_start else None
        if old is None:
            return None
        for name in ("y", "sample_weight or class_weight", "init_score", "loss", "X"):
            is_comparable = name != "X" or name in self._marks  # the last fit may not have looked at it
            if is_comparable and marks.get(name) != self._marks.get(name):
                raise ValueError(
                    f"warm_start adds rounds to a model, so fit needs the data of the first fit again; {name} differs. "
                    "Set warm_start=False to begin anew."
                )
        if self.n_estimators < self.n_estimators_:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger or equal to the {self.n_estimators_} rounds there "
                "are when warm_start==True"
            )
        if self.n_estimators == self.n_estimators_:
            warn("Warm-start fitting without increasing n_estimators does not fit new trees.")
        return old

    # --- rows that validate ---

    def _check_validation(self, validation: dict[str, Any]) -> None:
        """Refuse half a validation set, and early stopping without one."""
        has_rows = validation["X_val"] is not None
        if has_rows != (validation["y_val"] is not None):
            raise ValueError("X_val and y_val belong together: give both or none")
        for name in ("sample_weight_val", "init_score_val"):
            if validation[name] is not None and not has_rows:
                raise ValueError(f"{name} belongs to X_val and y_val, which are not given")
        if self.n_iter_no_change is not None and not has_rows and self.validation_fraction is None:
            raise ValueError(
                f"n_iter_no_change={self.n_iter_no_change} stops early by rows held out, but there are none: give "
                "X_val and y_val to fit, or a validation_fraction"
            )

    def _read_watch(self, callbacks: Any, deadline: float) -> Watch:
        callbacks = [callbacks] if callable(callbacks) else list(callbacks or ())
        for callback in callbacks:
            if not callable(callback):
                raise TypeError(f"callbacks must be functions of (iteration, results), got {callback!r}")
        return Watch(
            scoring=self.scoring,
            n_iter_no_change=None if self.n_iter_no_change is None else int(self.n_iter_no_change),
            tol=float(self.tol),
            deadline=deadline,
            callbacks=callbacks,
            verbose=int(self.verbose),
        )

    def _read_validation(self, validation: dict[str, Any], loss: Loss, data: Data) -> Holdout | None:
        """The validation rows that were given."""
        if validation["X_val"] is None:
            return None
        if (data.offset is None) != (validation["init_score_val"] is None):
            raise ValueError("init_score and init_score_val belong together: give both (zeros will do) or none")
        X = validation["X_val"]
        try:
            columns = open_x(self, X, is_fit=False)
            y = self._read_other_y(validation["y_val"], columns.n_rows)
        except ValueError as error:
            raise ValueError(f"X_val, y_val: {error}") from error
        loss.check(np.append(y, 1.0))  # which no loss refuses: it is no fault if all counts of these rows are 0
        weight = self._weigh_other(check_weights(validation["sample_weight_val"], columns.n_rows), y)
        offset = read_offset(validation["init_score_val"], "init_score_val", columns.n_rows, loss.n_raw)
        return Holdout(
            X, encode(columns, self._schema), self._to_units(y), self._truth(y), weight, self._to_units(offset)
        )

    def _hold_out(self, data: Data) -> Holdout | None:
        """Draw the validation rows from the training rows, if early stopping needs them."""
        if self.n_iter_no_change is None:
            return None
        codes = data.y.astype(np.int32) if hasattr(self, "classes_") else None
        data.is_held = draw_held(
            self.validation_fraction, len(data.y), data.is_used, codes, draw_key(self._seed, HOLDOUT)
        )
        y, weight, offset = data.part(data.is_held)
        X = None if self.scoring == "loss" else _safe_indexing(data.X, np.flatnonzero(data.is_held))
        truth = self._truth(np.ldexp(y, self._exponent))
        return Holdout(X, read_values(data.table, data.is_held), y, truth, weight, offset)

    # --- reading ---

    def _values(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self, "forest_")
        return encode(open_x(self, X, is_fit=False), self._schema)

    def _make_predictor(self) -> RoundPredictor:
        check_is_fitted(self, "forest_")
        classes = getattr(self, "classes_", None)
        return RoundPredictor(
            self._schema, classes, self.forest_, self._start, self._loss.link, self.best_iteration_, self._exponent
        )

    def _offset(self, n_rows: int, init_score: Any) -> NDArray[np.float64] | None:
        """Raw scores that rows bring along, in our units."""
        offset: NDArray[np.float64] | None = self._to_units(
            read_offset(init_score, "init_score", n_rows, len(self._start))
        )
        return offset

    def _sum_rounds(self, values: NDArray[Any], init_score: Any) -> NDArray[np.float64]:
        """Raw scores by the rounds up to the best one, (n_raw, n_rows)."""
        offset = self._offset(len(values), init_score)
        return self._make_predictor().sum_rounds(values, offset, self.n_jobs)

    def _stages(self, values: NDArray[Any], init_score: Any) -> Iterator[NDArray[np.float64]]:
        """Raw scores after each round, (n_raw, n_rows): the same array each time."""
        offset = self._offset(len(values), init_score)
        return self._make_predictor().stages(values, self.n_estimators_, offset)

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Find the leaf of each row in each tree that `predict` uses.

        Returns
        -------
        leaf : int64 array (n_rows, best_iteration_ * n_trees_per_iteration_)
            Index of the leaf among the nodes of its tree, `forest_[t]`; the trees of a round stand side by side, in the
            order of the classes.
        """
        values = self._values(X)
        return self._make_predictor().find(values)

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Gain of the tests on each feature in the trees that `predict` uses, scaled to sum 1, (n_features,)."""
        check_is_fitted(self, "forest_")
        return sum_gains(self.forest_, self.best_iteration_ * self.n_trees_per_iteration_)


def moderate(weight: NDArray[np.float64] | None) -> tuple[NDArray[np.float64] | None, int]:
    """Weights with a power of two taken out where they are near the ends of float64, and its exponent."""
    if weight is None or MODERATE[0] < float(weight.max()) < MODERATE[1]:
        return weight, 0
    return scale_down(weight), math.frexp(float(weight.max()))[1]


def read_offset(score: Any, name: str, n_rows: int, n_raw: int) -> NDArray[np.float64] | None:
    """Scores that rows bring along, (n_raw, n_rows), from an array of one row per row of X."""
    if score is None:
        return None
    offset = check_array(score, ensure_2d=False, dtype=np.float64, copy=True, input_name=name, ensure_all_finite=False)
    if offset.shape == (n_rows,) and n_raw == 1:
        offset = offset[:, None]
    if offset.shape != (n_rows, n_raw):
        wanted = f"({n_rows},)" if n_raw == 1 else f"({n_rows}, {n_raw}), a column per class"
        raise ValueError(f"{name} has shape {offset.shape}, expected {wanted}")
    is_bad = ~np.isfinite(offset).all(axis=1)
    if is_bad.any():
        row = int(np.argmax(is_bad))
        raise ValueError(f"{name} contains NaN or infinity in row {row}; give every row a finite score, 0 for none")
    return np.ascontiguousarray(offset.T)


def read_values(table: Table, rows: NDArray[np.bool_] | None) -> NDArray[np.float64]:
    """Rows of a table as values, (n_rows, n_features)."""
    n_features = table.schema.n_features
    n_rows = table.n_rows if rows is None else int(np.count_nonzero(rows))
    values = np.empty((n_rows, n_features))
    n_at_once = max(CELLS_AT_ONCE // table.n_rows, 1)
    for first in range(0, n_features, n_at_once):
        block = table.block(first, min(first + n_at_once, n_features))
        values[:, first : first + len(block)] = (block if rows is None else block[:, rows]).T
    return values


def check_interactions(constraint: Any, estimator: Any, schema: Schema) -> list[list[int]] | None:
    """Groups of features that may stand on one path; features in none of them make up a group of their own."""
    n_features = schema.n_features
    if constraint is None:
        return None
    if isinstance(constraint, str):
        size = 1 if constraint == "no_interactions" else min(2, n_features)
        return [list(group) for group in combinations(range(n_features), size)]
    names = {name: j for j, name in enumerate(getattr(estimator, "feature_names_in_", ()))}
    groups = []
    for group in constraint:
        if isinstance(group, str) or not hasattr(group, "__iter__"):
            raise TypeError(f"interaction_cst must be a list of sets of features, but holds {group!r}")
        groups.append(sorted({find_feature(feature, names, n_features) for feature in group}))
    rest = sorted(set(range(n_features)).difference(*groups))
    return [group for group in [*groups, rest] if group]


def find_feature(feature: Any, names: dict[Any, int], n_features: int) -> int:
    """Index of a feature given by index or name."""
    if isinstance(feature, str):
        if feature not in names:
            known = f"the columns are {list(names)[:10]}" if names else "X has no column names"
            raise ValueError(f"interaction_cst names {feature!r}, but {known}")
        return names[feature]
    is_index = isinstance(feature, Integral) and not isinstance(feature, bool)
    if not is_index or not 0 <= feature < n_features:
        raise ValueError(
            f"interaction_cst must hold names or indices from 0 to {n_features - 1} of features, got {feature!r}"
        )
    return int(feature)
