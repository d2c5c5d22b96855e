"""Held-out rows: which rows no tree learns from, and how well they are predicted."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._jit import interpreted, kernels
from spinney._types import ROW
from spinney._warnings import warn
from spinney.ensemble.draw_units import share_draws
from spinney.ensemble.sampling import BLOCK_BITS, INTERPRETED_SECONDS, Draw, word
from spinney.kernels.common.structs import DrawSpan, DrawStrata
from spinney.table.fixed_point import fix_weights, scale, weighted_sum

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from spinney.table.fixed_point import Weights

KEY = 0x484F4C44  # the part of a seed's key that held-out rows are drawn from


def draw_held_out(
    fraction: float,
    n_rows: int,
    is_used: NDArray[np.bool_] | None,
    codes: NDArray[np.int32] | None,
    seed: int,
    *,
    warns: bool = True,
    remedy: str = "give X_val and y_val",
    unit: str = "sample(s)",
) -> NDArray[np.bool_]:
    """Which rows are held out, (n_rows,), drawn from those that are used, and from each class in proportion.

    Parameters
    ----------
    fraction : float or int
        Share of the used rows, rounded up, or their number.
    n_rows : int
    is_used : bool (n_rows,), optional
        Rows that may be drawn; None: all.
    codes : int32 (n_rows,), optional
        Class of each row; None: numbers. Every class keeps a row to learn from.
    seed : int
    warns : bool
        Warn of classes whose only row stays for learning.
    remedy : str
        What else can be done: the end of each message.
    unit : str
        What rows are called in messages.
    """
    chance = np.ones(n_rows) if is_used is None else is_used.astype(np.float64)
    n_of_class = None if codes is None else np.bincount(codes, chance)
    n_held = count_held(fraction, int(chance.sum()), n_of_class, warns=warns, remedy=remedy, unit=unit)
    if codes is not None and n_of_class is not None:
        chance[n_of_class[codes] == 1.0] = 0.0
    is_held = Draw("paste", n_rows, n_held, seed, chance, codes).counts(0) > 0
    if codes is not None:  # a class of few rows may have given all
        n_left = np.bincount(codes, chance * ~is_held)
        for code in np.flatnonzero((n_left == 0.0) & (np.bincount(codes, is_held) > 0.0)):
            is_held[np.flatnonzero(is_held & (codes == code))[0]] = False
    return is_held


def count_held(
    fraction: float,
    n_used: int,
    n_of_class: NDArray[Any] | None,
    *,
    warns: bool = True,
    remedy: str = "give X_val and y_val",
    unit: str = "sample(s)",
) -> int:
    """How many rows are held out; n_of_class: rows of each class that may be drawn, of which lone ones stay."""
    n_held = int(fraction) if isinstance(fraction, int | np.integer) else math.ceil(fraction * n_used)
    if n_held >= n_used:
        raise ValueError(
            f"validation_fraction={fraction} holds out {n_held} of {n_used} {unit}, so that none is left to "
            f"learn from: lower it, or {remedy}"
        )
    if n_of_class is None:
        return n_held
    n_lone = int(np.count_nonzero(n_of_class == 1))
    if n_lone and warns:
        warn(
            f"Of {n_lone} of the {len(n_of_class)} classes there is a single row, which is needed to learn from: "
            f"early stopping knows nothing of them. To change that, {remedy}."
        )
    if n_held > n_used - n_lone:
        raise ValueError(
            f"validation_fraction={fraction} holds out {n_held} rows, but only {n_used - n_lone} are of classes "
            f"with more than one row: lower it, or {remedy}"
        )
    return n_held


class HeldBlocks:
    """`draw_held_out` for rows that come in blocks of 2**BLOCK_BITS: each is drawn by itself, once all are counted.

    Parameters
    ----------
    fraction, seed
        As of `draw_held_out`.
    n_rows : int
    counts : int64 (n_blocks, n_classes), or (n_blocks, 1) for numbers
        Rows of each block that may be drawn.
    has_classes : bool

    Attributes
    ----------
    released : list of int
        Rows that are not held out after all, known when all blocks are drawn: a class of few rows may have given all.
    """

    def __init__(
        self, fraction: float, seed: int, n_rows: int, counts: NDArray[np.int64], *, has_classes: bool
    ) -> None:
        self.fraction, self.seed, self.n_rows, self.has_classes = fraction, seed, n_rows, has_classes
        totals = counts.sum(axis=0)
        n_of_class = totals[: int(np.flatnonzero(totals)[-1]) + 1] if has_classes else None
        self.is_lone = has_classes & (totals == 1)
        self.counts = np.where(self.is_lone, 0, counts)
        self.n_held = np.zeros(len(totals), np.int64)
        self.first_held = np.full(len(totals), -1, np.int64)
        self.shares: NDArray[np.int64] | None = None
        if len(counts) > 1:  # of one block `draw_held_out` looks after itself
            n_drawn = count_held(fraction, int(totals.sum()), n_of_class)
            self.shares = deal_blocks(seed, share_draws(n_drawn, self.counts.sum(axis=0)), self.counts)

    def draw(self, block: int, is_used: NDArray[np.bool_], codes: NDArray[np.int64] | None) -> NDArray[np.bool_]:
        """Which rows of a block are held out."""
        if self.shares is None:
            used = None if is_used.all() else is_used
            small = None if codes is None else codes.astype(np.int32)
            return draw_held_out(self.fraction, len(is_used), used, small, self.seed)
        first = block << BLOCK_BITS
        stratum = np.zeros(len(is_used), np.int64) if codes is None else codes
        rows = np.flatnonzero(is_used & ~self.is_lone[stratum])
        order = rows[np.argsort(stratum[rows], kind="stable")]
        begin = np.concatenate([[0], np.cumsum(self.counts[block])])
        strata = DrawStrata((order + first).astype(ROW), begin, self.shares[block])
        counts = np.zeros(len(is_used), np.int32)
        k = kernels(INTERPRETED_SECONDS * len(is_used)).data.block_draws
        span = DrawSpan(first, first + len(is_used), BLOCK_BITS, 0)
        k.choose_blocks(word(self.seed), word(0), strata, span, np.zeros((1, 3), np.int64), counts)
        is_held: NDArray[np.bool_] = counts > 0
        if self.has_classes:
            held = np.flatnonzero(is_held)
            self.n_held += np.bincount(stratum[held], minlength=len(self.n_held))
            for code in np.flatnonzero(self.first_held < 0):
                mine = held[stratum[held] == code]
                self.first_held[code] = first + mine[0] if len(mine) else -1
        return is_held

    @property
    def released(self) -> list[int]:
        """See above."""
        has_none = (self.n_held > 0) & (self.n_held == self.counts.sum(axis=0))
        return self.first_held[has_none].tolist()


def deal_blocks(seed: int, n_drawn: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many rows each block gives, of each stratum, as `kernels.data.block_draws` deals them without replacement.

    n_drawn: of each stratum in all; counts: (n_blocks, n_strata) rows to draw from.
    """
    k = interpreted().data
    before = np.concatenate([np.zeros((1, counts.shape[1]), np.int64), np.cumsum(counts, axis=0)])
    shares = np.zeros_like(counts)
    n_blocks = len(counts)
    with np.errstate(over="ignore"):
        fold, key = interpreted().common.rng.fold, k.draws.bag_key(word(seed), word(0))
        for s in range(counts.shape[1]):
            half_key = fold(fold(key, k.block_draws.HALF), np.uint64(s))
            todo = [((n_blocks - 1).bit_length(), 0, int(n_drawn[s]))]
            while todo:
                level, node, n = todo.pop()
                if n == 0:
                    continue
                if level == 0:
                    shares[node, s] = n
                    continue
                low, middle, high = (min((2 * node + i) << (level - 1), n_blocks) for i in range(3))
                left, right = before[middle, s] - before[low, s], before[high, s] - before[middle, s]
                here = fold(fold(half_key, np.uint64(level)), np.uint64(node))
                n_left = int(k.halves.deal_left(here, n, left, right, False))
                todo += [(level - 1, 2 * node, n_left), (level - 1, 2 * node + 1, n - n_left)]
    return shares


def weigh_rows(weight: NDArray[np.float64] | None, n_rows: int) -> tuple[NDArray[np.intp], Weights]:
    """Rows of positive weight, and their weights."""
    if weight is None:
        return np.arange(n_rows), fix_weights(None, n_rows)
    used = np.flatnonzero(weight > 0.0)
    return used, fix_weights(weight[used], len(used))


def measure_accuracy(y: NDArray[np.int64], weight: NDArray[np.float64] | None) -> Callable[[NDArray[np.int64]], float]:
    """A function of predicted class codes: the weighted share that is right, whatever the order of the rows."""
    used, weights = weigh_rows(weight, len(y))
    truth, total = y[used], math.ldexp(weights.total, -weights.bits)
    return lambda predicted: weighted_sum((predicted[used] == truth).astype(np.float64), weights) / total


def measure_distance(
    y: NDArray[np.float64], weight: NDArray[np.float64] | None
) -> Callable[[NDArray[np.float64]], float]:
    """A function of predicted numbers: minus their root mean squared error, whatever the order of the rows."""
    used, weights = weigh_rows(weight, len(y))
    shift = math.frexp(float(np.max(np.abs(y[used]))))[1]  # differences near the end of float64 have no room
    truth, total = np.ldexp(y[used], -shift), math.ldexp(weights.total, -weights.bits)

    def measure(predicted: NDArray[np.float64]) -> float:
        off = np.abs(np.ldexp(predicted[used], -shift) - truth)
        exponent = math.frexp(float(np.max(off)))[1]
        off = np.ldexp(off, -exponent)
        return -scale(math.sqrt(weighted_sum(off * off, weights) / total), exponent + shift)

    return measure
