"""Time that may be spent, and an alarm for the fit that would spend more."""

from __future__ import annotations

import contextlib
import re
import signal
import threading
import time
from typing import TYPE_CHECKING

from spinney._signals import is_importing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

RETRY_SECONDS = 0.02  # until an import is over

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


class Clock:
    """Seconds since the start, and how many are left of a budget (None: without end)."""

    def __init__(self, budget: float | None = None, start: float | None = None) -> None:
        self.budget = budget
        self.start = time.perf_counter() if start is None else start
        self._spared = [0.0]  # seconds that do not count, for this clock and its parts

    @property
    def seconds(self) -> float:
        """Seconds since the start, without those that were spared."""
        return time.perf_counter() - self.start - self._spared[0]

    @property
    def left(self) -> float:
        """Seconds left; infinite without a budget."""
        return float("inf") if self.budget is None else self.budget - self.seconds

    def share(self, part: float) -> Clock:
        """A clock that has begun with this one, for a part of its budget."""
        return self._until(None if self.budget is None else part * self.budget)

    def part(self, seconds: float) -> Clock:
        """A clock for so many seconds from now, and for no more than are left."""
        return self._until(self.seconds + min(seconds, self.left))

    def spare(self, seconds: float) -> None:
        """Do not count so many seconds of those that have gone by; nor do clocks that are parts of this one."""
        self._spared[0] += max(seconds, 0.0)

    def _until(self, budget: float | None) -> Clock:
        part = Clock(budget, self.start)
        part._spared = self._spared
        return part

    @contextlib.contextmanager
    def alarm(self) -> Iterator[None]:
        """Raise KeyboardInterrupt in what is run here once the budget is spent, where the system has such alarms.

        Fits end cleanly by it, as by Ctrl-C. A `left` above 0 means that it was Ctrl-C.
        """
        is_main = threading.current_thread() is threading.main_thread()
        if self.budget is None or not is_main or not hasattr(signal, "setitimer"):
            yield
            return

        def ring(_signal: int, frame: FrameType | None) -> None:
            if is_importing(frame):
                signal.setitimer(signal.ITIMER_REAL, RETRY_SECONDS)
                return
            raise KeyboardInterrupt

        old = signal.signal(signal.SIGALRM, ring)
        signal.setitimer(signal.ITIMER_REAL, max(self.left, 0.001))
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            signal.signal(signal.SIGALRM, old)


def read_duration(text: str) -> float:
    """Seconds of a duration such as "60", "60s", "5m" or "1.5h".

    Examples
    --------
    >>> read_duration("5m")
    300.0
    """
    match = re.fullmatch(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-z]*)\s*", text.lower())
    if match is None or match[2] not in _UNITS or float(match[1]) == 0.0:
        raise ValueError(f"{text!r} is no duration: write 60s, 5m or 1.5h")
    return float(match[1]) * _UNITS[match[2]]
