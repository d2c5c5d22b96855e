"""Draw the part of a bag that falls into a range of ids, at the cost of that range.

Words as in `draws`; ids lie in *blocks* of 2**block_bits. A binary tree stands over the blocks: node j of level v holds
the blocks j << v .. ((j + 1) << v) - 1, and its draws are dealt to its two children by (seed, tree, stratum, v, j).
Inside a block they are drawn by (seed, tree, stratum, block): what is outside a range need not be drawn.

`path` holds, for each level, the node above the block at hand: where its units begin and end in `order`, and how many
draws it has. It begins at the top of the tree.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined, kernel

from ..common.rng import below, fold
from ..common.structs import DrawGuide, DrawSpan, DrawStrata
from .draws import bag_key, find_unit
from .halves import deal_left

# Purposes of a draw, so that no two share their numbers: the letters of "half" and "block".
HALF = np.uint64(0x68616C66)
BLOCK = np.uint64(0x626C6F636B)
FIRST_PLACE, LAST_PLACE, N_SHARE = range(3)  # columns of `path`


@inlined
def find_place(order: np.ndarray, low: int, high: int, unit: int) -> int:
    """The first place in low .. high whose unit is not below `unit`; an empty `order` lists every id."""
    if len(order) == 0:
        place = np.int64(unit)
        place = place if place > low else np.int64(low)
        return place if place < high else np.int64(high)
    first = np.int64(low)
    last = np.int64(high)
    while first < last:
        middle = (first + last) >> 1
        if order[middle] < unit:
            first = middle + 1
        else:
            last = middle
    return first


@kernel
def descend(
    key: np.uint64,
    block: int,
    level: int,
    block_bits: int,
    order: np.ndarray,
    guide: DrawGuide | None,
    is_replaced: bool,
    path: np.ndarray,
) -> int:
    """Go from the node of `path` at `level` down to `block`; return the level reached, above 0 if nothing is drawn."""
    level = np.int64(level)
    while level > 0 and path[level, N_SHARE] > 0:
        n_drawn = path[level, N_SHARE]
        low, high = path[level, FIRST_PLACE], path[level, LAST_PLACE]
        node = np.int64(block) >> level
        level -= 1
        middle = find_place(order, low, high, ((node << 1) + 1) << (level + block_bits))
        left, right = middle - low, high - middle
        if guide is not None:
            left, right = guide.line[middle] - guide.line[low], guide.line[high] - guide.line[middle]
        word = fold(fold(key, np.uint64(level + 1)), np.uint64(node))
        n_left = deal_left(word, n_drawn, left, right, is_replaced)
        is_right = (np.int64(block) >> level) & 1
        path[level, FIRST_PLACE] = middle if is_right else low
        path[level, LAST_PLACE] = high if is_right else middle
        path[level, N_SHARE] = n_drawn - n_left if is_right else n_left
    return level


@inlined
def next_block(block: int, level: int) -> int:
    """The first block behind the node of `level` that holds `block`."""
    return ((np.int64(block) >> level) + 1) << level


@inlined
def common_level(block: int, following: int) -> int:
    """The lowest level with a node that holds both blocks."""
    level = np.int64(0)
    while (np.int64(block) >> level) != (np.int64(following) >> level):
        level += 1
    return level


@inlined
def set_top(s: int, strata: DrawStrata, n_levels: int, path: np.ndarray) -> None:
    """Begin the path of a stratum: the top of the tree has all its units and draws."""
    path[n_levels, FIRST_PLACE] = strata.begin[s]
    path[n_levels, LAST_PLACE] = strata.begin[s + 1]
    path[n_levels, N_SHARE] = strata.n_drawn[s]


@door
def draw_blocks(
    seed: np.uint64,
    tree: np.uint64,
    strata: DrawStrata,
    guide: DrawGuide | None,  # None: all units alike
    span: DrawSpan,
    path: np.ndarray,  # (n_levels + 1, 3) int64, for use
    counts: np.ndarray,  # (n_ids of the span,) int32, zeros
) -> None:
    """Draw with replacement, so many from each stratum: counts of the ids of a span."""
    order = strata.order
    key = bag_key(seed, tree)
    for s in range(len(strata.n_drawn)):
        half_key = fold(fold(key, HALF), np.uint64(s))
        block_key = fold(fold(key, BLOCK), np.uint64(s))
        set_top(s, strata, span.n_levels, path)
        level = np.int64(span.n_levels)
        block = np.int64(span.first) >> span.block_bits
        while block << span.block_bits < span.last:
            level = descend(half_key, block, level, span.block_bits, order, guide, True, path)
            n_drawn = path[level, N_SHARE]
            low, high = path[level, FIRST_PLACE], path[level, LAST_PLACE]
            draw_key = fold(block_key, np.uint64(block))
            for k in range(n_drawn):
                if guide is None:
                    place = low + below(draw_key, k, high - low)
                else:
                    first = guide.line[low]
                    place = find_unit(first + below(draw_key, k, guide.line[high] - first), guide)
                unit = np.int64(place) if len(order) == 0 else np.int64(order[place])
                if span.first <= unit < span.last:
                    counts[np.uint64(unit - span.first)] += 1
            following = next_block(block, level)
            level = common_level(block, following)
            block = following


@door
def choose_blocks(
    seed: np.uint64,
    tree: np.uint64,
    strata: DrawStrata,
    span: DrawSpan,
    path: np.ndarray,  # (n_levels + 1, 3) int64, for use
    counts: np.ndarray,  # (n_ids of the span,) int32, zeros
) -> None:
    """Draw without replacement, the units of a stratum alike: counts of the ids of a span.

    Inside a block by selection, as in `draws.choose_evenly`.
    """
    order = strata.order
    key = bag_key(seed, tree)
    for s in range(len(strata.n_drawn)):
        half_key = fold(fold(key, HALF), np.uint64(s))
        block_key = fold(fold(key, BLOCK), np.uint64(s))
        set_top(s, strata, span.n_levels, path)
        level = np.int64(span.n_levels)
        block = np.int64(span.first) >> span.block_bits
        while block << span.block_bits < span.last:
            level = descend(half_key, block, level, span.block_bits, order, None, False, path)
            n_wanted = path[level, N_SHARE]
            draw_key = fold(block_key, np.uint64(block))
            if n_wanted > 0:
                n_left = path[level, LAST_PLACE] - path[level, FIRST_PLACE]
                for place in range(path[level, FIRST_PLACE], path[level, LAST_PLACE]):
                    # added, not jumped on: nobody can predict it
                    is_taken = np.int64(below(draw_key, n_left, n_left) < n_wanted)
                    unit = np.int64(place) if len(order) == 0 else np.int64(order[place])
                    if span.first <= unit < span.last:
                        counts[np.uint64(unit - span.first)] = is_taken
                    n_wanted -= is_taken
                    n_left -= 1
            following = next_block(block, level)
            level = common_level(block, following)
            block = following
