"""What does a cluster cost, and what does it bring? Fits of Dask collections by two processes of one thread each.

A forest beside our own fit in one process by one thread; boosting, which one worker does, beside `xgboost.dask` and
`lightgbm.dask` on the same cluster and partitions, by processes of two threads too; the same by all workers, level by
level; a round of tasks that do nothing; a fit in whose middle a worker is killed; and the memory of workers after a
fit. Each in a process of its own, from Parquet to the model, after a fit of few rows that loads kernels and libraries
on every worker. CPU time is that of the client and of all workers: on a machine that is busy, or whose two processors
are siblings of one core, the clock says little.
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
from benchmarks.memory import read_status
from benchmarks.runner import Answer, Scale, Timing, report, run_fresh

if TYPE_CHECKING:
    from collections.abc import Callable

FOREST_ROWS, FOREST_TREES = 1_000_000, 100
BOOSTED_ROWS = 500_000
LARGE = 10  # times as many rows, for which the peers are to be met
HELD_OUT = 200_000  # rows that AUC is found of
KILLED_TREES = 24
WARM_ROWS = 20_000
WORKERS = 2
EMPTY_ROUNDS = 50
KEPT_SECONDS = 5.0  # after a fit, when its memory is looked at
LEAST_GAIN = 1.5  # of a forest, by the clock
MOST_ROUND = 20.0  # milliseconds
LEAST_TIMES = 1.5  # that of peers
LEAST_LARGE = 1.0  # the same of the large table
MOST_KILLED = 1.3  # of a fit without a loss
MOST_KEPT = 100.0  # megabytes of a worker after a fit
NEAR_AUC = 0.001
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
    """By one of the workers, and all threads that it has."""
    frame = open_frame(folder)
    return boost(frame[FEATURES], frame["y"], n_jobs=None)


def boost_by_levels(folder: Path) -> Any:
    """By all workers, level by level."""
    import dask

    with dask.config.set({"spinney.plan": "levels"}):
        return boost_there(folder)


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


def kill_one(folder: Path) -> float:
    """Seconds of a forest in whose middle a worker is killed, over those of one without; refuses files that differ."""
    import os
    import signal
    import threading

    from distributed import default_client

    seconds: list[float] = []
    files: list[bytes] = []
    for is_killed in (False, True):
        frame = open_lazy(folder)
        begun = time.perf_counter()
        if is_killed:
            pid = next(iter(default_client().run(os.getpid).values()))
            threading.Timer(seconds[0] / 2, os.kill, (pid, signal.SIGKILL)).start()
        from spinney import RandomForestClassifier

        model = RandomForestClassifier(n_estimators=KILLED_TREES, random_state=0).fit(frame[FEATURES], frame["y"])
        seconds.append(time.perf_counter() - begun)
        path = folder / "killed.spn"
        model.save_model(path)
        files.append(path.read_bytes())
        path.unlink()
    if files[0] != files[1]:
        raise AssertionError("the model of the fit that has lost a worker is another one")
    return seconds[1] / seconds[0]


def open_lazy(folder: Path) -> Any:
    """The same frame, which workers that come later can read again."""
    import dask.dataframe as dd

    return dd.read_parquet([str(path) for path in list_parts(folder)])


def measure_kept(folder: Path) -> float:
    """Megabytes that a worker has more of after a fit than before, at most."""
    import gc

    from distributed import default_client

    client = default_client()
    before = client.run(read_status, "VmRSS")
    boost_by_levels(folder)
    gc.collect()
    time.sleep(KEPT_SECONDS)
    after = client.run(read_status, "VmRSS")
    return max(after[address] - before[address] for address in before) / 1e6


SIDES: dict[str, Callable[[Path], Any]] = {
    "forest_here": fit_forest_here,
    "forest_there": fit_forest_there,
    "boosting": boost_there,
    "levels": boost_by_levels,
    "killed": kill_one,
    "kept": measure_kept,
    "xgboost": boost_xgboost,
    "lightgbm": boost_lightgbm,
    "rounds": time_rounds,
}


def child(side: str, folder: Path, warm: Path, out: Path) -> dict[str, float]:
    """Do it for a small table, then for the large one, on a cluster unless it is for here."""
    if side == "forest_here":
        return timed(side, folder, warm, out, lambda: 0.0)
    import dask
    from distributed import Client, LocalCluster

    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"}),
        LocalCluster(n_workers=WORKERS, threads_per_worker=int(sys.argv[6]), dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        if side not in {"xgboost", "lightgbm"}:
            client.run(warm_worker, warm)
        return timed(side, folder, warm, out, lambda: sum(client.run(time.process_time).values()))


def warm_worker(folder: Path) -> None:
    """Fit a small table on a worker: a fit that one of them does would leave the others without kernels."""
    import pandas as pd

    from spinney import RandomForestClassifier

    frame = pd.concat([pd.read_parquet(path) for path in list_parts(folder)])
    boost(frame[FEATURES], frame["y"])
    RandomForestClassifier(n_estimators=2).fit(frame[FEATURES], frame["y"])


def timed(side: str, folder: Path, warm: Path, out: Path, cpu_of_workers: Callable[[], float]) -> dict[str, float]:
    """Clock and CPU time of the second call, the CPU time that of workers too; what it gives if that is a number."""
    fit = SIDES[side]
    if side not in {"killed", "kept"}:
        fit(warm)
    before, cpu, wall = cpu_of_workers(), time.process_time(), time.perf_counter()
    model = fit(folder)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu + cpu_of_workers() - before
    found = {"wall": wall, "cpu": cpu, "value": 0.0}
    if isinstance(model, float):
        found["value"] = model
    elif side.startswith("forest"):
        model.save_model(out)
    else:
        found["value"] = find_auc(model)
    return found


def find_auc(model: Any) -> float:
    """AUC on rows that are held out."""
    import pandas as pd
    from sklearn.metrics import roc_auc_score

    from benchmarks.tables import draw_numeric

    X, y = draw_numeric(HELD_OUT, seed=999)
    rows = pd.DataFrame(X, columns=FEATURES)
    if hasattr(model, "get_booster"):  # of XGBoost, whose class for clusters predicts collections alone
        from xgboost import DMatrix

        return float(roc_auc_score(y, model.get_booster().predict(DMatrix(rows))))
    local = model.to_local() if hasattr(model, "to_local") else model
    return float(roc_auc_score(y, local.predict_proba(rows)[:, 1]))


# --- The question ---------------------------------------------------------------------------------------------


def run(scale: Scale, n_rows: int | None = None, n_trees: int | None = None) -> list[Answer]:
    """All answers; n_rows: of the forest, boosting has half of them."""
    n_rows = scale.rows(FOREST_ROWS) if n_rows is None else n_rows
    n_trees = n_trees or FOREST_TREES
    n_boosted = n_rows * BOOSTED_ROWS // FOREST_ROWS
    answers: list[Answer] = []
    with tempfile.TemporaryDirectory() as place:
        folders = {name: Path(place) / name for name in ("forest", "boosted", "large", "warm")}
        for name, n in zip(folders, (n_rows, n_boosted, LARGE * n_boosted, WARM_ROWS), strict=True):
            folders[name].mkdir()
            write_files(folders[name], n)

        def run_side(side: str, table: str, n_threads: int = 1) -> dict[str, float]:
            places = (str(path) for path in (folders[table], folders["warm"], Path(place) / f"{side}.spn"))
            done = run_fresh("-m", "benchmarks.cluster", side, *places, str(n_trees), str(n_threads))
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
        killed = run_side("killed", "boosted")["value"]
        case = f"forest of {KILLED_TREES} trees, {n_boosted:,} x 28, a worker killed in the middle"
        report(answers, Answer("cluster", case, "", "", killed, " x", MOST_KILLED, is_least=False))
        kept = run_side("kept", "boosted")["value"]
        case = f"memory of a worker after boosting {n_boosted:,} x 28"
        report(answers, Answer("cluster", case, f"{kept:.0f} MB", "", kept, " MB", MOST_KEPT, is_least=False))
        for table, n, n_threads, limit in (
            ("boosted", n_boosted, 1, LEAST_TIMES),
            ("boosted", n_boosted, 2, LEAST_TIMES),
            ("large", LARGE * n_boosted, 1, LEAST_LARGE),
        ):
            ours = run_side("boosting", table, n_threads)
            case = f"boosting, {ROUNDS} rounds of {LEAVES} leaves, {n:,} x 28, {WORKERS} x {n_threads} threads"
            for peer in ("xgboost", "lightgbm"):
                if find_spec(peer) is not None:
                    theirs = run_side(peer, table, n_threads)
                    report(answers, compare_boosting(f"{case}, {peer}.dask", ours, theirs, limit))
            if n_threads == 1:
                levels = run_side("levels", table)
                note = f"CPU {levels['cpu'] / ours['cpu']:.2f} x"
                times = levels["wall"] / ours["wall"]
                report(
                    answers, Answer("cluster", f"{case}, by levels", show(levels), show(ours), times, " x", note=note)
                )
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


def compare_boosting(case: str, ours: dict[str, float], peer: dict[str, float], limit: float) -> Answer:
    """One worker of ours beside two of theirs; alike where ours predicts no worse."""
    note = f"CPU {peer['cpu'] / ours['cpu']:.2f} x; AUC {ours['value']:.4f} against {peer['value']:.4f}"
    is_alike = ours["value"] > peer["value"] - NEAR_AUC
    times = peer["wall"] / ours["wall"]
    return Answer("cluster", case, show(ours), show(peer), times, " x", limit, is_alike=is_alike, note=note)


if __name__ == "__main__":
    print(json.dumps(child(sys.argv[1], *map(Path, sys.argv[2:5]))))
