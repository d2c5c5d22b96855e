"""The rows of a part of a table that are in the bag of a tree, and what they add up to.

What a bag has in all, which the units of its sums follow from, is found by a pass over the parts. Tasks are pure
functions of a part, see `tree.levels`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._types import MOMENTS, ROW, SUM, SUM_BITS
from spinney.kernels.common.structs import Targets
from spinney.table.fixed_point import BAG_ROOM, MARGIN, WHOLE_LIMIT, Weights, quantise
from spinney.table.row_sums import sum_products
from spinney.tree.levels import WEIGHT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.ensemble.sampling import Draw
    from spinney.kernels.common.structs import ValueUnits
    from spinney.table.fixed_point import Target
    from spinney.tree.levels import Kept, Part

    Ints = NDArray[np.int64]

TRUTH = "truth"  # array of a part: class, or target in units of 2**exponent


@dataclass(frozen=True)
class PartBags:
    """Which rows of a part are in the bag of a tree, and what they add to sums.

    Parameters
    ----------
    draw : Draw
    target : Target
        Of all rows, without values, with room for counts.
    weights : Weights
        The same; whole numbers.
    room : int
        Bits that are free for counts.
    """

    draw: Draw
    target: Target
    weights: Weights
    room: int = BAG_ROOM

    @property
    def reads(self) -> list[str]:
        """The arrays of a part that are needed."""
        return [TRUTH] if self.weights.is_unit else [TRUTH, WEIGHT]

    def take(self, part: Part, tree: int) -> BagPart:
        """The rows of a part in the bag of a tree."""
        counts = self.draw.counts(tree, part.first, part.first + part.n_rows)
        rows = np.flatnonzero(counts).astype(np.int32)
        weight = None if self.weights.is_unit else part.arrays[WEIGHT][rows]
        return BagPart(rows, counts[rows], part.arrays[TRUTH][rows], weight)

    def values(self, bag: BagPart, n_excess: int = 0) -> Ints:
        """Targets of rows in fixed point, each once; of numbers. n_excess: bits that a bag leaves out."""
        target = self.target
        centred = np.ldexp(bag.truth - target.centre, -target.spread_exponent)
        values = quantise(centred, target.bits + self.room)
        if bag.weight is not None:
            values = values * bag.weight
        narrow: Ints = values >> self.room >> n_excess
        return narrow

    def addends(self, bag: BagPart, units: BagUnits) -> Ints:
        """What rows add to sums, (1 or 2, n_rows)."""
        times = bag.times
        if self.target.n_classes == 0:
            first = self.values(bag, units.n_excess) * bag.counts
        elif self.target.family == MOMENTS:
            first = bag.truth.astype(SUM) * times
        else:
            first = bag.truth.astype(SUM)
        return first.reshape(1, -1) if units.weights.is_unit else np.stack([first, times])


class BagPart(NamedTuple):
    """Rows of a part that are in a bag."""

    rows: NDArray[np.int32]
    counts: NDArray[np.int32]
    truth: NDArray[np.float64]
    weight: Ints | None  # None: 1 each
    values: Ints | None = None  # weighted targets in fixed point, where a bag does not make them of the rest

    @property
    def times(self) -> Ints:
        """What each row weighs in the bag."""
        times: Ints = self.counts.astype(SUM)
        return times if self.weight is None else times * self.weight

    def pick(self, order: Any) -> BagPart:
        """Some of the rows, in an order."""
        return BagPart(*(None if each is None else each[order] for each in self))  # type: ignore[arg-type]


class BagUnits(NamedTuple):
    """What is known of the bag of a tree before it is grown."""

    tree: int
    n_rows: int
    weights: Weights  # without values
    n_excess: int
    totals: Ints  # of the root, see `TopNode`
    scale: float  # see `StatUnits`; 0 for classes


class BagSums(NamedTuple):
    """What the rows of a bag add up to, tree by tree."""

    n_rows: list[int]
    most: list[int]  # largest count
    counts: list[int]  # sum of counts
    weight: list[int]  # sum of counts * weights
    spread: list[int]  # sum of counts**2 * weights
    products: list[int]  # sum of counts * |values|
    classes: list[Ints]  # weights of classes


@dataclass(frozen=True)
class BagTask:
    """Sum up the bags of some trees."""

    bags: PartBags
    trees: range

    def __call__(self, part: Part) -> tuple[Kept, BagSums]:
        """Do so."""
        sums = BagSums([], [], [], [], [], [], [])
        n_classes = self.bags.target.n_classes
        for tree in self.trees:
            bag = self.bags.take(part, tree)
            counts, times = bag.counts.astype(SUM), bag.times
            sums.n_rows.append(len(bag.rows))
            sums.most.append(int(counts.max(initial=0)))
            sums.counts.append(int(counts.sum()))
            sums.weight.append(int(times.sum()))
            sums.spread.append(int((times * counts).sum()))
            sums.products.append(0 if n_classes else sum_products(self.bags.values(bag), counts))
            held = np.zeros(max(n_classes, 1), SUM)
            np.add.at(held, bag.truth.astype(np.int64) if n_classes else np.zeros(len(times), np.int64), times)
            sums.classes.append(held)
        return {}, sums

    def join(self, a: BagSums, b: BagSums) -> BagSums:
        """See `tree.levels.Task.join`."""
        pairs: Any = zip(a, b, strict=True)
        joined = [[x + y for x, y in zip(mine, others, strict=True)] for mine, others in pairs]
        return BagSums(*joined)._replace(most=[max(pair) for pair in zip(a.most, b.most, strict=True)])


def read_units(sums: BagSums, k: int, tree: int, bags: PartBags) -> BagUnits:
    """The units of a bag, as `table.fixed_point.bag_target` finds them; k: its place among the sums."""
    weights, target, n_excess = bags.weights, bags.target, 0
    n_rows = sums.n_rows[k]
    if weights.is_unit and sums.most[k] == 1:
        found = weights._replace(total=n_rows)
    else:
        total = sums.weight[k]
        row_weight = sums.spread[k] / total
        if target.n_classes == 0:
            n_excess = max(math.frexp(sums.products[k] * MARGIN)[1] - SUM_BITS, 0)
        is_whole = total < WHOLE_LIMIT
        found = weights._replace(is_unit=False, is_whole=is_whole, total=total, row_weight=row_weight)
    totals = sums.classes[k]
    if target.n_classes and target.family == MOMENTS:
        totals = np.array([totals.sum(), totals[1:].sum()], SUM)
    elif not target.n_classes:
        totals = np.zeros(2, SUM)
    return BagUnits(tree, n_rows, found, n_excess, totals, 0.0)


@dataclass(frozen=True)
class RootTask:
    """Sum up the targets of the bags of some trees, and their magnitudes; numbers only."""

    bags: PartBags
    kernels: Any
    units: list[BagUnits]
    values: list[ValueUnits]

    def __call__(self, part: Part) -> tuple[Kept, list[Ints]]:
        """Do so."""
        found = []
        for units, values in zip(self.units, self.values, strict=True):
            bag = self.bags.take(part, units.tree)
            addends = self.bags.addends(bag, units)
            size = sum_magnitudes(self.kernels, bag, addends, values)
            found.append(np.array([int(bag.times.sum()), int(addends[0].sum()), size], SUM))
        return {}, found

    def join(self, a: list[Ints], b: list[Ints]) -> list[Ints]:
        """See `tree.levels.Task.join`."""
        return [x + y for x, y in zip(a, b, strict=True)]


def sum_magnitudes(kernels: Any, bag: BagPart, addends: Ints, values: ValueUnits) -> int:
    """Sum of the magnitudes of targets in the units that say how fine the next sums may be."""
    targets = Targets(addends, np.arange(len(bag.rows), dtype=ROW), bag.truth)
    sums = kernels.tree.levels.sum_part_targets
    return int(sums(targets, 0, len(bag.rows), values, values.rough_scale, True))
