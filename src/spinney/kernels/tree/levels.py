"""The top of a tree whose rows come in parts, each of them somewhere else: on disk, on another machine.

    for each part: route_rows ─► sum_codes ─► sums of all parts added up ─► search_given, for each open node
                   (node of each row)  (by node, feature and code)

What is done to a part reads its rows and adds to what is given for it, nothing else. A search asks for sums in the
place of rows (`given_sums`), so that it finds what it would find of the rows.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door
from spinney._types import TARGET, WEIGHT

from ..common.branch import branch_of_code
from ..common.leaf_means import fixed_sums, sum_targets
from ..common.structs import (
    Frontier,
    Nodes,
    RowRange,
    Rows,
    Scratch,
    Settings,
    Table,
    Targets,
    TopRows,
    TopTests,
    ValueUnits,
)
from .category_chance import sum_squares
from .feature_order import draw_feature, restore_order
from .search import search


@door
def route_rows(codes: np.ndarray, rows: np.ndarray, tests: TopTests, node: np.ndarray) -> None:
    """Write the node of each of some rows of a part: from the root down, as far as there are tests."""
    feature, kind, cut, missing, first_child = (
        tests.feature,
        tests.kind,
        tests.cut,
        tests.missing,
        tests.first_child,
    )
    for k in range(len(rows)):
        at = np.int64(0)
        i = rows[k]
        while first_child[at] != 0:
            code = np.int64(codes[i, feature[at]])
            at = first_child[at] + branch_of_code(code, kind[at], cut[at], missing[at], tests.subsets)
        node[k] = at


@door
def order_features(key: np.uint64, permutation: np.ndarray, places: np.ndarray, order: np.ndarray) -> None:
    """Write the features in the order that a node draws them in; key: that of its draws."""
    n = np.int64(len(order))
    for k in range(n):
        order[k] = draw_feature(permutation, places, np.int64(k), key)
    restore_order(permutation, places, n)


@door
def sum_codes(rows: TopRows, lo: int, hi: int, feature: int, n_classes: int, sums: np.ndarray) -> None:
    """Add rows lo .. hi, all of one node, to its sums by the codes of a feature; see `GivenSums`.

    n_classes: three or more; 0 for numbers and two classes.
    """
    codes, index, addends = rows.codes, rows.rows, rows.addends
    column = np.uint64(feature)
    is_unit = len(addends) == 1
    if n_classes > 0:
        width = np.uint64(n_classes + 1)
        for k in range(np.uint64(lo), np.uint64(hi)):
            at = np.uint64(codes[np.uint64(index[k]), column]) * width
            if is_unit:
                sums[at + np.uint64(addends[TARGET, k])] += 1
            else:
                sums[at + np.uint64(addends[TARGET, k])] += addends[WEIGHT, k]
                sums[at + width - np.uint64(1)] += 1
    elif is_unit:
        for k in range(np.uint64(lo), np.uint64(hi)):
            at = np.uint64(codes[np.uint64(index[k]), column]) * np.uint64(2)
            sums[at] += 1
            sums[at + np.uint64(1)] += addends[TARGET, k]
    else:
        for k in range(np.uint64(lo), np.uint64(hi)):
            at = np.uint64(codes[np.uint64(index[k]), column]) * np.uint64(3)
            sums[at] += 1
            sums[at + np.uint64(1)] += addends[TARGET, k]
            sums[at + np.uint64(2)] += addends[WEIGHT, k]


@door
def sum_part_squares(addends: np.ndarray, lo: int, hi: int, centre: int, is_whole: bool, unit: float) -> int:
    """Sum of weight * target**2 over some rows of a node, in units; see `category_chance`."""
    return sum_squares(addends, lo, hi, centre, is_whole, unit)


@door
def sum_part_targets(targets: Targets, lo: int, hi: int, units: ValueUnits, scale: float, is_absolute: bool) -> int:
    """Sum of the targets of some rows, in units; see `leaf_means`."""
    return sum_targets(targets, lo, hi, units, scale, is_absolute)


@door
def sum_part_terms(
    targets: Targets, leaf: RowRange, is_whole: bool, low: float, width: float, centre: float, kind: int, scale: float
) -> tuple[int, int]:
    """Sums of what a mean of some rows is made of; see `leaf_means`."""
    return fixed_sums(targets, leaf, is_whole, low, width, centre, kind, scale)


@door
def search_given(
    slot: int, rows: Rows, table: Table, settings: Settings, nodes: Nodes, frontier: Frontier, scratch: Scratch
) -> tuple[bool, float]:
    """Find the best split of the node in a slot by its sums: whether there is one, and the score of the node."""
    return search(slot, rows, table, settings, nodes, frontier, scratch)
