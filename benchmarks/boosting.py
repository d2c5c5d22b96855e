"""How fast is boosting? Against LightGBM, XGBoost and scikit-learn's histogram boosting; see `boosters` for settings.

- fit: 500,000 x 28 float32, 100 rounds of 31 and of 255 leaves, one thread, with and without binning, against the
  fastest peer; then real tables, categories as such; of many classes; with a column for each level (kddcup99: 23
  classes, hence 20 rounds; cover, drawn: 465,000 x 54 of seven)
- small: 1,000 rows, binning included
- predict: 100,000 rows, 100 trees of 31 leaves; YDF too, where installed
- AdaBoost: 400 stumps against scikit-learn's
- threads: two against one on the clock, each fit in a process of its own; and two fits of one thread side by side,
  which say what the second core adds (where two "cores" are one with two hardware threads: little)
- busy: two threads while another process keeps one core busy, in units of the quiet time
- memory: what a fit holds beyond X at its peak, in a process of its own, against LightGBM

One-thread fits are judged by CPU time, the others by the clock. `--quick` grows 10 rounds, and takes one case of those
in processes of their own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks import tables
from benchmarks.boosters import (
    KINDS,
    Booster,
    Ours,
    Size,
    Turn,
    count_classes,
    find_peers,
    most_levels,
    prepare,
    rate,
)
from benchmarks.memory import peak_growth
from benchmarks.peers import find_ydf, write_split
from benchmarks.runner import Answer, Scale, Timing, alternate, in_seconds, measure, report, run_fresh
from benchmarks.tables import Split, draw_numeric

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LEAST_TRAINING = {31: 1.5, 255: 1.7}  # by leaves
LEAST_TOTAL = 1.8
LEAST_TABLE = 1.0
LEAST_MANY_CLASSES = 2.0
LEAST_ONE_HOT = 1.5
LEAST_SMALL = 1.0
LEAST_PREDICT = 1.0
LEAST_ADABOOST = 10.0
LEAST_THREADS = {"large": 1.7, "small": 0.97}  # small ones: never slower, but for what the clock wavers
MOST_BUSY = 2.2
MOST_MEMORY = 1.0
MOST_TURNS = 3  # a turn takes minutes
MOST_LEVELS = 255  # that scikit-learn takes
SCORE_SLACK = {"AUC": 0.001, "accuracy": 0.005, "R2": 0.01}  # by which ours may be worse and count as the same work
N_STUMPS = 400
TURN_SECONDS = 0.1  # a turn of short calls is as many as fill this
CHILD_SECONDS = 1.0  # a process repeats a short fit for this long; the best counts
WARM_ROWS = 2000  # of the fit that loads kernels and libraries before a clock runs

YDF = """
import json, resource, sys, time
import numpy as np
import ydf
folder, n_trees, n_leaves, repeats = sys.argv[1], *map(int, sys.argv[2:5])
train, test = (dict(np.load(f"{folder}/{part}.npz")) for part in ("train", "test"))
truth = test.pop("target")
learner = ydf.GradientBoostedTreesLearner(
    label="target", num_trees=n_trees, shrinkage=0.1, validation_ratio=0.0, early_stopping="NONE",
    growing_strategy="BEST_FIRST_GLOBAL", max_num_nodes=n_leaves, max_depth=-1, min_examples=20,
    discretize_numerical_columns=True, num_discretized_numerical_bins=255, num_threads=1)
ydf.verbose(0)
model = learner.train(train)
cpu = lambda: sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
found, walls, spents = model.predict(test), [], []
for _ in range(max(repeats, 3)):
    wall, spent = time.perf_counter(), cpu()
    found = model.predict(test, num_threads=1)
    walls.append(time.perf_counter() - wall)
    spents.append(cpu() - spent)
bare = model.benchmark(test, benchmark_duration=1, num_threads=1).duration_per_example * len(truth)
print(json.dumps([min(walls), min(spents), bare]))
"""


class Case(NamedTuple):
    """A table to boost on, and how much."""

    table: str  # a name in LOADERS
    n_rows: int = 0  # of "numeric"
    n_rounds: int = 100
    n_leaves: int = 31

    def size(self, scale: Scale, n_threads: int = 1) -> Size:
        return Size(self.n_rounds if scale.share >= 1.0 else 10, self.n_leaves, n_threads)

    def load(self, scale: Scale) -> Split | None:
        """The table as boosters take it; None where it is absent."""
        if self.table == "numeric":
            return numeric(scale.rows(self.n_rows), scale.rows(100_000))
        split = LOADERS[self.table](scale)
        return None if split is None else prepare(split)


LOADERS: dict[str, Callable[[Scale], Split | None]] = {
    "letter": tables.letter,
    "adult": tables.adult,
    "nycflights13": tables.flights,
    "kddcup99": tables.kddcup,
    "satimage": tables.satimage,
    "adult one-hot": lambda scale: tables.one_hot(tables.adult(scale)),
    "mushroom one-hot": lambda scale: tables.one_hot(tables.mushroom(scale)),
    "kddcup99 one-hot": lambda scale: tables.one_hot(tables.kddcup(scale)),
    "cover": tables.cover,
}
LARGE = Case("numeric", 500_000)
DEEP = Case("numeric", 500_000, n_leaves=255)
REAL = (Case("adult"), Case("nycflights13"))
MANY_CLASSES = (Case("letter"), Case("satimage"), Case("kddcup99", n_rounds=20))
ONE_HOT = (
    Case("adult one-hot"),
    Case("mushroom one-hot"),
    Case("kddcup99 one-hot", n_rounds=20),
    Case("cover", n_rounds=20),
)
THREADED = {
    "large": (LARGE, DEEP, Case("kddcup99", n_rounds=20)),
    "small": (Case("numeric", 1000), Case("numeric", 10_000), Case("adult"), Case("letter")),
}
HELD = (LARGE, DEEP, Case("nycflights13"))  # whose memory is measured


def numeric(n_rows: int, n_fresh: int) -> Split:
    X, y = draw_numeric(n_rows + n_fresh)
    name = f"numeric {n_rows:,} x {X.shape[1]} float32"
    return Split(name, X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:])


def title(split: Split, size: Size) -> str:
    return f"{split.name}, {size.n_rounds} rounds, {size.n_leaves} leaves"


def list_times(times: dict[str, Timing]) -> str:
    return "; ".join(f"{name} {timing}" for name, timing in times.items())


def list_ratios(ours: Timing, others: dict[str, Timing], part: str) -> str:
    return ", ".join(f"{name} {getattr(other, part) / getattr(ours, part):.3g} x" for name, other in others.items())


# --- Fits ---------------------------------------------------------------------------------------------------


class Contest(NamedTuple):
    """What boosters did on a table: best times of each part, and held-out scores, by name."""

    training: dict[str, Timing]
    total: dict[str, Timing]
    metric: str
    scores: dict[str, float]


def hold_contest(split: Split, size: Size, kinds: list[type[Booster]], repeats: int) -> Contest:
    """Let boosters fit a table in turns; the first of a kind is not counted where it loads kernels."""
    n_classes = count_classes(split)
    boosters = [kind(size, n_classes) for kind in kinds]
    Ours(size._replace(n_rounds=1), n_classes).take_turn(split.X, split.y)
    taken: dict[str, list[Turn]] = {booster.name: [] for booster in boosters}
    scores, metric = {}, ""
    for turn in range(repeats):
        for booster in boosters:
            done = booster.take_turn(split.X, split.y)
            if turn == 0:
                metric, scores[booster.name] = rate(split, booster.predict(done.model, split.X_test))
            taken[booster.name].append(done._replace(model=None))
    best = {
        part: {name: least([getattr(turn, part) for turn in turns]) for name, turns in taken.items()}
        for part in ("training", "total")
    }
    return Contest(best["training"], best["total"], metric, scores)


def least(timings: list[Timing]) -> Timing:
    """Least wall and least CPU, each by itself."""
    return Timing(min(timing.wall for timing in timings), min(timing.cpu for timing in timings))


def choose_kinds(split: Split, peers: list[type[Booster]]) -> list[type[Booster]]:
    """Ours and the peers that can read a table; a line for each that cannot."""
    kinds: list[type[Booster]] = [Ours]
    for peer in peers:
        if peer.name == "scikit-learn" and most_levels(split.X) > MOST_LEVELS:
            print(f"{split.name}: scikit-learn left out, it takes at most {MOST_LEVELS} levels")
        else:
            kinds.append(peer)
    return kinds


def ask_fit(
    answers: list[Answer], case: Case, scale: Scale, peers: list[type[Booster]], limits: tuple[float, float]
) -> None:
    """Let boosters fit the table of a case."""
    split = case.load(scale)
    if split is not None:
        compare_boosters(answers, split, case.size(scale), limits, peers, scale)


def compare_boosters(
    answers: list[Answer],
    split: Split,
    size: Size,
    limits: tuple[float, float],
    peers: list[type[Booster]],
    scale: Scale,
) -> None:
    """Training alone, then binning included, each against the peer that is fastest at it."""
    contest = hold_contest(split, size, choose_kinds(split, peers), min(scale.repeats, MOST_TURNS))
    scores = ", ".join(f"{name} {score:.4f}" for name, score in contest.scores.items())
    parts = zip(("training alone", "binning included"), (contest.training, contest.total), limits, strict=True)
    for part, times, limit in parts:
        others = dict(times)
        ours = others.pop(Ours.name)
        if not others:
            continue
        fastest = min(others, key=lambda name, others=others: others[name].cpu)
        behind = contest.scores[fastest] - contest.scores[Ours.name]
        report(
            answers,
            Answer(
                "boosting",
                f"{title(split, size)}, {part}",
                str(ours),
                list_times(others),
                others[fastest].cpu / ours.cpu,
                " x CPU",
                limit,
                is_alike=behind <= SCORE_SLACK[contest.metric],
                note=f"fastest peer {fastest}; CPU {list_ratios(ours, others, 'cpu')}; clock "
                f"{list_ratios(ours, others, 'wall')}; held-out {contest.metric} {scores}",
            ),
        )


def time_calls(calls: dict[str, Callable[[], Any]], repeats: int) -> dict[str, Timing]:
    """Best time of a call of each, in turns; a turn is as many calls as fill a tenth of a second."""
    sides, n_calls = [], []
    for call in calls.values():
        call()
        n_calls.append(max(1, round(TURN_SECONDS / measure(call)[0].wall)))

        def turn(_turn: int, call: Callable[[], Any] = call, n: int = n_calls[-1]) -> None:
            for _ in range(n):
                call()

        sides.append(turn)
    runs = alternate(sides, repeats)
    return {
        name: Timing(run.best.wall / n, run.best.cpu / n) for name, run, n in zip(calls, runs, n_calls, strict=True)
    }


def ask_small(answers: list[Answer], scale: Scale, peers: list[type[Booster]]) -> None:
    """Fits of 1,000 rows, from the table to the model."""
    for split in (prepare(numeric(1000, 100)), prepare(tables.housing(scale))):
        size = LARGE.size(scale)
        X, y = split.X[:1000], split.y[:1000]
        boosters = [kind(size, count_classes(split)) for kind in (Ours, *peers)]
        times = time_calls({b.name: lambda b=b, X=X, y=y: b.fit(X, y) for b in boosters}, scale.repeats)
        ours = times.pop(Ours.name)
        if not times:
            continue
        fastest = min(times, key=lambda name, times=times: times[name].wall)
        report(
            answers,
            Answer(
                "boosting",
                f"{len(X):,} rows of {split.name.split()[0]}, {size.n_rounds} rounds, {size.n_leaves} leaves",
                str(ours),
                list_times(times),
                times[fastest].wall / ours.wall,
                " x",
                LEAST_SMALL,
                note=f"fastest peer {fastest}; CPU {list_ratios(ours, times, 'cpu')}; binning included",
            ),
        )


def ask_adaboost(answers: list[Answer], scale: Scale) -> None:
    from sklearn.ensemble import AdaBoostClassifier as PeerAdaBoost
    from sklearn.tree import DecisionTreeClassifier

    from spinney import AdaBoostClassifier

    split = numeric(scale.rows(20_000), scale.rows(20_000))
    n_stumps = N_STUMPS if scale.share >= 1.0 else 40
    stump = DecisionTreeClassifier(max_depth=1)
    makers = [
        lambda turn: AdaBoostClassifier(n_estimators=n_stumps, random_state=turn),
        lambda turn: PeerAdaBoost(stump, n_estimators=n_stumps, random_state=turn),
    ]
    makers[0](0).fit(split.X, split.y)
    ours, peer = alternate(
        [lambda turn, make=make: make(turn).fit(split.X, split.y) for make in makers], min(scale.repeats, MOST_TURNS)
    )
    scores = [side.results[0].score(split.X_test, split.y_test) for side in (ours, peer)]
    report(
        answers,
        Answer(
            "boosting",
            f"AdaBoost, {split.name}, {n_stumps} stumps",
            str(ours.best),
            f"scikit-learn {peer.best}",
            peer.best.cpu / ours.best.cpu,
            " x CPU",
            LEAST_ADABOOST,
            is_alike=scores[0] >= scores[1] - SCORE_SLACK["accuracy"],
            note=f"clock {peer.best.wall / ours.best.wall:.3g} x; held-out accuracy {scores[0]:.4f} / {scores[1]:.4f}; "
            f"stumps {len(ours.results[0].estimator_weights_)} / {len(peer.results[0].estimators_)}",
        ),
    )


# --- Predictions --------------------------------------------------------------------------------------------


def ask_predict(answers: list[Answer], scale: Scale, peers: list[type[Booster]]) -> None:
    split = numeric(scale.rows(100_000), scale.rows(100_000))
    size = LARGE.size(scale)
    boosters = [kind(size, 2) for kind in (Ours, *peers)]
    models = [booster.fit(split.X, split.y) for booster in boosters]
    times = time_calls(
        {
            b.name: lambda b=b, model=model: b.predict(model, split.X_test)
            for b, model in zip(boosters, models, strict=True)
        },
        scale.repeats,
    )
    ours = times.pop(Ours.name)
    case = (
        f"predict {len(split.X_test):,} x {split.X.shape[1]} float32, {size.n_rounds} trees of {size.n_leaves} leaves"
    )
    if times:
        fastest = min(times, key=lambda name: times[name].wall)
        report(
            answers,
            Answer(
                "boosting",
                case,
                str(ours),
                list_times(times),
                times[fastest].wall / ours.wall,
                " x",
                LEAST_PREDICT,
                note=f"fastest peer {fastest}; clock {list_ratios(ours, times, 'wall')}; "
                f"CPU {list_ratios(ours, times, 'cpu')}",
            ),
        )
    ask_ydf(answers, split, size, ours, case, scale.repeats)


def ask_ydf(answers: list[Answer], split: Split, size: Size, ours: Timing, case: str, repeats: int) -> None:
    """The same against YDF, which trains and predicts in a process of its own."""
    python = find_ydf()
    if python is None:
        return
    with tempfile.TemporaryDirectory() as folder:
        write_split(split, Path(folder))
        arguments = [folder, str(size.n_rounds), str(size.n_leaves), str(repeats)]
        done = subprocess.run([python, "-c", YDF, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"YDF failed:\n{done.stderr}")
    wall, cpu, bare = json.loads(done.stdout.splitlines()[-1])
    report(
        answers,
        Answer(
            "boosting",
            f"{case}, YDF",
            str(ours),
            f"YDF {Timing(wall, cpu)}",
            wall / ours.wall,
            " x",
            note=f"the goal is 1 x; YDF's own benchmark, on rows in its own form: {in_seconds(bare)}",
        ),
    )


# --- Processes of their own ---------------------------------------------------------------------------------


def ask_child(what: str, library: str, case: Case, scale: Scale, n_threads: int) -> dict[str, float]:
    """Let a new process measure a fit: see `child`."""
    order = json.dumps([what, library, case, scale, n_threads])
    done = run_fresh("-m", "benchmarks.boosting", order, environment={"OMP_NUM_THREADS": str(n_threads)})
    return json.loads(done.stdout.splitlines()[-1])


def child(what: str, library: str, case: Case, scale: Scale, n_threads: int) -> dict[str, float]:
    """What the measured process does: a fit of few rows, so that nothing is loaded later, then those that count."""
    split = case.load(scale)
    assert split is not None
    n_classes = count_classes(split)
    booster = KINDS[library](case.size(scale, n_threads), n_classes)
    y = np.arange(len(split.y)) % n_classes if n_classes else split.y  # few rows may lack a class
    booster.fit(split.X[:WARM_ROWS], y[:WARM_ROWS])
    if what == "memory":
        return {"growth": peak_growth(lambda: booster.fit(split.X, split.y)), "table": table_bytes(split.X)}
    timings = [measure(lambda: booster.fit(split.X, split.y))[0]]
    while sum(timing.wall for timing in timings) < CHILD_SECONDS:
        timings.append(measure(lambda: booster.fit(split.X, split.y))[0])
    return least(timings)._asdict()


def table_bytes(X: Any) -> int:
    return int(X.memory_usage(index=False).sum()) if hasattr(X, "columns") else X.nbytes


def time_children(sides: dict[str, Callable[[], dict[str, float]]], repeats: int) -> dict[str, Timing]:
    """Best times of processes that take turns."""
    taken: dict[str, list[Timing]] = {name: [] for name in sides}
    for _ in range(repeats):
        for name, side in sides.items():
            taken[name].append(Timing(**side()))
    return {name: least(timings) for name, timings in taken.items()}


def side_by_side(ask: Callable[[], dict[str, float]]) -> float:
    """Wall time of the slower of two processes that work at the same time, each for itself."""
    with ThreadPoolExecutor(2) as pool:
        return max(future.result()["wall"] for future in [pool.submit(ask), pool.submit(ask)])


def ask_threads(answers: list[Answer], scale: Scale, libraries: list[str]) -> None:
    """Two threads against one."""
    if (os.cpu_count() or 1) < 2:
        print("threads: left out, there is one core")
        return
    repeats = min(scale.repeats, MOST_TURNS) if scale.share >= 1.0 else 1
    for kind, cases in THREADED.items():
        for case in cases if scale.share >= 1.0 else cases[:1]:
            split = case.load(scale)
            if split is None:
                continue
            times = time_children(
                {
                    f"{library} {n}": lambda library=library, n=n, case=case: ask_child("time", library, case, scale, n)
                    for library in libraries
                    for n in (1, 2)
                },
                repeats,
            )
            one, two = times["ours 1"], times["ours 2"]
            limit = 2.0 * one.wall / side_by_side(lambda case=case: ask_child("time", "ours", case, scale, 1))
            others = {name: f"{times[f'{name} 2']}; one {times[f'{name} 1']}" for name in libraries[1:]}
            gains = ", ".join(f"{name} {times[f'{name} 1'].wall / times[f'{name} 2'].wall:.3g} x" for name in others)
            report(
                answers,
                Answer(
                    "boosting",
                    f"two threads against one, {kind}: {title(split, case.size(scale))}",
                    f"{two}; one {one}",
                    "; ".join(f"{name} {text}" for name, text in others.items()),
                    one.wall / two.wall,
                    " x",
                    LEAST_THREADS[kind],
                    note=f"two fits of one thread side by side do {limit:.3g} x the work of one: the cores' limit; "
                    f"CPU of two {two.cpu / one.cpu:.3g} x that of one; binning included"
                    + (f"; two against one: {gains}" if gains else ""),
                ),
            )


@contextmanager
def keep_core_busy() -> Iterator[None]:
    """A process that works on the first core for as long as the block lasts."""
    core = min(os.sched_getaffinity(0))
    code = f"import os\nos.sched_setaffinity(0, {{{core}}})\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", code]) as process:
        try:
            yield
        finally:
            process.kill()


def ask_busy(answers: list[Answer], scale: Scale, libraries: list[str]) -> None:
    """Two threads, with and without a competitor on one of the cores."""
    if not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2:
        print("busy: left out, it takes two cores and a system that pins processes to one")
        return

    def fit_busy(library: str) -> dict[str, float]:
        with keep_core_busy():
            return ask_child("time", library, LARGE, scale, 2)

    sides: dict[str, Callable[[], dict[str, float]]] = {}
    for library in libraries:
        sides[f"{library} quiet"] = lambda library=library: ask_child("time", library, LARGE, scale, 2)
        sides[f"{library} busy"] = lambda library=library: fit_busy(library)
    times = time_children(sides, min(scale.repeats, MOST_TURNS) if scale.share >= 1.0 else 1)
    ratios = {name: times[f"{name} busy"].wall / times[f"{name} quiet"].wall for name in libraries}
    texts = [f"{times[f'{name} busy']}; quiet {times[f'{name} quiet']}" for name in libraries]
    report(
        answers,
        Answer(
            "boosting",
            f"two threads, one core kept busy: numeric {scale.rows(LARGE.n_rows):,} x 28, "
            f"{LARGE.size(scale).n_rounds} rounds",
            texts[0],
            "; ".join(f"{name} {text}" for name, text in zip(libraries[1:], texts[1:], strict=True)),
            ratios["ours"],
            " x the quiet time",
            MOST_BUSY,
            is_least=False,
            note=", ".join(f"{name} {ratio:.3g} x" for name, ratio in ratios.items()),
        ),
    )


def ask_memory(answers: list[Answer], scale: Scale, libraries: list[str]) -> None:
    """The peak of a fit beyond X."""
    for case in HELD if scale.share >= 1.0 else HELD[:1]:
        split = case.load(scale)
        if split is None:
            continue
        found = {name: ask_child("memory", name, case, scale, 1) for name in libraries}
        growth = {name: one["growth"] / 1e6 for name, one in found.items()}
        mine = growth.pop("ours")
        report(
            answers,
            Answer(
                "boosting",
                f"memory, {title(split, case.size(scale))}",
                f"{mine:.0f} MB beyond X",
                "; ".join(f"{name} {other:.0f} MB" for name, other in growth.items()),
                mine / growth["LightGBM"] if growth else mine * 1e6 / found["ours"]["table"],
                " x LightGBM's" if growth else " x X",
                MOST_MEMORY if growth else None,
                is_least=False,
                note=f"X is {found['ours']['table'] / 1e6:.0f} MB",
            ),
        )


def run(scale: Scale) -> list[Answer]:
    answers: list[Answer] = []
    peers = find_peers()
    for case in (LARGE, DEEP):
        ask_fit(answers, case, scale, peers, (LEAST_TRAINING[case.n_leaves], LEAST_TOTAL))
    for cases, least_ratio in ((REAL, LEAST_TABLE), (MANY_CLASSES, LEAST_MANY_CLASSES), (ONE_HOT, LEAST_ONE_HOT)):
        for case in cases:
            ask_fit(answers, case, scale, peers, (least_ratio, least_ratio))
    ask_small(answers, scale, peers)
    ask_predict(answers, scale, peers)
    ask_adaboost(answers, scale)
    libraries = ["ours", *(peer.name for peer in peers if peer.name == "LightGBM")]
    ask_threads(answers, scale, libraries)
    ask_busy(answers, scale, libraries)
    ask_memory(answers, scale, libraries)
    return answers


if __name__ == "__main__":
    what, library, case, scale, n_threads = json.loads(sys.argv[1])
    print(json.dumps(child(what, library, Case(*case), Scale(*scale), n_threads)))
