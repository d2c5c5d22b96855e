"""Subsets of features with many levels, packed: the words of levels that differ from what all others say.

A *plain* subset is a bit for each level, in words of 64: 512 bytes for 4,000 levels, also to tell two rows apart.
A *packed* one, of a feature with more than PLAIN_LEVELS levels:

    head      whether a level of a block that is not held takes branch 0 (1 bit) | words of a block, as a shift
    mask      a bit for each block that is held, of 64
    blocks    the words of these, end to end

A node's argument is the place of the first word. That of a packed subset lies half way to the next place, so that both
kinds stand in one array, places are counted on by adding, and files from before have nothing to be told.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import PLAIN_LEVELS

from .bits import count_bits

NONE = np.uint64(0)
ONE = np.uint64(1)
WORD_SHIFT = np.uint64(6)  # of a level: to the word that has its bit
HEAD_WORDS = 2
PACKED = 0.5  # added to the place of a packed subset


@inlined
def is_packed(argument: float) -> bool:
    """Whether an argument is that of a packed subset."""
    return argument != np.floor(argument)


@inlined
def block_shift(n_levels: int) -> int:
    """The words of a block, as a shift: a word up to 4,096 levels, so that 64 blocks hold all of them."""
    shift = np.int64(0)
    while (np.int64(64 * 64) << shift) < n_levels:
        shift += 1
    return shift


@inlined
def packed_word(subsets: np.ndarray, first: np.uint64, level: np.uint64) -> np.uint64:
    """The word with the bit of a level, of the packed subset that begins at word `first`."""
    head = subsets[first]
    mask = subsets[first + ONE]
    shift = head >> ONE
    word = level >> WORD_SHIFT
    bit = ONE << (word >> shift)
    if mask & bit == NONE:
        return (head & ONE) * ~NONE
    n_before = np.uint64(count_bits(mask & (bit - ONE)))
    return subsets[first + ONE + ONE + (n_before << shift) + (word & ((ONE << shift) - ONE))]


@kernel
def pack_levels(listed: np.ndarray, n_levels: int, others_first: bool, first: int, subsets: np.ndarray) -> int:
    """Write a packed subset from word `first` on; return where it ends.

    listed: the bits of the levels that take branch 0, all others take branch 1; others_first: the other way round.
    """
    shift = block_shift(n_levels)
    size = np.int64(1) << shift
    n_words = (n_levels + 63) >> 6
    flip = ~NONE if others_first else NONE
    mask = NONE
    end = first + HEAD_WORDS
    for block in range((n_words + size - 1) >> shift):
        begin = block << shift
        found = NONE
        for w in range(begin, begin + size):
            found |= listed[w] if w < n_words else NONE
        if found != NONE:
            mask |= ONE << np.uint64(block)
            for w in range(begin, begin + size):
                subsets[end] = (listed[w] if w < n_words else NONE) ^ flip
                end += 1
    subsets[first] = np.uint64(shift << 1) | (flip & ONE)
    subsets[first + 1] = mask
    return end


@inlined
def is_sound_packing(subsets: np.ndarray, first: int, n_words: int, argument: float, n_levels: int) -> bool:
    """Whether a packed subset lies within n_words words from `first` on, and holds no block beyond the last level."""
    if n_levels <= PLAIN_LEVELS or not (argument >= 0.0 and argument - np.floor(argument) == PACKED):
        return False
    if not argument + HEAD_WORDS <= np.float64(n_words + 1):
        return False
    at = first + np.int64(argument)
    shift = block_shift(n_levels)
    if subsets[at] >> ONE != np.uint64(shift):
        return False
    mask = subsets[at + 1]
    last_block = (n_levels - 1) >> (6 + shift)
    if (mask >> np.uint64(last_block)) >> ONE != NONE:
        return False
    return np.int64(argument) + HEAD_WORDS + (count_bits(mask) << shift) <= n_words
