"""Scores: those of scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import r2_score

from spinney.study.metrics import METRICS

NONE = np.empty(0)


@pytest.mark.parametrize("scale", [1.0, 1e-200, 1e200])
def test_r2_is_that_of_scikit_learn(scale):
    rng = np.random.default_rng(0)
    for n_rows in (2, 3, 50, 1000):
        y = rng.normal(size=n_rows)
        predicted = y + rng.normal(size=n_rows)
        assert METRICS["r2"].score(y * scale, predicted * scale, NONE) == pytest.approx(r2_score(y, predicted))


def test_r2_of_a_constant_and_of_one_row():
    same = np.full(5, 3.0)
    assert METRICS["r2"].score(same, same, NONE) == r2_score(same, same) == 1.0
    assert METRICS["r2"].score(same, same + 1.0, NONE) == r2_score(same, same + 1.0) == 0.0
    assert np.isnan(METRICS["r2"].score(same[:1], same[:1], NONE))
