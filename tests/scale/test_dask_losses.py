"""Workers and schedulers that go while a fit runs: the same bytes each time, and nothing left on the cluster."""

import functools
import os
import signal
import threading
import time
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from sklearn.base import clone

import spinney
from dask_tables import count_keys
from dask_troubles import TROUBLES, TTL, Trouble, quiet_dask
from disk_tables import model_bytes
from spinney.estimators import cluster_tasks
from spinney.scale.cluster.engine import LostError
from time_limits import limited

pytestmark = pytest.mark.compiled(reason="what is shown is about processes, not kernels")
N, F = 6000, 6
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, F))
Y = X[:, 0] + X[:, 1] ** 2 + RNG.normal(size=N)
LAZY_X, LAZY_Y = da.from_array(X, chunks=(700, F)), da.from_array(Y, chunks=1000)
FOREST = spinney.RandomForestRegressor(n_estimators=40, oob_score=True, random_state=3)


@pytest.fixture(autouse=True)
def time_limit():
    with limited(600):
        yield


@pytest.fixture(autouse=True)
def quiet():
    with quiet_dask():
        yield


def start_cluster(n_workers, **options):
    return LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0", **options)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["trees", "levels", "one"])
@pytest.mark.parametrize("name", TROUBLES)
def test_the_model_is_the_same_whatever_goes(name, way, tmp_path, monkeypatch):
    model = clone(FOREST) if way != "one" else spinney.GradientBoostingRegressor(n_estimators=150, random_state=0)
    if way == "one":
        model.set_params(checkpoint=tmp_path / "run")
        monkeypatch.setattr("spinney.estimators.cluster_fits.SECONDS", 0.3)
    alone = model_bytes(clone(model).set_params(checkpoint=None).fit(X, Y), tmp_path)
    with dask.config.set({"spinney.plan": way, **TTL[name]}), start_cluster(2) as cluster, Client(cluster) as client:
        trouble = threading.Timer(2.0, getattr(Trouble(client, cluster), name))
        trouble.start()
        begun, n_fits = time.monotonic(), 0
        while n_fits == 0 or time.monotonic() - begun < 5.0:  # the trouble falls into one of some fits
            fitted = clone(model).fit(LAZY_X, LAZY_Y)
            assert model_bytes(fitted, tmp_path) == alone
            n_fits += 1
        trouble.join()
        assert count_keys(client) == 0


@pytest.mark.slow
@pytest.mark.parametrize("way", ["levels", "trees"])
def test_a_worker_over_its_memory_limit_is_one_that_goes(way, tmp_path):
    """Its nanny ends it; the fit goes on, and the next one does."""
    model = spinney.RandomForestRegressor(n_estimators=12, random_state=1)
    alone = model_bytes(clone(model).fit(X, Y), tmp_path)
    with (
        dask.config.set({"spinney.plan": way}),
        start_cluster(2, memory_limit="1 GB") as cluster,
        Client(cluster) as client,
    ):
        before = set(client.run(os.getpid).values())
        trouble = threading.Timer(1.0, Trouble(client, cluster).eat)
        trouble.start()
        end = time.monotonic() + 120
        while set(client.run(os.getpid, on_error="ignore").values()) >= before:
            assert model_bytes(clone(model).fit(LAZY_X, LAZY_Y), tmp_path) == alone
            assert time.monotonic() < end
        trouble.join()
        client.wait_for_workers(2, timeout=60)
        assert model_bytes(clone(model).fit(LAZY_X, LAZY_Y), tmp_path) == alone
        assert count_keys(client) == 0


def die_in_tree(sown, part, number, once):
    """Grow trees; the first worker that is to grow a certain one ends at once."""
    if part[0] <= number < part[1] and not Path(once).exists():
        Path(once).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return cluster_tasks.grow_range(sown, part)


@pytest.mark.slow
def test_twenty_workers_die_each_of_another_tree(tmp_path, monkeypatch):
    model = clone(FOREST).set_params(n_estimators=20)
    alone = model_bytes(clone(model).fit(X, Y), tmp_path)
    with dask.config.set({"spinney.plan": "trees"}), start_cluster(2) as cluster, Client(cluster) as client:
        for seed in range(20):
            once = tmp_path / f"once-{seed}"
            number = int(np.random.default_rng(seed).integers(20))
            task = functools.partial(die_in_tree, number=number, once=str(once))
            monkeypatch.setattr("spinney.estimators.cluster_fits.grow_range", task)
            assert model_bytes(clone(model).fit(LAZY_X, LAZY_Y), tmp_path) == alone, seed
            assert once.exists()
        assert count_keys(client) == 0


def die(*_):
    """What runs out of memory ends so."""
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_work_that_kills_every_worker_is_given_up_with_the_cause(monkeypatch):
    monkeypatch.setattr("spinney.estimators.cluster_fits.grow_range", die)
    settings = {"spinney.plan": "trees", "distributed.scheduler.allowed-failures": 1, "spinney.patience": 1}
    with (
        dask.config.set(settings),
        start_cluster(2) as cluster,
        Client(cluster) as client,
    ):
        with pytest.raises(LostError, match=r"lost 2 times without a result .*KilledWorker.*give them more"):
            clone(FOREST).fit(LAZY_X, LAZY_Y)
        assert count_keys(client) == 0


def test_a_scheduler_that_goes_is_told_and_the_fit_goes_on_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr("spinney.estimators.cluster_fits.TASK_SECONDS", 0.0)  # a tree a task
    model = clone(FOREST).set_params(n_estimators=60, checkpoint=tmp_path / "run")
    alone = model_bytes(clone(model).set_params(checkpoint=None).fit(X, Y), tmp_path)
    with dask.config.set({"spinney.plan": "trees", "distributed.comm.timeouts.connect": "2s"}):
        cluster = start_cluster(2, processes=False)
        client = Client(cluster)
        notes = []

        def close_after_ten(_):
            notes.append(1)
            if len(notes) == 10:
                threading.Thread(target=cluster.close).start()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("spinney.estimators.checkpoints.Checkpoint.note", close_after_ten)
            with pytest.raises(LostError, match=r"scheduler .* is gone.*checkpoint="):
                clone(model).fit(LAZY_X, LAZY_Y)
        client.close()
        assert (tmp_path / "run" / "checkpoint.spn").exists()
        with start_cluster(1, processes=False) as other, Client(other):
            assert model_bytes(clone(model).fit(LAZY_X, LAZY_Y), tmp_path) == alone
    assert not (tmp_path / "run").exists()
