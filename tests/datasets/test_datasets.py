"""The embedded tables."""

from pathlib import Path

import pyarrow as pa
import pytest

from spinney import datasets


@pytest.mark.parametrize("name", datasets.names())
def test_tables_have_the_rows_and_target_their_source_says(name):
    table, source = datasets.load(name), datasets.source(name)
    assert table.num_rows == source.rows
    assert source.target in table.column_names
    assert source.origin
    assert source.licence
    assert pa.types.is_dictionary(table[source.target].type) == (source.task == "classification")
    assert not any(column.null_count for column in table.columns)


def test_every_file_is_listed_with_its_source():
    folder = Path(datasets.__file__).parent
    files = {path.name for path in folder.iterdir() if path.suffix in {".csv", ".parquet"}}
    assert files == {datasets.source(name).file for name in datasets.names()}
    readme = (folder / "README.md").read_text()
    for name in datasets.names():
        assert f"| `{name}` |" in readme
        assert datasets.source(name).licence in readme


def test_unknown_name_is_an_error_that_lists_the_known_ones():
    with pytest.raises(ValueError, match=r"no table named 'iris'; there are: buys_computer, california_housing"):
        datasets.load("iris")
