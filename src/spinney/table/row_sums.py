"""Float sums over the rows of a table: the same bits in whatever parts the rows come."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

SUM_BLOCK = 4096  # rows of a block of sums, as in `kernels.boost.gradients`
MANTISSA_BITS, LEAST_BITS = 53, 1126  # of a float; those that the least of them needs behind the point
HALF_BITS = 31  # whole numbers of 62 bits in two halves: sums of products with counts of 31 bits fit an int64


def sum_rows(x: NDArray[np.float64], rows: NDArray[np.int64] | None = None) -> float:
    """Sum of x: by blocks of 4,096 rows of the table, and of these exactly, rounded once.

    Whoever holds whole blocks of the table can sum them; infinite where a float cannot hold the sum.

    rows : int64 (n,), optional
        Which row of the table each x is of, ascending; None: x is of all rows.
    """
    n_rows = len(x) if rows is None else int(rows[-1]) + 1 if len(rows) else 0
    edges = np.arange(0, n_rows + SUM_BLOCK, SUM_BLOCK)
    ends = (np.minimum(edges, len(x)) if rows is None else np.searchsorted(rows, edges)).tolist()
    with np.errstate(over="ignore"):
        sums = [float(x[first:last].sum()) for first, last in itertools.pairwise(ends)]
    try:
        return math.fsum(sums)
    except OverflowError:
        return math.copysign(math.inf, sum(math.ldexp(value, -64) for value in sums))


def sum_products(values: NDArray[np.int64], counts: NDArray[np.int64]) -> int:
    """Sum of `counts * |values|`, exact beyond 64 bits; values below 2**62, a sum of counts below 2**32."""
    sizes = np.abs(values)
    high = int(((sizes >> HALF_BITS) * counts).sum())
    low = int(((sizes & ((1 << HALF_BITS) - 1)) * counts).sum())
    return (high << HALF_BITS) + low


def sum_products_of(
    values: NDArray[np.int64], counts: NDArray[np.int64], codes: NDArray[np.int64], n_codes: int
) -> list[int]:
    """Sums of `counts * values` over the rows of each code, as exact; values are not negative."""
    high, low = np.zeros(n_codes, np.int64), np.zeros(n_codes, np.int64)
    np.add.at(high, codes, (values >> HALF_BITS) * counts)
    np.add.at(low, codes, (values & ((1 << HALF_BITS) - 1)) * counts)
    return [(a << HALF_BITS) + b for a, b in zip(high.tolist(), low.tolist(), strict=True)]


class ExactSum:
    """A sum of floats without rounding, in whatever parts and order they come; rounded once at the end, as `fsum`."""

    def __init__(self) -> None:
        self.total = 0  # in units of the least positive float, and less

    def add(self, x: NDArray[np.float64]) -> None:
        """Add finite numbers."""
        mantissa, exponent = np.frexp(x)
        whole = np.ldexp(mantissa, MANTISSA_BITS).astype(np.int64)
        for e in np.unique(exponent).tolist():
            part = whole[exponent == e]
            high, low = int((part >> HALF_BITS).sum()), int((part & ((1 << HALF_BITS) - 1)).sum())
            self.total += ((high << HALF_BITS) + low) << (e - MANTISSA_BITS + LEAST_BITS)

    @property
    def value(self) -> float:
        """The sum; infinite where a float cannot hold it."""
        try:
            return self.total / (1 << LEAST_BITS)
        except OverflowError:
            return math.copysign(math.inf, self.total)
