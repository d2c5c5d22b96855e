"""Where the parts of a table are, and who works on them: tasks mapped over blocks on this machine's disk.

A task is a pure function of a part (`tree.levels.Part`). Threads read a part, do the task and write what is to be kept;
one more of them than work at a time, so that the next part is read meanwhile. Where one works at a time, it is the
caller: handing parts over costs more than it gains, and the system is told which codes it will be asked for next.

A part is one block of codes or more. As many parts as there is memory for are held from the time that they are first
read, with all that becomes known of their rows: they are not read again, and nothing of them is written.
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
        What is known of the rows, in parts of one block or more.
    n_workers : int
        Parts that are worked on at a time; sums do not depend on it.
    n_held : int
        Parts that are held, the first ones.
    """

    def __init__(self, blocks: CodedBlocks, files: RowFiles, n_workers: int = 1, n_held: int = 0) -> None:
        self.blocks, self.files, self.n_workers = blocks, files, n_workers
        self.n_together = files.block_rows // blocks.block_rows  # blocks of a part
        assert self.n_together * blocks.block_rows == files.block_rows
        self.held: list[dict[str, NDArray[Any]]] = [{} for _ in range(min(n_held, files.n_blocks))]
        self.turns = threading.Semaphore(n_workers)
        self.pool = ThreadPoolExecutor(n_workers + 1)
        self.here = threading.local()

    def map(self, task: Task, reads: Sequence[str], control: NDArray[np.int64] | None = None) -> Iterator[Any]:
        """What a task gives for each part, in their order; what it writes is kept under its names."""
        parts = self._list_parts(control)
        if self.n_workers == 1:
            for k in parts:
                self._expect(reads, k + 1)
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
                self._expect(reads, k + 1)
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
        for k, held in enumerate(self.held):
            if name in held:
                self.files.write(name, k, held.pop(name))
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
        if k < len(self.held):
            self.held[k].update(kept)
            return found
        for name, values in kept.items():
            self.files.write(name, k, values)
        return found

    def _expect(self, reads: Sequence[str], k: int) -> None:
        """Have the codes of part k fetched meanwhile, if there is one that is not held."""
        if CODES in reads and k >= len(self.held):
            for block in self._list_blocks(k):
                self.blocks.expect(block)

    def _read(self, reads: Sequence[str], k: int) -> Part:
        """A part with some of its arrays."""
        return Part(k * self.files.block_rows, self.files.rows_of(k), {name: self.read(name, k) for name in reads})

    def read(self, name: str, k: int) -> NDArray[Any]:
        """An array of a part: the one that is held, or as it is on disk."""
        if k < len(self.held):
            held = self.held[k]
            if name not in held:
                held[name] = self._read_codes(k, self._make_codes(k)) if name == CODES else self.files.read(name, k)
            return held[name]
        if name != CODES:
            return self.files.read(name, k)
        if not hasattr(self.here, "codes"):  # memory that this thread has for them: no task keeps what it is given
            self.here.codes = self._make_codes(0)
        return self._read_codes(k, self.here.codes)

    def _make_codes(self, k: int) -> NDArray[np.uint8]:
        return np.empty((self.files.rows_of(k), self.blocks.stride), np.uint8)

    def _read_codes(self, k: int, out: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """The codes of a part, in memory that is there."""
        size = self.blocks.block_rows
        for i, block in enumerate(self._list_blocks(k)):
            self.blocks.read(block, out[i * size : (i + 1) * size])
        return out[: self.files.rows_of(k)]

    def _list_blocks(self, k: int) -> range:
        """The blocks of a part."""
        first, n_blocks = k * self.n_together, self.blocks.n_blocks
        return range(min(first, n_blocks), min(first + self.n_together, n_blocks))

    def close(self) -> None:
        """End the threads, and give the space of the files back."""
        self.pool.shutdown()
        self.held = []
        self.files.close()
