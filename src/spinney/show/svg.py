"""A chart as SVG, for a page or a file of its own: classes and one style, no scripts, no style attributes."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from spinney.reading.layout import shorten, text_width, wrap
from spinney.show.marks import (
    NEUTRAL,
    Band,
    Bars,
    Cells,
    Ends,
    Guide,
    Histogram,
    Line,
    Mark,
    Points,
    RowStrip,
    number_text,
)
from spinney.show.markup import Html, join, tag, written
from spinney.show.scale import Scale, find_ends, tick_texts
from spinney.show.style import SMALL, TEXT, TITLE, make_style
from spinney.show.theme import N_LOOKS, dash

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from spinney.show.chart_model import Chart

EDGE = 10.0  # around the picture
LINE = 18.0  # of text
BOLD = 1.12  # width of bold text to that of other
ROW = 25.0  # of a level of y
RATIO = 0.62  # height of the plot to its width
MAX_LABEL = 0.38  # of the width, for the levels of y
GLYPH = 24.0  # in the key
STRIP = 16.0  # height of rows along the foot
CAP = 3.0  # half the end of an error bar
RADIUS = 3.6
DOT = 3.0  # of points that are many
MAX_MARKERS = 60  # beyond, points are dots
MAX_CLEAR = 3  # marks of points whose error bars do not hide each other; those of more are pale
N_LAYERS = 25  # of dots: what lies in several is darker, which a single path could not show
CELL_SHADE = 0.6  # of the darkest cell: text stays readable on it
BAR_SHARE = 0.68  # of the height of a level

MARKERS = (  # within -1 and 1
    "M-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0Z",
    "M-.9-.9H.9V.9H-.9Z",
    "M0-1.15L1.1.85H-1.1Z",
    "M0-1.25L1.05 0L0 1.25L-1.05 0Z",
    "M0 1.15L1.1-.85H-1.1Z",
    "M-.38-1.1H.38V-.38H1.1V.38H.38V1.1H-.38V.38H-1.1V-.38H-.38Z",
    "M-1-1H-.3L0-.5L.3-1H1L.5 0L1 1H.3L0 .5L-.3 1H-1L-.5 0Z",
    "M0-1.15L1.09-.36L.68.93H-.68L-1.09-.36Z",
)


def to_svg(
    chart: Chart, width: float = 400.0, *, name: str | None = None, embed_style: bool = True, has_title: bool = True
) -> Html:
    """SVG source of a chart.

    For scripts of a page, `data-frame` is the plot's left, top, right and floor in pixels, `data-ends` the numbers at
    its ends along x, then y.

    Parameters
    ----------
    chart : Chart
    width : float
        In pixels; the height follows from what is shown.
    name : str, optional
        Begins the ids of title and description, to be unique in a page; by default of the picture's own content.
    embed_style : bool
        Whether the picture has its style and ground within. Without, the page is to have `make_style()`.
    has_title : bool
        Whether the title is written above. It is always there for screen readers.
    """
    return ChartPainter(chart, width).paint(name, embed_style=embed_style, has_title=has_title)


def stroke(series: int) -> str:
    """The class that strokes in the colour of a series."""
    return "s-n" if series == NEUTRAL else f"s{series % N_LOOKS}"


def fill(series: int) -> str:
    """The class that fills in the colour of a series."""
    return "f-n" if series == NEUTRAL else f"f{series % N_LOOKS}"


def dash_of(series: int) -> str | None:
    """The dashes of a series, as an attribute."""
    return " ".join(f"{part:g}" for part in dash(series)) or None


def path_of(points: Iterable[tuple[float, float]]) -> str:
    """A path through points, to a tenth of a pixel."""
    return "M" + "L".join(f"{written(round(x, 1))} {written(round(y, 1))}" for x, y in points)


def draw_marker(series: int, x: float, y: float, tip: str = "") -> Html:
    """The marker of a series, with a tooltip."""
    shape = MARKERS[0 if series == NEUTRAL else series % N_LOOKS]
    at = f"translate({written(x)} {written(y)}) scale({RADIUS:g})"
    return tag("path", *([tag("title", tip)] if tip else []), class_=fill(series), d=shape, transform=at)


@dataclass
class Pile:
    """Elements from the top of a picture down to `y`."""

    y: float = EDGE
    parts: list[Html] = field(default_factory=list)

    def write(self, text: str, x: float, look: str | None = None, anchor: str | None = None) -> None:
        """A line of text."""
        self.parts.append(tag("text", text, class_=look, x=x, y=self.y + TEXT, text_anchor=anchor))
        self.y += LINE


class ChartPainter:
    """Draws one chart."""

    def __init__(self, chart: Chart, width: float) -> None:
        self.chart = chart
        self.width = width
        reaches = [mark.reach() for mark in chart.marks]
        self.x_ends = find_ends(chart.x, (value for wide, _ in reaches for value in wide))
        self.y_ends = find_ends(chart.y, (value for _, tall in reaches for value in tall))
        y_ticks = Scale(*self.y_ends, 0.0, 1.0, chart.y.is_log).ticks(6, is_whole=chart.y.is_whole)
        self.y_ticks = list(zip(y_ticks, tick_texts(y_ticks), strict=True))
        if chart.y.levels is not None:
            room = MAX_LABEL * width
            notes = [chart.y.note(k) for k in range(len(chart.y.levels))]
            self.y_ticks = [
                (float(k), shorten(level, room - text_width(note, TEXT), TEXT) + note)
                for k, (level, note) in enumerate(zip(chart.y.levels, notes, strict=True))
            ]
        widest = max((text_width(text, TEXT) for _, text in self.y_ticks), default=0.0)
        self.left = EDGE + widest + 8
        self.right = width - EDGE - 4
        self.bars = [mark for mark in chart.marks if isinstance(mark, Bars)]
        self.is_crowded = sum(isinstance(mark, Points) for mark in chart.marks) > MAX_CLEAR
        self.has_cells = any(isinstance(mark, Cells) for mark in chart.marks)

    def paint(self, name: str | None, *, embed_style: bool, has_title: bool) -> Html:
        """The whole picture."""
        pile = Pile()
        if has_title:
            self.write_title(pile)
        self.write_key(pile)
        if self.chart.y.label and (self.chart.y.levels is None or self.has_cells):
            pile.write(shorten(self.chart.y.label, self.width - 2 * EDGE, TEXT), EDGE, "soft")
        pile.y += 4
        height = self.find_height()
        self.x = Scale(*self.x_ends, self.left, self.right, self.chart.x.is_log)
        strip = STRIP + 4 if any(isinstance(mark, RowStrip) for mark in self.chart.marks) else 0.0
        first, last = (height - strip, 0.0) if self.chart.y.levels is None else (0.0, height)
        self.y = Scale(*self.y_ends, pile.y + first, pile.y + last, self.chart.y.is_log)
        self.top, self.foot = pile.y, pile.y + height
        self.floor = pile.y + max(first, last)  # of the numbers: what is below is the strip of rows
        pile.y += height
        axes = self.draw_axes(pile)
        marks = [part for mark in self.chart.marks for part in self.draw(mark)]
        inside = [*pile.parts, axes, *marks]
        return self.frame(inside, pile.y + EDGE, name, embed_style=embed_style)

    def frame(self, inside: Sequence[Html], height: float, name: str | None, *, embed_style: bool) -> Html:
        """The element around everything, with its words for screen readers."""
        body = join(*inside, between="\n")
        name = name or f"chart-{zlib.crc32((self.chart.title + body).encode()):08x}"
        parts = [
            tag("title", self.chart.title, id=f"{name}-title"),
            tag("desc", self.chart.description, id=f"{name}-desc"),
        ]
        if embed_style:
            parts.append(tag("style", Html(make_style())))
            parts.append(tag("rect", class_="ground", width=self.width, height=height, rx=6))
        return tag(
            "svg",
            join(*parts, body, between="\n"),
            xmlns="http://www.w3.org/2000/svg",
            class_="spinney-chart",
            role="img",
            aria_labelledby=f"{name}-title {name}-desc",
            width=self.width,
            height=height,
            viewBox=f"0 0 {written(self.width)} {written(height)}",
            data_frame=" ".join(map(written, (self.left, self.top, self.right, self.floor))),
            data_ends=" ".join(f"{end:.9g}" for end in (*self.x_ends, *self.y_ends)),
        )

    def find_height(self) -> float:
        """Height of the plot."""
        wide = self.right - self.left
        if self.chart.is_square:
            return wide
        if self.chart.y.levels is not None:
            return ROW * len(self.chart.y.levels) * (1.0 if len(self.bars) < 2 else 1.3)
        return RATIO * wide

    # --- words ---

    def write_title(self, pile: Pile) -> None:
        """The title, in as many lines as it needs."""
        room = self.width - 2 * EDGE
        for text in wrap(self.chart.title, room / BOLD, TITLE):
            pile.write(shorten(text, room, TITLE, is_bold=True), EDGE, "title")
        pile.y += 4

    def write_key(self, pile: Pile) -> None:
        """What the names of marks look like, side by side while there is room."""
        named: dict[str, list[Mark]] = {}
        for mark in self.chart.marks:
            if mark.name:
                named.setdefault(mark.name, []).append(mark)
        x = EDGE
        for name, marks in named.items():
            text = shorten(name, self.width - 2 * EDGE - GLYPH - 6, TEXT)
            wide = GLYPH + 6 + text_width(text, TEXT)
            if x > EDGE and x + wide > self.width - EDGE:
                x, pile.y = EDGE, pile.y + LINE
            pile.parts += [part for mark in marks for part in glyph(mark, x, pile.y + TEXT - 4)]
            pile.parts.append(tag("text", text, x=x + GLYPH + 6, y=pile.y + TEXT))
            x += wide + 12
        pile.y += LINE + 4 if named else 0.0

    # --- axes ---

    def draw_axes(self, pile: Pile) -> Html:
        """Grid, ticks and labels; what stands below the plot goes on the pile."""
        parts = []
        for place, text in self.y_ticks:
            at = self.y(place)
            if self.chart.y.levels is None:
                parts.append(self.rule(self.left, at, self.right, at, "grid"))
            whole = self.chart.y.levels[int(place)] + self.chart.y.note(int(place)) if self.chart.y.levels else text
            tip = [tag("title", whole)] if whole != text else []
            parts.append(tag("text", text, *tip, x=self.left - 6, y=at + 4, text_anchor="end"))
        if self.chart.x.levels is None:
            parts += self.draw_x_ticks(pile)
        else:
            parts += self.draw_x_levels(self.chart.x.levels, pile)
        if not self.has_cells:
            parts.append(self.rule(self.left, self.foot, self.right, self.foot, "axis"))
            if self.chart.y.levels is not None and self.x_ends[0] <= 0.0 <= self.x_ends[1] and self.bars:
                parts.append(self.rule(self.x(0.0), self.top, self.x(0.0), self.foot, "axis"))
        if self.chart.x.label:
            label = shorten(self.chart.x.label, self.width - 2 * EDGE, TEXT)
            half = text_width(label, TEXT) / 2
            middle = max(min((self.left + self.right) / 2, self.width - EDGE - half), EDGE + half)
            pile.write(label, middle, "soft", "middle")
        return join(*parts)

    def draw_x_ticks(self, pile: Pile) -> list[Html]:
        """As many ticks as have room, with lines upward."""
        for most in range(8, 1, -1):
            ticks = self.x.ticks(most, is_whole=self.chart.x.is_whole)
            texts = tick_texts(ticks)
            halves = [text_width(text, TEXT) / 2 for text in texts]
            ends = [(min(self.x(tick), self.width - 2 - half), half) for tick, half in zip(ticks, halves, strict=True)]
            if all(right - wide > left + half + 4 for (left, half), (right, wide) in pairwise(ends)):
                break
        parts = []
        for tick, text, (inside, _) in zip(ticks, texts, ends, strict=True):
            at = self.x(tick)
            parts.append(self.rule(at, self.top, at, self.foot, "grid"))
            parts.append(tag("text", text, x=inside, y=self.foot + TEXT + 4, text_anchor="middle"))
        pile.y += LINE + 2
        return parts

    def draw_x_levels(self, levels: Sequence[str], pile: Pile) -> list[Html]:
        """The names of levels, upward where they are wider than their cells."""
        room = (self.right - self.left) / len(levels) - 4
        is_upward = any(text_width(level, TEXT) > room for level in levels)
        tall = max((text_width(level, TEXT) for level in levels), default=0.0)
        tall = min(tall, MAX_LABEL * self.width) if is_upward else TEXT
        parts = []
        for k, level in enumerate(levels):
            at, y = self.x(k), self.foot + TEXT + 4
            if is_upward:
                text, turn = shorten(level, tall, TEXT), f"rotate(-90 {written(at + 4)} {written(self.foot + 6)})"
                parts.append(tag("text", text, x=at + 4, y=self.foot + 6, text_anchor="end", transform=turn))
            else:
                parts.append(tag("text", level, x=at, y=y, text_anchor="middle"))
        pile.y += tall + 10
        return parts

    def rule(self, x0: float, y0: float, x1: float, y1: float, look: str, dashes: str | None = None) -> Html:
        """A straight line."""
        return tag("path", class_=look, d=path_of([(x0, y0), (x1, y1)]), fill="none", stroke_dasharray=dashes)

    # --- marks ---

    def draw(self, mark: Mark) -> list[Html]:
        """The elements of a mark."""
        match mark:
            case Line():
                return [self.draw_line(mark)]
            case Band():
                edge = [*zip(mark.x, mark.high, strict=True), *reversed([*zip(mark.x, mark.low, strict=True)])]
                return [tag("path", class_=fill(mark.series), fill_opacity=0.18, d=self.path(edge) + "Z")]
            case Points():
                return self.draw_points(mark)
            case Bars():
                return self.draw_bars(mark)
            case Histogram() | RowStrip():
                return self.draw_columns(mark)
            case Cells() | Guide():
                return self.draw_cells(mark) if isinstance(mark, Cells) else [self.draw_rule(mark)]

    def path(self, points: Iterable[tuple[float, float]]) -> str:
        """A path through points in numbers of the axes."""
        return path_of((self.x(x), self.y(y)) for x, y in points)

    def draw_line(self, mark: Line) -> Html:
        """A line, in steps or straight."""
        points = list(zip(mark.x, mark.y, strict=True))
        if mark.is_step:
            points = [points[0], *(corner for (x, _), (to, y) in pairwise(points) for corner in ((x, y), (to, y)))]
        look: dict[str, str | float | None] = {"stroke_width": 1.8, "stroke_dasharray": dash_of(mark.series)}
        if mark.is_faint:
            look = {"stroke_width": 0.8, "stroke_opacity": 0.35}
        return tag(
            "path", class_=stroke(mark.series), d=self.path(points), fill="none", stroke_linejoin="round", **look
        )

    def draw_points(self, mark: Points) -> list[Html]:
        """Markers with error bars and tooltips, or dots where they are many."""
        places = [(self.x(x), self.y(y)) for x, y in zip(mark.x, mark.y, strict=True)]
        if len(places) > MAX_MARKERS:
            layers = [places[first::N_LAYERS] for first in range(N_LAYERS)]
            look = {"class_": stroke(mark.series), "fill": "none", "stroke_linecap": "round"}
            return [
                tag("path", d="".join(f"{path_of([place])}h0" for place in layer), stroke_width=DOT,
                    stroke_opacity=0.35, **look)
                for layer in layers
            ]  # fmt: skip
        parts = self.draw_ends(mark.series, mark.x_ends, [y for _, y in places], is_level=True)
        parts += self.draw_ends(mark.series, mark.y_ends, [x for x, _ in places], is_level=False)
        levels = self.chart.y.levels
        for k, (x, y) in enumerate(places):
            ends = (mark.x_ends or mark.y_ends or (None,) * len(places))[k]
            where = levels[round(mark.y[k])] if levels else number_text(mark.x[k])
            parts.append(draw_marker(mark.series, x, y, tip_of(where, mark.x[k] if levels else mark.y[k], ends)))
        return parts

    def draw_ends(self, series: int, ends: Ends | None, places: Sequence[float], *, is_level: bool) -> list[Html]:
        """Error bars, level or upright, with a short line across at each end."""
        parts = []
        for place, pair in zip(places, ends or (), strict=ends is not None):
            if pair is None:
                continue
            low, high = (self.x(end) if is_level else self.y(end) for end in pair)
            strokes = [
                ((low, place), (high, place)),
                *(((end, place - CAP), (end, place + CAP)) for end in (low, high)),
            ]
            flipped = strokes if is_level else [tuple((y, x) for x, y in line) for line in strokes]
            parts.append(
                tag(
                    "path", class_=stroke(series), d="".join(map(path_of, flipped)), fill="none", stroke_width=1.4,
                    stroke_opacity=0.45 if self.is_crowded else None,
                )
            )  # fmt: skip
        return parts

    def draw_bars(self, mark: Bars) -> list[Html]:
        """Bars beside those of other marks, with error bars and tooltips."""
        levels = self.chart.y.levels or ()
        thick = abs(self.y(1.0) - self.y(0.0)) * BAR_SHARE / len(self.bars)
        place = next(k for k, other in enumerate(self.bars) if other is mark)
        shift = (place - (len(self.bars) - 1) / 2) * thick
        middles = [self.y(k) + shift for k in range(len(levels))]
        parts = []
        for k, value in enumerate(mark.lengths):
            left, right = sorted((self.x(0.0), self.x(value)))
            tip = tip_of(levels[k], value, mark.ends[k] if mark.ends else None)
            parts.append(
                tag(
                    "rect", tag("title", tip), class_=fill(mark.series), fill_opacity=0.75, x=left,
                    y=middles[k] - thick / 2 + 0.5, width=right - left, height=thick - 1,
                )
            )  # fmt: skip
        ends = self.draw_ends(NEUTRAL, mark.ends, middles, is_level=True)
        return [*parts, *ends]

    def draw_columns(self, mark: Histogram | RowStrip) -> list[Html]:
        """Columns from 0, or low ones along the foot of the chart by the largest count."""
        if isinstance(mark, Histogram):
            look, opacity = fill(mark.series), 0.75
            boxes = [
                (self.x(low), self.x(high), self.y(0.0) - self.y(height))
                for (low, high), height in zip(pairwise(mark.edges), mark.heights, strict=True)
            ]
            tips = [
                f"{number_text(low)} to {number_text(high)}: {number_text(n)}"
                for (low, high), n in zip(pairwise(mark.edges), mark.heights, strict=True)
            ]
        else:
            look, opacity, most = fill(NEUTRAL), 0.3, max((*mark.counts, 1))
            places = [self.x(x) for x in mark.x]
            middles = [(a + b) / 2 for a, b in pairwise(places)]
            boxes = [
                (low, high, STRIP * n / most)
                for low, high, n in zip([places[0], *middles], [*middles, places[-1]], mark.counts, strict=True)
            ]
            tips = [f"about {number_text(x)}: {n} rows" for x, n in zip(mark.x, mark.counts, strict=True)]
        return [
            tag(
                "rect", tag("title", tip), class_=look, fill_opacity=opacity, x=low + 0.3, y=self.foot - tall,
                width=max(high - low - 0.6, 0.5), height=tall,
            )
            for (low, high, tall), tip in zip(boxes, tips, strict=True) if tall > 0
        ]  # fmt: skip

    def draw_cells(self, mark: Cells) -> list[Html]:
        """Shaded cells with their texts, shortened to fit."""
        wide, tall = abs(self.x(1.0) - self.x(0.0)), abs(self.y(1.0) - self.y(0.0))
        parts = []
        for row, (shades, texts) in enumerate(zip(mark.shades, mark.texts, strict=True)):
            for column, (shade, text) in enumerate(zip(shades, texts, strict=True)):
                x, y = self.x(column), self.y(row)
                opacity = 0.04 + (CELL_SHADE - 0.04) * shade
                parts.append(
                    tag(
                        "rect", class_=fill(0), fill_opacity=opacity, x=x - wide / 2 + 0.75, y=y - tall / 2 + 0.75,
                        width=wide - 1.5, height=tall - 1.5, rx=2,
                    )
                )  # fmt: skip
                is_small = text_width(text, TEXT) > wide
                if not is_small or text_width(text, SMALL) <= wide:
                    look = "small" if is_small else None
                    parts.append(tag("text", text, class_=look, x=x, y=y + 4, text_anchor="middle"))
        return parts

    def draw_rule(self, mark: Guide) -> Html:
        """A dashed line across the plot."""
        if mark.x is not None:
            ends = [(self.x(mark.x), self.top), (self.x(mark.x), self.foot)]
        elif mark.y is not None:
            ends = [(self.left, self.y(mark.y)), (self.right, self.y(mark.y))]
        else:
            low, high = max(self.x_ends[0], self.y_ends[0]), min(self.x_ends[1], self.y_ends[1])
            ends = [(self.x(end), self.y(end)) for end in (low, high)]
        return tag("path", class_=stroke(NEUTRAL), d=path_of(ends), fill="none", stroke_dasharray="4 4")


def tip_of(where: str, value: float, ends: tuple[float, float] | None) -> str:
    """The text of a tooltip."""
    return f"{where}: {number_text(value)}" + (f" ({number_text(ends[0])} to {number_text(ends[1])})" if ends else "")


def glyph(mark: Mark, x: float, y: float) -> list[Html]:
    """A mark in the key, from x on and about y."""
    level = path_of([(x, y), (x + GLYPH, y)])
    match mark:
        case Line():
            faint = {"stroke_width": 0.8} if mark.is_faint else {"stroke_width": 1.8}
            return [
                tag(
                    "path",
                    class_=stroke(mark.series),
                    d=level,
                    fill="none",
                    stroke_dasharray=dash_of(mark.series),
                    **faint,
                )
            ]
        case Guide():
            return [tag("path", class_=stroke(NEUTRAL), d=level, fill="none", stroke_dasharray="4 4")]
        case Points():
            return [draw_marker(mark.series, x + GLYPH / 2, y)]
        case Band():
            return [tag("rect", class_=fill(mark.series), fill_opacity=0.18, x=x, y=y - 5, width=GLYPH, height=10)]
        case _:
            series = mark.series if isinstance(mark, Bars | Histogram) else NEUTRAL
            return [tag("rect", class_=fill(series), fill_opacity=0.75, x=x + 5, y=y - 5, width=GLYPH - 10, height=10)]
