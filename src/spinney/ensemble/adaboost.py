"""AdaBoost: fit, weigh the member by its error, give the rows it got wrong more weight, fit again.

One loop serves classes (Freund and Schapire 1997; SAMME of Zhu, Zou, Rosset and Hastie 2009 for three or more) and
numbers (R2 of Drucker 1997). They differ in the loss of a row, which lies between 0 and 1:

    weights ──fit_member──► member, its predictions for the rows ──find_losses──► losses
    error = weighted mean of the losses
    alpha = learning_rate * (log((1 - error) / error) + log(n_classes - 1))        n_classes = 2 for numbers
    weights *= exp(alpha * losses), then scaled to the sum they had at first

For two classes many texts halve alpha and multiply right rows by exp(-alpha) as well: the same weights once they are
scaled, and the same votes.

| error | what happens |
|---|---|
| 0 | the formula has no end: the member outvotes all before it (weight: 1 + theirs), and boosting ends |
| below chance, which is 1 - 1 / n_classes | as above |
| chance | alpha = 0 and equal weights: the member has no vote, and boosting ends |
| above chance | two classes: alpha < 0, the member is used inverted; otherwise alpha = 0, and boosting ends |
| 1 | two classes: always wrong is as good as always right, inverted |

Sums over rows are integers: they do not depend on the order of the rows, and a row of whole weight w counts as w rows,
exactly.
"""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinney._elementary import exp, expm1, log_one
from spinney._threads import run_tasks
from spinney.table.fixed_point import Target, Weights, quantise, sum_bits, value_target, weigh, weigh_row, weighted_sum

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from spinney.ensemble.adaboost_levels import LevelWeights

CHANCE_SLACK = 2.0**-40  # of an error: many times the roundings of weights that were made so that it is chance


class Factors(NamedTuple):
    """How the logarithms of what the losses have made of weights become factors of at most 1, in fixed point."""

    largest: float  # of the logarithms
    scale: float
    exponent: int  # a factor stands for itself times 2**exponent
    bits: int

    def read(self, logs: NDArray[np.float64]) -> NDArray[np.float64]:
        """The factors of some rows."""
        return exp(logs - self.largest) * self.scale


def find_factors(largest: float, total: float, base: Weights) -> Factors:
    """The factors that leave the weights their sum; total: of weight * exp(log - largest) over all rows."""
    whole = math.ldexp(base.total, -base.bits)
    scale = whole / total  # at least 1
    exponent = math.frexp(scale)[1]
    return Factors(largest, math.ldexp(scale, -exponent), exponent, sum_bits(math.ldexp(whole, -exponent)))


def weigh_losses(
    losses: NDArray[np.float64], factor: NDArray[np.float64], bits: int, base: Weights
) -> NDArray[np.int64]:
    """Weight times loss, for losses within [0, 1], in units of the weights; a loss above 0 never vanishes.

    Whole weights of the table multiply what is already in fixed point: a row of weight 2 is two rows.
    """
    product = factor * losses
    if base.is_whole:
        return np.maximum(quantise(product, bits), losses > 0.0) * base.values
    return np.maximum(weigh(product, bits, base), losses > 0.0)


class RowWeights:
    """Weights of the rows: those of the table, times what the losses so far have made of them.

    Parameters
    ----------
    base : Weights
        Of the table.
    n_rows : int
    """

    def __init__(self, base: Weights, n_rows: int) -> None:
        self.base = base
        self.logs = np.zeros(n_rows)  # of the factors, but for a constant
        self.settle()

    def raise_by(self, alpha: float, losses: NDArray[np.float64]) -> None:
        """Multiply the weights by `exp(alpha * losses)` and scale them to their sum."""
        self.add_losses(alpha, losses)
        self.settle()

    def add_losses(self, alpha: float, losses: NDArray[np.float64]) -> None:
        """The first half of `raise_by`: `settle` is due before the weights are asked for."""
        self.logs += alpha * losses

    def settle(self) -> None:
        """Factors in fixed point, and the weights they make; the largest factor is near 1 before scaling."""
        base = self.base
        largest = float(self.logs.max())
        factors = find_factors(largest, weighted_sum(exp(self.logs - largest), base), base)
        self.factor, self.bits = factors.read(self.logs), factors.bits
        values = weigh_losses(np.ones(1), self.factor, self.bits, base)
        self.weights = Weights(
            values,
            self.bits,
            base.exponent + factors.exponent,
            is_unit=False,
            is_whole=False,
            total=int(values.sum()),
            row_weight=weigh_row(values, base.values if base.is_whole else None),
        )

    def sum_losses(self, losses: NDArray[np.float64]) -> int:
        """Sum of weight times loss, in units of the weights."""
        return int(weigh_losses(losses, self.factor, self.bits, self.base).sum())

    def shares(self) -> NDArray[np.float64]:
        """The weights as floats with sum 1."""
        return self.weights.values / self.weights.total


class Round(NamedTuple):
    """What one round has added."""

    member: Any
    error: float
    alpha: float  # weight of the member's vote; negative: it is used inverted


def find_alpha(wrong: int, total: int, n_classes: int) -> float:
    """Log-odds of being right, plus log(n_classes - 1); 0 where an error cannot be told from chance."""
    chance = 1.0 - 1.0 / n_classes
    if abs(wrong / total - chance) <= CHANCE_SLACK:
        return 0.0
    return log_one((total - wrong) / wrong) + log_one(n_classes - 1)


class AdaBoost:
    """Rounds under way.

    Parameters
    ----------
    fit_member : callable
        ``fit_member(number, rows, control)`` returns a member and its predictions for the rows; `rows.weights` are
        those to fit it with, and ``control[CONTROL_STOP]`` = 1 asks it to end soon, see `_threads`.
    find_losses : callable
        ``find_losses(predicted)`` returns the loss of each row, float64 within [0, 1].
    rows : RowWeights, or LevelWeights
        The latter are of rows that are in parts elsewhere; predictions and losses are then names for what is there.
    n_classes : int
        2 for numbers.
    inverts : bool
        Use members that are worse than chance, with a negative weight.
    learning_rate : float
    """

    def __init__(
        self,
        fit_member: Callable[[int, Any, NDArray[np.int64]], tuple[Any, Any]],
        find_losses: Callable[[Any], Any],
        rows: RowWeights | LevelWeights,
        *,
        n_classes: int,
        inverts: bool,
        learning_rate: float,
    ) -> None:
        self.fit_member = fit_member
        self.find_losses = find_losses
        self.rows = rows
        self.n_classes = n_classes
        self.inverts = inverts
        self.learning_rate = learning_rate
        self.rounds: list[Round] = []
        self.total = 0.0  # of the magnitudes of their weights
        self.is_over = False
        self.on_round: Callable[[], None] | None = None  # called after each round, in the thread that fits

    def resume(self, rounds: list[Round], predict: Callable[[Any], Any], *, is_over: bool) -> None:
        """Begin with the rounds of an earlier run: weigh the rows anew by what the members predict for them.

        predict: of a member, for the rows; is_over: whether the last round ended the boosting.
        """
        for done in rounds:
            self.total += abs(done.alpha)
            self.rows.add_losses(done.alpha, self.find_losses(predict(done.member)))
        if not is_over:
            self.rows.settle()
        self.rounds, self.is_over = list(rounds), is_over

    def step(self, number: int, control: NDArray[np.int64]) -> Round:
        """One round."""
        weights = self.rows.weights
        member, predicted = self.fit_member(number, self.rows, control)
        losses = self.find_losses(predicted)
        wrong = self.rows.sum_losses(losses)
        if wrong == 0:
            alpha = self.outvote()
            self.is_over = True
        elif wrong == weights.total and self.inverts:
            alpha = -self.outvote()
            self.is_over = True
        else:
            alpha = 0.0 if wrong == weights.total else find_alpha(wrong, weights.total, self.n_classes)
            if alpha == 0.0 or (alpha < 0.0 and not self.inverts):
                alpha = 0.0
                self.is_over = True
            alpha = self.check_alpha(alpha * self.learning_rate)
            if not self.is_over:
                self.rows.raise_by(alpha, losses)
        self.total += abs(alpha)
        self.rounds.append(Round(member, wrong / weights.total, alpha))
        return self.rounds[-1]

    def outvote(self) -> float:
        """A weight that is larger than those of all members so far together."""
        return 1.0 + self.total

    def check_alpha(self, alpha: float) -> float:
        """Refuse weights whose sum would leave float64."""
        if not math.isfinite(alpha) or not math.isfinite(self.outvote() + abs(alpha)):
            raise ValueError(
                f"learning_rate={self.learning_rate} makes the weight of member {len(self.rounds)} infinite: lower it"
            )
        return alpha

    def run(
        self,
        n_rounds: int,
        *,
        is_enough: Callable[[Round], bool] | None = None,
        is_short: bool = False,
        verbose: bool = False,
    ) -> list[Round]:
        """Rounds until there are `n_rounds`, until one ends the boosting, or until `is_enough` is true of a round."""
        n_begun = len(self.rounds)
        if self.is_over:
            return self.rounds

        def work(task: int, control: NDArray[np.int64]) -> None:
            done = self.step(n_begun + task, control)
            if is_enough is not None and is_enough(done):
                self.is_over = True
            if self.on_round is not None:
                self.on_round()
            if self.is_over:
                raise OverError

        def take(_: int, __: None) -> None:
            """Nothing: a round is kept where it is made."""

        with contextlib.suppress(OverError):  # one worker: one round after the other
            run_tasks(
                work,
                n_rounds - n_begun,
                1,
                on_done=take,
                label="boosting",
                unit="rounds",
                verbose=verbose,
                is_short=is_short,
            )
        return self.rounds


class OverError(Exception):
    """No more rounds are wanted."""


class EarlyStopping:
    """Scores each round on rows that no member learns from, and tells when to stop; the `is_enough` of `AdaBoost.run`.

    Parameters
    ----------
    predict : callable
        Predictions of a member for these rows: class codes, or numbers.
    add : callable
        ``add(predicted, alpha)`` adds them to the votes.
    measure : callable
        Score of the votes so far, higher is better.
    patience : float
        Rounds without a rise of the score after which to stop.
    tol : float
        A rise must be larger than this.
    """

    def __init__(
        self,
        predict: Callable[[Any], NDArray[Any]],
        add: Callable[[NDArray[Any], float], None],
        measure: Callable[[], float],
        patience: float,
        tol: float,
    ) -> None:
        self.predict, self.add, self.measure = predict, add, measure
        self.patience, self.tol = patience, tol
        self.scores: list[float] = []
        self.best_round = 0
        self.best_score = -math.inf

    def __call__(self, done: Round) -> bool:
        """Whether this round is the last one wanted."""
        self.add(self.predict(done.member), done.alpha)
        score = self.measure()
        self.scores.append(score)
        if self.best_round == 0 or score > self.best_score + self.tol:
            self.best_round, self.best_score = len(self.scores), score
        return len(self.scores) - self.best_round >= self.patience


# --- losses and targets -----------------------------------------------------------------------------------------


def mistakes(predicted: NDArray[np.int64], y: NDArray[np.int64]) -> NDArray[np.float64]:
    """Loss of class codes: 1 where wrong."""
    return (predicted != y).astype(np.float64)


def distances(predicted: NDArray[np.float64], y: NDArray[np.float64], loss: str) -> NDArray[np.float64]:
    """Loss of numbers: the error of each row as a share of the largest one, as it is, squared or `1 - exp(-share)`."""
    errors = find_errors(predicted, y, find_shift(float(np.max(np.abs(y)))))
    return share_errors(errors, float(errors.max()), loss)


def find_shift(largest: float) -> int:
    """The power of two that errors are taken in: differences of numbers near the end of float64 have no room."""
    return math.frexp(largest)[1]


def find_errors(predicted: NDArray[np.float64], y: NDArray[np.float64], shift: int) -> NDArray[np.float64]:
    """Error of each row, in units of 2**shift."""
    return np.abs(np.ldexp(predicted, -shift) - np.ldexp(y, -shift))


def share_errors(errors: NDArray[np.float64], largest: float, loss: str) -> NDArray[np.float64]:
    """Loss of each row by its error, which is written over, and the largest error of all rows."""
    share = errors
    if largest == 0.0:
        return share
    share /= largest
    if loss == "square":
        return share * share
    return -expm1(-share) if loss == "exponential" else share


class ValueTarget:
    """Target of a regression under weights that change; what does not depend on them is made once.

    Whole weights of the table multiply quantised products of target and factor: a row of weight 2 is two rows.
    """

    def __init__(self, y: NDArray[np.float64], base: Weights, *, has_square: bool, has_origin: bool = False) -> None:
        self.target = value_target(y, base, has_square=has_square, has_origin=has_origin)
        self.centred = np.ldexp(self.target.truth - self.target.centre, -self.target.spread_exponent)
        self.has_square = has_square

    def weighted(self, rows: RowWeights) -> Target:
        """The target under the present weights."""
        product = self.centred * rows.factor
        bits = sum_bits(weighted_sum(np.abs(product), rows.base))
        target = self.target._replace(values=weigh(product, bits, rows.base), bits=bits)
        if not self.has_square:
            return target
        product *= self.centred
        square_bits = sum_bits(weighted_sum(product, rows.base))
        return target._replace(squares=weigh(product, square_bits, rows.base), square_bits=square_bits)
