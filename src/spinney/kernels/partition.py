"""Move the rows of a node so that each branch is a range of its own.

Rows are swapped in place, codes and sums together: no second buffer, and every node below reads its rows in sequence.
The order inside a branch is arbitrary; nothing depends on it, because sums are integers.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined

from .route import branch_of_code


@inlined
def partition(
    codes: np.ndarray,
    words: np.ndarray,
    labels: np.ndarray,
    ids: np.ndarray,
    lo: int,
    hi: int,
    feature: int,
    kind: int,
    cut: int,
    missing: int,
    subsets: np.ndarray,
    last: int,
) -> int:
    """Move the rows of lo .. hi whose branch is `last` or higher behind the others; return where they begin."""
    i = np.int64(lo)
    k = np.int64(hi) - 1
    n_words = words.shape[1]
    n_labels = len(labels)
    while True:
        while i <= k and branch_of_code(np.int64(codes[i, feature]), kind, cut, missing, subsets) < last:
            i += 1
        while i <= k and branch_of_code(np.int64(codes[k, feature]), kind, cut, missing, subsets) >= last:
            k -= 1
        if i >= k:
            return i
        for at in range(n_words):
            word = words[i, at]
            words[i, at] = words[k, at]
            words[k, at] = word
        for at in range(n_labels):
            label = labels[at, i]
            labels[at, i] = labels[at, k]
            labels[at, k] = label
        row = ids[i]
        ids[i] = ids[k]
        ids[k] = row
        i += 1
        k -= 1
