"""The smallest change of a row that changes the answer.

*Smallest*: the fewest columns; among those, the least sum of sizes. The size of a change of a number is the distance in
units of the column's spread: its standard deviation in the rows that are given, else the distance between the lowest
and the highest threshold that the model has for it, 1 where that is 0. Another level, and a number where none or an
infinite one was, have size 1. Numbers are moved just across a threshold and no further: to the next whole number where
all that are known of the column in the rows that are given are whole.

Of one tree it is exact, by going over the leaves, unless the row has missing values that surrogates decide on or that
take every branch, or leaves are linear. Of an ensemble, changes of one column are exact, by trying every interval
between thresholds; more columns are searched for, one after the other, and then each change is made as small as it may
be. What is found is predicted before it is handed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._types import SUBSET, THRESHOLD
from spinney.model.predictors import TreePredictor
from spinney.reading.conditions import ALWAYS, Condition, branch_condition
from spinney.reading.wording import caption, number

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from spinney.model.base_predictor import Predictor
    from spinney.tree.structure import Tree

N_BEAM = 8  # rows that a search goes on from
MOST_CANDIDATES = 48  # values of a column that a search tries beyond the first column
MOST_ROWS = 1 << 16  # that are predicted at once
N_ROUNDS = 4  # of making changes smaller
SMALLEST = float(np.finfo(np.float64).tiny)  # size of a change, however large the spread: it is one


class Change(NamedTuple):
    """Another value of a column.

    Attributes
    ----------
    column : str
    before, after : object
        Numbers, levels, None where missing.
    size : float
        In units of the column's spread; 1 for a level.
    """

    column: str
    before: Any
    after: Any
    size: float

    def __str__(self) -> str:
        after = show_cell(self.after)
        if isinstance(self.after, float):
            after, cut = exact(self.after), exact(float(np.nextafter(self.after, -np.inf)))
            is_higher = self.before is None or self.after > self.before
            if is_higher and (after != number(self.after) or len(cut) < len(after)):  # just across a threshold
                after = f"above {cut}"
        return f"{caption(self.column)}: {after} instead of {show_cell(self.before)}"


@dataclass(frozen=True, repr=False)
class Counterfactual:
    """A small change of a row, and the other answer that it gets.

    Attributes
    ----------
    changes : tuple of Change
    answer : object
        The class, or the number, that the model predicts for the changed row.
    values : float64 (n_features,)
        The changed row, as `Predictor.encode` has rows.
    is_exact : bool
        Whether no smaller change can be; else it is the smallest that was found.
    """

    changes: tuple[Change, ...]
    answer: Any
    values: NDArray[np.float64]
    is_exact: bool

    @property
    def size(self) -> float:
        """Sum of the sizes of the changes."""
        return float(sum(change.size for change in self.changes))

    def __str__(self) -> str:
        how = "the smallest change" if self.is_exact else "the smallest change found"
        answer = show_cell(self.answer)
        if not self.changes:
            return f"nothing has to change: the answer is {answer}"
        return f"{'; '.join(map(str, self.changes))} would make it {answer} ({how})"

    def __repr__(self) -> str:
        return f"Counterfactual({self})"


def exact(x: float) -> str:
    """A number in text that reads back as it is: less would be on the other side of a threshold."""
    text = number(x)
    return text if float(text) == x else repr(x)


def show_cell(cell: Any) -> str:
    """A value in text."""
    if cell is None:
        return "missing"
    return number(cell) if isinstance(cell, float) else caption(cell)


class Goal(NamedTuple):
    """What the answer is to become: a class, another class, or a number within an interval."""

    before: int  # code of the class that is predicted; -1 for numbers
    wanted: int  # code of a class, or -1
    low: float
    high: float


class Search:
    """The search for a small change of one row.

    Parameters
    ----------
    predictor : Predictor
    row : float64 (n_features,)
        Encoded.
    goal : Goal
    allowed : dict of Condition by feature
        The features that may change, and to what.
    X : float64 (n_rows, n_features), optional
        Encoded rows that tell the units of changes, and which columns are whole numbers.
    """

    def __init__(
        self,
        predictor: Predictor,
        row: NDArray[np.float64],
        goal: Goal,
        allowed: Mapping[int, Condition],
        X: NDArray[np.float64] | None,
    ) -> None:
        self.predictor, self.row, self.goal, self.allowed = predictor, row, goal, allowed
        self.trees = [predictor.tree] if isinstance(predictor, TreePredictor) else list_trees(predictor)
        self.spread = find_spread(predictor, X, self.trees)
        self.is_whole = np.zeros(len(row), bool) if X is None else are_whole(X)

    def find(self) -> tuple[NDArray[np.float64], bool] | None:
        """The changed row and whether no change is smaller; None where nothing was found."""
        if self.is_plain_tree():
            found = self.go_over_leaves(self.trees[0])
            return None if found is None else (found, True)
        candidates = {j: self.candidates(j) for j in self.allowed}
        one = self.try_one(candidates)
        if one is not None:
            return one, all(tree.linear is None for tree in self.trees)
        more = self.try_more(candidates)
        return None if more is None else (self.make_smaller(more, candidates), False)

    def is_plain_tree(self) -> bool:
        """Whether leaves are boxes that the row is in or not."""
        if not isinstance(self.predictor, TreePredictor) or self.predictor.tree.linear is not None:
            return False
        tree = self.predictor.tree
        return not np.isnan(self.row).any() or (tree.surrogates is None and not tree.spreads_missing.any())

    # --- what is asked of rows ---

    def is_reached(self, rows: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which rows get the answer that is wanted."""
        if self.goal.before < 0:
            answer = self.predictor.answer(rows).reshape(len(rows), -1)[:, 0]
            return (answer >= self.goal.low) & (answer <= self.goal.high)
        code = self.predictor.choose(rows)
        return code == self.goal.wanted if self.goal.wanted >= 0 else code != self.goal.before

    def score(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """How near rows are to the answer that is wanted, the more the nearer."""
        answer = self.predictor.answer(rows).reshape(len(rows), -1)
        if self.goal.before < 0:
            return -np.maximum(np.maximum(self.goal.low - answer[:, 0], answer[:, 0] - self.goal.high), 0.0)
        own = self.goal.wanted if self.goal.wanted >= 0 else self.goal.before
        others = np.delete(answer, own, axis=1).max(axis=1, initial=0.0)
        return answer[:, own] - others if self.goal.wanted >= 0 else others - answer[:, own]

    def size(self, j: int, value: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sizes of changes of a feature to values; 0 where nothing changes."""
        before = self.row[j]
        is_same = (value == before) | (np.isnan(value) & np.isnan(before))
        if self.trees[0].n_levels[j] or not np.isfinite(before):
            return np.where(is_same, 0.0, 1.0)
        with np.errstate(over="ignore"):
            size = np.abs(value - before) / self.spread[j]
        return np.where(is_same, 0.0, np.maximum(size, SMALLEST))

    def cost(self, rows: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """How many columns of rows are changed, and by how much in all."""
        sizes = np.array([self.size(j, rows[:, j]) for j in range(rows.shape[1])])
        return np.count_nonzero(sizes, axis=0), sizes.sum(axis=0)

    def smallest(self, rows: NDArray[np.float64]) -> NDArray[np.float64] | None:
        """The smallest change among rows that get the wanted answer; None if none does."""
        rows = rows[self.is_reached(rows)]
        if len(rows) == 0:
            return None
        n_changed, size = self.cost(rows)
        return rows[np.lexsort([size, n_changed])[0]]

    # --- one tree ---

    def go_over_leaves(self, tree: Tree) -> NDArray[np.float64] | None:
        """The nearest row of each leaf, if the columns that must change may; the smallest that gets the answer."""
        found = [row for _, box in leaf_boxes(tree) if (row := self.enter(box)) is not None]
        return self.smallest(np.array(found)) if found else None

    def enter(self, box: dict[int, Condition]) -> NDArray[np.float64] | None:
        """The row, changed as little as brings it into a box; None where that is not allowed."""
        row = self.row.copy()
        for j, condition in box.items():
            if condition.holds(row[j : j + 1])[0]:
                continue
            if j not in self.allowed:
                return None
            value = nearest(condition & self.allowed[j], float(row[j]), is_whole=bool(self.is_whole[j]))
            if value is None:
                return None
            row[j] = value
        return row

    # --- ensembles ---

    def candidates(self, j: int) -> NDArray[np.float64]:
        """Values of a feature: the nearest of every interval between thresholds, or every level, nearest first."""
        allowed = self.allowed[j]
        if self.trees[0].n_levels[j]:
            levels = np.arange(self.trees[0].n_levels[j]) if allowed.levels is None else allowed.levels
            return levels[levels != self.row[j]].astype(np.float64)
        cuts = np.unique(np.concatenate([thresholds_of(tree, j) for tree in self.trees]))
        bounds = [None, *cuts.tolist(), None]
        cells = [Condition(j, low, high) for low, high in pairwise(bounds)]
        is_whole = bool(self.is_whole[j])
        found = [nearest(cell & allowed, float(self.row[j]), is_whole=is_whole) for cell in cells]
        values = np.array([value for value in found if value is not None and value != self.row[j]])
        return values[np.argsort(self.size(j, values), kind="stable")]

    def change(self, rows: NDArray[np.float64], j: int, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Every row with every value of a feature."""
        many = np.repeat(rows, len(values), axis=0)
        many[:, j] = np.tile(values, len(rows))
        return many

    def try_one(self, candidates: dict[int, NDArray[np.float64]]) -> NDArray[np.float64] | None:
        """The smallest change of one column."""
        found = []
        for j, values in candidates.items():
            rows = self.change(self.row[None], j, values)
            for first in range(0, len(rows), MOST_ROWS):
                best = self.smallest(rows[first : first + MOST_ROWS])
                if best is not None:
                    found.append(best)
                    break
        return self.smallest(np.array(found)) if found else None

    def try_more(self, candidates: dict[int, NDArray[np.float64]]) -> NDArray[np.float64] | None:
        """Changes of one column after the other, of the rows that come nearest to the answer."""
        beam = self.row[None]
        few = {j: thin(values) for j, values in candidates.items() if len(values)}
        for _ in range(len(few)):
            parts = []
            for j, values in few.items():
                is_new = (beam[:, j] == self.row[j]) | (np.isnan(beam[:, j]) & np.isnan(self.row[j]))
                if is_new.any():
                    parts.append(self.change(beam[is_new], j, values))
            if not parts:
                return None
            rows = np.concatenate(parts)
            best = self.smallest(rows)
            if best is not None:
                return best
            beam = rows[np.argsort(-self.score(rows), kind="stable")[:N_BEAM]]
        return None

    def make_smaller(self, row: NDArray[np.float64], candidates: dict[int, NDArray[np.float64]]) -> NDArray[np.float64]:
        """Take back what is not needed, and bring each changed column as near as it may be, the others staying."""
        for _ in range(N_ROUNDS):
            before = row
            for j, far in candidates.items():
                if row[j] != self.row[j]:
                    values = np.concatenate([self.row[j : j + 1], far])
                    nearer = values[self.size(j, values) <= self.size(j, row[j : j + 1])[0]]
                    best = self.smallest(self.change(row[None], j, nearer))
                    row = row if best is None else best
            if np.array_equal(before, row, equal_nan=True):
                break
        return row


# --- parts --------------------------------------------------------------------------------------------------------


def list_trees(predictor: Predictor) -> list[Tree]:
    """The trees of an ensemble."""
    forest: Any = getattr(predictor, "used", None) or predictor.forest  # type: ignore[attr-defined]
    return [forest.take(t) for t in range(len(forest))]


def thresholds_of(tree: Tree, j: int) -> NDArray[np.float64]:
    """The finite thresholds of a tree for a feature, those of surrogates too."""
    cuts = tree.threshold[(tree.kind == THRESHOLD) & (tree.feature == j)]
    if tree.surrogates is not None:
        other = tree.surrogates
        cuts = np.concatenate([cuts, other.threshold[(other.feature == j) & (other.kind != SUBSET)]])
    return cuts[np.isfinite(cuts)]


def thin(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Values of a column that a search tries, evenly chosen."""
    if len(values) <= MOST_CANDIDATES:
        return values
    return values[np.linspace(0, len(values) - 1, MOST_CANDIDATES).round().astype(np.intp)]


def nearest(condition: Condition, value: float, *, is_whole: bool) -> float | None:
    """The known value, whole if need be, that satisfies a condition and is nearest to another; None if none does."""
    if not condition.has_known:
        return None
    if condition.levels is not None:
        levels = condition.levels
        return None if len(levels) == 0 else float(value if value in levels else levels[0])
    low = -np.inf if condition.low is None else float(np.nextafter(condition.low, np.inf))
    high = np.inf if condition.high is None else float(condition.high)
    if is_whole:
        low, high = float(np.ceil(low)), float(np.floor(high))
    if low > high:
        return None
    if np.isnan(value):
        value = 0.0
    return float(min(max(value, low), high))


def leaf_boxes(tree: Tree) -> Iterator[tuple[int, dict[int, Condition]]]:
    """Each leaf with what must hold of the features on its path."""
    stack: list[tuple[int, dict[int, Condition]]] = [(0, {})]
    while stack:
        node, box = stack.pop()
        if tree.is_leaf[node]:
            yield node, box
            continue
        j, first = int(tree.feature[node]), int(tree.first_child[node])
        for b in range(int(tree.n_branches[node])):
            condition = branch_condition(tree, node, b)
            stack.append((first + b, {**box, j: box[j] & condition if j in box else condition}))


def are_whole(X: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether each column has finite values, all of them whole numbers."""
    is_known = np.isfinite(X)
    return is_known.any(axis=0) & np.all(~is_known | (np.floor(X) == X), axis=0)


def find_spread(predictor: Predictor, X: NDArray[np.float64] | None, trees: list[Tree]) -> NDArray[np.float64]:
    """The unit that changes of each column are told in, (n_features,)."""
    spread = np.ones(predictor.n_features)
    for j in range(predictor.n_features):
        if X is not None:
            known = X[np.isfinite(X[:, j]), j]
        else:
            known = np.concatenate([thresholds_of(tree, j) for tree in trees])
        if len(known) == 0:
            continue
        with np.errstate(over="ignore", invalid="ignore"):
            size = float(np.std(known) if X is not None else np.ptp(known))
        spread[j] = size if 0.0 < size < np.inf else 1.0
    return spread


def counterfactual(
    predictor: Predictor,
    row: NDArray[np.float64],
    *,
    wanted: Any = None,
    vary: Any = None,
    ranges: Mapping[Any, Any] | None = None,
    X: NDArray[np.float64] | None = None,
) -> Counterfactual | None:
    """The smallest change of an encoded row that changes the answer; None where nothing was found.

    Parameters
    ----------
    predictor : Predictor
    row : float64 (n_features,)
    wanted : class, or (low, high), optional
        The class that it is to become, by default any other; of numbers the interval, None for no bound.
    vary : list of names or places, optional
        Columns that may change, of dates their parts; by default all.
    ranges : dict, optional
        By column that may change: (low, high) of numbers, None for no bound; levels of categories.
    X : float64 (n_rows, n_features), optional
        Encoded rows whose standard deviations are the units of changes, and whose whole numbers change to such.
    """
    goal = find_goal(predictor, row, wanted)
    allowed = {j: Condition(j, missing=ALWAYS) for j in locate_columns(predictor, vary)}
    for name, limits in (ranges or {}).items():
        (j,) = locate_columns(predictor, [name])
        if j not in allowed:
            raise ValueError(f"ranges: {name!r} may not change, since vary={vary!r} leaves it out: name it there, too")
        allowed[j] = limit(predictor, j, limits)
    search = Search(predictor, row, goal, allowed, X)
    if search.is_reached(row[None])[0]:
        return Counterfactual((), answer_of(predictor, row), row, is_exact=True)
    found = search.find()
    if found is None:
        return None
    values, is_exact = found
    names = predictor.schema.names or tuple(f"x{j}" for j in range(len(row)))
    changed = [j for j in range(len(row)) if search.size(j, values[j : j + 1])[0] > 0.0]
    changes = tuple(
        Change(
            names[j],
            cell_of(predictor, j, row[j]),
            cell_of(predictor, j, values[j]),
            float(search.size(j, values[j : j + 1])[0]),
        )
        for j in changed
    )
    return Counterfactual(changes, answer_of(predictor, values), values, is_exact)


def find_goal(predictor: Predictor, row: NDArray[np.float64], wanted: Any) -> Goal:
    """What the answer is to become."""
    if predictor.classes is None:
        if not (isinstance(wanted, tuple | list) and len(wanted) == 2):
            raise ValueError(f"wanted={wanted!r}: of numbers give (low, high), None where there is no bound")
        low, high = (
            end if value is None else float(value) for value, end in zip(wanted, (-np.inf, np.inf), strict=True)
        )
        if not low <= high:
            raise ValueError(f"wanted={wanted!r}: low is above high")
        return Goal(-1, -1, low, high)
    before = int(predictor.choose(row[None])[0])
    if wanted is None:
        return Goal(before, -1, 0.0, 0.0)
    classes = predictor.classes.tolist()
    if wanted not in classes:
        raise ValueError(f"wanted={wanted!r} is no class: there are {', '.join(map(repr, classes[:20]))}")
    return Goal(before, classes.index(wanted), 0.0, 0.0)


def locate_columns(predictor: Predictor, columns: Any) -> list[int]:
    """Places of columns that are given by name or place; all for None."""
    if columns is None:
        return list(range(predictor.n_features))
    if isinstance(columns, str | int):
        columns = [columns]
    names = predictor.schema.names or tuple(f"x{j}" for j in range(predictor.n_features))
    found = []
    for column in columns:
        if isinstance(column, str) and column in names:
            found.append(names.index(column))
        elif not isinstance(column, str) and 0 <= int(column) < predictor.n_features:
            found.append(int(column))
        else:
            refuse_dates(predictor, column)
            raise ValueError(f"{column!r} is not a column: there are {', '.join(names[:20])}")
    return found


def refuse_dates(predictor: Predictor, column: Any) -> None:
    """Raise where a column is one of dates, which change by their parts."""
    for dates in predictor.schema.dates or ():
        if dates is not None and dates.name == column:
            raise ValueError(
                f"{column!r} is a column of dates, of which the model reads parts, each by itself: name some of "
                f"{', '.join(dates.features)}"
            )


def limit(predictor: Predictor, j: int, limits: Any) -> Condition:
    """What a column may change to."""
    levels, names = predictor.schema.levels[j], predictor.schema.names
    name = f"x{j}" if names is None else names[j]
    if levels is not None:
        unknown = [level for level in limits if level not in levels]
        if unknown:
            raise ValueError(f"ranges: {unknown[0]!r} is no level of {name}: {', '.join(map(repr, levels[:20]))}")
        return Condition(j, levels=np.array(sorted(levels.index(level) for level in limits), np.int64), missing=ALWAYS)
    if not (isinstance(limits, tuple | list | np.ndarray) and len(limits) == 2):
        raise ValueError(f"ranges: {name} is a number: give (low, high), None where there is no bound, not {limits!r}")
    low, high = limits
    if not (-np.inf if low is None else low) <= (np.inf if high is None else high):
        raise ValueError(f"ranges: {name} may not be from {low} to {high}: low is above high, or a bound is no number")
    below = None if low is None else float(np.nextafter(float(low), -np.inf))  # a bound is within the range
    return Condition(j, below, None if high is None else float(high), missing=ALWAYS)


def cell_of(predictor: Predictor, j: int, value: float) -> Any:
    """A value as a user writes it."""
    if np.isnan(value):
        return None
    levels = predictor.schema.levels[j]
    return float(value) if levels is None else levels[int(value)]


def answer_of(predictor: Predictor, row: NDArray[np.float64]) -> Any:
    """What is predicted for one row: a class, or a number."""
    if predictor.classes is None:
        return float(predictor.answer(row[None]).reshape(-1)[0])
    return predictor.classes.tolist()[int(predictor.choose(row[None])[0])]
