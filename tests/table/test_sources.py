"""Files, streams and iterators as blocks of rows: their order, their kinds, and what they disagree about."""

import gzip
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import spinney
from spinney.scale.scan import Scan
from spinney.table.columns import Categories, Dates, Numbers, open_columns
from spinney.table.csv_kinds import vote_kinds
from spinney.table.sources import list_files, natural_order, open_source

CELLS = {
    "whole": ["1", "-5", "0", " 7", '"12"'],
    "fraction": ["1.5", "1e3", "inf", "99999999999999999999"],
    "flag": ["true", "False", "0", "1"],
    "day": ["2020-01-01", "1999-12-31"],
    "moment": ["2020-01-01T10:00:00", "2020-01-01 10:00"],
    "zoned": ["2020-01-01T10:00:00Z"],
    "fine": ["2020-01-01T10:00:00.25"],
    "time": ["10:00:00"],
    "missing": ["", "NA", "nan", "?"],
    "text": ["red", "blue", "NA ", "1x"],
}


def read_all(source):
    """All rows of a source as one table."""
    return pa.concat_tables([table for _, table in source.read(source.names)], promote_options="permissive")


def test_files_go_by_names_with_numbers_in_them(tmp_path):
    names = ["part-10", "part-9", "part-1", "b/part-2", "Part-3", "part-010"]
    for i, name in enumerate(names):
        path = tmp_path / f"{name}.parquet"
        path.parent.mkdir(exist_ok=True)
        parquet.write_table(pa.table({"x": [i]}), path)
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "part-0.parquet").write_text("")
    (tmp_path / "notes.txt").write_text("")
    found = [path.relative_to(tmp_path).as_posix() for path in list_files(tmp_path)]
    expected = ["Part-3", "b/part-2", "part-1", "part-9", "part-010", "part-10"]
    assert found == [f"{name}.parquet" for name in expected]
    assert read_all(open_source(tmp_path))["x"].to_pylist() == [names.index(name) for name in expected]
    assert list_files(str(tmp_path / "part-*.parquet")) == sorted(tmp_path.glob("part-*"), key=natural_order)
    listed = [tmp_path / "part-10.parquet", tmp_path / "part-1.parquet"]
    assert read_all(open_source(listed))["x"].to_pylist() == [0, 2]


def test_there_must_be_files_and_of_one_kind(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has no file that ends in \.parquet"):
        open_source(tmp_path)
    with pytest.raises(FileNotFoundError, match="no file matches"):
        open_source(str(tmp_path / "*.parquet"))
    with pytest.raises(FileNotFoundError):
        open_source(tmp_path / "no.parquet")
    with pytest.raises(ValueError, match="is an address"):
        open_source("s3://bucket/x.parquet")
    with pytest.raises(TypeError, match="a int is nothing that can be scanned"):
        open_source(7)
    parquet.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_text("x\n1\n")
    with pytest.raises(ValueError, match=r"b\.csv is csv, and .*a\.parquet is parquet"):
        open_source(tmp_path)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (pa.table({"x": [1], "z": [1]}), r"b\.parquet has no column 'y', which .*a\.parquet has"),
        (pa.table({"x": [1], "y": [1], "z": [1]}), r"b\.parquet has a column 'z' more than"),
        (pa.table({"x": ["a"], "y": [1]}), r"b\.parquet: column 'x' holds text \(string\), but numbers \(int64\) in"),
        (pa.table({"x": [True], "y": [1]}), r"b\.parquet: column 'x' holds booleans"),
    ],
)
def test_files_must_agree(other, message, tmp_path):
    parquet.write_table(pa.table({"x": [1], "y": [1]}), tmp_path / "a.parquet")
    parquet.write_table(other, tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=message):
        open_source(tmp_path)


def test_files_may_differ_in_what_one_table_would_hold(tmp_path):
    parts = [
        pa.table({"n": pa.array([1, 2], pa.int32()), "c": pa.array(["a", "b"]).dictionary_encode(), "e": [None, None]}),
        pa.table({"c": pa.array(["b", "c"]).dictionary_encode(), "n": [0.5, None], "e": ["x", None]}),
        pa.table({"n": [None, 7], "e": ["y", "x"], "c": pa.array([None, "a"]).dictionary_encode()}),
    ]
    for i, part in enumerate(parts):
        parquet.write_table(part, tmp_path / f"{i}.parquet")
    columns = Scan(tmp_path).read().columns()
    whole = open_columns(
        pa.concat_tables([part.select(["n", "c", "e"]) for part in parts], promote_options="permissive")
    )
    assert columns.names == ("n", "c", "e")
    for j in range(3):
        check_same_column(columns.read(j), whole.read(j))


def check_same_column(found, expected):
    """The same kind of column with the same content, in whatever codes."""
    assert isinstance(found, type(expected))
    if isinstance(expected, Categories):
        spell = [[None if code < 0 else one.values[code] for code in one.codes] for one in (found, expected)]
        assert spell[0] == spell[1]
        assert sorted(found.values) == sorted(expected.values)
        assert not expected.is_ordered or found.values == expected.values
        return
    if isinstance(expected, Dates):
        np.testing.assert_array_equal(found.values, expected.values)
        assert found.has_zone is expected.has_zone
        return
    np.testing.assert_array_equal(found.read().astype(float), expected.read().astype(float))
    for mine, other in zip(found.exact(), expected.exact(), strict=True):
        assert mine.tolist() == [float(one) if isinstance(one, Decimal) else one for one in other.tolist()]
    assert found.wide_values().tolist() == expected.wide_values().tolist()


COLUMNS = st.one_of(
    st.lists(st.one_of(st.none(), st.integers(-(2**62), 2**62)), min_size=1).map(lambda v: pa.array(v, pa.int64())),
    st.lists(st.one_of(st.none(), st.integers(0, 2**64 - 2)), min_size=1).map(lambda v: pa.array(v, pa.uint64())),
    st.lists(st.one_of(st.none(), st.integers(-128, 127)), min_size=1).map(lambda v: pa.array(v, pa.int8())),
    st.lists(st.one_of(st.none(), st.booleans()), min_size=1).map(lambda v: pa.array(v, pa.bool_())),
    st.lists(st.one_of(st.none(), st.floats()), min_size=1).map(lambda v: pa.array(v, pa.float64())),
    st.lists(st.one_of(st.none(), st.floats(width=32)), min_size=1).map(lambda v: pa.array(v, pa.float32())),
    st.lists(st.none(), min_size=1).map(lambda v: pa.array(v, pa.null())),
    st.lists(st.one_of(st.none(), st.text(max_size=3)), min_size=1).map(lambda v: pa.array(v, pa.string())),
    st.lists(st.one_of(st.none(), st.integers(0, 9)), min_size=1).map(
        lambda v: pa.DictionaryArray.from_arrays(pa.array(v, pa.int8()), pa.array(list("jihgfedcba")), ordered=True)
    ),
    st.lists(st.one_of(st.none(), st.integers(-(2**50), 2**50)), min_size=1).map(
        lambda v: pa.array(v, pa.timestamp("us", "Europe/Rome"))
    ),
    st.lists(st.one_of(st.none(), st.integers(-(10**5), 10**5)), min_size=1).map(lambda v: pa.array(v, pa.date32())),
    st.lists(st.one_of(st.none(), st.decimals(-99, 99, places=0)), min_size=1).map(
        lambda v: pa.array(v, pa.decimal128(5, 2))
    ),
)


@given(column=COLUMNS, cut=st.floats(0.0, 1.0))
@settings(max_examples=120)
def test_a_column_on_disk_is_the_column_in_memory(column, cut):
    table = pa.table({"x": column})
    at = int(cut * len(column))
    source = pa.Table.from_batches([*table.slice(0, at).to_batches(), *table.slice(at).to_batches()])
    check_same_column(Scan(source).read().columns().read(0), open_columns(table).read(0))


@given(
    cells=st.lists(
        st.lists(st.sampled_from(sorted(CELLS)), min_size=1, max_size=2).flatmap(
            lambda kinds: st.lists(st.sampled_from([cell for kind in kinds for cell in CELLS[kind]]), max_size=40)
        ),
        min_size=1,
        max_size=3,
    ),
    n_files=st.integers(1, 3),
    block_bytes=st.sampled_from([64, 200, 1 << 20]),
)
@settings(max_examples=80)
def test_kinds_of_csv_are_those_of_all_rows_read_together(cells, n_files, block_bytes, tmp_path_factory):
    folder = tmp_path_factory.mktemp("csv")
    flat = [cell for part in cells for cell in part]
    rows = [f"{cell},{i}" for i, cell in enumerate(flat)]
    text = "\n".join(["a,b", *rows]) + "\n"
    (folder / "whole.csv").write_text(text)
    step = max(-(-len(rows) // n_files), 1)
    paths = []
    for i in range(0, max(len(rows), 1), step):
        paths.append(folder / f"part-{len(paths)}.csv.gz")
        paths[-1].write_bytes(gzip.compress("\n".join(["a,b", *rows[i : i + step], ""]).encode()))
    expected = spinney.read_table(folder / "whole.csv").schema
    found = vote_kinds(paths, block_bytes)
    assert [plain_type(found[name]) for name in ("a", "b")] == [plain_type(kind) for kind in expected.types]
    if not rows:
        return
    try:
        whole = open_columns(spinney.read_table(folder / "whole.csv")).read(0)
    except ValueError as error:
        with pytest.raises(ValueError, match="^" + str(error)[:12]):
            Scan(paths, block_bytes=block_bytes).read()
        return
    check_same_column(Scan(paths, block_bytes=block_bytes).read().columns().read(0), whole)


def plain_type(kind):
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def test_text_that_is_not_utf_8_is_refused_with_its_file(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"x,y\na,1\n\xff,2\n")
    with pytest.raises(ValueError, match=r"a\.csv: line 3 is not valid UTF-8"):
        open_source(tmp_path / "a.csv")


def test_a_file_that_changes_or_vanishes_is_refused(tmp_path):
    for change in ("replace", "remove"):
        path = tmp_path / f"{change}.parquet"
        parquet.write_table(pa.table({"x": [1.0, 2.0]}), path)
        source = open_source(path)
        if change == "replace":
            parquet.write_table(pa.table({"x": [1.0, 2.0, 3.0]}), path)
        else:
            path.unlink()
        with pytest.raises(ValueError, match="has changed since the scan" if change == "replace" else "is gone"):
            read_all(source)


def test_wide_integers_and_fractions_are_no_column(tmp_path):
    parquet.write_table(pa.table({"x": [2**60 + 1]}), tmp_path / "a.parquet")
    parquet.write_table(pa.table({"x": [0.5]}), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"a\.parquet: column 'x' holds 1152921504606846977, beyond 2\*\*53"):
        Scan(tmp_path).read()


def test_a_stream_is_read_once():
    scanned = Scan(pa.table({"x": [1.0, 2.0]}).to_reader())
    assert isinstance(scanned.read().columns().read(0), Numbers)
    assert scanned.read() is scanned.read()
    again = Scan(scanned._given)
    with pytest.raises(ValueError, match=r"no rows|once"):
        again.read()
