"""Bags of the rows that have most to teach: those of large gradients, and a few of the others for all of these.

Gradient-based one-side sampling (Ke et al. 2017): two thirds of a bag are the rows whose first and second derivatives
have the greatest product; the last third is drawn from the others, whose derivatives are multiplied by how many each
stands for, so that sums are right on average. As in LightGBM, the first 1 / learning_rate rounds see all rows: until
then derivatives tell little of which rows are hard.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spinney._types import ROW
from spinney.ensemble.sampling import Draw

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MOST_ROUNDS = 2.0**53  # as good as all


class GradientSampling:
    """What bags are drawn by.

    Parameters
    ----------
    n_rows, n_drawn : int
        Of the table, and of a bag.
    key : int
        Of all draws of the model.
    learning_rate : float
        Of the rounds; 1 / learning_rate of them see all rows.

    Attributes
    ----------
    others : intp (n_others,), of the last bag
        Rows that stand for more than themselves.
    factor : float
        How many each of them stands for.
    """

    def __init__(self, n_rows: int, n_drawn: int, key: int, learning_rate: float = np.inf) -> None:
        self.n_whole = int(min(1.0 / learning_rate, MOST_ROUNDS))
        n_others = max(n_drawn // 3, 1)
        self.n_top = n_drawn - n_others
        self.rest = Draw("paste", n_rows - self.n_top, n_others, key)
        self.others = np.zeros(0, np.intp)
        self.factor = (n_rows - self.n_top) / n_others

    def takes_all(self, number: int) -> bool:
        """Whether a round sees all rows; then none stands for others."""
        if number < self.n_whole:
            self.others = np.zeros(0, np.intp)
        return number < self.n_whole

    def draw(self, size: Floats, number: int) -> NDArray[np.int32]:
        """The bag of a round, ascending; size: of the derivatives of each row. Of equal rows the first are taken."""
        is_top = np.zeros(len(size), np.bool_)
        if self.n_top > 0:
            least = np.partition(size, len(size) - self.n_top)[len(size) - self.n_top]
            is_top = size > least
            is_top[np.flatnonzero(size == least)[: self.n_top - int(np.count_nonzero(is_top))]] = True
        self.others = np.flatnonzero(~is_top)[self.rest.counts(number) > 0]
        is_top[self.others] = True
        return np.flatnonzero(is_top).astype(ROW)
