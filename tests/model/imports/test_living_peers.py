"""Imports of models that XGBoost, LightGBM and CatBoost fit here and now, of every option that the readers accept.

Each is compared with its library on 10,000 rows: a tenth missing, codes that were never seen, values on thresholds.
Without the libraries, `test_peer_models.py` compares with what they predicted for files that are kept.
"""

import numpy as np
import pytest

import spinney
from spinney.model.imports.foreign_file import NotImportedError

N_ROWS, N_FRESH = 600, 10_000
N_CODES = 7
CODES = [4, 5]


def draw(n_rows, seed, n_codes):
    """Four columns of numbers and two of codes, a tenth missing, and a score."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 6)).astype(np.float32).astype(np.float64)
    X[:, 1] = np.round(X[:, 1], 1)
    X[:, 2] = np.where(rng.random(n_rows) < 0.4, 0.0, np.round(3 * X[:, 2]))
    X[:, CODES[0]], X[:, CODES[1]] = rng.integers(0, n_codes, n_rows), rng.integers(0, 6 * n_codes, n_rows)
    score = X[:, 0] + 0.5 * X[:, 1] * X[:, 2] + 2 * np.sin(X[:, 4]) + (X[:, 5] % 3 == 0)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, score


X, SCORE = draw(N_ROWS, 0, N_CODES)
FRESH = draw(N_FRESH, 1, N_CODES + 2)[0]  # with codes that no model has seen
TWO, THREE = (SCORE > 0).astype(int), np.digitize(SCORE, [-1.0, 1.0])
POSITIVE, SHARE = np.abs(SCORE) / 5 + 0.01, 1.0 / (1.0 + np.exp(-SCORE))
GROUPS = np.full(N_ROWS // 20, 20)


def pairs(targets, options, few):
    """Each objective without options, and each option with some objectives."""
    return [(target, {}) for target in targets] + [(target, option) for option in options for target in few]


def rows_on_thresholds(predictor, n_columns, *, has_infinite):
    """The fresh rows, of which some have the very thresholds of the model, and values on either side."""
    rows, rng = FRESH[:, :n_columns].copy(), np.random.default_rng(2)
    forest = predictor.forest
    for t in range(min(len(forest), 20)):
        tree = forest[t]
        for node in np.flatnonzero(~tree.is_leaf & (tree.kind == 1)).tolist():
            cut, column = float(tree.threshold[node]), int(tree.feature[node])
            for value in (cut, np.nextafter(cut, np.inf), float(np.float32(cut))):
                rows[rng.integers(0, len(rows), 2), column] = value if np.isfinite(value) else 0.0
    if has_infinite:
        rows[rng.integers(0, len(rows), 50), 0] = np.inf
        rows[rng.integers(0, len(rows), 50), 3] = -np.inf
    return rows


def said(predictor, rows, like):
    """What an import says in the form of the library: a probability for the second of two classes."""
    if predictor.classes is None:
        return predictor.predict(rows)
    shares = predictor.predict_proba(rows)
    return shares if np.ndim(like) == 2 else shares[:, 1]


# --- XGBoost ------------------------------------------------------------------------------------------------------

XGB_OBJECTIVES = {
    "reg:squarederror": SCORE,
    "reg:squaredlogerror": POSITIVE,
    "reg:absoluteerror": SCORE,
    "reg:pseudohubererror": SCORE,
    "reg:quantileerror": SCORE,
    "reg:gamma": POSITIVE,
    "reg:tweedie": POSITIVE,
    "reg:logistic": SHARE,
    "count:poisson": POSITIVE,
    "survival:cox": POSITIVE,
    "survival:aft": POSITIVE,
    "binary:logistic": TWO,
    "binary:logitraw": TWO,
    "multi:softprob": THREE,
    "rank:pairwise": TWO,
    "rank:ndcg": TWO,
    "rank:map": TWO,
}
XGB_OPTIONS = [
    {"booster": "dart", "rate_drop": 0.5, "sample_type": "weighted", "normalize_type": "forest"},
    {"booster": "dart", "rate_drop": 0.5, "one_drop": 1, "skip_drop": 0.3},
    {"tree_method": "approx"},
    {"grow_policy": "lossguide", "max_leaves": 20, "max_depth": 0},
    {"num_parallel_tree": 3, "subsample": 0.7, "colsample_bynode": 0.6},
    {"max_cat_to_onehot": 100},
    {"max_cat_to_onehot": 1, "max_cat_threshold": 3},
    {"max_depth": 1},
    {"max_depth": 12, "min_child_weight": 0},
    {"base_score": 0.7},
    {"gamma": 1e9},
    {"reg_alpha": 5.0, "reg_lambda": 9.0, "max_delta_step": 0.3},
]


@pytest.mark.parametrize(
    ("objective", "option"), pairs(XGB_OBJECTIVES, XGB_OPTIONS, ("reg:squarederror", "multi:softprob")), ids=str
)
def test_xgboost(objective, option):
    xgb = pytest.importorskip("xgboost", reason="XGBoost is not installed")
    types = ["q"] * 4 + ["c"] * 2
    params = {"objective": objective, "nthread": 1, "max_depth": 4, **option}
    params |= {"num_class": 3} if objective.startswith("multi") else {}
    params |= {"quantile_alpha": 0.3} if objective == "reg:quantileerror" else {}
    data = xgb.DMatrix(X, XGB_OBJECTIVES[objective], feature_types=types, enable_categorical=True)
    if objective.startswith("rank"):
        data.set_group(GROUPS)
    if objective == "survival:aft":
        data.set_float_info("label_lower_bound", POSITIVE)
        data.set_float_info("label_upper_bound", POSITIVE * 2.0)
    booster = xgb.train(params, data, 6)
    predictor = spinney.from_xgboost(booster)
    rows = rows_on_thresholds(predictor, 6, has_infinite=False)  # which XGBoost refuses
    expected = booster.predict(xgb.DMatrix(rows, feature_types=types, enable_categorical=True))
    np.testing.assert_allclose(said(predictor, rows, expected), expected, rtol=3e-6, atol=3e-6)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"booster": "gblinear"}, "gblinear"),
        ({"objective": "binary:hinge"}, "binary:hinge"),
        ({"objective": "reg:quantileerror", "quantile_alpha": [0.1, 0.9]}, "quantile"),
        ({"multi_strategy": "multi_output_tree", "objective": "multi:softprob", "num_class": 3}, "vector|targets"),
    ],
)
def test_what_xgboost_can_and_the_reader_cannot_is_refused_by_name(params, match):
    xgb = pytest.importorskip("xgboost", reason="XGBoost is not installed")
    y = THREE if "num_class" in params else TWO
    booster = xgb.train({"nthread": 1, **params}, xgb.DMatrix(X[:, :4], y), 2)
    with pytest.raises(NotImportedError, match=match):
        spinney.from_xgboost(booster)


# --- LightGBM -----------------------------------------------------------------------------------------------------

LGB_OBJECTIVES = {
    "regression": SCORE,
    "regression_l1": SCORE,
    "huber": SCORE,
    "fair": SCORE,
    "quantile": SCORE,
    "mape": SCORE,
    "poisson": POSITIVE,
    "gamma": POSITIVE,
    "tweedie": POSITIVE,
    "binary": TWO,
    "cross_entropy": SHARE,
    "multiclass": THREE,
    "lambdarank": TWO,
    "rank_xendcg": TWO,
}
LGB_OPTIONS = [
    {"boosting": "dart", "drop_rate": 0.5},
    {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.6},
    {"data_sample_strategy": "goss"},
    {"linear_tree": True},
    {"zero_as_missing": True},
    {"use_missing": False},
    {"max_cat_to_onehot": 100},
    {"max_cat_to_onehot": 1, "max_cat_threshold": 4},
    {"extra_trees": True},
    {"num_leaves": 2},
    {"num_leaves": 200, "min_data_in_leaf": 1},
    {"path_smooth": 3.0, "lambda_l1": 0.5, "max_delta_step": 0.4},
    {"min_data_in_leaf": 10_000},
    {"sigmoid": 0.4},
    {"boost_from_average": False},
]


@pytest.mark.parametrize(
    ("objective", "option"), pairs(LGB_OBJECTIVES, LGB_OPTIONS, ("regression", "binary", "multiclass")), ids=str
)
def test_lightgbm(objective, option):
    lgb = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    params = {"objective": objective, "num_threads": 1, "verbose": -1, "num_leaves": 12, "min_data_in_leaf": 3}
    params |= {"min_data_per_group": 3, "cat_smooth": 1, **option} | (
        {"num_class": 3} if objective == "multiclass" else {}
    )
    group = GROUPS if "rank" in objective else None
    data = lgb.Dataset(X, LGB_OBJECTIVES[objective], categorical_feature=CODES, group=group)
    booster = lgb.train(params, data, 6)
    predictor = spinney.from_lightgbm(booster)
    rows = rows_on_thresholds(predictor, 6, has_infinite="linear_tree" not in option)
    expected = booster.predict(rows)
    np.testing.assert_allclose(said(predictor, rows, expected), expected, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(
    ("params", "y", "match"),
    [
        ({"objective": "multiclassova", "num_class": 3}, THREE, "multiclassova"),
        ({"objective": "cross_entropy_lambda"}, SHARE, "cross_entropy_lambda"),
        ({"objective": "regression", "reg_sqrt": True}, SCORE, "sqrt"),
    ],
)
def test_what_lightgbm_can_and_the_reader_cannot_is_refused_by_name(params, y, match):
    lgb = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    booster = lgb.train({"verbose": -1, "num_threads": 1, **params}, lgb.Dataset(X[:, :4], y), 2)
    with pytest.raises(NotImportedError, match=match):
        spinney.from_lightgbm(booster)


# --- CatBoost -----------------------------------------------------------------------------------------------------

CAT_LOSSES = {
    "RMSE": SCORE,
    "MAE": SCORE,
    "Quantile:alpha=0.3": SCORE,
    "MAPE": SCORE,
    "Huber:delta=1": SCORE,
    "LogCosh": SCORE,
    "Expectile:alpha=0.3": SCORE,
    "Lq:q=3": SCORE,
    "Poisson": POSITIVE,
    "Tweedie:variance_power=1.5": POSITIVE,
    "Logloss": TWO,
    "CrossEntropy": SHARE,
    "MultiClass": THREE,
}
CAT_OPTIONS = [
    {"depth": 1},
    {"depth": 9},
    {"nan_mode": "Max"},
    {"border_count": 3},
    {"border_count": 1000},
    {"grow_policy": "Depthwise"},
    {"grow_policy": "Lossguide", "max_leaves": 9},
    {"boosting_type": "Ordered"},
    {"model_shrink_rate": 0.1, "langevin": False},
]


@pytest.mark.parametrize(("loss", "option"), pairs(CAT_LOSSES, CAT_OPTIONS, ("RMSE", "MultiClass")), ids=str)
def test_catboost(loss, option):
    catboost = pytest.importorskip("catboost", reason="CatBoost is not installed")
    is_class = loss in {"Logloss", "CrossEntropy", "MultiClass"}
    maker = catboost.CatBoostClassifier if is_class else catboost.CatBoostRegressor
    params = {"iterations": 12, "depth": 4, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    model = maker(**params | {"loss_function": loss} | option).fit(X[:, :4], CAT_LOSSES[loss])
    predictor = spinney.from_catboost(model)
    rows = rows_on_thresholds(predictor, 4, has_infinite=True)
    expected = model.predict_proba(rows) if is_class else model.predict(rows)
    np.testing.assert_allclose(said(predictor, rows, expected), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    ("params", "y", "match"),
    [
        ({"loss_function": "MultiClassOneVsAll"}, THREE, "MultiClassOneVsAll"),
        ({"loss_function": "MultiQuantile:alpha=0.1,0.9"}, SCORE, "MultiQuantile"),
        ({"loss_function": "RMSEWithUncertainty"}, SCORE, "RMSEWithUncertainty"),
        ({"loss_function": "RMSE", "cat_features": [0]}, SCORE, "categorical_features"),
    ],
)
def test_what_catboost_can_and_the_reader_cannot_is_refused_by_name(params, y, match):
    catboost = pytest.importorskip("catboost", reason="CatBoost is not installed")
    table = X[:, :4]
    if "cat_features" in params:
        table = [[str(row[0]), *row[1:]] for row in table.tolist()]
    model = catboost.CatBoost(
        {"iterations": 2, "verbose": 0, "allow_writing_files": False, "thread_count": 1, **params}
    )
    with pytest.raises(NotImportedError, match=match):
        spinney.from_catboost(model.fit(table, y))


# --- what each column added ---------------------------------------------------------------------------------------


def test_shap_values_are_those_of_the_libraries():
    xgb = pytest.importorskip("xgboost", reason="XGBoost is not installed")
    lgb = pytest.importorskip("lightgbm", reason="LightGBM is not installed")
    numbers = X[:, :4]
    rows = FRESH[:300, :4]
    booster = xgb.train({"nthread": 1, "max_depth": 4}, xgb.DMatrix(numbers, SCORE), 6)
    other = lgb.train({"num_threads": 1, "verbose": -1, "num_leaves": 12}, lgb.Dataset(numbers, SCORE), 6)
    for predictor, theirs in (
        (spinney.from_xgboost(booster), booster.predict(xgb.DMatrix(rows), pred_contribs=True)),
        (spinney.from_lightgbm(other), other.predict(rows, pred_contrib=True)),
    ):
        found = spinney.shap_values(predictor, rows)
        np.testing.assert_allclose(found.values, theirs[:, :-1], atol=2e-6)
        np.testing.assert_allclose(found.base, theirs[:, -1], atol=2e-6)
    pairs = booster.predict(xgb.DMatrix(rows), pred_interactions=True)[:, :-1, :-1]
    predictor = spinney.from_xgboost(booster)
    np.testing.assert_allclose(spinney.shap_values(predictor, rows, interactions=True).interactions, pairs, atol=2e-6)


def test_shap_values_of_symmetric_trees_are_those_of_catboost():
    """Such a tree could ask its tests in any order, on which path-dependent values depend; many leaves are empty.

    CatBoost's values of its other trees do not always add up to its answers: no truth to compare with.
    """
    catboost = pytest.importorskip("catboost", reason="CatBoost is not installed")
    params = {"iterations": 8, "verbose": 0, "allow_writing_files": False, "thread_count": 1}
    model = catboost.CatBoost(params).fit(X[:, :4], SCORE)
    rows = FRESH[:300, :4]
    theirs = model.get_feature_importance(catboost.Pool(rows), type="ShapValues")
    found = spinney.shap_values(spinney.from_catboost(model), rows)
    np.testing.assert_allclose(found.values, theirs[:, :-1], atol=1e-9)
    np.testing.assert_allclose(found.base, theirs[:, -1], atol=1e-9)
