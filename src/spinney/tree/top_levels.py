"""A tree whose rows are in parts: its top by sums over all parts, its subtrees on rows that were gathered.

    root ─► open nodes ─► sums by feature and code ─► best test ─► children ─► too many rows to be held: open
                ▲                                                     │        else: a subtree, finished by the driver
                └─────────────────────────────────────────────────────┘
    top and pieces ─► join_pieces ─► the tree, numbered as the driver numbers it

Draws of a node follow from its key, which follows from the way to it: whoever knows the key of a node can grow what is
below it. Sums of nodes are whole numbers, those of floats are joined in the order of the branches, as in memory.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._jit import interpreted
from spinney._node_layout import feature_of, kind_of, missing_of
from spinney._types import (
    DEPTH_FIRST,
    LEAF,
    LIST_HI,
    LIST_LO,
    LOW,
    MOMENTS,
    N_CODES,
    N_FREE,
    N_LEAVES,
    N_NODES,
    N_WORDS,
    OFFSET,
    SUBSET,
    SUM,
    TARGET,
    THRESHOLD,
    WEIGHT,
)
from spinney.kernels.common.structs import GivenSums, NodeSums, Rows, TopTests
from spinney.tree.grow import Growth
from spinney.tree.grow_params import count_levels
from spinney.tree.structure import Tree
from spinney.tree.subset_words import PACKED, pack_bits, pack_levels, unpack_bits
from spinney.tree.workspace import make_random

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from spinney.kernels.common.structs import StatUnits
    from spinney.table.coding import Codes
    from spinney.table.fixed_point import Target, Weights
    from spinney.tree.grow_params import GrowParams

OPEN, GATHER, CLOSED, SPLIT = "open", "gather", "closed", "split"  # what becomes of a node of the top
LEAST_ROWS = 64  # of a node of the top: a search by sums leaves out what it does for a few rows


# --- The top --------------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class TopNode:
    """A node of the top of a tree."""

    n_rows: int
    depth: int
    key: np.uint64
    totals: NDArray[np.int64]  # (2,) weight and sum of its targets, or (n_classes,) weights of three classes or more
    state: str = OPEN
    is_final: bool = False  # depth, size or purity make it a leaf
    n_given: int = 0  # features whose sums the next pass makes, in the order of the search
    feature: int = 0  # here and below: the test, once it is split
    kind: int = 0
    cut: int = 0  # last code of branch 0
    missing: int = 0
    n_branches: int = 0
    cut_value: float = 0.0
    first_child: int = 0
    score: float = 0.0
    words: NDArray[np.uint64] | None = None  # levels of branch 0, plain
    n_levels: int = 0
    is_packed: bool = False  # so is its subset in the finished tree
    others_first: bool = False  # levels that no row has take branch 0

    @property
    def kept_words(self) -> NDArray[np.uint64] | None:
        """The words of its subset in the finished tree."""
        if self.words is None or not self.is_packed:
            return self.words
        return pack_levels(unpack_bits(self.words)[: self.n_levels], others_first=self.others_first)


class TopGrowth(Growth):
    """The top of a tree under way.

    Parameters
    ----------
    codes : Codes
        What codes stand for; its rows are not looked at.
    target, weights
        Of the bag, with one value each, which is not looked at: units and totals are.
    params : GrowParams
        Depth first, by sums of targets; no monotone constraints.
    kernels : kernel modules
    root : TopNode
    most_rows : int
        Rows of the largest node that is gathered.
    """

    def __init__(
        self,
        codes: Codes,
        target: Target,
        weights: Weights,
        params: GrowParams,
        kernels: Any,
        root: TopNode,
        most_rows: int,
    ) -> None:
        super().__init__(codes._replace(rows=codes.rows[:1]), target, weights, params, kernels)
        self.most_rows = max(most_rows, LEAST_ROWS)
        self.is_moments = target.family == MOMENTS
        self.top: list[TopNode] = []
        self.add_node(root)

    @property
    def n_classes(self) -> int:
        """Classes, where sums are kept for each; 0 for numbers and two classes."""
        return 0 if self.target.family == MOMENTS else self.target.n_classes

    @property
    def width(self) -> int:
        """Sums of a code; see `GivenSums`."""
        if self.n_classes:
            return self.n_classes + 1
        return 2 if self.weights.is_unit else 3

    def allocate(self, codes: Codes, room: int) -> None:
        """Make the structs; no rows are packed or listed."""
        self.settings = self.settings._replace(is_packed=False, most_listed=0)
        super().allocate(codes, room)
        self.state[LIST_HI] = -1

    def make_scratch(self, n_rows: int) -> Any:
        """Make the scratch that a search of rows takes, with room for the sums of any feature."""
        scratch = super().make_scratch(n_rows)
        most = int(self.features[N_CODES].max(initial=1)) + 1
        random = None if scratch.random is None else make_random(most)
        histogram = np.zeros(most * max(self.width, 4), SUM)
        return scratch._replace(histogram=histogram, random=random, subtrees=None, bits=None, fours=None)

    def add_node(self, node: TopNode) -> None:
        """Take a node, and say what becomes of it."""
        settings, n = self.settings, node.n_rows
        node.is_final = node.depth >= settings.max_depth or n < settings.min_samples_split
        node.is_final |= n < 2 * settings.min_samples_leaf or self.is_pure(node)
        node.n_given = settings.n_try
        node.state = GATHER if n <= self.most_rows else CLOSED if node.is_final else OPEN
        if node.is_final and self.target.n_classes:
            node.state = CLOSED  # its sums say all that a leaf of classes needs
        self.top.append(node)

    def is_pure(self, node: TopNode) -> bool:
        """Whether all rows have one class; of numbers that is not known before a pass."""
        if self.target.n_classes == 0:
            return False
        if self.n_classes:
            return int(np.count_nonzero(node.totals)) == 1
        return int(node.totals[1]) in {0, int(node.totals[0])}

    def list_open(self) -> list[int]:
        """Numbers of the open nodes."""
        return [k for k, node in enumerate(self.top) if node.state == OPEN]

    def centre_of(self, node: TopNode) -> int:
        """What a search takes off every target of a node."""
        return int(node.totals[1] // node.totals[0]) if self.settings.is_centred else 0

    def list_features(self, node: TopNode) -> list[int]:
        """The features whose sums a search is given, in its order."""
        n_features = self.features.shape[1]
        order = np.arange(n_features, dtype=np.int64)
        if self.settings.is_shuffled:
            key = fold(node.key, interpreted().tree.search.DRAWS)
            permutation, places = np.arange(n_features, dtype=np.int64), np.zeros(n_features, np.int64)
            self.kernels.tree.levels.order_features(key, permutation, places, order)
        return order[: node.n_given].tolist()

    def count_sums(self, feature: int) -> int:
        """Sums of a feature of one node."""
        return (int(self.features[N_CODES, feature]) + 1) * self.width

    def search_node(
        self, number: int, features: Sequence[int], sums: NDArray[np.int64], squares: int, *, is_even: bool
    ) -> None:
        """Split a node by the sums of some features, end to end; is_even: all its targets are one number."""
        node = self.top[number]
        if is_even:
            node.state, node.is_final = CLOSED, True
            return
        first = np.full(self.features.shape[1], -1, np.int64)
        at = 0
        for feature in features:
            first[feature] = at
            at += self.count_sums(feature)
        classes = node.totals if self.n_classes else np.zeros(0, SUM)
        moments = [0, 0, 0] if self.n_classes else [*node.totals.tolist(), squares]
        given = GivenSums(first, sums, np.array(moments, SUM), classes, np.full(1, -1, SUM))
        frontier, state = self.frontier._replace(control=self.control), self.state
        if self.settings.most_words:
            self.nodes.subsets[:] = 0
        frontier.node[0], frontier.key[0] = 0, node.key.astype(np.int64)
        frontier.lower[0], frontier.upper[0], frontier.cut[0] = -math.inf, math.inf, -1
        frontier.constant[0] = 0
        self.nodes.begin[0], self.nodes.n_rows[0] = 0, node.n_rows
        state[N_WORDS] = 0
        rows = Rows(self.codes, self.codes.view(np.uint64), self.addends, self.ids, self.lists, *self.ahead, None)
        scratch = self.scratch._replace(given=given)
        is_found, score = self.kernels.tree.levels.search_given(
            0, rows, self.table, self.settings, self.nodes, frontier, scratch
        )
        if given.lacking[0] >= 0:
            node.n_given = min(2 * node.n_given, self.features.shape[1])
            return
        node.score = float(score)
        if not is_found:
            node.state = CLOSED
            return
        feature = int(frontier.feature[0])
        node.feature, node.kind, node.cut = feature, int(frontier.kind[0]), int(frontier.cut[0])
        node.missing, node.n_branches = int(frontier.missing[0]), int(frontier.n_branches[0])
        node.cut_value = float(frontier.cut_value[0])
        if node.kind == SUBSET:
            n_words = (int(self.features[N_CODES, feature]) + 63) >> 6
            node.words = self.nodes.subsets[:n_words].copy()
            node.n_levels = int(self.features[N_CODES, feature])
            node.is_packed = bool(interpreted().tree.settled_levels.packs(node.n_levels, self.settings))
        self.split(node, sums[first[feature] : first[feature] + self.count_sums(feature)].reshape(-1, self.width))

    def split(self, node: TopNode, sums: NDArray[np.int64]) -> None:
        """Carry out the test of a node; sums: (n_codes + 1, width) of its feature."""
        is_left = np.arange(len(sums)) <= node.cut
        if node.words is not None:
            is_left = np.append(False, unpack_bits(node.words)[: len(sums) - 1])
        branch = np.where(is_left, 0, 1)
        branch[0] = max(node.missing, 0)
        weight = sums[:, :-1].sum(axis=1) if self.n_classes else sums[:, 0 if self.weights.is_unit else 2]
        rows = sums[:, 0]
        if self.n_classes:
            rows = weight if self.weights.is_unit else sums[:, -1]
        held = [int(weight[branch == b].sum()) for b in (0, 1)]
        heavier = 0 if held[0] > held[1] else 1
        if node.missing < 0:
            node.missing = heavier
        node.others_first = node.missing == 0 or (node.missing == 2 and heavier == 0)
        if node.words is not None and (node.is_packed or not self.settings.is_random):
            listed = ((branch == int(node.others_first)) & (rows > 0))[1:]
            node.words = pack_bits(listed ^ node.others_first)
        node.state, node.first_child = SPLIT, len(self.top)
        for b in range(node.n_branches):
            mine = branch == b
            totals = sums[mine, :-1].sum(axis=0)
            if not self.n_classes:
                totals = np.array([weight[mine].sum(), sums[mine, 1].sum()])
            key = fold(node.key, interpreted().tree.driver.CHILD_KEYS + np.uint64(b))
            self.add_node(TopNode(int(rows[mine].sum()), node.depth + 1, key, totals.astype(SUM)))

    def tests(self) -> TopTests:
        """The tests so far, as rows are sent on by."""
        words: list[NDArray[np.uint64]] = [np.zeros(0, np.uint64)]
        n_words = 0
        columns = np.zeros((5, len(self.top)), np.int64)
        for k, node in enumerate(self.top):
            if node.state != SPLIT:
                continue
            columns[:, k] = node.feature, node.kind, node.cut, node.missing, node.first_child
            if node.words is not None:
                columns[2, k] = n_words
                words.append(node.words)
                n_words += len(node.words)
        return TopTests._make([*columns, np.concatenate(words)])


def code_tests(tree: Tree, codes: Codes) -> TopTests:
    """The tests of a finished tree of binary nodes on the codes of its table, as rows are sent on by."""
    kind, feature = kind_of(tree.test), feature_of(tree.test)
    cut = np.zeros(tree.n_nodes, np.int64)
    words: list[NDArray[np.uint64]] = [np.zeros(0, np.uint64)]
    n_words = 0
    for node in np.flatnonzero(tree.first_child):
        argument = float(tree.threshold[node])
        if kind[node] == THRESHOLD:
            first, n_codes = codes.features[[OFFSET, N_CODES], feature[node]]
            cut[node] = np.searchsorted(codes.edges[LOW, first : first + n_codes], argument, side="right")
        else:
            words.append(pack_bits(tree.subset(int(node))))  # plain, as while trees grow
            cut[node] = n_words
            n_words += len(words[-1])
    missing, first_child = missing_of(tree.test), tree.first_child.astype(np.int64)
    return TopTests(feature, kind, cut, missing, first_child, np.concatenate(words))


def fold(key: np.uint64, part: np.uint64) -> np.uint64:
    """The key of a part of a place."""
    with np.errstate(over="ignore"):
        folded: np.uint64 = interpreted().common.rng.fold(key, part)
    return folded


def root_key(seed: int) -> np.uint64:
    """The key of the root of a tree."""
    return fold(np.uint64(seed), interpreted().tree.driver.CHILD_KEYS)


# --- Subtrees -------------------------------------------------------------------------------------------------------


class Piece(NamedTuple):
    """What is below a node of the top: nodes in their order, from itself on, with what their rows add up to."""

    test: NDArray[np.uint32]
    first_child: NDArray[np.int32]  # counted from the first node of the piece
    threshold: NDArray[np.float64]
    n_rows: NDArray[np.uint32]
    weight: NDArray[np.int64]
    ones: NDArray[np.int64]
    means: NDArray[np.float64] | None
    impurity: NDArray[np.float64]
    subsets: NDArray[np.uint64]
    distributions: NDArray[np.float64]


class SubtreeGrowth(Growth):
    """What is below a node of the top, on its rows; `target`, `weights`: of these rows, in the units of the bag."""

    def begin(self, node: TopNode, scale: float) -> None:
        """Open the node, unless it is a leaf; scale: see `StatUnits`."""
        nodes, frontier, state, truth = self.nodes, self.frontier, self.state, self.target.truth
        self.scale = scale
        nodes.test[0], nodes.first_child[0], nodes.begin[0], nodes.n_rows[0] = LEAF, 0, 0, len(truth)
        nodes.lower[0], nodes.upper[0] = -math.inf, math.inf
        state[N_NODES] = state[N_LEAVES] = 1
        state[LIST_LO], state[LIST_HI] = 0, -1
        if node.is_final or bool(np.all(truth == truth[0])):
            return
        state[N_FREE] -= 1
        slot = int(frontier.free[state[N_FREE]])
        frontier.node[slot], frontier.depth[slot], frontier.key[slot] = 0, node.depth, node.key.astype(np.int64)
        frontier.lower[slot], frontier.upper[slot] = -math.inf, math.inf
        frontier.cut[slot], frontier.gain[slot] = -1, math.inf
        frontier.weight[slot] = len(truth) if len(self.addends) == 1 else self.addends[WEIGHT].sum()
        frontier.total[slot] = self.addends[TARGET].sum()  # see `kernels.tree.branch_sums`
        interpreted().common.queue.push(frontier, DEPTH_FIRST, slot)

    def take_piece(self) -> Piece:
        """The nodes, summed up."""
        summed = self.sum_up()
        out = summed.out
        return Piece(
            out.test,
            out.first_child,
            out.threshold,
            out.n_rows,
            summed.sums.weight,
            summed.sums.ones,
            summed.means,
            out.impurity,
            self.nodes.subsets[: int(self.state[N_WORDS])].copy(),
            summed.distributions,
        )


# --- The tree -------------------------------------------------------------------------------------------------------


class Numbers(NamedTuple):
    """Where the nodes of top and pieces stand in the tree."""

    top: list[int]
    places: dict[int, NDArray[np.int64]]  # of the nodes of each piece
    words: dict[int, int]  # where the words of a test of the top, or of a piece, begin
    subsets: list[NDArray[np.uint64]]
    n_nodes: int


def number_tree(top: list[TopNode], pieces: dict[int, Piece]) -> Numbers:
    """Number the nodes in the order that the driver makes them in: depth first, the last branch first."""
    found = Numbers([0] * len(top), {}, {}, [np.zeros(0, np.uint64)], 1)
    n_nodes, n_words, stack = 1, 0, [0]
    while stack:
        k = stack.pop()
        node = top[k]
        found.words[k] = n_words
        if node.state == SPLIT:
            for b in range(node.n_branches):
                found.top[node.first_child + b] = n_nodes + b
                stack.append(node.first_child + b)
            n_nodes += node.n_branches
            words = node.kept_words
        else:
            n_below = len(pieces[k].test) - 1
            found.places[k] = np.append(found.top[k], np.arange(n_nodes, n_nodes + n_below))
            n_nodes += n_below
            words = pieces[k].subsets
        if words is not None:
            found.subsets.append(words)
            n_words += len(words)
    return found._replace(n_nodes=n_nodes)


def join_pieces(growth: TopGrowth, pieces: dict[int, Piece], scale: float) -> Tree:
    """The tree of a top and what is below the nodes that it leaves; scale: see `StatUnits`."""
    top, n_classes = growth.top, growth.target.n_classes
    growth.scale = scale
    numbers = number_tree(top, pieces)
    n = numbers.n_nodes
    test, n_rows = np.zeros((2, n), np.uint32)
    first_child = np.zeros(n, np.int32)
    threshold, impurity = np.zeros((2, n))
    sums = NodeSums(*np.zeros((2, n), SUM))
    means = None if n_classes else np.zeros(n)
    distributions = np.zeros((0, n_classes))
    mixed: list[NDArray[np.int64]] = []
    held: list[NDArray[np.float64]] = [distributions]
    for k, piece in pieces.items():
        at, base = numbers.places[k], int(numbers.places[k][-1]) + 1 - len(piece.test)
        has_child = piece.first_child != 0
        first_child[at] = np.where(has_child, piece.first_child + base, 0)
        value = piece.threshold.copy()
        value[has_child & (kind_of(piece.test) == SUBSET)] += numbers.words[k]
        test[at], n_rows[at], threshold[at], impurity[at] = piece.test, piece.n_rows, value, piece.impurity
        sums.weight[at], sums.ones[at] = piece.weight, piece.ones
        if means is not None and piece.means is not None:
            means[at] = piece.means
        if n_classes:
            is_mixed = ~has_child & (piece.threshold < 0.0)
            mixed.append(at[is_mixed])
            held.append(piece.distributions[(-1 - piece.threshold[is_mixed]).astype(np.int64)])
    if mixed:
        order = np.argsort(np.concatenate(mixed))
        threshold[np.concatenate(mixed)[order]] = -1.0 - np.arange(len(order))
        distributions = np.concatenate(held)[order]
    arrays = (test, first_child, threshold, n_rows)
    join_top(growth, numbers, arrays, sums, means, impurity)
    return Tree(
        test=test,
        first_child=first_child,
        threshold=threshold,
        subsets=np.concatenate(numbers.subsets),
        n_rows=n_rows,
        weight=(sums.weight * growth.stat_units().weight_unit).astype(np.float64),
        impurity=impurity,
        impurity_exponent=growth.impurity_exponent(),
        distributions=distributions,
        n_classes=n_classes,
        n_levels=count_levels(growth.features),
    )


def join_top(
    growth: TopGrowth,
    numbers: Numbers,
    arrays: tuple[NDArray[Any], ...],
    sums: NodeSums,
    means: NDArray[np.float64] | None,
    impurity: NDArray[np.float64],
) -> None:
    """Write the nodes of the top, whose sums are those of their branches, from below; as `kernels.tree.node_stats`."""
    stats, leaf_means = interpreted().tree.node_stats, interpreted().common.leaf_means
    units, n_classes = growth.stat_units(), growth.target.n_classes
    class_sums = np.empty(n_classes, SUM) if n_classes else None
    test, first_child, threshold, n_rows = arrays
    for k in range(len(growth.top) - 1, -1, -1):
        node, at = growth.top[k], numbers.top[k]
        if node.state != SPLIT:
            continue
        child = numbers.top[node.first_child]
        end = child + node.n_branches
        test[at] = interpreted().common.node_layout.pack_test(node.feature, node.missing, node.kind)
        first_child[at], n_rows[at] = child, node.n_rows
        threshold[at] = node.cut_value if node.kind == THRESHOLD else numbers.words[k] + PACKED * node.is_packed
        sums.weight[at] = sums.weight[child:end].sum()
        leaf_means.join_values(at, child, end, sums.weight, means, impurity)
        stats.join_classes(at, child, end, node.score, units, sums, class_sums, impurity)
        stats.judge_two_classes(at, units.criterion, sums, class_sums, impurity)


# --- Leaves that are too large to be held ---------------------------------------------------------------------------


class LeafFigures(NamedTuple):
    """What is known of the targets of a leaf of numbers; see `kernels.common.leaf_means`."""

    low: float
    high: float
    mean: float  # of (target - low) / (high - low)
    variance: float
    total: int  # of targets in the units of `scale`


def close_leaf(growth: TopGrowth, node: TopNode, figures: LeafFigures | None, scale: float) -> Piece:
    """A leaf of the top; figures: of numbers."""
    n_classes, weight = growth.target.n_classes, int(node.totals.sum() if growth.n_classes else node.totals[0])
    value, impurity, mean, ones = 0.0, 0.0, 0.0, 0
    distributions = np.zeros((0, n_classes))
    units: StatUnits = growth.stat_units()
    if figures is not None:
        value, mean, impurity = settle_numbers(figures, weight, units, scale)
    else:
        per_class = node.totals
        if not growth.n_classes:
            ones = int(node.totals[1])
            per_class = np.array([weight - ones, ones])[:n_classes]
            impurity = interpreted().common.criteria.impurity_of_two(units.criterion, ones / weight)
        present = np.flatnonzero(per_class)
        value = float(present[0])
        if len(present) > 1:
            value = -1.0
            distributions = (per_class * units.weight_unit).astype(np.float64).reshape(1, -1)
            if growth.n_classes:
                impurity = interpreted().common.criteria.impurity_of_classes(units.criterion, per_class, weight)
    return Piece(
        np.zeros(1, np.uint32),
        np.zeros(1, np.int32),
        np.array([value]),
        np.array([node.n_rows], np.uint32),
        np.array([weight]),
        np.array([ones]),
        None if n_classes else np.array([mean]),
        np.array([impurity]),
        np.zeros(0, np.uint64),
        distributions,
    )


def settle_numbers(figures: LeafFigures, weight: int, units: StatUnits, scale: float) -> tuple[float, float, float]:
    """Value, mean and variance of a leaf of numbers, as `settle_value_leaf`."""
    low, high, mean, variance, total = figures
    values = units.values
    value, centred, spread = low, (low - values.centre) * values.stretch, 0.0
    if low != high:
        value = float(total) / float(weight) / (scale * values.share) / values.stretch + values.centre
        value = min(max(value, low), high)
        width = (high - low) * values.stretch
        centred += mean * width
        spread = variance * width * width
    return value * units.value_unit * units.value_unit_2, centred, spread
