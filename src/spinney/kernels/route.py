"""Which branch a row takes: one rule on codes for growing, its twin on values for everything after.

A test packs `feature << 4 | missing branch << 2 | kind`. Its argument is a float64: the threshold of THRESHOLD
(x <= threshold takes branch 0), the first word of the bitset of SUBSET (a set bit takes branch 0).
A missing value takes the missing branch; a level that the table did not have is missing to `table.schema` already.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined
from spinney._types import FEATURE_SHIFT, KIND_BITS, LANES, MISSING_BITS, MISSING_CODE, THRESHOLD

ONE = np.uint64(1)
# the parts of a link, as unsigned words: mixing signed and unsigned 64-bit integers would make floats
KIND_WORD = np.uint64((1 << KIND_BITS) - 1)
MISSING_WORD = np.uint64(KIND_BITS)
MISSING_BITS_WORD = np.uint64((1 << MISSING_BITS) - 1)
FEATURE_WORD = np.uint64(FEATURE_SHIFT)
TEST_WORD = np.uint64(0xFFFFFFFF)
CHILD_WORD = np.uint64(32)
NONE, TWO, THREE = np.uint64(0), np.uint64(2), np.uint64(3)


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
        return np.int64(value > argument)
    return np.int64(1) - np.int64(has_level(subsets, np.int64(argument), np.int64(value)))


@inlined
def step(
    node: np.uint64,
    row: np.uint64,
    is_easy: bool,  # no value of the block is missing, no test is a subset
    block: np.ndarray,
    cuts: np.ndarray,
    links: np.ndarray,
    subsets: np.ndarray,
) -> np.uint64:
    """The node that a row of the block goes to from `node`; a leaf leads to itself."""
    link = links[node, ONE]
    child = link >> CHILD_WORD
    cut = cuts[node, NONE]
    value = block[row, (link & TEST_WORD) >> FEATURE_WORD]
    if is_easy:  # the answer is added, not jumped on: which way a row goes cannot be predicted
        return child + np.uint64(value > cut)
    missing = np.int64((link >> MISSING_WORD) & MISSING_BITS_WORD)
    return child + np.uint64(branch_of_value(value, np.int64(link & KIND_WORD), cut, missing, subsets))


@door
def apply(
    values: np.ndarray,  # (n_rows, n_features) float32 or float64
    cuts: np.ndarray,  # (n_nodes, 2) float64: the argument of the test, and `links`
    links: np.ndarray,  # the same memory as uint64: first child << 32 | test in column 1; a leaf passes all to itself
    subsets: np.ndarray,
    block: np.ndarray,  # (LANES, n_features) float64 scratch
    leaf: np.ndarray,  # (n_rows,) int32, written
) -> None:
    """Write the leaf of each row.

    Four rows go down together: while one waits for its node to come from memory, the others have theirs. They are
    copied first, so that memory is read in sequence. The last rows may be done twice.
    """
    n_rows, n_features = values.shape
    for first in range(0, n_rows, LANES):
        n_missing = np.int64(0)
        for lane in range(LANES):
            i = min(first + lane, n_rows - 1)
            for j in range(n_features):
                value = np.float64(values[i, j])
                n_missing += np.int64(value != value)
                block[lane, j] = value
        is_easy = n_missing == 0 and len(subsets) == 0
        a = NONE
        b = NONE
        c = NONE
        d = NONE
        while True:
            next_a = step(a, NONE, is_easy, block, cuts, links, subsets)
            next_b = step(b, ONE, is_easy, block, cuts, links, subsets)
            next_c = step(c, TWO, is_easy, block, cuts, links, subsets)
            next_d = step(d, THREE, is_easy, block, cuts, links, subsets)
            if (a ^ next_a) | (b ^ next_b) | (c ^ next_c) | (d ^ next_d) == NONE:
                break
            a = next_a
            b = next_b
            c = next_c
            d = next_d
        leaf[min(first + 3, n_rows - 1)] = d
        leaf[min(first + 2, n_rows - 1)] = c
        leaf[min(first + 1, n_rows - 1)] = b
        leaf[first] = a
