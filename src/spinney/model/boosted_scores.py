"""Predictions of boosted forests: raw scores as sums over rounds; and gains as importances.

A round has `n_raw` trees, of which tree t of the forest adds to row t % n_raw of the raw scores; or one, whose leaves
hold a number for each of them (`Forest.answers`). Sums are in the order of the
rounds, from the start of the model on: the very additions of training, so that both give the same bits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._jit import fixed, kernels
from spinney._node_layout import child_of_link, feature_of_link
from spinney.kernels.common.structs import LeafShares
from spinney.model.forest_votes import linear_values
from spinney.table.sparse import SparseRows
from spinney.tree.predict import (
    BLOCK_ROWS,
    STEP_SECONDS,
    add_answers,
    can_score,
    find_all_leaves,
    find_steps,
    lay_thin,
    make_lane_scratch,
    pick_trees,
    score_at_once,
    vote_by_ranks,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.kernels.common.structs import PackedTrees
    from spinney.table.sparse import Values
    from spinney.tree.forest import Forest

TYPICAL_DEPTH = 8  # of a boosted tree
LINEAR_ROWS = 1 << 12  # whose linear leaves are worked out at once


def begin_raw(start: NDArray[np.float64], n_rows: int, offset: NDArray[np.float64] | None) -> NDArray[np.float64]:
    """Raw scores before the first round, (n_raw, n_rows)."""
    raw = np.repeat(start, n_rows).reshape(len(start), n_rows)
    if offset is not None:
        raw += offset
    return raw


def count_raw(forest: Forest) -> int:
    """Raw scores that a leaf holds; 0 where its numbers are shares of classes."""
    return 1 if forest.answers is None else forest.answers.shape[1] * (forest.widths is None)


def trees_per_round(forest: Forest, n_raw: int) -> int:
    """Trees of a round: one for each raw score, or one whose leaves hold a number for each."""
    return n_raw if forest.answers is None else 1


def add_rounds(forest: Forest, rounds: range, values: Values, lo: int, hi: int, raw: NDArray[np.float64]) -> None:
    """Add the leaf values of rounds of trees for rows lo .. hi to raw scores.

    Parameters
    ----------
    forest : Forest
        Of len(raw) trees a round, or of one with `answers`.
    rounds : range
        Consecutive rounds.
    values : float32 or float64 (n_rows, n_features), or SparseRows
    lo, hi : int
    raw : float64 (n_raw, n_rows), C-contiguous
        Added to.
    """
    if isinstance(values, SparseRows):
        if values.is_thin and forest.answers is None and forest.linear is None:
            add_thin_rounds(forest, rounds, values, lo, hi, raw)
            return
        for rows, block in values.blocks(lo, hi):
            scores = np.ascontiguousarray(raw[:, rows])
            add_rounds(forest, rounds, block, 0, len(block), scores)
            raw[:, rows] = scores
        return
    if forest.answers is not None:
        add_answers(forest, rounds, values, lo, hi, raw)
        return
    n_raw = len(raw)
    n_trees = len(rounds) * n_raw
    k = kernels((hi - lo) * n_trees * TYPICAL_DEPTH * STEP_SECONDS)
    is_whole = n_raw == 1 and n_trees == len(forest)
    if is_whole and (parts := find_steps(forest, values[lo:hi], len(values), k)):
        vote_by_ranks(parts, forest, values, lo, hi, raw.reshape(-1, 1), k)
        return
    if can_score(forest, len(rounds), hi - lo, k):
        score_at_once(forest, range(rounds.start * n_raw, rounds.stop * n_raw), values, lo, hi, raw, k, n_raw=n_raw)
        return
    if forest.linear is not None:
        add_linear_rounds(forest, rounds, values, lo, hi, raw)
        return
    scratch = make_lane_scratch(values, min(BLOCK_ROWS, hi - lo), forest.n_features)
    no_shares = make_no_shares(len(rounds))
    for row, packed in enumerate(split_rounds(forest, rounds, n_raw, len(values))):
        k.predict.lanes.vote(fixed(values), lo, hi, packed, no_shares, scratch, raw[row].reshape(-1, 1))


def add_thin_rounds(
    forest: Forest, rounds: range, values: SparseRows, lo: int, hi: int, raw: NDArray[np.float64]
) -> None:
    """The same for rows most of whose cells are not stored."""
    k = kernels((hi - lo) * len(rounds) * len(raw) * TYPICAL_DEPTH * STEP_SECONDS)
    no_shares = make_no_shares(len(rounds))
    trees = split_rounds(forest, rounds, len(raw), len(values))
    for rows, scratch in lay_thin(values, lo, hi, forest.n_features):
        for row, packed in enumerate(trees):
            k.predict.lanes.vote_laid(int(values.has_missing), packed, no_shares, scratch, raw[row, rows, None])


def split_rounds(forest: Forest, rounds: range, n_raw: int, n_rows: int) -> list[PackedTrees]:
    """For each raw score its trees of the rounds, for so many rows to walk through."""
    first, last = rounds.start * n_raw, rounds.stop * n_raw
    return [pick_trees(forest, slice(first + row, last, n_raw), n_rows) for row in range(n_raw)]


def make_no_shares(n_trees: int) -> LeafShares:
    """What kernels of class shares ask for where leaves have values."""
    return LeafShares(fixed(np.zeros((1, 1))), fixed(np.zeros(n_trees, np.int64)))


def add_linear_rounds(
    forest: Forest, rounds: range, values: NDArray[Any], lo: int, hi: int, raw: NDArray[np.float64]
) -> None:
    """The same for trees with linear leaves: each adds what its leaf says as a whole."""
    n_raw = len(raw)
    for first in range(lo, hi, LINEAR_ROWS):
        rows = slice(first, min(first + LINEAR_ROWS, hi))
        block = values[rows]
        said = linear_values(forest, find_all_leaves(forest, block), block)
        for t in range(rounds.start * n_raw, rounds.stop * n_raw):
            raw[t % n_raw, rows] += said[t]


def sum_gains(forest: Forest, n_trees: int) -> NDArray[np.float64]:
    """Gain of the tests on each feature in the first trees, scaled to sum 1, shape (n_features,).

    The impurity of a node of a boosted tree, times its weight, is the gain of all tests below it.
    """
    end = int(forest.first_node[n_trees])
    link = forest.hot[:end, 1]
    inner = np.flatnonzero(~forest.is_leaf[:end])
    root = np.repeat(forest.first_node[:n_trees], np.diff(forest.first_node[: n_trees + 1]))
    child = child_of_link(link[inner]) + root[inner]
    below = forest.weight[:end] * forest.impurity[:end].astype(np.float64)
    gain = np.maximum(below[inner] - below[child] - below[child + 1], 0.0)
    feature = feature_of_link(link[inner])
    total = np.bincount(feature, gain, minlength=forest.n_features)
    scale = total.sum()
    return total / (scale if scale > 0.0 else 1.0)
