"""A tree in text: one line per node, drawn with box characters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._types import SUBSET, THRESHOLD

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
    stack = [(child, "", is_last, 1, asks, left) for child, is_last, asks, left in reversed(branches(tree, 0, {}))]
    if max_depth == 0:
        stack = []
    while stack:
        node, indent, is_last, depth, asks, possible = stack.pop()
        lines.append(f"{indent}{'└─ ' if is_last else '├─ '}{asks}: {describe(tree, node, values, weights)}")
        if len(lines) >= MAX_LINES:
            lines.append(f"... ({tree.n_nodes - len(lines)} more nodes)")
            break
        below = branches(tree, node, possible)
        inner = indent + ("   " if is_last else "│  ")
        if max_depth is not None and depth >= max_depth:
            if below:
                lines[-1] += " ..."
            continue
        stack.extend((child, inner, last, depth + 1, text, left) for child, last, text, left in reversed(below))
    return "\n".join(lines)


def branches(
    tree: Tree, node: int, possible: dict[int, NDArray[np.bool_]]
) -> list[tuple[int, bool, str, dict[int, NDArray[np.bool_]]]]:
    """Each child of a node: its index, whether it is the last, what its branch asks, and the levels that can reach it.

    possible: for each feature tested by subset on the way, the levels that can reach the node.
    """
    n_branches = int(tree.n_branches[node])
    first = int(tree.first_child[node])
    found = []
    for b in range(n_branches):
        left = possible
        if tree.kind[node] == SUBSET and b < 2:
            feature = int(tree.feature[node])
            left = {**possible, feature: (tree.subset(node) == (b == 0)) & possible.get(feature, np.True_)}
        found.append((first + b, b == n_branches - 1, branch_text(tree, node, b, left), left))
    return found


def branch_text(tree: Tree, node: int, branch: int, possible: dict[int, NDArray[np.bool_]]) -> str:
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
            text = f"{name} {'<=' if branch == 0 else '>'} {number(threshold, 1e-9)}"
    else:
        levels = level_names(tree, feature, possible[feature])
        if not levels and branch == missing:
            return f"{name} is missing"
        text = f"{name} in {{{', '.join(levels)}}}"
    has_missing = legend.has_missing[feature] if legend else False
    return f"{text} or missing" if has_missing and branch == missing else text


def level_names(tree: Tree, feature: int, levels: NDArray[np.bool_]) -> list[str]:
    """Names of levels of a feature, shortened where there are many."""
    chosen = np.flatnonzero(levels)
    known = tree.legend.levels[feature] if tree.legend else None
    names = [str(known[k]) if known else str(k) for k in chosen[:MAX_LEVELS]]
    return names if len(chosen) <= MAX_LEVELS else [*names, f"... {len(chosen) - MAX_LEVELS} more"]


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


def number(x: float, tolerance: float = 1e-6) -> str:
    """The shortest decimal within a relative tolerance, at least six digits, without an exponent where it is short."""
    text = repr(x)
    for digits in range(6, 18):
        text = f"{x:.{digits}g}"
        if abs(float(text) - x) <= tolerance * abs(x):
            break
    if "e" in text and 1e-4 <= abs(x) < 1e16:
        text = np.format_float_positional(float(text), trim="-")
    return text
