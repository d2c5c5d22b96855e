"""Bad and odd input, by the numbers of `tests/FAULTS.md`: sections A to F, as far as they concern one tree.

A test says what the user gets: the kind of error and a message that names the argument, the place and the way
out; or the right answer. Where the list leaves a choice, the rule is in the test's name. Faults of ensembles,
boosting and early stopping (51 in eval sets, 52, 54, 63 to 65, 72, 73, 78 to 81, 83, 84) have no test here;
66, 67, 69 and 70 are in `test_contract`.
"""

import re
import threading
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from sklearn.utils._param_validation import InvalidParameterError

from spinney import C45Classifier, CARTClassifier, CARTRegressor, ID3Classifier, ID3Regressor

KINDS = [CARTClassifier, CARTRegressor, ID3Classifier, ID3Regressor, C45Classifier]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


@pytest.fixture(params=KINDS[:4], ids=lambda kind: kind.__name__)
def grown(request):
    """Trees that grow until rows are alike; C4.5 wants more of a test than a table of four rows has."""
    return request.param


@pytest.fixture(params=KINDS[:2], ids=lambda kind: kind.__name__)
def cart(request):
    """What has CART's parameters, and its ways with missing values; for the others see `test_textbook_faults`."""
    return request.param


def make_table(n_rows=40, seed=0):
    """Three numeric columns; two classes that follow the first."""
    X = np.random.default_rng(seed).normal(size=(n_rows, 3))
    return X, (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)


def refuses(error, *words):
    """A context that expects an error whose message holds these words."""
    return pytest.raises(error, match="(?s)" + ".*".join(map(re.escape, words)))


def same_tree(one, other):
    names = ("test", "first_child", "threshold", "subsets", "n_rows", "weight", "impurity", "distributions")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


FRAMES = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
}


@pytest.fixture(params=FRAMES)
def frame_of(request):
    return FRAMES[request.param]


# --- A. shape and type of X ---------------------------------------------------------------------------------


def test_fault_001_no_rows_in_fit(kind):
    for X in (np.empty((0, 3)), pd.DataFrame({"a": []}), pl.DataFrame({"a": []})):
        with refuses(ValueError, "0 sample(s)", "a minimum of 1 is required"):
            kind().fit(X, [])


def test_fault_002_no_rows_in_predict(kind):
    model = kind().fit(*make_table())
    with refuses(ValueError, "0 sample(s) (shape=(0, 3))", "a minimum of 1 is required"):
        model.predict(np.empty((0, 3)))


def test_fault_003_no_columns(kind):
    for X in (np.empty((12, 0)), pd.DataFrame(index=range(12))):
        with refuses(ValueError, "0 feature(s) (shape=(12, 0)) while a minimum of 1 is required."):
            kind().fit(X, np.arange(12) % 2)


def test_fault_004_one_row(kind):
    model = kind().fit([[1.0, 2.0]], [3])
    assert model.get_n_leaves() == 1
    assert model.predict([[5.0, np.nan], [1.0, 2.0]]).tolist() == [3, 3]


def test_fault_005_one_column(grown):
    assert grown().fit([[1], [2], [3]], [0, 0, 1]).predict([[1], [2], [3]]).tolist() == [0, 0, 1]


@pytest.mark.parametrize("X", [np.arange(4.0), [1.0, 2.0, 3.0, 4.0], pd.Series([1, 2, 3, 4]), pl.Series([1, 2, 3, 4])])
def test_fault_006_one_dimensional(kind, X):
    with refuses(ValueError, "Expected 2D array, got 1D array", "Reshape your data"):
        kind().fit(X, [0, 1, 0, 1])
    model = kind().fit([[1.0], [2.0]], [0, 1])
    with refuses(ValueError, "Expected 2D array, got 1D array", "Reshape your data"):
        model.predict(X)


def test_fault_007_three_dimensional(kind):
    with refuses(ValueError, "Found array with dim 3"):
        kind().fit(np.zeros((2, 2, 2)), [0, 1])
    with refuses(ValueError, "Found array with dim 3"):
        kind().fit([[1.0, 2.0]], [0]).predict(np.zeros((2, 2, 2)))


@pytest.mark.parametrize("X", [None, 3, 2.5, "table.csv", b"bytes", object()])
def test_fault_008_no_table_at_all(kind, X):
    with refuses((TypeError, ValueError), "Expected 2D array, got scalar array"):
        kind().fit(X, [0, 1])
    with refuses((TypeError, ValueError), "Expected 2D array, got scalar array"):
        kind().fit([[1.0]], [0]).predict(X)


def test_fault_009_lengths_differ(kind):
    X, y = make_table()
    with refuses(ValueError, "inconsistent numbers of samples", "X has 40 rows, y has 39"):
        kind().fit(X, y[:-1])


def test_fault_010_other_number_of_columns(kind):
    X, y = make_table()
    model = kind().fit(X, y)
    for n_columns in (2, 4):
        with refuses(ValueError, f"X has {n_columns} features, but {kind.__name__} is expecting 3 features as input."):
            model.predict(np.zeros((5, n_columns)))


def test_fault_011_columns_reordered(kind, frame_of):
    X, y = make_table()
    model = kind().fit(frame_of({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}), y)
    expected = model.apply(frame_of({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}))
    moved = frame_of({"b": X[:, 1], "c": X[:, 2], "a": X[:, 0]})
    np.testing.assert_array_equal(model.apply(moved), expected)
    np.testing.assert_array_equal(model.predictor().apply(moved), expected)


def test_fault_012_missing_and_extra_names(kind, frame_of):
    X, y = make_table()
    model = kind().fit(frame_of({"a": X[:, 0], "b": X[:, 1]}), y)
    with refuses(ValueError, "unseen at fit time:\n- new", "yet now missing:\n- b"):
        model.predict(frame_of({"a": X[:, 0], "new": X[:, 1]}))
    with refuses(ValueError, "unseen at fit time:\n- c", "Leave those out: `feature_names_in_` has the names of fit"):
        model.predict(frame_of({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}))
    with refuses(ValueError, "unseen at fit time:\n- c", "Leave those out: `feature_names` has the names of fit"):
        model.predictor().predict(frame_of({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}))
    with refuses(ValueError, "yet now missing:\n- b", "Give every column of fit, None or NaN where a value is missing"):
        model.predict(frame_of({"a": X[:, 0]}))


def test_fault_013_fitted_on_a_frame_predicting_an_array(kind, frame_of):
    X, y = make_table()
    frame = frame_of({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    model = kind().fit(frame, y)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        answer = model.predict(X)
    np.testing.assert_array_equal(answer, model.predict(frame))


def test_fault_014_duplicate_names(kind):
    X, y = make_table()
    for frame in (pd.DataFrame(X, columns=["a", "b", "a"]), pa.table(list(X.T), names=["a", "b", "a"])):
        with refuses(ValueError, "Column names must be unique", "'a'", "Rename them"):
            kind().fit(frame, y)


def test_fault_015_names_that_are_not_text(kind):
    X, y = make_table()
    with refuses(TypeError, "only supported if all input features have string names", "['int', 'str']", "astype(str)"):
        kind().fit(pd.DataFrame(X, columns=["a", 1, 2]), y)
    model = kind().fit(pd.DataFrame(X, columns=[0, 1, 2]), y)  # no names, as in scikit-learn
    assert not hasattr(model, "feature_names_in_")
    np.testing.assert_array_equal(model.predict(X), kind().fit(X, y).predict(X))


def test_fault_016_object_arrays(kind):
    X, y = make_table()
    cells = X.astype(object)
    cells[0, 1] = None
    cells[1, 1] = Decimal("0.5")
    numbers = X.copy()
    numbers[:2, 1] = np.nan, 0.5
    model = kind().fit(cells, y)
    assert same_tree(model.tree_, kind().fit(numbers, y).tree_)
    np.testing.assert_array_equal(model.predict(cells), model.predict(numbers))
    cells[3, 2] = "tall"
    with refuses(ValueError, "Column 2 mixes text and numbers", "'tall'"):
        kind().fit(cells, y)
    cells[:, 2] = "tall"
    with refuses(ValueError, "Column 2 holds text, such as 'tall'", "categorical_features"):
        kind().fit(cells, y)
    with refuses(ValueError, "Column 2 holds text, such as 'tall', but was numeric when the model was fitted"):
        model.predict(cells)


def test_fault_017_text_arrays(grown):
    X = np.array([["a", "1"], ["b", "2"], ["a", "3"]])
    with refuses(ValueError, "Column 0 holds text, such as 'a'", "categorical_features", "frame"):
        grown().fit(X, [0, 1, 0])
    model = grown(categorical_features=[0, 1]).fit(X, [0, 1, 0])
    assert model.predict(X).tolist() == [0, 1, 0]


@pytest.mark.parametrize("dtype", ["datetime64[ms]", "timedelta64[ms]"])
def test_fault_018_dates(kind, dtype, frame_of):
    X, y = make_table()
    dates = np.arange(40).astype(dtype)
    with refuses(ValueError, "Column 'when' holds dates or times", "derive numbers from it"):
        kind().fit(frame_of({"a": X[:, 0], "when": dates}), y)
    with refuses(ValueError, dtype.partition("[")[0], "column 0", "derive numbers from it"):
        kind().fit(np.column_stack([dates, dates]), y)
    with refuses(ValueError, "Column 1 holds dates or times"):
        kind().fit(np.column_stack([X[:, :1].astype(object), dates.astype(object)]), y)


def test_fault_019_complex_numbers(kind):
    X, y = make_table()
    with refuses(ValueError, "Complex data not supported"):
        kind().fit(X + 1j, y)
    with refuses(ValueError, "Complex data not supported: column 'z'", "real and imaginary parts"):
        kind().fit(pd.DataFrame({"a": X[:, 0], "z": X[:, 1] + 1j}), y)
    with refuses(ValueError, "Complex data not supported"):
        kind().fit(X, y).predict(X + 1j)


@pytest.mark.parametrize("dtype", ["float16", "float32", "longdouble", "bool", "uint8", "int8", "int32", "uint64"])
def test_fault_020_number_types(kind, dtype):
    numbers = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 100, size=(50, 3))
    y = numbers[:, 0] > numbers[:, 0].mean()
    X = numbers.astype(dtype)
    model = kind().fit(X, y)
    assert same_tree(model.tree_, kind().fit(numbers.astype(float), y).tree_)
    np.testing.assert_array_equal(model.predict(X), model.predict(numbers.astype(float)))


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


def test_fault_022_layouts_of_memory(kind):
    X, y = make_table()
    model = kind().fit(X, y)
    wide = np.zeros((80, 6))
    wide[::2, ::2] = X
    packed = np.zeros(40, dtype=[("pad", "i1"), ("row", "f8", 3)])
    packed["row"] = X
    unaligned = np.frombuffer(b"x" + X.tobytes(), dtype=np.uint8)[1:].view(np.float64).reshape(40, 3)
    assert not unaligned.flags.aligned
    layouts = {
        "columns first": np.asfortranarray(X),
        "strided": wide[::2, ::2],
        "backwards": X[::-1, ::-1].copy()[::-1, ::-1],
        "other byte order": X.astype(X.dtype.newbyteorder()),
        "packed records": packed["row"],
        "unaligned": unaligned,
    }
    for name, layout in layouts.items():
        assert same_tree(kind().fit(layout, y).tree_, model.tree_), name
        np.testing.assert_array_equal(model.predict(layout), model.predict(X), err_msg=name)
    single = X.astype(np.float32)
    swapped = single.astype(single.dtype.newbyteorder())
    np.testing.assert_array_equal(model.predict(swapped), model.predict(single))


def test_fault_023_read_only_arrays_and_memory_maps(kind, tmp_path):
    X, y = make_table()
    tree = kind().fit(X, y).tree_
    weight = np.ones(len(y))
    for array in (X, y, weight):
        array.flags.writeable = False
    np.save(tmp_path / "X.npy", X)
    for table in (X, np.load(tmp_path / "X.npy", mmap_mode="r")):
        model = kind().fit(table, y, weight)
        assert same_tree(model.tree_, tree)
        assert model.predict(table).shape == (40,)


@pytest.mark.parametrize(
    "make", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array, sparse.csc_array, sparse.coo_array]
)
def test_fault_024_sparse_tables_are_refused(kind, make):
    X, y = make_table()
    with refuses(TypeError, "Sparse data was passed", "dense"):
        kind().fit(make(X), y)
    with refuses(TypeError, "Sparse data was passed"):
        kind().fit(X, y).predict(make(X))


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
    assert same_tree(model.tree_, grown(categorical_features=[2]).fit(plain, y).tree_)
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
    assert same_tree(model.tree_, grown(categorical_features=[3]).fit(np.array(plain), y).tree_)
    assert model.predict(X).tolist() == y


def test_fault_027_masked_arrays(kind):
    X, y = make_table()
    masked = np.ma.masked_greater(X, 1.0)
    with refuses(ValueError, "masked array", "X.filled(np.nan)"):
        kind().fit(masked, y)
    with refuses(ValueError, "masked array", "X.filled(np.nan)"):
        kind().fit(X, y).predict(masked)


def test_fault_028_lists_and_array_likes(kind):
    X, y = make_table()

    class Wrapped:
        def __array__(self, dtype=None, copy=None):
            return np.array(X, dtype=dtype)

    model = kind().fit(X, y)
    for table in (X.tolist(), tuple(map(tuple, X)), list(X), Wrapped()):
        assert same_tree(kind().fit(table, y.tolist()).tree_, model.tree_)
        np.testing.assert_array_equal(model.predict(table), model.predict(X))
    with refuses(ValueError, "rows of X differ in length: row 0 has 2 values, row 1 has 1"):
        kind().fit([[1, 2], [3]], [0, 1])
    with refuses(ValueError, "cells of X are nested"):
        kind().fit([[1, [2, 3]], [3, 4]], [0, 1])


def test_fault_029_data_changed_by_another_thread_during_fit(kind):
    X, y = make_table(2000)
    y, weight = y.astype(float), np.ones(len(y))
    is_done = threading.Event()

    def disturb():
        generator = np.random.default_rng(1)
        while not is_done.is_set():
            i = int(generator.integers(len(X)))
            X[i] = generator.choice([np.nan, np.inf, -np.inf, 1e300, 0.0, -0.0])
            y[i] = 1.0 - y[i]
            weight[i] = generator.choice([0.0, 1.0, 1e-300, 7.5])

    other = threading.Thread(target=disturb)
    other.start()
    try:
        for _ in range(5):
            model = kind().fit(X, y, weight)
            model.tree_.check()
            model.predict(X)
    finally:
        is_done.set()
        other.join()


# --- B. values in X -----------------------------------------------------------------------------------------


def test_fault_030_missing_numbers_take_the_better_branch(cart):
    known = np.arange(10.0)
    for missing_like in (0, 1):  # the missing rows belong to the low or to the high values
        X = np.append(known, [np.nan] * 4)[:, None]
        y = np.append(known > 4.5, [missing_like] * 4).astype(int)
        model = cart(max_depth=1).fit(X, y)
        assert model.predict(X).tolist() == y.tolist()
        assert model.predict([[np.nan]]).tolist() == [missing_like]
        assert model.tree_.missing_branch[0] == missing_like


def test_fault_031_a_column_that_is_missing_throughout_is_never_chosen(cart, frame_of):
    X, y = make_table()
    X[:, 0] = np.nan
    for missing in ("learned", "branch"):
        model = cart(missing=missing).fit(X, y)
        assert model.feature_importances_[0] == 0.0
        assert not (model.tree_.feature == 0).any()
    frame = frame_of({"hole": pa.array([None] * 40, pa.float64()).to_numpy(zero_copy_only=False), "b": X[:, 1]})
    assert cart().fit(frame, y).feature_importances_[0] == 0.0


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
        assert np.isfinite(model.tree_.threshold).all()


def test_fault_035_a_constant_column_is_never_chosen(grown):
    X, y = make_table()
    X[:, 1] = 7.0
    assert not (grown().fit(X, y).tree_.feature == 1).any()
    X[::3, 1] = np.nan  # but being known or missing may tell
    model = grown(max_depth=1).fit(X[:, 1:2], np.isnan(X[:, 1]))
    assert model.predict(X[:, 1:2]).tolist() == np.isnan(X[:, 1]).tolist()


@pytest.mark.parametrize("value", [1.0, 0.0, -1.0, 1e300, 1e-310, 2.0**53, -3.7])
def test_fault_036_neighbouring_floats_are_told_apart(grown, value):
    above = np.nextafter(value, np.inf)
    X = np.array([[value], [above], [value], [above]])
    model = grown().fit(X, [0, 1, 0, 1])
    assert model.predict(X).tolist() == [0, 1, 0, 1]
    assert value <= model.tree_.threshold[0] < above


def test_fault_037_negative_zero_is_zero(kind):
    X = np.array([[0.0], [-0.0], [0.0], [-0.0]])
    assert kind().fit(X, [0, 1, 0, 1]).get_n_leaves() == 1
    model = kind().fit([[-0.0], [0.0], [1.0]], [0, 0, 1])
    assert model.predict([[0.0], [-0.0]]).tolist() == [0, 0]


def test_fault_038_rows_alike_with_other_targets(cart):
    model = cart().fit(np.ones((6, 3)), [0, 1, 1, 0, 1, 1])
    assert model.get_n_leaves() == 1
    if cart is CARTClassifier:
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
    assert coarse.tree_.threshold[0] == 5.5


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
    assert model.tree_.feature[0] == 765_432
    assert model.predict(X).tolist() == y.tolist()


# --- C. y ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "what"),
    [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")],
    ids=["nan", "inf", "-inf"],
)
def test_fault_042_missing_or_infinite_targets(kind, bad, what):
    X, y = make_table()
    y = y.astype(float)
    y[7] = bad
    for target in (y, y.tolist(), pd.Series(y)):
        with refuses(ValueError, "Input y contains", what, "row 7"):
            kind().fit(X, target)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA], ids=str)
def test_fault_042_missing_classes(missing):
    X, _ = make_table(4)
    for target in (["a", "b", missing, "a"], pd.Series(["a", "b", missing, "a"], dtype=object)):
        with refuses(ValueError, "Input y contains NaN", "row 2", "leave out such rows"):
            CARTClassifier().fit(X, np.asarray(target, dtype=object))
    with refuses(ValueError, "Input y contains NaN", "row 2"):
        CARTClassifier().fit(X, pd.Categorical(["a", "b", None, "a"]))


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


def test_fault_044_one_class():
    X, _ = make_table()
    model = CARTClassifier().fit(X, np.full(40, "only"))
    assert model.classes_.tolist() == ["only"]
    assert model.predict(X).tolist() == ["only"] * 40
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((40, 1)))
    np.testing.assert_array_equal(model.predict_log_proba(X), np.zeros((40, 1)))
    assert model.feature_importances_.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array(["no", "yes", "perhaps"], dtype=object),
        np.array([False, True]),
        np.array([-3, -1]),
        np.array([0, 2]),
        np.array([5, 7, 1000], dtype=np.uint16),
        np.array([1.0, 2.0]),
        np.array(["", "nan", "ü" * 100]),
        np.array([2**62, 2**62 + 1]),
    ],
    ids=repr,
)
def test_fault_045_classes_of_any_type(labels):
    X, _ = make_table()
    y = labels[np.digitize(X[:, 0], [-0.5, 0.5][: len(labels) - 1])]
    model = CARTClassifier().fit(X, y)
    assert model.classes_.dtype == y.dtype
    assert model.predict(X).dtype == y.dtype
    assert model.predict(X).tolist() == y.tolist()
    assert model.classes_.tolist() == sorted(labels.tolist())
    assert model.score(X, y) == 1.0


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
    assert same_tree(by_class.tree_, model.tree_)
    single = CARTClassifier().fit(X, y > 0, sample_weight=(y > 0).astype(float))
    assert single.predict(X).all()
    assert single.predict_proba(X).tolist() == [[0.0, 1.0]] * 40


def test_fault_047_numbers_with_fractions_for_a_classifier():
    X, _ = make_table()
    with refuses(ValueError, "Unknown label type: continuous"):
        CARTClassifier().fit(X, X[:, 0])


def test_fault_048_column_vector(kind):
    X, y = make_table()
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed when a 1d array was expected"):
        model = kind().fit(X, y[:, None])
    assert model.predict(X).shape == (40,)


def test_fault_049_several_targets(kind):
    X, y = make_table()
    with refuses(ValueError, "y should be a 1d array, got an array of shape (40, 2)"):
        kind().fit(X, np.column_stack([y, 1 - y]))


def test_fault_050_no_target(kind):
    X, _ = make_table()
    with refuses(ValueError, f"{kind.__name__} requires y to be passed, but the target y is None"):
        kind().fit(X, None)


def test_fault_051_unseen_class_in_score():
    X, y = make_table()
    model = CARTClassifier().fit(X, np.array(["no", "yes"])[y])
    assert model.score(X, np.array(["no", "Yes"])[y]) == np.mean(y == 0)  # counts as wrong, as in scikit-learn
    assert model.score(X, np.full(40, "yes")) == y.mean()


def test_fault_053_categorical_target_has_the_classes_that_occur():
    X, y = make_table()
    target = pd.Categorical.from_codes(y, ["b", "a", "never"])
    for labels in (target, pd.Series(target)):
        model = CARTClassifier().fit(X, labels)
        assert model.classes_.tolist() == ["a", "b"]
        assert model.predict(X).tolist() == list(target)
    polars = pl.Series(list(target), dtype=pl.Enum(["b", "a", "never"]))
    assert CARTClassifier().fit(X, polars).classes_.tolist() == ["a", "b"]
    assert CARTClassifier().fit(X, pa.chunked_array([list(target)])).classes_.tolist() == ["a", "b"]


def test_targets_of_a_wrong_kind(kind):
    X, y = make_table()
    with refuses(ValueError, "Complex data not supported"):
        kind().fit(X, y + 1j)
    with refuses(ValueError, "datetime64", "not supported in y"):
        kind().fit(X, y.astype("datetime64[D]"))
    with refuses(ValueError, "y must hold numbers for a regression", "classifier"):
        CARTRegressor().fit(X, np.array(["no", "yes"])[y])
    with refuses(TypeError, "y mixes classes of different types", "int, str"):
        CARTClassifier().fit(X, np.array(["a", 1] * 20, dtype=object))
    for dtype in ("S1", object):
        with refuses(TypeError, "y holds bytes, such as b'a'", "Decode"):
            CARTClassifier().fit(X, np.array([b"a", b"b"] * 20, dtype=dtype))


# --- D. weights, randomness ---------------------------------------------------------------------------------


def test_fault_055_negative_weight(kind):
    X, y = make_table()
    weight = np.ones(40)
    weight[5] = -0.5
    with refuses(ValueError, "Negative values", "`sample_weight`", "-0.5 in row 5"):
        kind().fit(X, y, weight)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_fault_056_weight_is_not_finite(kind, bad):
    X, y = make_table()
    weight = np.ones(40)
    weight[5] = bad
    with refuses(ValueError, "Input sample_weight contains", "NaN" if np.isnan(bad) else "infinity"):
        kind().fit(X, y, weight)


def test_fault_057_all_weights_zero(kind):
    X, y = make_table()
    with refuses(ValueError, "Sample weights are all zero", "at least one weight must be positive"):
        kind().fit(X, y, np.zeros(40))
    with refuses(ValueError, "weights are all zero after class_weight"):
        CARTClassifier(class_weight={0: 0.0, 1: 0.0}).fit(X, y)


def test_fault_058_weight_zero_removes_the_row(grown):
    X, y = make_table(100)
    X[0] = [1e300, -1e300, np.nan]  # even its values do not matter
    weight = np.random.default_rng(0).integers(0, 3, 100) * 0.7
    weight[0] = 0.0
    for settings in ({}, {"max_bins": 4}, {"min_samples_leaf": 0.1, "min_weight_fraction_leaf": 0.02}):
        whole = grown(**settings).fit(X, y, weight)
        kept = grown(**settings).fit(X[weight > 0], y[weight > 0], weight[weight > 0])
        assert same_tree(whole.tree_, kept.tree_)


def test_fault_059_whole_weights_are_repeated_rows(cart):
    X, y = make_table(100)
    X[::7, 1] = np.nan
    weight = np.random.default_rng(0).integers(0, 4, 100)
    for settings in ({}, {"max_bins": 4}, {"missing": "branch", "max_leaf_nodes": 7}, {"ccp_alpha": 0.01}):
        weighted = cart(**settings).fit(X, y, weight)
        repeated = cart(**settings).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
        for name in ("test", "first_child", "threshold", "weight", "impurity", "distributions"):
            np.testing.assert_array_equal(
                getattr(weighted.tree_, name), getattr(repeated.tree_, name), err_msg=f"{name} {settings}"
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


def test_fault_061_shape_of_weights(kind):
    X, y = make_table()
    with refuses(ValueError, "sample_weight.shape == (39,), expected (40,)"):
        kind().fit(X, y, np.ones(39))
    with refuses(ValueError, "Sample weights must be 1D array or scalar, got 2D array"):
        kind().fit(X, y, np.ones((40, 1)))
    with refuses(ValueError, "sample_weight"):
        kind().fit(X, y, np.full(40, "heavy"))


def test_fault_062_class_weight_for_an_unknown_class():
    X, y = make_table()
    with refuses(ValueError, "class_weight names 2", "[0, 1]"):
        CARTClassifier(class_weight={0: 1.0, 2: 3.0}).fit(X, y)
    for bad in (-1.0, np.nan, np.inf):
        with refuses(ValueError, "class_weight must hold finite weights that are not negative"):
            CARTClassifier(class_weight={0: bad}).fit(X, y)
    with refuses(InvalidParameterError, "class_weight"):
        CARTClassifier(class_weight="heavy").fit(X, y)


@pytest.mark.parametrize("seed", [-1, 1.5, "seed", np.random.default_rng(0)], ids=["-1", "1.5", "text", "Generator"])
def test_fault_068_seeds_that_are_none(kind, seed):
    X, y = make_table()
    with refuses(InvalidParameterError, f"'random_state' parameter of {kind.__name__}", "RandomState"):
        kind(random_state=seed).fit(X, y)
    assert issubclass(InvalidParameterError, (ValueError, TypeError))


# --- E. parameters ------------------------------------------------------------------------------------------


def test_fault_071_unknown_parameter(kind):
    with refuses(TypeError, f"{kind.__name__} has no parameter 'max_dept'", "Did you mean 'max_depth'?"):
        kind(max_dept=3)
    with refuses(TypeError, "has no parameter 'zzz'", "max_depth"):
        kind(zzz=3)
    with pytest.raises(TypeError):
        kind("gini")  # parameters have names
    with refuses(ValueError, "Invalid parameter 'max_dept'"):
        kind().set_params(max_dept=3)


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


def test_fault_074_sizes_beyond_the_data(cart):
    X, y = make_table()
    tree = cart().fit(X, y).tree_
    for huge in (10**9, 10**30, np.int64(2**62)):
        assert same_tree(cart(max_depth=huge).fit(X, y).tree_, tree)
        assert cart(max_leaf_nodes=huge).fit(X, y).get_n_leaves() == tree.n_leaves
        assert cart(max_features=huge, random_state=0).fit(X, y).max_features_ == 3
        assert cart(min_samples_split=huge).fit(X, y).get_n_leaves() == 1


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
    with refuses(ValueError, "monotonic_cst has shape (2,) but the input data X has 3 features"):
        cart(monotonic_cst=[1, 0]).fit(X, y)
    with refuses(ValueError, "monotonic_cst has shape (3, 1)"):
        cart(monotonic_cst=[[1], [0], [0]]).fit(X, y)
    for bad in ([2, 0, 0], [0.5, 0, 0], [np.nan, 0, 0], ["up", "down", "no"], [None, 0, 1]):
        with refuses(ValueError, "monotonic_cst must be None or an array-like of -1, 0 or 1, but got"):
            cart(monotonic_cst=bad).fit(X, y)
    with refuses(ValueError, "monotonic_cst", "differ in length"):
        cart(monotonic_cst=[[1, 0], [0]]).fit(X, y)
    with refuses(ValueError, "monotonic_cst by name needs an X with column names"):
        cart(monotonic_cst={"a": 1}).fit(X, y)
    frame = pd.DataFrame({"a": X[:, 0], "colour": ["red", "blue"] * 20})
    with refuses(ValueError, "monotonic_cst names 'b', which is not among the columns ['a', 'colour']"):
        cart(monotonic_cst={"b": 1}).fit(frame, y)
    with refuses(ValueError, "monotonic_cst constrains column 'colour', which is categorical"):
        cart(monotonic_cst={"colour": 1}).fit(frame, y)
    with refuses(ValueError, "monotonic_cst constrains column 1, which is categorical"):
        cart(monotonic_cst=[0, 1, 0], categorical_features=[1]).fit(np.abs(X).round(), y)
    with refuses(ValueError, "Monotonicity constraints are not supported with multiclass"):
        CARTClassifier(monotonic_cst=[1, 0, 0]).fit(X, np.arange(40) % 3)
    model = cart(monotonic_cst={"a": 1}).fit(frame, y)
    assert same_tree(model.tree_, cart(monotonic_cst=[1, 0]).fit(frame, y).tree_)
    assert CARTClassifier(monotonic_cst=[0, 0, 0]).fit(X, np.arange(40) % 3).n_classes_ == 3


# --- F. categories ------------------------------------------------------------------------------------------


def colours(values, frame_of, order=None, *, is_text=False):
    """A frame with one column of categories, in the way of its library; `order` is that of its vocabulary."""
    values = list(values)
    if order is None:
        order = sorted({value for value in values if value is not None})
    if frame_of is pd.DataFrame:
        column = pd.array(values, dtype="str") if is_text else pd.Categorical(values, categories=order)
    elif frame_of is pl.DataFrame:
        column = pl.Series(values, dtype=pl.String if is_text else pl.Enum(order))
    else:
        column = pa.array(values, pa.string())
        if not is_text:
            indices = pa.array([None if value is None else order.index(value) for value in values], pa.int32())
            column = pa.DictionaryArray.from_arrays(indices, pa.array(order))
    return frame_of({"colour": column})


COLOURS = ["red", "green", "blue", "red", "green", "blue", "red", "red"]
IS_WARM = [1, 0, 0, 1, 0, 0, 1, 1]


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


def test_fault_087_categories_are_told_by_value(kind, frame_of):
    model = kind().fit(colours(COLOURS, frame_of), IS_WARM)
    for order in (["red", "green", "blue"], ["green", "red", "violet", "blue"]):
        assert model.predict(colours(COLOURS, frame_of, order)).tolist() == IS_WARM
    for other in FRAMES.values():  # and in any library
        assert model.predict(colours(COLOURS, other, ["red", "blue", "green"])).tolist() == IS_WARM


def test_fault_088_one_category_is_never_split(kind, frame_of):
    assert kind().fit(colours(["red"] * 8, frame_of), IS_WARM).get_n_leaves() == 1
    unused = colours(["red"] * 8, frame_of, ["blue", "red", "green"])
    assert kind().fit(unused, IS_WARM).get_n_leaves() == 1


def test_fault_089_many_categories(kind):
    codes = np.random.default_rng(0).integers(0, 1000, 5000)
    X = pd.DataFrame({"town": pd.Categorical([f"town {code}" for code in codes])})
    y = codes % 3
    model = kind().fit(X, y)
    assert model.predict(X).tolist() == y.tolist()
    assert model.predict(pl.DataFrame({"town": ["town 5", "town 6"]})).tolist() == [2, 0]


def test_fault_089_more_than_65535_categories_are_refused(grown):
    names = [f"customer {i}" for i in range(65_536)]
    y = np.arange(65_536) % 2
    with refuses(ValueError, "Column 'id' has 65,536 categories", "at most 65,535", "Group the rare ones"):
        grown().fit(pd.DataFrame({"id": names}), y)
    model = grown(max_depth=1).fit(pd.DataFrame({"id": names[:-1]}), y[:-1])
    assert model.predict(pd.DataFrame({"id": names[:4]})).tolist() == [0, 1, 0, 1]


def test_fault_090_odd_texts_are_kept(grown, frame_of):
    odd = ["nan", "", "NaN", "None", "ü 漢字 🌲", "x" * 10_000, " ", "null"]
    model = grown().fit(colours(odd, frame_of, is_text=True), list(range(8)))
    assert model.predict(colours(odd, frame_of, is_text=True)).tolist() == list(range(8))
    assert model.tree_.legend.levels[0] == tuple(sorted(odd))
    assert model.tree_.to_text()


def test_fault_091_mixed_kinds_of_categories_are_refused(kind):
    with refuses(ValueError, "Column 'c' mixes kinds of categories", "numbers", "text", ".astype(str)"):
        kind().fit(pd.DataFrame({"c": pd.Categorical([1, "1", 1, "1"])}), [0, 1, 0, 1])
    with refuses(ValueError, "Column 'c' mixes kinds of categories (booleans and text)"):
        kind().fit(pd.DataFrame({"c": pd.Categorical([True, "a", True, "a"])}), [0, 1, 0, 1])
    with refuses(ValueError, "Column 0 mixes text and numbers", "'1'"):
        kind(categorical_features=[0]).fit(np.array([[1], ["1"]], dtype=object), [0, 1])
    model = kind().fit(pd.DataFrame({"c": pd.Categorical(["1", "2"])}), [0, 1])
    with refuses(ValueError, "Column 'c' had categories such as '1' when the model was fitted, now 1", "text"):
        model.predict(pd.DataFrame({"c": pd.Categorical([1, 2])}))


def test_fault_092_naming_categorical_columns(kind):
    X = np.abs(make_table()[0]).round()
    y = np.arange(40) % 2
    cases = {
        "index 3; the columns of X are 0 to 2": [3],
        "index -1; the columns of X are 0 to 2": [-1],
        "categorical_features has 1 twice": [1, 1],
        "categorical_features has 'a', but X has no column names": ["a"],
        "categorical_features is a mask of 2 for 3 columns": [True, False],
        "one-dimensional": [[0], [1]],
        "give all bools, all indices or all names": [0.5],
    }
    for message, categorical in cases.items():
        with refuses(ValueError, message):
            kind(categorical_features=categorical).fit(X, y)
    frame = pd.DataFrame(X, columns=["age", "height", "weight"])
    with refuses(ValueError, "categorical_features has 'hight', which is not a column of X", "Did you mean 'height'"):
        kind(categorical_features=["hight"]).fit(frame, y)
    ways = [[0], ["age"], [True, False, False], np.array([0]), np.array([True, False, False])]
    trees = [kind(categorical_features=way).fit(frame, y).tree_ for way in ways]
    assert all(same_tree(tree, trees[0]) for tree in trees)


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


def test_fault_094_categories_in_fit_text_in_predict(kind, frame_of):
    model = kind().fit(colours(COLOURS, frame_of), IS_WARM)
    assert model.predict(colours(COLOURS, frame_of, is_text=True)).tolist() == IS_WARM
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        assert model.predict(np.array(COLOURS, dtype=object)[:, None]).tolist() == IS_WARM
    text = kind().fit(colours(COLOURS, frame_of, is_text=True), IS_WARM)
    assert text.predict(colours(COLOURS, frame_of)).tolist() == IS_WARM
    with refuses(ValueError, "Column 'colour' had categories such as 'blue' when the model was fitted, now 1", "text"):
        model.predict(frame_of({"colour": [1, 2, 3]}))
