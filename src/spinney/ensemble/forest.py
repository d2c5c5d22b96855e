"""Grow the trees of a forest, each on its own bag, and collect the votes on out-of-bag rows on the way."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._jit import SameTypes
from spinney._threads import run_tasks
from spinney._types import MOMENTS, ROW, SUM
from spinney.ensemble.out_of_bag import OutOfBagSums
from spinney.ensemble.sampling import Draw, draw_key, split_bag
from spinney.table.cells import find_cells
from spinney.table.fixed_point import (
    Target,
    Weights,
    bag_classes,
    bag_target,
    class_target,
    count_weights,
    fix_weights,
    weigh_labels,
)
from spinney.table.flags import Packing, pack_flags, whole_codes
from spinney.table.row_sums import sum_products_of
from spinney.table.sparse_codes import SparseCodes, pack_stored
from spinney.tree.forest import Forest, ForestParts
from spinney.tree.grow import FIRST_NODES, Bag, Growth
from spinney.tree.grow_params import GrowParams
from spinney.tree.predict import find_coded_leaves, leaf_shares
from spinney.tree.prune import prune_to_alpha
from spinney.tree.reduced_error import prune_on_rows
from spinney.tree.refit import refit_leaves
from spinney.tree.structure import Legend, Tree
from spinney.tree.subtree import find_tiers

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from spinney.table.coding import Codes

GROUP_ROWS = (
    1 << 16
)  # of the table, over the trees of a task: handing on a tree costs as much as growing it on 500 rows
GATHERED_ROWS = 2048  # of a table whose bags are gathered by a kernel: few rows are no reason to compile one
GROWTH = 0x47524F57  # the part of the seed's key that growing draws from; bags have their own


def member_key(seed: int, tree: int) -> int:
    """What tree number `tree` of an ensemble is grown by: of 63 bits."""
    return draw_key(seed, GROWTH, tree)


@dataclass(frozen=True)
class Plan:
    """What the trees of a forest share."""

    codes: Codes | SparseCodes
    weights: Weights  # of the table, with room for counts; see `table.fixed_point.with_room`
    target: Target
    draw: Draw
    params: GrowParams
    seed: int
    monotone: NDArray[np.int8] | None = None
    has_weight: NDArray[np.bool_] | None = None  # (n_rows,) rows of positive weight; others are in no bag. None: all
    balances_bags: bool = False  # class weights from each bag: every class gets the same weight in it
    honest_fraction: float | None = None  # share of a bag that makes the tests; the rest makes the leaf values
    prunes_oob: bool = False
    ccp_alpha: float = 0.0
    has_oob: bool = False
    is_hard: bool = False  # out-of-bag votes are classes, not shares
    shift: int = 0  # out-of-bag votes are in units of 2**shift, so that no sum of them leaves float64
    keeps_leaf_rows: bool = False

    @functools.cached_property
    def packed(self) -> tuple[NDArray[np.uint16], Packing]:
        """The rows that trees grow on: flags are bits where a search can read them, in an order that is drawn."""
        params, n_features = self.params, self.codes.n_features
        has_cells = params.reads_cells(n_features)
        if params.reads_packed and self.target.outputs is None and self.target.n_classes <= self.codes.n_rows:
            if isinstance(self.codes, SparseCodes):
                return pack_stored(self.codes, has_cells=has_cells)
            if params.has_random_feature_order or (params.max_features or n_features) < n_features:
                return pack_flags(self.codes, find_cells(self.codes) if has_cells else None)
        return self.codes.rows, whole_codes(n_features)


def as_member(params: GrowParams, draw: Draw, *, draws_features: bool) -> GrowParams:
    """Parameters of a tree of a forest: trees that differ make up for each other, so that categories need no margin.

    draws_features: whether the trees, or their nodes, see features drawn at random.
    """
    is_alone = draw.kind == "whole" and not draws_features
    return params if is_alone else replace(params, cat_margin=0.0)


class Grown(NamedTuple):
    """One tree with its out-of-bag votes and the rows of its leaves; arrays that the plan does not want are empty."""

    tree: Tree
    oob_rows: NDArray[np.int32]
    oob_votes: NDArray[np.float64]  # (len(oob_rows), n_classes or 1)
    leaf_rows: NDArray[np.int32]  # rows of the bag that made the leaf values, in the order of the leaves


def grow_one(
    plan: Plan,
    tree: int,
    kernels: Any,
    control: NDArray[np.int64],
    room: int = FIRST_NODES,
    bench: Workbench | None = None,
) -> Grown:
    """Grow tree number `tree`; `room`: for how many nodes memory is taken at first; `bench`: what trees share."""
    counts = plan.draw.counts(tree)
    if plan.has_weight is not None:
        counts *= plan.has_weight
    built = counts
    if plan.honest_fraction is not None:
        built, valued = split_bag(counts, tree, plan.seed, plan.honest_fraction, plan.draw.groups)
    growth = grow_bag(plan, tree, built, kernels, control, room, bench)
    grown = growth.finish()
    if bench is not None:
        bench.give_back(growth)
    nothing = np.zeros(0, ROW)
    leaf_rows = growth.ids if plan.keeps_leaf_rows else nothing
    if plan.honest_fraction is not None and valued.any():  # a bag of one row has no second part
        grown = refit_bag(plan, grown, valued, kernels)
        leaf_rows = order_by_leaf(plan, grown, valued, kernels) if plan.keeps_leaf_rows else nothing
    oob = out_of_bag_rows(plan, counts) if plan.has_oob or plan.prunes_oob else nothing
    if plan.prunes_oob and len(oob):
        leaf = find_coded_leaves(grown, plan.codes, oob, kernels)
        grown = prune_on_rows(grown, leaf, true_target(plan, oob))
    if plan.ccp_alpha > 0.0:
        grown = prune_to_alpha(grown, plan.ccp_alpha)
    votes = np.zeros((0, 1))
    if plan.has_oob:
        leaf = find_coded_leaves(grown, plan.codes, oob, kernels)
        votes = leaf_votes(grown, leaf, is_hard=plan.is_hard, shift=plan.shift)
    return Grown(grown, oob, votes, leaf_rows)


def out_of_bag_rows(plan: Plan, counts: NDArray[np.int32]) -> NDArray[np.int32]:
    """Rows that a bag lacks, ascending; rows of weight 0 do not count."""
    is_out = counts == 0
    if plan.has_weight is not None:
        is_out &= plan.has_weight
    return np.flatnonzero(is_out).astype(ROW)


def out_of_bag_of(plan: Plan, tree: int) -> NDArray[np.int32]:
    """Rows that the bag of tree number `tree` lacks, ascending, drawn again."""
    return out_of_bag_rows(plan, plan.draw.counts(tree))


def find_leaves_out_of_bag(plan: Plan, number: int, tree: Tree, kernels: Any) -> NDArray[np.int32]:
    """The leaves of those rows in the tree."""
    return find_coded_leaves(tree, plan.codes, out_of_bag_of(plan, number), kernels)


class Workbench:
    """What the trees of a forest share: rows that are short, memory of finished trees, kernels of known arguments.

    Any thread may use it: taking and giving back are single steps.
    """

    def __init__(self, plan: Plan, kernels: Any) -> None:
        self.rows, self.packing = plan.packed
        self.grow = SameTypes(kernels.tree.driver.grow)
        self.fill = SameTypes(kernels.tree.node_stats.fill_tree)
        self.gather = SameTypes(kernels.data.bags.gather_bag)
        self.gathers = (
            plan.target.n_classes > 0
            and plan.target.outputs is None
            and plan.weights.is_unit
            and not plan.balances_bags
            and len(self.rows) >= GATHERED_ROWS
        )
        self.words = self.rows.view(np.uint64) if self.gathers else None
        self.finished: list[Growth] = []

    def take(self) -> Growth | None:
        """A finished tree, or None where every one is in use."""
        try:
            return self.finished.pop()
        except IndexError:
            return None

    def give_back(self, growth: Growth) -> None:
        """Keep the memory of a finished tree for the next."""
        self.finished.append(growth)


def grow_bag(
    plan: Plan,
    tree: int,
    counts: NDArray[np.int32],
    kernels: Any,
    control: NDArray[np.int64],
    room: int,
    bench: Workbench | None,
) -> Growth:
    """Grow a tree on a bag."""
    like = None if bench is None else bench.take()
    held = None if like is None else like.codes
    addends: NDArray[np.int64] | None
    if bench is not None and bench.gathers and int(counts.max()) > 1:
        ids, rows, weights, target, addends = gather_classes(plan, counts, bench, held)
    else:
        drawn = np.flatnonzero(counts != 0)  # of integers it takes three times as long
        weights, target, addends = weigh_bag(plan, drawn, counts.take(drawn))
        whole = plan.codes.rows if bench is None else bench.rows
        ids, rows = drawn.astype(ROW), take_codes(whole, drawn, held)
    bag, seed = Bag(ids, addends, None if bench is None else bench.packing), member_key(plan.seed, tree)
    codes = plan.codes.with_rows(rows)
    growth = Growth(codes, target, weights, plan.params, kernels, plan.monotone, bag, room, seed, like)
    growth.control = control
    if bench is not None:
        growth.grow_alike, growth.fill_alike = bench.grow, bench.fill
    growth.run()
    return growth


def gather_classes(
    plan: Plan, counts: NDArray[np.int32], bench: Workbench, held: NDArray[np.uint16] | None
) -> tuple[NDArray[np.int32], NDArray[np.uint16], Weights, Target, NDArray[np.int64]]:
    """Numbers and codes of the rows of a bag, their weights, target and addends, where every row weighs 1."""
    n_rows = int(np.count_nonzero(counts))
    ids, addends = np.empty(n_rows, ROW), np.empty((2, n_rows), SUM)
    rows = make_room(bench.rows, n_rows, held)
    is_product = plan.target.family == MOMENTS
    squares = bench.gather(
        None, counts, bench.words, plan.target.values, is_product, ids, rows.view(np.uint64), addends
    )
    return ids, rows, *count_weights(plan.weights, plan.target, addends, int(squares)), addends


def make_room(codes: NDArray[np.uint16], n_rows: int, held: NDArray[np.uint16] | None) -> NDArray[np.uint16]:
    """Memory for so many rows of codes, that of a finished tree if they fit."""
    room: NDArray[np.uint16] | None = None if held is None else held.base
    if room is None or len(room) < n_rows:
        room = np.empty((n_rows + (n_rows >> 5), codes.shape[1]), codes.dtype)
    return room[:n_rows]


def take_codes(
    codes: NDArray[np.uint16], rows: NDArray[np.integer[Any]], held: NDArray[np.uint16] | None
) -> NDArray[np.uint16]:
    """Codes of some rows, in the memory of a finished tree if they fit."""
    room = make_room(codes, len(rows), held)
    if len(rows) == len(codes):  # every row, in their order
        np.copyto(room, codes)
        return room
    # `take` needs an eighth of the time of codes[rows], and with "raise" it would copy once more
    return codes.take(rows, axis=0, out=room, mode="clip")


def weigh_bag(
    plan: Plan, rows: NDArray[np.integer[Any]], counts: NDArray[np.int32]
) -> tuple[Weights, Target, NDArray[np.int64] | None]:
    """Weights and target of the rows of a bag, and what they add to sums where that is at hand."""
    if plan.balances_bags:
        return (*balance_rows(plan, rows, counts), None)
    if plan.target.n_classes and plan.weights.is_unit and int(counts.max()) > 1:
        return bag_classes(plan.weights, plan.target, rows, counts)
    return (*bag_target(plan.weights, plan.target, rows, counts), None)


def balance_rows(plan: Plan, rows: NDArray[np.integer[Any]], counts: NDArray[np.int32]) -> tuple[Weights, Target]:
    """Weights and target of the rows of a bag all classes of which weigh the same."""
    if plan.target.outputs is not None:
        return balance_outputs(plan, rows, counts)
    classes = plan.target.truth[rows].astype(np.int64)
    values, held = held_weights(plan, rows, counts)
    factor = balance_bag(values, counts, classes, plan.target.n_classes)
    weights = fix_weights(held * factor[classes], len(rows))
    return weights, class_target(classes, plan.target.n_classes, weights)._replace(truth=plan.target.truth)


def held_weights(
    plan: Plan, rows: NDArray[np.integer[Any]], counts: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Weights of the rows of a bag: of one copy in fixed point, and of all copies."""
    held = counts.astype(np.float64)
    if plan.weights.is_unit:
        return np.ones(len(rows), np.int64), held
    values = plan.weights.values[rows]
    return values, held * np.ldexp(values.astype(np.float64), plan.weights.exponent - plan.weights.bits)


def balance_bag(
    values: NDArray[np.int64], counts: NDArray[np.int32], classes: NDArray[np.int64], n_classes: int
) -> NDArray[np.float64]:
    """What makes all classes of a bag weigh the same, (n_classes,)."""
    per_class = sum_products_of(values, counts.astype(np.int64), classes, n_classes)
    share = sum(per_class) / sum(total > 0 for total in per_class)
    return np.array([share / total if total else 0.0 for total in per_class])


def balance_outputs(plan: Plan, rows: NDArray[np.integer[Any]], counts: NDArray[np.int32]) -> tuple[Weights, Target]:
    """The same of several outputs of classes, whose factors are multiplied."""
    outputs = plan.target.outputs
    assert outputs is not None
    assert outputs.widths is not None
    values, held = held_weights(plan, rows, counts)
    codes = outputs.truth[:, rows].astype(np.int64)
    for classes, width in zip(codes, outputs.widths.tolist(), strict=True):
        held = held * balance_bag(values, counts, classes, width)[classes]
    weights = fix_weights(held, len(rows))
    target = weigh_labels(plan.target, rows, np.broadcast_to(weights.values, len(rows)))
    return weights, target._replace(bits=weights.bits)


def refit_bag(plan: Plan, tree: Tree, counts: NDArray[np.int32], kernels: Any) -> Tree:
    """Give the leaves the values of the rows of the bag that took no part in choosing the tests."""
    rows = np.flatnonzero(counts).astype(ROW)
    leaf = find_coded_leaves(tree, plan.codes, rows, kernels)
    weights, _, _ = weigh_bag(plan, rows, counts[rows])
    held = None
    if not weights.is_unit:
        held = np.ldexp(weights.values.astype(np.float64), weights.exponent - weights.bits)
    return refit_leaves(tree, leaf, true_target(plan, rows), held, criterion=plan.params.criterion)


def true_target(plan: Plan, rows: NDArray[np.int32]) -> NDArray[Any]:
    """Classes of rows as codes, or their targets in the user's units."""
    truth = plan.target.truth[rows]
    return truth.astype(np.int64) if plan.target.n_classes else np.ldexp(truth, plan.target.exponent)


def order_by_leaf(plan: Plan, tree: Tree, counts: NDArray[np.int32], kernels: Any) -> NDArray[np.int32]:
    """Rows with a count in the order of the leaves they end in; those of one leaf ascending."""
    rows = np.flatnonzero(counts).astype(ROW)
    leaf = find_coded_leaves(tree, plan.codes, rows, kernels)
    return rows[np.argsort(leaf_row_offsets(tree)[leaf], kind="stable")]


def leaf_row_offsets(tree: Tree) -> NDArray[np.int64]:
    """Where the rows of each node begin among the rows in the order of their leaves, shape (n_nodes,).

    The rows of a node stand side by side, those of its first branch first: from the root down, the numbers of rows
    tell where they begin. A node that was pruned to a leaf has the rows that its branches had.
    """
    size = tree.n_rows.astype(np.int64)
    begin = np.zeros(tree.n_nodes, np.int64)
    for tier in find_tiers(tree):
        at = begin[tier.nodes]
        for has, child in tier.branches:
            begin[child] = at[has]
            at[has] += size[child]
    return begin


def leaf_votes(tree: Tree, leaf: NDArray[np.int32], *, is_hard: bool, shift: int = 0) -> NDArray[np.float64]:
    """The votes of leaves: class shares or one class, (len(leaf), n_classes); or values, (len(leaf), n_outputs).

    Values are in units of `2**shift`: a sum over trees of targets near the end of float64 would overflow.
    """
    if not tree.n_classes:
        values = tree.threshold[leaf][:, None] if tree.answers is None else tree.answers[leaf]
        return values if shift == 0 else np.ldexp(values, -shift)
    if not is_hard:
        return leaf_shares(tree, leaf)
    votes = np.zeros((len(leaf), tree.n_classes))
    votes[np.arange(len(leaf)), tree.leaf_class[leaf]] = 1.0
    return votes


def vote_again(plan: Plan, forest: Forest, sums: OutOfBagSums, kernels: Any) -> None:
    """Add the out-of-bag votes of trees that were grown before, without them or with votes of the other kind."""
    for t in range(len(forest)):
        rows = np.flatnonzero(plan.draw.counts(t) == 0).astype(ROW)
        tree = forest[t]
        leaf = find_coded_leaves(tree, plan.codes, rows, kernels)
        sums.add(rows, leaf_votes(tree, leaf, is_hard=plan.is_hard, shift=plan.shift))


class ForestGrowth:
    """A forest under way: takes trees in their order, whatever order they were grown in.

    Parameters
    ----------
    plan : Plan
    legend : Legend
    out_of_bag : OutOfBagSums, optional
        Where votes on out-of-bag rows are added up; needed where `plan.has_oob`.

    Attributes
    ----------
    on_tree : callable, optional
        Called after each tree that was taken, in the thread that called `run`.
    """

    def __init__(self, plan: Plan, legend: Legend, out_of_bag: OutOfBagSums | None = None) -> None:
        self.plan = plan
        self.legend = legend
        self.out_of_bag = out_of_bag
        self.parts = ForestParts()  # of as many trees as `run` is asked for
        self.leaf_rows: list[NDArray[np.int32]] = []
        self.room = FIRST_NODES  # for nodes of the next trees: doubling it as they grow took a tenth of their time
        self.bench: Workbench | None = None
        self.begun: Forest | None = None
        self.on_tree: Callable[[], None] | None = None

    def resume(self, forest: Forest, leaf_rows: list[NDArray[np.int32]], kernels: Any) -> None:
        """Begin with the trees that an earlier run of the same plan has grown; their votes are cast again."""
        self.begun, self.leaf_rows = forest, list(leaf_rows)
        if self.out_of_bag is not None:
            vote_again(self.plan, forest, self.out_of_bag, kernels)

    def add(self, grown: Grown) -> None:
        """Take the next tree."""
        self.parts.add(grown.tree)
        self.room = max(self.room, grown.tree.n_nodes + grown.tree.n_nodes // 8)
        if self.plan.keeps_leaf_rows:
            self.leaf_rows.append(grown.leaf_rows)
        if self.out_of_bag is not None:
            self.out_of_bag.add(grown.oob_rows, grown.oob_votes)
        if self.on_tree is not None:
            self.on_tree()

    def grow(self, tree: int, kernels: Any, control: NDArray[np.int64]) -> Grown:
        """Grow tree number `tree`; any thread may."""
        return grow_one(self.plan, tree, kernels, control, self.room, self.bench)

    def group_size(self, n_trees: int, n_workers: int) -> int:
        """Trees that a task grows one after the other: several of a small table, but four tasks for each worker."""
        return max(1, min(GROUP_ROWS // self.plan.codes.n_rows, n_trees // (4 * n_workers)))

    def run(self, first: int, n_trees: int, kernels: Any, n_workers: int, *, is_short: bool, verbose: bool) -> Forest:
        """Grow trees first .. first + n_trees, but for those that it began with."""
        self.parts = ForestParts(n_trees)
        self.bench = Workbench(self.plan, kernels)
        n_begun = 0 if self.begun is None else len(self.begun)
        for tree in self.begun or ():
            self.parts.add(tree)

        end = first + n_trees
        size = self.group_size(n_trees - n_begun, n_workers)
        starts = range(first + n_begun, end, size)

        def work(task: int, control: NDArray[np.int64]) -> list[Grown]:
            trees = range(starts[task], min(starts[task] + size, end))
            return [self.grow(tree, kernels, control) for tree in trees]

        def add_all(_: int, group: list[Grown]) -> None:
            for grown in group:
                self.add(grown)

        run_tasks(
            work,
            len(starts),
            n_workers,
            on_done=add_all,
            label="growing",
            n_units=n_trees - n_begun,
            verbose=verbose,
            is_short=is_short,
        )
        self.bench = None  # its memory is free before that of the forest is taken
        return self.parts.join(self.legend)
