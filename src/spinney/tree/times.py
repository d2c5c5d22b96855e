"""Times until an event: memory for their kernel, and the times that are told apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spinney._types import SUM
from spinney.kernels.common.structs import TimeScratch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.table.fixed_point import Times

RESIDUAL_SCALE = 2.0**20  # of residuals by whole weights; others have units of their own
RESIDUAL_ROOM = 16.0  # sums of residuals are at most so many times the sum of weights


def make_times(times: Times, *, is_whole: bool) -> TimeScratch:
    """Scratch memory for times until an event; is_whole: whether weights are."""
    n = times.n_times + 1
    events, leaving, place, died, risk = np.zeros((5, n), SUM)
    return TimeScratch(
        code=times.code,
        events=events,
        leaving=leaving,
        place=place,
        died=died,
        risk=risk,
        left=np.zeros((2, n), SUM),
        missing=np.zeros((2, n), SUM),
        hazard=np.zeros(n),
        n_times=np.zeros(1, SUM),
        unit=1 if is_whole else 0,
        scale=RESIDUAL_SCALE if is_whole else 1.0 / RESIDUAL_ROOM,
    )


def choose_times(y: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """Times of events that are told apart, ascending: all if there are no more than `most`, else every so many.

    y: times, below 0 where the event was not seen. How often a time occurs makes no difference.
    """
    known = np.unique(y[y > 0.0])
    if len(known) <= most:
        return known
    return known[np.unique(np.linspace(0, len(known) - 1, most + 1).astype(np.intp)[1:])]
