"""Shapley values by their definition: a second, plain implementation that tests compare with.

A *game* is a function from a set of columns to numbers. Those of trees are written as recursions over nodes, from what
the docstrings of `spinney.model.shap` say, without any of its arrays.
"""

from itertools import combinations
from math import factorial

import numpy as np

LEAF, THRESHOLD, SUBSET, MULTIWAY = range(4)


def shapley(game, n_features):
    """Shapley's value of each of n features, (n_features, ...)."""
    sets = [frozenset(some) for m in range(n_features + 1) for some in combinations(range(n_features), m)]
    worth = {some: game(some) for some in sets}
    values = []
    for j in range(n_features):
        without = [some for some in sets if j not in some]
        values.append(
            sum(
                factorial(len(some))
                * factorial(n_features - 1 - len(some))
                / factorial(n_features)
                * (worth[some | {j}] - worth[some])
                for some in without
            )
        )
    return np.array(values)


def interactions(game, n_features):
    """Shapley interaction values (n_features, n_features, ...): half of each pair's share on both sides."""
    sets = [frozenset(some) for m in range(n_features + 1) for some in combinations(range(n_features), m)]
    worth = {some: game(some) for some in sets}
    alone = shapley(game, n_features)
    values = np.zeros((n_features, *alone.shape))
    for i, j in combinations(range(n_features), 2):
        share = sum(
            factorial(len(some))
            * factorial(n_features - 2 - len(some))
            / (2.0 * factorial(n_features - 1))
            * (worth[some | {i, j}] - worth[some | {i}] - worth[some | {j}] + worth[some])
            for some in sets
            if i not in some and j not in some
        )
        values[i, j] = values[j, i] = share
    for i in range(n_features):
        values[i, i] = alone[i] - values[i].sum(axis=0)
    return values


def branches(tree, node, row):
    """The branches that a row takes, with its part."""
    feature, first = int(tree.feature[node]), int(tree.first_child[node])
    value, branch = float(row[feature]), None
    if not np.isnan(value):
        branch = known_branch(tree, int(tree.kind[node]), node, value)
    elif tree.surrogates is not None:
        branch = surrogate_branch(tree, node, row)
    if branch is None and not tree.spreads_missing[node]:
        branch = int(tree.missing_branch[node])
    if branch is not None:
        return [(first + branch, 1.0)]
    return [(first + b, part(tree, node, first + b)) for b in range(int(tree.n_branches[node]))]


def known_branch(tree, kind, node, value):
    """The branch of a known value."""
    if kind == MULTIWAY:
        return int(value)
    if kind == SUBSET:
        return 0 if tree.subset(node)[int(value)] else 1
    return int(value > tree.threshold[node])


def surrogate_branch(tree, node, row):
    """The branch by the first surrogate that knows its value; None if none does."""
    found = tree.surrogates
    for s in np.flatnonzero(found.node == node).tolist():
        value = float(row[found.feature[s]])
        if np.isnan(value):
            continue
        if found.kind[s] == SUBSET:
            n_levels = int(tree.n_levels[found.feature[s]])
            word, n_words = int(found.threshold[s]), -(-n_levels // 64)
            if not tree.bitset(word + n_words, n_levels)[int(value)]:
                continue
            branch = 0 if tree.bitset(word, n_levels)[int(value)] else 1
        else:
            branch = int(value > found.threshold[s])
        return branch ^ int(found.is_reversed[s])
    return None


def part(tree, node, child):
    """The part of a node's weight that a child has."""
    return float(tree.weight[child] / tree.weight[node])


def path_game(tree, said, row):
    """The path-dependent game of a tree and a row; said: what each node says, (n_nodes, ...)."""

    def worth(some, node=0):
        if tree.is_leaf[node]:
            return said[node] + known_terms(tree, node, row, some)
        if int(tree.feature[node]) in some:
            ways = branches(tree, node, row)
        else:
            first = int(tree.first_child[node])
            ways = [(first + b, part(tree, node, first + b)) for b in range(int(tree.n_branches[node]))]
        return sum(share * worth(some, child) for child, share in ways)

    return worth


def known_terms(tree, leaf, row, some):
    """What the linear model of a leaf adds where some columns are known."""
    if tree.linear is None:
        return 0.0
    at, total = tree.linear.terms(leaf), 0.0
    for feature, slope, fill in zip(
        tree.linear.feature[at], tree.linear.coefficient[at], tree.linear.fill[at], strict=True
    ):
        if int(feature) in some and not np.isnan(row[feature]):
            total += slope * (row[feature] - fill)
    return total


def sum_of_games(games, start=0.0):
    """The game whose worth is the sum of others."""
    return lambda some: start + sum(game(some) for game in games)


def background_game(answer, row, others):
    """The interventional game: the mean of what a model answers where other columns are those of background rows."""

    def worth(some):
        hybrid = others.copy()
        hybrid[:, sorted(some)] = row[sorted(some)]
        return answer(hybrid).mean(axis=0)

    return worth
