"""Rows through any tree: a branch for each level, surrogate tests, rows that take every branch.

`kernels.predict.lanes` is the fast way for trees of thresholds and subsets where a row takes one path; this is the
other one. Its rule for a known value is the same.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined
from spinney._types import EVERY_BRANCH, FEATURE_SHIFT, KIND_BITS, LEAF, MISSING_BITS, MULTIWAY

from ..common.branch import branch_of_value, has_level

KIND_MASK = (1 << KIND_BITS) - 1
MISSING_MASK = (1 << MISSING_BITS) - 1


@inlined
def stand_in(
    values: np.ndarray,
    row: int,
    node: int,
    first_surrogate: np.ndarray,
    surrogate_test: np.ndarray,
    surrogate_cut: np.ndarray,
    surrogate_words: np.ndarray,
    subsets: np.ndarray,
) -> int:
    """Branch by the first surrogate of a node that knows the row's value; -1 if none does."""
    for s in range(first_surrogate[node], first_surrogate[node + 1]):
        test = np.int64(surrogate_test[s])
        value = np.float64(values[row, test >> FEATURE_SHIFT])
        if value == value:
            n_words = np.int64(surrogate_words[s])
            if n_words > 0:
                if not has_level(subsets, np.int64(surrogate_cut[s]) + n_words, np.int64(value)):
                    continue
            is_reversed = (test >> KIND_BITS) & MISSING_MASK
            return branch_of_value(value, test & KIND_MASK, surrogate_cut[s], 0, subsets) ^ is_reversed
    return np.int64(-1)


@door
def walk(
    values: np.ndarray,  # (n_rows, n_features) float32 or float64
    tests: np.ndarray,  # (n_nodes,) uint32
    first_child: np.ndarray,  # (n_nodes,) int32
    cuts: np.ndarray,  # (n_nodes,) float64: `Tree.threshold`
    weight: np.ndarray,  # (n_nodes,) float64
    n_branches: np.ndarray,  # (n_nodes,) int64
    subsets: np.ndarray,
    first_surrogate: np.ndarray,  # (n_nodes + 1,) int32, or (1,): no surrogates
    surrogate_test: np.ndarray,  # uint32: feature << 4 | is reversed << 2 | kind
    surrogate_cut: np.ndarray,  # float64
    surrogate_words: np.ndarray,  # int64: words of a bitset of levels; the levels that are known stand behind it
    answer_of: np.ndarray,  # (n_nodes,) int32: row of each leaf in `answers`
    answers: np.ndarray,  # (n_leaves, width) float64
    stack: np.ndarray,  # (most branches * depth + 1,) int32 scratch
    shares: np.ndarray,  # the same, float64
    leaf: np.ndarray,  # (n_rows,) int32, written: the leaf that takes most of a row, the first among equals
    out: np.ndarray,  # (n_rows, width) float64, zeros, added to: the answers, weighted by the row's shares
) -> None:
    """Find the leaves of each row and what they say together."""
    has_surrogates = len(first_surrogate) > 1
    width = answers.shape[1]
    for i in range(len(values)):
        stack[0] = 0
        shares[0] = 1.0
        n_open = np.int64(1)
        most = 0.0
        for _ in range(len(tests)):  # a row meets a node once; arrays that no one checked must not hold it for ever
            if n_open == 0:
                break
            n_open -= 1
            node = np.int64(stack[n_open])
            share = shares[n_open]
            test = np.int64(tests[node])
            kind = test & KIND_MASK
            if kind == LEAF:
                if share > most:
                    most = share
                    leaf[i] = node
                at = np.int64(answer_of[node])
                for k in range(width):
                    out[i, k] += share * answers[at, k]
                continue
            value = np.float64(values[i, test >> FEATURE_SHIFT])
            first = np.int64(first_child[node])
            branch = np.int64(-1)
            if value == value:
                if kind == MULTIWAY:
                    branch = np.int64(value)
                else:
                    branch = branch_of_value(value, kind, cuts[node], 0, subsets)
            else:
                if has_surrogates:
                    branch = stand_in(
                        values, i, node, first_surrogate, surrogate_test, surrogate_cut, surrogate_words, subsets
                    )
                if branch < 0:
                    branch = (test >> KIND_BITS) & MISSING_MASK
                    if branch == EVERY_BRANCH:
                        branch = np.int64(-1)
                    elif kind == MULTIWAY:
                        branch = np.int64(cuts[node])
            if branch >= 0:
                stack[n_open] = first + branch
                shares[n_open] = share
                n_open += 1
                continue
            for back in range(n_branches[node]):
                child = first + n_branches[node] - 1 - back
                if weight[child] > 0.0:
                    stack[n_open] = child
                    shares[n_open] = share * (weight[child] / weight[node])
                    n_open += 1
