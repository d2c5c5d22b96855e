"""How a node's test and its link are packed: the one place that knows a mask or a shift.

  test, 32 bits    feature (28) | missing branch (2) | kind (2)
  link, 64 bits    first child (32) | test (32)
  step, 64 bits    first child (32) | most ranks - rank of the threshold, or what a leaf holds (16) | place (16)
                   for one row: first child (32) | the same (32 - b) | place of the value in a row (b)

A test stands in an integer of its own while a tree grows (int64) and in its arrays (uint32). A link is what prediction
reads: the test and where it leads in one word. A leaf's link leads to itself and asks for a feature that no row has.

A step is a threshold for values that are ranks, in the upper half of 32 bits: added to the word, one that is above the
threshold carries into the child, so that the upper half is where the row goes (`predict/ranked.py`). The place of a
leaf is one whose rank is 0, so that the bits of the threshold are free to hold what it says. Where one row goes down
all trees (`predict/ranked_row.py`), there are as many bits of a place as its columns need, and ranks have the rest.

Functions of a link keep to unsigned words: mixing signed and unsigned 64-bit integers would make floats, and an index
that may be negative costs a check. Interpreted, every function takes arrays as well.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined
from spinney._types import MOST_PLACES, MOST_RANKS, THRESHOLD

KIND_BITS = 2
MISSING_BITS = 2
FEATURE_SHIFT = KIND_BITS + MISSING_BITS
TEST_BITS = 32
MOST_FEATURES = 1 << (TEST_BITS - FEATURE_SHIFT)

KIND_MASK = (1 << KIND_BITS) - 1
MISSING_MASK = (1 << MISSING_BITS) - 1

KIND_WORD = np.uint64(KIND_MASK)
MISSING_WORD = np.uint64(MISSING_MASK)
MISSING_SHIFT_WORD = np.uint64(KIND_BITS)
FEATURE_SHIFT_WORD = np.uint64(FEATURE_SHIFT)
TEST_WORD = np.uint64((1 << TEST_BITS) - 1)
CHILD_SHIFT_WORD = np.uint64(TEST_BITS)
RANK_SHIFT_WORD = np.uint64(16)
PLACE_WORD = np.uint64(MOST_PLACES - 1)
ONE_WORD = np.uint64(1)


# --- Tests ---------------------------------------------------------------------------------------------------------


@inlined
def pack_test(feature: int, missing: int, kind: int) -> int:
    """The test of a node: which feature, the branch of missing values, the kind of question."""
    return (feature << FEATURE_SHIFT) | (missing << KIND_BITS) | kind


@inlined
def kind_of(test: int) -> int:
    """LEAF, THRESHOLD, SUBSET or MULTIWAY."""
    return test & KIND_MASK


@inlined
def missing_of(test: int) -> int:
    """The branch of missing values; of a surrogate 1 if its branches are swapped."""
    return (test >> KIND_BITS) & MISSING_MASK


@inlined
def feature_of(test: int) -> int:
    """The feature that a test asks for."""
    return test >> FEATURE_SHIFT


# --- Links ---------------------------------------------------------------------------------------------------------


@inlined
def pack_link(child: int, test: int) -> np.uint64:
    """The link of a node that splits."""
    return (np.uint64(child) << CHILD_SHIFT_WORD) | np.uint64(test)


@inlined
def pack_leaf(node: int, n_features: int) -> np.uint64:
    """The link of a leaf: to itself, by a feature beyond the last, which a block of rows keeps at 0."""
    stay = (np.uint64(n_features) << FEATURE_SHIFT_WORD) | np.uint64(THRESHOLD)
    return (np.uint64(node) << CHILD_SHIFT_WORD) | stay


@inlined
def test_of_link(link: np.uint64) -> np.uint64:
    """The test of a link."""
    return link & TEST_WORD


@inlined
def child_of_link(link: np.uint64) -> np.uint64:
    """Where branch 0 of a link leads."""
    return link >> CHILD_SHIFT_WORD


@inlined
def kind_of_link(link: np.uint64) -> np.uint64:
    """As `kind_of`."""
    return link & KIND_WORD


@inlined
def missing_of_link(link: np.uint64) -> np.uint64:
    """As `missing_of`."""
    return (link >> MISSING_SHIFT_WORD) & MISSING_WORD


@inlined
def feature_of_link(link: np.uint64) -> np.uint64:
    """As `feature_of`; of a leaf the number of features."""
    return (link & TEST_WORD) >> FEATURE_SHIFT_WORD


# --- Steps ---------------------------------------------------------------------------------------------------------


@inlined
def pack_step(child: int, rank: int, place: int) -> np.uint64:
    """The step of a node that sends ranks above `rank` to the second child; a leaf holds MOST_RANKS less that."""
    room = np.uint64(MOST_RANKS) - np.uint64(rank)
    return (np.uint64(child) << CHILD_SHIFT_WORD) | (room << RANK_SHIFT_WORD) | np.uint64(place)


@inlined
def lift_rank(rank: np.uint16) -> np.uint32:
    """The rank of a value as it is added to a step."""
    return np.uint32(np.uint64(rank) << RANK_SHIFT_WORD)


@inlined
def place_of_step(step: np.uint64) -> np.uint64:
    """Where in a row the value stands that a step asks for."""
    return step & PLACE_WORD


@inlined
def child_by_rank(step: np.uint64, lifted: np.uint32) -> np.uint64:
    """Where a value leads, by its lifted rank."""
    return (step + np.uint64(lifted)) >> CHILD_SHIFT_WORD


@inlined
def pack_row_step(child: int, held: int, place: int, bits: int) -> np.uint64:
    """The step of a node for one row; held: `most_held` less the rank of its threshold, or what a leaf holds."""
    return (np.uint64(child) << CHILD_SHIFT_WORD) | (np.uint64(held) << np.uint64(bits)) | np.uint64(place)


@inlined
def most_held(bits: np.uint64) -> np.uint64:
    """The largest number that a step for one row holds besides a place of so many bits."""
    return TEST_WORD >> bits


@inlined
def held_by_step(step: np.uint64, bits: np.uint64) -> np.uint64:
    """What the leaf of a step holds; bits: of a place, 16 where rows are many."""
    return (step & TEST_WORD) >> bits


@inlined
def place_in_row(step: np.uint64, bits: np.uint64) -> np.uint64:
    """Where the rank stands that a step for one row asks for."""
    return step & ((ONE_WORD << bits) - ONE_WORD)
