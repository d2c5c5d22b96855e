"""Gradient boosting for classes and numbers (Friedman 2001; second order as in Chen and Guestrin 2016)."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from spinney._elementary import log
from spinney.ensemble.loss_names import CLASSES, NUMBERS, STORED, make_loss
from spinney.estimators.base import Classifier
from spinney.estimators.base_boosting import BaseGradientBoosting
from spinney.estimators.boosted_numbers import BoostedNumbers
from spinney.estimators.boosting_constraints import BOOST_CONSTRAINTS
from spinney.estimators.checks import NO_MONOTONE, all_or_nothing, check_known, check_y, weigh_classes
from spinney.estimators.evaluation_sets import Validation
from spinney.estimators.kept import Kept, Part
from spinney.estimators.stand_ins import stand_for

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike, NDArray

    from spinney.ensemble.losses import Loss

    Functions = tuple[Callable[..., Any], Callable[..., Any]]


@stand_for("GradientBoostingClassifier")
class GradientBoostingClassifier(Classifier, BaseGradientBoosting):
    """Gradient boosting for classes: trees one after the other, each on the derivatives of the loss so far.

    Takes what single trees take: arrays, frames, sparse matrices, text and category columns, missing values, weights.
    The same model comes out for any number of threads; where nothing is drawn (`subsample=1`, `max_features=None`) also
    for any order of the rows, and for a row of weight 2 in place of two rows.

    Parameters
    ----------
    loss : {"log_loss", "exponential"} or pair of functions, default="log_loss"
        "exponential" is AdaBoost's, for two classes. Two functions of (y, raw), arrays of shape (n_rows,), give the
        first and second derivatives of a loss of your own by the raw scores; y holds 0, 1, ... for `classes_`, and raw
        and the results have a column per class where there are three or more.
    learning_rate : float or "auto", default="auto"
        What a leaf's value is multiplied by. Lower rates need more rounds and often end lower. "auto", here and below,
        follows the table by the rules of the guide on boosting, and `chosen_params_` says what it was: 0.03, of
        three classes or more 0.06; 0.1 for large tables, and where `n_estimators` is a number.
    n_estimators : int or "auto", default="auto"
        Most rounds. A round has one tree, or one per class where there are three or more. "auto" stops by the rows
        that the rounds leave out: at twice the rounds after which these were predicted best (three times where nearly
        all is learnt), and at 2,000 (of large tables 250, of numbers 120).
    effort : float, default=1.0
        How much time is worth spending: steps are so much shorter, and rounds may be so many more, where both are
        "auto". 0.2 for a first look, 5 for the last digit.
    max_leaf_nodes : int, "auto" or None, default="auto"
        Grow best first, up to this many leaves; None grows by level. "auto": from 6 to 31, by the number of rows.
    max_depth : int, optional
        Most tests on a path. With `max_leaf_nodes=None` as well, trees are full.
    min_samples_leaf : int, float or "auto", default="auto"
        Fewest rows of a leaf; a float is a fraction of all rows. "auto": a row in 150, from 3 to 20; 1 for the squared
        error in tables of less than 20,000 rows.
    min_samples_split : int or float, default=2
        Fewest rows of a node that is split; a float is a fraction of all rows.
    min_weight_fraction_leaf : float, default=0.0
        Least share of the total weight in a leaf.
    min_child_weight : float, default=1e-3
        Least sum of second derivatives, times weights, in a leaf; with `newton=False` least sum of weights.
    reg_lambda : float, optional
        Pull of leaf values towards 0 by their squares: 1 by default, 1/2 for two classes of a small table whose rounds
        are not counted, 2 / n for n classes, three or more, 0 with `newton=False`, as Friedman has it. Where that
        default stands, and rounds stop by the rows that they leave out, it falls once four fifths of the loss are
        learnt; a number is the same for all rounds.
    reg_alpha : float, default=0.0
        Pull of leaf values towards 0 by their sizes.
    gamma : float, default=0.0
        Gain that a test must have to be worth its leaf.
    pruning : {"pre", "post"}, default="pre"
        Do not split where no gain exceeds `gamma`; or make every test that lowers the loss at all, and take tests back
        from below: a gain below a worthless test then saves it.
    subsample : float or "auto", default="auto"
        Share of the rows that each round draws, without replacement. "auto": 0.7, of large tables 0.8,
        of three classes or more 0.5; 0.85 where all columns are categories and the table is not large; 1 for the
        squared error in large tables.
    sampling : {"uniform", "gradient"}, default="uniform"
        How rows are drawn. "gradient": two thirds of the bag are the rows with the greatest derivatives, the others are
        drawn and stand for the rest, after 1 / learning_rate rounds on all rows (GOSS of LightGBM, whose defaults are
        `subsample=0.3`).
    leaf_rows : {"auto", "bag", "all"}, default="auto"
        Rows whose derivatives make the values of leaves: those that the round has drawn, as Friedman has it, or all,
        which err less: the drawn ones chose the tests. "auto": all where `subsample` is "auto", but for the losses
        whose leaves are quantiles, `sampling="gradient"`, and one tree a round for all classes or outputs.
    drop_rate : float, default=0.0
        Chance of each round before to be left out while a round is grown (DART): above 0, later rounds
        weigh as much as the first. Excludes early stopping, `warm_start` and `checkpoint`.
    skip_drop : float, default=0.5
        Chance of a round to leave out none.
    max_features : int, float, {"auto", "sqrt", "log2", "third"} or None, default="auto"
        Features drawn per node, from those of the tree; None: all. "auto": the root of
        their number and one, half of them for the squared error, at least 4; all of them in large tables of less
        than three classes.
    max_features_per_tree : int, float, {"sqrt", "log2", "third"} or None, default=None
        Features drawn per tree; all by default.
    newton : bool, default=True
        Choose tests and leaf values by first and second derivatives. False is Friedman's method: tests by first
        derivatives alone, then a step of the loss in each leaf.
    init : estimator or "zero", optional
        Begin with what another model predicts, which is fitted first, or with raw scores of 0, not with the constant of
        least loss.
    max_bins : int or None, default=255
        Most bins of a numeric column, of about equal weight. None is exact greedy: every distinct value, up to 65,535.
    candidates : {"weight", "hessian"}, default="weight"
        Bins of equal weight, or of equal sums of second derivatives.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Which columns are categories: by dtype, or as mask, indices or names.
    date_features : {"auto"}, optional
        Columns of dates and times in a frame: with "auto" each is read as its year, month, weekday, days since the
        first and hour, named such as `sold.month`; None: they are refused.
    cat_smooth : float, default=10.0
        Levels are ordered by their mean derivative; this much weight at 0 is added to each, against small levels.
    max_cat_threshold : int, optional
        Most levels of a category in the branch that has fewer of them, where a node has more than 64; no limit by
        default.
    cat_penalty : float, default=1.0
        How much of the gain that the levels of a category have by chance is taken off that of a subset of them: the
        more levels, and the fewer rows each, the more. 0: subsets are judged by their gain alone.
    monotonic_cst : array-like of {-1, 0, 1} or dict, optional
        Direction in which each numeric feature may move the probability of the second class; two classes only.
    multi_strategy : {"one_tree_per_class", "one_tree"}, default="one_tree_per_class"
        Of three classes or more: a tree for each in every round; or one tree for all, whose leaves hold a raw score for
        each class, which is a fraction of the time and less sharp.
    interaction_cst : list of sets of indices or names, "pairwise" or "no_interactions", optional
        Features that may stand on one path; those that no set holds make up a set of their own.
    n_iter_no_change : int, optional
        Stop early: when so many rounds in a row have not predicted the validation rows better. These are `X_val` and
        `y_val` of `fit`, the last set of its `eval_set`, or drawn by `validation_fraction`.
    validation_fraction : float, int or None, default=0.1
        Share or number of rows that early stopping keeps from training where it is not given any, drawn by class. None:
        the training rows judge, as "scored" in curves where `scoring` is a score.
    scoring : "loss", name of a scorer, or callable, default="loss"
        What early stopping looks at: the loss, or a score(model, X, y) or metric(y_true, y_pred), of which more is
        better. Validation weights are passed on where it takes them.
    tol : float, default=0.0
        A round is better if it is by more than this.
    max_time : float, optional
        Seconds after which no round is begun. Where it decides, models depend on the speed of the machine.
    class_weight : dict or "balanced", optional
        Weight of each class, times `sample_weight`.
    warm_start : bool, default=False
        Keep the rounds of the last fit, and grow what is missing of `n_estimators`. On the same data that is the model
        grown at once. Other rows of the same columns, levels and classes are learnt from as the rounds there are leave
        them; learning curves and early stopping then measure all rounds on these rows, `oob_scores_` each on its own.
    n_jobs : int, optional
        Most threads; -1 means one per processor. By default as many as the work pays for. Results never depend on it.
    verbose : int, default=0
        Show progress, and print losses of some rounds; of all with 2.
    random_state : int, RandomState or None
        Seed of `subsample`, `max_features`, `max_features_per_tree` and `validation_fraction`; a RandomState is drawn
        from once.
    checkpoint : path, optional
        A folder that the rounds grown so far are kept in while a fit runs. A fit of the same data with the same
        parameters goes on from there and gives the same model. It is removed when the fit is done, and no model has it.

    Attributes
    ----------
    forest_ : Forest
        The trees of all rounds as arrays; `forest_[t].to_text()` draws one. Leaves hold raw scores, already times
        `learning_rate`; tree t belongs to class t % `n_trees_per_iteration_`.
    classes_ : array (n_classes,)
        The classes in y, ascending; also those whose rows all have weight 0.
    n_estimators_, n_iter_ : int
        Rounds grown.
    chosen_params_ : dict
        The parameters that can be "auto", as the numbers that were used.
    best_iteration_ : int
        Rounds that `predict` uses: those up to the best one with early stopping, else all.
    n_trees_per_iteration_ : int
    init_ : array (n_trees_per_iteration_,)
        Raw scores before the first round.
    evals_result_ : dict
        {"train": {"loss": [...]}, "valid": {"loss": [...], ...}}, a value per round, with the names of `eval_set` in
        place of "valid" where that is given. A loss of your own has none.
    train_score_, validation_score_ : array (`n_estimators_`,), where `evals_result_` has them
        Training loss; validation loss, or the score that `scoring` asks for, of the last set of `eval_set`.
    oob_improvement_, oob_scores_ : array (`n_estimators_`,), where `subsample` is given below 1, or stops the rounds
        By how much a round has lowered the mean loss of rows that it left out, at most 8,192 of them, and that loss
        after it. `oob_score_` is the last.
    estimators_ : array (`n_estimators_`, `n_trees_per_iteration_`) of CARTRegressor
        The trees, made anew at each access; `init_` and what the trees of a column predict add up to raw scores.
    init_estimator_ : estimator, with `init=estimator`
        The model to begin with; `init_` is then 0.
    is_categorical_ : array of bool (n_features,), or None where no feature is a category
    feature_importances_ : array (n_features,)
        Gain, scaled to sum 1.
    n_classes_, n_features_in_, n_outputs_, max_features_ : int
    feature_names_in_ : array of str, if X had names

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import GradientBoostingClassifier
    >>> X = np.array([0, 1, 2, np.nan]).reshape(-1, 1)
    >>> model = GradientBoostingClassifier(min_samples_leaf=1, subsample=1.0).fit(X, ["no", "no", "yes", "yes"])
    >>> model.predict(X).tolist()
    ['no', 'no', 'yes', 'yes']

    Stop early, and watch:

    >>> X = np.random.default_rng(0).normal(size=(600, 4))
    >>> y = (X[:, 0] * X[:, 1] > 0).astype(int)
    >>> def show(iteration, results):
    ...     if iteration == 1:
    ...         print(sorted(results))
    >>> model = GradientBoostingClassifier(n_iter_no_change=5, random_state=0).fit(X, y, callbacks=[show])
    ['train', 'valid']
    >>> len(model.validation_score_) == model.n_estimators_ >= model.best_iteration_
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BOOST_CONSTRAINTS,
        "loss": [StrOptions(set(CLASSES)), tuple, list],
        "class_weight": [dict, StrOptions({"balanced"}), None],
        "multi_strategy": [StrOptions({"one_tree_per_class", "one_tree"})],
    }
    _keeps: ClassVar[dict[str, Kept]] = {"_class_factors": Kept(np.ndarray | None, is_needed=False)}
    _class_factors = Part("class_factors")

    def __init__(
        self,
        *,
        loss: str | Functions = "log_loss",
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
        newton: bool = True,
        init: Any = None,
        max_bins: int | None = 255,
        candidates: str = "weight",
        categorical_features: ArrayLike | str | None = "from_dtype",
        date_features: str | None = "auto",
        cat_smooth: float = 10.0,
        max_cat_threshold: int | None = None,
        cat_penalty: float = 1.0,
        monotonic_cst: ArrayLike | dict[str, int] | None = None,
        interaction_cst: list[Any] | tuple[Any, ...] | str | None = None,
        multi_strategy: str = "one_tree_per_class",
        n_iter_no_change: int | None = None,
        validation_fraction: float | None = 0.1,
        scoring: str | Callable[..., float] = "loss",
        tol: float = 0.0,
        max_time: float | None = None,
        class_weight: dict[Any, float] | str | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        self.loss = loss
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
        self.newton = newton
        self.init = init
        self.max_bins = max_bins
        self.candidates = candidates
        self.categorical_features = categorical_features
        self.date_features = date_features
        self.cat_smooth = cat_smooth
        self.max_cat_threshold = max_cat_threshold
        self.cat_penalty = cat_penalty
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.multi_strategy = multi_strategy
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.scoring = scoring
        self.tol = tol
        self.max_time = max_time
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.checkpoint = checkpoint

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.loss != "exponential"
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
            Numbers; categories in a frame or as `categorical_features` says; missing values as NaN, None, NA or null.
        y : array-like (n_rows,)
            Classes of any type; a single one is predicted throughout. A scan brings its own and its weights.
        sample_weight : array-like (n_rows,), optional
            Rows of weight 0 are left out.
        X_val, y_val, sample_weight_val : as X, y and sample_weight, optional
            Rows to validate on: for learning curves and, with `n_iter_no_change`, for early stopping. Curves call them
            "valid".
        eval_set : list of (X, y) or (X, y, sample_weight), optional
            Several such tables, in place of `X_val` and `y_val`. Each has its curves; the last one decides about early
            stopping, as in XGBoost.
        eval_names : list of str, optional
            What curves call them; "valid_0", "valid_1" and so on by default.
        init_score : array-like (n_rows,), or (n_rows, n_classes) for three classes or more, optional
            Raw scores that the rows bring along, from another model, say. Rounds are grown on top of them. They are no
            part of the model: give them to `predict` again.
        init_score_val : the same for X_val, optional
            With `eval_set` a list of one array for each of its sets.
        callbacks : callable or list of callables, optional
            Called after each round as callback(iteration, {"train": {"loss": value}, "valid": {...}}), with the sets of
            `evals_result_`, iterations counting from 1; one that returns True stops the fit. It runs in the thread that
            called `fit`.

        Notes
        -----
        An error in a callback, in a loss or in a scorer passes through, and Ctrl-C is answered within a second; the
        estimator is then what it was before.
        """
        validation = Validation(X_val, y_val, sample_weight_val, init_score_val, eval_set, eval_names)
        with all_or_nothing(self):
            return self._fit(X, y, sample_weight, validation, init_score, callbacks)

    def _read_evaluated_target(self, y: Any, n_rows: int) -> NDArray[np.float64]:
        y = check_y(self, y, n_rows)
        check_known(y, self.classes_)
        return np.searchsorted(self.classes_, y).astype(np.float64)

    def _weigh_classes(
        self, y: NDArray[np.float64], weight: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
        codes = y.astype(np.int64)
        weighed = weigh_classes(self.class_weight, self.classes_, codes, weight, rounds=False)
        if weighed is None or self.class_weight is None:
            return weighed, None
        factors = np.zeros(self.n_classes_)
        given = weighed if weight is None else np.divide(weighed, weight, out=weighed * 0.0, where=weight > 0.0)
        np.maximum.at(factors, codes, given)
        return weighed, factors

    def _make_loss(self) -> Loss:
        if self.loss == "exponential" and self.n_classes_ > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass. loss='exponential' is "
                f"only suitable for a binary classification problem; y has {self.n_classes_} classes: loss='log_loss' "
                "takes any number."
            )
        return make_loss(self.loss, n_classes=max(self.n_classes_, 2), newton=bool(self.newton))

    def _shares_trees(self, loss: Loss) -> bool:
        return self.multi_strategy == "one_tree" and loss.n_raw > 1

    def _to_truth(self, y: NDArray[np.float64]) -> NDArray[Any]:
        return self.classes_[y.astype(np.int64)]

    def decision_function(self, X: Any, *, init_score: Any = None, n_rounds: int | None = None) -> NDArray[np.float64]:
        """Raw scores: of the second class, shape (n_rows,), or of each class, shape (n_rows, n_classes).

        init_score, n_rounds: as in `predict`.
        """
        _, raw = self._raw_scores(X, init_score, n_rounds)
        return flat(raw)

    def predict_proba(self, X: Any, *, init_score: Any = None, n_rounds: int | None = None) -> NDArray[np.float64]:
        """Predict class probabilities, shape (n_rows, n_classes); parameters as in `predict`."""
        predictor, raw = self._raw_scores(X, init_score, n_rounds)
        return predictor.respond(raw)

    def predict_log_proba(self, X: Any, *, init_score: Any = None, n_rounds: int | None = None) -> NDArray[np.float64]:
        """Logarithm of `predict_proba`; -inf for probability 0."""
        predictor, raw = self._raw_scores(X, init_score, n_rounds)
        return log(predictor.respond(raw))

    def predict(self, X: Any, *, init_score: Any = None, n_rounds: int | None = None) -> NDArray[Any]:
        """Predict the class of each row: the most probable, the first among equals.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)
        init_score : as in `fit`, optional
            Raw scores that the rows bring along.
        n_rounds : int, optional
            Use the first rounds only, 1 to `n_estimators_`: stage `n_rounds` of `staged_predict`. By default those up
            to `best_iteration_`.
        """
        predictor, raw = self._raw_scores(X, init_score, n_rounds)
        return self.classes_[predictor.decide(raw)]

    def staged_decision_function(self, X: Any, *, init_score: Any = None) -> Iterator[NDArray[np.float64]]:
        """Yield raw scores after 1, 2, ... `n_estimators_` rounds.

        All rounds that were grown have a stage. Where early stopping found the best one, they go on beyond it:
        `decision_function` is stage `best_iteration_`, not the last.
        """
        for raw in self._staged_raw(X, init_score):
            yield flat(raw.copy())

    def staged_predict_proba(self, X: Any, *, init_score: Any = None) -> Iterator[NDArray[np.float64]]:
        """Yield class probabilities after 1, 2, ... `n_estimators_` rounds.

        Where early stopping found the best round, stages go on beyond it: `predict_proba` is stage `best_iteration_`.
        """
        respond = self._make_predictor().respond
        yield from map(respond, self._staged_raw(X, init_score))

    def staged_predict(self, X: Any, *, init_score: Any = None) -> Iterator[NDArray[Any]]:
        """Yield classes after 1, 2, ... `n_estimators_` rounds.

        Where early stopping found the best round, stages go on beyond it: `predict` is stage `best_iteration_`.
        """
        decide = self._make_predictor().decide
        for raw in self._staged_raw(X, init_score):
            yield self.classes_[decide(raw)]


@stand_for("GradientBoostingRegressor")
class GradientBoostingRegressor(BoostedNumbers, BaseGradientBoosting):
    """Gradient boosting for numbers, one or several a row: trees in turn, each on the derivatives of the loss so far.

    Parameters
    ----------
    loss : str or pair of functions, default="squared_error"
        "squared_error", "absolute_error", "huber", "quantile"; for y >= 0, with exp(raw) as prediction, "poisson",
        "gamma" (y > 0) and "tweedie"; or two functions of (y, raw), arrays of shape (n_rows,), that give the first and
        second derivatives of a loss of your own.
    alpha : float or list of floats, default=0.9
        Level of "quantile"; share of the rows that "huber" does not take for outliers. A list of ascending levels of
        "quantile" grows one tree for each in every round, on bins made once: `predict` has a column for each. Before
        the columns of a row are sorted, so that they do not cross, each is that of a model of its own, to the bit;
        early stopping looks at the mean of their losses.
    power : float, default=1.5
        Of the variance by the mean in "tweedie", between 1 (Poisson) and 2 (gamma).
    monotonic_cst : array-like of {-1, 0, 1} or dict, optional
        Direction in which each numeric feature may move the prediction.
    validation_fraction : float, int or None, default=0.1
        Share or number of rows that early stopping keeps from training where it is not given any.
    learning_rate, n_estimators, effort, max_leaf_nodes, max_depth, min_samples_leaf, min_samples_split
        As in `GradientBoostingClassifier`.
    min_weight_fraction_leaf, min_child_weight, reg_lambda, reg_alpha, gamma, pruning, subsample, max_features
        As in `GradientBoostingClassifier`.
    sampling, leaf_rows, drop_rate, skip_drop, max_features_per_tree, newton, init, max_bins, candidates
        As in `GradientBoostingClassifier`.
    categorical_features, date_features, cat_smooth
        As in `GradientBoostingClassifier`.
    max_cat_threshold, cat_penalty, interaction_cst, n_iter_no_change, scoring, tol, max_time, warm_start, n_jobs
        As in `GradientBoostingClassifier`.
    verbose, random_state, checkpoint
        As in `GradientBoostingClassifier`.

    Attributes
    ----------
    forest_, n_estimators_, n_iter_, chosen_params_, best_iteration_, n_trees_per_iteration_, init_, evals_result_
        As in `GradientBoostingClassifier`.
    train_score_, validation_score_, feature_importances_, n_features_in_, n_outputs_, max_features_, feature_names_in_
        As in `GradientBoostingClassifier`.
    oob_improvement_, oob_scores_, oob_score_, estimators_, init_estimator_, is_categorical_
        As in `GradientBoostingClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import GradientBoostingRegressor
    >>> X = np.linspace(0.0, 1.0, 200)[:, None]
    >>> model = GradientBoostingRegressor(random_state=0).fit(X, X[:, 0] ** 2)
    >>> model.predict([[0.5]]).round(1).tolist()
    [0.2]

    Counts over different times: the logarithm of the time is a score that each row brings along.

    >>> rng = np.random.default_rng(0)
    >>> X, years = rng.normal(size=(500, 1)), rng.uniform(0.5, 5.0, 500)
    >>> y = rng.poisson(years * np.exp(X[:, 0]))
    >>> model = GradientBoostingRegressor(loss="poisson", random_state=0).fit(X, y, init_score=np.log(years))
    >>> in_a_year = model.predict([[0.0]])
    >>> in_two = model.predict([[0.0]], init_score=np.log([2.0]))
    >>> (in_two / in_a_year).round(6).tolist()
    [2.0]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BOOST_CONSTRAINTS,
        "loss": [StrOptions(set(NUMBERS)), tuple, list],
        "alpha": [Interval(Real, 0.0, 1.0, closed="neither"), "array-like"],
        "power": [Interval(Real, 1.0, 2.0, closed="neither")],
    }

    def __init__(
        self,
        *,
        loss: str | Functions = "squared_error",
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
        newton: bool = True,
        alpha: float | ArrayLike = 0.9,
        power: float = 1.5,
        init: Any = None,
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
        scoring: str | Callable[..., float] = "loss",
        tol: float = 0.0,
        max_time: float | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        random_state: int | np.random.RandomState | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        self.loss = loss
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
        self.newton = newton
        self.alpha = alpha
        self.power = power
        self.init = init
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
        self.scoring = scoring
        self.tol = tol
        self.max_time = max_time
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state
        self.checkpoint = checkpoint

    _takes_outputs: ClassVar[bool] = True

    def _asks_one_output(self) -> dict[str, bool]:
        return {
            f"loss={self.loss!r}": not isinstance(self.loss, str) or self.loss != "squared_error",
            "init=estimator": self.init is not None and not isinstance(self.init, str),
            NO_MONOTONE: self.monotonic_cst is not None,
            "drop_rate": bool(self.drop_rate),
            "candidates='hessian'": self.candidates == "hessian",
        }

    def _read_evaluated_target(self, y: Any, n_rows: int) -> NDArray[np.float64]:
        return self._read_target(y, n_rows)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = any(kind.is_positive for kind in STORED if kind.name == self.loss)
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
        """Grow the rounds; y holds numbers, (n_rows,) or (n_rows, n_outputs); the rest is as in the classifier.

        Several outputs, by `loss="squared_error"`, have one tree a round for all of them, whose leaves hold a number
        for each: tests are chosen by the sum of their gains, so that outputs of one scale count alike.
        For rates, with `loss="poisson"`, give the logarithm of the exposure as `init_score`, to `predict` as well.
        """
        validation = Validation(X_val, y_val, sample_weight_val, init_score_val, eval_set, eval_names)
        with all_or_nothing(self):
            return self._fit(X, y, sample_weight, validation, init_score, callbacks)

    def _make_loss(self) -> Loss:
        return make_loss(self.loss, alpha=self.alpha, power=float(self.power), newton=bool(self.newton))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² of the predictions, of several outputs their mean; refused of several quantiles, which have none."""
        n_raw = self._find_fitted().n_raw
        if n_raw > 1 and self._find_fitted().loss.link == "quantiles":
            raise ValueError(
                f"score is the R² of one number for each row, and this model predicts {n_raw} quantiles: "
                "use sklearn.metrics.mean_pinball_loss on the columns of predict"
            )
        return float(super().score(X, y, sample_weight))


def flat(raw: NDArray[np.float64]) -> NDArray[np.float64]:
    """Raw scores (n_raw, n_rows) as users take them: (n_rows,), or (n_rows, n_classes)."""
    return raw[0] if len(raw) == 1 else np.ascontiguousarray(raw.T)
