"""Stop boosting by the rows that each round leaves out.

A round that is grown on a part of the rows predicts the others, its out-of-bag rows, better or worse than the rounds
before. The sum of these improvements rises while rounds learn what holds for other rows too, and falls when they learn
the training rows by heart. It ends early (Ridgeway 2007): the out-of-bag rows of a round were training rows of others,
so that little is left to improve on. Twice the rounds up to its highest point came nearest to the lowest loss on the
tables that chose the rule (docs/decisions/0020-defaults.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

FACTOR = 2  # rounds for each one up to the highest point
FEWEST = 20  # rounds that are grown in any case: before, the highest point is chance
MOST_ROWS = 8192  # out-of-bag rows that a round is judged by


@dataclass
class OutOfBagCurve:
    """What rounds have done to the rows that they left out.

    Attributes
    ----------
    improvement : list of float
        By how much each round has lowered the mean loss of its out-of-bag rows; 0 where it left none out.
    score : list of float
        That loss after the round; NaN where it left none out.
    stop : OutOfBagStop, optional
        Told of every round.
    """

    improvement: list[float] = field(default_factory=list)
    score: list[float] = field(default_factory=list)
    stop: OutOfBagStop | None = None

    def note(self, before: float, after: float) -> None:
        """Add a round, by the loss of its out-of-bag rows before and after it; NaN where there are none."""
        improvement = 0.0 if math.isnan(after) else before - after
        self.improvement.append(improvement)
        self.score.append(after)
        if self.stop is not None:
            self.stop.note(improvement)

    def resume(self, improvement: list[float], score: list[float]) -> None:
        """Begin with the rounds of an earlier run."""
        self.improvement, self.score = list(improvement), list(score)
        if self.stop is not None:
            for one in improvement:
                self.stop.note(one)

    @property
    def is_enough(self) -> bool:
        """Whether no more rounds are wanted."""
        return self.stop is not None and self.stop.is_enough


@dataclass
class OutOfBagStop:
    """The sum of improvements so far, and where it was highest."""

    n_rounds: int = 0
    total: float = 0.0
    best_total: float = 0.0
    best_round: int = 0

    def note(self, improvement: float) -> None:
        """Add what a round has lowered the loss of its out-of-bag rows by; 0 where it left none out."""
        self.n_rounds += 1
        self.total += improvement
        if self.total > self.best_total:
            self.best_total, self.best_round = self.total, self.n_rounds

    @property
    def is_enough(self) -> bool:
        """Whether as many rounds as the rule allows have been grown."""
        return self.n_rounds >= max(FACTOR * self.best_round, FEWEST)
