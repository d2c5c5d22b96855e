"""Gradient boosting that puts lists in order: documents of a query, offers to a customer (LambdaMART)."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import _num_samples

from spinney.ensemble import held_out
from spinney.ensemble.ranking_loss import METRICS, RELEVANCES, LambdaRank, pack_target
from spinney.ensemble.sampling import draw_key
from spinney.estimators.base_boosting import BaseGradientBoosting
from spinney.estimators.boosted_numbers import BoostedNumbers, JointTarget
from spinney.estimators.boosting_constraints import JOINT_CONSTRAINTS
from spinney.estimators.boosting_data import moderate
from spinney.estimators.checks import all_or_nothing, check_codes, check_numbers, check_weights
from spinney.estimators.evaluation_sets import Validation
from spinney.estimators.scanned import unpack, unpack_evaluated
from spinney.table.columns import Categories

if TYPE_CHECKING:
    import os

    from numpy.typing import ArrayLike, NDArray

    from spinney.ensemble.losses import Loss
    from spinney.estimators.boosting_data import BoostingData


class GradientBoostingRanker(JointTarget, BoostedNumbers, BaseGradientBoosting):
    """Gradient boosting that ranks: rows of a group are put in order, the more relevant first.

    Each round moves the scores of two rows of a group apart by how much swapping their places would change NDCG or MAP
    (LambdaMART, Burges 2010, as LightGBM and XGBoost compute it). What `predict` gives is a score: it orders the rows
    of a group, and means nothing by itself.

    Parameters
    ----------
    loss : {"lambdarank"}, default="lambdarank"
    metric : {"ndcg", "map"}, default="ndcg"
        What the order is judged by. "ndcg": gains are 2**relevance - 1, discounts 1 / log2(place + 1). "map": a row is
        relevant or not, whatever its relevance above 0.
    truncation : int, default=30
        Pairs are compared of which one is among so many first places of its group.
    places : int, default=10
        First places that `score`, learning curves and early stopping look at.
    validation_fraction : float, int or None, default=0.1
        Share or number of groups that early stopping keeps from training where it is not given any.
    learning_rate, n_estimators, effort, max_leaf_nodes, max_depth, min_samples_leaf, min_samples_split
        As in `GradientBoostingClassifier`.
    min_weight_fraction_leaf, min_child_weight, reg_lambda, reg_alpha, gamma, pruning, subsample, max_features
        As in `GradientBoostingClassifier`, but reg_lambda, which is 0 by default: derivatives are small here.
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
        As in `GradientBoostingClassifier`; the loss of a round is 1 - NDCG, or 1 - MAP.
    train_score_, validation_score_, feature_importances_, n_features_in_, n_outputs_, max_features_, feature_names_in_
        As in `GradientBoostingClassifier`.
    oob_improvement_, oob_scores_, oob_score_, estimators_, is_categorical_
        As in `GradientBoostingClassifier`.
    newton, init, scoring
        Parameters of `GradientBoostingClassifier` that have one value here: True, None and "loss".

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import GradientBoostingRanker
    >>> rng = np.random.default_rng(0)
    >>> X, query = rng.normal(size=(600, 3)), np.repeat(np.arange(60), 10)
    >>> y = np.clip(np.round(X[:, 0] + 0.3 * rng.normal(size=600) + 1), 0, 4)
    >>> model = GradientBoostingRanker(random_state=0).fit(X[:500], y[:500], groups=query[:500])
    >>> model.score(X[500:], y[500:], groups=query[500:]) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **JOINT_CONSTRAINTS,
        "loss": [StrOptions({"lambdarank"})],
        "metric": [StrOptions(set(METRICS))],
        "truncation": [Interval(Integral, 1, None, closed="left")],
        "places": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        *,
        loss: str = "lambdarank",
        metric: str = "ndcg",
        truncation: int = 30,
        places: int = 10,
        learning_rate: float | str = "auto",
        n_estimators: int | str = "auto",
        effort: float = 1.0,
        max_leaf_nodes: int | str | None = "auto",
        max_depth: int | None = None,
        min_samples_leaf: float | str = "auto",
        min_samples_split: float = 2,
        min_weight_fraction_leaf: float = 0.0,
        min_child_weight: float = 1e-3,
        reg_lambda: float = 0.0,
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
        self.metric = metric
        self.truncation = truncation
        self.places = places
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
        tags.estimator_type, tags.regressor_tags = "ranker", None
        tags.target_tags.positive_only = True
        return tags

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        groups_val: Any = None,
        sample_weight_val: Any = None,
        init_score: Any = None,
        init_score_val: Any = None,
        callbacks: Any = None,
    ) -> Self:
        """Grow the rounds.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features), or scan
        y : array-like (n_rows,)
            Relevance of each row, a whole number from 0 to 31: the higher, the further up it belongs.
        sample_weight : array-like (n_rows,), optional
        groups : array-like (n_rows,), optional
            Which list a row belongs to, such as a query: numbers or text, rows of a group in any place. None: all rows
            are one list. A scan has its own.
        X_val, y_val, groups_val, sample_weight_val : optional
            Rows for learning curves and early stopping.
        init_score, init_score_val, callbacks : optional
            As in `GradientBoostingClassifier.fit`.
        """
        with all_or_nothing(self):
            self._validate_params()
            X, y, sample_weight, groups = unpack(self, X, y, sample_weight, groups)
            y = self._pack(y, groups, "y", "groups")
            X_val, y_val, sample_weight_val, groups_val = unpack_evaluated(
                X_val, y_val, sample_weight_val, type(self).__name__, groups_val
            )
            if X_val is None and groups_val is not None:
                raise ValueError("groups_val belongs to X_val and y_val, which are not given")
            if X_val is not None and y_val is not None:
                if groups is not None and groups_val is None:
                    raise ValueError("groups is given and groups_val is not: say which list each row of X_val is of")
                y_val = self._pack(y_val, groups_val, "y_val", "groups_val")
            validation = Validation(X_val, y_val, sample_weight_val, init_score_val)
            return self._fit(X, y, sample_weight, validation, init_score, callbacks)

    def _pack(self, y: Any, groups: Any, name: str, groups_name: str) -> NDArray[np.float64]:
        """Relevances and groups as the target of the loss."""
        if y is None:
            raise ValueError(f"{type(self).__name__} requires {name} to be passed: the relevance of each row")
        try:
            relevance = check_numbers(self, y, len(y.codes) if isinstance(y, Categories) else _num_samples(y))
        except ValueError as error:
            raise ValueError(str(error) if name == "y" else f"{name}: {error}") from error
        is_bad = ~((relevance >= 0.0) & (relevance < RELEVANCES) & (relevance == np.floor(relevance)))
        if bool(is_bad.any()):
            row = int(np.argmax(is_bad))
            raise ValueError(
                f"{name} is {relevance[row]:g} in row {row}: relevances are whole numbers from 0 to {RELEVANCES - 1}; "
                "round them, or rank them within their group"
            )
        codes = check_codes(groups, groups_name, len(relevance))
        return pack_target(np.zeros(len(relevance), np.int64) if codes is None else codes.astype(np.int64), relevance)

    def _make_loss(self) -> Loss:
        return LambdaRank(self.metric, int(self.truncation), int(self.places))

    def _draw_held_out(self, data: BoostingData) -> NDArray[np.bool_]:
        """Whole groups."""
        query = data.y // RELEVANCES
        used = np.unique(query if data.is_used is None else query[data.is_used])
        assert self.validation_fraction is not None
        is_held = held_out.draw_held_out(
            self.validation_fraction, len(used), None, None, draw_key(data.seed, held_out.KEY),
            remedy="give X_val, y_val and groups_val", unit="groups",
        )  # fmt: skip
        return np.isin(query, used[is_held])

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> float:
        """Mean NDCG, or MAP, of the first `places` rows of each group by `predict`; 1 is the best order.

        A group counts as much as its rows weigh on average. One without a relevant row counts 1, as in LightGBM.
        """
        raw: NDArray[np.float64] = self.predict(X)[None, :]
        target = check_numbers(self, self._pack(y, groups, "y", "groups"), raw.shape[1])
        weight, _ = moderate(check_weights(sample_weight, raw.shape[1]))
        return 1.0 - self._make_loss().value(target, weight, raw)
