"""Surrogate tests (Breiman et al. 1984, section 5.3): what a node asks where the value it wants is missing."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Surrogates:
    """The surrogates of every node of a tree, best first.

    Attributes
    ----------
    first : int32 (n_nodes + 1,)
        Surrogates of node t are `first[t] .. first[t + 1]`.
    test : uint32 (n,)
        `feature << 4 | is reversed << 2 | kind`: a reversed test sends what would take branch 0 to branch 1.
    threshold : float64 (n,)
        As in `Tree`: the threshold, or the place of the bitset in the tree's `subsets`.
    agree : float64 (n,)
        Share of the weight, of rows where both values are known, that goes the same way as by the node's own test.
    adjusted : float64 (n,)
        The same above what sending all rows to the heavier branch would agree in: 0 is no better, 1 is perfect.
    """

    first: NDArray[np.int32]
    test: NDArray[np.uint32]
    threshold: NDArray[np.float64]
    agree: NDArray[np.float64]
    adjusted: NDArray[np.float64]
