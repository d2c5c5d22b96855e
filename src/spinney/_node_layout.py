"""Tests and links of nodes, packed and unpacked as arrays: the functions of the kernels' layout, for NumPy.

What a mask or a shift is, `kernels/common/node_layout.py` alone knows; this gives its interpreted functions types. A
*test* packs the feature, the branch of missing values and the kind of question; a *link* the first child and the test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from spinney._jit import interpreted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Whole = NDArray[np.int64]
    Words = NDArray[np.uint64]

_layout = interpreted().common.node_layout

WORD_BITS = 64  # levels that one word of a bitset holds
MOST_FEATURES: int = _layout.MOST_FEATURES  # a leaf asks for a feature behind the last


class UnpackedTest(NamedTuple):
    """The parts of one test."""

    feature: int
    missing: int  # branch of missing values; of a surrogate 1 if its branches are swapped
    kind: int  # LEAF, THRESHOLD, SUBSET, MULTIWAY


# --- Tests ------------------------------------------------------------------------------------------------------


def unpack_test(test: int) -> UnpackedTest:
    """The parts of one test."""
    return UnpackedTest(_layout.feature_of(test), _layout.missing_of(test), _layout.kind_of(test))


def pack_test(feature: Any, missing: Any, kind: Any) -> Any:
    """One test of ints, or tests, int64, of int64 arrays."""
    return _layout.pack_test(feature, missing, kind)


def feature_of(test: NDArray[Any]) -> Whole:
    """The feature that each test asks for."""
    return cast("Whole", _layout.feature_of(test.astype(np.int64)))


def missing_of(test: NDArray[Any]) -> Whole:
    """The branch of missing values of each test, or EVERY_BRANCH; of a surrogate 1 if its branches are swapped."""
    return cast("Whole", _layout.missing_of(test.astype(np.int64)))


def kind_of(test: NDArray[Any]) -> Whole:
    """The kind of each test: LEAF, THRESHOLD, SUBSET, MULTIWAY."""
    return cast("Whole", _layout.kind_of(test.astype(np.int64)))


# --- Links ------------------------------------------------------------------------------------------------------


def pack_link(child: NDArray[Any], test: NDArray[Any]) -> Words:
    """Links of nodes that split."""
    return cast("Words", _layout.pack_link(child, test))


def pack_leaf(node: NDArray[Any], n_features: int) -> Words:
    """Links of leaves: each to itself."""
    return cast("Words", _layout.pack_leaf(node, n_features))


def test_of_link(link: Words) -> Words:
    """The test of each link; a leaf's asks for the feature behind the last."""
    return cast("Words", _layout.test_of_link(link))


def child_of_link(link: Words) -> Whole:
    """Where branch 0 of each link leads."""
    return cast("Whole", _layout.child_of_link(link).astype(np.int64))


def feature_of_link(link: Words) -> Whole:
    """The feature that each link asks for; of a leaf the number of features."""
    return cast("Whole", _layout.feature_of_link(link).astype(np.int64))


def missing_of_link(link: Words) -> Whole:
    """The branch of missing values of each link."""
    return cast("Whole", _layout.missing_of_link(link).astype(np.int64))


def kind_of_link(link: Words) -> Whole:
    """The kind of each link; of a leaf THRESHOLD."""
    return cast("Whole", _layout.kind_of_link(link).astype(np.int64))


# --- Steps ------------------------------------------------------------------------------------------------------


def pack_step(child: NDArray[Any], rank: NDArray[Any], place: NDArray[Any]) -> Words:
    """Steps of nodes, for values that are ranks; of leaves, whose rank is MOST_RANKS, each to itself."""
    return cast("Words", _layout.pack_step(child, rank, place))


def pack_row_step(child: NDArray[Any], held: NDArray[Any], place: NDArray[Any], bits: int) -> Words:
    """Steps of nodes for one row: `most_held` less the rank, or what leaves hold; a place of so many bits."""
    return cast("Words", _layout.pack_row_step(child, held, place, bits))


def most_held(bits: int) -> int:
    """The largest number that a step for one row holds besides a place of so many bits."""
    return int(_layout.most_held(np.uint64(bits)))
