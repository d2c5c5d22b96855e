"""Codes of a table, kept in its store for the next fit; the files are those of `coded_blocks`.

Codes follow from the columns, the weights of the rows, which rows there are, and the most codes of a column: what was
made by the same numbers is found by their hash.
"""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.model.container import BrokenFileError
from spinney.scale.coded_blocks import BINS, CODES, CodedBlocks, write_blocks
from spinney.scale.work_folders import WorkFolder
from spinney.table.coding import row_stride

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from spinney.scale.column_cuts import Rows
    from spinney.scale.layout import Layout
    from spinney.table.schema import Schema

FOLDER = "codes"
HASHED_AT_ONCE = 1 << 20  # rows, a multiple of 8


class DiskShelf:
    """Codes in a folder of a store, of one meaning of its columns.

    Parameters
    ----------
    store : Path
    layout : Layout
    schema : Schema
        Which columns are categories, and which dates.
    """

    def __init__(self, store: Path, layout: Layout, schema: Schema) -> None:
        self.folder, self.layout, self.schema = store / FOLDER, layout, schema

    def place_of(self, kind: str, max_codes: int, weight: Rows, keep: Rows | None) -> Path:
        """Where codes are kept that were made by these numbers."""
        meaning = kind, max_codes, self.layout.digest, self.schema.levels, self.schema.dates, len(weight)
        width = (row_stride(self.schema.n_features),) if kind == CODES else ()  # rows had been wider: old ones stay
        digest = hashlib.sha256(repr(meaning + width).encode())
        for lo in range(0, len(weight), HASHED_AT_ONCE):
            digest.update(np.ascontiguousarray(weight[lo : lo + HASHED_AT_ONCE]).data)
        for lo in range(0, 0 if keep is None else len(keep), HASHED_AT_ONCE):
            digest.update(np.packbits(keep[lo : lo + HASHED_AT_ONCE]).data if keep is not None else b"")
        return self.folder / f"{kind}-{digest.hexdigest()[:40]}"

    def open(self, kind: str, max_codes: int, weight: Rows, keep: Rows | None, n_rows: int) -> CodedBlocks | None:
        """Codes of so many rows that were made by the same numbers, or None; kind: "bundled" of bins in bundles."""
        place = self.place_of(kind, max_codes, weight, keep)
        if not place.is_dir():
            return None
        blocks = CodedBlocks(place, CODES if kind == CODES else BINS, self.schema.is_categorical)
        if blocks.n_rows != n_rows:
            blocks.close()
            raise BrokenFileError(f"{place} has {blocks.n_rows:,} rows instead of {n_rows:,}: remove it.")
        return blocks

    def find(self, kind: str, max_codes: int, weight: NDArray[np.int64], keep: NDArray[np.bool_] | None) -> Any:
        """Codes that were made by the same numbers, all of their rows, or None."""
        n_rows = self.layout.n_rows if keep is None else int(np.count_nonzero(keep))
        blocks = self.open(kind, max_codes, weight, keep, n_rows)
        if blocks is None:
            return None
        with blocks:
            return blocks.load()

    def put(
        self, kind: str, max_codes: int, weight: NDArray[np.int64], keep: NDArray[np.bool_] | None, codes: Any
    ) -> None:
        """Keep codes; where the store cannot be written to, or its disk is full, they are made again next time."""
        place = self.place_of(kind, max_codes, weight, keep)
        with contextlib.suppress(OSError):
            self.write(place, lambda folder: write_blocks(folder, codes, self.layout.block_rows))

    def write(self, place: Path, write: Callable[[Path], None]) -> None:
        """Have a folder written, which takes its place once it is whole."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with WorkFolder(self.folder) as beside:
            write(beside.path)
            beside.move(place)
