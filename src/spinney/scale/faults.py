"""Errors of disks in one line: which file, what is wrong, what to do."""

from __future__ import annotations

import contextlib
import errno
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC), getattr(errno, "EFBIG", errno.ENOSPC)}
BARRED = {errno.EACCES, errno.EPERM, errno.EROFS}


@contextlib.contextmanager
def writing(folder: Path, remedy: str) -> Iterator[None]:
    """Say where there was no space or no right to write; remedy: what else can be done."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise OSError(error.errno, f"no space left to write {folder}: free some, or {remedy}") from error
        if error.errno in BARRED:
            raise OSError(error.errno, f"{folder} cannot be written to: {remedy}") from error
        raise
