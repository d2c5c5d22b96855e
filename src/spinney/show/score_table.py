"""The table of methods: scores with their error bars drawn on one scale, beside what the methods cost."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, median
from typing import TYPE_CHECKING

from spinney.show.markup import Html, tag
from spinney.show.names import shown
from spinney.show.numbers import chance, seconds, short, size
from spinney.show.page import scrolled
from spinney.show.scale import Scale, round_numbers, tick_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spinney.study.result import Difference, Figure, MethodResult, Study

HEIGHT, HEAD = 34.0, 20.0  # pixels of a picture, and of the one with the scale
EDGE = 4.0  # percent of the width, on both sides
CAP = 4.0
REACH = 4.0  # how far below the best the scale goes, in distances of the median
MAX_TICKS = 4
SURE = 0.05  # p-values below it are starred


@dataclass(frozen=True, slots=True)
class Spread:
    """A score with its standard error, and those of the folds; `is_behind`: significantly worse than the best."""

    mean: float
    error: float | None
    folds: tuple[float, ...]
    is_best: bool
    is_behind: bool


class Ruler:
    """One scale for all scores, which leaves out those that would press the others together."""

    def __init__(self, spreads: Sequence[Spread]) -> None:
        best = next((one for one in spreads if one.is_best), spreads[0])
        gaps = [abs(one.mean - best.mean) for one in spreads]
        reach = REACH * max(median(gaps), best.error or 0.0)
        near = [one for one, gap in zip(spreads, gaps, strict=True) if gap <= reach] or [best]
        ends = [
            end for one in near for end in (*one.folds, one.mean - (one.error or 0.0), one.mean + (one.error or 0.0))
        ]
        low, high = min(ends), max(ends)
        room = (high - low) * 0.04 or max(abs(high) * 0.05, 1e-9)
        self.best = best.mean
        self.scale = Scale(low - room, high + room, EDGE, 100.0 - EDGE)
        self.ticks = round_numbers(low - room, high + room, MAX_TICKS)

    def draw_head(self) -> Html:
        """The scale's numbers."""
        texts = (
            tag("text", text, x=self.at(tick), y=HEAD - 6, text_anchor="middle")
            for tick, text in zip(self.ticks, tick_texts(self.ticks), strict=True)
        )
        return self.frame(HEAD, *texts)

    def draw(self, spread: Spread) -> Html:
        """A score with its error bar; the folds' scores as ticks; an arrow for a score beyond the scale."""
        middle = HEIGHT / 2
        marks = [self.rule(tick, "grid") for tick in self.ticks]
        marks.append(self.rule(self.best, "level"))
        if not self.scale.first <= spread.mean <= self.scale.last:
            is_low = spread.mean < self.scale.first
            arrow = tag("path", class_="off", d=f"M{3 if is_low else -3} {middle:g}l{9 if is_low else -9}-5v10z")
            marks.append(tag("svg", arrow, x="0%" if is_low else "100%", overflow="visible"))
            return self.frame(HEIGHT, *marks)
        marks += [
            tag("line", class_="fold", x1=self.at(fold), x2=self.at(fold), y1=middle - 4, y2=middle + 4)
            for fold in spread.folds
            if self.scale.first <= fold <= self.scale.last
        ]
        look = "top" if spread.is_best else "behind" if spread.is_behind else "equal"
        bar = []
        if spread.error is not None:
            ends = [self.at(spread.mean + sign * spread.error) for sign in (-1, 1)]
            bar = [
                tag("line", class_="bar", x1=ends[0], x2=ends[1], y1=middle, y2=middle),
                *(tag("line", class_="bar", x1=end, x2=end, y1=middle - CAP, y2=middle + CAP) for end in ends),
            ]
        marks.append(tag("g", *bar, tag("circle", class_="dot", cx=self.at(spread.mean), cy=middle, r=4), class_=look))
        return self.frame(HEIGHT, *marks)

    def rule(self, value: float, look: str) -> Html:
        """A line across the picture, which goes on in the next row's."""
        return tag("line", class_=look, x1=self.at(value), x2=self.at(value), y1=0, y2=HEIGHT)

    def at(self, value: float) -> str:
        """Where a score stands, in percent of whatever width there is."""
        return f"{self.scale(value):.2f}%"

    @staticmethod
    def frame(height: float, *marks: Html) -> Html:
        """A picture; the numbers beside it say the same."""
        return tag("svg", *marks, class_="scale", height=height, aria_hidden="true")


def show_methods(study: Study) -> Html:
    """The methods of a study, best first."""
    gaps = {one.key: one for one in study.differences}
    spreads = {result.key: spread for result in study.ranked if (spread := spread_of(study, result, gaps)) is not None}
    ruler = Ruler(list(spreads.values())) if spreads else None
    head = ("method", study.metric_title, "±", "behind", "p", "fit s", "predict s", "size", "leaves")
    is_whole = not any(map(study.is_short, study.methods))
    title = "Every method on the same folds, best first" + ("" if is_whole else "; then those that saw less, or failed")
    lines = []
    for result in study.ranked:
        spread = spreads.get(result.key)
        cells = cells_of(study, result, gaps.get(result.key))
        picture = ruler.draw(spread) if ruler is not None and spread is not None else ""
        look = "failed" if spread is None else "best" if spread.is_best else None
        lines.append(write_row(shown(study.label(result)), picture, cells, look))
    return write_table(title, head, ruler, lines)


def show_curves(figure: Figure) -> Html:
    """The ensembles of the figure at their most trees, best first."""
    done = [curve for curve in figure.curves if curve.scores]
    finals = {curve.name: tuple(fold[-1] for fold in curve.scores) for curve in done}
    order = sorted(done, key=lambda curve: -fmean(finals[curve.name]))
    spreads = [
        Spread(fmean(finals[one.name]), figure.standard_error(finals[one.name]), finals[one.name], place == 0, False)
        for place, one in enumerate(order)
    ]
    ruler = Ruler(spreads) if spreads else None
    lines = [
        write_row(
            one.name,
            ruler.draw(spread) if ruler is not None else "",
            [
                short(spread.mean),
                "" if spread.error is None else short(spread.error),
                seconds(fmean(fold[-1] for fold in one.seconds)),
            ],
            "best" if spread.is_best else None,
        )
        for one, spread in zip(order, spreads, strict=True)
    ]
    return write_table(f"With {figure.trees[-1]} trees, best first", ("method", "R²", "±", "fit s"), ruler, lines)


def spread_of(study: Study, result: MethodResult, gaps: dict[str, Difference]) -> Spread | None:
    """The score of a method, None where it has none."""
    if result.mean is None:
        return None
    gap = gaps.get(result.key)
    is_behind = gap is not None and gap.p_adjusted is not None and gap.p_adjusted < SURE
    return Spread(result.mean, study.standard_error(result), result.scores, result.key == study.best, is_behind)


def cells_of(study: Study, result: MethodResult, gap: Difference | None) -> list[str]:
    """Score, error, behind, p, fit, predict, size, leaves."""
    if result.mean is None:
        return ["failed" if result.error else "no score", *[""] * 7]
    error = study.standard_error(result)
    p = None if gap is None else gap.p_adjusted
    return [
        short(result.mean),
        "" if error is None else short(error),
        "best" if result.key == study.best else "" if gap is None else short(gap.mean),
        "" if p is None else chance(p) + ("*" if p < SURE else ""),
        seconds(fmean(result.fit_seconds)),
        seconds(fmean(result.predict_seconds)),
        "" if result.model_bytes is None else size(result.model_bytes),
        "" if result.n_leaves is None else f"{result.n_leaves:,.0f}",
    ]


def write_row(name: str, picture: str, cells: Sequence[str], look: str | None) -> Html:
    """A line of the table."""
    return tag(
        "tr",
        tag("th", name, scope="row"),
        tag("td", picture, class_="picture"),
        *(tag("td", cell, class_="number") for cell in cells),
        class_=look,
    )


def write_table(title: str, head: Sequence[str], ruler: Ruler | None, lines: Sequence[Html]) -> Html:
    """The table around its lines; the scale stands in the head of the pictures."""
    first, *rest = head
    columns = tag(
        "tr",
        tag("th", first, scope="col"),
        tag("td", ruler.draw_head() if ruler is not None else "", class_="picture"),
        *(tag("th", one, scope="col", class_="number") for one in rest),
    )
    made = tag("table", tag("caption", title), tag("thead", columns), tag("tbody", *lines), class_="methods")
    return scrolled(made, title)
