"""Losses of times: Cox by its definition, row by row; accelerated failure time by scipy's distributions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from spinney.ensemble.losses import MIN_H
from spinney.ensemble.survival_losses import AFT, NOISES, Cox, upper_tail

ROWS = st.lists(
    st.tuples(st.integers(1, 6), st.booleans(), st.floats(-2.0, 2.0), st.integers(1, 3)), min_size=1, max_size=12
)
SCIPY = {"normal": stats.norm, "logistic": stats.logistic, "extreme": stats.gumbel_l}


def columns_of(rows):
    time, event, raw, weight = (np.array(column, float) for column in zip(*rows, strict=True))
    return np.where(event > 0, time, -time), raw, weight


def naive_cox(y, raw, weight):
    """Loss of all rows, its derivatives by each score, and the baseline hazard: sums over risk sets as defined."""
    time, event, risk = np.abs(y), y > 0, np.exp(raw)
    at_risk = [weight @ (risk * (time >= t)) for t in time]
    loss = -sum(weight[i] * (raw[i] - np.log(at_risk[i])) for i in np.flatnonzero(event))
    g, h = -event.astype(float), np.zeros(len(y))
    for i in range(len(y)):
        for k in np.flatnonzero(event & (time <= time[i])):
            share = risk[i] / at_risk[k]
            g[i] += weight[k] * share
            h[i] += weight[k] * share * (1.0 - share)
    return loss, g, np.maximum(h, MIN_H)


@given(ROWS)
def test_cox_is_its_definition(rows):
    y, raw, weight = columns_of(rows)
    loss = Cox()
    value, g, h = naive_cox(y, raw, weight)
    loss.begin_round(y, weight, raw[None, :])
    np.testing.assert_allclose(loss._of_round[0][0], g, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(loss._of_round[1][0], h, rtol=1e-9, atol=1e-9)
    assert loss.value(y, weight, raw[None, :]) * weight.sum() == pytest.approx(value, abs=1e-9)


@given(ROWS)
def test_a_row_of_weight_two_is_two_rows_for_cox(rows):
    y, raw, weight = columns_of(rows)
    times = weight.astype(int)
    loss, twice = Cox(), Cox()
    loss.begin_round(y, weight, raw[None, :])
    twice.begin_round(np.repeat(y, times), None, np.repeat(raw, times)[None, :])
    first = np.cumsum(times) - times
    for mine, other in zip(loss._of_round, twice._of_round, strict=True):
        np.testing.assert_allclose(mine[0], other[0][first], rtol=1e-9, atol=1e-12)


def test_cox_survives_by_breslows_baseline():
    rng = np.random.default_rng(0)
    y, raw = rng.integers(1, 9, 40) * rng.choice([-1.0, 1.0], 40), rng.normal(size=40)
    loss = Cox().with_baseline(y, None, raw[None, :])
    times = np.arange(0.5, 10.0)
    hazard = [
        sum(1.0 / np.exp(raw[np.abs(y) >= y[k]]).sum() for k in np.flatnonzero((y > 0) & (y <= t))) for t in times
    ]
    expected = np.exp(-np.outer(np.exp(raw), hazard))
    np.testing.assert_allclose(loss.survive(raw, times), expected, rtol=1e-9)


def test_the_baseline_of_many_times_is_thinned():
    loss = Cox().with_baseline(np.arange(1.0, 30_001.0), None, np.zeros((1, 30_000)))
    assert len(loss.times) == 10_000
    assert loss.times[[0, -1]].tolist() == [1.0, 30_000.0]
    assert bool((np.diff(loss.hazards) > 0.0).all())


@pytest.mark.parametrize("distribution", sorted(NOISES))
@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.0])
def test_failure_times_have_the_likelihood_of_scipy(distribution, sigma):
    rng = np.random.default_rng(0)
    y, raw = np.exp(rng.normal(size=200) * 2.0) * rng.choice([-1.0, 1.0], 200), rng.normal(size=200)
    z = (np.log(np.abs(y)) - raw) / sigma
    noise = SCIPY[distribution]
    expected = np.where(y > 0, -noise.logpdf(z) + np.log(sigma), -noise.logsf(z))
    loss = AFT(distribution, sigma)
    value, g, h = loss._derive(y, raw)
    np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-12)
    step = 1e-4
    above, below = (loss._derive(y, raw + d)[0] for d in (step, -step))
    np.testing.assert_allclose(g, (above - below) / (2.0 * step), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(h, np.maximum((above - 2.0 * value + below) / step**2, 0.0), rtol=1e-3, atol=1e-5)
    times = np.array([0.1, 1.0, 7.0])
    survival = noise.sf((np.log(times)[None, :] - raw[:, None]) / sigma)
    np.testing.assert_allclose(loss.survive(raw, times), survival, rtol=1e-9, atol=1e-300)


def test_the_tail_of_the_normal_distribution_is_scipys():
    z = np.linspace(-30.0, 30.0, 20_001)
    tail = upper_tail(z)
    near = z <= 3.0
    np.testing.assert_allclose(tail[near], stats.norm.sf(z[near]), rtol=1e-12)
    mills = np.exp(stats.norm.logsf(z[~near]) - stats.norm.logpdf(z[~near]))
    np.testing.assert_allclose(tail[~near], mills, rtol=1e-10)


@pytest.mark.parametrize("distribution", sorted(NOISES))
def test_failure_times_begin_at_the_best_constant(distribution):
    rng = np.random.default_rng(0)
    y = np.exp(rng.normal(size=300)) * rng.choice([-1.0, 1.0], 300)
    loss = AFT(distribution, 1.0)
    start = loss.start(y, None)[0]
    values = [loss.value(y, None, np.full((1, 300), start + d)) for d in (-0.01, 0.0, 0.01)]
    assert values[1] < min(values[0], values[2])
