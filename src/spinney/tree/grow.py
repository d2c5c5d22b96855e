"""Grow one tree from codes and a fixed-point target: memory, units, and the call of the driver."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._criteria import CRITERIA
from spinney._jit import SameTypes, compiled
from spinney._types import (
    ABSOLUTE_ERROR,
    BIN_ROWS,
    CLASSES,
    CONTROL_SIZE,
    ENTROPY,
    IS_CATEGORICAL,
    IS_LISTED,
    LEAF,
    MAX_CODES,
    MOMENTS,
    MONOTONE,
    MOST_BRANCHES,
    MOST_BUCKETS,
    MOST_PAIR_WEIGHT,
    N_CODES,
    N_FREE,
    N_NODES,
    N_SURROGATES,
    N_WORDS,
    NEEDS_ROOM,
    OFFSET,
    POISSON,
    ROW,
    SUM,
    SURROGATE,
    TOTALS_SIZE,
)
from spinney.kernels.common.structs import (
    ExtraScratch,
    KeptSurrogates,
    Lists,
    NodeMedians,
    NodeOutputs,
    NodeSide,
    NodeSums,
    OutputScratch,
    RateScratch,
    Rows,
    Scratch,
    StatUnits,
    Table,
    Targets,
    TreeArrays,
    ValueUnits,
)
from spinney.table.coding import Codes
from spinney.table.fixed_point import Target, Weights, sum_bits, weight_unit
from spinney.table.flags import Packing, whole_codes
from spinney.tree.answers import fill_hazards, fill_labels
from spinney.tree.grow_params import GrowParams, entropy_table, make_settings, most_listed, score_units, tell_traits
from spinney.tree.interruptible import Driven
from spinney.tree.structure import Tree
from spinney.tree.surrogates import Surrogates, gather_surrogates
from spinney.tree.times import make_times
from spinney.tree.workspace import (
    clear_frontier,
    count_sums,
    enlarge,
    enlarge_frontier,
    enlarge_nodes,
    make_addends,
    make_ahead,
    make_bits,
    make_cells,
    make_classes,
    make_fours,
    make_frontier,
    make_levels,
    make_medians,
    make_nodes,
    make_packed,
    make_random,
    make_subtrees,
    place_rows,
    serves_bits,
    serves_subtrees,
)

FIRST_SLOTS = 128  # of open nodes
FIRST_NODES = 64  # room is doubled as needed; each time it is checked how long interpreted kernels have taken
INTERPRETED_SECONDS = 1.0
LISTED_CODES = {
    MOMENTS: 1,
    CLASSES: 64,
}  # a feature with fewer codes goes by a histogram but in the smallest nodes
MIXED_WEIGHTS = 1 << 20  # class weights of mixed leaves that room is made for before they are counted


class Bag(NamedTuple):
    """Rows of a table that a tree is grown on."""

    ids: NDArray[np.int32]  # (n_rows,) their numbers in the table
    addends: NDArray[np.int64] | None = None  # what `make_addends` makes, where that is at hand
    packing: Packing | None = None  # how features stand in the rows of codes; None: each has codes


class SummedNodes(NamedTuple):
    """The nodes of a tree with what their rows add up to."""

    out: TreeArrays
    sums: NodeSums
    means: NDArray[np.float64] | None  # (n_nodes,) of numbers, in units of `ValueUnits`
    distributions: NDArray[np.float64]  # (n_mixed, n_classes)
    side: NodeSide
    hot: NDArray[np.uint64]


class Growth(Driven):
    """One tree under way: the structs that the driver takes, with `room` nodes at first.

    See `kernels.common.structs` for what each of them holds and how long it lives.

    Parameters
    ----------
    codes, target, weights, params, kernels, monotone
        Rows of the table in codes, what they add to sums, and how to grow.
    bag : Bag, optional
        Which rows of the table these are; None: all of them.
    room : int
        For how many nodes memory is taken at first.
    seed : int, optional
        In the place of that of `params`.
    like : Growth, optional
        A tree of the same table, parameters and kernels that is finished: its memory is used again, and what the table
        says is not asked for twice. Trees of a hundred nodes took more time to be set up than to be grown.
    """

    table: Table
    table_bits: int  # of the entropies in `table.xlogx`
    late_edges: NDArray[Any] | None = None  # those of `Codes` that the driver does not see
    variant: tuple[bool, ...]  # which structs of `scratch` are None: what the types of the driver's arguments depend on

    def __init__(
        self,
        codes: Codes,
        target: Target,
        weights: Weights,
        params: GrowParams,
        kernels: Any,
        monotone: NDArray[np.int8] | None = None,
        bag: Bag | None = None,
        room: int = FIRST_NODES,
        seed: int | None = None,
        like: Growth | None = None,
    ) -> None:
        self.kernels = kernels
        self.params = params
        self.target = target
        self.weights = weights
        if like is None:
            packing = None if bag is None else bag.packing
            self.packing = whole_codes(codes.n_features) if packing is None else packing
            numbered = np.vstack([codes.features, np.arange(codes.n_features)])
            self.features = numbered.take(self.packing.number, axis=1)  # C order: F would be another type of one column
            is_numeric = self.features[IS_CATEGORICAL] == 0
            self.features[IS_LISTED] = is_numeric & (self.features[N_CODES] > LISTED_CODES[target.family])
            self.features[IS_LISTED, self.packing.n_coded :] = 0
            if monotone is not None:
                self.features[MONOTONE] = monotone[self.packing.number]
            self.traits = tell_traits(self.features, has_cells=self.packing.sparse is not None)
        else:
            self.features, self.traits, self.packing = like.features, like.traits, like.packing
        self.is_light = int(weights.values.max()) <= MOST_PAIR_WEIGHT
        self.summing: StatUnits | None = None  # what `stat_units` has found
        n_rows = len(codes.rows)
        if like is None or not self.take_units(like, n_rows):
            xlogx, self.table_bits = entropy_table(params.criterion, weights)
            is_late = codes.edges.dtype != np.float64  # another type of the driver's arguments would be another compile
            self.late_edges = codes.edges if is_late else None
            self.table = Table(self.features, np.zeros((2, 0)) if is_late else codes.edges, target.truth, xlogx)
            self.units = score_units(params.criterion, target, weights, self.table_bits)
            self.settings = make_settings(
                params, target, weights, self.units, self.traits, n_rows, is_light=self.is_light
            )
        self.has_bits = self.packing.sparse is None and serves_bits(self.settings, target.family, self.features)
        self.has_subtrees = (
            not self.has_bits
            and not self.traits.has_categories
            and self.packing.n_coded == self.traits.n_features
            and serves_subtrees(self.settings, target.family, self.features)
        )
        if seed is not None:
            self.settings = self.settings._replace(seed=seed)
        self.ids = np.arange(n_rows, dtype=ROW) if bag is None else bag.ids
        self.is_bag = bag is not None  # of a forest: memory is made for bags of somewhat more rows
        self.addends = make_addends(target, weights) if bag is None or bag.addends is None else bag.addends
        self.control = np.zeros(CONTROL_SIZE, np.int64)
        self.grow_alike: SameTypes | None = None  # the driver, for the trees of one forest
        self.fill_alike: SameTypes | None = None  # the same of what sums up a finished tree
        self.scale = 0.0  # see `StatUnits`
        self.codes = codes.rows
        if like is None or not self.take_memory(like, n_rows):
            self.allocate(codes, min(2 * n_rows + 2, room))

    def allocate(self, codes: Codes, room: int) -> None:
        """Make the structs whose arrays grow or are written."""
        self.codes = codes.rows
        has_bounds = self.settings.has_monotone
        self.nodes = make_nodes(room, 64 + 8 * self.settings.most_words, has_bounds=has_bounds)
        self.frontier = make_frontier(FIRST_SLOTS)
        self.n_held = len(codes.rows) + (len(codes.rows) >> 5 if self.is_bag else 0)
        self.lists = self.make_lists()
        is_read = self.settings.is_packed or self.params.has_random_tests or self.target.family == CLASSES
        self.ahead = make_ahead(codes.rows, self.packing, self.n_held, self.settings, is_read=is_read)
        self.cells = make_cells(self.packing, self.n_held, self.settings.n_try)
        self.scratch = self.make_scratch(self.n_held)
        self.variant = tuple(struct is None for struct in self.scratch)

    def take_units(self, like: Growth, n_rows: int) -> bool:
        """Use the settings of a finished tree, unless weights or targets are in other units or of another kind."""
        target, weights, held = self.target, self.weights, like.settings
        is_alike = like.weights[1:6] == weights[1:6] and like.target[4:10] == target[4:10]
        if not is_alike or like.is_light != self.is_light:
            return False
        self.table, self.table_bits, self.units, self.summing = like.table, like.table_bits, like.units, like.summing
        listed = 0 if held.is_packed or target.times is not None else most_listed(self.params, self.traits, n_rows)
        self.settings = held._replace(row_weight=weights.row_weight, most_listed=listed)
        return True

    def take_memory(self, like: Growth, n_rows: int) -> bool:
        """Use the memory of a finished tree, unless it is too small or of another variant."""
        settings, held = self.settings, like.settings
        is_alike = settings.is_packed == held.is_packed and settings.is_unit == held.is_unit
        is_alike &= (settings.most_listed > 0) == (held.most_listed > 0)
        is_alike &= settings.most_listed <= like.lists.keys.shape[1]
        is_alike &= self.has_subtrees == (like.scratch.subtrees is not None)
        is_alike &= self.has_bits == (like.scratch.bits is not None)
        if n_rows > like.n_held or not is_alike or like.is_special:
            return False
        self.nodes, self.frontier, self.lists, self.scratch = like.nodes, like.frontier, like.lists, like.scratch
        self.ahead, self.n_held, self.variant, self.cells = like.ahead, like.n_held, like.variant, like.cells
        clear_frontier(self.frontier)
        return True

    @property
    def is_special(self) -> bool:
        """Whether scratch memory holds what depends on the rows."""
        scratch = self.scratch
        return any(part is not None for part in (scratch.extra, scratch.medians, scratch.outputs, scratch.given))

    @property
    def state(self) -> NDArray[np.int64]:
        """Counters of the driver."""
        return self.frontier.state

    def make_lists(self) -> Lists:
        """Room for sorted lists, where they are worth it."""
        most = self.settings.most_listed
        if most == len(self.ids):
            most = self.n_held
        dtype = np.uint32 if self.target.family == MOMENTS else np.uint64
        return Lists(
            keys=np.empty((self.features.shape[1], most) if most else (1, 1), dtype),
            addends=np.empty((len(self.addends), max(most, 1)), SUM),
            place=np.empty(max(len(self.target.truth), len(self.ids)) if most else 1, ROW),
            branch=np.empty(max(most, 1), np.uint8),
        )

    def make_scratch(self, n_rows: int) -> Scratch:
        """Allocate what kernels only write to pass it on: `histogram` is zero between uses, the rest is arbitrary."""
        n_classes, n_features = self.settings.n_classes, self.features.shape[1]
        n_codes = self.traits.most_codes
        is_moments = self.target.family == MOMENTS
        has_subsets = self.traits.has_categories
        n_keys = min(n_rows, MAX_CODES + 1) if is_moments else n_rows
        classes, levels, random, medians = None, None, None, None
        if not is_moments:
            classes = make_classes(n_classes, int(self.traits.n_levels.max(initial=0)))
        if has_subsets:
            levels = make_levels(self.settings.most_words, n_codes)
        if self.params.has_random_tests:
            random = make_random(n_rows)
        if self.settings.criterion == ABSOLUTE_ERROR:
            medians = make_medians(self.target, self.settings.most_listed, n_rows, n_codes)
        has_extra = self.settings.is_ratio or self.params.missing == SURROGATE
        return Scratch(
            permutation=self.packing.place,
            places=np.zeros(n_features, np.int64),
            keys=np.empty((2, n_keys), np.uint32 if is_moments else np.uint64),
            counts=np.empty(MOST_BUCKETS, np.int32),
            histogram=np.zeros(count_sums(self.features, self.settings, is_moments=is_moments, n_rows=n_rows), SUM),
            bins=np.empty((BIN_ROWS, max(n_codes, 2)), SUM),
            totals=np.zeros(TOTALS_SIZE, SUM),
            moves=np.empty((-(-n_rows // 64) + 1) * 64, ROW),
            sides=np.empty(-(-n_rows // 64), np.uint64),
            classes=classes,
            levels=levels,
            packed=make_packed(n_rows, has_two=is_moments) if self.settings.is_packed else None,
            random=random,
            subtrees=make_subtrees(n_features, len(self.addends), n_classes) if self.has_subtrees else None,
            bits=make_bits(n_classes) if self.has_bits else None,
            fours=make_fours(n_rows, n_features, n_classes) if self.has_bits and not is_moments else None,
            extra=self.make_extra(n_codes) if has_extra else None,
            rates=RateScratch(np.ones(1)) if self.settings.criterion == POISSON else None,
            medians=medians,
            outputs=None if self.target.outputs is None else self.make_outputs(n_rows, n_codes),
            given=None,
        )

    def make_outputs(self, n_rows: int, n_codes: int) -> OutputScratch:
        """Scratch memory for several outputs."""
        errors, middles = np.zeros((2, 4, max(n_codes, 2)))
        is_entropy = self.target.widths is not None and CRITERIA[self.params.criterion].code == ENTROPY
        times = None if self.target.times is None else make_times(self.target.times, is_whole=self.weights.is_whole)
        return OutputScratch(
            sums=np.zeros((4, self.target.n_columns if times is None else 1), SUM),
            place=np.arange(n_rows, dtype=np.int32),
            order=np.empty(n_rows, np.int32),
            errors=errors,
            middles=middles,
            whole=np.zeros(1),
            blur=np.zeros(1),
            n_entropies=self.target.n_outputs if is_entropy else 0,
            xlogx=self.table.xlogx,
            times=times,
        )

    def make_extra(self, n_codes: int) -> ExtraScratch:
        """Scratch memory for the gain ratio and for surrogates."""
        n_features = self.features.shape[1]
        n_kept = FIRST_NODES + self.settings.max_surrogates
        improve, tally = np.zeros(len(self.nodes.test)), np.zeros((4, n_codes + 1), SUM)
        kept = KeptSurrogates._make([*np.zeros((6, n_kept), SUM), np.zeros(n_kept)])
        ratios, agreements = np.zeros((2, n_features)), np.zeros((4, n_features), SUM)
        return ExtraScratch._make([*ratios, improve, tally, *agreements, kept])

    def make_room(self) -> None:
        """Double whatever is full."""
        nodes, settings, state = self.nodes, self.settings, self.state
        room, n_words = len(nodes.test), len(nodes.subsets)
        more_words = 2 * (1 + settings.max_surrogates) * settings.most_words
        if int(state[N_NODES]) + MOST_BRANCHES > room:
            room = 2 * room + 3
        if int(state[N_WORDS]) + more_words > n_words:
            n_words = 2 * n_words + more_words
        self.nodes = enlarge_nodes(nodes, room, n_words)
        extra = self.scratch.extra
        if extra is not None:
            kept, n_kept = extra.kept, len(extra.kept.node)
            if int(state[N_SURROGATES]) + settings.max_surrogates > n_kept:
                kept = KeptSurrogates._make(enlarge(x, 2 * n_kept) for x in kept)
            extra = extra._replace(improve=enlarge(extra.improve, room), kept=kept)
            self.scratch = self.scratch._replace(extra=extra)
        if int(state[N_FREE]) < MOST_BRANCHES:
            self.frontier = enlarge_frontier(self.frontier)

    def drive(self) -> int:
        """Run the driver to its end; interpreted kernels hand over to compiled ones if they take too long."""
        deadline = time.monotonic() + INTERPRETED_SECONDS
        cells = place_rows(self.cells, self.ids)
        rows = Rows(self.codes, self.codes.view(np.uint64), self.addends, self.ids, self.lists, *self.ahead, cells)
        while True:
            frontier = self.frontier._replace(control=self.control)
            structs = rows, self.table, self.settings, self.nodes, frontier, self.scratch
            if self.grow_alike is None:
                status = int(self.kernels.tree.driver.grow(*structs))
            else:
                status = int(self.grow_alike(self.variant, *structs))
            if status != NEEDS_ROOM:
                return status
            if time.monotonic() > deadline:
                self.kernels, self.grow_alike = compiled(), None
            self.make_room()

    def sum_up(self) -> SummedNodes:
        """Sum up the nodes."""
        n_nodes, n_classes = int(self.state[N_NODES]), self.target.n_classes
        hot = np.empty((n_nodes, 2), np.uint64)
        out = TreeArrays(
            test=np.empty(n_nodes, np.uint32),
            first_child=np.empty(n_nodes, np.int32),
            n_rows=np.empty(n_nodes, np.uint32),
            threshold=np.empty(n_nodes),
            weight=np.empty(n_nodes),
            impurity=np.empty(n_nodes),
            distributions=np.empty((0, n_classes)),
            links=hot,
            cuts=hot.view(np.float64),
        )
        targets = Targets(self.addends, self.ids, self.target.truth)
        sums = NodeSums(*np.empty((2, n_nodes), SUM))
        self.summing = units = self.summing or self.stat_units()
        means = None if n_classes else np.empty(n_nodes)
        class_sums = np.empty(n_classes, SUM) if n_classes else None
        room = min((n_nodes + 1) // 2, MIXED_WEIGHTS // n_classes) if n_classes else 0
        side = self.make_side(n_nodes)
        fill_tree = self.kernels.tree.node_stats.fill_tree
        while True:
            out = out._replace(distributions=np.empty((room, n_classes)))
            structs = targets, self.nodes, units, sums, means, class_sums, out, side
            if self.fill_alike is None:
                n_mixed = int(fill_tree(*structs))
            else:
                n_mixed = int(self.fill_alike(self.variant, *structs))
            if n_mixed <= room:
                break
            room = n_mixed
        return SummedNodes(out, sums, means, out.distributions[:n_mixed].copy(), side, hot)

    def grow_alone(self) -> Tree:
        """The tree, where no other will use its memory: that of its codes is let go before nodes are summed up."""
        self.run()
        del self.codes, self.table, self.lists, self.ahead, self.cells
        if self.late_edges is not None:
            self.place_thresholds(self.late_edges)
            self.late_edges = None
        return self.finish()

    def place_thresholds(self, edges: NDArray[Any]) -> None:
        """Place the thresholds of a grown tree by edges that the driver has not seen, a feature at a time."""
        place_feature = self.kernels.tree.late_thresholds.place_feature
        n_nodes, test, cut_value = int(self.state[N_NODES]), self.nodes.test, self.nodes.cut_value
        for number, feature in zip(self.packing.number.tolist(), self.features.T, strict=True):
            first, alone = int(feature[OFFSET]), feature.reshape(-1, 1).copy()
            alone[OFFSET] = 0
            wide = edges[:, first : first + int(feature[N_CODES])].astype(np.float64)
            place_feature(n_nodes, number, alone, wide, test, cut_value)

    def finish(self) -> Tree:
        """Sum up the nodes and keep what a tree needs."""
        summed = self.sum_up()
        out, n_nodes, n_classes = summed.out, int(self.state[N_NODES]), self.target.n_classes
        tree = Tree(
            test=out.test,
            first_child=out.first_child,
            threshold=out.threshold,
            subsets=self.nodes.subsets[: int(self.state[N_WORDS])].copy(),
            n_rows=out.n_rows,
            weight=out.weight,
            impurity=out.impurity,
            impurity_exponent=self.impurity_exponent(),
            distributions=summed.distributions,
            n_classes=n_classes,
            n_levels=self.traits.n_levels,
            surrogates=self.surrogates(n_nodes),
            answers=answers_of(summed.side),
        )
        begin = self.nodes.begin[:n_nodes]
        if self.target.times is not None:
            return fill_hazards(tree, self.addends, self.target.times.code[self.ids], self.target.times.n_times, begin)
        if self.target.widths is not None:
            return fill_labels(tree, self.addends, begin, self.target.widths, self.params.criterion)
        if n_classes and self.settings.has_monotone:
            return self.bound_shares(tree)
        tree.__dict__["hot"] = summed.hot  # a cached property that every forest reads
        return tree

    def make_side(self, n_nodes: int) -> NodeSide:
        """What trees whose nodes do not follow from their leaves need to be summed up."""
        medians, outputs, scratch = None, None, self.scratch.medians
        if scratch is not None:
            medians = NodeMedians(scratch.ranks, scratch.keys, self.scratch.counts, np.empty(n_nodes))
        if self.target.outputs is not None and self.target.widths is None:
            outputs = NodeOutputs(self.target.outputs.truth, np.empty((n_nodes, self.target.n_outputs)))
        return NodeSide(medians, outputs)

    def stat_units(self) -> StatUnits:
        """What the sums of a finished tree are worth."""
        target, weights = self.target, self.weights
        half = target.exponent // 2
        return StatUnits(
            criterion=CRITERIA[self.params.criterion].code,
            n_features=self.features.shape[1],
            has_monotone=self.settings.has_monotone,
            weight_unit=weight_unit(weights),
            score_unit=math.ldexp(1.0, self.units.gain_exponent) if target.n_classes else 0.0,
            bound_unit=math.ldexp(1.0, weights.bits - target.bits + target.spread_exponent),
            value_unit=math.ldexp(1.0, half),
            value_unit_2=math.ldexp(1.0, target.exponent - half),
            values=ValueUnits(
                is_whole=weights.is_whole,
                centre=float(target.centre),
                stretch=math.ldexp(1.0, -target.spread_exponent),
                share=math.ldexp(1.0, -weights.bits),
                rough_scale=math.ldexp(1.0, sum_bits(math.ldexp(weights.total, -weights.bits))),
            ),
            scale=self.scale,
        )

    def surrogates(self, n_nodes: int) -> Surrogates | None:
        """The surrogates of all nodes, if there are any to find."""
        if self.params.missing != SURROGATE or (extra := self.scratch.extra) is None:
            return None
        n = int(self.state[N_SURROGATES])
        exponent = self.units.gain_exponent - self.impurity_exponent()
        is_split = self.nodes.test[:n_nodes] != LEAF  # best first searches more nodes than it splits
        improve = np.where(is_split, np.ldexp(extra.improve[:n_nodes] * self.units.gain, exponent), 0.0)
        return gather_surrogates(KeptSurrogates._make(x[:n] for x in extra.kept), improve)

    def impurity_exponent(self) -> int:
        """Power of two that the impurities of nodes are given in."""
        if self.target.n_classes:
            return 0
        exponent = self.target.exponent + self.target.spread_exponent
        return CRITERIA[self.params.criterion].power * exponent

    def bound_shares(self, tree: Tree) -> Tree:
        """Move the share of class 1 of each leaf inside its monotone bounds: a missing branch may lie outside."""
        leaves = np.flatnonzero(tree.is_leaf)
        weight = tree.weight[leaves]
        code = tree.threshold[leaves].astype(np.int64)
        ones = np.where(code > 0, weight, 0.0)
        ones[code < 0] = tree.distributions[-1 - code[code < 0], 1]
        share = ones / weight
        bounded = np.clip(share, self.nodes.lower[leaves], self.nodes.upper[leaves])
        ones = np.where(bounded == share, ones, bounded * weight)
        is_mixed = (ones > 0.0) & (ones < weight)
        threshold = tree.threshold.copy()
        threshold[leaves] = np.where(is_mixed, -np.cumsum(is_mixed, dtype=np.int64), ones > 0.0)
        return replace(tree, threshold=threshold, distributions=np.stack([weight - ones, ones], axis=1)[is_mixed])


def answers_of(side: NodeSide) -> NDArray[np.float64] | None:
    """What every node predicts, (n_nodes, n_outputs), where that does not follow from its leaves."""
    if side.outputs is not None:
        return side.outputs.answers
    return None if side.medians is None else side.medians.answers.reshape(-1, 1)


def grow_tree(
    codes: Codes,
    target: Target,
    weights: Weights,
    params: GrowParams,
    kernels: Any,
    monotone: NDArray[np.int8] | None = None,
) -> Tree:
    """Grow one tree. The rows of `codes` and `target` are reordered in place."""
    return Growth(codes, target, weights, params, kernels, monotone).grow_alone()
