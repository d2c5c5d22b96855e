"""The first principal component of the class shares of levels, along which levels are ordered.

Power iteration finds it: a direction is multiplied POWER_STEPS times by the covariance C of the shares, level by level
weighted. Multiplying by C level by level, dividing for each share, was most of the time of forests of many classes. So
shares are computed once, C once, and C is squared: its powers of 1, 2, 4, ... are multiplied where the number of steps
has a bit, and nothing more is needed once a power of C is the component alone.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import BIN_WEIGHT, MOST_SQUARED

from ..common.structs import ClassScratch

POWER_STEPS = 199
POWER_TOLERANCE = 1e-14
GOLDEN_RATIO = 0.6180339887498949
ONE, TWO, THREE, FOUR = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


@inlined
def centre_shares(n_bins: int, n_classes: int, shares: np.ndarray, bins: np.ndarray, mean: np.ndarray) -> None:
    """Turn the class weights of levels, shares[level * n_classes + class], into shares less their mean."""
    known = 0.0
    for k in range(n_classes):
        mean[0, k] = 0.0
    for b in range(np.uint64(n_bins)):
        known += np.float64(bins[BIN_WEIGHT, b])
        at = b * np.uint64(n_classes)
        for k in range(np.uint64(n_classes)):
            mean[0, k] += shares[at + k]
    for k in range(n_classes):
        mean[0, k] /= known
    for b in range(np.uint64(n_bins)):
        weight = np.float64(bins[BIN_WEIGHT, b])
        at = b * np.uint64(n_classes)
        for k in range(np.uint64(n_classes)):
            shares[at + k] = shares[at + k] / weight - mean[0, k]


@inlined
def choose_start(n_bins: int, n_classes: int, shares: np.ndarray, bins: np.ndarray, vectors: np.ndarray) -> None:
    """Write the direction of the level that is farthest out, so that it is not orthogonal to what is sought.

    By symmetry it can be, still: an uneven push keeps a part of every direction.
    """
    farthest = -1.0
    first = np.uint64(0)
    for b in range(np.uint64(n_bins)):
        at = b * np.uint64(n_classes)
        norm = 0.0
        for k in range(np.uint64(n_classes)):
            norm += shares[at + k] * shares[at + k] * np.float64(bins[BIN_WEIGHT, b])
        if norm > farthest:
            farthest = norm
            first = at
    largest = 0.0
    for k in range(np.uint64(n_classes)):
        vectors[1, k] = shares[first + k]
        largest = max(largest, abs(vectors[1, k]))
    for k in range(n_classes):
        turn = np.float64(k + 1) * GOLDEN_RATIO
        vectors[1, k] += 0.1 * largest * (turn - np.floor(turn))


@inlined
def take_next(n_classes: int, vectors: np.ndarray) -> float:
    """Let the next direction, scaled to length 1, be the direction; return by how much that has changed it, or 0."""
    norm = 0.0
    for k in range(n_classes):
        norm += vectors[2, k] * vectors[2, k]
    norm = np.sqrt(norm)
    change = 0.0
    if norm == 0.0:
        return change
    for k in range(n_classes):
        d = vectors[2, k] / norm
        change = max(change, abs(d - vectors[1, k]))
        vectors[1, k] = d
    return change


@inlined
def multiply(n_classes: int, matrix: np.ndarray, vectors: np.ndarray) -> None:
    """Multiply the direction by matrix[0]."""
    n = np.uint64(n_classes)
    for j in range(n):
        dot = 0.0
        for k in range(n):
            dot += matrix[0, j, k] * vectors[1, k]
        vectors[2, j] = dot
    take_next(n_classes, vectors)


@inlined
def dot_rows(i: np.uint64, k: np.uint64, n: np.uint64, matrix: np.ndarray) -> float:
    """Product of row i and column k of matrix[0], which is symmetric."""
    dot = 0.0
    for j in range(n):
        dot += matrix[0, i, j] * matrix[0, j, k]
    return dot


@inlined
def square(n_classes: int, matrix: np.ndarray) -> float:
    """Write the square of matrix[0], of which rows are columns, to the lower half of matrix[1]; return its trace.

    Two rows by four columns at a time: sums that do not wait for each other, of numbers side by side.
    """
    n = np.uint64(n_classes)
    for i in range(np.uint64(0), n & ~ONE, TWO):
        end = min((i + FOUR + ONE) & ~THREE, n & ~THREE)
        for k in range(np.uint64(0), end, FOUR):
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            e, f, g, h = 0.0, 0.0, 0.0, 0.0
            for j in range(n):
                x, y = matrix[0, i, j], matrix[0, i + ONE, j]
                p, q, r, s = matrix[0, j, k], matrix[0, j, k + ONE], matrix[0, j, k + TWO], matrix[0, j, k + THREE]
                a, b, c, d = a + x * p, b + x * q, c + x * r, d + x * s
                e, f, g, h = e + y * p, f + y * q, g + y * r, h + y * s
            matrix[1, i, k], matrix[1, i, k + ONE], matrix[1, i, k + TWO], matrix[1, i, k + THREE] = a, b, c, d
            row = i + ONE
            matrix[1, row, k], matrix[1, row, k + ONE], matrix[1, row, k + TWO], matrix[1, row, k + THREE] = e, f, g, h
        for row in range(i, i + TWO):
            for k in range(end, row + ONE):
                matrix[1, row, k] = dot_rows(row, k, n, matrix)
    for row in range(n & ~ONE, n):
        for k in range(n):
            matrix[1, row, k] = dot_rows(row, k, n, matrix)
    trace = 0.0
    for i in range(n):
        trace += matrix[1, i, i]
    return trace


@inlined
def turn_by_squares(
    n_bins: int, n_classes: int, shares: np.ndarray, bins: np.ndarray, vectors: np.ndarray, matrix: np.ndarray
) -> None:
    """Turn the direction in vectors[1] to the component by powers of the covariance."""
    n = np.uint64(n_classes)
    for j in range(n):
        for k in range(n):
            matrix[1, j, k] = 0.0
    for b in range(np.uint64(n_bins)):
        at = b * n
        weight = np.float64(bins[BIN_WEIGHT, b])
        for j in range(n):
            scaled = weight * shares[at + j]
            for k in range(j + ONE):
                matrix[1, j, k] += scaled * shares[at + k]
    trace = 0.0
    for j in range(n):
        trace += matrix[1, j, j]
    steps = np.int64(POWER_STEPS)
    while steps > 0 and trace > 0.0:
        is_alone = trace > 1.0 - POWER_TOLERANCE and steps < POWER_STEPS  # of a trace of 1 the square has less else
        scale = 1.0 / trace
        for j in range(n):
            for k in range(j + ONE):
                held = matrix[1, j, k] * scale
                matrix[0, j, k] = held
                matrix[0, k, j] = held
        if steps & 1 != 0 or is_alone:
            multiply(n_classes, matrix, vectors)
        if is_alone:
            return
        steps >>= 1
        if steps > 0:
            trace = square(n_classes, matrix)


@inlined
def turn_by_steps(n_bins: int, n_classes: int, shares: np.ndarray, bins: np.ndarray, vectors: np.ndarray) -> None:
    """The same step by step: of so many classes squares would take longer, and more memory."""
    n = np.uint64(n_classes)
    for _ in range(POWER_STEPS):
        for k in range(n):
            vectors[2, k] = 0.0
        for b in range(np.uint64(n_bins)):
            at = b * n
            dot = 0.0
            for k in range(n):
                dot += shares[at + k] * vectors[1, k]
            for k in range(n):
                vectors[2, k] += shares[at + k] * dot * np.float64(bins[BIN_WEIGHT, b])
        if take_next(n_classes, vectors) < POWER_TOLERANCE:
            return


@kernel
def score_levels(n_bins: int, n_classes: int, bins: np.ndarray, classes: ClassScratch, scores: np.ndarray) -> None:
    """Write each level's coordinate on the component to `scores`.

    classes.shares has the class weights of levels, n_classes of them a level; bins their sums. It is overwritten.
    """
    shares, vectors = classes.shares, classes.vectors
    centre_shares(n_bins, n_classes, shares, bins, vectors)
    choose_start(n_bins, n_classes, shares, bins, vectors)
    if n_classes <= MOST_SQUARED:
        turn_by_squares(n_bins, n_classes, shares, bins, vectors, classes.matrix)
    else:
        turn_by_steps(n_bins, n_classes, shares, bins, vectors)
    for b in range(np.uint64(n_bins)):
        at = b * np.uint64(n_classes)
        dot = 0.0
        for k in range(np.uint64(n_classes)):
            dot += shares[at + k] * vectors[1, k]
        scores[b] = dot
    if scores[0] > 0.0:  # bin 0 is the lowest level: the sign of the component is ours to choose
        for b in range(n_bins):
            scores[b] = -scores[b]
