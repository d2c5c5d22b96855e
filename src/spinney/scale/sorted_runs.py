"""The distinct values of a column in their order, with the weight of each, within a number of bytes.

    rows as they come ──► sorted pieces ──► held, while they fit ──┬──► merged, piece by piece
                                       └──► runs on disk ──────────┘

A piece whose values hardly repeat is kept as values alone, repeats included, if every row weighs 1: that is a quarter
of the bytes, and merged in a third of the time. Others are (value, mass), no value twice, so that a column of few
values never goes to the disk. Merging needs no heap: of the next values of each run, all up to the lowest last one can
be put in order at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

RECORD = np.dtype([("value", "<f8"), ("mass", "<i8")])
VALUE_BYTES = 64  # of a value while it is sorted: with others that are held, in the order that they come and in its own
RECORD_BYTES = 192  # the same with its mass
LEAST_RECORDS = 1 << 14
LEAST_PIECE = 512  # of a run that are read at once: with more runs than that allows, some are merged first
MOST_DISTINCT = 0.5  # of the values of a piece, for them to be worth being added up


class Piece(NamedTuple):
    """Ascending values, and the mass of each; None: values may repeat, and each has mass 1."""

    values: NDArray[Any]  # float32 or float64
    mass: NDArray[np.int64] | None

    def take(self, some: slice) -> Piece:
        """Some of the values that follow each other."""
        return Piece(self.values[some], None if self.mass is None else self.mass[some])


class Weighed(NamedTuple):
    """Values, ascending and each once, and the mass of each."""

    values: NDArray[np.float64]
    mass: NDArray[np.int64]


class Run:
    """A piece on disk."""

    def __init__(self, path: Path, pieces: Iterator[Piece]) -> None:
        self.path, self.n_values = path, 0
        with path.open("xb", buffering=0) as file:
            for piece in pieces:
                content = pack(piece)
                self.dtype = content.dtype
                view = content.view(np.uint8).data
                while view:
                    view = view[file.write(view) :]
                self.n_values += len(content)

    def read(self, first: int, n_values: int) -> Piece:
        """Some values."""
        wanted = min(n_values, self.n_values - first)
        content = np.fromfile(self.path, self.dtype, wanted, offset=first * self.dtype.itemsize)
        if len(content) != wanted:
            raise OSError(f"{self.path} was cut off while it was read: leave the temporary files of a fit alone")
        if self.dtype != RECORD:
            return Piece(content, None)
        return Piece(content["value"].copy(), content["mass"].copy())


class HeldRun:
    """A piece in memory, read as a run is."""

    def __init__(self, piece: Piece) -> None:
        self.piece, self.n_values = piece, len(piece.values)

    def read(self, first: int, n_values: int) -> Piece:
        """Some values."""
        return self.piece.take(slice(first, first + n_values))


class SortedRuns:
    """Values on their way to be sorted.

    Parameters
    ----------
    memory : int
        Bytes that they may take.
    make_path : callable
        The path of a new run.
    has_mass : bool
        Whether values come with a mass each; else each has mass 1.

    Attributes
    ----------
    total : int
        Mass of all values.
    runs : list of Run
        Those on disk.
    """

    def __init__(self, memory: int, make_path: Callable[[], Path], *, has_mass: bool) -> None:
        self.most = max(memory // (RECORD_BYTES if has_mass else VALUE_BYTES), LEAST_RECORDS)
        self.make_path, self.has_mass = make_path, has_mass
        self.total = 0
        self.raw: list[tuple[NDArray[Any], NDArray[np.int64] | None]] = []
        self.n_raw = 0
        self.held: list[Piece] = []
        self.n_held = 0
        self.runs: list[Run] = []

    def add(self, values: NDArray[Any], mass: NDArray[np.int64] | None = None) -> None:
        """Take known values (n,), float32 or float64, and the mass of each."""
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
        self.raw, self.n_raw = [], 0
        self.hold(sort_values(values, np.concatenate(masses) if masses else None))
        if self.n_held > self.most:
            weighed = [piece for piece in self.held if piece.mass is not None]
            self.held = [piece for piece in self.held if piece.mass is None] + ([join(weighed)] if weighed else [])
            self.n_held = sum(map(self.size_of, self.held))
            if self.n_held > self.most // 2:
                self.runs += [Run(self.make_path(), iter([piece])) for piece in self.held]
                self.held, self.n_held = [], 0

    def hold(self, piece: Piece) -> None:
        """Hold a sorted piece."""
        self.held.append(piece)
        self.n_held += self.size_of(piece)

    def size_of(self, piece: Piece) -> int:
        """How many values a piece counts for: masses take room that values that come without them do not count."""
        return len(piece.values) * (1 if piece.mass is None or self.has_mass else 2)

    def merge(self) -> Iterator[Piece]:
        """All values in their order, in pieces, all with masses or none; nothing can be added afterwards.

        The last value of a piece may be the first of the next; without masses values may repeat.
        """
        self.sort()
        most_runs = max(self.most // LEAST_PIECE, 2)
        while len(self.runs) > most_runs:
            some = self.runs[:most_runs]
            joined = Run(self.make_path(), merge_runs(some, max(self.most // len(some), 1)))
            self.runs = [*self.runs[len(some) :], joined]
            for run in some:
                run.path.unlink()
        parts: list[Run | HeldRun] = [*self.runs, *map(HeldRun, self.held)]
        yield from merge_runs(parts, max(self.most // max(len(parts), 1), 1))

    def remove(self) -> None:
        """Remove the runs."""
        for run in self.runs:
            run.path.unlink(missing_ok=True)
        self.runs = []


def pack(piece: Piece) -> NDArray[Any]:
    """A piece as it stands in a file."""
    if piece.mass is None:
        return np.ascontiguousarray(piece.values)
    records = np.empty(len(piece.values), RECORD)
    records["value"], records["mass"] = piece
    return records


def sort_values(values: NDArray[Any], mass: NDArray[np.int64] | None) -> Piece:
    """Sort known values, float32 or float64, which are spoilt."""
    values += values.dtype.type(0.0)  # -0.0 becomes 0.0
    if mass is not None:
        order = np.argsort(values)
        return Piece(*add_up(Piece(values[order], mass[order])))
    values.sort()
    n_distinct = 1 + np.count_nonzero(values[1:] != values[:-1])
    return Piece(values, None) if n_distinct > MOST_DISTINCT * len(values) else Piece(*add_up(Piece(values, None)))


def add_up(piece: Piece) -> Weighed:
    """The same with equal values as one."""
    values, mass = piece
    is_new = np.empty(len(values), np.bool_)
    is_new[:1] = True
    np.not_equal(values[1:], values[:-1], out=is_new[1:])
    starts = np.flatnonzero(is_new)
    if mass is None:
        mass = np.diff(starts, append=len(values))
    elif len(starts) < len(values):
        mass = np.add.reduceat(mass, starts)
    return Weighed(values[starts].astype(np.float64), mass)


def join(pieces: Sequence[Piece]) -> Piece:
    """Several pieces as one: with masses, and then no value twice, unless all are without."""
    if len(pieces) == 1:
        return pieces[0]
    values = np.concatenate([piece.values for piece in pieces])
    if all(piece.mass is None for piece in pieces):
        values.sort(kind="stable")  # finds what is sorted already
        return Piece(values, None)
    masses = [np.ones(len(p.values), np.int64) if p.mass is None else p.mass for p in pieces]
    order = np.argsort(values, kind="stable")
    return Piece(*add_up(Piece(values[order], np.concatenate(masses)[order])))


def merge_runs(runs: Sequence[Run | HeldRun], n_at_once: int) -> Iterator[Piece]:
    """The values of several runs in their order, piece by piece; n_at_once: values of each run that are held.

    The last value of a piece may be the first of the next.
    """
    heads = [run.read(0, n_at_once) for run in runs]
    n_read = [len(head.values) for head in heads]
    has_mass = any(head.mass is not None for head in heads)
    while any(len(head.values) for head in heads):
        following = [k for k, run in enumerate(runs) if n_read[k] < run.n_values]
        bound = min((heads[k].values[-1] for k in following), default=np.inf)
        ends = [int(np.searchsorted(head.values, bound, side="right")) for head in heads]
        taken = join([head.take(slice(end)) for head, end in zip(heads, ends, strict=True) if end])
        yield Piece(*add_up(taken)) if has_mass else taken
        for k, (head, end) in enumerate(zip(heads, ends, strict=True)):
            heads[k] = head.take(slice(end, None))
            if end == len(head.values) and n_read[k] < runs[k].n_values:
                heads[k] = runs[k].read(n_read[k], n_at_once)
                n_read[k] += len(heads[k].values)
