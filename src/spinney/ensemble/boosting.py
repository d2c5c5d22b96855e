"""Gradient boosting: rounds of trees, each grown on the derivatives of the loss at the scores so far.

    raw ─► loss: g, h ─► packed sums ─► tree (tree.boost) ─► leaf of each row ─► sums of the true g, h by leaf
     ▲                                                                                    │
     └──────────────────────────── + learning rate x value of the row's leaf ◄────────────┘

Rounding goes into the choice of tests alone: the values of leaves come from sums to 62 bits. Every sum is fixed point
or over fixed blocks of rows, so the trees are the same for any number of threads.
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._jit import SameDoors, SameTypes
from spinney._threads import Team
from spinney._types import IS_CATEGORICAL, N_CODES, N_NODES, N_WORDS
from spinney.ensemble.best_constant import mean_loss, row_weights
from spinney.ensemble.boosted_rows import OutsideRows
from spinney.ensemble.boosting_bags import BoostingBags
from spinney.ensemble.dropout import Dropout
from spinney.ensemble.gradient_sampling import GradientSampling
from spinney.ensemble.hessian_bins import bin_by_hessian
from spinney.ensemble.leaf_values import estimate_leaves, leaf_units
from spinney.ensemble.losses import RoundRows, Softmax
from spinney.ensemble.oob_stopping import MOST_ROWS, OutOfBagCurve
from spinney.ensemble.sampling import Draw, draw_key
from spinney.ensemble.subspaces import Subspaces
from spinney.ensemble.tree_store import TreeStore
from spinney.kernels.common.structs import (
    Gradients,
    LeafLinks,
    LeafSettings,
    LeafSums,
    PackedUnits,
    TreeEnd,
    TreeEndSettings,
)
from spinney.table.row_sums import SUM_BLOCK
from spinney.tree.boost import BoostGrowth, BoostParams, bag_size
from spinney.tree.followers import Followers
from spinney.tree.forest import Forest
from spinney.tree.packed_units import packed_units
from spinney.tree.predict import add_votes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from spinney.ensemble.boosted_rows import BoostedRows
    from spinney.ensemble.losses import Loss
    from spinney.table.binning import Bins
    from spinney.table.fixed_point import Weights
    from spinney.table.sparse import Values
    from spinney.tree.boost import BoostMemory
    from spinney.tree.structure import Legend

    Floats = NDArray[np.float64]
    Bag = NDArray[np.int32] | None  # rows, ascending; None: all

WHOLE_WEIGHT = 2.0**28  # total of whole weights that can multiply rounded sums
FEW_BITS_WEIGHT = 2.0**21  # total weight from which fewer than 10 bits remain for a row: rounding must not lean
ROWS_AT_ONCE = 1 << 16  # of a row pass that is worth sharing out
LINE_ROWS = 64  # of a pass that has no sums by block: threads write no cache line together
ROUNDED = 2.0**-24  # far above the share by which sums in another order differ
BAG, TREE, ROUNDING, DROP = 1, 2, 3, 4  # purposes of keys


class Constraints(NamedTuple):
    """What trees may not do."""

    monotone: NDArray[np.int8] | None = None  # (n_features,) -1, 0 or 1
    interactions: Sequence[Sequence[int]] | None = None  # sets of features that may stand on one path


class BoostedTrees:
    """The trees of a boosted model under way, and what is decided before the first: wherever its rows are.

    Parameters
    ----------
    bins : Bins
        What is known of the features; the rows are not looked at here.
    weights : Weights
    n_rows : int
    loss : Loss
    params : BoostParams
    kernels : kernel modules
    monotone : int8 (n_features,), optional
    legend : Legend, optional
    first_round : int
        Rounds that there are already: draws go on from there.

    Attributes
    ----------
    out_of_bag : OutOfBagCurve or None
        Told what each round does to the rows outside its bag.
    """

    def __init__(
        self,
        bins: Bins,
        weights: Weights,
        n_rows: int,
        loss: Loss,
        params: BoostParams,
        kernels: Any,
        monotone: NDArray[np.int8] | None,
        legend: Legend | None,
        first_round: int,
    ) -> None:
        self.loss, self.params, self.kernels, self.weights, self.n_rows = loss, params, kernels, weights, n_rows
        # the types of what it is given stay the same from tree to tree
        self.settle_leaves = SameTypes(kernels.boost.leaf_values.settle)
        self.first_round, self.n_rounds = first_round, 0
        self.out_of_bag: OutOfBagCurve | None = None
        self.is_whole = weights.is_whole and self.total_weight < WHOLE_WEIGHT
        self.rounds_randomly = (n_rows if weights.is_unit else max(self.total_weight, n_rows)) > FEW_BITS_WEIGHT
        self.min_weight = math.ceil(params.min_weight_fraction_leaf * weights.total)
        self.bags = None
        if params.subsample < 1.0:
            self.bags = Draw("paste", n_rows, bag_size(params.subsample, n_rows), draw_key(params.seed, BAG))
        key = draw_key(params.seed, DROP)
        self.dropout = Dropout(params.drop_rate, params.skip_drop, key) if params.drop_rate > 0.0 else None
        self.likely_gain = [math.inf] * loss.n_raw  # of the last tree of each raw score
        self.is_flat = not params.newton and not loss.has_constant_hessian  # tests are chosen as if h were 1
        has_own_leaves = loss.leaf != "newton" or not params.newton
        self.directions = None if monotone is None or not has_own_leaves else monotone.astype(np.int64)
        n_features = len(bins.place)
        n_drawn = n_features if params.max_tree_features is None else params.max_tree_features
        self.columns = Subspaces(n_features, n_drawn, params.seed)
        n_levels = np.where(bins.features[IS_CATEGORICAL] != 0, bins.features[N_CODES], 0).astype(np.int32)
        self.store = TreeStore(n_levels, legend)

    @property
    def total_weight(self) -> float:
        """Sum of the weights."""
        return math.ldexp(self.weights.total, self.weights.exponent - self.weights.bits)

    @property
    def trees_per_round(self) -> int:
        """One for each raw score."""
        return self.loss.n_raw

    @property
    def number(self) -> int:
        """Number of the round under way, of those before the first included."""
        return self.first_round + self.n_rounds

    def number_of_tree(self, k: int) -> int:
        """What the tree of raw score k draws, beside the bag, comes from the seed and this."""
        return self.number if self.loss.draws_once else self.number * self.loss.n_raw + k

    def check_sums(self, sum_g: float, sum_h: float) -> tuple[float, float]:
        """The sums of the sizes of all derivatives, which must be finite."""
        if not (math.isfinite(sum_g) and math.isfinite(sum_h)):
            raise FloatingPointError(f"the gradients of round {self.number} are not finite")
        return sum_g, sum_h

    def find_units(self, sum_g: float, sum_h: float) -> PackedUnits:
        """Units of the packed sums of a tree."""
        slack = self.total_weight if self.is_whole else float(self.n_rows)
        return packed_units(sum_g, self.total_weight if self.is_flat else sum_h, slack)

    def draw_keys(self, k: int) -> tuple[int, int]:
        """Seeds of the features drawn per node and of the rounding, in the tree of raw score k; 0: nothing is drawn."""
        seed, number = self.params.seed, self.number_of_tree(k)
        return (
            0 if self.params.max_features is None else draw_key(seed, TREE, number),
            draw_key(seed, ROUNDING, number) if self.rounds_randomly else 0,
        )

    def weaken(self, memory: BoostMemory) -> None:
        """Set lambda of the round: less of it where nearly all of the loss has been learnt."""
        stop = self.out_of_bag.stop if self.params.lambda_falls and self.out_of_bag is not None else None
        memory.reg_lambda = self.params.reg_lambda * (1.0 if stop is None else stop.pull)

    def store_tree(self, memory: BoostMemory, n_nodes: int, answers: Floats | None = None) -> None:
        """Keep the tree that `write_tree` has written; answers: of its nodes, where leaves hold several numbers."""
        self.store.add(n_nodes, memory.nodes.subsets[: int(memory.state[N_WORDS])].copy(), answers)

    def write_tree(
        self, memory: BoostMemory, n_nodes: int, sums: LeafSums, scale: PackedUnits, given: Floats | None = None
    ) -> Floats:
        """Write a tree that has been grown to the room of the store; return the shrunken values of its leaves.

        It is written over by the next, until `store_tree`. sums: of the true derivatives by leaf, in the units of
        `scale`; given: values of leaves found elsewhere.
        """
        self.store.make_room(n_nodes)
        values = np.zeros(n_nodes)
        settings = self.leaf_settings(memory, scale)
        is_finite = self.settle_leaves(
            given is None, memory.nodes, n_nodes, sums, settings, given, self.directions, self.store.written, values
        )
        self.check_leaves(is_finite=is_finite)
        return values

    def leaf_settings(self, memory: BoostMemory, scale: PackedUnits) -> LeafSettings:
        """How the sums of true derivatives by leaf, in the units of `scale`, become values."""
        params = self.params
        return LeafSettings(
            n_features=self.columns.n_features,
            gradient_unit=1.0 / scale.gradient,
            hessian_unit=1.0 / scale.hessian,
            reg_lambda=memory.reg_lambda,
            reg_alpha=params.reg_alpha,
            learning_rate=params.learning_rate * (1.0 if self.dropout is None else self.dropout.share),
        )

    def check_leaves(self, *, is_finite: bool) -> None:
        """Raise if a leaf of the tree that was written is not a finite number."""
        if not is_finite:
            raise FloatingPointError(f"a leaf of round {self.number} is not a finite number")

    @property
    def fills_leaves(self) -> bool:
        """Whether the values of leaves come from rows outside the bag too."""
        return self.bags is not None and self.n_rows > 1 and self.params.leaf_rows == "all"

    # --- what has been grown ---

    def resume(self, forest: Forest, likely_gain: list[float]) -> None:
        """Begin with the rounds of an earlier run, whose values `raw` has already; see `TreeStore.load`."""
        self.store.load(forest)
        self.n_rounds, self.likely_gain = len(forest) // self.trees_per_round, list(likely_gain)

    def forest(self, n_rounds: int | None = None) -> Forest:
        """The trees so far, or of the first rounds; tree t adds to raw score t % n_raw, or each to all of them."""
        return self.store.forest(0, self.trees_per_round * (self.n_rounds if n_rounds is None else n_rounds))

    def add_last(self, values: Values, raw: Floats) -> None:
        """Add the trees of the last round to the scores (n_raw, n_rows) of other rows, less what it made smaller."""
        n_raw = self.loss.n_raw
        for k in range(n_raw):
            t = n_raw * (self.n_rounds - 1) + k
            add_votes(self.store.forest(t, t + 1), values, 0, len(values), raw[k].reshape(-1, 1))
            for round_ in [] if self.dropout is None else self.dropout.dropped:
                assert self.dropout is not None
                old = n_raw * round_ + k
                less = self.dropout.scaled(self.store.forest(old, old + 1), old, -1.0 / len(self.dropout.dropped))
                add_votes(less, values, 0, len(values), raw[k].reshape(-1, 1))


class Boosting(BoostedTrees):
    """A boosted model under way, on rows in memory.

    Parameters
    ----------
    rows : BoostedRows
    loss : Loss
    params : BoostParams
    kernels : kernel modules
    n_workers : int
        Threads; the trees do not depend on it.
    constraints : Constraints
    legend : Legend, optional
    first_round : int
        Rounds that there are already: draws go on from there.
    """

    def __init__(
        self,
        rows: BoostedRows,
        loss: Loss,
        params: BoostParams,
        kernels: Any,
        n_workers: int = 1,
        *,
        constraints: Constraints | None = None,
        legend: Legend | None = None,
        first_round: int = 0,
    ) -> None:
        bins, y, weight, raw, self.alike = rows
        monotone = None if constraints is None else constraints.monotone
        n_rows = len(y)
        weights = row_weights(weight, n_rows)._replace(are_counts=self.alike is not None)
        super().__init__(bins, weights, n_rows, loss, params, kernels, monotone, legend, first_round)
        self.y, self.raw = y, raw if raw.shape[1] == n_rows else np.repeat(raw, n_rows, axis=1)
        # the types of what they are given stay the same from tree to tree
        self.pack_rows = SameTypes(kernels.boost.pack_gradients.pack)
        self.sum_leaves = SameTypes(kernels.boost.leaf_values.sum_leaves)
        self.add_values = SameTypes(kernels.boost.leaf_values.add_values)
        self.route_rest = SameTypes(kernels.boost.leaf_values.route_rest)
        self.finish_tree = SameTypes(kernels.boost.leaf_values.finish_tree)
        self.loss_kernels: Any = SimpleNamespace(boost=SimpleNamespace(gradients=SameDoors(kernels.boost.gradients)))
        self.exact = bins if params.candidates == "hessian" else None
        self.weight = np.ones(1) if weights.is_unit or weight is None else weight
        self.is_in = np.ones(n_rows if params.subsample < 1.0 else 1, np.uint8)
        self.sampling = None
        if params.subsample < 1.0 and params.sampling == "gradient":
            key = draw_key(params.seed, BAG)
            size = bag_size(params.subsample, n_rows)
            self.sampling = GradientSampling(n_rows, size, key, params.learning_rate)
        self.team = Team(n_workers)
        self.followers = Followers(self.team)
        self.round_bags = None if self.bags is None else BoostingBags(self.bags, self.team)
        table = bins if self.exact is None else self.narrow(np.ones(n_rows))
        self.constraints = constraints or Constraints()
        self.growth = self.make_growth(table, params)
        self.of_all: BoostGrowth | None = None  # for rounds that see all rows, where others see bags
        if self.sampling is not None and first_round < self.sampling.n_whole:
            self.of_all = self.make_growth(table, replace(params, subsample=1.0), self.growth)
        self.of_bags = self.growth
        self.gradients = Gradients(np.empty(n_rows), np.empty(n_rows), self.weight, bool(self.is_whole))
        self.choosing = self.gradients._replace(h=np.ones(n_rows)) if self.is_flat else self.gradients
        self.outside: OutsideRows | None = None  # of the round; None: nobody asks
        self.sides: list[Boosting] | None = None  # of threads that each grow a tree; None: not made yet
        # whether leaves are Newton's steps by the rows of the bag, and nobody asks for the leaves of rows
        self.is_plain = (
            loss.leaf == "newton" and self.directions is None and self.dropout is None and not self.fills_leaves
        )
        self.end = self.make_end(len(self.growth.nodes.test))
        self.p = np.empty((loss.n_raw, n_rows)) if loss.n_raw > 1 else None
        # whether `p`, or the derivatives of one raw score, are those of the scores: the loss of a round leaves them so
        self.knows_p = False
        self.block_sums = np.empty((-(-n_rows // SUM_BLOCK), 4))
        self.loss_sums: Floats | None = None  # losses of the scores as they are, by block; None: not asked for yet

    def make_growth(self, bins: Bins, params: BoostParams, twin: BoostGrowth | None = None) -> BoostGrowth:
        """Memory that trees are grown with; twin: that of other trees on the same table."""
        team, constraints = self.team, self.constraints
        return BoostGrowth(
            bins, params, self.weights, self.kernels, team.n_workers, team.run, *constraints, self.followers, twin
        )

    def make_sides(self) -> list[Boosting]:
        """The model once for each thread, with memory of its own to grow a tree in; empty: trees grow one by one.

        The trees of the classes do not depend on each other within a round. Where hardly a node of one is worth
        sharing out, threads take a tree each.
        """
        n_sides = min(self.team.n_workers, count_side_by_side(self.loss, self.params))
        return [self.make_side() for _ in range(n_sides)] if n_sides > 1 and self.growth.is_small else []

    def make_side(self) -> Boosting:
        """The model as one thread sees it: the same rows, scores and draws, other memory for trees and derivatives."""
        side = copy.copy(self)
        side.team, side.store = Team(1), TreeStore(self.store.n_levels, self.store.legend)
        side.growth = side.make_growth(self.growth.bins, self.params, self.growth)
        side.gradients = self.gradients._replace(g=np.empty_like(self.gradients.g), h=np.empty_like(self.gradients.h))
        side.choosing = side.gradients._replace(h=self.choosing.h) if self.is_flat else side.gradients
        side.block_sums = np.empty_like(self.block_sums)
        side.end = side.make_end(len(side.growth.nodes.test))
        return side

    def close(self) -> None:
        """End the threads."""
        self.team.close()
        self.followers.close()

    def drop_rows(self) -> None:
        """Let go of what trees are grown with when no round follows, so that trees can be copied where that was."""
        del self.growth, self.of_bags, self.of_all, self.sides, self.end

    # --- rows ---

    def share(self, work: Callable[[int, int], None], step: int = SUM_BLOCK, n_each: int = 1) -> None:
        """Call work(lo, hi) for all rows, in blocks of `step`, side by side where it pays; n_each: scores of a row."""
        n_rows = len(self.y)
        if self.team.n_workers == 1 or n_rows * n_each < ROWS_AT_ONCE:
            work(0, n_rows)
        else:
            self.team.run(lambda t: work(*self.rows_of(t, step)))

    def rows_of(self, thread: int, step: int) -> tuple[int, int]:
        """The rows, from and up to, of a thread in `share`."""
        n_rows, size = len(self.y), -(-len(self.y) // (self.team.n_workers * step)) * step
        return min(thread * size, n_rows), min((thread + 1) * size, n_rows)

    def derive(self, k: int, *, amplifies: bool = True) -> tuple[float, float]:
        """Fill g and h for raw score k; return the sums of their weighted sizes.

        amplifies: whether rows that stand for others, in a bag by gradients, have the derivatives of all of them.
        """
        rows = RoundRows(self.y, self.raw, self.gradients, self.block_sums, self.p, self.knows_p)
        if not (self.knows_p and self.loss.leaves_derivatives):
            self.share(lambda lo, hi: self.loss.fill(self.loss_kernels, rows, k, lo, hi))
        self.knows_p |= k == 0
        if amplifies and self.sampling is not None:
            self.amplify(self.sampling)
            self.knows_p &= self.p is not None
        sums_g, sums_h = self.block_sums[:, :2].T.tolist()
        sum_g, sum_h = self.check_sums(math.fsum(sums_g), math.fsum(sums_h))
        if self.alike is not None and self.is_in_doubt(sum_g, sum_h):
            g, h = np.abs(self.gradients.g), self.gradients.h
            return self.alike.total(g, self.kernels), self.alike.total(h, self.kernels)
        return sum_g, sum_h

    def is_in_doubt(self, sum_g: float, sum_h: float) -> bool:
        """Whether sums of the sizes of derivatives that were rounded otherwise might have other units."""
        low, high = ((sum_g * share, sum_h * share) for share in (1.0 - ROUNDED, 1.0 + ROUNDED))
        return (self.find_units(*low), leaf_units(*low)) != (self.find_units(*high), leaf_units(*high))

    def amplify(self, sampling: GradientSampling) -> None:
        """Multiply the derivatives of the rows that stand for others, and sum up again."""
        for column in (self.gradients.g, self.gradients.h):
            column[sampling.others] *= sampling.factor
        self.share(lambda lo, hi: self.kernels.boost.gradients.sum_columns(lo, hi, self.gradients, self.block_sums))

    def pack(self, units: PackedUnits, key: int, bag: Bag) -> tuple[int, int]:
        """Write the packed sums of all rows, and copy those of a bag; return their sum, and the largest hessian."""
        sums = self.growth.source.sums
        found: list[tuple[int, int]] = []

        def pack(lo: int, hi: int) -> None:
            found.append(self.pack_rows(None, lo, hi, self.choosing, units, self.rounds_randomly, np.uint64(key), sums))

        if bag is None:
            self.share(pack, LINE_ROWS)
        in_bag = 0 if bag is None else self.growth.gather(bag, pack)
        return in_bag if bag is not None else sum(total for total, _ in found), max(largest for _, largest in found)

    # --- rounds ---

    def grow_round(self, control: NDArray[np.int64]) -> None:
        """Grow a tree for each raw score, and add their values to `raw`."""
        self.drop(self.dropout)
        self.loss.begin_round(self.y, None if len(self.weight) == 1 else self.weight, self.raw)
        bag = self.draw_rows()
        self.weaken(self.growth)
        self.loss_sums, self.outside = None, None if self.out_of_bag is None else self.take_outside()
        before = math.nan if self.outside is None else self.outside.loss(self.loss)
        self.grow_trees(bag, control)
        self.knows_p = self.loss_sums is not None
        self.take_back(self.dropout)
        if self.out_of_bag is not None and self.outside is not None:
            self.out_of_bag.note(before, self.outside.loss(self.loss))
        self.n_rounds += 1

    def grow_trees(self, bag: Bag, control: NDArray[np.int64]) -> None:
        """Grow the trees of a round, one for each raw score."""
        if self.sides is None:
            self.sides = self.make_sides()
        if self.sides:
            self.grow_side_by_side(self.sides, bag, control)
            return
        judges = self.loss.is_by_row and self.dropout is None
        for k in range(self.loss.n_raw):
            self.end_tree(k, bag, self.begin_tree(k, bag, control), judges=judges and k == self.loss.n_raw - 1)

    def grow_side_by_side(self, sides: list[Boosting], bag: Bag, control: NDArray[np.int64]) -> None:
        """Grow the trees of a round by threads, each every so many-th of them; they are stored in their order."""
        n_raw, n_sides = self.loss.n_raw, len(sides)
        if not self.knows_p:
            self.derive(0)  # which writes the probabilities of all classes

        def work(t: int) -> None:
            for k in range(t, n_raw, n_sides) if t < n_sides else ():
                sides[t].end_tree(k, bag, sides[t].begin_tree(k, bag, control), judges=False)

        for side in sides:
            side.n_rounds, side.outside, side.knows_p = self.n_rounds, self.outside, True
            side.growth.reg_lambda = self.growth.reg_lambda
            side.store.trees.clear()
        self.team.run(work)
        for k in range(n_raw):
            self.store.trees.append(sides[k % n_sides].store.trees[k // n_sides])

    def drop(self, dropout: Dropout | None) -> None:
        """Take what the rounds that this one drops have added off the scores."""
        for t in () if dropout is None else dropout.choose(self.number):
            self.add_dropped(t, -1.0)

    def take_back(self, dropout: Dropout | None) -> None:
        """Make the dropped trees smaller, and add them to the scores again."""
        if dropout is None or not dropout.dropped:
            return
        for t in dropout.dropped:
            for tree in range(t * self.loss.n_raw, (t + 1) * self.loss.n_raw):
                self.store.trees[tree].values[dropout.leaf_nodes[tree]] *= 1.0 - dropout.share
            self.add_dropped(t, 1.0)

    def add_dropped(self, t: int, sign: float) -> None:
        """Add what a round says, or take it off."""
        assert self.dropout is not None
        for k in range(self.loss.n_raw):
            tree = t * self.loss.n_raw + k
            self.raw[k] += sign * self.store.trees[tree].values[self.dropout.leaves[tree]]
        self.knows_p = False

    def draw_rows(self) -> Bag:
        """The rows of the round's bag, ascending, marked in `is_in`; None: all."""
        if self.sampling is None:
            return None if self.round_bags is None else self.round_bags.mark(self.number, self.is_in)
        if self.of_all is not None and self.sampling.takes_all(self.number):
            self.growth = self.of_all
            self.is_in[:] = 1
            return None
        self.growth, self.of_all = self.of_bags, None
        size = np.zeros(len(self.y))
        for k in range(self.loss.n_raw):
            self.derive(k, amplifies=False)
            size += np.abs(self.gradients.g * self.gradients.h)
        if len(self.weight) > 1:
            size *= self.weight * self.weight
        bag = self.sampling.draw(size, self.number)
        self.is_in[:] = 0
        self.is_in[bag] = 1
        return bag

    def take_outside(self) -> OutsideRows:
        """The rows outside the bag that judge the round."""
        rows = np.flatnonzero(self.is_in == 0)[:MOST_ROWS]
        weight = None if len(self.weight) == 1 else self.weight[rows]
        return OutsideRows(rows, self.y[rows], weight, np.ascontiguousarray(self.raw[:, rows]))

    def change_scores(self, pieces: Iterable[tuple[int, Callable[[Floats], None]]]) -> None:
        """Have the scores (n_raw, n) of so many rows changed, then those of the next."""
        first = 0
        for n, change in pieces:
            scores = np.ascontiguousarray(self.raw[:, first : first + n])
            change(scores)
            self.raw[:, first : first + n] = scores
            first += n
        self.knows_p, self.loss_sums = False, None

    def train_loss(self) -> float:
        """The mean loss of all rows by the scores so far."""
        if not self.loss.is_by_row:
            return self.loss.value(self.y, None if len(self.weight) == 1 else self.weight, self.raw)
        if self.loss_sums is not None:
            return mean_loss(self.loss_sums)
        losses = None if self.alike is None else np.empty(len(self.y))
        rows = RoundRows(self.y, self.raw, self.gradients, self.block_sums, self.p, losses=losses)
        sums = np.empty((len(self.block_sums), 2))
        self.share(lambda lo, hi: self.loss.sum_rows(self.loss_kernels, rows, sums, lo, hi), n_each=self.loss.n_raw)
        self.knows_p = True
        return mean_loss(sums if self.alike is None or losses is None else self.alike.sums(losses, self.kernels))

    def begin_tree(self, k: int, bag: Bag, control: NDArray[np.int64]) -> tuple[float, float]:
        """Choose the tests of a tree for raw score k; return the sums of the sizes of its derivatives."""
        growth = self.growth
        sum_g, sum_h = self.derive(k)
        if self.exact is not None:
            growth.change_table(self.narrow(self.gradients.h))
        seed, rounding = self.draw_keys(k)
        units = self.find_units(sum_g, sum_h)
        total, largest = self.pack(units, rounding, bag)
        if not self.columns.is_whole:
            growth.use_columns(self.columns.columns(self.number_of_tree(k)))
        n_bag = None if bag is None else len(bag)
        growth.grow(units, total, largest, n_bag, self.min_weight, self.likely_gain[k], seed, control)
        self.likely_gain[k] = growth.least_gain()
        return sum_g, sum_h

    def end_tree(self, k: int, bag: Bag, sizes: tuple[float, float], *, judges: bool) -> None:
        """Give the leaves of the tree their values, keep it, and add them to the scores.

        judges: whether losses may be summed by the way, as no other tree of the round follows.
        """
        growth, (sum_g, sum_h) = self.growth, sizes
        is_alone = self.team.n_workers == 1 or len(self.y) < ROWS_AT_ONCE or self.alike is not None
        if self.is_plain and self.outside is None and is_alone:
            self.finish(k, leaf_units(sum_g, sum_h))
            return
        n_nodes = growth.prune()
        values = self.settle(n_nodes, bag, leaf_units(sum_g, sum_h), k)
        if self.dropout is not None:
            self.dropout.keep(growth.leaf, n_nodes)
        self.add_leaves(k, values, judges=judges and self.alike is None)

    def add_leaves(self, k: int, values: Floats, *, judges: bool) -> None:
        """Add the value of each row's leaf to its raw score, and sum the losses that come of it if they are asked for.

        To wake threads for either costs more than what one of 32 threads has to do.
        """
        leaf, raw = self.growth.leaf, self.raw
        rows = RoundRows(self.y, raw, self.gradients, self.block_sums, self.p)
        sums = np.empty((len(self.block_sums), 2))

        def add(lo: int, hi: int) -> None:
            self.add_values(None, leaf, values, lo, hi, raw, k)
            if judges:
                self.loss.sum_rows(self.loss_kernels, rows, sums, lo, hi)

        self.share(add, SUM_BLOCK if judges else LINE_ROWS)
        self.loss_sums = sums if judges else None

    def finish(self, k: int, scale: PackedUnits) -> None:
        """The same in one call, where rows are few or one thread's, and leaves plain."""
        growth, store = self.growth, self.store
        n_grown = int(growth.state[N_NODES])
        store.make_room(n_grown)
        if n_grown > len(self.end.values):
            self.end = self.make_end(2 * n_grown)
        leaves, are_counts = self.leaf_settings(growth, scale), self.alike is not None
        settings = TreeEndSettings(n_grown, self.params.pruning == "post", k, are_counts, scale, leaves)
        structs = (growth.table, growth.source, growth.buffer, growth.nodes, self.gradients, self.end)
        n_nodes = self.finish_tree(None, *structs, settings, store.written)
        self.check_leaves(is_finite=n_nodes > 0)
        self.store_tree(growth, n_nodes)

    def make_end(self, n_nodes: int) -> TreeEnd:
        """Room to finish trees of so many nodes."""
        links, sums = np.empty((4, n_nodes), np.int64), np.empty((2, 1, n_nodes), np.int64)
        return TreeEnd(LeafLinks(*links), self.is_in, LeafSums(*sums), np.empty(n_nodes), self.raw)

    def settle(self, n_nodes: int, bag: Bag, scale: PackedUnits, k: int) -> Floats:
        """Keep the tree that has been grown; return the shrunken values of its leaves."""
        growth, fills = self.growth, self.fills_leaves
        sums = self.sum_leaves_of(n_nodes, bag, scale, parts=fills and self.outside is not None)

        def write(*, is_all: bool) -> Floats:
            given = None if self.loss.leaf == "newton" else self.estimate_leaves(n_nodes, k, is_all=is_all)
            return self.write_tree(growth, n_nodes, sums if is_all else self.in_bag(sums), scale, given)

        if self.outside is not None:  # judged by what rows of the bag say alone
            values = write(is_all=False)
            self.outside.raw[k] += values[growth.leaf[self.outside.rows]]
        if fills or self.outside is None:
            values = write(is_all=fills)
        self.store_tree(growth, n_nodes)
        return values

    def sum_leaves_of(self, n_nodes: int, bag: Bag, scale: PackedUnits, *, parts: bool) -> LeafSums:
        """Write the leaf of each row, and sum the true derivatives by leaf, see `sum_by_leaf`.

        Of a bag, a shard has the rows of a range of the table: who has written their leaves routes the others there,
        and sums them up at once.
        """
        growth = self.growth
        if bag is None:
            growth.write_leaves(len(self.y))
            return self.sum_by_leaf(n_nodes, self.gradients, scale, parts=parts)
        sums, add = self.make_sums(n_nodes, self.gradients, scale, parts=parts)
        edges, structs = growth.edges, (growth.table, growth.source, growth.nodes, self.is_in, growth.leaf)

        def route_and_add(shard: int) -> None:
            lo, hi, thread = edges[shard], edges[shard + 1], shard % self.team.n_workers
            self.route_rest(None, lo, hi, *structs, growth.routed[thread])
            add(thread, lo, hi)

        growth.write_leaves(len(bag), route_and_add)
        return sums

    def sum_by_leaf(self, n_nodes: int, gradients: Gradients, scale: PackedUnits, *, parts: bool) -> LeafSums:
        """Sums of the true derivatives by leaf, of the rows that count.

        parts: of rows in the bag first, then of those outside; else all together, in a third of the time.
        """
        sums, add = self.make_sums(n_nodes, gradients, scale, parts=parts)
        size = max(self.rows_of(0, LINE_ROWS)[1], 1)
        self.share(lambda lo, hi: add(min(lo // size, self.team.n_workers - 1), lo, hi), LINE_ROWS)
        return sums

    def make_sums(
        self, n_nodes: int, gradients: Gradients, scale: PackedUnits, *, parts: bool
    ) -> tuple[LeafSums, Callable[[int, int, int], None]]:
        """Room for these sums, and what adds rows from lo up to hi to those of a thread."""
        n_workers, leaf = self.team.n_workers, self.growth.leaf
        sums = LeafSums(*np.zeros((2, 2 * n_workers if parts else n_workers, n_nodes), np.int64))
        is_in = self.is_in if parts or not self.fills_leaves else np.ones(1, np.uint8)
        is_out = 1 - self.is_in if parts else self.is_in

        def add(thread: int, lo: int, hi: int) -> None:
            self.sum_leaves(None, thread, lo, hi, gradients, scale, leaf, is_in, sums)
            if parts:
                self.sum_leaves(None, thread + n_workers, lo, hi, gradients, scale, leaf, is_out, sums)

        return sums, add

    def in_bag(self, sums: LeafSums) -> LeafSums:
        """The part of sums by leaf that is of the rows in the bag."""
        return LeafSums(*(each[: self.team.n_workers] for each in sums))

    def estimate_leaves(self, n_nodes: int, k: int, *, is_all: bool) -> Floats:
        """Values of leaves that minimise the loss of their rows exactly; is_all: rows outside the bag count too."""
        leaf = self.growth.leaf
        rows = np.arange(len(leaf)) if self.bags is None or is_all else np.flatnonzero(self.is_in)
        weight = None if len(self.weight) == 1 else self.weight[rows]
        return estimate_leaves(self.loss, k, n_nodes, leaf[rows], (self.y - self.raw[k])[rows], weight)

    def narrow(self, h: Floats) -> Bins:
        """The table in bins of equal sums of weighted hessians of the rows that the next tree sees."""
        assert self.exact is not None
        weight = self.weight if self.bags is None else self.weight * self.is_in
        return bin_by_hessian(self.exact, h, weight, self.params.max_bins, self.kernels, is_whole=bool(self.is_whole))


def count_side_by_side(loss: Loss, params: BoostParams) -> int:
    """Trees of a round that may grow at once; 1: each goes by what others leave, or writes where they read."""
    is_free = params.candidates != "hessian" and params.sampling != "gradient" and params.drop_rate == 0.0
    return loss.n_raw if is_free and isinstance(loss, Softmax) else 1
