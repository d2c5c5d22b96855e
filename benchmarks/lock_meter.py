"""Virtual time of threads that wait for each other within kernels: each would have a processor of its own.

A thread's virtual time is its CPU time, but that who takes a lock goes on no earlier than it was opened. The functions
that kernels call for locks (`spinney._jit.locks`) are wrapped in compiled ones that keep these times.
"""

from __future__ import annotations

import ctypes
import gc
import threading
import time
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

MOST_THREADS, PLACES = 64, 1024  # places: of locks, by where they are
CPU_TIME = 3  # Linux's CLOCK_THREAD_CPUTIME_ID


class Times:
    """What the wrapped functions read and write."""

    def __init__(self) -> None:
        self.names = np.zeros(MOST_THREADS, np.int64)  # of the threads under way
        self.ahead = np.zeros(MOST_THREADS, np.int64)  # nanoseconds of virtual time, less CPU time of the thread
        self.locks = np.zeros((PLACES, 2), np.int64)  # of each lock: itself, and when it was opened
        self.now = np.zeros((MOST_THREADS, 8), np.int64)  # room for a clock, by thread
        self.cost = np.zeros(1, np.int64)  # nanoseconds that it takes to note a time
        self.arrays: list[NDArray[np.int64]] = [self.names, self.ahead, self.locks, self.now, self.cost]

    def begin(self, slot: int) -> None:
        """The calling thread begins, at the virtual time 0."""
        self.ahead[slot] = -time.thread_time_ns()
        self.names[slot] = threading.get_ident()

    def seconds(self, slot: int) -> float:
        """The virtual time of the calling thread."""
        return float(self.ahead[slot] + time.thread_time_ns()) * 1e-9


def wrap(times: Times, take_at: int, open_at: int) -> tuple[Any, Any]:  # noqa: C901  small functions, all compiled
    """The functions for locks at these addresses, wrapped, as compiled callbacks."""
    from numba import carray, cfunc, njit, types
    from numba.extending import intrinsic

    @intrinsic
    def as_pointer(_context: Any, address: Any) -> Any:
        def lower(_context: Any, builder: Any, _signature: Any, args: Any) -> Any:
            from llvmlite import ir

            return builder.inttoptr(args[0], ir.IntType(8).as_pointer())

        return types.voidptr(address), lower

    take = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_longlong, ctypes.c_int)(take_at)
    release = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(open_at)
    libc = ctypes.CDLL(None)
    clock, self_of = libc.clock_gettime, libc.pthread_self
    clock.argtypes, clock.restype = [ctypes.c_int, ctypes.c_void_p], ctypes.c_int
    self_of.argtypes, self_of.restype = [], ctypes.c_longlong
    names_at, ahead_at, locks_at, now_at, cost_at = (array.ctypes.data for array in times.arrays)

    @njit(nogil=True)
    def slot_of_thread() -> int:
        name = self_of()
        names = carray(as_pointer(np.int64(names_at)), (MOST_THREADS,), np.int64)
        for slot in range(MOST_THREADS):
            if names[slot] == name:
                return slot
        return -1

    @njit(nogil=True)
    def cpu_time(slot: int) -> int:
        now = carray(as_pointer(np.int64(now_at + 64 * slot)), (2,), np.int64)
        clock(CPU_TIME, as_pointer(np.int64(now_at + 64 * slot)))
        return now[0] * 1_000_000_000 + now[1]

    @njit(nogil=True)
    def place_of(lock: int) -> int:
        locks = carray(as_pointer(np.int64(locks_at)), (PLACES, 2), np.int64)
        place = (lock >> 5) % PLACES
        while locks[place, 0] != lock and locks[place, 0] != 0:
            place = (place + 1) % PLACES
        locks[place, 0] = lock
        return place

    @njit(nogil=True)
    def cost() -> int:
        return carray(as_pointer(np.int64(cost_at)), (1,), np.int64)[0]

    @njit(nogil=True)
    def note(n: int) -> int:
        total = np.int64(0)
        for k in range(n):
            total += cpu_time(slot_of_thread() + 1 + k % 2) + place_of(np.int64(32))
        return total

    @cfunc(types.int32(types.int64, types.int64, types.int32))
    def take_lock(lock: int, microseconds: int, flag: int) -> int:
        answer = take(as_pointer(lock), microseconds, flag)
        slot = slot_of_thread()
        if answer == 1 and slot >= 0:
            ahead = carray(as_pointer(np.int64(ahead_at)), (MOST_THREADS,), np.int64)
            opened = carray(as_pointer(np.int64(locks_at)), (PLACES, 2), np.int64)[place_of(lock), 1]
            ahead[slot] = max(ahead[slot] - cost(), opened - cpu_time(slot))
        return answer

    @cfunc(types.void(types.int64))
    def open_lock(lock: int) -> None:
        slot = slot_of_thread()
        if slot >= 0:
            ahead = carray(as_pointer(np.int64(ahead_at)), (MOST_THREADS,), np.int64)
            carray(as_pointer(np.int64(locks_at)), (PLACES, 2), np.int64)[place_of(lock), 1] = (
                cpu_time(slot) + ahead[slot]
            )
            ahead[slot] -= cost()
        release(as_pointer(lock))

    note(1)
    n = 20_000
    start = time.thread_time_ns()
    note(n)
    times.cost[0] = (time.thread_time_ns() - start) // n
    times.locks[:] = 0
    return take_lock, open_lock


@cache
def wrapped(take_at: int, open_at: int) -> tuple[Times, Any, Any]:
    """Times, and functions that keep them; made once: what a compiler leaves behind is collected during later fits."""
    times = Times()
    take_lock, open_lock = wrap(times, take_at, open_at)
    gc.collect()
    return times, take_lock, open_lock


@contextmanager
def metered_locks() -> Iterator[Times]:
    """Keep virtual times wherever kernels wait for locks."""
    from spinney._jit import LockCalls, lock_calls
    from spinney.tree import followers

    times, take_lock, open_lock = wrapped(*lock_calls())
    times.locks[:] = 0
    followers.lock_calls = lambda: LockCalls(take_lock.address, open_lock.address)  # type: ignore[assignment]
    try:
        yield times
    finally:
        followers.lock_calls = lock_calls  # type: ignore[assignment]
