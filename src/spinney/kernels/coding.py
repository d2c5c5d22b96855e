"""Turn a column of values into codes: ranks of distinct values, or of bins of about equal weight beyond a limit.

Steps for one column: map each float to an unsigned integer of the same order; sort these keys with their rows by
bytes, skipping bytes that do not vary; walk the sorted keys and number the distinct values; merge them into bins if they
are too many; write each row's code.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import kernel
from spinney._types import MISSING_CODE

SIGN = np.uint64(0x8000000000000000)
ZERO = np.uint64(0)
DIGIT_BITS = 11
N_DIGITS = 2048
DIGIT_MASK = np.uint64(2047)
N_PASSES = 6


@kernel
def order_key(bits: np.uint64) -> np.uint64:
    """Map the bits of a float64 to an integer of the same order."""
    return ~bits if bits & SIGN != ZERO else bits | SIGN


@kernel
def value_bits(key: np.uint64) -> np.uint64:
    """Invert `order_key`."""
    return key & ~SIGN if key & SIGN != ZERO else ~key


@kernel
def sort_column(
    column: np.ndarray,  # (n_rows,) float64; adding 0.0 has turned -0.0 into 0.0
    bits: np.ndarray,  # the same memory as uint64
    keys: np.ndarray,  # (2, n_rows) uint64
    ids: np.ndarray,  # (2, n_rows) int32
    counts: np.ndarray,  # (N_PASSES, N_DIGITS) int32
) -> tuple[int, int]:
    """Sort the known values; return the row of `keys` and `ids` that holds them, and their number."""
    for d in range(N_PASSES):
        for b in range(N_DIGITS):
            counts[d, b] = 0
    n_known = 0
    for i in range(len(column)):
        if column[i] == column[i]:
            key = order_key(bits[i])
            keys[0, n_known] = key
            ids[0, n_known] = i
            n_known += 1
            for d in range(N_PASSES):
                counts[d, np.int64((key >> np.uint64(d * DIGIT_BITS)) & DIGIT_MASK)] += 1
    side = 0
    if n_known == 0:
        return side, n_known
    for d in range(N_PASSES):
        shift = np.uint64(d * DIGIT_BITS)
        if counts[d, np.int64((keys[side, 0] >> shift) & DIGIT_MASK)] == n_known:
            continue  # the same digit everywhere
        at = np.int32(0)
        for b in range(N_DIGITS):
            n = counts[d, b]
            counts[d, b] = at
            at += n
        for k in range(n_known):
            key = keys[side, k]
            b = np.int64((key >> shift) & DIGIT_MASK)
            to = counts[d, b]
            counts[d, b] = to + 1
            keys[1 - side, to] = key
            ids[1 - side, to] = ids[side, k]
        side = 1 - side
    return side, n_known


@kernel
def number_values(
    keys: np.ndarray,
    ids: np.ndarray,
    side: int,
    n_known: int,
    weight: np.ndarray,  # (n_rows,) fixed point, or (1,) when every weight is 1
    distinct: np.ndarray,  # (n_rows,) uint64, written: keys of the distinct values
    mass: np.ndarray,  # (n_rows,) int64, written: their weights
) -> int:
    """List the distinct values in order with the weight of each; return their number."""
    n_distinct = 0
    is_unit = len(weight) == 1
    for k in range(n_known):
        key = keys[side, k]
        w = np.int64(1) if is_unit else weight[ids[side, k]]
        if n_distinct > 0 and distinct[n_distinct - 1] == key:
            mass[n_distinct - 1] += w
        else:
            distinct[n_distinct] = key
            mass[n_distinct] = w
            n_distinct += 1
    return n_distinct


@kernel
def fill_bins(mass: np.ndarray, n_distinct: int, n_bins: int) -> int:
    """Replace the weight of each distinct value by its bin, counted from 0; return the number of bins.

    A bin takes values until it holds its share of what was left when it opened, so that a heavy value gets a bin of its own
    and the rest share the remaining bins evenly.
    """
    left = np.int64(0)
    for k in range(n_distinct):
        left += mass[k]
    at = 0
    held = np.int64(0)
    share = left // n_bins
    for k in range(n_distinct):
        w = mass[k]
        bins_left = n_bins - at
        values_left = n_distinct - k
        if held > 0 and bins_left > 1 and (held >= share or held + w // 2 > share or values_left < bins_left):
            at += 1
            held = 0
            share = left // (n_bins - at)
        held += w
        left -= w
        mass[k] = at
    return at + 1


@kernel
def code_column(
    column: np.ndarray,
    bits: np.ndarray,
    weight: np.ndarray,
    max_codes: int,
    keys: np.ndarray,
    ids: np.ndarray,
    counts: np.ndarray,
    distinct: np.ndarray,
    mass: np.ndarray,
    codes: np.ndarray,  # (n_rows,) uint16, written
    low: np.ndarray,  # (max_codes,) uint64, written: bits of the lowest value behind each code
    high: np.ndarray,  # the same of the highest
) -> int:
    """Code one column; return the number of codes."""
    side, n_known = sort_column(column, bits, keys, ids, counts)
    if n_known < len(column):
        for i in range(len(column)):
            codes[i] = MISSING_CODE
    n_distinct = number_values(keys, ids, side, n_known, weight, distinct, mass)
    n_codes = n_distinct
    if n_distinct > max_codes:
        n_codes = fill_bins(mass, n_distinct, max_codes)
    else:
        for k in range(n_distinct):
            mass[k] = k
    for k in range(n_distinct):
        c = mass[k]
        if k == 0 or mass[k - 1] != c:
            low[c] = value_bits(distinct[k])
        high[c] = value_bits(distinct[k])
    at = 0
    for k in range(n_known):
        if keys[side, k] != distinct[at]:
            at += 1
        codes[ids[side, k]] = mass[at] + 1
    return n_codes


@kernel
def interleave(columns: np.ndarray, first: int, codes: np.ndarray) -> None:
    """Write columns (n_columns, n_rows) of codes into row-major codes from column `first` on."""
    n_columns, n_rows = columns.shape
    for i in range(n_rows):
        for j in range(n_columns):
            codes[i, first + j] = columns[j, i]
