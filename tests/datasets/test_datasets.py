"""The embedded tables."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from plain_boosting import plain
from spinney import AdaBoostClassifier, CARTClassifier, GradientBoostingRegressor, datasets
from spinney.study.tables import looks_continuous, prepare


@pytest.mark.parametrize("name", datasets.names())
def test_tables_have_the_rows_and_target_their_source_says(name):
    table, source = datasets.load(name), datasets.source(name)
    assert table.num_rows == source.rows
    assert source.target in table.column_names
    assert source.origin
    assert source.licence
    assert not any(pa.types.is_string(column.type) for column in table.columns)
    assert looks_continuous(table[source.target]) == (source.task == "regression")
    assert table[source.target].null_count == 0
    assert prepare(table, source.target).summary.task == source.task


def test_every_file_is_listed_with_its_source():
    folder = Path(datasets.__file__).parent
    files = {path.name for path in folder.iterdir() if path.suffix in {".csv", ".parquet"}}
    assert files == {datasets.source(name).file for name in datasets.names()} - {""}
    assert sum((folder / file).stat().st_size for file in files) < 2_000_000
    readme = (folder / "README.md").read_text()
    for name in datasets.names():
        assert f"| `{name}` |" in readme
        assert datasets.source(name).licence in readme


def test_unknown_name_is_an_error_that_lists_the_known_ones():
    with pytest.raises(
        ValueError, match=r"no table named 'iris'; there are: adult, boosting_classes, boosting_numbers"
    ):
        datasets.load("iris")


def test_spirals_are_those_of_the_slides():
    """First row and tree as the lectures give them."""
    table = datasets.load("spirals")
    X = np.column_stack([table["x1"].to_numpy(), table["x2"].to_numpy()])
    y = np.array(table["arm"].to_pylist())
    assert X[0] == pytest.approx([-1.776926, 5.221733], abs=1e-6)
    scores = [CARTClassifier(max_depth=depth).fit(X, y).score(X, y) for depth in (1, 3, 5, None)]
    assert scores == pytest.approx([0.615, 0.725, 0.895, 1.0])


def test_led_digits_are_those_of_the_shared_table(shared_data):
    lines = (shared_data / "toy_led_digits.csv").read_text().split()
    rows = [",".join(map(str, row.values())) for row in datasets.load("led_digits").to_pylist()]
    assert rows == lines[1:]


def test_led_segments_fail_one_time_in_ten():
    clean = {row["digit"]: row for row in datasets.load("led_digits").to_pylist()}
    rows = datasets.load("led").to_pylist()
    segments = [f"x{j}" for j in range(1, 8)]
    failed = np.array([[row[name] != clean[row["digit"]][name] for name in segments] for row in rows])
    assert failed.mean(axis=0) == pytest.approx(np.full(7, 0.1), abs=0.035)  # 3.7 standard deviations
    counts = np.unique([row["digit"] for row in rows], return_counts=True)[1]
    assert len(counts) == 10
    assert abs(counts - 100).max() < 38


def test_adult_is_the_published_table(shared_data):
    from spinney import read_table

    table, shared = datasets.load("adult"), read_table(shared_data / "adult.parquet")
    assert table.equals(shared.drop_columns(["split"]).replace_schema_metadata(None))
    assert set(shared["split"].slice(0, 32_561).to_pylist()) == {"train"}
    assert set(shared["split"].slice(32_561).to_pylist()) == {"test"}


def test_the_numbers_of_the_boosting_examples():
    table = datasets.load("boosting_classes")
    X, y = table.select(["x"]), table["y"].to_numpy()
    model = AdaBoostClassifier(n_estimators=3, convention="half").fit(X, y)
    assert model.estimator_weights_ == pytest.approx([0.4236, 0.6496, 0.7520], abs=2e-4)
    assert model.score(X, y) == 1.0
    table = datasets.load("boosting_numbers")
    X, y = table.select(["x"]), table["y"].to_numpy()
    full = plain(n_estimators=6, learning_rate=1.0, max_depth=1, min_samples_leaf=1, reg_lambda=0.0)
    stumps = GradientBoostingRegressor(**full, max_bins=None, init="zero").fit(X, y)
    losses = [float(np.sum((y - said) ** 2)) for said in stumps.staged_predict(X)]
    assert losses == pytest.approx([1.93, 0.80, 0.48, 0.31, 0.23, 0.17], abs=0.006)
