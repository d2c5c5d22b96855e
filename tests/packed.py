"""Packed sums and the score of a leaf, in plain and exact arithmetic."""

import math
from fractions import Fraction


def pack(g, h):
    """A gradient and a hessian, whole numbers, in one."""
    return (int(g) << 32) + int(h)


def unpack(packed):
    """The gradient and the hessian of a packed sum."""
    return int(packed) >> 32, int(packed) & 0xFFFFFFFF


def leaf_value(sums, reg_lambda, reg_alpha, lower=-math.inf, upper=math.inf):
    g, h = sums
    shrunk = max(abs(g) - Fraction(reg_alpha), 0) * (1 if g > 0 else -1)
    value = -Fraction(shrunk) / (h + Fraction(reg_lambda))
    return value if lower <= value <= upper else Fraction(lower if value < lower else upper)


def leaf_score(sums, value, reg_lambda, reg_alpha):
    g, h = sums
    return -(g * value + (h + Fraction(reg_lambda)) * value**2 / 2 + Fraction(reg_alpha) * abs(value))
