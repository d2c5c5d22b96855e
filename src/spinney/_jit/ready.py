"""Doors for small work in a process that has compiled kernels: compiled where that is ready, else interpreted.

Words: a *variant* of a door is its machine code for one combination of argument types. It is *ready* if it is in this
process or in the store. Rent, then buy: a door that has taken as long interpreted as its compiling takes is compiled.

A call of a ready variant costs 0.14 us more than it always does: Numba's dispatcher, in C, finds the variant by itself.
Only where it finds none does it ask `_compile_for_args` what to call, and is told the twin's door.
"""

from __future__ import annotations

import functools
import operator
import threading
from types import ModuleType
from typing import TYPE_CHECKING, Any

from spinney._jit.process import process
from spinney._jit.store import Store
from spinney._jit.twin import interpreted

if TYPE_CHECKING:
    from collections.abc import Callable


class _Call(threading.local):
    is_small = False


_call = _Call()  # of this thread, under way


def serve_small_work(dispatcher: Any, store: Store) -> None:
    """Let a door's dispatcher answer small work by the twin where nothing is ready."""
    compile_for = getattr(dispatcher, "_compile_for_args", None)
    if compile_for is None:  # another Numba: small work waits
        return

    def is_stored(args: tuple[Any, ...]) -> bool:
        # typing a driver's arguments takes longer than the smallest trees: not done where nothing was stored
        return store.was_known and store.has(tuple(map(dispatcher.typeof_pyval, args)), dispatcher.targetctx.codegen())

    def choose(*args: Any, **options: Any) -> Callable[..., Any]:
        if _call.is_small and not process.has_paid(store.name) and not is_stored(args):
            return operator.attrgetter(store.name)(interpreted())
        process.buy(store.name)
        return compile_for(*args, **options)

    dispatcher._compile_for_args = choose  # noqa: SLF001


def ready_doors(module: ModuleType) -> ModuleType:
    """A copy of a compiled module whose doors do not wait for the compiler."""
    copy = ModuleType(module.__name__, module.__doc__)
    for name, value in vars(module).items():
        if not name.startswith("__"):
            setattr(copy, name, _hurried(value) if _store_of(value) is not None else value)
    return copy


def _hurried(dispatcher: Any) -> Callable[..., Any]:
    @functools.wraps(dispatcher.py_func)
    def run(*args: Any) -> Any:
        _call.is_small = True
        try:
            return dispatcher(*args)
        finally:
            _call.is_small = False

    run.dispatcher = dispatcher  # type: ignore[attr-defined]
    return run


def is_compiled(door: Any) -> bool:
    """Whether a door of a handle runs compiled; for small work: as far as one variant of it tells."""
    if (dispatcher := getattr(door, "dispatcher", None)) is None:
        return _store_of(door) is not None
    store = _store_of(dispatcher)
    return bool(dispatcher.overloads) or (store is not None and store.was_known)


def _store_of(value: Any) -> Store | None:
    store = getattr(value, "_cache", None)
    return store if isinstance(store, Store) else None
