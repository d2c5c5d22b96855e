"""The bags of boosting's rounds, drawn by threads: each takes a block of rows, and those that are left later rounds.

A block of rows is drawn by one thread. Half a million rows are eight blocks, so that of 32 threads three in four had
nothing to do: they draw the bags of the next three rounds.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spinney._types import ROW

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney._threads import Team
    from spinney.ensemble.sampling import Draw


class DrawnRows(NamedTuple):
    """Some rows of a table, of which a bag has a part."""

    is_in: NDArray[np.uint8]  # of each row
    rows: NDArray[np.int32]  # the numbers of those in the bag, ascending


class BoostingBags:
    """Bags by the number of the round."""

    def __init__(self, draw: Draw, team: Team) -> None:
        self.draw, self.team = draw, team
        self.ahead: dict[int, list[DrawnRows]] = {}  # of later rounds
        self.rows = np.empty(0, ROW)  # those of the last bag

    def mark(self, number: int, is_in: NDArray[np.uint8]) -> NDArray[np.int32]:
        """Mark the rows of a round's bag in `is_in`; return them, ascending, until the next bag is drawn."""
        if not self.draw.has_blocks:
            is_in[:] = self.draw.counts(number)
            return np.flatnonzero(is_in.view(np.bool_)).astype(ROW)
        if number not in self.ahead:
            self.ahead = self.draw_some(number)
        parts = self.ahead.pop(number)
        ends = [0, *itertools.accumulate(len(part.rows) for part in parts)]
        self.rows = self.rows if len(self.rows) == ends[-1] else np.empty(ends[-1], ROW)

        n_slices = max(self.team.n_workers // len(parts), 1)  # of a part, so that more threads have one

        def join(thread: int) -> None:
            for task in range(thread, len(parts) * n_slices, self.team.n_workers):
                k, slice_ = divmod(task, n_slices)
                for to, part, first in (
                    (is_in, parts[k].is_in, self.draw.block_range(k, len(parts))[0]),
                    (self.rows, parts[k].rows, ends[k]),
                ):
                    lo, hi = (len(part) * (slice_ + edge) // n_slices for edge in (0, 1))
                    to[first + lo : first + hi] = part[lo:hi]

        self.team.run(join)  # by the calling thread it took a quarter of a millisecond for half a million rows
        return self.rows

    def draw_some(self, first: int) -> dict[int, list[DrawnRows]]:
        """Draw the bag of a round, and bags of those that follow while there are threads."""
        n_threads, draw = self.team.n_workers, self.draw
        n_parts = min(n_threads, draw.n_blocks)
        nothing = DrawnRows(np.empty(0, np.uint8), np.empty(0, ROW))
        drawn = {first + k: [nothing] * n_parts for k in range(n_threads // n_parts)}

        def work(thread: int) -> None:
            number, part = first + thread // n_parts, thread % n_parts
            if number in drawn:
                lo, hi = draw.block_range(part, n_parts)
                is_in = draw.counts(number, lo, hi).astype(np.uint8)
                rows = np.flatnonzero(is_in.view(np.bool_))  # of bytes it takes seven times as long
                drawn[number][part] = DrawnRows(is_in, (rows + lo).astype(ROW))

        self.team.run(work)
        return drawn
