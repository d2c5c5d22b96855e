"""Answers of exported trees, row by row, from the tables of a JSON export: what an export to Python runs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

LEAF, THRESHOLD, SUBSET, LEVELS = 0, 1, 2, 3
EVERY_BRANCH = -1
MOST = 1.7976931348623157e308  # the largest float64


class Evaluator:
    """Answers rows.

    Parameters
    ----------
    model : dict
        The tables of a JSON export.
    """

    def __init__(self, model: Mapping[str, Any]) -> None:
        nodes = model["nodes"]
        self.kind, self.column, self.first = nodes["kind"], nodes["column"], nodes["first"]
        self.cut, self.subset = [float(cut) for cut in nodes["cut"]], nodes["subset"]
        self.missing, self.share = nodes["missing"], nodes.get("share")
        self.names = [column["name"] for column in model["columns"]]
        self.levels = [list_levels(column) for column in model["columns"]]
        self.subsets = [frozenset(subset) for subset in model["subsets"]]
        self.surrogates = dict(model["surrogates"])
        self.terms = dict(model["terms"])
        self.classes, self.choice = model["classes"], model["choice"]
        self.roots, self.leaves, self.start = model["roots"], model["leaves"], model["start"]
        self.steps = [(STEPS[step["step"]], step) for step in model["steps"]]

    def read(self, row: Any) -> list[Any]:
        """The values of a row: a dict by name, or cells in the order of the columns; None where one is missing."""
        if hasattr(row, "keys"):
            absent = [name for name in self.names if name not in row]
            if absent:
                raise ValueError(f"the row has no column {absent[0]!r}")
            row = [row[name] for name in self.names]
        if len(row) != len(self.names):
            raise ValueError(f"a row has {len(self.names)} cells, not {len(row)}")
        return [read_cell(*cell) for cell in zip(row, self.levels, self.names)]  # noqa: B905  (checked above)

    def answer(self, row: Any) -> list[float]:
        """Numbers of a row, or the probabilities of its classes, as a list."""
        return self.finish(self.add_up(self.read(row)))

    def predict(self, row: Any) -> Any:
        """The class of a row, or its number; a list where there are several numbers."""
        sums = self.add_up(self.read(row))
        answers = self.finish(sums)
        if self.classes is None:
            return answers[0] if len(answers) == 1 else answers
        if self.choice == "sign":
            return self.classes[1 if sums[0] > 0.0 else 0]
        scores = sums if self.choice == "sums" else answers
        return self.classes[scores.index(max(scores))]

    def add_up(self, values: Sequence[Any]) -> list[float]:
        """The sums of what the trees say."""
        sums = list(self.start)
        for root in self.roots:
            for leaf, share in self.find(root, values):
                terms = self.terms.get(leaf)
                for at, value in self.leaves[leaf]:
                    said = value if terms is None else add_terms(value, terms, values)
                    sums[at] += said if share == 1.0 else share * said
        return sums

    def find(self, root: int, values: Sequence[Any]) -> list[tuple[int, float]]:
        """The leaves that a row ends in, from left to right, and which part of it."""
        found = []
        waiting = [(root, 1.0)]
        while waiting:
            node, share = waiting.pop()
            while self.kind[node] != LEAF:
                branch = self.branch(node, values)
                if branch == EVERY_BRANCH:
                    break
                node = self.first[node] + branch
            if self.kind[node] == LEAF:
                found.append((self.first[node], share))
                continue
            first = self.first[node]
            n_branches = 2 if self.kind[node] != LEVELS else len(self.levels[self.column[node]])
            branches = [child for child in range(first, first + n_branches) if self.share[child] > 0.0]
            waiting.extend((child, share * self.share[child]) for child in reversed(branches))
        return found

    def branch(self, node: int, values: Sequence[Any]) -> int:
        """The branch that a row takes at a node."""
        value = values[self.column[node]]
        if value is not None:
            if self.kind[node] == THRESHOLD:
                return 1 if value > self.cut[node] else 0
            return value if self.kind[node] == LEVELS else int(value not in self.subsets[self.subset[node]])
        for column, cut, subset, known, is_reversed in self.surrogates.get(node, ()):
            value = values[column]
            if value is None or (known >= 0 and value not in self.subsets[known]):
                continue
            branch = int(value > float(cut)) if known < 0 else int(value not in self.subsets[subset])
            return branch ^ int(is_reversed)
        return self.missing[node]

    def finish(self, sums: Sequence[float]) -> list[float]:
        """The answers."""
        answers = list(sums)
        for step, arguments in self.steps:
            answers = step(answers, arguments)
        return answers


def list_levels(column: Mapping[str, Any]) -> dict[Any, int] | None:
    """Where each level of a column stands; None for numbers."""
    levels = column.get("levels")
    return None if levels is None else {level: place for place, level in enumerate(levels)}


def read_cell(cell: Any, levels: Mapping[Any, int] | None, name: str) -> Any:
    """A number, or the place of a level; None where it is missing or not known."""
    if is_missing(cell):
        return None
    if levels is not None:
        place = levels.get(cell)
        known = next(iter(levels), cell)
        if place is None and isinstance(cell, str) is not isinstance(known, str):
            raise TypeError(f"column {name!r} has levels such as {known!r}, of another kind than {cell!r}")
        return place
    if isinstance(cell, (str, bytes)) or not (hasattr(cell, "__float__") or hasattr(cell, "__index__")):
        raise TypeError(f"column {name!r} holds numbers, not {cell!r}")
    return float(cell)


def is_missing(cell: Any) -> bool:
    """Whether there is no value: None, NaN, NaT, or the NA of pandas, which cannot say whether it is itself."""
    try:
        return cell is None or bool(cell != cell)  # noqa: PLR0124  (NaN)
    except TypeError:
        return True


def add_terms(total: float, terms: Sequence[Any], values: Sequence[Any]) -> float:
    """The value of a linear model; what leaves the range of float64 stays at its end."""
    for column, coefficient, fill in terms:
        value = values[column]
        if value is not None:
            if math.isinf(value):
                raise ValueError("a linear leaf cannot take infinite values")
            total = bound_sum(total + bound_sum(coefficient * bound_sum(value - fill)))
    return total


def bound_sum(x: float) -> float:
    """The nearest number that is finite."""
    return min(max(x, -MOST), MOST)


def exponential(x: float) -> float:
    """Exp in additions and products alone, so that all languages give the same bits."""
    if x != x:  # noqa: PLR0124  (NaN)
        return x
    x = min(max(x, -708.0), 709.0)
    k = (x * 1.4426950408889634 + 6755399441055744.0) - 6755399441055744.0
    r = (x - k * 0.6931471803691238) - k * 1.9082149292705877e-10
    r2 = r * r
    r4 = r2 * r2
    low = (0.5000000000000001 + 0.16666666666666669 * r) + (0.04166666666662413 + 0.008333333333330062 * r) * r2
    high = (
        (0.0013888888917213717 + 0.00019841269863053618 * r)
        + (2.4801521295954376e-05 + 2.7557268459997064e-06 * r) * r2
        + (2.7620088445409746e-07 + 2.510038549551032e-08 * r) * r4
    )
    return math.ldexp(1.0 + (r + r2 * (low + high * r4)), int(k))


def divide(sums: Sequence[float], arguments: Mapping[str, Any]) -> list[float]:
    """Divide by a number."""
    return [x / arguments["by"] for x in sums]


def multiply(sums: Sequence[float], arguments: Mapping[str, Any]) -> list[float]:
    """Multiply by a number."""
    return [x * arguments["by"] for x in sums]


def raise_e(sums: Sequence[float], _: Mapping[str, Any]) -> list[float]:
    """Exp of each."""
    return [exponential(x) for x in sums]


def sort(sums: Sequence[float], _: Mapping[str, Any]) -> list[float]:
    """In ascending order."""
    return sorted(sums)


def median(sums: Sequence[float], arguments: Mapping[str, Any]) -> list[float]:
    """The smallest such that it and those below have half of all the weight."""
    weights = arguments["weights"]
    order = sorted(range(len(sums)), key=sums.__getitem__)
    below: list[float] = []
    total = 0.0
    for member in order:
        total = total + weights[member] if below else weights[member]
        below.append(total)
    return [next(sums[member] for member, weight in zip(order, below) if weight >= 0.5 * total)]  # noqa: B905


def contrast(votes: Sequence[float], arguments: Mapping[str, Any]) -> list[float]:
    """Votes of each class against those of the others."""
    total, others, weight = arguments["total"], arguments["others"], arguments["weight"]
    return [(vote - (total - vote) / others) / weight for vote in votes]


def logistic(sums: Sequence[float], _: Mapping[str, Any]) -> list[float]:
    """Probabilities of two classes; both keep their digits near 0."""
    e = exponential(-abs(sums[0]))
    likely = 1.0 / (1.0 + e)
    return [likely, e * likely] if sums[0] < 0.0 else [e * likely, likely]


def softmax(scores: Sequence[float], _: Mapping[str, Any]) -> list[float]:
    """Probabilities of classes."""
    most = max(scores)
    parts = [exponential(score - most) for score in scores]
    total = 0.0
    for part in parts:
        total += part
    return [part / total for part in parts]


STEPS: dict[str, Callable[[Sequence[float], Mapping[str, Any]], list[float]]] = {
    "divide": divide,
    "multiply": multiply,
    "exp": raise_e,
    "sort": sort,
    "median": median,
    "contrast": contrast,
    "logistic": logistic,
    "softmax": softmax,
}
