"""F14: whatever the fitted attributes in a file are, it is refused, or every public method of the model works."""

import contextlib
import pickle

import numpy as np
import pytest

import saved_models
from damaged_models import check_damages, load_changed, put
from spinney.ensemble import loss_names, losses
from spinney.ensemble.ranking_loss import LambdaRank
from spinney.ensemble.survival_losses import AFT, Cox
from spinney.estimators.kept import take_fitted
from spinney.model.container import BrokenFileError

pytestmark = pytest.mark.compiled(reason="files, and fits of hundreds of rounds")

NAMES = [
    "boosting", "boosting classes", "boosting early", "boosting quantiles",
    "adaboost", "adaboost classes", "adaboost numbers", "adaboost id3",
]  # fmt: skip


def use_everything(model, X, y, marks):
    """Call every public method, and read every public attribute."""
    for name in ("predict", "predict_proba", "predict_log_proba", "decision_function", "apply"):
        if hasattr(type(model), name):
            getattr(model, name)(X)
            if name != "apply" or hasattr(model, "evals_result_"):
                getattr(model, name)(X, n_rounds=1)
    for name in ("staged_predict", "staged_predict_proba", "staged_decision_function"):
        if hasattr(type(model), name):
            assert len(list(getattr(model, name)(X))) >= 1
    if not isinstance(getattr(model, "alpha", None), list):  # quantiles have no score
        assert np.isfinite(model.score(X, y))
    assert model.feature_importances_.shape == (X.shape[1],)
    for name in take_fitted(model):
        getattr(model, name)
    pickle.loads(pickle.dumps(model)).predict(X)
    if model._has_predictor():
        model.predictor()(np.nan_to_num(X[0]))
        assert model.forest_[0].to_text()
    if hasattr(model, "evals_result_"):
        add_rounds(model, X, y, marks)
    else:
        use_adaboost(model, X, y)


def add_rounds(model, X, y, marks):
    """Grow a loaded model further; with other marks than those of the data, these are taken for others."""
    model.set_params(warm_start=True, n_estimators=model.n_estimators_ + 1)
    same = model._marks == marks
    with contextlib.nullcontext() if same else pytest.raises(ValueError, match="warm_start adds rounds"):
        model.fit(X, y)
    model.predict(X)


def use_adaboost(model, X, y):
    """What only AdaBoost has."""
    assert len(list(model.staged_weights(X, y))) == len(model) == len(model.estimators_)
    assert len(list(model.staged_score(X, y))) == len(model)
    model[-1].predict(X)
    if hasattr(model, "margins"):
        model.margins(X, y)
        assert len(model.normalisers_) == len(model.training_bound()) == len(model)


@pytest.fixture(scope="module")
def fitted():
    """Models by name, each fitted once."""
    return {name: saved_models.fit(name)[0] for name in NAMES}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.sampled(3)
def test_f14_a_damaged_attribute_is_refused_or_does_no_harm(name, fitted):
    model = fitted[name]
    X, y = saved_models.data_of(name)
    marks = take_fitted(model).get("_marks")
    check_damages(model, lambda loaded: use_everything(loaded, X, y, marks))


@pytest.mark.parametrize("name", NAMES)
def test_f14_an_undamaged_model_passes(name, fitted):
    model = fitted[name]
    loaded = load_changed(model, lambda _: None)
    X, y = saved_models.data_of(name)
    marks = take_fitted(model).get("_marks")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    use_everything(loaded, X, y, marks)


@pytest.mark.parametrize(
    ("name", "attribute", "value", "words"),
    [
        ("boosting", "n_trees_per_iteration_", 63, "contradicts"),  # once: index 315 of 6 in feature_importances_
        ("boosting", "n_estimators_", 11, "contradicts"),
        ("boosting", "best_iteration_", 13, "13 of 12 rounds"),
        ("boosting", "best_iteration_", 0, "0 of 12 rounds"),
        ("boosting", "_marks", {}, "hashes"),
        ("boosting", "_seed", -1, "seed=-1"),
        ("boosting", "max_features_", 9, "max_features=9"),
        ("boosting early", "evals_result_", {"train": {"loss": [1.0]}}, "lists of"),
        ("boosting classes", "_start", np.zeros(3), "contradicts"),
        ("boosting classes", "_loss", losses.Softmax(3), "3 raw scores"),
        ("adaboost", "_unit", 0.25, "units of 0.25"),
        ("adaboost numbers", "_unit", 0.5, "units of 0.5"),
        ("adaboost", "estimator_errors_", np.full(12, 2.0), "shares"),
        ("adaboost", "n_iter_", 3, "of 3 rounds"),
        ("adaboost", "_base", saved_models.CARTRegressor(), "trees of a"),
        ("adaboost id3", "_members", [], "0 members"),
    ],
)
def test_f14_the_message_names_what_is_wrong(name, attribute, value, words, fitted):
    with pytest.raises(BrokenFileError, match=words):
        load_changed(fitted[name], put(attribute, value))


@pytest.mark.parametrize(
    ("loss", "numbers"),
    [
        (losses.Quantile, {"level": 7.0, "parameter": 7.0}),
        (losses.Quantile, {"level": 0.5}),
        (losses.Quantiles, {"_levels": (0.9, 0.1), "n_raw": 2}),
        (losses.Quantiles, {"_levels": (0.1, 0.9), "n_raw": 3}),
        (losses.Quantiles, {"_levels": [0.1], "n_raw": 1}),
        (losses.Huber, {"alpha": 0.9, "follows_rounds": False, "parameter": -1.0}),
        (losses.Huber, {"alpha": 0.9, "follows_rounds": 1}),
        (losses.Tweedie, {"parameter": 2.0}),
        (losses.Softmax, {"n_classes": 2, "n_raw": 2, "parameter": 2.0}),
        (losses.Softmax, {"n_classes": 3, "n_raw": 4, "parameter": 2.0}),
        (losses.SquaredError, {"parameter": 1.0}),
        (losses.LogLoss, {"n_classes": 9}),
        (LambdaRank, {"metric": "auc", "truncation": 30, "places": 10}),
        (LambdaRank, {"metric": "ndcg", "truncation": 0, "places": 10}),
        (Cox, {"times": np.array([1.0, 2.0]), "hazards": np.array([0.1])}),
        (Cox, {"times": np.array([2.0, 1.0]), "hazards": np.array([0.1, 0.2])}),
        (Cox, {"times": "1", "hazards": "2"}),
        (AFT, {"distribution": "normal", "sigma": -1.0}),
        (AFT, {"distribution": "cauchy", "sigma": 1.0}),
        (losses.SquaredErrors, {"n_raw": 1}),
        (losses.SquaredErrors, {"n_raw": 2.0}),
    ],
)
def test_f14_numbers_of_a_loss_are_checked(loss, numbers):
    with pytest.raises(ValueError, match=f"a loss {loss.__name__} cannot have"):
        loss.restore(numbers)


def test_every_loss_by_name_can_be_stored():
    makers = [loss_names.make_loss(name) for name in loss_names.NUMBERS] + [
        loss_names.make_loss("quantile", alpha=[0.1, 0.9])
    ]
    makers += [loss_names.make_loss(name, n_classes=2) for name in loss_names.CLASSES] + [
        loss_names.make_loss("log_loss", n_classes=4)
    ]
    makers += [LambdaRank("map", 30, 10), Cox(), AFT("normal", 1.0), losses.SquaredErrors(3)]
    assert {type(loss) for loss in makers} == set(loss_names.STORED)
    for loss in makers:
        assert vars(type(loss).restore(dict(vars(loss)))) == vars(loss)
