"""Linear models in the leaves of a regression tree (model trees): ridge regressions on the rows of each leaf.

In a leaf of means m (of y) and c (of the features), the model is `m + sum of b (x - c)`, where b minimises the
weighted sum of squared errors `+ alpha * sum of b²`. That is scikit-learn's `Ridge` on the rows of the leaf, with
missing values replaced by c: there they add nothing, and the leaf's mean stays what `Tree.threshold` holds.

Every sum over rows is an integer: first the means, then, of centred rows scaled by powers of two, the products of each
two. So neither the order of rows nor whether a row of weight 2 is two rows can be seen in a model. By Cauchy and
Schwarz, rows whose squares sum to at most 1 have products that do, so that no sum overflows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._types import SUM, SUM_BITS
from spinney.table.fixed_point import quantise, sum_bits
from spinney.tree.broken import BrokenTreeError, require

if TYPE_CHECKING:
    from spinney.tree.forest import Forest
    from spinney.tree.structure import Tree

MOST_WHOLE = 1 << 26  # total weight up to which whole weights multiply what is rounded, and its rounding: to 2**-36
PRODUCT_BITS = SUM_BITS - 1  # of sums of at most 1, with room for their roundings
BLOCK_ROWS = 1 << 13  # rows whose products are added at once, so that Ctrl-C is not held up
RANK_SLACK = 8.0  # roundings of an eigenvalue of products, per row of them
LINEAR_TYPES: dict[str, tuple[Any, ...]] = {  # axes, type
    "first": (1, np.int64),
    "feature": (1, np.int32),
    "coefficient": (1, np.float64),
    "fill": (1, np.float64),
}


@dataclass(frozen=True, eq=False)
class LinearLeaves:
    """A linear model for each leaf: `mean + sum of coefficient * (value - fill)`; a missing value adds nothing.

    Attributes
    ----------
    first : int64 (n_nodes + 1,)
        Terms of node t are `first[t] .. first[t + 1]`; inner nodes have none, nor have leaves that are constant.
    feature : int32 (n_terms,)
        Numeric features, ascending in each leaf. Those that do not vary in a leaf have no term there.
    coefficient : float64 (n_terms,)
    fill : float64 (n_terms,)
        Weighted mean of the known values in the leaf.
    """

    first: NDArray[np.int64]
    feature: NDArray[np.int32]
    coefficient: NDArray[np.float64]
    fill: NDArray[np.float64]

    @property
    def n_terms(self) -> int:
        """Number of coefficients of all leaves."""
        return len(self.feature)

    def terms(self, node: int) -> slice:
        """Where the terms of a node are."""
        return slice(int(self.first[node]), int(self.first[node + 1]))

    def intercept(self, node: int, mean: float) -> float:
        """The prediction of the model of a leaf of this mean where every feature is 0."""
        at = self.terms(node)
        with np.errstate(over="ignore", invalid="ignore"):
            return float(mean - (self.coefficient[at] * self.fill[at]).sum())

    def take(self, nodes: NDArray[np.int64]) -> LinearLeaves:
        """The models of these nodes, in their order; one that was an inner node has none."""
        n_terms = np.diff(self.first)[nodes]
        first = np.concatenate([[0], np.cumsum(n_terms)])
        at = np.arange(first[-1]) + np.repeat(self.first[nodes] - first[:-1], n_terms)
        return LinearLeaves(first.astype(np.int64), self.feature[at], self.coefficient[at], self.fill[at])

    def check(self, tree: Tree | Forest) -> None:
        """Raise BrokenTreeError unless these are models of the leaves of a regression tree, or of trees end to end."""
        if tree.n_classes:
            raise BrokenTreeError("a tree for classes has no linear leaves")
        if self.first.shape != (tree.n_nodes + 1,):
            raise BrokenTreeError(f"linear.first has shape {self.first.shape}, expected ({tree.n_nodes + 1},)")
        for name in ("feature", "coefficient", "fill"):
            if getattr(self, name).shape != (self.first[-1],):
                raise BrokenTreeError(f"linear.{name} has shape {getattr(self, name).shape}, not ({self.first[-1]},)")
        ascends = self.first[1:] >= self.first[:-1]  # a difference could overflow
        require(ascends & (self.first[0] == 0), "terms of linear leaves end before they begin")
        n_terms = np.diff(self.first)
        require((n_terms == 0) | tree.is_leaf, "an inner node has a linear model")
        owner = np.repeat(np.arange(tree.n_nodes), n_terms)
        fits = (self.feature >= 0) & (self.feature < tree.n_features)
        fits[fits] = tree.n_levels[self.feature[fits]] == 0
        is_finite = np.isfinite(self.coefficient) & np.isfinite(self.fill)
        for holds, fault in ((fits, "is no number of the table"), (is_finite, "is not finite")):
            if not holds.all():
                raise BrokenTreeError(f"node {int(owner[np.argmin(holds)])}: a term of its linear model {fault}")


@dataclass(frozen=True)
class LinearParams:
    """How the models of leaves are fitted."""

    features: str = "path"  # numeric features that are tested on the way to the leaf; "all": every numeric feature
    alpha: float = 1.0  # of sum of b², beside the weighted sum of squared errors


class LeafRows(NamedTuple):
    """The rows of a tree, leaf by leaf."""

    values: NDArray[Any]  # (n_rows, n_features)
    y: NDArray[np.float64]
    weight: NDArray[np.float64] | None


class LeafWeights(NamedTuple):
    """Weights of the rows of a leaf: a weight is `value * 2**exponent`."""

    values: NDArray[np.float64]  # (n_rows,), or (1,) when every weight is 1
    exponent: int
    total: float  # of the values
    is_whole: bool  # whole numbers, which multiply what is rounded


class Centred(NamedTuple):
    """Rows less their means, in powers of two: a value is `centre + scaled * 2**exponent`."""

    varies: NDArray[np.intp]  # which rows have more than one value; what follows is theirs
    scaled: NDArray[np.float64]  # (n, n_values): weighted squares sum to less than 1; 0 where missing
    exponent: NDArray[np.int64]
    centre: NDArray[np.float64]


def fit_leaves(tree: Tree, leaf: NDArray[Any], rows: LeafRows, params: LinearParams, k: Any) -> Tree:
    """The tree with a linear model in each leaf.

    Parameters
    ----------
    tree : Tree
        Of a regression, its leaves holding the means of the rows.
    leaf : int (n_rows,)
        Leaf that each row ends in.
    rows : Rows
        Values without infinities, NaN where missing; weights are positive.
    params : LinearParams
    k : kernels
    """
    order = np.argsort(leaf, kind="stable")
    end = np.cumsum(np.bincount(leaf, minlength=tree.n_nodes))
    numeric = np.flatnonzero(tree.n_levels == 0)
    models: dict[int, tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64]]] = {}
    for node in np.flatnonzero(tree.is_leaf).tolist():
        own = order[end[node - 1] if node else 0 : end[node]]
        y = rows.y[own]
        if len(own) < 2 or bool(np.all(y == y[0])):
            continue
        features = numeric if params.features == "all" else path_features(tree, node)
        if len(features) == 0:
            continue
        weights = scale_weights(None if rows.weight is None else rows.weight[own], len(own))
        x = np.empty((len(features) + 1, len(own)))
        x[:-1] = rows.values[own][:, features].T if len(features) < len(numeric) else rows.values[own].T[features]
        x[-1] = y
        found, coefficient, fill = fit_ridge(x, weights, params.alpha, k)
        models[node] = features[found], coefficient, fill
    n_terms = np.zeros(tree.n_nodes + 1, np.int64)
    for node, (found, _, _) in models.items():
        n_terms[node + 1] = len(found)
    parts = list(models.values())
    linear = LinearLeaves(
        np.cumsum(n_terms),
        np.concatenate([part[0] for part in parts] or [numeric[:0]]).astype(np.int32),
        np.concatenate([part[1] for part in parts] or [np.zeros(0)]),
        np.concatenate([part[2] for part in parts] or [np.zeros(0)]),
    )
    return replace(tree, linear=linear)


def path_features(tree: Tree, leaf: int) -> NDArray[np.intp]:
    """The numeric features that are tested on the way to a leaf, ascending."""
    found = set()
    node = int(tree.parent[leaf])
    while node >= 0:
        found.add(int(tree.feature[node]))
        node = int(tree.parent[node])
    features = np.array(sorted(found), np.intp)
    return features[tree.n_levels[features] == 0]


def scale_weights(weight: NDArray[np.float64] | None, n_rows: int) -> LeafWeights:
    """Weights of the rows of a leaf, to its own scale."""
    if weight is None:
        return LeafWeights(np.ones(1), 0, n_rows, is_whole=True)
    if float(weight.max()) <= MOST_WHOLE and bool(np.all(weight == np.floor(weight))):
        total = int(weight.astype(SUM).sum())
        if total <= MOST_WHOLE:
            return LeafWeights(weight, 0, total, is_whole=True)
    exponent = math.frexp(float(weight.max()))[1]
    scaled = np.ldexp(weight, -exponent)  # within (0, 1]
    bits = sum_bits(float(n_rows))
    return LeafWeights(scaled, exponent, math.ldexp(float(quantise(scaled, bits).sum()), -bits), is_whole=False)


def sum_rows(x: NDArray[np.float64], weights: LeafWeights) -> NDArray[np.float64]:
    """Weighted sums of the rows of x, shape (n, n_values), all within [-1, 1]."""
    bits = sum_bits(weights.total)
    is_whole, weight = weights.is_whole, weights.values
    units = quantise(x, bits) * weight.astype(SUM) if is_whole else quantise(x * weight, bits)
    return np.ldexp(units.sum(axis=1).astype(np.float64), -bits)


def fit_ridge(
    x: NDArray[np.float64], weights: LeafWeights, alpha: float, k: Any
) -> tuple[NDArray[np.intp], NDArray[np.float64], NDArray[np.float64]]:
    """Ridge regression of the last row of x, shape (n_features + 1, n_values), by the others.

    Returns the features that vary, their coefficients and their means; no features where float64 cannot hold a
    coefficient, which takes targets that are more than 1e300 times as large as a feature.
    """
    rows = centre_rows(x, weights)
    nothing = np.zeros(0, np.intp), np.zeros(0), np.zeros(0)
    n_features = len(rows.varies) - 1
    if n_features < 1 or rows.varies[-1] != len(x) - 1:
        return nothing
    products = sum_products(rows.scaled, weights, k)
    exponent = rows.exponent[:-1]
    lift = np.zeros(n_features, np.int64)
    if alpha > 0.0:  # bring what a large penalty has added to the diagonal back to about 1
        lift = np.maximum((math.frexp(alpha)[1] - 2 * exponent - weights.exponent + 1) >> 1, 0)
        exponent = exponent + lift
    with np.errstate(over="ignore", under="ignore"):
        gram = np.ldexp(products[:-1, :-1], -(lift[:, None] + lift))
        gram[np.diag_indices(n_features)] += np.ldexp(alpha, -2 * exponent - weights.exponent)
        slope = solve(gram, np.ldexp(products[-1, :-1], -lift), exponent, is_ridge=alpha > 0.0)
        slope = np.ldexp(slope, rows.exponent[-1] - exponent)
    if not np.isfinite(slope).all():
        return nothing
    return rows.varies[:-1], slope, rows.centre[:-1]


def centre_rows(x: NDArray[np.float64], weights: LeafWeights) -> Centred:
    """Centre the rows of x, shape (n, n_values), NaN where missing, and scale them to a sum of squares below 1."""
    is_known = ~np.isnan(x)
    low = np.min(x, axis=1, where=is_known, initial=np.inf)
    high = np.max(x, axis=1, where=is_known, initial=-np.inf)
    varies = np.flatnonzero(high > low)
    half = high[varies] / 2.0 - low[varies] / 2.0  # halves first: the range of float64 is wider than float64
    varies, half = varies[half > 0.0], half[half > 0.0]  # else two neighbouring subnormals
    middle = high[varies] / 2.0 + low[varies] / 2.0
    x, is_known = x[varies], is_known[varies]
    exponent = np.frexp(half)[1].astype(np.int64)
    scaled = np.where(is_known, np.ldexp(x - middle[:, None], -exponent[:, None]), 0.0)
    mean = sum_rows(scaled, weights) / sum_rows(is_known.astype(np.float64), weights)
    centre = middle + np.ldexp(mean, exponent)
    scaled = np.where(is_known, (scaled - mean[:, None]) / 2.0, 0.0)
    square = sum_rows(scaled * scaled, weights)
    seen = square > 0.0  # else rows of next to no weight alone have other values
    shift = (np.frexp(square[seen])[1].astype(np.int64) + 1) >> 1
    scaled = np.ldexp(scaled[seen], -shift[:, None])
    return Centred(varies[seen], scaled, exponent[seen] + shift + 1, centre[seen])


def sum_products(scaled: NDArray[np.float64], weights: LeafWeights, k: Any) -> NDArray[np.float64]:
    """Weighted sums of the products of each two rows, shape (n, n)."""
    n, n_values = scaled.shape
    sums = np.zeros((n, n), SUM)
    for lo in range(0, n_values, BLOCK_ROWS):
        hi = min(lo + BLOCK_ROWS, n_values)
        k.predict.linear.add_products(
            scaled, weights.values, weights.is_whole, math.ldexp(1.0, PRODUCT_BITS), lo, hi, sums
        )
    products = np.ldexp(sums.astype(np.float64), -PRODUCT_BITS)
    return products + products.T - np.diag(products.diagonal())


def solve(
    gram: NDArray[np.float64], moment: NDArray[np.float64], exponent: NDArray[np.int64], *, is_ridge: bool
) -> NDArray[np.float64]:
    """Solve `gram @ slope = moment`; of many solutions, the one of least norm in units of `2**-exponent`."""
    from scipy.linalg.lapack import dposv

    blur = len(gram) * RANK_SLACK * float(np.finfo(np.float64).eps)
    if is_ridge:
        factor, slope, fault = dposv(gram, moment, lower=1)
        if fault == 0 and np.square(factor.diagonal().min()) > blur:  # else a penalty of less than a rounding
            return slope
    value, vector = np.linalg.eigh(gram)
    is_free = value <= value[-1] * blur
    basis, free = vector[:, ~is_free], vector[:, is_free]
    slope = (basis * (1.0 / value[~is_free])) @ (basis.T @ moment)
    if is_free.any():
        size = np.ldexp(1.0, exponent.min() - exponent)
        slope -= free @ np.linalg.lstsq(free * size[:, None], slope * size, rcond=None)[0]
    return slope
