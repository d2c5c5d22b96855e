"""Which branch a row takes: the one rule, on codes for growing and on values for everything after.

A threshold sends what is not above it to branch 0, a subset the levels whose bits are set. A missing value takes the
missing branch; a level that the table did not have is missing to `table.schema` already.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined
from spinney._types import MISSING_CODE, THRESHOLD

from .packed_levels import is_packed, packed_word

ONE = np.uint64(1)
LAST_BIT = np.uint64(63)


@inlined
def has_level(subsets: np.ndarray, first_word: int, level: int) -> bool:
    """Whether the bit of `level` is set in the plain bitset that starts at `first_word`."""
    word = subsets[first_word + (level >> 6)]
    return (word >> np.uint64(level & 63)) & ONE == ONE


@inlined
def takes_first(subsets: np.ndarray, argument: float, level: int) -> bool:
    """Whether a level takes branch 0 by the subset of a finished node, plain or packed."""
    if is_packed(argument):
        word = packed_word(subsets, np.uint64(np.int64(argument)), np.uint64(level))
        return (word >> (np.uint64(level) & LAST_BIT)) & ONE == ONE
    return has_level(subsets, np.int64(argument), level)


@inlined
def branch_of_code(code: int, kind: int, cut: int, missing: int, subsets: np.ndarray) -> int:
    """Branch of a code; cut: last code of branch 0, or the first word of a subset, plain as while trees grow."""
    if code == MISSING_CODE:
        return missing
    if kind == THRESHOLD:
        return np.int64(code > cut)
    return 0 if has_level(subsets, cut, code - 1) else 1


@inlined
def branch_of_known(value: float, threshold: float) -> int:
    """Branch of a known value at a threshold: 1 if it is above."""
    return np.int64(value > threshold)


@inlined
def branch_of_value(value: float, kind: int, argument: float, missing: int, subsets: np.ndarray) -> int:
    """Branch of a value; a category's value is the index of its level, its argument the place of the subset."""
    if value != value:  # NaN
        return missing
    if kind == THRESHOLD:
        return branch_of_known(value, argument)
    return np.int64(1) - np.int64(takes_first(subsets, argument, np.int64(value)))
