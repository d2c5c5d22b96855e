"""Models of scikit-learn, fitted here: predictions on 10,000 rows with missing values are its own."""

import warnings

import numpy as np
import pyarrow as pa
import pytest
from sklearn import ensemble, tree

import spinney
from spinney.model.imports.foreign_file import NotImportedError

N_FRESH = 10_000


def draw(n_rows, seed, n_codes=12):
    """Rows with missing values, some of codes that others do not have, and what they are worth."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 5))
    X[:, 1] = np.round(X[:, 1], 1)
    X[:, 3], X[:, 4] = rng.integers(0, n_codes, n_rows), np.round(3 * X[:, 4])
    score = X[:, 0] + 0.5 * X[:, 1] * X[:, 4] + 2 * np.sin(X[:, 3])
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, score


X, SCORE = draw(800, 0)
FRESH, _ = draw(N_FRESH, 1, n_codes=16)
TWO, THREE = np.array(["no", "yes"])[(SCORE > 0).astype(int)], np.digitize(SCORE, [-1, 1])
POSITIVE = np.abs(SCORE) + 0.01
WEIGHTS = np.random.default_rng(2).random(len(X)) + 0.1


def on_thresholds(predictor, fresh):
    """Rows of which a third of the values are on a threshold, or the next float64 to it."""
    forest = getattr(predictor, "forest", None)
    trees = [predictor.tree] if forest is None else list(forest)
    rows, rng = fresh.copy(), np.random.default_rng(3)
    for j in np.flatnonzero(~predictor.schema.is_categorical):
        cuts = np.concatenate([one.threshold[one.feature == j] for one in trees])
        cuts = cuts[np.isfinite(cuts)]
        if len(cuts):
            chosen = rng.random(len(rows)) < 0.3
            near = rng.choice(cuts, chosen.sum())
            rows[chosen, j] = np.where(rng.random(len(near)) < 0.5, near, np.nextafter(near, np.inf))
    return rows


def check(model, y, *, fresh=FRESH, tolerance=0.0, **fit):
    """Fit, read, and compare on all rows."""
    has_missing = not isinstance(model, ensemble.GradientBoostingClassifier | ensemble.GradientBoostingRegressor)
    has_missing &= getattr(model, "criterion", "gini") not in {"absolute_error", "poisson"}
    has_missing &= getattr(model, "monotonic_cst", None) is None
    model.fit(X if has_missing else np.nan_to_num(X), y, **fit)
    predictor = spinney.from_sklearn(model)
    rows = on_thresholds(predictor, fresh if has_missing else np.nan_to_num(fresh))
    if predictor.classes is None:
        theirs, ours = model.predict(rows), predictor.predict(rows)
    else:
        theirs, ours = model.predict_proba(rows), predictor.predict_proba(rows)
        np.testing.assert_array_equal(predictor.predict(rows), model.predict(rows))
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=0.0)
    assert len(np.unique(theirs)) > 1
    if hasattr(model, "feature_importances_"):
        np.testing.assert_allclose(predictor.feature_importances, model.feature_importances_, atol=1e-6)
    return predictor


SINGLE_CLASSIFIERS = [tree.DecisionTreeClassifier, tree.ExtraTreeClassifier]
CLASSIFIERS = [*SINGLE_CLASSIFIERS, ensemble.RandomForestClassifier, ensemble.ExtraTreesClassifier]
REGRESSORS = [
    tree.DecisionTreeRegressor, tree.ExtraTreeRegressor, ensemble.RandomForestRegressor, ensemble.ExtraTreesRegressor
]  # fmt: skip


def small(cls, **params):
    """A model of few trees."""
    size = {} if issubclass(cls, tree.DecisionTreeClassifier | tree.DecisionTreeRegressor) else {"n_estimators": 7}
    return cls(random_state=0, **size, **params)


@pytest.mark.parametrize("cls", CLASSIFIERS)
@pytest.mark.parametrize(
    ("params", "tolerance"),
    [
        ({}, 0.0),
        ({"criterion": "entropy", "min_samples_leaf": 5}, 0.0),
        ({"criterion": "log_loss", "max_leaf_nodes": 9}, 0.0),
        ({"ccp_alpha": 0.002, "max_depth": 6}, 0.0),
        ({"class_weight": "balanced", "max_depth": 5}, 1e-13),
        ({"monotonic_cst": [1, 0, 0, 0, 0], "max_depth": 5}, 1e-14),
    ],
)
def test_classes(cls, params, tolerance):
    y = TWO if "monotonic_cst" in params else THREE
    predictor = check(small(cls, **params), y, tolerance=tolerance)
    assert isinstance(predictor, spinney.Predictor)


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_weighted_classes(cls):
    check(small(cls, min_samples_leaf=3), TWO, tolerance=1e-13, sample_weight=WEIGHTS)


@pytest.mark.parametrize("cls", REGRESSORS)
@pytest.mark.parametrize("criterion", ["squared_error", "absolute_error", "poisson"])
def test_numbers(cls, criterion):
    check(small(cls, criterion=criterion, max_depth=6), POSITIVE)


@pytest.mark.parametrize("cls", REGRESSORS)
def test_weighted_numbers(cls):
    check(small(cls), SCORE, sample_weight=WEIGHTS)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber", "quantile"])
def test_boosted_numbers(loss):
    check(ensemble.GradientBoostingRegressor(loss=loss, n_estimators=8, subsample=0.7, random_state=0), SCORE)


@pytest.mark.parametrize(
    ("y", "params"),
    [(TWO, {}), (TWO, {"loss": "exponential"}), (TWO, {"init": "zero"}), (THREE, {}), (THREE, {"init": "zero"})],
)
def test_boosted_classes(y, params):
    check(ensemble.GradientBoostingClassifier(n_estimators=8, random_state=0, **params), y, tolerance=1e-14)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "gamma", "poisson", "quantile"])
def test_histogram_boosted_numbers(loss):
    model = ensemble.HistGradientBoostingRegressor(loss=loss, quantile=0.3, max_iter=8, min_samples_leaf=3)
    check(model, POSITIVE, tolerance=1e-15 if loss in {"gamma", "poisson"} else 0.0)


@pytest.mark.parametrize("categorical", [None, [3], [1, 3]])
@pytest.mark.parametrize("y", [TWO, THREE], ids=["two", "three"])
def test_histogram_boosted_classes(y, categorical, monkeypatch):
    table, fresh = X.copy(), FRESH.copy()
    for rows in (table, fresh):
        rows[:, 1] = np.abs(np.round(rows[:, 1]))
    monkeypatch.setattr(f"{__name__}.X", table)
    model = ensemble.HistGradientBoostingClassifier(categorical_features=categorical, max_iter=8, min_samples_leaf=3)
    predictor = check(model, y, fresh=fresh, tolerance=1e-14)
    assert sum(levels is not None for levels in predictor.schema.levels) == len(categorical or [])


def test_histogram_boosting_reads_categories_of_frames():
    pandas = pytest.importorskip("pandas")

    def frame(rows):
        level = [None if np.isnan(code) else f"level {code:.0f}" for code in rows[:, 3]]
        return pandas.DataFrame({"a": rows[:, 0], "k": pandas.Categorical(level), "b": rows[:, 1]})

    model = ensemble.HistGradientBoostingRegressor(max_iter=8, min_samples_leaf=3).fit(frame(X), SCORE)
    predictor = spinney.from_sklearn(model)
    assert predictor.feature_names == ("a", "k", "b")
    fresh = frame(FRESH)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # levels that were never seen
        theirs = model.predict(fresh)
    np.testing.assert_array_equal(predictor.predict(fresh), theirs)
    table = pa.Table.from_pandas(fresh)
    np.testing.assert_array_equal(predictor.predict(table.select(["b", "k", "a"])), theirs)


def test_one_class_and_one_leaf():
    model = tree.DecisionTreeClassifier().fit([[1.0], [2.0]], ["a", "a"])
    np.testing.assert_array_equal(spinney.from_sklearn(model).predict_proba([[3.0]]), [[1.0]])
    forest = ensemble.RandomForestClassifier(n_estimators=3).fit([[1.0], [2.0]], ["a", "a"])
    np.testing.assert_array_equal(spinney.from_sklearn(forest).predict([[3.0]]), ["a"])
    stump = tree.DecisionTreeRegressor(max_depth=1, min_samples_leaf=10).fit([[1.0], [2.0]], [1.0, 2.0])
    np.testing.assert_array_equal(spinney.from_sklearn(stump).predict([[3.0]]), [1.5])


@pytest.mark.parametrize("to", ["sql", "python", "c"])
def test_exports_and_files(to, tmp_path):
    model = ensemble.RandomForestClassifier(n_estimators=5, max_depth=4, random_state=0).fit(X, THREE)
    predictor = spinney.from_sklearn(model)
    assert spinney.export(predictor, to).difference in {0.0, None}
    spinney.save_predictor(predictor, tmp_path / "m.spn")
    np.testing.assert_array_equal(spinney.load_predictor(tmp_path / "m.spn").predict(FRESH), model.predict(FRESH))
    assert predictor.forest[0].to_svg().startswith("<svg")


def test_what_is_not_read_is_refused_by_name():
    known = np.nan_to_num(X)
    with pytest.raises(NotImportedError, match="2 outputs are not read"):
        spinney.from_sklearn(tree.DecisionTreeRegressor(max_depth=2).fit(known, np.stack([SCORE, SCORE], axis=1)))
    init = ensemble.GradientBoostingRegressor(init=tree.DecisionTreeRegressor(max_depth=2), n_estimators=2)
    with pytest.raises(NotImportedError, match="a first estimator that learns, is not read"):
        spinney.from_sklearn(init.fit(known, SCORE))
    with pytest.raises(TypeError, match="IsolationForest is not read; DecisionTreeClassifier, "):
        spinney.from_sklearn(ensemble.IsolationForest(n_estimators=2).fit(known))
    with pytest.raises(TypeError, match="is a class"):
        spinney.from_sklearn(tree.DecisionTreeClassifier)
    with pytest.raises(ValueError, match="not fitted"):
        spinney.from_sklearn(tree.DecisionTreeClassifier())
