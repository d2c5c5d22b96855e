"""Bounds and margins of AdaBoost against their definitions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney import rounds_to_fit, training_bound
from spinney.model.adaboost_bounds import vote_margins


def test_the_bound_of_two_classes_is_the_product_of_the_lectures():
    errors = [0.3, 3 / 14, 2 / 11]
    factors = [2.0 * math.sqrt(e * (1 - e)) for e in errors]
    np.testing.assert_allclose(training_bound(errors), np.cumprod(factors), rtol=1e-14)
    np.testing.assert_allclose(training_bound(errors).round(4), [0.9165, 0.7521, 0.5802])


@given(st.lists(st.floats(0.01, 0.99), min_size=1, max_size=8))
def test_the_bound_falls_at_least_as_the_edges_say(errors):
    bound = training_bound(errors)
    edges = 0.5 - np.array(errors)
    np.testing.assert_allclose(bound, np.cumprod(np.sqrt(1.0 - 4.0 * edges**2)), rtol=1e-9)
    assert (bound <= np.exp(-2.0 * np.cumsum(edges**2)) * (1 + 1e-12)).all()


@given(st.lists(st.floats(0.01, 0.49), min_size=1, max_size=6), st.floats(-0.5, 0.5))
def test_the_bound_on_margins_is_that_of_schapire(errors, margin):
    """The product of 2 sqrt(e^(1 - margin) (1 - e)^(1 + margin)): theorem 5 of Schapire, Freund, Bartlett and Lee."""
    expected = np.cumprod([2.0 * math.sqrt(e ** (1 - margin) * (1 - e) ** (1 + margin)) for e in errors])
    np.testing.assert_allclose(training_bound(errors, margin=margin), expected, rtol=1e-9)


@pytest.mark.parametrize("errors", [[], [0.2]])
def test_other_classes_and_rates(errors):
    found = training_bound(errors, n_classes=4, learning_rate=0.5)
    expected = []
    for e in errors:
        alpha = 0.5 * (math.log((1 - e) / e) + math.log(3))
        expected.append((1 - e) * math.exp(-alpha / 2) + e * math.exp(alpha / 2))
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("errors", [[1.0], [0.2, math.nan], [[0.2]], [-0.1], 0.3])
def test_errors_that_are_none(errors):
    with pytest.raises(ValueError, match="errors must be a list of numbers from 0 to below 1"):
        training_bound(errors)


def test_nothing_is_wrong_after_a_perfect_member():
    np.testing.assert_allclose(training_bound([0.3, 0.0, 0.2]), [2 * math.sqrt(0.21), 0.0, 0.0])


def test_one_class_has_no_bound():
    with pytest.raises(ValueError, match="n_classes=1 must be at least 2"):
        training_bound([0.3], n_classes=1)


@pytest.mark.parametrize("n_rows", [2, 10, 1000, 10**6])
@pytest.mark.parametrize("edge", [0.01, 0.1, 0.3, 0.49])
def test_rounds_until_no_row_is_wrong(n_rows, edge):
    n_rounds = rounds_to_fit(n_rows, edge)
    bound = training_bound([0.5 - edge] * n_rounds)
    assert bound[-1] < 1 / n_rows
    assert n_rounds == 1 or bound[-2] * (1 + 1e-9) >= 1 / n_rows
    assert n_rounds == math.floor(2 * math.log(n_rows) / math.log(1 / (1 - 4 * edge**2))) + 1


def test_rounds_at_the_ends():
    assert rounds_to_fit(1, 0.1) == 1
    assert rounds_to_fit(10**9, 0.5) == 1
    for edge in (0.0, -0.1, 0.6, math.nan):
        with pytest.raises(ValueError, match="must be above 0 and at most 1/2"):
            rounds_to_fit(10, edge)
    with pytest.raises(ValueError, match="n_rows=0 must be at least 1"):
        rounds_to_fit(0, 0.1)


def test_margins():
    two = np.array([[0.5], [-2.0], [0.0]])
    assert vote_margins(two, 2.0, np.array([1, 1, 0])).tolist() == [0.25, -1.0, 0.0]
    three = np.array([[1.0, 2.0, 1.0], [4.0, 0.0, 0.0], [1.0, 1.5, 1.5]])
    assert vote_margins(three, 4.0, np.array([1, 2, 2])).tolist() == [0.25, -1.0, 0.0]
    assert vote_margins(three * 0.0, 0.0, np.array([1, 2, 2])).tolist() == [0.0, 0.0, 0.0]
