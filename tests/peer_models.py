"""The model files of `model/imports/files`, which XGBoost, LightGBM and CatBoost wrote, and what they predict."""

import functools
import json
from pathlib import Path

import numpy as np
import pyarrow as pa

import spinney

FOLDER = Path(__file__).parent / "model" / "imports" / "files"
READERS = {"xgboost": spinney.from_xgboost, "lightgbm": spinney.from_lightgbm, "catboost": spinney.from_catboost}
TOLERANCE = {"xgboost": 2e-6, "lightgbm": 1e-14, "catboost": 1e-13}  # XGBoost adds up in float32


@functools.cache
def read_rows():
    """What `rows.json` holds."""
    return json.loads((FOLDER / "rows.json").read_text())


def list_models():
    """The names of the files."""
    return list(read_rows()["expected"])


def read_model(name):
    """The predictor of a file."""
    return READERS[name.partition("_")[0]](FOLDER / name)


def rows_for(name):
    """The rows that a file's predictions are for."""
    content = read_rows()
    cells = np.array([[np.nan if x is None else x for x in row] for row in content["cells"]])
    kind = content["expected"][name]["rows"]
    if kind == "codes":
        return cells
    if kind == "numbers":
        return np.ascontiguousarray(cells[:, :4])
    columns = {column: pa.array(cells[:, j], from_pandas=True) for j, column in enumerate("abcd")}
    return pa.table(columns | {"colour": pa.array(content["colour"]), "year": pa.array(content["year"])})


def expected_of(name):
    """What the library predicts for them."""
    found = read_rows()["expected"][name]
    return np.array(found["values"]).reshape(found["shape"])


def answer(predictor, X, like):
    """Predictions in the form of the library's: of two classes the probability of the second."""
    if predictor.classes is None:
        return predictor.predict(X)
    shares = predictor.predict_proba(X)
    return shares if like.ndim == 2 else shares[:, 1]


def write_xgboost_tree(tree, path):
    """A model of XGBoost, as JSON, of one tree of one feature; the path."""
    learner = {
        "learner_model_param": {"num_feature": "1", "num_class": "0", "base_score": "0"},
        "objective": {"name": "reg:squarederror"},
        "gradient_booster": {"name": "gbtree", "model": {"trees": [tree], "tree_info": [0]}},
    }
    path.write_text(json.dumps({"learner": learner}))
    return path
