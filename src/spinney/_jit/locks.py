"""Locks that threads wait for each other by from within kernels: those of Python, which need no interpreter to be held.

To wake a thread that waits in Python takes 13 us of the waker and as long again until its kernel has its arguments, and
one thread after the other holds the interpreter meanwhile. Kernels that stay where they are wake each other in 2.
A lock is a number; it is made taken, whoever waits for it takes it, and any thread opens it.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any, NamedTuple

MAKE = ctypes.CFUNCTYPE(ctypes.c_void_p)  # prototypes of our own: those of `pythonapi` are everybody's
TAKE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_longlong, ctypes.c_int)
OPEN = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class LockCalls(NamedTuple):
    """Where in memory the functions are that kernels call."""

    take: int
    open: int


@functools.cache
def lock_calls() -> LockCalls:
    """Where those of Python are."""
    return LockCalls(
        address_of(ctypes.pythonapi.PyThread_acquire_lock_timed), address_of(ctypes.pythonapi.PyThread_release_lock)
    )


def address_of(function: Any) -> int:
    """Where a function of C is."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def make_lock() -> int:
    """A lock that is taken."""
    lock = MAKE(address_of(ctypes.pythonapi.PyThread_allocate_lock))()
    if not lock:
        raise MemoryError("no lock could be made")
    take_lock(lock_calls().take, lock, 0)
    return int(lock)


def free_lock(lock: int) -> None:
    """Give a lock back that nobody waits for."""
    open_lock(lock_calls().open, lock)
    OPEN(address_of(ctypes.pythonapi.PyThread_free_lock))(lock)


def take_lock(call: int, lock: int, microseconds: int) -> int:
    """Wait until a lock is open, for so long at most, and take it; 0 if it was not open in time."""
    return int(TAKE(int(call))(int(lock), int(microseconds), 0))


def open_lock(call: int, lock: int) -> None:
    """Open a lock: one thread that waits for it goes on."""
    OPEN(int(call))(int(lock))


@functools.cache
def teach_numba() -> None:
    """Let compiled kernels call `take_lock` and `open_lock`, which are calls of the functions there."""
    from llvmlite import ir  # type: ignore[import-untyped]
    from numba.core import types
    from numba.extending import lower_builtin, type_callable

    word, number, pointer = ir.IntType(64), ir.IntType(32), ir.IntType(8).as_pointer()

    def lower_take(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(number, [pointer, word, number]).as_pointer()
        given = [builder.inttoptr(args[1], pointer), args[2], ir.Constant(number, 0)]
        return builder.sext(builder.call(builder.inttoptr(args[0], kind), given), word)

    def lower_open(context: Any, builder: Any, _signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(ir.VoidType(), [pointer]).as_pointer()
        builder.call(builder.inttoptr(args[0], kind), [builder.inttoptr(args[1], pointer)])
        return context.get_dummy_value()

    def type_take(call: Any, lock: Any, microseconds: Any) -> Any:  # noqa: ARG001  Numba knows them by their names
        return types.int64

    def type_open(call: Any, lock: Any) -> Any:  # noqa: ARG001
        return types.none

    number_of: Any = types.Integer
    type_callable(take_lock)(lambda _context: type_take)
    type_callable(open_lock)(lambda _context: type_open)
    lower_builtin(take_lock, number_of, number_of, number_of)(lower_take)
    lower_builtin(open_lock, number_of, number_of)(lower_open)
