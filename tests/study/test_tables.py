"""Tables made ready: task, summary, what is left out and what is suspicious."""

import datetime as dt
import warnings

import numpy as np
import pyarrow as pa
import pytest

from spinney import CARTRegressor
from spinney.study.dependence import trace_columns
from spinney.study.profile import profile_columns
from spinney.study.redundancy import find_redundant
from spinney.study.tables import looks_continuous, prepare


def table(**columns):
    return pa.table({name: pa.array(values) for name, values in columns.items()})


Y = ["a", "b", "a", "b", "a", "a", "b", "a", "b", "a"]
NUMBERS = [3, 1, 2, 2, 5, 5, 4, 9, 9, 1]


def test_what_cannot_be_used_is_left_out_with_a_reason():
    data = prepare(
        table(
            x=NUMBERS,
            one=[7] * 10,
            same=["k"] * 10,
            nothing=pa.array([None] * 10, pa.float64()),
            number=range(101, 111),
            name=[f"n{i}" for i in range(10)],
            copy=Y,
            day=[dt.timedelta(i + 1) for i in range(10)],
            y=Y,
        ),
        "y",
    )
    assert data.X.column_names == ["x"]
    assert {name: why.split()[0] for name, why in data.summary.dropped.items()} == {
        "one": "it", "same": "it", "nothing": "it", "number": "it", "name": "every", "copy": "it", "day": "methods",
    }  # fmt: skip
    assert data.summary.dropped["number"] == "it numbers the rows"
    assert data.summary.dropped["copy"] == "it equals the target"
    assert "duration" in data.summary.dropped["day"]
    assert data.summary.classes == (("a", 6), ("b", 4))


def test_a_missing_value_makes_a_constant_column_say_something():
    data = prepare(table(x=[1.0, None] * 5, y=Y), "y")
    assert data.summary.dropped == {}
    assert data.summary.columns[0].n_missing == 5


def test_suspicious_columns_stay():
    codes = [1 if label == "a" else 0 for label in Y]
    words = [{"a": "yes", "b": "no"}[label] for label in Y]
    data = prepare(table(codes=codes, words=words, ids=[5, 9, 2, 17, 33, 8, 1, 40, 12, 7], x=NUMBERS, y=Y), "y")
    suspicions = {column.name: column.suspicion for column in data.summary.columns}
    assert "one to one" in suspicions["codes"]
    assert "one to one" in suspicions["words"]
    assert "does it name the rows" in suspicions["ids"]
    assert suspicions["x"] is None
    assert data.X.num_columns == 4


@pytest.mark.parametrize(("factor", "is_suspicious"), [(2.0, True), (-3.0, True), (0.0, False)])
def test_an_input_in_the_order_of_the_target(factor, is_suspicious):
    y = np.array([1.5, 2.5, 0.5, 9.0, 2.5, 3.5, 4.0, 1.0, 0.0, 7.0])
    shaken = factor * y**3 if factor else y[::-1].copy()
    (column,) = prepare(table(x=shaken, y=y), "y").summary.columns
    assert (column.suspicion is not None) == is_suspicious


def test_summary_of_numbers_and_categories():
    data = prepare(table(x=[1.0, 2.0, None, 10.0], c=["u", "v", "u", None], y=[0.5, 1.5, 2.5, 9.0]), "y", name="t")
    number, category = data.summary.columns
    assert (number.lowest, number.median, number.highest, number.n_missing, number.n_distinct) == (1, 2, 10, 1, 3)
    assert (category.top, category.n_missing, category.n_distinct) == ((("u", 2), ("v", 1)), 1, 2)
    assert (data.summary.task, data.summary.name, data.summary.classes) == ("regression", "t", ())
    assert data.y.dtype == np.float64


@pytest.mark.parametrize(
    ("values", "is_regression"),
    [
        ([1.5, 2.5, 3.0], True),
        ([1.0, 2.0, 1.0, 2.0], False),
        ([100_000, 200_000, 300_000], True),
        (list(range(21)) * 3, True),
        (["1.5", "2.5"], False),
        ([True, False], False),
        (pa.array(["u", "v"]).dictionary_encode(), False),
    ],
)
def test_task_is_found(values, is_regression):
    assert looks_continuous(pa.chunked_array([pa.array(values)])) == is_regression


def test_columns_of_folds_are_no_inputs():
    data = prepare(table(x=NUMBERS, who=list("aabbccddee"), day=range(10), y=Y), "y", groups="who", time="day")
    assert data.X.column_names == ["x"]
    assert data.groups.tolist() == list("aabbccddee")
    assert data.times.tolist() == list(range(10))


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ({"x": NUMBERS, "y": [*Y[:9], None]}, {}, "'y' has 1 missing values"),
        ({"x": NUMBERS, "y": [*[1.5] * 9, float("nan")]}, {}, "1 missing"),
        ({"x": NUMBERS, "y": [*[1.5] * 9, float("inf")]}, {}, "infinite"),
        ({"x": NUMBERS, "y": ["a"] * 10}, {}, "one class only, 'a': there"),
        ({"x": NUMBERS, "y": [1e307 * (i + 0.5) / 10 for i in range(10)]}, {}, "squares overflow"),
        ({"x": NUMBERS, "y": Y}, {"task": "regression"}, "is text"),
        ({"x": [1] * 10, "y": Y}, {}, "no column is left .* one value"),
        ({"y": Y}, {}, "no other column"),
        ({"x": NUMBERS, "y": Y}, {"groups": "z"}, r"no column 'z' \(groups\)"),
        ({"x": NUMBERS, "y": Y}, {"time": "y"}, "is the target"),
        ({"x": NUMBERS, "g": [*Y[:9], None], "y": Y}, {"groups": "g"}, "1 missing values, but decides"),
        ({"x": [], "y": []}, {}, "no rows"),
    ],
)
def test_errors_say_what_to_mend(columns, options, words):
    with pytest.raises(ValueError, match=words):
        prepare(table(**columns), "y", **options)


def test_two_columns_of_one_name():
    twice = pa.Table.from_arrays([pa.array(NUMBERS), pa.array(NUMBERS), pa.array(Y)], ["x", "x", "y"])
    with pytest.raises(ValueError, match="more than one column 'x'"):
        prepare(twice, "y")


def test_numbers_of_rows_stay_where_there_is_nothing_else():
    data = prepare(table(x=range(10), one=[7] * 10, y=Y), "y")
    assert data.X.column_names == ["x"]
    assert list(data.summary.dropped) == ["one"]


@pytest.mark.parametrize("kind", [pa.decimal128(9, 2), pa.float16()])
def test_decimals_and_halves_are_numbers(kind):
    y = pa.array(np.arange(40) / 4, pa.float64())
    y = pa.array((np.arange(40) / 4).astype(np.float16)) if kind == pa.float16() else y.cast(kind)
    data = prepare(pa.table({"x": np.arange(40) % 7, "y": y}), "y")
    assert data.is_regression
    np.testing.assert_array_equal(data.y, np.arange(40) / 4)


def test_columns_are_left_out_on_request():
    table = pa.table({"a": [1.5, 2.5, 1.5, 0.5], "b": ["u", "v", "u", "v"], "y": ["p", "q", "p", "q"]})
    data = prepare(table, "y", drop=["b"])
    assert data.X.column_names == ["a"]
    assert data.summary.dropped == {"b": "you asked for it"}
    with pytest.raises(ValueError, match="'y' is the target: it cannot be left out too"):
        prepare(table, "y", drop=["y"])
    with pytest.raises(ValueError, match="no column 'c' \\(drop\\)"):
        prepare(table, "y", drop=["c"])


def test_infinite_values_are_compared_without_a_warning():
    x = np.array([0.5, np.inf, 1.5, np.inf, -np.inf, 2.5])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert prepare(pa.table({"x": x, "y": x.clip(-9, 9) ** 2}), "y").summary.used[0].suspicion is None
        assert "order of the target" in prepare(pa.table({"x": x, "y": x.clip(-9, 9)}), "y").summary.used[0].suspicion


def test_dates_are_inputs():
    days = [dt.date(2020, 1, 1) + dt.timedelta(3 * i) for i in range(60)]
    given = table(
        day=[None, *days[1:]], same=[days[0]] * 60, nothing=pa.array([None] * 60, pa.timestamp("us")),
        x=[float(i % 7) for i in range(60)], y=[one.month + 0.3 * (i % 7) for i, one in enumerate(days)],
    )  # fmt: skip
    data = prepare(given, "y")
    assert data.X.column_names == ["day", "x"]
    assert data.summary.dropped == {"same": "it has one value throughout", "nothing": "it is missing throughout"}
    described = data.summary.columns[0]
    assert (described.kind, described.n_missing, described.n_distinct) == ("date", 1, 59)
    assert described.span == (str(days[1]), str(days[-1]))
    assert 0.1 < described.alone < 0.9  # the month tells a part of the target
    profile = {one.feature: one for one in profile_columns(data)}["day"]
    assert 2019.9 < profile.edges[0] < profile.edges[-1] < 2020.6
    assert sum(profile.counts) == 59
    model = CARTRegressor(max_depth=3).fit(data.X, data.y)
    (curve,) = trace_columns(model, data, ["day"])
    assert curve.is_number
    assert max(curve.mean) - min(curve.mean) > 2.0


def test_equal_dates_are_redundant():
    days = [dt.date(2020, 1, 1) + dt.timedelta(i * i % 97) for i in range(60)]
    assert find_redundant(table(first=days, again=days)) == ("'again' equals 'first'",)
