"""A tree as if-then rules, one per leaf."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from spinney._criteria import SPREAD_CRITERIA
from spinney.reading.conditions import Condition, branch_condition, describe_condition, surrogates_of
from spinney.reading.several_outputs import refuse_outputs
from spinney.reading.text import SHARED, Contents, shares_missing
from spinney.reading.wording import count, has_missing, number, percent, row_count

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.tree.structure import Tree

BY_SURROGATES = "a missing value goes by the surrogates of its test"


@dataclass(frozen=True)
class Rule:
    """The path to one leaf, and its prediction.

    Attributes
    ----------
    leaf : int
        The node.
    conditions : tuple of str
        What must hold, in words; one for each feature, in the order in which the tree tests them.
    prediction : object
        The class, or the mean.
    n_rows : int
        Training rows in the leaf, those of which it has only a part too; 0 where it predicts as its parent does.
    share : float
        Their share of the weight of all rows.
    accuracy : float, optional
        Classes: the share of `prediction` in the leaf's weight. None for numbers, and without rows.
    deviation : float, optional
        Numbers: the standard deviation in the leaf, where the tree knows it. None for classes.
    """

    leaf: int
    conditions: tuple[str, ...]
    prediction: Any
    n_rows: int
    share: float
    accuracy: float | None
    deviation: float | None
    rows: str = field(repr=False)
    answer: str = field(repr=False)
    merged: tuple[Condition, ...] = field(repr=False)

    def __str__(self) -> str:
        facts = [self.rows]
        if self.n_rows:
            facts.append(percent(self.share))
        if self.accuracy is not None:
            facts.append(f"accuracy {percent(self.accuracy)}")
        if self.deviation is not None:
            facts.append(f"sd {number(self.deviation)}")
        conditions = f"if {' and '.join(self.conditions)} then" if self.conditions else "always"
        return f"{conditions} {self.answer} ({', '.join(facts)})"

    def holds(self, values: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which rows of values (n_rows, n_features), levels as their indices, satisfy every condition.

        A missing value satisfies a condition that takes missing values; never one where surrogates or shares decide.
        """
        fits = np.ones(len(values), np.bool_)
        for condition in self.merged:
            fits &= condition.holds(values[:, condition.feature])
        return fits


class Rules(Sequence[Rule]):
    """The rules of a tree, in the order of its leaves from left to right; prints one per line."""

    def __init__(self, rules: tuple[Rule, ...], note: str = "") -> None:
        self._rules = rules
        self._note = note

    def __len__(self) -> int:
        return len(self._rules)

    @overload
    def __getitem__(self, place: int) -> Rule: ...
    @overload
    def __getitem__(self, place: slice) -> Rules: ...
    def __getitem__(self, place: int | slice) -> Rule | Rules:
        """One rule, or some of them."""
        return Rules(self._rules[place], self._note) if isinstance(place, slice) else self._rules[place]

    def __str__(self) -> str:
        return "\n".join([*map(str, self._rules), *([f"({self._note})"] if self._note else [])])

    def __repr__(self) -> str:
        return f"<{count(len(self), 'rule')}>\n{self}"


def find_rules(tree: Tree) -> Rules:
    """The rules of a tree."""
    refuse_outputs(tree, "rules")
    contents = Contents(tree)
    deviations = node_deviations(tree)
    rules = tuple(make_rule(tree, leaf, merged, contents, deviations) for leaf, merged in leaves_in_order(tree))
    note = SHARED if shares_missing(tree) else BY_SURROGATES if uses_surrogates(tree) else ""
    return Rules(rules, note)


def leaves_in_order(tree: Tree) -> Iterator[tuple[int, tuple[Condition, ...]]]:
    """The leaves from left to right, each with its conditions, by feature in the order of the first test."""
    stack: list[tuple[int, dict[int, Condition]]] = [(0, {})]
    while stack:
        node, merged = stack.pop()
        if tree.is_leaf[node]:
            yield node, tuple(merged.values())
            continue
        feature, first = int(tree.feature[node]), int(tree.first_child[node])
        before = merged.get(feature)
        for b in range(int(tree.n_branches[node]) - 1, -1, -1):
            condition = branch_condition(tree, node, b)
            stack.append((first + b, {**merged, feature: condition if before is None else before & condition}))


def uses_surrogates(tree: Tree) -> bool:
    """Whether surrogates decided on training rows, as far as is known."""
    inner = np.flatnonzero(~tree.is_leaf)
    return any(surrogates_of(tree, int(node)) and has_missing(tree, int(tree.feature[node])) for node in inner)


def node_deviations(tree: Tree) -> NDArray[np.float64] | None:
    """Standard deviation of the target in each node, where it is known that the impurity is the variance."""
    criterion = tree.legend.criterion if tree.legend else None
    if criterion not in SPREAD_CRITERIA:
        return None
    if criterion == "sdr":
        return np.ldexp(tree.impurity, tree.impurity_exponent)
    return np.ldexp(np.sqrt(tree.impurity), tree.impurity_exponent // 2)  # even: of a variance


def leaf_purity(tree: Tree, leaf: int) -> float:
    """Share of the heaviest class of a leaf."""
    row = -1 - int(tree.threshold[leaf])
    return 1.0 if row < 0 else float(tree.distributions[row].max() / tree.distributions[row].sum())


def make_rule(
    tree: Tree,
    leaf: int,
    merged: tuple[Condition, ...],
    contents: Contents,
    deviations: NDArray[np.float64] | None,
) -> Rule:
    """The rule of one leaf."""
    has_rows = bool(tree.n_rows[leaf])
    prediction: Any = float(tree.threshold[leaf])
    accuracy = None
    if tree.n_classes:
        k = int(tree.leaf_class[leaf])
        prediction = tree.legend.classes[k] if tree.legend and tree.legend.classes else k
        accuracy = leaf_purity(tree, leaf) if has_rows else None
    return Rule(
        leaf=leaf,
        conditions=tuple(describe_condition(tree, condition) for condition in merged),
        prediction=prediction,
        n_rows=int(tree.n_rows[leaf]),
        share=float(tree.weight[leaf] / tree.weight[0]),
        accuracy=accuracy,
        deviation=float(deviations[leaf]) if deviations is not None and has_rows else None,
        rows=row_count(tree, leaf),
        answer=contents.prediction(leaf),
        merged=merged,
    )
