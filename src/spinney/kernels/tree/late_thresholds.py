"""Thresholds of a tree once all of its nodes are made.

The values behind codes are far away in memory, and nothing waits for a threshold while a tree grows: node after node
they are fetched side by side, where each split waited for its two. Until then a node has the codes on both sides of its
cut, as one number.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined, kernel
from spinney._types import THRESHOLD

from ..common.node_layout import feature_of, kind_of
from ..common.structs import Nodes, Settings, Table
from ..common.thresholds import place_threshold

CODE_SHIFT = 17  # room for one code, and for none


@inlined
def pack_codes(cut: int, following: int) -> float:
    """The last code of branch 0 and the first of branch 1, -1 if there is none, as a whole number below 2**34."""
    return np.float64((cut << CODE_SHIFT) | (following + 1))


@kernel
def place_thresholds(n_nodes: int, table: Table, settings: Settings, nodes: Nodes, places: np.ndarray) -> None:
    """Put thresholds in the place of packed codes; places: where each feature of the table stands in `table.features`.

    Random tests have drawn theirs. Where the table has no edges `place_feature` does it, feature by feature.
    """
    if settings.is_random or table.edges.shape[1] == 0:
        return
    features, edges = table.features, table.edges
    for node in range(n_nodes):
        test = nodes.test[node]
        if kind_of(test) == THRESHOLD:
            codes = np.int64(nodes.cut_value[node])
            cut = codes >> CODE_SHIFT
            following = (codes & ((1 << CODE_SHIFT) - 1)) - 1
            feature = places[feature_of(test)]
            nodes.cut_value[node] = place_threshold(features, edges, feature, cut, following, False)


@door
def place_feature(
    n_nodes: int, number: int, features: np.ndarray, edges: np.ndarray, tests: np.ndarray, cut_values: np.ndarray
) -> None:
    """The same for the nodes that ask for one feature.

    Parameters
    ----------
    number : int
        Of the feature in tests.
    features : int64 (FEATURE_ROWS, 1)
        Its column of `Table.features`, as if it were the only one.
    edges : float64 (2, n_codes)
    tests, cut_values : (n_nodes or more,)
        Those of `Nodes`.
    """
    for node in range(n_nodes):
        if feature_of(tests[node]) == number and kind_of(tests[node]) == THRESHOLD:
            codes = np.int64(cut_values[node])
            following = (codes & ((1 << CODE_SHIFT) - 1)) - 1
            cut_values[node] = place_threshold(features, edges, 0, codes >> CODE_SHIFT, following, False)
