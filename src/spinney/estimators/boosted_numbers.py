"""What boosted models of numbers, ranks and times share: one kind of target, and predictions by the loss's link."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spinney.estimators.base import Regressor
from spinney.estimators.checks import check_numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from spinney.model.predictors import RoundPredictor


class JointTarget:
    """A target that only a loss of its own understands: what other boosting has as parameters has one value."""

    def _level_growing(self) -> Any:
        """None: derivatives are of rows compared with each other, which must be in memory."""

    @property
    def newton(self) -> bool:
        """True, as leaves take Newton's steps."""
        return True

    @property
    def init(self) -> None:
        """None, as no other model, which would not know the target, begins."""

    @property
    def scoring(self) -> str:
        """What judges rounds, "loss", since scorers do not know the target."""
        return "loss"


class BoostedNumbers(Regressor):
    """Gradient boosting whose target is a number for each row; beside `BaseGradientBoosting`, which has these."""

    _raw_scores: Callable[[Any, Any, Any], tuple[RoundPredictor, NDArray[np.float64]]]
    _staged_raw: Callable[[Any, Any], Iterator[NDArray[np.float64]]]
    _make_predictor: Callable[[], RoundPredictor]

    def _read_evaluated_target(self, y: Any, n_rows: int) -> NDArray[np.float64]:
        return check_numbers(self, y, n_rows)

    def _weigh_classes(
        self, y: NDArray[np.float64], weight: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.float64] | None, NDArray[np.float64] | None]:
        del y
        return weight, None

    def _to_truth(self, y: NDArray[np.float64]) -> NDArray[Any]:
        return y

    def predict(self, X: Any, *, init_score: Any = None, n_rounds: int | None = None) -> NDArray[np.float64]:
        """Predict the target of each row.

        Parameters
        ----------
        X : array-like, frame or sparse matrix of shape (n_rows, n_features), or scan
        init_score : array-like (n_rows,), or (n_rows, n_quantiles) of several quantiles, optional
            Raw scores that the rows bring along, such as the logarithm of an exposure.
        n_rounds : int, optional
            Use the first rounds only, 1 to `n_estimators_`: stage `n_rounds` of `staged_predict`. By default those up
            to `best_iteration_`.

        Returns
        -------
        predicted : float64 array (n_rows,), or (n_rows, n_quantiles) of several quantiles, (n_rows, n_outputs)
            Quantiles of a row ascend.
        """
        predictor, raw = self._raw_scores(X, init_score, n_rounds)
        return predictor.respond(raw)

    def staged_predict(self, X: Any, *, init_score: Any = None) -> Iterator[NDArray[np.float64]]:
        """Yield predictions after 1, 2, ... `n_estimators_` rounds.

        Where early stopping found the best round, stages go on beyond it: `predict` is stage `best_iteration_`.
        """
        respond = self._make_predictor().respond
        yield from map(respond, self._staged_raw(X, init_score))
