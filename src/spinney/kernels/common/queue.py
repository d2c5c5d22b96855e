"""The open nodes in the order they are expanded: a stack (depth first) or a heap by gain (best first).

A *frontier* is any tuple with these fields:

  queue   int64 (n_slots,)   slots of open nodes; the first state[N_QUEUED] entries count
  node    int64 (n_slots,)   number of the node in each slot
  gain    float64 (n_slots,) what its split gains
  state   int64              counters of the driver
"""

from __future__ import annotations

from typing import Any

import numpy as np

from spinney._jit import inlined
from spinney._types import BEST_FIRST, N_QUEUED


@inlined
def is_ahead(frontier: Any, a: int, b: int) -> bool:
    """Whether slot a is expanded before slot b: larger gain, then older node."""
    if frontier.gain[a] != frontier.gain[b]:
        return frontier.gain[a] > frontier.gain[b]
    return frontier.node[a] < frontier.node[b]


@inlined
def rise(frontier: Any, at: int, slot: int) -> None:
    """Put a slot into the heap at a place without children, or above it where it is ahead of what stands there."""
    queue = frontier.queue
    while at > 0:
        above = (at - 1) // 2
        if not is_ahead(frontier, slot, queue[above]):
            break
        queue[at] = queue[above]
        at = above
    queue[at] = slot


@inlined
def push(frontier: Any, order: int, slot: int) -> None:
    """Add a slot to the queue: a stack (depth first) or a heap by gain (best first)."""
    at = frontier.state[N_QUEUED]
    frontier.state[N_QUEUED] = at + 1
    if order == BEST_FIRST:
        rise(frontier, at, slot)
    else:
        frontier.queue[at] = slot


@inlined
def pop(frontier: Any, order: int) -> int:
    """Take the next slot from the queue."""
    queue, state = frontier.queue, frontier.state
    end = state[N_QUEUED] - 1
    state[N_QUEUED] = end
    if order != BEST_FIRST:
        return queue[end]
    top = queue[0]
    slot = queue[end]
    at = np.int64(0)
    while True:
        child = 2 * at + 1
        if child >= end:
            break
        if child + 1 < end and is_ahead(frontier, queue[child + 1], queue[child]):
            child += 1
        if not is_ahead(frontier, queue[child], slot):
            break
        queue[at] = queue[child]
        at = child
    queue[at] = slot
    return top


@inlined
def drop_last(frontier: Any) -> int:
    """Take the slot from the heap that would be expanded last."""
    queue, state = frontier.queue, frontier.state
    n = state[N_QUEUED]
    last = n // 2  # from here on nothing stands below
    for k in range(last + 1, n):
        if is_ahead(frontier, queue[last], queue[k]):
            last = np.int64(k)
    slot = queue[last]
    state[N_QUEUED] = n - 1
    if last < n - 1:
        rise(frontier, last, queue[n - 1])
    return slot
