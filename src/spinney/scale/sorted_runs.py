"""The distinct values of a column in their order, with the weight of each, within a number of bytes.

    rows as they come ──► sorted, equal ones added up ──► held, while they fit ──► one list
                                                     └──► runs on disk ──► merged ──► one file, read piece by piece

A run is a file of records (value, mass), ascending, no value twice. Runs are merged without a heap: of the next records
of each run, all up to the lowest last one can be put in order at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

RECORD = np.dtype([("value", "<f8"), ("mass", "<i8")])
RECORD_BYTES = 192  # of a record while it is joined with others: these, their order, and both again in that order
LEAST_RECORDS = 1 << 14
LEAST_PIECE = 512  # records of a run that are read at once: with more runs than that allows, some are merged first


class Weighed(NamedTuple):
    """Values, ascending and each once, and the mass of each."""

    values: NDArray[np.float64]
    mass: NDArray[np.int64]


class Run(NamedTuple):
    """Records on disk."""

    path: Path
    n_records: int


class SortedRuns:
    """Values on their way to be sorted.

    Parameters
    ----------
    memory : int
        Bytes that they may take.
    make_path : callable
        The path of a new run.
    """

    def __init__(self, memory: int, make_path: Callable[[], Path]) -> None:
        self.most = max(memory // RECORD_BYTES, LEAST_RECORDS)
        self.make_path = make_path
        self.total = 0  # mass of all values
        self.raw: list[tuple[NDArray[Any], NDArray[np.int64] | None]] = []
        self.n_raw = 0
        self.held: list[Weighed] = []
        self.n_held = 0
        self.runs: list[Run] = []

    def add(self, values: NDArray[Any], mass: NDArray[np.int64] | None) -> None:
        """Take known values (n,), float32 or float64, and the mass of each; None: 1."""
        self.total += len(values) if mass is None else int(mass.sum())
        for lo in range(0, len(values), self.most):
            part = slice(lo, lo + self.most)
            self.raw.append((values[part], None if mass is None else mass[part]))
            self.n_raw += len(self.raw[-1][0])
            if self.n_raw >= self.most:
                self.sort()

    def sort(self) -> None:
        """Sort the values that have come, and write what is held to disk if it has become too much."""
        if not self.raw:
            return
        values = np.concatenate([values for values, _ in self.raw])
        masses = [mass for _, mass in self.raw if mass is not None]
        mass = np.concatenate(masses) if masses else None
        self.raw, self.n_raw = [], 0
        self.held.append(weigh(values, mass))
        self.n_held += len(self.held[-1].values)
        if self.n_held > self.most:
            self.held = [join(self.held)]
            self.n_held = len(self.held[0].values)
            if self.n_held > self.most // 2:
                self.spill()

    def spill(self) -> None:
        """Write what is held to a run."""
        self.runs.append(self.write(iter(self.held)))
        self.held, self.n_held = [], 0

    def write(self, pieces: Iterator[Weighed]) -> Run:
        """A new run of pieces that follow each other."""
        path, n_records = self.make_path(), 0
        with path.open("xb", buffering=0) as file:
            for values, mass in pieces:
                records = np.empty(len(values), RECORD)
                records["value"], records["mass"] = values, mass
                view = records.view(np.uint8).data
                while view:
                    view = view[file.write(view) :]
                n_records += len(values)
        return Run(path, n_records)

    def merge(self) -> Sorted:
        """All values; nothing can be added afterwards."""
        self.sort()
        if self.held:
            self.held = [join(self.held)]
        if not self.runs:
            whole = self.held[0] if self.held else Weighed(np.empty(0), np.empty(0, np.int64))
            return Sorted(whole, None, self.total, self.most)
        if self.held:
            self.spill()
        while len(self.runs) > 1:
            some = self.runs[: max(self.most // LEAST_PIECE, 2)]
            joined = self.write(merge_runs(some, max(self.most // len(some), 1)))
            self.runs = [*self.runs[len(some) :], joined]
            for run in some:
                run.path.unlink()
        return Sorted(None, self.runs[0], self.total, self.most)


class Sorted:
    """The distinct values of a column in their order.

    Attributes
    ----------
    n_values : int
    total : int
        Their mass.
    """

    def __init__(self, whole: Weighed | None, run: Run | None, total: int, n_at_once: int) -> None:
        self.whole, self.run, self.total, self.n_at_once = whole, run, total, n_at_once
        self.n_values = len(whole.values) if whole is not None else run.n_records if run is not None else 0

    def pieces(self) -> Iterator[Weighed]:
        """Values and masses, in pieces that follow each other; as often as asked for."""
        if self.whole is not None:
            yield self.whole
        elif self.run is not None:
            for first in range(0, self.n_values, self.n_at_once):
                yield read_run(self.run, first, self.n_at_once)

    def remove(self) -> None:
        """Remove the file."""
        if self.run is not None:
            self.run.path.unlink(missing_ok=True)


def weigh(values: NDArray[Any], mass: NDArray[np.int64] | None) -> Weighed:
    """Sort known values, float32 or float64, and add up the masses of equal ones; None: 1 each."""
    values = values + values.dtype.type(0.0)  # -0.0 becomes 0.0
    if mass is None:
        values.sort()
        starts = find_starts(values)
        return Weighed(values[starts].astype(np.float64), np.diff(starts, append=len(values)))
    order = np.argsort(values)
    values = values[order]
    starts = find_starts(values)
    return Weighed(values[starts].astype(np.float64), np.add.reduceat(mass[order], starts))


def join(parts: Sequence[Weighed]) -> Weighed:
    """Several lists as one."""
    if len(parts) == 1:
        return parts[0]
    values = np.concatenate([part.values for part in parts])
    order = np.argsort(values, kind="stable")  # finds what is sorted already
    values = values[order]
    starts = find_starts(values)
    mass = np.concatenate([part.mass for part in parts])[order]
    return Weighed(values[starts], np.add.reduceat(mass, starts))


def find_starts(values: NDArray[Any]) -> NDArray[np.int64]:
    """Where each of the distinct values of a sorted array begins; there is at least one."""
    is_new = np.empty(len(values), np.bool_)
    is_new[0] = True
    np.not_equal(values[1:], values[:-1], out=is_new[1:])
    return np.flatnonzero(is_new)


def read_run(run: Run, first: int, n_records: int) -> Weighed:
    """Some records of a run."""
    wanted = min(n_records, run.n_records - first)
    records = np.fromfile(run.path, RECORD, wanted, offset=first * RECORD.itemsize)
    if len(records) != wanted:
        raise OSError(f"{run.path} was cut off while it was read: leave the temporary files of a fit alone")
    return Weighed(records["value"].copy(), records["mass"].copy())


def merge_runs(runs: Sequence[Run], n_at_once: int) -> Iterator[Weighed]:
    """The records of several runs as one, piece by piece; n_at_once: records of each that are held."""
    heads = [read_run(run, 0, n_at_once) for run in runs]
    n_read = [len(head.values) for head in heads]
    while any(len(head.values) for head in heads):
        following = [k for k, run in enumerate(runs) if n_read[k] < run.n_records]
        bound = min((heads[k].values[-1] for k in following), default=np.inf)
        ends = [int(np.searchsorted(head.values, bound, side="right")) for head in heads]
        taken = [Weighed(head.values[:end], head.mass[:end]) for head, end in zip(heads, ends, strict=True) if end]
        yield join(taken)
        for k, (head, end) in enumerate(zip(heads, ends, strict=True)):
            heads[k] = Weighed(head.values[end:], head.mass[end:])
            if not len(heads[k].values) and n_read[k] < runs[k].n_records:
                heads[k] = read_run(runs[k], n_read[k], n_at_once)
                n_read[k] += len(heads[k].values)
