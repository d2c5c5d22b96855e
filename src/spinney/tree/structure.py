"""A tree as arrays: nodes are numbered from the root, children of a node stand next to each other behind it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney._criteria import CRITERIA
from spinney._jit import fixed
from spinney._node_layout import MOST_FEATURES, feature_of, kind_of, missing_of, pack_leaf, pack_link
from spinney._types import EVERY_BRANCH, LEAF, MULTIWAY, SUBSET, THRESHOLD
from spinney.kernels.common.structs import PackedTrees
from spinney.tree.answers import check_answers, count_outputs
from spinney.tree.broken import BrokenTreeError, check_types, require
from spinney.tree.linear import LINEAR_TYPES, LinearLeaves
from spinney.tree.subset_words import lie_inside, read_levels
from spinney.tree.surrogates import SURROGATE_TYPES, Surrogates, find_fault

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from spinney.reading.explaining import Explanation
    from spinney.reading.rules import Rules

IMPURITY_TOLERANCE = 1e-6  # relative to the root's: a forest of weighted trees holds impurities as float32
SUM_TOLERANCE = 1e-9  # relative; weights of children add up to their parent's, but for float roundings
MOST_CLASSES = 1 << 31
MOST_EXPONENT = 1 << 15  # of two; beyond what a square of a float64 can have
FIELD_TYPES: dict[str, tuple[Any, ...]] = {  # axes, types
    "test": (1, np.uint32),
    "first_child": (1, np.int32),
    "threshold": (1, np.float64),
    "subsets": (1, np.uint64),
    "n_rows": (1, np.uint32),
    "weight": (1, np.float64),
    "impurity": (1, np.float64),
    "distributions": (2, np.float64),
    "n_levels": (1, np.int32),
}


def check_limits(max_leaves: int | None, max_depth: int | None) -> None:
    """Raise unless a picture may show at least one end."""
    for name, value, least in (("max_leaves", max_leaves, 1), ("max_depth", max_depth, 0)):
        if value is not None and value < least:
            message = f"{name}={value}: it must be at least {least}"
            raise ValueError(message)


def check_numbers(holder: Any) -> None:
    """What a tree or forest holds beside the arrays of its nodes."""
    numbers = (holder.n_classes, holder.impurity_exponent)
    is_count = all(type(number) is int for number in numbers) and 0 <= holder.n_classes < MOST_CLASSES
    if not is_count or abs(holder.impurity_exponent) > MOST_EXPONENT:
        raise BrokenTreeError("n_classes and impurity_exponent must be whole numbers, and not huge")
    if len(holder.n_levels) >= MOST_FEATURES or np.any(holder.n_levels < 0):
        raise BrokenTreeError("a number of levels is negative, or there are more features than a test can name")
    if holder.legend is not None:
        check_legend(holder.legend, holder.n_levels, holder.n_classes, holder.widths)


def check_legend(
    legend: Any, n_levels: NDArray[np.int32], n_classes: int, widths: NDArray[np.int64] | None = None
) -> None:
    """A legend has a name for every feature, level and class."""
    if type(legend) is not Legend:
        raise BrokenTreeError("legend must be a Legend or None")
    parts: list[Any] = [legend.features, legend.levels, legend.has_missing]
    if not all(isinstance(part, tuple) and len(part) == len(n_levels) for part in parts):
        raise BrokenTreeError(f"the legend is not that of {len(n_levels)} features")
    names: Any
    for feature, (names, n) in enumerate(zip(legend.levels, n_levels.tolist(), strict=True)):
        if not isinstance(names, tuple | None) or len(names or ()) != n:
            raise BrokenTreeError(f"the legend does not name the {n} levels of feature {feature}")
    names = legend.classes
    if widths is not None:
        is_named = isinstance(names, tuple) and all(isinstance(each, tuple) for each in names)
        if not is_named or [len(each) for each in names] != np.asarray(widths).tolist():
            raise BrokenTreeError("the legend does not name the classes of the outputs")
        names = tuple(name for each in names for name in each)
    elif not isinstance(names, tuple | None) or (names is not None and n_classes not in {0, len(names)}):
        raise BrokenTreeError(f"the legend does not name the {n_classes} classes")
    if any(isinstance(name, tuple | list | dict | set | np.ndarray) for name in names or ()):
        raise BrokenTreeError("the legend names a class by a collection")
    criterion: Any = legend.criterion
    if criterion is not None and not (isinstance(criterion, str) and criterion in CRITERIA):
        raise BrokenTreeError(f"the legend names the criterion {criterion!r:.60}, which is none")


@dataclass(frozen=True)
class Legend:
    """Names of the features, levels and classes of a tree, for people."""

    features: tuple[str, ...]
    levels: tuple[tuple[Any, ...] | None, ...]  # per feature: None = numeric
    classes: tuple[Any, ...] | None  # None = regression; of several outputs a tuple for each
    has_missing: tuple[bool, ...]  # per feature: whether the training rows had missing values
    criterion: str | None = None  # what `impurity` measures; None = not known


@dataclass(frozen=True, eq=False)
class Tree:
    """One grown tree.

    Attributes
    ----------
    test : uint32 (n_nodes,)
        `feature << 4 | missing branch << 2 | kind`; kind 0 is a leaf, 1 a threshold, 2 a subset, 3 a branch for each
        level. Missing branch 2 is one of its own; 3: a missing value takes every branch, its weight shared out as the
        branches' weights are.
    first_child : int32 (n_nodes,)
        Branch b leads to node `first_child + b`; 0 for leaves.
    threshold : float64 (n_nodes,)
        Threshold tests: values up to it take branch 0 (inf: every known value). Subset tests: place of the subset in
        `subsets`; the levels in it take branch 0. A branch for each level: the branch that missing values take,
        `n_levels` where it is one of their own. Leaves: the value; or, for classes, the class of a pure leaf, or -1 -
        (row in `distributions`).
    subsets : uint64
        Subsets: one bit per level, each `ceil(n_levels / 64)` words, or packed (`kernels/common/packed_levels.py`).
    n_rows, weight, impurity : (n_nodes,)
        Training rows, their weight (scaled by a power of two where their sum would leave the range of float64), and the
        impurity in units of `2 ** impurity_exponent`.
    distributions : float64 (n_mixed, n_classes)
        Weight per class of the leaves that hold more than one. A leaf without rows, where no row had a level, predicts
        as its parent does: its row is the parent's, or its value the parent's mean.
    n_classes : int
        0 for regression.
    n_levels : int32 (n_features,)
        0 for numeric features.
    legend : Legend, optional
        Names for people.
    surrogates : Surrogates, optional
        Tests that stand in where a value is missing.
    linear : LinearLeaves, optional
        Linear models of the leaves, as deviations from the means that `threshold` holds.
    answers : float64 (n_nodes, n_outputs), optional
        What every node predicts, where that is not the mean of its leaves, one number: medians, and several outputs. Of
        a leaf `threshold` has the first. Several outputs of classes have a share for each class, side by side.
    widths : int64 (n_outputs,), optional
        Classes of each of several outputs; None: numbers, or one output.
    """

    test: NDArray[np.uint32]
    first_child: NDArray[np.int32]
    threshold: NDArray[np.float64]
    subsets: NDArray[np.uint64]
    n_rows: NDArray[np.uint32]
    weight: NDArray[np.float64]
    impurity: NDArray[np.float64]
    impurity_exponent: int
    distributions: NDArray[np.float64]
    n_classes: int
    n_levels: NDArray[np.int32]
    legend: Legend | None = field(default=None, repr=False)
    surrogates: Surrogates | None = field(default=None, repr=False)
    linear: LinearLeaves | None = field(default=None, repr=False)
    answers: NDArray[np.float64] | None = field(default=None, repr=False)
    widths: NDArray[np.int64] | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"Tree(n_nodes={self.n_nodes}, n_leaves={self.n_leaves}, depth={self.depth})"

    def __getstate__(self) -> dict[str, Any]:
        """Fields alone: what is derived from them is derived again."""
        return {name: self.__dict__[name] for name in self.__dataclass_fields__}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the fields and check them: a damaged tree must not reach a kernel."""
        names = set(self.__dataclass_fields__)
        state = {"answers": None, "widths": None, **state}  # which pickles of older versions do not have
        if set(state) != names:
            raise BrokenTreeError(f"a tree has the fields {sorted(names)}, not {sorted(state)}")
        self.__dict__.update(state)
        self.check()

    # --- shape ---

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves included."""
        return len(self.test)

    @property
    def n_features(self) -> int:
        """Number of columns the tree was grown on."""
        return len(self.n_levels)

    @property
    def n_outputs(self) -> int:
        """Numbers, or classes, that a node predicts."""
        return count_outputs(self)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return int(np.count_nonzero(self.is_leaf))

    @property
    def depth(self) -> int:
        """Tests on the longest path; 0 for a single leaf."""
        return int(self.depths.max())

    @cached_property
    def kind(self) -> NDArray[np.int64]:
        """Kind of each node's test."""
        return kind_of(self.test)

    @cached_property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Which nodes are leaves."""
        return np.equal(self.kind, LEAF)

    @property
    def is_empty(self) -> NDArray[np.bool_]:
        """Which leaves hold no training row: those of levels that none of the node's rows had."""
        return self.n_rows == 0

    @cached_property
    def feature(self) -> NDArray[np.int64]:
        """Feature of each test; -1 for leaves."""
        return np.where(self.is_leaf, -1, feature_of(self.test))

    @cached_property
    def spreads_missing(self) -> NDArray[np.bool_]:
        """At which nodes a row with a missing value takes every branch."""
        return ~self.is_leaf & np.equal(missing_of(self.test), EVERY_BRANCH)

    @cached_property
    def missing_branch(self) -> NDArray[np.int64]:
        """Branch that missing values take; -1 for leaves and where they take every branch."""
        is_multiway = self.kind == MULTIWAY
        own = np.where(is_multiway, self.threshold, 0.0).astype(np.int64)
        branch = np.where(is_multiway, own, missing_of(self.test))
        return np.where(self.is_leaf | self.spreads_missing, -1, branch)

    @cached_property
    def n_branches(self) -> NDArray[np.int64]:
        """Number of children of each node."""
        n_branches = np.where(self.is_leaf, 0, np.where(self.missing_branch == 2, 3, 2))
        multiway = np.flatnonzero(self.kind == MULTIWAY)
        if len(multiway):
            n_levels = self.n_levels[self.feature[multiway]].astype(np.int64)
            n_branches[multiway] = n_levels + (self.missing_branch[multiway] == n_levels)
        return n_branches

    @cached_property
    def is_binary(self) -> bool:
        """Whether a row takes one path, by thresholds and subsets alone: what `hot` can hold."""
        return self.surrogates is None and self.has_binary_tests

    @cached_property
    def has_binary_tests(self) -> bool:
        """Whether a row takes one path by thresholds and subsets where no value is missing."""
        return not np.any((self.kind == MULTIWAY) | self.spreads_missing)

    def children_of(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The children of inner nodes, end to end."""
        n_branches = self.n_branches[nodes]
        begin = np.cumsum(n_branches) - n_branches
        return np.arange(int(n_branches.sum())) + np.repeat(self.first_child[nodes] - begin, n_branches)

    @cached_property
    def parent(self) -> NDArray[np.int64]:
        """Parent of each node; -1 for the root."""
        parent = np.full(self.n_nodes, -1, np.int64)
        inner = np.flatnonzero(~self.is_leaf)
        parent[self.children_of(inner)] = np.repeat(inner, self.n_branches[inner])
        return parent

    @cached_property
    def depths(self) -> NDArray[np.int64]:
        """Depth of each node; 0 for the root."""
        depths = np.minimum(np.arange(self.n_nodes), 1)  # steps to `above`, which goes up twice as far each time
        above = np.maximum(self.parent, 0)
        while above.any():
            depths += depths[above]
            above = above[above]
        return depths

    @cached_property
    def nodes_by_depth(self) -> list[NDArray[np.int64]]:
        """The nodes of each depth, from the root down."""
        order = np.argsort(self.depths, kind="stable")
        ends = np.cumsum(np.bincount(self.depths)).tolist()
        return [order[begin:end] for begin, end in pairwise([0, *ends])]

    def subset(self, node: int) -> NDArray[np.bool_]:
        """Which levels take branch 0 at a subset test, shape (n_levels,)."""
        return self.bitset(float(self.threshold[node]), int(self.n_levels[self.feature[node]]))

    def bitset(self, argument: float, n_levels: int) -> NDArray[np.bool_]:
        """The levels of a subset in `subsets`, by the argument of its test, shape (n_levels,)."""
        return read_levels(self.subsets, argument, n_levels)

    # --- values ---

    def sum_up(self, of_leaves: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up a quantity of the leaves, shape (n_nodes, ...), so that each node holds the sum of its leaves."""
        total = of_leaves.copy()
        total[~self.is_leaf] = 0.0
        for level in reversed(self.nodes_by_depth[1:]):
            np.add.at(total, self.parent[level], total[level])
        return total

    def class_weights(self) -> NDArray[np.float64]:
        """Weight per class of every node, shape (n_nodes, n_classes); derived from the leaves."""
        weights = np.zeros((self.n_nodes, self.n_classes))
        leaves = np.flatnonzero(self.is_leaf & (self.weight > 0.0))
        codes = self.threshold[leaves].astype(np.int64)
        pure, mixed = leaves[codes >= 0], leaves[codes < 0]
        weights[pure, codes[codes >= 0]] = self.weight[pure]
        weights[mixed] = self.distributions[-1 - codes[codes < 0]]
        return self.sum_up(weights)

    @cached_property
    def hot(self) -> NDArray[np.uint64]:
        """What prediction reads of a node in 16 bytes, shape (n_nodes, 2): the bits of its threshold, and its link.

        A leaf is a test that leads every row to itself, so a walk need not check whether it has arrived: it tests a
        feature behind the last, whose value is below every threshold.
        """
        stay = pack_leaf(np.arange(self.n_nodes), self.n_features)
        hot = np.empty((self.n_nodes, 2), np.uint64)
        hot[:, 0] = self.threshold.view(np.uint64)
        hot[:, 1] = np.where(self.is_leaf, stay, pack_link(self.first_child, self.test))
        return hot

    @cached_property
    def packed(self) -> PackedTrees:
        """The tree as kernels read trees."""
        zero = fixed(np.zeros(1, np.int64))
        return PackedTrees(fixed(self.hot.view(np.float64)), fixed(self.hot), zero, fixed(self.subsets), zero)

    @cached_property
    def leaf_class(self) -> NDArray[np.int64]:
        """Heaviest class of each leaf, the first among equals, shape (n_nodes,); meaningless for inner nodes."""
        codes = np.where(self.is_leaf, self.threshold, 0.0).astype(np.int64)
        if len(self.distributions):
            codes[codes < 0] = self.distributions.argmax(axis=1)[-1 - codes[codes < 0]]
        return codes

    def values(self) -> NDArray[np.float64]:
        """Value of every node, shape (n_nodes,), or shares of the classes, shape (n_nodes, n_classes).

        The value is the mean target of a node, or its median where the tree was grown by the absolute error. Of several
        outputs the shape is (n_nodes, n_outputs), or (n_nodes, classes of all outputs).
        """
        if self.answers is not None:
            return self.answers[:, 0] if self.n_outputs == 1 else self.answers
        if self.n_classes:
            weights = self.class_weights()
            weights[self.is_empty] = weights[self.parent[self.is_empty]]
            return weights / weights.sum(axis=1, keepdims=True)
        share = self.weight / self.weight[0]  # at most 1: huge targets do not overflow
        mean = self.sum_up(np.where(self.is_leaf, self.threshold, 0.0) * share)
        mean[~self.is_leaf] /= share[~self.is_leaf]
        return np.where(self.is_leaf, self.threshold, mean)

    def importances(self) -> NDArray[np.float64]:
        """Impurity decrease by the tests of each feature, weighted and scaled to sum 1, shape (n_features,)."""
        total = self.decreases()
        scale = total.sum()
        return total / (scale if scale > 0.0 else 1.0)

    def decreases(self) -> NDArray[np.float64]:
        """Impurity decrease by the tests of each feature, weighted, in the units of `impurity`, shape (n_features,)."""
        loss = self.weight / self.weight[0] * self.impurity
        inner = np.flatnonzero(~self.is_leaf)
        below = self.sum_branches(loss)
        decrease = loss[inner] - below[inner]
        total = np.bincount(self.feature[inner], np.maximum(decrease, 0.0), minlength=self.n_features)
        return total.astype(np.float64, copy=False)  # of a single leaf it is a count of nothing

    def to_text(self, max_depth: int | None = None, *, numbers: bool = False) -> str:
        """Draw the tree in text, one line per node.

        A line gives the branch, then the value (in brackets where the node is split further) and the rows; for classes
        the weight of each, which is its number of rows where no weights were given. A leaf without rows predicts as its
        parent does. Trees of gradient boosting hold raw scores, which have no classes.

        Parameters
        ----------
        max_depth : int, optional
            Deepest node that is shown; what lies below is counted.
        numbers : bool, default=False
            Whether to show the index of each node, which `snip` takes and `apply` gives.

        Examples
        --------
        >>> from spinney import CARTClassifier
        >>> model = CARTClassifier().fit([[1], [2], [3], [4]], ["no", "no", "yes", "yes"])
        >>> print(model.tree_.to_text())
        [no] (4 rows: no 2, yes 2)
        ├─ x0 <= 2.5: no (2 rows)
        └─ x0 > 2.5: yes (2 rows)
        """
        from spinney.reading.text import draw

        return draw(self, max_depth, numbers=numbers)

    def to_rules(self) -> Rules:
        """The tree as if-then rules, one per leaf, from left to right.

        Tests of one feature on a path become one condition. A rule comes with its training rows, their share of all
        weight, and its accuracy on them; for numbers the mean, and the standard deviation where the tree knows it.

        Returns
        -------
        rules : Rules
            A sequence of `Rule`; prints one per line.

        Examples
        --------
        >>> from spinney import CARTClassifier
        >>> model = CARTClassifier().fit([[1], [2], [3], [4], [5]], ["no", "no", "yes", "yes", "no"])
        >>> print(model.tree_.to_rules())
        if x0 <= 2.5 then no (2 rows, 40 %, accuracy 100 %)
        if 2.5 < x0 <= 4.5 then yes (2 rows, 40 %, accuracy 100 %)
        if x0 > 4.5 then no (1 row, 20 %, accuracy 100 %)
        """
        from spinney.reading.rules import find_rules

        return find_rules(self)

    def to_dot(self, *, max_leaves: int | None = None, max_depth: int | None = None) -> str:
        """The tree in the language of Graphviz, for `dot -Tpdf`.

        Parameters
        ----------
        max_leaves : int, optional
            Most ends that are shown; the lightest branches are closed, and count what they hide.
        max_depth : int, optional
            Most tests on a path that are shown.

        Examples
        --------
        >>> from spinney import CARTClassifier
        >>> model = CARTClassifier().fit([[1], [2], [3], [4]], ["no", "no", "yes", "yes"])
        >>> print(model.tree_.to_dot().splitlines()[-3])
          n0 -> n1 [label="≤ 2.5"];
        """
        from spinney.reading.diagrams import to_dot

        check_limits(max_leaves, max_depth)
        return to_dot(self, max_leaves, max_depth)

    def to_mermaid(self, *, max_leaves: int | None = None, max_depth: int | None = None) -> str:
        """The tree in the language of Mermaid, which GitHub and many notebooks draw; they stop at some hundred nodes.

        Parameters
        ----------
        max_leaves, max_depth : int, optional
            As in `to_dot`.

        Examples
        --------
        >>> from spinney import CARTClassifier
        >>> model = CARTClassifier().fit([[1], [2], [3], [4]], ["no", "no", "yes", "yes"])
        >>> print(model.tree_.to_mermaid().splitlines()[4])
          n0 -->|"≤ 2.5"| n1
        """
        from spinney.reading.diagrams import to_mermaid

        check_limits(max_leaves, max_depth)
        return to_mermaid(self, max_leaves, max_depth)

    def to_svg(self, *, max_leaves: int = 50, max_depth: int | None = None, direction: str = "auto") -> str:
        """Draw the tree as an SVG picture, which browsers show as it is; nothing else needs to be installed.

        A box shows the feature its node splits on or its prediction, its rows, and a bar: the shares of the classes, or
        where the value stands between the lowest leaf and the highest. Branches are as thick as the rows they carry.
        What is shortened is whole in a tooltip. Trees of gradient boosting hold raw scores, which have no classes.

        Parameters
        ----------
        max_leaves : int, default=50
            Most ends that are shown; the lightest branches are closed, and count what they hide.
        max_depth : int, optional
            Most tests on a path that are shown.
        direction : {"auto", "down", "right"}, default="auto"
            Where the leaves are: below, or to the right where the picture would be wider than a page.

        Examples
        --------
        >>> from spinney import CARTClassifier
        >>> model = CARTClassifier().fit([[1], [2], [3], [4]], ["no", "no", "yes", "yes"])
        >>> model.tree_.to_svg().startswith("<svg")
        True
        """
        from spinney.reading.drawing import to_svg

        check_limits(max_leaves, max_depth)
        if direction not in {"auto", "down", "right"}:
            message = f"direction={direction!r}: give 'auto', 'down' or 'right'"
            raise ValueError(message)
        return to_svg(self, max_leaves, max_depth, direction)

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def explain(self, values: ArrayLike) -> Explanation:
        """The path of one row in words.

        Parameters
        ----------
        values : array-like (n_features,)
            The row as the tree sees it: a category as the index of its level, NaN where a value is missing. Models take
            rows as they are: `model.explain(row)`.

        Returns
        -------
        explanation : Explanation
            `steps`, `leaves`, `prediction`, `shares`; prints in words.

        Examples
        --------
        >>> from spinney import CARTClassifier
        >>> model = CARTClassifier().fit([[1], [2], [3], [4]], ["no", "no", "yes", "yes"])
        >>> print(model.tree_.explain([3.3]))
        [no] (4 rows: no 2, yes 2)
        x0 is 3.3, above 2.5: yes (2 rows)
        => yes (yes 100 %)
        """
        from spinney.reading.explaining import explain

        return explain(self, values)

    # --- invariants ---

    def check(self) -> None:
        """Raise BrokenTreeError, naming node and fault, unless the arrays describe a tree."""
        check_types(self, FIELD_TYPES)
        check_numbers(self)
        self.check_shapes()
        self.check_tests_and_leaves()
        with np.errstate(all="ignore"):  # what overflows does not add up
            self.check_sums()
            self.check_class_sums()

    def check_tests_and_leaves(self) -> None:
        """What prediction relies on, without the sums that a compact forest has dropped."""
        self.check_features()
        self.check_children()
        self.check_tests()
        self.check_surrogates()
        self.check_leaves()
        self.check_linear()
        check_answers(self, np.where(self.is_leaf, self.threshold, np.nan))

    def check_binary(self) -> None:
        """Every test is a threshold or a subset, and a row takes one path: what `hot` can hold."""
        is_other = (self.kind == MULTIWAY) | self.spreads_missing
        self.require(~is_other, "a forest holds thresholds and subsets, and a row takes one branch of them")

    def sum_branches(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum over the children of each node of a quantity of nodes, shape (n_nodes,)."""
        return np.bincount(self.parent[1:], x[1:], minlength=self.n_nodes).astype(np.float64, copy=False)

    def require(self, holds: NDArray[np.bool_], fault: str) -> None:
        """Raise for the first node where `holds` is false."""
        require(holds, fault)

    def check_shapes(self) -> None:
        """Every array has one entry per node."""
        if self.n_nodes == 0:
            message = "a tree needs a root"
            raise BrokenTreeError(message)
        for name in ("first_child", "threshold", "n_rows", "weight", "impurity"):
            if getattr(self, name).shape != (self.n_nodes,):
                message = f"{name} has shape {getattr(self, name).shape}, expected ({self.n_nodes},)"
                raise BrokenTreeError(message)
        is_of_classes = self.distributions.shape[1] == self.n_classes if self.n_classes else not len(self.distributions)
        if not is_of_classes:
            message = f"distributions has shape {self.distributions.shape} for {self.n_classes} classes"
            raise BrokenTreeError(message)

    def levels_tested(self) -> NDArray[np.int64]:
        """Levels of the feature that each node tests; 0 for numbers and leaves."""
        levels = np.zeros(self.n_nodes, np.int64)
        inner = np.flatnonzero(~self.is_leaf)
        levels[inner] = self.n_levels[self.feature[inner]]
        return levels

    def check_features(self) -> None:
        """Features exist and have levels where a test wants them: what the number of branches comes from."""
        self.require(self.feature < self.n_features, f"feature beyond the {self.n_features} of the table")
        levels = self.levels_tested()
        fits = (self.kind != THRESHOLD) == (levels > 0)
        self.require(self.is_leaf | fits, "the kind of test does not fit the feature")
        is_multiway = self.kind == MULTIWAY
        branch = np.where(is_multiway, self.threshold, 0.0)
        with np.errstate(invalid="ignore"):
            fits = (branch >= 0) & (branch <= levels) & (branch == np.floor(branch)) & (levels + branch >= 2)
        self.require(~is_multiway | fits, "a branch for each level: its missing branch is beyond the branches")

    def check_children(self) -> None:
        """Children come after their parent, inside the arrays, each with one parent."""
        nodes = np.arange(self.n_nodes)
        first = self.first_child.astype(np.int64)
        self.require(self.is_leaf | (first > nodes), "children must come after their parent")
        self.require(~self.is_leaf | (self.test == LEAF), "a leaf has no test")
        self.require(~self.is_leaf | (first == 0), "a leaf has no children")
        self.require(first + self.n_branches <= self.n_nodes, "children beyond the last node")
        if self.n_branches.sum() != self.n_nodes - 1:  # before they are listed: there may be as many as nodes squared
            raise BrokenTreeError("every node but the root has exactly one parent: there are more branches, or fewer")
        n_parents = np.bincount(self.children_of(np.flatnonzero(~self.is_leaf)), minlength=self.n_nodes)
        self.require(n_parents == (nodes > 0), "every node but the root has exactly one parent")

    def check_tests(self) -> None:
        """Thresholds are numbers, bitsets lie inside the array."""
        inner = ~self.is_leaf
        levels = self.levels_tested()
        is_subset = self.kind == SUBSET
        cut = np.where(self.kind == THRESHOLD, self.threshold, 0.0)
        self.require(~np.isnan(cut), "threshold is not a number")
        fits = ~is_subset
        fits[is_subset] = lie_inside(self.subsets, self.threshold[is_subset], levels[is_subset])
        self.require(fits, "bitset beyond the array")
        has_branch = (self.missing_branch < self.n_branches) & ~(is_subset & self.spreads_missing)
        self.require(~inner | has_branch, "missing branch beyond the branches")

    def check_surrogates(self) -> None:
        """Surrogates belong to tests, and their features and levels exist."""
        if self.surrogates is None:
            return
        check_types(self.surrogates, SURROGATE_TYPES, "surrogates.")
        fault = find_fault(self, self.surrogates)
        if fault is not None:
            raise BrokenTreeError(fault)

    def check_linear(self) -> None:
        """Linear models belong to leaves, and their features exist."""
        if self.linear is not None:
            check_types(self.linear, LINEAR_TYPES, "linear.")
            self.linear.check(self)

    def check_leaves(self) -> None:
        """Leaf values are finite, classes exist, each mixed leaf has a row of class weights of its own."""
        leaf = np.where(self.is_leaf, self.threshold, 0.0)
        self.require(np.isfinite(leaf), "leaf value is not finite")
        if not self.n_classes:
            return
        self.require(leaf == np.floor(leaf), "leaf is neither a class nor a row of distributions")
        self.require(leaf < self.n_classes, "class of a leaf beyond the classes")
        rows = -1 - leaf[leaf < 0]
        self.require((leaf >= 0) | (-1 - leaf < len(self.distributions)), "row of distributions beyond the array")
        if len(rows) != len(self.distributions) or len(np.unique(rows)) != len(rows):
            message = f"{len(rows)} mixed leaves for {len(self.distributions)} distributions"
            raise BrokenTreeError(message)
        with np.errstate(over="ignore"):
            total = self.distributions.sum(axis=1)
        if not (np.isfinite(total).all() and (self.distributions >= 0.0).all() and (total > 0.0).all()):
            message = "distributions must be finite and not negative, and not all zero"
            raise BrokenTreeError(message)

    def check_class_sums(self) -> None:
        """Class weights of a leaf add up to its weight."""
        if not self.n_classes:
            return
        leaf = np.where(self.is_leaf, self.threshold, 0.0)
        weights = self.weight.copy()
        weights[leaf < 0] = self.distributions.sum(axis=1)[-1 - leaf[leaf < 0].astype(np.int64)]
        weights[self.is_empty] = 0.0
        self.require(np.isclose(weights, self.weight, rtol=SUM_TOLERANCE, atol=0.0), "class weights do not add up")

    def check_sums(self) -> None:
        """Rows and weights of children add up to their parent's; impurities and weights are sensible."""
        may_be_empty = self.is_leaf & (self.kind[self.parent] == MULTIWAY)
        may_be_empty[0] = False
        self.require((self.n_rows > 0) | may_be_empty, "a node without rows")
        positive = np.where(self.is_empty, self.weight == 0.0, self.weight > 0.0)
        self.require(np.isfinite(self.weight) & positive, "weight must be positive where there are rows")
        self.require(np.isfinite(self.impurity) & (self.impurity >= 0.0), "impurity must not be negative")
        if not self.spreads_missing.any():
            rows = self.sum_branches(self.n_rows.astype(np.float64))
            self.require(self.is_leaf | (rows == self.n_rows), "rows of the branches do not add up")
        fits = np.abs(self.sum_branches(self.weight) - self.weight) <= SUM_TOLERANCE * self.weight
        self.require(self.is_leaf | fits, "weights of the branches do not add up")
        loss = self.weight / self.weight[0] * self.impurity
        below = self.sum_branches(loss)
        limit = loss + IMPURITY_TOLERANCE * self.impurity.max()  # impurities are exact to the root's scale
        self.require(self.is_leaf | (below <= limit), "a split must not raise the impurity")

    def with_legend(self, legend: Legend) -> Tree:
        """The same tree with names for people."""
        return replace(self, legend=legend)
