"""What is known of rows while a model grows, in files without a name: read and written by blocks, gone at the end.

A file has no name from the moment it is there (where the system can do that), so that nothing is left behind however a
process ends. It is read and written by place into memory that is asked for, never mapped.
"""

from __future__ import annotations

import os
import tempfile
import threading
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from spinney.scale.faults import writing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

REMEDY = "choose a disk with more room"


class FileRows:
    """Numbers of rows in a file, of which some that follow each other are asked for at a time."""

    def __init__(self, files: RowFiles, name: str, convert: Callable[[NDArray[Any]], NDArray[Any]] | None) -> None:
        self.files, self.name, self.convert = files, name, convert

    def __len__(self) -> int:
        return self.files.n_rows

    def __getitem__(self, rows: slice) -> NDArray[Any]:
        first, last, _ = rows.indices(len(self))
        values = self.files.read_rows(self.name, first, max(last - first, 0))
        return values if self.convert is None else self.convert(values)


class RowFiles:
    """Arrays of rows by name, each in a file of its own, block after block.

    Parameters
    ----------
    folder : Path
        On the disk to write to.
    block_rows : int
    n_rows : int
        May be set when all are written.
    """

    def __init__(self, folder: Path, block_rows: int, n_rows: int = 0) -> None:
        self.folder, self.n_rows, self.block_rows = folder, n_rows, block_rows
        self.files: dict[str, tuple[IO[bytes], np.dtype[Any], tuple[int, ...]]] = {}
        self.turn = threading.Lock()

    @property
    def n_blocks(self) -> int:
        """How many blocks there are."""
        return -(-self.n_rows // self.block_rows)

    def rows_of(self, k: int) -> int:
        """Rows of block k: the last one may have fewer."""
        return min(self.block_rows, self.n_rows - k * self.block_rows)

    def write(self, name: str, k: int, values: NDArray[Any]) -> None:
        """Keep the array of a block, rows along its last axis; those of other blocks have the same other axes."""
        with writing(self.folder, REMEDY):
            file = self._open(name, values)
            view = np.ascontiguousarray(values).reshape(-1).view(np.uint8).data
            at = k * self.block_rows * (len(view) // values.shape[-1])
            while view:
                n = self._write_at(file, view, at)
                view, at = view[n:], at + n

    def read(self, name: str, k: int) -> NDArray[Any]:
        """The array of a block that was written."""
        return self.read_rows(name, k * self.block_rows, self.rows_of(k))

    def read_rows(self, name: str, first: int, n_rows: int) -> NDArray[Any]:
        """Rows that follow each other: those of a block, or any where a row has one number."""
        file, dtype, axes = self.files[name]
        values = np.empty((*axes, n_rows), dtype)
        view = values.reshape(-1).view(np.uint8).data
        at = first * (len(view) // max(n_rows, 1))
        while view:
            n = self._read_at(file, view, at)
            if n == 0:
                raise OSError(f"{self.folder}: rows that were written there have gone: look at the disk")
            view, at = view[n:], at + n
        return values

    def read_span(self, name: str, first: int, n_rows: int) -> NDArray[Any]:
        """Rows that follow each other, from one block or more."""
        parts = [self.read(name, k)[..., inside] for k, inside, _ in self._cut(first, n_rows)]
        return np.concatenate(parts, axis=-1)

    def write_span(self, name: str, first: int, values: NDArray[Any]) -> None:
        """Write rows that follow each other, to one block or more."""
        for k, inside, mine in self._cut(first, values.shape[-1]):
            block = self.read(name, k)
            block[..., inside] = values[..., mine]
            self.write(name, k, block)

    def _cut(self, first: int, n_rows: int) -> Iterator[tuple[int, slice, slice]]:
        """The blocks of some rows: which of their rows, and of the rows asked for."""
        for k in range(first // self.block_rows, -(-(first + n_rows) // self.block_rows)):
            begin = k * self.block_rows
            lo, hi = max(first, begin), min(first + n_rows, begin + self.block_rows)
            yield k, slice(lo - begin, hi - begin), slice(lo - first, hi - first)

    def view(self, name: str, convert: Callable[[NDArray[Any]], NDArray[Any]] | None = None) -> FileRows:
        """One number a row as what gives some that follow each other; convert: what is made of them."""
        return FileRows(self, name, convert)

    def _open(self, name: str, values: NDArray[Any]) -> IO[bytes]:
        with self.turn:
            if name not in self.files:
                file = tempfile.TemporaryFile(buffering=0, dir=self.folder, prefix=".spinney-")  # noqa: SIM115
                self.files[name] = file, values.dtype, values.shape[:-1]
            return self.files[name][0]

    def _write_at(self, file: IO[bytes], view: memoryview, at: int) -> int:
        if hasattr(os, "pwrite"):
            return os.pwrite(file.fileno(), view, at)
        with self.turn:
            file.seek(at)
            return file.write(view)

    def _read_at(self, file: IO[bytes], view: memoryview, at: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(file.fileno(), [view], at)
        with self.turn:
            file.seek(at)
            return file.readinto(view) or 0  # type: ignore[attr-defined]

    def close(self) -> None:
        """Give the space back."""
        for file, _, _ in self.files.values():
            file.close()
        self.files.clear()
