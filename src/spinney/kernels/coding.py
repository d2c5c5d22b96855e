"""Merge distinct values into bins of about equal weight."""

from __future__ import annotations

import numpy as np

from spinney._jit import door


@door
def fill_bins(mass: np.ndarray, n_bins: int, bins: np.ndarray) -> int:
    """Number the bins of values in order, given the weight of each; return how many there are.

    A bin takes values until it holds its share of what was left when it opened, so that a heavy value gets a bin of
    its own and the rest share the remaining bins evenly.
    """
    left = np.int64(0)
    for k in range(len(mass)):
        left += mass[k]
    at = np.int64(0)
    held = np.int64(0)
    share = left // n_bins
    for k in range(len(mass)):
        w = mass[k]
        if held > 0 and at < n_bins - 1 and (held + (w + 1) // 2 > share or len(mass) - k < n_bins - at):
            at += 1
            held = np.int64(0)
            share = left // (n_bins - at)
        held += w
        left -= w
        bins[k] = at
    return at + 1
