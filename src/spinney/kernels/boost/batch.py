"""A batch of open nodes whose children threads make ready side by side, in two steps with a wait between them.

    move_part    the rows of all nodes, laid end to end, are dealt out: a thread moves its shards of a node to the
                 children, and sums those of the smaller child; nodes are as long as they cost
    scan_part    the features of all nodes are dealt out: a thread adds up what was summed of a feature, subtracts it
                 for the other child, and finds the best cut of the feature in both

         node 0                     node 1        node 2  node 3
    ├──────────────────────────┼───────────────┼────────┼──────┤   rows
    │  thread 0   │  thread 1    │  thread 2   │  thread 3   │     each with whole shards; a small node is not parted

The first thread of a node sums in the slot of the child, others in memory of their own. The root is a batch of one
whose rows stay. The driver lays the batch out, and chooses the tests at the end.

Threads stay in SERVE while a tree grows, and wait for batches there. The driver wakes the first, each wakes two others,
and each is done when these are:

    driver ──begin[0]──► 0 ──begin[1]──► 1 ──begin[3], begin[4]──► 3, 4 ──end[3], end[4]──► 1 ──end[1]──► 0 ──end[0]──►
                           ──begin[2]──► 2 ──begin[5], ...
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined, open_lock, take_lock
from spinney._types import HISTOGRAM_STRIDE, N_BATCH, N_CODES, N_PARTS, PHASE, SUMMED

from ..common.structs import (
    BestCuts,
    BoostFrontier,
    BoostNodes,
    BoostScratch,
    BoostSettings,
    BoostTable,
    ByteRows,
    Part,
    ThreadLocks,
)
from .category_chance import asks_for_luck, squares_of_shard, worth_of_luck
from .search import scan_features
from .shards import (
    clear_histogram,
    mark_branches,
    move_shard,
    rows_of,
    spread_bundle,
    subtract_sums,
    sum_shard,
)

POLL = 50_000  # microseconds until a thread that waits looks whether another has failed


# --- Meeting ------------------------------------------------------------------------------------------------


@inlined
def wait_for(lock: int, locks: ThreadLocks) -> bool:
    """Wait until another thread opens a lock; False if one has failed.

    The end of the work alone is no reason to go: the lock will be opened, and would be open when the next work begins.
    """
    while take_lock(locks.take, lock, np.int64(POLL)) == 0:
        if locks.has_failed[0] != 0:
            return False
    return True


@inlined
def wake_others(thread: int, n_awake: int, locks: ThreadLocks) -> None:
    """Let the threads go on that a thread wakes, of the first `n_awake`."""
    for other in range(2 * thread + 1, min(2 * thread + 3, n_awake)):
        open_lock(locks.open, locks.begin[other])


@inlined
def wait_for_others(thread: int, n_awake: int, locks: ThreadLocks) -> bool:
    """Wait until those are done, and all that they have woken; False if one has failed."""
    for other in range(2 * thread + 1, min(2 * thread + 3, n_awake)):
        if not wait_for(locks.end[other], locks):
            return False
    return True


@inlined
def meet(thread: int, n_awake: int, locks: ThreadLocks) -> bool:
    """Wait until all threads of a batch have come here; False if one has failed."""
    if not wait_for_others(thread, n_awake, locks):
        return False
    if thread > 0:
        open_lock(locks.open, locks.end[thread])
        if not wait_for(locks.begin[thread], locks):
            return False
    wake_others(thread, n_awake, locks)
    return True


@inlined
def have_served(locks: ThreadLocks) -> bool:
    """Let the threads that wait make a batch ready; False if there are none, or one has failed."""
    if len(locks.begin) == 0:
        return False
    open_lock(locks.open, locks.begin[0])
    return wait_for(locks.end[0], locks)


# --- The parts of a batch -----------------------------------------------------------------------------------


@inlined
def slot_of(k: int, b: int, frontier: BoostFrontier) -> int:
    """The slot of child b of the k-th node; of the root, which has no children yet, its own."""
    slot = frontier.batch.slot[k]
    if frontier.state[PHASE] == SUMMED:
        return slot
    return frontier.left_slot[slot] if b == 0 else frontier.right_slot[slot]


@inlined
def shards_of(thread: int, k: int, frontier: BoostFrontier, settings: BoostSettings) -> Part:
    """The shards of the k-th node that are a thread's."""
    n = frontier.state[N_PARTS]
    n_shards = np.int64(settings.n_shards)
    start = frontier.batch.begin[k]
    length = frontier.batch.begin[k + 1] - start
    line = max(frontier.batch.begin[frontier.state[N_BATCH]], n * settings.piece_rows)
    if length < 2 * settings.piece_rows:
        is_mine = (2 * start + length) * n // (2 * line) == thread  # it has the row in the middle
        return Part(np.int64(0), n_shards if is_mine else np.int64(0))
    size = n * length
    begin = (n_shards * (thread * line - n * start) + size // 2) // size  # the nearest to where the thread begins
    end = (n_shards * ((thread + 1) * line - n * start) + size // 2) // size
    return Part(min(max(begin, np.int64(0)), n_shards), min(max(end, np.int64(0)), n_shards))


@inlined
def move_part(
    thread: int,
    table: BoostTable,
    source: ByteRows,
    buffer: ByteRows,
    nodes: BoostNodes,
    frontier: BoostFrontier,
    scratch: BoostScratch,
    settings: BoostSettings,
) -> None:
    """Move the rows of a thread to the children of their nodes, and sum those of the smaller ones."""
    batch = frontier.batch
    is_root = frontier.state[PHASE] == SUMMED
    for k in range(frontier.state[N_BATCH]):
        part = shards_of(thread, k, frontier, settings)
        if part.begin == part.end:
            continue
        slot = batch.slot[k]
        if not is_root:
            mark_branches(slot, table, frontier, scratch.goes_left)
            for shard in range(part.begin, part.end):
                move_shard(shard, slot, table, source, buffer, nodes, frontier, scratch.goes_left)
        if batch.small[k] < 0:
            continue
        at = slot_of(k, batch.small[k], frontier)
        histogram = frontier.histogram if part.begin == 0 else frontier.shard_histogram
        first = (at if part.begin == 0 else thread - 1) * table.histogram_size
        clear_histogram(histogram, first, table)
        for shard in range(part.begin, part.end):
            sum_shard(shard, frontier.number[at], table, source, buffer, nodes, histogram, first)
        if asks_for_luck(settings):
            for b in range(1 if is_root else 2):
                node = frontier.number[slot_of(k, b, frontier)]
                rows = rows_of(node, source, buffer, nodes)
                for shard in range(part.begin, part.end):
                    batch.squares[shard, 2 * k + b] = squares_of_shard(shard, node, table, rows, nodes, settings)


@inlined
def add_summed(k: int, start: int, n: int, table: BoostTable, frontier: BoostFrontier, settings: BoostSettings) -> None:
    """Add n sums that threads have of the k-th node, from `start` on, to those of its first thread."""
    histogram = frontier.histogram
    others = frontier.shard_histogram
    to = np.uint64(slot_of(k, frontier.batch.small[k], frontier) * table.histogram_size + start)
    for thread in range(1, frontier.state[N_PARTS]):
        part = shards_of(np.int64(thread), k, frontier, settings)
        if part.begin > 0 and part.end > part.begin:
            source = np.uint64((thread - 1) * table.histogram_size + start)
            for c in range(np.uint64(n)):
                histogram[to + c] += others[source + c]


@inlined
def gather_feature(feature: int, k: int, table: BoostTable, frontier: BoostFrontier, settings: BoostSettings) -> None:
    """Make the sums of a feature in both children of the k-th node from those that threads have of the smaller one."""
    size = table.histogram_size
    small = frontier.batch.small[k]
    part = slot_of(k, small, frontier)
    start = table.histogram_start[feature]
    n = np.int64(1) if table.is_paired[feature] else table.features[N_CODES, feature] + 1
    byte = table.place[feature] * HISTOGRAM_STRIDE + table.base[feature]
    is_spread = table.base[feature] >= 0 and not table.is_paired[feature]
    if is_spread:  # its codes in the byte but the usual one, which the byte does not tell
        add_summed(k, byte, n - 2, table, frontier, settings)
        spread_bundle(frontier.histogram, part * size, frontier.packed[part], feature, table)
    elif start >= 0:
        add_summed(k, start, n, table, frontier, settings)
    if start < 0 or frontier.state[PHASE] == SUMMED:
        return
    whole = frontier.batch.slot[k] * size
    rest = slot_of(k, 1 - small, frontier) * size
    subtract_sums(frontier.histogram, whole + start, part * size + start, rest + start, n)
    if is_spread:
        subtract_sums(frontier.histogram, whole + byte, part * size + byte, rest + byte, n - 2)


@inlined
def keep_cuts(row: int, part: Part, best: BestCuts, cuts: BestCuts) -> None:
    """Keep the best cuts of some features in the row of a child."""
    first = row * len(best.gain)
    for f in range(part.begin, part.end):
        cuts.gain[first + f] = best.gain[f]
        cuts.cut[first + f] = best.cut[f]
        cuts.following[first + f] = best.following[f]
        cuts.missing[first + f] = best.missing[f]
        cuts.left[first + f] = best.left[f]


@inlined
def take_cuts(row: int, n_used: int, cuts: BestCuts, best: BestCuts) -> None:
    """Take back the best cuts of all features that were kept in the row of a child."""
    first = row * len(best.gain)
    for f in range(n_used):
        best.gain[f] = cuts.gain[first + f]
        best.cut[f] = cuts.cut[first + f]
        best.following[f] = cuts.following[first + f]
        best.missing[f] = cuts.missing[first + f]
        best.left[f] = cuts.left[first + f]
        best.is_counted[f] = False


@inlined
def scan_part(
    thread: int,
    table: BoostTable,
    source: ByteRows,
    buffer: ByteRows,
    nodes: BoostNodes,
    frontier: BoostFrontier,
    scratch: BoostScratch,
    settings: BoostSettings,
) -> None:
    """Find the best cuts of the features of a thread in the children of a batch whose rows were moved and summed."""
    batch = frontier.batch
    is_root = frontier.state[PHASE] == SUMMED
    n_used = np.int64(len(table.used))
    if n_used == 0:  # no feature can part the rows
        return
    n_all = frontier.state[N_BATCH] * n_used
    n_parts = frontier.state[N_PARTS]
    begin = n_all * thread // n_parts
    end = n_all * (thread + 1) // n_parts
    for k in range(begin // n_used, -(-end // n_used)):
        if batch.small[k] < 0:
            continue
        part = Part(max(begin - k * n_used, np.int64(0)), min(end - k * n_used, n_used))
        for f in range(part.begin, part.end):
            gather_feature(table.used[f], k, table, frontier, settings)
        for b in range(1 if is_root else 2):
            at = slot_of(k, b, frontier)
            if frontier.is_open[at]:
                noise = 0.0
                if asks_for_luck(settings):
                    squares = np.int64(0)
                    for shard in range(settings.n_shards):
                        squares += batch.squares[shard, 2 * k + b]
                    noise = worth_of_luck(squares, frontier.packed[at], settings)
                frontier.noise[at] = noise  # of all threads the same, and read by others: nothing else may stand there
                rows = rows_of(frontier.number[at], source, buffer, nodes)
                scan_features(at, part, table, rows, nodes, frontier, scratch, settings)
                keep_cuts(2 * k + b, part, scratch.best, batch.cuts)


@door
def serve(
    follower: int,
    table: BoostTable,
    source: ByteRows,
    buffer: ByteRows,
    nodes: BoostNodes,
    frontier: BoostFrontier,
    scratch: BoostScratch,
    settings: BoostSettings,
) -> None:
    """Make batches ready together with other threads until the tree is grown; alone, one batch.

    A batch has so many parts as it is worth, and wakes no more threads. Threads that could not be started have parts
    too: a follower does every so many-th, from its number on.
    """
    locks = frontier.batch.locks
    n_followers = np.int64(len(locks.begin))
    is_alone = n_followers == 0
    while is_alone or wait_for(locks.begin[follower], locks):
        if locks.is_over[0] != 0:
            wake_others(follower, n_followers, locks)
            return
        n_parts = frontier.state[N_PARTS]
        n_awake = min(n_parts, max(n_followers, np.int64(1)))
        wake_others(follower, n_awake, locks)
        for part in range(follower, n_parts, n_awake):
            move_part(part, table, source, buffer, nodes, frontier, scratch, settings)
        if not meet(follower, n_awake, locks):
            return
        for part in range(follower, n_parts, n_awake):
            scan_part(part, table, source, buffer, nodes, frontier, scratch, settings)
        if is_alone or not wait_for_others(follower, n_awake, locks):
            return
        open_lock(locks.open, locks.end[follower])
