"""What stands in a chart: marks, each with the numbers it reaches along the axes and its columns of a table.

A series is a number: marks of one series have one colour, dash and marker. Marks of one name share a line of the key.
On an axis with levels, positions are 0, 1, ... in their order; levels of y run downward.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, NamedTuple

from spinney.reading.wording import rounded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Ends = tuple[tuple[float, float] | None, ...]  # of error bars; None: none there
Reach = tuple[list[float], list[float]]  # numbers along x and along y

NEUTRAL = -1  # the series of what is neither better nor worse: grey


@dataclass(frozen=True, slots=True)
class Axis:
    """What a direction means: its label; its ends, by the marks where None; its levels, where it has no numbers.

    A level of y may have a note, which stands behind it and is not shortened.
    """

    label: str
    lowest: float | None = None
    highest: float | None = None
    levels: tuple[str, ...] | None = None
    is_log: bool = False
    is_whole: bool = False  # ticks at whole numbers only
    notes: tuple[str, ...] = ()

    def note(self, level: int) -> str:
        """What stands behind a level."""
        return f" {self.notes[level]}" if self.notes else ""


class Part(NamedTuple):
    """A mark as columns of a table: its name, the place of each row, and texts by heading."""

    name: str
    places: tuple[str, ...]
    columns: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Line:
    """A line through points; with `is_step` it is level at the height of each point, back to the point before."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    name: str = ""
    series: int = 0
    is_step: bool = False
    is_faint: bool = False  # one of many, in the background, and not in the table

    def reach(self) -> Reach:
        """The numbers it reaches."""
        return [*self.x], [*self.y]

    def to_part(self, _: Axis, y: Axis) -> Part | None:
        """Its columns."""
        return None if self.is_faint else Part(self.name, texts_of(self.x), ((y.label, texts_of(self.y)),))


@dataclass(frozen=True, slots=True)
class Band:
    """The room between two lines."""

    x: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    name: str = ""
    series: int = 0

    def reach(self) -> Reach:
        """The numbers it reaches."""
        return [*self.x], [*self.low, *self.high]

    def to_part(self, _: Axis, __: Axis) -> Part | None:
        """Its columns."""
        return Part(self.name, texts_of(self.x), (("from", texts_of(self.low)), ("to", texts_of(self.high))))


@dataclass(frozen=True, slots=True)
class Points:
    """Points, with error bars along x or y where they have ends."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    name: str = ""
    series: int = 0
    x_ends: Ends | None = None
    y_ends: Ends | None = None

    def reach(self) -> Reach:
        """The numbers they reach."""
        return [*self.x, *flat(self.x_ends)], [*self.y, *flat(self.y_ends)]

    def to_part(self, x: Axis, y: Axis) -> Part | None:
        """Their columns."""
        if y.levels is None:
            return Part(self.name, texts_of(self.x), ((y.label, texts_of(self.y)), *columns_of(self.y_ends)))
        places = tuple(y.levels[round(one)] + y.note(round(one)) for one in self.y)
        return Part(self.name, places, ((x.label, texts_of(self.x)), *columns_of(self.x_ends)))


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars from 0 to the right, one for each level of y; those of several marks stand side by side."""

    lengths: tuple[float, ...]
    name: str = ""
    series: int = 0
    ends: Ends | None = None

    def reach(self) -> Reach:
        """The numbers they reach."""
        return [0.0, *self.lengths, *flat(self.ends)], []

    def to_part(self, x: Axis, y: Axis) -> Part | None:
        """Their columns."""
        return Part(self.name, y.levels or (), ((x.label, texts_of(self.lengths)), *columns_of(self.ends)))


@dataclass(frozen=True, slots=True)
class Histogram:
    """Columns from 0 upward between neighbouring edges: a histogram."""

    edges: tuple[float, ...]
    heights: tuple[float, ...]
    name: str = ""
    series: int = 0

    def reach(self) -> Reach:
        """The numbers they reach."""
        return [*self.edges], [0.0, *self.heights]

    def to_part(self, _: Axis, y: Axis) -> Part | None:
        """Their columns."""
        places = tuple(f"{low} to {high}" for low, high in pairwise(texts_of(self.edges)))
        return Part(self.name, places, ((y.label, texts_of(self.heights)),))


@dataclass(frozen=True, slots=True)
class RowStrip:
    """How many rows there are about each x, as a strip along the foot of the chart."""

    x: tuple[float, ...]
    counts: tuple[int, ...]
    name: str = ""

    def reach(self) -> Reach:
        """The numbers they reach; the strip has no height of its own."""
        return [*self.x], []

    def to_part(self, _: Axis, __: Axis) -> Part | None:
        """Their columns."""
        return Part(self.name, texts_of(self.x), (("rows", texts_of(self.counts)),))


@dataclass(frozen=True, slots=True)
class Cells:
    """A table of texts on shades: by level of y, by level of x; shades are between 0 and 1."""

    shades: tuple[tuple[float, ...], ...]
    texts: tuple[tuple[str, ...], ...]
    name: str = ""

    def reach(self) -> Reach:
        """None: levels have no numbers."""
        return [], []

    def to_part(self, x: Axis, y: Axis) -> Part | None:
        """Its columns, those of the picture."""
        return Part("", y.levels or (), tuple(zip(x.levels or (), zip(*self.texts, strict=True), strict=True)))


@dataclass(frozen=True, slots=True)
class Guide:
    """A thin straight line for the eye: upright at x, level at y, or with neither the diagonal y = x."""

    x: float | None = None
    y: float | None = None
    name: str = ""

    def reach(self) -> Reach:
        """The numbers it reaches; the diagonal is where the axes are."""
        return [] if self.x is None else [self.x], [] if self.y is None else [self.y]

    def to_part(self, _: Axis, __: Axis) -> Part | None:
        """None: its name is in the key."""
        return None


Mark = Line | Band | Points | Bars | Histogram | RowStrip | Cells | Guide


def flat(ends: Ends | None) -> Iterable[float]:
    """The ends of error bars, one after the other."""
    return chain.from_iterable(pair for pair in ends or () if pair is not None)


def columns_of(ends: Ends | None) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Error bars as two columns, or none."""
    if ends is None or not any(ends):
        return ()
    lows = tuple("" if pair is None else number_text(pair[0]) for pair in ends)
    highs = tuple("" if pair is None else number_text(pair[1]) for pair in ends)
    return ("from", lows), ("to", highs)


def texts_of(values: Sequence[float]) -> tuple[str, ...]:
    """Numbers as texts."""
    return tuple(map(number_text, values))


def number_text(x: float) -> str:
    """A number as text: whole ones whole, others in four digits."""
    return f"{int(x)}" if x == int(x) and abs(x) < 1e15 else rounded(x)
