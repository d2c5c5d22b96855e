"""Gradient boosting on rows that come in parts: what `ensemble.boosting` does, without holding any.

    raw, y ─► PackTask: packed sums, sums of the root ─► tree (tree.levels) ─► LeafTask: true g, h by leaf
     ▲                                                                              │
     └──────────── ScoreTask: + learning rate x value of the row's leaf ◄───────────┘
                   ─► loss of the rows, sizes of the next derivatives

Derivatives are made again where they are needed, which costs less than to keep them. Every sum is of whole numbers or
by blocks of rows, so that the trees are those of rows in memory, to the bit, and parts may have any number of rows that
is a multiple of the blocks'.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._types import SUM
from spinney.ensemble.best_constant import mean_loss
from spinney.ensemble.boosted_rows import OutsideRows
from spinney.ensemble.boosting import BoostedTrees, Constraints
from spinney.ensemble.huber_levels import clipped_means, set_delta
from spinney.ensemble.leaf_values import leaf_units
from spinney.ensemble.losses import Huber, RoundRows, Softmax
from spinney.ensemble.oob_stopping import MOST_ROWS
from spinney.ensemble.selection import Prefixes, find_quantiles
from spinney.kernels.common.structs import Gradients, LeafSums
from spinney.table.fixed_point import fix_block
from spinney.table.row_sums import SUM_BLOCK
from spinney.tree.levels import CODES, SUMS, WEIGHT, Adding, Beginning, LevelGrowth, RootSums, add_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from spinney.ensemble.losses import Loss
    from spinney.ensemble.sampling import Draw
    from spinney.kernels.common.structs import BoostTable, PackedUnits
    from spinney.table.binning import Bins
    from spinney.table.fixed_point import Weights
    from spinney.tree.boost import BoostParams
    from spinney.tree.levels import Engine, Kept, Part
    from spinney.tree.structure import Legend

    Floats = NDArray[np.float64]

Y, RAW, CHANCES = "y", "raw", "chances"  # arrays of a part, beside those of `tree.levels`
LEAST_LENGTH = 2  # of weights: one alone stands for all rows


# --- The rows of a part ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WeightUnits:
    """Weights of rows in the fixed point of all, which have no values here."""

    weights: Weights

    def __call__(self, part: Part) -> NDArray[np.int64]:
        """The weights of the rows of a part, two of them at least."""
        return fix_block(pad(part.arrays[WEIGHT]), self.weights)


def pad(weight: Floats) -> Floats:
    """Weights of rows, two of them at least: one alone would be that of every row."""
    return weight if len(weight) >= LEAST_LENGTH else np.repeat(weight, LEAST_LENGTH)


@dataclass(frozen=True)
class RowLoss:
    """How the derivatives of rows are found, and drawn from."""

    kernels: Any
    loss: Loss
    has_weights: bool
    is_whole: bool
    bags: Draw | None

    def reads(self, k: int) -> list[str]:
        """The arrays of a part that derivatives by raw score k need."""
        scores = CHANCES if self.has_chances and k > 0 else RAW
        return [Y, scores, *([WEIGHT] if self.has_weights else [])]

    @property
    def has_chances(self) -> bool:
        """Whether probabilities are kept from class to class of a round, while scores change."""
        return isinstance(self.loss, Softmax)

    def weight_of(self, part: Part) -> Floats:
        """Weights of the rows, one for all where all are alike."""
        return pad(part.arrays[WEIGHT]) if self.has_weights else np.ones(1)

    def is_in(self, part: Part, number: int) -> NDArray[np.uint8] | None:
        """Which rows are in the bag of a round, 0 or 1; None: all."""
        if self.bags is None:
            return None
        return self.bags.counts(number, part.first, part.first + part.n_rows).astype(np.uint8)

    def derive(self, part: Part, k: int, raw: Floats | None = None) -> tuple[Gradients, Floats, Kept]:
        """Derivatives by raw score k, their sums by block, and what is kept for the next class.

        raw: scores to take in the place of those of the part.
        """
        n = part.n_rows
        gradients = Gradients(np.empty(n), np.empty(n), self.weight_of(part), self.is_whole)
        sums = np.empty((-(-n // SUM_BLOCK), 4))
        kept: Kept = {}
        chances = None
        if self.has_chances:
            chances = part.arrays[CHANCES] if k > 0 else np.empty((self.loss.n_raw, n))
            if k == 0:
                kept[CHANCES] = chances
        scores = part.arrays[RAW] if raw is None and RAW in part.arrays else raw
        rows = RoundRows(part.arrays[Y], np.empty((0, 0)) if scores is None else scores, gradients, sums, chances)
        self.loss.fill(self.kernels, rows, k, 0, n)
        return gradients, sums, kept


class Sizes(NamedTuple):
    """Sums by block of the sizes of derivatives, and of the losses of rows; blocks in any order."""

    derivatives: Floats  # (n_blocks, 4)
    losses: Floats  # (n_blocks, 2)


class Blocks:
    """A task whose sums are by block: those of all parts are put together."""

    def join(self, a: Sizes, b: Sizes) -> Sizes:
        """See `tree.levels.Task.join`."""
        return Sizes(*(np.concatenate(pair) for pair in zip(a, b, strict=True)))


@dataclass(frozen=True)
class DeriveTask(Blocks):
    """Find the sizes of the derivatives by the first raw score."""

    rows: RowLoss

    def __call__(self, part: Part) -> tuple[Kept, Sizes]:
        """Do so."""
        _, sums, kept = self.rows.derive(part, 0)
        return kept, Sizes(sums, np.empty((0, 2)))


class PackedRoot(NamedTuple):
    """The sums of all rows of a tree, and the largest hessian of a row."""

    root: RootSums
    largest: int


@dataclass(frozen=True)
class PackTask:
    """Pack the derivatives of a tree; sum those of the rows in its bag."""

    rows: RowLoss
    table: BoostTable
    k: int
    number: int  # of the round
    units: PackedUnits
    is_random: bool
    key: int
    is_flat: bool  # tests are chosen as if h were 1
    weigh: Any | None  # weights in units, where squares are asked for; see `LevelTask`
    weight_shift: int

    def __call__(self, part: Part) -> tuple[Kept, PackedRoot]:
        """Do so."""
        kernels, n = self.rows.kernels.boost, part.n_rows
        gradients, _, _ = self.rows.derive(part, self.k)
        if self.is_flat:
            gradients = gradients._replace(h=np.ones(n))
        sums = np.empty(n, SUM)
        total, largest = kernels.pack_gradients.pack_part(
            n, part.first, gradients, self.units, self.is_random, np.uint64(self.key), sums
        )
        is_in, n_in = self.rows.is_in(part, self.number), n
        if is_in is not None:
            sums[is_in == 0] = 0
            total, n_in = int(sums.sum()), int(np.count_nonzero(is_in))
        histogram = np.zeros(self.table.histogram_size, SUM)
        kernels.levels.sum_rows(part.rows(sums), n, self.table, histogram)
        squares = np.zeros(1, SUM)
        if self.weigh is not None:
            kernels.levels.sum_node_squares(sums, np.zeros(n, np.int32), self.weigh(part), self.weight_shift, squares)
        return {SUMS: sums}, PackedRoot(RootSums(n_in, int(total), histogram, int(squares[0])), int(largest))

    def join(self, a: PackedRoot, b: PackedRoot) -> PackedRoot:
        """See `tree.levels.Task.join`."""
        root = add_fields(a.root, b.root)
        return PackedRoot(root, max(a.largest, b.largest))


@dataclass(frozen=True)
class LeafTask(Adding):
    """Sum the true derivatives of the rows in the bag by their nodes; with `is_all` those of the others as well."""

    rows: RowLoss
    k: int
    number: int
    scale: PackedUnits
    n_nodes: int
    is_all: bool

    def __call__(self, part: Part) -> tuple[Kept, LeafSums]:
        """Do so."""
        gradients, _, _ = self.rows.derive(part, self.k)
        shape = (2 if self.is_all else 1, self.n_nodes)
        sums = LeafSums(np.zeros(shape, SUM), np.zeros(shape, SUM))
        is_in = self.rows.is_in(part, self.number)
        if is_in is None:
            is_in = np.ones(1, np.uint8)
        elif len(is_in) == 1:  # one alone would be that of every row
            is_in = np.repeat(is_in, LEAST_LENGTH)
        add = self.rows.kernels.boost.leaf_values.sum_leaves
        add(0, 0, part.n_rows, gradients, self.scale, part.node, is_in, sums)
        if self.is_all:
            add(1, 0, part.n_rows, gradients, self.scale, part.node, 1 - is_in, sums)
        return {}, sums


@dataclass(frozen=True)
class LeafRows:
    """The leaf of each row in the bag of a round, or of all rows; -1 for others."""

    rows: RowLoss
    number: int
    leaf: NDArray[np.int64]  # (n_nodes,) of the rows of a node as grown; -1: none has any
    is_all: bool

    def __call__(self, part: Part) -> NDArray[np.int64]:
        """Find those of a part."""
        group: NDArray[np.int64] = self.leaf[part.node]
        is_in = None if self.is_all else self.rows.is_in(part, self.number)
        if is_in is not None:
            group[is_in == 0] = -1
        return group


@dataclass(frozen=True)
class SelectTask:
    """Count the residuals of the rows in the bag, or all, by their next digits, leaf by leaf: `ensemble.selection`."""

    rows: RowLoss
    k: int
    leaves: LeafRows
    prefixes: Prefixes

    def __call__(self, part: Part) -> tuple[Kept, Floats]:
        """Do so."""
        weight = part.arrays[WEIGHT].astype(SUM) if self.rows.has_weights else None
        return {}, self.prefixes.count_rows(part.arrays[Y] - part.arrays[RAW][self.k], self.leaves(part), weight)

    def join(self, a: Floats, b: Floats) -> Floats:
        """See `tree.levels.Task.join`."""
        return a + b


@dataclass(frozen=True)
class ScoreTask(Blocks):
    """Add the values of a tree to the scores; find the sizes of the derivatives that the next tree begins with."""

    rows: RowLoss
    k: int
    values: Floats  # (n_nodes,) by node as grown
    has_loss: bool  # whether the loss of the rows is asked for

    def __call__(self, part: Part) -> tuple[Kept, Sizes]:
        """Do so."""
        rows, raw = self.rows, part.arrays[RAW].copy()
        rows.kernels.boost.leaf_values.add_values(part.node, self.values, 0, part.n_rows, raw, self.k)
        following = (self.k + 1) % rows.loss.n_raw
        _, sums, kept = rows.derive(part, following, raw)
        losses = np.empty((0, 2))
        if self.has_loss:
            losses = rows.loss.sum_blocks(part.arrays[Y], rows.weight_of(part) if rows.has_weights else None, raw)
        return {RAW: raw, **kept}, Sizes(sums, losses)


@dataclass(frozen=True)
class OutsideTask:
    """Take the first rows outside the bag of a round: target, weight and scores."""

    rows: RowLoss
    number: int

    def __call__(self, part: Part) -> tuple[Kept, tuple[Floats, Floats, Floats]]:
        """Do so."""
        outside = find_outside(self.rows, part, self.number)
        weight = part.arrays[WEIGHT][outside] if self.rows.has_weights else np.ones(len(outside))
        return {}, (part.arrays[Y][outside], weight, part.arrays[RAW][:, outside])

    def join(self, a: Any, b: Any) -> Any:
        """Those of two parts that follow each other."""
        return tuple(np.concatenate(pair, axis=-1)[..., :MOST_ROWS] for pair in zip(a, b, strict=True))

    def is_enough(self, found: Any) -> bool:
        """Whether no more parts need be looked at."""
        return len(found[0]) >= MOST_ROWS


@dataclass(frozen=True)
class OutsideNodeTask(OutsideTask):
    """Take the nodes of the first rows outside the bag of a round."""

    def __call__(self, part: Part) -> tuple[Kept, Any]:
        """Do so."""
        return {}, (part.node[find_outside(self.rows, part, self.number)],)


def find_outside(rows: RowLoss, part: Part, number: int) -> NDArray[np.int64]:
    """The first rows of a part outside the bag of a round."""
    is_in = rows.is_in(part, number)
    assert is_in is not None
    return np.flatnonzero(is_in == 0)[:MOST_ROWS]


# --- The rounds -----------------------------------------------------------------------------------------------


class LevelBoosting(BoostedTrees):
    """A boosted model under way, on rows that an engine has in parts: target, weights, scores and codes.

    Parameters
    ----------
    engine : Engine
        Its parts have "codes", "y", "raw" and, unless all weights are 1, "weight".
    bins : Bins
        What the codes stand for, without rows.
    weights : Weights
        Without values, see `fix_weight_blocks`.
    n_rows : int
    loss : Loss
        One whose leaves are Newton's steps, or, of rows of whole weights, quantiles or Huber's steps.
    params : BoostParams
    kernels : kernel modules
    constraints : Constraints
    legend : Legend, optional
    """

    def __init__(
        self,
        engine: Engine,
        bins: Bins,
        weights: Weights,
        n_rows: int,
        loss: Loss,
        params: BoostParams,
        kernels: Any,
        *,
        constraints: Constraints | None = None,
        legend: Legend | None = None,
    ) -> None:
        monotone, interactions = constraints or Constraints()
        super().__init__(bins, weights, n_rows, loss, params, kernels, monotone, legend, 0)
        self.engine = engine
        self.rows = RowLoss(kernels, loss, not weights.is_unit, bool(self.is_whole), self.bags)
        weigh = None if weights.is_unit else WeightUnits(weights)
        self.growth = LevelGrowth(bins, params, weights, n_rows, kernels, engine, weigh, monotone, interactions)
        self.sizes: Sizes | None = None  # of the derivatives of the next tree
        self.last_loss = math.nan
        self.outside: OutsideRows | None = None  # of the round; None: nobody asks

    def close(self) -> None:
        """Nothing is left to be ended here: whoever has made the engine ends it."""

    def drop_rows(self) -> None:
        """Nothing is to be let go of: the rows are the engine's."""

    def change_scores(self, pieces: Iterable[tuple[int, Callable[[Floats], None]]]) -> None:
        """Have the scores (n_raw, n) of so many rows changed, then those of the next."""
        self.engine.change(RAW, pieces)
        self.sizes = None

    def train_loss(self) -> float:
        """The mean loss of all rows by the scores so far."""
        return self.last_loss

    def grow_round(self, control: NDArray[np.int64]) -> None:
        """Grow a tree for each raw score, and add their values to the scores of the parts."""
        n_trees = self.loss.n_raw * self.n_rounds
        self.engine.begin_round(
            Beginning(lambda: self.store.forest(0, n_trees), self.n_rounds, DeriveTask(self.rows), self.rows.reads(0))
        )
        self.begin_loss(control)
        self.weaken(self.growth)
        self.outside = None if self.out_of_bag is None else self.take_outside()
        before = math.nan if self.outside is None else self.outside.loss(self.loss)
        for k in range(self.loss.n_raw):
            self.grow_tree(k, control)
        if self.out_of_bag is not None and self.outside is not None:
            self.out_of_bag.note(before, self.outside.loss(self.loss))
        self.n_rounds += 1

    def begin_loss(self, control: NDArray[np.int64]) -> None:
        """Set what the loss takes from all rows before a round, as `Loss.begin_round` does."""
        if not isinstance(self.loss, Huber):
            return
        reads, has_weights = self.rows.reads(0), self.rows.has_weights
        if set_delta(self.loss, lambda task: self.engine.add(task, reads, control), has_weights=has_weights):
            self.sizes = None  # of another delta

    def take_outside(self) -> OutsideRows:
        """The rows outside the bag that judge the round."""
        y, weight, raw = self.look(OutsideTask(self.rows, self.number), self.rows.reads(0))
        return OutsideRows(np.arange(len(y)), y, weight if self.rows.has_weights else None, np.ascontiguousarray(raw))

    def look(self, task: OutsideTask, reads: list[str]) -> Any:
        """What a task takes of the first rows outside the bag, from as many parts as have them."""
        found: Any = None
        for rows in self.engine.map(task, reads):
            found = rows if found is None else task.join(found, rows)
            if task.is_enough(found):
                break
        return found

    def grow_tree(self, k: int, control: NDArray[np.int64]) -> None:
        """Grow a tree for raw score k, and add its values to the scores."""
        engine, growth, rows = self.engine, self.growth, self.rows
        if self.sizes is None:
            self.sizes = engine.add(DeriveTask(rows), rows.reads(0), control)
        sizes = self.sizes.derivatives
        sum_g, sum_h = self.check_sums(math.fsum(sizes[:, 0]), math.fsum(sizes[:, 1]))
        seed, rounding = self.draw_keys(k)
        units = self.find_units(sum_g, sum_h)
        if not self.columns.is_whole:
            growth.use_columns(self.columns.columns(self.number_of_tree(k)))
        task = PackTask(
            rows,
            growth.table,
            k,
            self.number,
            units,
            self.rounds_randomly,
            rounding,
            self.is_flat,
            growth.square_weights,
            growth.weight_shift,
        )
        packed: PackedRoot = engine.add(task, [CODES, *rows.reads(k)], control)
        likely, n_used = self.likely_gain[k], len(growth.table.used)
        settings = growth.settings(units, packed.largest, self.min_weight, n_used, likely, seed)
        n_nodes = growth.grow(packed.root, settings, control)
        self.likely_gain[k] = growth.least_gain()
        by_node = self.settle(n_nodes, k, leaf_units(sum_g, sum_h), control)
        is_last = k == self.loss.n_raw - 1
        reads = dict.fromkeys([RAW, *rows.reads(0 if is_last else k + 1), *growth.node])
        self.sizes = engine.add(ScoreTask(rows, k, by_node, is_last), list(reads), control)
        if is_last:
            self.last_loss = mean_loss(self.sizes.losses)

    def settle(self, n_nodes: int, k: int, scale: PackedUnits, control: NDArray[np.int64]) -> Floats:
        """Keep the tree that has been grown; return the shrunken values of its leaves by node as grown."""
        engine, growth, rows, fills = self.engine, self.growth, self.rows, self.fills_leaves
        task = LeafTask(rows, k, self.number, scale, len(growth.target), fills)
        grown: LeafSums = engine.add(task, [*rows.reads(k), *growth.node], control)
        shape = (len(grown.gradient), n_nodes)
        sums = LeafSums(np.zeros(shape, SUM), np.zeros(shape, SUM))
        leaf = growth.target >= 0
        for mine, others in zip(sums, grown, strict=True):
            for shard in range(len(mine)):
                np.add.at(mine[shard], growth.target[leaf], others[shard, leaf])

        def write(*, is_all: bool) -> Floats:
            def add(task: Any) -> Any:
                return engine.add(task, [*dict.fromkeys([RAW, *rows.reads(k)]), *growth.node], control)

            given = None
            leaves = LeafRows(rows, self.number, growth.target, is_all)
            if self.loss.leaf != "newton":
                level = self.loss.quantile_levels[k]
                given = find_quantiles(lambda prefixes: add(SelectTask(rows, k, leaves, prefixes)), n_nodes, level)
            if given is not None and isinstance(self.loss, Huber):
                given += clipped_means(leaves, given, self.loss.parameter, add, has_weights=rows.has_weights)
            part = sums if is_all else LeafSums(*(each[:1] for each in sums))
            values = self.write_tree(growth, n_nodes, part, scale, given)
            return np.where(leaf, values[growth.target], 0.0)

        if self.outside is not None:  # judged by what rows of the bag say alone
            by_node = write(is_all=False)
            (node,) = self.look(OutsideNodeTask(rows, self.number), list(growth.node))
            self.outside.raw[k] += by_node[node]
        if fills or self.outside is None:
            by_node = write(is_all=fills)
        self.store_tree(growth, n_nodes)
        return by_node
