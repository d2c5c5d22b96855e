"""How much memory does a fit take beyond X? The peak of a process of its own, relative to the size of X.

The process draws X, fits a narrow table first, so that neither kernels nor libraries are counted, notes what
it holds, and fits. The peak is the system's own high-water mark (Linux), else the highest of many samples.
"""

from __future__ import annotations

import gc
import json
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.runner import Answer, Scale, report, run_fresh

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_SHARE = 1.0
WARM_ROWS = 100_000  # more than 65,535 distinct values: the column is binned, as in the large table
SAMPLE_SECONDS = 0.002
STATUS = Path("/proc/self/status")
RESET = Path("/proc/self/clear_refs")


def read_status(name: str) -> int:
    """Bytes from a line such as "VmHWM:  1234 kB"."""
    line = next(line for line in STATUS.read_text(encoding="utf-8").splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024


def peak_growth(call: Callable[[], object]) -> int:
    """How many bytes the resident memory rose above its start at the highest point of a call."""
    gc.collect()
    try:
        RESET.write_text("5", encoding="utf-8")  # the high-water mark starts anew
    except OSError:
        return sampled_growth(call)
    before = read_status("VmRSS")
    call()
    return read_status("VmHWM") - before


def sampled_growth(call: Callable[[], object]) -> int:
    """As `peak_growth`, by looking often: a short peak can be missed."""
    import psutil

    process = psutil.Process()
    before = process.memory_info().rss
    peak, is_done = [before], threading.Event()

    def sample() -> None:
        while not is_done.wait(SAMPLE_SECONDS):
            peak.append(max(peak.pop(), process.memory_info().rss))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        call()
    finally:
        is_done.set()
        thread.join()
    return max(peak[0], process.memory_info().rss) - before


def child(n_rows: int, dtype: str) -> dict[str, int]:
    """What the measured process does."""
    import numpy as np

    from benchmarks.tables import draw_numeric
    from spinney import CARTClassifier

    X, y = draw_numeric(n_rows, dtype)
    narrow = np.ascontiguousarray(X[:WARM_ROWS, :2])
    CARTClassifier().fit(narrow, y[:WARM_ROWS])
    model = CARTClassifier()
    growth = peak_growth(lambda: model.fit(X, y))
    return {"table": X.nbytes, "growth": growth, "leaves": model.get_n_leaves()}


def run(scale: Scale) -> list[Answer]:
    answers: list[Answer] = []
    n_rows = scale.rows(1_000_000)
    for dtype in ("float32", "float64"):
        done = run_fresh("-m", "benchmarks.memory", str(n_rows), dtype)
        found = json.loads(done.stdout)
        report(
            answers,
            Answer(
                "memory",
                f"{n_rows:,} x 28 {dtype}",
                f"{found['growth'] / 1e6:.0f} MB beyond X",
                "",
                found["growth"] / found["table"],
                " x X",
                MOST_SHARE,
                is_least=False,
                note=f"X is {found['table'] / 1e6:.0f} MB; {found['leaves']:,} leaves",
            ),
        )
    return answers


if __name__ == "__main__":
    print(json.dumps(child(int(sys.argv[1]), sys.argv[2])))
