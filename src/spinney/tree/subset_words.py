"""Subsets of levels as words, plain or packed, for NumPy: what they say, how long they are, whether they are sound.

The two forms: `kernels/common/packed_levels.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import numpy as np

from spinney._jit import interpreted
from spinney._node_layout import WORD_BITS
from spinney._types import PLAIN_LEVELS, SUBSET

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Flags = NDArray[np.bool_]
    Words = NDArray[np.uint64]

_kernels = interpreted().common.packed_levels

PACKED: float = _kernels.PACKED
HEAD_WORDS: int = _kernels.HEAD_WORDS
EVERY = 2**WORD_BITS - 1


def is_packed(arguments: Any) -> Any:
    """Which arguments of subset tests are those of packed subsets."""
    return _kernels.is_packed(arguments)


def any_packed(kind: NDArray[Any], arguments: NDArray[np.float64], n_levels: NDArray[np.int32]) -> bool:
    """Whether a subset among the tests of nodes is packed, by their kinds and arguments."""
    if n_levels.max(initial=0) <= PLAIN_LEVELS:
        return False
    return bool(np.any(is_packed(arguments[kind == SUBSET])))


def read_levels(subsets: Words, argument: float, n_levels: int) -> Flags:
    """Which levels take branch 0 by the subset of an argument, shape (n_levels,)."""
    first, n_words = int(argument), -(-n_levels // WORD_BITS)
    words = subsets[first : first + n_words]
    if is_packed(argument):
        head, mask = int(subsets[first]), subsets[first + 1 : first + 2]
        size = 1 << (head >> 1)
        held = np.flatnonzero(unpack_bits(mask))
        blocks = np.full((WORD_BITS, size), EVERY if head & 1 else 0, np.uint64)
        first += HEAD_WORDS
        blocks[held] = subsets[first : first + len(held) * size].reshape(-1, size)
        words = blocks.reshape(-1)
    return unpack_bits(words)[:n_levels]


def unpack_bits(words: Words) -> Flags:
    """The bits of words, from the lowest of the first on."""
    return np.unpackbits(words.astype("<u8").view(np.uint8), bitorder="little").astype(bool)


def pack_bits(bits: Flags) -> Words:
    """Levels as the words of a plain subset."""
    padded = np.zeros(-(-len(bits) // WORD_BITS) * WORD_BITS, np.bool_)
    padded[: len(bits)] = bits
    return np.packbits(padded, bitorder="little").view("<u8").astype(np.uint64)


def pack_levels(is_first: Flags, *, others_first: bool) -> Words:
    """A packed subset as the kernels write it; others_first: so do all levels that are not listed."""
    n_levels = len(is_first)
    listed = pack_bits(is_first ^ others_first)
    words = np.empty(HEAD_WORDS + WORD_BITS + len(listed), np.uint64)
    return words[: _kernels.pack_levels(listed, n_levels, others_first, 0, words)].copy()


def subset_sizes(subsets: Words, arguments: NDArray[np.float64], n_levels: NDArray[Any]) -> NDArray[np.int64]:
    """Words of each of some subsets that are sound, by arguments and numbers of levels."""
    n_words = -(-n_levels.astype(np.int64) // WORD_BITS)
    which = np.flatnonzero(is_packed(arguments))
    first = arguments[which].astype(np.int64)
    n_words[which] = HEAD_WORDS + (count_held(subsets[first + 1]) << (subsets[first] >> np.uint64(1)).astype(np.int64))
    return n_words


def count_held(masks: Words) -> NDArray[np.int64]:
    """How many bits of each word are set."""
    return unpack_bits(masks).reshape(len(masks), WORD_BITS).sum(axis=1)


def lie_inside(subsets: Words, arguments: NDArray[np.float64], n_levels: NDArray[Any]) -> Flags:
    """Which subsets lie inside the words and are sound, by arguments, any floats, and numbers of levels."""
    last = arguments + -(-n_levels // WORD_BITS)
    with np.errstate(invalid="ignore"):
        packed = is_packed(arguments)
        is_fine = (arguments >= 0) & (last <= len(subsets)) & ~packed
    for k in np.flatnonzero(packed):
        is_fine[k] = _kernels.is_sound_packing(subsets, 0, len(subsets), arguments[k], int(n_levels[k]))
    return cast("Flags", is_fine)
