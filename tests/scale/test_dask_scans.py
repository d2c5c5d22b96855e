"""Scans of files where there is a Dask client: workers read the files, and the model is that of the same table here."""

import os
from pathlib import Path

import dask
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from sklearn.base import clone

import spinney
from dask_tables import count_keys, open_client
from disk_tables import make_table, model_bytes, split, write_parts
from spinney.scale.cluster.file_rows import list_pieces, read_piece
from spinney.scale.scan import Scan
from time_limits import limited

pytestmark = pytest.mark.compiled(reason="what is shown is about clusters, not kernels")
TABLE = make_table(5000)
ENDS = [400, 401, 2900]
MODELS = {
    "boosting": spinney.GradientBoostingClassifier(n_estimators=3, random_state=0),
    "forest": spinney.RandomForestClassifier(n_estimators=3, random_state=0),
    "CART": spinney.CARTClassifier(max_depth=4),
}


@pytest.fixture(autouse=True)
def time_limit():
    with limited(300):
        yield


@pytest.fixture(scope="module")
def client():
    with open_client(2) as client:
        yield client


@pytest.fixture
def workers_read(monkeypatch):
    """Nothing is read here."""
    monkeypatch.setattr(Scan, "read", lambda _: pytest.fail("the client has read the rows"))


def fit_there(model, scan, way):
    with dask.config.set({"spinney.plan": way}):
        return clone(model).fit(scan)


@pytest.mark.usefixtures("workers_read")
@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@pytest.mark.parametrize(
    ("name", "way"), [("boosting", "one"), ("boosting", "levels"), ("forest", "trees"), ("CART", "one")]
)
def test_the_file_is_that_of_the_table_in_memory(name, way, kind, client, tmp_path):
    pattern = write_parts(TABLE, tmp_path, ENDS, kind)
    X, y = split(TABLE)
    expected = clone(MODELS[name]).fit(X, y, sample_weight=TABLE["w"].to_numpy())
    scan = spinney.scan(pattern, "y", weight="w", drop=["g"])
    fitted = fit_there(MODELS[name], scan, way)
    assert model_bytes(fitted, tmp_path) == model_bytes(expected, tmp_path)
    assert count_keys(client) == 0


@pytest.mark.usefixtures("client", "workers_read")
def test_groups_come_from_the_files_too(tmp_path):
    pattern = write_parts(TABLE, tmp_path, ENDS)
    X, y = split(TABLE)
    model = MODELS["forest"]
    expected = clone(model).fit(X, y, groups=TABLE["g"].to_numpy())
    fitted = fit_there(model, spinney.scan(pattern, "y", groups="g", drop=["w"]), "trees")
    assert model_bytes(fitted, tmp_path) == model_bytes(expected, tmp_path)


@pytest.mark.usefixtures("client", "workers_read")
def test_files_behind_an_address_are_read_by_workers(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    files = fsspec.filesystem("memory")
    write_parts(TABLE, tmp_path, ENDS)
    for path in tmp_path.glob("*.parquet"):
        files.pipe(f"/scanned/{path.name}", path.read_bytes())
    try:
        X, y = split(TABLE)
        expected = clone(MODELS["boosting"]).fit(X, y)
        scan = spinney.scan("memory://scanned/*.parquet", "y", drop=["w", "g"])
        assert spinney.plan_fit(MODELS["boosting"], scan).n_rows == 5000
        assert model_bytes(fit_there(MODELS["boosting"], scan, "levels"), tmp_path) == model_bytes(expected, tmp_path)
    finally:
        files.store.clear()


@pytest.mark.usefixtures("client")
def test_what_workers_cannot_read_is_read_here(tmp_path, monkeypatch):
    """Frames, CSV, and scans with a limit of this machine's memory."""
    pattern = write_parts(TABLE.drop_columns(["w", "g"]), tmp_path, ENDS)
    texts = tmp_path / "texts"
    texts.mkdir()
    csv = write_parts(TABLE.drop_columns(["w", "g"]), texts, ENDS, "csv")
    model = spinney.CARTClassifier(max_depth=3)
    monkeypatch.setattr(
        "spinney.estimators.cluster_fits.fit_collections", lambda *_: pytest.fail("it was sent to the cluster")
    )
    scans = [spinney.scan(pattern, "y", memory="1GB"), spinney.scan(csv, "y"), spinney.scan(TABLE, "y")]
    for scan in scans:
        assert clone(model).fit(scan).n_features_in_ > 0
    with pytest.raises(ValueError, match="leave out y"):
        clone(model).fit(spinney.scan(pattern, "y"), np.zeros(5000))


@pytest.mark.usefixtures("client")
def test_faults_are_told_as_without_a_cluster(tmp_path):
    pattern = write_parts(TABLE, tmp_path, ENDS)
    with pytest.raises(ValueError, match="target='z' is not a column"):
        MODELS["CART"].fit(spinney.scan(pattern, "z"))
    with pytest.raises(FileNotFoundError, match="no file matches"):
        MODELS["CART"].fit(spinney.scan(str(tmp_path / "none*.parquet"), "y"))


def test_a_file_that_a_worker_does_not_see_is_named(tmp_path):
    write_parts(TABLE, tmp_path, [])
    piece = list_pieces(tmp_path)[0]
    (tmp_path / "part-7.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=r"part-7\.parquet is not there for a worker.*where all workers see"):
        read_piece(piece, ["y"])


def test_a_fit_inside_a_task_reads_its_files_itself(client, tmp_path):
    """As in a search over joblib: a task that waited for other tasks might wait for its own thread."""
    pattern = write_parts(TABLE.drop_columns(["w", "g"]), tmp_path, ENDS)
    model, scan = spinney.CARTClassifier(max_depth=3), spinney.scan(pattern, "y")
    fitted = client.submit(lambda: clone(model).fit(scan), pure=False).result(timeout=120)
    X, y = split(TABLE)
    assert np.array_equal(fitted.predict(X), clone(model).fit(X, y).predict(X))


def write_two(folder, first, second):
    """Two files of one table; each: columns of 60 rows beside x and y."""
    x = np.arange(60.0)
    for k, more in enumerate([first, second]):
        table = pa.table({"x": x, **more, "y": np.sin(x + k)})
        parquet.write_table(table, folder / f"part-{k}.parquet")
    return str(folder / "*.parquet")


NUMBERS = np.arange(60) % 7
WORDS = pa.array(["a", "b", "c", "b", "a"] * 12)
LOW = pa.DictionaryArray.from_arrays(pa.array(NUMBERS % 2, pa.int8()), ["high", "low"], ordered=True)
MIDDLE = pa.DictionaryArray.from_arrays(pa.array(NUMBERS % 3, pa.int16()), ["high", "low", "middle"], ordered=True)
DAYS = np.datetime64("2020-01-01") + np.arange(60)
DIFFERENT = {
    "numbers and fractions": (NUMBERS, NUMBERS / 2),
    "empty in one": (pa.nulls(60), NUMBERS),
    "text and categories": (WORDS, WORDS.dictionary_encode()),
    "dictionaries": (LOW, MIDDLE),
    "units of time": (pa.array(DAYS, pa.date32()), pa.array(DAYS.astype("datetime64[ns]"))),
}


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("way", ["one", "levels"])
@pytest.mark.parametrize("case", DIFFERENT)
def test_files_may_differ_in_types_as_without_a_cluster(case, way, tmp_path):
    pattern = write_two(tmp_path, *({"z": column} for column in DIFFERENT[case]))
    model = spinney.GradientBoostingRegressor(n_estimators=2, min_samples_leaf=1, random_state=0)
    expected = clone(model).fit(spinney.scan(pattern, "y", memory="4GB"))
    fitted = fit_there(model, spinney.scan(pattern, "y"), way)
    assert model_bytes(fitted, tmp_path) == model_bytes(expected, tmp_path)


@pytest.mark.usefixtures("client")
def test_the_nameless_index_of_pandas_is_no_feature(tmp_path):
    index = {"__index_level_0__": NUMBERS}
    model = spinney.CARTRegressor(max_depth=2).fit(spinney.scan(write_two(tmp_path, index, index), "y"))
    assert list(model.feature_names_in_) == ["x"]


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ({"z": NUMBERS}, {}, "part-1.parquet has no column 'z'"),
        ({}, {"z": NUMBERS}, "part-1.parquet has a column 'z' more"),
        ({"z": NUMBERS}, {"z": WORDS}, "part-1.parquet: column 'z' holds text"),
        ({"z": NUMBERS + 2**60}, {"z": NUMBERS / 2}, "part-0.parquet: column 'z' .* cannot be double"),
    ],
)
def test_files_that_do_not_go_together_are_named(first, second, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        spinney.CARTRegressor().fit(spinney.scan(write_two(tmp_path, first, second), "y"))


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_file_that_has_changed_is_not_read_again(kind, tmp_path):
    write_parts(TABLE, tmp_path, [], kind)
    (piece,) = list_pieces(tmp_path)
    assert read_piece(piece, ["y"]).num_rows == TABLE.num_rows
    assert list_pieces(tmp_path) == [piece]
    about = Path(piece.path).stat()
    os.utime(piece.path, ns=(about.st_atime_ns, about.st_mtime_ns + 10**6))
    with pytest.raises(ValueError, match="has changed since the fit began"):
        read_piece(piece, ["y"])


def test_a_file_behind_an_address_that_has_changed_is_not_read_again(tmp_path):
    files = pytest.importorskip("fsspec").filesystem("memory")
    write_parts(TABLE, tmp_path, [])
    content = (tmp_path / "part-7.parquet").read_bytes()
    try:
        files.pipe("/changed/a.parquet", content)
        (piece,) = list_pieces("memory://changed/a.parquet")
        assert read_piece(piece, ["y"]).num_rows == TABLE.num_rows
        files.pipe("/changed/a.parquet", content)
        with pytest.raises(ValueError, match=r"a\.parquet has changed since the fit began"):
            read_piece(piece, ["y"])
    finally:
        files.store.clear()


@pytest.mark.usefixtures("client")
def test_a_scan_that_was_read_here_refuses_changed_files_on_a_cluster_too(tmp_path):
    pattern = write_two(tmp_path, {}, {})
    scan = spinney.scan(pattern, "y")
    scan.read()
    write_two(tmp_path, {"z": NUMBERS}, {"z": NUMBERS})
    with pytest.raises(ValueError, match=r"part-0\.parquet has changed since this scan has read the table"):
        spinney.CARTRegressor().fit(scan)


def test_a_scan_with_a_limit_is_read_here_whatever_client_there_is(tmp_path, monkeypatch):
    """An asynchronous one is refused where it is asked, and here it is not."""
    monkeypatch.setattr("spinney.estimators.cluster_fits.find_client", lambda: pytest.fail("it was asked"))
    scan = spinney.scan(write_two(tmp_path, {}, {}), "y", memory="1GB")
    assert spinney.CARTRegressor().fit(scan).n_features_in_ == 1
