"""Tables and models that the tests of gradient boosting share."""

import numpy as np
import pandas as pd

from plain_boosting import plain

ARRAYS = ("hot", "n_rows", "weight", "impurity", "subsets", "first_node", "first_word")


def make(kind, **settings):
    """A model as the textbook has it, of ten rounds."""
    return kind(**plain(**{"n_estimators": 10, "min_samples_leaf": 5, "random_state": 0, **settings}))


def make_frame(n_rows=300, seed=0, n_classes=3):
    """Numbers with holes and ties, and a category; noisy classes."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n_rows, 3)).round(2), columns=["a", "b", "c"])
    X["colour"] = pd.Categorical(rng.choice(["red", "green", "blue", "grey", "pink"], n_rows))
    score = X["a"] + X["colour"].isin(["red", "pink"]) + rng.normal(scale=0.5, size=n_rows)
    y = np.digitize(score, [0.0, 1.0] if n_classes == 3 else [0.5])
    X.loc[rng.random(n_rows) < 0.15, "b"] = np.nan
    X.loc[rng.random(n_rows) < 0.15, "colour"] = np.nan
    return X, y


def make_table(n_rows=300, seed=0, n_classes=2):
    """The numbers alone."""
    X, y = make_frame(n_rows, seed, n_classes)
    return X[["a", "b", "c"]].to_numpy(), y


def same_forest(one, other):
    return all(np.array_equal(getattr(one.forest_, name), getattr(other.forest_, name)) for name in ARRAYS)


def raw_of(model, X, **offset):
    """Raw scores of a classifier, predictions of a regressor."""
    if hasattr(model, "classes_"):
        return model.decision_function(X, **offset)
    return model.predict(X, **offset)


def scripted(values):
    """A metric that says what it is told to, round by round."""
    said = iter(values)
    return lambda y_true, y_pred: next(said)  # noqa: ARG005
