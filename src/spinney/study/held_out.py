"""How good predictions for held-out rows are: curves, bins, counts and errors, as parts of the evidence."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.study.evidence import Calibration, Confusion, Coverage, Residuals, Separation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

MAX_CLASSES = 8  # in one picture: more could not be told apart
PIXEL = 1 / 300  # of the side of a curve's square
N_BINS = 10  # of probabilities
MIN_ROWS = 10  # of a bin
N_COLUMNS = 30  # of a histogram
MAX_POINTS = 2000
Z95 = 1.959963984540054  # standard deviations around the mean that hold 95% of a normal distribution
ROUNDING = 1e-9  # spread of residuals, relative to their size, that is none


def separation_curves(
    y: NDArray[Any], probabilities: NDArray[np.float64], classes: NDArray[Any]
) -> tuple[Separation, ...]:
    """How well the probability of a class separates its rows from the others: of two classes the second, else each.

    Parameters
    ----------
    y : array (n_rows,)
        True classes.
    probabilities : float64 array (n_rows, n_classes)
        Predicted for held-out rows, in the order of `classes`.
    classes : array (n_classes,)

    Returns
    -------
    tuple of Separation
        Classes that no row or every row is of have none; of more than eight classes, the commonest have one.
    """
    from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score, roc_curve

    found = []
    for label, is_of, share in one_vs_rest(y, probabilities, classes):
        false_rate, true_rate, _ = roc_curve(is_of, share)
        precision, recall, _ = precision_recall_curve(is_of, share)
        found.append(
            Separation(
                label=label,
                n_positive=int(is_of.sum()),
                n_rows=len(is_of),
                roc=thin(false_rate, true_rate),
                roc_auc=float(roc_auc_score(is_of, share)),
                recall=thin(recall[::-1], precision[::-1]),
                average_precision=float(average_precision_score(is_of, share)),
            )
        )
    return tuple(found)


def calibration_bins(
    y: NDArray[Any], probabilities: NDArray[np.float64], classes: NDArray[Any]
) -> tuple[Calibration, ...]:
    """How often a class came by the probability that it was given, in ten bins of equal width.

    A bin of fewer than ten rows is joined with the next, since a share of three rows means nothing. Parameters
    and classes are those of `separation_curves`.
    """
    found = []
    for label, is_of, share in one_vs_rest(y, probabilities, classes):
        bins = np.searchsorted(np.linspace(0.0, 1.0, N_BINS + 1)[1:-1], share)
        bins = join_bins(np.bincount(bins, minlength=N_BINS))[bins]
        counts, hits = np.bincount(bins), np.bincount(bins, weights=is_of)
        low, high = wilson_interval(hits, counts)
        found.append(
            Calibration(
                label=label,
                predicted=tuple((np.bincount(bins, weights=share) / counts).tolist()),
                observed=tuple((hits / counts).tolist()),
                low=tuple(low.tolist()),
                high=tuple(high.tolist()),
                counts=tuple(counts.tolist()),
                brier=float(np.mean((share - is_of) ** 2)),
            )
        )
    return tuple(found)


def count_confusion(y: NDArray[Any], predicted: NDArray[Any], classes: NDArray[Any]) -> Confusion:
    """Count the rows by true class `y` and predicted class, `predicted`."""
    from sklearn.metrics import confusion_matrix

    counts = confusion_matrix(y, predicted, labels=classes)
    return Confusion(tuple(map(str, classes.tolist())), tuple(map(tuple, counts.tolist())))


def measure_residuals(y: NDArray[np.float64], predicted: NDArray[np.float64], *, seed: int = 0) -> Residuals:
    """Errors of predicted numbers; the sample of rows is drawn by `seed`."""
    y, predicted = np.asarray(y, np.float64), np.asarray(predicted, np.float64)
    residuals = y - predicted
    largest = float(np.abs(residuals).max())
    rows = np.arange(len(y))
    if len(y) > MAX_POINTS:
        rows = np.sort(np.random.default_rng(seed).choice(len(y), MAX_POINTS, replace=False))
    edges = make_edges(residuals)
    columns = np.clip(np.searchsorted(edges, residuals, side="right") - 1, 0, len(edges) - 2)
    return Residuals(
        predicted=tuple(predicted[rows].tolist()),
        actual=tuple(y[rows].tolist()),
        edges=tuple(edges.tolist()),
        counts=tuple(np.bincount(columns, minlength=len(edges) - 1).tolist()),
        rmse=largest * math.sqrt(np.mean((residuals / largest) ** 2)) if largest > 0.0 else 0.0,
        mae=float(np.mean(np.abs(residuals))),
        n_rows=len(y),
    )


def measure_coverage(
    name: str, y: NDArray[Any], regions: Mapping[float, NDArray[Any]], classes: NDArray[Any] | None = None
) -> Coverage:
    """How often intervals or sets of classes held the truth.

    Parameters
    ----------
    name : str
        Of the method that made them.
    y : array (n_rows,)
        Truths.
    regions : mapping
        From the nominal coverage to the prediction intervals, float64 (n_rows, 2), or with `classes` to the prediction
        sets, bool (n_rows, n_classes).
    classes : array (n_classes,), optional

    Returns
    -------
    Coverage
        By rising nominal coverage; the width of infinite intervals is None.
    """
    nominal = sorted(regions)
    widths: list[float | None] = []
    hits = []
    for share in nominal:
        if classes is None:
            low, high = regions[share].T
            held, size = (low <= y) & (y <= high), high - low
        else:
            held, size = (regions[share] & (y[:, None] == classes)).any(axis=1), regions[share].sum(axis=1)
        hits.append(int(held.sum()))
        mean = float(np.mean(size))
        widths.append(mean if math.isfinite(mean) else None)
    low, high = wilson_interval(np.array(hits), np.full(len(hits), len(y)))
    return Coverage(
        name=name,
        nominal=tuple(nominal),
        covered=tuple(hit / len(y) for hit in hits),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        width=tuple(widths),
        n_rows=len(y),
    )


# --- parts ---


def one_vs_rest(
    y: NDArray[Any], probabilities: NDArray[np.float64], classes: NDArray[Any]
) -> Iterator[tuple[str, NDArray[np.bool_], NDArray[np.float64]]]:
    """By class: its name, whether each row is of it, its probabilities; classes as in `separation_curves`."""
    counts = np.array([np.count_nonzero(y == name) for name in classes.tolist()])
    shown = [1] if len(classes) == 2 else sorted(np.argsort(-counts, kind="stable")[:MAX_CLASSES].tolist())
    for k in shown:
        if 0 < counts[k] < len(y):
            yield str(classes[k]), y == classes[k], probabilities[:, k]


def thin(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[tuple[float, float], ...]:
    """Points of a curve without those within a pixel of the last one kept; the ends stay."""
    points = list(zip(x.tolist(), y.tolist(), strict=True))
    kept = [points[0]]
    for point, after in pairwise(points[1:] + points[-1:]):
        is_end = after is point
        if is_end or max(abs(point[0] - kept[-1][0]), abs(point[1] - kept[-1][1])) > PIXEL:
            kept.append(point)
    return tuple(kept)


def join_bins(counts: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """The new number of each bin, from 0 on, such that each has at least so many rows, or all rows."""
    ends = []  # of new bins: the first bin after each
    held = 0
    for k, count in enumerate(counts.tolist()):
        held += count
        if held >= MIN_ROWS:
            ends.append(k + 1)
            held = 0
    return np.searchsorted(ends[:-1], np.arange(len(counts)), side="right")  # what is left goes to the last


def wilson_interval(
    hits: NDArray[Any], counts: NDArray[np.integer[Any]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bounds of shares that hold the true one with 95% (Wilson 1927); they stay within 0 and 1."""
    share, square = hits / counts, Z95 * Z95
    middle = (share + square / (2 * counts)) / (1 + square / counts)
    half = Z95 / (1 + square / counts) * np.sqrt(share * (1 - share) / counts + square / (4 * counts**2))
    return np.clip(middle - half, 0.0, share), np.clip(middle + half, share, 1.0)


def make_edges(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Edges of a histogram: over the middle 98% and as much again on both sides; few values lie beyond, in the ends."""
    low, high = float(values.min()), float(values.max())
    if high - low <= ROUNDING * max(abs(low), abs(high)):
        room = max(abs(low), abs(high), 1.0) / 2
        return np.array([low - room, high + room])
    first, last = np.quantile(values, [0.01, 0.99]).tolist()
    room = last - first if last > first else high - low
    return np.linspace(max(low, first - room), min(high, last + room), N_COLUMNS + 1)
