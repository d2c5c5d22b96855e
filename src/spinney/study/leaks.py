"""Columns that give the target away: what each column alone predicts, before any method is fitted.

A column is read as levels (a number in bins of about equal rows); a number also by one threshold, and by its neighbours
in order. All are fitted on some rows and scored on others, so that names of rows gain nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.study.column_checks import read_codes, read_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

GIVEN_AWAY = 0.98  # of the way from the baseline to no errors at all, by one column: it holds the answer
EXACT = 1e-9  # of the variance: what a linear combination may leave over by rounding
MIN_ROWS = 50  # below them a column may do that by chance
MAX_ROWS = 10_000
MAX_CELLS = 20_000_000  # rows times columns: wide tables are looked at in fewer rows
MAX_CLASSES = 100
MAX_TOGETHER = 100  # columns of which a linear combination is sought
N_FOLDS = 5
N_BINS = 64


def score_columns(X: pa.Table, y: NDArray[Any], *, is_regression: bool) -> dict[str, float]:
    """By column, what it alone predicts of rows that it was not fitted on: 0 is the baseline, 1 is no error."""
    rows = choose_rows(len(y), X.num_columns)
    truth = y[rows]
    labels = None if is_regression else np.unique(truth, return_inverse=True)[1].astype(np.int64)
    if len(rows) < MIN_ROWS or len(np.unique(truth)) < 2 or (labels is not None and labels.max() >= MAX_CLASSES):
        return {}
    folds = np.random.default_rng(1).permutation(len(rows)) % N_FOLDS
    part = X.take(rows)
    return {name: score_column(part[name], truth, labels, folds) for name in X.column_names}


def choose_rows(n_rows: int, n_columns: int) -> NDArray[np.int64]:
    """The rows that are looked at, in order."""
    most = min(MAX_ROWS, max(MAX_CELLS // max(n_columns, 1), 10 * MIN_ROWS))
    return np.sort(np.random.default_rng(0).permutation(n_rows)[:most])


def score_column(
    column: pa.ChunkedArray, y: NDArray[Any], labels: NDArray[np.int64] | None, folds: NDArray[np.int64]
) -> float:
    """How far from the baseline to no errors one column goes, by the best of its readings."""
    numbers = read_numbers(column)
    readings = []
    if numbers is None:
        codes = read_codes(column)
        readings.append(lambda seen, new: by_level(codes[seen], codes[new], y[seen], of(labels, seen)))
    else:
        known = np.isfinite(numbers)
        least = numbers[known].min() - 1.0 if known.any() else 0.0
        values = np.where(known, numbers, least)
        distinct, codes = np.unique(values, return_inverse=True)
        if len(distinct) > N_BINS:
            edges = np.unique(np.quantile(values, np.linspace(0.0, 1.0, N_BINS + 1)[1:-1]))
            codes = np.searchsorted(edges, values, side="right")
        readings.append(lambda seen, new: by_level(codes[seen], codes[new], y[seen], of(labels, seen)))
        readings.append(lambda seen, new: by_threshold(values[seen], values[new], y[seen], of(labels, seen)))
        readings.append(lambda seen, new: by_neighbours(values[seen], values[new], y[seen], of(labels, seen)))
    return max(cross_fit(reading, y, labels, folds) for reading in readings)


def of(labels: NDArray[np.int64] | None, rows: NDArray[np.bool_]) -> NDArray[np.int64] | None:
    """The labels of some rows, where there are classes."""
    return None if labels is None else labels[rows]


def cross_fit(reading: Any, y: NDArray[Any], labels: NDArray[np.int64] | None, folds: NDArray[np.int64]) -> float:
    """The score of a reading over all folds: R², or how much of the baseline's errors is gone."""
    truth: NDArray[Any] = y if labels is None else labels
    predicted = np.zeros(len(truth), truth.dtype if labels is not None else np.float64)
    for fold in range(N_FOLDS):
        predicted[folds == fold] = reading(folds != fold, folds == fold)
    if labels is None:
        spread = np.square(truth - truth.mean()).sum()
        return float(1.0 - np.square(truth - predicted).sum() / spread)
    wrong, errors = float(np.mean(truth != predicted)), 1.0 - float(np.bincount(labels).max()) / len(labels)
    return 1.0 - wrong / errors


def by_level(
    seen: NDArray[np.int64], new: NDArray[np.int64], y: NDArray[Any], labels: NDArray[np.int64] | None
) -> NDArray[Any]:
    """The mean, or the commonest class, of each level; of a new level that of all."""
    n_levels = int(max(seen.max(), new.max())) + 1
    counts = np.bincount(seen, minlength=n_levels)
    if labels is None:
        means = np.bincount(seen, y, n_levels) / np.maximum(counts, 1)
        return np.where(counts > 0, means, y.mean())[new]
    found = np.full(n_levels, np.bincount(labels).argmax())
    pairs, rows = np.unique(seen * (labels.max() + 1) + labels, return_counts=True)
    order = np.argsort(rows, kind="stable")  # the commonest pair of a level is written last
    found[pairs[order] // (labels.max() + 1)] = pairs[order] % (labels.max() + 1)
    return found[new]


def by_threshold(
    seen: NDArray[np.float64], new: NDArray[np.float64], y: NDArray[Any], labels: NDArray[np.int64] | None
) -> NDArray[Any]:
    """A stump: the threshold of least squares, or of most rows of the commoner class on both sides."""
    order = np.argsort(seen, kind="stable")
    x = seen[order]
    cuts = np.flatnonzero(np.diff(x) > 0)
    if not len(cuts):
        return np.full(len(new), y.mean() if labels is None else np.bincount(labels).argmax())
    n_left = cuts + 1.0
    if labels is None:
        sums = np.cumsum(y[order])
        left, total = sums[cuts], sums[-1]
        best = int(np.argmax(left**2 / n_left + (total - left) ** 2 / (len(x) - n_left)))
        low, high = left[best] / n_left[best], (total - left[best]) / (len(x) - n_left[best])
    else:
        table = np.zeros((len(x), int(labels.max()) + 1), np.int32)
        table[np.arange(len(x)), labels[order]] = 1
        table = np.cumsum(table, axis=0, dtype=np.int32)
        left, right = table[cuts], table[-1] - table[cuts]
        best = int(np.argmax(left.max(axis=1) + right.max(axis=1)))
        low, high = left[best].argmax(), right[best].argmax()
    threshold = x[cuts[best]] + (x[cuts[best] + 1] - x[cuts[best]]) / 2.0
    return np.where(new <= threshold, low, high)


def by_neighbours(
    seen: NDArray[np.float64], new: NDArray[np.float64], y: NDArray[Any], labels: NDArray[np.int64] | None
) -> NDArray[Any]:
    """The target between those of the next lower and the next higher value; of classes that of the nearest value."""
    distinct, codes, counts = np.unique(seen, return_inverse=True, return_counts=True)
    if labels is None:
        return np.interp(new, distinct, np.bincount(codes, y) / counts)
    nearest = np.rint(np.interp(new, distinct, np.arange(len(distinct)))).astype(np.int64)
    return by_level(codes, nearest, y, labels)


def find_sum(X: pa.Table, y: NDArray[np.float64]) -> tuple[str, ...]:
    """The columns whose linear combination is the target of every row; none where there is no such combination."""
    rows = choose_rows(len(y), X.num_columns)
    columns = dict(list_numbers(X.take(rows)))
    if len(columns) < 2 or len(columns) > MAX_TOGETHER or len(rows) < max(MIN_ROWS, 2 * len(columns)):
        return ()
    names, table = list(columns), np.column_stack(list(columns.values()))
    truth = (y[rows] - y[rows].mean()) / y[rows].std()
    weights, *_ = np.linalg.lstsq(table, truth, rcond=1e-10)
    if np.square(truth - table @ weights).mean() > EXACT:
        return ()
    return tuple(name for name, weight in zip(names, weights, strict=True) if abs(weight) > 1e-6)


def list_numbers(X: pa.Table) -> Iterator[tuple[str, NDArray[np.float64]]]:
    """Columns of numbers without a missing one, with mean 0 and standard deviation 1; constants are left out."""
    for name in X.column_names:
        values = read_numbers(X[name])
        if values is not None and np.isfinite(values).all() and float(np.ptp(values)) > 0.0:
            spread = float(values.std())
            if 0.0 < spread < np.inf:
                yield name, (values - values.mean()) / spread
