"""What work costs, in seconds: so that a small table need not wait for a compiler, nor a short task for threads.

Estimates are of one processor of a laptop and within a factor of a few. They choose how work is done, compiled or
interpreted, by how many threads, with or without a progress bar; never what comes out.
"""

from __future__ import annotations

import math

VISIT_SECONDS = 6e-6  # one row of one feature at one level of a tree, interpreted
TEXTBOOK_VISIT_SECONDS = 2e-5  # the same, for ID3 and C4.5
TRACE_VISIT_SECONDS = 2e-6  # the same, for a trace: kernels search large subsets of levels only
COMPILED_SHARE = 1 / 200  # of the time that interpreted kernels take
BOOSTED_VISIT_SECONDS = 1e-9  # one byte of a row at one level of a boosted tree, compiled
BOOSTED_TREE_SECONDS = 1e-4  # what is done for each boosted tree beside that
CODING_SECONDS = 6e-8  # one value into a code: most of it is sorting
ROUTE_SECONDS = 1e-7  # one row through one tree, compiled
SHORT_SECONDS = 0.02  # over before anyone could interrupt it
BAR_SECONDS = 0.5  # over before a progress bar would be of use


def growing_seconds(
    n_rows: int,
    n_features: int,
    n_trees: int = 1,
    visit_seconds: float = VISIT_SECONDS,
    n_levels: float | None = None,
) -> float:
    """Time that interpreted kernels take for trees: every row and feature once a level; n_levels: None for all."""
    n_levels = max(math.log2(n_rows), 1.0) if n_levels is None else n_levels
    return n_rows * n_features * n_levels * visit_seconds * n_trees
