"""Out-of-bag results of a fitted ensemble: what its members predict for training rows outside their bags."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._cost import ROUTE_SECONDS, SHORT_SECONDS
from spinney._threads import count_workers, run_tasks
from spinney.ensemble.forest import leaf_votes
from spinney.model.earlier_members import refuse_earlier
from spinney.reading.several_outputs import part_shares
from spinney.tree.predict import find_leaves

if TYPE_CHECKING:
    from spinney.ensemble.sampling import Draw
    from spinney.model.fitted_forest import FittedForest, TrainingRows
    from spinney.table.sparse import Values

DRAW_SECONDS = 5e-9  # a row of a bag


@dataclass(frozen=True, eq=False)
class OutOfBag:
    """Out-of-bag votes, and the predictions and scores they give.

    Attributes
    ----------
    votes : float64 (n_rows, n_classes or 1)
        Sums over the members whose bag lacks the row: class shares, votes for classes, or numbers in units of
        `2**shift`; of several outputs side by side.
    n_votes : int64 (n_rows,)
        How many members that are; 0 for rows of weight 0.
    is_hard : bool
        Whether a member has voted for one class, instead of giving shares.
    curve : float64 (n_members,)
        Error after 1, 2, ... members.
    score : float
        By the scorer that was asked for.
    predictions : float64 (n_rows, n_classes), or (n_rows,) for numbers
        Mean votes, in the user's units; NaN for rows without votes. Several outputs of classes: (n_rows, most classes,
        n_outputs), as scikit-learn has it.
    """

    votes: NDArray[np.float64]
    n_votes: NDArray[np.int64]
    is_hard: bool
    curve: NDArray[np.float64]
    score: float
    predictions: NDArray[np.float64]

    def find_fault(
        self,
        n_rows: int,
        n_members: int,
        n_classes: int,
        shift: int,
        n_columns: int = 1,
        widths: NDArray[np.int64] | None = None,
    ) -> str | None:
        """What is wrong with results that were read from a file, for an ensemble of this size; None: nothing."""
        shapes = {"votes": (n_rows, max(n_classes, n_columns)), "n_votes": (n_rows,), "curve": (n_members,)}
        types = {"votes": np.float64, "n_votes": np.int64, "curve": np.float64}
        for name, shape in shapes.items():
            part = getattr(self, name)
            if part.shape != shape or part.dtype != types[name]:
                return f"out-of-bag {name} must be {np.dtype(types[name])} {shape}, not {part.dtype} {part.shape}"
        if np.any((self.n_votes < 0) | (self.n_votes > n_members)) or not np.isfinite(self.votes).all():
            return f"out-of-bag votes must be finite, and of 0 to {n_members} members"
        expected = mean_votes(self.votes, self.n_votes, n_classes, shift, widths)
        if not np.array_equal(self.predictions, expected, equal_nan=self.predictions.dtype.kind == "f"):
            return "out-of-bag predictions are not the means of the out-of-bag votes"
        return None


def mean_votes(
    votes: NDArray[np.float64],
    n_votes: NDArray[np.int64],
    n_classes: int,
    shift: int,
    widths: NDArray[np.int64] | None = None,
) -> NDArray[np.float64]:
    """Means of the votes, NaN where there are none: (n_rows, n_classes), or (n_rows,) or (n_rows, n_outputs).

    widths: classes of each of several outputs; the shape is (n_rows, most classes, n_outputs) then.
    """
    means = np.full(votes.shape, np.nan)
    np.divide(votes, n_votes[:, None], out=means, where=n_votes[:, None] > 0)
    if widths is not None:
        by_output = np.zeros((len(means), int(widths.max()), len(widths)))
        for o, shares in enumerate(part_shares(means, widths)):
            by_output[:, : shares.shape[1], o] = shares
        return by_output
    if n_classes:
        return means
    return np.ldexp(means.reshape(-1) if means.size == len(means) else means, shift)


def weighted_rows(draw: Draw) -> NDArray[np.int64]:
    """Rows of positive weight: the others are in no bag, and count for nothing."""
    return np.arange(draw.n_rows) if draw.probability is None else np.flatnonzero(draw.probability > 0.0)


def refuse_without_bags(draw: Draw, what: str) -> None:
    """Refuse what needs bags where every tree has seen all rows."""
    if draw.kind == "whole":
        raise ValueError(
            f"{what} needs bags, but with bootstrap=False every tree has seen all rows: fit with bootstrap=True, "
            "or with replace=False and max_samples below 1.0"
        )


class Calibration(NamedTuple):
    """Training rows with out-of-bag predictions; numbers are in units of `2**shift`."""

    rows: NDArray[np.int64]  # (n,) which rows, ascending
    predictions: NDArray[np.float64]  # (n, n_classes or 1)
    y: NDArray[Any]  # (n,) codes of classes, or numbers


def calibrate(
    fitted: FittedForest, what: str, training: TrainingRows | None, *, is_hard: bool, n_jobs: int | None
) -> Calibration:
    """The out-of-bag predictions that `fit` has kept, or those of the training rows, given again.

    what: names the method in errors.
    """
    refuse_without_bags(fitted.draw, what)
    refuse_earlier(fitted.earlier, f"{what} needs")
    if training is not None:
        votes, n_votes = route_out_of_bag(fitted, training.values, is_hard=is_hard, n_jobs=n_jobs)
        y = training.y
    elif fitted.out_of_bag is not None and fitted.target is not None:
        if fitted.out_of_bag.is_hard != is_hard:
            raise ValueError("voting has been changed since fit: fit again, or pass train=(X, y)")
        votes, n_votes, y = fitted.out_of_bag.votes, fitted.out_of_bag.n_votes, fitted.target.y
    else:
        raise ValueError(
            f"{what} needs the out-of-bag predictions of the training rows: fit with oob_score=True, "
            "or pass train=(X, y)"
        )
    rows = weighted_rows(fitted.draw)
    rows = rows[n_votes[rows] > 0]
    if len(rows) == 0:
        raise ValueError(
            "No training row was out of any bag, so there are no out-of-bag results. Use bags that leave rows out "
            "(bootstrap=True, or max_samples below 1.0), or more trees."
        )
    y = y[rows]
    means = votes[rows] / n_votes[rows, None]
    return Calibration(rows, means, y if fitted.forest.n_classes else np.ldexp(y, -fitted.shift))


def route_out_of_bag(
    fitted: FittedForest, values: Values, *, is_hard: bool, n_jobs: int | None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Sums over the trees, in their order, of their votes on rows outside their bag; and how many votes there are.

    values: (n_rows, n_features) of the training rows.
    """
    forest, draw = fitted.forest, fitted.draw
    votes = np.zeros((draw.n_rows, max(forest.n_classes, 1)))
    n_votes = np.zeros(draw.n_rows, np.int64)
    _ = forest.is_leaf  # made here and not by several threads at once

    def run(t: int, _: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        rows = np.flatnonzero(draw.counts(t) == 0)
        tree = forest[t]
        return rows, leaf_votes(tree, find_leaves(tree, values[rows]), is_hard=is_hard, shift=fitted.shift)

    def add(_: int, found: tuple[NDArray[np.int64], NDArray[np.float64]]) -> None:
        rows, new_votes = found
        votes[rows] += new_votes
        n_votes[rows] += 1

    seconds = len(forest) * draw.n_rows * (ROUTE_SECONDS + DRAW_SECONDS)
    n_workers = count_workers(n_jobs, len(forest), seconds)
    run_tasks(run, len(forest), n_workers, on_done=add, label="predicting", is_short=seconds < SHORT_SECONDS)
    return votes, n_votes
