"""Pictures of SHAP values show the numbers of the table."""

import numpy as np
import pytest

from spinney import CARTClassifier, CARTRegressor, plot
from spinney.show.marks import Bars, Guide, Points

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
NUMBERS = X[:, 0] + (X[:, 1] > 0)


@pytest.fixture(scope="module")
def found():
    return CARTRegressor(max_depth=4).fit(X, NUMBERS).shap_values(X)


def points_of(chart):
    return [mark for mark in chart.marks if isinstance(mark, Points)]


def test_bars_are_mean_sizes(found):
    chart = plot.shap(found, "bar")
    size = np.abs(found.values).mean(axis=0)
    order = np.argsort(-size)
    (bars,) = [mark for mark in chart.marks if isinstance(mark, Bars)]
    assert bars.lengths == tuple(size[order])
    assert chart.y.levels == tuple(f"x{j}" for j in order)
    assert chart.to_svg().startswith("<svg")


def test_a_swarm_has_a_point_for_each_row_and_column(found):
    chart = plot.shap(found)
    x = sorted(value for mark in points_of(chart) for value in mark.x)
    assert x == sorted(found.values.reshape(-1).tolist())
    order = np.argsort(-np.abs(found.values).mean(axis=0))
    for mark, (low, high) in zip(points_of(chart), [(0, 1 / 3), (1 / 3, 2 / 3), (2 / 3, 1)], strict=True):
        top = [value for value, place in zip(mark.x, mark.y, strict=True) if round(place) == 0]
        ranks = np.argsort(np.argsort(X[:, order[0]]))
        mine = [
            value for value, rank in zip(found.values[:, order[0]], ranks, strict=True) if low * 60 <= rank < high * 60
        ]
        assert sorted(top) == pytest.approx(sorted(mine))


def test_a_waterfall_goes_from_the_base_to_the_answer(found):
    chart = plot.shap(found, "waterfall", row=7)
    guides = [mark.x for mark in chart.marks if isinstance(mark, Guide)]
    answer = found.base + found.values[7].sum()
    assert guides == pytest.approx([found.base, answer])
    spans = [high - low for mark in points_of(chart) for low, high in mark.x_ends]
    assert sorted(spans) == pytest.approx(sorted(abs(v) for v in found.values[7] if v != 0.0))


def test_a_dependence_is_value_against_shap_value(found):
    chart = plot.shap(found, "dependence", feature="x1")
    (points,) = points_of(chart)
    assert points.x == tuple(X[:, 1])
    assert points.y == tuple(found.values[:, 1])
    assert plot.shap(found, "dependence").title == "What x0 adds"


def test_categories_and_missing_values_are_drawn():
    table = np.column_stack([RNG.integers(0, 3, 60), X[:, 0]])
    table[3, 1] = np.nan
    model = CARTClassifier(categorical_features=[0], max_depth=3).fit(table, NUMBERS > 0.5)
    found = model.shap_values(table)
    levels = plot.shap(found, "dependence", feature=0, output=True)
    assert set(levels.y.levels) == {"0.0", "1.0", "2.0"} or set(levels.y.levels) == {"0", "1", "2"}
    assert "1 rows without one" in plot.shap(found, "dependence", feature=1).description
    assert any(mark.name == "categories, missing" for mark in points_of(plot.shap(found)))
    assert plot.shap(found, "bar").to_svg()


def test_what_cannot_be_drawn_says_so(found):
    with pytest.raises(ValueError, match="kind='pie'"):
        plot.shap(found, "pie")
    with pytest.raises(ValueError, match="row=60"):
        plot.shap(found, "waterfall", row=60)
    with pytest.raises(ValueError, match="'y' is not a column"):
        plot.shap(found, "dependence", feature="y")
    with pytest.raises(ValueError, match="no rows"):
        plot.shap(found.take([]))
    three = CARTClassifier().fit(X, np.arange(60) % 3).shap_values(X)
    with pytest.raises(ValueError, match="give output, one of 0, 1, 2"):
        plot.shap(three)
