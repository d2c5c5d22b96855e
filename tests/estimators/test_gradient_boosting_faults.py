"""Gradient boosting behind scikit-learn's door: its checks, callbacks, losses of one's own, bad parameters and data."""

import copy
import json
import pickle
import threading

import joblib
import numpy as np
import pytest
import sklearn
from scipy.special import expit, log_softmax
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.inspection import partial_dependence
from sklearn.model_selection import GridSearchCV, cross_val_score

from boosting_cases import make, make_frame, make_table, raw_of, same_forest, scripted
from contract import parametrize_with_contract, weighing_fails
from plain_boosting import plain
from spinney import GradientBoostingClassifier, GradientBoostingRegressor
from spinney.estimators.interactions import check_interactions
from spinney.tree.forest import Forest


@pytest.fixture(params=[GradientBoostingClassifier, GradientBoostingRegressor], ids=["classifier", "regressor"])
def kind(request):
    return request.param


# --- scikit-learn's contract --------------------------------------------------------------------------------------

FEW = {"n_estimators": 6, "learning_rate": 0.6}  # rounds: a hundred would only say it a hundred times
SETTINGS = [
    FEW,
    {"min_samples_leaf": 1, **FEW},
    {"min_samples_leaf": 1, "max_leaf_nodes": None, "max_depth": 3, "reg_lambda": 1.0, "reg_alpha": 0.01, **FEW},
    {"min_samples_leaf": 1, "newton": False, "max_bins": None, "pruning": "post", "gamma": 0.001, **FEW},
    {"subsample": 0.7, "max_features": 0.5, "max_features_per_tree": 0.8, "min_samples_leaf": 1, "n_jobs": 2, **FEW},
    {"n_iter_no_change": 3, "min_samples_leaf": 1, **FEW},
]


def failures_of_draws(model):
    """Where rows are drawn, a repeated row is no row of weight 2: scikit-learn lists this for both its boosters."""
    if model.subsample == 1.0 and model.n_iter_no_change is None:
        return {}
    return weighing_fails("draws depend on the number of rows")


@parametrize_with_contract(
    [GradientBoostingClassifier(effort=0.1), GradientBoostingRegressor(effort=0.1)]
    + [GradientBoostingClassifier(**plain(**settings)) for settings in SETTINGS]
    + [GradientBoostingRegressor(**plain(**settings)) for settings in SETTINGS]
    + [
        GradientBoostingClassifier(**plain(loss="exponential", class_weight="balanced", min_samples_leaf=1, **FEW)),
        GradientBoostingRegressor(**plain(loss="absolute_error", min_samples_leaf=1, **FEW)),
        GradientBoostingRegressor(**plain(loss="huber", min_samples_leaf=1, **FEW)),
        GradientBoostingRegressor(**plain(loss="poisson", min_samples_leaf=1, max_bins=16, **FEW)),
        GradientBoostingRegressor(**plain(loss="gamma", min_samples_leaf=1, newton=False, **FEW)),
    ],
    expected_failed_checks=failures_of_draws,
)
@pytest.mark.filterwarnings("ignore:Of . of the . classes there is a single row")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_copies_pickles_and_pictures(kind):
    X, y = make_frame()
    model = make(kind, n_estimators=5, n_iter_no_change=2).fit(X, y)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(raw_of(other, X), raw_of(model, X))
        assert other.evals_result_ == model.evals_result_
    fresh = clone(model)
    assert fresh.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    assert type(model).__name__ in model._repr_html_()
    tags = model.__sklearn_tags__()
    assert tags.input_tags.allow_nan
    assert tags.input_tags.categorical
    assert same_forest(model.fit(X, y), copy.deepcopy(model))  # a second fit gives the same


def test_tools_of_scikit_learn_take_it(kind):
    X, y = make_table()
    model = make(kind)
    search = GridSearchCV(model, {"learning_rate": [0.01, 0.3]}, cv=3).fit(X, y)
    assert search.best_params_ == {"learning_rate": 0.3}
    assert len(cross_val_score(model, X, y, cv=3, n_jobs=2)) == 3
    partial = partial_dependence(model.fit(np.nan_to_num(X), y), np.nan_to_num(X), [0])
    assert np.isfinite(partial["average"]).all()
    if kind is GradientBoostingClassifier:
        assert CalibratedClassifierCV(model, cv=2).fit(X, y).predict_proba(X).shape == (len(y), 2)


def test_fit_arguments_can_be_routed():
    with sklearn.config_context(enable_metadata_routing=True):
        model = GradientBoostingRegressor().set_fit_request(sample_weight=True, init_score=True)
        model.set_predict_request(init_score=True)
        assert model.get_metadata_routing().fit.requests["init_score"] is True


# --- callbacks ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_rows", [60, 5000])  # in the calling thread, and in one of its own
def test_callbacks_are_told_of_each_round(kind, n_rows):
    X, y = make_table(n_rows)
    calls = []

    def note(iteration, results):
        calls.append((iteration, results, threading.current_thread()))
        results.clear()  # ours to spoil

    model = make(kind).fit(X, y, X_val=X[:20], y_val=y[:20], callbacks=note)
    assert [call[0] for call in calls] == list(range(1, 11))
    assert {call[2] for call in calls} == {threading.current_thread()}
    calls.clear()

    def keep(iteration, results):
        calls.append(results)
        return iteration >= 4

    model = make(kind).fit(X, y, X_val=X[:20], y_val=y[:20], callbacks=[keep])
    assert model.n_estimators_ == model.best_iteration_ == 4
    assert calls == [
        {"train": {"loss": train}, "valid": {"loss": valid}}
        for train, valid in zip(model.train_score_, model.validation_score_, strict=True)
    ]
    np.testing.assert_array_equal(raw_of(model, X), raw_of(make(kind, n_estimators=4).fit(X, y), X))


@pytest.mark.parametrize("n_rows", [60, 5000])
def test_fault_84_what_a_callback_raises_passes_through(kind, n_rows):
    X, y = make_table(n_rows)
    model = make(kind).fit(X, y)
    before = dict(vars(model))

    def fail(iteration, _):
        if iteration == 3:
            raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        model.fit(X, 1 - y, callbacks=[fail])
    with pytest.raises(TypeError, match="'<lambda>' returned 'no' after round 1; return True to stop"):
        model.fit(X, 1 - y, callbacks=[lambda iteration, results: "no"])  # noqa: ARG005
    with pytest.raises(TypeError, match="callbacks must be functions"):
        model.fit(X, 1 - y, callbacks=[3])
    assert vars(model) == before
    fresh = make(kind)
    with pytest.raises(ZeroDivisionError):
        fresh.fit(X, y, callbacks=[fail])
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    assert threading.active_count() < 10


# --- losses of one's own ------------------------------------------------------------------------------------------


def logistic_gradient(y, raw):
    return expit(raw) - y


def logistic_hessian(y, raw):  # noqa: ARG001
    return expit(raw) * expit(-raw)


def softmax_gradient(y, raw):
    return np.exp(log_softmax(raw, axis=1)) - (y[:, None] == np.arange(raw.shape[1]))


def softmax_hessian(y, raw):  # noqa: ARG001
    p = np.exp(log_softmax(raw, axis=1))
    return 2.0 * p * (1.0 - p)


def test_a_loss_of_ones_own_gives_what_the_built_in_one_does():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))  # no ties, which the last digits of the derivatives would decide
    score = X[:, 0] * X[:, 1] + rng.normal(scale=0.5, size=500)
    settings = {"n_estimators": 5, "max_leaf_nodes": 8}
    y, names = (score > 0).astype(int), np.array(["no", "yes"])
    own = make(GradientBoostingClassifier, loss=(logistic_gradient, logistic_hessian), **settings).fit(X, names[y])
    built_in = make(GradientBoostingClassifier, **settings).fit(X, y)
    np.testing.assert_allclose(own.predict_proba(X), built_in.predict_proba(X), rtol=1e-9)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(own)).predict(X), own.predict(X))
    y = np.digitize(score, [-0.5, 0.5])
    own = make(GradientBoostingClassifier, loss=(softmax_gradient, softmax_hessian), **settings).fit(X, y)
    built_in = make(GradientBoostingClassifier, **settings).fit(X, y)
    np.testing.assert_allclose(own.predict_proba(X), built_in.predict_proba(X), rtol=1e-9)
    loss = [lambda y, raw: raw - y, lambda y, raw: np.ones(len(raw))]  # noqa: ARG005
    own = make(GradientBoostingRegressor, loss=loss, **settings).fit(X, score)
    built_in = make(GradientBoostingRegressor, **settings).fit(X, score)
    np.testing.assert_allclose(own.predict(X), built_in.predict(X), rtol=1e-9, atol=1e-12)


def test_a_loss_of_ones_own_has_no_value_but_can_be_scored():
    X, y = make_table()
    loss = (logistic_gradient, logistic_hessian)
    model = make(GradientBoostingClassifier, loss=loss, scoring="roc_auc", n_iter_no_change=50)
    model.fit(X, y, X_val=X, y_val=y)
    assert list(model.evals_result_) == ["valid"]
    assert list(model.evals_result_["valid"]) == ["roc_auc"]
    calls = []
    make(GradientBoostingClassifier, loss=loss).fit(X, y, callbacks=lambda *call: calls.append(call))
    assert calls == [(n, {}) for n in range(1, 11)]
    with pytest.raises(ValueError, match="its derivatives tell no value"):
        make(GradientBoostingClassifier, loss=loss, n_iter_no_change=5).fit(X, y)


def test_fault_83_a_broken_loss_is_told_with_its_round():
    X, y = make_table()
    calls = []

    def late(y, raw):
        calls.append(raw)
        return raw * np.nan if len(calls) == 6 else raw - y

    def ones(y, raw):  # noqa: ARG001
        return np.ones(len(raw))

    def raises(y, raw):  # noqa: ARG001
        raise ZeroDivisionError("mine")

    with pytest.raises(ValueError, match=r"loss: late\(y, raw\) is \[nan\] in row 0"):
        make(GradientBoostingRegressor, loss=(late, ones), init="zero").fit(X, y)
    with pytest.raises(ZeroDivisionError, match="mine"):
        make(GradientBoostingRegressor, loss=(raises, ones)).fit(X, y)
    with pytest.raises(ValueError, match=r"has shape \(3,\): return an array of shape \(300,\)"):
        make(GradientBoostingRegressor, loss=(lambda y, raw: raw[:3], ones)).fit(X, y)  # noqa: ARG005
    for loss in ((ones,), (ones, "squared_error"), ones, None):
        with pytest.raises((ValueError, TypeError), match="loss"):
            make(GradientBoostingRegressor, loss=loss).fit(X, y)


# --- parameters ---------------------------------------------------------------------------------------------------

BAD = [
    ({"learning_rate": value} for value in (0, -0.1, np.nan, np.inf, "0.1", True)),
    ({"n_estimators": value} for value in (0, -1, 1.5, "10", True, None)),
    ({"max_leaf_nodes": value} for value in (0, 1, 1.5, True)),
    ({"max_depth": value} for value in (0, -5, 2.5)),
    ({"min_samples_leaf": value} for value in (0, 1.0, -1)),
    ({"min_samples_split": value} for value in (1, 0.0, -1)),
    ({"min_weight_fraction_leaf": value} for value in (-0.1, 0.6, np.nan)),
    ({"min_child_weight": value} for value in (-1.0, np.inf, np.nan)),
    ({"reg_lambda": value} for value in (-1.0, np.inf, np.nan)),
    ({"reg_alpha": value} for value in (-1.0, np.inf)),
    ({"gamma": value} for value in (-1.0, np.nan)),
    ({"pruning": value} for value in ("none", None)),
    ({"subsample": value} for value in (0, 0.0, 1.1, np.nan)),
    ({"max_features": value} for value in (0, 1.5, "foo")),
    ({"max_features_per_tree": value} for value in (0, -0.5, "foo")),
    ({"newton": value} for value in ("yes", None)),
    ({"init": value} for value in ("one", 0)),
    ({"max_bins": value} for value in (1, 65_536, 10**6, 0.5)),
    ({"candidates": value} for value in ("foo", None)),
    ({"cat_smooth": value} for value in (-1.0, np.nan)),
    ({"interaction_cst": value} for value in ("foo", 3)),
    ({"n_iter_no_change": value} for value in (0, 1.5)),
    ({"validation_fraction": value} for value in (0, 0.0, 1.0, -1)),
    ({"scoring": value} for value in (3, None)),
    ({"tol": value} for value in (-1.0, np.nan)),
    ({"max_time": value} for value in (0.0, -1.0)),
    ({"warm_start": "yes"}, {"n_jobs": 1.5}, {"verbose": "yes"}, {"random_state": -1}, {"loss": "foo"}),
]


@pytest.mark.parametrize("settings", [settings for group in BAD for settings in group], ids=str)
def test_faults_71_to_78_bad_parameters_are_refused(kind, settings):
    X, y = make_table(40)
    with pytest.raises((ValueError, TypeError), match=next(iter(settings))):
        kind(**settings).fit(X, y)


def test_only_the_regressor_has_levels_and_powers():
    X, y = make_table(40)
    for settings in ({"alpha": 0.0}, {"alpha": 1.0}, {"power": 1.0}, {"power": 2.0}):
        with pytest.raises(ValueError, match=next(iter(settings))):
            GradientBoostingRegressor(**settings).fit(X, y)
    with pytest.raises(TypeError, match="alpha"):
        GradientBoostingClassifier(alpha=0.5)


@pytest.mark.parametrize(
    "settings",
    [
        {"max_depth": 10**9, "max_leaf_nodes": None},
        {"max_leaf_nodes": None, "max_depth": None, "min_samples_leaf": 1},
        {"min_samples_leaf": 10**6},
        {"max_leaf_nodes": 10**9},
        {"subsample": 1e-9, "min_samples_leaf": 1},
        {"max_bins": 2},
        {"max_bins": 65_535},
        {"max_bins": 300},
        {"learning_rate": np.float32(0.3), "n_estimators": np.int32(5), "max_leaf_nodes": np.int16(7)},
    ],
    ids=str,
)
def test_faults_74_to_78_extreme_parameters_work(kind, settings):
    X, y = make_table(2000)
    model = make(kind, n_estimators=5).set_params(**settings).fit(X, y)
    assert np.isfinite(raw_of(model, X)).all()
    if settings.get("min_samples_leaf") == 10**6:
        assert {tree.n_nodes for tree in model.forest_} == {1}


def test_full_trees_part_every_row():
    X = np.random.default_rng(0).normal(size=(200, 1))
    y = np.random.default_rng(1).normal(size=200)
    full = {"max_leaf_nodes": None, "max_depth": None, "max_bins": None, "min_samples_leaf": 1, "reg_lambda": 0.0}
    model = GradientBoostingRegressor(**plain(learning_rate=1.0, n_estimators=1, **full)).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, atol=1e-6)


def test_clashes_are_refused(kind):
    X, y = make_table()
    with pytest.raises(ValueError, match=r"candidates='hessian'.*newton=False"):
        make(kind, candidates="hessian", newton=False).fit(X, y)
    assert make(kind, n_iter_no_change=5, validation_fraction=None).fit(X, y, X_val=X, y_val=y)
    for given in ({"X_val": X}, {"y_val": y}):
        with pytest.raises(ValueError, match="X_val and y_val belong together"):
            make(kind).fit(X, y, **given)
    for name in ("sample_weight_val", "init_score_val"):
        with pytest.raises(ValueError, match=f"{name} belongs to X_val"):
            make(kind).fit(X, y, **{name: np.ones(len(y))})
    with pytest.raises(ValueError, match="validation_fraction=400 holds out 400 of 300"):
        make(kind, n_iter_no_change=5, validation_fraction=400).fit(X, y)
    with pytest.raises(ValueError, match="'acuracy' is not the name of a scorer"):
        make(kind, scoring="acuracy").fit(X, y, X_val=X, y_val=y)


def test_interactions_are_groups_of_features():
    schema = make(GradientBoostingRegressor).fit(*make_frame())._schema
    assert check_interactions(None, schema) is None
    assert check_interactions("no_interactions", schema) == [[0], [1], [2], [3]]
    assert check_interactions("pairwise", schema) == [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]
    assert check_interactions([{0, 1}], schema) == [[0, 1], [2, 3]]
    assert check_interactions([{"c", 0}, ["colour"], (1,)], schema) == [[0, 2], [3], [1]]
    with pytest.raises(ValueError, match=r"integer indices in .* = \[0, 3\].* interaction_cst has 4"):
        check_interactions([{0, 4}], schema)
    with pytest.raises(ValueError, match="interaction_cst has True"):
        check_interactions([[True]], schema)
    with pytest.raises(ValueError, match="names 'd', but the columns are"):
        check_interactions([["d"]], schema)
    with pytest.raises(ValueError, match="has sets of columns, and not 'ab'"):
        check_interactions(["ab"], schema)
    with pytest.raises(ValueError, match=r"sequence of tuples or lists.*and not 1"):
        check_interactions([1, 2], schema)
    with pytest.raises(ValueError, match="names 'a', but X has no column names"):
        GradientBoostingRegressor(interaction_cst=[["a"]]).fit(*make_table())


def test_constraints_hold():
    X, y = make_frame(2000, n_classes=2)
    model = make(GradientBoostingClassifier, interaction_cst=[{"a"}, {"b", "c"}]).fit(X, y)
    allowed = [{0}, {1, 2}, {3}]
    for tree in model.forest_:
        for leaf in np.flatnonzero(tree.is_leaf):
            path, node = set(), leaf
            while tree.parent[node] >= 0:
                node = tree.parent[node]
                path.add(int(tree.feature[node]))
            assert any(path <= group for group in allowed)
    model = make(GradientBoostingClassifier, monotonic_cst={"a": -1}).fit(X, y)
    grid = X[:50].copy()
    said = []
    for value in np.linspace(-3.0, 3.0, 40):
        grid["a"] = value
        said.append(model.decision_function(grid))
    assert np.all(np.diff(said, axis=0) <= 0.0)


# --- targets ------------------------------------------------------------------------------------------------------


def test_fault_044_one_class_with_any_loss():
    X, y = make_table()
    for settings in ({}, {"loss": "exponential"}, {"n_iter_no_change": 2}):
        model = make(GradientBoostingClassifier, **settings).fit(X, np.full(len(y), "only"))
        assert model.predict(X).tolist() == ["only"] * len(y)
        np.testing.assert_array_equal(model.predict_proba(X), np.ones((len(y), 1)))
        assert not model.feature_importances_.any()
    one_weighs = make(GradientBoostingClassifier).fit(X, np.where(y == 0, "a", "b"), (y == 0).astype(float))
    np.testing.assert_allclose(one_weighs.predict_proba(X), [[1.0, 0.0]] * len(y), atol=1e-12)


def test_the_exponential_loss_takes_two_classes():
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        make(GradientBoostingClassifier, loss="exponential").fit(*make_frame())


def test_fault_42_missing_targets_of_validation_rows(kind):
    X, y = make_table()
    bad = y.astype(float)
    bad[3] = np.nan
    with pytest.raises(ValueError, match="Input y contains NaN"):
        make(kind).fit(X, y, X_val=X, y_val=bad)


@pytest.mark.parametrize("loss", ["poisson", "gamma", "tweedie"])
def test_fault_52_negative_targets_of_counts(loss):
    X, y = make_table()
    y = y + 1.0
    y[4] = -2.0
    with pytest.raises(ValueError, match=f"y is -2 in row 4: loss='{loss}' requires"):
        make(GradientBoostingRegressor, loss=loss).fit(X, y)
    weight = np.ones(len(y))
    weight[4] = 0.0
    make(GradientBoostingRegressor, loss=loss).fit(X, y, weight)  # the row is not there
    with pytest.raises(ValueError, match="y is -2 in row 4"):
        make(GradientBoostingRegressor, loss=loss).fit(X, np.abs(y), X_val=X, y_val=y)
    if loss != "gamma":
        make(GradientBoostingRegressor, loss=loss).fit(X, np.abs(y), X_val=X, y_val=y * 0.0)


@pytest.mark.parametrize(
    ("settings", "size", "is_fine"),
    [
        ({"loss": "poisson"}, 1e98, True),
        ({"loss": "poisson"}, 1e101, False),
        ({"loss": "tweedie"}, 1e198, True),
        ({"loss": "tweedie"}, 1e250, False),
        ({"loss": "tweedie", "power": 1.1}, 1e150, False),
        ({"loss": "tweedie", "power": 1.9}, 1e300, True),
        ({"loss": "gamma"}, 1e300, True),
    ],
)
def test_targets_whose_gains_would_be_infinite_are_refused(settings, size, is_fine):
    X, y = make_table()
    y = (np.abs(y) + 1.0) * size
    if not is_fine:
        with pytest.raises(ValueError, match=f"loss='{settings['loss']}' requires y up to"):
            make(GradientBoostingRegressor, **settings).fit(X, y)
        return
    model = make(GradientBoostingRegressor, **settings).fit(X, y)
    assert np.isfinite(model.forest_.impurity).all()
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    assert np.corrcoef(np.log(model.predict(X)), np.log(y))[0, 1] > 0.3
    model.forest_.check()


def test_faults_51_63_64_65_of_validation_rows():
    X, y = make_frame(n_classes=2)
    model = make(GradientBoostingClassifier)
    with pytest.raises(ValueError, match="y holds the class 7"):
        model.fit(X, y, X_val=X, y_val=np.where(y == 1, 7, 0))
    with pytest.raises(ValueError, match="feature names should match"):
        model.fit(X, y, X_val=X.rename(columns={"a": "z"}), y_val=y)
    with pytest.raises(ValueError, match="X has 3 features, but GradientBoostingClassifier is expecting 4"):
        model.fit(np.zeros((len(y), 4)), y, X_val=np.zeros((5, 3)), y_val=y[:5])
    with pytest.raises(ValueError, match="y has 5"):
        model.fit(X, y, X_val=X, y_val=y[:5])
    with pytest.raises(ValueError, match="all zero"):
        model.fit(X, y, X_val=X, y_val=y, sample_weight_val=np.zeros(len(y)))
    with pytest.raises(ValueError, match=r"round 3: the score of the valid rows is not a number"):
        make(GradientBoostingClassifier, scoring=scripted([1.0, 1.0, np.nan])).fit(X, y, X_val=X, y_val=y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_learning_that_leaves_the_numbers_is_told(kind):
    X, y = make_table()
    settings = {"loss": "poisson"} if kind is GradientBoostingRegressor else {"loss": "exponential"}
    with pytest.raises(ValueError, match=r"left the finite numbers in round \d+: lower learning_rate=1e\+30"):
        make(kind, learning_rate=1e30, n_estimators=50, **settings).fit(X, y)
    squared = make(GradientBoostingRegressor, learning_rate=1e30, n_estimators=100)
    with pytest.raises(ValueError, match="learning_rate"):
        squared.fit(X, y)


def test_a_damaged_forest_is_not_unpickled():
    X, y = make_table()
    model = make(GradientBoostingRegressor, n_estimators=3).fit(X, y)
    state = model.forest_.__getstate__()
    hot = state["hot"].copy()
    hot[0, 1] += np.uint64(1 << 50)
    with pytest.raises(ValueError, match="tree 0"):
        Forest.__new__(Forest).__setstate__({**state, "hot": hot})


def test_curves_are_plain_numbers(kind):
    X, y = make_table()
    model = make(kind, scoring="neg_mean_squared_error").fit(X, y, X_val=X, y_val=y)
    assert json.loads(json.dumps(model.evals_result_)) == model.evals_result_
    joblib.hash(model)


def test_a_score_to_start_from_that_is_not_finite_is_named():
    X, y = np.arange(60.0).reshape(-1, 1), np.arange(60.0)
    score = np.zeros(60)
    score[7] = np.nan
    with pytest.raises(ValueError, match=r"init_score contains NaN or infinity in row 7"):
        GradientBoostingRegressor(n_estimators=2).fit(X, y, init_score=score)


def test_a_misspelt_scorer_is_told_where_there_is_nothing_to_score():
    X, y = np.arange(60.0).reshape(-1, 1), np.arange(60.0)
    with pytest.raises(ValueError, match="scoring"):
        GradientBoostingRegressor(n_estimators=2, scoring="r22").fit(X, y)


def test_exact_candidates_of_too_many_values_are_announced():
    X = np.arange(70_000.0).reshape(-1, 1)
    with pytest.warns(UserWarning, match=r"max_bins=None: column 0 has more than 65535 distinct values"):
        GradientBoostingRegressor(n_estimators=1, max_bins=None, n_jobs=1).fit(X, X[:, 0])
