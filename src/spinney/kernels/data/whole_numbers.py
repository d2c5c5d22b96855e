"""Code columns of whole numbers by counting: no value is sorted, and each is read once.

    read_rows, read_columns    the last sixteen bits of each number ──► rows of codes; lowest and highest number
    rank_numbers               the numbers that occur, in order ──► their codes, in the place of those bits

A column whose lowest and highest number are near each other is told by sixteen bits. Where numbers have fractions, are
missing or are far apart, what stands in the rows means nothing, and somebody else codes the column.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, kernel

MOST = 2.0**52  # whole numbers this far from 0 have others one away
LOW, HIGH, N_ODD = 0, 1, 2  # of spans: lowest and highest number of a column, and how many values are no such numbers
NO_LOW = np.int64(2**52)  # of no numbers; the highest is its opposite
LAST_BITS = np.int64(0xFFFF)
FIRST_ROWS = 64  # that tell most columns that have fractions
TILE_ROWS = 256  # read and written together: 16 kB of codes of 32 columns


@kernel
def count_whole(spans: np.ndarray) -> int:
    """How many columns have whole numbers alone so far."""
    n_whole = np.int64(0)
    for j in range(spans.shape[1]):
        n_whole += np.int64(spans[N_ODD, j] == 0)
    return n_whole


@kernel
def clear_spans(spans: np.ndarray) -> None:
    """Begin with no number in any column."""
    for j in range(spans.shape[1]):
        spans[LOW, j] = NO_LOW
        spans[HIGH, j] = -NO_LOW
        spans[N_ODD, j] = 0


@door
def read_rows(matrix: np.ndarray, first: int, spans: np.ndarray, rows: np.ndarray) -> None:
    """Read neighbouring columns that stand side by side; no further than until all have been seen to have fractions.

    Parameters
    ----------
    matrix : float64 or float32 (n_rows, first + n_columns or more)
    first : int
        The first of the columns, there and in `rows`.
    spans : int64 (3, n_columns)
        Filled.
    rows : uint16 (n_rows, stride)
    """
    n_rows, n_columns, first_column = np.int64(matrix.shape[0]), np.uint64(spans.shape[1]), np.uint64(first)
    clear_spans(spans)
    lo = np.int64(0)
    hi = min(n_rows, np.int64(FIRST_ROWS))
    while lo < hi and count_whole(spans) > 0:
        for i in range(np.uint64(lo), np.uint64(hi)):
            for j in range(n_columns):  # side by side, lowest and highest too: columns are vectors here
                value = np.float64(matrix[i, first_column + j])
                near = value if abs(value) <= MOST else 0.0  # 0 for NaN: no float is made an integer that is none
                whole = np.int64(near)
                low = spans[LOW, j]
                high = spans[HIGH, j]
                spans[LOW, j] = whole if whole < low else low
                spans[HIGH, j] = whole if whole > high else high
                spans[N_ODD, j] += np.int64(np.float64(whole) != value)
                rows[i, first_column + j] = np.uint16(whole & LAST_BITS)
        lo = hi
        hi = min(n_rows, lo + TILE_ROWS)


@door
def read_columns(block: np.ndarray, places: np.ndarray, spans: np.ndarray, rows: np.ndarray) -> None:
    """The same for columns (n_columns, n_rows), each by itself; places: int64 (n_columns,), where they go in `rows`."""
    n_rows = np.int64(block.shape[1])
    clear_spans(spans)
    lo = np.int64(0)
    hi = min(n_rows, np.int64(FIRST_ROWS))
    while lo < hi and count_whole(spans) > 0:
        for j in range(np.uint64(block.shape[0])):
            if spans[N_ODD, j] > 0:
                continue
            place = np.uint64(places[j])
            low = spans[LOW, j]
            high = spans[HIGH, j]
            n_odd = np.int64(0)
            for i in range(np.uint64(lo), np.uint64(hi)):
                value = block[j, i]
                near = value if abs(value) <= MOST else 0.0
                whole = np.int64(near)
                low = whole if whole < low else low
                high = whole if whole > high else high
                n_odd += np.int64(np.float64(whole) != value)
                rows[i, place] = np.uint16(whole & LAST_BITS)
            spans[LOW, j] = low
            spans[HIGH, j] = high
            spans[N_ODD, j] = n_odd
        lo = hi
        hi = min(n_rows, lo + TILE_ROWS)


@door
def rank_numbers(low: np.ndarray, starts: np.ndarray, codes: np.ndarray, places: np.ndarray, rows: np.ndarray) -> None:
    """Write the codes, from 1 in value order, of columns whose last bits stand in `rows`.

    Parameters
    ----------
    low : int64 (n_columns,)
        The lowest number of each column.
    starts : int64 (n_columns + 1,)
        Where the numbers of each column begin in `codes`, and the end; one after the other, up to the highest.
    codes : uint16
        0 at first: afterwards of every number between lowest and highest its code, 0 where it does not occur.
    places : int64 (n_columns,)
        Where the columns stand in `rows`.
    rows : uint16 (n_rows, stride)
    """
    n_rows, n_columns = rows.shape[0], low.shape[0]
    for lo in range(0, n_rows, TILE_ROWS):
        hi = min(lo + TILE_ROWS, n_rows)
        for j in range(n_columns):
            place = np.uint64(places[j])
            for i in range(np.uint64(lo), np.uint64(hi)):
                codes[np.uint64(starts[j] + ((np.int64(rows[i, place]) - low[j]) & LAST_BITS))] = 1
    for j in range(n_columns):
        code = np.int64(0)
        for at in range(np.uint64(starts[j]), np.uint64(starts[j + 1])):
            is_met = np.int64(codes[at])
            code += is_met
            codes[at] = np.uint16(code * is_met)
    for lo in range(0, n_rows, TILE_ROWS):
        hi = min(lo + TILE_ROWS, n_rows)
        for j in range(n_columns):
            place = np.uint64(places[j])
            for i in range(np.uint64(lo), np.uint64(hi)):
                rows[i, place] = codes[np.uint64(starts[j] + ((np.int64(rows[i, place]) - low[j]) & LAST_BITS))]
