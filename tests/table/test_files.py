"""Files as tables: what CSV cells mean, and errors that name the file."""

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from spinney.table.ingest import read_columns, read_table


@pytest.fixture
def read(tmp_path):
    """Write a CSV and read it back as a pyarrow Table."""

    def write_and_read(content, name="table.csv"):
        data = content if isinstance(content, bytes) else content.encode()
        path = tmp_path / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return read_table(path)

    return write_and_read


@pytest.mark.parametrize("name", ["table.csv", "table.csv.gz", "TABLE.CSV", "with space é.csv"])
def test_csv(read, name):
    table = read("a,b,c\n1,x,\n?,,2.5\nNA,nan,-1e300\n", name)
    assert table.to_pydict() == {"a": [1, None, None], "b": ["x", None, "nan"], "c": [None, 2.5, -1e300]}
    assert pa.types.is_dictionary(table.schema.field("b").type)
    assert read_columns(table).schema.levels == (None, ("nan", "x"), None)


def test_csv_forms(read):
    assert read('\ufeffa,b\r\n1,"x\ny"\r\n2,"q,""r"\r\n').to_pydict() == {"a": [1, 2], "b": ["x\ny", 'q,"r']}
    assert read("a;b\n1;x\n").to_pydict() == {"a": [1], "b": ["x"]}
    assert read("a\tb\n1\tx\n").to_pydict() == {"a": [1], "b": ["x"]}
    assert read("a\n1\n2\n").to_pydict() == {"a": [1, 2]}
    assert read(f"a,b\n1,{'x' * 2_000_000}\n").num_rows == 1


def test_csv_kinds_are_those_of_all_rows(read):
    n_rows = 300_000  # the first block of the reader ends before the last rows
    table = read("a,b,c\n" + "1,2,\n" * n_rows + "1.5,x,7\n")
    assert table.num_rows == n_rows + 1
    assert table.column("a")[-1].as_py() == 1.5
    assert table.column("b")[0].as_py() == "2"
    assert table.column("c")[-1].as_py() == 7


def test_ragged_rows_are_numbered_fault_149(read):
    with pytest.raises(ValueError, match=r"table\.csv cannot be read: .*Row #3: Expected 2 columns, got 3"):
        read("a,b\n1,2\n1,2,3\n")


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"", "table.csv", "Empty CSV"),
        ("a,b\n1,é\n".encode("latin1"), "table.csv", "line 2 is not valid UTF-8"),
        ("a,é\n1,2\n".encode("latin1"), "table.csv", "header is not valid UTF-8"),
        (b"garbage", "table.parquet", "cannot be read"),
        (b"garbage", "table.arrow", "cannot be read"),
        (b"", "table.feather", "cannot be read"),
        (b"a,b\n", "table.txt", r"unknown kind of file. Known are \.csv"),
        (b"PK\x03\x04", "table.xlsx", r"is a workbook, which is not read: save its sheet as CSV"),
        (b"PK\x03\x04", "table.csv", r"is a workbook or an archive, and no CSV"),
        ("a,b\n1,2\n".encode("utf-16"), "table.csv", r"is in UTF-16, which is not read: save it as CSV in UTF-8"),
    ],
)
def test_bad_files_are_named_fault_149(read, content, name, message):
    with pytest.raises(ValueError, match=f"{name}.*{message}"):
        read(content, name)


def test_truncated_gzip_fault_149(tmp_path):
    path = tmp_path / "cut.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\n1,2\n" * 1000)[:-20])
    with pytest.raises(ValueError, match=r"cut\.csv\.gz cannot be read"):
        read_table(path)


def test_no_file_fault_149(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.csv"):
        read_table(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(OSError, match=r"folder\.csv"):
        read_table(str(tmp_path / "folder.csv"))


def test_parquet_and_arrow(tmp_path):
    frame = pd.DataFrame({"x": [1.5, None], "c": pd.Categorical(["b", "a"])}, index=[7, 9])
    table = pa.Table.from_pandas(frame)
    assert "__index_level_0__" in table.column_names
    parquet.write_table(table, tmp_path / "t.parquet")
    feather.write_feather(table, tmp_path / "t.feather")
    with pa.OSFile(str(tmp_path / "t.ipc"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    with pa.OSFile(str(tmp_path / "t.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    for name in ("t.parquet", "t.feather", "t.ipc", "t.arrow"):
        read = read_columns(read_table(tmp_path / name))
        assert read.schema.names == ("x", "c")
        assert read.schema.levels == (None, ("a", "b"))
        np.testing.assert_array_equal(read.block(0, 2), [[1.5, np.nan], [1, 0]])


def test_damaged_arrow_files_are_errors(tmp_path):
    table = pa.table({"s": ["aaaa", "bbbb", "cccc"], "x": [1.0, 2.0, 3.0]})
    path = tmp_path / "t.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    whole = path.read_bytes()
    for end in range(0, len(whole), 37):
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match=r"t\.arrow cannot be read"):
            read_table(path)
    offsets = np.array([0, 4, 8, 12], dtype=np.int32).tobytes()
    path.write_bytes(whole.replace(offsets, np.array([0, 4, 1 << 30, 12], dtype=np.int32).tobytes()))
    with pytest.raises(ValueError, match=r"t\.arrow cannot be read"):
        read_table(path)
