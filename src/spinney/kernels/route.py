"""Which branch a row takes: one rule on codes for growing, its twin on values for everything after.

A test packs `feature << 4 | missing branch << 2 | kind`. Its argument is a float64: the threshold of THRESHOLD
(x <= threshold takes branch 0), the first word of the bitset of SUBSET (a set bit takes branch 0).
A level beyond the bitset, like a missing value, takes the missing branch.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined, kernel
from spinney._types import FEATURE_SHIFT, KIND_BITS, LEAF, MISSING_CODE, THRESHOLD

ONE = np.uint64(1)
WORD_BITS = 64
KIND_MASK = (1 << KIND_BITS) - 1
MISSING_MASK = (1 << (FEATURE_SHIFT - KIND_BITS)) - 1


@kernel
def count_branches(test: int) -> int:
    """Number of children of a node with this test."""
    if test & KIND_MASK == LEAF:
        return 0
    return 3 if (test >> KIND_BITS) & MISSING_MASK == 2 else 2


@inlined
def has_level(subsets: np.ndarray, first_word: int, level: int) -> bool:
    """Whether the bit of `level` is set in the bitset that starts at `first_word`."""
    word = subsets[first_word + (level >> 6)]
    return (word >> np.uint64(level & 63)) & ONE == ONE


@inlined
def branch_of_code(code: int, kind: int, cut: int, missing: int, subsets: np.ndarray) -> int:
    """Branch of a code; cut: last code of branch 0, or the first word of the subset."""
    if code == MISSING_CODE:
        return missing
    if kind == THRESHOLD:
        return 0 if code <= cut else 1
    return 0 if has_level(subsets, cut, code - 1) else 1


@inlined
def branch_of_value(value: float, kind: int, argument: float, missing: int, subsets: np.ndarray) -> int:
    """Branch of a value; a category's value is the index of its level."""
    if value != value:  # NaN
        return missing
    if kind == THRESHOLD:
        return 0 if value <= argument else 1
    return 0 if has_level(subsets, np.int64(argument), np.int64(value)) else 1


@door
def apply(
    values: np.ndarray,  # (n_rows, n_features)
    test: np.ndarray,
    first_child: np.ndarray,
    threshold: np.ndarray,
    subsets: np.ndarray,
    lo: int,
    hi: int,
    leaf: np.ndarray,  # (n_rows,) written
) -> None:
    """Write the leaf of each of the rows lo .. hi."""
    for i in range(lo, hi):
        node = np.int64(0)
        word = np.int64(test[0])
        while word & KIND_MASK != LEAF:
            value = np.float64(values[i, word >> FEATURE_SHIFT])
            kind = word & KIND_MASK
            missing = (word >> KIND_BITS) & MISSING_MASK
            node = np.int64(first_child[node]) + branch_of_value(value, kind, threshold[node], missing, subsets)
            word = np.int64(test[node])
        leaf[i] = node
