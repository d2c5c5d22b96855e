"""Folders that are being written: hidden until they are whole, and known by a lock to be those of a living process.

A folder has the name `.spinney-....part` until it is moved to its place. A process that is killed leaves it behind: the
next one that works beside it removes it, since nobody holds its lock any more. Locks are those of `flock`; where there
are none, as on Windows, nothing is removed.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from spinney import _files

if TYPE_CHECKING:
    from types import TracebackType

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

NAMES = ".spinney-*.part"


class WorkFolder:
    """A folder of this process, which goes with this object unless it is moved to its place.

    Parameters
    ----------
    parent : Path
        An existing folder; what processes that were killed have left in it is removed.
    is_private : bool
        Whether nobody else may look into it, as in a folder for temporary files.
    """

    def __init__(self, parent: Path, *, is_private: bool = False) -> None:
        clear_leftovers(parent)
        path, lock = make_folder(parent, 0o700 if is_private else 0o777)
        while not path.is_dir():  # taken for a leftover before it was locked
            remove_folder(path, lock)
            path, lock = make_folder(parent, 0o700 if is_private else 0o777)
        self.path = path
        self._end = weakref.finalize(self, remove_folder, path, lock)

    def move(self, place: Path) -> None:
        """See the files of the folder to the disk, and move it to its place, where there is none yet."""
        for path in self.path.rglob("*"):
            if path.is_file():
                with path.open("r+b", buffering=0) as file:
                    os.fsync(file.fileno())
        self.path.rename(place)
        self.path = place
        self._end()  # of the name that is there no more

    def remove(self) -> None:
        """Remove the folder, unless it has been moved."""
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()


def make_folder(parent: Path, mode: int) -> tuple[Path, int | None]:
    """A new folder, and its lock."""
    path = parent / f".spinney-{secrets.token_hex(8)}.part"
    _files.unfinished.add(path)
    try:
        path.mkdir(mode)
        return path, take_lock(path, is_patient=True)
    except BaseException:
        with contextlib.suppress(OSError):
            path.rmdir()
        _files.unfinished.discard(path)
        raise


def open_temporary() -> WorkFolder:
    """A folder among the temporary files of this user; `TMPDIR` says where."""
    return WorkFolder(Path(tempfile.gettempdir()), is_private=True)


def take_lock(path: Path, *, is_patient: bool) -> int | None:
    """Lock a folder: what to release; None where it is gone, another process has it, or there are no locks."""
    if fcntl is None:
        return None
    try:
        lock = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | (0 if is_patient else fcntl.LOCK_NB))
    except OSError:
        os.close(lock)
        return None
    return lock


def remove_folder(path: Path, lock: int | None) -> None:
    """Remove a folder and release its lock."""
    try:
        shutil.rmtree(path, ignore_errors=True)
    except BaseException:  # Ctrl-C between two files, which take a busy disk tenths of a second
        shutil.rmtree(path, ignore_errors=True)
        raise
    finally:
        _files.unfinished.discard(path)
        if lock is not None:
            with contextlib.suppress(OSError):
                os.close(lock)


def clear_leftovers(parent: Path) -> list[Path]:
    """Remove folders that were being written when their process was killed; which they were."""
    if fcntl is None:
        return []
    removed = []
    for path in parent.glob(NAMES):
        with contextlib.suppress(OSError):
            if not path.is_dir() or path.is_symlink() or path.stat().st_uid != os.geteuid():
                continue
            lock = take_lock(path, is_patient=False)
            if lock is not None:
                shutil.rmtree(path, ignore_errors=True)
                os.close(lock)
                removed.append(path)
    return removed
