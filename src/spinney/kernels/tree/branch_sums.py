"""What the branches of a split add up to, for two classes with packed addends.

It is noted when a node is split, so that neither whether a branch is pure nor its sums ask all of its rows again.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import inlined
from spinney._types import N_ALL, Q_ALL, S_ALL, SPREAD, TARGET, W_ALL

from ..common.structs import Frontier, Nodes, Rows, Scratch, Settings, Table
from ..common.sums import sum_weight
from .rates import open_unit, score_sums


@inlined
def is_noted(settings: Settings) -> bool:
    """Whether the sums of branches are noted."""
    return settings.is_packed and settings.n_classes == 2


@inlined
def sum_two(addends: np.ndarray, lo: int, hi: int) -> tuple[int, int]:
    """Weight of rows lo .. hi, and that of class 1."""
    total = np.int64(0)
    for i in range(np.uint64(lo), np.uint64(hi)):
        total += addends[TARGET, i]
    return sum_weight(addends, lo, hi), total


@inlined
def note_root(rows: Rows, settings: Settings, frontier: Frontier) -> None:
    """Note the sums of all rows as those of the first branch."""
    if is_noted(settings):
        children = frontier.children
        children.weight[0], children.total[0] = sum_two(rows.addends, 0, len(rows.ids))


@inlined
def sum_branches(
    slot: int, middle: int, end: int, rows: Rows, settings: Settings, nodes: Nodes, frontier: Frontier
) -> tuple[int, int]:
    """Weights of the branches of known rows, which part at `middle` and end at `end`; the sums of all are noted."""
    addends, children = rows.addends, frontier.children
    lo = nodes.begin[frontier.node[slot]]
    if not is_noted(settings):
        return sum_weight(addends, lo, middle), sum_weight(addends, middle, end)
    w_left, left = sum_two(addends, lo, middle)
    w_right, right = frontier.weight[slot] - w_left, frontier.total[slot] - left
    if end < lo + nodes.n_rows[frontier.node[slot]]:
        w_right, right = sum_two(addends, middle, end)
    children.weight[0], children.total[0] = w_left, left
    children.weight[1], children.total[1] = w_right, right
    children.weight[2], children.total[2] = (
        frontier.weight[slot] - w_left - w_right,
        frontier.total[slot] - left - right,
    )
    return w_left, w_right


@inlined
def take_noted(
    slot: int, n: int, rows: Rows, table: Table, settings: Settings, frontier: Frontier, scratch: Scratch
) -> tuple[float, int, int]:
    """As `search.sum_node` for the n rows of the node in a slot, from what was noted."""
    totals = scratch.totals
    weight, total = frontier.weight[slot], frontier.total[slot]
    square = weight if len(rows.addends) > 1 else np.int64(0)
    totals[N_ALL] = n
    totals[W_ALL] = weight
    totals[S_ALL] = total
    totals[Q_ALL] = square
    totals[SPREAD] = 0
    centre, unit = open_unit(np.int64(0), settings, totals, scratch.rates)
    score = score_sums(settings.criterion, weight, total, square, unit, table.xlogx, scratch.rates)
    return score, np.int64(0), centre
