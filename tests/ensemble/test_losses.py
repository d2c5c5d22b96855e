"""Losses: their derivatives, best constants, links, and that chunks and orders of rows change no bit."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax
from scipy.special import softmax as scipy_softmax
from sklearn._loss import loss as peer

from fast import compiled
from spinney import GradientBoostingClassifier, GradientBoostingRegressor, _jit
from spinney.ensemble.custom_loss import Custom
from spinney.ensemble.initial_score import find_start
from spinney.ensemble.links import LINKS, respond, respond_one
from spinney.ensemble.loss_names import make_loss
from spinney.ensemble.losses import (
    Loss,
    RoundRows,
    Softmax,
    find_constant,
    mean_derivatives,
    row_weights,
    weighted_mean,
    weighted_quantile,
)
from spinney.kernels.boost.gradients import BLOCK, MIN_H
from spinney.kernels.common.structs import Gradients

UNIT = np.ones(1)
SMOOTH = ["squared_error", "poisson", "gamma", "tweedie", "log_loss", "exponential"]
KINKED = ["absolute_error", "huber", "quantile"]
ALL = SMOOTH + KINKED
OF_CLASSES = {"log_loss", "exponential"}
DELTA = 1.25


def make(name, **parameters):
    loss = make_loss(name, n_classes=2 if name in OF_CLASSES else 0, **parameters)
    if name == "huber":
        loss.parameter = DELTA
    return loss


def target(name, n, rng):
    """A target that the loss is defined for."""
    if name in OF_CLASSES:
        return rng.integers(0, 2, n).astype(np.float64)
    if name in {"poisson", "tweedie"}:
        return rng.poisson(1.5, n).astype(np.float64)
    return rng.gamma(2.0, 1.5, n) if name == "gamma" else rng.normal(0.5, 2.0, n)


def fill(loss, y, raw, weight=UNIT, chunks=None, kernels=None):
    """All rows of all raw scores, chunk by chunk: g, h (n_raw, n_rows) and sums (n_raw, n_blocks, 4)."""
    n = len(y)
    g, h, p = np.full_like(raw, np.nan), np.full_like(raw, np.nan), np.full_like(raw, np.nan)
    sums = np.full((len(raw), -(-n // BLOCK), 4), np.nan)
    loss.begin_round(y, None if weight is UNIT else weight, raw)
    for row in range(len(raw)):
        for lo, hi in chunks or [(0, n)]:
            rows = RoundRows(y, raw, Gradients(g[row], h[row], weight, False), sums[row], p)
            loss.fill(kernels or compiled(), rows, row, lo, hi)
    return g, h, sums


def one_row(loss, y, raw):
    g, h, _ = fill(loss, np.array([y]), np.array([[raw]]))
    return g[0, 0], h[0, 0]


def value_of(loss, y, raw):
    return loss.value(np.array([y]), None, np.array([[raw]]))


# --- The exponential ----------------------------------------------------------------------------------------


def exponentials(x, kernels=None):
    """Exp as the kernels take it: the derivative of the Poisson loss of y = 0."""
    x = np.asarray(x, np.float64)
    return fill(make("poisson"), np.zeros(len(x)), x[None], kernels=kernels)[0][0]


def test_the_exponential_is_within_two_units_in_the_last_place():
    rng = np.random.default_rng(0)
    x = np.concatenate([np.linspace(-708, 709, 50_001), rng.normal(size=50_000), rng.normal(size=1000) * 1e-9])
    truth = np.exp(x.astype(np.longdouble))
    error = (exponentials(x) - truth) / np.spacing(truth.astype(np.float64))
    assert np.max(np.abs(error)) < 2.0
    np.testing.assert_array_max_ulp(exponentials(x), np.exp(x), 2)


def test_the_exponential_is_held_within_the_finite_numbers():
    x = np.array([0.0, -0.0, 5e-324, 709.0, 710.0, 1e308, np.inf, -708.0, -709.0, -1e308, -np.inf])
    for found in (exponentials(x), exponentials(x, _jit.interpreted())):
        assert found[:3].tolist() == [1.0, 1.0, 1.0]
        np.testing.assert_allclose(found[3:7], np.exp(709.0), rtol=1e-15)
        np.testing.assert_allclose(found[7:], np.exp(-708.0), rtol=1e-15)


def test_the_exponential_never_falls():
    x = np.sort(np.random.default_rng(1).uniform(-5, 5, 10_000))
    steps = np.diff(exponentials(x))
    assert np.all(steps >= -np.spacing(exponentials(x)[1:]))


def test_the_logarithms_are_within_two_units_in_the_last_place():
    raw = np.concatenate([np.linspace(0, 50, 2001), np.geomspace(1e-9, 700, 1000)])
    found = np.array([value_of(make("log_loss"), 1.0, score) for score in raw])
    truth = np.log1p(np.exp(-raw.astype(np.longdouble)))
    assert np.max(np.abs(found - truth) / np.spacing(truth.astype(np.float64))) < 2.5  # with those of exp
    many = [make_loss("log_loss", n_classes=n).value(np.zeros(1), None, np.zeros((n, 1))) for n in range(3, 300)]
    np.testing.assert_array_max_ulp(np.array(many), np.log(np.arange(3.0, 300.0)), 2)


# --- Derivatives --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
@given(data=st.data())
def test_g_and_h_are_derivatives(name, data):
    loss = make(name, alpha=data.draw(st.sampled_from([0.1, 0.5, 0.9])), power=data.draw(st.sampled_from([1.1, 1.5])))
    raw = data.draw(st.floats(-4, 4))
    positive = st.floats(0.01, 20)
    y = data.draw(
        {"log_loss": st.sampled_from([0.0, 1.0]), "exponential": st.sampled_from([0.0, 1.0])}.get(
            name, positive if name in {"poisson", "gamma", "tweedie"} else st.floats(-5, 5)
        )
    )
    step = 1e-5
    kinks = {"huber": [y - DELTA, y + DELTA]}.get(name, [y]) if name in KINKED else []
    assume(all(abs(raw - kink) > 2 * step for kink in kinks))
    g, h = one_row(loss, y, raw)
    slope = (value_of(loss, y, raw + step) - value_of(loss, y, raw - step)) / (2 * step)
    curvature = (one_row(loss, y, raw + step)[0] - one_row(loss, y, raw - step)[0]) / (2 * step)
    scale = 1.0 + abs(value_of(loss, y, raw)) + abs(h)
    assert math.isclose(g, slope, rel_tol=1e-5, abs_tol=1e-8 * scale)
    if loss.has_constant_hessian:
        assert h == 1.0
    else:
        assert math.isclose(h, curvature, rel_tol=1e-5, abs_tol=1e-8 * scale)


PEERS = {
    "squared_error": peer.HalfSquaredError(),
    "absolute_error": peer.AbsoluteError(),
    "quantile": peer.PinballLoss(quantile=0.9),
    "huber": peer.HuberLoss(delta=DELTA),
    "poisson": peer.HalfPoissonLoss(),
    "gamma": peer.HalfGammaLoss(),
    "tweedie": peer.HalfTweedieLoss(power=1.5),
    "log_loss": peer.HalfBinomialLoss(),
    "exponential": peer.ExponentialLoss(),
}


@pytest.mark.parametrize("name", ALL)
def test_scikit_learns_losses_are_the_same(name):
    rng = np.random.default_rng(2)
    y, raw, weight = target(name, 5000, rng), rng.normal(0, 2, (1, 5000)), rng.uniform(0.5, 2, 5000)
    loss, other = make(name), PEERS[name]
    g, h, _ = fill(loss, y, raw)
    expected_g, expected_h = other.gradient_hessian(y, raw[0])
    np.testing.assert_allclose(g[0], expected_g, rtol=1e-12, atol=1e-13)
    if not loss.has_constant_hessian:
        np.testing.assert_allclose(h[0], np.maximum(expected_h, MIN_H), rtol=1e-12, atol=1e-13)
    assert math.isclose(loss.value(y, weight, raw), other(y, raw[0], weight), rel_tol=1e-12)
    predicted = other.predict_proba(raw[0]) if name in OF_CLASSES else other.link.inverse(raw[0])
    np.testing.assert_allclose(loss.respond(raw), predicted, rtol=1e-12, atol=1e-15)


def test_scikit_learns_loss_of_many_classes_is_the_same():
    rng = np.random.default_rng(3)
    n, n_classes = 3000, 5
    y, raw = rng.integers(0, n_classes, n).astype(np.float64), rng.normal(0, 3, (n_classes, n))
    loss, other = make_loss("log_loss", n_classes=n_classes), peer.HalfMultinomialLoss(n_classes=n_classes)
    g, h, _ = fill(loss, y, raw)
    expected_g, expected_h = other.gradient_hessian(y, np.ascontiguousarray(raw.T))
    np.testing.assert_allclose(g, expected_g.T, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(h, loss.parameter * expected_h.T, rtol=1e-11, atol=1e-14)
    assert math.isclose(loss.value(y, None, raw), other(y, np.ascontiguousarray(raw.T)), rel_tol=1e-12)
    np.testing.assert_allclose(loss.respond(raw), scipy_softmax(raw.T, axis=1), rtol=1e-12)
    assert math.isclose(
        loss.value(y, None, raw), -np.mean(log_softmax(raw, axis=0)[y.astype(int), np.arange(n)]), rel_tol=1e-12
    )


def test_two_classes_by_softmax_step_as_one_score_does():
    y = np.array([0.0] * 30 + [1.0] * 10)
    raw = np.array([[0.3], [-0.1]]) * np.ones(len(y))
    g, h, _ = fill(Softmax(2), y, raw)
    steps = -g.sum(axis=1) / h.sum(axis=1)
    g, h, _ = fill(make("log_loss"), y, raw[1:] - raw[:1])
    assert math.isclose(steps[1] - steps[0], -g.sum() / h.sum(), rel_tol=1e-12)


def test_h_of_many_classes_is_never_too_little():
    p = np.random.default_rng(15).dirichlet(np.full(5, 0.3), 1000)
    excess = np.einsum("nk,kl->nkl", 2.0 * p * (1 - p), np.eye(5)) - (
        np.einsum("nk,kl->nkl", p, np.eye(5)) - np.einsum("nk,nl->nkl", p, p)
    )
    assert np.linalg.eigvalsh(excess).min() > -1e-12
    assert make_loss("log_loss", n_classes=5).parameter == 2.0
    assert make_loss("log_loss", n_classes=5, newton=False).parameter == 1.25


def test_a_score_at_the_target_has_no_slope_in_either_direction():
    for name in KINKED:
        assert one_row(make(name), 2.0, 2.0)[0] == 0.0


def test_rare_classes_keep_the_digits_of_their_gradients():
    for y, sign in ((1.0, 1.0), (0.0, -1.0)):
        g, h = one_row(make("log_loss"), y, sign * 30.0)
        assert math.isclose(g, -sign * expit(-30.0), rel_tol=1e-14)
        assert math.isclose(h, expit(-30.0), rel_tol=1e-12)
        assert math.isclose(value_of(make("log_loss"), y, sign * 30.0), math.log1p(math.exp(-30.0)), rel_tol=1e-14)


@pytest.mark.parametrize("name", ALL)
def test_no_finite_score_makes_a_nan(name):
    sizes = [0.0, 1e-300, 1.0, 36.0, 700.0, 745.0, 1e4, 1e153, 1e300]
    raw = np.array([[sign * size for sign in (1.0, -1.0) for size in sizes]])
    n = raw.shape[1]
    loss = make(name)
    for y in (0.0, 1.0) if name in OF_CLASSES else (1e-300, 1.0, 1e300):
        g, h, sums = fill(loss, np.full(n, y), raw)
        assert not np.isnan(g).any()
        assert not np.isnan(h).any()
        assert not np.isnan(sums).any()
        assert h.min() >= MIN_H
        assert loss.value(np.full(n, y), None, raw) >= 0.0 or name == "poisson"
        assert np.isfinite(loss.respond(raw)).all()


def test_no_finite_scores_of_many_classes_make_a_nan():
    raw = np.array([[1e300, -1e300, 0.0, 800.0], [-1e300, -1e300, 0.0, 0.0], [1e300, 1e300, 0.0, -800.0]])
    loss = make_loss("log_loss", n_classes=3)
    y = np.array([0.0, 1.0, 2.0, 2.0])
    g, h, sums = fill(loss, y, raw)
    for array in (g, h, sums, loss.respond(raw)):
        assert np.isfinite(array).all()
    assert h.min() >= MIN_H
    np.testing.assert_allclose(g.sum(axis=0), 0.0, atol=1e-15)
    np.testing.assert_allclose(loss.respond(raw).sum(axis=1), 1.0, rtol=1e-15)


# --- The same bits ------------------------------------------------------------------------------------------


def naive_sums(g, h, weight):
    """Sums of a block, added row by row."""
    w = np.broadcast_to(weight, g.shape)
    return [
        [
            np.cumsum(w[block] * np.abs(g[block]))[-1],
            np.cumsum(w[block] * h[block])[-1],
            np.max(np.abs(g[block])),
            np.max(h[block]),
        ]
        for block in (slice(first, first + BLOCK) for first in range(0, len(g), BLOCK))
    ]


@pytest.mark.parametrize("name", [*ALL, "softmax", "custom"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_chunks_change_no_bit_and_sums_are_those_of_blocks(name, is_weighted):
    rng = np.random.default_rng(4)
    n = 3 * BLOCK + 1001
    if name == "softmax":
        loss, y = make_loss("log_loss", n_classes=3), rng.integers(0, 3, n).astype(np.float64)
    elif name == "custom":
        loss, y = make_loss((lambda y, raw: raw - y, lambda y, raw: 1.0 + y * y)), rng.normal(size=n)  # noqa: ARG005
    else:
        loss, y = make(name), target(name, n, rng)
    raw = rng.normal(size=(loss.n_raw, n))
    weight = rng.uniform(0, 3, n) if is_weighted else UNIT
    whole = fill(loss, y, raw, weight)
    for chunks in (
        [(0, BLOCK), (BLOCK, n)],
        [(2 * BLOCK, 3 * BLOCK), (3 * BLOCK, n), (0, 2 * BLOCK)],
        [(lo, min(lo + BLOCK, n)) for lo in range(0, n, BLOCK)],
    ):
        for found, expected in zip(fill(loss, y, raw, weight, chunks), whole, strict=True):
            np.testing.assert_array_equal(found, expected)
    for g, h, sums in zip(*whole, strict=True):
        np.testing.assert_array_equal(sums, naive_sums(g, h, weight))


@pytest.mark.parametrize("name", [*ALL, "softmax", "custom"])
def test_interpreted_kernels_give_the_same_bits(name):
    rng = np.random.default_rng(5)
    n = 40
    if name == "softmax":
        loss, y = make_loss("log_loss", n_classes=3), rng.integers(0, 3, n).astype(np.float64)
    elif name == "custom":
        loss, y = make_loss((lambda y, raw: raw - y, lambda y, raw: 1.0 + y * y)), rng.normal(size=n)  # noqa: ARG005
    else:
        loss, y = make(name), target(name, n, rng)
    raw = rng.normal(0, 5, (loss.n_raw, n)) * rng.choice([1.0, 100.0], n)
    weight = rng.uniform(0, 3, n)
    for found, expected in zip(
        fill(loss, y, raw, weight, kernels=_jit.interpreted()), fill(loss, y, raw, weight), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("weighting", ["none", "whole", "any"])
def test_the_order_of_rows_does_not_enter_the_start(name, weighting):
    rng = np.random.default_rng(6)
    n = 5001
    y = target(name, n, rng)
    weight = {"none": None, "whole": rng.integers(1, 5, n).astype(np.float64), "any": rng.uniform(0.1, 2, n)}[weighting]
    order = rng.permutation(n)
    moved = None if weight is None else weight[order]
    assert make(name).start(y, weight).tolist() == make(name).start(y[order], moved).tolist()


@pytest.mark.parametrize("name", [*ALL, "softmax", "custom"])
def test_a_row_of_weight_two_is_two_rows(name):
    rng = np.random.default_rng(7)
    n = 500
    if name == "softmax":
        loss, y = make_loss("log_loss", n_classes=3), rng.integers(0, 3, n).astype(np.float64)
    elif name == "custom":
        loss, y = make_loss((lambda y, raw: np.sinh(raw - y), lambda y, raw: np.cosh(raw - y))), rng.normal(size=n)
    else:
        loss, y = make(name), target(name, n, rng)
    times = rng.integers(1, 4, n)
    raw = rng.normal(size=(loss.n_raw, n))
    repeated = np.repeat(y, times), None, np.repeat(raw, times, axis=1)
    weighted = y, times.astype(np.float64), raw
    assert loss.start(*repeated[:2]).tolist() == loss.start(*weighted[:2]).tolist()
    if name != "custom":
        assert math.isclose(loss.value(*repeated), loss.value(*weighted), rel_tol=1e-12)
    if name == "huber":
        follower = make_loss("huber", newton=False)
        follower.begin_round(*repeated)
        delta = follower.parameter
        follower.begin_round(*weighted)
        assert follower.parameter == delta


@pytest.mark.parametrize("name", [*ALL, "softmax"])
def test_losses_are_summed_by_block(name):
    rng = np.random.default_rng(14)
    n = BLOCK + 101
    loss = make_loss("log_loss", n_classes=3) if name == "softmax" else make(name)
    y = rng.integers(0, 3, n).astype(np.float64) if name == "softmax" else target(name, n, rng)
    raw, weight = rng.normal(size=(loss.n_raw, n)), rng.uniform(0.5, 2, n)
    each = np.array([loss.value(y[i : i + 1], None, np.ascontiguousarray(raw[:, i : i + 1])) for i in range(n)])
    sums = [np.cumsum(weight[block] * each[block])[-1] for block in (slice(BLOCK), slice(BLOCK, n))]
    weights = [np.cumsum(weight[block])[-1] for block in (slice(BLOCK), slice(BLOCK, n))]
    assert loss.value(y, weight, raw) == math.fsum(sums) / math.fsum(weights)
    gradients = Gradients(np.empty(n), np.empty(n), weight, False)
    for kernels in (compiled(), _jit.interpreted()):
        found = np.empty((2, 2))
        loss._sum_losses(kernels, y, weight, raw, found)
        np.testing.assert_array_equal(found, np.transpose([sums, weights]))
        p, found = np.full_like(raw, np.nan), np.empty((2, 2))
        for lo, hi in ((BLOCK, n), (0, BLOCK), (n, n)):
            loss.sum_rows(kernels, RoundRows(y, raw, gradients, np.empty((2, 4)), p), found, lo, hi)
        np.testing.assert_array_equal(found, np.transpose([sums, weights]))
        if name == "softmax":
            np.testing.assert_allclose(p, scipy_softmax(raw, axis=0), rtol=1e-14)


@pytest.mark.parametrize("params", [{}, {"drop_rate": 0.5, "skip_drop": 0.0}, {"sampling": "gradient"}])
def test_probabilities_that_a_loss_leaves_behind_are_those_of_the_scores(params, monkeypatch):
    """Rounds whose loss leaves none find them anew: the same model."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 4))
    y = (X[:, 0] > 0.3).astype(int) + (X[:, 1] * X[:, 2] > 0.2)
    model = GradientBoostingClassifier(n_estimators=6, subsample=0.5, random_state=0, **params)
    known = model.fit(X, y).predict_proba(X)
    monkeypatch.setattr(Softmax, "is_by_row", False)
    np.testing.assert_array_equal(model.fit(X, y).predict_proba(X), known)


def test_the_weight_of_a_single_row_counts():
    _, _, sums = fill(make("squared_error"), np.zeros(1), np.full((1, 1), 3.0), np.array([2.5]))
    assert sums.tolist() == [[[7.5, 2.5, 3.0, 1.0]]]


# --- Means, quantiles, constants ----------------------------------------------------------------------------


numbers = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)
levels = st.sampled_from([0.01, 0.1, 0.25, 0.3, 0.5, 0.7, 0.9, 0.95])


@given(numbers, st.data())
def test_means_are_those_of_exact_sums(x, data):
    weight = data.draw(st.lists(st.floats(0.01, 100), min_size=len(x), max_size=len(x)))
    expected = math.fsum(w * v for w, v in zip(weight, x, strict=True)) / math.fsum(weight)
    found = weighted_mean(np.array(x), row_weights(np.array(weight), len(x)))
    size = math.fsum(w * abs(v) for w, v in zip(weight, x, strict=True)) / math.fsum(weight)
    assert math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-12 * size + 1e-300)


def test_an_outlier_costs_the_mean_no_digits():
    x = np.append(np.random.default_rng(8).lognormal(size=100_000), 1e9)
    assert math.isclose(weighted_mean(x, row_weights(None, len(x))), math.fsum(x) / len(x), rel_tol=1e-12)


@pytest.mark.parametrize("power", [-300, 0, 300])
def test_means_of_any_size(power):
    x = np.array([1.0, 2.0, 6.0]) * 10.0**power
    assert math.isclose(weighted_mean(x, row_weights(None, 3)), 3.0 * 10.0**power, rel_tol=1e-12)


def test_the_mean_of_what_is_not_finite_is_infinite():
    assert weighted_mean(np.array([1.0, np.nan]), row_weights(None, 2)) == math.inf
    assert weighted_mean(np.array([1.0, -np.inf]), row_weights(None, 2)) == math.inf
    assert weighted_mean(np.zeros(2), row_weights(None, 2)) == 0.0


@given(numbers, levels)
def test_quantiles_are_numpys(x, level):
    expected = np.quantile(x, level, method="averaged_inverted_cdf")
    assume(1e-9 < (level * len(x)) % 1 < 1 - 1e-9)  # NumPy takes 0.7 of 10 rows for a little less than 7
    assert math.isclose(weighted_quantile(np.array(x), row_weights(None, len(x)), level), expected, rel_tol=1e-12)


@given(numbers, levels, st.data())
def test_quantiles_of_weights_are_those_of_repeated_rows(x, level, data):
    times = data.draw(st.lists(st.integers(1, 4), min_size=len(x), max_size=len(x)))
    found = weighted_quantile(np.array(x), row_weights(np.array(times, np.float64), len(x)), level)
    repeated = np.repeat(x, times)
    assert found == weighted_quantile(repeated, row_weights(None, len(repeated)), level)
    fractions = row_weights(np.array(times) / 8.0, len(x))
    assert found == weighted_quantile(np.array(x), fractions, level)


def test_quantiles_between_two_rows_are_in_the_middle():
    x = np.arange(10.0)
    assert weighted_quantile(x, row_weights(None, 10), 0.5) == 4.5
    assert weighted_quantile(x, row_weights(None, 10), 0.9) == 8.5
    assert weighted_quantile(x, row_weights(None, 10), 0.91) == 9.0
    assert weighted_quantile(x[:1], row_weights(None, 1), 0.5) == 0.0
    assert weighted_quantile(x, row_weights(np.arange(1.0, 11.0), 10), 0.5) == 6.0


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_start_has_the_least_loss(name, is_weighted, seed):
    rng = np.random.default_rng(seed)
    n = 51
    loss, y = make(name, alpha=0.7), target(name, n, rng)
    weight = rng.uniform(0.1, 2, n) if is_weighted else None
    start = loss.start(y, weight)
    assert start.shape == (1,)
    assert start.dtype == np.float64

    def value(constant):
        return loss.value(y, weight, np.full((1, n), constant))

    best = minimize_scalar(value, bounds=(-10, 10), method="bounded", options={"xatol": 1e-9})
    assert value(start[0]) <= best.fun + 1e-12
    if name in {"huber", *SMOOTH}:
        assert math.isclose(start[0], best.x, rel_tol=1e-5, abs_tol=1e-5)


def test_starts_that_are_known():
    y = np.array([1.0, 2.0, 3.0, 10.0])
    assert make("squared_error").start(y, None).tolist() == [4.0]
    assert make("absolute_error").start(y, None).tolist() == [2.5]
    assert make("quantile", alpha=0.75).start(y, None).tolist() == [6.5]
    assert make("poisson").start(y, None).tolist() == [math.log(4.0)]
    y = np.array([0.0, 1.0, 1.0, 1.0])
    assert math.isclose(make("log_loss").start(y, None)[0], math.log(3.0))
    assert math.isclose(make("exponential").start(y, None)[0], math.log(3.0) / 2)
    assert math.isclose(make("log_loss").start(y, np.array([3.0, 1.0, 1.0, 1.0]))[0], 0.0)


def test_many_classes_start_at_their_shares():
    y = np.array([0.0, 1.0, 1.0, 2.0, 2.0, 2.0])
    loss = make_loss("log_loss", n_classes=3)
    start = loss.start(y, None)
    np.testing.assert_allclose(scipy_softmax(start), [1 / 6, 2 / 6, 3 / 6], rtol=1e-14)
    assert abs(start.sum()) < 1e-14
    np.testing.assert_allclose(scipy_softmax(loss.start(y, np.array([6, 3, 3, 2, 2, 2.0]))), [1 / 3] * 3, rtol=1e-14)


def test_starts_are_finite_where_a_class_or_every_count_is_absent():
    assert np.isfinite(make("log_loss").start(np.zeros(3), None)).all()
    assert np.isfinite(make_loss("log_loss", n_classes=4).start(np.zeros(3), None)).all()
    assert np.isfinite(make("poisson").start(np.zeros(3), None)).all()


@pytest.mark.parametrize("size", [1e-150, 1e-9, 1.0, 1e150])
def test_the_start_of_huber_does_not_depend_on_the_unit(size):
    y = np.random.default_rng(9).standard_t(2, 301) * 1.0
    loss = make_loss("huber", alpha=0.6)
    start, delta = make_loss("huber", alpha=0.6).start(y, None)[0], loss.parameter
    found = loss.start(y * size, None)[0]
    assert math.isnan(delta)
    assert math.isclose(found, start * size, rel_tol=1e-7)


def test_delta_of_huber_is_fixed_or_follows_the_rounds():
    rng = np.random.default_rng(10)
    y, raw = rng.normal(size=1001), rng.normal(size=(1, 1001))
    fixed, follower = make_loss("huber", alpha=0.8), make_loss("huber", alpha=0.8, newton=False)
    with pytest.raises(RuntimeError, match="sets delta"):
        fixed.value(y, None, raw)
    for loss in (fixed, follower):
        loss.begin_round(y, None, raw)
    assert math.isclose(follower.parameter, np.quantile(np.abs(y - raw[0]), 0.8, method="inverted_cdf"))
    expected = np.quantile(np.abs(y - np.median(y)), 0.8, method="inverted_cdf")
    assert math.isclose(fixed.parameter, expected)
    for loss in (fixed, follower):
        loss.begin_round(y, None, 0.5 * raw)
    assert math.isclose(fixed.parameter, expected)
    assert math.isclose(follower.parameter, np.quantile(np.abs(y - 0.5 * raw[0]), 0.8, method="inverted_cdf"))
    again = make_loss("huber", alpha=0.8)
    again.start(y, None)
    assert again.parameter == fixed.parameter


def test_delta_of_huber_is_positive():
    loss = make_loss("huber", alpha=0.5)
    loss.start(np.array([0.0] * 9 + [3.0, -2.0]), None)
    assert loss.parameter == 2.0
    assert loss.start(np.zeros(4), None).tolist() == [0.0]
    assert loss.parameter == 1.0


def test_newtons_steps_end():
    unit = row_weights(None, 3)
    y = np.array([-1.0, 0.5, 9.0])

    def steep(constant):  # a full step from 0 goes far beyond: halving finds the way
        return [mean_derivatives(np.arctan(constant - y) ** 3, 3 * np.arctan(constant - y) ** 2 / 50, unit)]

    found = find_constant(steep, np.zeros(1))
    assert abs(steep(found)[0].slope) < 1e-9
    assert find_constant(lambda c: [mean_derivatives(np.ones(3), np.exp(-c) * np.ones(3), unit)], np.zeros(1)) is None
    assert find_constant(lambda c: [mean_derivatives(c - y, 0 * y, unit)], np.zeros(1)) is None
    assert find_constant(lambda c: [mean_derivatives(c - y, np.nan * y, unit)], np.zeros(1)) is None


# --- Links --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("link", LINKS)
def test_one_row_is_answered_as_many_are(link):
    """To the bit: on both sides of 0, at 0, and far from it."""
    n_raw = 1 if LINKS[link][0] == 1 else 3
    exponent = 3 if LINKS[link][1] == 0 else 0
    scores = [-700.0, -1.5, -1e-12, 0.0, 0.25, 1.5, 40.0]
    raw = np.array([np.roll(scores, k) for k in range(n_raw)])
    answers = respond(link, raw, exponent)
    for row, answer in zip(raw.T, answers, strict=True):
        np.testing.assert_array_equal(respond_one(link, row.copy(), exponent), answer)


def test_a_link_that_does_not_exist_fails():
    for ask, raw in ((respond, np.zeros((1, 2))), (respond_one, np.zeros(1))):
        with pytest.raises(ValueError, match="there is no link 'probit': one of identity, "):
            ask("probit", raw)


# --- What estimators ask of a loss --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_losses_say_whether_they_are_for_positive_targets_and_free_of_scale(name):
    y = target(name, 200, np.random.default_rng(0))
    loss = make(name)
    is_refused = False
    try:
        loss.check(-np.abs(y) - 1.0)
    except ValueError:
        is_refused = True
    assert loss.is_positive == (is_refused and name not in OF_CLASSES)
    if name not in OF_CLASSES:
        tags = GradientBoostingRegressor(loss=name).__sklearn_tags__()
        assert tags.target_tags.positive_only == loss.is_positive
        start, twice = make_loss(name).start(y, None), make_loss(name).start(2.0 * y, None)
        assert loss.is_scale_free == (twice == pytest.approx(2.0 * start, rel=1e-12)) == (not loss.is_positive)


# --- Custom losses ------------------------------------------------------------------------------------------


def logistic_gradient(y, raw):
    return expit(raw) - y


def logistic_hessian(y, raw):  # noqa: ARG001
    return expit(raw) * expit(-raw)


def softmax_gradient(y, raw):
    return scipy_softmax(raw, axis=1) - np.eye(raw.shape[1])[y.astype(int)]


def softmax_hessian(y, raw):  # noqa: ARG001
    p = scipy_softmax(raw, axis=1)
    return p * (1 - p)


def test_a_custom_loss_of_two_classes_is_the_built_in_one():
    rng = np.random.default_rng(11)
    y, raw = rng.integers(0, 2, 5000).astype(np.float64), rng.normal(size=(1, 5000))
    weight = rng.uniform(0.5, 2, 5000)
    ours, custom = make("log_loss"), make_loss((logistic_gradient, logistic_hessian), n_classes=2)
    for found, expected in zip(fill(custom, y, raw, weight), fill(ours, y, raw, weight), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_allclose(custom.start(y, weight), ours.start(y, weight), atol=1e-8)
    np.testing.assert_array_equal(custom.respond(raw), ours.respond(raw))
    assert not custom.has_constant_hessian


def test_a_custom_loss_of_many_classes_is_the_built_in_one():
    rng = np.random.default_rng(12)
    y, raw = rng.integers(0, 4, 5000).astype(np.float64), rng.normal(size=(4, 5000))
    ours, custom = make_loss("log_loss", n_classes=4), make_loss([softmax_gradient, softmax_hessian], n_classes=4)
    g, h, _ = fill(custom, y, raw)
    expected_g, expected_h, _ = fill(ours, y, raw)
    np.testing.assert_allclose(g, expected_g, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(h, expected_h / ours.parameter, rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(scipy_softmax(custom.start(y, None)), scipy_softmax(ours.start(y, None)), rtol=1e-7)
    np.testing.assert_array_equal(custom.respond(raw), ours.respond(raw))


def test_a_custom_loss_of_numbers_answers_with_its_scores():
    custom = make_loss((lambda y, raw: raw - y, lambda y, raw: np.ones(len(y))))  # noqa: ARG005
    y = np.array([1.0, 2.0, 6.0])
    np.testing.assert_allclose(custom.start(y, None), [3.0])
    np.testing.assert_allclose(custom.start(y, np.array([1.0, 1.0, 2.0])), [3.75])
    assert custom.respond(np.array([[1.0, -2.0]])).tolist() == [1.0, -2.0]


def test_a_custom_loss_without_a_best_constant_starts_at_zero():
    for gradient, hessian in (
        (np.ones(3), np.ones(3)),  # no slope of 0
        (np.ones(3), np.zeros(3)),
        (np.full(3, np.nan), np.ones(3)),
    ):
        custom = make_loss((lambda y, raw, g=gradient: g, lambda y, raw, h=hessian: h))  # noqa: ARG005
        assert custom.start(np.arange(3.0), None).tolist() == [0.0]


def test_a_custom_loss_of_a_wrong_sign_is_refused():
    custom = make_loss((lambda y, raw: raw - y, lambda y, raw: -np.ones_like(y)))  # noqa: ARG005
    with pytest.raises(ValueError, match="is nowhere above 0"):
        fill(custom, np.array([1.0, 2.0]), np.array([[5.0, 5.0]]))


def test_a_custom_loss_may_write_to_its_arguments():
    def gradient(y, raw):
        raw -= y
        y[:] = np.nan
        return raw

    y, raw = np.array([1.0, 2.0]), np.array([[5.0, 5.0]])
    custom = make_loss((gradient, lambda y, raw: np.array([-1.0, 1.0])))  # noqa: ARG005
    g, h, _ = fill(custom, y, raw)
    assert g.tolist() == [[4.0, 3.0]]
    assert h.tolist() == [[MIN_H, 1.0]]
    assert y.tolist() == [1.0, 2.0]
    assert raw.tolist() == [[5.0, 5.0]]


def test_a_custom_loss_is_checked():
    def ones(y, raw):  # noqa: ARG001
        return np.ones(len(y))

    def column(y, raw):  # noqa: ARG001
        return np.ones((len(y), 1))

    def words(y, raw):  # noqa: ARG001
        return ["a"] * len(y)

    def holes(y, raw):  # noqa: ARG001
        return np.array([0.0, np.inf, 1.0])

    y, raw = np.arange(3.0), np.zeros((1, 3))
    with pytest.raises(ValueError, match=r"loss: column\(y, raw\) has shape \(3, 1\): return .* shape \(3,\)"):
        make_loss((column, ones)).begin_round(y, None, raw)
    with pytest.raises(ValueError, match=r"loss: column\(y, raw\) has shape"):
        make_loss((ones, column)).start(y, None)
    with pytest.raises(ValueError, match=r"words\(y, raw\) has dtype <U1: return real numbers"):
        make_loss((ones, words)).begin_round(y, None, raw)
    with pytest.raises(ValueError, match=r"holes\(y, raw\) is \[inf\] in row 1, where y is 1 and raw \[0.0\]"):
        make_loss((ones, holes)).begin_round(y, None, raw)
    with pytest.raises(ValueError, match=r"ones\(y, raw\) has shape \(3,\): return an array of shape \(3, 3\)"):
        make_loss((ones, ones), n_classes=3).begin_round(y, None, np.zeros((3, 3)))
    with pytest.raises(ValueError, match="need scoring="):
        make_loss((ones, ones)).value(y, None, raw)


def test_a_kept_custom_loss_leaves_its_last_round_behind():
    custom = make_loss((logistic_gradient, logistic_hessian), n_classes=2)
    custom.begin_round(np.zeros(1000), None, np.zeros((1, 1000)))
    again = pickle.loads(pickle.dumps(custom))
    assert isinstance(again, Custom)
    assert len(pickle.dumps(custom)) < 1000
    assert again.respond(np.zeros((1, 1))).tolist() == [[0.5, 0.5]]


# --- What is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "y", "message"),
    [
        ("squared_error", [1.0, np.nan], "y is nan in row 1: loss='squared_error' requires finite numbers"),
        (
            "poisson",
            [1.0, 2.0, -3.5],
            "y is -3.5 in row 2: loss='poisson' requires non-negative y and sum.y. > 0. loss='squared_error' takes",
        ),
        ("tweedie", [-1.0], "y is -1 in row 0: loss='tweedie' requires non-negative y"),
        ("poisson", [0.0, 0.0], "y is 0 in every row: loss='poisson'"),
        ("gamma", [1.0, 0.0], "y is 0 in row 1: loss='gamma' requires strictly positive y. loss='tweedie'"),
        (
            "gamma",
            [1.0, -1.0, 0.0],
            "y is -1 in row 1: loss='gamma' requires strictly positive y. loss='squared_error'",
        ),
        ("gamma", [np.inf], "finite"),
        (
            "poisson",
            [1.0, 2e100],
            r"y is 2e\+100 in row 1: loss='poisson' requires y up to 1e\+100. Divide y by a power",
        ),
        ("tweedie", [0.0, 1e250], r"y is 1e\+250 in row 1: loss='tweedie' requires y up to 1e\+200"),
        ("log_loss", [0.0, 1.0, 2.0], r"y is 2 in row 2: loss='log_loss' requires a class, 0 .. 1"),
        ("exponential", [0.0, 0.5], "y is 0.5 in row 1: loss='exponential' requires a class"),
    ],
)
def test_targets_are_checked(name, y, message):
    with pytest.raises(ValueError, match=message):
        make(name).check(np.array(y))


@pytest.mark.parametrize("name", ALL)
def test_good_targets_pass(name):
    make(name).check(target(name, 100, np.random.default_rng(13)))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"loss": "mse"}, "loss='mse' is not for numbers: one of 'squared_error'"),
        ({"loss": "log_loss"}, "loss='log_loss' is not for numbers"),
        ({"loss": "poisson", "n_classes": 2}, "loss='poisson' is not for 2 classes: one of 'log_loss', 'exponential'"),
        ({"loss": "exponential", "n_classes": 3}, "binary classification problem: y has 3 classes"),
        ({"loss": "huber", "alpha": 1.0}, "alpha=1.0"),
        ({"loss": "quantile", "alpha": 0.0}, "alpha=0.0"),
        ({"loss": "tweedie", "power": 2.0}, "power=2.0: .* 2 is loss='gamma'"),
        ({"loss": (abs,)}, "two functions"),
        ({"loss": ("a", "b")}, "two functions"),
        ({"loss": 3}, "loss=3: give a name"),
    ],
)
def test_losses_that_do_not_exist(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_loss(**arguments)


@pytest.mark.parametrize("name", ["poisson", "gamma", "tweedie", "exponential", "squared_error"])
def test_the_start_beside_an_offset_has_the_least_loss(name):
    rng = np.random.default_rng(3)
    loss, y, offset = make(name), target(name, 60, rng), rng.normal(0.0, 0.5, (1, 60))
    weight = rng.integers(1, 4, 60).astype(np.float64)
    (start,) = find_start(loss, y, weight, offset, compiled())
    least = minimize_scalar(lambda c: loss.value(y, weight, offset + c), bounds=(-5.0, 5.0), method="bounded")
    assert start == pytest.approx(least.x, abs=1e-4)


def test_a_loss_without_a_rule_for_offsets_is_an_error():
    class New(Loss):
        name = "new"

    with pytest.raises(NotImplementedError, match=r"loss='new': .*fit it without init_score"):
        find_start(New(), np.ones(3), None, np.zeros((1, 3)), None)


def test_what_the_engine_reads():
    kinds = {name: (make(name).leaf, make(name).quantile_levels, make(name).n_raw) for name in ALL}
    assert kinds["absolute_error"] == ("quantile", (0.5,), 1)
    assert kinds["quantile"] == ("quantile", (0.9,), 1)
    assert kinds["huber"][0] == "huber"
    assert {kinds[name][0] for name in SMOOTH} == {"newton"}
    assert make_loss("log_loss", n_classes=7).n_raw == 7
    assert make_loss((abs, abs), n_classes=7).n_raw == 7
    assert make_loss((abs, abs), n_classes=2).n_raw == 1
