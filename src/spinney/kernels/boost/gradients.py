"""Losses of raw scores and their first and second derivatives, for the rows of a round.

Words: *raw* is a score before the link; *g*, *h* are the derivatives of a row's loss by it, without the row's weight; a
*block* is BLOCK rows from a multiple of BLOCK on.

Rows are done by whole blocks, one worker some of them. What is summed over a block is added row by row, so that sums
do not depend on who did which blocks. Exponential and logarithm are our own (`common.elementary`): LLVM makes vectors
of them, which it cannot of calls (2.4 ns a row of log loss against 5.6 ns).
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined

from ..common.elementary import exponential, log_one_plus, logarithm
from ..common.structs import Gradients

BLOCK = 4096  # g and h of a block stay in the second cache until they are summed
TILE = 512  # rows whose classes are done together: those of 26 classes stay in the second cache

# losses
SQUARED, ABSOLUTE, HUBER, QUANTILE, POISSON, GAMMA, TWEEDIE, LOGISTIC, EXPONENTIAL = range(9)

# sums (float64) of a block
SUM_G, SUM_H, MAX_G, MAX_H = range(4)  # of weight * |g|, of weight * h, greatest |g|, greatest h
SUM_LOSS, SUM_WEIGHT = range(2)

MIN_H = 1e-16  # of a row: no leaf divides by nothing


# --- One loss, rows lo .. hi --------------------------------------------------------------------------------
# Rows are unsigned: the check for an index below 0 would keep LLVM from making vectors.


@inlined
def fill_squared(y: np.ndarray, raw: np.ndarray, lo: int, hi: int, g: np.ndarray, h: np.ndarray) -> None:
    """(raw - y)**2 / 2."""
    for row in range(lo, hi):
        i = np.uint64(row)
        g[i] = raw[i] - y[i]
        h[i] = 1.0


@inlined
def fill_pinball(level: float, y: np.ndarray, raw: np.ndarray, lo: int, hi: int, g: np.ndarray, h: np.ndarray) -> None:
    """The loss of a quantile: level * (y - raw) below y, (1 - level) * (raw - y) above; at y the slope is 0."""
    for row in range(lo, hi):
        i = np.uint64(row)
        excess = raw[i] - y[i]
        slope = 1.0 - level if excess > 0.0 else -level
        g[i] = 0.0 if excess == 0.0 else slope
        h[i] = 1.0


@inlined
def fill_absolute(y: np.ndarray, raw: np.ndarray, lo: int, hi: int, g: np.ndarray, h: np.ndarray) -> None:
    """|raw - y|; at y the slope is 0."""
    for row in range(lo, hi):
        i = np.uint64(row)
        excess = raw[i] - y[i]
        slope = 1.0 if excess > 0.0 else -1.0
        g[i] = 0.0 if excess == 0.0 else slope
        h[i] = 1.0


@inlined
def fill_huber(delta: float, y: np.ndarray, raw: np.ndarray, lo: int, hi: int, g: np.ndarray, h: np.ndarray) -> None:
    """(raw - y)**2 / 2, continued by its tangents beyond delta."""
    for row in range(lo, hi):
        i = np.uint64(row)
        excess = raw[i] - y[i]
        excess = excess if excess < delta else delta
        g[i] = excess if excess > -delta else -delta
        h[i] = 1.0


@inlined
def fill_poisson(y: np.ndarray, raw: np.ndarray, lo: int, hi: int, g: np.ndarray, h: np.ndarray) -> None:
    """exp(raw) - y * raw."""
    for row in range(lo, hi):
        i = np.uint64(row)
        mean = exponential(raw[i])
        g[i] = mean - y[i]
        h[i] = mean if mean > MIN_H else MIN_H


@inlined
def fill_gamma(y: np.ndarray, raw: np.ndarray, lo: int, hi: int, g: np.ndarray, h: np.ndarray) -> None:
    """`raw + y * exp(-raw)`."""
    for row in range(lo, hi):
        i = np.uint64(row)
        ratio = y[i] * exponential(-raw[i])
        g[i] = 1.0 - ratio
        h[i] = ratio if ratio > MIN_H else MIN_H


@inlined
def fill_tweedie(power: float, y: np.ndarray, raw: np.ndarray, lo: int, hi: int, g: np.ndarray, h: np.ndarray) -> None:
    """exp((2 - power) * raw) / (2 - power) + y * exp((1 - power) * raw) / (power - 1)."""
    for row in range(lo, hi):
        i = np.uint64(row)
        above = exponential((2.0 - power) * raw[i])
        below = y[i] * exponential((1.0 - power) * raw[i])
        g[i] = above - below
        curvature = (2.0 - power) * above + (power - 1.0) * below
        h[i] = curvature if curvature > MIN_H else MIN_H


@inlined
def fill_logistic(
    y: np.ndarray, raw: np.ndarray, lo: int, hi: int, g: np.ndarray, h: np.ndarray, losses: np.ndarray
) -> None:
    """-log of the probability of class y, 0 or 1; g keeps its digits where that probability is near 1.

    The losses themselves, which need the same exponential, are written from 0 on.
    """
    first = np.uint64(lo)
    for row in range(lo, hi):
        i = np.uint64(row)
        is_one = y[i] > 0.5
        excess = -raw[i] if is_one else raw[i]  # how far the score points away from the class
        e = exponential(-abs(excess))
        likely = 1.0 / (1.0 + e)
        unlikely = e * likely
        miss = likely if excess >= 0.0 else unlikely
        g[i] = -miss if is_one else miss
        curvature = likely * unlikely
        h[i] = curvature if curvature > MIN_H else MIN_H
        losses[i - first] = e
    for row in range(lo, hi):
        i = np.uint64(row)
        excess = -raw[i] if y[i] > 0.5 else raw[i]
        losses[i - first] = (excess if excess > 0.0 else 0.0) + log_one_plus(losses[i - first])


@inlined
def fill_exponential(y: np.ndarray, raw: np.ndarray, lo: int, hi: int, g: np.ndarray, h: np.ndarray) -> None:
    """exp(raw) for class 0, exp(-raw) for class 1."""
    for row in range(lo, hi):
        i = np.uint64(row)
        is_one = y[i] > 0.5
        loss = exponential(-raw[i] if is_one else raw[i])
        g[i] = -loss if is_one else loss
        h[i] = loss if loss > MIN_H else MIN_H


@inlined
def sum_block(weight: np.ndarray, lo: int, hi: int, g: np.ndarray, h: np.ndarray, sums: np.ndarray) -> None:
    """Write the sums of the block of rows lo .. hi."""
    sum_g = 0.0
    sum_h = 0.0
    max_g = 0.0
    max_h = 0.0
    is_weighted = len(weight) > 1
    for row in range(lo, hi):
        i = np.uint64(row)
        size = abs(g[i])
        curvature = h[i]
        max_g = size if size > max_g else max_g
        max_h = curvature if curvature > max_h else max_h
        if is_weighted:
            size *= weight[i]
            curvature *= weight[i]
        sum_g += size
        sum_h += curvature
    block = lo // BLOCK
    all_weigh = 1.0 if is_weighted else weight[0]  # not 1 where there is one row only
    sums[block, SUM_G] = sum_g * all_weigh
    sums[block, SUM_H] = sum_h * all_weigh
    sums[block, MAX_G] = max_g
    sums[block, MAX_H] = max_h


@inlined
def loss_of(loss: int, parameter: float, y: float, raw: float) -> float:
    """Loss of a row; of two classes, y is 0 or 1."""
    if loss == ABSOLUTE:
        return abs(raw - y)
    if loss == HUBER:
        size = abs(raw - y)
        inner = size if size < parameter else parameter
        return inner * (size - 0.5 * inner)
    if loss == QUANTILE:
        excess = raw - y
        return (1.0 - parameter) * excess if excess > 0.0 else -parameter * excess
    if loss == POISSON:
        return exponential(raw) - y * raw
    if loss == GAMMA:
        return raw + y * exponential(-raw)
    if loss == TWEEDIE:
        above = exponential((2.0 - parameter) * raw) / (2.0 - parameter)
        return above + y * exponential((1.0 - parameter) * raw) / (parameter - 1.0)
    return exponential(-raw if y > 0.5 else raw)


@inlined
def sum_losses_of_block(weight: np.ndarray, lo: int, hi: int, losses: np.ndarray, sums: np.ndarray) -> None:
    """Write the sums of the block of rows lo .. hi, of which `losses` holds the losses from 0 on."""
    sum_loss = 0.0
    sum_weight = 0.0
    is_weighted = len(weight) > 1
    for j in range(hi - lo):
        i = np.uint64(j)
        w = weight[np.uint64(lo) + i] if is_weighted else 1.0
        sum_loss += w * losses[i]
        sum_weight += w
    block = lo // BLOCK
    sums[block, SUM_LOSS] = sum_loss
    sums[block, SUM_WEIGHT] = sum_weight


# --- Doors: derivatives -------------------------------------------------------------------------------------


@door
def fill(
    loss: int,
    parameter: float,  # level of QUANTILE, delta of HUBER, power of TWEEDIE
    y: np.ndarray,  # (n_rows,) float64; class 0 or 1 for EXPONENTIAL
    raw: np.ndarray,  # (n_rows,) float64
    lo: int,  # a multiple of BLOCK
    hi: int,  # a multiple of BLOCK, or n_rows
    gradients: Gradients,  # written in rows lo .. hi
    sums: np.ndarray,  # (n_blocks, 4) float64, written in the blocks of these rows
) -> None:
    """Write the derivatives of a loss with one raw score a row, but LOGISTIC, and their sums by block."""
    g = gradients.g
    h = gradients.h
    weight = gradients.weight
    for first in range(lo, hi, BLOCK):
        last = min(first + BLOCK, hi)
        if loss == SQUARED:
            fill_squared(y, raw, first, last, g, h)
        elif loss == ABSOLUTE:
            fill_absolute(y, raw, first, last, g, h)
        elif loss == HUBER:
            fill_huber(parameter, y, raw, first, last, g, h)
        elif loss == QUANTILE:
            fill_pinball(parameter, y, raw, first, last, g, h)
        elif loss == POISSON:
            fill_poisson(y, raw, first, last, g, h)
        elif loss == GAMMA:
            fill_gamma(y, raw, first, last, g, h)
        elif loss == TWEEDIE:
            fill_tweedie(parameter, y, raw, first, last, g, h)
        else:
            fill_exponential(y, raw, first, last, g, h)
        sum_block(weight, first, last, g, h, sums)


@door
def fill_log_loss(
    y: np.ndarray,  # (n_rows,) float64: class 0 or 1
    raw: np.ndarray,  # (n_rows,) float64
    lo: int,  # a multiple of BLOCK
    hi: int,  # a multiple of BLOCK, or n_rows
    gradients: Gradients,  # written in rows lo .. hi
    sums: np.ndarray,  # (n_blocks, 4) float64, written in the blocks of these rows
    losses: np.ndarray,  # (BLOCK,) float64 scratch
    loss_sums: np.ndarray,  # (n_blocks, 2) float64, written as by `sum_losses`
) -> None:
    """What `fill` and `sum_losses` do, for LOGISTIC: 1.5 ns a row less than one after the other."""
    for first in range(lo, hi, BLOCK):
        last = min(first + BLOCK, hi)
        fill_logistic(y, raw, first, last, gradients.g, gradients.h, losses)
        sum_block(gradients.weight, first, last, gradients.g, gradients.h, sums)
        sum_losses_of_block(gradients.weight, first, last, losses, loss_sums)


@door
def fill_softmax(
    raw: np.ndarray,  # (n_classes, n_rows) float64
    lo: int,  # a multiple of BLOCK
    hi: int,  # a multiple of BLOCK, or n_rows
    p: np.ndarray,  # (n_classes, n_rows) float64, written in rows lo .. hi
    scratch: np.ndarray,  # (3, BLOCK) float64: greatest score and sum of a tile, losses of a block
    y: np.ndarray,  # (n_rows,) float64: the class of each row
    weight: np.ndarray,
    sums: np.ndarray,  # (n_blocks, 2) float64, written as by `sum_class_losses`
) -> None:
    """Write the probabilities of the classes, and what they tell of the loss by the way: a third of both by themselves.

    The greatest score of a row is taken from all, so that one exponential is 1 and none overflows. The inner loops run
    over rows, of which LLVM makes vectors: 2.8 ns a row and class, against 3.9 ns with classes inside.
    """
    n_classes = len(raw)
    for block in range(lo, hi, BLOCK):
        end = min(block + BLOCK, hi)
        for begin in range(block, end, TILE):
            n = min(TILE, end - begin)
            first = np.uint64(begin)
            place = np.uint64(begin - block)
            for j in range(n):
                i = np.uint64(j)
                scratch[0, i] = raw[0, first + i]
                scratch[1, i] = 0.0
            for k in range(1, n_classes):
                for j in range(n):
                    i = np.uint64(j)
                    score = raw[k, first + i]
                    scratch[0, i] = score if score > scratch[0, i] else scratch[0, i]
            for k in range(n_classes):
                for j in range(n):
                    i = np.uint64(j)
                    e = exponential(raw[k, first + i] - scratch[0, i])
                    p[k, first + i] = e
                    scratch[1, i] += e
            for j in range(n):
                i = np.uint64(j)
                own = raw[np.int64(y[first + i]), first + i]
                scratch[2, place + i] = logarithm(scratch[1, i]) + (scratch[0, i] - own)
            for j in range(n):
                i = np.uint64(j)
                scratch[1, i] = 1.0 / scratch[1, i]
            for k in range(n_classes):
                for j in range(n):
                    i = np.uint64(j)
                    p[k, first + i] *= scratch[1, i]
        sum_losses_of_block(weight, block, end, scratch[2], sums)


@door
def fill_class(
    p: np.ndarray,  # (n_classes, n_rows) float64 of `fill_softmax`
    k: int,
    factor: float,  # of h
    y: np.ndarray,  # (n_rows,) float64: the class of each row
    lo: int,
    hi: int,
    gradients: Gradients,
    sums: np.ndarray,
) -> None:
    """Write the derivatives of -log of the probability of class y by the raw score of class k: p - [y == k], p(1 - p).

    The latter, the diagonal of the second derivatives, is taken `factor` times: see `ensemble.losses`.
    """
    g = gradients.g
    h = gradients.h
    weight = gradients.weight
    own = np.float64(k)
    for first in range(lo, hi, BLOCK):
        last = min(first + BLOCK, hi)
        for row in range(first, last):
            i = np.uint64(row)
            chance = p[k, i]
            g[i] = chance - 1.0 if y[i] == own else chance
            curvature = factor * (chance * (1.0 - chance))
            h[i] = curvature if curvature > MIN_H else MIN_H
        sum_block(weight, first, last, g, h, sums)


@door
def sum_columns(lo: int, hi: int, gradients: Gradients, sums: np.ndarray) -> None:
    """Write the sums by block of derivatives that were made elsewhere."""
    for first in range(lo, hi, BLOCK):
        sum_block(gradients.weight, first, min(first + BLOCK, hi), gradients.g, gradients.h, sums)


# --- Doors: losses ------------------------------------------------------------------------------------------


@door
def sum_losses(
    loss: int,
    parameter: float,
    y: np.ndarray,
    weight: np.ndarray,
    raw: np.ndarray,  # (n_rows,) float64
    losses: np.ndarray,  # (BLOCK,) float64 scratch
    sums: np.ndarray,  # (n_blocks, 2) float64, written
) -> None:
    """Write the sums by block of weight * loss and of the weight, for a loss with one raw score a row."""
    n_rows = len(y)
    for begin in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - begin)
        first = np.uint64(begin)
        if loss == LOGISTIC:
            for j in range(n):
                i = np.uint64(j)
                score = raw[first + i]
                excess = -score if y[first + i] > 0.5 else score
                losses[i] = (excess if excess > 0.0 else 0.0) + log_one_plus(exponential(-abs(excess)))
        elif loss == SQUARED:
            for j in range(n):
                i = np.uint64(j)
                excess = raw[first + i] - y[first + i]
                losses[i] = 0.5 * (excess * excess)
        else:
            for j in range(n):
                i = np.uint64(j)
                losses[i] = loss_of(loss, parameter, y[first + i], raw[first + i])
        sum_losses_of_block(weight, begin, begin + n, losses, sums)


@door
def sum_class_losses(
    y: np.ndarray,  # (n_rows,) float64: the class of each row
    weight: np.ndarray,
    raw: np.ndarray,  # (n_classes, n_rows) float64
    greatest: np.ndarray,  # (BLOCK,) float64 scratch
    losses: np.ndarray,  # the same
    sums: np.ndarray,  # (n_blocks, 2) float64, written
) -> None:
    """Write the sums by block of weight * -log of the probability of a row's class, and of the weight."""
    n_classes = len(raw)
    n_rows = len(y)
    for begin in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - begin)
        first = np.uint64(begin)
        for j in range(n):
            i = np.uint64(j)
            greatest[i] = raw[0, first + i]
            losses[i] = 0.0
        for k in range(1, n_classes):
            for j in range(n):
                i = np.uint64(j)
                score = raw[k, first + i]
                greatest[i] = score if score > greatest[i] else greatest[i]
        for k in range(n_classes):
            for j in range(n):
                i = np.uint64(j)
                losses[i] += exponential(raw[k, first + i] - greatest[i])
        for j in range(n):
            i = np.uint64(j)
            losses[i] = logarithm(losses[i]) + (greatest[i] - raw[np.int64(y[first + i]), first + i])
        sum_losses_of_block(weight, begin, begin + n, losses, sums)
