"""How sure a fitted forest is of new rows: variances, intervals and sets of classes.

    new rows ──► predictions of every tree ──► predict_variance          bags are drawn again where they are needed
    out-of-bag results: kept by fit, or from the training rows  ──► predict_interval, predict_set

New rows go through in blocks, several threads at a time; the result of a row depends neither on its block nor on the
threads. The arithmetic is in `model.uncertainty`.
"""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._cost import SHORT_SECONDS
from spinney._threads import count_workers, run_tasks
from spinney._warnings import warn
from spinney.model.earlier_members import refuse_earlier
from spinney.model.forest_votes import for_row_blocks, lower_values, tree_predictions
from spinney.model.out_of_bag import DRAW_SECONDS, calibrate, refuse_without_bags, weighted_rows
from spinney.model.uncertainty import (
    Correction,
    PerTree,
    infinitesimal_jackknife_variance,
    interval_after_bootstrap,
    interval_oob,
    jackknife_variance,
    sets_after_bootstrap,
    sets_oob,
    variance_over_trees,
)

if TYPE_CHECKING:
    from spinney.ensemble.sampling import Draw
    from spinney.model.fitted_forest import FittedForest, TrainingRows
    from spinney.table.sparse import Values
    from spinney.tree.forest import Forest

KINDS = ("trees", "jackknife", "infinitesimal")
METHODS = ("auto", "jackknife+", "oob")
CORRECTIONS = ("counts", "bootstrap", "none")
MOST_ROWS = 20_000  # training rows up to which "auto" takes the time of the jackknife+
HELD_CELLS = 2**26  # counts (n_trees, n_rows) in four bytes each that are held; beyond, bags are drawn for every block
PRODUCT_SECONDS = 2e-10  # a training row, a new row and a tree in a product of matrices
RANK_SECONDS = 2e-8  # a training row at a new row, for an order statistic
MODERATE_BITS = 400  # exponents of values whose squares, and sums of these, are far from the ends of float64
SETTLED = 1e-8  # of a share, far above rounding and what counts as a tie


# --- variances ------------------------------------------------------------------------------------------------------


def predict_variance(
    fitted: FittedForest,
    values: Values,
    kind: str,
    correction: Correction,
    *,
    is_hard: bool,
    n_jobs: int | None,
) -> NDArray[np.float64]:
    """Variance of the prediction of each row, (n_rows,) or (n_rows, n_classes)."""
    check_option("kind", kind, KINDS)
    check_option("correction", correction, CORRECTIONS)
    counts: Any = None
    n_units = 0
    if kind != "trees":
        refuse_without_bags(fitted.draw, f"kind={kind!r}")
        refuse_earlier(fitted.earlier, f"kind={kind!r} needs")
        units = drawn_units(fitted.draw)
        counts, n_units = hold_counts(fitted, units, n_jobs), len(units)
    scale = find_scale(fitted.forest)
    n_classes = fitted.forest.n_classes
    forest = fitted.voting_forest(is_hard=is_hard) if n_classes else lower_values(fitted.forest, scale)
    variance = np.empty((len(values), max(n_classes, 1)))
    is_hidden = np.zeros(variance.shape, np.bool_)

    def work(rows: slice) -> None:
        predictions = tree_predictions(forest, values[rows])
        for c in range(variance.shape[1]):
            part = predictions[:, :, c] if n_classes else predictions
            variance[rows, c] = measure_variance(part, counts, kind, correction)
            is_hidden[rows, c] = (variance[rows, c] == 0.0) & (part.min(axis=0) != part.max(axis=0))

    for_row_blocks(forest, work, len(values), n_jobs, n_units * variance.shape[1] * PRODUCT_SECONDS * len(forest))
    if is_hidden.any():
        warn(
            f"{np.count_nonzero(is_hidden)} of {variance.size} variances were smaller than the noise of "
            f"{len(forest)} trees and are given as 0: grow more trees, some multiple of the {n_units} "
            f"{'rows' if fitted.draw.groups is None else 'groups'} that bags are drawn from."
        )
    with np.errstate(over="ignore"):  # targets of 1e300 have squares beyond float64: infinite
        return variance if n_classes else np.ldexp(variance[:, 0], 2 * scale)


def measure_variance(
    predictions: NDArray[np.float64], counts: PerTree, kind: str, correction: Correction
) -> NDArray[np.float64]:
    """Variance for each new row, from the predictions of the trees, (n_trees, n_new)."""
    if kind == "trees":
        return variance_over_trees(predictions)
    measure = jackknife_variance if kind == "jackknife" else infinitesimal_jackknife_variance
    return measure(predictions, counts, correction=correction)


def find_scale(forest: Forest) -> int:
    """Power of two that brings values near 1 whose squares would leave float64; 0 where they do not, or for classes."""
    if forest.n_classes:
        return 0
    values = np.ascontiguousarray(forest.hot[forest.is_leaf, 0]).view(np.float64)
    exponent = math.frexp(float(np.max(np.abs(values))))[1]
    return exponent if abs(exponent) > MODERATE_BITS else 0


def drawn_units(draw: Draw) -> NDArray[np.int64]:
    """One row of everything that is drawn as a whole: a row, or a group."""
    rows = weighted_rows(draw)
    if draw.groups is None:
        return rows
    return rows[np.unique(draw.groups[rows], return_index=True)[1]]


def hold_counts(fitted: FittedForest, rows: NDArray[np.int64], n_jobs: int | None) -> PerTree:
    """Counts of these training rows in all bags, (n_trees, len(rows)), or a function that draws those of a tree."""
    draw, n_trees = fitted.draw, len(fitted.forest)

    def draw_counts(tree: int) -> NDArray[np.int32]:
        return draw.counts(tree)[rows]

    if n_trees * len(rows) > HELD_CELLS:
        return draw_counts
    counts = np.empty((n_trees, len(rows)), np.int32)

    def run(tree: int, _: NDArray[np.int64]) -> None:
        counts[tree] = draw_counts(tree)

    seconds = n_trees * draw.n_rows * DRAW_SECONDS
    n_workers = count_workers(n_jobs, n_trees, seconds)
    run_tasks(run, n_trees, n_workers, label="drawing", unit="bags", is_short=seconds < SHORT_SECONDS)
    return counts


# --- intervals ------------------------------------------------------------------------------------------------------


class CoverageParams(NamedTuple):
    """How intervals and sets are made, as the user gives it."""

    coverage: Any
    method: Any = "auto"

    def check(self) -> None:
        """Refuse what is no share strictly between 0 and 1, and unknown methods."""
        if isinstance(self.coverage, bool) or not isinstance(self.coverage, Real):
            raise TypeError(f"coverage must be a number between 0 and 1, got {self.coverage!r}")
        if not 0.0 < float(self.coverage) < 1.0:
            raise ValueError(f"coverage must lie between 0 and 1, for example 0.9, got {self.coverage!r}")
        check_option("method", self.method, METHODS)

    def is_fast(self, draw: Draw) -> bool:
        """Whether one threshold serves all new rows."""
        if self.method == "auto":
            return len(weighted_rows(draw)) > MOST_ROWS
        return self.method == "oob"


def predict_interval(
    fitted: FittedForest,
    values: Values,
    params: CoverageParams,
    training: TrainingRows | None,
    *,
    n_jobs: int | None,
) -> NDArray[np.float64]:
    """An interval for each row that holds its target with a probability of `params.coverage`, (n_rows, 2)."""
    rows, oob, y = calibrate(fitted, "predict_interval", training, is_hard=False, n_jobs=n_jobs)
    if params.is_fast(fitted.draw):
        predictions = fitted.make_predictor(is_hard=False).answer(values, n_jobs)
        interval = interval_oob(np.ldexp(predictions, -fitted.shift), y - oob[:, 0], params.coverage)
        return raise_values(interval, fitted.shift)
    counts = hold_counts(fitted, rows, n_jobs)
    forest = fitted.voting_forest(is_hard=False)
    interval = np.empty((len(values), 2))

    def work(new: slice) -> None:
        predictions = tree_predictions(forest, values[new])
        interval[new] = interval_after_bootstrap(predictions, counts, oob[:, 0], y, params.coverage)

    for_row_blocks(forest, work, len(values), n_jobs, len(rows) * (len(forest) * PRODUCT_SECONDS + RANK_SECONDS))
    return raise_values(interval, fitted.shift)


def raise_values(values: NDArray[np.float64], shift: int) -> NDArray[np.float64]:
    """Values times `2**shift`, infinite beyond float64."""
    with np.errstate(over="ignore"):
        return np.ldexp(values, shift)


# --- sets -----------------------------------------------------------------------------------------------------------


def predict_set(
    fitted: FittedForest,
    values: Values,
    params: CoverageParams,
    training: TrainingRows | None,
    *,
    is_hard: bool,
    n_jobs: int | None,
) -> NDArray[np.bool_]:
    """A set of classes for each row that holds the true one with a probability of `params.coverage`.

    Returns whether each class is in, (n_rows, n_classes).
    """
    rows, oob, y = calibrate(fitted, "predict_set", training, is_hard=is_hard, n_jobs=n_jobs)
    if params.is_fast(fitted.draw):
        return sets_oob(fitted.make_predictor(is_hard=is_hard).answer(values, n_jobs), oob, y, params.coverage)
    counts = hold_counts(fitted, rows, n_jobs)
    forest = fitted.voting_forest(is_hard=is_hard)
    limits = set_limits(count_out(counts, len(forest)), 1.0 - oob[np.arange(len(y)), y], float(params.coverage))
    is_in = np.empty((len(values), forest.n_classes), np.bool_)

    def work(new: slice) -> None:
        predictions = tree_predictions(forest, values[new])
        is_in[new], is_open = settle_sets(predictions, limits)
        predictions = predictions[:, is_open][:, :, None]  # each of them as if it were a new row
        is_in[new][is_open] = sets_after_bootstrap(predictions, counts, oob, y, params.coverage)[:, 0]

    for_row_blocks(forest, work, len(values), n_jobs, len(rows) * (len(forest) * PRODUCT_SECONDS + RANK_SECONDS))
    return is_in


class SetLimits(NamedTuple):
    """Sums of shares over all trees that settle a class, whichever trees have not seen a training row.

    Let S be the sum over the B trees and n_i the number of those without row i. Their mean is at most S / n_i, and at
    least 1 - (B - S) / n_i. So the score of the class is above that of row i if S < (1 - score_i) * n_i, and it is not
    if B - S <= score_i * n_i. On letter (26 classes) 98 % of the classes of new rows are settled.
    """

    above: NDArray[np.float64]  # (n_rows,) ascending: (1 - score_i) * n_i
    below: NDArray[np.float64]  # (n_rows,) ascending: score_i * n_i
    rank: float  # of above rows that keep a class out, in floats: one more or less is left open


def set_limits(n_out: NDArray[np.int64], score: NDArray[np.float64], coverage: float) -> SetLimits:
    """Limits from the number of trees without each training row, and its out-of-bag score."""
    is_used = n_out > 0
    n_out, score = n_out[is_used], score[is_used]
    rank = float(np.ceil(coverage * (len(score) + 1)))
    return SetLimits(np.sort((1.0 - score) * n_out), np.sort(score * n_out), rank)


def settle_sets(predictions: NDArray[np.float64], limits: SetLimits) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which classes are in for sure, and which are open, from shares (n_trees, n_new, n_classes)."""
    n_trees, n_rows = len(predictions), len(limits.above)
    total = predictions.sum(axis=0)
    slack = SETTLED * n_trees
    n_above_least = n_rows - np.searchsorted(limits.above, total + slack, side="right")
    n_above_most = np.searchsorted(limits.below, n_trees - total + slack, side="left")
    is_in = n_above_most < limits.rank - 1.0
    return is_in, ~is_in & (n_above_least < limits.rank + 1.0)


def count_out(counts: PerTree, n_trees: int) -> NDArray[np.int64]:
    """Number of trees whose bag lacks each row, (n_rows,)."""
    first = counts(0) if callable(counts) else counts[0]
    n_out = np.zeros(len(first), np.int64)
    for tree in range(n_trees):
        n_out += (counts(tree) if callable(counts) else counts[tree]) == 0
    return n_out


# --- arguments -----------------------------------------------------------------------------------------------------


def check_option(name: str, value: Any, options: tuple[str, ...]) -> None:
    """Refuse what is not among the options."""
    if value not in options:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}")
