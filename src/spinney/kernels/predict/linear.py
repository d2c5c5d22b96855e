"""Linear models of leaves: the sums they are fitted from, and what they add to a prediction."""

from __future__ import annotations

import numpy as np

from spinney._jit import door, inlined

from ..common.structs import LinearTerms

MOST = 1.7976931348623157e308  # the largest float64


@door
def add_products(
    rows: np.ndarray,  # (n, n_values) float64
    weight: np.ndarray,  # (n_values,) float64, or (1,): 1 each
    is_whole: bool,  # weights multiply what is rounded: a value of weight 2 is two values
    scale: float,
    lo: int,
    hi: int,
    sums: np.ndarray,  # (n, n) int64, its lower triangle added to
) -> None:
    """Add the products of each two rows, over values lo .. hi, in units of 1 / scale."""
    is_unit = len(weight) == 1
    for i in range(len(rows)):
        for j in range(i + 1):
            total = np.int64(0)
            if is_unit:
                for at in range(lo, hi):
                    total += np.int64(np.rint(rows[i, at] * rows[j, at] * scale))
            elif is_whole:
                for at in range(lo, hi):
                    total += np.int64(np.rint(rows[i, at] * rows[j, at] * scale)) * np.int64(weight[at])
            else:
                for at in range(lo, hi):
                    total += np.int64(np.rint(rows[i, at] * rows[j, at] * weight[at] * scale))
            sums[i, j] += total


@inlined
def bound(x: float) -> float:
    """The nearest number that is finite."""
    return min(max(x, -MOST), MOST)


@inlined
def add_model(total: float, node: int, values: np.ndarray, row: int, terms: LinearTerms) -> float:
    """A leaf's constant with the terms of its model added; what leaves the range of float64 stays at its end."""
    for term in range(terms.first[node], terms.first[node + 1]):
        value = np.float64(values[row, terms.feature[term]])
        if value == value:
            total = bound(total + bound(terms.coefficient[term] * bound(value - terms.fill[term])))
    return total


@door
def add_terms(
    values: np.ndarray,  # (n_rows, n_features) float32 or float64, NaN where missing
    leaf: np.ndarray,  # (n_rows,) int32
    terms: LinearTerms,
    out: np.ndarray,  # (n_rows,) float64, added to
) -> None:
    """Add the terms of each row's leaf."""
    for i in range(len(values)):
        out[i] = add_model(out[i], np.int64(leaf[i]), values, i, terms)
