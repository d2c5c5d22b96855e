"""Where compiled kernels are kept: one directory for one state of sources, versions and mode.

Words: the *state* is a hash of all that the machine code depends on beyond its signature and the CPU, which are in the
names of the files. A directory that no process has opened for a month is removed.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import logging
import os
import shutil
import stat
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.resources.abc import Traversable

UNUSED_SECONDS = 30 * 24 * 3600.0
# Settings that change the machine code without changing the signature or the CPU.
MODES = ("NUMBA_BOUNDSCHECK", "NUMBA_DEBUGINFO", "NUMBA_OPT", "NUMBA_LOOP_VECTORIZE", "NUMBA_SLP_VECTORIZE")
FOLDERS = ("_jit", "kernels")  # of sources; beside them one file
TYPES = "_types.py"

_log = logging.getLogger("spinney")


@functools.cache
def cache_directory() -> Path | None:
    """The directory of this state of sources, versions and mode; None where nothing is writable."""
    name = f"kernels-{_state()}"
    for base in _bases():
        directory = base / name
        with contextlib.suppress(OSError):
            is_new = not directory.exists()
            directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Writing is the only honest test; it also dates the directory, which `_prune` looks at.
            with tempfile.NamedTemporaryFile(dir=directory, suffix=".part") as probe:
                probe.write(b"spinney")
                probe.flush()
            if is_new:
                _prune(base, keep=directory)
            return directory
    _log.warning("no cache directory is writable: kernels are compiled in every process (set SPINNEY_CACHE_DIR)")
    return None


def _state() -> str:
    """Hash of everything the machine code depends on, beyond signature and CPU."""
    from importlib.resources import files  # reads sources from a zip as well

    root = files("spinney")
    sources = {TYPES: root / TYPES}
    for folder in FOLDERS:
        sources |= dict(_files_below(root / folder, folder))
    digest = hashlib.sha256()
    for name, source in sorted(sources.items()):
        if name.endswith((".py", ".pyc")):
            digest.update(f"{name}\n".encode() + source.read_bytes())
    versions = [f"{name} {_version(name)}" for name in ("numba", "llvmlite", "numpy")]
    modes = [f"{name}={os.environ.get(name, '')}" for name in MODES]
    digest.update("\n".join([sys.version, sys.platform, *versions, *modes]).encode())
    return digest.hexdigest()[:20]


def _files_below(folder: Traversable, name: str) -> Iterator[tuple[str, Traversable]]:
    """Every file below a folder, with its path from there on; not what Python itself keeps there and may add to."""
    for entry in folder.iterdir():
        path = f"{name}/{entry.name}"
        if entry.name == "__pycache__":
            continue
        if entry.is_dir():
            yield from _files_below(entry, path)
        else:
            yield path, entry


def _version(name: str) -> str:
    """An installed version without importing the library."""
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:  # a frozen application carries no metadata
        return str(importlib.import_module(name).__version__)


def _bases() -> Iterator[Path]:
    """Places to try, in order."""
    if chosen := os.environ.get("SPINNEY_CACHE_DIR"):
        yield Path(chosen)
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen) / "spinney"
    with contextlib.suppress(RuntimeError):  # no home directory
        yield _user_cache() / "spinney"
    with contextlib.suppress(OSError):  # no temporary directory, or somebody else's
        yield _private_temporary()


def _user_cache() -> Path:
    if chosen := os.environ.get("XDG_CACHE_HOME"):
        return Path(chosen)
    if sys.platform == "win32" and (local := os.environ.get("LOCALAPPDATA")):
        return Path(local)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path.home() / ".cache"


def _private_temporary() -> Path:
    """A directory only this user can write to: the store is unpickled, and others write beside it."""
    if not hasattr(os, "getuid"):
        return Path(tempfile.gettempdir()) / "spinney"  # Windows: the temporary directory is the user's own
    path = Path(tempfile.gettempdir()) / f"spinney-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    status = path.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise PermissionError(path)
    return path


def _prune(base: Path, keep: Path) -> None:
    """Remove the directories of states that no process has opened for a month."""
    for other in base.glob("kernels-*"):
        with contextlib.suppress(OSError):
            if other != keep and time.time() - other.stat().st_mtime > UNUSED_SECONDS:
                shutil.rmtree(other, ignore_errors=True)
