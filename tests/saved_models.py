"""Fitted models of every kind, small: for tests of files, pickles and predictors."""

import numpy as np

import spinney
from plain_boosting import plain
from spinney import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    GradientBoostingRanker,
    GradientBoostingRegressor,
    GradientBoostingSurvival,
    ID3Classifier,
    ID3Regressor,
    RandomForestClassifier,
    RandomForestRegressor,
    RandomForestSurvival,
    StackingClassifier,
    StackingRegressor,
)

N_ROWS = 120


def make_data(n_classes=2, *, has_levels=True, has_missing=True, is_named=False, to_target=None, seed=0):
    """Two numbers, a category and a count; a target of classes, or of numbers for n_classes=0, as `to_target` says."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([
        rng.normal(size=N_ROWS), rng.normal(size=N_ROWS).round(1), rng.integers(0, 5, N_ROWS), rng.poisson(2, N_ROWS)
    ])  # fmt: skip
    score = X[:, 0] + (X[:, 2] % 2 if has_levels else X[:, 2]) - 0.5 * X[:, 1] ** 2 + rng.normal(size=N_ROWS) / 4
    if has_missing:
        X[rng.random(N_ROWS) < 0.1, 1] = np.nan
    y = score if n_classes == 0 else np.argsort(np.argsort(score)) * n_classes // N_ROWS
    if n_classes:
        y = np.array(["ash", "birch", "cedar", "damson", "elder"])[y]
    if to_target is not None:
        y = to_target(y)
    if is_named:
        import pyarrow as pa

        names = ["ä", "b c", "tree", "n"]
        tree = [None if level == 4 else f"level {int(level)}" for level in X[:, 2]]
        columns = [X[:, 0], X[:, 1], pa.array(tree).dictionary_encode(), X[:, 3]]
        return pa.table(dict(zip(names, columns, strict=True))), y
    return X, y


def gradient(y, raw):
    return raw - y


def hessian(y, raw):  # noqa: ARG001
    return np.ones_like(y)


def to_relevance(score):
    return np.clip(np.round(score + 1.0), 0.0, 4.0)


def to_times(score):
    return np.exp(score) * np.where(np.arange(len(score)) % 3 == 0, -1.0, 1.0)  # a third is censored


WITH_LEVELS = {"categorical_features": [2]}
MODELS = {  # name: estimator, classes, options of the data
    "cart classes": (CARTClassifier(**WITH_LEVELS), 3, {}),
    "cart two classes": (CARTClassifier(max_depth=3, ccp_alpha=0.01), 2, {}),
    "cart one class": (CARTClassifier(), 1, {}),
    "cart own branch": (CARTClassifier(missing="branch"), 3, {}),
    "cart surrogates": (CARTClassifier(missing="surrogate", max_depth=4, **WITH_LEVELS), 2, {}),
    "cart pruned by cv": (CARTClassifier(pruning="cost_complexity", ccp_alpha="cv", random_state=0), 2, {}),
    "cart numbers": (CARTRegressor(max_leaf_nodes=12, **WITH_LEVELS), 0, {}),
    "cart linear": (CARTRegressor(max_depth=3, leaf_model="linear", **WITH_LEVELS), 0, {}),
    "cart named": (CARTRegressor(max_depth=5), 0, {"is_named": True}),
    "id3": (ID3Classifier(**WITH_LEVELS), 3, {}),
    "id3 numbers": (ID3Regressor(max_depth=4, **WITH_LEVELS), 0, {}),
    "c45": (C45Classifier(**WITH_LEVELS), 3, {}),
    "c45 named": (C45Classifier(smoothing="laplace"), 3, {"is_named": True}),
    "c45 smoothed": (C45Classifier(smoothing=2.0), 2, {}),
    "forest": (RandomForestClassifier(n_estimators=25, oob_score=True, random_state=1, **WITH_LEVELS), 3, {}),
    "forest hard": (RandomForestClassifier(n_estimators=7, voting="hard", max_depth=3, random_state=1), 3, {}),
    "forest one class": (RandomForestClassifier(n_estimators=3, random_state=1), 1, {}),
    "forest named": (RandomForestClassifier(n_estimators=5, random_state=1), 2, {"is_named": True}),
    "forest numbers": (RandomForestRegressor(25, oob_score=True, keep_members=True, random_state=1), 0, {}),
    "forest honest": (RandomForestRegressor(n_estimators=5, honest=True, random_state=1), 0, {}),
    "forest strata": (RandomForestClassifier(n_estimators=5, stratify="balanced", random_state=1), 3, {}),
    "extra trees": (ExtraTreesClassifier(n_estimators=6, random_state=2, **WITH_LEVELS), 4, {}),
    "extra numbers": (ExtraTreesRegressor(n_estimators=6, random_state=2), 0, {}),
    "bagging": (BaggingClassifier(n_estimators=25, max_features=0.5, oob_score=True, random_state=3), 3, {}),
    "bagging numbers": (BaggingRegressor(n_estimators=5, random_state=3), 0, {}),
    "bagging c45": (BaggingClassifier(estimator=C45Classifier(), n_estimators=3, random_state=3), 2, {}),
    "adaboost": (AdaBoostClassifier(n_estimators=12), 2, {}),
    "adaboost classes": (AdaBoostClassifier(estimator=CARTClassifier(max_depth=2), n_estimators=8), 4, {}),
    "adaboost numbers": (AdaBoostRegressor(n_estimators=6), 0, {}),
    "adaboost id3": (AdaBoostClassifier(estimator=ID3Classifier(max_depth=1), n_estimators=3), 2, {}),
    "boosting": (
        GradientBoostingClassifier(**plain(n_estimators=12, max_leaf_nodes=6, random_state=4, **WITH_LEVELS)), 2, {}
    ),
    "boosting classes": (GradientBoostingClassifier(**plain(n_estimators=5, max_leaf_nodes=5, random_state=4)), 4, {}),
    "boosting one class": (GradientBoostingClassifier(**plain(n_estimators=2)), 1, {}),
    "boosting exponential": (GradientBoostingClassifier(**plain(loss="exponential", n_estimators=5)), 2, {}),
    "boosting numbers": (GradientBoostingRegressor(**plain(n_estimators=15, random_state=4, **WITH_LEVELS)), 0, {}),
    "boosting huber": (GradientBoostingRegressor(**plain(loss="huber", n_estimators=5)), 0, {}),
    "boosting quantile": (GradientBoostingRegressor(**plain(loss="quantile", alpha=0.7, n_estimators=5)), 0, {}),
    "boosting quantiles": (
        GradientBoostingRegressor(**plain(loss="quantile", alpha=[0.1, 0.5, 0.9], n_estimators=5)), 0, {}
    ),
    "boosting early": (
        GradientBoostingRegressor(
            **plain(n_estimators=40, n_iter_no_change=3, validation_fraction=0.3, learning_rate=0.7, random_state=4)
        ),
        0,
        {},
    ),
    "boosting ranks": (
        GradientBoostingRanker(**plain(n_estimators=8, random_state=4, **WITH_LEVELS)), 0, {"to_target": to_relevance}
    ),
    "boosting times": (
        GradientBoostingSurvival(**plain(n_estimators=8, random_state=4, **WITH_LEVELS)), 0, {"to_target": to_times}
    ),
    "boosting lifetimes": (
        GradientBoostingSurvival(**plain(loss="aft", distribution="extreme", n_estimators=5)), 0,
        {"to_target": to_times},
    ),
    "forest times": (
        RandomForestSurvival(n_estimators=25, oob_score=True, random_state=4, **WITH_LEVELS), 0, {"to_target": to_times}
    ),
    "stacking": (
        StackingClassifier(
            [("forest", RandomForestClassifier(n_estimators=5)), ("tree", C45Classifier())],
            GradientBoostingClassifier(n_estimators=3, random_state=5), cv=3, random_state=5,
        ), 3, {},
    ),
    "stacking named": (
        StackingClassifier(
            [("tree", CARTClassifier(max_depth=3)), ("boost", GradientBoostingClassifier(n_estimators=4))],
            CARTClassifier(max_depth=2), cv=3, passthrough=True,
        ), 2, {"is_named": True},
    ),
    "stacking numbers": (
        StackingRegressor(
            [("forest", RandomForestRegressor(n_estimators=25)), ("bag", BaggingRegressor(n_estimators=25))],
            CARTRegressor(leaf_model="linear", max_depth=1), cv="oob", random_state=5,
        ), 0, {},
    ),
    "boosting custom": (GradientBoostingRegressor(**plain(loss=(gradient, hessian), n_estimators=5)), 0, {}),
    "boosting defaults": (GradientBoostingClassifier(random_state=4, **WITH_LEVELS), 3, {}),
}  # fmt: skip
OF_SEVERAL_KINDS = [  # whose members are no trees of one forest, so that there is no predictor
    "bagging c45", "adaboost id3", "forest times", "stacking", "stacking named", "stacking numbers"
]  # fmt: skip
LOSSES = {"gradient": (gradient, hessian)}


def data_of(name, seed=0):
    """The data that a model is fitted to; another seed gives other rows of the same kind."""
    _, n_classes, options = MODELS[name]
    return make_data(n_classes, **{**options, "seed": seed})


def fit(name):
    """A fitted model, and rows to ask it about: those of training and others, with levels and numbers not seen."""
    from sklearn.base import clone

    model = clone(MODELS[name][0]).fit(*data_of(name))
    return model, data_of(name, seed=1)[0]


def all_methods():
    """Names of public estimators."""
    return [name for name in spinney.__all__ if name.endswith(("Classifier", "Regressor", "Ranker", "Survival"))]
