"""A tree as plain data, for programs: one entry a node, parents before children, and how each test sends its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spinney._types import MULTIWAY, SUBSET
from spinney.reading.several_outputs import refuse_outputs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.tree.structure import Tree


def describe_tree(tree: Tree, max_depth: int | None = None) -> dict[str, Any]:
    """Size, classes and nodes of a tree, the latter down to a depth."""
    refuse_outputs(tree, "a tree as JSON")
    legend = tree.legend
    classes = None
    if tree.n_classes:
        classes = list(range(tree.n_classes)) if legend is None or legend.classes is None else list(legend.classes)
    values = tree.values()
    return {
        "leaves": tree.n_leaves,
        "depth": tree.depth,
        "classes": classes,
        "criterion": None if legend is None else legend.criterion,
        "nodes": [
            describe_node(tree, node, values, classes)
            for node in range(tree.n_nodes)
            if max_depth is None or tree.depths[node] <= max_depth
        ],
    }


def describe_node(tree: Tree, node: int, values: NDArray[Any], classes: list[Any] | None) -> dict[str, Any]:
    """One node: its place, its rows, what it would predict, and its test."""
    described: dict[str, Any] = {
        "node": node,
        "parent": None if node == 0 else int(tree.parent[node]),
        "depth": int(tree.depths[node]),
        "rows": int(tree.n_rows[node]),
        "weight": float(tree.weight[node]),
    }
    if classes is None:
        described["prediction"] = float(values[node])
    else:
        described["prediction"] = classes[int(values[node].argmax())]
        described["shares"] = values[node].tolist()
    return described | {"test": None if tree.is_leaf[node] else describe_test(tree, node)}


def describe_test(tree: Tree, node: int) -> dict[str, Any]:
    """The feature of a test, and where rows go: those up to a threshold go to the first child."""
    feature = int(tree.feature[node])
    legend = tree.legend
    first, n_children = int(tree.first_child[node]), int(tree.n_branches[node])
    test: dict[str, Any] = {
        "feature": f"x{feature}" if legend is None else legend.features[feature],
        "children": list(range(first, first + n_children)),
    }
    if tree.kind[node] in (SUBSET, MULTIWAY):
        names = None if legend is None else legend.levels[feature]
        levels = list(range(int(tree.n_levels[feature]))) if names is None else list(names)
        if tree.kind[node] == MULTIWAY:
            test["levels"] = [[level] for level in levels]
        else:
            is_first = tree.subset(node).tolist()
            test["levels"] = [[level for level, is_in in zip(levels, is_first, strict=True) if is_in == to_first]
                              for to_first in (True, False)]  # fmt: skip
    else:
        test["threshold"] = float(tree.threshold[node])
    missing = int(tree.missing_branch[node])
    test["missing"] = None if missing < 0 else first + missing  # None: to every child, by its share of the rows
    return test
