"""What does a fit of a table on disk cost? Boosting of 31 leaves and 50 rounds from Parquet, one thread, by a scan.

A forest of some full trees, and AdaBoost with stumps, are grown from disk and in memory likewise. Beside boosting our
own fit of the same files read into memory, one from disk by levels within a limit, of all rows and of a quarter of
them, and XGBoost's `ExtMemQuantileDMatrix`, whose iterator reads a file at a time and whose pages are on disk. Each in
a process of its own, from the files to the model, after a small fit that loads kernels and libraries; the files are in
the page cache of the system. Memory is the peak of anonymous memory (RssAnon) beyond that before: mapped files, which
the system may drop, do not count.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.memory import read_status
from benchmarks.runner import Answer, Scale, Timing, measure, report, run_fresh

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = 5_000_000
FILE_ROWS = 250_000
WARM_ROWS = 20_000
ROUNDS, LEAVES, BINS, RATE = 50, 31, 255, 0.1
LIMIT = 300_000_000  # of a fit by levels
TREES = 4
FOREST_LIMIT = 500_000_000  # of a forest, or of AdaBoost, from disk
STUMPS = 20
MOST_GROWTH = 1.05  # of its memory, from a quarter of the rows to all
MOST_OF_LIMIT = 1.1  # that a fit by levels may take
MOST_TIMES = 1.5  # of our own time in memory
LEAST_TIMES = 2.0  # that of XGBoost
SAMPLE_SECONDS = 0.02
MEGA = 1e6


def write_files(folder: Path, n_rows: int) -> int:
    """Write a table to Parquet files; their bytes."""
    import pyarrow as pa
    from pyarrow import parquet

    from benchmarks.tables import draw_numeric

    n_bytes = 0
    for i, first in enumerate(range(0, n_rows, FILE_ROWS)):
        X, y = draw_numeric(min(FILE_ROWS, n_rows - first), seed=i)
        path = folder / f"part-{i}.parquet"
        parquet.write_table(pa.table({**{f"x{j}": column for j, column in enumerate(X.T)}, "y": y}), path)
        n_bytes += path.stat().st_size
    return n_bytes


# --- What the measured processes do ---------------------------------------------------------------------------


def peak_anonymous(call: Callable[[], Any]) -> tuple[int, Any]:
    """By how many bytes anonymous memory rose during a call, by looking often; and what the call gives."""
    before = read_status("RssAnon")
    peak, is_done = [before], threading.Event()

    def sample() -> None:
        while not is_done.wait(SAMPLE_SECONDS):
            peak[0] = max(peak[0], read_status("RssAnon"))

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        result = call()
    finally:
        is_done.set()
        thread.join()
    return max(peak[0], read_status("RssAnon")) - before, result


def list_parts(folder: Path) -> list[Path]:
    """The files in their order."""
    return sorted(folder.glob("*.parquet"), key=lambda path: int(path.stem.partition("-")[2]))


def boost(source: Any, y: Any = None, n_jobs: int | None = 1) -> Any:
    """Our model."""
    from spinney import GradientBoostingClassifier

    model = GradientBoostingClassifier(
        n_estimators=ROUNDS,
        max_leaf_nodes=LEAVES,
        learning_rate=RATE,
        max_bins=BINS,
        subsample=1.0,
        max_features=None,
        random_state=0,
        n_jobs=n_jobs,
    )
    return model.fit(source, y)


def fit_scan(folder: Path) -> Any:
    """From the files by a scan."""
    from spinney import scan

    return boost(scan(str(folder / "*.parquet"), target="y"))


def read_files(folder: Path) -> tuple[Any, Any]:
    """The files in memory: X and y."""
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.concat_tables([parquet.read_table(path) for path in list_parts(folder)])
    return table.drop_columns(["y"]), table["y"].to_numpy()


def fit_memory(folder: Path) -> Any:
    """From the files read into memory."""
    return boost(*read_files(folder))


def fit_xgboost(folder: Path) -> Any:
    """By XGBoost's external memory."""
    import xgboost
    from pyarrow import parquet

    class Files(xgboost.DataIter):  # type: ignore[misc]
        def __init__(self, pages: str) -> None:
            self.paths, self.at = list_parts(folder), 0
            super().__init__(cache_prefix=f"{pages}/pages")

        def next(self, input_data: Any) -> bool:
            if self.at == len(self.paths):
                return False
            table = parquet.read_table(self.paths[self.at])
            input_data(data=table.drop_columns(["y"]), label=table["y"].to_numpy())
            self.at += 1
            return True

        def reset(self) -> None:
            self.at = 0

    settings = {
        "objective": "binary:logistic",
        "tree_method": "hist",
        "grow_policy": "lossguide",
        "max_leaves": LEAVES,
        "max_depth": 0,
        "max_bin": BINS,
        "eta": RATE,
        "nthread": 1,
    }
    with tempfile.TemporaryDirectory() as pages:
        data = xgboost.ExtMemQuantileDMatrix(Files(pages), max_bin=BINS, nthread=1)
        return xgboost.train(settings, data, num_boost_round=ROUNDS)


def fit_levels(folder: Path) -> Any:
    """From disk by levels, within a limit; also the table to warm up with, which memory would hold."""
    from unittest.mock import patch

    from spinney import scan
    from spinney.scale import plan

    with patch.object(plan, "fits", lambda found: found.by_levels and found.peak_bytes <= LIMIT):
        return boost(scan(str(folder / "*.parquet"), target="y", memory=LIMIT))


def grow_forest(source: Any, y: Any = None) -> Any:
    """Our forest, of full depth."""
    from spinney import RandomForestClassifier

    return RandomForestClassifier(n_estimators=TREES, random_state=0, n_jobs=1).fit(source, y)


def fit_forest_disk(folder: Path) -> Any:
    """A forest from disk, within a limit; the small table to warm up with fits memory."""
    from spinney import scan

    return grow_forest(scan(str(folder / "*.parquet"), target="y", memory=FOREST_LIMIT))


def fit_forest_memory(folder: Path) -> Any:
    """A forest from the files read into memory."""
    return grow_forest(*read_files(folder))


def boost_stumps(source: Any, y: Any = None) -> Any:
    """Our AdaBoost, of stumps."""
    from spinney import AdaBoostClassifier

    return AdaBoostClassifier(n_estimators=STUMPS, random_state=0).fit(source, y)


def fit_stumps_disk(folder: Path) -> Any:
    """AdaBoost from disk, within a limit; also the table to warm up with, which memory would hold."""
    from unittest.mock import patch

    from spinney import scan
    from spinney.scale import plan

    with patch.object(plan, "fits", lambda found: found.by_levels and found.peak_bytes <= FOREST_LIMIT):
        return boost_stumps(scan(str(folder / "*.parquet"), target="y", memory=FOREST_LIMIT))


def fit_stumps_memory(folder: Path) -> Any:
    """AdaBoost from the files read into memory."""
    return boost_stumps(*read_files(folder))


SIDES = {
    "scan": fit_scan,
    "memory": fit_memory,
    "levels": fit_levels,
    "xgboost": fit_xgboost,
    "forest-disk": fit_forest_disk,
    "forest-memory": fit_forest_memory,
    "stumps-disk": fit_stumps_disk,
    "stumps-memory": fit_stumps_memory,
}


def child(side: str, folder: Path, warm: Path, out: Path) -> dict[str, float]:
    """Fit a small table, then the large one; time and memory of the second."""
    fit = SIDES[side]
    fit(warm)
    timing, (peak, model) = measure(lambda: peak_anonymous(lambda: fit(folder)))
    if side != "xgboost":
        model.save_model(out)
    return {"wall": timing.wall, "cpu": timing.cpu, "peak": peak}


# --- The question ---------------------------------------------------------------------------------------------


def run(scale: Scale, n_rows: int | None = None) -> list[Answer]:
    """All answers."""
    n_rows = scale.rows(ROWS) if n_rows is None else n_rows
    answers: list[Answer] = []
    with tempfile.TemporaryDirectory() as place:
        folder, warm, quarter = (Path(place) / name for name in ("files", "warm", "quarter"))
        for one in (folder, warm, quarter):
            one.mkdir()
        begun = time.perf_counter()
        n_bytes = write_files(folder, n_rows)
        write_files(warm, min(n_rows, WARM_ROWS))
        write_files(quarter, n_rows // 4)
        print(f"wrote {n_rows:,} rows, {n_bytes / MEGA:,.0f} MB, in {time.perf_counter() - begun:.0f} s", flush=True)

        def run_side(side: str, rows: Path = folder) -> dict[str, float]:
            paths = (str(path) for path in (rows, warm, Path(place) / f"{side}-{rows.name}.spn"))
            done = run_fresh("-m", "benchmarks.larger_than_memory", side, *paths)
            found: dict[str, float] = json.loads(done.stdout)
            return found

        case = f"{n_rows:,} x 28 from Parquet, {ROUNDS} rounds of {LEAVES} leaves"
        scan, memory = run_side("scan"), run_side("memory")
        report(answers, compare_memory(case, scan, memory, is_alike=are_alike(place, "scan", "memory")))
        report(answers, compare_peaks(case, scan, memory))
        levels, few = run_side("levels"), run_side("levels", quarter)
        note = f"{case}, from disk by levels in {LIMIT / MEGA:.0f} MB"
        report(answers, compare_memory(note, levels, memory, is_alike=are_alike(place, "levels", "memory")))
        report(answers, compare_limit(note, levels, LIMIT))
        report(answers, compare_limit(f"{note}, a quarter of the rows", few, LIMIT))
        if find_spec("xgboost") is not None:
            report(answers, compare_xgboost(case, scan, run_side("xgboost")))
        case = f"{n_rows:,} x 28 from Parquet, forest of {TREES} full trees, from disk in {FOREST_LIMIT / MEGA:.0f} MB"
        disk, memory = run_side("forest-disk"), run_side("forest-memory")
        report(answers, compare_memory(case, disk, memory, is_alike=are_alike(place, "forest-disk", "forest-memory")))
        report(answers, compare_peaks(case, disk, memory))
        report(answers, compare_growth(case, disk, run_side("forest-disk", quarter)))
        case = f"{n_rows:,} x 28 from Parquet, AdaBoost of {STUMPS} stumps, from disk in {FOREST_LIMIT / MEGA:.0f} MB"
        disk, memory = run_side("stumps-disk"), run_side("stumps-memory")
        report(answers, compare_memory(case, disk, memory, is_alike=are_alike(place, "stumps-disk", "stumps-memory")))
        report(answers, compare_peaks(case, disk, memory))
        report(answers, compare_growth(case, disk, run_side("stumps-disk", quarter)))
    return answers


def are_alike(place: str, *sides: str) -> bool:
    """Whether two sides have written the same model."""
    one, other = ((Path(place) / f"{side}-files.spn").read_bytes() for side in sides)
    return one == other


def show(found: dict[str, float]) -> str:
    """Time and memory of a side."""
    return f"{Timing(found['wall'], found['cpu'])}, {found['peak'] / MEGA:,.0f} MB"


def compare_memory(case: str, scan: dict[str, float], memory: dict[str, float], *, is_alike: bool) -> Answer:
    """The time of a scan beside that of memory."""
    note = "the model files are equal" if is_alike else "THE MODEL FILES DIFFER"
    times = scan["cpu"] / memory["cpu"]
    return Answer(
        "larger_than_memory",
        f"{case}, our own fit in memory",
        show(scan),
        show(memory),
        times,
        " x CPU",
        MOST_TIMES,
        is_least=False,
        is_alike=is_alike,
        note=note,
    )


def compare_peaks(case: str, scan: dict[str, float], memory: dict[str, float]) -> Answer:
    """The memory of a scan beside that of memory."""
    share = scan["peak"] / max(memory["peak"], 1.0)
    return Answer("larger_than_memory", f"{case}, peak memory", show(scan), show(memory), share, " x memory")


def compare_limit(case: str, levels: dict[str, float], limit: float) -> Answer:
    """The memory of a fit by levels beside its limit, which rows that are held may fill."""
    share, name = levels["peak"] / limit, f"{case}, peak memory of its limit"
    limits = f"limit {limit / MEGA:,.0f} MB"
    return Answer("larger_than_memory", name, show(levels), limits, share, " x memory", MOST_OF_LIMIT, is_least=False)


def compare_growth(case: str, levels: dict[str, float], few: dict[str, float]) -> Answer:
    """The memory of trees from disk beside that of a quarter of the rows."""
    times = levels["peak"] / max(few["peak"], 1.0)
    name = f"{case}, peak memory of a quarter of the rows"
    return Answer("larger_than_memory", name, show(levels), show(few), times, " x memory", MOST_GROWTH, is_least=False)


def compare_xgboost(case: str, scan: dict[str, float], peer: dict[str, float]) -> Answer:
    """The time of XGBoost beside that of a scan."""
    times = peer["cpu"] / scan["cpu"]
    note = f"XGBoost takes {peer['peak'] / max(scan['peak'], 1.0):.2f} x our memory; neither was limited"
    return Answer(
        "larger_than_memory",
        f"{case}, XGBoost's ExtMemQuantileDMatrix",
        show(scan),
        show(peer),
        times,
        " x CPU",
        LEAST_TIMES,
        note=note,
    )


if __name__ == "__main__":
    side, *places = sys.argv[1:]
    print(json.dumps(child(side, *map(Path, places))))
