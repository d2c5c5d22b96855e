"""A forest of thresholds as one array of steps, for one row at a time: what `kernels.predict.ranked_row` reads."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spinney._node_layout import child_of_link, feature_of_link, missing_of_link, most_held, pack_row_step
from spinney._types import AT_COLUMNS, AT_SAID, COLUMN_WORDS, HEAD_SIZE, N_CELLS, N_COLUMNS, PLACE_BITS, TREES
from spinney.model.packed_forest import MOST_WORDS, NOTHING
from spinney.tree.bitvectors import distinct_thresholds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.model.packed_forest import RowSums
    from spinney.tree.bitvectors import DistinctThresholds

COLUMN_STEPS = 10  # of a walk that pay for the rank of a column: it takes 11 to 18 ns, and each step saves 1 to 2
FEWEST_SEGMENTS = 4


class Places(NamedTuple):
    """Where the ranks of a row stand: one of each column, second ones, then 0, which leaves ask for."""

    second: NDArray[np.int64]  # (n_columns,): of columns where some test sends missing values to branch 1; else `last`
    last: int
    bits: int  # of a place


class Columns(NamedTuple):
    """How the ranks of values are found, see `ranked_row.rank_value`."""

    words: NDArray[np.uint64]  # (n_columns, COLUMN_WORDS): places count from the first cut and the first guide
    cuts: NDArray[np.float64]
    guides: NDArray[np.uint32]


def pays_for_ranks(sums: RowSums) -> bool:
    """Whether tests are thresholds of two branches, and there are steps enough to pay for the ranks of the columns."""
    forest, n_nodes = sums.forest, sums.n_nodes
    if len(forest.subsets) > 0 or sums.n_trees < TREES:  # fewer are filled up to as many
        return False
    link = forest.hot[:n_nodes][~forest.is_leaf[:n_nodes], 1]
    n_columns = np.count_nonzero(np.bincount(feature_of_link(link), minlength=1))
    depth = (n_nodes // sums.n_trees).bit_length()
    return bool(n_columns * COLUMN_STEPS <= sums.n_trees * depth and not np.any(missing_of_link(link) > 1))


def pack_steps(sums: RowSums) -> NDArray[np.uint64] | None:
    """Lay out head, start, roots, columns, cuts, guides, steps and what leaves say end to end.

    Returns
    -------
    uint64 (n_words,), read-only; None where ranks or leaves are too many for a step
        With it, `ranked_row.add_ranked` writes the sums.
    """
    found = distinct_thresholds(sums.forest, np.dtype(np.float64), slice(sums.n_nodes))
    places = place_ranks(sums, found)
    said, holds = lay_leaves(sums)
    if max(int(found.n_each.max(initial=0)) + 1, len(said)) >= most_held(places.bits):
        return None
    columns = lay_columns(found)
    at_roots = HEAD_SIZE + sums.width
    at_columns = at_roots + -(-sums.n_trees // TREES) * TREES
    at_cuts = at_columns + columns.words.size
    at_guides = at_cuts + len(columns.cuts)
    at_steps = at_guides + -(-len(columns.guides) // 2)
    place, n_steps = place_nodes(sums, holds, len(said))
    at_spare = at_steps + n_steps  # a leaf that changes no sum
    at_said = at_spare + 1
    if at_said + len(said) > MOST_WORDS:
        return None
    columns.words[:, 1] += np.uint64(at_cuts)
    columns.words[:, 5] += np.uint64(2 * at_guides)
    columns.words[:, 7] = places.second
    packed = np.zeros(at_said + len(said), np.uint64)
    sums.write_head(packed)
    packed[N_CELLS] = sums.width + places.last + 1
    packed[PLACE_BITS] = places.bits
    packed[N_COLUMNS] = len(columns.words)
    packed[AT_COLUMNS] = at_columns
    packed[AT_SAID] = at_said
    packed[at_roots : at_roots + sums.n_trees] = at_steps + place[sums.first_node[:-1]]
    packed[at_roots + sums.n_trees : at_columns] = at_spare
    packed[at_columns:at_cuts] = columns.words.reshape(-1)
    packed[at_cuts:at_guides] = columns.cuts.view(np.uint64)
    packed.view(np.uint32)[2 * at_guides : 2 * at_guides + len(columns.guides)] = columns.guides
    packed[at_steps + place] = lay_row_steps(sums, found, places, holds, at_steps + place)
    nothing = len(said) - (sums.width if sums.has_shares else 1)
    packed[at_spare] = pack_row_step(np.array(at_spare), np.array(nothing), np.array(places.last), places.bits)
    packed[at_said:] = said
    packed.flags.writeable = False  # threads share it; and a kernel is compiled per type
    return packed


def place_ranks(sums: RowSums, found: DistinctThresholds) -> Places:
    """Give each column a place, and a second one where it needs that."""
    link = sums.forest.hot[: sums.n_nodes, 1]
    n_up = np.bincount(feature_of_link(link[missing_of_link(link) == 1]), minlength=sums.forest.n_features)
    goes_up = n_up[found.features] > 0
    last = len(goes_up) + int(goes_up.sum())
    second = np.where(goes_up, len(goes_up) - 1 + np.cumsum(goes_up), last)
    return Places(second, last, max(last.bit_length(), 1))


def lay_columns(found: DistinctThresholds) -> Columns:
    """Lay as many segments of equal width as there are thresholds between the outer ones of each column.

    Its thresholds are counted by the very arithmetic that finds the segment of a value, so rounding does no harm. Of a
    skewed column most are in few segments: there is more halving then, at worst all of it.
    """
    words = np.zeros((len(found.features), COLUMN_WORDS), np.uint64)
    numbers = words.view(np.float64)
    words[:, 0] = found.features
    all_cuts, all_guides = [np.empty(0)], [np.empty(0, np.int64)]
    n_cuts = n_guides = 0
    for c, (first, last) in enumerate(pairwise([0, *np.cumsum(found.n_each).tolist()])):
        cuts = found.cuts[first:last]
        top = max(len(cuts), FEWEST_SEGMENTS) - 1
        base, scale = spread_segments(cuts, top)
        with np.errstate(over="ignore", invalid="ignore"):
            place = (cuts - base) * scale
        place = np.where(place > 0.0, place, 0.0)
        segment = np.where(place < top, place, top).astype(np.int64)
        n_each = np.bincount(segment, minlength=top + 1)
        n_halvings = int(n_each.max()).bit_length()
        all_guides.append(np.cumsum(n_each) - n_each)
        all_cuts += [cuts, np.full(1 << n_halvings, np.nan)]  # where halving looks behind the last
        words[c, 1], words[c, 5], words[c, 6] = n_cuts, n_guides, n_halvings
        numbers[c, 2:5] = base, scale, top
        n_cuts += len(cuts) + (1 << n_halvings)
        n_guides += top + 1
    return Columns(words, np.concatenate(all_cuts), np.concatenate(all_guides).astype(np.uint32))


def spread_segments(cuts: NDArray[np.float64], top: int) -> tuple[float, float]:
    """Base and scale of segments between the second threshold and the last but one: outliers do not stretch them.

    The scale is 0, which is one segment, where that is not finite.
    """
    if len(cuts) < FEWEST_SEGMENTS:
        return 0.0, 0.0
    base, end = float(cuts[1]), float(cuts[-2])
    scale = top / (end - base) if end > base else 0.0
    return (base, scale) if np.isfinite(base) and np.isfinite(scale) else (0.0, 0.0)


def lay_leaves(sums: RowSums) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """What leaves say, as words, then what changes no sum; and where each node finds it, of inner ones nowhere.

    A class, below `width`, is a place by itself. Of values each is there once: leaves of few rows say much the same.
    """
    forest = sums.forest
    holds = np.zeros(sums.n_nodes, np.int64)
    leaf = np.flatnonzero(forest.is_leaf[: sums.n_nodes])
    words = np.ascontiguousarray(forest.hot[leaf, 0])
    if not sums.has_shares:
        said, holds[leaf] = np.unique(words, return_inverse=True)
        return np.append(said, NOTHING), holds
    code = words.view(np.float64).astype(np.int64)
    tree = np.searchsorted(sums.first_node, leaf, side="right") - 1
    row = forest.first_mixed[tree] - 1 - code
    holds[leaf] = np.where(code >= 0, code, sums.width * (row + 1))
    shares = np.concatenate([np.zeros((1, sums.width)), sums.shares, np.full((1, sums.width), -0.0)])
    return shares.reshape(-1).view(np.uint64), holds


def place_nodes(sums: RowSums, holds: NDArray[np.int64], n_said: int) -> tuple[NDArray[np.int64], int]:
    """Where the step of each node stands, counted from the first; and how many steps there are.

    Two leaves that are children of one node are the same steps for every node whose children say the same: there are
    few such pairs, of two classes hardly more than two, so a third of the nodes need no memory of their own.
    """
    is_leaf, link = sums.forest.is_leaf[: sums.n_nodes], sums.forest.hot[: sums.n_nodes, 1]
    root = np.repeat(sums.first_node[:-1], np.diff(sums.first_node))
    child = (root + child_of_link(link))[~is_leaf]
    pair = child[is_leaf[child] & is_leaf[child + 1]]
    distinct, which = np.unique(holds[pair] * n_said + holds[pair + 1], return_inverse=True)
    has_own = np.ones(sums.n_nodes, bool)
    has_own[pair] = has_own[pair + 1] = False
    place = np.cumsum(has_own) - 1
    n_own = sums.n_nodes - 2 * len(pair)
    place[pair] = n_own + 2 * which
    place[pair + 1] = place[pair] + 1
    return place, n_own + 2 * len(distinct)


def lay_row_steps(
    sums: RowSums, found: DistinctThresholds, places: Places, holds: NDArray[np.int64], to: NDArray[np.int64]
) -> NDArray[np.uint64]:
    """The step of each node; to: where those of all nodes stand."""
    forest, link = sums.forest, sums.forest.hot[: sums.n_nodes, 1]
    held = np.where(forest.is_leaf[: sums.n_nodes], holds, 1)  # 1: no rank that is known is above the threshold
    held[found.nodes] = most_held(places.bits) - found.ranks
    place = np.full((2, forest.n_features + 1), places.last)
    place[0, found.features] = np.arange(len(found.features))
    place[1, found.features] = places.second
    asked = place[missing_of_link(link), feature_of_link(link)]
    root = np.repeat(sums.first_node[:-1], np.diff(sums.first_node))
    return pack_row_step(to[root + child_of_link(link)], held, asked, places.bits)
