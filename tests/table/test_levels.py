"""Categories: vocabularies, their order, recoding by value, and what `categorical_features` may be."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney.table.columns import _read_dictionary
from spinney.table.ingest import read_columns
from spinney.table.schema import Schema, encode


def values_of(table):
    return table.block(0, table.schema.n_features)


FORMS = {
    "pandas category": lambda cells: pd.DataFrame({"c": pd.Categorical(cells)}),
    "pandas category, other order": lambda cells: pd.DataFrame(
        {"c": pd.Categorical(cells, categories=[*sorted(set(cells) - {None}, reverse=True), "unused"])}
    ),
    "pandas str": lambda cells: pd.DataFrame({"c": pd.Series(cells, dtype="str")}),
    "pandas object": lambda cells: pd.DataFrame({"c": pd.Series(cells, dtype=object)}),
    "polars string": lambda cells: pl.DataFrame({"c": pl.Series(cells, dtype=pl.String)}),
    "polars category": lambda cells: pl.DataFrame({"c": pl.Series(cells, dtype=pl.Categorical)}),
    "polars enum": lambda cells: pl.DataFrame(
        {"c": pl.Series(cells, dtype=pl.Enum([*sorted(set(cells) - {None}), "~unused"]))}
    ),
    "arrow dictionary": lambda cells: pa.table({"c": pa.array(cells, pa.string()).dictionary_encode()}),
    "arrow dictionary per chunk": lambda cells: pa.table(
        {"c": pa.chunked_array([pa.array([cell], pa.string()).dictionary_encode() for cell in cells])}
    ),
    "object array": lambda cells: np.array(cells, dtype=object)[:, None],
}
some_cells = st.lists(st.none() | st.sampled_from(["red", "green", "blue", "", "nan", "rouge é"]), min_size=1).filter(
    any
)


@given(some_cells, st.sampled_from(sorted(FORMS)), some_cells, st.sampled_from(sorted(FORMS)))
def test_recoding_is_by_value_faults_85_86_87_94(fitted, fit_form, asked, predict_form):
    declared = [0] if fit_form == "object array" else "from_dtype"
    table = read_columns(FORMS[fit_form](fitted), declared)
    levels = sorted({cell for cell in fitted if cell is not None})
    assert table.schema.levels == (tuple(levels),)
    code = {level: float(i) for i, level in enumerate(levels)}
    np.testing.assert_array_equal(values_of(table)[0], [code.get(cell, np.nan) for cell in fitted])
    encoded = encode(FORMS[predict_form](asked), table.schema)
    np.testing.assert_array_equal(encoded[:, 0], [code.get(cell, np.nan) for cell in asked])


def test_declared_order_is_kept_where_it_has_a_meaning():
    order = ["low", "middle", "unused", "high"]
    cells = ["high", "low", None, "middle"]
    ordered = {
        "pandas": pd.DataFrame({"c": pd.Categorical(cells, categories=order, ordered=True)}),
        "polars": pl.DataFrame({"c": pl.Series(cells, dtype=pl.Enum(order))}),
        "arrow": pa.table(
            {"c": pa.DictionaryArray.from_arrays(pa.array([3, 0, None, 1]), pa.array(order), ordered=True)}
        ),
    }
    for X in ordered.values():
        table = read_columns(X)
        assert table.schema.levels == (("low", "middle", "high"),)
        np.testing.assert_array_equal(values_of(table), [[2, 0, np.nan, 1]])


def test_order_of_appearance_does_not_reach_the_model():
    pl.Series(["zebra", "yak"], dtype=pl.Categorical)  # polars numbers categories by first use in the process
    for form, make in FORMS.items():
        declared = [0] if form == "object array" else "from_dtype"
        assert read_columns(make(["yak", "zebra", "ant"]), declared).schema.levels == (("ant", "yak", "zebra"),)


def test_unused_categories_are_no_levels_faults_85_88():
    X = pd.DataFrame({"c": pd.Categorical(["a", "a"], categories=["b", "a"])})
    table = read_columns(X)
    assert table.schema.levels == (("a",),)
    later = pd.DataFrame({"c": pd.Categorical(["b", "a"], categories=["b", "a"])})
    np.testing.assert_array_equal(encode(later, table.schema), [[np.nan], [0]])


@pytest.mark.parametrize("n_categories", [3, 300, 5000])
@pytest.mark.parametrize("kind", ["object", "str", "string[pyarrow]"])
def test_unused_categories_do_not_matter_however_many(n_categories, kind):
    names = pd.Index([f"c{i}" for i in range(n_categories)], dtype=kind)
    column = pd.Series(pd.Categorical.from_codes([2, -1, 0, 2], names))
    table = read_columns(pd.DataFrame({"a": column}))
    assert table.schema.levels == (("c0", "c2"),)
    np.testing.assert_array_equal(values_of(table), [[1.0, np.nan, 0.0, 1.0]])


def test_all_missing_category_has_no_level_fault_86():
    X = pd.DataFrame({"c": pd.Categorical([None, None], categories=["a"])})
    table = read_columns(X)
    assert table.schema.levels == ((),)
    assert np.isnan(values_of(table)).all()
    for later in (X, pd.DataFrame({"c": ["a", "b"]}), np.ones((2, 1))):
        assert np.isnan(encode(later, table.schema)).all()


def test_odd_texts_are_kept_fault_90():
    cells = ["nan", "", "NA", "None", "日本", "x" * 10_000, " a", "a", "A"]
    for form, make in FORMS.items():
        declared = [0] if form == "object array" else "from_dtype"
        X = make(cells)
        table = read_columns(X, declared)
        assert table.schema.levels == (tuple(sorted(cells)),)
        np.testing.assert_array_equal(encode(X, table.schema)[:, 0], [sorted(cells).index(c) for c in cells])


def test_levels_keep_their_type():
    X = pd.DataFrame({"i": pd.Categorical([3, None, 1]), "b": pd.Categorical([True, None, False])})
    X["f"] = pd.Categorical([2.5, None, -1.0])
    table = read_columns(X)
    assert table.schema.levels == ((1, 3), (False, True), (-1.0, 2.5))
    assert [type(levels[0]) for levels in table.schema.levels] == [int, bool, float]
    for column in range(3):
        np.testing.assert_array_equal(values_of(table)[column], [1, np.nan, 0])
    plain = pd.DataFrame({"i": [3.0, np.nan, 1.0], "b": [1, 7, 0], "f": [2.5, 2.4, -1.0]})
    np.testing.assert_array_equal(encode(plain, table.schema), [[1] * 3, [np.nan] * 3, [0] * 3])
    assert read_columns(pa.table({"i": pa.array([3, 1, 3]).dictionary_encode()})).schema.levels == ((1, 3),)


def test_dictionaries_with_nulls_and_duplicates():
    nulls = pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["a", None]))
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(["a", "b", "a"]))
    table = read_columns(pa.table({"n": nulls, "t": twice}))
    assert table.schema.levels == (("a",), ("a", "b"))
    np.testing.assert_array_equal(values_of(table), [[0, np.nan, np.nan], [0, 1, 0]])


def test_kinds_of_levels_are_not_mixed_fault_91():
    for values in ([1, "1"], [True, 1.5], [True, "True"]):
        X = pd.DataFrame({"c": pd.Categorical(pd.Index(values, dtype=object))})
        with pytest.raises(ValueError, match="Column 'c' mixes kinds of categories"):
            read_columns(X)


def test_text_and_numbers_do_not_match_fault_94():
    text = Schema(("c",), (("1", "2"),))
    number = Schema(("c",), ((1, 2),))
    for later in (
        pd.DataFrame({"c": [1, 2]}),
        np.array([[1.0], [2.0]]),
        pd.DataFrame({"c": pd.Categorical([1, 2])}),
    ):
        with pytest.raises(ValueError, match=r"Column 'c' had categories such as '1'.*Convert it to text"):
            encode(later, text)
    with pytest.raises(ValueError, match=r"Column 'c' had categories such as 1 .*Convert it to numbers"):
        encode(pd.DataFrame({"c": ["1", "2"]}), number)
    with pytest.raises(ValueError, match=r"Column 'c' holds text.*was numeric when the model was fitted"):
        encode(pd.DataFrame({"c": ["1", "2"]}), Schema(("c",), (None,)))
    # Missing throughout says nothing about kinds.
    assert np.isnan(encode(np.full((2, 1), np.nan), text)).all()
    numbers = encode(pd.DataFrame({"c": pd.Categorical([7, None, 5])}), Schema(("c",), (None,)))
    np.testing.assert_array_equal(numbers, [[7], [np.nan], [5]])


def test_number_of_levels_is_limited_fault_89():
    most = [f"{i:05d}" for i in range(65_535)]
    table = read_columns(pd.DataFrame({"c": most}))
    np.testing.assert_array_equal(values_of(table)[0], range(65_535))
    np.testing.assert_array_equal(encode(pd.DataFrame({"c": most[::-1]}), table.schema)[:, 0], range(65_534, -1, -1))
    with pytest.raises(ValueError, match="Column 'c' has 65,536 categories, and at most 65,535"):
        read_columns(pd.DataFrame({"c": [*most, "x"]}))
    with pytest.raises(ValueError, match="Column 0 has 100,000 categories"):
        read_columns(np.arange(100_000)[:, None], [0])


@given(
    st.lists(st.none() | st.integers(0, 70_000), min_size=1),
    st.lists(st.none() | st.integers(-5, 70_000) | st.floats(), min_size=1),
    st.sampled_from(["float", "object", "Int64"]),
)
def test_declared_numbers_are_levels_by_value_faults_85_93(fitted, asked, form):
    if form == "Int64":
        X = pd.DataFrame({"c": pd.array(fitted, dtype="Int64")})
    else:
        X = np.array(fitted, dtype=form)[:, None]
    table = read_columns(X, [0])
    levels = sorted({cell for cell in fitted if cell is not None})
    assert table.schema.levels == (tuple(levels),)
    assert all(type(level) is int for level in table.schema.levels[0])
    code = {level: float(i) for i, level in enumerate(levels)}
    np.testing.assert_array_equal(values_of(table)[0], [code.get(cell, np.nan) for cell in fitted])
    for later in (np.array(asked, dtype=float)[:, None], np.array(asked, dtype=object)[:, None]):
        np.testing.assert_array_equal(encode(later, table.schema)[:, 0], [code.get(cell, np.nan) for cell in asked])


@pytest.mark.parametrize("bad", [-1, 1.5, np.inf])
def test_declared_numbers_must_be_whole_and_not_negative_fault_93(bad):
    with pytest.raises(ValueError, match=f"Column 1 is declared categorical but holds {bad}"):
        read_columns(np.array([[1, 2], [3, bad]]), [1])
    with pytest.raises(ValueError, match="Column 'c' is declared categorical"):
        read_columns(pd.DataFrame({"c": [1, bad]}), ["c"])


def test_declared_flags():
    assert read_columns(np.array([[True], [False]]), [0]).schema.levels == ((False, True),)
    assert read_columns(pl.DataFrame({"c": [True, None, False]}), ["c"]).schema.levels == ((False, True),)


def test_declared_floats_with_nan_and_null_fault_26():
    for X in (pl.DataFrame({"c": [2.0, np.nan, None, 1.0]}), pa.table({"c": [2.0, np.nan, None, 1.0]})):
        table = read_columns(X, ["c"])
        assert table.schema.levels == ((1, 2),)
        np.testing.assert_array_equal(values_of(table), [[1, np.nan, np.nan, 0]])
        np.testing.assert_array_equal(encode(X, table.schema)[:, 0], [1, np.nan, np.nan, 0])


def test_chunks_that_stay_apart_are_unified_fault_87():
    # Arrow keeps the chunks of a column apart where one array would be too large.
    chunks = pa.chunked_array([pa.array(cells).dictionary_encode() for cells in (["b", "a"], ["a", None], ["c"])])
    column = _read_dictionary(chunks)
    values = column.values  # noqa: PD011, not a frame
    assert [None if code < 0 else values[code] for code in column.codes] == ["b", "a", "a", None, "c"]


def test_declared_column_beside_numbers():
    X = np.array([[10.0, 1.5], [20.0, 2.5], [np.nan, np.nan]])
    table = read_columns(X, [True, False])
    np.testing.assert_array_equal(values_of(table), [[0, 1, np.nan], [1.5, 2.5, np.nan]])
    np.testing.assert_array_equal(table.block(1, 2), [[1.5, 2.5, np.nan]])
    np.testing.assert_array_equal(encode(X, table.schema), values_of(table).T)


FRAME = pd.DataFrame({"age": [30, 40], "city": ["b", "a"], "grade": pd.Categorical([5, 7])})


@pytest.mark.parametrize(
    "declared", [["city"], [1], [False, True, False], np.array([1]), np.array(["city"]), pd.Index(["city"])]
)
def test_a_declaration_replaces_the_dtype_rule(declared):
    table = read_columns(FRAME, declared)
    assert table.schema.levels == (None, ("a", "b"), None)
    np.testing.assert_array_equal(values_of(table), [[30, 40], [1, 0], [5, 7]])


def test_no_declared_category():
    assert read_columns(FRAME[["age", "grade"]], None).schema.levels == (None, None)
    assert read_columns(FRAME[["age", "grade"]], []).schema.levels == (None, None)
    for declared in (None, ["age"]):
        with pytest.raises(
            ValueError, match="Column 'city' holds text, such as 'b', but is not in categorical_features"
        ):
            read_columns(FRAME, declared)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ([3], "index 3, and the columns of X are 0 to 2"),
        ([-1], "index -1"),
        ([1, 1], "has 1 twice"),
        (["city", "city"], "has 'city' twice"),
        (
            ["citi"],
            "has an item value 'citi' which is not a valid feature name of the training data. Did you mean 'city'",
        ),
        ([True, False], "it has 2 entries for 3 columns"),
        ([0, "city"], "all indices or all names"),
        ([1.0], "all bools, all indices or all names"),
        ("city", "'from_dtype', None, or a list"),
        (1, "one-dimensional"),
        ([[1]], "one-dimensional"),
    ],
)
def test_bad_declarations_fault_92(declared, message):
    with pytest.raises(ValueError, match=f"categorical_features.*{message}"):
        read_columns(FRAME, declared)


def test_names_need_a_frame_fault_92():
    with pytest.raises(ValueError, match="has 'city', but X has no column names"):
        read_columns(np.ones((2, 2)), ["city"])


def test_schema_pickles():
    schema = read_columns(FRAME).schema
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert schema == Schema(("age", "city", "grade"), (None, ("a", "b"), (5, 7)))
