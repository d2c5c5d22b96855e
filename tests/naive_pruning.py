"""Every pruning from its definition, on the trees of `naive_textbook`.

Cost complexity is found by brute force: the least risk of any subtree with k leaves, for every k, and the lower convex
hull of these points. The others follow their one-line definitions, node by node from the bottom up. Nothing is done in
place but C4.5's own pruning, which moves cases about: it works on a copy.
"""

from __future__ import annotations

import copy
import math
from dataclasses import replace
from fractions import Fraction
from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

from naive_textbook import (
    EVERY,
    Case,
    Judge,
    Node,
    Table,
    branch_of,
    impurity,
    leaves,
    reach,
    share_out,
    sum_up,
    variance,
    walk,
    weight_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def as_leaf(node: Node) -> Node:
    return replace(node, feature=None, threshold=None, missing_branch=None, children=[], margin=math.inf)


def rebuild(node: Node, becomes_leaf: Callable[[Node], bool]) -> Node:
    """A copy, from the bottom up: a node whose branches have been rebuilt becomes a leaf where it is told to."""
    if node.is_leaf:
        return as_leaf(node)
    built = replace(node, children=[rebuild(child, becomes_leaf) for child in node.children])
    return as_leaf(built) if becomes_leaf(built) else built


# ------------------------------------------------------------------------------------------------ cost complexity


def impurity_risk(root: Node, criterion: str) -> Callable[[Node], Fraction | float]:
    """Share of the weight times impurity."""

    def risk(node: Node) -> Fraction | float:
        if node.is_empty:
            return Fraction(0)
        inside = impurity(criterion, node.sums, node.weight)
        share = node.weight / root.weight
        return share * inside if isinstance(inside, Fraction) else float(share) * inside

    return risk


def error_risk(root: Node, n_classes: int | None) -> Callable[[Node], Fraction]:
    """Share of the weight that the node as a leaf gets wrong; the mean squared error of numbers."""

    def risk(node: Node) -> Fraction:
        if node.is_empty:
            return Fraction(0)
        lost = node.weight - max(node.sums) if n_classes else node.weight * variance(node.sums, node.weight)
        return lost / root.weight

    return risk


class Step(NamedTuple):
    alpha: Fraction | float
    risk: Fraction | float
    n_leaves: int


def best_risks(node: Node, risk: Callable[[Node], Fraction | float]) -> dict[int, Fraction | float]:
    """The least risk that a subtree with k leaves can have, for each k that there is."""
    best = {1: risk(node)}
    if node.is_leaf:
        return best
    joined: dict[int, Fraction | float] = {0: Fraction(0)}
    for child in node.children:
        below = best_risks(child, risk)
        more: dict[int, Fraction | float] = {}
        for k, a in joined.items():
            for m, b in below.items():
                more[k + m] = min(more.get(k + m, math.inf), a + b)
        joined = more
    for k, value in joined.items():
        best[k] = min(best.get(k, math.inf), value)
    return best


def sequence(root: Node, risk: Callable[[Node], Fraction | float], slack: float = 0) -> list[Step]:
    """The alphas at which the best subtree changes, ascending from 0, with its risk and leaves from there on.

    The best subtree for alpha has the least risk + alpha * leaves, and the fewest leaves among those.
    """
    points = best_risks(root, risk)
    least = min(points.values())
    at = min(k for k, value in points.items() if value <= least + slack)
    steps = [Step(Fraction(0), points[at], at)]
    while at > 1:
        slopes = {k: (points[k] - points[at]) / (at - k) for k in points if k < at}
        alpha = min(slopes.values())
        at = min(k for k, slope in slopes.items() if slope <= alpha + slack)
        steps.append(Step(alpha, points[at], at))
    return steps


def prune_to_alpha(root: Node, alpha: Fraction | float, risk: Callable[[Node], Fraction | float]) -> Node:
    """The smallest subtree of least risk + alpha * leaves; alpha 0 leaves the tree as it is."""

    def cost(node: Node) -> Fraction | float:
        return sum(risk(leaf) + alpha for leaf in leaves(node))

    return rebuild(root, lambda node: alpha > 0 and risk(node) + alpha <= cost(node))


# ------------------------------------------------------------------------------------------------- one-line rules


def prune_on_rows(root: Node, table: Table, cases: list[Case]) -> Node:
    """Reduced error: a leaf where its answer is no worse, on these cases, than what is left of the subtree.

    A case goes to the leaf that takes most of it, the first among equals. A class is missed by its weight, a number by
    its squared error.
    """
    own: dict[int, list[Case]] = {id(node): [] for node in walk(root)}
    parent = {id(child): node for node in walk(root) for child in node.children}
    for case in cases:
        node = heaviest_leaf(root, [column[case.row] for column in table.columns])
        own[id(node)].append(case)
        while id(node) in parent:
            node = parent[id(node)]
            own[id(node)].append(case)

    def error(node: Node, here: list[Case]) -> Fraction:
        if table.n_classes is None:
            middle = node.answer[0] / node.answer[-1]
            return sum((case.weight * (table.y[case.row] - middle) ** 2 for case in here), Fraction(0))
        top = heaviest_class(node)
        return sum((case.weight for case in here if table.y[case.row] != top), Fraction(0))

    def best(node: Node) -> tuple[Node, Fraction]:
        alone = error(node, own[id(node)])
        if node.is_leaf:
            return as_leaf(node), alone
        below = [best(child) for child in node.children]
        together = sum((worst for _, worst in below), Fraction(0))
        if alone <= together:
            return as_leaf(node), alone
        return replace(node, children=[child for child, _ in below]), together

    return best(root)[0]


def heaviest_leaf(root: Node, row: Sequence[float]) -> Node:
    """The leaf that takes most of a row."""
    reached = list(reach(root, row))
    most = max(share for _, share in reached)
    return next(leaf for leaf, share in reached if share == most)


def heaviest_class(node: Node) -> int:
    """The heaviest class, the first among equals."""
    shares = node.answer[:-1]
    return shares.index(max(shares))


def prune_by_gain(root: Node, bound: float, criterion: str) -> Node:
    """A test between leaves goes where its gain, times the node's share of the weight, is below the bound."""
    risk = impurity_risk(root, criterion)

    def is_poor(node: Node) -> bool:
        if not all(child.is_leaf for child in node.children):
            return False
        return risk(node) - sum(risk(child) for child in node.children) < bound

    return rebuild(root, is_poor)


def merge_leaves(root: Node, n_classes: int | None) -> Node:
    """A test goes where all its branches are leaves that say the same."""

    def says(leaf: Node) -> Fraction | int:
        return heaviest_class(leaf) if n_classes else leaf.answer[0] / leaf.answer[-1]

    return rebuild(
        root,
        lambda node: all(child.is_leaf for child in node.children) and len({says(c) for c in node.children}) == 1,
    )


def snip(root: Node, node: Node) -> Node:
    """A copy in which one node is a leaf."""
    if root is node:
        return as_leaf(root)
    return replace(root, children=[snip(child, node) for child in root.children])


# -------------------------------------------------------------------------------------------------- C4.5's pruning


def added_errors(n: float, e: float, confidence: float = 0.25) -> float:
    """Errors to add to `e` among `n` cases: the upper end of Quinlan's interval (Weka's Stats.addErrs)."""
    if confidence > 0.5:
        return 0.0
    if e < 1:
        base = n * (1 - confidence ** (1 / n))
        return base if e == 0 else base + e * (added_errors(n, 1, confidence) - base)
    if e + 0.5 >= n:
        return max(n - e, 0.0)
    z = NormalDist().inv_cdf(1 - confidence)
    f = (e + 0.5) / n
    upper = (f + z * z / (2 * n) + z * math.sqrt(f / n - f * f / n + z * z / (4 * n * n))) / (1 + z * z / n)
    return upper * n - e


def estimated_errors(sums: tuple[Fraction, ...], confidence: float) -> float:
    weight = sum(sums)
    if weight == 0:
        return 0.0
    wrong = float(weight - max(sums))
    return wrong + added_errors(float(weight), wrong, confidence)


def training_errors(node: Node) -> Fraction:
    return sum((leaf.weight - max(leaf.sums) for leaf in leaves(node)), Fraction(0))


def collapse(root: Node) -> Node:
    """From the top: a subtree that is no better on the training rows (to 1e-3) is a leaf."""
    if root.is_leaf:
        return as_leaf(root)
    judge = Judge()
    is_worthless = judge.reaches(float(training_errors(root)), float(root.weight - max(root.sums)) - 1e-3)
    if is_worthless:
        return replace(as_leaf(root), margin=judge.closest)
    return replace(root, margin=min(root.margin, judge.closest), children=[collapse(child) for child in root.children])


def prune_pessimistic(
    root: Node, confidence: float = 0.25, *, table: Table | None = None, is_raising: bool = False
) -> Node:
    """C4.5's pruning from the bottom up; raising needs the table that grew the tree."""
    root = copy.deepcopy(root)
    judge = Judge()
    prune_node(root, confidence, table if is_raising else None, judge)
    root.margin = min(root.margin, judge.closest)
    return root


def prune_node(node: Node, confidence: float, table: Table | None, judge: Judge) -> None:
    if node.is_leaf:
        return
    for child in node.children:
        prune_node(child, confidence, table, judge)
    heaviest = max(child.weight for child in node.children)
    largest = [child for child in node.children if child.weight == heaviest][-1]  # the last among equals
    errors_raised = math.inf if table is None else errors_of_branch(largest, node.cases, table, confidence)
    errors_leaf = estimated_errors(node.sums, confidence)
    errors_tree = math.fsum(estimated_errors(leaf.sums, confidence) for leaf in leaves(node))
    is_leaf_fine = not judge.is_above(errors_leaf, errors_tree + 0.1)
    if is_leaf_fine and not judge.is_above(errors_leaf, errors_raised + 0.1):
        node.feature = node.threshold = node.missing_branch = None
        node.children = []
    elif not judge.is_above(errors_raised, errors_tree + 0.1):
        node.feature, node.threshold, node.missing_branch = largest.feature, largest.threshold, largest.missing_branch
        node.children = largest.children
        redistribute(node, node.cases, node.depth, node.answer, table)
        prune_node(node, confidence, table, judge)


def bags_of(node: Node, cases: list[Case], table: Table) -> list[list[Case]]:
    """Where a node's test sends these cases, unknown values shared out by the known ones among them."""
    bags: list[list[Case]] = [[] for _ in node.children]
    for case in cases:
        value = table.columns[node.feature][case.row]
        if not math.isnan(value):
            bags[branch_of(node, value)].append(case)
    return share_out(table, cases, node.feature, bags)


def errors_of_branch(node: Node, cases: list[Case], table: Table, confidence: float) -> float:
    """Estimated errors of a subtree if these cases came to it."""
    if node.is_leaf:
        return estimated_errors(sum_up(table, cases), confidence)
    return math.fsum(
        errors_of_branch(child, bag, table, confidence)
        for child, bag in zip(node.children, bags_of(node, cases, table), strict=True)
    )


def redistribute(node: Node, cases: list[Case], depth: int, above: tuple[Fraction, ...], table: Table) -> None:
    """Fill a subtree with other cases; its tests stay."""
    node.cases, node.depth = cases, depth
    node.sums, node.weight = sum_up(table, cases), weight_of(cases)
    node.answer = (*node.sums, node.weight) if cases else above
    if node.children:
        assert node.missing_branch == EVERY
        for child, bag in zip(node.children, bags_of(node, cases, table), strict=True):
            redistribute(child, bag, depth + 1, node.answer, table)
