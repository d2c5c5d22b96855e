"""Memory of a binary tree under way: nodes, open nodes, and scratch that kernels only write to pass on."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spinney._types import (
    AHEAD_BYTES,
    CLASS_ROWS,
    CLASSES,
    CODE,
    CONTROL_SIZE,
    DEPTH_FIRST,
    EXHAUSTIVE_LEVELS,
    GINI,
    IS_CATEGORICAL,
    LEARNED,
    MAX_CODES,
    MOST_BRANCHES,
    MOST_LEVELS,
    MOST_SQUARED,
    N_CODES,
    N_FREE,
    PAIR_LANES,
    PAIR_ROWS,
    ROW,
    STATE_SIZE,
    SUM,
    SUMS_PER_ROW,
)
from spinney.kernels.common.structs import (
    Cells,
    Children,
    ClassScratch,
    FourTests,
    Frontier,
    LevelScratch,
    MedianScratch,
    Nodes,
    PackedScratch,
    RandomScratch,
    RowBits,
    Settings,
    SparseDraws,
    SubsetScratch,
    SubtreeScratch,
)
from spinney.table.fixed_point import Target, Weights
from spinney.table.flags import Packing
from spinney.tree.grow_params import SUBTREE_FEATURES

MAX_SUMS = 1 << 26
GATHERED_COST = 2  # cells of a column that are looked through in the time that a cell of a row is put in its place
MOST_GATHERED = 1 << 20  # cells of a node that are put together: 8 MB
AHEAD_FEATURES = 8  # whose codes a large node fetches at once


def count_sums(features: NDArray[np.int64], settings: Settings, *, is_moments: bool, n_rows: int) -> int:
    """Sums in the largest histogram of a tree; see `kernels.common.bins` and `kernels.tree.scan_classes`."""
    is_categorical = features[IS_CATEGORICAL] != 0
    if is_moments:
        return (int(features[N_CODES].max(initial=1)) + 1) * (2 if settings.is_unit else 4)
    sizes = (features[N_CODES] + 1) * (settings.n_classes + 1)
    numeric = sizes[~is_categorical & (sizes <= SUMS_PER_ROW * n_rows)]
    n_sums = int(max(numeric.max(initial=1), sizes[is_categorical].max(initial=1)))
    if n_sums > MAX_SUMS:
        message = (
            f"a categorical feature and {settings.n_classes} classes need a table of {n_sums} sums, "
            f"more than {MAX_SUMS}; merge rare levels or rare classes"
        )
        raise ValueError(message)
    return n_sums


def enlarge(old: NDArray[Any], n: int) -> NDArray[Any]:
    """Copy `old` to the head of a zeroed array with n entries along the last axis."""
    new = np.zeros((*old.shape[:-1], n), old.dtype)
    new[..., : old.shape[-1]] = old
    return new


def make_addends(target: Target, weights: Weights) -> NDArray[np.int64]:
    """What each row adds to the sums: target, then weight, then square, as far as they are needed."""
    n_rows = len(target.values)
    if target.outputs is not None:
        return np.stack([target.values, np.broadcast_to(weights.values, n_rows), *target.outputs.values])
    if len(target.squares) > 1:
        return np.stack([target.values, np.broadcast_to(weights.values, n_rows), target.squares])
    if weights.is_unit:
        return target.values.reshape(1, n_rows)
    return np.stack([target.values, weights.values])


def make_packed(n_rows: int, *, has_two: bool) -> PackedScratch:
    """Scratch memory for nodes of up to MAX_CODES rows whose addends are packed: see `PackedScratch`.

    has_two: two classes, of which large nodes have wide addends alone.
    """
    n = min(n_rows, MAX_CODES) + PAIR_LANES
    return PackedScratch(
        addends=np.zeros(PAIR_ROWS + PAIR_LANES if has_two else n, np.int32),
        wide=np.zeros(n if has_two else 1, SUM),
        column=np.zeros(n, np.int32),
        pair_sums=np.zeros(PAIR_ROWS, np.int32),
        pair_scores=np.zeros(PAIR_ROWS),
        bucket_keys=np.empty((2, n), np.uint32),
    )


def make_classes(n_classes: int, n_levels: int) -> ClassScratch:
    """Scratch memory for three classes or more, and categories of up to n_levels levels: see `ClassScratch`."""
    n = min(n_classes, MOST_SQUARED) if n_levels else 1
    return ClassScratch(
        sums=np.zeros((CLASS_ROWS, n_classes), SUM),
        vectors=np.zeros((3, n_classes)),
        shares=np.empty(max(n_levels * n_classes, 1)),
        matrix=np.empty((2, n, n)),
        subsets=make_subsets(EXHAUSTIVE_LEVELS if n_levels else 1),
    )


def make_subsets(n_levels: int) -> SubsetScratch:
    """Scratch memory for all subsets of so many levels: see `SubsetScratch`."""
    n_subsets = 1 << (n_levels - 1)
    sums = np.zeros((4, n_subsets), SUM)
    scores = np.zeros((3, n_subsets))
    return SubsetScratch._make([np.zeros((n_levels, n_levels + 1), SUM), *sums, *scores])


def make_random(n_codes: int) -> RandomScratch:
    """Scratch memory for random tests of nodes of so many rows, or codes: see `RandomScratch`."""
    column = np.zeros(max(n_codes, PAIR_ROWS), np.int32)
    return RandomScratch(column, np.zeros(PAIR_ROWS), np.zeros((2, PAIR_ROWS), SUM))


def serves_subtrees(settings: Settings, family: int, features: NDArray[np.int64]) -> bool:
    """Whether subtrees of few rows are finished in one go: random tests of numbers, judged by left branches alone."""
    is_quick = settings.is_plain or (
        family == CLASSES
        and settings.criterion == GINI
        and settings.is_whole
        and max(settings.min_samples_leaf, settings.min_weight_leaf) <= 1
    )
    is_free = not settings.has_random_ties and settings.missing == LEARNED and settings.order == DEPTH_FIRST
    is_narrow = features.shape[1] <= SUBTREE_FEATURES
    return settings.is_random and is_quick and is_free and is_narrow and settings.min_spread <= 0.0


def make_subtrees(n_features: int, n_addends: int, n_classes: int) -> SubtreeScratch:
    """Scratch memory for subtrees of few rows: see `SubtreeScratch`."""
    n_lanes = (n_features + 4) // 4 * 4  # a multiple of four, and one for a feature that is looked at in vain
    order, places, at = np.zeros((3, PAIR_ROWS), np.uint64)
    tried, lanes = np.zeros((2, n_lanes), np.uint64)
    low, high, thresholds, scores = np.zeros((4, n_lanes))
    return SubtreeScratch(
        order=order,
        stack=np.zeros((3, PAIR_ROWS), np.int64),
        places=places,
        at=at,
        addends=np.zeros((n_addends, PAIR_ROWS), SUM),
        values=np.zeros((PAIR_ROWS, n_lanes)),
        low=low,
        high=high,
        tried=tried,
        lanes=lanes,
        thresholds=thresholds,
        scores=scores,
        members=np.zeros(n_classes, np.uint64),
    )


def serves_bits(settings: Settings, family: int, features: NDArray[np.int64]) -> bool:
    """Whether rows of such subtrees are bits: the same of classes, unit weights, and categories of few levels."""
    n_levels = np.max(features[N_CODES], where=features[IS_CATEGORICAL] != 0, initial=0)
    is_quick = (settings.is_plain and settings.is_class) or (family == CLASSES and settings.criterion == GINI)
    is_free = max(settings.min_samples_leaf, settings.min_weight_leaf) <= 1 and settings.is_unit
    return serves_subtrees(settings, family, features) and is_quick and is_free and bool(n_levels <= MOST_LEVELS)


def make_bits(n_classes: int) -> RowBits:
    """Scratch memory for subtrees of few rows, as bits: see `RowBits`."""
    order, places, targets, present, codes = np.zeros((5, PAIR_ROWS), np.uint64)
    return RowBits(
        order=order,
        stack=np.zeros((5, PAIR_ROWS), np.int64),
        places=places,
        targets=targets,
        members=np.zeros(n_classes, np.uint64),
        present=present,
        codes=codes,
        values=np.zeros(PAIR_ROWS),
    )


def make_fours(n_rows: int, n_features: int, n_classes: int) -> FourTests:
    """Scratch memory for random tests that are judged four at a time: see `FourTests`."""
    scores, thresholds = np.zeros((2, n_features))
    return FourTests(
        words=np.zeros(min(n_rows, MAX_CODES), np.uint64),
        counts=np.zeros(n_classes, np.uint64),
        number=np.full(n_features, -1, np.int64),
        scores=scores,
        cuts=np.zeros(n_features, np.int64),
        thresholds=thresholds,
        draws=np.zeros(n_features, np.uint64),
    )


def make_levels(n_words: int, n_codes: int) -> LevelScratch:
    """Scratch memory for categories of up to n_codes levels, whose bits fill so many words: see `LevelScratch`."""
    scores, ranked = np.empty((2, n_codes))
    order, place = np.empty(n_codes, np.int32), np.empty(n_codes + 1, np.int32)
    return LevelScratch(np.zeros(2 * n_words, np.uint64), scores, ranked, order, place)


def make_nodes(room: int, n_words: int, *, has_bounds: bool = True) -> Nodes:
    """Room for nodes, and for the words of their subsets; has_bounds: whether constraints bound their values."""
    ints, floats, subsets = np.zeros((4, room), np.int64), np.zeros((2, room)), np.zeros(n_words, np.uint64)
    bounds = np.zeros((2, room if has_bounds else 1))
    return Nodes._make([*ints, *floats, *bounds, subsets])


def enlarge_nodes(nodes: Nodes, room: int, n_words: int) -> Nodes:
    """The same nodes in more room."""
    *arrays, subsets = nodes
    old = len(nodes.test)
    return Nodes._make([*(enlarge(x, room) if len(x) == old else x for x in arrays), enlarge(subsets, n_words)])


def make_frontier(n_slots: int) -> Frontier:
    """Room for open nodes, none of which is taken."""
    ints, floats = np.zeros((13, n_slots), np.int64), np.zeros((4, n_slots))
    children = Children._make([*np.zeros((4, MOST_BRANCHES), np.int64), *np.zeros((2, MOST_BRANCHES))])
    state, control = np.zeros(STATE_SIZE, np.int64), np.zeros(CONTROL_SIZE, np.int64)
    frontier = Frontier._make([*ints, *floats, state, control, children])
    clear_frontier(frontier)
    return frontier


def clear_frontier(frontier: Frontier) -> None:
    """Take no slot, and forget what the driver has counted."""
    n_slots = len(frontier.queue)
    frontier.state[:] = 0
    frontier.state[N_FREE] = n_slots
    frontier.free[:] = np.arange(n_slots - 1, -1, -1)


def enlarge_frontier(frontier: Frontier) -> Frontier:
    """Twice the slots."""
    slots: list[NDArray[Any]] = list(frontier[:-3])
    n_old, state = len(frontier.queue), frontier.state
    n_free = int(state[N_FREE])
    new = Frontier._make([*(enlarge(x, 2 * n_old) for x in slots), *frontier[-3:]])
    new.free[n_free : n_free + n_old] = np.arange(n_old, 2 * n_old)[::-1]
    state[N_FREE] = n_free + n_old
    return new


def make_ahead(
    codes: NDArray[np.uint16], packing: Packing, n_held: int, settings: Settings, *, is_read: bool
) -> tuple[NDArray[np.uint16], NDArray[np.int64], NDArray[np.uint64]]:
    """The last arrays of `Rows`: room for codes that large nodes fetch, and for flags that vary.

    is_read: whether a search reads what was fetched.
    """
    is_large = is_read and settings.is_shuffled and codes.nbytes > AHEAD_BYTES
    shape = n_held if is_large else 1, min(settings.n_try, AHEAD_FEATURES)
    n_words = (packing.n_bits + 63) // 64
    return np.empty(shape, CODE), np.full(packing.n_coded, -1, np.int64), np.zeros(n_words, np.uint64)


def make_cells(packing: Packing, n_held: int, n_try: int) -> Cells | None:
    """Cells of sparse features, and memory for what a tree of up to n_held rows notes of them; None: there are none."""
    sparse = packing.sparse
    if sparse is None:
        return None
    n_sparse, n_cells, n_table = len(sparse.features), len(sparse.row), len(sparse.row_begin) - 1
    by_row, by_column = n_cells // n_table, n_cells // n_sparse
    most_gathered = count_listed(sparse.begin, n_try) // (GATHERED_COST * max(by_row, 1))
    first_of, n_of = np.zeros((2, n_sparse), np.int32)
    node_at, node_code = np.empty((2, min(n_cells, MOST_GATHERED)), np.int32)
    at, found, addends = np.empty((3, n_held + 1), np.int32)
    return Cells(
        first=len(packing.number) - n_sparse,
        begin=sparse.begin,
        row=sparse.row,
        code=sparse.code,
        usual=sparse.usual,
        row_begin=sparse.row_begin,
        feature=sparse.feature,
        row_code=sparse.row_code,
        row_cost=4 + 2 * by_row.bit_length(),
        most_marked=max(n_try * by_column // (10 + by_row), PAIR_ROWS, most_gathered),
        most_gathered=most_gathered,
        place=np.full(n_table, -1, ROW),
        marks=np.zeros((n_sparse + 63) // 64, np.uint64),
        is_gathered=np.zeros(1, np.int64),
        n_of=n_of,
        first_of=first_of,
        node_at=node_at,
        node_code=node_code,
        draws=make_draws(packing.number[: len(packing.number) - n_sparse], len(packing.number)),
        whole=np.empty((n_held, 1), CODE),
        at=at,
        found=found,
        wide=np.empty(n_held + 1, SUM),
        addends=addends,
    )


def count_listed(begin: NDArray[np.int64], n_try: int) -> int:
    """Cells that a node looks through which tries so many features and finds the cells of each in its column.

    Features that vary in a node have more cells than others; begin: see `SparseColumns`.
    """
    counts = np.diff(begin)
    n_cells = int(counts.sum())
    return min(n_try * int((counts * counts).sum()) // max(n_cells, 1), n_cells)


def make_draws(others: NDArray[np.int64], n_features: int) -> SparseDraws:
    """Memory for draws of features of which few vary; others: those of the table that are not sparse."""
    bits = np.zeros(-(-n_features // 64) * 64, np.bool_)
    bits[others] = True
    words = np.packbits(bits, bitorder="little").view(np.uint64)
    return SparseDraws(
        others=words,
        asked=words.copy(),
        ahead=np.empty(64, np.uint64),
        drawn=np.zeros(3, np.int64),
        listed=np.empty(n_features, np.int64),
        moved=np.empty((2, n_features), np.int64),
    )


def place_rows(cells: Cells | None, ids: NDArray[np.int32]) -> Cells | None:
    """Note where the rows of a tree stand."""
    if cells is not None:
        cells.place.fill(-1)
        cells.place[ids] = np.arange(len(ids), dtype=ROW)
    return cells


def make_medians(target: Target, most_listed: int, n_rows: int, n_codes: int) -> MedianScratch:
    """Scratch memory for the absolute error, and the ranks of the targets."""
    value, weight, level = np.zeros((3, n_rows + 2), SUM)
    before, after = np.zeros((2, n_rows + 2), np.int32)
    place, row, order = np.empty((3, n_rows), np.int32)
    errors, middles = np.zeros((2, 4, max(n_codes, 2)))
    return MedianScratch(
        ranks=target.ranks(),
        keys=np.empty((2, n_rows), np.uint64),
        place=place,
        listed=np.empty(max(most_listed, 1), np.int32),
        row=row,
        value=value,
        weight=weight,
        level=level,
        before=before,
        after=after,
        order=order,
        errors=errors,
        middles=middles,
        start=np.zeros(3, SUM),
        whole=np.zeros(1),
        blur=np.zeros(1),
    )
