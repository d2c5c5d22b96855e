"""Room to find the leaves of rows that a boosted tree was not grown on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from spinney._types import HISTOGRAM_STRIDE, ROW, WORD_LEAVES
from spinney.kernels.common.structs import RoutedRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROUTED_ROWS = 1 << 12  # whose leaves are found together


def make_routed_rows(n_places: NDArray[np.int64], n_narrow: int) -> RoutedRows:
    """Room of one thread to route rows; its pages are the system's until a tree has rows outside its bag."""
    room = min(n_narrow, WORD_LEAVES - 1)
    return RoutedRows(
        waiting=np.empty(ROUTED_ROWS, ROW),
        left=np.empty(ROUTED_ROWS, np.uint64),
        n_places=n_places,
        places=np.empty(room, np.int64),
        words=np.empty(room * HISTOGRAM_STRIDE, np.uint64),
        below=np.empty(2 * WORD_LEAVES - 1, np.uint64),
        leaf=np.empty(WORD_LEAVES, np.int64),
    )
