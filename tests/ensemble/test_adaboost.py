"""The rounds of AdaBoost: against plain loops after the lectures, its promises, its ends, its exactness."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney._types import CONTROL_SIZE
from spinney.ensemble.adaboost import AdaBoost, RowWeights, ValueTarget, distances, find_alpha, mistakes
from spinney.model.adaboost_bounds import find_normalisers
from spinney.table.fixed_point import fix_weights, value_target

NO_CONTROL = np.zeros(CONTROL_SIZE, np.int64)


def boost(said_by, y, weight=None, *, n_classes=2, learning_rate=1.0, n_rounds=None, choose=None):
    """Boost members that are given: row k of `said_by` is what member k says; each round takes the best of them.

    choose: which member each round takes, if not the best.
    """
    said_by, y = np.asarray(said_by), np.asarray(y)
    rows = RowWeights(fix_weights(None if weight is None else np.asarray(weight, float), len(y)), len(y))

    def fit_member(number, rows, _):
        if choose is not None:
            k = choose[number]
        else:
            k = min(range(len(said_by)), key=lambda k: rows.weights.values[said_by[k] != y].sum())
        return k, said_by[k]

    loop = AdaBoost(
        fit_member,
        lambda said: mistakes(said, y),
        rows,
        n_classes=n_classes,
        inverts=n_classes == 2,
        learning_rate=learning_rate,
    )
    seen = [rows.shares()]
    for number in range(n_rounds or len(choose)):
        loop.step(number, NO_CONTROL)
        seen.append(rows.shares())
        if loop.is_over:
            break
    return loop, seen


def lecture_rounds(said_by, y, weight, chosen):
    """Classes -1 and 1, alpha = 1/2 log((1 - e) / e), weights times exp(-alpha y h): errors, alphas, Z, weights."""
    n = len(y)
    signs = [1 if label else -1 for label in y]
    w = [v / math.fsum(weight) for v in weight]
    errors, alphas, normalisers, seen = [], [], [], [w]
    for k in chosen:
        h = [1 if label else -1 for label in said_by[k]]
        error = math.fsum(w[i] for i in range(n) if h[i] != signs[i])
        alpha = 0.5 * math.log((1 - error) / error)
        w = [w[i] * math.exp(-alpha * signs[i] * h[i]) for i in range(n)]
        z = math.fsum(w)
        w = [v / z for v in w]
        errors.append(error)
        alphas.append(alpha)
        normalisers.append(z)
        seen.append(w)
    return errors, alphas, normalisers, seen


@st.composite
def two_class_cases(draw):
    n = draw(st.integers(3, 25))
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    pool = draw(st.sampled_from([[1], [1, 2, 3], [0.1, 0.7, 2.9]]))
    weight = draw(st.lists(st.sampled_from(pool), min_size=n, max_size=n))
    flips = st.lists(st.booleans(), min_size=n, max_size=n).filter(lambda f: 0 < sum(f) < len(f))
    said = [
        [label ^ flip for label, flip in zip(y, row, strict=True)]
        for row in draw(st.lists(flips, min_size=1, max_size=5))
    ]
    return said, y, weight


@given(two_class_cases())
def test_rounds_are_those_of_the_lectures(case):
    said_by, y, weight = case
    loop, seen = boost(said_by, y, weight, choose=list(range(len(said_by))))
    errors, alphas, normalisers, weights = lecture_rounds(said_by, y, weight, [done.member for done in loop.rounds])
    if any(abs(error - 0.5) < 1e-9 for error in errors):
        return  # chance ends the boosting; see below
    assert len(loop.rounds) == len(said_by)
    np.testing.assert_allclose([done.error for done in loop.rounds], errors, rtol=1e-11)
    np.testing.assert_allclose([done.alpha / 2 for done in loop.rounds], alphas, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(seen, weights, rtol=1e-9)
    found = find_normalisers(np.array(errors), np.array([done.alpha for done in loop.rounds]))
    np.testing.assert_allclose(found, normalisers, rtol=1e-11)


@given(two_class_cases())
def test_the_last_member_is_at_chance_under_the_new_weights(case):
    said_by, y, weight = case
    loop, seen = boost(said_by, y, weight, choose=list(range(len(said_by))))
    for done, shares in zip(loop.rounds, seen[1:], strict=True):
        if done.alpha != 0.0:
            wrong = np.asarray(said_by[done.member]) != np.asarray(y)
            assert abs(shares[wrong].sum() - 0.5) < 1e-12


@given(two_class_cases(), st.sampled_from([1.0, 0.3, 1.7]))
def test_the_product_of_normalisers_is_the_exponential_loss_and_bounds_the_error(case, learning_rate):
    said_by, y, weight = case
    loop, _ = boost(said_by, y, weight, choose=list(range(len(said_by))), learning_rate=learning_rate)
    signs, share = 2.0 * np.asarray(y) - 1.0, np.asarray(weight) / math.fsum(weight)
    raw, product = np.zeros(len(y)), 1.0
    for done in loop.rounds:
        raw += done.alpha / 2 * (2.0 * np.asarray(said_by[done.member]) - 1.0)
        product *= find_normalisers(np.array([done.error]), np.array([done.alpha]))[0]
        assert product == pytest.approx(float((share * np.exp(-signs * raw)).sum()), rel=1e-10)
        assert (share * (signs * raw <= 0.0)).sum() <= product * (1 + 1e-12)


def test_half_the_weight_and_all_of_it_end_up_on_the_same_rows():
    """Both ways to reweight, by exp(-alpha y h) with half of alpha or by exp(alpha) where wrong, scale to the same."""
    y, said = np.array([0, 0, 1, 1, 1]), np.array([0, 1, 1, 1, 0])
    _, seen = boost([said], y, choose=[0])
    error = 0.4
    half = np.exp(np.where(said == y, -1, 1) * 0.5 * math.log((1 - error) / error))
    whole = np.where(said == y, 1.0, (1 - error) / error)
    np.testing.assert_allclose(seen[1], half / half.sum(), rtol=1e-14)
    np.testing.assert_allclose(seen[1], whole / whole.sum(), rtol=1e-14)


# --- the ends -----------------------------------------------------------------------------------------------------


def test_a_perfect_member_outvotes_all_before_it_and_is_the_last():
    y = np.array([0, 0, 1, 1, 1, 0])
    bad = np.array([0, 1, 1, 1, 1, 0])
    loop, _ = boost([bad, y], y, choose=[0, 1, 0])
    assert [done.error for done in loop.rounds] == [1 / 6, 0.0]
    assert loop.rounds[1].alpha == 1.0 + loop.rounds[0].alpha
    first, _ = boost([y], y, choose=[0, 0])
    assert [(done.error, done.alpha) for done in first.rounds] == [(0.0, 1.0)]


def test_a_member_at_chance_says_nothing_and_is_the_last():
    y = np.array([0, 0, 1, 1])
    loop, seen = boost([np.array([0, 1, 0, 1])], y, choose=[0, 0])
    assert [(done.error, done.alpha) for done in loop.rounds] == [(0.5, 0.0)]
    np.testing.assert_array_equal(seen[0], seen[1])
    # the same member again: the new weights were made so that it is at chance
    loop, _ = boost([np.array([0, 0, 1, 0])], y, choose=[0, 0, 0])
    assert [done.alpha for done in loop.rounds] == [pytest.approx(math.log(3)), 0.0]
    assert loop.rounds[1].error == pytest.approx(0.5, abs=1e-15)


def test_a_member_worse_than_chance_is_used_inverted():
    y = np.array([0, 0, 1, 1, 1])
    wrong = np.array([1, 1, 0, 0, 1])
    loop, seen = boost([wrong], y, choose=[0])
    mirrored, same = boost([1 - wrong], y, choose=[0])
    assert loop.rounds[0].error == pytest.approx(0.8)
    assert loop.rounds[0].alpha == pytest.approx(-math.log(4))
    assert loop.rounds[0].alpha == -mirrored.rounds[0].alpha
    np.testing.assert_allclose(seen[1], same[1], rtol=1e-14)
    assert not loop.is_over
    always, _ = boost([1 - y], y, choose=[0, 0])
    assert [(done.error, done.alpha) for done in always.rounds] == [(1.0, -1.0)]


@pytest.mark.parametrize("n_classes", [3, 5, 10])
def test_many_classes_add_a_term_and_end_at_their_chance(n_classes):
    y = np.arange(10 * n_classes) % n_classes
    said = np.where(np.arange(len(y)) < 0.6 * len(y), (y + 1) % n_classes, y)  # wrong more often than not, yet useful
    loop, seen = boost([said], y, n_classes=n_classes, choose=[0])
    assert loop.rounds[0].error == pytest.approx(0.6)
    assert loop.rounds[0].alpha == pytest.approx(math.log(0.4 / 0.6) + math.log(n_classes - 1))
    expected = np.where(said == y, 1.0, 0.4 / 0.6 * (n_classes - 1))
    np.testing.assert_allclose(seen[1], expected / expected.sum(), rtol=1e-13)
    # under the new weights it is at chance: a share of 1 - 1 / n_classes is wrong
    assert abs(seen[1][said != y].sum() - (1 - 1 / n_classes)) < 1e-12
    for bad in (np.zeros_like(y), (y + 1) % n_classes):
        loop, _ = boost([bad], y, n_classes=n_classes, choose=[0, 0])
        assert [done.alpha for done in loop.rounds] == [0.0]
        assert loop.is_over


def test_two_classes_are_samme_with_two_classes():
    assert find_alpha(3, 10, 2) == math.log(7 / 3)
    assert find_alpha(1, 2, 2) == 0.0
    assert find_alpha(2, 3, 3) == 0.0
    assert find_alpha(3, 10, 4) == math.log(7 / 3) + math.log(3)


def test_a_learning_rate_scales_alpha():
    y, said = np.array([0, 0, 1, 1, 1]), np.array([0, 1, 1, 1, 1])
    for rate in (0.1, 2.0, 1e30):
        loop, seen = boost([said], y, choose=[0], learning_rate=rate)
        assert loop.rounds[0].alpha == rate * math.log(4)
        assert np.isfinite(seen[1]).all()
        assert seen[1].sum() == pytest.approx(1.0)
    with pytest.raises(ValueError, match=r"learning_rate=1.5e\+308 makes the weight of member 0 infinite: lower it"):
        boost([said], y, choose=[0], learning_rate=1.5e308)


def test_run_ends_with_the_rounds_the_boosting_or_the_caller():
    y = np.array([0, 0, 1, 1, 1])
    members = [np.array(said) for said in ([1, 0, 1, 1, 1], [0, 1, 1, 1, 1], [0, 0, 0, 1, 1], [0, 0, 1, 1, 1])]

    def make():
        rows = RowWeights(fix_weights(None, 5), 5)
        return AdaBoost(
            lambda number, _, __: (number, members[number]),
            lambda said: mistakes(said, y),
            rows,
            n_classes=2,
            inverts=True,
            learning_rate=1.0,
        )

    for is_short in (True, False):
        assert [done.member for done in make().run(2, is_short=is_short)] == [0, 1]
        assert [done.member for done in make().run(100, is_short=is_short)] == [0, 1, 2, 3]
        assert len(make().run(100, is_enough=lambda done: done.member == 1, is_short=is_short)) == 2

    def fail(*_):
        raise RuntimeError("no member")

    broken = make()
    broken.fit_member = fail
    with pytest.raises(RuntimeError, match="no member"):
        broken.run(3)


# --- exactness ----------------------------------------------------------------------------------------------------


@given(two_class_cases(), st.randoms())
def test_neither_the_order_of_rows_nor_repeating_them_changes_a_bit(case, random):
    said_by, y, _ = case
    said_by, y = np.array(said_by), np.array(y)
    weight = np.array([random.randint(1, 4) for _ in y])
    chosen = list(range(len(said_by)))
    loop, seen = boost(said_by, y, weight, choose=chosen)
    order = np.array(random.sample(range(len(y)), len(y)))
    moved, moved_seen = boost(said_by[:, order], y[order], weight[order], choose=chosen)
    rows = np.repeat(np.arange(len(y)), weight)
    repeated, repeated_seen = boost(said_by[:, rows], y[rows], None, choose=chosen)
    assert loop.rounds == moved.rounds == repeated.rounds
    for a, b, c in zip(seen, moved_seen, repeated_seen, strict=True):
        np.testing.assert_array_equal(a[order], b)
        np.testing.assert_allclose(np.bincount(rows, c), a, rtol=1e-13)
    np.testing.assert_array_equal(loop.rows.weights.values[rows], repeated.rows.weights.values * weight[rows])


@pytest.mark.parametrize(
    "weight", [None, [1, 2, 3, 4], [0.1, 0.2, 0.3, 0.7], [1e300, 3e300, 1e299, 2e300], [5e-324] * 4]
)
def test_weights_keep_their_sum_and_none_vanishes(weight):
    base = fix_weights(None if weight is None else np.array(weight, float), 4)
    rows = RowWeights(base, 4)
    first = rows.weights
    for alpha, losses in ((1.3, [1, 0, 0, 1]), (0.2, [0, 1, 1, 0]), (900.0, [0, 0, 1, 0]), (-3.0, [1, 0, 1, 0])):
        rows.raise_by(alpha, np.array(losses, float))
        weights = rows.weights
        assert (weights.values >= 1).all()
        assert weights.values.sum() == weights.total < 2**62
        a, b = math.frexp(weights.total), math.frexp(first.total)
        ratio = a[0] / b[0] * 2.0 ** (a[1] - b[1] + weights.exponent - first.exponent - weights.bits + first.bits)
        assert ratio == pytest.approx(1.0, rel=1e-12)
        assert rows.shares().sum() == pytest.approx(1.0)


def test_weights_of_rows_come_back_after_they_have_been_next_to_nothing():
    """Factors are kept as logarithms: what was rounded away in a round is there again in a later one."""
    rows = RowWeights(fix_weights(None, 3), 3)
    rows.raise_by(200.0, np.array([1.0, 0.0, 0.0]))
    assert rows.shares()[1] < 1e-17
    rows.raise_by(200.0, np.array([0.0, 1.0, 1.0]))
    np.testing.assert_allclose(rows.shares(), 1 / 3, rtol=1e-12)


# --- numbers ------------------------------------------------------------------------------------------------------


def test_losses_of_numbers():
    y, said = np.array([0.0, 1.0, 2.0, 5.0]), np.array([0.0, 2.0, 0.0, 1.0])
    share = np.array([0.0, 0.25, 0.5, 1.0])
    np.testing.assert_allclose(distances(said, y, "linear"), share)
    np.testing.assert_allclose(distances(said, y, "square"), share**2)
    np.testing.assert_allclose(distances(said, y, "exponential"), 1.0 - np.exp(-share))
    for scale in (1e-300, 1e300):
        np.testing.assert_allclose(distances(said * scale, y * scale, "square"), share**2)
    ends = np.array([1.7e308, -1.7e308])
    np.testing.assert_array_equal(distances(-ends, ends, "linear"), [1.0, 1.0])
    assert not distances(y, y, "exponential").any()


def test_rounds_of_numbers_are_those_of_drucker():
    generator = np.random.default_rng(0)
    y = generator.normal(size=40)
    members = [y + generator.normal(size=40) * 0.4 * generator.random(40) ** 3 for _ in range(4)]
    for loss, rate in itertools.product(("linear", "square", "exponential"), (1.0, 0.5)):
        rows = RowWeights(fix_weights(None, 40), 40)
        loop = AdaBoost(
            lambda number, _, __: (number, members[number]),
            lambda said, loss=loss: distances(said, y, loss),
            rows,
            n_classes=2,
            inverts=False,
            learning_rate=rate,
        )
        w = np.full(40, 1 / 40)
        for number, done in enumerate(loop.run(4, is_short=True)):
            losses = np.abs(members[number] - y)
            losses /= losses.max()
            losses = {"linear": losses, "square": losses**2, "exponential": 1 - np.exp(-losses)}[loss]
            error = float((w * losses).sum())
            beta = error / (1 - error)
            w *= beta ** ((1 - losses) * rate)
            w /= w.sum()
            assert done.error == pytest.approx(error, rel=1e-11)
            assert done.alpha == pytest.approx(rate * math.log(1 / beta), rel=1e-11)
        np.testing.assert_allclose(rows.shares(), w, rtol=1e-10)


def test_numbers_end_at_a_mean_loss_of_a_half():
    y = np.zeros(4)
    loop = AdaBoost(
        lambda *_: (0, np.array([1.0, 1.0, 1.0, 0.0])),
        lambda said: distances(said, y, "linear"),
        RowWeights(fix_weights(None, 4), 4),
        n_classes=2,
        inverts=False,
        learning_rate=1.0,
    )
    assert [(done.error, done.alpha) for done in loop.run(5, is_short=True)] == [(0.75, 0.0)]


@given(st.lists(st.integers(1, 4), min_size=2, max_size=20), st.randoms())
def test_the_target_under_changing_weights_is_that_of_the_weights(weight, random):
    y = np.array([random.gauss(1e6, 1.0) for _ in weight])
    rows = RowWeights(fix_weights(np.array(weight, float), len(y)), len(y))
    target = ValueTarget(y, rows.base, has_square=True)
    rows.raise_by(1.0, np.array([random.random() for _ in weight]))
    found, expected = target.weighted(rows), value_target(y, rows.weights, has_square=True)
    unit = 2.0 ** (rows.weights.bits - found.bits)
    mean = found.values.sum() / rows.weights.total * unit
    exact = (rows.shares() * target.centred).sum()
    assert mean == pytest.approx(exact, rel=1e-9, abs=1e-12)
    square = found.squares.sum() / rows.weights.total * 2.0 ** (rows.weights.bits - found.square_bits)
    assert square == pytest.approx((rows.shares() * target.centred**2).sum(), rel=1e-9)
    np.testing.assert_array_equal(found.truth, expected.truth)
    for values in (found.values, found.squares):
        assert np.abs(values).astype(float).sum() < 2.0**62
    repeated = np.repeat(np.arange(len(y)), weight)
    other = RowWeights(fix_weights(None, len(repeated)), len(repeated))
    other.logs = rows.logs[repeated]
    other.settle()
    again = ValueTarget(y[repeated], other.base, has_square=False).weighted(other)
    assert again.values.sum() == found.values.sum()
