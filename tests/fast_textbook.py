"""The package's textbook trees beside those of `naive_textbook`: grown, built from naive nodes, compared."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

import fast
import naive_textbook
from spinney._node_layout import pack_test
from spinney._types import EVERY_BRANCH, LEAF, MAX_CODES, MULTIWAY, THRESHOLD
from spinney.table.coding import code_table
from spinney.table.fixed_point import class_target, fix_weights, value_target
from spinney.tree.structure import Tree
from spinney.tree.textbook import TextbookParams, grow_textbook

CLOSE = 1e-9


def grow_naive(table, **params):
    """The naive table and the tree of it; `table` is a `strategies.SmallTable`."""
    data, cases = naive_textbook.read_table(
        table.columns, table.y, table.weights, table.n_classes, table.is_categorical, table.n_levels
    )
    return data, naive_textbook.grow_cases(data, cases, naive_textbook.Params(**params))


def grow(table, *, kernels=None, **params):
    """The package's tree with the parameters of `grow_naive`."""
    kernels = kernels or fast.compiled()
    keep, weights, y = None, None, np.asarray(table.y, np.float64 if table.n_classes is None else np.int64)
    if table.weights is not None:
        weights = np.asarray(table.weights, np.float64)
        keep = weights > 0
        weights, y = weights[keep], y[keep]
    levels = [tuple(range(n)) if is_it else None for n, is_it in zip(table.n_levels, table.is_categorical, strict=True)]
    fixed = fix_weights(weights, len(y))
    codes = code_table(fast.ColumnTable(table.columns, levels), fixed.values, MAX_CODES, kernels, keep)
    if table.n_classes is None:
        target = value_target(y, fixed, has_square=params["criterion"] == "sdr")
    else:
        target = class_target(y, table.n_classes, fixed)
    missing = "every" if params.get("rule") == "c45" else "branch"
    return grow_textbook(codes, target, fixed, TextbookParams(missing=missing, **params), kernels)


def take(table, rows):
    """The table with these rows in this order."""
    weights = None if table.weights is None else [table.weights[i] for i in rows]
    columns = [[column[i] for i in rows] for column in table.columns]
    return replace(table, columns=columns, y=[table.y[i] for i in rows], weights=weights)


# ------------------------------------------------------------------------------------------ a tree of naive nodes


def build(root, table, criterion):
    """The arrays of a naive tree, nodes in order of depth."""
    order = [root]
    for node in order:
        order.extend(node.children)
    place = {id(node): at for at, node in enumerate(order)}
    distributions: list[list[float]] = []
    cut = [cut_of(node, table, distributions) for node in order]
    return Tree(
        test=np.array([word_of(node) for node in order], np.uint32),
        first_child=np.array([place[id(node.children[0])] if node.children else 0 for node in order], np.int32),
        threshold=np.array(cut, np.float64),
        subsets=np.zeros(0, np.uint64),
        n_rows=np.array([len(node.cases) for node in order], np.uint32),
        weight=np.array([float(node.weight) for node in order]),
        impurity=np.array([impurity_of(node, criterion) for node in order]),
        impurity_exponent=0,
        distributions=np.array(distributions, np.float64).reshape(len(distributions), table.n_classes or 0),
        n_classes=table.n_classes or 0,
        n_levels=np.array(table.n_levels, np.int32),
    )


def impurity_of(node, criterion):
    return 0.0 if node.is_empty else float(naive_textbook.impurity(criterion, node.sums, node.weight))


def word_of(node):
    if node.is_leaf:
        return LEAF
    kind = MULTIWAY if node.threshold is None else THRESHOLD
    bits = 0 if kind == MULTIWAY else node.missing_branch
    if node.missing_branch == naive_textbook.EVERY:
        bits = EVERY_BRANCH
    return pack_test(node.feature, bits, kind)


def cut_of(node, table, distributions):
    """What the array of thresholds says of a node; leaves of several classes add their weights."""
    if not node.is_leaf:
        if node.threshold is not None:
            return node.threshold
        return 0 if node.missing_branch == naive_textbook.EVERY else node.missing_branch
    *sums, weight = node.answer
    if table.n_classes is None:
        return float(sums[0] / weight)
    if sum(s > 0 for s in sums) == 1:
        return sums.index(weight)
    distributions.append([float(s) for s in sums])
    return -len(distributions)


# ------------------------------------------------------------------------------------------------------ comparing


def assert_same_tree(tree, root, criterion):
    """The same tests; rows, weights, sums, impurities and answers to nine digits."""
    impurities, values = fast.impurity(tree), tree.values()
    sums = tree.class_weights() if tree.n_classes else None
    spread = math.sqrt(float(impurity_of(root, "squared_error"))) if not tree.n_classes else 1.0
    scale = float(impurity_of(root, criterion))
    open_pairs = [(0, root)]
    while open_pairs:
        k, node = open_pairs.pop()
        assert rule_of_tree(tree, k) == rule_of_node(node), f"node {k}"
        assert math.isclose(tree.weight[k], node.weight, rel_tol=CLOSE, abs_tol=CLOSE * float(root.weight))
        if not node.is_empty:
            np.testing.assert_allclose(impurities[k], impurity_of(node, criterion), rtol=CLOSE, atol=CLOSE * scale)
        *answer, weight = (float(part) for part in node.answer)
        if tree.n_classes:
            np.testing.assert_allclose(
                sums[k], [float(s) for s in node.sums], rtol=CLOSE, atol=CLOSE * float(root.weight)
            )
            np.testing.assert_allclose(values[k], np.array(answer) / weight, rtol=CLOSE, atol=CLOSE)
        else:
            np.testing.assert_allclose(
                values[k], answer[0] / weight, rtol=CLOSE, atol=CLOSE * (spread + abs(answer[0]))
            )
        if node.is_leaf:  # what is stored, be it empty: `values` looks at the parent of an empty leaf
            expected = np.array(answer) / weight if tree.n_classes else answer[0] / weight
            np.testing.assert_allclose(said(tree, k), expected, rtol=CLOSE, atol=CLOSE * (spread + abs(answer[0])))
        first = int(tree.first_child[k])
        open_pairs += [(first + branch, child) for branch, child in enumerate(node.children)]


def said(tree, leaf):
    """What a leaf answers, as its arrays say: a value, or shares of the classes."""
    cut = float(tree.threshold[leaf])
    if not tree.n_classes:
        return cut
    weights = tree.distributions[-1 - int(cut)] if cut < 0 else np.arange(tree.n_classes) == cut
    return weights / weights.sum()


def rule_of_node(node):
    """What must be equal to the last bit."""
    if node.is_leaf:
        return len(node.cases)
    missing = "every" if node.missing_branch == naive_textbook.EVERY else node.missing_branch
    return len(node.cases), node.feature, node.threshold, missing, len(node.children)


def rule_of_tree(tree, k):
    if tree.is_leaf[k]:
        return int(tree.n_rows[k])
    threshold = None if tree.kind[k] == MULTIWAY else float(tree.threshold[k])
    missing = "every" if tree.spreads_missing[k] else int(tree.missing_branch[k])
    return int(tree.n_rows[k]), int(tree.feature[k]), threshold, missing, int(tree.n_branches[k])


def place_of(root):
    """Each node of a naive tree by its number in `build`."""
    order = [root]
    for node in order:
        order.extend(node.children)
    return order
