"""How kernels are run: compiled by Numba and kept on disk, or interpreted from the same source.

Words: a *kernel* is a function of `spinney.kernels`, marked by `kernel`, `inlined` or `door`; the *twin* is the package
`spinney._interpreted`, made in memory, whose modules are the very kernel files with `kernel` doing nothing.

Where a call goes (`kernels`):

    small work, nothing compiled loaded yet ──► twin: starts at once, Numba is never imported
    everything else                         ──► compiled: read from the store, else compiled and stored

`numba.config` is never changed, so other libraries in the process notice nothing.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import logging
import os
import pkgutil
import sys
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from spinney._jit.cache_dir import cache_directory
from spinney._jit.inner_compiler import inner_options, widen_literals
from spinney._jit.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    F = TypeVar("F", bound=Callable[..., Any])

__all__ = [
    "COMPILE_SECONDS",
    "LOAD_SECONDS",
    "Kernels",
    "cache_directory",
    "door",
    "fixed",
    "inlined",
    "interpreted",
    "kernel",
    "kernels",
    "load_compiled",
]

LOAD_SECONDS = 0.7
"""What compiled kernels cost a process even when stored: measured, import 0.32 s and first kernel 0.39 s."""

COMPILE_SECONDS = 8.0
"""What compiling a method's kernels costs, once for a machine; see benchmarks/startup.py."""

_COMPILED = "spinney.kernels"
_TWIN = "spinney._interpreted"
_IS_JIT_DISABLED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in {"", "0"}

_log = logging.getLogger("spinney")
_log.addHandler(logging.NullHandler())


# --- The decorator ------------------------------------------------------------------------------------------


def kernel(function: F) -> F:
    """Mark a kernel that other kernels call.

    It is compiled into its callers, runs without the GIL, divides as NumPy does, and uses neither fast math nor
    threads. A file of kernels has no decorator but this, `inlined` and `door`; kernels call each other directly.
    """
    return _compile(function, is_door=False)


def inlined(function: F) -> F:
    """Mark a kernel whose body replaces its call, for one called per feature or row: a call passes a hundred words."""
    return _compile(function, is_door=False, is_inlined=True)


def door(function: F) -> F:
    """Mark a kernel that Python calls: it is compiled at its first call, with all it calls, and kept in the store."""
    return _compile(function, is_door=True)


def _compile(function: F, *, is_door: bool, is_inlined: bool = False) -> F:
    if function.__module__.startswith(_TWIN):
        return function
    if _IS_JIT_DISABLED:
        return cast("F", _quiet(function)) if is_door else function
    global _is_compiled_loaded  # noqa: PLW0603
    import numba  # 0.3 s: paid only by processes that use compiled kernels

    _is_compiled_loaded = True
    # without Numba's memory manager: kernels allocate nothing, and its reference counts took a third of a scan's time
    dispatcher = numba.njit(
        nogil=True, error_model="numpy", _nrt=False, forceinline=is_inlined, **({} if is_door else inner_options())
    )(function)
    if numba.extending.is_jitted(dispatcher):  # else a .numba_config.yaml has disabled the JIT
        if is_door:
            dispatcher._cache = Store(function, cache_directory())  # noqa: SLF001
        widen_literals(dispatcher)
    return cast("F", dispatcher)


def _quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function without NumPy's warnings: compiled arithmetic wraps and divides by zero silently."""
    import numpy as np  # late: `import spinney._jit` stays free of NumPy

    @functools.wraps(function)
    def run(*args: Any, **options: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args, **options)

    return run


# --- The doors to the kernels -------------------------------------------------------------------------------


class Kernels:
    """Kernel modules as attributes, loaded when first named: `k.tree.driver.grow(...)`."""

    def __init__(self, package: str) -> None:
        self._package = package

    def path(self) -> list[str]:
        """Folders of this package."""
        return list(importlib.import_module(self._package).__path__)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked by copy, pickle, inspect: never a module
            raise AttributeError(name)
        module = importlib.import_module(f"{self._package}.{name}")
        door: Any = module
        if hasattr(module, "__path__"):
            door = Kernels(module.__name__)
        elif self._package.startswith(_TWIN):
            door = _quiet_door(module)
        setattr(self, name, door)
        return door


def _quiet_door(module: ModuleType) -> ModuleType:
    """A copy of an interpreted module for calls from outside; kernels call each other without the wrapper."""
    door = ModuleType(module.__name__, module.__doc__)
    for name, value in vars(module).items():
        if not name.startswith("__"):
            setattr(door, name, _quiet(value) if isinstance(value, FunctionType) else value)
    return door


_compiled = Kernels(_COMPILED)
_interpreted = Kernels(_TWIN)
_is_compiled_loaded = False
_seconds_interpreted = 0.0  # work given to the twin so far; a lost update between threads would do no harm


def kernels(interpreted_seconds: float) -> Kernels:
    """The kernels for work that would take about `interpreted_seconds` interpreted.

    Results are the same either way. Small work goes to the twin until this process has spent there what the
    compiled kernels would have cost it (rent, then buy: as far as the estimates hold, at most twice the
    best). Once compiled kernels are loaded they do everything.
    """
    global _seconds_interpreted  # noqa: PLW0603
    if _IS_JIT_DISABLED:
        return interpreted()
    if _is_compiled_loaded or interpreted_seconds >= LOAD_SECONDS:
        return _compiled
    _seconds_interpreted += interpreted_seconds
    if _seconds_interpreted >= LOAD_SECONDS and _seconds_interpreted >= _price():
        return _compiled
    return interpreted()


def fixed(x: NDArray[Any]) -> NDArray[Any]:
    """A plain read-only view for a kernel that only reads: it is compiled per type, and some arrays are read-only."""
    import numpy as np

    view = x.view(np.ndarray)
    view.flags.writeable = False
    return view


def interpreted() -> Kernels:
    """The twin, whatever the size of the work."""
    if _TWIN not in sys.modules:
        spec = importlib.util.find_spec(_COMPILED)
        package = ModuleType(_TWIN, "The kernels, interpreted.")
        package.__path__ = list(spec.submodule_search_locations or ()) if spec else []
        package.__package__ = _TWIN
        sys.modules.setdefault(_TWIN, package)  # atomic: threads agree on one
    return _interpreted


def load_compiled() -> Kernels:
    """Load every compiled kernel module, so that this process uses them for everything from now on."""
    if _IS_JIT_DISABLED:
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
