"""Gradient boosting for times until an event, of which some are censored (Cox; accelerated failure time)."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from spinney.ensemble.survival_losses import AFT, NOISES, Cox
from spinney.estimators.base_boosting import BaseGradientBoosting
from spinney.estimators.boosted_numbers import BoostedNumbers, JointTarget
from spinney.estimators.boosting_constraints import JOINT_CONSTRAINTS
from spinney.estimators.boosting_data import moderate
from spinney.estimators.checks import all_or_nothing, check_numbers, check_weights, has_outputs
from spinney.estimators.concordance import measure_concordance
from spinney.estimators.evaluation_sets import Validation
from spinney.estimators.scanned import unpack

if TYPE_CHECKING:
    import os

    from numpy.typing import ArrayLike, NDArray

    from spinney.ensemble.losses import Loss


class GradientBoostingSurvival(JointTarget, BoostedNumbers, BaseGradientBoosting):
    """Gradient boosting for times until an event, of which some are censored: not seen up to the end of observation.

    Parameters
    ----------
    loss : {"cox", "aft"}, default="cox"
        "cox": the partial likelihood of proportional hazards, ties as Breslow's; `predict` gives the logarithm of a
        row's relative risk. "aft": accelerated failure time, log(time) = score + sigma * noise; `predict` gives a time.
    distribution : {"normal", "logistic", "extreme"}, default="normal"
        Of the noise in "aft": times are log-normal, log-logistic or Weibull's.
    sigma : float, default=1.0
        Size of that noise.
    validation_fraction : float, int or None, default=0.1
        Share or number of rows that early stopping keeps from training where it is not given any.
    learning_rate, n_estimators, effort, max_leaf_nodes, max_depth, min_samples_leaf, min_samples_split
        As in `GradientBoostingClassifier`.
    min_weight_fraction_leaf, min_child_weight, reg_lambda, reg_alpha, gamma, pruning, subsample, max_features
        As in `GradientBoostingClassifier`.
    sampling, leaf_rows, drop_rate, skip_drop, max_features_per_tree, max_bins, candidates
        As in `GradientBoostingClassifier`.
    categorical_features, date_features, cat_smooth
        As in `GradientBoostingClassifier`.
    max_cat_threshold, cat_penalty, interaction_cst, n_iter_no_change, tol, max_time, warm_start, n_jobs
        As in `GradientBoostingClassifier`.
    monotonic_cst, verbose, random_state, checkpoint
        As in `GradientBoostingRegressor`.

    Attributes
    ----------
    forest_, n_estimators_, n_iter_, chosen_params_, best_iteration_, n_trees_per_iteration_, init_, evals_result_
        As in `GradientBoostingClassifier`.
    train_score_, validation_score_, feature_importances_, n_features_in_, n_outputs_, max_features_, feature_names_in_
        As in `GradientBoostingClassifier`.
    oob_improvement_, oob_scores_, oob_score_, estimators_, is_categorical_
        As in `GradientBoostingClassifier`.
    newton, init, scoring
        Parameters of `GradientBoostingClassifier` that have one value here: True, None and "loss".

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import GradientBoostingSurvival
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> time, end = rng.exponential(np.exp(-X[:, 0])), rng.exponential(2.0, 500)
    >>> y = np.where(time <= end, time, -end)  # below 0: censored at that time
    >>> model = GradientBoostingSurvival(random_state=0).fit(X, y)
    >>> model.predict_survival([[2.0, 0.0], [-2.0, 0.0]], times=[0.5]).round(1).tolist()
    [[0.1], [0.9]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **JOINT_CONSTRAINTS,
        "loss": [StrOptions({"cox", "aft"})],
        "distribution": [StrOptions(set(NOISES))],
        "sigma": [Interval(Real, 0.0, None, closed="neither")],
    }

    def __init__(
        self,
        *,
        loss: str = "cox",
        distribution: str = "normal",
        sigma: float = 1.0,
        learning_rate: float | str = "auto",
        n_estimators: int | str = "auto",
        effort: float = 1.0,
        max_leaf_nodes: int | str | None = "auto",
        max_depth: int | None = None,
        min_samples_leaf: float | str = "auto",
        min_samples_split: float = 2,
        min_weight_fraction_leaf: float = 0.0,
        min_child_weight: float = 1e-3,
        reg_lambda: float | None = None,
        reg_alpha: float = 0.0,
        gamma: float = 0.0,
        pruning: str = "pre",
        subsample: float | str = "auto",
        sampling: str = "uniform",
        leaf_rows: str = "auto",
        drop_rate: float = 0.0,
        skip_drop: float = 0.5,
        max_features: float | str | None = "auto",
        max_features_per_tree: float | str | None = None,
        max_bins: int | None = 255,
        candidates: str = "weight",
        categorical_features: ArrayLike | str | None = "from_dtype",
        date_features: str | None = "auto",
        cat_smooth: float = 10.0,
        max_cat_threshold: int | None = None,
        cat_penalty: float = 1.0,
        monotonic_cst: ArrayLike | dict[str, int] | None = None,
        interaction_cst: list[Any] | tuple[Any, ...] | str | None = None,
        n_iter_no_change: int | None = None,
        validation_fraction: float | None = 0.1,
        tol: float = 0.0,
        max_time: float | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        self.loss = loss
        self.distribution = distribution
        self.sigma = sigma
        self.learning_rate = learning_rate
        self.n_estimators = n_estimators
        self.effort = effort
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.min_samples_split = min_samples_split
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.min_child_weight = min_child_weight
        self.reg_lambda = reg_lambda
        self.reg_alpha = reg_alpha
        self.gamma = gamma
        self.pruning = pruning
        self.subsample = subsample
        self.sampling = sampling
        self.leaf_rows = leaf_rows
        self.drop_rate = drop_rate
        self.skip_drop = skip_drop
        self.max_features = max_features
        self.max_features_per_tree = max_features_per_tree
        self.max_bins = max_bins
        self.candidates = candidates
        self.categorical_features = categorical_features
        self.date_features = date_features
        self.cat_smooth = cat_smooth
        self.max_cat_threshold = max_cat_threshold
        self.cat_penalty = cat_penalty
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.tol = tol
        self.max_time = max_time
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.checkpoint = checkpoint

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type, tags.regressor_tags = "survival", None
        return tags

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
        eval_set: Any = None,
        eval_names: Any = None,
        init_score: Any = None,
        init_score_val: Any = None,
        callbacks: Any = None,
    ) -> Self:
        """Grow the rounds.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features), or scan
        y : array-like (n_rows,)
            The time of each row: above 0 if the event was seen then, below 0 if it was not up to then. Or a structured
            array of two fields, whether the event was seen and the time, as scikit-survival has it.
        sample_weight, X_val, y_val, sample_weight_val, eval_set, eval_names : optional
            As in `GradientBoostingClassifier.fit`.
        init_score, init_score_val, callbacks : optional
            As in `GradientBoostingClassifier.fit`.
        """
        validation = Validation(X_val, y_val, sample_weight_val, init_score_val, eval_set, eval_names)
        with all_or_nothing(self):
            self._validate_params()
            X, y, sample_weight, _ = unpack(self, X, y, sample_weight)
            self._fit(X, y, sample_weight, validation, init_score, callbacks)
            fitted = self._find_fitted()
            if isinstance(fitted.loss, Cox):
                loss = self._find_baseline(fitted.loss, X, y, sample_weight, init_score)
                self._fitted = replace(fitted, loss=loss)
        return self

    def _find_baseline(self, loss: Cox, X: Any, y: Any, sample_weight: Any, init_score: Any) -> Cox:
        """The loss with the baseline hazard of the training rows."""
        _, raw = self._raw_scores(X, init_score, None)
        weight, _ = moderate(check_weights(sample_weight, raw.shape[1]))
        time = self._read_target(y, raw.shape[1])
        if weight is not None and not np.all(weight > 0.0):
            is_used = weight > 0.0
            time, weight, raw = time[is_used], weight[is_used], np.ascontiguousarray(raw[:, is_used])
        return loss.with_baseline(time, weight, raw)

    def _read_target(self, y: Any, n_rows: int) -> NDArray[np.float64]:
        return check_numbers(self, sign_times(y), n_rows)

    def _read_evaluated_target(self, y: Any, n_rows: int) -> NDArray[np.float64]:
        return self._read_target(y, n_rows)

    def _make_loss(self) -> Loss:
        return Cox() if self.loss == "cox" else AFT(self.distribution, float(self.sigma))

    def predict_survival(self, X: Any, times: ArrayLike, *, init_score: Any = None) -> NDArray[np.float64]:
        """Predict the probability that the event has not come by a time.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)
        times : array-like (n_times,)
            Above 0. With loss="cox" nothing is known beyond the last event of the training rows: there it stays.
        init_score : array-like (n_rows,), optional
            As in `fit`.

        Returns
        -------
        survival : float64 array (n_rows, n_times)
        """
        at = check_times(times)
        _, raw = self._raw_scores(X, init_score, None)
        loss = self._find_fitted().loss
        assert isinstance(loss, Cox | AFT)
        return loss.survive(raw[0], at)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Harrell's concordance: of pairs whose order of times is known, the share that `predict` orders so.

        Chance has 0.5. sample_weight: of rows; a pair weighs the product.
        """
        predicted: NDArray[np.float64] = self.predict(X)
        risk = predicted if isinstance(self._find_fitted().loss, Cox) else -predicted
        time = self._read_target(y, len(risk))
        return measure_concordance(time, risk, check_weights(sample_weight, len(risk)))


def check_times(times: ArrayLike) -> NDArray[np.float64]:
    """Times to predict at, (n_times,)."""
    try:
        at = np.asarray(times, np.float64)
    except (TypeError, ValueError):
        at = np.array(np.nan)
    if at.ndim != 1 or not bool((np.isfinite(at) & (at > 0.0)).all()):
        raise ValueError(f"times={times!r:.60} must be a list of finite numbers above 0")
    return at


def sign_times(y: Any) -> Any:
    """Times with a sign, negative where the event was not seen, of a structured array; others as they are."""
    names = getattr(getattr(y, "dtype", None), "names", None)
    if names is None:
        if has_outputs(y):
            raise ValueError(
                "y has several columns: give times, below 0 where the event was not seen, numpy.where(seen, time, "
                "-time), or a structured array of a bool (seen or not) and a time"
            )
        return y
    kinds = {name: y.dtype[name].kind for name in names}
    events = [name for name, kind in kinds.items() if kind == "b"]
    times = [name for name, kind in kinds.items() if kind in "iuf"]
    if len(names) != 2 or len(events) != 1 or len(times) != 1:
        raise ValueError(
            f"y has the fields {list(names)}: a structured target has two, a bool (seen or not) and a time"
        )
    time = y[times[0]].astype(np.float64)
    if bool((time <= 0.0).any()):
        row = int(np.argmax(time <= 0.0))
        raise ValueError(f"y has the time {time[row]:g} in row {row}: times are above 0; leave the row out")
    return np.where(y[events[0]], time, -time)
