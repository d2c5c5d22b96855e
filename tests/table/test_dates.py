"""Dates as inputs: the parts are those that Python's calendar gives, however the dates are written."""

import datetime as dt
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import spinney
from spinney import (
    BaggingRegressor,
    C45Classifier,
    CARTClassifier,
    CARTRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    ID3Regressor,
    OOBSelector,
    RandomForestRegressor,
    StackingRegressor,
)
from spinney.model.container import BrokenFileError, read, write
from spinney.model.state import KINDS
from spinney.table.columns import Dates
from spinney.table.dates import learn_dates, pick_extremes
from spinney.table.ingest import read_columns
from spinney.table.prediction_batches import convert
from spinney.table.schema import encode

WRITTEN = ("2023-12-31T22:30", "2024-02-29T07:00", None, "2023-11-05", "2024-03-04T23:59:59", "1969-07-20T20:17")
TIMES = [None if one is None else dt.datetime.fromisoformat(one) for one in WRITTEN]  # of the clock on the wall


def parts_of(moment, first):
    """The parts of one time by Python's own calendar."""
    if moment is None:
        return [math.nan] * 5
    days = (moment - dt.datetime.combine(first, dt.time())) / dt.timedelta(days=1)
    return [moment.year, moment.month, moment.weekday(), days, moment.hour]


def values_of(table):
    return table.block(0, table.schema.n_features).T


def frames(times):
    """The same times as several libraries hold them."""
    return {
        "pandas": pd.DataFrame({"at": pd.Series(times, dtype="datetime64[ns]")}),
        "pandas seconds": pd.DataFrame({"at": pd.Series(times, dtype="datetime64[s]")}),
        "pandas objects": pd.DataFrame({"at": pd.Series(times, dtype=object)}),
        "pandas arrow": pd.DataFrame({"at": pd.Series(times, dtype=pd.ArrowDtype(pa.timestamp("us")))}),
        "polars": pl.DataFrame({"at": times}, schema={"at": pl.Datetime("us")}),
        "arrow": pa.table({"at": pa.array(times, pa.timestamp("ms"))}),
    }


@pytest.mark.parametrize("library", frames(TIMES))
def test_the_parts_are_those_of_the_calendar(library):
    X = frames(TIMES)[library]
    table = read_columns(X)
    assert table.schema.names == ("at.year", "at.month", "at.weekday", "at.days", "at.hour")
    assert table.schema.column_names == ("at",)
    expected = [parts_of(one, dt.date(1969, 7, 20)) for one in TIMES]
    np.testing.assert_allclose(values_of(table), expected, rtol=1e-15)
    np.testing.assert_array_equal(encode(X, table.schema), values_of(table))


@given(st.lists(st.none() | st.datetimes(), min_size=1, max_size=8))
def test_any_times(times):
    table = read_columns(pl.DataFrame({"at": times}, schema={"at": pl.Datetime("us")}))
    first = min((one.date() for one in times if one is not None), default=dt.date(1970, 1, 1))
    every = np.array([parts_of(one, first) for one in times])
    for name, values in zip(table.schema.names, values_of(table).T, strict=True):
        part = ["year", "month", "weekday", "days", "hour"].index(name.removeprefix("at."))
        np.testing.assert_allclose(values, every[:, part], rtol=1e-12)
    left_out = {"year", "month", "weekday", "hour"} - {name.removeprefix("at.") for name in table.schema.names}
    for part in left_out:  # they say nothing
        column = every[:, ["year", "month", "weekday", "days", "hour"].index(part)]
        assert len(set(column[~np.isnan(column)])) <= 1


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()])
def test_dates_have_no_hour_and_constant_parts_are_not_made(kind):
    days = [dt.date(2024, 5, 6), dt.date(2024, 5, 8), None, dt.date(2024, 5, 10)]
    table = read_columns(pa.table({"x": [1.0, 2.0, 3.0, 4.0], "sold": pa.array(days, kind)}))
    assert table.schema.names == ("x", "sold.weekday", "sold.days")
    np.testing.assert_array_equal(values_of(table)[:, 1:], [[0, 0], [2, 2], [np.nan, np.nan], [4, 4]])
    one = read_columns(pa.table({"sold": pa.array([dt.date(2024, 5, 6)] * 3, kind)}))
    assert one.schema.names == ("sold.days",)
    none = read_columns(pa.table({"sold": pa.array([None, None], kind)}))
    assert none.schema.names == ("sold.days",)
    assert np.isnan(values_of(none)).all()


def test_new_dates_are_counted_from_the_first_of_fit():
    schema = read_columns(pl.DataFrame({"at": [dt.date(2024, 5, 6), dt.date(2025, 5, 7)]})).schema
    new = encode(pl.DataFrame({"at": [dt.date(2024, 5, 1), dt.date(2030, 1, 1), None]}), schema)
    days = new[:, schema.names.index("at.days")]
    assert days[:2].tolist() == [-5.0, (dt.date(2030, 1, 1) - dt.date(2024, 5, 6)).days]
    assert np.isnan(new[2]).all()


def test_text_as_iso_8601_has_it_is_taken_where_fit_had_dates():
    table = read_columns(frames(TIMES)["pandas"])
    text = [None if one is None else one.isoformat() for one in TIMES]
    for X in (pd.DataFrame({"at": text}), pa.table({"at": text}), pl.DataFrame({"at": text}).cast(pl.Categorical)):
        np.testing.assert_array_equal(encode(X, table.schema), values_of(table))
    text[4] = "yesterday"
    with pytest.raises(ValueError, match=r"'at' held dates.*'yesterday' in row 4.*2024-05-31"):
        encode(pd.DataFrame({"at": text}), table.schema)
    with pytest.raises(ValueError, match=r"'at' held dates.*'17\.5' in row 1"):
        encode(pd.DataFrame({"at": [None, 17.5]}), table.schema)
    assert np.isnan(encode(pd.DataFrame({"at": [None, None]}), table.schema)).all()


def test_text_of_a_csv_file_is_read_as_dates_and_the_row_named():
    schema = read_columns(frames(TIMES)["arrow"]).schema
    cells = ["" if one is None else str(one) for one in TIMES]
    made = convert(pa.table({"at": cells}), schema)
    np.testing.assert_array_equal(encode(made, schema), encode(frames(TIMES)["arrow"], schema))
    with pytest.raises(ValueError, match=r"'at' held dates.*'soon' in row 12 below the header"):
        convert(pa.table({"at": ["2024-01-01", "soon"]}), schema, 10)


def test_times_with_a_zone_are_points_in_time():
    berlin = pd.DataFrame({"at": pd.Series(TIMES[:2], dtype="datetime64[us]").dt.tz_localize("Europe/Berlin")})
    table = read_columns(berlin)
    hour = values_of(table)[:, table.schema.names.index("at.hour")]
    assert hour.tolist() == [21, 6]  # UTC
    for X in (
        berlin.assign(at=berlin["at"].dt.tz_convert("Asia/Tokyo")),
        pl.from_pandas(berlin),
        pd.DataFrame({"at": [one.isoformat() for one in berlin["at"]]}),
        [{"at": one.to_pydatetime()} for one in berlin["at"]],
    ):
        np.testing.assert_array_equal(encode(X, table.schema), values_of(table))
    with pytest.raises(ValueError, match=r"'at' had times with a time zone.*without.*row 0.*give them their zone"):
        encode(berlin.assign(at=berlin["at"].dt.tz_localize(None)), table.schema)
    plain = read_columns(pd.DataFrame({"at": TIMES[:2]})).schema
    with pytest.raises(ValueError, match=r"'at' had times without a time zone.*local times"):
        encode(berlin, plain)
    mixed = pd.DataFrame({"at": pd.Series([TIMES[0], TIMES[1].replace(tzinfo=dt.UTC)], dtype=object)})
    with pytest.raises(ValueError, match=r"'at' has times with and without a time zone"):
        read_columns(mixed)


def test_times_that_have_no_utc_among_pythons_own():
    ahead, behind = dt.timezone(dt.timedelta(hours=14)), dt.timezone(dt.timedelta(hours=-5))
    ends = [dt.datetime(1, 1, 1, 9, tzinfo=ahead), dt.datetime(9999, 12, 31, 23, tzinfo=behind)]
    table = read_columns([{"at": one} for one in ends])
    parts = dict(zip(table.schema.names, values_of(table).T.tolist(), strict=True))
    assert parts["at.hour"] == [19, 4]  # of the day before, and of the day after
    assert parts["at.year"] == [0, 10000]
    assert parts["at.weekday"] == [(ends[0].weekday() - 1) % 7, (ends[1].weekday() + 1) % 7]
    np.testing.assert_array_equal(encode([{"at": one.isoformat()} for one in ends], table.schema), values_of(table))


def test_dates_that_microseconds_do_not_reach_are_refused():
    for far in (np.datetime64("400000-01-01", "D"), pd.Timestamp(np.datetime64("-400000-01-01", "s"))):
        with pytest.raises(ValueError, match=r"'at' holds dates beyond those of microseconds.*400000"):
            read_columns([{"at": np.datetime64("2000-01-01")}, {"at": far}])
    with pytest.raises(ValueError, match="'at' holds dates beyond those of microseconds"):
        read_columns(pd.DataFrame({"at": np.array(["400000-01-01"], "datetime64[s]")}))


def test_nanoseconds_are_rounded_down_in_frames_and_cells():
    moment = np.datetime64("1960-01-01", "ns") - np.timedelta64(1, "ns")
    frame = pd.DataFrame({"at": np.array([moment, "2001-02-03"], "datetime64[ns]")})
    table = read_columns(frame)
    assert values_of(table)[0, table.schema.names.index("at.year")] == 1959
    for X in ([{"at": one} for one in frame["at"]], [{"at": one} for one in frame["at"].to_numpy()]):
        np.testing.assert_array_equal(encode(X, table.schema), values_of(table))


def test_categories_of_dates_are_read_where_fit_had_dates():
    days = [dt.date(2024, 5, 6), dt.date(2025, 6, 8)]
    table = read_columns(pa.table({"at": days}))
    text = pa.array([day.isoformat() for day in days] + [None])
    for X in (
        pd.DataFrame({"at": pd.to_datetime(pd.Series(days)).astype("category")}),
        pa.table({"at": pa.array(days).dictionary_encode()}),
    ):
        np.testing.assert_array_equal(encode(X, table.schema), values_of(table))
    null = pa.table({"at": pa.DictionaryArray.from_arrays(pa.array([1, 2], pa.int32()), text)})
    made = encode(null, table.schema)
    np.testing.assert_array_equal(made[0], values_of(table)[1])
    assert np.isnan(made[1]).all()


def test_zones_in_a_csv_file_name_the_row():
    schema = read_columns(frames(TIMES)["arrow"]).schema
    with pytest.raises(ValueError, match=r"without a time zone.*from row 12 below the header on"):
        convert(pa.table({"at": ["", "2024-01-01T00:00Z"]}), schema, 10)
    with pytest.raises(ValueError, match=r"with a time zone, as in row 13 below.*without, as in row 11 below"):
        convert(pa.table({"at": ["2024-01-01", "2024-01-02", "2024-01-01T00:00Z"]}), schema, 10)


def test_what_is_refused_names_the_column():
    frame = pd.DataFrame({"at": TIMES[:2], "at.month": [1, 2]})
    with pytest.raises(ValueError, match=r"'at\.month', which is what a part of the dates"):
        read_columns(frame)
    with pytest.raises(ValueError, match="date_features='no'"):
        read_columns(frame, date_features="no")
    with pytest.raises(ValueError, match=r"'at' holds dates or times beside other things.*'soon'"):
        read_columns(pd.DataFrame({"at": pd.Series([TIMES[0], "soon"], dtype=object)}))
    with pytest.raises(ValueError, match="'at' holds dates or times"):
        read_columns(frame[["at"]], categorical_features=["at"])
    numbers = read_columns(pd.DataFrame({"at": [1.0, 2.0]})).schema
    with pytest.raises(ValueError, match="'at' holds dates or times, but had numbers"):
        encode(frame[["at"]], numbers)


# --- estimators ---------------------------------------------------------------------------------------------------


def make_sales(n_rows=120, seed=0):
    """A table of which the target is the month and a number."""
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2022-01-01") + pd.to_timedelta(rng.integers(0, 900, n_rows), unit="D")
    frame = pd.DataFrame({"size": rng.normal(size=n_rows), "sold": days, "kind": rng.choice(["a", "b"], n_rows)})
    frame.loc[3, "sold"] = pd.NaT
    return frame, frame["sold"].dt.month.fillna(0).to_numpy() + frame["size"].to_numpy()


MODELS = {
    "cart": CARTRegressor(max_depth=4),
    "linear": CARTRegressor(max_depth=2, leaf_model="linear"),
    "id3": ID3Regressor(),
    "forest": RandomForestRegressor(n_estimators=3, random_state=0),
    "extra": ExtraTreesRegressor(n_estimators=3, random_state=0),
    "bagging": BaggingRegressor(n_estimators=3, random_state=0, max_features=0.7),
    "adaboost": spinney.AdaBoostRegressor(n_estimators=3, random_state=0),
    "boosting": GradientBoostingRegressor(n_estimators=3, random_state=0),
    "stacking": StackingRegressor([("tree", CARTRegressor(max_depth=2))], CARTRegressor(max_depth=3), passthrough=True),
}
FEATURES = ("size", "sold.year", "sold.month", "sold.weekday", "sold.days", "kind")


@pytest.mark.parametrize("name", MODELS)
def test_every_estimator_reads_dates_and_its_file_does_too(name, tmp_path):
    X, y = make_sales()
    made = read_columns(X)
    by_hand = pd.DataFrame(
        {one: made.block(j, j + 1)[0] if one != "kind" else X["kind"] for j, one in enumerate(FEATURES)}
    )
    from sklearn.base import clone

    model = clone(MODELS[name]).fit(X, y)
    expected = model.predict(X)
    if name != "stacking":  # its folds have first days of their own
        np.testing.assert_array_equal(expected, clone(MODELS[name]).fit(by_hand, y).predict(by_hand))
        assert model._schema.names == FEATURES
    assert model.n_features_in_ == 3
    assert model.feature_names_in_.tolist() == ["size", "sold", "kind"]
    for other in (X[["kind", "sold", "size"]], pl.from_pandas(X), X.to_dict("records")):
        np.testing.assert_array_equal(model.predict(other), expected)
    model.save_model(tmp_path / "model.spn")
    np.testing.assert_array_equal(spinney.load_model(tmp_path / "model.spn").predict(X), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(X), expected)
    if name != "stacking":
        predictor = spinney.load_predictor(tmp_path / "model.spn")
        np.testing.assert_array_equal(predictor.predict(X), expected)
        row = X.iloc[7].to_dict()
        assert predictor(row) == predictor({**row, "sold": row["sold"].isoformat()}) == expected[7]


def test_importances_are_of_the_parts_and_a_tree_speaks_of_them():
    X, y = make_sales()
    model = CARTRegressor(max_depth=2).fit(X, y)
    assert len(model.feature_importances_) == len(FEATURES)
    assert np.argmax(model.feature_importances_) == FEATURES.index("sold.month")
    assert "sold.month" in model.tree_.to_text()
    assert "sold.month" in str(model.explain(X.iloc[0]))
    chart = spinney.plot.importances(model)
    assert "sold.month" in chart.to_svg()
    selector = OOBSelector(RandomForestRegressor(n_estimators=30, random_state=0), max_features=1).fit(X, y)
    assert selector.get_support().tolist() == [False, True, False]
    assert selector.transform(X).columns.tolist() == ["sold"]


def test_parameters_that_count_features_ask_for_names():
    X, y = make_sales()
    with pytest.raises(ValueError, match=r"monotonic_cst counts features.*'sold'.*sold\.month.*by name"):
        CARTRegressor(monotonic_cst=[0, 1, 0]).fit(X, y)
    rising = CARTRegressor(monotonic_cst={"sold.month": 1}).fit(X, y)
    later = rising.predict(X.assign(sold=pd.Timestamp("2023-12-05"))) - rising.predict(
        X.assign(sold=pd.Timestamp("2023-06-06"))
    )
    assert later.min() >= 0.0
    with pytest.raises(ValueError, match=r"monotonic_cst names 'sold', which holds dates: name one of .*sold\.month"):
        CARTRegressor(monotonic_cst={"sold": 1}).fit(X, y)
    with pytest.raises(ValueError, match=r"interaction_cst names 'sold', which holds dates: name one of"):
        GradientBoostingRegressor(n_estimators=2, interaction_cst=[["size", "sold"]]).fit(X, y)
    with pytest.raises(ValueError, match=r"categories of type Timestamp.*Make it a column of dates"):
        CARTRegressor().fit(X.assign(sold=X["sold"].astype("category")), y)
    with pytest.raises(ValueError, match="interaction_cst counts features"):
        GradientBoostingRegressor(n_estimators=2, interaction_cst=[[0, 1]]).fit(X, y)
    GradientBoostingRegressor(n_estimators=2, interaction_cst=[["size", "sold.month"]]).fit(X, y)
    by_place = CARTRegressor(categorical_features=[2], max_depth=3).fit(X, y)  # columns of X, as they stand there
    np.testing.assert_array_equal(by_place.predict(X), CARTRegressor(max_depth=3).fit(X, y).predict(X))


def test_dates_can_be_refused():
    X, y = make_sales()
    for model in (CARTRegressor(date_features=None), BaggingRegressor(CARTRegressor(date_features=None))):
        with pytest.raises(ValueError, match="Column 'sold' holds dates or times"):
            model.fit(X, y)


def test_classes_and_traces():
    X, y = make_sales()
    labels = np.where(y > 6, "late", "early")
    for kind in (CARTClassifier(max_depth=2, trace=True), C45Classifier(trace=True)):
        model = kind.fit(X, labels)
        assert "sold." in str(model.trace_)
        assert model.trace_.feature_names == list(FEATURES)
    with pytest.raises(ValueError, match="X has other dates than in fit"):
        spinney.trace(model, X.assign(sold=X["sold"] + pd.Timedelta(days=9)), labels)


def test_a_warm_start_wants_the_same_dates():
    X, y = make_sales()
    later = X.assign(sold=X["sold"] + pd.Timedelta(days=7))
    for model in (
        RandomForestRegressor(2, warm_start=True),
        GradientBoostingRegressor(n_estimators=2, warm_start=True),
    ):
        model.fit(X, y).set_params(n_estimators=4)
        with pytest.raises(ValueError, match="differ"):
            model.fit(later, y)


def test_files_of_models_that_read_dates_say_so_by_their_version(tmp_path):
    X, y = make_sales()
    path = tmp_path / "model.spn"
    CARTRegressor(max_depth=2).fit(X[["size"]], y).save_model(path)
    assert read(path).text["version"] == "1.0"
    CARTRegressor(max_depth=2).fit(X, y).save_model(path)
    container = read(path)
    assert container.text["version"] == "1.2"
    write(path, container.arrays, container.text | {"version": "1.1"})
    with pytest.raises(BrokenFileError, match=r"reads dates is of version 1\.2"):
        spinney.load_predictor(path)


GOOD = {"name": "at", "parts": ["year", "days"], "first": 3, "has_zone": False}


@pytest.mark.parametrize(
    "change",
    [
        {"parts": ["days", "year"]},
        {"parts": ["age"]},
        {"parts": []},
        {"first": 1.5},
        {"first": 10**12},
        {"has_zone": 0},
        {"name": 3},
    ],
    ids=str,
)
def test_a_file_whose_dates_are_wrong_is_refused(change):
    assert KINDS["DateColumn"].make(dict(GOOD)).features == ("at.year", "at.days")
    with pytest.raises(BrokenFileError):
        KINDS["DateColumn"].make(GOOD | change)


@pytest.mark.parametrize(
    "change",
    [
        {"names": ["at.year", "at.days"], "levels": [None, None]},
        {"names": ["at.year", "at.days", "at"]},
        {"names": ["at.year", "at.month", "x"]},
        {"levels": [None, ["a"], None]},
        {"dates": []},
        {"dates": [None, None, None]},
        {"dates": "at"},
        {"names": None},
    ],
    ids=str,
)
def test_a_file_whose_dates_are_not_those_of_its_features_is_refused(change):
    make = KINDS["Schema"].make
    dates = KINDS["DateColumn"].make(dict(GOOD))
    good = {"names": ["at.year", "at.days", "x"], "levels": [None, None, None], "dates": [dates, None]}
    assert make(good).column_names == ("at", "x")
    with pytest.raises(BrokenFileError):
        make(good | change)


@given(
    moments=st.lists(st.one_of(st.none(), st.integers(-(10**16), 10**16)), max_size=40),
    step=st.sampled_from([1, 3_600_000_000, 86_400_000_000, 31_536_000_000_000]),
    n_blocks=st.integers(1, 4),
)
def test_a_few_extreme_dates_tell_what_all_do(moments, step, n_blocks):
    values = np.array([None if moment is None else moment // step * step for moment in moments], "datetime64[us]")
    few = np.concatenate([pick_extremes(block) for block in np.array_split(values, n_blocks)])
    assert learn_dates(Dates(few, has_zone=False), "day")[0] == learn_dates(Dates(values, has_zone=False), "day")[0]
