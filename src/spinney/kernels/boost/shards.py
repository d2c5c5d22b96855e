"""The rows of a node, dealt out to shards, one a thread: move them to its children, sum those of one child.

Shards never mix: shard t moves and sums the rows of a node that are its own. Rows stand in the table until the root is
split, and from then on in a buffer, where the rows of a node that is split change places among themselves:

    side 0: the table    shard 0 │ shard 1 │ shard 0 │ shard 1 │ ...    runs of SHARD_ROWS rows go round
                            ▼ the root is split
    side 1: the buffer   shard 0: branch 0 → ← branch 1 │ shard 1: branch 0 → ← branch 1

Sums are whole numbers, so what is found does not depend on the number of shards, which is that of the rows of
`nodes.begin`.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined
from spinney._types import HISTOGRAM_STRIDE, N_CODES, NARROW_CODES, SHARD_ROWS, THRESHOLD

from ..common.structs import BoostFrontier, BoostNodes, BoostTable, ByteRows, Column, Part, Range, Runs
from .rows import (
    WIDE,
    add_by_cells,
    add_one,
    add_rows,
    add_some,
    encode,
    lend_codes,
    move_rows,
    number_of,
    own_byte,
    part_rows,
    read_code,
)

ONE = np.uint64(1)
SAMPLE = 128  # rows that tell which child is smaller before they are moved


# --- Where rows stand ---------------------------------------------------------------------------------------


@inlined
def rows_of(node: int, source: ByteRows, buffer: ByteRows, nodes: BoostNodes) -> ByteRows:
    """The rows among which those of a node are."""
    return source if nodes.side[node] == 0 else buffer


@inlined
def runs_of(shard: int, node: int, rows: ByteRows, nodes: BoostNodes) -> Runs:
    """Where the rows of a shard in a node stand.

    The table is dealt out in runs, so that an order of the rows does not put a node into one shard.
    """
    if nodes.side[node] == 0:
        n_rows = np.int64(len(rows.sums))
        n_shards = np.int64(len(nodes.begin))
        size = n_rows if n_shards == 1 else np.int64(SHARD_ROWS)
        return Runs(shard * size, n_rows, size, size * n_shards)
    lo = nodes.begin[shard, node]
    hi = nodes.end[shard, node]
    return Runs(lo, hi, hi - lo, max(hi - lo, np.int64(1)))


@inlined
def column_of(feature: int, table: BoostTable) -> Column:
    """Where the codes of a feature stand."""
    return Column(
        table.n_words,
        table.place[feature],
        table.is_wide[feature],
        table.base[feature],
        table.usual[feature],
        table.features[N_CODES, feature],
    )


@inlined
def lend(
    shard: int, feature: int, node: int, table: BoostTable, source: ByteRows, rows: ByteRows, nodes: BoostNodes
) -> Column:
    """Where the rows of a shard in a node have the codes of a feature, which are lent to them where codes stay."""
    column = column_of(feature, table)
    if nodes.side[node] == 0 or len(table.cell_begin) == 0:
        return column
    lend_codes(source, column, rows, nodes.begin[shard, node], nodes.end[shard, node])
    none = np.int64(0)
    return Column(table.n_moved, none, column.is_wide, column.base, column.usual, column.n_codes)


@inlined
def lend_all(feature: int, node: int, table: BoostTable, source: ByteRows, rows: ByteRows, nodes: BoostNodes) -> Column:
    """The same for the rows of all shards."""
    column = column_of(feature, table)
    for shard in range(len(nodes.begin)):
        column = lend(np.int64(shard), feature, node, table, source, rows, nodes)
    return column


# --- Histograms ---------------------------------------------------------------------------------------------


@inlined
def open_spans(slot: int, table: BoostTable, frontier: BoostFrontier) -> None:
    """Let the rows of a slot have any code."""
    for f in range(len(table.used)):
        feature = table.used[f]
        frontier.spans[slot, feature, 0] = 1
        frontier.spans[slot, feature, 1] = table.features[N_CODES, feature]


@inlined
def inherit_spans(slot: int, at: int, table: BoostTable, frontier: BoostFrontier) -> None:
    """Let the rows of a child, in slot `at`, have the codes that those of its parent may have."""
    for f in range(len(table.used)):
        feature = table.used[f]
        frontier.spans[at, feature, 0] = frontier.spans[slot, feature, 0]
        frontier.spans[at, feature, 1] = frontier.spans[slot, feature, 1]


@inlined
def span_of(f: int, slot: int, table: BoostTable, frontier: BoostFrontier) -> Range:
    """Places in the f-th kept sums of a slot that may have rows, that of the missing code apart."""
    feature = table.kept_feature[f]
    if feature < 0:
        return Range(np.int64(1), table.kept_size[f] - 1)
    return Range(frontier.spans[slot, feature, 0], frontier.spans[slot, feature, 1])


@inlined
def clear_spans(histogram: np.ndarray, first: int, slot: int, table: BoostTable, frontier: BoostFrontier) -> None:
    """Set the histogram of a child to 0 where rows of its parent, in `slot`, may be."""
    for f in range(len(table.kept_start)):
        span = span_of(f, slot, table, frontier)
        start = np.uint64(first + table.kept_start[f])
        histogram[start] = 0
        for k in range(start + np.uint64(span.first), start + np.uint64(span.last + 1)):
            histogram[k] = 0


@inlined
def clear_histogram(histogram: np.ndarray, first: int, table: BoostTable) -> None:
    """Set the histogram of the features in use to 0."""
    for f in range(len(table.kept_start)):
        start = np.uint64(first + table.kept_start[f])
        for k in range(start, start + np.uint64(table.kept_size[f])):
            histogram[k] = 0


@inlined
def subtract_sums(histogram: np.ndarray, whole: int, part: int, first: int, n: int) -> None:
    """Write the n sums at `first`: those at `whole` less those at `part`.

    Places are unsigned: with signed ones, which may count from the end, LLVM makes no vectors of the loop, and 36
    features of 91 codes take 4.4 instead of 1.2 microseconds.
    """
    to, minuend, subtrahend = np.uint64(first), np.uint64(whole), np.uint64(part)
    for k in range(np.uint64(n)):
        histogram[to + k] = histogram[minuend + k] - histogram[subtrahend + k]


@inlined
def subtract_histogram(slot: int, part: int, first: int, table: BoostTable, frontier: BoostFrontier) -> None:
    """Write the histogram at `first`, where rows may be: that of a slot less that at `part`."""
    histogram = frontier.histogram
    whole = slot * table.histogram_size
    for f in range(len(table.kept_start)):
        span = span_of(f, slot, table, frontier)
        start = table.kept_start[f]
        histogram[first + start] = histogram[whole + start] - histogram[part + start]
        start += span.first
        subtract_sums(histogram, whole + start, part + start, first + start, span.last + 1 - span.first)


@inlined
def spread_bundle(histogram: np.ndarray, first: int, packed: int, feature: int, table: BoostTable) -> None:
    """Write the histogram of a feature that shares a byte from that of the byte; packed: sum of all rows.

    The codes below the usual one and those above are copied by loops of their own, of which LLVM makes vectors.
    """
    usual = np.uint64(table.usual[feature])
    source = np.uint64(first + table.place[feature] * HISTOGRAM_STRIDE + table.base[feature])
    at = np.uint64(first + table.histogram_start[feature])
    rest = packed
    histogram[at] = 0  # none is missing
    for k in range(usual - ONE):
        v = histogram[source + k]
        histogram[at + ONE + k] = v
        rest -= v
    source += usual - ONE
    for k in range(np.uint64(table.features[N_CODES, feature]) - usual):
        v = histogram[source + k]
        histogram[at + usual + ONE + k] = v
        rest -= v
    histogram[at + usual] = rest


@inlined
def spread_bundles(histogram: np.ndarray, first: int, packed: int, table: BoostTable) -> None:
    """The same for all such features."""
    for b in range(len(table.bundled)):
        spread_bundle(histogram, first, packed, table.bundled[b], table)


# --- The branches of a test ---------------------------------------------------------------------------------


@inlined
def goes_left_by(code: int, slot: int, frontier: BoostFrontier) -> np.uint8:
    """Whether a known code of the tested feature goes left."""
    if frontier.kind[slot] == THRESHOLD:
        return np.uint8(code <= frontier.cut[slot])
    level = code - 1
    return np.uint8((frontier.subsets[slot, level >> 6] >> np.uint64(level & 63)) & ONE)


@inlined
def mark_branches(slot: int, table: BoostTable, frontier: BoostFrontier, goes_left: np.ndarray) -> None:
    """Write for each code that the bytes of the tested feature may have whether it goes left."""
    column = column_of(frontier.feature[slot], table)
    goes_left[0] = np.uint8(frontier.missing[slot] == 0)
    if column.base >= 0:  # whatever other features write, this one has its usual code
        side = goes_left_by(column.usual, slot, frontier)
        for code in range(NARROW_CODES):
            goes_left[code] = side
    for code in range(1, column.n_codes + 1):
        if column.base < 0 or code != column.usual:
            goes_left[encode(code, column)] = goes_left_by(code, slot, frontier)


@inlined
def guess_smaller(
    slot: int,
    table: BoostTable,
    source: ByteRows,
    buffer: ByteRows,
    nodes: BoostNodes,
    frontier: BoostFrontier,
    goes_left: np.ndarray,
) -> tuple[int, int]:
    """Branch of an open node with fewer rows, and about how many these are, judged by a sample."""
    node = frontier.number[slot]
    column = column_of(frontier.feature[slot], table)
    rows = rows_of(node, source, buffer, nodes)
    stays = len(table.cell_begin) > 0  # codes of the table alone
    n_left = np.int64(0)
    n_seen = np.int64(0)
    n_shards = len(nodes.begin)
    for shard in range(n_shards):
        runs = runs_of(shard, node, rows, nodes)
        step = max(runs.hi - runs.lo, 0) * n_shards // SAMPLE + 1
        for k in range(runs.lo, runs.hi, step):
            row = number_of(np.uint64(k), rows.ids) if stays else np.uint64(k)
            codes = source.codes if stays else rows.codes
            at = row * np.uint64(column.n_words * 8) + np.uint64(column.place)
            n_left += np.int64(goes_left[read_code(codes, at, column.is_wide)])
            n_seen += 1
    n_small = min(n_left, n_seen - n_left)
    return np.int64(2 * n_left > n_seen), nodes.n_rows[node] * n_small // max(n_seen, np.int64(1))


# --- The part of a shard ------------------------------------------------------------------------------------


@inlined
def move_shard(
    shard: int,
    slot: int,
    table: BoostTable,
    source: ByteRows,
    buffer: ByteRows,
    nodes: BoostNodes,
    frontier: BoostFrontier,
    goes_left: np.ndarray,
) -> None:
    """Move the rows of a shard from an open node to its children."""
    node = frontier.number[slot]
    child = frontier.first_child[slot]
    rows = rows_of(node, source, buffer, nodes)
    column = lend(shard, frontier.feature[slot], node, table, source, rows, nodes)
    runs = runs_of(shard, node, rows, nodes)
    if nodes.side[node] == 0:
        first = table.starts[shard]
        last = table.starts[shard + 1]
        left = first
        right = last
        for begin in range(runs.lo, runs.hi, runs.jump):
            end = min(begin + runs.size, runs.hi)
            middle = move_rows(rows, begin, end, buffer, Part(left, right), column, table.n_moved, goes_left)
            right -= end - begin - (middle - left)
            left = middle
    else:
        first = runs.lo
        last = runs.hi
        left = part_rows(buffer, first, last, column, goes_left, frontier.is_last[slot])
    nodes.begin[shard, child] = first
    nodes.end[shard, child] = left
    nodes.begin[shard, child + 1] = left
    nodes.end[shard, child + 1] = last


@inlined
def sum_range(rows: ByteRows, lo: int, hi: int, table: BoostTable, histogram: np.ndarray, first: int) -> None:
    """Add rows lo .. hi to the histogram at `first`."""
    if len(table.cell_begin) > 0:
        add_by_cells(rows, lo, hi, table.cell_begin, table.cell_sum, histogram, first)
    elif len(table.used_places) < table.n_narrow:
        add_some(rows, lo, hi, table.n_words, table.used_places, histogram, first)
    else:
        add_rows(rows, lo, hi, table.n_words, table.n_narrow, histogram, first)
    for f in range(len(table.kept_place)):
        place = table.kept_place[f]
        if place >= 0:
            add_one(rows, lo, hi, own_byte(table.n_words, place, WIDE), histogram, first + table.kept_start[f])


@inlined
def sum_shard(
    shard: int,
    node: int,
    table: BoostTable,
    source: ByteRows,
    buffer: ByteRows,
    nodes: BoostNodes,
    histogram: np.ndarray,
    first: int,
) -> None:
    """Add the rows of a shard in a node to the histogram at `first`."""
    rows = rows_of(node, source, buffer, nodes)
    runs = runs_of(shard, node, rows, nodes)
    for begin in range(runs.lo, runs.hi, runs.jump):
        sum_range(rows, begin, min(begin + runs.size, runs.hi), table, histogram, first)
