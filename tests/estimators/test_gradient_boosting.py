"""Gradient boosting: published results, predictions, early stopping, scores that rows bring along, warm starts."""

import copy

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_softmax, logsumexp
from sklearn.datasets import make_friedman1, make_hastie_10_2
from sklearn.metrics import (
    accuracy_score,
    log_loss,
    make_scorer,
    mean_absolute_error,
    mean_squared_error,
    roc_auc_score,
)
from sklearn.model_selection import KFold

from boosting_cases import make, make_frame, make_table, raw_of, same_forest, scripted
from plain_boosting import PLAIN, plain
from spinney import GradientBoostingClassifier, GradientBoostingRegressor
from spinney.ensemble.held_out import KEY, draw_held_out
from spinney.ensemble.sampling import draw_key

pytestmark = pytest.mark.compiled(
    reason="estimators; interpreted kernels are held to the truth by test_boosting_oracle and test_boosting_truth"
)

EXACT = {"max_bins": None, "min_samples_leaf": 1, "min_child_weight": 0.0}  # as scikit-learn's GradientBoosting


@pytest.fixture(params=[GradientBoostingClassifier, GradientBoostingRegressor], ids=["classifier", "regressor"])
def kind(request):
    return request.param


# --- known results ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hastie():
    return make_hastie_10_2(random_state=0)


def test_hastie_by_friedmans_method_is_scikit_learns(hastie):
    X, y = hastie
    settings = {**EXACT, "newton": False, "learning_rate": 1.0, "max_depth": 1, "max_leaf_nodes": None}
    model = GradientBoostingClassifier(**plain(**settings)).fit(X[:2000], y[:2000])
    assert model.score(X[2000:], y[2000:]) == pytest.approx(0.913, abs=5e-5)
    whole = GradientBoostingClassifier(**plain(**settings)).fit(X, y)
    published = [0.107, 0.105, 0.113, 0.0987, 0.0947, 0.107, 0.0916, 0.0972, 0.0958, 0.0906]
    np.testing.assert_allclose(whole.feature_importances_, published, atol=6e-4)


def test_hastie_is_near_histogram_boosting(hastie):
    X, y = hastie
    model = GradientBoostingClassifier(**PLAIN).fit(X[:2000], y[:2000])
    assert model.score(X[2000:], y[2000:]) == pytest.approx(0.8965, abs=0.01)


def test_friedman_and_its_warm_start_are_scikit_learns():
    X, y = make_friedman1(n_samples=1200, random_state=0, noise=1.0)
    settings = {**EXACT, "newton": False, "max_depth": 1, "max_leaf_nodes": None}
    model = GradientBoostingRegressor(**plain(**settings, warm_start=True)).fit(X[:200], y[:200])
    assert mean_squared_error(y[200:], model.predict(X[200:])) == pytest.approx(5.00, abs=0.01)
    model.set_params(n_estimators=200).fit(X[:200], y[:200])
    assert mean_squared_error(y[200:], model.predict(X[200:])) == pytest.approx(3.84, abs=0.01)
    once = GradientBoostingRegressor(**plain(**settings, n_estimators=200)).fit(X[:200], y[:200])
    assert same_forest(model, once)


def test_missing_values_are_scikit_learns():
    X = np.array([0, 1, 2, np.nan])[:, None]
    model = GradientBoostingClassifier(**plain(min_samples_leaf=1)).fit(X, [0, 0, 1, 1])
    assert model.predict(X).tolist() == [0, 0, 1, 1]
    X = np.array([0, np.nan, 1, 2, np.nan])[:, None]
    settings = {"min_samples_leaf": 1, "max_depth": 2, "learning_rate": 1.0, "n_estimators": 1}
    model = GradientBoostingClassifier(**plain(**settings)).fit(X, [0, 1, 0, 0, 1])
    assert model.predict(X).tolist() == [0, 1, 0, 0, 1]


BLOG = {  # R2 on California housing, five folds, at 50 and 500 trees
    "xgboost": (0.801, 0.848, {"learning_rate": 0.1, "max_depth": 5, "max_leaf_nodes": None, "reg_lambda": 1.0,
                               "min_samples_leaf": 1, "min_child_weight": 1.0}),
    "gradient boosting": (0.751, 0.802, {"learning_rate": 0.2, "max_depth": 8, "max_leaf_nodes": None, "newton": False,
                                         "min_samples_split": 5, "min_samples_leaf": 3, "min_weight_fraction_leaf": 0.1,
                                         "min_child_weight": 0.0, "max_bins": None}),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", BLOG)
def test_california_housing_as_the_blog_has_it(name, shared_data):
    frame = pd.read_parquet(shared_data / "california_housing.parquet")
    X, y = frame.drop(columns="MedHouseVal").to_numpy(), frame["MedHouseVal"].to_numpy()
    few, many, settings = BLOG[name]
    scores = []
    for train, test in KFold(5, shuffle=True, random_state=42).split(X):
        model = GradientBoostingRegressor(**plain(n_estimators=500, **settings)).fit(X[train], y[train])
        stages = list(model.staged_predict(X[test]))
        scores.append([1.0 - np.mean((stages[n - 1] - y[test]) ** 2) / np.var(y[test]) for n in (50, 500)])
    np.testing.assert_allclose(np.mean(scores, axis=0), [few, many], atol=0.003)


# --- predictions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_prediction_is_the_start_and_a_leaf_of_each_tree(n_classes):
    X, y = make_frame(n_classes=n_classes)
    model = make(GradientBoostingClassifier).fit(X, y)
    leaf = model.apply(X)
    n_raw = model.n_trees_per_iteration_
    assert n_raw == (1 if n_classes == 2 else 3)
    assert leaf.shape == (len(y), 10, n_raw)  # as scikit-learn's
    leaf = leaf.reshape(len(y), 10 * n_raw)
    expected = np.tile(model.init_, (len(y), 1))
    for t in range(leaf.shape[1]):
        expected[:, t % n_raw] += model.forest_[t].threshold[leaf[:, t]]
    found = model.decision_function(X)
    np.testing.assert_array_equal(found.reshape(len(y), n_raw), expected)
    share = model.predict_proba(X)
    truth = expit(found) if n_raw == 1 else np.exp(log_softmax(found, axis=1))
    np.testing.assert_allclose(share[:, 1] if n_raw == 1 else share, truth, rtol=1e-12)
    np.testing.assert_allclose(share.sum(axis=1), 1.0)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(share))
    np.testing.assert_array_equal(model.predict(X), share.argmax(axis=1))
    np.testing.assert_allclose(model.feature_importances_.sum(), 1.0)


def test_stages_are_those_of_the_first_rounds(kind):
    X, y = make_frame()
    model = make(kind).fit(X, y)
    methods = ["predict", "predict_proba", "decision_function"] if hasattr(model, "classes_") else ["predict"]
    for method in methods:
        stages = list(getattr(model, f"staged_{method}")(X))
        assert len(stages) == 10
        for n in (1, 4, 10):
            short = make(kind, n_estimators=n).fit(X, y)
            np.testing.assert_array_equal(stages[n - 1], getattr(short, method)(X))


def test_importances_are_gains(kind):
    X, y = make_table(n_classes=2)
    model = make(kind).fit(X, y)
    gain = np.zeros(3)
    for tree in model.forest_:
        below = tree.weight * tree.impurity
        for node in np.flatnonzero(~tree.is_leaf):
            child = tree.first_child[node]
            gain[tree.feature[node]] += below[node] - below[child] - below[child + 1]
    np.testing.assert_allclose(model.feature_importances_, gain / gain.sum(), rtol=1e-9)
    assert model.feature_importances_.argmax() == 0


@pytest.mark.parametrize("settings", [{}, {"subsample": 0.6, "max_features": 2}, {"n_iter_no_change": 3}], ids=str)
def test_threads_change_no_bit(kind, settings):
    X, y = make_frame(20_000, n_classes=2)
    models = [make(kind, n_estimators=6, n_jobs=n_jobs, **settings).fit(X, y) for n_jobs in (1, 2, 8)]
    assert all(same_forest(models[0], model) for model in models[1:])
    said = [raw_of(model, X) for model in models]
    assert all(np.array_equal(said[0], other) for other in said[1:])


def test_inputs_of_all_kinds_give_one_model(kind):
    X, y = make_frame()
    model = make(kind).fit(X, y)
    for other in (pl.from_pandas(X), X.astype({"a": np.float32})[X.columns]):
        np.testing.assert_allclose(raw_of(make(kind).fit(other, y), other), raw_of(model, X))
    numbers = X[["a", "b"]].to_numpy()
    plain = make(kind).fit(numbers, y)
    for other in (numbers.astype(np.float32), np.asfortranarray(numbers), numbers.tolist()):
        np.testing.assert_allclose(raw_of(plain, other), raw_of(plain, np.asarray(other, np.float64)))


def test_classes_of_any_type():
    X, codes = make_frame()
    first = make(GradientBoostingClassifier).fit(X, codes)
    for classes in (np.array(["low", "mid", "top"]), np.array([-3, 0, 7]), np.array(["x", "y", "z"], object)):
        model = make(GradientBoostingClassifier).fit(X, classes[codes])
        assert model.classes_.tolist() == classes.tolist()
        assert model.predict(X).dtype == classes.dtype
        np.testing.assert_array_equal(model.predict(X), classes[first.predict(X)])
    model = make(GradientBoostingClassifier).fit(X, codes > 0)
    assert model.predict(X).dtype == np.bool_


# --- weights ------------------------------------------------------------------------------------------------------


def test_rows_of_weight_0_are_left_out(kind):
    X, y = make_frame()
    weight = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    X.loc[weight == 0.0, "a"] = 1e6  # would change the bins
    model = make(kind).fit(X, y, weight)
    keep = weight > 0.0
    assert same_forest(model, make(kind).fit(X[keep], y[keep], weight[keep]))


def test_a_weight_of_2_is_two_rows(kind):
    X, y = make_frame()
    weight = np.random.default_rng(1).integers(1, 4, len(y))
    one = make(kind, min_samples_leaf=1).fit(X, y, weight)
    other = make(kind, min_samples_leaf=1).fit(X.loc[X.index.repeat(weight)], np.repeat(y, weight))
    np.testing.assert_array_equal(raw_of(one, X), raw_of(other, X))


def test_class_weights_are_weights():
    X, y = make_frame()
    factor = {0: 1.0, 1: 5.0, 2: 0.25}
    held = X[:60], y[:60]
    one = make(GradientBoostingClassifier, class_weight=factor).fit(X, y, X_val=held[0], y_val=held[1])
    weight = np.array([factor[c] for c in y])
    other = make(GradientBoostingClassifier)
    other.fit(X, y, weight, X_val=held[0], y_val=held[1], sample_weight_val=weight[:60])
    assert same_forest(one, other)
    assert one.evals_result_ == other.evals_result_
    balanced = make(GradientBoostingClassifier, class_weight="balanced").fit(X, y)
    weight = len(y) / 3 / np.bincount(y)
    assert same_forest(balanced, make(GradientBoostingClassifier).fit(X, y, weight[y]))


def test_a_class_of_weight_0_is_kept_and_never_predicted():
    X, y = make_frame()
    model = make(GradientBoostingClassifier).fit(X, y, (y != 1).astype(float))
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.predict_proba(X).shape == (len(y), 3)
    assert not (model.predict(X) == 1).any()


@pytest.mark.parametrize("exponent", [990, -990])
def test_weights_near_the_ends_of_numbers(kind, exponent):
    X, y = make_table()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    settings = {"reg_lambda": 1.0, "min_child_weight": 3.0, "gamma": 0.01}
    plain = make(kind, **settings).fit(X, y, weight)
    scaled = {name: np.ldexp(value, exponent) for name, value in settings.items()}
    model = make(kind, **scaled).fit(X, y, np.ldexp(weight, exponent))
    np.testing.assert_allclose(raw_of(model, X), raw_of(plain, X), rtol=1e-12)


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "huber", "quantile"])
@pytest.mark.parametrize("exponent", [1000, -1000])
def test_targets_near_the_ends_of_numbers(loss, exponent):
    X, _ = make_frame()
    y = X["a"].to_numpy() + np.random.default_rng(0).normal(size=len(X)) * 0.1
    plain = make(GradientBoostingRegressor, loss=loss).fit(X, y)
    model = make(GradientBoostingRegressor, loss=loss).fit(
        X, np.ldexp(y, exponent), X_val=X, y_val=np.ldexp(y, exponent)
    )
    np.testing.assert_allclose(model.predict(X), np.ldexp(plain.predict(X), exponent), rtol=1e-9)
    np.testing.assert_allclose(model.init_, np.ldexp(plain.init_, exponent), rtol=1e-12)
    assert np.isfinite(model.validation_score_).all()


# --- early stopping -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "patience", "tol", "best", "grown"),
    [
        ([1, 2, 3, 2, 2, 2, 2], 3, 0.0, 3, 6),
        ([1, 2, 3, 2, 2, 4, 3, 3, 3], 3, 0.0, 6, 9),
        ([5, 1, 1], 2, 0.0, 1, 3),
        ([1, 1, 1, 1], 3, 0.0, 1, 4),  # as good is not better
        ([1.0, 1.05, 1.1, 1.15, 1.2, 1.25], 2, 0.08, 5, 7),
        ([1, 2, 3, 4, 5, 6, 7, 8], 8, 0.0, 8, 8),
    ],
)
def test_patience_counts_rounds_without_a_better_score(kind, values, patience, tol, best, grown):
    X, y = make_table()
    values = [*values, *[0] * 3][:8] if grown > len(values) else values
    model = make(
        kind, n_estimators=8 if grown == 8 else 20, n_iter_no_change=patience, tol=tol, scoring=scripted(values)
    )
    model.fit(X, y, X_val=X, y_val=y)
    assert (model.best_iteration_, model.n_estimators_, model.n_iter_) == (best, grown, grown)
    assert model.evals_result_["valid"]["score"] == values[:grown]
    assert model.validation_score_.tolist() == values[:grown]
    assert len(model.forest_) == grown * model.n_trees_per_iteration_
    np.testing.assert_array_equal(model.predict(X), list(model.staged_predict(X))[best - 1])
    assert model.apply(X).shape[1] == best


@pytest.mark.parametrize("subsample", [1.0, 0.5])
def test_losses_of_rounds_are_those_of_the_stages(subsample):
    X, y = make_frame()
    other, truth = make_frame(seed=1)
    weight, weight_val = np.random.default_rng(2).uniform(0.5, 2.0, (2, len(y)))
    model = make(GradientBoostingClassifier, subsample=subsample)
    model.fit(X, y, weight, X_val=other, y_val=truth, sample_weight_val=weight_val)
    train = [log_loss(y, p, sample_weight=weight) for p in model.staged_predict_proba(X)]
    valid = [log_loss(truth, p, sample_weight=weight_val) for p in model.staged_predict_proba(other)]
    np.testing.assert_allclose(model.train_score_, train, rtol=1e-9)
    np.testing.assert_allclose(model.validation_score_, valid, rtol=1e-9)
    assert model.evals_result_ == {
        "train": {"loss": model.train_score_.tolist()},
        "valid": {"loss": model.validation_score_.tolist()},
    }
    assert model.best_iteration_ == 10  # nobody asked to stop


@pytest.mark.parametrize("is_weighed", [False, True])
@pytest.mark.parametrize(
    "scoring", ["accuracy", "roc_auc", "neg_log_loss", make_scorer(accuracy_score), accuracy_score]
)
def test_any_scorer_will_do(scoring, is_weighed):
    X, y = make_frame(n_classes=2)
    other, truth = make_frame(seed=1, n_classes=2)
    weight = np.random.default_rng(2).uniform(0.5, 2.0, len(y)) if is_weighed else None
    model = make(GradientBoostingClassifier, scoring=scoring, n_iter_no_change=50)
    model.fit(X, y, X_val=other, y_val=truth, sample_weight_val=weight)
    name = scoring if isinstance(scoring, str) else "accuracy_score"
    assert list(model.evals_result_["valid"]) == ["loss", name]
    share = list(model.staged_predict_proba(other))
    expected = {
        "roc_auc": lambda raw, _: roc_auc_score(truth, raw, sample_weight=weight),
        "neg_log_loss": lambda _, p: -log_loss(truth, p, sample_weight=weight),
    }.get(name, lambda _, p: accuracy_score(truth, p.argmax(axis=1), sample_weight=weight))
    raw = model.staged_decision_function(other)
    np.testing.assert_allclose(model.validation_score_, [*map(expected, raw, share)], rtol=1e-9)
    assert model.best_iteration_ == 1 + int(np.argmax(model.validation_score_))


def test_a_scorer_is_given_the_rows_of_the_user():
    X, y = make_frame(n_classes=2)
    seen = []

    def score(model, X, y_true):
        seen.append((X, y_true))
        return accuracy_score(y_true, model.predict(X))

    names = np.array(["no", "yes"])
    make(GradientBoostingClassifier, scoring=score).fit(X, names[y], X_val=X[:50], y_val=names[y][:50])
    pd.testing.assert_frame_equal(seen[0][0], X[:50])
    assert seen[0][1].tolist() == names[y][:50].tolist()
    seen.clear()
    make(GradientBoostingClassifier, scoring=score, n_iter_no_change=2).fit(X, names[y])
    assert isinstance(seen[0][0], pd.DataFrame)
    assert len(seen[0][0]) == 30

    def greedy(model, X, y_true):
        return accuracy_score(y_true, model.predict(X[:10]))

    with pytest.raises(ValueError, match="for its own X only"):
        make(GradientBoostingClassifier, scoring=greedy).fit(X, y, X_val=X[:50], y_val=y[:50])


def test_a_regressor_stops_by_its_loss_or_a_metric():
    X, y = make_friedman1(n_samples=400, random_state=0, noise=1.0)
    settings = {"n_estimators": 500, "n_iter_no_change": 5, "learning_rate": 0.3}
    model = make(GradientBoostingRegressor, **settings).fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    losses = [mean_squared_error(y[200:], p) / 2 for p in model.staged_predict(X[200:])]
    np.testing.assert_allclose(model.validation_score_, losses, rtol=1e-9)
    assert model.best_iteration_ == 1 + int(np.argmin(losses)) == model.n_estimators_ - 5
    scorer = make_scorer(mean_absolute_error, greater_is_better=False)
    model = make(GradientBoostingRegressor, **settings, scoring=scorer)
    model.fit(X[:200], y[:200], X_val=X[200:], y_val=y[200:])
    errors = [mean_absolute_error(y[200:], p) for p in model.staged_predict(X[200:])]
    assert model.best_iteration_ == 1 + int(np.argmin(errors))


@pytest.mark.parametrize("is_weighed", [False, True])
def test_a_fraction_is_held_out_by_class_and_not_learnt_from(kind, is_weighed):
    X, y = make_frame()
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float) if is_weighed else None
    model = make(kind, n_iter_no_change=3, validation_fraction=0.2).fit(X, y, weight)
    codes = y.astype(np.int32) if kind is GradientBoostingClassifier else None
    is_used = None if weight is None else weight > 0.0
    held = draw_held_out(0.2, len(y), is_used, codes, draw_key(model._seed, KEY))
    n_used = len(y) if is_used is None else np.count_nonzero(is_used)
    assert np.count_nonzero(held) == -(-n_used // 5)
    if codes is not None:
        of_class = np.bincount(codes[held]) / np.bincount(codes if is_used is None else codes[is_used])
        assert np.all(np.abs(of_class - 0.2) < 0.02)
    rest = ~held
    given = make(kind, n_iter_no_change=3)
    at, of = (None, None) if weight is None else (weight[rest], weight[held])
    given.fit(X[rest], y[rest], at, X_val=X[held], y_val=y[held], sample_weight_val=of)
    assert given.evals_result_ == model.evals_result_
    np.testing.assert_array_equal(raw_of(given, X), raw_of(model, X))


def test_fault_54_a_class_of_one_row_stays_in_training():
    X, y = make_frame()
    y = y.astype(str)
    y[7] = "lone"
    model = make(GradientBoostingClassifier, n_iter_no_change=3, min_samples_leaf=1)
    with pytest.warns(UserWarning, match="Of 1 of the 4 classes there is a single row"):
        model.fit(X, y)
    assert model.predict_proba(X).shape == (len(y), 4)
    codes = np.unique(y, return_inverse=True)[1].astype(np.int32)
    with pytest.warns(UserWarning, match="there is a single row"):
        held = draw_held_out(0.1, len(y), None, codes, 0)
    assert not held[7]


def test_every_class_keeps_a_row_to_learn_from():
    codes = np.array([0] * 20 + [1] * 2 + [2] * 2, np.int32)
    for seed in range(20):
        held = draw_held_out(0.9, len(codes), None, codes, seed)
        assert set(codes[~held]) == {0, 1, 2}


def test_time_limits_the_rounds(kind):
    X, y = make_table(2000)
    model = make(kind, n_estimators=100_000, max_time=0.2).fit(X, y)
    assert 1 <= model.n_estimators_ < 100_000
    assert model.best_iteration_ == model.n_estimators_
    np.testing.assert_array_equal(raw_of(model, X), raw_of(make(kind, n_estimators=model.n_estimators_).fit(X, y), X))
    assert make(kind, max_time=1e-9).fit(X, y).n_estimators_ == 1


def test_training_losses_are_always_there(kind, capsys):
    X, y = make_table()
    model = make(kind).fit(X, y)
    quiet = model.train_score_
    assert model.evals_result_ == {"train": {"loss": quiet.tolist()}}
    model.set_params(verbose=2).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10
    assert lines[0].startswith("round     1  train loss ")
    np.testing.assert_array_equal(model.train_score_, quiet)
    model.set_params(verbose=1, n_estimators=35).fit(X, y)
    assert [int(line.split()[1]) for line in capsys.readouterr().out.splitlines()] == [*range(1, 11), 20, 30]
    other = (lambda y, raw: raw - y, lambda y, raw: np.ones(len(y)))  # noqa: ARG005
    model.set_params(verbose=0, loss=other).fit(X, y)  # derivatives tell no value
    assert not hasattr(model, "train_score_")
    assert model.evals_result_ == {}


# --- scores that rows bring along ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_model_goes_on_from_another_ones_scores(n_classes):
    X, y = make_frame(n_classes=n_classes)
    whole = make(GradientBoostingClassifier, n_estimators=12).fit(X, y)
    first = make(GradientBoostingClassifier, n_estimators=5).fit(X, y)
    offset = first.decision_function(X)
    second = make(GradientBoostingClassifier, n_estimators=7, init="zero").fit(X, y, init_score=offset)
    assert second.init_.tolist() == [0.0] * second.n_trees_per_iteration_
    np.testing.assert_array_equal(second.decision_function(X, init_score=offset), whole.decision_function(X))
    np.testing.assert_array_equal(second.predict_proba(X, init_score=offset), whole.predict_proba(X))
    np.testing.assert_array_equal(second.predict(X, init_score=offset), whole.predict(X))
    np.testing.assert_array_equal(
        list(second.staged_predict_proba(X, init_score=offset)), list(whole.staged_predict_proba(X))[5:]
    )
    # without them, the rounds of the second model alone
    np.testing.assert_allclose(second.decision_function(X) + offset, whole.decision_function(X), atol=1e-12)


LOSSES = {  # of y and raw, up to a constant
    "squared_error": lambda y, raw: (y - raw) ** 2 / 2,
    "absolute_error": lambda y, raw: np.abs(y - raw),
    "quantile": lambda y, raw: np.maximum(0.9 * (y - raw), -0.1 * (y - raw)),
    "poisson": lambda y, raw: np.exp(raw) - y * raw,
    "gamma": lambda y, raw: raw + y * np.exp(-raw),
    "tweedie": lambda y, raw: np.exp(0.5 * raw) / 0.5 + y * np.exp(-0.5 * raw) / 0.5,
}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("is_weighed", [False, True])
def test_the_start_is_the_best_constant_beside_the_scores(loss, is_weighed):
    rng = np.random.default_rng(3)
    X, offset = rng.normal(size=(400, 2)), rng.normal(size=400)
    y = rng.gamma(2.0, np.exp(X[:, 0] + offset)) + 0.1
    weight = rng.uniform(0.5, 2.0, 400) if is_weighed else None
    model = make(GradientBoostingRegressor, loss=loss).fit(X, y, weight, init_score=offset)

    def cost(constant):
        return np.average(LOSSES[loss](y, offset + constant), weights=weight)

    best = minimize_scalar(cost, bracket=(-1.0, 3.0), tol=1e-12)
    assert cost(model.init_[0]) <= best.fun + 1e-9
    np.testing.assert_allclose(model.init_[0], best.x, atol=0.05 if loss in {"absolute_error", "quantile"} else 1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", ["log_loss", "exponential"])
def test_the_start_of_classes_is_the_best_constant_beside_the_scores(loss, n_classes):
    if loss == "exponential" and n_classes == 3:
        pytest.skip("for two classes")
    X, y = make_frame(n_classes=n_classes)
    rng = np.random.default_rng(0)
    n_raw = 1 if n_classes == 2 else 3
    offset, weight = rng.normal(size=(len(y), n_raw)) * 2.0, rng.uniform(0.5, 2.0, len(y))

    def cost(constant):
        raw = offset + constant
        if loss == "exponential":
            each = np.exp(np.where(y == 1, -raw[:, 0], raw[:, 0]))
        elif n_raw == 1:
            each = np.logaddexp(0.0, np.where(y == 1, -raw[:, 0], raw[:, 0]))
        else:
            each = logsumexp(raw, axis=1) - raw[np.arange(len(y)), y]
        return np.average(each, weights=weight)

    model = make(GradientBoostingClassifier, loss=loss).fit(X, y, weight, init_score=offset)
    assert cost(model.init_) == pytest.approx(minimize(cost, np.zeros(n_raw), tol=1e-10).fun, abs=1e-9)


def test_exposure_makes_rates():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 2))
    rate = np.exp(0.5 * np.sign(X[:, 0]) - 1.0)
    years = rng.uniform(0.1, 10.0, len(X))
    y = rng.poisson(years * rate)
    model = GradientBoostingRegressor(**plain(loss="poisson", reg_lambda=0.0)).fit(X, y, init_score=np.log(years))
    np.testing.assert_allclose(model.predict([[-2.0, 0.0], [2.0, 0.0]]), np.exp([-1.5, -0.5]), rtol=0.1)
    np.testing.assert_allclose(model.predict(X, init_score=np.log(years)), years * model.predict(X), rtol=1e-9)
    blind = GradientBoostingRegressor(**plain(loss="poisson")).fit(X, y)
    assert np.mean((model.predict(X) - rate) ** 2) < 0.01 * np.mean((blind.predict(X) - rate) ** 2)


def test_scores_are_validated_and_belong_to_validation_rows():
    X, y = make_table()
    model = make(GradientBoostingRegressor)
    offset = np.linspace(-1.0, 1.0, len(y))
    model.fit(X, y, init_score=offset, X_val=X, y_val=y, init_score_val=offset)
    np.testing.assert_array_equal(model.train_score_, model.validation_score_)
    stopped = make(GradientBoostingRegressor, n_iter_no_change=2).fit(X, y, init_score=offset)
    assert len(stopped.validation_score_) == stopped.n_estimators_
    with pytest.raises(ValueError, match="init_score and init_score_val belong together"):
        model.fit(X, y, init_score=offset, X_val=X, y_val=y)
    with pytest.raises(ValueError, match=r"init_score has shape \(300, 2\), expected \(300,\)"):
        model.fit(X, y, init_score=np.zeros((300, 2)))
    with pytest.raises(ValueError, match=r"init_score has shape \(3,\), expected \(300,\)"):
        model.predict(X, init_score=[0.0, 1.0, 2.0])
    with pytest.raises(ValueError, match="init_score"):
        model.fit(X, y, init_score=np.full(300, np.nan))
    three = make(GradientBoostingClassifier)
    X, y = make_frame()
    with pytest.raises(ValueError, match=r"expected \(300, 3\), a column per class, output or quantile"):
        three.fit(X, y, init_score=np.zeros(300))


# --- warm start ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"subsample": 0.5, "max_features": 2},
        {"max_features_per_tree": 0.5, "newton": False},
        {"n_iter_no_change": 30},
        {"verbose": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("is_weighed", [False, True])
def test_rounds_grown_in_two_fits_are_those_of_one(kind, settings, is_weighed):
    X, y = make_frame()
    weight = np.random.default_rng(0).integers(0, 3, len(y)) * 0.7 if is_weighed else None
    model = make(kind, n_estimators=4, warm_start=True, **settings).fit(X, y, weight)
    first = model.forest_
    model.set_params(n_estimators=9).fit(X, y, weight)
    whole = make(kind, n_estimators=9, **settings).fit(X, y, weight)
    assert same_forest(model, whole)
    assert model.evals_result_ == whole.evals_result_
    assert model.best_iteration_ == whole.best_iteration_
    assert len(first) * 9 == len(model.forest_) * 4
    np.testing.assert_array_equal(raw_of(model, X), raw_of(whole, X))


@pytest.mark.parametrize("newton", [False, True])
@pytest.mark.parametrize("loss", ["huber", "absolute_error", "poisson"])
def test_losses_of_numbers_go_on_as_well(loss, newton):
    X, y = make_friedman1(n_samples=300, random_state=0, noise=1.0)
    y = np.abs(y)
    offset = np.linspace(0.0, 0.5, len(y))
    settings = {"loss": loss, "newton": newton, "verbose": 1}
    model = make(GradientBoostingRegressor, n_estimators=4, warm_start=True, **settings)
    model.fit(X, y, init_score=offset).set_params(n_estimators=8).fit(X, y, init_score=offset)
    whole = make(GradientBoostingRegressor, n_estimators=8, **settings).fit(X, y, init_score=offset)
    assert same_forest(model, whole)
    assert model.evals_result_ == whole.evals_result_


def test_validation_rows_may_come_with_the_second_fit(kind):
    X, y = make_table()
    other, truth = make_table(seed=1)
    model = make(kind, n_estimators=4, warm_start=True).fit(X, y)
    model.set_params(n_estimators=9, n_iter_no_change=50).fit(X, y, X_val=other, y_val=truth)
    whole = make(kind, n_estimators=9, n_iter_no_change=50).fit(X, y, X_val=other, y_val=truth)
    assert model.evals_result_ == whole.evals_result_
    assert model.best_iteration_ == whole.best_iteration_


def test_a_stopped_model_can_be_told_to_go_on(kind):
    X, y = make_table()
    values = [3, 2, 1, 0, 0, 4, 3, 2, 1]
    settings = {"warm_start": True, "n_iter_no_change": 2, "n_estimators": 20}
    model = make(kind, **settings, scoring=scripted(values)).fit(X, y, X_val=X, y_val=y)
    assert (model.best_iteration_, model.n_estimators_) == (1, 3)
    # the rounds there are are scored again, then patience is counted anew
    model.set_params(scoring=scripted(values)).fit(X, y, X_val=X, y_val=y)
    assert (model.best_iteration_, model.n_estimators_) == (1, 5)
    model.set_params(scoring=scripted(values)).fit(X, y, X_val=X, y_val=y)
    assert (model.best_iteration_, model.n_estimators_) == (6, 8)


@pytest.mark.parametrize("is_weighed", [False, True])
def test_rounds_go_on_with_other_rows_from_the_scores_there_are(kind, is_weighed):
    X, y = make_table()
    new, new_y = make_table(seed=1)
    new, new_y = new[:-20], new_y[:-20]
    weight = np.random.default_rng(0).integers(1, 4, len(new_y)).astype(float) if is_weighed else None
    settings = {"subsample": 1.0, "max_features": None}  # nothing is drawn
    model = make(kind, warm_start=True, n_estimators=6, **settings).fit(X, y)
    old, scores = model.forest_, raw_of(model, new)
    model.set_params(n_estimators=10).fit(new, new_y, weight)
    # the truth: a model of four rounds on the new rows, which bring the scores of the old one along
    apart = make(kind, n_estimators=4, init="zero", **settings).fit(new, new_y, weight, init_score=scores)
    assert model.n_estimators_ == 10
    for t, tree in enumerate(model.forest_):
        expected = old[t] if t < len(old) else apart.forest_[t - len(old)]
        np.testing.assert_array_equal(tree.test, expected.test)
        np.testing.assert_allclose(tree.threshold, expected.threshold, rtol=1e-9)
    # curves are those of the rows of the last fit
    staged = list(model.staged_predict_proba(new) if hasattr(model, "predict_proba") else model.staged_predict(new))
    assert len(model.train_score_) == len(staged) == 10
    np.testing.assert_allclose(model.train_score_[-4:], apart.train_score_, rtol=1e-9)


def test_fault_80_a_warm_start_needs_the_same_columns_and_loss(kind):
    X, y = make_table()
    model = make(kind, warm_start=True, n_estimators=6).fit(X, y)
    before = dict(vars(model))
    model.set_params(n_estimators=8)
    with pytest.raises(ValueError, match="; X has 1 columns, and had"):
        model.fit(X[:, :1], y)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    named = make(kind, warm_start=True, n_estimators=6).fit(frame, y).set_params(n_estimators=8)
    with pytest.raises(ValueError, match=f"; column 0 of X is 'c{X.shape[1] - 1}', and was 'c0'"):
        named.fit(frame[frame.columns[::-1]], y)
    with pytest.raises(ValueError, match="; column 0 of X is 'other', and was 'c0'"):
        named.fit(frame.rename(columns={"c0": "other"}), y)
    assert named.feature_names_in_[0] == "c0"
    dated = frame.assign(day=pd.date_range("2020-01-01", periods=len(y)))
    named = make(kind, warm_start=True, n_estimators=6).fit(dated, y).set_params(n_estimators=8)
    with pytest.raises(ValueError, match="; X differs in its dates"):
        named.fit(dated.assign(day=dated["day"] + pd.Timedelta(days=1)), y)
    other = (lambda y, raw: raw - y, lambda y, raw: np.ones(len(y)))  # noqa: ARG005
    with pytest.raises(ValueError, match="; loss differs"):
        copy.deepcopy(model).set_params(loss=other).fit(X, y)
    with pytest.raises(ValueError, match="n_estimators=5 must be larger or equal to the 6 rounds"):
        copy.deepcopy(model).set_params(n_estimators=5).fit(X, y)
    assert vars(model) == {**before, "n_estimators": 8}
    with pytest.warns(UserWarning, match="does not fit new trees"):
        model.set_params(n_estimators=6).fit(X, y)
    cold = make(kind, n_estimators=6).fit(X, y).set_params(warm_start=True, n_estimators=8)
    assert cold.fit(X, y).n_estimators_ == 8


@pytest.mark.parametrize("raw", [5e-324, 1e-17, 6e-17, 1.2e-16, 3e-16, 1e-12, 1e-8])
@pytest.mark.parametrize("settings", [{}, {"loss": "exponential"}, {"n_classes": 3}], ids=str)
def test_f16_predict_is_the_most_probable_class(raw, settings):
    settings = dict(settings)
    n_classes = settings.pop("n_classes", 2)
    X, y = np.zeros((6, 1)), np.arange(6) % n_classes  # nothing to learn: raw scores are those that rows bring along
    model = GradientBoostingClassifier(**plain(n_estimators=1, init="zero", **settings)).fit(X, y)
    for sign in (-1.0, 1.0):
        scores = np.full(6, sign * raw) if n_classes == 2 else np.tile([0.0, sign * raw, raw / 2], (6, 1))
        np.testing.assert_allclose(model.decision_function(X, init_score=scores), scores, rtol=1e-12, atol=1e-15)
        shares = model.predict_proba(X, init_score=scores)
        np.testing.assert_array_equal(model.predict(X, init_score=scores), shares.argmax(axis=1))
        (staged,) = model.staged_predict(X, init_score=scores)
        np.testing.assert_array_equal(staged, shares.argmax(axis=1))


def test_f16_stages_beyond_the_best_round_are_documented():
    for kind in (GradientBoostingClassifier, GradientBoostingRegressor):
        methods = [name for name in dir(kind) if name.startswith("staged_")]
        assert all("`best_iteration_`" in getattr(kind, name).__doc__ for name in methods)
        assert all("beyond" in getattr(kind, name).__doc__ for name in methods)
