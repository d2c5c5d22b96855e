"""What forests have that predict classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from spinney._criteria import CLASS_CRITERIA, own_name, with_aliases
from spinney._elementary import log
from spinney.estimators.base import Classifier
from spinney.estimators.base_forest import FOREST_CONSTRAINTS
from spinney.estimators.cart import OUTPUT_CRITERIA, CARTClassifier
from spinney.estimators.checks import NO_MONOTONE, check_classes
from spinney.estimators.class_outputs import choose_classes, has_class_outputs, part_answers
from spinney.estimators.kept import Kept, Part
from spinney.model import forest_uncertainty, tree_votes
from spinney.model.forest_uncertainty import CoverageParams
from spinney.reading.several_outputs import refuse_outputs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.model.ensemble_theory import Strength

CLASSIFIER_CONSTRAINTS: dict[str, list[Any]] = {
    **FOREST_CONSTRAINTS,
    "criterion": [StrOptions(with_aliases(CLASS_CRITERIA))],
    "class_weight": [dict, list, StrOptions({"balanced", "balanced_subsample"}), None],
    "voting": [StrOptions({"soft", "hard"})],
    "stratify": [StrOptions({"class", "balanced"}), None],
}


class ForestClassifier(Classifier):
    """Beside `BaseForest`: forests that vote."""

    _keeps: ClassVar[dict[str, Kept]] = {"oob_decision_function_": Kept(np.ndarray, is_needed=False)}
    oob_decision_function_ = Part("out_of_bag.predictions")
    _oob_predictions: ClassVar[str] = "oob_decision_function_"
    _tree_class: ClassVar[Any] = CARTClassifier
    _takes_outputs: ClassVar[bool] = True

    def _asks_one_output(self: Any) -> dict[str, bool]:
        return {
            f"criterion={self.criterion!r}": own_name(self.criterion) not in OUTPUT_CRITERIA,
            "honest=True": bool(self.honest),
            "pruning='oob'": self.pruning == "oob",
            NO_MONOTONE: self.monotonic_cst is not None,
            "voting='hard'": self.voting == "hard",
            f"stratify={self.stratify!r}": self.stratify is not None,
        }

    def _check_target(self, y: Any, n_rows: int) -> NDArray[np.int64]:
        """Classes given after the fit, as codes; they must be those of the fit."""
        classes, codes = check_classes(self, y, n_rows)
        if not np.array_equal(classes, self.classes_):
            raise ValueError(f"y has the classes {classes.tolist()[:10]}, fit had {self.classes_.tolist()[:10]}")
        return codes

    def predict_proba(self, X: Any) -> Any:
        """Predict class probabilities, shape (n_rows, n_classes).

        The mean over the trees of the class shares of the row's leaf (soft voting), or the share of the trees that vote
        for the class (hard voting). Of several outputs a list with such an array for each.
        """
        shares = self._answer(X)
        return part_answers(shares, self.classes_) if has_class_outputs(self) else shares

    def _answer(self: Any, X: Any) -> NDArray[np.float64]:
        """Mean shares of the classes, (n_rows, n_classes); of several outputs side by side."""
        values = self._values(X)
        return self._make_predictor().answer(values, self.n_jobs)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each row: the most probable, the first among equals.

        Of several outputs the shape is (n_rows, n_outputs).
        """
        shares = self._answer(X)
        if has_class_outputs(self):
            return choose_classes(shares, self.classes_)
        return self.classes_[shares.argmax(axis=1)]

    def predict_log_proba(self, X: Any) -> Any:
        """Logarithm of `predict_proba`; -inf for probability 0."""
        shares = ForestClassifier.predict_proba(self, X)
        return [log(each) for each in shares] if isinstance(shares, list) else log(shares)

    def strength(self, X: Any, y: Any) -> Strength:
        """Strength of the trees and correlation between them (Breiman 2001), by their out-of-bag votes.

        Parameters
        ----------
        X, y
            The training data again: no model keeps it.

        Returns
        -------
        Strength
            See `spinney.strength_and_correlation`.
        """
        refuse_outputs(self._find_fitted().forest, "strength")
        return tree_votes.measure_strength(self._find_fitted(), *self._training_values(X, y))

    def predict_set(
        self, X: Any, coverage: float = 0.9, *, method: str = "auto", train: Any = None
    ) -> NDArray[np.bool_]:
        """Predict a set of classes for each row that holds the true one with a probability of `coverage`.

        By the out-of-bag class shares of the training rows, which new rows must be like (exchangeable): a class is in
        the set unless its share is lower than nearly all training rows have for their own class. A sure row has one
        class, a doubtful one several; none at all means that the row is unlike those seen. With fewer than about
        1 / (1 - coverage) training rows all classes are in.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)
        coverage : float
            Wanted share of rows whose class is in their set, between 0 and 1.
        method : {"auto", "jackknife+", "oob"}
            - "jackknife+": the new row is compared with each training row by the trees that have not seen the latter
              (Romano, Sesia and Candes 2020; Kim, Xu and Barber 2020). Time grows with trees * training
              rows * new rows.
            - "oob": one threshold for all new rows. Fast; with few trees it covers more than it is asked for.
            - "auto": the first up to 20,000 training rows, the second beyond.
        train : (X, y), optional
            The training data again; not needed after a fit with `oob_score`.

        Returns
        -------
        bool array (n_rows, n_classes)
            Whether each class is in, in the order of `classes_`.

        Notes
        -----
        Every training row counts once, whatever its weight; rows of weight 0 do not count. Training rows that were
        drawn by class (`stratify`) are as common here as in the table. With `pruning="oob"` the out-of-bag rows have
        had a say in the trees, and the theory does not hold.

        Examples
        --------
        >>> import numpy as np
        >>> from spinney import RandomForestClassifier
        >>> X = np.arange(300)[:, None] % 30
        >>> y = np.where(X[:, 0] < 15, "low", "high")
        >>> forest = RandomForestClassifier(n_estimators=50, oob_score=True, random_state=0).fit(X, y)
        >>> forest.predict_set([[2], [28]]).tolist()  # columns: high, low
        [[False, True], [True, False]]
        """
        fitted = self._find_fitted()
        refuse_outputs(fitted.forest, "predict_set")
        params = CoverageParams(coverage, method)
        params.check()
        return forest_uncertainty.predict_set(
            fitted, self._values(X), params, self._read_train(train), is_hard=self._is_hard, n_jobs=self.n_jobs
        )
