"""Exponentials, logarithms and powers in fixed arithmetic: the same bits on every CPU, compiled or interpreted.

NumPy's own differ with the vectors of the CPU, and from those of the C library that compiled code calls: with AVX-512,
exp in 4,432 of 100,000 values. Here are additions, products, divisions and shifts of bits only, which IEEE 754 settles
to the last bit, and which are not fused since fast math is off.

Functions are without branches, but for clamps: interpreted, x may be an array, which `spinney._elementary` makes use
of. A *pair* is a number as the sum of two, the second about the last place of the first or less.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined, kernel

# exp(r + k ln 2) = 2**k * (1 + r + r * r * q(r)), |r| <= ln(2) / 2; q meets the series at ten Chebyshev points, within
# 1.6e-17 of exp; ln 2 is HIGH, whose products with k are exact, and LOW
Q0 = 0.5000000000000001
Q1 = 0.16666666666666669
Q2 = 0.04166666666662413
Q3 = 0.008333333333330062
Q4 = 0.0013888888917213717
Q5 = 0.00019841269863053618
Q6 = 2.4801521295954376e-05
Q7 = 2.7557268459997064e-06
Q8 = 2.7620088445409746e-07
Q9 = 2.510038549551032e-08
LN2_HIGH = 0.6931471803691238
LN2_LOW = 1.9082149292705877e-10
LOG2_E = 1.4426950408889634
LEAST, GREATEST = -708.0, 709.0  # beyond, 2**k leaves the normal numbers
ROUNDER = 6755399441055744.0  # 1.5 * 2**52: adding it rounds to an integer, held in the lowest bits
EXPONENT_SHIFT = np.int64(52)

# log(1 + f) = 2 * atanh(s), s = f / (2 + f); atanh(s) = s * (1 + z * a(z)), z = s * s <= 0.0295: a at seven Chebyshev
# points, within 5e-18 of atanh
A0 = 0.3333333333333335
A1 = 0.19999999999949444
A2 = 0.14285714313127149
A3 = 0.11111105544652257
A4 = 0.09091446218997246
A5 = 0.07665805770412806
A6 = 0.07308904695627114
NEAR_LEAST, NEAR_MOST = 0.72, 1.4  # within the square roots of 1/2 and 2
SQRT2_LESS_1 = 0.41421356237309503
SQRT_HALF_BITS = np.int64(0x3FE6A09E667F3BCD)  # of the square root of 1/2 as float64

# the same at eight points, within 9e-20 of atanh: a hundredth of the last place of what follows
B0 = 0.3333333333333333
B1 = 0.2000000000000044
B2 = 0.14285714285401807
B3 = 0.11111111195857001
B4 = 0.0909089782006183
B5 = 0.07693119851658801
B6 = 0.06634386562593775
B7 = 0.0654331314435065
HIGH_BITS = np.int64(-1 << 27)  # keep 26 bits of a float64: products of two such are exact
TWO_OVER_LN2 = 2.8853900817779268
TWO_OVER_LN2_HIGH = 2.885390043258667  # 26 bits
TWO_OVER_LN2_LOW = 3.851925982253235e-08
LN2 = 0.6931471805599453
LN2_26 = 0.6931471675634384  # 26 bits
LN2_27 = 1.2996506893889889e-08  # the rest
SMALLEST = 2.0**-1022  # normal number
LARGE = 64.0  # from here on the whole part of a logarithm to the base 2 is most of it
LIFTED = 2.0**54  # subnormal numbers are multiplied by this
LEAST_POWER, GREATEST_POWER = -1022.0, 1023.0  # of two, normal numbers


# --- The fast ones, of which LLVM makes vectors -------------------------------------------------------------


@inlined
def exp_mantissa(x: float, k: float) -> float:
    """exp(x) / 2**k, for the whole k nearest to x / ln 2: any kind of number, since it takes no bits apart."""
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = (Q0 + Q1 * r) + (Q2 + Q3 * r) * r2
    high = (Q4 + Q5 * r) + (Q6 + Q7 * r) * r2 + (Q8 + Q9 * r) * r4
    return 1.0 + (r + r2 * (low + high * r4))


@inlined
def exp_between(x: float) -> float:
    """Exp of an x from LEAST to GREATEST, within 1.1 units in the last place."""
    shifted = np.float64(x * LOG2_E + ROUNDER)
    mantissa = np.float64(exp_mantissa(x, shifted - ROUNDER))
    bits = mantissa.view(np.int64) + (shifted.view(np.int64) << EXPONENT_SHIFT)
    return np.int64(bits).view(np.float64)


@inlined
def exponential(x: float) -> float:
    """Exp of x, a number; of LEAST below it, of GREATEST above it."""
    x = x if x > LEAST else LEAST
    x = x if x < GREATEST else GREATEST
    return exp_between(x)


@inlined
def exp_less_one(x: float) -> float:
    """exp(x) - 1 for x in -1 .. 0, within 1.2 units in the last place; small ones keep their digits."""
    k = (x * LOG2_E + ROUNDER) - ROUNDER
    r = (x - k * LN2_HIGH) - k * LN2_LOW
    r2 = r * r
    r4 = r2 * r2
    low = (Q0 + Q1 * r) + (Q2 + Q3 * r) * r2
    high = (Q4 + Q5 * r) + (Q6 + Q7 * r) * r2 + (Q8 + Q9 * r) * r4
    two_k = 1.0 + 0.5 * k  # k is 0 or -1
    return (two_k - 1.0) + two_k * (r + r2 * (low + high * r4))


@inlined
def log_near_one(f: float) -> float:
    """Log of 1 + f, for 1 + f between the square roots of 1/2 and 2."""
    s = f / (2.0 + f)
    z = s * s
    z2 = z * z
    a = (A0 + A1 * z) + (A2 + A3 * z) * z2 + ((A4 + A5 * z) + A6 * z2) * (z2 * z2)
    return 2.0 * (s + s * (z * a))


@inlined
def log_one_plus(e: float) -> float:
    """Log of 1 + e, for e in 0 .. 1; small ones keep their digits."""
    is_large = e > SQRT2_LESS_1
    k = 1.0 if is_large else 0.0
    f = 0.5 * (e - 1.0) if is_large else e
    return k * LN2_HIGH + (log_near_one(f) + k * LN2_LOW)


@inlined
def logarithm(x: float) -> float:
    """Log of a normal, positive x."""
    bits = np.float64(x).view(np.int64)
    exponent = (bits - SQRT_HALF_BITS) >> EXPONENT_SHIFT
    mantissa = np.int64(bits - (exponent << EXPONENT_SHIFT)).view(np.float64)
    k = np.float64(exponent)
    return k * LN2_HIGH + (log_near_one(mantissa - 1.0) + k * LN2_LOW)


@kernel
def relative_entropy(d: float) -> float:
    """(1 + d) log(1 + d) - d of a number d from -1 on: half the Poisson deviance of 1 + d from 1."""
    ratio = 1.0 + d
    if ratio < SMALLEST:
        return 1.0
    if ratio > NEAR_MOST or ratio < NEAR_LEAST:
        return ratio * logarithm(ratio) - d
    return entropy_near_one(d)


@inlined
def entropy_near_one(d: float) -> float:
    """The same for 1 + d between NEAR_LEAST and NEAR_MOST; small ones, about d * d / 2, keep their digits."""
    s = d / (2.0 + d)
    z = s * s
    z2 = z * z
    a = (A0 + A1 * z) + (A2 + A3 * z) * z2 + ((A4 + A5 * z) + A6 * z2) * (z2 * z2)
    return 2.0 * z * (1.0 + (1.0 + s) * (s * a)) / (1.0 - s)


@inlined
def weight_log2(x: float) -> float:
    """Log of x, a whole number from 1 on, to the base 2, within 1.1 units in the last place, from 64 on within 0.56.

    A fit by entropy whose weights have no table takes as long as these (40,000 rows, 3 classes: `log2` 0.39 s, this
    0.27 s, the C library's 0.23 s).
    """
    bits = np.float64(x).view(np.int64)
    exponent = (bits - SQRT_HALF_BITS) >> EXPONENT_SHIFT
    mantissa = np.int64(bits - (exponent << EXPONENT_SHIFT)).view(np.float64)
    return np.float64(exponent) + log_near_one(mantissa - 1.0) * LOG2_E


# --- The exact ones: less than 5 % of a unit in the last place off before the last rounding ------------------


@inlined
def high_part(x: float) -> float:
    """The first 26 bits of x."""
    return np.int64(np.float64(x).view(np.int64) & HIGH_BITS).view(np.float64)


@inlined
def parts_of(x: float) -> tuple[float, float]:
    """Whole k and m, between the square roots of 1/2 and 2, with x = m * 2**k, for a positive and normal x."""
    bits = np.float64(x).view(np.int64)
    exponent = (bits - SQRT_HALF_BITS) >> EXPONENT_SHIFT
    mantissa = np.int64(bits - (exponent << EXPONENT_SHIFT)).view(np.float64)
    return np.float64(exponent), mantissa


@inlined
def atanh_pair(f: float) -> tuple[float, float]:
    """Log of 1 + f, halved, as a pair; the first has 26 bits. 1 + f is exact, between the square roots of 1/2 and 2.

    The quotient s = f / (2 + f) is known to some 75 bits, what follows it, at most 1 % of it, to a float64.
    """
    d = 2.0 + f
    inverse = 1.0 / d
    s_high = high_part(f * inverse)
    d_high = high_part(d)
    d_low = f - (d_high - 2.0)  # exact: of 2 + f as it is, not as d rounds it
    s_low = ((f - s_high * d_high) - s_high * d_low) * inverse
    s = s_high + s_low
    z = s * s
    z2 = z * z
    b = ((B0 + B1 * z) + (B2 + B3 * z) * z2) + ((B4 + B5 * z) + (B6 + B7 * z) * z2) * (z2 * z2)
    return s_high, s_low + s * (z * b)


@inlined
def log2_pair(x: float) -> tuple[float, float]:
    """Log of x to the base 2, as a pair."""
    k, mantissa = parts_of(x)
    high, low = atanh_pair(mantissa - 1.0)
    first = high * TWO_OVER_LN2_HIGH  # exact
    total = k + first
    return total, ((k - total) + first) + (high * TWO_OVER_LN2_LOW + low * TWO_OVER_LN2)


@inlined
def log2(x: float) -> float:
    """Log of x to the base 2, within 0.55 units in the last place; x positive and normal. Powers of two are exact.

    Of 100,000 uniform numbers 183 are not the float64 nearest to the truth; of the C library's 193, of NumPy's 35.
    """
    high, low = log2_pair(x)
    return high + low


@kernel
def any_log2(x: float) -> float:
    """Log of any positive and finite number, not of an array, to the base 2, within 0.56 units in the last place.

    Of subnormal numbers within 0.8. Large ones are as exact by the plainer way (C4.5 with holes: 0.24 s without it).
    Not inlined: what reads a table first, and computes what that lacks, would be too long to be inlined itself (ID3 on
    letter took 64 ms instead of 52).
    """
    if x >= LARGE:
        return weight_log2(x)
    return log2(x) if x >= SMALLEST else log2(x * LIFTED) - 54.0


@inlined
def log(x: float) -> float:
    """Log of x, within 0.53 units in the last place; x positive and normal: other x are for callers to see to."""
    k, mantissa = parts_of(x)
    high, low = atanh_pair(mantissa - 1.0)
    whole = k * LN2_HIGH  # exact
    first = 2.0 * high
    total = whole + first
    return total + (((whole - total) + first) + (k * LN2_LOW + 2.0 * low))


@inlined
def log1p(x: float) -> float:
    """Log of 1 + x, within 1.1 units in the last place; 1 + x is positive and normal."""
    u = 1.0 + x
    return log(u) + (x - (u - 1.0)) / u


@inlined
def power(x: float, y: float) -> float:
    """X to the power y, numbers; x is positive and normal. Within 0.7 units in the last place for y in -1 .. 1.

    The last digits of the logarithm count y times: 5 units were seen for y around 30. Results are normal numbers: what
    is beyond them gives 2**-1022 or 2**1023.
    """
    log_high, log_low = log2_pair(x)
    product = log_high * y
    p = product if product > LEAST_POWER else LEAST_POWER
    p = p if p < GREATEST_POWER else GREATEST_POWER
    l1 = high_part(log_high)
    l2 = log_high - l1
    y1 = high_part(y)
    y2 = y - y1
    rest = (((l1 * y1 - product) + l1 * y2) + l2 * y1) + l2 * y2 + log_low * y
    rest = rest if p == product else 0.0
    shifted = np.float64(p + ROUNDER)
    t = p - (shifted - ROUNDER)
    t1 = high_part(t)
    r = t1 * LN2_26  # exact
    r_low = ((t - t1) * LN2_26 + t * LN2_27) + rest * LN2
    s = r + r_low
    r2 = s * s
    r4 = r2 * r2
    low = (Q0 + Q1 * s) + (Q2 + Q3 * s) * r2
    high = (Q4 + Q5 * s) + (Q6 + Q7 * s) * r2 + (Q8 + Q9 * s) * r4
    total = 1.0 + r
    mantissa = np.float64(total + (((1.0 - total) + r) + (r_low + r2 * (low + high * r4))))
    bits = mantissa.view(np.int64) + (shifted.view(np.int64) << EXPONENT_SHIFT)
    return np.int64(bits).view(np.float64)


# --- Doors: many at a time, in place ------------------------------------------------------------------------
# One array, not two: LLVM cannot know that two are apart, and one signature serves read-only arrays as well.


@door
def exp_all(x: np.ndarray) -> None:
    """Replace every x (n,) by its `exponential`."""
    for j in range(len(x)):
        i = np.uint64(j)
        x[i] = exponential(x[i])


@door
def log_all(x: np.ndarray) -> None:
    """Replace every x (n,) by its `log`."""
    for j in range(len(x)):
        i = np.uint64(j)
        x[i] = log(x[i])


@door
def log2_all(x: np.ndarray) -> None:
    """Replace every x (n,) by its `log2`."""
    for j in range(len(x)):
        i = np.uint64(j)
        x[i] = log2(x[i])
