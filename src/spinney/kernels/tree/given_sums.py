"""Sums of a node whose rows are elsewhere, where a search asks for those of the rows at hand.

Each function takes `GivenSums | None` and for None sums rows lo .. hi up, which is known at compile time.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined
from spinney._types import ALL, N_ALL, PRESENT, Q_ALL, S_ALL, SPREAD, W_ALL

from ..common.bins import list_bins, list_bins_by_histogram
from ..common.structs import CodedRows, GivenSums, OpenNode, Scratch
from ..common.sums import sum_classes, sum_moments


@inlined
def has_given(given: GivenSums | None) -> bool:
    """Whether sums are given in the place of rows."""
    return given is not None


@inlined
def is_lacking(feature: int, given: GivenSums | None) -> bool:
    """Whether the sums of a feature are asked for that are not there, which is noted."""
    if given is None:
        return False
    if given.first[feature] >= 0:
        return False
    given.lacking[0] = feature
    return True


@inlined
def total_moments(addends: np.ndarray, lo: int, hi: int, totals: np.ndarray, given: GivenSums | None) -> None:
    """Sums of all rows of a node, of numbers and two classes."""
    if given is None:
        sum_moments(addends, lo, hi, totals)
        return
    totals[N_ALL] = hi - lo
    totals[W_ALL] = given.totals[0]
    totals[S_ALL] = given.totals[1]
    totals[Q_ALL] = given.totals[0]
    totals[SPREAD] = 1 + given.totals[2]


@inlined
def total_classes(
    addends: np.ndarray, lo: int, hi: int, sums: np.ndarray, totals: np.ndarray, given: GivenSums | None
) -> int:
    """The same of three classes or more; returns the number of classes present."""
    if given is None:
        return sum_classes(addends, lo, hi, sums, totals)
    n_present = np.int64(0)
    weight = np.int64(0)
    for c in range(len(given.classes)):
        held = given.classes[c]
        sums[ALL, c] = held
        weight += held
        if held > 0:
            sums[PRESENT, n_present] = c
            n_present += 1
    totals[N_ALL] = hi - lo
    totals[W_ALL] = weight
    return n_present


@inlined
def list_node_bins(
    feature: int, n_codes: int, node: OpenNode, rows: CodedRows, scratch: Scratch, given: GivenSums | None
) -> int:
    """List the bins of a node, of numbers and two classes; return how many there are."""
    histogram, bins, totals = scratch.histogram, scratch.bins, scratch.totals
    if given is None:
        return list_bins_by_histogram(rows, node.lo, node.hi, feature, n_codes, histogram, bins, totals)
    is_unit = len(rows.addends) == 1
    here = 2 if is_unit else 3
    width = 2 if is_unit else 4
    first = given.first[feature]
    for code in range(n_codes + 1):
        for k in range(here):
            histogram[code * width + k] = given.sums[first + code * here + k]
        if not is_unit:
            histogram[code * width + 3] = given.sums[first + code * here + 2]
    return list_bins(n_codes, width, histogram, bins, totals)
