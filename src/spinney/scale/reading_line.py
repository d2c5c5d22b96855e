"""A line on the terminal while a table is read: how many rows, how fast. Nothing where there is no terminal."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING, Self

from spinney._threads import PROGRESS_SECONDS, REFRESH_SECONDS, has_terminal

if TYPE_CHECKING:
    from types import TracebackType

WIPE = "\r\x1b[K"


class ReadingLine:
    """Rows read so far, on stderr if that is a terminal; drawn after a second, and wiped at the end.

    Parameters
    ----------
    n_rows : int, optional
        Rows that there are; None where only reading tells.
    """

    def __init__(self, n_rows: int | None) -> None:
        self.n_rows = n_rows
        self.begun = time.monotonic()
        self.due = self.begun + PROGRESS_SECONDS if has_terminal() else float("inf")
        self.is_drawn = False

    def __enter__(self) -> Self:
        return self

    def show(self, n_read: int) -> None:
        """Draw, if it is time to."""
        now = time.monotonic()
        if now < self.due:
            return
        self.due, self.is_drawn = now + REFRESH_SECONDS, True
        share = "" if self.n_rows is None else f" of {self.n_rows:,}"
        speed = n_read / max(now - self.begun, 1e-9)
        self.draw(f"{WIPE}reading: {n_read:,}{share} rows, {speed:,.0f} rows/s")

    def draw(self, text: str) -> None:
        """Write to the terminal, if it is still there."""
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text)
            sys.stderr.flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.is_drawn:
            self.draw(WIPE)
