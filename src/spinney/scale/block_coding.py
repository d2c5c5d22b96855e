"""A table on disk in codes on disk: read block by block, and never held.

    columns ──cut_columns_on_disk──► cuts ──► codes of a block of rows after the other ──► CodedBlocks
                                              └──► features that share a byte, found by reading the blocks

The codes are those that `bin_table`, `bundle_features` and `code_table` give for the same rows in memory, to the bit.
They go to the shelf of a store, and of a table without one, or where that cannot be written to, to a temporary folder.
"""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._types import MAX_CODES
from spinney.kernels.common.structs import ByteTable
from spinney.scale.block_bundles import find_shared, write_shared
from spinney.scale.coded_blocks import BINS, CODES, BlocksWriter, CodedBlocks, outline_of
from spinney.scale.column_cuts import REMEDY, cut_columns_on_disk
from spinney.scale.faults import writing
from spinney.scale.work_folders import open_temporary
from spinney.table.binning import code_values, lay_cuts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from spinney.scale.column_cuts import Rows
    from spinney.scale.stored_table import StoredTable
    from spinney.table.binning import Bins, Cuts
    from spinney.table.columns import Columns

BUNDLED = "bundled"  # what a shelf calls bins of which some share a byte
VALUE_BYTES = 16  # of a cell while it is coded: the value, and as it was read
LEAST_MEMORY = 8 << 20


def bin_blocks(
    table: StoredTable,
    weight: Rows,
    max_bins: int | None,
    kernels: Any,
    keep: Rows | None = None,
    *,
    memory: int,
    has_bundles: bool = True,
) -> CodedBlocks:
    """Bin every column of a table on disk, for boosting, unless its shelf has the bins.

    Parameters
    ----------
    table : StoredTable
    weight : rows of int64
        Fixed-point weights of the rows that are kept; one entry means that every weight is 1.
    max_bins : int, optional
        Bins of a numeric column, 2 to 65,535; None: as many as there can be.
    kernels : kernel modules
    keep : rows of bool (table.n_rows,), optional
        Rows to bin; the others are left out.
    memory : int
        Bytes to work in, besides what the cuts take.
    has_bundles : bool
        Whether features may share a byte.
    """
    most = MAX_CODES if max_bins is None else max_bins
    maker = BlockMaker(table, weight, most, kernels, keep, memory)
    found = maker.find(BUNDLED) if has_bundles else None
    if found is not None:
        return found
    bins = maker.take(BINS, lambda folder: maker.write(BINS, folder))
    if not has_bundles:
        return bins
    usual, bundles = find_shared(bins)
    if not bundles:
        return bins
    with bins:
        return maker.take(BUNDLED, lambda folder: write_shared(bins, usual, bundles, folder))


def code_blocks(
    table: StoredTable, weight: Rows, max_codes: int, kernels: Any, keep: Rows | None = None, *, memory: int
) -> CodedBlocks:
    """Code every column of a table on disk in 16 bits, for trees, unless its shelf has the codes; as `bin_blocks`."""
    maker = BlockMaker(table, weight, max_codes, kernels, keep, memory)
    return maker.take(CODES, lambda folder: maker.write(CODES, folder))


class BlockMaker:
    """What makes the codes of one table by the same numbers."""

    def __init__(
        self, table: StoredTable, weight: Rows, most: int, kernels: Any, keep: Rows | None, memory: int
    ) -> None:
        self.table, self.weight, self.most, self.keep = table, weight, most, keep
        self.kernels, self.memory = kernels, max(memory, LEAST_MEMORY)
        self.n_rows = table.n_rows if keep is None else count_kept(keep, table.block_rows)

    def find(self, kind: str) -> CodedBlocks | None:
        """The codes of a kind that the shelf has."""
        shelf = self.table.shelf
        return None if shelf is None else shelf.open(kind, self.most, self.weight, self.keep, self.n_rows)

    def take(self, kind: str, write: Callable[[Path], None]) -> CodedBlocks:
        """The codes of a kind: from the shelf, or written there, or to a temporary folder."""
        found = self.find(kind)
        if found is None and self.table.shelf is not None:
            with contextlib.suppress(OSError):  # no right to write there, or no room
                self.table.shelf.write(self.table.shelf.place_of(kind, self.most, self.weight, self.keep), write)
            found = self.find(kind)
        if found is not None:
            return found
        with writing(Path(tempfile.gettempdir()), REMEDY):
            home = open_temporary()
            write(home.path)
        return CodedBlocks(home.path, CODES if kind == CODES else BINS, self.table.schema.is_categorical, home)

    def write(self, kind: str, folder: Path) -> None:
        """Cut the columns, and write their codes."""
        table = self.table
        cuts = cut_columns_on_disk(table, self.weight, self.most, self.kernels, self.keep, memory=self.memory)
        outline = outline_of(kind, cuts, table.schema.is_categorical)
        writer = BlocksWriter(folder, kind, table.block_rows)
        coder = BlockCoder(table, cuts, outline, self.kernels, self.memory)
        first = 0
        for columns in table.batches():
            kept = None if self.keep is None else self.keep[first : first + columns.n_rows]
            writer.add(coder.code(columns, kept))
            first += columns.n_rows
        writer.finish(outline)


class BlockCoder:
    """Codes of blocks of rows, by the cuts of their columns."""

    def __init__(self, table: StoredTable, cuts: Sequence[Cuts], outline: Bins, kernels: Any, memory: int) -> None:
        self.table, self.outline, self.kernels = table, outline, kernels
        inputs = table.list_inputs()
        n_at_once = max(memory // (VALUE_BYTES * table.block_rows), 1)
        self.groups: list[list[tuple[int, range]]] = [[]]  # columns that are coded together
        for j, features in enumerate(inputs):
            if self.groups[-1] and sum(len(one) for _, one in self.groups[-1]) + len(features) > n_at_once:
                self.groups.append([])
            self.groups[-1].append((j, features))
        self.segments = [
            lay_cuts(cuts[group[0][1].start : group[-1][1].stop], np.dtype(np.float64), table.block_rows, kernels)
            for group in self.groups
        ]

    def code(self, columns: Columns, kept: NDArray[np.bool_] | None) -> NDArray[np.uint8]:
        """The codes of a block of rows (n_rows, stride); kept: of those alone."""
        n_rows = columns.n_rows if kept is None else int(np.count_nonzero(kept))
        rows = np.zeros((n_rows, self.outline.rows.shape[1]), np.uint8)
        if not n_rows:
            return rows
        for group, segments in zip(self.groups, self.segments, strict=True):
            here = slice(group[0][1].start, group[-1][1].stop)
            values = np.empty((here.stop - here.start, n_rows))
            for j, features in group:
                for k, part in enumerate(self.table.read_input(columns, j, features.start), features.start):
                    values[k - here.start] = part if kept is None else part[kept]
            coded = ByteTable(rows, self.outline.place[here], self.outline.is_wide[here])
            code_values(values, segments, coded, self.kernels, map)
        return rows


def count_kept(keep: Rows, n_at_once: int) -> int:
    """How many rows are kept."""
    return sum(int(np.count_nonzero(keep[lo : lo + n_at_once])) for lo in range(0, len(keep), n_at_once))
