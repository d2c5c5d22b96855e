"""New leaf values from given rows, the tests unchanged: the second half of an honest tree, or a refresh on new data.

Rows that did not choose the tests give values without the optimism of those that did (Wager and Athey 2018). A leaf
that none of them reaches would have no value: its parent becomes a leaf instead.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._criteria import CLASS_CRITERIA, CRITERIA, VALUE_CRITERIA
from spinney._elementary import relative_entropy
from spinney.table.fixed_point import (
    MAX_EXPONENT,
    Weights,
    sum_bits,
    value_target,
    weigh,
    weight_unit,
    weighted_sum,
)
from spinney.tree.answers import sum_ranges
from spinney.tree.reduced_error import PruningRows, add_classes, add_rows, take_rows
from spinney.tree.split_measures import class_impurity, join_impurity
from spinney.tree.subtree import Tier, class_blocks, find_remainder, find_tiers, keep_tests

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from spinney.tree.structure import Tree


def refit_leaves(
    tree: Tree,
    leaf: NDArray[Any],
    truth: NDArray[Any],
    weight: NDArray[np.float64] | None = None,
    *,
    criterion: str,
) -> Tree:
    """The same tests with leaf values, rows, weights and impurities of the given rows only.

    A test one of whose branches no given row takes is dropped: its node becomes a leaf, so that every node holds at
    least one of them. Sums are integers: the order of the rows does not matter, and a row of weight 2 is two rows.
    Values are plain means or class weights; bounds that monotone constraints have set are not applied again.

    Parameters
    ----------
    tree : Tree
    leaf, truth, weight
        The given rows, as in `prune_on_rows`.
    criterion : {"gini", "entropy", "misclassification"} or {"squared_error", "sdr", "poisson", "absolute_error"}
        Which impurity the nodes hold.
    """
    choices = CLASS_CRITERIA if tree.n_classes else VALUE_CRITERIA
    if criterion not in choices:
        raise ValueError(f"criterion={criterion!r}: choose one of {', '.join(choices)} for this tree")
    rows = take_rows(tree, leaf, truth, weight)
    if len(rows.leaf) == 0:
        raise ValueError("leaf is empty or every weight is 0: a tree needs at least one row to take its values from")
    tiers = find_tiers(tree)
    n_rows = add_rows(tree, tiers, rows.leaf, 1)
    is_cut = np.zeros(tree.n_nodes, np.bool_)
    for tier in tiers:
        for has, child in tier.branches:
            is_cut[tier.nodes[has]] |= n_rows[child] == 0
    rest = find_remainder(tree, tiers, is_cut)
    rows = rows._replace(leaf=rest.place[rows.leaf])
    tests = keep_tests(tree, rest, np.zeros(np.count_nonzero(rest.is_leaf)), linear=None)
    tests = replace(tests, n_rows=n_rows[rest.old].astype(np.uint32))
    if CRITERIA[criterion].is_median:
        return refit_medians(tests, find_tiers(tests), rows)
    refit = refit_classes if tree.n_classes else refit_values
    return refit(tests, find_tiers(tests), rows, criterion)


def refit_medians(tests: Tree, tiers: list[Tier], rows: PruningRows) -> Tree:
    """Nodes hold the weighted median of their rows and the mean absolute deviation from it."""
    target = value_target(rows.truth, rows.weights, has_square=False)
    median, deviation = np.zeros((2, tests.n_nodes))
    node, at = rows.leaf.astype(np.int64), np.arange(len(rows.leaf))
    for depth in range(tests.depth, -1, -1):  # rows move up as their nodes are done
        mine = at[tests.depths[node] == depth]
        mine = mine[np.lexsort((target.truth[mine], node[mine]))]
        begin = np.flatnonzero(np.diff(node[mine], prepend=-1))
        end = np.append(begin[1:], len(mine))
        weights = rows.weights if rows.weights.is_unit else rows.weights._replace(values=rows.weights.values[mine])
        held = np.broadcast_to(weights.values, len(mine))
        whole = sum_ranges(held, begin, end)
        below = np.cumsum(held) - np.repeat(np.append(0, np.cumsum(whole)[:-1]), end - begin)
        is_past = 2 * below >= np.repeat(whole, end - begin)
        first = np.maximum.reduceat(np.where(is_past, np.arange(len(mine), 0, -1), 0), begin)
        first = len(mine) - first  # the first row up to which half the weight lies
        following = np.where(2 * below[first] == whole, first + 1, first)
        y = target.truth[mine]
        middle = 0.5 * (y[first] + y[following])
        off = np.ldexp(np.abs(y - np.repeat(middle, end - begin)), -target.spread_exponent)
        nodes = node[mine[begin]]
        median[nodes], deviation[nodes] = middle, range_means(off, weights, begin, end, whole)
        node[mine] = tests.parent[node[mine]]
    value = np.ldexp(median, target.exponent)
    weight = add_rows(tests, tiers, rows.leaf, rows.weights.values)
    impurity, exponent = in_units_of(tests, deviation, target.exponent + target.spread_exponent)
    return replace(
        tests,
        threshold=np.where(tests.is_leaf, value, tests.threshold),
        weight=weight.astype(np.float64) * weight_unit(rows.weights),
        impurity=impurity,
        impurity_exponent=exponent,
        answers=value.reshape(-1, 1),
    )


def in_units_of(tests: Tree, impurity: NDArray[np.float64], exponent: int) -> tuple[NDArray[np.float64], int]:
    """Impurities in units of 2 ** exponent in those of a tree, and these.

    Trees of one forest share their units; targets of another world need their own.
    """
    shift = exponent - tests.impurity_exponent
    if abs(shift) < MAX_EXPONENT:
        return np.ldexp(impurity, shift), tests.impurity_exponent
    return impurity, exponent


def refit_values(tests: Tree, tiers: list[Tier], rows: PruningRows, criterion: str) -> Tree:
    """Leaf values are means of the targets, exact where all are equal; impurities are as the criterion has them."""
    leaves = np.flatnonzero(tests.is_leaf)
    n_rows = tests.n_rows[leaves].astype(np.int64)
    order = np.argsort(rows.leaf.astype(np.int32))  # of rows in one leaf any order will do
    weights = rows.weights
    if not weights.is_unit:
        weights = weights._replace(values=weights.values[order])
    target = value_target(rows.truth[order], weights, has_square=False)
    end = np.cumsum(n_rows)
    begin = end - n_rows
    low, high = np.minimum.reduceat(target.truth, begin), np.maximum.reduceat(target.truth, begin)
    weight = add_rows(tests, tiers, rows.leaf, rows.weights.values)
    centred = np.ldexp(target.truth - target.centre, -target.spread_exponent)
    ranges = weights, begin, end, weight[leaves]
    mean = range_means(centred, *ranges)
    terms = square_terms
    if criterion == "poisson":
        terms = partial(deviance_terms, origin=math.ldexp(-target.centre, -target.spread_exponent))
    spread = range_means(terms(centred, np.repeat(mean, n_rows)), *ranges)
    spread[low == high] = 0.0
    value = np.where(low == high, low, np.ldexp(mean, target.spread_exponent) + target.centre)
    threshold = tests.threshold.copy()
    threshold[leaves] = np.ldexp(value, target.exponent)
    impurity = spread_up(tests, tiers, weight.astype(np.float64), mean, spread, terms)
    impurity = np.sqrt(impurity) if criterion == "sdr" else impurity
    exponent = CRITERIA[criterion].power * (target.exponent + target.spread_exponent)
    impurity, exponent = in_units_of(tests, impurity, exponent)
    return replace(
        tests,
        threshold=threshold,
        weight=weight.astype(np.float64) * weight_unit(weights),
        impurity=impurity,
        impurity_exponent=exponent,
    )


def spread_up(
    tree: Tree,
    tiers: list[Tier],
    weight: NDArray[np.float64],
    leaf_mean: NDArray[np.float64],
    leaf_spread: NDArray[np.float64],
    terms: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]],
) -> NDArray[np.float64]:
    """Variance, or deviance, of every node from those of the leaves: within the branches, and of their means."""
    mean, spread = np.zeros(tree.n_nodes), np.zeros(tree.n_nodes)
    mean[tree.is_leaf], spread[tree.is_leaf] = leaf_mean, leaf_spread
    for tier in reversed(tiers):
        centre, within = np.zeros(len(tier.nodes)), np.zeros(len(tier.nodes))
        total = weight[tier.nodes]
        for has, child in tier.branches:
            centre[has] += weight[child] / total[has] * mean[child]
        for has, child in tier.branches:
            within[has] += weight[child] / total[has] * (spread[child] + terms(mean[child], centre[has]))
        mean[tier.nodes], spread[tier.nodes] = centre, within
    return spread


def square_terms(y: NDArray[np.float64], mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """What each y adds to a variance."""
    return (y - mean) ** 2


def deviance_terms(y: NDArray[np.float64], mean: NDArray[np.float64], *, origin: float) -> NDArray[np.float64]:
    """What each y adds to half the Poisson deviance, and to the sum of y - mean, which is 0; origin: where y is 0."""
    rate = mean - origin
    share = np.divide(y - mean, rate, out=np.zeros(len(y)), where=rate > 0.0)
    return rate * relative_entropy(np.maximum(share, -1.0))


def refit_classes(tests: Tree, tiers: list[Tier], rows: PruningRows, criterion: str) -> Tree:
    """Leaves hold a class, or a row of class weights where they are mixed."""
    low, high = np.full(tests.n_nodes, tests.n_classes), np.full(tests.n_nodes, -1)
    np.minimum.at(low, rows.leaf, rows.truth)
    np.maximum.at(high, rows.leaf, rows.truth)
    mixed = np.flatnonzero(tests.is_leaf & (low != high))
    low[mixed] = -1 - np.arange(len(mixed))
    weight = add_rows(tests, tiers, rows.leaf, rows.weights.values)
    distributions = np.empty((len(mixed), tests.n_classes))
    parts = []
    for first, stop in class_blocks(tests):
        sums = add_classes(tests, tiers, rows, first, stop)
        distributions[:, first:stop] = sums[mixed] * weight_unit(rows.weights)
        parts.append(class_impurity(criterion, sums / weight[:, None]))
    return replace(
        tests,
        threshold=np.where(tests.is_leaf, low, tests.threshold),
        weight=weight.astype(np.float64) * weight_unit(rows.weights),
        impurity=np.maximum(join_impurity(criterion, parts), 0.0),
        impurity_exponent=0,
        distributions=distributions,
    )


def range_means(
    x: NDArray[np.float64],
    weights: Weights,
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
    weight: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Weighted mean of `x[begin:end]` for each pair, summed in fixed point."""
    largest = float(np.max(np.abs(x), initial=0.0))
    if largest == 0.0:
        return np.zeros(len(begin))
    exponent = math.frexp(largest)[1]
    x = x * math.ldexp(1.0, -exponent) if abs(exponent) < 1000 else np.ldexp(x, -exponent)
    bits = sum_bits(weighted_sum(np.abs(x), weights))
    total = sum_ranges(weigh(x, bits, weights), begin, end)
    return np.ldexp(total / weight, weights.bits - bits + exponent)
