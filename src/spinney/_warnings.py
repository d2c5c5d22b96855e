"""Warnings at the user's line: the one that called into this package, however deep in it the reason was found."""

from __future__ import annotations

import sys
import warnings

_PACKAGE = __name__.partition(".")[0]


def warn(message: str | Warning) -> None:
    """Warn of something, a `UserWarning` where it is text, at the first line up the stack that is not ours."""
    level, frame = 1, sys._getframe()  # noqa: SLF001
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == _PACKAGE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, stacklevel=level)
