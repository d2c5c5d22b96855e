"""Bagging (Breiman 1996), pasting (Breiman 1999) and random subspaces (Ho 1998) of trees or any other estimators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if

from spinney._elementary import log
from spinney.estimators.base import Classifier, Regressor
from spinney.estimators.base_bagging import BAGGING_CONSTRAINTS, Bagging, members_have
from spinney.estimators.cart import CARTClassifier, CARTRegressor
from spinney.estimators.class_outputs import choose_classes, has_class_outputs, part_answers
from spinney.estimators.kept import Kept, Part

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray


class BaggingClassifier(Classifier, Bagging):
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
        Rows (groups, with `groups`) drawn for a bag: a number, or a fraction; as many as there are by default.
        More than there are can be drawn with replacement. With sample weights a fraction is one of their sum, as in
        scikit-learn.
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
        Keep what members predict for rows outside their bag and score it: by accuracy (True), a scorer of scikit-learn
        by name, or metric(y_true, y_pred).
    warm_start : bool, default=False
        Keep the members of the last fit, and fit what is missing of `n_estimators`: on the same data the same ensemble
        as one fitted at once. Other rows of the same columns, levels and classes may be given, then without
        `oob_score`, which needs the bags of all members.
    n_jobs : int, optional
        Most threads; -1 means one per processor. By default trees use as many as the work pays for, other members one;
        those that hold the interpreter's lock gain nothing by more. Results never depend on it.
    random_state : int, RandomState or None
        Seed; a RandomState is drawn from once.
    verbose : int, default=0
        Show progress.
    checkpoint : path, optional
        A folder that the trees grown so far are kept in while a fit runs. A fit of the same data with the same
        parameters goes on from there and gives the same model. It is removed when the fit is done, and no model has it.
        For members that are CART trees.

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
    n_classes_, n_features_in_, n_outputs_ : int
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

    _keeps: ClassVar[dict[str, Kept]] = {"oob_decision_function_": Kept(np.ndarray, is_needed=False)}
    oob_decision_function_ = Part("out_of_bag.predictions")
    _oob_predictions: ClassVar[str] = "oob_decision_function_"
    _default: ClassVar[Any] = CARTClassifier
    _takes_outputs: ClassVar[bool] = True
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
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.bootstrap_features = bootstrap_features
        self.stratify = stratify
        self.block_size = block_size
        self.voting = voting
        self.oob_score = oob_score
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    def _asks_one_output(self) -> dict[str, bool]:
        return self._find_one_output()

    def predict_proba(self, X: Any, **params: Any) -> Any:
        """Predict class probabilities, shape (n_rows, n_classes): the mean of those of the members, or of their votes.

        A class that a member's bag did not hold has probability 0 for that member. Of several outputs a list with such
        an array for each. params: arguments that members have asked for, where scikit-learn's metadata routing is on;
        the same of the other methods.
        """
        shares = self._mean_votes(X, "predict_proba", params)
        return part_answers(shares, self.classes_) if has_class_outputs(self) else shares

    def predict(self, X: Any, **params: Any) -> NDArray[Any]:
        """Predict the class of each row: the most probable, the first among equals.

        Of several outputs the shape is (n_rows, n_outputs).
        """
        shares = self._mean_votes(X, "predict", params)
        if has_class_outputs(self):
            return choose_classes(shares, self.classes_)
        return self.classes_[shares.argmax(axis=1)]

    def predict_log_proba(self, X: Any, **params: Any) -> Any:
        """Logarithm of `predict_proba`; -inf for probability 0."""
        shares = self._mean_votes(X, "predict_log_proba", params)
        return [log(each) for each in part_answers(shares, self.classes_)] if has_class_outputs(self) else log(shares)

    @available_if(members_have("decision_function"))
    def decision_function(self, X: Any, **params: Any) -> NDArray[np.float64]:
        """The mean of the members' decision functions, where they have one: trees have none.

        Returns
        -------
        score : float64 array (n_rows,) of two classes, (n_rows, n_classes) of more
        """
        return self._mean_decisions(X, params)


class BaggingRegressor(Regressor, Bagging):
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
    warm_start, n_jobs, random_state, verbose, checkpoint
        As in `BaggingClassifier`.

    Attributes
    ----------
    estimators_, estimators_samples_, estimators_features_, estimator_, forest_, feature_importances_
        As in `BaggingClassifier`.
    n_features_in_, n_outputs_, feature_names_in_, oob_score_
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

    _keeps: ClassVar[dict[str, Kept]] = {
        "_shift": Kept(int, is_needed=False),
        "oob_prediction_": Kept(np.ndarray, is_needed=False),
    }
    oob_prediction_ = Part("out_of_bag.predictions")
    _shift = Part("shift")
    _oob_predictions: ClassVar[str] = "oob_prediction_"
    _default: ClassVar[Any] = CARTRegressor
    _takes_outputs: ClassVar[bool] = True
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
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_estimators = n_estimators
        self.max_samples = max_samples
        self.max_features = max_features
        self.bootstrap = bootstrap
        self.bootstrap_features = bootstrap_features
        self.block_size = block_size
        self.oob_score = oob_score
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    def _asks_one_output(self) -> dict[str, bool]:
        return self._find_one_output()

    def predict(self, X: Any, **params: Any) -> NDArray[np.float64]:
        """Predict the target of each row: the mean of what the members predict; params: as in `BaggingClassifier`.

        Of several outputs the shape is (n_rows, n_outputs).
        """
        means = self._mean_votes(X, "predict", params)
        return means[:, 0] if means.shape[1] == 1 else means
