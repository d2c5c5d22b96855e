"""The rows that boosted trees are grown on, and those that judge a round."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from spinney.ensemble.losses import Loss
    from spinney.table.binning import Bins
    from spinney.table.row_numbers import AlikeRows

    Floats = NDArray[np.float64]


class BoostedRows(NamedTuple):
    """The rows that trees are grown on."""

    bins: Bins  # every distinct value for candidates by hessian, which are binned anew for each tree
    y: Floats  # (n_rows,) classes as codes, or (n_rows, n_outputs)
    weight: Floats | None  # (n_rows,) positive; None: 1 each
    raw: Floats  # (n_raw, n_rows) the scores to start from, changed by each round; (n_raw, 1): all rows start alike
    alike: AlikeRows | None = None  # of the table, which differ in these; None: all rows of the table are here


class OutsideRows(NamedTuple):
    """Rows outside the bag of a round, which judge it."""

    rows: NDArray[np.int64]  # numbers of theirs
    y: Floats
    weight: Floats | None
    raw: Floats  # (n_raw, n_rows) scores, to which what the bag says is added

    def loss(self, loss: Loss) -> float:
        """Their mean loss; NaN for none."""
        return loss.value(self.y, self.weight, self.raw) if len(self.rows) > 0 else math.nan
