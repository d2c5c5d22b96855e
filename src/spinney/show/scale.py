"""From numbers to places: where an axis begins and ends, its ticks and their texts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from spinney.show.marks import Axis

MARGIN = 0.04  # of the range of the numbers, beyond them
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
LOG_STEPS = ((1,), (1, 3), (1, 2, 5))
SLACK = 1e-9


@dataclass(frozen=True)
class Scale:
    """Places from `start` to `end`, in pixels, of numbers from `first` to `last`."""

    first: float
    last: float
    start: float
    end: float
    is_log: bool = False

    def __call__(self, value: float) -> float:
        """The place of a number."""
        first, last = self.first, self.last
        if self.is_log:
            value, first, last = math.log(value), math.log(first), math.log(last)
        return self.start + (value - first) / (last - first) * (self.end - self.start)

    def ticks(self, most: int, *, is_whole: bool = False) -> list[float]:
        """At most so many round numbers along the scale."""
        if self.is_log:
            return log_ticks(self.first, self.last, most)
        return round_numbers(self.first, self.last, most, is_whole=is_whole)


def find_ends(axis: Axis, values: Iterable[float]) -> tuple[float, float]:
    """Ends of an axis that holds the numbers, with a margin but at 0 and at fixed ends."""
    if axis.levels is not None:
        return -0.5, len(axis.levels) - 0.5
    known = [*values, *(end for end in (axis.lowest, axis.highest) if end is not None)]
    low, high = min(known, default=0.0), max(known, default=1.0)
    if axis.is_log:
        room = (high / low) ** MARGIN if high > low else 2.0
        return low / room, high * room
    if high == low:
        room = max(abs(low) * 0.1, SLACK) if low else 1.0
        return low - room, high + room
    room = (high - low) * MARGIN
    return (low if low in {0.0, axis.lowest} else low - room), (high if high in {0.0, axis.highest} else high + room)


def round_numbers(low: float, high: float, most: int, *, is_whole: bool = False) -> list[float]:
    """At most so many multiples of 1, 2, 2.5 or 5 times a power of ten, as many as there are, between two numbers."""
    power = math.floor(math.log10((high - low) / max(most, 1)))
    for exponent in range(power, power + 3):
        for factor in STEPS:
            step = factor * 10.0**exponent
            if is_whole and step != int(step):
                continue
            first, last = math.ceil(low / step - SLACK), math.floor(high / step + SLACK)
            if last - first < most:
                return [float(f"{k * step:.12g}") for k in range(first, last + 1)]
    return []


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """At most so many round numbers on a logarithmic scale."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found: list[float] = []
    for steps in LOG_STEPS:
        ticks = [tick for p in powers for step in steps if low <= (tick := float(f"{step}e{p}")) <= high]
        if len(ticks) <= most:
            found = ticks
    return found or [
        tick for p in powers[:: len(powers) // max(most, 1) + 1] if low <= (tick := float(f"1e{p}")) <= high
    ]


def tick_texts(ticks: Sequence[float]) -> list[str]:
    """Ticks with as many decimals as they need, all the same; with powers of ten where they are very large or small."""
    largest = max(map(abs, ticks), default=0.0)
    if largest >= 1e7 or 0 < largest < 1e-3:
        return [f"{tick:.4g}".replace("e+0", "e").replace("e-0", "e-").replace("e+", "e") for tick in ticks]
    decimals = max((decimals_of(tick) for tick in ticks), default=0)
    return [f"{tick:,.{decimals}f}" if tick else "0" for tick in ticks]


def decimals_of(tick: float) -> int:
    """Digits of a number after the point."""
    return len(np.format_float_positional(float(f"{tick:.10g}"), trim="-").partition(".")[2])
