"""Forests that vote: the predictions of single trees, and the sum of all."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._cached import derive
from spinney._cost import ROUTE_SECONDS, SHORT_SECONDS
from spinney._jit import fixed, kernels
from spinney._threads import count_workers, run_tasks
from spinney.kernels.common.structs import LinearTerms
from spinney.model.alike_votes import find_repeats, may_be_alike
from spinney.table.sparse import SparseRows
from spinney.tree.predict import STEP_SECONDS, TYPICAL_DEPTH, add_votes, find_all_leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from spinney.table.sparse import Values
    from spinney.tree.forest import Forest

FEWEST_ROWS, MOST_ROWS = 1 << 12, 1 << 15  # of a task of prediction
BLOCK_BYTES = 2**25  # of the predictions of all trees for one block of new rows
MOST_BLOCK, LEAST_BLOCK = 4096, 64  # new rows
FEW_BLOCKS, FEW_ROWS = 16, 256  # so many blocks, for threads to share, unless they would be smaller than this


def run_blocks(add: Callable[[int, int], None], n_rows: int, n_trees: int, n_jobs: int | None) -> None:
    """Call add(lo, hi) for blocks of rows that go through trees, in threads where these pay."""
    seconds = n_rows * n_trees * ROUTE_SECONDS
    n_workers = count_workers(n_jobs, -(-n_rows // FEWEST_ROWS), seconds)
    n_shares = 2 * n_workers if n_workers > 1 else 1  # each takes all trees through the cache once
    n_at_once = min(max(-(-n_rows // n_shares), FEWEST_ROWS), MOST_ROWS)
    n_tasks = -(-n_rows // n_at_once)
    kernels(min(n_at_once, n_rows) * n_trees * TYPICAL_DEPTH * STEP_SECONDS)  # imported here, not in a thread

    def work(task: int, _: Any) -> None:
        add(task * n_at_once, min((task + 1) * n_at_once, n_rows))

    run_tasks(work, n_tasks, n_workers, label="predicting", unit="blocks", is_short=seconds < SHORT_SECONDS)


def for_row_blocks(
    forest: Forest,
    work: Callable[[slice], None],
    n_rows: int,
    n_jobs: int | None,
    seconds_per_row: float = 0.0,
) -> None:
    """Call work(rows) for blocks of rows so small that the predictions of all trees for one fit into memory.

    Several threads share the blocks where that pays; seconds_per_row: of work beyond finding the leaves.
    """
    n_numbers = len(forest) * max(forest.n_classes, 1)
    size = min(max(-(-n_rows // FEW_BLOCKS), FEW_ROWS), MOST_BLOCK, max(BLOCK_BYTES // (8 * n_numbers), LEAST_BLOCK))
    seconds = n_rows * (len(forest) * ROUTE_SECONDS + seconds_per_row)
    n_tasks = -(-n_rows // size)

    def run(task: int, _: Any) -> None:
        work(slice(task * size, min((task + 1) * size, n_rows)))

    n_workers = count_workers(n_jobs, n_tasks, seconds)
    run_tasks(run, n_tasks, n_workers, label="predicting", unit="blocks", is_short=seconds < SHORT_SECONDS)


def sum_votes(forest: Forest, values: Values, n_jobs: int | None) -> NDArray[np.float64]:
    """The votes of the trees on each row, added up in the order of the trees, shape (n_rows, n_classes or 1)."""
    n_rows, width = len(values), max(forest.n_classes, 1)
    out = np.zeros((n_rows, width))
    repeats = may_be_alike(forest, values)

    def add(lo: int, hi: int) -> None:
        alike = find_repeats(values[lo:hi], len(forest)) if repeats else None
        if alike is None:
            add_votes(forest, values, lo, hi, out)
            return
        votes = np.zeros((len(alike.first), width))
        add_votes(forest, values[lo:hi][alike.first], 0, len(alike.first), votes, n_rows)
        votes.take(alike.numbers, axis=0, out=out[lo:hi], mode="clip")  # in its place; no number is too large

    run_blocks(add, len(values), len(forest), n_jobs)
    return out


def mean_answers(forest: Forest, values: Values, n_jobs: int | None) -> NDArray[np.float64]:
    """Mean over the trees, in their order, of what they say of each row of several outputs, (n_rows, n_outputs).

    Of classes: of the shares of all outputs, side by side.
    """
    assert forest.answers is not None
    out = np.zeros((len(values), forest.answers.shape[1]))

    def add(rows: slice) -> None:
        for said in tree_answers(forest, find_all_leaves(forest, values[rows])):
            out[rows] += said / len(forest)  # so that no sum overflows

    for_row_blocks(forest, add, len(values), n_jobs)
    return out


def tree_answers(forest: Forest, leaf: NDArray[np.int32]) -> Iterator[NDArray[np.float64]]:
    """What each tree says of several outputs, tree by tree, (n_rows, n_outputs); leaf: (n_rows, n_trees)."""
    assert forest.answers is not None
    for t, first in enumerate(forest.first_node[:-1].tolist()):
        yield forest.answers[first + leaf[:, t].astype(np.int64)]


def tree_predictions(forest: Forest, values: Values) -> NDArray[np.float64]:
    """The prediction of each tree for each row, (n_trees, n_rows), or shares (n_trees, n_rows, n_classes).

    Of several outputs the shape is (n_trees, n_rows, n_outputs).
    """
    leaf = find_all_leaves(forest, values)
    if forest.n_outputs > 1:
        return np.stack(list(tree_answers(forest, leaf)))
    if not forest.n_classes:
        return tree_values(forest, leaf).T if forest.linear is None else linear_values(forest, leaf, values)
    return tree_shares(forest, leaf).swapaxes(0, 1)


def lower_values(forest: Forest, shift: int) -> Forest:
    """The same forest with its leaf values divided by `2**shift`; kept with the forest."""
    if shift == 0:
        return forest

    def lower() -> Forest:
        hot = forest.hot.copy()
        values = hot[:, 0].view(np.float64)
        values[forest.is_leaf] = np.ldexp(values[forest.is_leaf], -shift)
        return replace(forest, hot=hot)

    return derive(forest, f"values divided by 2**{shift}", lower)


def tree_values(forest: Forest, leaf: NDArray[np.int32]) -> NDArray[np.float64]:
    """Value of the leaf of each row in each tree, shape (n_rows, n_trees) as `leaf`; for classes a code, see `Tree`."""
    node = forest.first_node[:-1] + leaf
    return np.ascontiguousarray(forest.hot[node, 0]).view(np.float64)


def linear_values(forest: Forest, leaf: NDArray[np.int32], values: Values) -> NDArray[np.float64]:
    """What the linear leaf of each row in each tree says, shape (n_trees, n_rows)."""
    assert forest.linear is not None
    linear = forest.linear
    said = np.ascontiguousarray(tree_values(forest, leaf).T)
    terms = LinearTerms(*(fixed(x) for x in (linear.first, linear.feature, linear.coefficient, linear.fill)))
    k = kernels(said.size * STEP_SECONDS)
    for rows, block in values.blocks() if isinstance(values, SparseRows) else [(slice(0, len(values)), values)]:
        for t, first in enumerate(forest.first_node[:-1].tolist()):
            mine = said[t, rows]  # a view
            k.predict.linear.add_terms(fixed(block), (first + leaf[rows, t]).astype(np.int32), terms, mine)
    return said


def tree_shares(forest: Forest, leaf: NDArray[np.int32]) -> NDArray[np.float64]:
    """Class shares of the leaf of each row in each tree, shape (n_rows, n_trees, n_classes)."""
    code = tree_values(forest, leaf).astype(np.int64)
    shares = np.zeros((*code.shape, forest.n_classes))
    row, tree = np.nonzero(code >= 0)
    shares[row, tree, code[row, tree]] = 1.0
    row, tree = np.nonzero(code < 0)
    shares[row, tree] = forest.shares[forest.first_mixed[tree] - 1 - code[row, tree]]
    return shares
