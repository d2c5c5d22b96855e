"""Which kernels do a piece of work. Results are the same whichever do.

    large work                                         ──► compiled: read from the store, else compiled and stored
    small work, no compiled kernels in this process    ──► twin: starts at once, Numba is never imported
    small work beside compiled kernels                 ──► ready: compiled if at hand, else the twin (`ready.py`)

Rent, then buy: a process that has spent on the twin what loading costs loads the compiled kernels, and a door that has
taken as long interpreted as it takes to compile is compiled. So ten thousand tiny fits do not crawl, and a process
waits about as long as it has computed, at most; see docs/decisions/0016.
"""

from __future__ import annotations

import os

from spinney._jit.cache_dir import cache_directory
from spinney._jit.process import COMPILE_SECONDS, process
from spinney._jit.ready import ready_doors
from spinney._jit.twin import COMPILED, Kernels, interpreted

SMALL_SECONDS = 0.7
"""Work that takes less interpreted waits for no compiler, unless many such works have paid for it."""

LOAD_SECONDS = 0.4
"""What compiled kernels cost a process even when stored: measured, Numba 0.19 to 0.32 s, modules 0.04, doors 0.1."""

IS_JIT_DISABLED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in {"", "0"}

_compiled = Kernels(COMPILED, lambda module: module)
_ready = Kernels(COMPILED, ready_doors)


def kernels(interpreted_seconds: float) -> Kernels:
    """The kernels for work that would take about `interpreted_seconds` interpreted; all modules are loaded."""
    if process.waits_always or interpreted_seconds >= SMALL_SECONDS:
        return compiled()
    if IS_JIT_DISABLED:
        return interpreted()
    if process.is_compiled_loaded or (process.rent >= LOAD_SECONDS and process.rent >= _price()):
        interpreted()  # loads it here: a door that is not ready asks for it, perhaps in a thread
        return _ready.load()
    return interpreted()


def compiled() -> Kernels:
    """The compiled kernels, whatever the size of the work: they wait for the compiler where nothing is stored."""
    return interpreted() if IS_JIT_DISABLED else _compiled.load()


def load_compiled() -> Kernels:
    """The compiled kernels, for all that this process does from now on, small work too: to compile, test or measure."""
    process.waits_always = True
    return compiled()


def _price() -> float:
    directory = cache_directory()
    is_stored = directory is not None and any(directory.glob("*.kernel"))
    return LOAD_SECONDS if is_stored else COMPILE_SECONDS
