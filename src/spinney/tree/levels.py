"""Grow a boosted tree level by level on rows that come in parts, none of which is held.

    root ─► open nodes ─► replay: which may still be split? ─► one pass over the parts: rows to children, sums
                ▲                                                              │
                └─────────────── best test of each child ◄─────────────────────┘

A *part* is a block of rows, and an *engine* maps a task over all parts and adds up what it gives (`scale.engine`). A
task is a pure function of a part: whoever has its rows can do it, once or twice, and sums of whole numbers add in any
order. Best first, every open node is split that may still be among the winners if the children of others gain nothing:
those first that gain about as much as the last winner of the tree before, since a pass costs less than sums in vain.
Nodes that turn out to win nothing are dropped when the tree is numbered, in the order that one thread in memory has.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from spinney._types import (
    BEST_FIRST,
    CONTROL_STOP,
    HISTOGRAM_STRIDE,
    N_CODES,
    N_FREE,
    N_LEAVES,
    N_NODES,
    N_SPLITS,
    N_WORDS,
    NARROW_CODES,
    ROW,
    SUBSET,
    SUM,
)
from spinney.kernels.common.structs import (
    BoostTable,
    ByteRows,
    LeafLinks,
    LevelTests,
    NodeCounts,
    PassScratch,
)
from spinney.tree.boost import BoostMemory, make_boost_scratch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from spinney.kernels.common.structs import BoostSettings
    from spinney.table.binning import Bins
    from spinney.table.fixed_point import Weights
    from spinney.tree.boost import BoostParams

CODES, SUMS, NODE, WEIGHT = "codes", "sums", "node", "weight"  # arrays of a part
BYTE_NODE, MOST_BYTES = "byte node", 256  # the nodes of rows while there are so few: a quarter to read and write
ROWS_AT_ONCE = 1 << 13  # of a part that are listed, copied and summed while they are in the cache
LIKELY_SHARE = 0.7  # of the gain of the last winner of the tree before, that nodes are split at once from: fewer passes


# --- Parts and tasks ------------------------------------------------------------------------------------------


class Part(NamedTuple):
    """A block of rows, and what is known of them; a task reads it and never writes to it."""

    first: int  # number of its first row in the table
    n_rows: int
    arrays: dict[str, NDArray[Any]]  # by name, those that the task reads; rows are along the last axis but of codes

    def rows(self, sums: NDArray[np.int64] | None = None) -> ByteRows:
        """The codes as kernels take them, with these sums, or those of the part."""
        codes = self.arrays[CODES].reshape(-1)
        return ByteRows(codes, codes.view(np.uint64), self.arrays[SUMS] if sums is None else sums, np.zeros(1, ROW))

    @property
    def narrow_node(self) -> NDArray[np.uint8]:
        """The node of each row in a byte, while these are so few."""
        return self.arrays[BYTE_NODE] if BYTE_NODE in self.arrays else np.zeros(self.n_rows, np.uint8)

    @property
    def node(self) -> NDArray[np.int32]:
        """The node of each row; all are in the root before the first level."""
        if BYTE_NODE in self.arrays:
            return self.arrays[BYTE_NODE].astype(np.int32)
        return self.arrays[NODE] if NODE in self.arrays else np.zeros(self.n_rows, np.int32)


Kept = dict[str, "NDArray[Any]"]


class Task(Protocol):
    """What is done to a part: pure, so that whoever has the part can do it, and do it again."""

    def __call__(self, part: Part) -> tuple[Kept, Any]:
        """Arrays to keep, by name, in the place of those that the part had; and what is added up."""

    def join(self, a: Any, b: Any) -> Any:
        """The sum of what was found in two sets of parts; it may be made of the first."""


class FoldTask(Protocol):
    """What a part adds to sums that are too large to be made for each part: pure but for these."""

    def start(self) -> Any:
        """Sums of no part."""

    def __call__(self, part: Part, sums: Any) -> None:
        """Add a part."""

    def join(self, a: Any, b: Any) -> Any:
        """The sum of two sets of parts; it may be made of the first."""


class Beginning(NamedTuple):
    """How what is known of the rows when a round begins is made again, where it was lost."""

    forest: Callable[[], Any]  # the trees of all rounds before
    n_rounds: int
    task: Task  # gives what is kept besides the scores
    reads: Sequence[str]


class Engine(Protocol):
    """Where parts are: what maps a task over them.

    There are two makers: `scale.engine.DiskEngine` has the parts in files of this machine, `scale.cluster.level_parts`
    at the workers of a cluster, or of what the tests have for one, which loses parts at random.
    """

    def begin_round(self, beginning: Beginning) -> None:
        """Another round begins: what was asked for before is not asked for again, but of parts that were lost."""

    def map(self, task: Task, reads: Sequence[str], control: NDArray[np.int64] | None = None) -> Iterator[Any]:
        """What a task gives for each part, in their order; what it writes is kept under its names."""

    def add(self, task: Task, reads: Sequence[str], control: NDArray[np.int64] | None = None) -> Any:
        """The sum of what a task gives for all parts."""

    def change(self, name: str, pieces: Iterable[tuple[int, Callable[[NDArray[Any]], None]]]) -> None:
        """Have an array of so many rows changed in place, then that of the next, whatever parts they are in."""


class FoldingEngine(Engine, Protocol):
    """One that can add parts to sums of its own, where these are too large to be made for each part."""

    def fold(self, task: FoldTask, reads: Sequence[str], control: NDArray[np.int64] | None = None) -> Any:
        """The sum of all parts."""


class Adding:
    """A task whose sums are tuples of numbers and arrays that add up one by one."""

    def join(self, a: Any, b: Any) -> Any:
        """See `Task.join`."""
        return add_fields(a, b)


def add_fields(a: Any, b: Any) -> Any:
    """Two tuples of numbers and arrays, added field by field: arrays into those of the first."""
    return type(a)(*(add_to(mine, others) for mine, others in zip(a, b, strict=True)))


def add_to(mine: Any, others: Any) -> Any:
    """A sum, in the place of the first where that is an array."""
    mine += others
    return mine


class LevelSums(NamedTuple):
    """What a level adds up."""

    counts: NDArray[np.int64]  # (n_nodes,) rows of the nodes that it makes
    squares: NDArray[np.int64]  # (n_nodes,) or (0,) of their gradients, see `kernels.boost.category_chance`
    histogram: NDArray[np.int64]  # of the summed nodes, end to end


@dataclass(frozen=True)
class LevelTask(Adding):
    """Send the rows of a part to the children of their nodes, and sum one child of each."""

    kernels: Any
    table: BoostTable
    tests: LevelTests
    n_summed: int
    weigh: Callable[[Part], NDArray[np.int64]] | None  # weights of rows in units, where squares are asked for
    weight_shift: int = 0

    def __call__(self, part: Part) -> tuple[Kept, LevelSums]:
        """Do so."""
        levels, rows, place_of = self.kernels.boost.levels, part.rows(), self.tests.place_of
        name = name_nodes(len(place_of))
        node = part.narrow_node if name == BYTE_NODE else part.node
        moved = np.empty_like(node)
        sums = LevelSums(
            np.zeros(len(place_of), SUM),
            np.zeros(len(place_of) if self.weigh is not None else 0, SUM),
            np.zeros(self.n_summed * self.table.histogram_size, SUM),
        )
        scratch = make_pass_scratch(self.table, self.n_summed)
        levels.split_rows(rows, node, self.tests, self.table, scratch, moved, sums.counts, sums.histogram)
        if self.weigh is not None:
            levels.sum_node_squares(rows.sums, moved, self.weigh(part), self.weight_shift, sums.squares)
        return {name: moved}, sums


def name_nodes(n_nodes: int) -> str:
    """The array that the nodes of rows are kept in, while there are so many."""
    return BYTE_NODE if n_nodes <= MOST_BYTES else NODE


class CountSums(NamedTuple):
    """Rows by code of some nodes, and their weights; (1,) where weights are not asked for."""

    rows: NDArray[np.int64]
    weights: NDArray[np.int64]


@dataclass(frozen=True)
class CountTask(Adding):
    """Count the rows of some nodes by code, and their weights."""

    kernels: Any
    table: BoostTable
    place_of: NDArray[np.int64]
    n_counted: int
    weigh: Callable[[Part], NDArray[np.int64]] | None

    def __call__(self, part: Part) -> tuple[Kept, CountSums]:
        """Do so."""
        size = self.n_counted * self.table.histogram_size
        sums = CountSums(np.zeros(size, SUM), np.zeros(size if self.weigh is not None else 1, SUM))
        is_in = (part.arrays[SUMS] != 0).astype(SUM)
        scratch = make_pass_scratch(self.table, self.n_counted)
        found = [(is_in, sums.rows)]
        if self.weigh is not None:
            found.append((is_in * self.weigh(part)[: part.n_rows], sums.weights))
        for addends, histogram in found:
            rows = part.rows(addends)
            self.kernels.boost.levels.sum_nodes(rows, part.node, self.place_of, self.table, scratch, histogram)
        return {}, sums


def make_pass_scratch(table: BoostTable, n_histograms: int) -> PassScratch:
    """What the rows of a part are summed with."""
    words = np.empty(ROWS_AT_ONCE * table.n_words, np.uint64)
    buffer = ByteRows(words.view(np.uint8), words, np.empty(ROWS_AT_ONCE, SUM), np.zeros(1, ROW))
    return PassScratch(np.empty(ROWS_AT_ONCE, np.int32), np.empty(n_histograms + 2, SUM), buffer)


# --- The tree -------------------------------------------------------------------------------------------------


class RootSums(NamedTuple):
    """What is known of the rows of a tree before it is grown."""

    n_rows: int
    total: int  # packed sum
    histogram: NDArray[np.int64]
    squares: int


class LevelGrowth(BoostMemory):
    """Memory for boosted trees whose rows are elsewhere, one tree at a time; it does not depend on how many there are.

    After `grow`, `nodes` hold the tree, and `target` the leaf of it that the rows of each node as grown are in; `node`
    names the array of a part that tells the node as grown, if there is more than one.

    Parameters
    ----------
    bins : Bins
        Without rows.
    params : BoostParams
        With a limit of leaves, or of depth.
    weights : Weights
        Of which the values may be left out: one of them where all are alike, else two.
    n_rows : int
    kernels : kernel modules
    engine : Engine
    weigh : callable
        Weights of the rows of a part, in units; None where all are alike.
    monotone, interactions
        As of `BoostMemory`.
    """

    def __init__(
        self,
        bins: Bins,
        params: BoostParams,
        weights: Weights,
        n_rows: int,
        kernels: Any,
        engine: Engine,
        weigh: Callable[[Part], NDArray[np.int64]] | None = None,
        monotone: NDArray[np.int8] | None = None,
        interactions: Sequence[Sequence[int]] | None = None,
    ) -> None:
        super().__init__(bins, params, weights, n_rows, kernels, 1, monotone, interactions, keeps_all=True)
        self.engine, self.weigh = engine, weigh
        self.needs_squares = params.cat_penalty != 0.0 and self.most_words > 0
        self.allocate_slots(count_slots(params, n_rows))
        self.allocate_nodes(2 * self.n_slots, 1, 0)
        n_codes = max(int(bins.features[N_CODES].max(initial=1)), NARROW_CODES - 1)
        self.scratch = make_boost_scratch(n_codes, len(bins.place))
        self.no_rows = ByteRows(np.zeros(8, np.uint8), np.zeros(1, np.uint64), np.zeros(1, SUM), np.zeros(1, ROW))
        self.target = np.zeros(1, np.int64)

    def grow(self, root: RootSums, settings: BoostSettings, control: NDArray[np.int64]) -> int:
        """Grow a tree on the packed sums of the parts; return its number of nodes."""
        self.begin(root, settings)
        while control[CONTROL_STOP] == 0:
            order, wanted = self.replay(settings)
            if not wanted:
                return self.close(order)
            self.drop_losers(wanted)
            likely = [number for number in wanted if self.gain_of[number] >= LIKELY_SHARE * settings.likely_gain]
            self.split(likely or wanted, settings, control)
        raise KeyboardInterrupt

    def begin(self, root: RootSums, settings: BoostSettings) -> None:
        """Open the root."""
        state, nodes, frontier = self.state, self.nodes, self.frontier
        state[:] = 0
        state[N_NODES] = state[N_LEAVES] = 1
        frontier.free[:] = np.arange(self.n_slots)[::-1]
        state[N_FREE] = self.n_slots - 1  # slot 0, the last of these, is the root's
        frontier.allowed_sets[0] = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
        nodes.test[0] = nodes.first_child[0] = nodes.side[0] = 0
        nodes.cut_value[0] = nodes.gain[0] = 0.0
        nodes.lower[0], nodes.upper[0] = -np.inf, np.inf
        self.node: list[str] = []
        self.slot_of: dict[int, int] = {}  # open nodes by number, that have a test and no children yet
        self.gain_of: dict[int, float] = {}  # of all nodes that have a test
        self.child_of: dict[int, int] = {}  # first child of nodes that were split
        self.words_of: dict[int, NDArray[np.uint64]] = {}  # levels of branch 0, where that is a test
        self.squares = np.array([root.squares], SUM)
        frontier.histogram[: len(root.histogram)] = root.histogram
        if self.kernels.boost.levels.begin_root(root.n_rows, root.total, self.table, nodes, frontier, settings):
            self.search([0], settings, None)

    def replay(self, settings: BoostSettings) -> tuple[list[int], list[int]]:
        """The nodes to be split, in their order, if those without children get none; and which these are."""
        is_best_first = settings.order == BEST_FIRST
        queue = [(-self.gain_of[0], 0, 0)] if 0 in self.gain_of else []  # gain, number in the finished tree, number
        order: list[int] = []
        wanted: list[int] = []
        while queue and len(order) + 1 < settings.max_leaves:
            number = (heapq.heappop(queue) if is_best_first else queue.pop())[2]
            order.append(number)
            child = self.child_of.get(number)
            if child is None:
                wanted.append(number)
                continue
            for b in (0, 1):
                if child + b in self.gain_of:
                    entry = (-self.gain_of[child + b], 2 * len(order) - 1 + b, child + b)
                    if is_best_first:
                        heapq.heappush(queue, entry)
                    else:
                        queue.append(entry)
        return order, wanted

    def drop_losers(self, wanted: list[int]) -> None:
        """Free the slots of open nodes that will not be split: more candidates would only put them further behind."""
        for number in set(self.slot_of) - set(wanted):
            self.free_slot(self.slot_of.pop(number))

    def free_slot(self, slot: int) -> None:
        """Give a slot back."""
        self.frontier.free[self.state[N_FREE]] = slot
        self.state[N_FREE] += 1

    def split(self, wanted: list[int], settings: BoostSettings, control: NDArray[np.int64]) -> None:
        """Split some open nodes by one pass over the parts."""
        kernels, frontier, table = self.kernels.boost.levels, self.frontier, self.table
        n_after = int(self.state[N_NODES]) + 2 * len(wanted)
        while n_after > len(self.nodes.test):
            self.double_nodes()
        nodes = self.nodes
        slots = [self.slot_of.pop(number) for number in wanted]
        features = frontier.feature[slots]
        widths = np.where(table.is_wide[features], table.features[N_CODES, features] + 1, NARROW_CODES)
        goes_left = [np.zeros(int(width), np.uint8) for width in widths]
        place_of = np.full(n_after, -1, np.int64)
        small, n_summed = [], 0
        for k, (number, slot) in enumerate(zip(wanted, slots, strict=True)):
            branch = int(kernels.begin_split(slot, table, nodes, frontier, settings, goes_left[k]))
            child = int(frontier.first_child[slot])
            self.child_of[number] = child
            if frontier.kind[slot] == SUBSET:
                n_words = (int(table.features[N_CODES, features[k]]) + 63) >> 6
                self.words_of[number] = frontier.subsets[slot, :n_words].copy()
            small.append(branch)
            if not frontier.is_last[slot]:
                place_of[child + branch] = n_summed
                n_summed += 1
        tests = self.pack_tests(wanted, features, frontier.first_child[slots], goes_left, place_of)
        task = LevelTask(self.kernels, table, tests, n_summed, self.square_weights, self.weight_shift)
        weight = [WEIGHT] if self.weigh is not None and self.needs_squares else []
        sums: LevelSums = self.engine.add(task, [CODES, SUMS, *self.node, *weight], control)
        self.node = [name_nodes(n_after)]
        self.open_children(slots, small, place_of, sums, settings, control)

    def pack_tests(
        self,
        wanted: list[int],
        features: NDArray[np.int64],
        first_child: NDArray[np.int64],
        goes_left: list[NDArray[np.uint8]],
        place_of: NDArray[np.int64],
    ) -> LevelTests:
        """The tests of some nodes as rows are sent on by; the other nodes lead to themselves."""
        levels, table, n_before = self.kernels.boost.levels, self.table, len(place_of) - 2 * len(wanted)
        goes_to = 2 * np.arange(len(place_of), dtype=np.int32) + (place_of >= 0)
        to = [
            np.where(left, goes_to[child], goes_to[child + 1])
            for left, child in zip(goes_left, first_child, strict=True)
        ]
        ends = n_before + np.cumsum([len(each) for each in to])
        test = np.arange(n_before, dtype=np.uint64)
        for number, feature, start in zip(wanted, features, [n_before, *ends[:-1]], strict=True):
            width = levels.IS_WIDE if table.is_wide[feature] else np.uint64(0)
            place = np.uint64(table.place[feature]) << levels.PLACE_SHIFT
            test[number] = np.uint64(start) | place | width | np.uint64(1) << levels.HAS_TEST_SHIFT
        return LevelTests(test, np.concatenate([goes_to[:n_before], *to], dtype=np.int32), place_of, table.n_words)

    @property
    def square_weights(self) -> Callable[[Part], NDArray[np.int64]] | None:
        """Weights that squared gradients are divided by; None: squares are not asked for."""
        return (self.weigh or weigh_alike) if self.needs_squares else None

    def open_children(
        self,
        slots: list[int],
        small: list[int],
        place_of: NDArray[np.int64],
        sums: LevelSums,
        settings: BoostSettings,
        control: NDArray[np.int64],
    ) -> None:
        """Open the children of nodes whose rows were counted and summed."""
        frontier, nodes, size = self.frontier, self.nodes, self.table.histogram_size
        self.squares = sums.squares
        children = []
        for slot, branch in zip(slots, small, strict=True):
            child = int(frontier.first_child[slot])
            both = [int(frontier.left_slot[slot]), int(frontier.right_slot[slot])]
            nodes.n_rows[child : child + 2] = sums.counts[child : child + 2]
            k = int(place_of[child + branch])
            if k >= 0:
                at = both[branch] * size
                frontier.histogram[at : at + size] = sums.histogram[k * size : (k + 1) * size]
            self.kernels.boost.levels.end_split(slot, branch, self.table, nodes, frontier, settings)
            self.free_slot(slot)
            children += [at for at in both if frontier.is_open[at]]
            for at in both:
                if not frontier.is_open[at]:
                    self.free_slot(at)
        self.search(children, settings, control)

    def search(self, slots: list[int], settings: BoostSettings, control: NDArray[np.int64] | None) -> None:
        """Find the best tests of open nodes; a pass of its own counts rows where a branch may be too small."""
        levels = self.kernels.boost.levels
        none = np.zeros(1, SUM)
        unsure = []
        for slot in slots:
            found = self.find_test(slot, NodeCounts(False, none, none, self.squares_of(slot)), settings)
            if found == levels.NEEDS_COUNTS:
                unsure.append(slot)
        if not unsure:
            return
        place_of = np.full(int(self.state[N_NODES]), -1, np.int64)
        place_of[self.frontier.number[unsure]] = np.arange(len(unsure))
        has_weights = settings.min_weight_leaf > 0
        weigh = (self.weigh or weigh_alike) if has_weights else None
        task = CountTask(self.kernels, self.table, place_of, len(unsure), weigh)
        reads = [CODES, SUMS, *self.node, *([WEIGHT] if has_weights and self.weigh else [])]
        counted: CountSums = self.engine.add(task, reads, control)
        size = self.table.histogram_size
        for k, slot in enumerate(unsure):
            mine = slice(k * size, (k + 1) * size)
            rows, weights = counted.rows[mine], counted.weights[mine] if has_weights else none
            for counts in (rows, weights) if has_weights else (rows,):
                self.spread(counts)
            self.find_test(slot, NodeCounts(True, rows, weights, self.squares_of(slot)), settings)

    def spread(self, counts: NDArray[np.int64]) -> None:
        """Write the counts of features that share a byte from those of the byte, whose codes every row has one of."""
        table = self.table
        if len(table.bundled):
            first = int(table.place[table.bundled[0]]) * HISTOGRAM_STRIDE
            total = int(counts[first : first + NARROW_CODES].sum())
            self.kernels.boost.levels.spread(counts, total, table)

    def squares_of(self, slot: int) -> int:
        """Sum of squared gradients of the node of a slot, where it is asked for."""
        return int(self.squares[self.frontier.number[slot]]) if self.needs_squares else 0

    def find_test(self, slot: int, counts: NodeCounts, settings: BoostSettings) -> int:
        """Search one node: what came out, which is noted unless rows must be counted first."""
        levels = self.kernels.boost.levels
        found = levels.find_test(
            slot, counts, self.table, self.no_rows, self.nodes, self.frontier, self.scratch, settings
        )
        number = int(self.frontier.number[slot])
        if found == levels.FOUND:
            self.slot_of[number] = slot
            self.gain_of[number] = float(self.frontier.gain[slot])
        elif found == levels.NO_TEST:
            self.free_slot(slot)
        return int(found)

    def close(self, order: list[int]) -> int:
        """Number the nodes in the order of the splits, drop those of no use, prune if wanted; how many are left."""
        state, nodes = self.state, self.nodes
        n_grown = int(state[N_NODES])
        parent = np.zeros(n_grown, np.int64)
        for number, child in self.child_of.items():
            parent[child : child + 2] = number
        won = set(order)
        for number in self.child_of:
            if number not in won:
                nodes.test[number] = nodes.first_child[number] = 0
                nodes.gain[number] = 0.0
        words: list[NDArray[np.uint64]] = []
        n_words = 0
        for number in order:
            nodes.first_word[number] = n_words
            if number in self.words_of:
                nodes.cut_value[number] = float(n_words)
                words.append(self.words_of[number])
                n_words += len(words[-1])
        nodes = self.nodes = nodes._replace(subsets=np.concatenate([np.zeros(0, np.uint64), *words]))
        state[N_WORDS], state[N_SPLITS], state[N_LEAVES] = n_words, len(order), len(order) + 1
        nodes.split_order[: len(order)] = order
        self.last_gain = float(nodes.gain[order[-1]]) if order else 0.0
        new = np.full(n_grown, -1, np.int64)
        new[0] = 0
        for k, number in enumerate(order):
            child = self.child_of[number]
            new[child], new[child + 1] = 2 * k + 1, 2 * k + 2
        for number in range(1, n_grown):  # rows of a node that was dropped are in the leaf above it
            if new[number] < 0:
                new[number] = new[parent[number]]
        self.number_anew()
        n_left = int(state[N_NODES])
        links = LeafLinks(*np.empty((4, n_left), np.int64))
        n_nodes = self.kernels.boost.leaf_values.close_tree(self.nodes, n_left, self.params.pruning == "post", links)
        self.target = links.target[new]
        return int(n_nodes)


def weigh_alike(part: Part) -> NDArray[np.int64]:
    """Weights of rows that all weigh the same."""
    del part
    return np.ones(1, SUM)


def count_slots(params: BoostParams, n_rows: int) -> int:
    """Open nodes that there must be room for: those that may be split next, and the children of these."""
    limits = [n_rows]
    if params.max_leaf_nodes is not None:
        limits.append(params.max_leaf_nodes)
    if params.max_depth is not None:
        limits.append(2 ** min(params.max_depth - 1, 30))
    return 3 * max(min(limits), 2)
