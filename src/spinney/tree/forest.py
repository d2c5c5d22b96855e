"""A forest as arrays: those of its trees end to end, with the place where each tree begins."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney._cached import derive, once
from spinney._jit import fixed, kernels
from spinney._node_layout import child_of_link, feature_of_link, kind_of_link, pack_leaf, test_of_link
from spinney._types import SUBSET
from spinney.kernels.common.structs import (
    CheckMarks,
    CheckTolerances,
    ForestArrays,
    ForestSums,
    LeafShares,
    PackedTrees,
)
from spinney.tree.answers import check_answers, count_outputs
from spinney.tree.bitvectors import Bitvectors, asks_missing, can_be_bits, lay_bits
from spinney.tree.broken import BrokenTreeError, check_types
from spinney.tree.linear import LINEAR_TYPES, LinearLeaves
from spinney.tree.ranked import RankedLayout, RankedRows, lay_ranked
from spinney.tree.structure import (
    IMPURITY_TOLERANCE,
    SUM_TOLERANCE,
    Legend,
    Tree,
    check_numbers,
)
from spinney.tree.symmetric import SymmetricLayout, SymmetricNodes, lay_symmetric, read_symmetric

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from spinney._jit import Kernels

FIELD_TYPES: dict[str, tuple[Any, ...]] = {  # axes, types
    "hot": (2, np.uint64),
    "n_rows": (1, np.uint32),
    "weight": (1, np.uint32, np.float64),
    "impurity": (1, np.float64, np.float32),
    "first_node": (1, np.int64),
    "first_word": (1, np.int64),
    "first_mixed": (1, np.int64),
    "subsets": (1, np.uint64),
    "distributions": (2, np.float64),
    "n_levels": (1, np.int32),
}
WORD_BITS = 64
MOST_AHEAD = 1 << 30  # bytes of a field that are taken before they are needed
NODE_SECONDS = 1.6e-5  # to check one node, interpreted


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees of one kind, in 16 hot bytes a node, which prediction reads, and 16 cold ones, for people.

    Attributes
    ----------
    hot : uint64 (n_nodes, 2)
        See `Tree.hot`; children are counted from the root of their tree.
    n_rows, weight, impurity : (n_nodes,)
        As in `Tree`, but whole weights as uint32, and impurities as float32 where weights are not whole; empty after
        `compact`.
    first_node, first_word, first_mixed : int64 (n_trees + 1,)
        Where the nodes, the words of subsets and the mixed leaves of each tree begin, and the ends.
    subsets, distributions
        As in `Tree`, end to end.
    impurity_exponent : int
    n_classes : int
        0 for regression.
    n_levels : int32 (n_features,)
    legend : Legend, optional
    linear : LinearLeaves, optional
        Linear models of the leaves, by node of all trees.
    answers : float64 (n_nodes, n_outputs), optional
        As in `Tree`, of all trees; dropped by `compact` where there is one output.
    widths : int64 (n_outputs,), optional
        As in `Tree`.
    """

    hot: NDArray[np.uint64]
    n_rows: NDArray[np.uint32]
    weight: NDArray[np.uint32] | NDArray[np.float64]
    impurity: NDArray[np.float64] | NDArray[np.float32]
    first_node: NDArray[np.int64]
    first_word: NDArray[np.int64]
    first_mixed: NDArray[np.int64]
    subsets: NDArray[np.uint64]
    distributions: NDArray[np.float64]
    impurity_exponent: int
    n_classes: int
    n_levels: NDArray[np.int32]
    legend: Legend | None = field(default=None, repr=False)
    linear: LinearLeaves | None = field(default=None, repr=False)
    answers: NDArray[np.float64] | None = field(default=None, repr=False)
    widths: NDArray[np.int64] | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"Forest(n_trees={len(self)}, n_nodes={self.n_nodes})"

    def __len__(self) -> int:
        return len(self.first_node) - 1

    def __getitem__(self, tree: int) -> Tree:
        return self.tree(range(len(self))[tree])

    def __iter__(self) -> Iterator[Tree]:
        return (self.tree(t) for t in range(len(self)))

    def __getstate__(self) -> dict[str, Any]:
        """Fields alone: what is derived from them is derived again."""
        return {f.name: self.__dict__[f.name] for f in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the fields and check every tree: a damaged one must not reach a kernel."""
        names = {f.name for f in fields(self)}
        added = dict.fromkeys(("linear", "answers", "widths"))  # which pickles of older versions do not have
        state = {**added, **state}
        if set(state) != names:
            message = f"a forest has the fields {sorted(names)}, not {sorted(state)}"
            raise BrokenTreeError(message)
        self.__dict__.update(state)
        self.check()

    @property
    def n_nodes(self) -> int:
        """Nodes of all trees."""
        return len(self.hot)

    @property
    def n_outputs(self) -> int:
        """Numbers, or classes, that a node predicts."""
        return count_outputs(self)

    @property
    def n_features(self) -> int:
        """Number of columns the trees were grown on."""
        return len(self.n_levels)

    @property
    def is_compact(self) -> bool:
        """Whether the cold fields have been dropped."""
        return len(self.n_rows) != self.n_nodes

    @once
    def shares(self) -> NDArray[np.float64]:
        """Class shares of the mixed leaves, shape (n_mixed or 1, n_classes or 1): a kernel wants a row."""
        if len(self.distributions) == 0:
            return np.zeros((1, max(self.n_classes, 1)))
        return self.distributions / self.distributions.sum(axis=1, keepdims=True)

    @once
    def packed(self) -> PackedTrees:
        """The trees as kernels read them."""
        return PackedTrees(
            fixed(self.hot.view(np.float64)),
            fixed(self.hot),
            fixed(self.first_node[:-1]),
            fixed(self.subsets),
            fixed(self.first_word[:-1]),
        )

    @once
    def masked(self) -> PackedTrees:
        """The same where a subset stands in its node, if every category has a word of levels at most; else `packed`.

        A row reads one word less at each subset: adult takes 0.15 s instead of 0.23 s. It is a copy of `hot`.
        """
        is_subset = np.equal(kind_of_link(self.hot[:, 1]), SUBSET)
        if not is_subset.any() or self.n_levels.max() > WORD_BITS:
            return self.packed
        nodes = np.flatnonzero(is_subset)
        tree = np.searchsorted(self.first_node, nodes, side="right") - 1
        hot = self.hot.copy()
        word = self.first_word[tree] + np.ascontiguousarray(hot[nodes, 0]).view(np.float64).astype(np.int64)
        hot[nodes, 0] = self.subsets[word]
        return self.packed._replace(cuts=fixed(hot.view(np.float64)), links=fixed(hot), has_masks=True)

    def packed_for(self, n_rows: int) -> PackedTrees:
        """The trees as kernels that walk read them: `masked` where rows are many enough to pay for it."""
        return self.masked if n_rows * len(self) >= self.n_nodes and len(self.subsets) > 0 else self.packed

    @once
    def leaf_shares(self) -> LeafShares:
        """The shares of mixed leaves as kernels read them."""
        return LeafShares(fixed(self.shares), fixed(self.first_mixed[:-1]))

    @once
    def voting(self) -> tuple[Forest, LeafShares]:
        """Trees of several outputs as kernels of class shares read them: a leaf's value says which answers it gives."""
        assert self.answers is not None
        hot = self.hot.copy()
        leaf = np.flatnonzero(self.is_leaf)
        root = np.repeat(self.first_node[:-1], np.diff(self.first_node))
        hot[leaf, 0] = (root[leaf] - leaf - 1.0).view(np.uint64)  # -1 - the number of the node in its tree
        shares = LeafShares(fixed(self.answers), fixed(self.first_node[:-1]))
        return replace(self, hot=hot, answers=None), shares

    @once
    def n_leaves(self) -> NDArray[np.int64]:
        """Leaves of each tree, shape (n_trees,)."""
        total = np.concatenate([[0], np.cumsum(self.is_leaf)])
        return np.diff(total[self.first_node])

    @once
    def most_leaves(self) -> int:
        """Leaves of the largest tree."""
        return int(self.n_leaves.max())

    @once
    def can_be_bits(self) -> bool:
        """Whether `kernels.predict.bits` can predict."""
        return can_be_bits(self)

    @once
    def asks_missing(self) -> bool:
        """Whether there are tests that only ask if a value is missing."""
        return bool(asks_missing(self).any())

    def bits(self, values: NDArray[Any], k: Any) -> Bitvectors:
        """The trees as tests and bits, laid out once for values of this type; k: the kernels to use.

        Where none of the values is missing, the tests that ask for just that are left out.
        """
        if self.asks_missing and not np.isnan(values).any():
            lay = partial(lay_bits, self, values.dtype, k, is_known=True)
            return derive(self, f"bits for known {values.dtype}", lay)
        return derive(self, f"bits for {values.dtype}", lambda: lay_bits(self, values.dtype, k))

    @once
    def symmetric_nodes(self) -> SymmetricNodes | None:
        """What trees ask that ask the same at all nodes of a depth, for `kernels.predict.symmetric`; None: not so."""
        return read_symmetric(self)

    def symmetric(self, nodes: SymmetricNodes, dtype: np.dtype[Any], k: Any, *, n_raw: int) -> SymmetricLayout:
        """Such trees laid out once for values of a type; nodes: theirs; n_raw: trees of a round; k: the kernels."""
        lay = partial(lay_symmetric, self, nodes, dtype, k, n_raw=n_raw)
        return derive(self, f"symmetric for {dtype} in {n_raw}", lay)

    def ranked(self, values: NDArray[Any], k: Any) -> tuple[RankedLayout, ...]:
        """The trees as steps for such values, laid out once, for `kernels.predict.ranked`; empty: they cannot be.

        8 bytes a node, half of `hot`, and the thresholds once more, with room to search them.
        """
        rows = RankedRows(values.dtype, not np.isnan(values).any())
        return derive(self, f"ranked for {rows}", lambda: lay_ranked(self, rows, k))

    @once
    def hardened(self) -> Forest:
        """The same forest where every leaf votes for its heaviest class alone, the first among equals."""
        hard = np.zeros_like(self.distributions)
        if len(hard):
            hard[np.arange(len(hard)), self.distributions.argmax(axis=1)] = 1.0
        return replace(self, distributions=hard)

    @once
    def is_leaf(self) -> NDArray[np.bool_]:
        """Which nodes are leaves."""
        return np.equal(feature_of_link(self.hot[:, 1]), self.n_features)

    def tree(self, t: int) -> Tree:
        """Tree number t, its arrays views or copies of its own."""
        if self.is_compact:
            message = "a compact forest has dropped the counts and impurities of its nodes: it has no trees to show"
            raise ValueError(message)
        return self.take(t)

    def take(self, t: int) -> Tree:
        """Tree number t; without sums if the forest is compact."""
        nodes = slice(self.first_node[t], self.first_node[t + 1])
        link = self.hot[nodes, 1]
        is_leaf = self.is_leaf[nodes]
        return Tree(
            test=np.where(is_leaf, 0, test_of_link(link)).astype(np.uint32),
            first_child=np.where(is_leaf, 0, child_of_link(link)).astype(np.int32),
            threshold=np.ascontiguousarray(self.hot[nodes, 0]).view(np.float64),
            subsets=self.subsets[self.first_word[t] : self.first_word[t + 1]],
            n_rows=self.n_rows[nodes],
            weight=self.weight[nodes].astype(np.float64),
            impurity=self.impurity[nodes].astype(np.float64),
            impurity_exponent=self.impurity_exponent,
            distributions=self.distributions[self.first_mixed[t] : self.first_mixed[t + 1]],
            n_classes=self.n_classes,
            n_levels=self.n_levels,
            legend=self.legend,
            linear=None if self.linear is None else self.linear.take(np.arange(nodes.start, nodes.stop)),
            answers=None if self.answers is None else self.answers[nodes],
            widths=self.widths,
        )

    def compact(self) -> Forest:
        """The same forest without the cold fields: it predicts, but has no importances and no pictures."""
        nothing = np.zeros(0, np.uint32)
        answers = self.answers if self.n_outputs > 1 else None
        return replace(self, n_rows=nothing, weight=nothing, impurity=np.zeros(0), answers=answers)

    def head(self, n_trees: int) -> Forest:
        """The first trees."""
        n_nodes, n_words = int(self.first_node[n_trees]), int(self.first_word[n_trees])
        n_mixed = int(self.first_mixed[n_trees])
        return replace(
            self,
            hot=self.hot[:n_nodes],
            n_rows=self.n_rows[:n_nodes],
            weight=self.weight[:n_nodes],
            impurity=self.impurity[:n_nodes],
            first_node=self.first_node[: n_trees + 1],
            first_word=self.first_word[: n_trees + 1],
            first_mixed=self.first_mixed[: n_trees + 1],
            subsets=self.subsets[:n_words],
            distributions=self.distributions[:n_mixed],
            linear=None if self.linear is None else self.linear.take(np.arange(n_nodes)),
            answers=None if self.answers is None else self.answers[:n_nodes],
        )

    def importances(self) -> NDArray[np.float64]:
        """Mean over the trees of their scaled importances, scaled to sum 1, shape (n_features,); see `Tree`."""
        total = np.zeros(self.n_features)
        for tree in self:
            total += tree.importances()
        scale = total.sum()
        return total / (scale if scale > 0.0 else 1.0)

    def check_types(self) -> None:
        """Every array has its type and number of dimensions: a kernel is compiled for these alone."""
        check_types(self, FIELD_TYPES)
        check_numbers(self)
        if self.distributions.shape[1] != self.n_classes or (len(self.distributions) and not self.n_classes):
            message = f"{self.n_classes} classes do not fit the distributions"
            raise BrokenTreeError(message)

    def check(self) -> None:
        """Raise BrokenTreeError, naming tree and node, unless every tree is sound."""
        self.check_types()
        self.check_lengths()
        t = self.find_fault(kernels(self.n_nodes * NODE_SECONDS))
        if t >= 0:
            self.check_tree(t)
            message = f"tree {t} is not sound"
            raise BrokenTreeError(message)
        if self.linear is not None:
            check_types(self.linear, LINEAR_TYPES, "linear.")
            self.linear.check(self)
        check_answers(self)

    def check_lengths(self) -> None:
        """Every node has an entry in each array, and every tree a part of each."""
        n_trees = len(self.first_node) - 1
        ends = {"first_node": self.n_nodes, "first_word": len(self.subsets), "first_mixed": len(self.distributions)}
        for name, end in ends.items():
            first = getattr(self, name)
            if n_trees < 1 or first.shape != (n_trees + 1,) or first[0] != 0 or first[-1] != end:
                message = f"{name} does not part the arrays into {n_trees} trees"
                raise BrokenTreeError(message)
            is_empty = first[1:] == first[:-1]
            if np.any(first[1:] < first[:-1]) or (name == "first_node" and is_empty.any()):  # differences may overflow
                message = f"{name} does not ascend"
                raise BrokenTreeError(message)
        n_cold = {len(self.n_rows), len(self.weight), len(self.impurity)}
        if self.hot.shape[1] != 2 or n_cold not in ({0}, {self.n_nodes}):
            message = "hot needs two words a node; n_rows, weight and impurity one entry a node, or none"
            raise BrokenTreeError(message)

    def find_fault(self, k: Kernels) -> int:
        """The first tree that is not sound, -1 where all are; types and lengths must have been checked."""
        forest = (self.hot.view(np.float64), self.hot, self.first_node, self.first_word, self.first_mixed)
        weight = (self.weight, np.zeros(0, np.uint32))
        impurity = (self.impurity, np.zeros(0, np.float32))
        sums = (
            self.n_rows,
            *(weight if self.weight.dtype == np.float64 else (np.zeros(0), self.weight)),
            *(impurity if self.impurity.dtype == np.float64 else (np.zeros(0), self.impurity)),
        )
        t = k.predict.validate.find_fault(
            ForestArrays(*fix_all(*forest, self.n_levels, self.distributions, self.subsets)),
            ForestSums(*fix_all(*sums)),
            CheckTolerances(SUM_TOLERANCE, IMPURITY_TOLERANCE),
            CheckMarks(
                np.empty(int(np.diff(self.first_node).max()), np.uint8),
                np.empty(int(np.diff(self.first_mixed).max()), np.uint8),
            ),
        )
        return int(t)

    def check_tree(self, t: int) -> None:
        """Raise BrokenTreeError unless tree number t is sound: slower than `find_fault`, but it says what is wrong."""
        nodes = slice(self.first_node[t], self.first_node[t + 1])
        link, is_leaf = self.hot[nodes, 1], self.is_leaf[nodes]
        stay = pack_leaf(np.arange(len(link)), self.n_features)
        try:
            tree = self.take(t)
            tree.require(~is_leaf | (link == stay), "a leaf must lead to itself")
            tree.require(is_leaf | ~tree.is_leaf, "a test must test something")
            if self.is_compact:
                tree.check_tests_and_leaves()
            else:
                tree.check()
            tree.check_binary()
        except BrokenTreeError as error:
            message = f"tree {t}: {error}"
            raise BrokenTreeError(message) from None


def fix_all(*arrays: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """The arrays as a kernel is compiled for."""
    return (fixed(np.ascontiguousarray(array)) for array in arrays)


class ArrayBuilder:
    """Arrays end to end in one, with room for more like them: a copy at the end would take a tenth of a forest's time.

    Memory that is taken ahead is not touched, so that it costs addresses alone.
    """

    def __init__(self, n_parts: int) -> None:
        self.n_parts = n_parts
        self.sizes: list[int] = []
        self.length = 0
        self.whole: NDArray[Any] | None = None

    def add(self, part: NDArray[Any]) -> None:
        """Append an array."""
        end = self.length + len(part)
        self.sizes.append(len(part))
        whole = self.whole
        if whole is None or end > len(whole) or part.dtype != whole.dtype:
            self.whole = whole = self.make_room(part, end)
        if len(part):
            whole[self.length : end] = part
        self.length = end

    def make_room(self, part: NDArray[Any], end: int) -> NDArray[Any]:
        """What there is with room for a part that goes up to `end`, of a type that holds both."""
        dtype = part.dtype if self.whole is None else np.result_type(self.whole, part)
        larger = np.empty((end + self.ahead(end, dtype.itemsize), *part.shape[1:]), dtype)
        if self.whole is not None:
            larger[: self.length] = self.whole[: self.length]
        return larger

    def ahead(self, end: int, n_bytes: int) -> int:
        """Entries to make room for beyond `end`: for parts to come of mean size; as much again if there are more."""
        n_done = len(self.sizes)
        wanted = end * (self.n_parts - n_done) // n_done * 9 // 8 if n_done <= self.n_parts else end
        return min(wanted, MOST_AHEAD // n_bytes)

    def peek(self) -> NDArray[Any]:
        """A view of the whole so far."""
        assert self.whole is not None
        return self.whole[: self.length]

    def join(self) -> NDArray[Any]:
        """The whole, without the room that was left; nothing is left here."""
        assert self.whole is not None
        whole, self.whole = self.whole, None
        whole.resize((self.length, *whole.shape[1:]), refcheck=False)
        return whole


class ForestParts:
    """A forest of `n_trees` under way: added trees are taken apart at once, so no field is held twice."""

    def __init__(self, n_trees: int = 1) -> None:
        self.n_trees = n_trees
        self.parts: dict[str, ArrayBuilder] = {}
        self.last: Tree | None = None

    def add(self, tree: Tree) -> None:
        """Append a tree of the same features, classes and units as those before."""
        weight = narrow_weights(tree.weight)
        arrays: dict[str, NDArray[Any]] = {
            "hot": tree.hot,
            "n_rows": tree.n_rows,
            "weight": weight,
            "impurity": tree.impurity,
            "subsets": tree.subsets,
            "distributions": tree.distributions,
        }
        if tree.answers is not None:
            arrays["answers"] = tree.answers
        for name, array in arrays.items():
            self.parts.setdefault(name, ArrayBuilder(self.n_trees)).add(array)
        self.last = tree

    def join(self, legend: Legend | None = None) -> Forest:
        """The forest; nothing is left here."""
        sizes = self.sizes()
        arrays: dict[str, Any] = {name: self.parts.pop(name).join() for name in list(self.parts)}
        arrays["impurity"] = fit_impurity(arrays["impurity"], arrays["weight"])
        return self.make(arrays, sizes, legend)

    def peek(self) -> Forest:
        """The trees so far, impurities in full: views, to be dropped before another tree is added."""
        return self.make({name: part.peek() for name, part in self.parts.items()}, self.sizes())

    def sizes(self) -> dict[str, NDArray[np.int64]]:
        """Where the parts of each tree begin."""
        return {name: starts(self.parts[name].sizes) for name in ("hot", "subsets", "distributions")}

    def make(self, arrays: dict[str, Any], sizes: dict[str, NDArray[np.int64]], legend: Legend | None = None) -> Forest:
        """A forest of these arrays."""
        assert self.last is not None
        return Forest(
            **arrays,
            first_node=sizes["hot"],
            first_word=sizes["subsets"],
            first_mixed=sizes["distributions"],
            impurity_exponent=self.last.impurity_exponent,
            n_classes=self.last.n_classes,
            n_levels=self.last.n_levels,
            legend=legend,
            widths=self.last.widths,
        )


def fit_impurity(impurity: NDArray[Any], weight: NDArray[Any]) -> NDArray[Any]:
    """Impurities in what the weights leave of 16 cold bytes a node: half of them where weights are not whole."""
    return impurity.astype(np.float32) if weight.dtype == np.float64 else impurity


def narrow_weights(weight: NDArray[np.float64]) -> NDArray[Any]:
    """Weights of nodes as uint32, if these can hold them."""
    if not weight.max() < 2.0**32:
        return weight
    narrow = weight.astype(np.uint32)
    return narrow if bool((narrow == weight).all()) else weight


def join_trees(trees: Iterable[Tree], legend: Legend | None = None) -> Forest:
    """Make a forest of trees of one kind: same features, classes and units."""
    parts = ForestParts()
    for tree in trees:
        parts.add(tree)
    return parts.join(legend)


def join_forests(a: Forest, b: Forest) -> Forest:
    """Make a forest of the trees of two, of the same outputs; compact if one of them is. Names are those of `b`."""
    if a.n_outputs != b.n_outputs:
        raise ValueError(f"trees of {a.n_outputs} and of {b.n_outputs} outputs cannot be joined")
    if a.linear is not None or b.linear is not None:
        raise ValueError("forests with linear leaves cannot be joined")
    if a.is_compact != b.is_compact:
        a, b = a.compact(), b.compact()
    weight = np.concatenate([a.weight, b.weight])
    return replace(
        a,
        legend=join_legends(a.legend, b.legend),
        hot=np.concatenate([a.hot, b.hot]),
        n_rows=np.concatenate([a.n_rows, b.n_rows]),
        weight=weight,
        impurity=fit_impurity(np.concatenate([a.impurity, b.impurity]), weight),
        first_node=np.concatenate([a.first_node[:-1], b.first_node + a.n_nodes]),
        first_word=np.concatenate([a.first_word[:-1], b.first_word + len(a.subsets)]),
        first_mixed=np.concatenate([a.first_mixed[:-1], b.first_mixed + len(a.distributions)]),
        subsets=np.concatenate([a.subsets, b.subsets]),
        distributions=np.concatenate([a.distributions, b.distributions]),
        answers=None if a.answers is None or b.answers is None else np.concatenate([a.answers, b.answers]),
    )


def join_legends(a: Legend | None, b: Legend | None) -> Legend | None:
    """The names of the second, which a model of both has, with values missing where any of the two has seen some."""
    if a is None or b is None:
        return a
    missing = zip(a.has_missing, b.has_missing, strict=True)
    return replace(b, has_missing=tuple(one or other for one, other in missing))


def starts(sizes: Sequence[int]) -> NDArray[np.int64]:
    """Where each of several arrays begins when they stand end to end, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
