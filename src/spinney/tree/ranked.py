"""Trees of thresholds for rows whose values are ranks: what `kernels.predict.ranked` reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._jit import fixed
from spinney._node_layout import child_of_link, feature_of_link, missing_of_link, pack_step
from spinney._types import LANES, MOST_PLACES, MOST_RANKS
from spinney.kernels.common.structs import AskedColumns, BinSegments, RankedTrees, RankScratch
from spinney.tree.bitvectors import MOST_THRESHOLDS, Thresholds, ask_columns, lay_cuts, rank_thresholds

if TYPE_CHECKING:
    from spinney.tree.forest import Forest

FEWEST_TREES = 8  # whose thresholds are ranked together: values are ranked anew for the next ones
WIDTH = 1024  # rows that are ranked at once
BLOCK_CELLS = 1 << 19  # ranks of the rows that go through all trees before the next ones: 2 MB


class RankedLayout(NamedTuple):
    """Consecutive trees of a forest whose thresholds have ranks in common."""

    columns: AskedColumns
    segments: BinSegments  # over their thresholds
    trees: RankedTrees
    first_tree: int
    last_tree: int  # behind the last

    @property
    def n_places(self) -> int:
        """Ranks of LANES rows in a block."""
        n_columns = max(len(self.columns.feature), 1)
        return int(self.trees.up_place.max(initial=LANES * (n_columns - 1))) + LANES

    def scratch(self, n_rows: int) -> RankScratch:
        """Scratch for at most `n_rows` rows; ranks that no one wrote would lead out of a tree: they are 0."""
        n_columns = max(len(self.columns.feature), 1)
        per_row = self.n_places // LANES
        n_rows = -(-min(n_rows, max(BLOCK_CELLS // per_row, LANES)) // LANES) * LANES
        ranks = np.zeros((2 * n_columns, min(WIDTH, n_rows)), np.uint16)
        return RankScratch(ranks, np.zeros(n_rows * per_row, np.uint32), per_row, np.empty(LANES, np.uint64))


def can_take_steps(forest: Forest) -> bool:
    """Whether tests are thresholds with two branches, of no more features than a step has places for."""
    if len(forest.subsets) > 0 or forest.linear is not None:
        return False
    return 2 * LANES * forest.n_features <= MOST_PLACES and not np.any(missing_of_link(forest.hot[:, 1]) > 1)


class RankedRows(NamedTuple):
    """What rows a layout is for."""

    dtype: np.dtype[Any]  # float32 or float64
    is_known: bool  # no value is missing: half the ranks, which 100 trees take 0.37 s for instead of 0.48 s


def lay_ranked(forest: Forest, rows: RankedRows, k: Any) -> tuple[RankedLayout, ...]:
    """Lay out a forest in parts of few enough thresholds; k: the kernels.

    Empty where parts would have fewer than FEWEST_TREES trees.
    """
    return lay_part(forest, rows, k, 0, len(forest)) if can_take_steps(forest) else ()


def lay_part(forest: Forest, rows: RankedRows, k: Any, first: int, last: int) -> tuple[RankedLayout, ...]:
    """Trees first .. last, halved until a feature has no more thresholds than ranks."""
    if last - first < FEWEST_TREES:
        return ()
    nodes = slice(int(forest.first_node[first]), int(forest.first_node[last]))
    found = rank_thresholds(forest, rows.dtype, nodes)
    if found.n_each.max(initial=0) <= MOST_THRESHOLDS:
        columns = ask_columns(forest, found, nodes)
        columns = columns._replace(goes_up=columns.goes_up & (not rows.is_known))
        trees = lay_steps(forest, found, columns, first, last)
        return (RankedLayout(columns, lay_cuts(found, k), trees, first, last),)
    middle = (first + last) // 2
    halves = lay_part(forest, rows, k, first, middle), lay_part(forest, rows, k, middle, last)
    return halves[0] + halves[1] if all(halves) else ()


def lay_steps(forest: Forest, found: Thresholds, columns: AskedColumns, first: int, last: int) -> RankedTrees:
    """Pack the nodes of trees first .. last as steps."""
    nodes = slice(int(forest.first_node[first]), int(forest.first_node[last]))
    n_columns = len(found.features)
    place = np.arange(n_columns) * LANES
    up_place = np.where(columns.goes_up, (n_columns - 1 + np.cumsum(columns.goes_up)) * LANES, place)
    by_feature = np.zeros((2, forest.n_features + 1), np.int64)  # of leaves, which ask for one behind the last, 0
    by_feature[:, found.features] = place, up_place
    link = forest.hot[nodes, 1]
    rank = np.where(forest.is_leaf[nodes], MOST_RANKS, found.ranks)
    steps = pack_step(child_of_link(link), rank, by_feature[missing_of_link(link), feature_of_link(link)])
    return RankedTrees(
        fixed(steps),
        fixed(forest.first_node[first : last + 1] - nodes.start),
        fixed(forest.hot[nodes].view(np.float64)),
        fixed(up_place),
    )
