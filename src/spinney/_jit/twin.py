"""The twin: the kernels interpreted, from the very files that are compiled; and handles to either.

Words: the *twin* is the package `spinney._interpreted`, made in memory, whose modules are the kernel files with
decorators that do nothing; a *handle* (`Kernels`) gives kernel modules as attributes.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import pkgutil
import sys
import time
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

from spinney._jit.process import process
from spinney._jit.whole import do_whole

if TYPE_CHECKING:
    from collections.abc import Callable

COMPILED = "spinney.kernels"
TWIN = "spinney._interpreted"


class Kernels:
    """Kernel modules as attributes, loaded when first named: `k.tree.driver.grow(...)`.

    Parameters
    ----------
    package : str
        Name of the package of kernels.
    dress : callable
        Makes of a module what outsiders see of it.
    """

    def __init__(self, package: str, dress: Callable[[ModuleType], ModuleType]) -> None:
        self._package = package
        self._dress = dress
        self._is_loaded = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked by copy, pickle, inspect: never a module
            raise AttributeError(name)
        module = importlib.import_module(f"{self._package}.{name}")
        is_folder = hasattr(module, "__path__")
        part: Any = Kernels(module.__name__, self._dress) if is_folder else self._dress(module)
        setattr(self, name, part)
        return part

    def load(self) -> Kernels:
        """Load every module, so that no thread does later; 12 ms for the twin, 40 ms for the compiled kernels."""
        if not self._is_loaded:
            do_whole(self._load_modules)
            self._is_loaded = True
        return self

    def _load_modules(self) -> None:
        for module in pkgutil.iter_modules(importlib.import_module(self._package).__path__):
            if isinstance(part := getattr(self, module.name), Kernels):
                part.load()


def _metered_doors(module: ModuleType) -> ModuleType:
    """A copy of an interpreted module for calls from outside; kernels call each other without the wrapper."""
    copy = ModuleType(module.__name__, module.__doc__)
    for name, value in vars(module).items():
        if not name.startswith("__"):
            setattr(copy, name, _metered(value) if isinstance(value, FunctionType) else value)
    return copy


def _metered(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function, quiet, whose time is noted as rent."""
    name = f"{function.__module__.removeprefix(TWIN + '.')}.{function.__qualname__}"
    run_quietly = quiet(function)

    @functools.wraps(function)
    def run(*args: Any, **options: Any) -> Any:
        start = time.perf_counter()
        try:
            return run_quietly(*args, **options)
        finally:
            process.pay(name, time.perf_counter() - start)

    return run


def quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function without NumPy's warnings: compiled arithmetic wraps and divides by zero silently."""
    import numpy as np  # late: `import spinney._jit` stays free of NumPy

    @functools.wraps(function)
    def run(*args: Any, **options: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args, **options)

    return run


_interpreted = Kernels(TWIN, _metered_doors)


def interpreted() -> Kernels:
    """The twin, whatever the size of the work; all modules are loaded."""
    if TWIN not in sys.modules:
        spec = importlib.util.find_spec(COMPILED)
        package = ModuleType(TWIN, "The kernels, interpreted.")
        package.__path__ = list(spec.submodule_search_locations or ()) if spec else []
        package.__package__ = TWIN
        sys.modules.setdefault(TWIN, package)  # atomic: threads agree on one
    return _interpreted.load()
