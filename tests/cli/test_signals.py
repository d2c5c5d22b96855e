"""SIGINT and SIGTERM at any moment: a command ends soon, with its own exit code, and leaves nothing behind."""

import contextlib
import gc
import importlib
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import spinney
from spinney.cli import signals
from spinney.cli.signals import Terminated, Watch

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="signals and /proc of Linux")

MANY = 67  # moments of a signal in each of three commands: two hundred in all
LIMIT = 60.0  # seconds until something counts as hung; a second or two in truth, but machines stall
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


@pytest.fixture(autouse=True)
def catches_ctrl_c():
    """A shell lets its background jobs, and what they start, ignore SIGINT; here it is to be heard."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def start(arguments, folder, **places):
    places |= {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, cwd=folder, env=os.environ | places,
    )  # fmt: skip


def finish(process):
    """What a process says until it ends; killed if it does not."""
    watchdog = threading.Timer(LIMIT, process.kill)
    watchdog.start()
    try:
        return process.communicate()
    finally:
        watchdog.cancel()


# --- any moment ---------------------------------------------------------------------------------------------------

COMMANDS = {  # arguments; seconds that they take, from which moments are drawn; the last words of a whole run
    "train": (
        ["train", "t.csv", "--target", "y", "--method", "forest", "--set", "n_estimators=300", "--out", "m.spn"],
        2.5,
        "out-of-bag rows",
    ),
    "study": (["study", "t.csv", "--target", "y", "--methods", "cart,forest", "--folds", "3"], 4.0, "report: "),
    "warmup": (["warmup"], 3.0, "kernels are compiled"),
}


def write_table(path):
    X = np.random.default_rng(0).normal(size=(1500, 6)).round(3)
    lines = ["a,b,c,d,e,f,y", *(",".join(map(str, [*row, round(sum(row[:3]), 2)])) for row in X.tolist())]
    path.write_text("\n".join(lines) + "\n")


def wait_until_signals_are_caught(process):
    """Python itself answers, or dies of, signals that come before the command is there."""
    mask = 1 << (signal.SIGTERM - 1)
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline and process.poll() is None:
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("SigCgt:") and int(line.split()[1], 16) & mask:
                return
        time.sleep(0.001)


def left_behind(folder):
    """Files that are not whole, or that nobody asked for."""
    found = {path.name for path in folder.rglob("*") if path.is_file() and path.suffix != ".kernel"} - {"t.csv"}
    if "m.spn" in found:
        spinney.load_model(folder / "m.spn")  # raises if it is not whole
    report = folder / "t.report.html"
    if report.exists():
        assert report.read_text(encoding="utf-8").rstrip().endswith("</html>")
    return found - {"m.spn", "t.report.html"}


def stop_at(folder, name, number, moment):
    """Send a signal to a command; it must end as if it had been there for nothing else. The seconds that took."""
    (folder / "tmp").mkdir(parents=True)
    write_table(folder / "t.csv")
    places = {"TMPDIR": str(folder / "tmp")}
    if name == "warmup":
        places["SPINNEY_CACHE_DIR"] = str(folder / "kernels")  # empty: the compiler is at work
    arguments, _, last_words = COMMANDS[name]
    process = start(["-m", "spinney", *arguments], folder, **places)
    try:
        wait_until_signals_are_caught(process)
        time.sleep(moment)
        process.send_signal(number)
        sent = time.monotonic()
        out, err = finish(process)
    finally:
        process.kill()
        process.communicate()
    where = f"{name}, {number.name} after {moment:.3f} s: exit code {process.returncode}\n{out}{err}"
    assert process.returncode != -signal.SIGKILL, f"hung: {where}"
    if process.returncode in {0, -number}:  # it was done before, and on its way out
        assert last_words in out, where
    else:
        assert process.returncode == CODES[number], where
        assert err.endswith("stopped\n") or number == signal.SIGTERM, where
    assert "Traceback" not in err, where
    assert "Exception" not in err, where
    assert left_behind(folder) == set(), where
    return time.monotonic() - sent


@pytest.mark.parametrize("number", CODES, ids=lambda number: number.name)
@pytest.mark.parametrize("name", COMMANDS)
def test_f15_a_signal_at_any_moment_ends_a_command(tmp_path, name, number):
    draw = random.Random(f"{name} {number.name} two")
    stop_at(tmp_path / "once", name, number, draw.uniform(0.0, COMMANDS[name][1]))


@pytest.mark.slow
@pytest.mark.parametrize("number", CODES, ids=lambda number: number.name)
@pytest.mark.parametrize("name", COMMANDS)
def test_f15_a_signal_at_any_of_many_moments_ends_a_command(tmp_path, name, number):
    draw = random.Random(f"{name} {number.name}")
    seconds = [stop_at(tmp_path / str(k), name, number, draw.uniform(0.0, COMMANDS[name][1])) for k in range(MANY)]
    is_reported = name == "study" and number == signal.SIGINT  # a table and a page of what was found come first
    assert np.median(seconds) <= (5.0 if is_reported else 2.0), seconds
    assert max(seconds) <= (30.0 if is_reported else 10.0), seconds
    sys.stdout.write(f"ended after {np.median(seconds):.2f} s (median), {max(seconds):.2f} s (longest)\n")


def test_ctrl_c_while_the_command_is_read(tmp_path):
    code = """
    import os, signal, sys

    class Stop:
        def find_spec(self, name, *_):
            if name == "spinney.cli.study":
                os.kill(os.getpid(), signal.SIGINT)

    sys.meta_path.insert(0, Stop())
    from spinney.cli import run
    run()
    """
    process = start(["-c", textwrap.dedent(code)], tmp_path)
    assert (*finish(process), process.returncode) == ("", "stopped\n", 130)


# --- how it is done -----------------------------------------------------------------------------------------------


class Loader:
    """Imports a module of no text, and runs something meanwhile."""

    def __init__(self, name, work):
        self.name, self.work = name, work

    def find_spec(self, name, *_):
        return importlib.machinery.ModuleSpec(name, self) if name == self.name else None

    def create_module(self, _):
        return None

    def exec_module(self, module):
        self.work()
        module.is_whole = True


def send_myself(number):
    os.kill(os.getpid(), number)
    for _ in range(100):
        time.sleep(0.001)  # Python calls handlers between any two of these


@pytest.mark.parametrize(("number", "kind"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)])
def test_f15_no_exception_comes_while_an_import_is_under_way(monkeypatch, number, kind):
    monkeypatch.setattr(sys, "meta_path", [Loader("signalled", lambda: send_myself(number)), *sys.meta_path])
    before = signal.getsignal(number)
    with pytest.raises(kind) as caught, Watch(owns_process=False):  # noqa: PT012
        importlib.import_module("signalled")
        threading.Event().wait(LIMIT)
    assert type(caught.value) is kind
    assert sys.modules.pop("signalled").is_whole
    assert signal.getsignal(number) is before


def test_f15_an_exception_that_python_drops_is_raised_again(capsys):
    class Signalled:
        def __del__(self):
            send_myself(signal.SIGTERM)

    with pytest.raises(Terminated), Watch(owns_process=False):  # noqa: PT012
        Signalled()
        gc.collect()
        threading.Event().wait(LIMIT)
    assert "ignored" not in capsys.readouterr().err


def test_other_exceptions_that_python_drops_are_reported(monkeypatch):
    class Broken:
        def __del__(self):
            raise LookupError

    seen = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: seen.append(unraisable.exc_type))
    with Watch(owns_process=False):
        Broken()
        gc.collect()
    assert seen == [LookupError]


def test_a_second_signal_does_not_cut_short_what_the_first_undoes():
    undone = []

    def work():
        try:
            send_myself(signal.SIGTERM)
        finally:
            send_myself(signal.SIGTERM)
            undone.append(True)

    with Watch(owns_process=False):
        with pytest.raises(Terminated):
            work()
        signals.answer()
        with pytest.raises(KeyboardInterrupt):  # a new one
            send_myself(signal.SIGINT)
    assert undone == [True]


@pytest.mark.parametrize(
    ("has_report", "number"), [(False, signal.SIGINT), (True, signal.SIGINT), (True, signal.SIGTERM)]
)
def test_only_a_command_with_a_report_to_gather_has_long_until_its_end(monkeypatch, has_report, number):
    monkeypatch.setattr(signals, "REPORT_SECONDS", 1000.0)
    with Watch(owns_process=False) as watch:
        with pytest.raises(KeyboardInterrupt), signals.reporting() if has_report else contextlib.nullcontext():
            send_myself(number)
        is_long = watch.deadline > time.monotonic() + 500.0
    assert is_long == (has_report and number == signal.SIGINT)
    assert watch.report_seconds == signals.LIMIT_SECONDS


@pytest.mark.parametrize("number", CODES, ids=lambda number: number.name)
@pytest.mark.parametrize("where", ["c code", "import", "deaf"])
def test_f15_a_command_that_does_not_come_to_its_end_is_ended(tmp_path, where, number):
    code = """
    import contextlib, hashlib, sys, time
    from spinney._files import replacing
    from spinney.cli import signals

    def wait():
        is_said = False
        while True:
            with contextlib.suppress(KeyboardInterrupt):
                if not is_said:
                    is_said = True
                    print("ready", flush=True)
                if sys.argv[1] == "c code":  # which looks at no signal
                    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)
                time.sleep(60)

    class Loader:
        find_spec = staticmethod(lambda name, *_: wait() if name == "endless" else None)

    with signals.Watch(owns_process=True), signals.interruptible(), replacing("part.txt"):
        if sys.argv[1] == "import":
            sys.meta_path.insert(0, Loader)
            import endless
        wait()
    """
    process = start(["-c", textwrap.dedent(code), where], tmp_path)
    assert process.stdout.readline() == "ready\n"
    assert len(list(tmp_path.iterdir())) == 1
    process.send_signal(number)
    _, err = finish(process)
    assert process.returncode == CODES[number]
    assert err == ("stopped\n" if number == signal.SIGINT else "")
    assert list(tmp_path.iterdir()) == []


def test_signals_that_are_ignored_stay_so():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Watch(owns_process=False):
            assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
            send_myself(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


def test_the_child_of_a_fork_has_its_own_signals(tmp_path):
    code = """
    import os, signal, time
    from spinney.cli import signals

    with signals.Watch(owns_process=True), signals.interruptible():
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writer, b"ready")
            time.sleep(60)
            os._exit(0)
        os.read(reader, 5)
        os.kill(child, signal.SIGTERM)
        _, status = os.waitpid(child, 0)
        time.sleep(2 * signals.LIMIT_SECONDS)  # the signal of a child would end this process meanwhile
        print(os.waitstatus_to_exitcode(status))
    """
    process = start(["-c", textwrap.dedent(code)], tmp_path)
    assert (*finish(process), process.returncode) == (f"{-signal.SIGTERM}\n", "", 0)


def test_the_alarm_of_a_budget_does_not_end_a_command_that_is_long_in_c_code(tmp_path):
    """Python calls no handler there, and the watching thread must not take the alarm for a signal of the user."""
    code = """
    import ctypes
    import signal
    from spinney.cli.signals import Watch
    from spinney.study.clock import Clock

    with Watch(owns_process=True):
        try:
            with Clock(0.1).alarm():
                signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})  # another thread gets it, this one sleeps on
                ctypes.CDLL(None).sleep(3)
        except KeyboardInterrupt:
            print("rung")
    """
    said, errors = finish(start(["-c", textwrap.dedent(code)], tmp_path))
    assert (said, errors) == ("rung\n", "")
