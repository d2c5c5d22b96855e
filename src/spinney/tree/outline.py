"""What a picture of a tree shows: the heaviest nodes opened, the rest closed and counted."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spinney._types import SUBSET
from spinney.tree.conditions import ALWAYS, NEVER, branch_condition, path_conditions
from spinney.tree.text import branches
from spinney.tree.wording import CUT, caption, count, has_missing, level_name, number, rounded

if TYPE_CHECKING:
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
    """

    nodes: tuple[int, ...]
    parent: int
    is_open: bool
    n_hidden: int

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
    stack: list[tuple[tuple[int, ...], int]] = [((0,), -1)]
    while stack:
        nodes, parent = stack.pop()
        groups = shown.get(nodes[0], []) if len(nodes) == 1 else []
        is_end = all(tree.n_rows[node] == 0 for node in nodes) or (len(nodes) == 1 and bool(tree.is_leaf[nodes[0]]))
        n_hidden = 0 if groups or is_end else int(n_leaves[list(nodes)].sum())
        items.append(Item(nodes, parent, bool(groups), n_hidden))
        stack.extend((group, len(items) - 1) for group in reversed(groups))
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
    """What the branch to an item asks, without the name of the feature."""

    names: tuple[str, ...]  # a bound, or the levels that can come this way
    suffix: str = ""

    def __str__(self) -> str:
        return ", ".join(self.names) + self.suffix

    def head(self, n: int) -> str:
        """The first names, and how many are left out."""
        return f"{', '.join(self.names[:n])} + {len(self.names) - n}{self.suffix}" if n < len(self.names) else str(self)


def edge_label(tree: Tree, parent: int, item: Item, *, is_brief: bool = False) -> Label:
    """What the branch from a node to an item asks; brief: a threshold in four digits."""
    feature, first = int(tree.feature[parent]), int(tree.first_child[parent])
    if len(item.nodes) > 1:
        levels = [node - first for node in item.nodes if node - first < tree.n_levels[feature]]
        has_missing_too = len(levels) < len(item.nodes)
        return Label(tuple(level_name(tree, feature, k) for k in levels), " or missing" if has_missing_too else "")
    condition = branch_condition(tree, parent, item.node - first)
    if tree.kind[parent] == SUBSET:
        for before in path_conditions(tree, parent):
            condition = before & condition if before.feature == feature else condition
    if not condition.has_known and condition.missing != NEVER:
        return Label(("missing",))
    suffix = " or missing" if condition.missing == ALWAYS and has_missing(tree, feature) else ""
    if condition.levels is not None:
        return Label(tuple(level_name(tree, feature, int(k)) for k in condition.levels), suffix)
    cut = float(tree.threshold[parent])
    shown = rounded(cut) if is_brief else number(cut, CUT)
    bound = f"{'≤' if condition.low is None else '>'} {shown}" if condition.is_bounded else "known"
    return Label((bound,), suffix)


def closed_words(item: Item) -> str:
    """What an item that hides leaves says of them."""
    return f"+ {count(len(item.nodes), 'branch')}" if len(item.nodes) > 1 else f"+ {count(item.n_hidden, 'leaf')}"


def feature_caption(tree: Tree, node: int) -> str:
    """The feature that a node asks for."""
    feature = int(tree.feature[node])
    return caption(tree.legend.features[feature]) if tree.legend else f"x{feature}"
