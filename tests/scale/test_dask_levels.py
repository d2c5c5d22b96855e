"""Boosting on rows that are spread over the workers of a Dask cluster: the bytes of memory, whatever goes."""

import functools
import threading
import time
import warnings

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from sklearn.base import clone

import spinney
from dask_tables import FEATURES, count_keys, cut_frame, make_frame, open_client
from dask_troubles import TROUBLES, TTL, Trouble, die_in_step, quiet_dask, take_chunk
from disk_tables import model_bytes
from spinney.scale.cluster import level_parts
from spinney.scale.cluster.engine import LostError
from spinney.scale.cluster.file_rows import FileRows, list_pieces
from time_limits import limited

pytestmark = pytest.mark.compiled(reason="what is shown is about clusters, not kernels")
FRAME = make_frame(9000)
FEW = {"n_estimators": 3, "max_leaf_nodes": 8, "random_state": 0}
MODELS = {
    "classes": (spinney.GradientBoostingClassifier(**FEW), "y", False),
    "weighed classes": (spinney.GradientBoostingClassifier(**FEW, class_weight="balanced"), "y", True),
    "numbers": (spinney.GradientBoostingRegressor(**FEW, subsample=0.5), "z", False),
    "quantiles": (spinney.GradientBoostingRegressor(**FEW, loss="absolute_error"), "z", False),
    "forest": (spinney.RandomForestClassifier(n_estimators=3, random_state=0), "y", True),
    "extra-trees": (spinney.ExtraTreesRegressor(n_estimators=2, random_state=0), "z", False),
    "bagging": (spinney.BaggingClassifier(n_estimators=2, random_state=0), "y", False),
    "CART": (spinney.CARTRegressor(min_samples_leaf=5), "z", False),
}


@pytest.fixture(autouse=True)
def time_limit():
    with limited(300):
        yield


@pytest.fixture(autouse=True)
def levels():
    with dask.config.set({"spinney.plan": "levels"}):
        yield


@pytest.fixture(autouse=True)
def quiet():
    with quiet_dask():
        yield


@pytest.fixture(scope="module")
def client():
    """Three workers, in this process."""
    with open_client(3) as client:
        yield client


@pytest.mark.sampled(7)
@pytest.mark.parametrize("n_parts", [1, 2, 3, 7, 64])
@pytest.mark.parametrize("name", MODELS)
def test_the_file_is_that_of_the_table_in_memory(name, n_parts, client, tmp_path):
    model, target, has_weight = MODELS[name]
    ddf = cut_frame(FRAME, n_parts, n_parts, has_empty=n_parts > 2)
    more = {"sample_weight": ddf["w"]} if has_weight else {}
    X, y, here = dask.compute(ddf[FEATURES], ddf[target], more)
    expected = clone(model).fit(X, y, **here)
    fitted = clone(model).fit(ddf[FEATURES], ddf[target], **more)
    assert model_bytes(fitted, tmp_path) == model_bytes(expected, tmp_path)
    assert fitted.get_params() == expected.get_params()
    assert count_keys(client) == 0


@pytest.mark.parametrize("name", ["classes", "forest"])
def test_workers_of_two_threads_have_a_part_each(name, tmp_path, monkeypatch):
    monkeypatch.setattr("spinney.estimators.level_tasks.BLOCK_ROWS", 4096)  # two blocks, for the two threads
    model, target, _ = MODELS[name]
    expected = clone(model).fit(FRAME[FEATURES], FRAME[target])
    ddf = cut_frame(FRAME, 5)
    with (
        LocalCluster(n_workers=2, threads_per_worker=2, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        fitted = clone(model).fit(ddf[FEATURES], ddf[target])
        assert count_keys(client) == 0
    assert model_bytes(fitted, tmp_path) == model_bytes(expected, tmp_path)


@pytest.mark.usefixtures("client")
def test_arrays_of_unknown_lengths_and_targets_here(tmp_path):
    values, y = FRAME[["number", "whole", "holes"]].to_numpy(), FRAME["z"].to_numpy()
    X, lazy = da.from_array(values, chunks=(1777, 3)), da.from_array(y, chunks=5000)
    some = lazy > -0.5
    model = spinney.GradientBoostingRegressor(**FEW)
    kept = some.compute()
    expected = model_bytes(clone(model).fit(values[kept], y[kept]), tmp_path)
    assert model_bytes(clone(model).fit(X[some.rechunk(1777)], lazy[some]), tmp_path) == expected
    assert model_bytes(clone(model).fit(X[some.rechunk(1777)], y[kept]), tmp_path) == expected


@pytest.mark.usefixtures("client")
def test_rows_to_evaluate_on_stop_early(tmp_path):
    ddf, other = cut_frame(FRAME, 4), cut_frame(make_frame(300, seed=5), 3, has_empty=True)
    model = spinney.GradientBoostingClassifier(
        n_estimators=40, n_iter_no_change=1, learning_rate=1.0, scoring="roc_auc", random_state=1
    )
    X, y, X_val, y_val = dask.compute(ddf[FEATURES], ddf["y"], other[FEATURES], other["y"])
    seen = []
    expected = clone(model).fit(X, y, eval_set=[(X_val, y_val)])
    fitted = clone(model).fit(
        ddf[FEATURES],
        ddf["y"],
        eval_set=[(other[FEATURES], other["y"])],
        callbacks=[lambda iteration, _: seen.append(iteration)],
    )
    assert model_bytes(fitted, tmp_path) == model_bytes(expected, tmp_path)
    assert fitted.n_iter_ < 40
    assert seen == list(range(1, fitted.n_iter_ + 1))  # callbacks are called here


@pytest.mark.usefixtures("client")
def test_files_are_read_by_workers(tmp_path):
    folder = tmp_path / "files"
    folder.mkdir()
    for k in range(3):
        FRAME.iloc[k * 3000 : (k + 1) * 3000].to_parquet(folder / f"part-{k}.parquet", row_group_size=1000)
    pieces = list_pieces(folder)
    X, y = FileRows(pieces, FEATURES), FileRows(pieces, ["y"], is_target=True)
    model = spinney.GradientBoostingClassifier(**FEW)
    with dask.config.set({"spinney.plan": "one"}):
        expected = clone(model).fit(X, y)
    assert model_bytes(clone(model).fit(X, y), tmp_path) == model_bytes(expected, tmp_path)


def test_it_is_chosen_where_no_worker_has_memory_for_all_rows(client, monkeypatch):
    from spinney.scale.cluster.dask_engine import DaskEngine

    facts = {f"tcp://a:{k}": {"nthreads": 1, "memory_limit": 6 * 10**8} for k in range(16)}
    large = da.zeros((3_000_000, 20), chunks=(1_500_000, 20))
    with dask.config.set({"spinney.plan": None}):
        model = spinney.GradientBoostingRegressor()
        assert spinney.plan_fit(model, large, large[:, 0]).way == "one"
        monkeypatch.setattr(DaskEngine, "list_workers", lambda _: facts)
        plan = spinney.plan_fit(model, large, large[:, 0])
        assert plan.way == "levels"
        assert plan.worker_bytes < 0.9 * 6e8
        assert "way       levels: every worker has some of the rows" in str(plan)
        for trees in (spinney.RandomForestRegressor(), spinney.CARTRegressor(), spinney.BaggingRegressor()):
            assert spinney.plan_fit(trees, large, large[:, 0]).way == "levels"
        assert spinney.plan_fit(spinney.AdaBoostRegressor(), large, large[:, 0]).way == "one"
        assert spinney.plan_fit(model.set_params(candidates="hessian"), large, large[:, 0]).way == "one"
    with pytest.raises(
        ValueError, match=r"spinney\.plan='levels' is not for this .*candidates='hessian' needs all rows"
    ):
        model.fit(large, large[:, 0])
    with pytest.raises(ValueError, match="AdaBoostRegressor needs all rows at one worker; set it to 'one'"):
        spinney.AdaBoostRegressor().fit(large, large[:, 0])
    with pytest.raises(ValueError, match="y of several columns needs all rows at one worker; set it to 'one'"):
        spinney.RandomForestRegressor().fit(large, large[:, :2])
    with pytest.raises(ValueError, match="init=CARTRegressor needs all rows at one worker; set it to 'one'"):
        spinney.GradientBoostingRegressor(init=spinney.CARTRegressor()).fit(large, large[:, 0])
    with pytest.raises(ValueError, match="missing='surrogate' needs all rows at one worker; set it to 'one'"):
        spinney.CARTRegressor(missing="surrogate").fit(large, large[:, 0])
    del large
    assert count_keys(client) == 0


def test_a_scheduler_that_goes_is_told_and_the_fit_goes_on_elsewhere(tmp_path):
    model = spinney.GradientBoostingClassifier(**FEW | {"n_estimators": 12}, checkpoint=tmp_path / "run")
    ddf = cut_frame(FRAME, 5)
    X, y = dask.compute(ddf[FEATURES], ddf["y"])
    expected = model_bytes(clone(model).set_params(checkpoint=None).fit(X, y), tmp_path)
    with dask.config.set({"distributed.comm.timeouts.connect": "2s"}):
        cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0")
        client = Client(cluster)

        def close_after_four(iteration, _):
            if iteration == 4:
                closing = threading.Thread(target=cluster.close)
                closing.start()
                closing.join(10)

        with client.as_current(), pytest.raises(LostError, match=r"scheduler .* is gone.*checkpoint="):
            clone(model).fit(ddf[FEATURES], ddf["y"], callbacks=[close_after_four])
        client.close()
    assert (tmp_path / "run" / "checkpoint.spn").exists()
    with (
        LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0") as other,
        Client(other),
    ):
        fitted = clone(model).fit(ddf[FEATURES], ddf["y"])
    assert model_bytes(fitted.set_params(checkpoint=None), tmp_path) == expected
    assert not (tmp_path / "run").exists()


# --- real processes ---------------------------------------------------------------------------------------------

N = 70_000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 6)).astype(np.float32)
Y = X[:, 0] + X[:, 1] ** 2 + RNG.normal(size=N)
LAZY_X, LAZY_Y = da.from_array(X, chunks=(9000, 6)), da.from_array(Y, chunks=20_000)
BOOSTING = spinney.GradientBoostingRegressor(n_estimators=10, max_leaf_nodes=15, random_state=3)


def kill_in_steps(numbers, tmp_path):
    """Fits in each of which a worker dies at another step."""
    alone = model_bytes(clone(BOOSTING).fit(X, Y), tmp_path)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        for number in numbers:
            once = tmp_path / f"once-{number}"
            task = functools.partial(die_in_step, number=number, once=str(once))
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(level_parts.LevelParts, "ask", ask_by(task))
                assert model_bytes(clone(BOOSTING).fit(LAZY_X, LAZY_Y), tmp_path) == alone, number
            assert once.exists()
        assert count_keys(client) == 0


def ask_by(task):
    """What asks workers, by a task of the test."""

    def ask(self, name, step, groups):
        jobs = [[self.parts[k], self.order(k, step)] for (k,) in groups]
        yield from self.collect(name, task, jobs, groups)

    return ask


def test_a_worker_dies_in_the_middle(tmp_path):
    kill_in_steps([60], tmp_path)


@pytest.mark.slow
def test_twenty_workers_die_each_in_another_step(tmp_path):
    kill_in_steps([int(np.random.default_rng(seed).integers(1, 100)) for seed in range(20)], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", TROUBLES)
def test_the_model_is_the_same_whatever_goes(name, tmp_path):
    model = clone(BOOSTING).set_params(n_estimators=30)
    alone = model_bytes(clone(model).fit(X, Y), tmp_path)
    with (
        dask.config.set(TTL[name]),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        trouble = threading.Timer(4.0, getattr(Trouble(client, cluster), name))
        trouble.start()
        begun, n_fits = time.monotonic(), 0
        while n_fits == 0 or time.monotonic() - begun < 8.0:  # the trouble falls into one of some fits
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert model_bytes(clone(model).fit(LAZY_X, LAZY_Y), tmp_path) == alone
            n_fits += 1
        trouble.join()
        assert count_keys(client) == 0


@pytest.mark.slow
@pytest.mark.parametrize("way", ["levels", "one"])
def test_partitions_that_dask_has_given_up_are_made_anew(way, tmp_path):
    died = tmp_path / "died"
    died.mkdir()
    chunks = [dask.delayed(take_chunk, pure=True)(k, X, 10_000, str(died)) for k in range(7)]
    lazy = da.concatenate([da.from_delayed(chunk, (10_000, 6), X.dtype) for chunk in chunks])
    alone = model_bytes(clone(BOOSTING).fit(X, Y), tmp_path)
    with (
        dask.config.set({"spinney.plan": way, "distributed.scheduler.allowed-failures": 0}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        assert model_bytes(clone(BOOSTING).fit(lazy, LAZY_Y), tmp_path) == alone
        assert len(list(died.iterdir())) == 2
        assert count_keys(client) == 0


# --- the network ------------------------------------------------------------------------------------------------


def list_sockets():
    """Ports that this process listens on, and both ends of its other connections."""
    import psutil

    found = psutil.Process().net_connections("inet")
    listening = {one.laddr.port for one in found if one.status == psutil.CONN_LISTEN}
    pairs = {(one.laddr.port, one.raddr.port) for one in found if one.status == psutil.CONN_ESTABLISHED}
    return listening, pairs


@pytest.mark.slow
@pytest.mark.parametrize("way", ["levels", "one"])
def test_nothing_but_the_connections_of_dask_is_used_and_all_are_secret(way, tmp_path):
    """While a fit runs on processes by TLS, no port is opened, and none but those of Dask is spoken to."""
    pytest.importorskip("cryptography")
    from distributed import Security

    alone = model_bytes(clone(BOOSTING).fit(X, Y), tmp_path)
    with (
        dask.config.set({"spinney.plan": way}),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            dashboard_address=":0",
            security=Security.temporary(),
            protocol="tls",
        ) as cluster,
        Client(cluster, security=cluster.security) as client,
    ):
        assert client.scheduler.address.startswith("tls://")
        seen = [client.run(list_sockets), {"client": list_sockets()}]
        known = {port for one in seen for listening, _ in one.values() for port in listening}
        is_done = threading.Event()
        looks = []

        def look():
            while not is_done.wait(0.3):
                looks.append(client.run(list_sockets))
                looks.append({"client": list_sockets()})

        looking = threading.Thread(target=look)
        looking.start()
        try:
            assert model_bytes(clone(BOOSTING).fit(LAZY_X, LAZY_Y), tmp_path) == alone
        finally:
            is_done.set()
            looking.join()
        assert len(looks) > 2
        for found in looks:
            for listening, pairs in found.values():
                assert listening <= known
                assert all(here in known or there in known for here, there in pairs)
