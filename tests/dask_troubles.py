"""What happens to a Dask cluster while a fit runs."""

import contextlib
import logging
import os
import signal
import threading
import time
from pathlib import Path

import dask

from spinney.scale.cluster import level_parts


@contextlib.contextmanager
def quiet_dask():
    """Dask tells on stderr of every worker that goes; and a LocalCluster looks 15 s later whether one is back.

    Where that very moment meets the next death it gives the worker up, so that after many there is none.
    """
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.nanny", "distributed.scheduler")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"}):
        yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


class Trouble:
    """Something that happens once the first trees have come."""

    def __init__(self, client, cluster):
        self.client, self.cluster = client, cluster

    def pids(self):
        return list(self.client.run(os.getpid, on_error="ignore").values())  # one may go just then

    def kill_one(self):
        os.kill(self.pids()[0], signal.SIGKILL)

    def kill_all(self):
        for pid in self.pids():
            os.kill(pid, signal.SIGKILL)

    def kill_again_and_again(self):
        for _ in range(4):
            pids = self.pids()
            if pids:
                os.kill(pids[-1], signal.SIGKILL)
            time.sleep(0.5)

    def retire(self):
        self.client.retire_workers([next(iter(self.client.nthreads()))])

    def restart(self):
        self.client.restart()

    def grow_and_shrink(self):
        self.cluster.scale(1)
        self.cluster.scale(4)
        self.client.wait_for_workers(4)
        self.cluster.scale(2)

    def eat(self):
        """One takes more memory than it may, and its nanny ends it."""
        self.client.run(eat_memory, workers=[next(iter(self.client.nthreads()))])

    def stop(self):
        os.kill(self.pids()[0], signal.SIGSTOP)  # and nobody wakes it: its heartbeats end


def eat_memory():
    """Take 40 MB more twenty times a second, until this process is ended."""

    def fill():
        held = []
        while True:
            held.append(b"x" * 40_000_000)
            time.sleep(0.05)

    threading.Thread(target=fill, daemon=True).start()


TROUBLES = ["kill_one", "kill_all", "kill_again_and_again", "retire", "restart", "grow_and_shrink", "stop"]
TTL: dict[str, dict[str, str]] = {name: {} for name in TROUBLES}
TTL["stop"] = {"distributed.scheduler.worker-ttl": "6s"}  # of others too, on a busy machine: the shorter, the more go


def die_in_step(given, number, once):
    """Carry out an order; the first worker that gets the one of a certain number ends at once."""
    if given[1].number == number and not Path(once).exists():
        Path(once).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return level_parts.work_on(given)


def take_chunk(k, table, size, folder):
    """Some rows; two workers that are to take those of chunk 3 end."""
    n_died = len(list(Path(folder).iterdir()))
    if k == 3 and n_died < 2:
        (Path(folder) / str(n_died)).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return table[k * size : (k + 1) * size]
