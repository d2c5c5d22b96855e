"""Units of packed sums: how large a step of a gradient and of a hessian is, so that their sums fit in one number."""

from __future__ import annotations

import math

from spinney.kernels.common.structs import PackedUnits

SUM_LIMIT = 2.0**31  # gradients and hessians of a packed sum


def power_below(limit: float, total: float) -> float:
    """The greatest power of two whose product with `total` is below the limit; 1 where the total is 0."""
    if total <= 0.0:
        return 1.0
    most, upto = math.frexp(limit)
    mantissa, size = math.frexp(total)
    exponent = upto - size - (mantissa >= most)
    return math.ldexp(1.0, min(max(exponent, -1000), 1000))


def packed_units(sum_g: float, sum_h: float, slack: float) -> PackedUnits:
    """Units of packed sums; slack: most that rounding can add to a sum, in units."""
    limit = SUM_LIMIT - 2.0 - slack
    return PackedUnits(power_below(limit, sum_g), power_below(limit, sum_h))
