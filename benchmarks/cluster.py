"""What does a cluster cost, and what does it bring? Fits of Dask collections by two processes of one thread each.

A forest beside our own fit in one process by one thread; boosting, which one worker does, beside `xgboost.dask` and
`lightgbm.dask` on the same cluster and partitions; and a round of tasks that do nothing. Each in a process of its own,
from Parquet to the model, after a fit of few rows that loads kernels and libraries. CPU time is that of the client and
of all workers: on a machine that is busy, or whose two processors are siblings of one core, the clock says little.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.larger_than_memory import LEAVES, RATE, ROUNDS, boost, list_parts, write_files
from benchmarks.runner import Answer, Scale, Timing, report, run_fresh

if TYPE_CHECKING:
    from collections.abc import Callable

FOREST_ROWS, FOREST_TREES = 1_000_000, 100
BOOSTED_ROWS = 500_000
WARM_ROWS = 20_000
WORKERS = 2
EMPTY_ROUNDS = 50
LEAST_GAIN = 1.5  # of a forest, by the clock
MOST_ROUND = 20.0  # milliseconds
LEAST_TIMES = 1.5  # that of peers
FEATURES = [f"x{j}" for j in range(28)]


# --- What the measured processes do ---------------------------------------------------------------------------


def open_frame(folder: Path) -> Any:
    """The files as a Dask frame: a partition for each, read once, since peers want y cut as X is."""
    import dask.dataframe as dd

    return dd.read_parquet([str(path) for path in list_parts(folder)]).persist()


def forest() -> Any:
    """Our forest; trees are given as an argument of the process."""
    from spinney import RandomForestClassifier

    return RandomForestClassifier(n_estimators=int(sys.argv[5]), random_state=0, n_jobs=1)


def fit_forest_here(folder: Path) -> Any:
    """In this process, by one thread."""
    import pandas as pd

    frame = pd.concat([pd.read_parquet(path) for path in list_parts(folder)])
    return forest().fit(frame[FEATURES], frame["y"])


def fit_forest_there(folder: Path) -> Any:
    """By the workers."""
    frame = open_frame(folder)
    return forest().fit(frame[FEATURES], frame["y"])


def boost_there(folder: Path) -> Any:
    """By one of the workers."""
    frame = open_frame(folder)
    return boost(frame[FEATURES], frame["y"])


def boost_xgboost(folder: Path) -> Any:
    """By XGBoost, on all workers."""
    from xgboost.dask import DaskXGBClassifier

    frame = open_frame(folder)
    model = DaskXGBClassifier(
        n_estimators=ROUNDS,
        max_leaves=LEAVES,
        max_depth=0,
        grow_policy="lossguide",
        learning_rate=RATE,
        tree_method="hist",
        max_bin=255,
    )
    return model.fit(frame[FEATURES], frame["y"])


def boost_lightgbm(folder: Path) -> Any:
    """By LightGBM, on all workers."""
    from lightgbm.dask import DaskLGBMClassifier

    frame = open_frame(folder)
    model = DaskLGBMClassifier(
        n_estimators=ROUNDS, num_leaves=LEAVES, learning_rate=RATE, tree_learner="data", verbose=-1
    )
    return model.fit(frame[FEATURES], frame["y"])


def do_nothing(_: int) -> None:
    """A task without work."""


def time_rounds(_: Path) -> float:
    """Milliseconds of a round of one task for each worker, the median of many."""
    from distributed import default_client

    from spinney.scale.cluster.dask_engine import DaskEngine

    seconds = []
    with DaskEngine(default_client()) as engine:
        for _ in range(EMPTY_ROUNDS):
            begun = time.perf_counter()
            list(engine.map("nothing", do_nothing, range(WORKERS)))
            seconds.append(time.perf_counter() - begun)
    return 1e3 * statistics.median(seconds)


SIDES: dict[str, Callable[[Path], Any]] = {
    "forest_here": fit_forest_here,
    "forest_there": fit_forest_there,
    "boosting": boost_there,
    "xgboost": boost_xgboost,
    "lightgbm": boost_lightgbm,
    "rounds": time_rounds,
}


def child(side: str, folder: Path, warm: Path, out: Path) -> dict[str, float]:
    """Do it for a small table, then for the large one, on a cluster unless it is for here."""
    if side == "forest_here":
        return timed(side, folder, warm, out, lambda: 0.0)
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        return timed(side, folder, warm, out, lambda: sum(client.run(time.process_time).values()))


def timed(side: str, folder: Path, warm: Path, out: Path, cpu_of_workers: Callable[[], float]) -> dict[str, float]:
    """Clock and CPU time of the second call, the CPU time that of workers too; what it gives if that is a number."""
    fit = SIDES[side]
    fit(warm)
    before, cpu, wall = cpu_of_workers(), time.process_time(), time.perf_counter()
    model = fit(folder)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu + cpu_of_workers() - before
    if hasattr(model, "save_model") and side.startswith("forest"):
        model.save_model(out)
    return {"wall": wall, "cpu": cpu, "value": model if isinstance(model, float) else 0.0}


# --- The question ---------------------------------------------------------------------------------------------


def run(scale: Scale, n_rows: int | None = None, n_trees: int | None = None) -> list[Answer]:
    """All answers; n_rows: of the forest, boosting has half of them."""
    n_rows = scale.rows(FOREST_ROWS) if n_rows is None else n_rows
    n_trees = n_trees or FOREST_TREES
    n_boosted = n_rows * BOOSTED_ROWS // FOREST_ROWS
    answers: list[Answer] = []
    with tempfile.TemporaryDirectory() as place:
        folders = {name: Path(place) / name for name in ("forest", "boosted", "warm")}
        for name, n in zip(folders, (n_rows, n_boosted, WARM_ROWS), strict=True):
            folders[name].mkdir()
            write_files(folders[name], n)

        def run_side(side: str, table: str) -> dict[str, float]:
            places = (str(path) for path in (folders[table], folders["warm"], Path(place) / f"{side}.spn"))
            done = run_fresh("-m", "benchmarks.cluster", side, *places, str(n_trees))
            found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
            return found

        there, here = run_side("forest_there", "forest"), run_side("forest_here", "forest")
        is_alike = (Path(place) / "forest_there.spn").read_bytes() == (Path(place) / "forest_here.spn").read_bytes()
        report(answers, compare_forests(f"forest of {n_trees} trees, {n_rows:,} x 28", there, here, is_alike=is_alike))
        rounds = run_side("rounds", "warm")["value"]
        case = f"a round of {WORKERS} tasks that do nothing"
        report(
            answers,
            Answer("cluster", case, f"{rounds:.1f} ms", "", rounds, " ms", MOST_ROUND, is_least=False),
        )
        ours = run_side("boosting", "boosted")
        for peer in ("xgboost", "lightgbm"):
            if find_spec(peer) is not None:
                case = f"boosting, {ROUNDS} rounds of {LEAVES} leaves, {n_boosted:,} x 28, {peer}.dask"
                report(answers, compare_boosting(case, ours, run_side(peer, "boosted")))
    return answers


def show(found: dict[str, float]) -> str:
    """Time of a side."""
    return str(Timing(found["wall"], found["cpu"]))


def compare_forests(case: str, there: dict[str, float], here: dict[str, float], *, is_alike: bool) -> Answer:
    """Two processes beside one."""
    note = f"{there['cpu'] / here['cpu']:.2f} x the CPU time; " + (
        "the model files are equal" if is_alike else "THE MODEL FILES DIFFER"
    )
    gain = here["wall"] / there["wall"]
    return Answer("cluster", case, show(there), show(here), gain, " x", LEAST_GAIN, is_alike=is_alike, note=note)


def compare_boosting(case: str, ours: dict[str, float], peer: dict[str, float]) -> Answer:
    """One worker of ours beside two of theirs."""
    note = f"CPU {peer['cpu'] / ours['cpu']:.2f} x; ours at one worker, theirs at two"
    return Answer("cluster", case, show(ours), show(peer), peer["wall"] / ours["wall"], " x", LEAST_TIMES, note=note)


if __name__ == "__main__":
    print(json.dumps(child(sys.argv[1], *map(Path, sys.argv[2:5]))))
