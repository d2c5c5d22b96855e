"""Trees of few leaves as tests and bits: what `kernels.bitvector` reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._types import FEATURE_SHIFT, KIND_BITS, MISSING_BITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.tree.forest import Forest

DEBRUIJN = {32: 0x077CB531, 64: 0x03F79D71B4CB0A89}  # each window of 5 or 6 bits occurs once
TEST_MASK = np.uint64(0xFFFFFFFF)


class Bitvectors(NamedTuple):
    """The tests of every tree of a forest, and its leaves in the order that the kernel finds them in."""

    word_bits: int
    first_test: NDArray[np.int64]  # (n_trees + 1,)
    features: NDArray[np.int64]  # (n_tests,)
    thresholds: NDArray[Any]  # (n_tests,) float32 for words of 32 bits, else float64
    masks: NDArray[Any]  # (n_tests,) uint32 or uint64
    sides: NDArray[np.uint8]  # (n_tests,)
    leaf_values: NDArray[np.float64]  # (n_trees, word_bits)
    constants: NDArray[Any]  # (4,): see the kernel


def most_leaves(forest: Forest) -> int:
    """Leaves of the largest tree."""
    total = np.concatenate([[0], np.cumsum(forest.is_leaf)])
    return int(np.diff(total[forest.first_node]).max())


def can_be_bits(forest: Forest) -> bool:
    """Whether the tests are thresholds of two branches, and no tree has more leaves than a word bits."""
    if len(forest.subsets) or forest.n_classes or most_leaves(forest) > max(DEBRUIJN):
        return False
    tests = forest.hot[~forest.is_leaf, 1] & TEST_MASK
    missing = (tests >> np.uint64(KIND_BITS)) & np.uint64((1 << MISSING_BITS) - 1)
    return bool(np.all(missing < 2)) and bool(np.all(tests >> np.uint64(FEATURE_SHIFT) < forest.n_features))


def lay_bits(forest: Forest, word_bits: int, k: Any) -> Bitvectors:
    """Lay out a forest for words of 32 bits and float32 values, or of 64 bits and float64; k: the kernels."""
    n_trees, n_nodes = len(forest), forest.n_nodes
    n_tests = int(np.count_nonzero(~forest.is_leaf))
    first_test = np.empty(n_trees + 1, np.int64)
    features, cuts, masks = np.empty(n_tests, np.int64), np.empty(n_tests), np.empty(n_tests, np.uint64)
    sides, leaf_values = np.empty(n_tests, np.uint8), np.zeros((n_trees, word_bits))
    k.bitvector.lay_bits(
        forest.hot.view(np.float64), forest.hot, forest.first_node, forest.n_features, word_bits,
        np.uint64(DEBRUIJN[word_bits]), np.empty(n_nodes, np.int64), np.empty(n_nodes, np.int64), first_test, features,
        cuts, masks, sides, leaf_values,
    )  # fmt: skip
    word = np.uint32 if word_bits == 32 else np.uint64
    constants = np.array(
        [(1 << word_bits) - 1, 1, DEBRUIJN[word_bits], word_bits - (5 if word_bits == 32 else 6)], dtype=word
    )
    thresholds: NDArray[Any] = round_down(cuts) if word_bits == 32 else cuts
    return Bitvectors(word_bits, first_test, features, thresholds, masks.astype(word), sides, leaf_values, constants)


def round_down(x: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest float32 that is not above: a float32 value is above the one exactly if it is above the other."""
    with np.errstate(over="ignore"):
        rounded = x.astype(np.float32)
    is_above = rounded > x
    rounded[is_above] = np.nextafter(rounded[is_above], np.float32(-np.inf))
    return rounded
