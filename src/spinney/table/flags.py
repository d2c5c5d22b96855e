"""Flags: numbers of two values, as one-hot columns have, take a bit of a row each in place of a code of sixteen.

    codes of a, b, c, d      a and c have two values      row of words
    7 1 | 2 | 3              b = 7, d = 3 keep codes      [7 3 . .] [bit 0: c - 1, bit 1: a - 1]

What a forest reads and moves of a row is memory: 105 one-hot columns of a table with eight categories take 32 bytes in
place of 216. Codes of the other features come first, in their order, then whole words of bits. Features are numbered
as they stand in a row while a tree grows; `Packing.number` tells what the table calls them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spinney._types import CODE, CODES_OF_WORD, IS_BINNED, IS_CATEGORICAL, N_CODES
from spinney.table.cells import SparseColumns
from spinney.table.coding import Codes, row_stride

if TYPE_CHECKING:
    from spinney.table.sparse_codes import SparseCodes

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


def find_flags(codes: Codes | SparseCodes) -> NDArray[np.bool_]:
    """Numbers of two values without a missing one, (n_features,); those of two bins have more."""
    is_whole = (codes.features[IS_CATEGORICAL] == 0) & (codes.features[IS_BINNED] == 0)
    return (codes.features[N_CODES] == 2) & is_whole & ~codes.has_missing


class FlagLayout(NamedTuple):
    """How a row of words stands: codes, then whole words of bits."""

    coded: NDArray[np.int64]  # features with codes of their own
    flags: NDArray[np.int64]  # features that are bits
    first_byte: int  # of the bits
    stride: int  # codes of a row

    def packing(self, sparse: SparseColumns | None) -> Packing:
        """The places of all features; sparse ones have none in a row."""
        cells = [] if sparse is None else [sparse.features]
        return Packing(np.concatenate([self.coded, self.flags, *cells]), len(self.coded), sparse)


def lay_out_flags(is_flag: NDArray[np.bool_], sparse: SparseColumns | None) -> FlagLayout | None:
    """How rows stand where flags are bits and sparse features have no place; None where that makes none shorter."""
    has_place = np.ones(len(is_flag), np.bool_)
    if sparse is not None:
        has_place[sparse.features] = False
    coded, flags = np.flatnonzero(has_place & ~is_flag), np.flatnonzero(has_place & is_flag)
    first = -(-len(coded) // CODES_OF_WORD) * CODES_OF_WORD
    stride = row_stride(first + -(-len(flags) // 64) * CODES_OF_WORD)
    if stride >= row_stride(len(is_flag)):
        return None
    return FlagLayout(coded, flags, first * np.dtype(CODE).itemsize, stride)


def pack_flags(codes: Codes, sparse: SparseColumns | None = None) -> tuple[NDArray[np.uint16], Packing]:
    """Rows with a bit for each flag, and how they stand there; the rows as they are where that makes none shorter.

    Sparse features have no place in them.
    """
    laid = lay_out_flags(find_flags(codes), sparse)
    if laid is None:
        return codes.rows, whole_codes(codes.n_features)
    rows = np.zeros((len(codes.rows), laid.stride), CODE)
    at_once = max(CELLS_AT_ONCE // codes.n_features, 1)
    for begin in range(0, len(rows), at_once):
        block = codes.rows[begin : begin + at_once]
        here = rows[begin : begin + at_once]
        here[:, : len(laid.coded)] = block.take(laid.coded, axis=1)
        bits = np.packbits(block.take(laid.flags, axis=1) == 2, axis=1, bitorder="little")
        here.view(np.uint8)[:, laid.first_byte : laid.first_byte + bits.shape[1]] = bits
    return rows, laid.packing(sparse)
