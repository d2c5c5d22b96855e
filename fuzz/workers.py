"""Trials in processes of their own, watched: a crash ends one of them, and the next goes on behind it."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from fuzz.corpus import read_corpus, write_corpus
from fuzz.mutations import mutate
from fuzz.trial import WAYS, attempt

HANG_SECONDS = 20.0  # on the clock; what takes a second of the processor's time is reported by the trial itself
POLL_SECONDS = 0.2
SPARE_BYTES = 1 << 30  # address space of a worker beyond what it begins with
CHUNK = 500  # trials between reports
TRACED = 20  # of so many files one, in each way, has its allocations counted


class Fault(NamedTuple):
    """A file that did what none may do."""

    trial: int
    what: str


def make_file(files: list[bytes], seed: int, trial: int) -> bytes:
    """The damaged file of a trial: the same each time."""
    return mutate(files, Random(f"{seed} {trial}"))


def work(folder: str, seed: int, trials: range, current: Any, reports: Any) -> None:
    """Make the trials; `current` says which is under way and since when."""
    from spinney import _jit

    _jit.load_compiled()
    files = read_corpus(Path(folder))
    path = Path(folder) / f"damaged-{os.getpid()}"
    for file in files:  # whatever is loaded or compiled once is so before it is measured
        path.write_bytes(file)
        for way in WAYS:
            attempt(path, way)
        path.unlink()
    limit_memory()
    counts: Counter[str] = Counter()
    faults: list[Fault] = []
    most = 0
    for trial in trials:
        path.write_bytes(make_file(files, seed, trial))
        current[0], current[1] = trial, time.monotonic()
        outcome = attempt(path, WAYS[trial % len(WAYS)], is_traced=trial % TRACED < len(WAYS))
        path.unlink()  # what is mapped must not change
        counts["fault" if outcome.is_fault else outcome.what] += 1
        most = max(most, outcome.peak)
        if outcome.is_fault:
            faults.append(Fault(trial, outcome.what))
        if (trial - trials.start) % CHUNK == CHUNK - 1 or trial == trials[-1]:
            reports.put((trial, dict(counts), faults, most))
            counts, faults = Counter(), []
    current[0] = -1


def limit_memory() -> None:
    """Let an allocation fail that would fill the machine."""
    try:
        import resource
    except ImportError:  # Windows
        return
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + SPARE_BYTES, resource.RLIM_INFINITY))


class Run:
    """A number of trials by several workers.

    Parameters
    ----------
    n : int
        Trials.
    seed, n_workers : int
    failures : Path
        Folder for the files of faults.
    """

    def __init__(self, n: int, seed: int, n_workers: int, failures: Path) -> None:
        self.seed = seed
        self.failures = failures
        self.waiting = [
            range(lo, min(lo + max(CHUNK * 4, n // 100), n)) for lo in range(0, n, max(CHUNK * 4, n // 100))
        ]
        self.n_workers = n_workers
        self.counts: Counter[str] = Counter()
        self.faults: list[Fault] = []
        self.peak = 0

    def run(self, tell: Any) -> None:
        """Make all trials; `tell` is called now and then with this."""
        with tempfile.TemporaryDirectory() as folder:
            write_corpus(Path(folder))
            self.files = read_corpus(Path(folder))
            context = multiprocessing.get_context("spawn")
            reports = context.Queue()
            running: list[Any] = []
            while self.waiting or running:
                while self.waiting and len(running) < self.n_workers:
                    running.append(Worker(context, folder, self.seed, self.waiting.pop(0), reports))
                time.sleep(POLL_SECONDS)
                while not reports.empty():
                    self.note(*reports.get())
                    tell(self)
                for worker in list(running):
                    if worker.is_over():
                        running.remove(worker)
                        self.bury(worker)
            while not reports.empty():
                self.note(*reports.get())
        tell(self)

    def note(self, _: int, counts: dict[str, int], faults: list[Fault], peak: int) -> None:
        """Take in a report."""
        self.counts.update(counts)
        self.peak = max(self.peak, peak)
        for fault in faults:
            self.keep(fault)

    def keep(self, fault: Fault) -> None:
        """Remember a fault, and its file."""
        self.faults.append(fault)
        self.failures.mkdir(parents=True, exist_ok=True)
        (self.failures / f"{self.seed}-{fault.trial}.spn").write_bytes(make_file(self.files, self.seed, fault.trial))

    def bury(self, worker: Worker) -> None:
        """Note why a worker ended before its time, and let another go on behind the file that ended it."""
        if worker.fault is None:
            return
        self.counts["fault"] += 1
        self.keep(worker.fault)
        rest = range(worker.fault.trial + 1, worker.trials.stop)
        if rest:
            self.waiting.insert(0, rest)


class Worker:
    """A process and what it is doing."""

    def __init__(self, context: Any, folder: str, seed: int, trials: range, reports: Any) -> None:
        self.trials = trials
        self.current = context.Array("d", [-2.0, 0.0], lock=False)
        self.process = context.Process(target=work, args=(folder, seed, trials, self.current, reports))
        self.process.start()
        self.fault: Fault | None = None

    def is_over(self) -> bool:
        """Whether the process has ended; one that hangs is ended."""
        trial, since = int(self.current[0]), self.current[1]
        if self.process.is_alive():
            if trial >= 0 and time.monotonic() - since > HANG_SECONDS:
                self.fault = Fault(trial, f"hang: {HANG_SECONDS} s")
                self.process.kill()
                self.process.join()
                return True
            return False
        if self.process.exitcode != 0:
            self.fault = Fault(max(trial, self.trials.start), f"crash: exit code {self.process.exitcode}")
        return True
