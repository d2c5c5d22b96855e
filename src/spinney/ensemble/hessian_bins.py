"""Bins of about equal sums of hessians, as XGBoost's candidates: made anew for each tree."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from spinney.table.binning import code_mass, rebin
from spinney.tree.packed_units import power_below

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.table.binning import Bins

    Floats = NDArray[np.float64]

MASS = 2.0**60  # of all rows


def bin_by_hessian(exact: Bins, h: Floats, weight: Floats, max_bins: int, kernels: Any, *, is_whole: bool) -> Bins:
    """Merge the codes of a table, one for each value, into bins of equal sums of weighted hessians.

    weight: of each row, 0: it does not count; is_whole: weights are whole, and a row of weight 2 is two rows.
    """
    scale = power_below(MASS, math.fsum((h * weight).tolist()) + len(h))
    if is_whole:
        mass = np.maximum(np.rint(h * scale), 1.0).astype(np.int64) * weight.astype(np.int64)
    else:
        mass = np.maximum(np.rint(h * weight * scale), (weight > 0.0).astype(np.float64)).astype(np.int64)
    return rebin(exact, code_mass(exact, mass, kernels), max_bins, kernels)
