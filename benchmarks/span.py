"""What would more processors give? Work and span of fits and predictions by 1 to 32 threads, on one processor.

Two threads of one core disturb each other, and a machine has as many cores as it has: wall time shows little of how a
fit scales. So all threads are pinned to one processor, where none runs beside another, and CPU time is taken of each
part they do. *Work* is the CPU time of all threads. *Span* is the longest chain: the calling thread's own time, and, of
each piece of work that threads share, the part that takes longest (parts that are taken one after the other are dealt
to the thread that is free first; threads that wait for each other within kernels go on when who they wait for has come,
see `lock_meter`). The work of one thread over the span of many is the speed-up that processors could
give; their work over that of one is what the sharing itself costs. That processors share memory is not in it.

The parts of a fit are told by who shares them, in the note of a row; "alone" is the calling thread.
"""

from __future__ import annotations

import heapq
import inspect
import os
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.lock_meter import metered_locks
from benchmarks.runner import Answer, Scale, in_seconds, report
from benchmarks.tables import draw_numeric

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

THREADS = (1, 2, 4, 8, 16, 32)
N_CLASSES, N_ONE_HOT = 7, 44


class Case(NamedTuple):
    """Something that threads share."""

    name: str
    make: Callable[[float], Callable[[int], object]]  # from a share of the rows to what runs with so many threads
    targets: dict[int, float]  # least speed-up by number of threads


class Meter(threading.local):
    """What this thread's time has to be changed by to be a span, for shared work that it waited for or did part of.

    Threads may share work inside of shared work: boosting's rounds are one task of a thread that keeps a team.
    """

    def __init__(self) -> None:
        self.change = 0.0  # seconds: the span of what was shared, minus what this thread did meanwhile
        self.shared = 0.0  # seconds of that span

    def seconds(self) -> float:
        """The span of what this thread has done so far."""
        return time.thread_time() + self.change


def deal(costs: Sequence[float], n_workers: int) -> float:
    """When the last of several parts ends, each begun by the worker that is free first.

    >>> deal([2.0, 1.0, 1.0, 3.0], 2)
    5.0
    """
    free = [0.0] * n_workers
    for cost in costs:
        heapq.heapreplace(free, free[0] + cost)
    return max(free)


class Parts:
    """Work that threads share: what each part costs, and how much of that is the span of work shared inside of it."""

    def __init__(self, n_parts: int, meter: Meter) -> None:
        self.costs, self.inner = [0.0] * n_parts, [0.0] * n_parts
        self.meter = meter

    def time(self, part: int, work: Callable[[], Any]) -> Any:
        """Do a part."""
        start, inner = self.meter.seconds(), self.meter.shared
        result = work()
        self.costs[part] = self.meter.seconds() - start
        self.inner[part] = self.meter.shared - inner
        return result

    def share(self, run: Callable[[], Any], find_span: Callable[[float], float]) -> tuple[Any, float]:
        """Do all parts; the span is found from their costs and from what this thread did meanwhile."""
        start, shared = time.thread_time(), self.meter.shared
        result = run()
        inside = time.thread_time() - start
        span = find_span(inside)
        self.meter.change += span - inside
        self.meter.shared = shared + span
        return result, span


def find_caller() -> str:
    """The function that shares its work."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__") in {"spinney._threads", __name__}:
        frame = frame.f_back
    return "" if frame is None else frame.f_code.co_name


@contextmanager
def metered() -> Iterator[tuple[Meter, Counter[str]]]:  # noqa: PLR0915  a function for each way to share
    """Take the time of every part that threads share; the spans by who shares."""
    from spinney import _threads

    meter, spans = Meter(), Counter[str]()
    crew: Any = _threads._Pool  # noqa: SLF001  threads of one call
    run_team, run_lead, run_pool = _threads.Team.run, _threads.Team.lead, crew.run
    run_map = ThreadPoolExecutor.map

    def team(self: Any, work: Callable[[int], None]) -> None:
        start, before = time.thread_time(), meter.change
        parts = Parts(self.n_workers, meter)
        costs = parts.costs
        _, span = parts.share(
            lambda: run_team(self, lambda t: parts.time(t, lambda: work(t))),
            lambda inside: max(costs) + inside - costs[0],  # what the caller does beside its part is serial
        )
        spans[find_caller()] += span
        # what was done to measure took as long as the shared work, a thousand times a fit
        meter.change = before + span - (time.thread_time() - start)

    def lead(self: Any, follow: Callable[[int], None], work: Callable[[], None]) -> None:
        start, before, n = time.thread_time(), meter.change, len(self.todo)
        times.names[:] = 0  # of the last crew
        costs = [0.0] * (n + 1)  # when each ends, in virtual time
        mine = [0.0]  # CPU time of the caller's part

        def follow_timed(t: int) -> None:
            times.begin(t)
            follow(t)
            costs[t] = times.seconds(t)

        def work_timed() -> None:
            times.begin(n)
            begin = time.thread_time()
            work()
            mine[0] = time.thread_time() - begin
            costs[n] = times.seconds(n)

        run_lead(self, follow_timed, work_timed)
        inside = time.thread_time() - start
        span = max(costs) + inside - mine[0]
        meter.shared += span
        spans[find_caller()] += span
        meter.change = before + span - (time.thread_time() - start)

    def pool(self: Any, bar: Any) -> Any:
        parts, work = Parts(self.n_tasks, meter), self.work
        self.work = lambda task, control: parts.time(task, lambda: work(task, control))
        result, span = parts.share(
            lambda: run_pool(self, bar), lambda inside: max(deal(parts.costs, self.n_workers), inside)
        )
        spans[find_caller()] += span - (sum(parts.inner) if self.n_workers == 1 else 0.0)
        return result

    def spread(self: Any, work: Callable[..., Any], *given: Any) -> Iterator[Any]:
        tasks = list(zip(*given, strict=True))
        parts = Parts(len(tasks), meter)
        result, span = parts.share(
            lambda: list(run_map(self, lambda k: parts.time(k, lambda: work(*tasks[k])), range(len(tasks)))),
            lambda inside: max(deal(parts.costs, self._max_workers), inside),
        )
        spans[find_caller()] += span
        return iter(result)

    _threads.Team.run, _threads.Team.lead, crew.run = team, lead, pool  # type: ignore[method-assign]
    ThreadPoolExecutor.map = spread  # type: ignore[method-assign]
    try:
        with metered_locks() as times:
            yield meter, spans
    finally:
        _threads.Team.run, _threads.Team.lead, crew.run = run_team, run_lead, run_pool  # type: ignore[method-assign]
        ThreadPoolExecutor.map = run_map  # type: ignore[method-assign]


# --- Cases --------------------------------------------------------------------------------------------------


def boost_numbers(share: float) -> Callable[[int], object]:
    from spinney import GradientBoostingClassifier

    X, y = draw_numeric(int(500_000 * share))
    return lambda n: GradientBoostingClassifier(n_estimators=30, n_jobs=n, random_state=0).fit(X, y)


def boost_one_hot(share: float) -> Callable[[int], object]:
    from spinney import GradientBoostingClassifier

    rng = np.random.default_rng(0)
    n_rows = int(465_000 * share)
    numbers = rng.normal(size=(n_rows, 10)).astype(np.float32)
    level = rng.integers(0, N_ONE_HOT, n_rows)
    X = np.hstack([numbers, np.eye(N_ONE_HOT, dtype=np.float32)[level]])
    is_of = level[:, None] % N_CLASSES == np.arange(N_CLASSES)
    y = (numbers[:, :N_CLASSES] + rng.normal(size=is_of.shape) + is_of).argmax(axis=1)
    return lambda n: GradientBoostingClassifier(n_estimators=5, n_jobs=n, random_state=0).fit(X, y)


def boost_letters(share: float) -> Callable[[int], object]:
    from benchmarks.tables import letter
    from spinney import GradientBoostingClassifier

    split = letter(Scale(share, 1))
    if split is None:
        return lambda _: None
    settings = {"max_leaf_nodes": 31, "learning_rate": 0.1, "subsample": 1.0, "max_features": None, "random_state": 0}
    return lambda n: GradientBoostingClassifier(n_estimators=10, n_jobs=n, **settings).fit(split.X, split.y)


def grow_forest(share: float) -> Callable[[int], object]:
    from spinney import RandomForestClassifier

    X, y = draw_numeric(int(100_000 * share))
    return lambda n: RandomForestClassifier(100, n_jobs=n, random_state=0).fit(X, y)


def predict_forest(share: float) -> Callable[[int], object]:
    from spinney import RandomForestClassifier

    X, y = draw_numeric(int(200_000 * share))
    n_fit = max(len(y) // 10, 100)
    model = RandomForestClassifier(100, random_state=0).fit(X[:n_fit], y[:n_fit])
    return lambda n: model.set_params(n_jobs=n).predict_proba(X)


def predict_boosted(share: float) -> Callable[[int], object]:
    from spinney import GradientBoostingClassifier

    X, y = draw_numeric(int(500_000 * share))
    n_fit = max(len(y) // 10, 100)
    model = GradientBoostingClassifier(n_estimators=100, random_state=0).fit(X[:n_fit], y[:n_fit])
    return lambda n: model.set_params(n_jobs=n).predict_proba(X)


CASES = (
    Case("boosting, 500,000 x 28, 30 rounds", boost_numbers, {8: 6.0, 32: 16.0}),
    Case("boosting, 465,000 x 54 with 44 one-hot, 7 classes, 5 rounds", boost_one_hot, {}),
    Case("boosting, letter 16,000 x 16, 26 classes, 10 rounds", boost_letters, {}),
    Case("random forest, 100,000 x 28, 100 trees", grow_forest, {32: 24.0}),
    Case("predict, 100 boosted trees, 500,000 rows", predict_boosted, {}),
    Case("predict, forest of 100 trees, 200,000 rows", predict_forest, {}),
)


def weigh(work: Callable[[int], object], n_threads: int) -> tuple[float, float, Counter[str]]:
    """Work and span of a call, and the span by part; "alone" is what the calling thread does by itself.

    Work is that of a call without the meter, which has a part in every lock that is taken.
    """
    start = time.process_time()
    work(n_threads)
    total = time.process_time() - start
    with metered() as (meter, spans):
        begin = meter.seconds()
        work(n_threads)
        span = meter.seconds() - begin
    return total, span, Counter({"alone": span - sum(spans.values()), **spans})


def run(scale: Scale) -> list[Answer]:
    answers: list[Answer] = []
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})
    try:
        for case in CASES:
            work = case.make(scale.share)
            work(1)  # compiles
            runs = {n: min((weigh(work, n) for _ in range(2)), key=lambda one: one[1]) for n in THREADS}
            alone = runs[1][0]
            for n, (total, span, parts) in runs.items():
                told = ", ".join(f"{name} {in_seconds(seconds)}" for name, seconds in parts.most_common(4))
                target = case.targets.get(n)
                report(
                    answers,
                    Answer(
                        "span",
                        f"{case.name}, {n} {'thread' if n == 1 else 'threads'}",
                        f"work {in_seconds(total)}, span {in_seconds(span)}",
                        "",
                        alone / span,
                        "x by span",
                        target,
                        note=f"work {total / alone:.2f} x that of one thread; span by part: {told}",
                    ),
                )
    finally:
        os.sched_setaffinity(0, processors)
    return answers
