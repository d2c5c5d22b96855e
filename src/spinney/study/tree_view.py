"""One tree for a page: its nodes, the pruning path from the whole tree to its root, and why its root splits as it does.

Full-grown trees have thousands of leaves, which nobody reads: the view begins at the first step of the path that
leaves few enough.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney.reading.outline import edge_label, feature_caption, make_outline
from spinney.reading.wording import caption, rounded
from spinney.study.evidence import PruningStep, TreeNode, TreeView
from spinney.study.node_pictures import picture_nodes
from spinney.tracing.tables import make_tables, rank_of
from spinney.tree.prune import cut_sequence, from_units, node_risk
from spinney.tree.subtree import cut_mask, find_remainder, find_tiers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from spinney.reading.outline import Item
    from spinney.study.evidence import NodePicture
    from spinney.tree.prune import CutStep
    from spinney.tree.structure import Tree

MAX_LEAVES = 200  # of the tree that the view begins with
MAX_LEVELS = 4  # of a category that a branch names
MEASURES = {True: "error rate", False: "mean squared error"}  # by whether there are classes


class Shown(NamedTuple):
    """The tree at the beginning of the view, and the step that makes a leaf of each node, or removes it."""

    tree: Tree
    cut: NDArray[np.int64]  # (n_nodes,) never above that of the parent; 0 for leaves


def view_tree(
    model: Any, X: Any, y: NDArray[Any], *, name: str, target: str, most: int = MAX_LEAVES, cv: Any = None
) -> TreeView:
    """Grow a tree, prune it by cross-validation, and describe both.

    Parameters
    ----------
    model : CARTClassifier or CARTRegressor
        Unfitted; how it prunes does not matter.
    X, y
        All rows.
    name, target : str
        What method and target are called.
    most : int
        Leaves that the view begins with at most.
    cv : iterable of pairs of arrays, optional
        Folds of the cross-validation, as in `CARTClassifier.prune`.
    """
    from sklearn.base import clone, is_classifier

    whole = clone(model).set_params(ccp_alpha=0.0, ccp_risk="impurity", pruning=None).fit(X, y)
    path = whole.prune("cost_complexity", X, y, ccp_alpha="cv", cv=cv)
    found = path.cv_results_
    all_steps = cut_sequence(whole.tree_.arrays)
    first = next(number for number, step in enumerate(all_steps) if step.n_leaves <= most)
    shown = cut_short(whole.tree_.arrays, all_steps, first)
    errors, spreads = found["error"][first:], found["standard_error"][first:]
    is_known = bool(np.isfinite(errors).all())
    steps = tuple(
        PruningStep(
            alpha=float(found["alpha"][first + number]),
            n_leaves=int(found["n_leaves"][first + number]),
            training_error=of_own_rows,
            error=float(errors[number]) if is_known else None,
            standard_error=float(spreads[number]) if is_known else None,
        )
        for number, of_own_rows in enumerate(measure_steps(shown, len(all_steps) - first))
    )
    chosen = len(steps) - 1 - int(np.argmin(errors[::-1])) if is_known else 0
    pruned = next(number for number, step in enumerate(steps) if step.n_leaves <= path.tree_.n_leaves)
    columns, rows, words = view_root(whole, X, y)
    goal = np.searchsorted(whole.classes_, y) if is_classifier(whole) else np.asarray(y, np.float64)
    classes = tuple(map(str, whole.classes_.tolist())) if is_classifier(whole) else ()
    return TreeView(
        name=name,
        classes=classes,
        target=target,
        nodes=view_nodes(shown, classes, picture_nodes(shown.tree, whole._schema, X, goal)),  # noqa: SLF001
        steps=steps,
        chosen=chosen,
        one_error=pruned if is_known else 0,
        measure=MEASURES[is_classifier(whole)],
        trace_columns=columns,
        trace_rows=rows,
        trace_words=words,
    )


def cut_short(tree: Tree, steps: list[CutStep], first: int) -> Shown:
    """The tree at one step of its path, and what the steps from there on do to its nodes."""
    cut = np.where(tree.is_leaf, 0, len(steps))
    for number, step in enumerate(steps):
        cut[step.nodes] = number
    tiers = find_tiers(tree)
    for tier in tiers:  # what no step names falls with a node above it
        for has, child in tier.branches:
            cut[child] = np.minimum(cut[child], cut[tier.nodes][has])
    is_cut = cut <= first
    left = find_remainder(tree, tiers, is_cut)
    return Shown(cut_mask(tree, tiers, is_cut), np.maximum(cut[left.old] - first, 0))


def measure_steps(shown: Shown, n_steps: int) -> list[float]:
    """The error of every step on the rows that grew the tree."""
    tree, cut = shown
    risk = node_risk(tree, "error")
    gone = np.where(tree.parent < 0, n_steps, cut[tree.parent])  # from this step on a node is no longer there
    return [from_units(tree, float(risk[(cut <= s) & (s < gone)].sum()), "error") for s in range(n_steps)]


def view_nodes(
    shown: Shown, classes: Sequence[Any], pictures: Mapping[int, NodePicture] | None = None
) -> tuple[TreeNode, ...]:
    """The nodes in words and numbers, parents before children."""
    tree = shown.tree
    items = make_outline(tree)
    weights = tree.class_weights() if tree.n_classes else None
    values = None if tree.n_classes else tree.values()

    def tell(item: Item) -> TreeNode:
        node, counts, value = item.node, None, None
        if weights is not None:
            counts = tuple(weights[node].tolist())
            answer = caption(classes[int(weights[node].argmax())])
        else:
            assert values is not None
            value = float(values[node])
            answer = rounded(value)
        has_parent = item.parent >= 0
        return TreeNode(
            parent=item.parent,
            branch=str(edge_label(tree, items[item.parent].node, item, MAX_LEVELS, is_brief=True))
            if has_parent
            else "",
            test=None if tree.is_leaf[node] else feature_caption(tree, node),
            answer=answer,
            n_rows=float(tree.n_rows[node]),
            counts=counts,
            value=value,
            cut=int(shown.cut[node]),
            picture=(pictures or {}).get(node),
        )

    return tuple(tell(item) for item in items)


def view_root(whole: Any, X: Any, y: NDArray[Any]) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...], str]:
    """Headings and rows of the candidate splits of the root, best first, and why the first won."""
    from spinney import trace
    from spinney._types import LEAF

    reasons = trace(whole, X, y, max_depth=0)
    record = reasons.records[0]
    (table,) = make_tables(reasons, is_wide=True, node=0, cuts=False)
    offered = [tests for tests in record.tests if tests.kind != LEAF]
    rows = table.rows
    if len(rows) == len(offered):  # where there are many, the table has the best alone, in order
        order = sorted(range(len(rows)), key=lambda k: (rows[k].test != table.chosen, -rank_of(offered[k])))
        rows = [rows[k] for k in order]
    texts = tuple((row.test, ", ".join(row.branches), *row.figures) for row in rows)
    why = f"{table.chosen or table.prediction}: {table.reason}"
    return ("test", table.counted, *table.figures), texts, f"{table.summary}. {why}."
