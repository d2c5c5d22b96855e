"""Random survival forests: times until an event, some of them censored (Ishwaran et al. 2008)."""

from __future__ import annotations

from numbers import Integral
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval

from spinney._warnings import warn
from spinney.ensemble.sampling import Draw
from spinney.estimators.base import Estimator
from spinney.estimators.base_tree import GROWING_CONSTRAINTS, LEAF_CONSTRAINTS
from spinney.estimators.cart import SHARED_CONSTRAINTS
from spinney.estimators.checks import all_or_nothing, check_numbers, check_weights, open_x
from spinney.estimators.concordance import has_known_order, measure_concordance
from spinney.estimators.forest_training import BAG_CONSTRAINTS, fit_forest
from spinney.estimators.kept import Kept, Part, find_hash_fault, set_parts
from spinney.estimators.scanned import unpack
from spinney.estimators.survival import check_times, sign_times
from spinney.estimators.training import read_training
from spinney.model.earlier_members import EarlierMembers, refuse_earlier
from spinney.model.fitted_forest import FittedForest
from spinney.model.hazards import mean_hazards, mean_survival, out_of_bag_hazards
from spinney.table.fixed_point import time_target
from spinney.table.schema import encode
from spinney.tree.forest import Forest
from spinney.tree.times import choose_times

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from spinney.table.sparse import Values

FIXED: dict[str, Any] = {  # parameters of other forests that have one value here
    "criterion": "squared_error",
    "missing": "learned",
    "min_impurity_decrease": 0.0,
    "replace": True,
    "honest": False,
    "honest_fraction": 0.5,
    "pruning": None,
    "ccp_alpha": 0.0,
    "monotonic_cst": None,
    "oob_score": False,  # of times: by `out_of_bag_hazards`
    "checkpoint": None,
}


class RandomForestSurvival(Estimator[FittedForest]):
    """Random survival forest: trees on bags of the rows whose tests part the times until an event by the log-rank test.

    A leaf holds the cumulative hazard of its rows (Nelson and Aalen). Missing values take the branch where they help
    most; levels of a category are put in order by their mean martingale residual, and the best prefix is taken.

    Parameters
    ----------
    n_estimators : int, default=100
        Number of trees.
    max_times : int, default=64
        Times of events that are told apart; of more that occur, every so many is taken, and events count at the next.
    max_depth : int, optional
        Most tests on a path.
    min_samples_split : int or float, default=6
        Fewest rows of a node that is split; a float is a fraction of all rows.
    min_samples_leaf : int or float, default=3
        Fewest rows of a leaf; a float is a fraction of all rows.
    min_weight_fraction_leaf : float, default=0.0
        Least share of the total weight in a leaf.
    max_leaf_nodes : int, optional
        Grow best first, up to this many leaves.
    max_features : int, float, {"sqrt", "log2", "third"} or None, default="sqrt"
        Features drawn per node.
    bootstrap : bool or "poisson", default=True
        How bags are drawn, as in `RandomForestRegressor`; False: every tree sees all rows.
    max_samples : int or float, optional
        Rows of a bag, or share of all rows.
    block_size : int, optional
        As in `RandomForestRegressor`.
    oob_score : bool, default=False
        Whether to score the forest on rows outside the bags, by Harrell's concordance.
    ties : {"first", "random"}, default="random"
        Whether features are searched in random order: tests of equal gain then go to any of them.
    max_bins : int, default=65535
        Most distinct values of a numeric column that are kept apart.
    categorical_features, date_features
        As in `RandomForestRegressor`.
    n_jobs : int, optional
        Threads at most; None: as many as the work pays for. The forest is the same for any number.
    random_state : int, RandomState or None
    verbose : int, default=0
        Whether to show the progress.
    warm_start : bool, default=False
        Whether `fit` adds trees to those of the last one, on the same rows or on others of the same columns; `times_`
        stay those of the first fit.

    Attributes
    ----------
    forest_ : Forest
        The trees; `forest_.answers` has the cumulative hazards of nodes at `times_`.
    times_ : float64 array (n_times,)
        Times of events that are told apart.
    oob_score_ : float, with `oob_score=True`
    oob_prediction_ : float64 array (n_rows,), with `oob_score=True`
        What `predict` gives by the trees whose bag lacks the row; NaN where there is none.
    n_features_in_, max_features_ : int
    feature_names_in_ : array of str, if X had names

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import RandomForestSurvival
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> time, end = rng.exponential(np.exp(-X[:, 0])), rng.exponential(2.0, 500)
    >>> y = np.where(time <= end, time, -end)  # below 0: censored at that time
    >>> model = RandomForestSurvival(random_state=0).fit(X, y)
    >>> model.predict_survival([[1.5, 0.0], [-1.5, 0.0]], times=[0.5]).round(1).tolist()
    [[0.1], [0.9]]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **GROWING_CONSTRAINTS,
        **{name: LEAF_CONSTRAINTS[name] for name in LEAF_CONSTRAINTS if name != "min_impurity_decrease"},
        **{name: SHARED_CONSTRAINTS[name] for name in ("max_leaf_nodes", "max_features", "ties")},
        **BAG_CONSTRAINTS,
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_times": [Interval(Integral, 1, None, closed="left")],
        "oob_score": ["boolean"],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "warm_start": ["boolean"],
    }
    _keeps: ClassVar[dict[str, Kept]] = {
        "forest_": Kept(Forest),
        "times_": Kept(np.ndarray),
        "max_features_": Kept(int),
        "_draw": Kept(Draw, stored=(Draw,)),
        "_seed": Kept(int),
        "_fingerprint": Kept(str, check=find_hash_fault),
        "_weight_mark": Kept(str, check=find_hash_fault),
        "_n_before": Kept(int, is_needed=False),
        "oob_score_": Kept(float, is_needed=False),
        "oob_prediction_": Kept(np.ndarray, is_needed=False),
    }
    forest_ = Part("forest")
    max_features_ = Part("max_features")
    _schema = Part("schema")
    _draw = Part("draw")
    _seed = Part("seed")
    _fingerprint = Part("fingerprint")
    _weight_mark = Part("weight_mark")
    _n_before = Part("earlier.n_members")
    times_: NDArray[np.float64]

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        max_times: int = 64,
        max_depth: int | None = None,
        min_samples_split: float = 6,
        min_samples_leaf: float = 3,
        min_weight_fraction_leaf: float = 0.0,
        max_leaf_nodes: int | None = None,
        max_features: float | str | None = "sqrt",
        bootstrap: bool | str = True,
        max_samples: float | None = None,
        block_size: int | None = None,
        oob_score: bool = False,
        ties: str = "random",
        max_bins: int = 65535,
        categorical_features: ArrayLike | str | None = "from_dtype",
        date_features: str | None = "auto",
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        warm_start: bool = False,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_times = max_times
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_leaf_nodes = max_leaf_nodes
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.max_samples = max_samples
        self.block_size = block_size
        self.oob_score = oob_score
        self.ties = ties
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.date_features = date_features
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "survival"
        tags.target_tags.required = True
        return tags

    # --- fitting ---

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Grow the forest.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features), or scan
        y : array-like (n_rows,)
            The time of each row: above 0 if the event was seen then, below 0 if it was not up to then. Or a structured
            array of two fields, whether the event was seen and the time, as scikit-survival has it.
        sample_weight : array-like (n_rows,), optional
            A bootstrap draws rows in proportion to their weight; without bags the trees weigh the rows. Rows of weight
            0 are left out.
        """
        with all_or_nothing(self):
            self._validate_params()
            if self.oob_score and not self.bootstrap:
                raise ValueError(
                    "Out of bag estimation only available if bootstrap=True or 'poisson': without bags every tree sees "
                    "all rows"
                )
            X, y, sample_weight, _ = unpack(self, X, y, sample_weight)
            data = read_training(self, X, y, sample_weight)
            is_used = np.ones(len(data.y), np.bool_) if data.weight is None else data.weight > 0.0
            grid = choose_times(data.y[is_used], int(self.max_times))
            if len(grid) == 0:
                raise ValueError(
                    "y has no event: every time is below 0, censored, and there is nothing to learn. Check the signs "
                    "of y, or which rows its field of bools marks."
                )
            old = self._find_old(warm_start=self.warm_start)
            if old is not None:
                grid = self.times_
                if len(grid) > self.max_times:
                    raise ValueError(
                        f"warm_start adds trees to a forest, whose times_ stay {len(grid)} times of events, and "
                        f"max_times={self.max_times}: leave it as it was, or set warm_start=False to begin anew"
                    )
            fitted = fit_forest(self._settings(grid), data, None, None, old)
            if self.oob_score:
                refuse_earlier(fitted.earlier, "oob_score=True needs")
                if fitted is old:
                    raise ValueError(
                        "oob_score=True needs the rows that the trees were grown on, and these are others: fit the "
                        "same rows, or add trees, or set warm_start=False to begin anew"
                    )
            self._fitted = fitted
            self.times_ = grid
            for name in ("oob_score_", "oob_prediction_"):
                self.__dict__.pop(name, None)
            if self.oob_score:
                values = encode(data.columns, data.table.schema)
                self._score_out_of_bag(values, data.y, is_used)
            return self

    def _settings(self, grid: NDArray[np.float64]) -> Any:
        """What forests are trained by: the parameters, those that have one value here, and how the target is made."""
        params = self.get_params(deep=False)
        return SimpleNamespace(
            **{**params, **FIXED},
            _parameter_constraints=(),  # none beyond these
            # events after the last time, which other rows of a warm start may have, had not come by then
            make_target=lambda y, weights: time_target(np.where(y > grid[-1], -y, y), grid, weights),
            _labels=None,
            _is_hard=False,
            _has_random_tests=False,
            _asks_one_output=dict,
            _count_outputs=lambda: 1,  # columns of y
        )

    def _score_out_of_bag(self, values: Values, y: NDArray[np.float64], is_used: NDArray[np.bool_]) -> None:
        """Set what rows outside the bags tell."""
        hazards, n_votes = out_of_bag_hazards(self._find_fitted(), values)
        is_judged = is_used & (n_votes > 0)
        n_silent = int(np.count_nonzero(is_used & (n_votes == 0)))
        if n_silent:
            warn(
                f"{n_silent} of {len(y)} rows were in every bag: they have no out-of-bag prediction (NaN) and do not "
                "count in the score. More trees would leave fewer such rows."
            )
        self.oob_prediction_ = np.where(is_judged, hazards.sum(axis=1) / np.maximum(n_votes, 1), np.nan)
        if has_known_order(y[is_judged]):
            self.oob_score_ = measure_concordance(y[is_judged], self.oob_prediction_[is_judged], None)
        else:
            warn("oob_score_ is NaN: of no two out-of-bag rows it is known whose event came first")
            self.oob_score_ = float("nan")

    def _read_target(self, y: Any, n_rows: int) -> NDArray[np.float64]:
        """Times with a sign: below 0 where the event was not seen."""
        time = check_numbers(self, sign_times(y), n_rows)
        if np.any(time == 0.0):
            row = int(np.argmax(time == 0.0))
            raise ValueError(f"y is 0 in row {row}: times are above 0, or below where they are censored; leave it out")
        return time

    @property
    def _labels(self) -> tuple[Any, ...] | None:
        """None: there are no classes."""
        return None

    # --- the fitted forest ---

    def _set_fitted(self, values: dict[str, Any]) -> None:
        """Set fitted attributes by the names that files have."""
        set_parts(self, values, restore_survival)

    def _find_fault(self) -> str | None:
        """What is wrong with a fitted forest that was just read."""
        fitted, times = self._find_fitted(), self.times_
        is_grid = times.ndim == 1 and times.dtype == np.float64 and len(times) and bool(np.all(np.diff(times) > 0.0))
        if not is_grid or not np.isfinite(times).all() or times[0] <= 0.0:
            return "times_ must be times above 0, ascending"
        answers = fitted.forest.answers
        if answers is None or answers.shape[1] != len(times) or answers.min() < 0.0:
            return "the trees have no cumulative hazards at times_"
        found = vars(self).get("oob_prediction_")
        if (found is None) != ("oob_score_" not in vars(self)):
            return "oob_prediction_ comes with oob_score_"
        if found is not None and (found.shape != (fitted.draw.n_rows,) or found.dtype != np.float64):
            return f"oob_prediction_ must be {fitted.draw.n_rows} numbers"
        return fitted.find_fault()

    def _has_predictor(self) -> bool:
        return False

    def _why_no_predictor(self) -> str:
        return "a predictor gives numbers or classes, and this model curves"

    def _values(self, X: Any) -> Values:
        """New rows as values, (n_rows, n_features)."""
        schema = self._find_fitted().schema
        return encode(open_x(self, X, is_fit=False), schema)

    def __len__(self) -> int:
        return len(self._find_fitted().forest)

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Find the leaf of each row in each tree, int64 array (n_rows, n_trees)."""
        values = self._values(X)
        return self._find_fitted().make_predictor(is_hard=False).find(values)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict the mortality of each row: its cumulative hazards, added up over `times_`.

        It is the number of events that would be expected among rows like it; more is worse. Shape (n_rows,).
        """
        values = self._values(X)
        return mean_hazards(self._find_fitted().forest, values, self.n_jobs).sum(axis=1)

    def predict_cumulative_hazard(self, X: Any, times: ArrayLike) -> NDArray[np.float64]:
        """Predict the cumulative hazard up to each time: the mean over the trees.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)
        times : array-like (n_times,)
            Above 0. Nothing is known beyond the last of `times_`: there it stays.

        Returns
        -------
        hazard : float64 array (n_rows, n_times)
        """
        at = check_times(times)
        hazards = mean_hazards(self._find_fitted().forest, self._values(X), self.n_jobs)
        return read_steps(self.times_, hazards, at, 0.0)

    def predict_survival(self, X: Any, times: ArrayLike) -> NDArray[np.float64]:
        """Predict the probability that the event has not come by a time: the mean over the trees (Kaplan and Meier).

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)
        times : array-like (n_times,)
            Above 0. Nothing is known beyond the last of `times_`: there it stays.

        Returns
        -------
        survival : float64 array (n_rows, n_times)
        """
        at = check_times(times)
        survival = mean_survival(self._find_fitted().forest, self._values(X), self.n_jobs)
        return read_steps(self.times_, survival, at, 1.0)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Harrell's concordance: of pairs whose order of times is known, the share that `predict` orders so.

        Chance has 0.5. sample_weight: of rows; a pair weighs the product.
        """
        risk = self.predict(X)
        time = self._read_target(y, len(risk))
        return measure_concordance(time, risk, check_weights(sample_weight, len(risk)))


def read_steps(
    grid: NDArray[np.float64], values: NDArray[np.float64], times: NDArray[np.float64], start: float
) -> NDArray[np.float64]:
    """Step functions, (n_rows, n_grid) after each time of a grid and `start` before, at other times."""
    begin = np.full((len(values), 1), start)
    return np.concatenate([begin, values], axis=1)[:, np.searchsorted(grid, times, side="right")]


def restore_survival(values: dict[str, Any]) -> FittedForest:
    """The fitted forest from the attributes of a file."""
    return FittedForest(
        forest=values["forest_"],
        schema=values["_schema"],
        classes=None,
        draw=values["_draw"],
        seed=values["_seed"],
        max_features=values["max_features_"],
        honest_fraction=None,
        fingerprint=values["_fingerprint"],
        weight_mark=values["_weight_mark"],
        earlier=EarlierMembers(values["_n_before"]) if "_n_before" in values else None,
    )
