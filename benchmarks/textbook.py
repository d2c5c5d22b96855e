"""How fast are the textbook trees? C4.5 against Weka's J48 and chefboost; a lecture table with its trace.

- J48: the time to build the model, in a JVM that has read the table and builds it again and again, so that neither its
  start nor its compiler is counted; CPU time is that of the thread that builds. Ours is the whole fit, from a frame.
  Needs `java` of a JDK, and weka.jar where Debian has it or where WEKA_JAR says
- chefboost: what it finishes in a minute; `import chefboost` of this Python, or of the one that CHEFBOOST_PYTHON names
- lecture: fit play_tennis and print its trace in a fresh process with no kernel on disk; what counts is CPU time after
  the imports

Judged by CPU time. Trees are alike where leaves and nodes are as many as J48's.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

import spinney
from benchmarks.peers import is_present
from benchmarks.runner import Answer, Scale, Timing, alternate, in_seconds, measure, report, run_fresh
from benchmarks.tables import DATA

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST_OF_WEKA = 5.0  # times as fast
LEAST_OF_CHEFBOOST = 50.0
MOST_OF_LECTURE = 0.5  # seconds
BUDGET = 60.0  # seconds of a peer
WEKA_BUILDS = 10  # in one JVM, or as many as the budget allows
LECTURE_TURNS = 5

# The tables whose J48 trees are known to the leaf, with their targets; a column `split` is never an input.
SMALL = {
    "toy_play_tennis": "play",
    "toy_buys_computer": "buys_computer",
    "toy_dhbw_q1": "C",
    "toy_dhbw_sport": "sport",
    "toy_contact_lenses": "contact-lenses",
    "toy_weather_numeric": "play",
    "car": "Acceptability",
    "mushroom": "class",
    "soybean": "Class",
    "german_credit": "class",
    "glass": "Type",
    "sonar": "Class",
    "ionosphere": "Class",
    "vehicle": "Class",
    "pima_diabetes": "diabetes",
    "vowel": "Class",
    "spambase": "type",
    "satimage": "class",
    "letter": "lettr",
}
LARGE = {"adult": "income", "kddcup99_10pct": "label"}
NO_INPUTS = {"split", "rid", "SpeakerNumber", "Sex"}

J48 = """
import java.io.BufferedReader;
import java.io.FileReader;
import java.lang.management.ManagementFactory;
import weka.classifiers.trees.J48;
import weka.core.Instances;

public class Build {
    public static void main(String[] arguments) throws Exception {
        var threads = ManagementFactory.getThreadMXBean();
        Instances table = new Instances(new BufferedReader(new FileReader(arguments[0])));
        table.setClassIndex(table.numAttributes() - 1);
        double spent = 0;
        for (int turn = 0; turn < Integer.parseInt(arguments[1]); turn++) {
            System.gc();
            long cpu = threads.getCurrentThreadCpuTime(), wall = System.nanoTime();
            J48 tree = new J48();
            tree.buildClassifier(table);
            double seconds = (System.nanoTime() - wall) / 1e9;
            System.out.println("[" + seconds + ", " + (threads.getCurrentThreadCpuTime() - cpu) / 1e9 + ", "
                + tree.measureNumLeaves() + ", " + tree.measureTreeSize() + "]");
            spent += seconds;
            if (spent > Double.parseDouble(arguments[2])) break;
        }
    }
}
"""
CHEFBOOST = """
import json, resource, sys, time, warnings
warnings.simplefilter("ignore")
import pandas as pd
pd.options.future.infer_string = False  # it asks for the dtype object
from chefboost import Chefboost
frame = pd.read_csv(sys.argv[1], keep_default_na=False)
cpu = lambda: sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
wall, spent = time.perf_counter(), cpu()
Chefboost.fit(frame, {"algorithm": "C4.5", "enableParallelism": False}, target_label="Decision", silent=True)
print(json.dumps([time.perf_counter() - wall, cpu() - spent]))
"""
LECTURE = """
import sys, time
from spinney import C45Classifier, datasets
table = datasets.load("play_tennis")
X, y = table.drop_columns(["play"]), table["play"].to_pylist()
start = time.process_time()
model = C45Classifier(trace=True).fit(X, y)
print(model.trace_)
print("numba" in sys.modules, time.process_time() - start)
"""


class Lesson(NamedTuple):
    """A table of classes, all of whose rows are learnt from."""

    name: str
    X: pa.Table
    y: NDArray[Any]

    def head(self, n_rows: int) -> Lesson:
        return Lesson(self.name, self.X.slice(0, n_rows), self.y[:n_rows])

    def __str__(self) -> str:
        return f"{self.name} {len(self.y):,} x {self.X.num_columns}"


def read_lesson(name: str, target: str) -> Lesson | None:
    """A table as the trees of reference were grown on it; None, with a line, where its file is absent."""
    path = next((path for kind in ("parquet", "csv") if (path := DATA / f"{name}.{kind}").exists()), None)
    if path is None:
        print(f"{name}: left out, no file in {DATA}")
        return None
    table = spinney.read_table(path).unify_dictionaries().combine_chunks()
    y = np.asarray(table[target].cast("string").to_pylist())
    X = table.drop_columns([column for column in table.column_names if column in {target, *NO_INPUTS}])
    if name == "pima_diabetes":  # the original file has zeros
        X = pa.table({column: pc.fill_null(X[column], 0) for column in X.column_names})
    return Lesson(name, X, y)


def fit_ours(lesson: Lesson) -> Any:
    return spinney.C45Classifier().fit(lesson.X, lesson.y)


# --- Weka ---------------------------------------------------------------------------------------------------


class Built(NamedTuple):
    """What building the tree of one table several times took, and how large it is."""

    first: Timing
    best: Timing
    n_leaves: int
    n_nodes: int


def find_weka() -> list[str] | None:
    """The command that runs a Java source with Weka; None, with a line, where something is missing."""
    jar, java = Path(os.environ.get("WEKA_JAR", "/usr/share/java/weka.jar")), shutil.which("java")
    if java is None or not jar.exists():
        print("Weka: left out, no java or no weka.jar (Debian: weka, default-jdk-headless; or set WEKA_JAR)")
        return None
    if not is_present([java, "--list-modules"]) or shutil.which("javac") is None:
        print("Weka: left out, java is there without a compiler (Debian: default-jdk-headless)")
        return None
    return [java, "-Xmx4g", "-XX:+UseSerialGC", "-cp", str(jar)]


def write_arff(lesson: Lesson, path: Path) -> None:
    """Write a table as Weka reads it: levels by their places, in ascending order."""
    lines, columns = ["@relation t"], []
    named = [*((f"x{j}", column) for j, column in enumerate(lesson.X.columns)), ("class", pa.array(lesson.y))]
    for name, column in named:
        chunk = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        if name != "class" and not pa.types.is_dictionary(chunk.type):
            lines.append(f"@attribute {name} numeric")
            columns.append(chunk.cast("double").cast("string").fill_null("?"))
            continue
        text = np.asarray(chunk.cast("string").fill_null("\x00missing").to_pylist())
        levels = np.unique(text[text != "\x00missing"])
        lines.append(f"@attribute {name} {{{','.join(f'v{k}' for k in range(len(levels)))}}}")
        places = np.char.add("v", np.searchsorted(levels, text).astype(str))
        columns.append(pa.array(np.where(text == "\x00missing", "?", places)))
    table = pa.table(columns, names=[str(j) for j in range(len(columns))])
    options = csv.WriteOptions(include_header=False, quoting_style="none")
    with path.open("wb") as file:
        file.write("\n".join([*lines, "@data", ""]).encode())
        csv.write_csv(table, file, options)


def build_j48(command: list[str], source: Path, arff: Path) -> Built:
    """Build a table's tree in a JVM of its own, several times."""
    done = subprocess.run(
        [*command, str(source), str(arff), str(WEKA_BUILDS), str(BUDGET)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"Weka failed:\n{done.stderr}")
    builds = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    best = Timing(min(build[0] for build in builds), min(build[1] for build in builds))
    return Built(Timing(*builds[0][:2]), best, int(builds[0][2]), int(builds[0][3]))


def fit_often(lesson: Lesson) -> Built:
    """Fit ours as often as a JVM builds."""
    timings: list[Timing] = []
    model = None
    while len(timings) < WEKA_BUILDS and sum(timing.wall for timing in timings) <= BUDGET:
        timing, model = measure(lambda: fit_ours(lesson))
        timings.append(timing)
    best = Timing(min(timing.wall for timing in timings), min(timing.cpu for timing in timings))
    return Built(timings[0], best, model.tree_.n_leaves, model.tree_.n_nodes)


def contest_j48(lesson: Lesson, command: list[str], folder: Path, repeats: int) -> tuple[list[Built], list[Built]]:
    """Let both grow the tree of a table in turns, ours first."""
    arff, source = folder / f"{lesson.name}.arff", folder / "Build.java"
    source.write_text(J48)
    write_arff(lesson, arff)
    fit_ours(lesson)  # compiles or loads the kernels
    ours, peer = alternate([lambda _: fit_often(lesson), lambda _: build_j48(command, source, arff)], repeats)
    arff.unlink()
    return ours.results, peer.results


def is_like(ours: list[Built], peer: list[Built]) -> bool:
    """Whether the trees have the same leaves and nodes."""
    return (ours[0].n_leaves, ours[0].n_nodes) == (peer[0].n_leaves, peer[0].n_nodes)


def best_of(builds: list[Built]) -> Timing:
    return Timing(min(build.best.wall for build in builds), min(build.best.cpu for build in builds))


def ask_weka_large(answers: list[Answer], scale: Scale, command: list[str], folder: Path) -> None:
    for name, target in LARGE.items():
        lesson = read_lesson(name, target)
        if lesson is None:
            continue
        lesson = lesson.head(scale.rows(len(lesson.y)))
        if len(np.unique(lesson.y)) == 1:
            print(f"{lesson}: left out, these rows are of one class, which J48 refuses")
            continue
        ours, peer = contest_j48(lesson, command, folder, min(scale.repeats, 3))
        own, best = best_of(ours), best_of(peer)
        first = Timing(min(built.first.wall for built in peer), min(built.first.cpu for built in peer))
        report(
            answers,
            Answer(
                "textbook",
                f"C4.5, {lesson}",
                str(own),
                f"J48 {best}",
                best.cpu / own.cpu,
                " x CPU",
                LEAST_OF_WEKA,
                is_alike=is_like(ours, peer),
                note=f"clock {best.wall / own.wall:.3g} x; leaves {ours[0].n_leaves:,} / {peer[0].n_leaves:,}, nodes "
                f"{ours[0].n_nodes:,} / {peer[0].n_nodes:,}; J48's first build in a JVM, which is what Weka reports, "
                f"{first} ({first.cpu / own.cpu:.3g} x CPU)",
            ),
        )


def ask_weka_small(answers: list[Answer], scale: Scale, command: list[str], folder: Path) -> None:
    lessons = [lesson for name, target in SMALL.items() if (lesson := read_lesson(name, target)) is not None]
    lessons = lessons[:: 1 if scale.share == 1.0 else 4]
    if not lessons:
        return
    wall, cpu, of_peer, cpu_of_peer, first = 0.0, 0.0, 0.0, 0.0, 0.0
    others = []
    for lesson in lessons:
        ours, peer = contest_j48(lesson, command, folder, 1)
        own, best = best_of(ours), best_of(peer)
        wall, cpu = wall + own.wall, cpu + own.cpu
        of_peer, cpu_of_peer, first = of_peer + best.wall, cpu_of_peer + best.cpu, first + peer[0].first.wall
        if not is_like(ours, peer):
            others.append(lesson.name)
    report(
        answers,
        Answer(
            "textbook",
            f"C4.5, {len(lessons)} tables of 10 to 20,000 rows, summed",
            str(Timing(wall, cpu)),
            f"J48 {Timing(of_peer, cpu_of_peer)}",
            cpu_of_peer / cpu,
            " x CPU",
            note=f"clock {of_peer / wall:.3g} x; J48's first builds in their JVMs {in_seconds(first)}; "
            + (f"other trees than J48's on {', '.join(others)}" if others else "leaves and nodes as many on every one"),
        ),
    )


# --- chefboost ----------------------------------------------------------------------------------------------


def find_chefboost() -> str | None:
    """A Python that has chefboost; None, with a line, where there is none."""
    python = os.environ.get("CHEFBOOST_PYTHON", sys.executable)
    if is_present([python, "-c", "import chefboost"]):
        return python
    print("chefboost: left out, not installed (set CHEFBOOST_PYTHON to a Python that has it)")
    return None


def fit_chefboost(python: str, lesson: Lesson, folder: Path) -> Timing | None:
    """Time of its fit in a process of its own; None where a minute is not enough."""
    path = folder / "chefboost.csv"
    columns = {}
    for name, column in zip(lesson.X.column_names, lesson.X.columns, strict=True):
        is_text = pa.types.is_dictionary(column.type)
        columns[name] = column.cast("string").fill_null("missing") if is_text else column
    csv.write_csv(pa.table({**columns, "Decision": pa.array(lesson.y)}), path)
    command = [python, "-c", CHEFBOOST, str(path)]
    try:  # it writes its rules to the working directory
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=BUDGET + 10.0)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode != 0:
        raise RuntimeError(f"chefboost failed:\n{done.stderr}")
    timing = Timing(*json.loads(done.stdout.splitlines()[-1]))
    return timing if timing.wall <= BUDGET else None


def largest_for_chefboost(python: str, lesson: Lesson, folder: Path, budget: float) -> tuple[Lesson, Timing] | None:
    """The most rows, doubled from 100, that it finishes in time."""
    found = None
    n_rows = 100
    while True:
        head = lesson.head(n_rows)
        timing = fit_chefboost(python, head, folder)
        if timing is None:
            return found
        found = head, timing
        if n_rows >= len(lesson.y) or 2.0 * timing.wall > budget:
            return found
        n_rows *= 2


def ask_chefboost(answers: list[Answer], scale: Scale, python: str, folder: Path) -> None:
    budget = BUDGET * scale.share
    for name, target in {"toy_play_tennis": "play", "car": SMALL["car"], "adult": LARGE["adult"]}.items():
        lesson = read_lesson(name, target)
        found = lesson and largest_for_chefboost(python, lesson, folder, budget)
        if not found:
            continue
        lesson, peer = found
        fit_ours(lesson)
        (ours,) = alternate([lambda _, lesson=lesson: fit_ours(lesson)], scale.repeats)
        report(
            answers,
            Answer(
                "textbook",
                f"C4.5, {lesson}",
                str(ours.best),
                f"chefboost {peer}",
                peer.cpu / ours.best.cpu,
                " x CPU",
                LEAST_OF_CHEFBOOST,
                note=f"clock {peer.wall / ours.best.wall:.3g} x; the most rows, doubled from 100, that it finishes in "
                f"{in_seconds(budget)}; it does not prune; one turn of its own",
            ),
        )


# --- a lecture ----------------------------------------------------------------------------------------------


def ask_lecture(answers: list[Answer], folder: Path) -> None:
    environment = {"SPINNEY_CACHE_DIR": str(folder / "cache")}
    printed = [run_fresh("-c", LECTURE, environment=environment).stdout.splitlines() for _ in range(LECTURE_TURNS)]
    seconds = [float(lines[-1].split()[1]) for lines in printed]
    n_waits = sum(lines[-1].split()[0] == "True" for lines in printed)
    report(
        answers,
        Answer(
            "textbook",
            "play_tennis: fit by C4.5 and print the trace, no kernel on disk",
            f"CPU {in_seconds(min(seconds))}",
            "",
            min(seconds),
            " s of CPU after the imports",
            MOST_OF_LECTURE,
            is_least=False,
            note=f"best of {LECTURE_TURNS} processes, worst {in_seconds(max(seconds))}; {n_waits} loaded the compiler; "
            f"{len(printed[0]) - 1} lines",
        ),
    )


def run(scale: Scale) -> list[Answer]:
    answers: list[Answer] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ask_lecture(answers, folder)
        weka, chefboost = find_weka(), find_chefboost()
        if weka is not None:
            ask_weka_small(answers, scale, weka, folder)
            ask_weka_large(answers, scale, weka, folder)
        if chefboost is not None:
            ask_chefboost(answers, scale, chefboost, folder)
    return answers
