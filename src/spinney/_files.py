"""Files that are whole at any moment: written beside their place, then moved there."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import shutil
import stat
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

unfinished: set[Path] = set()
"""Files and folders to be removed if the process must end without unwinding what it does."""


def remove_unfinished() -> None:
    """Remove what a process that ends at once would leave behind."""
    for path in list(unfinished):
        with contextlib.suppress(OSError):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file to write, which takes the place of `path` at the end; after an error all is as it was.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "numbers.txt"
    ...     with replacing(path) as file:
    ...         _ = file.write(b"1 2 3")
    ...     path.read_text()
    '1 2 3'
    """
    target = Path(os.path.realpath(path))  # what a link leads to is replaced, not the link
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if target.exists() and not target.is_file():
        raise ValueError(f"{path} is a pipe or a device: no file can take its place")
    temporary = target.parent / f".spinney-{secrets.token_hex(8)}.part"
    unfinished.add(temporary)
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            if target.parent not in unfinished:  # a folder that is unfinished itself may never be more
                os.fsync(file.fileno())
        with contextlib.suppress(FileNotFoundError):
            temporary.chmod(stat.S_IMODE(target.stat().st_mode))
        temporary.replace(target)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.filename == str(temporary):
            raise OSError(error.errno, error.strerror, str(path)) from None  # which the user knows
        raise
    finally:
        unfinished.discard(temporary)
