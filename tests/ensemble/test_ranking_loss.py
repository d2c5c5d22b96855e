"""The loss of lists: pulls as defined pair by pair, and NDCG and MAP as scikit-learn measures them."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, ndcg_score

from spinney import _jit
from spinney.ensemble.losses import MIN_H
from spinney.ensemble.ranking_loss import LambdaRank, pack_target

SCORES = st.floats(-3.0, 3.0).map(lambda x: round(x, 2))
LISTS = st.lists(st.lists(st.tuples(st.integers(0, 4), SCORES), min_size=1, max_size=9), min_size=1, max_size=4)


def gain_of(relevance, places, metric):
    """DCG, or mean precision without its divisor, of relevances in the order of their places."""
    if metric == "ndcg":
        return sum((2.0**r - 1.0) / math.log2(i + 2) for i, r in enumerate(relevance[:places]))
    hits = [i for i, r in enumerate(relevance[:places]) if r > 0]
    return sum((k + 1) / (i + 1) for k, i in enumerate(hits))


def naive_pulls(relevance, raw, metric, truncation):
    """Pulls at the scores of one list, by swapping each pair and looking at what becomes of the whole list."""
    n = len(raw)
    order = sorted(range(n), key=lambda i: (-raw[i], i))
    best = sorted(relevance, reverse=True)
    top = gain_of(best, truncation, "ndcg") if metric == "ndcg" else sum(r > 0 for r in relevance)
    g, h, total = np.zeros(n), np.zeros(n), 0.0
    for i in range(min(n - 1, truncation)):
        for j in range(i + 1, n):
            a, b = order[i], order[j]
            kind = (lambda r: r) if metric == "ndcg" else (lambda r: int(r > 0))
            if kind(relevance[a]) == kind(relevance[b]):
                continue
            swapped = list(order)
            swapped[i], swapped[j] = b, a
            before, after = (gain_of([relevance[k] for k in each], n, metric) for each in (order, swapped))
            change = abs(after - before) / top
            if raw[order[0]] != raw[order[-1]]:
                change /= 0.01 + abs(raw[a] - raw[b])
            high, low = (a, b) if relevance[a] > relevance[b] else (b, a)
            p = 1.0 / (1.0 + math.exp(raw[high] - raw[low]))
            g[high] -= change * p
            g[low] += change * p
            h[[high, low]] += change * p * (1.0 - p)
            total += 2.0 * change * p
    factor = math.log2(1.0 + total) / total if total > 0.0 else 1.0
    return g * factor, np.maximum(h * factor, MIN_H)


@given(LISTS, st.sampled_from(["ndcg", "map"]), st.integers(1, 6), st.randoms(use_true_random=False))
def test_pulls_are_those_of_swapped_pairs(lists, metric, truncation, random):
    rows = [(q, *row) for q, of_query in enumerate(lists) for row in of_query]
    random.shuffle(rows)  # rows of a list stand in any place
    query, relevance, raw = (np.array(column, float) for column in zip(*rows, strict=True))
    loss = LambdaRank(metric, truncation, 10)
    loss.begin_round(pack_target(query.astype(np.int64), relevance), None, raw[None, :])
    g, h = (column[0] for column in loss._of_round)
    for q in np.unique(query):
        mine = query == q
        expected_g, expected_h = naive_pulls(relevance[mine], raw[mine], metric, truncation)
        np.testing.assert_allclose(g[mine], expected_g, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(h[mine], expected_h, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("places", [3, 10, 100])
def test_value_is_what_scikit_learn_measures(places):
    rng = np.random.default_rng(0)
    query = rng.integers(0, 12, 300)
    relevance, raw = rng.integers(0, 5, 300).astype(float), rng.normal(size=300)
    y = pack_target(query, relevance)
    measured = [ndcg_score([2.0 ** relevance[query == q] - 1.0], [raw[query == q]], k=places) for q in np.unique(query)]
    assert LambdaRank("ndcg", 30, places).value(y, None, raw[None, :]) == pytest.approx(1.0 - np.mean(measured))
    if places == 100:
        precision = [average_precision_score(relevance[query == q] > 0, raw[query == q]) for q in np.unique(query)]
        assert LambdaRank("map", 30, places).value(y, None, raw[None, :]) == pytest.approx(1.0 - np.mean(precision))


def test_a_query_counts_by_the_mean_weight_of_its_rows():
    relevance, raw = np.array([1.0, 0.0, 0.0, 1.0]), np.array([[2.0, 1.0, 2.0, 1.0]])
    y = pack_target(np.array([0, 0, 1, 1]), relevance)
    loss = LambdaRank("ndcg", 30, 10)
    wrong = 1.0 - 1.0 / math.log2(3.0)
    assert loss.value(y, None, raw) == pytest.approx(wrong / 2.0)
    assert loss.value(y, np.array([2.0, 4.0, 1.0, 1.0]), raw) == pytest.approx(wrong / 4.0)


def test_a_query_without_relevant_rows_is_in_the_best_order():
    assert LambdaRank("map", 30, 10).value(np.zeros(3), None, np.arange(3.0)[None, :]) == 0.0


@pytest.mark.parametrize("metric", ["ndcg", "map"])
def test_compiled_and_interpreted_pulls_have_the_same_bits(metric, monkeypatch):
    rng = np.random.default_rng(1)
    y = pack_target(rng.integers(0, 6, 400), rng.integers(0, 5, 400).astype(float))
    raw = rng.normal(size=(1, 400)).round(1)  # with equal scores
    found = []
    for kernels in (_jit.interpreted(), _jit.load_compiled()):
        monkeypatch.setattr("spinney.ensemble.ranking_loss.kernels", lambda _, chosen=kernels: chosen)
        loss = LambdaRank(metric, 20, 10)
        loss.begin_round(y, None, raw)
        found.append((*loss._of_round, loss.value(y, None, raw)))
    for interpreted, compiled in zip(*found, strict=True):
        np.testing.assert_array_equal(interpreted, compiled)
