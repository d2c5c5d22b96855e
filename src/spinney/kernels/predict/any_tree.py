"""Rows through any tree: a branch for each level, surrogate tests, rows that take every branch.

`kernels.predict.lanes` is the fast way for trees of thresholds and subsets where a row takes one path; this is the
other one. Its rule for a known value is the same.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined
from spinney._types import EVERY_BRANCH, LEAF, MULTIWAY

from ..common.branch import branch_of_value, has_level
from ..common.node_layout import feature_of, kind_of, missing_of
from ..common.structs import AnyTree, LeafAnswers, OpenNodes, SurrogateTests

NO_BRANCH = -1


@inlined
def surrogate_branch(values: np.ndarray, row: int, node: int, surrogates: SurrogateTests, subsets: np.ndarray) -> int:
    """Branch by the first surrogate of a node that knows the row's value; NO_BRANCH if none does."""
    for s in range(surrogates.first[node], surrogates.first[node + 1]):
        test = np.int64(surrogates.test[s])
        feature = feature_of(test)
        value = np.float64(values[row, feature])
        if value == value:
            cut = surrogates.cut[s]
            n_words = surrogates.n_words[s]
            if n_words > 0:
                if not has_level(subsets, np.int64(cut) + n_words, np.int64(value)):
                    continue
            return branch_of_value(value, kind_of(test), cut, 0, subsets) ^ missing_of(test)
    return np.int64(NO_BRANCH)


@inlined
def branch_of_row(values: np.ndarray, row: int, node: int, test: int, tree: AnyTree, surrogates: SurrogateTests) -> int:
    """Branch that a row takes at a node; NO_BRANCH if it takes all of them."""
    kind = kind_of(test)
    value = np.float64(values[row, feature_of(test)])
    if value == value:
        if kind == MULTIWAY:
            return np.int64(value)
        return branch_of_value(value, kind, tree.cut[node], 0, tree.subsets)
    branch = np.int64(NO_BRANCH)
    if len(surrogates.first) > 1:
        branch = surrogate_branch(values, row, node, surrogates, tree.subsets)
    if branch < 0 and missing_of(test) != EVERY_BRANCH:
        branch = np.int64(tree.cut[node]) if kind == MULTIWAY else missing_of(test)
    return branch


@door
def walk(
    values: np.ndarray,  # (n_rows, n_features) float32 or float64
    tree: AnyTree,
    surrogates: SurrogateTests,
    answers: LeafAnswers,
    stack: OpenNodes,
    leaf: np.ndarray,  # (n_rows,) int32, written: the leaf that takes most of a row, the first among equals
    out: np.ndarray,  # (n_rows, width) float64, zeros, added to: the answers, weighted by the row's shares
) -> None:
    """Find the leaves of each row and what they say together."""
    tests = tree.test
    n_branches = tree.n_branches
    weight = tree.weight
    said = answers.values
    for i in range(len(values)):
        stack.node[0] = 0
        stack.share[0] = 1.0
        n_open = np.int64(1)
        most = 0.0
        for _ in range(len(tests)):  # a row meets a node once; arrays that no one checked must not hold it for ever
            if n_open == 0:
                break
            n_open -= 1
            node = np.int64(stack.node[n_open])
            share = stack.share[n_open]
            test = np.int64(tests[node])
            if kind_of(test) == LEAF:
                if share > most:
                    most = share
                    leaf[i] = node
                at = np.int64(answers.row_of[node])
                for k in range(said.shape[1]):
                    out[i, k] += share * said[at, k]
                continue
            first = np.int64(tree.first_child[node])
            branch = branch_of_row(values, i, node, test, tree, surrogates)
            if branch >= 0:
                stack.node[n_open] = first + branch
                stack.share[n_open] = share
                n_open += 1
                continue
            for back in range(n_branches[node]):
                child = first + n_branches[node] - 1 - back
                if weight[child] > 0.0:
                    stack.node[n_open] = child
                    stack.share[n_open] = share * (weight[child] / weight[node])
                    n_open += 1
