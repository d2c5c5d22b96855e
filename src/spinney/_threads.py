"""Threads over tasks: how many are worth starting, and how they run, fail and stop.

The kernels release the lock of the interpreter, so threads are enough. The calling thread does none of the work: it
waits in short polls, ready for Ctrl-C, takes the results in task order and draws the progress bar.

    caller   task numbers ──todo──►  worker 0 .. n - 1   ──done──►  caller: results[task], on_done in order

Threads are made for each call. That costs 140 µs a worker, start to end, where handing a task to a thread that is kept
costs 20 µs; but two workers are worth it from 10 ms of work on only, and then lose about 5 %. In return nothing
outlives a call: no idle threads, and nothing for the child of a fork to inherit, wait for or rebuild.

No wait is without an end. The modules of kernels are imported before threads start, because an import in the main
thread that Ctrl-C has cut short can leave a lock behind for which a worker's import would wait. Whoever waits for a
worker looks whether it is still alive, and after a failure waits for so long and no longer.
"""

from __future__ import annotations

import contextlib
import contextvars
import math
import os
import sys
import threading
import time
from numbers import Integral
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from spinney._jit import kernels
from spinney._types import CONTROL_SIZE, CONTROL_STOP

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

SHARE_SECONDS = 0.005  # of work make a thread of its own worth starting: 35 times what the thread costs
POLL_SECONDS = 0.05  # Windows does not wake a waiting thread for Ctrl-C
FAREWELL_SECONDS = 0.5  # after an interrupt, a task that does not look at the stop flag is left to itself
FAILURE_SECONDS = 60.0  # the same after another task has failed: a compile cannot look at the flag
PROGRESS_SECONDS = 1.0  # shorter calls show no bar
REFRESH_SECONDS = 0.1
WINDOW = 2  # tasks begun and not yet taken by on_done, per worker

_here = threading.local()  # control: that of the call whose worker this thread is


# --- How many ---------------------------------------------------------------------------------------------------


def count_workers(n_jobs: int | None, n_tasks: int, seconds: float) -> int:
    """How many threads to use for `n_tasks` tasks that take about `seconds` of CPU time together.

    Parameters
    ----------
    n_jobs : int or None
        An upper bound; negative numbers count back from the CPUs of this process, -1 being all of them. None stands
        for what the work is worth: no thread with less than 5 ms to do, no more threads than CPUs (affinity, CPU quota
        and LOKY_MAX_CPU_COUNT are respected) or than an active ``joblib.parallel_config`` allows, and one thread
        inside a worker of joblib or multiprocessing.
    n_tasks : int
        There are never more threads than tasks.
    seconds : float
        An estimate; looked at for None only.

    Returns
    -------
    int
        At least 1. Always 1 in a thread of `run_tasks`; at most its share of the CPUs in a worker of joblib.

    Examples
    --------
    >>> count_workers(4, 100, 1.0)
    4
    >>> count_workers(None, 100, 0.001)
    1
    """
    check_jobs(n_jobs)
    most = n_tasks
    if n_jobs is None:
        most = int(min(most, seconds / SHARE_SECONDS))
    if most <= 1 or n_jobs == 1 or is_pool_thread():
        return 1
    return max(1, min(_most_workers(n_jobs), most))


def check_jobs(n_jobs: Any) -> None:
    """Raise unless it is None or a number of threads."""
    if not isinstance(n_jobs, Integral | None):
        raise TypeError(f"n_jobs must be a whole number or None, not {n_jobs!r:.40}")
    if n_jobs == 0:
        raise ValueError(_NO_JOBS)


_NO_JOBS = (
    "n_jobs == 0 in Parallel has no meaning: give a positive number, -1 for all CPUs, or None to let the work decide"
)


def _most_workers(n_jobs: int | None) -> int:
    """What n_jobs and the surroundings allow, whatever the work."""
    try:
        from joblib import cpu_count
        from joblib.parallel import SequentialBackend, get_active_backend
    except ImportError:  # `load_predictor` needs NumPy and the kernels only
        return _most_alone(n_jobs)
    backend, active_jobs = get_active_backend()
    is_nested = (backend.nesting_level or 0) > 0  # in a worker of joblib
    if n_jobs is None:
        if is_nested or isinstance(backend, SequentialBackend) or _is_daemonic():
            return 1
        n_jobs = -1 if active_jobs is None else int(active_jobs)
        if n_jobs == 0:
            raise ValueError(_NO_JOBS)
    if is_nested:
        # As many workers as CPUs may be at work beside this one. joblib tells its processes their share this way.
        share = os.environ.get("OMP_NUM_THREADS", "") if threading.current_thread() is threading.main_thread() else ""
        n_cpus = int(share) if share.isdecimal() else 1
        return min(n_jobs, n_cpus) if n_jobs > 0 else n_cpus + 1 + n_jobs
    return n_jobs if n_jobs > 0 else int(cpu_count()) + 1 + n_jobs


def n_cores() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _most_alone(n_jobs: int | None) -> int:
    """The same without joblib, of which there are no workers then."""
    n_cpus = n_cores()
    if n_jobs is None:
        return 1 if _is_daemonic() else n_cpus
    return n_jobs if n_jobs > 0 else n_cpus + 1 + n_jobs


def _is_daemonic() -> bool:
    """Whether this is a worker process of a multiprocessing pool, one of as many as its owner wanted."""
    from multiprocessing import current_process

    return current_process().daemon


def is_pool_thread() -> bool:
    """Whether the calling thread is a worker of `run_tasks`."""
    return getattr(_here, "control", None) is not None


# --- Running ----------------------------------------------------------------------------------------------------


def run_tasks(
    work: Callable[[int, NDArray[np.int64]], T],
    n_tasks: int,
    n_workers: int,
    *,
    on_done: Callable[[int, T], None] | None = None,
    is_short: bool = False,
    label: str = "",
    unit: str = "trees",
    n_units: int | None = None,
    verbose: bool = False,
) -> list[T]:
    """Run ``work(task, control)`` for task 0 .. n_tasks - 1; return the results in order, unless `on_done` takes them.

    Parameters
    ----------
    work : callable
        Called once per task, tasks being begun in order. `control` is an int64 array (CONTROL_SIZE,), shared by all
        tasks of the call: ``control[CONTROL_STOP]`` = 1 asks a task to end soon, its result then being of no use;
        ``control[CONTROL_ROWS]`` is free for progress.
    n_tasks : int
        Number of tasks; 0 gives an empty list.
    n_workers : int
        Number of threads, see `count_workers`. One worker of the main thread is a thread too, because a kernel would
        keep the main thread from Ctrl-C; other callers do the work of one worker themselves.
    on_done : callable, optional
        Called as ``on_done(task, result)`` in task order, in the calling thread. Until it has taken task t, no task
        from t + 2 * n_workers on is begun, so that few results wait for a slow one.
    is_short : bool
        The work takes milliseconds: do it in the calling thread at once.
    label, unit : str
        What the progress bar says is done, and to what.
    n_units : int, optional
        Of how many it says so in all, the tasks having about as many each; None: as there are tasks.
    verbose : bool
        Show the bar from the beginning instead of after a second. It goes to stderr if that is a terminal, and is
        wiped at the end.

    Notes
    -----
    The first task to fail stops the others; once all have ended, or after a minute, the error of the lowest task among
    those that failed is raised. Whatever is raised in the calling thread meanwhile, by Ctrl-C or by `on_done`, stops
    the tasks likewise and is raised after half a second at most.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if n_tasks == 0 or is_short or (n_workers <= 1 and not is_main):
        return _run_here(work, n_tasks, on_done)
    kernels(0.0)  # imports the modules that tasks may choose for small work, so that no thread does
    pool = _Pool(work, n_tasks, max(1, min(n_workers, n_tasks)), on_done)
    with contextlib.closing(_Bar(label, unit, (n_tasks, n_units or n_tasks), is_eager=verbose)) as bar:
        return pool.run(bar)


def _run_here(
    work: Callable[[int, NDArray[np.int64]], T], n_tasks: int, on_done: Callable[[int, T], None] | None
) -> list[T]:
    """Do the tasks one by one in this thread; inside a task of another call, they stop with it."""
    control = getattr(_here, "control", None)
    if control is None:
        control = np.zeros(CONTROL_SIZE, np.int64)
    results = []
    for task in range(n_tasks):
        if control[CONTROL_STOP]:
            raise KeyboardInterrupt
        result = work(task, control)
        if on_done is None:
            results.append(result)
        else:
            on_done(task, result)
    return results


class _Pool(Generic[T]):
    """The threads of one call, and the two queues between them and the caller."""

    def __init__(
        self,
        work: Callable[[int, NDArray[np.int64]], T],
        n_tasks: int,
        n_workers: int,
        on_done: Callable[[int, T], None] | None,
    ) -> None:
        self.work = work
        self.n_tasks = n_tasks
        self.n_workers = n_workers
        self.n_out = 0  # tasks that were put into the queue
        self.on_done = on_done
        self.control = np.zeros(CONTROL_SIZE, np.int64)
        self.todo: SimpleQueue[int | None] = SimpleQueue()  # None ends a worker
        self.done: SimpleQueue[tuple[int, T | None, BaseException | None]] = SimpleQueue()
        self.threads: list[threading.Thread] = []
        self.results: list[Any] = [None] * n_tasks
        self.errors: dict[int, BaseException] = {}

    def run(self, bar: _Bar) -> list[T]:
        """Work through all tasks. No thread is left at the end unless a task ignores the stop flag."""
        try:
            self.hand_out(self.n_tasks if self.on_done is None else WINDOW * self.n_workers)
            if not self.start():
                return _run_here(self.work, self.n_tasks, self.on_done)
            self.collect(bar)
        except BaseException:
            self.control[CONTROL_STOP] = 1
            self.join(FAREWELL_SECONDS)
            raise
        self.join(FAILURE_SECONDS)
        if self.errors:
            raise self.first_error()
        return [] if self.on_done is not None else self.results

    def hand_out(self, n: int) -> None:
        """Let n more tasks begin, and close the queue after the last one."""
        n_out = min(self.n_out + n, self.n_tasks)
        for task in range(self.n_out, n_out):
            self.todo.put(task)
        if self.n_out < n_out == self.n_tasks:
            self.close_queue()
        self.n_out = n_out

    def close_queue(self) -> None:
        """Tell every worker that no task follows: one None for each stands behind the tasks."""
        for _ in range(self.n_workers):
            self.todo.put(None)

    def start(self) -> bool:
        """Start the workers. False if no thread could be started; fewer threads than wanted are enough."""
        for k in range(self.n_workers):
            # A context of its own for each: NumPy's error state is the caller's, as it would be without threads.
            run = contextvars.copy_context().run
            thread = threading.Thread(target=run, args=(self.run_worker,), name=f"spinney-pool-{k}", daemon=True)
            self.threads.append(thread)  # before it starts: an interrupt in between must not lose it
            try:
                thread.start()
            except RuntimeError:  # a limit on threads, or the interpreter is about to end
                self.threads.pop()
                break
        return bool(self.threads)

    def run_worker(self) -> None:
        """Do one task after the other and report each; the body of a worker's thread."""
        _here.control = self.control
        while (task := self.todo.get()) is not None:
            if self.control[CONTROL_STOP]:
                return
            try:
                self.done.put((task, self.work(task, self.control), None))  # no name keeps the result alive here
            except BaseException as error:  # noqa: BLE001  (raised again by the caller)
                self.done.put((task, None, error))
                # After the report: what a stopped task reports then stands behind it and is never taken for a result.
                self.control[CONTROL_STOP] = 1

    def collect(self, bar: _Bar) -> None:
        """Take the results and hand out more tasks, until all results are there or a task has failed."""
        has_come = bytearray(self.n_tasks)
        n_come = n_taken = 0
        while n_taken < self.n_tasks:
            bar.show(n_come)
            try:
                task, result, error = self.done.get(timeout=POLL_SECONDS)
            except Empty:
                self.check_alive()
                continue
            if error is not None:
                self.errors[task] = error
                return
            self.results[task] = result
            has_come[task] = 1
            n_come += 1
            while n_taken < self.n_tasks and has_come[n_taken]:
                if self.on_done is not None:
                    self.on_done(n_taken, self.results[n_taken])
                    self.results[n_taken] = None  # a forest is too large to be kept twice
                n_taken += 1
                self.hand_out(1)

    def check_alive(self) -> None:
        """Raise if all workers have ended without a report: nothing would ever come."""
        if not any(thread.is_alive() for thread in self.threads) and self.done.empty():
            raise RuntimeError("the threads have ended before their work was done")

    def join(self, seconds: float) -> None:
        """Close the queue and wait until the workers have ended, for `seconds` at most."""
        self.close_queue()
        deadline = time.monotonic() + seconds
        for thread in self.threads:
            while thread.is_alive() and time.monotonic() < deadline:
                thread.join(POLL_SECONDS)

    def first_error(self) -> BaseException:
        """The error to raise. A stopped task reports an interrupt, which is a consequence and not the cause."""
        while not self.done.empty():
            task, _, error = self.done.get()
            if error is not None:
                self.errors[task] = error
        causes = [task for task, error in self.errors.items() if not isinstance(error, KeyboardInterrupt)]
        first = self.errors[min(causes or self.errors)]
        self.errors.clear()  # the traceback holds this frame, which must not hold the traceback
        return first


# --- Progress ---------------------------------------------------------------------------------------------------


class _Bar:
    """A line on the terminal, drawn by the thread that waits: a thread of its own would outlive a fork badly."""

    def __init__(self, label: str, unit: str, sizes: tuple[int, int], *, is_eager: bool) -> None:
        self.label = label
        self.unit = unit
        self.n_tasks, self.n_units = sizes
        self.progress: Any = None  # rich.progress.Progress
        self.due = math.inf
        if has_terminal():
            self.due = time.monotonic() + (0.0 if is_eager else PROGRESS_SECONDS)

    def show(self, n_done: int) -> None:
        """Draw, if it is time to."""
        now = time.monotonic()
        if now < self.due:
            return
        self.due = now + REFRESH_SECONDS
        with contextlib.suppress(OSError, ValueError):  # the terminal is gone; the work is not
            if self.progress is None:
                self.open(n_done)
            elif not self.progress.disable:
                self.progress.update(self.progress.task_ids[0], completed=self.count_units(n_done))
                self.progress.refresh()

    def count_units(self, n_done: int) -> int:
        """Units of so many tasks."""
        return n_done * self.n_units // self.n_tasks

    def open(self, n_done: int) -> None:
        """Load rich, which takes a moment, and draw for the first time."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        console = Console(stderr=True)
        text = TextColumn("{task.description}", markup=False)
        columns = text, BarColumn(), MofNCompleteColumn(), TextColumn(self.unit, markup=False), TimeRemainingColumn()
        self.progress = Progress(
            *columns,
            console=console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,  # both are the process's, not this call's
            redirect_stderr=False,
            disable=not console.is_terminal or console.is_dumb_terminal,
        )
        self.progress.add_task(self.label, total=self.n_units, completed=self.count_units(n_done))
        self.progress.start()
        self.progress.refresh()

    def close(self) -> None:
        """Wipe the line and give the cursor back."""
        if self.progress is None:
            return
        with contextlib.suppress(OSError, ValueError):
            try:
                self.progress.stop()
            except IndexError:  # an interrupt met rich's start, of which it takes away more than it has put there
                self.progress.console.show_cursor()


def has_terminal() -> bool:
    """Whether a bar may be drawn: stderr is a terminal and this is the main thread."""
    if threading.current_thread() is not threading.main_thread() or sys.stderr is None:
        return False
    with contextlib.suppress(OSError, ValueError):  # closed
        return sys.stderr.isatty()
    return False


# --- Beside -----------------------------------------------------------------------------------------------------


def run_beside(work: Callable[[], T]) -> Callable[[], T]:
    """Begin some work in a thread of its own; what comes back waits for its end, and returns or raises what it did."""
    done: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()

    def serve() -> None:
        try:
            done.put((work(), None))
        except BaseException as error:  # noqa: BLE001  raised by whoever waits
            done.put((None, error))

    def wait() -> T:
        while True:
            try:
                result, error = done.get(timeout=POLL_SECONDS)
            except Empty:
                if not thread.is_alive() and done.empty():
                    raise RuntimeError("a thread has ended before its work was done") from None
                continue
            if error is not None:
                raise error
            return result

    thread = threading.Thread(target=contextvars.copy_context().run, args=(serve,), name="spinney-beside", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # a limit on threads, or the interpreter is about to end
        serve()
    return wait


# --- Threads that stay ----------------------------------------------------------------------------------------------


class Team:
    """Threads that are kept for many small parts of work: a part costs some 30 µs, where a new thread costs 240 µs.

    The calling thread does one part, and those of threads that could not be started. Threads block, they never spin;
    they end with `close`, or with the process. The caller wakes two of them, each wakes two others, and the last to be
    done tells the caller: with 32 threads a run costs it 10 µs; to hand out and to collect 31 parts took 77.
    """

    def __init__(self, n_workers: int) -> None:
        self.n_workers = n_workers
        self.todo: list[SimpleQueue[_Part | None]] = []
        self.threads: list[threading.Thread] = []
        if n_workers > 1:
            kernels(0.0)  # as in `run_tasks`
        for _ in range(1, n_workers):
            if not self.start():
                break

    def start(self) -> bool:
        """Start a thread more; whether there may be more yet."""
        queue: SimpleQueue[_Part | None] = SimpleQueue()
        t = len(self.threads) + 1
        thread = threading.Thread(target=self.serve, args=(t, queue), name=f"spinney-{t}", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # a limit on threads, or the interpreter is about to end
            return False
        self.threads.append(thread)
        self.todo.append(queue)
        return True

    def serve(self, t: int, queue: SimpleQueue[_Part | None]) -> None:
        """Do one part after the other; the body of a thread."""
        while (part := queue.get()) is not None:
            self.wake(t, part)
            try:
                part.work(t)
            except BaseException as error:  # noqa: BLE001  raised by the caller
                part.reports.append(error)
            else:
                part.reports.append(None)
            if len(part.reports) == part.n_reports:  # two may see that: the second report is not waited for
                part.done.put(None)
            del part  # what it holds is the caller's to free

    def wake(self, t: int, part: _Part) -> None:
        """Hand a part on to the two threads that t wakes, as in a heap."""
        for queue in self.todo[2 * t : min(2 * t + 2, part.n_reports)]:
            queue.put(part)

    def run(self, work: Callable[[int], None]) -> None:
        """Call work(t) for t = 0 .. n_workers - 1, side by side; the first error is raised when all have ended.

        An exception in the calling thread comes first, and waits for the others no longer than in `run_tasks`.
        """
        n_others = min(len(self.todo), self.n_workers - 1)

        def work_here() -> None:
            for t in (0, *range(n_others + 1, self.n_workers)):
                work(t)

        self.run_part(_Part(work, n_others, [], SimpleQueue()), work_here)  # no late report of another part

    def find_followers(self) -> int:
        """How many threads `lead` has: n_workers, where so many can be started."""
        if len(self.todo) == self.n_workers - 1 > 0:
            self.start()
        return len(self.todo)

    def lead(self, follow: Callable[[int], None], work: Callable[[], None]) -> None:
        """Call work() while as many threads as `find_followers` tells call follow(t), which ends when work does.

        Errors are raised as by `run`.
        """
        self.run_part(_Part(lambda t: follow(t - 1), len(self.todo), [], SimpleQueue()), work)

    def run_part(self, part: _Part, work_here: Callable[[], None]) -> None:
        """Have other threads do a part while the calling thread does its own."""
        self.wake(0, part)
        try:
            work_here()
        except BaseException as error:
            self.collect(part, FAILURE_SECONDS if isinstance(error, Exception) else FAREWELL_SECONDS)
            raise
        self.collect(part, math.inf)
        if len(part.reports) < part.n_reports:
            raise RuntimeError("a thread has ended before its work was done")
        for report in part.reports:
            if report is not None:
                raise report

    def collect(self, part: _Part, seconds: float) -> None:
        """Wait until all threads have reported, for so long at most, or until one has ended without a report."""
        deadline = time.monotonic() + seconds
        while len(part.reports) < part.n_reports and time.monotonic() < deadline:
            try:
                part.done.get(timeout=POLL_SECONDS)
            except Empty:
                if not all(thread.is_alive() for thread in self.threads):
                    break

    def close(self) -> None:
        """Let the threads end."""
        for queue in self.todo:
            queue.put(None)


class _Part(NamedTuple):
    """What the threads of a team are to do, and where they report."""

    work: Callable[[int], None]
    n_reports: int  # threads beside the caller's
    reports: list[BaseException | None]  # one of each, in the order in which they end
    done: SimpleQueue[None]  # told when all are there
