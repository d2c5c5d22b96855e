"""Nodes that are new: each is a leaf until it is split."""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined
from spinney._types import LEAF, N_NODES

from ..common.structs import Nodes


@inlined
def write_leaf(node: int, begin: int, n_rows: int, nodes: Nodes) -> None:
    """Make a node a leaf of so many rows from `begin` on."""
    nodes.test[node] = LEAF
    nodes.first_child[node] = 0
    nodes.begin[node] = begin
    nodes.n_rows[node] = n_rows
    nodes.cut_value[node] = 0.0


@inlined
def append_leaf(begin: int, n_rows: int, nodes: Nodes, state: np.ndarray) -> int:
    """Append such a leaf to the nodes of a tree; return its number."""
    node = state[N_NODES]
    state[N_NODES] = node + 1
    write_leaf(node, begin, n_rows, nodes)
    return node
