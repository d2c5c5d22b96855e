"""The loop of gradient boosting: grow a round, measure it, record it, stop or go on.

    Boosting.grow_round ──raw──► watcher.measure: losses, scores ──► watcher.record: curves, callbacks, patience

Callbacks are the user's code and run in the thread that called `fit`; the growing thread waits for them.
"""

from __future__ import annotations

import contextlib
import math
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from spinney._cost import BAR_SECONDS, BOOSTED_TREE_SECONDS, BOOSTED_VISIT_SECONDS, SHORT_SECONDS, growing_seconds
from spinney._threads import POLL_SECONDS, run_tasks
from spinney._types import CONTROL_STOP

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from spinney.ensemble.boosting import Boosting
    from spinney.ensemble.losses import Loss
    from spinney.ensemble.oob_stopping import OutOfBagCurve
    from spinney.table.sparse import Values

    AddRound = Callable[[Values, NDArray[np.float64]], None]  # of (values, raw): adds a round to other rows

Measured = dict[str, dict[str, float]]  # set of rows -> metric -> value
Curves = dict[str, dict[str, list[float]]]  # the same, a value per round

TRAIN = "train"  # what curves call the training rows


class EnoughError(Exception):
    """No more rounds are wanted."""


# --- the loop -------------------------------------------------------------------------------------------------


class RoundEngine(Protocol):
    """What grows the rounds of a model."""

    out_of_bag: OutOfBagCurve | None

    def grow_round(self, control: NDArray[np.int64]) -> None:
        """Grow a tree for each raw score, and add their values to the scores."""

    def train_loss(self) -> float:
        """The mean loss of the training rows by the rounds so far."""

    def add_last(self, values: Values, raw: NDArray[np.float64]) -> None:
        """Add the last round to the scores (n_raw, n_rows) of other rows."""


class RoundWatcher(Protocol):
    """What watches the rounds of a model while it is boosted."""

    @property
    def has_callbacks(self) -> bool:
        """Whether `record` calls the user's code, and so must run in the thread that called `fit`."""

    @property
    def verbose(self) -> int:
        """0: no progress is shown."""

    def measure(self, train_loss: Callable[[], float], add_round: AddRound) -> Measured:
        """Losses and scores after a round; in the growing thread."""

    def record(self, measured: Measured) -> bool:
        """Note what was measured; whether that was the last round wanted."""


def grow_rounds(
    engine: RoundEngine,
    watcher: RoundWatcher,
    n_rounds: int,
    *,
    is_short: bool,
    on_round: Callable[[bool], None] | None = None,
) -> None:
    """Grow up to `n_rounds` rounds, each measured and recorded.

    is_short: whether a round is over before anyone could interrupt it, so that the calling thread may grow it.
    on_round: told after each round, before the next is begun, whether it is the last one.
    """
    verdicts: SimpleQueue[bool] = SimpleQueue()
    has_callbacks = watcher.has_callbacks

    def is_enough() -> bool:
        return engine.out_of_bag is not None and engine.out_of_bag.is_enough

    def judge(measured: Measured) -> None:
        is_last = watcher.record(measured) or is_enough()
        if on_round is not None:
            on_round(is_last)
        verdicts.put(is_last)

    def work(task: int, control: NDArray[np.int64]) -> Measured:
        if task > 0 and wait_for_verdict(verdicts, control):
            raise EnoughError
        engine.grow_round(control)
        measured = watcher.measure(engine.train_loss, engine.add_last)
        if not has_callbacks:
            judge(measured)
        return measured

    def take(_: int, measured: Measured) -> None:
        if has_callbacks:
            judge(measured)

    with contextlib.suppress(EnoughError):
        run_tasks(
            work,
            n_rounds,
            1,
            on_done=take,
            is_short=is_short,
            label="boosting",
            unit="rounds",
            verbose=watcher.verbose > 0,
        )


def is_brief(engine: Boosting, n_rounds: int) -> bool:
    """Whether a round is over before anyone could interrupt it, and all rounds need no progress bar, by bytes of rows.

    A one-hot block is one byte. By the columns of mushroom in one-hot columns another thread grew its rounds, and a
    tenth of the time went to that.
    """
    params, n_rows = engine.params, engine.n_rows
    n_leaves = n_rows if params.max_leaf_nodes is None else min(params.max_leaf_nodes, n_rows)
    n_levels = min((max(n_leaves, 2) - 1).bit_length(), params.max_depth or math.inf)
    n_raw, n_bytes = engine.loss.n_raw, engine.growth.n_summed
    seconds = growing_seconds(n_rows, n_bytes, n_raw, BOOSTED_VISIT_SECONDS, n_levels)
    seconds += engine.trees_per_round * BOOSTED_TREE_SECONDS
    return seconds < SHORT_SECONDS and n_rounds * seconds < BAR_SECONDS


def wait_for_verdict(verdicts: SimpleQueue[bool], control: NDArray[np.int64]) -> bool:
    """Whether the last round was enough; there is no verdict if the calling thread has failed."""
    while not control[CONTROL_STOP]:
        try:
            return verdicts.get(timeout=POLL_SECONDS)
        except Empty:
            continue
    raise KeyboardInterrupt


# --- what is watched ------------------------------------------------------------------------------------------


@dataclass
class EvaluationSet:
    """Rows that no tree learns from.

    Attributes
    ----------
    name : str
        What curves call it.
    values : float32 or float64 (n_rows, n_features), or SparseRows
    y : float64 (n_rows,)
        As the loss takes it: class codes or numbers.
    weight : float64 (n_rows,), or None for 1 each
    offset : float64 (n_raw, n_rows), optional
        Raw scores that the rows bring along.
    score : callable, optional
        Of raw scores (n_raw, n_rows): a number, of which more is better. None: the loss is all there is.
    raw : float64 (n_raw, n_rows)
        Scores by the rounds so far.
    """

    name: str
    values: Values
    y: NDArray[np.float64]
    weight: NDArray[np.float64] | None
    offset: NDArray[np.float64] | None
    score: Callable[[NDArray[np.float64]], float] | None = None
    raw: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))


@dataclass(frozen=True)
class StoppingRule:
    """When to stop."""

    n_iter_no_change: int | None = None  # rounds without a better value of the rows that judge; None: never
    tol: float = 0.0  # a round is better if it is by more than this
    deadline: float = math.inf  # by time.monotonic


@dataclass
class Monitor:
    """Learning curves under way, and the judge of each round.

    Attributes
    ----------
    loss : Loss
    y, weight
        Of the training rows.
    evaluation_sets : sequence of EvaluationSet
        The last one decides about stopping; where there is none, the loss of the training rows does.
    metric : str
        What the scores of the evaluation sets are called; "loss" if they have none.
    rule : StoppingRule
    callbacks : sequence of callables
        Each called after a round with (iteration, measured); True stops.
    verbose : int
        1: print some rounds; 2: all.
    curves : dict
        set -> metric -> one value per round.
    n_rounds, best_round : int
        Rounds so far, and after which of them the last evaluation set was predicted best.
    """

    loss: Loss
    y: NDArray[np.float64]
    weight: NDArray[np.float64] | None
    evaluation_sets: Sequence[EvaluationSet] = ()
    metric: str = "loss"
    rule: StoppingRule = field(default_factory=StoppingRule)
    callbacks: Sequence[Callable[[int, Measured], Any]] = ()
    verbose: int = 0
    curves: Curves = field(default_factory=dict)
    n_rounds: int = 0
    best_round: int = 0
    best_value: float = math.inf
    first_round: int = 0  # patience is counted from here
    is_replay: bool = False

    def __post_init__(self) -> None:
        """Lay out the curves."""
        self.has_score = self.metric != "loss"
        self.has_loss = has_loss = self.loss.name != "custom"  # derivatives tell no value
        self.is_watched = has_loss or bool(self.evaluation_sets) or self.has_callbacks or self.verbose > 0
        if self.rule.n_iter_no_change is not None and not has_loss and not self.has_score:
            raise ValueError(
                "n_iter_no_change with a loss of your own: its derivatives tell no value, so that scoring='loss' "
                "cannot stop early; give the name of a scorer or a function as scoring"
            )
        if has_loss:
            self.curves[TRAIN] = {"loss": []}
        for rows in self.evaluation_sets:
            self.curves[rows.name] = {name: [] for name in ["loss"] * has_loss + [self.metric] * self.has_score}

    @property
    def has_callbacks(self) -> bool:
        """Whether there are functions of the user to call."""
        return bool(self.callbacks)

    # --- measuring: in the growing thread ---

    def measure(self, train_loss: Callable[[], float], add_round: AddRound) -> Measured:
        """Losses and scores after a round.

        train_loss : callable
            Gives the mean loss of the training rows.
        add_round : callable
            Of (values, raw): adds the round to the scores of other rows.
        """
        if not self.is_watched:
            return {}
        measured: Measured = {}
        if TRAIN in self.curves:
            measured[TRAIN] = {"loss": train_loss()}
        for rows in self.evaluation_sets:
            add_round(rows.values, rows.raw)
            measured[rows.name] = self.measure_set(rows)
        return measured

    def measure_set(self, rows: EvaluationSet) -> dict[str, float]:
        """Loss and score of rows by their raw scores."""
        values = {}
        if self.has_loss:
            values["loss"] = self.loss.value(rows.y, rows.weight, rows.raw)
        if rows.score is not None:
            values[self.metric] = rows.score(rows.raw)
        return values

    # --- recording: in the thread that called fit where there are callbacks ---

    def record(self, measured: Measured) -> bool:
        """Note a round; whether it is the last one wanted."""
        self.n_rounds += 1
        for group, metrics in measured.items():
            for name, value in metrics.items():
                if math.isnan(value):
                    raise ValueError(
                        f"round {self.n_rounds}: the {name} of the {group} rows is not a number (NaN); look at "
                        "the scoring, or at what it is given"
                    )
                self.curves[group][name].append(value)
        self._note_best(measured)
        if self.is_replay:
            return False
        self._print(measured)
        is_last = self._call_back(measured)
        return is_last or time.monotonic() >= self.rule.deadline or self._is_out_of_patience()

    def _note_best(self, measured: Measured) -> None:
        if self.rule.n_iter_no_change is None:
            self.best_round = self.n_rounds
            return
        judge = self.evaluation_sets[-1].name if self.evaluation_sets else TRAIN
        value = measured[judge][self.metric]
        value = -value if self.has_score else value
        if value < self.best_value - self.rule.tol or self.best_round == 0:
            self.best_round, self.best_value = self.n_rounds, value

    def _is_out_of_patience(self) -> bool:
        patience = self.rule.n_iter_no_change
        return patience is not None and self.n_rounds - max(self.best_round, self.first_round) >= patience

    def _call_back(self, measured: Measured) -> bool:
        is_last = False
        for callback in self.callbacks:
            answer = callback(self.n_rounds, {group: dict(metrics) for group, metrics in measured.items()})
            if not isinstance(answer, bool | np.bool_ | None):
                raise TypeError(
                    f"callbacks: {getattr(callback, '__name__', callback)!r} returned {answer!r} after round "
                    f"{self.n_rounds}; return True to stop, else False or nothing"
                )
            is_last = is_last or bool(answer)
        return is_last

    def _print(self, measured: Measured) -> None:
        """Print a line, for `verbose`: of each round if 2 or more, else of fewer and fewer."""
        n = self.n_rounds
        if self.verbose == 0 or (self.verbose == 1 and n % 10 ** (len(str(n)) - 1)):
            return
        parts = [f"{group} {name} {value:.6g}" for group, of in measured.items() for name, value in of.items()]
        # the line of a progress bar, which is drawn again a moment later
        wipe = "\r\x1b[K" if sys.stderr is not None and sys.stderr.isatty() else ""
        print(f"{wipe}round {n:>5}  {'  '.join(parts)}", flush=True)  # noqa: T201

    # --- rounds that there are already ---

    def resume(self, curves: Curves, n_rounds: int) -> None:
        """Note the rounds of an earlier run again, by its curves."""
        self.is_replay = True
        for i in range(n_rounds):
            self.record({group: {name: values[i] for name, values in of.items()} for group, of in curves.items()})
        self.is_replay = False

    def replay(
        self,
        n_rounds: int,
        add_rounds: Callable[[range, Values, NDArray[np.float64]], None],
        values: Values,
        raw: NDArray[np.float64],
    ) -> None:
        """Go through the rounds of a model that is grown further, and bring scores up to date.

        n_rounds : int
        add_rounds : callable
            Of (rounds, values, raw): adds some of them to raw scores.
        values, raw : those of the training rows, (n_rows, n_features) and (n_raw, n_rows)
        """
        self.is_replay = True
        steps = [range(t, t + 1) for t in range(n_rounds)] if self.is_watched else [range(n_rounds)]
        for rounds in steps:
            if self.loss.name == "huber":  # its delta may follow the rounds
                self.loss.begin_round(self.y, self.weight, raw)
            add_round = partial(add_rounds, rounds)
            add_round(values, raw)
            if self.is_watched:
                self.record(self.measure(partial(self.loss.value, self.y, self.weight, raw), add_round))
        self.n_rounds = self.first_round = n_rounds
        if self.rule.n_iter_no_change is None:
            self.best_round = n_rounds
        self.is_replay = False
