"""Pictures of fitted models: their numbers are scikit-learn's, or counted by hand; what cannot be drawn says so."""

import doctest
import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    brier_score_loss,
    confusion_matrix,
    log_loss,
    mean_absolute_error,
    roc_auc_score,
    root_mean_squared_error,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from spinney import (
    AdaBoostClassifier,
    CARTClassifier,
    CARTRegressor,
    GradientBoostingClassifier,
    RandomForestClassifier,
    RandomForestRegressor,
    plot,
)
from spinney.show.marks import Bars, Line, Points, RowStrip

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
NUMBERS = X[:, 0] + np.sin(2 * X[:, 1]) + RNG.normal(0.0, 0.3, 400)
TWO = np.where(NUMBERS > 0.3, "high", "low")
THREE = np.digitize(NUMBERS, [-0.5, 0.8])
TRAIN, TEST = slice(0, 250), slice(250, 400)


@pytest.fixture(scope="module")
def forest():
    return RandomForestClassifier(n_estimators=20, min_samples_leaf=3, oob_score=True, random_state=0).fit(
        X[TRAIN], TWO[TRAIN]
    )


@pytest.fixture(scope="module")
def regressor():
    return RandomForestRegressor(n_estimators=20, oob_score=True, random_state=0).fit(X[TRAIN], NUMBERS[TRAIN])


def numbers_in(text):
    return [float(one) for one in re.findall(r"\d+\.\d+", text)]


def marks_of(chart, kind):
    return [mark for mark in chart.marks if isinstance(mark, kind)]


@pytest.mark.compiled(reason="takes minutes interpreted")
def test_examples_are_right():
    failed, tried = doctest.testmod(plot)
    assert tried > 30
    assert failed == 0


def test_curves_of_classes_are_scikit_learns(forest):
    is_low, share = TWO[TEST] == "low", forest.predict_proba(X[TEST])[:, 1]
    said = {
        plot.roc: roc_auc_score(is_low, share),
        plot.precision_recall: average_precision_score(is_low, share),
        plot.calibration: brier_score_loss(is_low, share),
    }
    for draw, expected in said.items():
        chart = draw(forest, X[TEST], TWO[TEST])
        assert "low" in chart.description
        assert round(expected, 3) in numbers_in(chart.description)


def test_models_of_scikit_learn_are_drawn_too():
    model = DecisionTreeClassifier(max_depth=3).fit(X[TRAIN], TWO[TRAIN])
    area = roc_auc_score(TWO[TEST] == "low", model.predict_proba(X[TEST])[:, 1])
    assert f"{area:.3f}" in plot.roc(model, X[TEST], TWO[TEST]).description
    assert (
        sum(int(cell) for row in plot.confusion(model, X[TEST], TWO[TEST]).to_table().rows for cell in row[1:]) == 150
    )
    assert (
        "150 held-out rows"
        in plot.residuals(DecisionTreeRegressor().fit(X, NUMBERS), X[TEST], NUMBERS[TEST]).description
    )


def test_each_of_three_classes_has_a_curve():
    model = GradientBoostingClassifier(n_estimators=10, random_state=0).fit(X[TRAIN], THREE[TRAIN])
    chart = plot.roc(model, X[TEST], THREE[TEST])
    shares = model.predict_proba(X[TEST])
    areas = [roc_auc_score(THREE[TEST] == k, shares[:, k]) for k in range(3)]
    assert [mark.name for mark in marks_of(chart, Line)] == [f"{k}, area {areas[k]:.3f}" for k in range(3)]


def test_answers_by_true_class(forest):
    table = plot.confusion(forest, X[TEST], pd.Series(TWO[TEST])).to_table()
    counts = confusion_matrix(TWO[TEST], forest.predict(X[TEST]))
    assert [[int(cell) for cell in row[1:]] for row in table.rows] == counts.tolist()


def test_residuals_are_those_of_the_answers(regressor):
    said = regressor.predict(X[TEST])
    chart = plot.residuals(regressor, X[TEST], NUMBERS[TEST])
    (points,) = marks_of(chart, Points)
    assert sorted(zip(points.x, points.y, strict=True)) == sorted(zip(said, NUMBERS[TEST], strict=True))
    errors = [round(measure(NUMBERS[TEST], said), 3) for measure in (root_mean_squared_error, mean_absolute_error)]
    for kind in ("points", "histogram"):
        text = plot.residuals(regressor, X[TEST], NUMBERS[TEST], kind=kind).description
        assert set(errors) <= set(numbers_in(text))


def test_coverage_is_counted(regressor, forest):
    chart = plot.coverage(regressor, X[TEST], NUMBERS[TEST], levels=[0.9, 0.5])
    (points,) = marks_of(chart, Points)
    assert points.x == (0.5, 0.9)
    for level, share in zip(points.x, points.y, strict=True):
        low, high = regressor.predict_interval(X[TEST], level).T
        assert share == np.mean((low <= NUMBERS[TEST]) & (NUMBERS[TEST] <= high))
    (points,) = marks_of(plot.coverage(forest, X[TEST], TWO[TEST], levels=[0.8]), Points)
    sets = forest.predict_set(X[TEST], 0.8)
    assert points.y == (np.mean(sets[np.arange(150), np.searchsorted(forest.classes_, TWO[TEST])]),)


def test_importances_are_the_models_own(regressor):
    chart = plot.importances(regressor, X[TRAIN], NUMBERS[TRAIN])
    table = regressor.importance("permutation", X[TRAIN], NUMBERS[TRAIN]).sorted()
    (bars,) = marks_of(chart, Bars)
    assert chart.y.levels == table.feature
    assert bars.lengths == tuple(table.importance)
    assert [(high - low) / 2 for low, high in bars.ends] == pytest.approx(table.std_error)
    (bars,) = marks_of(plot.importances(regressor), Bars)
    assert bars.lengths == pytest.approx(sorted(regressor.feature_importances_, reverse=True))
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    tree = CARTRegressor(max_depth=3).fit(frame, NUMBERS)
    chart = plot.importances(tree)
    assert chart.y.levels == tuple(np.array(["a", "b", "c"])[np.argsort(-tree.feature_importances_)])
    assert CARTRegressor(max_depth=1).fit(X, NUMBERS).feature_importances_.max() == 1.0
    assert plot.importances(CARTRegressor(max_depth=1).fit(X, NUMBERS)).y.levels[0] == "x0"


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, pl.DataFrame, pa.table, list])
def test_dependence_is_the_mean_answer_with_the_column_set(kind):
    columns = {"a": X[:200, 0], "b": X[:200, 1].round(1)}
    values = np.column_stack(list(columns.values()))
    rows = kind(values.tolist() if kind is list else columns if kind is not np.asarray else values)
    model = CARTRegressor(max_depth=4).fit(rows, NUMBERS[:200])
    chart = plot.dependence(model, rows, 1)
    (mean,) = [mark for mark in marks_of(chart, Line) if mark.name == "mean"]
    (counts,) = marks_of(chart, RowStrip)
    assert sum(counts.counts) == 200
    assert set(mean.x) <= set(columns["b"])
    bare = CARTRegressor(max_depth=4).fit(values, NUMBERS[:200])
    for x, y in zip(mean.x, mean.y, strict=True):
        changed = values.copy()
        changed[:, 1] = x
        assert bare.predict(changed).mean() == pytest.approx(y)
    assert chart.title == ("Dependence on b" if kind not in {np.asarray, list} else "Dependence on x1")


def test_dependence_on_levels_and_classes():
    frame = pd.DataFrame({"size": X[:, 0], "job": pd.Categorical(np.array(["ann", "bob", "cy"])[THREE])})
    model = CARTClassifier(max_depth=3).fit(frame, THREE)
    chart = plot.dependence(model, frame, "job")
    commonest = np.bincount(model.predict(frame)).argmax()
    assert chart.x.label == f"probability of {commonest}"
    assert sorted(level.partition(" ")[0] for level in chart.y.levels) == ["ann", "bob", "cy"]
    assert plot.dependence(model, frame, "job", label=2).x.label == "probability of 2"
    two = CARTClassifier(max_depth=3).fit(X, TWO)
    assert plot.dependence(two, X, 0).y.label == "probability of low"


def test_growth_is_that_of_smaller_ensembles(forest):
    chart = plot.growth(forest, X[TEST], TWO[TEST], metric="log_loss")
    (points,) = marks_of(chart, Points)
    assert points.x[-1] == 20
    for n, score in zip(points.x, points.y, strict=True):
        small = RandomForestClassifier(n_estimators=int(n), min_samples_leaf=3, random_state=0)
        shares = small.fit(X[TRAIN], TWO[TRAIN]).predict_proba(X[TEST])
        assert score == pytest.approx(log_loss(TWO[TEST], shares))
    boosted = AdaBoostClassifier(n_estimators=12).fit(X[TRAIN], TWO[TRAIN])
    (points,) = marks_of(plot.growth(boosted, X[TEST].tolist(), TWO[TEST]), Points)
    stages = [accuracy_score(TWO[TEST], said) for said in boosted.staged_predict(X[TEST])]
    assert points.y == tuple(stages[int(n) - 1] for n in points.x)
    assert not any(points.y_ends)


def test_the_pruning_path_is_scikit_learns():
    chart = plot.pruning(CARTClassifier(), X, TWO)
    lines = {mark.name: mark for mark in marks_of(chart, Line)}
    assert set(lines) == {"on the training rows", "cross-validated"}
    alphas = DecisionTreeClassifier(random_state=0).cost_complexity_pruning_path(X, TWO).ccp_alphas
    peers = [DecisionTreeClassifier(ccp_alpha=alpha + 1e-9, random_state=0).fit(X, TWO) for alpha in alphas[-4:]]
    errors = {peer.get_n_leaves(): 1 - peer.score(X, TWO) for peer in peers}
    own = dict(zip(lines["on the training rows"].x, lines["on the training rows"].y, strict=True))
    assert {n: own[n] for n in errors} == pytest.approx(errors)
    assert len(errors) == 4
    assert min(own) == 1


def test_what_cannot_be_drawn_says_so(forest, regressor):
    x, y = X[TEST], TWO[TEST]
    bad = [
        (lambda: plot.roc(regressor, x, y), TypeError, "predicts numbers: see residuals"),
        (lambda: plot.roc(forest, x, np.repeat("low", 150)), ValueError, "one class only"),
        (lambda: plot.roc(forest, x, np.repeat(["low", "odd"], 75)), ValueError, "does not know: 'odd'"),
        (lambda: plot.confusion(forest, x, y[:-1]), ValueError, "inconsistent numbers of samples"),
        (lambda: plot.confusion(forest, x[:0], y[:0]), ValueError, "no rows"),
        (lambda: plot.confusion(CARTClassifier(), x, y), ValueError, "not fitted"),
        (lambda: plot.residuals(forest, x, y), TypeError, "predicts classes: see confusion"),
        (lambda: plot.residuals(regressor, x, NUMBERS[TEST], kind="bars"), ValueError, "'points' or 'histogram'"),
        (lambda: plot.coverage(CARTRegressor().fit(X, NUMBERS), x, NUMBERS[TEST]), TypeError, "use a forest"),
        (lambda: plot.importances(regressor, X[TRAIN]), ValueError, "both X and y"),
        (lambda: plot.importances(CARTRegressor().fit(X, NUMBERS), X, NUMBERS), TypeError, "forests do: leave"),
        (lambda: plot.dependence(forest, x, "age"), ValueError, "'age' is not a column of X: it has x0, x1, x2"),
        (lambda: plot.dependence(forest, x, 3), ValueError, "3 is not a column"),
        (lambda: plot.dependence(forest, x, 0, label="odd"), ValueError, "'odd' is not a class"),
        (lambda: plot.dependence(forest, x[0], 0), ValueError, "rows and columns"),
        (lambda: plot.growth(CARTClassifier().fit(X, TWO), x, y), TypeError, "no trees to count"),
        (lambda: plot.growth(RandomForestRegressor(), x, y), ValueError, "not fitted"),
        (lambda: plot.residuals(regressor, x, y), ValueError, "y is to hold numbers"),
        (lambda: plot.residuals(regressor, x, np.r_[0.0, np.full(149, np.nan)]), ValueError, "first in row 1"),
        (lambda: plot.dependence(forest, np.where([[1, 1, 0]], x, np.nan), 2), ValueError, "no values"),
        (lambda: plot.growth(forest, x, y, metric="r2"), ValueError, "metric 'r2'"),
        (lambda: plot.pruning(forest, X, TWO), TypeError, "not of RandomForestClassifier"),
    ]  # fmt: skip
    for draw, kind, words in bad:
        with pytest.raises(kind, match=words):
            draw()


@pytest.mark.slow
@pytest.mark.compiled(reason="takes minutes interpreted")
def test_the_page_on_pictures_runs_with_matplotlib(monkeypatch, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is an extra").use("agg")
    page = (Path(__file__).parents[1] / "docs" / "plots.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    names = {}
    for code in re.findall(r"```(?:python|py)\n(.*?)```", page, flags=re.DOTALL):
        exec(code, names)
    assert {path.name for path in tmp_path.iterdir()} == {"roc.svg", "dependence.svg", "side_by_side.png"}
