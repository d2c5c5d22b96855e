"""The path of one row in words: each test, the row's value, and why it took the branch it took."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._types import MULTIWAY
from spinney.reading.conditions import (
    NEVER,
    Condition,
    Possible,
    branch_condition,
    describe_condition,
    narrow,
    narrow_surrogate,
    surrogate_condition,
    surrogates_of,
)
from spinney.reading.several_outputs import refuse_outputs
from spinney.reading.text import Contents
from spinney.reading.wording import (
    apart,
    class_name,
    feature_name,
    formula,
    level_name,
    level_names,
    number,
    percent,
    quoted,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import ArrayLike, NDArray

    from spinney.tree.structure import Tree

MAX_LEVELS = 6  # of a set that are spelled out
MAX_TERMS = 8  # of a formula


@dataclass(frozen=True)
class Step:
    """One test on the way of a row.

    Attributes
    ----------
    node, child : int
        The node of the test, and the one that its branch leads to.
    feature : str
    value : object
        The row's value: a number, a level, or None if missing.
    share : float
        Part of the row that comes here: 1 but for rows that take every branch.
    words : str
        The value, the branch and why.
    content : str
        Value and training rows of `child`, as `to_text` has them.
    """

    node: int
    child: int
    feature: str
    value: Any
    share: float
    words: str
    content: str = field(repr=False)

    def __str__(self) -> str:
        return f"{self.words}: {self.content}"


@dataclass(frozen=True, repr=False)
class Explanation:
    """How a tree comes to its prediction for one row; prints in words.

    Attributes
    ----------
    steps : tuple of Step
        The tests that the row meets, from the root.
    leaves : tuple of (int, float)
        The leaves it ends in, each with its part of the row, which is 1 for a row that takes one path.
    prediction : object
        The class or the number.
    shares : dict, optional
        Share of each class in the leaf, or over the leaves, as `predict_proba` has them; None for numbers.
    """

    steps: tuple[Step, ...]
    leaves: tuple[tuple[int, float], ...]
    prediction: Any
    shares: dict[Any, float] | None
    start: str
    depths: tuple[int, ...]
    answer: str

    @property
    def nodes(self) -> list[int]:
        """The nodes that the row passes, in the order of passing."""
        return [0, *(step.child for step in self.steps)]

    def __str__(self) -> str:
        lines = [self.start]
        lines += [f"{'  ' * depth}{step}" for depth, step in zip(self.depths, self.steps, strict=True)]
        return "\n".join([*lines, f"=> {self.answer}"])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><td style="text-align:left;padding-left:{depth}em">{escape(step.words)}</td>'
            f'<td style="text-align:left">{escape(step.content)}</td></tr>'
            for depth, step in zip(self.depths, self.steps, strict=True)
        )
        head = (
            f'<tr><td style="text-align:left">all rows</td><td style="text-align:left">{escape(self.start)}</td></tr>'
        )
        return f"<table>{head}{rows}</table><p><b>{escape(self.answer)}</b></p>"


def explain(
    tree: Tree,
    values: ArrayLike,
    unseen: Mapping[int, Any] | None = None,
    smoothed: NDArray[np.float64] | None = None,
) -> Explanation:
    """The path of one row of values.

    unseen : features whose level fit has not seen, and that level.
    smoothed : (n_nodes, n_classes), shares of the classes that leaves predict instead of their own.
    """
    refuse_outputs(tree, "the path of a row in words")
    row = np.asarray(values, np.float64)
    if row.shape == (1, tree.n_features):
        row = row[0]
    if row.shape != (tree.n_features,):
        raise ValueError(f"values has shape {row.shape}: give one value for each of the {tree.n_features} features")
    check_levels(tree, row)
    return Walk(tree, row, unseen or {}, smoothed).explanation()


def check_levels(tree: Tree, row: NDArray[np.float64]) -> None:
    """A value of a category is the index of one of its levels."""
    is_level = np.isnan(row) | ((row >= 0) & (row < tree.n_levels) & (row == np.floor(row)))
    wrong = np.flatnonzero((tree.n_levels > 0) & ~is_level)
    if len(wrong):
        j = int(wrong[0])
        raise ValueError(
            f"values[{j}] is {row[j]}: {feature_name(tree, j)} is a category of {tree.n_levels[j]} levels; give the "
            "index of one, NaN where it is missing. Estimators take the levels themselves: `explain` of the model."
        )


class Walk:
    """One row on its way down."""

    def __init__(
        self,
        tree: Tree,
        row: NDArray[np.float64],
        unseen: Mapping[int, Any],
        smoothed: NDArray[np.float64] | None,
    ) -> None:
        self.tree = tree
        self.row = row
        self.unseen = unseen
        self.smoothed = smoothed
        self.contents = Contents(tree)

    def explanation(self) -> Explanation:
        """Walk to the leaves, the first branch first."""
        tree = self.tree
        steps, depths, leaves = [], [], []
        stack: list[tuple[int, float, int, Step | None, Possible]] = [(0, 1.0, 0, None, {})]
        while stack:
            node, share, depth, step, possible = stack.pop()
            if step is not None:
                steps.append(step)
                depths.append(depth)
            if tree.is_leaf[node]:
                leaves.append((node, share))
                continue
            ways = self.ways(node, possible)
            deeper, first = depth + (len(ways) > 1 or depth > 0), int(tree.first_child[node])
            for child, part, words in reversed(ways):
                below = narrow(tree, node, child - first, possible)[1]
                stack.append((child, share * part, deeper, self.step(node, child, share * part, words), below))
        shares, prediction, answer = self.predict(leaves)
        start = self.contents.describe(0)
        return Explanation(tuple(steps), tuple(leaves), prediction, shares, start, tuple(depths), answer)

    def step(self, node: int, child: int, share: float, words: str) -> Step:
        """One test."""
        feature = int(self.tree.feature[node])
        name = self.tree.legend.features[feature] if self.tree.legend else f"x{feature}"
        return Step(node, child, name, self.plain_value(feature), share, words, self.contents.describe(child))

    def plain_value(self, feature: int) -> Any:
        """The row's value as the user wrote it."""
        value = float(self.row[feature])
        if np.isnan(value):
            return self.unseen.get(feature)
        levels = self.tree.legend.levels[feature] if self.tree.legend else None
        return levels[int(value)] if levels else value

    def ways(self, node: int, possible: Possible) -> list[tuple[int, float, str]]:
        """The children that the row goes to, with its part and in words why; possible: what can reach the node."""
        tree, feature = self.tree, int(self.tree.feature[node])
        first = int(tree.first_child[node])
        value = float(self.row[feature])
        if not np.isnan(value):
            branch = int(value) if tree.kind[node] == MULTIWAY else self.side(branch_condition(tree, node, 0))
            condition = narrow(tree, node, branch, possible)[0]
            return [(first + branch, 1.0, self.known(condition))]
        missing = f"{feature_name(tree, feature)} is missing"
        if feature in self.unseen:
            missing = f"{feature_name(tree, feature)} is {quoted(self.unseen[feature])}, which fit has not seen"
        places = surrogates_of(tree, node)
        for s in places:
            for branch in range(2):  # neither where the value is missing, or a level that the surrogate does not know
                other = surrogate_condition(tree, s, branch)
                if other.holds(self.row[other.feature : other.feature + 1])[0]:
                    other = narrow_surrogate(tree, s, branch, possible)
                    return [(first + branch, 1.0, f"{missing}; in its stead {self.known(other)}")]
        if tree.spreads_missing[node]:
            return self.all_ways(node, missing, possible)
        branch = int(tree.missing_branch[node])
        condition = narrow(tree, node, branch, possible)[0]
        if not condition.has_known:
            why = ", which has a branch of its own"
            if feature in self.unseen:
                why = "; it goes the way of missing values, a branch of their own"
            return [(first + branch, 1.0, missing + why)]
        with_whom = describe_briefly(tree, condition)
        why = ", nor is a value of its surrogates known; such rows go" if places else "; such rows go"
        return [(first + branch, 1.0, f"{missing}{why} with {with_whom}")]

    def side(self, first: Condition) -> int:
        """Branch 0 or 1 of a known value, by the condition of branch 0."""
        return int(not first.holds(self.row[first.feature : first.feature + 1])[0])

    def all_ways(self, node: int, missing: str, possible: Possible) -> list[tuple[int, float, str]]:
        """Every branch that has weight."""
        tree, first = self.tree, int(self.tree.first_child[node])
        found = []
        for b in range(int(tree.n_branches[node])):
            part = float(tree.weight[first + b] / tree.weight[node])
            if part > 0.0:
                condition_text = describe_briefly(tree, narrow(tree, node, b, possible)[0])
                found.append((first + b, part, f"{missing}; {percent(part)} of it goes with {condition_text}"))
        return found

    def known(self, condition: Condition) -> str:
        """A known value and the condition that it satisfies."""
        tree, feature = self.tree, condition.feature
        name, value = feature_name(tree, feature), float(self.row[feature])
        if condition.levels is not None:
            text = f"{name} is {level_name(tree, feature, int(value))}"
            if len(condition.levels) == 1:
                return text
            return f"{text}, one of {{{', '.join(level_names(tree, feature, condition.levels, MAX_LEVELS))}}}"
        cut = condition.high if condition.low is None else condition.low
        assert cut is not None
        if not condition.is_bounded:
            return f"{name} is {number(value)}, not missing"
        shown, bound = apart(value, cut)
        return f"{name} is {shown}, {'at most' if condition.low is None else 'above'} {bound}"

    def predict(self, leaves: list[tuple[int, float]]) -> tuple[dict[Any, float] | None, Any, str]:
        """Shares of the classes, the prediction, and both in words."""
        tree = self.tree
        if not tree.n_classes:
            value = sum(share * self.leaf_value(leaf) for leaf, share in leaves)
            text = number(float(value))
            if tree.linear is not None and len(leaves) == 1:
                text = f"{formula(tree, leaves[0][0], MAX_TERMS)} = {text}"
            return None, float(value), text
        total = np.sum([share * self.leaf_shares(leaf) for leaf, share in leaves], axis=0)
        names = tree.legend.classes if tree.legend and tree.legend.classes else tuple(range(tree.n_classes))
        is_own = len(leaves) == 1 and self.smoothed is None
        k = int(tree.leaf_class[leaves[0][0]]) if is_own else int(np.argmax(total))
        held = [int(c) for c in np.argsort(-total, kind="stable") if total[c] > 0.0]
        texts = [f"{class_name(tree, c)} {percent(float(total[c]))}" for c in held]
        shown = texts if len(texts) <= MAX_LEVELS else [*texts[:MAX_LEVELS], f"{len(texts) - MAX_LEVELS} more"]
        shares = dict(zip(names, total.tolist(), strict=True))
        how = "" if self.smoothed is None else ", smoothed"
        return shares, names[k], f"{class_name(tree, k)} ({', '.join(shown)}{how})"

    def leaf_shares(self, leaf: int) -> NDArray[np.float64]:
        """Share of each class that a leaf predicts."""
        if self.smoothed is not None:
            return self.smoothed[leaf]
        code = int(self.tree.threshold[leaf])
        if code >= 0:
            return np.eye(1, self.tree.n_classes, code)[0]
        weights = self.tree.distributions[-1 - code]
        return weights / weights.sum()

    def leaf_value(self, leaf: int) -> float:
        """The prediction of a leaf for the row: its mean, or its linear model."""
        linear = self.tree.linear
        value = float(self.tree.threshold[leaf])
        if linear is None:
            return value
        at = linear.terms(leaf)
        for feature, coefficient, fill in zip(
            linear.feature[at].tolist(), linear.coefficient[at].tolist(), linear.fill[at].tolist(), strict=True
        ):
            x = float(self.row[feature])
            value += 0.0 if np.isnan(x) else coefficient * (x - fill)
        return value


def describe_briefly(tree: Tree, condition: Condition) -> str:
    """The known values of a branch that has some, shortened."""
    return describe_condition(tree, replace(condition, missing=NEVER), most=MAX_LEVELS)
