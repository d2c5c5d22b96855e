"""Makes `files/`: small models by XGBoost, LightGBM and CatBoost, and what they themselves predict for `rows.json`.

    python tests/model/imports/make_models.py

with xgboost 3.2.0, lightgbm 4.7.0, catboost 1.2.10 and pandas installed; the tests need none of them.
"""

import json
import os
from pathlib import Path

import catboost as cb
import lightgbm as lgb
import numpy as np
import pandas as pd
import xgboost as xgb

FOLDER = Path(__file__).parent / "files"
TYPES = ["q", "q", "q", "q", "c", "c"]
COLOURS = ["blue", "green", "red", "grey"]
expected = {}


def draw(n_rows, seed, *, n_codes=6):
    """Four columns of numbers, some zero, and two of codes; a tenth is missing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 6))
    X[:, 1] = np.round(X[:, 1], 1)
    X[:, 2] = np.where(rng.random(n_rows) < 0.4, 0.0, np.round(3 * X[:, 2]))
    X[:, 4], X[:, 5] = rng.integers(0, n_codes, n_rows), rng.integers(0, 10 * n_codes, n_rows)
    score = X[:, 0] + 0.5 * X[:, 1] * X[:, 2] + 2 * np.sin(X[:, 4]) + (X[:, 5] % 3 == 0)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, score


def frame(X):
    """The same with names, and categories of text and of numbers."""
    table = pd.DataFrame(X[:, :4], columns=["a", "b", "c", "d"])
    known = [None if np.isnan(code) else COLOURS[int(code) % 4] for code in X[:, 4]]
    table["colour"] = pd.Categorical(known, categories=COLOURS)
    table["year"] = pd.Categorical(2000 + np.nan_to_num(X[:, 5]).astype(int) % 5, categories=range(2000, 2005))
    return table


X, score = draw(400, 0)
rows, _ = draw(60, 1, n_codes=8)  # codes that were never seen among them
numbers, number_rows = X[:, :4], rows[:, :4]
two, three = (score > 0).astype(int), np.digitize(score, [-1, 1])
positive = np.abs(score) / 5 + 0.01


def keep(name, predicted, kind):
    """Note what a library predicts; kind: of which rows."""
    expected[name] = {
        "rows": kind,
        "shape": list(np.shape(predicted)),
        "values": np.ravel(predicted).astype(float).tolist(),
    }


def make_xgboost(name, params, y, n_rounds=4, kind="codes"):
    train = {"codes": X, "numbers": numbers, "frame": frame(X)}[kind]
    fresh = {"codes": rows, "numbers": number_rows, "frame": frame(rows)}[kind]
    types = {"feature_types": TYPES} if kind == "codes" else {}
    params = {"max_depth": 3, "nthread": 1, "seed": 0, **params}
    booster = xgb.train(params, xgb.DMatrix(train, y, enable_categorical=True, **types), n_rounds)
    booster.save_model(FOLDER / name)
    keep(name, booster.predict(xgb.DMatrix(fresh, enable_categorical=True, **types)), kind)


def make_lightgbm(name, params, y, n_rounds=4, kind="codes"):
    train = {"codes": X, "numbers": numbers, "frame": frame(X)}[kind]
    fresh = {"codes": rows, "numbers": number_rows, "frame": frame(rows)}[kind]
    settings = {"num_leaves": 7, "verbose": -1, "num_threads": 1, "seed": 0, "min_data_in_leaf": 5, "cat_smooth": 1}
    settings |= {"min_data_per_group": 5, **params}
    columns = [4, 5] if kind == "codes" else "auto"
    booster = lgb.train(settings, lgb.Dataset(train, y, categorical_feature=columns), n_rounds)
    booster.save_model(FOLDER / name)
    keep(name, booster.predict(fresh), kind)


def make_catboost(name, params, y, *, is_classifier=False):
    maker = cb.CatBoostClassifier if is_classifier else cb.CatBoostRegressor
    settings = {"iterations": 4, "depth": 3, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    model = maker(**settings | params).fit(numbers, y)
    model.save_model(str(FOLDER / name), format="json")
    content = json.loads((FOLDER / name).read_text())
    for part in ("catboost_version_info", "output_options", "model_guid", "train_finish_time"):
        content["model_info"].pop(part, None)
    (FOLDER / name).write_text(json.dumps(content, separators=(",", ":")) + "\n")
    keep(name, model.predict_proba(number_rows) if is_classifier else model.predict(number_rows), "numbers")


os.chdir(FOLDER)
make_xgboost("xgboost_binary.json", {"objective": "binary:logistic"}, two)
make_xgboost("xgboost_base.ubj", {"objective": "binary:logistic", "base_score": 0.2}, two)
make_xgboost("xgboost_regression.json", {"objective": "reg:squarederror"}, score, kind="numbers")
make_xgboost("xgboost_pruned.json", {"tree_method": "exact", "gamma": 20.0}, score, kind="numbers")
make_xgboost("xgboost_classes.ubj", {"objective": "multi:softprob", "num_class": 3}, three)
make_xgboost("xgboost_frame.json", {"objective": "reg:squarederror"}, score, kind="frame")
dart = {"booster": "dart", "rate_drop": 0.5, "num_parallel_tree": 2, "subsample": 0.8}
make_xgboost("xgboost_dart.ubj", {"objective": "multi:softprob", "num_class": 3, **dart}, three, n_rounds=2)
bags = {"num_parallel_tree": 4, "subsample": 0.6, "colsample_bynode": 0.7, "eta": 1}
make_xgboost("xgboost_forest.json", {"objective": "binary:logistic", **bags}, two, n_rounds=1, kind="numbers")
make_xgboost("xgboost_poisson.json", {"objective": "count:poisson"}, positive, kind="numbers")
make_xgboost("xgboost_tweedie.ubj", {"objective": "reg:tweedie"}, positive, kind="numbers")
make_xgboost("xgboost_quantile.json", {"objective": "reg:quantileerror", "quantile_alpha": 0.3}, score, kind="numbers")

make_lightgbm("lightgbm_binary.txt", {"objective": "binary", "sigmoid": 0.7}, two)
make_lightgbm("lightgbm_regression.txt", {"objective": "regression"}, score, kind="numbers")
make_lightgbm("lightgbm_classes.txt", {"objective": "multiclass", "num_class": 3}, three)
make_lightgbm("lightgbm_frame.txt", {"objective": "regression"}, score, kind="frame")
make_lightgbm("lightgbm_dart.txt", {"objective": "regression", "boosting": "dart"}, score)
bags = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.6}
make_lightgbm("lightgbm_forest.txt", {"objective": "binary", **bags}, two)
make_lightgbm("lightgbm_linear.txt", {"objective": "regression", "linear_tree": True}, score)
make_lightgbm("lightgbm_poisson.txt", {"objective": "poisson"}, positive, kind="numbers")
make_lightgbm("lightgbm_tweedie.txt", {"objective": "tweedie"}, positive, kind="numbers")
make_lightgbm("lightgbm_quantile.txt", {"objective": "quantile", "alpha": 0.3}, score, kind="numbers")
make_lightgbm("lightgbm_zero.txt", {"objective": "regression", "zero_as_missing": True}, score)
make_lightgbm("lightgbm_no_missing.txt", {"objective": "regression", "use_missing": False}, score, kind="numbers")

make_catboost("catboost_binary.json", {}, np.array(["no", "yes"])[two], is_classifier=True)
make_catboost("catboost_classes.json", {}, three, is_classifier=True)
make_catboost("catboost_regression.json", {"nan_mode": "Max"}, score)
make_catboost("catboost_poisson.json", {"loss_function": "Poisson"}, positive)
make_catboost("catboost_quantile.json", {"loss_function": "Quantile:alpha=0.3"}, score)
make_catboost("catboost_lossguide.json", {"grow_policy": "Lossguide", "max_leaves": 6}, score)

cells = [[None if np.isnan(x) else x for x in row] for row in rows.tolist()]
text = frame(rows)
colours = [None if pd.isna(x) else str(x) for x in text["colour"]]
content = {"cells": cells, "colour": colours, "year": [int(x) for x in text["year"]], "expected": expected}
(FOLDER / "rows.json").write_text(json.dumps(content, separators=(",", ":")) + "\n")
