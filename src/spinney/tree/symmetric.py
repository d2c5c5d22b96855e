"""Trees that ask the same at all nodes of a depth, as `kernels.predict.symmetric` reads them.

CatBoost grows such trees; a tree of one test or of none is one as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._node_layout import child_of_link, feature_of_link, missing_of_link, test_of_link
from spinney._types import SYMMETRIC_TESTS
from spinney.kernels.common.structs import AskedColumns, BinSegments, SymmetricTrees
from spinney.tree.bitvectors import MOST_COLUMNS, MOST_THRESHOLDS, Thresholds, ask_columns, lay_cuts, rank_thresholds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.tree.forest import Forest

MOST_DEPTH = 16  # the number of a leaf has 16 bits at most
BYTE_DEPTH = 8
BYTE_THRESHOLDS = 254  # of a feature: ranks of 8 bits, of which the last is above all of them


class SymmetricNodes(NamedTuple):
    """What each tree asks, and its leaves from left to right, as nodes of the forest."""

    depth: NDArray[np.int64]  # (n_trees,)
    levels: list[tuple[NDArray[np.int64], NDArray[np.int64]]]  # per depth: trees that ask, a node of each that does
    leaves: NDArray[np.int64]  # (n_leaves,): of all trees, end to end


class SymmetricLayout(NamedTuple):
    """Symmetric trees as kernels read them."""

    columns: AskedColumns
    segments: BinSegments  # over their thresholds
    trees: SymmetricTrees
    constants: NDArray[Any]


def read_symmetric(forest: Forest) -> SymmetricNodes | None:
    """Read a forest of numbers depth by depth, from left to right; None where a tree asks different things at one."""
    if forest.n_classes or len(forest.subsets) or forest.linear is not None:
        return None
    tree = np.arange(len(forest))
    node = forest.first_node[:-1, None]  # (n_trees, nodes of the depth)
    depth = np.zeros(len(forest), np.int64)
    levels: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
    ended = []
    while len(tree):
        is_leaf = forest.is_leaf[node]
        ends = is_leaf[:, 0]
        cut, test = forest.hot[node, 0], test_of_link(forest.hot[node, 1])
        asks_same = ~is_leaf & (test == test[:, :1]) & (cut == cut[:, :1])
        if not np.where(ends[:, None], is_leaf, asks_same).all() or (len(levels) == MOST_DEPTH and not ends.all()):
            return None
        ended.append((tree[ends], node[ends]))
        tree, node = tree[~ends], node[~ends]
        levels.append((tree, node[:, 0]))
        depth[tree] += 1
        left = forest.first_node[tree, None] + child_of_link(forest.hot[node, 1]).astype(np.int64)
        node = np.stack([left, left + 1], axis=2).reshape(len(tree), 2 * node.shape[1])
    leaves = np.empty(int((1 << depth).sum()), np.int64)
    first = np.concatenate([[0], np.cumsum(1 << depth)])
    for trees, nodes in ended:
        leaves[first[trees, None] + np.arange(nodes.shape[1])] = nodes
    return SymmetricNodes(depth, levels, leaves) if can_be_ranked(forest) else None


def can_be_ranked(forest: Forest) -> bool:
    """Whether missing values take one of two branches, and thresholds of a feature have ranks."""
    links = forest.hot[~forest.is_leaf, 1]
    n_tests = np.bincount(feature_of_link(links), minlength=1)
    is_small = n_tests.max() <= MOST_THRESHOLDS and np.count_nonzero(n_tests) <= MOST_COLUMNS
    return bool(is_small and not np.any(missing_of_link(links) > 1))


def lay_symmetric(
    forest: Forest, nodes: SymmetricNodes, dtype: np.dtype[Any], k: Any, *, n_raw: int
) -> SymmetricLayout:
    """Lay out a symmetric forest for values of float32 or float64; k: the kernels; n_raw: trees of a round."""
    found = rank_thresholds(forest, dtype)
    is_byte = found.n_each.max(initial=0) <= BYTE_THRESHOLDS and nodes.depth.max() <= BYTE_DEPTH
    small = np.dtype(np.uint8 if is_byte else np.uint16)
    return SymmetricLayout(
        ask_columns(forest, found),
        lay_cuts(found, k),
        lay_tests(forest, nodes, found, small, n_raw),
        np.array([0, (1 << 8 * small.itemsize) - 1], small),
    )


def lay_tests(
    forest: Forest, nodes: SymmetricNodes, found: Thresholds, small: np.dtype[Any], n_raw: int
) -> SymmetricTrees:
    """The tests of each tree, as many as are asked together or a multiple of it, and its leaves."""
    n_tests = -(-np.maximum(nodes.depth, 1) // SYMMETRIC_TESTS) * SYMMETRIC_TESTS
    first_test = np.concatenate([[0], np.cumsum(n_tests)])
    column, missing = np.zeros((2, int(first_test[-1])), np.int64)
    rank, worth = np.zeros((2, int(first_test[-1])), small)
    for level, (tree, node) in enumerate(nodes.levels):
        at = first_test[tree] + level
        link = forest.hot[node, 1]
        column[at] = np.searchsorted(found.features, feature_of_link(link))
        missing[at] = missing_of_link(link)
        rank[at] = np.minimum(found.ranks[node], (1 << 8 * small.itemsize) - 2)
        worth[at] = 1 << (nodes.depth[tree] - 1 - level)
    first_leaf = np.concatenate([[0], np.cumsum(1 << nodes.depth)]).astype(np.uint64)
    values = np.ascontiguousarray(forest.hot[nodes.leaves, 0]).view(np.float64)
    is_shared = shares_tests(n_tests, (column, missing, rank, worth), n_raw)
    return SymmetricTrees(first_test, column, missing, rank, worth, first_leaf, values, is_shared)


def shares_tests(n_tests: NDArray[np.int64], tests: tuple[NDArray[Any], ...], n_raw: int) -> bool:
    """Whether the trees of a round ask the same; tests: of all trees, end to end."""
    if len(n_tests) % n_raw or not np.array_equal(n_tests, np.repeat(n_tests[::n_raw], n_raw)):
        return False
    tree = np.repeat(np.arange(len(n_tests)), n_tests)
    mine = np.cumsum(n_tests) - n_tests
    first = mine[tree // n_raw * n_raw] + np.arange(len(tree)) - mine[tree]
    return all(np.array_equal(part, part[first]) for part in tests)
