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


class Followers:
    """The threads of a team while its caller leads them from within a kernel.

    Parameters
    ----------
    team : Team

    Attributes
    ----------
    locks : ThreadLocks
        Those of the threads; none before the first `find`.
    """

    def __init__(self, team: Team) -> None:
        self.team = team
        self.locks = NO_LOCKS

    def find(self) -> ThreadLocks:
        """The locks of the threads that `lead` has."""
        n_followers = self.team.find_followers()
        if len(self.locks.begin) != n_followers:
            self.close()
            self.locks = make_locks(n_followers)
        return self.locks

    def lead(self, follow: Callable[[int], None], work: Callable[[], None]) -> None:
        """Call work() while each thread calls follow(t), kernels that meet by the locks; see `Team.lead`."""
        locks = self.locks
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
            self.locks = NO_LOCKS  # some are open now, and others may be waited for still: they are not freed
            raise

    def close(self) -> None:
        """Free the locks."""
        for lock in (*self.locks.begin.tolist(), *self.locks.end.tolist()):
            free_lock(lock)
        self.locks = NO_LOCKS
