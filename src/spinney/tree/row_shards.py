"""The shards of the rows that a boosted tree is grown on: how many there are, and which rows are whose."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spinney._types import SHARD_ROWS

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEW_SHARDS, SHARDS_PER_THREAD = 32, 8


def count_shards(n_threads: int) -> int:
    """Shards of the rows for so many threads; finer ones than a thread each, so that nodes can be parted evenly."""
    return 1 if n_threads == 1 else n_threads * min(max(FEW_SHARDS // n_threads, 1), SHARDS_PER_THREAD)


def deal_out(n_rows: int, n_shards: int) -> NDArray[np.int64]:
    """Where the rows of each shard begin in the buffer, shape (n_shards + 1,): runs of SHARD_ROWS go round."""
    if n_shards == 1:
        return np.array([0, n_rows], np.int64)
    run = np.arange(-(-n_rows // SHARD_ROWS))
    sizes = np.minimum(SHARD_ROWS, n_rows - run * SHARD_ROWS)
    shares = np.bincount(run % n_shards, sizes, n_shards).astype(np.int64)
    return np.concatenate([[0], np.cumsum(shares)])


def row_edges(bag: NDArray[np.int32], starts: NDArray[np.int64], n_rows: int) -> list[int]:
    """Where the range of rows of the table begins that holds the rows of a bag of each shard, and the last ends.

    starts: of the shards in the bag, see `deal_out`.
    """
    if len(starts) == 2:
        return [0, n_rows]
    inner = starts[1:-1]
    edges = np.where(inner < len(bag), bag[np.minimum(inner, len(bag) - 1)], n_rows)
    return [0, *edges.tolist(), n_rows]
