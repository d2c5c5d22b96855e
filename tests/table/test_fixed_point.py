"""Fixed point: no sum overflows, none depends on the order of rows, and little is lost against float64."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fast
from spinney._types import SUM_BITS
from spinney.estimators.cart import CARTClassifier, CARTRegressor
from spinney.table.fixed_point import class_target, fix_weights, quantise, value_target, weighted_sum

LIMIT = 2**SUM_BITS

magnitudes = st.floats(-300, 300).map(lambda power: 10.0**power)
weight_lists = st.lists(magnitudes, min_size=1, max_size=30)
signed = st.builds(lambda sign, size: sign * size, st.sampled_from([-1, 0, 1]), magnitudes)
target_lists = st.lists(signed, min_size=1, max_size=30)


def exact_sum(values):
    """The sum of an integer array without any limit of width."""
    return sum(int(value) for value in values)


def magnitude(values):
    return sum(abs(int(value)) for value in values)


# ------------------------------------------------------------------------------------------------ no overflow


@given(weight_lists)
def test_weights_never_overflow(weights):
    fixed = fix_weights(np.array(weights), len(weights))
    assert fixed.values.min() >= 1
    assert fixed.total == (len(weights) if fixed.is_unit else exact_sum(fixed.values)) < LIMIT


@given(st.data(), target_lists, st.booleans(), st.booleans())
def test_targets_never_overflow(data, y, has_weights, has_square):
    weights = data.draw(st.lists(magnitudes, min_size=len(y), max_size=len(y))) if has_weights else None
    fixed = fix_weights(None if weights is None else np.array(weights), len(y))
    target = value_target(np.array(y), fixed, has_square=has_square)
    assert magnitude(target.values) < LIMIT
    assert magnitude(target.squares) < LIMIT
    assert np.isfinite(target.truth).all()
    assert np.abs(target.truth).max() <= 2.0


@pytest.mark.parametrize("n_rows", [1, 1000, 1_000_000])
@pytest.mark.parametrize("scale", [1e300, 1.0, 1e-300, 5e-324])
def test_many_extreme_rows_do_not_overflow(n_rows, scale):
    signs = np.where(np.arange(n_rows) % 3 == 0, -1.0, 1.0)
    fixed = fix_weights(np.full(n_rows, 0.7), n_rows)
    target = value_target(signs * scale, fixed, has_square=True)
    assert fixed.total < LIMIT
    # Python integers would be slow here; float64 is exact enough to tell 2**62 from 2**63
    assert np.abs(target.values).astype(float).sum() < LIMIT * (1 + 1e-9)
    assert np.abs(target.squares).astype(float).sum() < LIMIT * (1 + 1e-9)


def test_one_outlier_does_not_drown_the_rest():
    """The scale comes from the sum of magnitudes: with one outlier the others keep some thirty bits."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=1000)
    y[0] = 1e6
    target = value_target(y, fix_weights(None, 1000), has_square=False)
    assert len(np.unique(target.values)) == 1000


@pytest.mark.parametrize("scale", [1e300, 1e-300, 2.0**1000, 2.0**-1060])
def test_trees_of_extreme_targets(scale):
    X = np.arange(6.0).reshape(-1, 1)
    y = np.array([1, 1, 1, 4, 4, 4.5]) * scale
    model = CARTRegressor(max_depth=1).fit(X, y)
    model.tree_.check()
    assert model.tree_.arrays.threshold[0] == 2.5
    np.testing.assert_allclose(model.predict([[0], [5]]), np.array([1, 12.5 / 3]) * scale, rtol=1e-12)
    assert np.isfinite(model.tree_.values()).all()


@pytest.mark.parametrize("scale", [1e300, 1e-300, 2.0**1000, 5e-324])
def test_trees_of_extreme_weights(scale):
    """Only ratios of weights matter."""
    X, y = np.arange(6.0).reshape(-1, 1), [0, 0, 1, 1, 2, 2]
    model = CARTClassifier().fit(X, y, sample_weight=np.full(6, scale))
    model.tree_.check()
    assert model.predict(X).tolist() == y
    assert model.get_n_leaves() == 3


def test_weights_of_very_different_size():
    X, y = np.arange(4.0).reshape(-1, 1), [0, 1, 0, 1]
    model = CARTClassifier().fit(X, y, sample_weight=[1e300, 1e-300, 1.0, 1e10])
    model.tree_.check()
    assert model.predict(X).tolist() == y


# --------------------------------------------------------------------------------------------- close to exact


def exact_mean(y, weights):
    weights = [Fraction(weight) for weight in weights]
    total = sum((weight * Fraction(value) for weight, value in zip(weights, y, strict=True)), Fraction(0))
    return total / sum(weights)


@given(
    st.lists(st.floats(-1e3, 1e3).map(lambda v: round(v, 6)), min_size=2, max_size=50),
    st.sampled_from([None, "whole", "decimal"]),
)
def test_sums_agree_with_exact_arithmetic(y, kind):
    rng = np.random.default_rng(len(y))
    weights = {
        None: np.ones(len(y)),
        "whole": rng.integers(1, 9, len(y)).astype(float),
        "decimal": rng.random(len(y)) + 0.01,
    }[kind]
    fixed = fix_weights(weights, len(y))
    X = np.zeros((len(y), 1))
    tree = CARTRegressor().fit(X, y, sample_weight=weights).tree_.arrays
    mean = exact_mean(y, weights)
    scale = max(map(abs, y))
    assert float(tree.values()[0]) == pytest.approx(float(mean), rel=1e-12, abs=1e-12 * scale)
    spread = exact_mean([(Fraction(value) - mean) ** 2 for value in y], weights)
    assert fast.impurity(tree)[0] == pytest.approx(float(spread), rel=1e-12, abs=1e-12 * scale**2)
    assert float(tree.weight[0]) == pytest.approx(float(sum(map(Fraction, weights))), rel=1e-12)
    assert fixed.is_whole == (kind != "decimal" or bool(np.all(weights == np.floor(weights))))


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=60))
def test_weighted_sum_is_a_sum(x):
    fixed = fix_weights(None, len(x))
    assert weighted_sum(np.array(x), fixed) == pytest.approx(math.fsum(x), rel=1e-12, abs=1e-12)


def test_a_large_table_agrees_with_float64():
    rng = np.random.default_rng(0)
    y, weights = rng.normal(size=100_000), rng.random(100_000) + 0.1
    tree = CARTRegressor(max_depth=1).fit(np.zeros((100_000, 1)), y, sample_weight=weights).tree_.arrays
    mean = np.average(y, weights=weights)
    assert tree.values()[0] == pytest.approx(mean, rel=1e-12, abs=1e-12)
    assert fast.impurity(tree)[0] == pytest.approx(np.average((y - mean) ** 2, weights=weights), rel=1e-12)


# ---------------------------------------------------------------------------------------------- order of rows


@given(st.integers(0, 10**6), st.integers(2, 60), st.sampled_from([0, 5, 200]))
def test_the_order_of_rows_does_not_matter(seed, n_rows, most_digits):
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n_rows) * 10.0 ** rng.integers(-most_digits, most_digits + 1, n_rows)
    weights = rng.random(n_rows) + 1e-3
    order = rng.permutation(n_rows)
    fixed, shuffled = fix_weights(weights, n_rows), fix_weights(weights[order], n_rows)
    assert (fixed.bits, fixed.total) == (shuffled.bits, shuffled.total)
    np.testing.assert_array_equal(fixed.values[order], shuffled.values)
    one, two = value_target(y, fixed, has_square=True), value_target(y[order], shuffled, has_square=True)
    np.testing.assert_array_equal(one.values[order], two.values)
    np.testing.assert_array_equal(one.squares[order], two.squares)
    np.testing.assert_array_equal(one.truth[order], two.truth)
    assert one[4:] == two[4:]  # every scale


@given(st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(1, 4)), min_size=1, max_size=30))
def test_a_repeated_row_is_a_whole_weight(rows):
    y, counts = (np.array(column, float) for column in zip(*rows, strict=True))
    repeated = np.repeat(y, counts.astype(int))
    by_weight = value_target(y, fix_weights(counts, len(y)), has_square=True)
    by_rows = value_target(repeated, fix_weights(None, len(repeated)), has_square=True)
    assert (by_weight.bits, by_weight.centre) == (by_rows.bits, by_rows.centre)
    assert exact_sum(by_weight.values) == exact_sum(by_rows.values)
    assert exact_sum(by_weight.squares) == exact_sum(by_rows.squares)


# ---------------------------------------------------------------------------------------------- large offsets


@pytest.mark.parametrize("offset", [1e9, -1e12, 2.0**50])
@pytest.mark.parametrize("criterion", ["squared_error", "sdr"])
def test_small_differences_on_a_large_offset_are_fitted(offset, criterion):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    signal = np.round(4 * (X[:, 0] > 0.3) + 2 * (X[:, 1] > 0) + rng.normal(size=200) / 4, 2)
    plain = CARTRegressor(criterion=criterion, max_depth=2).fit(X, np.round(signal * 4) / 4)
    moved = CARTRegressor(criterion=criterion, max_depth=2).fit(X, np.round(signal * 4) / 4 + offset)
    moved.tree_.check()
    np.testing.assert_array_equal(moved.tree_.test, plain.tree_.test)
    np.testing.assert_array_equal(moved.apply(X), plain.apply(X))
    np.testing.assert_allclose(moved.predict(X) - offset, plain.predict(X), atol=4 * math.ulp(abs(offset)))
    np.testing.assert_allclose(fast.impurity(moved.tree_.arrays), fast.impurity(plain.tree_.arrays), rtol=1e-9)


def test_min_target_std_on_a_large_offset():
    X, y = np.arange(6.0).reshape(-1, 1), np.array([1.0, 1.25, 1.5, 5.0, 5.25, 5.5]) + 1e9
    assert CARTRegressor(min_target_std=0.3).fit(X, y).get_n_leaves() == 2


def test_equal_targets_give_their_own_value():
    """A mean of equal numbers is that number, to the last bit."""
    for value in (0.1, 1e9 + 0.1, -1e-300, 5.00001, 1e300):
        model = CARTRegressor().fit(np.arange(7.0).reshape(-1, 1), np.full(7, value), sample_weight=np.full(7, 0.1))
        assert model.get_n_leaves() == 1
        assert model.predict([[3.0]])[0] == value


@pytest.mark.parametrize("n_classes", [1, 2, 3, 5])
def test_classes_sum_to_their_weights(n_classes):
    rng = np.random.default_rng(n_classes)
    y = rng.integers(0, n_classes, 50)
    weights = rng.random(50) + 0.1
    fixed = fix_weights(weights, 50)
    target = class_target(y, n_classes, fixed)
    assert target.truth.tolist() == y.tolist()
    if n_classes <= 2:
        assert exact_sum(target.values) == exact_sum(fixed.values[y == 1])
    shares = CARTClassifier().fit(np.zeros((50, 1)), y, sample_weight=weights).predict_proba([[0.0]])[0]
    expected = np.bincount(y, weights, n_classes) / weights.sum()
    np.testing.assert_allclose(shares, expected, rtol=1e-12)


@pytest.mark.parametrize("bits", [0, 3, -2, 1030])
def test_numbers_are_rounded_to_the_nearest_unit(bits):
    units = np.array([0.0, 0.4, 0.6, -0.4, -0.6, 7.75, -7.75])
    found = quantise(np.ldexp(units, -bits), bits)
    assert found.tolist() == [0, 0, 1, 0, -1, 8, -8]
