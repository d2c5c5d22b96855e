"""Where the parts of a table are, and who works on them: tasks mapped over blocks on this machine's disk.

A task is a pure function of a part (`tree.levels.Part`). Threads read a part, do the task and write what is to be kept;
one more of them than work at a time, so that the next part is read meanwhile. Where one works at a time, it is the
caller: handing parts over costs more than it gains, and the system is told which codes it will be asked for next.
"""

from __future__ import annotations

import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._types import CONTROL_STOP
from spinney.tree.levels import CODES, Part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from concurrent.futures import Future

    from numpy.typing import NDArray

    from spinney.scale.coded_blocks import CodedBlocks
    from spinney.scale.row_files import RowFiles
    from spinney.tree.levels import Beginning, FoldTask, Task


class DiskEngine:
    """Tasks on the blocks of a table on disk.

    Parameters
    ----------
    blocks : CodedBlocks
    files : RowFiles
        What is known of the rows, in the same blocks.
    n_workers : int
        Parts that are worked on at a time; sums do not depend on it.
    """

    def __init__(self, blocks: CodedBlocks, files: RowFiles, n_workers: int = 1) -> None:
        self.blocks, self.files, self.n_workers = blocks, files, n_workers
        self.turns = threading.Semaphore(n_workers)
        self.pool = ThreadPoolExecutor(n_workers + 1)
        self.here = threading.local()

    def map(self, task: Task, reads: Sequence[str], control: NDArray[np.int64] | None = None) -> Iterator[Any]:
        """What a task gives for each part, in their order; what it writes is kept under its names."""
        parts = self._list_parts(control)
        if self.n_workers == 1:
            for k in parts:
                if CODES in reads:
                    self.blocks.expect(k + 1)
                yield self._work(task, reads, k)
            return
        waiting: deque[Future[Any]] = deque()
        try:
            for k in parts:
                waiting.append(self.pool.submit(self._work, task, reads, k))
                if len(waiting) > self.n_workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
            for future in waiting:
                if not future.cancelled():
                    future.exception()  # waits

    def begin_round(self, beginning: Beginning) -> None:
        """Nothing is lost that files hold."""

    def add(self, task: Task, reads: Sequence[str], control: NDArray[np.int64] | None = None) -> Any:
        """The sum of what a task gives for all parts."""
        results = self.map(task, reads, control)
        total = next(results)
        for found in results:
            total = task.join(total, found)
        return total

    def fold(self, task: FoldTask, reads: Sequence[str], control: NDArray[np.int64] | None = None) -> Any:
        """The sum of all parts, by as many sums as threads."""
        parts, turn = self._list_parts(control), threading.Lock()

        def work() -> Any:
            sums = task.start()
            while True:
                with turn:
                    k = next(parts, None)
                if k is None:
                    return sums
                if CODES in reads:
                    self.blocks.expect(k + 1)
                task(self._read(reads, k), sums)

        if self.n_workers == 1:
            return work()
        found = [future.result() for future in [self.pool.submit(work) for _ in range(self.n_workers)]]
        total = found[0]
        for other in found[1:]:
            total = task.join(total, other)
        return total

    def change(self, name: str, pieces: Iterable[tuple[int, Callable[[NDArray[Any]], None]]]) -> None:
        """Have an array of so many rows changed in place, then that of the next, whatever blocks they are in."""
        first = 0
        for n, change in pieces:
            values = self.files.read_span(name, first, n)
            change(values)
            self.files.write_span(name, first, values)
            first += n

    def _list_parts(self, control: NDArray[np.int64] | None) -> Iterator[int]:
        """Numbers of the parts, until somebody asks to stop."""
        for k in range(self.files.n_blocks):
            if control is not None and control[CONTROL_STOP]:
                raise KeyboardInterrupt
            yield k

    def _work(self, task: Task, reads: Sequence[str], k: int) -> Any:
        part = self._read(reads, k)
        with self.turns:
            kept, found = task(part)
        for name, values in kept.items():
            self.files.write(name, k, values)
        return found

    def _read(self, reads: Sequence[str], k: int) -> Part:
        """A part with some of its arrays."""
        arrays = {name: self._read_codes(k) if name == CODES else self.files.read(name, k) for name in reads}
        return Part(k * self.files.block_rows, self.files.rows_of(k), arrays)

    def _read_codes(self, k: int) -> NDArray[np.uint8]:
        """The codes of a block, in memory that this thread has for them: no task keeps what it is given."""
        if not hasattr(self.here, "codes"):
            self.here.codes = np.empty((self.blocks.block_rows, self.blocks.stride), np.uint8)
        return self.blocks.read(k, self.here.codes)

    def close(self) -> None:
        """End the threads, and give the space of the files back."""
        self.pool.shutdown()
        self.files.close()
