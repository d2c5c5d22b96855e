"""Whether every node of a forest is sound, in one pass over its memory: what a file says is not believed before.

The same conditions stand in `Tree.check`, array by array, which finds the words for what is wrong. Here each tree is
gone through while it is in the cache; most of the time goes where the processor guesses wrong whether a node is a leaf.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined
from spinney._types import EVERY_BRANCH, FEATURE_SHIFT, KIND_BITS, MISSING_BITS, SUBSET, THRESHOLD

SOUND = -1
KIND_MASK = (1 << KIND_BITS) - 1
MISSING_MASK = (1 << MISSING_BITS) - 1
TEST_WORD = np.uint64(0xFFFFFFFF)
CHILD_WORD = np.uint64(32)


@inlined
def is_finite(x: float) -> bool:
    """Whether x is neither infinite nor NaN."""
    return x - x == 0.0


@inlined
def one_of(doubles: np.ndarray, others: np.ndarray, node: int) -> float:
    """A quantity of a node that is held in one of two types, the array of the other being empty."""
    if len(doubles) > 0:
        return np.float64(doubles[node])
    return np.float64(others[node])


@inlined
def n_branches_of(test: int) -> int:
    """Branches of a threshold or a subset."""
    if (test >> KIND_BITS) & MISSING_MASK == 2:
        return np.int64(3)
    return np.int64(2)


@inlined
def is_sound_test(test: int, cut: float, n_words: int, n_levels: np.ndarray) -> bool:
    """Whether a feature exists and is asked what can be asked of it; n_words: of the subsets of the tree."""
    feature = test >> FEATURE_SHIFT
    kind = test & KIND_MASK
    if feature >= len(n_levels) or (test >> KIND_BITS) & MISSING_MASK == EVERY_BRANCH:
        return False
    levels = np.int64(n_levels[feature])
    if kind == THRESHOLD:
        return levels == 0 and cut == cut
    if kind != SUBSET or levels == 0:
        return False
    return cut >= 0.0 and cut == np.floor(cut) and cut + np.float64((levels + 63) >> 6) <= np.float64(n_words)


@inlined
def is_sound_mixture(row: int, weight: float, tolerance: float, distributions: np.ndarray) -> bool:
    """Whether the classes of a mixed leaf have weights, which add up to the leaf's; weight 0: it is not known."""
    total = 0.0
    for c in range(distributions.shape[1]):
        if not distributions[row, c] >= 0.0:
            return False
        total += distributions[row, c]
    if not (total > 0.0 and is_finite(total)):
        return False
    return weight == 0.0 or abs(total - weight) <= tolerance * weight


@inlined
def is_sound_leaf(
    cut: float,
    weight: float,
    tolerance: float,
    first_mixed: int,
    n_mixed: int,
    distributions: np.ndarray,
    is_used: np.ndarray,  # (n_mixed,) uint8, written: rows that belong to a leaf
) -> bool:
    """Whether a leaf holds a value, a class, or a row of class weights that no other leaf has."""
    n_classes = distributions.shape[1]
    if n_classes == 0:
        return is_finite(cut)
    if not (cut == np.floor(cut) and cut < n_classes and -1.0 - cut < n_mixed):
        return False
    if cut >= 0.0:
        return True
    row = np.int64(-1.0 - cut)
    if is_used[row] != 0:
        return False
    is_used[row] = 1
    return is_sound_mixture(first_mixed + row, weight, tolerance, distributions)


@inlined
def count_bad_numbers(x: np.ndarray, lo: int, hi: int, is_positive: bool) -> int:
    """How many of x[lo:hi] are not finite, negative or, if they should be positive, zero."""
    n_bad = np.int64(0)
    for i in range(lo, hi):
        value = np.float64(x[i])
        n_bad += np.int64(not is_finite(value)) | np.int64(value < 0.0) | (np.int64(value == 0.0) & is_positive)
    return n_bad


@inlined
def count_marks(is_marked: np.ndarray, n: int) -> int:
    """How many of the first n entries are 1, the others being 0."""
    n_marked = np.int64(0)
    for i in range(n):
        n_marked += np.int64(is_marked[i])
    return n_marked


@inlined
def largest(x: np.ndarray, lo: int, hi: int) -> float:
    """The largest of x[lo:hi], none negative; 0 where there are none."""
    most = 0.0
    for i in range(lo, hi):
        value = np.float64(x[i])
        most = value if value > most else most
    return most


@inlined
def is_sound_sum(
    node: int,
    first: int,  # child
    n_branches: int,
    impurity_slack: float,
    sum_tolerance: float,
    n_rows: np.ndarray,
    weights: np.ndarray,
    whole_weights: np.ndarray,
    impurities: np.ndarray,
    single_impurities: np.ndarray,
    root_weight: float,
) -> bool:
    """Whether rows and weights of the branches add up to the node's, and the split does not raise the impurity."""
    low = one_of(weights, whole_weights, first)
    high = one_of(weights, whole_weights, first + 1)
    sum_rows = np.int64(n_rows[first]) + np.int64(n_rows[first + 1])
    sum_weight = low + high
    sum_loss = low / root_weight * one_of(impurities, single_impurities, first)
    sum_loss += high / root_weight * one_of(impurities, single_impurities, first + 1)
    if n_branches > 2:
        apart = one_of(weights, whole_weights, first + 2)
        sum_rows += np.int64(n_rows[first + 2])
        sum_weight += apart
        sum_loss += apart / root_weight * one_of(impurities, single_impurities, first + 2)
    weight = one_of(weights, whole_weights, node)
    loss = weight / root_weight * one_of(impurities, single_impurities, node)
    if sum_rows != np.int64(n_rows[node]) or not abs(sum_weight - weight) <= sum_tolerance * weight:
        return False
    return sum_loss <= loss + impurity_slack


@door
def find_fault(
    cuts: np.ndarray,  # (n_nodes, 2) float64 and
    links: np.ndarray,  # uint64: see `Tree.hot`
    first_node: np.ndarray,  # (n_trees + 1,) int64, as are the next two; they part the arrays: this has been checked
    first_word: np.ndarray,
    first_mixed: np.ndarray,
    n_levels: np.ndarray,  # (n_features,) int32, none negative
    distributions: np.ndarray,  # (n_mixed, n_classes) float64
    n_rows: np.ndarray,  # (n_nodes,) uint32; (0,): a compact forest
    weights: np.ndarray,  # (n_nodes,) float64, or (0,) and
    whole_weights: np.ndarray,  # uint32: one signature for all forests, so that no file waits for a compiler
    impurities: np.ndarray,  # (n_nodes,) float64, or (0,) and
    single_impurities: np.ndarray,  # float32
    sum_tolerance: float,
    impurity_tolerance: float,
    is_child: np.ndarray,  # (nodes of the largest tree,) uint8 scratch
    is_used: np.ndarray,  # (most mixed leaves of a tree,) uint8 scratch
) -> int:
    """The first tree that is not sound, or SOUND."""
    n_features = len(n_levels)
    is_compact = len(n_rows) == 0
    stay = np.uint64((n_features << FEATURE_SHIFT) | THRESHOLD)
    for t in range(len(first_node) - 1):
        base = first_node[t]
        n_nodes = first_node[t + 1] - base
        n_words = first_word[t + 1] - first_word[t]
        n_mixed = first_mixed[t + 1] - first_mixed[t]
        root_weight = 1.0
        slack = 0.0
        if not is_compact:
            n_bad = count_bad_numbers(n_rows, base, base + n_nodes, True)
            if len(weights) > 0:
                n_bad += count_bad_numbers(weights, base, base + n_nodes, True)
            else:
                n_bad += count_bad_numbers(whole_weights, base, base + n_nodes, True)
            if len(impurities) > 0:
                n_bad += count_bad_numbers(impurities, base, base + n_nodes, False)
                slack = impurity_tolerance * largest(impurities, base, base + n_nodes)
            else:
                n_bad += count_bad_numbers(single_impurities, base, base + n_nodes, False)
                slack = impurity_tolerance * largest(single_impurities, base, base + n_nodes)
            if n_bad > 0:
                return t
            root_weight = one_of(weights, whole_weights, base)
        for i in range(n_nodes):
            is_child[i] = 0
        for row in range(n_mixed):
            is_used[row] = 0
        n_children = np.int64(0)
        for i in range(n_nodes):
            node = base + i
            link = links[node, 1]
            test = np.int64(link & TEST_WORD)
            if test >> FEATURE_SHIFT == n_features:
                if link != (np.uint64(i) << CHILD_WORD) | stay:
                    return t
                weight = 0.0 if is_compact else one_of(weights, whole_weights, node)
                if not is_sound_leaf(
                    cuts[node, 0], weight, sum_tolerance, first_mixed[t], n_mixed, distributions, is_used
                ):
                    return t
                continue
            child = np.int64(link >> CHILD_WORD)
            n_branches = n_branches_of(test)
            if child <= i or child + n_branches > n_nodes or not is_sound_test(test, cuts[node, 0], n_words, n_levels):
                return t
            is_child[child] = 1
            is_child[child + 1] = 1
            is_child[child + n_branches - 1] = 1
            n_children += n_branches
            if not is_compact:
                if not is_sound_sum(
                    node, base + child, n_branches, slack, sum_tolerance, n_rows, weights, whole_weights, impurities,
                    single_impurities, root_weight,
                ):  # fmt: skip
                    return t
        # n - 1 branches to n - 1 nodes, and n_mixed leaves with n_mixed rows: each has one, and no other has it
        if n_children != n_nodes - 1 or count_marks(is_child, n_nodes) != n_nodes - 1:
            return t
        if count_marks(is_used, n_mixed) != n_mixed:
            return t
    return np.int64(SOUND)
