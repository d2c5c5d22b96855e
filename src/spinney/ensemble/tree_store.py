"""The trees of a boosted model while rounds are grown: end to end in arrays that grow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spinney.kernels.common.structs import StoredTrees
from spinney.tree.forest import Forest, starts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.tree.structure import Legend

    Floats = NDArray[np.float64]

FLOAT32 = (1e-20, 1e38)  # largest gains that float32 can hold together with much smaller ones


class TreeStore:
    """Arrays of all trees so far, with room for the next ones."""

    def __init__(self, n_raw: int, n_levels: NDArray[np.int32], legend: Legend | None) -> None:
        self.n_raw = n_raw
        self.n_levels = n_levels
        self.legend = legend
        self.places = [0]  # where each tree begins, and the last one ends
        self.subsets: list[NDArray[np.uint64]] = []
        self.n_nodes = 0
        self.hot = np.zeros((256, 2), np.uint64)
        self.n_rows = np.zeros(256, np.uint32)
        self.weight = np.zeros(256)
        self.gain = np.zeros(256)
        self.answers: list[Floats] = []  # of each tree, where its leaves hold several numbers: see `Forest.answers`

    def make_room(self, n_nodes: int) -> None:
        """Make sure that a tree of so many nodes fits."""
        if self.n_nodes + n_nodes <= len(self.hot):
            return
        n = 2 * len(self.hot) + n_nodes
        for name in ("hot", "n_rows", "weight", "gain"):
            old = getattr(self, name)
            new = np.zeros((n, *old.shape[1:]), old.dtype)
            new[: len(old)] = old
            setattr(self, name, new)

    def arrays(self) -> StoredTrees:
        """Where the next tree is written."""
        return StoredTrees(self.n_nodes, self.hot.view(np.float64), self.hot, self.n_rows, self.weight, self.gain)

    def add(self, n_nodes: int, subsets: NDArray[np.uint64]) -> None:
        """Keep what has been written behind the last tree."""
        self.n_nodes += n_nodes
        self.places.append(self.n_nodes)
        self.subsets.append(subsets)

    def clear(self) -> None:
        """Forget all trees; their room is kept."""
        self.n_nodes, self.places, self.subsets = 0, [0], []

    def take(self, other: TreeStore, tree: int) -> None:
        """Keep a tree of another store behind the last one."""
        first, last = other.places[tree : tree + 2]
        self.make_room(last - first)
        mine = slice(self.n_nodes, self.n_nodes + last - first)
        for name in ("hot", "n_rows", "weight", "gain"):
            getattr(self, name)[mine] = getattr(other, name)[first:last]
        self.add(last - first, other.subsets[tree])

    def load(self, forest: Forest) -> None:
        """Begin with the trees of a forest that `forest` has given with gains in full."""
        self.make_room(forest.n_nodes)
        self.n_nodes, self.places = forest.n_nodes, forest.first_node.tolist()
        for name, array in (("hot", forest.hot), ("n_rows", forest.n_rows), ("weight", forest.weight)):
            getattr(self, name)[: self.n_nodes] = array
        self.gain[: self.n_nodes] = forest.impurity
        self.subsets = np.split(forest.subsets, forest.first_word[1:-1])
        if forest.answers is not None:
            self.answers = np.split(forest.answers, forest.first_node[1:-1])

    def forest(self, first: int, last: int, *, is_full: bool = False) -> Forest:
        """Trees first .. last as a forest; is_full: gains in all their bits."""
        nodes = slice(self.places[first], self.places[last])
        gain = self.gain[nodes].copy()
        words = self.subsets[first:last]
        return Forest(
            hot=self.hot[nodes].copy(),
            n_rows=self.n_rows[nodes].copy(),
            weight=self.weight[nodes].copy(),
            impurity=gain.astype(np.float32) if not is_full and FLOAT32[0] < gain.max() < FLOAT32[1] else gain,
            first_node=np.array(self.places[first : last + 1], np.int64) - self.places[first],
            first_word=starts([len(part) for part in words]),
            first_mixed=np.zeros(last - first + 1, np.int64),
            subsets=np.concatenate(words),
            distributions=np.zeros((0, 0)),
            impurity_exponent=0,
            n_classes=0,
            n_levels=self.n_levels,
            legend=self.legend,
            answers=np.concatenate(self.answers[first:last]) if self.answers else None,
        )
