"""The cuts of columns on disk: those of `table.binning` and `table.coding` to the bit, without holding a column.

Both follow from the distinct values of a column and the weight of each: up to so many values have a code each, of more
`fill_bins` makes bins, in one walk from the lowest to the highest, which needs to know how much there is in all.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np

from spinney._types import SUM
from spinney.scale.faults import writing
from spinney.scale.sorted_runs import Piece, SortedRuns, add_up
from spinney.scale.work_folders import open_temporary
from spinney.table.binning import Cuts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from numpy.typing import NDArray

    from spinney.scale.stored_table import StoredTable
    from spinney.scale.work_folders import WorkFolder

ENDLESS = 1 << 62  # values, as good as any number beyond that of bins
REMEDY = "set TMPDIR to a folder on a disk with more room, or allow more memory"


class Rows(Protocol):
    """Numbers of rows, of which some that follow each other are asked for at a time: an array, or a file."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice, /) -> NDArray[Any]: ...


def cut_columns_on_disk(
    table: StoredTable, weight: Rows, most: int, kernels: Any, keep: Rows | None = None, *, memory: int
) -> list[Cuts]:
    """The cuts of every feature of a table, one after the other.

    Parameters
    ----------
    table : StoredTable
    weight : rows of int64
        Fixed-point weights of the rows that are kept; one entry means that every weight is 1.
    most : int
        Codes of a numeric column, 2 to 65,535.
    kernels : kernel modules
    keep : rows of bool, optional
        Those to be cut by; None: all.
    memory : int
        Bytes for the values of a column; what takes more is sorted on disk, in a temporary folder.
    """
    cuts: list[Cuts] = []
    with writing(Path(tempfile.gettempdir()), REMEDY), TemporaryRuns() as files:
        for j, features in enumerate(table.list_inputs()):
            levels = table.schema.levels[features.start]
            if levels is not None:
                index = np.arange(float(len(levels)))
                has_missing = any(
                    np.isnan(part).any() for (part,), _ in read_kept(table, j, features.start, weight, keep)
                )
                cuts.append(Cuts(index, index, has_missing))
                continue
            has_mass = len(weight) > 1
            runs = [SortedRuns(memory // len(features), files.make_path, has_mass=has_mass) for _ in features]
            has_missing_part = [False] * len(features)
            for parts, mass in read_kept(table, j, features.start, weight, keep):
                for i, values in enumerate(parts):
                    is_known = ~np.isnan(values)
                    if is_known.all():
                        runs[i].add(values, mass)
                    else:
                        has_missing_part[i] = True
                        runs[i].add(values[is_known], None if mass is None else mass[is_known])
            for one, lacks in zip(runs, has_missing_part, strict=True):
                cuts.append(Cuts(*cut_sorted(one, most, kernels), lacks))
                one.remove()
    return cuts


class TemporaryRuns:
    """Files in a temporary folder that is made when the first is asked for."""

    def __init__(self) -> None:
        self.folder: WorkFolder | None = None
        self.n_files = 0

    def make_path(self) -> Path:
        """The path of a new file."""
        if self.folder is None:
            self.folder = open_temporary()
        self.n_files += 1
        return self.folder.path / f"run-{self.n_files}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.folder is not None:
            self.folder.remove()


def read_kept(
    table: StoredTable, j: int, first: int, weight: Rows, keep: Rows | None
) -> Iterator[tuple[list[NDArray[Any]], NDArray[np.int64] | None]]:
    """The values of a column, those of a date as its parts, and the weights of its rows, block by block."""
    first_row = first_kept = 0
    for columns in table.batches():
        parts = table.read_input(columns, j, first)
        if keep is not None:
            kept = keep[first_row : first_row + columns.n_rows]
            parts = [part[kept] for part in parts]
        n_kept = len(parts[0])
        mass = None if len(weight) == 1 else np.asarray(weight[first_kept : first_kept + n_kept])
        first_row += columns.n_rows
        first_kept += n_kept
        if n_kept:
            yield parts, mass


def cut_sorted(runs: SortedRuns, most: int, kernels: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The lowest and the highest value behind each code; the same array where each is one value.

    A bin ends early where no more values follow than bins are to come. So the last values wait until it is known how
    many they are; for those before them, as many as there can be bins is as good as any number.
    """
    binning = kernels.data.binning
    chain = np.empty(5, np.int64)
    binning.start_chain(runs.total, most, chain)
    low, high = np.empty((2, most))
    waiting = Piece(np.empty(0, np.float32), None)
    has_bins, n_waiting = False, 0
    for piece in runs.merge():
        known = put_behind(waiting, piece)
        start, n_waiting = binning.find_last_values(known.values, most)
        if start > 0:
            has_bins = True
            fill(known.take(slice(start)), ENDLESS, most, chain, binning, low, high)
        waiting = known.take(slice(start, None))
        if len(waiting.values) > 2 * most:  # values are as many as bins at most, their repeats as many as rows
            waiting = Piece(*add_up(waiting))
    if not has_bins:
        values = waiting.values[np.append(True, waiting.values[1:] != waiting.values[:-1])[: len(waiting.values)]]
        values = values.astype(np.float64)
        return values, values
    fill(waiting, n_waiting, most, chain, binning, low, high)
    n_bins = int(chain[0]) + 1
    return low[:n_bins].copy(), high[:n_bins].copy()


def put_behind(first: Piece, second: Piece) -> Piece:
    """Two pieces as one, with masses if any of the two has them."""
    if not len(first.values):
        return second
    mass = None
    if first.mass is not None or second.mass is not None:
        mass = np.concatenate([np.ones(len(values), SUM) if held is None else held for values, held in (first, second)])
    return Piece(np.append(first.values, second.values), mass)


def fill(
    piece: Piece,
    n_values: int,
    most: int,
    chain: NDArray[np.int64],
    binning: Any,
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> None:
    """Put some more values into bins."""
    mass = np.empty(0, np.int64) if piece.mass is None else piece.mass
    binning.fill_sorted(piece.values, mass, n_values, most, chain, low, high)
