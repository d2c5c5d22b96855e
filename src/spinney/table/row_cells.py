"""Cells of rows in bytes: the few that are not usual, of a row that shared bytes leave hundreds wide.

    row      0 0 7 0 0 0 0 3 0 0 0 0      cells: the 7 of the third byte, the 3 of the eighth

A boosted tree sums such rows by their cells, and leaves the bytes where they are: of 30,000 texts with 8,000 words a
row has 550 bytes and 50 cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spinney._types import HISTOGRAM_STRIDE
from spinney.table.bundles import sample_step

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.table.binning import Bins

LEAST_BYTES = 64  # of a row: to move one line of the cache costs no more than to leave it
BYTES_OF_CELL = 4  # that are summed in the time of a cell, 0.5 ns each
BLOCK_BYTES = 1 << 22  # that are looked through together


class SummedCells(NamedTuple):
    """The cells of a table."""

    begin: NDArray[np.int64]  # (n_rows + 1,): where those of each row begin
    sum: NDArray[np.int32]  # (n_cells,): the sum in a histogram of all narrow features that each adds to


def pays(n_cells: float, n_bytes: int) -> bool:
    """Whether rows of so many cells are summed sooner by these than by their bytes."""
    return n_bytes >= LEAST_BYTES and n_cells * BYTES_OF_CELL <= n_bytes


def count_bytes(bins: Bins) -> int:
    """Features of the rows, those of one byte being one."""
    return len(np.unique(bins.place[bins.place >= 0]))


def count_sums(bins: Bins) -> float:
    """How many bytes of each row are summed, or cells where that is sooner, by a sample of the rows."""
    n_bytes, is_own = count_bytes(bins), own_bytes(bins)
    if bins.is_wide.any() or not pays(float(np.count_nonzero(is_own)), n_bytes):
        return n_bytes
    sample = bins.rows[:: sample_step(len(bins.rows)), :n_bytes]
    n_cells = np.count_nonzero((sample != 0) | is_own) / len(sample)
    return n_cells if pays(n_cells, n_bytes) else n_bytes


def own_bytes(bins: Bins) -> NDArray[np.bool_]:
    """Which bytes of narrow features one feature has alone."""
    is_own = np.ones(int(np.max(bins.place[~bins.is_wide], initial=-1)) + 1, np.bool_)
    is_own[bins.place[bins.base >= 0]] = False
    return is_own


def find_row_cells(bins: Bins) -> SummedCells | None:
    """The cells of all rows; None where bytes are summed as fast, or a feature takes two.

    A byte that features share has none where all of them are usual: nobody asks for the sum of these rows.
    """
    if count_sums(bins) == count_bytes(bins):
        return None
    n_bytes, is_own = count_bytes(bins), own_bytes(bins)
    n_at_once = max(BLOCK_BYTES // n_bytes, 1)
    counts, found = [np.zeros(1, np.int64)], []
    for lo in range(0, len(bins.rows), n_at_once):
        block = bins.rows[lo : lo + n_at_once, :n_bytes]
        is_cell = (block != 0) | is_own
        counts.append(np.count_nonzero(is_cell, axis=1))
        place = np.nonzero(is_cell)[1]
        found.append((place * HISTOGRAM_STRIDE + block[is_cell]).astype(np.int32))
    return SummedCells(np.cumsum(np.concatenate(counts)), np.concatenate(found))
