"""Weighted quantiles of rows that come in parts, by groups: digit by digit, one pass over the rows for each.

A float is a whole number of 64 bits in the same order. The rows of a group are counted by the highest digits first; the
one that the quantile lies in is known then, and the next pass counts the rows that have it by their next digits. What
comes out is `best_constant.weighted_quantile` of each group, for whole weights, in memory for the counts alone.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

DIGIT_BITS = (13, 13, 13, 13, 12)  # of a pass: 64 kB of counts for each of two numbers of a group
SIGN = np.uint64(1 << 63)
PAIR = 2  # numbers around a quantile: where the share of the weight is reached exactly, it is in the middle of them


class Prefixes(NamedTuple):
    """The digits that are known: of both numbers of each group, (n_groups, 2) uint64, and how many bits there are."""

    known: NDArray[np.uint64]
    n_bits: int
    n_next: int  # bits of the next digit

    def count_rows(self, x: Floats, group: NDArray[np.int64], weight: NDArray[np.int64] | None) -> NDArray[np.float64]:
        """Weight of rows by next digit, (n_groups, 2, 2**n_next); group: of each row, -1 for none; weight: None for 1.

        Whole numbers below 2**53, which floats hold.
        """
        n_digits = 1 << self.n_next
        counts = np.zeros((len(self.known), PAIR, n_digits))
        is_in = group >= 0
        key, own = to_keys(x[is_in]), group[is_in]
        units = None if weight is None else weight[is_in]
        digit = (key >> np.uint64(64 - self.n_bits - self.n_next)) & np.uint64(n_digits - 1)
        place = own * n_digits + digit.astype(np.int64)
        for g in range(PAIR):
            if g == 1 and np.array_equal(self.known[:, 0], self.known[:, 1]):
                counts[:, 1] = counts[:, 0]
                break
            if self.n_bits:
                fits = (key >> np.uint64(64 - self.n_bits)) == self.known[own, g]
                found = np.bincount(place[fits], None if units is None else units[fits], len(counts) * n_digits)
            else:
                found = np.bincount(place, units, len(counts) * n_digits)
            counts[:, g] = found.reshape(len(counts), n_digits)
        return counts


def to_keys(x: Floats) -> NDArray[np.uint64]:
    """Whole numbers in the order of finite floats."""
    bits = (x + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    return np.where(bits & SIGN, ~bits, bits | SIGN)


def to_floats(keys: NDArray[np.uint64]) -> Floats:
    """The floats of such numbers."""
    return np.where(keys & SIGN, keys ^ SIGN, ~keys).view(np.float64)


def find_quantiles(count: Callable[[Prefixes], NDArray[np.float64]], n_groups: int, level: float) -> Floats:
    """The quantile of each group, 0 where it has no rows; count: adds up `Prefixes.count_rows` over all rows."""
    known = np.zeros((n_groups, PAIR), np.uint64)
    left = np.zeros((n_groups, PAIR), np.int64)  # units of weight up to the number, among rows with its digits
    is_middle, has_rows = np.zeros(n_groups, np.bool_), np.zeros(n_groups, np.bool_)
    n_bits = 0
    for n_next in DIGIT_BITS:
        counts = count(Prefixes(known, n_bits, n_next))
        if n_bits == 0:
            totals = counts[:, 0].sum(axis=1).astype(np.int64).tolist()
            for g, total in enumerate(totals):
                share = Fraction(repr(level)) * total
                at = math.ceil(share)
                left[g] = at, min(at + 1, total)
                is_middle[g], has_rows[g] = at == share, total > 0
        reached = np.cumsum(counts, axis=2)
        digit = np.sum(reached < left[..., None], axis=2)
        digit[~has_rows] = 0
        before = np.take_along_axis(
            np.concatenate([np.zeros((n_groups, PAIR, 1)), reached], axis=2), digit[..., None], 2
        )
        left -= before[..., 0].astype(np.int64)
        known = (known << np.uint64(n_next)) | digit.astype(np.uint64)
        n_bits += n_next
    low, high = to_floats(known).T
    return np.where(has_rows, np.where(is_middle, low / 2 + high / 2, low), 0.0)
