"""Warnings at the user's line: the one that called into this package, however deep in it the reason was found."""

from __future__ import annotations

import contextlib
import contextvars
import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_PACKAGE = __name__.partition(".")[0]
_collected: contextvars.ContextVar[list[str | Warning] | None] = contextvars.ContextVar("collected", default=None)


def warn(message: str | Warning) -> None:
    """Warn of something, a `UserWarning` where it is text, at the first line up the stack that is not ours."""
    collected = _collected.get()
    if collected is not None:
        collected.append(message)
        return
    level, frame = 1, sys._getframe()  # noqa: SLF001
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == _PACKAGE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)


@contextlib.contextmanager
def collecting() -> Iterator[list[str | Warning]]:
    """Collect warnings of this package instead, to be given elsewhere: where the user's line is in another process."""
    messages: list[str | Warning] = []
    token = _collected.set(messages)
    try:
        yield messages
    finally:
        _collected.reset(token)
