"""Small models of every method that takes logarithms or exponentials, and their parts, as hashes."""

from __future__ import annotations

import hashlib
import tempfile
import warnings
from pathlib import Path

import numpy as np

import spinney
from plain_boosting import plain
from spinney.ensemble.adaboost import distances, find_alpha
from spinney.ensemble.links import respond
from spinney.ensemble.sampling import Draw
from spinney.model.adaboost_bounds import bound_rounds
from spinney.table.fixed_point import fix_weights
from spinney.tree.grow_params import entropy_table
from spinney.tree.split_measures import class_impurity, times_log


def make_table():
    """Rows (90, 4) with a category and holes, classes 0 .. 2, numbers above 0, decimal weights."""
    generator = np.random.default_rng(7)
    X = generator.normal(size=(90, 4)).round(2)
    X[:, 3] = generator.integers(0, 4, 90)
    X[::11, 1] = np.nan
    y = (X[:, 0] + X[:, 2] * X[:, 3] + generator.normal(size=90) > 0.0) + (X[:, 2] > 0.7).astype(int)
    numbers = np.round(1.0 + np.abs(X[:, 0] + generator.normal(size=90)), 2)
    return X, y, numbers, np.round(generator.random(90) + 0.05, 2)


def make_models():
    """Models by name, each with the kind of its target."""
    few = {"n_estimators": 4, "random_state": 3}
    boosted = plain(n_estimators=4, min_samples_leaf=2, random_state=3)
    models = {
        "cart": (spinney.CARTClassifier(criterion="entropy"), 3),
        "cart of ratios": (spinney.CARTClassifier(criterion="gain_ratio"), 2),
        "c4.5": (spinney.C45Classifier(categorical_features=[3]), 3),
        "id3": (spinney.ID3Classifier(categorical_features=[3]), 3),
        "poisson forest": (spinney.RandomForestClassifier(bootstrap="poisson", criterion="entropy", **few), 3),
        "pasting": (spinney.RandomForestRegressor(replace=False, max_samples=9, **few), 0),
        "adaboost": (spinney.AdaBoostClassifier(n_estimators=6, random_state=3), 3),
        "adaboost of numbers": (spinney.AdaBoostRegressor(n_estimators=4, loss="exponential", random_state=0), 0),
        "log loss of two": (spinney.GradientBoostingClassifier(**boosted), 2),
        "log loss of three": (spinney.GradientBoostingClassifier(**boosted), 3),
        "exponential loss": (spinney.GradientBoostingClassifier(loss="exponential", **boosted), 2),
    }
    for loss in ("poisson", "gamma", "tweedie"):
        models[loss] = spinney.GradientBoostingRegressor(loss=loss, **boosted), 0
    return models


def find_marks():
    """SHA-256 by model of its file, and of what it says of all rows, also as logarithms, and of one row."""
    X, y, numbers, weights = make_table()
    marks = {}
    with tempfile.TemporaryDirectory() as directory, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (model, n_classes) in make_models().items():
            target = numbers if n_classes == 0 else np.minimum(y, n_classes - 1)
            model.fit(X, target, sample_weight=weights)
            path = Path(directory) / "model"
            model.save_model(path)
            asked = ("predict",) if n_classes == 0 else ("predict_proba", "predict_log_proba")
            answers = [getattr(model, ask)(X) for ask in asked] + [np.asarray(model.predictor()(X[0]))]
            parts = [path.read_bytes(), *(answer.tobytes() for answer in answers)]
            marks[name] = [hashlib.sha256(part).hexdigest() for part in parts]
    return {**marks, **mark_parts()}


def mark_parts():
    """The same of parts that models are made of, for many values: a last bit seldom shows in a small model."""
    generator = np.random.default_rng(8)
    shares = generator.dirichlet(np.ones(4), 25_000)
    weights = fix_weights(None, 50_000)
    parts = {
        "entropy table": entropy_table("entropy", weights)[0],
        "impurities": class_impurity("entropy", shares),
        "measures": times_log(shares),
        "distances": distances(shares[:, 0], shares[:, 1], "exponential"),
        "rates": np.stack(Draw("poisson", 9000, 5000, 0, shares[:9000, 0]).find_rates()[1:]),
        "drawn": Draw("paste", 9000, 5000, 0, shares[:9000, 0]).counts(0),
        "alphas": np.array([find_alpha(wrong, 1_000_003, 3) for wrong in range(1, 600_000, 7919)]),
        "bound": bound_rounds(shares[:2000, 0], 3.0 * shares[:2000, 1], 0.1),
        **{link: respond(link, 20.0 * shares.T[:1] - 8.0) for link in ("log", "logistic", "half_logistic")},
        "softmax": respond("softmax", 9.0 * shares.T),
    }
    return {name: hashlib.sha256(part.tobytes()).hexdigest() for name, part in parts.items()}
