"""The pool of threads: order, errors, interrupts, forks, and how many threads are used."""

import contextlib
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor

import joblib
import numpy as np
import pytest

from spinney import _threads as pool
from spinney._threads import Team, count_workers, is_pool_thread, run_tasks
from spinney._types import CONTROL_SIZE, CONTROL_STOP

LIMIT = 60  # seconds until something counts as hung
posix = pytest.mark.skipif(sys.platform == "win32", reason="signals, forks and terminals of POSIX")


@pytest.fixture(autouse=True)
def leaves_no_thread():
    before = set(threading.enumerate())
    yield
    left = [thread for thread in threading.enumerate() if thread not in before and thread.name.startswith("spinney")]
    for thread in left:
        thread.join(LIMIT)  # a task left to itself after an interrupt
    assert not any(thread.is_alive() for thread in left)


def pool_threads():
    return [thread for thread in threading.enumerate() if thread.name.startswith("spinney-pool")]


def wait_for_stop(control):
    """What a long kernel does: look at the flag now and then."""
    deadline = time.monotonic() + LIMIT
    while not control[CONTROL_STOP]:
        assert time.monotonic() < deadline, "nobody asked to stop"
        time.sleep(0.001)


# --- order --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_short", [False, True])
@pytest.mark.parametrize("has_on_done", [False, True])
@pytest.mark.parametrize("n_workers", [1, 2, 5, 40])
@pytest.mark.parametrize("n_tasks", [0, 1, 2, 30])
def test_results_come_in_task_order_whatever_ends_first(n_tasks, n_workers, has_on_done, is_short):
    def work(task, control):
        assert control.shape == (CONTROL_SIZE,)
        assert control.dtype == np.int64
        time.sleep((task * 7 % 5) * 0.0005)
        return task * task

    taken = []

    def on_done(task, result):
        assert threading.current_thread() is threading.main_thread()
        taken.append((task, result))

    results = run_tasks(work, n_tasks, n_workers, on_done=on_done if has_on_done else None, is_short=is_short)
    expected = [task * task for task in range(n_tasks)]
    assert results == ([] if has_on_done else expected)  # what is taken is not kept
    assert taken == (list(enumerate(expected)) if has_on_done else [])
    assert not pool_threads()


def test_each_task_runs_once_on_as_many_threads_as_asked_for():
    barrier = threading.Barrier(3)
    seen = []

    def work(task, _):
        if task < 3:
            barrier.wait(LIMIT)  # passes only if three tasks are under way together
        seen.append((task, threading.get_ident()))

    run_tasks(work, 50, 3)
    assert sorted(task for task, _ in seen) == list(range(50))
    assert len({thread for _, thread in seen}) == 3
    assert threading.get_ident() not in {thread for _, thread in seen}


def test_short_work_stays_in_the_calling_thread():
    assert set(run_tasks(lambda *_: threading.get_ident(), 5, 4, is_short=True)) == {threading.get_ident()}


def test_one_worker_leaves_the_main_thread_free_and_no_other():
    def idents():
        return set(run_tasks(lambda *_: threading.get_ident(), 5, 1)), threading.get_ident()

    used, here = idents()
    assert len(used) == 1
    assert here not in used
    with ThreadPoolExecutor(1) as executor:
        used, here = executor.submit(idents).result(LIMIT)
    assert used == {here}


def test_all_tasks_share_one_control_and_calls_do_not():
    first = run_tasks(lambda _, control: control, 6, 3)
    second = run_tasks(lambda _, control: control, 6, 3)
    assert all(control is first[0] for control in first)
    assert all(control is second[0] for control in second)
    assert first[0] is not second[0]
    assert first[0].tolist() == [0] * CONTROL_SIZE


@pytest.mark.parametrize("n_workers", [1, 2, 3])
def test_few_results_wait_for_on_done(n_workers):
    # Task 0 ends when nothing else can begin any more: all others of the window are done and wait for it.
    begun, ended = [], []
    is_full = threading.Event()

    def work(task, _):
        begun.append(task)
        if task == 0 and n_workers > 1:
            assert is_full.wait(LIMIT)
            time.sleep(0.05)  # a worker that does not keep to the window would begin another task now
            assert len(begun) == 2 * n_workers
        ended.append(task)
        if len(ended) == 2 * n_workers - 1:
            is_full.set()

    waiting = []

    def on_done(task, _):
        waiting.append(len(ended) - task)
        time.sleep(0.001)

    run_tasks(work, 40, n_workers, on_done=on_done)
    assert max(waiting) <= 2 * n_workers
    if n_workers == 1:
        assert begun == list(range(40))


def test_a_result_is_dropped_where_nobody_holds_it():
    class Result:
        pass

    results = run_tasks(lambda *_: Result(), 8, 2)
    references = [weakref.ref(result) for result in results]
    del results
    assert not any(reference() for reference in references)  # without the garbage collector's help


def test_tasks_see_the_callers_error_state():
    with np.errstate(divide="raise"):
        states = run_tasks(lambda *_: np.geterr()["divide"], 4, 2)
    assert states == ["raise"] * 4


# --- errors -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_workers", [1, 2, 4])
@pytest.mark.parametrize("has_on_done", [False, True])
def test_a_failure_stops_the_others_and_is_raised(n_workers, has_on_done):
    begun, taken = [], []

    def work(task, control):
        begun.append(task)
        if task == 5:
            raise LookupError("task 5")
        if task > 5:
            wait_for_stop(control)

    on_done = (lambda task, _: taken.append(task)) if has_on_done else None
    with pytest.raises(LookupError, match="task 5") as caught:
        run_tasks(work, 1000, n_workers, on_done=on_done)
    assert max(begun) <= 5 + n_workers
    assert set(taken) <= set(range(5))
    assert taken == sorted(taken)
    assert caught.traceback[-1].name == "work"  # where it went wrong, not only where it was noticed
    assert not pool_threads()


def test_of_several_failures_the_lowest_task_is_raised():
    barrier = threading.Barrier(4)

    def work(task, control):
        barrier.wait(LIMIT)
        if task == 0:
            wait_for_stop(control)
            raise KeyboardInterrupt  # what a grower says when it was stopped: a consequence
        if task == 1:
            wait_for_stop(control)
        raise ValueError(f"task {task}")

    with pytest.raises(ValueError, match="task 1"):
        run_tasks(work, 4, 4)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit, TimeoutError, StopIteration])
def test_any_exception_of_a_task_arrives(kind):
    def work(*_):
        raise kind

    with pytest.raises(kind):
        run_tasks(work, 3, 2)


def test_an_error_of_on_done_stops_the_tasks():
    def work(task, control):
        if task:
            wait_for_stop(control)
        return task

    def on_done(task, _):
        raise ArithmeticError(f"sum of {task}")

    with pytest.raises(ArithmeticError, match="sum of 0"):
        run_tasks(work, 10, 2, on_done=on_done)
    assert not pool_threads()


def test_an_error_leaves_no_cycle():
    class Payload:
        pass

    def work(*_):
        payload = Payload()
        references.append(weakref.ref(payload))
        raise RuntimeError(payload)

    references = []
    gc.disable()
    try:
        with contextlib.suppress(RuntimeError):
            run_tasks(work, 4, 2)
        assert references
        assert not any(reference() for reference in references)  # the table of a failed fit is freed at once
    finally:
        gc.enable()


def test_what_a_stopped_task_returns_is_no_result():
    taken = []

    def work(task, control):
        if task == 1:
            raise LookupError
        wait_for_stop(control)
        return "half a tree"

    with pytest.raises(LookupError):
        run_tasks(work, 2, 2, on_done=lambda _, result: taken.append(result))
    assert taken == []


@pytest.mark.parametrize("n_given", [0, 1])
def test_too_few_threads_from_the_system_are_enough(monkeypatch, n_given):
    start = threading.Thread.start
    n_started = 0

    def starve(thread):
        nonlocal n_started
        if n_started == n_given:
            raise RuntimeError("can't start new thread")
        n_started += 1
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", starve)
    taken = []
    assert run_tasks(lambda task, _: -task, 20, 4, on_done=lambda *done: taken.append(done)) == []
    assert taken == [(task, -task) for task in range(20)]


# --- callers in threads, nested calls -----------------------------------------------------------------------


def test_eight_callers_at_once():
    barrier = threading.Barrier(8)

    def call(k):
        barrier.wait(LIMIT)
        sums = []
        run_tasks(lambda task, _: 100 * k + task, 40, 3, on_done=lambda _, result: sums.append(result))
        return sums

    with ThreadPoolExecutor(8) as executor:
        for k, sums in enumerate(executor.map(call, range(8), timeout=LIMIT)):
            assert sums == [100 * k + task for task in range(40)]
    assert not pool_threads()


def test_nested_calls_have_one_worker():
    def work(*_):
        assert is_pool_thread()
        counts = [count_workers(n_jobs, 100, 100.0) for n_jobs in (None, 1, 4, -1)]
        inner = run_tasks(lambda inner, _: (inner, threading.get_ident()), 3, count_workers(None, 3, 100.0))
        return counts, inner, threading.get_ident()

    assert not is_pool_thread()
    for counts, inner, here in run_tasks(work, 4, 2):
        assert counts == [1, 1, 1, 1]
        assert inner == [(k, here) for k in range(3)]
    assert not is_pool_thread()


def test_nested_calls_stop_with_the_outer_one():
    n_inner = []

    def work(task, _):
        if task == 0:
            time.sleep(0.02)
            raise LookupError
        run_tasks(lambda k, _: n_inner.append(k) or time.sleep(0.001), LIMIT * 1000, 1)

    with pytest.raises(LookupError):
        run_tasks(work, 2, 2)
    assert len(n_inner) < LIMIT * 1000


# --- how many -----------------------------------------------------------------------------------------------


@pytest.fixture
def six_cpus(monkeypatch):
    monkeypatch.setattr(joblib, "cpu_count", lambda: 6)


@pytest.mark.usefixtures("six_cpus")
@pytest.mark.parametrize(
    ("n_jobs", "n_tasks", "seconds", "expected"),
    [
        (1, 100, 10.0, 1),
        (4, 100, 10.0, 4),
        (4, 3, 10.0, 3),
        (4, 0, 10.0, 1),
        (9, 100, 10.0, 9),  # more than CPUs: as asked
        (np.int64(3), 100, 10.0, 3),
        (-1, 100, 10.0, 6),
        (-2, 100, 10.0, 5),
        (-6, 100, 10.0, 1),
        (-60, 100, 10.0, 1),
        (-1, 4, 10.0, 4),
        (4, 100, 0.0, 4),  # the estimate is asked for None only
        (None, 100, 10.0, 6),
        (None, 4, 10.0, 4),
        (None, 100, float("inf"), 6),
        (None, 100, 0.0, 1),
        (None, 100, 0.0099, 1),
        (None, 100, 0.0101, 2),
        (None, 100, 0.0201, 4),
        (None, 0, 10.0, 1),
    ],
)
def test_count_workers(n_jobs, n_tasks, seconds, expected):
    assert count_workers(n_jobs, n_tasks, seconds) == expected


def test_count_workers_agrees_with_joblib_outside_of_workers():
    for n_jobs in (1, 2, 7, -1, -2, -100):
        assert count_workers(n_jobs, 1000, 100.0) == joblib.effective_n_jobs(n_jobs)
    assert count_workers(None, 1000, 100.0) == joblib.cpu_count()


def test_no_jobs_are_refused_in_joblibs_words():
    with pytest.raises(ValueError, match="n_jobs == 0 in Parallel has no meaning"):
        joblib.effective_n_jobs(0)
    with pytest.raises(ValueError, match="n_jobs == 0 in Parallel has no meaning"):
        count_workers(0, 1, 0.0)
    with joblib.parallel_config(n_jobs=0), pytest.raises(ValueError, match="n_jobs == 0 in Parallel has no meaning"):
        count_workers(None, 100, 100.0)


@pytest.mark.usefixtures("six_cpus")
def test_active_joblib_configuration_bounds_none_only():
    for backend in ("loky", "threading", "multiprocessing"):
        with joblib.parallel_config(backend, n_jobs=3):
            assert count_workers(None, 100, 10.0) == 3
            assert count_workers(None, 100, 0.001) == 1
            assert count_workers(2, 100, 10.0) == 2
            assert count_workers(-1, 100, 10.0) == 6
    with joblib.parallel_config(n_jobs=-2):
        assert count_workers(None, 100, 10.0) == 5
    with joblib.parallel_config("loky"):
        assert count_workers(None, 100, 10.0) == 6
    with joblib.parallel_config("sequential"):
        assert count_workers(None, 100, 10.0) == 1
    with joblib.parallel_backend("threading"):
        assert count_workers(None, 100, 10.0) == 6
    assert count_workers(None, 100, 10.0) == 6


def counts_here():
    return [count_workers(n_jobs, 100, 10.0) for n_jobs in (None, -1, 5, 1)]


@pytest.mark.usefixtures("six_cpus")
def test_one_thread_inside_a_joblib_thread():
    tasks = [joblib.delayed(counts_here)() for _ in range(4)]
    assert joblib.Parallel(2, backend="threading")(tasks) == [[1, 1, 1, 1]] * 4
    assert joblib.Parallel(1)(tasks) == [[6, 6, 5, 1]] * 4  # no worker at all: the caller itself


def run_python(code, *arguments, **environment):
    """Run `code` in a fresh process with stderr in a pipe; its output, and that of stderr."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)} | environment,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


SHARED_BY_TWO = max(1, joblib.cpu_count() // 2)


@pytest.mark.parametrize(
    ("backend", "inner", "share"),
    [
        ("loky", 0, SHARED_BY_TWO),
        ("loky", 3, 3),  # the user has said so
        ("multiprocessing", 0, 1),  # tells its workers nothing
    ],
)
def test_a_joblib_process_has_its_share(backend, inner, share):
    code = """
    import sys
    import joblib

    def count():
        from spinney._threads import count_workers
        return [count_workers(n_jobs, 100, 10.0) for n_jobs in (None, -1, 5, 1)]

    backend, inner = sys.argv[1], int(sys.argv[2])
    with joblib.parallel_config(backend, **({"inner_max_num_threads": inner} if inner else {})):
        for counts in joblib.Parallel(2)(joblib.delayed(count)() for _ in range(2)):
            print(*counts)
    """
    out, _ = run_python(code, backend, str(inner))
    assert [int(word) for word in out] == [1, share, min(5, share), 1] * 2


def test_the_process_is_given_fewer_cpus():
    code = "from spinney._threads import count_workers; print(count_workers(None, 9, 9.0), count_workers(-1, 9, 9.0))"
    assert run_python(code, LOKY_MAX_CPU_COUNT="1")[0] == ["1", "1"]
    if hasattr(os, "sched_setaffinity"):
        one = min(os.sched_getaffinity(0))
        assert run_python(f"import os; os.sched_setaffinity(0, [{one}])\n{code}")[0] == ["1", "1"]


# --- interrupts ---------------------------------------------------------------------------------------------


@posix
@pytest.mark.parametrize("kind", ["polite", "deaf", "on_done"])
@pytest.mark.parametrize("n_workers", [1, 2])
def test_interrupt(kind, n_workers):
    # polite: tasks look at the flag, as kernels do. deaf: they do not, and are left behind. on_done: the caller works.
    code = """
    import sys, threading, time
    from spinney._jit import kernels
    from spinney._threads import run_tasks
    kind, n_workers = sys.argv[1], int(sys.argv[2])

    def work(task, control):
        if kind == "polite":
            while not control[0]:
                time.sleep(0.001)
        elif kind == "deaf":
            time.sleep(1000)

    def on_done(task, result):
        time.sleep(1000)

    kernels(0.0)  # loaded before threads start: not in the time that the timer gives
    threading.Timer(0.3, lambda: print("begin", flush=True)).start()
    try:
        run_tasks(work, 10, n_workers, on_done=on_done)
    except KeyboardInterrupt:
        n_left = sum(thread.name.startswith("spinney") for thread in threading.enumerate())
        print("interrupted", n_left, flush=True)
        raise
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), kind, str(n_workers)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    watchdog = threading.Timer(LIMIT, process.kill)
    watchdog.start()
    try:
        first = process.stdout.readline().split()
        process.send_signal(signal.SIGINT)
        sent = time.monotonic()
        second = process.stdout.readline().split()
        waited = time.monotonic() - sent
        _, stderr = process.communicate()
        ended = time.monotonic() - sent
    finally:
        watchdog.cancel()
        process.kill()
        process.communicate()
    assert (first, second) == (["begin"], ["interrupted", str(n_workers if kind == "deaf" else 0)]), stderr
    assert stderr.splitlines()[-1] == "KeyboardInterrupt"
    assert process.returncode != 0
    assert waited < 20  # half a second in truth; machines stall
    assert ended < 30  # tasks that are left behind do not keep the process


def test_an_exception_in_the_caller_waits_half_a_second_at_most(monkeypatch):
    monkeypatch.setattr(pool, "FAREWELL_SECONDS", 0.01)
    release = threading.Event()
    begun = []

    def work(task, _):
        begun.append(task)
        if task:
            assert release.wait(LIMIT)

    def on_done(*_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_tasks(work, 30, 2, on_done=on_done)
    release.set()
    for thread in pool_threads():
        thread.join(LIMIT)
    assert set(begun) <= {0, 1, 2}  # the task that was left behind is the last of its thread


@pytest.mark.parametrize("n_workers", [1, 3])
def test_f15_workers_that_end_without_a_report_are_noticed(monkeypatch, n_workers):
    monkeypatch.setattr(pool._Pool, "run_worker", lambda _: None)
    with pytest.raises(RuntimeError, match="ended before their work"):
        run_tasks(lambda *_: None, 5, n_workers)


def test_f15_a_failure_waits_for_a_deaf_task_no_longer_than_the_limit(monkeypatch):
    monkeypatch.setattr(pool, "FAILURE_SECONDS", 0.01)
    release, is_begun = threading.Event(), threading.Event()

    def work(task, _):
        if task:
            is_begun.set()
            assert release.wait(LIMIT)  # without a look at the flag
        else:
            assert is_begun.wait(LIMIT)
            raise LookupError

    with pytest.raises(LookupError):
        run_tasks(work, 2, 2)
    assert pool_threads()
    release.set()


IMPORTS = """
import threading
import numpy as np
from spinney._jit import Kernels

seen = []
load = Kernels.__getattr__  # called where a module is not loaded yet

def record(self, name):
    seen.append(threading.current_thread().name)
    return load(self, name)

Kernels.__getattr__ = record
from spinney import GradientBoostingClassifier, RandomForestClassifier
X = np.random.default_rng(0).normal(size=(3000, 4))
y = X[:, 0] > 0
model = {model}
model.fit(X, y).predict(np.tile(X, (10, 1)))
print(*sorted(set(seen)))
"""


@pytest.mark.compiled(reason="about the modules that compiled kernels are in")
@pytest.mark.parametrize(
    "model",
    [
        "RandomForestClassifier(20, n_jobs=2, random_state=0)",
        "RandomForestClassifier(20, n_jobs=2, random_state=0, bootstrap='poisson', oob_score=True)",
        "GradientBoostingClassifier(n_estimators=5, subsample=0.5, n_jobs=2, random_state=0)",
    ],
)
@pytest.mark.sampled(2)  # a fresh process for each
def test_f15_kernels_are_imported_before_threads_start(model):
    out, _ = run_python(IMPORTS.format(model=model))
    assert set(out) <= {"MainThread", "spinney-load"}  # the second is waited for, see `_jit.whole`


# --- fork ---------------------------------------------------------------------------------------------------


@posix
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fork_while_threads_are_at_work():
    code = """
    import os, signal, threading, warnings
    warnings.simplefilter("ignore")  # Python 3.12 objects to forks beside threads; users fork all the same
    from spinney._threads import count_workers, is_pool_thread, run_tasks
    import joblib

    release = threading.Event()
    is_begun = threading.Barrier(3)

    def wait(task, control):
        is_begun.wait(30)
        release.wait(30)
        return task

    outer = threading.Thread(target=lambda: print("parent", *run_tasks(wait, 2, 2), flush=True))
    outer.start()
    is_begun.wait(30)
    print(*run_tasks(lambda task, _: task, 3, 2), flush=True)  # this thread's own, before and after
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        taken = []
        results = run_tasks(lambda task, _: task * task, 5, 2)
        run_tasks(lambda task, _: task, 5, 2, on_done=lambda task, _: taken.append(task))
        is_same = count_workers(None, 100, 9.0) == joblib.cpu_count() and not is_pool_thread()
        print("child", *results, *taken, is_same, threading.active_count(), flush=True)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print("status", status, flush=True)
    release.set()
    outer.join(30)
    """
    out, _ = run_python(code)
    child = "child 0 1 4 9 16 0 1 2 3 4 True 1"
    assert " ".join(out) == f"0 1 2 {child} status 0 parent 0 1"


# --- progress -----------------------------------------------------------------------------------------------

SLOW_CALL = """
import sys, time
from spinney import _threads as pool

pool.PROGRESS_SECONDS = 0.2
is_verbose, n_seconds = sys.argv[1] == "verbose", float(sys.argv[2])
pool.run_tasks(lambda *_: time.sleep(n_seconds / 8), 16, 2, label="growing [x]", unit="trees", verbose=is_verbose)
print("rich" in sys.modules)
"""


@pytest.mark.parametrize("mode", ["verbose", "plain"])
def test_a_pipe_sees_no_progress(mode):
    # FORCE_COLOR makes rich take a pipe for a terminal
    out, err = run_python(SLOW_CALL, mode, "0.4", FORCE_COLOR="1")
    assert (out, err) == (["False"], "")


def run_on_terminal(*arguments, **environment):
    """What a terminal shows as stderr, and what comes on stdout."""
    leader, follower = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_CALL, *arguments],
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "TERM": "xterm", "COLUMNS": "100"}
        | environment,
        stdout=subprocess.PIPE,
        stderr=follower,
        text=True,
    )
    os.close(follower)
    shown = b""
    try:
        while chunk := os.read(leader, 4096):
            shown += chunk
    except OSError:  # Linux: the other end is closed
        pass
    finally:
        out, _ = process.communicate(timeout=LIMIT)
        os.close(leader)
    assert process.returncode == 0, shown
    return shown.decode(), out.split()


@posix
def test_a_terminal_sees_a_bar_that_is_wiped():
    shown, out = run_on_terminal("plain", "1.0")
    assert out == ["True"]
    assert "growing [x]" in shown  # no markup
    assert "/16" in shown
    assert "trees" in shown
    assert shown.count("\x1b[?25l") == shown.count("\x1b[?25h") == 1  # the cursor is hidden, then shown again
    assert shown.rstrip().endswith("\x1b[2K")  # erase the line


@posix
def test_short_and_dumb_calls_draw_nothing():
    assert run_on_terminal("plain", "0.08") == ("", ["False"])
    assert run_on_terminal("verbose", "0.08", TERM="dumb")[0] == ""


@posix
def test_verbose_shows_the_bar_at_once():
    shown, _ = run_on_terminal("verbose", "0.08")
    assert "growing [x]" in shown


@pytest.mark.parametrize("step", ["set_live", "show_cursor", "push_render_hook"])
def test_an_interrupt_in_the_first_drawing_stays_an_interrupt(monkeypatch, step):
    from rich.console import Console

    def interrupt(*_):
        monkeypatch.undo()  # once: the end calls some of these too
        raise KeyboardInterrupt

    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(pool, "has_terminal", lambda: True)
    monkeypatch.setattr(Console, step, interrupt)
    with pytest.raises(KeyboardInterrupt):
        run_tasks(lambda *_: time.sleep(0.01), 50, 2, verbose=True)


def test_only_the_main_thread_draws_a_bar(monkeypatch):
    monkeypatch.setattr(sys, "stderr", type("Terminal", (), {"isatty": lambda _: True})())
    assert pool.has_terminal()
    with ThreadPoolExecutor(1) as executor:
        assert not executor.submit(pool.has_terminal).result(LIMIT)  # two bars would overwrite each other
    monkeypatch.setattr(sys, "stderr", None)
    assert not pool.has_terminal()


# --- threads that stay --------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_workers", [1, 2, 5])
def test_a_team_runs_each_share_in_its_thread_side_by_side(n_workers):
    with contextlib.closing(Team(n_workers)) as team:
        homes = [{} for _ in range(3)]
        barrier = threading.Barrier(n_workers)
        for home in homes:
            team.run(lambda t, home=home: (barrier.wait(LIMIT), home.setdefault(t, threading.current_thread())))
    assert [sorted(home) for home in homes] == [[*range(n_workers)]] * 3
    assert homes[0][0] is threading.current_thread()  # the caller takes the first
    assert homes[0] == homes[1] == homes[2]
    for t in range(1, n_workers):
        homes[0][t].join(LIMIT)
    assert not any(thread.name.startswith("spinney-") for thread in threading.enumerate())


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("failing", [0, 1, 3])
def test_an_error_in_a_team_is_raised_when_all_have_ended(failing, kind):
    ended = []

    def work(t):
        if t == failing:
            raise kind(f"share {t}")
        time.sleep(0.02)
        ended.append(t)

    with contextlib.closing(Team(4)) as team:
        for _ in range(2):
            ended.clear()
            with pytest.raises(kind, match=f"share {failing}"):
                team.run(work)
            assert sorted(ended) == [t for t in range(4) if t != failing]
        team.run(ended.append)  # the team is as good as before
        assert sorted(ended[3:]) == [0, 1, 2, 3]


def test_f15_a_thread_of_a_team_that_has_ended_is_noticed(monkeypatch):
    monkeypatch.setattr(Team, "serve", lambda *_: None)
    with contextlib.closing(Team(3)) as team, pytest.raises(RuntimeError, match="ended before its work"):
        team.run(lambda _: None)


def test_f15_an_interrupted_team_is_waited_for_no_longer_than_the_limit(monkeypatch):
    monkeypatch.setattr(pool, "FAREWELL_SECONDS", 0.01)
    release, is_begun = threading.Event(), threading.Event()

    def work(t):
        if t == 0:
            assert is_begun.wait(LIMIT)
            raise KeyboardInterrupt
        is_begun.set()
        assert release.wait(LIMIT)
        raise LookupError

    with contextlib.closing(Team(2)) as team:
        with pytest.raises(KeyboardInterrupt):
            team.run(work)
        release.set()
        ended = []
        team.run(ended.append)  # what was left behind reports to nobody
        assert sorted(ended) == [0, 1]


# --- beside -------------------------------------------------------------------------------------------------


def test_work_beside_runs_while_the_caller_goes_on():
    gate = threading.Event()
    wait = pool.run_beside(lambda: (gate.wait(LIMIT), threading.current_thread().name))
    gate.set()  # it would wait for ever in the calling thread
    assert wait() == (True, "spinney-beside")


def test_work_beside_that_fails_is_raised_by_whoever_waits():
    wait = pool.run_beside(lambda: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        wait()


def test_work_beside_is_done_at_once_where_no_thread_can_start(monkeypatch):
    def refuse(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert pool.run_beside(lambda: threading.current_thread().name)() == threading.current_thread().name


@pytest.mark.parametrize("n_workers", [2, 5])
def test_a_team_follows_its_caller_in_threads_of_its_own(n_workers):
    with contextlib.closing(Team(n_workers)) as team:
        homes, barrier = {}, threading.Barrier(n_workers + 1)

        def follow(t):
            barrier.wait(LIMIT)
            homes[t] = threading.current_thread()

        for _ in range(2):
            assert team.find_followers() == n_workers
            team.lead(follow, lambda: barrier.wait(LIMIT))
        assert sorted(homes) == [*range(n_workers)]
        assert threading.current_thread() not in homes.values()
        seen = []
        team.run(seen.append)  # the thread that only follows has no part in this
        assert sorted(seen) == [*range(n_workers)]


def test_a_team_of_one_has_no_followers():
    with contextlib.closing(Team(1)) as team:
        assert team.find_followers() == 0


def test_an_error_of_a_follower_is_raised_by_the_caller():
    def follow(t):
        if t == 1:
            raise LookupError("follower 1")

    with contextlib.closing(Team(3)) as team:
        team.find_followers()
        with pytest.raises(LookupError, match="follower 1"):
            team.lead(follow, lambda: None)
