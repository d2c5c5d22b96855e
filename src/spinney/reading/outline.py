"""What a picture of a tree shows: the heaviest nodes opened, the rest closed and counted."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spinney.reading.conditions import ALWAYS, NEVER, Condition, Possible, narrow
from spinney.reading.text import branches
from spinney.reading.wording import CUT, caption, count, has_missing, level_name, number, rounded_cut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from spinney.tree.structure import Tree


@dataclass(frozen=True)
class Item:
    """A node of the picture.

    Attributes
    ----------
    nodes : tuple of int
        The nodes that it stands for: one, or several branches of a node in one.
    parent : int
        Place of its parent among the items; -1 for the root.
    is_open : bool
        Whether its branches are shown; leaves are not open.
    n_hidden : int
        Leaves that it hides; 0 for tests shown and for leaves.
    condition : Condition, optional
        Of its branch, on the values that can come so far; None for the root, and for several branches.
    """

    nodes: tuple[int, ...]
    parent: int
    is_open: bool
    n_hidden: int
    condition: Condition | None

    @property
    def node(self) -> int:
        """The first node."""
        return self.nodes[0]

    def rows(self, tree: Tree) -> int:
        """Training rows."""
        return int(tree.n_rows[list(self.nodes)].sum())

    def weight(self, tree: Tree) -> float:
        """Weight of the training rows."""
        return float(tree.weight[list(self.nodes)].sum())


def make_outline(tree: Tree, max_leaves: int | None = None, max_depth: int | None = None) -> list[Item]:
    """The items of a picture of at most `max_leaves` ends and `max_depth` tests on a path.

    A parent stands before its children. The heaviest node is opened first, so that what is closed is small.
    """
    n_leaves = tree.sum_up(tree.is_leaf.astype(np.float64)).astype(np.int64)
    shown = choose_open(tree, tree.n_leaves if max_leaves is None else max_leaves, max_depth)
    items: list[Item] = []
    stack: list[tuple[tuple[int, ...], int, Condition | None, Possible]] = [((0,), -1, None, {})]
    while stack:
        nodes, parent, condition, possible = stack.pop()
        groups = shown.get(nodes[0], []) if len(nodes) == 1 else []
        is_end = all(tree.n_rows[node] == 0 for node in nodes) or (len(nodes) == 1 and bool(tree.is_leaf[nodes[0]]))
        n_hidden = 0 if groups or is_end else int(n_leaves[list(nodes)].sum())
        items.append(Item(nodes, parent, bool(groups), n_hidden, condition))
        for group in reversed(groups):
            condition, left = None, possible
            if len(group) == 1:
                condition, left = narrow(tree, nodes[0], group[0] - int(tree.first_child[nodes[0]]), possible)
            stack.append((group, len(items) - 1, condition, left))
    return items


def choose_open(tree: Tree, max_leaves: int, max_depth: int | None) -> dict[int, list[tuple[int, ...]]]:
    """The nodes that are opened, each with its branches, some of them perhaps in one."""
    room = max(max_leaves, 1) - 1
    opened: dict[int, list[tuple[int, ...]]] = {}
    heap = [(-float(tree.weight[0]), 0)]
    while heap:
        _, node = heapq.heappop(heap)
        if tree.is_leaf[node] or (max_depth is not None and tree.depths[node] >= max_depth):
            continue
        groups = [branch.children for branch in branches(tree, node)]
        if len(groups) - 1 > room:
            if node or room == 0:
                continue
            groups = gather(tree, groups, room + 1)
        opened[node] = groups
        room -= len(groups) - 1
        for group in groups:
            if len(group) == 1:
                heapq.heappush(heap, (-float(tree.weight[group[0]]), group[0]))
    return opened


def gather(tree: Tree, groups: list[tuple[int, ...]], most: int) -> list[tuple[int, ...]]:
    """The heaviest branches, in their order, and all others as one."""
    weights = np.array([tree.weight[list(group)].sum() for group in groups])
    kept = set(np.argsort(-weights, kind="stable")[: most - 1].tolist())
    rest = tuple(node for place, group in enumerate(groups) if place not in kept for node in group)
    return [*(group for place, group in enumerate(groups) if place in kept), rest]


@dataclass(frozen=True)
class Label:
    """The condition of the branch to an item, without the name of the feature."""

    names: tuple[str, ...]  # a bound, or the first of the levels that can come this way
    suffix: str = ""
    n_more: int = 0  # levels that are not named

    def __str__(self) -> str:
        return self.head(len(self.names))

    def head(self, n: int) -> str:
        """The first names, and how many are left out."""
        n_out = max(len(self.names) - n, 0) + self.n_more
        return ", ".join(self.names[:n]) + (f" + {n_out}" if n_out else "") + self.suffix


def edge_label(tree: Tree, parent: int, item: Item, most: int, *, is_brief: bool = False) -> Label:
    """The condition of the branch to an item, with at most `most` names; brief: a threshold in four digits."""
    feature, condition = int(tree.feature[parent]), item.condition
    if condition is None:
        first = int(tree.first_child[parent])
        levels = [node - first for node in item.nodes if node - first < tree.n_levels[feature]]
        has_missing_too = len(levels) < len(item.nodes)
        return label_levels(tree, feature, levels, most, " or missing" if has_missing_too else "")
    if not condition.has_known and condition.missing != NEVER:
        return Label(("missing",))
    suffix = " or missing" if condition.missing == ALWAYS and has_missing(tree, feature) else ""
    if condition.levels is not None:
        return label_levels(tree, feature, condition.levels, most, suffix)
    cut = float(tree.threshold[parent])
    shown = rounded_cut(cut) if is_brief else number(cut, CUT)
    bound = f"{'≤' if condition.low is None else '>'} {shown}" if condition.is_bounded else "known"
    return Label((bound,), suffix)


def label_levels(tree: Tree, feature: int, levels: Sequence[int] | NDArray[np.int64], most: int, suffix: str) -> Label:
    """A label of levels, the first of them by name."""
    names = tuple(level_name(tree, feature, int(k)) for k in levels[:most])
    return Label(names, suffix, len(levels) - len(names))


def closed_words(item: Item) -> str:
    """How many leaves or branches an item hides."""
    return f"+ {count(len(item.nodes), 'branch')}" if len(item.nodes) > 1 else f"+ {count(item.n_hidden, 'leaf')}"


def feature_caption(tree: Tree, node: int) -> str:
    """The feature that a node splits on."""
    feature = int(tree.feature[node])
    return caption(tree.legend.features[feature]) if tree.legend else f"x{feature}"
