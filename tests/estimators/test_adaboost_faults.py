"""Bad and odd input to AdaBoost, by the numbers of `tests/FAULTS.md`: weights, validation, parameters.

What every class answers alike is in `test_faults`.
"""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils._param_validation import InvalidParameterError

from fault_cases import coloured_rows, make_table, refuses
from spinney import AdaBoostClassifier, AdaBoostRegressor, CARTClassifier, CARTRegressor

KINDS = [AdaBoostClassifier, AdaBoostRegressor]
TREES = {AdaBoostClassifier: CARTClassifier, AdaBoostRegressor: CARTRegressor}
FOREST_FIELDS = ("hot", "n_rows", "weight", "impurity", "subsets", "distributions", "first_node", "first_mixed")


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


def make(kind, depth=1, **settings):
    tree = settings.pop("tree", {})
    return kind(TREES[kind](**{"max_depth": depth, **tree}), **{"n_estimators": 6, "random_state": 0, **settings})


def same_model(one, other):
    same = all(np.array_equal(getattr(one.forest_, name), getattr(other.forest_, name)) for name in FOREST_FIELDS)
    return same and np.array_equal(one.estimator_weights_, other.estimator_weights_)


# --- A. shape and type of X -----------------------------------------------------------------------------------------


def test_fault_004_and_005_one_row_one_column(kind):
    model = make(kind).fit([[1.0, 2.0]], [3])
    assert model.predict([[5.0, np.nan], [1.0, 2.0]]).tolist() == [3, 3]
    assert len(model) == 1
    assert make(kind).fit([[1], [2], [3]], [0, 0, 1]).predict([[1], [2], [3]]).tolist() == [0, 0, 1]


# --- B. values in X -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["learned", "branch"])
def test_fault_030_to_033_missing_and_infinite_values(kind, missing):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(200, 2))
    X[:50, 0] = np.nan
    X[50:60, 0], X[60:70, 0] = np.inf, -np.inf
    y = (np.isnan(X[:, 0]) | (X[:, 0] > 1)).astype(int)
    for depth in (1, 2):
        model = make(kind, depth, n_estimators=30, tree={"missing": missing}).fit(X, y)
        assert np.mean(np.round(model.predict(X)) == y) > 0.97
        assert np.round(model.predict([[np.nan, 0.0], [np.inf, 0.0], [-np.inf, 0.0]])).tolist() == [1, 1, 0]
    hole = np.column_stack([np.full(200, np.nan), X])
    assert make(kind).fit(hole, y).feature_importances_[0] == 0.0
    known = make(kind).fit(X[70:], y[70:])  # missing in predict only
    assert np.isfinite(known.predict([[np.nan, np.nan]]).astype(float)).all()


def test_fault_034_to_038_odd_values(kind):
    for scale in (1e300, 1.7e308, 1e-310):
        X = np.array([-1.0, -0.5, 0.5, 1.0])[:, None] * scale
        assert make(kind).fit(X, [0, 0, 1, 1]).predict(X).tolist() == [0, 0, 1, 1]
    X, y = make_table()
    X[:, 1] = 7.0
    assert make(kind).fit(X, y).feature_importances_[1] == 0.0
    alike = make(kind).fit(np.ones((6, 3)), [0, 1, 1, 0, 1, 1])
    assert [tree.n_leaves for tree in alike.forest_][:1] == [1]
    assert np.round(alike.predict(np.ones((1, 3)))).tolist() == [1]
    zeros = make(kind).fit([[0.0], [-0.0], [0.0], [-0.0]], [0, 1, 1, 1])
    assert [tree.n_leaves for tree in zeros.forest_][:1] == [1]
    above = np.nextafter(1.0, 2.0)
    close = np.array([[1.0], [above], [1.0], [above]])
    assert make(kind).fit(close, [0, 1, 0, 1]).predict(close).tolist() == [0, 1, 0, 1]


def test_fault_039_to_041_bins_and_many_columns(kind):
    X = np.zeros((2000, 1))
    X[[3, 77]] = [[1.0], [-1.0]]
    for max_bins in (2, 255):
        model = make(kind, tree={"max_bins": max_bins}).fit(X, X[:, 0] != 0)
        model.forest_.check()
        assert model.predict([[0.0]])[0] < 0.01
    many = np.random.default_rng(0).normal(size=(70_000, 1))
    assert make(kind, n_estimators=2).fit(many, many[:, 0] > 0.1).predict([[-1.0], [1.0]]).tolist() == [0, 1]
    wide = np.random.default_rng(0).normal(size=(10, 5000))
    y = np.arange(10) % 2
    wide[:, 1234] = y
    assert make(kind).fit(wide, y).predict(wide).tolist() == y.tolist()


# --- C. y -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [2.0**996, 2.0**1023, 2.0**-996])
@pytest.mark.parametrize("loss", ["linear", "square", "exponential"])
def test_fault_043_huge_and_tiny_targets(scale, loss):
    X, _ = make_table(100)
    steps = np.clip(np.round(X[:, 0] * 2 + X[:, 1]), -4, 4) / 4
    for depth in (1, 3):
        model = make(AdaBoostRegressor, depth, loss=loss, n_estimators=15).fit(X, steps * scale)
        unit = make(AdaBoostRegressor, depth, loss=loss, n_estimators=15).fit(X, steps)
        np.testing.assert_allclose(model.predict(X) / scale, unit.predict(X), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(model.estimator_weights_, unit.estimator_weights_, rtol=1e-9)
        np.testing.assert_allclose(model.feature_importances_, unit.feature_importances_)


def test_fault_043_targets_at_both_ends_of_float64():
    X, y = make_table(100)
    ends = np.where(y == 1, 1.5e308, -1.5e308)
    model = make(AdaBoostRegressor, 2).fit(X, ends)
    unit = make(AdaBoostRegressor, 2).fit(X, ends / 1e308)
    np.testing.assert_allclose(model.predict(X), unit.predict(X) * 1e308, rtol=1e-9)


def test_fault_044_one_class_in_margins_and_other_members():
    X, _ = make_table()
    model = make(AdaBoostClassifier).fit(X, np.full(40, "only"))
    assert model.predict(X).tolist() == ["only"] * 40
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((40, 1)))
    np.testing.assert_array_equal(model.decision_function(X), np.zeros((40, 1)))
    assert model.margins(X, ["only"] * 40).tolist() == [1.0] * 40
    assert model.feature_importances_.tolist() == [0.0, 0.0, 0.0]
    other = AdaBoostClassifier(DecisionTreeClassifier()).fit(X, np.full(40, 2))
    assert other.predict(X).tolist() == [2] * 40


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes", "perhaps"], dtype=object),
        np.array([False, True]),
        np.array([-3, -1]),
        np.array([5, 7, 1000], dtype=np.uint16),
        np.array([1.0, 2.0]),
    ],
    ids=repr,
)
@pytest.mark.parametrize("base", [CARTClassifier(max_depth=2), DecisionTreeClassifier(max_depth=2)])
def test_fault_045_classes_of_any_type_in_members_and_rounds(labels, base):
    X, _ = make_table()
    y = labels[np.digitize(X[:, 0], [-0.5, 0.5][: len(labels) - 1])]
    model = AdaBoostClassifier(base, n_estimators=5).fit(X, y)
    assert model.predict(X).dtype == y.dtype
    assert model.predict(X).tolist() == y.tolist()
    assert model.classes_.tolist() == sorted(labels.tolist())
    assert model.estimators_[0].predict(X).dtype == y.dtype
    assert next(model.staged_predict(X)).dtype == y.dtype


@pytest.mark.parametrize("ghost", [0, 1, 2])
def test_fault_046_a_class_of_weight_zero_is_kept_and_never_predicted(ghost):
    X, _ = make_table(120)
    y = np.digitize(X[:, 0] + 0.3 * X[:, 1], [-0.5, 0.5])
    weight = np.where(y == ghost, 0.0, 1.0)
    model = make(AdaBoostClassifier).fit(X, y, weight)
    assert model.classes_.tolist() == [0, 1, 2]
    assert ghost not in model.predict(X)
    without = make(AdaBoostClassifier).fit(X[y != ghost], y[y != ghost])  # two classes: no term for a third
    np.testing.assert_allclose(model.estimator_weights_, without.estimator_weights_, rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), without.predict(X))


def test_fault_051_unseen_classes_in_margins_and_staged_scores():
    X, y = make_table()
    model = make(AdaBoostClassifier).fit(X, np.array(["no", "yes"])[y])
    with refuses(ValueError, "y holds the class 'Yes'", "not among the classes in fit"):
        model.margins(X, np.array(["no", "Yes"])[y])
    *_, last = model.staged_score(X, np.array(["no", "Yes"])[y])
    assert last == model.score(X, np.array(["no", "Yes"])[y])


# --- D. weights, validation, randomness -----------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [1, 3])
def test_fault_058_and_059_rows_of_weight_zero_and_repeated_rows(kind, depth):
    X, y = make_table(80)
    y = y + (X[:, 2] > 0.5)
    weight = np.arange(80) % 3
    model = make(kind, depth).fit(X, y, weight)
    without = make(kind, depth).fit(X[weight > 0], y[weight > 0], weight[weight > 0])
    assert same_model(model, without)
    liar = np.where(weight > 0, y, 2 - y)  # what such rows say does not matter, however far off
    assert same_model(make(kind, depth).fit(X, liar, weight), model)
    far = np.where(weight[:, None] > 0, X, 1e300)
    assert same_model(make(kind, depth).fit(far, y, weight), model)
    repeated = make(kind, depth).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(repeated.predict(X), model.predict(X), rtol=1e-12)
    np.testing.assert_allclose(repeated.estimator_weights_, model.estimator_weights_, rtol=1e-9)


@pytest.mark.parametrize("scale", [2.0**1020, 2.0**-1000, 5e-324])
def test_fault_060_huge_and_tiny_weights(kind, scale):
    X, y = make_table()
    weight = (1.0 + np.arange(40) % 3) * scale
    other = {
        AdaBoostClassifier: DecisionTreeClassifier(max_depth=1),
        AdaBoostRegressor: DecisionTreeRegressor(max_depth=1),
    }
    for base in (TREES[kind](max_depth=1), other[kind]):
        model = kind(base, n_estimators=10).fit(X, y, weight)
        assert np.isfinite(model.predict(X).astype(float)).all()
        assert np.isfinite(model.estimator_weights_).all()
    model, unit = make(kind).fit(X, y, weight), make(kind).fit(X, y, 1.0 + np.arange(40) % 3)
    np.testing.assert_allclose(model.estimator_weights_, unit.estimator_weights_, rtol=1e-9)
    np.testing.assert_allclose(model.predict(X), unit.predict(X))


def test_fault_063_to_065_and_081_validation(kind):
    X, y = make_table()
    other, labels = make_table(20, seed=1)
    with refuses(ValueError, "X_val and y_val belong together"):
        make(kind).fit(X, y, X_val=other)
    with refuses(ValueError, "X_val and y_val belong together"):
        make(kind).fit(X, y, y_val=labels)
    with refuses(ValueError, "sample_weight_val belongs to X_val and y_val"):
        make(kind).fit(X, y, sample_weight_val=np.ones(20))
    with refuses(ValueError, "n_iter_no_change=3 stops early by rows held out, but there are none"):
        make(kind, n_iter_no_change=3, validation_fraction=None).fit(X, y)
    for base in (None, {AdaBoostClassifier: LogisticRegression(), AdaBoostRegressor: LinearRegression()}[kind]):
        model = kind(base, n_estimators=3)
        with refuses(ValueError, "X_val", "X has 2 features", "expecting 3 features"):
            model.fit(X, y, X_val=other[:, :2], y_val=labels)
        with refuses(ValueError, "y_val", "Input y contains NaN", "row 3"):
            model.fit(X, y, X_val=other, y_val=np.where(np.arange(20) == 3, np.nan, labels))
        with refuses(ValueError, "y_val", "X has 20 rows, y has 19"):
            model.fit(X, y, X_val=other, y_val=labels[:-1])
        with refuses(ValueError, "sample_weight_val", "all zero"):
            model.fit(X, y, X_val=other, y_val=labels, sample_weight_val=np.zeros(20))
    if kind is AdaBoostClassifier:
        with refuses(ValueError, "y_val", "y holds the class 5"):
            make(kind).fit(X, y, X_val=other, y_val=labels + 5)
    with refuses(ValueError, "validation_fraction", "none is left to learn"):
        make(kind, n_iter_no_change=3).fit(X[:1], y[:1])
    with refuses(ValueError, "validation_fraction=40 holds out 40 of 40"):
        make(kind, n_iter_no_change=3, validation_fraction=40).fit(X, y)


def test_fault_054_classes_of_one_row_are_learnt_from():
    X, y = make_table()
    y[5] = 2
    with pytest.warns(UserWarning, match="single row, which is needed to learn from"):
        model = make(AdaBoostClassifier, 3, n_iter_no_change=3, n_estimators=30).fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2]
    assert (model.predict(X) == 2).any()


def test_fault_069_a_refit_leaves_no_validation_and_no_trees_behind(kind):
    X, y = make_table()
    model = make(kind).fit(X, y)
    other, target = make_table(60, seed=1)
    again = clone(model).set_params(n_iter_no_change=2).fit(pd.DataFrame(other, columns=list("abc")), target)
    assert hasattr(again, "validation_scores_")
    again.set_params(n_iter_no_change=None).fit(X, y)
    assert same_model(again, model)
    assert vars(again).keys() == vars(model).keys()
    base = {AdaBoostClassifier: LogisticRegression(), AdaBoostRegressor: LinearRegression()}[kind]
    again.set_params(estimator=base).fit(X, y)
    assert not hasattr(again, "forest_")


# --- E. parameters --------------------------------------------------------------------------------------------------


BAD_PARAMETERS = [
    *(("n_estimators", value, "[1, inf)") for value in (0, -1, 1.5, "10")),
    ("n_estimators", True, "number"),
    *(("learning_rate", value, "(0.0, inf)") for value in (0, 0.0, -1.0, np.nan, np.inf, "fast")),
    ("n_iter_no_change", 0, "[1, inf)"),
    *(("validation_fraction", value, "must be") for value in (0.0, 1.0, -0.1, 0, "half")),
    *(("tol", value, "[0.0, inf)") for value in (-1e-9, np.nan)),
    ("verbose", -1, "must be"),
    ("estimator", "stump", "must be"),
    ("estimator", 3, "must be"),
]


@pytest.mark.parametrize(("name", "value", "hint"), BAD_PARAMETERS, ids=lambda part: repr(part)[:20])
def test_fault_072_to_077_parameters_out_of_range(kind, name, value, hint):
    with refuses(InvalidParameterError, f"'{name}' parameter of {kind.__name__}", hint):
        kind(**{name: value}).fit(*make_table())


def test_parameters_of_one_kind_out_of_range():
    with refuses(InvalidParameterError, "'convention' parameter of AdaBoostClassifier", "'half'"):
        AdaBoostClassifier(convention="third").fit(*make_table())
    with refuses(InvalidParameterError, "'loss' parameter of AdaBoostRegressor", "'square'"):
        AdaBoostRegressor(loss="cubic").fit(*make_table())


def test_fault_073_a_huge_learning_rate(kind):
    X, y = make_table(100)
    y = y + (X[:, 2] > 0)  # no stump is perfect
    model = make(kind, learning_rate=1e30, n_estimators=10).fit(X, y)
    assert np.isfinite(model.estimator_weights_).all()
    assert np.isfinite(model.predict(X).astype(float)).all()
    if kind is AdaBoostClassifier:
        with refuses(ValueError, "learning_rate=1.7e+308 makes the weight of member", "infinite: lower it"):
            make(kind, learning_rate=1.7e308, n_estimators=10).fit(X, y)


def test_fault_074_to_077_parameters_of_the_trees(kind):
    X, y = make_table()
    for tree in ({"max_depth": 0}, {"max_bins": 1}, {"max_features": "foo"}, {"min_samples_leaf": 0}):
        with refuses(InvalidParameterError, f"'{next(iter(tree))}' parameter of {TREES[kind].__name__}"):
            make(kind, tree=tree).fit(X, y)
    huge = make(kind, tree={"max_depth": 10**9}).fit(X, y)
    assert huge.predict(X).tolist() == y.tolist()
    single = make(kind, tree={"min_samples_leaf": 10**9}).fit(X, np.where(np.arange(40) < 30, 1, 0))
    assert next(iter(single.forest_)).n_leaves == 1


def test_estimators_of_the_wrong_kind(kind):
    X, y = make_table()
    wrong = {AdaBoostClassifier: LinearRegression(), AdaBoostRegressor: LogisticRegression()}[kind]
    with refuses(ValueError, f"estimator of {kind.__name__} is {wrong!r}, which is no"):
        kind(wrong).fit(X, y)
    with refuses(TypeError, "is the class", "give an instance"):
        kind(TREES[kind]).fit(X, y)


# --- refusals, interruptions ----------------------------------------------------------------------------------------


def test_what_only_adaboost_has_before_fit(kind):
    X, y = make_table()
    model = kind()
    calls = [lambda: model[0], lambda: len(model)]
    if kind is AdaBoostClassifier:
        calls += [lambda: model.margins(X, y), model.training_bound]
    for call in calls:
        with pytest.raises(NotFittedError, match=f"{kind.__name__} instance is not fitted yet"):
            call()
    for name in ("normalisers_", "validation_scores_"):
        assert not hasattr(model, name)


def test_no_warnings_with_early_stopping(kind):
    X, y = make_table(200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(kind, n_iter_no_change=5, n_estimators=40).fit(X, y).predict(X)


@pytest.mark.parametrize("depth", [1, 2])
def test_fault_085_unseen_levels_and_names_in_members(kind, depth):
    frame, y = coloured_rows()
    model = make(kind, depth, n_estimators=20).fit(frame, y)
    assert np.mean(np.round(model.predict(frame)) == y, where=frame["colour"].notna().to_numpy()) > 0.9
    assert model.feature_names_in_.tolist() == model[0].feature_names_in_.tolist() == ["colour", "x"]
    unseen = model.predict(pd.DataFrame({"colour": ["violet", None], "x": [0.0, 0.0]}))
    assert unseen[0] == unseen[1]
