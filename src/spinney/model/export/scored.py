"""What an export answers to rows, for comparison with the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from spinney.model.export.tree_sum import TreeSum


class Scored(NamedTuple):
    """Answers to rows.

    Attributes
    ----------
    answers : float64 (n_rows, n_answers)
    classes : list of classes, or None for numbers
    """

    answers: NDArray[np.float64]
    classes: list[Any] | None


class CannotRunError(Exception):
    """An export cannot be run here: the message says what is missing."""


def ask_each(
    answer: Callable[[Any], Any], predict: Callable[[Any], Any], form: TreeSum, cells: Sequence[Sequence[Any]]
) -> Scored:
    """Answers to rows that are asked for one by one."""
    answers = np.array([answer(row) for row in cells], np.float64).reshape(len(cells), form.n_answers)
    return Scored(answers, None if form.classes is None else [predict(row) for row in cells])
