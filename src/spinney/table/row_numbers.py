"""Numbers of the rows of a table that differ: rows that are alike have one number."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney.table.row_sums import SUM_BLOCK

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

NO_PLACE = -1


class AlikeRows(NamedTuple):
    """Which rows are alike."""

    numbers: NDArray[np.int32]  # (n_rows,): that of each row among those that differ
    first: NDArray[np.int32]  # (n,): the first row of each number
    times: NDArray[np.int64]  # (n,): how many rows have it

    def sums(self, values: Floats, kernels: Any) -> Floats:
        """Sums by block of what all rows have, and their number, (n_blocks, 2); values: of those that differ."""
        sums = np.empty((-(-len(self.numbers) // SUM_BLOCK), 2))
        kernels.data.alike_rows.sum_alike(values, self.numbers, sums)
        return sums

    def total(self, values: Floats, kernels: Any) -> float:
        """Sum of what all rows have."""
        return math.fsum(self.sums(values, kernels)[:, 0].tolist())


def number_rows(words: NDArray[np.uint64], y: Floats, most: int, kernels: Any) -> AlikeRows | None:
    """Number rows (n_rows, n_words) that are told apart by their words and by y; None where more than `most` differ."""
    n_rows = len(words)
    places = np.full(1 << (2 * most).bit_length(), NO_PLACE, np.int32)
    numbers, first, times = np.empty(n_rows, np.int32), np.empty(most, np.int32), np.empty(most, np.int64)
    number_alike = kernels.data.alike_rows.number_alike
    n = number_alike(words.reshape(-1), words.shape[1], y, places, numbers, first, times)
    return None if n < 0 else AlikeRows(numbers, first[:n], times[:n])
