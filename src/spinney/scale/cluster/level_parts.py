"""Rows spread over the workers of a cluster, and tasks mapped over them: no worker has all rows.

    PlacedRows at a worker ◄──Order: what is done next── LevelParts ──► sums, added up by eights

A part stays where it was made. How far work on it has come, scores and packed sums and nodes of its rows, rides on it:
Dask counts, spills, moves and forgets the one with the other. An order tells a number; a part that has not come as far
as the number before, since its worker is gone and it was made again, says so, and is told all from the last whole round
on: the trees so far, by which its scores are found anew from its codes, and what was done in this round. So an order
means the same wherever it is carried out, and however often; and nothing that grows with the rounds is sent unless
something is lost.
"""

from __future__ import annotations

import copy
import io
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._jit import kernels as choose_kernels
from spinney._jit.choice import compiled
from spinney._jit.twin import Kernels, interpreted
from spinney._types import CONTROL_STOP, N_CODES, OFFSET
from spinney.model.boosted_scores import add_rounds, begin_raw
from spinney.scale.cluster.workers import count_threads
from spinney.tree.levels import CODES, Part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from spinney.scale.cluster.engine import Engine, Held
    from spinney.table.binning import Bins
    from spinney.tree.levels import Beginning, Task

RAW = "raw"  # scores, the one array that is not made by a task
FAN = 8  # sums that are added up by one task, and at most by the client
STATE_BYTES = 40  # of a row: scores and sums, before and after a step, and its node
COMPILED, ANY = "compiled", "any"


# --- Tasks on their way ---------------------------------------------------------------------------------------


class _Pickler(pickle.Pickler):
    """Kernels, and what a part has, are not sent: whoever is told to do a task has its own."""

    def __init__(self, buffer: io.BytesIO, known: Sequence[Any]) -> None:
        super().__init__(buffer, pickle.HIGHEST_PROTOCOL)
        self.places = {id(one): k for k, one in enumerate(known) if one is not None}

    def persistent_id(self, obj: Any) -> str | int | None:
        if id(obj) in self.places:
            return self.places[id(obj)]
        if not isinstance(obj, Kernels):
            return None
        return ANY if obj is interpreted() else COMPILED


class _Unpickler(pickle.Unpickler):
    def __init__(self, buffer: io.BytesIO, known: Sequence[Any]) -> None:
        super().__init__(buffer)
        self.known = known

    def persistent_load(self, name: Any) -> Any:
        if isinstance(name, int):
            return self.known[name] if name < len(self.known) else None
        return compiled() if name == COMPILED else choose_kernels(0.0)


def pack(value: Any, known: Sequence[Any] = ()) -> bytes:
    """A task, or anything that has kernels inside, as bytes; known: what those have who are told, such as edges."""
    buffer = io.BytesIO()
    _Pickler(buffer, known).dump(value)
    return buffer.getvalue()


def unpack(content: bytes, known: Sequence[Any] = ()) -> Any:
    """What `pack` was given, with the kernels of this process, and with what is known here in the place of the same."""
    return _Unpickler(io.BytesIO(content), known).load()


class Order(NamedTuple):
    """What is to be done to a part."""

    number: int  # of the step: a part does one after the other
    step: bytes  # (task, names of arrays)
    is_look: bool = False  # nothing changes, and the part is where the number says
    base: bytes | None = None  # (start of scores, forest, rounds, task that begins a round, names) ...
    earlier: tuple[bytes, ...] = ()  # ... and the steps of the round so far; where the part is to begin anew


class StateGone(NamedTuple):
    """What parts say that are not as far as an order supposes."""

    numbers: tuple[int, ...]


class Found(NamedTuple):
    """What parts have found, and where each of them was: there the next order had better go."""

    total: Any
    homes: dict[int, str | None]


# --- At a worker ----------------------------------------------------------------------------------------------


class State(NamedTuple):
    """How far work on a part has come; by block, arrays by name."""

    number: int  # of the last step
    before: list[dict[str, NDArray[Any]]]  # it: an order that comes twice is carried out twice
    after: list[dict[str, NDArray[Any]]]


class PlacedRows:
    """The rows of a part: codes, target and weights in blocks, which never change, and the state of the work on them.

    Parameters
    ----------
    number : int
        Of the part.
    first : int
        Its first row.
    blocks : list of dict
        Arrays by name, of blocks of rows that follow each other.
    outline : Bins
        What codes stand for.
    n_scores : int
        Raw scores of a row.
    """

    def __init__(
        self, number: int, first: int, blocks: list[dict[str, NDArray[Any]]], outline: Bins, n_scores: int = 1
    ) -> None:
        self.number, self.first, self.blocks, self.outline, self.n_scores = number, first, blocks, outline, n_scores
        self.state: State | None = None

    @property
    def n_rows(self) -> int:
        """How many there are."""
        return sum(len(block[CODES]) for block in self.blocks)

    def __sizeof__(self) -> int:
        """Bytes, of what will ride on it too: Dask asks once, when the part is made."""
        held = sum(array.nbytes for block in self.blocks for array in block.values())
        return held + self.n_rows * STATE_BYTES * self.n_scores

    def parts(self, arrays: list[dict[str, NDArray[Any]]], reads: Sequence[str]) -> Iterator[Part]:
        """The blocks as tasks take them."""
        first = self.first
        for block, state in zip(self.blocks, arrays, strict=True):
            n_rows = len(block[CODES])
            found = {name: block[name] if name in block else state[name] for name in reads}
            yield Part(first, n_rows, found)
            first += n_rows

    def unpack(self, content: bytes) -> Any:
        """A task for this part."""
        return unpack(content, [self.outline.edges])

    def begin(self, base: bytes) -> list[dict[str, NDArray[Any]]]:
        """What is known of the rows when a round begins, from the trees so far."""
        start, forest, n_rounds, task, reads = self.unpack(base)

        def score(block: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
            raw = begin_raw(start, len(block[CODES]), None)
            if n_rounds:
                add_rounds(forest, range(n_rounds), decode(block[CODES], self.outline), 0, raw.shape[1], raw)
            return {RAW: raw}

        return self.do(list(do_each(score, self.blocks)), task, reads)[0]

    def do(
        self, arrays: list[dict[str, NDArray[Any]]], task: Task, reads: Sequence[str]
    ) -> tuple[list[dict[str, NDArray[Any]]], Any]:
        """What is known of the rows after a task, and the sum that it gives."""
        after, total = [], None
        for state, (kept, found) in zip(arrays, do_each(task, list(self.parts(arrays, reads))), strict=True):
            after.append({**state, **kept})
            total = found if total is None else task.join(total, found)
        return after, total

    def look(self, arrays: list[dict[str, NDArray[Any]]], task: Any, reads: Sequence[str]) -> Any:
        """The sum that a task gives, of as many blocks as it asks for."""
        total = None
        for part in self.parts(arrays, reads):
            found = task(part)[1]
            total = found if total is None else task.join(total, found)
            if task.is_enough(total):
                break
        return total

    def work(self, order: Order) -> Any:
        """Carry out an order: what it adds up, or that the part has to begin anew."""
        task, reads = self.unpack(order.step)
        number = order.number - (0 if order.is_look else 1)  # that the part has come to
        state = self.state
        if order.base is not None:
            before = self.begin(order.base)
            for step in order.earlier:
                before = self.do(before, *self.unpack(step))[0]
            self.state = State(number, before, before)
        elif state is not None and state.number == number:
            before = state.after
        elif state is not None and state.number == number + 1 and not order.is_look:
            before = state.before
        else:
            return StateGone((self.number,))
        if order.is_look:
            return self.look(before, task, reads)
        after, total = self.do(before, task, reads)
        self.state = State(order.number, before, after)
        return total


def do_each(task: Callable[[Any], Any], blocks: list[Any]) -> Iterator[Any]:
    """What a task gives for each block, in their order, by all threads of the worker."""
    n_threads = min(count_threads(), len(blocks))
    if n_threads < 2:
        yield from map(task, blocks)
        return
    with ThreadPoolExecutor(n_threads, "spinney-blocks") as pool:
        yield from pool.map(task, blocks)


def decode(rows: NDArray[np.uint8], outline: Bins) -> NDArray[np.float64]:
    """Values that trees send the way of the rows with these codes, (n_rows, n_features): the lowest of each bin."""
    bins = outline._replace(rows=rows)
    values = np.empty((len(rows), outline.n_features))
    for j in range(outline.n_features):
        first = int(outline.features[OFFSET, j])
        low = outline.edges[0, first : first + int(outline.features[N_CODES, j])]
        np.take(np.append(np.nan, low), bins.codes(j), out=values[:, j])
    return values


def work(placed: PlacedRows, order: Order) -> Found | StateGone:
    """A task of a cluster."""
    found = placed.work(order)
    return found if isinstance(found, StateGone) else Found(found, {placed.number: find_address()})


def find_address() -> str | None:
    """The worker that this is; None: none of Dask."""
    if "distributed" not in sys.modules:
        return None
    from distributed import get_worker

    try:
        return str(get_worker().address)
    except ValueError:
        return None


def work_on(given: list[Any]) -> Found | StateGone:
    """The same with both in a list, which an engine fills in."""
    return work(*given)


def join_found(found: list[Any], step: bytes) -> Found | StateGone:
    """The sum of what several parts have found; which of them are to begin anew, where some are."""
    gone = [number for one in found if isinstance(one, StateGone) for number in one.numbers]
    if gone:
        return StateGone(tuple(gone))
    task, _ = unpack(step)
    total = copy.deepcopy(
        found[0].total
    )  # a sum may be made in the place of its first part, which others may ask for again
    for one in found[1:]:
        total = task.join(total, one.total)
    return Found(total, {number: home for one in found for number, home in one.homes.items()})


def join_in_task(given: list[Any]) -> Found | StateGone:
    """The same with both in a list."""
    return join_found(*given)


# --- At the client --------------------------------------------------------------------------------------------


class LevelParts:
    """Tasks on the parts of a table that the workers of a cluster have: `tree.levels.Engine`.

    Parameters
    ----------
    engine : Engine
    parts : list of Held
        Of `PlacedRows`, in the order of the rows.
    start : float64 (n_raw,)
        Scores before the first round.
    known : sequence
        What the parts have too, and is not sent: the edges of codes, see `Bins`.
    """

    def __init__(
        self, engine: Engine, parts: list[Held], start: NDArray[np.float64], known: Sequence[Any] = ()
    ) -> None:
        self.engine, self.parts, self.start, self.known = engine, parts, start, known
        self.number = 0
        self.steps: list[bytes] = []  # of the round
        self.beginning: Beginning | None = None
        self.base: bytes | None = None
        self.gone = set(range(len(parts)))  # those that are to begin anew
        self.control: NDArray[np.int64] | None = None
        self.n_rebuilt = -len(parts)

    def pack(self, task: Any, reads: Sequence[str]) -> bytes:
        """A step, as bytes."""
        return self.pack_value((task, list(reads)))

    def pack_value(self, value: Any) -> bytes:
        """Anything for who has what the parts have, as bytes."""
        return pack(value, self.known)

    def begin_round(self, beginning: Beginning) -> None:
        """See `tree.levels.Engine`."""
        self.beginning, self.base, self.steps = beginning, None, []

    def change(self, name: str, pieces: Iterable[tuple[int, Callable[[NDArray[Any]], None]]]) -> None:
        """Scores follow from the trees: what begins a round has those of a checkpoint too."""
        del name, pieces
        self.gone = set(range(len(self.parts)))

    def check_stop(self) -> None:
        """Hear somebody who asks to stop, while workers are waited for."""
        if self.control is not None and self.control[CONTROL_STOP]:
            raise KeyboardInterrupt

    def map(self, task: Task, reads: Sequence[str], control: NDArray[np.int64] | None = None) -> Iterator[Any]:
        """What a task that keeps nothing gives for each part, in their order, of as many as are asked for."""
        self.control = control
        step = self.pack(task, reads)
        for k in range(len(self.parts)):
            found: Any = StateGone((k,))
            while isinstance(found, StateGone):
                found = self.engine.run(name_task(task), work_on, [self.parts[k], self.order(k, step, is_look=True)])
                self.note(found)
            yield found.total

    def add(self, task: Task, reads: Sequence[str], control: NDArray[np.int64] | None = None) -> Any:
        """The sum of what a task gives for all parts."""
        self.control = control
        self.check_stop()
        self.number += 1
        step = self.pack(task, reads)
        waiting, total, is_first = self.group(list(range(len(self.parts)))), None, True
        while waiting:
            again = []
            for numbers, found in self.ask(name_task(task), step, waiting):
                self.note(found)
                if isinstance(found, StateGone):
                    again.append(numbers)
                elif is_first:
                    total, is_first = copy.deepcopy(found.total), False
                else:
                    total = task.join(total, found.total)
            waiting = again
        self.steps.append(step)
        return total

    def group(self, numbers: list[int]) -> list[list[int]]:
        """Parts whose sums come to the client as one: each by itself where they are few."""
        size = 1
        while len(numbers) > FAN * size:
            size *= FAN
        return [numbers[k : k + size] for k in range(0, len(numbers), size)]

    def ask(self, name: str, step: bytes, groups: list[list[int]]) -> Iterator[tuple[list[int], Any]]:
        """The sums of groups of parts, in any order."""
        orders = [[[self.parts[k], self.order(k, step)] for k in numbers] for numbers in groups]
        if len(self.parts) <= FAN:
            jobs: list[Any] = [of[0] for of in orders]
            yield from self.collect(name, work_on, jobs, groups)
            return
        jobs, held = [], []
        for of in orders:
            nodes = [self.engine.hold(name, work, *order) for order in of]
            held += nodes
            while len(nodes) > FAN:
                nodes = [
                    self.engine.hold("sum", join_found, nodes[k : k + FAN], step) for k in range(0, len(nodes), FAN)
                ]
                held += nodes
            jobs.append([nodes, step])
        try:
            yield from self.collect("sum", join_in_task, jobs, groups)
        finally:
            self.engine.forget(held)

    def collect(
        self, name: str, task: Callable[..., Any], jobs: list[Any], groups: list[list[int]]
    ) -> Iterator[tuple[list[int], Any]]:
        """What is found by a job for each group, in any order."""
        place = {id(job): numbers for job, numbers in zip(jobs, groups, strict=True)}
        for job, found in self.engine.map(name, task, jobs):
            yield place[id(job)], found

    def order(self, k: int, step: bytes, *, is_look: bool = False) -> Order:
        """What part k is told."""
        if k not in self.gone:
            return Order(self.number, step, is_look)
        if self.base is None:
            assert self.beginning is not None
            forest, n_rounds, task, reads = self.beginning
            self.base = pack((self.start, forest() if n_rounds else None, n_rounds, task, list(reads)))
        return Order(self.number, step, is_look, self.base, tuple(self.steps))

    def note(self, found: Found | StateGone) -> None:
        """Note which parts are as far as they should be, and where."""
        if isinstance(found, StateGone):
            self.gone.update(found.numbers)
            return
        self.n_rebuilt += len(self.gone.intersection(found.homes))
        self.gone.difference_update(found.homes)
        for k, home in found.homes.items():
            self.parts[k].home = home


def name_task(task: Any) -> str:
    """What people read of a task."""
    return type(task).__name__.removesuffix("Task").lower()
