"""How fast do whole models predict, many rows at a time and one by one?

All sides predict the same 100,000 rows, each with its own trees of the same shape, grown on the same rows: boosted
trees of 31 and of 63 leaves, and forests of full depth. Ours goes through the public `predict` or `predict_proba`,
checks included. One thread is judged by CPU time, two by the clock. One row goes through `predictor()`, and through
its kernel alone; as a dict it is compared with the same row as a frame. Forests of tables with categories predict the
held-out rows from pandas frames, scikit-learn's from arrays of the levels' numbers, which it needs made beforehand.
"""

from __future__ import annotations

import tempfile
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.engines import BUNCH_ROWS, Engine, Shape, boosted_peers, fit_ours, forest_peers, our_engine, time_rows
from benchmarks.runner import Answer, Scale, Timing, alternate, measure, report
from benchmarks.tables import adult, draw_numeric, housing, kddcup, mushroom

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.tables import Split

N_ROWS = 100_000
GROW_ROWS = 50_000
FOREST_ROWS = 20_000
MOST_SECONDS = 4.0  # of the turns of one side on one table
ONE_ROWS = 2_000
DICT_ROWS = 5_000  # to grow on: the categories make another model
LEAST_DICT_RATIO = 30.0
FRAME_ROWS = 30_000  # to predict from a frame: the held-out ones as often as it takes
LEAST_FRAME_RATIO = 1.5
LEAST_RATIO = {"classification forest": 4.0, "regression forest": 4.0}  # many rows; of other shapes 1
MOST_MICROSECONDS = {"boosted 100 x 31 leaves": 5.0, "classification forest": 8.0, "regression forest": 8.0}
SHAPES = (
    Shape("boosted 100 x 31 leaves", 100, 31, is_regression=True),
    Shape("boosted 1000 x 63 leaves", 1000, 63, is_regression=True),
    Shape("classification forest", 100, None, is_regression=False),
    Shape("regression forest", 100, None, is_regression=True),
)


def tables(shape: Shape, scale: Scale) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Rows to grow on, their target, and rows to predict."""
    if shape.name == "regression forest":
        split = housing(scale)
        rows = np.resize(split.X_test, (scale.rows(N_ROWS), split.X.shape[1]))
        return split.X, split.y, rows
    n_grow = scale.rows(GROW_ROWS if shape.n_leaves else FOREST_ROWS)
    X, y = draw_numeric(n_grow + scale.rows(N_ROWS))
    target = y.astype(np.float64) if shape.n_leaves else y
    return X[:n_grow], target[:n_grow], X[n_grow:]


def best_of(engine: Engine, rows: NDArray[Any], n_threads: int, turns: int) -> Timing:
    """Best clock and best CPU time of some turns, fewer where they are long; the first is not counted."""
    if engine.measure is not None:
        return engine.measure(rows, n_threads, turns)
    engine.predict(rows, n_threads)
    taken: list[Timing] = []
    while len(taken) < turns and sum(timing.wall for timing in taken) < MOST_SECONDS:
        taken.append(measure(lambda: engine.predict(rows, n_threads))[0])
    return Timing(min(timing.wall for timing in taken), min(timing.cpu for timing in taken))


def ask_many(
    answers: list[Answer], shape: Shape, ours: Engine, peers: list[Engine], rows: NDArray[Any], repeats: int
) -> None:
    """Ours against each peer, by type of the values and number of threads."""
    for dtype, n_threads in product(("float32", "float64"), (1, 2)):
        values = np.ascontiguousarray(rows, dtype)
        for peer in peers:
            if dtype in peer.takes:
                report(answers, ask_peer(shape, ours, peer, values, n_threads, repeats))


def ask_peer(shape: Shape, ours: Engine, peer: Engine, values: NDArray[Any], n_threads: int, repeats: int) -> Answer:
    """Both in turns: before and behind each other, so that both see the machine as it is."""
    mine, theirs = [], []
    for _ in range(2):
        mine.append(best_of(ours, values, n_threads, repeats))
        theirs.append(best_of(peer, values, n_threads, repeats))
        if theirs[0].wall > MOST_SECONDS:
            break
    a, b = (Timing(min(t.wall for t in turns), min(t.cpu for t in turns)) for turns in (mine, theirs))
    is_one = n_threads == 1
    clock, cpu = b.wall / a.wall, b.cpu / a.cpu
    threads = "1 thread" if is_one else f"{n_threads} threads"
    return Answer(
        "prediction",
        f"{shape.name}, {len(values):,} x {values.shape[1]} {values.dtype}, {threads}",
        str(a),
        f"{peer.name} {b}",
        cpu if is_one else clock,
        " x CPU" if is_one else " x",
        LEAST_RATIO.get(shape.name, 1.0),
        note=f"clock {clock:.3g} x" if is_one else f"CPU {cpu:.3g} x",
    )


def ask_one(answers: list[Answer], shape: Shape, model: Any, rows: NDArray[Any], repeats: int) -> None:
    """One row after another: the predictor, the kernel alone, and the estimator's `predict`."""
    predictor = model.predictor()
    add_up, packed, n_cells, _ = predictor._one_row  # noqa: SLF001, what it is made of
    out = np.empty(n_cells)
    for dtype in (np.float32, np.float64):
        values = np.ascontiguousarray(rows[:ONE_ROWS], dtype)
        for call in (predictor, lambda row: add_up(packed, row, out)):
            call(values[0])
        whole = time_rows(predictor, values, 2 * repeats)
        alone = time_rows(lambda row: add_up(packed, row, out), values, 2 * repeats)
        public = time_rows(lambda row: model.predict(row[None]), values[:BUNCH_ROWS], repeats)
        report(
            answers,
            Answer(
                "prediction",
                f"one row, {shape.name}, {np.dtype(dtype).name}",
                f"{whole * 1e6:.2f} us",
                "",
                whole * 1e6,
                " us",
                MOST_MICROSECONDS.get(shape.name),
                is_least=False,
                note=f"the kernel alone {alone * 1e6:.2f} us, `predict` of one row {public * 1e6:.0f} us; "
                f"packed {packed.nbytes / 1e6:.1f} MB",
            ),
        )


def ask_dict(answers: list[Answer], shape: Shape, X: NDArray[Any], y: NDArray[Any], repeats: int) -> None:
    """A row by name through `predictor()`, as a dict and as a frame of one row; every fourth column is a category."""
    import pyarrow as pa

    columns = {
        f"column {j}": column if j % 4 else np.char.add("level ", (column * 4 // 1 % 8).astype(int).astype(str))
        for j, column in enumerate(X.T)
    }
    table = pa.table(columns)
    predictor = fit_ours(shape, table, y).predictor()
    table = table.slice(0, BUNCH_ROWS)
    records, frames = table.to_pylist(), [table.slice(i, 1) for i in range(len(table))]
    ask = predictor.predict if predictor.classes is None else predictor.predict_proba
    for record, frame in zip(records, frames, strict=True):
        assert np.array_equal(predictor(record), ask(frame)[0])
    by_name = time_rows(predictor, records, 2 * repeats)
    by_frame = time_rows(ask, frames, repeats)
    report(
        answers,
        Answer(
            "prediction",
            f"one row as a dict, {shape.name}, {X.shape[1]} columns",
            f"{by_name * 1e6:.3g} us",
            f"the same row as a frame {by_frame * 1e6:,.0f} us",
            by_frame / by_name,
            " x",
            LEAST_DICT_RATIO,
            note="the same answers",
        ),
    )


def ask_frame(answers: list[Answer], split: Split, n_trees: int, repeats: int) -> None:
    """Class shares of a table with categories: ours from a pandas frame, the peer's from numbers for the levels."""
    from sklearn.ensemble import RandomForestClassifier as Peer

    from spinney import RandomForestClassifier

    ours = RandomForestClassifier(n_trees, random_state=0, n_jobs=1).fit(split.X.to_pandas(), split.y)
    train, rows = split.of_peer
    peer = Peer(n_trees, random_state=0, n_jobs=1).fit(train, split.y)
    times = -(-FRAME_ROWS // len(rows))
    frame, rows = pd_repeat(split.X_test.to_pandas(), times), np.concatenate([rows] * times)
    for _ in range(2):  # kernels and layouts
        ours.predict_proba(frame)
    one = RandomForestClassifier(1, max_depth=1, random_state=0, n_jobs=1).fit(split.X.to_pandas(), split.y)
    asked = (ours, frame), (peer, rows), (one, frame)
    sides = [lambda _, model=model, X=X: model.predict_proba(X) for model, X in asked]
    mine, theirs, read = (side.best for side in alternate(sides, 2 * repeats))
    report(
        answers,
        Answer(
            "prediction",
            f"frame with categories, forest of {n_trees} on {split.name}, {len(rows):,} rows, 1 thread",
            str(mine),
            f"scikit-learn from numbers {theirs}",
            theirs.cpu / mine.cpu,
            " x CPU",
            LEAST_FRAME_RATIO,
            note=f"a tree of one test, which is little more than reading the frame, takes {read}",
        ),
    )


def pd_repeat(frame: Any, times: int) -> Any:
    """A pandas frame so many times below itself."""
    import pandas as pd

    return pd.concat([frame] * times, ignore_index=True)


def run(scale: Scale, shapes: list[str] | None = None) -> list[Answer]:
    """Measure all shapes, or those of these names alone."""
    unknown = set(shapes or ()) - {shape.name for shape in SHAPES}
    if unknown:
        raise SystemExit(f"--shape: there is no {min(unknown)!r}, but {', '.join(shape.name for shape in SHAPES)}")
    answers: list[Answer] = []
    with tempfile.TemporaryDirectory() as folder:
        for shape in SHAPES:
            if shapes and shape.name not in shapes:
                continue
            scaled = shape if scale.share == 1.0 else shape._replace(n_trees=max(shape.n_trees // 10, 2))
            X, y, rows = tables(scaled, scale)
            model = fit_ours(scaled, X, y)
            ask_one(answers, scaled, model, rows, scale.repeats)
            ask_dict(answers, scaled, X[:DICT_ROWS], y[:DICT_ROWS], scale.repeats)
            peers = boosted_peers(scaled, X, y, Path(folder)) if scaled.n_leaves else forest_peers(scaled, X, y)
            ask_many(answers, scaled, our_engine(model), peers, rows, scale.repeats)
    for split in () if shapes else (adult(scale), mushroom(scale), kddcup(scale)):
        if split is not None:
            ask_frame(answers, split, 100 if scale.share == 1.0 else 10, scale.repeats)
    return answers
