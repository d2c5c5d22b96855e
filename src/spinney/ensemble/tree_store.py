"""The trees of a boosted model while rounds are grown, each in arrays of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spinney.kernels.common.structs import WrittenTree
from spinney.tree.forest import Forest, starts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.tree.structure import Legend

    Floats = NDArray[np.float64]

FLOAT32 = (1e-20, 1e38)  # largest gains that float32 can hold together with much smaller ones
FIRST_ROOM = 256  # nodes of a tree


class StoredTree(NamedTuple):
    """A tree that is kept; fields as of `tree.forest.Forest`."""

    hot: NDArray[np.uint64]  # (n_nodes, 2)
    n_rows: NDArray[np.uint32]  # (n_nodes,)
    weight: Floats  # (n_nodes,)
    gain: Floats  # (n_nodes,)
    subsets: NDArray[np.uint64]  # (n_words,)
    answers: Floats | None  # (n_nodes, n_outputs) where leaves hold several numbers, see `Forest.answers`

    @property
    def values(self) -> Floats:
        """What leaves add, (n_nodes,): a view of `hot`; of other nodes their thresholds."""
        return self.hot.view(np.float64)[:, 0]


class TreeStore:
    """All trees so far, and room where the next one is written.

    A tree is copied out of that room once, into arrays of its size: arrays of all trees, which have to grow, would
    need memory for old and new at once. Of 100 trees of 255 leaves that was a twentieth of all that a fit holds.
    """

    def __init__(self, n_levels: NDArray[np.int32], legend: Legend | None) -> None:
        self.n_levels = n_levels
        self.legend = legend
        self.trees: list[StoredTree] = []
        self.written = make_written(FIRST_ROOM)

    def make_room(self, n_nodes: int) -> None:
        """Have room to write a tree of so many nodes."""
        if n_nodes > len(self.written.n_rows):
            self.written = make_written(2 * n_nodes)

    def add(self, n_nodes: int, subsets: NDArray[np.uint64], answers: Floats | None = None) -> None:
        """Keep the tree of so many nodes that has been written."""
        _, hot, n_rows, weight, gain = self.written
        nodes = slice(n_nodes)
        self.trees.append(
            StoredTree(
                hot[nodes].copy(), n_rows[nodes].copy(), weight[nodes].copy(), gain[nodes].copy(), subsets, answers
            )
        )

    def load(self, forest: Forest) -> None:
        """Begin with the trees of a forest that `forest` has given with gains in full."""
        nodes = forest.first_node[1:-1]
        arrays = [np.split(array, nodes) for array in (forest.hot, forest.n_rows, forest.weight, forest.impurity)]
        answers = [None] * len(forest) if forest.answers is None else np.split(forest.answers, nodes)
        subsets = np.split(forest.subsets, forest.first_word[1:-1])
        self.trees = [
            StoredTree(hot.copy(), n_rows, weight, gain.astype(np.float64), words, told)  # dropout changes values
            for hot, n_rows, weight, gain, words, told in zip(*arrays, subsets, answers, strict=True)
        ]

    def forest(self, first: int, last: int, *, is_full: bool = False) -> Forest:
        """Trees first .. last as a forest; is_full: gains in all their bits."""
        trees = self.trees[first:last]
        hot, n_rows, weight, gain, subsets = (np.concatenate(arrays) for arrays in list(zip(*trees, strict=True))[:5])
        answers = [tree.answers for tree in trees if tree.answers is not None]
        return Forest(
            hot=hot,
            n_rows=n_rows,
            weight=weight,
            impurity=gain.astype(np.float32) if not is_full and FLOAT32[0] < gain.max() < FLOAT32[1] else gain,
            first_node=starts([len(tree.n_rows) for tree in trees]),
            first_word=starts([len(tree.subsets) for tree in trees]),
            first_mixed=np.zeros(len(trees) + 1, np.int64),
            subsets=subsets,
            distributions=np.zeros((0, 0)),
            impurity_exponent=0,
            n_classes=0,
            n_levels=self.n_levels,
            legend=self.legend,
            answers=np.concatenate(answers) if answers else None,
        )


def make_written(n_nodes: int) -> WrittenTree:
    """Room for a tree of so many nodes."""
    hot = np.zeros((n_nodes, 2), np.uint64)
    return WrittenTree(hot.view(np.float64), hot, np.zeros(n_nodes, np.uint32), np.zeros(n_nodes), np.zeros(n_nodes))
