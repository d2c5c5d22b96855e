"""Several outputs: trees whose nodes hold a number for each column of y, or shares of its classes.

What does without them says so here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def refuse_outputs(model: Any, what: str) -> None:
    """Raise where a tree or forest has several outputs; what: that there is of one alone."""
    refuse_many(model.n_outputs, what)


def refuse_many(n_outputs: int, what: str) -> None:
    """Raise where there are several outputs; what: that there is of one alone."""
    if n_outputs > 1:
        raise ValueError(
            f"{what}: not there for several outputs, and this model has {n_outputs} numbers in a leaf. Fit one model "
            "for each column of y, and of classes a tree for each (multi_strategy='one_tree_per_class'); a survival "
            "forest has to_text() of its trees, and predict_survival()"
        )


def part_shares(answers: NDArray[np.float64], widths: NDArray[np.int64]) -> list[NDArray[np.float64]]:
    """The shares of the classes of each output, which stand side by side on the last axis of `answers`.

    widths: (n_outputs,), classes of each.
    """
    return np.split(answers, np.cumsum(widths)[:-1], axis=-1)
