"""One row as a dict: the values of a one-row table, to the bit, and its errors."""

import datetime as dt
import decimal
import math
from collections import ChainMap, OrderedDict, defaultdict
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney import CARTClassifier, CARTRegressor, GradientBoostingRegressor, RandomForestClassifier
from spinney.table.columns import match_names, open_columns
from spinney.table.records import RecordReader
from spinney.table.schema import Schema, encode

NAMES = ("a", "b", "c")
VOCABULARIES = [
    None,
    (),
    ("blue", "green", "red"),
    ("", "1", "True", "nan"),
    (False, True),
    (True,),
    (0, 1, 5),
    (-0.5, 0.0, 0.1, 2.0),
    (2**53 + 1, 2**60),
]
MISSING = [None, float("nan"), np.float64("nan"), np.float32("nan"), pd.NA, pd.NaT]
CELLS = [
    *MISSING,
    *("red", "blue", "violet", "", "1", "True", np.str_("red")),
    *(True, False, np.True_, np.False_),
    *(0, 1, 5, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**60, 10**30, np.int8(1), np.uint8(5), np.int64(2**53 + 1)),
    *(0.0, -0.0, 0.1, 2.0, 1.5, 1e308, math.inf, -math.inf, 5e-324, 2.0**53, 2.0**60),
    *(np.float64(0.1), np.float32(0.1), np.float16(0.1), np.longdouble("0.1"), decimal.Decimal("0.1")),
]
BAD_CELLS = [b"red", 1j, dt.date(2026, 1, 1), np.datetime64("2026-01-01"), object(), 10**400]
DATES = [
    *(np.datetime64("2026-01-01"), np.datetime64(5, "ns"), np.datetime64("NaT", "ns")),
    *(np.timedelta64(5, "D"), np.timedelta64(5, "ns"), np.timedelta64("NaT"), np.timedelta64("NaT", "ns")),
]


def frame_of(record):
    """A table of one row whose columns hold the very objects of a dict."""
    return pd.DataFrame({name: pd.Series([cell], dtype=object) for name, cell in record.items()})


def read_table(record, schema):
    """The values of a one-row frame, or the error."""
    try:
        return encode(match_names(open_columns(frame_of(record)), schema.names, "Model"), schema)[0]
    except (TypeError, ValueError) as error:
        return error


@st.composite
def rows(draw):
    """A schema, and a dict for it whose cells fit their columns for the most part."""
    levels = draw(st.lists(st.sampled_from(VOCABULARIES), min_size=1, max_size=3))
    names = NAMES[: len(levels)]
    cells = [
        draw(
            st.sampled_from([*CELLS, *CELLS, *(own or ()), *(own or ()), *BAD_CELLS[:2]]) | st.floats() | st.integers()
        )
        for own in levels
    ]
    order = draw(st.permutations(range(len(names))))
    return Schema(names, tuple(levels)), {names[j]: cells[j] for j in order}


@given(rows())
@pytest.mark.filterwarnings("ignore:Column .* holds .* which float64 rounds to")
def test_a_dict_is_the_row_of_a_frame_to_the_bit(row):
    schema, record = row
    expected = read_table(record, schema)
    values = RecordReader(schema).read(record)
    by_table = open_columns(record)
    if isinstance(expected, Exception):
        assert values is None  # the way of tables gives the error
        with pytest.raises(type(expected)) as told:
            encode(match_names(by_table, schema.names, "Model"), schema)
        assert str(told.value) == str(expected)
        return
    for found in (values, encode(match_names(by_table, schema.names, "Model"), schema)[0]):
        if found is not None:
            assert found.dtype == np.float64
            np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
            is_known = ~np.isnan(expected)
            assert found[is_known].tobytes() == expected[is_known].tobytes()


@pytest.mark.parametrize("levels", VOCABULARIES, ids=str)
@pytest.mark.parametrize("cell", [*CELLS, *BAD_CELLS], ids=lambda cell: f"{type(cell).__name__} {str(cell)[:12]}")
@pytest.mark.filterwarnings("ignore:Column .* holds .* which float64 rounds to")
def test_every_cell_in_every_column(cell, levels):
    schema = Schema(("a",), (levels,))
    expected = read_table({"a": cell}, schema)
    values = RecordReader(schema).read({"a": cell})
    if isinstance(expected, Exception):
        assert values is None
    elif values is not None:
        assert np.array_equal(values, expected, equal_nan=True)
        assert np.signbit(values) == np.signbit(expected) or np.isnan(expected)


@pytest.mark.parametrize("cell", DATES, ids=repr)
def test_dates_and_durations_in_a_row_are_refused_fault_18(cell):
    for levels in VOCABULARIES:
        assert RecordReader(Schema(("a",), (levels,))).read({"a": cell}) is None
    model = CARTRegressor().fit(pd.DataFrame({"a": [1.0, 2.0, 3.0]}), [1.0, 2.0, 3.0])
    predictor = model.predictor()
    for predict in (predictor, predictor.predict, model.predict):
        for row in ({"a": cell}, [{"a": 1.0}, {"a": cell}]):
            with pytest.raises(ValueError, match="'a' holds dates or times"):
                predict(row)


PLAIN = [
    None,
    math.nan,
    pd.NA,
    np.float64("nan"),
    1,
    1.5,
    True,
    np.int64(3),
    np.float32(0.5),
    np.float64(2.0),
    np.True_,
]


@pytest.mark.parametrize("cell", PLAIN, ids=repr)
def test_plain_cells_need_no_table(cell):
    for levels in (None, (0, 1, 5)):
        assert RecordReader(Schema(("a",), (levels,))).read({"a": cell}) is not None
    for text in ("red", "violet", np.str_("red"), None, math.nan, pd.NA):
        assert RecordReader(Schema(("a",), (("red",),))).read({"a": text}) is not None


# --- models -------------------------------------------------------------------------------------------------------


def make_frame(n_rows=80):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n_rows),
            "n": rng.integers(0, 9, n_rows),
            "colour": pd.Categorical(rng.choice(["red", "green", "blue"], n_rows)),
            "open": rng.random(n_rows) < 0.5,
            "note": rng.choice(["yes", "no"], n_rows),
        }
    )
    frame.loc[::7, "x"] = np.nan
    return frame, np.nan_to_num(frame.x) + (frame.colour == "red") + frame.n / 4 + frame.open - (frame.note == "yes")


@pytest.fixture(scope="module")
def models():
    X, y = make_frame()
    classes = np.array(["low", "middle", "high"])[np.digitize(y, [0.5, 2.0])]
    return [
        CARTRegressor().fit(X, y),
        CARTClassifier().fit(X, classes),
        RandomForestClassifier(n_estimators=7, random_state=0).fit(X, classes),
        GradientBoostingRegressor(n_estimators=20, min_samples_leaf=2, random_state=0).fit(X, y),
        CARTRegressor(leaf_model="linear", min_samples_leaf=10).fit(X, y),
    ]


ODD_CELLS = {
    "x": [None, math.nan, -1, True, np.float32(0.3), decimal.Decimal("0.25"), pd.NA],
    "n": [None, 3.5, 100, np.uint8(4), False],
    "colour": ["red", "violet", None, math.nan, pd.NA, np.str_("blue")],
    "open": [True, 1, 0.0, None, np.False_],
    "note": ["no", "perhaps", None],
}


def test_a_dict_is_answered_as_a_frame_of_one_row(models):
    X, _ = make_frame()
    records = X.head(12).to_dict("records")
    for name, cells in ODD_CELLS.items():
        records += [{**records[1], name: cell} for cell in cells]
    for model in models:
        predictor = model.predictor()
        for record in records:
            frame = frame_of(record)
            expected = (predictor.predict if predictor.classes is None else predictor.predict_proba)(frame)[0]
            for row in (record, dict(reversed(record.items())), MappingProxyType(record), ChainMap(record)):
                np.testing.assert_array_equal(predictor(row), expected)
            assert model.predict(record).tolist() == model.predict(frame).tolist()
            assert predictor.predict(record).tolist() == model.predict(frame).tolist()


def test_a_list_of_dicts_is_a_table(models):
    X, _ = make_frame()
    records = [dict(reversed(record.items())) for record in X.to_dict("records")]
    for model in models:
        predictor = model.predictor()
        np.testing.assert_array_equal(model.predict(records), model.predict(X))
        np.testing.assert_array_equal(predictor.predict(tuple(records)), model.predict(X))
        np.testing.assert_array_equal(predictor(records), predictor(predictor.encode(X)))


def test_a_dict_that_makes_up_values_is_not_asked_for_more(models):
    record = make_frame()[0].head(1).to_dict("records")[0]
    lazy = defaultdict(float, {name: cell for name, cell in record.items() if name != "n"})
    lazy["m"] = 1.0
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- m\n.*yet now missing:\n- n"):
        models[0].predictor()(lazy)
    assert "n" not in lazy
    assert models[0].predictor()(OrderedDict(record)) == models[0].predictor()(record)


def test_mistakes_in_a_dict_are_named(models):
    record = make_frame()[0].head(1).to_dict("records")[0]
    for ask in (models[0].predictor(), models[0].predict, models[0].predictor().predict, models[0].explain):
        with pytest.raises(ValueError, match="is 'color' meant to be 'colour'"):
            ask({("color" if name == "colour" else name): cell for name, cell in record.items()})
        with pytest.raises(ValueError, match="unseen at fit time:\n- extra\nLeave those out"):
            ask({**record, "extra": 1})
        with pytest.raises(ValueError, match="yet now missing:\n- x\nGive every column of fit, None or NaN where"):
            ask({name: cell for name, cell in record.items() if name != "x"})
        with pytest.raises(ValueError, match="Column 'x' holds text, such as 'tall', but was numeric"):
            ask({**record, "x": "tall"})
        with pytest.raises(ValueError, match=r"Column 'colour' had categories such as 'blue' .* now 3"):
            ask({**record, "colour": 3})
        with pytest.raises(ValueError, match=r"'x' holds a list; a dict is one row, .* pandas\.DataFrame"):
            ask({name: [cell] for name, cell in record.items()})
        with pytest.raises(ValueError, match=r"0 feature\(s\)"):
            ask({})
        with pytest.raises(TypeError, match="The names of a row must be text, but 3 is int"):
            ask({3: 1.0})


def test_rows_with_different_names_are_refused(models):
    record = make_frame()[0].head(1).to_dict("records")[0]
    with pytest.raises(ValueError, match="Rows 0 and 2 of X have different names: only one of them has 'n', 'x'"):
        models[0].predict([record, record, {name: record[name] for name in ("colour", "open", "note")}])
    with pytest.raises(TypeError, match="Row 0 of X is a dict, row 1 is list"):
        models[0].predict([record, [1, 2, 3]])


def test_a_model_without_names_takes_no_dict():
    model = CARTRegressor().fit([[1.0, 2.0], [2.0, 3.0]], [1.0, 2.0])
    for record in ({}, {"a": 1.0}, {"a": 1.0, "b": 2.0}):
        for ask in (model.predictor(), model.predict, model.explain):
            with pytest.raises(ValueError, match=r"fitted without names: give the values of a row|0 feature\(s\)"):
                ask(record)


@pytest.mark.parametrize("X", [{"a": 1.0}, [{"a": 1.0}, {"a": 2.0}], [{"a": "x"}]])
def test_fit_takes_tables_alone(X):
    with pytest.raises(TypeError, match=r"fit takes tables, .*: give a frame, say pandas\.DataFrame\(X\)"):
        CARTRegressor().fit(X, [1.0, 2.0][: len(X)])
    with pytest.raises(ValueError, match="a dict is one row"):
        CARTRegressor().fit({"a": [1.0, 2.0]}, [1.0, 2.0])
