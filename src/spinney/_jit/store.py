"""The store: files of compiled kernels.

It stands in for Numba's own disk cache, which does not notice an edited callee in another file nor NUMBA_BOUNDSCHECK,
fails at import where nothing is writable, raises into user code on a damaged file, and keeps index and data
apart, so that two processes can mix them up. Here one directory belongs to one state of sources, versions and mode
(`cache_dir`); one file holds one compiled kernel, is moved into place whole, and is read only if its checksum
holds. No lock is waited for: neither a fork nor an exit in the middle of a compile can hang on one.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import pickle
import sys
import threading
from typing import TYPE_CHECKING, Any

from spinney._files import replacing
from spinney._jit.process import LONGEST

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_log = logging.getLogger("spinney")


class Store:
    """Compiled code of one kernel on disk, in place of `numba.core.caching.FunctionCache` in a dispatcher.

    Numba calls `load_overload` before a compile and `save_overload` after it. Whatever goes wrong on disk
    is a miss. A file is the SHA-256 of the rest (32 bytes), then a pickle of (signature, result reduced
    by Numba).
    """

    def __init__(self, function: Callable[..., Any], directory: Path | None) -> None:
        self.name = f"{function.__module__.removeprefix('spinney.kernels.')}.{function.__qualname__}"
        self._directory = directory
        self.was_known = self.name in _known_names(directory)  # for any types of arguments

    @property
    def cache_path(self) -> str | None:
        return None if self._directory is None else str(self._directory)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The stored compile result, or None: then Numba compiles, and this says so first."""
        # Numba's own cache refreshes its registries here, and loads SciPy's linear algebra with them: 0.3 s. Kernels
        # refer to the C library alone, and the compiler refreshes by itself.
        result = None
        if self._directory is not None:
            result = self._read(self._path(signature, target_context.codegen()), signature, target_context)
        if result is None:
            _announce(self._directory, is_long=self.name in LONGEST)
        return result

    def has(self, signature: Any, codegen: Any) -> bool:
        """Whether a file is there for these types of arguments."""
        return self._directory is not None and self._path(signature, codegen).exists()

    def save_overload(self, signature: Any, result: Any) -> None:
        """Store a compile result; a full disk or a lost directory only costs the next process a compile."""
        from numba.core.serialize import dumps

        if self._directory is None or result.lifted or result.library.has_dynamic_globals:
            return
        path = self._path(signature, result.codegen)
        try:
            bare = result._replace(type_annotation="")  # for `inspect_types`: two fifths of a file, and slow to print
            body = dumps((signature, bare._reduce()))  # noqa: SLF001
            self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
            with replacing(path) as file:
                file.write(hashlib.sha256(body).digest() + body)
        except Exception as error:  # noqa: BLE001
            _log.info("kernel %s could not be stored: %r", self.name, error)

    def _path(self, signature: Any, codegen: Any) -> Path:
        assert self._directory is not None
        # The triple, CPU name and CPU features are in the name: a home shared by unlike machines is safe.
        key = hashlib.sha256(repr((str(signature), _machine(codegen))).encode()).hexdigest()[:20]
        return self._directory / f"{self.name}-{key}.kernel"

    def _read(self, path: Path, signature: Any, target_context: Any) -> Any:
        from numba.core.compiler import CompileResult

        try:
            content = path.read_bytes()
        except OSError:
            return None
        try:
            body = memoryview(content)[32:]
            # A flipped bit in machine code would crash the process: nothing is unpickled before this test.
            if hashlib.sha256(body).digest() == content[:32]:
                stored_signature, reduced = pickle.loads(body)  # noqa: S301  (a private directory, see below)
                if stored_signature == signature:
                    return CompileResult._rebuild(target_context, *reduced)  # noqa: SLF001
            _log.info("stored kernel %s is damaged: compiling again", path)
        except Exception as error:  # noqa: BLE001
            _log.info("stored kernel %s cannot be used (%r): compiling again", path, error)
        with contextlib.suppress(OSError):
            path.unlink()
        return None

    def flush(self) -> None:
        """Forget every stored signature of this kernel (Numba calls it from `recompile`)."""
        if self._directory is not None:
            for path in self._directory.glob(f"{self.name}-*.kernel"):
                path.unlink(missing_ok=True)

    def enable(self) -> None:
        """Part of the interface; the store is always on."""

    def disable(self) -> None:
        """Part of the interface; the store is always on."""


@functools.cache
def _known_names(directory: Path | None) -> frozenset[str]:
    """Doors of which something is stored when this process first asks."""
    files = [] if directory is None else directory.glob("*.kernel")
    return frozenset(path.name.rpartition("-")[0] for path in files)


@functools.cache
def _machine(codegen: Any) -> Any:
    """Triple, CPU name and CPU features; Numba takes 0.2 ms to tell."""
    return codegen.magic_tuple()


_announcement = threading.Lock()  # taken once, without waiting, and never given back


def _announce(directory: Path | None, *, is_long: bool = False) -> None:
    """Say when a compile really begins why it waits: once in a process, and again for each that takes long."""
    is_first = _announcement.acquire(blocking=False)
    if not (is_first or is_long) or sys.stderr is None:
        return
    kept = "once for this machine" if directory else "for this process only: no cache directory is writable"
    wait = "some ten seconds (`spinney warmup` does all at once)" if is_long else "a few seconds"
    with contextlib.suppress(OSError, ValueError):
        print(f"spinney: compiling kernels {kept}, {wait} ...", file=sys.stderr, flush=True)  # noqa: T201
