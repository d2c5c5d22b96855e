"""SHAP values of trees against background rows (interventional): values that are not known are those of another row.

The game of a row and a background row: the *hybrid* of a set S of features has the row's values in S and the other's
elsewhere, and gets what the model predicts for it. All hybrids go down a tree together. Where the two values of a
feature lead to different branches, the hybrids part: those that have the feature from the row and those that have it
from the other; from there on the feature is *decided*. A leaf is reached by the hybrids that agree with what was
decided on its path: a features from the row, c from the other. Its value v then adds, by Shapley's formula,

    v (a - 1)! c! / (a + c)!   to each feature from the row,
   -v a! (c - 1)! / (a + c)!   to each feature from the other row

A question is the test of a node or, where its value is missing, one of its surrogates, which may ask for another
feature: questions have a stage, and "the next stage" is one of the ways to leave a question.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined, kernel
from spinney._types import EVERY_BRANCH, MULTIWAY

from ..common.branch import branch_of_value, has_level
from ..common.node_layout import feature_of, kind_of, missing_of
from ..common.structs import ExplainedLeaves, ExplainedModel, HybridScratch

FROM_ROW = 0
FROM_OTHER = 1
UNDECIDED = 2
ALL_BRANCHES = -1
NEXT_STAGE = -2


@inlined
def inverse_choose(a: int, c: int) -> float:
    """Shapley's weight a! c! / (a + c + 1)!."""
    low = min(a, c)
    high = max(a, c)
    weight = 1.0 / np.float64(a + c + 1)
    for i in range(1, low + 1):
        weight *= np.float64(i) / np.float64(high + i)
    return weight


@inlined
def way_out(value: float, node: int, stage: int, model: ExplainedModel) -> int:
    """The branch by which a value leaves a question, ALL_BRANCHES or NEXT_STAGE."""
    trees = model.trees
    surrogates = model.surrogates
    test = np.int64(trees.test[node])
    if stage > 0:
        s = np.int64(surrogates.first[node]) + stage - 1
        if s < surrogates.first[node + 1]:
            if value != value:
                return np.int64(NEXT_STAGE)
            cut = surrogates.cut[s]
            n_words = surrogates.n_words[s]
            if n_words > 0:
                if not has_level(trees.subsets, np.int64(cut) + n_words, np.int64(value)):
                    return np.int64(NEXT_STAGE)
            asked = np.int64(surrogates.test[s])
            return branch_of_value(value, kind_of(asked), cut, 0, trees.subsets) ^ missing_of(asked)
    elif value == value:
        if kind_of(test) == MULTIWAY:
            return np.int64(value)
        return branch_of_value(value, kind_of(test), trees.cut[node], 0, trees.subsets)
    elif len(surrogates.first) > 1:
        return np.int64(NEXT_STAGE)
    if missing_of(test) == EVERY_BRANCH:
        return np.int64(ALL_BRANCHES)
    return np.int64(trees.cut[node]) if kind_of(test) == MULTIWAY else missing_of(test)


@inlined
def asked_feature(node: int, stage: int, model: ExplainedModel) -> int:
    """The feature of a question; behind the last surrogate that of the node, which is missing."""
    if stage > 0:
        s = np.int64(model.surrogates.first[node]) + stage - 1
        if s < model.surrogates.first[node + 1]:
            return np.int64(feature_of(np.int64(model.surrogates.test[s])))
    return model.trees.feature[node]


@inlined
def push_hybrid(
    n_open: int,
    question: tuple[int, int],  # node, stage
    share: float,
    n_known: int,
    decided: tuple[int, int],  # feature, side; -1: none
    scratch: HybridScratch,
) -> int:
    """Put a question on the stack; return its height."""
    scratch.node[n_open] = question[0]
    scratch.stage[n_open] = question[1]
    scratch.share[n_open] = share
    scratch.n_known[n_open] = n_known
    scratch.feature[n_open] = decided[0]
    scratch.side[n_open] = decided[1]
    return n_open + 1


@inlined
def push_way(
    n_open: int,
    question: tuple[int, int],
    way: int,
    share: float,
    n_known: int,
    decided: tuple[int, int],
    model: ExplainedModel,
    scratch: HybridScratch,
) -> int:
    """Put what a way out of a question leads to on the stack; return its height."""
    node, stage = question
    trees = model.trees
    if way == NEXT_STAGE:
        return push_hybrid(n_open, (node, stage + 1), share, n_known, decided, scratch)
    first = trees.first_child[node]
    if way >= 0:
        return push_hybrid(n_open, (first + way, 0), share, n_known, decided, scratch)
    for b in range(trees.n_branches[node]):
        part = trees.weight[first + b] / trees.weight[node]
        if part > 0.0:
            n_open = push_hybrid(n_open, (first + b, 0), share * part, n_known, decided, scratch)
    return n_open


@inlined
def share_out(
    value: float, column: int, n_known: int, n_row: int, extra: tuple[int, int], scratch: HybridScratch, out: np.ndarray
) -> None:
    """Add a leaf's value to the features that are decided, and to one that its linear model decides (or -1)."""
    known = scratch.known
    side_of = scratch.side_of
    feature, side = extra
    n_all = n_known
    if feature >= 0:
        n_all += 1
        n_row += np.int64(side == FROM_ROW)
    n_other = n_all - n_row
    if n_all == 0:
        return
    gain = value * inverse_choose(n_row - 1, n_other) if n_row > 0 else 0.0
    loss = -value * inverse_choose(n_row, n_other - 1) if n_other > 0 else 0.0
    for k in range(n_known):
        f = known[k]
        out[column, f] += gain if side_of[f] == FROM_ROW else loss
    if feature >= 0:
        out[column, feature] += gain if side == FROM_ROW else loss


@inlined
def term_of(value: float, term: int, leaves: ExplainedLeaves) -> float:
    """What a term of a linear model is for a value."""
    return 0.0 if value != value else leaves.terms.coefficient[term] * (value - leaves.terms.fill[term])


@kernel
def add_hybrid_leaf(
    pair: tuple[np.ndarray, int, np.ndarray, int],  # values of the rows and a row, those of the background and a row
    place: tuple[int, int],  # tree, leaf
    share: float,
    n_known: int,
    model: ExplainedModel,
    scratch: HybridScratch,
    out: np.ndarray,
) -> None:
    """Add a leaf to the features that were decided on its path, and its linear model, if any, to its own."""
    values, row, others, other = pair
    tree, node = place
    leaves = model.leaves
    side_of = scratch.side_of
    n_row = np.int64(0)
    for k in range(n_known):
        n_row += np.int64(side_of[scratch.known[k]] == FROM_ROW)
    scale = leaves.scale[tree] * share
    has_terms = len(leaves.terms.first) > 1
    for k in range(leaves.values.shape[1]):
        value = leaves.values[leaves.row_of[node], k]
        column = leaves.output[tree] + k
        if has_terms:
            for term in range(leaves.terms.first[node], leaves.terms.first[node + 1]):
                feature = np.int64(leaves.terms.feature[term])
                mine = term_of(np.float64(values[row, feature]), term, leaves)
                theirs = term_of(np.float64(others[other, feature]), term, leaves)
                if mine == theirs or side_of[feature] == FROM_ROW:
                    value += mine
                elif side_of[feature] == FROM_OTHER:
                    value += theirs
                else:
                    share_out(mine * scale, column, n_known, n_row, (feature, FROM_ROW), scratch, out)
                    share_out(theirs * scale, column, n_known, n_row, (feature, FROM_OTHER), scratch, out)
        share_out(value * scale, column, n_known, n_row, (-1, 0), scratch, out)


@kernel
def descend_hybrids(
    pair: tuple[np.ndarray, int, np.ndarray, int],
    tree: int,
    model: ExplainedModel,
    scratch: HybridScratch,
    out: np.ndarray,
) -> None:
    """Lead the hybrids of two rows through a tree."""
    values, row, others, other = pair
    trees = model.trees
    known = scratch.known
    side_of = scratch.side_of
    n_known = np.int64(0)
    n_open = push_hybrid(0, (trees.first_node[tree], 0), 1.0, 0, (-1, 0), scratch)
    while n_open > 0:
        n_open -= 1
        node = scratch.node[n_open]
        stage = scratch.stage[n_open]
        share = scratch.share[n_open]
        while n_known > scratch.n_known[n_open]:
            n_known -= 1
            side_of[known[n_known]] = UNDECIDED
        if scratch.feature[n_open] >= 0:
            known[n_known] = scratch.feature[n_open]
            side_of[known[n_known]] = scratch.side[n_open]
            n_known += 1
        if trees.n_branches[node] == 0:
            add_hybrid_leaf(pair, (tree, node), share, n_known, model, scratch, out)
            continue
        feature = asked_feature(node, stage, model)
        side = np.int64(side_of[feature])
        mine = way_out(np.float64(values[row, feature]), node, stage, model)
        theirs = way_out(np.float64(others[other, feature]), node, stage, model)
        question = (node, stage)
        if side == FROM_ROW or mine == theirs:
            n_open = push_way(n_open, question, mine, share, n_known, (-1, 0), model, scratch)
        elif side == FROM_OTHER:
            n_open = push_way(n_open, question, theirs, share, n_known, (-1, 0), model, scratch)
        else:
            n_open = push_way(n_open, question, theirs, share, n_known, (feature, FROM_OTHER), model, scratch)
            n_open = push_way(n_open, question, mine, share, n_known, (feature, FROM_ROW), model, scratch)
    while n_known > 0:
        n_known -= 1
        side_of[known[n_known]] = UNDECIDED


@door
def add_against(
    values: np.ndarray,  # (n_rows, n_features) float32 or float64
    others: np.ndarray,  # (n_others, n_features), of the same type
    model: ExplainedModel,
    scratch: HybridScratch,
    out: np.ndarray,  # (n_rows, n_outputs, n_features) float64, added to
    sums: np.ndarray,  # (n_outputs, n_features) float64 scratch
) -> None:
    """Add the SHAP values of rows against each background row, tree by tree: sums over these, not means."""
    for row in range(len(values)):
        for k in range(sums.shape[0]):
            for feature in range(sums.shape[1]):
                sums[k, feature] = 0.0
        for tree in range(len(model.trees.first_node) - 1):
            for other in range(len(others)):
                descend_hybrids((values, row, others, other), tree, model, scratch, sums)
        for k in range(sums.shape[0]):
            for feature in range(sums.shape[1]):
                out[row, k, feature] += sums[k, feature]
