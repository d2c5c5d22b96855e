"""What the columns are worth to a forest."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from spinney.study.evidence import Importance

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_COLUMNS = 50  # the best by permutation


def list_importances(forest: Any, X: Any, y: NDArray[Any]) -> tuple[Importance, ...]:
    """The importances of a forest that was fitted on X and y, the largest by permutation first."""
    impurity = forest.importance("impurity")
    permuted = forest.importance("permutation", X, y)
    order = sorted(range(len(impurity.feature)), key=lambda j: -permuted.importance[j])
    return tuple(
        Importance(
            feature=str(impurity.feature[j]),
            impurity=float(impurity.importance[j]),
            impurity_error=_known(impurity.std_error[j]),
            permutation=float(permuted.importance[j]),
            permutation_error=_known(permuted.std_error[j]),
        )
        for j in order[:MAX_COLUMNS]
    )


def _known(error: float) -> float | None:
    """A standard error; one tree has none."""
    return float(error) if math.isfinite(error) else None
