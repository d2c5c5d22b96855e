"""Gather the rows of a bag: their numbers, codes, classes and counts, side by side for a tree to grow on."""

from __future__ import annotations

import numpy as np

from spinney._jit import door
from spinney._types import TARGET, WEIGHT

ONE = np.uint64(1)


@door
def gather_bag(
    counts: np.ndarray,  # (n_rows,) int32
    words: np.ndarray,  # (n_rows, n_words) uint64, codes of the table
    classes: np.ndarray,  # (n_rows,) int64
    is_product: bool,
    ids: np.ndarray,  # (n_drawn,) int32
    drawn: np.ndarray,  # (n_drawn or more, n_words) uint64
    addends: np.ndarray,  # (2, n_drawn) int64
) -> int:
    """Fill the last three arrays with the rows whose count is not 0, n_drawn of them; return the sum of their squares.

    A row adds its class and its count; is_product: class times count.
    """
    n_drawn = np.uint64(ids.shape[0])
    at = np.uint64(0)
    row = np.uint64(0)
    while at < n_drawn:  # added, not jumped on: nobody can predict which rows were drawn
        ids[at] = np.int32(row)
        at += np.uint64(counts[row] != 0)
        row += ONE
    squares = np.int64(0)
    for k in range(n_drawn):
        i = np.uint64(ids[k])
        count = np.int64(counts[i])
        addends[TARGET, k] = classes[i] * count if is_product else classes[i]
        addends[WEIGHT, k] = count
        squares += count * count
    for k in range(n_drawn):
        i = np.uint64(ids[k])
        for w in range(np.uint64(words.shape[1])):
            drawn[k, w] = words[i, w]
    return squares
