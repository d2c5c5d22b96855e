"""A chart on axes of matplotlib, an extra: the marks of the SVG in its words."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from spinney.reading.layout import shorten
from spinney.show.marks import NEUTRAL, Band, Bars, Cells, Ends, Guide, Histogram, Line, Mark, Points, RowStrip
from spinney.show.scale import find_ends, log_ticks, tick_texts
from spinney.show.theme import LIGHT, N_LOOKS, dash

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from spinney.show.chart_model import Chart

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "p")
SIDE = 4.4  # inches
ROW = 0.3  # inches of a level of y
MAX_MARKERS = 60  # beyond, points are dots
LETTER = 0.085  # inches of a letter
MAX_LETTERS = 40  # of all levels of x together, in one line
MAX_LABEL = 160.0  # width of the name of a level, in points
STRIP = 0.08  # of the height, for rows along the foot
BAR_SHARE = 0.7  # of the height of a level


def draw(chart: Chart, ax: Any = None) -> Any:
    """Draw a chart on axes, new ones where `ax` is None."""
    if ax is None:
        ax = import_pyplot().figure(figsize=size_of(chart), layout="constrained").add_subplot()
    ax.set_title(plain(chart.title), loc="left", fontsize="medium", fontweight="bold", wrap=True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)
    ax.grid(color=LIGHT.grid, axis="both" if chart.y.levels is None else "x")
    set_axes(chart, ax)
    n_bars = sum(isinstance(mark, Bars) for mark in chart.marks)
    place = 0
    for mark in chart.marks:
        if isinstance(mark, Bars):
            draw_bars(mark, ax, place, n_bars)
            place += 1
        else:
            draw_mark(mark, ax)
    handles, labels = ax.get_legend_handles_labels()
    if labels:
        by_name: dict[str, list[Any]] = {}
        for handle, label in zip(handles, labels, strict=True):
            by_name.setdefault(label, []).append(handle)
        ax.legend([tuple(same) for same in by_name.values()], list(by_name), fontsize="small", frameon=False)
    return ax


def show(chart: Chart) -> None:
    """Draw a chart on new axes and show it as the backend does."""
    draw(chart)
    import_pyplot().show()


def save(chart: Chart, path: str | Path) -> None:
    """Draw a chart into a file, without a window or a state of pyplot."""
    import_pyplot()
    from matplotlib.figure import Figure

    figure = Figure(figsize=size_of(chart), layout="constrained")
    draw(chart, figure.add_subplot())
    figure.savefig(path, dpi=200)


def import_pyplot() -> Any:
    """Matplotlib's pyplot, or a word on how to get it."""
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError('this needs matplotlib: pip install "spinney[plot]"; to_svg() does without') from error
    return plt


def size_of(chart: Chart) -> tuple[float, float]:
    """Inches of a figure."""
    if chart.is_square:
        return SIDE, SIDE
    if chart.y.levels is not None:
        below = LETTER * max(map(len, chart.x.levels)) if chart.x.levels and is_upward(chart.x.levels) else 0.0
        return 1.4 * SIDE, 1.2 + ROW * len(chart.y.levels) + below
    return 1.4 * SIDE, SIDE * 0.9


def set_axes(chart: Chart, ax: Any) -> None:
    """Ends, ticks and labels; levels that name themselves have no label."""
    has_cells = any(isinstance(mark, Cells) for mark in chart.marks)
    reaches = [mark.reach() for mark in chart.marks]
    for name, axis, place in (("x", chart.x, 0), ("y", chart.y, 1)):
        if axis.levels is None or has_cells:
            getattr(ax, f"set_{name}label")(plain(axis.label))
        low, high = find_ends(axis, (value for reach in reaches for value in reach[place]))
        if name == "y" and any(isinstance(mark, RowStrip) for mark in chart.marks):
            low -= 1.3 * STRIP * (high - low)  # room for the strip
        if axis.is_log:
            ticks = log_ticks(low, high, 8)
            getattr(ax, f"set_{name}scale")("log")
            getattr(ax, f"set_{name}ticks")(ticks, tick_texts(ticks))
            getattr(ax, f"set_{name}ticks")([], minor=True)
        elif axis.levels is not None:
            names = [shorten(level, MAX_LABEL, 10.0) + axis.note(k) for k, level in enumerate(axis.levels)]
            turn = 90 if name == "x" and is_upward(axis.levels) else 0
            getattr(ax, f"set_{name}ticks")(range(len(names)), list(map(plain, names)), rotation=turn)
            low, high = (high, low) if name == "y" else (low, high)
        elif axis.is_whole:
            getattr(ax, f"{name}axis").get_major_locator().set_params(integer=True)
        getattr(ax, f"set_{name}lim")(low, high)
    if chart.is_square:
        ax.set_box_aspect(1)


def draw_mark(mark: Mark, ax: Any) -> None:
    """Draw a mark that does not depend on others."""
    match mark:
        case Line():
            look = (
                {"linewidth": 0.6, "alpha": 0.35}
                if mark.is_faint
                else {"linewidth": 1.6, "dashes": dashes(mark.series)}
            )
            style = "steps-pre" if mark.is_step else "default"
            ax.plot(mark.x, mark.y, color=LIGHT.colour(mark.series), label=label(mark), drawstyle=style, **look)
        case Band():
            ax.fill_between(
                mark.x, mark.low, mark.high, color=LIGHT.colour(mark.series), alpha=0.18, linewidth=0, label=label(mark)
            )
        case Points():
            draw_points(mark, ax)
        case Histogram():
            ax.stairs(
                mark.heights, mark.edges, fill=True, color=LIGHT.colour(mark.series), alpha=0.75, label=label(mark)
            )
        case RowStrip():
            draw_rows(mark, ax)
        case Cells():
            draw_cells(mark, ax)
        case Guide():
            draw_rule(mark, ax)


def is_upward(levels: Sequence[str]) -> bool:
    """Whether the levels of x have no room side by side."""
    return sum(map(len, levels)) > MAX_LETTERS


def plain(text: str) -> str:
    """Text that is not read as a formula."""
    return text.replace("$", r"\$")


def label(mark: Mark) -> str:
    """The name of a mark in the key; one that begins with an underscore would have no line there."""
    return plain(f" {mark.name}" if mark.name.startswith("_") else mark.name or "_")


def dashes(series: int) -> tuple[float, ...]:
    """Dashes in widths of the line."""
    return tuple(part / 1.6 for part in dash(series)) or (None, None)  # type: ignore[return-value]


def marker_of(series: int) -> str:
    """The marker of a series."""
    return MARKERS[0 if series == NEUTRAL else series % N_LOOKS]


def draw_points(mark: Points, ax: Any) -> None:
    """Markers with error bars, or dots where they are many."""
    colour = LIGHT.colour(mark.series)
    if len(mark.x) > MAX_MARKERS:
        ax.scatter(mark.x, mark.y, s=6, color=colour, alpha=0.35, linewidths=0, label=label(mark))
        return
    ax.plot(mark.x, mark.y, linestyle="", marker=marker_of(mark.series), markersize=5, color=colour, label=label(mark))
    for k, pair in enumerate(mark.x_ends or ()):
        if pair is not None:
            ax.plot(pair, (mark.y[k], mark.y[k]), color=colour, linewidth=1.2, marker="|", markersize=5)
    for k, pair in enumerate(mark.y_ends or ()):
        if pair is not None:
            ax.plot((mark.x[k], mark.x[k]), pair, color=colour, linewidth=1.2, marker="_", markersize=5)


def draw_bars(mark: Bars, ax: Any, place: int, n_bars: int) -> None:
    """Bars beside those of other marks, with error bars."""
    thick = BAR_SHARE / n_bars
    middles = [k + (place - (n_bars - 1) / 2) * thick for k in range(len(mark.lengths))]
    ax.barh(middles, mark.lengths, thick * 0.95, color=LIGHT.colour(mark.series), alpha=0.75, label=label(mark))
    ends: Ends = mark.ends or ()
    for middle, pair in zip(middles, ends, strict=mark.ends is not None):
        if pair is not None:
            ax.plot(pair, (middle, middle), color=LIGHT.soft, linewidth=1.2, marker="|", markersize=5)


def draw_rows(mark: RowStrip, ax: Any) -> None:
    """Rows as low columns along the foot, in shares of the height."""
    middles = [(a + b) / 2 for a, b in pairwise(mark.x)]
    edges = [mark.x[0], *middles, mark.x[-1]]
    most = max((*mark.counts, 1))
    heights = [STRIP * n / most for n in mark.counts]
    ax.stairs(
        heights, edges, fill=True, color=LIGHT.soft, alpha=0.3, transform=ax.get_xaxis_transform(), label=label(mark)
    )


def draw_cells(mark: Cells, ax: Any) -> None:
    """Shaded cells with their texts."""
    from matplotlib.colors import LinearSegmentedColormap

    shades = LinearSegmentedColormap.from_list("cells", [LIGHT.ground, LIGHT.colour(0)])
    ax.imshow(mark.shades, cmap=shades, vmin=0.0, vmax=1.0 / 0.6, aspect="auto")
    ax.grid(visible=False)
    for row, texts in enumerate(mark.texts):
        for column, text in enumerate(texts):
            ax.text(column, row, plain(text), ha="center", va="center", fontsize="small")


def draw_rule(mark: Guide, ax: Any) -> None:
    """A dashed line across."""
    look = {"color": LIGHT.soft, "linewidth": 1.0, "linestyle": (0, (4, 4)), "label": label(mark)}
    if mark.x is not None:
        ax.axvline(mark.x, **look)
    elif mark.y is not None:
        ax.axhline(mark.y, **look)
    else:
        ends = [max(ax.get_xlim()[0], ax.get_ylim()[0]), min(ax.get_xlim()[1], ax.get_ylim()[1])]
        ax.plot(ends, ends, **look)
