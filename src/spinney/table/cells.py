"""Cells: columns that are almost always one value, as counts of words are, have no place in the rows of a forest.

    codes of a, b, c        b is sparse: 3 is its usual code      row     cells of b
    7 3 | 1                                                       [7 1]   row 2: 5
    5 3 | 2                                                       [5 2]
    6 5 | 2                                                       [6 2]

What a forest reads and moves of a row is memory: a row of 3,000 counts takes 6 kB, and that of the few which are not
the usual one some 40 bytes. The cells are kept by column, for the search, and by row, for nodes of few rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._types import CODE, IS_CATEGORICAL, N_CODES, ROW
from spinney.table.coding import Codes

if TYPE_CHECKING:
    from spinney.table.sparse_codes import SparseCodes

LEAST_SPARSE = 100  # features that rows are to be rid of: they are shorter by 200 bytes then
USUAL_SHARE = 20  # of so many rows, all but one at least have the usual code
RARE_SHARE = 100  # the same of flags: a cell takes some hundred bits, and a flag one of each row
LEAST_RARE = 1600  # such flags that rows are to be rid of: they are shorter by 200 bytes then
SAMPLED_ROWS = 255  # that tell which code may be the usual one: the middle one of them is what more than half have
BLOCK_CODES = 1 << 22  # that are compared together


class SparseColumns(NamedTuple):
    """The cells of a table; sparse features are numbered from 0, in the order of the table."""

    features: NDArray[np.int64]  # (n_sparse,): which features of the table they are
    usual: NDArray[np.uint16]  # (n_sparse,)
    begin: NDArray[np.int64]  # (n_sparse + 1,): where the cells of each begin, in the next two
    row: NDArray[np.int32]  # (n_cells,), ascending in a column
    code: NDArray[np.uint16]  # (n_cells,)
    row_begin: NDArray[np.int64]  # (n_rows + 1,): where the cells of each row begin, in the next two
    feature: NDArray[np.int32]  # (n_cells,): the number of the sparse feature, ascending in a row
    row_code: NDArray[np.uint16]  # (n_cells,)


def can_be_sparse(codes: Codes | SparseCodes) -> NDArray[np.bool_]:
    """Whether features are numbers that miss nothing.

    Of one value there are no cells at all: words that no text has.
    """
    return (codes.features[IS_CATEGORICAL] == 0) & ~codes.has_missing


def choose_sparse(codes: Codes | SparseCodes, may_be: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which features are sparse, of those that are as far as they have been looked at, (n_features,).

    Few of them keep their places in the rows.
    """
    is_flag = codes.features[N_CODES] == 2
    has_rare = np.count_nonzero(may_be & is_flag) >= LEAST_RARE
    if not has_rare:
        may_be = may_be & ~is_flag
    if not has_rare and np.count_nonzero(may_be) < LEAST_SPARSE:
        may_be = np.zeros_like(may_be)
    return may_be


def most_cells(codes: Codes | SparseCodes, n_rows: int) -> NDArray[np.int64]:
    """Cells that a sparse feature has at most, (n_features,)."""
    return n_rows // np.where(codes.features[N_CODES] == 2, RARE_SHARE, USUAL_SHARE)


def guess_usual(codes: Codes) -> tuple[NDArray[np.int64], NDArray[np.uint16]]:
    """Features that may be sparse, and the code that is usual then."""
    may_be = can_be_sparse(codes)
    asked = np.flatnonzero(may_be)
    n_rows = len(codes.rows)
    sampled = codes.rows[np.linspace(0, n_rows - 1, min(n_rows, SAMPLED_ROWS)).astype(np.int64)].take(asked, axis=1)
    usual = np.sort(sampled, axis=0)[len(sampled) // 2]
    is_usual = np.count_nonzero(sampled == usual, axis=0) * (USUAL_SHARE // 2) >= len(sampled) * (USUAL_SHARE // 2 - 1)
    may_be[asked] = is_usual
    is_usual = choose_sparse(codes, may_be)[asked]
    return asked[is_usual], usual[is_usual]


def find_cells(codes: Codes) -> SparseColumns | None:
    """Cells of columns with the usual code in all but one of USUAL_SHARE rows; None where there are few of these.

    Of flags in all but one of RARE_SHARE: else a bit of a row is less than cells are.
    """
    if codes.n_features < LEAST_SPARSE:
        return None
    features, usual = guess_usual(codes)
    if len(features) == 0:
        return None
    rows, columns, found = list_unusual(codes.rows, features, usual)
    counts = np.bincount(columns, minlength=len(features))
    may_be = np.zeros(codes.n_features, np.bool_)
    may_be[features] = counts <= most_cells(codes, len(codes.rows))[features]
    is_sparse = choose_sparse(codes, may_be)[features]
    if not is_sparse.any():
        return None
    if not is_sparse.all():
        keep = is_sparse[columns]
        rows, columns, found = rows[keep], (np.cumsum(is_sparse) - 1)[columns[keep]], found[keep]
    narrow = columns.astype(CODE) if len(features) <= np.iinfo(CODE).max else columns  # sorted by digits
    by_column = np.argsort(narrow, kind="stable")
    return SparseColumns(
        features=features[is_sparse],
        usual=usual[is_sparse],
        begin=np.append(0, np.cumsum(counts[is_sparse])),
        row=rows[by_column],
        code=found[by_column],
        row_begin=np.append(0, np.cumsum(np.bincount(rows, minlength=len(codes.rows)))),
        feature=columns.astype(np.int32),
        row_code=found,
    )


def list_unusual(
    rows: NDArray[np.uint16], features: NDArray[np.int64], usual: NDArray[np.uint16]
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.uint16]]:
    """Row, place among `features` and code of every cell, row by row."""
    n_columns = len(features)
    is_all = n_columns == rows.shape[1]
    at_once = max(BLOCK_CODES // n_columns, 1)
    numbers, columns, found = [np.empty(0, ROW)], [np.empty(0, np.int64)], [np.empty(0, CODE)]
    for begin in range(0, len(rows), at_once):
        block = rows[begin : begin + at_once]
        if not is_all:
            block = block.take(features, axis=1)
        at = np.flatnonzero(block != usual)
        numbers.append((begin + at // n_columns).astype(ROW))
        columns.append(at % n_columns)
        found.append(block.reshape(-1)[at])
    return np.concatenate(numbers), np.concatenate(columns), np.concatenate(found)
