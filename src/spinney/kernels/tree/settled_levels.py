"""What the subset of a node says of every level, once its rows have parted.

A search finds the branch of the levels that the node has. The others, which no row here has, go where missing values
do, or with the heavier branch. Random tests draw the branch of every level of a category of few levels; of one with
more than PLAIN_LEVELS they part the levels of the node alone, as other tests do, and the subset is packed. Subsets that
were searched for stay plain: a tree has few of many levels, and plain ones are read sooner.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined
from spinney._types import BEST_FIRST, PLAIN_LEVELS

from ..common.packed_levels import pack_levels
from ..common.structs import LevelScratch, Nodes, Parts, Settings

NONE, ONE = np.uint64(0), np.uint64(1)
IS_PLAIN = -1


@inlined
def packs(n_levels: int, settings: Settings) -> bool:
    """Whether subsets of a feature are packed in trees that do not grow best first."""
    return settings.is_random and n_levels > PLAIN_LEVELS


@inlined
def mark_levels(feature: int, n_levels: int, lo: int, hi: int, codes: np.ndarray, seen: np.ndarray) -> None:
    """Set the bits of the levels that rows lo .. hi have, and no others, in `seen`."""
    for w in range((n_levels + 63) >> 6):
        seen[w] = NONE
    for i in range(lo, hi):
        level = np.int64(codes[i, feature]) - 1
        if level >= 0:
            seen[level >> 6] |= ONE << np.uint64(level & 63)


@inlined
def write_plain(first_word: int, n_levels: int, others_first: bool, seen: np.ndarray, subsets: np.ndarray) -> None:
    """Write the levels that are seen as a plain subset; others_first: all but these, and no bits beyond the last."""
    n_words = (n_levels + 63) >> 6
    for w in range(n_words):
        subsets[first_word + w] = ~seen[w] if others_first else seen[w]
    if others_first and n_levels & 63 != 0:
        subsets[first_word + n_words - 1] &= (ONE << np.uint64(n_levels & 63)) - ONE


@inlined
def settle_subset(
    parts: Parts,
    cut: int,
    n_levels: int,
    others_first: bool,
    codes: np.ndarray,
    settings: Settings,
    nodes: Nodes,
    levels: LevelScratch | None,
) -> int:
    """Say where levels go that no row of a node has, in its subset, which begins at word `cut`.

    others_first: they take branch 0. Return where the packed subset ends, or IS_PLAIN. Best first, words of other nodes
    stand behind these already, and plain ones stay so.
    """
    if levels is None:
        return np.int64(IS_PLAIN)
    is_wide = packs(n_levels, settings)
    if not is_wide and (settings.is_random or not others_first):
        return np.int64(IS_PLAIN)
    lo, hi = parts.lo, parts.middle
    if others_first:
        lo, hi = parts.middle, parts.end
    mark_levels(parts.feature, n_levels, lo, hi, codes, levels.bitset)
    if is_wide and settings.order != BEST_FIRST:
        return pack_levels(levels.bitset, n_levels, others_first, cut, nodes.subsets)
    write_plain(cut, n_levels, others_first, levels.bitset, nodes.subsets)
    return np.int64(IS_PLAIN)
