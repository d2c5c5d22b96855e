"""What a page shows of the columns, and of what they are worth to the recommended method."""

import numpy as np
import pyarrow as pa
import pytest
from sklearn.inspection import permutation_importance

from spinney import CARTRegressor
from spinney.study import prepare
from spinney.study.dependence import make_grid, trace_columns
from spinney.study.profile import correlate, cut_bins, list_gaps, natural, profile_columns
from spinney.study.worth import permute_columns


def make_data(n_rows=400, **more):
    rng = np.random.default_rng(8)
    a, b = rng.normal(size=(2, n_rows))
    kind = rng.choice(["10 km", "9 km", "100 km"], n_rows)
    y = 3 * a + (kind == "9 km") + 0.1 * rng.normal(size=n_rows)
    columns = {"a": a, "near": a + 0.01 * rng.normal(size=n_rows), "b": b, "kind": kind} | more
    return prepare(pa.table(columns | {"y": y}), "y", keep=list(more))


def test_worth_is_the_permutation_importance_of_held_out_rows():
    data = make_data()
    split = np.arange(0, 250), np.arange(250, 400)
    found = {one.feature: one for one in permute_columns(CARTRegressor(max_depth=4), data, split, "r2")}
    model = CARTRegressor(max_depth=4).fit(data.X.slice(0, 250), data.y[:250])
    frame = data.X.slice(250).to_pandas()
    theirs = permutation_importance(model, frame, data.y[250:], scoring="r2", n_repeats=40, random_state=0)
    for name, mean, spread in zip(frame.columns, theirs.importances_mean, theirs.importances_std, strict=True):
        assert found[name].fall == pytest.approx(mean, abs=4.0 * spread / np.sqrt(5) + 1e-12)
    assert list(found) == sorted(found, key=lambda name: -found[name].fall)
    loss = {one.feature: one.fall for one in permute_columns(CARTRegressor(max_depth=4), data, split, "mae")}
    assert max(loss, key=lambda name: loss[name]) == max(found, key=lambda name: found[name].fall)  # worse is positive


def test_profiles_count_rows_and_average_the_target():
    data = make_data()
    found = {one.feature: one for one in profile_columns(data)}
    kind = found["kind"]
    assert kind.levels == ("9 km", "10 km", "100 km")
    texts = data.X["kind"].to_numpy(zero_copy_only=False).astype(str)
    for level, count, goal in zip(kind.levels, kind.counts, kind.goals, strict=True):
        assert count == (texts == level).sum()
        assert goal == pytest.approx(data.y[texts == level].mean())
    numbers = found["a"]
    assert sum(numbers.counts) == 400
    inner = (data.X["a"].to_numpy() >= numbers.edges[5]) & (data.X["a"].to_numpy() < numbers.edges[6])
    assert numbers.counts[5] == inner.sum()
    assert numbers.goals[5] == pytest.approx(data.y[inner].mean())


def test_bins_of_whole_numbers_hold_as_many_of_them():
    hours = np.repeat(np.arange(24.0), 10)
    counts, _ = np.histogram(hours, cut_bins(hours))
    assert counts.tolist() == [10] * 24
    many = np.repeat(np.arange(1000.0), 2)
    assert set(np.diff(cut_bins(many))) == {49.0}


def test_names_of_rows_are_never_shown_level_by_level():
    names = [f"person {i}" for i in range(380)] + ["person 1"] * 20
    data = make_data(name=names)
    assert "name" in data.X.column_names  # kept on request
    assert "name" not in {one.feature for one in profile_columns(data)}
    model = CARTRegressor(max_depth=3).fit(data.X, data.y)
    assert "name" not in {one.feature for one in trace_columns(model, data, list(data.X.column_names))}


def test_flat_dependences_are_left_out():
    data = make_data()
    model = CARTRegressor(max_depth=2).fit(data.X, data.y)
    shown = [one.feature for one in trace_columns(model, data, ["a", "near", "b"])]
    assert "b" not in shown
    assert set(shown) <= {"a", "near"}
    assert shown


def test_levels_are_in_their_natural_order():
    assert make_grid(pa.chunked_array([["10-19", "5-9", "100+", "5-9"]])).values == ("5-9", "10-19", "100+")
    assert sorted(["b", "A", "", "a10", "a9"], key=natural) == ["", "A", "a9", "a10", "b"]


def test_gaps_and_correlations():
    table = pa.table({
        "a": [1.0, None, 3.0, None, 5.0, 6.0], "b": ["u", None, "v", None, None, "w"], "c": [1, 2, 3, 4, 5, 6.5],
        "d": [2, 4, 6, 8, 10, 12.9],
    })  # fmt: skip
    gaps = list_gaps(table)
    assert {one.features: one.n_rows for one in gaps} == {(): 3, ("a", "b"): 2, ("b",): 1}
    ((first, second, r),) = correlate(table)
    assert (first, second) == ("c", "d")
    assert r == pytest.approx(np.corrcoef(table["c"], table["d"])[0, 1])
    assert list_gaps(table.select(["c", "d"])) == ()
