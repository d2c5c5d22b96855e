"""Files of models whose leaves hold several numbers, and of forests grown further on other rows: they load for ever.

`tests/golden_vectors/` is never changed; run this file with Python to add what is missing.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import saved_models
import spinney
from plain_boosting import plain

GOLDEN = Path(__file__).parent / "golden_vectors"


def make_rows(seed=0):
    """Rows, two outputs of numbers and two of classes."""
    X, y = saved_models.make_data(0, seed=seed)
    numbers = np.c_[y, X[:, 0] - y]
    return X, numbers, np.where(numbers > 0.0, "high", "low")


def fit(name):
    """The model of a file."""
    X, numbers, classes = make_rows()
    few = {"n_estimators": 4, "random_state": 0}
    options = {**saved_models.WITH_LEVELS}
    if name == "rounds":
        return spinney.GradientBoostingRegressor(**plain(**few, max_leaf_nodes=5, **options)).fit(X, numbers)
    if name == "one_tree":
        model = spinney.GradientBoostingClassifier(**plain(**few, max_leaf_nodes=5, multi_strategy="one_tree"))
        return model.fit(X, np.digitize(numbers[:, 0], [0.0, 1.0]))
    if name == "forest":
        return spinney.RandomForestRegressor(**few, max_depth=3, **options).fit(X, numbers)
    if name == "classes":
        return spinney.ExtraTreesClassifier(**few, max_depth=3).fit(X, classes)
    if name == "bag":
        return spinney.BaggingClassifier(spinney.CARTClassifier(max_depth=3), max_features=0.5, **few).fit(X, classes)
    model = spinney.RandomForestRegressor(**few, max_depth=3, warm_start=True).fit(X, numbers[:, 0])
    other, new, _ = make_rows(1)
    return model.set_params(n_estimators=6).fit(other, new[:, 0])


NAMES = ("rounds", "one_tree", "forest", "classes", "bag", "other_rows")


def what_it_says(model):
    """Answers as text: floats by all their digits."""
    X = make_rows(7)[0][:9]
    said = {"predict": np.asarray(model.predict(X)).tolist()}
    if hasattr(model, "predict_proba"):
        said["predict_proba"] = np.asarray(model.predict_proba(X)).tolist()
    return said


@pytest.mark.parametrize("name", NAMES)
def test_old_files_say_what_they_said(name):
    model = spinney.load_model(GOLDEN / f"{name}.spn")
    said, kept = what_it_says(model), json.loads((GOLDEN / f"{name}.json").read_text())
    assert said.keys() == kept.keys()
    for method, answers in said.items():
        if np.asarray(answers).dtype.kind == "f":
            np.testing.assert_allclose(answers, kept[method], rtol=1e-14, atol=1e-300)
        else:
            assert answers == kept[method]


@pytest.mark.parametrize("name", NAMES)
def test_models_of_today_are_those_of_the_files(name):
    """The trees, not only the format: growing has not changed since."""
    forest, kept = fit(name).forest_, spinney.load_model(GOLDEN / f"{name}.spn").forest_
    np.testing.assert_array_equal(forest.hot, kept.hot)
    if forest.answers is not None:
        np.testing.assert_allclose(forest.answers, kept.answers, rtol=1e-12, atol=1e-300)


if __name__ == "__main__":
    GOLDEN.mkdir(exist_ok=True)
    for one in NAMES:
        if not (GOLDEN / f"{one}.spn").exists():
            grown = fit(one)
            grown.save_model(GOLDEN / f"{one}.spn")
            (GOLDEN / f"{one}.json").write_text(json.dumps(what_it_says(grown)) + "\n")
