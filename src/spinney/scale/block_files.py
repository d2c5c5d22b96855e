"""Files of blocks: bytes of known lengths one after the other, and the SHA-256 of each in a file beside.

They are read by place into memory that is there already (`preadv`), never mapped: mapped pages count as memory of a
process in some places and not in others, and a file that is cut off while it is mapped ends the process.
"""

from __future__ import annotations

import hashlib
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.model.container import BrokenFileError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

HASH_BYTES = 32
SUFFIX = ".sha256"


def hashes_of(path: Path) -> Path:
    """Where the hashes of a file of blocks are."""
    return path.with_name(path.name + SUFFIX)


class BlockWriter:
    """A file of blocks that is being written.

    Parameters
    ----------
    path : Path
        A new file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.file = path.open("xb", buffering=0)
        weakref.finalize(self, self.file.close)
        self.hashes = bytearray()

    def write(self, block: NDArray[Any]) -> None:
        """Append a block."""
        view = block.reshape(-1).view(np.uint8).data
        self.hashes += hashlib.sha256(view).digest()
        while view:
            view = view[self.file.write(view) :]

    def close(self) -> str:
        """Write the hashes; the hash of the hashes. `WorkFolder.move` sees files to the disk, if they are to stay."""
        self.file.close()
        with hashes_of(self.path).open("xb") as beside:
            beside.write(self.hashes)
        return hashlib.sha256(self.hashes).hexdigest()


class BlockFile:
    """A file of blocks that is read, each compared with its hash.

    Parameters
    ----------
    path : Path
    lengths : sequence of int
        Bytes of each block.
    digest : str
        Hash of the hashes, from a place that is believed.
    """

    def __init__(self, path: Path, lengths: Sequence[int], digest: str) -> None:
        self.path = path
        self.starts = [0]
        for length in lengths:
            self.starts.append(self.starts[-1] + length)
        try:
            self.hashes = hashes_of(path).read_bytes()
            self.file = path.open("rb", buffering=0)
        except FileNotFoundError as error:
            raise BrokenFileError(f"{error.filename} is missing: the store is not whole. Make it anew.") from None
        weakref.finalize(self, self.file.close)
        size = os.fstat(self.file.fileno()).st_size
        if size != self.starts[-1]:
            raise BrokenFileError(f"{path} has {size} bytes instead of {self.starts[-1]}: it was cut off or changed.")
        if hashlib.sha256(self.hashes).hexdigest() != digest or len(self.hashes) != HASH_BYTES * len(lengths):
            raise BrokenFileError(f"{hashes_of(path)} is not as it was written. Make the store anew.")
        self.turn = threading.Lock()  # where there is no reading by place

    def read(self, k: int, out: NDArray[Any]) -> None:
        """Read block k into an array of its length."""
        view = out.reshape(-1).view(np.uint8).data
        n_read = self._read_at(view, self.starts[k])
        expected = self.hashes[HASH_BYTES * k : HASH_BYTES * (k + 1)]
        if n_read != len(view) or hashlib.sha256(view).digest() != expected:
            raise BrokenFileError(
                f"{self.path}: block {k}, from byte {self.starts[k]} on, is not as it was written. Make the store anew."
            )

    def read_again(self, k: int, out: NDArray[Any]) -> None:
        """The same of a block that was compared with its hash before, in a file that has not changed since."""
        view = out.reshape(-1).view(np.uint8).data
        if self._read_at(view, self.starts[k]) != len(view):
            raise BrokenFileError(f"{self.path} was cut off at block {k}. Make the store anew.")

    def expect(self, k: int) -> None:
        """Tell the system that block k is read soon: it may fetch it meanwhile."""
        if hasattr(os, "posix_fadvise"):
            at = self.starts[k]
            os.posix_fadvise(self.file.fileno(), at, self.starts[k + 1] - at, os.POSIX_FADV_WILLNEED)

    def _read_at(self, view: memoryview, at: int) -> int:
        n_read = 0
        while n_read < len(view):
            if hasattr(os, "preadv"):
                n = os.preadv(self.file.fileno(), [view[n_read:]], at + n_read)
            else:
                with self.turn:
                    self.file.seek(at + n_read)
                    n = self.file.readinto(view[n_read:]) or 0
            if n == 0:
                break
            n_read += n
        return n_read

    def close(self) -> None:
        """Close the file."""
        self.file.close()
