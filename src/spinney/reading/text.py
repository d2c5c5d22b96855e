"""A tree in text: one line per node, drawn with box characters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from spinney._types import MULTIWAY
from spinney.reading.conditions import NEVER, Possible, describe_condition, narrow, narrow_surrogate, surrogates_of
from spinney.reading.several_outputs import part_shares
from spinney.reading.wording import (
    MAX_CLASSES,
    class_name,
    class_name_of,
    count,
    feature_name,
    formula,
    has_missing,
    level_names,
    number,
    row_count,
    weight_of,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.tree.structure import Tree

MAX_LINES = 10_000
MAX_CHARACTERS = 10_000_000  # of a deep tree, most are indents
MAX_CELLS = 10_000_000  # nodes x classes; beyond, the classes of inner nodes are not shown
MAX_EMPTY = 2  # leaves without rows that have a line each; more share one
MAX_SURROGATES = 2  # of a test that are shown
SHARED = "missing values go down every branch, by its share of the rows"


@dataclass(frozen=True)
class Branch:
    """A branch of a node that has a line of its own: its child, or several that hold no rows."""

    node: int
    children: tuple[int, ...]
    is_last: bool


def draw(tree: Tree, max_depth: int | None = None, *, numbers: bool = False) -> str:
    """Draw a tree down to `max_depth`, with the index of each node if `numbers`."""
    contents = Contents(tree)
    lines = [("#0 " if numbers else "") + contents.describe(0)]
    n_shown, size = 1, len(lines[0])
    stack: list[tuple[Branch, str, int, Possible]] = []
    if max_depth != 0:
        stack = [(branch, "", 1, {}) for branch in reversed(branches(tree, 0))]
    while stack:
        branch, indent, depth, possible = stack.pop()
        condition, left = describe_branch(tree, branch, possible)
        node = branch.children[0]
        n_shown += len(branch.children)
        name = f"#{node} " if numbers and len(branch.children) == 1 else ""
        lines.append(f"{indent}{'└─ ' if branch.is_last else '├─ '}{condition}: {name}{contents.describe(node)}")
        size += len(lines[-1])
        if (len(lines) >= MAX_LINES or size >= MAX_CHARACTERS) and n_shown < tree.n_nodes:
            lines.append(f"... ({count(tree.n_nodes - n_shown, 'more node')})")
            break
        if tree.is_leaf[node]:
            continue
        if max_depth is not None and depth >= max_depth:
            lines[-1] += " ..."
            continue
        inner = indent + ("   " if branch.is_last else "│  ")
        stack.extend((below, inner, depth + 1, left) for below in reversed(branches(tree, node)))
    if shares_missing(tree):
        lines.append(f"({SHARED})")
    return "\n".join(lines)


def shares_missing(tree: Tree) -> bool:
    """Whether rows of the training took several branches, as far as is known."""
    spread = np.flatnonzero(tree.spreads_missing)
    return any(has_missing(tree, int(feature)) for feature in np.unique(tree.feature[spread]))


def branches(tree: Tree, node: int) -> list[Branch]:
    """The branches of a node; those without rows are one where they are many."""
    first = int(tree.first_child[node])
    children = range(first, first + int(tree.n_branches[node]))
    empty: tuple[int, ...] = ()
    if tree.kind[node] == MULTIWAY:
        empty = tuple(child for child in children if tree.n_rows[child] == 0)
    groups: list[tuple[int, ...]] = [(child,) for child in children]
    if len(empty) > MAX_EMPTY:
        groups = [(child,) for child in children if tree.n_rows[child] > 0]
        groups.append(empty)
    return [Branch(node, group, group is groups[-1]) for group in groups]


def describe_branch(tree: Tree, branch: Branch, possible: Possible) -> tuple[str, Possible]:
    """What a row must satisfy to take a branch, and the levels that can then be met below."""
    node, feature = branch.node, int(tree.feature[branch.node])
    first = int(tree.first_child[node])
    if len(branch.children) > 1:
        names = level_names(tree, feature, [child - first for child in branch.children])
        return f"{feature_name(tree, feature)} in {{{', '.join(names)}}}", possible
    at = branch.children[0] - first
    condition, left = narrow(tree, node, at, possible)
    return describe_condition(tree, condition) + surrogate_text(tree, node, at, possible), left


def surrogate_text(tree: Tree, node: int, branch: int, possible: Possible) -> str:
    """The first surrogates of a branch, where missing values can come so far, and the training rows had some."""
    feature = int(tree.feature[node])
    is_known = feature in possible and possible[feature].missing == NEVER
    if branch > 1 or is_known or not has_missing(tree, feature):
        return ""
    places = surrogates_of(tree, node)
    condition = [describe_condition(tree, narrow_surrogate(tree, s, branch, possible)) for s in places[:MAX_SURROGATES]]
    text = "".join(f", else {ask}" for ask in condition)
    return text if len(places) <= MAX_SURROGATES else f"{text}, else ..."


class Contents:
    """What the nodes of a tree hold, in words."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.values = tree.values() if tree.n_classes == 0 else np.zeros(0)
        self.weights: NDArray[np.float64] | None = None
        if 0 < tree.n_classes * tree.n_nodes <= MAX_CELLS:
            self.weights = tree.class_weights()

    def describe(self, node: int) -> str:
        """Value and rows of a node; the value in brackets where it is split further."""
        prediction, rows = self.prediction(node), row_count(self.tree, node)
        shares = self.shares(node)
        if shares:
            rows = f"{rows}: {shares}"
        return f"{prediction} ({rows})" if self.tree.is_leaf[node] else f"[{prediction}] ({rows})"

    def prediction(self, node: int) -> str:
        """What a node predicts for a row that ends there: the formula, the mean, or the heaviest class."""
        tree = self.tree
        if tree.n_classes == 0:
            is_linear = tree.linear is not None and tree.linear.first[node] < tree.linear.first[node + 1]
            if tree.widths is not None:
                codes = [int(shares.argmax()) for shares in part_shares(self.values[node], tree.widths)]
                return ", ".join(class_name_of(tree, o, k) for o, k in enumerate(codes))
            if tree.n_outputs > 1:
                return ", ".join(number(float(value)) for value in self.values[node])
            return formula(tree, node) if is_linear else number(float(self.values[node]))
        if tree.is_leaf[node]:
            return class_name(tree, int(tree.leaf_class[node]))
        return "..." if self.weights is None else class_name(tree, int(self.weights[node].argmax()))

    def shares(self, node: int, most: int = MAX_CLASSES) -> str:
        """The weight of each class of a mixed node, the heaviest first; of several outputs those that are mixed."""
        if self.tree.widths is not None:
            of_outputs = part_shares(self.values[node], self.tree.widths)
            texts = [self.shares_of(node, o, shares, most) for o, shares in enumerate(of_outputs)]
            return "; ".join(text for text in texts if text)
        if self.weights is None:
            return ""
        weight = self.weights[node]
        held = [k for k in np.argsort(-weight, kind="stable") if weight[k] > 0.0]
        if len(held) < 2:
            return ""
        texts = [f"{class_name(self.tree, int(k))} {weight_of(self.tree, float(weight[k]))}" for k in held[:most]]
        return ", ".join(texts if len(held) <= most else [*texts, f"{len(held) - most} more"])

    def shares_of(self, node: int, output: int, shares: NDArray[np.float64], most: int) -> str:
        """The same of one of several outputs; shares: of its classes."""
        held = [int(k) for k in np.argsort(-shares, kind="stable") if shares[k] > 0.0]
        if len(held) < 2:
            return ""
        weight = float(self.tree.weight[node])
        texts = [f"{class_name_of(self.tree, output, k)} {number(weight * float(shares[k]))}" for k in held[:most]]
        return ", ".join(texts if len(held) <= most else [*texts, f"{len(held) - most} more"])


def summary(tree: Tree) -> str:
    """Size of a tree in words."""
    what = "classes" if tree.n_classes or tree.widths is not None else "numbers"
    return (
        f"Decision tree for {what}: {count(tree.n_leaves, 'leaf')}, depth {tree.depth}, "
        f"{count(int(tree.n_rows[0]), 'row')}."
    )
