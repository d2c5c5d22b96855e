"""One damaged file: opened, and if that is possible, asked."""

from __future__ import annotations

import time
import tracemalloc
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

MOST_SECONDS = 1.0  # of the processor
MOST_TIMES = 4  # as much memory as the file is long,
MORE_TIMES = 12  # as the header is beside that, whose JSON takes more than its letters,
FREE_BYTES = 1 << 19  # and what any file may take
ROWS = np.array([[0.0, 1.0, 2.0, 3.0], [np.nan] * 4, [-1e30, 1e30, 4.0, 5.0], [0.5, -0.5, 1.0, 70_000.0]])
MANY = 25  # times these rows, so that engines for many rows are asked too
WAYS = ("load_model", "load_predictor")
REFUSED, OPENED = "refused", "opened"


class Outcome(NamedTuple):
    """What became of a file."""

    what: str  # REFUSED, OPENED, or a fault
    seconds: float
    peak: int  # bytes

    @property
    def is_fault(self) -> bool:
        """Whether it should not be."""
        return self.what not in (REFUSED, OPENED)


def attempt(path: Path, way: str, *, is_traced: bool = True) -> Outcome:
    """Open a file in a way of WAYS and predict a few rows.

    is_traced: every allocation is counted, which takes twice the time; else only how far the process grew beyond the
    most it ever had.
    """
    size = path.stat().st_size
    before = most_resident()
    if is_traced:
        tracemalloc.start()
    begin = time.process_time()
    try:
        what = open_and_ask(path, way)
        seconds = time.process_time() - begin
        peak = tracemalloc.get_traced_memory()[1] if is_traced else most_resident() - before
    finally:
        tracemalloc.stop()
    if seconds > MOST_SECONDS:
        what = f"slow: {seconds:.1f} s"
    elif peak > most_bytes(path, size):
        what = f"memory: {peak} bytes for a file of {size}"
    return Outcome(what, seconds, peak)


def most_bytes(path: Path, size: int) -> int:
    """How much memory a file may take."""
    with path.open("rb") as file:
        header = min(int.from_bytes(file.read(8), "little"), size)
    return MOST_TIMES * size + MORE_TIMES * header + FREE_BYTES


def most_resident() -> int:
    """Bytes in memory that this process had at most so far; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def open_and_ask(path: Path, way: str) -> str:
    """REFUSED, OPENED if it also predicts, else what went wrong."""
    import spinney

    try:
        model = getattr(spinney, way)(path)
    except ValueError:  # of which ours are
        return REFUSED
    except Exception as error:  # noqa: BLE001
        return f"{way} raised {error!r:.200}"
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            ask(model)
    except Exception as error:  # noqa: BLE001
        return REFUSED if is_ours(error) else f"predict after {way} raised {error!r:.200}"
    return OPENED


def is_ours(error: Exception) -> bool:
    """Whether it was raised by a line of ours, with words of ours."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return (
        isinstance(error, ValueError)
        and trace is not None
        and "spinney" in Path(trace.tb_frame.f_code.co_filename).parts
    )


def ask(model: Any) -> None:
    """Predict a few rows: as a table, and as values one by one."""
    schema = getattr(model, "schema", None) or getattr(model, "_schema", None)  # members may have one each
    n_features = schema.n_features if schema else model.n_features_in_
    rows = np.resize(ROWS, (len(ROWS), n_features))
    cells = rows.astype(object)
    for column, levels in enumerate(schema.levels if schema else ()):
        if levels is not None:
            cells[:, column] = [levels[i % len(levels)] if levels else None for i in range(len(ROWS))]
    if hasattr(model, "n_jobs"):
        model.n_jobs = None  # 0 is refused, as it should be
    model.predict(cells)
    if hasattr(model, "schema"):
        for row in rows:
            model(row)
        model(np.tile(rows, (MANY, 1)))
        model.apply(cells)
