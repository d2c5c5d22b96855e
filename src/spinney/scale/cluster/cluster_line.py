"""A line on the terminal while a cluster works: what is done, by how many workers, and what was lost."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from spinney.scale.reading_line import WIPE, ReadingLine

if TYPE_CHECKING:
    from spinney.scale.cluster.engine import Engine

REDRAW_SECONDS = 0.5


class ClusterLine(ReadingLine):
    """Trees so far, on stderr if that is a terminal; drawn after a second, and wiped at the end.

    Parameters
    ----------
    engine : Engine
    n_trees : int or None
        None: one worker does all, and what it has done is known at the end.
    n_rows : int
        That each tree is grown of.
    is_eager : bool
        Draw from the beginning.
    """

    def __init__(self, engine: Engine, n_trees: int | None, n_rows: int, *, is_eager: bool) -> None:
        super().__init__(n_rows)
        self.engine, self.n_trees, self.n_done, self.n_each = engine, n_trees, 0, n_rows
        self.n_before: int | None = None  # trees of a checkpoint, which took no time here
        if is_eager and self.due < float("inf"):
            self.due = self.begun

    def show(self, n_done: int | None = None) -> None:
        """Draw, if it is time to; n_done: None where nothing new is done."""
        self.n_done = self.n_done if n_done is None else n_done
        if self.n_before is None:
            self.n_before = self.n_done
        now = time.monotonic()
        if now < self.due:
            return
        self.due, self.is_drawn = now + REDRAW_SECONDS, True
        self.draw(WIPE + self.describe(now - self.begun))

    def describe(self, seconds: float) -> str:
        """The line after so many seconds."""
        engine = self.engine
        workers = f"workers {engine.n_now}/{engine.n_most}" + (f", lost {engine.n_lost}" if engine.n_lost else "")
        if self.n_trees is None:
            return f"fitting {self.n_each:,} rows at one worker: {workers}, {seconds:,.0f} s"
        text = f"growing: {self.n_done} of {self.n_trees} trees, {workers}"
        n_grown = self.n_done - (self.n_before or 0)
        if n_grown > 0:
            text += f", {self.n_each * n_grown / max(seconds, 1e-9):,.0f} rows/s"
            if self.n_done < self.n_trees:
                text += f", {seconds * (self.n_trees - self.n_done) / n_grown:,.0f} s left"
        return text
