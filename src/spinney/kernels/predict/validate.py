"""Whether every node of a forest is sound, in one pass over its memory: what a file says is not believed before.

The same conditions stand in `Tree.check`, array by array, which finds the words for what is wrong. Here each tree is
gone through while it is in the cache; most of the time goes where the processor guesses wrong whether a node is a leaf.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined
from spinney._types import EVERY_BRANCH, SUBSET, THRESHOLD

from ..common.node_layout import child_of_link, feature_of, kind_of, missing_of, pack_leaf, test_of_link
from ..common.packed_levels import is_packed, is_sound_packing
from ..common.structs import Branching, CheckMarks, CheckTolerances, ForestArrays, ForestSums

SOUND = -1


@inlined
def is_finite(x: float) -> bool:
    """Whether x is neither infinite nor NaN."""
    return x - x == 0.0


@inlined
def weight_of(sums: ForestSums, node: int) -> float:
    """Weight of a node."""
    if len(sums.weights) > 0:
        return sums.weights[node]
    return np.float64(sums.whole_weights[node])


@inlined
def impurity_of(sums: ForestSums, node: int) -> float:
    """Impurity of a node."""
    if len(sums.impurities) > 0:
        return sums.impurities[node]
    return np.float64(sums.single_impurities[node])


@inlined
def n_branches_of(test: int) -> int:
    """Branches of a threshold or a subset."""
    if missing_of(test) == 2:
        return np.int64(3)
    return np.int64(2)


@inlined
def is_sound_subset(cut: float, levels: int, first_word: int, n_words: int, subsets: np.ndarray) -> bool:
    """Whether a subset lies within the n_words words of its tree, which begin at `first_word`."""
    if is_packed(cut):
        return is_sound_packing(subsets, first_word, n_words, cut, levels)
    return cut >= 0.0 and cut + np.float64((levels + 63) >> 6) <= np.float64(n_words)


@inlined
def is_sound_test(test: int, cut: float, t: int, forest: ForestArrays) -> bool:
    """Whether a feature exists and is asked what can be asked of it, in tree t."""
    n_levels, first_word = forest.n_levels, forest.first_word[t]
    feature = feature_of(test)
    kind = kind_of(test)
    if feature >= len(n_levels) or missing_of(test) == EVERY_BRANCH:
        return False
    levels = np.int64(n_levels[feature])
    if kind == THRESHOLD:
        return levels == 0 and cut == cut
    if kind != SUBSET or levels == 0:
        return False
    return is_sound_subset(cut, levels, first_word, forest.first_word[t + 1] - first_word, forest.subsets)


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
    at: Branching, sums: ForestSums, root_weight: float, impurity_slack: float, sum_tolerance: float
) -> bool:
    """Whether rows and weights of the branches add up to the node's, and the split does not raise the impurity."""
    n_rows = sums.n_rows
    first = at.first_child
    low = weight_of(sums, first)
    high = weight_of(sums, first + 1)
    sum_rows = np.int64(n_rows[first]) + np.int64(n_rows[first + 1])
    sum_weight = low + high
    sum_loss = low / root_weight * impurity_of(sums, first)
    sum_loss += high / root_weight * impurity_of(sums, first + 1)
    if at.n_branches > 2:
        apart = weight_of(sums, first + 2)
        sum_rows += np.int64(n_rows[first + 2])
        sum_weight += apart
        sum_loss += apart / root_weight * impurity_of(sums, first + 2)
    weight = weight_of(sums, at.node)
    loss = weight / root_weight * impurity_of(sums, at.node)
    if sum_rows != np.int64(n_rows[at.node]) or not abs(sum_weight - weight) <= sum_tolerance * weight:
        return False
    return sum_loss <= loss + impurity_slack


@inlined
def count_bad_sums(sums: ForestSums, lo: int, hi: int) -> int:
    """How many counts, weights and impurities of nodes lo .. hi are none."""
    n_bad = count_bad_numbers(sums.n_rows, lo, hi, True)
    if len(sums.weights) > 0:
        n_bad += count_bad_numbers(sums.weights, lo, hi, True)
    else:
        n_bad += count_bad_numbers(sums.whole_weights, lo, hi, True)
    if len(sums.impurities) > 0:
        n_bad += count_bad_numbers(sums.impurities, lo, hi, False)
    else:
        n_bad += count_bad_numbers(sums.single_impurities, lo, hi, False)
    return n_bad


@inlined
def largest_impurity(sums: ForestSums, lo: int, hi: int) -> float:
    """The largest impurity of nodes lo .. hi."""
    if len(sums.impurities) > 0:
        return largest(sums.impurities, lo, hi)
    return largest(sums.single_impurities, lo, hi)


@inlined
def is_sound_tree(
    t: int, forest: ForestArrays, sums: ForestSums, tolerances: CheckTolerances, marks: CheckMarks
) -> bool:
    """Whether every node of a tree is sound."""
    n_features = len(forest.n_levels)
    base = forest.first_node[t]
    n_nodes = forest.first_node[t + 1] - base
    first_mixed = forest.first_mixed[t]
    n_mixed = forest.first_mixed[t + 1] - first_mixed
    is_compact = len(sums.n_rows) == 0
    root_weight = 1.0
    slack = 0.0
    if not is_compact:
        if count_bad_sums(sums, base, base + n_nodes) > 0:
            return False
        slack = tolerances.impurity * largest_impurity(sums, base, base + n_nodes)
        root_weight = weight_of(sums, base)
    for i in range(n_nodes):
        marks.is_child[i] = 0
    for row in range(n_mixed):
        marks.is_used[row] = 0
    n_children = np.int64(0)
    for i in range(n_nodes):
        node = base + i
        link = forest.links[node, 1]
        cut = forest.cuts[node, 0]
        test = np.int64(test_of_link(link))
        if feature_of(test) == n_features:
            if link != pack_leaf(i, n_features):
                return False
            weight = 0.0 if is_compact else weight_of(sums, node)
            if not is_sound_leaf(
                cut, weight, tolerances.sums, first_mixed, n_mixed, forest.distributions, marks.is_used
            ):
                return False
            continue
        child = np.int64(child_of_link(link))
        n_branches = n_branches_of(test)
        if child <= i or child + n_branches > n_nodes or not is_sound_test(test, cut, t, forest):
            return False
        marks.is_child[child] = 1
        marks.is_child[child + 1] = 1
        marks.is_child[child + n_branches - 1] = 1
        n_children += n_branches
        if not is_compact:
            at = Branching(node, base + child, n_branches)
            if not is_sound_sum(at, sums, root_weight, slack, tolerances.sums):
                return False
    # n - 1 branches to n - 1 nodes, and n_mixed leaves with n_mixed rows: each has one, and no other has it
    if n_children != n_nodes - 1 or count_marks(marks.is_child, n_nodes) != n_nodes - 1:
        return False
    return count_marks(marks.is_used, n_mixed) == n_mixed


@door
def find_fault(forest: ForestArrays, sums: ForestSums, tolerances: CheckTolerances, marks: CheckMarks) -> int:
    """The first tree that is not sound, or SOUND."""
    for t in range(len(forest.first_node) - 1):
        if not is_sound_tree(t, forest, sums, tolerances, marks):
            return t
    return np.int64(SOUND)
