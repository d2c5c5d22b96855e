"""Votes on out-of-bag rows: each row is voted on by the trees whose bags lack it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.reading.several_outputs import part_shares
from spinney.table.row_sums import sum_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray


class OutOfBagSums:
    """Votes on out-of-bag rows, summed in the order of the trees, and the error of the sums after each tree.

    A row of weight 0 is as if it were not there: it counts in no error, and `finish` takes its votes away.

    Parameters
    ----------
    y : (n_rows,), or (n_rows, n_outputs)
        Codes of classes, or numbers.
    n_classes : int
        0 for numbers.
    has_weight : bool (n_rows,), optional
        Rows of positive weight; None: all.
    shift : int
        Votes of numbers are in units of `2**shift`.
    widths : int64 (n_outputs,), optional
        Classes of each of several outputs.

    Attributes
    ----------
    votes : float64 (n_rows, n_classes or n_outputs)
        Of several outputs of classes, the classes of all side by side.
    n_votes : int64 (n_rows,)
        Trees that have voted on each row.
    curve : list of float
        Error after each tree.
    """

    def __init__(
        self,
        y: NDArray[Any],
        n_classes: int,
        has_weight: NDArray[np.bool_] | None = None,
        shift: int = 0,
        widths: NDArray[np.int64] | None = None,
    ) -> None:
        self.y, self.n_classes, self.has_weight, self.shift, self.widths = y, n_classes, has_weight, shift, widths
        n_columns = max(n_classes, 1) if y.ndim == 1 else y.shape[1]
        self.votes = np.zeros((len(y), n_columns if widths is None else int(widths.sum())))
        self.n_votes = np.zeros(len(y), np.int64)
        self.curve: list[float] = []

    def resume(self, votes: NDArray[np.float64], n_votes: NDArray[np.int64], curve: NDArray[np.float64]) -> None:
        """Go on from the sums of earlier trees."""
        self.votes[:], self.n_votes[:] = votes, n_votes
        self.curve += curve.tolist()

    def add(self, rows: NDArray[Any], votes: NDArray[np.float64]) -> None:
        """Add the votes (len(rows), n_classes or 1) of the next tree on rows outside its bag, each named once."""
        self.votes[rows] += votes
        self.n_votes[rows] += 1
        n_votes = self.n_votes if self.has_weight is None else self.n_votes * self.has_weight
        if self.widths is None:
            error = oob_error(self.votes, n_votes, self.y, is_class=self.n_classes > 0, shift=self.shift)
        else:
            error = label_error(self.votes, n_votes, self.y, self.widths)
        self.curve.append(error)

    def finish(self) -> int:
        """Take away the votes on rows of weight 0; returns how many of the other rows have no vote."""
        if self.has_weight is None:
            return int(np.count_nonzero(self.n_votes == 0))
        self.votes[~self.has_weight], self.n_votes[~self.has_weight] = 0.0, 0
        return int(np.count_nonzero(self.has_weight & (self.n_votes == 0)))


def label_error(
    votes: NDArray[np.float64], n_votes: NDArray[np.int64], y: NDArray[Any], widths: NDArray[np.int64]
) -> float:
    """Share of the rows that have votes whose class is wrong in any of several outputs."""
    rows = np.flatnonzero(n_votes)
    if len(rows) == 0:
        return np.nan
    chosen = [shares.argmax(axis=1) for shares in part_shares(votes[rows], widths)]
    return float(np.mean(np.any(np.stack(chosen, axis=1) != y[rows], axis=1)))


def oob_error(
    votes: NDArray[np.float64], n_votes: NDArray[np.int64], y: NDArray[Any], *, is_class: bool, shift: int = 0
) -> float:
    """Share of wrong classes, or mean squared error, of the rows that have votes; these in units of `2**shift`."""
    rows = np.flatnonzero(n_votes)
    if len(rows) == 0:
        return np.nan
    if is_class:
        return float(np.mean(votes[rows].argmax(axis=1) != y[rows]))
    with np.errstate(over="ignore"):  # the square of a target of 1e300
        off = np.ldexp(votes[rows] / n_votes[rows, None], shift) - y[rows].reshape(len(rows), -1)
        return sum(sum_rows(one * one, rows) for one in np.ascontiguousarray(off.T)) / off.size
