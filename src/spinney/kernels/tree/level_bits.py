"""The codes that rows of a node have, as bits: fewer words than there are codes, read off in the order of codes."""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined

NONE, ONE, SIX, LAST_BIT = np.uint64(0), np.uint64(1), np.uint64(6), np.uint64(63)


@inlined
def mark_codes(feature: int, n_codes: int, lo: int, hi: int, codes: np.ndarray, seen: np.ndarray) -> np.uint64:
    """Set the bits of the codes that rows lo .. hi have, and no others, in `seen`; return how many words they fill."""
    column = np.uint64(feature)
    n_words = np.uint64((n_codes >> 6) + 1)
    for w in range(n_words):
        seen[w] = NONE
    for i in range(np.uint64(lo), np.uint64(hi)):
        code = np.uint64(codes[i, column])
        seen[code >> SIX] |= ONE << (code & LAST_BIT)
    return n_words
