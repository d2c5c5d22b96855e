"""How time is taken, and how an answer is printed.

Words: a *question* is one file of this folder; a *case* is one table or situation of a question; an *answer*
is what was measured for a case, with the target it is held to. Ours and the peer take turns in one run, so
that a machine that slows down slows both; the best of the turns counts. The compiler is reported apart.

No library is imported at the top: `__main__` sets the number of threads first.
"""

from __future__ import annotations

import gc
import os
import platform
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ROOT = Path(__file__).resolve().parents[1]
LEAST_ROWS = 100
LIBRARIES = ("spinney", "numpy", "numba", "llvmlite", "scikit-learn", "pyarrow", "lightgbm", "xgboost", "shap", "ydf")
BUSY_LOAD = 0.5
HEADING = (
    "| question | case | ours | peer | judged | target | verdict | notes |",
    "|---|---|---|---|---:|---|---|---|",
)


class Scale(NamedTuple):
    """How much is measured: all of it, or a share to try the code with."""

    share: float  # of the rows
    repeats: int
    peer_trees: int = 20  # of the forests of peers; their times are scaled up to the trees of ours

    def rows(self, n: int) -> int:
        return max(int(n * self.share), LEAST_ROWS)


FULL = Scale(1.0, 5)
QUICK = Scale(0.1, 2, 5)


class Timing(NamedTuple):
    """Seconds on the clock, and seconds of all cores, children included."""

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{in_seconds(self.wall)} (CPU {in_seconds(self.cpu)})"


class Runs(NamedTuple):
    """What one side did over its turns."""

    best: Timing  # least wall and least CPU, each by itself
    results: list[Any]


def in_seconds(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1.0 else f"{seconds * 1e3:.3g} ms"


# --- Measuring ----------------------------------------------------------------------------------------------


def cpu_seconds() -> float:
    """CPU time of this process, all threads, and of the children it has waited for."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def measure(call: Callable[[], Any]) -> tuple[Timing, Any]:
    """Time one call; return its result too."""
    gc.collect()
    cpu, wall = cpu_seconds(), time.perf_counter()
    result = call()
    wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
    return Timing(wall, cpu), result


def alternate(sides: Iterable[Callable[[int], Any]], repeats: int) -> list[Runs]:
    """Let the sides take turns; each is called with the number of the turn."""
    sides = list(sides)
    turns: list[list[tuple[Timing, Any]]] = [[] for _ in sides]
    for turn in range(repeats):
        for side, taken in zip(sides, turns, strict=True):
            taken.append(measure(lambda side=side: side(turn)))  # noqa: B023  (called before the next turn)
    runs = []
    for taken in turns:
        best = Timing(min(timing.wall for timing, _ in taken), min(timing.cpu for timing, _ in taken))
        runs.append(Runs(best, [result for _, result in taken]))
    return runs


def run_fresh(*arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments in a new process that may write bytecode."""
    variables = {**os.environ, **(environment or {})}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=variables, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{arguments} failed:\n{done.stderr}")
    return done


# --- Answers ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """What was measured for a case; `value` is judged against `limit`."""

    question: str
    case: str
    ours: str
    peer: str
    value: float
    unit: str
    limit: float | None = None  # None: reported, not judged
    is_least: bool = True  # whether the limit is the least or the most that is allowed
    is_alike: bool = True  # whether the two sides did the same work
    note: str = ""

    @property
    def target(self) -> str:
        if self.limit is None:
            return "none"
        return f"{'≥' if self.is_least else '≤'} {self.limit:g}{self.unit}"

    @property
    def verdict(self) -> str:
        if self.limit is None:
            return "reported"
        if not self.is_alike:
            return "not alike"
        is_met = self.value >= self.limit if self.is_least else self.value <= self.limit
        return "met" if is_met else "missed"

    @property
    def judged(self) -> str:
        return f"{self.value:.3g}{self.unit}"

    def line(self) -> str:
        """For a terminal."""
        sides = self.ours if not self.peer else f"{self.ours} against {self.peer}"
        text = f"{self.case}: {sides}: {self.judged} (target {self.target}: {self.verdict})"
        return f"{text}\n    {self.note}" if self.note else text

    def markdown(self) -> str:
        """One row of the table in RESULTS.md."""
        cells = (
            self.question,
            self.case,
            self.ours,
            self.peer,
            self.judged,
            self.target,
            self.verdict,
            self.note,
        )
        return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"


def report(answers: list[Answer], answer: Answer) -> None:
    """Print an answer as soon as it is known, and keep it."""
    print(answer.line(), flush=True)
    answers.append(answer)


def append_rows(path: Path, machine: dict[str, str], answers: list[Answer]) -> None:
    """Add a run to a Markdown file: the machine, then a row per answer."""
    about = "; ".join(f"{name} {value}" for name, value in machine.items())
    text = "\n".join(["", f"### {time.strftime('%Y-%m-%d')}", "", about, "", *HEADING])
    with path.open("a", encoding="utf-8") as file:
        file.write("\n".join([text, *(answer.markdown() for answer in answers), ""]))


# --- The machine --------------------------------------------------------------------------------------------


def describe_machine() -> dict[str, str]:
    """CPU, versions and load: what a result means nothing without."""
    load = os.getloadavg()[0]
    return {
        "CPU": f"{cpu_model()}, {os.cpu_count()} cores",
        "system": platform.platform(),
        "python": platform.python_version(),
        **{name: installed(name) for name in LIBRARIES},
        "commit": commit(),
        "load": f"{load:.2f}{' (busy: times are not to be trusted)' if load > BUSY_LOAD else ''}",
    }


def cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return str(getattr(sys.modules.get(name), "__version__", "not installed"))


def commit() -> str:
    """The commit that is measured; marked where files differ from it."""
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
