"""Survival trees by plain loops: the log-rank test of every cut, and the cumulative hazards of nodes.

Times are known by their codes: `steps[i]` is the number of times of events up to that of row i, and its event, where
`seen[i]`, comes at the last of them. Weights are whole: a row of weight 2 is two rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction


@dataclass
class Node:
    rows: list[int]
    hazard: list[Fraction]
    feature: int | None = None
    threshold: float | None = None
    subset: frozenset[int] | None = None
    missing_branch: int | None = None
    margin: float = math.inf  # by how much the best cut beats the second
    children: list[Node] = field(default_factory=list)


def find_steps(y, grid):
    """Codes of times with a sign, by counting."""
    steps = []
    for time in y:
        if time > 0:
            steps.append(1 + sum(limit < time for limit in grid))
        else:
            steps.append(sum(limit <= -time for limit in grid))
    return steps


def at_risk(rows, k, steps, weights):
    """Weight of the rows whose time is not before the k-th, counted from 1."""
    return sum(weights[i] for i in rows if steps[i] >= k)


def events(rows, k, steps, seen, weights):
    return sum(weights[i] for i in rows if seen[i] and steps[i] == k)


def statistic(left, rows, n_times, steps, seen, weights):
    """The log-rank statistic of two groups; None where no event tells them apart."""
    z, v = Fraction(0), Fraction(0)
    for k in range(1, n_times + 1):
        d, n = events(rows, k, steps, seen, weights), at_risk(rows, k, steps, weights)
        if d == 0:
            continue
        held = at_risk(left, k, steps, weights)
        z += events(left, k, steps, seen, weights) - Fraction(held * d, n)
        if n > 1:
            v += Fraction(held * (n - held) * d * (n - d), n * n * (n - 1))
    return z * z / v if v > 0 else None


def hazard(rows, n_times, steps, seen, weights):
    """Cumulative hazard after each time."""
    total, found = Fraction(0), []
    for k in range(1, n_times + 1):
        n = at_risk(rows, k, steps, weights)
        total += Fraction(events(rows, k, steps, seen, weights), n) if n else 0
        found.append(total)
    return found


def residual(i, of_node, steps, seen):
    return int(seen[i]) - (of_node[steps[i] - 1] if steps[i] else 0)


def cuts_of(column, is_category, rows, of_node, steps, seen, weights):
    """Rows on the left, threshold or levels, in the order in which they are tried; rows of missing values apart."""
    known = sorted({column[i] for i in rows if not math.isnan(column[i])})
    if is_category:

        def mean(level):
            inside = [i for i in rows if column[i] == level]
            total = sum(weights[i] * residual(i, of_node, steps, seen) for i in inside)
            return Fraction(total, sum(weights[i] for i in inside))

        known = sorted(known, key=lambda level: (mean(level), level))
    for at in range(len(known)):
        held = set(known[: at + 1])
        left = [i for i in rows if column[i] in held]
        if is_category:
            yield left, None, frozenset(map(int, held)), at == len(known) - 1
        else:
            last = at == len(known) - 1
            yield left, math.inf if last else known[at] + (known[at + 1] - known[at]) / 2, None, last


def candidates(node, columns, is_categorical, steps, seen, weights):
    """Every cut of a node: feature, threshold, levels, branch of missing values, rows on the left."""
    for feature, column in enumerate(columns):
        missing = [i for i in node.rows if math.isnan(column[i])]
        cuts = cuts_of(column, is_categorical[feature], node.rows, node.hazard, steps, seen, weights)
        for left, threshold, subset, is_last in cuts:
            if missing or not is_last:
                yield feature, threshold, subset, 1, left
            if missing and not is_last:
                yield feature, threshold, subset, 0, [*left, *missing]


def grow(columns, y, weights, grid, *, is_categorical, min_samples_leaf=1, min_samples_split=2, max_depth=None):
    """Grow a tree by the log-rank test; missing values go where the statistic is larger, first to the right."""
    steps, seen, n_times = find_steps(y, grid), [time > 0 for time in y], len(grid)

    def split(rows, depth):
        node = Node(rows, hazard(rows, n_times, steps, seen, weights))
        same = len({(steps[i], seen[i]) for i in rows}) == 1
        few = len(rows) < max(min_samples_split, 2 * min_samples_leaf)
        if same or few or (max_depth is not None and depth >= max_depth):
            return node
        scored = []
        for cut in candidates(node, columns, is_categorical, steps, seen, weights):
            found = statistic(cut[-1], rows, n_times, steps, seen, weights)
            if found is not None and min(len(cut[-1]), len(rows) - len(cut[-1])) >= min_samples_leaf:
                scored.append((found, cut))
        if not scored:
            return node
        best = max(found for found, _ in scored)
        node.margin = min((float(best - found) / float(best) for found, _ in scored if found < best), default=1.0)
        node.feature, node.threshold, node.subset, node.missing_branch, left = next(c for f, c in scored if f == best)
        node.children = [
            split([i for i in rows if i in left], depth + 1),
            split([i for i in rows if i not in left], depth + 1),
        ]
        return node

    return split([i for i in range(len(y)) if weights[i] > 0], 0)


def walk(node):
    yield node
    for child in node.children:
        yield from walk(child)
