"""A forest as one array, for one row at a time: what `kernels.predict.one_row` reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._node_layout import child_of_link, feature_of_link, kind_of_link, pack_link, test_of_link
from spinney._types import (
    HAS_SHARES,
    HEAD_SIZE,
    LANES,
    LEAF,
    MOST_STEPS,
    N_FEATURES,
    N_TREES,
    SUBSET,
    WIDTH,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.tree.forest import Forest

NOTHING = np.float64(-0.0).view(np.uint64)  # added to a sum, leaves its bits alone, also those of -0.0
MOST_WORDS = 1 << 32  # a place in the array has 32 bits: 32 GB


def pack_values(forest: Forest, n_raw: int, n_trees: int, start: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Pack trees whose leaves hold values.

    Parameters
    ----------
    forest : Forest
    n_raw : int
        Sums: tree t adds to sum t % n_raw. 1 for the votes of a regression forest; as many as there are trees gives
        what each of them says.
    n_trees : int
        The first trees alone are used.
    start : float64 (n_raw,)
        What the sums begin with.

    Returns
    -------
    uint64 (n_words,), read-only
        With it, `one_row.add_up(packed, x, out)` writes n_raw sums: the very additions of `add_rounds` and `add_votes`.
    """
    return pack_forest(forest, n_trees, np.asarray(start, np.float64).reshape(n_raw), has_shares=False)


def pack_shares(forest: Forest, n_trees: int) -> NDArray[np.uint64]:
    """Pack the first trees of a classification forest: sums of class shares, the very additions of `add_votes`."""
    n_classes = max(forest.n_classes, 1)
    return pack_forest(forest, n_trees, np.zeros(n_classes), has_shares=n_classes > 1)


def pack_forest(forest: Forest, n_trees: int, start: NDArray[np.float64], *, has_shares: bool) -> NDArray[np.uint64]:
    """Lay out head, start, roots, nodes, subsets and shares end to end."""
    first_node = forest.first_node[: n_trees + 1]
    n_nodes, n_words = int(first_node[-1]), int(forest.first_word[n_trees])
    shares = forest.shares[: int(forest.first_mixed[n_trees])] if has_shares else np.zeros((0, len(start)))
    n_roots = -(-n_trees // LANES) * LANES
    at_roots = HEAD_SIZE + len(start)
    at_nodes = (at_roots + n_roots + 1) // 2 * 2  # a node does not straddle two lines of the cache
    at_subsets = at_nodes + 2 * n_nodes
    at_shares = at_subsets + n_words
    at_spare = at_shares + shares.size  # a leaf that changes no sum, and its shares
    size = at_spare + 2 + len(start)
    if size > MOST_WORDS:
        raise ValueError(f"a forest of {size * 8 / 1e9:.0f} GB is too large for one array; predict many rows at once")
    packed = np.zeros(size, np.uint64)
    packed[N_TREES] = n_trees
    packed[WIDTH] = len(start)
    packed[N_FEATURES] = forest.n_features
    packed[HAS_SHARES] = has_shares
    packed[MOST_STEPS] = np.diff(first_node).max(initial=0)
    packed[HEAD_SIZE:at_roots] = start.view(np.uint64)
    packed[at_roots : at_roots + n_trees] = at_nodes + 2 * first_node[:-1]
    packed[at_roots + n_trees : at_nodes] = at_spare
    nodes = packed[at_nodes:at_subsets].reshape(-1, 2)
    lay_links(forest, first_node, at_nodes, nodes)
    lay_arguments(forest, n_trees, at_subsets, nodes)
    if has_shares:
        lay_classes(forest, first_node, at_shares, nodes)
    packed[at_subsets:at_shares] = forest.subsets[:n_words]
    packed[at_shares:at_spare] = shares.reshape(-1).view(np.uint64)
    packed[at_spare:] = NOTHING
    packed[at_spare + 1] = pack_link(np.array(at_spare), np.array(LEAF))
    if has_shares:
        packed[at_spare] = at_spare + 2
    packed.flags.writeable = False  # threads share it; and a kernel is compiled per type
    return packed


def lay_links(forest: Forest, first_node: NDArray[np.int64], at_nodes: int, nodes: NDArray[np.uint64]) -> None:
    """Write the second words of nodes: children as places in the array, tests without the one that leaves ask."""
    link = forest.hot[: len(nodes), 1]
    root = np.repeat(at_nodes + 2 * first_node[:-1], np.diff(first_node))
    test = np.where(forest.is_leaf[: len(nodes)], LEAF, test_of_link(link))
    nodes[:, 1] = pack_link(root + 2 * child_of_link(link), test)


def lay_arguments(forest: Forest, n_trees: int, at_subsets: int, nodes: NDArray[np.uint64]) -> None:
    """Write the first words of nodes: thresholds, values and bitsets, these with their number of levels."""
    nodes[:, 0] = forest.hot[: len(nodes), 0]
    subset = np.flatnonzero(kind_of_link(nodes[:, 1]) == SUBSET)
    if len(subset) == 0:
        return
    tree = np.searchsorted(forest.first_node[: n_trees + 1], subset, side="right") - 1
    word = at_subsets + forest.first_word[tree] + node_floats(nodes, subset).astype(np.int64)
    n_levels = forest.n_levels[feature_of_link(nodes[subset, 1])]
    nodes[subset, 0] = pack_link(n_levels, word)  # two halves of a word, as those of a link


def lay_classes(forest: Forest, first_node: NDArray[np.int64], at_shares: int, nodes: NDArray[np.uint64]) -> None:
    """Write the first words of leaves: a place of the sums for a pure one, of its shares for a mixed one."""
    leaf = np.flatnonzero(forest.is_leaf[: len(nodes)])
    code = node_floats(nodes, leaf).astype(np.int64)
    tree = np.searchsorted(first_node, leaf, side="right") - 1
    row = forest.first_mixed[tree] - 1 - code
    nodes[leaf, 0] = np.where(code >= 0, HEAD_SIZE + code, at_shares + forest.n_classes * row)


def node_floats(nodes: NDArray[np.uint64], which: NDArray[Any]) -> NDArray[np.float64]:
    """First words of nodes as numbers."""
    return np.ascontiguousarray(nodes[which, 0]).view(np.float64)
