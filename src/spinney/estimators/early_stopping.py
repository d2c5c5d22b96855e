"""What is watched while a model is boosted: the losses and scores of each round, and when to stop.

    round ──trees, raw──► measure: held-out raw, losses, scores ──► judge: curves, callbacks, time, patience ──► stop?

Callbacks are the user's code and run in the thread that called `fit`; the growing thread waits for them.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import accuracy_score, get_scorer, r2_score
from sklearn.metrics._scorer import _BaseScorer

from spinney._elementary import log
from spinney._threads import POLL_SECONDS, run_tasks
from spinney._types import CONTROL_STOP
from spinney._warnings import warn
from spinney.ensemble.sampling import Draw
from spinney.estimators.scoring import find_score, is_scorer
from spinney.model.boosted_scores import add_rounds
from spinney.tree.forest import Forest

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from spinney.ensemble.boosting import Boosting
    from spinney.ensemble.losses import Loss

Measured = dict[str, dict[str, float]]  # set -> metric -> value
Curves = dict[str, dict[str, list[float]]]


class EnoughError(Exception):
    """No more rounds are wanted."""


@dataclass
class Holdout:
    """Rows that no tree learns from.

    Attributes
    ----------
    X : Any
        As the user has it, for scorers.
    values : float32 or float64 (n_rows, n_features)
    y : float64 (n_rows,)
        As the loss takes it: class codes or numbers.
    truth : (n_rows,)
        As scorers take it.
    weight : float64 (n_rows,), or None for 1 each
    offset : float64 (n_raw, n_rows), optional
    raw : float64 (n_raw, n_rows)
        Scores by the rounds so far.
    """

    X: Any
    values: NDArray[Any]
    y: NDArray[np.float64]
    truth: NDArray[Any]
    weight: NDArray[np.float64] | None
    offset: NDArray[np.float64] | None
    raw: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 0)))


def draw_held(
    fraction: float,
    n_rows: int,
    is_used: NDArray[np.bool_] | None,
    codes: NDArray[np.int32] | None,
    seed: int,
    *,
    is_told: bool = True,
    way_out: str = "give X_val and y_val",
) -> NDArray[np.bool_]:
    """Rows that validate, (n_rows,), drawn from those that are used; from each class (codes) in proportion.

    fraction: of the rows, rounded up, or their number. Every class keeps a row to learn from; is_told: a warning
    says so where it is its only one. Messages end with what else can be done (way_out).
    """
    chance = np.ones(n_rows) if is_used is None else is_used.astype(np.float64)
    n_used = int(chance.sum())
    n_held = int(fraction) if isinstance(fraction, int | np.integer) else math.ceil(fraction * n_used)
    if n_held >= n_used:
        raise ValueError(
            f"validation_fraction={fraction} holds out {n_held} of {n_used} sample(s), so that none is left to "
            f"learn from: lower it, or {way_out}"
        )
    if codes is not None:
        n_of_class = np.bincount(codes, chance)
        is_lone = n_of_class[codes] == 1.0
        chance[is_lone] = 0.0
        n_lone = int(np.count_nonzero(n_of_class == 1.0))
        if n_lone and is_told:
            warn(
                f"Of {n_lone} of the {len(n_of_class)} classes there is a single row, which is needed to learn from: "
                f"early stopping knows nothing of them. To change that, {way_out}."
            )
        if n_held > chance.sum():
            raise ValueError(
                f"validation_fraction={fraction} holds out {n_held} rows, but only {int(chance.sum())} are of classes "
                f"with more than one row: lower it, or {way_out}"
            )
    is_held = Draw("paste", n_rows, n_held, seed, chance, codes).counts(0) > 0
    if codes is not None:  # a class of few rows may have given all
        n_left = np.bincount(codes, chance * ~is_held)
        for code in np.flatnonzero((n_left == 0.0) & (np.bincount(codes, is_held) > 0.0)):
            is_held[np.flatnonzero(is_held & (codes == code))[0]] = False
    return is_held


class RoundAnswers:
    """What a scorer takes for a fitted model: it knows its answers to the held-out X, and to no other."""

    def __init__(self, model: Any, X: Any, answers: NDArray[np.float64], raw: NDArray[np.float64]) -> None:
        self.model, self.X, self.answers, self.raw = model, X, answers, raw
        if hasattr(model, "classes_"):
            self.classes_ = model.classes_

    def __sklearn_tags__(self) -> Any:
        return self.model.__sklearn_tags__()

    def _check(self, X: Any) -> None:
        if X is not self.X:
            raise ValueError("scoring: while a model is boosted, a scorer can have predictions for its own X only")

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class probabilities."""
        self._check(X)
        return self.answers

    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Raw scores."""
        self._check(X)
        return self.raw[0] if len(self.raw) == 1 else self.raw.T

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class, the first among equals; or numbers."""
        self._check(X)
        if not hasattr(self, "classes_"):
            return self.answers
        return self.classes_[self.answers[:, : len(self.classes_)].argmax(axis=1)]

    def predict_log_proba(self, X: Any) -> NDArray[np.float64]:
        """Logarithms of class probabilities."""
        return log(self.predict_proba(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy or R²."""
        metric = accuracy_score if hasattr(self, "classes_") else r2_score
        return float(metric(y, self.predict(X), sample_weight=sample_weight))

    def __getattr__(self, name: str) -> Any:
        """Whatever else the model has; copies and pickles ask for dunders before there is a model."""
        if name.startswith("__") or "model" not in vars(self):
            raise AttributeError(name)
        return getattr(self.model, name)


def name_score(scoring: Any) -> str:
    """What learning curves call a score."""
    if isinstance(scoring, str):
        return scoring
    function = scoring._score_func if isinstance(scoring, _BaseScorer) else scoring  # noqa: SLF001
    name = getattr(function, "__name__", "score")
    return "score" if name in {"loss", "<lambda>"} else str(name)


def weigh_score(scoring: Any, weight: NDArray[np.float64] | None) -> Any:
    """The scoring with the weights of the held-out rows, where it takes weights."""
    if weight is None:
        return scoring
    if isinstance(scoring, str):
        try:
            scoring = get_scorer(scoring)
        except ValueError:  # `find_score` says so in better words
            return scoring
    try:
        known = inspect.signature(scoring._score_func if isinstance(scoring, _BaseScorer) else scoring)  # noqa: SLF001
    except (TypeError, ValueError):  # written in C, or no function at all
        return scoring
    if "sample_weight" not in known.parameters:
        return scoring
    if is_scorer(scoring):
        return lambda model, X, y: scoring(model, X, y, sample_weight=weight)
    return lambda y_true, y_pred: scoring(y_true, y_pred, sample_weight=weight)


@dataclass
class Watch:
    """What the user wants to know, and when to stop."""

    scoring: Any = "loss"  # or a scorer, its name, or a metric: higher is better
    n_iter_no_change: int | None = None
    tol: float = 0.0
    deadline: float = math.inf  # by time.monotonic
    callbacks: Sequence[Callable[[int, Measured], Any]] = ()
    verbose: int = 0


@dataclass
class Monitor:
    """Learning curves under way, and the judge of each round.

    Attributes
    ----------
    model : estimator
        Whose classes and tags count.
    loss : Loss
    respond : callable
        From raw scores to answers in the user's units.
    y, weight
        Of the training rows.
    holdout : Holdout, optional
    watch : Watch
    curves : dict
        set -> metric -> one value per round.
    n_rounds, best_round : int
        Rounds so far, and after which of them the held-out rows were predicted best.
    """

    model: Any
    loss: Loss
    respond: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    y: NDArray[np.float64]
    weight: NDArray[np.float64] | None
    holdout: Holdout | None
    watch: Watch
    curves: Curves = field(default_factory=dict)
    n_rounds: int = 0
    best_round: int = 0
    best_value: float = math.inf
    is_replay: bool = False

    def __post_init__(self) -> None:
        """Read the scoring: a misspelt name is told before anything is grown."""
        watch = self.watch
        self.first_round = 0  # patience is counted from here
        self.has_score = self.holdout is not None and watch.scoring != "loss"
        self.metric = name_score(watch.scoring) if self.has_score else "loss"
        self.score: Any = None
        if self.has_score and self.holdout is not None:
            self.score = find_score(weigh_score(watch.scoring, self.holdout.weight), "scoring")
        elif watch.scoring != "loss":
            find_score(watch.scoring, "scoring")  # no rows to score, but no misspelt name either
        self.is_watched = self.holdout is not None or bool(watch.callbacks) or watch.verbose > 0
        self.has_loss = has_loss = self.loss.name != "custom"  # derivatives tell no value
        if watch.n_iter_no_change is not None and not has_loss and not self.has_score:
            raise ValueError(
                "n_iter_no_change with a loss of your own: its derivatives tell no value, so that scoring='loss' "
                "cannot stop early; give the name of a scorer or a function as scoring"
            )
        if self.is_watched and has_loss:
            self.curves["train"] = {"loss": []}
        if self.holdout is not None:
            self.curves["valid"] = {name: [] for name in ["loss"] * has_loss + [self.metric] * self.has_score}

    # --- measuring: in the growing thread ---

    def measure(
        self, raw: NDArray[np.float64], advance: Callable[[NDArray[Any], NDArray[np.float64]], None]
    ) -> Measured:
        """Losses and scores after a round.

        raw : float64 (n_raw, n_rows)
            Scores of the training rows.
        advance : callable
            Of (values, raw): adds the round to the scores of other rows.
        """
        if not self.is_watched:
            return {}
        measured: Measured = {}
        if "train" in self.curves:
            measured["train"] = {"loss": self.loss.value(self.y, self.weight, raw)}
        if self.holdout is not None:
            advance(self.holdout.values, self.holdout.raw)
            measured["valid"] = self._measure_holdout(self.holdout)
        return measured

    def _measure_holdout(self, holdout: Holdout) -> dict[str, float]:
        values = {}
        if self.has_loss:
            values["loss"] = self.loss.value(holdout.y, holdout.weight, holdout.raw)
        if self.score is not None:
            view = RoundAnswers(self.model, holdout.X, self.respond(holdout.raw), holdout.raw)
            values[self.metric] = self.score(view, holdout.X, holdout.truth)
        return values

    # --- judging: in the thread that called fit where there are callbacks ---

    def judge(self, measured: Measured) -> bool:
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
        self._say(measured)
        is_last = self._call_back(measured)
        return is_last or time.monotonic() >= self.watch.deadline or self._is_stale()

    def _note_best(self, measured: Measured) -> None:
        if self.watch.n_iter_no_change is None:
            self.best_round = self.n_rounds
            return
        value = measured["valid"][self.metric]
        value = -value if self.has_score else value
        if value < self.best_value - self.watch.tol or self.best_round == 0:
            self.best_round, self.best_value = self.n_rounds, value

    def _is_stale(self) -> bool:
        patience = self.watch.n_iter_no_change
        return patience is not None and self.n_rounds - max(self.best_round, self.first_round) >= patience

    def _call_back(self, measured: Measured) -> bool:
        is_last = False
        for callback in self.watch.callbacks:
            answer = callback(self.n_rounds, {group: dict(metrics) for group, metrics in measured.items()})
            if not isinstance(answer, bool | np.bool_ | None):
                raise TypeError(
                    f"callbacks: {getattr(callback, '__name__', callback)!r} returned {answer!r} after round "
                    f"{self.n_rounds}; return True to stop, else False or nothing"
                )
            is_last = is_last or bool(answer)
        return is_last

    def _say(self, measured: Measured) -> None:
        """Print a line, for `verbose`: of each round if 2 or more, else of fewer and fewer."""
        n = self.n_rounds
        if self.watch.verbose == 0 or (self.watch.verbose == 1 and n % 10 ** (len(str(n)) - 1)):
            return
        parts = [f"{group} {name} {value:.6g}" for group, of in measured.items() for name, value in of.items()]
        # the line of a progress bar, which is drawn again a moment later
        wipe = "\r\x1b[K" if sys.stderr is not None and sys.stderr.isatty() else ""
        print(f"{wipe}round {n:>5}  {'  '.join(parts)}", flush=True)  # noqa: T201

    # --- rounds ---

    def replay(self, forest: Forest, values: NDArray[Any], raw: NDArray[np.float64]) -> None:
        """Go through the rounds of a model that is grown further, and bring scores up to date.

        values, raw : those of the training rows, (n_rows, n_features) and (n_raw, n_rows).
        """
        n_rounds = len(forest) // len(raw)
        self.is_replay = True
        steps = [range(t, t + 1) for t in range(n_rounds)] if self.is_watched else [range(n_rounds)]
        for rounds in steps:
            if self.loss.name == "huber":  # its delta may follow the rounds
                self.loss.begin_round(self.y, self.weight, raw)
            advance = partial(add_some_rounds, forest, rounds)
            advance(values, raw)
            if self.is_watched:
                self.judge(self.measure(raw, advance))
        self.n_rounds = self.first_round = n_rounds
        if self.watch.n_iter_no_change is None:
            self.best_round = n_rounds
        self.is_replay = False


def add_some_rounds(forest: Forest, rounds: range, values: NDArray[Any], raw: NDArray[np.float64]) -> None:
    """Add what rounds of trees say of all rows to their scores."""
    add_rounds(forest, rounds, values, 0, len(values), raw)


def grow_rounds(engine: Boosting, monitor: Monitor, n_rounds: int, *, is_short: bool) -> Forest:
    """Grow up to `n_rounds` rounds, each measured and judged."""
    verdicts: SimpleQueue[bool] = SimpleQueue()
    has_callbacks = bool(monitor.watch.callbacks)

    def work(task: int, control: NDArray[np.int64]) -> Measured:
        if task > 0 and wait_for(verdicts, control):
            raise EnoughError
        engine.grow_round(control)
        measured = monitor.measure(engine.raw, engine.add_last)
        if not has_callbacks:
            verdicts.put(monitor.judge(measured))
        return measured

    def take(_: int, measured: Measured) -> None:
        if has_callbacks:
            verdicts.put(monitor.judge(measured))

    with contextlib.suppress(EnoughError):
        run_tasks(
            work,
            n_rounds,
            1,
            on_done=take,
            is_short=is_short,
            label="boosting",
            unit="rounds",
            verbose=monitor.watch.verbose > 0,
        )
    return engine.forest()


def wait_for(verdicts: SimpleQueue[bool], control: NDArray[np.int64]) -> bool:
    """The verdict on the last round; it never comes if the calling thread has failed."""
    while not control[CONTROL_STOP]:
        try:
            return verdicts.get(timeout=POLL_SECONDS)
        except Empty:
            continue
    raise KeyboardInterrupt
