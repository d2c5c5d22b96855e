"""The tables that are measured on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.runner import ROOT

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import DTypeLike, NDArray

    from benchmarks.runner import Scale

DATA = ROOT.parent / "shared" / "data"  # real tables kept beside the repository, not in it
N_FEATURES = 28
# of nycflights13: what is known before a flight leaves
FLIGHT_COLUMNS = (
    "month",
    "day",
    "sched_dep_time",
    "sched_arr_time",
    "carrier",
    "flight",
    "tailnum",
    "origin",
    "dest",
    "distance",
)


class Split(NamedTuple):
    """A table with rows held out."""

    name: str
    X: Any  # an array, or a frame where some columns are categories
    y: NDArray[Any]
    X_test: Any
    y_test: NDArray[Any]
    is_regression: bool = False
    coded: tuple[NDArray[Any], NDArray[Any]] | None = None  # X and X_test with levels as numbers, for peers

    @property
    def of_peer(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Rows to grow on and rows held out as a peer takes them that knows no categories."""
        return self.coded or (self.X, self.X_test)


def draw_numeric(n_rows: int, dtype: DTypeLike = np.float32, seed: int = 0) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """28 normal columns, nine of which decide between two classes, with much noise."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(n_rows, N_FEATURES)).astype(np.float32)
    x = X[:, :9].T
    z = x[0] * x[1] + np.sin(3 * x[2]) + 0.5 * x[3] ** 2 - 0.7 * np.abs(x[4]) + 0.3 * x[5]
    z += 0.4 * x[6] * x[7] * (x[8] > 0)
    y = z + generator.normal(size=n_rows) > 0.3
    return X.astype(dtype, copy=False), y.astype(np.int32)


def numeric(scale: Scale) -> Split:
    """100,000 rows to grow on and 50,000 held out."""
    n_train = scale.rows(100_000)
    X, y = draw_numeric(n_train + scale.rows(50_000))
    return Split(f"numeric {n_train:,} x {N_FEATURES} float32", X[:n_train], y[:n_train], X[n_train:], y[n_train:])


def read_shared(name: str) -> pa.Table | None:
    """One of the real tables; None, with a line, where it is absent."""
    path = DATA / f"{name}.parquet"
    if not path.exists():
        print(f"{name}: left out, no file {path}")
        return None
    import pyarrow.parquet as pq

    return pq.read_table(path).unify_dictionaries().combine_chunks()


def draw_rows(n_rows: int, scale: Scale) -> tuple[NDArray[Any], NDArray[Any]]:
    """80 % of the rows, drawn by a fixed seed, to grow on, and the others."""
    order = np.random.default_rng(0).permutation(n_rows)
    n_train = n_rows * 4 // 5
    return order[: scale.rows(n_train)], order[n_train:]


def official_rows(table: pa.Table, scale: Scale) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows to grow on and rows held out, by the column `split` of a table."""
    is_train = np.asarray(table["split"].cast("string").to_pylist()) == "train"
    train = np.flatnonzero(is_train)
    return train[: scale.rows(len(train))], np.flatnonzero(~is_train)


def letter(scale: Scale) -> Split | None:
    """Letter Recognition: 16,000 rows to grow on and the last 4,000 held out; None where absent."""
    table = read_shared("letter")
    if table is None:
        return None
    y = np.asarray(table["lettr"].cast("string").to_pylist())
    names = [name for name in table.column_names if name not in {"lettr", "split"}]
    X = np.column_stack([np.asarray(table[name], np.float64) for name in names])
    n_train = scale.rows(16_000)
    name = f"letter {n_train:,} x {X.shape[1]}, 26 classes"
    return Split(name, X[:n_train], y[:n_train], X[16_000:], y[16_000:])


def housing(scale: Scale) -> Split:
    """California housing: 80 % of the rows, drawn by a fixed seed, to grow on, the others held out."""
    from spinney import datasets

    table = datasets.load("california_housing")
    target = datasets.source("california_housing").target
    y = np.asarray(table[target], np.float64)
    X = np.column_stack([np.asarray(table[name], np.float64) for name in table.column_names if name != target])
    train, test = draw_rows(len(y), scale)
    name = f"california_housing {len(train):,} x {X.shape[1]}"
    return Split(name, X[train], y[train], X[test], y[test], is_regression=True)


def code_levels(table: pa.Table) -> NDArray[np.float32]:
    """Each column as numbers, a category by the place of its level; NaN where missing."""
    columns = []
    for column in table.columns:
        chunk = column.combine_chunks()
        values = chunk.indices if hasattr(chunk, "indices") else chunk
        columns.append(values.cast("float64").to_numpy(zero_copy_only=False))
    return np.column_stack(columns).astype(np.float32)


def mixed_split(
    name: str,
    inputs: pa.Table,
    y: NDArray[Any],
    train: NDArray[Any],
    test: NDArray[Any],
    is_regression: bool = False,
) -> Split:
    """Rows of a table with categories, once as it is and once with numbers for levels."""
    X, X_test = inputs.take(train), inputs.take(test)
    title = f"{name} {len(train):,} x {inputs.num_columns}"
    return Split(title, X, y[train], X_test, y[test], is_regression, (code_levels(X), code_levels(X_test)))


def adult(scale: Scale) -> Split | None:
    """Adult: the official 32,561 rows to grow on and 16,281 held out; 8 of 14 columns are categories."""
    table = read_shared("adult")
    if table is None:
        return None
    y = np.asarray(table["income"].cast("string").to_pylist())
    return mixed_split("adult", table.drop_columns(["income", "split"]), y, *official_rows(table, scale))


def kddcup(scale: Scale) -> Split | None:
    """KDD Cup 1999, a tenth: 80 % of 494,021 rows, drawn by a fixed seed, to grow on; 3 of 41 columns are levels."""
    table = read_shared("kddcup99_10pct")
    if table is None:
        return None
    y = np.asarray(table["label"].cast("string").to_pylist())
    train, test = draw_rows(len(y), scale)
    return mixed_split("kddcup99", table.drop_columns(["label"]), y, train, test)


def flights(scale: Scale) -> Split | None:
    """Flights of 2013: the delay at arrival from what is known before the flight leaves.

    80 % of the 327,346 flights that arrived, drawn by a fixed seed, to grow on; 5 of 10 columns are categories, two of
    which have some 4,000 levels.
    """
    table = read_shared("nycflights13")
    if table is None:
        return None
    table = table.filter(table["arr_delay"].is_valid())
    y = np.asarray(table["arr_delay"], np.float64)
    train, test = draw_rows(len(y), scale)
    return mixed_split("nycflights13", table.select(FLIGHT_COLUMNS), y, train, test, is_regression=True)


def mushroom(scale: Scale) -> Split | None:
    """Mushroom: 80 % of the 8,124 rows, drawn by a fixed seed, to grow on; all 22 columns are categories."""
    table = read_shared("mushroom")
    if table is None:
        return None
    y = np.asarray(table["class"].cast("string").to_pylist())
    train, test = draw_rows(len(y), scale)
    return mixed_split("mushroom", table.drop_columns(["class"]), y, train, test)


def satimage(scale: Scale) -> Split | None:
    """Landsat: the official 4,435 rows to grow on and 2,000 held out, 36 numbers, six classes."""
    table = read_shared("satimage")
    if table is None:
        return None
    y = np.asarray(table["class"].cast("string").to_pylist())
    train, test = official_rows(table, scale)
    X = np.column_stack([np.asarray(c, np.float64) for c in table.drop_columns(["class", "split"]).columns])
    return Split(f"satimage {len(train):,} x {X.shape[1]}, 6 classes", X[train], y[train], X[test], y[test])


def one_hot(split: Split | None) -> Split | None:
    """A table with categories as float32 numbers, with a column of 0 and 1 for each level."""
    if split is None:
        return None
    import pandas as pd

    parts = [part.to_pandas() for part in (split.X, split.X_test)]
    wide = pd.get_dummies(pd.concat(parts), dtype=np.float32).to_numpy(np.float32)
    n_train = len(split.y)
    name = f"{split.name.split()[0]} one-hot {n_train:,} x {wide.shape[1]}"
    return Split(name, wide[:n_train], split.y, wide[n_train:], split.y_test)


def cover(scale: Scale) -> Split:
    """A table of the kind of Forest Cover: 465,000 rows of 10 numbers and two one-hot blocks, seven unequal classes.

    Levels of the blocks go with numbers, classes with levels, numbers and products of these, under noise.
    """
    n_train, n_levels, n_classes = scale.rows(465_000), (4, 40), 7
    n_rows = n_train + scale.rows(50_000)
    rng = np.random.default_rng(7)
    numbers = rng.normal(size=(n_rows, 10))
    scores = numbers @ rng.normal(size=(10, n_classes)) + np.sin(2.0 * numbers[:, :n_classes]) - np.arange(n_classes)
    for k in range(n_classes):
        scores[:, k] += numbers[:, k] * numbers[:, k + 1] - 0.7 * numbers[:, k + 2] * numbers[:, k + 3]
    blocks = []
    for number, n in enumerate(n_levels):
        place = n * (0.5 + 0.2 * numbers[:, number] + 0.15 * rng.normal(size=n_rows))
        level = np.clip(place, 0, n - 1).astype(np.int64)
        scores += 2.0 * rng.normal(size=(n, n_classes))[level]
        blocks.append(np.eye(n, dtype=np.float32)[level])
    y = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    X = np.hstack([np.round(numbers * 100.0).astype(np.float32), *blocks])
    name = f"cover {n_train:,} x {X.shape[1]}, 44 of them one-hot, {n_classes} classes"
    return Split(name, X[:n_train], y[:n_train], X[n_train:], y[n_train:])


def as_numbers(split: Split) -> Split:
    """A table with categories as a peer takes it that knows none, for both sides."""
    X, X_test = split.of_peer
    return split._replace(name=f"{split.name}, levels as numbers for both", X=X, X_test=X_test, coded=None)


def one_hot_splits(scale: Scale) -> list[Split]:
    """Tables with a column of 0 and 1 for each level: two real ones, and a fifth of the drawn one."""
    found = one_hot(adult(scale)), one_hot(mushroom(scale)), cover(scale._replace(share=scale.share / 5.0))
    return [split for split in found if split is not None]


def splits(scale: Scale) -> list[Split]:
    """The three tables of the questions on speed."""
    return [split for split in (numeric(scale), letter(scale), housing(scale)) if split is not None]


def all_splits(scale: Scale) -> list[Split]:
    """The tables forests are measured on: four more, which have categories."""
    mixed = (adult(scale), kddcup(scale), mushroom(scale), flights(scale))
    return [*splits(scale), *(split for split in mixed if split is not None)]
