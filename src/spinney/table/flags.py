"""Flags: numbers of two values, as one-hot columns have, take a bit of a row each in place of a code of sixteen.

    codes of a, b, c, d      a and c have two values      row of words
    7 1 | 2 | 3              b = 7, d = 3 keep codes      [7 3 . .] [bit 0: c - 1, bit 1: a - 1]

What a forest reads and moves of a row is memory: 105 one-hot columns of a table with eight categories take 32 bytes in
place of 216. Codes of the other features come first, in their order, then whole words of bits. Features are numbered
as they stand in a row while a tree grows; `Packing.number` tells what the table calls them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._types import CODE, CODES_OF_WORD, IS_BINNED, IS_CATEGORICAL, N_CODES
from spinney.table.cells import SparseColumns
from spinney.table.coding import Codes, row_stride

CELLS_AT_ONCE = 1 << 20  # that are packed together: three megabytes beside the rows


class Packing(NamedTuple):
    """Which features have codes of their own in a row, and in which order all of them stand."""

    number: NDArray[np.int64]  # (n_features,): the feature of the table at each place, those with codes first
    n_coded: int  # features with codes; the others are bits, or behind these, sparse
    sparse: SparseColumns | None = None  # the cells of those; None: there are none

    @property
    def n_bits(self) -> int:
        """Features that are bits."""
        return len(self.number) - self.n_coded - (0 if self.sparse is None else len(self.sparse.features))

    @property
    def place(self) -> NDArray[np.int64]:
        """The place of each feature of the table."""
        return np.argsort(self.number, kind="stable")


def whole_codes(n_features: int) -> Packing:
    """Every feature has codes of its own, in the order of the table."""
    return Packing(np.arange(n_features), n_features)


def find_flags(codes: Codes) -> NDArray[np.bool_]:
    """Numbers of two values without a missing one, (n_features,); those of two bins have more."""
    is_whole = (codes.features[IS_CATEGORICAL] == 0) & (codes.features[IS_BINNED] == 0)
    return (codes.features[N_CODES] == 2) & is_whole & ~codes.has_missing


def pack_flags(codes: Codes, sparse: SparseColumns | None = None) -> tuple[NDArray[np.uint16], Packing]:
    """Rows with a bit for each flag, and how they stand there; the rows as they are where that makes none shorter.

    Sparse features have no place in them.
    """
    is_flag = find_flags(codes)
    is_coded = ~is_flag
    cells = np.empty(0, np.int64) if sparse is None else sparse.features
    is_coded[cells] = False
    coded, flags = np.flatnonzero(is_coded), np.flatnonzero(is_flag)
    n_words = -(-len(coded) // CODES_OF_WORD)
    first = n_words * CODES_OF_WORD
    stride = row_stride(first + -(-len(flags) // 64) * CODES_OF_WORD)
    if stride >= codes.rows.shape[1]:
        return codes.rows, whole_codes(codes.n_features)
    rows = np.zeros((len(codes.rows), stride), CODE)
    n_bytes = -(-len(flags) // 8)
    at_once = max(CELLS_AT_ONCE // codes.n_features, 1)
    for begin in range(0, len(rows), at_once):
        block = codes.rows[begin : begin + at_once]
        here = rows[begin : begin + at_once]
        here[:, : len(coded)] = block.take(coded, axis=1)
        bits = np.packbits(block.take(flags, axis=1) == 2, axis=1, bitorder="little")
        here.view(np.uint8)[:, 2 * first : 2 * first + n_bytes] = bits
    return rows, Packing(np.concatenate([coded, flags, cells]), len(coded), sparse)
