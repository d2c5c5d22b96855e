"""Surrogate tests (Breiman et al. 1984, section 5.3): what a node tests where the value it needs is missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney._node_layout import WORD_BITS, feature_of, kind_of, missing_of
from spinney._types import (
    SUBSET,
    THRESHOLD,
)
from spinney.reading.wording import count

if TYPE_CHECKING:
    from spinney.kernels.common.structs import KeptSurrogates
    from spinney.tree.structure import Tree

SURROGATE_TYPES: dict[str, tuple[Any, ...]] = {  # axes, type
    "first": (1, np.int32),
    "test": (1, np.uint32),
    "threshold": (1, np.float64),
    "agree": (1, np.float64),
    "adjusted": (1, np.float64),
    "improve": (1, np.float64),
}


MAX_LINES = 20  # of the table that is printed
MOST_IMPROVE = 2.0**64  # far beyond any, in units of impurities near 1: sums of many must not overflow


@dataclass(frozen=True, eq=False, repr=False)
class Surrogates:
    """The surrogates of every node of a tree, best first.

    Attributes
    ----------
    first : int32 (n_nodes + 1,)
        Surrogates of node t are `first[t] .. first[t + 1]`.
    test : uint32 (n,)
        `feature << 4 | is reversed << 2 | kind`: a reversed test sends what would take branch 0 to branch 1.
    threshold : float64 (n,)
        As in `Tree`: the threshold, or the place of a bitset in the tree's `subsets`. A second bitset stands behind it:
        the levels that the surrogate knows; it cannot decide on others.
    agree : float64 (n,)
        Share of the weight of the rows known to the node's own test that goes the same way by the surrogate. Rows whose
        value it does not know do not agree.
    adjusted : float64 (n,)
        The same above what sending all rows to the heavier branch would agree in: 0 is no better, 1 is perfect.
    improve : float64 (n_nodes,)
        Decrease of impurity by the node's own test over the rows that it knows, times their share of the weight of all
        rows; in units of the tree's impurities. 0 for leaves.
    """

    first: NDArray[np.int32]
    test: NDArray[np.uint32]
    threshold: NDArray[np.float64]
    agree: NDArray[np.float64]
    adjusted: NDArray[np.float64]
    improve: NDArray[np.float64]

    def __len__(self) -> int:
        """Number of surrogates of all nodes."""
        return len(self.test)

    def __repr__(self) -> str:
        cells = [("node", "first branch", "agree", "adjusted")]
        for place in range(min(len(self), MAX_LINES)):
            asks = f"{'>' if self.is_reversed[place] else '<='} {self.threshold[place]:.6g}"
            asks = f"x{self.feature[place]} {asks if self.kind[place] == THRESHOLD else 'in a set of levels'}"
            cells.append((str(self.node[place]), asks, f"{self.agree[place]:.4f}", f"{self.adjusted[place]:.4f}"))
        wide = [max(len(line[column]) for line in cells) for column in range(4)]
        lines = [f"{a:>{wide[0]}}  {b:<{wide[1]}}  {c:>{wide[2]}}  {d:>{wide[3]}}" for a, b, c, d in cells]
        n_nodes = int(np.count_nonzero(np.diff(self.first)))
        more = [f"... {len(self) - MAX_LINES} more"] if len(self) > MAX_LINES else []
        return "\n".join([f"{count(len(self), 'surrogate')} of {count(n_nodes, 'node')}", *lines, *more])

    @property
    def feature(self) -> NDArray[np.int64]:
        """Feature of each surrogate."""
        return feature_of(self.test)

    @property
    def kind(self) -> NDArray[np.int64]:
        """THRESHOLD or SUBSET."""
        return kind_of(self.test)

    @property
    def is_reversed(self) -> NDArray[np.bool_]:
        """Whether values up to the threshold take branch 1."""
        return np.equal(missing_of(self.test), 1)

    @property
    def node(self) -> NDArray[np.int64]:
        """Node that each surrogate belongs to."""
        return np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))


def gather_surrogates(kept: KeptSurrogates, improve: NDArray[np.float64]) -> Surrogates:
    """Surrogates as the grower left them, in the order in which it split nodes, in the order of nodes."""
    order = np.argsort(kept.node, kind="stable")
    known = kept.known[order].astype(np.float64)
    most = kept.most[order].astype(np.float64)
    agree = kept.agree[order].astype(np.float64)
    n_of_node = np.bincount(kept.node, minlength=len(improve))
    return Surrogates(
        first=np.concatenate([[0], np.cumsum(n_of_node)]).astype(np.int32),
        test=kept.test[order].astype(np.uint32),
        threshold=kept.cut_value[order],
        agree=agree / known,
        adjusted=(agree - most) / (known - most),
        improve=improve,
    )


def count_words(tree: Tree, surrogates: Surrogates) -> NDArray[np.int64]:
    """Words of one bitset of each surrogate, shape (n,); 0 for thresholds."""
    n_levels = tree.n_levels[surrogates.feature].astype(np.int64)
    return np.where(surrogates.kind == SUBSET, -(-n_levels // WORD_BITS), 0)


def surrogate_importances(tree: Tree) -> NDArray[np.float64]:
    """What each feature improves by its tests and, adjusted, by its surrogates, scaled to sum 1; as rpart has it."""
    surrogates = tree.surrogates
    if surrogates is None:
        message = "the tree has no surrogates"
        raise ValueError(message)
    inner = np.flatnonzero(~tree.is_leaf)
    total = np.bincount(tree.feature[inner], surrogates.improve[inner], minlength=tree.n_features)
    share = surrogates.improve[surrogates.node] * surrogates.adjusted
    total += np.bincount(surrogates.feature, share, minlength=tree.n_features)
    total = np.maximum(total, 0.0)
    scale = total.sum()
    return total / (scale if scale > 0.0 else 1.0)


def find_fault(tree: Tree, surrogates: Surrogates) -> str | None:
    """What is wrong with the surrogates of a tree; None: nothing."""
    return find_shape_fault(tree, surrogates) or find_test_fault(tree, surrogates)


def find_shape_fault(tree: Tree, surrogates: Surrogates) -> str | None:
    """What is wrong with the lengths of the arrays and the numbers in them."""
    n, first = len(surrogates.test), surrogates.first.astype(np.int64)
    if first.shape != (tree.n_nodes + 1,) or surrogates.improve.shape != (tree.n_nodes,):
        return f"the surrogates are not those of {tree.n_nodes} nodes"
    if first[0] != 0 or first[-1] != n or np.any(np.diff(first) < 0):
        return "the first surrogates of the nodes must ascend from 0 to their number"
    for name in ("threshold", "agree", "adjusted"):
        x = getattr(surrogates, name)
        if x.shape != (n,) or np.any(np.isnan(x)):
            return f"{name} of the surrogates must be {n} numbers"
    if any(np.any((share < 0.0) | (share > 1.0)) for share in (surrogates.agree, surrogates.adjusted)):
        return "agree and adjusted of the surrogates must be between 0 and 1"
    is_fine = np.isfinite(surrogates.improve) & (np.abs(surrogates.improve) <= MOST_IMPROVE)
    return None if np.all(is_fine) else "improve of the surrogates must be finite, and not huge"


def find_test_fault(tree: Tree, surrogates: Surrogates) -> str | None:
    """What is wrong with the tests."""
    feature, kind = surrogates.feature, surrogates.kind
    if np.any(feature >= tree.n_features):
        return f"a surrogate tests a feature beyond the {tree.n_features} of the table"
    place = np.where(kind == SUBSET, surrogates.threshold, 0.0)
    is_inside = (place >= 0) & (place == np.floor(place))
    is_inside &= place + 2 * count_words(tree, surrogates) <= len(tree.subsets)
    fitting = np.where(tree.n_levels[feature] > 0, SUBSET, THRESHOLD)
    faults = {
        "a leaf has no surrogates": tree.is_leaf[surrogates.node],
        "a surrogate tests the feature that it stands in for": feature == tree.feature[surrogates.node],
        "the kind of a surrogate does not fit its feature": kind != fitting,
        "a surrogate has no such direction": missing_of(surrogates.test) > 1,
        "the bitsets of a surrogate lie beyond the array": ~is_inside,
    }
    return next((fault for fault, is_at in faults.items() if np.any(is_at)), None)
