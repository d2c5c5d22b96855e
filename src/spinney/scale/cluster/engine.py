"""Who does the work of a fit: tasks over parts, added up, through whatever is lost on the way.

    parts ──map──► task(held, part), in any order, those that are lost begun again ──► (part, result) as they come
    parts ──add──► the sum of the results

An engine says how one task is begun and what has become of it (`start`, `wait`); repeating, patience and adding up are
the same for all: threads here, a cluster (`dask_engine.py`), and one of the tests that loses at random. Tasks
are pure: whoever runs one, once or three times, its result is the same, and sums are of integers. So no engine, and no
loss, shows in a model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from spinney._threads import POLL_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import TracebackType

PATIENCE = 5
"""Waves of losses, without a single result between them, after which an engine gives up."""

SHORT_AHEAD = 64
"""Short tasks for each that is worth having under way."""

NOTHING = object()


class LostError(RuntimeError):
    """Work was lost again and again without any result: the cause is the error it comes from."""


class Lost(NamedTuple):
    """What has become of a task whose worker, or whose input, is gone."""

    cause: BaseException | None


class Failed(NamedTuple):
    """What has become of a task that has raised an error of its own: another try would raise it again."""

    error: BaseException


class Done(NamedTuple):
    """What has become of a task that has ended well."""

    result: Any


Outcome = Lost | Failed | Done


class Held:
    """A value that workers hold for many tasks, made of others, and made again where it is lost.

    Parameters
    ----------
    name : str
        For people.
    make : callable
        Pure; gives the value.
    sources : tuple
        Arguments of `make`.
    turn : int, optional
        Values of other turns had better be at other workers.
    """

    def __init__(self, name: str, make: Callable[..., Any], sources: tuple[Any, ...], turn: int | None = None) -> None:
        self.name, self.make, self.sources, self.turn = name, make, sources, turn
        self.value: Any = NOTHING  # or what stands for it, once it is asked for
        self.home: str | None = None  # the worker that tasks with it had better go to, where that is known
        self.is_large = False  # to be made where there is most memory


class Engine(ABC):
    """Who runs tasks.

    Attributes
    ----------
    n_lost : int
        Tasks that were begun again.
    patience : int
        See `PATIENCE`.
    n_now, n_most : int
        Workers that there are, and that there were at most.
    on_idle : callable, optional
        Called while it waits.
    """

    def __init__(self, patience: int = PATIENCE) -> None:
        self.n_lost = 0
        self.patience = patience
        self.n_now = self.n_most = 1
        self.on_idle: Callable[[], None] | None = None

    # --- what an engine has to say ---

    @abstractmethod
    def count_slots(self) -> int:
        """How many tasks are worth having under way."""

    @abstractmethod
    def start(self, name: str, task: Callable[..., Any], part: Any, held: Held | None) -> Any:
        """Begin a task; returns what it is known by: a new value each time."""

    @abstractmethod
    def wait(self) -> list[tuple[Any, Outcome]]:
        """What has become of some tasks; empty after a short while without news."""

    def mend(self, values: Iterable[Any]) -> None:  # noqa: B027  (most have nothing to mend)
        """See after a loss which of these values, and of what they are made of, have to be made again."""

    def compile_first(self) -> None:  # noqa: B027
        """See that of the tasks to come no two compile the same kernels side by side."""

    def release(self, values: Iterable[Any]) -> None:  # noqa: B027
        """Let workers forget values that are not needed any more; where they are after all, they are made again."""

    def hold_all(self, values: list[Held]) -> None:  # noqa: B027
        """Begin to make values that have sources in common."""

    def forget(self, values: Iterable[Held]) -> None:
        """Let workers forget values that nobody will ask for again."""
        self.release(values)

    def count_threads(self) -> int:
        """How many tasks run at a time: as many parts a table is cut into."""
        return self.count_slots()

    def threads_each(self) -> int:
        """How many threads a task may use, one task for each worker; 1 where workers differ."""
        return 1

    def memory_each(self) -> int | None:
        """Bytes of memory for each thread, of the worker with least; None: no limit."""
        return None

    def drop(self, tickets: Iterable[Any]) -> None:  # noqa: B027
        """Forget tasks that are under way: nobody wants their results any more."""

    def close(self) -> None:  # noqa: B027
        """Leave nothing behind."""

    # --- what all do alike ---

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def hold(self, name: str, make: Callable[..., Any], *sources: Any, turn: int | None = None) -> Held:
        """Let workers hold `make(*sources)`; sources may be values that are held themselves, also in lists."""
        return Held(name, make, sources, turn)

    def map(
        self,
        name: str,
        task: Callable[..., Any],
        parts: Iterable[Any],
        held: Held | None = None,
        *,
        is_short: bool = False,
    ) -> Iterator[tuple[Any, Any]]:
        """Run `task(part)`, or `task(held value, part)`, for every part.

        Parameters
        ----------
        name : str
            For people, such as "tree".
        task : callable
            Pure, and importable by a worker.
        parts : iterable
            Taken one by one, as tasks can begin: a later part may depend on earlier results. One may be a value that
            is held, or a list with such values in it.
        held : Held, optional
        is_short : bool
            Tasks take next to nothing: many are begun at once.

        Yields
        ------
        part, result
            As they come, in any order.
        """
        work = _Work(self, name, task, iter(parts), held)
        work.n_ahead = SHORT_AHEAD if is_short else 1
        try:
            while work.begin():
                for ticket, outcome in self.wait():
                    if isinstance(outcome, Failed):
                        raise outcome.error
                    if isinstance(outcome, Done):
                        yield work.take(ticket), outcome.result
                    else:
                        work.lose(ticket, outcome.cause)
        finally:
            self.drop(list(work.running))

    def run(self, name: str, task: Callable[..., Any], part: Any, held: Held | None = None) -> Any:
        """Run one task."""
        return next(iter([result for _, result in self.map(name, task, [part], held)]))

    def add(
        self,
        name: str,
        task: Callable[..., Any],
        parts: Iterable[Any],
        plus: Callable[[Any, Any], Any],
        held: Held | None = None,
    ) -> Any:
        """The sum of the results of all parts; plus: exact, so that the order of sums makes no difference."""
        total: Any = NOTHING
        for _, result in self.map(name, task, parts, held):
            total = result if total is NOTHING else plus(total, result)
        if total is NOTHING:
            raise ValueError("there is no part to add up")
        return total


class _Work:
    """Tasks of one `map`: which are under way, and which have to be begun again.

    A *wave* is all that was begun before a loss was seen: a worker that goes takes many tasks with it, and that is one
    misfortune. Misfortunes in a row, without a result between them, are counted.
    """

    def __init__(
        self, engine: Engine, name: str, task: Callable[..., Any], waiting: Iterator[Any], held: Held | None
    ) -> None:
        self.engine, self.name, self.task, self.waiting, self.held = engine, name, task, waiting, held
        self.again: deque[Any] = deque()
        self.running: dict[Any, tuple[Any, int]] = {}  # ticket: its part, and the wave that it was begun in
        self.wave = self.n_in_vain = 0
        self.n_ahead = 1

    def begin(self) -> bool:
        """Begin as many tasks as there is room for; False where all are done."""
        while len(self.running) < self.n_ahead * self.engine.count_slots():
            part = self.again.popleft() if self.again else next(self.waiting, NOTHING)
            if part is NOTHING:
                break
            self.running[self.engine.start(self.name, self.task, part, self.held)] = part, self.wave
        return bool(self.running)

    def take(self, ticket: Any) -> Any:
        """The part of a task that is done."""
        self.n_in_vain = 0
        return self.running.pop(ticket)[0]

    def lose(self, ticket: Any, cause: BaseException | None) -> None:
        """Note a loss; raises after too many."""
        part, wave = self.running.pop(ticket)
        self.engine.n_lost += 1
        self.again.append(part)
        self.engine.mend([self.held, part])  # of each: others of its wave may have lost other inputs
        if wave < self.wave:
            return
        self.wave, self.n_in_vain = self.wave + 1, self.n_in_vain + 1
        if self.n_in_vain > self.engine.patience:
            raise tell_loss(self.name, part, self.n_in_vain, cause)


def tell_loss(name: str, part: Any, n_in_vain: int, cause: BaseException | None) -> LostError:
    """The error of an engine that gives up."""
    error = LostError(
        f"the work was lost {n_in_vain} times without a result between, last spinney-{name} {part!r:.60}: "
        f"{cause!r:.300}. Workers that run out of memory end so: give them more, or set checkpoint= to go on later."
    )
    error.__cause__ = cause
    return error


class ThreadEngine(Engine):
    """Threads of this process.

    Parameters
    ----------
    n_workers : int
    """

    def __init__(self, n_workers: int) -> None:
        from concurrent.futures import ThreadPoolExecutor

        super().__init__()
        self.n_workers = self.n_now = self.n_most = n_workers
        self.pool = ThreadPoolExecutor(n_workers, "spinney-engine")
        self.done: SimpleQueue[Any] = SimpleQueue()

    def count_slots(self) -> int:
        """One task for each thread, and one that waits for it."""
        return 2 * self.n_workers

    def count_threads(self) -> int:
        """One task for each."""
        return self.n_workers

    def start(self, name: str, task: Callable[..., Any], part: Any, held: Held | None) -> Any:  # noqa: ARG002
        """Hand a task to the threads; values that are held are made here."""
        given = fill_in(part, find_value)
        future = self.pool.submit(task, given) if held is None else self.pool.submit(task, find_value(held), given)
        future.add_done_callback(self.done.put)
        return future

    def wait(self) -> list[tuple[Any, Outcome]]:
        """The next task that has ended."""
        try:
            future = self.done.get(timeout=POLL_SECONDS)
        except Empty:
            return []
        error = None if future.cancelled() else future.exception()
        return [(future, Done(future.result()) if error is None else Failed(error))]

    def drop(self, tickets: Iterable[Any]) -> None:
        """Begin none of them that has not begun."""
        for future in tickets:
            future.cancel()

    def close(self) -> None:
        """End the threads."""
        self.pool.shutdown(cancel_futures=True)


def find_value(held: Held) -> Any:
    """The value that is held, made in this process if it is not there."""
    if held.value is NOTHING:
        held.value = held.make(*(fill_in(one, find_value) for one in held.sources))
    return held.value


def find_home(values: Iterable[Any]) -> str | None:
    """The worker that a task with these values had better go to."""
    return next((value.home for value in values if isinstance(value, Held) and value.home is not None), None)


def fill_in(value: Any, find: Callable[[Held], Any]) -> Any:
    """A value with those that are held in their places, in lists too."""
    if isinstance(value, Held):
        return find(value)
    return [fill_in(item, find) for item in value] if type(value) is list else value
