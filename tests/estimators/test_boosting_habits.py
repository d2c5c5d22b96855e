"""Habits of people who come from XGBoost and LightGBM: several evaluation sets, several quantiles, first rounds."""

import numpy as np
import pytest
from sklearn.metrics import get_scorer, log_loss, mean_absolute_error, mean_pinball_loss

from plain_boosting import plain
from spinney import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    ID3Classifier,
    load_model,
    load_predictor,
)
from spinney._elementary import log

pytestmark = pytest.mark.compiled(
    reason="estimators; interpreted kernels are held to the truth by test_boosting_oracle and test_boosting_truth"
)

RNG = np.random.default_rng(5)
X = RNG.normal(size=(360, 4))
NUMBERS = X[:, 0] + RNG.normal(size=360) * (0.3 + np.abs(X[:, 1]))
CLASSES = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + RNG.normal(size=360) / 3, [-0.5, 0.5])
TRAIN, ONE, TWO = slice(0, 200), slice(200, 280), slice(280, 360)
FEW = plain(n_estimators=12, min_samples_leaf=5, random_state=3)
DRAWN = {**FEW, "subsample": 0.7, "max_features": 2, "max_features_per_tree": 3}


# --- several evaluation sets --------------------------------------------------------------------------------


def test_each_set_has_the_curves_that_it_has_alone():
    weight = RNG.random(80) + 0.1
    kind = GradientBoostingClassifier(scoring="accuracy", **FEW)
    several = kind.fit(
        X[TRAIN], CLASSES[TRAIN], eval_set=[(X[ONE], CLASSES[ONE], weight), (X[TWO], CLASSES[TWO])]
    ).evals_result_
    assert list(several) == ["train", "valid_0", "valid_1"]
    alone = kind.fit(X[TRAIN], CLASSES[TRAIN], X_val=X[ONE], y_val=CLASSES[ONE], sample_weight_val=weight).evals_result_
    assert several["valid_0"] == alone["valid"]
    assert several["train"] == alone["train"]
    alone = kind.fit(X[TRAIN], CLASSES[TRAIN], X_val=X[TWO], y_val=CLASSES[TWO]).evals_result_
    assert several["valid_1"] == alone["valid"]


def test_curves_are_the_losses_of_the_stages():
    model = GradientBoostingClassifier(**FEW)
    model.fit(
        X[TRAIN], CLASSES[TRAIN], eval_set=[(X[ONE], CLASSES[ONE]), (X[TWO], CLASSES[TWO])], eval_names=["a", "b"]
    )
    for name, rows in (("a", ONE), ("b", TWO)):
        expected = [log_loss(CLASSES[rows], p) for p in model.staged_predict_proba(X[rows])]
        np.testing.assert_allclose(model.evals_result_[name]["loss"], expected, rtol=1e-12)
    assert model.validation_score_.tolist() == model.evals_result_["b"]["loss"]


def test_the_last_set_decides_about_stopping():
    kind = GradientBoostingClassifier(
        **plain(n_estimators=60, min_samples_leaf=5, learning_rate=0.5, n_iter_no_change=3, random_state=3)
    )
    sets = {"one": (X[ONE], CLASSES[ONE]), "train": (X[TRAIN], CLASSES[TRAIN])}
    by_one = kind.fit(X[TRAIN], CLASSES[TRAIN], eval_set=[sets["train"], sets["one"]])
    n_rounds, best = by_one.n_estimators_, by_one.best_iteration_
    assert n_rounds == best + 3 < 60
    alone = kind.fit(X[TRAIN], CLASSES[TRAIN], X_val=X[ONE], y_val=CLASSES[ONE])
    assert (alone.n_estimators_, alone.best_iteration_) == (n_rounds, best)
    by_training = kind.fit(X[TRAIN], CLASSES[TRAIN], eval_set=[sets["one"], sets["train"]])
    assert by_training.best_iteration_ > best


def test_a_callback_sees_every_set():
    seen = []
    GradientBoostingRegressor(n_estimators=3).fit(
        X,
        NUMBERS,
        eval_set=[(X[ONE], NUMBERS[ONE])],
        eval_names="late",
        callbacks=lambda _, results: seen.append(results),
    )
    assert [sorted(results) for results in seen] == [["late", "train"]] * 3


def test_one_tuple_is_one_set_and_scores_come_along_in_a_list():
    model = GradientBoostingRegressor(**FEW)
    one = model.fit(X[TRAIN], NUMBERS[TRAIN], eval_set=(X[ONE], NUMBERS[ONE])).evals_result_
    assert one == model.fit(X[TRAIN], NUMBERS[TRAIN], eval_set=[(X[ONE], NUMBERS[ONE])]).evals_result_
    as_lists = model.fit(X[TRAIN], NUMBERS[TRAIN], eval_set=[[X[ONE], NUMBERS[ONE]]]).evals_result_
    assert one == as_lists
    weighted = [X[ONE], NUMBERS[ONE], np.arange(len(NUMBERS[ONE])) + 1.0]
    assert (
        model.fit(X[TRAIN], NUMBERS[TRAIN], eval_set=[weighted]).evals_result_
        == model.fit(X[TRAIN], NUMBERS[TRAIN], eval_set=[tuple(weighted)]).evals_result_
        != one
    )
    offset = X[:, 3]
    given = {"eval_set": [(X[ONE], NUMBERS[ONE]), (X[TWO], NUMBERS[TWO])], "init_score": offset[TRAIN]}
    several = model.fit(X[TRAIN], NUMBERS[TRAIN], init_score_val=[offset[ONE], offset[TWO]], **given).evals_result_
    alone = model.fit(
        X[TRAIN], NUMBERS[TRAIN], X_val=X[TWO], y_val=NUMBERS[TWO], init_score=offset[TRAIN], init_score_val=offset[TWO]
    )
    assert several["valid_1"] == alone.evals_result_["valid"]


def test_names_of_sets_are_kept_in_files(tmp_path):
    model = GradientBoostingRegressor(**FEW).fit(X, NUMBERS, eval_set=[(X[ONE], NUMBERS[ONE])], eval_names=["spring"])
    model.save_model(tmp_path / "model.spn")
    loaded = load_model(tmp_path / "model.spn")
    assert loaded.evals_result_ == model.evals_result_
    assert loaded.validation_score_.tolist() == model.evals_result_["spring"]["loss"]


PAIR = (X[ONE], NUMBERS[ONE])


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"eval_set": [PAIR], "X_val": X, "y_val": NUMBERS}, ValueError, "put all rows to evaluate on into eval_set"),
        ({"eval_set": [PAIR], "sample_weight_val": [1.0]}, ValueError, r"\(X, y, sample_weight\)"),
        ({"eval_set": []}, ValueError, "this list is empty"),
        ({"eval_set": X}, TypeError, "not ndarray"),
        ({"eval_set": [X]}, TypeError, r"eval_set\[0\] is ndarray"),
        ({"eval_set": [PAIR, (X,)]}, TypeError, r"eval_set\[1\] is a tuple of 1"),
        ({"eval_set": [PAIR, [X]]}, TypeError, r"eval_set\[1\] is a list of 1"),
        ({"eval_set": [PAIR, (X[:, :2], NUMBERS)]}, ValueError, r"eval_set\[1\]: X has 2 features"),
        ({"eval_set": [PAIR], "eval_names": ["train"]}, ValueError, "differ from each other and from 'train'"),
        ({"eval_set": [PAIR, PAIR], "eval_names": ["a", "a"]}, ValueError, "differ from each other"),
        ({"eval_set": [PAIR], "eval_names": ["a", "b"]}, ValueError, "must be 1 texts"),
        ({"eval_names": ["a"]}, ValueError, "eval_names belongs to eval_set"),
        ({"eval_set": [PAIR], "init_score_val": [1, 2]}, ValueError, "one array for each of its 1 sets"),
        ({"eval_set": [PAIR], "init_score_val": [NUMBERS[ONE]]}, ValueError, "belong together"),
    ],
)
def test_sets_that_are_none_are_refused(given, kind, message):
    with pytest.raises(kind, match=message):
        GradientBoostingRegressor(n_estimators=2).fit(X, NUMBERS, **given)


# --- several quantiles --------------------------------------------------------------------------------------

LEVELS = [0.1, 0.5, 0.9]


@pytest.mark.parametrize(
    "scoring", ["r2", get_scorer("neg_mean_absolute_error"), mean_absolute_error], ids=["name", "scorer", "metric"]
)
def test_a_score_of_one_prediction_a_row_is_refused_beside_several_quantiles(scoring):
    seen = []
    model = GradientBoostingRegressor(n_estimators=2, loss="quantile", alpha=LEVELS, scoring=scoring)
    with pytest.raises(
        ValueError, match=r"scoring='.*' takes one prediction for each row, but alpha names 3 quantiles"
    ):
        model.fit(X, NUMBERS, eval_set=[PAIR], callbacks=lambda *_: seen.append(True))
    assert not seen


def test_a_score_of_ones_own_sees_all_quantiles():
    shapes = set()

    def score(y_true, y_pred):
        shapes.add(y_pred.shape)
        return -float(np.abs(y_pred[:, 1] - y_true).mean())

    model = GradientBoostingRegressor(n_estimators=2, loss="quantile", alpha=LEVELS, scoring=score)
    model.fit(X, NUMBERS, eval_set=[PAIR])
    assert {shape[1] for shape in shapes} == {3}


def fit_quantiles(alpha, weight=None, **params):
    return GradientBoostingRegressor(loss="quantile", alpha=alpha, **params).fit(X, NUMBERS, sample_weight=weight)


@pytest.mark.parametrize("params", [FEW, DRAWN, {**FEW, "newton": False}, {**FEW, "max_bins": None, "n_jobs": 2}])
def test_quantiles_are_those_of_models_of_their_own_in_order(params):
    weight = RNG.random(len(X))
    together = fit_quantiles(LEVELS, weight, **params)
    alone = np.stack([fit_quantiles(level, weight, **params).predict(X) for level in LEVELS], axis=1)
    np.testing.assert_array_equal(together.predict(X), np.sort(alone, axis=1))
    assert together.predict(X).shape == (len(X), 3)


def test_quantiles_do_not_cross():
    params = plain(n_estimators=80, learning_rate=0.5, min_samples_leaf=2, max_leaf_nodes=40)
    levels = [0.45, 0.5, 0.55]
    alone = np.stack([fit_quantiles(level, **params).predict(X) for level in levels], axis=1)
    assert (np.diff(alone, axis=1) < 0.0).any()  # else this test would show nothing
    together = fit_quantiles(levels, **params)
    np.testing.assert_array_equal(together.predict(X), np.sort(alone, axis=1))
    assert all((np.diff(stage, axis=1) >= 0.0).all() for stage in together.staged_predict(X))


def test_the_loss_of_quantiles_is_the_mean_of_theirs():
    model = GradientBoostingRegressor(loss="quantile", alpha=LEVELS, **FEW)
    model.fit(X[TRAIN], NUMBERS[TRAIN], X_val=X[ONE], y_val=NUMBERS[ONE])
    raw = model.predictor().sum_rounds(X[ONE])
    losses = [mean_pinball_loss(NUMBERS[ONE], row, alpha=level) for row, level in zip(raw, LEVELS, strict=True)]
    assert model.validation_score_[-1] == pytest.approx(np.mean(losses), rel=1e-12)


def test_quantiles_beside_scores_that_rows_bring_along():
    offset = np.column_stack([X[:, 0], X[:, 1]])
    together = GradientBoostingRegressor(loss="quantile", alpha=[0.2, 0.8], **FEW).fit(X, NUMBERS, init_score=offset)
    raw = together.predictor().sum_rounds(X)
    for k, level in enumerate([0.2, 0.8]):
        alone = GradientBoostingRegressor(loss="quantile", alpha=level, **FEW).fit(X, NUMBERS, init_score=offset[:, k])
        np.testing.assert_array_equal(raw[k], alone.predict(X))
    expected = np.sort((raw.T + offset), axis=1)
    np.testing.assert_allclose(together.predict(X, init_score=offset), expected, rtol=1e-12)


def test_quantiles_in_files_and_predictors(tmp_path):
    model = fit_quantiles(LEVELS, **FEW)
    model.save_model(tmp_path / "model.spn")
    expected = model.predict(X)
    np.testing.assert_array_equal(load_model(tmp_path / "model.spn").predict(X), expected)
    predictor = load_predictor(tmp_path / "model.spn")
    np.testing.assert_array_equal(predictor.predict(X), expected)
    np.testing.assert_array_equal([predictor(row) for row in X[:20]], expected[:20])


def test_quantiles_can_be_grown_further_at_the_same_levels_only():
    model = GradientBoostingRegressor(loss="quantile", alpha=LEVELS, warm_start=True, **FEW).fit(X, NUMBERS)
    model.set_params(n_estimators=20).fit(X, NUMBERS)
    np.testing.assert_array_equal(model.predict(X), fit_quantiles(LEVELS, **{**FEW, "n_estimators": 20}).predict(X))
    with pytest.raises(ValueError, match="loss differs"):
        model.set_params(alpha=[0.1, 0.9], n_estimators=22).fit(X, NUMBERS)


def test_targets_near_the_end_of_float64_have_quantiles():
    model = GradientBoostingRegressor(loss="quantile", alpha=LEVELS, **FEW).fit(X, NUMBERS * 1e300)
    np.testing.assert_allclose(model.predict(X) / 1e300, fit_quantiles(LEVELS, **FEW).predict(X), rtol=1e-9)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"loss": "quantile", "alpha": [0.9, 0.1]}, "ascending"),
        ({"loss": "quantile", "alpha": [0.5, 0.5]}, "each there once"),
        ({"loss": "quantile", "alpha": []}, "a list, ascending"),
        ({"loss": "quantile", "alpha": [0.5, 1.0]}, "between 0 and 1"),
        ({"loss": "quantile", "alpha": [[0.5]]}, "a list"),
        ({"loss": "huber", "alpha": [0.5, 0.9]}, "one level; several are for loss='quantile'"),
    ],
)
def test_levels_that_are_none_are_refused(params, message):
    with pytest.raises(ValueError, match=message):
        GradientBoostingRegressor(**params).fit(X, NUMBERS)


def test_r2_of_several_quantiles_is_refused():
    with pytest.raises(ValueError, match="mean_pinball_loss"):
        fit_quantiles(LEVELS, **FEW).score(X, NUMBERS)


# --- the first rounds ---------------------------------------------------------------------------------------

STAGED = ("predict", "predict_proba", "decision_function")
BOOSTED = [
    GradientBoostingClassifier(**FEW),
    GradientBoostingClassifier(**{**FEW, "n_iter_no_change": 2, "learning_rate": 0.6}),
    GradientBoostingRegressor(loss="huber", **DRAWN),
    GradientBoostingRegressor(loss="quantile", alpha=[0.2, 0.8], **FEW),
    AdaBoostClassifier(n_estimators=6),
    AdaBoostClassifier(ID3Classifier(max_depth=2), n_estimators=4),
    AdaBoostRegressor(n_estimators=6),
]


@pytest.mark.parametrize("model", BOOSTED, ids=repr)
def test_the_first_rounds_are_the_stages(model):
    y = CLASSES if hasattr(model, "predict_proba") else NUMBERS
    model.fit(X, y)
    for name in STAGED:
        if hasattr(model, name):
            stages = list(getattr(model, f"staged_{name}")(X))
            assert len(stages) > 2
            for n, stage in enumerate(stages, 1):
                np.testing.assert_array_equal(getattr(model, name)(X, n_rounds=n), stage)
            default = getattr(model, name)(X)
            np.testing.assert_array_equal(default, getattr(model, name)(X, n_rounds=model.best_iteration_))
    for n in (0, len(stages) + 1, 1.5, True, "3"):
        with pytest.raises(ValueError, match=r"n_rounds=.* must be a whole number from 1 to"):
            model.predict(X, n_rounds=n)


def test_the_first_rounds_of_leaves_and_of_scores_that_rows_bring_along():
    model = GradientBoostingClassifier(**FEW).fit(X, CLASSES)
    np.testing.assert_array_equal(model.apply(X, n_rounds=5), model.apply(X)[:, :5])
    offset = RNG.normal(size=(len(X), 3))
    stages = list(model.staged_predict_proba(X, init_score=offset))
    np.testing.assert_array_equal(model.predict_proba(X, init_score=offset, n_rounds=5), stages[4])
    np.testing.assert_array_equal(model.predict_log_proba(X, n_rounds=5), log(list(model.staged_predict_proba(X))[4]))
