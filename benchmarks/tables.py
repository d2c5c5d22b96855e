"""The tables that are measured on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.runner import ROOT

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from benchmarks.runner import Scale

DATA = ROOT.parent / "shared" / "data"  # real tables kept beside the repository, not in it
N_FEATURES = 28


class Split(NamedTuple):
    """A table with rows held out."""

    name: str
    X: NDArray[Any]
    y: NDArray[Any]
    X_test: NDArray[Any]
    y_test: NDArray[Any]
    is_regression: bool = False


def draw_numeric(n_rows: int, dtype: DTypeLike = np.float32) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """28 normal columns, nine of which decide between two classes, with much noise."""
    generator = np.random.default_rng(0)
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


def letter(scale: Scale) -> Split | None:
    """Letter Recognition: 16,000 rows to grow on and the last 4,000 held out; None where absent."""
    path = DATA / "letter.parquet"
    if not path.exists():
        print(f"letter: left out, no file {path}")
        return None
    import pyarrow.parquet as pq

    table = pq.read_table(path)
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
    order = np.random.default_rng(0).permutation(len(y))
    n_train = len(y) * 4 // 5
    train, test = order[: scale.rows(n_train)], order[n_train:]
    name = f"california_housing {len(train):,} x {X.shape[1]}"
    return Split(name, X[train], y[train], X[test], y[test], is_regression=True)


def splits(scale: Scale) -> list[Split]:
    """The three tables of the questions on speed."""
    return [split for split in (numeric(scale), letter(scale), housing(scale)) if split is not None]
