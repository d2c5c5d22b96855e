"""An engine whose workers are those of a Dask cluster: tasks with readable keys, and nothing left behind.

What a worker holds is the result of a task like any other, so that Dask makes it again where it is lost. What Dask
gives up (`KilledWorker`, keys that were cancelled, `client.restart()`) is begun again under a new key. There are no
actors, no scattered data and no sockets.
"""

from __future__ import annotations

import contextlib
import math
import secrets
import threading
import time
import warnings
from collections import deque
from concurrent.futures import wait
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from spinney.scale.cluster.engine import NOTHING, PATIENCE, Done, Engine, Failed, Held, Lost, LostError, find_home
from spinney.scale.cluster.workers import (
    compare_workers,
    describe_process,
    lacks_kernels,
    run_alike,
    trim_later,
    write_down,
)
from spinney.scale.scan import tell

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from spinney.scale.cluster.engine import Outcome

POLL_SECONDS = 0.2
LINGER_SECONDS = 0.005  # that more results are waited for once one has come: one message fetches all of them
SEND_SECONDS = 0.001  # between two messages of the client, of which Dask sends one in 10 ms: passes are as short
LOOK_SECONDS = 1.0  # between two looks at which workers there are
TELL_SECONDS = 10.0  # without any worker, after which it is said
LONGEST_SECONDS = 300.0  # without any worker, after which it is given up
IO_RETRIES = 2  # of partitions: reading fails now and then; our own tasks never do
SLOW_SECONDS = 5.0  # where a result takes longer to come straight from a worker, others come by way of the scheduler
AHEAD = 2  # tasks for each thread of a worker: one that runs, one that waits


def find_client() -> Any:
    """The current client of Dask; None where there is none."""
    import sys

    if "distributed" not in sys.modules:  # nobody has made a client
        return None
    from distributed import default_client

    try:
        client = default_client()
    except ValueError:
        return None
    if client.asynchronous:
        raise ValueError(
            "the current Dask client is asynchronous, and fit waits for its work: make a Client(...) without "
            "asynchronous=True, or call fit in a thread of its own, await asyncio.to_thread(model.fit, X, y)"
        )
    return client


class Part:
    """A partition of a collection, as a source of values that are held."""

    def __init__(self, delayed: Any) -> None:
        self.delayed = delayed
        self.future: Any = None


class DaskEngine(Engine):
    """Tasks on the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Any) -> None:
        import dask

        super().__init__(int(dask.config.get("spinney.patience", PATIENCE)))
        self.client, self.id = client, secrets.token_hex(4)
        self.no_workers_seconds = float(dask.config.get("spinney.no-workers-timeout", LONGEST_SECONDS))
        self.here = write_down(describe_process())
        self.n_keys = 0
        self.done: SimpleQueue[Any] = SimpleQueue()
        self.running: set[Any] = set()
        self.spent: list[Any] = []  # futures whose results have come; let go of once the next tasks are under way
        self.helds: dict[int, Held] = {}
        self.parts: list[Part] = []
        self.lacking: list[str] = []  # a worker of each host without kernels
        self.first_at: deque[str] = deque()  # where tasks are begun that others wait for
        self.n_first = 0
        self.is_direct = True
        self.doubtful: list[str] = []  # keys of losses: a restart may have left them with the scheduler
        self.there: set[str] = set()  # addresses of workers, when they were last looked at
        self.n_now = self.n_most = self.n_threads = 0
        self.looked = self.told = float("-inf")
        self.seen = time.monotonic()
        self.look()
        self.hurry = contextlib.ExitStack()  # last: nobody closes what was not made
        self.hurry.enter_context(hurrying(getattr(client, "scheduler_comm", None)))

    # --- workers ---

    def list_workers(self) -> dict[str, Any]:
        """Facts about the workers, by address."""
        return dict(self.client.scheduler_info(n_workers=-1)["workers"])

    def check_workers(self) -> None:
        """Refuse workers that do not compute the same bits, and see which hosts have no kernels yet."""
        compare_workers(describe_process(), self.client.run(describe_process, on_error="return"))
        lacking = self.client.run(lacks_kernels, on_error="ignore")
        hosts: dict[str, str] = {}
        for address, facts in self.list_workers().items():
            if lacking.get(address):
                hosts.setdefault(facts["host"], address)
        self.lacking = list(hosts.values())

    def compile_first(self) -> None:
        """Let one task on each host without kernels end before others begin: they would all compile at once."""
        self.first_at, self.n_first, self.lacking = deque(self.lacking), len(self.lacking), []

    def look(self) -> None:
        """Count workers and threads, now and then."""
        now = time.monotonic()
        if now - self.looked < LOOK_SECONDS:
            return
        self.looked = now
        self.refuse_dead()
        threads = self.client.nthreads()
        self.there, self.n_now, self.n_threads = set(threads), len(threads), sum(threads.values())
        self.n_most = max(self.n_most, self.n_now)
        if self.n_now:
            self.seen = self.told = now
            return
        if now - self.seen > self.no_workers_seconds:
            raise LostError(
                f"the cluster has had no worker for {now - self.seen:.0f} seconds: start some, and fit again"
            )
        if now - self.told > TELL_SECONDS:
            self.told = now
            tell(f"the cluster at {self.client.scheduler.address} has no workers: waiting for some")

    def refuse_dead(self) -> None:
        """Raise where there is no scheduler any more: nothing can be begun again."""
        if self.client.status in {"closed", "closing"}:
            raise LostError(
                "the scheduler of the cluster is gone, or the client was closed: with checkpoint= the same fit goes on "
                "from its last whole trees, on any other cluster or here"
            )

    # --- the interface ---

    def count_slots(self) -> int:
        """Two tasks for each thread, so that none waits for the client; one for each host that has to compile first."""
        self.look()
        return self.n_first or max(AHEAD * self.n_threads, 1)

    def start(self, name: str, task: Callable[..., Any], part: Any, held: Held | None) -> Any:
        """Submit a task under a new key."""
        self.refuse_dead()
        given = self.stand_in(part)
        values = (given,) if held is None else (self.realise(held), given)
        home = (
            find_home(part) if type(part) is list else None
        )  # Dask would now and then move a part, and lose its state
        at = self.first_at.popleft() if self.first_at else home
        future = self.submit(name, run_alike, self.here, task, *values, at=at)
        future.add_done_callback(self.done.put)
        self.running.add(future)
        return future

    def submit(self, name: str, function: Callable[..., Any], *arguments: Any, at: str | None = None) -> Any:
        """Submit a call; at: the address of a worker, if another one is as good."""
        self.n_keys += 1
        place = {} if at is None else {"workers": [at], "allow_other_workers": True}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph", UserWarning)  # a checkpoint that goes along
            return self.client.submit(function, *arguments, key=f"spinney-{name}-{self.id}-{self.n_keys}", **place)

    def wait(self) -> list[tuple[Any, Outcome]]:
        """What has become of the tasks that have ended."""
        self.spent.clear()  # a message of its own, after which Dask would wait before it sends the next tasks
        futures = []
        try:
            futures.append(self.done.get(timeout=POLL_SECONDS))
            while len(futures) < len(self.running):
                futures.append(self.done.get(timeout=LINGER_SECONDS))
        except Empty:
            pass
        if self.on_idle is not None:
            self.on_idle()
        if not futures:
            self.look()  # and raises where there is nobody to wait for
        futures = [future for future in futures if future in self.running]  # one that was dropped may still report
        self.running.difference_update(futures)
        self.spent += futures
        outcomes = self.judge(futures)
        self.doubtful += [future.key for future, outcome in outcomes if isinstance(outcome, Lost)]
        self.n_first = max(self.n_first - sum(isinstance(outcome, Done) for _, outcome in outcomes), 0)
        return outcomes

    def judge(self, futures: list[Any]) -> list[tuple[Any, Outcome]]:
        """What has become of tasks; the results of all that have ended well come in one message."""
        well = [future for future in futures if future.status == "finished"]
        others = [future for future in futures if future.status != "finished"]
        if len(well) > 1:
            try:
                results = self.fetch(well)
            except Exception:  # noqa: BLE001  (whichever it is of, is seen one by one)
                others += well
            else:
                return [*zip(well, map(Done, results), strict=True), *((one, self.judge_one(one)) for one in others)]
        else:
            others += well
        return [(future, self.judge_one(future)) for future in others]

    def judge_one(self, future: Any) -> Outcome:
        """What has become of a task."""
        import asyncio
        import concurrent.futures

        from distributed import KilledWorker
        from distributed.client import FutureCancelledError
        from distributed.comm import CommClosedError

        cancelled = asyncio.CancelledError, concurrent.futures.CancelledError, FutureCancelledError
        gone = (KilledWorker, CommClosedError, *cancelled)
        try:
            if future.status == "error":
                error = future.exception()
                return Lost(error) if isinstance(error, gone) else Failed(error)
            (result,) = self.fetch([future])
        except (*gone, OSError, TimeoutError) as error:  # the last two on the way here
            return Lost(error.with_traceback(None))  # whose frames would keep futures, and so keys, alive
        return Done(result)

    def fetch(self, futures: list[Any]) -> list[Any]:
        """The results of tasks that have ended: straight from the workers, as long as that is quick."""
        if self.is_direct:
            begun = time.monotonic()
            found = self.gather(futures, is_direct=True)
            if found is not None:
                self.is_direct = time.monotonic() - begun < SLOW_SECONDS * len(futures)
                return found
        found = self.gather(futures, is_direct=False)
        assert found is not None
        return found

    def gather(self, futures: list[Any], *, is_direct: bool) -> list[Any] | None:
        """The same by Dask's own `gather`, which waits as long as it takes: meanwhile we look who is still there.

        What is lost on the way is computed anew, by the workers that there are. None: a worker has gone, and may be the
        one that is asked straight, which has been stopped and will never answer.
        """
        import asyncio

        async def ask() -> list[Any]:
            found: list[Any] = await self.client.gather(futures, direct=is_direct, asynchronous=True)
            return found

        asked = asyncio.run_coroutine_threadsafe(ask(), self.client.loop.asyncio_loop)
        try:
            while True:
                before = self.there
                wait([asked], timeout=LOOK_SECONDS)
                if asked.done():
                    return asked.result()
                self.look()  # and raises where there is nobody to wait for
                if is_direct and before - self.there:
                    return None
        finally:
            asked.cancel()  # if it is not done

    def drop(self, tickets: Iterable[Any]) -> None:
        """Cancel tasks."""
        futures = [future for future in tickets if future in self.running]
        self.running.difference_update(futures)
        if futures and self.client.status == "running":
            self.client.cancel(futures, force=True)

    # --- what workers hold ---

    def realise(self, held: Held) -> Any:
        """The future of a value; submitted if it was not yet, or lost."""
        if held.value is NOTHING:
            parts = [one for one in walk(held.sources, is_pending) if isinstance(one, Part)]
            self.load(parts)
            given = map(self.stand_in, held.sources)
            at = self.find_largest() if held.is_large else self.place(held.turn) or find_home(held.sources)
            held.value = self.submit(held.name, run_alike, self.here, held.make, *given, at=at)
            self.helds[id(held)] = held
            for part in parts:  # the scheduler keeps them until they are used, and no longer
                part.future = None
        return held.value

    def hold_all(self, values: list[Held]) -> None:
        """Submit values; partitions that several are made of are computed once."""
        parts = [one for one in walk(values, is_pending) if isinstance(one, Part)]
        self.load(parts)
        futures = [part.future for part in parts]
        for held in values:
            for part, future in zip(parts, futures, strict=True):
                part.future = future
            self.realise(held)
        for part in parts:
            part.future = None

    def place(self, turn: int | None) -> str | None:
        """The address of a worker for values of a turn, each thread of the cluster one after the other."""
        if turn is None:
            return None
        threads = self.client.nthreads()
        slots = [address for address in sorted(threads) for _ in range(threads[address])]
        return slots[turn % len(slots)] if slots else None

    def find_largest(self) -> str | None:
        """The address of the worker with most memory; None where all have as much."""
        limits = {address: facts["memory_limit"] or math.inf for address, facts in self.list_workers().items()}
        return max(limits, key=lambda address: limits[address]) if len(set(limits.values())) > 1 else None

    def load(self, parts: list[Part]) -> None:
        """Let workers compute the partitions that are not there."""
        missing = [part for part in parts if part.future is None]
        if missing:
            futures = self.client.compute([part.delayed for part in missing], retries=IO_RETRIES)
            for part, future in zip(missing, futures, strict=True):
                part.future = future
            self.parts += missing

    def stand_in(self, value: Any) -> Any:
        """A value with futures in place of what workers hold."""
        if isinstance(value, Held):
            return self.realise(value)
        if isinstance(value, Part):
            self.load([value])
            return value.future
        return [self.stand_in(item) for item in value] if type(value) is list else value

    def mend(self, values: Iterable[Any]) -> None:
        """Forget futures that are lost: they are submitted again when they are next asked for.

        Of all that there is: what stays lost would keep the scheduler from making anew what it was made of, and be one
        more loss when its turn comes.
        """
        killed = {}
        for one in walk([*values, *self.helds.values(), *self.parts]):
            if isinstance(one, Part) and is_gone(one.future):
                if one.future.status == "error":
                    killed[one.future.key] = one.future
                one.future = None
            elif isinstance(one, Held) and one.value is not NOTHING and is_gone(one.value):
                one.value, one.home = NOTHING, None
        if killed and self.client.status == "running":
            # a partition has the key that its collection gave it: unless that is forgotten, it stays as it is
            self.client.cancel(list(killed.values()), force=True)

    def release(self, values: Iterable[Any]) -> None:
        """Let workers forget values, and partitions that they were made of; the scheduler knows how they are made."""
        for one in walk(values):
            if isinstance(one, Part):
                one.future = None
            else:
                one.value = NOTHING

    def forget(self, values: Iterable[Held]) -> None:
        """Let workers forget values, and not what they were made of."""
        for held in values:
            held.value = NOTHING
            self.helds.pop(id(held), None)

    def count_threads(self) -> int:
        """Threads of all workers."""
        self.look()
        return max(self.n_threads, 1)

    def memory_each(self) -> int | None:
        """Bytes of memory for each thread, of the worker with least; None: no limit."""
        workers = self.list_workers().values()
        limits = [int(facts["memory_limit"]) // facts["nthreads"] for facts in workers if facts["memory_limit"]]
        return min(limits, default=None)

    def threads_each(self) -> int:
        """Threads of each worker, where all have as many."""
        each = set(self.client.nthreads().values())
        return max(each) if len(each) == 1 else 1

    def trim(self) -> None:
        """Have workers give memory back to the system; nobody waits for it, since one may have been stopped."""

        def ask() -> None:
            with contextlib.suppress(Exception):  # the cluster may be gone meanwhile
                self.client.run(trim_later, on_error="ignore")

        threading.Thread(target=ask, name="spinney-trim", daemon=True).start()

    def close(self) -> None:
        """Let go of everything on the cluster."""
        self.hurry.close()
        self.drop(list(self.running))
        self.spent.clear()
        self.release([*self.helds.values(), *self.parts])
        self.helds, self.parts = {}, []
        left = {key for key in list(self.client.futures) if f"-{self.id}-" in str(key)}  # which a traceback may hold
        left.update(self.doubtful)
        if left and self.client.status == "running":
            from distributed import Future

            self.client.cancel([Future(key, self.client) for key in left], force=True)


@contextlib.contextmanager
def hurrying(stream: Any) -> Iterator[None]:
    """Have a client send at once what it is told, as far as Dask lets us, until the last fit by it is over."""
    usual = getattr(stream, "interval", None)
    if usual is None:
        yield
        return
    with _turn:
        held = _hurried.setdefault(id(stream), [usual, 0])
        held[1] += 1
        stream.interval = min(usual, SEND_SECONDS)
    try:
        yield
    finally:
        with _turn:
            held[1] -= 1
            if not held[1]:
                stream.interval = held[0]
                del _hurried[id(stream)]


_hurried: dict[int, list[Any]] = {}  # by streams, which fits in several threads may share: usual interval, fits
_turn = threading.Lock()


def walk(values: Iterable[Any], is_entered: Callable[[Held], bool] | None = None) -> Iterator[Any]:
    """All values that are held, and partitions, that values are made of, and themselves; is_entered: which of them."""
    for value in values:
        if isinstance(value, Held):
            yield value
            if is_entered is None or is_entered(value):
                yield from walk(value.sources, is_entered)
        elif isinstance(value, Part):
            yield value
        elif type(value) is list:
            yield from walk(value, is_entered)


def is_pending(held: Held) -> bool:
    """Whether a value is yet to be made."""
    return held.value is NOTHING


def is_gone(future: Any) -> bool:
    """Whether Dask has given a future up."""
    return future is not None and future.status in {"cancelled", "lost", "error"}
