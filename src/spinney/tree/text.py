"""A tree in text: one line per node, drawn with box characters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._types import THRESHOLD

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.tree.structure import Tree

MAX_LINES = 10_000  # a deep tree's indents alone would fill the memory
MAX_CELLS = 10_000_000  # nodes x classes; beyond, the classes of inner nodes are not shown
MAX_LEVELS = 12  # of a subset that are spelled out


def draw(tree: Tree, max_depth: int | None = None) -> str:
    """Draw a tree down to `max_depth`."""
    values = tree.values() if tree.n_classes == 0 else np.zeros(0)
    weights = tree.class_weights() if 0 < tree.n_classes * tree.n_nodes <= MAX_CELLS else None
    lines = [describe(tree, 0, values, weights)]
    stack = [(child, "", is_last, 1, asks) for child, is_last, asks in reversed(branches(tree, 0))]
    if max_depth == 0:
        stack = []
    while stack:
        node, indent, is_last, depth, asks = stack.pop()
        lines.append(f"{indent}{'└─ ' if is_last else '├─ '}{asks}: {describe(tree, node, values, weights)}")
        if len(lines) >= MAX_LINES:
            lines.append(f"... ({tree.n_nodes - len(lines)} more nodes)")
            break
        below = branches(tree, node)
        inner = indent + ("   " if is_last else "│  ")
        if max_depth is not None and depth >= max_depth:
            if below:
                lines[-1] += " ..."
            continue
        stack.extend((child, inner, last, depth + 1, text) for child, last, text in reversed(below))
    return "\n".join(lines)


def branches(tree: Tree, node: int) -> list[tuple[int, bool, str]]:
    """Each child of a node: its index, whether it is the last, and what its branch asks."""
    n_branches = int(tree.n_branches[node])
    first = int(tree.first_child[node])
    return [(first + b, b == n_branches - 1, branch_text(tree, node, b)) for b in range(n_branches)]


def branch_text(tree: Tree, node: int, branch: int) -> str:
    """What a row must satisfy to take a branch."""
    feature = int(tree.feature[node])
    legend = tree.legend
    name = legend.features[feature] if legend else f"x{feature}"
    missing = int(tree.missing_branch[node])
    threshold = float(tree.threshold[node])
    is_threshold = tree.kind[node] == THRESHOLD
    if branch == 2 or (branch == missing == 1 and is_threshold and np.isposinf(threshold)):
        return f"{name} is missing"
    if is_threshold:
        if np.isposinf(threshold):
            text = f"{name} is known"
        else:
            text = f"{name} {'<=' if branch == 0 else '>'} {number(threshold)}"
    else:
        levels = subset_levels(tree, node, branch)
        if not levels and branch == missing:
            return f"{name} is missing"
        text = f"{name} in {{{', '.join(levels)}}}"
    has_missing = legend.has_missing[feature] if legend else False
    return f"{text} or missing" if has_missing and branch == missing else text


def subset_levels(tree: Tree, node: int, branch: int) -> list[str]:
    """Names of the levels that take a branch, shortened where there are many."""
    feature = int(tree.feature[node])
    levels = np.flatnonzero(tree.subset(node) == (branch == 0))
    known = tree.legend.levels[feature] if tree.legend else None
    names = [str(known[k]) if known else str(k) for k in levels[:MAX_LEVELS]]
    return names if len(levels) <= MAX_LEVELS else [*names, f"... {len(levels) - MAX_LEVELS} more"]


def describe(tree: Tree, node: int, values: NDArray[np.float64], weights: NDArray[np.float64] | None) -> str:
    """Rows and value of a node."""
    n = int(tree.n_rows[node])
    rows = f"{n} row" if n == 1 else f"{n} rows"
    if tree.n_classes == 0:
        text = number(float(values[node]))
    elif weights is None:
        text = str(class_name(tree, int(tree.leaf_class[node]))) if tree.is_leaf[node] else "..."
    else:
        text = class_name(tree, int(weights[node].argmax()))
        others = [
            f"{class_name(tree, int(k))} {number(float(weights[node, k]))}"
            for k in np.argsort(-weights[node], kind="stable")
            if weights[node, k] > 0
        ]
        if len(others) > 1:
            shown = others[:4] + ([f"{len(others) - 4} more"] if len(others) > 4 else [])
            rows = f"{rows}: {', '.join(shown)}"
    return f"{text} ({rows})" if tree.is_leaf[node] else f"[{text}] ({rows})"


def class_name(tree: Tree, k: int) -> Any:
    """What people call class k."""
    return tree.legend.classes[k] if tree.legend and tree.legend.classes else k


def number(x: float) -> str:
    """Six significant digits, without trailing zeros."""
    return f"{x:.6g}"
