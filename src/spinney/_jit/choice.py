"""Which kernels do a piece of work: the twin, or the compiled ones.

    small work, nothing compiled loaded yet ──► twin: starts at once, Numba is never imported
    everything else                         ──► compiled: read from the store, else compiled and stored

Results are the same either way.
"""

from __future__ import annotations

import os
import pkgutil

from spinney._jit.cache_dir import cache_directory
from spinney._jit.twin import COMPILED, Kernels, interpreted

LOAD_SECONDS = 0.7
"""What compiled kernels cost a process even when stored: measured, import 0.32 s and first kernel 0.39 s."""

COMPILE_SECONDS = 8.0
"""What compiling a method's kernels costs, once for a machine; see benchmarks/startup.py."""

IS_JIT_DISABLED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in {"", "0"}

_compiled = Kernels(COMPILED)


class Process:
    """What this process has loaded and spent; the only state of the choice."""

    is_compiled_loaded = False
    seconds_interpreted = 0.0  # work given to the twin so far; a lost update between threads would do no harm


process = Process()


def kernels(interpreted_seconds: float) -> Kernels:
    """The kernels for work that would take about `interpreted_seconds` interpreted.

    Results are the same either way. Small work goes to the twin until this process has spent there what the
    compiled kernels would have cost it (rent, then buy: as far as the estimates hold, at most twice the
    best). Once compiled kernels are loaded they do everything.
    """
    if IS_JIT_DISABLED:
        return interpreted()
    if process.is_compiled_loaded or interpreted_seconds >= LOAD_SECONDS:
        return _compiled
    process.seconds_interpreted += interpreted_seconds
    if process.seconds_interpreted >= LOAD_SECONDS and process.seconds_interpreted >= _price():
        return _compiled
    return interpreted()


def load_compiled() -> Kernels:
    """Load every compiled kernel module, so that this process uses them for everything from now on."""
    if IS_JIT_DISABLED:
        return interpreted()
    _load(_compiled)
    return _compiled


def _load(package: Kernels) -> None:
    for module in pkgutil.iter_modules(package.path()):
        if isinstance(part := getattr(package, module.name), Kernels):
            _load(part)


def _price() -> float:
    directory = cache_directory()
    is_stored = directory is not None and any(directory.glob("*.kernel"))
    return LOAD_SECONDS if is_stored else COMPILE_SECONDS
