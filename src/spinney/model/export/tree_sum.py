"""What every export is written from: trees whose leaves add to sums, and the steps from the sums to the answers.

The sums of a row begin at `start`. Its trees are asked in their order; each leads it to a leaf, whose entries are added
to the sums they name. Then the steps are taken, one after the other, on all sums at once:

    divide, multiply      by one number
    scale                 by a power of two
    exp                   that of `kernels.common.elementary`, in additions, products and shifts of bits alone
    sort                  the sums ascend
    median                the weighted median of the sums
    contrast              votes of each class against those of the others: (v - (total - v) / others) / weight
    logistic              two probabilities from the log-odds of the second class
    softmax               probabilities from scores

Every sum, product and comparison is the one that prediction makes, in its order: a language of float64 gives the same
bits.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._types import LEAF, MULTIWAY, SUBSET, THRESHOLD
from spinney.model.predictors import RoundPredictor, TreePredictor, VotePredictor, WeightedPredictor
from spinney.model.weighted_votes import leaf_classes, sum_weights, weigh_forest
from spinney.tree.linear import LinearLeaves
from spinney.tree.predict import leaf_shares

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from spinney.model.base_predictor import Predictor
    from spinney.table.dates import DateColumn
    from spinney.tree.forest import Forest
    from spinney.tree.structure import Tree

EVERY = -1  # as missing branch: a row takes all of them
MOST_FACTOR, LEAST_FACTOR = 1023, -1074  # powers of two that float64 holds

Entries = list[tuple[int, float]]  # of a leaf: which sum, what is added
Step = tuple[str, dict[str, Any]]


class Column(NamedTuple):
    """A column of the rows.

    Attributes
    ----------
    name : str
        `x0`, `x1`, ... where the model was fitted without names.
    levels : tuple, or None for numbers
    """

    name: str
    levels: tuple[str | bool | int | float, ...] | None


class Nodes(NamedTuple):
    """The nodes of all trees, end to end; arrays (n_nodes,).

    Attributes
    ----------
    kind : int64
        LEAF, THRESHOLD, SUBSET or MULTIWAY.
    column : int64
        What is tested; -1 of a leaf.
    cut : float64
        Values up to it take branch 0, those above it branch 1. 0 where nothing is compared.
    subset : int64
        Which of `TreeSum.subsets` takes branch 0; 0 where none is asked for.
    first : int64
        The node of branch 0, those of the others behind it; of a leaf its number.
    missing : int64
        Branch of missing values, or EVERY; of a leaf 0.
    share : float64
        Which part of a row that takes every branch takes the one to this node.
    """

    kind: NDArray[np.int64]
    column: NDArray[np.int64]
    cut: NDArray[np.float64]
    subset: NDArray[np.int64]
    first: NDArray[np.int64]
    missing: NDArray[np.int64]
    share: NDArray[np.float64]


class Surrogate(NamedTuple):
    """A test that stands in for one whose value is missing.

    Attributes
    ----------
    column : int
    cut : float
        0 where a subset is asked for.
    subset, known : int
        Of `TreeSum.subsets`: the levels that take branch 0, and those that it can decide on; -1 for a threshold.
    is_reversed : bool
        Whether branches 0 and 1 are swapped.
    """

    column: int
    cut: float
    subset: int
    known: int
    is_reversed: bool


class Term(NamedTuple):
    """A term of the linear model of a leaf: `coefficient * (value - fill)`, nothing where the value is missing."""

    column: int
    coefficient: float
    fill: float


@dataclass(frozen=True, eq=False)
class TreeSum:
    """A model as trees and sums.

    Attributes
    ----------
    columns : tuple of Column
    classes : tuple, or None for numbers
    roots : list of int
        The first node of each tree.
    nodes : Nodes
    leaves : list of entries
        What each leaf adds, by its number.
    subsets : list of tuples of int
        Levels, ascending.
    surrogates : dict of lists, by node
    terms : dict of lists, by number of the leaf
    start : tuple of float
        The sums before the first tree.
    steps : tuple of (name, arguments)
        From sums to answers.
    choice : {"answers", "sums", "sign"}
        The class is that of the highest answer or sum, the first among equals; or the second if the sum is positive.
    dates : tuple of DateColumn
        Dates of which some columns are parts: exports read the parts, and say what they are.
    """

    columns: tuple[Column, ...]
    classes: tuple[Any, ...] | None
    roots: list[int]
    nodes: Nodes
    leaves: list[Entries]
    subsets: list[tuple[int, ...]]
    surrogates: dict[int, list[Surrogate]]
    terms: dict[int, list[Term]]
    start: tuple[float, ...]
    steps: tuple[Step, ...]
    choice: str = "answers"
    dates: tuple[DateColumn, ...] = ()

    @property
    def n_answers(self) -> int:
        """Numbers, or probabilities, that a row gets."""
        if self.classes is not None:
            return len(self.classes)
        return 1 if any(name == "median" for name, _ in self.steps) else len(self.start)

    @cached_property
    def has_spread(self) -> bool:
        """Whether a row may take several branches."""
        return bool(np.any(self.nodes.missing == EVERY))

    def refuse_linear_sums(self, language: str) -> None:
        """Raise where trees with linear leaves, of which imported models have many, add up."""
        if self.terms and len(self.roots) > 1:
            raise ValueError(
                f"sums of trees with linear leaves are not written in {language}: export them to c, python, javascript "
                "or json"
            )

    @cached_property
    def used(self) -> list[int]:
        """The columns that some test or term asks for, ascending."""
        found = set(self.nodes.column[self.nodes.kind != LEAF].tolist())
        found |= {test.column for tests in self.surrogates.values() for test in tests}
        return sorted(found | {term.column for terms in self.terms.values() for term in terms})

    def n_branches(self, node: int) -> int:
        """How many branches a node has."""
        if self.nodes.kind[node] == LEAF:
            return 0
        missing = int(self.nodes.missing[node])
        if self.nodes.kind[node] == MULTIWAY:
            n_levels = len(self.columns[self.nodes.column[node]].levels or ())
            return n_levels + (missing == n_levels)
        return 3 if missing == 2 else 2

    def tree_of(self, number: int) -> range:
        """The nodes of a tree, from its root on."""
        ends = [*self.roots, len(self.nodes.kind)]
        return range(ends[number], ends[number + 1])

    @cached_property
    def depths(self) -> NDArray[np.int64]:
        """Tests above each node, (n_nodes,)."""
        depths = np.zeros(len(self.nodes.kind), np.int64)
        for node in np.flatnonzero(self.nodes.kind != LEAF).tolist():  # parents stand before their children
            first = int(self.nodes.first[node])
            depths[first : first + self.n_branches(node)] = depths[node] + 1
        return depths


class TreeSumBuilder:
    """Takes trees, one after the other, and makes a `TreeSum` of them.

    Parameters
    ----------
    predictor : Predictor
        Whose columns and classes they are for.
    """

    def __init__(self, predictor: Predictor) -> None:
        schema = predictor.schema
        names = schema.names or tuple(f"x{j}" for j in range(schema.n_features))
        self.columns = tuple(Column(*pair) for pair in zip(names, schema.levels, strict=True))
        self.classes = None if predictor.classes is None else tuple(predictor.classes.tolist())
        self.dates = tuple(dates for dates in schema.dates or () if dates is not None)
        self.roots: list[int] = []
        self.parts: list[Nodes] = []
        self.leaves: list[Entries] = []
        self.subsets: dict[tuple[int, ...], int] = {}
        self.surrogates: dict[int, list[Surrogate]] = {}
        self.terms: dict[int, list[Term]] = {}
        self.n_nodes = 0

    def add(self, tree: Tree, entries: Iterable[Entries]) -> None:
        """Append a tree; entries: what its leaves add, in the order of nodes."""
        base, n_leaves = self.n_nodes, len(self.leaves)
        number = n_leaves + np.cumsum(tree.is_leaf) - 1
        self.leaves.extend(entries)
        subset = np.zeros(tree.n_nodes, np.int64)
        for node in np.flatnonzero(tree.kind == SUBSET).tolist():
            subset[node] = self.keep_subset(tree.subset(node))
        self.parts.append(
            Nodes(
                kind=tree.kind,
                column=tree.feature,
                cut=np.where(tree.kind == THRESHOLD, tree.threshold, 0.0),
                subset=subset,
                first=np.where(tree.is_leaf, number, base + tree.first_child.astype(np.int64)),
                missing=np.where(tree.is_leaf, 0, np.where(tree.spreads_missing, EVERY, tree.missing_branch)),
                share=find_shares(tree),
            )
        )
        if tree.surrogates is not None:
            self.add_surrogates(tree)
        if tree.linear is not None:
            self.add_terms(tree.linear, np.flatnonzero(tree.is_leaf), n_leaves)
        self.roots.append(base)
        self.n_nodes += tree.n_nodes

    def keep_subset(self, levels: NDArray[np.bool_]) -> int:
        """The place of a subset among those that are kept."""
        return self.subsets.setdefault(tuple(np.flatnonzero(levels).tolist()), len(self.subsets))

    def add_surrogates(self, tree: Tree) -> None:
        """Append the surrogates of a tree."""
        found = tree.surrogates
        assert found is not None
        for place, node in enumerate(found.node.tolist()):
            column, cut, subset, known = int(found.feature[place]), float(found.threshold[place]), -1, -1
            if found.kind[place] == SUBSET:
                n_levels = int(tree.n_levels[column])
                n_words = -(-n_levels // 64)
                subset = self.keep_subset(tree.bitset(int(cut), n_levels))
                known = self.keep_subset(tree.bitset(int(cut) + n_words, n_levels))
                cut = 0.0
            test = Surrogate(column, cut, subset, known, bool(found.is_reversed[place]))
            self.surrogates.setdefault(self.n_nodes + node, []).append(test)

    def add_terms(self, linear: LinearLeaves, leaves: NDArray[np.int64], first: int) -> None:
        """Append the linear models of the leaves of a tree."""
        for at, leaf in enumerate(leaves.tolist()):
            terms = linear.terms(leaf)
            columns = (linear.feature[terms], linear.coefficient[terms], linear.fill[terms])
            found = [Term(*term) for term in zip(*(column.tolist() for column in columns), strict=True)]
            if found:
                self.terms[first + at] = found

    def build(self, start: Iterable[float], steps: Iterable[Step], choice: str = "answers") -> TreeSum:
        """The whole."""
        nodes = Nodes(*(np.concatenate(arrays) for arrays in zip(*self.parts, strict=True)) if self.parts else NO_NODES)
        return TreeSum(
            self.columns,
            self.classes,
            self.roots,
            nodes,
            self.leaves,
            list(self.subsets),
            self.surrogates,
            self.terms,
            tuple(float(x) for x in start),
            tuple(steps),
            choice,
            self.dates,
        )


NO_NODES = tuple(np.zeros(0, dtype) for dtype in ("i8", "i8", "f8", "i8", "i8", "i8", "f8"))


def find_shares(tree: Tree) -> NDArray[np.float64]:
    """The part of its parent's weight that each node has where rows take every branch, else 1, (n_nodes,)."""
    if not tree.spreads_missing.any():
        return np.ones(tree.n_nodes)
    parent = np.maximum(tree.parent, 0)
    return np.where(tree.spreads_missing[parent], tree.weight / tree.weight[parent], 1.0)


# --- what each kind of model adds up ------------------------------------------------------------------------------


def to_tree_sum(predictor: Predictor) -> TreeSum:
    """A predictor as trees and sums."""
    for kind, make in MAKERS.items():
        if isinstance(predictor, kind):
            return make(predictor)
    raise TypeError(f"{type(predictor).__name__} is no predictor of trees")


def sum_of_tree(predictor: TreePredictor) -> TreeSum:
    """One tree: its leaf is the answer."""
    tree = predictor.tree
    leaves = np.flatnonzero(tree.is_leaf)
    builder = TreeSumBuilder(predictor)
    if not predictor.n_classes:
        if tree.spreads_missing.any():
            raise ValueError("a regression tree whose missing values take every branch cannot be exported")
        builder.add(tree, [[(0, value)] for value in tree.threshold[leaves].tolist()])
        return builder.build([-0.0], [])  # to which -0.0 can be added
    if predictor.smoothing is not None:
        shares = predictor.smoothed[leaves]
    elif tree.spreads_missing.any():
        shares = tree.values()[leaves]
    else:
        shares = leaf_shares(tree, leaves.astype(np.int32))
    builder.add(tree, [list_entries(row) for row in shares])
    return builder.build([0.0] * predictor.n_classes, [])


def sum_of_votes(predictor: VotePredictor) -> TreeSum:
    """Trees whose answers are averaged."""
    builder = TreeSumBuilder(predictor)
    if predictor.n_classes == 1:
        return builder.build([1.0], [])
    forest = predictor.voting
    for t in range(len(forest)):
        builder.add(forest.take(t), leaf_entries(forest, t, 0))
    n_sums = max(predictor.n_classes, 1)
    return builder.build([0.0] * n_sums, [("divide", {"by": float(len(forest))}), *scale_steps(predictor.shift)])


def sum_of_rounds(predictor: RoundPredictor) -> TreeSum:
    """Gradient boosting."""
    builder = TreeSumBuilder(predictor)
    if predictor.n_classes == 1:
        return builder.build([1.0], [])
    n_raw = predictor.n_raw
    for t in range(predictor.n_rounds * n_raw):
        builder.add(predictor.forest.take(t), leaf_entries(predictor.forest, t, t % n_raw))
    steps: dict[str, list[Step]] = {
        "identity": [],
        "quantiles": [("sort", {})],
        "log": [("exp", {})],
        "logistic": [("logistic", {})],
        "half_logistic": [("multiply", {"by": 2.0}), ("logistic", {})],
        "softmax": [("softmax", {})],
    }
    return builder.build(predictor.start.tolist(), [*steps[predictor.link], *scale_steps(predictor.exponent)])


def sum_of_weights(predictor: WeightedPredictor) -> TreeSum:
    """AdaBoost."""
    builder = TreeSumBuilder(predictor)
    forest, weights, n_classes = predictor.forest, predictor.weights.tolist(), predictor.n_classes
    if n_classes == 1:
        return builder.build([1.0], [])
    if n_classes == 0:
        for t in range(len(forest)):
            builder.add(forest.take(t), leaf_entries(forest, t, t))
        return builder.build([-0.0] * len(forest), [("median", {"weights": weights})])
    if n_classes == 2:
        weighed = weigh_forest(forest, predictor.weights)
        for t in range(len(forest)):
            builder.add(weighed.take(t), leaf_entries(weighed, t, 0))
        steps: list[Step] = [("divide", {"by": predictor.total}), ("multiply", {"by": 2.0}), ("logistic", {})]
        return builder.build([0.0], steps, "sign")
    classes = leaf_classes(forest)
    for t, weight in enumerate(weights):
        mine = classes[forest.first_node[t] : forest.first_node[t + 1]]
        builder.add(forest.take(t), [[(code, weight)] for code in mine[mine >= 0].tolist()])
    others = float(n_classes - 1)
    contrast = {"total": sum_weights(predictor.weights), "others": others, "weight": predictor.total}
    steps = [("contrast", contrast), ("divide", {"by": others}), ("softmax", {})]
    return builder.build([0.0] * n_classes, steps, "sums")


MAKERS: dict[type, Callable[[Any], TreeSum]] = {
    TreePredictor: sum_of_tree,
    VotePredictor: sum_of_votes,
    RoundPredictor: sum_of_rounds,
    WeightedPredictor: sum_of_weights,
}


def leaf_entries(forest: Forest, t: int, at: int) -> list[Entries]:
    """What the leaves of tree t add: a value to sum `at`, or shares to those of the classes."""
    nodes = slice(forest.first_node[t], forest.first_node[t + 1])
    value = np.ascontiguousarray(forest.hot[nodes, 0]).view(np.float64)[forest.is_leaf[nodes]]
    if not forest.n_classes:
        return [[(at, x)] for x in value.tolist()]
    first = int(forest.first_mixed[t])
    codes = value.astype(np.int64).tolist()
    return [[(code, 1.0)] if code >= 0 else list_entries(forest.shares[first - 1 - code]) for code in codes]


def list_entries(row: NDArray[np.float64]) -> Entries:
    """A row of shares without its zeros, which change no sum."""
    return [(int(k), float(row[k])) for k in np.flatnonzero(row)]


def scale_steps(exponent: int) -> list[Step]:
    """Multiplications by 2**exponent in factors that float64 holds: as exact as `ldexp`."""
    steps: list[Step] = []
    while exponent:
        part = max(min(exponent, MOST_FACTOR), LEAST_FACTOR)
        part = exponent // 2 if part != exponent else part
        steps.append(("multiply", {"by": float(np.ldexp(1.0, part))}))
        exponent -= part
    return steps
