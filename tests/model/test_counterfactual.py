"""Counterfactuals: exact on one tree against all rows of a grid, never better than the truth on ensembles."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import spinney
from spinney.model.counterfactual import counterfactual

RNG = np.random.default_rng(3)
X = np.column_stack([RNG.integers(0, 6, 200), RNG.integers(0, 6, 200), RNG.integers(0, 4, 200)]).astype(float)
SCORE = X[:, 0] + X[:, 1] * (X[:, 2] % 2) + RNG.normal(0.0, 0.3, 200)


PARTS = X + [0.25, 0.25, 0.0]  # noqa: RUF005  (NumPy's sum)


def smallest_by_trial(row, goal, table, cuts, levels=(2,)):
    """The least (columns, size) over whole numbers, or the nearest value of every cell of a grid, tried one by one."""
    spread, grid = table.std(axis=0), []
    for j, value in enumerate(row):
        if j in levels:
            grid.append([0.0, 1.0, 2.0, 3.0])
        elif np.all(table[:, j] == np.floor(table[:, j])):
            grid.append([float(whole) for whole in range(-1, 8)])
        else:
            bounds = sorted({*cuts[j], np.inf})
            low, values = -np.inf, []
            for high in bounds:
                values.append(min(max(value, np.nextafter(low, np.inf) if np.isfinite(low) else low), high))
                low = high
            grid.append(values)
    best = None
    for other in product(*grid):
        changed = [j for j in range(len(row)) if other[j] != row[j]]
        size = sum(1.0 if j in levels else abs(other[j] - row[j]) / spread[j] for j in changed)
        if (best is None or (len(changed), size) < best) and goal(np.array([other])):
            best = (len(changed), size)
    return best


def cuts_of(predictor):
    trees = [predictor.tree] if hasattr(predictor, "tree") else list(predictor.forest)
    return [sorted({float(c) for t in trees for c in t.threshold[(t.kind == 1) & (t.feature == j)]}) for j in range(3)]


@pytest.mark.parametrize("wanted", [None, "high"])
@pytest.mark.parametrize("X", [X, PARTS], ids=["whole", "parts"])
def test_on_one_tree_no_change_is_smaller(wanted, X):
    y = np.digitize(SCORE, [2.0, 5.0])
    labels = np.array(["low", "middle", "high"])[y]
    model = spinney.CARTClassifier(max_depth=5, categorical_features=[2]).fit(X, labels)
    predictor = model.predictor()
    for row in X[:12]:
        now = model.predict(row[None])[0]
        found = counterfactual(predictor, row, wanted=wanted, X=X)
        if now == wanted:
            assert found.changes == ()
            continue
        assert found.is_exact
        assert found.answer == model.predict(found.values[None])[0]
        assert found.answer == wanted if wanted else found.answer != now

        def reaches(rows, now=now):
            code = model.predict(rows)[0]
            return code == wanted if wanted else code != now

        truth = smallest_by_trial(row, reaches, X, cuts_of(predictor))
        assert (len(found.changes), found.size) == pytest.approx(truth)


def test_allowed_columns_and_ranges_hold():
    model = spinney.CARTRegressor(max_depth=5, categorical_features=[2]).fit(X, SCORE)
    predictor = model.predictor()
    row = np.array([1.0, 1.0, 0.0])
    found = counterfactual(predictor, row, wanted=(6.0, None), vary=["x0", "x1"], X=X)
    if found is not None:
        assert found.values[2] == 0.0
    free = counterfactual(predictor, row, wanted=(6.0, None), X=X)
    assert model.predict(free.values[None])[0] >= 6.0
    bound = counterfactual(predictor, row, wanted=(6.0, None), ranges={"x0": (0, 3), 2: [1.0, 0.0]}, X=X)
    assert bound is None or (bound.values[0] <= 3.0 and bound.values[2] in {0.0, 1.0})
    truth = smallest_by_trial(row, lambda rows: model.predict(rows)[0] >= 6.0, X, cuts_of(predictor))
    assert (len(free.changes), free.size) == pytest.approx(truth)
    assert counterfactual(predictor, row, wanted=(1e6, None)) is None


@pytest.mark.parametrize(
    "model",
    [
        spinney.RandomForestClassifier(n_estimators=5, max_depth=4, random_state=0, categorical_features=[2]),
        spinney.GradientBoostingClassifier(n_estimators=8, random_state=0, categorical_features=[2]),
        spinney.AdaBoostClassifier(n_estimators=8),
    ],
    ids=lambda model: type(model).__name__,
)
@pytest.mark.parametrize("X", [X, PARTS], ids=["whole", "parts"])
def test_on_ensembles_one_column_is_exact_and_more_are_checked(model, X):
    model = model.fit(X, SCORE > 4.0)
    predictor = model.predictor()
    levels = (2,) if model.get_params().get("categorical_features") else ()
    n_found = 0
    for row in X[:8]:
        now = model.predict(row[None])[0]
        found = counterfactual(predictor, row, X=X)
        truth = smallest_by_trial(
            row, lambda rows, now=now: model.predict(rows)[0] != now, X, cuts_of(predictor), levels
        )
        assert found is not None
        assert model.predict(found.values[None])[0] != now
        assert (len(found.changes), found.size) >= (truth[0], truth[1] - 1e-9)
        if truth[0] == 1:
            assert found.is_exact
            assert (1, found.size) == pytest.approx(truth)
        n_found += 1
    assert n_found == 8


def test_texts_read_back_as_the_values_that_change_the_answer():
    predictor = spinney.CARTClassifier().fit([[1.0], [2.0], [3.0], [4.0]], [0, 0, 1, 1]).predictor()
    up = counterfactual(predictor, np.array([1.0]))
    assert str(up.changes[0]) == "x0: above 2.5 instead of 1"
    assert up.changes[0].after > 2.5
    down = counterfactual(predictor, np.array([4.0]))
    assert str(down.changes[0]) == "x0: 2.5 instead of 4"
    whole = counterfactual(predictor, np.array([1.0]), X=np.array([[1.0], [np.nan], [4.0]]))
    assert str(whole.changes[0]) == "x0: 3 instead of 1"
    assert counterfactual(predictor, np.array([1.0]), X=np.array([[1.0], [4.0]]), ranges={0: (0.0, 2.9)}) is None
    third = spinney.CARTClassifier().fit([[0.0], [2 / 3]], [0, 1]).predictor()
    change = counterfactual(third, np.array([2 / 3])).changes[0]
    assert str(change) == f"x0: {1 / 3!r} instead of 0.666667"
    assert change.after == 1 / 3


def test_missing_values_may_stay_or_be_filled():
    holes = X.copy()
    holes[RNG.random(200) < 0.3, 0] = np.nan
    for missing in ("learned", "surrogate", "branch"):
        model = spinney.CARTClassifier(max_depth=4, missing=missing).fit(holes, SCORE > 4.0)
        predictor = model.predictor()
        row = holes[np.isnan(holes[:, 0])][0]
        found = counterfactual(predictor, row)
        assert found is not None
        assert model.predict(found.values[None])[0] != model.predict(row[None])[0]


def test_what_is_asked_wrongly_is_told():
    predictor = spinney.CARTRegressor().fit(X, SCORE).predictor()
    for wanted in (None, 3.0, (5.0, 1.0)):
        with pytest.raises(ValueError, match="wanted="):
            counterfactual(predictor, X[0], wanted=wanted)
    with pytest.raises(ValueError, match="'y' is not a column"):
        counterfactual(predictor, X[0], wanted=(0.0, 1.0), vary=["y"])
    for limits in ((3.0, 1.0), (np.nan, 1.0), [0.0, 1.0, 2.0], 3.0):
        with pytest.raises(ValueError, match="ranges: x0 "):
            counterfactual(predictor, X[0], wanted=(0.0, 1.0), ranges={"x0": limits})
    with pytest.raises(ValueError, match=r"ranges: 'x1' may not change, since vary=\['x0'\] leaves it out"):
        counterfactual(predictor, X[0], wanted=(0.0, 1.0), vary=["x0"], ranges={"x1": (0.0, 1.0)})
    classes = spinney.CARTClassifier(categorical_features=[2]).fit(X, SCORE > 4.0).predictor()
    with pytest.raises(ValueError, match="'maybe' is no class"):
        counterfactual(classes, X[0], wanted="maybe")
    with pytest.raises(ValueError, match="no level"):
        counterfactual(classes, X[0], ranges={2: [9.0]})


def test_dates_change_by_their_parts():
    days = np.datetime64("2024-03-04") + np.arange(0, 600, 25)
    table = pa.table({"x": np.arange(24.0), "sold": days})
    model = spinney.CARTClassifier().fit(table, days.astype("datetime64[M]").astype(int) % 12 >= 6)
    row = table.slice(0, 1)
    found = spinney.explain(model, row, vary=["sold.month"])
    assert [change.column for change in found.counterfactual.changes] == ["sold.month"]
    for ask in (
        lambda: spinney.explain(model, row, vary=["sold"]),
        lambda: spinney.explain(model, row, ranges={"sold": (0, 1)}),
        lambda: spinney.dependence(model, table, "sold"),
    ):
        with pytest.raises(ValueError, match=r"'sold' is a column of dates.* name some of sold.year, sold.month"):
            ask()


@pytest.mark.filterwarnings("error")
def test_infinite_and_tiny_values_have_sizes():
    """An infinite value that stays is no change; one number past a cut at 0 is one, however wide the column is."""
    rows = np.array([[np.inf, 0.0, 0.0], [np.inf, 1.0, 100.0], [-1e308, 0.0, 0.0], [1e308, 1.0, 100.0]] * 5)
    model = spinney.RandomForestClassifier(n_estimators=15, random_state=0).fit(rows, rows[:, 1] > 0)
    found = counterfactual(model.predictor(), np.array([np.inf, 0.0, 0.0]), vary=[1, 2])
    assert found.answer
    assert 1 <= len(found.changes) <= 2
    assert 0.0 < found.size < np.inf
    assert "x0 = inf" in str(spinney.explain(spinney.CARTClassifier().fit(rows, rows[:, 0] > 0), rows[0]))
    tree = spinney.C45Classifier().fit([[0.0], [9.0]] * 10, ["no", "yes"] * 10)
    change = spinney.explain(tree, [0.0], X=[[0.5], [9.0]]).counterfactual
    assert [(one.column, one.after) for one in change.changes] == [("x0", 5e-324)]
    assert change.size > 0.0
    assert str(change) == "x0: above 0 instead of 0 would make it yes (the smallest change)"


def test_an_infinite_value_counts_for_nothing_while_another_column_moves():
    """The smallest change of one column is chosen by its size, also in a row that holds an infinite value."""
    rows = RNG.uniform(0.0, 10.0, (300, 2))
    rows = np.column_stack([np.where(rows[:, 0] > 5.0, np.inf, 0.0), rows])
    model = spinney.CARTClassifier().fit(rows, np.isin(np.floor(rows[:, 2]), [2.0, 8.0]))
    found = counterfactual(model.predictor(), np.array([np.inf, 5.0, 1.0]))
    assert [change.column for change in found.changes] == ["x2"]
    assert found.size == pytest.approx(smallest_past(model, 1.0))


def smallest_past(model, value):
    """Size of the move of x2 to the first of its thresholds above a value."""
    tree = model.tree_
    cuts = tree.threshold[(tree.kind == 1) & (tree.feature == 2)]
    return (cuts[cuts > value].min() - value) / (np.ptp(cuts) or 1.0)


def test_names_that_break_lines_are_quoted():
    table = pa.table({"a\nb": [1.0, 2.0, 3.0, 4.0], "c": ["\n", "\n", "", ""]})
    model = spinney.CARTClassifier().fit(table, ["no\n", "no\n", "", ""])
    text = str(spinney.explain(model, {"a\nb": 1.0, "c": "\n"}))
    assert text.splitlines()[0] == 'answer: "no\\n"'
    assert '"a\\nb"' in text
    assert "\\n" in text.splitlines()[-1]
