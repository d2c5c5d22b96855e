"""Which features matter to a forest: what their tests bring, and what is lost when their values are permuted.

Words: a *unit* is what gets an importance, a feature or a group of features. Every kind is a number per tree and unit;
the importance is the mean over the trees, the standard error the spread over the trees.

    impurity        decrease of the impurity of the training rows (Breiman et al. 1984), `Tree.importances`
    impurity_oob    the same with one of its two factors from rows out of the bag (Zhou and Hooker 2021)
    permutation     rise of the error of rows out of the bag with the unit permuted among them (Breiman 2001)
    conditional     the same, permuted among rows alike in correlated features only (Strobl et al. 2008)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from spinney._packing import feature_of_link, test_of_link
from spinney._types import MOST_BRANCHES
from spinney.kernels.common.structs import PackedTree, Permuted, RouteChanges, RouteScratch, RouteStack
from spinney.tree.forest import Forest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from spinney.tree.structure import Tree

WALKERS = 1 << 18  # permuted rows on their way at once: 6 MB
SOURCES = 1 << 24  # permuted places held at once: 64 MB
CELL_ROWS = 5  # rows that a cell of conditional permutation holds in the mean, at least
MOST_TESTS = 256  # that part the rows into these cells
CORRELATED_ROWS = 65_536  # rows that correlations are taken from: sums of products of ranks stay exact in float64


# --- The table --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class ImportanceTable:
    """Importances of features or groups of features.

    Attributes
    ----------
    feature : tuple of str
        Names of the features or groups.
    importance : float64 (n,)
        "impurity": shares with sum 1. "impurity_oob": decrease of Gini impurity or of the variance of y. "permutation",
        "conditional": rise of the share of wrong classes, of the squared error, or fall of the score asked for.
    std_error : float64 (n,)
        Spread over the trees, standard deviation / sqrt(trees): how far another forest on the same rows might be. Rows
        of another sample might differ by more.
    kind : str

    Examples
    --------
    >>> table = ImportanceTable(("age", "pay"), np.array([0.1, 0.3]), np.array([0.01, 0.02]), "permutation")
    >>> print(table)
    permutation importance
    feature  importance  std error
    pay             0.3       0.02
    age             0.1       0.01
    >>> table.sorted().feature
    ('pay', 'age')
    """

    feature: tuple[str, ...]
    importance: NDArray[np.float64]
    std_error: NDArray[np.float64]
    kind: str

    def __len__(self) -> int:
        return len(self.feature)

    def __repr__(self) -> str:
        return str(self)

    def sorted(self) -> ImportanceTable:
        """The same with the most important first; equal ones keep their order."""
        order = np.argsort(-self.importance, kind="stable")
        names = tuple(self.feature[i] for i in order)
        return replace(self, feature=names, importance=self.importance[order], std_error=self.std_error[order])

    def lines(self) -> list[tuple[str, str, str]]:
        """Texts of the rows, the most important first."""
        table = self.sorted()
        cells = zip(table.feature, table.importance.tolist(), table.std_error.tolist(), strict=True)
        return [(name, f"{value:.4g}", f"{error:.2g}") for name, value, error in cells]

    def __str__(self) -> str:
        rows = [("feature", "importance", "std error"), *self.lines()]
        wide = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = [f"{name:<{wide[0]}}  {value:>{wide[1]}}  {error:>{wide[2]}}" for name, value, error in rows]
        return "\n".join([f"{self.kind} importance", *lines])

    def _repr_html_(self) -> str:
        head = "<tr><th>feature</th><th>importance</th><th>std error</th></tr>"
        rows = [f"<tr><td>{escape(name)}</td><td>{v}</td><td>{e}</td></tr>" for name, v, e in self.lines()]
        return f"<table><caption>{escape(self.kind)} importance</caption>{head}{''.join(rows)}</table>"

    def to_frame(self) -> Any:
        """The table as a pandas frame, or as an Arrow table where pandas is not installed."""
        columns = {"feature": list(self.feature), "importance": self.importance, "std_error": self.std_error}
        try:
            import pandas as pd  # type: ignore[import-untyped,unused-ignore]
        except ImportError:
            import pyarrow as pa

            return pa.table(columns)
        return pd.DataFrame(columns)

    def plot(self, ax: Any = None) -> Any:
        """Draw bars with two standard errors to either side, the most important on top; returns matplotlib's axes."""
        if ax is None:
            try:
                import matplotlib.pyplot as plt  # type: ignore[import-not-found,unused-ignore]
            except ImportError as error:
                raise ImportError("plot needs matplotlib: pip install 'spinney[plot]'") from error
            _, ax = plt.subplots(figsize=(6.4, 1.0 + 0.3 * len(self)), layout="constrained")
        table = self.sorted()
        ax.barh(range(len(table)), table.importance, xerr=2.0 * table.std_error, height=0.7)
        ax.set_yticks(range(len(table)), labels=table.feature)
        ax.invert_yaxis()
        ax.axvline(0.0, linewidth=0.8, color="0.3")
        ax.set_xlabel(f"{self.kind} importance, with 2 standard errors")
        return ax


def tabulate(names: Sequence[str], by_tree: NDArray[np.float64], kind: str) -> ImportanceTable:
    """Means and standard errors of importances per tree, shape (n_trees, n_units)."""
    n_trees = len(by_tree)
    spread = by_tree.std(axis=0, ddof=1) if n_trees > 1 else np.full(by_tree.shape[1], np.nan)
    return ImportanceTable(tuple(names), by_tree.mean(axis=0), spread / math.sqrt(n_trees), kind)


# --- Impurity ---------------------------------------------------------------------------------------------------


def impurity_by_tree(forest: Forest) -> NDArray[np.float64]:
    """Impurity decrease by tree and feature, (n_trees, n_features), scaled so that the means have sum 1."""
    by_tree = np.array([tree.importances() for tree in forest])
    total = by_tree.sum()
    return by_tree * (len(by_tree) / total if total > 0.0 else 1.0)


def unbiased_decrease(tree: Tree, leaf: NDArray[np.int32], truth: NDArray[Any]) -> NDArray[np.float64]:
    """Impurity decrease by feature as rows out of the bag confirm it (UFI of Zhou and Hooker 2021), (n_features,).

    A split of node t lowers Gini impurity by the sum over its branches c of w_c |p_c|² less w_t |p_t|², p being class
    shares and w shares of the weight of the bag. Chance alone makes that positive. Here one p of each square comes from
    rows out of the bag, p' (for numbers, means of y from the root's mean on stand for the shares):

        sum over c of w_c p_c·p'_c  -  w_t p_t·p'_t

    Where y does not depend on the feature, all p' of a node have the same expectation whatever the tree, and because
    the w_c p_c add up to w_t p_t, the expectation is 0. A branch that no such row reaches takes its parent's p', which
    keeps that true. The formula is that of Gini and variance, whatever the criterion of the tree.

    Parameters
    ----------
    leaf : int32 (n,)
        Leaves of the rows out of the bag.
    truth : (n,)
        Their classes, as codes, or targets.
    """
    inside = tree.values()
    if tree.n_classes:
        at = leaf.astype(np.int64) * tree.n_classes + truth
        sums = np.bincount(at, minlength=tree.n_nodes * tree.n_classes).reshape(-1, tree.n_classes).astype(np.float64)
    else:
        sums = np.bincount(leaf, truth - inside[0], tree.n_nodes)[:, None].astype(np.float64)
        inside = (inside - inside[0])[:, None]
    counts = tree.sum_up(np.bincount(leaf, minlength=tree.n_nodes).astype(np.float64))
    outside = tree.sum_up(sums) / np.maximum(counts, 1.0)[:, None]
    for level in tree.levels[1:]:
        empty = level[counts[level] == 0.0]
        outside[empty] = outside[tree.parent[empty]]
    agreement = tree.weight / tree.weight[0] * np.einsum("nk,nk->n", inside, outside)
    inner = np.flatnonzero(~tree.is_leaf)
    decrease = -agreement[inner]
    for branch in range(int(tree.n_branches.max(initial=0))):
        has = tree.n_branches[inner] > branch
        decrease[has] += agreement[tree.first_child[inner[has]] + branch]
    total: NDArray[np.float64] = np.bincount(tree.feature[inner], decrease, tree.n_features).astype(np.float64)
    return total


# --- Permutation ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Trial:
    """What the permutations of all trees share.

    Attributes
    ----------
    table : (n_rows, n_features) float32 or float64
        The values of the training rows.
    truth : (n_rows,)
        Their classes, as codes, or targets.
    units : tuple of int64 arrays
        The features of each unit, ascending.
    seed, n_repeats : int
        Permutations are drawn by (seed, tree, first feature of the unit, repeat).
    partners : bool (n_units, n_features), optional
        Features within whose cells a unit is permuted; None: among all rows.
    score : callable, optional
        `score(tree, rows, leaf)`, of rows in these leaves, larger being better; None: the share of wrong classes or the
        mean squared error, which is much faster.
    """

    forest: Forest
    table: NDArray[Any]
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
        self.columns = np.ascontiguousarray(trial.table[rows].T)

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
        said = leaf_answers(trial.forest, self.tree)
        truth = trial.truth[self.rows]
        total = np.zeros(len(batch))
        for unit, place, end in parts:
            before, after, y = said[leaf[place]], said[end], truth[place]
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

        The draw depends on (seed, tree, first feature of the unit, repeat) and on the number of rows (of each cell).
        """
        trial, n_rows = self.trial, len(self.rows)
        order, begin = np.arange(n_rows, dtype=np.int32), np.array([0, n_rows], np.int64)
        if trial.partners is not None:
            cell, n_cells = self.part_rows(trial.partners[unit])
            order = np.argsort(cell, kind="stable").astype(np.int32)
            begin = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=n_cells))]).astype(np.int64)
        source = np.empty(n_rows, np.int32)
        key = np.uint64(trial.seed), np.uint64(self.tree), np.uint64(trial.units[unit][0]), np.uint64(repeat)
        self.k.predict.permutation.shuffle(*key, order, begin, np.empty(n_rows, np.int32), source)
        return source

    def part_rows(self, is_partner: NDArray[np.bool_]) -> tuple[NDArray[np.int32], int]:
        """Cells of rows that take the same branch at all the tree's tests of some features, (n,), and their number.

        Strobl's cells are made by all these tests. A tree grown to the end has so many that each row is a cell of its
        own and nothing can be permuted. Tests are therefore used from the one with the most training rows down, until
        cells would hold fewer than CELL_ROWS rows in the mean, or MOST_TESTS are used.
        """
        forest = self.trial.forest
        nodes = np.flatnonzero(np.append(is_partner, False)[self.tested])
        nodes = nodes[np.argsort(-forest.n_rows[self.first + nodes].astype(np.int64), kind="stable")]
        asked = np.stack([test_of_link(self.links[nodes]), forest.hot[self.first + nodes, 0]], axis=1)
        _, earliest = np.unique(asked, axis=0, return_index=True)  # the same test further down parts nothing
        nodes = self.first + nodes[np.sort(earliest)][:MOST_TESTS]
        cell = np.zeros(len(self.rows), np.int32)
        most = max(len(self.rows) // CELL_ROWS, 1)
        names = np.full(MOST_BRANCHES * most, -1, np.int32)
        n_cells = self.k.predict.permutation.make_cells(
            self.columns, nodes, self.packed, names, most, np.empty_like(cell), cell
        )
        return cell, int(n_cells)


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


def leaf_answers(forest: Forest, tree: int) -> NDArray[Any]:
    """Class (the heaviest, the first among equals) or value of each leaf of a tree, (n_nodes,); others mean nothing."""
    nodes = slice(forest.first_node[tree], forest.first_node[tree + 1])
    said = np.ascontiguousarray(forest.hot[nodes, 0]).view(np.float64)
    if not forest.n_classes:
        return said
    codes = np.where(forest.is_leaf[nodes], said, 0.0).astype(np.int64)
    mixed = forest.distributions[forest.first_mixed[tree] : forest.first_mixed[tree + 1]]
    if len(mixed):
        codes[codes < 0] = mixed.argmax(axis=1)[-1 - codes[codes < 0]]
    return codes


# --- Which features go together ---------------------------------------------------------------------------------


def find_partners(
    values: NDArray[Any], n_levels: NDArray[np.int32], units: Sequence[NDArray[np.int64]], threshold: float
) -> NDArray[np.bool_]:
    """Features correlated with one of a unit's, but not in it, (n_units, n_features)."""
    is_close = correlate(values, n_levels) > threshold
    partners = np.stack([is_close[features].any(axis=0) for features in units])
    for u, features in enumerate(units):
        partners[u, features] = False
    return partners


def correlate(values: NDArray[Any], n_levels: NDArray[np.int32]) -> NDArray[np.float64]:
    """How strongly each two features go together, from 0 to 1, (n_features, n_features).

    Numbers: |Spearman's rank correlation|. A category and a number: the correlation ratio of the ranks. Categories:
    Cramér's V. The latter two are freed of what chance brings where there are many levels (Bergsma 2013 for V, the
    degrees of freedom for the ratio). A missing number counts as the middle rank, a missing category as a level. Of
    more than CORRELATED_ROWS rows as many are taken, evenly spaced.
    """
    if len(values) > CORRELATED_ROWS:
        values = values[np.linspace(0, len(values) - 1, CORRELATED_ROWS).astype(np.int64)]
    n_features = values.shape[1]
    strength = np.zeros((n_features, n_features))
    numbers, categories = np.flatnonzero(n_levels == 0), np.flatnonzero(n_levels > 0)
    # twice the distance of ranks from their mean: whole numbers, so that sums are exact in whatever order they are made
    ranks = np.stack([centred_ranks(values[:, j]) for j in numbers], axis=1) if len(numbers) else np.empty((0, 0))
    if len(numbers):
        sums = ranks.T @ ranks
        scale = np.sqrt(np.maximum(np.diag(sums), 1.0))
        strength[np.ix_(numbers, numbers)] = np.abs(sums) / scale / scale[:, None]
    levels = {int(j): np.unique(values[:, j], return_inverse=True)[1] for j in categories}
    for at, a in enumerate(categories.tolist()):
        for b, rank in zip(numbers.tolist(), ranks.T, strict=True):
            strength[a, b] = strength[b, a] = correlation_ratio(levels[a], rank)
        for b in categories[:at].tolist():
            strength[a, b] = strength[b, a] = cramers_v(levels[a], levels[b])
    np.fill_diagonal(strength, 1.0)
    return strength


def centred_ranks(column: NDArray[Any]) -> NDArray[np.float64]:
    """Twice the distance of each rank from the mean rank; 0 where missing."""
    ranks = np.zeros(len(column))
    known = np.flatnonzero(~np.isnan(column))
    _, group, counts = np.unique(column[known], return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks[known] = (2 * last - counts - len(known))[group]
    return ranks


def correlation_ratio(group: NDArray[np.int64], rank: NDArray[np.float64]) -> float:
    """Root of the share of the variance of `rank` that lies between groups, less what chance would bring."""
    n = len(rank)
    counts = np.bincount(group)
    common = float(np.square(rank.sum())) / n
    total = float(rank @ rank) - common
    if total <= 0.0 or n <= len(counts):
        return 0.0
    sums = np.bincount(group, rank)
    between = float(np.sum(sums * sums / counts)) - common
    within = (1.0 - between / total) * (n - 1) / (n - len(counts))
    return math.sqrt(min(max(1.0 - within, 0.0), 1.0))


def cramers_v(a: NDArray[np.int64], b: NDArray[np.int64]) -> float:
    """Cramér's V with Bergsma's correction of its bias."""
    n, n_a, n_b = len(a), int(a.max()) + 1, int(b.max()) + 1
    if min(n_a, n_b, n - 1) < 2:
        return 0.0
    cells, counts = np.unique(a * n_b + b, return_counts=True)
    expected = np.bincount(a)[cells // n_b] * np.bincount(b)[cells % n_b].astype(np.float64)
    excess = float(np.sum(counts / expected * counts)) - 1.0 - (n_a - 1) * (n_b - 1) / (n - 1)
    least = min(n_a - (n_a - 1) ** 2 / (n - 1), n_b - (n_b - 1) ** 2 / (n - 1)) - 1.0
    return math.sqrt(min(max(excess, 0.0) / least, 1.0)) if least > 0.0 else 0.0
