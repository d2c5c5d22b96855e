"""Trees for `shap`: walked by hand they say what the model says; what that form cannot hold is refused by name."""

import numpy as np
import pytest

import export_cases
import spinney
from spinney.model.explained_trees import raw_scores

RNG = np.random.default_rng(0)
X = RNG.normal(size=(150, 3))
X[::9, 1] = np.nan
Y = np.nan_to_num(X[:, 0] * X[:, 1]) + X[:, 2]


def walk(tree, row):
    """What a tree of that form says of a row."""
    node = 0
    while tree["children_left"][node] >= 0:
        value = row[tree["features"][node]]
        side = "children_left" if value <= tree["thresholds"][node] else "children_right"
        node = tree["children_default" if np.isnan(value) else side][node]
    return tree["values"][node]


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (spinney.CARTRegressor(max_depth=5), Y),
        (spinney.CARTClassifier(max_depth=5), np.digitize(Y, [-0.5, 0.5])),
        (spinney.RandomForestClassifier(n_estimators=4, random_state=0), Y > 0),
        (spinney.RandomForestRegressor(n_estimators=4, random_state=0), Y),
        (spinney.GradientBoostingRegressor(n_estimators=6, random_state=0), Y),
        (spinney.GradientBoostingClassifier(n_estimators=6, random_state=0), Y > 0),
        (spinney.AdaBoostClassifier(n_estimators=6), Y > 0),
    ],
    ids=lambda x: type(x).__name__,
)
def test_trees_add_up_to_what_the_model_says(model, y):
    predictor = model.fit(X, y).predictor()
    form = spinney.to_shap_trees(predictor)
    rows = X[:30]
    sums = form["base_offset"] + np.array([sum(walk(tree, row) for tree in form["trees"]) for row in rows])
    np.testing.assert_allclose(sums, raw_scores(predictor, rows), rtol=1e-12, atol=1e-12)
    base = form["base_offset"] + sum(tree["values"][0] for tree in form["trees"])
    np.testing.assert_allclose(base, np.reshape(model.shap_values(rows).base, -1), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("cart numbers", "categories"),
        ("id3", "categories"),
        ("cart own branch", "branches for missing values"),
        ("cart linear", "categories|linear leaves"),
        ("boosting classes", "trees of one class among several"),
    ],
)
def test_what_that_form_cannot_hold_is_refused_by_name(name, what):
    model, _ = export_cases.fitted(name)
    with pytest.raises(ValueError, match=f"cannot be told of ({what})"):
        spinney.to_shap_trees(model)


# --- the library itself -------------------------------------------------------------------------------------------


@pytest.fixture
def shap():
    return pytest.importorskip("shap", reason="shap is not installed")


NUMERIC = [
    (spinney.CARTRegressor(max_depth=5), Y),
    (spinney.CARTClassifier(max_depth=5), np.digitize(Y, [-0.5, 0.5])),
    (spinney.RandomForestRegressor(n_estimators=4, random_state=0), Y),
    (spinney.GradientBoostingRegressor(n_estimators=6, random_state=0), Y),
    (spinney.GradientBoostingClassifier(n_estimators=6, random_state=0), Y > 0),
]


@pytest.mark.parametrize(("model", "y"), NUMERIC, ids=lambda x: type(x).__name__)
def test_shap_finds_the_same_values(model, y, shap):
    model.fit(X, y)
    explainer = shap.TreeExplainer(spinney.to_shap_trees(model), feature_perturbation="tree_path_dependent")
    found = model.shap_values(X[:40], interactions=True)
    np.testing.assert_allclose(explainer.shap_values(X[:40]), found.values, rtol=1e-6, atol=1e-6)
    if found.values.ndim == 2:
        pairs = explainer.shap_interaction_values(X[:40])
        np.testing.assert_allclose(pairs, found.interactions, rtol=1e-6, atol=1e-6)


def test_shap_finds_the_same_values_against_background_rows(shap):
    known = np.nan_to_num(X)
    model = spinney.GradientBoostingRegressor(n_estimators=6, random_state=0).fit(known, Y)
    explainer = shap.TreeExplainer(
        spinney.to_shap_trees(model), known[:60], feature_perturbation="interventional", model_output="raw"
    )
    found = model.shap_values(known[:40], background=known[:60])
    np.testing.assert_allclose(
        explainer.shap_values(known[:40], check_additivity=False), found.values, rtol=1e-6, atol=1e-6
    )


def test_values_go_to_the_pictures_of_shap(shap):
    for model, y in NUMERIC[:2]:
        found = model.fit(X, y).shap_values(X[:9])
        explanation = found.to_shap()
        assert isinstance(explanation, shap.Explanation)
        np.testing.assert_array_equal(explanation.values, found.values)
        assert explanation.feature_names == ["x0", "x1", "x2"]
        assert np.shape(explanation.data) == (9, 3)
        np.testing.assert_allclose(np.asarray(explanation[0].base_values), found.base)
