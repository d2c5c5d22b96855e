"""Rows that are alike are predicted once: those of a block that have the same values have the same votes.

a sample of the rows ─► do many repeat each other? ─► number those of a block that differ ─► their votes ─► all rows
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spinney._jit import is_compiled, kernels
from spinney.table.bundles import sample_step
from spinney.table.row_numbers import number_rows
from spinney.tree.predict import STEP_SECONDS, TYPICAL_DEPTH

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.table.row_numbers import AlikeRows
    from spinney.table.sparse import Values
    from spinney.tree.forest import Forest

FEWEST_ROWS = 1 << 13  # a few milliseconds in all: a sample of so few says little
FEWEST_TREES = 32  # which take as long as finding the number of a row
MOST_SHARE = 0.7  # of the rows that may differ
WORD = 8  # bytes


def may_be_alike(forest: Forest, values: Values) -> bool:
    """Whether a sample says that so many rows repeat others that finding them pays."""
    if not isinstance(values, np.ndarray) or len(values) < FEWEST_ROWS:
        return False
    some = as_words(values[:: sample_step(len(values))])
    if len(forest) < max(FEWEST_TREES, some.shape[1]):
        return False
    odd = 2 * np.random.default_rng(0).integers(1 << 62, size=some.shape[1], dtype=np.uint64) + np.uint64(1)
    return len(np.unique((some * odd).sum(axis=1, dtype=np.uint64))) <= MOST_SHARE * len(some)


def as_words(block: NDArray[Any]) -> NDArray[np.uint64]:
    """A copy of rows as whole words, (n_rows, n_words), zeros behind the last value."""
    n_words = -(-block.shape[1] * block.itemsize // WORD)
    words = np.zeros((len(block), n_words), np.uint64)
    words.view(block.dtype)[:, : block.shape[1]] = block
    return words


def find_repeats(block: NDArray[Any], n_trees: int) -> AlikeRows | None:
    """Which rows of a block are alike; None where most differ."""
    k = kernels(len(block) * n_trees * TYPICAL_DEPTH * STEP_SECONDS)
    if not is_compiled(k.data.alike_rows.number_alike):
        return None
    return number_rows(as_words(block), np.zeros(len(block)), int(MOST_SHARE * len(block)), k)
