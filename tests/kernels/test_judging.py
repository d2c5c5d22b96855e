"""Sums that random tests are judged by, and which of them is taken, against plain loops."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spinney import _jit
from spinney._types import ALL, CLASS_ROWS, LEFT, N_MISSING, PRESENT, Q_MISSING, S_MISSING, TOTALS_SIZE, W_MISSING

TREE = _jit.interpreted().tree
NO_SCORE, TIE = -1e300, TREE.small_subtrees.bar_above(1.0) - 1.0


@pytest.mark.parametrize("n_addends", [1, 2, 3])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_sums_of_missing_rows(n_addends, share):
    r = np.random.default_rng(3)
    addends = r.integers(-(2**40), 2**40, (n_addends, 90))
    column = np.where(r.random(77) < share, 0, 5).astype(np.int32)
    is_missing = column == 0
    totals = np.full(TOTALS_SIZE, 99)
    TREE.random_tests.sum_missing(addends, 4, 77, column, int(is_missing.sum()), totals)
    sums = addends[:, 4:81] @ is_missing.astype(np.int64)
    assert totals[N_MISSING] == is_missing.sum()
    assert totals[S_MISSING] == sums[0]
    assert totals[W_MISSING] == (sums[1] if n_addends > 1 else is_missing.sum())
    assert totals[Q_MISSING] == (sums[-1] if n_addends > 1 else 0)


@settings(max_examples=60)
@given(st.integers(1, 70), st.booleans(), st.integers(0, 2**32 - 1))
def test_sums_of_classes_on_the_left(n, has_weights, seed):
    """Whatever is left of another test in the rows that are summed to in turns."""
    r = np.random.default_rng(seed)
    lo, n_classes, cut = 3, 6, 4
    truth = np.sort(r.choice([0, 2, 5], n + lo)) if seed % 2 else r.choice([0, 2, 5], n + lo)
    weight = r.integers(0, 9, n + lo) if has_weights else np.ones(n + lo, np.int64)
    addends = np.stack([truth, weight]) if has_weights else truth[None]
    column = r.integers(1, 9, n).astype(np.int32)
    sums = r.integers(1, 99, (CLASS_ROWS, n_classes))
    present = np.unique(truth[lo:])
    sums[PRESENT, : len(present)] = present
    sums[ALL] = np.bincount(truth[lo:], weight[lo:], n_classes)
    node = SimpleNamespace(lo=lo, hi=lo + n, n_present=len(present))
    best = SimpleNamespace(score=NO_SCORE, n_ties=0)
    TREE.random_tests.judge_squares(best, cut, node, addends, column, sums, max(int(weight[lo:].sum()), 1))
    is_left = column <= cut
    left = np.bincount(truth[lo:][is_left], weight[lo:][is_left], n_classes)
    np.testing.assert_array_equal(sums[LEFT, present], left[present])


@settings(max_examples=200)
@given(
    st.lists(st.sampled_from([1.0, 1.0 + TIE / 2, 1.0 + TIE, 1.0 + 1.5 * TIE, 1.0 + 3 * TIE, -2.0, 7.0]), max_size=9),
    st.sampled_from([np.nan, np.inf, 1.0, 1.0 + TIE, 7.0]),
)
def test_the_first_of_the_best_tests(scores, bound):
    n = len(scores)
    few = SimpleNamespace(
        scores=np.array(scores),
        thresholds=np.arange(n) / 10,
        tried=np.arange(n, dtype=np.uint64)[::-1] + np.uint64(1),
        lanes=np.zeros(n, np.uint64),
        values=np.array([[0.0], [0.35]]),
        at=np.arange(2, dtype=np.uint64),
    )
    found = TREE.small_subtrees.choose_test(np.uint64(n), bound, np.uint64(2), few)
    best, at = NO_SCORE, 0
    for i, score in enumerate(scores):
        if score > best + abs(best) * TIE and not best >= bound:
            best, at = score, i
    assert found.score == best
    if n:
        assert (found.feature, found.threshold, int(found.side)) == (n - at, at / 10, 3 if at >= 4 else 1)
    else:
        assert found.feature == -1
