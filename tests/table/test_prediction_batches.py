"""Files in batches, read as a schema wants them."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinney import read_table
from spinney.table.prediction_batches import as_category, as_numbers, convert, open_batches
from spinney.table.schema import Schema


def numbers(*cells):
    return as_numbers(pa.chunked_array([list(cells)], pa.string()), "x").to_pylist()


def test_text_is_read_as_the_numbers_of_a_whole_file(tmp_path):
    cells = ["1", " 2.5 ", "-1e300", "inf", "NA", "?", "", "nan", "007", "1e-320", "9007199254740993"]
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "".join(f"{cell},1\n" for cell in cells))
    whole = read_table(path)["x"].to_pylist()
    assert numbers(*cells) == whole


def test_booleans_are_numbers():
    assert numbers("TRUE", "false", "", "True") == [1.0, 0.0, None, 1.0]


@given(st.lists(st.floats(allow_nan=False) | st.integers(-(2**53), 2**53), min_size=1, max_size=20))
def test_numbers_survive_text(values):
    assert numbers(*map(repr, values)) == [float(value) for value in values]


@given(st.integers(0, 30), st.integers(0, 30), st.booleans())
def test_the_first_cell_that_is_no_number_is_named(n_before, n_after, has_booleans):
    good = "true" if has_booleans else "1"
    cells = [good] * n_before + ["high"] + [good, "low"] * n_after
    if has_booleans and not n_before:
        cells.insert(0, "true")
        n_before = 1
    with pytest.raises(ValueError, match=f"column x .* 'high' in row {n_before + 101} below the header"):
        as_numbers(pa.chunked_array([cells[:7], cells[7:]], pa.string()), "x", 100)


def test_an_empty_cell_is_no_category():
    assert as_category(pa.chunked_array([["a", "", "NA"]])).to_pylist() == ["a", None, "NA"]


def test_a_schema_says_what_text_is():
    table = pa.table({"kind": ["1", "2"], "size": ["3", "4"], "code": ["5", "6"]})
    schema = Schema(("kind", "size", "code"), (("1", "2"), None, (5, 6)))
    assert convert(table, schema).to_pydict() == {"kind": ["1", "2"], "size": [3.0, 4.0], "code": [5.0, 6.0]}


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"a,b\n1,2\n3\n", "t.csv", "Row #3"),
        ("a,b\n1,é\n".encode("latin1"), "t.csv", "line 2 is not valid UTF-8"),
        (b"", "t.csv", "cannot be read"),
        (b"PAR1", "t.parquet", "cannot be read"),
        (b"ARROW1", "t.arrow", "cannot be read"),
        (b"a", "t.txt", "unknown kind"),
    ],
)
def test_bad_files_are_named_fault_149(content, name, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name}.*{message}"):
        list(open_batches(tmp_path / name).rows)
