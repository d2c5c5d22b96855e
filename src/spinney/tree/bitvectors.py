"""Trees of few leaves as tests and bits: what `kernels.predict.bits` reads."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._jit import fixed
from spinney._node_layout import feature_of_link, kind_of_link, missing_of_link
from spinney._types import FLAG_LEVELS, PLANE_LEAVES, SUBSET
from spinney.kernels.common.structs import AskedColumns, BinSegments, BitTrees, LeafRanges, LinearTerms
from spinney.table.binning import lay_segments

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.tree.forest import Forest

MOST_LEAVES = 256  # of a tree: a walk then takes 29 ns, the tests 22, and each more leaf adds to them
# the same with subsets, which no steps by rank can ask: a walk takes 54 ns, the tests of 586 leaves 55
MOST_SUBSET_LEAVES = 512
MOST_LINEAR_LEAVES = 2048  # LightGBM's ask first whether values are missing, where the tests of rows that miss none end
MOST_THRESHOLDS = 65_534  # of a feature: ranks of 16 bits, of which the last is above all of them
MOST_COLUMNS = 65_535
MOST_MASKS = 1 << 25  # of the levels of all subsets: 64 MB
SEGMENTS_PER_THRESHOLD = 16  # hardly a segment has two thresholds then
MOST_SEGMENTS = 1 << 14  # of a column: 32 kB
# 0; all bits; 1; leaves of a plane; then each bit of a place, and the bits of a plane whose place has it
CONSTANTS = (0, 0xFFFF, 1, PLANE_LEAVES, 8, 0xFF00, 4, 0xF0F0, 2, 0xCCCC, 1, 0xAAAA)


EVERY_NODE = slice(None)
LONG_COLUMN = 64  # thresholds of a column from which on it is ordered by itself


class Bitvectors(NamedTuple):
    """The tests of every tree of a forest, and its leaves from left to right, as `kernels.predict.bits` reads them."""

    columns: AskedColumns
    segments: BinSegments  # over their thresholds
    trees: BitTrees
    terms: LinearTerms | None  # linear models of the leaves, in their order
    constants: NDArray[np.uint16]


class Thresholds(NamedTuple):
    """The distinct thresholds of each feature that is tested."""

    features: NDArray[np.int64]  # (n_columns,)
    n_each: NDArray[np.int64]  # (n_columns,)
    low: NDArray[Any]  # (n_columns, any): the least value above each, ascending, then NaN
    ranks: NDArray[np.uint16]  # (n_nodes,): of the nodes' thresholds; meaningless for leaves


class DistinctThresholds(NamedTuple):
    """The distinct thresholds of each feature that is tested, and the nodes that have them."""

    features: NDArray[np.int64]  # (n_columns,)
    n_each: NDArray[np.int64]  # (n_columns,)
    cuts: NDArray[Any]  # (n_cuts,): column by column, ascending
    nodes: NDArray[np.int64]  # (n_tests,): in any order
    ranks: NDArray[np.int64]  # (n_tests,): of the threshold of each of these nodes, in its column


def can_be_bits(forest: Forest) -> bool:
    """Whether tests have two branches, not too many of a feature, and trees few of them and not too many levels."""
    most_leaves = MOST_SUBSET_LEAVES if len(forest.subsets) > 0 else MOST_LEAVES
    if forest.most_leaves > most_leaves and not has_few_known_leaves(forest):
        return False
    links = forest.hot[~forest.is_leaf, 1]
    feature = feature_of_link(links)
    if np.any(missing_of_link(links) > 1) or np.any(feature >= forest.n_features):
        return False
    is_subset = kind_of_link(links) == SUBSET
    if np.any(is_subset != (forest.n_levels[feature] > 0)) or forest.n_levels.max(initial=0) > MOST_THRESHOLDS:
        return False
    n_masks = int((forest.n_levels[feature[is_subset]] + 1).sum()) * -(-forest.most_leaves // PLANE_LEAVES)
    n_tests = np.bincount(feature, minlength=1)
    return bool(
        n_masks <= MOST_MASKS and n_tests.max() <= MOST_THRESHOLDS and np.count_nonzero(n_tests) <= MOST_COLUMNS
    )


def has_few_known_leaves(forest: Forest) -> bool:
    """Whether these are linear leaves, few of which are left for rows that miss no number."""
    if forest.linear is None or forest.most_leaves > MOST_LINEAR_LEAVES:
        return False
    n_tests = np.concatenate([[0], np.cumsum(~forest.is_leaf & ~asks_missing(forest))])
    return bool(np.diff(n_tests[forest.first_node]).max() < MOST_LEAVES)


def asks_missing(forest: Forest) -> NDArray[np.bool_]:
    """Which nodes only ask whether a value is missing: every known one is up to infinity."""
    is_threshold = ~forest.is_leaf & (kind_of_link(forest.hot[:, 1]) != SUBSET)
    return is_threshold & (forest.hot[:, 0].copy().view(np.float64) == np.inf)


def lay_bits(forest: Forest, dtype: np.dtype[Any], k: Any, *, is_known: bool = False) -> Bitvectors:
    """Lay out a forest for values of float32 or float64; k: the kernels; is_known: for rows that miss no number."""
    first_node = fixed(forest.first_node)
    found = rank_thresholds(forest, dtype)
    columns = np.zeros(forest.n_features, np.int64)
    columns[found.features] = np.arange(len(found.features))
    leaves = LeafRanges(*np.empty((3, forest.n_nodes), np.int64))
    k.predict.bits.count_leaves(forest.packed, first_node, forest.n_features, is_known, leaves)
    first_leaf = np.concatenate([[0], np.cumsum(leaves.n_below[forest.first_node[:-1]])])
    first_line, leaf_values = np.empty(len(forest) + 1, np.int64), np.empty(int(first_leaf[-1]))
    n_lines = int(leaves.n_lines.sum())
    column, missing, rank, mask, plane = np.empty((5, n_lines), np.uint16)
    lookup, masks = np.empty(n_lines, np.int64), np.empty(count_masks(forest, leaves), np.uint16)
    trees = BitTrees(first_line, column, missing, rank, mask, plane, lookup, masks, first_leaf, leaf_values)
    k.predict.bits.lay_bits(forest.packed, first_node, fixed(forest.n_levels), leaves, columns, found.ranks, trees)
    return Bitvectors(
        ask_columns(forest, found),
        lay_cuts(found, k),
        trees,
        lay_terms(forest, leaves, first_leaf),
        np.array(CONSTANTS, np.uint16),
    )


def count_masks(forest: Forest, leaves: LeafRanges) -> int:
    """Masks of all subsets of many levels: one for each level and one for missing values, on each line."""
    node = np.flatnonzero(~forest.is_leaf & (kind_of_link(forest.hot[:, 1]) == SUBSET))
    n_levels = forest.n_levels[feature_of_link(forest.hot[node, 1])]
    return int((leaves.n_lines[node] * (n_levels + 1))[n_levels > FLAG_LEVELS].sum())


def lay_terms(forest: Forest, leaves: LeafRanges, first_leaf: NDArray[np.int64]) -> LinearTerms | None:
    """The linear models of the leaves, from left to right, if there are any."""
    if forest.linear is None:
        return None
    leaf = np.flatnonzero(forest.is_leaf & (leaves.first_below >= 0))
    tree = np.searchsorted(forest.first_node, leaf, side="right") - 1
    order = np.empty(len(leaf), np.int64)
    order[first_leaf[tree] + leaves.first_below[leaf]] = leaf
    linear = forest.linear.take(order)
    return LinearTerms(*(fixed(x) for x in (linear.first, linear.feature, linear.coefficient, linear.fill)))


def ask_columns(forest: Forest, found: Thresholds, nodes: slice = EVERY_NODE) -> AskedColumns:
    """The columns that trees ask for; nodes: theirs."""
    features = found.features.astype(np.int64)
    links = forest.hot[nodes][~forest.is_leaf[nodes], 1]
    up = feature_of_link(links[(missing_of_link(links) == 1) & (kind_of_link(links) != SUBSET)])
    return AskedColumns(features, forest.n_levels[features].astype(np.int64), np.isin(features, up))


def lay_cuts(found: Thresholds, k: Any) -> BinSegments:
    """Segments that find the rank of a value; k: the kernels."""
    n_segments = max(min(SEGMENTS_PER_THRESHOLD * int(found.n_each.max(initial=1)), MOST_SEGMENTS), 4)
    return lay_segments(found.low, found.n_each, n_segments, k)


def rank_thresholds(forest: Forest, dtype: np.dtype[Any], nodes: slice = EVERY_NODE) -> Thresholds:
    """Rank the thresholds of each feature: a value is above the one of rank r exactly if it is above more than r.

    One that nothing known is above has the last rank, which only a missing value is above. A subset has no rank. nodes:
    those of some trees.
    """
    found = distinct_thresholds(forest, dtype, nodes)
    ranks = np.full(len(forest.hot[nodes]), MOST_THRESHOLDS, np.uint16)
    ranks[found.nodes] = found.ranks
    n_most = int(found.n_each.max(initial=1))
    low = np.full((len(found.features), n_most + (1 << n_most.bit_length())), np.nan, dtype)
    column = np.repeat(np.arange(len(found.features)), found.n_each)
    rank = np.arange(len(column)) - np.repeat(np.cumsum(found.n_each) - found.n_each, found.n_each)
    low[column, rank] = np.nextafter(found.cuts, dtype.type(np.inf)) + dtype.type(0.0)
    return Thresholds(found.features, found.n_each, low, ranks)


def distinct_thresholds(forest: Forest, dtype: np.dtype[Any], nodes: slice = EVERY_NODE) -> DistinctThresholds:
    """The thresholds below infinity, ranked; those of float32 as `round_down` has them."""
    hot, is_leaf = forest.hot[nodes], forest.is_leaf[nodes]
    inner = np.flatnonzero(~is_leaf)
    cut: NDArray[Any] = np.ascontiguousarray(hot[inner, 0]).view(np.float64)
    link = hot[inner, 1]
    feature = feature_of_link(link)
    n_tests = np.bincount(feature, minlength=1)
    features = np.flatnonzero(n_tests)
    column = (np.cumsum(n_tests > 0) - 1)[feature]
    is_number = (cut < np.inf) & (kind_of_link(link) != SUBSET)
    inner, column, cut = inner[is_number], column[is_number], cut[is_number]
    cut = round_down(cut) if dtype == np.float32 else cut
    order = order_thresholds(column, cut, len(features))
    inner, column, cut = inner[order], column[order], cut[order]
    is_new = np.ones(len(cut), bool)
    is_new[1:] = (cut[1:] != cut[:-1]) | (column[1:] != column[:-1])
    n_each = np.bincount(column[is_new], minlength=len(features))
    rank = np.cumsum(is_new) - 1 - (np.cumsum(n_each) - n_each)[column]
    return DistinctThresholds(features, n_each, cut[is_new], inner, rank)


def order_thresholds(column: NDArray[np.int64], cut: NDArray[Any], n_columns: int) -> NDArray[np.intp]:
    """The order of thresholds by column and then by value; of equal ones any.

    Column by column where these are long: 540,000 nodes then take 30 ms, and 110 ms by two keys at once.
    """
    if len(cut) < LONG_COLUMN * n_columns:
        return np.lexsort((cut, column))
    order = np.argsort(column.astype(np.uint16), kind="stable")
    cut = cut[order]
    ends = np.cumsum(np.bincount(column, minlength=n_columns)).tolist()
    for first, last in pairwise([0, *ends]):
        order[first:last] = order[first:last][np.argsort(cut[first:last])]
    return order


def round_down(x: NDArray[np.float64]) -> NDArray[np.float32]:
    """The largest float32 that is not above each threshold: a float32 value is above both or above neither."""
    with np.errstate(over="ignore"):  # beyond the range of float32 it is infinite
        rounded = x.astype(np.float32)
        is_above = rounded > x
        rounded[is_above] = np.nextafter(rounded[is_above], np.float32(-np.inf))
    return rounded
