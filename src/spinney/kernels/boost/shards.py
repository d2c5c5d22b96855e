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

from spinney._jit import door, inlined
from spinney._types import CHILDREN, CURRENT_SLOT, HISTOGRAM_STRIDE, N_CODES, PHASE, SHARD_ROWS, SMALL_CHILD, SMALL_SLOT

from ..common.structs import BoostFrontier, BoostNodes, BoostScratch, BoostTable, ByteRows, Column, Runs
from .rows import WIDE, add_one, add_rows, add_some, move_rows, own_byte, part_rows, read_code

SAMPLE = 512  # rows that tell which child is smaller before they are moved


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
        n_rows = np.int64(len(rows.ids))
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


# --- Histograms ---------------------------------------------------------------------------------------------


@inlined
def clear_histogram(histogram: np.ndarray, first: int, table: BoostTable) -> None:
    """Set the histogram of the features in use to 0."""
    for f in range(len(table.kept_start)):
        start = np.uint64(first + table.kept_start[f])
        for k in range(start, start + np.uint64(table.kept_size[f])):
            histogram[k] = 0


@inlined
def subtract_histogram(histogram: np.ndarray, whole: int, part: int, first: int, table: BoostTable) -> None:
    """Write the histogram at `first`: that at `whole` less that at `part`.

    Places are unsigned: with signed ones, which may count from the end, LLVM makes no vectors of the loop, and 36
    features of 91 codes take 4.4 instead of 1.2 microseconds.
    """
    to, minuend, subtrahend = np.uint64(first), np.uint64(whole), np.uint64(part)
    for f in range(len(table.kept_start)):
        shift = np.uint64(table.kept_start[f])
        for k in range(shift, shift + np.uint64(table.kept_size[f])):
            histogram[to + k] = histogram[minuend + k] - histogram[subtrahend + k]


@inlined
def spread_bundles(histogram: np.ndarray, first: int, packed: int, table: BoostTable) -> None:
    """Write the histograms of features that share a byte from that of the byte; packed: sum of all rows of the node."""
    for b in range(len(table.bundled)):
        feature = table.bundled[b]
        usual = table.usual[feature]
        source = first + table.place[feature] * HISTOGRAM_STRIDE + table.base[feature]
        at = first + table.histogram_start[feature]
        rest = packed
        histogram[at] = 0  # none is missing
        for code in range(1, table.features[N_CODES, feature] + 1):
            if code != usual:
                histogram[at + code] = histogram[source]
                rest -= histogram[source]
                source += 1
        histogram[at + usual] = rest


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
    column = column_of(frontier.feature[slot], table)
    rows = rows_of(node, source, buffer, nodes)
    runs = runs_of(shard, node, rows, nodes)
    if nodes.side[node] == 0:
        first = table.starts[shard]
        last = table.starts[shard + 1]
        left = first
        right = last
        for begin in range(runs.lo, runs.hi, runs.jump):
            end = min(begin + runs.size, runs.hi)
            middle = move_rows(rows, begin, end, buffer, left, right, column, goes_left)
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
    if len(table.used_places) < table.n_narrow:
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


@door
def work_on_shard(
    shard: int,
    table: BoostTable,
    source: ByteRows,
    buffer: ByteRows,
    nodes: BoostNodes,
    frontier: BoostFrontier,
    scratch: BoostScratch,  # that of the driver, which knows the branches
) -> None:
    """Do the part of a shard in the work on the current node: move its rows, then sum those of the smaller child."""
    state = frontier.state
    node = np.int64(0)
    if state[PHASE] == CHILDREN:
        move_shard(shard, state[CURRENT_SLOT], table, source, buffer, nodes, frontier, scratch.goes_left)
        node = state[SMALL_CHILD]
    if node < 0:
        return
    histogram = frontier.histogram if shard == 0 else frontier.shard_histogram
    first = (state[SMALL_SLOT] if shard == 0 else shard - 1) * table.histogram_size
    clear_histogram(histogram, first, table)
    sum_shard(shard, node, table, source, buffer, nodes, histogram, first)


@door
def add_shards(part: int, n_parts: int, n_shards: int, table: BoostTable, frontier: BoostFrontier) -> None:
    """Add what all shards have summed to the histogram of the first, for one of so many parts of its cells."""
    size = table.histogram_size
    lo = np.uint64(size * part // n_parts)
    hi = np.uint64(size * (part + 1) // n_parts)
    to = np.uint64(frontier.state[SMALL_SLOT] * size)
    for shard in range(n_shards - 1):
        source = np.uint64(shard * size)
        for k in range(lo, hi):
            frontier.histogram[to + k] += frontier.shard_histogram[source + k]


@inlined
def guess_smaller(
    slot: int,
    table: BoostTable,
    source: ByteRows,
    buffer: ByteRows,
    nodes: BoostNodes,
    frontier: BoostFrontier,
    goes_left: np.ndarray,
) -> int:
    """Branch of an open node with fewer rows, judged by a sample."""
    node = frontier.number[slot]
    column = column_of(frontier.feature[slot], table)
    rows = rows_of(node, source, buffer, nodes)
    n_left = np.int64(0)
    n_seen = np.int64(0)
    n_shards = len(nodes.begin)
    for shard in range(n_shards):
        runs = runs_of(shard, node, rows, nodes)
        step = max(runs.hi - runs.lo, 0) * n_shards // SAMPLE + 1
        for k in range(runs.lo, runs.hi, step):
            at = np.uint64(k * column.n_words * 8 + column.place)
            n_left += np.int64(goes_left[read_code(rows.codes, at, column.is_wide)])
            n_seen += 1
    return np.int64(2 * n_left > n_seen)
