"""Threads that stay in a kernel and follow another: they wait there for what it lays out, see `kernels.boost.batch`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spinney._jit import free_lock, lock_calls, make_lock, open_lock
from spinney.kernels.common.structs import ThreadLocks

if TYPE_CHECKING:
    from collections.abc import Callable

    from spinney._threads import Team


def make_locks(n_followers: int) -> ThreadLocks:
    """Locks that so many threads wait for, all of them taken."""
    locks = [make_lock() for _ in range(2 * n_followers)]
    begin, end = np.array(locks, np.int64).reshape(2, n_followers)
    is_over, has_failed = np.zeros((2, 1), np.uint8)
    return ThreadLocks(begin, end, is_over, has_failed, *lock_calls())


NO_LOCKS = make_locks(0)  # nobody follows


def free_locks(locks: ThreadLocks) -> None:
    """Give locks back that nobody waits for."""
    for lock in (*locks.begin.tolist(), *locks.end.tolist()):
        free_lock(lock)


class Followers:
    """The threads of a team while its caller leads them from within a kernel.

    Parameters
    ----------
    team : Team

    Attributes
    ----------
    idle : list of ThreadLocks
        Locks that nobody waits for, one set at most. Who needs them takes them out: after Ctrl-C a fit is closed while
        the thread that grew it may still be in a kernel, whose locks must not be freed.
    """

    def __init__(self, team: Team) -> None:
        self.team = team
        self.idle: list[ThreadLocks] = []

    def take_idle(self) -> ThreadLocks:
        """Take the idle locks out; those of no thread where there are none."""
        try:
            return self.idle.pop()
        except IndexError:
            return NO_LOCKS

    def find(self) -> ThreadLocks:
        """Locks for as many threads as there are, for `lead`."""
        n_followers = self.team.find_followers()
        locks = self.take_idle()
        if len(locks.begin) != n_followers:
            free_locks(locks)
            locks = make_locks(n_followers)
        return locks

    def lead(self, locks: ThreadLocks, follow: Callable[[int], None], work: Callable[[], None]) -> None:
        """Call work() while each thread calls follow(t), kernels that meet by locks of `find`; see `Team.lead`.

        Locks of work that has failed are never freed: some are open then, and others may be waited for still.
        """
        locks.is_over[0] = 0

        def follow_on(t: int) -> None:
            try:
                follow(t)
            except BaseException:
                locks.has_failed[0] = 1  # whoever waits for this thread looks at that
                raise

        def work_and_end() -> None:
            try:
                work()
            finally:
                locks.is_over[0] = 1
                open_lock(locks.open, int(locks.begin[0]))

        try:
            self.team.lead(follow_on, work_and_end)
        except BaseException:
            locks.has_failed[0] = 1
            raise
        self.idle.append(locks)

    def close(self) -> None:
        """Free the locks, but those of work that is not over."""
        free_locks(self.take_idle())
