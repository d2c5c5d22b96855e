"""Trees of thresholds for rows whose values are ranks: what `kernels.predict.ranked` reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._jit import fixed
from spinney._node_layout import child_of_link, feature_of_link, missing_of_link, pack_step
from spinney._types import ABREAST, HOLDS_CLASSES, HOLDS_NODES, HOLDS_PLACES, MOST_PLACES, MOST_RANKS
from spinney.kernels.common.structs import AskedColumns, BinSegments, RankedTrees, RankScratch
from spinney.tree.bitvectors import MOST_THRESHOLDS, Thresholds, ask_columns, lay_cuts, rank_thresholds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.tree.forest import Forest

FEWEST_TREES = 8  # whose thresholds are ranked together: values are ranked anew for the next ones
WIDTH = 85 * ABREAST  # rows that are ranked at once
BLOCK_CELLS = 1 << 19  # ranks of the rows that go through all trees before the next ones: 2 MB
MOST_HELD = MOST_RANKS  # that the step of a leaf holds in the place of a threshold
ENOUGH = 0.9  # of a tree's rows have arrived before it is asked which: with 0.7 or 0.98 it takes as long
MOST_BLIND = 64  # steps until then


class RankedLayout(NamedTuple):
    """Consecutive trees of a forest whose thresholds have ranks in common."""

    columns: AskedColumns
    segments: BinSegments  # over their thresholds
    trees: RankedTrees
    first_tree: int
    last_tree: int  # behind the last
    n_places: int  # of a row

    def scratch(self, n_rows: int) -> RankScratch:
        """Scratch for at most `n_rows` rows; ranks that no one wrote would lead out of a tree: they are 0."""
        n_rows = -(-min(n_rows, max(BLOCK_CELLS // self.n_places, ABREAST)) // ABREAST) * ABREAST
        ranks = np.zeros((2 * max(len(self.columns.feature), 1), min(WIDTH, n_rows)), np.uint16)
        block = np.zeros(n_rows * self.n_places, np.uint32)
        return RankScratch(ranks, block, self.n_places, np.empty(ABREAST, np.uint64))


def can_take_steps(forest: Forest) -> bool:
    """Whether tests are thresholds with two branches."""
    is_plain = len(forest.subsets) == 0 and forest.linear is None
    return is_plain and not np.any(missing_of_link(forest.hot[:, 1]) > 1)


class RankedRows(NamedTuple):
    """What rows a layout is for."""

    dtype: np.dtype[Any]  # float32 or float64
    is_known: bool  # no value is missing: half the ranks, which 100 trees take 0.37 s for instead of 0.48 s


class TreeSpan(NamedTuple):
    """Consecutive trees of a forest."""

    forest: Forest
    first: int
    last: int  # behind the last

    @property
    def nodes(self) -> slice:
        """Their nodes."""
        return slice(int(self.forest.first_node[self.first]), int(self.forest.first_node[self.last]))

    @property
    def roots(self) -> NDArray[np.int64]:
        """The root of each, counted from the first, and the end."""
        return self.forest.first_node[self.first : self.last + 1] - self.nodes.start


class Places(NamedTuple):
    """Where the ranks of a row stand."""

    first: NDArray[np.int64]  # (n_columns,)
    up: NDArray[np.int64]  # (n_columns,): of the copy whose missing values are above all; without one the first
    last: int  # of a rank that is 0, for leaves


class Said(NamedTuple):
    """What leaves say, as `RankedTrees` has it."""

    held: NDArray[np.int64]  # (n_leaves,): what their steps hold
    said: NDArray[np.float64]  # (any, any)
    first: NDArray[np.int64]  # (n_trees,)
    holds: int


def lay_ranked(forest: Forest, rows: RankedRows, k: Any) -> tuple[RankedLayout, ...]:
    """Lay out a forest in parts of few enough thresholds; k: the kernels.

    Empty where parts would have fewer than FEWEST_TREES trees, or a row more places than a step can ask for.
    """
    return lay_part(TreeSpan(forest, 0, len(forest)), rows, k) if can_take_steps(forest) else ()


def lay_part(span: TreeSpan, rows: RankedRows, k: Any) -> tuple[RankedLayout, ...]:
    """Some trees, halved until a feature has no more thresholds than ranks."""
    forest, first, last = span
    if last - first < FEWEST_TREES:
        return ()
    found = rank_thresholds(forest, rows.dtype, span.nodes)
    if found.n_each.max(initial=0) > MOST_THRESHOLDS:
        middle = (first + last) // 2
        halves = lay_part(TreeSpan(forest, first, middle), rows, k), lay_part(TreeSpan(forest, middle, last), rows, k)
        return halves[0] + halves[1] if all(halves) else ()
    columns = ask_columns(forest, found, span.nodes)
    columns = columns._replace(goes_up=columns.goes_up & (not rows.is_known))
    places = lay_places(columns)
    if places.last >= MOST_PLACES:
        return ()
    trees = lay_steps(span, found, places)
    return (RankedLayout(columns, lay_cuts(found, k), trees, first, last, places.last // ABREAST + 1),)


def lay_places(columns: AskedColumns) -> Places:
    """A place for each column, a second one where it needs that, and the last, ABREAST of each side by side."""
    n_columns = max(len(columns.feature), 1)
    first = np.arange(len(columns.feature))
    up = np.where(columns.goes_up, n_columns - 1 + np.cumsum(columns.goes_up), first)
    return Places(first * ABREAST, up * ABREAST, (n_columns + int(columns.goes_up.sum())) * ABREAST)


def lay_steps(span: TreeSpan, found: Thresholds, places: Places) -> RankedTrees:
    """Pack the nodes of trees as steps."""
    forest, nodes = span.forest, span.nodes
    place = np.full((2, forest.n_features + 1), places.last)
    place[:, found.features] = places.first, places.up
    said = lay_said(span)
    link = forest.hot[nodes, 1]
    rank = found.ranks.astype(np.int64)
    rank[forest.is_leaf[nodes]] = MOST_RANKS - said.held
    steps = pack_step(child_of_link(link), rank, place[missing_of_link(link), feature_of_link(link)])
    return RankedTrees(
        fixed(steps),
        fixed(span.roots),
        fixed(said.said),
        fixed(said.first),
        fixed(places.up),
        fixed(count_steps(span)),
        said.holds,
    )


def lay_said(span: TreeSpan) -> Said:
    """What leaves say: by their steps as far as these have room, else where it stands for other walks."""
    forest, nodes, roots = span.forest, span.nodes, span.roots
    is_leaf = forest.is_leaf[nodes]
    cut = np.ascontiguousarray(forest.hot[nodes][is_leaf, 0]).view(np.float64)
    if forest.n_classes > 1:
        code = cut.astype(np.int64)
        held = np.where(code < 0, forest.n_classes - 1 - code, code)
        if held.max() <= MOST_HELD:
            return Said(held, np.zeros((1, 1)), np.zeros(len(roots) - 1, np.int64), HOLDS_CLASSES)
    else:
        n_before = np.concatenate([[0], np.cumsum(is_leaf)])[roots]
        held = np.arange(len(cut)) - np.repeat(n_before[:-1], np.diff(n_before))
        if held.max() <= MOST_HELD:
            return Said(held, cut.reshape(-1, 1), n_before[:-1], HOLDS_PLACES)
    return Said(np.zeros_like(held), forest.hot[nodes].view(np.float64), roots[:-1], HOLDS_NODES)


def count_steps(span: TreeSpan) -> NDArray[np.int64]:
    """After how many steps ENOUGH of the rows that each tree has grown on have arrived, (n_trees,)."""
    forest, nodes, root = span.forest, span.nodes, span.roots[:-1]
    is_leaf, child = forest.is_leaf[nodes], child_of_link(forest.hot[nodes, 1]).astype(np.int64)
    has_rows = not forest.is_compact and bool(forest.n_rows.any())
    n_rows = forest.n_rows[nodes].astype(np.float64) if has_rows else np.ones(len(child))
    n_under_way = np.add.reduceat(np.where(is_leaf, n_rows, 0.0), root)
    most = (1.0 - ENOUGH) * n_under_way
    n_steps = np.full(len(root), MOST_BLIND)
    tree, node = np.arange(len(root)), root
    for depth in range(MOST_BLIND):
        ended = is_leaf[node]
        n_under_way -= np.bincount(tree[ended], n_rows[node[ended]], len(root))
        n_steps = np.where(n_under_way <= most, np.minimum(n_steps, depth), n_steps)
        tree, node = tree[~ended], node[~ended]
        below = root[tree] + child[node]
        tree, node = np.concatenate([tree, tree]), np.concatenate([below, below + 1])
    return n_steps
