"""Scans of files where there is a Dask client: workers read the files, and the model is that of the same table here."""

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster
from sklearn.base import clone

import spinney
from dask_tables import count_keys
from disk_tables import make_table, model_bytes, split, write_parts
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
    with (
        dask.config.set({"distributed.worker.memory.terminate": False}),
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
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
    from spinney.scale.cluster.file_rows import list_pieces, read_piece

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
