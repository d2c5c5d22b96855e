"""A chart: two axes, marks between them, and words. What it looks like is the renderers' business."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from spinney.show.marks import Axis, Bars, Cells, Histogram, Line, Mark, Part, Points

MAX_TABLE_ROWS = 40  # of a series; longer ones are thinned


class ChartTable(NamedTuple):
    """The numbers of a chart as texts; `note` says what was left out, or is empty."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str


@dataclass(frozen=True, repr=False)
class Chart:
    """A picture of numbers, drawn as SVG or by matplotlib; notebooks show it by themselves.

    Attributes
    ----------
    title : str
        What it is, in a line.
    description : str
        What is seen in it, for those who do not see it.
    x, y : Axis
    marks : tuple
        Of `spinney.show.marks`, drawn in this order.
    is_square : bool
        Whether it is as high as wide.

    Examples
    --------
    >>> from spinney.show.chart_model import Chart
    >>> from spinney.show.marks import Axis, Line
    >>> chart = Chart("Squares", "They rise.", Axis("x"), Axis("x²"), (Line((1, 2, 3), (1, 4, 9)),))
    >>> chart.to_table().rows
    (('1', '1'), ('2', '4'), ('3', '9'))
    >>> chart.to_svg()[:4]
    '<svg'
    """

    title: str
    description: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    is_square: bool = False

    def __post_init__(self) -> None:
        for mark in self.marks:
            check(mark, self.x, self.y)

    def to_svg(self, width: float = 400.0) -> str:
        """SVG source, to be saved or put into a page.

        Parameters
        ----------
        width : float
            In pixels; where there is less room the picture shrinks.

        Returns
        -------
        str
            With its own style, for light and dark, and without scripts.
        """
        from spinney.show.svg import to_svg

        return to_svg(self, width)

    def to_table(self) -> ChartTable:
        """The numbers as texts, at most 40 rows of each series.

        Returns
        -------
        Table
            (header, rows, note); the note says how a longer series was thinned.
        """
        return tabulate(self)

    def to_matplotlib(self, ax: Any = None) -> Any:
        """Draw on axes of matplotlib, new ones where none are given (needs the extra `plot`).

        Returns
        -------
        matplotlib.axes.Axes
        """
        from spinney.show.matplotlib import draw

        return draw(self, ax)

    def show(self) -> None:
        """Show it in a window, or however the backend of matplotlib shows figures (needs the extra `plot`)."""
        from spinney.show.matplotlib import show

        show(self)

    def save(self, path: str | Path) -> None:
        """Write a file: `.svg` by itself, `.png` and `.pdf` through matplotlib (the extra `plot`)."""
        kind = Path(path).suffix.lower()
        if kind == ".svg":
            Path(path).write_text(self.to_svg(), encoding="utf-8")
        elif kind in {".png", ".pdf"}:
            from spinney.show.matplotlib import save

            save(self, path)
        else:
            raise ValueError(f"a chart is saved as .svg, .png or .pdf, not as {Path(path).name!r}")

    def _repr_html_(self) -> str:
        return self.to_svg()

    def __repr__(self) -> str:
        return f"<Chart: {self.title}>"


def check(mark: Mark, x: Axis, y: Axis) -> None:
    """Refuse a mark that could not be drawn: numbers that are not finite, missing levels, lengths that do not fit."""
    kind = type(mark).__name__
    for axis, values in zip((x, y), mark.reach(), strict=True):
        if not all(map(math.isfinite, values)):
            raise ValueError(f"{kind} {mark.name!r} has numbers that are not finite")
        if axis.is_log and any(value <= 0 for value in values):
            raise ValueError(
                f"{kind} {mark.name!r} has numbers of {axis.label!r}, a logarithmic axis, that are not > 0"
            )
    sizes = {name: len(value) for name in mark.__slots__ if isinstance(value := getattr(mark, name), tuple)}
    if isinstance(mark, Histogram):
        sizes["edges"] -= 1
    if isinstance(mark, Bars | Cells):
        sizes["levels of y"] = len(y.levels or ())
    if len(set(sizes.values())) > 1:
        raise ValueError(f"the parts of {kind} {mark.name!r} do not fit together: {sizes}")


# --- the numbers as a table ---


def tabulate(chart: Chart) -> ChartTable:
    """The numbers of a chart: one row for each place where all marks share their places, else one for each point."""
    dotted = {(mark.x, mark.y) for mark in chart.marks if isinstance(mark, Points)}
    listed = [mark for mark in chart.marks if not isinstance(mark, Line) or (mark.x, mark.y) not in dotted]
    parts = [part for mark in listed if (part := mark.to_part(chart.x, chart.y)) is not None and part.places]
    place = chart.x.label if chart.y.levels is None else chart.y.label
    if all(part.places == parts[0].places for part in parts):
        return join_parts(parts, place)
    return stack_parts(parts, place)


def join_parts(parts: list[Part], place: str) -> ChartTable:
    """The columns of all marks side by side."""
    if not parts:
        return ChartTable((), (), "")
    named = [(head(part.name, heading, len(parts)), texts) for part in parts for heading, texts in part.columns]
    rows, note = thin(list(zip(parts[0].places, *(texts for _, texts in named), strict=True)))
    return ChartTable((place, *(heading for heading, _ in named)), rows, note)


def stack_parts(parts: list[Part], place: str) -> ChartTable:
    """The rows of one mark after those of the other, with their names."""
    headings = list(dict.fromkeys(heading for part in parts for heading, _ in part.columns))
    found: list[tuple[str, ...]] = []
    notes = []
    for part in parts:
        texts, blank = dict(part.columns), ("",) * len(part.places)
        rows, note = thin(list(zip(part.places, *(texts.get(one, blank) for one in headings), strict=True)))
        found += [(part.name, *row) for row in rows]
        notes.append(note and f"{part.name}: {note}".removeprefix(": "))
    return ChartTable(("series", place, *headings), tuple(found), "; ".join(filter(None, notes)))


def head(name: str, heading: str, n_parts: int) -> str:
    """The heading of a column: that of its mark where there are several."""
    return heading if not name or n_parts == 1 else f"{name}, {heading}"


def thin(rows: list[tuple[str, ...]]) -> tuple[tuple[tuple[str, ...], ...], str]:
    """At most so many rows, evenly chosen with both ends, and a note that says so."""
    if len(rows) <= MAX_TABLE_ROWS:
        return tuple(rows), ""
    step = (len(rows) - 1) / (MAX_TABLE_ROWS - 1)
    return tuple(rows[round(k * step)] for k in range(MAX_TABLE_ROWS)), f"{MAX_TABLE_ROWS} of {len(rows)} points"
