"""Threads that share the columns of a table, or its rows, while it is coded."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Share = Callable[..., Iterable[Any]]  # `map`, or that of a pool of threads


@contextmanager
def open_workers(n_workers: int) -> Iterator[Share]:
    """A `map` that spreads its calls over threads, which end with the block."""
    if n_workers == 1:
        yield map
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(n_workers) as pool:
        yield pool.map


def run_all(share: Share, work: Callable[[int], None], tasks: Iterable[int]) -> None:
    """Do every task; raise what one of them raises."""
    for _ in share(work, tasks):
        pass
