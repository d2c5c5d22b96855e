"""Search all rows of a table for one split, in an order that was made once.

Boosting with stumps searches the same rows hundreds of times, with other weights each time, so that nothing is sorted
anew here: `order.rows[j]` lists the rows by their code of feature j, missing ones first. The last row of each code
stands there as its complement (~row): one stream of integers tells both rows and codes. `order.pairs` holds what a row
adds to the sums, (target or class, weight), side by side: one access to memory for both.

Scores, ties and the order of features are those of `kernels.tree.search`, so that a stump found here is the one that
the driver of trees grows. Where nothing is missing, a cut is scored in full only if a cheaper expression, with room for
its roundings, says that it may be the best so far: two divisions for one in a thousand.
"""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined, kernel
from spinney._types import (
    ALL,
    BIN_CODE,
    BIN_N,
    BIN_SQUARE,
    BIN_SUM,
    BIN_WEIGHT,
    GINI,
    LEFT,
    MISSING,
    N_MISSING,
    PRESENT,
    Q_ALL,
    Q_MISSING,
    RIGHT,
    S_ALL,
    S_MISSING,
    SQUARED_ERROR,
    TARGET,
    THRESHOLD,
    W_ALL,
    W_MISSING,
    WEIGHT,
)

from ..common.category_chance import no_chance
from ..common.criteria import best_possible, score_classes, score_moments
from ..common.node_layout import pack_test
from ..common.structs import (
    BinWalk,
    Candidate,
    CutAtHand,
    Nodes,
    OpenNode,
    Order,
    RootSplit,
    Settings,
    StumpClassScratch,
    StumpScratch,
    Table,
    Targets,
)
from ..common.sums import sum_classes, sum_moments
from ..common.thresholds import place_threshold
from ..common.ties import NO_SCORE, bar_above, certain
from .candidates import none_better
from .new_nodes import write_leaf
from .scan_classes import power_kind, power_step, start_right, try_cut
from .scan_moments import scan_moments

ROOM = 2.0**-44  # of a score: many times the roundings between the cheap expression and the full one
DRIFT = 2.0**-48  # of a sum of squares, for each row that was added to it or taken off
NO_KEY = np.uint64(0)  # of ties: they go to the first


@inlined
def open_rows(n_rows: int, n_present: int) -> OpenNode:
    """The node that holds all rows, without lists, constraints or draws."""
    zero = np.int64(0)
    return OpenNode(zero, n_rows, np.int64(-1), n_present, zero, zero, False, -np.inf, np.inf, NO_KEY, NO_KEY)


@inlined
def given_score(score: float) -> Candidate:
    """What a scan has to beat."""
    return Candidate(score, np.int64(-1), np.int64(-1), np.int64(0), np.int64(0), np.inf)


@door
def open_root(
    addends: np.ndarray,  # (2, n_rows) int64
    settings: Settings,
    xlogx: np.ndarray,
    totals: np.ndarray,  # written
    sums: np.ndarray | None,  # written; None: moments
) -> tuple[float, float, float, int]:
    """Sum up all rows; return their score, one below and one above that of any split, and the number of classes."""
    n_rows = addends.shape[1]
    n_present = np.int64(0)
    if sums is None:
        sum_moments(addends, 0, n_rows, totals)
        score = score_moments(
            settings.criterion, totals[W_ALL], totals[S_ALL], totals[Q_ALL], settings.square_unit, xlogx
        )
    else:
        n_present = sum_classes(addends, 0, n_rows, sums, totals)
        score = score_classes(settings.criterion, sums, ALL, totals[W_ALL], n_present, xlogx)
    bound = best_possible(settings.criterion, settings.is_class, addends, 0, n_rows, totals[W_ALL], totals[S_ALL], 0)
    return score, NO_SCORE, certain(bound), n_present


# --- two classes, and numbers -----------------------------------------------------------------------------------


@inlined
def scan_order(best: float, feature: int, order: Order, settings: Settings, totals: np.ndarray) -> tuple[float, int]:
    """Best cut of a feature without missing values by squared error; the place in the order that it comes after, or -1.

    The score of a cut is a^2 / v + b^2 / w for branches of sums a, b and weights v, w: (a^2 w + b^2 v) / (v w).
    """
    rows, pairs = order.rows, order.pairs
    total, weight = totals[S_ALL], totals[W_ALL]
    least = settings.min_samples_leaf
    n_rows = rows.shape[1]
    at = np.int64(-1)
    left = np.int64(0)
    w_left = np.int64(0)
    bar = bar_above(best)
    bar -= abs(bar) * ROOM
    for k in range(np.uint64(n_rows - least)):
        entry = np.int64(rows[feature, k])
        row = np.uint64(entry ^ (entry >> 63))
        left += pairs[row, TARGET]
        w_left += pairs[row, WEIGHT]
        if entry < 0:
            wa = np.float64(w_left)
            wb = np.float64(weight - w_left)
            a = np.float64(left)
            b = np.float64(total - left)
            if a * a * wb + b * b * wa > bar * (wa * wb):
                if np.int64(k) + 1 < least or min(w_left, weight - w_left) < settings.min_weight_leaf:
                    continue
                score = a * a / wa
                score += b * b / wb
                if score > bar_above(best):
                    best = score
                    bar = bar_above(best)
                    bar -= abs(bar) * ROOM
                    at = np.int64(k)
    return best, at


@kernel
def list_bins_by_order(feature: int, order: Order, bins: np.ndarray, totals: np.ndarray) -> int:
    """Sum up the rows of each code, and those that are missing; return the number of bins. Codes are counted."""
    rows, pairs = order.rows, order.pairs
    n_missing = order.n_missing[feature]
    n_bins = np.int64(0)
    n = np.int64(0)
    total = np.int64(0)
    weight = np.int64(0)
    totals[N_MISSING] = n_missing
    totals[S_MISSING] = 0
    totals[W_MISSING] = 0
    for k in range(rows.shape[1]):
        entry = np.int64(rows[feature, k])
        row = entry ^ (entry >> 63)
        n += 1
        total += pairs[row, TARGET]
        weight += pairs[row, WEIGHT]
        if entry >= 0:
            continue
        if k < n_missing:
            totals[S_MISSING] = total
            totals[W_MISSING] = weight
        else:
            bins[BIN_CODE, n_bins] = n_bins
            bins[BIN_N, n_bins] = n
            bins[BIN_SUM, n_bins] = total
            bins[BIN_WEIGHT, n_bins] = weight
            bins[BIN_SQUARE, n_bins] = weight
            n_bins += 1
        n = 0
        total = 0
        weight = 0
    totals[Q_MISSING] = totals[W_MISSING]
    return n_bins


@inlined
def scan_order_bins(
    best: float,
    feature: int,
    order: Order,
    settings: Settings,
    xlogx: np.ndarray,
    bins: np.ndarray,
    totals: np.ndarray,
) -> tuple[float, int, int]:
    """The same by any criterion, with missing values; also returns the branch of the missing rows."""
    n_missing = order.n_missing[feature]
    nothing = np.int64(-1)
    n_bins = list_bins_by_order(feature, order, bins, totals)
    if n_bins == 0 or (n_bins == 1 and n_missing == 0):
        return best, nothing, nothing
    root = open_rows(order.rows.shape[1], np.int64(0))
    found = scan_moments(
        given_score(best), BinWalk(n_bins, np.int64(0), no_chance()), root, settings, xlogx, bins, totals, None
    )
    if found.cut < 0:
        return found.score, nothing, nothing
    at = n_missing - 1
    for b in range(found.cut + 1):
        at += bins[BIN_N, b]
    return found.score, at, found.missing if n_missing > 0 else nothing


@door
def search_moments(
    best: RootSplit,
    bound: float,  # a score that no split can beat
    first: int,
    last: int,
    order: Order,
    settings: Settings,
    table: Table,
    scratch: StumpScratch,  # totals of all rows; those of the missing ones are written
) -> RootSplit:
    """The better of `best` and the best split by features first .. last."""
    bins, totals = scratch.bins, scratch.totals
    top, best_feature, best_at, best_missing = best.score, best.feature, best.at, best.missing
    for feature in range(first, last):
        if top >= bound:
            break
        missing = np.int64(-1)
        if settings.criterion == SQUARED_ERROR and order.n_missing[feature] == 0:
            top, at = scan_order(top, feature, order, settings, totals)
        else:
            top, at, missing = scan_order_bins(top, feature, order, settings, table.xlogx, bins, totals)
        if at >= 0:
            best_feature = np.int64(feature)
            best_at = at
            best_missing = missing
    return RootSplit(top, best_feature, best_at, best_missing)


# --- three classes or more --------------------------------------------------------------------------------------


@inlined
def scan_class_order(
    best: float,
    feature: int,
    order: Order,
    settings: Settings,
    xlogx: np.ndarray,
    sums: np.ndarray,
    n_present: int,
    weight: int,
) -> tuple[float, int]:
    """Best cut of a feature without missing values by Gini; the place in the order that it comes after, or -1.

    The sums of squares of both branches follow the rows as floats: they drift, so they only tell which cuts are worth
    the sums over all classes. weight: of all rows.
    """
    rows, pairs = order.rows, order.pairs
    n_rows = rows.shape[1]
    least = settings.min_samples_leaf
    at = np.int64(-1)
    w_left = np.int64(0)
    square_left = 0.0
    square_right = 0.0
    for k in range(n_present):
        c = sums[PRESENT, k]
        sums[LEFT, c] = 0
        sums[RIGHT, c] = sums[ALL, c]
        square_right += np.float64(sums[ALL, c]) * np.float64(sums[ALL, c])
    whole = np.float64(weight)
    drift = np.float64(n_rows) * DRIFT * whole * whole * whole
    bar = bar_above(best)
    bar -= abs(bar) * ROOM
    for k in range(np.uint64(n_rows - least)):
        entry = np.int64(rows[feature, k])
        row = np.uint64(entry ^ (entry >> 63))
        c = np.uint64(pairs[row, TARGET])
        w = pairs[row, WEIGHT]
        left = sums[LEFT, c]
        right = sums[RIGHT, c]
        moved = np.float64(w)
        square_left += moved * (2.0 * np.float64(left) + moved)
        square_right -= moved * (2.0 * np.float64(right) - moved)
        sums[LEFT, c] = left + w
        sums[RIGHT, c] = right - w
        w_left += w
        if entry < 0:
            wa = np.float64(w_left)
            wb = np.float64(weight - w_left)
            if square_left * wb + square_right * wa + drift > bar * (wa * wb):
                w_right = weight - w_left
                if np.int64(k) + 1 < least or min(w_left, w_right) < settings.min_weight_leaf:
                    continue
                score = score_classes(settings.criterion, sums, LEFT, w_left, n_present, xlogx)
                score += score_classes(settings.criterion, sums, RIGHT, w_right, n_present, xlogx)
                if score > bar_above(best):
                    best = score
                    bar = bar_above(best)
                    bar -= abs(bar) * ROOM
                    at = np.int64(k)
    return best, at


@inlined
def try_class_order(
    best: float,
    feature: int,
    order: Order,
    settings: Settings,
    xlogx: np.ndarray,
    sums: np.ndarray,
    n_present: int,
    totals: np.ndarray,
) -> tuple[float, int, int]:
    """The same by any criterion, with missing values; also returns the branch of the missing rows."""
    rows, pairs = order.rows, order.pairs
    n_missing = order.n_missing[feature]
    n_rows = rows.shape[1]
    root = open_rows(n_rows, n_present)
    kind = power_kind(settings, xlogx)
    totals[N_MISSING] = n_missing
    totals[W_MISSING] = 0
    for k in range(n_present):
        sums[MISSING, sums[PRESENT, k]] = 0
    for k in range(n_missing):
        entry = np.int64(rows[feature, k])
        row = entry ^ (entry >> 63)
        sums[MISSING, pairs[row, TARGET]] += pairs[row, WEIGHT]
        totals[W_MISSING] += pairs[row, WEIGHT]
    w_left = np.int64(0)
    power_left = np.int64(0)
    power_right = start_right(sums, n_present, kind, xlogx)
    found = none_better(given_score(best))
    for k in range(n_missing, n_rows if n_missing > 0 else n_rows - 1):
        entry = np.int64(rows[feature, k])
        row = entry ^ (entry >> 63)
        c = pairs[row, TARGET]
        w = pairs[row, WEIGHT]
        power_left += power_step(kind, sums[LEFT, c], w, xlogx)
        sums[LEFT, c] += w
        sums[RIGHT, c] -= w
        power_right -= power_step(kind, sums[RIGHT, c], w, xlogx)
        w_left += w
        if entry < 0:
            cut = CutAtHand(
                np.int64(k), np.int64(-1), k == n_rows - 1, k + 1 - n_missing, w_left, power_left, power_right, 0.0
            )
            found = try_cut(found, cut, root, settings, xlogx, sums, totals, no_chance())
    missing = np.int64(-1)
    if found.cut >= 0 and n_missing > 0:
        missing = found.missing
    return found.score, found.cut, missing


@door
def search_classes(
    best: RootSplit,
    bound: float,
    first: int,
    last: int,
    order: Order,
    settings: Settings,
    table: Table,
    scratch: StumpClassScratch,
) -> RootSplit:
    """The same as `search_moments` for three classes or more."""
    sums, totals, n_present = scratch.sums, scratch.totals, scratch.n_present
    xlogx = table.xlogx
    top, best_feature, best_at, best_missing = best.score, best.feature, best.at, best.missing
    for feature in range(first, last):
        if top >= bound:
            break
        missing = np.int64(-1)
        if settings.criterion == GINI and order.n_missing[feature] == 0:
            top, at = scan_class_order(top, feature, order, settings, xlogx, sums, n_present, totals[W_ALL])
        else:
            top, at, missing = try_class_order(top, feature, order, settings, xlogx, sums, n_present, totals)
        if at >= 0:
            best_feature = np.int64(feature)
            best_at = at
            best_missing = missing
    return RootSplit(top, best_feature, best_at, best_missing)


# --- the tree ---------------------------------------------------------------------------------------------------


@inlined
def move_rows(order: Order, feature: int, first: int, end: int, to: int, targets: Targets) -> int:
    """Write the rows first .. end of an order to ids and addends from `to` on; return where they end."""
    rows, pairs, ids, addends = order.rows, order.pairs, targets.ids, targets.addends
    for k in range(first, end):
        entry = np.int64(rows[feature, k])
        row = entry ^ (entry >> 63)
        ids[to] = row
        addends[TARGET, to] = pairs[row, TARGET]
        addends[WEIGHT, to] = pairs[row, WEIGHT]
        to += 1
    return to


@inlined
def add_leaf(nodes: Nodes, node: int, begin: int, end: int) -> None:
    """Write a leaf with rows begin .. end."""
    write_leaf(node, begin, end - begin, nodes)
    nodes.score[node] = 0.0
    nodes.lower[node] = -np.inf
    nodes.upper[node] = np.inf


@door
def split_root(
    split: RootSplit,
    score: float,  # of the root
    codes: np.ndarray,  # (n_rows, stride) uint16
    order: Order,
    table: Table,
    targets: Targets,  # ids and addends, written: the rows of each branch side by side
    nodes: Nodes,  # written
) -> int:
    """Write a tree of one test; return its number of nodes. Feature -1: a single leaf, ids and addends stay."""
    addends, rows = targets.addends, order.rows
    feature, at, missing = split.feature, split.at, split.missing
    n_rows = rows.shape[1]
    add_leaf(nodes, 0, 0, n_rows)
    nodes.score[0] = score
    if feature < 0:
        return 1
    n_hidden = order.n_missing[feature]
    begin = np.int64(0)
    if missing == 0:
        begin = move_rows(order, feature, 0, n_hidden, begin, targets)
    middle = move_rows(order, feature, n_hidden, at + 1, begin, targets)
    end = middle
    if missing == 1:
        end = move_rows(order, feature, 0, n_hidden, end, targets)
    end = move_rows(order, feature, at + 1, n_rows, end, targets)
    n_nodes = np.int64(3)
    if missing == 2:
        add_leaf(nodes, 3, end, n_rows)
        move_rows(order, feature, 0, n_hidden, end, targets)
        n_nodes = np.int64(4)
    add_leaf(nodes, 1, 0, middle)
    add_leaf(nodes, 2, middle, end)
    if missing < 0:  # the heavier branch, for rows to come
        w_left = np.int64(0)
        w_right = np.int64(0)
        for i in range(middle):
            w_left += addends[WEIGHT, i]
        for i in range(middle, end):
            w_right += addends[WEIGHT, i]
        missing = np.int64(0 if w_left > w_right else 1)
    entry = np.int64(rows[feature, at])
    cut = np.int64(codes[entry ^ (entry >> 63), feature])
    following = np.int64(-1)
    if at < n_rows - 1:
        entry = np.int64(rows[feature, at + 1])
        following = np.int64(codes[entry ^ (entry >> 63), feature])
    nodes.test[0] = pack_test(np.int64(feature), np.int64(missing), THRESHOLD)
    nodes.first_child[0] = 1
    nodes.cut_value[0] = place_threshold(table.features, table.edges, feature, cut, following, False)
    return n_nodes
