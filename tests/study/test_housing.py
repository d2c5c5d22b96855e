"""The figure of the lectures on California housing: mean R² of five folds, read off it to a thousandth."""

import numpy as np
import pytest
from sklearn.model_selection import KFold

from spinney import GradientBoostingRegressor, RandomForestRegressor, datasets
from spinney.study.clock import Clock
from spinney.study.housing import draw_figure
from spinney.study.housing_setup import XGBOOST
from spinney.study.result import Figure

pytestmark = pytest.mark.compiled(reason="takes minutes interpreted")

R2 = {
    "random forest": (0.808, 0.810, 0.811, 0.811, 0.812, 0.812, 0.812, 0.812, 0.812, 0.812),
    "extra-trees": (0.809, 0.814, 0.816, 0.816, 0.816, 0.816, 0.816, 0.816, 0.816, 0.816),
    "XGBoost's form": (0.801, 0.823, 0.832, 0.837, 0.840, 0.843, 0.844, 0.846, 0.847, 0.848),
    "weak boosting": (0.751, 0.772, 0.782, 0.788, 0.792, 0.795, 0.797, 0.799, 0.801, 0.802),
}
# The first fold at 50 trees, by scikit-learn and XGBoost; one fold of one seed varies more than the mean.
FIRST_FOLD = {"random forest": 0.8019, "extra-trees": 0.7997, "XGBoost's form": 0.7899, "weak boosting": 0.7420}


@pytest.fixture(scope="module")
def first_fold():
    return draw_figure((50,), n_folds=1)


def test_the_first_fold_is_that_of_the_lectures(first_fold):
    found = {curve.name: curve.scores[0][0] for curve in first_fold.curves}
    assert found == pytest.approx(FIRST_FOLD, abs=0.008)


def test_points_are_those_of_fits_by_hand():
    table = datasets.load("california_housing")
    y = table["MedHouseVal"].to_numpy()
    X = np.column_stack([table[name].to_numpy() for name in table.column_names if name != "MedHouseVal"])
    train, test = next(KFold(5, shuffle=True, random_state=42).split(X))
    figure = draw_figure((3, 6), n_folds=1)
    found = {curve.name: curve.scores[0] for curve in figure.curves}
    forests = [RandomForestRegressor(n_estimators=3, random_state=seed).fit(X[train], y[train]) for seed in range(2)]
    answers = [forest.predict(X[test]) for forest in forests]

    def r2(said):
        return 1.0 - np.sum((y[test] - said) ** 2) / np.sum((y[test] - y[test].mean()) ** 2)

    assert found["random forest"] == pytest.approx([np.mean([r2(one) for one in answers]), r2(sum(answers) / 2)])
    boosted = [GradientBoostingRegressor(**XGBOOST, n_estimators=n).fit(X[train], y[train]) for n in (3, 6)]
    assert found["XGBoost's form"] == pytest.approx([r2(model.predict(X[test])) for model in boosted])
    for curve in figure.curves:
        assert curve.seconds[0][1] > curve.seconds[0][0] > 0


def test_a_figure_is_the_same_after_json(first_fold):
    assert Figure.from_json(first_fold.to_json()) == first_fold
    with pytest.raises(ValueError, match="not the JSON of a figure"):
        Figure.from_json("{}")


def test_without_time_nothing_is_drawn():
    figure = draw_figure((2,), n_folds=1, clock=Clock(1e-9))
    assert (figure.is_partial, figure.stopped) == (True, "budget")
    assert all(curve.scores == () for curve in figure.curves)


@pytest.mark.slow
def test_every_point_of_the_figure():
    figure = draw_figure()
    for curve in figure.curves:
        assert np.mean(curve.scores, axis=0) == pytest.approx(R2[curve.name], abs=0.003), curve.name
    forest, extra, boosting, _ = (np.mean(curve.scores, axis=0) for curve in figure.curves)
    assert forest[-1] - forest[3] < 0.002  # forests plateau early
    assert extra[-1] - extra[3] < 0.002
    assert boosting[-1] - boosting[3] > 0.005  # boosting goes on
