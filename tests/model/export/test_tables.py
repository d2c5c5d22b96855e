"""Every export of every estimator on 1,000 rows of three tables, with holes and levels never seen."""

import numpy as np
import pyarrow as pa
import pytest

import spinney
from spinney import datasets

pytestmark = [pytest.mark.slow, pytest.mark.compiled(reason="takes minutes interpreted")]

CLASSES = {
    "cart": spinney.CARTClassifier(max_depth=8),
    "surrogates": spinney.CARTClassifier(max_depth=6, missing="surrogate"),
    "own branch": spinney.CARTClassifier(max_depth=6, missing="branch"),
    "id3": spinney.ID3Classifier(max_depth=5),
    "c45": spinney.C45Classifier(),
    "forest": spinney.RandomForestClassifier(10, max_depth=10, random_state=0),
    "hard votes": spinney.RandomForestClassifier(10, max_depth=8, voting="hard", random_state=0),
    "extra-trees": spinney.ExtraTreesClassifier(n_estimators=5, max_depth=10, random_state=0),
    "bagging": spinney.BaggingClassifier(n_estimators=5, random_state=0),
    "adaboost": spinney.AdaBoostClassifier(n_estimators=20),
    "boosting": spinney.GradientBoostingClassifier(n_estimators=50, random_state=0),
}
NUMBERS = {
    "cart": spinney.CARTRegressor(max_depth=8),
    "linear": spinney.CARTRegressor(leaf_model="linear", max_depth=4),
    "id3": spinney.ID3Regressor(max_depth=6),
    "forest": spinney.RandomForestRegressor(10, max_depth=10, random_state=0),
    "extra-trees": spinney.ExtraTreesRegressor(n_estimators=5, max_depth=10, random_state=0),
    "bagging": spinney.BaggingRegressor(n_estimators=5, random_state=0),
    "adaboost": spinney.AdaBoostRegressor(n_estimators=20),
    "boosting": spinney.GradientBoostingRegressor(n_estimators=50, random_state=0),
    "gamma": spinney.GradientBoostingRegressor(n_estimators=30, loss="gamma", random_state=0),
    "quantiles": spinney.GradientBoostingRegressor(n_estimators=20, loss="quantile", alpha=[0.1, 0.5], random_state=0),
}
CASES = [
    *((table, kind, model) for table in ("german_credit", "adult") for kind, model in CLASSES.items()),
    *(("california_housing", kind, model) for kind, model in NUMBERS.items()),
]
EXACT = [("python", {}), ("json", {}), ("c", {}), ("javascript", {}), ("sql", {}), ("sql", {"dialect": "duckdb"})]


def read(name):
    """A thousand rows to fit, and a thousand with holes and strangers."""
    table, target = datasets.load(name), datasets.source(name).target
    rng = np.random.default_rng(0)
    table = table.take(rng.permutation(len(table))[:2000])
    X, y = table.drop_columns([target]), np.array(table[target].to_pylist())
    holed = {}
    for column in X.column_names:
        cells = X[column].to_pylist()[-1000:]
        is_text = any(isinstance(cell, str) for cell in cells)
        holed[column] = [None if rng.random() < 0.1 else cell for cell in cells]
        if is_text:
            holed[column][::17] = ["a stranger"] * len(holed[column][::17])
    return X.slice(0, 1000), y[:1000], pa.table(holed)


@pytest.mark.parametrize(("table", "kind", "model"), CASES, ids=[f"{table}-{kind}" for table, kind, _ in CASES])
def test_exports_answer_as_the_model(table, kind, model):
    X, y, others = read(table)
    model.fit(X, y)
    for to, options in EXACT:
        exported = spinney.export(model, to, X=others, **options)
        assert exported.difference in {0.0, None}, (kind, to, options)
        assert exported.n_other_classes == 0
        assert exported.n_rows in {0, 1200}


@pytest.mark.parametrize(("table", "kind", "model"), CASES, ids=[f"{table}-{kind}" for table, kind, _ in CASES])
def test_graphs_answer_within_the_last_places(table, kind, model):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    X, y, others = read(table)
    exported = spinney.export(model.fit(X, y), "onnx", X=others)
    is_exact = kind not in {"adaboost", "boosting", "linear", "gamma"} or (table, kind) == (
        "california_housing",
        "adaboost",
    )
    assert exported.difference <= (0.0 if is_exact else 1e-14)
    assert exported.n_other_classes == 0
