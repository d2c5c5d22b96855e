"""Rounds that leave out some of the trees before them: DART (Rashmi and Gilad-Bachrach 2015), as LightGBM has it.

A round is grown as if the trees it drops were not there. With k rounds dropped, its own trees count 1 / (k + 1), and
the dropped ones k / (k + 1) of what they did: together they say what the dropped ones said before. No round is much
larger than the last ones, as the first rounds of other boosting are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spinney.ensemble.sampling import draw_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.tree.forest import Forest

    Floats = NDArray[np.float64]

MOST_DROPPED = 50  # rounds, as in LightGBM
UNIT = 2.0**-63  # of a key


class Dropout:
    """Which rounds a round drops, and the leaf of every row in every tree so far.

    Parameters
    ----------
    rate : float
        Chance of each round before to be dropped.
    skip : float
        Chance of a round to drop none.
    key : int
        Of all draws of the model.

    Attributes
    ----------
    dropped : list of int
        Rounds that the last one has dropped.
    """

    def __init__(self, rate: float, skip: float, key: int) -> None:
        self.rate, self.skip, self.key = rate, skip, key
        self.leaves: list[NDArray[np.integer]] = []  # of every row, tree by tree
        self.leaf_nodes: list[NDArray[np.intp]] = []  # nodes that are leaves, tree by tree
        self.dropped: list[int] = []

    def choose(self, number: int) -> list[int]:
        """The rounds that round `number` drops, ascending: at most 50, the last of those drawn."""
        self.dropped = []
        if draw_key(self.key, number, 0) * UNIT >= self.skip:
            drawn = [t for t in range(number) if draw_key(self.key, number, 1 + t) * UNIT < self.rate]
            self.dropped = drawn[-MOST_DROPPED:]
        return self.dropped

    @property
    def share(self) -> float:
        """What the trees of the last round count."""
        return 1.0 / (len(self.dropped) + 1)

    def keep(self, leaf: NDArray[np.int32], n_nodes: int) -> None:
        """Note the leaf of every row in the tree that has been grown."""
        self.leaves.append(leaf.astype(np.min_scalar_type(max(n_nodes - 1, 0))))
        self.leaf_nodes.append(np.flatnonzero(np.bincount(leaf)))  # every leaf has rows

    def scaled(self, forest: Forest, tree: int, factor: float) -> Forest:
        """A forest of one tree whose leaves are multiplied; tree: its number."""
        forest.hot.view(np.float64)[self.leaf_nodes[tree], 0] *= factor
        return forest
