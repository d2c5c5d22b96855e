"""AdaBoost for classes (Freund and Schapire 1997; Zhu, Zou, Rosset and Hastie 2009) and numbers (Drucker 1997)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils._param_validation import StrOptions

from spinney._elementary import log
from spinney._warnings import warn
from spinney.ensemble.adaboost import EarlyStopping, distances, mistakes
from spinney.ensemble.held_out import measure_accuracy, measure_distance
from spinney.estimators.base import Classifier, Regressor
from spinney.estimators.base_adaboost import ADABOOST_CONSTRAINTS, BaseAdaBoost
from spinney.estimators.cart import CARTClassifier, CARTRegressor
from spinney.estimators.checks import all_or_nothing, check_classes, check_known, check_numbers
from spinney.estimators.evaluation_sets import Validation
from spinney.model.adaboost_bounds import vote_margins
from spinney.model.fitted_adaboost import bound_error, normalisers
from spinney.model.weighted_votes import (
    ClassVotes,
    MedianVotes,
    choose_by_votes,
    decide,
    find_medians,
    spread,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from spinney.model.fitted_adaboost import FittedAdaBoost


class AdaBoostClassifier(Classifier, BaseAdaBoost):
    """AdaBoost for classes: each member learns from rows whose weight grows where those before it were wrong.

    Two classes are boosted as in Freund and Schapire (1997), three or more as in SAMME (Zhu, Zou, Rosset and Hastie
    2009). A member of weighted error e votes with weight alpha = log((1 - e) / e), plus log(n_classes - 1) for three
    classes or more; rows it gets wrong are then multiplied by exp(alpha), and all weights scaled to their first sum.

    - e = 0: alpha has no end. The member outvotes all before it (its weight is 1 plus theirs) and is the last.
    - e = 1/2 (three classes or more: 1 - 1 / n_classes): alpha = 0. The member says nothing and is the last.
    - e above: with two classes alpha is negative, the member is used inverted, and boosting goes on; with more the
      member gets weight 0 and is the last.

    CART trees are grown on codes that are made once; for stumps the rows are sorted once as well, so that 400 of them
    on 20,000 rows of 28 columns take about a second. The same model comes out for any order of the rows, and a row of
    weight 2 counts as two rows, exactly.

    Parameters
    ----------
    estimator : classifier, optional
        What the members are; by default stumps, `CARTClassifier(max_depth=1)`. Weights have a mean of 1 (with
        `sample_weight`, that of theirs), so that the first member is what the estimator itself makes of the data. One
        whose fit takes no `sample_weight` learns from a bootstrap drawn by the weights instead. Class weights of a CART
        tree are weights to begin with.
    n_estimators : int, default=50
        Most members.
    learning_rate : float, default=1.0
        Factor of every alpha; below 1 more members are needed.
    convention : {"full", "half"}, default="full"
        What `estimator_weights_` are: alpha as above, or half of it, as in many texts. Votes are the same.
    n_iter_no_change : int, optional
        Stop when the validation score has not risen for this many rounds; the members up to the best round are kept.
    validation_fraction : float or int, default=0.1
        Share, or number, of the rows that are held out for that, from every class; not used if fit is given `X_val`.
    tol : float, default=0.0
        What counts as a rise of the score must be larger than this.
    random_state : int, RandomState or None
        Seed for members that draw and for the rows held out; a RandomState is drawn from once.
    verbose : int, default=0
        Show progress.
    checkpoint : path, optional
        A folder that the trees grown so far are kept in while a fit runs. A fit of the same data with the same
        parameters goes on from there and gives the same model. It is removed when the fit is done, and no model has it.
        For members that are CART trees.

    Attributes
    ----------
    estimators_ : list of classifiers
        The members, made anew at each access if they are CART trees.
    estimator_ : classifier
        What they are copies of.
    estimator_weights_ : array (n_members,)
        Weights of their votes, see `convention`.
    estimator_errors_ : array (n_members,)
        Weighted error of each on the rows as it met them.
    normalisers_ : array (n_members,)
        Z of each round; their product bounds the training error, see `training_bound`.
    forest_ : Forest, if the members are CART trees
        The trees as arrays; `forest_[t].to_text()` draws one.
    feature_importances_ : array (n_features,)
        Importances of the members, weighted as their votes.
    classes_ : array (n_classes,)
        The classes in y, ascending.
    n_classes_, n_features_in_ : int
    feature_names_in_ : array of str, if X had names
    n_iter_, best_iteration_ : int
        Rounds there were, and members there are.
    validation_scores_ : array (n_iter_,), if there were validation rows
        Share of them that is right after each round.

    Examples
    --------
    The ten rows of Li Hang's example:

    >>> import numpy as np
    >>> from spinney import AdaBoostClassifier
    >>> X, y = np.arange(10.0)[:, None], [1, 1, 1, -1, -1, -1, 1, 1, 1, -1]
    >>> boost = AdaBoostClassifier(n_estimators=3, convention="half").fit(X, y)
    >>> boost.estimator_errors_.round(4).tolist()
    [0.3, 0.2143, 0.1818]
    >>> boost.estimator_weights_.round(4).tolist()
    [0.4236, 0.6496, 0.752]
    >>> boost.score(X, y), boost.training_bound().round(4).tolist()
    (1.0, [0.9165, 0.7521, 0.5802])
    """

    _default: ClassVar[Any] = CARTClassifier(max_depth=1)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ADABOOST_CONSTRAINTS,
        "convention": [StrOptions({"full", "half"})],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 50,
        learning_rate: float = 1.0,
        convention: str = "full",
        n_iter_no_change: int | None = None,
        validation_fraction: float | None = 0.1,
        tol: float = 0.0,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.convention = convention
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Self:
        """Boost.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features), or scan, as the members take it
        y : array-like (n_rows,)
            Classes of any type. A scan brings its own and its weights.
        sample_weight : array-like (n_rows,), optional
            Weights to begin with; rows of weight 0 are left out.
        X_val, y_val, sample_weight_val : optional
            Rows that no member learns from: each round is scored on them, and `n_iter_no_change` stops by them.
        """
        with all_or_nothing(self):
            self._fit(X, y, sample_weight, Validation(X_val, y_val, sample_weight_val))
            if self.n_classes_ > 1 and not self.estimator_weights_.any():
                warn(
                    f"The first member is no better than chance (error {self.estimator_errors_[0]:.4g}), so it says "
                    "nothing, and there are no others: give an estimator that learns more, such as a deeper tree."
                )
            return self

    def _count_classes(self, y: NDArray[Any]) -> int:
        return max(len(np.unique(y)), 2)

    def _find_losses(self, predicted: Any, y: NDArray[Any]) -> NDArray[np.float64]:
        return mistakes(predicted, y)

    def _to_truth(self, y: NDArray[Any]) -> NDArray[Any]:
        return self.classes_[y]

    def _read_evaluated_target(self, y: Any, n_rows: int) -> NDArray[np.int64]:
        classes, codes = check_classes(self, y, n_rows)
        check_known(classes, self.classes_)
        return np.searchsorted(self.classes_, classes)[codes]

    def _read_predictions(self, predicted: Any) -> NDArray[np.int64]:
        column = np.asarray(predicted).ravel()
        codes = np.minimum(np.searchsorted(self.classes_, column), self.n_classes_ - 1)
        is_known = self.classes_[codes] == column
        if not np.all(is_known):
            unknown = column[[np.argmin(is_known)]].tolist()[0]
            raise ValueError(
                f"a member predicts the class {unknown!r}, which is not among {self.classes_.tolist()[:10]}"
            )
        return codes

    def _make_early_stopping(
        self, predict: Any, y: NDArray[Any], weight: NDArray[np.float64] | None, patience: float
    ) -> EarlyStopping:
        votes = ClassVotes(len(y), self.n_classes_)
        measure = measure_accuracy(y, weight)
        return EarlyStopping(predict, votes.add, lambda: measure(choose_by_votes(votes)), patience, float(self.tol))

    # --- predictions ---

    def _sum_votes(self, X: Any, n_rounds: Any = None) -> ClassVotes:
        """Votes of the first members; None: of all."""
        fitted = self._find_head(n_rounds)
        if fitted.trees is not None:
            return fitted.predictor().sum_votes(self._values(X, fitted))
        *_, votes = self._add_votes(X, fitted)
        return votes

    def _add_votes(self, X: Any, fitted: FittedAdaBoost) -> Iterator[ClassVotes]:
        """Votes after each member; one object, which goes on."""
        n_rows, predictions = self._predict_members(X, fitted)
        votes = ClassVotes(n_rows, self.n_classes_)
        for predicted, weight in zip(predictions, fitted.weights.tolist(), strict=True):
            votes.add(predicted, weight)
            yield votes

    def _staged_votes(self, X: Any) -> Iterator[ClassVotes]:
        """Votes after each member; one object, which goes on."""
        return self._add_votes(X, self._find_fitted())

    def predict(self, X: Any, *, n_rounds: int | None = None) -> NDArray[Any]:
        """Predict the class of each row: that with most votes, the first among equals.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)
        n_rounds : int, optional
            Ask the first members only: stage `n_rounds` of `staged_predict`. By default all.
        """
        votes = self._sum_votes(X, n_rounds)
        return self.classes_[choose_by_votes(votes)]

    def decision_function(self, X: Any, *, n_rounds: int | None = None) -> NDArray[np.float64]:
        """Votes as scikit-learn counts them; `n_rounds` as in `predict`.

        Returns
        -------
        score : float64 array (n_rows,) for two classes, (n_rows, n_classes) otherwise
            Two classes: twice the mean vote, within [-2, 2]; positive for the second class. More: the mean over the
            members of 1 for the class voted for and -1 / (n_classes - 1) for the others, by weight.
        """
        votes = self._sum_votes(X, n_rounds)
        return decide(votes, self.n_classes_)

    def predict_proba(self, X: Any, *, n_rounds: int | None = None) -> NDArray[np.float64]:
        """Predict class probabilities from the decision function by SAMME's softmax, shape (n_rows, n_classes).

        They rise with the votes but are no frequencies: `sklearn.calibration.CalibratedClassifierCV` makes them so.
        `n_rounds` is as in `predict`.
        """
        votes = self._sum_votes(X, n_rounds)
        return spread(decide(votes, self.n_classes_), self.n_classes_)

    def predict_log_proba(self, X: Any, *, n_rounds: int | None = None) -> NDArray[np.float64]:
        """Logarithm of `predict_proba`."""
        return log(self.predict_proba(X, n_rounds=n_rounds))

    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Yield predictions of `predict` after 1, 2, ... members."""
        for votes in self._staged_votes(X):
            yield self.classes_[choose_by_votes(votes)]

    def staged_decision_function(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Yield the `decision_function` after 1, 2, ... members."""
        for votes in self._staged_votes(X):
            yield decide(votes, self.n_classes_)

    def staged_predict_proba(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Yield class probabilities of `predict_proba` after 1, 2, ... members."""
        for votes in self._staged_votes(X):
            yield spread(decide(votes, self.n_classes_), self.n_classes_)

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """Yield the `score` after 1, 2, ... members."""
        for predicted in self.staged_predict(X):
            yield float(accuracy_score(y, predicted, sample_weight=sample_weight))

    # --- why it works ---

    @property
    def normalisers_(self) -> NDArray[np.float64]:
        """Z of each round, shape (n_members,); 2 sqrt(e (1 - e)) for two classes and a learning rate of 1."""
        return normalisers(self._find_fitted())

    def training_bound(self, margin: float = 0.0) -> NDArray[np.float64]:
        """Bound on the weighted share of training rows that are wrong after 1, 2, ... members: the product of Z.

        Parameters
        ----------
        margin : float, default=0.0
            Bound the share of the rows whose margin is at most this instead.

        Returns
        -------
        bound : float64 array (n_members,)
            For margin 0 and two classes it is the mean of exp(-y F(x)) over the rows, F being the sum of votes in the
            convention "half". A value above 1 says nothing.
        """
        return bound_error(self._find_fitted(), margin)

    def margins(self, X: Any, y: Any) -> NDArray[np.float64]:
        """Margin of each row: share of the votes for its class, minus the largest share of another class.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)
        y : array-like (n_rows,)
            The classes of these rows.

        Returns
        -------
        margin : float64 array (n_rows,)
            Within [-1, 1]; negative where the row is predicted wrong. On the training rows it keeps growing after
            none is wrong any more (Schapire, Freund, Bartlett and Lee 1998).
        """
        votes = self._sum_votes(X)
        return vote_margins(votes.votes, votes.total, self._read_evaluated_target(y, len(votes.votes)))


class AdaBoostRegressor(Regressor, BaseAdaBoost):
    """AdaBoost for numbers: R2 of Drucker (1997).

    Each member learns from rows whose weight grows with the error of those before it. The loss L of a row is its error
    as a share of the largest one; a member of mean loss e has weight log((1 - e) / e), and row weights are multiplied
    by (e / (1 - e)) ** (1 - L), but for a constant. The prediction is the weighted median of the members. A member
    without any error outvotes all before it and is the last; one whose mean loss is 1/2 or more gets weight 0 and is
    the last.

    Drucker, and scikit-learn, draw a bootstrap by the weights for each member; here members weigh the rows, so that
    nothing is random: the same model comes out for any order of the rows. One whose fit takes no `sample_weight` learns
    from such a bootstrap.

    Parameters
    ----------
    estimator : regressor, optional
        What the members are; by default `CARTRegressor(max_depth=3)`, as in scikit-learn: stumps are too weak for R2.
    loss : {"linear", "square", "exponential"}, default="linear"
        What becomes of the share s of the largest error: s, s squared, or 1 - exp(-s).
    n_estimators, learning_rate, n_iter_no_change, validation_fraction, tol, random_state, verbose, checkpoint
        As in `AdaBoostClassifier`.

    Attributes
    ----------
    estimator_errors_ : array (n_members,)
        Mean loss of each member on the rows as it met them.
    estimators_, estimator_, estimator_weights_, forest_, feature_importances_
        As in `AdaBoostClassifier`.
    n_features_in_, feature_names_in_, n_iter_, best_iteration_
        As in `AdaBoostClassifier`.
    validation_scores_ : array (n_iter_,), if there were validation rows
        Minus their root mean squared error after each round.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import AdaBoostRegressor
    >>> X = np.linspace(0.0, 1.0, 200)[:, None]
    >>> boost = AdaBoostRegressor(n_estimators=20).fit(X, X[:, 0] ** 2)
    >>> boost.predict([[0.1], [0.9]]).round(2).tolist()
    [0.03, 0.8]
    """

    _default: ClassVar[Any] = CARTRegressor(max_depth=3)
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ADABOOST_CONSTRAINTS,
        "loss": [StrOptions({"linear", "square", "exponential"})],
    }

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_estimators: int = 50,
        learning_rate: float = 1.0,
        loss: str = "linear",
        n_iter_no_change: int | None = None,
        validation_fraction: float | None = 0.1,
        tol: float = 0.0,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.loss = loss
        self.n_iter_no_change = n_iter_no_change
        self.validation_fraction = validation_fraction
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Self:
        """Boost; y holds numbers, the rest is as in the classifier."""
        with all_or_nothing(self):
            return self._fit(X, y, sample_weight, Validation(X_val, y_val, sample_weight_val))

    def _count_classes(self, y: NDArray[Any]) -> int:  # noqa: ARG002
        return 2

    def _find_losses(self, predicted: Any, y: NDArray[Any]) -> NDArray[np.float64]:
        return distances(predicted, y, self.loss)

    def _to_truth(self, y: NDArray[Any]) -> NDArray[Any]:
        return y

    def _read_evaluated_target(self, y: Any, n_rows: int) -> NDArray[np.float64]:
        return check_numbers(self, y, n_rows)

    def _read_predictions(self, predicted: Any) -> NDArray[np.float64]:
        column = np.asarray(predicted, np.float64).ravel()
        is_number = np.isfinite(column)
        if not is_number.all():
            row = int(np.argmin(is_number))
            raise ValueError(f"a member predicts {column[row]} for row {row}: give an estimator that predicts numbers")
        return column

    def _make_early_stopping(
        self, predict: Any, y: NDArray[Any], weight: NDArray[np.float64] | None, patience: float
    ) -> EarlyStopping:
        votes = MedianVotes(len(y))
        measure = measure_distance(y, weight)
        return EarlyStopping(predict, votes.add, lambda: measure(votes.medians()), patience, float(self.tol))

    # --- predictions ---

    def predict(self, X: Any, *, n_rounds: int | None = None) -> NDArray[np.float64]:
        """Predict the target of each row: the weighted median of what the members predict.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features), or scan
        n_rounds : int, optional
            Ask the first members only: stage `n_rounds` of `staged_predict`. By default all.
        """
        fitted = self._find_head(n_rounds)
        if fitted.trees is not None:
            return fitted.predictor().answer(self._values(X, fitted))
        _, predictions = self._predict_members(X, fitted)
        return find_medians(np.stack(list(predictions), axis=1), fitted.weights)

    def staged_predict(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """Yield predictions of `predict` after 1, 2, ... members."""
        fitted = self._find_fitted()
        n_rows, predictions = self._predict_members(X, fitted)
        votes = MedianVotes(n_rows)
        for predicted, weight in zip(predictions, fitted.weights.tolist(), strict=True):
            votes.add(predicted, weight)
            yield votes.medians()

    def staged_score(self, X: Any, y: Any, sample_weight: Any = None) -> Iterator[float]:
        """Yield the `score` after 1, 2, ... members."""
        for predicted in self.staged_predict(X):
            yield float(r2_score(y, predicted, sample_weight=sample_weight))
