"""The pictures of a study: the numbers of their tables are those that came in, and all can be drawn."""

from dataclasses import replace
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from spinney.show import charts
from spinney.show.marks import Bars, Guide, Line, Points
from spinney.study.evidence import Confusion, Dependence, Importance, LearningCurve, PruningStep
from spinney.study.held_out import (
    calibration_bins,
    count_confusion,
    measure_coverage,
    measure_residuals,
    separation_curves,
)
from spinney.study.result import MethodResult, Study, TableSummary

CLASSES = np.array(["no", "yes"])
RNG = np.random.default_rng(0)
TRUTH = RNG.integers(0, 2, 300)
SHARE = np.clip(RNG.normal(0.35 + 0.3 * TRUTH, 0.2), 0, 1)
SHARES = np.column_stack((1 - SHARE, SHARE))
SEPARATIONS = separation_curves(CLASSES[TRUTH], SHARES, CLASSES)
CALIBRATIONS = calibration_bins(CLASSES[TRUTH], SHARES, CLASSES)
CONFUSION = count_confusion(CLASSES[TRUTH], CLASSES[(SHARE > 0.5).astype(int)], CLASSES)
Y = RNG.normal(size=300)
RESIDUALS = measure_residuals(Y, Y + RNG.normal(size=300))
COVERAGE = measure_coverage("forest", Y, {0.5: np.tile([-1.0, 1.0], (300, 1)), 0.9: np.tile([-2.0, 2.0], (300, 1))})
GROWTHS = (
    LearningCurve("rf", "random forest", (10, 50), (0.7, 0.8), (0.01, 0.02), (0.1, 0.5)),
    LearningCurve("et", "extra-trees", (10, 50), (0.6, 0.9), (0.01, 0.02), (0.2, 0.4)),
)
IMPORTANCES = (Importance("age", 0.2, None, 0.01, 0.005), Importance("<pay>", 0.8, 0.1, 0.3, None))
NUMBER = Dependence("age", True, (20.0, 40.0, 60.0), (0.1, 0.3, 0.2), ((0.0, 0.5, 0.1),), (5, 9, 1), "yes")
CATEGORY = Dependence("job", False, ("a", "b"), (0.1, 0.3), ((0.0, 0.5), (0.2, 0.4)), (3, 7), None)
STEPS = tuple(
    PruningStep(0.1 * k, n, 0.05 * k, 0.3 - 0.04 * k if n > 1 else 0.4, 0.02) for k, n in enumerate((40, 9, 4, 1))
)


def make_study(*, is_greater_better=True):
    methods = tuple(
        MethodResult(
            key, name, "X", {}, folds=(0, 1), scores=scores, fit_seconds=(1.0, 1.0), predict_seconds=(1.0, 1.0)
        )
        for key, name, scores in (
            ("baseline", "commonest class", (0.5, 0.5)),
            ("cart", "CART", (0.7, 0.8)),
            ("c45", "C4.5", ()),
            ("rf", "random forest", (0.8, 0.9)),
        )
    )
    summary = TableSummary("t", 100, "y", "classification", (("no", 60), ("yes", 40)), (), {})
    return Study(
        summary=summary, metric="accuracy", is_greater_better=is_greater_better, folds="2 folds", n_folds=2,
        train_rows=50, test_rows=50, methods=methods, best="rf", differences=(), recommendation="", notes=(), seed=0,
        is_tuned=False, n_cores=1, versions={}, seconds=1.0,
    )  # fmt: skip


ALL = {
    "scores": charts.scores(make_study()),
    "scores_by_trees": charts.scores_by_trees(GROWTHS, "R²"),
    "seconds_by_trees": charts.seconds_by_trees(GROWTHS),
    "roc": charts.roc(SEPARATIONS),
    "precision_recall": charts.precision_recall(SEPARATIONS),
    "calibration": charts.calibration(CALIBRATIONS),
    "confusion": charts.confusion(CONFUSION),
    "residuals": charts.residuals(RESIDUALS),
    "residual_histogram": charts.residual_histogram(RESIDUALS),
    "coverage": charts.coverage([COVERAGE]),
    "permutation_importances": charts.permutation_importances(IMPORTANCES),
    "impurity_importances": charts.impurity_importances(IMPORTANCES),
    "dependence": charts.dependence(NUMBER, "income"),
    "level_dependence": charts.dependence(CATEGORY, "income"),
    "pruning": charts.pruning(STEPS, 2, 3, "error rate"),
}


@pytest.mark.parametrize("name", ALL)
def test_every_picture_is_drawn_and_told(name):
    chart = ALL[name]
    assert ET.fromstring(chart.to_svg()).tag.endswith("svg")
    table = chart.to_table()
    assert table.rows
    assert all(len(row) == len(table.header) for row in table.rows)
    assert chart.description.endswith(".")
    assert len(chart.to_svg()) < 60_000


@pytest.mark.parametrize("name", ALL)
def test_every_picture_is_drawn_by_matplotlib(name):
    figure = pytest.importorskip("matplotlib.figure", reason="matplotlib is an extra").Figure
    ax = ALL[name].to_matplotlib(figure().add_subplot())
    assert ax.get_title("left") == ALL[name].title


def test_scores_are_in_order_with_their_errors():
    study = make_study()
    table = ALL["scores"].to_table()
    assert [row[0] for row in table.rows] == ["random forest", "CART", "commonest class"]
    error = study.standard_error(study.method("rf"))
    assert [float(cell) for cell in table.rows[0][1:]] == pytest.approx([0.85, 0.85 - error, 0.85 + error], abs=1e-4)
    assert "random forest, 0.850" in ALL["scores"].description
    assert any(isinstance(mark, Guide) and mark.x == 0.5 for mark in ALL["scores"].marks)


def test_a_baseline_that_is_far_off_is_told_in_words():
    study = make_study()
    scores = {"cart": (0.8, 0.81), "rf": (0.82, 0.83), "baseline": (-0.01, 0.0), "c45": ()}
    study = replace(study, methods=tuple(replace(one, scores=scores[one.key]) for one in study.methods))
    chart = charts.scores(study)
    assert chart.y.levels == ("random forest", "CART")
    assert chart.x.label == "accuracy, higher is better (far off: commonest class, -0.005)"
    assert not [mark for mark in chart.marks if isinstance(mark, Guide)]
    alone = charts.scores(replace(study, methods=study.methods[:1]))
    assert alone.y.levels == ("commonest class",)


def test_learning_curves_are_told_by_number_of_trees():
    table = ALL["scores_by_trees"].to_table()
    assert table.rows[1] == ("50", "0.8", "0.78", "0.82", "0.9", "0.88", "0.92")
    assert ALL["seconds_by_trees"].to_table().rows[0] == ("10", "0.1", "0.2")


def test_curves_are_those_of_the_separation():
    (line,) = [mark for mark in ALL["roc"].marks if isinstance(mark, Line)]
    assert tuple(zip(line.x, line.y, strict=True)) == SEPARATIONS[0].roc
    (line,) = [mark for mark in ALL["precision_recall"].marks if isinstance(mark, Line)]
    assert tuple(zip(line.x, line.y, strict=True)) == SEPARATIONS[0].recall
    assert line.is_step
    assert f"{SEPARATIONS[0].roc_auc:.3f}" in ALL["roc"].description


def test_calibration_and_coverage_have_their_intervals():
    for name, one in (("calibration", CALIBRATIONS[0]), ("coverage", COVERAGE)):
        (points,) = [mark for mark in ALL[name].marks if isinstance(mark, Points)]
        assert points.y_ends == tuple(zip(one.low, one.high, strict=True))
    many = charts.calibration(CALIBRATIONS * 5)
    assert all(mark.y_ends is None for mark in many.marks if isinstance(mark, Points))


def test_confusion_of_many_classes_is_folded():
    counts = RNG.integers(0, 9, (30, 30))
    counts[7] += 100
    chart = charts.confusion(Confusion(tuple(f"c{k}" for k in range(30)), tuple(map(tuple, counts.tolist()))))
    table = chart.to_table()
    assert len(table.rows) == charts.MAX_CLASSES
    assert table.rows[-1][0] == table.header[-1] == "19 others"
    assert "c7" in table.header
    assert sum(int(cell) for row in table.rows for cell in row[1:]) == counts.sum()
    assert f"{np.trace(counts)} were predicted correctly" in chart.description
    k = table.header.index("c7")
    assert int(table.rows[k - 1][k]) == counts[7, 7]


def test_residuals_have_the_same_ends_both_ways():
    chart = ALL["residuals"]
    assert (chart.x.lowest, chart.x.highest) == (chart.y.lowest, chart.y.highest)
    assert chart.x.lowest == min(RESIDUALS.predicted + RESIDUALS.actual)
    assert sum(int(row[1]) for row in ALL["residual_histogram"].to_table().rows) == 300


def test_importances_are_in_the_order_of_permutation():
    for name, values in (("permutation_importances", (0.3, 0.01)), ("impurity_importances", (0.8, 0.2))):
        (bars,) = [mark for mark in ALL[name].marks if isinstance(mark, Bars)]
        assert bars.lengths == values
        assert ALL[name].y.levels == ("<pay>", "age")
    assert bars.ends == ((pytest.approx(0.7), pytest.approx(0.9)), None)


def test_dependence_on_numbers_and_levels():
    assert ALL["dependence"].to_table().rows[1] == ("40", "9", "0.3")
    assert ALL["dependence"].y.label == "probability of yes"
    rows = ALL["level_dependence"].to_table().rows
    assert [row[0] for row in rows] == ["a (3)", "b (7)"]  # in the order of the grid
    assert rows[1][:2] == ("b (7)", "0.3")
    assert [float(cell) for cell in rows[1][2:]] == pytest.approx(np.quantile([0.5, 0.4], [0.1, 0.9]))


def test_the_pruning_path_has_its_choice():
    chart = ALL["pruning"]
    assert [mark.name for mark in chart.marks if isinstance(mark, Guide)] == ["chosen: 4 leaves"]
    assert "chose 4 leaves, error rate 0.220 ± 0.020" in chart.description
    assert chart.x.is_log
    bare = charts.pruning([PruningStep(0.0, 3, 0.1, None, None), PruningStep(0.2, 1, 0.4, None, None)], 0, 0, "error")
    assert bare.to_table().rows == (("3", "0.1"), ("1", "0.4"))
