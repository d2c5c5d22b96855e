"""How strongly features go together: the partners of conditional permutation (Strobl et al. 2008)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spinney.table.sparse import Values

CORRELATED_ROWS = 65_536  # rows that correlations are taken from: sums of products of ranks stay exact in float64


def find_partners(
    values: Values, n_levels: NDArray[np.int32], units: Sequence[NDArray[np.int64]], threshold: float
) -> NDArray[np.bool_]:
    """Features correlated with one of a unit's, but not in it, (n_units, n_features)."""
    is_close = correlate(values, n_levels) > threshold
    partners = np.stack([is_close[features].any(axis=0) for features in units])
    for u, features in enumerate(units):
        partners[u, features] = False
    return partners


def correlate(values: Values, n_levels: NDArray[np.int32]) -> NDArray[np.float64]:
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
