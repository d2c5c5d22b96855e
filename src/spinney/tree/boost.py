"""Grow boosted trees from rows of bytes and packed sums: memory, units, and the calls of the driver."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._jit import SameTypes
from spinney._types import (
    BEST_FIRST,
    BOOST_BIN_ROWS,
    BOOST_STATE_SIZE,
    CURRENT_SLOT,
    DEPTH_FIRST,
    DONE,
    GAIN_LANES,
    HAS_GUESSED,
    HISTOGRAM_STRIDE,
    IS_CATEGORICAL,
    MONOTONE,
    MOST_AHEAD,
    MOST_BATCH,
    N_CODES,
    N_FREE,
    N_LEAVES,
    N_NODES,
    N_SPLITS,
    N_WORDS,
    NARROW_CODES,
    NEEDS_ROOM,
    NEEDS_THREADS,
    NOT_LISTED,
    PHASE,
    ROOT,
    ROOT_SUM,
    ROW,
    STOPPED,
    SUM,
)
from spinney.kernels.common.structs import (
    BestCuts,
    BoostBatch,
    BoostFrontier,
    BoostNodes,
    BoostScratch,
    BoostSettings,
    BoostTable,
    ByteRows,
    HistogramScan,
    LeafLinks,
    PackedUnits,
)
from spinney.table.fixed_point import scale
from spinney.table.row_cells import find_row_cells
from spinney.tree.followers import NO_LOCKS
from spinney.tree.packed_units import SUM_LIMIT
from spinney.tree.routed_rows import make_routed_rows
from spinney.tree.row_shards import count_shards, deal_out, row_edges
from spinney.tree.workspace import enlarge

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from spinney.table.binning import Bins
    from spinney.table.fixed_point import Weights
    from spinney.table.row_cells import SummedCells
    from spinney.tree.followers import Followers

    NodeArrays = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]

UNLIMITED = 2**31 - 1
SHARE_CELLS = 1 << 19  # rows x features, those of a byte being one, of a node that is worth waking threads for: 0.3 ms
PAYING_NODES = 2.5  # such nodes that a table must have for threads to pay: with two of them the root alone is shared
BATCH_CELLS = 1 << 16  # the same of a node from which on others are made ready beside it
PIECE_CELLS = 1 << 15  # the same of a part of a node that is worth a thread of its own
MANY_THREADS = 8  # by fewer, a pass over 65,536 rows is shared
KEPT_CODES = 1 << 13  # of a wide feature whose sums are kept, so that one child comes by subtraction
KEPT_SUMS = 1 << 16  # of all features of an open node: 512 kB
FIRST_SLOTS = 64
FIRST_NODES = 256
MANY_FEATURES = 64  # of a tree, from which on a pass over the rows is little
WORD = 64
DIVISOR_BITS = 10  # of a mean weight where squared gradients are divided by weights that are not whole
SLOT_FIELDS = ((16, np.int64), (5, np.float64), (3, np.bool_))  # of `BoostFrontier`, one number a slot


@dataclass(frozen=True)
class BoostParams:
    """How to boost; counts are rows, weights are fractions of the total weight."""

    max_leaf_nodes: int | None = 31
    max_depth: int | None = None
    min_samples_leaf: int = 20
    min_samples_split: int = 2
    min_weight_fraction_leaf: float = 0.0
    min_child_weight: float = 1e-3
    reg_lambda: float = 0.0
    lambda_falls: bool = False  # see `ensemble.oob_stopping`
    reg_alpha: float = 0.0
    gamma: float = 0.0
    pruning: str = "pre"
    learning_rate: float = 0.1
    subsample: float = 1.0
    sampling: str = "uniform"  # or "gradient": see `ensemble.gradient_sampling`
    leaf_rows: str = "bag"  # or "all": whose derivatives make the values of leaves
    drop_rate: float = 0.0  # see `ensemble.dropout`
    skip_drop: float = 0.5
    max_features: int | None = None  # drawn per node
    max_tree_features: int | None = None  # drawn per tree
    newton: bool = True
    cat_smooth: float = 10.0
    max_cat_threshold: int = UNLIMITED  # levels in the branch that has fewer
    cat_penalty: float = 0.0  # of the gain that levels have by chance
    candidates: str = "weight"
    max_bins: int = 255  # of candidates by hessian
    seed: int = 0


def interaction_bits(sets: Sequence[Sequence[int]], n_features: int) -> NDArray[np.uint64]:
    """Sets of features as bits, shape (n_features, n_words): bit s of a feature is set where set s holds it."""
    bits = np.zeros((n_features, -(-len(sets) // WORD)), np.uint64)
    for s, members in enumerate(sets):
        for feature in members:
            bits[feature, s // WORD] |= np.uint64(1) << np.uint64(s % WORD)
    return bits


class BoostMemory:
    """What a boosted tree is grown with beside its rows: what is known of the features, its nodes, and the open ones.

    Parameters
    ----------
    bins : Bins
        The codes; the rows are not looked at here.
    params : BoostParams
    weights : Weights
    n_rows : int
    kernels : kernel modules
    n_threads : int
        Threads that share large nodes.
    monotone : int8 (n_features,), optional
    interactions : sets of features, optional
    keeps_all : bool
        Whether every feature keeps its sums, however many codes it has: where rows cannot be looked at again.
    """

    nodes: BoostNodes
    frontier: BoostFrontier

    def __init__(
        self,
        bins: Bins,
        params: BoostParams,
        weights: Weights,
        n_rows: int,
        kernels: Any,
        n_threads: int = 1,
        monotone: NDArray[np.int8] | None = None,
        interactions: Sequence[Sequence[int]] | None = None,
        *,
        keeps_all: bool = False,
    ) -> None:
        self.params, self.kernels, self.n_rows, self.n_threads = params, kernels, n_rows, n_threads
        self.n_shards = count_shards(n_threads)
        self.weights = weights.values
        self.has_weights = len(weights.values) > 1 and not weights.are_counts
        mean_bits = math.frexp(weights.total / n_rows)[1]
        self.weight_shift = 0 if weights.is_whole else max(mean_bits - DIVISOR_BITS, 0)
        self.weight_exponent = weights.exponent - weights.bits + self.weight_shift
        self.monotone, self.keeps_all = monotone, keeps_all
        self.n_bag = n_rows if params.subsample >= 1.0 else bag_size(params.subsample, n_rows)
        self.interactions = interaction_bits(interactions or (), len(bins.place))
        self.starts = deal_out(self.n_bag, self.n_shards)
        is_category = bins.features[IS_CATEGORICAL] != 0
        self.most_words = -(-int(bins.features[N_CODES, is_category].max(initial=0)) // WORD)
        self.state = np.zeros(BOOST_STATE_SIZE, np.int64)
        self.last_gain = 0.0
        self.reg_lambda = params.reg_lambda  # of the round
        self.least_hessian = 0  # of a row of the tree, in units; a branch of n rows has n times that at least
        has_monotone = monotone is not None and bool(np.any(monotone != 0))
        self.limits: dict[str, Any] = {  # of `BoostSettings`: what is the same in all trees
            "order": DEPTH_FIRST if params.max_leaf_nodes is None else BEST_FIRST,
            "max_depth": UNLIMITED if params.max_depth is None else min(params.max_depth, UNLIMITED),
            "max_leaves": UNLIMITED if params.max_leaf_nodes is None else min(params.max_leaf_nodes, UNLIMITED),
            "min_samples_split": min(params.min_samples_split, UNLIMITED),
            "n_threads": n_threads,
            "n_shards": self.n_shards,
            "most_words": self.most_words,
            "is_plain": params.reg_alpha == 0.0 and not has_monotone,
            "has_monotone": has_monotone,
            "is_post": params.pruning == "post",
            "reg_alpha": params.reg_alpha,
            "gamma": params.gamma,
            "cat_smooth": params.cat_smooth,
            "max_cat_threshold": min(params.max_cat_threshold, UNLIMITED),
            "cat_penalty": params.cat_penalty,
            "weight_shift": self.weight_shift,
            "weights_are_counts": weights.are_counts,
        }
        self.most_summed = UNLIMITED  # cells of a row, where there are some
        self.describe(bins)

    def describe(self, bins: Bins) -> None:
        """Take what is known of the features of a table, all of which are used from now on."""
        features = bins.features.copy()
        if self.monotone is not None:
            features[MONOTONE] = self.monotone
        n_codes = features[N_CODES]
        is_bundled = bins.base >= 0
        n_narrow = int(np.max(bins.place[~bins.is_wide], initial=-1)) + 1
        histogram_size = n_narrow * HISTOGRAM_STRIDE
        histogram_start = np.where(bins.is_wide | (bins.place < 0), -1, bins.place * HISTOGRAM_STRIDE)
        is_paired = is_bundled & (n_codes == 2) & ~np.bool_(self.keeps_all)
        histogram_start[is_paired] += bins.base[is_paired]
        if (is_spread := is_bundled & ~is_paired).any():  # their histograms are spread from that of the byte
            ends = histogram_size + np.cumsum(n_codes[is_spread] + 1)
            histogram_start[is_spread] = ends - (n_codes[is_spread] + 1)
            histogram_size = int(ends[-1])
        for feature in np.flatnonzero(bins.is_wide & ((n_codes < KEPT_CODES) | self.keeps_all)):
            if self.keeps_all or histogram_size + n_codes[feature] < KEPT_SUMS:
                histogram_start[feature] = histogram_size
                histogram_size += int(n_codes[feature]) + 1
        self.varies = (n_codes > 1) | bins.has_missing  # (n_features,) of the table
        none = np.zeros(0, np.int64)
        self.table = BoostTable(
            features=features,
            edges=bins.edges,
            place=bins.place,
            is_wide=bins.is_wide,
            base=bins.base,
            usual=bins.usual,
            is_paired=is_paired,
            histogram_start=histogram_start,
            used=none,
            used_places=none,
            kept_start=none,
            kept_size=none,
            kept_place=none,
            kept_feature=none,
            bundled=none,
            weights=self.weights,
            starts=self.starts,
            interactions=self.interactions,
            cell_begin=np.zeros(0, np.int64),
            cell_sum=np.zeros(0, np.int32),
            n_words=bins.rows.shape[1] // 8,
            n_moved=bins.rows.shape[1] // 8,
            n_narrow=n_narrow,
            histogram_size=histogram_size,
        )
        self.use_columns(np.arange(features.shape[1], dtype=np.int64))

    @property
    def n_slots(self) -> int:
        """Open nodes that there is memory for."""
        return len(self.frontier.queue)

    def use_columns(self, given: NDArray[np.int64]) -> None:
        """Grow on these features from now on, int64, ascending.

        Those that do not vary in the table, or that its rows are without, are left out where no features are drawn:
        each took some 40 ns a node. Where a node draws features, they are drawn too, and passed over.
        """
        table = self.table
        used = given if self.params.max_features is not None else given[self.varies[given] & (table.place[given] >= 0)]
        place, is_wide = table.place[used], table.is_wide[used]
        is_kept = (table.histogram_start[used] >= 0) & ~table.is_paired[used]
        is_bundled = table.base[used] >= 0
        bundles = np.unique(place[is_bundled])
        is_any = table.base >= 0  # the other codes of a bundle follow each other, from 1 on
        n_shared = np.zeros(table.n_narrow, np.int64)
        np.maximum.at(n_shared, table.place[is_any], table.base[is_any] + table.features[N_CODES, is_any] - 1)
        n_bytes = len(np.unique(place[place >= 0]))  # features that share a byte are summed as one
        self.n_summed = min(max(n_bytes, 1), self.most_summed)
        self.table = table._replace(
            used=used,
            used_places=np.unique(place[~is_wide & (place >= 0)]),
            kept_start=np.concatenate([table.histogram_start[used][is_kept], bundles * HISTOGRAM_STRIDE]),
            kept_size=np.concatenate([table.features[N_CODES, used][is_kept] + 1, n_shared[bundles]]),
            kept_place=np.concatenate([np.where(is_wide, place, -1)[is_kept], np.full(len(bundles), -1)]),
            kept_feature=np.concatenate([used[is_kept], np.full(len(bundles), -1)]),
            bundled=used[is_bundled & ~table.is_paired[used]],
        )

    def allocate_slots(self, n_slots: int) -> None:
        """Memory of open nodes."""
        table = self.table
        ints, floats, flags = (np.zeros((n, n_slots), kind) for n, kind in SLOT_FIELDS)
        self.frontier = BoostFrontier._make(
            [
                *ints,
                *floats,
                *flags,
                np.zeros((n_slots, self.most_words), np.uint64),
                np.zeros((n_slots, table.interactions.shape[1]), np.uint64),
                np.zeros((n_slots, table.features.shape[1], 2), np.int64),
                np.zeros(n_slots * table.histogram_size, SUM),
                np.zeros(max((self.n_threads - 1) * table.histogram_size, 1), SUM),
                self.make_batch(),
                self.state,
            ]
        )

    def make_batch(self) -> BoostBatch:
        """Memory of nodes whose children are made ready side by side; one thread needs none."""
        n_children = 2 * MOST_BATCH if self.n_threads > 1 else 2
        return BoostBatch(
            slot=np.zeros(MOST_BATCH, np.int64),
            small=np.zeros(MOST_BATCH, np.int64),
            begin=np.zeros(MOST_BATCH + 1, np.int64),
            squares=np.zeros((self.n_shards, n_children), SUM),
            cuts=make_best_cuts(n_children * self.table.features.shape[1]),
            locks=NO_LOCKS,
        )

    def allocate_nodes(self, n_nodes: int, n_shards: int, n_words: int) -> None:
        """Memory of the nodes of a tree, and of so many words of subsets."""
        self.node_arrays = make_node_arrays(n_nodes, n_shards)
        self.nodes = as_nodes(self.node_arrays, np.zeros(n_nodes, np.int64), np.zeros(n_words, np.uint64))

    def double_nodes(self) -> None:
        """Room for twice the nodes."""
        n = 2 * len(self.nodes.test)
        numbers, floats, ranges = self.node_arrays
        self.node_arrays = enlarge(numbers, n), enlarge(floats, n), enlarge(ranges, n)
        self.nodes = as_nodes(self.node_arrays, enlarge(self.nodes.split_order, n), self.nodes.subsets)

    def make_room(self) -> None:
        """Double whatever is full."""
        state, nodes = self.state, self.nodes
        if state[N_NODES] + 2 > len(nodes.test):
            self.double_nodes()
            nodes = self.nodes
        if state[N_WORDS] + self.most_words > len(nodes.subsets):
            nodes = nodes._replace(subsets=enlarge(nodes.subsets, 2 * len(nodes.subsets)))
        self.nodes = nodes
        if state[N_FREE] < 2:
            old, n_free = self.n_slots, int(state[N_FREE])
            per_slot = BoostFrontier._fields[: BoostFrontier._fields.index("subsets")]
            larger: dict[str, Any] = {name: enlarge(getattr(self.frontier, name), 2 * old) for name in per_slot}
            frontier = self.frontier._replace(**larger)
            frontier.free[n_free : n_free + old] = np.arange(old, 2 * old)[::-1]
            state[N_FREE] += old
            doubled: dict[str, Any] = {
                name: np.concatenate([each := getattr(frontier, name), np.zeros_like(each)])
                for name in ("subsets", "allowed_sets", "spans")
            }
            # not by `np.concatenate`, which writes the zeros: of slots that are never taken, no page is
            histogram = enlarge(frontier.histogram, 2 * len(frontier.histogram))
            self.frontier = frontier._replace(**doubled, histogram=histogram)

    def settings(
        self, units: PackedUnits, most_hessian: int, min_weight: int, n_used: int, likely_gain: float, seed: int
    ) -> BoostSettings:
        """The parameters in the units of this tree."""
        params, min_leaf = self.params, self.params.min_samples_leaf
        if not self.has_weights:
            min_leaf, min_weight = max(min_leaf, min_weight), 0
        min_hessian = math.ceil(min(params.min_child_weight * units.hessian, SUM_LIMIT - 1.0))
        return BoostSettings(
            **self.limits,
            min_samples_leaf=min(min_leaf, UNLIMITED),
            min_weight_leaf=min_weight,
            min_hessian=max(min_hessian, 1, int(min(min_leaf * self.least_hessian, SUM_LIMIT - 1.0))),
            most_hessian=most_hessian,
            n_try=n_used if params.max_features is None else min(params.max_features, n_used),
            share_rows=max(SHARE_CELLS // self.n_summed, 1),
            piece_rows=max(PIECE_CELLS // self.n_summed, 1),
            batch_rows=max(BATCH_CELLS // self.n_summed, 1),
            seed=seed,
            gradient_unit=1.0 / units.gradient,
            hessian_unit=1.0 / units.hessian,
            reg_lambda=self.reg_lambda,
            square_unit=scale((1.0 / units.gradient) * (1.0 / units.gradient), -self.weight_exponent),
            likely_gain=likely_gain,
        )

    def least_gain(self) -> float:
        """Gain of the last split where leaves ran out, else 0: what the next tree will likely split too."""
        n_splits = int(self.state[N_SPLITS])
        if n_splits == 0 or self.state[N_LEAVES] != self.params.max_leaf_nodes:
            return 0.0
        return self.last_gain

    def number_anew(self) -> None:
        """Number nodes in the order of the splits, as one thread does, and drop those that were made in vain."""
        nodes, n_grown = self.nodes, int(self.state[N_NODES])
        order = nodes.split_order[: int(self.state[N_SPLITS])].copy()
        old = np.zeros(2 * len(order) + 1, np.int64)
        old[1::2] = nodes.first_child[order]
        old[2::2] = old[1::2] + 1
        new = np.zeros(n_grown, np.int64)
        new[old] = np.arange(len(old))
        for arrays in self.node_arrays:  # three of them: 16 take four times as long
            arrays[..., : len(old)] = arrays.take(old, axis=-1)
        child = nodes.first_child[: len(old)]
        child[child > 0] = new[child[child > 0]]
        self.state[N_NODES] = len(old)


class BoostGrowth(BoostMemory):
    """Memory for boosted trees on one table, one tree at a time.

    `table` and `source` are what a tree is grown on; after `grow`, `nodes` hold the tree, after `close`, `leaf` the
    leaf of each row of the bag.
    """

    cells: SummedCells | None  # None: rows are summed byte by byte

    def __init__(
        self,
        bins: Bins,
        params: BoostParams,
        weights: Weights,
        kernels: Any,
        n_threads: int,
        run: Callable[[Callable[[int], None]], None],  # calls with 0 .. n_threads - 1, side by side
        monotone: NDArray[np.int8] | None = None,
        interactions: Sequence[Sequence[int]] | None = None,
        followers: Followers | None = None,  # None: what threads have to do to nodes is done one after the other
        twin: BoostGrowth | None = None,  # on the same table: its cells are taken, and not looked for again
    ) -> None:
        n_rows, n_features = len(bins.rows), len(bins.place)
        super().__init__(bins, params, weights, n_rows, kernels, n_threads, monotone, interactions)
        # whatever a tree is grown on, the types of the structs are those of the first
        self.grow_alike = SameTypes(kernels.boost.driver.grow)
        self.serve = SameTypes(kernels.boost.batch.serve)
        self.close_tree = SameTypes(kernels.boost.leaf_values.close_tree)
        self.mark_leaves = SameTypes(kernels.boost.leaf_values.mark_leaves)
        self.gather_rows = SameTypes(kernels.boost.pack_gradients.gather_rows)
        self.run, self.followers = run, followers if n_threads > 1 else None
        self.edges = [0, n_rows]  # of the ranges of rows that hold those of each shard in the bag: see `gather`
        self.target = np.zeros(0, np.int64)  # the leaf of each node, once the tree has been pruned
        self.leaf = np.zeros(n_rows, np.int32)
        self.n_places = np.full((n_threads, 1), NOT_LISTED)
        self.routed = [make_routed_rows(n, self.table.n_narrow) for n in self.n_places]
        self.cells = None if params.candidates == "hessian" else find_row_cells(bins) if twin is None else twin.cells
        if self.cells is not None:
            self.table = self.table._replace(cell_begin=self.cells.begin, cell_sum=self.cells.sum, n_moved=1)
            self.most_summed = self.n_summed = max(-(-len(self.cells.sum) // n_rows), 1)
        words = np.empty(self.n_bag * self.table.n_moved, np.uint64)
        self.buffer = ByteRows(words.view(np.uint8), words, np.empty(self.n_bag, SUM), np.empty(self.n_bag, ROW))
        n_leaves = params.max_leaf_nodes
        n_nodes = min(2 * n_rows, FIRST_NODES if n_leaves is None else 2 * n_leaves)
        n_slots = FIRST_SLOTS if n_leaves is None else (n_leaves // 2 if self.n_shards == 1 else n_leaves) + 3
        if params.max_depth is not None:
            n_slots = min(n_slots, 2 ** min(params.max_depth, 20) + 3)
        n_ahead = 0 if n_threads == 1 else 2 * MOST_AHEAD  # children that are made ready and may not be needed
        n_words = 64 + 8 * self.most_words if self.most_words else 0
        self.allocate_nodes(n_nodes + 2 + n_ahead, self.n_shards, n_words)
        self.allocate_slots(min(n_slots, 2 * n_rows + 3) + n_ahead)
        self.take_rows(bins, self.make_sums())
        n_codes = max(int(bins.features[N_CODES].max(initial=1)), NARROW_CODES - 1)
        self.scratch = [make_boost_scratch(n_codes, n_features) for _ in range(n_threads)]

    @property
    def is_small(self) -> bool:
        """Whether hardly a node is worth sharing out."""
        return is_small(self.n_rows, self.n_summed)

    def make_sums(self) -> NDArray[np.int64]:
        """Memory for the packed sums of the rows of the table, which count until these are moved to the buffer.

        Until then, of all histograms there is that of the root alone, the first: by one thread, sums stand in the last.
        """
        histogram, n_rows = self.frontier.histogram, self.n_rows
        if self.n_shards > 1 or len(histogram) - self.table.histogram_size < n_rows:
            return np.zeros(n_rows, SUM)
        return histogram[len(histogram) - n_rows :]

    def take_rows(self, bins: Bins, sums: NDArray[np.int64]) -> None:
        """Take the codes of a table, with memory for the packed sums of its rows."""
        self.bins = bins
        codes = bins.rows.reshape(-1)
        self.source = ByteRows(codes, codes.view(np.uint64), sums, np.zeros(0, ROW))

    def find_least_hessian(self) -> None:
        """Find the least packed hessian of a row, where it is worth it: it tells that branches have too few rows.

        Of thousands of words the best cuts by their sums are those of a few rows, each of which would be counted.
        """
        is_worth_it = len(self.table.used) >= MANY_FEATURES and not self.limits["weights_are_counts"]
        self.least_hessian = int(self.source.sums.view("<i4")[::2].min()) if is_worth_it else 0

    def change_table(self, bins: Bins) -> None:
        """Take other codes of the same table, which may need a larger histogram or wider rows."""
        self.describe(bins)
        table, frontier = self.table, self.frontier
        if self.n_slots * table.histogram_size > len(frontier.histogram):
            frontier = frontier._replace(histogram=np.zeros(self.n_slots * table.histogram_size, SUM))
        if (self.n_threads - 1) * table.histogram_size > len(frontier.shard_histogram):
            frontier = frontier._replace(shard_histogram=np.zeros((self.n_threads - 1) * table.histogram_size, SUM))
        self.frontier = frontier
        is_apart = self.source.sums.base is None
        self.take_rows(bins, self.source.sums if is_apart else self.make_sums())
        if len(self.buffer.ids) * table.n_words > len(self.buffer.words):
            words = np.empty(len(self.buffer.ids) * table.n_words, np.uint64)
            self.buffer = self.buffer._replace(codes=words.view(np.uint8), words=words)
        n_codes = int(table.features[N_CODES].max(initial=1))
        if n_codes + 1 > len(self.scratch[0].goes_left):
            self.scratch = [make_boost_scratch(n_codes, table.features.shape[1]) for _ in range(self.n_threads)]

    def grow(
        self,
        units: PackedUnits,
        total: int,
        largest: int,
        n_bag: int | None,
        min_weight: int,
        likely_gain: float,
        seed: int,
        control: NDArray[np.int64],
    ) -> None:
        """Grow a tree on `source.sums`; `close` or `finish_tree` of the kernels follow.

        total, largest: the sum of these, and the largest hessian among them. n_bag: rows that `gather` has copied to
        the buffer, of which `total` is the sum then; None: the tree grows on all. likely_gain: gain from which on a
        node will likely be split, see `least_gain`.
        """
        self.begin(total, n_bag)
        self.find_least_hessian()
        settings = self.settings(units, largest, min_weight, len(self.table.used), likely_gain, seed)
        leads = self.followers is not None and bool(self.nodes.n_rows[0] >= settings.share_rows)
        while (why := self.go_on(settings, control, leads=leads)) != DONE:
            if why == NEEDS_ROOM:
                self.make_room()
            elif why != NEEDS_THREADS:
                raise KeyboardInterrupt
            else:  # nobody waits for the first batch of a small root, nor any where no thread could be started
                self.serve(None, 0, *self.structs(), self.scratch[0], settings)
                leads = self.followers is not None
        n_splits = int(self.state[N_SPLITS])
        self.last_gain = float(self.nodes.gain[self.nodes.split_order[max(n_splits - 1, 0)]])
        if self.state[HAS_GUESSED]:  # rows of a node that was made ready in vain have changed places among themselves
            self.number_anew()

    def go_on(self, settings: BoostSettings, control: NDArray[np.int64], *, leads: bool) -> int:
        """Grow until there is a reason to come back; leads: while threads wait in their kernel for batches of nodes."""
        locks = NO_LOCKS
        if self.followers is not None:
            locks = self.followers.find() if leads else NO_LOCKS
            self.frontier = self.frontier._replace(batch=self.frontier.batch._replace(locks=locks))
            leads = len(locks.begin) > 0
        structs, why = self.structs(), STOPPED

        def follow(t: int) -> None:
            self.serve(None, t, *structs, self.scratch[t], settings)

        def work() -> None:
            nonlocal why
            why = self.grow_alike(None, *structs, self.scratch[0], settings, control)

        if leads and self.followers is not None:
            self.followers.lead(locks, follow, work)
        else:
            work()
        return why

    def structs(self) -> tuple[BoostTable, ByteRows, ByteRows, BoostNodes, BoostFrontier]:
        """What all kernels of the growth take."""
        return self.table, self.source, self.buffer, self.nodes, self.frontier

    def begin(self, total: int, n_bag: int | None) -> None:
        """Make the root: all rows of the table, or those of a bag in the buffer, of which `total` is the packed sum."""
        state, nodes, frontier, n_slots = self.state, self.nodes, self.frontier, self.n_slots
        state[:] = 0
        state[N_NODES] = state[N_LEAVES] = 1
        state[PHASE] = ROOT
        state[CURRENT_SLOT] = 0  # that of the root
        frontier.free[:] = np.arange(n_slots - 1, -1, -1)
        state[N_FREE] = n_slots - 1  # slot 0, the last of these, is the root's
        frontier.allowed_sets[0] = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
        nodes.test[0] = nodes.first_child[0] = nodes.side[0] = 0
        nodes.n_rows[0] = len(self.leaf)
        nodes.cut_value[0] = nodes.gain[0] = 0.0
        nodes.lower[0], nodes.upper[0] = -np.inf, np.inf
        if n_bag is not None:
            nodes.n_rows[0] = n_bag
            nodes.side[0] = 1
            nodes.begin[:, 0], nodes.end[:, 0] = self.starts[:-1], self.starts[1:]
        state[ROOT_SUM] = total

    def gather(self, bag: NDArray[np.int32], pack: Callable[[int, int], None] | None = None) -> int:
        """Copy the rows of a bag to the buffer, each shard its own; return the sum of their packed sums.

        pack: writes the sums of a range of rows of the table before those of them in the bag are copied.
        """
        totals, self.edges = [0] * self.n_shards, row_edges(bag, self.starts, self.n_rows)
        edges = self.edges
        n_words = 0 if len(self.table.cell_begin) else self.table.n_words  # codes stay where there are cells
        starts, structs = self.starts.tolist(), (self.source, self.buffer, n_words)

        def work(shard: int) -> None:
            if pack is not None:
                pack(edges[shard], edges[shard + 1])
            totals[shard] = self.gather_rows(None, bag, starts[shard], starts[shard + 1], *structs)

        self.share_rows(len(bag), work)
        return sum(totals)

    def share_rows(self, n_rows: int, work: Callable[[int], None]) -> None:
        """Call work(shard) for all shards, side by side where so many rows are worth it."""

        def work_on_some(thread: int) -> None:
            for shard in range(thread, self.n_shards, self.n_threads):
                work(shard)

        if n_rows * max(self.n_threads, MANY_THREADS) < SHARE_CELLS:
            for thread in range(self.n_threads):
                work_on_some(thread)
        else:
            self.run(work_on_some)

    def prune(self) -> int:
        """Prune if wanted; return the number of nodes. `write_leaves` follows."""
        n_grown = int(self.state[N_NODES])
        self.n_places[:] = NOT_LISTED
        links = LeafLinks(*np.empty((4, n_grown), np.int64))
        self.target = links.target
        return int(self.close_tree(None, self.nodes, n_grown, self.params.pruning == "post", links))

    def write_leaves(self, n_rows: int, then: Callable[[int], None] | None = None) -> None:
        """Write the leaves of so many rows, those of the bag, by shards; of a tree that is a leaf those of all rows.

        then: called with the number of a shard whose leaves are written.
        """
        n_grown = int(self.state[N_NODES])
        if n_grown == 1:  # rows have not been moved
            self.leaf[:] = 0

        def work(shard: int) -> None:
            if n_grown > 1:
                self.mark_leaves(None, shard, n_grown, self.target, self.buffer, self.nodes, self.leaf)
            if then is not None:
                then(shard)

        self.share_rows(n_rows, work)

    def close(self, n_rows: int) -> int:
        """Prune if wanted, and write the leaves of so many rows, those of the bag; return the number of nodes."""
        n_nodes = self.prune()
        self.write_leaves(n_rows)
        return n_nodes


def make_node_arrays(n_nodes: int, n_shards: int) -> NodeArrays:
    """Memory of the nodes of a tree: whole numbers, floats, and where rows of each shard begin and end."""
    return np.zeros((6, n_nodes), np.int64), np.zeros((4, n_nodes)), np.zeros((2, n_shards, n_nodes), np.int64)


def as_nodes(arrays: NodeArrays, order: NDArray[np.int64], subsets: NDArray[np.uint64]) -> BoostNodes:
    """Nodes in such memory, with an order of splits and words of subsets."""
    numbers, floats, ranges = arrays
    return BoostNodes._make([*numbers, *floats, *ranges, order, subsets])


def make_boost_scratch(n_codes: int, n_features: int) -> BoostScratch:
    """Memory of one thread."""
    return BoostScratch(
        goes_left=np.zeros(n_codes + 1, np.uint8),
        wide_histogram=np.zeros(n_codes + 1, SUM),
        row_counts=np.zeros(n_codes + 1, SUM),
        weight_counts=np.zeros(n_codes + 1, SUM),
        bins=np.zeros((BOOST_BIN_ROWS, n_codes + 2), SUM),
        scores=np.zeros(n_codes + 2),
        spare=np.zeros(n_codes + 2),
        buckets=np.zeros(n_codes + 2, np.int64),
        histogram_scan=HistogramScan(*np.zeros((2, NARROW_CODES + GAIN_LANES), SUM)),
        best=make_best_cuts(n_features),
    )


def make_best_cuts(n_features: int) -> BestCuts:
    """Room for the best cut of each feature."""
    numbers = np.zeros((4, n_features), np.int64)
    return BestCuts._make([np.zeros(n_features), *numbers, np.zeros(n_features, np.bool_)])


def limit_workers(n_workers: int, n_jobs: int | None, n_rows: int, n_summed: int, n_trees: int = 1) -> int:
    """So many threads, but one by default where nodes are not worth sharing out, nor have threads a tree each.

    Two threads took 1.16 x the CPU time of one on adult, 1.3 x in one-hot columns, and 1.3 x its time by the clock on
    20,000 x 28. n_summed: features, those that share a byte being one; n_trees: of a round that may grow side by side.
    """
    return min(n_workers, n_trees) if n_jobs is None and is_small(n_rows, n_summed) else n_workers


def is_small(n_rows: int, n_summed: int) -> bool:
    """Whether so many rows of so many bytes have hardly a node that is worth waking threads for."""
    return n_rows * n_summed < PAYING_NODES * SHARE_CELLS


def bag_size(share: float, n_rows: int) -> int:
    """Rows of a sample."""
    return max(1, int(share * n_rows))
