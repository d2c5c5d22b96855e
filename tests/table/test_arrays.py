"""Arrays and lists: what is a number, what is refused. `fault_NN` in a name is its number in the list."""

import subprocess
import sys
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from spinney.table.columns import WIDE
from spinney.table.ingest import Table, read_columns
from spinney.table.schema import Schema, encode


def loop_values(rows):
    """Columns of float64 by a plain loop over rows of Python numbers, None as NaN."""
    n_columns = len(rows[0])
    out = [[float("nan") if row[j] is None else float(row[j]) for row in rows] for j in range(n_columns)]
    return np.array(out, dtype=np.float64)


def values_of(table):
    return table.block(0, table.schema.n_features)


def assert_reads_as(X, rows, **kwargs):
    expected = loop_values(rows)
    table = read_columns(X, **kwargs)
    block = values_of(table)
    assert block.dtype == np.float64
    assert block.flags.c_contiguous
    np.testing.assert_array_equal(block, expected)
    encoded = encode(X, table.schema)
    assert encoded.flags.c_contiguous
    assert encoded.dtype in {np.dtype(np.float64), np.dtype(np.float32)}
    assert type(encoded) is np.ndarray
    np.testing.assert_array_equal(encoded, expected.T)
    return table


@given(
    hnp.arrays(
        st.sampled_from([np.float64, np.float32, np.float16, np.int8, np.uint8, np.int32, np.uint32, np.bool_]),
        hnp.array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=9),
    )
)
def test_any_real_dtype_reads_as_a_plain_loop_fault_20(X):
    assert_reads_as(X, X.tolist())


@given(st.data(), st.integers(1, 2500), st.integers(1, 6))
def test_blocks_are_slices_of_the_whole(data, n_rows, n_columns):
    X = np.arange(n_rows * n_columns, dtype=np.float64).reshape(n_rows, n_columns)
    start = data.draw(st.integers(0, n_columns - 1))
    stop = data.draw(st.integers(start + 1, n_columns))
    table = read_columns(X)
    expected = [[float(i * n_columns + j) for i in range(n_rows)] for j in range(start, stop)]
    np.testing.assert_array_equal(table.block(start, stop), expected)
    out = np.empty((stop - start, n_rows))
    assert table.block(start, stop, out) is out
    np.testing.assert_array_equal(out, expected)


def test_block_is_a_copy_fault_29():
    X = np.zeros((3, 2), order="F")
    block = read_columns(X).block(0, 2)
    X[:] = 1.0
    assert not block.any()


def test_long_double_fault_20():
    X = np.array([[1, 2], [3, 4]], dtype=np.longdouble)
    assert_reads_as(X, [[1, 2], [3, 4]])
    if np.finfo(np.longdouble).max > np.finfo(np.float64).max:
        huge = np.array([[np.finfo(np.longdouble).max, 1]], dtype=np.longdouble)
        assert values_of(read_columns(huge))[0, 0] == np.inf
        assert encode(huge, Schema(None, (None, None)))[0, 0] == np.inf


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_encode_returns_a_contiguous_float_array_itself(dtype):
    X = np.ones((4, 3), dtype=dtype)
    encoded = encode(X, Schema(None, (None,) * 3))
    assert np.shares_memory(encoded, X)
    assert encoded.dtype == dtype


def layouts():
    base = np.arange(24, dtype=np.float64).reshape(6, 4)
    padded = np.zeros((12, 8))
    padded[::2, ::2] = base
    read_only = base.copy()
    read_only.flags.writeable = False
    return {
        "fortran": np.asfortranarray(base),
        "strided": padded[::2, ::2],
        "negative": base[::-1, ::-1].copy()[::-1, ::-1],
        "foreign endian": base.astype(base.dtype.newbyteorder()),
        "foreign endian float32": base.astype(np.dtype(np.float32).newbyteorder()),
        "read-only": read_only,
        "fortran float32": np.asfortranarray(base.astype(np.float32)),
    }


@pytest.mark.parametrize("layout", layouts())
def test_memory_layout_does_not_matter_faults_22_23(layout):
    rows = [[float(4 * i + j) for j in range(4)] for i in range(6)]
    X = layouts()[layout]
    assert_reads_as(X, rows)
    assert encode(X, Schema(None, (None,) * 4)).dtype.isnative


def test_memmap_fault_23(tmp_path):
    written = np.memmap(tmp_path / "x", dtype=np.float64, mode="w+", shape=(3, 2))
    written[:] = [[1, 2], [3, 4], [5, 6]]
    written.flush()
    assert_reads_as(np.memmap(tmp_path / "x", dtype=np.float64, mode="r", shape=(3, 2)), [[1, 2], [3, 4], [5, 6]])


class Wrapped:
    """An array-like that is no array."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.array, dtype=dtype)


def test_lists_and_array_likes_fault_28():
    rows = [[1, 2.5], [None, -3]]
    assert_reads_as(rows, rows)
    assert_reads_as(tuple(map(tuple, rows)), rows)
    assert_reads_as(Wrapped([[1, 2], [3, 4]]), [[1, 2], [3, 4]])
    assert_reads_as([np.array([1.0, 2.0]), np.array([3.0, 4.0])], [[1, 2], [3, 4]])


@given(
    st.lists(
        st.tuples(
            st.none() | st.floats(allow_nan=False) | st.booleans() | st.integers(-WIDE, WIDE),
            st.none() | st.decimals(-1000, 1000, places=3) | st.just(np.float32(0.5)) | st.just(np.bool_(True)),
        ),
        min_size=1,
    )
)
def test_objects_that_are_numbers_fault_16(rows):
    X = np.empty((len(rows), 2), dtype=object)
    for i, row in enumerate(rows):
        X[i, 0], X[i, 1] = row
    assert_reads_as(X, rows)


def test_infinities_and_extremes_faults_33_34_37():
    rows = [[np.inf, 1e300], [-np.inf, 5e-324], [0.0, -1e300], [-0.0, 2.2e-308]]
    table = assert_reads_as(np.array(rows), rows)
    block = values_of(table)
    assert block[0, 0] > 1e308 > block[0, 2] == block[0, 3] > block[0, 1]
    assert block[1, 1] > 0
    assert np.isfinite(block[1]).all()


@pytest.mark.parametrize("X", [None, "text", 5, 5.0, [1, 2, 3], np.arange(3), np.zeros((2, 2, 2))])
def test_not_two_dimensional_faults_6_7_8(X):
    with pytest.raises(ValueError, match=r"Expected 2D array|dim 3"):
        read_columns(X)
    with pytest.raises(ValueError, match=r"Expected 2D array|dim 3"):
        encode(X, Schema(None, (None,)))


def test_empty_faults_1_2_3():
    for read in (read_columns, lambda X: encode(X, Schema(None, (None,) * X.shape[1]))):
        with pytest.raises(ValueError, match=r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required"):
            read(np.empty((0, 3)))
        with pytest.raises(ValueError, match=r"0 feature\(s\) \(shape=\(12, 0\)\) while a minimum of 1 is required"):
            read(np.empty((12, 0)))


def test_ragged_rows_are_named_fault_28():
    with pytest.raises(ValueError, match="row 0 has 2 values, row 2 has 1"):
        read_columns([[1, 2], [3, 4], [5]])


@pytest.mark.parametrize("dtype", ["M8[s]", "m8[D]"])
def test_dates_are_refused_fault_18(dtype):
    with pytest.raises(ValueError, match=r"column 0.*year"):
        read_columns(np.zeros((2, 2), dtype=dtype))
    cells = np.array([[1.0, np.datetime64("2020-01-01")]], dtype=object)
    with pytest.raises(ValueError, match=r"Column 1 holds dates.*year"):
        read_columns(cells)


def test_complex_is_refused_fault_19():
    with pytest.raises(ValueError, match="Complex data not supported"):
        read_columns(np.zeros((2, 2), dtype=complex))
    with pytest.raises(ValueError, match="Complex data not supported: column 1"):
        read_columns(np.array([[1, 1j]], dtype=object))


def test_masked_arrays_are_refused_fault_27():
    with pytest.raises(ValueError, match=r"masked.*filled"):
        read_columns(np.ma.array([[1.0, 2.0]], mask=[[True, False]]))


@pytest.mark.parametrize("make", [scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.csr_matrix])
def test_sparse_is_read_fault_24(make):
    X = np.array([[0.0, 2.0, 0.0], [np.nan, 0.0, 0.0]])
    table = read_columns(make(X))
    assert table.schema == read_columns(X).schema
    np.testing.assert_array_equal(table.block(0, 3), X.T)


def test_text_in_arrays_is_refused_faults_16_17():
    cells = np.array([[1, "red"], [2, "blue"]], dtype=object)
    for X in (cells, cells.tolist()):
        with pytest.raises(ValueError, match=r"Column 1 holds text, such as 'red'.*categorical_features.*frame"):
            read_columns(X)
    with pytest.raises(ValueError, match=r"Column 0 holds text.*categorical_features"):
        read_columns(np.array([["1", "2"]]))
    with pytest.raises(ValueError, match=r"Column 0 holds bytes.*decode"):
        read_columns(np.array([[b"1", b"2"]]))
    with pytest.raises(ValueError, match=r"Column 0 holds text, such as 'red', but was numeric"):
        encode(np.array([["red"]], dtype=object), Schema(None, (None,)))


def test_declared_text_in_arrays_is_categorical_fault_17():
    rows = [[1.5, "red"], [2, "blue"], [3, None], [4, np.nan]]
    for X in (rows, np.array(rows, dtype=object)):
        table = read_columns(X, [1])
        assert table.schema.levels == (None, ("blue", "red"))
        np.testing.assert_array_equal(values_of(table), [[1.5, 2, 3, 4], [1, 0, np.nan, np.nan]])
        np.testing.assert_array_equal(encode(X, table.schema), values_of(table).T)
    strings = np.array([["b", "y"], ["a", "x"]])
    assert read_columns(strings, [0, 1]).schema.levels == (("a", "b"), ("x", "y"))


@pytest.mark.parametrize("cell", [{"foo": "bar"}, [1], object()])
def test_other_cells_are_refused_naming_the_column_fault_16(cell):
    X = np.empty((2, 2), dtype=object)
    X[:] = 1.0
    X[1, 1] = cell
    with pytest.raises(TypeError, match=r"Column 1 .*argument must be .* string.* number"):
        read_columns(X)
    with pytest.raises(ValueError, match="Column 1"):
        read_columns(X)


def test_numbers_and_text_are_not_merged_fault_91():
    for declared in ("from_dtype", [0]):
        with pytest.raises(ValueError, match="Column 0 mixes text and numbers, such as '1' and 1"):
            read_columns(np.array([["1"], [1]], dtype=object), declared)


def merges(values):
    """By a plain loop: whether two distinct integers become one float."""
    distinct = sorted(set(values))
    return any(float(a) == float(b) for a, b in pairwise(distinct))


near_wide = st.integers(WIDE - 3, WIDE + 5) | st.integers(-WIDE - 5, -WIDE + 3) | st.integers(-(2**63), 2**63 - 1)


@given(st.lists(near_wide, min_size=1, max_size=8), st.sampled_from(["int64", "object", "list"]))
def test_wide_integers_never_merge_silently_fault_21(column, form):
    small = list(range(len(column)))
    rows = [list(row) for row in zip(small, column, strict=True)]
    X = rows if form == "list" else np.array(rows, dtype=form)
    if merges(column):
        with pytest.raises(ValueError, match=r"Column 1 holds -?\d+ and -?\d+.*2\*\*53.*categorical_features"):
            read_columns(X)
    else:
        np.testing.assert_array_equal(values_of(read_columns(X)), loop_values(rows))
    inexact = any(int(float(value)) != value for value in column)
    schema = Schema(None, (None, None))
    if inexact:
        with pytest.warns(UserWarning, match="Column 1 holds -?\\d+, which float64 rounds to"):
            encoded = encode(X, schema)
    else:
        encoded = encode(X, schema)
    np.testing.assert_array_equal(encoded, loop_values(rows).T)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_first_wide_integers_fault_21(sign):
    assert values_of(read_columns(np.array([[sign * (WIDE - 1)], [sign * WIDE]]))).tolist() == [
        [sign * (2.0**53 - 1), sign * 2.0**53]
    ]
    with pytest.raises(ValueError, match="Column 0 holds"):
        read_columns(np.array([[sign * WIDE], [sign * (WIDE + 1)]]))


def test_wide_integers_beside_floats_in_a_list_fault_21():
    with pytest.raises(ValueError, match="Column 0 holds 9007199254740992 and 9007199254740993"):
        read_columns([[2**53, 1.5], [2**53 + 1, 2.5]])
    with pytest.raises(ValueError, match="Column 0 holds 18446744073709551614 and 18446744073709551615"):
        read_columns(np.array([[2**64 - 2], [2**64 - 1]], dtype=np.uint64))
    with pytest.raises(ValueError, match="Column 0 holds"):
        read_columns(np.array([[Decimal(2**60)], [Decimal(2**60 + 1)]], dtype=object))
    with pytest.raises(ValueError, match="Column 0 holds a number too large"):
        read_columns([[10**400]])


def test_declared_wide_integers_stay_apart_faults_21_92():
    column = [2**60, 2**60 + 1, 5]
    for X in (np.array(column)[:, None], np.array(column, dtype=object)[:, None]):
        table = read_columns(X, [0])
        assert table.schema.levels == ((5, 2**60, 2**60 + 1),)
        np.testing.assert_array_equal(values_of(table), [[1, 2, 0]])
        np.testing.assert_array_equal(encode(X, table.schema), [[1], [2], [0]])
        unseen = encode(np.array([[2**60 + 2], [2**60 - 1]]), table.schema)
        assert np.isnan(unseen).all()


def test_number_of_columns_is_checked_fault_10():
    with pytest.raises(ValueError, match="X has 1 features, but the model is expecting 4"):
        encode(np.ones((2, 1)), Schema(None, (None,) * 4))


def test_arrays_need_no_frame_library():
    code = (
        "import sys, numpy as np\n"
        "from spinney.table.ingest import read_columns\n"
        "from spinney.table.schema import encode\n"
        "table = read_columns(np.ones((150, 4)))\n"
        "table.block(0, 4), encode(np.ones((2, 4)), table.schema)\n"
        "heavy = ('narwhals', 'pyarrow', 'pandas', 'polars', 'sklearn', 'numba')\n"
        "print([name for name in heavy if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_table_and_schema_are_plain():
    table = read_columns(np.ones((2, 3)))
    assert isinstance(table, Table)
    assert table.n_rows == 2
    assert table.schema == Schema(None, (None, None, None))
    assert table.schema.n_features == 3
    assert not table.schema.is_categorical.any()
    assert table.schema.name_of(2) == "2"
    assert Schema(("age",), (("a",),)).name_of(0) == "'age'"
    assert Schema(("age",), ((),)).is_categorical.tolist() == [True]
