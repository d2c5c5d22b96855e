"""Linear models in the leaves of a regression tree (model trees)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class LinearLeaves:
    """A linear model for each leaf: intercept + sum of coefficient * (value, or `fill` where it is missing).

    Attributes
    ----------
    first : int32 (n_nodes + 1,)
        Terms of node t are `first[t] .. first[t + 1]`; inner nodes have none.
    feature : int32 (n_terms,)
    coefficient, fill : float64 (n_terms,)
    intercept : float64 (n_nodes,)
    """

    first: NDArray[np.int32]
    feature: NDArray[np.int32]
    coefficient: NDArray[np.float64]
    fill: NDArray[np.float64]
    intercept: NDArray[np.float64]
