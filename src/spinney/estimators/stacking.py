"""Stacking (Wolpert 1992, Breiman 1996): a second stage that learns from what members predict for unseen rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.metaestimators import available_if

from spinney.estimators.base import Classifier, Regressor
from spinney.estimators.base_stacking import STACKING_CONSTRAINTS, Stacking, has_stage
from spinney.estimators.cross_fitting import as_columns
from spinney.model.fitted_stacking import METHODS

if TYPE_CHECKING:
    from numpy.typing import NDArray


class StackingClassifier(Classifier, Stacking):
    """Stacking for classes: a second stage weighs what members of any kind predict (Wolpert 1992).

    The second stage is fitted to predictions for rows that the members have not seen, else it would trust the one that
    learns rows by heart: members are fitted to the folds of a cross-validation, or, where they are ensembles on bags,
    say themselves what they predict out of bag. The members that predict are fitted to all rows.

    Members and second stage see the classes as numbers, 0 and up, in their order, as in scikit-learn: what names
    classes in their parameters must do so by number.

    Parameters
    ----------
    estimators : list of (str, estimator)
        The members, by name, of any library; "drop" in place of an estimator leaves one out. A regressor may be among
        them: it learns the numbers of the classes.
    final_estimator : estimator, optional
        The second stage, a classifier; scikit-learn's `LogisticRegression()` by default.
    cv : int, splitter, iterable, "prefit", "oob" or None, default=None
        How members are kept from seeing the rows that they predict for the second stage:

        - a number of folds, each of all classes; None means 5, or as many as there are groups if these are fewer;
        - a splitter of scikit-learn, or pairs (rows to fit on, rows to predict), that hold out every row once;
        - "oob": by the out-of-bag predictions of the members, each fitted once: forests and bagging, here and in
          scikit-learn. Their `oob_score` is switched on. Rows that no member could leave out are not used;
        - "prefit": not at all. Members are taken as they are, fitted before, to other rows than these.
    stack_method : {"auto", "predict_proba", "decision_function", "predict"}, default="auto"
        What members are asked by; "auto": the first of these that a member has.
    n_jobs : int, optional
        Most threads over members and folds; -1 means one per processor. By default one, and members may use several.
        Results never depend on it.
    passthrough : bool, default=False
        Give the second stage the columns of X too, after those of the members.
    random_state : int, RandomState or None
        Shuffles the rows of a number of folds; without it they stay in order, as in scikit-learn. Members that have a
        `random_state` of None, and a second stage that has, get seeds from it. A RandomState is drawn from once.
    verbose : int, default=0
        Show progress.

    Attributes
    ----------
    estimators_ : list of estimators
        The members, fitted to all rows.
    named_estimators_ : Bunch
        The same by name.
    final_estimator_ : estimator
        The second stage.
    stack_method_ : list of str
        What each member is asked by.
    classes_ : array (n_classes,)
        The classes in y, ascending.
    n_classes_, n_features_in_ : int
    feature_names_in_ : array of str, if X had names

    Examples
    --------
    >>> from spinney import ExtraTreesClassifier, RandomForestClassifier, StackingClassifier, datasets
    >>> table = datasets.load("glass")
    >>> X, y = table.drop_columns(["Type"]), table["Type"].to_pylist()
    >>> members = [
    ...     ("forest", RandomForestClassifier(n_estimators=50)),
    ...     ("extra", ExtraTreesClassifier(n_estimators=50, bootstrap=True)),
    ... ]
    >>> stack = StackingClassifier(members, cv="oob", random_state=0).fit(X, y)
    >>> stack.stack_method_
    ['predict_proba', 'predict_proba']
    >>> stack.predict_proba(X).shape
    (214, 6)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **STACKING_CONSTRAINTS,
        "stack_method": [StrOptions({"auto", *METHODS})],
    }

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        final_estimator: Any = None,
        *,
        cv: Any = None,
        stack_method: str = "auto",
        n_jobs: int | None = None,
        passthrough: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimators = estimators
        self.final_estimator = final_estimator
        self.cv = cv
        self.stack_method = stack_method
        self.n_jobs = n_jobs
        self.passthrough = passthrough
        self.random_state = random_state
        self.verbose = verbose

    def _make_default(self) -> Any:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression()

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each row: what the second stage says."""
        codes = self._ask_stage("predict", X).ravel()
        return self.classes_[codes.astype(np.int64)]

    @available_if(has_stage("predict_proba"))
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predict class probabilities by the second stage, shape (n_rows, n_classes)."""
        given = as_columns(self._ask_stage("predict_proba", X))
        if given.shape[1] == self.n_classes_:
            return given
        shares = np.zeros((len(given), self.n_classes_))  # a class whose rows all had weight 0
        shares[:, np.asarray(self._find_fitted().final.classes_, np.int64)] = given
        return shares

    @available_if(has_stage("decision_function"))
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores of the classes by the second stage, as its `decision_function` gives them."""
        return self._ask_stage("decision_function", X)


class StackingRegressor(Regressor, Stacking):
    """Stacking for numbers: a second stage weighs what members of any kind predict (Breiman 1996).

    As `StackingClassifier`; members are asked by `predict`.

    Parameters
    ----------
    estimators : list of (str, estimator)
        The members, by name, of any library; "drop" in place of an estimator leaves one out.
    final_estimator : estimator, optional
        The second stage, a regressor; scikit-learn's `RidgeCV()` by default.
    cv, n_jobs, passthrough, random_state, verbose
        As in `StackingClassifier`; a number of folds is of rows in order, or shuffled.

    Attributes
    ----------
    estimators_, named_estimators_, final_estimator_, stack_method_
        As in `StackingClassifier`.
    n_features_in_, feature_names_in_
        As in `StackingClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from spinney import CARTRegressor, GradientBoostingRegressor, StackingRegressor
    >>> X = np.linspace(0.0, 1.0, 200)[:, None]
    >>> members = [("tree", CARTRegressor(min_samples_leaf=5)), ("boosting", GradientBoostingRegressor())]
    >>> stack = StackingRegressor(members, random_state=0).fit(X, X[:, 0] ** 2)
    >>> stack.predict([[0.5]]).round(1).tolist()
    [0.2]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = STACKING_CONSTRAINTS

    def __init__(
        self,
        estimators: list[tuple[str, Any]],
        final_estimator: Any = None,
        *,
        cv: Any = None,
        n_jobs: int | None = None,
        passthrough: bool = False,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimators = estimators
        self.final_estimator = final_estimator
        self.cv = cv
        self.n_jobs = n_jobs
        self.passthrough = passthrough
        self.random_state = random_state
        self.verbose = verbose

    def _make_default(self) -> Any:
        from sklearn.linear_model import RidgeCV

        return RidgeCV()

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict the target of each row: what the second stage says."""
        return self._ask_stage("predict", X).astype(np.float64)
