"""A loss of the user's own: two functions that give its first and second derivatives, row by row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from spinney.ensemble.best_constant import Derivatives, Floats, find_constant, mean_derivatives, row_weights
from spinney.ensemble.losses import MIN_H, JointLoss

Function = Callable[[Floats, Floats], Any]


class Custom(JointLoss):
    """A loss given by two functions of (y, raw): its first and second derivatives by raw, row by row.

    They take and give arrays (n_rows,), or raw and results (n_rows, n_classes) for three classes or more; y holds
    numbers, or classes as 0 .. n_classes - 1. They are called once a round, over all rows. Second derivatives below
    1e-16 are taken as that.
    """

    name = "custom"
    judges_bags = False  # derivatives tell no value

    def __init__(self, gradient: Function, hessian: Function, n_classes: int) -> None:
        self.gradient = gradient
        self.hessian = hessian
        self.n_classes = n_classes
        self.n_raw = n_classes if n_classes > 2 else 1

    def start(self, y: Floats, weight: Floats | None) -> Floats:
        """The constants where the mean gradients are 0, by Newton's steps from 0; 0 where these find no end."""
        weights = row_weights(weight, len(y))

        def derive(constant: Floats) -> list[Derivatives]:
            raw = np.repeat(constant[:, None], len(y), axis=1)
            g, h = self._call(self.gradient, y, raw), self._call(self.hessian, y, raw)
            return [mean_derivatives(*of_raw, weights) for of_raw in zip(g, h, strict=True)]

        with np.errstate(all="ignore"):  # a step may go too far, and is halved then
            found = find_constant(derive, np.zeros(self.n_raw))
        return np.zeros(self.n_raw) if found is None else found

    def begin_round(self, y: Floats, weight: Floats | None, raw: Floats) -> None:
        """Call the functions."""
        del weight
        found = []
        for function in (self.gradient, self.hessian):
            result = self._call(function, y, raw)
            is_bad = ~np.isfinite(result).all(axis=0)
            if bool(is_bad.any()):
                row = int(np.argmax(is_bad))
                raise ValueError(
                    f"loss: {name_of(function)}(y, raw) is {result[:, row].tolist()} in row {row}, where y is "
                    f"{y[row]:g} and raw {raw[:, row].tolist()}: make it finite for every finite raw score."
                )
            found.append(result)
        if not bool((found[1] > 0.0).any()):
            raise ValueError(
                f"loss: {name_of(self.hessian)}(y, raw) is nowhere above 0: return the second derivatives of the loss, "
                "which are positive where it is convex; a wrong sign makes them negative."
            )
        self._of_round = found[0], np.maximum(found[1], MIN_H)

    def _call(self, function: Function, y: Floats, raw: Floats) -> Floats:
        """Result as (n_raw, n_rows), of copies: a function that writes to its arguments spoils nothing."""
        result = np.asarray(function(y.copy(), raw[0].copy() if self.n_raw == 1 else raw.T.copy()))
        shape = (len(y),) if self.n_raw == 1 else (len(y), self.n_raw)
        if result.shape != shape:
            raise ValueError(
                f"loss: {name_of(function)}(y, raw) has shape {result.shape}: return an array of shape {shape}, "
                "one number for each raw score."
            )
        if result.dtype.kind not in "biuf":
            raise ValueError(f"loss: {name_of(function)}(y, raw) has dtype {result.dtype}: return real numbers.")
        return np.ascontiguousarray(result.reshape(len(y), self.n_raw).T, np.float64)

    def value(self, y: Floats, weight: Floats | None, raw: Floats) -> float:
        """Raise ValueError: derivatives tell no value."""
        del y, weight, raw
        raise ValueError(
            "A loss given by its derivatives has no value of its own: early stopping and learning curves need "
            "scoring= the name of a scorer or a function, not scoring='loss'."
        )


def name_of(function: Function) -> str:
    """What a user calls a function."""
    return getattr(function, "__name__", repr(function))
