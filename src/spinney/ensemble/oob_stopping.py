"""Stop boosting by the rows that each round leaves out.

A round that is grown on a part of the rows predicts the others, its out-of-bag rows, better or worse than the rounds
before. The sum of these improvements rises while rounds learn what holds for other rows too, and falls when they learn
the training rows by heart. It ends early (Ridgeway 2007): the out-of-bag rows of a round were training rows of others,
so that little is left to improve on. Twice the rounds up to its highest point came nearest to the lowest loss on the
tables that chose the rule (docs/decisions/0020-defaults.md), of the squared error, and where nearly all of the loss has
been learnt, three times.

Its highest point, as a share of the loss before the first round, is what has been learnt: unlike the loss of out-of-bag
rows themselves, which other rounds have learnt by heart, it comes near to what other rows would tell.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

FACTOR, LARGER_FACTOR = 2, 3  # rounds for each one up to the highest point
NEARLY_ALL = 0.9  # share of the loss that has been learnt where rounds may go on for longer
PULL_FALLS = 0.8  # share of the loss that has been learnt from which on lambda falls
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
            self.stop.note(improvement, after)

    def resume(self, improvement: list[float], score: list[float]) -> None:
        """Begin with the rounds of an earlier run."""
        self.improvement, self.score = list(improvement), list(score)
        if self.stop is not None:
            for one, after in zip(improvement, score, strict=True):
                self.stop.note(one, after)

    @property
    def is_enough(self) -> bool:
        """Whether no more rounds are wanted."""
        return self.stop is not None and self.stop.is_enough


@dataclass
class OutOfBagStop:
    """The sum of improvements so far, and where it was highest.

    Attributes
    ----------
    is_squared : bool
        Whether the loss is the squared error, which does not punish certainty as log loss does.
    first : float
        Mean loss before the first round, of the rows that it left out; NaN where it left none out.
    """

    is_squared: bool = False
    n_rounds: int = 0
    first: float = math.nan
    total: float = 0.0
    best_total: float = 0.0
    best_round: int = 0

    def note(self, improvement: float, after: float) -> None:
        """Add what a round has lowered the loss of its out-of-bag rows by, and what that is now; 0, NaN: of none."""
        if self.n_rounds == 0:
            self.first = after + improvement
        self.n_rounds += 1
        self.total += improvement
        if self.total > self.best_total:
            self.best_total, self.best_round = self.total, self.n_rounds

    @property
    def learnt(self) -> float:
        """Share of the loss that has been learnt, from 0 to 1; 0 where the loss can be below 0."""
        return min(self.best_total / self.first, 1.0) if self.first > 0.0 else 0.0

    @property
    def pull(self) -> float:
        """What lambda is multiplied by: 1 until four fifths of the loss are learnt, then the square of what is left.

        A table without noise is learnt ever better by ever larger scores, which a constant pull holds back: the second
        derivatives beside it vanish.
        """
        return min((1.0 - self.learnt) / (1.0 - PULL_FALLS), 1.0) ** 2

    @property
    def is_enough(self) -> bool:
        """Whether as many rounds as the rule allows have been grown."""
        factor = LARGER_FACTOR if self.is_squared or self.learnt >= NEARLY_ALL else FACTOR
        return self.n_rounds >= max(factor * self.best_round, FEWEST)
