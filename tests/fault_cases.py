"""What the tests of faults share: a small model of every class, tables, and words that an error must hold."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import spinney
from plain_boosting import plain
from spinney import C45Classifier, CARTClassifier, CARTRegressor, ID3Classifier, ID3Regressor
from spinney.tree.boost import BoostGrowth
from spinney.tree.grow import Growth
from spinney.tree.textbook import Textbook

TREES = [CARTClassifier, CARTRegressor, ID3Classifier, ID3Regressor, C45Classifier]
ENSEMBLES = [
    getattr(spinney, f"{method}{task}")
    for method in ("RandomForest", "ExtraTrees", "Bagging", "AdaBoost", "GradientBoosting")
    for task in ("Classifier", "Regressor")
]
FORESTS = ENSEMBLES[:4]
GROWERS = ((Growth, "drive"), (Textbook, "drive"), (BoostGrowth, "grow"))  # whose work every fit is
INTERRUPTED = [
    "RandomForestRegressor(n_estimators=20, random_state=0, n_jobs=2)",
    *(
        pytest.param(made, marks=pytest.mark.slow)
        for made in ("AdaBoostClassifier(n_estimators=20)", "GradientBoostingRegressor(n_estimators=2, n_jobs=2)")
    ),
]
FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}
OF_TREES = ("test", "first_child", "threshold", "subsets", "n_rows", "weight", "impurity", "distributions")
OF_FORESTS = ("hot", "n_rows", "weight", "impurity", "subsets", "first_node", "first_word")


def is_classifier(kind):
    return kind.__name__.endswith("Classifier")


def make(kind, **settings):
    """A model that learns a table by heart if it can: few members, which see every row and every column.

    Settings of the trees go to the member where the ensemble has one; a seed is the ensemble's.
    """
    name = kind.__name__
    if name.startswith(("RandomForest", "ExtraTrees")):
        return kind(**{"n_estimators": 3, "bootstrap": False, "max_features": None, "random_state": 0, **settings})
    if name.startswith("GradientBoosting"):
        return kind(**plain(**{"n_estimators": 3, "min_samples_leaf": 1, "random_state": 0, **settings}))
    if name.startswith(("Bagging", "AdaBoost")):
        own = {"n_estimators": 3, "random_state": settings.pop("random_state", 0)}
        own |= {"bootstrap": False} if name.startswith("Bagging") else {}
        return kind((CARTClassifier if is_classifier(kind) else CARTRegressor)(**settings), **own)
    return kind(**settings)


def nearly_right_names():
    """Parameters that a class has not, as cases of a test: the class, the name, and words of the answer."""
    names = {
        "RandomForest": {"n_tree": ()},
        "ExtraTrees": {"n_tree": ()},
        "AdaBoost": {"n_estimator": ("Did you mean 'n_estimators'?",), "algorithm": ()},
        "GradientBoosting": {"max_depht": ("Did you mean 'max_depth'",), "num_leaves": ()},
    }
    return [
        pytest.param(kind, name, words, id=f"{kind.__name__}-{name}")
        for kind in ENSEMBLES
        for method, given in names.items()
        if kind.__name__.startswith(method)
        for name, words in given.items()
    ]


def same_model(one, other):
    """Whether two models have the same trees, to the bit."""
    if hasattr(one, "tree_"):
        return same_tree(one.tree_.arrays, other.tree_.arrays)
    return all(np.array_equal(getattr(one.forest_, name), getattr(other.forest_, name)) for name in OF_FORESTS)


def same_tree(one, other):
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in OF_TREES)


def trees_of(model):
    return [model.tree_.arrays] if hasattr(model, "tree_") else list(model.forest_)


def make_table(n_rows=40, seed=0):
    """Three numeric columns; two classes that follow the first two."""
    X = np.random.default_rng(seed).normal(size=(n_rows, 3))
    return X, (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)


def refuses(error, *words):
    """A context that expects an error whose message holds these words."""
    return pytest.raises(error, match="(?s)" + ".*".join(map(re.escape, words)))


def raw_predict(model, X):
    """The finest that a model says of rows."""
    names = ("decision_function", "predict_proba", "predict")
    return np.asarray(next(getattr(model, name)(X) for name in names if hasattr(model, name)))


COLOURS = ["red", "green", "blue", "red", "green", "blue", "red", "red"]
IS_WARM = [1, 0, 0, 1, 0, 0, 1, 1]


def coloured_rows():
    """A column of five categories, some missing, and one that tells nothing; a target that follows the first."""
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 5, 200)
    text = np.array(["red", "green", "blue", "grey", "pink"], dtype=object)[codes]
    text[::17] = None
    return pd.DataFrame({"colour": pd.Categorical(text), "x": generator.normal(size=200)}), codes % 2


def colours(values, frame_of, order=None, *, is_text=False):
    """A frame with one column of categories, in the way of its library; `order` is that of its vocabulary."""
    values = list(values)
    if order is None:
        order = sorted({value for value in values if value is not None})
    if frame_of is pd.DataFrame:
        column = pd.array(values, dtype="str") if is_text else pd.Categorical(values, categories=order)
    elif frame_of is pl.DataFrame:
        column = pl.Series(values, dtype=pl.String if is_text else pl.Enum(order))
    else:
        column = pa.array(values, pa.string())
        if not is_text:
            indices = pa.array([None if value is None else order.index(value) for value in values], pa.int32())
            column = pa.DictionaryArray.from_arrays(indices, pa.array(order))
    return frame_of({"colour": column})
