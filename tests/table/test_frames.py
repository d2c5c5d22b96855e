"""Frames of pandas, polars and pyarrow: one table whatever the library."""

import datetime as dt
import math
from decimal import Decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.table.ingest import read_columns
from spinney.table.schema import Schema, encode

LIBRARIES = {
    "pandas": pd.DataFrame,
    "pandas nullable": lambda data: pd.DataFrame(data).convert_dtypes(),
    "pandas arrow": lambda data: pa.table(data).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "pyarrow chunked": lambda data: pa.concat_tables([pa.table(data).slice(0, 1), pa.table(data).slice(1)]),
    "narwhals": lambda data: nw.from_native(pl.DataFrame(data)),
    "record batch": lambda data: pa.table(data).combine_chunks().to_batches()[0],
}


def is_missing(cell):
    return cell is None or (isinstance(cell, float) and math.isnan(cell))


def loop_column(column):
    """Levels and values by a plain loop over Python cells: text is categorical, None and NaN are missing."""
    known = [cell for cell in column if not is_missing(cell)]
    if not any(isinstance(cell, str) for cell in known):
        return None, [math.nan if cell is None else float(cell) for cell in column]
    levels = tuple(sorted(set(known)))
    return levels, [math.nan if is_missing(cell) else float(levels.index(cell)) for cell in column]


def values_of(table):
    return table.block(0, table.schema.n_features)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=4) | st.sampled_from(["nan", "", "None", "é"])
known_cells = {
    "number": st.floats(allow_nan=False),
    "whole": st.integers(-(2**53), 2**53),
    "text": texts,
    "flag": st.booleans(),
}


@st.composite
def columns_of_cells(draw):
    n_rows = draw(st.integers(1, 12))
    data = {}
    for name, known in known_cells.items():
        missing = st.just(math.nan) | st.none() if name == "number" else st.none()
        # One known cell, so that each library gives the column the kind that its name says.
        data[name] = [draw(known), *draw(st.lists(known | missing, min_size=n_rows - 1, max_size=n_rows - 1))]
    return data


@given(columns_of_cells(), st.sampled_from(sorted(LIBRARIES)))
def test_every_library_gives_the_same_table_faults_25_26_86(data, library):
    expected = [loop_column(column) for column in data.values()]
    X = LIBRARIES[library](data)
    table = read_columns(X)
    assert table.schema == Schema(tuple(data), tuple(levels for levels, _ in expected))
    np.testing.assert_array_equal(values_of(table), [values for _, values in expected])
    encoded = encode(X, table.schema)
    assert encoded.flags.c_contiguous
    assert encoded.dtype == np.float64
    np.testing.assert_array_equal(encoded.T, [values for _, values in expected])
    # The same cells as an array of objects, against the schema of the frame.
    cell_array = np.empty((len(data["text"]), len(data)), dtype=object)
    for j, column in enumerate(data.values()):
        for i, cell in enumerate(column):
            cell_array[i, j] = cell
    np.testing.assert_array_equal(encode(cell_array, table.schema), encoded)


NULLABLE = {
    "Int64": (pd.array([1, None, 3], dtype="Int64"), [1, None, 3]),
    "UInt8": (pd.array([1, None, 3], dtype="UInt8"), [1, None, 3]),
    "Float64": (pd.array([1.5, None, 3], dtype="Float64"), [1.5, None, 3]),
    "boolean": (pd.array([True, None, False], dtype="boolean"), [1, None, 0]),
    "string": (pd.array(["b", None, "a"], dtype="string"), ["b", None, "a"]),
    "string python": (pd.array(["b", None, "a"], dtype=pd.StringDtype("python")), ["b", None, "a"]),
    "str": (pd.Series(["b", None, "a"], dtype="str"), ["b", None, "a"]),
    "object text": (pd.Series(["b", np.nan, "a"], dtype=object), ["b", None, "a"]),
    "object numbers": (pd.Series([1, None, 2.5], dtype=object), [1, None, 2.5]),
    "object NA": (pd.Series([1, pd.NA, 2.5], dtype=object), [1, None, 2.5]),
    "object flags": (pd.Series([True, None, False], dtype=object), [1, None, 0]),
    "object decimals": (pd.Series([Decimal("1.5"), None, Decimal(2)], dtype=object), [1.5, None, 2]),
    "sparse": (pd.arrays.SparseArray([0.0, np.nan, 1.0]), [0, None, 1]),
    "arrow int": (pd.array([1, None, 3], dtype="int64[pyarrow]"), [1, None, 3]),
    "arrow bool": (pd.array([True, None, False], dtype="bool[pyarrow]"), [1, None, 0]),
    "arrow decimal": (
        pd.array([Decimal("1.5"), None, Decimal(2)], dtype=pd.ArrowDtype(pa.decimal128(20, 2))),
        [1.5, None, 2],
    ),
    "arrow dictionary": (
        pd.array(["b", None, "a"], dtype=pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))),
        ["b", None, "a"],
    ),
    "float16": (np.array([1, np.nan, 3], dtype=np.float16), [1, None, 3]),
    "longdouble": (np.array([1, np.nan, 3], dtype=np.longdouble), [1, None, 3]),
}


@pytest.mark.parametrize("dtype", NULLABLE)
def test_pandas_dtypes_fault_25(dtype):
    content, cells_ = NULLABLE[dtype]
    X = pd.DataFrame({"a": content})
    levels, values = loop_column(cells_)
    table = read_columns(X)
    assert table.schema.levels == (levels,)
    np.testing.assert_array_equal(values_of(table), [values])
    np.testing.assert_array_equal(encode(X, table.schema)[:, 0], values)


OTHERS = {
    "polars null and nan": (pl.DataFrame({"a": [1.5, None, math.nan]}), [1.5, None, None]),
    "polars decimal": (pl.DataFrame({"a": pl.Series([1, None, 3]).cast(pl.Decimal(10, 2))}), [1, None, 3]),
    "polars Int128": (pl.DataFrame({"a": pl.Series([1, None, 3]).cast(pl.Int128)}), [1, None, 3]),
    "polars null": (pl.DataFrame({"a": [None, None, None]}), [None] * 3),
    "polars object": (pl.DataFrame({"a": pl.Series([1, None, 2.5], dtype=pl.Object)}), [1, None, 2.5]),
    "arrow null": (pa.table({"a": pa.nulls(3)}), [None] * 3),
    "arrow float16": (pa.table({"a": pa.array(np.array([1, 2, 3], dtype=np.float16))}), [1, 2, 3]),
    "arrow decimal256": (
        pa.table({"a": pa.array([Decimal("1.5"), None, Decimal(2)], pa.decimal256(50, 2))}),
        [1.5, None, 2],
    ),
    "arrow large string": (pa.table({"a": pa.array(["b", None, "a"], pa.large_string())}), ["b", None, "a"]),
    "arrow string view": (pa.table({"a": pa.array(["b", None, "a"], pa.string_view())}), ["b", None, "a"]),
    "arrow run ends": (
        pa.table({"a": pa.RunEndEncodedArray.from_arrays([1, 3], [5.0, 6.0])}),
        [5, 6, 6],
    ),
    "arrow reader": (pa.table({"a": ["b", None, "a"]}), ["b", None, "a"]),
}


@pytest.mark.parametrize("dtype", OTHERS)
def test_polars_and_arrow_dtypes_fault_26(dtype):
    X, cells_ = OTHERS[dtype]
    levels, values = loop_column(cells_)
    table = read_columns(X.to_reader() if "reader" in dtype else X)
    assert table.schema.levels == (levels,)
    np.testing.assert_array_equal(values_of(table), [values])
    np.testing.assert_array_equal(encode(X, table.schema)[:, 0], values)


day = dt.date(2020, 1, 1)
REFUSED = {
    "pandas date": (pd.DataFrame({"when": pd.date_range("2020", periods=2)}), "'when' holds dates.*year"),
    "pandas duration": (pd.DataFrame({"when": pd.to_timedelta([1, 2])}), "'when' holds dates.*year"),
    "pandas object date": (pd.DataFrame({"when": [day, day]}), "'when' holds dates.*year"),
    "polars date": (pl.DataFrame({"when": [day, day]}), "'when' holds dates.*year"),
    "polars time": (pl.DataFrame({"when": [dt.time(1), dt.time(2)]}), "'when' holds dates.*year"),
    "arrow date": (pa.table({"when": [day, day]}), "'when' holds dates.*year"),
    "pandas period": (pd.DataFrame({"a": pd.period_range("2020", periods=2, freq="D")}), "'a'.*Convert"),
    "pandas interval": (
        pd.DataFrame({"a": pd.cut([1.0, 2.0], 2)}),
        r"'a' has categories of type Interval.*astype",
    ),
    "pandas date category": (
        pd.DataFrame({"a": pd.Categorical(pd.date_range("2020", periods=2))}),
        "'a' has categories of type Timestamp.*column of dates",
    ),
    "pandas complex": (pd.DataFrame({"a": [1j, 2]}), "Complex data not supported: column 'a'"),
    "pandas bytes": (pd.DataFrame({"a": [b"x", b"y"]}), "'a' holds bytes.*decode"),
    "pandas list": (pd.DataFrame({"a": [[1], [2]]}), "'a' holds"),
    "pandas mixed": (pd.DataFrame({"a": pd.Series(["1", 1], dtype=object)}), "'a' mixes text and numbers"),
    "pandas mixed late": (
        pd.DataFrame({"a": pd.Series(["x"] * 200 + [1], dtype=object)}),
        "'a' mixes text and numbers",
    ),
    "polars list": (pl.DataFrame({"a": [[1], [2]]}), "'a' is nested"),
    "polars struct": (pl.DataFrame({"a": [{"b": 1}]}), "'a' is nested"),
    "arrow binary": (pa.table({"a": [b"x", b"y"]}), "'a' holds bytes.*decode"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_columns_are_named_with_the_fix_faults_18_19_91(case):
    X, message = REFUSED[case]
    with pytest.raises(ValueError, match=f"(?s)olumn {message}" if message[0] == "'" else message):
        read_columns(X, date_features=None)


def test_lone_surrogates_are_text_fault_90():
    X = pd.DataFrame({"a": pd.Series(["\ud800", "b", None], dtype=object)})
    table = read_columns(X)
    assert table.schema.levels == (("b", "\ud800"),)
    np.testing.assert_array_equal(values_of(table), [[1, 0, np.nan]])


@pytest.mark.parametrize("series", [pd.Series([1, 2]), pl.Series([1, 2]), pa.chunked_array([[1, 2]]), pa.array([1, 2])])
def test_series_are_one_dimensional_fault_6(series):
    with pytest.raises(ValueError, match=r"Expected 2D array, got 1D array instead(?s:.*)Reshape your data"):
        read_columns(series)


@pytest.mark.parametrize("lazy", [pl.LazyFrame({"a": [1]}), nw.from_native(pl.LazyFrame({"a": [1]}))])
def test_lazy_frames_are_told_to_collect_fault_8(lazy):
    with pytest.raises(TypeError, match=r"lazy.*\.collect\(\)"):
        read_columns(lazy)


def test_duplicate_names_fault_14():
    frame = pd.DataFrame([[1, 2]], columns=["a", "a"])
    arrow = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    for X in (frame, arrow, arrow.to_batches()[0]):
        with pytest.raises(ValueError, match=r"Column names must be unique.*'a'"):
            read_columns(X)


def test_names_that_are_not_text_fault_15():
    table = read_columns(pd.DataFrame([[1, "b"], [2, "a"]]))
    assert table.schema == Schema(None, (None, ("a", "b")))
    np.testing.assert_array_equal(values_of(table), [[1, 2], [1, 0]])
    with pytest.raises(TypeError, match=r"only supported if all input features have string names.*\['int', 'str'\]"):
        read_columns(pd.DataFrame({"a": [1], 2: [3]}))


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_empty_frames_faults_1_3(make):
    with pytest.raises(ValueError, match=r"0 sample\(s\) \(shape=\(0, 1\)\) while a minimum of 1 is required"):
        read_columns(make({"a": np.empty(0)}))
    with pytest.raises(ValueError, match=r"0 feature\(s\) \(shape=\(\d+, 0\)\) while a minimum of 1 is required"):
        read_columns(make({}))


WIDE_FRAMES = {
    "pandas": lambda column: pd.DataFrame({"id": column}),
    "pandas nullable": lambda column: pd.DataFrame({"id": pd.array([*column, None], dtype="Int64")}),
    "polars": lambda column: pl.DataFrame({"id": [*column, None]}),
    "polars Int128": lambda column: pl.DataFrame({"id": pl.Series([*column, None]).cast(pl.Int128)}),
    "polars decimal": lambda column: pl.DataFrame({"id": pl.Series([*column, None]).cast(pl.Decimal(30, 2))}),
    "pyarrow": lambda column: pa.table({"id": [*column, None]}),
}


@pytest.mark.parametrize("library", WIDE_FRAMES)
def test_wide_integers_in_frames_fault_21(library):
    make = WIDE_FRAMES[library]
    with pytest.raises(ValueError, match=r"Column 'id' holds 36028797018963968\S* and 36028797018963969"):
        read_columns(make([2**55, 2**55 + 1, 7]))
    apart = make([2**55, 2**55 + 64, 7])
    assert values_of(read_columns(apart))[0, :3].tolist() == [2.0**55, 2.0**55 + 64, 7.0]
    with pytest.warns(UserWarning, match="Column 'id' holds 36028797018963969"):
        encode(make([2**55 + 1]), Schema(("id",), (None,)))
    declared = read_columns(make([2**55 + 1, 2**55, 7]), ["id"])
    assert declared.schema.levels == ((7, 2**55, 2**55 + 1),)
    assert values_of(declared)[0, :3].tolist() == [2, 1, 0]
    np.testing.assert_array_equal(encode(make([2**55 + 1, 2**55, 7]), declared.schema).T, values_of(declared))


def test_all_missing_wide_column_fault_31():
    X = pd.DataFrame({"a": pd.array([None, None], dtype="Int64")})
    assert np.isnan(values_of(read_columns(X))).all()
