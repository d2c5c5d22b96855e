"""Bad and odd input to the forests, by the numbers of `tests/FAULTS.md`: what depends on bags and on many trees.

What every class answers alike is in `test_faults`.
"""

import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils._param_validation import InvalidParameterError

import spinney
from fault_cases import make_table, refuses
from spinney import ExtraTreesClassifier, ExtraTreesRegressor, RandomForestClassifier, RandomForestRegressor

pytestmark = pytest.mark.filterwarnings("ignore:pruning='oob' has shaped each tree")

CLASSIFIERS = [RandomForestClassifier, ExtraTreesClassifier]
REGRESSORS = [RandomForestRegressor, ExtraTreesRegressor]
ARRAYS = ("hot", "n_rows", "weight", "impurity", "subsets", "distributions", "first_node", "first_word", "first_mixed")


@pytest.fixture(params=[*CLASSIFIERS, *REGRESSORS], ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


@pytest.fixture(params=CLASSIFIERS, ids=lambda kind: kind.__name__)
def classifier(request):
    return request.param


@pytest.fixture(params=REGRESSORS, ids=lambda kind: kind.__name__)
def regressor(request):
    return request.param


def make(kind, **settings):
    return kind(**{"n_estimators": 6, "random_state": 0, **settings})


def same_forest(one, other):
    return all(np.array_equal(getattr(one.forest_, name), getattr(other.forest_, name)) for name in ARRAYS)


# --- A. shape and type of X -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"bootstrap": True},
        {"bootstrap": "poisson"},
        {"bootstrap": True, "honest": True},
        {"bootstrap": True, "pruning": "oob"},
        {"bootstrap": True, "block_size": 7},
        {"replace": False},
    ],
    ids=str,
)
def test_fault_004_one_row(kind, settings):
    model = make(kind, **settings).fit([[1.0, 2.0]], [3])
    assert model.predict([[5.0, np.nan], [1.0, 2.0]]).tolist() == [3, 3]
    assert [tree.n_leaves for tree in model.forest_] == [1] * 6


@pytest.mark.parametrize("n_rows", [2, 3, 4])
def test_fault_004_few_rows_with_every_kind_of_bag(kind, n_rows):
    X, y = make_table(n_rows)
    for settings in (
        {"bootstrap": True, "honest": True},
        {"bootstrap": True, "pruning": "oob"},
        {"bootstrap": "poisson", "max_samples": 1},
        {"replace": False, "max_samples": 1, "honest": True},
    ):
        model = make(kind, n_estimators=30, **settings).fit(X, y)
        assert np.isfinite(model.predict(X).astype(float)).all()


def test_float32_and_float64_predict_alike(kind):
    X = make_table(300)[0].astype(np.float32)
    y = X[:, 0] > 0
    model = make(kind).fit(X, y)
    assert same_forest(make(kind).fit(X.astype(float), y), model)
    other = make_table(500, seed=1)[0].astype(np.float32)
    np.testing.assert_array_equal(model.predict(other), model.predict(other.astype(float)))
    np.testing.assert_array_equal(model.apply(other), model.apply(other.astype(float)))


def test_fault_023_read_only_groups(kind):
    X, y = make_table()
    given = X, y, np.ones(40), np.arange(40) // 4
    for array in given:
        array.flags.writeable = False
    X, y, weight, groups = given
    model = make(kind, bootstrap=True).fit(X, y, weight, groups=groups, strata=np.zeros(40, int))
    assert model.predict(X).shape == (40,)


# --- B. values in X -------------------------------------------------------------------------------------------------


def test_fault_030_to_033_missing_and_infinite_values(kind):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(200, 2))
    X[:50, 0] = np.nan
    X[50:60, 0], X[60:70, 0] = np.inf, -np.inf
    y = (np.isnan(X[:, 0]) | (X[:, 0] > 1)).astype(int)
    for missing in ("learned", "branch"):
        model = make(kind, n_estimators=30, missing=missing, max_features=None).fit(X, y)
        assert np.mean(np.round(model.predict(X)) == y) > 0.97
        assert np.round(model.predict([[np.nan, 0.0], [np.inf, 0.0], [-np.inf, 0.0]])).tolist() == [1, 1, 0]
    hole = np.column_stack([np.full(200, np.nan), X])
    assert make(kind).fit(hole, y).feature_importances_[0] == 0.0
    known = make(kind).fit(X[70:], y[70:])  # missing in predict only
    assert np.isfinite(known.predict([[np.nan, np.nan]]).astype(float)).all()


def test_fault_034_to_038_odd_values(kind):
    for scale in (1e300, 1.7e308, 1e-310):
        X = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])[:, None] * scale
        model = make(kind, bootstrap=False).fit(X, [0, 1, 0, 1, 0])
        assert model.predict(X).tolist() == [0, 1, 0, 1, 0]
    X, y = make_table()
    X[:, 1] = 7.0
    model = make(kind).fit(X, y)
    assert model.feature_importances_[1] == 0.0
    alike = make(kind, bootstrap=False).fit(np.ones((6, 3)), [0, 1, 1, 0, 1, 1])
    assert [tree.n_leaves for tree in alike.forest_] == [1] * 6
    zeros = make(kind, bootstrap=False).fit([[0.0], [-0.0], [0.0], [-0.0]], [0, 1, 0, 1])
    assert [tree.n_leaves for tree in zeros.forest_] == [1] * 6
    above = np.nextafter(1.0, 2.0)
    close = np.array([[1.0], [above], [1.0], [above]])
    assert make(kind, bootstrap=False).fit(close, [0, 1, 0, 1]).predict(close).tolist() == [0, 1, 0, 1]


def test_fault_039_and_040_bins(kind):
    X = np.zeros((2000, 1))
    X[[3, 77]] = [[1.0], [-1.0]]
    for max_bins in (2, 255):
        model = make(kind, max_bins=max_bins).fit(X, X[:, 0] != 0)
        model.forest_.check()
        assert model.predict([[0.0]])[0] < 0.01


def test_fault_041_many_columns(kind):
    X = np.random.default_rng(0).normal(size=(10, 5000))
    y = np.arange(10) % 2
    X[:, 1234] = y
    model = make(kind, bootstrap=False, max_features=None).fit(X, y)
    assert model.predict(X).tolist() == y.tolist()


# --- C. y -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [2.0**996, 2.0**1023, 2.0**-996])
def test_fault_043_huge_and_tiny_targets(regressor, scale):
    X, _ = make_table(100)
    steps = np.clip(np.round(X[:, 0] * 2), -4, 4) / 4
    for settings in ({"bootstrap": True, "oob_score": True, "n_estimators": 30}, {"bootstrap": False}):
        model = make(regressor, **settings).fit(X, steps * scale)
        unit = make(regressor, **settings).fit(X, steps)
        np.testing.assert_allclose(model.predict(X) / scale, unit.predict(X), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(model.feature_importances_, unit.feature_importances_)
        if model.oob_score:
            assert model.oob_score_ == pytest.approx(unit.oob_score_)
            np.testing.assert_allclose(model.oob_prediction_ / scale, unit.oob_prediction_, rtol=1e-9, atol=1e-12)
            found = model.predict_interval(X, 0.5, method="oob")
            np.testing.assert_allclose(found / scale, unit.predict_interval(X, 0.5, method="oob"), rtol=1e-9)
        np.testing.assert_allclose(model.predict_trees(X) / scale, unit.predict_trees(X), rtol=1e-9, atol=1e-12)
        votes, expected = model.vote_table(X[0]), unit.vote_table(X[0])
        assert votes.mean / scale == pytest.approx(expected.mean)
        assert votes.sd / scale == pytest.approx(expected.sd)
    pruned = make(regressor, bootstrap=True, pruning="oob").fit(X, steps * scale)
    assert [t.n_leaves for t in pruned.forest_] == [
        t.n_leaves for t in make(regressor, bootstrap=True, pruning="oob").fit(X, steps).forest_
    ]


def test_fault_043_targets_at_both_ends_of_float64(regressor):
    X, _ = make_table(100)
    signs = np.where(X[:, 0] + X[:, 1] > 0, 1.0, -1.0)
    settings = {"bootstrap": True, "oob_score": True, "n_estimators": 30, "warm_start": True}
    model, unit = make(regressor, **settings), make(regressor, **settings)
    for n_trees in (30, 70):  # the second adds to the votes of the first
        model.set_params(n_estimators=n_trees).fit(X, 1.5e308 * signs)
        unit.set_params(n_estimators=n_trees).fit(X, 1.5 * signs)
    assert model.oob_score_ == pytest.approx(unit.oob_score_)
    np.testing.assert_allclose(model.oob_prediction_, unit.oob_prediction_ * 1e308, rtol=1e-9, atol=1e295)
    for method in ("jackknife+", "oob"):
        found = model.predict_interval(X, 0.5, method=method)
        wide = np.abs(unit.predict_interval(X, 0.5, method=method) / 1.7976) > 1.0
        np.testing.assert_array_equal(np.isinf(found), wide)  # beyond the end of float64
        near = unit.predict_interval(X, 0.5, method=method)[~wide]
        np.testing.assert_allclose(found[~wide], near * 1e308, rtol=1e-9, atol=1e295)
    variance = model.predict_variance(X)
    np.testing.assert_array_equal(np.isinf(variance), unit.predict_variance(X) > 0)  # a square has no room
    assert not variance[np.isfinite(variance)].any()
    small = make(regressor, **settings).fit(X, 1.5e-140 * signs)
    np.testing.assert_allclose(
        small.predict_variance(X) * 1e280,
        make(regressor, **settings).fit(X, 1.5 * signs).predict_variance(X),
        rtol=1e-6,
        atol=1e-12,
    )


def test_fault_044_one_class_in_votes_and_out_of_bag(classifier):
    X, _ = make_table()
    for settings in ({}, {"voting": "hard"}, {"bootstrap": True, "oob_score": True, "n_estimators": 40}):
        model = make(classifier, **settings).fit(X, np.full(40, "only"))
        assert model.predict(X).tolist() == ["only"] * 40
        np.testing.assert_array_equal(model.predict_proba(X), np.ones((40, 1)))
        assert model.feature_importances_.tolist() == [0.0, 0.0, 0.0]
    assert model.oob_score_ == 1.0
    assert model.vote_table(X[0]).votes.tolist() == [40]


@pytest.mark.parametrize("bootstrap", [True, False, "poisson"])
def test_fault_046_a_class_of_weight_zero_is_kept_with_probability_zero(classifier, bootstrap):
    X, _ = make_table()
    y = np.arange(40) % 3
    model = make(classifier, bootstrap=bootstrap).fit(X, y, np.where(y == 1, 0.0, 1.0))
    assert model.classes_.tolist() == [0, 1, 2]
    assert not model.predict_proba(X)[:, 1].any()
    by_class = make(classifier, bootstrap=bootstrap, class_weight={1: 0.0}).fit(X, y)
    assert same_forest(by_class, model)


# --- D. weights, randomness -----------------------------------------------------------------------------------------


BAGS = [
    {"bootstrap": True},
    {"bootstrap": "poisson"},
    {"bootstrap": False},
    {"replace": False, "max_samples": 0.5},
    {"bootstrap": True, "block_size": 3},
]


@pytest.mark.parametrize("settings", BAGS, ids=str)
def test_fault_058_rows_of_weight_zero_are_in_no_bag(kind, settings):
    X, y = make_table()
    weight = (np.arange(40) % 3 > 0).astype(float)
    model = make(kind, **settings).fit(X, y, weight)
    for rows in model.estimators_samples_:
        assert (weight[rows] > 0).all()
    liar = y.copy()
    liar[weight == 0] = 1 - liar[weight == 0]  # what such rows say does not matter
    assert same_forest(make(kind, **settings).fit(X, liar, weight), model)


@pytest.mark.parametrize("settings", [*BAGS, {"criterion": "sdr"}, {"bootstrap": True, "honest": True}], ids=str)
@pytest.mark.parametrize("far", [1e6, -1e300])
@pytest.mark.parametrize("regressor", [RandomForestRegressor, ExtraTreesRegressor])
def test_fault_058_targets_far_off_do_not_matter_without_weight(regressor, settings, far):
    X, _ = make_table()
    y = X[:, 0] + 0.1 * X[:, 1]
    for weight in (np.arange(40) % 3, 0.1 * (np.arange(40) % 3)):
        model = make(regressor, **settings).fit(X, y, weight)
        liar = make(regressor, **settings).fit(X, np.where(weight > 0, y, far), weight)
        assert same_forest(liar, model)


def test_fault_058_and_059_without_bags_weights_are_exact(kind):
    X, y = make_table()
    weight = np.arange(40) % 3
    model = make(kind, bootstrap=False).fit(X, y, weight)
    repeated = make(kind, bootstrap=False).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    for one, other in zip(model.forest_, repeated.forest_, strict=True):
        np.testing.assert_array_equal(one.test, other.test)
        np.testing.assert_array_equal(one.threshold, other.threshold)


@pytest.mark.parametrize("settings", BAGS, ids=str)
@pytest.mark.parametrize("scale", [2.0**1020, 2.0**-1000, 5e-324])
def test_fault_060_huge_and_tiny_weights(kind, settings, scale):
    X, y = make_table()
    weight = (1.0 + np.arange(40) % 3) * scale
    model = make(kind, **settings).fit(X, y, weight)
    assert np.isfinite(model.predict(X).astype(float)).all()
    assert same_forest_but_weights(model, make(kind, **settings).fit(X, y, 1.0 + np.arange(40) % 3))


def same_forest_but_weights(one, other):
    return np.array_equal(one.forest_.hot, other.forest_.hot)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"bootstrap": True, "oob_score": True, "n_estimators": 30, "ties": "random"},
        {"bootstrap": "poisson", "honest": True},
        {"replace": False, "max_samples": 0.6, "max_features": 1},
        {"bootstrap": True, "pruning": "oob", "honest": True},
    ],
    ids=str,
)
@pytest.mark.sampled(3)
def test_fault_066_the_same_bits_for_any_number_of_threads(kind, settings):
    X, y = make_table(400)
    if kind in REGRESSORS:
        settings = {**settings, "keep_members": True}
    models = [make(kind, n_jobs=n_jobs, **settings).fit(X, y) for n_jobs in (1, 2, 8, -1, None)]
    for model in models[1:]:
        assert same_forest(model, models[0])
        np.testing.assert_array_equal(model.predict(X), models[0].predict(X))
        if "oob_score" in settings:
            np.testing.assert_array_equal(model.oob_curve_, models[0].oob_curve_)
            assert model.oob_score_ == models[0].oob_score_
        if hasattr(model, "_members"):
            assert all(map(np.array_equal, model._members, models[0]._members))
    assert not same_forest(make(kind, **settings, n_jobs=1).set_params(random_state=1).fit(X, y), models[0])


def test_fault_069_a_refit_leaves_no_out_of_bag_results_and_members_behind(kind):
    X, y = make_table()
    keep = {"keep_members": True} if kind in REGRESSORS else {}
    model = make(kind, bootstrap=True, oob_score=True, n_estimators=30, **keep).fit(X, y)
    other, target = make_table(60, seed=1)
    again = clone(model).fit(other, target)
    again.fit(X, y)  # nothing of the fit in between is left
    assert same_forest(again, model)
    assert again.oob_score_ == model.oob_score_
    if keep:
        assert len(again._members) == 30
        assert all(map(np.array_equal, again._members, model._members))
    plain = again.set_params(oob_score=False, **dict.fromkeys(keep, False)).fit(X, y)
    left = [name for name in vars(plain) if name.startswith(("oob_", "_oob", "_members"))]
    assert left == ["oob_score"]


# --- E. parameters --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [-0.5, 0.0, float("inf")])
def test_f13_a_fraction_of_the_rows_has_one_rule(kind, bad):
    X, y = make_table()
    bagging = spinney.BaggingClassifier if kind in CLASSIFIERS else spinney.BaggingRegressor
    for model in (make(kind, bootstrap=True, max_samples=bad), bagging(max_samples=bad)):
        with refuses(ValueError, "'max_samples' parameter of", "a float in the range (0.0, inf)", f"Got {bad}"):
            model.fit(X, y)


def test_the_number_of_trees_comes_first_as_in_scikit_learn(kind):
    assert kind(7).n_estimators == 7
    assert spinney.BaggingClassifier(None, 7).n_estimators == 7
    tree = spinney.CARTClassifier(max_depth=1)
    assert spinney.AdaBoostClassifier(tree).estimator is tree
    assert spinney.BaggingRegressor(tree).estimator is tree


BAD_PARAMETERS = [
    *(("n_estimators", value, "[1, inf)") for value in (0, -1, 1.5, "10")),
    ("n_estimators", True, "number"),
    ("max_depth", 0, "[1, inf)"),
    ("min_samples_split", 1, "[2, inf)"),
    ("min_samples_leaf", 0, "[1, inf)"),
    ("min_weight_fraction_leaf", 0.6, "[0.0, 0.5]"),
    ("min_impurity_decrease", -1.0, "[0.0, inf)"),
    ("max_leaf_nodes", 1, "[2, inf)"),
    ("max_bins", 1, "[2, 65535]"),
    *(("max_features", value, "must be") for value in (0, 0.0, 1.5, "foo", True)),
    ("ccp_alpha", -0.1, "[0.0, inf)"),
    ("bootstrap", "maybe", "'poisson'"),
    ("replace", "no", "bool"),
    *(("max_samples", value, "must be") for value in (0, -1, 0.0, -0.5, "half", True)),
    ("block_size", 0, "[1, inf)"),
    ("honest", "yes", "bool"),
    *(("honest_fraction", value, "(0.0, 1.0)") for value in (0.0, 1.0, np.nan)),
    ("pruning", "val", "'oob'"),
    ("oob_score", 3, "callable"),
    ("missing", "drop", "'branch'"),
    ("ties", "last", "'first'"),
    ("criterion", "ginny", "a str among"),
    ("n_jobs", 1.5, "int"),
    ("verbose", -1, "must be"),
    ("warm_start", "yes", "bool"),
]


@pytest.mark.parametrize(("name", "value", "hint"), BAD_PARAMETERS, ids=lambda part: repr(part)[:20])
def test_fault_072_to_078_parameters_out_of_range(kind, name, value, hint):
    with refuses(InvalidParameterError, f"'{name}' parameter of {kind.__name__}", hint):
        make(kind, **{name: value}).fit(*make_table())


@pytest.mark.parametrize(("name", "value"), [("voting", "loud"), ("stratify", "yes"), ("class_weight", 3)])
def test_parameters_of_classifiers_out_of_range(classifier, name, value):
    with refuses(InvalidParameterError, f"'{name}' parameter of {classifier.__name__}"):
        make(classifier, **{name: value}).fit(*make_table())


def test_fault_072_no_threads(kind):
    with refuses(ValueError, "n_jobs"):
        make(kind, n_jobs=0).fit(*make_table())
    model = make(kind).fit(*make_table()).set_params(n_jobs=0)
    with refuses(ValueError, "n_jobs"):
        model.predict(make_table()[0])


def test_fault_074_and_075_sizes_beyond_the_data(kind):
    X, y = make_table()
    model = make(kind).fit(X, y)
    for huge in (10**9, 10**30, np.int64(2**62)):
        assert same_forest(make(kind, max_depth=huge).fit(X, y), model)
        assert [t.n_leaves for t in make(kind, min_samples_leaf=huge).fit(X, y).forest_] == [1] * 6
        assert make(kind, max_features=huge).fit(X, y).max_features_ == 3


def test_fault_078_size_of_a_bag(kind):
    X, y = make_table()

    def sizes(weight=None, **settings):
        model = make(kind, **{"bootstrap": True, **settings}).fit(X, y, weight)
        return {len(rows) for rows in model.estimators_samples_}

    assert sizes() == {40}
    assert sizes(max_samples=7) == {7}
    assert sizes(max_samples=0.5) == {20}
    assert sizes(max_samples=1.0) == {40}
    assert sizes(max_samples=1e-9) == {1}
    assert sizes(max_samples=0.26, bootstrap=False, replace=False) == {10}
    # with weights a fraction is one of their sum, and None still the number of rows (scikit-learn 1.9)
    assert sizes(np.full(40, 2.0), max_samples=0.5) == {40}
    assert sizes(np.full(40, 2.0)) == {40}
    assert sizes(max_samples=41) == {41}
    assert sizes(max_samples=2.5) == {100}
    for bad in (41, 10**9, 2.5):  # without replacement there are no more than the rows
        with refuses(ValueError, f"max_samples={bad}"):
            make(kind, bootstrap=False, replace=False, max_samples=bad).fit(X, y)
    with refuses(ValueError, f"max_samples={10**10}"):
        make(kind, bootstrap=True, max_samples=10**10).fit(X, y)
    with pytest.warns(UserWarning, match="when the total sum of sample weights is 4 results in a low number"):
        assert sizes(np.full(40, 0.1), max_samples=0.5) == {2}


def test_fault_079_what_needs_bags_is_refused_without(kind):
    X, y = make_table()
    with refuses(ValueError, "Out of bag estimation only available if bootstrap=True"):
        make(kind, bootstrap=False, oob_score=True).fit(X, y)
    for settings in ({"pruning": "oob"}, {"max_samples": 0.5}, {"block_size": 3}):
        with refuses(ValueError, next(iter(settings)), "bootstrap=True"):
            make(kind, bootstrap=False, **settings).fit(X, y)
    for labels in ({"groups": np.arange(40) // 2}, {"strata": y}):
        with refuses(ValueError, next(iter(labels)), "bootstrap=True"):
            make(kind, bootstrap=False).fit(X, y, **labels)
    for settings in ({"oob_score": True}, {"pruning": "oob"}):
        with refuses(ValueError, "all rows in every bag", "max_samples"):
            make(kind, replace=False, **settings).fit(X, y)


def test_draws_that_exclude_each_other(kind):
    X, y = make_table()
    with refuses(ValueError, "bootstrap='poisson'", "replace=False"):
        make(kind, bootstrap="poisson", replace=False).fit(X, y)
    with refuses(ValueError, "block_size", "groups"):
        make(kind, bootstrap=True, block_size=3).fit(X, y, groups=y)
    with refuses(ValueError, "groups must have one label per row, shape (40,), got shape (39,)"):
        make(kind, bootstrap=True).fit(X, y, groups=np.arange(39))
    with refuses(ValueError, "strata must not be missing; row 3 is"):
        make(kind, bootstrap=True).fit(X, y, strata=np.where(np.arange(40) == 3, np.nan, 1.0))
    with refuses(ValueError, "group", "strata"):
        make(kind, bootstrap=True).fit(X, y, groups=np.zeros(40), strata=y)


def test_draws_of_classifiers_that_exclude_each_other(classifier):
    X, y = make_table()
    with refuses(ValueError, "stratify='balanced'", "max_samples"):
        make(classifier, bootstrap=True, stratify="balanced", max_samples=0.5).fit(X, y)
    with refuses(ValueError, "block_size", "stratify"):
        make(classifier, bootstrap=True, stratify="class", block_size=2).fit(X, y)
    with refuses(ValueError, "stratify", "strata"):
        make(classifier, bootstrap=True, stratify="class").fit(X, y, strata=y)
    with refuses(ValueError, "stratify", "bootstrap=True"):
        make(classifier, bootstrap=False, stratify="class").fit(X, y)


def test_fault_080_warm_start(kind):
    X, y = make_table(100)
    keep = {"keep_members": True} if kind in REGRESSORS else {}
    settings = {"warm_start": True, "bootstrap": True, "oob_score": True, **keep}
    model = make(kind, n_estimators=30, **settings).fit(X, y)
    model.set_params(n_estimators=45).fit(X, y)
    whole = make(kind, n_estimators=45, **settings).fit(X, y)
    assert same_forest(model, whole)
    np.testing.assert_array_equal(model.oob_curve_, whole.oob_curve_)
    assert model.oob_score_ == whole.oob_score_
    if keep:
        assert all(map(np.array_equal, model._members, whole._members))
        assert len(model._members) == 45
    with refuses(ValueError, "n_estimators=5 must be larger or equal to len(estimators_)=45 when warm_start==True"):
        model.set_params(n_estimators=5).fit(X, y)
    model.set_params(n_estimators=50)
    with refuses(ValueError, "warm_start", "X has 2 columns, and had 3"):
        model.fit(X[:, :2], y)
    if not keep:
        with refuses(ValueError, "warm_start", "y differs: its classes are (0, 1, 2), and were (0, 1)"):
            model.fit(X, np.arange(100) % 3)
    for other in ((X, 1 - y), (X[::-1], y), (X[:50], y[:50])):
        with refuses(ValueError, "oob_score needs the bags of all members", "45 of them", "(X or y differed)"):
            model.fit(*other)
    with refuses(ValueError, "oob_score", "sample_weight", "(probability)"):
        model.fit(X, y, np.arange(1.0, 101.0))
    with refuses(ValueError, "oob_score", "(groups)"):
        model.fit(X, y, groups=np.arange(100) // 2)
    with refuses(ValueError, "oob_score", "(n_drawn)"):
        model.set_params(max_samples=0.5).fit(X, y)
    model.set_params(max_samples=None)
    assert same_forest(model, whole)  # every refusal left it as it was
    with pytest.warns(UserWarning, match="does not fit new trees"):
        model.set_params(n_estimators=45).fit(X, y)
    assert same_forest(model, whole)


def test_fault_080_warm_start_that_asks_for_more_than_the_first_fit(kind):
    X, y = make_table(100)
    model = make(kind, n_estimators=30, warm_start=True, bootstrap=True).fit(X, y)
    model.set_params(n_estimators=40, oob_score=True).fit(X, y)
    whole = make(kind, n_estimators=40, bootstrap=True, oob_score=True).fit(X, y)
    np.testing.assert_array_equal(model.oob_curve_, whole.oob_curve_)
    assert model.oob_score_ == whole.oob_score_
    model.set_params(n_estimators=41, oob_score=False).fit(X, y)
    assert not hasattr(model, "oob_score_")
    if kind in REGRESSORS:
        with refuses(ValueError, "keep_members=True, but the 41 trees of the last fit were grown without"):
            model.set_params(n_estimators=42, keep_members=True).fit(X, y)


def test_fault_080_warm_start_with_other_weights_that_trees_see(kind):
    X, y = make_table(100)
    weight = np.arange(1.0, 101.0)
    settings = {"warm_start": True, "replace": False, "max_samples": 0.6, "oob_score": True}
    model = make(kind, n_estimators=10, **settings).fit(X, y, weight)
    before = len(model.forest_)
    model.set_params(n_estimators=12)
    for other in (weight[::-1], None):
        with refuses(ValueError, "oob_score", "(sample_weight or class_weight differed)", "warm_start=False"):
            model.fit(X, y, other)
    assert len(model.forest_) == before
    whole = make(kind, n_estimators=12, **settings).fit(X, y, weight)
    assert same_forest(model.fit(X, y, weight), whole)


def test_fault_080_warm_start_with_other_honest_parts(kind):
    X, y = make_table(100)
    model = make(kind, n_estimators=20, warm_start=True, bootstrap=True, honest=True, oob_score=True).fit(X, y)
    for change in ({"honest_fraction": 0.7}, {"honest": False}):
        with refuses(ValueError, "oob_score", "(honest or honest_fraction differed)"):
            model.set_params(n_estimators=22, **change).fit(X, y)
        model.set_params(honest=True, honest_fraction=0.5)
    assert len(model.fit(X, y).forest_) == 22


def test_fault_080_warm_start_on_columns_levels_or_classes_of_other_names(kind):
    X = pd.DataFrame({"a": np.arange(60) % 7, "b": pd.Categorical(list("abc") * 20)})
    y = np.arange(60) % 2
    model = make(kind, n_estimators=5, warm_start=True, bootstrap=True).fit(X, y)
    model.set_params(n_estimators=6)
    renamed = X.assign(b=X["b"].cat.rename_categories({"c": "z"}))
    for other, words in ((renamed, "X differs in the levels"), (X.rename(columns={"a": "A"}), "'A', and was 'a'")):
        with refuses(ValueError, "warm_start", words):
            model.fit(other, y)
    with refuses(ValueError, "X and y are not the training data"):
        model.importance("permutation", renamed, y)
    if kind not in REGRESSORS:
        with refuses(ValueError, "warm_start", "its classes are (1, 2), and were (0, 1)"):
            model.fit(X, y + 1)
    assert len(model.fit(X, y).forest_) == 6


@pytest.mark.parametrize("first", ["soft", "hard"])
def test_fault_080_warm_start_with_another_voting(classifier, first):
    X, y = make_table(100)
    other = "hard" if first == "soft" else "soft"
    settings = {"bootstrap": True, "oob_score": True, "min_samples_leaf": 5}
    model = make(classifier, n_estimators=30, warm_start=True, voting=first, **settings).fit(X, y)
    model.set_params(voting=other)
    with refuses(ValueError, "voting has been changed since fit", "train=(X, y)"):
        model.predict_set(X)
    model.predict_set(X, train=(X, y))
    model.set_params(n_estimators=45).fit(X, y)
    whole = make(classifier, n_estimators=45, voting=other, **settings).fit(X, y)
    np.testing.assert_array_equal(model.oob_decision_function_, whole.oob_decision_function_)
    np.testing.assert_array_equal(model.oob_curve_, whole.oob_curve_)
    np.testing.assert_array_equal(model.predict_set(X), whole.predict_set(X))


def test_fault_082_monotone_constraints_of_honest_trees(kind):
    X, y = make_table()
    with refuses(ValueError, "honest=True", "monotonic_cst could not hold"):
        make(kind, monotonic_cst=[1, 0, 0], honest=True).fit(X, y)
    make(kind, monotonic_cst=[0, 0, 0], honest=True).fit(X, y)  # nothing to hold


# --- refusals, interruptions, copies --------------------------------------------------------------------------------


@pytest.mark.sampled(4)
def test_in_a_search_with_processes_and_threads(kind):
    X, y = make_table(60)
    grid = {"max_depth": [1, 3]}
    alone = GridSearchCV(make(kind), grid, cv=2).fit(X, y)
    for backend in ("threading", "loky"):
        with joblib.parallel_config(backend, n_jobs=2):
            search = GridSearchCV(make(kind, n_jobs=2), grid, cv=2, n_jobs=2).fit(X, y)
        np.testing.assert_array_equal(search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])


def test_a_refused_scorer_keeps_the_model(kind):
    X, y = make_table()
    model = make(kind, bootstrap=True, oob_score=True, n_estimators=30).fit(X, y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="oob_score='fast' is not the name of a scorer"):
        model.set_params(oob_score="fast").fit(X, 1 - y)
    model.set_params(oob_score=True)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is before[name] for name in before)
    model.fit(X, y)


def test_what_only_forests_have_before_fit(kind):
    X, _ = make_table()
    model = make(kind)
    for call in (
        lambda: model.vote_table(X[0]),
        lambda: model.decompose(X),
        lambda: model[0],
        lambda: len(model),
    ):
        with pytest.raises(NotFittedError, match=f"{kind.__name__} instance is not fitted yet"):
            call()
    for name in ("estimators_samples_", "oob_score_"):
        assert not hasattr(model, name)


def test_no_warnings_with_bags(kind):
    X, y = make_table(200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = make(kind, n_estimators=40, bootstrap=True, oob_score=True).fit(X, y)
        model.predict(X)
