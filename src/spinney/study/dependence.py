"""How a prediction changes with one column: partial dependence and single rows (Friedman 2001; Goldstein et al. 2015).

In all rows of a sample one column is set to a value of a grid, the others stay as they are, and the model predicts.
The numbers are those of scikit-learn's `partial_dependence` by brute force; here a column of any kind takes one call
of the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney.study.column_checks import explain_text, read_numbers
from spinney.study.evidence import Dependence
from spinney.study.profile import natural
from spinney.study.tables import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from spinney.study.tables import StudyData

N_ROWS = 300  # of the sample
N_LINES = 40  # of single rows that are kept
N_POINTS = 40  # of a grid of numbers
N_LEVELS = 20  # of a grid of levels, the commonest
N_CELLS = 2**24  # of the rows that are predicted in one call, each repeated at every point: wide tables get fewer rows
FEWEST_ROWS = 20
FLAT = 1e-3  # of the target's standard deviation, or of a probability: what varies less is level
TAIL = 0.01  # share of the rows beyond the grid at either end: single far values would be most of its width


def trace_columns(model: Any, data: StudyData, columns: Sequence[str], *, seed: int = 0) -> tuple[Dependence, ...]:
    """How the prediction of a fitted model depends on each of some columns.

    For classes the prediction is the probability of the second of two, else of the commonest. Columns along which the
    mean prediction is level are left out, and so is text that names the rows.
    """
    most = max(min(N_ROWS, N_CELLS // (N_POINTS * data.X.num_columns)), FEWEST_ROWS)
    rows = np.random.default_rng(seed).permutation(data.n_rows)[:most]
    predict, label = choose_output(model, data)
    least = FLAT * (float(np.std(data.y)) if data.is_regression else 1.0)
    found = (depend(predict, data.X, column, rows, label) for column in columns if not _names_rows(data.X[column]))
    return tuple(one for one in found if max(one.mean) - min(one.mean) > least)


def _names_rows(column: pa.ChunkedArray) -> bool:
    """Whether a column is text that hardly repeats: its levels are no chart."""
    return read_numbers(column) is None and explain_text(column) is not None


def choose_output(model: Any, data: StudyData) -> tuple[Callable[[Any], NDArray[np.float64]], str | None]:
    """The function that predicts one number for each row, and the class whose probability it is (None for numbers)."""
    if data.is_regression:
        return model.predict, None
    classes = model.classes_
    counts = [np.count_nonzero(data.y == name) for name in classes]
    place = 1 if len(classes) == 2 else int(np.argmax(counts))
    return lambda X: model.predict_proba(X)[:, place], str(classes[place])


def depend(
    predict: Callable[[Any], NDArray[np.float64]], X: pa.Table, column: str, rows: NDArray[np.int64], label: str | None
) -> Dependence:
    """The predictions for some rows, on average and one by one, along a grid of one column."""
    grid = make_grid(X[column])
    n_points, at = len(grid.rows), X.column_names.index(column)
    changed = X.take(np.tile(rows, n_points))
    changed = changed.set_column(at, X.schema.field(at), X[column].take(np.repeat(grid.rows, len(rows))))
    predicted = np.asarray(predict(changed), np.float64).reshape(n_points, len(rows))
    return Dependence(
        feature=column,
        is_number=grid.is_number,
        grid=grid.values,
        mean=tuple(predicted.mean(axis=1).tolist()),
        lines=tuple(map(tuple, predicted[:, :N_LINES].T.tolist())),
        counts=grid.counts,
        label=label,
    )


class Grid(NamedTuple):
    """Values of a column, each by a row that has it: so it is of the column's own type, whatever that is."""

    rows: NDArray[np.int64]
    values: tuple[float, ...] | tuple[str, ...]
    counts: tuple[int, ...]  # rows of the table that are nearest to each
    is_number: bool


def make_grid(column: pa.ChunkedArray) -> Grid:
    """The commonest levels of a category, or values of a number at about equal distances."""
    import pyarrow as pa

    values = plain(column)
    numbers = read_numbers(values)
    if numbers is not None:
        return _grid_of_numbers(numbers)
    known = np.flatnonzero(values.is_valid().to_numpy())
    levels, first, counts = np.unique(
        values.cast(pa.string()).drop_null().to_numpy().astype(str), return_index=True, return_counts=True
    )
    kept = np.argsort(-counts, kind="stable")[:N_LEVELS]
    kept = np.array(sorted(kept, key=lambda k: natural(str(levels[k]))), np.int64)
    return Grid(known[first[kept]], tuple(levels[kept].tolist()), tuple(counts[kept].tolist()), is_number=False)


def _grid_of_numbers(values: NDArray[np.float64]) -> Grid:
    known = np.flatnonzero(np.isfinite(values))
    distinct, first, counts = np.unique(values[known], return_index=True, return_counts=True)
    kept = np.arange(len(distinct))
    if len(distinct) > N_POINTS:
        low, high = np.quantile(values[known], [TAIL, 1.0 - TAIL])
        kept = np.unique(nearest(distinct, np.linspace(low, high, N_POINTS)))
    owner = nearest(distinct[kept], distinct)
    shown = np.bincount(owner, weights=counts, minlength=len(kept)).astype(np.int64)
    return Grid(known[first[kept]], tuple(distinct[kept].tolist()), tuple(shown.tolist()), is_number=True)


def nearest(known: NDArray[np.float64], x: NDArray[np.float64]) -> NDArray[np.intp]:
    """Which of the ascending `known` is nearest to each x, the lower one of two as near."""
    right = np.clip(np.searchsorted(known, x), 1, max(len(known) - 1, 1))
    left = right - 1
    right = np.minimum(right, len(known) - 1)
    return np.where(x - known[left] <= known[right] - x, left, right)
