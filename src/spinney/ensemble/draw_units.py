"""What a bag is drawn from: rows or groups of rows, by stratum, with their chances in whole numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._elementary import exp
from spinney._types import ROW
from spinney.kernels.common.structs import DrawGuide, DrawStrata, PoissonRates
from spinney.table.fixed_point import fix_weights

WEIGHT_BITS = 51  # weights of all units sum to less than 2**52: a draw has 53 random bits, one must be left to round
PIECE_MEAN = 16.0  # of a Poisson count: exp(-16) keeps all its digits, and one uniform draw reaches every count
GUIDE_BITS = 2  # four buckets a unit: 1.7 ms for 100,000 weighted draws, against 2.8 ms with one


class DrawUnits(NamedTuple):
    """What a bag is drawn from: rows, or groups of rows; only those that can be drawn are listed."""

    n_ids: int  # rows, or codes of groups
    order: NDArray[np.int32]  # ids, those of one stratum side by side
    begin: NDArray[np.int64]  # (n_strata + 1,) where each stratum begins in `order`
    n_drawn: NDArray[np.int64]  # (n_strata,) draws from each
    weight: NDArray[np.int64] | None  # (len(order),) chances in fixed point; None: all alike

    @property
    def is_plain(self) -> bool:
        """Whether all ids are units of one stratum, all alike."""
        return self.weight is None and len(self.n_drawn) == 1 and len(self.order) == self.n_ids

    @property
    def strata(self) -> DrawStrata:
        """What the kernels draw from."""
        return DrawStrata(self.order, self.begin, self.n_drawn)

    @property
    def line(self) -> NDArray[np.int64]:
        """Weight of the units before each place in `order`, and of all, shape (len(order) + 1,)."""
        line = np.arange(len(self.order) + 1, dtype=np.int64)
        if self.weight is not None:
            np.cumsum(self.weight, out=line[1:])
        return line

    def between(self, first: int, last: int) -> NDArray[np.int64]:
        """Places in `order` of the ids first .. last - 1; those of a stratum ascend."""
        if first == 0 and last == self.n_ids:
            return np.arange(len(self.order))
        found = []
        for low, high in zip(self.begin[:-1].tolist(), self.begin[1:].tolist(), strict=True):
            begin, end = np.searchsorted(self.order[low:high], [first, last])
            found.append(np.arange(low + begin, low + end))
        return np.concatenate(found)


def fix_chances(probability: NDArray[np.float64]) -> NDArray[np.int64]:
    """Chances as integers with a sum of about 2**WEIGHT_BITS, at least 1 where positive: their sums know no order."""
    is_drawn = probability > 0.0
    values = np.zeros(len(probability), np.int64)
    values[is_drawn] = fix_weights(probability[is_drawn], int(is_drawn.sum())).values
    bits = WEIGHT_BITS - int(values.sum()).bit_length()
    if bits >= 0:
        return values << bits
    values[is_drawn] = np.maximum(values[is_drawn] >> -bits, 1)
    return values


def mean_chances(groups: NDArray[np.int32], weight: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Mean chance of the rows of each group that have one; 0 where a code has no such row."""
    if weight is None:
        return (np.bincount(groups) > 0).astype(np.int64)
    n_ids = int(groups.max()) + 1
    n_rows = np.bincount(groups[weight > 0], minlength=n_ids)
    total = np.zeros(n_ids, np.int64)
    np.add.at(total, groups, weight)
    return total // np.maximum(n_rows, 1)


def find_strata(groups: NDArray[np.int32], strata: NDArray[np.int32]) -> NDArray[np.int32]:
    """The stratum of each group."""
    stratum = np.zeros(int(groups.max()) + 1, np.int32)
    stratum[groups] = strata
    is_split = stratum[groups] != strata
    if is_split.any():
        row = int(np.argmax(is_split))
        other = int(np.argmax((groups == groups[row]) & (strata != strata[row])))
        raise ValueError(  # by rows: codes are not the labels that a user has given
            f"rows {row} and {other} are of one group, but of two strata; whole groups are drawn within a stratum, "
            "so give all rows of a group the same one"
        )
    return stratum


def split_rates(mean: NDArray[np.float64]) -> PoissonRates:
    """Poisson means in pieces that are not too large for an inversion."""
    n_pieces = (mean / PIECE_MEAN).astype(np.int64) + 1
    piece = mean / n_pieces
    return PoissonRates(n_pieces, piece, exp(-piece))


def plain_strata(n_rows: int, n_drawn: int) -> DrawStrata:
    """All rows as units of one stratum: an empty list stands for all."""
    return DrawStrata(np.empty(0, ROW), np.array([0, n_rows]), np.array([n_drawn]))


def make_guide(units: DrawUnits) -> DrawGuide:
    """The way from the line of all weights to the units, in some buckets a unit."""
    n_units = len(units.order)
    line = units.line
    total = int(line[-1])
    shift = max(total.bit_length() - n_units.bit_length() - GUIDE_BITS, 0)
    edges = np.arange((total >> shift) + 2, dtype=np.int64) << shift
    start = np.minimum(np.searchsorted(line, edges, side="right") - 1, n_units - 1)
    return DrawGuide(line, start.astype(np.int32), shift)


def share_draws(n_drawn: int, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Draws from strata of these sizes, in proportion: whole shares first, then one each to the largest remainders."""
    share, remainder = np.divmod(n_drawn * sizes, sizes.sum())
    n_left = n_drawn - int(share.sum())
    share[np.argsort(-remainder, kind="stable")[:n_left]] += 1
    return share
