"""Whose turn it is under a budget, and what a method may spend on its first fold.

Every method gets one fold before any gets two, the strong ones first. A first fold may take a third of the time that is
left, one of boosting or of a forest half of it; a method that needs more is fitted on fewer rows, these two even where
no time is left. What a fit will take is told by two fits of small samples.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

ORDER = ("baseline", "boosting", "forest", "extra-trees", "cart", "c45", "bagging", "linear", "adaboost", "id3")
SAMPLES = (1000, 4000)  # rows of the fits that tell the cost
MANY_ROWS = 10_000  # of a fold: below them the fit itself tells it as soon
SHARE = 3  # a first fold may take one part in so many of the time left
STRONG, STRONG_SHARE = ("boosting", "forest"), 2  # the same of those that a study must not go without
SURE = 0.7  # of what it may take is planned for: a fit may take longer than its estimate
FEWEST_ROWS = 200  # that a method is fitted on
CUT = 8  # one row in so many is left where a fit took longer than it was told to


class Training(NamedTuple):
    """Training rows of a fold: the table, and their numbers in the whole one."""

    X: Any
    rows: NDArray[np.int64]

    def sample(self, n_rows: int) -> Training:
        """Some of the rows, in their order; the same in every call."""
        if n_rows >= len(self.rows):
            return self
        part = np.sort(np.random.default_rng(0).choice(len(self.rows), n_rows, replace=False))
        return Training(self.X.take(part), self.rows[part])


def place_of(key: str) -> int:
    """Where a method stands among those that wait."""
    return ORDER.index(key) if key in ORDER else len(ORDER)


def share_of(key: str) -> int:
    """The first fold of a method may take one part in so many of the time left."""
    return STRONG_SHARE if key in STRONG else SHARE


def estimate_seconds(fit: Callable[[Training], object], training: Training, sizes: Iterable[int] = SAMPLES) -> float:
    """What a fit of these rows will take, by the fits of two samples: the rest grows as the rows do."""
    seconds = []
    few, more = sizes
    for n_rows in (few, more):
        part = training.sample(n_rows)
        start = time.perf_counter()
        fit(part)
        seconds.append(time.perf_counter() - start)
    return extrapolate(seconds[0], seconds[1], (few, more), len(training.rows))


def extrapolate(first: float, second: float, sizes: tuple[int, int], n_rows: int) -> float:
    """Seconds of a fit of many rows, on the line through those of two samples.

    Examples
    --------
    >>> extrapolate(1.0, 2.5, (1000, 4000), 10_000)
    5.5
    """
    few, more = sizes
    slope = max(second - first, 0.0) / (more - few)
    return max(second, first) + slope * (n_rows - more)


def count_rest(n_rows: int) -> int:
    """How many rows are tried where all took longer than they were told to, and nobody knows how long they take.

    Examples
    --------
    >>> [count_rest(n_rows) for n_rows in (80_000, 1000, 300)]
    [10000, 200, 37]
    """
    return max(n_rows // CUT, FEWEST_ROWS if n_rows >= 2 * FEWEST_ROWS else 0)


def count_affordable(n_rows: int, seconds: float, allowance: float) -> int:
    """How many of the rows can be fitted in the time allowed, where all would take `seconds`."""
    return max(int(n_rows * min(SURE * allowance / seconds, 0.5)), min(FEWEST_ROWS, n_rows))
