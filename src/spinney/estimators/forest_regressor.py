"""What forests have that predict numbers."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from spinney._criteria import VALUE_CRITERIA, own_name, with_aliases
from spinney.estimators.base import Regressor
from spinney.estimators.base_forest import FOREST_CONSTRAINTS
from spinney.estimators.cart import CARTRegressor
from spinney.estimators.checks import NO_MONOTONE, check_numbers
from spinney.estimators.kept import Kept, Part
from spinney.estimators.stand_ins import average_forest
from spinney.model import forest_uncertainty
from spinney.model import quantiles as forest_quantiles
from spinney.model.forest_uncertainty import CoverageParams
from spinney.reading.several_outputs import refuse_outputs

if TYPE_CHECKING:
    from numpy.typing import NDArray

REGRESSOR_CONSTRAINTS: dict[str, list[Any]] = {
    **FOREST_CONSTRAINTS,
    "criterion": [StrOptions(with_aliases(VALUE_CRITERIA))],
    "min_target_std": [Interval(Real, 0.0, None, closed="left")],
    "keep_members": ["boolean"],
}


class ForestRegressor(Regressor):
    """Beside `BaseForest`: forests that average."""

    _keeps: ClassVar[dict[str, Kept]] = {
        "_shift": Kept(int, is_needed=False),
        "oob_prediction_": Kept(np.ndarray, is_needed=False),
    }
    oob_prediction_ = Part("out_of_bag.predictions")
    _shift = Part("shift")
    _oob_predictions: ClassVar[str] = "oob_prediction_"
    _tree_class: ClassVar[Any] = CARTRegressor
    _takes_outputs: ClassVar[bool] = True

    def _asks_one_output(self) -> dict[str, bool]:
        return {
            f"criterion={self.criterion!r}": own_name(self.criterion) != "squared_error",
            "honest=True": bool(self.honest),
            "pruning='oob'": self.pruning == "oob",
            NO_MONOTONE: self.monotonic_cst is not None,
            "keep_members=True": bool(self.keep_members),
            f"min_target_std={self.min_target_std}": self.min_target_std != 0.0,
        }

    def _check_target(self, y: Any, n_rows: int) -> NDArray[np.float64]:
        """Targets given after the fit."""
        return check_numbers(self, y, n_rows)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict the target of each row: the mean over the trees of the mean of its leaf.

        By the absolute error it is the mean of medians. Of several outputs the shape is (n_rows, n_outputs).
        """
        values = self._values(X)
        return self._make_predictor().answer(values, self.n_jobs)

    def _compute_partial_dependence_recursion(self: Any, grid: Any, target_features: Any) -> NDArray[np.float64]:
        """What `sklearn.inspection.partial_dependence(method="recursion")` asks for, (n_outputs, n_points)."""
        fitted = self._find_fitted()
        return average_forest(fitted, fitted.forest, grid, target_features)

    def predict_interval(
        self, X: Any, coverage: float = 0.9, *, method: str = "auto", train: Any = None
    ) -> NDArray[np.float64]:
        """Predict an interval for each row that holds its target with a probability of `coverage`.

        By the out-of-bag errors of the training rows, which new rows must be like (exchangeable).

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)
        coverage : float
            Wanted share of rows whose target lies in their interval, between 0 and 1.
        method : {"auto", "jackknife+", "oob"}
            - "jackknife+": every training row moves its own error to where the trees that have not seen it put
              the new row (Kim, Xu and Barber 2020). Time grows with trees * training rows * new rows.
            - "oob": the prediction plus and minus one error, the same for all new rows (Johansson et al. 2014). Fast;
              with few trees it covers more than it is asked for.
            - "auto": the first up to 20,000 training rows, the second beyond.
        train : (X, y), optional
            The training data again; not needed after a fit with `oob_score`.

        Returns
        -------
        float64 array (n_rows, 2)
            Low and high end; infinite with fewer than about 1 / (1 - coverage) training rows.

        Notes
        -----
        Intervals are about as wide everywhere: for a width that follows the data see `predict_quantiles`, which
        promises no coverage. Every training row counts once, whatever its weight; rows of weight 0 do not count. With
        `pruning="oob"` the out-of-bag rows have had a say in the trees, and the theory does not hold; on Friedman's
        first function 90 % were covered all the same.

        Examples
        --------
        >>> import numpy as np
        >>> from spinney import RandomForestRegressor
        >>> X = np.linspace(0.0, 1.0, 300)[:, None]
        >>> y = X[:, 0] + np.tile([-0.1, 0.0, 0.1], 100)
        >>> forest = RandomForestRegressor(n_estimators=100, oob_score=True, random_state=0).fit(X, y)
        >>> low, high = forest.predict_interval([[0.5]], coverage=0.9)[0]
        >>> bool(low < 0.45 and high > 0.55)
        True
        """
        fitted = self._find_fitted()
        refuse_outputs(fitted.forest, "predict_interval")
        params = CoverageParams(coverage, method)
        params.check()
        return forest_uncertainty.predict_interval(
            fitted, self._values(X), params, self._read_train(train), n_jobs=self.n_jobs
        )

    def predict_quantiles(
        self, X: Any, quantiles: Any = (0.05, 0.5, 0.95), *, train: Any = None
    ) -> NDArray[np.float64]:
        """Predict quantiles of the target of each row (Meinshausen 2006).

        A training row weighs, in each tree, its share of the new row's leaf, in the mean over the trees; the mean of
        the targets by these weights is the prediction. A quantile is the smallest target that at least this share of
        the weight does not exceed: always one that was seen.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features)
        quantiles : float or array-like
            One or several levels between 0 and 1, in any order.
        train : (X, y) or (X, y, sample_weight), optional
            The training data again, with the weights that fit has seen; not needed after a fit with `keep_members`.
            Takes memory for leaf and bag of each row in each tree, 8 bytes, during the call.

        Returns
        -------
        float64 array (n_rows, n_quantiles)
            Or (n_rows,) for a single level.

        Examples
        --------
        >>> import numpy as np
        >>> from spinney import RandomForestRegressor
        >>> X = np.repeat([0, 100], 50)[:, None]
        >>> y = X[:, 0] + np.tile([1, 2, 3, 4, 5], 20)
        >>> forest = RandomForestRegressor(n_estimators=100, keep_members=True, random_state=0).fit(X, y)
        >>> forest.predict_quantiles([[0], [100]], [0.0, 0.5]).tolist()
        [[1.0, 3.0], [101.0, 103.0]]
        """
        fitted = self._find_fitted()
        refuse_outputs(fitted.forest, "predict_quantiles")
        levels = forest_quantiles.check_quantiles(quantiles)
        return forest_quantiles.predict_quantiles(
            fitted, self._values(X), levels, self._read_train(train), n_jobs=self.n_jobs
        )
