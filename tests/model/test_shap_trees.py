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
