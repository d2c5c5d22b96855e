"""Signals and imports: an exception from a signal handler must not come in the middle of an import.

The import system takes a lock for each module and one for all. An exception that a signal handler raises between taking
one and the `try` that gives it back leaves it taken, and other threads then wait for it without end. Worse, Python
prints and drops an exception that is raised in one of the import system's callbacks: the signal is lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

IMPORTING = "<frozen importlib._bootstrap"  # how the file names of both modules of the import system begin


def is_importing(frame: FrameType | None) -> bool:
    """Whether an import is under way in this frame, or in one of those that called it.

    Examples
    --------
    >>> import sys
    >>> is_importing(sys._getframe())
    False
    """
    while frame is not None:
        if frame.f_code.co_filename.startswith(IMPORTING):
            return True
        frame = frame.f_back
    return False
