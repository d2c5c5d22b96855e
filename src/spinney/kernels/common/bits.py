"""The bits of a word: where one is set, and how many are."""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined

ONE, TWO, FOUR = np.uint64(1), np.uint64(2), np.uint64(4)
SEQUENCE = np.uint64(0x03F79D71B4CB0A89)  # every six bits in a row differ: a shift of it tells which bit is set
SEQUENCE_SHIFT = np.uint64(58)
# the bit that SEQUENCE, shifted by it, shows in its first six bits
PLACES = np.argsort([((0x03F79D71B4CB0A89 << bit) & (2**64 - 1)) >> 58 for bit in range(64)])


@inlined
def bit_place(bit: np.uint64) -> np.uint64:
    """Which bit of a word is set, of 64."""
    return np.uint64(PLACES[(bit * SEQUENCE) >> SEQUENCE_SHIFT])


@inlined
def lowest_bit(word: np.uint64) -> np.uint64:
    """Place of the lowest bit that is set; one is."""
    return bit_place(word & (~word + ONE))


@inlined
def count_bits(word: np.uint64) -> int:
    """How many bits are set; the compiler knows this sum and takes an instruction for it."""
    word -= (word >> ONE) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + ((word >> TWO) & np.uint64(0x3333333333333333))
    word = (word + (word >> FOUR)) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))
