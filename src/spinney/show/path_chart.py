"""The pruning path of a tree as a chart that a slider can stand under: places are percent of whatever width there is.

The root alone is on the left, the whole tree on the right, every step as far from the next as the slider's are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spinney.reading.wording import count
from spinney.show.charts import capital
from spinney.show.markup import Html, tag
from spinney.show.numbers import short
from spinney.show.scale import Scale, round_numbers, tick_texts

if TYPE_CHECKING:
    from spinney.study.evidence import TreeView

HEIGHT, TOP, BOTTOM = 180.0, 14.0, 24.0  # pixels
MAX_LABELS, MAX_GRID = 6, 4
MAX_LARGE = 40  # steps that are drawn with large points


class PathChart:
    """The chart of one tree's path."""

    def __init__(self, tree: TreeView) -> None:
        self.tree = tree
        self.last = len(tree.steps) - 1
        errors = [step.error + (step.standard_error or 0.0) for step in tree.steps if step.error is not None]
        values = [*errors, *(step.training_error for step in tree.steps)]
        self.low, self.high = min(0.0, *values), max(1e-12, *values)
        self.height = Scale(self.high, self.low, TOP, HEIGHT - BOTTOM)

    def place(self, step: int) -> str:
        """Where a step stands from the left."""
        return f"{100.0 * (self.last - step) / self.last:.2f}%" if self.last else "0%"

    def heights(self) -> list[float | None]:
        """Where the validated error of each step stands from the top."""
        return [None if step.error is None else round(self.height(step.error), 1) for step in self.tree.steps]

    def draw(self) -> Html:
        """The picture."""
        tree = self.tree
        best, small = tree.steps[tree.chosen], tree.steps[tree.one_error]
        words = (
            f"From 1 leaf to {tree.steps[0].n_leaves}; lowest with {count(best.n_leaves, 'leaf')}"
            + ("" if best.error is None else f", {short(best.error)}")
            + f"; the smallest tree within one standard error of it has {count(small.n_leaves, 'leaf')}."
        )
        return tag(
            "svg",
            tag("title", f"{capital(tree.measure)} along the pruning path", id="tree-path-title"),
            tag("desc", words, id="tree-path-words"),
            *self.draw_grid(),
            *self.draw_line("own", [self.height(step.training_error) for step in tree.steps]),
            *self.draw_line("curve", self.heights()),
            *self.draw_points(),
            *self.draw_labels(),
            self.draw_now(),
            role="img",
            aria_labelledby="tree-path-title tree-path-words",
        )

    def draw_grid(self) -> list[Html]:
        """Lines at round errors, and one standard error above the lowest."""
        ticks = round_numbers(self.low, self.high, MAX_GRID)
        found = []
        for value, text in zip(ticks, tick_texts(ticks), strict=True):
            y = self.height(value)
            found += [tag("line", class_="grid", x1="0%", x2="100%", y1=y, y2=y), tag("text", text, x="0%", y=y - 4)]
        best = self.tree.steps[self.tree.chosen]
        if best.error is not None and best.standard_error is not None:
            y = self.height(best.error + best.standard_error)
            found.append(tag("line", class_="limit", x1="0%", x2="100%", y1=y, y2=y))
        return found

    def draw_line(self, look: str, heights: list[float] | list[float | None]) -> list[Html]:
        """Errors of neighbouring steps, joined."""
        return [
            tag("line", class_=look, x1=self.place(k), x2=self.place(k + 1), y1=heights[k], y2=heights[k + 1])
            for k in range(self.last)
            if heights[k] is not None and heights[k + 1] is not None
        ]

    def draw_points(self) -> list[Html]:
        """Validated errors with their standard errors; a ring around the chosen ones."""
        found = []
        radius = 2.6 if self.last < MAX_LARGE else 2.0
        for k, step in enumerate(self.tree.steps):
            if step.error is None:
                continue
            x, y = self.place(k), self.height(step.error)
            if step.standard_error is not None:
                top, foot = (self.height(step.error + sign * step.standard_error) for sign in (1, -1))
                found.append(tag("line", class_="spread", x1=x, x2=x, y1=top, y2=foot))
            is_chosen = k in {self.tree.chosen, self.tree.one_error}
            look, size = ("chosen", 5.5) if is_chosen else ("dot", radius)
            found.append(tag("circle", class_=look, cx=x, cy=y, r=size))
        return found

    def draw_labels(self) -> list[Html]:
        """Numbers of leaves below a few of the steps."""
        n_labels = min(MAX_LABELS, self.last + 1)
        found = []
        for k in sorted({round(one * self.last / max(n_labels - 1, 1)) for one in range(n_labels)}):
            n_leaves = self.tree.steps[k].n_leaves
            words = count(n_leaves, "leaf") if k == 0 else f"{n_leaves:,}"
            anchor = "start" if k == self.last else "end" if k == 0 else "middle"
            found.append(tag("text", words, x=self.place(k), y=HEIGHT - 4, text_anchor=anchor))
        return found

    def draw_now(self) -> Html:
        """The mark of the step that is shown, which the script moves."""
        x, step = self.place(self.tree.chosen), self.tree.steps[self.tree.chosen]
        return tag(
            "g",
            tag("line", class_="now", x1=x, x2=x, y1=TOP - 8, y2=HEIGHT - BOTTOM + 4),
            tag("circle", class_="ring", cx=x, cy=TOP if step.error is None else self.height(step.error), r=5),
            id="tree-now",
        )
