"""What a fit of gradient boosting reads: all rows, and what goes with them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import _safe_indexing

from spinney.ensemble.losses import Loss
from spinney.estimators.checks import MODERATE, scale_down
from spinney.table.columns import Columns
from spinney.table.ingest import Table
from spinney.table.shared_columns import take_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from spinney.estimators.checkpoints import Checkpoint


@dataclass
class BoostingData:
    """What a fit reads: all rows of X and what goes with them.

    Attributes
    ----------
    X : Any
        As given.
    table : Table
    y : float64 (n_rows,)
        Class codes, or numbers in units of 2**exponent.
    weight : float64 (n_rows,), or None for 1 each
        Of rows times those of classes.
    offset : float64 (n_raw, n_rows), optional
        From `init_score`, in units of 2**exponent.
    loss : Loss
    class_factors : float64 (n_classes,), optional
        What weights of rows of each class were multiplied by.
    seed, exponent : int
        See `FittedBoosting`.
    is_used, is_held : bool (n_rows,), optional
        Rows of positive weight; rows that are held out. None: all, none.
    checkpoint : Checkpoint, optional
        Where rounds are kept while they are grown.
    """

    X: Any
    table: Table
    y: NDArray[np.float64]
    weight: NDArray[np.float64] | None
    offset: NDArray[np.float64] | None
    loss: Loss
    class_factors: NDArray[np.float64] | None
    seed: int = 0
    exponent: int = 0
    is_used: NDArray[np.bool_] | None = None
    is_held: NDArray[np.bool_] | None = None
    checkpoint: Checkpoint | None = None

    @property
    def keep(self) -> NDArray[np.bool_] | None:
        """Rows that trees learn from; None: all."""
        if self.is_held is None:
            return self.is_used
        return ~self.is_held if self.is_used is None else self.is_used & ~self.is_held

    def part(self, rows: NDArray[np.bool_] | None) -> tuple[NDArray[np.float64], Any, Any]:
        """Target, weight and offset of some rows."""
        if rows is None:
            return self.y, self.weight, self.offset
        weight = None if self.weight is None else self.weight[rows]
        offset = None if self.offset is None else np.ascontiguousarray(self.offset[:, rows])
        return self.y[rows], weight, offset


def moderate(weight: NDArray[np.float64] | None) -> tuple[NDArray[np.float64] | None, int]:
    """Weights with a power of two taken out where they are near the ends of float64, and its exponent."""
    if weight is None or MODERATE[0] < float(weight.max()) < MODERATE[1]:
        return weight, 0
    return scale_down(weight), math.frexp(float(weight.max()))[1]


def find_exponent(y: NDArray[np.float64], loss: Loss) -> int:
    """The binary exponent that brings targets near the ends of float64 to its middle; 0 for all others."""
    largest = float(np.max(np.abs(y)))
    if not loss.is_scale_free or largest == 0.0 or MODERATE[0] < largest < MODERATE[1]:
        return 0
    return math.frexp(largest)[1]


def take_given_rows(X: Any, is_taken: NDArray[np.bool_] | None) -> Any:
    """Some rows of X as it was given to `fit`; None: all of them."""
    if is_taken is None:
        return X
    rows = np.flatnonzero(is_taken)
    return take_columns(X, rows, None) if isinstance(X, Columns) else _safe_indexing(X, rows)


def pythonic(value: Any) -> int | float | str:
    """A number as Python's own, which files hold; a word as it is."""
    if isinstance(value, str):
        return value
    return int(value) if isinstance(value, Integral) else float(value)
