"""Gauss and Legendre's rule against moments that are known exactly."""

import numpy as np
import pytest

from spinney.model.quadrature import legendre_rule


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 8, 25, 64, 400, 2500])
def test_powers_are_integrated_exactly(n):
    rule = legendre_rule(n)
    assert len(rule.point) == len(rule.weight) == n
    assert np.all(np.diff(rule.point) > 0.0)
    np.testing.assert_allclose(rule.point + rule.rest, 1.0, rtol=1e-15)
    for power in {0, 1, 2, n, 2 * n - 1} & set(range(2 * n)):
        for sides in (rule.point, rule.rest):
            assert float((rule.weight * sides**power).sum()) == pytest.approx(1.0 / (power + 1), rel=1e-12)


def test_one_degree_more_is_not_exact():
    rule = legendre_rule(3)
    assert float((rule.weight * rule.point**6).sum()) != pytest.approx(1.0 / 7.0, rel=1e-6)
