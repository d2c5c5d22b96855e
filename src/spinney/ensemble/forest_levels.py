"""Trees on bags of rows that an engine has in parts: their tops by passes over the parts, then what is below.

    bags ─► units of each tree ─► passes: sums of the open nodes of some trees ─► tops
    tops ─► one pass: rows of the nodes below, written node by node ─► subtrees ─► trees ─► votes of out-of-bag rows

Memory is that of the sums of some nodes, or of the rows of one node for each thread, whatever the number of rows. Bags
are drawn again in every pass: the part of a bag in a range of rows costs that range (`ensemble.sampling`). Tasks are
pure functions of a part, see `tree.levels`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from spinney._jit import interpreted
from spinney._threads import run_tasks
from spinney._types import CODE, CONTROL_SIZE, MOMENTS, ROW, SUM
from spinney.ensemble.forest import ForestGrowth, Grown, leaf_votes, member_key
from spinney.ensemble.part_bags import TRUTH, BagPart, BagSums, BagTask, BagUnits, PartBags, RootTask, read_units
from spinney.kernels.common.structs import RowRange, Targets, TopRows
from spinney.table.fixed_point import BAG_ROOM
from spinney.tree.forest import ForestParts
from spinney.tree.levels import CODES, WEIGHT
from spinney.tree.predict import find_coded_leaves
from spinney.tree.prune import prune_to_alpha
from spinney.tree.top_levels import (
    CLOSED,
    GATHER,
    LeafFigures,
    Piece,
    SubtreeGrowth,
    TopGrowth,
    TopNode,
    close_leaf,
    join_pieces,
    root_key,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from spinney.ensemble.forest import Plan
    from spinney.ensemble.out_of_bag import OutOfBagSums
    from spinney.kernels.common.structs import TopTests, ValueUnits
    from spinney.table.coding import Codes
    from spinney.table.fixed_point import Target
    from spinney.tree.forest import Forest
    from spinney.tree.levels import FoldingEngine, Kept, Part
    from spinney.tree.structure import Legend, Tree

    Ints = NDArray[np.int64]

COUNT, VALUES = "count", "values"  # arrays of gathered rows: how often each is in the bag; see `BagPart.values`
MOST_TREES = 8  # that share passes: reading the codes is then a small part of a pass
SHARES = 4  # open nodes of a tree that there is room for at once, where trees share passes


# --- Passes over the top --------------------------------------------------------------------------------------------


class WantedNode(NamedTuple):
    """An open node whose sums a pass makes."""

    number: int
    features: list[int]
    first: list[int]  # where the sums of each begin
    end: int  # of the last
    centre: int


class WantedTree(NamedTuple):
    """The open nodes of a tree that a pass sums up."""

    units: BagUnits
    tests: TopTests
    nodes: list[WantedNode]


class CodeTotals(NamedTuple):
    """What a pass adds up."""

    sums: Ints
    low: NDArray[np.float64]  # (n_wanted,) targets of numbers; empty for classes
    high: NDArray[np.float64]
    squares: Ints


@dataclass(frozen=True)
class TopTask:
    """Add the rows of open nodes to their sums by feature and code."""

    bags: PartBags
    kernels: Any
    trees: list[WantedTree]
    noise_unit: float  # of squares, which some categories ask for; 0: none

    def start(self) -> CodeTotals:
        """See `tree.levels.FoldTask`."""
        n_wanted = sum(len(tree.nodes) for tree in self.trees)
        n_sums = max(node.end for tree in self.trees for node in tree.nodes)
        return CodeTotals(
            np.zeros(n_sums, SUM), np.full(n_wanted, math.inf), np.full(n_wanted, -math.inf), np.zeros(n_wanted, SUM)
        )

    def __call__(self, part: Part, sums: CodeTotals) -> None:
        """Add a part."""
        codes = part.arrays[CODES].view(CODE)
        target, levels, at = self.bags.target, self.kernels.tree.levels, 0
        n_classes = 0 if target.family == MOMENTS else target.n_classes
        for tree in self.trees:
            nodes = [node.number for node in tree.nodes]
            bag, ends = sort_rows(self.bags.take(part, tree.units.tree), codes, tree.tests, nodes, self.kernels)
            addends = self.bags.addends(bag, tree.units)
            rows = TopRows(codes, bag.rows, addends)
            for node, (lo, hi) in zip(tree.nodes, pairwise([0, *ends]), strict=True):
                if hi > lo:
                    for feature, first in zip(node.features, node.first, strict=True):
                        levels.sum_codes(rows, lo, hi, feature, n_classes, sums.sums[first:])
                    if target.n_classes == 0:
                        sums.low[at] = min(sums.low[at], bag.truth[lo:hi].min())
                        sums.high[at] = max(sums.high[at], bag.truth[lo:hi].max())
                        if self.noise_unit > 0.0:
                            is_whole = tree.units.weights.is_whole
                            sums.squares[at] += levels.sum_part_squares(
                                addends, lo, hi, node.centre, is_whole, self.noise_unit
                            )
                at += 1

    def join(self, a: CodeTotals, b: CodeTotals) -> CodeTotals:
        """See `tree.levels.FoldTask`."""
        a.sums[:] += b.sums
        a.squares[:] += b.squares
        return a._replace(low=np.minimum(a.low, b.low), high=np.maximum(a.high, b.high))


def sort_rows(
    bag: BagPart, codes: NDArray[np.uint16], tests: TopTests, nodes: list[int], kernels: Any
) -> tuple[BagPart, list[int]]:
    """The rows of some nodes, those of one side by side, and where each ends."""
    node = np.empty(len(bag.rows), np.int32)
    kernels.tree.levels.route_rows(codes, bag.rows, tests, node)
    small = np.int16 if len(nodes) < np.iinfo(np.int16).max else np.int32  # two bytes are sorted by counting
    place = np.full(len(tests.feature), len(nodes), small)
    place[nodes] = np.arange(len(nodes))
    here = place[node]
    counts = np.bincount(here, minlength=len(nodes) + 1)[: len(nodes)]
    order = np.argsort(here, kind="stable")[: int(counts.sum())]
    return bag.pick(order), np.cumsum(counts).tolist()


# --- Rows that are gathered -----------------------------------------------------------------------------------------


class GatheredTree(NamedTuple):
    """The nodes of a tree whose rows a pass gathers."""

    tree: int
    tests: TopTests
    nodes: list[int]


@dataclass(frozen=True)
class GatherTask:
    """Take the rows of some nodes from a part, those of one side by side."""

    bags: PartBags
    kernels: Any
    trees: list[GatheredTree]

    def __call__(self, part: Part) -> tuple[Kept, list[tuple[NDArray[np.uint16], BagPart, list[int]]]]:
        """Do so."""
        codes = part.arrays[CODES].view(CODE)
        found = []
        for tree in self.trees:
            bag, ends = sort_rows(self.bags.take(part, tree.tree), codes, tree.tests, tree.nodes, self.kernels)
            found.append((codes[bag.rows], bag, ends))
        return {}, found

    def join(self, a: Any, b: Any) -> Any:
        """See `tree.levels.Task.join`: rows are written as they come."""
        raise NotImplementedError


@dataclass(frozen=True)
class LargeLeafTask:
    """Sum up leaves of numbers that are too large to be held: extremes, then means, then squares."""

    bags: PartBags
    kernels: Any
    trees: list[tuple[BagUnits, TopTests, list[int], ValueUnits]]
    figures: list[LeafFigures] | None  # of each leaf so far; None: extremes are asked for
    weights: list[int]
    kind: int = 0  # what is summed, see `leaf_means`

    def __call__(self, part: Part) -> tuple[Kept, list[tuple[Any, ...]]]:
        """Do so."""
        codes = part.arrays[CODES].view(CODE)
        levels = self.kernels.tree.levels
        found: list[tuple[Any, ...]] = []
        for units, tests, nodes, values in self.trees:
            bag, ends = sort_rows(self.bags.take(part, units.tree), codes, tests, nodes, self.kernels)
            targets = Targets(self.bags.addends(bag, units), np.arange(len(bag.rows), dtype=ROW), bag.truth)
            for lo, hi in pairwise([0, *ends]):
                at = len(found)
                if self.figures is None:
                    truth = bag.truth[lo:hi]
                    found.append((float(truth.min(initial=math.inf)), float(truth.max(initial=-math.inf))))
                    continue
                low, high, mean = self.figures[at][:3]
                scale = interpreted().common.leaf_means.fixed_scale(self.weights[at])
                centre = mean if self.kind == interpreted().common.leaf_means.SQUARE else 0.0
                leaf = RowRange(lo, hi, 0)
                width = high - low if high > low else 1.0
                is_whole = units.weights.is_whole
                terms = levels.sum_part_terms(targets, leaf, is_whole, low, width, centre, self.kind, scale)
                total = levels.sum_part_targets(targets, lo, hi, values, units.scale, False)
                found.append((*(int(term) for term in terms), int(total)))
        return {}, found

    def join(self, a: list[tuple[Any, ...]], b: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """See `tree.levels.Task.join`."""
        if self.figures is None:
            return [(min(x[0], y[0]), max(x[1], y[1])) for x, y in zip(a, b, strict=True)]
        return [tuple(p + q for p, q in zip(x, y, strict=True)) for x, y in zip(a, b, strict=True)]


@dataclass(frozen=True)
class VoteTask:
    """Let a tree vote on the rows of a part that are not in its bag."""

    plan: Plan
    number: int
    tree: Tree
    kernels: Any

    def __call__(self, part: Part) -> tuple[Kept, tuple[NDArray[np.int32], NDArray[np.float64]]]:
        """Do so."""
        plan = self.plan
        is_out = plan.draw.counts(self.number, part.first, part.first + part.n_rows) == 0
        if plan.has_weight is not None:
            is_out &= plan.has_weight[part.first : part.first + part.n_rows]
        rows = np.flatnonzero(is_out).astype(ROW)
        codes = plan.codes.with_rows(part.arrays[CODES].view(CODE))
        leaf = find_coded_leaves(self.tree, codes, rows, self.kernels)
        return {}, (rows + ROW(part.first), leaf_votes(self.tree, leaf, is_hard=plan.is_hard, shift=plan.shift))

    def join(self, a: Any, b: Any) -> Any:
        """See `tree.levels.Task.join`."""
        return tuple(np.concatenate(pair) for pair in zip(a, b, strict=True))


# --- The forest -----------------------------------------------------------------------------------------------------


class TopBudget(NamedTuple):
    """What memory allows."""

    n_sums: int  # of eight bytes, for a pass and each thread
    most_rows: int  # of a node that a thread finishes


class LevelForest(ForestGrowth):
    """A forest under way on rows that an engine has in parts.

    Parameters
    ----------
    plan : Plan
        Its codes, target and weights are without rows; weights are whole numbers.
    legend : Legend
    engine : FoldingEngine
        Its parts have "codes", "truth" and, unless all weights are 1, "weight".
    budget : TopBudget
    open_rows : callable
        Makes files of so many rows, for those that are gathered; see `scale.row_files`.
    out_of_bag : OutOfBagSums, optional
    """

    count_bits: ClassVar[int] = BAG_ROOM  # bits of targets that are free for counts

    def __init__(
        self,
        plan: Plan,
        legend: Legend,
        engine: FoldingEngine,
        budget: TopBudget,
        open_rows: Callable[[int], Any],
        out_of_bag: OutOfBagSums | None = None,
    ) -> None:
        super().__init__(plan, legend, out_of_bag)
        self.engine, self.budget, self.open_rows = engine, budget, open_rows
        self.bags = PartBags(plan.draw, plan.target, plan.weights, self.count_bits)
        self.n_passes = 0
        self.control: Ints | None = None  # of the call whose thread this is, see `_threads`

    def resume(self, forest: Forest, leaf_rows: list[NDArray[np.int32]], kernels: Any) -> None:
        """Begin with the trees that an earlier run of the same plan has grown; their votes are cast again."""
        self.begun, self.leaf_rows = forest, list(leaf_rows)
        if self.out_of_bag is not None:
            for t in range(len(forest)):
                self.out_of_bag.add(*self.vote(t, forest[t], kernels))

    def vote(self, number: int, tree: Tree, kernels: Any) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Rows out of the bag of a tree, and its votes on them."""
        self.n_passes += 1
        found = list(self.engine.map(VoteTask(self.plan, number, tree, kernels), [CODES]))
        return np.concatenate([rows for rows, _ in found]), np.concatenate([votes for _, votes in found])

    def add_up(self, task: Any, reads: list[str]) -> Any:
        """The sum of what a task gives for all parts."""
        self.n_passes += 1
        return self.engine.add(task, reads, self.control)

    def run(self, first: int, n_trees: int, kernels: Any, n_workers: int, *, is_short: bool, verbose: bool) -> Forest:
        """Grow trees first .. first + n_trees, but for those that it began with."""
        self.parts = ForestParts(n_trees)
        n_begun = 0 if self.begun is None else len(self.begun)
        for tree in self.begun or ():
            self.parts.add(tree)
        at, end = first + n_begun, first + n_trees
        while at < end:
            group = range(at, min(at + self.count_together(), end))
            for number, tree in self.grow_group(group, kernels, n_workers, is_short=is_short, verbose=verbose):
                self.add(self.finish_tree(number, tree, kernels))
            at = group.stop
        return self.parts.join(self.legend)

    def count_together(self) -> int:
        """Trees that share passes."""
        n_features = self.plan.codes.n_features
        n_tried = n_features if self.plan.params.max_features is None else self.plan.params.max_features
        n_codes = np.sort(self.plan.codes.features[0])[::-1][:n_tried] + 1
        width = max(self.plan.target.n_classes + 1, 3)
        of_node = int(n_codes.sum()) * width
        return max(min(self.budget.n_sums // (SHARES * of_node), MOST_TREES), 1)

    def finish_tree(self, number: int, tree: Tree, kernels: Any) -> Grown:
        """Prune a tree, and let it vote."""
        nothing = np.zeros(0, ROW)
        if self.plan.ccp_alpha > 0.0:
            tree = prune_to_alpha(tree, self.plan.ccp_alpha)
        rows, votes = nothing, np.zeros((0, 1))
        if self.plan.has_oob:
            rows, votes = self.vote(number, tree, kernels)
        return Grown(tree, rows, votes, nothing)

    # --- the top ---

    def grow_group(
        self, group: range, kernels: Any, n_workers: int, *, is_short: bool, verbose: bool
    ) -> Iterator[tuple[int, Tree]]:
        """Grow some trees, which share passes; each with its number, in their order."""
        units = self.find_units(group, kernels)
        tops = [self.open_top(one, kernels) for one in units]
        while any(top.list_open() for top in tops):
            self.pass_once(units, tops, kernels)
        pieces = [self.close_leaves(one, top, kernels) for one, top in zip(units, tops, strict=True)]
        yield from self.finish_below(units, tops, pieces, kernels, n_workers, is_short=is_short, verbose=verbose)

    def find_units(self, group: range, kernels: Any) -> list[BagUnits]:
        """The units of the bags of some trees."""
        units = self.sum_bags(group)
        if self.plan.target.n_classes:
            return units
        values = [self.open_top(one, kernels).stat_units().values for one in units]
        found: list[Ints] = self.add_up(RootTask(self.bags, kernels, units, values), self.bags.reads)
        finest = interpreted().common.leaf_means.finest_scale
        return [
            one._replace(totals=mine[:2], scale=float(finest(np.float64(mine[2]) / value.rough_scale)))
            for one, mine, value in zip(units, found, values, strict=True)
        ]

    def sum_bags(self, group: range) -> list[BagUnits]:
        """The same as far as it is known without the magnitudes of targets."""
        sums: BagSums = self.add_up(BagTask(self.bags, group), self.bags.reads)
        return [read_units(sums, k, tree, self.bags) for k, tree in enumerate(group)]

    def seed_of(self, tree: int) -> int:
        """What the nodes of a tree draw by."""
        return member_key(self.plan.seed, tree)

    def open_top(self, units: BagUnits, kernels: Any) -> TopGrowth:
        """The top of a tree, with its root."""
        plan = self.plan
        params = replace(plan.params, seed=self.seed_of(units.tree))
        target = bag_target(plan.target, units, np.zeros(1, SUM), np.zeros(1))
        root = TopNode(units.n_rows, 0, root_key(params.seed), units.totals)
        weights = units.weights._replace(values=np.ones(1, SUM))
        codes = plan.codes.with_rows(np.zeros((1, plan.codes.rows.shape[1]), CODE))
        growth = TopGrowth(codes, target, weights, params, kernels, root, self.budget.most_rows)
        growth.control = np.zeros(CONTROL_SIZE, np.int64)
        return growth

    def pass_once(self, units: list[BagUnits], tops: list[TopGrowth], kernels: Any) -> None:
        """Sum up as many open nodes as memory allows, and split them."""
        wanted, at = [], 0
        for one, top in zip(units, tops, strict=True):
            nodes = []
            for number in top.list_open():
                features = top.list_features(top.top[number])
                ends = at + np.cumsum([top.count_sums(feature) for feature in features])
                if at > 0 and ends[-1] > self.budget.n_sums:
                    break
                first = [at, *ends[:-1].tolist()]
                nodes.append(WantedNode(number, features, first, int(ends[-1]), top.centre_of(top.top[number])))
                at = int(ends[-1])
            if nodes:
                wanted.append((top, WantedTree(one, top.tests(), nodes)))
        noise_unit = self.find_noise(tops[0])
        task = TopTask(self.bags, kernels, [tree for _, tree in wanted], noise_unit)
        self.n_passes += 1
        found: CodeTotals = self.engine.fold(task, [CODES, *self.bags.reads], self.control)
        k = 0
        for top, tree in wanted:
            for node in tree.nodes:
                is_even = bool(found.low[k] == found.high[k])
                sums = found.sums[node.first[0] : node.end]
                top.search_node(node.number, node.features, sums, int(found.squares[k]), is_even=is_even)
                k += 1

    def find_noise(self, top: TopGrowth) -> float:
        """The unit of squared targets, where categories ask for their sum; else 0."""
        has_levels = top.settings.most_words > 0 and top.settings.cat_penalty != 0.0
        return float(top.settings.noise_unit) if has_levels and not self.plan.target.n_classes else 0.0

    # --- below the top ---

    def close_leaves(self, units: BagUnits, top: TopGrowth, kernels: Any) -> dict[int, Piece]:
        """The leaves of a top that are too large to be held."""
        leaves = [k for k, node in enumerate(top.top) if node.state == CLOSED]
        if not leaves:
            return {}
        figures: list[LeafFigures] | list[None] = [None] * len(leaves)
        if not self.plan.target.n_classes:
            figures = self.sum_leaves(units, top, leaves, kernels)
        return {k: close_leaf(top, top.top[k], mine, units.scale) for k, mine in zip(leaves, figures, strict=True)}

    def sum_leaves(self, units: BagUnits, top: TopGrowth, leaves: list[int], kernels: Any) -> list[LeafFigures]:
        """What is known of leaves of numbers, by three passes: each needs what the last one found."""
        means = interpreted().common.leaf_means
        reads = [CODES, *self.bags.reads]
        weights = [int(top.top[k].totals[0]) for k in leaves]
        trees = [(units, top.tests(), leaves, top.stat_units().values)]
        task = LargeLeafTask(self.bags, kernels, trees, None, weights)
        figures = [LeafFigures(low, high, 0.0, 0.0, 0) for low, high in self.add_up(task, reads)]
        for kind in (means.MEAN, means.SQUARE):
            found = self.add_up(replace(task, figures=figures, kind=kind), reads)
            for k, (high, low, total) in enumerate(found):
                mean = float(means.mean_of_sums(high, low, weights[k], means.fixed_scale(weights[k])))
                mine = figures[k]._replace(total=total)
                figures[k] = mine._replace(mean=mean) if kind == means.MEAN else mine._replace(variance=mean)
        return figures

    def finish_below(
        self,
        units: list[BagUnits],
        tops: list[TopGrowth],
        pieces: list[dict[int, Piece]],
        kernels: Any,
        n_workers: int,
        *,
        is_short: bool,
        verbose: bool,
    ) -> Iterator[tuple[int, Tree]]:
        """Grow the subtrees below the tops, of one tree after the other, and put it together."""
        nodes = [[k for k, node in enumerate(top.top) if node.state == GATHER] for top in tops]
        below = self.grow_pieces(units, tops, nodes, kernels, n_workers, is_short=is_short, verbose=verbose)
        for one, top, found, grown in zip(units, tops, pieces, below, strict=True):
            found.update(grown)
            tree = join_pieces(top, found, one.scale)
            found.clear()
            yield one.tree, tree

    def grow_pieces(
        self,
        units: list[BagUnits],
        tops: list[TopGrowth],
        nodes: list[list[int]],
        kernels: Any,
        n_workers: int,
        *,
        is_short: bool,
        verbose: bool,
    ) -> Iterator[dict[int, Piece]]:
        """What is below some nodes of each top, tree by tree: their rows are gathered in files first."""
        places = [(t, k) for t, mine in enumerate(nodes) for k in mine]
        sizes = [tops[t].top[k].n_rows for t, k in places]
        first = dict(zip(places, np.cumsum([0, *sizes])[:-1].tolist(), strict=True))
        files = self.open_rows(sum(sizes))
        try:
            if places:
                self.gather(units, tops, nodes, first, files, kernels)
            for t in range(len(units)):
                grown: dict[int, Piece] = {}

                def work(task: int, control: Ints, t: int = t) -> Piece:
                    k = nodes[t][task]
                    return self.grow_below(units[t], tops[t].top[k], files, first[t, k], kernels, control)

                def take(task: int, piece: Piece, t: int = t, grown: dict[int, Piece] = grown) -> None:
                    grown[nodes[t][task]] = piece

                run_tasks(
                    work,
                    len(nodes[t]),
                    max(min(n_workers, len(nodes[t])), 1),
                    on_done=take,
                    label=f"growing tree {units[t].tree}",
                    unit="subtrees",
                    verbose=verbose,
                    is_short=is_short,
                )
                yield grown
        finally:
            files.close()

    def gather(
        self,
        units: list[BagUnits],
        tops: list[TopGrowth],
        nodes: list[list[int]],
        first: dict[tuple[int, int], int],
        files: Any,
        kernels: Any,
    ) -> None:
        """Write the rows of some nodes, those of one behind each other."""
        trees = [GatheredTree(one.tree, top.tests(), mine) for one, top, mine in zip(units, tops, nodes, strict=True)]
        at = dict(first)
        self.n_passes += 1
        for found in self.engine.map(GatherTask(self.bags, kernels, trees), [CODES, *self.bags.reads], self.control):
            for t, (codes, bag, ends) in enumerate(found):
                record = codes.view(np.dtype((np.void, codes.shape[1] * codes.itemsize))).reshape(-1)
                arrays = {CODES: record, TRUTH: bag.truth, COUNT: bag.counts}
                if bag.weight is not None:
                    arrays[WEIGHT] = bag.weight
                if bag.values is not None:
                    arrays[VALUES] = bag.values
                for k, (lo, hi) in zip(nodes[t], pairwise([0, *ends]), strict=True):
                    if hi > lo:
                        for name, values in arrays.items():
                            files.write(name, at[t, k], values[lo:hi])
                        at[t, k] += hi - lo

    def grow_below(self, units: BagUnits, node: TopNode, files: Any, first: int, kernels: Any, control: Ints) -> Piece:
        """Grow what is below a node, on its rows in files."""
        n = node.n_rows
        record = files.read_rows(CODES, first, n)
        weight = None if self.bags.weights.is_unit else files.read_rows(WEIGHT, first, n)
        truth = files.read_rows(TRUTH, first, n)
        values = files.read_rows(VALUES, first, n) if VALUES in files.files else None
        bag = BagPart(np.arange(n, dtype=np.int32), files.read_rows(COUNT, first, n), truth, weight, values)
        return grow_on_rows(self.plan, self.bags, units, node, record.view(CODE).reshape(n, -1), bag, kernels, control)


def grow_on_rows(
    plan: Plan,
    bags: PartBags,
    units: BagUnits,
    node: TopNode,
    rows: NDArray[np.uint16],
    bag: BagPart,
    kernels: Any,
    control: Ints,
) -> Piece:
    """Grow what is below a node, on its rows: their codes, and their part of the bag."""
    codes: Codes = plan.codes.with_rows(rows)
    addends = bags.addends(bag, units)
    weights = units.weights._replace(values=np.ones(1, SUM) if units.weights.is_unit else addends[1])
    target = bag_target(plan.target, units, addends[0], bag.truth)
    growth = SubtreeGrowth(codes, target, weights, plan.params, kernels)
    growth.control = control
    growth.begin(node, units.scale)
    growth.run()
    return growth.take_piece()


def bag_target(target: Target, units: BagUnits, values: Ints, truth: NDArray[np.float64]) -> Target:
    """The target of some rows of a bag."""
    return target._replace(values=values, truth=truth, bits=target.bits - units.n_excess)


class LevelTree(LevelForest):
    """One tree on all rows, under way: it draws by the seed itself, and no row counts twice.

    Attributes
    ----------
    tree : Tree
        Once it is grown.
    """

    count_bits: ClassVar[int] = 0
    tree: Tree

    def seed_of(self, tree: int) -> int:
        """What the nodes of the tree draw by."""
        del tree
        return self.plan.params.seed

    def finish_tree(self, number: int, tree: Tree, kernels: Any) -> Grown:
        """Keep the tree."""
        self.tree = tree
        return super().finish_tree(number, tree, kernels)
