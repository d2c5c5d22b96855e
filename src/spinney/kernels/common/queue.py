"""The open nodes in the order they are expanded: a stack (depth first) or a heap by gain (best first)."""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined, kernel
from spinney._types import BEST_FIRST, GAIN, N_QUEUED, NODE, QUEUE


@kernel
def is_ahead(slots: np.ndarray, slot_values: np.ndarray, a: int, b: int) -> bool:
    """Whether slot a is expanded before slot b: larger gain, then older node."""
    if slot_values[GAIN, a] != slot_values[GAIN, b]:
        return slot_values[GAIN, a] > slot_values[GAIN, b]
    return slots[NODE, a] < slots[NODE, b]


@inlined
def push(slots: np.ndarray, slot_values: np.ndarray, order: int, state: np.ndarray, slot: int) -> None:
    """Add a slot to the queue: a stack (depth first) or a heap by gain (best first)."""
    at = state[N_QUEUED]
    state[N_QUEUED] = at + 1
    while order == BEST_FIRST and at > 0:
        above = (at - 1) // 2
        if not is_ahead(slots, slot_values, slot, slots[QUEUE, above]):
            break
        slots[QUEUE, at] = slots[QUEUE, above]
        at = above
    slots[QUEUE, at] = slot


@inlined
def pop(slots: np.ndarray, slot_values: np.ndarray, order: int, state: np.ndarray) -> int:
    """Take the next slot from the queue."""
    end = state[N_QUEUED] - 1
    state[N_QUEUED] = end
    if order != BEST_FIRST:
        return slots[QUEUE, end]
    top = slots[QUEUE, 0]
    slot = slots[QUEUE, end]
    at = np.int64(0)
    while True:
        child = 2 * at + 1
        if child >= end:
            break
        if child + 1 < end and is_ahead(slots, slot_values, slots[QUEUE, child + 1], slots[QUEUE, child]):
            child += 1
        if not is_ahead(slots, slot_values, slots[QUEUE, child], slot):
            break
        slots[QUEUE, at] = slots[QUEUE, child]
        at = child
    slots[QUEUE, at] = slot
    return top
