"""What a forest loses when the values of a feature are permuted among out-of-bag rows (Breiman 2001).

Words: a *unit* is what gets an importance, a feature or a group of features. A row's *place* is its position among the
out-of-bag rows of a tree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney._node_layout import feature_of_link, test_of_link
from spinney._types import MOST_BRANCHES
from spinney.kernels.common.structs import PackedTree, Permuted, RouteChanges, RouteScratch, RouteStack
from spinney.table.sparse import fill_in
from spinney.tree.forest import Forest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from spinney.table.sparse import Values

WALKERS = 1 << 18  # permuted rows on their way at once: 6 MB
SOURCES = 1 << 24  # permuted places held at once: 64 MB
STRATUM_ROWS = 5  # rows that a stratum of conditional permutation holds in the mean, at least
MOST_TESTS = 256  # that part the rows into these strata


@dataclass(frozen=True, eq=False)
class Trial:
    """What the permutations of all trees share.

    Attributes
    ----------
    table : (n_rows, n_features) float32 or float64, or SparseRows
        The values of the training rows.
    truth : (n_rows,)
        Their classes, as codes, or targets.
    units : tuple of int64 arrays
        The features of each unit, ascending.
    seed, n_repeats : int
        Permutations are drawn by (seed, tree, first feature of the unit, repeat).
    partners : bool (n_units, n_features), optional
        Features within whose strata a unit is permuted; None: among all rows.
    score : callable, optional
        `score(tree, rows, leaf)`, of rows in these leaves, larger being better; None: the share of wrong classes or the
        mean squared error, which is much faster.
    """

    forest: Forest
    table: Values
    truth: NDArray[Any]
    units: tuple[NDArray[np.int64], ...]
    seed: int
    n_repeats: int = 1
    partners: NDArray[np.bool_] | None = None
    score: Any = None


class LeftOut:
    """The rows left out of the bag of one tree, and what permuting units among them does to it.

    Words as in `kernels.predict.permutation`: a row's *place* is its position among these rows.

    Parameters
    ----------
    trial : Trial
    tree : int
    rows : int32 (n,)
        The rows, ascending.
    k : Kernels
    """

    def __init__(self, trial: Trial, tree: int, rows: NDArray[np.int32], k: Any) -> None:
        self.trial, self.tree, self.rows, self.k = trial, tree, rows, k
        forest = trial.forest
        self.first, self.end = int(forest.first_node[tree]), int(forest.first_node[tree + 1])
        packed = forest.packed
        self.packed = PackedTree(packed.cuts, packed.links, packed.subsets, self.first, int(forest.first_word[tree]))
        # by columns: a node asks all its rows for one feature, which then comes from the nearest cache. This made
        # rerouting faster by a quarter than reading rows in place; a tree's left-out rows are held, one tree at a time.
        self.columns = np.ascontiguousarray(fill_in(trial.table[rows]).T)

    @property
    def links(self) -> NDArray[np.uint64]:
        """The link of each node; a leaf asks for a feature behind the last."""
        return self.trial.forest.hot[self.first : self.end, 1]

    @property
    def tested(self) -> NDArray[np.int64]:
        """The feature that each node asks for."""
        return feature_of_link(self.links)

    def permutation(self) -> NDArray[np.float64]:
        """Rise of the tree's error with each unit permuted, (n_units,); 0 for units that the tree does not test."""
        trial = self.trial
        is_tested = np.zeros(trial.forest.n_features + 1, np.bool_)
        is_tested[self.tested] = True
        tried = [u for u, features in enumerate(trial.units) if is_tested[features].any()]
        rise = np.zeros(len(trial.units))
        for repeat in range(trial.n_repeats):
            for batch in disjoint(tried, trial.units, max(SOURCES // len(self.rows), 1)):
                rise[batch] += self.try_units(batch, repeat)
        return rise / trial.n_repeats

    def try_units(self, batch: list[int], repeat: int) -> NDArray[np.float64]:
        """Rise of the error with each unit of a batch permuted once, (len(batch),)."""
        trial = self.trial
        unit_of = np.full(trial.forest.n_features, -1, np.int32)
        source = np.empty((len(batch), len(self.rows)), np.int32)
        for at, u in enumerate(batch):
            unit_of[trial.units[u]] = at
            source[at] = self.draw_sources(u, repeat)
        leaf = np.empty(len(self.rows), np.int32)
        parts = self.reroute(unit_of, source, leaf)
        if trial.score is not None:
            return self.fall_of_score(leaf, np.concatenate([part.copy() for part in parts], axis=1), len(batch))
        predicted = leaf_predictions(trial.forest, self.tree)
        truth = trial.truth[self.rows]
        total = np.zeros(len(batch))
        for unit, place, end in parts:
            before, after, y = predicted[leaf[place]], predicted[end], truth[place]
            if trial.forest.n_classes:
                rise = (after != y).astype(np.float64) - (before != y)
            else:
                rise = (after - before) * ((after - y) + (before - y))
            total += np.bincount(unit, rise, len(batch))  # in the order of leaves and rows, whoever does it
        return total / len(self.rows)

    def fall_of_score(self, leaf: NDArray[np.int32], changes: NDArray[np.int32], n_units: int) -> NDArray[np.float64]:
        """By how much the score falls when the rows of each unit end in their other leaves, (n_units,)."""
        fall = np.full(n_units, float(self.trial.score(self.tree, self.rows, leaf)))
        unit, place, end = changes
        for u in range(n_units):
            moved = leaf.copy()
            moved[place[unit == u]] = end[unit == u]
            fall[u] -= float(self.trial.score(self.tree, self.rows, moved))
        return fall

    def find_leaves(self) -> NDArray[np.int32]:
        """Leaves of the rows as they are, (n,)."""
        leaf = np.empty(len(self.rows), np.int32)
        stays = np.full(self.trial.forest.n_features, -1, np.int32)
        for _ in self.reroute(stays, np.empty((0, len(self.rows)), np.int32), leaf):
            pass
        return leaf

    def reroute(
        self, unit_of: NDArray[np.int32], source: NDArray[np.int32], leaf: NDArray[np.int32]
    ) -> Iterator[NDArray[np.int32]]:
        """Write the leaves of rows as they are; give (unit, place, leaf) of those that part from them, in parts (3, m).

        Rows of a part have their leaves written by then; the part's memory is used again for the next.
        """
        n_rows, n_units = len(self.rows), len(source)
        most = min(max(WALKERS // max(n_units, 1), 1), n_rows)
        places = np.empty((MOST_BRANCHES, most + 1), np.int32)
        walkers = np.empty((MOST_BRANCHES, most * n_units + 1), np.int64)
        stack = np.empty((len(RouteStack._fields), self.end - self.first + MOST_BRANCHES), np.int64)
        changes = np.empty((len(RouteChanges._fields), most * n_units), np.int32)
        for begin in range(0, n_rows, most):
            has_parted = np.zeros((n_units, min(most, n_rows - begin)), np.uint8)
            n_changes = self.k.predict.permutation.reroute(
                self.columns,
                Permuted(unit_of, source),
                self.packed,
                begin,
                RouteScratch(places, walkers, has_parted, RouteStack(*stack)),
                leaf,
                RouteChanges(*changes),
            )
            yield changes[:, :n_changes]

    def draw_sources(self, unit: int, repeat: int) -> NDArray[np.int32]:
        """The place that each row takes the unit's values from, (n,): a permutation of the places.

        The draw depends on (seed, tree, first feature of the unit, repeat) and on the number of rows (of each stratum).
        """
        trial, n_rows = self.trial, len(self.rows)
        order, begin = np.arange(n_rows, dtype=np.int32), np.array([0, n_rows], np.int64)
        if trial.partners is not None:
            stratum, n_strata = self.part_rows(trial.partners[unit])
            order = np.argsort(stratum, kind="stable").astype(np.int32)
            begin = np.concatenate([[0], np.cumsum(np.bincount(stratum, minlength=n_strata))]).astype(np.int64)
        source = np.empty(n_rows, np.int32)
        key = np.uint64(trial.seed), np.uint64(self.tree), np.uint64(trial.units[unit][0]), np.uint64(repeat)
        self.k.predict.permutation.shuffle(*key, order, begin, np.empty(n_rows, np.int32), source)
        return source

    def part_rows(self, is_partner: NDArray[np.bool_]) -> tuple[NDArray[np.int32], int]:
        """Strata of rows that take the same branch at all the tree's tests of some features, (n,), and their number.

        Those of Strobl et al. are made by all these tests. A tree grown to the end has so many that each row is a
        stratum of its own and nothing can be permuted. Tests are therefore used from the one with the most training
        rows down, until strata would hold fewer than STRATUM_ROWS rows in the mean, or MOST_TESTS are used.
        """
        forest = self.trial.forest
        nodes = np.flatnonzero(np.append(is_partner, False)[self.tested])
        nodes = nodes[np.argsort(-forest.n_rows[self.first + nodes].astype(np.int64), kind="stable")]
        asked = np.stack([test_of_link(self.links[nodes]), forest.hot[self.first + nodes, 0]], axis=1)
        _, earliest = np.unique(asked, axis=0, return_index=True)  # the same test further down parts nothing
        nodes = self.first + nodes[np.sort(earliest)][:MOST_TESTS]
        stratum = np.zeros(len(self.rows), np.int32)
        most = max(len(self.rows) // STRATUM_ROWS, 1)
        names = np.full(MOST_BRANCHES * most, -1, np.int32)
        n_strata = self.k.predict.permutation.make_strata(
            self.columns, nodes, self.packed, names, most, np.empty_like(stratum), stratum
        )
        return stratum, int(n_strata)


def disjoint(tried: Iterable[int], units: Sequence[NDArray[np.int64]], most: int) -> list[list[int]]:
    """Part units into lists of at most `most` in which no two share a feature."""
    batches: list[tuple[list[int], set[int]]] = []
    for u in tried:
        features = set(units[u].tolist())
        for batch, taken in batches:
            if len(batch) < most and not features & taken:
                batch.append(u)
                taken.update(features)
                break
        else:
            batches.append(([u], features))
    return [batch for batch, _ in batches]


def leaf_predictions(forest: Forest, tree: int) -> NDArray[Any]:
    """Class (the heaviest, the first among equals) or value of each leaf of a tree, (n_nodes,); others mean nothing."""
    nodes = slice(forest.first_node[tree], forest.first_node[tree + 1])
    predicted = np.ascontiguousarray(forest.hot[nodes, 0]).view(np.float64)
    if not forest.n_classes:
        return predicted
    codes = np.where(forest.is_leaf[nodes], predicted, 0.0).astype(np.int64)
    mixed = forest.distributions[forest.first_mixed[tree] : forest.first_mixed[tree + 1]]
    if len(mixed):
        codes[codes < 0] = mixed.argmax(axis=1)[-1 - codes[codes < 0]]
    return codes
