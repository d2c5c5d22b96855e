"""Grow boosted trees from rows of bytes and packed sums: memory, units, and the calls of the driver."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._types import (
    BEGIN,
    BEST_FIRST,
    BOOST_NODE_ROWS,
    BOOST_SLOT_ROWS,
    BOOST_STATE_SIZE,
    BUNCH_ROWS,
    CELL_STRIDE,
    DEPTH_FIRST,
    DONE,
    FIRST_CELL,
    FIRST_CHILD,
    FOUND_ROWS,
    FREE,
    HAS_GUESSED,
    HAS_HANDS,
    IS_CATEGORICAL,
    IS_WIDE,
    LOWER,
    MONOTONE,
    MOST_BATCH,
    N_BATCH,
    N_CODES,
    N_FREE,
    N_LEAVES,
    N_NODES,
    N_ROWS,
    N_SPLITS,
    N_WORDS,
    NARROW_CODES,
    NEEDS_HANDS,
    NEEDS_MANY,
    NEEDS_ROOM,
    NODE_VALUE_ROWS,
    PHASE,
    PLACE,
    ROOT,
    ROOT_SUM,
    ROW,
    SCORE,
    SHARD_ROWS,
    SLOT_VALUE_ROWS,
    SUM,
    TEST,
    UPPER,
)
from spinney.kernels.common.structs import BoostSettings
from spinney.tree.grow import enlarge

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from spinney.table.binning import Bins

UNLIMITED = 2**31 - 1
SHARE_CELLS = 1 << 19  # rows x features of a node that is worth waking other threads for: some 0.3 ms
BATCH_CELLS = 1 << 14  # rows x features of a node from which on others are made ready beside it
SUM_LIMIT = 2.0**31  # gradients and hessians of a packed sum
KEPT_CODES = 1 << 13  # of a wide feature whose cells are kept, so that one child comes by subtraction
KEPT_CELLS = 1 << 16  # of all features of an open node: 512 kB
FIRST_SLOTS = 64
FIRST_NODES = 256
WORD = 64


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
    reg_alpha: float = 0.0
    gamma: float = 0.0
    pruning: str = "pre"
    learning_rate: float = 0.1
    subsample: float = 1.0
    max_features: int | None = None  # drawn per node
    max_tree_features: int | None = None  # drawn per tree
    newton: bool = True
    cat_smooth: float = 10.0
    max_cat_threshold: int = UNLIMITED  # levels in the branch that has fewer
    candidates: str = "weight"
    seed: int = 0


class Units(NamedTuple):
    """Powers of two that gradients and hessians are multiplied by before they are rounded."""

    gradient: float
    hessian: float


class Scratch(NamedTuple):
    """What a search only writes to pass it on; `wide_cells` are zero between uses, the rest is arbitrary."""

    goes_left: NDArray[np.uint8]
    wide_cells: NDArray[np.int64]
    counts: NDArray[np.int64]
    bunches: NDArray[np.int64]
    scores: NDArray[np.float64]
    spare: NDArray[np.float64]
    buckets: NDArray[np.int64]
    prefix: NDArray[np.int64]
    lefts: NDArray[np.float64]
    present: NDArray[np.int32]
    found: NDArray[np.int64]
    found_gain: NDArray[np.float64]


def power_below(limit: float, total: float) -> float:
    """The greatest power of two that keeps total times it below the limit; 1 where the total is 0."""
    if total <= 0.0:
        return 1.0
    exponent = math.frexp(limit / 2.0)[1] - math.frexp(total)[1]
    while math.ldexp(total, exponent + 1) < limit:
        exponent += 1
    return math.ldexp(1.0, min(max(exponent, -1000), 1000))


def packed_units(sum_g: float, sum_h: float, slack: float) -> Units:
    """Units of packed sums; slack: most that rounding can add to a sum, in units."""
    limit = SUM_LIMIT - 2.0 - slack
    return Units(power_below(limit, sum_g), power_below(limit, sum_h))


def interaction_bits(sets: Sequence[Sequence[int]], n_features: int) -> NDArray[np.uint64]:
    """Sets of features as bits, shape (n_features, n_words): bit s of a feature says that set s holds it."""
    bits = np.zeros((n_features, -(-len(sets) // WORD)), np.uint64)
    for s, members in enumerate(sets):
        for feature in members:
            bits[feature, s // WORD] |= np.uint64(1) << np.uint64(s % WORD)
    return bits


class BoostGrowth:
    """Memory for boosted trees on one table, one tree at a time.

    After `grow`, `nodes`, `node_values` and `subsets` hold the tree, `leaf` the leaf of each row of the table.
    """

    def __init__(
        self,
        bins: Bins,
        params: BoostParams,
        weights: NDArray[np.int64],  # (n_rows,) or (1,)
        kernels: Any,
        n_shards: int,
        run: Callable[[Callable[[int], None]], None],  # calls with shards 0 .. n_shards - 1, side by side
        monotone: NDArray[np.int8] | None = None,
        interactions: Sequence[Sequence[int]] | None = None,
    ) -> None:
        self.params = params
        self.kernels = kernels
        self.weights = weights
        self.n_shards = n_shards
        self.run = run
        self.monotone = monotone
        n_rows, n_features = len(bins.rows), len(bins.place)
        self.set_table(bins)
        self.members = None if interactions is None else interaction_bits(interactions, n_features)
        self.ids_0 = np.arange(n_rows, dtype=ROW)
        self.sums_0 = np.zeros(n_rows, SUM)
        self.leaf = np.zeros(n_rows, np.int32)
        n_bag = n_rows if params.subsample >= 1.0 else bag_size(params.subsample, n_rows)
        self.words = np.empty(2 * n_bag * self.n_words, np.uint64)
        self.codes = self.words.view(np.uint8)
        self.sums = np.empty(2 * n_bag, SUM)
        self.ids = np.empty(2 * n_bag, ROW)
        self.starts = deal_out(n_bag, n_shards)
        n_leaves = params.max_leaf_nodes
        n_nodes = min(2 * n_rows, FIRST_NODES if n_leaves is None else 2 * n_leaves)
        n_slots = FIRST_SLOTS if n_leaves is None else n_leaves + 3
        if params.max_depth is not None:
            n_slots = min(n_slots, 2 ** min(params.max_depth, 20) + 3)
        n_ahead = 0 if n_shards == 1 else 2 * MOST_BATCH  # children that are made ready and may not be needed
        n_nodes += 2 + n_ahead
        self.nodes = np.zeros((BOOST_NODE_ROWS, n_nodes), np.int64)
        self.node_values = np.zeros((NODE_VALUE_ROWS, n_nodes))
        self.ranges = np.zeros((2 * n_shards, n_nodes), np.int64)
        self.order = np.zeros(n_nodes, np.int64)
        self.state = np.zeros(BOOST_STATE_SIZE, np.int64)
        self.allocate_slots(min(n_slots, 2 * n_rows + 3) + n_ahead)
        n_codes = max(int(bins.features[N_CODES].max(initial=1)), NARROW_CODES - 1)
        self.scratch = [make_scratch(n_codes, n_features) for _ in range(n_shards)]
        self.batch = np.zeros(MOST_BATCH, np.int64)
        self.last_gain = 0.0

    def set_table(self, bins: Bins) -> None:
        """Take the codes of a table, or other codes of the same table."""
        self.bins = bins
        self.features = bins.features.copy()
        if self.monotone is not None:
            self.features[MONOTONE] = self.monotone
        self.codes_0 = bins.rows.reshape(-1)
        self.words_0 = self.codes_0.view(np.uint64)
        self.n_words = bins.rows.shape[1] // 8
        n_codes = self.features[N_CODES]
        self.n_narrow = int(np.count_nonzero(~bins.is_wide))
        self.n_slot_cells = self.n_narrow * CELL_STRIDE
        self.places = np.stack([bins.place, bins.is_wide, np.where(bins.is_wide, -1, bins.place * CELL_STRIDE)])
        for feature in np.flatnonzero(bins.is_wide & (n_codes < KEPT_CODES)):
            if self.n_slot_cells + n_codes[feature] < KEPT_CELLS:
                self.places[FIRST_CELL, feature] = self.n_slot_cells
                self.n_slot_cells += int(n_codes[feature]) + 1
        n_levels = self.features[N_CODES, self.features[IS_CATEGORICAL] != 0]
        self.most_words = -(-int(n_levels.max(initial=0)) // WORD)
        self.subsets = np.zeros(64 + 8 * self.most_words, np.uint64) if len(n_levels) else None
        self.use_columns(np.arange(self.features.shape[1]))

    def use_columns(self, used: NDArray[np.int64]) -> None:
        """Grow on these features from now on, int64, ascending."""
        places = self.places[:, used]
        self.used = used
        self.used_places = places[PLACE, places[IS_WIDE] == 0]
        spans = np.stack(
            [places[FIRST_CELL], self.features[N_CODES, used] + 1, np.where(places[IS_WIDE] != 0, places[PLACE], -1)]
        )
        self.spans = np.ascontiguousarray(spans[:, places[FIRST_CELL] >= 0])

    def allocate_slots(self, n_slots: int) -> None:
        """Memory of open nodes."""
        self.slots = np.zeros((BOOST_SLOT_ROWS, n_slots), np.int64)
        self.slot_values = np.zeros((SLOT_VALUE_ROWS, n_slots))
        self.slot_subsets = None if self.subsets is None else np.zeros((n_slots, self.most_words), np.uint64)
        self.alive = None if self.members is None else np.zeros((n_slots, self.members.shape[1]), np.uint64)
        self.cells = np.zeros(n_slots * self.n_slot_cells, SUM)
        self.extra = np.zeros(max((self.n_shards - 1) * self.n_slot_cells, 1), SUM)

    def change_table(self, bins: Bins) -> None:
        """Take other codes of the same table, which may need more cells or wider rows."""
        self.set_table(bins)
        n_slots = self.slots.shape[1]
        if n_slots * self.n_slot_cells > len(self.cells):
            self.cells = np.zeros(n_slots * self.n_slot_cells, SUM)
        if (self.n_shards - 1) * self.n_slot_cells > len(self.extra):
            self.extra = np.zeros((self.n_shards - 1) * self.n_slot_cells, SUM)
        if len(self.ids) * self.n_words > len(self.words):
            self.words = np.empty(len(self.ids) * self.n_words, np.uint64)
            self.codes = self.words.view(np.uint8)
        n_codes = int(self.features[N_CODES].max(initial=1))
        if n_codes + 1 > len(self.scratch[0].goes_left):
            self.scratch = [make_scratch(n_codes, self.features.shape[1]) for _ in range(self.n_shards)]

    def make_room(self) -> None:
        """Double whatever is full."""
        if self.state[N_NODES] + 2 > self.nodes.shape[1]:
            n = 2 * self.nodes.shape[1]
            self.order = enlarge(self.order, n)
            self.nodes, self.node_values = enlarge(self.nodes, n), enlarge(self.node_values, n)
            self.ranges = enlarge(self.ranges, n)
        if self.subsets is not None and self.state[N_WORDS] + self.most_words > len(self.subsets):
            self.subsets = enlarge(self.subsets, 2 * len(self.subsets))
        if self.state[N_FREE] < 2:
            old, n_free = self.slots.shape[1], int(self.state[N_FREE])
            self.slots, self.slot_values = enlarge(self.slots, 2 * old), enlarge(self.slot_values, 2 * old)
            self.slots[FREE, n_free : n_free + old] = np.arange(old, 2 * old)[::-1]
            self.state[N_FREE] += old
            self.cells = np.concatenate([self.cells, np.zeros_like(self.cells)])
            if self.slot_subsets is not None:
                self.slot_subsets = np.concatenate([self.slot_subsets, np.zeros_like(self.slot_subsets)])
            if self.alive is not None:
                self.alive = np.concatenate([self.alive, np.zeros_like(self.alive)])

    def settings(
        self, units: Units, most_hessian: int, min_weight: int, n_used: int, likely_gain: float, seed: int
    ) -> BoostSettings:
        """The parameters in the units of this tree."""
        params = self.params
        has_monotone = self.monotone is not None and bool(np.any(self.monotone != 0))
        min_leaf = params.min_samples_leaf
        if len(self.weights) == 1:
            min_leaf, min_weight = max(min_leaf, min_weight), 0
        min_hessian = math.ceil(min(params.min_child_weight * units.hessian, SUM_LIMIT - 1.0))
        return BoostSettings(
            order=DEPTH_FIRST if params.max_leaf_nodes is None else BEST_FIRST,
            max_depth=UNLIMITED if params.max_depth is None else min(params.max_depth, UNLIMITED),
            max_leaves=UNLIMITED if params.max_leaf_nodes is None else min(params.max_leaf_nodes, UNLIMITED),
            min_samples_split=params.min_samples_split,
            min_samples_leaf=min(min_leaf, UNLIMITED),
            min_weight_leaf=min_weight,
            min_hessian=max(min_hessian, 1),
            most_hessian=most_hessian,
            n_try=n_used if params.max_features is None else min(params.max_features, n_used),
            n_shards=self.n_shards,
            share_rows=max(SHARE_CELLS // max(n_used, 1), 2 * self.n_shards * SHARD_ROWS),
            batch_rows=max(BATCH_CELLS // max(n_used, 1), 1),
            most_words=self.most_words,
            is_plain=int(params.reg_alpha == 0.0 and not has_monotone),
            has_monotone=int(has_monotone),
            is_post=int(params.pruning == "post"),
            seed=seed,
            gradient_unit=1.0 / units.gradient,
            hessian_unit=1.0 / units.hessian,
            reg_lambda=params.reg_lambda,
            reg_alpha=params.reg_alpha,
            gamma=params.gamma,
            cat_smooth=params.cat_smooth,
            max_cat_threshold=min(params.max_cat_threshold, UNLIMITED),
            likely_gain=likely_gain,
        )

    def grow(
        self,
        units: Units,
        total: int,
        largest: int,
        bag: NDArray[np.int32] | None,
        min_weight: int,
        likely_gain: float,
        seed: int,
        control: NDArray[np.int64],
    ) -> int:
        """Grow a tree on `sums_0`; return its number of nodes, of which `leaf` is written for the rows of the bag.

        total, largest: sum of `sums_0`, and the largest hessian among them. likely_gain: gain from which on a node will
        likely be split, see `least_gain`.
        """
        k = self.kernels
        state, nodes = self.state, self.nodes
        n_rows = len(self.ids_0) if bag is None else len(bag)
        state[:] = 0
        state[N_NODES] = state[N_LEAVES] = 1
        state[PHASE] = ROOT
        n_slots = self.slots.shape[1]
        self.slots[FREE] = np.arange(n_slots)[::-1]
        state[N_FREE] = n_slots
        nodes[TEST, 0] = nodes[FIRST_CHILD, 0] = 0
        nodes[N_ROWS, 0] = n_rows
        nodes[BEGIN, 0] = 0
        self.node_values[:, 0] = 0.0
        self.node_values[LOWER, 0], self.node_values[UPPER, 0] = -np.inf, np.inf
        if self.alive is not None:
            self.alive[0] = np.uint64(0xFFFF_FFFF_FFFF_FFFF)  # slot 0 is the first to be taken
        if bag is not None:
            total = k.boost.pack_gradients.gather_rows(
                bag, self.words_0, self.sums_0, self.n_words, 0, n_rows, self.words, self.sums, self.ids
            )
            nodes[BEGIN, 0] = 1
            self.ranges[: self.n_shards, 0] = self.starts[:-1]
            self.ranges[self.n_shards :, 0] = self.starts[1:]
        state[ROOT_SUM] = total
        used, used_places, spans = self.used, self.used_places, self.spans
        settings = self.settings(units, largest, min_weight, len(used), likely_gain, seed)
        shared = (
            self.codes_0, self.words_0, self.sums_0, self.ids_0, self.codes, self.words, self.sums, self.ids,
            self.weights, self.starts,
        )  # fmt: skip
        while True:
            # `make_room` may have put others in their place
            grown = (
                self.ranges, self.n_words, self.n_narrow, self.features, self.bins.edges, self.places, used,
                used_places, spans, self.n_slot_cells, self.members, self.alive, self.nodes, self.node_values,
                self.slots, self.slot_values, self.slot_subsets, self.cells, self.extra,
            )  # fmt: skip
            why = k.boost.driver.grow(
                *shared, *grown, *self.scratch[0], self.subsets, self.order, self.batch, state, control, settings
            )
            if why == NEEDS_ROOM:
                self.make_room()
            elif why == NEEDS_HANDS:
                self.run(lambda shard: self.lend_hand(shard, used_places, spans))
                state[HAS_HANDS] = 1
            elif why == NEEDS_MANY:
                self.run(partial(self.make_some_ready, shared + grown, settings))
            elif why == DONE:
                break
            else:
                raise KeyboardInterrupt
        self.last_gain = float(self.node_values[SCORE, self.order[max(int(state[N_SPLITS]) - 1, 0)]])
        if state[HAS_GUESSED]:
            self.number_anew()
        return self.close(n_rows)

    def make_some_ready(self, arrays: tuple[Any, ...], settings: BoostSettings, t: int) -> None:
        """The part of thread t in the work on several small nodes."""
        n_batch = int(self.state[N_BATCH])
        self.kernels.boost.driver.make_some_ready(
            t, self.n_shards, self.batch, n_batch, *arrays, *self.scratch[t], settings
        )

    def lend_hand(self, shard: int, used_places: NDArray[np.int64], spans: NDArray[np.int64]) -> None:
        """The part of one thread in the work on a large node."""
        self.kernels.boost.threads.lend_hand(
            shard, self.codes_0, self.words_0, self.sums_0, self.ids_0, self.codes, self.words, self.sums, self.ids,
            self.starts, self.ranges, self.nodes, self.slots, self.places, self.n_words, self.n_narrow, used_places,
            spans, self.n_slot_cells, self.scratch[0].goes_left, self.cells, self.extra, self.state, self.n_shards,
        )  # fmt: skip

    def least_gain(self) -> float:
        """Gain of the last split where leaves ran out, else 0: what the next tree will likely split too."""
        n_splits = int(self.state[N_SPLITS])
        if n_splits == 0 or self.state[N_LEAVES] != self.params.max_leaf_nodes:
            return 0.0
        return self.last_gain

    def number_anew(self) -> None:
        """Number nodes in the order of the splits, as one thread does, and drop those that were made in vain."""
        order = self.order[: int(self.state[N_SPLITS])]
        old = np.zeros(2 * len(order) + 1, np.int64)
        old[1::2] = self.nodes[FIRST_CHILD, order]
        old[2::2] = old[1::2] + 1
        new = np.zeros(int(self.state[N_NODES]), np.int64)
        new[old] = np.arange(len(old))
        for array in (self.nodes, self.node_values, self.ranges):
            array[:, : len(old)] = array[:, old]
        child = self.nodes[FIRST_CHILD, : len(old)]
        child[child > 0] = new[child[child > 0]]
        self.state[N_NODES] = len(old)

    def close(self, n_rows: int) -> int:
        """Prune if asked to, and write the leaves of the rows; return the number of nodes."""
        n_grown = int(self.state[N_NODES])
        if n_grown == 1:
            self.leaf[:] = 0
            return 1
        links = np.empty((4, n_grown), np.int64)
        n_nodes = self.kernels.boost.leaf_values.close_tree(
            self.nodes, self.node_values, n_grown, self.params.pruning == "post", links
        )
        k = self.kernels.boost.leaf_values

        def mark(shard: int) -> None:
            k.mark_leaves(shard, self.n_shards, self.ids, self.ranges, links, n_grown, self.leaf)

        if n_rows * self.n_shards < SHARE_CELLS:
            for shard in range(self.n_shards):
                mark(shard)
        else:
            self.run(mark)
        return int(n_nodes)


def make_scratch(n_codes: int, n_features: int) -> Scratch:
    """Memory of one thread."""
    return Scratch(
        goes_left=np.zeros(n_codes + 1, np.uint8),
        wide_cells=np.zeros(n_codes + 1, SUM),
        counts=np.zeros((2, n_codes + 1), SUM),
        bunches=np.zeros((BUNCH_ROWS, n_codes + 2), SUM),
        scores=np.zeros(n_codes + 2),
        spare=np.zeros(n_codes + 2),
        buckets=np.zeros(n_codes + 2, np.int64),
        prefix=np.zeros(NARROW_CODES, SUM),
        lefts=np.zeros((3, NARROW_CODES)),
        present=np.zeros(NARROW_CODES, np.int32),
        found=np.zeros((FOUND_ROWS, n_features), SUM),
        found_gain=np.zeros(n_features),
    )


def bag_size(share: float, n_rows: int) -> int:
    """Rows of a sample."""
    return max(1, int(share * n_rows))


def deal_out(n_rows: int, n_shards: int) -> NDArray[np.int64]:
    """Where the rows of each shard begin in the buffer, shape (n_shards + 1,): runs of SHARD_ROWS go round."""
    if n_shards == 1:
        return np.array([0, n_rows], np.int64)
    run = np.arange(-(-n_rows // SHARD_ROWS))
    sizes = np.minimum(SHARD_ROWS, n_rows - run * SHARD_ROWS)
    shares = np.bincount(run % n_shards, sizes, n_shards).astype(np.int64)
    return np.concatenate([[0], np.cumsum(shares)])
