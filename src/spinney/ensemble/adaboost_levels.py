"""AdaBoost on rows that an engine has in parts: weights in files, trees by passes over the codes.

    logarithms of weights ─► largest ─► sum ─► factors ─► weights in units, targets ─► a tree, see `forest_levels`
             ▲                                                                            │
             └── alpha ◄── error ◄── losses of the rows ◄── one pass over the codes ◄─────┘

All that a round needs of all rows at once is a largest number or a sum of whole numbers: the weights, and with them
the trees, are those of rows in memory. Tasks are pure functions of a part, see `tree.levels`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from spinney._elementary import exp
from spinney._types import CLASSES, CODE, MOMENTS, ROW, SUM
from spinney.ensemble.adaboost import find_errors, find_factors, find_shift, mistakes, share_errors, weigh_losses
from spinney.ensemble.adaboost_trees import leaf_predictions
from spinney.ensemble.forest_levels import LevelForest
from spinney.ensemble.part_bags import BagPart, BagUnits, PartBags
from spinney.table.fixed_point import (
    Target,
    Weights,
    coarse_bits,
    join_coarse,
    sum_bits,
    sum_coarse,
    weigh,
    weighted_bits,
)
from spinney.tree.levels import CODES, Adding
from spinney.tree.predict import find_coded_leaves
from spinney.tree.prune import prune_to_alpha
from spinney.tree.top_levels import code_tests

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.ensemble.adaboost import Factors
    from spinney.kernels.common.structs import TopTests
    from spinney.table.coding import Codes
    from spinney.tree.levels import Engine, Kept, Part
    from spinney.tree.structure import Tree

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

FEW_LEVELS = 8  # of a tree that rows go down by codes: to look up 28 values of a row takes a stump 30 times as long
# arrays of a part: class code or target; weight in the table's units; logarithm of what it has become; weight and
# weighted target in the units of the round; loss
Y, BASE, LOGS, UNITS, VALUES, LOSS = "y", "base", "logs", "units", "values", "loss"


class FindingLargest:
    """A task that gives a number, of which the largest is asked for."""

    def join(self, a: float, b: float) -> float:
        """See `tree.levels.Task.join`."""
        return max(a, b)


class Counting:
    """A task that gives a whole number, which is added up."""

    def join(self, a: int, b: int) -> int:
        """See `tree.levels.Task.join`."""
        return a + b


# --- Weights --------------------------------------------------------------------------------------------------------


def base_of(part: Part, base: Weights) -> Weights:
    """The weights of the table, with the values of a part."""
    return base if base.is_unit else base._replace(values=part.arrays[BASE])


@dataclass(frozen=True)
class RaiseTask(FindingLargest):
    """Add the losses to the logarithms of the weights; gives the largest."""

    alpha: float

    def __call__(self, part: Part) -> tuple[Kept, float]:
        """Do so."""
        logs = part.arrays[LOGS] + self.alpha * part.arrays[LOSS].astype(np.float64, copy=False)
        return {LOGS: logs}, float(logs.max())


@dataclass(frozen=True)
class FactorTask(Counting):
    """Sum of the weights before they are scaled."""

    base: Weights
    largest: float

    def __call__(self, part: Part) -> tuple[Kept, int]:
        """Do so."""
        base = base_of(part, self.base)
        return {}, int(weigh(exp(part.arrays[LOGS] - self.largest), weighted_bits(base), base).sum())


class UnitSums(NamedTuple):
    """What the weights of a round add up to."""

    total: int
    classes: Ints  # (n_classes,), or (1,) of numbers
    magnitude: int  # of weighted targets


@dataclass(frozen=True)
class UnitTask(Adding):
    """Write the weights of a round in units."""

    base: Weights
    factors: Factors
    target: Target  # without values

    def __call__(self, part: Part) -> tuple[Kept, UnitSums]:
        """Do so."""
        base, n_classes, y = base_of(part, self.base), self.target.n_classes, part.arrays[Y]
        factor = self.factors.read(part.arrays[LOGS])
        units = weigh_losses(np.ones(1), factor, self.factors.bits, base)
        classes, magnitude = np.zeros(max(n_classes, 1), SUM), 0
        if n_classes:
            np.add.at(classes, y.astype(np.int64), units)
        else:
            product = centre_targets(y, self.target) * factor
            magnitude = int(weigh(np.abs(product), weighted_bits(base), base).sum())
        return {UNITS: units}, UnitSums(int(units.sum()), classes, magnitude)


def centre_targets(y: Floats, target: Target) -> Floats:
    """Targets as they are weighed: near 0, and within [-1, 1]."""
    centred: Floats = np.ldexp(np.ldexp(y, -target.exponent) - target.centre, -target.spread_exponent)
    return centred


class CoarseSums(NamedTuple):
    """See `table.fixed_point.sum_coarse`."""

    total: int
    squares: int


@dataclass(frozen=True)
class ValueTask(Adding):
    """Write the weighted targets of a round, of numbers; gives what the weight of an independent row is made of."""

    base: Weights
    factors: Factors
    target: Target
    n_bits: int

    def __call__(self, part: Part) -> tuple[Kept, CoarseSums]:
        """Do so."""
        base, kept = base_of(part, self.base), {}
        if self.target.n_classes == 0:
            product = centre_targets(part.arrays[Y], self.target) * self.factors.read(part.arrays[LOGS])
            kept[VALUES] = weigh(product, self.target.bits, base)
        times = base.values if base.is_whole else None
        return kept, CoarseSums(*sum_coarse(part.arrays[UNITS], times, self.n_bits))


# --- Losses ---------------------------------------------------------------------------------------------------------


class Routes(NamedTuple):
    """A tree, as rows go down it by their codes."""

    kernels: Any
    codes: Codes  # what codes stand for
    tree: Tree
    tests: TopTests | None  # None: values are looked up

    def predict(self, part: Part) -> NDArray[Any]:
        """What the tree predicts for the rows of a part."""
        rows, codes = np.arange(part.n_rows, dtype=ROW), part.arrays[CODES].view(CODE)
        if self.tests is None:
            leaf = find_coded_leaves(self.tree, self.codes._replace(rows=codes), rows, self.kernels)
        else:
            leaf = np.empty(part.n_rows, np.int32)
            self.kernels.tree.levels.route_rows(codes, rows, self.tests, leaf)
        return leaf_predictions(self.tree)[leaf]


def find_routes(tree: Tree, codes: Codes, kernels: Any) -> Routes:
    """How rows go down a tree."""
    tests = code_tests(tree, codes) if tree.depth <= FEW_LEVELS else None
    return Routes(kernels, codes, tree, tests)


@dataclass(frozen=True)
class MistakeTask(Counting):
    """Write which rows a tree gets wrong; gives their weight."""

    routes: Routes

    def __call__(self, part: Part) -> tuple[Kept, int]:
        """Do so."""
        predicted = self.routes.predict(part)
        losses = mistakes(predicted, part.arrays[Y].astype(np.int64))
        return {LOSS: losses.astype(np.uint8)}, int(part.arrays[UNITS][losses > 0.0].sum())


@dataclass(frozen=True)
class ErrorTask(FindingLargest):
    """Write the errors of a tree of numbers; gives the largest."""

    routes: Routes
    shift: int

    def __call__(self, part: Part) -> tuple[Kept, float]:
        """Do so."""
        errors = find_errors(self.routes.predict(part), part.arrays[Y], self.shift)
        return {LOSS: errors}, float(errors.max())


@dataclass(frozen=True)
class ShareTask(Counting):
    """Write the losses in the place of the errors; gives the sum of weight times loss."""

    base: Weights
    factors: Factors
    largest: float
    loss: str

    def __call__(self, part: Part) -> tuple[Kept, int]:
        """Do so."""
        losses = share_errors(part.arrays[LOSS].copy(), self.largest, self.loss)
        factor = self.factors.read(part.arrays[LOGS])
        return {LOSS: losses}, int(weigh_losses(losses, factor, self.factors.bits, base_of(part, self.base)).sum())


class PartLosses(NamedTuple):
    """Losses that the parts have; what is known of them here."""

    wrong: int  # sum of weight times loss


class LevelWeights:
    """`RowWeights` of rows that an engine has in parts.

    Parameters
    ----------
    engine : Engine
        Its parts have "codes", "y", "logs", which are 0, and unless all weights are 1 "base".
    base : Weights
        Of the table, without values.
    n_rows : int
    target : Target
        Under these weights, without values: of numbers, or of classes by their number.
    codes : Codes
        What codes stand for.
    kernels : kernel modules
    loss : str
        Of numbers, see `distances`.
    largest : float
        Magnitude of a target.
    """

    def __init__(
        self,
        engine: Engine,
        base: Weights,
        n_rows: int,
        target: Target,
        codes: Codes,
        kernels: Any,
        loss: str = "",
        largest: float = 0.0,
    ) -> None:
        self.engine, self.base, self.n_rows, self.target = engine, base, n_rows, target
        self.codes, self.kernels = codes, kernels
        self.loss, self.shift = loss, find_shift(largest)
        self.control: Ints | None = None
        self.largest = 0.0  # of the logarithms
        self.reads = [] if base.is_unit else [BASE]
        self.settle()

    def add_up(self, task: Any, reads: list[str]) -> Any:
        """The sum, or the largest, of what a task gives for all parts."""
        return self.engine.add(task, [*reads, *self.reads], self.control)

    def raise_by(self, alpha: float, losses: PartLosses) -> None:
        """See `RowWeights`."""
        self.add_losses(alpha, losses)
        self.settle()

    def add_losses(self, alpha: float, losses: PartLosses) -> None:
        """See `RowWeights`; the losses are those that were found last."""
        del losses
        self.largest = self.add_up(RaiseTask(alpha), [LOGS, LOSS])

    def settle(self) -> None:
        """See `RowWeights`: weights, and targets of numbers, are in the files of the parts."""
        base, target = self.base, self.target
        bits = weighted_bits(base)
        total = math.ldexp(float(self.add_up(FactorTask(base, self.largest), [LOGS])), -bits)
        self.factors = factors = find_factors(self.largest, total, base)
        sums: UnitSums = self.add_up(UnitTask(base, factors, target), [LOGS, Y])
        if target.n_classes == 0:
            self.target = target = target._replace(bits=sum_bits(math.ldexp(float(sums.magnitude), -bits)))
        elif target.family == MOMENTS:
            self.target = target = target._replace(bits=factors.bits)
        n_bits = coarse_bits(sums.total)
        coarse: CoarseSums = self.add_up(ValueTask(base, factors, target, n_bits), [LOGS, Y, UNITS])
        self.classes = sums.classes
        self.weights = Weights(
            np.ones(2, SUM),  # one would stand for all rows
            factors.bits,
            base.exponent + factors.exponent,
            is_unit=False,
            is_whole=False,
            total=sums.total,
            row_weight=join_coarse(*coarse, n_bits),
        )

    def find_losses(self, tree: Tree) -> PartLosses:
        """The loss of each row by what a tree predicts."""
        routes = find_routes(tree, self.codes, self.kernels)
        if self.target.n_classes:
            return PartLosses(self.add_up(MistakeTask(routes), [CODES, Y, UNITS]))
        largest = self.add_up(ErrorTask(routes, self.shift), [CODES, Y])
        return PartLosses(self.add_up(ShareTask(self.base, self.factors, largest, self.loss), [LOSS, LOGS]))

    def sum_losses(self, losses: PartLosses) -> int:
        """See `RowWeights`."""
        return losses.wrong

    def totals(self) -> Ints:
        """What the weights, and ones, of the root add up to; see `tree.top_levels.TopNode`."""
        if self.target.family == MOMENTS and self.target.n_classes:
            return np.array([self.classes.sum(), self.classes[1:].sum()], SUM)
        return self.classes if self.target.n_classes else np.zeros(2, SUM)


def target_of_classes(n_classes: int) -> Target:
    """The target of classes, without values."""
    nothing = np.zeros(1, SUM)
    return Target(CLASSES if n_classes > 2 else MOMENTS, nothing, nothing, np.zeros(1), n_classes)


# --- Trees ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RoundBags(PartBags):
    """All rows of a part, with the weights and targets that a round has written."""

    @property
    def reads(self) -> list[str]:
        """The arrays of a part that are needed."""
        return [Y, UNITS] if self.target.n_classes else [Y, UNITS, VALUES]

    def take(self, part: Part, tree: int) -> BagPart:
        """The rows of a part."""
        del tree
        truth, values, n = part.arrays[Y], None, part.n_rows
        if self.target.n_classes == 0:
            truth, values = np.ldexp(truth, -self.target.exponent), part.arrays[VALUES]
        return BagPart(np.arange(n, dtype=np.int32), np.ones(n, np.int32), truth, part.arrays[UNITS], values)

    def values(self, bag: BagPart, n_excess: int = 0) -> Ints:
        """Targets of rows in fixed point; nothing has to be left out for counts."""
        del n_excess
        assert bag.values is not None
        return bag.values


class RoundForest(LevelForest):
    """Trees under way, one of each round, on all rows."""

    count_bits: ClassVar[int] = 0

    def begin(self, rows: LevelWeights, control: Ints) -> None:
        """Begin a round."""
        self.rows, self.control = rows, control
        self.plan = replace(self.plan, target=rows.target, weights=rows.weights)
        self.bags = RoundBags(self.plan.draw, rows.target, rows.weights, 0)

    def sum_bags(self, group: range) -> list[BagUnits]:
        """The units of all rows, which the weights know."""
        rows = self.rows
        return [BagUnits(tree, rows.n_rows, rows.weights, 0, rows.totals(), 0.0) for tree in group]


class LevelFitter:
    """`TreeFitter` of rows that an engine has in parts: members predict where the rows are.

    Parameters
    ----------
    growth : RoundForest
    n_classes : int
        0 for numbers.
    kernels : kernel modules
    ccp_alpha : float
        Trees are pruned by it.
    """

    def __init__(self, growth: RoundForest, n_classes: int, kernels: Any, ccp_alpha: float = 0.0) -> None:
        self.growth, self.n_classes, self.kernels, self.ccp_alpha = growth, n_classes, kernels, ccp_alpha

    def __call__(self, number: int, rows: LevelWeights, control: Ints) -> tuple[Tree, Tree]:
        """Grow tree `number`, which says what it predicts."""
        rows.control = control
        self.growth.begin(rows, control)
        group = range(number, number + 1)
        [(_, tree)] = self.growth.grow_group(group, self.kernels, 1, is_short=False, verbose=False)
        if self.ccp_alpha > 0.0:
            tree = prune_to_alpha(tree, self.ccp_alpha)
        return tree, tree

    def predict(self, tree: Tree) -> Tree:
        """What a tree predicts for the rows is found where these are."""
        return tree
