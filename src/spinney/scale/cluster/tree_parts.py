"""Trees on bags of rows that are spread over workers: what `ensemble.forest_levels` asks an engine for.

    over the top:  parts ──work──► sums by feature and code, added up by eights ──► client: tests
    tree by tree:  parts ──gather_nodes──► rows by node ──pick_rows──► grow_nodes ──► pieces of the tree ──► client

Rows below the top go from the workers that have them to those that finish a node, and never to the client. Parts keep
nothing between tasks, so that one that was lost is made again and no more. What all tasks share, bags by rows and the
values behind codes, is a value of its own that workers hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._types import CONTROL_SIZE
from spinney.ensemble.forest_levels import GatheredTree, GatherTask, LevelForest, LevelTree, grow_on_rows
from spinney.ensemble.part_bags import BagPart
from spinney.scale.cluster.level_parts import LevelParts, Order, PlacedRows, do_each, name_task, unpack, work_on
from spinney.scale.cluster.workers import count_threads
from spinney.tree.levels import CODES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from spinney.ensemble.forest import Grown, Plan
    from spinney.ensemble.part_bags import BagUnits
    from spinney.scale.cluster.engine import Held
    from spinney.tree.levels import Part
    from spinney.tree.top_levels import Piece, TopGrowth, TopNode

TURNS = 2  # bundles of nodes for each thread: the last ones of a tree then end at about the same time


# --- At a worker ----------------------------------------------------------------------------------------------


class PlacedTrees(PlacedRows):
    """The rows of a part, on whose bags trees grow: codes of 16 bits, targets and weights, which never change.

    known: what tasks share, see `list_known`.
    """

    known: Sequence[Any] = ()

    def __sizeof__(self) -> int:
        """Bytes, without what other parts have too."""
        return sum(array.nbytes for block in self.blocks for array in block.values())

    def unpack(self, content: bytes) -> Any:
        """A task for this part."""
        return unpack(content, self.known)

    def work(self, order: Order) -> Any:
        """What a task gives for the part."""
        task, reads = self.unpack(order.step)
        blocks = list(self.parts([{}] * len(self.blocks), reads))
        if not hasattr(task, "start"):
            return self.do([{}] * len(self.blocks), task, reads)[1]
        n_threads = max(min(count_threads(), len(blocks)), 1)

        def fold(share: list[Part]) -> Any:
            sums = task.start()
            for block in share:
                task(block, sums)
            return sums

        total = None
        for sums in do_each(fold, [blocks[k::n_threads] for k in range(n_threads)]):
            total = sums if total is None else task.join(total, sums)
        return total


def list_known(plan: Plan) -> list[Any]:
    """What tasks share that may be large: bags by rows, and the values behind codes."""
    return [plan.draw, plan.has_weight, plan.codes.edges]


class NodeRows(NamedTuple):
    """Rows of some nodes of a tree, from one part: those of one side by side."""

    codes: NDArray[np.uint16]
    bag: BagPart
    ends: list[int]  # where each node ends

    def take(self, lo: int, hi: int) -> tuple[NDArray[np.uint16], BagPart]:
        """Rows lo .. hi."""
        return self.codes[lo:hi], self.bag.pick(slice(lo, hi))


class GatheredRows(NamedTuple):
    """Rows of the nodes of a tree, from the blocks of one part."""

    blocks: list[NodeRows]

    def __sizeof__(self) -> int:
        """Bytes."""
        return sum(one.codes.nbytes + sum(each.nbytes for each in one.bag if each is not None) for one in self.blocks)


def gather_nodes(placed: PlacedTrees, step: bytes) -> GatheredRows:
    """The rows of nodes of a tree, from a part."""
    task, reads = placed.unpack(step)
    blocks = list(placed.parts([{}] * len(placed.blocks), reads))
    return GatheredRows([NodeRows(*kept_and_found[1][0]) for kept_and_found in do_each(task, blocks)])


def pick_rows(gathered: GatheredRows, first: int, last: int) -> GatheredRows:
    """Those of nodes first .. last of the list: what goes to another worker."""
    found = []
    for codes, bag, ends in gathered.blocks:
        edges = [0, *ends]
        lo, hi = edges[first], edges[last]
        mine = NodeRows(codes, bag, []).take(lo, hi)
        found.append(NodeRows(mine[0].copy(), mine[1], [end - lo for end in ends[first:last]]))
    return GatheredRows(found)


def grow_nodes(given: list[Any]) -> list[Piece]:
    """What is below some nodes of a tree; given: what tasks share, rows from all parts in their order, what to do."""
    known, gathered, content = given
    plan, bags, units, nodes, kernels = unpack(content, known)
    blocks = [(block, [0, *block.ends]) for one in gathered for block in one.blocks]

    def grow(k: int) -> Piece:
        pieces = [block.take(edges[k], edges[k + 1]) for block, edges in blocks]
        codes = np.concatenate([codes for codes, _ in pieces])
        bag = join_bags([bag for _, bag in pieces])
        return grow_on_rows(plan, bags, units, nodes[k], codes, bag, kernels, np.zeros(CONTROL_SIZE, np.int64))

    return [grow(k) for k in range(len(nodes))]


def join_bags(bags: list[BagPart]) -> BagPart:
    """The rows of several, numbered anew."""
    counts = np.concatenate([bag.counts for bag in bags])
    truth = np.concatenate([bag.truth for bag in bags])
    weights = [bag.weight for bag in bags if bag.weight is not None]
    weight = np.concatenate(weights) if weights else None
    return BagPart(np.arange(len(counts), dtype=np.int32), counts, truth, weight)


# --- At the client --------------------------------------------------------------------------------------------


class TreeParts(LevelParts):
    """Tasks on the parts of a table that the workers of a cluster have: `tree.levels.FoldingEngine`.

    Parameters
    ----------
    engine : Engine
    parts : list of Held
        Of `PlacedTrees`, in the order of the rows.
    known : list
        See `list_known`.
    shared : Held
        The same, at the workers.
    """

    def __init__(self, engine: Any, parts: list[Held], known: list[Any], shared: Held) -> None:
        super().__init__(engine, parts, np.zeros(0), known)
        self.shared = shared

    def order(self, k: int, step: bytes, *, is_look: bool = False) -> Order:
        """What part k is told: it keeps nothing, and so has nothing to begin with."""
        del k
        return Order(0, step, is_look)

    def add(self, task: Any, reads: Sequence[str], control: NDArray[np.int64] | None = None) -> Any:
        """The sum of what a task gives for all parts."""
        total = super().add(task, reads, control)
        self.steps.clear()
        return total

    fold = add

    def map(self, task: Any, reads: Sequence[str], control: NDArray[np.int64] | None = None) -> Iterator[Any]:
        """What a task gives for each part, in their order."""
        del control
        step = self.pack(task, reads)
        jobs = [[part, self.order(k, step)] for k, part in enumerate(self.parts)]
        place = {id(job): k for k, job in enumerate(jobs)}
        come, n_taken = {}, 0
        for job, found in self.engine.map(name_task(task), work_on, jobs):
            self.note(found)
            come[place[id(job)]] = found.total
            while n_taken in come:
                yield come.pop(n_taken)
                n_taken += 1


class SpreadPieces(LevelForest):
    """A forest whose subtrees are finished by workers; `engine` is a `TreeParts`."""

    engine: TreeParts
    n_grown = 0  # trees

    def add(self, grown: Grown) -> None:
        """Take a tree."""
        super().add(grown)
        self.n_grown += 1

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
        """What is below some nodes of each top, tree by tree."""
        del n_workers, is_short, verbose
        for one, top, mine in zip(units, tops, nodes, strict=True):
            yield self.grow_tree(one, top, mine, kernels)

    def grow_tree(self, units: BagUnits, top: TopGrowth, nodes: list[int], kernels: Any) -> dict[int, Piece]:
        """What is below some nodes of a tree: bundles of them by a worker each."""
        spread, engine = self.engine, self.engine.engine
        task = GatherTask(self.bags, kernels, [GatheredTree(units.tree, top.tests(), nodes)])
        step = spread.pack(task, [CODES, *self.bags.reads])
        gathered = [engine.hold("gather", gather_nodes, part, step) for part in spread.parts]
        jobs, held = [], []
        bundles = self.bundle([top.top[k] for k in nodes])
        for first, last in bundles:
            picked = [engine.hold("pick", pick_rows, one, first, last) for one in gathered]
            what = self.plan, self.bags, units, [top.top[k] for k in nodes[first:last]], kernels
            jobs.append([spread.shared, picked, spread.pack_value(what)])
            held.append(picked)
        place = {id(job): k for k, job in enumerate(jobs)}
        found: dict[int, Piece] = {}
        try:
            for job, pieces in engine.map("tree", grow_nodes, jobs):
                k = place[id(job)]
                found.update(zip(nodes[slice(*bundles[k])], pieces, strict=True))
                engine.forget(held[k])
        finally:
            engine.forget([*(one for of in held for one in of), *gathered])
        return found

    def bundle(self, nodes: list[TopNode]) -> list[tuple[int, int]]:
        """Nodes that follow each other and are finished by one task, as first and last: of about as many rows each."""
        n_rows = sum(node.n_rows for node in nodes)
        most = min(self.budget.most_rows, -(-n_rows // (TURNS * self.engine.engine.count_threads())))
        found, first, held = [], 0, 0
        for k, node in enumerate(nodes):
            if k > first and held + node.n_rows > most:
                found.append((first, k))
                first, held = k, 0
            held += node.n_rows
        return [*found, (first, len(nodes))] if nodes else []


class SpreadForest(SpreadPieces):
    """A forest on rows that are spread over workers."""


class SpreadTree(SpreadPieces, LevelTree):
    """One tree on all rows, which are spread over workers."""
