"""Bad and odd input to a single tree, by the numbers of `tests/FAULTS.md`: what depends on how trees grow.

What every class answers alike is in `test_faults`; what ID3 and C4.5 do otherwise in `test_textbook_faults`; 66, 67, 69
and 70 are in `test_contract`.
"""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.utils._param_validation import InvalidParameterError

from fault_cases import COLOURS, FRAMES, IS_WARM, TREES, colours, is_classifier, make_table, refuses, same_tree
from spinney import C45Classifier, CARTClassifier, CARTRegressor


@pytest.fixture(params=TREES, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


@pytest.fixture(params=TREES[:4], ids=lambda kind: kind.__name__)
def grown(request):
    """Trees that grow until rows are alike; C4.5 wants more of a test than a table of four rows has."""
    return request.param


@pytest.fixture(params=TREES[:2], ids=lambda kind: kind.__name__)
def cart(request):
    """What has CART's parameters, and its ways with missing values; for the others see `test_textbook_faults`."""
    return request.param


@pytest.fixture(params=FRAMES)
def frame_of(request):
    return FRAMES[request.param]


def settings_of(kind, *common, cart=(), textbook=()):
    """Settings to try a class with: those that all trees have, then those of its own kind."""
    return [*common, *(cart if kind in TREES[:2] else textbook)]


# --- A. shape and type of X ---------------------------------------------------------------------------------------


def test_fault_017_text_arrays(grown):
    X = np.array([["a", "1"], ["b", "2"], ["a", "3"]])
    with refuses(ValueError, "Column 0 holds text, such as 'a'", "categorical_features", "frame"):
        grown().fit(X, [0, 1, 0])
    model = grown(categorical_features=[0, 1]).fit(X, [0, 1, 0])
    assert model.predict(X).tolist() == [0, 1, 0]


def test_fault_021_integers_beyond_float64_are_refused_where_they_would_merge(grown, frame_of):
    large = np.array([2**53, 2**53 + 1, 5, 7])
    with refuses(ValueError, "Column 1 holds 9007199254740992 and 9007199254740993", "one number in float64"):
        grown().fit(np.column_stack([np.arange(4), large]), [0, 1, 0, 1])
    with refuses(ValueError, "Column 'id' holds 9007199254740992 and 9007199254740993"):
        grown().fit(frame_of({"id": large}), [0, 1, 0, 1])
    even = np.array([2**53, 2**53 + 2, 2**53 + 4, -(2**60)])[:, None]  # all of them exist
    model = grown().fit(even, [0, 1, 0, 1])
    assert model.predict(even).tolist() == [0, 1, 0, 1]
    with pytest.warns(UserWarning, match=r"Column 0 holds 9007199254740993, which float64 rounds to 9007199254740992"):
        model.predict([[2**53 + 1]])


def test_fault_025_pandas_nullable_columns(grown):
    X = pd.DataFrame(
        {
            "whole": pd.array([1, None, 3, 4, 5, 6], dtype="Int64"),
            "flag": pd.array([True, False, None, True, False, True], dtype="boolean"),
            "text": pd.array(["a", "b", None, "a", "b", "b"], dtype="string"),
        }
    )
    y = [0, 1, 0, 1, 0, 1]
    plain = np.array([[1, 1, 0], [np.nan, 0, 1], [3, np.nan, np.nan], [4, 1, 0], [5, 0, 1], [6, 1, 1]])
    model = grown().fit(X, y)
    assert same_tree(model.tree_.arrays, grown(categorical_features=[2]).fit(plain, y).tree_.arrays)
    assert model.predict(X).tolist() == y


@pytest.mark.parametrize("library", [pl.DataFrame, pa.table], ids=["polars", "pyarrow"])
def test_fault_026_nulls(grown, library):
    X = library(
        {
            "whole": [1, None, 3, 4, 5, 6],
            "real": [0.5, float("nan"), None, 1.0, 1.5, 2.0],
            "flag": [True, False, None, True, False, True],
            "text": ["a", "b", None, "a", "b", "b"],
        }
    )
    y = [0, 1, 0, 1, 0, 1]
    nan = np.nan
    plain = [[1, 0.5, 1, 0], [nan, nan, 0, 1], [3, nan, nan, nan], [4, 1, 1, 0], [5, 1.5, 0, 1], [6, 2, 1, 1]]
    model = grown().fit(X, y)
    assert same_tree(model.tree_.arrays, grown(categorical_features=[3]).fit(np.array(plain), y).tree_.arrays)
    assert model.predict(X).tolist() == y


# --- B. values in X -----------------------------------------------------------------------------------------------


def test_fault_030_missing_numbers_take_the_better_branch(cart):
    known = np.arange(10.0)
    for missing_like in (0, 1):  # the missing rows belong to the low or to the high values
        X = np.append(known, [np.nan] * 4)[:, None]
        y = np.append(known > 4.5, [missing_like] * 4).astype(int)
        model = cart(max_depth=1).fit(X, y)
        assert model.predict(X).tolist() == y.tolist()
        assert model.predict([[np.nan]]).tolist() == [missing_like]
        assert model.tree_.missing_branch[0] == missing_like


def test_fault_031_a_column_that_is_missing_throughout_is_never_chosen(kind, frame_of):
    X, y = make_table()
    nothing = pa.array([None] * 40, pa.float64()).to_numpy(zero_copy_only=False)
    for settings in settings_of(kind, {}, cart=[{"missing": "branch"}]):
        plain = kind(**settings).fit(X[:, 1:], y).tree_.arrays
        model = kind(**settings).fit(np.column_stack([nothing, X[:, 1:]]), y)
        assert model.feature_importances_[0] == 0.0
        assert not (model.tree_.arrays.feature == 0).any()
        assert model.tree_.n_nodes == plain.n_nodes
        framed = kind(**settings).fit(frame_of({"hole": nothing, "b": X[:, 1], "c": X[:, 2]}), y)
        assert same_tree(framed.tree_.arrays, model.tree_.arrays)


def test_fault_032_missing_only_in_predict_takes_the_heavier_branch(cart):
    X = np.arange(10.0)[:, None]
    for missing in ("learned", "branch"):
        assert cart(missing=missing).fit(X, X[:, 0] > 2.5).predict([[np.nan]]).tolist() == [1]
        assert cart(missing=missing).fit(X, X[:, 0] > 6.5).predict([[np.nan]]).tolist() == [0]
        weight = np.where(X[:, 0] > 6.5, 10.0, 1.0)  # by weight, not by rows
        assert cart(missing=missing).fit(X, X[:, 0] > 6.5, weight).predict([[np.nan]]).tolist() == [1]


def test_fault_033_infinite_values_are_the_largest_and_the_smallest(cart):
    X = np.array([-np.inf, -np.inf, -1e308, 0.0, 1e308, np.inf, np.inf])[:, None]
    for y in ([1, 1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 1, 1], [0, 0, 1, 0, 1, 0, 0], [1, 1, 0, 0, 0, 1, 1]):
        model = cart().fit(X, y)
        model.tree_.check()
        assert model.predict(X).tolist() == y
        assert model.predict(X.astype(object)).tolist() == y
    with_missing = np.append(X, [[np.nan]], axis=0)
    y = [0, 0, 0, 0, 0, 1, 1, 0]
    for missing in ("learned", "branch"):
        assert cart(missing=missing).fit(with_missing, y).predict(with_missing).tolist() == y
    assert cart().fit([[0.0], [1.0]], [0, 1]).predict([[-np.inf], [np.inf]]).tolist() == [0, 1]


def test_fault_034_huge_and_subnormal_values(grown):
    for scale in (1e300, 1.7e308, 5e-324, 1e-310):
        X = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])[:, None] * scale
        if scale == 5e-324:
            X = np.arange(-2, 3)[:, None] * scale
        y = [0, 1, 0, 1, 0]
        model = grown().fit(X, y)
        assert model.predict(X).tolist() == y
        assert np.isfinite(model.tree_.arrays.threshold).all()


def test_fault_035_a_constant_column_is_never_chosen(grown):
    X, y = make_table()
    X[:, 1] = 7.0
    assert not (grown().fit(X, y).tree_.arrays.feature == 1).any()
    X[::3, 1] = np.nan  # but being known or missing may tell
    model = grown(max_depth=1).fit(X[:, 1:2], np.isnan(X[:, 1]))
    assert model.predict(X[:, 1:2]).tolist() == np.isnan(X[:, 1]).tolist()


@pytest.mark.parametrize("value", [1.0, 0.0, -1.0, 1e300, 1e-310, 2.0**53, -3.7])
def test_fault_036_neighbouring_floats_are_told_apart(grown, value):
    above = np.nextafter(value, np.inf)
    X = np.array([[value], [above], [value], [above]])
    model = grown().fit(X, [0, 1, 0, 1])
    assert model.predict(X).tolist() == [0, 1, 0, 1]
    assert value <= model.tree_.arrays.threshold[0] < above


def test_fault_038_rows_alike_with_other_targets(kind):
    model = kind().fit(np.ones((6, 3)), [0, 1, 1, 0, 1, 1])
    assert model.get_n_leaves() == 1
    if is_classifier(kind):
        assert model.predict(np.ones((1, 3))).tolist() == [1]
        np.testing.assert_allclose(model.predict_proba(np.ones((1, 3))), [[1 / 3, 2 / 3]])
    else:
        assert model.predict(np.ones((1, 3))).tolist() == [pytest.approx(2 / 3)]


@pytest.mark.compiled(reason="takes more rows than there are codes")
def test_fault_039_more_values_than_codes(grown):
    n_rows = 70_000
    X = np.random.default_rng(0).permutation(n_rows).astype(float)[:, None]
    y = (X[:, 0] >= n_rows // 2).astype(int)
    model = grown(max_depth=2).fit(X, y)
    assert np.mean(model.predict(X) == y) > 0.9999
    for max_bins in (2, 3, 255, 256):
        binned = grown(max_bins=max_bins).fit(X, y)
        assert binned.get_n_leaves() <= max_bins
        assert np.mean(np.round(binned.predict(X)) == y) > (0.999 if max_bins % 2 == 0 else 0.6)
    # a threshold lies between the node's own neighbours, not at a bin's edge
    coarse = grown(max_bins=2).fit([[0.0], [1.0], [10.0], [11.0]], [0, 0, 1, 1])
    assert coarse.tree_.arrays.threshold[0] == 5.5


def test_fault_040_one_value_in_nearly_all_rows(grown):
    X = np.zeros((20_000, 1))
    X[[3, 77]] = [[1.0], [-1.0]]
    y = X[:, 0] != 0
    for max_bins in (2, 3, 255, 65_535):
        model = grown(max_bins=max_bins).fit(X, y)
        model.tree_.check()
        assert model.predict([[0.0]])[0] < 0.001
    assert model.predict(X).tolist() == y.tolist()


def test_fault_041_many_columns(kind):
    n_columns = 20_000
    X = np.random.default_rng(0).normal(size=(10, n_columns))
    y = np.arange(10) % 2
    X[:, 12_345] = y
    model = kind().fit(X, y)
    assert model.predict(X).tolist() == y.tolist()
    assert model.get_depth() == 1


@pytest.mark.slow
def test_fault_041_a_million_columns(kind):
    X = np.random.default_rng(0).normal(size=(10, 1_000_000)).round(1)
    y = np.arange(10) % 2
    X[:, 765_432] = y - 100.0
    X[:, :765_432] = np.sort(X[:, :765_432], axis=0)  # none of the columns before it tells the classes apart
    model = kind().fit(X, y)
    assert model.tree_.arrays.feature[0] == 765_432
    assert model.predict(X).tolist() == y.tolist()


# --- C. y ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e300, 1.5e308, 1e-300, 5e-324])
@pytest.mark.parametrize("criterion", ["squared_error", "sdr"])
def test_fault_043_huge_and_tiny_targets(scale, criterion):
    X, _ = make_table(100)
    steps = np.clip(np.round(X[:, 0] * 2), -4, 4) / 4 if scale > 1e-310 else np.round(X[:, 0] * 2)
    y = steps * scale
    model = CARTRegressor(criterion=criterion).fit(X, y)
    np.testing.assert_allclose(model.predict(X), y, rtol=1e-9)
    assert np.isfinite(model.feature_importances_).all()
    assert model.feature_importances_.sum() == pytest.approx(1.0)
    unit = CARTRegressor(criterion=criterion).fit(X, steps)
    assert np.array_equal(model.tree_.test, unit.tree_.test)  # the same tree at any scale
    coarse = CARTRegressor(criterion=criterion, max_depth=2).fit(X, y)
    assert np.isfinite(coarse.predict(X)).all()
    assert np.isfinite(coarse.tree_.values()).all()
    coarse.tree_.check()
    assert coarse.tree_.to_text()
    path = model.cost_complexity_pruning_path(X, y)  # alphas are squares: beyond float64 they are 0 or inf
    assert len(path.ccp_alphas) == len(unit.cost_complexity_pruning_path(X, steps).ccp_alphas)
    assert not np.isnan(path.ccp_alphas).any()
    assert not np.isnan(path.impurities).any()


def test_fault_043_small_differences_on_a_large_offset():
    X, _ = make_table(100)
    steps = np.round(X[:, 0] * 2)
    model = CARTRegressor().fit(X, 1e9 + steps)
    assert np.array_equal(model.tree_.test, CARTRegressor().fit(X, steps).tree_.test)
    np.testing.assert_array_equal(model.predict(X), 1e9 + steps)


@pytest.mark.compiled(reason="takes minutes interpreted")
def test_fault_045_ten_thousand_classes():
    n_classes = 10_000
    X = np.random.default_rng(0).normal(size=(3 * n_classes, 2))
    y = np.arange(3 * n_classes) % n_classes
    model = CARTClassifier(max_leaf_nodes=50).fit(X, y)
    assert model.n_classes_ == n_classes
    assert model.predict_proba(X[:5]).shape == (5, n_classes)
    np.testing.assert_allclose(model.predict_proba(X[:5]).sum(axis=1), 1.0)
    few = np.arange(0, len(X), 97)
    full = CARTClassifier().fit(X, y)
    assert full.predict(X[few]).tolist() == y[few].tolist()
    full.tree_.check()


def test_fault_046_a_class_of_weight_zero_is_kept_with_probability_zero():
    X, _ = make_table()
    y = np.arange(40) % 3
    model = CARTClassifier().fit(X, y, sample_weight=np.where(y == 1, 0.0, 1.0))
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.predict_proba(X).shape == (40, 3)
    assert not model.predict_proba(X)[:, 1].any()
    assert set(model.predict(X)) == {0, 2}
    by_class = CARTClassifier(class_weight={1: 0.0}).fit(X, y)
    assert same_tree(by_class.tree_.arrays, model.tree_.arrays)
    single = CARTClassifier().fit(X, y > 0, sample_weight=(y > 0).astype(float))
    assert single.predict(X).all()
    assert single.predict_proba(X).tolist() == [[0.0, 1.0]] * 40


# --- D. weights, randomness ---------------------------------------------------------------------------------------


def test_fault_058_weight_zero_removes_the_row(kind):
    X, y = make_table(100)
    X[0] = [1e300, -1e300, np.nan]  # even its values do not matter
    weight = np.random.default_rng(0).integers(0, 3, 100) * 0.7
    weight[0] = 0.0
    shares = [] if kind is C45Classifier else [{"min_samples_leaf": 0.1, "min_weight_fraction_leaf": 0.02}]
    all_settings = settings_of(
        kind, {}, {"max_bins": 4}, {"min_samples_leaf": 3}, *shares, textbook=[{"pruning": None}]
    )
    for settings in all_settings:
        whole = kind(**settings).fit(X, y, weight)
        kept = kind(**settings).fit(X[weight > 0], y[weight > 0], weight[weight > 0])
        assert same_tree(whole.tree_.arrays, kept.tree_.arrays)


def test_fault_059_whole_weights_are_repeated_rows(kind):
    X, y = make_table(100)
    X[::7, 1] = np.nan
    weight = np.random.default_rng(0).integers(0, 4, 100)
    all_settings = settings_of(
        kind,
        {},
        {"max_bins": 4},
        {"ccp_alpha": 0.01, "pruning": "cost_complexity"},
        cart=[{"missing": "branch", "max_leaf_nodes": 7}],
        textbook=[{"pruning": None}],
    )
    for settings in all_settings:
        weighted = kind(**settings).fit(X, y, weight)
        repeated = kind(**settings).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
        for name in ("test", "first_child", "threshold", "weight", "impurity", "distributions"):
            np.testing.assert_array_equal(
                getattr(weighted.tree_.arrays, name), getattr(repeated.tree_.arrays, name), err_msg=f"{name} {settings}"
            )


@pytest.mark.parametrize("scale", [1e300, 1e308, 1e-300, 5e-324])
def test_fault_060_huge_and_tiny_weights(grown, scale):
    X, y = make_table(100)
    model = grown().fit(X, y, np.full(100, scale))
    assert np.array_equal(model.tree_.test, grown().fit(X, y).tree_.test)
    assert np.isfinite(model.predict(X)).all()
    np.testing.assert_allclose(model.feature_importances_, grown().fit(X, y).feature_importances_)
    uneven = np.where(np.arange(100) % 3, scale, 1.0)
    mixed = grown(min_samples_leaf=3).fit(X, y, uneven)
    assert np.isfinite(mixed.predict(X)).all()
    assert np.isfinite(mixed.feature_importances_).all()
    mixed.tree_.check()


@pytest.mark.parametrize("scale", [1e300, 1e308, 1e-300, 5e-324])
@pytest.mark.parametrize("class_weight", ["balanced", {0: 1e300, 1: 1e300}, {0: 1e-300, 1: 1e-300}, {0: 1e300}])
def test_fault_060_products_of_huge_and_tiny_weights(scale, class_weight):
    X, y = make_table(100)
    model = CARTClassifier(class_weight=class_weight).fit(X, y, np.full(100, scale))
    model.tree_.check()
    assert model.score(X, y) == 1.0
    assert np.isfinite(model.feature_importances_).all()


# --- E. parameters ------------------------------------------------------------------------------------------------


BAD_PARAMETERS = [
    ("max_depth", 0, "[1, inf)"),
    ("max_depth", -5, "[1, inf)"),
    ("max_depth", 1.5, "int"),
    ("max_depth", "3", "int"),
    ("max_depth", True, "number"),
    ("min_samples_split", 1, "[2, inf)"),
    ("min_samples_split", 0.0, "(0.0, 1.0]"),
    ("min_samples_split", 1.5, "(0.0, 1.0]"),
    ("min_samples_leaf", 0, "[1, inf)"),
    ("min_samples_leaf", 1.0, "(0.0, 1.0)"),
    ("min_samples_leaf", True, "number"),
    ("min_weight_fraction_leaf", -0.1, "[0.0, 0.5]"),
    ("min_weight_fraction_leaf", 0.6, "[0.0, 0.5]"),
    ("min_weight_fraction_leaf", np.nan, "[0.0, 0.5]"),
    ("min_impurity_decrease", -1.0, "[0.0, inf)"),
    ("min_impurity_decrease", np.nan, "[0.0, inf)"),
    ("min_impurity_decrease", np.inf, "[0.0, inf)"),
    ("max_leaf_nodes", 1, "[2, inf)"),
    ("max_leaf_nodes", 2.5, "int"),
    ("ccp_alpha", -0.1, "[0.0, inf)"),
    ("ccp_alpha", np.nan, "[0.0, inf)"),
    ("missing", "drop", "'branch'"),
    ("ties", "last", "'first'"),
    ("criterion", "ginny", "a str among"),
    ("categorical_features", "all", "from_dtype"),
    ("categorical_features", 3, "from_dtype"),
    ("monotonic_cst", 1, "array-like"),
]


@pytest.mark.parametrize(("name", "value", "hint"), BAD_PARAMETERS, ids=lambda part: repr(part)[:20])
def test_fault_074_parameters_out_of_range(cart, name, value, hint):
    X, y = make_table()
    with refuses(InvalidParameterError, f"'{name}' parameter of {cart.__name__}", hint):
        cart(**{name: value}).fit(X, y)


def test_fault_074_minimum_spread_of_the_target():
    X, y = make_table()
    for value in (-1.0, np.nan, "1"):
        with refuses(InvalidParameterError, "'min_target_std' parameter of CARTRegressor", "[0.0, inf)"):
            CARTRegressor(min_target_std=value).fit(X, y)


def test_fault_074_sizes_beyond_the_data(kind):
    X, y = make_table()
    tree = kind().fit(X, y).tree_.arrays
    for huge in (10**9, 10**30, np.int64(2**62)):
        assert same_tree(kind(max_depth=huge).fit(X, y).tree_.arrays, tree)
        assert kind(min_samples_leaf=huge).fit(X, y).get_n_leaves() == 1
        if kind is not C45Classifier:
            assert kind(min_samples_split=huge).fit(X, y).get_n_leaves() == 1
        if kind in TREES[:2]:
            assert kind(max_leaf_nodes=huge).fit(X, y).get_n_leaves() == tree.n_leaves
            assert kind(max_features=huge, random_state=0).fit(X, y).max_features_ == 3


def test_fault_074_a_chain_as_deep_as_it_has_rows():
    # With one row a class every cut has the same Gini, so the first is taken: each test splits off one row.
    n_rows = 400
    X, y = np.arange(n_rows)[:, None], np.arange(n_rows)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes is greater than 50%")
        model = CARTClassifier(max_depth=10**9).fit(X, y)
    assert model.get_depth() == n_rows - 1
    assert model.predict(X).tolist() == y.tolist()
    assert model.decision_path(X[-1:]).nnz == n_rows
    model.tree_.check()
    assert model.tree_.to_text().count("\n") >= n_rows
    assert len(model.tree_.values()) == 2 * n_rows - 1


def test_fault_075_leaves_larger_than_the_table(kind):
    X, y = make_table()
    for settings in ({"min_samples_leaf": 41}, {"min_samples_leaf": 10**30}, {"min_samples_leaf": 21}):
        assert kind(**settings).fit(X, y).get_n_leaves() == 1


@pytest.mark.parametrize("max_bins", [1, 0, -3, 65_536, 10**6, 16.0, "auto", True])
def test_fault_076_number_of_bins_out_of_range(kind, max_bins):
    X, y = make_table()
    with refuses(InvalidParameterError, f"'max_bins' parameter of {kind.__name__}", "[2, 65535]"):
        kind(max_bins=max_bins).fit(X, y)


@pytest.mark.parametrize("max_features", [0, -1, 0.0, 1.5, "foo", True])
def test_fault_077_number_of_features_out_of_range(cart, max_features):
    X, y = make_table()
    with refuses(InvalidParameterError, f"'max_features' parameter of {cart.__name__}"):
        cart(max_features=max_features).fit(X, y)


def test_fault_082_monotone_constraints(cart):
    X, y = make_table()
    with refuses(ValueError, "monotonic_cst has shape 2 but the input data X has 3 features"):
        cart(monotonic_cst=[1, 0]).fit(X, y)
    with refuses(ValueError, "monotonic_cst has shape (3, 1)"):
        cart(monotonic_cst=[[1], [0], [0]]).fit(X, y)
    for bad in ([2, 0, 0], [0.5, 0, 0], [np.nan, 0, 0], ["up", "down", "no"], [None, 0, 1]):
        with refuses(ValueError, "monotonic_cst must be None or an array-like of -1, 0 or 1. Observed values: ["):
            cart(monotonic_cst=bad).fit(X, y)
    with refuses(ValueError, "monotonic_cst", "differ in length"):
        cart(monotonic_cst=[[1, 0], [0]]).fit(X, y)
    with refuses(ValueError, "was not fitted on data with feature names. Pass monotonic_cst as an integer array"):
        cart(monotonic_cst={"a": 1}).fit(X, y)
    frame = pd.DataFrame({"a": X[:, 0], "colour": ["red", "blue"] * 20})
    with refuses(
        ValueError, "monotonic_cst contains 1 unexpected feature names: ['b']. The columns are ['a', 'colour']"
    ):
        cart(monotonic_cst={"b": 1}).fit(frame, y)
    with refuses(ValueError, "monotonic_cst constrains column 'colour', which is categorical"):
        cart(monotonic_cst={"colour": 1}).fit(frame, y)
    with refuses(ValueError, "monotonic_cst constrains column 1, which is categorical"):
        cart(monotonic_cst=[0, 1, 0], categorical_features=[1]).fit(np.abs(X).round(), y)
    with refuses(ValueError, "Monotonicity constraints are not supported with multiclass"):
        CARTClassifier(monotonic_cst=[1, 0, 0]).fit(X, np.arange(40) % 3)
    model = cart(monotonic_cst={"a": 1}).fit(frame, y)
    assert same_tree(model.tree_.arrays, cart(monotonic_cst=[1, 0]).fit(frame, y).tree_.arrays)
    assert CARTClassifier(monotonic_cst=[0, 0, 0]).fit(X, np.arange(40) % 3).n_classes_ == 3


# --- F. categories ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["learned", "branch"])
def test_fault_085_an_unseen_category_is_missing(cart, frame_of, missing):
    hidden = [*COLOURS, None]
    model = cart(missing=missing).fit(colours(hidden, frame_of), [*IS_WARM, 5])
    answer = model.predict(colours(["violet", None, "red"], frame_of))
    assert answer[0] == answer[1] == 5
    assert answer[2] == 1
    # where fit saw none missing, both take the heavier branch
    plain = cart(missing=missing).fit(colours(COLOURS, frame_of), [*IS_WARM[:-1], 1])
    weighted = cart(missing=missing).fit(colours(COLOURS, frame_of), IS_WARM, [1, 9, 1, 1, 1, 1, 1, 1])
    for model in (plain, weighted):
        answer = model.predict(colours(["violet", None], frame_of))
        assert answer[0] == answer[1]
    assert weighted.predict(colours(["violet"], frame_of)).tolist() == [0]


def test_fault_086_missing_categories(cart, frame_of):
    values = [None if value == "green" else value for value in COLOURS]
    for missing in ("learned", "branch"):
        model = cart(missing=missing).fit(colours(values, frame_of), IS_WARM)
        assert model.predict(colours(values, frame_of)).tolist() == IS_WARM
        assert model.predict(colours([None], frame_of)).tolist() == [0]


def exact_subsets(kind):
    """A level for each row tells nothing to a tree that judges chance; ID3 does not."""
    return {"cat_penalty": 0.0} if "cat_penalty" in kind().get_params() else {}


def test_fault_089_more_than_65535_categories_are_refused(grown):
    names = [f"customer {i}" for i in range(65_536)]
    y = np.arange(65_536) % 2
    with refuses(ValueError, "Column 'id' has 65,536 categories", "at most 65,535", "Group the rare ones"):
        grown().fit(pd.DataFrame({"id": names}), y)
    model = grown(max_depth=1, **exact_subsets(grown)).fit(pd.DataFrame({"id": names[:-1]}), y[:-1])
    assert model.predict(pd.DataFrame({"id": names[:4]})).tolist() == [0, 1, 0, 1]


def test_fault_090_odd_texts_are_kept(grown, frame_of):
    odd = ["nan", "", "NaN", "None", "ü 漢字 🌲", "x" * 10_000, " ", "null"]
    model = grown(**exact_subsets(grown)).fit(colours(odd, frame_of, is_text=True), list(range(8)))
    assert model.predict(colours(odd, frame_of, is_text=True)).tolist() == list(range(8))
    assert model.tree_.legend.levels[0] == tuple(sorted(odd))
    assert model.tree_.to_text()


def test_fault_093_codes_that_are_none(grown):
    X, y = make_table()
    for bad, shown in ((-1.0, "-1"), (0.5, "0.5"), (np.inf, "inf")):
        table = np.abs(X).round()
        table[4, 2] = bad
        with refuses(ValueError, f"Column 2 is declared categorical but holds {shown}", "whole and not negative"):
            grown(categorical_features=[2]).fit(table, y)
    gaps = np.array([[7], [1000], [7], [2**40]])
    model = grown(categorical_features=[0]).fit(gaps, [0, 1, 0, 2])
    assert model.predict(gaps).tolist() == [0, 1, 0, 2]
    assert model.predict([[7.0], [np.nan], [8.0], [-1.0]])[0] == 0  # in predict what is no level is missing
