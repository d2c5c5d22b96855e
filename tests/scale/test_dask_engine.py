"""What the engine of Dask does with its client: messages sent at once for a while, results that are gone meanwhile."""

import asyncio
import threading
import time

import pytest
from distributed import Client, LocalCluster, get_worker

import spinney
from spinney.scale.cluster.choice import LEVELS, ONE, TREES, choose_way
from spinney.scale.cluster.collections import PartSize
from spinney.scale.cluster.dask_engine import DaskEngine
from spinney.scale.cluster.engine import Done, Lost, LostError
from time_limits import limited

pytestmark = pytest.mark.compiled(reason="what is shown is about clusters, not kernels")


@pytest.fixture(autouse=True)
def time_limit():
    with limited(120):
        yield


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def double(part):
    return 2 * part


def finish(engine, parts):
    """Tasks that have ended, and whose results have not been fetched."""
    tickets = [engine.start("double", double, part, None) for part in parts]
    while any(ticket.status != "finished" for ticket in tickets):
        time.sleep(0.01)
    return tickets


def test_the_client_sends_as_it_did_before_once_the_last_fit_is_over(client):
    usual = client.scheduler_comm.interval
    first, second = DaskEngine(client), DaskEngine(client)
    first.close()
    assert client.scheduler_comm.interval < usual
    second.close()
    assert client.scheduler_comm.interval == usual


def test_an_engine_that_cannot_begin_leaves_the_client_as_it_was(client, monkeypatch):
    usual = client.scheduler_comm.interval

    def fail(_):
        raise LostError("gone")

    monkeypatch.setattr(DaskEngine, "look", fail)
    with pytest.raises(LostError):
        DaskEngine(client)
    assert client.scheduler_comm.interval == usual


@pytest.mark.parametrize("n_parts", [1, 3])
def test_a_result_that_is_cancelled_before_it_is_fetched_is_a_loss(client, n_parts):
    with DaskEngine(client) as engine:
        tickets = finish(engine, range(n_parts))
        gather, calls = engine.gather, []

        def cancel_first(futures, *, is_direct):
            if not calls:
                client.cancel(tickets[:1], force=True)
            calls.append(futures)
            return gather(futures, is_direct=is_direct)

        engine.gather = cancel_first
        found = dict(engine.judge(tickets))
        assert isinstance(found[tickets[0]], Lost)
        assert all(isinstance(found[ticket], Done) for ticket in tickets[1:])


def test_a_worker_that_never_answers_is_not_waited_for_once_the_scheduler_has_given_it_up(client, monkeypatch):
    """Its results come by way of the scheduler, which has them computed anew."""
    real, waiting = client.gather, threading.Event()

    def stall(futures, *, direct, asynchronous):
        if not direct:
            return real(futures, direct=False, asynchronous=asynchronous)

        async def never():
            waiting.set()
            await asyncio.Event().wait()

        return never()

    with DaskEngine(client) as engine:
        tickets = finish(engine, range(3))
        engine.there.add("tcp://stopped:1")
        monkeypatch.setattr(client, "gather", stall)
        assert [outcome.result for _, outcome in engine.judge(tickets)] == [0, 2, 4]
        assert waiting.is_set()
        assert engine.is_direct


def test_memory_is_that_of_the_worker_with_least_of_those_with_a_limit(client, monkeypatch):
    facts = [{"memory_limit": limit, "nthreads": 2} for limit in (0, 8 << 30, 4 << 30)]
    with DaskEngine(client) as engine:
        monkeypatch.setattr(engine, "list_workers", lambda: dict(enumerate(facts)))
        assert engine.memory_each() == 2 << 30
        monkeypatch.setattr(engine, "list_workers", lambda: {0: facts[0]})
        assert engine.memory_each() is None


def test_what_one_worker_holds_goes_to_the_largest(client, monkeypatch):
    small, large = list(client.nthreads())
    with DaskEngine(client) as engine:
        assert engine.find_largest() is None
        facts = {small: {"memory_limit": 1 << 30}, large: {"memory_limit": 2 << 30}}
        monkeypatch.setattr(engine, "list_workers", lambda: facts)
        for address, limit in ((large, 1 << 30), (small, 0)):  # 0: none
            facts[small]["memory_limit"] = limit
            held = engine.hold("rows", double, 1)
            held.is_large = True
            assert engine.run("where", find_worker, None, held) == address


def find_worker(_, __):
    return get_worker().address


def test_trees_are_grown_by_all_workers_only_where_the_smallest_has_room_for_the_codes():
    forest = spinney.RandomForestClassifier(n_estimators=500)
    sizes = [[PartSize(1_000_000, 28, 28 * 8_000_000)]]
    ways = []
    for limit in (8 << 30, 100 << 20, 0):
        workers = {k: {"nthreads": 1, "memory_limit": of} for k, of in enumerate([8 << 30, limit])}
        ways.append(choose_way(forest, sizes, workers, gaps={TREES: None, LEVELS: None}, forced=None).way)
    assert ways == [TREES, ONE, TREES]
