"""The best constant beside scores that rows bring along: where boosting with `init_score` begins."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._elementary import LEAST, exp, log_one
from spinney.ensemble.best_constant import (
    Derivatives,
    find_constant,
    log_shares_of_blocks,
    mean_derivatives,
    mean_of_blocks,
    row_weights,
)
from spinney.ensemble.losses import (
    Exponential,
    Huber,
    JointLoss,
    LogLink,
    LogLoss,
    Quantile,
    Quantiles,
    RoundRows,
    Softmax,
    SquaredError,
    SquaredErrors,
)
from spinney.ensemble.selection import Prefixes, find_quantiles
from spinney.kernels.common.structs import Gradients

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from spinney.ensemble.best_constant import Floats
    from spinney.ensemble.losses import Loss
    from spinney.table.fixed_point import Weights


def find_start(loss: Loss, y: Floats, weight: Floats | None, offset: Floats | None, kernels: Any) -> Floats:
    """The constant, (n_raw,), that added to the scores of the rows gives the least loss.

    Parameters
    ----------
    loss : Loss
    y : float64 (n_rows,)
    weight : float64 (n_rows,), optional
    offset : float64 (n_raw, n_rows), optional
        Scores that the rows bring along, such as the logarithm of an exposure; None stands for 0.
    kernels : kernel modules

    Notes
    -----
    Beside an offset the best constant is that of other targets or weights. A mean exp(offset + constant) of power 1
    (Poisson) to 2 (gamma) is that of y / exp(offset), with the weight exp((2 - power) * offset). Log loss has no such
    form and takes Newton's steps. A `JointLoss` begins with the offset alone.
    """
    if offset is None:
        return loss.start(y, weight)
    if isinstance(loss, JointLoss):
        return np.zeros(loss.n_raw)
    if isinstance(loss, LogLoss | Softmax):
        return balance_classes(loss, y, weight, offset, kernels)
    if isinstance(loss, SquaredError | SquaredErrors | Quantile | Quantiles | Huber):
        return find_residual_start(loss, y, weight, offset)
    given = np.ones(len(y)) if weight is None else weight
    if isinstance(loss, Exponential):
        return loss.start(y, given * exp(np.where(y == 1.0, -offset[0], offset[0])))
    if isinstance(loss, LogLink):
        return loss.start(y * exp(-offset[0]), given * exp((2.0 - loss.variance_power) * offset[0]))
    raise NotImplementedError(
        f"loss={loss.name!r}: the best constant beside init_score is not known for this loss; fit it without "
        "init_score, or add its rule to `find_start`."
    )


def find_start_by_blocks(
    loss: Loss, blocks: Callable[[], Iterable[tuple[Floats, Weights]]], weights: Weights
) -> Floats:
    """The constant of least loss for rows that come in blocks, as often as asked for: what `loss.start` gives.

    Parameters
    ----------
    loss : Loss
        Of a mean, or of classes: what needs rows in their order is refused.
    blocks : callable
        Gives the target of rows, and the weights of all rows with the values of these.
    weights : Weights
        Of all rows.
    """
    if loss.n_classes and not isinstance(loss, JointLoss):
        shares = log_shares_of_blocks(blocks(), weights, loss.n_classes)
        if isinstance(loss, Softmax):
            return np.array(shares) - math.fsum(shares) / loss.n_classes
        odds = shares[1] - shares[0]
        return np.array([0.5 * odds if isinstance(loss, Exponential) else odds])
    if isinstance(loss, Quantile | Quantiles):
        return np.concatenate([find_quantile_by_blocks(blocks, level) for level in loss.quantile_levels])
    if isinstance(loss, Huber):
        return find_huber_start(loss, blocks, weights)
    if not isinstance(loss, SquaredError | LogLink):
        raise NotImplementedError(f"loss={loss.name!r} begins with what all rows in their order tell")
    mean = mean_of_blocks(blocks, weights)
    if isinstance(loss, LogLink):
        return np.array([log_one(mean) if mean > 0.0 else LEAST])
    return np.array([mean])


def find_huber_start(loss: Huber, blocks: Callable[[], Iterable[tuple[Floats, Weights]]], weights: Weights) -> Floats:
    """`Huber.start` of rows that come in blocks; delta is set."""
    median = float(find_quantile_by_blocks(blocks, 0.5)[0])

    def see(change: Callable[[Floats], Floats]) -> Callable[[], Iterable[tuple[Floats, Weights]]]:
        return lambda: ((change(y), own) for y, own in blocks())

    sizes = see(lambda y: np.abs(y - median))
    delta = float(find_quantile_by_blocks(sizes, loss.alpha)[0])
    if delta == 0.0:
        delta = min((float(np.min(size, where=size > 0.0, initial=math.inf)) for size, _ in sizes()), default=math.inf)
    loss.parameter = delta = delta if math.isfinite(delta) else 1.0

    def derive(constant: Floats) -> list[Derivatives]:
        g = see(lambda y: np.clip(constant - y, -delta, delta))
        is_inside = see(lambda y: (np.abs(constant - y) <= delta).astype(np.float64))
        has_any = any(bool(inside.any()) for inside, _ in is_inside())
        slope, size = mean_of_blocks(g, weights), mean_of_blocks(lambda: ((np.abs(x), own) for x, own in g()), weights)
        return [Derivatives(slope, size, mean_of_blocks(is_inside, weights) if has_any else 1.0)]

    found = find_constant(derive, np.array([median]))
    return np.array([median]) if found is None else found


def find_quantile_by_blocks(blocks: Callable[[], Iterable[tuple[Floats, Weights]]], level: float) -> Floats:
    """A quantile of all rows, of whole weights, (1,)."""

    def count(prefixes: Prefixes) -> Floats:
        counts = np.zeros((1, 1, 1))
        for y, own in blocks():
            weight = None if own.is_unit else own.values
            counts = counts + prefixes.count_rows(y, np.zeros(len(y), np.int64), weight)
        return counts

    return find_quantiles(count, 1, level)


def find_residual_start(loss: Loss, y: Floats, weight: Floats | None, offset: Floats) -> Floats:
    """The start of a loss of differences, for y without the offset of each raw score."""
    if isinstance(loss, Quantiles):
        by_score = zip(loss.quantile_levels, offset, strict=True)
        return np.concatenate([Quantile(level).start(y - row, weight) for level, row in by_score])
    return loss.start(y - (offset.T if isinstance(loss, SquaredErrors) else offset[0]), weight)


def balance_classes(loss: Loss, y: Floats, weight: Floats | None, offset: Floats, kernels: Any) -> Floats:
    """The constants with which the mean probability of each class is its share of the rows; 0 if none is found."""
    weights = row_weights(weight, len(y))
    gradients, p = Gradients(np.empty(len(y)), np.empty(len(y)), np.ones(1), True), np.empty(offset.shape)
    sums = np.empty((len(y) // kernels.boost.gradients.BLOCK + 1, 4))

    def derive(constant: Floats) -> Iterator[Derivatives]:
        rows = RoundRows(y, offset + constant[:, None], gradients, sums, p)
        for k in range(loss.n_raw):
            loss.fill(kernels, rows, k, 0, len(y))
            yield mean_derivatives(gradients.g, gradients.h, weights)

    found = find_constant(derive, np.zeros(loss.n_raw))
    return np.zeros(loss.n_raw) if found is None else found
