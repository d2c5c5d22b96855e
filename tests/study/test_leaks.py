"""Columns that give the target away are named, on every table where one was planted and on none where none was."""

import numpy as np
import pyarrow as pa
import pytest

import spinney
from spinney.study import prepare
from spinney.study.leaks import by_level, by_neighbours, by_threshold, find_sum

CLEAN = {  # real tables, of every kind, and their targets
    "adult.parquet": "income",
    "california_housing.parquet": "MedHouseVal",
    "credit_default.parquet": "default",
    "diamonds.parquet": "price",
    "german_credit.parquet": "class",
    "glass.csv": "Type",
    "mushroom.parquet": "class",
    "pima_diabetes.csv": "diabetes",
    "sonar.parquet": "Class",
    "vehicle.parquet": "Class",
}


def read(folder, name):
    table, target = spinney.read_table(folder / name), CLEAN[name]
    return table.filter(table[target].is_valid()), target


def values_of(table, target):
    column = table[target]
    column = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    return column.to_numpy(zero_copy_only=False)


def plant(kind, y, rng):
    """A column that holds the answer in one of ten ways."""
    is_regression = y.dtype.kind in "iuf" and len(np.unique(y)) > 20
    if is_regression:
        return {
            0: np.log(y.astype(float) + 1.0),
            1: 2 * y + 3,
            2: y * (1 + 0.01 * rng.normal(size=len(y))),
            3: np.array([f"band {i}" for i in np.searchsorted(np.quantile(y, np.linspace(0, 1, 150)[1:-1]), y)]),
            4: -np.sqrt(y.astype(float)),
        }[kind % 5]
    names, codes = np.unique(y.astype(str), return_inverse=True)
    return {
        0: codes.astype(float) * 7 + rng.random(len(y)),  # one threshold, or several
        1: rng.permutation(len(names))[codes],
        2: np.array([f"group {i}" for i in range(len(names))])[codes],
        3: np.char.add(np.char.add(codes.astype(str), "-"), rng.integers(0, 9, len(y)).astype(str)),  # many to one
        4: np.where(rng.random(len(y)) < 0.002, 0, codes + 1),  # nearly always there
    }[kind % 5]  # fmt: skip


@pytest.mark.parametrize("kind", range(10))
def test_ten_planted_leaks_are_named(shared_data, kind):
    name = list(CLEAN)[kind]
    table, target = read(shared_data, name)
    leak = plant(kind, values_of(table, target), np.random.default_rng(kind))
    found = prepare(table.append_column("planted", pa.array(leak)), target).summary
    (text,) = found.leaks
    assert text.startswith("column 'planted' gives the answer away: alone it predicts the target with ")
    assert text.endswith("--drop planted")


@pytest.mark.parametrize("name", CLEAN)
def test_ten_clean_tables_have_none(shared_data, name):
    summary = prepare(*read(shared_data, name)).summary
    assert summary.leaks == ()
    assert summary.redundant == ()


def test_a_sum_that_is_the_target_is_named(shared_data):
    table = spinney.read_table(shared_data / "bike_sharing_hour.parquet")
    casual, registered = prepare(table, "cnt").summary.leaks  # their sum is cnt, in this table as it is published
    assert "column 'casual' gives the answer away: with 'registered' it adds up to the target" in casual
    assert "registered" in registered
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, 200))
    X = pa.table({"a": a, "b": b, "c": c})
    assert find_sum(X, 3 * a - b) == ("a", "b")
    assert find_sum(X, 3 * a - b + 0.01 * rng.normal(size=200)) == ()


def test_readings_are_what_they_say():
    y = np.array([1.0, 3.0, 10.0, 20.0])
    assert by_level(np.array([0, 0, 1, 1]), np.array([0, 1, 2]), y, None).tolist() == [2.0, 15.0, 8.5]
    labels = np.array([0, 0, 1, 1, 1])
    assert by_level(np.array([0, 0, 0, 1, 1]), np.array([0, 1, 7]), labels, labels).tolist() == [0, 1, 1]
    x = np.array([4.0, 1.0, 2.0, 3.0])
    assert by_threshold(x, np.array([2.4, 2.6]), np.array([9.0, 0.0, 0.0, 9.0]), None).tolist() == [0.0, 9.0]
    assert by_threshold(x, np.array([2.4, 2.6]), x, np.array([1, 0, 0, 1])).tolist() == [0, 1]
    assert by_threshold(np.ones(3), np.ones(1), np.array([1.0, 2.0, 6.0]), None).tolist() == [3.0]
    seen, new = np.array([1.0, 3.0, 3.0]), np.array([2.0, 9.0])
    assert by_neighbours(seen, new, np.array([0.0, 1.0, 3.0]), None).tolist() == [1.0, 2.0]
    assert by_neighbours(seen, np.array([1.4, 2.6]), new, np.array([1, 0, 0])).tolist() == [1, 0]


def test_columns_that_others_determine_are_told():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 120))
    town = rng.choice(["x", "y", "z"], 120)
    table = pa.table({
        "a": a, "b": b, "twice": 2 * a + 1, "total": a + b, "again": b, "town": town,
        "code": np.where(town == "x", "p", np.where(town == "y", "q", "r")), "place": town,
        "y": rng.choice(["u", "v"], 120),
    })  # fmt: skip
    assert set(prepare(table, "y").summary.redundant) == {
        "'code' has other names for the levels of 'town'",
        "'place' equals 'town'",
        "'twice' is a linear function of 'a'",
        "'total' is a linear combination of 'a', 'b'",
        "'again' equals 'b'",
    }


# --- Names of rows ------------------------------------------------------------------------------------------------


def people(n_rows=300):
    """A table with columns of names that hardly repeat."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=n_rows)
    return pa.table({
        "x": x,
        "person": [f"person {i}" for i in rng.integers(0, 20 * n_rows, n_rows)],
        "place": [f"place {i}" for i in rng.integers(0, n_rows, n_rows)],
        "CustomerId": rng.permutation(10 * n_rows)[:n_rows],
        "income": rng.permutation(10 * n_rows)[:n_rows],
        "y": x + 0.1 * rng.normal(size=n_rows),
    })  # fmt: skip


def test_names_and_ids_are_left_out_and_can_be_kept():
    data = prepare(people(), "y")
    assert data.X.column_names == ["x", "income"]
    assert set(data.summary.dropped) == {"person", "place", "CustomerId"}
    kept = prepare(people(), "y", keep=["place"])
    assert kept.X.column_names == ["x", "place", "income"]
    assert kept.kept == ("place",)
    with pytest.raises(ValueError, match="is the target: it cannot be kept"):
        prepare(people(), "y", keep=["y"])
    with pytest.raises(ValueError, match="no column 'z'"):
        prepare(people(), "y", keep=["z"])


def test_a_target_with_a_decimal_comma_is_told_as_such():
    prices = [f"{i},{i % 10}" for i in range(60)]
    table = pa.table({"x": np.arange(60.0) ** 2, "price": prices})
    with pytest.raises(
        ValueError, match=r"column 'price' is the target: .* decimal comma \('0,0'\): write them with a"
    ):
        prepare(table, "price")
    digits = pa.table({"x": np.arange(60.0) ** 2, "digit": [str(i % 11) for i in range(60)]})
    assert prepare(digits, "digit").summary.task == "classification"
