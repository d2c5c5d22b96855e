"""The three decorators of kernels: `kernel`, `inlined` and `door`; see docs/decisions/0005.

Words: a *kernel* is a function of `spinney.kernels`; a *door* is one that Python calls. `numba.config` is never
changed, so other libraries in the process notice nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from spinney._jit.cache_dir import cache_directory
from spinney._jit.choice import IS_JIT_DISABLED
from spinney._jit.inner_compiler import door_options, inner_options, widen_literals
from spinney._jit.locks import teach_numba
from spinney._jit.process import process
from spinney._jit.ready import serve_small_work
from spinney._jit.store import Store
from spinney._jit.twin import TWIN, quiet

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    F = TypeVar("F", bound=Callable[..., Any])


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
    if function.__module__.startswith(TWIN):
        return function
    if IS_JIT_DISABLED:
        return cast("F", quiet(function)) if is_door else function
    import numba  # 0.3 s: paid only by processes that use compiled kernels

    process.is_compiled_loaded = True
    teach_numba()
    # without Numba's memory manager: kernels allocate nothing, and its reference counts took a third of a scan's time
    options = door_options() if is_door else inner_options()
    dispatcher = numba.njit(nogil=True, error_model="numpy", _nrt=False, forceinline=is_inlined, **options)(function)
    if numba.extending.is_jitted(dispatcher):  # else a .numba_config.yaml has disabled the JIT
        if is_door:
            dispatcher._cache = store = Store(function, cache_directory())  # noqa: SLF001
            serve_small_work(dispatcher, store)
        widen_literals(dispatcher)
    return cast("F", dispatcher)


def fixed(x: NDArray[Any]) -> NDArray[Any]:
    """A plain read-only view for a kernel that only reads: it is compiled per type, and some arrays are read-only."""
    import numpy as np

    view = x.view(np.ndarray)
    view.flags.writeable = False
    return view
