"""The rows of a node, dealt out to shards, one a thread: move them to its children, sum those of one child.

Shards never mix: shard t moves and sums the rows of a node that are its own. Rows stand in the table until the root is
split, and from then on in one of two halves of a buffer, to and fro. Sums are whole numbers, so what is found does not
depend on the number of shards.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined, kernel
from spinney._types import (
    BEGIN,
    CHILDREN,
    CURRENT_SLOT,
    FEATURE,
    HAS_MOVES,
    IS_WIDE,
    PHASE,
    PLACE,
    SHARD_ROWS,
    SLOT_CHILD,
    SLOT_NODE,
    SMALL_CHILD,
    SMALL_SLOT,
    SPAN_CELL,
    SPAN_PLACE,
    SPAN_SIZE,
)

from .rows import add_one, add_rows, add_some, move_rows, read_code

SAMPLE = 512  # rows that tell which child is smaller before they are moved


@inlined
def runs_of(
    shard: int, node: int, n_rows: int, ranges: np.ndarray, nodes: np.ndarray, n_shards: int
) -> tuple[int, int, int, int]:
    """Where the rows of a shard in a node stand: from `lo` to `hi`, `size` in a run, a run every `jump` rows.

    The table is dealt out in runs, so that an order of the rows does not put a node into one shard.
    """
    if nodes[BEGIN, node] == 0:
        size = n_rows if n_shards == 1 else np.int64(SHARD_ROWS)
        return shard * size, n_rows, size, size * n_shards
    lo = ranges[shard, node]
    hi = ranges[n_shards + shard, node]
    return lo, hi, hi - lo, max(hi - lo, np.int64(1))


@kernel
def move_shard(
    shard: int,
    node: int,
    child: int,
    codes_0: np.ndarray,
    words_0: np.ndarray,
    sums_0: np.ndarray,
    ids_0: np.ndarray,
    codes: np.ndarray,
    words: np.ndarray,
    sums: np.ndarray,
    ids: np.ndarray,
    starts: np.ndarray,
    ranges: np.ndarray,
    nodes: np.ndarray,
    place: int,
    is_wide: bool,
    n_words: int,
    goes_left: np.ndarray,
    has_moves: bool,
    n_shards: int,
) -> None:
    """Move the rows of a shard from a node to its children."""
    lo, hi, size, jump = runs_of(shard, node, len(ids_0), ranges, nodes, n_shards)
    half = len(ids) // 2
    is_table = nodes[BEGIN, node] == 0
    shift = half if nodes[BEGIN, node] == 1 else -half
    first = starts[shard] if is_table else lo + shift
    last = starts[shard + 1] if is_table else hi + shift
    left = first
    right = last
    for begin in range(lo, hi, jump):
        end = min(begin + size, hi)
        if is_table:
            middle = move_rows(
                codes_0, words_0, sums_0, ids_0, begin, end, words, sums, ids, left, right, n_words, place, is_wide,
                goes_left, has_moves,
            )  # fmt: skip
        else:
            middle = move_rows(
                codes, words, sums, ids, begin, end, words, sums, ids, left, right, n_words, place, is_wide,
                goes_left, has_moves,
            )  # fmt: skip
        right -= end - begin - (middle - left)
        left = middle
    ranges[shard, child] = first
    ranges[n_shards + shard, child] = left
    ranges[shard, child + 1] = left
    ranges[n_shards + shard, child + 1] = last


@kernel
def sum_shard(
    shard: int,
    node: int,
    codes_0: np.ndarray,
    words_0: np.ndarray,
    sums_0: np.ndarray,
    codes: np.ndarray,
    words: np.ndarray,
    sums: np.ndarray,
    ranges: np.ndarray,
    nodes: np.ndarray,
    n_words: int,
    n_narrow: int,
    used_places: np.ndarray,
    spans: np.ndarray,
    cells: np.ndarray,
    first: int,
    n_shards: int,
) -> None:
    """Add the rows of a shard in a node to cells from `first` on."""
    lo, hi, size, jump = runs_of(shard, node, len(sums_0), ranges, nodes, n_shards)
    is_table = nodes[BEGIN, node] == 0
    for begin in range(lo, hi, jump):
        end = min(begin + size, hi)
        if len(used_places) < n_narrow:
            if is_table:
                add_some(codes_0, sums_0, begin, end, n_words * 8, used_places, cells, first)
            else:
                add_some(codes, sums, begin, end, n_words * 8, used_places, cells, first)
        elif is_table:
            add_rows(words_0, sums_0, begin, end, n_words, n_narrow, cells, first)
        else:
            add_rows(words, sums, begin, end, n_words, n_narrow, cells, first)
        for f in range(spans.shape[1]):
            if spans[SPAN_PLACE, f] >= 0:
                at = first + spans[SPAN_CELL, f]
                if is_table:
                    add_one(codes_0, sums_0, begin, end, n_words * 8, spans[SPAN_PLACE, f], cells, at)
                else:
                    add_one(codes, sums, begin, end, n_words * 8, spans[SPAN_PLACE, f], cells, at)


@inlined
def clear_cells(cells: np.ndarray, first: int, spans: np.ndarray) -> None:
    """Set the cells of the features in use to 0."""
    for f in range(spans.shape[1]):
        at = first + spans[SPAN_CELL, f]
        for k in range(at, at + spans[SPAN_SIZE, f]):
            cells[k] = 0


@inlined
def add_cells(cells: np.ndarray, first: int, others: np.ndarray, first_other: int, spans: np.ndarray) -> None:
    """Add other cells."""
    for f in range(spans.shape[1]):
        shift = spans[SPAN_CELL, f]
        for k in range(shift, shift + spans[SPAN_SIZE, f]):
            cells[first + k] += others[first_other + k]


@inlined
def subtract_cells(cells: np.ndarray, whole: int, part: int, first: int, spans: np.ndarray) -> None:
    """Write to the cells from `first` on those from `whole` on, less those from `part` on."""
    for f in range(spans.shape[1]):
        shift = spans[SPAN_CELL, f]
        for k in range(shift, shift + spans[SPAN_SIZE, f]):
            cells[first + k] = cells[whole + k] - cells[part + k]


@door
def lend_hand(
    shard: int,
    codes_0: np.ndarray,
    words_0: np.ndarray,
    sums_0: np.ndarray,
    ids_0: np.ndarray,
    codes: np.ndarray,
    words: np.ndarray,
    sums: np.ndarray,
    ids: np.ndarray,
    starts: np.ndarray,
    ranges: np.ndarray,
    nodes: np.ndarray,
    slots: np.ndarray,
    places: np.ndarray,
    n_words: int,
    n_narrow: int,
    used_places: np.ndarray,
    spans: np.ndarray,
    n_slot_cells: int,
    goes_left: np.ndarray,
    cells: np.ndarray,
    extra: np.ndarray,
    state: np.ndarray,
    n_shards: int,
) -> None:
    """Do the part of a shard in the work on the current node: move its rows, then sum those of the smaller child."""
    node = np.int64(0)
    if state[PHASE] == CHILDREN:
        slot = state[CURRENT_SLOT]
        feature = slots[FEATURE, slot]
        move_shard(
            shard, slots[SLOT_NODE, slot], slots[SLOT_CHILD, slot], codes_0, words_0, sums_0, ids_0, codes, words, sums,
            ids, starts, ranges, nodes, places[PLACE, feature], places[IS_WIDE, feature] != 0, n_words, goes_left,
            state[HAS_MOVES] != 0, n_shards,
        )  # fmt: skip
        node = state[SMALL_CHILD]
    if node < 0:
        return
    if shard == 0:
        first = state[SMALL_SLOT] * n_slot_cells
        clear_cells(cells, first, spans)
        sum_shard(
            shard, node, codes_0, words_0, sums_0, codes, words, sums, ranges, nodes, n_words, n_narrow, used_places,
            spans, cells, first, n_shards,
        )  # fmt: skip
    else:
        first = (shard - 1) * n_slot_cells
        clear_cells(extra, first, spans)
        sum_shard(
            shard, node, codes_0, words_0, sums_0, codes, words, sums, ranges, nodes, n_words, n_narrow, used_places,
            spans, extra, first, n_shards,
        )  # fmt: skip


@kernel
def guess_smaller(
    node: int,
    codes_0: np.ndarray,
    codes: np.ndarray,
    n_rows: int,
    ranges: np.ndarray,
    nodes: np.ndarray,
    n_words: int,
    place: int,
    is_wide: bool,
    goes_left: np.ndarray,
    n_shards: int,
) -> int:
    """Branch with fewer rows, judged by a sample."""
    n_left = np.int64(0)
    n_seen = np.int64(0)
    is_table = nodes[BEGIN, node] == 0
    for shard in range(n_shards):
        lo, hi, _, _ = runs_of(shard, node, n_rows, ranges, nodes, n_shards)
        step = max(hi - lo, 0) * n_shards // SAMPLE + 1
        for k in range(lo, hi, step):
            at = np.uint64(k * n_words * 8 + place)
            code = read_code(codes_0, at, is_wide) if is_table else read_code(codes, at, is_wide)
            n_left += np.int64(goes_left[code])
            n_seen += 1
    return np.int64(2 * n_left > n_seen)
