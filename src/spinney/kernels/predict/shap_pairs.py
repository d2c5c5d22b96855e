"""SHAP interaction values of trees: how much two features add together beyond what each adds alone (path dependent).

With the words of `shap.py`, a leaf adds to the pair of features f and g

    v / 2 * (o_f - z_f) (o_g - z_g) * integral over t of  product over the others of  z (1 - t) + o t

which is, at a point, v / 2 times the product over all features times the slopes (o - z) / (z (1 - t) + o t) of both.
The slopes of the features on the way are kept, and at a leaf every pair of them is added.

A term of a linear leaf is a leaf of its own, which no training row reached by the term's feature: there z is 0 and the
slope 1 / t.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined, kernel
from spinney._types import SHAP_POINTS, SHAP_ROWS

from ..common.structs import ExplainedModel, PairScratch, ShapPoints, ShapRows, ShapScratch
from .shap import ask_rows, go_down, is_linear_leaf, tabulate, weigh_term


@inlined
def tilt(
    model: ExplainedModel,
    place: tuple[int, int, int],  # node that the edge leads to, its branch, depth of the node above
    feature: int,
    points: ShapPoints,
    span: tuple[int, int],
    scratch: ShapScratch,
    pairs: PairScratch,
) -> None:
    """Write the slope of the tested feature behind an edge."""
    node, b, depth = place
    first, n_points = span
    after = model.trees.above[node] * model.trees.ratio[node]
    branch = scratch.branch
    slope = pairs.slope
    kept = pairs.kept_slope
    number = np.float64(b)
    for q in range(n_points):
        taken = (1.0 - after) / (after * points.there[first + q] + points.here[first + q])
        passed = -1.0 / points.there[first + q]
        for i in range(SHAP_ROWS):
            found = branch[depth, i]
            other = kept[depth, q, i] if found < 0.0 else passed
            slope[feature, q, i] = taken if found == number else other


@inlined
def pair_path(
    n_path: int,
    without: int,  # a feature that is left out, or -1
    q: int,
    reach: np.ndarray,  # (SHAP_ROWS,): half of what a leaf says, times the products over its path and the weight of q
    part: np.ndarray,  # (SHAP_ROWS,) scratch
    pairs: PairScratch,
    out: np.ndarray,  # (n_features, n_features, SHAP_ROWS): below the diagonal, added to
) -> None:
    """Add a leaf to each pair of the features on its path, at one point."""
    path = pairs.path
    slope = pairs.slope
    for a in range(1, n_path):
        f = path[a]
        if f == without:
            continue
        for i in range(SHAP_ROWS):
            part[i] = reach[i] * slope[f, q, i]
        for c in range(a):
            g = path[c]
            if g == without:
                continue
            high = max(f, g)
            low = min(f, g)
            for i in range(SHAP_ROWS):
                out[high, low, i] += part[i] * slope[g, q, i]


@inlined
def add_leaf_pairs(
    n_path: int,
    depth: int,
    said: float,
    points: ShapPoints,
    span: tuple[int, int],
    scratch: ShapScratch,
    pairs: PairScratch,
    out: np.ndarray,
) -> None:
    """Add a leaf, whose products stand at a depth and lack what it says, to each pair of the features on its path."""
    first, n_points = span
    way = scratch.way
    reach = scratch.total[0]
    for q in range(n_points):
        half = points.weight[first + q] * 0.5 * said
        for i in range(SHAP_ROWS):
            reach[i] = way[depth, q, i] * half
        pair_path(n_path, np.int64(-1), q, reach, scratch.part, pairs, out)


@inlined
def add_term_pairs(
    model: ExplainedModel,
    place: tuple[int, int, int, float],  # term, number of features on the path, depth, scale of the tree
    rows: ShapRows,
    points: ShapPoints,
    span: tuple[int, int],
    scratch: ShapScratch,
    pairs: PairScratch,
    out: np.ndarray,
) -> None:
    """Add a term of a linear leaf to each pair of the features on its path and its own."""
    term, n_path, depth, scale = place
    first, n_points = span
    feature = np.int64(model.leaves.terms.feature[term])
    before = model.leaves.term_above[term]
    way = scratch.way
    live = scratch.live
    slope = pairs.slope
    reach = scratch.total[0]
    said = scratch.total[1]
    weigh_term(rows, 0, term, scale, model.leaves, said)
    for q in range(n_points):
        here = points.here[first + q]
        share = here / (before * points.there[first + q] + here) * points.weight[first + q] * 0.5
        for i in range(SHAP_ROWS):
            reach[i] = way[depth, q, i] * said[i] * share * live[feature, i]
        pair_path(n_path, feature, q, reach, scratch.part, pairs, out)
        for a in range(n_path):
            f = pairs.path[a]
            if f != feature:
                high = max(f, feature)
                low = min(f, feature)
                for i in range(SHAP_ROWS):
                    out[high, low, i] += reach[i] * slope[f, q, i] / here


@kernel
def pair_block(
    model: ExplainedModel,
    pass_of: tuple[int, int],  # tree, block
    rows: ShapRows,
    points: ShapPoints,
    span: tuple[int, int],
    scratch: ShapScratch,
    pairs: PairScratch,
    out: np.ndarray,
) -> None:
    """Lead a block of rows through a tree, at some points, and add to the values of pairs."""
    tree, block = pass_of
    trees = model.trees
    stack = scratch.stack
    live = scratch.live
    kept = scratch.kept
    slope = pairs.slope
    kept_slope = pairs.kept_slope
    root = trees.first_node[tree]
    for q in range(SHAP_POINTS):
        for i in range(SHAP_ROWS):
            scratch.way[0, q, i] = 1.0
    stack[0, 0] = root
    stack[1, 0] = -1
    depth = np.int64(0)
    n_path = np.int64(0)
    while depth >= 0:
        node = stack[0, depth]
        b = stack[1, depth]
        feature = trees.feature[node]
        child = trees.first_child[node]
        if trees.n_branches[node] == 0:
            said = 1.0  # the products have it
            if is_linear_leaf(model.leaves, node):
                scale = model.leaves.scale[tree]
                said = model.leaves.values[model.leaves.row_of[node], 0] * scale
                for term in range(model.leaves.terms.first[node], model.leaves.terms.first[node + 1]):
                    add_term_pairs(model, (term, n_path, depth, scale), rows, points, span, scratch, pairs, out)
            add_leaf_pairs(n_path, depth, said, points, span, scratch, pairs, out)
            depth -= 1
            continue
        if b < 0:
            ask_rows(model, rows, block, node, depth, scratch)
            is_new = True
            for k in range(n_path):
                is_new &= pairs.path[k] != feature
            pairs.is_new[depth] = np.uint8(is_new)
            for q in range(SHAP_POINTS):
                for i in range(SHAP_ROWS):
                    kept_slope[depth, q, i] = 0.0 if is_new else slope[feature, q, i]
            if is_new:
                pairs.path[n_path] = feature
                n_path += 1
            for i in range(SHAP_ROWS):
                kept[depth, i] = live[feature, i]
        b += 1
        while b < trees.n_branches[node] and scratch.tables.has_sum[child + b - root] == 0:
            b += 1
        if b < trees.n_branches[node]:
            go_down(child + b - root, b, feature, depth, span[1], scratch)
            tilt(model, (child + b, b, depth), feature, points, span, scratch, pairs)
            stack[1, depth] = b
            depth += 1
            stack[0, depth] = child + b
            stack[1, depth] = -1
        else:
            for i in range(SHAP_ROWS):
                live[feature, i] = kept[depth, i]
            for q in range(SHAP_POINTS):
                for i in range(SHAP_ROWS):
                    slope[feature, q, i] = kept_slope[depth, q, i]
            n_path -= np.int64(pairs.is_new[depth])
            depth -= 1


@door
def add_shap_pairs(
    model: ExplainedModel,
    rows: ShapRows,  # one block of them
    points: ShapPoints,
    column: int,  # of the values of leaves: whose pairs are added
    wanted: int,  # output: trees that have no part in it are left out
    scratch: ShapScratch,
    pairs: PairScratch,
    out: np.ndarray,  # (n_features, n_features, SHAP_ROWS) float64: below the diagonal, added to
) -> None:
    """Add the interaction values of a block of rows, tree by tree."""
    trees = model.trees
    live = scratch.live
    for feature in range(live.shape[0]):
        for i in range(SHAP_ROWS):
            live[feature, i] = 1.0
    for tree in range(len(trees.first_node) - 1):
        if trees.n_branches[trees.first_node[tree]] == 0 or model.leaves.output[tree] + column != wanted:
            continue
        for done in range(0, points.size[tree], SHAP_POINTS):
            first = points.first[tree] + done
            n_points = min(points.size[tree] - done, SHAP_POINTS)
            tabulate(model, tree, column, points, first, n_points, scratch)
            if scratch.tables.has_sum[0] != 0:
                pair_block(model, (tree, 0), rows, points, (first, n_points), scratch, pairs, out)
