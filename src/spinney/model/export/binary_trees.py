"""Trees of two branches a node: what runtimes know that have no others."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from spinney._types import LEAF, MULTIWAY, THRESHOLD

if TYPE_CHECKING:
    from spinney.model.export.tree_sum import TreeSum

LESS_EQUAL, EQUAL, MEMBER = "<=", "==", "in"

Ends = list[tuple[int, bool]]  # where branches lead, and whether that is a leaf
Slot = tuple[Ends, int]  # an end that is to be filled in


class BinaryTrees:
    """The trees of a model with two branches a node, in arrays (n_nodes,) of inner nodes alone.

    A node of many branches becomes one of two for each level but that of missing values, which is left at the end. A
    branch of its own for missing values hangs beside a test that all known values pass.

    Parameters
    ----------
    form : TreeSum

    Attributes
    ----------
    feature : list of int
        The column that is tested.
    mode : list of str
        LESS_EQUAL than `split`, EQUAL to it, or MEMBER of a subset: what holds takes the true branch.
    split : list of float
    true, false : lists of (int, bool)
        Where branches lead: the number of a node, or of a leaf and True.
    missing : list of int
        1 where missing values take the true branch.
    subsets : dict of tuples of int
        Levels, by node.
    """

    def __init__(self, form: TreeSum) -> None:
        self.form = form
        self.feature: list[int] = []
        self.mode: list[str] = []
        self.split: list[float] = []
        self.true: list[tuple[int, bool]] = []
        self.false: list[tuple[int, bool]] = []
        self.missing: list[int] = []
        self.subsets: dict[int, tuple[int, ...]] = {}

    def append(self, feature: int, mode: str, split: float, missing: int) -> int:
        """A node whose branches are not yet known."""
        self.feature.append(feature)
        self.mode.append(mode)
        self.split.append(split)
        self.missing.append(missing)
        self.true.append((0, False))
        self.false.append((0, False))
        return len(self.mode) - 1

    def lone(self, leaf: int) -> int:
        """A tree of one leaf: a test whose branches both lead there."""
        node = self.append(0, LESS_EQUAL, 0.0, 0)
        self.true[node] = self.false[node] = (leaf, True)
        return node

    def unroll(self, root: int) -> int:
        """Append a tree; its first node."""
        nodes = self.form.nodes
        if nodes.kind[root] == LEAF:
            return self.lone(int(nodes.first[root]))
        head = len(self.mode)
        waiting: list[tuple[int, Ends, int]] = [(root, [], -1)]
        while waiting:
            node, slots, at = waiting.pop()
            if nodes.kind[node] == LEAF:
                slots[at] = (int(nodes.first[node]), True)
                continue
            place = len(self.mode)
            if at >= 0:
                slots[at] = (place, False)
            first = int(nodes.first[node])
            waiting.extend((first + branch, *slot) for branch, slot in reversed(self.split_node(node)))
        return head

    def split_node(self, node: int) -> list[tuple[int, Slot]]:
        """Append the tests of a node; where each of its branches is to be put."""
        nodes = self.form.nodes
        column, missing = int(nodes.column[node]), int(nodes.missing[node])
        if nodes.kind[node] == MULTIWAY:
            return self.split_levels(column, missing, self.form.n_branches(node))
        found: list[tuple[int, Slot]] = []
        if missing == 2:
            known = self.append(column, LESS_EQUAL, math.inf, 0)
            self.true[known] = (known + 1, False)
            found.append((2, (self.false, known)))
        if nodes.kind[node] == THRESHOLD:
            test = self.append(column, LESS_EQUAL, float(nodes.cut[node]), int(missing == 0))
        else:
            test = self.append(column, MEMBER, 0.0, int(missing == 0))
            self.subsets[test] = self.form.subsets[nodes.subset[node]]
        return [(0, (self.true, test)), (1, (self.false, test)), *found]

    def split_levels(self, column: int, missing: int, n_branches: int) -> list[tuple[int, Slot]]:
        """The same, of a branch for each level."""
        found: list[tuple[int, Slot]] = []
        last = -1
        for branch in range(n_branches):
            if branch == missing:
                continue
            test = self.append(column, EQUAL, float(branch), 0)
            if last >= 0:
                self.false[last] = (test, False)
            found.append((branch, (self.true, test)))
            last = test
        if last < 0:  # one level alone, which missing values take too
            last = self.append(column, LESS_EQUAL, math.inf, 1)
            return [(missing, (self.false, last)), (missing, (self.true, last))]
        return [*found, (missing, (self.false, last))]
