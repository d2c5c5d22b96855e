"""Find rows that are alike in all that a tree reads of them: their codes, and their target."""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined

from ..common.rng import mix

SUMMED_ROWS = 4096  # that are added up together, as in `kernels.boost.gradients`


@inlined
def are_alike(i: np.uint64, j: np.uint64, words: np.ndarray, width: np.uint64, marks: np.ndarray) -> bool:
    """Whether two rows are alike."""
    if marks[i] != marks[j]:
        return False
    for w in range(width):
        if words[i * width + w] != words[j * width + w]:
            return False
    return True


@door
def number_alike(
    words: np.ndarray,  # (n_rows * width,) uint64: codes
    width: int,
    marks: np.ndarray,  # (n_rows,) float64: finite targets
    places: np.ndarray,  # (a power of two,) int32 scratch, -1 everywhere
    numbers: np.ndarray,  # (n_rows,) int32, written: rows that are alike have one number
    first: np.ndarray,  # (most,) int32, written: the first row of each number
    times: np.ndarray,  # (most,) int64, written: how many rows have it
) -> int:
    """Number the rows that differ, in the order of the first of each; return how many, or -1 if more than `first` has.

    A table of places by hash, in which a number takes the next one that is free. Half of it stays free.
    """
    n_words = np.uint64(width)
    mask = np.uint64(len(places) - 1)
    n = np.int64(0)
    for row in range(len(marks)):
        i = np.uint64(row)
        key = np.uint64(np.int64(marks[i]))
        for w in range(n_words):
            key = mix(key ^ words[i * n_words + w])
        at = key & mask
        while places[at] >= 0 and not are_alike(np.uint64(first[places[at]]), i, words, n_words, marks):
            at = (at + np.uint64(1)) & mask
        if places[at] < 0:
            if n == len(first):
                return np.int64(-1)
            places[at] = np.int32(n)
            first[n] = np.int32(row)
            times[n] = 0
            n += 1
        number = np.int64(places[at])
        numbers[i] = np.int32(number)
        times[number] += 1
    return n


@door
def sum_alike(values: np.ndarray, numbers: np.ndarray, sums: np.ndarray) -> None:
    """Write the sums by block of rows, in their order, of what rows of each number have, and the number of the rows.

    values: float64 by number; sums: (n_blocks, 2) float64. As if the rows had been there all along.
    """
    n_rows = len(numbers)
    for begin in range(0, n_rows, SUMMED_ROWS):
        end = min(begin + SUMMED_ROWS, n_rows)
        total = 0.0
        for row in range(begin, end):
            total += values[np.uint64(numbers[np.uint64(row)])]
        sums[begin // SUMMED_ROWS, 0] = total
        sums[begin // SUMMED_ROWS, 1] = np.float64(end - begin)
