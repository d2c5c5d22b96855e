"""A forest as one array, for one row at a time: what `kernels.predict.one_row` reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._node_layout import child_of_link, feature_of_link, kind_of_link, pack_link, test_of_link
from spinney._types import (
    DIVISOR,
    HAS_SHARES,
    HEAD_SIZE,
    LANES,
    LEAF,
    MOST_STEPS,
    N_CELLS,
    N_FEATURES,
    N_TREES,
    SUBSET,
    WIDTH,
)
from spinney.tree.subset_words import is_packed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.tree.forest import Forest

NOTHING = np.float64(-0.0).view(np.uint64)  # added to a sum, leaves its bits alone, also those of -0.0
MOST_WORDS = 1 << 32  # a place in the array has 32 bits: 32 GB


class RowSums(NamedTuple):
    """Sums over the trees of a forest that answer one row: the very additions of `add_rounds` and `add_votes`."""

    forest: Forest
    n_trees: int  # the first ones
    start: NDArray[np.float64]  # (width,): what the sums begin with
    has_shares: bool  # whether each tree adds class shares to all sums; else tree t adds a value to sum t % width
    divisor: float  # of the sums in the end

    @property
    def width(self) -> int:
        """How many sums there are."""
        return len(self.start)

    @property
    def first_node(self) -> NDArray[np.int64]:
        """First node of each tree that is used, and the end of the last."""
        return self.forest.first_node[: self.n_trees + 1]

    @property
    def n_nodes(self) -> int:
        """Nodes of the trees that are used."""
        return int(self.first_node[-1])

    @property
    def shares(self) -> NDArray[np.float64]:
        """Shares of their mixed leaves, (any, width)."""
        n_mixed = int(self.forest.first_mixed[self.n_trees])
        return self.forest.shares[:n_mixed] if self.has_shares else np.zeros((0, self.width))

    def write_head(self, packed: NDArray[np.uint64]) -> None:
        """Write the head of an array, and the start of the sums behind it."""
        packed[N_TREES] = self.n_trees
        packed[WIDTH] = self.width
        packed[N_FEATURES] = self.forest.n_features
        packed[HAS_SHARES] = self.has_shares
        packed[MOST_STEPS] = np.diff(self.first_node).max(initial=0)
        packed[N_CELLS] = self.width
        packed[DIVISOR] = np.float64(self.divisor).view(np.uint64)
        packed[HEAD_SIZE : HEAD_SIZE + self.width] = self.start.view(np.uint64)


def sum_values(forest: Forest, n_raw: int, n_trees: int, start: NDArray[np.float64], divisor: float = 1.0) -> RowSums:
    """Sums of what leaves hold.

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
    divisor : float
        What they are divided by.
    """
    return RowSums(forest, n_trees, np.asarray(start, np.float64).reshape(n_raw), has_shares=False, divisor=divisor)


def sum_shares(forest: Forest, n_trees: int, divisor: float = 1.0) -> RowSums:
    """Sums of the class shares of the first trees of a classification forest."""
    n_classes = max(forest.n_classes, 1)
    return RowSums(forest, n_trees, np.zeros(n_classes), has_shares=n_classes > 1, divisor=divisor)


def pack_links(sums: RowSums) -> NDArray[np.uint64]:
    """Lay out head, start, roots, nodes, subsets and shares end to end: with it, `one_row.add_up` writes the sums.

    Returns
    -------
    uint64 (n_words,), read-only
    """
    forest, n_trees, first_node, shares = sums.forest, sums.n_trees, sums.first_node, sums.shares
    n_words = int(forest.first_word[n_trees])
    n_roots = -(-n_trees // LANES) * LANES
    at_roots = HEAD_SIZE + sums.width
    at_nodes = (at_roots + n_roots + 1) // 2 * 2  # a node does not straddle two lines of the cache
    at_subsets = at_nodes + 2 * sums.n_nodes
    at_shares = at_subsets + n_words
    at_spare = at_shares + shares.size  # a leaf that changes no sum, and its shares
    size = at_spare + 2 + sums.width
    if size > MOST_WORDS:
        raise ValueError(f"a forest of {size * 8 / 1e9:.0f} GB is too large for one array; predict many rows at once")
    packed = np.zeros(size, np.uint64)
    sums.write_head(packed)
    packed[at_roots : at_roots + n_trees] = at_nodes + 2 * first_node[:-1]
    packed[at_roots + n_trees : at_nodes] = at_spare
    nodes = packed[at_nodes:at_subsets].reshape(-1, 2)
    lay_links(forest, first_node, at_nodes, nodes)
    lay_arguments(forest, n_trees, at_subsets, nodes)
    if sums.has_shares:
        lay_classes(forest, first_node, at_shares, nodes)
    packed[at_subsets:at_shares] = forest.subsets[:n_words]
    packed[at_shares:at_spare] = shares.reshape(-1).view(np.uint64)
    packed[at_spare:] = NOTHING
    packed[at_spare + 1] = pack_link(np.array(at_spare), np.array(LEAF))
    if sums.has_shares:
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
    """Write the first words of nodes: thresholds, values and subsets, these with their number of levels."""
    nodes[:, 0] = forest.hot[: len(nodes), 0]
    subset = np.flatnonzero(kind_of_link(nodes[:, 1]) == SUBSET)
    if len(subset) == 0:
        return
    tree = np.searchsorted(forest.first_node[: n_trees + 1], subset, side="right") - 1
    place = node_floats(nodes, subset)
    word = at_subsets + forest.first_word[tree] + place.astype(np.int64)
    n_levels = forest.n_levels[feature_of_link(nodes[subset, 1])].astype(np.int64)
    nodes[subset, 0] = pack_link(2 * n_levels + is_packed(place), word)  # two halves of a word, as those of a link


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
