"""Predict: the leaf of each row, and the values of the leaves.

Rows are arrays (n_rows, n_features), or `SparseRows`, of which kernels see a block after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._jit import fixed, is_compiled, kernels
from spinney._types import LANES, MULTIWAY, PLANE_LEAVES, SUBSET, SYMMETRIC_ROWS, SYMMETRIC_TREES
from spinney.kernels.common.structs import (
    AnyTree,
    BitScratch,
    FloatTable,
    LaneScratch,
    LeafAnswers,
    LeafShares,
    LinearTerms,
    OpenNodes,
    PackedTrees,
    ScoreSpan,
    SurrogateTests,
    SymmetricScratch,
)
from spinney.table.sparse import SparseRows
from spinney.table.sparse_codes import SparseCodes
from spinney.tree import ranked
from spinney.tree.broken import BrokenTreeError
from spinney.tree.surrogates import count_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix

    from spinney.table.coding import Codes
    from spinney.table.sparse import Values
    from spinney.tree.bitvectors import Bitvectors
    from spinney.tree.forest import Forest
    from spinney.tree.ranked import RankedLayout
    from spinney.tree.structure import Tree
    from spinney.tree.symmetric import SymmetricLayout

STEP_SECONDS = 2e-6  # of one test, interpreted
BLOCK_ROWS = (
    1 << 15
)  # rows that go through all trees before the next ones: each tree then comes from memory once for them
BLOCK_CELLS = 1 << 21  # of such a block at most
CODED_ROWS = 256
FEWEST_ROWS = 32  # from which on evaluating all tests at once is worth it
FEWEST_TREES = 4  # from which on ranking the values is worth it
BIT_ROWS = 1024  # rows of a block for all tests at once: with fewer the loop costs, with more the caches overflow
BIT_CELLS = 1 << 17
RANKED_ROWS = 2  # for each node of a tree, from which on ranks are worth their layout
STEP_LEAVES = 160  # of a tree, from which on steps take less than bits: of 127 102 and 89 ms, of 255 113 and 169
TYPICAL_DEPTH = 20


def join_blocks(values: SparseRows, find: Callable[[NDArray[Any]], NDArray[Any]]) -> NDArray[Any]:
    """What is found for each block of sparse rows, one below the other."""
    return np.concatenate([find(block) for _, block in values.blocks()])


def lay_thin(values: SparseRows, lo: int, hi: int, n_features: int) -> Iterator[tuple[slice, LaneScratch]]:
    """Blocks of rows lo .. hi as walks read them; written are the stored cells alone, which is why no one copies them.

    12,000 rows of 20,000 counts of words took ten trees 3.3 seconds by ranks of all columns that they ask for.
    """
    check_width(values, n_features)
    block = np.zeros((values.count_at_once(hi - lo), n_features + 1), values.dtype)
    block[:, n_features] = -np.inf  # what leaves ask for
    scratch = LaneScratch(block, np.empty(LANES, np.uint64))
    for rows in values.lay(lo, hi, block):
        yield rows, scratch


def check_width(values: Values, n_features: int) -> None:
    """Raise where a kernel would read beside a row."""
    if values.shape[1] != n_features:
        message = f"the trees have {n_features} features, the rows {values.shape[1]}"
        raise BrokenTreeError(message)


def make_lane_scratch(values: NDArray[Any], n_rows: int, n_features: int) -> LaneScratch:
    """Scratch for at most `n_rows` rows on their way at once, of a table of the trees' width."""
    check_width(values, n_features)
    n_rows = min(n_rows, len(values), BLOCK_CELLS // (n_features + 1))
    return make_block(max(n_rows, LANES), n_features, values.dtype)


def make_block(n_rows: int, n_features: int, dtype: Any) -> LaneScratch:
    """A block of rows with one column more, for the leaves, and room for where rows arrive that go down together."""
    return LaneScratch(np.empty((n_rows, n_features + 1), dtype), np.empty(LANES, np.uint64))


def find_leaves(tree: Tree, values: Values) -> NDArray[np.int32]:
    """Index of the leaf that each row of values (n_rows, n_features), float32 or float64, ends in.

    Of a row that takes several branches, the leaf that takes most of it.
    """
    if isinstance(values, SparseRows):
        if values.is_thin and tree.is_binary:
            return find_thin_leaves(values, tree.packed, tree.n_features, max(tree.depth, 1))[:, 0]
        return join_blocks(values, lambda block: find_leaves(tree, block))
    if not tree.is_binary and not (tree.has_binary_tests and not np.isnan(values).any()):
        return walk(tree, values, np.zeros((tree.n_nodes, 1)))[0]
    leaf = np.empty((len(values), 1), np.int32)
    k = kernels(len(values) * max(tree.depth, 1) * STEP_SECONDS)
    k.predict.lanes.find(fixed(values), tree.packed, make_lane_scratch(values, LANES, tree.n_features), leaf)
    return leaf[:, 0]


def find_all_leaves(forest: Forest, values: Values) -> NDArray[np.int32]:
    """Leaf of each row in each tree, shape (n_rows, n_trees), counted from the root of the tree."""
    if isinstance(values, SparseRows):
        if values.is_thin:
            n_steps = len(forest) * TYPICAL_DEPTH
            return find_thin_leaves(values, forest.packed_for(len(values)), forest.n_features, n_steps)
        return join_blocks(values, lambda block: find_all_leaves(forest, block))
    leaf = np.empty((len(values), len(forest)), np.int32)
    k = kernels(len(values) * len(forest) * TYPICAL_DEPTH * STEP_SECONDS)
    packed = forest.packed_for(len(values))
    k.predict.lanes.find(fixed(values), packed, make_lane_scratch(values, BLOCK_ROWS, forest.n_features), leaf)
    return leaf


def find_thin_leaves(values: SparseRows, trees: PackedTrees, n_features: int, n_steps: int) -> NDArray[np.int32]:
    """The same of thin rows; n_steps: of each on its way through all trees."""
    leaf = np.empty((len(values), len(trees.first_node)), np.int32)
    k = kernels(len(values) * n_steps * STEP_SECONDS)
    for rows, scratch in lay_thin(values, 0, len(values), n_features):
        k.predict.lanes.find_laid(int(values.has_missing), trees, scratch, leaf[rows])
    return leaf


def find_coded_leaves(tree: Tree, codes: Codes | SparseCodes, rows: NDArray[np.int32], k: Any) -> NDArray[np.int32]:
    """Index of the leaf that rows of a table in codes end in; k: the kernels to use."""
    if isinstance(codes, SparseCodes):
        return find_thin_leaves(codes.values[rows], tree.packed, tree.n_features, max(tree.depth, 1))[:, 0]
    leaf = np.empty(len(rows), np.int32)
    scratch = make_block(CODED_ROWS, codes.n_features, np.float64)
    k.predict.lanes.find_coded(codes.rows, rows, codes.features, codes.edges, tree.packed, scratch, leaf)
    return leaf


def add_votes(
    forest: Forest, values: Values, lo: int, hi: int, out: NDArray[np.float64], n_rows: int | None = None
) -> None:
    """Add to `out`, shape (n_rows, n_classes or 1), the trees' votes for rows lo .. hi, in the order of the trees.

    n_rows: of all rows that will be asked for, where they are more than `values` has.
    """
    if isinstance(values, SparseRows):
        if values.is_thin:
            add_thin_votes(forest, values, lo, hi, out)
            return
        for rows, block in values.blocks(lo, hi):
            add_votes(forest, block, 0, len(block), out[rows])
        return
    n_rows = len(values) if n_rows is None else n_rows
    k = kernels((hi - lo) * len(forest) * TYPICAL_DEPTH * STEP_SECONDS)
    if parts := find_steps(forest, values[lo:hi], n_rows, k):
        vote_by_ranks(parts, forest, values, lo, hi, out, k)
        return
    if can_score(forest, len(forest), hi - lo, k):
        is_single = out.shape[1] == 1
        sums = out.reshape(1, -1) if is_single else out
        score_at_once(forest, range(len(forest)), values, lo, hi, sums, k, n_raw=int(is_single))
        return
    scratch = make_lane_scratch(values, BLOCK_ROWS, forest.n_features)
    k.predict.lanes.vote(fixed(values), lo, hi, forest.packed_for(n_rows), forest.leaf_shares, scratch, out)


def add_thin_votes(forest: Forest, values: SparseRows, lo: int, hi: int, out: NDArray[np.float64]) -> None:
    """The same of thin rows."""
    k = kernels((hi - lo) * len(forest) * TYPICAL_DEPTH * STEP_SECONDS)
    trees = forest.packed_for(len(values))
    for rows, scratch in lay_thin(values, lo, hi, forest.n_features):
        k.predict.lanes.vote_laid(int(values.has_missing), trees, forest.leaf_shares, scratch, out[rows])


def find_steps(forest: Forest, block: NDArray[Any], n_rows: int, k: Any) -> tuple[RankedLayout, ...]:
    """The forest as steps for a block of n_rows rows; empty where it cannot be, or where another way is faster."""
    is_small = forest.most_leaves <= STEP_LEAVES or forest.symmetric_nodes is not None
    if (is_small and can_score(forest, len(forest), len(block), k)) or not pays_ranks(forest, n_rows, k):
        return ()
    return forest.ranked(block, k)


def pays_ranks(forest: Forest, n_rows: int, k: Any) -> bool:
    """Whether rows are many enough to pay for the layout of `kernels.predict.ranked`; k: the kernels to use."""
    is_many = n_rows * len(forest) >= RANKED_ROWS * forest.n_nodes and len(forest) >= ranked.FEWEST_TREES
    return is_many and is_compiled(k.predict.ranked.vote_ranked)


def vote_by_ranks(
    parts: tuple[RankedLayout, ...],
    forest: Forest,
    values: NDArray[Any],
    lo: int,
    hi: int,
    out: NDArray[np.float64],
    k: Any,
) -> None:
    """Add the votes of all parts of a forest to `out`, in the order of the trees; see `add_votes`."""
    table = view_floats(values, forest.n_features)
    for part in parts:
        span = ScoreSpan(lo, hi, part.first_tree, part.last_tree, 0)
        k.predict.ranked.vote_ranked(table, span, *part[:3], forest.leaf_shares, part.scratch(hi - lo), out)


def view_floats(values: NDArray[Any], n_features: int) -> FloatTable:
    """Values as kernels read them that look them up by bits as well."""
    check_width(values, n_features)
    whole = np.dtype(f"i{values.itemsize}")
    return FloatTable(fixed(values), fixed(values.view(whole)), int(np.iinfo(whole).min))


def add_answers(forest: Forest, trees: range, values: Values, lo: int, hi: int, raw: NDArray[np.float64]) -> None:
    """Add what leaves of several numbers say of rows lo .. hi to `raw`, (n_outputs, n_rows), in the order of the trees.

    Trees are consecutive. Kernels that add up class shares do it: a leaf says which row of `answers` is its own.
    """
    if isinstance(values, SparseRows):
        if values.is_thin:
            add_thin_answers(forest, trees, values, lo, hi, raw)
            return
        for rows, block in values.blocks(lo, hi):
            scores = np.ascontiguousarray(raw[:, rows])
            add_answers(forest, trees, block, 0, len(block), scores)
            raw[:, rows] = scores
        return
    k = kernels((hi - lo) * len(trees) * TYPICAL_DEPTH * STEP_SECONDS)
    voting, shares = forest.voting
    block, n_rows = values[lo:hi], hi - lo
    out = np.ascontiguousarray(raw[:, lo:hi].T)
    if voting.can_be_bits and can_score(voting, len(trees), n_rows, k):
        table = view_floats(block, voting.n_features)
        bits = voting.bits(block, k)
        span = ScoreSpan(0, n_rows, trees.start, trees.stop, 0)
        k.predict.bits.score(table, span, *bits[:3], shares, make_bit_scratch(bits, n_rows), out)
    else:
        scratch = make_lane_scratch(block, min(BLOCK_ROWS, n_rows), voting.n_features)
        packed, mine = pick_answers(forest, trees, len(values))
        k.predict.lanes.vote(fixed(block), 0, n_rows, packed, mine, scratch, out)
    raw[:, lo:hi] = out.T


def add_thin_answers(
    forest: Forest, trees: range, values: SparseRows, lo: int, hi: int, raw: NDArray[np.float64]
) -> None:
    """The same of thin rows."""
    k = kernels((hi - lo) * len(trees) * TYPICAL_DEPTH * STEP_SECONDS)
    packed, mine = pick_answers(forest, trees, len(values))
    for rows, scratch in lay_thin(values, lo, hi, forest.n_features):
        out = np.ascontiguousarray(raw[:, rows].T)
        k.predict.lanes.vote_laid(int(values.has_missing), packed, mine, scratch, out)
        raw[:, rows] = out.T


def pick_answers(forest: Forest, trees: range, n_rows: int) -> tuple[PackedTrees, LeafShares]:
    """Some trees whose leaves say several numbers as kernels of class shares read them, and these numbers."""
    voting, shares = forest.voting
    some = slice(trees.start, trees.stop)
    return pick_trees(voting, some, n_rows), shares._replace(first=fixed(np.ascontiguousarray(shares.first[some])))


def pick_trees(forest: Forest, trees: slice, n_rows: int) -> PackedTrees:
    """Some trees of a forest as kernels read those that so many rows walk through."""
    return forest.packed_for(n_rows)._replace(
        first_node=fixed(np.ascontiguousarray(forest.first_node[:-1][trees])),
        first_word=fixed(np.ascontiguousarray(forest.first_word[:-1][trees])),
    )


def can_score(forest: Forest, n_trees: int, n_rows: int, k: Any) -> bool:
    """Whether evaluating all tests at once for many rows is possible and worth it; k: the kernels to use."""
    if n_trees < FEWEST_TREES or n_rows < FEWEST_ROWS or not is_compiled(k.predict.bits.score):
        return False
    return forest.symmetric_nodes is not None or forest.can_be_bits


def score_at_once(
    forest: Forest,
    trees: range,
    values: NDArray[Any],
    lo: int,
    hi: int,
    out: NDArray[np.float64],
    k: Any,
    *,
    n_raw: int,
) -> None:
    """Add to `out` the values of consecutive trees for rows lo .. hi, in their order; k: the kernels to use.

    Tree t adds its value to `out[t % n_raw]`, of shape (n_raw, n_rows); or, where n_raw is 0, its shares of classes to
    rows of `out`, of shape (n_rows, n_classes). Of several raw scores, trees are those of whole rounds.
    """
    table = view_floats(values, forest.n_features)
    span = ScoreSpan(lo, hi, trees.start, trees.stop, n_raw)
    nodes = forest.symmetric_nodes
    if nodes is not None and n_raw > 0:
        laid = forest.symmetric(nodes, values.dtype, k, n_raw=n_raw)
        k.predict.symmetric.score_symmetric(table, span, *laid[:3], make_symmetric_scratch(laid), out)
        return
    bits = forest.bits(values[lo:hi], k)
    scratch = make_bit_scratch(bits, hi - lo)
    if bits.terms is None:
        k.predict.bits.score(table, span, *bits[:3], forest.leaf_shares, scratch, out)
    else:
        k.predict.bits.score_linear(table, span, *bits[:3], bits.terms, scratch, out)


def make_symmetric_scratch(laid: SymmetricLayout) -> SymmetricScratch:
    """Scratch for a block of rows through symmetric trees."""
    small = laid.constants.dtype
    ranks = np.zeros((2 * max(len(laid.columns.feature), 1), SYMMETRIC_ROWS), small)
    return SymmetricScratch(laid.constants, ranks, np.empty(SYMMETRIC_TREES * SYMMETRIC_ROWS, small))


def make_bit_scratch(bits: Bitvectors, n_rows: int) -> BitScratch:
    """Scratch for at most `n_rows` rows through trees as bits."""
    n_columns = max(len(bits.columns.feature), 1)
    n_rows = max(min(BIT_ROWS, BIT_CELLS // n_columns, n_rows), LANES)
    n_rows = -(-n_rows // FEWEST_ROWS) * FEWEST_ROWS  # whole registers
    ranks = np.zeros((2 * n_columns, n_rows), np.uint16)
    n_leaves = int(np.diff(bits.trees.first_leaf).max())
    live = np.empty((-(-n_leaves // PLANE_LEAVES), n_rows), np.uint16)
    return BitScratch(bits.constants, ranks, live, *np.empty((2, n_rows), np.uint16))


def walk(
    tree: Tree, values: NDArray[Any], node_values: NDArray[np.float64]
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    """Leaf of each row, and the values of its leaves, shape (n_rows, width); `node_values` is (n_nodes, width)."""
    if values.shape[1] != tree.n_features:
        raise BrokenTreeError(f"the tree has {tree.n_features} features, the rows {values.shape[1]}")
    leaves = np.flatnonzero(tree.is_leaf)
    row_of = np.zeros(tree.n_nodes, np.int32)
    row_of[leaves] = np.arange(len(leaves))
    room = min(int(tree.n_branches.max()) * tree.depth + 1, tree.n_nodes)  # a node waits there at most once
    leaf = np.zeros(len(values), np.int32)
    out = np.zeros((len(values), node_values.shape[1]))
    arrays = tree.test, tree.first_child, tree.threshold, tree.weight, tree.n_branches, tree.subsets
    k = kernels(len(values) * max(tree.depth, 1) * STEP_SECONDS)
    k.predict.any_tree.walk(
        fixed(values),
        AnyTree(*(fixed(x) for x in arrays)),
        list_surrogates(tree),
        LeafAnswers(row_of, np.ascontiguousarray(node_values[leaves])),
        OpenNodes(np.empty(room, np.int32), np.empty(room)),
        leaf,
        out,
    )
    return leaf, out


def list_surrogates(tree: Tree) -> SurrogateTests:
    """The surrogate tests of a tree, if any, as kernels read them."""
    found = tree.surrogates
    none: NDArray[Any] = np.zeros(0)
    arrays = np.zeros(1, np.int32), none.astype(np.uint32), none, none.astype(np.int64)
    if found is not None:
        arrays = found.first, found.test, found.threshold, count_words(tree, found)
    return SurrogateTests(*(fixed(x) for x in arrays))


def predict_values(tree: Tree, values: Values) -> NDArray[np.float64]:
    """Mean target of each row's leaf, or the value of its linear model, shape (n_rows,)."""
    if isinstance(values, SparseRows):
        return join_blocks(values, lambda block: predict_values(tree, block))
    leaf = find_leaves(tree, values)
    prediction = tree.threshold[leaf]
    linear = tree.linear
    if linear is not None and linear.n_terms:
        k = kernels(len(values) * linear.n_terms / tree.n_leaves * STEP_SECONDS)
        arrays = linear.first, linear.feature, linear.coefficient, linear.fill
        k.predict.linear.add_terms(fixed(values), leaf, LinearTerms(*(fixed(x) for x in arrays)), prediction)
    return prediction


def predict_shares(tree: Tree, values: Values) -> NDArray[np.float64]:
    """Class shares of each row's leaf, shape (n_rows, n_classes)."""
    if isinstance(values, SparseRows):
        return join_blocks(values, lambda block: predict_shares(tree, block))
    if tree.spreads_missing.any():
        return walk(tree, values, tree.values())[1]
    return leaf_shares(tree, find_leaves(tree, values))


def leaf_shares(tree: Tree, leaf: NDArray[np.int32]) -> NDArray[np.float64]:
    """Class shares of leaves, shape (len(leaf), n_classes)."""
    code = tree.threshold[leaf].astype(np.int64)
    shares = np.zeros((len(code), tree.n_classes))
    pure = np.flatnonzero(code >= 0)
    shares[pure, code[pure]] = 1.0
    if len(pure) < len(code):
        mixed = np.flatnonzero(code < 0)
        weights = tree.distributions[-1 - code[mixed]]
        shares[mixed] = weights / weights.sum(axis=1, keepdims=True)
    return shares


def predict_answers(tree: Tree, values: Values, node_values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The values of each row's leaves, shape (n_rows, width); `node_values` is (n_nodes, width)."""
    if isinstance(values, SparseRows):
        return join_blocks(values, lambda block: predict_answers(tree, block, node_values))
    if tree.spreads_missing.any():
        return walk(tree, values, node_values)[1]
    return node_values[find_leaves(tree, values)]


def smooth_shares(tree: Tree, smoothing: float | str) -> NDArray[np.float64]:
    """Class shares of every node, drawn towards each other, shape (n_nodes, n_classes).

    "laplace": as if there were one more row of each class. A number m: as if there were m more rows, of the classes as
    the root has them. A leaf without rows predicts as its parent.
    """
    weights = tree.class_weights()
    weights[tree.is_empty] = weights[tree.parent[tree.is_empty]]
    more = np.ones(tree.n_classes) if smoothing == "laplace" else float(smoothing) * (weights[0] / weights[0].sum())
    return (weights + more) / (weights + more).sum(axis=1, keepdims=True)


def predict_classes(tree: Tree, values: Values) -> NDArray[np.int64]:
    """Heaviest class of each row's leaf, the first among equals, shape (n_rows,)."""
    if tree.spreads_missing.any():
        return predict_shares(tree, values).argmax(axis=1)
    return tree.leaf_class[find_leaves(tree, values)]


def spread_rows(tree: Tree, values: Values) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Every leaf that a row ends in: row, leaf and the row's share that takes it, shapes (n,).

    Where rows take one path, each row once; else by row, then by leaf.
    """
    if isinstance(values, SparseRows):
        found = [(rows.start, spread_rows(tree, block)) for rows, block in values.blocks()]
        shifted = [(first + row, leaf, share) for first, (row, leaf, share) in found]
        row, node, share = (np.concatenate(parts) for parts in zip(*shifted, strict=True))
        return row, node, share
    everyone = np.arange(len(values))
    if not tree.spreads_missing.any():
        return everyone, find_leaves(tree, values).astype(np.int64), np.ones(len(values))
    row, node, share = everyone, np.zeros(len(values), np.int64), np.ones(len(values))
    ended = []
    while len(row):
        is_done = tree.is_leaf[node]
        ended.append((row[is_done], node[is_done], share[is_done]))
        row, node, share = row[~is_done], node[~is_done], share[~is_done]
        value = values[row, tree.feature[node]].astype(np.float64)
        is_spread = np.isnan(value) & tree.spreads_missing[node]
        n_branches = np.where(is_spread, tree.n_branches[node], 1)
        first = tree.first_child[node] + np.where(is_spread, 0, find_branches(tree, node, value))
        child = np.repeat(first, n_branches) + count_up(n_branches)
        row, share = np.repeat(row, n_branches), np.repeat(share, n_branches)
        is_part, parent = np.repeat(is_spread, n_branches), np.repeat(node, n_branches)
        share[is_part] *= tree.weight[child[is_part]] / tree.weight[parent[is_part]]
        keep = share > 0.0
        row, node, share = row[keep], child[keep], share[keep]
    row, node, share = (np.concatenate(parts) for parts in zip(*ended, strict=True))
    order = np.lexsort([node, row])
    return row[order], node[order], share[order]


def find_branches(tree: Tree, node: NDArray[np.int64], value: NDArray[np.float64]) -> NDArray[np.int64]:
    """Branch by which each value leaves an inner node; 0 where it takes several."""
    is_known = ~np.isnan(value)
    kind, cut = tree.kind[node], tree.threshold[node]
    branch = np.where(is_known, value > cut, np.maximum(tree.missing_branch[node], 0)).astype(np.int64)
    is_level = is_known & (kind == MULTIWAY)
    branch[is_level] = value[is_level].astype(np.int64)
    for at in np.flatnonzero(is_known & (kind == SUBSET)):
        branch[at] = 0 if tree.subset(int(node[at]))[int(value[at])] else 1
    return branch


def count_up(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """0 .. size - 1 for each size, end to end."""
    end = np.cumsum(sizes)
    return np.arange(int(sizes.sum())) - np.repeat(end - sizes, sizes)


def passed_nodes(tree: Tree, leaf: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The nodes on the way to each leaf, from the root on, end to end; and where each begins, (n_rows + 1,)."""
    ends = np.concatenate([[0], np.cumsum(tree.depths[leaf] + 1)])
    nodes = np.empty(ends[-1], np.int64)
    last, at = leaf, ends[1:] - 1  # of the rows still under way to the root
    while len(last):
        nodes[at] = last
        is_below = last > 0
        last, at = tree.parent[last[is_below]], at[is_below] - 1
    return nodes, ends


def mark_paths(tree: Tree, leaf: NDArray[np.int64]) -> csr_matrix:
    """1 for each node that the rows of these leaves have passed, shape (n_rows, n_nodes)."""
    from scipy.sparse import csr_matrix

    nodes, ends = passed_nodes(tree, leaf)
    return csr_matrix((np.ones(len(nodes), np.int64), nodes, ends), shape=(len(leaf), tree.n_nodes))
