"""Bad and odd input, by the numbers of `tests/FAULTS.md`: what every class answers alike.

Each of the fifteen classes meets each fault, as a small model (`fault_cases.make`). A test says what the user gets: the
kind of error and a message that names the argument, the place and the way out; or the right answer. Where the list
leaves a choice, the rule is in the test's name. What depends on the method is in `test_tree_faults`,
`test_textbook_faults`, `test_forest_faults`, `test_adaboost_faults` and `test_gradient_boosting_faults`.
"""

import threading
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.utils import get_tags
from sklearn.utils._param_validation import InvalidParameterError

from fault_cases import (
    COLOURS,
    ENSEMBLES,
    FORESTS,
    FRAMES,
    GROWERS,
    INTERRUPTED,
    IS_WARM,
    TREES,
    coloured_rows,
    colours,
    is_classifier,
    make,
    make_table,
    nearly_right_names,
    raw_predict,
    refuses,
    same_model,
    trees_of,
)
from interrupted import interrupt as interrupt_process
from spinney import C45Classifier

# Where no column tells the classes apart, AdaBoost says so; that is not what these tests are about.
pytestmark = pytest.mark.filterwarnings("ignore:The first member is no better than chance:UserWarning")

KINDS = [*TREES, *ENSEMBLES]
BOOSTING = ENSEMBLES[-2:]


@pytest.fixture(params=KINDS, ids=lambda kind: kind.__name__)
def kind(request):
    return request.param


@pytest.fixture(params=filter(is_classifier, KINDS), ids=lambda kind: kind.__name__)
def classifier(request):
    return request.param


@pytest.fixture(params=[*TREES[:2], *ENSEMBLES], ids=lambda kind: kind.__name__)
def constrained(request):
    """What can be held to a direction: all but the textbook trees."""
    return request.param


@pytest.fixture(params=FRAMES)
def frame_of(request):
    return FRAMES[request.param]


# --- A. shape and type of X ---------------------------------------------------------------------------------------


def test_fault_001_no_rows_in_fit(kind):
    for X in (np.empty((0, 3)), pd.DataFrame({"a": []}), pl.DataFrame({"a": []})):
        with refuses(ValueError, "0 sample(s)", "a minimum of 1 is required"):
            make(kind).fit(X, [])


def test_fault_002_no_rows_in_predict(kind):
    model = make(kind).fit(*make_table())
    with refuses(ValueError, "0 sample(s) (shape=(0, 3))", "a minimum of 1 is required"):
        model.predict(np.empty((0, 3)))


def test_fault_003_no_columns(kind):
    for X in (np.empty((12, 0)), pd.DataFrame(index=range(12))):
        with refuses(ValueError, "0 feature(s) (shape=(12, 0)) while a minimum of 1 is required."):
            make(kind).fit(X, np.arange(12) % 2)


def test_fault_004_one_row(kind):
    model = make(kind).fit([[1.0, 2.0]], [3])
    assert {tree.n_leaves for tree in trees_of(model)} == {1}
    assert model.predict([[5.0, np.nan], [1.0, 2.0]]).tolist() == [3, 3]


def test_fault_005_one_column(kind):
    X = [[1], [2], [3]]
    answer = make(kind).fit(X, [0, 0, 1]).predict(X).tolist()
    assert answer[0] == answer[1] <= answer[2]
    if kind is not C45Classifier and kind not in BOOSTING:  # which want more rows in a branch, or more rounds
        assert answer == [0, 0, 1]


def test_fault_006_one_dimensional(kind):
    model = make(kind).fit([[1.0], [2.0]], [0, 1])
    for X in (np.arange(4.0), [1.0, 2.0, 3.0, 4.0], pd.Series([1, 2, 3, 4]), pl.Series([1, 2, 3, 4])):
        with refuses(ValueError, "Expected 2D array, got 1D array", "Reshape your data"):
            make(kind).fit(X, [0, 1, 0, 1])
        with refuses(ValueError, "Expected 2D array, got 1D array", "Reshape your data"):
            model.predict(X)


def test_fault_007_three_dimensional(kind):
    with refuses(ValueError, "Found array with dim 3"):
        make(kind).fit(np.zeros((2, 2, 2)), [0, 1])
    with refuses(ValueError, "Found array with dim 3"):
        make(kind).fit([[1.0, 2.0]], [0]).predict(np.zeros((2, 2, 2)))


def test_fault_008_no_table_at_all(kind):
    model = make(kind).fit([[1.0]], [0])
    for X in (None, 3, 2.5, "table.csv", b"bytes", object()):
        with refuses((TypeError, ValueError), "Expected 2D array, got scalar array"):
            make(kind).fit(X, [0, 1])
        with refuses((TypeError, ValueError), "Expected 2D array, got scalar array"):
            model.predict(X)


def test_fault_009_lengths_differ(kind):
    X, y = make_table()
    with refuses(ValueError, "inconsistent numbers of samples", "X has 40 rows, y has 39"):
        make(kind).fit(X, y[:-1])


def test_fault_010_other_number_of_columns(kind):
    X, y = make_table()
    model = make(kind).fit(X, y)
    for n_columns in (2, 4):
        with refuses(ValueError, f"X has {n_columns} features, but {kind.__name__} is expecting 3 features as input."):
            model.predict(np.zeros((5, n_columns)))


@pytest.mark.sampled(2)
def test_fault_011_columns_reordered(kind, frame_of):
    X, y = make_table()
    model = make(kind).fit(frame_of({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}), y)
    expected = model.predict(frame_of({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}))
    moved = frame_of({"b": X[:, 1], "c": X[:, 2], "a": X[:, 0]})
    np.testing.assert_array_equal(model.predict(moved), expected)
    np.testing.assert_array_equal(model.predictor().predict(moved), expected)


@pytest.mark.sampled(2)
def test_fault_012_missing_and_extra_names(kind, frame_of):
    X, y = make_table()
    model = make(kind).fit(frame_of({"a": X[:, 0], "b": X[:, 1]}), y)
    with refuses(ValueError, "unseen at fit time:\n- new", "yet now missing:\n- b"):
        model.predict(frame_of({"a": X[:, 0], "new": X[:, 1]}))
    with refuses(ValueError, "unseen at fit time:\n- c", "Leave those out: `feature_names_in_` has the names of fit"):
        model.predict(frame_of({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}))
    with refuses(ValueError, "unseen at fit time:\n- c", "Leave those out: `feature_names` has the names of fit"):
        model.predictor().predict(frame_of({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]}))
    with refuses(ValueError, "yet now missing:\n- b", "Give every column of fit, None or NaN where a value is missing"):
        model.predict(frame_of({"a": X[:, 0]}))


@pytest.mark.sampled(2)
def test_fault_013_fitted_on_a_frame_predicting_an_array(kind, frame_of):
    X, y = make_table()
    frame = frame_of({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    model = make(kind).fit(frame, y)
    with pytest.warns(UserWarning, match="X does not have valid feature names") as seen:
        answer = model.predict(X)
    assert seen[0].filename == __file__
    np.testing.assert_array_equal(answer, model.predict(frame))


def test_fault_014_duplicate_names(kind):
    X, y = make_table()
    for frame in (pd.DataFrame(X, columns=["a", "b", "a"]), pa.table(list(X.T), names=["a", "b", "a"])):
        with refuses(ValueError, "Column names must be unique", "'a'", "Rename them"):
            make(kind).fit(frame, y)


def test_fault_015_names_that_are_not_text(kind):
    X, y = make_table()
    with refuses(TypeError, "only supported if all input features have string names", "['int', 'str']", "astype(str)"):
        make(kind).fit(pd.DataFrame(X, columns=["a", 1, 2]), y)
    model = make(kind).fit(pd.DataFrame(X, columns=[0, 1, 2]), y)  # no names, as in scikit-learn
    assert not hasattr(model, "feature_names_in_")
    np.testing.assert_array_equal(model.predict(X), make(kind).fit(X, y).predict(X))


def test_fault_016_object_arrays(kind):
    X, y = make_table()
    cells = X.astype(object)
    cells[0, 1] = None
    cells[1, 1] = Decimal("0.5")
    numbers = X.copy()
    numbers[:2, 1] = np.nan, 0.5
    model = make(kind).fit(cells, y)
    assert same_model(model, make(kind).fit(numbers, y))
    np.testing.assert_array_equal(model.predict(cells), model.predict(numbers))
    cells[3, 2] = "tall"
    with refuses(ValueError, "Column 2 mixes text and numbers", "'tall'"):
        make(kind).fit(cells, y)
    cells[:, 2] = "tall"
    with refuses(ValueError, "Column 2 holds text, such as 'tall'", "categorical_features"):
        make(kind).fit(cells, y)
    with refuses(ValueError, "Column 2 holds text, such as 'tall', but was numeric when the model was fitted"):
        model.predict(cells)


@pytest.mark.parametrize("dtype", ["datetime64[ms]", "timedelta64[ms]"])
def test_fault_018_dates(kind, dtype):
    X, y = make_table()
    dates = np.arange(40).astype(dtype)
    for frame_of in FRAMES.values():
        with refuses(ValueError, "Column 'when' holds dates or times", "derive numbers from it"):
            make(kind, date_features=None).fit(frame_of({"a": X[:, 0], "when": dates}), y)
    with refuses(ValueError, dtype.partition("[")[0], "column 0", "derive numbers from it"):
        make(kind).fit(np.column_stack([dates, dates]), y)
    with refuses(ValueError, "Column 1 holds dates or times"):
        make(kind).fit(np.column_stack([X[:, :1].astype(object), dates.astype(object)]), y)


def test_fault_019_complex_numbers(kind):
    X, y = make_table()
    with refuses(ValueError, "Complex data not supported"):
        make(kind).fit(X + 1j, y)
    with refuses(ValueError, "Complex data not supported: column 'z'", "real and imaginary parts"):
        make(kind).fit(pd.DataFrame({"a": X[:, 0], "z": X[:, 1] + 1j}), y)
    with refuses(ValueError, "Complex data not supported"):
        make(kind).fit(X, y).predict(X + 1j)


@pytest.mark.parametrize("dtype", ["float16", "float32", "longdouble", "bool", "uint8", "int8", "int32", "uint64"])
@pytest.mark.sampled(7)
def test_fault_020_number_types(kind, dtype):
    numbers = np.random.default_rng(0).integers(0, 2 if dtype == "bool" else 100, size=(50, 3))
    y = numbers[:, 0] > numbers[:, 0].mean()
    X = numbers.astype(dtype)
    model = make(kind).fit(X, y)
    assert same_model(model, make(kind).fit(numbers.astype(float), y))
    np.testing.assert_array_equal(model.predict(X), model.predict(numbers.astype(float)))


def test_fault_022_layouts_of_memory(kind):
    X, y = make_table()
    model = make(kind).fit(X, y)
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
        assert same_model(make(kind).fit(layout, y), model), name
        np.testing.assert_array_equal(model.predict(layout), model.predict(X), err_msg=name)
    single = X.astype(np.float32)
    swapped = single.astype(single.dtype.newbyteorder())
    np.testing.assert_array_equal(model.predict(swapped), model.predict(single))


def test_fault_023_read_only_arrays_and_memory_maps(kind, tmp_path):
    X, y = make_table()
    plain = make(kind).fit(X, y)
    weight = np.ones(len(y))
    for array in (X, y, weight):
        array.flags.writeable = False
    np.save(tmp_path / "X.npy", X)
    for table in (X, np.load(tmp_path / "X.npy", mmap_mode="r")):
        model = make(kind).fit(table, y, weight)
        assert same_model(model, plain)
        assert model.predict(table).shape == (40,)


def test_fault_024_sparse_tables_are_read(kind):
    X, y = make_table()
    X[np.abs(X) < 0.5] = 0.0
    model = make(kind).fit(X, y)
    for pack in (sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array, sparse.csc_array, sparse.coo_array):
        assert same_model(make(kind).fit(pack(X), y), model)
        np.testing.assert_array_equal(model.predict(pack(X)), model.predict(X))
    with refuses(ValueError, "Complex data not supported"):
        make(kind).fit(sparse.csr_array(X.astype(complex)), y)
    with refuses(TypeError, "Sparse data was passed for y", "dense"):
        make(kind).fit(X, sparse.csr_array(X[:, :1]))


def test_fault_025_and_026_nulls_are_missing(kind):
    X, y = make_table()
    X[::5, 1] = np.nan
    model = make(kind).fit(X, y)
    columns = {f"x{j}": [None if np.isnan(v) else v for v in X[:, j]] for j in range(3)}
    for frame in (pd.DataFrame(columns).convert_dtypes(), pl.DataFrame(columns), pa.table(columns)):
        other = make(kind).fit(frame, y)
        assert same_model(other, model)
        np.testing.assert_array_equal(other.predict(frame), model.predict(X))


def test_fault_027_masked_arrays(kind):
    X, y = make_table()
    masked = np.ma.masked_greater(X, 1.0)
    with refuses(ValueError, "masked array", "X.filled(np.nan)"):
        make(kind).fit(masked, y)
    with refuses(ValueError, "masked array", "X.filled(np.nan)"):
        make(kind).fit(X, y).predict(masked)


def test_fault_028_lists_and_array_likes(kind):
    X, y = make_table()

    class Wrapped:
        def __array__(self, dtype=None, copy=None):
            return np.array(X, dtype=dtype)

    model = make(kind).fit(X, y)
    for table in (X.tolist(), tuple(map(tuple, X)), list(X), Wrapped()):
        assert same_model(make(kind).fit(table, y.tolist()), model)
        np.testing.assert_array_equal(model.predict(table), model.predict(X))
    with refuses(ValueError, "rows of X differ in length: row 0 has 2 values, row 1 has 1"):
        make(kind).fit([[1, 2], [3]], [0, 1])
    with refuses(ValueError, "cells of X are nested"):
        make(kind).fit([[1, [2, 3]], [3, 4]], [0, 1])


def test_fault_029_data_changed_by_another_thread_during_fit(kind):
    X, y = make_table(1000)
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
        for n_jobs in (None, None, None, 2, 2):
            model = make(kind)
            if n_jobs is not None:
                if "n_jobs" not in model.get_params(deep=False):
                    break
                model.set_params(n_jobs=n_jobs)
            model.fit(X, y, weight)
            for tree in trees_of(model):
                tree.check()
            model.predict(X)
    finally:
        is_done.set()
        other.join()


# --- B. values in X -----------------------------------------------------------------------------------------------


def test_fault_037_negative_zero_is_zero(kind):
    X = np.array([[0.0], [-0.0], [0.0], [-0.0]])
    assert {tree.n_leaves for tree in trees_of(make(kind).fit(X, [0, 1, 0, 1]))} == {1}
    answer = make(kind).fit([[-0.0], [0.0], [1.0]], [0, 0, 1]).predict([[0.0], [-0.0]])
    assert answer[0] == answer[1]


# --- C. y ---------------------------------------------------------------------------------------------------------


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
            make(kind).fit(X, target)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA], ids=str)
def test_fault_042_missing_classes(classifier, missing):
    X, _ = make_table(4)
    for target in (["a", "b", missing, "a"], pd.Series(["a", "b", missing, "a"], dtype=object)):
        with refuses(ValueError, "Input y contains NaN", "row 2", "leave out such rows"):
            make(classifier).fit(X, np.asarray(target, dtype=object))
    with refuses(ValueError, "Input y contains NaN", "row 2"):
        make(classifier).fit(X, pd.Categorical(["a", "b", None, "a"]))


def test_fault_044_one_class(classifier):
    X, _ = make_table()
    model = make(classifier).fit(X, np.full(40, "only"))
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
@pytest.mark.sampled(5)
def test_fault_045_classes_of_any_type(classifier, labels):
    X, _ = make_table()
    y = labels[np.digitize(X[:, 0], [-0.5, 0.5][: len(labels) - 1])]
    model = make(classifier).fit(X, y)
    assert model.classes_.dtype == y.dtype
    assert model.predict(X).dtype == y.dtype
    assert model.classes_.tolist() == sorted(labels.tolist())
    assert model.score(X, y) == 1.0
    members = np.ravel(getattr(model, "estimators_", []))
    is_boosted = classifier.__name__ == "GradientBoostingClassifier"  # whose trees say scores
    said = np.dtype(np.float64) if is_boosted else y.dtype
    assert {member.predict(X).dtype for member in members} <= {said}


def test_fault_045_many_classes(classifier):
    X = np.random.default_rng(0).normal(size=(900, 2))
    y = np.arange(900) % 300
    bags = {"bootstrap": True} if classifier in FORESTS else {}  # that may miss a class
    model = make(classifier, max_depth=4, **bags).fit(X, y)
    assert model.predict_proba(X).shape == (900, 300)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_fault_047_numbers_with_fractions_for_a_classifier(classifier):
    X, _ = make_table()
    with refuses(ValueError, "Unknown label type: continuous"):
        make(classifier).fit(X, X[:, 0])


def test_fault_048_column_vector(kind):
    X, y = make_table()
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed when a 1d array was expected"):
        model = make(kind).fit(X, y[:, None])
    assert model.predict(X).shape == (40,)


def test_fault_049_several_targets(kind):
    X, y = make_table()
    targets = np.column_stack([y, 1 - y])
    if get_tags(make(kind)).target_tags.multi_output:
        assert make(kind).fit(X, targets).predict(X).shape == (40, 2)
        return
    with refuses(ValueError, "y should be a 1d array, got an array of shape (40, 2)"):
        make(kind).fit(X, targets)


def test_fault_050_no_target(kind):
    X, _ = make_table()
    with refuses(ValueError, f"{kind.__name__} requires y to be passed, but the target y is None"):
        make(kind).fit(X, None)


def test_fault_051_unseen_class_in_score(classifier):
    X, y = make_table()
    model = make(classifier).fit(X, np.array(["no", "yes"])[y])
    is_no = model.predict(X) == "no"
    assert model.score(X, np.array(["no", "Yes"])[y]) == np.mean((y == 0) & is_no)  # wrong, as in scikit-learn
    assert model.score(X, np.full(40, "yes")) == np.mean(~is_no)


def test_fault_053_categorical_target_has_the_classes_that_occur(classifier):
    X, y = make_table()
    target = pd.Categorical.from_codes(y, ["b", "a", "never"])
    for labels in (target, pd.Series(target)):
        model = make(classifier).fit(X, labels)
        assert model.classes_.tolist() == ["a", "b"]
        assert set(model.predict(X)) <= {"a", "b"}
    polars = pl.Series(list(target), dtype=pl.Enum(["b", "a", "never"]))
    assert make(classifier).fit(X, polars).classes_.tolist() == ["a", "b"]
    assert make(classifier).fit(X, pa.chunked_array([list(target)])).classes_.tolist() == ["a", "b"]


def test_targets_of_a_wrong_kind(kind):
    X, y = make_table()
    with refuses(ValueError, "Complex data not supported"):
        make(kind).fit(X, y + 1j)
    with refuses(ValueError, "datetime64", "not supported in y"):
        make(kind).fit(X, y.astype("datetime64[D]"))
    if not is_classifier(kind):
        with refuses(ValueError, "y must hold numbers for a regression", "classifier"):
            make(kind).fit(X, np.array(["no", "yes"])[y])
        return
    with refuses(TypeError, "y mixes classes of different types", "int, str"):
        make(kind).fit(X, np.array(["a", 1] * 20, dtype=object))
    for dtype in ("S1", object):
        with refuses(TypeError, "y holds bytes, such as b'a'", "Decode"):
            make(kind).fit(X, np.array([b"a", b"b"] * 20, dtype=dtype))


# --- D. weights, randomness ---------------------------------------------------------------------------------------


def test_fault_055_negative_weight(kind):
    X, y = make_table()
    weight = np.ones(40)
    weight[5] = -0.5
    with refuses(ValueError, "Negative values", "`sample_weight`", "-0.5 in row 5"):
        make(kind).fit(X, y, weight)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_fault_056_weight_is_not_finite(kind, bad):
    X, y = make_table()
    weight = np.ones(40)
    weight[5] = bad
    with refuses(ValueError, "Input sample_weight contains", "NaN" if np.isnan(bad) else "infinity"):
        make(kind).fit(X, y, weight)


def test_fault_057_all_weights_zero(kind):
    X, y = make_table()
    with refuses(ValueError, "Sample weights are all zero", "at least one weight must be positive"):
        make(kind).fit(X, y, np.zeros(40))
    if is_classifier(kind):
        with refuses(ValueError, "weights are all zero after class_weight"):
            make(kind, class_weight={0: 0.0, 1: 0.0}).fit(X, y)


def test_fault_061_shape_of_weights(kind):
    X, y = make_table()
    with refuses(ValueError, "sample_weight.shape == (39,), expected (40,)"):
        make(kind).fit(X, y, np.ones(39))
    with refuses(ValueError, "Sample weights must be 1D array or scalar, got 2D array"):
        make(kind).fit(X, y, np.ones((40, 1)))
    with refuses(ValueError, "sample_weight"):
        make(kind).fit(X, y, np.full(40, "heavy"))


def test_fault_062_class_weight_for_an_unknown_class(classifier):
    X, y = make_table()
    with refuses(ValueError, "The classes, [1], are not in class_weight, which names 2", "[0, 1]"):
        make(classifier, class_weight={0: 1.0, 2: 3.0}).fit(X, y)
    make(classifier, class_weight={0: 1.0, 1: 2.0, 2: 3.0}).fit(X, y)  # rows may lack a class
    for bad in (-1.0, np.nan, np.inf):
        with refuses(ValueError, "class_weight must hold finite weights that are not negative"):
            make(classifier, class_weight={0: bad}).fit(X, y)
    with refuses(InvalidParameterError, "class_weight"):
        make(classifier, class_weight="heavy").fit(X, y)


def test_fault_067_a_random_state_object_is_drawn_from_once(constrained):
    X, y = make_table()
    state = np.random.RandomState(7)
    first = make(constrained, random_state=state, max_features=1, max_depth=3).fit(X, y)
    reference = np.random.RandomState(7)
    reference.randint(np.iinfo(np.int32).max)
    assert state.get_state()[2] == reference.get_state()[2]
    assert not same_model(make(constrained, random_state=state, max_features=1, max_depth=3).fit(X, y), first)
    assert same_model(
        make(constrained, random_state=np.random.RandomState(7), max_features=1, max_depth=3).fit(X, y), first
    )
    one, other = (
        make(constrained, random_state=seed, max_features=1, max_depth=3).fit(X, y) for seed in (3, np.int64(3))
    )
    assert same_model(one, other)


@pytest.mark.parametrize("seed", [-1, 1.5, "seed", np.random.default_rng(0)], ids=["-1", "1.5", "text", "Generator"])
def test_fault_068_seeds_that_are_none(kind, seed):
    X, y = make_table()
    with refuses(InvalidParameterError, f"'random_state' parameter of {kind.__name__}", "RandomState"):
        make(kind, random_state=seed).fit(X, y)
    assert issubclass(InvalidParameterError, (ValueError, TypeError))


def test_fault_069_and_070_refit_and_clone(kind):
    X, y = make_table()
    model = make(kind).fit(X, y)
    other, target = make_table(60, seed=1)
    again = clone(model).fit(pd.DataFrame(other, columns=list("abc")), target)
    again.fit(X, y)  # nothing of the fit in between is left
    assert same_model(again, model)
    assert vars(again).keys() == vars(model).keys()
    copied = clone(model)
    assert copied.get_params().keys() == model.get_params().keys()
    with pytest.raises(NotFittedError):
        copied.predict(X)


# --- E. parameters ------------------------------------------------------------------------------------------------


def test_fault_071_unknown_parameter(kind):
    with refuses(TypeError, f"{kind.__name__} has no parameter 'random_stat'", "Did you mean 'random_state'?"):
        kind(random_stat=3)
    with refuses(TypeError, "has no parameter 'zzz'", "random_state"):
        kind(zzz=3)
    with refuses(ValueError, "Invalid parameter 'random_stat'"):
        kind().set_params(random_stat=3)


@pytest.mark.parametrize(("kind", "name", "words"), nearly_right_names())
def test_fault_071_names_of_other_libraries_and_misspelt_ones(kind, name, words):
    with refuses(TypeError, f"{kind.__name__} has no parameter {name!r}", *words):
        kind(**{name: 3})


@pytest.mark.parametrize("kind", [*TREES, *FORESTS], ids=lambda kind: kind.__name__)
def test_fault_071_a_criterion_has_a_name(kind):
    with pytest.raises(TypeError):
        kind(*([100] if kind in FORESTS else []), "gini")


def test_fault_082_monotone_constraints(constrained):
    X, y = make_table()
    with refuses(ValueError, "monotonic_cst has shape", "2", "but the input data X has 3 features"):
        make(constrained, monotonic_cst=[1, 0]).fit(X, y)
    with refuses(ValueError, "monotonic_cst must be", "an array-like of -1, 0 or 1. Observed values: [2, 0, 0]"):
        make(constrained, monotonic_cst=[2, 0, 0]).fit(X, y)
    with refuses(ValueError, "monotonic_cst constrains column 1, which is categorical"):
        make(constrained, monotonic_cst=[0, 1, 0], categorical_features=[1]).fit(np.abs(X).round(), y)
    if is_classifier(constrained):
        with refuses(ValueError, "constraints are not supported", "multiclass classification"):
            make(constrained, monotonic_cst=[1, 0, 0]).fit(X, np.arange(40) % 3)


# --- F. categories ------------------------------------------------------------------------------------------------


@pytest.mark.sampled(2)
def test_fault_087_categories_are_told_by_value(kind, frame_of):
    fitted = colours(COLOURS, frame_of)
    model = make(kind).fit(fitted, IS_WARM)
    expected = model.predict(fitted).tolist()
    if kind in TREES:
        assert expected == IS_WARM
    for order in (["red", "green", "blue"], ["green", "red", "violet", "blue"]):
        assert model.predict(colours(COLOURS, frame_of, order)).tolist() == expected
    for other in FRAMES.values():  # and in any library
        assert model.predict(colours(COLOURS, other, ["red", "blue", "green"])).tolist() == expected


@pytest.mark.sampled(2)
def test_fault_088_one_category_is_never_split(kind, frame_of):
    for order in (None, ["blue", "red", "green"]):
        model = make(kind).fit(colours(["red"] * 8, frame_of, order), IS_WARM)
        assert {tree.n_leaves for tree in trees_of(model)} == {1}


def test_fault_089_many_categories(kind):
    codes = np.random.default_rng(0).integers(0, 1000, 5000)
    X = pd.DataFrame({"town": pd.Categorical([f"town {code}" for code in codes])})
    y = codes % 3
    model = make(kind).fit(X, y)
    answer = model.predict(pl.DataFrame({"town": ["town 5", "town 6", "town 1001"]}))
    assert np.isfinite(answer.astype(float)).all()
    if kind in TREES:
        assert model.predict(X).tolist() == y.tolist()
        assert answer[:2].tolist() == [2, 0]


def test_fault_091_mixed_kinds_of_categories_are_refused(kind):
    with refuses(ValueError, "Column 'c' mixes kinds of categories", "numbers", "text", ".astype(str)"):
        make(kind).fit(pd.DataFrame({"c": pd.Categorical([1, "1", 1, "1"])}), [0, 1, 0, 1])
    with refuses(ValueError, "Column 'c' mixes kinds of categories (booleans and text)"):
        make(kind).fit(pd.DataFrame({"c": pd.Categorical([True, "a", True, "a"])}), [0, 1, 0, 1])
    with refuses(ValueError, "Column 0 mixes text and numbers", "'1'"):
        make(kind, categorical_features=[0]).fit(np.array([[1], ["1"]], dtype=object), [0, 1])
    model = make(kind).fit(pd.DataFrame({"c": pd.Categorical(["1", "2"])}), [0, 1])
    with refuses(ValueError, "Column 'c' had categories such as '1' when the model was fitted, now 1", "text"):
        model.predict(pd.DataFrame({"c": pd.Categorical([1, 2])}))


def test_fault_092_naming_categorical_columns(kind):
    X = np.abs(make_table()[0]).round()
    y = np.arange(40) % 2
    cases = {
        "index 3, and the columns of X are 0 to 2": [3],
        "index -1, and the columns of X are 0 to 2": [-1],
        "categorical_features has 1 twice": [1, 1],
        "It has 'a', but X has no column names": ["a"],
        "boolean mask must have shape (n_features,): it has 2 entries for 3 columns": [True, False],
        "one-dimensional": [[0], [1]],
        "give all bools, all indices or all names": [0.5],
    }
    for message, categorical in cases.items():
        with refuses(ValueError, message):
            make(kind, categorical_features=categorical).fit(X, y)
    frame = pd.DataFrame(X, columns=["age", "height", "weight"])
    with refuses(
        ValueError,
        "categorical_features has an item value 'hight' which is not a valid feature name",
        "Did you mean 'height'",
    ):
        make(kind, categorical_features=["hight"]).fit(frame, y)
    ways = [[0], ["age"], [True, False, False], np.array([0]), np.array([True, False, False])]
    models = [make(kind, categorical_features=way).fit(frame, y) for way in ways]
    assert all(same_model(model, models[0]) for model in models)


@pytest.mark.sampled(2)
def test_fault_094_categories_in_fit_text_in_predict(kind, frame_of):
    fitted = colours(COLOURS, frame_of)
    model = make(kind).fit(fitted, IS_WARM)
    expected = model.predict(fitted).tolist()
    assert model.predict(colours(COLOURS, frame_of, is_text=True)).tolist() == expected
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        assert model.predict(np.array(COLOURS, dtype=object)[:, None]).tolist() == expected
    text = make(kind).fit(colours(COLOURS, frame_of, is_text=True), IS_WARM)
    assert text.predict(fitted).tolist() == expected
    with refuses(ValueError, "Column 'colour' had categories such as 'blue' when the model was fitted, now 1", "text"):
        model.predict(frame_of({"colour": [1, 2, 3]}))


def test_fault_085_unseen_and_missing_categories_are_alike(constrained):
    frame, y = coloured_rows()
    model = make(constrained, max_depth=3)
    if constrained in ENSEMBLES:
        model.set_params(n_estimators=20)
    model.fit(frame, y)
    is_known = frame["colour"].notna().to_numpy()
    assert np.mean(np.round(model.predict(frame)) == y, where=is_known) > 0.9
    said = raw_predict(model, pd.DataFrame({"colour": ["violet", None], "x": [0.0, 0.0]}))
    np.testing.assert_array_equal(said[0], said[1])
    assert make(constrained).fit(frame.assign(colour="red"), y).feature_importances_[0] == 0.0


# --- before, after and in the midst of a fit ----------------------------------------------------------------------


def test_unfitted_models_say_so(kind):
    X, y = make_table()
    names = [name for name in dir(kind) if name.startswith(("predict", "staged_", "decision_", "apply", "score"))]
    names = [name for name in names if hasattr(kind(), name)]  # a bag has `decision_function` where its members have
    assert {"predict", "predictor", "score"} <= set(names)
    assert kind not in BOOSTING or {"staged_predict", "apply"} <= set(names)
    for name in names:
        needs_y = name in {"score", "staged_score", "staged_weights"}
        given = [] if name == "predictor" else [X, y] if needs_y else [X]
        with pytest.raises(NotFittedError, match=f"{kind.__name__} instance is not fitted yet"):
            list(getattr(kind(), name)(*given))
    for name in ("feature_importances_", "estimators_", "classes_", "n_features_in_"):
        assert not hasattr(kind(), name)


def test_no_warnings_in_an_ordinary_fit(kind):
    X, y = make_table(200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(kind).fit(X, y).predict(X)


def test_a_failed_refit_keeps_the_model(kind, monkeypatch):
    X, y = make_table()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = make(kind).fit(frame, y)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(X[:, :2], np.full(40, np.nan))

    def interrupt(*_, **__):
        raise KeyboardInterrupt

    for grower, method in GROWERS:
        monkeypatch.setattr(grower, method, interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:, :2], 1 - y)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is before[name] for name in before)
    monkeypatch.undo()
    assert model.predict(frame).shape == (40,)
    model.fit(X, y)


@pytest.mark.parametrize("made", INTERRUPTED)
def test_fault_120_ctrl_c_is_answered_and_the_old_model_kept(made, tmp_path):
    code = f"""
    import signal
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell has put in the background ignores it
    import numpy as np
    import spinney
    X = np.random.default_rng(0).normal(size=(200_000, 20))
    y = (X ** 2).sum(axis=1) > 19.3
    model = spinney.{made}.fit(X[:2000], y[:2000])
    n, before = len(model.forest_), model.predict(X[:100])
    print("begin", flush=True)
    try:
        model.set_params(n_estimators=100_000).fit(X, y)
        print("finished", flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    print(np.array_equal(model.predict(X[:100]), before), len(model.forest_) == n)
    """
    found = interrupt_process(code, tmp_path)
    assert found.lines == ("begin", "interrupted"), found.errors
    assert found.waited < 20  # in truth a second at most; machines stall
    assert found.rest == ["True", "True"], found.errors
