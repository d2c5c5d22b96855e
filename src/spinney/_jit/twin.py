"""The twin: the kernels interpreted, from the very files that are compiled; and handles to either.

Words: the *twin* is the package `spinney._interpreted`, made in memory, whose modules are the kernel files with
decorators that do nothing; a *handle* (`Kernels`) gives kernel modules as attributes.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import sys
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

COMPILED = "spinney.kernels"
TWIN = "spinney._interpreted"


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
        elif self._package.startswith(TWIN):
            door = quiet_doors(module)
        setattr(self, name, door)
        return door


def quiet_doors(module: ModuleType) -> ModuleType:
    """A copy of an interpreted module for calls from outside; kernels call each other without the wrapper."""
    door = ModuleType(module.__name__, module.__doc__)
    for name, value in vars(module).items():
        if not name.startswith("__"):
            setattr(door, name, quiet(value) if isinstance(value, FunctionType) else value)
    return door


def quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function without NumPy's warnings: compiled arithmetic wraps and divides by zero silently."""
    import numpy as np  # late: `import spinney._jit` stays free of NumPy

    @functools.wraps(function)
    def run(*args: Any, **options: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*args, **options)

    return run


_interpreted = Kernels(TWIN)


def interpreted() -> Kernels:
    """The twin, whatever the size of the work."""
    if TWIN not in sys.modules:
        spec = importlib.util.find_spec(COMPILED)
        package = ModuleType(TWIN, "The kernels, interpreted.")
        package.__path__ = list(spec.submodule_search_locations or ()) if spec else []
        package.__package__ = TWIN
        sys.modules.setdefault(TWIN, package)  # atomic: threads agree on one
    return _interpreted
