"""Sort a node's rows by the code of one feature.

A key is `code << shift | position in the node`. Codes are ranks of values, so inside a node they are spread almost
evenly over their range: one counting pass on the leading bits, with about one bucket per row, leaves runs of a few
keys that an insertion sort finishes. Where the codes turn out to be bunched, two byte-wise passes take over. Small
nodes are insertion-sorted at once.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import kernel
from spinney._types import MOST_BUCKETS

INSERTION_ROWS = 20  # below, insertion sort beats the counting pass
FULLEST_BUCKET = 40  # above, the byte-wise passes beat finishing by insertion


@kernel
def insert_sort(keys: np.ndarray, side: int, n_keys: int) -> None:
    """Sort keys[side, :n_keys] in place."""
    for k in range(1, n_keys):
        key = keys[side, k]
        at = k - 1
        while at >= 0 and keys[side, at] > key:
            keys[side, at + 1] = keys[side, at]
            at -= 1
        keys[side, at + 1] = key


@kernel
def bucket_sort(
    keys: np.ndarray, side: int, n_keys: int, shift: int, n_buckets: int, least: int, most: int, counts: np.ndarray
) -> bool:
    """Move keys[side] to the other row by bucket ((key >> shift) - least) mod n_buckets, keeping their order.

    Gives up, and returns False, if a bucket holds more than `most` keys.
    """
    mask = n_buckets - 1
    for b in range(n_buckets):
        counts[b] = 0
    for k in range(n_keys):
        counts[((np.int64(keys[side, k]) >> shift) - least) & mask] += 1
    at = np.int64(0)
    for b in range(n_buckets):
        n = np.int64(counts[b])
        if n > most:
            return False
        counts[b] = at
        at += n
    for k in range(n_keys):
        key = keys[side, k]
        b = ((np.int64(key) >> shift) - least) & mask
        keys[1 - side, counts[b]] = key
        counts[b] += 1
    return True


@kernel
def sort_keys(keys: np.ndarray, n_keys: int, shift: int, lowest: int, highest: int, counts: np.ndarray) -> int:
    """Sort keys[0, :n_keys] whose codes lie in lowest .. highest; return the row of `keys` that holds the result.

    keys: (2, at least n_keys); counts: MOST_BUCKETS entries.
    """
    if n_keys <= INSERTION_ROWS:
        insert_sort(keys, 0, n_keys)
        return 0
    n_buckets = np.int64(32)
    while n_buckets < n_keys and n_buckets < MOST_BUCKETS:
        n_buckets *= 2
    drop = np.int64(0)
    while ((highest - lowest) >> drop) >= n_buckets - 1:  # one bucket of room: `lowest` is rounded down
        drop += 1
    most = n_keys if drop == 0 else FULLEST_BUCKET
    if bucket_sort(keys, 0, n_keys, shift + drop, n_buckets, lowest >> drop, most, counts):
        if drop > 0:
            insert_sort(keys, 1, n_keys)
        return 1
    bucket_sort(keys, 0, n_keys, shift, 256, 0, n_keys, counts)
    bucket_sort(keys, 1, n_keys, shift + 8, 256, 0, n_keys, counts)
    return 0


@kernel
def make_keys(
    codes: np.ndarray, lo: int, hi: int, feature: int, shift: int, keys: np.ndarray, counts: np.ndarray
) -> int:
    """Write the keys of rows lo .. hi in order to one of the two rows of scratch; return which. Missing come first."""
    lowest = np.int64(codes[lo, feature])
    highest = lowest
    first = np.uint64(lo)
    at = np.uint64(feature)
    for k in range(np.uint64(hi - lo)):
        code = np.int64(codes[first + k, at])
        keys[0, k] = (code << shift) | np.int64(k)
        lowest = min(lowest, code)
        highest = max(highest, code)
    return sort_keys(keys, hi - lo, shift, lowest, highest, counts)
