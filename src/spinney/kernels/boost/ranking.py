"""Lists of rows in order of their scores: how good the order is, and what each row's score does to it.

Words: a *query* is a list of rows that are compared with each other alone; *relevance*, a whole number, says how high a
row should stand; a *place* is its rank by score, from 0. *Gain* is 2**relevance - 1, a *discount* falls with the place.
NDCG is the sum of gains times discounts over the greatest that an order of these rows can have; MAP is the mean, over
the relevant rows, of the share of relevant rows down to theirs.

A pair of rows of unlike relevance pulls at both scores by the logistic loss of their difference, times what changing
their places would change (LambdaMART, Burges 2010). As LightGBM and XGBoost do by default, that change is divided by
the distance of the scores, pairs are those with a row among the first `truncation` places, and the pulls of a query are
scaled down by log2(1 + s) / s of their sum s: long lists do not drown short ones.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, kernel

from ..common.elementary import exponential, logarithm
from ..common.structs import Queries

NDCG, MAP = range(2)
RUN = 16  # rows that insertion sorts at once
NEAR = 0.01  # added to a distance of scores
LN2 = 0.6931471805599453


# --- Places -------------------------------------------------------------------------------------------------


@kernel
def insert_rows(raw: np.ndarray, order: np.ndarray, lo: int, hi: int) -> None:
    """Sort order[lo:hi] by falling scores, rows of equal scores as they come."""
    for k in range(lo + 1, hi):
        row = order[k]
        score = raw[row]
        at = k - 1
        while at >= lo and raw[order[at]] < score:
            order[at + 1] = order[at]
            at -= 1
        order[at + 1] = row


@kernel
def merge_rows(raw: np.ndarray, order: np.ndarray, lo: int, middle: int, hi: int, spare: np.ndarray) -> None:
    """Merge two sorted runs of `order`, lo .. middle and middle .. hi."""
    n = middle - lo
    for k in range(n):
        spare[k] = order[lo + k]
    left = np.int64(0)
    right = middle
    at = lo
    while left < n:
        if right < hi and raw[order[right]] > raw[spare[left]]:
            order[at] = order[right]
            right += 1
        else:
            order[at] = spare[left]
            left += 1
        at += 1


@kernel
def sort_rows(raw: np.ndarray, order: np.ndarray, lo: int, hi: int, spare: np.ndarray) -> None:
    """Sort order[lo:hi] by falling scores, rows of equal scores as they come."""
    for first in range(lo, hi, RUN):
        insert_rows(raw, order, first, min(first + RUN, hi))
    width = np.int64(RUN)
    while width < hi - lo:
        for first in range(lo, hi - width, 2 * width):
            merge_rows(raw, order, first, first + width, min(first + 2 * width, hi), spare)
        width *= 2


# --- Pairs --------------------------------------------------------------------------------------------------


@kernel
def count_relevant(relevance: np.ndarray, order: np.ndarray, lo: int, hi: int, sums: np.ndarray) -> None:
    """Write for each place of a query how many rows down to it are relevant, and the sum of 1 / rank over these."""
    n_relevant = 0.0
    total = 0.0
    for place in range(hi - lo):
        if relevance[order[lo + place]] > 0:
            n_relevant += 1.0
            total += 1.0 / np.float64(place + 1)
        sums[0, place] = n_relevant
        sums[1, place] = total


@kernel
def change_of_map(is_first_relevant: bool, i: int, j: int, n: int, sums: np.ndarray) -> float:
    """How much the mean precision of a query of n rows moves if two rows, one relevant, swap their places i < j."""
    between = sums[1, j - 1] - sums[1, i]
    last = sums[0, j] / np.float64(j + 1)
    first = sums[0, i] / np.float64(i + 1)
    if not is_first_relevant:
        first += 1.0 / np.float64(i + 1)
    return abs(first + between - last) / sums[0, n - 1]


@kernel
def pull_pairs(
    metric: int,
    truncation: int,
    queries: Queries,
    q: int,
    raw: np.ndarray,
    sums: np.ndarray,
    g: np.ndarray,
    h: np.ndarray,
) -> float:
    """Add the pulls of the pairs of a query, whose rows are in order, to g and h; return the sum of their sizes."""
    order = queries.order
    relevance = queries.relevance
    lo = queries.starts[q]
    n = queries.starts[q + 1] - lo
    are_apart = raw[order[lo]] != raw[order[lo + n - 1]]
    total = 0.0
    for i in range(min(n - 1, truncation)):
        row = order[lo + i]
        for j in range(i + 1, n):
            other = order[lo + j]
            if metric == NDCG:
                if relevance[row] == relevance[other]:
                    continue
                gap = queries.gain[relevance[row]] - queries.gain[relevance[other]]
                change = abs(gap) * (queries.discount[i] - queries.discount[j]) * queries.per_best[q]
            else:
                if (relevance[row] > 0) == (relevance[other] > 0):
                    continue
                change = change_of_map(relevance[row] > 0, i, j, n, sums)
            is_right = relevance[row] > relevance[other]  # whether the row that should stand higher does
            lead = raw[row] - raw[other]
            if are_apart:
                change /= NEAR + lead
            e = exponential(-lead)  # lead is at least 0
            unlikely = e / (1.0 + e)
            miss = unlikely if is_right else 1.0 / (1.0 + e)
            pull = change * miss
            curvature = change * (unlikely / (1.0 + e))
            g[row] += -pull if is_right else pull
            g[other] += pull if is_right else -pull
            h[row] += curvature
            h[other] += curvature
            total += 2.0 * pull
    return total


# --- Doors --------------------------------------------------------------------------------------------------


@door
def fill_lambdas(
    metric: int,
    truncation: int,
    queries: Queries,
    raw: np.ndarray,  # (n_rows,) float64
    g: np.ndarray,  # (n_rows,) float64, written
    h: np.ndarray,  # (n_rows,) float64, written
    spare: np.ndarray,  # (longest query,) int64
    sums: np.ndarray,  # (2, longest query) float64
) -> None:
    """Write how the scores of all rows are pulled by the pairs of their queries; puts the rows of queries in order."""
    for row in range(len(raw)):
        g[row] = 0.0
        h[row] = 0.0
    for q in range(len(queries.starts) - 1):
        lo = queries.starts[q]
        hi = queries.starts[q + 1]
        sort_rows(raw, queries.order, lo, hi, spare)
        if metric == MAP:
            count_relevant(queries.relevance, queries.order, lo, hi, sums)
        total = pull_pairs(metric, truncation, queries, q, raw, sums, g, h)
        if total > 0.0:
            factor = logarithm(1.0 + total) / (LN2 * total)
            for k in range(lo, hi):
                g[queries.order[k]] *= factor
                h[queries.order[k]] *= factor


@door
def measure_queries(
    metric: int,
    k: int,  # places that count
    queries: Queries,
    raw: np.ndarray,  # (n_rows,) float64
    values: np.ndarray,  # (n_queries,) float64, written
    spare: np.ndarray,  # (longest query,) int64
) -> None:
    """Write NDCG or mean precision of each query, of its first k places; 1 where no row is relevant."""
    for q in range(len(values)):
        lo = queries.starts[q]
        hi = queries.starts[q + 1]
        sort_rows(raw, queries.order, lo, hi, spare)
        value = 0.0
        n_relevant = 0.0
        for place in range(min(hi - lo, k)):
            relevance = queries.relevance[queries.order[lo + place]]
            if metric == NDCG:
                value += queries.gain[relevance] * queries.discount[place]
            elif relevance > 0:
                n_relevant += 1.0
                value += n_relevant / np.float64(place + 1)
        values[q] = value * queries.per_best[q] if queries.per_best[q] > 0.0 else 1.0
