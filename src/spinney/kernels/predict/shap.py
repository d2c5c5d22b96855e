"""SHAP values of trees, as conditional expectations along the paths of a tree (path dependent).

The game. Where the features S of a row are known, a node that tests one of them sends the row where it goes; any other
node sends it to all its branches, in parts as the weights of the training rows were. A leaf of value v is then reached
by the part

    product over the features f of its path of:  o_f if f is in S, else z_f

where o_f is 1 if the row takes all edges of f's tests on the path and else 0, z_f the product of these edges' ratios.

Shapley values of such a product are an integral, since |S|! (d - 1 - |S|)! / d! is that of t^|S| (1 - t)^(d - 1 - |S|):

    value of f = v (o_f - z_f) * integral over t from 0 to 1 of  product over g other than f of  z_g (1 - t) + o_g t

The integrand is a polynomial of degree d - 1, whose integral d/2 points of Gauss and Legendre give exactly. Every
factor is between 0 and 1 and nothing is subtracted, so nothing is lost at any depth. At each point, the products grow
on the way down, the sums over leaves on the way up, and an edge adds to its feature

    sum behind the edge * weight * (o z' - o' z) / (factor * factor'),    o', z', factor': before this edge

which is 0 from the edge on that a row does not take: a row that has left the way by a feature learns nothing more from
it. Nor does one whose missing value takes every branch, by the very ratios: its o shrinks as its z.

Values are laid out for speed: SHAP_ROWS rows go down together, and what an edge does to a polynomial depends only on
whether a row takes it, takes another, or has left before: three numbers a point, the same for all rows.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined, kernel
from spinney._types import EVERY_BRANCH, SHAP_POINTS, SHAP_ROWS, THRESHOLD

from ..common.node_layout import kind_of, missing_of
from ..common.structs import ExplainedLeaves, ExplainedModel, ExplainedTrees, ShapPoints, ShapRows, ShapScratch
from .any_tree import branch_of_row

# --- Laying out ---------------------------------------------------------------------------------------------------


@inlined
def ratio_of(trees: ExplainedTrees, node: int, child: int) -> float:
    """Part of a node's weight that a child has; of a node without weight, one for all."""
    weight = trees.weight[node]
    return trees.weight[child] / weight if weight > 0.0 else 1.0 / np.float64(trees.n_branches[node])


@door
def lay_covers(
    trees: ExplainedTrees,
    leaves: ExplainedLeaves,
    stack: np.ndarray,  # (2, room) int64 scratch
    behind: np.ndarray,  # (n_features,) float64, ones in and out: product of the ratios behind tests of each feature
    n_tests: np.ndarray,  # (n_features,) int64, zeros in and out: tests of each feature on the way
    most: np.ndarray,  # (n_trees,) int64, written: the most features on a path, those of linear models included
) -> None:
    """Write the ratios of each edge, and those of its feature above it."""
    terms = leaves.terms
    has_terms = len(terms.first) > 1
    for tree in range(len(trees.first_node) - 1):
        root = trees.first_node[tree]
        trees.ratio[root] = 1.0
        trees.above[root] = 1.0
        stack[0, 0] = root
        stack[1, 0] = 0
        depth = np.int64(0)
        n_known = np.int64(0)
        found = np.int64(0)
        while depth >= 0:
            node = stack[0, depth]
            b = stack[1, depth]
            n_branches = trees.n_branches[node]
            if n_branches == 0:
                n_more = np.int64(0)
                if has_terms:
                    for term in range(terms.first[node], terms.first[node + 1]):
                        leaves.term_above[term] = behind[terms.feature[term]]
                        n_more += np.int64(n_tests[terms.feature[term]] == 0)
                found = max(found, n_known + n_more)
            feature = trees.feature[node]
            if b > 0:  # back from a branch
                behind[feature] = trees.above[trees.first_child[node] + b - 1]
            elif n_branches > 0:
                n_known += np.int64(n_tests[feature] == 0)
                n_tests[feature] += 1
            if b == n_branches:
                if n_branches > 0:
                    n_tests[feature] -= 1
                    n_known -= np.int64(n_tests[feature] == 0)
                depth -= 1
                continue
            child = trees.first_child[node] + b
            trees.ratio[child] = ratio_of(trees, node, child)
            trees.above[child] = behind[feature]
            behind[feature] *= trees.ratio[child]
            stack[1, depth] = b + 1
            depth += 1
            stack[0, depth] = child
            stack[1, depth] = 0
        most[tree] = found


@door
def expect(
    trees: ExplainedTrees,
    leaves: ExplainedLeaves,
    reach: np.ndarray,  # (n_nodes,) float64 scratch
    out: np.ndarray,  # (n_outputs,) float64, added to
) -> None:
    """Add up what trees say of a row of which nothing is known."""
    for tree in range(len(trees.first_node) - 1):
        root = trees.first_node[tree]
        reach[root] = leaves.scale[tree]
        for node in range(root, trees.first_node[tree + 1]):
            for b in range(trees.n_branches[node]):
                child = trees.first_child[node] + b
                reach[child] = reach[node] * trees.ratio[child]
            if trees.n_branches[node] == 0:
                for k in range(leaves.values.shape[1]):
                    out[leaves.output[tree] + k] += reach[node] * leaves.values[leaves.row_of[node], k]


@kernel
def tabulate(
    model: ExplainedModel, tree: int, column: int, points: ShapPoints, first: int, n_points: int, scratch: ShapScratch
) -> None:
    """Write what the edges of a tree do at some points, and which lead to leaves that say something in a column."""
    trees = model.trees
    leaves = model.leaves
    tables = scratch.tables
    root = trees.first_node[tree]
    has_terms = len(leaves.terms.first) > 1
    for back in range(trees.first_node[tree + 1] - root):
        node = trees.first_node[tree + 1] - 1 - back
        at = node - root
        said = 1.0
        has_sum = np.uint8(0)
        if trees.n_branches[node] == 0:
            is_linear = has_terms and leaves.terms.first[node + 1] > leaves.terms.first[node]
            if not is_linear:
                said = leaves.values[leaves.row_of[node], column] * leaves.scale[tree]
            has_sum = np.uint8(is_linear or said != 0.0)
        for b in range(trees.n_branches[node]):
            has_sum |= tables.has_sum[trees.first_child[node] + b - root]
        tables.has_sum[at] = has_sum
        before = trees.above[node]
        after = before * trees.ratio[node]
        tables.open[at] = trees.ratio[node] * said
        for q in range(n_points):
            here = points.here[first + q]
            there = points.there[first + q]
            factor_before = before * there + here
            factor = after * there + here
            tables.taken[at, q] = factor / factor_before * said
            tables.passed[at, q] = after * there / factor_before * said
            tables.gain[at, q] = points.weight[first + q] * (before - after) / (factor * factor_before)
            tables.loss[at, q] = -points.weight[first + q] / (there * factor_before)


# --- On the way ---------------------------------------------------------------------------------------------------
# One array is written in each loop, and nothing is read under a condition: so the compiler takes many rows at a time.


@inlined
def ask_rows(model: ExplainedModel, rows: ShapRows, block: int, node: int, depth: int, scratch: ShapScratch) -> None:
    """Write the branch that each row takes at a node, -1 for one that learns nothing there."""
    test = np.int64(model.trees.test[node])
    feature = model.trees.feature[node]
    branch = scratch.branch
    live = scratch.live
    if kind_of(test) == THRESHOLD and len(model.surrogates.first) == 1:
        columns = rows.columns
        cut = model.trees.cut[node]
        missing = np.float64(missing_of(test))
        if missing_of(test) == EVERY_BRANCH:
            missing = -1.0
        for i in range(SHAP_ROWS):
            value = columns[block, feature, i]
            known = 1.0 if value > cut else 0.0
            known = missing if value != value else known
            branch[depth, i] = known if live[feature, i] > 0.0 else -1.0
        return
    n_rows = len(rows.values)
    for i in range(SHAP_ROWS):
        row = min(block * SHAP_ROWS + i, n_rows - 1)
        found = np.float64(branch_of_row(rows.values, row, node, test, model.trees, model.surrogates))
        branch[depth, i] = found if live[feature, i] > 0.0 else -1.0


@inlined
def open_node(model: ExplainedModel, rows: ShapRows, block: int, node: int, depth: int, scratch: ShapScratch) -> None:
    """Ask a node's test and begin its sums."""
    ask_rows(model, rows, block, node, depth, scratch)
    feature = model.trees.feature[node]
    kept = scratch.kept
    live = scratch.live
    sums = scratch.sums
    total = scratch.total
    for i in range(SHAP_ROWS):
        kept[depth, i] = live[feature, i]
    for q in range(SHAP_POINTS):
        for i in range(SHAP_ROWS):
            sums[depth, q, i] = 0.0
    for i in range(SHAP_ROWS):
        total[depth, i] = 0.0


@inlined
def add_plain_leaf(edge: int, b: int, depth: int, n_points: int, scratch: ShapScratch) -> None:
    """Add a leaf, the end of branch b, to the sums of the node above it and to what its test adds."""
    tables = scratch.tables
    way = scratch.way
    sums = scratch.sums
    branch = scratch.branch
    total = scratch.total
    part = scratch.part
    number = np.float64(b)
    is_open = tables.open[edge]
    for q in range(n_points):
        taken = tables.taken[edge, q]
        passed = tables.passed[edge, q]
        gain = tables.gain[edge, q]
        loss = tables.loss[edge, q]
        for i in range(SHAP_ROWS):
            found = branch[depth, i]
            other = is_open if found < 0.0 else passed
            part[i] = way[depth, q, i] * (taken if found == number else other)
        for i in range(SHAP_ROWS):
            sums[depth, q, i] += part[i]
        for i in range(SHAP_ROWS):
            total[depth, i] += part[i] * (gain if branch[depth, i] == number else loss)


@inlined
def go_down(edge: int, b: int, feature: int, depth: int, n_points: int, scratch: ShapScratch) -> None:
    """Lead the products of a node down an edge, its branch b."""
    tables = scratch.tables
    way = scratch.way
    branch = scratch.branch
    live = scratch.live
    kept = scratch.kept
    number = np.float64(b)
    is_open = tables.open[edge]
    for q in range(n_points):
        taken = tables.taken[edge, q]
        passed = tables.passed[edge, q]
        for i in range(SHAP_ROWS):
            found = branch[depth, i]
            other = is_open if found < 0.0 else passed
            way[depth + 1, q, i] = way[depth, q, i] * (taken if found == number else other)
    for i in range(SHAP_ROWS):
        found = branch[depth, i]
        other = kept[depth, i] if found < 0.0 else 0.0
        live[feature, i] = 1.0 if found == number else other


@inlined
def come_back(edge: int, b: int, depth: int, n_points: int, scratch: ShapScratch) -> None:
    """Add the sums behind an edge, branch b, to those of the node above it and to what its test adds."""
    tables = scratch.tables
    sums = scratch.sums
    branch = scratch.branch
    total = scratch.total
    number = np.float64(b)
    for q in range(n_points):
        gain = tables.gain[edge, q]
        loss = tables.loss[edge, q]
        for i in range(SHAP_ROWS):
            sums[depth, q, i] += sums[depth + 1, q, i]
        for i in range(SHAP_ROWS):
            total[depth, i] += sums[depth + 1, q, i] * (gain if branch[depth, i] == number else loss)


@inlined
def close_node(feature: int, output: int, block: int, depth: int, scratch: ShapScratch, out: np.ndarray) -> None:
    """Add what a test has found out to its feature, and forget it."""
    kept = scratch.kept
    live = scratch.live
    branch = scratch.branch
    total = scratch.total
    for i in range(SHAP_ROWS):
        live[feature, i] = kept[depth, i]
    for i in range(SHAP_ROWS):
        out[output, block, feature, i] += total[depth, i] if branch[depth, i] >= 0.0 else 0.0


@inlined
def weigh_term(rows: ShapRows, block: int, term: int, scale: float, leaves: ExplainedLeaves, part: np.ndarray) -> None:
    """Write what a term of a linear model is for each row."""
    columns = rows.columns
    feature = np.int64(leaves.terms.feature[term])
    coefficient = leaves.terms.coefficient[term] * scale
    fill = leaves.terms.fill[term]
    for i in range(SHAP_ROWS):
        value = columns[block, feature, i]
        part[i] = 0.0 if value != value else coefficient * (value - fill)


@inlined
def add_linear_leaf(
    model: ExplainedModel,
    place: tuple[int, int, int, int],  # tree, node, depth, block
    rows: ShapRows,
    points: ShapPoints,
    span: tuple[int, int],  # first of the points, their number
    scratch: ShapScratch,
    out: np.ndarray,
) -> None:
    """Add the mean of a leaf and its terms: each is known where its feature is, and else 0, its mean in the leaf."""
    tree, node, depth, block = place
    first, n_points = span
    leaves = model.leaves
    way = scratch.way
    sums = scratch.sums
    live = scratch.live
    part = scratch.part
    scale = leaves.scale[tree]
    output = leaves.output[tree]
    mean = leaves.values[leaves.row_of[node], 0] * scale
    for q in range(n_points):
        for i in range(SHAP_ROWS):
            sums[depth, q, i] = way[depth, q, i] * mean
    for term in range(leaves.terms.first[node], leaves.terms.first[node + 1]):
        feature = np.int64(leaves.terms.feature[term])
        before = leaves.term_above[term]
        weigh_term(rows, block, term, scale, leaves, part)
        for q in range(n_points):
            here = points.here[first + q]
            factor = before * points.there[first + q] + here
            share = here / factor  # as an edge that no training row took
            gain = points.weight[first + q] * before / (here * factor)
            for i in range(SHAP_ROWS):
                sums[depth, q, i] += way[depth, q, i] * part[i] * share * live[feature, i]
            for i in range(SHAP_ROWS):
                out[output, block, feature, i] += way[depth, q, i] * part[i] * share * live[feature, i] * gain


@kernel
def descend_block(
    model: ExplainedModel,
    pass_of: tuple[int, int, int],  # tree, column of its values, block
    rows: ShapRows,
    points: ShapPoints,
    span: tuple[int, int],  # first of the points, their number
    scratch: ShapScratch,
    out: np.ndarray,
) -> None:
    """Lead a block of rows through a tree, at some points, and add to the values of the features."""
    tree, column, block = pass_of
    n_points = span[1]
    trees = model.trees
    stack = scratch.stack
    way = scratch.way
    root = trees.first_node[tree]
    output = model.leaves.output[tree] + column
    for q in range(n_points):
        for i in range(SHAP_ROWS):
            way[0, q, i] = 1.0
    stack[0, 0] = root
    stack[1, 0] = -1
    depth = np.int64(0)
    while depth >= 0:
        node = stack[0, depth]
        b = stack[1, depth]
        if trees.n_branches[node] == 0:
            add_linear_leaf(model, (tree, node, depth, block), rows, points, span, scratch, out)
            depth -= 1
            continue
        feature = trees.feature[node]
        child = trees.first_child[node]
        if b < 0:
            open_node(model, rows, block, node, depth, scratch)
        else:
            come_back(child + b - root, b, depth, n_points, scratch)
        b += 1
        while b < trees.n_branches[node]:
            if scratch.tables.has_sum[child + b - root] != 0:
                is_leaf = trees.n_branches[child + b] == 0
                if not is_leaf or is_linear_leaf(model.leaves, child + b):
                    break
                add_plain_leaf(child + b - root, b, depth, n_points, scratch)
            b += 1
        if b < trees.n_branches[node]:
            go_down(child + b - root, b, feature, depth, n_points, scratch)
            stack[1, depth] = b
            depth += 1
            stack[0, depth] = child + b
            stack[1, depth] = -1
        else:
            close_node(feature, output, block, depth, scratch, out)
            depth -= 1


@inlined
def is_linear_leaf(leaves: ExplainedLeaves, node: int) -> bool:
    """Whether a leaf has a linear model."""
    first = leaves.terms.first
    return len(first) > 1 and first[node + 1] > first[node]


@door
def add_shap(
    model: ExplainedModel,
    rows: ShapRows,
    points: ShapPoints,
    scratch: ShapScratch,
    out: np.ndarray,  # (n_outputs, n_blocks, n_features, SHAP_ROWS) float64, added to
) -> None:
    """Add the SHAP values of rows, tree by tree."""
    trees = model.trees
    live = scratch.live
    for feature in range(live.shape[0]):
        for i in range(SHAP_ROWS):
            live[feature, i] = 1.0
    for tree in range(len(trees.first_node) - 1):
        if trees.n_branches[trees.first_node[tree]] == 0 and not is_linear_leaf(model.leaves, trees.first_node[tree]):
            continue  # a single leaf
        for column in range(model.leaves.values.shape[1]):
            for done in range(0, points.size[tree], SHAP_POINTS):
                first = points.first[tree] + done
                n_points = min(points.size[tree] - done, SHAP_POINTS)
                tabulate(model, tree, column, points, first, n_points, scratch)
                if scratch.tables.has_sum[0] != 0:
                    for block in range(rows.columns.shape[0]):
                        descend_block(model, (tree, column, block), rows, points, (first, n_points), scratch, out)
