"""Targets and weights in fixed point, so that every sum over rows is an integer.

Scales are powers of two, taken from the sums of the magnitudes: no partial sum can overflow, and neither the order of
rows nor their number enters, only the weights. Whole weights multiply the quantised target, so that a row of weight 2
is exactly two rows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._types import CLASSES, MOMENTS, SUM, SUM_BITS
from spinney.table.row_sums import sum_products

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

SQUARE_BITS = 31  # of a sum whose square fits an int64
WHOLE_LIMIT = 2**31  # squares of whole weights' sums then fit an int64
BAG_ROOM = 3  # bits kept free in the sums of a table, for bags that hold its largest rows several times
MAX_EXPONENT = 900  # of a total weight
MARGIN = 1.0 + 2.0**-20  # absorbs the roundings of the sum that a scale is taken from


class Weights(NamedTuple):
    """Row weights in fixed point: a weight is `value * 2**(exponent - bits)`."""

    values: NDArray[np.int64]  # (n_rows,), or (1,) when every weight is 1
    bits: int
    exponent: int
    is_unit: bool
    is_whole: bool
    total: int
    row_weight: float = 1.0  # units of an independent row, see `weigh_row`
    are_counts: bool = False  # a row stands for so many that are alike, and counts as often


class Times(NamedTuple):
    """Times until an event as codes: how many times of events there are up to that of a row."""

    code: NDArray[np.int64]  # (n_rows of the table,)
    n_times: int  # that are told apart


class Outputs(NamedTuple):
    """What several outputs have besides: columns, in the units of the first. An output of classes has one for each."""

    values: NDArray[np.int64]  # (n_columns - 1, n_rows): those behind the first, as `Target.values`
    truth: NDArray[np.float64]  # (n_outputs, n_rows): targets / 2**exponent, or codes of classes
    widths: NDArray[np.int64] | None = None  # (n_outputs,): classes of each; None: numbers
    times: Times | None = None  # of times until an event: whether it was seen is the one output, of two classes


class Target(NamedTuple):
    """What a row adds to a sum."""

    family: int
    values: NDArray[np.int64]  # (n_rows,) class, or weighted target in fixed point
    squares: NDArray[np.int64]  # (n_rows,), or (1,) where not needed
    truth: NDArray[np.float64]  # (n_rows,) class, or target / 2**exponent: within [-1, 1]; equal for equal targets
    n_classes: int  # 0 for regression
    bits: int = 0  # a value is weight * (truth - centre) * 2**(bits - spread_exponent)
    square_bits: int = 0  # a square is weight * (truth - centre)**2 * 2**(square_bits - 2 * spread_exponent)
    exponent: int = 0
    spread_exponent: int = 0
    centre: float = 0.0
    outputs: Outputs | None = None  # None: one output

    @property
    def n_outputs(self) -> int:
        """Numbers, or classes, that a row has for a target."""
        return 1 if self.outputs is None else len(self.outputs.truth)

    @property
    def n_columns(self) -> int:
        """Sums that rows of several outputs have."""
        return 1 if self.outputs is None else 1 + len(self.outputs.values)

    @property
    def times(self) -> Times | None:
        """Times until an event; None: other targets."""
        return None if self.outputs is None else self.outputs.times

    @property
    def widths(self) -> NDArray[np.int64] | None:
        """Classes of each of several outputs, (n_outputs,); None: numbers, or one output."""
        return None if self.outputs is None else self.outputs.widths

    def ranks(self) -> NDArray[np.int32]:
        """Rank of the target of each row among all, from 0 on; of equal targets the first row has the lowest."""
        ranks = np.empty(len(self.truth), np.int32)
        ranks[np.argsort(self.truth, kind="stable")] = np.arange(len(self.truth), dtype=np.int32)
        return ranks


def sum_bits(total: float) -> int:
    """Fixed-point bits that leave a sum of magnitudes `total` below `2**SUM_BITS`."""
    return SUM_BITS - 1 - math.frexp(total * MARGIN)[1]


def scale(x: float, exponent: int) -> float:
    """`x * 2**exponent`; infinite where a float cannot hold it."""
    try:
        return math.ldexp(x, exponent)
    except OverflowError:
        return math.copysign(math.inf, x)


def quantise(x: NDArray[np.float64], bits: int) -> NDArray[np.int64]:
    """`x` in units of `2**-bits`, rounded."""
    if abs(bits) < 1000:  # a product is six times as fast as ldexp
        return np.rint(x * math.ldexp(1.0, bits)).astype(SUM)
    return np.rint(np.ldexp(x, bits)).astype(SUM)


def fix_weights(weight: NDArray[np.float64] | None, n_rows: int, times: NDArray[np.int64] | None = None) -> Weights:
    """Positive weights in fixed point; None means 1 each.

    times : int64 (n_rows,), optional
        How many copies of a row each row stands for, where that is not its weight: what one copy weighs is rounded,
        and then multiplied, as if the copies were there.
    """
    if weight is None or bool(np.all(weight == 1.0)):
        return Weights(np.ones(1, SUM), 0, 0, is_unit=True, is_whole=True, total=n_rows)
    largest = float(weight.max())
    is_split = times is not None and not np.array_equal(weight, times)  # copies may weigh a fraction each
    if not is_split and largest < WHOLE_LIMIT and bool(np.all(weight == np.floor(weight))):
        values = weight.astype(SUM)
        total = int(values.sum())
        if total < WHOLE_LIMIT:
            return Weights(values, 0, 0, is_unit=False, is_whole=True, total=total)
    exponent = math.frexp(largest)[1]
    scaled = np.ldexp(weight, -exponent)  # within (0, 1]
    guess = sum_bits(float(n_rows))
    bits = sum_bits(math.ldexp(float(quantise(scaled, guess).sum()), -guess))
    if times is not None and is_split:
        values = np.maximum(quantise(scaled / times, bits), 1) * times
    else:
        values = np.maximum(quantise(scaled, bits), 1)  # a positive weight never vanishes
    row_weight = weigh_row(values, times if is_split else None)
    total = int(values.sum())
    return Weights(values, bits, exponent, is_unit=False, is_whole=False, total=total, row_weight=row_weight)


def fix_weight_blocks(blocks: Callable[[], Iterable[NDArray[np.float64]]], n_rows: int) -> Weights:
    """`fix_weights` for positive weights that come in blocks, as often as asked for; without values, see `fix_block`.

    `row_weight` is left out too.
    """
    if all(bool(np.all(weight == 1.0)) for weight in blocks()):
        return Weights(np.ones(1, SUM), 0, 0, is_unit=True, is_whole=True, total=n_rows)
    no_values = np.ones(2, SUM)  # one would stand for all rows
    largest = max(float(weight.max()) for weight in blocks())
    if largest < WHOLE_LIMIT and all(bool(np.all(weight == np.floor(weight))) for weight in blocks()):
        total = sum(int(weight.astype(SUM).sum()) for weight in blocks())
        if total < WHOLE_LIMIT:
            return Weights(no_values, 0, 0, is_unit=False, is_whole=True, total=total)
    exponent = math.frexp(largest)[1]
    guess = sum_bits(float(n_rows))
    guessed = sum(int(quantise(np.ldexp(weight, -exponent), guess).sum()) for weight in blocks())
    bits = sum_bits(math.ldexp(float(guessed), -guess))
    weights = Weights(no_values, bits, exponent, is_unit=False, is_whole=False, total=0)
    return weights._replace(total=sum(int(fix_block(weight, weights).sum()) for weight in blocks()))


def fix_block(weight: NDArray[np.float64], weights: Weights) -> NDArray[np.int64]:
    """The values of some rows in the fixed point of all; (1,) where every weight is 1."""
    if weights.is_unit:
        return np.ones(1, SUM)
    if weights.is_whole:
        return weight.astype(SUM)
    return np.maximum(quantise(np.ldexp(weight, -weights.exponent), weights.bits), 1)


def weigh_row(values: NDArray[np.int64], times: NDArray[np.int64] | None = None) -> float:
    """Sum of squared weights over their sum: by what sums of weighted independent rows vary, as if all had this weight.

    times : int64 (n_rows,) or (1,), optional
        How many independent rows of equal weights each row stands for.
    """
    n_bits = coarse_bits(int(values.sum()))
    return join_coarse(*sum_coarse(values, times, n_bits), n_bits)


def coarse_bits(total: int) -> int:
    """Bits that weights of this sum lose before they are squared."""
    return max(total.bit_length() - SQUARE_BITS, 0)


def sum_coarse(values: NDArray[np.int64], times: NDArray[np.int64] | None, n_bits: int) -> tuple[int, int]:
    """What some rows add to `weigh_row`: sums of weights and of their squares; n_bits: see `coarse_bits`."""
    copies = np.ones(1, SUM) if times is None else times
    coarse = (values // copies) >> n_bits  # whole numbers: neither the order of rows nor copies of them matter
    return int((coarse * copies).sum()), int((coarse * coarse * copies).sum())


def join_coarse(total: int, squares: int, n_bits: int) -> float:
    """`weigh_row` by the sums of all rows."""
    return math.ldexp(squares / total, n_bits) if total > 0 else math.ldexp(1.0, n_bits)


def weight_unit(weights: Weights) -> float:
    """Worth of a unit of weight to the user, but for a power of two where float64 could not hold the sum."""
    total = math.frexp(weights.total)[1] - weights.bits
    exponent = min(max(weights.exponent, -MAX_EXPONENT - total), MAX_EXPONENT - total)
    return math.ldexp(1.0, exponent - weights.bits)


def weighted_sum(x: NDArray[np.float64], weights: Weights) -> float:
    """Sum of `weight * x` for `|x| <= 1`, in fixed point: the same for any order of rows."""
    bits = weighted_bits(weights)
    return math.ldexp(float(weigh(x, bits, weights).sum()), -bits)


def weighted_bits(weights: Weights) -> int:
    """Fixed-point bits of `weighted_sum`."""
    return sum_bits(math.ldexp(weights.total, -weights.bits))


def weigh(x: NDArray[np.float64], bits: int, weights: Weights) -> NDArray[np.int64]:
    """`weight * x` in units of `2**-bits`."""
    if weights.is_unit:
        return quantise(x, bits)
    if weights.is_whole:
        return quantise(x, bits) * weights.values
    return quantise(x * np.ldexp(weights.values.astype(np.float64), -weights.bits), bits)


def class_target(y: NDArray[np.int64], n_classes: int, weights: Weights, *, has_truth: bool = True) -> Target:
    """Target of class codes 0 .. n_classes - 1; two classes (or one) are summed as the weight of class 1.

    has_truth: whether the codes are wanted beside the sums; memory of 8 bytes a row is not taken for them else.
    """
    truth = y.astype(np.float64) if has_truth else np.zeros(1)
    nothing = np.zeros(1, SUM)
    if n_classes > 2:
        return Target(CLASSES, y.astype(SUM), nothing, truth, n_classes)
    return Target(MOMENTS, y * weights.values, nothing, truth, n_classes, bits=weights.bits)


def value_target(y: NDArray[np.float64], weights: Weights, *, has_square: bool, has_origin: bool = False) -> Target:
    """Target of a regression, centred near its mean so that a large offset costs no digits; at 0 with `has_origin`."""
    exponent = math.frexp(float(np.max(np.abs(y))))[1]
    truth = np.ldexp(y, -exponent)
    weight_sum = math.ldexp(weights.total, -weights.bits)
    centre = 0.0 if has_origin else weighted_sum(truth, weights) / weight_sum
    centred = truth - centre
    spread_exponent = math.frexp(float(np.max(np.abs(centred))))[1]
    # within [-1, 1] again: the offset has cost its digits, the rest must not
    centred = np.ldexp(centred, -spread_exponent)
    bits = sum_bits(weighted_sum(np.abs(centred), weights))
    squares, square_bits = np.zeros(1, SUM), 0
    if has_square:
        square_bits = sum_bits(weighted_sum(centred * centred, weights))
        squares = weigh(centred * centred, square_bits, weights)
    values = weigh(centred, bits, weights)
    return Target(MOMENTS, values, squares, truth, 0, bits, square_bits, exponent, spread_exponent, centre)


def value_target_blocks(
    blocks: Callable[[], Iterable[tuple[NDArray[np.float64], Weights]]], weights: Weights
) -> Target:
    """`value_target` for rows that come in blocks, as often as asked for, without values and squares.

    blocks: targets, and the weights of all rows with the values of these; weights: of all rows.
    """
    exponent = math.frexp(max(float(np.max(np.abs(y))) for y, _ in blocks()))[1]
    weight_sum = math.ldexp(weights.total, -weights.bits)
    total = sum_blocks(((np.ldexp(y, -exponent), held) for y, held in blocks()), weights)
    centre = total / weight_sum
    largest = max(float(np.max(np.abs(np.ldexp(y, -exponent) - centre))) for y, _ in blocks())
    spread_exponent = math.frexp(largest)[1]
    sizes = ((np.abs(np.ldexp(np.ldexp(y, -exponent) - centre, -spread_exponent)), held) for y, held in blocks())
    bits = sum_bits(sum_blocks(sizes, weights))
    return Target(
        MOMENTS, np.zeros(1, SUM), np.zeros(1, SUM), np.zeros(1), 0, bits, 0, exponent, spread_exponent, centre
    )


def sum_blocks(blocks: Iterable[tuple[NDArray[np.float64], Weights]], weights: Weights) -> float:
    """`weighted_sum` of rows that come in blocks."""
    bits = weighted_bits(weights)
    return math.ldexp(float(sum(int(weigh(x, bits, held).sum()) for x, held in blocks)), -bits)


def output_target(y: NDArray[np.float64], weights: Weights) -> Target:
    """Target of a regression with several outputs, shape (n_rows, n_outputs), each centred near its mean.

    All have one unit, that of the largest: their squared errors are added up. `truth` numbers the targets that differ.
    """
    exponent = math.frexp(float(np.max(np.abs(y))))[1]
    truth = np.ascontiguousarray(np.ldexp(y, -exponent).T)
    weight_sum = math.ldexp(weights.total, -weights.bits)
    centres = np.array([weighted_sum(one, weights) / weight_sum for one in truth])
    centred = truth - centres[:, None]
    spread_exponent = math.frexp(float(np.max(np.abs(centred))))[1]
    centred = np.ldexp(centred, -spread_exponent)
    bits = min(sum_bits(weighted_sum(np.abs(one), weights)) for one in centred if one.any()) if centred.any() else 0
    values = np.stack([weigh(one, bits, weights) for one in centred])
    kinds = np.unique(truth, axis=1, return_inverse=True)[1].reshape(-1).astype(np.float64)
    outputs = Outputs(values[1:], truth)
    nothing = np.zeros(1, SUM)
    return Target(MOMENTS, values[0], nothing, kinds, 0, bits, 0, exponent, spread_exponent, float(centres[0]), outputs)


def label_target(codes: NDArray[np.int64], widths: NDArray[np.int64], weights: Weights) -> Target:
    """Target of several outputs of classes: codes (n_rows, n_outputs), of which output o has `widths[o]`.

    Columns are whole weights, or those of the fixed point: sums of classes are exact. `truth` numbers the rows of codes
    that differ.
    """
    truth = np.ascontiguousarray(codes.T).astype(np.float64)
    columns = spread_labels(truth, widths, weights.values)
    kinds = np.unique(codes, axis=0, return_inverse=True)[1].reshape(-1).astype(np.float64)
    outputs = Outputs(columns[1:], truth, widths)
    return Target(MOMENTS, columns[0], np.zeros(1, SUM), kinds, 0, bits=weights.bits, outputs=outputs)


def time_target(y: NDArray[np.float64], grid: NDArray[np.float64], weights: Weights) -> Target:
    """Target of times until an event, (n_rows,), below 0 where it was not seen.

    grid: times of events that are told apart, ascending; an event counts at the first that is not before it.
    """
    is_seen = y > 0.0
    code = np.where(is_seen, np.searchsorted(grid, y) + 1, np.searchsorted(grid, -y, side="right")).astype(SUM)
    target = label_target(is_seen.astype(SUM)[:, None], np.array([2], SUM), weights)
    assert target.outputs is not None
    kinds = (2 * code + is_seen).astype(np.float64)
    return target._replace(truth=kinds, outputs=target.outputs._replace(times=Times(code, len(grid))))


def count_labels(labels: Iterable[Iterable[object]]) -> NDArray[np.int64]:
    """How many classes each of several outputs has, (n_outputs,)."""
    return np.array([len(list(each)) for each in labels], np.int64)


def spread_labels(
    truth: NDArray[np.float64], widths: NDArray[np.int64], weight: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The weight of each row in the column of its class of each output, (n_columns, n_rows); truth: codes."""
    columns = [np.where(row == k, weight, 0) for row, width in zip(truth, widths, strict=True) for k in range(width)]
    return np.stack(columns).astype(SUM, copy=False)


def with_room(weights: Weights, target: Target) -> tuple[Weights, Target]:
    """Weights and target of a table with some bits free, so that the counts of a bag can multiply them."""
    if not weights.is_whole:
        weights = weights._replace(
            values=np.maximum(weights.values >> BAG_ROOM, 1),
            bits=weights.bits - BAG_ROOM,
            total=max(weights.total >> BAG_ROOM, 1),
            row_weight=math.ldexp(weights.row_weight, -BAG_ROOM),
        )
        if target.n_classes:
            return weights, class_target(target.truth.astype(SUM), target.n_classes, weights)
        if target.widths is not None:
            values = np.broadcast_to(weights.values, len(target.truth))
            return weights, weigh_labels(target, slice(None), values)._replace(bits=weights.bits)
    if target.n_classes or target.widths is not None:
        return weights, target
    return weights, narrow_target(target, BAG_ROOM, BAG_ROOM)


def narrow_target(target: Target, n_bits: int, n_square_bits: int) -> Target:
    """The target of a regression with fewer bits."""
    return target._replace(
        values=target.values >> n_bits,
        squares=target.squares >> n_square_bits,
        bits=target.bits - n_bits,
        square_bits=target.square_bits - n_square_bits,
        outputs=target.outputs and target.outputs._replace(values=target.outputs.values >> n_bits),
    )


def bag_target(
    weights: Weights, target: Target, rows: NDArray[np.integer[Any]], counts: NDArray[np.int32]
) -> tuple[Weights, Target]:
    """Weights and target of a bag: `rows` of the table, each `counts` times (same length, at least 1).

    Integers are multiplied, so a row drawn twice is two rows, exactly. `truth` stays that of the table.
    """
    target = target._replace(
        values=target.values.take(rows),
        squares=target.squares.take(rows) if len(target.squares) > 1 else target.squares,
    )
    outputs = target.outputs
    if outputs is not None:
        target = target._replace(outputs=outputs._replace(values=outputs.values.take(rows, axis=1)))
    is_class = target.n_classes > 0 or target.widths is not None
    if weights.is_unit and int(counts.max()) == 1:
        return weights._replace(total=len(rows)), target
    times = counts.astype(SUM)
    held = times if weights.is_unit or not weights.is_whole else times * weights.values.take(rows)
    row_weight = int((held * times).sum()) / int(held.sum())  # a row that was drawn twice says nothing new
    if not is_class:
        others = () if target.outputs is None else target.outputs.values
        n_excess = max(excess_bits(values, times) for values in (target.values, *others))
        target = narrow_target(target, n_excess, excess_bits(target.squares, times))
    if not weights.is_unit:
        values = weights.values.take(rows)
        n_bits = excess_bits(values, times)
        times = values * times if n_bits == 0 else np.maximum(values >> n_bits, 1) * times
        weights = weights._replace(bits=weights.bits - n_bits)
    total = int(times.sum())
    if target.family == MOMENTS and target.n_classes:
        target = target._replace(values=target.truth.take(rows).astype(SUM) * times)
    elif outputs is not None and outputs.widths is not None:
        target = weigh_labels(target, rows, times)
    elif target.family == MOMENTS:
        has_square = len(target.squares) > 1
        target = target._replace(
            values=target.values * counts,
            squares=target.squares * counts if has_square else target.squares,
            outputs=target.outputs and target.outputs._replace(values=target.outputs.values * counts),
        )
    if not weights.is_whole:
        row_weight = weigh_row(times)
    is_whole = weights.is_whole and total < WHOLE_LIMIT
    return weights._replace(values=times, is_unit=False, is_whole=is_whole, total=total, row_weight=row_weight), target


def bag_classes(
    weights: Weights, target: Target, rows: NDArray[np.integer[Any]], counts: NDArray[np.int32]
) -> tuple[Weights, Target, NDArray[np.int64]]:
    """`bag_target` for classes of rows that weigh 1, some of which are drawn twice; and what rows add, (2, n_rows).

    Targets and weights are written to their places at once: half the time of a bag of a few thousand rows.
    """
    addends = np.empty((2, len(rows)), SUM)
    values, held = addends
    target.values.take(rows, out=values, mode="clip")
    held[:] = counts
    if target.family == MOMENTS:
        values *= held
    return *count_weights(weights, target, addends, int((held * held).sum())), addends


def count_weights(weights: Weights, target: Target, addends: NDArray[np.int64], squares: int) -> tuple[Weights, Target]:
    """Weights and target of rows that weigh as often as they were drawn; squares: sum of those counts squared."""
    values, held = addends
    total = int(held.sum())
    weights = weights._replace(
        values=held, is_unit=False, is_whole=total < WHOLE_LIMIT, total=total, row_weight=squares / total
    )
    return weights, target._replace(values=values)


def weigh_labels(target: Target, rows: NDArray[np.integer[Any]] | slice, weight: NDArray[np.int64]) -> Target:
    """The columns of some rows of a target of classes of several outputs, with other weights."""
    outputs = target.outputs
    assert outputs is not None
    assert outputs.widths is not None
    columns = spread_labels(outputs.truth[:, rows], outputs.widths, weight)
    return target._replace(values=columns[0], outputs=outputs._replace(values=columns[1:]))


def excess_bits(values: NDArray[np.int64], counts: NDArray[np.int64]) -> int:
    """Bits by which the sum of `counts * |values|` could leave the range of fixed-point sums."""
    if len(values) != len(counts):  # not needed
        return 0
    return max(math.frexp(sum_products(values, counts) * MARGIN)[1] - SUM_BITS, 0)
